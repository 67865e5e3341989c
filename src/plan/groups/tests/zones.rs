//! Subnets, zones, and groups that are split because volumes never leave their zone (replay.md rule 59).

use super::{Company, finding, is, silent};
use crate::plan::model::Severity;
use serde_json::{Value, json};

/// A volume of `zone` that `data-NAME-0` is bound to.
fn volume(name: &str, zone: &str, claim: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, "labels": {"failure-domain.beta.kubernetes.io/zone": zone}},
        "spec": {"awsElasticBlockStore": {"volumeID": format!("aws://{zone}/vol-1")}, "claimRef": {"namespace": "db", "name": claim}}})
}

fn database(name: &str, pod: Value) -> Value {
    let mut spec = json!({"containers": [{"name": "db", "image": "postgres:12"}]});
    for (k, v) in pod.as_object().expect("a map") {
        spec[k] = v.clone();
    }
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name, "namespace": "db"},
        "spec": {"replicas": 1, "serviceName": name, "selector": {"matchLabels": {"a": name}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}],
            "template": {"metadata": {"labels": {"a": name}}, "spec": spec}}})
}

#[test]
fn private_subnets_first_then_public_and_utility_never() {
    let mut c = Company::new(json!({"machineType": "m5.large"}));
    assert_eq!(c.one().subnets, ["subnet-a", "subnet-b", "subnet-c"]);
    assert_eq!(c.one().zones, ["eu-west-1a", "eu-west-1b", "eu-west-1c"]);
    for s in c.cluster()["subnets"].as_array_mut().expect("subnets") {
        if s["type"] == "Private" {
            s["type"] = json!("Utility");
        }
    }
    assert_eq!(c.one().subnets, ["subnet-pa"]);
    let c = Company::new(
        json!({"machineType": "m5.large", "subnets": ["eu-west-1b", "utility-a", "gone"]}),
    );
    assert_eq!(c.one().subnets, ["subnet-b"], "those that the group names");
    let said: Vec<String> = c
        .plan()
        .findings
        .into_iter()
        .filter(|f| f.id == "KOPS-ig-subnet")
        .map(|f| f.message)
        .collect();
    assert_eq!(said.len(), 2, "{said:?}");
}

#[test]
fn declared_subnets_are_those_in_the_zones_of_the_group() {
    let mut c = Company::new(json!({"machineType": "m5.large", "subnets": ["eu-west-1b"]}));
    c.spec.green.subnets = vec!["subnet-b".into(), "subnet-c".into()];
    assert_eq!(c.one().subnets, ["subnet-b"]);
    c.spec.green.subnets = vec!["subnet-c".into(), "subnet-elsewhere".into()];
    assert_eq!(c.one().subnets, ["subnet-c", "subnet-elsewhere"]);
    assert_eq!(
        finding(&c.plan(), "KOPS-ig-subnet").severity,
        Severity::Info
    );
}

#[test]
fn a_group_that_holds_a_statefulsets_volume_is_split_by_zone_with_the_reason() {
    let mut c = Company::new(json!({"machineType": "m5.large", "minSize": 4, "maxSize": 10}));
    c.snapshot.blue.objects = vec![
        volume("pv-1", "eu-west-1b", "data-orders-0"),
        database("orders", json!({})),
    ];
    let p = c.plan();
    // The zone with the volume gets the odd ones: 4 = 2 + 1 + 1, 10 = 4 + 3 + 3.
    is(
        &p,
        &[
            ("nodes-eu-west-1a", "ON_DEMAND", 1, 3, 1),
            ("nodes-eu-west-1b", "ON_DEMAND", 2, 4, 2),
            ("nodes-eu-west-1c", "ON_DEMAND", 1, 3, 1),
        ],
    );
    assert_eq!(p.target.node_groups[1].subnets, ["subnet-b"]);
    assert_eq!(p.target.node_groups[1].zones, ["eu-west-1b"]);
    let notes = p.target.node_groups[1].notes.join("\n");
    assert!(
        notes.contains("never leaves its zone")
            && notes.contains("persistentvolume/pv-1 of statefulset/db/orders"),
        "{notes}"
    );
    finding(&p, "KOPS-ig-split");
}

#[test]
fn a_volume_whose_pods_are_pinned_elsewhere_splits_only_that_group() {
    let mut c = Company::new(json!({"machineType": "m5.large", "minSize": 3, "maxSize": 3}));
    c.add(
        "data",
        json!({"machineType": "m5.large", "minSize": 3, "maxSize": 3, "nodeLabels": {"tier": "data"}, "taints": ["tier=data:NoSchedule"]}),
    );
    let volumes = [volume("pv-1", "eu-west-1b", "data-orders-0")];
    let tolerates =
        json!([{"key": "tier", "operator": "Equal", "value": "data", "effect": "NoSchedule"}]);
    for pod in [
        json!({"nodeSelector": {"tier": "data"}, "tolerations": tolerates}),
        json!({"nodeSelector": {"kops.k8s.io/instancegroup": "data"}, "tolerations": tolerates}),
        json!({"tolerations": tolerates, "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms":
            [{"matchExpressions": [{"key": "tier", "operator": "In", "values": ["data"]}, {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["eu-west-1b"]}]}]}}}}),
    ] {
        c.snapshot.blue.objects = volumes.to_vec();
        c.snapshot.blue.objects.push(database("orders", pod));
        let names: Vec<String> = c
            .plan()
            .target
            .node_groups
            .into_iter()
            .map(|g| g.name)
            .collect();
        assert_eq!(
            names,
            [
                "data-eu-west-1a",
                "data-eu-west-1b",
                "data-eu-west-1c",
                "nodes"
            ]
        );
    }
    // Not pinned and without the toleration: only the open group can hold it.
    c.snapshot.blue.objects = volumes.into_iter().collect();
    c.snapshot.blue.objects.push(database("orders", json!({})));
    let names: Vec<String> = c
        .plan()
        .target
        .node_groups
        .into_iter()
        .map(|g| g.name)
        .collect();
    assert_eq!(
        names,
        [
            "data",
            "nodes-eu-west-1a",
            "nodes-eu-west-1b",
            "nodes-eu-west-1c"
        ]
    );
}

