//! `edns.stop` and `edns.start`: one writer of the zone. Blue's ExternalDNS is stopped and proven stopped; green's starts
//! only when a dry run shows that it would change nothing.

use super::util::{
    Expect, at, at_size, must_get, params, pods_of, recorded, refused, set, workload_id,
};
use super::{Cx, Settle, Step, StepResult};
use crate::edns::switch;
use crate::object::{ObjectId, Side};
use crate::world::dns::{RecordKey, RecordSet};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// Makes `edns.stop`.
pub fn make_stop(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(Stop {
        p: params("edns.stop", value)?,
        quiet: Quiet::default(),
    }))
}

/// Makes `edns.start`.
pub fn make_start(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(Start {
        p: params("edns.start", value)?,
        quiet: Quiet::default(),
    }))
}

#[derive(Deserialize)]
struct Params {
    /// The Deployment.
    object: String,
    /// Seconds between two of its loops.
    interval: u32,
    /// Zones that it writes to.
    #[serde(default)]
    zone_ids: Vec<String>,
}

/// Since when the records that matter have not changed. Not journaled: after a restart the watch begins anew, which is the safe side.
#[derive(Default)]
struct Quiet(Mutex<Option<Watch>>);

struct Watch {
    records: BTreeMap<RecordKey, RecordSet>,
    since: Instant,
    /// How often something moved since the watch began, and what moved last.
    moves: u32,
    last: String,
}

/// So often a record may move after the writer was stopped before somebody else is taken for its writer: a call of the stopped one may be under way.
const MOVES: u32 = 4;

/// What a look at the zones showed.
struct Stillness {
    still: Duration,
    moves: u32,
    last: String,
}

impl Quiet {
    /// How long the records of blue's owners and of the plan's names have stood still, asking now. What others write in the same zones (a solver's
    /// challenge, another team's ExternalDNS) is their business and no sign of life of the stopped one.
    async fn watch(&self, cx: &Cx, zones: &[String]) -> StepResult<Stillness> {
        let mut now = BTreeMap::new();
        for zone in zones {
            let records = cx.world.dns.records(zone).await?;
            now.extend(ours(cx, records).map(|r| (r.key(), r)));
        }
        let mut seen = self.0.lock().unwrap_or_else(|p| p.into_inner());
        let watch = match seen.as_mut() {
            Some(watch) => watch,
            None => seen.insert(Watch {
                records: now.clone(),
                since: Instant::now(),
                moves: 0,
                last: String::new(),
            }),
        };
        let moved = now
            .iter()
            .find(|(k, r)| watch.records.get(*k) != Some(*r))
            .map(|(k, _)| k)
            .or_else(|| watch.records.keys().find(|k| !now.contains_key(*k)));
        if let Some(key) = moved {
            watch.moves += 1;
            watch.last = key.to_string();
            watch.since = Instant::now();
            watch.records = now;
        }
        Ok(Stillness {
            still: watch.since.elapsed(),
            moves: watch.moves,
            last: watch.last.clone(),
        })
    }
}

/// Record sets of the plan's names, and ownership TXTs of blue's and green's owners; all, in a plan of before owners were kept.
fn ours(cx: &Cx, records: Vec<RecordSet>) -> impl Iterator<Item = RecordSet> {
    let names = &cx.plan.names;
    let known = !names.is_empty() && names.iter().all(|n| n.owner.is_some());
    let hosts: BTreeSet<String> = names.iter().map(|n| format!("{}.", n.host)).collect();
    let txt: BTreeSet<String> = names.iter().flat_map(|n| n.txt.clone()).collect();
    let owners: BTreeSet<String> = names.iter().filter_map(|n| n.owner.clone()).collect();
    records.into_iter().filter(move |r| {
        !known
            || hosts.contains(&r.name)
            || txt.contains(&r.name)
            || switch::owner_of(r).is_some_and(|o| owners.contains(&o))
    })
}

#[derive(Serialize, Deserialize)]
struct Before {
    replicas: Value,
}

struct Stop {
    p: Params,
    quiet: Quiet,
}

