//! A layer with roles and subnets, and calls on it as the product makes them.

use aws_sdk_eks::Client;
use aws_sdk_eks::error::ProvideErrorMetadata;
use aws_sdk_eks::types::{
    AddonStatus, AuthenticationMode, ClusterStatus, CreateAccessConfigRequest,
    NodegroupScalingConfig, NodegroupStatus, VpcConfigRequest,
};

use crate::strict_bench::{Layer, eks, eventually, layer, network, role};

pub struct World {
    pub layer: Layer,
    pub api: Client,
    pub role: String,
    pub node_role: String,
    pub subnets: Vec<String>,
}

pub async fn world() -> World {
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

pub fn code<T: std::fmt::Debug, E: ProvideErrorMetadata + std::fmt::Debug>(
    result: Result<T, aws_sdk_eks::error::SdkError<E>>,
) -> (String, String) {
    let error = result.expect_err("refused");
    (
        error.code().unwrap_or("no code").to_owned(),
        error.message().unwrap_or("").to_owned(),
    )
}

impl World {
    /// The VPC of its subnets.
    pub async fn vpc(&self) -> String {
        let found = crate::strict_bench::ec2(&self.layer.strict)
            .describe_subnets()
            .subnet_ids(&self.subnets[0])
            .send()
            .await
            .expect("subnet");
        found.subnets()[0].vpc_id().expect("vpc").to_owned()
    }

    pub fn creation(
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

    pub async fn status(&self, name: &str) -> Option<ClusterStatus> {
        let described = self.api.describe_cluster().name(name).send().await.ok()?;
        described.cluster?.status
    }

    pub async fn active(&self, name: &str) {
        eventually("cluster ACTIVE", || async {
            (self.status(name).await == Some(ClusterStatus::Active)).then_some(())
        })
        .await;
    }

    pub async fn cluster(&self, name: &str) {
        self.creation(name).send().await.expect("cluster");
        self.active(name).await;
    }

    pub async fn addon(&self, name: &str) {
        self.api
            .create_addon()
            .cluster_name("green")
            .addon_name(name)
            .send()
            .await
            .expect("add-on");
    }

    pub async fn addon_status(&self, name: &str) -> AddonStatus {
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

    pub fn group(
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

    pub async fn group_status(&self, name: &str) -> Option<NodegroupStatus> {
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

pub fn scaling(min: i32, max: i32, desired: i32) -> NodegroupScalingConfig {
    NodegroupScalingConfig::builder()
        .min_size(min)
        .max_size(max)
        .desired_size(desired)
        .build()
}

/// A client token of a length that EKS takes.
pub fn token(word: &str) -> String {
    format!("{word:-<40}")
}
