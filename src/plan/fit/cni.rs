//! Settings of green's VPC CNI: those of blue's, when it ran the same one, and then the wishes of migration.yaml.

use super::addresses::Mode;
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use serde_json::Value;
use std::collections::BTreeMap;

/// Keys of the kops networking document that are no network of their own.
const NO_NETWORK: &[&str] = &[
    "subnets",
    "topology",
    "networkCIDR",
    "nonMasqueradeCIDR",
    "networkID",
    "podCIDR",
    "serviceClusterIPRange",
    "additionalNetworkCIDRs",
    "isolateControlPlane",
    "tagSubnets",
    "egressProxy",
];

/// Blue's network and its settings, as kops spells it (`calico`, `amazonvpc` ...).
pub fn network(snapshot: &Snapshot) -> Option<(&str, &Value)> {
    snapshot
        .kops
        .cluster
        .as_ref()?
        .pointer("/spec/networking")?
        .as_object()?
        .iter()
        .find(|(k, _)| !NO_NETWORK.contains(&k.as_str()))
        .map(|(k, v)| (k.as_str(), v))
}

/// Whether pods of blue have addresses of the VPC, as green's will.
pub fn pods_in_vpc(snapshot: &Snapshot) -> Option<bool> {
    let (name, settings) = network(snapshot)?;
    Some(match name {
        "amazonvpc" | "amazonVPC" | "lyftvpc" => true,
        "cilium" => settings["ipam"] == "eni",
        _ => false,
    })
}

/// Environment of green's aws-node.
pub fn environment(spec: &Spec, snapshot: &Snapshot) -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> = BTreeMap::new();
    if let Some(("amazonvpc" | "amazonVPC", settings)) = network(snapshot) {
        for e in settings["env"].as_array().into_iter().flatten() {
            if let (Some(k), Some(v)) = (e["name"].as_str(), e["value"].as_str()) {
                env.insert(k.into(), v.into());
            }
        }
    }
    let wish = &spec.green.network;
    env.extend(wish.cni_env.clone());
    if let Some(on) = wish.prefix_delegation {
        env.insert("ENABLE_PREFIX_DELEGATION".into(), on.to_string());
    }
    if let Some(n) = wish.warm_ip_target {
        env.insert("WARM_IP_TARGET".into(), n.to_string());
    }
    env
}

/// How addresses are handed out.
pub fn mode(env: &BTreeMap<String, String>) -> Mode {
    let number = |k: &str| env.get(k).and_then(|v| v.trim().parse::<u32>().ok());
    let on = |k: &str| env.get(k).is_some_and(|v| v.eq_ignore_ascii_case("true"));
    Mode {
        prefixes: on("ENABLE_PREFIX_DELEGATION"),
        warm_ips: number("WARM_IP_TARGET"),
        minimum_ips: number("MINIMUM_IP_TARGET"),
        warm_prefixes: number("WARM_PREFIX_TARGET"),
        custom_networking: on("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"),
    }
}

/// Blue's cluster is IPv6 only (`nonMasqueradeCIDR: ::/0`, kops.md 2).
pub fn ipv6(snapshot: &Snapshot) -> bool {
    [
        "/spec/nonMasqueradeCIDR",
        "/spec/networking/nonMasqueradeCIDR",
    ]
    .iter()
    .any(|p| {
        snapshot
            .kops
            .cluster
            .as_ref()
            .and_then(|c| c.pointer(p))
            .and_then(Value::as_str)
            .is_some_and(|c| c.contains(':'))
    })
}

/// maxPods that the kubelets of an instance group are told: the group's over the cluster's (kops.md 1.5).
pub fn kubelet_max_pods(snapshot: &Snapshot, instance_group: &str) -> Option<u32> {
    let of = |v: &Value| {
        v.pointer("/spec/kubelet/maxPods")
            .and_then(|n| n.as_u64().or_else(|| n.as_str()?.parse().ok()))
            .and_then(|n| u32::try_from(n).ok())
            // Green is not told 0 either (KOPS-ig-maxpods says so).
            .filter(|n| *n > 0)
    };
    snapshot
        .kops
        .instance_groups
        .iter()
        .find(|g| g.pointer("/metadata/name").and_then(Value::as_str) == Some(instance_group))
        .and_then(of)
        .or_else(|| snapshot.kops.cluster.as_ref().and_then(of))
}
