//! The loop of an instance: current records against wanted endpoints, then policy, then owner (externaldns.md 1.7, 2, 4).

use super::aws::canonical_zone;
use super::config::{Config, Policy};
use super::registry::{Heritage, heritage_of, is_registry_txt, written};
use super::sources::Endpoint;
use super::{DEFAULT_TTL, bare, fqdn, in_zone};
use crate::world::dns::{Alias, Change, RecordSet, Zone};
use std::collections::{BTreeMap, BTreeSet};

/// Changes of one name that belong together: the record and its registry TXTs. From 0.13.4 a failed batch is repeated group by group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Name with final dot.
    pub name: String,
    /// Changes in the order in which they are sent.
    pub changes: Vec<Change>,
}

/// All changes that an instance would send to a zone in one loop, in its order: UPSERT, DELETE, CREATE. Empty when it would leave the zone alone.
pub fn plan_changes(
    config: &Config,
    records: &[RecordSet],
    desired: &[Endpoint],
    zone: &Zone,
) -> Vec<Change> {
    let mut all: Vec<Change> = plan_groups(config, records, desired, zone)
        .into_iter()
        .flat_map(|g| g.changes)
        .collect();
    all.sort_by_key(rank);
    all
}

fn rank(change: &Change) -> u8 {
    match change {
        Change::Upsert(_) => 0,
        Change::Delete(_) => 1,
        Change::Create(_) => 2,
    }
}

/// A wanted record set with the resource that wants it.
#[derive(Clone, Debug)]
struct Want {
    record: RecordSet,
    configured_ttl: Option<u32>,
    resource: String,
    sort: Vec<String>,
}

/// A present record set with what its TXT says.
#[derive(Clone, Debug)]
struct Have {
    record: RecordSet,
    heritage: Heritage,
    owned: bool,
    /// The typed TXT that this version expects is missing: force-update (externaldns.md 1.3).
    incomplete: bool,
}

/// Rows of a plan by name and set identifier (externaldns.md 4).
type Rows = BTreeMap<(String, Option<String>), (Vec<Have>, Vec<Want>)>;

#[derive(Default)]
struct Plan {
    create: Vec<(Want, Heritage)>,
    update: Vec<(Want, Have)>,
    delete: Vec<Have>,
}

/// The same, grouped by record.
pub fn plan_groups(
    config: &Config,
    records: &[RecordSet],
    desired: &[Endpoint],
    zone: &Zone,
) -> Vec<Group> {
    if !config.sees_zone(zone) {
        return vec![];
    }
    let noop = config.registry == "noop";
    let visible = |name: &str| in_zone(name, &zone.name) && config.matches_domain(&bare(name));
    // Looked up for each record: a zone of thousands must not be walked again each time.
    let txt_names: BTreeSet<String> = records
        .iter()
        .filter(|t| t.rtype == "TXT")
        .map(|t| fqdn(&t.name))
        .collect();
    let mut rows: Rows = BTreeMap::new();
    for (r, heritage) in records.iter().zip(heritage_of(records, config)) {
        if is_registry_txt(r) && !noop || !config.manages(&r.rtype) || !visible(&r.name) {
            continue;
        }
        let mut heritage = heritage.filter(|_| !noop).unwrap_or_default();
        if let Some(old) = &config.migrate_from
            && config.version.at_least(20, 0)
            && heritage.owner() == Some(old)
        {
            heritage.labels.insert("owner".into(), config.owner.clone());
        }
        let owned = noop || heritage.owner() == Some(config.owner.as_str());
        let incomplete = owned
            && !noop
            && config.version.at_least(12, 1)
            && written(&r.name, &r.rtype, r.alias.is_some(), config)
                .iter()
                .any(|n| !txt_names.contains(n));
        rows.entry((fqdn(&r.name), r.set_identifier.clone()))
            .or_default()
            .0
            .push(Have {
                record: r.clone(),
                heritage,
                owned,
                incomplete,
            });
    }
    for e in desired.iter().filter(|e| visible(&e.name)) {
        for want in wants(e, config, zone) {
            if config.manages(&want.record.rtype) {
                rows.entry((want.record.name.clone(), want.record.set_identifier.clone()))
                    .or_default()
                    .1
                    .push(want);
            }
        }
    }
    let mut plan = Plan::default();
    for (have, want) in rows.into_values() {
        if config.version.at_least(14, 0) {
            row_by_type(have, want, config, &mut plan);
        } else {
            row_by_name(have, want, config, &mut plan);
        }
    }
    // The policy comes first, then the owner filter (externaldns.md 2).
    match config.policy {
        Policy::Sync => {}
        Policy::UpsertOnly => plan.delete.clear(),
        Policy::CreateOnly => {
            plan.delete.clear();
            plan.update.clear();
        }
    }
    plan.delete.retain(|h| h.owned);
    plan.update.retain(|(_, h)| h.owned);
    groups(plan, config, records, zone)
}

