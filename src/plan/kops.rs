//! kops spec to target: cluster, subnets, node groups (kops.md 2, 3).

use super::model::{Finding, Severity, Target, TargetCluster, TargetNodeGroup};
use crate::object::sha256_hex;
use crate::rewrite::{Context, minor, range};
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use crate::world::cloud::Taint;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Root volume of a kops worker when the group says nothing, GiB (kops.md 3).
const NODE_DISK: u32 = 128;
/// Size of a worker group when it says nothing.
const NODE_SIZE: u32 = 2;

/// The target without roles and add-ons, and what was learnt on the way.
pub(super) struct Built {
    pub target: Target,
    pub findings: Vec<Finding>,
    /// Node group of each instance group.
    pub groups: BTreeMap<String, String>,
    /// Labels of all node groups.
    pub labels: BTreeSet<(String, String)>,
    /// Zones with nodes.
    pub zones: BTreeSet<String>,
}

/// A subnet of the kops spec with its id, when it is known.
#[derive(Clone, Debug)]
pub(super) struct Subnet {
    pub name: String,
    pub zone: String,
    pub kind: String,
    pub cidr: String,
    pub id: Option<String>,
}

impl Subnet {
    /// Id, or `name (cidr)` when AWS was not read.
    fn label(&self) -> String {
        self.id
            .clone()
            .unwrap_or_else(|| format!("{} ({})", self.name, self.cidr))
    }
}

fn note(
    id: &str,
    severity: Severity,
    object: &str,
    message: impl Into<String>,
    remedy: &str,
    source: &str,
) -> Finding {
    Finding {
        id: id.into(),
        severity,
        object: object.into(),
        message: message.into(),
        remedy: remedy.into(),
        source: source.into(),
        waived: None,
    }
}

fn text<'v>(v: &'v Value, p: &str) -> Option<&'v str> {
    v.pointer(p).and_then(Value::as_str)
}
fn list<'v>(v: &'v Value, p: &str) -> Vec<&'v Value> {
    v.pointer(p)
        .and_then(Value::as_array)
        .map(|a| a.iter().collect())
        .unwrap_or_default()
}
fn strings(v: &Value, p: &str) -> Vec<String> {
    list(v, p)
        .into_iter()
        .filter_map(|s| s.as_str().map(String::from))
        .collect()
}
fn number(v: &Value, p: &str) -> Option<u32> {
    v.pointer(p)
        .and_then(Value::as_u64)
        .and_then(|n| u32::try_from(n).ok())
}

/// Region: declared, of the account, or of blue's zones.
pub(super) fn region(spec: &Spec, snapshot: &Snapshot) -> Option<String> {
    spec.aws
        .region
        .clone()
        .or_else(|| snapshot.aws.as_ref().map(|a| a.identity.region.clone()))
        .or_else(|| {
            let zone = subnets(snapshot)
                .into_iter()
                .map(|s| s.zone)
                .find(|z| !z.is_empty())?;
            let letters = zone.trim_end_matches(|c: char| c.is_ascii_lowercase());
            (letters.len() < zone.len()).then(|| letters.to_string())
        })
}

/// Subnets of the kops spec (v1alpha2 and v1alpha3), with ids from the spec or from AWS by name tag or CIDR.
pub(super) fn subnets(snapshot: &Snapshot) -> Vec<Subnet> {
    let Some(c) = &snapshot.kops.cluster else {
        return vec![];
    };
    let cluster = text(c, "/metadata/name").unwrap_or("");
    let mut raw = list(c, "/spec/subnets");
    if raw.is_empty() {
        raw = list(c, "/spec/networking/subnets");
    }
    let known = snapshot
        .aws
        .as_ref()
        .map(|a| a.subnets.as_slice())
        .unwrap_or_default();
    raw.into_iter()
        .map(|s| {
            let name = text(s, "/name").unwrap_or("").to_string();
            let cidr = text(s, "/cidr").unwrap_or("").to_string();
            let declared = text(s, "/id").or(text(s, "/providerID")).map(String::from);
            let found = known.iter().find(|k| {
                declared.as_deref() == Some(k.id.as_str())
                    || k.tags
                        .get("Name")
                        .is_some_and(|n| *n == format!("{name}.{cluster}"))
                    || !cidr.is_empty() && k.cidr == cidr
            });
            Subnet {
                zone: text(s, "/zone")
                    .map(String::from)
                    .or(found.map(|f| f.zone.clone()))
                    .unwrap_or_default(),
                kind: text(s, "/type").unwrap_or("Public").to_string(),
                cidr: if cidr.is_empty() {
                    found.map(|f| f.cidr.clone()).unwrap_or_default()
                } else {
                    cidr
                },
                id: found.map(|f| f.id.clone()).or(declared),
                name,
            }
        })
        .collect()
}

