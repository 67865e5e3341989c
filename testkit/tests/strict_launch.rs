//! Launch templates in front of node groups have the manners of EC2 and EKS (eks.md 1.6).

mod strict_bench;

use aws_sdk_ec2::types as ec2;
use aws_sdk_eks::error::ProvideErrorMetadata;
use aws_sdk_eks::types as eks;
use base64::Engine;
use strict_bench::{DELAY, Layer, eventually, layer, network, role};

fn code<T: std::fmt::Debug, E: ProvideErrorMetadata + std::fmt::Debug, R: std::fmt::Debug>(
    result: Result<T, aws_sdk_eks::error::SdkError<E, R>>,
) -> (String, String) {
    let error = result.expect_err("refused");
    (
        error.code().unwrap_or("no code").to_owned(),
        error.message().unwrap_or("").to_owned(),
    )
}

fn data() -> ec2::builders::RequestLaunchTemplateDataBuilder {
    ec2::RequestLaunchTemplateData::builder().block_device_mappings(
        ec2::LaunchTemplateBlockDeviceMappingRequest::builder()
            .device_name("/dev/xvda")
            .ebs(
                ec2::LaunchTemplateEbsBlockDeviceRequest::builder()
                    .volume_size(64)
                    .volume_type(ec2::VolumeType::Gp3)
                    .encrypted(true)
                    .kms_key_id("alias/nodes")
                    .build(),
            )
            .build(),
    )
}

fn creation(
    layer: &Layer,
    name: &str,
    data: ec2::builders::RequestLaunchTemplateDataBuilder,
) -> aws_sdk_ec2::operation::create_launch_template::builders::CreateLaunchTemplateFluentBuilder {
    strict_bench::ec2(&layer.strict)
        .create_launch_template()
        .launch_template_name(name)
        .launch_template_data(data.build())
}

#[tokio::test]
async fn a_template_is_kept_whole_and_found_by_name_id_and_among_all() {
    let layer = layer().await.expect("layer");
    let api = strict_bench::ec2(&layer.strict);
    let user_data = base64::engine::general_purpose::STANDARD.encode("MIME-Version: 1.0\n");
    let made = creation(
        &layer,
        "green-nodes",
        data()
            .user_data(&user_data)
            .placement(
                ec2::LaunchTemplatePlacementRequest::builder()
                    .tenancy(ec2::Tenancy::Dedicated)
                    .build(),
            )
            .credit_specification(
                ec2::CreditSpecificationRequest::builder()
                    .cpu_credits("unlimited")
                    .build(),
            ),
    )
    .tag_specifications(
        ec2::TagSpecification::builder()
            .resource_type(ec2::ResourceType::LaunchTemplate)
            .tags(ec2::Tag::builder().key("run").value("1").build())
            .build(),
    )
    .send()
    .await
    .expect("made")
    .launch_template
    .expect("template");
    creation(&layer, "other", data())
        .send()
        .await
        .expect("made");
    let listed = api
        .describe_launch_templates()
        .launch_template_names("green-nodes")
        .send()
        .await
        .expect("by name");
    assert_eq!(listed.launch_templates()[0].tags()[0].value(), Some("1"));
    let by_name = api
        .describe_launch_template_versions()
        .launch_template_name("green-nodes")
        .send()
        .await
        .expect("versions by name");
    let by_id = api
        .describe_launch_template_versions()
        .launch_template_id(made.launch_template_id().expect("id"))
        .versions("$Latest")
        .send()
        .await
        .expect("versions by id");
    assert_eq!(
        by_name.launch_template_versions(),
        by_id.launch_template_versions()
    );
    let version = &by_name.launch_template_versions()[0];
    let kept = version.launch_template_data().expect("data");
    assert_eq!(kept.user_data(), Some(user_data.as_str()));
    assert_eq!(
        kept.placement().and_then(|p| p.tenancy()),
        Some(&ec2::Tenancy::Dedicated)
    );
    assert_eq!(
        kept.credit_specification().and_then(|c| c.cpu_credits()),
        Some("unlimited")
    );
    let disk = kept.block_device_mappings()[0].ebs().expect("disk");
    assert_eq!(
        (disk.volume_size(), disk.kms_key_id(), disk.encrypted()),
        (Some(64), Some("alias/nodes"), Some(true))
    );
    let all = api
        .describe_launch_template_versions()
        .versions("$Default")
        .send()
        .await
        .expect("all of the account");
    assert_eq!(all.launch_template_versions().len(), 2);
}

