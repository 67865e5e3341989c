//! CAP-05.

use crate::checks::{Answered, Check, Input, Need, Report};
use crate::object::label;
use crate::plan::model::Severity;
use std::collections::BTreeMap;

pub(super) const CHECK: Check = Check {
    id: "CAP-05",
    severity: Severity::Warning,
    question: "Do green's nodes run as many pods as blue's do?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Set green.network.prefixDelegation, or take larger or more nodes.",
    source: "checks.md CAP-05, eks.md 2.1",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let busiest = busiest(i);
    for g in &i.network.groups {
        let from = i
            .target
            .node_groups
            .iter()
            .find(|t| t.name == g.node_group)
            .map_or("", |t| t.instance_group.as_str());
        let live = busiest.get(from).copied().unwrap_or(0);
        let prefixes = i
            .network
            .offers
            .iter()
            .find(|o| o.contains("prefixDelegation") && o.contains(&g.node_group))
            .map_or(CHECK.remedy.to_string(), |o| format!("{o}."));
        if g.pods > g.max_pods {
            r.warning(
                format!("node-group/{}", g.node_group),
                format!(
                    "{} pods per node only ({} by {}): blue's pods are {} a node",
                    g.max_pods, g.instance_type, g.bound, g.pods
                ),
                prefixes,
            );
        } else if live > g.max_pods {
            r.warning(
                format!("node-group/{}", g.node_group),
                format!(
                    "{} pods per node only ({} by {}): a node of blue's {from} runs {live} now",
                    g.max_pods, g.instance_type, g.bound
                ),
                prefixes,
            );
        }
    }
}

/// Pods on the fullest node of each instance group, finished ones left out.
fn busiest(i: &Input) -> BTreeMap<String, u32> {
    let mut on: BTreeMap<&str, u32> = BTreeMap::new();
    for p in i.snapshot.blue.of_kind("Pod") {
        let phase = p.pointer("/status/phase").and_then(|v| v.as_str());
        if let Some(node) = p.pointer("/spec/nodeName").and_then(|v| v.as_str())
            && !matches!(phase, Some("Succeeded" | "Failed"))
        {
            *on.entry(node).or_default() += 1;
        }
    }
    let mut out = BTreeMap::new();
    for n in i.snapshot.blue.of_kind("Node") {
        let name = n.pointer("/metadata/name").and_then(|v| v.as_str());
        if let (Some(group), Some(name)) = (label(n, "kops.k8s.io/instancegroup"), name) {
            let most: &mut u32 = out.entry(group.to_string()).or_default();
            *most = (*most).max(on.get(name).copied().unwrap_or(0));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{deployment, of, says, snapshot, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::json;

    #[test]
    fn cap_05_an_overlay_that_ran_more_pods_than_interfaces_have_addresses_is_named() {
        // 120 pods on 4 nodes: 30, and add-ons: above the 29 of m5.large.
        let mut s = snapshot();
        s.blue.objects = vec![deployment("web", 120, json!({}))];
        let p = plan(&spec(), &s);
        says(&p, "CAP-05", Severity::Warning, "29 pods per node only");
        assert!(
            of(&p, "CAP-05")[0]
                .remedy
                .contains("110 pods instead of 29"),
            "{:?}",
            of(&p, "CAP-05")
        );
        let mut with = spec();
        with.green.network.prefix_delegation = Some(true);
        assert!(of(&plan(&with, &s), "CAP-05").is_empty());
        s.blue.objects = vec![deployment("web", 40, json!({}))];
        assert!(of(&plan(&spec(), &s), "CAP-05").is_empty());
    }

    #[test]
    fn cap_05_one_crowded_node_of_blue_is_enough() {
        let mut s = snapshot();
        s.blue.objects = vec![
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"kops.k8s.io/instancegroup": "nodes"}}}),
        ];
        s.blue.objects.extend((0..41).map(|n| {
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{n}"), "namespace": "n", "ownerReferences": [{"kind": "ReplicaSet", "name": "x"}]},
                "spec": {"nodeName": "n1", "containers": []}, "status": {"phase": if n == 40 { "Succeeded" } else { "Running" }}})
        }));
        says(
            &plan(&spec(), &s),
            "CAP-05",
            Severity::Warning,
            "a node of blue's nodes runs 40 now",
        );
    }
}
