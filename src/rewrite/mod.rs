//! Blue object to green object: pure, one rule at a time, each with its number in `replay.md`.
//!
//! Families of rules live in one file each; [`rewrite`] runs them in a fixed order. A rule either decides the fate
//! (skip, refuse, hold) or changes the object, and always leaves its number.

mod accounts;
mod classes;
mod context;
pub(crate) mod convert;
mod daemons;
mod green;
pub mod helm;
mod identity;
mod immutable;
mod ingress;
pub(crate) mod injected;
mod metadata;
mod network;
mod nodes;
mod owners;
pub(crate) mod pod_security;
mod pods;
mod removed;
pub mod rules;
mod scalers;
mod security;
mod services;
mod size;
mod skip;
mod storage;
mod tokens;
pub(crate) mod tools;
mod trace;
mod vaults;
mod work;
mod workloads;

pub use context::Context;
pub(crate) use context::{minor, partition, range};
pub(crate) use daemons::PARKED;
pub use helm::on_stream;
pub use immutable::{content as immutable_content, differing as immutable_difference, immutable};
pub(crate) use removed::served_by;
pub use removed::{Feature, Removal, features, removal, removals};
pub(crate) use scalers::{KEDA_PAUSED, KEDA_PAUSED_AT, annotation_pointer, keda_target};
pub use trace::Hunk;
pub use work::Rewritten;
pub(crate) use work::template_path;
pub use workloads::SINGLETON;

/// What stands for the uid of an owner that is created on green by an earlier step (replay.md 10): the name of the owner as everywhere comes after
/// it. The run puts green's uid in its place before it writes.
pub const UID_OF: &str = "crossfade:uid-of:";

#[cfg(test)]
pub(crate) mod tests;

use crate::object::{Canonical, ObjectId, digest};
use serde_json::Value;
use work::Work;

/// Rewrites one object of blue. Pure: the same object and context give the same result everywhere.
pub fn rewrite(object: &Value, cx: &Context) -> Rewritten {
    let Some(id) = ObjectId::of(object) else {
        return Rewritten::nameless(object);
    };
    let mut work = Work::new(object, id, cx);
    judge(&mut work);
    work.finish()
}

/// [`rewrite`], and the difference between blue's object and green's with the rules beside each piece.
pub fn trace(object: &Value, cx: &Context) -> (Rewritten, Vec<Hunk>) {
    let Some(id) = ObjectId::of(object) else {
        return (Rewritten::nameless(object), vec![]);
    };
    let mut work = Work::new(object, id, cx).traced();
    judge(&mut work);
    work.finish_traced()
}

fn judge(work: &mut Work) {
    skip::decide(work);
    if work.decided() {
        // Of what stays behind nothing is tidied: its verdict names only what decided.
        return;
    }
    metadata::clean(work);
    if !work.decided() {
        convert::convert(work);
    }
    if !work.decided() {
        services::rewrite(work);
        identity::rewrite(work);
        workloads::rewrite(work);
        ingress::rewrite(work);
        network::rewrite(work);
        storage::rewrite(work);
        tools::rewrite(work);
        vaults::rewrite(work);
        size::check(work);
    }
}

/// Annotations that controllers rewrite all the time: no part of what a plan was made from.
const NOISE: &[&str] = &[
    "deployment.kubernetes.io/revision",
    "kubectl.kubernetes.io/last-applied-configuration",
    "control-plane.alpha.kubernetes.io/leader",
    "endpoints.kubernetes.io/last-change-trigger-time",
    "autoscaling.alpha.kubernetes.io/conditions",
    "autoscaling.alpha.kubernetes.io/current-metrics",
];

/// What stands for each value of a Secret.
static BLANK: Value = Value::String(String::new());

/// Hash of what the planner looked at: no status, no server-owned metadata, no replica count (autoscalers move it), and of
/// a Secret only its type and the names of its keys (the snapshot holds no values).
pub fn basis_hash(object: &Value) -> String {
    let Some(map) = object.as_object() else {
        return digest(object);
    };
    let kind = map.get("kind").and_then(Value::as_str).unwrap_or("");
    let scaled = matches!(kind, "Deployment" | "StatefulSet" | "ReplicaSet");
    let mut out = Canonical::default();
    let mut keys: Vec<&str> = map.keys().map(String::as_str).collect();
    if !map.contains_key("metadata") {
        keys.push("metadata");
    }
    keys.sort_unstable();
    out.open();
    for key in keys.into_iter().filter(|k| *k != "status") {
        out.key(key);
        match (key, map.get(key)) {
            ("metadata", meta) => hashed_metadata(meta, &mut out),
            ("data" | "stringData", Some(Value::Object(data))) if kind == "Secret" => {
                out.fields(data, |_| true, |_| &BLANK);
            }
            ("spec", Some(Value::Object(spec))) if scaled => {
                out.fields(spec, |k| k != "replicas", |v| v);
            }
            (_, value) => out.value(value.unwrap_or(&Value::Null)),
        }
    }
    out.close();
    out.hex()
}

/// Name, namespace, labels and annotations, the latter without what controllers write; neither of the two when it is empty.
fn hashed_metadata(meta: Option<&Value>, out: &mut Canonical) {
    out.open();
    for key in ["annotations", "labels", "name", "namespace"] {
        let Some(value) = meta.and_then(|m| m.get(key)) else {
            continue;
        };
        let noise = |k: &str| key == "annotations" && NOISE.contains(&k);
        match value {
            Value::Object(map) if matches!(key, "annotations" | "labels") => {
                if map.keys().any(|k| !noise(k)) {
                    out.key(key);
                    out.fields(map, |k| !noise(k), |v| v);
                }
            }
            value => {
                out.key(key);
                out.value(value);
            }
        }
    }
    out.close();
}

/// The planned target of a Secret with the values of the live one: only the run sees them, and only in memory. What the target does not have (a
/// token of blue, replay.md 38) stays on blue.
pub fn for_green(live_secret: &Value, target: &Value) -> Value {
    let mut out = target.clone();
    let live = live_secret.get("data").and_then(Value::as_object);
    if let Some(data) = out.get_mut("data").and_then(Value::as_object_mut) {
        data.retain(|key, value| match live.and_then(|l| l.get(key)) {
            Some(real) => {
                *value = real.clone();
                true
            }
            // Gone from blue since: a marker is no value.
            None => false,
        });
    }
    out.as_object_mut().map(|o| o.remove("stringData"));
    out
}
