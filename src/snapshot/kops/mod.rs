//! kops documents: which are read, which are refused, and one shape for all of them (v1alpha2).

mod effective;
pub mod layout;
mod leaves;
mod places;
mod release;
mod types;

pub use effective::{
    Api, Effective, Imds, Known, NETWORKS, RootVolume, Setting, Source, effective,
};
pub use leaves::{Part, at, leaves, parts, push_index, push_key};
pub use places::{Marks, read};
pub use release::{Release, release};

use super::model::Kops;
use crate::error::{Error, Kind, Result};
use serde_json::{Map, Value, json};

/// Whether a document belongs to kops. Documents of v1alpha0 have no apiVersion (kops.md 1.3).
pub fn is_kops(doc: &Value) -> bool {
    let api = doc.get("apiVersion").and_then(Value::as_str);
    let kind = doc.get("kind").and_then(Value::as_str).unwrap_or_default();
    match api {
        Some(api) => ["kops/", "kops.k8s.io/"].iter().any(|g| api.starts_with(g)),
        None => ["Cluster", "InstanceGroup"].contains(&kind),
    }
}

/// Checks a Cluster or InstanceGroup and gives it in the shape of v1alpha2. `at` is its file and line.
pub fn normal(doc: Value, at: &str) -> Result<Value> {
    let api = doc
        .get("apiVersion")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_string();
    let refuse =
        |what: String, remedy: &str| Err(Error::new(Kind::BadInput, what).at(at).remedy(remedy));
    let doc = match api.as_str() {
        "kops.k8s.io/v1alpha2" | "kops/v1alpha2" => doc,
        "kops.k8s.io/v1alpha3" => {
            // Between kops 1.23 and 1.25 the same version had another shape.
            for old in ["subnets", "kubernetesAPIAccess", "tagSubnets"] {
                if doc["kind"] == "Cluster" && doc.pointer(&format!("/spec/{old}")).is_some() {
                    return refuse(
                        format!(
                            "this v1alpha3 document has the shape of kops 1.23 to 1.25 (`spec.{old}`)"
                        ),
                        "export it with `kops get all NAME -o yaml`: that always writes v1alpha2",
                    );
                }
            }
            to_v1alpha2(doc)
        }
        "" => {
            return refuse(
                "this kops document has no apiVersion, so it is v1alpha0".into(),
                "export it with `kops get all NAME -o yaml` by kops 1.11 to 1.17, which writes v1alpha2",
            );
        }
        other => {
            return refuse(
                format!("kops documents of apiVersion `{other}` are not read"),
                "crossfade reads v1alpha2 (and v1alpha3 of kops 1.26 on); kops 1.11 to 1.17 convert v1alpha1: `kops get all NAME -o yaml`",
            );
        }
    };
    if doc
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .is_none_or(str::is_empty)
    {
        return refuse(
            "this kops document has no metadata.name".into(),
            "give the whole document",
        );
    }
    if doc["kind"] == "Cluster" {
        let spec = doc.get("spec").filter(|s| s.is_object());
        let Some(spec) = spec else {
            return refuse(
                "this kops Cluster has no spec".into(),
                "give the whole document",
            );
        };
        // Absent only in kops's own tests, and then AWS.
        let cloud = spec
            .get("cloudProvider")
            .and_then(Value::as_str)
            .unwrap_or("aws");
        if cloud != "aws" {
            return refuse(
                format!(
                    "the kops cluster `{}` runs on {}, not on AWS",
                    doc["metadata"]["name"].as_str().unwrap_or_default(),
                    cloud_name(cloud)
                ),
                "crossfade moves kops clusters on AWS to EKS; this cluster cannot be moved by it",
            );
        }
    }
    if !["Cluster", "InstanceGroup"].contains(&doc["kind"].as_str().unwrap_or_default()) {
        return refuse(
            "this kops document is neither a Cluster nor an InstanceGroup".into(),
            "give what `kops get all NAME -o yaml` prints",
        );
    }
    Ok(doc)
}

fn cloud_name(word: &str) -> String {
    match word {
        "gce" | "gcp" => "Google Cloud (gce)".into(),
        "openstack" => "OpenStack".into(),
        "azure" => "Azure".into(),
        "hetzner" => "Hetzner Cloud".into(),
        "scaleway" => "Scaleway".into(),
        "do" | "digitalocean" => "DigitalOcean".into(),
        other => format!("`{other}`"),
    }
}

/// Kubernetes minor version and spelling of a Cluster: `1.20.0`, `v1.36.0-rc.1` or a URL that ends in a version.
pub fn kubernetes_version(cluster: &Value) -> Option<crate::world::kube::KubeVersion> {
    let text = cluster.pointer("/spec/kubernetesVersion")?.as_str()?;
    let last = text.trim_end_matches('/').rsplit('/').next()?;
    let bare = last.trim_start_matches('v');
    let mut parts = bare.split('.');
    let (major, minor) = (parts.next()?, parts.next()?);
    (major == "1").then_some(())?;
    Some(crate::world::kube::KubeVersion {
        git_version: format!("v{bare}"),
        minor: minor.parse().ok()?,
    })
}

