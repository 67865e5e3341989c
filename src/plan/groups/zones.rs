//! Subnets and zones of a group, and whether it must be one group in each zone: an EBS volume never leaves its zone (replay.md rule 59),
//! and an Auto Scaling group over several zones starts its next node where it likes.

use super::super::kops::{strings, text};
use super::super::model::Severity;
use super::capacity::{Part, Sizes, shares};
use super::{Ig, Places, labels};
use crate::object::ObjectId;
use crate::rewrite::template_path;
use crate::snapshot::model::Snapshot;
use crate::snapshot::roll::Found;
use crate::world::cloud::Taint;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Where a group stands.
#[derive(Debug)]
pub(super) struct Own {
    pub subnets: Vec<String>,
    /// kops's type of these subnets: `Public`, `Private`, `DualStack`; `None` for subnets that kops does not know.
    pub kind: Option<String>,
    /// Subnets by zone; a subnet whose zone is not known is missing here.
    by_zone: BTreeMap<String, Vec<String>>,
}

/// Subnets of a group.
pub(super) fn subnets(ig: &mut Ig, places: &Places) -> Own {
    let wanted = strings(ig.doc, "/spec/subnets");
    let mut own: Vec<&super::Subnet> = vec![];
    for name in &wanted {
        match places.all.iter().find(|s| s.name == *name) {
            // Utility subnets hold load balancers and NAT only (kops.md 2).
            Some(s) if s.kind.eq_ignore_ascii_case("utility") => ig.find(
                "KOPS-ig-subnet",
                Severity::Warning,
                format!(
                    "subnet {name} is a utility subnet: nodes never stand there, it is left out"
                ),
                "Correct the instance group, or name subnets under green.subnets.",
            ),
            Some(s) => own.push(s),
            None => ig.find(
                "KOPS-ig-subnet",
                Severity::Warning,
                format!("subnet {name} is not in the cluster document"),
                "Correct the instance group.",
            ),
        }
    }
    let mut kind = own.first().map(|s| s.kind.clone());
    let declared = &ig.spec.green.subnets;
    let subnets: Vec<String> = if declared.is_empty() {
        if own.is_empty() {
            kind = places
                .all
                .iter()
                .find(|s| places.cluster.contains(&s.label()))
                .map(|s| s.kind.clone());
            places.cluster.to_vec()
        } else {
            own.iter().map(|s| s.label()).collect()
        }
    } else {
        // green.subnets wins: those in the group's zones, or all.
        let zones: BTreeSet<&str> = own.iter().map(|s| s.zone.as_str()).collect();
        let near: Vec<String> = declared
            .iter()
            .filter(|id| (places.zone)(id).is_some_and(|z| zones.contains(z.as_str())))
            .cloned()
            .collect();
        kind = places
            .all
            .iter()
            .find(|s| declared.contains(&s.label()))
            .map(|s| s.kind.clone());
        if near.is_empty() {
            if !zones.is_empty() {
                let message = format!(
                    "none of green.subnets is known to be in {}: the group takes all of them",
                    join(&zones)
                );
                ig.find(
                    "KOPS-ig-subnet",
                    Severity::Info,
                    message,
                    "Add a subnet of that zone to green.subnets if nodes must be there.",
                );
            }
            ig.spec.green.subnets.clone()
        } else {
            near
        }
    };
    let mut by_zone: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for s in &subnets {
        if let Some(zone) = (places.zone)(s).filter(|z| !z.is_empty()) {
            by_zone.entry(zone).or_default().push(s.clone());
        }
    }
    Own {
        subnets,
        kind,
        by_zone,
    }
}

fn join<T: AsRef<str>>(items: &BTreeSet<T>) -> String {
    items
        .iter()
        .map(AsRef::as_ref)
        .collect::<Vec<_>>()
        .join(", ")
}

/// An EBS volume of blue with its zone and who mounts it.
#[derive(Debug)]
pub(super) struct ZonalVolume {
    /// `persistentvolume/NAME`.
    pub object: String,
    pub zone: String,
    /// Workloads that mount it, with their pod spec; empty when nobody was found.
    pub users: Vec<(String, Value)>,
}

