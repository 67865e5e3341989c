//! The engine: runs the steps of a plan forwards and back, as the journal says.
//!
//! Steps form a graph and up to [`Options::parallel`] of them run at once, all in one task: when the journal dies, everything stops at
//! that moment. Nothing here knows what a step does or which world it drives; time is tokio's, so a rehearsal pauses it.

pub mod decommission;
mod events;
pub mod finalize;
mod graph;
mod pins;
pub mod rehearse;
mod run;
mod undo;

#[cfg(test)]
mod pins_tests;
#[cfg(test)]
mod sweep_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod toy;

pub use events::{Event, EventKind, Events, silent};
pub(crate) use graph::waiting_for;
pub use graph::{check_plan, steps_of, steps_to};
pub use pins::{drift, verify_pins};
pub use run::{LookHook, Moment};
pub use undo::{UndoPreview, undo_preview};

use crate::error::{Error, Kind, Result};
use crate::journal::{Journal, JournalError, Mode, Record, State, Status, Stuck};
use crate::object::sha256_hex;
use crate::plan::model::{Phase, Plan, StepSpec};
use crate::step::{Cx, Factory, Step, StepError, StepLog};
use crate::world::{self, Class, Clock, World};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// For how long a throttled call is repeated.
const THROTTLED: Duration = Duration::from_secs(300);
/// Longest pause before a repeat of something that is known to pass.
const PATIENT_PAUSE: Duration = Duration::from_secs(15);

/// Makes steps, by kind.
pub type Registry = BTreeMap<&'static str, Factory>;

/// How the engine works.
#[derive(Clone, Debug)]
pub struct Options {
    /// Steps at once, at least 1.
    pub parallel: usize,
    /// Tries of one call before the run stops (resumable).
    pub attempts: u32,
    /// Pause before the first repeat; doubles each time, up to a minute.
    pub backoff: Duration,
    /// Run id of a new run; made from the plan when absent.
    pub run: Option<String>,
    /// Who runs it, for the journal.
    pub by: String,
    /// A wait that says the same for this long ends the run (resumable). For rehearsals, where nobody would ever look; `None` waits on.
    pub stall: Option<Duration>,
    /// Whether a new run first compares the world with what the plan was made from.
    pub check_drift: bool,
    /// Looks at what changed on blue: when a run begins, and before the first step of the freeze.
    pub look: Option<LookHook>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            parallel: 8,
            attempts: 8,
            backoff: Duration::from_secs(1),
            run: None,
            by: "unknown".into(),
            stall: None,
            check_drift: true,
            look: None,
        }
    }
}

/// How a run (or a rollback) ended, when the journal itself worked.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// Every step that was asked for is done. `changed` is false when there was nothing to do.
    Migrated {
        /// Whether anything was done by this process.
        changed: bool,
        /// Whether that is the whole plan.
        complete: bool,
    },
    /// Back where it should be. `changed` is false when there was nothing to undo.
    Restored {
        /// Whether anything was undone by this process.
        changed: bool,
    },
    /// A step cannot go on. Run again after the reason is gone, or roll back.
    Stopped {
        /// Step.
        step: String,
        /// Object, record, resource; may be empty.
        object: String,
        /// Why.
        why: String,
        /// What to do.
        remedy: String,
        /// Class, which decides the exit code.
        kind: Kind,
    },
    /// Asked to stop, stopped at a safe point.
    Interrupted,
    /// An undo needs a person.
    Stuck {
        /// Step.
        step: String,
        /// What is the matter.
        #[serde(flatten)]
        stuck: Stuck,
    },
}

