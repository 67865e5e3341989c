//! EKS: cluster, add-ons, access entries, managed node groups.

use super::eks_read::{addon_of, cluster_of, node_group_of, read_access};
use super::{LiveCloud, absent_is_fine, internal, optional};
use crate::world::cloud::{Found, RUN_TAG, Resource};
use crate::world::live::aws;
use crate::world::{Class, Error, Result};
use aws_sdk_eks::types as eks;
use serde_json::Value;

/// Kubernetes spelling of a taint effect to the API's.
fn effect(kubernetes: &str) -> eks::TaintEffect {
    match kubernetes {
        "NoExecute" => eks::TaintEffect::NoExecute,
        "PreferNoSchedule" => eks::TaintEffect::PreferNoSchedule,
        _ => eks::TaintEffect::NoSchedule,
    }
}

/// ARN of an access policy, in the partition of the principal.
fn policy_arn(principal: &str, policy: &str) -> String {
    let partition = principal
        .split(':')
        .nth(1)
        .filter(|p| !p.is_empty())
        .unwrap_or("aws");
    format!("arn:{partition}:eks::aws:cluster-access-policy/{policy}")
}

/// How many nodes an update may take away at once; one when nothing is said.
fn update_config(wanted: Option<&str>, at: &str) -> Result<eks::NodegroupUpdateConfig> {
    let text = wanted.unwrap_or("1");
    let (digits, percent) = match text.strip_suffix('%') {
        Some(d) => (d, true),
        None => (text, false),
    };
    let n: i32 = digits
        .parse()
        .ok()
        .filter(|n| (1..=100).contains(n))
        .ok_or_else(|| {
            Error::new(
                Class::Refused,
                at,
                format!("maxUnavailable {text:?} is neither 1 to 100 nor 1% to 100%"),
            )
        })?;
    let config = eks::NodegroupUpdateConfig::builder();
    Ok(if percent {
        config.max_unavailable_percentage(n)
    } else {
        config.max_unavailable(n)
    }
    .build())
}

impl LiveCloud {
    pub(super) async fn find_cluster(&self, resource: &Resource) -> Result<Option<Found>> {
        let Resource::Cluster { name, .. } = resource else {
            return Err(internal("cluster", "not a cluster"));
        };
        let answer = optional(
            self.eks()
                .await
                .describe_cluster()
                .name(name)
                .send()
                .await
                .map_err(|e| aws::error(&resource.id(), e)),
        )?;
        Ok(answer
            .and_then(|a| a.cluster)
            .map(|c| cluster_of(&c).found(resource)))
    }

    /// Every default that costs or surprises is said aloud (eks.md 0.3).
    pub(super) async fn create_cluster(&self, resource: &Resource, run: &str) -> Result<()> {
        let Resource::Cluster {
            name,
            version,
            role_arn,
            subnets,
            service_cidr,
            public_endpoint,
            private_endpoint,
            endpoint_cidrs,
        } = resource
        else {
            return Err(internal("cluster", "not a cluster"));
        };
        let mut request = self
            .eks()
            .await
            .create_cluster()
            .name(name)
            .version(version)
            .role_arn(role_arn)
            .resources_vpc_config(
                eks::VpcConfigRequest::builder()
                    .set_subnet_ids(Some(subnets.clone()))
                    .endpoint_public_access(*public_endpoint)
                    .endpoint_private_access(*private_endpoint)
                    .set_public_access_cidrs(
                        (*public_endpoint && !endpoint_cidrs.is_empty())
                            .then(|| endpoint_cidrs.clone()),
                    )
                    .build(),
            )
            // Access entries only: no aws-auth ConfigMap that anybody in the cluster could edit, and no hidden
            // administrator for whoever happened to create it (an entry for the caller is in the plan instead).
            .access_config(
                eks::CreateAccessConfigRequest::builder()
                    .authentication_mode(eks::AuthenticationMode::Api)
                    .bootstrap_cluster_creator_admin_permissions(false)
                    .build(),
            )
            // The plan installs managed add-ons; self-managed copies underneath would fight them.
            .bootstrap_self_managed_addons(false)
            // The API's default is EXTENDED, which costs more by the hour once standard support ends.
            .upgrade_policy(
                eks::UpgradePolicyRequest::builder()
                    .support_type(eks::SupportType::Standard)
                    .build(),
            )
            // Deletion protection stays off: undo of this step deletes the cluster, and must not need a second key.
            // `finalize` is the place to switch it on.
            .deletion_protection(false)
            .client_request_token(self.token(run, resource))
            .tags(RUN_TAG, run);
        if let Some(cidr) = service_cidr {
            request = request.kubernetes_network_config(
                eks::KubernetesNetworkConfigRequest::builder()
                    .service_ipv4_cidr(cidr)
                    .build(),
            );
        }
        request
            .send()
            .await
            .map_err(|e| aws::error(&resource.id(), e))?;
        Ok(())
    }

