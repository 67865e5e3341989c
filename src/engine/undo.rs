//! Back.

use super::graph::{dependents, steps_of, to_undo};
use super::{Engine, EventKind, Outcome, Problem};
use crate::error::{Error, Kind, Result};
use crate::journal::{Mode, Record, State, Status, Stuck};
use crate::plan::model::{Phase, Plan, Promise, StepSpec};
use crate::step::StepError;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use serde::Serialize;
use std::collections::BTreeSet;
use tokio::time::Instant;

/// What a rollback would undo, in this order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UndoPreview {
    /// Step.
    pub step: String,
    /// Phase.
    pub phase: Phase,
    /// What it did.
    pub summary: String,
    /// How far it is.
    pub status: Status,
    /// What its undo gives back.
    pub promise: Promise,
}

/// What a rollback to the end of a phase (to the start when absent) would undo, in this order.
pub fn undo_preview(plan: &Plan, state: &State, to: Option<Phase>) -> Vec<UndoPreview> {
    to_undo(&steps_of(plan, state), state, to)
        .into_iter()
        .map(|s| UndoPreview {
            step: s.id.clone(),
            phase: s.phase,
            summary: s.summary.clone(),
            status: state.status(&s.id),
            promise: s.promise.clone(),
        })
        .collect()
}

impl Engine {
    /// What [`Engine::rollback`] would undo; asks nobody and changes nothing.
    pub fn rollback_preview(&self, to: Option<Phase>) -> Vec<UndoPreview> {
        self.journal
            .with_state(|state| undo_preview(&self.plan, state, to))
    }

    /// Walks back: undoes every step of later phases than `to` (all when absent), each after all that needed it.
    pub async fn rollback(&self, to: Option<Phase>) -> Result<Outcome> {
        self.check_plan()?;
        let state = self.journal.state();
        if !state.finalized.is_empty() {
            return Err(Error::new(
                Kind::StalePlan,
                "the migration is finalized: there is no way back any more",
            )
            .at(self.run_id())
            .remedy("blue can only be used again by a new migration"));
        }
        // A rollback that was going further back stays the further one.
        if let Mode::RollingBack(old) = state.mode
            && to > old
        {
            return Err(Error::new(
                Kind::Usage,
                format!(
                    "a rollback to {} is not finished, {} is not as far back",
                    old.map_or("the start", Phase::name),
                    to.map_or("the start", Phase::name)
                ),
            )
            .at(self.run_id())
            .remedy(format!(
                "finish it first: crossfade rollback{}",
                old.map_or(String::new(), |p| format!(" --to {}", p.name()))
            )));
        }
        let steps = self.steps();
        let targets = to_undo(&steps, &state, to);
        let resuming = matches!(state.mode, Mode::RollingBack(_));
        if targets.is_empty() && !resuming {
            return Ok(Outcome::Restored { changed: false });
        }
        super::verify_pins(&self.world, &self.plan.basis).await?;
        self.append(Record::RollbackStarted { to })?;
        self.emit(EventKind::RollbackStarted {
            run: self.run_id(),
            to,
            steps: targets.len(),
        });
        if let Some(outcome) = self.drive_back(&steps, &targets).await? {
            let why = match &outcome {
                Outcome::Stopped { step, why, .. } => format!("undo of step {step}: {why}"),
                Outcome::Stuck { step, stuck } => {
                    format!("undo of step {step}: {} needs a person", stuck.object)
                }
                _ => "asked to stop".into(),
            };
            self.append(Record::Stopped { why })?;
            return Ok(outcome);
        }
        self.append(Record::RollbackDone { to })?;
        self.emit(EventKind::RollbackDone { to });
        Ok(Outcome::Restored { changed: true })
    }

    async fn drive_back(
        &self,
        steps: &[StepSpec],
        targets: &[&StepSpec],
    ) -> Result<Option<Outcome>> {
        let dependents = dependents(steps);
        let mut running: FuturesUnordered<BoxFuture<'_, (&str, Result<(), Problem>)>> =
            FuturesUnordered::new();
        let mut begun: BTreeSet<&str> = BTreeSet::new();
        let mut ended: Option<Outcome> = None;
        self.halt.0.send_replace(false);
        loop {
            if self.cancel.is_cancelled() && ended.is_none() {
                ended = Some(Outcome::Interrupted);
                self.emit(EventKind::Stopping {
                    why: "asked to stop".into(),
                    running: running.len(),
                });
            }
            if ended.is_none() {
                let ready: Vec<&StepSpec> = self.journal.with_state(|state| {
                    let gone = |id: &&str| !state.status(id).is_active();
                    targets
                        .iter()
                        .copied()
                        .filter(|s| !begun.contains(s.id.as_str()))
                        .filter(|s| {
                            dependents
                                .get(s.id.as_str())
                                .is_none_or(|d| d.iter().all(gone))
                        })
                        .take(self.options.parallel - running.len())
                        .collect()
                });
                for spec in ready {
                    begun.insert(&spec.id);
                    running.push(Box::pin(async move {
                        (spec.id.as_str(), self.undo_step(spec).await)
                    }));
                }
            }
            let Some((step, result)) = running.next().await else {
                break;
            };
            if let Err(problem) = result {
                let outcome = self.undo_ended(step, problem)?;
                if ended.is_none() {
                    self.emit(EventKind::Stopping {
                        why: format!("undo of step {step} cannot go on"),
                        running: running.len(),
                    });
                    self.halt.cancel();
                }
                let rank = |o: &Outcome| match o {
                    Outcome::Stuck { .. } => 2,
                    Outcome::Stopped { .. } => 1,
                    _ => 0,
                };
                if ended.as_ref().is_none_or(|e| rank(e) < rank(&outcome)) {
                    ended = Some(outcome);
                }
            }
        }
        if ended.is_none() {
            let state = self.journal.state();
            if let Some(left) = targets.iter().find(|s| state.status(&s.id).is_active()) {
                return Err(
                    Error::new(Kind::Bug, "the undo of a step can never begin").at(&left.id)
                );
            }
        }
        Ok(ended)
    }

