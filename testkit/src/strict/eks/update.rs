//! Updates: one at a time, each with an id and an end (eks.md 1.2). What it changes is seen when it has ended well.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    Answer, Cluster, Life, Subnet, bad, bad_request, catalogue, in_use, not_found, now, page, text,
    texts,
};
use crate::strict::State;
use crate::strict::controls::{Fails, Issue};
use crate::strict::http::{Refusal, Req, unique_id};

/// The way back to the version before is open so long (eks.md 1.1).
const ROLLBACK: Duration = Duration::from_secs(7 * 24 * 3_600);

#[derive(Debug, Clone)]
pub(crate) struct Update {
    pub id: String,
    pub kind: String,
    pub params: Vec<(String, String)>,
    pub created: f64,
    pub at: Instant,
    pub nodegroup: Option<String>,
    pub addon: Option<String>,
    pub takes: Duration,
    /// It will end Failed.
    pub doom: Option<Issue>,
    /// Members of the cluster's document that change when it ends well.
    change: Vec<(String, Value)>,
    subnets: Option<Vec<Subnet>>,
    done: bool,
}

impl Update {
    pub fn json(&self) -> Value {
        let status = match (self.at.elapsed() < self.takes, &self.doom) {
            (true, _) => "InProgress",
            (false, Some(_)) => "Failed",
            (false, None) => "Successful",
        };
        let errors: Vec<Value> = self
            .doom
            .iter()
            .filter(|_| status == "Failed")
            .map(|i| json!({"errorCode": i.code, "errorMessage": i.message, "resourceIds": []}))
            .collect();
        json!({
            "id": self.id,
            "status": status,
            "type": self.kind,
            "params": self.params.iter().map(|(k, v)| json!({"type": k, "value": v})).collect::<Vec<_>>(),
            "createdAt": self.created,
            "errors": errors,
        })
    }
}

impl Cluster {
    pub fn start_update(
        &mut self,
        kind: &str,
        params: Vec<(String, String)>,
        takes: Duration,
        doom: Option<Issue>,
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
            doom,
            change: vec![],
            subnets: None,
            done: false,
        });
        let last = self.updates.len() - 1;
        &mut self.updates[last]
    }

    /// Applies what ended well since the last look; whether no update of the cluster itself is under way any more.
    pub(super) fn finish_updates(&mut self) -> bool {
        let mut idle = true;
        for update in &mut self.updates {
            if update.done || update.at.elapsed() < update.takes {
                idle &= update.done || update.nodegroup.is_some() || update.addon.is_some();
                continue;
            }
            update.done = true;
            if update.doom.is_some() {
                continue;
            }
            for (key, value) in std::mem::take(&mut update.change) {
                self.doc[key.as_str()] = value;
            }
            if let Some(subnets) = update.subnets.take() {
                self.subnets = subnets;
            }
        }
        idle
    }
}

/// What UpdateClusterConfig takes, one in a call. Compute, storage and load balancing of Auto Mode go together (eks.md 1.2).
const KINDS: &[&str] = &[
    "resourcesVpcConfig",
    "logging",
    "accessConfig",
    "upgradePolicy",
    "zonalShiftConfig",
    "deletionProtection",
    "controlPlaneScalingConfig",
    "remoteNetworkConfig",
];

pub async fn update_config(state: &State, req: &Req, name: &str, body: Value) -> Answer {
    let kinds: Vec<&str> = KINDS
        .iter()
        .copied()
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
            Some(super::vpc::check_subnets(state, req, &ids).await?)
        }
        _ => None,
    };
    if *kind == "resourcesVpcConfig" {
        super::vpc::check_groups(state, req, &texts(given, "securityGroupIds")).await?;
    }
    let mut store = state.lock_eks();
    let cluster = updatable(&mut store, name)?;
    let old = cluster.doc[*kind].clone();
    let next = next(kind, given, &old)?;
    if next == old {
        return Err(bad(format!(
            "The cluster is already at the desired configuration of {kind}"
        )));
    }
    let update = match *kind {
        "resourcesVpcConfig" => {
            check_network(state, cluster, &next, subnets.as_deref())?;
            if given.get("subnetIds").is_some() || given.get("securityGroupIds").is_some() {
                "VpcConfigUpdate"
            } else {
                "EndpointAccessUpdate"
            }
        }
        "accessConfig" => {
            let rank = |v: &Value| super::cluster::MODES.iter().position(|m| v == m);
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
        "upgradePolicy" => {
            let word = next["supportType"].as_str().unwrap_or("");
            if !["STANDARD", "EXTENDED"].contains(&word) {
                return Err(bad(format!(
                    "supportType must be STANDARD or EXTENDED, not '{word}'"
                )));
            }
            "UpgradePolicyUpdate"
        }
        "zonalShiftConfig" => "ZonalShiftConfigUpdate",
        "deletionProtection" => "DeletionProtectionUpdate",
        "remoteNetworkConfig" => "RemoteNetworkConfigUpdate",
        _ => "ControlPlaneScalingConfigUpdate",
    };
    let doom = state.lock_controls().take_failure(Fails::Update, name);
    cluster.life = Life::Updating(Instant::now());
    let params = vec![((*kind).to_owned(), given.to_string())];
    let update = cluster.start_update(update, params, state.config.cluster_delay / 4, doom);
    update.change = vec![((*kind).to_owned(), next)];
    update.subnets = subnets;
    Ok(json!({"update": update.json()}))
}

