//! Route 53, as strict as the real one (eks.md 7, externaldns.md 4): batches are atomic, CREATE and DELETE mean what they
//! say, and a change takes its time to reach the name servers.

use super::Twin;
use super::state::{Ev, State};
use crate::snapshot::model::Snapshot;
use crate::world::dns::{Change, Dns, RecordKey, RecordSet, Zone};
use crate::world::{Class, Error, Result};
use async_trait::async_trait;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

/// Route 53's order: labels from the right, then type, then set identifier.
type Order = (Vec<String>, String, String);

/// One record that reached the name servers; `None` when it is gone.
pub(super) type Published = (RecordKey, Option<RecordSet>);

#[derive(Clone)]
pub(super) struct ZoneState {
    pub zone: Zone,
    pub records: BTreeMap<Order, RecordSet>,
    /// What the name servers answer with.
    pub published: BTreeMap<Order, RecordSet>,
    /// Moves with every accepted batch.
    pub serial: u64,
}

#[derive(Clone, Default)]
pub(super) struct DnsState {
    pub zones: BTreeMap<String, ZoneState>,
    changes: BTreeMap<String, Duration>,
    /// Moves when the name servers' answers moved.
    pub published: u64,
}

impl DnsState {
    pub fn new(snapshot: &Snapshot) -> Self {
        let mut zones = BTreeMap::new();
        for z in &snapshot.zones {
            let records: BTreeMap<Order, RecordSet> = z
                .records
                .iter()
                .map(|r| (order(&r.key()), r.clone()))
                .collect();
            zones.insert(
                z.zone.id.clone(),
                ZoneState {
                    zone: z.zone.clone(),
                    published: records.clone(),
                    records,
                    serial: 1,
                },
            );
        }
        DnsState {
            zones,
            ..DnsState::default()
        }
    }

    /// What the name servers say about a name: the public zone with the longest matching name answers.
    pub fn answer(&self, name: &str, rtype: &str) -> Option<&RecordSet> {
        let name = format!("{}.", name.trim_end_matches('.').to_lowercase());
        let zone = self
            .zones
            .values()
            .filter(|z| {
                !z.zone.private
                    && (name == z.zone.name || name.ends_with(&format!(".{}", z.zone.name)))
            })
            .max_by_key(|z| z.zone.name.len())?;
        let first = |n: &str| {
            let from = (labels(n), rtype.to_owned(), String::new());
            let (at, record) = zone.published.range(from.clone()..).next()?;
            (at.0 == from.0 && at.1 == rtype).then_some(record)
        };
        first(&name).or_else(|| {
            let (_, parent) = name.split_once('.')?;
            first(&format!("*.{parent}"))
        })
    }
}

fn labels(name: &str) -> Vec<String> {
    name.trim_end_matches('.')
        .rsplit('.')
        .map(|l| l.replace('*', "\\052"))
        .collect()
}

fn order(key: &RecordKey) -> Order {
    (
        labels(&key.name),
        key.rtype.clone(),
        key.set_identifier.clone().unwrap_or_default(),
    )
}

/// A change that Route 53 refuses whatever the zone holds.
fn malformed(zone: &Zone, r: &RecordSet) -> Option<String> {
    if !(r.name == zone.name || r.name.ends_with(&format!(".{}", zone.name))) {
        return Some(format!(
            "RRSet with DNS name {} is not permitted in zone {}",
            r.name, zone.name
        ));
    }
    match (&r.alias, r.ttl) {
        (Some(_), Some(_)) => return Some("an alias record may have no TTL".into()),
        (None, None) => return Some("a record without alias target must have a TTL".into()),
        (Some(_), None) if !r.values.is_empty() => {
            return Some("an alias record may have no values".into());
        }
        (None, Some(_)) if r.values.is_empty() => {
            return Some("ResourceRecords must not be empty".into());
        }
        _ => {}
    }
    if r.rtype == "CNAME" && r.name == zone.name {
        return Some(format!(
            "RRSet of type CNAME with DNS name {} is not permitted at apex",
            r.name
        ));
    }
    if r.rtype == "CNAME" && r.values.len() > 1 {
        return Some("a CNAME has one value".into());
    }
    for v in &r.values {
        let bad = match r.rtype.as_str() {
            "A" => v.parse::<std::net::Ipv4Addr>().is_err(),
            "AAAA" => v.parse::<std::net::Ipv6Addr>().is_err(),
            "TXT" => !(v.starts_with('"') && v.ends_with('"') && v.len() >= 2),
            _ => false,
        };
        if bad {
            return Some(format!("{} value {v} of {} is not valid", r.rtype, r.name));
        }
    }
    if r.set_identifier.is_none() && !r.routing.is_empty() {
        return Some("routing fields need a SetIdentifier".into());
    }
    None
}

