//! What may have been meant when the plan says nothing.

use crate::error::Result;
use crate::plan::fates::{self, Doc};
use crate::plan::model::Plan;
use std::collections::BTreeSet;

/// Up to five things of the plan that are spelled alike.
pub(super) fn near(plan: &Plan, asked: &str) -> Result<Vec<String>> {
    let mut all: BTreeSet<String> = BTreeSet::new();
    let t = &plan.target;
    for name in plan.verdicts.names() {
        all.insert(name?);
    }
    all.extend(plan.names.iter().map(|n| n.host.clone()));
    all.extend(plan.findings.iter().map(|f| f.id.clone()));
    all.extend(
        t.node_groups
            .iter()
            .map(|g| format!("node-group/{}", g.name)),
    );
    all.extend(t.roles.iter().map(|r| format!("role/{}", r.name)));
    all.extend(t.addons.iter().map(|a| format!("addon/{}", a.name)));
    all.extend(t.cluster.subnets.iter().map(|s| format!("subnet/{s}")));
    let path = asked.rsplit('/').next().unwrap_or(asked);
    if path.starts_with("spec.") {
        for doc in [Doc::Cluster, Doc::Group] {
            all.extend(fates::suggestion(doc, path));
        }
        all.extend(plan.fields.iter().map(|f| f.path.clone()));
    }
    let asked = asked.to_lowercase();
    let last = asked
        .rsplit(['/', '.'])
        .next()
        .unwrap_or(&asked)
        .to_string();
    let mut scored: Vec<(usize, String)> = all
        .into_iter()
        .filter_map(|c| Some((score(&asked, &last, &c.to_lowercase())?, c)))
        .collect();
    scored.sort();
    Ok(scored.into_iter().map(|(_, c)| c).take(5).collect())
}

/// Smaller is nearer; `None` when it is not near at all.
fn score(asked: &str, last: &str, candidate: &str) -> Option<usize> {
    let name = candidate.rsplit(['/', '.']).next().unwrap_or(candidate);
    let whole = distance(asked, candidate);
    if whole <= 3.min(asked.chars().count() / 3) {
        return Some(whole);
    }
    let d = distance(last, name);
    if d <= 2.min(last.chars().count() / 3) {
        return Some(10 + d);
    }
    (last.len() >= 3 && name.contains(last)).then_some(20)
}

/// Edit distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let up = row[j + 1];
            row[j + 1] = (diagonal + usize::from(ca != *cb))
                .min(up + 1)
                .min(row[j] + 1);
            diagonal = up;
        }
    }
    row.last().copied().unwrap_or(0)
}
