//! Each check says what is wrong, and says "not checked" when it cannot know.

use crate::plan::model::{Finding, Plan, Severity};
use crate::plan::plan;
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use crate::world::cloud::{
    CloudIdentity, IngressRule, Inventory, Role, SecurityGroup, Subnet, Vpc,
};
use crate::world::dns::{RecordSet, Zone};
use serde_json::{Value, json};

fn spec() -> Spec {
    serde_json::from_value(json!({
        "apiVersion": "crossfade.dev/v1alpha1", "kind": "Migration", "name": "demo",
        "blue": {"cluster": "shop.test"},
        "green": {"name": "shop-green", "version": "1.36", "serviceCidr": "10.96.0.0/16"},
        "aws": {"account": "000000000000", "region": "eu-west-1"}
    }))
    .expect("a valid spec")
}

fn kops() -> Value {
    json!({"kind": "Cluster", "metadata": {"name": "shop.test"}, "spec": {"kubernetesVersion": "1.21.14", "networkCIDR": "172.20.0.0/16",
        "subnets": [{"name": "a", "zone": "eu-west-1a", "type": "Private", "cidr": "172.20.32.0/24"}, {"name": "b", "zone": "eu-west-1b", "type": "Private", "cidr": "172.20.33.0/24"}]}})
}

fn inventory(free: u32) -> Inventory {
    let subnet = |id: &str, zone: &str, cidr: &str| Subnet {
        id: id.into(),
        vpc: "vpc-1".into(),
        zone: zone.into(),
        cidr: cidr.into(),
        free_ips: free,
        tags: Default::default(),
    };
    Inventory {
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
        security_groups: vec![],
        roles: vec![],
        oidc_providers: vec![],
        clusters: vec![],
        ..Inventory::default()
    }
}

fn snapshot() -> Snapshot {
    let mut s = Snapshot::default();
    s.kops.cluster = Some(kops());
    s.kops.instance_groups = vec![
        json!({"kind": "InstanceGroup", "metadata": {"name": "nodes"}, "spec": {"role": "Node", "machineType": "m5.large", "minSize": 4, "maxSize": 4}}),
    ];
    s.aws = Some(inventory(4000));
    s
}

fn of<'p>(p: &'p Plan, id: &str) -> Vec<&'p Finding> {
    p.findings.iter().filter(|f| f.id == id).collect()
}
#[track_caller]
fn says(p: &Plan, id: &str, severity: Severity, part: &str) {
    let all = of(p, id);
    assert!(
        all.iter()
            .any(|f| f.severity == severity && f.message.contains(part)),
        "{id}: {all:?}"
    );
}

#[test]
fn without_aws_the_checks_that_need_it_say_so() {
    let mut s = snapshot();
    s.aws = None;
    let p = plan(&spec(), &s);
    for id in ["ID-02", "CAP-04", "NET-02"] {
        says(&p, id, Severity::NotChecked, "not checked");
    }
    let p = plan(&spec(), &Snapshot::default());
    for id in ["VER-01", "VER-05", "NET-01", "KOPS-spec", "KOPS-ig-none"] {
        assert!(
            of(&p, id)
                .iter()
                .any(|f| f.severity == Severity::NotChecked),
            "{id}: {:?}",
            of(&p, id)
        );
    }
}

#[test]
fn id_02_another_account_or_region_blocks() {
    let mut s = spec();
    s.aws.account = Some("111111111111".into());
    s.aws.region = Some("eu-west-2".into());
    let p = plan(&s, &snapshot());
    says(&p, "ID-02", Severity::Blocker, "account 111111111111");
    says(&p, "ID-02", Severity::Blocker, "region eu-west-2");
    assert!(of(&plan(&spec(), &snapshot()), "ID-02").is_empty());
}

#[test]
fn net_01_a_service_range_inside_the_vpc_blocks_and_none_is_a_warning() {
    let mut s = spec();
    s.green.service_cidr = Some("172.20.0.0/16".into());
    says(
        &plan(&s, &snapshot()),
        "NET-01",
        Severity::Blocker,
        "overlaps",
    );
    s.green.service_cidr = None;
    says(
        &plan(&s, &snapshot()),
        "NET-01",
        Severity::Warning,
        "not set",
    );
    assert!(of(&plan(&spec(), &snapshot()), "NET-01").is_empty());
}