#[tokio::test]
async fn ec2_refuses_bad_names_bad_user_data_and_a_second_template_of_one_name() {
    let layer = layer().await.expect("layer");
    let api = strict_bench::ec2(&layer.strict);
    for name in ["ab", "with space", &"x".repeat(129)] {
        // The client itself refuses some of them before they are sent.
        assert!(
            creation(&layer, name, data()).send().await.is_err(),
            "{name}"
        );
    }
    let refused = creation(&layer, "green", data().user_data("not base64!"))
        .send()
        .await;
    assert_eq!(code(refused).0, "InvalidUserData.Malformed");
    let long = base64::engine::general_purpose::STANDARD.encode("x".repeat(16 * 1024 + 1));
    let refused = creation(&layer, "green", data().user_data(long))
        .send()
        .await;
    assert_eq!(code(refused).0, "InvalidParameterValue");
    let hops = |n: i32| {
        data().metadata_options(
            ec2::LaunchTemplateInstanceMetadataOptionsRequest::builder()
                .http_put_response_hop_limit(n)
                .build(),
        )
    };
    let refused = creation(&layer, "green", hops(65)).send().await;
    assert_eq!(code(refused).0, "InvalidParameterValue");
    let once = || creation(&layer, "green", hops(2)).client_token("token-1");
    let first = once().send().await.expect("made").launch_template;
    assert_eq!(
        once().send().await.expect("the same again").launch_template,
        first
    );
    let refused = creation(&layer, "green2", hops(2))
        .client_token("token-1")
        .send()
        .await;
    assert_eq!(code(refused).0, "IdempotentParameterMismatch");
    let refused = creation(&layer, "green", hops(2)).send().await;
    assert_eq!(
        code(refused).0,
        "InvalidLaunchTemplateName.AlreadyExistsException"
    );
    // Where the emulator says "none", AWS refuses the question.
    let refused = api
        .describe_launch_templates()
        .launch_template_names("nobody")
        .send()
        .await;
    assert_eq!(
        code(refused).0,
        "InvalidLaunchTemplateName.NotFoundException"
    );
    api.delete_launch_template()
        .launch_template_name("green")
        .send()
        .await
        .expect("gone");
    let refused = api
        .delete_launch_template()
        .launch_template_name("green")
        .send()
        .await;
    assert_eq!(
        code(refused).0,
        "InvalidLaunchTemplateName.NotFoundException"
    );
}

/// A cluster with its network plugin, ready for node groups.
struct World {
    layer: Layer,
    node_role: String,
    subnets: Vec<String>,
    group: String,
}

async fn world() -> World {
    let layer = layer().await.expect("layer");
    let (_, subnets) = network(&layer.strict).await;
    let api = strict_bench::eks(&layer.strict);
    let cluster_role = role(&layer.strict, "cluster", "eks.amazonaws.com").await;
    let node_role = role(&layer.strict, "node", "ec2.amazonaws.com").await;
    api.create_cluster()
        .name("green")
        .version("1.36")
        .role_arn(cluster_role)
        .resources_vpc_config(
            eks::VpcConfigRequest::builder()
                .subnet_ids(&subnets[0])
                .subnet_ids(&subnets[1])
                .build(),
        )
        .send()
        .await
        .expect("cluster");
    let group = eventually("cluster ACTIVE", || async {
        let c = api.describe_cluster().name("green").send().await.ok()?;
        let c = c.cluster?;
        (c.status() == Some(&eks::ClusterStatus::Active))
            .then(|| c.resources_vpc_config()?.cluster_security_group_id.clone())
            .flatten()
    })
    .await;
    World {
        layer,
        node_role,
        subnets,
        group,
    }
}

