//! API-03: kinds that cannot be carried over (PodSecurityPolicy). The rewrite refuses them one by one (src/rewrite/convert); here each namespace gets
//! its proposal of a Pod Security level (replay.md 53).

use crate::checks::{Answered, BlueObject, Check, Input, Report, few};
use crate::object::annotation;
use crate::plan::model::Severity;
use crate::rewrite::convert::{level, mutates};
use crate::rewrite::pod_security::refused;
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

/// Labels of Pod Security, by their common beginning.
const LABELS: &str = "pod-security.kubernetes.io/";

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
    let policies: BTreeMap<&str, _> = i
        .of_kind("PodSecurityPolicy")
        .map(|o| (o.id.name.as_str(), o.object))
        .collect();
    if policies.is_empty() {
        return;
    }
    // The policy that let a pod in is written on it.
    let mut used: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for o in i.of_kind("Pod") {
        if let Some(policy) = annotation(o.object, "kubernetes.io/psp") {
            used.entry(o.id.namespace.as_deref().unwrap_or(""))
                .or_default()
                .insert(policy);
        }
    }
    let mut workloads: BTreeMap<&str, Vec<&BlueObject>> = BTreeMap::new();
    for o in i.moving(KINDS) {
        let ns = o.id.namespace.as_deref().unwrap_or("");
        workloads.entry(ns).or_default().push(o);
    }
    for o in i.of_kind("Namespace").filter(|o| o.moves()) {
        let Some(names) = used.get(o.id.name.as_str()) else {
            continue;
        };
        let labelled = o
            .object
            .pointer("/metadata/labels")
            .and_then(|l| l.as_object())
            .is_some_and(|l| l.keys().any(|k| k.starts_with(LABELS)));
        let known: Vec<_> = names.iter().filter_map(|n| policies.get(n)).collect();
        let Some(widest) = known.iter().map(|p| level(p)).max() else {
            continue;
        };
        if labelled {
            continue;
        }
        // Which pods the label would keep from starting, by what they will be on green.
        let mut out: Vec<String> = vec![];
        for w in workloads.get(o.id.name.as_str()).into_iter().flatten() {
            let copy = w.verdict.and_then(|v| v.target.as_ref());
            let pod = template_path(&w.id.kind).and_then(|t| copy?.pointer(t));
            let why = pod.map(|p| refused(p, widest)).unwrap_or_default();
            if !why.is_empty() {
                out.push(format!("{} ({})", w.name, why.join(", ")));
            }
        }
        let written: BTreeSet<&str> = known.iter().flat_map(|p| mutates(p)).collect();
        let list: Vec<&str> = names.iter().copied().collect();
        let mut message = format!(
            "its pods were let in by {}; on green nothing holds them back until the namespace says so",
            few(&list)
        );
        if !out.is_empty() {
            message += &format!(". {} would refuse {}", widest.name(), few(&out));
        }
        if !written.is_empty() {
            let fields: Vec<&str> = written.into_iter().collect();
            message += &format!(
                ". The policies also wrote {} into pods: write it into the templates",
                fields.join(", ")
            );
        }
        r.warning(
            &o.name,
            message,
            format!(
                "Label it {LABELS}enforce: {0} (first {LABELS}warn: {0}, and look at what is said).",
                widest.name()
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::*;
    use crate::plan::model::Severity::Warning;
    use serde_json::{Value, json};

    fn blue(namespace_labels: Value, policy: Value) -> crate::snapshot::model::Snapshot {
        snapshot(vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": namespace_labels}}),
            json!({"apiVersion": "policy/v1beta1", "kind": "PodSecurityPolicy", "metadata": {"name": "p"}, "spec": policy}),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "shop", "annotations": {"kubernetes.io/psp": "p"},
                "ownerReferences": [{"kind": "ReplicaSet", "name": "a", "controller": true}]}, "spec": {"containers": []}}),
        ])
    }

    #[test]
    fn rule_53_a_namespace_gets_the_strictest_level_that_lets_in_what_its_policies_let_in() {
        let any = json!({"rule": "RunAsAny"});
        for (policy, level) in [
            (json!({"privileged": true, "runAsUser": any}), "privileged"),
            (
                json!({"volumes": ["hostPath"], "runAsUser": any}),
                "privileged",
            ),
            (
                json!({"volumes": ["secret"], "allowedCapabilities": ["NET_BIND_SERVICE"], "runAsUser": any}),
                "baseline",
            ),
            (
                json!({"volumes": ["secret"], "allowedCapabilities": ["SYS_ADMIN"], "runAsUser": any}),
                "privileged",
            ),
            (
                json!({"volumes": ["secret", "emptyDir"], "allowPrivilegeEscalation": false, "runAsUser": {"rule": "MustRunAsNonRoot"}}),
                "restricted",
            ),
            (
                json!({"volumes": ["secret"], "allowPrivilegeEscalation": false, "runAsUser": {"rule": "MustRunAs", "ranges": [{"min": 0, "max": 9}]}}),
                "baseline",
            ),
        ] {
            let s = blue(json!({}), policy);
            let p = fires(
                &spec(),
                &s,
                "API-03",
                Warning,
                "namespace/shop",
                "let in by p",
            );
            let f = p
                .findings
                .iter()
                .find(|f| f.object == "namespace/shop" && f.id == "API-03");
            assert!(
                f.is_some_and(|f| f.remedy.contains(&format!("enforce: {level}"))),
                "{level}: {f:?}"
            );
        }
    }

    #[test]
    fn what_a_policy_wrote_into_pods_is_named_and_a_namespace_with_a_label_is_left_alone() {
        let policy = json!({"runAsUser": {"rule": "RunAsAny"}, "fsGroup": {"rule": "MustRunAs"}, "requiredDropCapabilities": ["ALL"]});
        fires(
            &spec(),
            &blue(json!({}), policy.clone()),
            "API-03",
            Warning,
            "namespace/shop",
            "capabilities, fsGroup into pods",
        );
        let s = blue(
            json!({"pod-security.kubernetes.io/enforce": "baseline"}),
            policy,
        );
        let said = said(&crate::plan::plan(&spec(), &s), "API-03");
        assert!(
            !said.iter().any(|m| m.contains("namespace/shop")),
            "{said:?}"
        );
    }
}
