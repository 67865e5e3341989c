//! First fit, decreasing: whether all pods find a node. What has the fewest places goes first, then what is largest.

use super::load::{Load, Workload};
use super::place::{HOST, ZONES};
use std::collections::BTreeMap;

/// How many nodes each group has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// As many as at creation.
    Desired,
    /// As many as it may grow to.
    Max,
}

/// Why pods are left over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// One domain takes only so many of them.
    Spread,
    /// No milli-CPU or MiB left.
    Resources,
    /// No pod slot left on a node that has both.
    Slots,
    /// Larger than any node that may take it.
    TooLarge,
}

/// Pods without a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Index of the workload.
    pub workload: usize,
    /// Pods that found a node.
    pub placed: u32,
    /// Pods that did not.
    pub left: u32,
    /// Why.
    pub why: Why,
}

/// What is left over when everything is packed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packing {
    /// Sorted by workload.
    pub left: Vec<Left>,
    /// Nodes.
    pub nodes: u32,
}

struct Node {
    group: usize,
    zone: usize,
    cpu: u64,
    memory: u64,
    slots: u32,
}

/// Packs. Groups of types that nobody knows take nothing: the caller asks for them first.
pub fn pack(load: &Load, size: Size) -> Packing {
    let mut nodes: Vec<Node> = vec![];
    for (i, g) in load.groups.iter().enumerate() {
        // A cluster has 5,000 nodes at most (Kubernetes's own limit): a larger number is a mistake that others name.
        let n = match size {
            Size::Desired => g.desired,
            Size::Max => g.max,
        }
        .min(5_000);
        // What is left of an empty node in each zone when its daemons run.
        let mut empty = vec![(g.cpu, g.memory, g.max_pods); g.zones.len().max(1)];
        for w in load.workloads.iter().filter(|w| w.daemon) {
            for zone in load.eligible(w, g, true) {
                let (cpu, memory, slots) = &mut empty[zone];
                *cpu = cpu.saturating_sub(w.cpu);
                *memory = memory.saturating_sub(w.memory);
                *slots = slots.saturating_sub(1);
            }
        }
        for k in 0..n as usize {
            let zone = k % empty.len();
            let (cpu, memory, slots) = empty[zone];
            nodes.push(Node {
                group: i,
                zone,
                cpu,
                memory,
                slots,
            });
        }
    }
    // Which zones of which group each workload may use.
    let mut order: Vec<(usize, usize, u64, Vec<Vec<usize>>)> = load
        .workloads
        .iter()
        .enumerate()
        .filter(|(_, w)| !w.daemon && w.replicas > 0)
        .map(|(i, w)| {
            let may: Vec<Vec<usize>> = load
                .groups
                .iter()
                .map(|g| load.eligible(w, g, true))
                .collect();
            let places = may.iter().map(Vec::len).sum();
            // A core weighs as much as 4 GiB.
            (
                places,
                i,
                w.memory.saturating_add((w.cpu / 1000).saturating_mul(4096)),
                may,
            )
        })
        .filter(|o| o.0 > 0)
        .collect();
    order.sort_by(|a, b| (a.0, b.2, a.1).cmp(&(b.0, a.2, b.1)));
    // Tainted nodes are meant for those that tolerate them: they are filled first.
    let mut visit: Vec<usize> = (0..nodes.len()).collect();
    visit.sort_by_key(|n| (load.groups[nodes[*n].group].taints.is_empty(), *n));
    let mut left = vec![];
    for (_, i, _, may) in order {
        let w = &load.workloads[i];
        let mut open = w.replicas;
        let mut in_zone: BTreeMap<&str, u32> = BTreeMap::new();
        let (mut could_spread, mut could_slots, mut large) = (false, false, true);
        for n in &visit {
            let node = &mut nodes[*n];
            if open == 0 {
                break;
            }
            if !may[node.group].contains(&node.zone) {
                continue;
            }
            let g = &load.groups[node.group];
            large &= w.cpu > g.cpu || w.memory > g.memory;
            let room = room(node, w).min(open);
            if room == 0 {
                could_slots |= node.slots == 0 && node.cpu >= w.cpu && node.memory >= w.memory;
                continue;
            }
            let mut take = room;
            let zone = g.zones.get(node.zone).map_or("", String::as_str);
            for l in &w.placement.limits {
                if l.key == HOST {
                    take = take.min(l.each);
                } else if ZONES.contains(&l.key.as_str()) {
                    take = take.min(
                        l.each
                            .saturating_sub(in_zone.get(zone).copied().unwrap_or(0)),
                    );
                }
            }
            could_spread |= take < room;
            node.cpu -= w.cpu * u64::from(take);
            node.memory -= w.memory * u64::from(take);
            node.slots -= take;
            *in_zone.entry(zone).or_default() += take;
            open -= take;
        }
        if open > 0 {
            left.push(Left {
                workload: i,
                placed: w.replicas - open,
                left: open,
                why: if could_spread {
                    Why::Spread
                } else if large {
                    Why::TooLarge
                } else if could_slots {
                    Why::Slots
                } else {
                    Why::Resources
                },
            });
        }
    }
    left.sort_by_key(|l| l.workload);
    Packing {
        left,
        nodes: nodes.len() as u32,
    }
}

/// Pods of this kind that still fit on the node.
fn room(node: &Node, w: &Workload) -> u32 {
    let by = |have: u64, want: u64| have.checked_div(want).unwrap_or(u64::MAX);
    let n = by(node.cpu, w.cpu).min(by(node.memory, w.memory));
    u32::try_from(n).unwrap_or(u32::MAX).min(node.slots)
}
