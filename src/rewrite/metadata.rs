//! Rules 6 to 9 and 11 to 13: what every object loses (owners are rule 10, in `owners`).

use super::work::{Work, take};
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

/// Annotations that name blue's own doings (rule 12), exact or as a prefix ending in `/`.
const ANNOTATIONS: &[&str] = &[
    "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation",
    "control-plane.alpha.kubernetes.io/leader",
    "pv.kubernetes.io/",
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/selected-node",
    "volume.beta.kubernetes.io/selected-node",
    "batch.kubernetes.io/job-tracking",
    "kubernetes.io/service-account.uid",
    "kubernetes.io/psp",
    "addons.k8s.io/",
    "endpoints.kubernetes.io/last-change-trigger-time",
    "rbac.authorization.kubernetes.io/autoupdate",
    "velero.io/",
    // aws-load-balancer-controller's memory of which targets it has registered.
    "elbv2.k8s.aws/checkpoint",
    "elbv2.k8s.aws/checkpoint-timestamp",
    "autoscaling.alpha.kubernetes.io/conditions",
    "autoscaling.alpha.kubernetes.io/current-metrics",
];

/// Cleans the metadata and drops the status.
pub(super) fn clean(w: &mut Work) {
    super::owners::rewrite(w);
    let removed = |w: &mut Work, keys: &[&str]| {
        let meta = w.object.get_mut("metadata").and_then(Value::as_object_mut);
        meta.is_some_and(|m| {
            keys.iter()
                .filter(|k| m.shift_remove(**k).is_some())
                .count()
                > 0
        })
    };
    if removed(w, SERVER_OWNED) {
        w.tidied(6);
    }
    if removed(w, &["generateName"]) {
        w.tidied(7);
    }
    if removed(w, &["finalizers"]) {
        w.tidied(11);
    }
    annotations(w);
    if take(&mut w.object, "/status").is_some() {
        w.tidied(9);
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

/// Rules 12 and 13.
fn annotations(w: &mut Work) {
    let keep = |w: &mut Work, keep: &dyn Fn(&str) -> bool| {
        let Some(meta) = w.object.get_mut("metadata").and_then(Value::as_object_mut) else {
            return false;
        };
        let Some(a) = meta.get_mut("annotations").and_then(Value::as_object_mut) else {
            return false;
        };
        let before = a.len();
        a.retain(|k, _| keep(k));
        let dropped = a.len() < before;
        if a.is_empty() {
            meta.shift_remove("annotations");
        }
        dropped
    };
    let of_blue = |k: &str| {
        ANNOTATIONS
            .iter()
            .any(|p| k == *p || p.ends_with('/') && k.starts_with(p))
    };
    if keep(w, &|k| !of_blue(k)) {
        w.tidied(12);
    }
    // It was read already (rule 30 looks at the original); kept, the next `kubectl apply` would bring blue's fields back.
    if keep(w, &|k| {
        k != "kubectl.kubernetes.io/last-applied-configuration"
    }) {
        w.tidied(13);
    }
}
