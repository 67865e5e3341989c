//! `dns.handover`: one wave of names goes from blue to green. Record and every ownership TXT of a name change in one atomic batch,
//! with the exact old values as precondition (Delete old + Create new), so a change by anybody else in between is refused by Route 53 itself.
//!
//! What a name becomes is not invented here: the owner is rewritten in the TXTs that exist (externaldns.md rule 7), then the model of
//! green's ExternalDNS says what it would still change, and that is written too. So its first loop has nothing to do.

use super::probe_hosts::ask;
use super::util::{at, kind_of, params, recorded, refused};
use super::{Cx, Settle, Step, StepError, StepResult};
use crate::edns::{self, Config, Heritage};
use crate::plan::model::Name;
use crate::world::dns::{Change, RecordKey, RecordSet, Zone};
use crate::world::probe::Via;
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Values in one batch: Route 53 allows 1000 (externaldns.md rule 17); a name is never split over two.
const BATCH_VALUES: usize = 900;
/// Characters of values in one batch: Route 53 allows 32 000 (externaldns.md 4). Ownership TXTs of 90 characters reach it first.
const BATCH_CHARACTERS: usize = 30_000;

/// Makes the step.
pub fn make(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(params::<Handover>("dns.handover", value)?))
}

#[derive(Deserialize)]
struct Handover {
    zone_id: String,
    names: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Before {
    /// Per host: the record and every ownership TXT as they were. This is the undo file.
    groups: BTreeMap<String, Vec<RecordSet>>,
}

#[derive(Serialize, Deserialize)]
struct After {
    groups: BTreeMap<String, Vec<RecordSet>>,
    changes: Vec<String>,
}

/// Progress of an undo: when it was about to send, then the ids of the changes that were sent.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Undo {
    Sending(Timestamp),
    Sent(Vec<String>),
}

/// Route 53 has a change on all name servers within this time; waited out where a crash lost the change's id.
const IN_SYNC: SignedDuration = SignedDuration::from_secs(60);

/// Configuration of green's ExternalDNS, from its Deployment.
fn config_of(deployment: &Value) -> StepResult<Config> {
    let name = format!(
        "deployment/{}",
        at(deployment, "/metadata/name")
            .as_str()
            .unwrap_or_default()
    );
    match Config::of_workload(deployment) {
        Some(Ok(config)) => Ok(config),
        Some(Err(e)) => Err(refused(name, e.message, e.remedy)),
        None => Err(refused(
            name,
            "it does not run ExternalDNS",
            "make the plan again",
        )),
    }
}

/// Configuration of green's ExternalDNS as the plan has it.
fn green_config(cx: &Cx) -> StepResult<Config> {
    for object in &cx.plan.generated {
        if object["kind"] == "Deployment" && Config::of_workload(object).is_some() {
            return config_of(object);
        }
    }
    Err(refused(
        "green's ExternalDNS",
        "the plan has none",
        "make the plan again",
    ))
}

/// What green's ExternalDNS would want now, from green's live Ingresses and Services.
async fn desired(cx: &Cx, config: &Config) -> StepResult<Vec<edns::Endpoint>> {
    let green = cx.world.green.as_ref();
    let mut objects = green
        .list(&kind_of(green, "networking.k8s.io/v1", "Ingress").await?)
        .await?
        .items;
    objects.extend(
        green
            .list(&kind_of(green, "v1", "Service").await?)
            .await?
            .items,
    );
    Ok(edns::desired(&objects, config))
}

async fn zone_of(cx: &Cx, id: &str) -> StepResult<Zone> {
    let zone = cx.world.dns.zones().await?.into_iter().find(|z| z.id == id);
    zone.ok_or_else(|| {
        refused(
            format!("zone {id}"),
            "it is not there",
            "run discover again, then plan and review",
        )
    })
}

