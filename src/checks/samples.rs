//! A small company for the tests of checks: one cluster, one zone, one ExternalDNS. Each test adds what it is about.

use crate::plan::model::{Finding, Plan, Severity};
use crate::plan::plan;
use crate::snapshot::model::{Snapshot, ZoneRecords};
use crate::spec::model::Spec;
use crate::world::cloud::{CloudIdentity, Inventory, Subnet, Vpc};
use crate::world::dns::{Alias, RecordSet, Zone};
use serde_json::{Value, json};

/// Address of blue's load balancer.
pub(super) const BLUE: &str = "203.0.113.10";

/// The spec of a migration to 1.36.
pub(super) fn spec() -> Spec {
    serde_json::from_value(json!({
        "apiVersion": "crossfade.dev/v1alpha1", "kind": "Migration", "name": "demo",
        "blue": {"cluster": "shop.test"},
        "green": {"name": "shop-green", "version": "1.36", "serviceCidr": "10.96.0.0/16"},
        "aws": {"account": "000000000000", "region": "eu-west-1"}
    }))
    .expect("a valid spec")
}

/// A spec with a PostgreSQL data set.
pub(super) fn with_postgres(probe: bool) -> Spec {
    let mut s = spec();
    let side = |host: &str| json!({"host": host, "database": "orders", "admin": "postgres", "role": "orders"});
    let mut set = json!({"name": "orders", "mode": "postgres", "blue": side("10.20.0.5"), "green": side("10.20.0.6")});
    if probe {
        set["writeProbe"] = json!({"host": "www.shop.test", "path": "/orders"});
    }
    s.data = vec![serde_json::from_value(set).expect("a valid data set")];
    s
}

/// Two zones with a node group each, an account that was read, no objects.
pub(super) fn empty() -> Snapshot {
    let mut s = Snapshot::default();
    s.kops.cluster = Some(
        json!({"kind": "Cluster", "metadata": {"name": "shop.test"}, "spec": {"kubernetesVersion": "1.21.14", "networkCIDR": "172.20.0.0/16",
        "subnets": [{"name": "a", "zone": "eu-west-1a", "type": "Private", "cidr": "172.20.32.0/24"}, {"name": "b", "zone": "eu-west-1b", "type": "Private", "cidr": "172.20.33.0/24"}]}}),
    );
    s.kops.instance_groups = vec![
        json!({"kind": "InstanceGroup", "metadata": {"name": "nodes"}, "spec": {"role": "Node", "machineType": "m5.large", "minSize": 4, "maxSize": 4}}),
    ];
    let subnet = |id: &str, zone: &str, cidr: &str| Subnet {
        id: id.into(),
        vpc: "vpc-1".into(),
        zone: zone.into(),
        cidr: cidr.into(),
        free_ips: 4000,
        tags: Default::default(),
    };
    s.aws = Some(Inventory {
        identity: CloudIdentity {
            account: "000000000000".into(),
            region: "eu-west-1".into(),
            arn: "arn:aws:iam::000000000000:user/x".into(),
        },
        vpc: Some(Vpc {
            id: "vpc-1".into(),
            cidrs: vec!["172.20.0.0/16".into()],
            tags: Default::default(),
        }),
        subnets: vec![
            subnet("subnet-a", "eu-west-1a", "172.20.32.0/24"),
            subnet("subnet-b", "eu-west-1b", "172.20.33.0/24"),
        ],
        ..Inventory::default()
    });
    s.taken = Some("2026-11-30".into());
    s
}

/// The empty company with these objects.
pub(super) fn with(objects: Vec<Value>) -> Snapshot {
    let mut s = empty();
    s.blue.objects = objects;
    s
}

/// An ExternalDNS 0.10.2 of owner `shop-blue` with these arguments on top.
pub(super) fn external_dns(more: &[&str]) -> Value {
    let mut args = vec![
        "--provider=aws",
        "--source=ingress",
        "--source=service",
        "--txt-owner-id=shop-blue",
        "--domain-filter=shop.test",
    ];
    args.extend(more);
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "external-dns", "namespace": "platform"},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"image": "registry.k8s.io/external-dns/external-dns:v0.10.2", "args": args}]}}}})
}

/// An Ingress `ingress/web/NAME` for these hosts behind blue's load balancer.
pub(super) fn ingress(name: &str, hosts: &[&str]) -> Value {
    let rules: Vec<Value> = hosts
        .iter()
        .map(|h| {
            json!({"host": h, "http": {"paths": [{"path": "/", "pathType": "Prefix",
                "backend": {"service": {"name": name, "port": {"number": 80}}}}]}})
        })
        .collect();
    json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": name, "namespace": "web", "annotations": {"kubernetes.io/ingress.class": "nginx"}},
        "spec": {"rules": rules}, "status": super::look::status(BLUE)})
}

