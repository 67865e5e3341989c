//! Rights on blue and on green, on the corpus, on what the real kops 1.22.6 wrote, and on small accounts made for one rule each.

use super::made_by_kops::{MadeByKops, Rest};
use super::policy;
use crate::plan::model::{Finding, Plan, Severity, TargetRole};
use crate::plan::plan;
use crate::plan::tests::{corpus, kops_snapshot, shop, spec};
use crate::snapshot::model::Snapshot;
use crate::spec::model::{RoleWish, Spec};
use crate::world::cloud::{CloudIdentity, Inventory, Resource, Role};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const ACCOUNT: &str = "000000000000";

fn of<'p>(p: &'p Plan, id: &str) -> Vec<&'p Finding> {
    p.findings.iter().filter(|f| f.id == id).collect()
}

#[track_caller]
fn says(p: &Plan, id: &str, severity: Severity, object: &str, part: &str) {
    let all = of(p, id);
    assert!(
        all.iter()
            .any(|f| f.severity == severity && f.object == object && f.message.contains(part)),
        "{id} {object}: {all:#?}"
    );
}

fn role(name: &str, inline: &[(&str, Value)], managed: &[&str]) -> Role {
    Role {
        name: name.into(),
        arn: format!("arn:aws:iam::{ACCOUNT}:role/{name}"),
        trust: json!({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]}),
        managed_policies: managed.iter().map(|p| p.to_string()).collect(),
        inline_policies: inline
            .iter()
            .map(|(n, d)| (n.to_string(), d.clone()))
            .collect(),
        boundary: None,
        tags: BTreeMap::new(),
    }
}

fn document(list: Value) -> Value {
    json!({"Version": "2012-10-17", "Statement": list})
}

fn orders() -> Value {
    json!({"Sid": "Orders", "Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject"], "Resource": "arn:aws:s3:::orders-assets/*"})
}

/// A cluster whose workers carry `nodes.shop.test` with these policies.
fn blue(node: Role, objects: Vec<Value>) -> (Spec, Snapshot) {
    let mut s = Snapshot::default();
    s.kops.cluster = Some(
        json!({"kind": "Cluster", "metadata": {"name": "shop.test"}, "spec": {"kubernetesVersion": "1.21.14", "networkCIDR": "172.20.0.0/16", "configBase": "s3://kops-state-shop/shop.test",
        "authorization": {"rbac": {}}, "networking": {"calico": {}},
        "subnets": [{"name": "a", "zone": "eu-west-1a", "type": "Private", "cidr": "172.20.32.0/24"}, {"name": "b", "zone": "eu-west-1b", "type": "Private", "cidr": "172.20.33.0/24"}]}}),
    );
    s.kops.kops_version = Some("1.22.6".into());
    s.kops.instance_groups = vec![
        json!({"kind": "InstanceGroup", "metadata": {"name": "nodes"}, "spec": {"role": "Node", "machineType": "m5.large", "minSize": 2, "maxSize": 2, "subnets": ["a", "b"]}}),
    ];
    s.aws = Some(Inventory {
        identity: CloudIdentity {
            account: ACCOUNT.into(),
            region: "eu-west-1".into(),
            arn: format!("arn:aws:iam::{ACCOUNT}:user/x"),
        },
        roles: vec![node],
        policies: Some(BTreeMap::new()),
        instance_profiles: Some(BTreeMap::new()),
        ..Inventory::default()
    });
    s.blue.objects = objects;
    (spec("shop.test"), s)
}

fn deployment(name: &str, account: Option<&str>, env: Value) -> Value {
    let mut pod = json!({"containers": [{"name": name, "image": format!("registry.shop.test/{name}:1"), "env": env}]});
    if let Some(a) = account {
        pod["serviceAccountName"] = json!(a);
    }
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}}, "spec": pod}}})
}

fn account(name: &str, arn: Option<&str>) -> Value {
    let mut o = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "web"}});
    if let Some(arn) = arn {
        o["metadata"]["annotations"] = json!({"eks.amazonaws.com/role-arn": arn});
    }
    o
}

fn green<'p>(p: &'p Plan, name: &str) -> &'p TargetRole {
    p.target
        .roles
        .iter()
        .find(|r| r.name == name)
        .unwrap_or_else(|| panic!("no role {name}: {:?}", p.target.roles))
}

