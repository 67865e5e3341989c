//! What hangs on a thing that is about to be deleted, though this run did not put it there.

use super::{LiveCloud, optional};
use crate::world::cloud::{Attached, RUN_TAG, Resource};
use crate::world::live::aws;
use crate::world::{Class, Error, Result};
use aws_sdk_ec2::types::Filter;
use std::collections::BTreeSet;

/// Somebody's: it stays until a person says otherwise.
fn theirs(what: String) -> Attached {
    Attached {
        what,
        passes: false,
    }
}

/// AWS's own: it goes by itself.
fn passing(what: String) -> Attached {
    Attached { what, passes: true }
}

fn filter(name: &str, values: impl IntoIterator<Item = String>) -> Filter {
    Filter::builder()
        .name(name)
        .set_values(Some(values.into_iter().collect()))
        .build()
}

/// A list of something that is gone is empty.
fn none_left<T>(result: Result<T>) -> Result<Option<T>> {
    optional(result)
}

impl LiveCloud {
    pub(super) async fn hung_on(&self, resource: &Resource, run: &str) -> Result<Vec<Attached>> {
        let mut out = match resource {
            Resource::Role { .. } => self.on_role(resource).await?,
            Resource::Cluster { .. } => self.on_cluster(resource, run).await?,
            Resource::OidcProvider { .. } => self.on_provider(resource).await?,
            Resource::LaunchTemplate { .. } => self.on_template(resource).await?,
            _ => vec![],
        };
        out.sort();
        out.dedup();
        Ok(out)
    }

    /// Policies beside those that the plan asked for, and instance profiles: the role's own ends with its node group.
    async fn on_role(&self, resource: &Resource) -> Result<Vec<Attached>> {
        let Resource::Role {
            name,
            managed_policies,
            inline_policies,
            ..
        } = resource
        else {
            return Ok(vec![]);
        };
        let mut out = vec![];
        for arn in none_left(self.attached_policies(name).await)?.unwrap_or_default() {
            if !managed_policies.contains(&arn) {
                out.push(theirs(format!("policy {arn}")));
            }
        }
        for policy in none_left(self.inline_names(name).await)?.unwrap_or_default() {
            if !inline_policies.contains_key(&policy) {
                out.push(theirs(format!("inline policy {policy}")));
            }
        }
        let at = resource.id();
        let profiles = none_left(
            self.iam()
                .await
                .list_instance_profiles_for_role()
                .role_name(name)
                .send()
                .await
                .map_err(|e| aws::error(&at, e)),
        )?;
        for profile in profiles.iter().flat_map(|p| p.instance_profiles()) {
            let name = profile.instance_profile_name();
            // EKS makes one for each managed node group, and takes it away after the group (eks.md 1.6).
            let what = format!("instance profile {name}");
            out.push(if name.starts_with("eks-") {
                passing(what)
            } else {
                theirs(what)
            });
        }
        Ok(out)
    }

    /// An audience that somebody added lets more tokens in than ours; it would go with the provider.
    async fn on_provider(&self, resource: &Resource) -> Result<Vec<Attached>> {
        let Resource::OidcProvider { issuer, client_ids } = resource else {
            return Ok(vec![]);
        };
        let Some(arn) = self.oidc_arn(issuer).await? else {
            return Ok(vec![]);
        };
        let answer = none_left(
            self.iam()
                .await
                .get_open_id_connect_provider()
                .open_id_connect_provider_arn(&arn)
                .send()
                .await
                .map_err(|e| aws::error(&resource.id(), e)),
        )?;
        Ok(answer
            .iter()
            .flat_map(|p| p.client_id_list())
            .filter(|id| !client_ids.contains(id))
            .map(|id| theirs(format!("client id {id}")))
            .collect())
    }

