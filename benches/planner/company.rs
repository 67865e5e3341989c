//! A company of any size, the same every time.

use crossfade::snapshot::model::{Cluster, Kops, Snapshot, ZoneRecords};
use crossfade::world::cloud::{CloudIdentity, Inventory, Role, SecurityGroup, Subnet, Vpc};
use crossfade::world::dns::{RecordSet, Zone};
use crossfade::world::kube::KubeVersion;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How many of what.
#[derive(Clone, Copy)]
pub struct Size {
    pub objects: usize,
    pub records: usize,
    pub groups: usize,
    pub accounts: usize,
}

const ACCOUNT: &str = "123456789012";

/// Objects of one service of the company, in the proportions of a cluster of a few hundred services.
fn service(n: usize, accounts: usize, objects: &mut Vec<Value>) {
    let ns = format!("team-{:03}", n % 200);
    let name = format!("app-{n:05}");
    let account = if n < accounts {
        format!("sa-{n:05}")
    } else {
        "default".into()
    };
    let labels = json!({"app": name, "team": ns, "kubernetes.io/cluster-service": "false"});
    let meta = |kind: &str| {
        json!({"name": name, "namespace": ns, "labels": labels, "uid": format!("{kind}-{n:08}"), "resourceVersion": n.to_string(),
            "creationTimestamp": "2024-02-01T08:00:00Z",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": format!("{{\"kind\":\"{kind}\"}}")}})
    };
    let pod = json!({"metadata": {"labels": labels}, "spec": {
        "serviceAccountName": account,
        "nodeSelector": {"kops.k8s.io/instancegroup": format!("nodes-{:02}", n % 40)},
        "containers": [{"name": "main", "image": format!("registry.shop.test/{name}:v{}", n % 17), "ports": [{"containerPort": 8080}],
            "env": [{"name": "UPSTREAM", "value": format!("http://app-{:05}.team-{:03}.svc.cluster.local", (n + 1), (n + 1) % 200)}, {"name": "REGION", "value": "eu-west-1"}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
            "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}}}]}});
    objects.push(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("Deployment"),
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": pod}, "status": {"replicas": 2}}));
    objects.push(json!({"apiVersion": "v1", "kind": "Service", "metadata": meta("Service"),
        "spec": {"type": "ClusterIP", "clusterIP": format!("100.64.{}.{}", n / 250 % 250, n % 250), "selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}}));
    objects.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("ConfigMap"),
        "data": {"app.yaml": format!("name: {name}\nurl: https://{name}.shop.test\nlimit: {n}\n"), "LOG": "info"}}));
    objects.push(
        json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": meta("Secret"),
        "data": {"password": format!("hmac-sha256:{n:064x}:24")}}),
    );
    if n < accounts {
        objects.push(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": ns,
            "annotations": if n.is_multiple_of(4) { json!({"eks.amazonaws.com/role-arn": format!("arn:aws:iam::{ACCOUNT}:role/app-{:04}", n % 400)}) } else { json!({}) }}}));
        objects.push(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": meta("RoleBinding"),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}, "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": ns}]}));
    }
    if n.is_multiple_of(2) {
        objects.push(json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": meta("Ingress"),
            "spec": {"ingressClassName": "nginx", "rules": [{"host": format!("{name}.shop.test"), "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": name, "port": {"number": 80}}}}]}}]},
            "status": {"loadBalancer": {"ingress": [{"hostname": "blue-lb.elb.amazonaws.com"}]}}}));
    }
    if n.is_multiple_of(3) {
        objects.push(json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": meta("HorizontalPodAutoscaler"),
            "spec": {"minReplicas": 2, "maxReplicas": 6, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}, "targetCPUUtilizationPercentage": 70}}));
        objects.push(json!({"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": meta("PodDisruptionBudget"),
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}}));
    }
    if n.is_multiple_of(10) {
        objects.push(json!({"apiVersion": "batch/v1beta1", "kind": "CronJob", "metadata": meta("CronJob"),
            "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "job", "image": "registry.shop.test/job:v1"}]}}}}}}));
    }
    for replica in 0..2 {
        objects.push(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("{name}-{replica}"), "namespace": ns, "labels": labels,
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": format!("rs-{n}"), "controller": true}]},
            "spec": pod["spec"], "status": {"phase": "Running"}}));
    }
}

fn external_dns() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "external-dns", "namespace": "kube-system"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "external-dns"}}, "template": {"metadata": {"labels": {"app": "external-dns"}},
            "spec": {"containers": [{"name": "external-dns", "image": "registry.k8s.io/external-dns/external-dns:v0.10.2",
                "args": ["--source=ingress", "--provider=aws", "--registry=txt", "--txt-owner-id=blue", "--domain-filter=shop.test", "--policy=sync"]}]}}}})
}

