//! CAP-10.

use crate::checks::{Answered, Check, Input, Need, Report};
use crate::plan::model::Severity;
use serde_json::Value;

pub(super) const CHECK: Check = Check {
    id: "CAP-10",
    severity: Severity::Warning,
    question: "Is green's cluster DNS large enough for this many nodes and pods?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Give the coredns add-on replicas or autoScaling in its configuration before unpark, and a node-local cache where blue has one.",
    source: "checks.md CAP-10",
    run,
};

/// Replicas that EKS's add-on starts with.
const ADDON: u64 = 2;
/// One replica for so many nodes or cores: the rule of kops's own CoreDNS autoscaler.
const NODES_EACH: u64 = 16;
const CORES_EACH: u64 = 256;

fn run(i: &Input, r: &mut Report) {
    let nodes: u64 = i.load.groups.iter().map(|g| u64::from(g.desired)).sum();
    let cores: u64 = i
        .load
        .groups
        .iter()
        .map(|g| g.cpu.div_ceil(1000).saturating_mul(g.desired.into()))
        .sum();
    let by_rule = nodes.div_ceil(NODES_EACH).max(cores.div_ceil(CORES_EACH));
    let blue = ["coredns", "kube-dns"]
        .iter()
        .filter_map(|n| i.snapshot.blue.find("Deployment", Some("kube-system"), n))
        .filter_map(|d| d.pointer("/spec/replicas").and_then(Value::as_u64))
        .max()
        .unwrap_or(0);
    let cache = i.snapshot.blue.of_kind("DaemonSet").any(|d| {
        d.pointer("/metadata/name")
            .and_then(Value::as_str)
            .is_some_and(|n| n.starts_with("node-local-dns") || n == "nodelocaldns")
    }) || i.snapshot.kops.cluster.as_ref().is_some_and(|c| {
        c.pointer("/spec/kubeDNS/nodeLocalDNS/enabled") == Some(&Value::Bool(true))
    });
    let want = by_rule.max(blue);
    let mut words = vec![];
    if want > ADDON {
        words.push(if blue >= by_rule {
            format!("blue runs {blue} replicas, EKS's coredns add-on starts with {ADDON}")
        } else {
            format!("{nodes} nodes of {cores} cores want {by_rule} replicas, EKS's coredns add-on starts with {ADDON}")
        });
    }
    if cache {
        words.push(
            "blue's nodes have a local DNS cache, green's have none: every lookup goes to coredns"
                .into(),
        );
    }
    if !words.is_empty() {
        r.found("addon/coredns", words.join("; "));
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{deployment, of, says, snapshot, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::json;

    #[test]
    fn cap_10_a_dns_that_blue_had_to_enlarge_starts_small_on_green() {
        let mut s = snapshot();
        let mut dns = deployment("coredns", 5, json!({}));
        dns["metadata"]["namespace"] = json!("kube-system");
        s.blue.objects = vec![dns];
        says(
            &plan(&spec(), &s),
            "CAP-10",
            Severity::Warning,
            "blue runs 5 replicas",
        );
        s.blue.objects[0]["spec"]["replicas"] = json!(2);
        assert!(of(&plan(&spec(), &s), "CAP-10").is_empty());
    }

    #[test]
    fn cap_10_many_nodes_and_a_lost_local_cache_are_named() {
        let mut s = snapshot();
        s.blue.objects = vec![deployment("web", 1, json!({}))];
        s.kops.instance_groups[0]["spec"]["minSize"] = json!(60);
        s.kops.instance_groups[0]["spec"]["maxSize"] = json!(60);
        says(
            &plan(&spec(), &s),
            "CAP-10",
            Severity::Warning,
            "60 nodes of 120 cores want 4 replicas",
        );
        let mut s = snapshot();
        s.blue.objects = vec![deployment("web", 1, json!({}))];
        if let Some(c) = &mut s.kops.cluster {
            c["spec"]["kubeDNS"] = json!({"nodeLocalDNS": {"enabled": true}});
        }
        says(
            &plan(&spec(), &s),
            "CAP-10",
            Severity::Warning,
            "local DNS cache",
        );
    }
}
