//! EKS: cluster, add-ons, access entries, managed node groups.

use super::{LiveCloud, absent_is_fine, client_token, internal, optional};
use crate::world::cloud::{Existing, Found, RUN_TAG, Resource, Status, Taint};
use crate::world::live::aws;
use crate::world::{Class, Error, Result};
use aws_sdk_eks::types as eks;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// Status words of all EKS resources, with what the service says is wrong.
/// DEGRADED is "pending": an add-on without nodes yet heals by itself (eks.md 1.5), and the step's own time limit ends the wait.
fn status(word: Option<&str>, issues: Vec<String>) -> Status {
    let issues = issues.join("; ");
    let with = |w: &str| {
        if issues.is_empty() {
            w.to_string()
        } else {
            format!("{w}: {issues}")
        }
    };
    match word.unwrap_or("UNKNOWN") {
        "ACTIVE" => Status::Ready,
        "DELETING" => Status::Deleting,
        w @ ("FAILED" | "CREATE_FAILED" | "DELETE_FAILED" | "UPDATE_FAILED") => {
            Status::Failed(with(w))
        }
        w => Status::Pending(with(w)),
    }
}

fn issue(code: Option<&str>, message: Option<&str>, resources: &[String]) -> String {
    let mut text = format!(
        "{} {}",
        code.unwrap_or_default(),
        message.unwrap_or_default()
    );
    if !resources.is_empty() {
        text.push_str(&format!(" ({})", resources.join(", ")));
    }
    text.trim().to_string()
}

/// Kubernetes spelling of a taint effect to the API's.
fn effect(kubernetes: &str) -> eks::TaintEffect {
    match kubernetes {
        "NoExecute" => eks::TaintEffect::NoExecute,
        "PreferNoSchedule" => eks::TaintEffect::PreferNoSchedule,
        _ => eks::TaintEffect::NoSchedule,
    }
}

