//! One read-only sweep over the account.

use super::{LiveCloud, eks_read as eks, iam::document, optional, tag_map};
use crate::world::cloud::{
    Cloud, EksCluster, Existing, IngressRule, Inventory, Role, SecurityGroup, Subnet, Vpc,
};
use crate::world::live::aws;
use crate::world::{Class, Result};
use aws_sdk_ec2::types as ec2;
use aws_sdk_iam::types::EntityType;
use std::collections::BTreeMap;

pub(super) fn filter(name: &str, value: &str) -> ec2::Filter {
    ec2::Filter::builder().name(name).values(value).build()
}

pub(super) fn tags(list: &[ec2::Tag]) -> BTreeMap<String, String> {
    tag_map(list.iter().map(|t| (t.key(), t.value())))
}

/// Each source of a permission as a rule of its own.
fn rules(permission: &ec2::IpPermission) -> Vec<IngressRule> {
    let rule =
        |source_group: Option<&str>, cidr: Option<&str>, description: Option<&str>| IngressRule {
            protocol: permission.ip_protocol().unwrap_or("-1").into(),
            from_port: permission.from_port().unwrap_or(-1),
            to_port: permission.to_port().unwrap_or(-1),
            source_group: source_group.map(Into::into),
            cidr: cidr.map(Into::into),
            description: description.map(Into::into),
        };
    let mut out = vec![];
    for p in permission.user_id_group_pairs() {
        out.push(rule(p.group_id(), None, p.description()));
    }
    for r in permission.ip_ranges() {
        out.push(rule(None, r.cidr_ip(), r.description()));
    }
    for r in permission.ipv6_ranges() {
        out.push(rule(None, r.cidr_ipv6(), r.description()));
    }
    for l in permission.prefix_list_ids() {
        out.push(rule(None, l.prefix_list_id(), l.description()));
    }
    out
}

impl LiveCloud {
    pub(super) async fn read_inventory(&self, kops_cluster: &str) -> Result<Inventory> {
        let identity = self.identity().await?;
        let config = self.aws.reading().await;
        let ec2_client = aws_sdk_ec2::Client::new(&config);
        let vpc_id = find_vpc(&ec2_client, kops_cluster).await?;
        let (mut vpc, mut subnets, mut security_groups) = (None, vec![], vec![]);
        if let Some(id) = &vpc_id {
            vpc = read_vpc(&ec2_client, id).await?;
            subnets = read_subnets(&ec2_client, id).await?;
            security_groups = read_groups(&ec2_client, id).await?;
        }
        let iam_client = aws_sdk_iam::Client::new(&config);
        let eks_client = aws_sdk_eks::Client::new(&config);
        let iam = read_iam(&iam_client).await?;
        let mut inventory = Inventory {
            identity,
            vpc,
            subnets,
            security_groups,
            roles: iam.roles,
            policies: Some(iam.policies),
            instance_profiles: Some(iam.instance_profiles),
            oidc_providers: read_providers(&iam_client).await?,
            clusters: read_clusters(&eks_client, vpc_id.as_deref()).await?,
            ..Inventory::default()
        };
        match super::template::read_all(&ec2_client).await {
            Ok(templates) => inventory.launch_templates = Some(templates),
            // Not read, and said so: never "there is none".
            Err(e) if e.class == Class::Unauthorized => {
                let why = format!("{}: {}", e.at, e.message);
                inventory.not_read.insert("launchTemplates".into(), why);
            }
            Err(e) => return Err(e),
        }
        super::capacity::read(&ec2_client, vpc_id.as_deref(), kops_cluster, &mut inventory).await;
        self.read_offers(&eks_client, &mut inventory).await;
        Ok(inventory)
    }
}