    /// Versions beside the one that was made.
    async fn on_template(&self, resource: &Resource) -> Result<Vec<Attached>> {
        let Resource::LaunchTemplate { name, .. } = resource else {
            return Ok(vec![]);
        };
        let answer = none_left(
            self.ec2()
                .await
                .describe_launch_templates()
                .launch_template_names(name)
                .send()
                .await
                .map_err(|e| aws::error(&resource.id(), e)),
        )?;
        Ok(answer
            .iter()
            .flat_map(|a| a.launch_templates())
            .filter_map(|t| t.latest_version_number())
            .filter(|n| *n > 1)
            .map(|n| theirs(format!("version {n} of the template")))
            .collect())
    }

    /// What stands in the cluster and is not of this run, rules that name its security group, network interfaces.
    ///
    /// An access entry is not among them: it holds nothing, and means nothing without the cluster.
    async fn on_cluster(&self, resource: &Resource, run: &str) -> Result<Vec<Attached>> {
        let Resource::Cluster { name, subnets, .. } = resource else {
            return Ok(vec![]);
        };
        let at = resource.id();
        let client = self.eks().await;
        let described = none_left(
            client
                .describe_cluster()
                .name(name)
                .send()
                .await
                .map_err(|e| aws::error(&at, e)),
        )?;
        let mut out = vec![];
        let mut group = None;
        if let Some(cluster) = described.and_then(|a| a.cluster) {
            group = cluster
                .resources_vpc_config()
                .and_then(|v| v.cluster_security_group_id())
                .map(str::to_string);
            // A cluster that is not ACTIVE yet has none of these, and EKS answers nothing about them.
            out.extend(self.inside(&client, name, run, &at).await?);
        }
        if let Some(group) = &group {
            out.extend(self.rules_that_name(group, &at).await?);
        }
        out.extend(
            self.interfaces(name, subnets, group.as_deref(), &at)
                .await?,
        );
        Ok(out)
    }

    async fn inside(
        &self,
        client: &aws_sdk_eks::Client,
        cluster: &str,
        run: &str,
        at: &str,
    ) -> Result<Vec<Attached>> {
        let ours = |tags: Option<&std::collections::HashMap<String, String>>| {
            tags.and_then(|t| t.get(RUN_TAG)).map(String::as_str) == Some(run)
        };
        let mut out = vec![];
        let mut names = vec![];
        let mut pages = client
            .list_nodegroups()
            .cluster_name(cluster)
            .into_paginator()
            .items()
            .send();
        while let Some(n) = pages.next().await {
            match n.map_err(|e| aws::error(at, e)) {
                Ok(n) => names.push(n),
                Err(e) if gone(&e) => return Ok(vec![]),
                Err(e) => return Err(e),
            }
        }
        for name in names {
            let group = none_left(
                client
                    .describe_nodegroup()
                    .cluster_name(cluster)
                    .nodegroup_name(&name)
                    .send()
                    .await
                    .map_err(|e| aws::error(at, e)),
            )?;
            if let Some(g) = group.and_then(|g| g.nodegroup)
                && !ours(g.tags())
            {
                out.push(theirs(format!("node group {name}")));
            }
        }
        let mut names = vec![];
        let mut pages = client
            .list_addons()
            .cluster_name(cluster)
            .into_paginator()
            .items()
            .send();
        while let Some(n) = pages.next().await {
            match n.map_err(|e| aws::error(at, e)) {
                Ok(n) => names.push(n),
                Err(e) if gone(&e) => return Ok(vec![]),
                Err(e) => return Err(e),
            }
        }
        for name in names {
            let addon = none_left(
                client
                    .describe_addon()
                    .cluster_name(cluster)
                    .addon_name(&name)
                    .send()
                    .await
                    .map_err(|e| aws::error(at, e)),
            )?;
            if let Some(a) = addon.and_then(|a| a.addon)
                && !ours(a.tags())
            {
                out.push(theirs(format!("add-on {name}")));
            }
        }
        let mut ids = vec![];
        let mut pages = client
            .list_pod_identity_associations()
            .cluster_name(cluster)
            .into_paginator()
            .items()
            .send();
        while let Some(a) = pages.next().await {
            match a.map_err(|e| aws::error(at, e)) {
                Ok(a) => ids.extend(a.association_id().map(|id| {
                    let what = format!(
                        "pod identity association {}/{}",
                        a.namespace().unwrap_or_default(),
                        a.service_account().unwrap_or_default()
                    );
                    (id.to_string(), what)
                })),
                Err(e) if gone(&e) => return Ok(vec![]),
                Err(e) => return Err(e),
            }
        }
        for (id, what) in ids {
            let answer = none_left(
                client
                    .describe_pod_identity_association()
                    .cluster_name(cluster)
                    .association_id(&id)
                    .send()
                    .await
                    .map_err(|e| aws::error(at, e)),
            )?;
            // One that an add-on made goes with it.
            if let Some(a) = answer.and_then(|a| a.association)
                && a.owner_arn().is_none()
                && !ours(a.tags())
            {
                out.push(theirs(what));
            }
        }
        Ok(out)
    }

