//! Clusters: their states, what their creation refuses, their tokens (eks.md 1.2, 1.8).

use aws_sdk_eks::types::{
    ClusterStatus, EncryptionConfig, Provider, SupportType, UpdateStatus, VpcConfigRequest,
};
use testkit::strict::KeyTrouble;

use crate::strict_bench::{ec2, eventually};
use crate::world::{code, token, world};

#[tokio::test]
async fn a_cluster_takes_its_time_and_then_hands_out_greens_endpoint() {
    let world = world().await;
    let made = world
        .creation("green")
        .send()
        .await
        .expect("created")
        .cluster
        .expect("cluster");
    assert_eq!(made.status, Some(ClusterStatus::Creating));
    assert_eq!(made.endpoint, None);
    assert!(made.identity.is_none());
    world.active("green").await;
    let green = world
        .api
        .describe_cluster()
        .name("green")
        .send()
        .await
        .expect("described")
        .cluster
        .expect("cluster");
    assert_eq!(green.endpoint.as_deref(), Some("https://127.0.0.1:1"));
    assert!(
        green
            .certificate_authority
            .as_ref()
            .expect("CA")
            .data
            .is_some()
    );
    let issuer = |c: &aws_sdk_eks::types::Cluster| {
        c.identity
            .as_ref()
            .and_then(|i| i.oidc.clone())
            .and_then(|o| o.issuer)
    };
    let vpc = green.resources_vpc_config.as_ref().expect("vpc");
    assert!(
        vpc.endpoint_public_access && !vpc.endpoint_private_access,
        "the API's defaults (eks.md 0.3)"
    );
    assert_eq!(
        green
            .upgrade_policy
            .as_ref()
            .and_then(|p| p.support_type.clone()),
        Some(SupportType::Extended)
    );
    let group = vpc
        .cluster_security_group_id
        .clone()
        .expect("cluster security group");
    let found = ec2(&world.layer.strict)
        .describe_security_groups()
        .group_ids(&group)
        .send()
        .await
        .expect("in EC2");
    assert!(
        found.security_groups()[0]
            .group_name()
            .expect("name")
            .starts_with("eks-cluster-sg-green-")
    );
    world.cluster("other").await;
    let other = world
        .api
        .describe_cluster()
        .name("other")
        .send()
        .await
        .expect("described")
        .cluster
        .expect("cluster");
    assert_ne!(
        issuer(&green),
        issuer(&other),
        "each cluster has its own issuer (moto shares one)"
    );
    // Gone means gone, with its security group.
    let deleted = world
        .api
        .delete_cluster()
        .name("green")
        .send()
        .await
        .expect("deleted")
        .cluster
        .expect("cluster");
    assert_eq!(deleted.status, Some(ClusterStatus::Deleting));
    eventually("cluster gone", || async {
        world.status("green").await.is_none().then_some(())
    })
    .await;
    let left = ec2(&world.layer.strict)
        .describe_security_groups()
        .group_ids(&group)
        .send()
        .await;
    assert!(left.is_err(), "the cluster's security group stayed");
}

#[tokio::test]
async fn the_same_client_token_gives_the_same_cluster_and_another_a_conflict() {
    let world = world().await;
    world
        .creation("green")
        .client_request_token(token("one"))
        .send()
        .await
        .expect("created");
    world
        .creation("green")
        .client_request_token(token("one"))
        .send()
        .await
        .expect("the same request again");
    let (kind, _) = code(
        world
            .creation("green")
            .client_request_token(token("two"))
            .send()
            .await,
    );
    assert_eq!(kind, "ResourceInUseException");
    let other_parameters = world
        .creation("green")
        .version("1.35")
        .client_request_token(token("one"));
    let (kind, _) = code(other_parameters.send().await);
    assert_eq!(kind, "ResourceInUseException", "the name is taken");
    let other_name = world.creation("other").client_request_token(token("one"));
    let (kind, message) = code(other_name.send().await);
    assert_eq!(kind, "InvalidParameterException");
    assert!(
        message.contains("used before with other parameters"),
        "{message}"
    );
    let short = world.creation("other").client_request_token("short");
    let (_, message) = code(short.send().await);
    assert!(message.contains("between 33 and 126"), "{message}");
    assert_eq!(
        world
            .api
            .list_clusters()
            .send()
            .await
            .expect("list")
            .clusters(),
        ["green"]
    );
}

