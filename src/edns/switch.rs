//! The handover of names as data: which record sets belong to a host, what they become, and in which batches they travel. Pure, so that the
//! plan's dry run, the step and the tests against real binaries mean the same.

use super::config::Config;
use super::planner::plan_changes;
use super::registry::{
    Heritage, heritage_value, is_registry_txt, ownership, rewrite_owner, txt_variants, written,
};
use super::sources::Endpoint;
use super::{DEFAULT_TTL, bare, fqdn, in_zone};
use crate::world::dns::{Change, RecordKey, RecordSet, Zone};
use std::collections::{BTreeMap, BTreeSet};

/// Values that Route 53 takes in one batch; an UPSERT counts twice (externaldns.md rule 17).
pub const BATCH_VALUES: usize = 1000;
/// Characters of all values that Route 53 takes in one batch; an UPSERT counts twice (externaldns.md rule 17).
pub const BATCH_CHARACTERS: usize = 32_000;
/// TTL of an alias to a load balancer, seconds: it has none of its own (externaldns.md 3).
pub const ALIAS_TTL: u32 = 60;

/// A host whose records move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Name without final dot, `*` plain.
    pub host: String,
    /// Object that wants it.
    pub object: String,
    /// Set identifiers of the record sets that move; `None` stands for the simple one.
    pub sets: BTreeSet<Option<String>>,
    /// Ownership TXTs that the plan knows, final dot.
    pub txt: BTreeSet<String>,
}

/// Hosts that share a record set, with all record sets of theirs: they change in one batch or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The hosts, in order.
    pub hosts: Vec<Host>,
    /// Addresses, aliases and ownership TXTs, by key.
    pub records: Vec<RecordSet>,
}

impl Unit {
    /// Hosts joined by `+`: one host nearly always.
    pub fn key(&self) -> String {
        let hosts: Vec<&str> = self.hosts.iter().map(|h| h.host.as_str()).collect();
        hosts.join("+")
    }
}

/// Why a name is held back while the others go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Why.
    pub why: String,
    /// What to do.
    pub remedy: String,
}

impl Hold {
    /// A reason and a way out.
    pub fn new(why: impl Into<String>, remedy: impl Into<String>) -> Hold {
        Hold {
            why: why.into(),
            remedy: remedy.into(),
        }
    }
}

/// Whether a record set holds an address of a host, not its ownership.
pub fn is_address(r: &RecordSet) -> bool {
    matches!(r.rtype.as_str(), "A" | "AAAA" | "CNAME")
}

/// The record sets of each host, in whatever TXT format; hosts that share one (`a-team` and `team`, trap 17) come together. TXTs of owners
/// that are not among `owners` are somebody else's; no owners at all stands for any.
pub fn units(
    hosts: &[Host],
    records: &[RecordSet],
    config: &Config,
    owners: &BTreeSet<String>,
) -> Vec<Unit> {
    let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (n, r) in records.iter().enumerate() {
        by_name.entry(bare(&r.name)).or_default().push(n);
    }
    let mut unit_of: BTreeMap<usize, usize> = BTreeMap::new();
    let mut parts: Vec<(BTreeSet<usize>, BTreeSet<usize>)> = vec![];
    for (h, host) in hosts.iter().enumerate() {
        let mut members = members(host, &by_name, records, config, owners);
        let mut together = BTreeSet::from([h]);
        let shared: BTreeSet<usize> = members
            .iter()
            .filter_map(|r| unit_of.get(r))
            .copied()
            .collect();
        for u in shared {
            let (hosts, sets) = std::mem::take(&mut parts[u]);
            together.extend(hosts);
            members.extend(sets);
        }
        for r in &members {
            unit_of.insert(*r, parts.len());
        }
        parts.push((together, members));
    }
    parts
        .into_iter()
        .filter(|(together, _)| !together.is_empty())
        .map(|(together, members)| {
            let mut records: Vec<RecordSet> =
                members.into_iter().map(|n| records[n].clone()).collect();
            records.sort_by_key(RecordSet::key);
            Unit {
                hosts: together.into_iter().map(|h| hosts[h].clone()).collect(),
                records,
            }
        })
        .collect()
}

fn members(
    host: &Host,
    by_name: &BTreeMap<String, Vec<usize>>,
    records: &[RecordSet],
    config: &Config,
    owners: &BTreeSet<String>,
) -> BTreeSet<usize> {
    let mut txt: BTreeSet<String> = host.txt.iter().map(|t| bare(t)).collect();
    for rtype in ["A", "AAAA", "CNAME"] {
        for alias in [false, true] {
            txt.extend(
                txt_variants(&host.host, rtype, alias, config)
                    .iter()
                    .map(|t| bare(t)),
            );
        }
    }
    let at = |name: &str| by_name.get(name).into_iter().flatten().copied();
    let mine = |n: &usize| host.sets.contains(&records[*n].set_identifier);
    let mut found: BTreeSet<usize> = at(&host.host)
        .filter(|n| is_address(&records[*n]))
        .filter(mine)
        .collect();
    for name in &txt {
        found.extend(at(name).filter(mine).filter(|n| {
            owner_of(&records[*n]).is_some_and(|o| owners.is_empty() || owners.contains(&o))
        }));
    }
    found
}

