//! What happens, while it happens: the one source of terminal progress, JSON output and reports.

use crate::journal::Stuck;
use crate::plan::model::Phase;
use jiff::Timestamp;
use serde::Serialize;
use std::sync::Arc;

/// Receives events, in order. Must not block for long: the engine waits.
pub type Events = Arc<dyn Fn(&Event) + Send + Sync>;

/// Nobody listens.
pub fn silent() -> Events {
    Arc::new(|_| {})
}

/// Something happened.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// Time of the world.
    pub at: Timestamp,
    /// What.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum EventKind {
    /// A run begins or goes on.
    Started {
        /// Run id.
        run: String,
        /// An earlier process began it.
        resumed: bool,
        /// Steps of this plan that are to be done, and how many are done.
        steps: usize,
        /// Done already.
        done: usize,
    },
    /// A step begins (or goes on after a stop).
    StepStarted {
        /// Step.
        step: String,
        /// Its phase.
        phase: Phase,
        /// What it does.
        summary: String,
        /// Expected duration, seconds, low and high.
        expect_s: [u32; 2],
    },
    /// A step (or an undo) waits for the world.
    Waiting {
        /// Step.
        step: String,
        /// For what.
        why: String,
        /// Asked again after so many seconds.
        poll_s: f64,
    },
    /// A call failed and is repeated.
    Retrying {
        /// Step.
        step: String,
        /// What the server said.
        error: String,
        /// Number of the failed try.
        attempt: u32,
        /// Seconds until the repeat.
        retry_in_s: f64,
    },
    /// A step is done.
    StepDone {
        /// Step.
        step: String,
        /// Seconds since it began in this process.
        took_s: f64,
    },
    /// A step cannot go on.
    StepFailed {
        /// Step.
        step: String,
        /// Why.
        why: String,
        /// What to do.
        remedy: String,
    },
    /// No new steps begin any more.
    Stopping {
        /// Why.
        why: String,
        /// Steps that still run.
        running: usize,
    },
    /// Every step is done.
    RunDone {
        /// Run id.
        run: String,
    },
    /// A rollback begins or goes on.
    RollbackStarted {
        /// Run id.
        run: String,
        /// Last phase that stays.
        to: Option<Phase>,
        /// Steps to undo.
        steps: usize,
    },
    /// An undo begins (or goes on).
    UndoStarted {
        /// Step.
        step: String,
        /// Its phase.
        phase: Phase,
        /// What is undone.
        summary: String,
    },
    /// A step is undone.
    Undone {
        /// Step.
        step: String,
        /// Seconds since its undo began in this process.
        took_s: f64,
    },
    /// An undo needs a person.
    Stuck {
        /// Step.
        step: String,
        /// What is the matter.
        #[serde(flatten)]
        stuck: Stuck,
    },
    /// A part of `finalize` begins.
    FinalizeStarted {
        /// Which.
        what: String,
    },
    /// A part of `finalize` is done.
    FinalizeDone {
        /// Which.
        what: String,
        /// Seconds.
        took_s: f64,
    },
    /// Back where it should be.
    RollbackDone {
        /// Last phase that stays.
        to: Option<Phase>,
    },
}

impl EventKind {
    /// The step that the event is about.
    pub fn step(&self) -> Option<&str> {
        match self {
            EventKind::StepStarted { step, .. }
            | EventKind::Waiting { step, .. }
            | EventKind::Retrying { step, .. }
            | EventKind::StepDone { step, .. }
            | EventKind::StepFailed { step, .. }
            | EventKind::UndoStarted { step, .. }
            | EventKind::Undone { step, .. }
            | EventKind::Stuck { step, .. } => Some(step),
            _ => None,
        }
    }
}
