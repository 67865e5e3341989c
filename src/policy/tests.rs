//! What the printed policy allows, read as IAM reads it.

use super::table::{Kind, Op, TABLE};
use super::*;
use crate::plan::tests::shop;
use serde_json::{Value, json};

fn all(plan: &Plan) -> Policies {
    needed(plan, &Verb::ALL.into_iter().collect())
}

fn of(plan: &Plan, verb: Verb) -> Policies {
    needed(plan, &BTreeSet::from([verb]))
}

fn list(v: &Value) -> Vec<&str> {
    match v {
        Value::String(s) => vec![s],
        Value::Array(a) => a.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    }
}

/// `*` stands for anything.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, rest)) => text.strip_prefix(head).is_some_and(|text| {
            (0..=text.len()).any(|n| text.is_char_boundary(n) && fits(rest, &text[n..]))
        }),
    }
}

/// Statements that allow an action on a thing, whatever their conditions.
fn allowing<'p>(p: &'p Policies, action: &str, arn: &str) -> Vec<&'p Value> {
    p.documents
        .iter()
        .flat_map(|d| d.policy["Statement"].as_array().into_iter().flatten())
        .filter(|s| {
            list(&s["Action"]).contains(&action)
                && list(&s["Resource"]).iter().any(|r| fits(r, arn))
        })
        .collect()
}

fn allows(p: &Policies, action: &str, arn: &str) -> bool {
    !allowing(p, action, arn).is_empty()
}

fn shop_plan() -> Plan {
    let (spec, snapshot) = shop();
    crate::plan::plan(&spec, &snapshot)
}

const CLUSTER: &str = "arn:aws:eks:eu-west-1:000000000000:cluster/shop-green";

#[test]
fn a_run_may_make_green_and_nothing_of_another_name() {
    let p = all(&shop_plan());
    assert!(allows(&p, "eks:CreateCluster", CLUSTER));
    assert!(!allows(
        &p,
        "eks:CreateCluster",
        "arn:aws:eks:eu-west-1:000000000000:cluster/other"
    ));
    assert!(!allows(
        &p,
        "eks:DeleteCluster",
        "arn:aws:eks:eu-central-1:000000000000:cluster/shop-green"
    ));
    assert!(allows(
        &p,
        "iam:CreateRole",
        "arn:aws:iam::000000000000:role/shop-green-cluster"
    ));
    assert!(!allows(
        &p,
        "iam:DeleteRole",
        "arn:aws:iam::000000000000:role/nodes.shop.test"
    ));
    assert!(allows(
        &p,
        "route53:ChangeResourceRecordSets",
        "arn:aws:route53:::hostedzone/ZSHOP"
    ));
    assert!(!allows(
        &p,
        "route53:ChangeResourceRecordSets",
        "arn:aws:route53:::hostedzone/ZOTHER"
    ));
}

#[test]
fn a_role_is_passed_only_to_the_services_of_eks_and_only_the_planned_policies_are_attached() {
    let p = all(&shop_plan());
    let pass = allowing(
        &p,
        "iam:PassRole",
        "arn:aws:iam::000000000000:role/shop-green-node",
    );
    assert_eq!(pass.len(), 1);
    let services = list(&pass[0]["Condition"]["StringEqualsIfExists"]["iam:PassedToService"]);
    assert!(services.contains(&"eks.amazonaws.com"), "{services:?}");
    let attach = allowing(
        &p,
        "iam:AttachRolePolicy",
        "arn:aws:iam::000000000000:role/shop-green-node",
    );
    assert_eq!(attach.len(), 1);
    let policies = list(&attach[0]["Condition"]["ArnEquals"]["iam:PolicyARN"]);
    assert!(
        policies.contains(&"arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"),
        "{policies:?}"
    );
    assert!(!policies.iter().any(|p| p.ends_with("AdministratorAccess")));
}

#[test]
fn tags_are_given_only_with_their_own_key_or_while_a_thing_is_made() {
    let plan = shop_plan();
    let p = all(&plan);
    let subnet = &plan.target.cluster.subnets[0];
    for s in allowing(
        &p,
        "ec2:CreateTags",
        &format!("arn:aws:ec2:eu-west-1:000000000000:subnet/{subnet}"),
    ) {
        assert_eq!(
            list(&s["Condition"]["ForAllValues:StringEquals"]["aws:TagKeys"]),
            ["kubernetes.io/cluster/shop-green"]
        );
    }
    for s in allowing(
        &p,
        "ec2:CreateTags",
        "arn:aws:ec2:eu-west-1:000000000000:launch-template/lt-1",
    ) {
        assert_eq!(
            list(&s["Condition"]["StringEquals"]["ec2:CreateAction"]),
            ["CreateLaunchTemplate"]
        );
    }
    // Somebody else's launch template stays.
    for s in allowing(
        &p,
        "ec2:DeleteLaunchTemplate",
        "arn:aws:ec2:eu-west-1:000000000000:launch-template/lt-1",
    ) {
        assert_eq!(
            s["Condition"]["StringLike"],
            json!({"aws:ResourceTag/crossfade.dev/run": "*"})
        );
    }
}

