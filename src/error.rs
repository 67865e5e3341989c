//! One error for people: what, where, why, what to do next; its kind decides the exit code.

use serde::Serialize;

/// The class of an error; each has an exit code of its own (see [`Kind::exit_code`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Findings of severity `blocker` stand in the way.
    Blocked,
    /// The plan is not approved, was edited, or no longer matches the world.
    StalePlan,
    /// An undo or a step needs a person.
    Stuck,
    /// The run stopped at a safe point and can go on.
    Interrupted,
    /// The command line is wrong.
    Usage,
    /// A file or a declared value is wrong.
    BadInput,
    /// A server could not be reached, or refused who we are.
    Unreachable,
    /// crossfade itself is wrong.
    Bug,
}

impl Kind {
    /// The process exit code of this class (documented in README, tested through the binary).
    pub fn exit_code(self) -> u8 {
        match self {
            Kind::Blocked => 3,
            Kind::StalePlan => 4,
            Kind::Stuck => 5,
            Kind::Interrupted => 6,
            Kind::Usage => 64,
            Kind::BadInput => 65,
            Kind::Unreachable => 69,
            Kind::Bug => 70,
        }
    }
}

/// An error as a person sees it at 3 a.m.
#[derive(Clone, Debug, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// Class, which decides the exit code.
    pub kind: Kind,
    /// What happened and why, one or two sentences.
    pub message: String,
    /// Where: `file:line:column`, an object, a record, a step. Empty when it is nowhere in particular.
    #[serde(rename = "where")]
    pub at: String,
    /// What to do next.
    pub remedy: String,
    /// Source excerpt with the place marked, for text output only.
    #[serde(skip)]
    pub excerpt: Option<String>,
}

/// Result with the error for people.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A new error of a class.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error {
            kind,
            message: message.into(),
            at: String::new(),
            remedy: String::new(),
            excerpt: None,
        }
    }
    /// Says where.
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.at = place.into();
        self
    }
    /// Says what to do next.
    pub fn remedy(mut self, what: impl Into<String>) -> Self {
        self.remedy = what.into();
        self
    }
    /// Takes the source excerpt out: the source may hold secrets.
    pub fn without_excerpt(mut self) -> Self {
        self.excerpt = None;
        self
    }
    /// Adds a source excerpt.
    pub fn excerpt(mut self, text: impl Into<String>) -> Self {
        self.excerpt = Some(text.into());
        self
    }
}

impl From<crate::world::Error> for Error {
    fn from(e: crate::world::Error) -> Self {
        let kind = match e.class {
            crate::world::Class::Unreachable
            | crate::world::Class::Throttled
            | crate::world::Class::Unauthorized => Kind::Unreachable,
            crate::world::Class::WrongIdentity => Kind::StalePlan,
            crate::world::Class::Internal => Kind::Bug,
            _ => Kind::Stuck,
        };
        Error {
            kind,
            message: e.message,
            at: e.at,
            remedy: e.remedy,
            excerpt: None,
        }
    }
}
