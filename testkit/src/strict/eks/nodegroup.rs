//! Managed node groups (eks.md 1.6).

use std::time::Instant;

use serde_json::{Value, json};

use super::nodegroup_checks::{
    AMI_TYPES, check_labels, check_repair, check_scaling, check_taints, check_template,
    check_types, check_update, template,
};
use super::roles::For;
use super::{
    Answer, Cluster, Life, Subnet, access, bad, catalogue, check_tags, fresh_token, health, in_use,
    launching, not_found, now, over_limit, same_request, text, texts,
};
use crate::strict::controls::{Fails, Issue};
use crate::strict::http::{Refusal, Req, unique_id};
use crate::strict::interfaces::{Interface, id_of};
use crate::strict::launch::Template;
use crate::strict::{Config, State, permit, quotas};

#[derive(Debug)]
pub(crate) struct NodeGroup {
    pub doc: Value,
    pub life: Life,
    pub request: Value,
    pub subnets: Vec<Subnet>,
    pub issue: Option<Issue>,
    /// Its instances cannot be launched: it will end CREATE_FAILED.
    pub doom: Option<Issue>,
    /// Security groups of its launch template.
    pub groups: Vec<String>,
    /// Root volume of its launch template, GiB.
    pub disk_gib: Option<u64>,
    /// Its launch template names security groups without the cluster's own: the nodes never reach the control plane.
    pub cut_off: Option<String>,
}

/// The nodes that a group wants.
#[derive(Debug, Clone)]
pub(crate) struct NodePlan {
    pub arn: String,
    pub name: String,
    pub desired: usize,
    pub instance_type: String,
    pub capacity_type: String,
    pub disk_gib: u64,
    pub labels: Vec<(String, String)>,
    /// key, value, effect in EKS's words.
    pub taints: Vec<(String, String, String)>,
    pub subnets: Vec<Subnet>,
}

impl NodeGroup {
    fn json(&self) -> Value {
        let mut doc = self.doc.clone();
        doc["status"] = json!(self.life.word());
        let group = &self.doc["resources"]["autoScalingGroups"][0]["name"];
        let ids = group.as_str().map(str::to_owned);
        doc["health"] = health(&self.issue, ids.as_slice());
        doc
    }

    pub fn plan(&self) -> NodePlan {
        let own = |key: &str| text(&self.doc, key).unwrap_or("").to_owned();
        NodePlan {
            arn: own("nodegroupArn"),
            name: own("nodegroupName"),
            desired: self.desired(),
            instance_type: texts(&self.doc, "instanceTypes")
                .into_iter()
                .next()
                .unwrap_or_else(|| "m5.large".into()),
            capacity_type: own("capacityType"),
            disk_gib: self
                .disk_gib
                .or(self.doc["diskSize"].as_u64())
                .unwrap_or(20),
            labels: self.doc["labels"]
                .as_object()
                .into_iter()
                .flatten()
                .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())))
                .collect(),
            taints: self.doc["taints"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|t| {
                    let get = |key: &str| text(t, key).unwrap_or("").to_owned();
                    (get("key"), get("value"), get("effect"))
                })
                .collect(),
            subnets: self.subnets.clone(),
        }
    }

    pub fn desired(&self) -> usize {
        usize::try_from(
            self.doc["scalingConfig"]["desiredSize"]
                .as_u64()
                .unwrap_or(0),
        )
        .unwrap_or(0)
    }

    /// One for each node, also while they are drained away.
    pub(super) fn interfaces(&self, cluster_group: &str) -> Vec<Interface> {
        let joined = matches!(
            self.life,
            Life::Active | Life::Updating(_) | Life::Deleting(_)
        );
        if !joined || self.issue.is_some() || self.subnets.is_empty() {
            return vec![];
        }
        let arn = text(&self.doc, "nodegroupArn").unwrap_or("");
        let groups = match self.groups.as_slice() {
            [] => vec![cluster_group.to_owned()],
            own => own.to_vec(),
        };
        (0..self.desired())
            .map(|n| {
                let subnet = &self.subnets[n % self.subnets.len()];
                let instance = id_of("i", &format!("{arn}/{n}"));
                Interface {
                    id: id_of("eni", &instance),
                    subnet: subnet.id.clone(),
                    vpc: subnet.vpc.clone(),
                    zone: subnet.zone.clone(),
                    description: format!("aws-K8S-{instance}"),
                    groups: groups.clone(),
                    managed: false,
                    instance: Some(instance),
                }
            })
            .collect()
    }

    /// Its nodes have joined and stay.
    pub fn has_nodes(&self) -> bool {
        matches!(self.life, Life::Active | Life::Updating(_)) && self.desired() > 0
    }
}