#[test]
fn discover_changes_nothing_and_a_rollback_makes_nothing() {
    let plan = shop_plan();
    assert!(
        of(&plan, Verb::Discover)
            .documents
            .iter()
            .all(|d| !d.writes)
    );
    let back = of(&plan, Verb::Rollback);
    assert!(allows(&back, "eks:DeleteCluster", CLUSTER));
    for d in &back.documents {
        for s in d.policy["Statement"].as_array().unwrap() {
            for a in list(&s["Action"]) {
                assert!(!a.contains(":Create") && !a.contains(":Attach"), "{a}");
            }
        }
    }
    // What reads and what changes stand in documents of their own.
    for d in &all(&plan).documents {
        let reads = |a: &str| {
            let verb = a.split(':').nth(1).unwrap();
            ["Get", "List", "Describe", "AssumeRole"]
                .iter()
                .any(|p| verb.starts_with(p))
        };
        for s in d.policy["Statement"].as_array().unwrap() {
            for a in list(&s["Action"]) {
                assert_eq!(!reads(a), d.writes, "{a} in {}", d.name);
            }
        }
    }
}

#[test]
fn what_is_left_to_terraform_or_adopted_is_looked_at_and_never_touched() {
    let mut plan = shop_plan();
    for r in &mut plan.target.resources {
        r.state = ResourceState::Adopt;
    }
    let p = all(&plan);
    assert!(allows(&p, "eks:DescribeCluster", CLUSTER));
    assert!(!allows(&p, "eks:CreateCluster", CLUSTER));
    assert!(!allows(&p, "eks:DeleteCluster", CLUSTER));
}

#[test]
fn every_document_fits_into_a_managed_policy_and_sids_are_told_apart() {
    let mut plan = shop_plan();
    // A fleet of roles with long names: 400 of them are more than one policy holds.
    let role = plan
        .steps
        .iter()
        .find(|s| s.id.starts_with("provision/role/"))
        .expect("a role")
        .clone();
    for n in 0..400 {
        let mut more = role.clone();
        more.id = format!("provision/role/many-{n}");
        more.params["resource"]["name"] = json!(format!(
            "shop-green-a-rather-long-team-and-service-name-{n:03}"
        ));
        plan.steps.push(more);
    }
    let p = all(&plan);
    assert!(p.documents.len() > 4, "{}", p.documents.len());
    assert!(
        p.notes
            .iter()
            .any(|n| n.contains("more than the 10 managed policies")),
        "{:?}",
        p.notes
    );
    let mut names = BTreeSet::new();
    for d in &p.documents {
        assert!(d.size <= LIMIT, "{}: {}", d.name, d.size);
        assert_eq!(d.size, document::size(&d.policy));
        assert!(names.insert(d.name.clone()));
        let sids: Vec<&str> = d.policy["Statement"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|s| s["Sid"].as_str())
            .collect();
        let unique: BTreeSet<&&str> = sids.iter().collect();
        assert_eq!(unique.len(), sids.len(), "{sids:?}");
        // IAM takes letters and digits only in a Sid.
        assert!(
            sids.iter()
                .all(|s| s.bytes().all(|b| b.is_ascii_alphanumeric())),
            "{sids:?}"
        );
    }
    for n in [0, 399] {
        assert!(allows(
            &p,
            "iam:CreateRole",
            &format!(
                "arn:aws:iam::000000000000:role/shop-green-a-rather-long-team-and-service-name-{n:03}"
            )
        ));
    }
}

#[test]
fn an_unknown_account_is_a_star_and_is_said() {
    let mut plan = shop_plan();
    plan.basis.account = None;
    plan.spec.aws.account = None;
    let p = all(&plan);
    assert!(p.notes.iter().any(|n| n.contains("account is not known")));
    assert!(allows(&p, "eks:CreateCluster", CLUSTER));
}

#[test]
fn each_kind_of_resource_can_be_found_made_and_taken_back() {
    use Kind::*;
    for kind in [
        Role,
        OidcProvider,
        Cluster,
        Addon,
        AccessEntry,
        NodeGroup,
        LaunchTemplate,
        SecurityGroupRule,
        Tag,
        TrustStatement,
        PodIdentityAssociation,
        LogGroup,
        StateBucket,
    ] {
        for op in [Op::Find, Op::Make, Op::Undo] {
            assert!(
                TABLE
                    .iter()
                    .any(|r| r.kind == kind && r.op == op && r.called),
                "{kind:?} {op:?}"
            );
        }
    }
    let mut seen = BTreeSet::new();
    for r in TABLE {
        let key = format!("{:?} {:?} {} {:?}", r.kind, r.op, r.action, r.on);
        assert!(seen.insert(key.clone()), "twice: {key}");
    }
}
