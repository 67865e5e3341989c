//! Clusters and their updates.

use std::net::Ipv4Addr;
use std::time::Instant;

use base64::Engine;
use serde_json::{Value, json};

use super::{
    Answer, Cluster, Life, Subnet, Update, access, bad, bad_request, catalogue, check_tags, in_use,
    not_found, now, page, same_request, text, texts,
};
use crate::strict::State;
use crate::strict::http::{Refusal, Req, unique_id};
use crate::strict::route53::short_id;

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
    if let Some(existing) = state.lock_eks().clusters.get(&name) {
        return if same_request(&existing.request, &body) {
            Ok(json!({"cluster": existing.json()}))
        } else {
            Err(in_use(format!("Cluster already exists with name: {name}"))
                .with("clusterName", &name))
        };
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
    state
        .role_trusts(&req.who, &role, "eks.amazonaws.com")
        .await?;
    let vpc = &body["resourcesVpcConfig"];
    let subnets = check_subnets(state, req, &texts(vpc, "subnetIds")).await?;
    let groups = texts(vpc, "securityGroupIds");
    if groups.len() > 5 {
        return Err(bad("You can specify up to 5 security groups"));
    }
    for group in &groups {
        let (status, _) = state
            .ask(
                "ec2",
                &req.who,
                "DescribeSecurityGroups",
                &[("GroupId.1", group)],
            )
            .await;
        if status != 200 {
            return Err(bad(format!("The security group '{group}' does not exist")));
        }
    }
    let (public, private) = (
        vpc["endpointPublicAccess"].as_bool().unwrap_or(true),
        vpc["endpointPrivateAccess"].as_bool().unwrap_or(false),
    );
    check_endpoint(public, private, &texts(vpc, "publicAccessCidrs"))?;
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
    if body["encryptionConfig"]
        .as_array()
        .is_some_and(|c| c.len() > 1)
    {
        return Err(bad("encryptionConfig may hold one entry"));
    }

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
    };
    if let Some(creator) = creator {
        access::admit_creator(&mut cluster, config, &creator);
    }
    let out = json!({"cluster": cluster.json()});
    store.clusters.insert(name, cluster);
    Ok(out)
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
    fn json(&self) -> Value {
        let mut doc = self.doc.clone();
        doc["status"] = json!(self.life.word());
        if matches!(self.life, Life::Creating(_)) {
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

    pub fn start_update(
        &mut self,
        kind: &str,
        params: Vec<(String, String)>,
        takes: std::time::Duration,
    ) -> &mut Update {
        self.updates.push(Update {
            id: unique_id(),
            kind: kind.to_owned(),
            params,
            created: now(),
            at: Instant::now(),
            nodegroup: None,
            addon: None,
            takes,
        });
        let last = self.updates.len() - 1;
        &mut self.updates[last]
    }
}

async fn check_subnets(state: &State, req: &Req, ids: &[String]) -> Result<Vec<Subnet>, Refusal> {
    if ids.len() < 2 {
        return Err(bad(
            "Subnets specified must be in at least two different AZs",
        ));
    }
    let subnets = state.subnets(&req.who, ids).await?;
    if subnets.iter().any(|s| s.vpc != subnets[0].vpc) {
        return Err(bad("Subnets provided must be in the same VPC"));
    }
    if subnets.iter().all(|s| s.zone == subnets[0].zone) {
        return Err(bad(
            "Subnets specified must be in at least two different AZs",
        ));
    }
    Ok(subnets)
}

fn check_endpoint(public: bool, private: bool, cidrs: &[String]) -> Result<(), Refusal> {
    if !public && !private {
        return Err(bad("Private and public endpoint access cannot be false"));
    }
    if cidrs.len() > 40 {
        return Err(bad("at most 40 public access CIDRs are allowed"));
    }
    if !public && !cidrs.is_empty() {
        return Err(bad(
            "publicAccessCidrs cannot be set when endpointPublicAccess is false",
        ));
    }
    match cidrs.iter().find(|c| parse_cidr(c).is_none()) {
        Some(cidr) => Err(bad(format!("'{cidr}' is not an IPv4 CIDR"))),
        None => Ok(()),
    }
}

fn public_cidrs(public: bool, cidrs: &[String]) -> Vec<String> {
    if public && cidrs.is_empty() {
        vec!["0.0.0.0/0".into()]
    } else {
        cidrs.to_vec()
    }
}

/// `10.0.0.0/16` -> (network, prefix length); host bits must be zero.
fn parse_cidr(text: &str) -> Option<(u32, u32)> {
    let (address, length) = text.split_once('/')?;
    let address = u32::from(address.parse::<Ipv4Addr>().ok()?);
    let length: u32 = length.parse().ok().filter(|l| *l <= 32)?;
    (address & !mask(length) == 0).then_some((address, length))
}

fn mask(length: u32) -> u32 {
    u32::MAX.checked_shl(32 - length).unwrap_or(0)
}

fn overlap(a: (u32, u32), b: (u32, u32)) -> bool {
    let mask = mask(a.1.min(b.1));
    a.0 & mask == b.0 & mask
}

/// The service range: given (and checked: eks.md 1.2) or chosen beside the VPC.
async fn service_cidr(
    state: &State,
    req: &Req,
    body: &Value,
    subnets: &[Subnet],
) -> Result<String, Refusal> {
    let (_, root) = state
        .ask(
            "ec2",
            &req.who,
            "DescribeVpcs",
            &[("VpcId.1", &subnets[0].vpc)],
        )
        .await;
    let mut blocks = Vec::new();
    root.find_all("cidrBlock", &mut blocks);
    let vpc: Vec<(u32, u32)> = blocks.iter().filter_map(|b| parse_cidr(&b.text)).collect();
    let given = text(&body["kubernetesNetworkConfig"], "serviceIpv4Cidr");
    let Some(given) = given else {
        let first = parse_cidr("10.100.0.0/16").filter(|c| !vpc.iter().any(|v| overlap(*v, *c)));
        return Ok(if first.is_some() {
            "10.100.0.0/16"
        } else {
            "172.20.0.0/16"
        }
        .into());
    };
    let range = parse_cidr(given)
        .ok_or_else(|| bad(format!("serviceIpv4Cidr '{given}' is not an IPv4 CIDR")))?;
    let private = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"]
        .iter()
        .filter_map(|p| parse_cidr(p))
        .any(|p| overlap(p, range) && range.1 >= p.1);
    if !private || !(12..=24).contains(&range.1) {
        return Err(bad(format!(
            "serviceIpv4Cidr '{given}' must lie within 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16 and be between /24 and /12"
        )));
    }
    if vpc.iter().any(|v| overlap(*v, range)) {
        return Err(bad(format!(
            "serviceIpv4Cidr '{given}' overlaps with the VPC"
        )));
    }
    Ok(given.to_owned())
}

fn logging(body: &Value, old: Option<&Value>) -> Result<Value, Refusal> {
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

/// `eks-cluster-sg-NAME-N` with the rule that lets its members reach each other (eks.md 2.3).
async fn cluster_security_group(
    state: &State,
    req: &Req,
    name: &str,
    vpc: &str,
) -> Result<String, Refusal> {
    let group_name = format!("eks-cluster-sg-{name}-{}", short_id(10).to_lowercase());
    let owned = format!("kubernetes.io/cluster/{name}");
    let (status, root) = state
        .ask(
            "ec2",
            &req.who,
            "CreateSecurityGroup",
            &[
                ("GroupName", &group_name),
                ("GroupDescription", "EKS created security group applied to ENI that is attached to EKS Control Plane master nodes, as well as any managed workloads."),
                ("VpcId", vpc),
            ],
        )
        .await;
    let failed = |what: &str| {
        Refusal::new(
            500,
            "ServerException",
            format!("the emulator's EC2 refused {what} for cluster {name}"),
        )
    };
    let id = root
        .find("groupId")
        .filter(|_| status == 200)
        .map(|e| e.text.clone())
        .ok_or_else(|| failed("the cluster security group"))?;
    let (status, _) = state
        .ask(
            "ec2",
            &req.who,
            "AuthorizeSecurityGroupIngress",
            &[
                ("GroupId", &id),
                ("IpPermissions.1.IpProtocol", "-1"),
                ("IpPermissions.1.Groups.1.GroupId", &id),
            ],
        )
        .await;
    if status != 200 {
        return Err(failed("the self rule"));
    }
    let (status, _) = state
        .ask(
            "ec2",
            &req.who,
            "CreateTags",
            &[
                ("ResourceId.1", &id),
                ("Tag.1.Key", "Name"),
                ("Tag.1.Value", &group_name),
                ("Tag.2.Key", &owned),
                ("Tag.2.Value", "owned"),
                ("Tag.3.Key", "aws:eks:cluster-name"),
                ("Tag.3.Value", name),
            ],
        )
        .await;
    if status != 200 {
        return Err(failed("the tags of the cluster security group"));
    }
    Ok(id)
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
        return refuse(format!(
            "Cluster has nodegroups attached: {:?}",
            cluster.nodegroups.keys()
        ));
    }
    cluster.life = Life::Deleting(Instant::now());
    Ok(json!({"cluster": cluster.json()}))
}

pub async fn update_config(state: &State, req: &Req, name: &str, body: Value) -> Answer {
    let kinds: Vec<&str> = [
        "resourcesVpcConfig",
        "logging",
        "accessConfig",
        "upgradePolicy",
        "zonalShiftConfig",
        "deletionProtection",
        "controlPlaneScalingConfig",
    ]
    .into_iter()
    .filter(|k| !body[*k].is_null())
    .collect();
    let [kind] = kinds.as_slice() else {
        return Err(bad(format!(
            "Only one type of update can be allowed, found {kinds:?}"
        )));
    };
    let given = &body[*kind];
    let subnets = match texts(given, "subnetIds") {
        ids if *kind == "resourcesVpcConfig" && !ids.is_empty() => {
            Some(check_subnets(state, req, &ids).await?)
        }
        _ => None,
    };
    let mut store = state.lock_eks();
    let cluster = updatable(&mut store, name)?;
    let old = cluster.doc[*kind].clone();
    let next = match *kind {
        "logging" => logging(given, Some(&old))?,
        "deletionProtection" if given.is_boolean() => given.clone(),
        "deletionProtection" => return Err(bad("deletionProtection must be true or false")),
        _ => {
            let mut next = old.clone();
            for (key, value) in given.as_object().into_iter().flatten() {
                next[key] = value.clone();
            }
            next
        }
    };
    if next == old {
        return Err(bad(format!(
            "The cluster is already at the desired configuration of {kind}"
        )));
    }
    let update = match *kind {
        "resourcesVpcConfig" => {
            let (public, private) = (
                next["endpointPublicAccess"] == true,
                next["endpointPrivateAccess"] == true,
            );
            check_endpoint(
                public,
                private,
                if public {
                    texts(&next, "publicAccessCidrs")
                } else {
                    vec![]
                }
                .as_slice(),
            )?;
            if let Some(subnets) = &subnets {
                let zones = |s: &[Subnet]| {
                    s.iter()
                        .map(|s| s.zone.clone())
                        .collect::<std::collections::BTreeSet<_>>()
                };
                if subnets[0].vpc != cluster.subnets[0].vpc
                    || zones(subnets) != zones(&cluster.subnets)
                {
                    return Err(bad(
                        "Provided subnets must belong to the same VPC and the same set of AZs",
                    ));
                }
            }
            if given.get("subnetIds").is_some() || given.get("securityGroupIds").is_some() {
                "VpcConfigUpdate"
            } else {
                "EndpointAccessUpdate"
            }
        }
        "accessConfig" => {
            let rank = |v: &Value| MODES.iter().position(|m| v == m);
            let (from, to) = (
                rank(&old["authenticationMode"]),
                rank(&next["authenticationMode"]),
            );
            if to.is_none() || to < from {
                return Err(bad_request(format!(
                    "Unsupported authentication mode update from {} to {}",
                    old["authenticationMode"], next["authenticationMode"]
                )));
            }
            "AccessConfigUpdate"
        }
        "logging" => "LoggingUpdate",
        "upgradePolicy" => "UpgradePolicyUpdate",
        "zonalShiftConfig" => "ZonalShiftConfigUpdate",
        "deletionProtection" => "DeletionProtectionUpdate",
        _ => "ControlPlaneScalingConfigUpdate",
    };
    cluster.doc[*kind] = next;
    if let Some(subnets) = subnets {
        cluster.subnets = subnets;
    }
    cluster.life = Life::Updating(Instant::now());
    let params = vec![((*kind).to_owned(), given.to_string())];
    let update = cluster.start_update(update, params, state.config.cluster_delay / 4);
    Ok(json!({"update": update.json()}))
}

/// A cluster that can take an update now: one at a time (eks.md 1.2).
fn updatable<'a>(store: &'a mut super::Store, name: &str) -> Result<&'a mut Cluster, Refusal> {
    let cluster = store.cluster(name)?;
    if cluster.life == Life::Active {
        return Ok(cluster);
    }
    Err(in_use(format!(
        "Cannot update cluster {name} while it is {}",
        cluster.life.word()
    ))
    .with("clusterName", name))
}