/// All EBS volumes of blue that have a zone.
pub(super) fn volumes(snapshot: &Found) -> Vec<ZonalVolume> {
    let mut users: BTreeMap<(String, String), Vec<(String, Value)>> = BTreeMap::new();
    let mut templates: BTreeMap<(String, String), (String, Value)> = BTreeMap::new();
    let any = snapshot.blue.of_kind("PersistentVolume").next().is_some();
    for entry in snapshot.blue.entries().iter().filter(|_| any) {
        let (id, object) = (&entry.id, entry.object);
        let Some(pod) = template_path(&id.kind).and_then(|t| object.pointer(&format!("{t}/spec")))
        else {
            continue;
        };
        let ns = id.namespace.clone().unwrap_or_default();
        for claim in
            list(pod, "/volumes").filter_map(|v| text(v, "/persistentVolumeClaim/claimName"))
        {
            users
                .entry((ns.clone(), claim.into()))
                .or_default()
                .push((id.to_string(), pod.clone()));
        }
        if id.kind == "StatefulSet" {
            for template in
                list(object, "/spec/volumeClaimTemplates").filter_map(|t| text(t, "/metadata/name"))
            {
                templates.insert(
                    (ns.clone(), format!("{template}-{}", id.name)),
                    (id.to_string(), pod.clone()),
                );
            }
        }
    }
    let mut out: Vec<ZonalVolume> = snapshot
        .blue
        .of_kind("PersistentVolume")
        .filter_map(|pv| {
            let id = ObjectId::of(pv)?;
            let zone = zone_of(pv, snapshot)?;
            let ns = text(pv, "/spec/claimRef/namespace").unwrap_or("");
            let claim = text(pv, "/spec/claimRef/name").unwrap_or("");
            let mut by = users
                .get(&(ns.to_string(), claim.to_string()))
                .cloned()
                .unwrap_or_default();
            // `data-db-0` is of template `data` of StatefulSet `db`.
            if let Some((stem, ordinal)) = claim.rsplit_once('-')
                && ordinal.chars().all(|c| c.is_ascii_digit())
                && let Some(user) = templates.get(&(ns.to_string(), stem.to_string()))
            {
                by.push(user.clone());
            }
            by.sort_by(|a, b| a.0.cmp(&b.0));
            Some(ZonalVolume {
                object: id.to_string(),
                zone,
                users: by,
            })
        })
        .collect();
    out.sort_by(|a, b| (&a.zone, &a.object).cmp(&(&b.zone, &b.object)));
    out
}

fn list<'v>(v: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    crate::object::at(v, pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Zone of an EBS volume: by label, node affinity, volume id or EC2.
fn zone_of(pv: &Value, snapshot: &Snapshot) -> Option<String> {
    let in_tree = text(pv, "/spec/awsElasticBlockStore/volumeID");
    let csi = (text(pv, "/spec/csi/driver") == Some("ebs.csi.aws.com"))
        .then(|| text(pv, "/spec/csi/volumeHandle"))
        .flatten();
    let handle = in_tree.or(csi)?;
    const KEYS: [&str; 3] = [
        "topology.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/zone",
        "topology.ebs.csi.aws.com/zone",
    ];
    let by_label = KEYS.iter().find_map(|k| crate::object::label(pv, k));
    let by_affinity = || {
        list(pv, "/spec/nodeAffinity/required/nodeSelectorTerms")
            .flat_map(|t| list(t, "/matchExpressions"))
            .filter(|e| e["key"].as_str().is_some_and(|k| KEYS.contains(&k)))
            .find_map(|e| e.pointer("/values/0").and_then(Value::as_str))
    };
    // aws://eu-west-1a/vol-0123
    let by_handle = || {
        handle
            .strip_prefix("aws://")
            .and_then(|h| h.split_once('/'))
            .map(|(zone, _)| zone)
            .filter(|z| !z.is_empty())
    };
    by_label
        .or_else(by_affinity)
        .or_else(by_handle)
        .map(String::from)
        .or_else(|| {
            let id = handle.rsplit('/').next().unwrap_or(handle);
            let volumes = snapshot.aws.as_ref()?.volumes.as_ref()?;
            volumes.iter().find(|v| v.id == id).map(|v| v.zone.clone())
        })
}

