//! Managed node groups (eks.md 1.6).

use std::time::Instant;

use serde_json::{Map, Value, json};

use super::{
    Answer, Cluster, Life, Subnet, access, bad, bad_request, catalogue, check_tags, in_use,
    not_found, now, same_request, text, texts,
};
use crate::strict::http::{Refusal, Req, unique_id};
use crate::strict::launch::Template;
use crate::strict::{Config, State};

const EFFECTS: &[&str] = &["NO_SCHEDULE", "NO_EXECUTE", "PREFER_NO_SCHEDULE"];
const AMI_TYPES: &[&str] = &[
    "AL2_x86_64",
    "AL2_x86_64_GPU",
    "AL2_ARM_64",
    "CUSTOM",
    "AL2023_x86_64_STANDARD",
    "AL2023_ARM_64_STANDARD",
    "AL2023_x86_64_NEURON",
    "AL2023_x86_64_NVIDIA",
    "AL2023_ARM_64_NVIDIA",
    "BOTTLEROCKET_ARM_64",
    "BOTTLEROCKET_x86_64",
    "BOTTLEROCKET_ARM_64_FIPS",
    "BOTTLEROCKET_x86_64_FIPS",
    "BOTTLEROCKET_ARM_64_NVIDIA",
    "BOTTLEROCKET_x86_64_NVIDIA",
    "WINDOWS_CORE_2019_x86_64",
    "WINDOWS_FULL_2019_x86_64",
    "WINDOWS_CORE_2022_x86_64",
    "WINDOWS_FULL_2022_x86_64",
];

