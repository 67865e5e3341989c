//! The EKS fake has the manners of EKS (eks.md 1): through the SDK that the product uses.

mod strict_bench;

use aws_sdk_eks::Client;
use aws_sdk_eks::error::ProvideErrorMetadata;
use aws_sdk_eks::types::{
    AccessConfigResponse, AccessScope, AccessScopeType, AddonStatus, AuthenticationMode,
    ClusterStatus, CreateAccessConfigRequest, NodegroupScalingConfig, NodegroupStatus, SupportType,
    UpdateStatus, VpcConfigRequest,
};
use strict_bench::{Layer, ec2, eks, eventually, iam, layer, network, role, trust};

struct World {
    layer: Layer,
    api: Client,
    role: String,
    node_role: String,
    subnets: Vec<String>,
}

async fn world() -> World {
    let layer = layer().await.expect("layer");
    let (_, subnets) = network(&layer.strict).await;
    World {
        api: eks(&layer.strict),
        role: role(&layer.strict, "cluster", "eks.amazonaws.com").await,
        node_role: role(&layer.strict, "node", "ec2.amazonaws.com").await,
        subnets,
        layer,
    }
}

fn code<T: std::fmt::Debug, E: ProvideErrorMetadata + std::fmt::Debug>(
    result: Result<T, aws_sdk_eks::error::SdkError<E>>,
) -> (String, String) {
    let error = result.expect_err("refused");
    (
        error.code().unwrap_or("no code").to_owned(),
        error.message().unwrap_or("").to_owned(),
    )
}

impl World {
    fn creation(
        &self,
        name: &str,
    ) -> aws_sdk_eks::operation::create_cluster::builders::CreateClusterFluentBuilder {
        self.api
            .create_cluster()
            .name(name)
            .version("1.36")
            .role_arn(&self.role)
            .bootstrap_self_managed_addons(false)
            .access_config(
                CreateAccessConfigRequest::builder()
                    .authentication_mode(AuthenticationMode::Api)
                    .bootstrap_cluster_creator_admin_permissions(false)
                    .build(),
            )
            .resources_vpc_config(
                VpcConfigRequest::builder()
                    .subnet_ids(&self.subnets[0])
                    .subnet_ids(&self.subnets[1])
                    .build(),
            )
    }

    async fn status(&self, name: &str) -> Option<ClusterStatus> {
        let described = self.api.describe_cluster().name(name).send().await.ok()?;
        described.cluster?.status
    }

    async fn active(&self, name: &str) {
        eventually("cluster ACTIVE", || async {
            (self.status(name).await == Some(ClusterStatus::Active)).then_some(())
        })
        .await;
    }

    async fn cluster(&self, name: &str) {
        self.creation(name).send().await.expect("cluster");
        self.active(name).await;
    }

    async fn addon(&self, name: &str) {
        self.api
            .create_addon()
            .cluster_name("green")
            .addon_name(name)
            .send()
            .await
            .expect("add-on");
    }

    async fn addon_status(&self, name: &str) -> AddonStatus {
        let addon = self
            .api
            .describe_addon()
            .cluster_name("green")
            .addon_name(name)
            .send()
            .await;
        addon
            .expect("add-on")
            .addon
            .and_then(|a| a.status)
            .expect("status")
    }

    fn group(
        &self,
        name: &str,
    ) -> aws_sdk_eks::operation::create_nodegroup::builders::CreateNodegroupFluentBuilder {
        self.api
            .create_nodegroup()
            .cluster_name("green")
            .nodegroup_name(name)
            .node_role(&self.node_role)
            .subnets(&self.subnets[0])
            .scaling_config(scaling(1, 3, 2))
    }

    async fn group_status(&self, name: &str) -> Option<NodegroupStatus> {
        let group = self
            .api
            .describe_nodegroup()
            .cluster_name("green")
            .nodegroup_name(name)
            .send()
            .await
            .ok()?;
        group.nodegroup?.status
    }
}

fn scaling(min: i32, max: i32, desired: i32) -> NodegroupScalingConfig {
    NodegroupScalingConfig::builder()
        .min_size(min)
        .max_size(max)
        .desired_size(desired)
        .build()
}

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
        .client_request_token("one")
        .send()
        .await
        .expect("created");
    world
        .creation("green")
        .client_request_token("one")
        .send()
        .await
        .expect("the same request again");
    let (kind, _) = code(
        world
            .creation("green")
            .client_request_token("two")
            .send()
            .await,
    );
    assert_eq!(kind, "ResourceInUseException");
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

