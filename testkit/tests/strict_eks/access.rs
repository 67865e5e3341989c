//! Who may come in, and pods' roles (eks.md 1.4, 3).

use aws_sdk_eks::types::{
    AccessConfigResponse, AccessScope, AccessScopeType, AuthenticationMode, VpcConfigRequest,
};

use crate::strict_bench::{iam, role, trust};
use crate::world::{code, token, world};

#[tokio::test]
async fn access_entries_know_iam_and_keep_the_reserved_names_out() {
    let world = world().await;
    world.cluster("green").await;
    let admin = role(&world.layer.strict, "admin", "ec2.amazonaws.com").await;
    let entry = |arn: &str| {
        world
            .api
            .create_access_entry()
            .cluster_name("green")
            .principal_arn(arn)
    };
    let nobody = code(entry("arn:aws:iam::000000000000:role/nobody").send().await);
    assert_eq!(nobody.0, "InvalidParameterException");
    let session = code(
        entry("arn:aws:sts::000000000000:assumed-role/admin/me")
            .send()
            .await,
    );
    assert!(session.1.contains("not an STS session"), "{}", session.1);
    let reserved = code(
        entry(&admin)
            .kubernetes_groups("system:masters")
            .send()
            .await,
    );
    assert!(reserved.1.contains("reserved prefix"), "{}", reserved.1);
    let made = entry(&admin)
        .send()
        .await
        .expect("entry")
        .access_entry
        .expect("entry");
    assert_eq!(
        made.username.as_deref(),
        Some("arn:aws:sts::000000000000:assumed-role/admin/{{SessionName}}")
    );
    assert_eq!(code(entry(&admin).send().await).0, "ResourceInUseException");
    let policy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy";
    let link = |policy: &str| {
        world
            .api
            .associate_access_policy()
            .cluster_name("green")
            .principal_arn(&admin)
            .policy_arn(policy)
            .access_scope(
                AccessScope::builder()
                    .r#type(AccessScopeType::Cluster)
                    .build(),
            )
    };
    assert_eq!(
        code(
            link("arn:aws:eks::aws:cluster-access-policy/Nonsense")
                .send()
                .await
        )
        .0,
        "InvalidParameterException"
    );
    link(policy).send().await.expect("policy");
    let listed = world
        .api
        .list_associated_access_policies()
        .cluster_name("green")
        .principal_arn(&admin)
        .send()
        .await;
    assert_eq!(
        listed.expect("policies").associated_access_policies()[0].policy_arn(),
        Some(policy)
    );
    world
        .api
        .delete_access_entry()
        .cluster_name("green")
        .principal_arn(&admin)
        .send()
        .await
        .expect("delete");
    let gone = code(
        world
            .api
            .describe_access_entry()
            .cluster_name("green")
            .principal_arn(&admin)
            .send()
            .await,
    );
    assert_eq!(gone.0, "ResourceNotFoundException");
}

#[tokio::test]
async fn the_apis_default_authentication_mode_knows_no_access_entries() {
    let world = world().await;
    // No access_config at all: CONFIG_MAP (eks.md 0.3).
    let made = world
        .api
        .create_cluster()
        .name("green")
        .role_arn(&world.role)
        .resources_vpc_config(
            VpcConfigRequest::builder()
                .set_subnet_ids(Some(world.subnets.clone()))
                .build(),
        )
        .send()
        .await
        .expect("created");
    let access: AccessConfigResponse = made
        .cluster
        .expect("cluster")
        .access_config
        .expect("access");
    assert_eq!(
        access.authentication_mode,
        Some(AuthenticationMode::ConfigMap)
    );
    world.active("green").await;
    let refused = code(
        world
            .api
            .list_access_entries()
            .cluster_name("green")
            .send()
            .await,
    );
    assert_eq!(refused.0, "InvalidRequestException");
}

#[tokio::test]
async fn pod_identity_wants_a_role_that_pods_may_assume_and_one_association_an_account() {
    let world = world().await;
    world.cluster("green").await;
    let good = role(&world.layer.strict, "mailer", "pods.eks.amazonaws.com").await;
    let associate = |role: &str| {
        world
            .api
            .create_pod_identity_association()
            .cluster_name("green")
            .namespace("platform")
            .service_account("mailer")
            .role_arn(role)
    };
    assert_eq!(
        code(associate(&world.node_role).send().await).0,
        "InvalidParameterException"
    );
    let made = associate(&good)
        .send()
        .await
        .expect("association")
        .association
        .expect("association");
    assert_eq!(
        code(associate(&good).send().await).0,
        "ResourceInUseException"
    );
    let listed = world
        .api
        .list_pod_identity_associations()
        .cluster_name("green")
        .namespace("platform")
        .send()
        .await;
    let listed = listed.expect("list");
    assert_eq!(
        listed.associations()[0].association_id(),
        made.association_id()
    );
    world
        .api
        .delete_pod_identity_association()
        .cluster_name("green")
        .association_id(made.association_id().expect("id"))
        .send()
        .await
        .expect("delete");
}

