//! GIT-01: Argo CD and Flux. Their objects, and objects that carry their marks, are named by the rewrite (src/rewrite/tools.yaml); here the tools themselves.

use crate::checks::image::Image;
use crate::checks::{Answered, Check, Input, Report};
use crate::checks::{RUNNING, few};
use crate::plan::model::Severity;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) const CHECK: Check = Check {
    id: "GIT-01",
    severity: Severity::Blocker,
    question: "Would a GitOps tool undo what the migration holds?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Pause it, and prove the pause with a test edit that stays.",
    source: "checks.md GIT-01",
    run,
};

/// (last part of the image's repository, name)
const TOOLS: &[(&str, &str)] = &[
    ("argocd", "Argo CD"),
    ("argo-cd", "Argo CD"),
    ("kustomize-controller", "Flux"),
    ("helm-controller", "Flux"),
    ("flux", "Flux 1"),
    ("helm-operator", "Flux 1's Helm operator"),
    ("fleet-agent", "Fleet"),
    ("kapp-controller", "kapp-controller"),
    ("eunomia-operator", "Eunomia"),
];

fn run(i: &Input, r: &mut Report) {
    let mut tools: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for o in i.moving(RUNNING) {
        for c in o.containers(false) {
            let name = c
                .get("image")
                .and_then(Value::as_str)
                .map(|t| Image::parse(t).name());
            if let Some((_, tool)) = TOOLS.iter().find(|(n, _)| Some(*n) == name) {
                tools.entry(tool).or_default().push(&o.name);
            }
        }
    }
    for (tool, mut objects) in tools {
        objects.dedup();
        r.warning(
            objects[0],
            format!("{tool} runs on blue and would wake on green at unpark: two of it would then hold two clusters to one repository ({})", few(&objects)),
            "Pause it on blue before the freeze; list it under workloads.skip, or under workloads.singletons so that it wakes last.",
        );
    }
}
