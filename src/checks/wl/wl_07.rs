//! WL-07: registries, pull secrets and architectures.

use crate::checks::few;
use crate::checks::image::Image;
use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use std::collections::BTreeSet;

pub(super) const CHECK: Check = Check {
    id: "WL-07",
    severity: Severity::Blocker,
    question: "Can green's nodes pull and run every image?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Mend the secret, the registry or the architecture before unpark.",
    source: "checks.md WL-07",
    run,
};

/// Registries that get no images any more (Kubernetes moved to registry.k8s.io in 2022 and froze the old ones in April 2023).
const FROZEN: &[&str] = &[
    "k8s.gcr.io/",
    "gcr.io/google-containers/",
    "gcr.io/google_containers/",
];
/// Account of the registry from which AWS serves the images of EKS.
const AWS_OWN: &str = "602401143452";

fn run(i: &Input, r: &mut Report) {
    architectures(i, r);
    let secrets: BTreeSet<(&str, &str)> = i
        .blue
        .iter()
        .filter(|o| o.id.kind == "Secret")
        .map(|o| (o.id.namespace.as_deref().unwrap_or(""), o.id.name.as_str()))
        .collect();
    let account = i.spec.aws.account.as_deref().unwrap_or("");
    for o in i.moving(KINDS) {
        let ns = o.id.namespace.as_deref().unwrap_or("");
        for s in o
            .template()
            .and_then(|t| t.pointer("/spec/imagePullSecrets")?.as_array())
            .into_iter()
            .flatten()
            .filter_map(|s| s["name"].as_str())
        {
            // Without any Secret in the snapshot they were not read.
            if !secrets.is_empty() && !secrets.contains(&(ns, s)) {
                r.warning(
                    &o.name,
                    format!("pulls with secret {s}, which namespace {ns} does not have: blue's nodes may have the image already, green's do not"),
                    "Create the secret, or take the name away.",
                );
            }
        }
        let images: BTreeSet<&str> = o
            .containers(true)
            .filter_map(|c| c.get("image")?.as_str())
            .collect();
        for text in images {
            let image = Image::parse(text);
            let host = image.registry.split(':').next().unwrap_or("");
            let inside = host == "localhost"
                || host.starts_with("127.")
                || host.ends_with(".svc")
                || host.ends_with(".svc.cluster.local")
                || host.ends_with(&format!(".internal.{}", i.spec.blue.cluster))
                || i.cx.is_blue_address(host);
            let other = host
                .split_once(".dkr.ecr.")
                .map(|(a, _)| a)
                .filter(|a| *a != account && *a != AWS_OWN && !account.is_empty());
            if inside {
                r.found(
                    &o.name,
                    format!(
                        "{text} comes from a registry inside blue, which green's nodes do not reach"
                    ),
                );
            } else if FROZEN.iter().any(|f| text.starts_with(f)) {
                r.warning(
                    &o.name,
                    format!("{text} is in a registry that was frozen in 2023: blue's nodes may have it, a new node may not get it"),
                    "Take the image from registry.k8s.io.",
                );
            } else if let Some(other) = other {
                r.warning(
                    &o.name,
                    format!("{text} is in a registry of account {other}: its policy must let the role of green's nodes in"),
                    "Add green's node role to the repository's policy.",
                );
            }
        }
    }
}

const KINDS: &[&str] = &[
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicaSet",
    "CronJob",
    "Job",
];

/// Nodes of an architecture that blue did not have, and workloads that do not say which one they need.
fn architectures(i: &Input, r: &mut Report) {
    let blue: BTreeSet<&str> = i
        .blue
        .iter()
        .filter(|o| o.id.kind == "Node")
        .filter_map(|o| o.object.pointer("/status/nodeInfo/architecture")?.as_str())
        .collect();
    let green: BTreeSet<&str> = i
        .target
        .node_groups
        .iter()
        .map(|g| {
            if g.ami_type.contains("ARM_64") {
                "arm64"
            } else {
                "amd64"
            }
        })
        .collect();
    if blue.is_empty() {
        return;
    }
    for new in green.difference(&blue) {
        let free: Vec<&str> = i
            .moving(KINDS)
            .filter(|o| {
                !o.template().is_some_and(|t| {
                    let spec = &t["spec"];
                    [&spec["nodeSelector"], &spec["affinity"]]
                        .iter()
                        .any(|x| x.to_string().contains("kubernetes.io/arch"))
                })
            })
            .map(|o| o.name.as_str())
            .collect();
        if !free.is_empty() {
            r.found(
                format!("architecture/{new}"),
                format!("green has {new} nodes, blue has none: {} workloads do not say what they need and could land there: {}", free.len(), few(&free)),
            );
        }
    }
}
