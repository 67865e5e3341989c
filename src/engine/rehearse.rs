//! A rehearsal: the engine drives a twin of the user's own snapshot, there and back, and (with faults) dies and fails everywhere.

use super::{Engine, Events, Options, Outcome, Registry, silent};
use crate::error::{Error, Kind, Result};
use crate::journal::{CrashPoint, Journal};
use crate::plan::model::Plan;
use crate::snapshot::model::Snapshot;
use crate::spec::model::{DataMode, Spec};
use crate::world::observe;
use crate::world::twin::{self, Fault, Twin};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Virtual time after which a wait that does not move is taken for one that never ends.
const STALL: Duration = Duration::from_secs(6 * 3600);

/// What is rehearsed.
pub struct Company<'a> {
    /// Spec.
    pub spec: &'a Spec,
    /// Snapshot the twin is made from.
    pub snapshot: &'a Snapshot,
    /// Plan.
    pub plan: Arc<Plan>,
    /// Step kinds.
    pub registry: Registry,
}

/// How a rehearsal ended.
#[derive(Debug, Serialize)]
pub struct Rehearsal {
    /// Of the way there: `migrated`, `stopped`.
    pub outcome: &'static str,
    /// The way there in full, when it did not end well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Outcome>,
    /// The way back.
    pub rollback: Rollback,
    /// Broken promises; also every difference that the rollback left.
    pub violations: Vec<String>,
    /// Virtual seconds of the way there during which some data set could be written on neither side.
    pub write_closed_s: f64,
    /// Virtual seconds of the way there.
    pub virtual_s: f64,
    /// Milliseconds that both ways took here.
    pub real_ms: u64,
    /// Journal records of both ways.
    pub records: u64,
    /// Calls on the world of both ways.
    pub calls: u64,
    /// Results of the fault sweep, by class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faults: Option<Vec<FaultClass>>,
}

/// The way back.
#[derive(Debug, Serialize)]
pub struct Rollback {
    /// `restored`, `stopped` or `stuck`.
    pub outcome: &'static str,
    /// In full, when it did not end well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Outcome>,
    /// Virtual seconds during which some data set could be written on neither side.
    pub write_closed_s: f64,
    /// Virtual seconds.
    pub virtual_s: f64,
}

/// One class of rehearsed faults.
#[derive(Clone, Debug, Serialize)]
pub struct FaultClass {
    /// What went wrong and what was done then.
    pub class: String,
    /// How many were tried.
    pub cases: usize,
    /// Those that did not end as they must.
    pub failed: Vec<String>,
}

/// End states and sizes of undisturbed ways.
struct Baseline {
    start: Value,
    there: Value,
    forward_records: u64,
    records: u64,
    calls: u64,
    /// Numbers of the calls that write.
    writes: Vec<u64>,
}

