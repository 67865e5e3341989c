//! The steps by which a run brings what a look found. They are steps like those of the plan: journaled, resumable, undone in reverse.

use super::Op;
use super::report::{Change, Entry, Report};
use crate::engine::waiting_for;
use crate::journal::{Extension, State};
use crate::plan::model::{Phase, Plan, Promise, StepSpec, Verdict};
use crate::plan::{is_last, is_merged, wave_of};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What would be written, as an extension of the run; `None` when nothing would.
pub fn extension(plan: &Plan, state: &State, report: &Report, prune: bool) -> Option<Extension> {
    let entries = report.to_write(prune);
    if entries.is_empty() {
        return None;
    }
    let n = state.extensions.len() + 1;
    let mut b = Builder {
        plan,
        n,
        steps: vec![],
    };
    let root = b.root(&entries);
    let new: Vec<&Verdict> = entries
        .iter()
        .filter(|e| e.change == Change::New)
        .filter_map(|e| e.verdict.as_ref())
        .collect();
    let made = b.create(&new, &root);
    b.wake(&new, &made);
    let mut before = BTreeMap::new();
    for step in &b.steps {
        let waiting = waiting_for(plan, state, step);
        if !waiting.is_empty() {
            before.insert(step.id.clone(), waiting);
        }
    }
    let mut verdicts: Vec<Verdict> = entries
        .iter()
        .filter_map(|e| Some((*e, e.verdict.clone()?)))
        .map(|(e, mut v)| {
            v.target = written(plan, state, e).or(v.target);
            v.target = v.target.map(crate::plan::without_values);
            v
        })
        .collect();
    verdicts.sort_by(|a, b| a.object.cmp(&b.object));
    Some(Extension {
        steps: b.steps,
        before,
        verdicts,
    })
}

/// What the run has written of an object once the fields of this look are brought: a field that both sides changed was not, so
/// that it stays a conflict until somebody decides. `None` for what is new, and for Secrets, whose values nobody keeps.
fn written(plan: &Plan, state: &State, entry: &Entry) -> Option<Value> {
    let ops = entry.ops();
    if entry.change == Change::New || ops.is_empty() || entry.object.starts_with("secret/") {
        return None;
    }
    let later = state
        .extensions()
        .flat_map(|e| &e.verdicts)
        .filter(|v| v.object == entry.object)
        .last();
    let mut base = match later {
        Some(v) => v.target.clone(),
        None => plan.verdicts.get(&entry.object).ok()??.target.clone(),
    }?;
    super::apply_ops(&mut base, &ops);
    Some(base)
}

struct Builder<'a> {
    plan: &'a Plan,
    n: usize,
    steps: Vec<StepSpec>,
}

fn kind(v: &Verdict) -> &str {
    let target = v.target.as_ref();
    target.and_then(|t| t["kind"].as_str()).unwrap_or("")
}

/// What is created when the workloads run: webhooks, and bare pods, which cannot be parked (rule 45).
fn with_the_last(v: &Verdict) -> bool {
    is_last(kind(v)) || kind(v) == "Pod"
}

