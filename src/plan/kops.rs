//! kops spec to target: cluster and subnets (kops.md 2). The node groups have a room of their own.

use super::groups;
use super::model::{Finding, Severity, Target, TargetCluster};
use crate::object::sha256_hex;
use crate::rewrite::{Context, range};
use crate::snapshot::model::Snapshot;
use crate::snapshot::roll::Found;
use crate::spec::model::Spec;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The target without roles and add-ons, and what was learnt on the way.
pub(super) struct Built {
    pub target: Target,
    pub findings: Vec<Finding>,
    /// Value of the label that stands in for `kops.k8s.io/instancegroup`, by instance group.
    pub groups: BTreeMap<String, String>,
    /// Label keys that EKS refuses, and the keys that stand in for them.
    pub label_keys: BTreeMap<String, String>,
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
    pub fn label(&self) -> String {
        self.id
            .clone()
            .unwrap_or_else(|| format!("{} ({})", self.name, self.cidr))
    }
}

pub(super) fn note(
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

pub(super) fn text<'v>(v: &'v Value, p: &str) -> Option<&'v str> {
    crate::object::at(v, p).and_then(Value::as_str)
}
fn list<'v>(v: &'v Value, p: &str) -> Vec<&'v Value> {
    crate::object::at(v, p)
        .and_then(Value::as_array)
        .map(|a| a.iter().collect())
        .unwrap_or_default()
}
pub(super) fn strings(v: &Value, p: &str) -> Vec<String> {
    list(v, p)
        .into_iter()
        .filter_map(|s| s.as_str().map(String::from))
        .collect()
}
pub(super) fn number(v: &Value, p: &str) -> Option<u32> {
    crate::object::at(v, p)
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

/// Whether one subnet takes all of the VPC's range, and there is no further range.
fn full(snapshot: &Snapshot, subnets: &[Subnet]) -> bool {
    let Some(c) = &snapshot.kops.cluster else {
        return false;
    };
    let of = |name: &str| {
        c.pointer(&format!("/spec/{name}"))
            .or(c.pointer(&format!("/spec/networking/{name}")))
    };
    let more = of("additionalNetworkCIDRs")
        .and_then(Value::as_array)
        .is_some_and(|a| !a.is_empty());
    let whole = of("networkCIDR").and_then(Value::as_str).and_then(range);
    !more && whole.is_some() && subnets.iter().any(|s| range(&s.cidr) == whole)
}

/// Makes the target.
pub(super) fn target(spec: &Spec, snapshot: &Found, _cx: &Context) -> Built {
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
            if full(snapshot, &subnets) {
                "The only subnet fills the whole networkCIDR: associate a second range with the VPC first (not of 100.64.0.0/10, where blue's pods and services may have theirs), make a subnet of it in a second zone, and name both under green.subnets."
            } else {
                "Make a subnet in a second zone and name both under green.subnets."
            },
            "eks.md 1.2",
        ));
    }
    if let Some(c) = &snapshot.kops.cluster {
        if let Some(version) = text(c, "/spec/kubernetesVersion").filter(|v| !v.is_empty())
            && crate::snapshot::kops::kubernetes_version(c).is_none()
        {
            findings.push(note(
                "KOPS-version",
                Severity::Blocker,
                "kops/spec.kubernetesVersion",
                format!("`{version}` is no version of Kubernetes: kops's defaults, removed APIs and the hops to green all hang on it"),
                "Correct it on blue (as in 1.21.14), then discover again.",
                "kops.md 1.4",
            ));
        }
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
    let made = groups::build(
        spec,
        snapshot,
        &groups::Places {
            all: &subnets,
            cluster: &cluster_subnets,
            zone: &aws_zone,
        },
    );
    findings.extend(made.findings);
    let node_groups = made.groups;
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
        groups: made.instance_groups,
        label_keys: made.label_keys,
        labels,
        zones: node_zones,
    }
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
