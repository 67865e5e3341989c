//! NET-09.

use crate::checks::words::some;
use crate::checks::{Answered, Check, Input, Need, Report};
use crate::plan::fit::cni;
use crate::plan::model::Severity;
use crate::plan::{NodeTrust, trust_of_blue};
use std::collections::BTreeSet;

pub(super) const CHECK: Check = Check {
    id: "NET-09",
    severity: Severity::Warning,
    question: "Do grants by host and rules by address still match when peers see addresses of pods instead of nodes?",
    needs: &[Need::Kops],
    answered: Answered::Plan,
    remedy: "Widen grants by host (MySQL user@host, pg_hba, NFS exports, firewall lists) to green's subnets before unpark.",
    source: "checks.md NET-09, eks.md 2.3",
    run,
};

fn run(i: &Input, r: &mut Report) {
    // With an overlay a pod's traffic leaves with its node's address; with the VPC CNI with its own, inside of the VPC.
    if cni::pods_in_vpc(i.snapshot) != Some(false) {
        return;
    }
    // Who would notice: stores, and whoever lets blue's nodes in.
    let mut peers: BTreeSet<String> = i
        .spec
        .data
        .iter()
        .map(|d| format!("data/{}", d.name))
        .collect();
    for t in trust_of_blue(i.snapshot, i.spec, i.target) {
        match t {
            NodeTrust::Mirrored { group, .. } | NodeTrust::SingleAddress { group, .. } => {
                let name = i
                    .snapshot
                    .aws
                    .iter()
                    .flat_map(|a| &a.security_groups)
                    .find(|g| g.id == group)
                    .map_or(group.clone(), |g| g.name.clone());
                peers.insert(format!("security group {name}"));
            }
            NodeTrust::Masters { .. } => {}
        }
    }
    if peers.is_empty() {
        return;
    }
    let subnets: BTreeSet<&str> = i
        .target
        .node_groups
        .iter()
        .flat_map(|g| &g.subnets)
        .map(String::as_str)
        .collect();
    let network = cni::network(i.snapshot).map_or("overlay", |(n, _)| n);
    r.found(
        "pods",
        format!(
            "inside the VPC peers see blue's nodes ({network} hides pods behind them) and will see green's pods, with addresses of {}: {}",
            some(&subnets.into_iter().collect::<Vec<_>>()),
            some(&peers.into_iter().collect::<Vec<_>>())
        ),
    );
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{group, of, rule_from_group, says, snapshot, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::{Value, json};

    fn company(networking: Value, peer: bool) -> crate::snapshot::model::Snapshot {
        let mut s = snapshot();
        if let Some(c) = &mut s.kops.cluster {
            c["spec"]["networking"] = networking;
        }
        if let Some(a) = &mut s.aws {
            a.security_groups = vec![group("sg-nodes", "nodes.shop.test", vec![])];
            if peer {
                a.security_groups.push(group(
                    "sg-db",
                    "database",
                    vec![rule_from_group(3306, "sg-nodes")],
                ));
            }
        }
        s
    }

    #[test]
    fn net_09_peers_of_an_overlay_will_see_pods_instead_of_nodes() {
        says(
            &plan(&spec(), &company(json!({"calico": {}}), true)),
            "NET-09",
            Severity::Warning,
            "security group database",
        );
        says(
            &plan(&spec(), &company(json!({"cilium": {}}), true)),
            "NET-09",
            Severity::Warning,
            "cilium hides pods",
        );
    }

    #[test]
    fn net_09_where_pods_had_addresses_of_the_vpc_or_nobody_looks_nothing_changes() {
        for (network, peer) in [
            (json!({"amazonvpc": {}}), true),
            (json!({"cilium": {"ipam": "eni"}}), true),
            (json!({"calico": {}}), false),
        ] {
            assert!(
                of(&plan(&spec(), &company(network.clone(), peer)), "NET-09").is_empty(),
                "{network}"
            );
        }
    }
}
