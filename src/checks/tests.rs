//! Each check says what is wrong, and says "not checked" when it cannot know.

use crate::plan::model::{Finding, Plan, Severity};
use crate::plan::plan;
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use crate::world::cloud::{
    CloudIdentity, IngressRule, Inventory, NatGateway, Role, RouteTable, SecurityGroup, Subnet, Vpc,
};
use crate::world::dns::{RecordSet, Zone};
use serde_json::{Value, json};

pub(super) fn spec() -> Spec {
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

pub(super) fn inventory(free: u32) -> Inventory {
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

pub(super) fn snapshot() -> Snapshot {
    let mut s = Snapshot::default();
    s.kops.cluster = Some(kops());
    s.kops.instance_groups = vec![
        json!({"kind": "InstanceGroup", "metadata": {"name": "nodes"}, "spec": {"role": "Node", "machineType": "m5.large", "minSize": 4, "maxSize": 4}}),
    ];
    s.aws = Some(inventory(4000));
    s
}

pub(super) fn of<'p>(p: &'p Plan, id: &str) -> Vec<&'p Finding> {
    p.findings.iter().filter(|f| f.id == id).collect()
}
#[track_caller]
pub(super) fn says(p: &Plan, id: &str, severity: Severity, part: &str) {
    let all = of(p, id);
    assert!(
        all.iter()
            .any(|f| f.severity == severity && f.message.contains(part)),
        "{id}: {all:?}"
    );
}

