//! ID-01, the part that a plan can see: green is neither blue nor something that is there already.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use serde_json::Value;

pub(super) const CHECK: Check = Check {
    id: "ID-01",
    severity: Severity::Blocker,
    question: "Is green neither blue nor something that is there already?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Correct the names in migration.yaml, or plan against the right cluster.",
    source: "checks.md ID-01",
    run,
};

/// ID-01, the part that a plan can see: green is neither blue nor something that is there already.
fn run(i: &Input, r: &mut Report) {
    if let Some(found) = i
        .snapshot
        .kops
        .cluster
        .as_ref()
        .and_then(|c| c.pointer("/metadata/name"))
        .and_then(Value::as_str)
        && found != i.spec.blue.cluster
    {
        r.blocker(
            "blue.cluster",
            format!(
                "migration.yaml says {}, the snapshot was made of {found}",
                i.spec.blue.cluster
            ),
            "Correct blue.cluster, or discover the right cluster.",
        );
    }
    if i.spec.green.name == i.spec.blue.cluster {
        r.blocker(
            "green.name",
            "green has blue's name: load balancer controllers would mistake one for the other",
            "Choose another name.",
        );
    }
    let Some(aws) = &i.snapshot.aws else { return };
    if let Some(c) = aws.clusters.iter().find(|c| c.name == i.spec.green.name) {
        let ours = c.tags.contains_key(crate::world::cloud::RUN_TAG);
        if !ours {
            r.blocker(
                format!("cluster/{}", c.name),
                "an EKS cluster of this name exists and was not made by crossfade",
                "Choose another name under green.name.",
            );
        }
    }
}