/// Makes the target.
pub(super) fn target(spec: &Spec, snapshot: &Snapshot, _cx: &Context) -> Built {
    let mut findings = vec![];
    let region = region(spec, snapshot).unwrap_or_default();
    let subnets = subnets(snapshot);
    let usable = |kind: &str| -> Vec<&Subnet> {
        subnets
            .iter()
            .filter(|s| s.kind.eq_ignore_ascii_case(kind))
            .collect()
    };
    let mut chosen = usable("Private");
    if chosen.is_empty() {
        chosen = usable("Public");
    }
    if chosen.is_empty() {
        chosen = usable("DualStack");
    }
    let cluster_subnets: Vec<String> = if spec.green.subnets.is_empty() {
        chosen.iter().map(|s| s.label()).collect()
    } else {
        spec.green.subnets.clone()
    };
    let aws_zone = |id: &str| {
        snapshot
            .aws
            .iter()
            .flat_map(|a| &a.subnets)
            .find(|s| s.id == id)
            .map(|s| s.zone.clone())
            .or_else(|| {
                subnets
                    .iter()
                    .find(|s| s.label() == id)
                    .map(|s| s.zone.clone())
            })
    };
    let zones: BTreeSet<String> = cluster_subnets
        .iter()
        .filter_map(|s| aws_zone(s))
        .filter(|z| !z.is_empty())
        .collect();
    if zones.len() < 2 && (spec.green.subnets.is_empty() || !zones.is_empty()) {
        findings.push(note(
            "EKS-zones",
            Severity::Blocker,
            &format!("cluster/{}", spec.green.name),
            format!(
                "EKS wants subnets in two zones, blue has {}",
                zones.iter().cloned().collect::<Vec<_>>().join(", ")
            ),
            "Make a subnet in a second zone and name both under green.subnets.",
            "eks.md 1.2",
        ));
    }
    if let Some(c) = &snapshot.kops.cluster {
        if let Some(cloud) = text(c, "/spec/cloudProvider")
            && cloud != "aws"
        {
            findings.push(note(
                "KOPS-cloud",
                Severity::Blocker,
                "kops/spec.cloudProvider",
                format!("the cluster is on {cloud}, not on AWS"),
                "crossfade moves clusters within AWS only.",
                "kops.md 1.3",
            ));
        }
    } else {
        findings.push(note(
            "KOPS-spec",
            Severity::NotChecked,
            &format!("kops/{}", spec.blue.cluster),
            "the kops cluster document was not read",
            "Run discover with the state store, or give the output of `kops get -o yaml`.",
            "kops.md 1",
        ));
    }
    let mut groups = BTreeMap::new();
    let mut node_groups: Vec<TargetNodeGroup> = vec![];
    let mut taken = BTreeSet::new();
    let mut ordered: Vec<&Value> = snapshot.kops.instance_groups.iter().collect();
    ordered.sort_by_key(|g| text(g, "/metadata/name").unwrap_or("").to_string());
    for ig in ordered {
        let name = text(ig, "/metadata/name").unwrap_or("").to_string();
        let object = format!("instancegroup/{name}");
        let role = text(ig, "/spec/role").unwrap_or("Node").to_string();
        if !role.eq_ignore_ascii_case("node") {
            let why = match role.to_lowercase().as_str() {
                "bastion" => "a bastion becomes no node group: use SSM, or keep the instance",
                "apiserver" => "EKS runs its own API servers",
                _ => "EKS runs the control plane",
            };
            findings.push(note(
                "KOPS-ig-role",
                Severity::Info,
                &object,
                format!("role {role} is dropped: {why}"),
                "Nothing to do.",
                "kops.md 3",
            ));
            continue;
        }
        if text(ig, "/spec/manager").is_some_and(|m| m.eq_ignore_ascii_case("karpenter")) {
            findings.push(note(
                "KOPS-ig-karpenter",
                Severity::Warning,
                &object,
                "is managed by Karpenter and becomes no managed node group",
                "Install Karpenter on green and write a NodePool.",
                "kops.md 3",
            ));
            continue;
        }
        let group = node_group(
            ig,
            &name,
            spec,
            snapshot,
            &subnets,
            &chosen,
            &object,
            &mut taken,
            &mut findings,
        );
        groups.insert(name, group.name.clone());
        node_groups.push(group);
    }
    if node_groups.is_empty() {
        findings.push(note(
            "KOPS-ig-none",
            if snapshot.kops.instance_groups.is_empty() {
                Severity::NotChecked
            } else {
                Severity::Blocker
            },
            &format!("cluster/{}", spec.green.name),
            "no worker instance group becomes a node group: green would have no nodes",
            "Give the instance groups too (`kops get all -o yaml`).",
            "kops.md 8.1",
        ));
    }
    let labels = node_groups
        .iter()
        .flat_map(|g| g.labels.iter().map(|(k, v)| (k.clone(), v.clone())))
        .collect();
    let node_zones = node_groups
        .iter()
        .flat_map(|g| &g.subnets)
        .filter_map(|s| aws_zone(s))
        .filter(|z| !z.is_empty())
        .collect();
    Built {
        target: Target {
            cluster: TargetCluster {
                name: spec.green.name.clone(),
                version: spec.green.version.clone(),
                region,
                subnets: cluster_subnets,
            },
            node_groups,
            roles: vec![],
            addons: vec![],
            resources: vec![],
            components: vec![],
            access: vec![],
        },
        findings,
        groups,
        labels,
        zones: node_zones,
    }
}

