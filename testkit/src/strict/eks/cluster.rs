//! Clusters and their updates.

use std::time::Instant;

use base64::Engine;
use serde_json::{Value, json};

use super::roles::For;
use super::vpc::{
    check_endpoint, check_groups, check_subnets, cluster_security_group, public_cidrs, service_cidr,
};
use super::{
    Answer, Cluster, Life, access, bad, bad_request, catalogue, check_tags, fresh_token, health,
    in_use, launching, now, over_limit, same_request, text, texts,
};
use crate::strict::controls::Fails;
use crate::strict::http::{Refusal, Req};
use crate::strict::interfaces::{Interface, id_of};
use crate::strict::route53::short_id;
use crate::strict::{State, permit, quotas};

const LOG_TYPES: &[&str] = &[
    "api",
    "audit",
    "authenticator",
    "controllerManager",
    "scheduler",
];
pub(super) const MODES: &[&str] = &["CONFIG_MAP", "API_AND_CONFIG_MAP", "API"];

fn valid_name(name: &str) -> bool {
    (1..=100).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

pub async fn create(state: &State, req: &Req, body: Value) -> Answer {
    let config = &state.config;
    let name = text(&body, "name").unwrap_or("").to_owned();
    if !valid_name(&name) {
        return Err(bad(format!(
            "The cluster name '{name}' must have 1 to 100 characters, begin with a letter or digit and hold only letters, digits, hyphens and underscores"
        )));
    }
    // The API's text names no bounds; its refusal does (ansible community.aws 817, 844).
    if let Some(token) = text(&body, "clientRequestToken")
        && !(33..=126).contains(&token.len())
    {
        return Err(bad(
            "The client request token parameter must be between 33 and 126 characters.",
        ));
    }
    if let Some(existing) = state.lock_eks().clusters.get(&name) {
        return if same_request(&existing.request, &body) {
            Ok(json!({"cluster": existing.json()}))
        } else {
            Err(in_use(format!("Cluster already exists with name: {name}"))
                .with("clusterName", &name))
        };
    }
    let clusters = {
        let store = state.lock_eks();
        fresh_token(&body, store.clusters.values().map(|c| &c.request))?;
        store.clusters.len() as u64
    };
    let quota = state.lock_controls().quota(quotas::CLUSTERS);
    if let Some(quota) = quota.filter(|q| clusters >= *q) {
        return Err(over_limit(format!(
            "Cluster limit exceeded: this account has {clusters} of {quota} clusters in this region"
        ))
        .with("clusterName", &name));
    }
    check_tags(&body["tags"])?;
    let version = text(&body, "version")
        .unwrap_or(catalogue::DEFAULT_VERSION)
        .to_owned();
    if !catalogue::known_version(&version) {
        return Err(bad(format!("unsupported Kubernetes version {version}")));
    }
    let role = text(&body, "roleArn")
        .ok_or_else(|| bad("roleArn is required"))?
        .to_owned();
    state.role_trusts(&req.who, &role, For::Cluster).await?;
    let vpc = &body["resourcesVpcConfig"];
    let subnets = check_subnets(state, req, &texts(vpc, "subnetIds")).await?;
    let groups = texts(vpc, "securityGroupIds");
    check_groups(state, req, &groups).await?;
    let (public, private) = (
        vpc["endpointPublicAccess"].as_bool().unwrap_or(true),
        vpc["endpointPrivateAccess"].as_bool().unwrap_or(false),
    );
    check_endpoint(state, public, private, &texts(vpc, "publicAccessCidrs"))?;
    let service_cidr = service_cidr(state, req, &body, &subnets).await?;
    let mode = text(&body["accessConfig"], "authenticationMode")
        .unwrap_or("CONFIG_MAP")
        .to_owned();
    if !MODES.contains(&mode.as_str()) {
        return Err(bad(format!(
            "authenticationMode must be one of {MODES:?}, not '{mode}'"
        )));
    }
    let creator_admin = body["accessConfig"]["bootstrapClusterCreatorAdminPermissions"]
        .as_bool()
        .unwrap_or(true);
    let support = text(&body["upgradePolicy"], "supportType")
        .unwrap_or("EXTENDED")
        .to_owned();
    if support != "STANDARD" && support != "EXTENDED" {
        return Err(bad(format!(
            "supportType must be STANDARD or EXTENDED, not '{support}'"
        )));
    }
    let logging = logging(&body["logging"], None)?;
    check_encryption(state, req, &body["encryptionConfig"]).await?;
    check_auto_mode(&body)?;

    let security_group = cluster_security_group(state, req, &name, &subnets[0].vpc).await?;
    let creator = if creator_admin {
        Some(access::caller(state, &req.who).await)
    } else {
        None
    };
    let issuer = format!(
        "https://oidc.eks.{}.amazonaws.com/id/{}",
        config.region,
        short_id(32)
    );
    let mut doc = json!({
        "name": name,
        "arn": format!("arn:aws:eks:{}:{}:cluster/{name}", config.region, config.account),
        "createdAt": now(),
        "version": version,
        "endpoint": config.green.url,
        "roleArn": role,
        "resourcesVpcConfig": {
            "subnetIds": subnets.iter().map(|s| s.id.clone()).collect::<Vec<_>>(),
            "securityGroupIds": groups,
            "clusterSecurityGroupId": security_group,
            "vpcId": subnets[0].vpc,
            "endpointPublicAccess": public,
            "endpointPrivateAccess": private,
            "publicAccessCidrs": public_cidrs(public, &texts(vpc, "publicAccessCidrs")),
        },
        "kubernetesNetworkConfig": {
            "serviceIpv4Cidr": service_cidr,
            "ipFamily": text(&body["kubernetesNetworkConfig"], "ipFamily").unwrap_or("ipv4"),
            "elasticLoadBalancing": {"enabled": false},
        },
        "logging": logging,
        "identity": {"oidc": {"issuer": issuer}},
        "certificateAuthority": {
            "data": base64::engine::general_purpose::STANDARD.encode(&config.green.ca_pem),
        },
        "platformVersion": "eks.3",
        "tags": if body["tags"].is_object() { body["tags"].clone() } else { json!({}) },
        "health": {"issues": []},
        "accessConfig": {
            "bootstrapClusterCreatorAdminPermissions": creator_admin,
            "authenticationMode": mode,
        },
        "upgradePolicy": {"supportType": support},
        "deletionProtection": body["deletionProtection"].as_bool().unwrap_or(false),
    });
    // Kept and given back as they came.
    for key in [
        "encryptionConfig",
        "zonalShiftConfig",
        "remoteNetworkConfig",
        "computeConfig",
        "storageConfig",
        "controlPlaneScalingConfig",
        "clientRequestToken",
    ] {
        if !body[key].is_null() {
            doc[key] = body[key].clone();
        }
    }
    let self_managed = body["bootstrapSelfManagedAddons"].as_bool().unwrap_or(true);
    let mut store = state.lock_eks();
    if store.clusters.contains_key(&name) {
        // Somebody was faster while we asked the emulator.
        return Err(
            in_use(format!("Cluster already exists with name: {name}")).with("clusterName", &name)
        );
    }
    let doom = state.lock_controls().take_failure(Fails::Cluster, &name);
    let mut cluster = Cluster {
        doc,
        life: Life::Creating(Instant::now()),
        request: body,
        security_group,
        nodegroups: Default::default(),
        addons: Default::default(),
        access: Default::default(),
        pods: Default::default(),
        updates: vec![],
        self_managed,
        subnets,
        doom,
        upgraded_from: None,
    };
    if let Some(creator) = creator {
        access::admit_creator(&mut cluster, config, &creator);
    }
    let out = json!({"cluster": cluster.json()});
    store.clusters.insert(name, cluster);
    permit::service_role_made(state, "eks.amazonaws.com");
    Ok(out)
}

/// One entry, for secrets, with a key that EKS can use (eks.md 1.2).
pub(super) async fn check_encryption(
    state: &State,
    req: &Req,
    config: &Value,
) -> Result<(), Refusal> {
    let entries = config.as_array().cloned().unwrap_or_default();
    if entries.len() > 1 {
        return Err(bad("encryptionConfig may hold one entry"));
    }
    let Some(entry) = entries.first() else {
        return Ok(());
    };
    let key = text(&entry["provider"], "keyArn").unwrap_or("");
    if key.is_empty() {
        return Err(bad("KeyArn is required"));
    }
    // Deprecated, since all API data is encrypted; nothing else was ever taken.
    if texts(entry, "resources").iter().any(|r| r != "secrets") {
        return Err(bad(
            "Only secrets can be encrypted: resources must be [secrets]",
        ));
    }
    if !key.starts_with("arn:aws:kms:") || !key.contains(":key/") && !key.contains(":alias/") {
        return Err(bad(format!("'{key}' is not the ARN of a KMS key")));
    }
    if !key.starts_with(&format!("arn:aws:kms:{}:", state.config.region)) {
        return Err(bad(format!(
            "The KMS key {key} must be in the region of the cluster"
        )));
    }
    match launching::key_refusal(state, &req.who, key).await {
        Some(why) => Err(bad_request(why)),
        None => Ok(()),
    }
}

/// Auto Mode is on in all three places or in none (eks.md 1.2).
fn check_auto_mode(body: &Value) -> Result<(), Refusal> {
    let on = [
        body["computeConfig"]["enabled"].as_bool(),
        body["storageConfig"]["blockStorage"]["enabled"].as_bool(),
        body["kubernetesNetworkConfig"]["elasticLoadBalancing"]["enabled"].as_bool(),
    ]
    .map(|flag| flag.unwrap_or(false));
    if on.iter().any(|o| *o) && !on.iter().all(|o| *o) {
        return Err(bad(
            "For EKS Auto Mode, please ensure that all required configs, including computeConfig, kubernetesNetworkConfig, and blockStorage are all either fully enabled or fully disabled.",
        ));
    }
    Ok(())
}

impl Cluster {
    pub fn name(&self) -> &str {
        text(&self.doc, "name").unwrap_or("")
    }

    pub fn version(&self) -> &str {
        text(&self.doc, "version").unwrap_or("")
    }

    pub fn authentication_mode(&self) -> &str {
        text(&self.doc["accessConfig"], "authenticationMode").unwrap_or("")
    }

    /// What cannot be known before the control plane stands is not shown while CREATING.
    pub(super) fn json(&self) -> Value {
        let mut doc = self.doc.clone();
        // A cluster has a word of its own for it (eks.md 1.2).
        doc["status"] = match self.life {
            Life::Failed => json!("FAILED"),
            life => json!(life.word()),
        };
        if self.life == Life::Failed {
            doc["health"] = health(&self.doom, &[]);
        }
        if matches!(self.life, Life::Creating(_) | Life::Failed) {
            for key in ["endpoint", "identity"] {
                doc.as_object_mut().map(|d| d.shift_remove(key));
            }
            doc["certificateAuthority"] = json!({});
            if let Some(vpc) = doc["resourcesVpcConfig"].as_object_mut() {
                vpc.shift_remove("clusterSecurityGroupId");
            }
        }
        doc
    }

    /// A node group of this version.
    pub(super) fn nodegroup_of_version(&self, version: &str) -> Option<&str> {
        self.nodegroups
            .iter()
            .find(|(_, g)| g.doc["version"] == version)
            .map(|(name, _)| name.as_str())
    }

    /// The interfaces of the control plane, one in each of two zones, and of its nodes (eks.md 1.2).
    pub(super) fn interfaces(&self) -> Vec<Interface> {
        let mut out = vec![];
        let mut zones = std::collections::BTreeSet::new();
        if self.life != Life::Failed {
            let mut groups = vec![self.security_group.clone()];
            groups.extend(texts(&self.doc["resourcesVpcConfig"], "securityGroupIds"));
            for subnet in &self.subnets {
                if zones.len() < 2 && zones.insert(&subnet.zone) {
                    out.push(Interface {
                        id: id_of("eni", &format!("{}/{}", self.doc["identity"], subnet.id)),
                        subnet: subnet.id.clone(),
                        vpc: subnet.vpc.clone(),
                        zone: subnet.zone.clone(),
                        description: format!("Amazon EKS {}", self.name()),
                        groups: groups.clone(),
                        managed: true,
                        instance: None,
                    });
                }
            }
        }
        out.extend(
            self.nodegroups
                .values()
                .flat_map(|g| g.interfaces(&self.security_group)),
        );
        out
    }
}

pub(super) fn logging(body: &Value, old: Option<&Value>) -> Result<Value, Refusal> {
    let mut on: Vec<String> = old
        .and_then(|o| o["clusterLogging"].as_array())
        .map(|setups| {
            setups
                .iter()
                .filter(|s| s["enabled"] == true)
                .flat_map(|s| texts(s, "types"))
                .collect()
        })
        .unwrap_or_default();
    for setup in body["clusterLogging"].as_array().into_iter().flatten() {
        for kind in texts(setup, "types") {
            if !LOG_TYPES.contains(&kind.as_str()) {
                return Err(bad(format!(
                    "unknown log type '{kind}'; there are {LOG_TYPES:?}"
                )));
            }
            on.retain(|k| *k != kind);
            if setup["enabled"] == true {
                on.push(kind);
            }
        }
    }
    let (on, off): (Vec<&str>, Vec<&str>) =
        LOG_TYPES.iter().partition(|k| on.iter().any(|o| o == *k));
    let setups: Vec<Value> = [(on, true), (off, false)]
        .into_iter()
        .filter(|(types, _)| !types.is_empty())
        .map(|(types, enabled)| json!({"types": types, "enabled": enabled}))
        .collect();
    Ok(json!({"clusterLogging": setups}))
}
pub fn describe(state: &State, name: &str) -> Answer {
    let mut store = state.lock_eks();
    Ok(json!({"cluster": store.cluster(name)?.json()}))
}

pub fn delete(state: &State, name: &str) -> Answer {
    let mut store = state.lock_eks();
    let cluster = store.cluster(name)?;
    let refuse = |message: String| Err(in_use(message).with("clusterName", name));
    match cluster.life {
        Life::Creating(_) | Life::Updating(_) => {
            return refuse(format!(
                "Cannot delete cluster {name} while it is {}",
                cluster.life.word()
            ));
        }
        Life::Deleting(_) => return refuse(format!("Cluster {name} is already being deleted")),
        _ => {}
    }
    if cluster.doc["deletionProtection"] == true {
        return Err(bad_request(format!(
            "Cannot delete cluster {name} because deletionProtection is enabled. Disable it first"
        ))
        .with("clusterName", name));
    }
    if !cluster.nodegroups.is_empty() {
        let names: Vec<&String> = cluster.nodegroups.keys().collect();
        return refuse(format!("Cluster has nodegroups attached: {names:?}"));
    }
    cluster.life = Life::Deleting(Instant::now());
    Ok(json!({"cluster": cluster.json()}))
}
