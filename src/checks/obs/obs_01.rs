//! OBS-01: alerts that can never fire on green because they name blue, and alerts that always fire because they miss what EKS does not show.

use super::rules::{Rule, rules};
use crate::checks::look::count;
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::plan::model::Severity;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECK: Check = Check {
    id: "OBS-01",
    severity: Severity::Blocker,
    question: "Does an alert name blue, or miss something that green does not show?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Relabel: use labels that both sides have, and put the cluster's name into external labels.",
    source: "checks.md OBS-01",
    run,
};

/// Labels of nodes that only kops sets, as they are and as kube-state-metrics spells them.
const KOPS_LABELS: &[&str] = &[
    "kops.k8s.io/",
    "label_kops_k8s_io_",
    "node_role_kubernetes_io_master",
    "node-role.kubernetes.io/master",
    "node_role_kubernetes_io_node",
    "kubernetes_io_role=\"master\"",
];
/// Parts of a control plane whose metrics EKS does not let anybody scrape.
const CONTROL_PLANE: &[&str] = &[
    "kube-scheduler",
    "kube-controller-manager",
    "kubescheduler",
    "kubecontrollermanager",
    "etcd",
];

/// A word with a boundary on both sides: `shop.test` is not in `workshop.tests`.
fn holds(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    text.match_indices(word).any(|(at, w)| {
        !text[..at].chars().next_back().is_some_and(part)
            && !text[at + w.len()..].chars().next().is_some_and(part)
    })
}

/// What of blue an expression names.
fn blue_word(expr: &str, i: &Input, nodes: &BTreeSet<&str>) -> Option<String> {
    // Only as a label's value: the domain of the company may be the cluster's name.
    let quoted = || expr.split('"').skip(1).step_by(2);
    let cluster = &i.spec.blue.cluster;
    if quoted().any(|q| q == cluster || q.split('|').any(|p| p == cluster)) {
        return Some(format!("cluster {cluster}"));
    }
    if let Some(n) = nodes.iter().find(|n| holds(expr, n)) {
        return Some(format!("node {n}"));
    }
    KOPS_LABELS
        .iter()
        .find(|l| expr.contains(**l))
        .map(|l| format!("label {}", l.trim_end_matches(['/', '_'])))
}

fn run(i: &Input, r: &mut Report) {
    let nodes: BTreeSet<&str> = i.of_kind("Node").map(|o| o.id.name.as_str()).collect();
    let mut blue: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let mut recorded: Vec<(String, String)> = vec![];
    let mut always: Vec<(String, String)> = vec![];
    let mut idle: Vec<(String, String)> = vec![];
    let name = |x: &Rule| (x.object.name.clone(), x.name.clone());
    for x in rules(i) {
        if let Some(word) = blue_word(&x.expr, i, &nodes) {
            if x.alert {
                blue.entry(word).or_default().push(name(&x));
            } else {
                recorded.push(name(&x));
            }
        } else if x.alert && (x.expr.contains("absent(") || x.expr.contains("absent_over_time(")) {
            let control = x.expr.to_lowercase();
            if CONTROL_PLANE.iter().any(|c| control.contains(c)) {
                always.push(name(&x));
            } else {
                idle.push(name(&x));
            }
        }
    }
    let names =
        |v: &[(String, String)]| -> Vec<String> { v.iter().map(|(_, n)| n.clone()).collect() };
    for (word, all) in &blue {
        r.found(
            all[0].0.clone(),
            format!(
                "{} on {word} of blue and can never fire for green: {}",
                count(all.len(), "alert"),
                few(&names(all))
            ),
        );
    }
    if !recorded.is_empty() {
        r.warning(
            recorded[0].0.clone(),
            format!(
                "{} of blue's names and {} empty on green: {}",
                count(recorded.len(), "recording rule"),
                if recorded.len() == 1 { "stays" } else { "stay" },
                few(&names(&recorded))
            ),
            CHECK.remedy,
        );
    }
    if !always.is_empty() {
        r.warning(
            always[0].0.clone(),
            format!("{} on a missing part of the control plane, which EKS does not show: always firing on green: {}", count(always.len(), "alert"), few(&names(&always))),
            "Drop these alerts on green: AWS runs the control plane.",
        );
    }
    if !idle.is_empty() {
        r.warning(
            idle[0].0.clone(),
            format!(
                "{} on something missing (`absent`), firing on green while it is idle: {}",
                count(idle.len(), "alert"),
                few(&names(&idle))
            ),
            "Silence these alerts on green until the cutover.",
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::{Blocker, Warning};
    use crate::snapshot::model::Snapshot;
    use serde_json::json;

    fn alert(expr: &str) -> Snapshot {
        with(vec![
            crd(),
            object(
                "monitoring.coreos.com/v1",
                "PrometheusRule",
                "shop",
                json!({"spec": {"groups": [{"name": "g", "rules": [{"alert": "Orders", "expr": expr}]}]}}),
            ),
        ])
    }
    fn crd() -> serde_json::Value {
        let mut c = object(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "prometheusrules.monitoring.coreos.com",
            json!({"spec": {"group": "monitoring.coreos.com", "names": {"kind": "PrometheusRule", "plural": "prometheusrules"}, "versions": [{"name": "v1", "served": true, "storage": true}]}}),
        );
        c["metadata"] = json!({"name": "prometheusrules.monitoring.coreos.com"});
        c
    }

    #[test]
    fn an_alert_on_the_name_of_the_cluster_or_on_a_label_of_kops_can_never_fire() {
        fires(
            &spec(),
            &alert("rate(orders_total{cluster=\"shop.test\"}[5m]) < 1"),
            "OBS-01",
            Blocker,
            "cluster shop.test",
        );
        fires(
            &spec(),
            &alert("kube_node_labels{label_kops_k8s_io_instancegroup=\"nodes\"} == 0"),
            "OBS-01",
            Blocker,
            "label_kops_k8s_io",
        );
    }

    #[test]
    fn a_rule_file_in_a_configmap_is_read_and_absence_fires_on_an_idle_green() {
        let file = "groups:\n- name: g\n  rules:\n  - alert: NoOrders\n    expr: absent(orders_total)\n  - alert: SchedulerDown\n    expr: absent(up{job=\"kube-scheduler\"} == 1)\n";
        let s = with(vec![object(
            "v1",
            "ConfigMap",
            "rules",
            json!({"data": {"rules.yml": file}}),
        )]);
        fires(&spec(), &s, "OBS-01", Warning, "NoOrders");
        fires(
            &spec(),
            &s,
            "OBS-01",
            Warning,
            "always firing on green: SchedulerDown",
        );
    }

    #[test]
    fn an_alert_on_a_host_of_the_company_is_fine() {
        silent(
            &spec(),
            &alert("probe_success{instance=\"https://www.shop.test\"} == 0"),
            "OBS-01",
        );
    }
}
