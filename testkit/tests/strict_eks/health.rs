//! What ends badly, how EKS says so, and what helps (eks.md 1.2, 1.5, 1.6).

use aws_sdk_ec2::types as ec2_types;
use aws_sdk_eks::types::{
    Addon, AddonStatus, ClusterStatus, LaunchTemplateSpecification, Nodegroup, NodegroupStatus,
    ResolveConflicts,
};
use testkit::strict::{Fails, KeyTrouble};

use crate::strict_bench::{ec2, eventually};
use crate::world::{World, code, world};

impl World {
    async fn addon_as(&self, name: &str, word: AddonStatus) -> Addon {
        eventually("the add-on's end", || async {
            let found = self
                .api
                .describe_addon()
                .cluster_name("green")
                .addon_name(name)
                .send()
                .await
                .ok()?
                .addon?;
            (found.status() == Some(&word)).then_some(found)
        })
        .await
    }

    async fn group_as(&self, name: &str, word: NodegroupStatus) -> Nodegroup {
        eventually("the group's end", || async {
            let found = self
                .api
                .describe_nodegroup()
                .cluster_name("green")
                .nodegroup_name(name)
                .send()
                .await
                .ok()?
                .nodegroup?;
            (found.status() == Some(&word)).then_some(found)
        })
        .await
    }

