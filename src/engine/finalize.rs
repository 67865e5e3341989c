//! The parts of `finalize`: after the first of them there is no way back, so each is journaled, idempotent, and refuses what it does not expect.

use super::{Engine, EventKind};
use crate::error::{Error, Kind, Result};
use crate::journal::{Mode, Record};
use crate::object::{ObjectId, Side};
use crate::plan::model::Phase;
use crate::spec::model::DataMode;
use crate::step::util::{Expect, at, at_size, must_get, set, workload_id};
use crate::step::{Cx, StepError, StepResult};
use crate::world::dns::{Change, RecordSet};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// First and last part; the others stand between.
const BEGIN: &str = "begin";
const END: &str = "end";
/// The annotation that ExternalDNS reads a TTL from.
const TTL: &str = "/metadata/annotations/external-dns.alpha.kubernetes.io~1ttl";
/// How long one part may wait for the world before it is left to a repeat.
const PATIENCE: Duration = Duration::from_secs(900);

impl Engine {
    /// Ends the way back: reverse streams stop, original TTLs return, green's ExternalDNS may delete again. Answers false when all of it was done before.
    pub async fn finalize(&self) -> Result<bool> {
        let state = self.journal.state();
        if state.finalized.iter().any(|(what, _)| what == END) {
            return Ok(false);
        }
        let soaked = self
            .plan
            .steps
            .iter()
            .filter(|s| s.phase == Phase::Soak)
            .all(|s| state.status(&s.id) == crate::journal::Status::Done);
        if !state.done || state.mode != Mode::Forward || !soaked {
            return Err(Error::new(
                Kind::StalePlan,
                "only a finished migration whose soak has passed can be finalized",
            )
            .at(self.run_id())
            .remedy("see `crossfade status`; finish it with `crossfade migrate`"));
        }
        self.check_plan()?;
        super::verify_pins(&self.world, &self.plan.basis).await?;
        // Everything that could say no is asked before the first part.
        let cx = self.cx("finalize");
        let zones: Vec<String> = self.plan.basis.zones.values().cloned().collect();
        if state.finalized.is_empty() {
            let wrong = crate::step::handover::not_handed_over(&cx)
                .await
                .map_err(|e| said("zones", e))?;
            if !wrong.is_empty() {
                return Err(Error::new(
                    Kind::Blocked,
                    format!("these names are not green's: {}", wrong.join(", ")),
                )
                .at("zones")
                .remedy("find out who changed them; blue's way back is still open"));
            }
            // Sync comes last: only when everything that green owns is wanted by green (externaldns.md rule 13).
            for (object, _) in self.external_dns() {
                let unwanted = self
                    .unwanted(&cx, &object, &zones)
                    .await
                    .map_err(|e| said(&object, e))?;
                if !unwanted.is_empty() {
                    return Err(Error::new(
                        Kind::Blocked,
                        format!("as `sync` it would change the zone: {}", unwanted.join("; ")),
                    )
                    .at(object)
                    .remedy("these records have green's owner id but nothing on green wants them: add the object or remove the records, then finalize again; blue's way back is still open"));
                }
            }
            // Blue's ExternalDNS deletes what it owns as soon as blue's Ingresses go (externaldns.md rule 16, trap 4).
            crate::step::edns::still_stopped(&cx)
                .await
                .map_err(|e| said("blue's ExternalDNS", e))?;
            let left = crate::step::handover::still_blues(&cx)
                .await
                .map_err(|e| said("zones", e))?;
            if !left.is_empty() {
                return Err(Error::new(
                    Kind::Blocked,
                    format!("ownership records of live names still carry blue's owner: {}", left.join(", ")),
                )
                .at("zones")
                .remedy("whoever starts blue's ExternalDNS again would lose these names: roll back, or rewrite their owner; blue's way back is still open"));
            }
            self.append(Record::Finalized {
                what: BEGIN.into(),
                data: json!({"by": self.options.by, "crossfade_version": env!("CARGO_PKG_VERSION")}),
            })?;
        }
        for set in &self.plan.spec.data {
            if set.mode != DataMode::Shared {
                let part = format!("reverse stream of {}", set.name);
                self.part(&part, async || {
                    self.world.data.stop_stream(&set.name, Side::Green).await?;
                    Ok(json!({}))
                })
                .await?;
            }
        }
        for (object, interval) in self.external_dns() {
            let part = format!("policy sync of {object}");
            self.part(&part, async || {
                self.sync(&cx, &object, interval, &zones).await
            })
            .await?;
        }
        // After green's ExternalDNS has lost the low TTL that it was told (--min-ttl): before, it would write it again.
        self.part("original TTLs", async || self.original_ttls(&cx).await)
            .await?;
        self.append(Record::Finalized {
            what: END.into(),
            data: json!({}),
        })?;
        Ok(true)
    }