fn annotation(p: &Plan, object: &str) -> Option<String> {
    let v = p.verdicts.all().iter().find(|v| v.object == object)?;
    crate::object::annotation(v.target.as_ref()?, "eks.amazonaws.com/role-arn").map(String::from)
}

fn wish(s: &mut Spec, account: &str, w: RoleWish) {
    s.green.roles.insert(account.into(), w);
}

// ---- what kops itself put there

fn live() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testkit/fixtures/shop")
}

#[test]
fn nothing_is_left_of_the_policies_that_the_real_kops_1_22_6_wrote() {
    let s = kops_snapshot(&live().join("kops/get-all.yaml"));
    let mut kops = s.kops;
    kops.kops_version = Some("1.22.6".into());
    let made = MadeByKops::new(&kops, "shop.test");
    for (file, masters) in [("nodes.shop.test", false), ("masters.shop.test", true)] {
        let path = live().join(format!("aws/role-policies/{file}.json"));
        let doc: Value =
            serde_json::from_str(&std::fs::read_to_string(path).expect("readable")).expect("JSON");
        let all = policy::statements(file, &doc["PolicyDocument"]);
        assert!(all.len() >= 3, "{file}");
        for s in all {
            let rest = if masters {
                made.rest_of_master(&s.body)
            } else {
                made.rest(&s.body)
            };
            assert_eq!(rest, Rest::Nothing, "{}: {}", s.name, s.body);
        }
    }
}

#[test]
fn an_action_that_somebody_added_to_kopss_own_statement_is_all_that_is_left_of_it() {
    let (_, s) = blue(role("nodes.shop.test", &[], &[]), vec![]);
    let made = MadeByKops::new(&s.kops, "shop.test");
    let theirs = json!({"Effect": "Allow", "Action": ["ec2:DescribeInstances", "ecr:BatchGetImage", "sqs:SendMessage"], "Resource": "*"});
    let Rest::Part(left) = made.rest(&theirs) else {
        panic!("a part is left")
    };
    assert_eq!(left["Action"], json!(["sqs:SendMessage"]));
    assert!(policy::within(&left, &theirs));
    // Another folder of the state bucket is not kops's, and a denial never is.
    let other = json!({"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::kops-state-shop/reports/*"});
    assert_eq!(made.rest(&other), Rest::All);
    let deny = json!({"Effect": "Deny", "Action": "ec2:DescribeInstances", "Resource": "*"});
    assert_eq!(made.rest(&deny), Rest::All);
    // Legacy IAM: the whole state is kops's, the zone is what ExternalDNS leans on (kops.md 5).
    let state = json!({"Effect": "Allow", "Action": ["s3:*"], "Resource": "arn:aws:s3:::kops-state-shop/shop.test/*"});
    assert_eq!(made.rest(&state), Rest::Nothing);
    let zone = json!({"Effect": "Allow", "Action": ["route53:ChangeResourceRecordSets"], "Resource": ["arn:aws:route53:::hostedzone/Z1"]});
    assert_eq!(made.rest(&zone), Rest::All);
}

#[test]
fn the_lists_of_another_network_or_an_older_kops_do_not_count() {
    let (_, mut s) = blue(role("nodes.shop.test", &[], &[]), vec![]);
    let eni = json!({"Effect": "Allow", "Action": ["ec2:CreateNetworkInterface", "ec2:AssignPrivateIpAddresses"], "Resource": "*"});
    let certs = json!({"Effect": "Allow", "Action": "iam:ListServerCertificates", "Resource": "*"});
    let made = MadeByKops::new(&s.kops, "shop.test");
    assert_eq!(made.rest(&eni), Rest::All, "calico asks for no interfaces");
    assert_eq!(made.rest(&certs), Rest::Nothing);
    s.kops.kops_version = Some("1.18.2".into());
    s.kops.cluster.as_mut().expect("a cluster")["spec"]["networking"] = json!({"amazonvpc": {}});
    let made = MadeByKops::new(&s.kops, "shop.test");
    assert_eq!(made.rest(&eni), Rest::Nothing);
    assert_eq!(made.rest(&certs), Rest::All, "kops gives that from 1.22 on");
}

// ---- IAM-04

