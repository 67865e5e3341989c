//! CAP: addresses, sizes, types. Labels and host paths (CAP-01, CAP-12) are found by the rewrite, where they are changed.

use super::{Input, Report};
use crate::rewrite::template_path;
use serde_json::Value;
use std::collections::BTreeMap;

/// (type, network interfaces, addresses each, cpu in milli, memory in MiB) of common types (eks.md 2.1; DescribeInstanceTypes).
const TYPES: &[(&str, u32, u32, u64, u64)] = &[
    ("t3.small", 3, 4, 2000, 2048),
    ("t3.medium", 3, 6, 2000, 4096),
    ("t3.large", 3, 12, 2000, 8192),
    ("t3.xlarge", 4, 15, 4000, 16384),
    ("t2.medium", 3, 6, 2000, 4096),
    ("t2.large", 3, 12, 2000, 8192),
    ("m4.large", 2, 10, 2000, 8192),
    ("m5.large", 3, 10, 2000, 8192),
    ("m5.xlarge", 4, 15, 4000, 16384),
    ("m5.2xlarge", 4, 15, 8000, 32768),
    ("m5.4xlarge", 8, 30, 16000, 65536),
    ("m6i.large", 3, 10, 2000, 8192),
    ("m6i.xlarge", 4, 15, 4000, 16384),
    ("m6g.large", 3, 10, 2000, 8192),
    ("c5.large", 3, 10, 2000, 4096),
    ("c5.xlarge", 4, 15, 4000, 8192),
    ("r5.large", 3, 10, 2000, 16384),
    ("r5.xlarge", 4, 15, 4000, 32768),
];

fn known(t: &str) -> Option<(u32, u32, u64, u64)> {
    TYPES
        .iter()
        .find(|x| x.0 == t)
        .map(|x| (x.1, x.2, x.3, x.4))
}

/// Addresses that a node takes with the defaults of the VPC CNI: min(E, ceil(P/(I-1)) + 1) * I (eks.md 2.1).
pub(super) fn node_addresses(enis: u32, per_eni: u32, pods: u32) -> u32 {
    enis.min(pods.div_ceil(per_eni - 1) + 1) * per_eni
}

/// CAP-04: per zone ceil(nodes / (zones - 1)) nodes (one zone lost), two more while they surge, 16 for the control plane (eks.md 2.2).
pub(super) fn subnets_have_addresses(i: &Input, r: &mut Report) {
    let Some(aws) = &i.snapshot.aws else {
        r.not_checked(
            "subnets",
            "free addresses were not read",
            "Run discover with AWS credentials.",
        );
        return;
    };
    let pods = pods_per_node(i);
    let mut need: BTreeMap<&str, u32> = BTreeMap::new();
    for g in &i.target.node_groups {
        let kind = &g.instance_types[0];
        let Some((e, a, _, _)) = known(kind) else {
            r.not_checked(
                format!("node-group/{}", g.name),
                &format!("addresses per node of {kind} are not known"),
                "Check the subnets by hand with the VPC CNI's formula.",
            );
            continue;
        };
        let zones = g.subnets.len().max(1) as u32;
        let share = if zones > 1 {
            g.desired.div_ceil(zones - 1).min(g.desired)
        } else {
            g.desired
        };
        for s in &g.subnets {
            *need.entry(s).or_default() += (share + 2) * node_addresses(e, a, pods);
        }
    }
    for s in &i.target.cluster.subnets {
        *need.entry(s).or_default() += 16;
    }
    for (s, n) in need {
        let Some(subnet) = aws.subnets.iter().find(|x| x.id == s) else {
            r.blocker(
                format!("subnet/{s}"),
                "the account has no such subnet in blue's VPC",
                "Correct green.subnets.",
            );
            continue;
        };
        let with_reserve = n + n / 5;
        if subnet.free_ips < n {
            r.blocker(format!("subnet/{s}"), format!("{} addresses are free, green needs about {n} there ({pods} pods a node)", subnet.free_ips), "Set WARM_IP_TARGET, take bigger subnets, or add a secondary CIDR that is not in 100.64.0.0/10.");
        } else if subnet.free_ips < with_reserve {
            r.warning(
                format!("subnet/{s}"),
                format!(
                    "{} addresses are free, green needs about {n}: less than a fifth in reserve",
                    subnet.free_ips
                ),
                "Take bigger subnets.",
            );
        }
    }
}

