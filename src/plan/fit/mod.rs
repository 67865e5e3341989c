//! Whether green's nodes and pods find addresses: pod address arithmetic per subnet (eks.md 2), and the load that the checks pack.

pub mod addresses;
pub mod cni;
mod load;
mod offers;
mod pack;
mod place;
mod quantity;
pub mod routes;

pub use load::{Group, Load, Workload};
pub use offers::secondary_cidr;
pub use pack::{Left, Packing, Size, Why, pack};
pub use place::{HOST, Limit, Placement, Requirement, ZONES};
pub use quantity::{mib, milli};

use super::kops;
use super::model::Target;
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use addresses::Mode;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Addresses that the control plane wants in each of its subnets (eks.md 1.2).
const CONTROL_PLANE: u32 = 16;
/// Nodes more in each zone while a group is updated (eks.md 2.2).
const SURGE: u32 = 2;
/// Pods that a node runs at least: a density of less is not believed.
const FEW_PODS: u32 = 5;

/// Addresses needed and there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct NetworkFit {
    /// Pods get /28 prefixes instead of single addresses.
    pub prefix_delegation: bool,
    /// Node groups, in the order of the target.
    pub groups: Vec<GroupFit>,
    /// Subnets that green uses, sorted.
    pub subnets: Vec<SubnetFit>,
    /// How green's nodes reach the world.
    pub egress: Egress,
    /// What helps where something is short; empty when nothing is.
    pub offers: Vec<String>,
}

/// A node group's pods and addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct GroupFit {
    /// Node group.
    pub node_group: String,
    /// The type that takes the fewest pods.
    pub instance_type: String,
    /// Pods on a node at most.
    pub max_pods: u32,
    /// What bounds them.
    pub bound: String,
    /// Pods on an average node when the group is made: blue's live counts spread over the nodes that take them.
    pub pods: u32,
    /// Addresses that such a node takes from its subnet.
    pub addresses: u32,
    /// Addresses that a full node takes.
    pub addresses_full: u32,
}

/// A subnet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct SubnetFit {
    /// Id, or `name (cidr)`.
    pub subnet: String,
    /// Zone, may be empty.
    pub zone: String,
    /// Free addresses now; `None`: not read.
    pub free: Option<u32>,
    /// Addresses that green takes at its first size, with one zone lost, two nodes more while a group is updated, and the control plane's.
    pub need_now: u32,
    /// The same with every group at its largest.
    pub need_max: u32,
    /// Free addresses cover the first need and a fifth more; `None`: not known.
    pub ok: Option<bool>,
}

/// How nodes reach the world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Egress {
    /// Ways of blue's workers; empty when not known.
    pub blue: Vec<String>,
    /// Ways of green's nodes; empty when not known.
    pub green: Vec<String>,
    /// Public addresses of blue's NAT gateways.
    pub blue_addresses: Vec<String>,
    /// Public addresses of green's.
    pub green_addresses: Vec<String>,
    /// The world sees green under addresses that it knows from blue; `None`: not known.
    pub same: Option<bool>,
}

/// Zone of a subnet of the target.
pub fn zone_of(snapshot: &Snapshot, subnet: &str) -> Option<String> {
    snapshot
        .aws
        .iter()
        .flat_map(|a| &a.subnets)
        .find(|s| s.id == subnet)
        .map(|s| s.zone.clone())
        .or_else(|| {
            kops::subnets(snapshot)
                .into_iter()
                .find(|s| {
                    s.id.as_deref() == Some(subnet) || format!("{} ({})", s.name, s.cidr) == subnet
                })
                .map(|s| s.zone)
        })
        .filter(|z| !z.is_empty())
}