#[test]
fn a_right_of_the_node_role_blocks_until_it_is_mapped_and_then_green_has_that_statement_and_no_other()
 {
    let deny = json!({"Effect": "Deny", "Action": "s3:DeleteObject", "Resource": "*"});
    let policy =
        document(json!([orders(), {"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}, deny]));
    let mut node = role(
        "nodes.shop.test",
        &[("additional.nodes.shop.test", policy)],
        &[],
    );
    node.boundary = Some("arn:aws:iam::000000000000:policy/fence".into());
    let objects = vec![
        deployment(
            "api",
            Some("api"),
            json!([{"name": "BUCKET", "value": "orders-assets"}]),
        ),
        account("api", None),
    ];
    let (mut spec, s) = blue(node, objects);
    let p = plan(&spec, &s);
    let object = "role/nodes.shop.test/additional.nodes.shop.test/Orders";
    says(
        &p,
        "IAM-04",
        Severity::Blocker,
        object,
        "deployment/web/api of account web/api (names orders-assets)",
    );
    says(&p, "IAM-04", Severity::Blocker, object, "hints, no proof");
    says(
        &p,
        "IAM-04",
        Severity::Warning,
        "role/nodes.shop.test/additional.nodes.shop.test/1",
        "no workload shows",
    );
    // Never silently to green's nodes.
    assert!(green(&p, "shop-green-node").inline_policies.is_empty());

    wish(
        &mut spec,
        "web/api",
        RoleWish {
            from_node_role: vec!["additional.nodes.shop.test/Orders".into()],
            ..RoleWish::default()
        },
    );
    let p = plan(&spec, &s);
    assert!(!of(&p, "IAM-04").iter().any(|f| f.object == object));
    let r = green(&p, "shop-green-web.api");
    assert_eq!(
        r.inline_policies["from-node-role"]["Statement"],
        json!([orders(), deny]),
        "what denies goes with what allows"
    );
    assert_eq!(
        r.boundary.as_deref(),
        Some("arn:aws:iam::000000000000:policy/fence")
    );
    let from: Vec<&str> = r.grants.iter().map(|g| g.from.as_str()).collect();
    assert_eq!(
        from,
        [
            "role/nodes.shop.test additional.nodes.shop.test/Orders",
            "role/nodes.shop.test additional.nodes.shop.test/2"
        ]
    );
    assert_eq!(
        annotation(&p, "serviceaccount/web/api").as_deref(),
        Some("arn:aws:iam::000000000000:role/shop-green-web.api")
    );
    let step = p
        .steps
        .iter()
        .find(|s| s.id == "provision/role/shop-green-web.api")
        .expect("a step");
    let made: Resource =
        serde_json::from_value(step.params["resource"].clone()).expect("a resource");
    let Resource::Role {
        trust,
        boundary,
        inline_policies,
        ..
    } = made
    else {
        panic!("a role")
    };
    assert_eq!(boundary, r.boundary);
    assert_eq!(inline_policies, r.inline_policies);
    assert_eq!(
        trust["Statement"][0]["Condition"]["StringEquals"]["${cluster.issuer}:sub"],
        "system:serviceaccount:web:api"
    );
}

#[test]
fn a_wish_for_more_than_blue_has_is_refused_and_not_given() {
    let policy = document(json!([orders()]));
    let (mut spec, s) = blue(
        role(
            "nodes.shop.test",
            &[("additional.nodes.shop.test", policy)],
            &[],
        ),
        vec![account("api", None)],
    );
    wish(
        &mut spec,
        "web/api",
        RoleWish {
            from_node_role: vec!["additional.nodes.shop.test/Other".into()],
            policies: vec!["arn:aws:iam::aws:policy/AdministratorAccess".into()],
            ..RoleWish::default()
        },
    );
    let p = plan(&spec, &s);
    says(
        &p,
        "IAM-04",
        Severity::Blocker,
        "green.roles.web/api",
        "no statement additional.nodes.shop.test/Other",
    );
    says(
        &p,
        "IAM-04",
        Severity::Blocker,
        "green.roles.web/api",
        "it has additional.nodes.shop.test/Orders",
    );
    says(
        &p,
        "IAM-04",
        Severity::Blocker,
        "green.roles.web/api",
        "AdministratorAccess is not attached",
    );
    assert!(
        !p.target
            .roles
            .iter()
            .any(|r| r.name == "shop-green-web.api")
    );
}

#[test]
fn statements_of_an_attached_policy_count_where_its_document_is_known() {
    let arn = "arn:aws:iam::000000000000:policy/orders";
    let (spec, mut s) = blue(
        role(
            "nodes.shop.test",
            &[],
            &[arn, "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"],
        ),
        vec![],
    );
    let p = plan(&spec, &s);
    says(
        &p,
        "IAM-04",
        Severity::Warning,
        "role/nodes.shop.test/orders",
        "is attached",
    );
    assert!(
        !of(&p, "IAM-04").iter().any(|f| f.message.contains("SSM")),
        "that one is for hosts"
    );
    s.aws.as_mut().expect("an account").policies =
        Some([(arn.to_string(), document(json!([orders()])))].into());
    let p = plan(&spec, &s);
    says(
        &p,
        "IAM-04",
        Severity::Warning,
        "role/nodes.shop.test/orders/Orders",
        "s3:GetObject",
    );
}

#[test]
fn a_condition_about_the_instance_is_said_when_the_statement_moves() {
    let mut s3 = orders();
    s3["Condition"] = json!({"StringLike": {"aws:PrincipalArn": "*nodes.shop.test"}});
    let (mut spec, s) = blue(
        role(
            "nodes.shop.test",
            &[("additional.nodes.shop.test", document(json!([s3])))],
            &[],
        ),
        vec![account("api", None)],
    );
    wish(
        &mut spec,
        "web/api",
        RoleWish {
            from_node_role: vec!["additional.nodes.shop.test/Orders".into()],
            ..RoleWish::default()
        },
    );
    says(
        &plan(&spec, &s),
        "IAM-04",
        Severity::Warning,
        "green.roles.web/api",
        "aws:principalarn",
    );
}

#[test]
fn a_text_that_is_no_list_of_statements_blocks_and_says_why() {
    let (spec, mut s) = blue(role("other", &[], &[]), vec![]);
    s.aws = None;
    s.kops.cluster.as_mut().expect("a cluster")["spec"]["additionalPolicies"] =
        json!({"node": "[{\"Effect\": "});
    says(
        &plan(&spec, &s),
        "IAM-04",
        Severity::Blocker,
        "kops/spec.additionalPolicies.node",
        "no JSON list",
    );
}

#[test]
fn a_pod_that_must_run_on_masters_is_named() {
    let mut d = deployment("agent", None, json!([]));
    d["spec"]["template"]["spec"]["nodeSelector"] = json!({"node-role.kubernetes.io/master": ""});
    let (spec, s) = blue(
        role("nodes.shop.test", &[], &[]),
        vec![d, deployment("api", None, json!([]))],
    );
    let p = plan(&spec, &s);
    says(
        &p,
        "IAM-04",
        Severity::Warning,
        "deployment/web/agent",
        "runs on masters",
    );
    assert_eq!(
        of(&p, "IAM-04").len(),
        1,
        "and nothing else leans on anything"
    );
}

#[test]
fn rights_of_kube2iam_and_of_external_dns_have_another_way_already() {
    let (spec, s) = shop();
    let p = plan(&spec, &s);
    let all: Vec<&str> = of(&p, "IAM-04").iter().map(|f| f.object.as_str()).collect();
    assert!(
        !all.iter().any(|o| o.contains("additional.nodes.shop.test")),
        "{all:?}"
    );
    assert!(green(&p, "shop-mailer").existing);
}

// ---- roles that exist

#[test]
fn a_role_whose_trust_policy_is_full_is_copied_and_the_account_gets_the_copy() {
    let mut mailer = role(
        "mailer",
        &[(
            "mail",
            document(json!([{"Effect": "Allow", "Action": "ses:SendEmail", "Resource": "*"}])),
        )],
        &["arn:aws:iam::000000000000:policy/extra"],
    );
    mailer.arn = "arn:aws:iam::000000000000:role/team/mailer".into();
    let (spec, mut s) = blue(
        role("nodes.shop.test", &[], &[]),
        vec![
            account("mailer", Some(&mailer.arn)),
            deployment("mailer", Some("mailer"), json!([])),
        ],
    );
    s.aws
        .as_mut()
        .expect("an account")
        .roles
        .push(mailer.clone());
    let p = plan(&spec, &s);
    assert!(green(&p, "mailer").existing, "it fits");
    assert!(
        p.steps
            .iter()
            .any(|x| x.id == "provision/trust-statement/mailer/CrossfadeShopGreenWebMailer")
    );

    let full: Vec<Value> = (0..4)
        .map(|i| {
            super::trust::statement(
                "eu-west-1",
                Some(&format!("Other{i}")),
                &["platform/mailer"],
            )
        })
        .collect();
    s.aws
        .as_mut()
        .expect("an account")
        .roles
        .last_mut()
        .expect("the mailer")
        .trust = document(json!(full));
    let p = plan(&spec, &s);
    let r = green(&p, "shop-green-web.mailer");
    assert_eq!(
        (r.from.as_deref(), r.path.as_deref()),
        (Some("mailer"), Some("/team/"))
    );
    assert_eq!(r.inline_policies, mailer.inline_policies, "to the letter");
    assert_eq!(
        r.policies,
        ["arn:aws:iam::000000000000:policy/extra", "mail"]
    );
    assert_eq!(
        annotation(&p, "serviceaccount/web/mailer").as_deref(),
        Some("arn:aws:iam::000000000000:role/team/shop-green-web.mailer")
    );
    assert!(!p.steps.iter().any(|x| x.id.contains("trust-statement")));
    says(
        &p,
        "IAM-03",
        Severity::Warning,
        "role/mailer",
        "the quota is 2048",
    );
    says(
        &p,
        "IAM-06",
        Severity::Warning,
        "role/mailer",
        "shop-green-web.mailer",
    );
    // A raised quota is believed.
    s.aws.as_mut().expect("an account").quotas = Some(
        [(
            "iam/L-C07B4B0D".to_string(),
            crate::world::cloud::Quota {
                name: "Role trust policy length".into(),
                value: 4096.0,
                used: None,
            },
        )]
        .into(),
    );
    assert!(green(&plan(&spec, &s), "mailer").existing);
}

#[test]
fn a_role_that_kops_deletes_with_blue_is_made_anew() {
    let mut robot = role(
        "robot.web.sa.shop.test",
        &[("robot", document(json!([orders()])))],
        &[],
    );
    robot
        .tags
        .insert("KubernetesCluster".into(), "shop.test".into());
    let (spec, mut s) = blue(
        role("nodes.shop.test", &[], &[]),
        vec![account("robot", Some(&robot.arn))],
    );
    s.aws.as_mut().expect("an account").roles.push(robot);
    let p = plan(&spec, &s);
    says(
        &p,
        "IAM-03",
        Severity::Warning,
        "role/robot.web.sa.shop.test",
        "`kops delete cluster` deletes this role",
    );
    assert_eq!(
        green(&p, "shop-green-web.robot").grants[0].from,
        "role/robot.web.sa.shop.test robot/Orders"
    );
}

#[test]
fn accounts_that_share_a_role_share_a_statement() {
    let shared = role("shared", &[], &[]);
    let (spec, mut s) = blue(
        role("nodes.shop.test", &[], &[]),
        vec![
            account("a", Some(&shared.arn)),
            account("b", Some(&shared.arn)),
        ],
    );
    s.aws.as_mut().expect("an account").roles.push(shared);
    let p = plan(&spec, &s);
    let steps: Vec<&Value> = p
        .steps
        .iter()
        .filter(|x| x.id.starts_with("provision/trust-statement/"))
        .map(|x| &x.params["resource"]["statement"])
        .collect();
    assert_eq!(steps.len(), 1);
    assert_eq!(
        steps[0]["Condition"]["StringEquals"]["${cluster.issuer}:sub"],
        json!(["system:serviceaccount:web:a", "system:serviceaccount:web:b"])
    );
}

#[test]
fn a_role_of_another_account_is_a_blocker_because_nobody_here_can_change_it() {
    let arn = "arn:aws:iam::111111111111:role/partner";
    let (spec, s) = blue(
        role("nodes.shop.test", &[], &[]),
        vec![account("a", Some(arn))],
    );
    says(
        &plan(&spec, &s),
        "IAM-03",
        Severity::Blocker,
        "role/partner",
        "another account",
    );
}

// ---- IRSA of kops

#[test]
fn accounts_of_the_kops_spec_get_roles_with_the_same_policies_and_a_wildcard_stays_one() {
    let s = kops_snapshot(&corpus("irsa-kops1.31.yaml"));
    let p = plan(&spec("minimal.example.com"), &s);
    let managed = "arn:aws-test:iam::123456789012:policy/UsersManageOwnCredentials";
    let one = green(&p, "shop-green-default.myserviceaccount");
    assert_eq!(one.policies, [managed]);
    assert_eq!(
        one.from.as_deref(),
        Some("myserviceaccount.default.sa.minimal.example.com")
    );
    assert_eq!(
        one.grants[0].from,
        format!(
            "kops/spec.iam.serviceAccountExternalPermissions[default/myserviceaccount] {managed}"
        )
    );
    let wild = p
        .target
        .roles
        .iter()
        .find(|r| r.service_account.as_deref() == Some("test-*/myserviceaccount"))
        .expect("the wildcard");
    assert!(
        wild.name.starts_with("shop-green-wildcard-") && !wild.name.contains('*'),
        "{}",
        wild.name
    );
    let step = p
        .steps
        .iter()
        .find(|x| x.id == format!("provision/role/{}", wild.name))
        .expect("a step");
    assert_eq!(
        step.params["resource"]["trust"]["Statement"][0]["Condition"]["StringLike"]["${cluster.issuer}:sub"],
        "system:serviceaccount:test-*:myserviceaccount"
    );
    let other = green(&p, "shop-green-myapp.myotherserviceaccount");
    assert_eq!(
        other.inline_policies["from-kops"]["Statement"],
        json!([
        {"Effect": "Allow", "Action": ["dynamodb:*"], "Resource": ["*"]},
        {"Effect": "Allow", "Action": ["es:*"], "Resource": ["*"]}])
    );
    assert_eq!(
        p.target.roles.iter().filter(|r| r.from.is_some()).count(),
        3
    );
}

#[test]
fn accounts_under_a_wildcard_are_annotated_and_others_are_not() {
    let mut s = kops_snapshot(&corpus("irsa-kops1.31.yaml"));
    let sa = |ns: &str| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "myserviceaccount", "namespace": ns}});
    s.blue.objects = vec![sa("test-7"), sa("prod"), sa("default")];
    let p = plan(&spec("minimal.example.com"), &s);
    assert!(
        annotation(&p, "serviceaccount/test-7/myserviceaccount")
            .is_some_and(|a| a.contains("wildcard-"))
    );
    assert_eq!(annotation(&p, "serviceaccount/prod/myserviceaccount"), None);
    assert_eq!(
        annotation(&p, "serviceaccount/default/myserviceaccount").as_deref(),
        Some("arn:aws:iam::000000000000:role/shop-green-default.myserviceaccount")
    );
}

// ---- what the corpus says

#[test]
fn external_policies_are_listed_and_the_boundary_of_kops_is_on_every_role_of_green() {
    let p = plan(
        &spec("externalpolicies.example.com"),
        &kops_snapshot(&corpus("external-policies-kops1.22.yaml")),
    );
    for role in ["nodes", "masters"] {
        says(
            &p,
            "IAM-04",
            Severity::NotChecked,
            &format!("role/{role}.externalpolicies.example.com"),
            "only what the kops spec adds",
        );
        says(
            &p,
            "IAM-04",
            Severity::Warning,
            &format!("role/{role}.externalpolicies.example.com/test-policy"),
            "arn:aws-test:iam::123456789000:policy/test-policy",
        );
    }
    let p = plan(
        &spec("complex.example.com"),
        &kops_snapshot(&corpus("complex-legacy-apigroup.yaml")),
    );
    let bounded: Vec<&TargetRole> = p.target.roles.iter().filter(|r| !r.existing).collect();
    assert!(
        bounded.len() >= 4
            && bounded.iter().all(|r| r.boundary.as_deref()
                == Some("arn:aws-test:iam::000000000000:policy/boundaries")),
        "{bounded:?}"
    );
}

#[test]
fn an_instance_profile_of_ones_own_is_resolved_to_its_role_or_said_to_be_unknown() {
    let mut s = kops_snapshot(&corpus("existing-iam-kops1.18.yaml"));
    let p = plan(&spec("existing-iam.example.com"), &s);
    let profile = "arn:aws:iam::422917490108:instance-profile/kops-custom-node-role";
    says(
        &p,
        "IAM-04",
        Severity::NotChecked,
        &format!("role/{profile}"),
        "not known",
    );
    let (_, other) = blue(
        role("custom", &[("own", document(json!([orders()])))], &[]),
        vec![],
    );
    s.aws = other.aws;
    s.aws.as_mut().expect("an account").instance_profiles =
        Some([(profile.to_string(), "custom".to_string())].into());
    let p = plan(&spec("existing-iam.example.com"), &s);
    says(
        &p,
        "IAM-04",
        Severity::Warning,
        "role/custom/own/Orders",
        "orders-assets",
    );
}

/// Everything that a role of green made from blue allows stands on blue, in the same words or in more.
#[test]
fn nothing_is_widened_on_any_plan_of_the_corpus() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/kops");
    let mut statements = 0;
    for entry in std::fs::read_dir(dir).expect("the corpus") {
        let path = entry.expect("readable").path();
        let name = path
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or("")
            .to_string();
        if !name.ends_with(".yaml") || name.contains("REFUSE") {
            continue;
        }
        let s = kops_snapshot(&path);
        let cluster = s
            .kops
            .cluster
            .as_ref()
            .and_then(|c| super::text(c, "/metadata/name"))
            .unwrap_or("")
            .to_string();
        let p = plan(&spec(&cluster), &s);
        statements += traced(&p, &s, &name);
    }
    assert_eq!(
        statements, 2,
        "the two inline statements of the IRSA file; managed policies are attached whole"
    );
    // And with an account: node role, copies, kops's own roles.
    let policy = document(
        json!([orders(), {"Effect": "Allow", "Action": ["ec2:DescribeInstances", "sqs:*"], "Resource": "*"}]),
    );
    let mut robot = role(
        "robot.web.sa.shop.test",
        &[("robot", document(json!([orders()])))],
        &[],
    );
    robot
        .tags
        .insert("KubernetesCluster".into(), "shop.test".into());
    let (mut spec, mut s) = blue(
        role("nodes.shop.test", &[("nodes.shop.test", policy)], &[]),
        vec![account("robot", Some(&robot.arn)), account("api", None)],
    );
    s.aws.as_mut().expect("an account").roles.push(robot);
    wish(
        &mut spec,
        "web/api",
        RoleWish {
            from_node_role: vec!["nodes.shop.test/Orders".into(), "nodes.shop.test/1".into()],
            ..RoleWish::default()
        },
    );
    assert_eq!(traced(&plan(&spec, &s), &s, "account"), 3);
}