/// What green's ExternalDNS would change in these zones, one line per change; empty is what the cutover wants.
pub(crate) async fn dry_run(
    cx: &Cx,
    deployment: &Value,
    zones: &[String],
) -> StepResult<Vec<String>> {
    let config = config_of(deployment)?;
    let wanted = desired(cx, &config).await?;
    let mut lines = vec![];
    for id in zones {
        let zone = zone_of(cx, id).await?;
        let records = cx.world.dns.records(id).await?;
        for change in edns::plan_changes(&config, &records, &wanted, &zone) {
            lines.push(match change {
                Change::Create(r) => format!("CREATE {}", r.key()),
                Change::Delete(r) => format!("DELETE {}", r.key()),
                Change::Upsert(r) => format!("UPSERT {}", r.key()),
            });
        }
    }
    Ok(lines)
}

/// Names of the plan that are not green's now: another owner, or another target than green wants.
pub(crate) async fn not_handed_over(cx: &Cx) -> StepResult<Vec<String>> {
    let config = green_config(cx)?;
    let wanted = desired(cx, &config).await?;
    let mut wrong = vec![];
    for id in cx
        .plan
        .names
        .iter()
        .map(|n| n.zone_id.clone())
        .collect::<BTreeSet<_>>()
    {
        let zone = zone_of(cx, &id).await?;
        let records = cx.world.dns.records(&id).await?;
        let owners = edns::ownership(&records, &config);
        let touched: Vec<Change> = edns::plan_changes(&config, &records, &wanted, &zone);
        for name in cx.plan.names.iter().filter(|n| n.zone_id == id) {
            let owned = owners.iter().any(|o| {
                bare(&o.key.name) == name.host && o.owner.as_deref() == Some(config.owner.as_str())
            });
            let still = touched.iter().any(|c| matches!(c, Change::Create(r) | Change::Delete(r) | Change::Upsert(r) if bare(&r.name) == name.host));
            if !owned || still {
                wrong.push(name.host.clone());
            }
        }
    }
    Ok(wrong)
}

fn bare(name: &str) -> &str {
    name.trim_end_matches('.')
}

/// The record sets of a name: its addresses and aliases and all its ownership TXTs, in whatever format.
fn group(name: &Name, records: &[RecordSet], config: &Config) -> Vec<RecordSet> {
    let mut txt: BTreeSet<String> = name.txt.iter().map(|t| bare(t).to_string()).collect();
    for alias in [false, true] {
        for rtype in ["A", "AAAA", "CNAME"] {
            txt.extend(
                edns::txt_variants(&name.host, rtype, alias, config)
                    .into_iter()
                    .map(|t| bare(&t).to_string()),
            );
        }
    }
    let mut found: Vec<RecordSet> = records
        .iter()
        .filter(|r| match r.rtype.as_str() {
            "A" | "AAAA" | "CNAME" => bare(&r.name) == name.host,
            "TXT" => {
                txt.contains(bare(&r.name))
                    && r.values
                        .first()
                        .is_some_and(|v| Heritage::parse(v).is_some())
            }
            _ => false,
        })
        .cloned()
        .collect();
    found.sort_by_key(RecordSet::key);
    found
}

/// Owners named by the TXTs of a group.
fn owners(group: &[RecordSet]) -> BTreeSet<String> {
    group
        .iter()
        .filter(|r| r.rtype == "TXT")
        .filter_map(|r| r.values.first())
        .filter_map(|v| Heritage::parse(v)?.owner().map(String::from))
        .collect()
}

/// The records of a group that clients see.
fn addresses(group: &[RecordSet]) -> Vec<&RecordSet> {
    group.iter().filter(|r| r.rtype != "TXT").collect()
}

