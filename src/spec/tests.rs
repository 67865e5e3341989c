use crate::error::{Error, Kind};
use crate::spec::{parse, schema};
use crate::yaml;

const GOOD: &str = r#"apiVersion: crossfade.dev/v1alpha1
kind: Migration
name: shop
blue:
  cluster: shop.test
green:
  name: shop-green
  version: "1.36"
  serviceCidr: 10.100.0.0/16
  access:
  - principal: arn:aws:iam::000000000000:role/admins
    policy: AmazonEKSClusterAdminPolicy
aws:
  account: "000000000000"
dns:
  zones: [shop.test]
  canary: status.shop.test
  lowTtl: 5
workloads:
  singletons: [deployment/platform/consumer]
data:
- name: orders
  mode: postgres
  blue: {host: 10.20.0.5, database: orders, admin: postgres, role: orders}
  green: {host: 10.20.0.6, database: orders, admin: postgres, role: orders}
  writeProbe: {host: orders.shop.test, path: /orders}
"#;

#[test]
fn a_good_spec_is_read_and_survives_being_written() {
    let spec = parse(GOOD, "m.yaml").expect("good");
    assert_eq!(spec.aws.account.as_deref(), Some("000000000000"));
    assert_eq!(spec.data[0].blue.as_ref().map(|d| d.port), Some(5432));
    let again = parse(&yaml::to_string(&spec).expect("written"), "m.yaml").expect("read again");
    assert_eq!(spec, again);
}

fn refused(from: &str, to: &str) -> Error {
    assert!(GOOD.contains(from), "the test's own text lacks {from}");
    let e = parse(&GOOD.replace(from, to), "m.yaml").expect_err(to);
    assert_eq!(e.kind, Kind::BadInput, "{e:?}");
    assert!(!e.remedy.is_empty() && e.excerpt.is_some(), "{e:?}");
    e
}

/// Every row: what is replaced in a good spec, by what, and where the error must point.
#[test]
fn each_rule_points_at_the_line_that_breaks_it() {
    for (from, to, at, says) in [
        (
            "v1alpha1",
            "v1beta1",
            "m.yaml:1:13",
            "unknown version of the spec",
        ),
        (
            "kind: Migration",
            "kind: Plan",
            "m.yaml:2:7",
            "unknown kind",
        ),
        (
            "name: shop\n",
            "name: Shop\n",
            "m.yaml:3:7",
            "cannot name a migration",
        ),
        (
            "cluster: shop.test",
            "cluster: \"\"",
            "m.yaml:5:12",
            "is empty",
        ),
        (
            "name: shop-green",
            "name: shop.green",
            "m.yaml:7:9",
            "cannot name an EKS cluster",
        ),
        (
            "cluster: shop.test",
            "cluster: shop-green",
            "m.yaml:7:9",
            "blue's name",
        ),
        ("\"1.36\"", "1.36.3", "m.yaml:8:12", "no Kubernetes version"),
        (
            "10.100.0.0/16",
            "100.64.0.0/13",
            "m.yaml:9:16",
            "outside the private ranges",
        ),
        ("10.100.0.0/16", "10.0.0.0/8", "m.yaml:9:16", "not between"),
        (
            "10.100.0.0/16",
            "10.100.1.0/16",
            "m.yaml:9:16",
            "first address is 10.100.0.0",
        ),
        (
            ":role/admins",
            ":assumed-role",
            "m.yaml:11:16",
            "no IAM role or user",
        ),
        (
            "policy: AmazonEKSClusterAdminPolicy",
            "groups: [\"system:masters\"]",
            "m.yaml:12:14",
            "EKS refuses",
        ),
        (
            "\"000000000000\"",
            "12345",
            "m.yaml:14:12",
            "no AWS account",
        ),
        (
            "canary: status.shop.test",
            "canary: status.myshop.test",
            "m.yaml:17:11",
            "in none of the zones",
        ),
        (
            "lowTtl: 5",
            "lowTtl: 0",
            "m.yaml:18:11",
            "`dns.lowTtl` is 0",
        ),
        (
            "lowTtl: 5",
            "lowTtl: 3601",
            "m.yaml:18:11",
            "`dns.lowTtl` is 3601",
        ),
        (
            "deployment/platform/consumer",
            "platform/consumer",
            "m.yaml:20:16",
            "no workload",
        ),
        (
            "  green: {host: 10.20.0.6, database: orders, admin: postgres, role: orders}\n",
            "",
            "m.yaml:22:3",
            "no `green` database",
        ),
        ("10.20.0.6", "10.20.0.5", "m.yaml:25:3", "the same database"),
        ("mode: postgres", "mode: shared", "m.yaml:24:3", "is shared"),
        (
            "path: /orders",
            "path: orders",
            "m.yaml:26:46",
            "no leading",
        ),
        (
            "10.20.0.6, database: orders, admin: postgres",
            "10.20.0.6, database: orders, admin: orders",
            "m.yaml:25:67",
            "both the admin",
        ),
    ] {
        let e = refused(from, to);
        assert_eq!(
            (e.at.as_str(), e.message.contains(says)),
            (at, true),
            "{to}: {e:?}"
        );
    }
}

