//! Sizes, and on demand or spot (kops.md 3). A managed node group is one or the other: a mixed one becomes two.

use super::super::kops::number;
use super::super::model::Severity;
use super::types::Machine;
use super::{Ig, labels};
use crate::object::label;
use serde_json::Value;

/// Size of a worker group when it says nothing (kops.md 3).
const NODE_SIZE: u32 = 2;

/// Smallest, largest and present size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub min: u32,
    pub max: u32,
    pub desired: u32,
}

/// One part of a group: all on demand or all spot.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// `` for a whole group, `-ondemand` or `-spot` for a half.
    pub suffix: &'static str,
    pub capacity_type: &'static str,
    pub types: Vec<String>,
    pub sizes: Sizes,
    pub why: Vec<String>,
}

/// Sizes of the whole instance group.
pub(super) fn sizes(ig: &mut Ig) -> Sizes {
    let given = |ig: &Ig, p: &str| number(ig.doc, p);
    let min = given(ig, "/spec/minSize");
    let max = given(ig, "/spec/maxSize");
    if min.is_none() || max.is_none() {
        let missing = match (min, max) {
            (None, None) => "minSize and maxSize are",
            (None, _) => "minSize is",
            _ => "maxSize is",
        };
        ig.note(format!("{missing} not given: kops takes {NODE_SIZE}"));
    }
    let declared = (min.unwrap_or(NODE_SIZE), max.unwrap_or(NODE_SIZE));
    let (min, max) = (
        ig.wish.min.unwrap_or(declared.0),
        ig.wish.max.unwrap_or(declared.1),
    );
    if (min, max) != declared {
        ig.note(format!(
            "{min} to {max} nodes by green.nodeGroups, {} to {} on blue",
            declared.0, declared.1
        ));
    }
    if max == 0 && min == 0 {
        ig.find(
            "KOPS-ig-zero",
            Severity::Info,
            "has maxSize 0: it becomes a node group of 0 to 1 without nodes, since a managed node group has at least 1 as its largest size",
            "Say skip under green.nodeGroups if nobody needs it.",
        );
        ig.note("switched off on blue (maxSize 0), and without nodes on green");
        return Sizes {
            min: 0,
            max: 1,
            desired: 0,
        };
    }
    if max < min {
        ig.find(
            "KOPS-ig-size",
            Severity::Blocker,
            format!("smallest size {min} is above the largest {max}"),
            "Correct minSize and maxSize on blue, or give min and max under green.nodeGroups.",
        );
        // Something must stand in the plan; the finding stands in its way.
        return Sizes {
            min,
            max: min,
            desired: min,
        };
    }
    let Some((live, where_from)) = live(ig) else {
        ig.note(format!(
            "{min} nodes at first: blue's live size was not read"
        ));
        return Sizes {
            min,
            max,
            desired: min,
        };
    };
    let top = max.max(live);
    if live > max {
        ig.find(
            "KOPS-ig-live",
            Severity::Warning,
            format!("{where_from} shows {live} nodes, more than the {max} of the spec: somebody raised it by hand; green's largest size is {live}"),
            "Correct maxSize on blue, or give max under green.nodeGroups once the load allows it.",
        );
    }
    if live < min {
        ig.note(format!(
            "{where_from} shows {live} nodes, fewer than the smallest size {min}"
        ));
    } else {
        ig.note(format!("{live} nodes at first, as {where_from} shows"));
    }
    Sizes {
        min,
        max: top,
        desired: live.max(min),
    }
}

/// Nodes now: the Auto Scaling group's desired capacity, else the nodes that blue's API shows (kops.md 1.5: never in the spec).
fn live(ig: &Ig) -> Option<(u32, &'static str)> {
    let asg = format!("{}.{}", ig.name, ig.spec.blue.cluster);
    let groups = ig
        .snapshot
        .aws
        .as_ref()
        .and_then(|a| a.auto_scaling_groups.as_deref())
        .unwrap_or_default();
    let tagged = |t: &std::collections::BTreeMap<String, String>| {
        t.get("kops.k8s.io/instancegroup") == Some(&ig.name)
            && t.get("KubernetesCluster")
                .is_none_or(|c| *c == ig.spec.blue.cluster)
    };
    if let Some(g) = groups
        .iter()
        .find(|g| g.name == asg)
        .or_else(|| groups.iter().find(|g| tagged(&g.tags)))
    {
        return Some((g.desired, "blue's Auto Scaling group"));
    }
    let value = labels::instance_group(ig);
    let nodes = ig
        .snapshot
        .blue
        .of_kind("Node")
        .filter(|n| label(n, "kops.k8s.io/instancegroup") == Some(&value))
        .count() as u32;
    (nodes > 0).then_some((nodes, "blue's API"))
}

/// What buys a group's nodes.
enum Buys {
    OnDemand,
    Spot,
    /// So many on demand, and this percentage of the rest.
    Mixed(u32, u32),
}

