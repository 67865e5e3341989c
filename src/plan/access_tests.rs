//! Who gets in: each mapping of blue's authenticator, and each way in that EKS does not know.

use super::*;
use crate::plan::tests::{corpus, kops_snapshot, spec};
use crate::world::cloud::{CloudIdentity, Inventory, Role};
use serde_json::json;

const ADMIN: &str = "arn:aws:iam::000000000000:role/Admin";

fn authenticator(yaml: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "aws-iam-authenticator", "namespace": "kube-system"}, "data": {"config.yaml": yaml}})
}

fn with(objects: Vec<Value>) -> Access {
    let mut s = Snapshot::default();
    s.blue.objects = objects;
    access(&spec("x"), &s)
}

fn mapping(arn: &str, username: &str, groups: &[&str]) -> Value {
    json!({"apiVersion": "iamauthenticator.k8s.aws/v1alpha1", "kind": "IAMIdentityMapping", "metadata": {"name": "m"}, "spec": {"arn": arn, "username": username, "groups": groups}})
}

#[track_caller]
fn says(a: &Access, severity: Severity, part: &str) {
    assert!(
        a.problems
            .iter()
            .any(|p| p.severity == severity && p.message.contains(part)),
        "{:#?}",
        a.problems
    );
}

#[test]
fn both_config_maps_and_the_objects_of_the_authenticator_become_entries() {
    let config = "clusterID: shop.test\nserver:\n  mapRoles:\n  - roleARN: arn:aws:iam::000000000000:role/Admin\n    username: admin:{{SessionName}}\n    groups: [system:masters]\n  mapUsers:\n  - userARN: arn:aws:iam::000000000000:user/ann\n    username: ann\n    groups: [shop:dev]\n";
    let aws_auth = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "aws-auth", "namespace": "kube-system"},
        "data": {"mapRoles": "- rolearn: arn:aws:iam::000000000000:role/nodes.shop.test\n  username: system:node:{{EC2PrivateDNSName}}\n  groups: [system:bootstrappers, system:nodes]\n- rolearn: arn:aws:iam::000000000000:role/ci\n  username: ci\n  groups: [shop:ci]\n"}});
    let a = with(vec![
        authenticator(config),
        aws_auth,
        mapping("arn:aws:iam::000000000000:role/ci", "ci", &["shop:deploy"]),
    ]);
    let entries: Vec<(&str, Vec<&str>, Option<&str>)> = a
        .entries
        .iter()
        .map(|e| {
            (
                e.principal.as_str(),
                e.groups.iter().map(String::as_str).collect(),
                e.policy.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        entries,
        [
            (ADMIN, vec![], Some("AmazonEKSClusterAdminPolicy")),
            (
                "arn:aws:iam::000000000000:role/ci",
                vec!["shop:ci", "shop:deploy"],
                None
            ),
            ("arn:aws:iam::000000000000:user/ann", vec!["shop:dev"], None),
        ],
        "the nodes' role gets its entry from EKS"
    );
    assert!(a.entries.iter().all(|e| e.from == "blue"));
}

#[test]
fn the_user_of_migration_yaml_wins_on_the_same_principal() {
    let mut s = spec("x");
    s.green.access =
        serde_json::from_value(json!([{"principal": ADMIN, "policy": "AmazonEKSViewPolicy"}]))
            .expect("access");
    let mut snapshot = Snapshot::default();
    snapshot.blue.objects = vec![mapping(ADMIN, "admin", &["system:masters"])];
    let a = access(&s, &snapshot);
    assert_eq!(a.entries.len(), 1);
    assert_eq!(
        (a.entries[0].policy.as_deref(), a.entries[0].from.as_str()),
        (Some("AmazonEKSViewPolicy"), "migration.yaml")
    );
}

#[test]
fn other_groups_of_the_system_are_refused_and_the_rest_of_the_mapping_stays() {
    let a = with(vec![mapping(
        ADMIN,
        "",
        &["system:kube-scheduler", "shop:ops"],
    )]);
    says(
        &a,
        Severity::Warning,
        "is in system:kube-scheduler, which EKS refuses",
    );
    assert_eq!(
        (a.entries[0].groups.as_slice(), &a.entries[0].policy),
        (["shop:ops".to_string()].as_slice(), &None)
    );
}

#[test]
fn sessions_and_short_account_ids_become_no_entry() {
    let a = with(vec![mapping(
        "arn:aws:sts::000000000000:assumed-role/Admin/ann",
        "ann",
        &["shop:ops"],
    )]);
    says(&a, Severity::Warning, "is a session");
    assert!(a.entries.is_empty());
    // The corpus's own mapping has an account id of eight digits.
    let s = kops_snapshot(&corpus("iam-authenticator-mappings-cluster-only.yaml"));
    let a = access(&spec("minimal.example.com"), &s);
    says(
        &a,
        Severity::Warning,
        "no account id of 12 digits (00000000)",
    );
    assert!(a.entries.is_empty());
}

#[test]
fn a_role_of_identity_center_gets_back_the_path_that_the_authenticator_had_to_leave_out() {
    let short = "arn:aws:iam::000000000000:role/AWSReservedSSO_Ops_0123456789abcdef";
    let full = "arn:aws:iam::000000000000:role/aws-reserved/sso.amazonaws.com/eu-west-1/AWSReservedSSO_Ops_0123456789abcdef";
    let a = with(vec![mapping(short, "ops", &["shop:ops"])]);
    says(&a, Severity::Warning, "without its path");
    let mut s = Snapshot::default();
    s.blue.objects = vec![
        mapping(short, "ops", &["shop:ops"]),
        mapping(ADMIN, "gone", &["shop:ops"]),
    ];
    s.aws = Some(Inventory {
        identity: CloudIdentity {
            account: "000000000000".into(),
            region: "eu-west-1".into(),
            arn: String::new(),
        },
        roles: vec![Role {
            name: "AWSReservedSSO_Ops_0123456789abcdef".into(),
            arn: full.into(),
            trust: Value::Null,
            managed_policies: vec![],
            inline_policies: Default::default(),
            boundary: None,
            tags: Default::default(),
        }],
        ..Inventory::default()
    });
    let a = access(&spec("x"), &s);
    assert_eq!(
        a.entries
            .iter()
            .map(|e| e.principal.as_str())
            .collect::<Vec<_>>(),
        [full]
    );
    says(
        &a,
        Severity::Warning,
        "is a role that the account does not have",
    );
}

#[test]
fn a_binding_of_the_user_behind_a_template_is_said() {
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "view"}, "subjects": [{"kind": "User", "name": "ops:ann"}]});
    let a = with(vec![
        mapping(ADMIN, "ops:{{SessionName}}", &["shop:ops"]),
        binding,
    ]);
    says(&a, Severity::Warning, "templates do not carry over");
    let a = with(vec![mapping(ADMIN, "ops:{{SessionName}}", &["shop:ops"])]);
    says(&a, Severity::Info, "calls its users ops:{{SessionName}}");
    assert_eq!(a.problems.len(), 1, "{:?}", a.problems);
}