/// The arithmetic.
pub fn fit(spec: &Spec, snapshot: &Snapshot, target: &Target, load: &Load) -> NetworkFit {
    let env = cni::environment(spec, snapshot);
    let mode = cni::mode(&env);
    let groups = group_fits(load, mode, snapshot, target);
    let per_node: BTreeMap<&str, u32> = groups
        .iter()
        .map(|g| (g.node_group.as_str(), g.addresses))
        .collect();
    let now = demand(snapshot, target, load, &per_node, |g| g.desired);
    let most = demand(snapshot, target, load, &per_node, |g| g.max);
    let known_types = load.groups.iter().all(|g| g.smallest.is_some());
    let subnets: Vec<SubnetFit> = now
        .iter()
        .map(|(subnet, need)| {
            let free = snapshot
                .aws
                .iter()
                .flat_map(|a| &a.subnets)
                .find(|s| s.id == *subnet)
                .map(|s| s.free_ips);
            SubnetFit {
                subnet: subnet.clone(),
                zone: zone_of(snapshot, subnet).unwrap_or_default(),
                free,
                need_now: *need,
                need_max: most.get(subnet).copied().unwrap_or(*need),
                ok: free
                    .filter(|_| known_types)
                    .map(|f| f >= with_reserve(*need)),
            }
        })
        .collect();
    let mut out = NetworkFit {
        prefix_delegation: mode.prefixes,
        groups,
        subnets,
        egress: egress(snapshot, target),
        offers: vec![],
    };
    out.offers = offer(spec, snapshot, target, load, mode, &out);
    out
}

/// A need and a fifth more (checks.md CAP-04).
pub fn with_reserve(need: u32) -> u32 {
    need + need / 5
}

fn group_fits(load: &Load, mode: Mode, snapshot: &Snapshot, target: &Target) -> Vec<GroupFit> {
    load.groups
        .iter()
        .zip(load.density())
        .zip(&target.node_groups)
        .filter_map(|((g, (own, host)), t)| {
            let (name, _) = g.smallest.as_ref()?;
            let kubelet = cni::kubelet_max_pods(snapshot, &t.instance_group);
            let most = |pods: Option<u32>| {
                g.types
                    .iter()
                    .map(|(_, t)| {
                        let slots = mode.max_pods(t, kubelet).0.saturating_sub(host);
                        mode.node_addresses(t, pods.map_or(slots, |p| p.min(slots)))
                    })
                    .max()
                    .unwrap_or(0)
            };
            let own = own.max(FEW_PODS);
            Some(GroupFit {
                node_group: g.name.clone(),
                instance_type: name.clone(),
                max_pods: g.max_pods,
                bound: g.bound.word().into(),
                pods: own + host,
                addresses: most(Some(own)),
                addresses_full: most(None),
            })
        })
        .collect()
}

/// Addresses by subnet: in each zone what its nodes take when one zone is lost, two nodes more for updates, and the control plane's.
fn demand(
    snapshot: &Snapshot,
    target: &Target,
    load: &Load,
    per_node: &BTreeMap<&str, u32>,
    size: impl Fn(&Group) -> u32,
) -> BTreeMap<String, u32> {
    let mut need: BTreeMap<String, u32> = BTreeMap::new();
    let mut largest: BTreeMap<String, u32> = BTreeMap::new();
    for g in &load.groups {
        let addresses = per_node.get(g.name.as_str()).copied().unwrap_or(0);
        let mut by_zone: BTreeMap<Option<String>, Vec<&String>> = BTreeMap::new();
        for s in &g.subnets {
            by_zone.entry(zone_of(snapshot, s)).or_default().push(s);
        }
        // Subnets of unknown zones are taken for zones of their own.
        let unknown = by_zone.get(&None).map_or(0, |s| s.len().saturating_sub(1));
        let zones = (by_zone.len() + unknown) as u32;
        let share = if zones > 1 {
            size(g).div_ceil(zones - 1).min(size(g))
        } else {
            size(g)
        };
        for (zone, subnets) in by_zone {
            let each = if zone.is_some() {
                share.div_ceil(subnets.len() as u32)
            } else {
                share
            };
            for s in subnets {
                let n = need.entry(s.clone()).or_default();
                *n = n.saturating_add(each.saturating_mul(addresses));
                let l = largest.entry(s.clone()).or_default();
                *l = (*l).max(addresses);
            }
        }
    }
    for (s, addresses) in largest {
        let n = need.entry(s).or_default();
        *n = n.saturating_add(SURGE.saturating_mul(addresses));
    }
    for s in &target.cluster.subnets {
        let n = need.entry(s.clone()).or_default();
        *n = n.saturating_add(CONTROL_PLANE);
    }
    need
}

