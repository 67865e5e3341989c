//! The records and their chained lines.

use crate::object::{canonical, sha256_hex};
use crate::plan::model::{Phase, StepSpec, Verdict};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Version of the line format and of the meaning of records; a reader refuses any other.
pub const FORMAT: u32 = 1;

/// `prev` of the first record.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Steps that a run got beside those of its plan: what `crossfade replay --apply` brings. Everything that they need is in here, as
/// everything that a plan's steps need is in the plan; so any later process can go on with them or take them back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extension {
    /// The steps, each after those that it needs. The first is the root: all others need it, and when it is undone they all are history.
    pub steps: Vec<StepSpec>,
    /// Steps of the plan that wait for one of these, by its id.
    #[serde(default)]
    pub before: BTreeMap<String, Vec<String>>,
    /// Verdicts on objects that are new, or that have another target than in the plan. No Secret value is in them.
    pub verdicts: Vec<Verdict>,
}

/// What happened, or is about to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Record {
    /// First record of every journal.
    RunStarted {
        /// Run id, as in `shop-7f3a9c`.
        run: String,
        /// Digest of the plan; no other plan may use this journal.
        plan_digest: String,
        /// Version of the program.
        crossfade_version: String,
    },
    /// A later process goes on forwards (after a crash, a stop, or a rollback).
    Resumed {
        /// Version of the program.
        crossfade_version: String,
        /// Who and where, `user@host`.
        by: String,
    },
    /// The run got more steps.
    Extended {
        /// Which.
        extension: Extension,
    },
    /// A step is about to be applied.
    Intent {
        /// Step.
        step: String,
        /// What `observe` saw; the undo restores it.
        before: Value,
    },
    /// `apply` returned.
    Applied {
        /// Step.
        step: String,
        /// What it returned.
        after: Value,
    },
    /// The world shows the target.
    Done {
        /// Step.
        step: String,
    },
    /// A running step did a part of its work.
    Progress {
        /// Step.
        step: String,
        /// The step's own words.
        data: Value,
    },
    /// A call failed in a way that may pass; it is repeated.
    Attempt {
        /// Step.
        step: String,
        /// What the server said.
        error: String,
        /// Seconds until the repeat.
        retry_in_s: f64,
    },
    /// A step cannot go on; it can be repeated or undone.
    Failed {
        /// Step.
        step: String,
        /// Why.
        why: String,
    },
    /// The process ends at a safe point before the end of its work.
    Stopped {
        /// Why.
        why: String,
    },
    /// A rollback begins (or begins again).
    RollbackStarted {
        /// Last phase that stays; everything goes when absent.
        to: Option<Phase>,
    },
    /// A step is about to be undone.
    UndoIntent {
        /// Step.
        step: String,
    },
    /// It is undone and the world shows it.
    Undone {
        /// Step.
        step: String,
    },
    /// An undo needs a person.
    Stuck {
        /// Step.
        step: String,
        /// Object, record, resource.
        object: String,
        /// What was expected there.
        expected: String,
        /// What is there.
        found: String,
        /// Ways on, as commands.
        ways: Vec<String>,
    },
    /// A person decided that the undo of a step is not to be done.
    Skipped {
        /// Step.
        step: String,
        /// Why.
        reason: String,
        /// Who.
        by: String,
    },
    /// All that had to be undone is.
    RollbackDone {
        /// Last phase that stays.
        to: Option<Phase>,
    },
    /// Every step of the plan is done.
    RunDone,
    /// `finalize` did a part of its work; from the first of these on there is no way back.
    Finalized {
        /// What was done.
        what: String,
        /// Details.
        data: Value,
    },
}