/// A workload of the namespace `web` with one container; `more` goes into the pod's spec.
pub(super) fn workload(kind: &str, name: &str, image: &str, more: Value) -> Value {
    let mut pod = json!({"containers": [{"name": name, "image": image}]});
    for (k, v) in more.as_object().into_iter().flatten() {
        pod[k] = v.clone();
    }
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod}}})
}

/// Any object, of namespace `web` unless cluster-scoped.
pub(super) fn object(api: &str, kind: &str, name: &str, body: Value) -> Value {
    let mut o =
        json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "web"}});
    if matches!(
        kind,
        "PersistentVolume" | "StorageClass" | "ClusterIssuer" | "CSIDriver" | "Node"
    ) {
        o["metadata"] = json!({"name": name});
    }
    for (k, v) in body.as_object().into_iter().flatten() {
        if k == "metadata" {
            for (k, v) in v.as_object().into_iter().flatten() {
                o["metadata"][k] = v.clone();
            }
        } else {
            o[k] = v.clone();
        }
    }
    o
}

/// A plain record.
pub(super) fn record(name: &str, rtype: &str, ttl: u32, value: &str) -> RecordSet {
    RecordSet {
        name: format!("{name}."),
        rtype: rtype.into(),
        ttl: Some(ttl),
        values: vec![value.into()],
        alias: None,
        set_identifier: None,
        routing: Default::default(),
    }
}

/// An alias to a load balancer.
pub(super) fn alias(name: &str, target: &str) -> RecordSet {
    RecordSet {
        ttl: None,
        values: vec![],
        alias: Some(Alias {
            zone_id: "Z32O12XQLNTSW2".into(),
            name: format!("{target}."),
            evaluate_target_health: true,
        }),
        ..record(name, "A", 0, "")
    }
}

/// An ownership record.
pub(super) fn txt(name: &str, owner: &str, resource: &str) -> RecordSet {
    record(
        name,
        "TXT",
        300,
        &crate::edns::heritage_value(owner, resource),
    )
}

/// The zone shop.test.
pub(super) fn zone(records: Vec<RecordSet>) -> ZoneRecords {
    ZoneRecords {
        zone: Zone {
            id: "Z1".into(),
            name: "shop.test.".into(),
            private: false,
        },
        records,
    }
}

/// Record and ownership of each host that blue's ExternalDNS keeps for the Ingress `web`, TTL 300.
pub(super) fn kept(hosts: &[&str]) -> Vec<RecordSet> {
    hosts
        .iter()
        .flat_map(|h| {
            [
                record(h, "A", 300, BLUE),
                txt(h, "shop-blue", "ingress/web/web"),
            ]
        })
        .collect()
}

/// The company at work: ExternalDNS, an Ingress `web` with `www.shop.test`, the zone that goes with it.
pub(super) fn shop() -> Snapshot {
    let mut s = with(vec![external_dns(&[]), ingress("web", &["www.shop.test"])]);
    s.zones = vec![zone(kept(&["www.shop.test"]))];
    s
}

/// Findings of one check.
pub(super) fn of<'p>(p: &'p Plan, id: &str) -> Vec<&'p Finding> {
    p.findings.iter().filter(|f| f.id == id).collect()
}

/// The plan has a finding of this check and severity whose object or message holds `part`.
#[track_caller]
pub(super) fn fires(spec: &Spec, s: &Snapshot, id: &str, severity: Severity, part: &str) {
    let p = plan(spec, s);
    let all = of(&p, id);
    assert!(
        all.iter().any(
            |f| f.severity == severity && (f.message.contains(part) || f.object.contains(part))
        ),
        "{id} should say `{part}`: {all:#?}"
    );
}

/// The plan has no finding of this check.
#[track_caller]
pub(super) fn silent(spec: &Spec, s: &Snapshot, id: &str) {
    let p = plan(spec, s);
    assert!(of(&p, id).is_empty(), "{id}: {:#?}", of(&p, id));
}

/// No finding of this check holds `part`.
#[track_caller]
pub(super) fn never_says(spec: &Spec, s: &Snapshot, id: &str, part: &str) {
    let p = plan(spec, s);
    assert!(
        !of(&p, id)
            .iter()
            .any(|f| f.message.contains(part) || f.object.contains(part)),
        "{id} should not say `{part}`: {:#?}",
        of(&p, id)
    );
}
