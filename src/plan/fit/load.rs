//! What green must carry, and the nodes that it is given: plain numbers that the checks and the packing work on.

use super::addresses::{Bound, Mode};
use super::cni;
use super::place::{Limit, Placement};
use super::quantity::{mib, milli};
use crate::instance_types;
use crate::object::ObjectId;
use crate::plan::model::{Target, TargetNodeGroup, Verdict};
use crate::rewrite::template_path;
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use crate::world::cloud::{InstanceType, Taint};
use serde_json::Value;
use std::collections::BTreeMap;

/// Pods of one kind on green.
#[derive(Clone, Debug)]
pub struct Workload {
    /// `deployment/ns/name`, or `addon/NAME` for what EKS itself runs.
    pub object: String,
    /// One on each node that takes it.
    pub daemon: bool,
    /// Live replicas (0 for daemons).
    pub replicas: u32,
    /// Uses the address of its node.
    pub host_network: bool,
    /// Request of one pod, milli-CPU.
    pub cpu: u64,
    /// Request of one pod, MiB.
    pub memory: u64,
    /// Where it may run.
    pub placement: Placement,
}

impl Workload {
    /// Part of EKS, no object of blue.
    pub fn is_addon(&self) -> bool {
        self.object.starts_with("addon/")
    }
}

/// A node group as the scheduler will see it.
#[derive(Clone, Debug)]
pub struct Group {
    /// Name.
    pub name: String,
    /// Instance types that nobody knows.
    pub unknown: Vec<String>,
    /// The type that takes the fewest pods, when all are known.
    pub smallest: Option<(String, InstanceType)>,
    /// All known types.
    pub types: Vec<(String, InstanceType)>,
    /// Nodes at first.
    pub desired: u32,
    /// Nodes at most.
    pub max: u32,
    /// Zones, sorted; empty when not known.
    pub zones: Vec<String>,
    /// Subnets.
    pub subnets: Vec<String>,
    /// Labels that its nodes carry (zone, host name and instance type aside).
    pub labels: BTreeMap<String, String>,
    /// Taints.
    pub taints: Vec<Taint>,
    /// Pods on a node at most.
    pub max_pods: u32,
    /// Why.
    pub bound: Bound,
    /// Allocatable milli-CPU of a node.
    pub cpu: u64,
    /// Allocatable MiB of a node.
    pub memory: u64,
}

/// Everything.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// Sorted by object.
    pub workloads: Vec<Workload>,
    /// In the order of the target.
    pub groups: Vec<Group>,
    /// Region.
    pub region: String,
}

/// Requests of what EKS runs on each node: milli-CPU, MiB, pods with the node's address, pods with their own (aws-node, kube-proxy, the identity
/// agent; ebs-csi-node). Defaults of the add-ons, rounded up.
const NODE_ADDONS: &[(&str, u64, u64, bool)] = &[
    ("aws-node", 50, 0, true),
    ("kube-proxy", 100, 0, true),
    ("eks-pod-identity-agent", 0, 0, true),
    ("ebs-csi-node", 30, 120, false),
];
/// Deployments of EKS's add-ons: name of the add-on, replicas, milli-CPU, MiB.
const ADDONS: &[(&str, u32, u64, u64)] = &[
    ("coredns", 2, 100, 70),
    ("aws-ebs-csi-driver", 2, 60, 240),
    ("metrics-server", 2, 100, 200),
];
/// Memory that a machine of EC2 does not show to its system, in thousandths: what Karpenter reckons with by default.
const MEMORY_UNSEEN: u64 = 75;

impl Load {
    /// From the target and the verdicts.
    pub fn new(spec: &Spec, snapshot: &Snapshot, target: &Target, verdicts: &[Verdict]) -> Load {
        let mode = cni::mode(&cni::environment(spec, snapshot));
        let groups = target
            .node_groups
            .iter()
            .map(|g| group(g, snapshot, mode))
            .collect();
        let defaults = default_requests(verdicts);
        let mut workloads: Vec<Workload> = verdicts
            .iter()
            .filter_map(|v| workload(v, &defaults))
            .collect();
        for (name, cpu, memory, host_network) in NODE_ADDONS {
            workloads.push(Workload {
                object: format!("addon/{name}"),
                daemon: true,
                replicas: 0,
                host_network: *host_network,
                cpu: *cpu,
                memory: *memory,
                placement: Placement::everywhere(),
            });
        }
        for (name, replicas, cpu, memory) in ADDONS {
            if target.addons.iter().any(|a| a.name == *name) {
                workloads.push(Workload {
                    object: format!("addon/{name}"),
                    daemon: false,
                    replicas: *replicas,
                    host_network: false,
                    cpu: *cpu,
                    memory: *memory,
                    placement: Placement::critical_addon(),
                });
            }
        }
        workloads.sort_by(|a, b| a.object.cmp(&b.object));
        Load {
            workloads,
            groups,
            region: target.cluster.region.clone(),
        }
    }

