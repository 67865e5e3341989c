//! Denied actions and a policy to live under: refused in the words of each service, dependent permissions included (eks.md 1.3).

use aws_sdk_ec2::types::{ResourceType, Tag, TagSpecification};
use serde_json::json;

use crate::strict_bench::{ec2, eventually, iam, role, sts, trust};
use crate::world::{code, world};

const EXPLICIT: &str = "with an explicit deny in an identity-based policy";

#[tokio::test]
async fn a_denied_action_is_refused_in_the_words_of_its_service_and_nothing_is_done() {
    let world = world().await;
    let strict = &world.layer.strict;
    strict.deny("eks:CreateCluster");
    strict.deny("iam:CreateRole");
    strict.deny("ec2:CreateSecurityGroup");
    let (kind, message) = code(world.creation("green").send().await);
    assert_eq!(kind, "AccessDeniedException");
    for part in [
        "is not authorized to perform: eks:CreateCluster on resource: arn:aws:eks:eu-west-1:000000000000:cluster/green",
        EXPLICIT,
    ] {
        assert!(message.contains(part), "'{part}' is not in: {message}");
    }
    let made = iam(strict)
        .create_role()
        .role_name("new")
        .assume_role_policy_document(trust("ec2.amazonaws.com"))
        .send()
        .await;
    let (kind, message) = code(made);
    assert_eq!(kind, "AccessDenied");
    assert!(
        message.contains("iam:CreateRole on resource: arn:aws:iam::000000000000:role/new"),
        "{message}"
    );
    let vpc = world.vpc().await;
    let group = || {
        ec2(strict)
            .create_security_group()
            .group_name("new")
            .description("new")
            .vpc_id(&vpc)
            .send()
    };
    let (kind, message) = code(group().await);
    assert_eq!(kind, "UnauthorizedOperation");
    assert!(
        message.starts_with("You are not authorized to perform this operation. User: ")
            && message.contains("Encoded authorization failure message: "),
        "{message}"
    );
    // Nothing is there, and who asks who he is is always told.
    strict.deny("*");
    sts(strict)
        .get_caller_identity()
        .send()
        .await
        .expect("needs no permission");
    strict.allow_all();
    assert_eq!(
        code(iam(strict).get_role().role_name("new").send().await).0,
        "NoSuchEntity"
    );
    assert!(
        world
            .api
            .list_clusters()
            .send()
            .await
            .expect("list")
            .clusters()
            .is_empty()
    );
    group().await.expect("allowed again");
    let calls = strict.calls();
    let denied = calls.iter().filter(|c| c.status == 403).count();
    assert_eq!(denied, 3, "every refusal is in the log");
}

// eks.md 1.3: roles are handed over, service-linked roles are made, tags are set: each by a permission of its own.
#[tokio::test]
async fn what_eks_does_in_the_callers_name_the_caller_must_be_allowed_to_do() {
    let world = world().await;
    let strict = &world.layer.strict;
    strict.deny("iam:PassRole");
    let (kind, message) = code(world.creation("green").send().await);
    assert_eq!(kind, "AccessDeniedException");
    assert!(
        message.contains(&format!("iam:PassRole on resource: {}", world.role)),
        "{message}"
    );
    strict.allow_all();
    strict.deny("eks:TagResource");
    let tagged = || world.creation("green").tags("run", "1");
    assert_eq!(code(tagged().send().await).0, "AccessDeniedException");
    strict.allow_all();
    // The service-linked role is made with the first cluster of the account, and never again.
    strict.deny("iam:CreateServiceLinkedRole");
    let (kind, message) = code(tagged().send().await);
    assert_eq!(kind, "InvalidRequestException");
    assert!(
        message.contains("Failed to create service linked role: AWSServiceRoleForAmazonEKS due to missing permissions for 'iam:CreateServiceLinkedRole'"),
        "{message}"
    );
    strict.allow_all();
    tagged().send().await.expect("cluster");
    world.active("green").await;
    strict.deny("iam:CreateServiceLinkedRole");
    world
        .creation("second")
        .send()
        .await
        .expect("the role stands");
    let (kind, message) = code(world.group("main").send().await);
    assert_eq!(kind, "InvalidRequestException");
    assert!(
        message.contains("AWSServiceRoleForAmazonEKSNodegroup"),
        "another role: {message}"
    );
    strict.allow_all();
    strict.deny("iam:GetRole");
    let (_, message) = code(world.group("main").send().await);
    assert!(
        message.contains(
            "Failed to validate if SLR: AWSServiceRoleForAmazonEKSNodegroup already exists"
        ),
        "{message}"
    );
    strict.allow_all();
    world.group("main").send().await.expect("group");
    // EC2 asks for CreateTags beside the creation itself.
    strict.deny("ec2:CreateTags");
    let tags = TagSpecification::builder()
        .resource_type(ResourceType::SecurityGroup)
        .tags(Tag::builder().key("run").value("1").build())
        .build();
    let vpc = world.vpc().await;
    let group = || {
        ec2(strict)
            .create_security_group()
            .group_name("new")
            .description("new")
            .vpc_id(&vpc)
    };
    let refused = group().tag_specifications(tags).send().await;
    assert_eq!(code(refused).0, "UnauthorizedOperation");
    group().send().await.expect("without tags");
}