#[test]
fn cap_04_counts_addresses_as_the_vpc_cni_takes_them() {
    // m5.large with 5 pods: min(3, ceil(5/9) + 1) * 10 = 20 a node (eks.md 2.1).
    assert_eq!(super::capacity::node_addresses(3, 10, 5), 20);
    assert_eq!(super::capacity::node_addresses(4, 15, 20), 45);
    assert_eq!(super::capacity::node_addresses(4, 15, 58), 60);
    assert_eq!(super::capacity::node_addresses(8, 30, 20), 60);
    // 4 nodes over 2 zones, one zone lost: 4, and 2 more while they surge: 6 * 20 + 16 = 136.
    let mut s = snapshot();
    s.aws = Some(inventory(135));
    says(&plan(&spec(), &s), "CAP-04", Severity::Blocker, "about 136");
    s.aws = Some(inventory(150));
    says(&plan(&spec(), &s), "CAP-04", Severity::Warning, "reserve");
    s.aws = Some(inventory(164));
    assert!(of(&plan(&spec(), &s), "CAP-04").is_empty());
}

#[test]
fn ver_05_settings_that_eks_does_not_offer_are_listed_one_by_one() {
    let mut s = snapshot();
    let mut c = kops();
    c["spec"]["kubeAPIServer"] = json!({"featureGates": {"EphemeralContainers": "true"}, "runtimeConfig": {"batch/v2alpha1": "true"}, "appendAdmissionPlugins": ["AlwaysPullImages"]});
    c["spec"]["authorization"] = json!({"alwaysAllow": {}});
    c["spec"]["frobnicate"] = json!(1);
    s.kops.cluster = Some(c);
    let p = plan(&spec(), &s);
    says(&p, "VER-05", Severity::Info, "EphemeralContainers");
    says(&p, "VER-05", Severity::Blocker, "batch/v2alpha1");
    says(&p, "VER-05", Severity::Warning, "AlwaysPullImages");
    says(
        &p,
        "KOPS-authz-alwaysallow",
        Severity::Blocker,
        "without RBAC",
    );
    says(
        &p,
        "KOPS-unknown-field",
        Severity::Warning,
        "ignores such a field silently",
    );
}

#[test]
fn iam_03_a_role_that_the_account_does_not_have_blocks() {
    let mut s = snapshot();
    s.blue.objects = vec![
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "mailer", "namespace": "platform"},
        "spec": {"template": {"metadata": {"annotations": {"iam.amazonaws.com/role": "shop-mailer"}}, "spec": {"serviceAccountName": "mailer", "containers": []}}}}),
    ];
    says(
        &plan(&spec(), &s),
        "IAM-03",
        Severity::Blocker,
        "does not have it",
    );
    if let Some(a) = &mut s.aws {
        a.roles.push(Role {
            name: "shop-mailer".into(),
            arn: "arn:aws:iam::000000000000:role/shop-mailer".into(),
            trust: json!({"Statement": [{"Sid": "x".repeat(1700)}]}),
            managed_policies: vec![],
            inline_policies: Default::default(),
            boundary: None,
            tags: Default::default(),
        });
    }
    says(&plan(&spec(), &s), "IAM-03", Severity::Warning, "quota");
}

#[test]
fn net_02_a_foreign_group_that_trusts_blues_nodes_gets_a_rule_for_greens() {
    let mut s = snapshot();
    let group = |id: &str, name: &str, ingress| SecurityGroup {
        id: id.into(),
        name: name.into(),
        vpc: "vpc-1".into(),
        tags: Default::default(),
        ingress,
    };
    if let Some(a) = &mut s.aws {
        a.security_groups = vec![
            group("sg-nodes", "nodes.shop.test", vec![]),
            group(
                "sg-db",
                "database",
                vec![IngressRule {
                    protocol: "tcp".into(),
                    from_port: 5432,
                    to_port: 5432,
                    source_group: Some("sg-nodes".into()),
                    cidr: None,
                    description: None,
                }],
            ),
        ];
    }
    let p = plan(&spec(), &s);
    says(&p, "NET-02", Severity::Info, "lets blue's nodes in");
    assert!(
        p.steps
            .iter()
            .any(|s| s.id == "provision/security-group-rule/sg-db/tcp/5432-5432/green")
    );
}

