//! What blue's network does and the VPC CNI does not: encryption, meshes, BGP, egress gateways, host ports.

use crate::checks::words::{containers, count, some, templates};
use crate::checks::{Answered, Check, Input, Report};
use crate::object::ObjectId;
use crate::plan::fit::cni;
use crate::plan::model::Severity;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) const CHECK: Check = Check {
    id: "NET-CNI",
    severity: Severity::Blocker,
    question: "Does blue's network do something that the VPC CNI does not?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Decide: run that network on green by hand, do it elsewhere (TLS between services, a NAT gateway), or waive it with the reason.",
    source: "kops.md 2",
    run,
};

/// Custom kinds by which a network is told more than policies: kind, severity, what it does.
const KINDS: &[(&str, Severity, &str)] = &[
    ("BGPPeer", Severity::Blocker, "pods are announced by BGP"),
    (
        "CiliumBGPPeeringPolicy",
        Severity::Blocker,
        "pods are announced by BGP",
    ),
    (
        "CiliumBGPClusterConfig",
        Severity::Blocker,
        "pods are announced by BGP",
    ),
    (
        "CiliumEgressGatewayPolicy",
        Severity::Blocker,
        "traffic leaves by an egress gateway with an address of its own",
    ),
    (
        "CiliumEgressNATPolicy",
        Severity::Blocker,
        "traffic leaves by an egress gateway with an address of its own",
    ),
    (
        "EgressGatewayPolicy",
        Severity::Blocker,
        "traffic leaves by an egress gateway with an address of its own",
    ),
    (
        "CiliumLocalRedirectPolicy",
        Severity::Warning,
        "traffic is redirected on its node",
    ),
    (
        "CiliumEnvoyConfig",
        Severity::Warning,
        "traffic is handled by the network's own proxy",
    ),
    (
        "CiliumClusterwideEnvoyConfig",
        Severity::Warning,
        "traffic is handled by the network's own proxy",
    ),
    (
        "CiliumLoadBalancerIPPool",
        Severity::Warning,
        "the network gives Services addresses",
    ),
    (
        "HostEndpoint",
        Severity::Warning,
        "nodes themselves are guarded by policies",
    ),
    (
        "RemoteClusterConfiguration",
        Severity::Blocker,
        "clusters share their policies",
    ),
];