impl World {
    fn group(
        &self,
        name: &str,
        template: &str,
    ) -> aws_sdk_eks::operation::create_nodegroup::builders::CreateNodegroupFluentBuilder {
        strict_bench::eks(&self.layer.strict)
            .create_nodegroup()
            .cluster_name("green")
            .nodegroup_name(name)
            .node_role(&self.node_role)
            .subnets(&self.subnets[0])
            .instance_types("m5.large")
            .launch_template(
                eks::LaunchTemplateSpecification::builder()
                    .name(template)
                    .build(),
            )
    }

    async fn ends_as(&self, name: &str, word: eks::NodegroupStatus) -> eks::Nodegroup {
        let api = strict_bench::eks(&self.layer.strict);
        eventually("the group's end", || async {
            let g = api
                .describe_nodegroup()
                .cluster_name("green")
                .nodegroup_name(name)
                .send()
                .await
                .ok()?
                .nodegroup?;
            (g.status() == Some(&word)).then_some(g)
        })
        .await
    }
}

#[tokio::test]
async fn eks_refuses_what_must_not_be_in_a_node_groups_template_or_beside_it() {
    let world = world().await;
    let interface = ec2::LaunchTemplateInstanceNetworkInterfaceSpecificationRequest::builder();
    let profile = ec2::LaunchTemplateIamInstanceProfileSpecificationRequest::builder();
    for (name, made, words) in [
        (
            "with-subnet",
            data().network_interfaces(
                interface
                    .subnet_id(&world.subnets[0])
                    .device_index(0)
                    .build(),
            ),
            "should not specify a subnet",
        ),
        (
            "with-profile",
            data().iam_instance_profile(profile.name("nodes").build()),
            "should not specify an instance profile",
        ),
        (
            "with-shutdown",
            data().instance_initiated_shutdown_behavior(ec2::ShutdownBehavior::Terminate),
            "shutdown or hibernate",
        ),
        (
            "with-type",
            data().instance_type(ec2::InstanceType::M5Large),
            "instance types",
        ),
        (
            "with-stranger",
            data().security_group_ids("sg-0123456789abcdef0"),
            "does not exist",
        ),
    ] {
        creation(&world.layer, name, made).send().await.expect(name);
        let (kind, message) = code(world.group("main", name).send().await);
        assert_eq!(kind, "InvalidParameterException", "{message}");
        assert!(message.contains(words), "'{words}' is not in: {message}");
    }
    assert_eq!(
        code(world.group("main", "nobody").send().await).0,
        "InvalidRequestException"
    );
    creation(&world.layer, "green-nodes", data())
        .send()
        .await
        .expect("template");
    let refused = world
        .group("main", "green-nodes")
        .disk_size(64)
        .send()
        .await;
    assert!(code(refused).1.contains("diskSize"));
    let made = world
        .group("main", "green-nodes")
        .send()
        .await
        .expect("group")
        .nodegroup
        .expect("group");
    assert_eq!(made.disk_size(), None, "the template says it");
    let used = made.launch_template().expect("template");
    assert_eq!(
        (used.name(), used.version()),
        (Some("green-nodes"), Some("1"))
    );
    world.ends_as("main", eks::NodegroupStatus::Active).await;
}

#[tokio::test]
async fn nodes_whose_template_forgets_the_clusters_security_group_never_join() {
    let world = world().await;
    let api = strict_bench::ec2(&world.layer.strict);
    let vpc = api
        .describe_subnets()
        .subnet_ids(&world.subnets[0])
        .send()
        .await
        .expect("subnet")
        .subnets()[0]
        .vpc_id()
        .expect("vpc")
        .to_owned();
    let own = api
        .create_security_group()
        .group_name("extra")
        .description("extra")
        .vpc_id(vpc)
        .send()
        .await
        .expect("group")
        .group_id
        .expect("id");
    creation(&world.layer, "alone", data().security_group_ids(&own))
        .send()
        .await
        .expect("template");
    creation(
        &world.layer,
        "both",
        data()
            .security_group_ids(&own)
            .security_group_ids(&world.group),
    )
    .send()
    .await
    .expect("template");
    world.group("alone", "alone").send().await.expect("taken");
    world.group("both", "both").send().await.expect("taken");
    world.ends_as("both", eks::NodegroupStatus::Active).await;
    tokio::time::sleep(DELAY).await;
    let failed = world
        .ends_as("alone", eks::NodegroupStatus::CreateFailed)
        .await;
    let issue = &failed.health().expect("health").issues()[0];
    assert_eq!(
        issue.code().map(|c| c.as_str()),
        Some("NodeCreationFailure")
    );
    assert!(issue.message().unwrap_or("").contains(&world.group));
}