/// The VPC that carries the cluster's tag, or, when it is shared and carries none, the one its subnets are in.
async fn find_vpc(client: &aws_sdk_ec2::Client, cluster: &str) -> Result<Option<String>> {
    let owned = filter("tag:KubernetesCluster", cluster);
    let shared = filter("tag-key", &format!("kubernetes.io/cluster/{cluster}"));
    for f in [&owned, &shared] {
        let found = client
            .describe_vpcs()
            .filters(f.clone())
            .send()
            .await
            .map_err(|e| aws::error("vpcs", e))?;
        if let Some(id) = found.vpcs().first().and_then(|v| v.vpc_id()) {
            return Ok(Some(id.into()));
        }
    }
    for f in [&owned, &shared] {
        let found = client
            .describe_subnets()
            .filters(f.clone())
            .send()
            .await
            .map_err(|e| aws::error("subnets", e))?;
        if let Some(id) = found.subnets().first().and_then(|s| s.vpc_id()) {
            return Ok(Some(id.into()));
        }
    }
    Ok(None)
}

async fn read_vpc(client: &aws_sdk_ec2::Client, id: &str) -> Result<Option<Vpc>> {
    let found = client
        .describe_vpcs()
        .vpc_ids(id)
        .send()
        .await
        .map_err(|e| aws::error(id, e))?;
    Ok(found.vpcs().first().map(|v| {
        let mut cidrs: Vec<String> = v
            .cidr_block_association_set()
            .iter()
            .filter_map(|a| a.cidr_block().map(Into::into))
            .collect();
        if let Some(main) = v.cidr_block()
            && !cidrs.iter().any(|c| c == main)
        {
            cidrs.push(main.into());
        }
        cidrs.sort();
        Vpc {
            id: id.into(),
            cidrs,
            tags: tags(v.tags()),
        }
    }))
}

async fn read_subnets(client: &aws_sdk_ec2::Client, vpc: &str) -> Result<Vec<Subnet>> {
    let mut out = vec![];
    let mut pages = client
        .describe_subnets()
        .filters(filter("vpc-id", vpc))
        .into_paginator()
        .items()
        .send();
    while let Some(s) = pages.next().await {
        let s = s.map_err(|e| aws::error("subnets", e))?;
        out.push(Subnet {
            id: s.subnet_id().unwrap_or_default().into(),
            vpc: vpc.into(),
            zone: s.availability_zone().unwrap_or_default().into(),
            cidr: s.cidr_block().unwrap_or_default().into(),
            free_ips: s
                .available_ip_address_count()
                .and_then(|n| u32::try_from(n).ok())
                .unwrap_or(0),
            tags: tags(s.tags()),
        });
    }
    out.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(out)
}

async fn read_groups(client: &aws_sdk_ec2::Client, vpc: &str) -> Result<Vec<SecurityGroup>> {
    let mut out = vec![];
    let mut pages = client
        .describe_security_groups()
        .filters(filter("vpc-id", vpc))
        .into_paginator()
        .items()
        .send();
    while let Some(g) = pages.next().await {
        let g = g.map_err(|e| aws::error("security groups", e))?;
        out.push(SecurityGroup {
            id: g.group_id().unwrap_or_default().into(),
            name: g.group_name().unwrap_or_default().into(),
            vpc: vpc.into(),
            tags: tags(g.tags()),
            ingress: g.ip_permissions().iter().flat_map(rules).collect(),
        });
    }
    out.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(out)
}

/// What one sweep over IAM tells.
#[derive(Default)]
struct Iam {
    roles: Vec<Role>,
    /// Default version's document by ARN.
    policies: BTreeMap<String, serde_json::Value>,
    /// Role name by instance profile ARN.
    instance_profiles: BTreeMap<String, String>,
}