    async fn group_gone(&self, name: &str) {
        self.api
            .delete_nodegroup()
            .cluster_name("green")
            .nodegroup_name(name)
            .send()
            .await
            .expect("delete");
        eventually("group gone", || async {
            self.group_status(name).await.is_none().then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_failed_cluster_says_why_and_can_only_be_deleted() {
    let world = world().await;
    world.layer.strict.fail_next(
        Fails::Cluster,
        "green",
        "InsufficientFreeAddresses",
        "One or more subnets have no free addresses",
    );
    world.creation("green").send().await.expect("taken");
    let failed = eventually("FAILED", || async {
        let found = world.api.describe_cluster().name("green").send().await;
        let cluster = found.ok()?.cluster?;
        (cluster.status() == Some(&ClusterStatus::Failed)).then_some(cluster)
    })
    .await;
    let issue = &failed.health().expect("health").issues()[0];
    assert_eq!(
        (issue.code().map(|c| c.as_str()), issue.message()),
        (
            Some("InsufficientFreeAddresses"),
            Some("One or more subnets have no free addresses")
        )
    );
    assert_eq!(failed.endpoint(), None);
    assert_eq!(
        code(world.group("main").send().await).0,
        "InvalidRequestException"
    );
    assert_eq!(
        code(world.creation("green").send().await).0,
        "ResourceInUseException",
        "the name is taken until it is deleted"
    );
    world
        .api
        .delete_cluster()
        .name("green")
        .send()
        .await
        .expect("delete");
    eventually("gone", || async {
        world.status("green").await.is_none().then_some(())
    })
    .await;
    world.cluster("green").await;
}

#[tokio::test]
async fn a_failed_node_group_is_replaced_under_its_name() {
    let world = world().await;
    world.cluster("green").await;
    world.addon("vpc-cni").await;
    world.layer.strict.fail_next(
        Fails::NodeGroup,
        "*",
        "NodeCreationFailure",
        "Instances failed to join the kubernetes cluster",
    );
    world.group("main").send().await.expect("taken");
    let failed = world.group_as("main", NodegroupStatus::CreateFailed).await;
    let issue = &failed.health().expect("health").issues()[0];
    assert_eq!(
        issue.message(),
        Some("Instances failed to join the kubernetes cluster")
    );
    assert_eq!(
        code(world.group("main").send().await).0,
        "ResourceInUseException",
        "the failed one has the name"
    );
    let delete = world.api.delete_cluster().name("green");
    assert_eq!(
        code(delete.send().await).0,
        "ResourceInUseException",
        "a failed group is still one"
    );
    world.group_gone("main").await;
    world.group("main").send().await.expect("again");
    world.group_as("main", NodegroupStatus::Active).await;
}

// eks.md 8.3: the stock waiter takes DEGRADED for a failure.
#[tokio::test]
async fn a_sick_add_on_is_cured_by_an_update_and_a_failed_one_by_another_try() {
    let world = world().await;
    world.cluster("green").await;
    world.layer.strict.fail_next(
        Fails::AddonHealth,
        "vpc-cni",
        "AccessDenied",
        "The add-on cannot reach the API",
    );
    world.addon("vpc-cni").await;
    let sick = world.addon_as("vpc-cni", AddonStatus::Degraded).await;
    assert_eq!(
        sick.health().expect("health").issues()[0].message(),
        Some("The add-on cannot reach the API")
    );
    world
        .api
        .update_addon()
        .cluster_name("green")
        .addon_name("vpc-cni")
        .send()
        .await
        .expect("update");
    world.addon_as("vpc-cni", AddonStatus::Active).await;
    world
        .layer
        .strict
        .fail_next(Fails::Addon, "kube-proxy", "InternalFailure", "try again");
    world.addon("kube-proxy").await;
    world
        .addon_as("kube-proxy", AddonStatus::CreateFailed)
        .await;
    world
        .api
        .delete_addon()
        .cluster_name("green")
        .addon_name("kube-proxy")
        .send()
        .await
        .expect("delete");
    eventually("add-on made again", || async {
        let made = world
            .api
            .create_addon()
            .cluster_name("green")
            .addon_name("kube-proxy")
            .send()
            .await;
        made.is_ok().then_some(())
    })
    .await;
    world.addon_as("kube-proxy", AddonStatus::Active).await;
}

// eks.md 1.2, 1.5: bootstrapSelfManagedAddons true puts vpc-cni, coredns and kube-proxy there; NONE does not touch them.
#[tokio::test]
async fn an_add_on_over_a_self_managed_one_wants_overwrite() {
    let world = world().await;
    world
        .creation("green")
        .bootstrap_self_managed_addons(true)
        .send()
        .await
        .expect("cluster");
    world.active("green").await;
    let create = |mode: ResolveConflicts| {
        world
            .api
            .create_addon()
            .cluster_name("green")
            .addon_name("kube-proxy")
            .resolve_conflicts(mode)
            .send()
    };
    create(ResolveConflicts::None).await.expect("taken");
    let failed = world
        .addon_as("kube-proxy", AddonStatus::CreateFailed)
        .await;
    let issue = &failed.health().expect("health").issues()[0];
    assert_eq!(
        issue.code().map(|c| c.as_str()),
        Some("ConfigurationConflict")
    );
    world
        .api
        .delete_addon()
        .cluster_name("green")
        .addon_name("kube-proxy")
        .send()
        .await
        .expect("delete");
    eventually("with OVERWRITE", || async {
        create(ResolveConflicts::Overwrite)
            .await
            .is_ok()
            .then_some(())
    })
    .await;
    world.addon_as("kube-proxy", AddonStatus::Active).await;
}

// eks.md 1.5: configurationValues are validated against DescribeAddonConfiguration's schema.
#[tokio::test]
async fn an_add_ons_settings_are_checked_against_the_schema_that_eks_tells() {
    let world = world().await;
    world.cluster("green").await;
    let offered = world
        .api
        .describe_addon_versions()
        .kubernetes_version("1.36")
        .send()
        .await
        .expect("versions");
    let version_of = |name: &str| {
        offered
            .addons()
            .iter()
            .find(|a| a.addon_name() == Some(name))
            .and_then(|a| a.addon_versions()[0].addon_version())
            .expect("version")
            .to_owned()
    };
    let configuration = |name: &str| {
        world
            .api
            .describe_addon_configuration()
            .addon_name(name)
            .addon_version(version_of(name))
            .send()
    };
    let cni = configuration("vpc-cni").await.expect("configuration");
    let schema: serde_json::Value =
        serde_json::from_str(cni.configuration_schema().expect("schema")).expect("JSON");
    assert_eq!(
        schema["properties"]["env"]["properties"]["WARM_IP_TARGET"]["type"],
        "string"
    );
    let ebs = configuration("aws-ebs-csi-driver")
        .await
        .expect("configuration");
    let wanted = &ebs.pod_identity_configuration()[0];
    assert_eq!(wanted.service_account(), Some("ebs-csi-controller-sa"));
    assert!(wanted.recommended_managed_policies()[0].contains("AmazonEBSCSIDriverPolicy"));
    let unknown = world
        .api
        .describe_addon_configuration()
        .addon_name("vpc-cni")
        .addon_version("v0.0.1");
    assert_eq!(code(unknown.send().await).0, "InvalidParameterException");
    let create = |values: &str| {
        world
            .api
            .create_addon()
            .cluster_name("green")
            .addon_name("vpc-cni")
            .configuration_values(values)
            .send()
    };
    let (kind, message) = code(create(r#"{"env": {"WARM_IP_TARGET": 2}}"#).await);
    assert_eq!(kind, "InvalidParameterException");
    assert!(
        message.contains("[$.env.WARM_IP_TARGET: integer found, string expected]"),
        "{message}"
    );
    create(r#"{"env": {"WARM_IP_TARGET": "2"}}"#)
        .await
        .expect("text");
}

// eks.md 4: a customer key of a node's volume must be usable; nothing says so before the instances start.
#[tokio::test]
async fn a_template_whose_key_cannot_be_used_fails_the_group() {
    let world = world().await;
    let strict = &world.layer.strict;
    world.cluster("green").await;
    world.addon("vpc-cni").await;
    let disk = ec2_types::LaunchTemplateBlockDeviceMappingRequest::builder()
        .device_name("/dev/xvda")
        .ebs(
            ec2_types::LaunchTemplateEbsBlockDeviceRequest::builder()
                .volume_size(64)
                .encrypted(true)
                .kms_key_id("alias/nodes")
                .build(),
        )
        .build();
    ec2(strict)
        .create_launch_template()
        .launch_template_name("encrypted")
        .launch_template_data(
            ec2_types::RequestLaunchTemplateData::builder()
                .block_device_mappings(disk)
                .build(),
        )
        .send()
        .await
        .expect("template");
    let group = || {
        world
            .group("main")
            .launch_template(
                LaunchTemplateSpecification::builder()
                    .name("encrypted")
                    .build(),
            )
            .send()
    };
    strict.break_key("alias/nodes", KeyTrouble::Disabled);
    group().await.expect("taken");
    let failed = world.group_as("main", NodegroupStatus::CreateFailed).await;
    let message = failed.health().expect("health").issues()[0]
        .message()
        .unwrap_or("")
        .to_owned();
    assert!(
        message.contains(
            "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state"
        ),
        "{message}"
    );
    world.group_gone("main").await;
    strict.mend_key("alias/nodes");
    group().await.expect("again");
    world.group_as("main", NodegroupStatus::Active).await;
}
