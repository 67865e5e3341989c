//! Rules 6 to 13: what every object loses.

use super::work::{Work, items, take};
use crate::plan::model::Severity;
use serde_json::Value;

/// Server-owned fields (rule 6).
const SERVER_OWNED: &[&str] = &[
    "uid",
    "resourceVersion",
    "generation",
    "selfLink",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
];

/// Annotations that name blue's own doings (rule 12), exact or as a prefix ending in `/` or `*`.
const ANNOTATIONS: &[&str] = &[
    "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation",
    "control-plane.alpha.kubernetes.io/leader",
    "pv.kubernetes.io/",
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/selected-node",
    "batch.kubernetes.io/job-tracking",
    "kubernetes.io/service-account.uid",
    "kubernetes.io/psp",
    "addons.k8s.io/",
    "endpoints.kubernetes.io/last-change-trigger-time",
    "rbac.authorization.kubernetes.io/autoupdate",
    "velero.io/",
    "autoscaling.alpha.kubernetes.io/conditions",
    "autoscaling.alpha.kubernetes.io/current-metrics",
];

/// Cleans the metadata and drops the status.
pub(super) fn clean(w: &mut Work) {
    owners(w);
    let mut rules = vec![];
    if let Some(meta) = w.object.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in SERVER_OWNED {
            if meta.shift_remove(*key).is_some() {
                rules.push(6);
            }
        }
        if meta.shift_remove("generateName").is_some() {
            rules.push(7);
        }
        if meta.shift_remove("finalizers").is_some() {
            rules.push(11);
        }
        if let Some(a) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
            a.retain(|k, _| {
                let drop = ANNOTATIONS
                    .iter()
                    .any(|p| k == p || p.ends_with('/') && k.starts_with(p));
                if drop {
                    rules.push(12);
                }
                !drop
            });
            // It was read already (rule 30 looks at the original); kept, the next `kubectl apply` would bring blue's fields back.
            if a.shift_remove("kubectl.kubernetes.io/last-applied-configuration")
                .is_some()
            {
                rules.push(13);
            }
            if a.is_empty() {
                meta.shift_remove("annotations");
            }
        }
    }
    if take(&mut w.object, "/status").is_some() {
        rules.push(9);
    }
    for r in rules {
        w.tidied(r);
    }
    if w.original.pointer("/metadata/deletionTimestamp").is_some() && !w.decided() {
        w.skip(8);
        w.find(
            "OBJ-deleting",
            Severity::Warning,
            8,
            "the object is being deleted on blue and is not copied",
            "Finish or cancel the deletion, then plan again.",
        );
    }
}

/// Rule 10: a child that its controller makes again is skipped, a dangling owner is dropped.
fn owners(w: &mut Work) {
    let owners: Vec<(String, String, bool)> = items(w.original, "/metadata/ownerReferences")
        .map(|o| {
            (
                o["kind"].as_str().unwrap_or("").to_string(),
                o["name"].as_str().unwrap_or("").to_string(),
                o["controller"] == true,
            )
        })
        .collect();
    if owners.is_empty() {
        return;
    }
    take(&mut w.object, "/metadata/ownerReferences");
    if w.decided() {
        return;
    }
    for (kind, name, controller) in &owners {
        if kind == "Pod" {
            // A leader lock (rule 23).
            w.skip(10);
            return;
        }
        if *controller && w.cx.has_owner(kind, w.id.namespace.as_deref(), name) {
            w.skip(10);
            return;
        }
    }
    w.changed(10);
    let list: Vec<String> = owners.iter().map(|(k, n, _)| format!("{k}/{n}")).collect();
    w.find(
        "WL-09",
        Severity::Warning,
        10,
        format!(
            "owned by {}: the reference is dropped, because a uid of blue means nothing on green",
            list.join(", ")
        ),
        "Check that nothing relies on the object being deleted with its owner.",
    );
}
