//! Node groups and add-ons: when nodes join, what is refused (eks.md 1.5, 1.6).

use aws_sdk_eks::types::{AddonStatus, NodegroupStatus};

use crate::strict_bench::{eventually, role};
use crate::world::{code, scaling, world};

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
            "Following required service principals [ec2.amazonaws.com] were not found",
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