#[test]
fn logins_that_eks_does_not_know_are_said_one_by_one() {
    let mut s = Snapshot::default();
    s.kops.cluster = Some(
        json!({"spec": {"authentication": {"kopeio": {}}, "kubeAPIServer": {"oidcIssuerURL": "https://login.shop.test", "oidcClientID": "k8s", "oidcCAFile": "/srv/ca.crt", "basicAuthFile": "/srv/basic.csv"}}}),
    );
    let a = access(&spec("x"), &s);
    says(
        &a,
        Severity::Warning,
        "OIDC at https://login.shop.test (client k8s)",
    );
    says(&a, Severity::Blocker, "certificate authority of its own");
    says(&a, Severity::Warning, "kopeio");
    says(&a, Severity::Info, "client certificates");
    // VER-05 speaks of the file with passwords.
    assert_eq!(a.problems.len(), 4, "{:?}", a.problems);
    assert!(!a.problems.iter().any(|p| p.message.contains("password")));
    s.kops.cluster = Some(json!({"spec": {"kubernetesVersion": "1.18.20"}}));
    says(
        &access(&spec("x"), &s),
        Severity::Info,
        "the admin's password",
    );
}

/// kops.md 1.3: the same settings by the block of later releases.
#[test]
fn the_oidc_block_of_later_releases_is_read_like_the_flags() {
    let mut s = Snapshot::default();
    s.kops.cluster = Some(
        json!({"spec": {"authentication": {"oidc": {"issuerURL": "https://login.shop.test", "clientID": "k8s", "caFile": "/srv/ca.crt", "groupsClaims": ["groups", "roles"]}}}}),
    );
    let a = access(&spec("x"), &s);
    says(&a, Severity::Warning, "(client k8s)");
    says(&a, Severity::Blocker, "certificate authority of its own");
    says(&a, Severity::Warning, "several claims (groups, roles)");
    s.kops.cluster = Some(
        json!({"spec": {"authentication": {"oidc": {"issuerURL": "https://login.shop.test", "groupsClaims": ["groups"]}}}}),
    );
    assert_eq!(access(&spec("x"), &s).problems.len(), 2);
}

#[test]
fn a_broken_mapping_is_a_finding_and_not_a_crash() {
    let a = with(vec![authenticator("server: [")]);
    says(&a, Severity::Warning, "cannot be read");
}