#[tokio::test]
async fn nodes_join_only_with_a_network_plugin_and_coredns_waits_for_nodes() {
    let world = world().await;
    world.cluster("green").await;
    world.addon("coredns").await;
    eventually("coredns DEGRADED", || async {
        (world.addon_status("coredns").await == AddonStatus::Degraded).then_some(())
    })
    .await;
    world.group("early").send().await.expect("group");
    eventually("early group fails", || async {
        (world.group_status("early").await == Some(NodegroupStatus::CreateFailed)).then_some(())
    })
    .await;
    world.addon("vpc-cni").await;
    eventually("vpc-cni ACTIVE", || async {
        (world.addon_status("vpc-cni").await == AddonStatus::Active).then_some(())
    })
    .await;
    let made = world
        .group("main")
        .send()
        .await
        .expect("group")
        .nodegroup
        .expect("group");
    assert_eq!(made.status, Some(NodegroupStatus::Creating));
    eventually("group ACTIVE", || async {
        (world.group_status("main").await == Some(NodegroupStatus::Active)).then_some(())
    })
    .await;
    assert_eq!(world.addon_status("coredns").await, AddonStatus::Active);
    let (kind, _) = code(world.api.delete_cluster().name("green").send().await);
    assert_eq!(kind, "ResourceInUseException", "node groups are there");
    let entries = || async {
        world
            .api
            .list_access_entries()
            .cluster_name("green")
            .send()
            .await
            .expect("entries")
            .access_entries()
            .to_vec()
    };
    assert_eq!(
        entries().await,
        std::slice::from_ref(&world.node_role),
        "a managed group makes its own entry"
    );
    for name in ["early", "main"] {
        world
            .api
            .delete_nodegroup()
            .cluster_name("green")
            .nodegroup_name(name)
            .send()
            .await
            .expect("delete");
        assert_eq!(
            world.group_status(name).await,
            Some(NodegroupStatus::Deleting)
        );
    }
    eventually("groups gone", || async {
        (world.group_status("main").await.is_none() && world.group_status("early").await.is_none())
            .then_some(())
    })
    .await;
    assert!(entries().await.is_empty());
}

#[tokio::test]
async fn a_node_group_is_refused_before_the_cluster_is_active_and_with_reserved_labels() {
    let world = world().await;
    world.creation("green").send().await.expect("created");
    assert_eq!(
        code(world.group("main").send().await).0,
        "InvalidRequestException",
        "cluster CREATING"
    );
    world.active("green").await;
    for (words, request) in [
        // eks.md 8.4: kops' own labels never carry over.
        (
            "reserved prefixes",
            world
                .group("main")
                .labels("kops.k8s.io/instancegroup", "nodes"),
        ),
        (
            "reserved prefixes",
            world
                .group("main")
                .labels("node-role.kubernetes.io/node", ""),
        ),
        (
            "can't be greater",
            world.group("main").scaling_config(scaling(4, 3, 3)),
        ),
        (
            "must be between",
            world.group("main").scaling_config(scaling(1, 3, 5)),
        ),
        (
            "could not be assumed",
            world.group("main").node_role(&world.role),
        ),
        (
            "must be the cluster's version",
            world.group("main").version("1.35"),
        ),
        (
            "not supported",
            world
                .group("main")
                .ami_type(aws_sdk_eks::types::AmiTypes::Al2X8664),
        ),
        ("1 to 63", world.group(&"x".repeat(64))),
    ] {
        let (kind, message) = code(request.send().await);
        assert_eq!(kind, "InvalidParameterException", "{message}");
        assert!(message.contains(words), "'{words}' is not in: {message}");
    }
    world
        .group("main")
        .labels("workload", "spot")
        .send()
        .await
        .expect("plain labels are fine");
    assert_eq!(
        code(world.group("main").send().await).0,
        "ResourceInUseException"
    );
}

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
async fn add_on_versions_follow_the_cluster_and_the_ebs_driver_wants_a_role() {
    let world = world().await;
    world.cluster("green").await;
    let offered = world
        .api
        .describe_addon_versions()
        .kubernetes_version("1.36")
        .addon_name("kube-proxy")
        .send()
        .await
        .expect("versions");
    let version = offered.addons()[0].addon_versions()[0]
        .addon_version()
        .expect("version")
        .to_owned();
    assert!(version.starts_with("v1.36."), "{version}");
    let create = |name: &str, version: &str| {
        world
            .api
            .create_addon()
            .cluster_name("green")
            .addon_name(name)
            .addon_version(version)
    };
    assert_eq!(
        code(create("kube-proxy", "v1.21.2-eksbuild.1").send().await).0,
        "InvalidParameterException"
    );
    assert_eq!(
        code(create("no-such-addon", "v1").send().await).0,
        "InvalidParameterException"
    );
    create("kube-proxy", &version).send().await.expect("add-on");
    world.addon("vpc-cni").await;
    world.addon("aws-ebs-csi-driver").await;
    world.group("main").send().await.expect("group");
    eventually("group ACTIVE", || async {
        (world.group_status("main").await == Some(NodegroupStatus::Active)).then_some(())
    })
    .await;
    assert_eq!(
        world.addon_status("aws-ebs-csi-driver").await,
        AddonStatus::Degraded,
        "eks.md 8.3: no role"
    );
    let role = role(&world.layer.strict, "ebs", "pods.eks.amazonaws.com").await;
    world
        .api
        .create_pod_identity_association()
        .cluster_name("green")
        .namespace("kube-system")
        .service_account("ebs-csi-controller-sa")
        .role_arn(role)
        .send()
        .await
        .expect("association");
    assert_eq!(
        world.addon_status("aws-ebs-csi-driver").await,
        AddonStatus::Active
    );
    let versions = world
        .api
        .describe_cluster_versions()
        .send()
        .await
        .expect("versions");
    let v136 = versions
        .cluster_versions()
        .iter()
        .find(|v| v.cluster_version() == Some("1.36"))
        .expect("1.36");
    assert!(v136.end_of_standard_support_date().is_some());
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
