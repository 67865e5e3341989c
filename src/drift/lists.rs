//! Which lists are sets of things with names (the API's `x-kubernetes-list-map-keys` and patch merge keys); every other list is one value.

use super::path::{Path, Seg};
use serde_json::Value;
use std::collections::BTreeMap;

/// The keys that identify an item of a list at this path of this kind; empty when the list is one value.
///
/// Source: the merge keys of the OpenAPI of Kubernetes 1.36 for pod templates and Services. Lists of custom resources are one value: their
/// keys are in a schema that blue's age did not write.
fn keys_of(kind: &str, path: &Path) -> &'static [&'static str] {
    let names: Vec<&str> = path
        .0
        .iter()
        .filter_map(|s| match s {
            Seg::Key(k) => Some(k.as_str()),
            Seg::Item(_) => None,
        })
        .collect();
    let Some((last, way)) = names.split_last() else {
        return &[];
    };
    let pods: &[&str] = match kind {
        "Deployment"
        | "StatefulSet"
        | "DaemonSet"
        | "ReplicaSet"
        | "Job"
        | "ReplicationController" => &["spec", "template", "spec"],
        "CronJob" => &["spec", "jobTemplate", "spec", "template", "spec"],
        "PodTemplate" => &["template", "spec"],
        "Pod" => &["spec"],
        "Service" if way == ["spec"] && *last == "ports" => return &["port", "protocol"],
        _ => return &[],
    };
    let Some(rest) = way.strip_prefix(pods) else {
        return &[];
    };
    match (rest, *last) {
        ([], "containers" | "initContainers" | "ephemeralContainers") => &["name"],
        ([], "volumes" | "imagePullSecrets") => &["name"],
        ([], "topologySpreadConstraints") => &["topologyKey", "whenUnsatisfiable"],
        ([], "hostAliases") => &["ip"],
        (["containers" | "initContainers"], "env") => &["name"],
        (["containers" | "initContainers"], "ports") => &["containerPort", "protocol"],
        (["containers" | "initContainers"], "volumeMounts") => &["mountPath"],
        (["containers" | "initContainers"], "volumeDevices") => &["devicePath"],
        _ => &[],
    }
}

/// A list as items by their keys, in order; `None` when it is to be taken as one value: no keys are known, an item lacks one, or two
/// items have the same (the API allows that for `env`).
pub(super) fn keyed<'v>(
    kind: &str,
    path: &Path,
    list: &'v [Value],
) -> Option<Vec<(BTreeMap<String, Value>, &'v Value)>> {
    let keys = keys_of(kind, path);
    if keys.is_empty() {
        return None;
    }
    let mut out: Vec<(BTreeMap<String, Value>, &Value)> = vec![];
    for item in list {
        let mut id = BTreeMap::new();
        for key in keys {
            let value = match (item.get(*key), *key) {
                (Some(v), _) => v.clone(),
                (None, "protocol") => "TCP".into(),
                (None, _) => return None,
            };
            id.insert((*key).to_string(), value);
        }
        if out.iter().any(|(other, _)| *other == id) {
            return None;
        }
        out.push((id, item));
    }
    Some(out)
}