impl Company<'_> {
    fn twin(&self) -> Twin {
        Twin::new(self.snapshot, self.spec, twin::Options::default())
    }
    fn engine(&self, twin: &Twin, journal: &Arc<Journal>, events: Events) -> Engine {
        Engine::new(
            twin.world(),
            self.plan.clone(),
            journal.clone(),
            self.registry.clone(),
            events,
        )
        .options(Options {
            by: "rehearsal".into(),
            // The twin was made from the very snapshot; what it adds on its own is no drift.
            check_drift: false,
            stall: Some(STALL),
            ..Options::default()
        })
    }
    async fn state(&self, twin: &Twin) -> Result<Value> {
        let mut zones: BTreeSet<String> = self.plan.basis.zones.values().cloned().collect();
        zones.extend(self.snapshot.zones.iter().map(|z| z.zone.id.clone()));
        let zones: Vec<String> = zones.into_iter().collect();
        let sets: Vec<String> = self
            .spec
            .data
            .iter()
            .filter(|d| d.mode != DataMode::Shared)
            .map(|d| d.name.clone())
            .collect();
        Ok(observe::observable(&twin.world(), &zones, &sets).await?)
    }

    /// There and back, undisturbed.
    pub fn there_and_back(&self, events: Events) -> Result<Rehearsal> {
        paused(self.undisturbed(events))?.map(|(r, _)| r)
    }

    async fn undisturbed(&self, events: Events) -> Result<(Rehearsal, Option<Baseline>)> {
        let real = Instant::now();
        let twin = self.twin();
        let start = self.state(&twin).await?;
        let journal = Arc::new(Journal::memory());
        let (began, first_call) = (twin.elapsed(), twin.call_count());
        let outcome = self
            .engine(&twin, &journal, events.clone())
            .forward(None)
            .await?;
        let virtual_s = (twin.elapsed() - began).as_secs_f64();
        let forward_records = journal.len();
        let calls = twin.call_count() - first_call;
        let writes = twin
            .calls()
            .into_iter()
            .skip(first_call as usize)
            .filter(|c| c.write)
            .map(|c| c.n - first_call)
            .collect();
        let there = self.state(&twin).await?;
        let closed_there = twin.write_closed();
        let began = twin.elapsed();
        let back = self.engine(&twin, &journal, events).rollback(None).await?;
        let back_s = (twin.elapsed() - began).as_secs_f64();
        let all_calls = twin.call_count() - first_call;
        let end = self.state(&twin).await?;
        let mut violations = twin.violations();
        if matches!(back, Outcome::Restored { .. }) {
            violations.extend(
                observe::diff(&start, &end)
                    .into_iter()
                    .map(|d| format!("the rollback left a difference: {d}")),
            );
        }
        let closed_back = twin.write_closed() - closed_there;
        let limit = Duration::from_secs(self.spec.limits.write_closed_seconds.into());
        for (way, closed) in [("there", closed_there), ("back", closed_back)] {
            if closed > limit {
                violations.push(format!(
                    "writes were closed for {} s on the way {way}, the declared window is {} s",
                    closed.as_secs(),
                    limit.as_secs()
                ));
            }
        }
        let bad = |o: &Outcome| {
            (!matches!(o, Outcome::Migrated { .. } | Outcome::Restored { .. })).then(|| o.clone())
        };
        let whole = bad(&outcome).is_none() && bad(&back).is_none() && violations.is_empty();
        let rehearsal = Rehearsal {
            outcome: outcome.name(),
            stopped: bad(&outcome),
            rollback: Rollback {
                outcome: back.name(),
                stopped: bad(&back),
                write_closed_s: closed_back.as_secs_f64(),
                virtual_s: back_s,
            },
            violations,
            write_closed_s: closed_there.as_secs_f64(),
            virtual_s,
            real_ms: real.elapsed().as_millis() as u64,
            records: journal.len(),
            calls: all_calls,
            faults: None,
        };
        let baseline = whole.then_some(Baseline {
            start,
            there,
            forward_records,
            records: journal.len(),
            calls,
            writes,
        });
        Ok((rehearsal, baseline))
    }

    /// There and back, then once more for places where it can go wrong: at most so many of each class, evenly spread over the
    /// journal's records and over the calls. `said` hears about each class when it is through.
    pub fn with_faults(
        &self,
        events: Events,
        records: usize,
        calls: usize,
        said: &(dyn Fn(&FaultClass) + Sync),
    ) -> Result<Rehearsal> {
        let (mut rehearsal, baseline) = paused(self.undisturbed(events))??;
        let Some(baseline) = baseline else {
            // Without a good undisturbed run there is nothing to compare with.
            return Ok(rehearsal);
        };
        let mut classes = vec![];
        for (class, cases) in baseline.classes(records, calls) {
            let failed = self.run_cases(&baseline, &cases);
            let result = FaultClass {
                class,
                cases: cases.len(),
                failed,
            };
            said(&result);
            rehearsal.violations.extend(
                result
                    .failed
                    .iter()
                    .map(|f| format!("{}: {f}", result.class)),
            );
            classes.push(result);
        }
        rehearsal.faults = Some(classes);
        Ok(rehearsal)
    }

    /// Runs cases on all processors, each in a world of its own.
    fn run_cases(&self, baseline: &Baseline, cases: &[Case]) -> Vec<String> {
        let next = AtomicUsize::new(0);
        let failed = Mutex::new(vec![]);
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let result = paused(self.case(baseline, *case)).and_then(|r| r);
                        let why = match result {
                            Ok(None) => continue,
                            Ok(Some(why)) => why,
                            Err(e) => e.to_string(),
                        };
                        failed
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push((*case, format!("{}: {why}", case.at())));
                    }
                });
            }
        });
        let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        failed.sort_by_key(|(case, _)| (case.n, case.back));
        failed.into_iter().map(|(_, why)| why).collect()
    }

    /// One fault, then resume or roll back; what is wrong with the end.
    async fn case(&self, baseline: &Baseline, case: Case) -> Result<Option<String>> {
        let twin = self.twin();
        // The same first look as in the undisturbed run, so that calls and times have the same numbers.
        self.state(&twin).await?;
        let first_call = twin.call_count();
        let mut journal = Arc::new(Journal::memory());
        match case.fault {
            At::Record(point) => {
                journal.crash_after(case.n, point);
                let died = self.engine(&twin, &journal, silent()).forward(None).await;
                let died = if case.n > baseline.forward_records && died.is_ok() {
                    self.engine(&twin, &journal, silent()).rollback(None).await
                } else {
                    died
                };
                if let Ok(outcome) = died {
                    return Ok(Some(format!("did not die, but {}", outcome.name())));
                }
            }
            At::Call(fault @ (Fault::HangBefore | Fault::HangAfter)) => {
                twin.fail_call(first_call + case.n, fault);
                let engine = self.engine(&twin, &journal, silent());
                tokio::select! {
                    outcome = engine.forward(None) => {
                        return Ok(Some(format!("was not killed, but {}", outcome?.name())));
                    }
                    () = twin.hung() => {}
                }
            }
            At::Call(fault) => {
                twin.fail_call(first_call + case.n, fault);
                // A refusal may stop the run: that is no failure, the next process goes on.
                let _ = self.engine(&twin, &journal, silent()).forward(None).await;
            }
        }
        twin.clear_faults();
        journal = Arc::new(Journal::restart(journal.entries())?);
        let engine = self.engine(&twin, &journal, silent());
        let (outcome, wanted, goal) = if case.back {
            (engine.rollback(None).await?, "restored", &baseline.start)
        } else {
            (engine.forward(None).await?, "migrated", &baseline.there)
        };
        if outcome.name() != wanted {
            return Ok(Some(format!(
                "{} instead of {wanted}: {}",
                outcome.name(),
                serde_json::to_string(&outcome).unwrap_or_default()
            )));
        }
        let mut wrong = observe::diff(goal, &self.state(&twin).await?);
        wrong.extend(twin.violations());
        Ok((!wrong.is_empty()).then(|| {
            let more = wrong.len().saturating_sub(3);
            wrong.truncate(3);
            let tail = if more > 0 {
                format!(" (and {more} more)")
            } else {
                String::new()
            };
            wrong.join("; ") + &tail
        }))
    }
}