impl Outcome {
    /// Exit code of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            Outcome::Migrated { .. } | Outcome::Restored { .. } => 0,
            Outcome::Stopped { kind, .. } => kind.exit_code(),
            Outcome::Interrupted => Kind::Interrupted.exit_code(),
            Outcome::Stuck { .. } => Kind::Stuck.exit_code(),
        }
    }
    /// `migrated`, `restored`, `stopped`, `interrupted` or `stuck`.
    pub fn name(&self) -> &'static str {
        match self {
            Outcome::Migrated { .. } => "migrated",
            Outcome::Restored { .. } => "restored",
            Outcome::Stopped { .. } => "stopped",
            Outcome::Interrupted => "interrupted",
            Outcome::Stuck { .. } => "stuck",
        }
    }
}

/// Asks an engine to stop at the next safe point: no new steps, calls under way end, waits are abandoned (they can be resumed).
#[derive(Clone)]
pub struct Cancel(Arc<watch::Sender<bool>>);

impl Default for Cancel {
    fn default() -> Self {
        Cancel(Arc::new(watch::Sender::new(false)))
    }
}

impl Cancel {
    /// Asks.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }
    /// Whether somebody asked.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }
    async fn cancelled(&self) {
        // The sender lives as long as `self`, so this only ends when somebody asked.
        let _ = self.0.subscribe().wait_for(|c| *c).await;
    }
}

/// Runs a plan.
pub struct Engine {
    world: World,
    plan: Arc<Plan>,
    journal: Arc<Journal>,
    registry: Registry,
    events: Events,
    options: Options,
    cancel: Cancel,
    /// Like `cancel`, raised by the engine itself when a step cannot go on.
    halt: Cancel,
    outputs: Arc<RwLock<BTreeMap<String, Value>>>,
}

/// Why a step (or its undo) did not end well.
enum Problem {
    /// The journal failed: everything stops, nothing can be recorded.
    Journal(JournalError),
    /// Asked to stop while waiting.
    Cancelled,
    /// A call failed too often: so many times.
    Exhausted(world::Error, u32),
    /// The step says no.
    Step(StepError),
    /// `settle` says it will not come.
    Failed { why: String, remedy: String },
}

impl From<JournalError> for Problem {
    fn from(e: JournalError) -> Self {
        Problem::Journal(e)
    }
}

/// Id of the run that a plan begins when nobody gives another.
pub fn run_id_of(plan: &Plan) -> String {
    let digest: String = plan.digest.chars().take(6).collect();
    format!("{}-{digest}", plan.spec.name)
}