/// Gives back the interfaces of groups that are gone now.
pub(super) fn sweep(cluster: &mut Cluster, config: &Config) -> Vec<Interface> {
    let own_group = cluster.security_group.clone();
    let mut left = vec![];
    let networked = cluster.self_managed
        || cluster
            .addons
            .get("vpc-cni")
            .is_some_and(|a| matches!(a.life, Life::Active | Life::Updating(_)));
    let mut released = Vec::new();
    cluster.nodegroups.retain(|name, group| {
        match group.life {
            Life::Creating(at) if at.elapsed() >= config.nodegroup_delay => {
                if group.doom.is_some() {
                    group.life = Life::Failed;
                    group.issue = group.doom.clone();
                } else if networked && group.cut_off.is_none() {
                    group.life = Life::Active;
                } else if at.elapsed() >= config.nodegroup_delay * 4 + config.addon_delay * 2 {
                    // AWS gives nodes some 20 minutes to join.
                    group.life = Life::Failed;
                    group.issue = Some(Issue {
                        code: "NodeCreationFailure".into(),
                        message: group.cut_off.clone().unwrap_or_else(|| {
                            format!("Unhealthy nodes in the kubernetes cluster: node group {name} has no network plugin (vpc-cni is not installed)")
                        }),
                    });
                }
            }
            Life::Updating(at) if at.elapsed() >= config.nodegroup_delay / 2 => {
                group.life = Life::Active;
            }
            Life::Deleting(at) if at.elapsed() >= config.nodegroup_delay => {
                released.push(text(&group.doc, "nodeRole").unwrap_or("").to_owned());
                left.extend(group.interfaces(&own_group));
                return false;
            }
            _ => {}
        }
        true
    });
    for role in released {
        let still_used = cluster
            .nodegroups
            .values()
            .any(|g| text(&g.doc, "nodeRole") == Some(&role));
        if !still_used {
            access::release_nodes(cluster, &role);
        }
    }
    left
}

