//! GIT-03: resources with two writers. Which resources a state holds decides; marks of Terraform in the account show that there is one.

use crate::checks::few;
use crate::checks::{Answered, Check, Input, Need, Report};
use crate::plan::model::Severity;
use std::collections::BTreeMap;

pub(super) const CHECK: Check = Check {
    id: "GIT-03",
    severity: Severity::Blocker,
    question: "Would the next Terraform apply take away what the migration adds?",
    needs: &[Need::Aws],
    answered: Answered::Plan,
    remedy: "Freeze applies until finalize, or write the same change into the Terraform code.",
    source: "checks.md GIT-03",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let Some(aws) = i.snapshot.aws.as_ref() else {
        return;
    };
    let Some(state) = &i.snapshot.terraform else {
        let marked: Vec<String> = aws
            .subnets
            .iter()
            .map(|x| (&x.id, &x.tags))
            .chain(aws.security_groups.iter().map(|x| (&x.id, &x.tags)))
            .chain(aws.roles.iter().map(|x| (&x.name, &x.tags)))
            .filter(|(_, tags)| marked(tags))
            .map(|(id, _)| id.clone())
            .collect();
        if !marked.is_empty() {
            r.warning(
                "green.terraformState",
                format!(
                    "{} resources carry Terraform's mark, and no state was given: {}",
                    marked.len(),
                    few(&marked)
                ),
                "Give green.terraformState, so that the plan knows what is Terraform's.",
            );
        }
        return;
    };
    let held = |kind: &str, name: &str| {
        state.iter().find(|t| {
            t.kind == kind
                && ["id", "name", "arn"]
                    .iter()
                    .any(|a| t.attributes.get(*a).is_some_and(|v| v == name))
        })
    };
    for role in i.target.roles.iter().filter(|x| x.existing) {
        if let Some(t) = held("aws_iam_role", &role.name) {
            r.found(
                format!("role/{}", role.name),
                format!(
                    "is Terraform's ({}): the next apply takes green's trust statement out of it",
                    t.address
                ),
            );
        }
    }
    for subnet in &i.target.cluster.subnets {
        if let Some(t) = held("aws_subnet", subnet) {
            r.warning(
                format!("subnet/{subnet}"),
                format!(
                    "is Terraform's ({}): the next apply takes green's tags off it",
                    t.address
                ),
                CHECK.remedy,
            );
        }
    }
}

/// Whether the tags say that Terraform made it.
fn marked(tags: &BTreeMap<String, String>) -> bool {
    tags.iter().any(|(k, v)| {
        let (k, v) = (k.to_lowercase(), v.to_lowercase());
        k.contains("terraform") && v != "false"
            || matches!(
                k.replace(['-', '_'], "").as_str(),
                "managedby" | "createdby" | "provisioner" | "provisionedby"
            ) && v.contains("terraform")
    })
}
