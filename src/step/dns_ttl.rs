//! `dns.ttl` lowers the TTLs of names that will be switched; `dns.ttl-wait` lets the old ones run out of every cache.
//!
//! A TTL that comes from an annotation is lowered there, because ExternalDNS would put it back within one loop; any other is lowered in
//! the zone. Aliases have no TTL and registry TXTs are never touched: a later DELETE of the pair would fail (externaldns.md rule 5, trap 11).

use super::handover::IN_SYNC;
use super::util::{Expect, at, must_get, params, recorded, refused, set};
use super::{Cx, Settle, Step, StepError, StepResult};
use crate::edns::switch;
use crate::plan::model::Name;
use crate::world::dns::{Change, RecordSet};
use crate::world::{Class, Error};
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The annotation, under the prefix that ExternalDNS before 0.22 reads.
const TTL_ANNOTATION: &str = "/metadata/annotations/external-dns.alpha.kubernetes.io~1ttl";

/// Makes `dns.ttl`.
pub fn make(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(params::<Lower>("dns.ttl", value)?))
}

/// Makes `dns.ttl-wait`.
pub fn make_wait(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(params::<Wait>("dns.ttl-wait", value)?))
}

#[derive(Deserialize)]
struct Lower {
    zone_id: String,
    names: Vec<String>,
    low_ttl: u32,
}

#[derive(Serialize, Deserialize)]
struct Before {
    /// Record sets by host.
    records: BTreeMap<String, RecordSet>,
    /// Annotation values by object.
    annotations: BTreeMap<String, Value>,
}

#[derive(Serialize, Deserialize)]
struct After {
    /// Only in journals of before there could be several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    #[serde(default)]
    changes: Vec<String>,
    /// TTLs that blue's ExternalDNS wrote for us: the ids of its changes are not known.
    #[serde(default)]
    by_blue: bool,
    /// Largest TTL that was served before, seconds.
    longest_old_ttl: u32,
}

impl Lower {
    fn names<'a>(&'a self, cx: &'a Cx) -> impl Iterator<Item = &'a Name> {
        cx.plan
            .names
            .iter()
            .filter(|n| n.zone_id == self.zone_id && self.names.contains(&n.host))
    }

    async fn records(&self, cx: &Cx) -> StepResult<BTreeMap<String, RecordSet>> {
        let zone = cx.world.dns.records(&self.zone_id).await?;
        let mut found = BTreeMap::new();
        for name in self.names(cx) {
            let record = zone.iter().find(|r| {
                r.name.trim_end_matches('.') == name.host
                    && r.rtype == name.rtype
                    && r.set_identifier == name.set_identifier
                    && r.alias.is_none()
            });
            let record = record.ok_or_else(|| {
                refused(
                    format!("record/{}/{}", name.host, name.rtype),
                    "it is gone from the zone, or became an alias",
                    "make a new plan",
                )
            })?;
            found.insert(key(name), record.clone());
        }
        Ok(found)
    }

    /// Gives each record the TTL that `ttl` says, leaving out those that have it already; answers the ids of the changes.
    async fn retime(
        &self,
        cx: &Cx,
        now: &BTreeMap<String, RecordSet>,
        ttl: impl Fn(&str) -> Option<u32>,
    ) -> StepResult<Vec<String>> {
        let mut work = vec![];
        for name in self.names(cx).filter(|n| !n.ttl_annotation) {
            let record = &now[&key(name)];
            let wanted = ttl(&key(name));
            if wanted.is_some() && record.ttl != wanted {
                let new = RecordSet {
                    ttl: wanted,
                    ..record.clone()
                };
                work.push((
                    (),
                    vec![Change::Delete(record.clone()), Change::Create(new)],
                ));
            }
        }
        let mut ids = vec![];
        for batch in switch::pack(work) {
            let changes: Vec<Change> = batch.into_iter().flat_map(|(_, c)| c).collect();
            let comment = format!("crossfade {} {}", cx.run, cx.step);
            match cx.world.dns.change(&self.zone_id, &changes, &comment).await {
                Ok(id) => ids.push(id),
                // A record moved since we looked: look again, its other fields are blue's to change (blue's ExternalDNS still runs).
                Err(e) if e.class == Class::Conflict => {
                    return Err(Error::new(Class::NotReady, e.at, e.message)
                        .remedy("a record changes under our hands: look who writes it")
                        .into());
                }
                Err(e) => return Err(e.into()),
            }
        }
        Ok(ids)
    }
}

/// What a name goes by here: its host, and its set identifier where it has one.
fn key(name: &Name) -> String {
    match &name.set_identifier {
        None => name.host.clone(),
        Some(id) => format!("{}#{id}", name.host),
    }
}

#[async_trait]
impl Step for Lower {
    async fn observe(&self, cx: &Cx) -> StepResult<Value> {
        let records = self.records(cx).await?;
        let mut annotations = BTreeMap::new();
        for name in self.names(cx).filter(|n| n.ttl_annotation) {
            let blue = must_get(cx.world.blue.as_ref(), &cx.blue_id(&name.object)?).await?;
            annotations.insert(name.object.clone(), at(&blue, TTL_ANNOTATION).clone());
        }
        Ok(json!(Before {
            records,
            annotations
        }))
    }