/// Moves one field, if it is there.
fn shift(map: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(v) = map.remove(from) {
        map.insert(to.into(), v);
    }
}

fn take(map: &mut Map<String, Value>, key: &str) -> Map<String, Value> {
    match map.remove(key) {
        Some(Value::Object(m)) => m,
        Some(other) => {
            map.insert(key.into(), other);
            Map::new()
        }
        None => Map::new(),
    }
}

fn flip(map: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(v) = map.remove(from) {
        map.insert(to.into(), v.as_bool().map_or(v, |b| Value::Bool(!b)));
    }
}

/// v1alpha3 (kops 1.26 on) as v1alpha2, by the rename tables of kops.md 1.3. Fields without a rename stay where they are, so
/// an unknown one is reported like any other.
fn to_v1alpha2(mut doc: Value) -> Value {
    let kind = doc["kind"].as_str().unwrap_or_default().to_string();
    doc["apiVersion"] = json!("kops.k8s.io/v1alpha2");
    let Some(spec) = doc.get_mut("spec").and_then(Value::as_object_mut) else {
        return doc;
    };
    if kind == "Cluster" {
        cluster_to_v1alpha2(spec);
    } else if kind == "InstanceGroup" {
        group_to_v1alpha2(spec);
    }
    doc
}

fn cluster_to_v1alpha2(spec: &mut Map<String, Value>) {
    let mut provider = take(spec, "cloudProvider");
    if let Some((cloud, settings)) = provider
        .iter_mut()
        .next()
        .map(|(k, v)| (k.clone(), v.take()))
    {
        spec.insert("cloudProvider".into(), json!(cloud));
        if let Value::Object(mut aws) = settings {
            let mut config = take(spec, "cloudConfig");
            shift(&mut aws, "ebsCSIDriver", "awsEBSCSIDriver");
            shift(
                &mut aws,
                "loadBalancerController",
                "awsLoadBalancerController",
            );
            for (k, v) in aws {
                let top = [
                    "awsLoadBalancerController",
                    "nodeTerminationHandler",
                    "podIdentityWebhook",
                    "warmPool",
                ];
                let target = if top.contains(&k.as_str()) {
                    &mut *spec
                } else {
                    &mut config
                };
                target.insert(k, v);
            }
            spec.insert("cloudConfig".into(), Value::Object(config));
        }
    }
    let mut net = take(spec, "networking");
    for key in [
        "networkCIDR",
        "additionalNetworkCIDRs",
        "networkID",
        "subnets",
        "podCIDR",
        "serviceClusterIPRange",
        "nonMasqueradeCIDR",
        "egressProxy",
    ] {
        shift_between(&mut net, spec, key, key);
    }
    shift_between(&mut net, spec, "isolateControlPlane", "isolateMasters");
    flip(&mut net, "tagSubnets", "DisableSubnetTags");
    shift_between(&mut net, spec, "DisableSubnetTags", "DisableSubnetTags");
    if let Some(Value::Object(mut topology)) = net.remove("topology") {
        if let Some(dns) = topology
            .get("dns")
            .and_then(Value::as_str)
            .map(String::from)
        {
            topology.insert("dns".into(), json!({"type": dns}));
        }
        spec.insert("topology".into(), Value::Object(topology));
    }
    shift(&mut net, "amazonVPC", "amazonvpc");
    shift(&mut net, "kubeRouter", "kuberouter");
    shift(&mut net, "gcp", "gce");
    if let Some(Value::Object(cilium)) = net.get_mut("cilium") {
        flip(cilium, "masquerade", "disableMasquerade");
        flip(cilium, "installIptablesRules", "IPTablesRulesNoinstall");
    }
    if let Some(Value::Object(canal)) = net.get_mut("canal") {
        flip(
            canal,
            "flanneldIptablesForwardRules",
            "disableFlannelForwardRules",
        );
    }
    spec.insert("networking".into(), Value::Object(net));
    let mut api = take(spec, "api");
    shift_between(&mut api, spec, "access", "kubernetesApiAccess");
    shift_between(&mut api, spec, "publicName", "masterPublicName");
    shift_between(&mut api, spec, "additionalSANs", "additionalSans");
    if !api.is_empty() {
        spec.insert("api".into(), Value::Object(api));
    }
    let mut store = take(spec, "configStore");
    for (from, to) in [
        ("base", "configBase"),
        ("keypairs", "keyStore"),
        ("secrets", "secretStore"),
    ] {
        shift_between(&mut store, spec, from, to);
    }
    oidc_to_v1alpha2(spec);
    shift(spec, "controlPlaneKubelet", "masterKubelet");
    shift(spec, "externalDNS", "externalDns");
    if let Some(Value::Object(dns)) = spec.get_mut("externalDns")
        && dns.get("provider") == Some(&json!("none"))
    {
        dns.remove("provider");
        dns.insert("disable".into(), json!(true));
    }
    for policies in ["additionalPolicies", "externalPolicies"] {
        if let Some(Value::Object(p)) = spec.get_mut(policies) {
            shift(p, "control-plane", "master");
        }
    }
    hooks_to_v1alpha2(spec);
}

