//! Each check of the family fires on the company that has its problem, and is silent on the one that has not.

use crate::checks::samples::{empty, object, spec, with, workload};
use crate::plan::model::{Finding, Plan, Severity};
use crate::plan::plan;
use crate::snapshot::model::Snapshot;
use crate::world::cloud::Role;
use serde_json::{Value, json};

fn of<'p>(p: &'p Plan, id: &str) -> Vec<&'p Finding> {
    p.findings.iter().filter(|f| f.id == id).collect()
}

#[track_caller]
fn says(p: &Plan, id: &str, severity: Severity, part: &str) {
    let all = of(p, id);
    assert!(
        all.iter()
            .any(|f| f.severity == severity && f.message.contains(part)),
        "{id}: {all:#?}"
    );
}

fn sure() -> Snapshot {
    let mut s = empty();
    s.kops.cluster.as_mut().expect("a cluster")["spec"]["authorization"] = json!({"rbac": {}});
    s
}

fn role(name: &str, trusts: Value) -> Role {
    Role {
        name: name.into(),
        arn: format!("arn:aws:iam::000000000000:role/{name}"),
        trust: json!({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": trusts, "Action": "sts:AssumeRole"}]}),
        managed_policies: vec![],
        inline_policies: Default::default(),
        boundary: None,
        tags: Default::default(),
    }
}

fn account(name: &str, arn: Option<&str>) -> Value {
    let body = arn.map_or(
        json!({}),
        |a| json!({"metadata": {"annotations": {"eks.amazonaws.com/role-arn": a}}}),
    );
    object("v1", "ServiceAccount", name, body)
}

#[test]
fn iam_01_the_default_role_of_kube2iam_is_a_role_that_nobody_mapped() {
    let agent = |args: Value| {
        workload(
            "DaemonSet",
            "kube2iam",
            "jtblin/kube2iam:0.10.7",
            json!({"containers": [{"name": "a", "image": "jtblin/kube2iam:0.10.7", "args": args}]}),
        )
    };
    let p = plan(
        &spec(),
        &with(vec![agent(json!([
            "--host-ip=$(HOST_IP)",
            "--default-role=pods"
        ]))]),
    );
    says(
        &p,
        "IAM-01",
        Severity::Blocker,
        "gives role pods to every pod",
    );
    let p = plan(&spec(), &with(vec![agent(json!(["--host-ip=$(HOST_IP)"]))]));
    assert!(of(&p, "IAM-01").is_empty());
}

#[test]
fn iam_02_an_account_with_two_roles_by_two_ways_blocks() {
    let one = "arn:aws:iam::000000000000:role/one";
    let mut d = workload(
        "Deployment",
        "api",
        "api:1",
        json!({"serviceAccountName": "api"}),
    );
    d["spec"]["template"]["metadata"]["annotations"] = json!({"iam.amazonaws.com/role": "two"});
    let p = plan(&spec(), &with(vec![account("api", Some(one)), d.clone()]));
    says(
        &p,
        "IAM-02",
        Severity::Blocker,
        "an account has one role on green",
    );
    d["spec"]["template"]["metadata"]["annotations"] = json!({"iam.amazonaws.com/role": one});
    let p = plan(&spec(), &with(vec![account("api", Some(one)), d]));
    assert!(of(&p, "IAM-02").is_empty());
}

#[test]
fn iam_05_workloads_new_to_web_identity_are_counted_and_an_old_cli_is_refused() {
    let by_agent = |image: &str| {
        let mut d = workload(
            "Deployment",
            "api",
            image,
            json!({"serviceAccountName": "api"}),
        );
        d["spec"]["template"]["metadata"]["annotations"] = json!({"iam.amazonaws.com/role": "one"});
        d
    };
    let mut s = with(vec![
        account("api", None),
        by_agent("amazon/aws-cli:1.16.100"),
    ]);
    s.aws.as_mut().expect("an account").roles = vec![role("one", json!({"AWS": "x"}))];
    let p = plan(&spec(), &s);
    says(
        &p,
        "IAM-05",
        Severity::Warning,
        "by web identity for the first time: deployment/web/api",
    );
    says(&p, "IAM-05", Severity::Blocker, "AWS CLI 1.16.100");
    s.blue.objects[1] = by_agent("amazon/aws-cli:2.15.0");
    assert!(
        !of(&plan(&spec(), &s), "IAM-05")
            .iter()
            .any(|f| f.severity == Severity::Blocker)
    );
    // Whoever uses it on blue already is no news.
    let mut d = by_agent("api:1");
    d["spec"]["template"]["metadata"] = json!({"labels": {"app": "api"}});
    s.blue.objects = vec![
        account("api", Some("arn:aws:iam::000000000000:role/one")),
        d,
    ];
    assert!(of(&plan(&spec(), &s), "IAM-05").is_empty());
}

#[test]
fn iam_06_a_role_that_trusts_blues_nodes_is_lost_to_green_until_it_trusts_the_heir() {
    let mut s = sure();
    let mut node = role("nodes.shop.test", json!({"Service": "ec2.amazonaws.com"}));
    node.inline_policies = [("additional.nodes.shop.test".to_string(), json!({"Statement": [{"Sid": "Chain", "Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "arn:aws:iam::000000000000:role/partner"}]}))].into();
    let partner = role(
        "partner",
        json!({"AWS": "arn:aws:iam::000000000000:role/nodes.shop.test"}),
    );
    let other = role("other", json!({"Service": "lambda.amazonaws.com"}));
    s.aws.as_mut().expect("an account").roles = vec![node, other, partner];
    let p = plan(&spec(), &s);
    says(&p, "IAM-06", Severity::Warning, "nothing on green will");
    assert_eq!(
        of(&p, "IAM-06").len(),
        1,
        "the other role trusts nobody of blue"
    );
    let mut with_wish = spec();
    with_wish.green.roles = serde_json::from_value(
        json!({"web/api": {"fromNodeRole": ["additional.nodes.shop.test/Chain"]}}),
    )
    .expect("a wish");
    says(
        &plan(&with_wish, &s),
        "IAM-06",
        Severity::Blocker,
        "shop-green-web.api may assume it on green",
    );
}

#[test]
fn iam_07_a_group_of_the_authenticator_is_known_on_green() {
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "ops"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}, "subjects": [{"kind": "Group", "name": "shop:ops"}]});
    let p = plan(&spec(), &with(vec![binding.clone()]));
    says(
        &p,
        "IAM-07",
        Severity::Warning,
        "no access entry of green gives: shop:ops",
    );
    let mapping = json!({"apiVersion": "iamauthenticator.k8s.aws/v1alpha1", "kind": "IAMIdentityMapping", "metadata": {"name": "m"}, "spec": {"arn": "arn:aws:iam::000000000000:user/ann", "username": "ann", "groups": ["shop:ops"]}});
    let p = plan(&spec(), &with(vec![binding, mapping]));
    assert!(
        !of(&p, "IAM-07")
            .iter()
            .any(|f| f.severity == Severity::Warning),
        "{:?}",
        of(&p, "IAM-07")
    );
    assert!(p.steps.iter().any(|s| s.id == "provision/access-entry/shop-green/arn:aws:iam::000000000000:user/ann"));
}

#[test]
fn iam_08_keys_in_secrets_are_named_and_keys_in_plain_text_are_worse() {
    let secret = |key: &str| {
        object(
            "v1",
            "Secret",
            "mail",
            json!({"type": "Opaque", "data": {key: "hmac-sha256:00:20"}}),
        )
    };
    let p = plan(&spec(), &with(vec![secret("AWS_SECRET_ACCESS_KEY")]));
    says(&p, "IAM-08", Severity::Info, "holds AWS access keys");
    assert!(of(&plan(&spec(), &with(vec![secret("password")])), "IAM-08").is_empty());
    let plain = workload(
        "Deployment",
        "api",
        "api:1",
        json!({"containers": [{"name": "a", "image": "api:1", "env": [{"name": "AWS_ACCESS_KEY_ID", "value": "CANARY-key"}]}]}),
    );
    let p = plan(&spec(), &with(vec![plain]));
    says(&p, "IAM-08", Severity::Warning, "plain text");
    assert!(
        !of(&p, "IAM-08")
            .iter()
            .any(|f| f.message.contains("CANARY")),
        "never the value"
    );
}

#[test]
fn iam_authz_always_allow_names_the_accounts_that_would_lose_everything() {
    let objects = vec![
        workload(
            "Deployment",
            "api",
            "api:1",
            json!({"serviceAccountName": "api"}),
        ),
        workload(
            "Deployment",
            "ops",
            "ops:1",
            json!({"serviceAccountName": "ops"}),
        ),
        workload(
            "Deployment",
            "web",
            "web:1",
            json!({"automountServiceAccountToken": false}),
        ),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "ops", "namespace": "web"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "ops"}, "subjects": [{"kind": "ServiceAccount", "name": "ops"}]}),
    ];
    let mut s = with(objects);
    let mut set = |v: Value, version: Option<&str>| {
        s.kops.cluster.as_mut().expect("a cluster")["spec"]["authorization"] = v;
        s.kops.kops_version = version.map(String::from);
        plan(&spec(), &s)
    };
    let p = set(json!({"alwaysAllow": {}}), None);
    let found: Vec<&str> = of(&p, "IAM-authz")
        .iter()
        .map(|f| f.message.as_str())
        .collect();
    assert_eq!(
        found,
        ["blue allows every request; on green these accounts would be refused everything: web/api"]
    );
    assert!(of(&set(json!({"rbac": {}}), None), "IAM-authz").is_empty());
    // Nobody wrote it: the default of the kops that made it (kops.md 1.4).
    says(
        &set(Value::Null, Some("1.21.5")),
        "IAM-authz",
        Severity::Blocker,
        "web/api",
    );
    says(
        &set(Value::Null, Some("1.21.5")),
        "IAM-authz",
        Severity::Blocker,
        "when nothing is said, up to 1.35",
    );
    assert!(of(&set(Value::Null, Some("1.36.0")), "IAM-authz").is_empty());
}
