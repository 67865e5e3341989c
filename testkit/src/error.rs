//! One error type for the bench: a sentence for the person who started it.

use std::fmt;

/// What went wrong on the bench, where, and (when known) what to do about it.
#[derive(Debug, Clone)]
pub struct Error(String);

/// The bench's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error from a ready sentence.
    pub fn new(message: impl Into<String>) -> Self {
        Error(message.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// Puts what was being done in front of any error.
pub trait Context<T> {
    /// `doing` reads like "could not start etcd"; it is only built when there is an error.
    fn context(self, doing: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: std::error::Error> Context<T> for std::result::Result<T, E> {
    fn context(self, doing: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| {
            let mut message = format!("{}: {error}", doing());
            let mut source = error.source();
            while let Some(inner) = source {
                let text = inner.to_string();
                // Many libraries already print their source: say each thing once.
                if !message.contains(&text) {
                    message.push_str(": ");
                    message.push_str(&text);
                }
                source = inner.source();
            }
            Error(message)
        })
    }
}