/// Pods on each node, from blue's live pods or from replica counts; at least 5 for DaemonSets and add-ons.
fn pods_per_node(i: &Input) -> u32 {
    let nodes: u32 = i
        .target
        .node_groups
        .iter()
        .map(|g| g.desired)
        .sum::<u32>()
        .max(1);
    let live = i
        .snapshot
        .blue
        .of_kind("Pod")
        .filter(|p| p.pointer("/spec/hostNetwork") != Some(&Value::Bool(true)))
        .filter(|p| {
            !matches!(
                p.pointer("/status/phase").and_then(Value::as_str),
                Some("Succeeded" | "Failed")
            )
        })
        .count() as u32;
    let declared: u32 = i
        .snapshot
        .blue
        .objects
        .iter()
        .filter(|o| matches!(o["kind"].as_str(), Some("Deployment" | "StatefulSet")))
        .map(|o| {
            o.pointer("/spec/replicas")
                .and_then(Value::as_u64)
                .unwrap_or(1) as u32
        })
        .sum();
    live.max(declared).div_ceil(nodes).max(5)
}

/// CAP-03: requests at live counts against the node groups at their largest.
pub(super) fn requests_fit(i: &Input, r: &mut Report) {
    let (mut cpu, mut memory) = (0u64, 0u64);
    for o in &i.snapshot.blue.objects {
        let kind = o["kind"].as_str().unwrap_or("");
        if !matches!(kind, "Deployment" | "StatefulSet") {
            continue;
        }
        let Some(t) = template_path(kind) else {
            continue;
        };
        let n = o
            .pointer("/spec/replicas")
            .and_then(Value::as_u64)
            .unwrap_or(1);
        for c in o
            .pointer(&format!("{t}/spec/containers"))
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let get = |k: &str| c.pointer(&format!("/resources/requests/{k}"));
            cpu += n * get("cpu").and_then(milli).unwrap_or(0);
            memory += n * get("memory").and_then(mib).unwrap_or(0);
        }
    }
    if cpu == 0 && memory == 0 {
        return;
    }
    let (mut have_cpu, mut have_memory) = (0u64, 0u64);
    for g in &i.target.node_groups {
        let Some((_, _, c, m)) = known(&g.instance_types[0]) else {
            r.not_checked(
                format!("node-group/{}", g.name),
                &format!("the size of {} is not known", g.instance_types[0]),
                "Compare requests and sizes by hand.",
            );
            return;
        };
        // kubelet's reserve and eviction threshold: about a tenth of the memory (eks.md 1.7).
        have_cpu += u64::from(g.max) * (c - 80);
        have_memory += u64::from(g.max) * (m * 9 / 10);
    }
    if cpu > have_cpu || memory > have_memory {
        r.blocker("node groups", format!("workloads request {cpu}m CPU and {memory} MiB, the groups give {have_cpu}m and {have_memory} MiB at their largest"), "Raise maxSize or take bigger instances.");
    }
}

/// Milli-CPU of a quantity.
fn milli(v: &Value) -> Option<u64> {
    let t = v
        .as_str()
        .map(String::from)
        .unwrap_or_else(|| v.to_string());
    match t.strip_suffix('m') {
        Some(m) => m.parse().ok(),
        None => t.parse::<f64>().ok().map(|c| (c * 1000.0) as u64),
    }
}

/// MiB of a quantity.
fn mib(v: &Value) -> Option<u64> {
    let t = v
        .as_str()
        .map(String::from)
        .unwrap_or_else(|| v.to_string());
    let end = t.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(t.len());
    let n: f64 = t[..end].parse().ok()?;
    let bytes = n * match &t[end..] {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "Ki" => 1024.0,
        "Mi" => 1024f64.powi(2),
        "Gi" => 1024f64.powi(3),
        "Ti" => 1024f64.powi(4),
        "m" => 0.001,
        _ => return None,
    };
    Some((bytes / 1024f64.powi(2)).ceil() as u64)
}

/// CAP-07.
pub(super) fn one_instance_type(i: &Input, r: &mut Report) {
    for g in i
        .target
        .node_groups
        .iter()
        .filter(|g| g.instance_types.len() == 1 && g.capacity_type == "SPOT")
    {
        r.warning(
            format!("node-group/{}", g.name),
            format!(
                "a SPOT group of one type ({}): a stock-out stops it",
                g.instance_types[0]
            ),
            "Add a second type on blue or after the migration.",
        );
    }
}