pub(super) fn deployment(name: &str, replicas: u32, pod: Value) -> Value {
    let mut o = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "n"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "registry.test/x:1"}]}}}});
    for (k, v) in pod.as_object().into_iter().flatten() {
        o["spec"]["template"]["spec"][k] = v.clone();
    }
    o
}
pub(super) fn subnet(id: &str, zone: &str, cidr: &str, free: u32) -> Subnet {
    Subnet {
        id: id.into(),
        vpc: "vpc-1".into(),
        zone: zone.into(),
        cidr: cidr.into(),
        free_ips: free,
        tags: Default::default(),
    }
}
pub(super) fn group(id: &str, name: &str, ingress: Vec<IngressRule>) -> SecurityGroup {
    SecurityGroup {
        id: id.into(),
        name: name.into(),
        vpc: "vpc-1".into(),
        tags: Default::default(),
        ingress,
    }
}
fn rule(port: i32, source_group: Option<&str>, cidr: Option<&str>) -> IngressRule {
    IngressRule {
        protocol: "tcp".into(),
        from_port: port,
        to_port: port,
        source_group: source_group.map(Into::into),
        cidr: cidr.map(Into::into),
        description: None,
    }
}
pub(super) fn rule_from_group(port: i32, source: &str) -> IngressRule {
    rule(port, Some(source), None)
}
pub(super) fn rule_from_cidr(port: i32, cidr: &str) -> IngressRule {
    rule(port, None, Some(cidr))
}
pub(super) fn route_table(id: &str, subnets: &[&str], routes: &[(&str, &str)]) -> RouteTable {
    RouteTable {
        id: id.into(),
        main: false,
        subnets: subnets.iter().map(|s| s.to_string()).collect(),
        routes: routes
            .iter()
            .map(|(to, by)| (to.to_string(), by.to_string()))
            .collect(),
        tags: Default::default(),
    }
}
pub(super) fn nat_gateway(id: &str, ip: &str) -> NatGateway {
    NatGateway {
        id: id.into(),
        subnet: "subnet-utility".into(),
        public_ips: vec![ip.into()],
        tags: Default::default(),
    }
}
/// A company whose ExternalDNS owns one name of one Ingress.
pub(super) fn handed_over() -> Snapshot {
    let mut s = snapshot();
    let record = |rtype: &str, name: &str, value: &str| RecordSet {
        name: name.into(),
        rtype: rtype.into(),
        ttl: Some(300),
        values: vec![value.into()],
        alias: None,
        set_identifier: None,
        routing: Default::default(),
    };
    s.zones = vec![crate::snapshot::model::ZoneRecords {
        zone: Zone {
            id: "Z1".into(),
            name: "shop.test.".into(),
            private: false,
        },
        records: vec![
            record("A", "www.shop.test.", "203.0.113.10"),
            record(
                "TXT",
                "www.shop.test.",
                "\"heritage=external-dns,external-dns/owner=blue,external-dns/resource=ingress/n/web\"",
            ),
            record(
                "TXT",
                "a-www.shop.test.",
                "\"heritage=external-dns,external-dns/owner=blue,external-dns/resource=ingress/n/web\"",
            ),
        ],
    }];
    s.blue.objects = vec![
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "external-dns", "namespace": "platform"},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"image": "registry.k8s.io/external-dns/external-dns:v0.14.2", "args": ["--provider=aws", "--source=ingress", "--txt-owner-id=blue"]}]}}}}),
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web", "namespace": "n", "annotations": {"kubernetes.io/ingress.class": "alb"}}, "spec": {"rules": [{"host": "www.shop.test"}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.10"}]}}}),
    ];
    s
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
fn ver_05_settings_that_eks_does_not_offer_are_listed_one_by_one() {
    let mut s = snapshot();
    let mut c = kops();
    c["spec"]["kubeAPIServer"] = json!({"featureGates": {"EphemeralContainers": "true"}, "runtimeConfig": {"batch/v2alpha1": "true"}, "appendAdmissionPlugins": ["AlwaysPullImages"]});
    c["spec"]["authorization"] = json!({"alwaysAllow": {}});
    c["spec"]["frobnicate"] = json!(1);
    s.kops.cluster = Some(c);
    s.blue.objects.clear();
    let p = plan(&spec(), &s);
    let said = p
        .findings
        .iter()
        .filter(|f| f.message.contains("allows every") || f.id.contains("alwaysallow"));
    assert_eq!(said.count(), 1, "one voice for one decision");
    says(&p, "VER-05", Severity::Info, "EphemeralContainers");
    says(&p, "VER-05", Severity::Blocker, "batch/v2alpha1");
    says(&p, "VER-05", Severity::Warning, "AlwaysPullImages");
    says(&p, "IAM-authz", Severity::Blocker, "allows every request");
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
        .all()
        .iter()
        .find(|v| v.object == "deployment/n/a")
        .and_then(|v| v.target.clone())
        .expect("copied");
    assert_eq!(
        a.pointer("/spec/template/spec/nodeSelector"),
        Some(&json!({"crossfade.dev/instancegroup": "nodes"}))
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
fn every_check_of_the_catalogue_is_registered() {
    use crate::checks::{all, ids::CATALOGUE};
    assert_eq!(CATALOGUE.len(), 132);
    for id in CATALOGUE {
        assert_eq!(all().filter(|c| c.id == *id).count(), 1, "{id}");
    }
    for c in all() {
        assert_eq!(all().filter(|d| d.id == c.id).count(), 1, "{} twice", c.id);
        assert!(crate::checks::ids::is_known(c.id), "{}", c.id);
        assert!(c.question.ends_with('?'), "{}: {}", c.id, c.question);
        assert!(c.remedy.ends_with('.'), "{}: {}", c.id, c.remedy);
        assert!(!c.source.is_empty(), "{}", c.id);
    }
}

#[test]
fn a_waiver_takes_a_blocker_out_of_the_way_of_a_plan_and_only_that_one() {
    let mut s = snapshot();
    let mut c = kops();
    c["spec"]["kubeAPIServer"] =
        json!({"featureGates": {"HPAScaleToZero": "true", "MaxUnavailableStatefulSet": "true"}});
    s.kops.cluster = Some(c);
    s.taken = Some("2026-11-30".into());
    let object = "kops/spec.kubeAPIServer.featureGates.HPAScaleToZero";
    let with = |expires: &str| {
        let mut spec = spec();
        spec.waivers = serde_json::from_value(json!([
            {"check": "VER-05", "object": object, "reason": "nothing scales to zero", "expires": expires},
            {"check": "NET-11", "reason": "read"}
        ]))
        .expect("waivers");
        plan(&spec, &s)
    };
    let p = with("2026-12-31");
    let blocks: Vec<&str> = of(&p, "VER-05")
        .iter()
        .filter(|f| f.blocks())
        .map(|f| f.object.as_str())
        .collect();
    assert_eq!(
        blocks,
        ["kops/spec.kubeAPIServer.featureGates.MaxUnavailableStatefulSet"]
    );
    says(&p, "WAIVER-unused", Severity::Info, "no finding NET-11");
    let p = with("2026-11-29");
    assert_eq!(of(&p, "VER-05").iter().filter(|f| f.blocks()).count(), 2);
    says(&p, "VER-05", Severity::Blocker, "ran out on 2026-11-29");
}