/// `authentication.oidc` was a part of `kubeAPIServer`: the list of group claims was a comma list, the map of claims a list.
fn oidc_to_v1alpha2(spec: &mut Map<String, Value>) {
    let Some(Value::Object(authentication)) = spec.get_mut("authentication") else {
        return;
    };
    let mut oidc = take(authentication, "oidc");
    let mut server = take(spec, "kubeAPIServer");
    for (from, to) in [
        ("clientID", "oidcClientID"),
        ("groupsPrefix", "oidcGroupsPrefix"),
        ("issuerURL", "oidcIssuerURL"),
        ("usernameClaim", "oidcUsernameClaim"),
        ("usernamePrefix", "oidcUsernamePrefix"),
        ("caFile", "oidcCAFile"),
    ] {
        shift_between(&mut oidc, &mut server, from, to);
    }
    if let Some(claims) = oidc.get("groupsClaims").and_then(Value::as_array) {
        let all: Vec<&str> = claims.iter().filter_map(Value::as_str).collect();
        server.insert("oidcGroupsClaim".into(), json!(all.join(",")));
        oidc.remove("groupsClaims");
    }
    if let Some(Value::Object(claims)) = oidc.get("requiredClaims") {
        let all: Vec<String> = claims
            .iter()
            .map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default()))
            .collect();
        server.insert("oidcRequiredClaim".into(), json!(all));
        oidc.remove("requiredClaims");
    }
    if !server.is_empty() {
        spec.insert("kubeAPIServer".into(), Value::Object(server));
    }
    if let Some(Value::Object(authentication)) = spec.get_mut("authentication") {
        // What has no older name stays, so that it is reported.
        if !oidc.is_empty() {
            authentication.insert("oidc".into(), Value::Object(oidc));
        } else if authentication.is_empty() {
            spec.remove("authentication");
        }
    }
}

fn group_to_v1alpha2(spec: &mut Map<String, Value>) {
    if spec.get("role") == Some(&json!("ControlPlane")) {
        spec.insert("role".into(), json!("Master"));
    }
    let mut root = take(spec, "rootVolume");
    for (from, to) in [
        ("size", "rootVolumeSize"),
        ("type", "rootVolumeType"),
        ("iops", "rootVolumeIops"),
        ("throughput", "rootVolumeThroughput"),
        ("encryption", "rootVolumeEncryption"),
        ("encryptionKey", "rootVolumeEncryptionKey"),
        ("optimization", "rootVolumeOptimization"),
    ] {
        shift_between(&mut root, spec, from, to);
    }
    shift(spec, "associatePublicIP", "associatePublicIp");
    if let Some(Value::Array(balancers)) = spec.get_mut("externalLoadBalancers") {
        for b in balancers.iter_mut().filter_map(Value::as_object_mut) {
            shift(b, "targetGroupARN", "targetGroupArn");
        }
    }
    hooks_to_v1alpha2(spec);
}

fn shift_between(from: &mut Map<String, Value>, to: &mut Map<String, Value>, key: &str, new: &str) {
    if let Some(v) = from.remove(key) {
        to.insert(new.into(), v);
    }
}

fn hooks_to_v1alpha2(spec: &mut Map<String, Value>) {
    for list in ["hooks", "fileAssets"] {
        let Some(Value::Array(items)) = spec.get_mut(list) else {
            continue;
        };
        for item in items.iter_mut().filter_map(Value::as_object_mut) {
            flip(item, "enabled", "disabled");
            if let Some(Value::Array(roles)) = item.get_mut("roles") {
                for role in roles.iter_mut().filter(|r| **r == json!("ControlPlane")) {
                    *role = json!("Master");
                }
            }
        }
    }
}

/// Checks what a state store gave, the same way as files are checked, and sorts the groups by name.
pub fn checked(mut kops: Kops) -> Result<Kops> {
    let at = |kops: &Kops, key: &str| kops.sources.get(key).cloned().unwrap_or_else(|| key.into());
    if let Some(cluster) = kops.cluster.take() {
        let place = at(&kops, "cluster");
        kops.cluster = Some(read(cluster, &place, &Marks::default())?.0);
    }
    let mut groups = vec![];
    for group in std::mem::take(&mut kops.instance_groups) {
        let name = group
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let place = at(&kops, &format!("instancegroup/{name}"));
        groups.push(read(group, &place, &Marks::default())?.0);
    }
    groups.sort_by(|a, b| name_of(a).cmp(name_of(b)));
    kops.instance_groups = groups;
    Ok(kops)
}

/// `metadata.name` of a document.
pub fn name_of(doc: &Value) -> &str {
    doc.pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default()
}
