//! Forwards.

use super::graph::steps_to;
use super::{Engine, EventKind, Outcome, Problem};
use crate::error::{Error, Kind, Result};
use crate::journal::{Extension, Mode, Record, State, Status};
use crate::plan::model::{Phase, StepSpec};
use crate::step::Settle;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// When a look is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A run begins; nothing was written yet.
    Begin,
    /// All is done that comes before the freeze.
    BeforeFreeze,
}

type LookFn = dyn Fn(Moment) -> BoxFuture<'static, Result<Option<Outcome>>> + Send + Sync;

/// A look at what changed on blue; an outcome stops the run there.
#[derive(Clone)]
pub struct LookHook(pub Arc<LookFn>);

impl std::fmt::Debug for LookHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LookHook(..)")
    }
}

impl Engine {
    /// Runs all steps up to a phase (and whatever those need), going on where an earlier process stopped.
    pub async fn forward(&self, to: Option<Phase>) -> Result<Outcome> {
        self.check_plan()?;
        let state = self.journal.state();
        self.goes_forwards(&state)?;
        let steps = self.steps();
        let targets = steps_to(&steps, to);
        let done = |state: &crate::journal::State| {
            targets
                .iter()
                .filter(|s| state.status(&s.id) == Status::Done)
                .count()
        };
        let complete = targets.len() == steps.len();
        let already = done(&state);
        let unfinished = complete && !state.done;
        if already == targets.len() && !unfinished {
            return Ok(Outcome::Migrated {
                changed: false,
                complete,
            });
        }
        // Every process proves where it is before it writes; a new run also that nothing moved since the plan was made.
        super::verify_pins(&self.world, &self.plan.basis).await?;
        let resumed = state.run.is_some();
        if resumed {
            self.append(Record::Resumed {
                crossfade_version: env!("CARGO_PKG_VERSION").into(),
                by: self.options.by.clone(),
            })?;
        } else {
            if self.options.check_drift {
                let drift = super::drift(&self.world, &self.plan).await?;
                if !drift.is_empty() {
                    return Err(Error::new(
                        Kind::StalePlan,
                        format!(
                            "the world is not what this plan was made from:\n  {}",
                            drift.join("\n  ")
                        ),
                    )
                    .at("plan.json")
                    .remedy("run `crossfade discover` and `crossfade plan` again, then review the new plan"));
                }
            }
            if let Some(look) = &self.options.look
                && let Some(outcome) = (look.0)(Moment::Begin).await?
            {
                return Ok(outcome);
            }
            self.append(Record::RunStarted {
                run: self.run_id(),
                plan_digest: self.plan.digest.clone(),
                crossfade_version: env!("CARGO_PKG_VERSION").into(),
            })?;
        }
        self.emit(EventKind::Started {
            run: self.run_id(),
            resumed,
            steps: targets.len(),
            done: already,
        });

        if let Some(outcome) = self.drive_to_the_end(&targets).await? {
            let why = match &outcome {
                Outcome::Stopped { step, why, .. } => format!("step {step}: {why}"),
                _ => "asked to stop".into(),
            };
            self.append(Record::Stopped { why })?;
            return Ok(outcome);
        }
        if complete {
            self.append(Record::RunDone)?;
            self.emit(EventKind::RunDone { run: self.run_id() });
        }
        Ok(Outcome::Migrated {
            changed: true,
            complete,
        })
    }

    /// No way forwards while a rollback is not finished.
    fn goes_forwards(&self, state: &State) -> Result<()> {
        let Mode::RollingBack(back) = state.mode else {
            return Ok(());
        };
        let flag = back.map_or(String::new(), |p| format!(" --to {}", p.name()));
        let kind = if state.stuck().is_some() {
            Kind::Stuck
        } else {
            Kind::Interrupted
        };
        Err(Error::new(
            kind,
            format!(
                "a rollback to {} is not finished",
                back.map_or("the start", Phase::name)
            ),
        )
        .at(self.run_id())
        .remedy(format!("finish it first: crossfade rollback{flag}")))
    }