#[tokio::test]
async fn what_eks_refuses_at_creation_is_refused() {
    let world = world().await;
    let vpc = |ids: &[&String]| {
        VpcConfigRequest::builder()
            .set_subnet_ids(Some(ids.iter().map(|i| (*i).clone()).collect()))
            .build()
    };
    let unknown = "subnet-00000000000000000".to_owned();
    for (words, request) in [
        ("cluster name", world.creation("-bad")),
        (
            "unsupported Kubernetes version",
            world.creation("green").version("9.99"),
        ),
        (
            "two different AZs",
            world
                .creation("green")
                .resources_vpc_config(vpc(&[&world.subnets[0]])),
        ),
        (
            "two different AZs",
            world
                .creation("green")
                .resources_vpc_config(vpc(&[&world.subnets[0], &world.subnets[2]])),
        ),
        (
            "does not exist",
            world
                .creation("green")
                .resources_vpc_config(vpc(&[&world.subnets[0], &unknown])),
        ),
        (
            "could not be assumed",
            world
                .creation("green")
                .role_arn("arn:aws:iam::000000000000:role/nobody"),
        ),
        (
            "could not be assumed",
            world.creation("green").role_arn(&world.node_role),
        ),
        (
            "must lie within",
            world.creation("green").kubernetes_network_config(
                aws_sdk_eks::types::KubernetesNetworkConfigRequest::builder()
                    .service_ipv4_cidr("100.64.0.0/13")
                    .build(),
            ),
        ),
        (
            "overlaps with the VPC",
            world.creation("green").kubernetes_network_config(
                aws_sdk_eks::types::KubernetesNetworkConfigRequest::builder()
                    .service_ipv4_cidr("10.0.0.0/20")
                    .build(),
            ),
        ),
    ] {
        let (kind, message) = code(request.send().await);
        assert_eq!(kind, "InvalidParameterException", "{message}");
        assert!(message.contains(words), "'{words}' is not in: {message}");
    }
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
}

#[tokio::test]
async fn a_protected_cluster_stays_and_only_one_update_runs_at_a_time() {
    let world = world().await;
    world
        .creation("green")
        .deletion_protection(true)
        .send()
        .await
        .expect("created");
    let (kind, _) = code(world.api.delete_cluster().name("green").send().await);
    assert_eq!(kind, "ResourceInUseException", "while CREATING");
    world.active("green").await;
    let (kind, message) = code(world.api.delete_cluster().name("green").send().await);
    assert_eq!(kind, "InvalidRequestException");
    assert!(message.contains("deletionProtection"), "{message}");
    let off = || {
        world
            .api
            .update_cluster_config()
            .name("green")
            .deletion_protection(false)
            .send()
    };
    let update = off().await.expect("update").update.expect("update");
    let (kind, _) = code(off().await);
    assert_eq!(kind, "ResourceInUseException", "one update at a time");
    let id = update.id.expect("id");
    eventually("update done", || async {
        let update = world
            .api
            .describe_update()
            .name("green")
            .update_id(&id)
            .send()
            .await
            .expect("update");
        (update.update?.status? == UpdateStatus::Successful).then_some(())
    })
    .await;
    world.active("green").await;
    let (kind, message) = code(off().await);
    assert_eq!(kind, "InvalidParameterException");
    assert!(message.contains("already at the desired"), "{message}");
    world
        .api
        .delete_cluster()
        .name("green")
        .send()
        .await
        .expect("unprotected");
}