/// Counts Allow statements of roles made from blue; each must be within its source.
fn traced(p: &Plan, s: &Snapshot, what: &str) -> usize {
    let mut n = 0;
    for r in p
        .target
        .roles
        .iter()
        .filter(|r| !r.existing && r.from.is_some())
    {
        for arn in r.policies.iter().filter(|x| x.starts_with("arn:")) {
            assert!(
                r.grants.iter().any(|g| g.policy == *arn
                    && g.statement == "*"
                    && g.from.ends_with(arn.as_str())),
                "{what}: {r:?}"
            );
        }
        for (policy, document) in &r.inline_policies {
            for (i, statement) in policy::bodies(document).into_iter().enumerate() {
                let g = r
                    .grants
                    .iter()
                    .find(|g| g.policy == *policy && g.statement == i.to_string())
                    .unwrap_or_else(|| {
                        panic!("{what}: {policy}/{i} of {} comes from nowhere", r.name)
                    });
                let source = source(s, &g.from)
                    .unwrap_or_else(|| panic!("{what}: {} is not on blue", g.from));
                if policy::allows(statement) {
                    assert!(
                        policy::within(statement, &source),
                        "{what}: {statement} is wider than {source}"
                    );
                    n += 1;
                }
            }
        }
    }
    n
}