/// Where a fault hits.
#[derive(Clone, Copy, Debug)]
enum At {
    Record(CrashPoint),
    Call(Fault),
}

/// One fault and what is done then.
#[derive(Clone, Copy, Debug)]
struct Case {
    fault: At,
    n: u64,
    back: bool,
}

impl Case {
    fn at(&self) -> String {
        match self.fault {
            At::Record(_) => format!("record {}", self.n),
            At::Call(_) => format!("call {}", self.n),
        }
    }
}

impl Baseline {
    fn classes(&self, how_many: usize, how_many_calls: usize) -> Vec<(String, Vec<Case>)> {
        let mut classes = vec![];
        let records = |from: u64, to: u64, point, back| -> Vec<Case> {
            let all: Vec<u64> = (from..to).collect();
            sample(&all, how_many)
                .map(|n| Case {
                    fault: At::Record(point),
                    n,
                    back,
                })
                .collect()
        };
        let points = [
            (CrashPoint::AfterRecord, "before the effect"),
            (CrashPoint::BeforeNext, "after the effect"),
        ];
        for (point, when) in points {
            for (back, then) in [(false, "resume"), (true, "roll back")] {
                classes.push((
                    format!("killed at a journal record, {when}; then {then}"),
                    records(1, self.forward_records, point, back),
                ));
            }
            classes.push((
                format!("killed at a journal record of the rollback, {when}; then rollback again"),
                records(self.forward_records + 1, self.records, point, true),
            ));
        }
        let all: Vec<u64> = (0..self.calls).collect();
        let faults = [
            (
                Fault::HangBefore,
                "killed before a write reaches the server",
                &self.writes,
            ),
            (
                Fault::HangAfter,
                "killed before the answer of a write arrives",
                &self.writes,
            ),
            (
                Fault::LostReply,
                "the answer of a write is lost",
                &self.writes,
            ),
            (Fault::NoConnection, "a call finds no connection", &all),
            (Fault::Throttle, "a call is throttled", &all),
            (Fault::Error, "a call is refused", &all),
        ];
        for (fault, what, calls) in faults {
            for (back, then) in [(false, "resume"), (true, "roll back")] {
                let cases = sample(calls, how_many_calls)
                    .map(|n| Case {
                        fault: At::Call(fault),
                        n,
                        back,
                    })
                    .collect();
                classes.push((format!("{what}; then {then}"), cases));
            }
        }
        classes
    }
}

fn sample(all: &[u64], how_many: usize) -> impl Iterator<Item = u64> {
    let step = all.len().div_ceil(how_many.max(1)).max(1);
    all.iter().copied().step_by(step)
}

/// Runs on a runtime whose clock is paused: waits cost nothing.
fn paused<T>(what: impl Future<Output = T>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|e| Error::new(Kind::Bug, format!("no runtime: {e}")))?;
    Ok(runtime.block_on(what))
}