    /// One part, unless an earlier process did it.
    async fn part(&self, what: &str, act: impl AsyncFn() -> StepResult<Value>) -> Result<()> {
        if self
            .journal
            .with_state(|s| s.finalized.iter().any(|(w, _)| w == what))
        {
            return Ok(());
        }
        let began = Instant::now();
        self.emit(EventKind::FinalizeStarted { what: what.into() });
        let mut tries = 0;
        let data = loop {
            match act().await {
                Ok(data) => break data,
                Err(StepError::World(e))
                    if e.is_transient() && tries + 1 < self.options.attempts =>
                {
                    tries += 1;
                    let pause =
                        super::backoff(self.options.backoff, &self.plan.digest, what, tries);
                    if !self.sleep(pause).await {
                        return Err(interrupted(what));
                    }
                }
                Err(e) => return Err(said(what, e)),
            }
        };
        self.append(Record::Finalized {
            what: what.into(),
            data,
        })?;
        self.emit(EventKind::FinalizeDone {
            what: what.into(),
            took_s: began.elapsed().as_secs_f64(),
        });
        Ok(())
    }

    /// Green's ExternalDNS deployments and their intervals, from the plan's own steps.
    fn external_dns(&self) -> Vec<(String, u64)> {
        self.plan
            .steps
            .iter()
            .filter(|s| s.kind == "edns.start")
            .filter_map(|s| {
                let object = s.params["object"].as_str()?.to_string();
                Some((object, s.params["interval"].as_u64().unwrap_or(60)))
            })
            .collect()
    }

