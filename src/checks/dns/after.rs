//! The zone as the handover leaves it, and what green's ExternalDNS would do with it: the dry run of externaldns.md rule 11, without green.

use crate::checks::look::status;
use crate::checks::{BlueObject, Input, look};
use crate::edns::{self, Config, Endpoint, Policy, rewrite_owner, txt_variants};
use crate::plan::model::Name;
use crate::snapshot::model::ZoneRecords;
use crate::world::dns::{Change, RecordSet};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// A stand-in for the address that green's load balancers will have (TEST-NET-2).
const GREEN_ADDRESS: &str = "198.51.100.7";

/// Green's ExternalDNS as the plan makes it.
pub(super) fn green_config(i: &Input) -> Option<Config> {
    i.generated
        .iter()
        .filter(|o| o["kind"] == "Deployment")
        .find_map(|o| Config::of_workload(o)?.ok())
}

/// Another target of the same sort: an address for an address, a load balancer of the same region and generation for a load balancer.
fn other(target: &str) -> String {
    if target.parse::<std::net::IpAddr>().is_ok() {
        GREEN_ADDRESS.into()
    } else {
        format!("green-{}", target.trim_end_matches('.'))
    }
}

/// Target that a record shows.
fn target_of(r: &RecordSet) -> Option<String> {
    r.alias
        .as_ref()
        .map(|a| a.name.clone())
        .or_else(|| r.values.first().cloned())
}

/// What an object's load balancer is on blue: by its status, else by the record that ExternalDNS made of it.
fn blue_target(o: &BlueObject, records: &BTreeMap<&str, String>) -> Option<String> {
    look::load_balancer(o.object)
        .into_iter()
        .next()
        .or_else(|| records.get(o.name.as_str()).cloned())
}

fn record_targets<'a>(i: &Input<'a>) -> BTreeMap<&'a str, String> {
    let hosts = i.hosts();
    let mut out = BTreeMap::new();
    for z in i.zones() {
        for r in &z.records {
            if let Some(n) = hosts.get(r.name.trim_end_matches('.'))
                && matches!(r.rtype.as_str(), "A" | "CNAME")
                && let Some(t) = target_of(r)
            {
                out.entry(n.object.as_str()).or_insert(t);
            }
        }
    }
    out
}

/// Ingresses and Services that go to green, as blue has them, each with the target that blue's load balancer has. One at a time: all of them together
/// are a good part of a snapshot.
pub(super) fn on_blue<'a>(i: &Input<'a>) -> impl Iterator<Item = Cow<'a, Value>> {
    let records = record_targets(i);
    i.moving(&["Ingress", "Service"])
        .map(move |o| match blue_target(o, &records) {
            Some(t) => leading_to(o.object, status(&t)),
            None => Cow::Borrowed(o.object),
        })
}

/// An object with another status.
fn leading_to(object: &Value, status: Value) -> Cow<'_, Value> {
    if object.get("status") == Some(&status) {
        return Cow::Borrowed(object);
    }
    let mut out = object.clone();
    out["status"] = status;
    Cow::Owned(out)
}

/// The same objects as green has them, each with a load balancer of green's where blue has one.
fn on_green<'a>(i: &Input<'a>) -> impl Iterator<Item = Cow<'a, Value>> {
    let records = record_targets(i);
    i.moving(&["Ingress", "Service"]).filter_map(move |o| {
        let green = o.on_green()?;
        Some(match blue_target(o, &records) {
            Some(t) => leading_to(green, status(&other(&t))),
            None => Cow::Borrowed(green),
        })
    })
}

/// A zone after the handover of ownership, and what green's ExternalDNS wants and would change.
pub(in crate::checks) struct After<'a> {
    /// The zone as it was read.
    pub zone: &'a ZoneRecords,
    /// Names of this zone by host.
    pub names: BTreeMap<&'a str, &'a Name>,
    /// What green wants.
    pub wanted: Vec<Endpoint>,
    /// What it would change in its first loop if it ran as `sync`, TXTs left out.
    pub changes: Vec<Change>,
}

/// The dry run, zone by zone; empty without an ExternalDNS on green. Several checks look at it: it is done once.
pub(in crate::checks) fn dry_run<'a>(i: &Input<'a>) -> Vec<After<'a>> {
    let Some(mut config) = green_config(i) else {
        return vec![];
    };
    // Policy sync shows everything that it has in mind; upsert-only only hides the deletes until finalize.
    config.policy = Policy::Sync;
    let wanted = edns::desired(on_green(i), &config);
    i.snapshot
        .zones
        .iter()
        .filter(|z| config.sees_zone(&z.zone))
        .map(|zone| {
            let names: BTreeMap<&str, &Name> = i
                .names
                .iter()
                .filter(|n| n.zone_id == zone.zone.id)
                .map(|n| (n.host.as_str(), n))
                .collect();
            let records = handed_over(zone, &names, &config);
            let changes = edns::plan_changes(&config, &records, &wanted, &zone.zone)
                .into_iter()
                .filter(|c| record_of(c).rtype != "TXT")
                .collect();
            let wanted = wanted
                .iter()
                .filter(|e| edns::in_zone(&e.name, &zone.zone.name))
                .cloned()
                .collect();
            After {
                zone,
                names,
                wanted,
                changes,
            }
        })
        .collect()
}

/// The records of a zone with green as the owner of every name that is handed over, in all variants (externaldns.md rule 7).
fn handed_over(
    zone: &ZoneRecords,
    names: &BTreeMap<&str, &Name>,
    config: &Config,
) -> Vec<RecordSet> {
    let mut ours: BTreeSet<String> = names.values().flat_map(|n| n.txt.clone()).collect();
    for n in names.values() {
        for alias in [false, true] {
            ours.extend(txt_variants(&n.host, &n.rtype, alias, config));
        }
    }
    zone.records
        .iter()
        .map(|r| {
            let mut r = r.clone();
            if r.rtype == "TXT"
                && ours.contains(&r.name)
                && let Some(first) = r.values.first_mut()
                && let Some(value) = rewrite_owner(first, &config.owner)
            {
                *first = value;
            }
            r
        })
        .collect()
}

/// The record of a change.
pub(super) fn record_of(c: &Change) -> &RecordSet {
    match c {
        Change::Create(r) | Change::Delete(r) | Change::Upsert(r) => r,
    }
}

/// Host of a change, without final dot.
pub(super) fn host_of(c: &Change) -> &str {
    record_of(c).name.trim_end_matches('.')
}
