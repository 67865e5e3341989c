//! `unpark`: wakes parked workloads of green: at blue's live size in phase unpark, what must be single and cron jobs in phase open.
//!
//! They wake in the order of the plan (who is called by others first), so many pods at once as `limits.wakePods` says, and the next when
//! these are ready. What `before` holds decides everything, so a run that died in the middle goes on in the same batch.

use super::pods::{
    active_jobs, as_ready_as, deadline_passed, live_size, pods_of, readiness, remedy_of,
    why_not_ready,
};
use super::util::{Expect, at, must_get, params, recorded, refused, set};
use super::{Cx, Settle, Step, StepError, StepResult};
use crate::object::ObjectId;
use crate::plan::model::Park;
use async_trait::async_trait;
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// Makes the step.
pub fn make(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(params::<Unpark>("unpark", value)?))
}

#[derive(Deserialize)]
struct Unpark {
    /// In the order in which they wake.
    objects: Vec<String>,
    /// How many of them wake together, level by level; all in one when absent.
    #[serde(default)]
    levels: Vec<usize>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Awake {
    object: String,
    /// Its id on green.
    id: ObjectId,
    /// Field that parks.
    field: String,
    /// Value while parked.
    parked: Value,
    /// Value to wake up with.
    awake: Value,
    /// Ready pods that are enough: as many as blue has, where blue has not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    enough: Option<u64>,
    /// Which of the levels it belongs to.
    level: usize,
}

impl Awake {
    /// Pods that start with it.
    fn pods(&self) -> u64 {
        match self.field.as_str() {
            "/spec/replicas" => self.awake.as_u64().unwrap_or(1),
            // One on each node, whatever the limit says.
            _ if self.is_daemon() => 1,
            _ => 0,
        }
    }
    fn is_scaler(&self) -> bool {
        self.object.starts_with("scaledobject.")
    }
    fn is_daemon(&self) -> bool {
        self.object.starts_with("daemonset/")
    }
    /// Whether its pods are waited for.
    fn runs(&self) -> bool {
        self.field == "/spec/replicas" && self.awake != json!(0) || self.is_daemon()
    }
    /// Parked and awake are one (0 replicas on blue, suspended by its owner).
    fn sleeps_on(&self) -> bool {
        self.parked == self.awake
    }
}

/// Who wakes together: as many pods as the limit allows, never across levels, a scaler always with its target, which comes right after it.
fn batches(all: &[Awake], limit: u64) -> Vec<&[Awake]> {
    let mut out = vec![];
    let mut from = 0;
    let mut pods = 0;
    for (n, a) in all.iter().enumerate() {
        let with_target = a.is_scaler().then(|| all.get(n + 1)).flatten();
        let more = a.pods() + with_target.map_or(0, Awake::pods);
        let glued = n > 0 && all[n - 1].is_scaler();
        let full = pods > 0 && more > 0 && pods + more > limit && !glued;
        if n > from && (full || a.level != all[from].level) {
            out.push(&all[from..n]);
            from = n;
            pods = 0;
        }
        pods += a.pods();
    }
    if from < all.len() {
        out.push(&all[from..]);
    }
    out
}

/// Progress record: a batch is about to be started.
#[derive(Serialize, Deserialize)]
struct Waking {
    /// Its number, from 0.
    waking: usize,
}

/// How many batches were begun, by this or an earlier process.
fn begun(cx: &Cx) -> StepResult<usize> {
    let mut n = 0;
    for record in cx.log.recorded(&cx.step) {
        n = n.max(recorded::<Waking>(&cx.step, &record)?.waking + 1);
    }
    Ok(n)
}

fn park(cx: &Cx, object: &str) -> StepResult<Park> {
    cx.verdict(object)?
        .park
        .ok_or_else(|| refused(object, "the plan does not park it", "make the plan again"))
}

/// What an object had on blue when the freeze stopped it: somebody may have suspended it after the plan was made, and that stays (rule 49).
fn stopped_at(cx: &Cx, object: &str) -> Option<Value> {
    // Steps of the freeze, those that came with a later `replay` too.
    let outputs = cx.outputs.read().unwrap_or_else(|p| p.into_inner());
    outputs
        .iter()
        .filter(|(step, _)| step.starts_with("freeze/"))
        .find_map(|(_, output)| output.get("was")?.get(object).cloned())
}

/// Absent means awake or one: written out, so that a merge patch says what is meant.
fn spelled(field: &str, value: Value) -> Value {
    match (field, &value) {
        ("/spec/replicas", Value::Null) => json!(1),
        ("/spec/suspend", Value::Null) => json!(false),
        _ => value,
    }
}

impl Unpark {
    fn level_of(&self, n: usize) -> usize {
        let mut end = 0;
        for (level, count) in self.levels.iter().enumerate() {
            end += count;
            if n < end {
                return level;
            }
        }
        self.levels.len()
    }