#[test]
fn a_misspelt_key_a_wrong_type_an_empty_file_and_two_documents_are_told_apart() {
    let e = refused("lowTtl", "lowTll");
    assert_eq!(
        (e.at.as_str(), e.remedy.as_str()),
        ("m.yaml:18:3", "did you mean `lowTtl`?")
    );
    assert_eq!(refused("lowTtl: 5", "lowTtl: soon").at, "m.yaml:18:11");
    assert!(
        refused("mode: postgres", "mode: mysql")
            .message
            .contains("unknown value `mysql`")
    );
    assert_eq!(
        parse("", "m.yaml").expect_err("empty").message,
        "the file is empty"
    );
    let two = parse(&format!("{GOOD}---\n{GOOD}"), "m.yaml").expect_err("two");
    assert!(two.message.contains("more than one document"), "{two:?}");
    assert!(parse("just words\n", "m.yaml").is_err());
}

#[test]
fn two_data_sets_of_one_name_are_refused() {
    let twice = format!("{GOOD}- name: orders\n  mode: shared\n");
    let e = parse(&twice, "m.yaml").expect_err("twice");
    assert_eq!(e.at, "m.yaml:27:9");
}

#[test]
fn a_waiver_names_a_check_that_exists_and_may_be_waived_and_says_why() {
    let with = |w: &str| parse(&format!("{GOOD}waivers:\n{w}"), "m.yaml");
    let good = with(
        "- {check: NET-06, object: \"configmap/a/*\", reason: read by Ann, expires: \"2026-12-31\"}\n- {check: KOPS-gossip, reason: leaving anyway, severity: warning}\n",
    );
    assert_eq!(good.expect("good").waivers.len(), 2);
    for (w, at, says) in [
        (
            "- {check: NET-60, reason: x}",
            "m.yaml:28:11",
            "no check `NET-60`",
        ),
        (
            "- {check: net-06, reason: x}",
            "m.yaml:28:11",
            "no check `net-06`",
        ),
        (
            "- {check: FOO-01, reason: x}",
            "m.yaml:28:11",
            "no check `FOO-01`",
        ),
        (
            "- {check: DNS-01, reason: x}",
            "m.yaml:28:11",
            "cannot be waived: two sides",
        ),
        (
            "- {check: ID-01, reason: x, severity: info}",
            "m.yaml:28:11",
            "cannot be waived",
        ),
        (
            "- {check: NET-06, reason: \" \"}",
            "m.yaml:28:27",
            "gives no reason",
        ),
        (
            "- {check: NET-06, object: \"*\", reason: x}",
            "m.yaml:28:27",
            "names no object",
        ),
        (
            "- {check: NET-06, object: \"a/*/b\", reason: x}",
            "m.yaml:28:27",
            "names no object",
        ),
        (
            "- {check: NET-06, reason: x, expires: \"31.12.2026\"}",
            "m.yaml:28:39",
            "no day",
        ),
        (
            "- {check: NET-06, reason: x}\n- {check: NET-06, reason: y}",
            "m.yaml:29:11",
            "waived twice",
        ),
    ] {
        let e = with(w).expect_err(w);
        assert_eq!(
            (e.at.as_str(), e.message.contains(says)),
            (at, true),
            "{w}: {e:?}"
        );
    }
    assert!(with("- {check: NET-06}").is_err(), "a reason is no option");
}