/// A group that becomes one node group in each zone.
#[derive(Debug)]
pub(super) struct Split {
    /// Zones, those with volumes first.
    zones: Vec<String>,
    /// Volumes by zone, in words.
    volumes: BTreeMap<String, String>,
    /// Why it is split.
    why: String,
}

/// Whether a group is split by zone.
pub(super) fn split(
    ig: &mut Ig,
    own: &Own,
    volumes: &[ZonalVolume],
    taints: &[Taint],
) -> Option<Split> {
    if own.by_zone.len() < 2 {
        if ig.wish.split_by_zone == Some(true) {
            ig.find(
                "KOPS-ig-split",
                Severity::Info,
                "splitByZone has nothing to split: the group is known to be in one zone only",
                "Nothing to do.",
            );
        }
        return None;
    }
    let blue = labels::of_blue(ig);
    let mut bound: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for v in volumes.iter().filter(|v| own.by_zone.contains_key(&v.zone)) {
        let user = v.users.iter().find(|(_, pod)| runs_on(pod, &blue, taints));
        match user {
            Some((who, _)) => bound
                .entry(v.zone.clone())
                .or_default()
                .push(format!("{} of {who}", v.object)),
            // Nobody mounts it now: a group without taints may be asked for it.
            None if v.users.is_empty() && taints.is_empty() => bound
                .entry(v.zone.clone())
                .or_default()
                .push(v.object.clone()),
            None => {}
        }
    }
    let off = ig.field("/spec/maxSize").and_then(Value::as_u64) == Some(0);
    let split = ig.wish.split_by_zone.unwrap_or(!bound.is_empty() && !off);
    let words: BTreeMap<String, String> = bound
        .iter()
        .map(|(zone, v)| (zone.clone(), few(v)))
        .collect();
    if !split {
        if !bound.is_empty() && !off {
            ig.find(
                "KOPS-ig-split",
                Severity::Warning,
                format!("stays one group over {} by green.nodeGroups, though volumes are bound to zones there ({}): when it grows, the new node may stand in a zone where they cannot be attached", zones_of(own), words.values().cloned().collect::<Vec<_>>().join("; ")),
                "Leave splitByZone out, or keep a node in each zone.",
            );
        }
        return None;
    }
    let why = if bound.is_empty() {
        "one group in each zone by green.nodeGroups".to_string()
    } else {
        "an EBS volume never leaves its zone, and a group over several zones starts its next node where it likes: one group in each zone".to_string()
    };
    if !bound.is_empty() {
        ig.find(
            "KOPS-ig-split",
            Severity::Info,
            format!(
                "is split by zone: {why}. {}",
                words
                    .iter()
                    .map(|(z, v)| format!("{z}: {v}"))
                    .collect::<Vec<_>>()
                    .join("; ")
            ),
            "Say splitByZone: false under green.nodeGroups to keep one group.",
        );
    }
    let mut zones: Vec<String> = own.by_zone.keys().cloned().collect();
    zones.sort_by_key(|z| (!bound.contains_key(z), z.clone()));
    Some(Split {
        zones,
        volumes: words,
        why,
    })
}

fn zones_of(own: &Own) -> String {
    own.by_zone.keys().cloned().collect::<Vec<_>>().join(", ")
}

