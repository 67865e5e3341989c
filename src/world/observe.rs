//! The observable end state of a world, in one normal form: the same function looks at the bench and at the twin, before and
//! after, so two worlds (or two moments) can be compared by [`diff`].
//!
//! Left out is what differs between two runs that did the same: uids, versions, times, addresses that a server hands out, and
//! objects that only report (Events, Leases) or follow from others (Pods, ReplicaSets, Endpoints).

use super::cloud::{Inventory, Resource};
use super::kube::ApiKind;
use super::{Class, Result, World};
use crate::object::{ObjectId, Side, annotation};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Kinds that report, or that controllers make from other objects.
const LEFT_OUT: &[&str] = &[
    "Event",
    "Lease",
    "Pod",
    "ReplicaSet",
    "Endpoints",
    "EndpointSlice",
    "ControllerRevision",
    "Job",
    "Node",
    "CSINode",
    "VolumeAttachment",
    "IPAddress",
    "ServiceCIDR",
    "APIService",
    "FlowSchema",
    "PriorityLevelConfiguration",
    "PodMetrics",
    "NodeMetrics",
    "ComponentStatus",
    "Binding",
    "CertificateSigningRequest",
    "LeaseCandidate",
];
/// Metadata that a server or an earlier client left behind.
const META: &[&str] = &[
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "selfLink",
    "generateName",
    "deletionGracePeriodSeconds",
    "ownerReferences",
];
/// Annotations that controllers and kubectl keep for themselves.
const ANNOTATIONS: &[&str] = &[
    "deployment.kubernetes.io/revision",
    "kubectl.kubernetes.io/last-applied-configuration",
    "autoscaling.alpha.kubernetes.io/conditions",
    "autoscaling.alpha.kubernetes.io/current-metrics",
    "control-plane.alpha.kubernetes.io/leader",
    "crossfade.dev/run",
    "crossfade.dev/source-uid",
    "crossfade.dev/content",
];

/// Reads both clusters, the zones, the account and the data sets, and returns them normalised:
/// `{blue: {"kind/ns/name": object}, green: {...}, zones: {id: [record sets]}, cloud: {...}, data: {set: {blue, green}}}`.
/// A cluster that does not exist is `{}`. `zone_ids` and `sets` say which zones and data sets are looked at.
///
/// On the live world use [`observable_in`]: it needs to know which VPC is meant.
pub async fn observable(world: &World, zone_ids: &[String], sets: &[String]) -> Result<Value> {
    observable_in(world, "", zone_ids, sets).await
}

/// Like [`observable`], with the name of the kops cluster by whose tags the account's VPC, subnets and groups are found.
pub async fn observable_in(
    world: &World,
    kops_cluster: &str,
    zone_ids: &[String],
    sets: &[String],
) -> Result<Value> {
    let mut names = BTreeMap::new();
    let blue = cluster(world, Side::Blue, &mut names).await?;
    let green = cluster(world, Side::Green, &mut names).await?;
    let mut zones = Map::new();
    for id in zone_ids {
        let mut records = world.dns.records(id).await?;
        records.sort_by_key(|r| {
            let labels: Vec<String> = r.name.split('.').rev().map(String::from).collect();
            (labels, r.rtype.clone(), r.set_identifier.clone())
        });
        let mut records = serde_json::to_value(records).unwrap_or_default();
        for r in records.as_array_mut().into_iter().flatten() {
            rename(r.pointer_mut("/alias/name"), &names);
            for v in r
                .get_mut("values")
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                rename(Some(v), &names);
            }
        }
        zones.insert(id.clone(), records);
    }
    let mut data = Map::new();
    for set in sets {
        let mut of_set = Map::new();
        for side in [Side::Blue, Side::Green] {
            let s = world.data.state(set, side).await?;
            of_set.insert(side.to_string(), json!({"writable": s.writable}));
        }
        data.insert(set.clone(), Value::Object(of_set));
    }
    let inventory = world.cloud.inventory(kops_cluster).await?;
    Ok(
        json!({"blue": blue, "green": green, "zones": zones, "cloud": account(&inventory), "data": data}),
    )
}