fn zone(records: usize) -> ZoneRecords {
    let mut out = vec![];
    // Two of each name: the record and its registry TXT.
    for n in 0..records / 2 {
        let host = format!("app-{:05}.shop.test.", n * 2);
        out.push(record(&host, "A", "203.0.113.7"));
        out.push(record(&host, "TXT", &format!("\"heritage=external-dns,external-dns/owner=blue,external-dns/resource=ingress/team-{:03}/app-{:05}\"", n * 2 % 200, n * 2)));
    }
    ZoneRecords {
        zone: serde_json::from_value::<Zone>(
            json!({"id": "Z0000000001", "name": "shop.test.", "private": false}),
        )
        .unwrap_or_else(|e| panic!("a zone: {e}")),
        records: out,
    }
}

fn record(name: &str, kind: &str, value: &str) -> RecordSet {
    serde_json::from_value(json!({"name": name, "type": kind, "ttl": 300, "values": [value]}))
        .unwrap_or_else(|e| panic!("a record set: {e}"))
}

/// The company.
pub fn company(size: Size) -> Snapshot {
    let mut objects: Vec<Value> = (0..200)
        .map(|n| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("team-{n:03}")}}))
        .collect();
    objects.push(external_dns());
    let mut n = 0;
    while objects.len() < size.objects {
        service(n, size.accounts, &mut objects);
        n += 1;
    }
    objects.truncate(size.objects);
    objects.sort_by_key(|o| {
        format!(
            "{}/{}/{}",
            o["kind"], o["metadata"]["namespace"], o["metadata"]["name"]
        )
    });
    let groups = (0..size.groups)
        .map(|n| json!({"apiVersion": "kops.k8s.io/v1alpha2", "kind": "InstanceGroup", "metadata": {"name": format!("nodes-{n:02}")},
            "spec": {"role": "Node", "machineType": "m5.4xlarge", "minSize": 5, "maxSize": 20, "subnets": ["a", "b", "c"], "nodeLabels": {"pool": format!("p{n}")}}}))
        .collect();
    let subnets = ["a", "b", "c"];
    let tags = || BTreeMap::from([("KubernetesCluster".to_string(), "shop.test".to_string())]);
    Snapshot {
        kops: Kops {
            cluster: Some(
                json!({"apiVersion": "kops.k8s.io/v1alpha2", "kind": "Cluster", "metadata": {"name": "shop.test"}, "spec": {
                "kubernetesVersion": "1.21.14", "cloudProvider": "aws", "networkCIDR": "172.20.0.0/16", "networking": {"calico": {}}, "authorization": {"rbac": {}},
                "subnets": subnets.iter().enumerate().map(|(i, s)| json!({"name": s, "zone": format!("eu-west-1{s}"), "type": "Private", "cidr": format!("172.20.{}.0/18", 64 * (i + 1))})).collect::<Vec<_>>()}}),
            ),
            instance_groups: groups,
            kops_version: Some("1.22.6".into()),
            ..Kops::default()
        },
        blue: Cluster {
            version: Some(KubeVersion {
                git_version: "v1.21.14".into(),
                minor: 21,
            }),
            objects,
            ..Cluster::default()
        },
        aws: Some(Inventory {
            identity: CloudIdentity {
                account: ACCOUNT.into(),
                region: "eu-west-1".into(),
                arn: format!("arn:aws:iam::{ACCOUNT}:user/bench"),
            },
            vpc: Some(Vpc {
                id: "vpc-1".into(),
                cidrs: vec!["172.20.0.0/16".into()],
                tags: tags(),
            }),
            subnets: subnets
                .iter()
                .enumerate()
                .map(|(i, s)| Subnet {
                    id: format!("subnet-{s}"),
                    vpc: "vpc-1".into(),
                    zone: format!("eu-west-1{s}"),
                    cidr: format!("172.20.{}.0/18", 64 * (i + 1)),
                    free_ips: 16_000,
                    tags: tags(),
                })
                .collect(),
            security_groups: vec![SecurityGroup {
                id: "sg-nodes".into(),
                name: "nodes.shop.test".into(),
                vpc: "vpc-1".into(),
                tags: tags(),
                ingress: vec![],
            }],
            roles: (0..400)
                .map(|n| Role {
                    name: format!("app-{n:04}"),
                    arn: format!("arn:aws:iam::{ACCOUNT}:role/app-{n:04}"),
                    trust: json!({"Version": "2012-10-17", "Statement": []}),
                    managed_policies: vec![],
                    inline_policies: BTreeMap::new(),
                    boundary: None,
                    tags: BTreeMap::new(),
                })
                .collect(),
            ..Inventory::default()
        }),
        zones: vec![zone(size.records)],
        taken: Some("2026-11-30".into()),
        ..Snapshot::default()
    }
}