impl Record {
    /// The step that the record is about, if any.
    pub fn step(&self) -> Option<&str> {
        match self {
            Record::Intent { step, .. }
            | Record::Applied { step, .. }
            | Record::Done { step }
            | Record::Progress { step, .. }
            | Record::Attempt { step, .. }
            | Record::Failed { step, .. }
            | Record::UndoIntent { step }
            | Record::Undone { step }
            | Record::Stuck { step, .. }
            | Record::Skipped { step, .. } => Some(step),
            _ => None,
        }
    }
    /// Short name, as in the file.
    pub fn name(&self) -> &'static str {
        match self {
            Record::RunStarted { .. } => "run_started",
            Record::Resumed { .. } => "resumed",
            Record::Extended { .. } => "extended",
            Record::Intent { .. } => "intent",
            Record::Applied { .. } => "applied",
            Record::Done { .. } => "done",
            Record::Progress { .. } => "progress",
            Record::Attempt { .. } => "attempt",
            Record::Failed { .. } => "failed",
            Record::Stopped { .. } => "stopped",
            Record::RollbackStarted { .. } => "rollback_started",
            Record::UndoIntent { .. } => "undo_intent",
            Record::Undone { .. } => "undone",
            Record::Stuck { .. } => "stuck",
            Record::Skipped { .. } => "skipped",
            Record::RollbackDone { .. } => "rollback_done",
            Record::RunDone => "run_done",
            Record::Finalized { .. } => "finalized",
        }
    }
}

/// A record in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Number, from 1.
    pub seq: u64,
    /// Hash of the entry before, [`GENESIS`] for the first.
    pub prev: String,
    /// Time of the world.
    pub at: Timestamp,
    /// What happened.
    pub record: Record,
    /// sha256 over the canonical JSON of everything else in the line.
    pub hash: String,
}

impl Entry {
    /// Chains a record to what came before.
    pub fn chain(seq: u64, prev: &str, at: Timestamp, record: Record) -> Self {
        let mut entry = Entry {
            seq,
            prev: prev.into(),
            at,
            record,
            hash: String::new(),
        };
        entry.hash = sha256_hex(canonical(&entry.body()));
        entry
    }
    fn body(&self) -> Value {
        json!({"v": FORMAT, "seq": self.seq, "prev": self.prev, "at": self.at.to_string(), "record": self.record})
    }
    /// The line, without the line break.
    pub fn line(&self) -> String {
        let mut body = self.body();
        body["hash"] = Value::String(self.hash.clone());
        body.to_string()
    }
    /// Reads a parsed line: the hash first, so that nothing damaged is ever interpreted.
    pub(super) fn from_value(mut value: Value) -> Result<Self, LineError> {
        let damaged = |why: &str| LineError::Damaged(why.to_string());
        let map = value
            .as_object_mut()
            .ok_or_else(|| damaged("not an object"))?;
        let hash = match map.shift_remove("hash") {
            Some(Value::String(h)) => h,
            _ => return Err(damaged("it has no hash")),
        };
        if sha256_hex(canonical(&value)) != hash {
            return Err(damaged("its hash does not match its content"));
        }
        match value["v"].as_u64() {
            Some(v) if v == u64::from(FORMAT) => {}
            v => {
                return Err(LineError::Version(format!(
                    "format {}, this version reads format {FORMAT}",
                    v.map_or("unknown".into(), |v| v.to_string())
                )));
            }
        }
        let at = value["at"]
            .as_str()
            .and_then(|t| t.parse().ok())
            .ok_or_else(|| LineError::Version("time is not understood".into()))?;
        Ok(Entry {
            seq: value["seq"].as_u64().unwrap_or(0),
            prev: value["prev"].as_str().unwrap_or("").into(),
            at,
            record: serde_json::from_value(value["record"].take())
                .map_err(|e| LineError::Version(e.to_string()))?,
            hash,
        })
    }
}

/// Why a line cannot be used.
#[derive(Debug)]
pub(super) enum LineError {
    /// Not what was written.
    Damaged(String),
    /// Written well, by a version that knows more (or less) than this one.
    Version(String),
}