#[tokio::test]
async fn tags_are_kept_on_everything_with_an_arn() {
    let world = world().await;
    world.cluster("green").await;
    let arn = "arn:aws:eks:eu-west-1:000000000000:cluster/green";
    world
        .api
        .tag_resource()
        .resource_arn(arn)
        .tags("crossfade", "run-1")
        .send()
        .await
        .expect("tag");
    let tags = world
        .api
        .list_tags_for_resource()
        .resource_arn(arn)
        .send()
        .await
        .expect("tags");
    assert_eq!(tags.tags().expect("tags")["crossfade"], "run-1");
    world
        .api
        .untag_resource()
        .resource_arn(arn)
        .tag_keys("crossfade")
        .send()
        .await
        .expect("untag");
    let reserved = world
        .api
        .tag_resource()
        .resource_arn(arn)
        .tags("aws:x", "y")
        .send()
        .await;
    assert!(reserved.is_err());
    let calls = world.layer.strict.calls();
    let tag = calls
        .iter()
        .find(|c| c.action == "TagResource")
        .expect("logged");
    assert_eq!(
        (tag.params["resourceArn"].as_str(), tag.changed),
        (Some(arn), true)
    );
    let created = calls
        .iter()
        .find(|c| c.action == "CreateCluster")
        .expect("logged");
    assert_eq!(created.params["name"], "green");
}

#[tokio::test]
async fn an_entry_does_not_know_a_re_created_role_of_the_same_name() {
    let world = world().await;
    world.cluster("green").await;
    let iam = iam(&world.layer.strict);
    let arn = role(&world.layer.strict, "ops", "ec2.amazonaws.com").await;
    world
        .api
        .create_access_entry()
        .cluster_name("green")
        .principal_arn(&arn)
        .send()
        .await
        .expect("entry");
    iam.delete_role()
        .role_name("ops")
        .send()
        .await
        .expect("deleted");
    iam.create_role()
        .role_name("ops")
        .assume_role_policy_document(trust("ec2.amazonaws.com"))
        .send()
        .await
        .expect("again");
    // The entry stays listed: EKS does not notice. Who comes with it is told so by the token webhook (strict_webhook.rs).
    let entries = world
        .api
        .list_access_entries()
        .cluster_name("green")
        .send()
        .await
        .expect("entries");
    assert_eq!(entries.access_entries(), [arn]);
}

// eks.md 3: one association an account, a policy only without session tags; a repeated token is the same association.
#[tokio::test]
async fn an_association_is_made_once_a_token_and_narrowed_only_without_session_tags() {
    let world = world().await;
    world.cluster("green").await;
    let role = role(&world.layer.strict, "mailer", "pods.eks.amazonaws.com").await;
    let associate = |namespace: &str, account: &str| {
        world
            .api
            .create_pod_identity_association()
            .cluster_name("green")
            .namespace(namespace)
            .service_account(account)
            .role_arn(&role)
    };
    let narrow = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:GetObject","Resource":"*"}]}"#;
    let (kind, message) = code(associate("platform", "mailer").policy(narrow).send().await);
    assert_eq!(kind, "InvalidParameterException");
    assert!(
        message.contains("disableSessionTags must be true"),
        "{message}"
    );
    let (_, message) = code(associate("Platform", "mailer").send().await);
    assert!(
        message.contains("names as Kubernetes takes them"),
        "{message}"
    );
    let once = |account: &str| {
        associate("platform", account)
            .policy(narrow)
            .disable_session_tags(true)
            .client_request_token(token("association"))
            .send()
    };
    let made = once("mailer").await.expect("made").association;
    let again = once("mailer").await.expect("the same").association;
    assert_eq!(made, again);
    let (kind, _) = code(once("other").await);
    assert_eq!(
        kind, "InvalidParameterException",
        "one token, another account"
    );
    let id = made.and_then(|a| a.association_id).expect("id");
    let described = world
        .api
        .describe_pod_identity_association()
        .cluster_name("green")
        .association_id(&id)
        .send()
        .await
        .expect("association")
        .association
        .expect("association");
    assert_eq!(
        (
            described.namespace(),
            described.role_arn(),
            described.policy()
        ),
        (Some("platform"), Some(role.as_str()), Some(narrow))
    );
    let delete = || {
        world
            .api
            .delete_pod_identity_association()
            .cluster_name("green")
            .association_id(&id)
            .send()
    };
    delete().await.expect("deleted");
    assert_eq!(code(delete().await).0, "ResourceNotFoundException");
}