impl Stop {
    /// All zones of the plan when the parameters name none.
    fn zones(&self, cx: &Cx) -> Vec<String> {
        if self.p.zone_ids.is_empty() {
            cx.plan.basis.zones.values().cloned().collect()
        } else {
            self.p.zone_ids.clone()
        }
    }
}

#[async_trait]
impl Step for Stop {
    async fn observe(&self, cx: &Cx) -> StepResult<Value> {
        let blue = must_get(cx.world.blue.as_ref(), &workload_id(&self.p.object)?).await?;
        Ok(json!(Before {
            replicas: at(&blue, "/spec/replicas").clone()
        }))
    }
    async fn apply(&self, cx: &Cx, before: &Value) -> StepResult<Value> {
        let before: Before = recorded(&cx.step, before)?;
        set(
            cx.world.blue.as_ref(),
            &workload_id(&self.p.object)?,
            "/spec/replicas",
            Expect::Value(&before.replicas),
            &json!(0),
        )
        .await?;
        Ok(json!({}))
    }
    async fn settle(&self, cx: &Cx, _: &Value, _: &Value) -> StepResult<Settle> {
        let poll = Duration::from_secs(1);
        let blue = must_get(cx.world.blue.as_ref(), &workload_id(&self.p.object)?).await?;
        if at(&blue, "/spec/replicas") != &json!(0) {
            // kops's add-on manager, GitOps or an HPA restores it (externaldns.md trap 22).
            return Ok(Settle::Failed {
                why: format!("{} was scaled up again by somebody", self.p.object),
                remedy: "pause what restores it (kops add-on manager, GitOps, HPA); then resume"
                    .into(),
            });
        }
        let pods = pods_of(cx.world.blue.as_ref(), &blue).await?;
        if !pods.is_empty() {
            return Ok(Settle::Pending {
                why: format!("{} pods of {} on blue to end", pods.len(), self.p.object),
                poll,
            });
        }
        // Proof that it was the only writer: the zones stand still for two of its intervals (externaldns.md rule 6).
        let seen = self.quiet.watch(cx, &self.zones(cx)).await?;
        if seen.moves > MOVES {
            return Ok(Settle::Failed {
                why: format!(
                    "{} is stopped and its records still change ({} times, last {}): somebody else writes them",
                    self.p.object, seen.moves, seen.last
                ),
                remedy: "find the other writer (another instance with this owner, a script, Terraform) and stop it; then resume (externaldns.md rule 6)".into(),
            });
        }
        let quiet = seen.still;
        let wanted = Duration::from_secs(u64::from(self.p.interval) * 2);
        if quiet < wanted {
            return Ok(Settle::Pending {
                why: format!(
                    "the zones to stand still: {} of {} s",
                    quiet.as_secs(),
                    wanted.as_secs()
                ),
                poll: poll.max(wanted / 8),
            });
        }
        Ok(Settle::Ready)
    }
    async fn undo(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<()> {
        let before: Before = recorded(&cx.step, before)?;
        set(
            cx.world.blue.as_ref(),
            &workload_id(&self.p.object)?,
            "/spec/replicas",
            Expect::Value(&json!(0)),
            &before.replicas,
        )
        .await
    }
    async fn undone(&self, cx: &Cx, _: &Value, _: Option<&Value>) -> StepResult<Settle> {
        let blue = must_get(cx.world.blue.as_ref(), &workload_id(&self.p.object)?).await?;
        Ok(match at_size(&blue) {
            Ok(()) => Settle::Ready,
            Err(why) => Settle::Pending {
                why: format!("{} on blue: {why}", self.p.object),
                poll: Duration::from_secs(1),
            },
        })
    }
}

/// Proves again that every ExternalDNS of blue that the cutover stopped is still stopped: two writers of one zone fight.
pub(crate) async fn still_stopped(cx: &Cx) -> StepResult<()> {
    for step in cx.plan.steps.iter().filter(|s| s.kind == "edns.stop") {
        let p: Params = recorded(&step.id, &step.params)?;
        let blue = must_get(cx.world.blue.as_ref(), &workload_id(&p.object)?).await?;
        let replicas = at(&blue, "/spec/replicas");
        if replicas != &json!(0) {
            return Err(refused(
                &p.object,
                format!("blue's ExternalDNS was started again by somebody: replicas {replicas}"),
                "find what starts it (kops add-on manager, GitOps, a person), scale it to 0; then resume or roll back (externaldns.md rule 6)",
            ));
        }
    }
    Ok(())
}

struct Start {
    p: Params,
    quiet: Quiet,
}

impl Start {
    fn id(&self) -> StepResult<ObjectId> {
        workload_id(&self.p.object)
    }
}

#[async_trait]
impl Step for Start {
    async fn observe(&self, cx: &Cx) -> StepResult<Value> {
        let green = must_get(cx.world.green.as_ref(), &self.id()?).await?;
        Ok(json!(Before {
            replicas: at(&green, "/spec/replicas").clone()
        }))
    }
    async fn apply(&self, cx: &Cx, before: &Value) -> StepResult<Value> {
        let before: Before = recorded(&cx.step, before)?;
        still_stopped(cx).await?;
        let green = must_get(cx.world.green.as_ref(), &self.id()?).await?;
        if at(&green, "/spec/replicas") == &before.replicas {
            let changes = super::handover::dry_run(cx, &green, &self.p.zone_ids).await?;
            if !changes.is_empty() {
                return Err(refused(
                    &self.p.object,
                    format!(
                        "its dry run would change the zone, which the handover must have made unnecessary: {}",
                        changes.join("; ")
                    ),
                    "compare these names on green with the zone; repair, then resume; or roll back (externaldns.md rule 11)",
                ));
            }
        }
        set(
            cx.world.green.as_ref(),
            &self.id()?,
            "/spec/replicas",
            Expect::Value(&before.replicas),
            &json!(1),
        )
        .await?;
        Ok(json!({ "dry_run_changes": 0 }))
    }
    async fn settle(&self, cx: &Cx, _: &Value, _: &Value) -> StepResult<Settle> {
        let poll = Duration::from_secs(1);
        let green = must_get(cx.world.green.as_ref(), &self.id()?).await?;
        if let Err(why) = at_size(&green) {
            return Ok(Settle::Pending {
                why: format!("{} on green: {why}", self.p.object),
                poll,
            });
        }
        // Its first loops must leave the zone alone; then every name must still be green's (externaldns.md rule 12).
        let quiet = self.quiet.watch(cx, &self.p.zone_ids).await?.still;
        let wanted = Duration::from_secs(u64::from(self.p.interval) * 2);
        if quiet < wanted {
            return Ok(Settle::Pending {
                why: format!(
                    "green's ExternalDNS to leave the zones alone: {} of {} s",
                    quiet.as_secs(),
                    wanted.as_secs()
                ),
                poll: poll.max(wanted / 8),
            });
        }
        let wrong = super::handover::not_handed_over(cx).await?;
        if !wrong.is_empty() {
            return Ok(Settle::Failed {
                why: format!(
                    "after green's first loops these names are not green's: {}",
                    wrong.join(", ")
                ),
                remedy: "roll back the cutover, or look at green's ExternalDNS log".into(),
            });
        }
        Ok(Settle::Ready)
    }
    async fn undo(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<()> {
        let before: Before = recorded(&cx.step, before)?;
        set(
            cx.world.kube(Side::Green),
            &self.id()?,
            "/spec/replicas",
            Expect::Value(&json!(1)),
            &before.replicas,
        )
        .await
    }
    async fn undone(&self, cx: &Cx, _: &Value, _: Option<&Value>) -> StepResult<Settle> {
        let green = must_get(cx.world.green.as_ref(), &self.id()?).await?;
        let pods = pods_of(cx.world.green.as_ref(), &green).await?;
        if pods.is_empty() {
            return Ok(Settle::Ready);
        }
        Ok(Settle::Pending {
            why: format!("{} pods of {} on green to end", pods.len(), self.p.object),
            poll: Duration::from_secs(1),
        })
    }
}
