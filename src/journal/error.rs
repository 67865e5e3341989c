//! Why a journal cannot be used.

use super::file::Holder;
use crate::error::{Error, Kind};

/// Why a journal cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process works on this run.
    #[error("another crossfade works on this run: {0}")]
    Held(Box<Holder>),
    /// A record that is not the last one is damaged, or the chain does not hold.
    #[error("record {record} at byte {offset}: {why}")]
    Broken {
        /// Number of the record, from 1.
        record: u64,
        /// Byte offset of its line.
        offset: u64,
        /// What is wrong with it.
        why: String,
        /// File.
        path: String,
    },
    /// A record that this version does not know.
    #[error("record {record} was written by another version of crossfade: {why}")]
    Version {
        /// Number of the record.
        record: u64,
        /// What is unknown.
        why: String,
        /// File.
        path: String,
    },
    /// The file system refused.
    #[error("{path}: {why}")]
    Io {
        /// File or folder.
        path: String,
        /// What the system said.
        why: String,
    },
    /// An earlier append failed (or a rehearsal ended the process here): nothing may be appended any more.
    #[error("the journal failed earlier; nothing more may happen in this process")]
    Dead,
    /// A bug: the record does not fit the state.
    #[error("illegal record: {0}")]
    Illegal(String),
}

impl JournalError {
    pub(super) fn io(path: &std::path::Path, e: &std::io::Error) -> Self {
        JournalError::Io {
            path: path.display().to_string(),
            why: e.to_string(),
        }
    }
}

impl From<JournalError> for Error {
    fn from(e: JournalError) -> Self {
        let message = e.to_string();
        match e {
            JournalError::Held(_) => Error::new(Kind::Stuck, message)
                .at("run/lock")
                .remedy("wait until it ends, or end it there; `crossfade status` shows what it does"),
            JournalError::Broken { path, .. } => Error::new(Kind::BadInput, message)
                .at(path)
                .remedy("the journal was damaged or edited: restore the file from a backup; do not cut it, later records say what must be undone"),
            JournalError::Version { path, .. } => Error::new(Kind::BadInput, message)
                .at(path)
                .remedy("use the version of crossfade that wrote it to finish or roll back this run"),
            JournalError::Io { path, .. } => Error::new(
                Kind::Interrupted,
                format!("the journal cannot be written or read, so nothing more was done: {message}"),
            )
            .at(path)
            .remedy("make the folder writable and free some space, then run the same command again"),
            JournalError::Dead => Error::new(Kind::Interrupted, message)
                .remedy("run the same command again"),
            JournalError::Illegal(_) => Error::new(Kind::Bug, message)
                .remedy("keep the run folder and report this"),
        }
    }
}