#[tokio::test]
async fn under_a_policy_only_that_goes_which_it_allows() {
    let world = world().await;
    let strict = &world.layer.strict;
    let account = "arn:aws:iam::000000000000";
    strict
        .enforce(json!({"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Action": ["eks:DescribeCluster", "eks:CreateCluster", "eks:TagResource"],
             "Resource": "arn:aws:eks:eu-west-1:000000000000:cluster/green"},
            {"Effect": "Allow", "Action": "iam:PassRole", "Resource": format!("{account}:role/cluster"),
             "Condition": {"StringEquals": {"iam:PassedToService": "eks.amazonaws.com"}}},
            {"Effect": "Allow", "Action": "iam:CreateServiceLinkedRole", "Resource": "*",
             "Condition": {"StringEquals": {"iam:AWSServiceName": "eks.amazonaws.com"}}},
            {"Effect": "Allow", "Action": ["iam:CreateRole", "iam:TagRole"], "Resource": format!("{account}:role/crossfade/*"),
             "Condition": {"StringEquals": {"aws:RequestTag/run": "1"}}},
            {"Effect": "Allow", "Action": ["iam:GetRole", "iam:DeleteRole"], "Resource": "*",
             "Condition": {"StringEquals": {"aws:ResourceTag/run": "1"}}},
        ]}))
        .expect("policy");
    world
        .creation("green")
        .tags("run", "1")
        .send()
        .await
        .expect("allowed");
    world.active("green").await;
    let (kind, message) = code(world.creation("other").send().await);
    assert_eq!(kind, "AccessDeniedException");
    assert!(
        message.contains("because no identity-based policy allows the eks:CreateCluster action"),
        "{message}"
    );
    let (_, message) = code(
        world
            .creation("green")
            .role_arn(&world.node_role)
            .send()
            .await,
    );
    assert!(message.contains("iam:PassRole"), "another role: {message}");
    assert_eq!(
        code(world.api.list_clusters().send().await).0,
        "AccessDeniedException",
        "ListClusters knows no single cluster"
    );
    let api = iam(strict);
    let create = |name: &str, path: &str, run: &str| {
        api.create_role()
            .role_name(name)
            .path(path)
            .assume_role_policy_document(trust("ec2.amazonaws.com"))
            .tags(
                aws_sdk_iam::types::Tag::builder()
                    .key("run")
                    .value(run)
                    .build()
                    .expect("tag"),
            )
            .send()
    };
    create("ours", "/crossfade/", "1").await.expect("allowed");
    assert_eq!(code(create("b", "/", "1").await).0, "AccessDenied", "path");
    assert_eq!(
        code(create("c", "/crossfade/", "2").await).0,
        "AccessDenied",
        "tag"
    );
    // What is not ours carries no such tag.
    assert_eq!(
        code(api.delete_role().role_name("cluster").send().await).0,
        "AccessDenied"
    );
    api.delete_role()
        .role_name("ours")
        .send()
        .await
        .expect("ours");
    let broken = strict.enforce(json!({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Action": "CreateCluster", "Resource": "*"}]}));
    assert!(broken.is_err(), "AWS would refuse the document");
    strict.allow_all();
    world.api.list_clusters().send().await.expect("all again");
}

#[tokio::test]
async fn the_layer_tells_which_permissions_were_needed_and_for_what() {
    let world = world().await;
    let strict = &world.layer.strict;
    world.cluster("green").await;
    strict.forget_permissions();
    let pods = role(strict, "mailer", "pods.eks.amazonaws.com").await;
    world
        .api
        .create_pod_identity_association()
        .cluster_name("green")
        .namespace("platform")
        .service_account("mailer")
        .role_arn(&pods)
        .send()
        .await
        .expect("association");
    eventually("add-on", || async {
        let made = world
            .api
            .create_addon()
            .cluster_name("green")
            .addon_name("vpc-cni")
            .send()
            .await;
        made.is_ok().then_some(())
    })
    .await;
    world
        .api
        .describe_addon()
        .cluster_name("green")
        .addon_name("vpc-cni")
        .send()
        .await
        .expect("add-on");
    let used = strict.permissions_used();
    let cluster = "arn:aws:eks:eu-west-1:000000000000:cluster/green";
    for action in ["eks:CreatePodIdentityAssociation", "eks:CreateAddon"] {
        assert!(
            used[action].contains(cluster),
            "{action}: {:?}",
            used[action]
        );
    }
    assert!(used["iam:PassRole"].contains(&pods));
    let addon = used["eks:DescribeAddon"].first().expect("ARN");
    assert!(
        addon.starts_with("arn:aws:eks:eu-west-1:000000000000:addon/green/vpc-cni/"),
        "{addon}"
    );
    let actions: Vec<&str> = used.keys().map(String::as_str).collect();
    assert_eq!(
        actions,
        [
            "eks:CreateAddon",
            "eks:CreatePodIdentityAssociation",
            "eks:DescribeAddon",
            "iam:CreateRole",
            "iam:PassRole",
        ]
    );
}
