//! Which kinds a Kubernetes version serves, and what one object looks like in two versions.

use crate::world::kube::ApiKind;
use serde_json::{Map, Value, json};

/// group, version, kind, plural, namespaced, first minor, first minor without it (0: still served).
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    bool,
    u32,
    u32,
);

/// Kinds that can be listed and created, 1.16 to 1.36. Removals: removed-apis.yaml.
const TABLE: &[Row] = &[
    ("", "v1", "ConfigMap", "configmaps", true, 0, 0),
    ("", "v1", "Endpoints", "endpoints", true, 0, 0),
    ("", "v1", "Event", "events", true, 0, 0),
    ("", "v1", "LimitRange", "limitranges", true, 0, 0),
    ("", "v1", "Namespace", "namespaces", false, 0, 0),
    ("", "v1", "Node", "nodes", false, 0, 0),
    (
        "",
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        true,
        0,
        0,
    ),
    (
        "",
        "v1",
        "PersistentVolume",
        "persistentvolumes",
        false,
        0,
        0,
    ),
    ("", "v1", "Pod", "pods", true, 0, 0),
    ("", "v1", "PodTemplate", "podtemplates", true, 0, 0),
    (
        "",
        "v1",
        "ReplicationController",
        "replicationcontrollers",
        true,
        0,
        0,
    ),
    ("", "v1", "ResourceQuota", "resourcequotas", true, 0, 0),
    ("", "v1", "Secret", "secrets", true, 0, 0),
    ("", "v1", "ServiceAccount", "serviceaccounts", true, 0, 0),
    ("", "v1", "Service", "services", true, 0, 0),
    (
        "apps",
        "v1",
        "ControllerRevision",
        "controllerrevisions",
        true,
        0,
        0,
    ),
    ("apps", "v1", "DaemonSet", "daemonsets", true, 0, 0),
    ("apps", "v1", "Deployment", "deployments", true, 0, 0),
    ("apps", "v1", "ReplicaSet", "replicasets", true, 0, 0),
    ("apps", "v1", "StatefulSet", "statefulsets", true, 0, 0),
    ("extensions", "v1beta1", "Ingress", "ingresses", true, 0, 22),
    (
        "networking.k8s.io",
        "v1beta1",
        "Ingress",
        "ingresses",
        true,
        14,
        22,
    ),
    (
        "networking.k8s.io",
        "v1beta1",
        "IngressClass",
        "ingressclasses",
        false,
        18,
        22,
    ),
    (
        "networking.k8s.io",
        "v1",
        "Ingress",
        "ingresses",
        true,
        19,
        0,
    ),
    (
        "networking.k8s.io",
        "v1",
        "IngressClass",
        "ingressclasses",
        false,
        19,
        0,
    ),
    (
        "networking.k8s.io",
        "v1",
        "NetworkPolicy",
        "networkpolicies",
        true,
        0,
        0,
    ),
    (
        "networking.k8s.io",
        "v1",
        "ServiceCIDR",
        "servicecidrs",
        false,
        33,
        0,
    ),
    (
        "networking.k8s.io",
        "v1",
        "IPAddress",
        "ipaddresses",
        false,
        33,
        0,
    ),
    ("batch", "v1", "Job", "jobs", true, 0, 0),
    ("batch", "v1beta1", "CronJob", "cronjobs", true, 0, 25),
    ("batch", "v1", "CronJob", "cronjobs", true, 21, 0),
    (
        "autoscaling",
        "v1",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        true,
        0,
        0,
    ),
    (
        "autoscaling",
        "v2beta1",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        true,
        0,
        25,
    ),
    (
        "autoscaling",
        "v2beta2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        true,
        0,
        26,
    ),
    (
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        true,
        23,
        0,
    ),
    (
        "policy",
        "v1beta1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        true,
        0,
        25,
    ),
    (
        "policy",
        "v1beta1",
        "PodSecurityPolicy",
        "podsecuritypolicies",
        false,
        0,
        25,
    ),
    (
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        true,
        21,
        0,
    ),
    (
        "rbac.authorization.k8s.io",
        "v1beta1",
        "ClusterRole",
        "clusterroles",
        false,
        0,
        22,
    ),
    (
        "rbac.authorization.k8s.io",
        "v1beta1",
        "ClusterRoleBinding",
        "clusterrolebindings",
        false,
        0,
        22,
    ),
    (
        "rbac.authorization.k8s.io",
        "v1beta1",
        "Role",
        "roles",
        true,
        0,
        22,
    ),
    (
        "rbac.authorization.k8s.io",
        "v1beta1",
        "RoleBinding",
        "rolebindings",
        true,
        0,
        22,
    ),
    (
        "rbac.authorization.k8s.io",
        "v1",
        "ClusterRole",
        "clusterroles",
        false,
        0,
        0,
    ),
    (
        "rbac.authorization.k8s.io",
        "v1",
        "ClusterRoleBinding",
        "clusterrolebindings",
        false,
        0,
        0,
    ),
    (
        "rbac.authorization.k8s.io",
        "v1",
        "Role",
        "roles",
        true,
        0,
        0,
    ),
    (
        "rbac.authorization.k8s.io",
        "v1",
        "RoleBinding",
        "rolebindings",
        true,
        0,
        0,
    ),
    (
        "apiextensions.k8s.io",
        "v1beta1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        false,
        0,
        22,
    ),
    (
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        false,
        16,
        0,
    ),
    (
        "apiregistration.k8s.io",
        "v1beta1",
        "APIService",
        "apiservices",
        false,
        0,
        22,
    ),
    (
        "apiregistration.k8s.io",
        "v1",
        "APIService",
        "apiservices",
        false,
        0,
        0,
    ),
    (
        "admissionregistration.k8s.io",
        "v1beta1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        false,
        0,
        22,
    ),
    (
        "admissionregistration.k8s.io",
        "v1beta1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        false,
        0,
        22,
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        false,
        16,
        0,
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        false,
        16,
        0,
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        false,
        30,
        0,
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        false,
        30,
        0,
    ),
    (
        "storage.k8s.io",
        "v1beta1",
        "StorageClass",
        "storageclasses",
        false,
        0,
        22,
    ),
    (
        "storage.k8s.io",
        "v1",
        "StorageClass",
        "storageclasses",
        false,
        0,
        0,
    ),
    (
        "storage.k8s.io",
        "v1",
        "VolumeAttachment",
        "volumeattachments",
        false,
        13,
        0,
    ),
    (
        "storage.k8s.io",
        "v1",
        "CSIDriver",
        "csidrivers",
        false,
        18,
        0,
    ),
    ("storage.k8s.io", "v1", "CSINode", "csinodes", false, 17, 0),
    (
        "storage.k8s.io",
        "v1",
        "CSIStorageCapacity",
        "csistoragecapacities",
        true,
        24,
        0,
    ),
    (
        "scheduling.k8s.io",
        "v1beta1",
        "PriorityClass",
        "priorityclasses",
        false,
        0,
        22,
    ),
    (
        "scheduling.k8s.io",
        "v1",
        "PriorityClass",
        "priorityclasses",
        false,
        14,
        0,
    ),
    ("coordination.k8s.io", "v1", "Lease", "leases", true, 14, 0),
    (
        "discovery.k8s.io",
        "v1beta1",
        "EndpointSlice",
        "endpointslices",
        true,
        17,
        25,
    ),
    (
        "discovery.k8s.io",
        "v1",
        "EndpointSlice",
        "endpointslices",
        true,
        21,
        0,
    ),
    ("events.k8s.io", "v1", "Event", "events", true, 19, 0),
    (
        "certificates.k8s.io",
        "v1",
        "CertificateSigningRequest",
        "certificatesigningrequests",
        false,
        19,
        0,
    ),
    (
        "node.k8s.io",
        "v1",
        "RuntimeClass",
        "runtimeclasses",
        false,
        20,
        0,
    ),
    (
        "flowcontrol.apiserver.k8s.io",
        "v1beta1",
        "FlowSchema",
        "flowschemas",
        false,
        20,
        26,
    ),
    (
        "flowcontrol.apiserver.k8s.io",
        "v1beta1",
        "PriorityLevelConfiguration",
        "prioritylevelconfigurations",
        false,
        20,
        26,
    ),
    (
        "flowcontrol.apiserver.k8s.io",
        "v1",
        "FlowSchema",
        "flowschemas",
        false,
        29,
        0,
    ),
    (
        "flowcontrol.apiserver.k8s.io",
        "v1",
        "PriorityLevelConfiguration",
        "prioritylevelconfigurations",
        false,
        29,
        0,
    ),
];