/// A load balancer's own name is made up by the cloud: what counts is whose it is.
fn rename(value: Option<&mut Value>, names: &BTreeMap<String, String>) {
    if let Some(v) = value
        && let Some(s) = v.as_str()
    {
        let bare = s.trim_end_matches('.').to_lowercase();
        let bare = bare.strip_prefix("dualstack.").unwrap_or(&bare);
        if let Some(owner) = names.get(bare) {
            *v = json!(owner);
        }
    }
}

/// Of several served versions the one with the smallest name of a stable one, else the last; one object is looked at once.
fn one_version_each(kinds: &[ApiKind]) -> Vec<&ApiKind> {
    let stable = |k: &ApiKind| !k.version.contains("alpha") && !k.version.contains("beta");
    let moved = |k: &ApiKind| match (k.group.as_str(), k.kind.as_str()) {
        ("extensions", "Ingress" | "NetworkPolicy") => "networking.k8s.io".to_owned(),
        ("extensions", "PodSecurityPolicy") => "policy".to_owned(),
        ("extensions", _) => "apps".to_owned(),
        ("events.k8s.io", "Event") => String::new(),
        (g, _) => g.to_owned(),
    };
    let mut best: BTreeMap<(String, String), &ApiKind> = BTreeMap::new();
    for k in kinds {
        let wanted = k.verbs.iter().any(|v| v == "list") && k.verbs.iter().any(|v| v == "create");
        if !wanted || LEFT_OUT.contains(&k.kind.as_str()) {
            continue;
        }
        let slot = best.entry((moved(k), k.kind.clone())).or_insert(k);
        // autoscaling/v1 hides the metrics of a newer object in an annotation.
        let whole = |k: &ApiKind| !(k.group == "autoscaling" && k.version == "v1");
        if (whole(k), stable(k), &k.version) > (whole(slot), stable(slot), &slot.version) {
            *slot = k;
        }
    }
    best.into_values().collect()
}

async fn cluster(world: &World, side: Side, names: &mut BTreeMap<String, String>) -> Result<Value> {
    let kube = world.kube(side);
    let kinds = match kube.kinds(true).await {
        Ok(kinds) => kinds,
        Err(e)
            if side == Side::Green
                && matches!(
                    e.class,
                    Class::NotReady | Class::Unauthorized | Class::NotFound
                ) =>
        {
            return Ok(json!({}));
        }
        Err(e) => return Err(e),
    };
    let mut out: BTreeMap<String, Value> = BTreeMap::new();
    for kind in one_version_each(&kinds) {
        let listing = match kube.list(kind).await {
            Ok(l) => l,
            Err(e) if e.class == Class::NotFound => continue,
            Err(e) => return Err(e),
        };
        for object in listing.items {
            let Some(id) = ObjectId::of(&object) else {
                continue;
            };
            for address in object
                .pointer("/status/loadBalancer/ingress")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                if let Some(host) = address["hostname"].as_str() {
                    let ns = id.namespace.as_deref().unwrap_or("");
                    names.insert(
                        host.to_lowercase(),
                        format!(
                            "<load balancer of {side} {}/{ns}/{}>",
                            id.kind.to_lowercase(),
                            id.name
                        ),
                    );
                }
            }
            if !generated(&object, &id, side) {
                out.insert(id.to_string(), normal(object));
            }
        }
    }
    Ok(json!(out))
}

/// Objects that a server or EKS itself makes.
fn generated(object: &Value, id: &ObjectId, side: Side) -> bool {
    let system = |n: &str| matches!(n, "kube-system" | "kube-public" | "kube-node-lease");
    let ns = id.namespace.as_deref().unwrap_or("");
    let bootstrap = object
        .pointer("/metadata/labels/kubernetes.io~1bootstrapping")
        .is_some()
        || id.name.starts_with("system:");
    bootstrap
        || (side == Side::Green && (system(ns) || system(&id.name)))
        || matches!(ns, "kube-public" | "kube-node-lease")
        || (id.kind == "ConfigMap"
            && matches!(
                id.name.as_str(),
                "kube-root-ca.crt" | "extension-apiserver-authentication"
            ))
        || (id.kind == "ServiceAccount" && id.name == "default")
        || (id.kind == "Service" && ns == "default" && id.name == "kubernetes")
        || (id.kind == "PriorityClass" && id.name.starts_with("system-"))
        || (id.kind == "Secret"
            && annotation(object, "kubernetes.io/service-account.name").is_some())
        || object
            .pointer("/metadata/ownerReferences")
            .and_then(Value::as_array)
            .is_some_and(|o| o.iter().any(|r| r["controller"] == json!(true)))
}