pub fn update_version(state: &State, name: &str, body: &Value) -> Answer {
    let wanted = text(body, "version").unwrap_or("").to_owned();
    if !catalogue::known_version(&wanted) {
        return Err(bad(format!("unsupported Kubernetes version {wanted}")));
    }
    let mut store = state.lock_eks();
    let cluster = updatable(&mut store, name)?;
    if catalogue::minor(&wanted) != catalogue::minor(cluster.version()) + 1 {
        return Err(bad(format!(
            "Unsupported Kubernetes minor version update from {} to {wanted}",
            cluster.version()
        )));
    }
    cluster.doc["version"] = json!(wanted);
    cluster.life = Life::Updating(Instant::now());
    let update = cluster.start_update(
        "VersionUpdate",
        vec![("Version".into(), wanted)],
        state.config.cluster_delay / 4,
    );
    Ok(json!({"update": update.json()}))
}

pub fn list_updates(state: &State, req: &Req, name: &str) -> Answer {
    let mut store = state.lock_eks();
    let ids = store
        .cluster(name)?
        .updates
        .iter()
        .filter(|u| u.nodegroup.as_deref() == req.query("nodegroupName"))
        .filter(|u| u.addon.as_deref() == req.query("addonName"))
        .map(|u| json!(u.id))
        .collect();
    page(req, "updateIds", ids)
}

pub fn describe_update(state: &State, name: &str, id: &str) -> Answer {
    let mut store = state.lock_eks();
    let update = store
        .cluster(name)?
        .updates
        .iter()
        .find(|u| u.id == id)
        .ok_or_else(|| not_found(format!("No update found for ID: {id}")))?;
    Ok(json!({"update": update.json()}))
}
