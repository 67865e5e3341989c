//! A small company for the twin's own tests: two sides, one zone, one database.

use crate::object::ObjectId;
use crate::snapshot::model::{Cluster, Snapshot, ZoneRecords};
use crate::spec::model::Spec;
use crate::world::cloud::{CloudIdentity, Inventory, Resource, Role, SecurityGroup, Subnet, Vpc};
use crate::world::dns::{Alias, RecordSet, Zone};
use crate::world::kube::{CreateOptions, KubeVersion};
use crate::world::twin::{Options, Twin};
use crate::world::{Class, World};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

pub const ZONE: &str = "Z1";
pub const CALLER: &str = "arn:aws:iam::000000000000:user/anna";

/// A record set with a TTL.
pub fn record(name: &str, rtype: &str, ttl: u32, values: &[&str]) -> RecordSet {
    RecordSet {
        name: name.into(),
        rtype: rtype.into(),
        ttl: Some(ttl),
        values: values.iter().map(|v| v.to_string()).collect(),
        alias: None,
        set_identifier: None,
        routing: BTreeMap::new(),
    }
}

pub fn alias(name: &str, target: &str) -> RecordSet {
    RecordSet {
        ttl: None,
        values: vec![],
        alias: Some(Alias {
            zone_id: "Z32O12XQLNTSW2".into(),
            name: format!("{target}."),
            evaluate_target_health: true,
        }),
        ..record(name, "A", 0, &[])
    }
}

pub fn heritage(owner: &str, resource: &str) -> String {
    format!("\"heritage=external-dns,external-dns/owner={owner},external-dns/resource={resource}\"")
}

pub fn deployment(ns: &str, name: &str, replicas: u32, image: &str, args: &[&str]) -> Value {
    json!({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":name,"namespace":ns},
        "spec":{"replicas":replicas,"selector":{"matchLabels":{"app":name}},
            "template":{"metadata":{"labels":{"app":name}},"spec":{"containers":[{"name":name,"image":image,"args":args}]}}}})
}

pub fn service(ns: &str, name: &str) -> Value {
    json!({"apiVersion":"v1","kind":"Service","metadata":{"name":name,"namespace":ns},
        "spec":{"selector":{"app":name},"ports":[{"port":80,"targetPort":8080}]}})
}

/// Args of an ExternalDNS.
pub fn edns_args(owner: &str, policy: &str) -> Vec<String> {
    [
        "--provider=aws",
        "--source=service",
        "--source=ingress",
        &format!("--policy={policy}"),
        "--registry=txt",
        &format!("--txt-owner-id={owner}"),
        "--domain-filter=shop.test",
        "--aws-zone-type=public",
        "--interval=3s",
        "--exclude-record-types=AAAA",
    ]
    .map(String::from)
    .to_vec()
}

pub fn external_dns(version: &str, owner: &str, policy: &str) -> Value {
    let args = edns_args(owner, policy);
    let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
    if version == "v0.10.2" {
        args.retain(|a| !a.contains("AAAA"));
    }
    let mut d = deployment(
        "platform",
        "external-dns",
        1,
        &format!("registry.k8s.io/external-dns/external-dns:{version}"),
        &args,
    );
    d["spec"]["strategy"] = json!({"type": "Recreate"});
    d
}

pub const BLUE_LB: &str = "a1111-1.eu-west-1.elb.amazonaws.com";