#[test]
fn a_volume_that_nobody_mounts_now_splits_the_open_groups() {
    let mut c = Company::new(json!({"machineType": "m5.large", "minSize": 3, "maxSize": 3}));
    c.snapshot.blue.objects = vec![
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "old"},
        "spec": {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-2"}, "claimRef": {"namespace": "db", "name": "old"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": ["eu-west-1c"]}]}]}}}}),
    ];
    assert_eq!(c.plan().target.node_groups.len(), 3);
    // EFS has no zone, and a volume of another zone asks nothing of this group.
    c.snapshot.blue.objects = vec![
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "files", "labels": {"topology.kubernetes.io/zone": "eu-west-1a"}},
            "spec": {"csi": {"driver": "efs.csi.aws.com", "volumeHandle": "fs-1"}}}),
        volume("far", "eu-west-1x", "far"),
    ];
    assert_eq!(c.plan().target.node_groups.len(), 1);
}

#[test]
fn migration_yaml_may_split_and_may_keep_together() {
    let mut c = Company::new(json!({"machineType": "m5.large", "minSize": 3, "maxSize": 3}));
    c.wish(json!({"splitByZone": true}));
    assert_eq!(c.plan().target.node_groups.len(), 3);
    c.wish(json!({"splitByZone": false}));
    c.snapshot.blue.objects = vec![
        volume("pv-1", "eu-west-1b", "data-orders-0"),
        database("orders", json!({})),
    ];
    let p = c.plan();
    assert_eq!(p.target.node_groups.len(), 1);
    assert_eq!(finding(&p, "KOPS-ig-split").severity, Severity::Warning);
}

#[test]
fn fewer_nodes_than_zones_leave_out_zones_without_volumes_first() {
    let mut c = Company::new(json!({"machineType": "m5.large", "minSize": 1, "maxSize": 1}));
    c.snapshot.blue.objects = vec![
        volume("pv-1", "eu-west-1c", "data-orders-0"),
        database("orders", json!({})),
    ];
    let p = c.plan();
    is(&p, &[("nodes-eu-west-1c", "ON_DEMAND", 1, 1, 1)]);
    silent(&p, "KOPS-ig-size");
    c.snapshot
        .blue
        .objects
        .push(volume("pv-2", "eu-west-1a", "data-orders-1"));
    let p = c.plan();
    // Two zones need a node each, and one node was all that blue had: told, not hidden.
    is(
        &p,
        &[
            ("nodes-eu-west-1a", "ON_DEMAND", 1, 1, 1),
            ("nodes-eu-west-1c", "ON_DEMAND", 0, 1, 0),
        ],
    );
    assert_eq!(finding(&p, "KOPS-ig-size").severity, Severity::Warning);
}

#[test]
fn a_mixed_group_with_volumes_is_split_both_ways_and_sums_hold() {
    let mut c = Company::new(json!({"minSize": 6, "maxSize": 12, "mixedInstancesPolicy":
        {"instances": ["m5.large"], "onDemandBase": 0, "onDemandAboveBase": 50}}));
    c.snapshot.blue.objects = vec![
        volume("pv-1", "eu-west-1b", "data-orders-0"),
        database("orders", json!({})),
    ];
    let p = c.plan();
    let g = &p.target.node_groups;
    assert_eq!(g.len(), 6);
    assert_eq!(g.iter().map(|g| g.max).sum::<u32>(), 12);
    assert_eq!(g.iter().map(|g| g.min).sum::<u32>(), 6);
    assert_eq!(
        g.iter().filter(|g| g.capacity_type == "SPOT").count(),
        3,
        "{g:?}"
    );
    assert!(g.iter().any(|g| g.name == "nodes-spot-eu-west-1b"));
}

#[test]
fn a_network_that_one_subnet_fills_needs_a_second_range_before_a_second_subnet() {
    let remedy = |cidr: &str| {
        let mut c = Company::new(json!({"machineType": "m5.large"}));
        c.cluster()["networkCIDR"] = json!("172.20.0.0/16");
        c.cluster()["subnets"] =
            json!([{"name": "a", "zone": "eu-west-1a", "type": "Private", "cidr": cidr}]);
        let f = c.plan().findings.into_iter().find(|f| f.id == "EKS-zones");
        f.expect("one zone only (eks.md 1.2)").remedy
    };
    assert!(remedy("172.20.0.0/16").contains("second range"));
    assert!(!remedy("172.20.32.0/19").contains("second range"));
}