#[test]
fn the_committed_schema_is_the_types() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/plans/migration.schema.json");
    let fresh = serde_json::to_string_pretty(&schema()).expect("json") + "\n";
    if std::env::var_os("CROSSFADE_BLESS").is_some() {
        std::fs::write(path, &fresh).expect("written");
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == fresh,
        "run `crossfade schema > plans/migration.schema.json`"
    );
}

#[test]
fn the_schema_refuses_unknown_keys_everywhere() {
    fn walk(v: &serde_json::Value, path: &str) {
        if let Some(o) = v.as_object() {
            let replace = v.get("additionalProperties").is_some_and(|a| a.is_object());
            if o.contains_key("properties") && !replace {
                assert_eq!(v["additionalProperties"], false, "{path} allows any key");
            }
            o.iter().for_each(|(k, v)| walk(v, &format!("{path}/{k}")));
        }
    }
    walk(&schema(), "");
}

/// eks.md 1.6: what a managed node group cannot be is refused with its line, before anything is planned.
#[test]
fn wishes_for_node_groups_are_checked_where_they_stand() {
    let with = |wish: &str| {
        GOOD.replace(
            "  serviceCidr: 10.100.0.0/16\n",
            &format!("  nodeGroups:\n    nodes:\n{wish}"),
        )
    };
    for (wish, at, says) in [
        (
            "      amiType: AL2023_x86_64\n",
            "m.yaml:11:16",
            "is no AMI type that crossfade makes nodes of",
        ),
        (
            "      instanceTypes: [m5.large, m5]\n",
            "m.yaml:11:33",
            "`m5` is no instance type",
        ),
        (
            "      instanceTypes: [m5.large, m5.large]\n",
            "m.yaml:11:33",
            "named twice",
        ),
        ("      max: 0\n", "m.yaml:11:12", "the largest size is 0"),
        (
            "      min: 3\n      max: 2\n",
            "m.yaml:11:12",
            "above the largest 2",
        ),
        (
            "      labels: {node-role.kubernetes.io/web: \"\"}\n",
            "m.yaml:11:",
            "EKS refuses the label",
        ),
        ("      labels: {tier: -web}\n", "m.yaml:11:", "is no label"),
    ] {
        let e = parse(&with(wish), "m.yaml").expect_err(wish);
        assert_eq!(e.kind, Kind::BadInput, "{e:?}");
        assert!(e.at.starts_with(at), "{wish}: {}", e.at);
        assert!(e.message.contains(says), "{wish}: {}", e.message);
        assert!(!e.remedy.is_empty());
    }
    let good = with(
        "      amiType: BOTTLEROCKET_x86_64\n      instanceTypes: [m6i.large, u-6tb1.56xlarge]\n      min: 1\n      max: 4\n      labels: {shop.test/tier: web}\n      splitByZone: true\n      hostChanges: false\n",
    );
    let spec = parse(&good, "m.yaml").expect("good");
    assert_eq!(spec.green.node_groups["nodes"].max, Some(4));
}

#[test]
fn access_policies_are_those_of_eks_and_a_role_wish_says_one_thing() {
    let e = refused("AmazonEKSClusterAdminPolicy", "AmazonEKSClusterAdmin");
    assert!(
        e.message.contains("no access policy of EKS")
            && e.remedy.contains("AmazonEKSClusterAdminPolicy"),
        "{e:?}"
    );
    let with = |account: &str, wish: &str| {
        parse(
            &GOOD.replace(
                "aws:\n",
                &format!("  roles:\n    {account}: {wish}\naws:\n"),
            ),
            "m.yaml",
        )
    };
    for good in [
        "{role: orders}",
        "{fromNodeRole: [additional.nodes.shop.test/0]}",
        "{policies: [\"arn:aws:iam::000000000000:policy/x\"]}",
    ] {
        with("web/api", good).expect(good);
    }
    for (account, wish, says) in [
        ("api", "{role: orders}", "names no service account"),
        ("web/api", "{}", "gets nothing"),
        (
            "web/api",
            "{role: orders, fromNodeRole: [a/0]}",
            "a role that exists and rights for a new one",
        ),
        ("web/api", "{fromNodeRole: [Orders]}", "names no statement"),
        ("web/api", "{policies: [ReadOnly]}", "no managed policy"),
    ] {
        let e = with(account, wish).expect_err(wish);
        assert!(e.message.contains(says), "{e:?}");
    }
}

