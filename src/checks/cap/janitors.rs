//! CAP-13.

use crate::checks::words::{count, images, some, templates};
use crate::checks::{Answered, Check, Input, Need, Report};
use crate::object::ObjectId;
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "CAP-13",
    severity: Severity::Warning,
    question: "Would a janitor, descheduler or downscaler act on what is held?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Scale it to 0 on blue before the freeze and list it under workloads.singletons, so that it starts on green at open.",
    source: "checks.md CAP-13",
    run,
};

/// Part of an image or name, and what the tool does.
const TOOLS: &[(&str, &str)] = &[
    ("kube-downscaler", "sets replica counts by the clock"),
    ("kube-janitor", "deletes objects by age"),
    ("descheduler", "evicts pods"),
    ("kube-green", "sets replica counts by the clock"),
    ("snorlax", "sets replica counts by the clock"),
    ("kube-cleanup-operator", "deletes finished jobs and pods"),
    ("k8s-cleaner", "deletes objects"),
    ("node-problem-detector-remedy", "drains nodes"),
    ("draino", "drains nodes"),
    ("kured", "reboots nodes"),
    ("chaoskube", "kills pods"),
    ("kube-monkey", "kills pods"),
];

/// Custom kinds whose controllers set replica counts: group, kind.
const SCALERS: &[(&str, &str, &str)] = &[
    (
        "keda.sh",
        "ScaledObject",
        "scales from 0 when its trigger fires",
    ),
    ("keda.sh", "ScaledJob", "starts jobs when its trigger fires"),
    (
        "kube-green.com",
        "SleepInfo",
        "sets replica counts by the clock",
    ),
];

fn run(i: &Input, r: &mut Report) {
    for (object, template) in templates(i) {
        let name = object.rsplit('/').next().unwrap_or("");
        let tool = TOOLS.iter().find(|(part, _)| {
            name.contains(part)
                || images(template).any(|m| m.split(':').next().is_some_and(|m| m.contains(part)))
        });
        if let Some((_, does)) = tool
            && !i.spec.workloads.singletons.iter().any(|s| s == object)
        {
            r.found(object, format!("{does}: it would undo holds on blue, and act on parked objects of green from unpark on"));
        }
    }
    for (group, kind, does) in SCALERS {
        let objects: Vec<String> = i
            .snapshot
            .blue
            .of_kind(kind)
            .filter_map(ObjectId::of)
            .filter(|id| id.group() == *group)
            .map(|id| id.to_string())
            .collect();
        if !objects.is_empty() {
            r.warning(
                objects[0].as_str(),
                format!("{}: {does}, so a workload that is parked or frozen would not stay at 0 ({})", count(objects.len(), kind), some(&objects)),
                "Pause it with the freeze (annotation autoscaling.keda.sh/paused-replicas: \"0\" for KEDA), and again on green until open.",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{deployment, of, says, snapshot, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::json;

    #[test]
    fn cap_13_a_downscaler_and_a_scaler_from_zero_would_undo_the_hold() {
        let mut s = snapshot();
        let mut tool = deployment("nights", 1, json!({}));
        tool["spec"]["template"]["spec"]["containers"] =
            json!([{"name": "c", "image": "hjacobs/kube-downscaler:20.10"}]);
        s.blue.objects = vec![
            tool,
            json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "mail", "namespace": "n"}, "spec": {"scaleTargetRef": {"name": "mail"}}}),
        ];
        let p = plan(&spec(), &s);
        says(
            &p,
            "CAP-13",
            Severity::Warning,
            "sets replica counts by the clock",
        );
        says(
            &p,
            "CAP-13",
            Severity::Warning,
            "1 ScaledObject: scales from 0",
        );
    }

    #[test]
    fn cap_13_one_that_is_declared_single_starts_at_open_and_is_no_matter() {
        let mut s = snapshot();
        s.blue.objects = vec![
            deployment("kube-janitor", 1, json!({})),
            deployment("web", 1, json!({})),
        ];
        says(
            &plan(&spec(), &s),
            "CAP-13",
            Severity::Warning,
            "deletes objects by age",
        );
        let mut declared = spec();
        declared.workloads.singletons = vec!["deployment/n/kube-janitor".into()];
        assert!(of(&plan(&declared, &s), "CAP-13").is_empty());
    }
}