/// GetAccountAuthorizationDetails: everything about all roles, their instance profiles and the customer's own policies in one paged call
/// instead of four a role.
async fn read_iam(client: &aws_sdk_iam::Client) -> Result<Iam> {
    let mut out = Iam::default();
    let mut pages = client
        .get_account_authorization_details()
        .filter(EntityType::Role)
        .filter(EntityType::LocalManagedPolicy)
        .into_paginator()
        .send();
    while let Some(page) = pages.next().await {
        let page = page.map_err(|e| aws::error("roles", e))?;
        for p in page.policies() {
            let default = p
                .policy_version_list()
                .iter()
                .find(|v| v.is_default_version());
            if let (Some(arn), Some(doc)) = (p.arn(), default.and_then(|v| v.document())) {
                out.policies.insert(arn.into(), document(doc));
            }
        }
        for r in page.role_detail_list() {
            for profile in r.instance_profile_list() {
                out.instance_profiles.insert(
                    profile.arn().into(),
                    r.role_name().unwrap_or_default().into(),
                );
            }
            if r.path()
                .unwrap_or_default()
                .starts_with("/aws-service-role/")
            {
                continue;
            }
            let mut managed: Vec<String> = r
                .attached_managed_policies()
                .iter()
                .filter_map(|p| p.policy_arn().map(Into::into))
                .collect();
            managed.sort();
            out.roles.push(Role {
                name: r.role_name().unwrap_or_default().into(),
                arn: r.arn().unwrap_or_default().into(),
                trust: document(r.assume_role_policy_document().unwrap_or_default()),
                managed_policies: managed,
                inline_policies: r
                    .role_policy_list()
                    .iter()
                    .map(|p| {
                        (
                            p.policy_name().unwrap_or_default().to_string(),
                            document(p.policy_document().unwrap_or_default()),
                        )
                    })
                    .collect(),
                boundary: r
                    .permissions_boundary()
                    .and_then(|b| b.permissions_boundary_arn())
                    .map(Into::into),
                tags: tag_map(r.tags().iter().map(|t| (Some(t.key()), Some(t.value())))),
            });
        }
    }
    out.roles.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(out)
}

async fn read_providers(client: &aws_sdk_iam::Client) -> Result<Vec<String>> {
    let list = client
        .list_open_id_connect_providers()
        .send()
        .await
        .map_err(|e| aws::error("oidc providers", e))?;
    let mut out: Vec<String> = list
        .open_id_connect_provider_list()
        .iter()
        .filter_map(|p| {
            p.arn()?
                .split_once(":oidc-provider/")
                .map(|(_, i)| i.to_string())
        })
        .collect();
    out.sort();
    Ok(out)
}