/// Values compare as sets: Route 53 does not care about their order in a DELETE.
fn same(a: &RecordSet, b: &RecordSet) -> bool {
    let sorted = |r: &RecordSet| {
        let mut v = r.values.clone();
        v.sort();
        v
    };
    a.ttl == b.ttl && a.alias == b.alias && a.routing == b.routing && sorted(a) == sorted(b)
}

/// Which routing policy a record has.
fn policy(r: &RecordSet) -> String {
    match &r.set_identifier {
        None => "simple".into(),
        Some(_) => r
            .routing
            .keys()
            .find(|k| k.as_str() != "HealthCheckId")
            .cloned()
            .unwrap_or_else(|| "simple".into()),
    }
}

impl ZoneState {
    fn find(&self, key: &RecordKey) -> Option<&RecordSet> {
        self.records.get(&order(key))
    }

    /// Applies one change, or says why it cannot.
    fn apply(&mut self, change: &Change) -> std::result::Result<(), String> {
        let (Change::Create(r) | Change::Delete(r) | Change::Upsert(r)) = change;
        let key = r.key();
        let at = order(&key);
        let kind = &r.rtype;
        match change {
            Change::Delete(_) => match self.find(&key) {
                None => {
                    return Err(format!(
                        "Tried to delete resource record set [name='{}', type='{kind}'] but it was not found",
                        r.name
                    ));
                }
                Some(have) if !same(have, r) => {
                    return Err(format!(
                        "Tried to delete resource record set [name='{}', type='{kind}'] but the values provided do not match the current values",
                        r.name
                    ));
                }
                Some(_) if r.name == self.zone.name && matches!(kind.as_str(), "NS" | "SOA") => {
                    return Err(format!("the {kind} record of the apex may not be deleted"));
                }
                Some(_) => {
                    self.records.remove(&at);
                }
            },
            Change::Create(_) if self.find(&key).is_some() => {
                return Err(format!(
                    "Tried to create resource record set [name='{}', type='{kind}'] but it already exists",
                    r.name
                ));
            }
            Change::Create(_) | Change::Upsert(_) => {
                let others = |z: &ZoneState| {
                    let from = (at.0.clone(), String::new(), String::new());
                    z.records
                        .range(from..)
                        .take_while(|(k, _)| k.0 == at.0)
                        .filter(|(k, _)| **k != at)
                        .map(|(_, r)| (r.rtype.clone(), policy(r)))
                        .collect::<Vec<_>>()
                };
                for (rtype, p) in others(self) {
                    if (rtype == "CNAME") != (kind == "CNAME") {
                        return Err(format!(
                            "RRSet of type {kind} with DNS name {} is not permitted as it conflicts with other records with the same DNS name",
                            r.name
                        ));
                    }
                    if rtype == *kind && p != policy(r) {
                        return Err(format!(
                            "RRSet {} {kind}: routing policy differs from the other records of that name and type",
                            r.name
                        ));
                    }
                }
                if let Some(a) = &r.alias
                    && a.zone_id == self.zone.id
                {
                    let target = RecordKey {
                        name: a.name.clone(),
                        rtype: kind.clone(),
                        set_identifier: None,
                    };
                    if self.find(&target).is_none() {
                        return Err(format!(
                            "Tried to create an alias that targets {}, type {kind}, but the alias target name does not exist",
                            a.name
                        ));
                    }
                }
                self.records.insert(at, r.clone());
            }
        }
        Ok(())
    }
}