pub async fn create(state: &State, req: &Req, cluster_name: &str, body: Value) -> Answer {
    let name = text(&body, "nodegroupName").unwrap_or("").to_owned();
    let named = |r: Refusal| {
        r.with("clusterName", cluster_name)
            .with("nodegroupName", &name)
    };
    {
        let mut store = state.lock_eks();
        let cluster = store.ready_cluster(cluster_name)?;
        if let Some(existing) = cluster.nodegroups.get(&name) {
            return if same_request(&existing.request, &body) {
                Ok(json!({"nodegroup": existing.json()}))
            } else {
                Err(named(in_use(format!(
                    "NodeGroup already exists with name {name} and cluster name {cluster_name}"
                ))))
            };
        }
        fresh_token(&body, cluster.nodegroups.values().map(|g| &g.request)).map_err(named)?;
        let quota = state.lock_controls().quota(quotas::NODE_GROUPS);
        if let Some(quota) = quota.filter(|q| cluster.nodegroups.len() as u64 >= *q) {
            return Err(named(over_limit(format!(
                "Node group limit exceeded: cluster {cluster_name} has {} of {quota} managed node groups",
                cluster.nodegroups.len()
            ))));
        }
        if let Some(version) = text(&body, "version")
            && version != cluster.version()
        {
            return Err(named(bad(format!(
                "Requested Nodegroup version {version} must be the cluster's version {}",
                cluster.version()
            ))));
        }
        let ami = text(&body, "amiType").unwrap_or("AL2023_x86_64_STANDARD");
        if !AMI_TYPES.contains(&ami) {
            return Err(named(bad(format!("unknown amiType '{ami}'"))));
        }
        if ami.starts_with("AL2_") && catalogue::minor(cluster.version()) >= 33 {
            return Err(named(bad(format!(
                "AMI type {ami} is not supported for Kubernetes {}",
                cluster.version()
            ))));
        }
    }
    let valid = (1..=63).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if !valid {
        return Err(named(bad(format!(
            "nodegroupName '{name}' must have 1 to 63 letters, digits, hyphens or underscores and begin with a letter or digit"
        ))));
    }
    check_labels(&body["labels"]).map_err(named)?;
    let taints = body["taints"].as_array().cloned().unwrap_or_default();
    check_taints(&taints).map_err(named)?;
    let scaling = check_scaling(state, &body["scalingConfig"]).map_err(named)?;
    check_template(&body).map_err(named)?;
    check_update(&body["updateConfig"]).map_err(named)?;
    check_repair(&body["nodeRepairConfig"]).map_err(named)?;
    check_types(&body).map_err(named)?;
    let template = template(state, &body).map_err(named)?;
    for id in template.iter().flat_map(Template::security_groups) {
        let (status, _) = state
            .ask(
                "ec2",
                &req.who,
                "DescribeSecurityGroups",
                &[("GroupId.1", &id)],
            )
            .await;
        if status != 200 {
            return Err(named(bad(format!(
                "The security group '{id}' of the launch template does not exist"
            ))));
        }
    }
    check_tags(&body["tags"]).map_err(named)?;
    let capacity = text(&body, "capacityType")
        .unwrap_or("ON_DEMAND")
        .to_owned();
    if !["ON_DEMAND", "SPOT", "CAPACITY_BLOCK"].contains(&capacity.as_str()) {
        return Err(named(bad(format!("unknown capacityType '{capacity}'"))));
    }
    let ids = texts(&body, "subnets");
    if ids.is_empty() {
        return Err(named(bad("subnets must name at least one subnet")));
    }
    let subnets = state.subnets(&req.who, &ids).await.map_err(named)?;
    let role = text(&body, "nodeRole").unwrap_or("").to_owned();
    state
        .role_trusts(&req.who, &role, For::Nodes)
        .await
        .map_err(named)?;

    let trouble = launching::trouble(state, &body, &scaling, template.as_ref(), &subnets).await;
    let config = &state.config;
    let mut store = state.lock_eks();
    let cluster = store.ready_cluster(cluster_name)?;
    if cluster.doc["roleArn"] == role.as_str() {
        // eks.md 1.3: not the cluster role.
        return Err(named(bad(format!(
            "The role {role} cannot be used because it is already the role of the cluster"
        ))));
    }
    if let Some(stranger) = subnets.iter().find(|s| s.vpc != cluster.subnets[0].vpc) {
        return Err(named(bad(format!(
            "Subnet {} does not belong to the cluster's VPC {}",
            stranger.id, cluster.subnets[0].vpc
        ))));
    }
    let templated = body["launchTemplate"].is_object();
    let types = match texts(&body, "instanceTypes") {
        types if types.is_empty() && !templated => vec!["t3.medium".to_owned()],
        types => types,
    };
    let unique = unique_id();
    let mut doc = json!({
        "nodegroupName": name,
        "nodegroupArn": format!(
            "arn:aws:eks:{}:{}:nodegroup/{cluster_name}/{name}/{unique}",
            config.region, config.account
        ),
        "clusterName": cluster_name,
        "version": cluster.version(),
        "releaseVersion": format!("{}.3-20261115", cluster.version()),
        "createdAt": now(),
        "modifiedAt": now(),
        "capacityType": capacity,
        "scalingConfig": scaling,
        "instanceTypes": types,
        "subnets": ids,
        "amiType": text(&body, "amiType").unwrap_or("AL2023_x86_64_STANDARD"),
        "nodeRole": role,
        "labels": if body["labels"].is_object() { body["labels"].clone() } else { json!({}) },
        "taints": taints,
        "resources": {"autoScalingGroups": [{"name": format!("eks-{name}-{unique}")}]},
        "updateConfig": if body["updateConfig"].is_object() { body["updateConfig"].clone() } else { json!({"maxUnavailable": 1}) },
        "tags": if body["tags"].is_object() { body["tags"].clone() } else { json!({}) },
    });
    if !templated {
        doc["diskSize"] = if body["diskSize"].is_u64() {
            body["diskSize"].clone()
        } else {
            json!(20)
        };
    }
    for key in ["remoteAccess", "nodeRepairConfig"] {
        if !body[key].is_null() {
            doc[key] = body[key].clone();
        }
    }
    let mut cut_off = None;
    if let Some(t) = &template {
        doc["launchTemplate"] = json!({"id": t.id, "name": t.name, "version": "1"});
        cut_off = launching::never_joins(t, &cluster.security_group);
    }
    let ordered = state.lock_controls().take_failure(Fails::NodeGroup, &name);
    let group = NodeGroup {
        doc,
        doom: ordered.or(trouble),
        groups: template
            .as_ref()
            .map(Template::security_groups)
            .unwrap_or_default(),
        disk_gib: template.as_ref().map(Template::disk_gib),
        cut_off,
        life: Life::Creating(Instant::now()),
        request: body,
        subnets,
        issue: None,
    };
    let out = json!({"nodegroup": group.json()});
    cluster.nodegroups.insert(name, group);
    access::admit_nodes(cluster, config, &role);
    permit::service_role_made(state, "eks-nodegroup.amazonaws.com");
    Ok(out)
}

pub(super) fn group<'a>(
    store: &'a mut super::Store,
    cluster: &str,
    name: &str,
) -> Result<&'a mut NodeGroup, Refusal> {
    store
        .cluster(cluster)?
        .nodegroups
        .get_mut(name)
        .ok_or_else(|| {
            not_found(format!("No node group found for name: {name}."))
                .with("clusterName", cluster)
                .with("nodegroupName", name)
        })
}

pub fn describe(state: &State, cluster: &str, name: &str) -> Answer {
    let mut store = state.lock_eks();
    Ok(json!({"nodegroup": group(&mut store, cluster, name)?.json()}))
}

pub fn delete(state: &State, cluster: &str, name: &str) -> Answer {
    let mut store = state.lock_eks();
    let group = group(&mut store, cluster, name)?;
    if matches!(
        group.life,
        Life::Creating(_) | Life::Updating(_) | Life::Deleting(_)
    ) {
        return Err(in_use(format!(
            "Nodegroup {name} cannot be deleted while it is {}",
            group.life.word()
        ))
        .with("clusterName", cluster)
        .with("nodegroupName", name));
    }
    group.life = Life::Deleting(Instant::now());
    Ok(json!({"nodegroup": group.json()}))
}