#[allow(clippy::too_many_arguments)]
fn node_group(
    ig: &Value,
    name: &str,
    spec: &Spec,
    snapshot: &Snapshot,
    subnets: &[Subnet],
    chosen: &[&Subnet],
    object: &str,
    taken: &mut BTreeSet<String>,
    findings: &mut Vec<Finding>,
) -> TargetNodeGroup {
    let cluster = snapshot.kops.cluster.as_ref();
    let mut types = strings(ig, "/spec/mixedInstancesPolicy/instances");
    let machine = text(ig, "/spec/machineType").unwrap_or("");
    if types.is_empty() {
        let first = machine.split(',').next().unwrap_or("").trim();
        if first.is_empty() {
            findings.push(note(
                "KOPS-ig-default",
                Severity::Info,
                object,
                "no machineType: kops takes t3.medium",
                "Nothing to do.",
                "kops.md 3",
            ));
            types.push("t3.medium".into());
        } else {
            types.push(first.into());
        }
    }
    if types.len() > 20 {
        findings.push(note(
            "KOPS-ig-mixed",
            Severity::Warning,
            object,
            "more than 20 instance types: a managed node group takes the first 20",
            "Check the list.",
            "kops.md 3",
        ));
        types.truncate(20);
    }
    for t in &types {
        let family = t.split('.').next().unwrap_or("");
        if matches!(
            family,
            "m1" | "m2" | "m3" | "c1" | "c3" | "t1" | "r3" | "i2" | "g2"
        ) {
            findings.push(note(
                "KOPS-ig-oldtype",
                Severity::Warning,
                object,
                format!("{t} is of a previous generation: today's AMIs may not boot on it"),
                "Choose a Nitro type on blue, or change the node group.",
                "kops.md 3",
            ));
        }
    }
    let spot_price = ig.pointer("/spec/maxPrice").is_some_and(|p| !p.is_null());
    let mixed = ig
        .pointer("/spec/mixedInstancesPolicy")
        .is_some_and(|m| !m.is_null());
    let base = number(ig, "/spec/mixedInstancesPolicy/onDemandBase").unwrap_or(0);
    let above = number(ig, "/spec/mixedInstancesPolicy/onDemandAboveBase").unwrap_or(100);
    let all_spot = mixed && base == 0 && above == 0;
    let capacity = if spot_price || all_spot {
        "SPOT"
    } else {
        "ON_DEMAND"
    };
    if spot_price {
        findings.push(note(
            "KOPS-ig-maxprice",
            Severity::Info,
            object,
            "becomes a SPOT group; the bid is dropped",
            "Nothing to do: a managed node group pays the spot price.",
            "kops.md 3",
        ));
    } else if mixed && !all_spot && above < 100 {
        findings.push(note("KOPS-ig-mixed", Severity::Warning, object, format!("mixes on-demand and spot ({base} on demand, then {above} %): a managed node group is one or the other, it becomes ON_DEMAND"), "Split the group, or add a SPOT group by hand.", "kops.md 3"));
    }
    let min = number(ig, "/spec/minSize").unwrap_or(NODE_SIZE);
    let mut max = number(ig, "/spec/maxSize").unwrap_or(NODE_SIZE.max(min));
    if max == 0 {
        findings.push(note(
            "KOPS-ig-zero",
            Severity::Info,
            object,
            "has maxSize 0; a managed node group has at least 1",
            "Nothing to do.",
            "kops.md 3",
        ));
        max = 1;
    }
    let max = max.max(min);
    let live = snapshot
        .blue
        .of_kind("Node")
        .filter(|n| crate::object::label(n, "kops.k8s.io/instancegroup") == Some(name))
        .count() as u32;
    let desired = if live > 0 { live.clamp(min, max) } else { min };
    let disk_gib = number(ig, "/spec/rootVolumeSize")
        .or(number(ig, "/spec/rootVolume/size"))
        .unwrap_or(NODE_DISK);
    let disk_type = text(ig, "/spec/rootVolumeType")
        .or(text(ig, "/spec/rootVolume/type"))
        .map(String::from)
        .unwrap_or_else(|| default_disk_type(snapshot));
    let mut labels = BTreeMap::new();
    let cluster_labels = cluster.and_then(|c| c.pointer("/spec/kubelet/nodeLabels"));
    for source in [
        cluster_labels,
        ig.pointer("/spec/kubelet/nodeLabels"),
        ig.pointer("/spec/nodeLabels"),
    ]
    .into_iter()
    .flatten()
    {
        for (k, v) in source.as_object().into_iter().flatten() {
            let v = match v {
                Value::String(s) => s.clone(),
                other => other.to_string(),
            };
            if k.contains("kubernetes.io/")
                || k.contains("k8s.io/")
                || k.starts_with("eks.amazonaws.com/")
            {
                if !k.starts_with("kops.k8s.io/instancegroup")
                    && !k.starts_with("node-role.kubernetes.io/node")
                    && !k.starts_with("kubernetes.io/role")
                {
                    findings.push(note(
                        "KOPS-ig-label",
                        Severity::Warning,
                        object,
                        format!("label {k}={v} is refused by EKS and left out"),
                        "Select the nodes by another label.",
                        "eks.md 1.6",
                    ));
                }
            } else {
                labels.insert(k.clone(), v);
            }
        }
    }
    let mut taints: Vec<Taint> = vec![];
    let cluster_taints = cluster
        .map(|c| strings(c, "/spec/kubelet/taints"))
        .unwrap_or_default();
    for t in cluster_taints
        .into_iter()
        .chain(strings(ig, "/spec/kubelet/taints"))
        .chain(strings(ig, "/spec/taints"))
    {
        match taint(&t) {
            Some(t) if !taints.contains(&t) => taints.push(t),
            Some(_) => {}
            None => findings.push(note(
                "KOPS-ig-taint",
                Severity::Warning,
                object,
                format!("taint `{t}` cannot be read and is left out"),
                "Correct it on blue.",
                "kops.md 3",
            )),
        }
    }
    let wanted = strings(ig, "/spec/subnets");
    let mut group_subnets: Vec<String> = vec![];
    for s in &wanted {
        match subnets.iter().find(|x| x.name == *s) {
            Some(x) => group_subnets.push(x.label()),
            None => findings.push(note(
                "KOPS-ig-subnet",
                Severity::Warning,
                object,
                format!("subnet {s} is not in the cluster document"),
                "Correct the instance group.",
                "kops.md 3",
            )),
        }
    }
    if group_subnets.is_empty() {
        group_subnets = if spec.green.subnets.is_empty() {
            chosen.iter().map(|s| s.label()).collect()
        } else {
            spec.green.subnets.clone()
        };
    } else if !spec.green.subnets.is_empty() {
        // Declared subnets win: those of the group's zones, or all of them.
        group_subnets = spec.green.subnets.clone();
    }
    let group_name = group_name(name, taken);
    TargetNodeGroup {
        name: group_name,
        instance_group: name.into(),
        ami_type: ami_type(&types[0]),
        instance_types: types,
        capacity_type: capacity.into(),
        min,
        max,
        desired,
        disk_gib,
        disk_type,
        subnets: group_subnets,
        labels,
        taints,
    }
}