/// What a wanted endpoint becomes in Route 53.
fn wants(e: &Endpoint, config: &Config, zone: &Zone) -> Vec<Want> {
    let target = e.targets.first().map(String::as_str).unwrap_or("");
    let lb = canonical_zone(target).filter(|_| !config.prefer_cname);
    let alias_zone = match (e.rtype.as_str(), lb, e.alias) {
        ("CNAME", Some(id), _) => Some(id.to_string()),
        // alias annotation on a name of the same zone.
        ("CNAME", None, true) => Some(zone.id.clone()),
        _ => None,
    };
    let make = |rtype: &str, alias: Option<Alias>| Want {
        record: RecordSet {
            name: fqdn(&e.name),
            rtype: rtype.into(),
            ttl: alias.is_none().then(|| e.ttl.unwrap_or(DEFAULT_TTL)),
            values: if alias.is_some() {
                vec![]
            } else {
                e.targets.clone()
            },
            alias,
            set_identifier: e.set_identifier.clone(),
            routing: e.routing.clone(),
        },
        configured_ttl: e.ttl,
        resource: e.resource.clone(),
        sort: e.targets.clone(),
    };
    let Some(zone_id) = alias_zone else {
        return vec![make(&e.rtype, None)];
    };
    let alias = Alias {
        zone_id,
        name: fqdn(target),
        evaluate_target_health: e
            .evaluate_target_health
            .unwrap_or(config.evaluate_target_health),
    };
    let mut out = vec![make("A", Some(alias.clone()))];
    if config.version.at_least(16, 0) {
        // Since 0.16 every alias A comes with an alias AAAA (externaldns.md 4, trap 13).
        out.push(make("AAAA", Some(alias)));
    }
    out
}

/// With several candidates the one of the current resource wins, else the smallest target (externaldns.md 1.2).
fn choose(mut want: Vec<Want>, current: Option<&Have>) -> Option<Want> {
    want.sort_by(|a, b| a.sort.cmp(&b.sort));
    let resource = current.and_then(|h| h.heritage.resource());
    let index = want
        .iter()
        .position(|w| Some(w.resource.as_str()) == resource)
        .unwrap_or(0);
    (index < want.len()).then(|| want.swap_remove(index))
}

fn needs_update(want: &Want, have: &Have, config: &Config) -> bool {
    let (w, h) = (&want.record, &have.record);
    let same_targets = match (&w.alias, &h.alias) {
        (Some(a), Some(b)) => fqdn(&a.name) == fqdn(&b.name),
        (None, None) => {
            let set = |r: &RecordSet| {
                let mut v: Vec<String> = r
                    .values
                    .iter()
                    .map(|x| x.trim_end_matches('.').to_lowercase())
                    .collect();
                v.sort();
                v
            };
            set(w) == set(h)
        }
        _ => false,
    };
    let health = match (&w.alias, &h.alias) {
        (Some(a), Some(b)) => a.evaluate_target_health == b.evaluate_target_health,
        _ => true,
    };
    // An alias pretends 300; from 0.13.6 a TTL annotation on one is normalised away, before it means an UPSERT every loop (trap 12).
    let ttl = want.configured_ttl.is_none_or(|t| {
        w.alias.is_some() && config.version.at_least(13, 6) || t == h.ttl.unwrap_or(DEFAULT_TTL)
    });
    let migrate = config.migrate_from.is_some() && config.version.at_least(20, 0);
    !same_targets
        || !health
        || !ttl
        || w.rtype != h.rtype
        || w.routing != h.routing
        || have.incomplete
        // While the migrate flag is set every owned record counts as changed, in each loop (externaldns.md 1.8; 0.21.0 also where all is equal: tests/edns_ages).
        || migrate
}

/// Labels of a new record.
fn labels_of(want: &Want, owner: &str) -> Heritage {
    let mut h = Heritage::default();
    h.labels.insert("owner".into(), owner.into());
    h.labels.insert("resource".into(), want.resource.clone());
    h
}

/// Up to 0.13: one row a name, whatever the types; the last listed record is the current one.
fn row_by_name(mut have: Vec<Have>, want: Vec<Want>, config: &Config, plan: &mut Plan) {
    let current = have.pop();
    let chosen = choose(want, current.as_ref());
    match (current, chosen) {
        (None, None) => {}
        (None, Some(w)) => {
            let h = labels_of(&w, &config.owner);
            plan.create.push((w, h));
        }
        (Some(h), None) => plan.delete.push(h),
        (Some(h), Some(w)) => {
            if needs_update(&w, &h, config) {
                plan.update.push((w, h));
            }
        }
    }
}