fn people(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

impl Builder<'_> {
    #[allow(clippy::too_many_arguments)]
    fn add(
        &mut self,
        id: String,
        phase: Phase,
        kind: &str,
        needs: Vec<String>,
        promise: Promise,
        summary: String,
        params: Value,
    ) -> String {
        let objects = params["objects"].as_array().map_or(0, Vec::len) as u32;
        self.steps.push(StepSpec {
            id: id.clone(),
            phase,
            kind: kind.into(),
            needs,
            promise,
            summary,
            params,
            expect_s: [1, 30 + objects / 5],
        });
        id
    }
    /// Ids of the plan's steps of some phases.
    fn of_phases(&self, phases: impl Fn(Phase) -> bool) -> Vec<String> {
        self.plan
            .steps
            .iter()
            .filter(|s| phases(s.phase))
            .map(|s| s.id.clone())
            .collect()
    }

    /// Changes of fields and deletions.
    fn root(&mut self, entries: &[&Entry]) -> String {
        let changes: Vec<(&Entry, Vec<Op>)> = entries
            .iter()
            .map(|e| (*e, e.ops()))
            .filter(|(_, ops)| !ops.is_empty())
            .collect();
        let prune: BTreeMap<&str, &str> = entries
            .iter()
            .filter(|e| e.prunable)
            .map(|e| (e.object.as_str(), e.uid.as_str()))
            .collect();
        let secrets = changes.iter().any(|(e, _)| e.object.starts_with("secret/"));
        let promise = if secrets || !prune.is_empty() {
            Promise::Compensating(
                "changed values of Secrets and deleted objects are not given back by themselves: the undo of the wave that made the objects follows, and takes them away".into(),
            )
        } else {
            Promise::Exact
        };
        let mut what = vec![];
        if !changes.is_empty() {
            what.push(format!("change {}", people(changes.len(), "object")));
        }
        if !prune.is_empty() {
            what.push(format!("delete {}", people(prune.len(), "object")));
        }
        if what.is_empty() {
            what.push("create what is new".into());
        }
        let params = json!({
            "changes": changes.iter().map(|(e, ops)| json!({"object": e.object, "uid": e.uid, "version": e.version, "ops": ops})).collect::<Vec<_>>(),
            "prune": prune,
        });
        let id = format!("replay/sync-{}", self.n);
        self.add(
            id,
            Phase::Replay,
            "replay.sync",
            self.of_phases(|p| p == Phase::Replay),
            promise,
            format!("bring what changed on blue: {} on green", what.join(", ")),
            params,
        )
    }

    /// New objects, wave by wave; what other objects must run for (webhooks) when those run.
    fn create(&mut self, new: &[&Verdict], root: &str) -> Vec<String> {
        let mut waves: BTreeMap<(usize, &str), Vec<&str>> = BTreeMap::new();
        let mut merged = vec![];
        for v in new {
            if is_merged(&v.object) {
                merged.push(&v.object);
            } else if let Some(wave) = wave_of(kind(v)).filter(|_| !with_the_last(v)) {
                waves.entry(wave).or_default().push(&v.object);
            }
        }
        let mut last = vec![root.to_string()];
        for ((_, wave), objects) in waves {
            last = vec![self.add(
                format!("replay/sync-{}/{wave}", self.n),
                Phase::Replay,
                "replay.wave",
                last,
                Promise::Exact,
                format!(
                    "create {} on green ({wave})",
                    people(objects.len(), "new object")
                ),
                json!({"wave": wave, "objects": objects, "generated": []}),
            )];
        }
        if !merged.is_empty() {
            last = vec![self.add(
                format!("replay/sync-{}/defaults", self.n),
                Phase::Replay,
                "replay.merge",
                last,
                Promise::Exact,
                format!(
                    "add pull secrets and annotations to {} that green makes by itself",
                    people(merged.len(), "service account")
                ),
                json!({"objects": merged}),
            )];
        }
        last
    }

    /// What is new is stopped on blue and woken on green with the rest.
    fn wake(&mut self, new: &[&Verdict], made: &[String]) {
        let n = self.n;
        let woken = |phase: &str, pick: &dyn Fn(&str) -> bool| -> Vec<String> {
            new.iter()
                .filter(|v| v.park.as_ref().is_some_and(|p| p.wakes == phase) && pick(kind(v)))
                .map(|v| v.object.clone())
                .collect()
        };
        let cron = |kind: &str| matches!(kind, "CronJob" | "Job");
        let mut needs = self.of_phases(|p| p < Phase::Unpark);
        needs.extend(made.iter().cloned());
        let live = woken("unpark", &|_| true);
        if !live.is_empty() {
            needs = vec![self.add(
                format!("unpark/sync-{n}"),
                Phase::Unpark,
                "unpark",
                needs,
                Promise::Exact,
                format!(
                    "bring {} to live size on green",
                    people(live.len(), "new workload")
                ),
                json!({"objects": live}),
            )];
        }
        let hooks: Vec<&str> = new
            .iter()
            .filter(|v| with_the_last(v))
            .map(|v| v.object.as_str())
            .collect();
        if !hooks.is_empty() {
            self.add(
                format!("unpark/sync-{n}/webhooks"),
                Phase::Unpark,
                "replay.wave",
                needs,
                Promise::Exact,
                format!(
                    "create {} whose backends run now",
                    people(hooks.len(), "new webhook, aggregated API or pod")
                ),
                json!({"wave": "webhooks", "objects": hooks, "generated": []}),
            );
        }
        let lists = [
            ("cron", "freeze.cron", woken("open", &cron), "new cron job"),
            (
                "singletons",
                "freeze.singletons",
                woken("open", &|k| !cron(k)),
                "new single workload",
            ),
        ];
        for (name, stop, objects, what) in lists {
            if objects.is_empty() {
                continue;
            }
            // Jobs run to their end; only what starts by itself again is stopped.
            let by_replicas = |o: &String| {
                let park = new.iter().find(|v| v.object == *o);
                park.and_then(|v| v.park.as_ref())
                    .is_some_and(|p| p.field == "/spec/replicas")
            };
            let stopped: Vec<&String> = objects
                .iter()
                .filter(|o| o.starts_with("cronjob/") || by_replicas(o))
                .collect();
            if !stopped.is_empty() {
                let mut needs = self.of_phases(|p| p < Phase::Freeze);
                needs.extend(made.iter().cloned());
                self.add(
                    format!("freeze/sync-{n}/{name}"),
                    Phase::Freeze,
                    stop,
                    needs,
                    Promise::Exact,
                    format!("stop {} on blue", people(stopped.len(), what)),
                    json!({"objects": stopped}),
                );
            }
            let mut needs = self.of_phases(|p| p < Phase::Open);
            needs.extend(
                self.plan
                    .steps
                    .iter()
                    .filter(|s| s.kind == "fence.open")
                    .map(|s| s.id.clone()),
            );
            needs.extend(made.iter().cloned());
            self.add(
                format!("open/sync-{n}/{name}"),
                Phase::Open,
                "unpark",
                needs,
                Promise::Exact,
                format!("start {} on green", people(objects.len(), what)),
                json!({"objects": objects}),
            );
        }
    }
}
