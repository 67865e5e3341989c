//! Roles and bindings: subjects of the first alpha, and groups under which green serves what a rule grants.

use super::super::removed::Removal;
use super::super::work::{Work, items, take};
use super::rename;
use crate::plan::model::Severity;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// v1alpha1 named a subject by apiVersion, and everybody as the user `*`.
pub(super) fn subjects(w: &mut Work, r: &Removal) {
    let list = w.object.get_mut("subjects").and_then(Value::as_array_mut);
    for s in list.into_iter().flatten() {
        if let Some(v) = take(s, "/apiVersion") {
            let group = v
                .as_str()
                .and_then(|v| v.split_once('/'))
                .map_or("", |(g, _)| g);
            // A service account is of the core group, which is not written.
            if !group.is_empty() && s["kind"] != "ServiceAccount" {
                s["apiGroup"] = json!(group);
            }
        }
        if s["kind"] == "User" && s["name"] == "*" {
            s["kind"] = json!("Group");
            s["name"] = json!("system:authenticated");
        }
        if s["kind"] != "ServiceAccount" && s.get("apiGroup").is_none() {
            s["apiGroup"] = json!("rbac.authorization.k8s.io");
        }
    }
    rename::convert(w, r);
}

/// Resources of the group `extensions`, and the groups in which they live today.
const HOMES: &[(&str, &[&str])] = &[
    ("apps", &["deployments", "daemonsets", "replicasets"]),
    ("networking.k8s.io", &["ingresses", "networkpolicies"]),
];

/// Rules 41 and 65: a rule that grants objects by the group `extensions` grants nothing on green unless it names their present group too.
/// A grant of PodSecurityPolicies ends with them (rule 53).
pub(super) fn rules(w: &mut Work) {
    let mut gained = BTreeSet::new();
    let rules = w.object.get_mut("rules").and_then(Value::as_array_mut);
    let Some(rules) = rules else { return };
    for rule in rules.iter_mut() {
        let groups: Vec<String> = items(rule, "/apiGroups")
            .filter_map(Value::as_str)
            .map(String::from)
            .collect();
        if !groups.iter().any(|g| g == "extensions") || groups.iter().any(|g| g == "*") {
            continue;
        }
        let resources: Vec<String> = items(rule, "/resources")
            .filter_map(Value::as_str)
            .map(String::from)
            .collect();
        for (home, kinds) in HOMES {
            let granted = resources
                .iter()
                .any(|r| r == "*" || kinds.contains(&r.split('/').next().unwrap_or("")));
            if granted && !groups.iter().any(|g| g == home) {
                if let Some(list) = rule.get_mut("apiGroups").and_then(Value::as_array_mut) {
                    list.push(json!(home));
                }
                gained.insert(*home);
            }
        }
    }
    if !gained.is_empty() {
        w.changed(65);
        let list: Vec<&str> = gained.into_iter().collect();
        w.find(
            "API-01",
            Severity::Info,
            65,
            format!(
                "grants by the group extensions, which green does not serve: the rule gains {}, where the same objects are",
                list.join(", ")
            ),
            "Review the difference in the plan.",
        );
    }
    let rules = w.object.get_mut("rules").and_then(Value::as_array_mut);
    let Some(rules) = rules else { return };
    let before = rules.len();
    let only_policies = |r: &Value| {
        items(r, "/resources").next().is_some()
            && items(r, "/resources").all(|x| x == "podsecuritypolicies")
    };
    // A role that grants nothing else is left out as a whole (identity.rs).
    if rules.iter().all(only_policies) {
        return;
    }
    rules.retain(|r| !only_policies(r));
    if rules.len() < before {
        w.changed(53);
    }
}