    async fn apply(&self, cx: &Cx, before: &Value) -> StepResult<Value> {
        let before: Before = recorded(&cx.step, before)?;
        for (object, value) in &before.annotations {
            set(
                cx.world.blue.as_ref(),
                &cx.blue_id(object)?,
                TTL_ANNOTATION,
                Expect::Value(value),
                &json!(self.low_ttl.to_string()),
            )
            .await?;
        }
        let now = self.records(cx).await?;
        let changes = self.retime(cx, &now, |_| Some(self.low_ttl)).await?;
        Ok(json!(After {
            change: None,
            changes,
            by_blue: !before.annotations.is_empty(),
            longest_old_ttl: before
                .records
                .values()
                .filter_map(|r| r.ttl)
                .max()
                .unwrap_or(0)
        }))
    }

    async fn settle(&self, cx: &Cx, _: &Value, after: &Value) -> StepResult<Settle> {
        let after: After = recorded(&cx.step, after)?;
        let poll = Duration::from_secs(2);
        let late: Vec<String> = self
            .records(cx)
            .await?
            .into_iter()
            .filter(|(_, r)| r.ttl != Some(self.low_ttl))
            .map(|(host, _)| host)
            .collect();
        if !late.is_empty() {
            return Ok(Settle::Pending {
                why: format!(
                    "the zone to show TTL {} for {}",
                    self.low_ttl,
                    late.join(", ")
                ),
                poll,
            });
        }
        for change in after.change.iter().chain(&after.changes) {
            if !cx.world.dns.in_sync(change).await? {
                return Ok(Settle::Pending {
                    why: "Route 53 to have the lower TTLs on all name servers".into(),
                    poll,
                });
            }
        }
        Ok(Settle::Ready)
    }

    async fn undo(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<()> {
        let before: Before = recorded(&cx.step, before)?;
        let low = json!(self.low_ttl.to_string());
        for (object, value) in &before.annotations {
            set(
                cx.world.blue.as_ref(),
                &cx.blue_id(object)?,
                TTL_ANNOTATION,
                Expect::Value(&low),
                value,
            )
            .await?;
        }
        let now = self.records(cx).await?;
        for name in self.names(cx).filter(|n| !n.ttl_annotation) {
            let (found, old) = (
                now[&key(name)].ttl,
                before.records.get(&key(name)).and_then(|r| r.ttl),
            );
            if found != Some(self.low_ttl) && found != old {
                return Err(StepError::Changed {
                    object: format!("record/{}/{} TTL", name.host, name.rtype),
                    expected: self.low_ttl.to_string(),
                    found: found.map_or("none".into(), |t| t.to_string()),
                });
            }
        }
        self.retime(cx, &now, |name| {
            before.records.get(name).and_then(|r| r.ttl)
        })
        .await?;
        Ok(())
    }

    async fn undone(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<Settle> {
        let before: Before = recorded(&cx.step, before)?;
        let now = self.records(cx).await?;
        let late: Vec<&str> = before
            .records
            .iter()
            .filter(|(host, r)| now.get(*host).is_none_or(|n| n.ttl != r.ttl))
            .map(|(host, _)| host.as_str())
            .collect();
        if late.is_empty() {
            return Ok(Settle::Ready);
        }
        Ok(Settle::Pending {
            why: format!(
                "blue's ExternalDNS to write the old TTL of {}",
                late.join(", ")
            ),
            poll: Duration::from_secs(2),
        })
    }
}

#[derive(Deserialize)]
struct Wait {
    ttl_step: String,
}

#[derive(Serialize, Deserialize)]
struct Deadline {
    deadline: Timestamp,
}

#[async_trait]
impl Step for Wait {
    async fn observe(&self, _: &Cx) -> StepResult<Value> {
        Ok(json!({}))
    }
    async fn apply(&self, cx: &Cx, _: &Value) -> StepResult<Value> {
        let after: After = recorded(&self.ttl_step, &cx.output(&self.ttl_step)?)?;
        // From now on, because now every name server shows the low TTL: the last old answer was given before. Of a TTL that blue's ExternalDNS
        // wrote only the zone shows it yet: its name servers may be a minute behind.
        let late = if after.by_blue {
            IN_SYNC
        } else {
            SignedDuration::ZERO
        };
        let old = SignedDuration::from_secs(i64::from(after.longest_old_ttl));
        let deadline = cx.world.clock.now() + late + old;
        Ok(json!(Deadline { deadline }))
    }
    async fn settle(&self, cx: &Cx, _: &Value, after: &Value) -> StepResult<Settle> {
        let Deadline { deadline } = recorded(&cx.step, after)?;
        let left = deadline.duration_since(cx.world.clock.now()).as_secs();
        if left <= 0 {
            return Ok(Settle::Ready);
        }
        Ok(Settle::Pending {
            why: format!(
                "caches to forget the old TTLs, until {deadline}{}",
                super::util::hours(left)
            ),
            poll: Duration::from_secs((left as u64).clamp(1, 60)),
        })
    }
    async fn undo(&self, _: &Cx, _: &Value, _: Option<&Value>) -> StepResult<()> {
        Ok(())
    }
}
