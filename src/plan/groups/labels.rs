//! Labels and taints of nodes (kops.md 1.5, 3; eks.md 1.6). EKS refuses the namespaces of Kubernetes and of kops; where workloads select
//! by such a label, another one stands in and the rewrite (replay.md rule 46) changes the selector.

use super::super::kops::strings;
use super::super::model::Severity;
use super::{Ig, names};
use crate::rewrite::template_path;
use crate::snapshot::roll::Found;
use crate::spec::is_label;
use crate::world::cloud::Taint;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Stands in for `kops.k8s.io/instancegroup`.
pub(crate) const INSTANCE_GROUP: &str = "crossfade.dev/instancegroup";
/// kops's label of nodes with a GPU.
const GPU: &str = "kops.k8s.io/gpu";
/// Most labels of a managed node group (kops.md 3).
const MOST_LABELS: usize = 50;
/// Most taints (eks.md 1.6).
const MOST_TAINTS: usize = 50;

/// Label keys by which workloads of blue choose nodes.
pub(super) type Selected = BTreeSet<String>;

/// Labels of a group, and the keys that others stand in for.
#[derive(Debug, Default)]
pub(super) struct Labels {
    pub labels: BTreeMap<String, String>,
    pub stand_ins: BTreeMap<String, String>,
}

/// Which keys are selected by anywhere on blue.
pub(super) fn selected(snapshot: &Found) -> Selected {
    let mut out = Selected::new();
    for entry in snapshot.blue.entries() {
        let Some(template) = template_path(&entry.id.kind) else {
            continue;
        };
        let Some(pod) = entry.object.pointer(&format!("{template}/spec")) else {
            continue;
        };
        out.extend(
            pod.get("nodeSelector")
                .and_then(Value::as_object)
                .into_iter()
                .flat_map(|m| m.keys().cloned()),
        );
        let Some(affinity) = pod.pointer("/affinity/nodeAffinity") else {
            continue;
        };
        let required = list(
            affinity,
            "/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms",
        );
        let preferred = list(affinity, "/preferredDuringSchedulingIgnoredDuringExecution")
            .filter_map(|p| p.get("preference"));
        for term in required.chain(preferred) {
            out.extend(
                list(term, "/matchExpressions")
                    .filter_map(|e| e["key"].as_str())
                    .map(String::from),
            );
        }
    }
    out
}

fn list<'v>(v: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    crate::object::at(v, pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Labels that somebody gave the group on blue: of the cluster's kubelet, of the group's, of the group (kops.md 1.5).
pub(super) fn declared(ig: &Ig) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    for source in [
        ig.of_cluster("/spec/kubelet/nodeLabels"),
        ig.field("/spec/kubelet/nodeLabels"),
        ig.field("/spec/nodeLabels"),
    ]
    .into_iter()
    .flatten()
    {
        for (k, v) in source.as_object().into_iter().flatten() {
            let v = match v {
                Value::String(s) => s.clone(),
                Value::Null => String::new(),
                other => other.to_string(),
            };
            out.insert(k.clone(), v);
        }
    }
    if gpu_by_kops(ig) {
        out.entry(GPU.into()).or_insert_with(|| "1".into());
    }
    out
}

/// Labels of blue's nodes of this group, those of kops among them.
pub(super) fn of_blue(ig: &Ig) -> BTreeMap<String, String> {
    let mut out = declared(ig);
    for (k, v) in [
        ("kops.k8s.io/instancegroup", ig.name.as_str()),
        ("kubernetes.io/role", "node"),
        ("node-role.kubernetes.io/node", ""),
    ] {
        out.entry(k.into()).or_insert_with(|| v.into());
    }
    out
}

/// Value of `kops.k8s.io/instancegroup` on blue's nodes of this group: what somebody declared, else the group's name (kops.md 1.5).
pub(super) fn instance_group(ig: &Ig) -> String {
    declared(ig)
        .remove("kops.k8s.io/instancegroup")
        .filter(|v| !v.is_empty())
        .unwrap_or_else(|| ig.name.clone())
}

/// kops writes the label and the taint of GPU nodes itself where it installs the driver, and on machines with a GPU only.
fn gpu_by_kops(ig: &Ig) -> bool {
    ig.gpu
        && ig
            .over_cluster("/spec/containerd")
            .and_then(|c| c.pointer("/nvidiaGPU/enabled"))
            == Some(&Value::Bool(true))
}

/// A key that the API of EKS refuses (eks.md 1.6).
pub(super) fn refused(key: &str) -> bool {
    ["kubernetes.io/", "k8s.io/", "eks.amazonaws.com/"]
        .iter()
        .any(|part| key.contains(part))
}

/// What kops puts on every worker: the rewrite knows these.
fn of_kops(key: &str) -> bool {
    matches!(
        key,
        "kops.k8s.io/instancegroup" | "kubernetes.io/role" | "node-role.kubernetes.io/node"
    )
}