fn run(i: &Input, r: &mut Report) {
    if let Some((name, settings)) = cni::network(i.snapshot) {
        let on = |k: &str| settings[k] == Value::Bool(true) || settings[k] == "true";
        let at = format!("kops/spec.networking.{name}");
        match name {
            "cilium" => {
                if on("enableEncryption") || on("encryptionEnabled") {
                    let how = settings["encryptionType"].as_str().unwrap_or("ipsec");
                    r.found(at.as_str(), format!("traffic between nodes is encrypted ({how}); with the VPC CNI it is not, unless both ends are Nitro types that encrypt by themselves"));
                }
                let mesh = settings["clusterID"].as_u64().is_some_and(|n| n > 0) || settings["clusterId"].as_u64().is_some_and(|n| n > 0);
                if mesh {
                    r.found(at.as_str(), "the cluster is part of a mesh of clusters: global services end with blue");
                }
            }
            "calico" if on("wireguardEnabled") => r.found(at.as_str(), "traffic between nodes is encrypted (wireguard); with the VPC CNI it is not, unless both ends are Nitro types that encrypt by themselves"),
            "weave" => r.not_checked(
                at.as_str(),
                "whether weave encrypts (secret weavepassword) and whether pods use multicast, which no other network carries, cannot be read",
                "Look for the secret in the state store and for multicast in the applications (239.0.0.0/8, JGroups, Hazelcast); then waive this.",
            ),
            _ => {}
        }
    }
    let mut by_kind: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (kind, ..) in KINDS {
        for id in i.snapshot.blue.of_kind(kind).filter_map(ObjectId::of) {
            if id.group().contains("cilium.io") || id.group().contains("projectcalico.org") {
                by_kind.entry(kind).or_default().push(id.to_string());
            }
        }
    }
    for (kind, severity, does) in KINDS {
        if let Some(objects) = by_kind.get(kind) {
            r.say(
                *severity,
                objects[0].as_str(),
                format!(
                    "{does}: {} that no network of green reads ({})",
                    count(objects.len(), "object"),
                    some(objects)
                ),
                CHECK.remedy,
            );
        }
    }
    let ports: Vec<String> = templates(i)
        .filter(|(_, t)| t.pointer("/spec/hostNetwork") != Some(&Value::Bool(true)))
        .filter_map(|(object, t)| {
            let mut ports: Vec<u64> = containers(t)
                .filter_map(|c| c["ports"].as_array())
                .flatten()
                .filter_map(|p| p["hostPort"].as_u64())
                .filter(|p| *p > 0)
                .collect();
            ports.sort();
            ports.dedup();
            let words: Vec<String> = ports.iter().map(u64::to_string).collect();
            (!ports.is_empty()).then(|| format!("{object} {}", words.join("+")))
        })
        .collect();
    if !ports.is_empty() {
        r.info(
            "host ports",
            format!("{} by ports of nodes ({}): the VPC CNI maps them too, on nodes with other addresses and security groups", count(ports.len(), "workload"), some(&ports)),
            "Open the ports in green's cluster security group for clients from outside of it.",
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{deployment, of, says, snapshot, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::{Value, json};

    fn company(networking: Value, objects: Vec<Value>) -> crate::snapshot::model::Snapshot {
        let mut s = snapshot();
        if let Some(c) = &mut s.kops.cluster {
            c["spec"]["networking"] = networking;
        }
        s.blue.objects = objects;
        s
    }

    #[test]
    fn encryption_between_nodes_and_a_mesh_are_decisions() {
        for (networking, part) in [
            (
                json!({"cilium": {"enableEncryption": true, "encryptionType": "wireguard"}}),
                "encrypted (wireguard)",
            ),
            (json!({"cilium": {"clusterID": 3}}), "mesh of clusters"),
            (
                json!({"calico": {"wireguardEnabled": true}}),
                "encrypted (wireguard)",
            ),
        ] {
            says(
                &plan(&spec(), &company(networking, vec![])),
                "NET-CNI",
                Severity::Blocker,
                part,
            );
        }
        says(
            &plan(&spec(), &company(json!({"weave": {}}), vec![])),
            "NET-CNI",
            Severity::NotChecked,
            "weavepassword",
        );
        for plain in [
            json!({"cilium": {}}),
            json!({"calico": {"mtu": 8981}}),
            json!({"kubenet": {}}),
        ] {
            assert!(
                of(&plan(&spec(), &company(plain.clone(), vec![])), "NET-CNI").is_empty(),
                "{plain}"
            );
        }
    }

    #[test]
    fn objects_that_only_blues_network_reads_are_listed_by_what_they_do() {
        let of_kind = |kind: &str, name: &str| json!({"apiVersion": "crd.projectcalico.org/v1", "kind": kind, "metadata": {"name": name}, "spec": {}});
        let p = plan(
            &spec(),
            &company(
                json!({"calico": {}}),
                vec![of_kind("BGPPeer", "rack1"), of_kind("BGPPeer", "rack2")],
            ),
        );
        says(
            &p,
            "NET-CNI",
            Severity::Blocker,
            "announced by BGP: 2 objects",
        );
        // The same word in another group is another thing.
        let other = json!({"apiVersion": "metallb.io/v1beta1", "kind": "BGPPeer", "metadata": {"name": "x"}, "spec": {}});
        assert!(
            of(
                &plan(&spec(), &company(json!({"calico": {}}), vec![other])),
                "NET-CNI"
            )
            .is_empty()
        );
    }

    #[test]
    fn host_ports_work_on_green_and_are_named_for_their_clients() {
        let mut d = deployment("edge", 1, json!({}));
        d["spec"]["template"]["spec"]["containers"] = json!([{"name": "c", "image": "x", "ports": [{"containerPort": 80, "hostPort": 8080}]}]);
        says(
            &plan(&spec(), &company(json!({"calico": {}}), vec![d])),
            "NET-CNI",
            Severity::Info,
            "deployment/n/edge 8080",
        );
    }
}