/// The API's spelling of a taint effect to Kubernetes's.
fn spelled(effect: Option<&eks::TaintEffect>) -> &'static str {
    match effect {
        Some(eks::TaintEffect::NoExecute) => "NoExecute",
        Some(eks::TaintEffect::PreferNoSchedule) => "PreferNoSchedule",
        _ => "NoSchedule",
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

/// An add-on's settings come back as the text that was sent. Text that is no JSON (people also write YAML) stays a text.
fn settings(text: Option<&str>) -> Option<Value> {
    let text = text.map(str::trim).filter(|t| !t.is_empty())?;
    match serde_json::from_str(text) {
        Ok(Value::Object(m)) if m.is_empty() => None,
        Ok(v) => Some(v),
        Err(_) => Some(Value::String(text.into())),
    }
}

fn tags_of(tags: Option<&HashMap<String, String>>) -> BTreeMap<String, String> {
    tags.into_iter()
        .flatten()
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect()
}

fn count(n: Option<i32>) -> u32 {
    n.and_then(|n| u32::try_from(n).ok()).unwrap_or(0)
}

fn attributes<'a>(
    list: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> BTreeMap<String, String> {
    list.into_iter()
        .filter_map(|(k, v)| Some((k.to_string(), v?.to_string())))
        .collect()
}

/// A cluster as DescribeCluster shows it.
pub(super) fn cluster_of(c: &eks::Cluster) -> Existing {
    let vpc = c.resources_vpc_config();
    let issues = c
        .health()
        .map(|h| h.issues())
        .unwrap_or_default()
        .iter()
        .map(|i| issue(i.code().map(|c| c.as_str()), i.message(), i.resource_ids()))
        .collect();
    Existing {
        resource: Resource::Cluster {
            name: c.name().unwrap_or_default().into(),
            version: c.version().unwrap_or_default().into(),
            role_arn: c.role_arn().unwrap_or_default().into(),
            subnets: vpc.map(|v| v.subnet_ids().to_vec()).unwrap_or_default(),
            service_cidr: c
                .kubernetes_network_config()
                .and_then(|n| n.service_ipv4_cidr())
                .map(Into::into),
            public_endpoint: vpc.is_some_and(|v| v.endpoint_public_access()),
            private_endpoint: vpc.is_some_and(|v| v.endpoint_private_access()),
            endpoint_cidrs: vpc
                .map(|v| v.public_access_cidrs().to_vec())
                .unwrap_or_default(),
        },
        tags: tags_of(c.tags()),
        status: status(c.status().map(|s| s.as_str()), issues),
        extras: vec![],
        attributes: attributes([
            (
                "issuer",
                c.identity()
                    .and_then(|i| i.oidc())
                    .and_then(|o| o.issuer())
                    .map(|i| i.trim_start_matches("https://")),
            ),
            ("endpoint", c.endpoint()),
            ("caData", c.certificate_authority().and_then(|c| c.data())),
            (
                "securityGroup",
                vpc.and_then(|v| v.cluster_security_group_id()),
            ),
            ("version", c.version()),
            ("arn", c.arn()),
            ("vpc", vpc.and_then(|v| v.vpc_id())),
        ]),
    }
}

/// An add-on as DescribeAddon shows it.
pub(super) fn addon_of(a: &eks::Addon) -> Existing {
    let issues = a
        .health()
        .map(|h| h.issues())
        .unwrap_or_default()
        .iter()
        .map(|i| issue(i.code().map(|c| c.as_str()), i.message(), i.resource_ids()))
        .collect();
    Existing {
        resource: Resource::Addon {
            cluster: a.cluster_name().unwrap_or_default().into(),
            name: a.addon_name().unwrap_or_default().into(),
            version: a.addon_version().map(Into::into),
            service_account_role: a.service_account_role_arn().map(Into::into),
            configuration: settings(a.configuration_values()),
        },
        tags: tags_of(a.tags()),
        status: status(a.status().map(|s| s.as_str()), issues),
        extras: vec![],
        attributes: attributes([("version", a.addon_version()), ("arn", a.addon_arn())]),
    }
}

/// A node group as DescribeNodegroup shows it.
pub(super) fn node_group_of(g: &eks::Nodegroup) -> Existing {
    let issues = g
        .health()
        .map(|h| h.issues())
        .unwrap_or_default()
        .iter()
        .map(|i| issue(i.code().map(|c| c.as_str()), i.message(), i.resource_ids()))
        .collect();
    let scaling = g.scaling_config();
    Existing {
        resource: Resource::NodeGroup {
            cluster: g.cluster_name().unwrap_or_default().into(),
            name: g.nodegroup_name().unwrap_or_default().into(),
            role_arn: g.node_role().unwrap_or_default().into(),
            subnets: g.subnets().to_vec(),
            instance_types: g.instance_types().to_vec(),
            ami_type: g.ami_type().map_or("", |a| a.as_str()).into(),
            capacity_type: g.capacity_type().map_or("", |c| c.as_str()).into(),
            min: count(scaling.and_then(|s| s.min_size())),
            max: count(scaling.and_then(|s| s.max_size())),
            desired: count(scaling.and_then(|s| s.desired_size())),
            disk_gib: count(g.disk_size()),
            labels: tags_of(g.labels()),
            taints: g
                .taints()
                .iter()
                .map(|t| Taint {
                    key: t.key().unwrap_or_default().into(),
                    value: t.value().unwrap_or_default().into(),
                    effect: spelled(t.effect()).into(),
                })
                .collect(),
            launch_template: g
                .launch_template()
                .and_then(|t| t.name().or(t.id()))
                .map(Into::into),
            max_unavailable: unavailable(g.update_config()),
        },
        tags: tags_of(g.tags()),
        status: status(g.status().map(|s| s.as_str()), issues),
        extras: vec![],
        attributes: attributes([("version", g.version()), ("arn", g.nodegroup_arn())]),
    }
}

/// An access entry with its policies. crossfade gives an entry one policy at most, and people the type STANDARD.
pub(super) fn access_of(
    entry: &eks::AccessEntry,
    policies: &[eks::AssociatedAccessPolicy],
) -> Existing {
    let short = |p: &eks::AssociatedAccessPolicy| {
        let arn = p.policy_arn().unwrap_or_default();
        arn.rsplit('/').next().unwrap_or(arn).to_string()
    };
    let mut extras: Vec<String> = policies
        .iter()
        .skip(1)
        .map(|p| format!("access policy {}", short(p)))
        .collect();
    if let Some(kind) = entry.r#type().filter(|t| *t != "STANDARD") {
        extras.push(format!("type {kind}"));
    }
    let first = policies.first();
    Existing {
        resource: Resource::AccessEntry {
            cluster: entry.cluster_name().unwrap_or_default().into(),
            principal: entry.principal_arn().unwrap_or_default().into(),
            groups: entry.kubernetes_groups().to_vec(),
            policy: first.map(short),
            // The whole cluster is the scope without a namespace.
            namespaces: first
                .and_then(|p| p.access_scope())
                .map(|s| s.namespaces().to_vec())
                .unwrap_or_default(),
        },
        tags: tags_of(entry.tags()),
        status: Status::Ready,
        extras,
        attributes: attributes([("arn", entry.access_entry_arn())]),
    }
}