/// What blue is made of; `edns` is its ExternalDNS.
pub fn blue_objects(edns: Value) -> Vec<Value> {
    let mut objects = vec![];
    for ns in ["default", "kube-system", "storefront", "orders", "platform"] {
        objects.push(json!({"apiVersion":"v1","kind":"Namespace","metadata":{"name":ns,"uid":format!("uid-{ns}")},"status":{"phase":"Active"}}));
    }
    objects.push(deployment("storefront", "web", 3, "web:1", &[]));
    objects.push(service("storefront", "web"));
    objects.push(json!({"apiVersion":"networking.k8s.io/v1beta1","kind":"Ingress",
        "metadata":{"name":"web","namespace":"storefront","annotations":{"external-dns.alpha.kubernetes.io/ttl":"20"}},
        "spec":{"rules":[{"host":"www.shop.test","http":{"paths":[{"path":"/","backend":{"serviceName":"web","servicePort":80}}]}}]},
        "status":{"loadBalancer":{"ingress":[{"ip":"203.0.113.10"}]}}}));
    objects.push(deployment("orders", "orders", 2, "orders:1", &[]));
    let mut s = service("orders", "orders");
    s["spec"]["type"] = json!("LoadBalancer");
    s["metadata"]["annotations"] =
        json!({"external-dns.alpha.kubernetes.io/hostname":"orders.shop.test"});
    s["status"] = json!({"loadBalancer":{"ingress":[{"hostname":BLUE_LB}]}});
    objects.push(s);
    let mut consumer = deployment("platform", "consumer", 1, "consumer:1", &[]);
    consumer["metadata"]["annotations"] = json!({"crossfade.dev/singleton":"true"});
    consumer["spec"]["strategy"] = json!({"type":"Recreate"});
    objects.push(consumer);
    objects.push(json!({"apiVersion":"batch/v1beta1","kind":"CronJob","metadata":{"name":"report","namespace":"platform"},
        "spec":{"schedule":"*/2 * * * *","concurrencyPolicy":"Forbid","suspend":false,"successfulJobsHistoryLimit":2,
            "jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"r","image":"report:1"}]}}}}}}));
    objects.push(json!({"apiVersion":"v1","kind":"Secret","metadata":{"name":"db","namespace":"orders"},"type":"Opaque",
        "data":{"password":"hmac-sha256:00ff:12"}}));
    objects.push(edns);
    objects
}

pub fn records() -> Vec<RecordSet> {
    vec![
        record("shop.test.", "NS", 172800, &["ns-1.awsdns-1.com."]),
        record(
            "shop.test.",
            "SOA",
            900,
            &["ns-1. host. 1 7200 900 1209600 86400"],
        ),
        record("legacy.shop.test.", "A", 300, &["192.0.2.80"]),
        record(
            "legacy.shop.test.",
            "TXT",
            300,
            &[&heritage("other-team", "ingress/legacy/legacy")],
        ),
        record("mail.shop.test.", "A", 300, &["192.0.2.25"]),
        alias("orders.shop.test.", BLUE_LB),
        record(
            "orders.shop.test.",
            "TXT",
            300,
            &[&heritage("shop-blue", "service/orders/orders")],
        ),
        record("www.shop.test.", "A", 20, &["203.0.113.10"]),
        record(
            "www.shop.test.",
            "TXT",
            300,
            &[&heritage("shop-blue", "ingress/storefront/web")],
        ),
    ]
}

pub fn snapshot_with(edns: Value) -> Snapshot {
    let tags = BTreeMap::new();
    let subnet = |id: &str, zone: &str| Subnet {
        id: id.into(),
        vpc: "vpc-1".into(),
        zone: zone.into(),
        cidr: "10.0.0.0/24".into(),
        free_ips: 200,
        tags: tags.clone(),
    };
    let role = |name: &str| Role {
        name: name.into(),
        arn: format!("arn:aws:iam::000000000000:role/{name}"),
        trust: json!({"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}),
        managed_policies: vec![],
        inline_policies: BTreeMap::new(),
        boundary: None,
        tags: tags.clone(),
    };
    Snapshot {
        blue: Cluster {
            version: Some(KubeVersion {
                git_version: "v1.21.14".into(),
                minor: 21,
            }),
            objects: blue_objects(edns),
            ..Cluster::default()
        },
        aws: Some(Inventory {
            identity: CloudIdentity {
                account: "000000000000".into(),
                region: "eu-west-1".into(),
                arn: CALLER.into(),
            },
            vpc: Some(Vpc {
                id: "vpc-1".into(),
                cidrs: vec!["10.0.0.0/16".into()],
                tags: tags.clone(),
            }),
            subnets: vec![
                subnet("subnet-a", "eu-west-1a"),
                subnet("subnet-b", "eu-west-1b"),
            ],
            security_groups: vec![SecurityGroup {
                id: "sg-db".into(),
                name: "db".into(),
                vpc: "vpc-1".into(),
                tags: tags.clone(),
                ingress: vec![],
            }],
            roles: vec![
                role("green-cluster"),
                role("green-node"),
                role("shop-mailer"),
            ],
            oidc_providers: vec![],
            clusters: vec![],
            ..Inventory::default()
        }),
        zones: vec![ZoneRecords {
            zone: Zone {
                id: ZONE.into(),
                name: "shop.test.".into(),
                private: false,
            },
            records: records(),
        }],
        ..Snapshot::default()
    }
}

pub fn snapshot() -> Snapshot {
    snapshot_with(external_dns("v0.10.2", "shop-blue", "sync"))
}

pub fn spec() -> Spec {
    let db = |host: &str| json!({"host": host, "database": "orders", "admin": "postgres", "role": "orders"});
    serde_json::from_value(json!({
        "apiVersion": "crossfade.dev/v1alpha1", "kind": "Migration", "name": "shop",
        "blue": {"cluster": "shop.test"}, "green": {"name": "shop-green", "version": "1.36"},
        "data": [{"name": "orders", "mode": "postgres", "blue": db("10.20.0.5"), "green": db("10.20.0.6"),
            "tables": ["public.orders"], "writeProbe": {"host": "orders.shop.test", "path": "/orders"}}],
    }))
    .expect("the spec of the tests is valid")
}

pub fn company() -> (Twin, World) {
    of(&snapshot())
}

pub fn of(snapshot: &Snapshot) -> (Twin, World) {
    let twin = Twin::new(snapshot, &spec(), Options::default());
    let world = twin.world();
    (twin, world)
}

pub async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

pub fn id(api: &str, kind: &str, ns: &str, name: &str) -> ObjectId {
    ObjectId::new(api, kind, (!ns.is_empty()).then_some(ns), name)
}

pub async fn create(world: &World, object: &Value) -> crate::world::Result<Value> {
    world.green.create(object, CreateOptions::default()).await
}

/// Patches an object.
pub async fn scale(kube: &dyn crate::world::kube::Kube, ns: &str, name: &str, replicas: u32) {
    kube.merge(
        &id("apps/v1", "Deployment", ns, name),
        &json!({"spec":{"replicas":replicas}}),
    )
    .await
    .expect("scales");
}

pub fn cluster() -> Resource {
    Resource::Cluster {
        name: "shop-green".into(),
        version: "1.36".into(),
        role_arn: "arn:aws:iam::000000000000:role/green-cluster".into(),
        subnets: vec!["subnet-a".into(), "subnet-b".into()],
        service_cidr: None,
        public_endpoint: true,
        private_endpoint: true,
        endpoint_cidrs: vec![],
        logging: vec![],
        kms_key: None,
        deletion_protection: false,
        support_type: "STANDARD".into(),
        security_groups: vec![],
    }
}

pub fn access() -> Resource {
    Resource::AccessEntry {
        cluster: "shop-green".into(),
        principal: CALLER.into(),
        groups: vec![],
        policy: Some("AmazonEKSClusterAdminPolicy".into()),
        namespaces: vec![],
    }
}

pub fn addon(name: &str) -> Resource {
    Resource::Addon {
        cluster: "shop-green".into(),
        name: name.into(),
        version: None,
        service_account_role: None,
        configuration: None,
        conflicts: "OVERWRITE".into(),
    }
}

pub fn node_group() -> Resource {
    Resource::NodeGroup {
        cluster: "shop-green".into(),
        name: "nodes".into(),
        role_arn: "arn:aws:iam::000000000000:role/green-node".into(),
        subnets: vec!["subnet-a".into(), "subnet-b".into()],
        instance_types: vec!["m5.large".into()],
        ami_type: "AL2023_x86_64_STANDARD".into(),
        capacity_type: "ON_DEMAND".into(),
        min: 2,
        max: 4,
        desired: 2,
        disk_gib: 64,
        labels: BTreeMap::new(),
        taints: vec![],
        launch_template: None,
        max_unavailable: None,
        repair: false,
    }
}

/// Creates and waits until the cloud says it is usable.
pub async fn ensure(world: &World, resource: &Resource) {
    for _ in 0..200 {
        match world.cloud.create(resource, "run-1").await {
            Ok(()) => break,
            Err(e) if e.class == Class::NotReady => pass(10).await,
            Err(e) => panic!("{e}"),
        }
    }
    for _ in 0..200 {
        let found = world
            .cloud
            .find(resource)
            .await
            .expect("answers")
            .expect("was created");
        if found.status == crate::world::cloud::Status::Ready {
            return;
        }
        pass(10).await;
    }
    panic!("{} never became ready", resource.id());
}

/// Green exists, empty, with nodes, and lets us in.
pub async fn green_up(world: &World) {
    for r in [
        cluster(),
        access(),
        addon("vpc-cni"),
        node_group(),
        addon("coredns"),
    ] {
        ensure(world, &r).await;
    }
    pass(10).await;
    for ns in ["storefront", "orders", "platform"] {
        create(
            world,
            &json!({"apiVersion":"v1","kind":"Namespace","metadata":{"name":ns}}),
        )
        .await
        .expect("creates");
    }
    pass(3).await;
}

/// Copies the workloads to green, with its own ExternalDNS if asked.
pub async fn green_workloads(world: &World) {
    for o in [
        deployment("storefront", "web", 3, "web:1", &[]),
        service("storefront", "web"),
        json!({"apiVersion":"networking.k8s.io/v1","kind":"Ingress",
            "metadata":{"name":"web","namespace":"storefront","annotations":{"external-dns.alpha.kubernetes.io/ttl":"20"}},
            "spec":{"rules":[{"host":"www.shop.test","http":{"paths":[{"path":"/","pathType":"Prefix",
                "backend":{"service":{"name":"web","port":{"number":80}}}}]}}]}}),
        deployment("orders", "orders", 2, "orders:1", &[]),
        {
            let mut s = service("orders", "orders");
            s["spec"]["type"] = json!("LoadBalancer");
            s["metadata"]["annotations"] =
                json!({"external-dns.alpha.kubernetes.io/hostname":"orders.shop.test"});
            s
        },
    ] {
        create(world, &o).await.expect("creates");
    }
    pass(90).await;
}

/// The record set of a name and type, if there is one.
pub async fn zone_record(world: &World, name: &str, rtype: &str) -> Option<RecordSet> {
    world
        .dns
        .records(ZONE)
        .await
        .expect("lists")
        .into_iter()
        .find(|r| r.name == name && r.rtype == rtype)
}