/// From 0.14: types apart, and a new type only when all current rows are ours (externaldns.md 1.7).
fn row_by_type(have: Vec<Have>, mut want: Vec<Want>, config: &Config, plan: &mut Plan) {
    if want.is_empty() {
        plan.delete.extend(have);
        return;
    }
    // A CNAME excludes other types of its name: with both wanted the CNAME is dropped.
    if want.iter().any(|w| w.record.rtype != "CNAME") {
        want.retain(|w| w.record.rtype != "CNAME");
    }
    let all_ours = have.iter().all(|h| h.owned);
    let taken = !have.is_empty();
    let mut by_type: BTreeMap<String, (Option<Have>, Vec<Want>)> = BTreeMap::new();
    for h in have {
        let rtype = h.record.rtype.clone();
        by_type.entry(rtype).or_default().0 = Some(h);
    }
    for w in want {
        let rtype = w.record.rtype.clone();
        by_type.entry(rtype).or_default().1.push(w);
    }
    for (current, want) in by_type.into_values() {
        let chosen = choose(want, current.as_ref());
        match (current, chosen) {
            (Some(h), None) => plan.delete.push(h),
            (None, Some(w)) if !taken || all_ours => {
                let h = labels_of(&w, &config.owner);
                plan.create.push((w, h));
            }
            (Some(h), Some(w)) if needs_update(&w, &h, config) => plan.update.push((w, h)),
            _ => {}
        }
    }
}

fn groups(plan: Plan, config: &Config, records: &[RecordSet], zone: &Zone) -> Vec<Group> {
    let txts = |r: &RecordSet, heritage: &Heritage| -> Vec<RecordSet> {
        if config.registry != "txt" || r.rtype == "TXT" {
            return vec![];
        }
        written(&r.name, &r.rtype, r.alias.is_some(), config)
            .into_iter()
            // A name outside the zone is dropped with a debug line: the typed TXT of an apex (trap 16).
            .filter(|n| in_zone(n, &zone.name))
            .map(|name| RecordSet {
                name,
                rtype: "TXT".into(),
                ttl: Some(DEFAULT_TTL),
                values: vec![heritage.value()],
                alias: None,
                set_identifier: r.set_identifier.clone(),
                routing: r.routing.clone(),
            })
            .collect()
    };
    let keys: BTreeSet<_> = records.iter().map(RecordSet::key).collect();
    let present = |t: &RecordSet| keys.contains(&t.key());
    let mut by_name: BTreeMap<String, Vec<Change>> = BTreeMap::new();
    let mut push = |name: &str, mut changes: Vec<Change>| {
        by_name.entry(name.into()).or_default().append(&mut changes)
    };
    for (w, heritage) in &plan.create {
        let mut changes = vec![Change::Create(w.record.clone())];
        for t in txts(&w.record, heritage) {
            // From 0.19 a TXT that is there already is skipped, whoever owns it (externaldns.md 1.7, trap 8).
            if !(config.version.at_least(19, 0) && present(&t)) {
                changes.push(Change::Create(t));
            }
        }
        push(&w.record.name, changes);
    }
    for (w, h) in &plan.update {
        // The update inherits the owner; the resource is that of the wanted endpoint.
        let mut heritage = h.heritage.clone();
        heritage
            .labels
            .insert("resource".into(), w.resource.clone());
        let replace = w.record.rtype != h.record.rtype
            || w.record.alias.is_some() != h.record.alias.is_some()
            || w.record.routing.keys().ne(h.record.routing.keys());
        let mut changes = if replace {
            vec![
                Change::Delete(h.record.clone()),
                Change::Create(w.record.clone()),
            ]
        } else {
            vec![Change::Upsert(w.record.clone())]
        };
        changes.extend(txts(&w.record, &heritage).into_iter().map(Change::Upsert));
        push(&w.record.name, changes);
    }
    for h in &plan.delete {
        // Name, value and TTL of the TXT are made again, present or not: Route 53 refuses the pair when one is not (externaldns.md 1.3).
        let mut changes = vec![Change::Delete(h.record.clone())];
        changes.extend(txts(&h.record, &h.heritage).into_iter().map(Change::Delete));
        push(&fqdn(&h.record.name), changes);
    }
    by_name
        .into_iter()
        .map(|(name, mut changes)| {
            changes.sort_by_key(rank);
            Group { name, changes }
        })
        .collect()
}