    async fn look(&self, cx: &Cx, n: usize, object: &str) -> StepResult<Awake> {
        let park = park(cx, object)?;
        let id = cx.green_id(object)?;
        let green = must_get(cx.world.green.as_ref(), &id).await?;
        let mut enough = None;
        let awake = if park.wakes == "unpark" {
            let blue = must_get(cx.world.blue.as_ref(), &cx.blue_id(object)?).await?;
            if park.field == "/spec/replicas" || object.starts_with("daemonset/") {
                let (ready, wanted) = readiness(&blue);
                enough = (ready < wanted).then_some(ready);
            }
            match park.field.as_str() {
                // What runs, not the plan's count nor the spec's: an autoscaler moves it all the time (replay.md 50).
                "/spec/replicas" => json!(live_size(&blue)),
                // What keeps it from every node is ours alone.
                _ if object.starts_with("daemonset/") => park.value,
                field => at(&blue, field).clone(),
            }
        } else {
            stopped_at(cx, object).unwrap_or(park.value)
        };
        Ok(Awake {
            object: object.into(),
            id,
            parked: at(&green, &park.field).clone(),
            awake: spelled(&park.field, awake),
            field: park.field,
            enough,
            level: self.level_of(n),
        })
    }

    /// Starts a batch. Its number is in the journal before anything moves; what is awake already was started by a process that died.
    async fn start(&self, cx: &Cx, number: usize, batch: &[Awake]) -> StepResult<()> {
        cx.log
            .progress(&cx.step, json!(Waking { waking: number }))
            .map_err(StepError::Journal)?;
        for a in batch {
            if !a.sleeps_on() {
                // Nobody may have touched it yet.
                set(
                    cx.world.green.as_ref(),
                    &a.id,
                    &a.field,
                    Expect::Value(&a.parked),
                    &a.awake,
                )
                .await?;
            }
        }
        Ok(())
    }
}

/// Wakes what still sleeps of a batch that was begun (an autoscaler may have moved the others since), and reads whose pods are waited for.
async fn nudge(cx: &Cx, a: &Awake) -> StepResult<Option<Value>> {
    if a.sleeps_on() && !a.runs() {
        return Ok(None);
    }
    let green = cx.world.green.as_ref();
    let mut now = must_get(green, &a.id).await?;
    if !a.sleeps_on() && at(&now, &a.field) == &a.parked {
        set(green, &a.id, &a.field, Expect::Value(&a.parked), &a.awake).await?;
        now = must_get(green, &a.id).await?;
    }
    Ok(a.runs().then_some(now))
}

/// How many workloads are looked at at once.
fn width(cx: &Cx) -> usize {
    cx.plan
        .spec
        .limits
        .write_concurrency
        .unwrap_or(16)
        .clamp(1, 64) as usize
}

#[async_trait]
impl Step for Unpark {
    async fn observe(&self, cx: &Cx) -> StepResult<Value> {
        let looks: Vec<_> = self
            .objects
            .iter()
            .enumerate()
            .map(|(n, o)| self.look(cx, n, o))
            .collect();
        let looked: Vec<StepResult<Awake>> = futures::stream::iter(looks)
            .buffered(width(cx))
            .collect()
            .await;
        let before: Vec<Awake> = looked.into_iter().collect::<StepResult<_>>()?;
        Ok(json!(before))
    }

    async fn apply(&self, cx: &Cx, before: &Value) -> StepResult<Value> {
        let all: Vec<Awake> = recorded(&cx.step, before)?;
        let limit = u64::from(cx.plan.spec.limits.wake_pods.max(1));
        let batches = batches(&all, limit);
        match (begun(cx)?, batches.first()) {
            (0, Some(first)) => self.start(cx, 0, first).await?,
            // A process died in this batch, or it did not settle and somebody did something about it.
            (n, _) => {
                if let Some(batch) = n.checked_sub(1).and_then(|n| batches.get(n)) {
                    for a in *batch {
                        nudge(cx, a).await?;
                    }
                }
            }
        }
        Ok(json!({ "woken": all.len(), "batches": batches.len() }))
    }

