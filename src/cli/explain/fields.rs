//! Fields of the kops documents: what blue has, what becomes of it, and where in the plan that is seen.

use crate::plan::fates::{self, Doc, Fate, FieldFate, Known};
use crate::plan::model::{Finding, Plan};
use crate::snapshot::kops::{Part, Source, at, effective, parts, push_key};
use crate::snapshot::model::Snapshot;
use serde::Serialize;
use serde_json::{Value, json};

/// A field that blue sets.
#[derive(Serialize)]
pub(super) struct Set<'p> {
    #[serde(flatten)]
    pub field: &'p FieldFate,
    /// Where in the plan it is seen, as in `node group nodes: min = 3`.
    pub became: Vec<String>,
    pub findings: Vec<&'p Finding>,
}

/// A field that blue does not set.
#[derive(Serialize)]
pub(super) struct Unset {
    /// `cluster` or `instancegroup/NAME`; `instancegroup` for all of them.
    pub document: String,
    #[serde(flatten)]
    pub known: Known,
    /// The value in force, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// Everything about a field.
#[derive(Default)]
pub(super) struct Fields<'p> {
    pub set: Vec<Set<'p>>,
    pub unset: Vec<Unset>,
}

/// Looks a field up; `document` may name a group by its node group too.
pub(super) fn fields<'p>(
    plan: &'p Plan,
    snapshot: Option<&Snapshot>,
    document: Option<&str>,
    path: &str,
) -> Fields<'p> {
    let document = document.map(|d| canonical(plan, d));
    let asked = bare(path);
    let mut out = Fields::default();
    for f in &plan.fields {
        if document.as_ref().is_some_and(|d| *d != f.document) {
            continue;
        }
        let own = bare(&f.path);
        let exact = f.path == path || (!path.contains('[') && own == asked);
        let below = f.path.starts_with(&format!("{path}."))
            || f.path.starts_with(&format!("{path}["))
            || (!path.contains('[') && own.starts_with(&format!("{asked}.")));
        if exact || below {
            out.set.push(Set {
                field: f,
                became: became(plan, f),
                findings: findings(plan, f),
            });
        }
    }
    if out.set.is_empty() {
        out.unset = unset(plan, snapshot, document.as_deref(), path);
    }
    out
}

/// `instancegroup/NAME`, also when the name is that of the node group that came of it.
fn canonical(plan: &Plan, document: &str) -> String {
    let Some(name) = document.strip_prefix("instancegroup/") else {
        return document.into();
    };
    if plan.fields.iter().any(|f| f.document == document) {
        return document.into();
    }
    plan.target
        .node_groups
        .iter()
        .find(|g| g.name == name)
        .map_or(document.into(), |g| {
            format!("instancegroup/{}", g.instance_group)
        })
}

/// A path without indexes.
fn bare(path: &str) -> String {
    let Some(parts) = parts(path) else {
        return path.into();
    };
    let mut out = String::new();
    for part in parts {
        if let Part::Key(k) = part {
            push_key(&mut out, &k);
        }
    }
    out
}

/// What a field of a group is called in the node group; `a/b` is a field of its launch template.
const OF_GROUP: &[(&str, &[&str])] = &[
    ("metadata.name", &["name"]),
    ("spec.minSize", &["min", "desired"]),
    ("spec.maxSize", &["max"]),
    ("spec.machineType", &["instance_types", "ami_type"]),
    (
        "spec.mixedInstancesPolicy",
        &["instance_types", "capacity_type"],
    ),
    ("spec.maxPrice", &["capacity_type"]),
    ("spec.image", &["ami_type"]),
    ("spec.rootVolumeSize", &["disk_gib"]),
    ("spec.rootVolumeType", &["disk_type"]),
    ("spec.subnets", &["subnets"]),
    ("spec.nodeLabels", &["labels"]),
    ("spec.kubelet.nodeLabels", &["labels"]),
    ("spec.taints", &["taints"]),
    ("spec.kubelet.maxPods", &["max_pods"]),
    ("spec.volumes", &["launch_template/volumes"]),
    ("spec.rootVolumeIops", &["launch_template/root"]),
    ("spec.rootVolumeThroughput", &["launch_template/root"]),
    ("spec.rootVolumeEncryption", &["launch_template/root"]),
    ("spec.rootVolumeEncryptionKey", &["launch_template/root"]),
    (
        "spec.instanceMetadata.httpTokens",
        &["launch_template/http_tokens"],
    ),
    (
        "spec.instanceMetadata.httpPutResponseHopLimit",
        &["launch_template/hop_limit"],
    ),
    (
        "spec.additionalSecurityGroups",
        &["launch_template/security_groups"],
    ),
    ("spec.cloudLabels", &["launch_template/tags"]),
    (
        "spec.detailedInstanceMonitoring",
        &["launch_template/monitoring"],
    ),
    ("spec.tenancy", &["launch_template/tenancy"]),
    ("spec.cpuCredits", &["launch_template/cpu_credits"]),
    ("spec.rollingUpdate", &["max_unavailable"]),
    ("spec.kubelet.taints", &["taints"]),
];