/// A batch that turns one group into the other, each old value a precondition.
fn batch(from: &[RecordSet], to: &[RecordSet]) -> Vec<Change> {
    let keyed = |g: &[RecordSet]| {
        g.iter()
            .map(|r| (r.key(), r.clone()))
            .collect::<BTreeMap<RecordKey, RecordSet>>()
    };
    let (from, to) = (keyed(from), keyed(to));
    let mut changes: Vec<Change> = from
        .iter()
        .filter(|(k, r)| to.get(k) != Some(r))
        .map(|(_, r)| Change::Delete(r.clone()))
        .collect();
    changes.extend(
        to.iter()
            .filter(|(k, r)| from.get(k) != Some(r))
            .map(|(_, r)| Change::Create(r.clone())),
    );
    changes
}

/// Values that a change counts against the limit of a batch.
fn values_in(change: &Change) -> usize {
    match change {
        Change::Create(r) | Change::Delete(r) | Change::Upsert(r) => r.values.len().max(1),
    }
}

/// Characters that a change counts against the limit of a batch.
fn characters_in(change: &Change) -> usize {
    match change {
        // An UPSERT counts twice.
        Change::Upsert(r) => 2 * r.values.iter().map(String::len).sum::<usize>(),
        Change::Create(r) | Change::Delete(r) => r.values.iter().map(String::len).sum(),
    }
}

/// Batches of whole names, in order, each within Route 53's limits.
fn batches(names: Vec<Vec<Change>>) -> Vec<Vec<Change>> {
    let mut out: Vec<Vec<Change>> = vec![];
    let (mut values, mut characters) = (0, 0);
    for changes in names {
        let v: usize = changes.iter().map(values_in).sum();
        let c: usize = changes.iter().map(characters_in).sum();
        match out.last_mut() {
            Some(open)
                if open.is_empty()
                    || values + v <= BATCH_VALUES && characters + c <= BATCH_CHARACTERS =>
            {
                open.extend(changes);
                (values, characters) = (values + v, characters + c);
            }
            _ => {
                out.push(changes);
                (values, characters) = (v, c);
            }
        }
    }
    out.retain(|b| !b.is_empty());
    out
}

impl Handover {
    fn names<'a>(&'a self, cx: &'a Cx) -> impl Iterator<Item = &'a Name> {
        cx.plan
            .names
            .iter()
            .filter(|n| n.zone_id == self.zone_id && self.names.contains(&n.host))
    }

    async fn groups(
        &self,
        cx: &Cx,
        config: &Config,
    ) -> StepResult<BTreeMap<String, Vec<RecordSet>>> {
        let records = cx.world.dns.records(&self.zone_id).await?;
        Ok(self
            .names(cx)
            .map(|n| (n.host.clone(), group(n, &records, config)))
            .collect())
    }

    /// The groups as green's ExternalDNS wants to find them.
    async fn wanted(
        &self,
        cx: &Cx,
        config: &Config,
        before: &BTreeMap<String, Vec<RecordSet>>,
    ) -> StepResult<BTreeMap<String, Vec<RecordSet>>> {
        let zone = zone_of(cx, &self.zone_id).await?;
        let endpoints = desired(cx, config).await?;
        let mut wanted = BTreeMap::new();
        for name in self.names(cx) {
            let mine: Vec<edns::Endpoint> = endpoints
                .iter()
                .filter(|e| e.name == name.host)
                .cloned()
                .collect();
            if mine.is_empty() {
                return Err(refused(
                    format!("record/{}/{}", name.host, name.rtype),
                    format!(
                        "green wants no record of this name: {} on green has no load balancer address, or lost its host",
                        name.object
                    ),
                    "look at the object on green; then resume (externaldns.md rule 10)",
                ));
            }
            let old = &before[&name.host];
            let mut records: Vec<RecordSet> = old
                .iter()
                .map(|r| {
                    let mut r = r.clone();
                    if r.rtype == "TXT" {
                        // Only the first value is read by ExternalDNS; the others are somebody's data and stay (trap 28).
                        if let Some(first) = r.values.first_mut()
                            && let Some(value) = edns::rewrite_owner(first, &config.owner)
                        {
                            *first = value;
                        }
                    }
                    r
                })
                .collect();
            for change in edns::plan_changes(config, &records, &mine, &zone) {
                let (key, new) = match change {
                    Change::Create(r) | Change::Upsert(r) => (r.key(), Some(r)),
                    Change::Delete(r) => (r.key(), None),
                };
                records.retain(|r| r.key() != key);
                records.extend(new);
            }
            // The model must be content with its own result, or the name would be rewritten in its first loop.
            if let Some(left) = edns::plan_changes(config, &records, &mine, &zone).first() {
                return Err(refused(
                    format!("record/{}/{}", name.host, name.rtype),
                    format!("green's ExternalDNS would not settle on it: {left:?}"),
                    "a change of record type or routing is not a handover: prepare it under blue first (externaldns.md trap 14)",
                ));
            }
            records.sort_by_key(RecordSet::key);
            wanted.insert(name.host.clone(), records);
        }
        Ok(wanted)
    }

