//! ID-10: the delete list of blue. It stands in the way of deleting blue, not of moving: a warning here, and finalize prints the list.

use crate::checks::few;
use crate::checks::{Answered, Check, Input, Need, Report};
use crate::plan::model::Severity;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECK: Check = Check {
    id: "ID-10",
    severity: Severity::Blocker,
    question: "Would deleting blue by tag take something that blue did not make, or that green still uses?",
    needs: &[Need::Aws],
    answered: Answered::Plan,
    remedy: "Before blue is deleted, tag it `kubernetes.io/cluster/BLUE: shared` and take the tag KubernetesCluster away.",
    source: "checks.md ID-10",
    run,
};

/// Whether `kops delete cluster` selects a thing by these tags (kops.md 4.3).
fn taken(tags: &BTreeMap<String, String>, blue: &str) -> bool {
    let cluster = tags.get(&format!("kubernetes.io/cluster/{blue}"));
    cluster.map(String::as_str) != Some("shared")
        && (cluster.is_some() || tags.get("KubernetesCluster").is_some_and(|c| c == blue))
}

fn run(i: &Input, r: &mut Report) {
    let Some(aws) = i.snapshot.aws.as_ref() else {
        return;
    };
    let blue = &i.spec.blue.cluster;
    let used: Vec<String> = aws
        .subnets
        .iter()
        .filter(|s| i.target.cluster.subnets.contains(&s.id) && taken(&s.tags, blue))
        .map(|s| s.id.clone())
        .collect();
    if !used.is_empty() {
        r.warning(
            "subnets",
            format!(
                "green stands in {} subnets that `kops delete cluster` would select by tag: {}",
                used.len(),
                few(&used)
            ),
            CHECK.remedy,
        );
    }
    let kept: BTreeSet<&str> = i
        .moving(&["PersistentVolume"])
        .filter_map(|o| volume(o.object))
        .collect();
    let lost: Vec<String> = aws
        .volumes
        .iter()
        .flatten()
        .filter(|v| kept.contains(v.id.as_str()) && taken(&v.tags, blue))
        .map(|v| v.id.clone())
        .collect();
    if !lost.is_empty() {
        r.warning(
            "volumes",
            format!("{} volumes that go to green carry blue's tag: `kops delete cluster` would delete them, whatever their reclaim policy: {}", lost.len(), few(&lost)),
            CHECK.remedy,
        );
    }
}

/// EBS volume of a PersistentVolume.
fn volume(pv: &Value) -> Option<&str> {
    let id = pv
        .pointer("/spec/csi/volumeHandle")
        .or(pv.pointer("/spec/awsElasticBlockStore/volumeID"))?
        .as_str()?;
    id.rsplit('/').next()
}