    async fn settle(&self, cx: &Cx, before: &Value, _: &Value) -> StepResult<Settle> {
        let all: Vec<Awake> = recorded(&cx.step, before)?;
        let limit = u64::from(cx.plan.spec.limits.wake_pods.max(1));
        let batches = batches(&all, limit);
        let number = begun(cx)?.saturating_sub(1);
        let Some(batch) = batches.get(number) else {
            return Ok(Settle::Ready);
        };
        let which = |n: usize, b: &[Awake]| {
            let pods: u64 = b.iter().map(Awake::pods).sum();
            format!(
                "batch {} of {} ({} workloads, {pods} pods)",
                n + 1,
                batches.len(),
                b.len()
            )
        };
        let looks: Vec<_> = batch.iter().map(|a| nudge(cx, a)).collect();
        let looked: Vec<StepResult<Option<Value>>> = futures::stream::iter(looks)
            .buffered(width(cx))
            .collect()
            .await;
        let mut waiting = vec![];
        for (a, green) in batch.iter().zip(looked) {
            if let Some(green) = green?
                && let Err(how_far) = as_ready_as(&green, a.enough.unwrap_or(u64::MAX))
            {
                waiting.push((a, green, how_far));
            }
        }
        // One that has given up says more than one that has just begun.
        waiting.sort_by_key(|(_, green, _)| !deadline_passed(green));
        if let Some((a, green, how_far)) = waiting.first() {
            let reason = why_not_ready(cx.world.green.as_ref(), green).await?;
            let said = reason.as_ref().map_or(String::new(), |r| format!("; {r}"));
            let others = match waiting.len() {
                1 => String::new(),
                n => format!(" (and {} more)", n - 1),
            };
            let why = format!(
                "{}: {} on green: {how_far}{said}{others}",
                which(number, batch),
                a.object
            );
            if deadline_passed(green) {
                return Ok(Settle::Failed {
                    why: format!("{why}; its own progress deadline has passed"),
                    remedy: remedy_of(reason.as_deref().unwrap_or("")).into(),
                });
            }
            return Ok(Settle::Pending {
                why,
                poll: Duration::from_secs(1),
            });
        }
        let Some(next) = batches.get(number + 1) else {
            return Ok(Settle::Ready);
        };
        self.start(cx, number + 1, next).await?;
        Ok(Settle::Pending {
            why: format!("{} to be ready", which(number + 1, next)),
            poll: Duration::from_secs(1),
        })
    }

    async fn undo(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<()> {
        let all: Vec<Awake> = recorded(&cx.step, before)?;
        // Scalers first: one that is awake would start again what is stopped. Then who calls others before these.
        let (pods, scalers): (Vec<&Awake>, Vec<&Awake>) = all.iter().partition(|a| a.runs());
        for a in scalers.into_iter().chain(pods.into_iter().rev()) {
            // Parked is always the safe state, whatever an autoscaler or a person made of the size meanwhile.
            set(
                cx.world.green.as_ref(),
                &a.id,
                &a.field,
                Expect::Anything,
                &a.parked,
            )
            .await?;
        }
        Ok(())
    }

    async fn undone(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<Settle> {
        let all: Vec<Awake> = recorded(&cx.step, before)?;
        let green = cx.world.green.as_ref();
        for a in &all {
            let suspends = a.field == "/spec/suspend";
            if !suspends && a.parked != json!(0) && !a.is_daemon() {
                continue;
            }
            let workload = must_get(green, &a.id).await?;
            // Proof of stop, or blue's copy would run beside it (reversibility.md 3.2.15).
            let left = if suspends {
                active_jobs(green, &workload).await?
            } else {
                pods_of(green, &workload).await?.len()
            };
            if left > 0 {
                return Ok(Settle::Pending {
                    why: format!("{left} of {} on green to end", a.object),
                    poll: Duration::from_secs(1),
                });
            }
        }
        Ok(Settle::Ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(name: &str, replicas: u64, level: usize) -> Awake {
        Awake {
            object: format!("deployment/a/{name}"),
            id: ObjectId::new("apps/v1", "Deployment", Some("a"), name),
            field: "/spec/replicas".into(),
            parked: json!(0),
            awake: json!(replicas),
            enough: None,
            level,
        }
    }

    #[test]
    fn a_batch_holds_as_many_pods_as_may_start_at_once_and_never_two_levels() {
        let all = [
            workload("db", 1, 0),
            workload("api", 3, 1),
            workload("cart", 2, 1),
            workload("search", 20, 1),
            workload("idle", 0, 1),
            workload("web", 4, 2),
        ];
        let names = |limit| -> Vec<Vec<&str>> {
            batches(&all, limit)
                .into_iter()
                .map(|b| {
                    b.iter()
                        .filter_map(|a| a.object.rsplit('/').next())
                        .collect()
                })
                .collect()
        };
        assert_eq!(
            names(5),
            [
                vec!["db"],
                vec!["api", "cart"],
                vec!["search", "idle"],
                vec!["web"]
            ]
        );
        assert_eq!(
            names(1000),
            [
                vec!["db"],
                vec!["api", "cart", "search", "idle"],
                vec!["web"]
            ]
        );
        assert!(batches(&[], 5).is_empty());
        let mut scaler = workload("x", 0, 1);
        scaler.object = "scaledobject.keda.sh/a/search".into();
        scaler.field = "/metadata/annotations/x".into();
        let with_scaler = [
            workload("api", 3, 1),
            scaler,
            workload("search", 20, 1),
            workload("z", 1, 1),
        ];
        let sizes: Vec<usize> = batches(&with_scaler, 5).iter().map(|b| b.len()).collect();
        assert_eq!(
            sizes,
            [1, 2, 1],
            "a scaler that is awake before its target would scale it by itself"
        );
    }
}
