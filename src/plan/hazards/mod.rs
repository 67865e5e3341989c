//! Why blue is not upgraded in place: its age in numbers, and what each hop to a supported release would break.
//!
//! `facts` reads the snapshot once, `list` judges, `hops` walks from blue's minor to green's, `text` says it. Severities here are
//! those of an upgrade in place, not of the migration: a blocker is what no hop passes before somebody has removed it.

mod facts;
mod hops;
mod list;
#[cfg(test)]
mod tests;
mod text;

use super::model::Severity;
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use serde::{Deserialize, Serialize};

/// The report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Hazards {
    /// Kubernetes of blue, as in `1.14`.
    #[serde(default)]
    pub kubernetes: Option<String>,
    /// Release of kops, and where it is known from.
    #[serde(default)]
    pub kops: String,
    /// Kubernetes of green, as in `1.35`.
    #[serde(default)]
    pub green: String,
    /// The oldest version that both EKS and today's kops run.
    #[serde(default)]
    pub oldest_supported: Option<String>,
    /// What is dangerous, worst first.
    #[serde(default)]
    pub hazards: Vec<Hazard>,
    /// Each minor on the way.
    #[serde(default)]
    pub hops: Vec<Hop>,
    /// The sum.
    #[serde(default)]
    pub total: Total,
}

/// One hazard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Hazard {
    /// As in `HAZ-etcd-legacy`.
    pub id: String,
    /// For an upgrade in place.
    pub severity: Severity,
    /// What is the matter in this cluster.
    pub what: String,
    /// From when it is so: a version or a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Up to when it works: a version or a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Source of the rule.
    pub source: String,
}

/// One minor version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Hop {
    /// As in `1.14`.
    pub from: String,
    /// As in `1.15`.
    pub to: String,
    /// Releases of kops that can do it.
    pub kops: String,
    /// What it would break in this cluster.
    pub breaks: Vec<Break>,
}

/// What a hop breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Break {
    /// What.
    pub what: String,
    /// How many objects of this cluster; `None` where it is not about objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<usize>,
    /// Source of the rule.
    pub source: String,
}

/// The sum of the way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Total {
    /// Hops to the oldest supported version.
    #[serde(default)]
    pub hops_to_supported: Option<usize>,
    /// Hops to green's version.
    pub hops: usize,
    /// Rolling updates: every group once for each hop, and the masters once more for each step of etcd.
    pub rolling_updates: usize,
    /// Instances that these replace.
    pub instances: usize,
}

/// Reads the report. Pure: days are counted from `snapshot.taken` only.
pub fn hazards(spec: &Spec, snapshot: &Snapshot) -> Hazards {
    let facts = facts::Facts::of(spec, snapshot);
    let hops = hops::hops(&facts);
    let mut hazards = list::list(&facts, &hops);
    hazards.sort_by(|a, b| (a.severity, &a.id, &a.what).cmp(&(b.severity, &b.id, &b.what)));
    Hazards {
        kubernetes: facts.minor.map(|m| format!("1.{m}")),
        kops: facts.release.to_string(),
        green: format!("1.{}", facts.green),
        oldest_supported: facts.oldest.map(|m| format!("1.{m}")),
        hazards,
        total: hops::total(&facts, &hops),
        hops,
    }
}