#[derive(Debug)]
pub(crate) struct NodeGroup {
    pub doc: Value,
    pub life: Life,
    pub request: Value,
    pub subnets: Vec<Subnet>,
    pub issue: Option<(&'static str, String)>,
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
        doc["health"] = match &self.issue {
            Some((code, message)) => {
                json!({"issues": [{"code": code, "message": message, "resourceIds": []}]})
            }
            None => json!({"issues": []}),
        };
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

    /// Its nodes have joined and stay.
    pub fn has_nodes(&self) -> bool {
        matches!(self.life, Life::Active | Life::Updating(_)) && self.desired() > 0
    }
}

pub(super) fn sweep(cluster: &mut Cluster, config: &Config) {
    let networked = cluster.self_managed
        || cluster
            .addons
            .get("vpc-cni")
            .is_some_and(|a| matches!(a.life, Life::Active | Life::Updating(_)));
    let mut released = Vec::new();
    cluster.nodegroups.retain(|name, group| {
        match group.life {
            Life::Creating(at) if at.elapsed() >= config.nodegroup_delay => {
                if networked && group.cut_off.is_none() {
                    group.life = Life::Active;
                } else if at.elapsed() >= config.nodegroup_delay * 4 + config.addon_delay * 2 {
                    // AWS gives nodes some 20 minutes to join.
                    group.life = Life::Failed;
                    group.issue = Some((
                        "NodeCreationFailure",
                        group.cut_off.clone().unwrap_or_else(|| {
                            format!("Unhealthy nodes in the kubernetes cluster: node group {name} has no network plugin (vpc-cni is not installed)")
                        }),
                    ));
                }
            }
            Life::Updating(at) if at.elapsed() >= config.nodegroup_delay / 2 => {
                group.life = Life::Active;
            }
            Life::Deleting(at) if at.elapsed() >= config.nodegroup_delay => {
                released.push(text(&group.doc, "nodeRole").unwrap_or("").to_owned());
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
}

fn check_labels(labels: &Value) -> Result<(), Refusal> {
    for (key, value) in labels.as_object().into_iter().flatten() {
        if ["kubernetes.io/", "k8s.io/", "eks.amazonaws.com/"]
            .iter()
            .any(|reserved| key.contains(reserved))
        {
            return Err(bad(format!(
                "Label cannot contain reserved prefixes [kubernetes.io/, k8s.io/, eks.amazonaws.com/]: '{key}'"
            )));
        }
        let value = value.as_str().unwrap_or("\u{0}");
        let plain = |t: &str| {
            t.chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        let name = key.rsplit('/').next().unwrap_or(key);
        if name.is_empty() || name.len() > 63 || !plain(name) || value.len() > 63 || !plain(value) {
            return Err(bad(format!("Invalid label '{key}={value}'")));
        }
    }
    Ok(())
}

fn check_taints(taints: &[Value]) -> Result<(), Refusal> {
    if taints.len() > 50 {
        return Err(bad("A node group can have 50 taints at most"));
    }
    for taint in taints {
        let effect = text(taint, "effect").unwrap_or("");
        if !EFFECTS.contains(&effect) {
            return Err(bad(format!(
                "taint effect must be one of {EFFECTS:?}, not '{effect}'"
            )));
        }
        let (key, value) = (
            text(taint, "key").unwrap_or(""),
            text(taint, "value").unwrap_or(""),
        );
        if key.is_empty() || key.len() > 63 || value.len() > 63 {
            return Err(bad(format!(
                "Invalid taint '{key}={value}': keys have 1 to 63 characters, values at most 63"
            )));
        }
    }
    Ok(())
}

fn check_scaling(scaling: &Value) -> Result<Value, Refusal> {
    if scaling.is_null() {
        return Ok(json!({"minSize": 1, "maxSize": 2, "desiredSize": 2}));
    }
    let get = |key: &str| {
        scaling[key].as_u64().ok_or_else(|| {
            bad(format!(
                "scalingConfig needs minSize, maxSize and desiredSize; {key} is missing"
            ))
        })
    };
    let (min, max, desired) = (get("minSize")?, get("maxSize")?, get("desiredSize")?);
    if max < 1 || min > max {
        return Err(bad(format!(
            "Minimum capacity {min} can't be greater than maximum size {max}"
        )));
    }
    if desired < min || desired > max {
        return Err(bad(format!(
            "desired capacity {desired} must be between {min} and {max}"
        )));
    }
    if max > 450 {
        return Err(bad("A node group can have 450 nodes at most"));
    }
    Ok(scaling.clone())
}

/// The group's launch template, when it names one: it exists, and EKS may use it (eks.md 1.6).
fn template(state: &State, body: &Value) -> Result<Option<Template>, Refusal> {
    let wanted = &body["launchTemplate"];
    if !wanted.is_object() {
        return Ok(None);
    }
    let (id, name) = (text(wanted, "id"), text(wanted, "name"));
    if id.is_some() == name.is_some() {
        return Err(bad(
            "Specify either the id or the name of the launch template",
        ));
    }
    let Some(found) = state.lock_launch().find(id, name).cloned() else {
        return Err(bad_request(format!(
            "Launch template {} was not found",
            id.or(name).unwrap_or("")
        )));
    };
    if let Some(version) = text(wanted, "version")
        && !["1", "$Default", "$Latest"].contains(&version)
    {
        return Err(bad_request(format!(
            "Version {version} of launch template {} was not found",
            found.name
        )));
    }
    match found.unfit(body) {
        Some(why) => Err(bad(why)),
        None => Ok(Some(found)),
    }
}

/// 1 to 100 nodes or percent, one of the two (eks.md 1.6).
fn check_update(config: &Value) -> Result<(), Refusal> {
    let given: Vec<&Value> = ["maxUnavailable", "maxUnavailablePercentage"]
        .iter()
        .map(|k| &config[*k])
        .filter(|v| !v.is_null())
        .collect();
    let sound = given.len() <= 1
        && given
            .iter()
            .all(|v| v.as_u64().is_some_and(|n| (1..=100).contains(&n)));
    if sound {
        return Ok(());
    }
    Err(bad(
        "updateConfig takes maxUnavailable or maxUnavailablePercentage, 1 to 100",
    ))
}

fn check_template(body: &Value) -> Result<(), Refusal> {
    if body["launchTemplate"].is_object() {
        for key in ["diskSize", "remoteAccess"] {
            if !body[key].is_null() {
                return Err(bad(format!(
                    "{key} cannot be specified together with a launch template"
                )));
            }
        }
    }
    if texts(body, "instanceTypes").len() > 20 {
        return Err(bad("A node group can have 20 instance types at most"));
    }
    Ok(())
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
        if cluster.nodegroups.len() >= 30 {
            return Err(named(Refusal::new(
                400,
                "ResourceLimitExceededException",
                "A cluster can have 30 node groups",
            )));
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
    let scaling = check_scaling(&body["scalingConfig"]).map_err(named)?;
    check_template(&body).map_err(named)?;
    check_update(&body["updateConfig"]).map_err(named)?;
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
        .role_trusts(&req.who, &role, "ec2.amazonaws.com")
        .await
        .map_err(named)?;

    let config = &state.config;
    let mut store = state.lock_eks();
    let cluster = store.ready_cluster(cluster_name)?;
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
        let groups = t.security_groups();
        if !groups.is_empty() && !groups.contains(&cluster.security_group) {
            cut_off = Some(format!(
                "Unhealthy nodes in the kubernetes cluster: launch template {} names security groups without the cluster's own {}",
                t.name, cluster.security_group
            ));
        }
    }
    let group = NodeGroup {
        doc,
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
    Ok(out)
}

fn group<'a>(
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

pub fn update(state: &State, cluster_name: &str, name: &str, body: &Value) -> Answer {
    let mut store = state.lock_eks();
    let group = group(&mut store, cluster_name, name)?;
    if group.life != Life::Active {
        return Err(in_use(format!(
            "Nodegroup {name} cannot be updated while it is {}",
            group.life.word()
        ))
        .with("clusterName", cluster_name)
        .with("nodegroupName", name));
    }
    let mut doc = group.doc.clone();
    if let Some(given) = body["scalingConfig"].as_object() {
        for (key, value) in given {
            doc["scalingConfig"][key] = value.clone();
        }
        check_scaling(&doc["scalingConfig"])?;
    }
    let (add, remove) = (
        &body["labels"]["addOrUpdateLabels"],
        texts(&body["labels"], "removeLabels"),
    );
    check_labels(add)?;
    let mut labels: Map<String, Value> = doc["labels"].as_object().cloned().unwrap_or_default();
    labels.retain(|k, _| !remove.contains(k));
    labels.extend(add.as_object().cloned().unwrap_or_default());
    doc["labels"] = Value::Object(labels);
    let taint_key = |t: &Value| (t["key"].clone(), t["effect"].clone());
    let changes = |key: &str| body["taints"][key].as_array().cloned().unwrap_or_default();
    let (add, remove) = (changes("addOrUpdateTaints"), changes("removeTaints"));
    let mut taints = doc["taints"].as_array().cloned().unwrap_or_default();
    taints.retain(|t| {
        !remove
            .iter()
            .chain(&add)
            .any(|r| taint_key(r) == taint_key(t))
    });
    taints.extend(add);
    check_taints(&taints)?;
    doc["taints"] = json!(taints);
    if body["updateConfig"].is_object() {
        doc["updateConfig"] = body["updateConfig"].clone();
    }
    doc["modifiedAt"] = json!(now());
    group.doc = doc;
    group.life = Life::Updating(Instant::now());
    let takes = state.config.nodegroup_delay / 2;
    let cluster = store.cluster(cluster_name)?;
    let update = cluster.start_update("ConfigUpdate", vec![], takes);
    update.nodegroup = Some(name.to_owned());
    Ok(json!({"update": update.json()}))
}