    /// Adds steps to a run (none: goes on with those that an earlier process added) and runs those of them that are due: the others wait for
    /// `migrate`, with the steps of the plan in whose phase they stand.
    pub async fn bring(&self, extension: Option<Extension>) -> Result<Outcome> {
        self.check_plan()?;
        let state = self.journal.state();
        self.goes_forwards(&state)?;
        if extension.is_none() && self.due(&state, &self.steps()).is_empty() {
            return Ok(Outcome::Migrated {
                changed: false,
                complete: false,
            });
        }
        super::verify_pins(&self.world, &self.plan.basis).await?;
        self.append(Record::Resumed {
            crossfade_version: env!("CARGO_PKG_VERSION").into(),
            by: self.options.by.clone(),
        })?;
        if let Some(extension) = extension {
            self.append(Record::Extended { extension })?;
            self.check_plan()?;
        }
        let steps = self.steps();
        let targets = self.due(&self.journal.state(), &steps);
        self.emit(EventKind::Started {
            run: self.run_id(),
            resumed: true,
            steps: targets.len(),
            done: 0,
        });
        if let Some(outcome) = self.drive(&targets).await? {
            let why = match &outcome {
                Outcome::Stopped { step, why, .. } => format!("step {step}: {why}"),
                _ => "asked to stop".into(),
            };
            self.append(Record::Stopped { why })?;
            return Ok(outcome);
        }
        Ok(Outcome::Migrated {
            changed: true,
            complete: false,
        })
    }

