//! How long it takes, as ranges with their sources.

use super::model::{StepSpec, Timeline};
use std::collections::BTreeMap;

/// Where the numbers come from.
const SOURCES: &[&str] = &[
    "eks.md 1.8: EKS cluster 8 to 20 minutes, node group 2 to 5, add-on up to 3",
    "the zone's own TTLs: an old TTL must run out (externaldns.md rule 5)",
    "two loops of ExternalDNS to prove that it stopped (externaldns.md rule 6)",
    "Route 53 is in sync within 60 seconds",
    "data sets: estimates until a rehearsal has measured them",
];

/// Longest chains through the steps (which are in topological order).
pub(super) fn timeline(steps: &[StepSpec]) -> Timeline {
    let high = longest(steps, |s| s.expect_s[1], |_| true);
    let low = longest(steps, |s| s.expect_s[0], |_| true);
    let mut path = vec![];
    let mut at = high
        .iter()
        .max_by(|a, b| a.1.0.cmp(&b.1.0).then(b.0.cmp(a.0)))
        .map(|(id, _)| *id);
    while let Some(id) = at {
        path.push(id.to_string());
        at = high.get(id).and_then(|(_, p)| *p);
    }
    path.reverse();
    let end = |m: &BTreeMap<&str, (u32, Option<&str>)>| m.values().map(|v| v.0).max().unwrap_or(0);
    Timeline {
        critical_path: path,
        write_closed_s: closed(steps),
        total_s: [end(&low), end(&high)],
        sources: SOURCES.iter().map(|s| s.to_string()).collect(),
    }
}

/// From closing blue to opening green: the longest chain between the two fences.
fn closed(steps: &[StepSpec]) -> [u32; 2] {
    let Some(fence) = steps.iter().find(|s| s.kind == "fence.close") else {
        return [0, 0];
    };
    let mut after = std::collections::BTreeSet::from([fence.id.as_str()]);
    for s in steps {
        if s.needs.iter().any(|n| after.contains(n.as_str())) {
            after.insert(&s.id);
        }
    }
    let inside = |s: &StepSpec| after.contains(s.id.as_str());
    let until = |m: BTreeMap<&str, (u32, Option<&str>)>| {
        steps
            .iter()
            .filter(|s| s.kind == "fence.open")
            .filter_map(|s| m.get(s.id.as_str()).map(|v| v.0))
            .max()
            .unwrap_or(0)
    };
    [
        until(longest(steps, |s| s.expect_s[0], inside)),
        until(longest(steps, |s| s.expect_s[1], inside)),
    ]
}

fn longest(
    steps: &[StepSpec],
    cost: impl Fn(&StepSpec) -> u32,
    counts: impl Fn(&StepSpec) -> bool,
) -> BTreeMap<&str, (u32, Option<&str>)> {
    let mut best: BTreeMap<&str, (u32, Option<&str>)> = BTreeMap::new();
    for s in steps {
        if !counts(s) {
            continue;
        }
        let before = s
            .needs
            .iter()
            .filter_map(|n| best.get_key_value(n.as_str()))
            .max_by(|a, b| a.1.0.cmp(&b.1.0).then(b.0.cmp(a.0)))
            .map(|(k, v)| (v.0, *k));
        let (base, prev) = before.map_or((0, None), |(t, k)| (t, Some(k)));
        best.insert(&s.id, (base.saturating_add(cost(s)), prev));
    }
    best
}