/// Which add-on stands in for a section of the cluster.
const OF_CLUSTER: &[(&str, &str)] = &[
    ("spec.networking", "vpc-cni"),
    ("spec.kubeDNS", "coredns"),
    ("spec.kubeProxy", "kube-proxy"),
    ("spec.metricsServer", "metrics-server"),
    ("spec.certManager", "cert-manager"),
    ("spec.cloudConfig.awsEBSCSIDriver", "aws-ebs-csi-driver"),
    ("spec.snapshotController", "snapshot-controller"),
    ("spec.externalDns", "external-dns"),
];

fn within(path: &str, section: &str) -> bool {
    path.strip_prefix(section)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn became(plan: &Plan, f: &FieldFate) -> Vec<String> {
    if matches!(f.fate, Fate::NoMeaning | Fate::Unknown) {
        return vec![];
    }
    let mut out = vec![];
    let group = f.document.strip_prefix("instancegroup/");
    for g in &plan.target.node_groups {
        if group.is_some_and(|name| name != g.instance_group) {
            continue;
        }
        let of_all = [
            "spec.kubelet.nodeLabels",
            "spec.kubelet.taints",
            "spec.kubelet.maxPods",
            "spec.cloudLabels",
        ];
        if group.is_none() && !of_all.iter().any(|s| within(&f.path, s)) {
            continue;
        }
        let value = serde_json::to_value(g).unwrap_or(Value::Null);
        for (_, keys) in OF_GROUP.iter().filter(|(s, _)| within(&f.path, s)) {
            for key in *keys {
                let found = value.pointer(&format!("/{key}"));
                if let Some(v) = found.filter(|v| !v.is_null()) {
                    let key = key.replace('/', ".");
                    out.push(format!("node group {}: {key} = {}", g.name, shown(v)));
                }
            }
        }
    }
    if group.is_none() {
        let c = &plan.target.cluster;
        match f.path.as_str() {
            "metadata.name" => out.push(format!("cluster {}", c.name)),
            "spec.kubernetesVersion" => {
                out.push(format!("cluster {}: version = {}", c.name, c.version))
            }
            p if within(p, "spec.subnets") => {
                out.push(format!(
                    "cluster {}: subnets = {}",
                    c.name,
                    c.subnets.join(", ")
                ));
            }
            _ => {}
        }
        for (section, name) in OF_CLUSTER {
            if within(&f.path, section) && plan.target.addons.iter().any(|a| a.name == *name) {
                out.push(format!("add-on {name}"));
            }
        }
    }
    out
}

/// Findings of the field's family, of its document, and those that name the field.
fn findings<'p>(plan: &'p Plan, f: &FieldFate) -> Vec<&'p Finding> {
    let object = match f.document.as_str() {
        "cluster" => format!("kops/{}", f.path),
        d => format!("{d} {}", f.path),
    };
    plan.findings
        .iter()
        .filter(|x| {
            let of_document = match f.document.as_str() {
                "cluster" => x.object.starts_with("kops/"),
                d => x.object == d || x.object.starts_with(&format!("{d} ")),
            };
            of_document
                && x.id == f.rule
                && (f.rule != fates::UNKNOWN || within(&object, &x.object))
                || within(&object, &x.object) && x.object.contains('.')
        })
        .collect()
}

/// A value for people.
pub(super) fn shown(v: &Value) -> String {
    match v {
        Value::String(s) => s.clone(),
        other => other.to_string(),
    }
}

fn unset(
    plan: &Plan,
    snapshot: Option<&Snapshot>,
    document: Option<&str>,
    path: &str,
) -> Vec<Unset> {
    let mut out = vec![];
    let wanted: Vec<(Doc, String)> = match document {
        Some("cluster") => vec![(Doc::Cluster, "cluster".into())],
        // A document that is not there has no fields, set or not.
        Some(d) if plan.fields.iter().any(|f| f.document == d) => vec![(Doc::Group, d.into())],
        Some(_) => vec![],
        None => vec![
            (Doc::Cluster, "cluster".into()),
            (Doc::Group, "instancegroup".into()),
        ],
    };
    for (doc, name) in wanted {
        for known in fates::known(doc, path) {
            out.push(Unset {
                default: default(snapshot, &name, path),
                document: name.clone(),
                known,
            });
        }
    }
    out
}

/// The value in force where nobody wrote one.
fn default(snapshot: Option<&Snapshot>, document: &str, path: &str) -> Option<String> {
    let kops = &snapshot?.kops;
    if document == "cluster"
        && let Some(v) = kops.completed.as_ref().and_then(|c| at(c, path))
    {
        return Some(format!("{} (completed spec)", shown(v)));
    }
    let settings = effective(kops).settings();
    let mut said: Vec<String> = settings
        .iter()
        .filter(|s| within(path, &s.path))
        .filter(|s| {
            s.document == document
                || document == "instancegroup" && s.document.starts_with("instancegroup/")
        })
        .filter_map(|s| match &s.source {
            Source::Default(why) => Some(format!("{} ({why})", shown(&s.value))),
            _ => None,
        })
        .collect();
    said.sort();
    said.dedup();
    (!said.is_empty()).then(|| said.join("; "))
}

/// As JSON.
pub(super) fn json(f: &Fields) -> Value {
    json!({"fields": f.set, "unset": f.unset})
}