impl Engine {
    /// A new engine. Nothing happens before [`Engine::forward`] or [`Engine::rollback`].
    pub fn new(
        world: World,
        plan: Arc<Plan>,
        journal: Arc<Journal>,
        registry: Registry,
        events: Events,
    ) -> Self {
        let outputs = journal.with_state(|s| {
            let back = matches!(s.mode, Mode::RollingBack(_));
            s.steps
                .iter()
                // On the way back also what the steps that are undone already had given: those that are undone after them reckon with it (how
                // long caches keep what the handovers wrote), in this process as in the one that died.
                .filter(|(_, step)| {
                    step.status.is_active() || (back && step.status == Status::Undone)
                })
                .filter_map(|(id, step)| Some((id.clone(), step.after.clone()?)))
                .collect()
        });
        Engine {
            world,
            plan,
            journal,
            registry,
            events,
            options: Options::default(),
            cancel: Cancel::default(),
            halt: Cancel::default(),
            outputs: Arc::new(RwLock::new(outputs)),
        }
    }
    /// Other options.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }
    /// The world that it drives.
    pub fn world(&self) -> &World {
        &self.world
    }
    /// The plan that it runs.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
    /// What the records add up to.
    pub fn state(&self) -> State {
        self.journal.state()
    }
    /// What a look needs that outlives a call.
    pub fn parts(&self) -> (World, Arc<Plan>, Arc<Journal>) {
        (self.world.clone(), self.plan.clone(), self.journal.clone())
    }
    /// The flag that stops it.
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }
    /// Run id: that of the journal, else the one that a new run will get.
    pub fn run_id(&self) -> String {
        self.journal
            .with_state(|s| s.run.as_ref().map(|r| r.run.clone()))
            .or_else(|| self.options.run.clone())
            .unwrap_or_else(|| run_id_of(&self.plan))
    }

    /// Sleeps; `false` when it was cut short.
    async fn sleep(&self, time: Duration) -> bool {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => false,
            () = self.halt.cancelled() => false,
            () = tokio::time::sleep(time) => true,
        }
    }
    fn append(&self, record: Record) -> std::result::Result<(), JournalError> {
        self.journal.append(self.world.clock.now(), record)
    }
    fn emit(&self, kind: EventKind) {
        (self.events)(&Event {
            at: self.world.clock.now(),
            kind,
        });
    }
    /// Journal and plan must belong together, and every step must be known to this version.
    fn check_plan(&self) -> Result<()> {
        self.journal.with_state(|s| match &s.run {
            Some(r) if r.plan_digest != self.plan.digest => Err(Error::new(
                Kind::StalePlan,
                format!(
                    "run {} was begun with another plan (digest {})",
                    r.run, r.plan_digest
                ),
            )
            .at("plan.json")
            .remedy("put that plan back, or roll the run back with it before a new plan is run")),
            _ => Ok(()),
        })?;
        graph::check_steps(&self.steps(), &self.registry)
    }
    /// The steps of the run as the journal knows them.
    fn steps(&self) -> Vec<StepSpec> {
        self.journal.with_state(|s| graph::steps_of(&self.plan, s))
    }
    fn build(&self, spec: &StepSpec) -> Result<Box<dyn Step>> {
        let make = self.registry.get(spec.kind.as_str()).ok_or_else(|| {
            Error::new(Kind::Bug, format!("no step kind {}", spec.kind)).at(&spec.id)
        })?;
        make(&spec.params).map_err(|e| Error::new(Kind::BadInput, e).at(&spec.id))
    }
    fn cx(&self, step: &str) -> Cx {
        Cx {
            world: self.world.clone(),
            plan: self.plan.clone(),
            run: self.run_id(),
            step: step.into(),
            log: Arc::new(Log {
                journal: self.journal.clone(),
                clock: self.world.clock.clone(),
            }),
            outputs: self.outputs.clone(),
            // As of now: an extension whose root was undone a moment ago says nothing any more.
            extra: self.journal.with_state(|s| {
                let verdicts = s.extensions().flat_map(|e| &e.verdicts);
                Arc::new(verdicts.map(|v| (v.object.clone(), v.clone())).collect())
            }),
        }
    }
    fn set_output(&self, step: &str, after: Value) {
        self.outputs
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(step.into(), after);
    }

    /// Calls something of a step until it answers, with growing pauses while the failure may pass: [`Options::attempts`] times, or for
    /// as long as the failure is known to take. Each failed try is one line of the journal.
    async fn persist<T, F>(&self, step: &str, mut call: impl FnMut() -> F) -> Result<T, Problem>
    where
        F: Future<Output = std::result::Result<T, StepError>>,
    {
        let mut attempt = 0;
        let mut first_failure = None;
        loop {
            let error = match call().await {
                Ok(answer) => return Ok(answer),
                Err(StepError::World(e)) if e.is_transient() => e,
                Err(StepError::Journal(_)) => return Err(JournalError::Dead.into()),
                Err(e) => return Err(Problem::Step(e)),
            };
            attempt += 1;
            let since = *first_failure.get_or_insert_with(Instant::now);
            let patience = match error.class {
                // A bucket that others empty too fills again (rust.md 0.8): no reason to end a run.
                Class::Throttled => error.patience.max(Some(THROTTLED)),
                _ => error.patience,
            };
            let patient = patience.is_some_and(|p| since.elapsed() < p);
            if attempt >= self.options.attempts && !patient {
                return Err(Problem::Exhausted(error, attempt));
            }
            let mut pause = backoff(self.options.backoff, &self.plan.digest, step, attempt);
            if error.patience.is_some() {
                // It passes at some moment: not a minute too late.
                pause = pause.min(PATIENT_PAUSE);
            }
            // A server that says when to come back knows better.
            let pause = pause.max(error.retry_after.unwrap_or_default());
            self.append(Record::Attempt {
                step: step.into(),
                error: error.to_string(),
                retry_in_s: (pause.as_secs_f64() * 1000.0).round() / 1000.0,
            })?;
            self.emit(EventKind::Retrying {
                step: step.into(),
                error: error.to_string(),
                attempt,
                retry_in_s: pause.as_secs_f64(),
            });
            if !self.sleep(pause).await {
                return Err(Problem::Cancelled);
            }
        }
    }

    /// Turns a problem into an outcome. The step is told apart from the journal, which ends everything.
    fn stopped(&self, step: &str, problem: Problem) -> Result<Outcome, JournalError> {
        let (object, why, remedy, kind) = match problem {
            Problem::Journal(e) => return Err(e),
            Problem::Cancelled => return Ok(Outcome::Interrupted),
            Problem::Exhausted(e, times) => (
                e.at,
                format!("{} (tried {times} times)", e.message),
                e.remedy,
                Kind::Unreachable,
            ),
            Problem::Failed { why, remedy } => (String::new(), why, remedy, Kind::Stuck),
            Problem::Step(StepError::World(e)) => {
                let e = Error::from(e);
                (e.at, e.message, e.remedy, e.kind)
            }
            Problem::Step(StepError::Refused {
                object,
                why,
                remedy,
            }) => (object, why, remedy, Kind::Stuck),
            Problem::Step(StepError::Changed {
                object,
                expected,
                found,
            }) => (
                object,
                format!("changed by somebody else: expected {expected}, found {found}"),
                "make it what the plan expects, or plan again".into(),
                Kind::Stuck,
            ),
            Problem::Step(StepError::Journal(_)) => return Err(JournalError::Dead),
        };
        let said = if object.is_empty() {
            why.clone()
        } else {
            format!("{object}: {why}")
        };
        self.append(Record::Failed {
            step: step.into(),
            why: said.clone(),
        })?;
        self.emit(EventKind::StepFailed {
            step: step.into(),
            why: said,
            remedy: remedy.clone(),
        });
        Ok(Outcome::Stopped {
            step: step.into(),
            object,
            why,
            remedy,
            kind,
        })
    }
}

