//! What the records add up to. The only place that decides which record may follow which.

use super::record::{Extension, Record};
use crate::plan::model::Phase;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How far a step is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nothing was done.
    #[default]
    Fresh,
    /// It may or may not have been applied: look.
    Intent,
    /// Applied, not yet settled.
    Applied,
    /// Done.
    Done,
    /// Its undo may or may not have happened: look.
    UndoIntent,
    /// Undone.
    Undone,
    /// A person decided to leave it as it is.
    Skipped,
}

impl Status {
    /// Whether there may be something to undo.
    pub fn is_active(self) -> bool {
        matches!(
            self,
            Status::Intent | Status::Applied | Status::Done | Status::UndoIntent
        )
    }
}

/// An undo that needs a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stuck {
    /// Object, record, resource.
    pub object: String,
    /// What was expected there.
    pub expected: String,
    /// What is there.
    pub found: String,
    /// Ways on.
    pub ways: Vec<String>,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepState {
    /// How far it is.
    pub status: Status,
    /// What `observe` saw.
    pub before: Option<Value>,
    /// What `apply` returned.
    pub after: Option<Value>,
    /// Its progress records of the present pass, oldest first, as JSON text: of a big wave they name every object, and text is half of
    /// what a parsed value weighs.
    pub progress: Vec<Box<str>>,
    /// Repeats since the last change of status.
    pub attempts: u32,
    /// Time of the last change of status.
    pub since: Timestamp,
    /// When the present pass began.
    pub started: Timestamp,
    /// Why it could not go on, until it does.
    pub failed: Option<String>,
    /// Why its undo could not go on, until it does.
    pub stuck: Option<Stuck>,
}

/// Which way the run goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "mode", content = "to")]
pub enum Mode {
    /// Forwards.
    #[default]
    Forward,
    /// Back, not there yet.
    RollingBack(Option<Phase>),
    /// Back, and there.
    RolledBack(Option<Phase>),
}

/// What the first record says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunInfo {
    /// Run id.
    pub run: String,
    /// Digest of its plan.
    pub plan_digest: String,
    /// Version that began it.
    pub crossfade_version: String,
    /// When.
    pub at: Timestamp,
}

/// What the records add up to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Absent when there is no record yet.
    pub run: Option<RunInfo>,
    /// Steps that were ever begun.
    pub steps: BTreeMap<String, StepState>,
    /// Steps beside those of the plan, in the order in which they came.
    pub extensions: Vec<Arc<Extension>>,
    /// Which way it goes.
    pub mode: Mode,
    /// All steps are done.
    pub done: bool,
    /// Why the last process stopped early, until another goes on.
    pub stopped: Option<String>,
    /// What `finalize` did so far.
    pub finalized: Vec<(String, Value)>,
    /// Time of the last record.
    pub last: Option<Timestamp>,
}

impl State {
    /// Adds up records; the number (from 0) and reason of the first that may not stand where it stands.
    pub fn replay<'a>(
        records: impl IntoIterator<Item = (Timestamp, &'a Record)>,
    ) -> Result<State, (usize, String)> {
        let mut state = State::default();
        for (n, (at, record)) in records.into_iter().enumerate() {
            state.check(record).map_err(|why| (n, why))?;
            state.apply(at, record);
        }
        Ok(state)
    }
    /// How far a step is.
    pub fn status(&self, step: &str) -> Status {
        self.steps.get(step).map_or(Status::Fresh, |s| s.status)
    }
    /// The first step whose undo needs a person.
    pub fn stuck(&self) -> Option<(&str, &Stuck)> {
        self.steps
            .iter()
            .find_map(|(id, s)| Some((id.as_str(), s.stuck.as_ref()?)))
    }
    /// Whether nothing of the run is left in the world.
    pub fn is_clean(&self) -> bool {
        self.finalized.is_empty() && self.steps.values().all(|s| !s.status.is_active())
    }

    /// Extensions that count: one whose root was undone is history.
    pub fn extensions(&self) -> impl Iterator<Item = &Arc<Extension>> {
        self.extensions.iter().filter(|e| {
            e.steps.first().is_some_and(|root| {
                !matches!(self.status(&root.id), Status::Undone | Status::Skipped)
            })
        })
    }
    /// Whether a step belongs to an extension that is history.
    fn is_history(&self, step: &str) -> bool {
        let has = |e: &Extension| e.steps.iter().any(|s| s.id == step);
        self.extensions.iter().any(|e| has(e)) && !self.extensions().any(|e| has(e))
    }

