//! Names to hand over, and who writes DNS on blue (externaldns.md 8, rules 1, 3, 4, 5).

use super::model::{Finding, Name, Severity};
use crate::edns::{self, Config, Holder};
use crate::object::{annotation, digest};
use crate::snapshot::roll::Found;
use crate::spec::model::{DnsWave, Spec};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What the planner knows about DNS.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// Names to hand over, sorted by wave and host.
    pub names: Vec<Name>,
    /// Blue's ExternalDNS instances by object.
    pub instances: Vec<(String, Config)>,
    /// Zone ids by name without final dot, for zones that are touched.
    pub zones: BTreeMap<String, String>,
    /// Whether blue keeps AAAA records: then green has to as well, or IPv6 clients would stay on blue.
    pub ipv6: bool,
    /// Hashes of record sets that will be touched.
    pub basis: BTreeMap<String, String>,
    /// Findings.
    pub findings: Vec<Finding>,
}

impl Names {
    /// Objects with a name whose TTL is lowered.
    pub fn lowered(&self, low_ttl: u32) -> BTreeSet<String> {
        self.names
            .iter()
            .filter(|n| n.ttl.is_some_and(|t| t > low_ttl))
            .map(|n| n.object.clone())
            .collect()
    }
}

fn finding(id: &str, severity: Severity, object: &str, message: String, remedy: &str) -> Finding {
    Finding {
        id: id.into(),
        severity,
        object: object.into(),
        message,
        remedy: remedy.into(),
        source: format!("checks.md {id}"),
        waived: None,
    }
}

impl Names {
    /// Takes out names whose object green will not have: they would point at nothing there.
    pub fn only_copied(&mut self, verdicts: &[super::model::Verdict]) {
        let coming: BTreeSet<&str> = verdicts
            .iter()
            .filter(|v| v.target.is_some())
            .map(|v| v.object.as_str())
            .collect();
        let (stay, gone): (Vec<Name>, Vec<Name>) = std::mem::take(&mut self.names)
            .into_iter()
            .partition(|n| coming.contains(n.object.as_str()));
        self.names = stay;
        for n in gone {
            self.basis
                .retain(|k, _| *k != format!("record/{}/{}", n.host, n.rtype));
            self.findings.push(finding(
                "DNS-14",
                Severity::Blocker,
                &format!("host/{}", n.host),
                format!(
                    "{} is not copied to green, so the name cannot be handed over",
                    n.object
                ),
                "Copy the object, or take the host out of it on blue before the migration.",
            ));
        }
    }
}

/// ExternalDNS instances among blue's workloads.
fn instances(snapshot: &Found, findings: &mut Vec<Finding>) -> Vec<(String, Config)> {
    let mut out = vec![];
    for e in snapshot.blue.entries() {
        if !matches!(
            e.id.kind.as_str(),
            "Deployment"
                | "StatefulSet"
                | "DaemonSet"
                | "ReplicaSet"
                | "ReplicationController"
                | "CronJob"
                | "Job"
                | "Pod"
        ) || e.child && made_by_workload(e.object)
        {
            continue;
        }
        for found in Config::all_of_workload(e.object) {
            match found {
                Ok(c) => out.push((e.name.clone(), c)),
                Err(why) => findings.push(finding(
                    "DNS-05",
                    Severity::Blocker,
                    &e.name,
                    why.message,
                    "Give the image a version tag (or the pods a label app.kubernetes.io/version) and correct its arguments: ownership cannot be told otherwise.",
                )),
            }
        }
    }
    out.sort_by(|a, b| a.0.cmp(&b.0));
    out
}

/// Whether a workload that is listed itself makes the object; one that an operator's own resource makes is an instance of its own.
fn made_by_workload(object: &Value) -> bool {
    let owners = object.pointer("/metadata/ownerReferences");
    owners
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .any(|o| {
            matches!(
                o["kind"].as_str(),
                Some(
                    "Deployment"
                        | "StatefulSet"
                        | "DaemonSet"
                        | "ReplicaSet"
                        | "ReplicationController"
                        | "CronJob"
                        | "Job"
                )
            )
        })
}