/// The statement that a trace names.
fn source(s: &Snapshot, from: &str) -> Option<Value> {
    let (place, name) = from.split_once(' ')?;
    if let Some(role) = place.strip_prefix("role/") {
        let r = s.aws.as_ref()?.roles.iter().find(|r| r.name == role)?;
        return r
            .inline_policies
            .iter()
            .flat_map(|(p, d)| policy::statements(p, d))
            .find(|x| x.name == name)
            .map(|x| x.body);
    }
    let account = place
        .strip_prefix("kops/spec.iam.serviceAccountExternalPermissions[")?
        .strip_suffix(']')?;
    let (ns, sa) = account.split_once('/')?;
    let list = s
        .kops
        .cluster
        .as_ref()?
        .pointer("/spec/iam/serviceAccountExternalPermissions")?
        .as_array()?;
    let entry = list
        .iter()
        .find(|e| e["namespace"] == ns && e["name"] == sa)?;
    let inline: Vec<Value> =
        serde_json::from_str(entry.pointer("/aws/inlinePolicy")?.as_str()?).ok()?;
    policy::named("inlinePolicy", &inline)
        .into_iter()
        .find(|x| x.name == name)
        .map(|x| x.body)
}

#[test]
fn sizes_that_iam_refuses_block_before_anything_is_made() {
    let big: Vec<Value> = (0..120).map(|i| json!({"Effect": "Allow", "Action": "s3:GetObject", "Resource": format!("arn:aws:s3:::bucket-{i:03}-of-the-orders-team/*")})).collect();
    let names: Vec<String> = (0..120)
        .map(|i| format!("additional.nodes.shop.test/{i}"))
        .collect();
    let (mut spec, mut s) = blue(
        role(
            "nodes.shop.test",
            &[("additional.nodes.shop.test", document(json!(big)))],
            &[],
        ),
        vec![account("api", None)],
    );
    wish(
        &mut spec,
        "web/api",
        RoleWish {
            from_node_role: names,
            ..RoleWish::default()
        },
    );
    says(
        &plan(&spec, &s),
        "IAM-limits",
        Severity::Blocker,
        "role/shop-green-web.api",
        "IAM allows 10240",
    );
    spec.green.roles.clear();
    assert!(of(&plan(&spec, &s), "IAM-limits").is_empty());
    s.aws.as_mut().expect("an account").roles =
        (0..998).map(|i| role(&format!("r{i}"), &[], &[])).collect();
    says(
        &plan(&spec, &s),
        "IAM-limits",
        Severity::Blocker,
        "aws.roles",
        "998 roles and green needs 5 more, the quota is 1000",
    );
}