/// One object without what a server hands out or reports. Empty maps and lists, and defaults that servers of different age
/// write differently, are dropped.
fn normal(mut object: Value) -> Value {
    let kind = object["kind"].as_str().unwrap_or("").to_owned();
    if let Some(m) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in META {
            m.shift_remove(*field);
        }
        if let Some(a) = m.get_mut("annotations").and_then(Value::as_object_mut) {
            for key in ANNOTATIONS {
                a.shift_remove(*key);
            }
        }
        if kind == "Namespace"
            && let Some(l) = m.get_mut("labels").and_then(Value::as_object_mut)
        {
            l.shift_remove("kubernetes.io/metadata.name");
        }
    }
    if let Some(o) = object.as_object_mut() {
        o.shift_remove("status");
        if kind == "Secret" && o.get("type") == Some(&json!("Opaque")) {
            o.shift_remove("type");
        }
    }
    if kind == "ServiceAccount"
        && let Some(o) = object.as_object_mut()
    {
        o.shift_remove("secrets");
    }
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        let drop: &[&str] = match kind.as_str() {
            "Service" => {
                if spec.get("clusterIP") == Some(&json!("None")) {
                    &[
                        "clusterIPs",
                        "ipFamilies",
                        "ipFamilyPolicy",
                        "internalTrafficPolicy",
                        "healthCheckNodePort",
                        "allocateLoadBalancerNodePorts",
                    ]
                } else {
                    &[
                        "clusterIP",
                        "clusterIPs",
                        "ipFamilies",
                        "ipFamilyPolicy",
                        "internalTrafficPolicy",
                        "healthCheckNodePort",
                        "allocateLoadBalancerNodePorts",
                    ]
                }
            }
            "Namespace" => &["finalizers"],
            "PersistentVolumeClaim" => &["volumeName"],
            _ => &[],
        };
        for field in drop {
            spec.shift_remove(*field);
        }
        if kind == "Service" {
            for port in spec
                .get_mut("ports")
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                if let Some(p) = port.as_object_mut() {
                    p.shift_remove("nodePort");
                }
            }
        }
    }
    if kind == "CustomResourceDefinition"
        && let Some(names) = object
            .pointer_mut("/spec/names")
            .and_then(Value::as_object_mut)
    {
        let of = names
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned();
        names.retain(|k, v| match k.as_str() {
            "listKind" => *v != json!(format!("{of}List")),
            "singular" => *v != json!(of.to_lowercase()),
            _ => true,
        });
    }
    if !matches!(kind.as_str(), "ConfigMap" | "Secret") {
        without_defaults(&mut object);
    }
    without_empty(&mut object);
    object
}

