//! The journal: everything needed to resume or undo a run, written and synced before the effect it speaks of.
//!
//! One JSON line per record, each with the hash of the one before. It is an intent log, not a debug log: what a reader learns from it
//! is decided by one state machine ([`State`]) that live running and replay share and that refuses illegal transitions.

mod error;
mod file;
mod log;
mod record;
mod state;
#[cfg(test)]
mod tests;

pub use error::JournalError;
pub use file::{Holder, JOURNAL, read};
pub use log::{CrashPoint, Journal, Opened};
pub use record::{Entry, Extension, FORMAT, GENESIS, Record};
pub use state::{Mode, RunInfo, State, Status, StepState, Stuck};