    pub(super) async fn delete_cluster(&self, name: &str) -> Result<()> {
        absent_is_fine(
            self.eks()
                .await
                .delete_cluster()
                .name(name)
                .send()
                .await
                .map_err(|e| aws::error(&format!("cluster/{name}"), e)),
        )
    }

    pub(super) async fn find_addon(&self, resource: &Resource) -> Result<Option<Found>> {
        let Resource::Addon { cluster, name, .. } = resource else {
            return Err(internal("addon", "not an add-on"));
        };
        let answer = optional(
            self.eks()
                .await
                .describe_addon()
                .cluster_name(cluster)
                .addon_name(name)
                .send()
                .await
                .map_err(|e| aws::error(&resource.id(), e)),
        )?;
        Ok(answer
            .and_then(|a| a.addon)
            .map(|a| addon_of(&a).found(resource)))
    }

    pub(super) async fn create_addon(&self, resource: &Resource, run: &str) -> Result<()> {
        let Resource::Addon {
            cluster,
            name,
            version,
            service_account_role,
            configuration,
        } = resource
        else {
            return Err(internal("addon", "not an add-on"));
        };
        // Without a version EKS takes its default for the cluster's version.
        self.eks()
            .await
            .create_addon()
            .cluster_name(cluster)
            .addon_name(name)
            .set_addon_version(version.clone())
            .set_service_account_role_arn(service_account_role.clone())
            .set_configuration_values(configuration.as_ref().map(Value::to_string))
            .resolve_conflicts(eks::ResolveConflicts::Overwrite)
            .client_request_token(self.token(run, resource))
            .tags(RUN_TAG, run)
            .send()
            .await
            .map_err(|e| needs_cluster(aws::error(&resource.id(), e)))?;
        Ok(())
    }

    pub(super) async fn delete_addon(&self, cluster: &str, name: &str) -> Result<()> {
        absent_is_fine(
            self.eks()
                .await
                .delete_addon()
                .cluster_name(cluster)
                .addon_name(name)
                .send()
                .await
                .map_err(|e| aws::error(&format!("addon/{cluster}/{name}"), e)),
        )
    }

    pub(super) async fn find_access(&self, resource: &Resource) -> Result<Option<Found>> {
        let Resource::AccessEntry {
            cluster, principal, ..
        } = resource
        else {
            return Err(internal("access-entry", "not an entry"));
        };
        let entry = read_access(&self.eks().await, cluster, principal, &resource.id()).await?;
        Ok(entry.map(|e| e.found(resource)))
    }

    /// Two requests: the entry, then its policy. Repeating both is harmless.
    pub(super) async fn create_access(&self, resource: &Resource, run: &str) -> Result<()> {
        let Resource::AccessEntry {
            cluster,
            principal,
            groups,
            policy,
            namespaces,
        } = resource
        else {
            return Err(internal("access-entry", "not an entry"));
        };
        let at = resource.id();
        let client = self.eks().await;
        let made = client
            .create_access_entry()
            .cluster_name(cluster)
            .principal_arn(principal)
            .set_kubernetes_groups((!groups.is_empty()).then(|| groups.clone()))
            .client_request_token(self.token(run, resource))
            .tags(RUN_TAG, run)
            .send()
            .await
            .map_err(|e| needs_cluster(aws::error(&at, e)));
        match made {
            Ok(_) => {}
            Err(e) if e.class == Class::AlreadyExists => {
                if self
                    .find_access(resource)
                    .await?
                    .and_then(|f| f.run)
                    .as_deref()
                    != Some(run)
                {
                    return Err(e);
                }
            }
            Err(e) => return Err(e),
        }
        if let Some(policy) = policy {
            client
                .associate_access_policy()
                .cluster_name(cluster)
                .principal_arn(principal)
                .policy_arn(policy_arn(principal, policy))
                .access_scope(if namespaces.is_empty() {
                    eks::AccessScope::builder()
                        .r#type(eks::AccessScopeType::Cluster)
                        .build()
                } else {
                    eks::AccessScope::builder()
                        .r#type(eks::AccessScopeType::Namespace)
                        .set_namespaces(Some(namespaces.clone()))
                        .build()
                })
                .send()
                .await
                .map_err(|e| aws::error(&at, e))?;
        }
        Ok(())
    }