/// A key of our own for a refused one: `node-role.kubernetes.io/ingress` is `crossfade.dev/node-role.kubernetes.io.ingress`.
fn stand_in(key: &str) -> String {
    let name: String = key
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') {
                c
            } else {
                '.'
            }
        })
        .collect();
    format!("crossfade.dev/{}", names::label_value(&name))
}

/// Labels of green's nodes.
pub(super) fn labels(ig: &mut Ig, selected: &Selected) -> Labels {
    let mut out = Labels::default();
    for (k, v) in declared(ig) {
        if !is_label(&k, &v) {
            ig.find(
                "KOPS-ig-label",
                Severity::Warning,
                format!("`{k}={v}` is no label: Kubernetes and EKS refuse it, so it is left out"),
                "Correct it on blue: a key is a name of at most 63 letters, digits, `-`, `_` and `.`, perhaps after a DNS name and `/`, and a value is such a name or empty.",
            );
        } else if !refused(&k) {
            out.labels.insert(k, v);
        } else if of_kops(&k) {
            // The next lines, and the rewrite.
        } else if selected.contains(&k) {
            let new = stand_in(&k);
            ig.find(
                "KOPS-ig-label",
                Severity::Info,
                format!("label {k}={v} is refused by EKS and workloads select by it: {new} stands in, and their selectors are changed"),
                "Select by the new label in your own manifests too.",
            );
            out.labels.insert(new.clone(), v);
            out.stand_ins.insert(k, new);
        } else if k == GPU && ig.gpu {
            // KOPS-ig-gpu says it.
        } else {
            let who = if ig.snapshot.blue.objects.is_empty() {
                "workloads were not read, so whether one selects by it is not known"
            } else {
                "no workload that was read selects by it"
            };
            ig.find(
                "KOPS-ig-label",
                Severity::Warning,
                format!("label {k}={v} is refused by EKS and left out; {who}"),
                "Select the nodes by another label.",
            );
        }
    }
    if selected.contains("kops.k8s.io/instancegroup") {
        out.labels.insert(
            INSTANCE_GROUP.into(),
            names::label_value(&instance_group(ig)),
        );
        ig.note(format!("label {INSTANCE_GROUP} stands in for kops.k8s.io/instancegroup, by which workloads select"));
    }
    for (k, v) in ig.wish.labels.clone() {
        out.labels.insert(k, v);
    }
    if out.labels.len() > MOST_LABELS {
        ig.find(
            "KOPS-ig-labels",
            Severity::Blocker,
            format!(
                "{} labels: a managed node group takes {MOST_LABELS}",
                out.labels.len()
            ),
            "Remove labels that nobody selects by on blue.",
        );
    }
    out
}

/// Taints as kops spells them: the union of the cluster's kubelet, the group's kubelet and the group (kops.md 1.5), kops's own of GPU nodes.
pub(super) fn spelled(ig: &Ig) -> Vec<String> {
    let mut out: Vec<String> = ig
        .of_cluster("/spec/kubelet/taints")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|t| t.as_str().map(String::from))
        .chain(strings(ig.doc, "/spec/kubelet/taints"))
        .chain(strings(ig.doc, "/spec/taints"))
        .collect();
    if gpu_by_kops(ig) {
        out.push("nvidia.com/gpu:NoSchedule".into());
    }
    out
}

/// Taints of green's nodes.
pub(super) fn taints(ig: &mut Ig) -> Vec<Taint> {
    let spelled = spelled(ig);
    let mut out: Vec<Taint> = vec![];
    for t in spelled {
        match taint(&t) {
            Some(t) if t.key.len() > 63 || t.value.len() > 63 => ig.find(
                "KOPS-ig-taint",
                Severity::Blocker,
                format!(
                    "taint {}={} is longer than the 63 characters that EKS takes",
                    t.key, t.value
                ),
                "Give it a shorter name on blue.",
            ),
            Some(t) if !out.contains(&t) => out.push(t),
            Some(_) => {}
            None => ig.find(
                "KOPS-ig-taint",
                Severity::Warning,
                format!("taint `{t}` cannot be read and is left out"),
                "Correct it on blue: key=value:NoSchedule, PreferNoSchedule or NoExecute.",
            ),
        }
    }
    if out.len() > MOST_TAINTS {
        ig.find(
            "KOPS-ig-taints",
            Severity::Blocker,
            format!(
                "{} taints: a managed node group takes {MOST_TAINTS}",
                out.len()
            ),
            "Remove taints on blue.",
        );
    }
    out
}

/// `key=value:Effect`, `key:Effect`, `key=:Effect`.
fn taint(t: &str) -> Option<Taint> {
    let (kv, effect) = t.trim().rsplit_once(':')?;
    let (key, value) = kv.split_once('=').unwrap_or((kv, ""));
    (!key.is_empty() && matches!(effect, "NoSchedule" | "PreferNoSchedule" | "NoExecute")).then(
        || Taint {
            key: key.into(),
            value: value.into(),
            effect: effect.into(),
        },
    )
}