/// Owner that an ownership TXT names.
pub fn owner_of(r: &RecordSet) -> Option<String> {
    if r.rtype != "TXT" {
        return None;
    }
    Heritage::parse(r.values.first()?)?
        .owner()
        .map(String::from)
}

/// Owners that the TXTs of these record sets name.
pub fn owners_of(records: &[RecordSet]) -> BTreeSet<String> {
    records.iter().filter_map(owner_of).collect()
}

/// Longest time, seconds, for which a cache may hold an address of these record sets.
pub fn longest_ttl(records: &[RecordSet]) -> u32 {
    records
        .iter()
        .filter(|r| is_address(r))
        .map(|r| {
            if r.alias.is_some() {
                ALIAS_TTL
            } else {
                r.ttl.unwrap_or(0)
            }
        })
        .max()
        .unwrap_or(0)
}

/// The record sets of a unit as green's ExternalDNS wants to find them: owner rewritten in every TXT (rule 7), TXTs that its version reads added,
/// then what its planner would still change. So its first loop has nothing to do.
pub fn target(
    unit: &Unit,
    endpoints: &[&Endpoint],
    config: &Config,
    zone: &Zone,
) -> Result<Vec<RecordSet>, Hold> {
    for h in &unit.hosts {
        if !endpoints.iter().any(|e| e.name == h.host) {
            return Err(Hold::new(
                format!(
                    "{} on green has no load balancer address, or lost the host",
                    h.object
                ),
                "look at the object on green; then resume (externaldns.md rule 10)",
            ));
        }
        if !unit
            .records
            .iter()
            .any(|r| is_address(r) && bare(&r.name) == h.host)
        {
            return Err(Hold::new(
                "its record is gone from the zone",
                "look who deleted it; then resume",
            ));
        }
    }
    if !config.manages("AAAA") && unit.records.iter().any(|r| r.rtype == "AAAA") {
        return Err(Hold::new(
            "it has an AAAA record, which green's ExternalDNS does not manage: IPv6 clients would stay on blue (externaldns.md trap 13)",
            "make a new plan: it lets green manage AAAA where blue does",
        ));
    }
    let mut records = unit.records.clone();
    for r in records.iter_mut().filter(|r| r.rtype == "TXT") {
        // Only the first value is read by ExternalDNS; the others are somebody's data and stay (trap 28).
        if let Some(first) = r.values.first_mut()
            && let Some(value) = rewrite_owner(first, &config.owner)
        {
            *first = value;
        }
    }
    complete(unit, &mut records, config, zone);
    let endpoints: Vec<Endpoint> = endpoints.iter().map(|e| (*e).clone()).collect();
    for change in plan_changes(config, &records, &endpoints, zone) {
        let (key, new) = match change {
            Change::Create(r) | Change::Upsert(r) => (r.key(), Some(r)),
            Change::Delete(r) => (r.key(), None),
        };
        let old = records
            .iter()
            .position(|r| r.key() == key)
            .map(|n| records.remove(n));
        records.extend(new.map(|r| keeping(r, old)));
    }
    settled(unit, &records, &endpoints, config, zone)?;
    records.sort_by_key(RecordSet::key);
    Ok(records)
}

/// Adds the TXTs that green's version reads first and that are not there: without `a-a-team` the legacy `a-team` would belong to `team` (trap 17).
fn complete(unit: &Unit, records: &mut Vec<RecordSet>, config: &Config, zone: &Zone) {
    let mut there: BTreeSet<RecordKey> = records.iter().map(RecordSet::key).collect();
    for r in unit.records.iter().filter(|r| is_address(r)) {
        let Some(host) = unit.hosts.iter().find(|h| h.host == bare(&r.name)) else {
            continue;
        };
        for name in written(&r.name, &r.rtype, r.alias.is_some(), config) {
            let txt = RecordSet {
                name,
                rtype: "TXT".into(),
                ttl: Some(DEFAULT_TTL),
                values: vec![heritage_value(&config.owner, &host.object)],
                alias: None,
                set_identifier: r.set_identifier.clone(),
                routing: r.routing.clone(),
            };
            // The typed TXT of an apex lies outside its zone (trap 16): the legacy one alone has to do.
            if in_zone(&txt.name, &zone.name) && there.insert(txt.key()) {
                records.push(txt);
            }
        }
    }
}

/// A TXT keeps the values after the first, which ExternalDNS neither reads nor knows.
fn keeping(mut new: RecordSet, old: Option<RecordSet>) -> RecordSet {
    if let Some(old) = old.filter(|o| new.rtype == "TXT" && is_registry_txt(o)) {
        new.values.extend(old.values.into_iter().skip(1));
    }
    new
}

/// Changes that are none: an UPSERT of what is there. Green sends one each loop where a TXT of its own can never exist (trap 16).
pub fn changes_nothing(change: &Change, records: &[RecordSet]) -> bool {
    matches!(change, Change::Upsert(r) if records.iter().any(|have| have == r))
}