#[test]
fn cap_01_a_selector_that_no_node_of_green_answers_blocks_and_kops_group_labels_are_mapped() {
    let deployment = |name: &str, selector: Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "n"},
        "spec": {"template": {"spec": {"nodeSelector": selector, "containers": []}}}})
    };
    let mut s = snapshot();
    s.kops.instance_groups[0]["spec"]["nodeLabels"] = json!({"tier": "app"});
    s.blue.objects = vec![
        deployment("a", json!({"kops.k8s.io/instancegroup": "nodes"})),
        deployment("b", json!({"tier": "app"})),
        deployment("c", json!({"tier": "gone"})),
        deployment("d", json!({"node-role.kubernetes.io/master": ""})),
    ];
    let p = plan(&spec(), &s);
    let a = p
        .verdicts
        .iter()
        .find(|v| v.object == "deployment/n/a")
        .and_then(|v| v.target.clone())
        .expect("copied");
    assert_eq!(
        a.pointer("/spec/template/spec/nodeSelector"),
        Some(&json!({"eks.amazonaws.com/nodegroup": "nodes"}))
    );
    let blocked: Vec<&str> = of(&p, "CAP-01").iter().map(|f| f.object.as_str()).collect();
    assert_eq!(blocked, ["deployment/n/c", "deployment/n/d"]);
}

#[test]
fn dns_01_and_02_an_owner_that_cannot_be_told_apart_and_a_foreign_record_block() {
    let edns = |owner: &str| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "external-dns", "namespace": "platform"},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"image": "registry.k8s.io/external-dns/external-dns:v0.10.2", "args": ["--provider=aws", "--source=ingress", "--frobnicate", owner]}]}}}})
    };
    let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web", "namespace": "n"}, "spec": {"rules": [{"host": "www.shop.test"}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.10"}]}}});
    let mut s = snapshot();
    s.zones = vec![crate::snapshot::model::ZoneRecords {
        zone: Zone {
            id: "Z1".into(),
            name: "shop.test.".into(),
            private: false,
        },
        records: vec![RecordSet {
            name: "www.shop.test.".into(),
            rtype: "A".into(),
            ttl: Some(300),
            values: vec!["192.0.2.1".into()],
            alias: None,
            set_identifier: None,
            routing: Default::default(),
        }],
    }];
    s.blue.objects = vec![edns("--txt-owner-id=shop-green"), ingress.clone()];
    let p = plan(&spec(), &s);
    says(&p, "DNS-01", Severity::Blocker, "green's too");
    says(&p, "DNS-02", Severity::Blocker, "belongs to nobody");
    says(&p, "DNS-05", Severity::Blocker, "--frobnicate");
    s.blue.objects = vec![edns("--interval=60s"), ingress];
    says(&plan(&spec(), &s), "DNS-01", Severity::Blocker, "`default`");
}

#[test]
fn sng_something_that_looks_single_and_is_not_declared_is_named() {
    let one = |name: &str, extra: Value| {
        let mut o = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "n"}, "spec": {"replicas": 1, "template": {"spec": {"containers": [{"image": "x"}]}}}});
        for (k, v) in extra.as_object().into_iter().flatten() {
            o["spec"][k] = v.clone();
        }
        o
    };
    let mut s = snapshot();
    s.blue.objects = vec![
        one("api", json!({})),
        one("importer", json!({"strategy": {"type": "Recreate"}})),
        one("mail-worker", json!({})),
    ];
    let named = |p: &Plan| -> Vec<String> {
        of(p, "SNG-01")
            .iter()
            .filter(|f| f.severity == Severity::Warning)
            .map(|f| f.object.clone())
            .collect()
    };
    assert_eq!(
        named(&plan(&spec(), &s)),
        ["deployment/n/importer", "deployment/n/mail-worker"]
    );
    let mut declared = spec();
    declared.workloads.singletons =
        vec!["deployment/n/importer".into(), "deployment/n/nobody".into()];
    let p = plan(&declared, &s);
    assert_eq!(named(&p), ["deployment/n/mail-worker"]);
    says(&p, "SNG-01", Severity::Blocker, "no such object");
}