/// kops's default root volume: gp2 up to 1.19, gp3 from 1.20 (kops.md 1.4).
fn default_disk_type(snapshot: &Snapshot) -> String {
    let kops = snapshot
        .kops
        .kops_version
        .as_deref()
        .and_then(minor)
        .or_else(|| {
            let c = snapshot.kops.cluster.as_ref()?;
            minor(&format!(
                "v{}",
                text(c, "/spec/kubernetesVersion")?
                    .rsplit('/')
                    .next()?
                    .trim_start_matches('v')
            ))
        });
    if kops.is_some_and(|m| m < 20) {
        "gp2".into()
    } else {
        "gp3".into()
    }
}

/// `key=value:Effect`, `key:Effect`, `key=:Effect`.
fn taint(t: &str) -> Option<Taint> {
    let (kv, effect) = t.rsplit_once(':')?;
    let (key, value) = kv.split_once('=').unwrap_or((kv, ""));
    matches!(effect, "NoSchedule" | "PreferNoSchedule" | "NoExecute").then(|| Taint {
        key: key.into(),
        value: value.into(),
        effect: effect.into(),
    })
}

/// AMI type by instance type (eks.md 1.6).
fn ami_type(instance: &str) -> String {
    let family = instance.split('.').next().unwrap_or("");
    let letters: String = family
        .chars()
        .take_while(|c| c.is_ascii_alphabetic())
        .collect();
    let suffix: String = family
        .chars()
        .skip(letters.len())
        .skip_while(|c| c.is_ascii_digit())
        .collect();
    let gpu = matches!(letters.as_str(), "p" | "g" | "gr");
    let arm = letters == "a" || suffix.contains('g') && !gpu || gpu && suffix.starts_with('g');
    match (letters.as_str(), arm, gpu) {
        ("inf" | "trn", _, _) => "AL2023_x86_64_NEURON",
        (_, true, true) => "AL2023_ARM_64_NVIDIA",
        (_, false, true) => "AL2023_x86_64_NVIDIA",
        (_, true, false) => "AL2023_ARM_64_STANDARD",
        _ => "AL2023_x86_64_STANDARD",
    }
    .into()
}

/// A node group name: letters, digits, `-`, `_`, at most 63, unique.
fn group_name(name: &str, taken: &mut BTreeSet<String>) -> String {
    let mut clean: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' || c == '_' {
                c
            } else {
                '-'
            }
        })
        .collect::<String>()
        .trim_start_matches(['-', '_'])
        .into();
    if clean.is_empty() {
        clean = "nodes".into();
    }
    if clean.len() > 63 || taken.contains(&clean) {
        let hash = &sha256_hex(name)[..6];
        clean = format!("{}-{hash}", clean.chars().take(56).collect::<String>());
    }
    taken.insert(clean.clone());
    clean
}

/// A role name of at most 64 characters: cut and hashed when longer.
pub(super) fn role_name(green: &str, what: &str) -> String {
    let name = format!("{green}-{what}");
    if name.len() <= 64 {
        return name;
    }
    let hash = &sha256_hex(&name)[..6];
    format!("{}-{hash}", name.chars().take(57).collect::<String>())
}

/// Whether two CIDRs share an address.
pub(crate) fn overlap(a: &str, b: &str) -> Option<bool> {
    let (a, b) = (range(a)?, range(b)?);
    Some(a.0 <= b.1 && b.0 <= a.1)
}