    /// Whether a record may follow.
    pub fn check(&self, record: &Record) -> Result<(), String> {
        use Status::*;
        let refuse = |why: String| Err(format!("{}: {why}", record.name()));
        if matches!(record, Record::RunStarted { .. }) {
            return match &self.run {
                None => Ok(()),
                Some(r) => refuse(format!("run {} began already", r.run)),
            };
        }
        if self.run.is_none() {
            return refuse("the run has not begun".into());
        }
        if let Some(step) = record.step() {
            let status = self.status(step);
            let back = matches!(self.mode, Mode::RollingBack(_));
            let allowed: &[Status] = match record {
                Record::Intent { .. } => &[Fresh, Undone, Skipped],
                Record::Applied { .. } => &[Intent, Applied],
                Record::Done { .. } => &[Applied],
                Record::Progress { .. } => &[Intent, Applied, UndoIntent],
                Record::Attempt { .. } => &[Fresh, Undone, Skipped, Intent, Applied, UndoIntent],
                Record::Failed { .. } => &[Fresh, Undone, Skipped, Intent, Applied, UndoIntent],
                Record::UndoIntent { .. } => &[Intent, Applied, Done],
                Record::Undone { .. } | Record::Stuck { .. } | Record::Skipped { .. } => {
                    &[UndoIntent]
                }
                _ => &[],
            };
            if !allowed.contains(&status) {
                return refuse(format!("step {step} is {status:?}"));
            }
            let wants_back = match record {
                Record::Intent { .. } | Record::Applied { .. } | Record::Done { .. } => Some(false),
                Record::UndoIntent { .. }
                | Record::Undone { .. }
                | Record::Stuck { .. }
                | Record::Skipped { .. } => Some(true),
                _ => None,
            };
            if wants_back.is_some_and(|w| w != back) || matches!(self.mode, Mode::RolledBack(_)) {
                return refuse(format!("step {step}: the run is {:?}", self.mode));
            }
            if !self.finalized.is_empty() {
                return refuse("the migration is being finalized".into());
            }
            return Ok(());
        }
        let has = |wanted: &[Status]| {
            self.steps
                .iter()
                .find(|(id, s)| wanted.contains(&s.status) && !self.is_history(id))
                .map(|(id, s)| format!("step {id} is {:?}", s.status))
        };
        match record {
            Record::Resumed { .. } => match self.mode {
                Mode::RollingBack(to) => {
                    refuse(format!("a rollback to {} is not finished", phase(to)))
                }
                _ if self.done => refuse("the run is done".into()),
                _ => Ok(()),
            },
            Record::RollbackStarted { to } => match self.mode {
                _ if !self.finalized.is_empty() => refuse("the migration is finalized".into()),
                Mode::RollingBack(old) if *to > old => refuse(format!(
                    "a rollback to {} is not finished, {} is not as far back",
                    phase(old),
                    phase(*to)
                )),
                _ => Ok(()),
            },
            Record::RollbackDone { .. } => match (self.mode, has(&[UndoIntent])) {
                (Mode::RollingBack(_), None) => Ok(()),
                (Mode::RollingBack(_), Some(why)) => refuse(why),
                _ => refuse("no rollback is under way".into()),
            },
            Record::Extended { extension } => {
                let known = |id: &str| {
                    self.steps.contains_key(id)
                        || self
                            .extensions
                            .iter()
                            .any(|e| e.steps.iter().any(|s| s.id == id))
                };
                if self.mode != Mode::Forward || self.done || !self.finalized.is_empty() {
                    refuse("the run does not go forwards".into())
                } else if let Some(s) = extension.steps.iter().find(|s| known(&s.id)) {
                    refuse(format!("step {} is there already", s.id))
                } else if extension.steps.is_empty() {
                    refuse("it has no step".into())
                } else {
                    Ok(())
                }
            }
            Record::RunDone => match (
                self.mode,
                has(&[Intent, Applied, UndoIntent, Undone, Skipped]),
            ) {
                (Mode::Forward, None) => Ok(()),
                (Mode::Forward, Some(why)) => refuse(why),
                _ => refuse("the run goes back".into()),
            },
            Record::Finalized { .. } if !self.done => refuse("the run is not done".into()),
            _ => Ok(()),
        }
    }

    /// Adds a record that [`State::check`] let pass.
    pub fn apply(&mut self, at: Timestamp, record: &Record) {
        self.last = Some(at);
        match record {
            Record::RunStarted {
                run,
                plan_digest,
                crossfade_version,
            } => {
                self.run = Some(RunInfo {
                    run: run.clone(),
                    plan_digest: plan_digest.clone(),
                    crossfade_version: crossfade_version.clone(),
                    at,
                });
            }
            Record::Resumed { .. } => {
                self.mode = Mode::Forward;
                self.stopped = None;
            }
            Record::Extended { extension } => self.extensions.push(Arc::new(extension.clone())),
            Record::Stopped { why } => self.stopped = Some(why.clone()),
            Record::RollbackStarted { to } => {
                self.mode = Mode::RollingBack(*to);
                self.done = false;
                self.stopped = None;
            }
            Record::RollbackDone { to } => self.mode = Mode::RolledBack(*to),
            Record::RunDone => self.done = true,
            Record::Finalized { what, data } => self.finalized.push((what.clone(), data.clone())),
            _ => {}
        }
        let Some(id) = record.step() else { return };
        let step = self.steps.entry(id.into()).or_insert_with(|| StepState {
            status: Status::Fresh,
            before: None,
            after: None,
            progress: vec![],
            attempts: 0,
            since: at,
            started: at,
            failed: None,
            stuck: None,
        });
        let mut to = |status: Status| {
            step.status = status;
            step.since = at;
            step.attempts = 0;
            step.failed = None;
            step.stuck = None;
        };
        match record {
            Record::Intent { before, .. } => {
                to(Status::Intent);
                step.before = Some(before.clone());
                step.after = None;
                step.progress.clear();
                step.started = at;
            }
            Record::Applied { after, .. } => {
                to(Status::Applied);
                step.after = Some(after.clone());
            }
            Record::Done { .. } => to(Status::Done),
            Record::Progress { data, .. } => step.progress.push(data.to_string().into()),
            Record::Attempt { .. } => step.attempts += 1,
            Record::Failed { why, .. } => step.failed = Some(why.clone()),
            Record::UndoIntent { .. } => {
                to(Status::UndoIntent);
                step.started = at;
            }
            Record::Undone { .. } => to(Status::Undone),
            Record::Skipped { .. } => to(Status::Skipped),
            Record::Stuck {
                object,
                expected,
                found,
                ways,
                ..
            } => {
                step.stuck = Some(Stuck {
                    object: object.clone(),
                    expected: expected.clone(),
                    found: found.clone(),
                    ways: ways.clone(),
                });
            }
            _ => {}
        }
    }
}

fn phase(to: Option<Phase>) -> &'static str {
    to.map_or("the start", Phase::name)
}