    /// Added steps that are not done, as far as the run has come: those of the replay, and those of phases whose own steps are all done.
    fn due<'s>(&self, state: &State, steps: &'s [StepSpec]) -> Vec<&'s StepSpec> {
        let added: BTreeSet<&str> = state
            .extensions()
            .flat_map(|e| &e.steps)
            .map(|s| s.id.as_str())
            .collect();
        let reached = |phase: Phase| {
            let mut own = self.plan.steps.iter().filter(|s| s.phase == phase);
            phase == Phase::Replay || own.all(|s| state.status(&s.id) == Status::Done)
        };
        let mut due: Vec<&StepSpec> = vec![];
        for step in steps {
            // What it needs must be done or due itself.
            let ready = step
                .needs
                .iter()
                .all(|n| state.status(n) == Status::Done || due.iter().any(|d| d.id == *n));
            if added.contains(step.id.as_str())
                && state.status(&step.id) != Status::Done
                && reached(step.phase)
                && ready
            {
                due.push(step);
            }
        }
        due
    }

    /// All steps, with a last look before the freeze begins: from then on blue stands still and every minute counts.
    async fn drive_to_the_end(&self, targets: &[&StepSpec]) -> Result<Option<Outcome>> {
        let begun = |s: &StepSpec| {
            let active = |state: &State| state.status(&s.id).is_active();
            s.phase >= Phase::Freeze && s.kind != "data.stream" && self.journal.with_state(active)
        };
        if let Some(look) = &self.options.look
            && targets.iter().any(|s| s.phase == Phase::Freeze)
            && !targets.iter().any(|s| begun(s))
        {
            let first: Vec<StepSpec> = targets.iter().map(|s| (*s).clone()).collect();
            let first = steps_to(&first, Some(Phase::Unpark));
            if let Some(outcome) = self.drive(&first).await? {
                return Ok(Some(outcome));
            }
            if let Some(outcome) = (look.0)(Moment::BeforeFreeze).await? {
                return Ok(Some(outcome));
            }
        }
        self.drive(targets).await
    }

    /// Runs steps as the graph allows; an outcome when they could not all be done.
    async fn drive(&self, targets: &[&StepSpec]) -> Result<Option<Outcome>> {
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
                    let done = |id: &str| state.status(id) == Status::Done;
                    targets
                        .iter()
                        .copied()
                        .filter(|s| !begun.contains(s.id.as_str()) && !done(&s.id))
                        .filter(|s| s.needs.iter().all(|n| done(n)))
                        .take(self.options.parallel - running.len())
                        .collect()
                });
                for spec in ready {
                    begun.insert(&spec.id);
                    running.push(Box::pin(async move {
                        (spec.id.as_str(), self.run_step(spec).await)
                    }));
                }
            }
            let Some((step, result)) = running.next().await else {
                break;
            };
            if let Err(problem) = result {
                // A dead journal drops everything that still runs, at once: what cannot be recorded must not happen.
                let outcome = self.stopped(step, problem)?;
                if ended.is_none() {
                    self.emit(EventKind::Stopping {
                        why: match &outcome {
                            Outcome::Stopped { why, .. } => format!("step {step}: {why}"),
                            _ => "asked to stop".into(),
                        },
                        running: running.len(),
                    });
                    // Calls under way end; waits, however long, are left to the next process.
                    self.halt.cancel();
                }
                // What a person must look at outranks that we were asked to stop.
                if !matches!(ended, Some(Outcome::Stopped { .. })) {
                    ended = Some(outcome);
                }
            }
        }
        if ended.is_none() {
            let state = self.journal.state();
            if let Some(left) = targets.iter().find(|s| state.status(&s.id) != Status::Done) {
                return Err(Error::new(Kind::Bug, "a step can never begin").at(&left.id));
            }
        }
        Ok(ended)
    }

    /// One step: observe, intent, apply, applied, settle, done; from wherever the journal says it is.
    async fn run_step(&self, spec: &StepSpec) -> Result<(), Problem> {
        let id = spec.id.as_str();
        let began = Instant::now();
        self.emit(EventKind::StepStarted {
            step: id.into(),
            phase: spec.phase,
            summary: spec.summary.clone(),
            expect_s: spec.expect_s,
        });
        let step = self.build(spec).map_err(|e| Problem::Failed {
            why: e.message,
            remedy: e.remedy,
        })?;
        let cx = self.cx(id);
        let (status, recorded, applied, failed) =
            self.journal.with_state(|s| match s.steps.get(id) {
                Some(s) => (
                    s.status,
                    s.before.clone(),
                    s.after.clone(),
                    s.failed.is_some(),
                ),
                None => (Status::Fresh, None, None, false),
            });
        let before = match (status, recorded) {
            (Status::Intent | Status::Applied, Some(before)) => before,
            _ => {
                let before = self.persist(id, || step.observe(&cx)).await?;
                self.append(Record::Intent {
                    step: id.into(),
                    before: before.clone(),
                })?;
                before
            }
        };
        let after = match (status, applied) {
            // What is recorded as applied is not applied again, unless it could not settle: then somebody did something about it.
            (Status::Applied, Some(after)) if !failed => after,
            _ => {
                let after = self.persist(id, || step.apply(&cx, &before)).await?;
                self.append(Record::Applied {
                    step: id.into(),
                    after: after.clone(),
                })?;
                after
            }
        };
        self.set_output(id, after.clone());
        self.wait(id, || step.settle(&cx, &before, &after)).await?;
        self.append(Record::Done { step: id.into() })?;
        self.emit(EventKind::StepDone {
            step: id.into(),
            took_s: began.elapsed().as_secs_f64(),
        });
        Ok(())
    }

    /// Polls until the world shows what it should.
    pub(super) async fn wait<F>(&self, id: &str, mut look: impl FnMut() -> F) -> Result<(), Problem>
    where
        F: Future<Output = crate::step::StepResult<Settle>>,
    {
        let mut said = String::new();
        let mut since = Instant::now();
        loop {
            match self.persist(id, &mut look).await? {
                Settle::Ready => return Ok(()),
                Settle::Failed { why, remedy } => return Err(Problem::Failed { why, remedy }),
                Settle::Pending { why, poll } => {
                    if why != said {
                        self.emit(EventKind::Waiting {
                            step: id.into(),
                            why: why.clone(),
                            poll_s: poll.as_secs_f64(),
                        });
                        said = why;
                        since = Instant::now();
                    }
                    let waited = since.elapsed();
                    if let Some(limit) = self.options.stall
                        && waited >= limit
                    {
                        return Err(Problem::Failed {
                            why: format!(
                                "nothing changes: for {} minutes it waits for {said}",
                                waited.as_secs() / 60
                            ),
                            remedy: "find what it waits for; the world would wait for ever".into(),
                        });
                    }
                    // Long waits are asked about less often: a twentieth of the time waited so far, half a minute at most.
                    let poll = poll.max((waited / 20).min(Duration::from_secs(30)));
                    if !self.sleep(poll).await {
                        return Err(Problem::Cancelled);
                    }
                }
            }
        }
    }
}
