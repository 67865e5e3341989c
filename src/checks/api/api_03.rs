//! API-03: kinds that cannot be carried over. That a PodSecurityPolicy is one says the rewrite (src/rewrite/apis.rs); here, what takes its place:
//! a level of Pod Security for each namespace, and the workloads that it would refuse (replay.md 53).

use crate::checks::{Answered, BlueObject, Check, Input, Report, few};
use crate::object::label;
use crate::plan::model::Severity;
use crate::rewrite::pod_security::{Level, admitted_by, needs, policy_level, refused};
use crate::rewrite::template_path;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECK: Check = Check {
    id: "API-03",
    severity: Severity::Blocker,
    question: "Which kinds were removed without a successor?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Choose the replacement on blue.",
    source: "checks.md API-03",
    run,
};

/// Label by which a namespace asks for a level.
const ENFORCE: &str = "pod-security.kubernetes.io/enforce";
/// Kinds whose pods are judged.
const KINDS: &[&str] = &[
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicaSet",
    "Job",
    "CronJob",
    "Pod",
];

fn run(i: &Input, r: &mut Report) {
    let policies: BTreeMap<&str, Level> = i
        .of_kind("PodSecurityPolicy")
        .map(|o| (o.id.name.as_str(), policy_level(o.object)))
        .collect();
    if policies.is_empty() {
        return;
    }
    let labelled: BTreeSet<&str> = i
        .of_kind("Namespace")
        .filter(|o| label(o.object, ENFORCE).is_some())
        .map(|o| o.id.name.as_str())
        .collect();
    // Which policy is in force shows only on live pods, children too.
    let mut in_force: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for pod in i.of_kind("Pod") {
        if let (Some(ns), Some(policy)) = (pod.id.namespace.as_deref(), admitted_by(pod.object)) {
            in_force.entry(ns).or_default().insert(policy);
        }
    }
    let mut namespaces: BTreeMap<&str, Vec<&BlueObject>> = BTreeMap::new();
    for o in i.moving(KINDS) {
        if let Some(ns) = o.id.namespace.as_deref().filter(|n| !labelled.contains(n)) {
            namespaces.entry(ns).or_default().push(o);
        }
    }
    for (ns, workloads) in namespaces {
        let pods = || {
            workloads.iter().filter_map(|o| {
                let copy = o.verdict.and_then(|v| v.target.as_ref())?;
                Some((o.name.as_str(), copy.pointer(template_path(&o.id.kind)?)?))
            })
        };
        let Some(least) = pods().map(|(_, p)| needs(p)).min() else {
            continue;
        };
        let used = in_force.get(ns);
        let level = used
            .into_iter()
            .flatten()
            .filter_map(|p| policies.get(p).copied())
            .min();
        // Without a live pod nobody knows which policy was in force: then what all its pods can bear.
        let proposed = level.unwrap_or(least);
        let mut out: Vec<String> = vec![];
        for (name, pod) in pods() {
            let why = refused(pod, proposed);
            if !why.is_empty() {
                out.push(format!("{name} ({})", why.join(", ")));
            }
        }
        let by = used.map_or(String::from("no policy is seen in force"), |p| {
            format!(
                "admitted by {} so far",
                p.iter().copied().collect::<Vec<_>>().join(", ")
            )
        });
        let remedy = format!(
            "Label the namespace `{ENFORCE}: {}` on blue (older servers ignore it) or after the migration on green.",
            proposed.name()
        );
        if out.is_empty() {
            let more = if least > proposed {
                format!("; they would even pass {}", least.name())
            } else {
                String::new()
            };
            r.info(
                format!("namespace/{ns}"),
                format!(
                    "{by}: all its pods pass Pod Security {}{more}",
                    proposed.name()
                ),
                remedy,
            );
        } else {
            r.warning(
                format!("namespace/{ns}"),
                format!(
                    "{by}: Pod Security {} would refuse {}; {} admits all",
                    proposed.name(),
                    few(&out),
                    least.name()
                ),
                format!(
                    "{remedy} First change these, or label it `{}`.",
                    least.name()
                ),
            );
        }
    }
}
