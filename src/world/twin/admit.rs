//! What a real server refuses, and what it drops.

use super::store::Store;
use crate::object::{ObjectId, Side};
use serde_json::{Value, json};

/// Kinds whose status a main-resource write cannot touch.
pub(super) fn has_status(kind: &str) -> bool {
    matches!(
        kind,
        "Deployment"
            | "StatefulSet"
            | "DaemonSet"
            | "ReplicaSet"
            | "Job"
            | "CronJob"
            | "Pod"
            | "Service"
            | "Ingress"
            | "HorizontalPodAutoscaler"
            | "PodDisruptionBudget"
            | "Namespace"
            | "Node"
            | "PersistentVolume"
            | "PersistentVolumeClaim"
            | "CustomResourceDefinition"
    )
}

/// Mistakes of a copy that a real server refuses.
pub(super) fn validate(
    object: &Value,
    id: &ObjectId,
    side: Side,
) -> std::result::Result<(), String> {
    if object
        .pointer("/metadata/resourceVersion")
        .is_some_and(|v| v != "")
    {
        return Err("resourceVersion should not be set on objects to be created".into());
    }
    let rbac = id.group() == "rbac.authorization.k8s.io";
    let dns = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    if id.name.len() > 253 || id.name.is_empty() || (!rbac && !id.name.chars().all(dns)) {
        return Err(format!(
            "metadata.name: Invalid value: \"{}\": must be a lowercase RFC 1123 name",
            id.name
        ));
    }
    let spec = &object["spec"];
    match (id.kind.as_str(), id.api_version.as_str()) {
        ("Deployment" | "StatefulSet" | "DaemonSet", "apps/v1") => {
            let selector = spec
                .pointer("/selector/matchLabels")
                .and_then(Value::as_object);
            if spec.get("selector").is_none() {
                return Err("spec.selector: Required value".into());
            }
            let labels = spec.pointer("/template/metadata/labels");
            for (k, v) in selector.into_iter().flatten() {
                if labels.and_then(|l| l.get(k)) != Some(v) {
                    return Err("spec.template.metadata.labels: `selector` does not match template `labels`".into());
                }
            }
        }
        ("Ingress", "networking.k8s.io/v1") => {
            let paths = spec["rules"].as_array().into_iter().flatten();
            for path in paths.flat_map(|r| r["http"]["paths"].as_array().into_iter().flatten()) {
                if path.get("pathType").is_none() {
                    return Err("spec.rules.http.paths.pathType: Required value".into());
                }
                if path["backend"].get("serviceName").is_some() {
                    return Err(
                        "unknown field \"spec.rules.http.paths.backend.serviceName\"".into(),
                    );
                }
            }
        }
        ("CustomResourceDefinition", "apiextensions.k8s.io/v1") => {
            let versions = spec["versions"].as_array().cloned().unwrap_or_default();
            if versions.is_empty()
                || versions
                    .iter()
                    .any(|v| v.pointer("/schema/openAPIV3Schema").is_none())
            {
                return Err(
                    "spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required"
                        .into(),
                );
            }
            if spec["preserveUnknownFields"] == json!(true) {
                return Err(
                    "spec.preserveUnknownFields: Invalid value: true: must be false".into(),
                );
            }
            if id.name
                != format!(
                    "{}.{}",
                    spec["names"]["plural"].as_str().unwrap_or(""),
                    spec["group"].as_str().unwrap_or("")
                )
            {
                return Err(
                    "metadata.name: Invalid value: must be spec.names.plural+\".\"+spec.group"
                        .into(),
                );
            }
        }
        ("Service", _) => {
            let ip = spec["clusterIP"].as_str().unwrap_or("");
            let in_range =
                ip.is_empty() || ip == "None" || (ip.starts_with("100.") == (side == Side::Blue));
            if !in_range {
                return Err(format!(
                    "spec.clusterIPs[0]: Invalid value: \"{ip}\": the provided IP is not in the valid range"
                ));
            }
        }
        ("Job", _) if spec["manualSelector"] != json!(true) && spec.get("selector").is_some() => {
            return Err("spec.selector: Invalid value: `selector` will be auto-generated".into());
        }
        ("Secret", _)
            if object["type"] == json!("kubernetes.io/service-account-token")
                && crate::object::annotation(object, "kubernetes.io/service-account.name")
                    .is_none() =>
        {
            return Err(
                "metadata.annotations[kubernetes.io/service-account.name]: Required value".into(),
            );
        }
        _ => {}
    }
    Ok(())
}

/// Drops the fields of a custom resource that its schema does not know, as a structural schema makes the server do, and names them.
pub(super) fn prune(store: &Store, id: &ObjectId, object: &mut Value) -> Vec<String> {
    let crd = store
        .of_kind("apiextensions.k8s.io", "CustomResourceDefinition")
        .map(|(_, crd)| crd)
        .find(|crd| {
            crd["spec"]["group"] == id.group() && crd["spec"]["names"]["kind"] == id.kind.as_str()
        });
    let schema = crd.and_then(|crd| {
        crd["spec"]["versions"]
            .as_array()?
            .iter()
            .find(|v| v["name"] == id.version())?
            .pointer("/schema/openAPIV3Schema")
    });
    let mut dropped = vec![];
    if let (Some(schema), Some(root)) = (schema, object.as_object_mut()) {
        let own: Vec<String> = root
            .keys()
            .filter(|k| !matches!(k.as_str(), "apiVersion" | "kind" | "metadata"))
            .cloned()
            .collect();
        for key in own {
            prune_field(schema, root, &key, "", &mut dropped);
        }
    }
    dropped
}

fn keeps(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == json!(true)
}

fn prune_field(
    schema: &Value,
    map: &mut serde_json::Map<String, Value>,
    key: &str,
    at: &str,
    dropped: &mut Vec<String>,
) {
    let at = if at.is_empty() {
        key.to_string()
    } else {
        format!("{at}.{key}")
    };
    let inner = match schema["properties"].get(key) {
        Some(inner) => inner,
        None if schema["additionalProperties"].is_object() => &schema["additionalProperties"],
        None if keeps(schema) || schema["additionalProperties"] == json!(true) => return,
        None => {
            map.shift_remove(key);
            dropped.push(at);
            return;
        }
    };
    if let Some(value) = map.get_mut(key) {
        prune_value(inner, value, &at, dropped);
    }
}

fn prune_value(schema: &Value, value: &mut Value, at: &str, dropped: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            let keys: Vec<String> = map.keys().cloned().collect();
            for key in keys {
                prune_field(schema, map, &key, at, dropped);
            }
        }
        Value::Array(list) => {
            for (n, item) in list.iter_mut().enumerate() {
                prune_value(&schema["items"], item, &format!("{at}[{n}]"), dropped);
            }
        }
        _ => {}
    }
}