/// Everything that a plain server of this minor serves.
pub(super) fn built_in(minor: u32) -> Vec<ApiKind> {
    TABLE
        .iter()
        .filter(|r| r.5 <= minor && (r.6 == 0 || minor < r.6))
        .map(|r| kind(r.0, r.1, r.2, r.3, r.4))
        .collect()
}

/// An ApiKind with all verbs.
pub(super) fn kind(
    group: &str,
    version: &str,
    kind: &str,
    plural: &str,
    namespaced: bool,
) -> ApiKind {
    ApiKind {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        plural: plural.into(),
        namespaced,
        verbs: [
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch",
        ]
        .map(String::from)
        .to_vec(),
    }
}

/// The group under which a kind is stored: kinds that moved are one object in both groups.
pub(super) fn storage_group<'a>(group: &'a str, kind: &str) -> &'a str {
    match (group, kind) {
        ("extensions", "Ingress" | "NetworkPolicy") => "networking.k8s.io",
        ("extensions", "PodSecurityPolicy") => "policy",
        ("extensions", _) => "apps",
        ("events.k8s.io", "Event") => "",
        (g, _) => g,
    }
}

/// The kinds that a CustomResourceDefinition serves, in either of its versions.
pub(super) fn of_crd(crd: &Value) -> Vec<ApiKind> {
    let spec = &crd["spec"];
    let (Some(group), Some(name), Some(plural)) = (
        spec["group"].as_str(),
        spec["names"]["kind"].as_str(),
        spec["names"]["plural"].as_str(),
    ) else {
        return vec![];
    };
    let namespaced = spec["scope"].as_str() != Some("Cluster");
    let mut versions: Vec<&str> = spec["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|v| v["served"].as_bool().unwrap_or(true))
        .filter_map(|v| v["name"].as_str())
        .collect();
    if versions.is_empty() {
        versions.extend(spec["version"].as_str());
    }
    versions
        .into_iter()
        .map(|v| kind(group, v, name, plural, namespaced))
        .collect()
}

/// The same object in another API version, as a server converts it. Only kinds whose shape differs are touched.
pub(super) fn convert(object: &Value, api_version: &str) -> Value {
    let from = object["apiVersion"].as_str().unwrap_or("");
    let mut out = object.clone();
    if from == api_version {
        return out;
    }
    out["apiVersion"] = json!(api_version);
    let is_v1 = |v: &str| v.ends_with("/v1");
    match out["kind"].as_str() {
        Some("Ingress") if is_v1(api_version) != is_v1(from) => {
            ingress(&mut out["spec"], is_v1(api_version))
        }
        Some("CustomResourceDefinition") if is_v1(api_version) != is_v1(from) => {
            crd(&mut out["spec"], is_v1(api_version))
        }
        _ => {}
    }
    out
}

fn ingress(spec: &mut Value, to_v1: bool) {
    let Some(spec) = spec.as_object_mut() else {
        return;
    };
    let (old, new) = if to_v1 {
        ("backend", "defaultBackend")
    } else {
        ("defaultBackend", "backend")
    };
    if let Some(b) = spec.remove(old) {
        spec.insert(new.into(), backend(b, to_v1));
    }
    for rule in spec
        .get_mut("rules")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        for path in rule
            .pointer_mut("/http/paths")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            let Some(path) = path.as_object_mut() else {
                continue;
            };
            if to_v1 {
                path.entry("pathType")
                    .or_insert(json!("ImplementationSpecific"));
            }
            if let Some(b) = path.get_mut("backend") {
                *b = backend(b.take(), to_v1);
            }
        }
    }
}