/// What is written under `green` or `aws`, and what the error says; each points at a line.
#[test]
fn what_eks_kms_cloudwatch_or_s3_would_refuse_is_refused_in_the_file() {
    let version = "  version: \"1.36\"\n";
    for (what, says) in [
        ("controlPlane: {logs: [audits]}", "`audits` is no log"),
        ("controlPlane: {logs: [audit, audit]}", "named twice"),
        (
            "controlPlane: {logs: [audit], logDays: 31}",
            "keeps no logs for 31 days",
        ),
        ("controlPlane: {logDays: 30}", "no logs to keep"),
        (
            "controlPlane: {secretsKey: alias/green}",
            "no ARN of a KMS key",
        ),
        (
            "controlPlane: {secretsKey: \"arn:aws:kms:eu-west-1:000000000000:alias/green\"}",
            "no ARN of a KMS key",
        ),
        (
            "controlPlane: {securityGroups: [sg-1, sg-2, sg-3, sg-4, sg-5]}",
            "5 security groups",
        ),
        (
            "controlPlane: {securityGroups: [web]}",
            "no security group id",
        ),
        ("nodes: {volumeKey: \"\"}", "is empty"),
        (
            "identity: {accounts: {mailer: podIdentity}}",
            "names no service account",
        ),
        (
            "identity: {accounts: {\"test-*/robot\": podIdentity}}",
            "names no service account",
        ),
    ] {
        let e = refused(version, &format!("{version}  {what}\n"));
        assert!(e.message.contains(says), "{what}: {}", e.message);
    }
    for name in ["s3://journal", "Journal", "jo", "a..b", "-journal"] {
        let account = "  account: \"000000000000\"\n";
        let e = refused(
            account,
            &format!("{account}  stateBucket: {{name: \"{name}\"}}\n"),
        );
        assert!(e.message.contains("cannot name a bucket"), "{}", e.message);
    }
}

#[test]
fn a_control_plane_is_protected_and_in_standard_support_unless_somebody_says_otherwise() {
    let spec = parse(GOOD, "m.yaml").expect("good");
    assert!(spec.green.control_plane.deletion_protection);
    assert_eq!(spec.green.control_plane.support.word(), "STANDARD");
    let text = GOOD.replace(
        "  version: \"1.36\"\n",
        "  version: \"1.36\"\n  controlPlane: {logs: [audit], logDays: 90, support: extended, deletionProtection: false}\n  addons: {coredns: {version: v1.12.4-eksbuild.1, conflicts: preserve, configuration: {replicaCount: 3}}}\n  identity: {workloads: podIdentity, accounts: {platform/legacy: irsa}}\n",
    );
    let spec = parse(&text, "m.yaml").expect("good");
    let plane = &spec.green.control_plane;
    assert!(!plane.deletion_protection && plane.log_days == Some(90));
    assert_eq!(plane.support.word(), "EXTENDED");
    let dns = &spec.green.addons["coredns"];
    assert_eq!(dns.conflicts.map(|c| c.word()), Some("PRESERVE"));
    assert_eq!(
        dns.configuration,
        Some(serde_json::json!({"replicaCount": 3}))
    );
    use crate::spec::model::Identity;
    let identity = &spec.green.identity;
    assert_eq!(identity.of("shop/web", false), Identity::PodIdentity);
    assert_eq!(identity.of("platform/legacy", false), Identity::Irsa);
    assert_eq!(identity.of("kube-system/aws-node", true), Identity::Irsa);
    assert_eq!(
        identity.of("test-*/robot", false),
        Identity::Irsa,
        "an association names one account"
    );
    let again = parse(&yaml::to_string(&spec).expect("written"), "m.yaml").expect("read again");
    assert_eq!(spec, again);
}