/// Fields that a server fills in: absent and default mean the same, and servers of different age fill in different ones.
fn without_defaults(value: &mut Value) {
    match value {
        Value::Object(m) => {
            for v in m.values_mut() {
                without_defaults(v);
            }
            let image = m
                .get("image")
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned();
            let latest = image.ends_with(":latest")
                || !image.rsplit('/').next().unwrap_or("").contains([':', '@']);
            let account = m.get("serviceAccountName").cloned();
            m.retain(|k, v| match (k.as_str(), &*v) {
                ("imagePullPolicy", Value::String(p)) => {
                    p != if latest { "Always" } else { "IfNotPresent" }
                }
                ("serviceAccount", v) => Some(v) != account.as_ref(),
                ("rollingUpdate", v) => *v != json!({"maxSurge": "25%", "maxUnavailable": "25%"}),
                ("strategy" | "updateStrategy", v) => {
                    *v != json!({"type": "RollingUpdate"})
                        && *v != json!({"type": "RollingUpdate", "rollingUpdate": {}})
                }
                ("persistentVolumeClaimRetentionPolicy", v) => {
                    *v != json!({"whenDeleted": "Retain", "whenScaled": "Retain"})
                }
                ("conversion", v) => *v != json!({"strategy": "None"}),
                (k, Value::String(s)) => !TEXT_DEFAULTS.contains(&(k, s.as_str())),
                (k, Value::Number(n)) => n
                    .as_i64()
                    .is_none_or(|n| !NUMBER_DEFAULTS.contains(&(k, n))),
                (k, Value::Bool(b)) => !BOOL_DEFAULTS.contains(&(k, *b)),
                _ => true,
            });
        }
        Value::Array(a) => a.iter_mut().for_each(without_defaults),
        _ => {}
    }
}

const TEXT_DEFAULTS: &[(&str, &str)] = &[
    ("restartPolicy", "Always"),
    ("type", "ClusterIP"),
    ("dnsPolicy", "ClusterFirst"),
    ("schedulerName", "default-scheduler"),
    ("terminationMessagePath", "/dev/termination-log"),
    ("terminationMessagePolicy", "File"),
    ("protocol", "TCP"),
    ("scheme", "HTTP"),
    ("podManagementPolicy", "OrderedReady"),
    ("sessionAffinity", "None"),
    ("externalTrafficPolicy", "Cluster"),
    ("volumeMode", "Filesystem"),
    ("volumeBindingMode", "Immediate"),
    ("reclaimPolicy", "Delete"),
    ("concurrencyPolicy", "Allow"),
    ("preemptionPolicy", "PreemptLowerPriority"),
    ("matchPolicy", "Equivalent"),
    ("reinvocationPolicy", "Never"),
];
const NUMBER_DEFAULTS: &[(&str, i64)] = &[
    ("terminationGracePeriodSeconds", 30),
    ("timeoutSeconds", 1),
    ("periodSeconds", 10),
    ("successThreshold", 1),
    ("failureThreshold", 3),
    ("defaultMode", 420),
    ("progressDeadlineSeconds", 600),
    ("revisionHistoryLimit", 10),
    ("failedJobsHistoryLimit", 1),
    ("successfulJobsHistoryLimit", 3),
    ("partition", 0),
];
const BOOL_DEFAULTS: &[(&str, bool)] = &[
    ("enableServiceLinks", true),
    ("preserveUnknownFields", false),
];

fn without_empty(value: &mut Value) {
    match value {
        Value::Object(m) => {
            for v in m.values_mut() {
                without_empty(v);
            }
            m.retain(|_, v| !(v.is_null() || v.as_object().is_some_and(Map::is_empty)));
        }
        Value::Array(a) => a.iter_mut().for_each(without_empty),
        _ => {}
    }
}