    /// Sends batches that bring each host from what is there now to `to`, whole names at a time.
    async fn send(
        &self,
        cx: &Cx,
        now: &BTreeMap<String, Vec<RecordSet>>,
        to: &BTreeMap<String, Vec<RecordSet>>,
    ) -> StepResult<Vec<String>> {
        let names = to
            .iter()
            .map(|(host, target)| batch(&now[host], target))
            .collect();
        let mut ids = vec![];
        for changes in batches(names) {
            ids.push(self.change(cx, &changes).await?);
        }
        Ok(ids)
    }

    async fn change(&self, cx: &Cx, changes: &[Change]) -> StepResult<String> {
        Ok(cx
            .world
            .dns
            .change(
                &self.zone_id,
                changes,
                &format!("crossfade {} {}", cx.run, cx.step),
            )
            .await?)
    }
}

fn changed(host: &str, expected: &[RecordSet], found: &[RecordSet]) -> StepError {
    let text = |g: &[RecordSet]| serde_json::to_string(g).unwrap_or_default();
    StepError::Changed {
        object: format!("record/{host}"),
        expected: text(expected),
        found: text(found),
    }
}

#[async_trait]
impl Step for Handover {
    async fn observe(&self, cx: &Cx) -> StepResult<Value> {
        let config = green_config(cx)?;
        Ok(json!(Before {
            groups: self.groups(cx, &config).await?
        }))
    }

    async fn apply(&self, cx: &Cx, before: &Value) -> StepResult<Value> {
        let before: Before = recorded(&cx.step, before)?;
        super::edns::still_stopped(cx).await?;
        let config = green_config(cx)?;
        let wanted = self.wanted(cx, &config, &before.groups).await?;
        let now = self.groups(cx, &config).await?;
        for (host, group) in &now {
            if group != &before.groups[host] && group != &wanted[host] {
                return Err(changed(host, &before.groups[host], group));
            }
        }
        let changes = self.send(cx, &now, &wanted).await?;
        Ok(json!(After {
            groups: wanted,
            changes
        }))
    }

    async fn settle(&self, cx: &Cx, _: &Value, after: &Value) -> StepResult<Settle> {
        let after: After = recorded(&cx.step, after)?;
        let poll = Duration::from_secs(2);
        for change in &after.changes {
            if !cx.world.dns.in_sync(change).await? {
                return Ok(Settle::Pending {
                    why: "Route 53 to have the change on all name servers".into(),
                    poll,
                });
            }
        }
        let now = self.groups(cx, &green_config(cx)?).await?;
        for (host, group) in &now {
            if group != &after.groups[host] {
                return Ok(Settle::Failed {
                    why: format!("{host} was changed again by somebody right after its handover"),
                    remedy: "find the other writer of the zone; roll back the cutover".into(),
                });
            }
        }
        for host in after.groups.keys() {
            match ask(cx, host, Via::Dns).await {
                Ok(answer) if answer.status < 500 => {}
                Ok(answer) => {
                    return Ok(Settle::Pending {
                        why: format!("{host} answers {}", answer.status),
                        poll,
                    });
                }
                Err(e) if e.is_transient() => {
                    return Ok(Settle::Pending {
                        why: format!("{host}: {}", e.message),
                        poll,
                    });
                }
                Err(e) => return Err(e.into()),
            }
        }
        Ok(Settle::Ready)
    }