    /// What `dns.ttl` lowered is raised again: on green's objects where the TTL is an annotation, in the zone elsewhere.
    async fn original_ttls(&self, cx: &Cx) -> StepResult<Value> {
        let mut restored = vec![];
        let mut watch: Vec<(String, String, String, u32)> = vec![];
        for step in self.plan.steps.iter().filter(|s| s.kind == "dns.ttl") {
            let before = self
                .journal
                .with_state(|s| s.steps.get(&step.id).and_then(|s| s.before.clone()))
                .unwrap_or_default();
            let low = step.params["low_ttl"].as_u64().unwrap_or(60);
            let zone = step.params["zone_id"].as_str().unwrap_or_default();
            for (object, value) in before["annotations"].as_object().into_iter().flatten() {
                let id = cx.green_id(object)?;
                let green = must_get(self.world.green.as_ref(), &id).await?;
                let found = at(&green, TTL);
                // Green's own owners may have chosen another TTL by now: that is theirs.
                if found == &json!(low.to_string()) && found != value {
                    set(
                        self.world.green.as_ref(),
                        &id,
                        TTL,
                        Expect::Value(found),
                        value,
                    )
                    .await?;
                    restored.push(object.clone());
                }
            }
            let hosts = step.params["names"].as_array().cloned().unwrap_or_default();
            let now = self.world.dns.records(zone).await?;
            let mut changes = vec![];
            for name in self
                .plan
                .names
                .iter()
                .filter(|n| n.zone_id == zone && hosts.contains(&json!(n.host)))
            {
                let row = match &name.set_identifier {
                    None => name.host.clone(),
                    Some(id) => format!("{}#{id}", name.host),
                };
                let Some(ttl) = before["records"][&row]["ttl"].as_u64().map(|t| t as u32) else {
                    continue;
                };
                let record = now.iter().find(|r| {
                    r.name.trim_end_matches('.') == name.host
                        && r.rtype == name.rtype
                        && r.set_identifier == name.set_identifier
                });
                let Some(record) =
                    record.filter(|r| r.ttl == Some(low as u32) && ttl != low as u32)
                else {
                    continue;
                };
                if name.ttl_annotation {
                    watch.push((zone.into(), name.host.clone(), name.rtype.clone(), ttl));
                } else {
                    let new = RecordSet {
                        ttl: Some(ttl),
                        ..record.clone()
                    };
                    changes.push((
                        (),
                        vec![Change::Delete(record.clone()), Change::Create(new)],
                    ));
                    restored.push(name.host.clone());
                }
            }
            for batch in crate::edns::switch::pack(changes) {
                let batch: Vec<Change> = batch.into_iter().flat_map(|(_, c)| c).collect();
                let comment = format!("crossfade {} finalize: original TTLs", self.run_id());
                self.world.dns.change(zone, &batch, &comment).await?;
            }
        }
        // Green's ExternalDNS writes the annotated ones.
        self.until(
            "green's ExternalDNS to write the original TTLs",
            async || {
                for (zone, host, rtype, ttl) in &watch {
                    let now = self.world.dns.records(zone).await?;
                    let there = now.iter().any(|r| {
                        r.name.trim_end_matches('.') == host
                            && r.rtype == *rtype
                            && r.ttl == Some(*ttl)
                    });
                    if !there {
                        return Ok(Some(host.clone()));
                    }
                }
                Ok(None)
            },
        )
        .await?;
        Ok(json!({ "restored": restored }))
    }

    /// Lets green's ExternalDNS delete again, after a dry run as `sync` that would change nothing (externaldns.md rule 11).
    async fn sync(
        &self,
        cx: &Cx,
        object: &str,
        interval: u64,
        zones: &[String],
    ) -> StepResult<Value> {
        let id: ObjectId = workload_id(object)?;
        let green = must_get(self.world.green.as_ref(), &id).await?;
        let Some(syncing) = as_sync(object, &green)? else {
            return Ok(json!({"policy": "sync", "changed": false}));
        };
        let changes = crate::step::handover::dry_run(cx, &syncing, zones).await?;
        if !changes.is_empty() {
            return Err(StepError::Refused {
                object: object.into(),
                why: format!("as `sync` it would change the zone: {}", changes.join("; ")),
                remedy: "these records have green's owner id but nothing on green wants them: add the object or remove the records, then finalize again".into(),
            });
        }
        // A merge patch replaces lists whole: the container list must be sent as it is, with only the arguments changed.
        let containers = "/spec/template/spec/containers";
        set(
            self.world.green.as_ref(),
            &id,
            containers,
            Expect::Value(at(&green, containers)),
            at(&syncing, containers),
        )
        .await?;
        self.until(
            "green's ExternalDNS to run with its new policy",
            async || {
                let now = must_get(self.world.green.as_ref(), &id).await?;
                Ok(at_size(&now).err())
            },
        )
        .await?;
        // Its first loops as `sync` must leave the zones alone.
        let before = self.zones(zones).await?;
        tokio::time::sleep(Duration::from_secs(interval * 2)).await;
        if self.zones(zones).await? != before {
            return Err(StepError::Refused {
                object: object.into(),
                why: "the zones changed during its first loops as `sync`".into(),
                remedy: "look at its log and at the zones".into(),
            });
        }
        Ok(json!({"policy": "sync", "changed": true}))
    }