/// Classifies every record of the zones and picks those that move.
pub(super) fn names(spec: &Spec, snapshot: &Found) -> Names {
    let mut n = Names::default();
    n.instances = instances(snapshot, &mut n.findings);
    if n.instances.is_empty() {
        return n;
    }
    let objects: HashMap<&str, &Value> = snapshot
        .blue
        .entries()
        .iter()
        .map(|e| (e.name.as_str(), e.object))
        .collect();
    let wanted_zone = |name: &str| {
        spec.dns.zones.is_empty()
            || spec
                .dns
                .zones
                .iter()
                .any(|z| z.trim_end_matches('.') == name)
    };
    for zone_name in &spec.dns.zones {
        let bare = zone_name.trim_end_matches('.');
        if !snapshot
            .zones
            .iter()
            .any(|z| z.zone.name.trim_end_matches('.') == bare)
        {
            n.findings.push(finding(
                "ID-03",
                Severity::NotChecked,
                &format!("zone/{bare}"),
                "the zone was not read: its records are unknown".into(),
                "Run discover with access to Route 53, or give the zone's listing.",
            ));
        }
    }
    for (instance, config) in &n.instances {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for z in snapshot.zones.iter().filter(|z| config.sees_zone(&z.zone)) {
            if !seen.insert(&z.zone.name) {
                n.findings.push(finding(
                    "DNS-01",
                    Severity::Blocker,
                    instance,
                    format!(
                        "sees two zones named {} (public and private): their records are one row to it, and a change goes to both (externaldns.md trap 20)",
                        z.zone.name.trim_end_matches('.')
                    ),
                    "Give it --aws-zone-type or --zone-id-filter, and let it write both zones anew.",
                ));
            }
        }
    }
    let mut taken: BTreeMap<(String, String, Option<String>), usize> = BTreeMap::new();
    for zr in &snapshot.zones {
        let zone_name = zr.zone.name.trim_end_matches('.').to_string();
        if !wanted_zone(&zone_name) {
            continue;
        }
        let mut sets: BTreeMap<_, &crate::world::dns::RecordSet> = BTreeMap::new();
        for set in &zr.records {
            sets.entry(set.key()).or_insert(set);
        }
        for (instance, config) in &n.instances {
            if !config.sees_zone(&zr.zone) {
                continue;
            }
            if config.registry != "txt" {
                n.findings.push(finding(
                    "DNS-01",
                    Severity::Blocker,
                    instance,
                    format!(
                        "registry {} keeps no ownership in the zone that could be handed over",
                        config.registry
                    ),
                    "Move blue's ExternalDNS to --registry=txt first.",
                ));
                continue;
            }
            let wanted: BTreeMap<String, String> = edns::desired(&snapshot.blue.objects, config)
                .into_iter()
                .map(|e| (e.name, e.resource))
                .collect();
            let classes: BTreeMap<_, edns::Class> = edns::classify(&zr.records, config)
                .into_iter()
                .map(|c| (c.key.clone(), c))
                .collect();
            for (o, r) in edns::ownership(&zr.records, config)
                .into_iter()
                .zip(zr.records.iter().filter(|r| !is_registry(r)))
            {
                let host = o.key.name.trim_end_matches('.').to_string();
                let record = o.key.to_string();
                if !matches!(o.key.rtype.as_str(), "A" | "AAAA" | "CNAME") {
                    continue;
                }
                let ours = o.owner.as_deref() == Some(config.owner.as_str());
                if !ours {
                    if let Some(object) = wanted.get(&host) {
                        let owner = match &classes[&o.key].holder {
                            Holder::Unreadable => {
                                "an owner that stands encrypted in its TXT".into()
                            }
                            _ => o.owner.clone().unwrap_or_else(|| "nobody".into()),
                        };
                        n.findings.push(finding(
                            "DNS-02",
                            Severity::Blocker,
                            &record,
                            format!("{object} wants this name, but its record belongs to {owner}"),
                            "Adopt it on blue first, or remove the host from the object.",
                        ));
                    }
                    continue;
                }
                let resource = o.resource.clone().unwrap_or_default();
                let Some(object) = objects.get(resource.as_str()).copied() else {
                    n.findings.push(finding(
                        "DNS-02",
                        Severity::Warning,
                        &record,
                        format!("owned by blue for {resource}, which blue does not have: the name stays where it is"),
                        "Let blue's ExternalDNS clean it up, or delete it by hand.",
                    ));
                    continue;
                };
                n.ipv6 |= o.key.rtype == "AAAA";
                for key in std::iter::once(&o.key).chain(&o.txt) {
                    if let Some(set) = sets.get(key) {
                        n.basis.insert(key.to_string(), digest(&json!(set)));
                    }
                }
                let txt = o.txt.iter().map(|k| k.name.clone());
                let row = (
                    zr.zone.id.clone(),
                    host.clone(),
                    o.key.set_identifier.clone(),
                );
                if let Some(at) = taken.get(&row) {
                    // A and AAAA of one name move together.
                    let name = &mut n.names[*at];
                    name.txt.extend(txt);
                    name.txt.sort();
                    name.txt.dedup();
                    continue;
                }
                taken.insert(row, n.names.len());
                n.zones.insert(zone_name.clone(), zr.zone.id.clone());
                let annotated =
                    annotation(object, &format!("{}ttl", config.annotation_prefix)).is_some();
                n.names.push(Name {
                    host,
                    zone_id: zr.zone.id.clone(),
                    rtype: o.key.rtype.clone(),
                    object: resource,
                    ttl: if r.alias.is_some() { None } else { r.ttl },
                    ttl_annotation: annotated && r.alias.is_none(),
                    wave: 0,
                    txt: txt.collect(),
                    set_identifier: o.key.set_identifier.clone(),
                    owner: Some(config.owner.clone()),
                });
            }
        }
    }
    waves(spec, &mut n);
    n
}

