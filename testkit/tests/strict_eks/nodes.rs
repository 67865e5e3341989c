//! Node groups and add-ons: when nodes join, what is refused (eks.md 1.5, 1.6).

use aws_sdk_eks::types::{
    AddonStatus, AmiTypes, NodeRepairConfig, NodeRepairConfigOverrides, Nodegroup, NodegroupStatus,
    RepairAction, UpdateStatus,
};
use testkit::strict::Fails;

use crate::strict_bench::{eventually, iam, role};
use crate::world::{code, scaling, token, world};

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

// eks.md 1.2: a client token makes a retry the same request; with other parameters it is refused, and nothing is made twice.
#[tokio::test]
async fn a_repeated_token_gives_the_same_group_and_add_on_and_never_another() {
    let world = world().await;
    world.cluster("green").await;
    let group = |name: &str| world.group(name).client_request_token(token("group"));
    let first = group("main").send().await.expect("group").nodegroup;
    let again = group("main").send().await.expect("the same").nodegroup;
    let arn = |g: Option<Nodegroup>| g.and_then(|g| g.nodegroup_arn);
    assert_eq!(arn(first), arn(again));
    let bigger = group("main").scaling_config(scaling(1, 5, 3));
    assert_eq!(code(bigger.send().await).0, "ResourceInUseException");
    let (kind, message) = code(group("other").send().await);
    assert_eq!(kind, "InvalidParameterException");
    assert!(message.contains("other parameters"), "{message}");
    let addon = |name: &str| {
        world
            .api
            .create_addon()
            .cluster_name("green")
            .addon_name(name)
            .client_request_token(token("addon"))
    };
    addon("vpc-cni").send().await.expect("add-on");
    addon("vpc-cni").send().await.expect("the same");
    assert_eq!(
        code(addon("kube-proxy").send().await).0,
        "InvalidParameterException"
    );
    let listed = world.api.list_nodegroups().cluster_name("green").send();
    assert_eq!(listed.await.expect("groups").nodegroups(), ["main"]);
    let listed = world.api.list_addons().cluster_name("green").send();
    assert_eq!(listed.await.expect("add-ons").addons(), ["vpc-cni"]);
}

// eks.md 1.3: not the cluster's role; 1.6: the API's words for repair, one of each pair of thresholds, types of the image's architecture.
#[tokio::test]
async fn a_node_group_has_its_own_role_and_types_that_fit_its_image() {
    let world = world().await;
    let both = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":["eks.amazonaws.com","ec2.amazonaws.com"]},"Action":"sts:AssumeRole"}]}"#;
    let made = iam(&world.layer.strict)
        .create_role()
        .role_name("both")
        .assume_role_policy_document(both)
        .send()
        .await
        .expect("role");
    let both = made.role.expect("role").arn;
    world
        .creation("green")
        .role_arn(&both)
        .send()
        .await
        .expect("cluster");
    world.active("green").await;
    let repair = |config: NodeRepairConfig| world.group("main").node_repair_config(config);
    let override_with = |action: &str| {
        NodeRepairConfig::builder()
            .enabled(true)
            .node_repair_config_overrides(
                NodeRepairConfigOverrides::builder()
                    .node_monitoring_condition("AcceleratedHardwareReady")
                    .node_unhealthy_reason("NvidiaXID13Error")
                    .min_repair_wait_time_mins(10)
                    .repair_action(RepairAction::from(action))
                    .build(),
            )
            .build()
    };
    let too_many = NodeRepairConfig::builder()
        .enabled(true)
        .max_unhealthy_node_threshold_count(2)
        .max_unhealthy_node_threshold_percentage(20)
        .build();
    for (words, request) in [
        (
            "already the role of the cluster",
            world.group("main").node_role(&both),
        ),
        (
            "Replace, Reboot or NoAction, not 'Terminate'",
            repair(override_with("Terminate")),
        ),
        ("Specify either", repair(too_many)),
        (
            "is not a valid instance type for requested amiType AL2023_x86_64_STANDARD",
            world.group("main").instance_types("m6g.large"),
        ),
        (
            "is not a valid instance type for requested amiType AL2023_ARM_64_STANDARD",
            world
                .group("main")
                .ami_type(AmiTypes::Al2023Arm64Standard)
                .instance_types("m5.large"),
        ),
        ("do not exist", world.group("main").instance_types("big")),
    ] {
        let (kind, message) = code(request.send().await);
        assert_eq!(kind, "InvalidParameterException", "{message}");
        assert!(message.contains(words), "'{words}' is not in: {message}");
    }
    repair(override_with("Reboot")).send().await.expect("taken");
}

// eks.md 1.6: updates of a group are found by their id with the group's name beside it.
#[tokio::test]
async fn a_groups_update_has_an_id_and_may_fail_and_leave_it_as_it_was() {
    let world = world().await;
    world.cluster("green").await;
    world.addon("vpc-cni").await;
    world.group("main").send().await.expect("group");
    let active = || async {
        eventually("group ACTIVE", || async {
            (world.group_status("main").await == Some(NodegroupStatus::Active)).then_some(())
        })
        .await;
    };
    active().await;
    let grow = || {
        world
            .api
            .update_nodegroup_config()
            .cluster_name("green")
            .nodegroup_name("main")
            .scaling_config(scaling(1, 6, 4))
            .send()
    };
    let desired = || async {
        let found = world
            .api
            .describe_nodegroup()
            .cluster_name("green")
            .nodegroup_name("main")
            .send()
            .await;
        let group = found.expect("group").nodegroup.expect("group");
        group.scaling_config().and_then(|s| s.desired_size())
    };
    world.layer.strict.fail_next(
        Fails::Update,
        "main",
        "PodEvictionFailure",
        "Reached max retries while trying to evict pods",
    );
    let update = grow().await.expect("taken").update.expect("update");
    let id = update.id().expect("id");
    let ask = |group: Option<&str>| {
        world
            .api
            .describe_update()
            .name("green")
            .update_id(id)
            .set_nodegroup_name(group.map(str::to_owned))
            .send()
    };
    assert_eq!(code(ask(None).await).0, "ResourceNotFoundException");
    let ended = eventually("the update ends", || async {
        let update = ask(Some("main")).await.ok()?.update?;
        (update.status() != Some(&UpdateStatus::InProgress)).then_some(update)
    })
    .await;
    assert_eq!(ended.status(), Some(&UpdateStatus::Failed));
    assert_eq!(
        ended.errors()[0].error_code().map(|c| c.as_str()),
        Some("PodEvictionFailure")
    );
    assert_eq!(desired().await, Some(2), "as it was");
    active().await;
    grow().await.expect("again");
    active().await;
    assert_eq!(desired().await, Some(4));
}