/// Pause before the next try: doubling, at most a minute, between 50 and 100 % of that by a hash, so that it is the same in every rehearsal.
fn backoff(base: Duration, seed: &str, step: &str, attempt: u32) -> Duration {
    let full = base
        .saturating_mul(1 << (attempt - 1).min(16))
        .min(Duration::from_secs(60));
    let hash = sha256_hex(format!("{seed}/{step}/{attempt}"));
    let byte = u8::from_str_radix(&hash[..2], 16).unwrap_or(0);
    full.mul_f64(0.5 + f64::from(byte) / 512.0)
}

/// Journal access for steps.
struct Log {
    journal: Arc<Journal>,
    clock: Arc<dyn Clock>,
}

impl StepLog for Log {
    fn progress(&self, step: &str, data: Value) -> std::result::Result<(), String> {
        self.journal
            .append(
                self.clock.now(),
                Record::Progress {
                    step: step.into(),
                    data,
                },
            )
            .map_err(|e| e.to_string())
    }
    fn waits_for_disk(&self) -> bool {
        self.journal.is_on_disk()
    }
    fn recorded(&self, step: &str) -> Vec<Value> {
        self.journal.with_state(|s| {
            s.steps
                .get(step)
                .into_iter()
                .flat_map(|s| &s.progress)
                .filter_map(|text| serde_json::from_str(text).ok())
                .collect()
        })
    }
}

/// Steps of a phase and before, or all.
fn within(to: Option<Phase>) -> impl Fn(&StepSpec) -> bool {
    move |s| to.is_none_or(|to| s.phase <= to)
}