    async fn undo_step(&self, spec: &StepSpec) -> Result<(), Problem> {
        let id = spec.id.as_str();
        let began = Instant::now();
        self.emit(EventKind::UndoStarted {
            step: id.into(),
            phase: spec.phase,
            summary: spec.summary.clone(),
        });
        let step = self.build(spec).map_err(|e| Problem::Failed {
            why: e.message,
            remedy: e.remedy,
        })?;
        let cx = self.cx(id);
        let (status, before, after) = self.journal.with_state(|s| match s.steps.get(id) {
            Some(s) => (s.status, s.before.clone(), s.after.clone()),
            None => (Status::Fresh, None, None),
        });
        let before = before.unwrap_or_default();
        if status != Status::UndoIntent {
            self.append(Record::UndoIntent { step: id.into() })?;
        }
        self.persist(id, || step.undo(&cx, &before, after.as_ref()))
            .await?;
        self.wait(id, || step.undone(&cx, &before, after.as_ref()))
            .await?;
        self.append(Record::Undone { step: id.into() })?;
        self.emit(EventKind::Undone {
            step: id.into(),
            took_s: began.elapsed().as_secs_f64(),
        });
        Ok(())
    }

    /// An undo that a repeat can heal stops the run; any other needs a person.
    fn undo_ended(&self, step: &str, problem: Problem) -> Result<Outcome> {
        let (object, expected, found) = match problem {
            Problem::Step(StepError::Changed {
                object,
                expected,
                found,
            }) => (object, expected, found),
            Problem::Step(StepError::Refused {
                object,
                why,
                remedy,
            }) => (object, format!("an undo ({remedy})"), why),
            Problem::Step(StepError::World(e))
                if e.class != crate::world::Class::WrongIdentity
                    && e.class != crate::world::Class::Unauthorized =>
            {
                (e.at, "an undo that the server accepts".into(), e.message)
            }
            Problem::Failed { why, remedy } => (
                format!("step {step}"),
                format!("an undo that takes effect ({remedy})"),
                why,
            ),
            other => return Ok(self.stopped(step, other)?),
        };
        let flag = self.journal.with_state(|s| match s.mode {
            Mode::RollingBack(Some(p)) => format!(" --to {}", p.name()),
            _ => String::new(),
        });
        let stuck = Stuck {
            ways: vec![
                format!(
                    "look at {object}, bring it to what was expected, then: crossfade rollback{flag}"
                ),
                format!(
                    "or leave it as it is: crossfade skip {step} --reason \"...\", then: crossfade rollback{flag}"
                ),
            ],
            object,
            expected,
            found,
        };
        self.append(Record::Stuck {
            step: step.into(),
            object: stuck.object.clone(),
            expected: stuck.expected.clone(),
            found: stuck.found.clone(),
            ways: stuck.ways.clone(),
        })?;
        self.emit(EventKind::Stuck {
            step: step.into(),
            stuck: stuck.clone(),
        });
        Ok(Outcome::Stuck {
            step: step.into(),
            stuck,
        })
    }

    /// Records that a person leaves a stuck undo as it is.
    pub fn skip(&self, step: &str, reason: &str) -> Result<()> {
        let state = self.journal.state();
        if state.steps.get(step).is_none_or(|s| s.stuck.is_none()) {
            let stuck = state.stuck().map(|(id, _)| id.to_string());
            return Err(
                Error::new(Kind::Usage, format!("the undo of step {step} is not stuck"))
                    .at(self.run_id())
                    .remedy(match stuck {
                        Some(id) => format!("stuck is: {id}"),
                        None => "nothing is stuck; only a stuck undo can be skipped".into(),
                    }),
            );
        }
        Ok(self.append(Record::Skipped {
            step: step.into(),
            reason: reason.into(),
            by: self.options.by.clone(),
        })?)
    }
}