/// The model must be content with its own result and own it, and Route 53 must take it.
fn settled(
    unit: &Unit,
    records: &[RecordSet],
    endpoints: &[Endpoint],
    config: &Config,
    zone: &Zone,
) -> Result<(), Hold> {
    const PREPARE: &str = "a change of record type or routing is not a handover: prepare it under blue first (externaldns.md trap 14)";
    let left = plan_changes(config, records, endpoints, zone)
        .into_iter()
        .find(|c| !changes_nothing(c, records) && !only_more_values(c, records));
    if let Some(left) = left {
        return Err(Hold::new(
            format!("green's ExternalDNS would not settle on it: {left:?}"),
            PREPARE,
        ));
    }
    for h in &unit.hosts {
        let here: Vec<&RecordSet> = records
            .iter()
            .filter(|r| is_address(r) && bare(&r.name) == h.host)
            .collect();
        let cname = here.iter().any(|r| r.rtype == "CNAME");
        if cname && here.iter().any(|r| r.rtype != "CNAME") {
            return Err(Hold::new(
                "green wants another record type than it has",
                PREPARE,
            ));
        }
    }
    let strange = ownership(records, config).into_iter().find(|o| {
        matches!(o.key.rtype.as_str(), "A" | "AAAA" | "CNAME")
            && o.owner.as_deref() != Some(config.owner.as_str())
    });
    if let Some(o) = strange {
        return Err(Hold::new(
            format!(
                "green's ExternalDNS would read its owner as {}, not as its own",
                o.owner.as_deref().unwrap_or("nobody")
            ),
            "compare --txt-prefix, --txt-suffix and --txt-wildcard-replacement of both sides (externaldns.md trap 7)",
        ));
    }
    Ok(())
}

/// An UPSERT of a TXT that differs only in values after the first: they are kept, and only a green before 0.18 would drop them.
fn only_more_values(change: &Change, records: &[RecordSet]) -> bool {
    let Change::Upsert(r) = change else {
        return false;
    };
    r.rtype == "TXT"
        && records.iter().any(|have| {
            have.key() == r.key()
                && have.ttl == r.ttl
                && have.values.len() > 1
                && have.values.first() == r.values.first()
        })
}

/// A batch that turns one group into the other, each old value a precondition: Route 53 itself refuses it after a change by somebody else.
pub fn batch(from: &[RecordSet], to: &[RecordSet]) -> Vec<Change> {
    let keyed = |g: &[RecordSet]| -> BTreeMap<RecordKey, RecordSet> {
        g.iter().map(|r| (r.key(), r.clone())).collect()
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

/// The record of a change.
pub fn record_of(change: &Change) -> &RecordSet {
    match change {
        Change::Create(r) | Change::Delete(r) | Change::Upsert(r) => r,
    }
}

/// Values and characters that changes count against a batch, as Route 53 counts: an UPSERT twice, an alias as one value.
pub fn weight(changes: &[Change]) -> (usize, usize) {
    changes.iter().fold((0, 0), |(values, characters), c| {
        let times = if matches!(c, Change::Upsert(_)) { 2 } else { 1 };
        let r = record_of(c);
        let text: usize = r.values.iter().map(|v| v.chars().count()).sum();
        (
            values + times * r.values.len().max(1),
            characters + times * text,
        )
    })
}

/// Whether changes fit into one batch.
pub fn fits(changes: &[Change]) -> bool {
    let (values, characters) = weight(changes);
    values <= BATCH_VALUES && characters <= BATCH_CHARACTERS
}

/// Packs whole groups into as few batches as their order allows; no group is split. A group that fits into no batch gets one of its own.
pub fn pack<T>(groups: impl IntoIterator<Item = (T, Vec<Change>)>) -> Vec<Vec<(T, Vec<Change>)>> {
    let mut out: Vec<Vec<(T, Vec<Change>)>> = vec![];
    let (mut values, mut characters) = (0, 0);
    for (what, changes) in groups.into_iter().filter(|(_, c)| !c.is_empty()) {
        let (v, c) = weight(&changes);
        match out.last_mut() {
            Some(open) if values + v <= BATCH_VALUES && characters + c <= BATCH_CHARACTERS => {
                open.push((what, changes));
                (values, characters) = (values + v, characters + c);
            }
            _ => {
                out.push(vec![(what, changes)]);
                (values, characters) = (v, c);
            }
        }
    }
    out
}

/// Whether a refusal of Route 53 names a record set of this group.
pub fn named_in(message: &str, changes: &[Change]) -> bool {
    let message = message.to_lowercase();
    changes.iter().any(|c| {
        let name = fqdn(&record_of(c).name);
        let quoted = |n: &str| {
            ["'", "\"", " "].iter().any(|before| {
                ["'", "\"", " ", ",", "]", ")"]
                    .iter()
                    .any(|after| message.contains(&format!("{before}{n}{after}")))
            }) || message.ends_with(&format!(" {n}"))
        };
        quoted(&name) || quoted(&name.replacen('*', "\\052", 1)) || quoted(&bare(&name))
    })
}