    /// Rules of other groups that name the cluster's: EKS could not delete its group, and their owner would lose them.
    async fn rules_that_name(&self, group: &str, at: &str) -> Result<Vec<Attached>> {
        let client = self.ec2().await;
        let mut found = BTreeSet::new();
        for direction in ["ip-permission.group-id", "egress.ip-permission.group-id"] {
            let mut pages = client
                .describe_security_groups()
                .filters(filter(direction, [group.to_string()]))
                .into_paginator()
                .items()
                .send();
            while let Some(g) = pages.next().await {
                let g = g.map_err(|e| aws::error(at, e))?;
                let id = g.group_id().unwrap_or_default();
                // The emulator's filter is not trusted: what does not name the group is left out.
                let names = [g.ip_permissions(), g.ip_permissions_egress()]
                    .into_iter()
                    .flatten()
                    .flat_map(|p| p.user_id_group_pairs())
                    .any(|p| p.group_id() == Some(group));
                if id != group && names {
                    found.insert(format!(
                        "rule of security group {id} ({})",
                        g.group_name().unwrap_or_default()
                    ));
                }
            }
        }
        Ok(found.into_iter().map(theirs).collect())
    }

    /// Interfaces of the control plane and of pods go by themselves, a while after what they served; one of something else that
    /// uses the cluster's security group is somebody's.
    async fn interfaces(
        &self,
        cluster: &str,
        subnets: &[String],
        group: Option<&str>,
        at: &str,
    ) -> Result<Vec<Attached>> {
        if subnets.is_empty() {
            return Ok(vec![]);
        }
        let own = format!("Amazon EKS {cluster}");
        let mut out = vec![];
        let client = self.ec2().await;
        let mut pages = client
            .describe_network_interfaces()
            .filters(filter("subnet-id", subnets.iter().cloned()))
            .into_paginator()
            .items()
            .send();
        while let Some(i) = pages.next().await {
            let i = i.map_err(|e| aws::error(at, e))?;
            let text = i.description().unwrap_or_default();
            let tag = |key: &str| {
                let mut tags = i.tag_set().iter();
                tags.find(|t| t.key() == Some(key)).and_then(|t| t.value())
            };
            let what = format!(
                "network interface {} ({text})",
                i.network_interface_id().unwrap_or_default()
            );
            let in_group = || {
                i.groups()
                    .iter()
                    .any(|g| g.group_id().is_some() && g.group_id() == group)
            };
            if text == own {
                // While the cluster stands, its control plane needs them: they are no reason to wait.
                if group.is_none() {
                    out.push(passing(what));
                }
            } else if tag("cluster.k8s.amazonaws.com/name") == Some(cluster)
                // The CNI's, of before it tagged them.
                || text.starts_with("aws-K8S-") && in_group()
            {
                out.push(passing(what));
            } else if in_group() {
                out.push(theirs(what));
            }
        }
        Ok(out)
    }
}

/// The cluster went meanwhile, or is not ACTIVE yet: nothing can stand in it.
fn gone(e: &Error) -> bool {
    matches!(e.class, Class::NotFound | Class::NotReady)
}
