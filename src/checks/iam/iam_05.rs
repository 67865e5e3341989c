//! IAM-05: workloads that come to a role by web identity for the first time. Their SDK must know it (all since 2019, eks.md 3).

use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::object::annotation;
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "IAM-05",
    severity: Severity::Warning,
    question: "Can the images use web identity?",
    needs: &[Need::Blue],
    answered: Answered::Person,
    remedy: "Upgrade the SDK of the image, or prove it with a canary pod.",
    source: "checks.md IAM-05, eks.md 3",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let (mut new, mut by_pod_identity) = (vec![], vec![]);
    let annotated: std::collections::BTreeSet<(&str, &str)> = i
        .snapshot
        .blue
        .of_kind("ServiceAccount")
        .filter(|sa| annotation(sa, "eks.amazonaws.com/role-arn").is_some())
        .filter_map(|sa| {
            Some((
                sa["metadata"]["namespace"].as_str()?,
                sa["metadata"]["name"].as_str()?,
            ))
        })
        .collect();
    for b in i.blue.iter().filter(|b| !b.is_child() && b.moves()) {
        let Some(spec) = b.template().and_then(|t| t.get("spec")) else {
            continue;
        };
        let ns = b.id.namespace.as_deref().unwrap_or("");
        let name = spec["serviceAccountName"].as_str().unwrap_or("default");
        let Some(_) = i.cx.sa_roles.get(&format!("{ns}/{name}")) else {
            continue;
        };
        // Nobody on blue has Pod Identity: it is new to every image, and asks for a younger SDK than IRSA does.
        if i.cx.pod_identity.contains(&format!("{ns}/{name}")) {
            by_pod_identity.push(b.name.as_str());
            continue;
        }
        let used = annotated.contains(&(ns, name))
            || b.containers(true).any(|c| {
                c["env"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .any(|e| e["name"] == "AWS_WEB_IDENTITY_TOKEN_FILE")
            });
        if used {
            continue;
        }
        for image in b.containers(true).filter_map(|c| c["image"].as_str()) {
            if let Some(version) = old_cli(image) {
                r.blocker(
                    &b.name,
                    format!(
                        "{image} is AWS CLI {version}, which knows no web identity (1.16.232 does)"
                    ),
                    "Upgrade the image on blue first.",
                );
            }
        }
        new.push(b.name.as_str());
    }
    if !by_pod_identity.is_empty() {
        r.found(
            "workloads/pod-identity",
            format!(
                "they come to their role by Pod Identity, as green.identity says: {}. Their SDKs must be boto3 1.34.41, Go 1.47.11, Java 2.21.30 (never 1.x), JavaScript 2.1550 or 3.458, Ruby 3.188, PHP 3.287.1, .NET 3.7.734 or CLI 2.15, or newer; older ones ask the node, which gives them nothing, and wait until they time out",
                few(&by_pod_identity)
            ),
        );
    }
    if !new.is_empty() {
        r.found(
            "workloads",
            format!(
                "they come to their role by web identity for the first time: {}. Their SDKs must be boto3 1.9.220, Go 1.23.13, Java 1.11.704 or 2.10.11, JavaScript 2.525, Ruby 3.58, .NET 3.3.659 or CLI 1.16.232, or newer; older ones fall back to the node's role, which may do nothing on green",
                few(&new)
            ),
        );
    }
}

/// Version of an image of the AWS CLI, when it is too old.
fn old_cli(image: &str) -> Option<&str> {
    let (name, tag) = image.rsplit_once(':')?;
    if !name.ends_with("aws-cli") && !name.ends_with("awscli") {
        return None;
    }
    let numbers: Vec<u32> = tag
        .trim_start_matches('v')
        .split('.')
        .map_while(|p| p.parse().ok())
        .collect();
    (numbers.len() == 3 && numbers.as_slice() < [1, 16, 232].as_slice()).then_some(tag)
}
