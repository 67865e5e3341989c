//! What tests of checks start from: a small migration, written out, and words to ask the plan with.

use crate::plan::model::{Plan, Severity};
use crate::plan::plan;
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use crate::world::cloud::{CloudIdentity, EksCluster, Inventory, Role, Subnet};
use serde_json::{Value, json};

/// A migration to 1.36.
pub fn spec() -> Spec {
    spec_with(json!({}))
}

/// The same with other top-level parts.
pub fn spec_with(parts: Value) -> Spec {
    let mut all = json!({
        "apiVersion": "crossfade.dev/v1alpha1", "kind": "Migration", "name": "demo",
        "blue": {"cluster": "shop.test"},
        "green": {"name": "shop-green", "version": "1.36", "serviceCidr": "10.96.0.0/16"},
        "aws": {"account": "000000000000", "region": "eu-west-1"}
    });
    for (k, v) in parts.as_object().into_iter().flatten() {
        all[k] = v.clone();
    }
    serde_json::from_value(all).expect("a valid spec")
}

/// Blue with these objects, kops 1.21 and two zones.
pub fn snapshot(objects: Vec<Value>) -> Snapshot {
    let mut s = Snapshot::default();
    s.kops.cluster = Some(kops(json!({})));
    s.kops.instance_groups = vec![
        json!({"kind": "InstanceGroup", "metadata": {"name": "nodes"}, "spec": {"role": "Node", "machineType": "m5.large", "minSize": 2, "maxSize": 4}}),
    ];
    s.taken = Some("2026-11-30".into());
    s.blue.objects = objects;
    s
}

/// The kops cluster with other parts of its spec.
pub fn kops(parts: Value) -> Value {
    let mut all = json!({"kind": "Cluster", "metadata": {"name": "shop.test"}, "spec": {"kubernetesVersion": "1.21.14", "networkCIDR": "172.20.0.0/16",
        "subnets": [{"name": "a", "zone": "eu-west-1a", "type": "Private", "cidr": "172.20.32.0/24"}, {"name": "b", "zone": "eu-west-1b", "type": "Private", "cidr": "172.20.33.0/24"}]}});
    for (k, v) in parts.as_object().into_iter().flatten() {
        all["spec"][k] = v.clone();
    }
    all
}

/// The account with blue's two subnets.
pub fn inventory() -> Inventory {
    let subnet = |id: &str, zone: &str, cidr: &str| Subnet {
        id: id.into(),
        vpc: "vpc-1".into(),
        zone: zone.into(),
        cidr: cidr.into(),
        free_ips: 4000,
        tags: Default::default(),
    };
    Inventory {
        identity: CloudIdentity {
            account: "000000000000".into(),
            region: "eu-west-1".into(),
            arn: "arn:aws:iam::000000000000:user/reader".into(),
        },
        subnets: vec![
            subnet("subnet-a", "eu-west-1a", "172.20.32.0/24"),
            subnet("subnet-b", "eu-west-1b", "172.20.33.0/24"),
        ],
        ..Inventory::default()
    }
}

/// An EKS cluster of the account. Read from JSON, as a snapshot is: fields that may be absent are.
pub fn eks(name: &str, tags: &[(&str, &str)]) -> EksCluster {
    let tags: std::collections::BTreeMap<_, _> = tags.iter().copied().collect();
    serde_json::from_value(json!({"name": name, "version": "1.36", "nodeGroups": [], "addons": [], "accessEntries": [], "tags": tags}))
        .expect("a cluster")
}

/// An IAM role of the account.
pub fn role(name: &str) -> Role {
    serde_json::from_value(
        json!({"name": name, "arn": format!("arn:aws:iam::000000000000:role/{name}"), "trust": {},
        "managedPolicies": [], "inlinePolicies": {}, "tags": {}}),
    )
    .expect("a role")
}

/// A workload in namespace `n` with one container, other parts of its spec and of its pod spec.
pub fn workload(kind: &str, name: &str, spec: Value, pod: Value) -> Value {
    let mut all = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "n"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [
                {"name": "main", "image": "registry.shop.test/app:1.0", "readinessProbe": {"httpGet": {"path": "/", "port": 80}}}]}}}});
    for (k, v) in spec.as_object().into_iter().flatten() {
        all["spec"][k] = v.clone();
    }
    for (k, v) in pod.as_object().into_iter().flatten() {
        all["spec"]["template"]["spec"][k] = v.clone();
    }
    all
}

/// A Deployment whose one container has this image.
pub fn runs(name: &str, image: &str) -> Value {
    workload(
        "Deployment",
        name,
        json!({}),
        json!({"containers": [{"name": "main", "image": image, "readinessProbe": {"exec": {"command": ["true"]}}}]}),
    )
}

/// What a plan says under an id, as `severity object: message`.
pub fn said(p: &Plan, id: &str) -> Vec<String> {
    p.findings
        .iter()
        .filter(|f| f.id == id)
        .map(|f| format!("{:?} {}: {}", f.severity, f.object, f.message))
        .collect()
}

/// Asserts that the plan has a finding of this id and severity with this object whose message holds a part.
#[track_caller]
pub fn fires(
    spec: &Spec,
    s: &Snapshot,
    id: &str,
    severity: Severity,
    object: &str,
    part: &str,
) -> Plan {
    let p = plan(spec, s);
    let hit = p.findings.iter().any(|f| {
        f.id == id && f.severity == severity && f.object == object && f.message.contains(part)
    });
    assert!(
        hit,
        "{id} {severity:?} {object} `{part}`: {:#?}",
        said(&p, id)
    );
    p
}

/// Asserts that the plan says nothing under this id.
#[track_caller]
pub fn quiet(spec: &Spec, s: &Snapshot, id: &str) {
    let said = said(&plan(spec, s), id);
    assert!(said.is_empty(), "{id}: {said:#?}");
}