/// The member after the update.
fn next(kind: &str, given: &Value, old: &Value) -> Answer {
    match kind {
        "logging" => super::cluster::logging(given, Some(old)),
        "deletionProtection" if given.is_boolean() => Ok(given.clone()),
        "deletionProtection" => Err(bad("deletionProtection must be true or false")),
        _ => {
            let mut next = match old {
                Value::Object(_) => old.clone(),
                _ => json!({}),
            };
            for (key, value) in given.as_object().into_iter().flatten() {
                next[key] = value.clone();
            }
            Ok(next)
        }
    }
}

fn check_network(
    state: &State,
    cluster: &Cluster,
    next: &Value,
    subnets: Option<&[Subnet]>,
) -> Result<(), Refusal> {
    let (public, private) = (
        next["endpointPublicAccess"] == true,
        next["endpointPrivateAccess"] == true,
    );
    let cidrs = match public {
        true => texts(next, "publicAccessCidrs"),
        false => vec![],
    };
    super::vpc::check_endpoint(state, public, private, &cidrs)?;
    let Some(subnets) = subnets else {
        return Ok(());
    };
    let zones = |s: &[Subnet]| {
        s.iter()
            .map(|s| s.zone.clone())
            .collect::<std::collections::BTreeSet<_>>()
    };
    if subnets[0].vpc != cluster.subnets[0].vpc || zones(subnets) != zones(&cluster.subnets) {
        return Err(bad(
            "Provided subnets must belong to the same VPC and the same set of AZs",
        ));
    }
    Ok(())
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

/// One minor up, or back to the version before within 7 days (eks.md 1.1).
pub fn update_version(state: &State, name: &str, body: &Value) -> Answer {
    let wanted = text(body, "version").unwrap_or("").to_owned();
    if !catalogue::known_version(&wanted) {
        return Err(bad(format!("unsupported Kubernetes version {wanted}")));
    }
    let mut store = state.lock_eks();
    let cluster = updatable(&mut store, name)?;
    let current = cluster.version().to_owned();
    let back = cluster
        .upgraded_from
        .as_ref()
        .is_some_and(|(version, at)| *version == wanted && at.elapsed() < ROLLBACK);
    if catalogue::minor(&wanted) != catalogue::minor(&current) + 1 && !back {
        return Err(bad(format!(
            "Unsupported Kubernetes minor version update from {current} to {wanted}"
        )));
    }
    // Nodes may be older than the control plane, never newer.
    if back && let Some(newer) = cluster.nodegroup_of_version(&current) {
        return Err(bad_request(format!(
            "Node group {newer} runs {current}, newer than {wanted}"
        )));
    }
    let doom = state.lock_controls().take_failure(Fails::Update, name);
    if doom.is_none() {
        cluster.upgraded_from = (!back).then(|| (current, Instant::now()));
    }
    cluster.life = Life::Updating(Instant::now());
    let update = cluster.start_update(
        "VersionUpdate",
        vec![("Version".into(), wanted.clone())],
        state.config.cluster_delay / 4,
        doom,
    );
    update.change = vec![("version".to_owned(), json!(wanted))];
    Ok(json!({"update": update.json()}))
}

/// A customer key for secrets, once and for all: it cannot be removed (eks.md 1.2).
pub async fn associate_encryption(state: &State, req: &Req, name: &str, body: Value) -> Answer {
    let config = &body["encryptionConfig"];
    super::cluster::check_encryption(state, req, config).await?;
    let mut store = state.lock_eks();
    let cluster = updatable(&mut store, name)?;
    if !cluster.doc["encryptionConfig"].is_null() {
        return Err(bad(format!(
            "Encryption is already enabled for cluster {name}"
        )));
    }
    let doom = state.lock_controls().take_failure(Fails::Update, name);
    cluster.life = Life::Updating(Instant::now());
    let params = vec![("EncryptionConfig".to_owned(), config.to_string())];
    let takes = state.config.cluster_delay / 4;
    let update = cluster.start_update("AssociateEncryptionConfig", params, takes, doom);
    update.change = vec![("encryptionConfig".to_owned(), config.clone())];
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
    page(state, req, "updateIds", ids)
}

pub fn describe_update(state: &State, req: &Req, name: &str, id: &str) -> Answer {
    let mut store = state.lock_eks();
    let update = store
        .cluster(name)?
        .updates
        .iter()
        .find(|u| u.id == id)
        // The update of a node group or add-on is only found with its name beside it.
        .filter(|u| u.nodegroup.as_deref() == req.query("nodegroupName"))
        .filter(|u| u.addon.as_deref() == req.query("addonName"))
        .ok_or_else(|| not_found(format!("No update found for ID: {id}")))?;
    Ok(json!({"update": update.json()}))
}