/// `1` or `10%`, as a node group has it.
fn unavailable(config: Option<&eks::NodegroupUpdateConfig>) -> Option<String> {
    let c = config?;
    match (c.max_unavailable(), c.max_unavailable_percentage()) {
        (_, Some(p)) => Some(format!("{p}%")),
        (Some(n), None) => Some(n.to_string()),
        (None, None) => None,
    }
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
            .client_request_token(client_token(run, resource))
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
            .client_request_token(client_token(run, resource))
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
            .client_request_token(client_token(run, resource))
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
            .client_request_token(client_token(run, resource))
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

/// An access entry with its policies; `None` when there is none.
pub(super) async fn read_access(
    client: &aws_sdk_eks::Client,
    cluster: &str,
    principal: &str,
    at: &str,
) -> Result<Option<Existing>> {
    let answer = optional(
        client
            .describe_access_entry()
            .cluster_name(cluster)
            .principal_arn(principal)
            .send()
            .await
            .map_err(|e| aws::error(at, e)),
    )?;
    let Some(entry) = answer.and_then(|a| a.access_entry) else {
        return Ok(None);
    };
    let mut policies = vec![];
    let mut pages = client
        .list_associated_access_policies()
        .cluster_name(cluster)
        .principal_arn(principal)
        .into_paginator()
        .items()
        .send();
    while let Some(p) = pages.next().await {
        match p.map_err(|e| aws::error(at, e)) {
            Ok(p) => policies.push(p),
            Err(e) if e.class == Class::NotFound => return Ok(None),
            Err(e) => return Err(e),
        }
    }
    Ok(Some(access_of(&entry, &policies)))
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
    fn a_degraded_addon_may_heal_and_a_failed_one_says_why() {
        assert_eq!(status(Some("ACTIVE"), vec![]), Status::Ready);
        assert_eq!(
            status(
                Some("DEGRADED"),
                vec!["InsufficientNumberOfReplicas no nodes".into()]
            ),
            Status::Pending("DEGRADED: InsufficientNumberOfReplicas no nodes".into())
        );
        assert_eq!(
            status(
                Some("CREATE_FAILED"),
                vec![issue(Some("AccessDenied"), Some("role"), &["i-1".into()])]
            ),
            Status::Failed("CREATE_FAILED: AccessDenied role (i-1)".into())
        );
        assert_eq!(status(Some("DELETING"), vec![]), Status::Deleting);
        assert_eq!(status(None, vec![]), Status::Pending("UNKNOWN".into()));
    }

    #[test]
    fn an_access_policy_is_in_the_partition_of_its_principal() {
        assert_eq!(
            policy_arn("arn:aws-cn:iam::000000000000:role/x", "AmazonEKSViewPolicy"),
            "arn:aws-cn:eks::aws:cluster-access-policy/AmazonEKSViewPolicy"
        );
    }
}
