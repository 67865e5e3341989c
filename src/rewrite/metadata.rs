//! Rules 6 to 13: what every object loses.

use super::work::{Work, items, take};
use crate::object::tight;
use crate::plan::model::Severity;
use serde_json::{Map, Value};

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

/// Fields of the metadata that no object of green gets from blue, with the rule that says so; [`owners`] sees to the owners.
fn lost(key: &str) -> Option<u32> {
    match key {
        "generateName" => Some(7),
        "ownerReferences" => Some(10),
        "finalizers" => Some(11),
        _ => SERVER_OWNED.contains(&key).then_some(6),
    }
}

/// The rule by which an annotation of blue is dropped.
fn noted(key: &str) -> Option<u32> {
    // It was read already (rule 30 looks at the original); kept, the next `kubectl apply` would bring blue's fields back.
    if key == "kubectl.kubernetes.io/last-applied-configuration" {
        return Some(13);
    }
    ANNOTATIONS
        .iter()
        .any(|p| key == *p || p.ends_with('/') && key.starts_with(p))
        .then_some(12)
}

/// A copy without what every object loses: what is dropped anyway (the status, managed fields, what was last applied) is most of a live object.
pub(super) fn copy(original: &Value) -> Value {
    let Some(object) = original.as_object() else {
        return original.clone();
    };
    let metadata = |meta: &Map<String, Value>| {
        without(
            meta,
            |k| lost(k).is_some(),
            |key, value| match (key, value) {
                ("annotations", Value::Object(notes)) => {
                    let kept = without(notes, |k| noted(k).is_some(), |_, v| Some(tight(v)));
                    (!kept.is_empty()).then_some(Value::Object(kept))
                }
                _ => Some(tight(value)),
            },
        )
    };
    Value::Object(without(
        object,
        |k| k == "status",
        |key, value| match (key, value) {
            ("metadata", Value::Object(meta)) => Some(Value::Object(metadata(meta))),
            _ => Some(tight(value)),
        },
    ))
}

/// A map without some keys, of exactly the size that it needs.
fn without(
    map: &Map<String, Value>,
    drop: impl Fn(&str) -> bool,
    copy: impl Fn(&str, &Value) -> Option<Value>,
) -> Map<String, Value> {
    let mut out = Map::with_capacity(map.keys().filter(|k| !drop(k)).count());
    for (key, value) in map.iter().filter(|(k, _)| !drop(k)) {
        if let Some(value) = copy(key, value) {
            out.insert(key.clone(), value);
        }
    }
    out
}

/// Cleans the metadata and drops the status.
pub(super) fn clean(w: &mut Work) {
    owners(w);
    if w.is_traced() {
        by_steps(w);
    } else {
        at_once(w);
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

/// The copy is made without what is dropped, unless the object stays on blue: then there is none.
fn at_once(w: &mut Work) {
    if !w.decided() {
        w.copy();
    }
    let original = w.original;
    if let Some(meta) = original.get("metadata").and_then(Value::as_object) {
        for rule in meta.keys().filter_map(|k| lost(k)).filter(|r| *r != 10) {
            w.tidied(rule);
        }
        if let Some(notes) = meta.get("annotations").and_then(Value::as_object) {
            notes
                .keys()
                .filter_map(|k| noted(k))
                .for_each(|r| w.tidied(r));
        }
    }
    if original.get("status").is_some() {
        w.tidied(9);
    }
}

/// One rule after the other, for a trace that shows which took what.
fn by_steps(w: &mut Work) {
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
    for rule in [12, 13] {
        if keep(w, &|k| noted(k) != Some(rule)) {
            w.tidied(rule);
        }
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