/// The first three, and how many more.
fn few(items: &[String]) -> String {
    let shown = items.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    match items.len().saturating_sub(3) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Suffix, subnets, sizes and reasons of each node group of a part.
pub(super) fn pieces(
    ig: &mut Ig,
    own: &Own,
    split: &Option<Split>,
    part: &Part,
    halved: bool,
) -> Vec<(String, Vec<String>, Sizes, Vec<String>)> {
    let whole = part.sizes;
    let Some(split) = split else {
        return vec![(part.suffix.into(), own.subnets.clone(), whole, vec![])];
    };
    let n = split.zones.len() as u32;
    let (min, max, desired) = (
        shares(whole.min, n),
        shares(whole.max, n),
        shares(whole.desired, n),
    );
    let bound = split.volumes.len();
    let mut out = vec![];
    for (i, zone) in split.zones.iter().enumerate() {
        let mut sizes = Sizes {
            min: min[i],
            max: max[i],
            desired: desired[i],
        };
        let volumes = split.volumes.get(zone);
        if sizes.max == 0 {
            let Some(volumes) = volumes.filter(|_| !halved || part.capacity_type != "SPOT") else {
                ig.note(format!(
                    "no node group in {zone}: {} nodes at most over {n} zones",
                    whole.max
                ));
                continue;
            };
            ig.find(
                "KOPS-ig-size",
                Severity::Warning,
                format!("{} nodes at most, but volumes in {bound} zones: the group in {zone} gets one more for {volumes}", whole.max),
                "Raise maxSize on blue, or give max under green.nodeGroups.",
            );
            sizes.max = 1;
        }
        if sizes.desired == 0
            && volumes.is_some()
            && whole.desired > 0
            && part.capacity_type != "SPOT"
        {
            ig.find(
                "KOPS-ig-size",
                Severity::Warning,
                format!("{} nodes at first, but volumes in {bound} zones: {zone} starts without a node, and its volumes wait for one", whole.desired),
                "Raise minSize on blue, give min under green.nodeGroups, or run an autoscaler on green.",
            );
        }
        let mut why = vec![format!(
            "zone {zone} of {}: {}",
            split.zones.len(),
            split.why
        )];
        if let Some(volumes) = volumes {
            why.push(format!("volumes there: {volumes}"));
        }
        out.push((
            format!("{}-{zone}", part.suffix),
            own.by_zone[zone].clone(),
            sizes,
            why,
        ));
    }
    out.sort_by(|a, b| a.0.cmp(&b.0));
    out
}

/// Whether a pod may run on blue's nodes of a group: selectors, required affinity, taints.
fn runs_on(pod: &Value, labels: &BTreeMap<String, String>, taints: &[Taint]) -> bool {
    // Labels of single nodes (zone, host, type) say nothing about the group.
    let of_nodes = |key: &str| {
        !labels.contains_key(key)
            && (key.contains("topology.") || key.contains("failure-domain.") || {
                let name = key.rsplit('/').next().unwrap_or(key);
                key.contains("kubernetes.io/")
                    && matches!(
                        name,
                        "os" | "arch" | "hostname" | "instance-type" | "zone" | "region"
                    )
            })
    };
    let selected = pod
        .get("nodeSelector")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .all(|(k, v)| of_nodes(k) || labels.get(k).map(String::as_str) == v.as_str());
    let terms: Vec<&Value> = list(
        pod,
        "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms",
    )
    .collect();
    let matches = |e: &Value| {
        let key = e["key"].as_str().unwrap_or("");
        let has = labels.get(key);
        let among = || list(e, "/values").any(|v| v.as_str() == has.map(String::as_str));
        of_nodes(key)
            || match e["operator"].as_str().unwrap_or("") {
                "In" => has.is_some() && among(),
                "NotIn" => has.is_none() || !among(),
                "Exists" => has.is_some(),
                "DoesNotExist" => has.is_none(),
                _ => true,
            }
    };
    let required = terms.is_empty()
        || terms
            .iter()
            .any(|t| list(t, "/matchExpressions").all(matches));
    let tolerated = taints
        .iter()
        .filter(|t| t.effect != "PreferNoSchedule")
        .all(|t| {
            list(pod, "/tolerations").any(|o| {
                let key = o["key"].as_str().unwrap_or("");
                let exists = o["operator"] == "Exists";
                let effect = o["effect"].as_str().unwrap_or("");
                (key == t.key || key.is_empty() && exists)
                    && (exists || o["value"].as_str().unwrap_or("") == t.value)
                    && (effect.is_empty() || effect == t.effect)
            })
        });
    selected && required && tolerated
}