/// Clusters of `vpc` in full, others by name: green stands where blue does, and a describe for each part of each cluster of a
/// large account would take minutes.
async fn read_clusters(client: &aws_sdk_eks::Client, vpc: Option<&str>) -> Result<Vec<EksCluster>> {
    let mut names = vec![];
    let mut pages = client.list_clusters().into_paginator().items().send();
    while let Some(n) = pages.next().await {
        names.push(n.map_err(|e| aws::error("eks clusters", e))?);
    }
    names.sort();
    let mut out = vec![];
    for name in names {
        match read_cluster(client, &name, vpc).await {
            Ok(c) => out.push(c),
            // Deleted while we looked.
            Err(e) if e.class == Class::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    Ok(out)
}

async fn read_cluster(
    client: &aws_sdk_eks::Client,
    name: &str,
    vpc: Option<&str>,
) -> Result<EksCluster> {
    let at = format!("cluster/{name}");
    let described = client
        .describe_cluster()
        .name(name)
        .send()
        .await
        .map_err(|e| aws::error(&at, e))?;
    let cluster = described.cluster();
    let (mut node_groups, mut addons, mut access_entries) = (vec![], vec![], vec![]);
    let mut pages = client
        .list_nodegroups()
        .cluster_name(name)
        .into_paginator()
        .items()
        .send();
    while let Some(n) = pages.next().await {
        node_groups.push(n.map_err(|e| aws::error(&at, e))?);
    }
    let mut pages = client
        .list_addons()
        .cluster_name(name)
        .into_paginator()
        .items()
        .send();
    while let Some(n) = pages.next().await {
        addons.push(n.map_err(|e| aws::error(&at, e))?);
    }
    // Clusters in the old CONFIG_MAP mode refuse this question: they have no entries.
    let uses_entries = cluster
        .and_then(|c| c.access_config())
        .and_then(|a| a.authentication_mode())
        .is_none_or(|m| m.as_str() != "CONFIG_MAP");
    if uses_entries {
        let mut pages = client
            .list_access_entries()
            .cluster_name(name)
            .into_paginator()
            .items()
            .send();
        while let Some(n) = pages.next().await {
            access_entries.push(n.map_err(|e| aws::error(&at, e))?);
        }
    }
    node_groups.sort();
    addons.sort();
    access_entries.sort();
    let mut parts = None;
    if let Some(c) = cluster
        && vpc.is_some()
        && c.resources_vpc_config().and_then(|v| v.vpc_id()) == vpc
    {
        let mut list = vec![eks::cluster_of(c)];
        list.extend(read_parts(client, name, &node_groups, &addons, &access_entries).await?);
        list.sort_by_key(|e| e.resource.id());
        parts = Some(list);
    }
    Ok(EksCluster {
        parts,
        name: name.into(),
        version: cluster.and_then(|c| c.version()).unwrap_or_default().into(),
        node_groups,
        addons,
        access_entries,
        tags: cluster
            .and_then(|c| c.tags())
            .map(|t| t.iter().map(|(k, v)| (k.clone(), v.clone())).collect())
            .unwrap_or_default(),
    })
}

/// Node groups, add-ons, access entries of people and Pod Identity associations. What was deleted while we looked is left out.
async fn read_parts(
    client: &aws_sdk_eks::Client,
    cluster: &str,
    node_groups: &[String],
    addons: &[String],
    principals: &[String],
) -> Result<Vec<Existing>> {
    let mut out = vec![];
    for name in node_groups {
        let at = format!("node-group/{cluster}/{name}");
        let answer = optional(
            client
                .describe_nodegroup()
                .cluster_name(cluster)
                .nodegroup_name(name)
                .send()
                .await
                .map_err(|e| aws::error(&at, e)),
        )?;
        out.extend(
            answer
                .and_then(|a| a.nodegroup)
                .map(|g| eks::node_group_of(&g)),
        );
    }
    for name in addons {
        let at = format!("addon/{cluster}/{name}");
        let answer = optional(
            client
                .describe_addon()
                .cluster_name(cluster)
                .addon_name(name)
                .send()
                .await
                .map_err(|e| aws::error(&at, e)),
        )?;
        out.extend(answer.and_then(|a| a.addon).map(|a| eks::addon_of(&a)));
    }
    for principal in principals {
        let at = format!("access-entry/{cluster}/{principal}");
        let entry = eks::read_access(client, cluster, principal, &at).await?;
        // Entries of nodes come and go with their node group.
        out.extend(entry.filter(|e| !e.extras.iter().any(|x| x.starts_with("type "))));
    }
    out.extend(super::pod_identity::read(client, cluster, None).await?);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_with_two_sources_is_two_rules() {
        let p = ec2::IpPermission::builder()
            .ip_protocol("tcp")
            .from_port(5432)
            .to_port(5432)
            .user_id_group_pairs(
                ec2::UserIdGroupPair::builder()
                    .group_id("sg-1")
                    .description("app")
                    .build(),
            )
            .ip_ranges(ec2::IpRange::builder().cidr_ip("10.0.0.0/8").build())
            .build();
        let r = rules(&p);
        assert_eq!(r.len(), 2);
        assert_eq!(r[0].source_group.as_deref(), Some("sg-1"));
        assert_eq!(r[0].description.as_deref(), Some("app"));
        assert_eq!(r[1].cidr.as_deref(), Some("10.0.0.0/8"));
        assert_eq!((r[1].from_port, r[1].to_port), (5432, 5432));
    }
}