// eks.md 1.2: up to four security groups (the quota, not the API's text), two zones with six free addresses each.
#[tokio::test]
async fn a_control_plane_takes_four_security_groups_and_needs_free_addresses() {
    let world = world().await;
    let ec2 = ec2(&world.layer.strict);
    let vpc = world.vpc().await;
    let mut groups = vec![];
    for n in 0..5 {
        let made = ec2
            .create_security_group()
            .group_name(format!("extra-{n}"))
            .description("extra")
            .vpc_id(&vpc)
            .send()
            .await
            .expect("group");
        groups.push(made.group_id.expect("id"));
    }
    let with = |groups: &[String]| {
        world.creation("green").resources_vpc_config(
            VpcConfigRequest::builder()
                .subnet_ids(&world.subnets[0])
                .subnet_ids(&world.subnets[1])
                .set_security_group_ids(Some(groups.to_vec()))
                .build(),
        )
    };
    let (kind, message) = code(with(&groups).send().await);
    assert_eq!(kind, "InvalidParameterException");
    assert!(message.contains("up to 4 security groups"), "{message}");
    // A /28 has 11 addresses for us; six interfaces leave five.
    let small = ec2
        .create_subnet()
        .vpc_id(&vpc)
        .cidr_block("10.0.200.0/28")
        .availability_zone("eu-west-1b")
        .send()
        .await
        .expect("subnet");
    let small = small.subnet.and_then(|s| s.subnet_id).expect("id");
    for _ in 0..6 {
        ec2.create_network_interface()
            .subnet_id(&small)
            .send()
            .await
            .expect("interface");
    }
    let full = world.creation("green").resources_vpc_config(
        VpcConfigRequest::builder()
            .subnet_ids(&world.subnets[0])
            .subnet_ids(&small)
            .build(),
    );
    let (_, message) = code(full.send().await);
    assert!(message.contains("has 5 free IP addresses"), "{message}");
    with(&groups[..4]).send().await.expect("four are taken");
}

// eks.md 1.2: one customer key, for secrets; it must be there, enabled, symmetric and usable.
// Resources are deprecated in the API, and still what many tools send.
#[tokio::test]
#[allow(deprecated)]
async fn a_key_that_eks_cannot_use_is_refused_at_creation() {
    let world = world().await;
    let strict = &world.layer.strict;
    let key = strict.make_key().await.expect("key");
    let with = |arn: &str, resource: &str| {
        world.creation("green").encryption_config(
            EncryptionConfig::builder()
                .resources(resource)
                .provider(Provider::builder().key_arn(arn).build())
                .build(),
        )
    };
    let absent = "arn:aws:kms:eu-west-1:000000000000:key/00000000-0000-0000-0000-000000000000";
    let elsewhere = "arn:aws:kms:us-east-1:000000000000:key/00000000-0000-0000-0000-000000000000";
    for (words, kind, request) in [
        (
            "KeyArn is required",
            "InvalidParameterException",
            with("", "secrets"),
        ),
        (
            "is not the ARN",
            "InvalidParameterException",
            with("alias/nodes", "secrets"),
        ),
        (
            "in the region",
            "InvalidParameterException",
            with(elsewhere, "secrets"),
        ),
        (
            "Only secrets",
            "InvalidParameterException",
            with(&key, "volumes"),
        ),
        (
            "does not exist",
            "InvalidRequestException",
            with(absent, "secrets"),
        ),
    ] {
        let (code, message) = code(request.send().await);
        assert_eq!(code, kind, "{message}");
        assert!(message.contains(words), "'{words}' is not in: {message}");
    }
    for (trouble, words) in [
        (KeyTrouble::Disabled, "it is Disabled"),
        (KeyTrouble::PendingDeletion, "it is PendingDeletion"),
        (
            KeyTrouble::Denied,
            "User not authorized to perform kms:CreateGrant operation",
        ),
    ] {
        strict.break_key(&key, trouble);
        let (kind, message) = code(with(&key, "secrets").send().await);
        assert_eq!(kind, "InvalidRequestException");
        assert!(message.contains(words), "'{words}' is not in: {message}");
    }
    strict.mend_key(&key);
    let made = with(&key, "secrets").send().await.expect("cluster");
    let kept = made.cluster.expect("cluster").encryption_config()[0].clone();
    assert_eq!(
        kept.provider().and_then(|p| p.key_arn()),
        Some(key.as_str())
    );
}