fn is_registry(r: &crate::world::dns::RecordSet) -> bool {
    r.rtype == "TXT"
        && r.values
            .first()
            .is_some_and(|v| edns::Heritage::parse(v).is_some())
}

/// The canary alone first, then declared waves, then waves of the declared size, hosts in order.
fn waves(spec: &Spec, n: &mut Names) {
    n.names
        .sort_by(|a, b| (&a.host, &a.zone_id).cmp(&(&b.host, &b.zone_id)));
    let canary = spec
        .dns
        .canary
        .as_deref()
        .map(|c| c.trim_end_matches('.').to_lowercase());
    if let Some(c) = &canary
        && !n.names.iter().any(|x| x.host == *c)
    {
        n.findings.push(finding(
            "DNS-04",
            Severity::Blocker,
            &format!("host/{c}"),
            "the canary is not among the names that blue owns".into(),
            "Name a host under dns.canary that the plan hands over.",
        ));
    }
    let mut wave_of: BTreeMap<String, u32> = BTreeMap::new();
    let mut next = u32::from(canary.is_some());
    if let Some(c) = &canary {
        wave_of.insert(c.clone(), 0);
    }
    // Waves by list come first, in their order; a host belongs to the first that names it or its namespace.
    for (number, wave) in spec.dns.waves.iter().enumerate() {
        let mut any = false;
        for name in &n.names {
            if takes(wave, name) && !wave_of.contains_key(&name.host) {
                wave_of.insert(name.host.clone(), next);
                any = true;
            }
        }
        if any {
            next += 1;
        } else {
            n.findings.push(finding(
                "DNS-04",
                Severity::Warning,
                &format!("dns.waves[{number}]"),
                "the wave takes no name that blue owns".into(),
                "Correct its hosts or namespaces, or take it out.",
            ));
        }
    }
    let mut index: u32 = 0;
    for name in &n.names {
        if !wave_of.contains_key(&name.host) {
            let wave = next + index.checked_div(spec.dns.wave_size).unwrap_or(0);
            wave_of.insert(name.host.clone(), wave);
            index += 1;
        }
    }
    together(&n.names, &mut wave_of);
    for name in &mut n.names {
        name.wave = wave_of.get(&name.host).copied().unwrap_or(next);
    }
    n.names.sort_by(|a, b| {
        (a.wave, &a.host, &a.zone_id, &a.set_identifier).cmp(&(
            b.wave,
            &b.host,
            &b.zone_id,
            &b.set_identifier,
        ))
    });
}

/// Whether a declared wave takes a name.
fn takes(wave: &DnsWave, name: &Name) -> bool {
    let host = wave.hosts.iter().any(|h| {
        let h = h.trim_end_matches('.').to_lowercase();
        // `*.x` stands for the record of that name and for all below it.
        h == name.host
            || h.strip_prefix('*')
                .is_some_and(|below| name.host.ends_with(below))
    });
    let namespace = name.object.split('/').nth(1);
    host || namespace.is_some_and(|ns| wave.namespaces.iter().any(|w| w == ns))
}

/// Hosts that share an ownership TXT (`a-team` and `team`, externaldns.md trap 17) change in one batch: they are in one wave, the earlier one.
fn together(names: &[Name], wave_of: &mut BTreeMap<String, u32>) {
    let mut by_txt: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for n in names {
        for t in &n.txt {
            by_txt.entry((&n.zone_id, t)).or_default().insert(&n.host);
        }
    }
    by_txt.retain(|_, hosts| hosts.len() > 1);
    loop {
        let mut moved = false;
        for hosts in by_txt.values() {
            let first = hosts.iter().filter_map(|h| wave_of.get(*h)).min().copied();
            for h in hosts {
                if let (Some(first), Some(w)) = (first, wave_of.get_mut(*h))
                    && *w > first
                {
                    *w = first;
                    moved = true;
                }
            }
        }
        if !moved {
            return;
        }
    }
}