/// One part, or an on-demand and a spot part whose sizes sum up to the group's.
pub(super) fn parts(ig: &mut Ig, machine: &Machine, sizes: Sizes) -> Vec<Part> {
    let part = |suffix, capacity_type, sizes, why: Vec<String>| Part {
        suffix,
        capacity_type,
        types: if capacity_type == "SPOT" {
            machine.spot_types.clone()
        } else {
            machine.types.clone()
        },
        sizes,
        why,
    };
    let (base, above) = match buys(ig) {
        Buys::OnDemand => return vec![part("", "ON_DEMAND", sizes, vec![])],
        Buys::Spot => return vec![part("", "SPOT", sizes, vec![])],
        Buys::Mixed(base, above) => (base, above),
    };
    let on_demand = |n: u32| n.min(base) + percent_up(n.saturating_sub(base), above);
    let first = Sizes {
        min: on_demand(sizes.min),
        max: on_demand(sizes.max),
        desired: on_demand(sizes.desired),
    };
    let second = Sizes {
        min: sizes.min - first.min,
        max: sizes.max - first.max,
        desired: sizes.desired - first.desired,
    };
    let rule = format!(
        "blue mixes on-demand and spot ({base} on demand, then {above} % of the rest, rounded up)"
    );
    if second.max == 0 {
        ig.note(format!(
            "{rule}: of {} nodes none would be spot, so it is one on-demand group",
            sizes.max
        ));
        return vec![part("", "ON_DEMAND", sizes, vec![])];
    }
    if first.max == 0 {
        return vec![part("", "SPOT", sizes, vec![])];
    }
    ig.find(
        "KOPS-ig-mixed",
        Severity::Warning,
        format!("{rule}; a managed node group is one or the other, so it becomes two: on demand {} to {}, spot {} to {}, together {} to {}. Each scales on its own: where spot runs short, no on-demand node steps in", first.min, first.max, second.min, second.max, sizes.min, sizes.max),
        "Watch the shares after the move, or use Karpenter for this group.",
    );
    vec![
        part(
            "-ondemand",
            "ON_DEMAND",
            first,
            vec![format!("the on-demand half: {rule}")],
        ),
        part(
            "-spot",
            "SPOT",
            second,
            vec![format!("the spot half: {rule}")],
        ),
    ]
}

/// n percent, rounded up as an Auto Scaling group does for its on-demand share.
fn percent_up(n: u32, percent: u32) -> u32 {
    u32::try_from((u64::from(n) * u64::from(percent)).div_ceil(100)).unwrap_or(n)
}

/// Spot by every spelling that kops has. With a mixed policy the bid sits on the Auto Scaling group and the policy decides.
fn buys(ig: &mut Ig) -> Buys {
    let bid = ig.field("/spec/maxPrice").is_some_and(|p| match p {
        Value::String(s) => !s.is_empty(),
        _ => true,
    });
    if bid {
        ig.find(
            "KOPS-ig-maxprice",
            Severity::Info,
            "the bid (maxPrice) is dropped: a managed node group pays the spot price, at most that of on demand",
            "Nothing to do.",
        );
    }
    if ig.field("/spec/spotDurationInMinutes").is_some() {
        ig.find(
            "KOPS-ig-spotDurationInMinutes",
            Severity::Info,
            if bid {
                "spot blocks do not exist any more: its spot nodes may be taken back at any time"
            } else {
                "spotDurationInMinutes without maxPrice has no effect in kops: the group is on demand"
            },
            "Nothing to do.",
        );
    }
    if let Some(what) = ig.text("/spec/instanceInterruptionBehavior") {
        let what = what.to_string();
        ig.find(
            "KOPS-ig-instanceInterruptionBehavior",
            if what == "terminate" { Severity::Info } else { Severity::Warning },
            format!("instances {what} when spot takes them back: a managed node group always terminates them"),
            "Keep nothing on a node's own disk that must outlive it.",
        );
    }
    if ig.field("/spec/mixedInstancesPolicy").is_none() {
        return if bid { Buys::Spot } else { Buys::OnDemand };
    }
    let base = number(ig.doc, "/spec/mixedInstancesPolicy/onDemandBase").unwrap_or(0);
    let above = number(ig.doc, "/spec/mixedInstancesPolicy/onDemandAboveBase")
        .unwrap_or(100)
        .min(100);
    for (field, what) in [
        ("spotInstancePools", "the number of spot pools"),
        ("spotAllocationStrategy", "the spot allocation strategy"),
        (
            "onDemandAllocationStrategy",
            "the on-demand allocation strategy",
        ),
    ] {
        if ig
            .field(&format!("/spec/mixedInstancesPolicy/{field}"))
            .is_some()
        {
            ig.note(format!("{what} of blue is dropped: EKS has its own"));
        }
    }
    match (base, above) {
        (_, 100) => Buys::OnDemand,
        (0, 0) => Buys::Spot,
        _ => Buys::Mixed(base, above),
    }
}

/// Shares of a number over `places`, first ones first: they sum up to it, and a larger number never gives a smaller share.
pub(super) fn shares(n: u32, places: u32) -> Vec<u32> {
    (0..places)
        .map(|i| n / places + u32::from(i < n % places))
        .collect()
}
