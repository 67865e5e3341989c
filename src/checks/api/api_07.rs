//! API-07: definitions that need something before their objects. What a definition itself says is told by the rewrite (src/rewrite/convert); here green's is asked.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) const CHECK: Check = Check {
    id: "API-07",
    severity: Severity::Blocker,
    question: "Is a custom resource definition not structural, converted by a webhook, or without a version that green stores?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Install its operator on green first, or convert offline.",
    source: "checks.md API-07",
    run,
};

/// replay.md 61: a definition that leaves out a version in which green keeps objects would make them unreadable.
fn run(i: &Input, r: &mut Report) {
    let Some(green) = &i.snapshot.green else {
        return;
    };
    for o in i.moving(&["CustomResourceDefinition"]) {
        let (Some(ours), Some(theirs)) = (
            o.on_green(),
            green.find("CustomResourceDefinition", None, &o.id.name),
        ) else {
            continue;
        };
        let names = |v: &Value, p: &str| -> Vec<String> {
            v.pointer(p)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|x| x.as_str().or_else(|| x["name"].as_str()))
                .map(String::from)
                .collect()
        };
        let offered: BTreeSet<String> = names(ours, "/spec/versions").into_iter().collect();
        let missing: Vec<String> = names(theirs, "/status/storedVersions")
            .into_iter()
            .filter(|v| !offered.contains(v))
            .collect();
        if !missing.is_empty() {
            r.blocker(
                &o.name,
                format!(
                    "green keeps objects of it in {}, which blue's definition does not have",
                    missing.join(", ")
                ),
                "Keep green's definition: list blue's under workloads.skip.",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::*;
    use crate::plan::model::Severity::Blocker;
    use crate::snapshot::model::Cluster;
    use serde_json::json;

    #[test]
    fn rule_61_a_version_that_green_stores_is_never_taken_out_of_a_definition() {
        let crd = |versions: &[&str], stored: &[&str]| {
            let versions: Vec<_> = versions
                .iter()
                .map(|v| json!({"name": v, "served": true, "storage": true}))
                .collect();
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.shop.test"},
                "spec": {"group": "shop.test", "names": {"kind": "Widget"}, "versions": versions}, "status": {"storedVersions": stored}})
        };
        let mut s = snapshot(vec![crd(&["v1"], &["v1"])]);
        let green = |o| {
            Some(Cluster {
                objects: vec![o],
                ..Cluster::default()
            })
        };
        s.green = green(crd(&["v1", "v2"], &["v1", "v2"]));
        fires(
            &spec(),
            &s,
            "API-07",
            Blocker,
            "customresourcedefinition/widgets.shop.test",
            "in v2",
        );
        s.green = green(crd(&["v1", "v2"], &["v1"]));
        quiet(&spec(), &s, "API-07");
    }
}
