//! NET-07. What each policy says is read by the rewrite; this asks whether anybody enforces them.

use crate::checks::words::some;
use crate::checks::{Answered, Check, Input, Need, Report};
use crate::object::ObjectId;
use crate::plan::fit::cni;
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "NET-07",
    severity: Severity::Warning,
    question: "Are NetworkPolicies enforced on green as they were on blue?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Switch the policy agent of the vpc-cni add-on on (configuration enableNetworkPolicy: \"true\"), and test with a connection that must fail.",
    source: "checks.md NET-07, kops.md 2",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let policies: Vec<String> = i
        .snapshot
        .blue
        .of_kind("NetworkPolicy")
        .filter_map(ObjectId::of)
        .filter(|id| matches!(id.group(), "networking.k8s.io" | "extensions"))
        .map(|id| id.to_string())
        .collect();
    if policies.is_empty() {
        return;
    }
    let n = match policies.len() {
        1 => "1 NetworkPolicy".to_string(),
        n => format!("{n} NetworkPolicies"),
    };
    let engine = engine(i);
    // The planner may have switched the add-on's policy agent on.
    let agent = i
        .target
        .addons
        .iter()
        .find(|a| a.name == "vpc-cni")
        .and_then(|a| serde_json::to_value(a).ok())
        .is_some_and(|a| a["configuration"]["enableNetworkPolicy"] == "true");
    match (cni::network(i.snapshot).map(|(n, _)| n), engine) {
        (Some(network), false) => r.warning(
            "networkpolicies",
            format!("{n} ({}) were enforced by nobody on blue ({network} ignores them): with an engine on green they start to cut connections", some(&policies)),
            "Leave the policy agent of the vpc-cni add-on off, or test every policy before the cutover.",
        ),
        (network, true) if agent => r.info(
            "networkpolicies",
            format!("{n} ({}) are enforced on green by the policy agent of the vpc-cni add-on{}", some(&policies), network.map_or(String::new(), |n| format!(", as by {n} on blue"))),
            "Test with a connection that must fail: a pod's first packets may pass before its rules are there.",
        ),
        (network, _) => r.found(
            "networkpolicies",
            format!("{n} ({}) need an engine on green{}: the vpc-cni add-on enforces none by default", some(&policies), network.map_or(String::new(), |n| format!(", as by {n} on blue"))),
        ),
    }
}

/// Whether blue's network, or an agent in the cluster, enforces policies.
fn engine(i: &Input) -> bool {
    let by_kops = match cni::network(i.snapshot) {
        Some((n, settings)) => match n {
            "calico" | "canal" | "cilium" | "weave" | "kuberouter" | "kubeRouter" | "romana"
            | "kindnet" => true,
            "amazonvpc" | "amazonVPC" => settings["networkPolicy"] == "Enabled",
            // Somebody's own: not known to kops.
            "cni" | "external" => true,
            _ => false,
        },
        None => true,
    };
    by_kops
        || i.snapshot.blue.of_kind("DaemonSet").any(|d| {
            let name = d
                .pointer("/metadata/name")
                .and_then(|v| v.as_str())
                .unwrap_or("");
            [
                "calico-node",
                "canal",
                "cilium",
                "weave-net",
                "kube-router",
                "antrea-agent",
            ]
            .contains(&name)
        })
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{of, says, snapshot, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::{Value, json};

    fn company(networking: Value, kind: &str) -> crate::snapshot::model::Snapshot {
        let mut s = snapshot();
        if let Some(c) = &mut s.kops.cluster {
            c["spec"]["networking"] = networking;
        }
        s.blue.objects = vec![
            json!({"apiVersion": "networking.k8s.io/v1", "kind": kind, "metadata": {"name": "deny", "namespace": "n"}, "spec": {"podSelector": {}}}),
        ];
        s
    }

    #[test]
    fn net_07_policies_that_calico_enforced_are_told_of_whether_the_agent_is_on_or_not() {
        let p = plan(&spec(), &company(json!({"calico": {}}), "NetworkPolicy"));
        let all = of(&p, "NET-07");
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].message.contains("as by calico on blue"), "{all:?}");
        let agent = p
            .target
            .addons
            .iter()
            .any(|a| serde_json::to_string(a).is_ok_and(|a| a.contains("enableNetworkPolicy")));
        assert_eq!(
            all[0].severity,
            if agent {
                Severity::Info
            } else {
                Severity::Warning
            }
        );
    }

    #[test]
    fn net_07_policies_that_nobody_enforced_would_start_to_cut() {
        says(
            &plan(&spec(), &company(json!({"kubenet": {}}), "NetworkPolicy")),
            "NET-07",
            Severity::Warning,
            "enforced by nobody on blue",
        );
    }

    #[test]
    fn net_07_without_policies_there_is_nothing_to_enforce() {
        assert!(
            of(
                &plan(&spec(), &company(json!({"calico": {}}), "ConfigMap")),
                "NET-07"
            )
            .is_empty()
        );
    }
}