/// The account: names and contents, without what differs from run to run (free addresses, the run's tag) and with EKS's
/// made-up ids (issuer, cluster security group) replaced by whose they are.
fn account(inventory: &Inventory) -> Value {
    let mut inventory = inventory.clone();
    let mut ids: Vec<(String, String)> = vec![];
    let mut eks = 0;
    for issuer in &inventory.oidc_providers {
        if issuer.starts_with("oidc.eks.") {
            ids.push((issuer.clone(), format!("<EKS issuer {eks}>")));
            eks += 1;
        }
    }
    for group in &mut inventory.security_groups {
        if let Some(cluster) = group.tags.get("aws:eks:cluster-name") {
            let name = format!("<security group of EKS cluster {cluster}>");
            ids.push((group.id.clone(), name.clone()));
            group.name = name;
            group.tags.clear();
            group.ingress.clear();
        }
    }
    for subnet in &mut inventory.subnets {
        subnet.free_ips = 0;
    }
    for tags in inventory
        .roles
        .iter_mut()
        .map(|r| &mut r.tags)
        .chain(inventory.clusters.iter_mut().map(|c| &mut c.tags))
    {
        tags.remove(super::cloud::RUN_TAG);
    }
    let by_name = |list: &mut Vec<String>| list.sort();
    for role in &mut inventory.roles {
        by_name(&mut role.managed_policies);
    }
    // What EKS chooses by itself (versions of add-ons, addresses) and what an autoscaler moves differs from world to world.
    let parts = inventory
        .clusters
        .iter_mut()
        .flat_map(|c| c.parts.iter_mut().flatten());
    for part in parts.chain(inventory.launch_templates.iter_mut().flatten()) {
        part.attributes.clear();
        part.tags.remove(super::cloud::RUN_TAG);
        match &mut part.resource {
            Resource::Addon { version, .. } => *version = None,
            Resource::NodeGroup {
                max_unavailable,
                desired,
                disk_gib,
                launch_template,
                ..
            } => {
                *desired = 0;
                max_unavailable.get_or_insert_with(|| "1".into());
                if launch_template.is_some() {
                    *disk_gib = 0;
                }
            }
            Resource::Cluster {
                service_cidr,
                endpoint_cidrs,
                ..
            } => {
                *service_cidr = None;
                endpoint_cidrs.retain(|c| c != "0.0.0.0/0" && c != "::/0");
            }
            _ => {}
        }
    }
    // No template and none read say the same about what a run left behind.
    inventory.launch_templates.get_or_insert_default();
    inventory.log_groups.get_or_insert_default();
    // What EKS offers is no state of the account.
    inventory.addon_offers = None;
    inventory.cluster_versions = None;
    for c in &mut inventory.clusters {
        by_name(&mut c.node_groups);
        by_name(&mut c.addons);
        by_name(&mut c.access_entries);
    }
    let mut text = serde_json::to_string(&inventory).unwrap_or_default();
    for (id, name) in ids {
        text = text.replace(&id, &name);
    }
    let mut v: Value = serde_json::from_str(&text).unwrap_or_default();
    if let Some(o) = v.as_object_mut() {
        o.shift_remove("identity");
        for (list, key) in [
            ("roles", "name"),
            ("clusters", "name"),
            ("subnets", "id"),
            ("securityGroups", "id"),
        ] {
            // Keyed by name, so that one more or less does not shift the comparison of all others.
            let keyed: BTreeMap<String, Value> = match o.shift_remove(list) {
                Some(Value::Array(a)) => a
                    .into_iter()
                    .map(|x| (x[key].as_str().unwrap_or("").to_owned(), x))
                    .collect(),
                _ => BTreeMap::new(),
            };
            o.insert(list.into(), json!(keyed));
        }
    }
    v
}

/// The places where two observable states differ, as `path: before -> after`; empty when they are equal.
/// Lists are compared by position, strings and numbers by value; long values are cut.
pub fn diff(before: &Value, after: &Value) -> Vec<String> {
    let mut out = vec![];
    walk("", before, after, &mut out);
    out
}

fn walk(path: &str, a: &Value, b: &Value, out: &mut Vec<String>) {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let keys: BTreeSet<&String> = x.keys().chain(y.keys()).collect();
            for k in keys {
                let at = if path.is_empty() {
                    k.to_string()
                } else {
                    format!("{path} > {k}")
                };
                match (x.get(k), y.get(k)) {
                    (Some(p), Some(q)) => walk(&at, p, q, out),
                    (Some(p), None) => out.push(format!("{at}: {} -> absent", short(p))),
                    (None, Some(q)) => out.push(format!("{at}: absent -> {}", short(q))),
                    (None, None) => {}
                }
            }
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            for (i, (p, q)) in x.iter().zip(y).enumerate() {
                walk(&format!("{path} > {i}"), p, q, out);
            }
        }
        _ if a == b => {}
        _ => out.push(format!("{path}: {} -> {}", short(a), short(b))),
    }
}

fn short(v: &Value) -> String {
    let text = v.to_string();
    if text.chars().count() <= 160 {
        return text;
    }
    format!("{}...", text.chars().take(157).collect::<String>())
}