    async fn undo(&self, cx: &Cx, before: &Value, after: Option<&Value>) -> StepResult<()> {
        let before: Before = recorded(&cx.step, before)?;
        let after: Option<After> = after.map(|a| recorded(&cx.step, a)).transpose()?;
        let config = green_config(cx)?;
        let now = self.groups(cx, &config).await?;
        for (host, group) in &now {
            let as_written = after
                .as_ref()
                .is_some_and(|a| a.groups.get(host) == Some(group));
            // Green's own ExternalDNS may have added ownership TXTs since; another address is somebody's decision and stops us.
            let greens = owners(group) == BTreeSet::from([config.owner.clone()])
                && after
                    .as_ref()
                    .and_then(|a| a.groups.get(host))
                    .is_none_or(|written| addresses(written) == addresses(group));
            if group != &before.groups[host] && !as_written && !greens {
                return Err(changed(host, &before.groups[host], group));
            }
        }
        if now != before.groups {
            let log = |undo: Undo| {
                cx.log
                    .progress(&cx.step, json!(undo))
                    .map_err(StepError::Journal)
            };
            log(Undo::Sending(cx.world.clock.now()))?;
            log(Undo::Sent(self.send(cx, &now, &before.groups).await?))?;
        }
        Ok(())
    }

    async fn undone(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<Settle> {
        let before: Before = recorded(&cx.step, before)?;
        if self.groups(cx, &green_config(cx)?).await? == before.groups {
            let pending = Ok(Settle::Pending {
                why: "Route 53 to have the old records on all name servers".into(),
                poll: Duration::from_secs(2),
            });
            if let Some(record) = cx.log.recorded(&cx.step).last() {
                match recorded::<Undo>(&cx.step, record)? {
                    Undo::Sent(changes) => {
                        for change in changes {
                            if !cx.world.dns.in_sync(&change).await? {
                                return pending;
                            }
                        }
                    }
                    Undo::Sending(at) if cx.world.clock.now() < at + IN_SYNC => return pending,
                    Undo::Sending(_) => {}
                }
            }
            return Ok(Settle::Ready);
        }
        Ok(Settle::Pending {
            why: "the zone to show the old records".into(),
            poll: Duration::from_secs(2),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name of one address and one ownership TXT, handed over.
    fn name(n: usize) -> Vec<Change> {
        let record = |rtype: &str, value: String| RecordSet {
            name: format!("h{n}.shop.test."),
            rtype: rtype.into(),
            ttl: Some(60),
            values: vec![value],
            alias: None,
            set_identifier: None,
            routing: Default::default(),
        };
        let txt =
            |owner: &str| record("TXT", edns::heritage_value(owner, "ingress/storefront/web"));
        vec![
            Change::Delete(record("A", "203.0.113.10".into())),
            Change::Delete(txt("shop-blue")),
            Change::Create(record("A", "198.51.100.10".into())),
            Change::Create(txt("shop-green")),
        ]
    }

    #[test]
    fn a_batch_keeps_to_the_characters_of_route_53_before_its_values_and_never_splits_a_name() {
        let all = batches((0..220).map(name).collect());
        // 880 values would be one batch of at most 900; their TXTs have more than 32 000 characters.
        assert!(all.len() > 1);
        assert_eq!(all.iter().map(Vec::len).sum::<usize>(), 880);
        for b in &all {
            assert!(b.iter().map(characters_in).sum::<usize>() <= 32_000);
            assert_eq!(b.len() % 4, 0, "a name is in one batch");
        }
        assert_eq!(batches((0..20).map(name).collect()).len(), 1);
        assert!(batches(vec![vec![]]).is_empty());
    }
}
