//! EKS: cluster, add-ons, access entries, managed node groups.

use super::eks_read::{addon_of, cluster_of, node_group_of, read_access};
use super::{LiveCloud, absent_is_fine, internal, optional};
use crate::world::cloud::{Found, RUN_TAG, Resource};
use crate::world::live::aws;
use crate::world::{Class, Error, Result};
use aws_sdk_eks::types as eks;
use serde_json::Value;

/// Attribute of a found cluster: `true` when EKS refuses to delete it.
pub(super) const PROTECTED: &str = "deletionProtection";
/// Switching protection off takes seconds; a minute is looked at here, then the engine goes on asking.
const UPDATE_LOOKS: usize = 60;
const UPDATE_PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

/// Which logs go to CloudWatch; `None`: none, as EKS has it.
fn log_setup(types: &[String]) -> Option<eks::Logging> {
    (!types.is_empty()).then(|| {
        eks::Logging::builder()
            .cluster_logging(
                eks::LogSetup::builder()
                    .set_types(Some(
                        types
                            .iter()
                            .map(|t| eks::LogType::from(t.as_str()))
                            .collect(),
                    ))
                    .enabled(true)
                    .build(),
            )
            .build()
    })
}

/// A customer's key around the data key of the cluster. EKS encrypts all objects whatever `resources` says, but its API took no
/// configuration without it for years.
#[allow(deprecated)]
fn encryption(key: &str) -> eks::EncryptionConfig {
    eks::EncryptionConfig::builder()
        .resources("secrets")
        .provider(eks::Provider::builder().key_arn(key).build())
        .build()
}

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
            logging,
            kms_key,
            deletion_protection,
            support_type,
            security_groups,
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
                    .set_security_group_ids(
                        (!security_groups.is_empty()).then(|| security_groups.clone()),
                    )
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
                    .support_type(eks::SupportType::from(support_type.as_str()))
                    .build(),
            )
            .deletion_protection(*deletion_protection)
            .set_logging(log_setup(logging))
            .set_encryption_config(kms_key.as_deref().map(|key| vec![encryption(key)]))
            .client_request_token(self.token(run, resource))
            .tags(RUN_TAG, run);
        if let Some(cidr) = service_cidr {
            request = request.kubernetes_network_config(
                eks::KubernetesNetworkConfigRequest::builder()
                    .service_ipv4_cidr(cidr)
                    .build(),
            );
        }
        match request.send().await {
            Ok(_) => Ok(()),
            Err(e) => Err(self.aged(aws::error(&resource.id(), e), role_arn).await),
        }
    }

    /// Protection that our own create switched on is switched off first. One that somebody switched on later says that
    /// production is there: it stands.
    pub(super) async fn delete_cluster(&self, resource: &Resource) -> Result<()> {
        let Resource::Cluster {
            name,
            deletion_protection: ours,
            ..
        } = resource
        else {
            return Err(internal("cluster", "not a cluster"));
        };
        if let Some(found) = self.find_cluster(resource).await?
            && found.attributes.get(PROTECTED).map(String::as_str) == Some("true")
        {
            if !ours {
                return Err(Error::new(
                    Class::Refused,
                    resource.id(),
                    "somebody switched on its deletion protection after crossfade had made it",
                )
                .remedy(format!("when it may go: aws eks update-cluster-config --name {name} --no-deletion-protection; then repeat the command")));
            }
            self.unprotect(name).await?;
        }
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

    /// One update at a time, and it takes effect when it is done: DeleteCluster before that is refused (eks.md 1.2).
    async fn unprotect(&self, name: &str) -> Result<()> {
        let at = format!("cluster/{name}");
        let client = self.eks().await;
        let answer = client
            .update_cluster_config()
            .name(name)
            .deletion_protection(false)
            .send()
            .await
            .map_err(|e| aws::error(&at, e))?;
        let id = answer.update().and_then(|u| u.id()).ok_or_else(|| {
            internal(
                &at,
                "UpdateClusterConfig answered without the id of an update",
            )
        })?;
        for _ in 0..UPDATE_LOOKS {
            let answer = client
                .describe_update()
                .name(name)
                .update_id(id)
                .send()
                .await
                .map_err(|e| aws::error(&at, e))?;
            let update = answer.update();
            match update.and_then(|u| u.status()).map(|s| s.as_str()) {
                Some("Successful") => return Ok(()),
                Some(word @ ("Failed" | "Cancelled")) => {
                    let why: Vec<&str> = update
                        .map(|u| u.errors())
                        .unwrap_or_default()
                        .iter()
                        .filter_map(|e| e.error_message())
                        .collect();
                    return Err(Error::new(
                        Class::Refused,
                        at,
                        format!(
                            "switching off its deletion protection ended as {word}: {}",
                            why.join("; ")
                        ),
                    ));
                }
                _ => tokio::time::sleep(UPDATE_PAUSE).await,
            }
        }
        // The engine repeats the delete, journals the attempt, and finds the update done or still under way.
        Err(Error::new(
            Class::NotReady,
            at,
            "its deletion protection is being switched off (UpdateClusterConfig is InProgress)",
        ))
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
            conflicts,
        } = resource
        else {
            return Err(internal("addon", "not an add-on"));
        };
        // Without a version EKS takes its default for the cluster's version.
        let made = self
            .eks()
            .await
            .create_addon()
            .cluster_name(cluster)
            .addon_name(name)
            .set_addon_version(version.clone())
            .set_service_account_role_arn(service_account_role.clone())
            .set_configuration_values(configuration.as_ref().map(Value::to_string))
            .resolve_conflicts(eks::ResolveConflicts::from(conflicts.as_str()))
            .client_request_token(self.token(run, resource))
            .tags(RUN_TAG, run)
            .send()
            .await
            .map_err(|e| needs_cluster(aws::error(&resource.id(), e)));
        match (made, service_account_role) {
            (Ok(_), _) => Ok(()),
            (Err(e), Some(role)) => Err(self.aged(e, role).await),
            (Err(e), None) => Err(e),
        }
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
            repair,
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
        let made = self
            .eks()
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
            .set_node_repair_config(
                repair.then(|| eks::NodeRepairConfig::builder().enabled(true).build()),
            )
            .set_labels(Some(labels.clone().into_iter().collect()))
            .set_taints((!taints.is_empty()).then_some(taints))
            .client_request_token(self.token(run, resource))
            .tags(RUN_TAG, run)
            .send()
            .await
            .map_err(|e| needs_cluster(aws::error(&at, e)));
        match made {
            Ok(_) => Ok(()),
            Err(e) => Err(self.aged(e, role_arn).await),
        }
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
pub(super) fn needs_cluster(e: Error) -> Error {
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