// eks.md 1.7: user data is MIME multipart, EKS merges its own part into it.
#[tokio::test]
async fn eks_refuses_user_data_that_it_cannot_merge_with_its_own() {
    let world = world().await;
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    creation(
        &world.layer,
        "script",
        data().user_data(encode("#!/bin/bash\necho hello\n")),
    )
    .send()
    .await
    .expect("EC2 takes it");
    let (kind, message) = code(world.group("main", "script").send().await);
    assert_eq!(kind, "InvalidParameterException");
    assert!(message.contains("MIME multipart"), "{message}");
    // With an image of one's own nothing is merged; Bottlerocket reads TOML.
    let bottlerocket = world
        .group("main", "script")
        .ami_type(eks::AmiTypes::BottlerocketX8664);
    bottlerocket.send().await.expect("no MIME there");
}

// eks.md 1.6, 8.4: the kubelet may not give itself labels of Kubernetes' own, and ends; 1.7: a node with a foreign image must be told
// its cluster.
#[tokio::test]
async fn nodes_whose_user_data_is_wrong_start_and_never_join() {
    let world = world().await;
    let api = strict_bench::eks(&world.layer.strict);
    api.create_addon()
        .cluster_name("green")
        .addon_name("vpc-cni")
        .resolve_conflicts(eks::ResolveConflicts::Overwrite)
        .send()
        .await
        .expect("add-on");
    let mime = |kubelet: &str| {
        let text = format!(
            "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"x\"\n\n--x\nContent-Type: application/node.eks.aws\n\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n{kubelet}\n--x--\n"
        );
        base64::engine::general_purpose::STANDARD.encode(text)
    };
    let labels = |list: &str| mime(&format!("  kubelet:\n    flags: ['--node-labels={list}']"));
    let cluster = "  cluster: {name: green, apiServerEndpoint: 'https://127.0.0.1:1', certificateAuthority: Zm9v, cidr: 10.100.0.0/16}";
    for (name, made) in [
        (
            "kops-label",
            data().user_data(labels("team=web,kops.k8s.io/instancegroup=nodes")),
        ),
        (
            "image-alone",
            data()
                .image_id("ami-0123456789abcdef0")
                .user_data(labels("team=web")),
        ),
        (
            "own-label",
            data().user_data(labels("team=web,node.kubernetes.io/pool=web")),
        ),
        (
            "image-told",
            data()
                .image_id("ami-0123456789abcdef0")
                .user_data(mime(cluster)),
        ),
    ] {
        creation(&world.layer, name, made).send().await.expect(name);
        world.group(name, name).send().await.expect("taken");
    }
    world
        .ends_as("own-label", eks::NodegroupStatus::Active)
        .await;
    world
        .ends_as("image-told", eks::NodegroupStatus::Active)
        .await;
    for (name, words) in [
        ("kops-label", "kops.k8s.io/instancegroup"),
        ("image-alone", "apiServerEndpoint"),
    ] {
        let failed = world
            .ends_as(name, eks::NodegroupStatus::CreateFailed)
            .await;
        let issue = &failed.health().expect("health").issues()[0];
        assert_eq!(
            issue.code().map(|c| c.as_str()),
            Some("NodeCreationFailure")
        );
        assert!(issue.message().unwrap_or("").contains(words), "{issue:?}");
    }
}