    /// Zones of a group in which a workload may run: indexes into its zones (0 alone when they are not known). Taints count when `taints` is set.
    pub fn eligible(&self, w: &Workload, g: &Group, taints: bool) -> Vec<usize> {
        if taints && !g.taints.iter().all(|t| w.placement.tolerates(t)) {
            return vec![];
        }
        (0..g.zones.len().max(1))
            .filter(|z| {
                w.placement
                    .matches(g, g.zones.get(*z).map(String::as_str), &self.region)
            })
            .collect()
    }

    /// Pods with addresses of their own and pods with their node's, on an average node of each group at its first size: each workload spread over
    /// all nodes that take it, as the scheduler does.
    pub fn density(&self) -> Vec<(u32, u32)> {
        let mut own = vec![0f64; self.groups.len()];
        let mut host = vec![0f64; self.groups.len()];
        for w in &self.workloads {
            let takes: Vec<(usize, f64)> = self
                .groups
                .iter()
                .enumerate()
                .filter(|(_, g)| !self.eligible(w, g, true).is_empty())
                .map(|(i, g)| (i, f64::from(g.desired.max(1))))
                .collect();
            let nodes: f64 = takes.iter().map(|t| t.1).sum();
            for (i, _) in takes {
                let pods = if w.daemon {
                    1.0
                } else {
                    f64::from(w.replicas) / nodes
                };
                if w.host_network {
                    host[i] += pods;
                } else {
                    own[i] += pods;
                }
            }
        }
        // Sums of fractions: 4.0000000001 pods are 4.
        let up = |n: f64| (n - 1e-6).ceil().max(0.0) as u32;
        own.into_iter()
            .zip(host)
            .map(|(o, h)| (up(o), up(h)))
            .collect()
    }
}

fn group(g: &TargetNodeGroup, snapshot: &Snapshot, mode: Mode) -> Group {
    let kubelet = cni::kubelet_max_pods(snapshot, &g.instance_group);
    let mut types = vec![];
    let mut unknown = vec![];
    for name in &g.instance_types {
        match instance_types::find(snapshot, name) {
            Some(t) => types.push((name.clone(), t)),
            None => unknown.push(name.clone()),
        }
    }
    // A group of several types is planned with the worst of each.
    let smallest = types
        .iter()
        .min_by_key(|(n, t)| (mode.max_pods(t, kubelet).0, n.clone()))
        .cloned();
    let (max_pods, bound) = smallest
        .as_ref()
        .map_or((0, Bound::Interfaces), |(_, t)| mode.max_pods(t, kubelet));
    let mut labels = g.labels.clone();
    let arch = if g.ami_type.contains("ARM_64") {
        "arm64"
    } else {
        "amd64"
    };
    for (k, v) in [
        ("eks.amazonaws.com/nodegroup", g.name.as_str()),
        ("eks.amazonaws.com/capacityType", g.capacity_type.as_str()),
        ("kubernetes.io/os", "linux"),
        ("beta.kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", arch),
        ("beta.kubernetes.io/arch", arch),
    ] {
        labels.insert(k.into(), v.into());
    }
    let mut zones: Vec<String> = g
        .subnets
        .iter()
        .filter_map(|s| super::zone_of(snapshot, s))
        .collect();
    zones.sort();
    zones.dedup();
    let least = |f: fn(&InstanceType) -> u64| types.iter().map(|(_, t)| f(t)).min().unwrap_or(0);
    Group {
        name: g.name.clone(),
        cpu: least(allocatable_cpu),
        memory: types
            .iter()
            .map(|(_, t)| allocatable_memory(t, mode.max_pods(t, kubelet).0))
            .min()
            .unwrap_or(0),
        smallest: smallest.filter(|_| unknown.is_empty()),
        unknown,
        types,
        desired: g.desired,
        max: g.max,
        zones,
        subnets: g.subnets.clone(),
        labels,
        taints: g.taints.clone(),
        max_pods,
        bound,
    }
}

/// 6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % of the rest are the kubelet's (eks.md 1.7).
fn allocatable_cpu(t: &InstanceType) -> u64 {
    let cores = u64::from(t.vcpus);
    let reserved = match cores {
        0 => 0,
        1 => 60,
        2 => 70,
        3 => 75,
        _ => 80 + (cores - 4) * 5 / 2,
    };
    (cores * 1000).saturating_sub(reserved)
}