fn egress(snapshot: &Snapshot, target: &Target) -> Egress {
    let blue = routes::blue_node_subnets(snapshot);
    let green: BTreeSet<String> = target
        .node_groups
        .iter()
        .flat_map(|g| g.subnets.iter().cloned())
        .collect();
    let within = !green.is_empty() && !blue.is_empty() && green.is_subset(&blue);
    let Some(aws) = &snapshot.aws else {
        return Egress {
            // The same subnets have the same routes, read or not.
            same: within.then_some(true),
            ..Egress::default()
        };
    };
    let (b, g) = (routes::exits(aws, &blue), routes::exits(aws, &green));
    let known = b.unknown.is_empty() && g.unknown.is_empty() && !blue.is_empty();
    let fixed = |w: &routes::Way| !matches!(w, routes::Way::Internet);
    Egress {
        same: if within && g.ways.iter().all(fixed) {
            Some(true)
        } else if known {
            // New nodes behind an internet gateway have new addresses, whatever the subnet.
            Some(g.ways.is_subset(&b.ways) && g.ways.iter().all(fixed))
        } else {
            None
        },
        blue: b.ways.iter().map(routes::Way::text).collect(),
        green: g.ways.iter().map(routes::Way::text).collect(),
        blue_addresses: b.addresses.into_iter().collect(),
        green_addresses: g.addresses.into_iter().collect(),
    }
}

/// What helps.
fn offer(
    spec: &Spec,
    snapshot: &Snapshot,
    target: &Target,
    load: &Load,
    mode: Mode,
    fit: &NetworkFit,
) -> Vec<String> {
    let mut out = vec![];
    let short: Vec<&SubnetFit> = fit
        .subnets
        .iter()
        .filter(|s| {
            s.free
                .is_some_and(|f| f < with_reserve(s.need_now.max(s.need_max)))
        })
        .collect();
    if !short.is_empty() {
        if mode.warm_ips.is_none() && !mode.prefixes {
            let pods = fit.groups.iter().map(|g| g.pods).max().unwrap_or(FEW_PODS);
            let warm = Mode {
                warm_ips: Some(2),
                minimum_ips: Some(pods),
                ..mode
            };
            let less = group_fits(load, warm, snapshot, target);
            let per_node: BTreeMap<&str, u32> = less
                .iter()
                .map(|g| (g.node_group.as_str(), g.addresses))
                .collect();
            let now = demand(snapshot, target, load, &per_node, |g| g.desired);
            let words: Vec<String> = short
                .iter()
                .filter_map(|s| {
                    let n = now.get(&s.subnet).filter(|n| **n < s.need_now)?;
                    Some(format!("{} needs {n} instead of {}", s.subnet, s.need_now))
                })
                .collect();
            if !words.is_empty() {
                out.push(format!(
                    "green.network.warmIpTarget: 2 with cniEnv MINIMUM_IP_TARGET: \"{pods}\" takes single addresses instead of whole interfaces: {}",
                    words.join(", ")
                ));
            }
        }
        let zones: BTreeSet<&str> = short
            .iter()
            .map(|s| s.zone.as_str())
            .filter(|z| !z.is_empty())
            .collect();
        out.push(format!(
            "bigger or more subnets in {} (tag kubernetes.io/role/cni=1 lets the VPC CNI use them for pods), named under green.subnets",
            if zones.is_empty() { "the same zones".to_string() } else { zones.into_iter().collect::<Vec<_>>().join(", ") }
        ));
        match secondary_cidr(spec, snapshot) {
            Some(c) => out.push(format!(
                "{c} as a secondary CIDR of the VPC: free of the VPC's ranges, its routes and green's services; never 100.64.0.0/10, which blue's pods and services use. EKS may take 5 hours to know it; ask peers that no route was read of"
            )),
            None => out.push("no /16 of the VPC's family is free for a secondary CIDR: ask who owns the address plan".into()),
        }
    }
    let full: Vec<&GroupFit> = fit
        .groups
        .iter()
        .filter(|g| g.pods > g.max_pods && g.bound == addresses::Bound::Interfaces.word())
        .collect();
    if !full.is_empty() && !mode.prefixes {
        let prefix = Mode {
            prefixes: true,
            ..mode
        };
        for g in full {
            let Some(l) = load.groups.iter().find(|l| l.name == g.node_group) else {
                continue;
            };
            let more = l
                .types
                .iter()
                .map(|(_, t)| prefix.max_pods(t, None).0)
                .min();
            if let Some(more) = more.filter(|m| *m > g.max_pods) {
                out.push(format!(
                    "green.network.prefixDelegation: true lets a node of {} run {more} pods instead of {}: from free aligned blocks of 16 addresses, so reserve them (create-subnet-cidr-reservation) where blue has scattered its own; it saves no addresses",
                    g.node_group, g.max_pods
                ));
            }
        }
    }
    out
}