impl State {
    /// ChangeResourceRecordSets: all or nothing.
    pub fn change_records(&mut self, zone_id: &str, changes: &[Change]) -> Result<String> {
        let now = self.now;
        let in_sync = self.secs(40);
        let Some(zone) = self.dns.zones.get_mut(zone_id) else {
            return Err(Error::new(
                Class::NotFound,
                format!("zone/{zone_id}"),
                "NoSuchHostedZone",
            ));
        };
        let at = format!("zone/{}", zone.zone.name.trim_end_matches('.'));
        let refuse = |why: String| Error::new(Class::Refused, &at, why);
        if changes.is_empty() {
            return Err(refuse(
                "InvalidInput: a batch needs at least one change".into(),
            ));
        }
        let (mut count, mut chars) = (0, 0);
        for change in changes {
            let (Change::Create(r) | Change::Delete(r) | Change::Upsert(r)) = change;
            let weight = if matches!(change, Change::Upsert(_)) {
                2
            } else {
                1
            };
            count += weight * r.values.len().max(1);
            chars += weight * r.values.iter().map(String::len).sum::<usize>();
            if let Some(why) = malformed(&zone.zone, r) {
                return Err(refuse(format!("InvalidChangeBatch: {why}")));
            }
        }
        if count > 1000 || chars > 32_000 {
            return Err(refuse(format!(
                "InvalidChangeBatch: {count} records and {chars} characters exceed 1000 and 32000"
            )));
        }
        let mut undo: Vec<(Order, Option<RecordSet>)> = vec![];
        let mut touched: Vec<RecordKey> = vec![];
        let mut why = None;
        for change in changes {
            let (Change::Create(r) | Change::Delete(r) | Change::Upsert(r)) = change;
            let key = r.key();
            undo.push((order(&key), zone.find(&key).cloned()));
            if let Err(e) = zone.apply(change) {
                undo.pop();
                why = Some(e);
                break;
            }
            touched.push(key);
        }
        if let Some(why) = why {
            for (at, before) in undo.into_iter().rev() {
                match before {
                    Some(r) => zone.records.insert(at, r),
                    None => zone.records.remove(&at),
                };
            }
            return Err(
                Error::new(Class::Conflict, &at, format!("InvalidChangeBatch: {why}"))
                    .remedy("list the zone again and compare"),
            );
        }
        zone.serial += 1;
        let mut seen = HashSet::new();
        let published = touched
            .into_iter()
            .filter(|k| seen.insert(k.clone()))
            .map(|k| {
                let record = zone.find(&k).cloned();
                (k, record)
            })
            .collect();
        let id = format!("C{:010}", self.dns.changes.len() + 1);
        self.dns.changes.insert(id.clone(), now + in_sync);
        self.at(in_sync, Ev::Publish(zone_id.into(), published));
        self.check_foreign_records(zone_id);
        Ok(id)
    }

    /// A batch reached the name servers.
    pub fn publish(&mut self, zone_id: &str, records: Vec<Published>) {
        let Some(zone) = self.dns.zones.get_mut(zone_id) else {
            return;
        };
        for (key, record) in records {
            match record {
                Some(r) => zone.published.insert(order(&key), r),
                None => zone.published.remove(&order(&key)),
            };
        }
        self.dns.published += 1;
    }
}

#[async_trait]
impl Dns for Twin {
    async fn zones(&self) -> Result<Vec<Zone>> {
        self.call("dns zones".into(), false, |s| {
            Ok(s.dns.zones.values().map(|z| z.zone.clone()).collect())
        })
        .await
    }
    async fn records(&self, zone_id: &str) -> Result<Vec<RecordSet>> {
        self.call(format!("dns records {zone_id}"), false, |s| {
            match s.dns.zones.get(zone_id) {
                Some(z) => Ok(z.records.values().cloned().collect()),
                None => Err(Error::new(
                    Class::NotFound,
                    format!("zone/{zone_id}"),
                    "NoSuchHostedZone",
                )),
            }
        })
        .await
    }
    async fn change(&self, zone_id: &str, changes: &[Change], _comment: &str) -> Result<String> {
        self.call(format!("dns change {zone_id}"), true, |s| {
            s.change_records(zone_id, changes)
        })
        .await
    }
    async fn in_sync(&self, change_id: &str) -> Result<bool> {
        self.call(format!("dns in-sync {change_id}"), false, |s| {
            s.dns
                .changes
                .get(change_id)
                .map(|at| s.now >= *at)
                .ok_or_else(|| Error::new(Class::NotFound, change_id, "NoSuchChange"))
        })
        .await
    }
}