#[test]
fn a_policy_of_another_account_or_one_that_is_gone_cannot_be_attached() {
    let kept = "arn:aws:iam::000000000000:policy/kept";
    let attached = [
        kept,
        "arn:aws:iam::000000000000:policy/gone",
        "arn:aws:iam::111111111111:policy/theirs",
        "arn:aws:iam::aws:policy/AmazonSESFullAccess",
    ];
    let mut robot = role("robot.web.sa.shop.test", &[], &attached);
    robot
        .tags
        .insert("KubernetesCluster".into(), "shop.test".into());
    let (spec, mut s) = blue(
        role("nodes.shop.test", &[], &[]),
        vec![account("robot", Some(&robot.arn))],
    );
    let aws = s.aws.as_mut().expect("an account");
    aws.roles.push(robot);
    aws.policies = Some([(kept.to_string(), document(json!([orders()])))].into());
    let p = plan(&spec, &s);
    says(
        &p,
        "IAM-limits",
        Severity::Blocker,
        "role/shop-green-web.robot",
        "policy/gone does not exist",
    );
    says(
        &p,
        "IAM-limits",
        Severity::Blocker,
        "role/shop-green-web.robot",
        "policy/theirs is of account 111111111111",
    );
    assert_eq!(of(&p, "IAM-limits").len(), 2);
}

#[test]
fn roles_follow_the_path_of_blues_node_role() {
    let mut node = role("nodes.shop.test", &[], &[]);
    node.arn = format!("arn:aws:iam::{ACCOUNT}:role/platform/kops/nodes.shop.test");
    let (spec, s) = blue(node, vec![]);
    let p = plan(&spec, &s);
    assert_eq!(
        green(&p, "shop-green-cluster").path.as_deref(),
        Some("/platform/kops/")
    );
    let cluster = p
        .steps
        .iter()
        .find(|x| x.id == "provision/cluster/shop-green")
        .expect("a step");
    assert_eq!(
        cluster.params["resource"]["roleArn"],
        "arn:aws:iam::${account}:role/platform/kops/shop-green-cluster"
    );
}