    /// What green's ExternalDNS would change if it ran as `sync` now.
    async fn unwanted(&self, cx: &Cx, object: &str, zones: &[String]) -> StepResult<Vec<String>> {
        let green = must_get(self.world.green.as_ref(), &workload_id(object)?).await?;
        let syncing = as_sync(object, &green)?.unwrap_or(green);
        crate::step::handover::dry_run(cx, &syncing, zones).await
    }

    async fn zones(&self, zones: &[String]) -> StepResult<Value> {
        let mut all = vec![];
        for zone in zones {
            all.push(json!(self.world.dns.records(zone).await?));
        }
        Ok(Value::Array(all))
    }

    /// Waits while `look` names something that is not there yet.
    async fn until(
        &self,
        what: &str,
        look: impl AsyncFn() -> StepResult<Option<String>>,
    ) -> StepResult<()> {
        let began = Instant::now();
        while let Some(late) = look().await? {
            if began.elapsed() > PATIENCE {
                return Err(StepError::Refused {
                    object: late,
                    why: format!("waited {} min for {what}", PATIENCE.as_secs() / 60),
                    remedy: "look at green's ExternalDNS".into(),
                });
            }
            if !self.sleep(Duration::from_secs(2)).await {
                return Err(StepError::Refused {
                    object: late,
                    why: "asked to stop".into(),
                    remedy: String::new(),
                });
            }
        }
        Ok(())
    }
}

/// The Deployment with policy sync, and without the low TTL that it was told for the cutover; `None` when it is that already.
fn as_sync(object: &str, green: &Value) -> StepResult<Option<Value>> {
    let (place, args) = policy_args(green).ok_or_else(|| StepError::Refused {
        object: object.into(),
        why: "it has no argument --policy=upsert-only".into(),
        remedy: "set --policy=sync on it by hand when you want it".into(),
    })?;
    let wanted: Vec<Value> = args
        .iter()
        .filter(|a| !a.as_str().is_some_and(|a| a.starts_with("--min-ttl=")))
        .map(|a| {
            if a == "--policy=upsert-only" {
                json!("--policy=sync")
            } else {
                a.clone()
            }
        })
        .collect();
    if wanted == args {
        return Ok(None);
    }
    let mut syncing = green.clone();
    if let Some(slot) = syncing.pointer_mut(&place) {
        *slot = Value::Array(wanted);
    }
    Ok(Some(syncing))
}

/// Place and content of the argument list that holds the policy.
fn policy_args(deployment: &Value) -> Option<(String, Vec<Value>)> {
    let containers = at(deployment, "/spec/template/spec/containers").as_array()?;
    containers.iter().enumerate().find_map(|(n, c)| {
        let args = c["args"].as_array()?;
        let has = args
            .iter()
            .any(|a| a.as_str().is_some_and(|a| a.starts_with("--policy=")));
        has.then(|| {
            (
                format!("/spec/template/spec/containers/{n}/args"),
                args.clone(),
            )
        })
    })
}

fn interrupted(what: &str) -> Error {
    Error::new(Kind::Interrupted, "stopped at a safe point")
        .at(format!("finalize: {what}"))
        .remedy("run the same command again")
}

fn said(what: &str, e: StepError) -> Error {
    let (object, why, remedy) = match e {
        StepError::World(e) => {
            let e = Error::from(e);
            return Error::new(e.kind, format!("finalize, {what}: {}", e.message))
                .at(e.at)
                .remedy(format!("{}; then run the same command again", e.remedy));
        }
        StepError::Refused {
            object,
            why,
            remedy,
        } => (object, why, remedy),
        StepError::Changed {
            object,
            expected,
            found,
        } => (
            object,
            format!("changed by somebody else: expected {expected}, found {found}"),
            String::new(),
        ),
        StepError::Journal(why) => return Error::new(Kind::Interrupted, why),
    };
    Error::new(Kind::Stuck, format!("finalize, {what}: {why}"))
        .at(object)
        .remedy(if remedy.is_empty() {
            "run the same command again".into()
        } else {
            format!("{remedy}; then run the same command again")
        })
}