    pub(super) async fn delete_access(&self, cluster: &str, principal: &str) -> Result<()> {
        absent_is_fine(
            self.eks()
                .await
                .delete_access_entry()
                .cluster_name(cluster)
                .principal_arn(principal)
                .send()
                .await
                .map_err(|e| aws::error(&format!("access-entry/{cluster}/{principal}"), e)),
        )
    }

    pub(super) async fn find_node_group(&self, resource: &Resource) -> Result<Option<Found>> {
        let Resource::NodeGroup { cluster, name, .. } = resource else {
            return Err(internal("node-group", "not a node group"));
        };
        let answer = optional(
            self.eks()
                .await
                .describe_nodegroup()
                .cluster_name(cluster)
                .nodegroup_name(name)
                .send()
                .await
                .map_err(|e| aws::error(&resource.id(), e)),
        )?;
        Ok(answer
            .and_then(|a| a.nodegroup)
            .map(|g| node_group_of(&g).found(resource)))
    }

    pub(super) async fn create_node_group(&self, resource: &Resource, run: &str) -> Result<()> {
        let Resource::NodeGroup {
            cluster,
            name,
            role_arn,
            subnets,
            instance_types,
            ami_type,
            capacity_type,
            min,
            max,
            desired,
            disk_gib,
            labels,
            taints,
            launch_template,
            max_unavailable,
        } = resource
        else {
            return Err(internal("node-group", "not a node group"));
        };
        let at = resource.id();
        let size = |n: u32| {
            i32::try_from(n)
                .map_err(|_| Error::new(Class::Refused, resource.id(), format!("{n} is too large")))
        };
        let taints = taints
            .iter()
            .map(|t| {
                eks::Taint::builder()
                    .key(&t.key)
                    .set_value((!t.value.is_empty()).then(|| t.value.clone()))
                    .effect(effect(&t.effect))
                    .build()
            })
            .collect::<Vec<_>>();
        self.eks()
            .await
            .create_nodegroup()
            .cluster_name(cluster)
            .nodegroup_name(name)
            .node_role(role_arn)
            .set_subnets(Some(subnets.clone()))
            .set_instance_types(Some(instance_types.clone()))
            .ami_type(eks::AmiTypes::from(ami_type.as_str()))
            .capacity_type(eks::CapacityTypes::from(capacity_type.as_str()))
            // With a launch template EKS refuses a disk size in the request: the template says it (eks.md 1.6).
            .set_disk_size(match launch_template {
                Some(_) => None,
                None => Some(size(*disk_gib)?),
            })
            .set_launch_template(launch_template.as_ref().map(|name| {
                eks::LaunchTemplateSpecification::builder()
                    .name(name)
                    .build()
            }))
            .scaling_config(
                eks::NodegroupScalingConfig::builder()
                    .min_size(size(*min)?)
                    .max_size(size(*max)?)
                    .desired_size(size(*desired)?)
                    .build(),
            )
            .update_config(update_config(max_unavailable.as_deref(), &at)?)
            .set_labels(Some(labels.clone().into_iter().collect()))
            .set_taints((!taints.is_empty()).then_some(taints))
            .client_request_token(self.token(run, resource))
            .tags(RUN_TAG, run)
            .send()
            .await
            .map_err(|e| needs_cluster(aws::error(&at, e)))?;
        Ok(())
    }

    pub(super) async fn delete_node_group(&self, cluster: &str, name: &str) -> Result<()> {
        absent_is_fine(
            self.eks()
                .await
                .delete_nodegroup()
                .cluster_name(cluster)
                .nodegroup_name(name)
                .send()
                .await
                .map_err(|e| aws::error(&format!("node-group/{cluster}/{name}"), e)),
        )
    }
}

/// "No cluster found" on a create inside a cluster means "not yet".
fn needs_cluster(e: Error) -> Error {
    if e.class == Class::NotFound {
        Error {
            class: Class::NotReady,
            ..e
        }
    } else {
        e
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_policy_is_in_the_partition_of_its_principal() {
        assert_eq!(
            policy_arn("arn:aws-cn:iam::000000000000:role/x", "AmazonEKSViewPolicy"),
            "arn:aws-cn:eks::aws:cluster-access-policy/AmazonEKSViewPolicy"
        );
    }
}