/// 11 MiB for each pod that fits and 255 more are the kubelet's, 100 the eviction threshold's (eks.md 1.7).
fn allocatable_memory(t: &InstanceType, max_pods: u32) -> u64 {
    let seen = u64::from(t.memory_mib) * (1000 - MEMORY_UNSEEN) / 1000;
    seen.saturating_sub(11 * u64::from(max_pods) + 255 + 100)
}

/// Requests that LimitRanges give to containers without any, by namespace: milli-CPU, MiB.
fn default_requests(verdicts: &[Verdict]) -> BTreeMap<String, (u64, u64)> {
    let mut out = BTreeMap::new();
    for o in verdicts
        .iter()
        .filter(|v| v.object.starts_with("limitrange/"))
        .filter_map(|v| v.target.as_ref())
    {
        let ns = o.pointer("/metadata/namespace").and_then(Value::as_str);
        for l in o
            .pointer("/spec/limits")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter(|l| l["type"] == "Container")
        {
            let get = |k: &str| {
                l.pointer(&format!("/defaultRequest/{k}"))
                    .or_else(|| l.pointer(&format!("/default/{k}")))
            };
            out.insert(
                ns.unwrap_or("").to_string(),
                (
                    get("cpu").and_then(milli).unwrap_or(0),
                    get("memory").and_then(mib).unwrap_or(0),
                ),
            );
        }
    }
    out
}

fn workload(v: &Verdict, defaults: &BTreeMap<String, (u64, u64)>) -> Option<Workload> {
    let o = v.target.as_ref()?;
    let id = ObjectId::of(o)?;
    let daemon = match id.kind.as_str() {
        "Deployment" | "StatefulSet" | "ReplicaSet" => false,
        "DaemonSet" => true,
        _ => return None,
    };
    let template = o.pointer(template_path(&id.kind)?)?;
    let replicas = v
        .park
        .as_ref()
        .filter(|p| p.field == "/spec/replicas")
        .map(|p| &p.value)
        .or_else(|| o.pointer("/spec/replicas"))
        .and_then(Value::as_u64)
        .unwrap_or(1);
    let spec = &template["spec"];
    let default = defaults
        .get(id.namespace.as_deref().unwrap_or(""))
        .copied()
        .unwrap_or_default();
    let (cpu, memory) = requests(spec, default);
    let mut placement = Placement::of(template);
    // What parks a DaemonSet is gone when it wakes.
    placement
        .selector
        .retain(|r| r.key != crate::rewrite::PARKED);
    let host_ports = ["containers", "initContainers"]
        .iter()
        .filter_map(|l| spec[*l].as_array())
        .flatten()
        .filter_map(|c| c["ports"].as_array())
        .flatten()
        .any(|p| p["hostPort"].as_u64().is_some_and(|n| n > 0));
    if host_ports && !daemon {
        placement.limits.push(Limit {
            key: super::place::HOST.into(),
            each: 1,
            why: "a host port".into(),
        });
    }
    Some(Workload {
        object: v.object.clone(),
        daemon,
        replicas: if daemon {
            0
        } else {
            u32::try_from(replicas).unwrap_or(u32::MAX)
        },
        host_network: spec["hostNetwork"] == Value::Bool(true),
        cpu,
        memory,
        placement,
    })
}

/// What the scheduler reserves for a pod: the sum of its containers, or its largest init container, and its overhead.
fn requests(spec: &Value, default: (u64, u64)) -> (u64, u64) {
    let of = |c: &Value| {
        let get = |k: &str| {
            c.pointer(&format!("/resources/requests/{k}"))
                .or_else(|| c.pointer(&format!("/resources/limits/{k}")))
        };
        (
            get("cpu").map_or(Some(default.0), milli).unwrap_or(0),
            get("memory").map_or(Some(default.1), mib).unwrap_or(0),
        )
    };
    let (mut cpu, mut memory) = (0, 0);
    for c in spec["containers"].as_array().into_iter().flatten() {
        let (x, y) = of(c);
        cpu += x;
        memory += y;
    }
    let (mut first_cpu, mut first_memory) = (0, 0);
    for c in spec["initContainers"].as_array().into_iter().flatten() {
        let (x, y) = of(c);
        if c["restartPolicy"] == "Always" {
            cpu += x;
            memory += y;
        } else {
            first_cpu = x.max(first_cpu);
            first_memory = y.max(first_memory);
        }
    }
    let over = |k: &str| spec.pointer(&format!("/overhead/{k}"));
    (
        cpu.max(first_cpu) + over("cpu").and_then(milli).unwrap_or(0),
        memory.max(first_memory) + over("memory").and_then(mib).unwrap_or(0),
    )
}