fn backend(b: Value, to_v1: bool) -> Value {
    let mut out = Map::new();
    if let Some(r) = b.get("resource") {
        out.insert("resource".into(), r.clone());
    }
    if to_v1 {
        if let Some(name) = b.get("serviceName") {
            let port = match &b["servicePort"] {
                Value::String(s) => json!({ "name": s }),
                n => json!({ "number": n }),
            };
            out.insert("service".into(), json!({ "name": name, "port": port }));
        }
    } else if let Some(s) = b.get("service") {
        out.insert("serviceName".into(), s["name"].clone());
        let port = &s["port"];
        out.insert(
            "servicePort".into(),
            port.get("name")
                .or(port.get("number"))
                .cloned()
                .unwrap_or(Value::Null),
        );
    }
    Value::Object(out)
}

fn crd(spec: &mut Value, to_v1: bool) {
    let Some(spec) = spec.as_object_mut() else {
        return;
    };
    if !to_v1 {
        if let Some(name) = spec
            .get("versions")
            .and_then(|v| v[0]["name"].as_str())
            .map(String::from)
        {
            spec.insert("version".into(), json!(name));
        }
        return;
    }
    let schema = spec.remove("validation");
    let columns = spec.remove("additionalPrinterColumns");
    let subresources = spec.remove("subresources");
    let version = spec.remove("version");
    let versions = spec.entry("versions").or_insert_with(
        || json!([{ "name": version.unwrap_or(json!("v1")), "served": true, "storage": true }]),
    );
    for v in versions.as_array_mut().into_iter().flatten() {
        let Some(v) = v.as_object_mut() else { continue };
        if let Some(s) = &schema {
            v.entry("schema").or_insert(s.clone());
        }
        if let Some(s) = &subresources {
            v.entry("subresources").or_insert(s.clone());
        }
        if let Some(c) = &columns {
            v.entry("additionalPrinterColumns").or_insert_with(|| {
                let mut c = c.clone();
                for col in c.as_array_mut().into_iter().flatten() {
                    if let Some(col) = col.as_object_mut()
                        && let Some(path) = col.remove("JSONPath")
                    {
                        col.insert("jsonPath".into(), path);
                    }
                }
                c
            });
        }
    }
}
