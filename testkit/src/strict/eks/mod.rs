//! EKS, wholly our own (the emulator lacks most of it): states take their time, rules are those of `eks.md` 1.

mod access;
mod addon;
mod api;
pub mod catalogue;
mod cluster;
mod launching;
mod nodegroup;
mod nodegroup_checks;
mod nodegroup_update;
mod pods;
mod roles;
mod schemas;
mod tags;
mod update;
mod vpc;

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

use super::State;
use super::controls::Issue;
use super::http::Refusal;
use super::interfaces::Interface;

pub(crate) use access::{principal_id, principal_of};
pub(crate) use api::{action_of, handle, params_of};
pub(crate) use nodegroup::NodePlan;
pub(crate) use tags::{arn_of, tags_by_arn};

use api::page;
use nodegroup::NodeGroup;
use update::Update;

/// All clusters of the account.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub clusters: BTreeMap<String, Cluster>,
    /// Interfaces of clusters and node groups that are gone, and since when.
    left: Vec<(Interface, Instant)>,
    /// Security groups of clusters that are gone: EKS deletes them when nothing carries them any more.
    leaving: Vec<(String, Instant)>,
}

/// Where a thing is in its life. Times are when the state was entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Creating(Instant),
    Active,
    Failed,
    Updating(Instant),
    Deleting(Instant),
}

impl Life {
    pub fn word(self) -> &'static str {
        match self {
            Life::Creating(_) => "CREATING",
            Life::Active => "ACTIVE",
            Life::Failed => "CREATE_FAILED",
            Life::Updating(_) => "UPDATING",
            Life::Deleting(_) => "DELETING",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Cluster {
    /// As DescribeCluster prints it once ACTIVE, without `status`.
    pub doc: Value,
    pub life: Life,
    pub request: Value,
    /// Created by EKS in EC2, deleted with the cluster.
    pub security_group: String,
    pub nodegroups: BTreeMap<String, NodeGroup>,
    pub addons: BTreeMap<String, addon::Addon>,
    pub access: BTreeMap<String, access::Entry>,
    pub pods: BTreeMap<String, Value>,
    pub updates: Vec<Update>,
    /// vpc-cni, coredns and kube-proxy came by themselves (bootstrapSelfManagedAddons).
    pub self_managed: bool,
    pub subnets: Vec<Subnet>,
    /// It will end FAILED.
    pub doom: Option<Issue>,
    /// The version before the last upgrade, and when that was asked for: the way back is open for 7 days (eks.md 1.1).
    pub upgraded_from: Option<(String, Instant)>,
}

/// What the layer knows of a subnet from EC2.
#[derive(Debug, Clone)]
pub(crate) struct Subnet {
    pub id: String,
    pub vpc: String,
    pub zone: String,
    /// `euw1-az1`
    pub zone_id: String,
    pub cidr: String,
    /// Addresses that are not taken, as EC2 counts them.
    pub free: u64,
}

pub(crate) type Answer = Result<Value, Refusal>;

pub(crate) fn bad(message: impl Into<String>) -> Refusal {
    Refusal::new(400, "InvalidParameterException", message)
}

pub(crate) fn bad_request(message: impl Into<String>) -> Refusal {
    Refusal::new(400, "InvalidRequestException", message)
}

pub(crate) fn in_use(message: impl Into<String>) -> Refusal {
    Refusal::new(409, "ResourceInUseException", message)
}

pub(crate) fn not_found(message: impl Into<String>) -> Refusal {
    Refusal::new(404, "ResourceNotFoundException", message)
}

pub(crate) fn over_limit(message: impl Into<String>) -> Refusal {
    Refusal::new(400, "ResourceLimitExceededException", message)
}

pub(crate) fn now() -> f64 {
    jiff::Timestamp::now().as_millisecond() as f64 / 1000.0
}

/// `health` of a thing with these issues.
pub(crate) fn health<'a>(issues: impl IntoIterator<Item = &'a Issue>, ids: &[String]) -> Value {
    let issues: Vec<Value> = issues
        .into_iter()
        .map(|i| json!({"code": i.code, "message": i.message, "resourceIds": ids}))
        .collect();
    json!({"issues": issues})
}

impl Store {
    pub fn cluster(&mut self, name: &str) -> Result<&mut Cluster, Refusal> {
        self.clusters.get_mut(name).ok_or_else(|| {
            not_found(format!("No cluster found for name: {name}.")).with("clusterName", name)
        })
    }

    /// As [`Store::cluster`], for calls that need it to have been ACTIVE once and not going away.
    pub fn ready_cluster(&mut self, name: &str) -> Result<&mut Cluster, Refusal> {
        let cluster = self.cluster(name)?;
        match cluster.life {
            Life::Active | Life::Updating(_) => Ok(cluster),
            life => Err(bad_request(format!(
                "Cluster '{name}' is not in ACTIVE status (it is {})",
                life.word()
            ))
            .with("clusterName", name)),
        }
    }

    /// Lets time pass, for readers that cannot clean up in EC2.
    pub fn sweep_quietly(&mut self, config: &super::Config) {
        let now = Instant::now();
        let Store {
            clusters,
            left,
            leaving,
        } = self;
        clusters.retain(|_, cluster| {
            let gone =
                matches!(cluster.life, Life::Deleting(at) if at.elapsed() >= config.cluster_delay);
            if gone {
                left.extend(cluster.interfaces().into_iter().map(|i| (i, now)));
                leaving.push((cluster.security_group.clone(), now));
            } else {
                left.extend(cluster.pass_time(config).into_iter().map(|i| (i, now)));
            }
            !gone
        });
    }

    /// What nodes should be there now, for each node group that has joined.
    pub fn node_plans(&self) -> Vec<NodePlan> {
        self.clusters
            .values()
            .flat_map(|c| c.nodegroups.values())
            .filter(|g| g.has_nodes())
            .map(NodeGroup::plan)
            .collect()
    }
}

/// Lets time pass, and takes away what EKS has left in EC2 when its time has come.
pub(crate) async fn pass_time(state: &State, who: &str) {
    let linger = state.lock_controls().eni_linger;
    let due: Vec<String> = {
        let mut store = state.lock_eks();
        store.sweep_quietly(&state.config);
        store.left.retain(|(_, since)| since.elapsed() < linger);
        let (due, later) = std::mem::take(&mut store.leaving)
            .into_iter()
            .partition(|(_, since)| since.elapsed() >= linger);
        store.leaving = later;
        let due: Vec<(String, Instant)> = due;
        due.into_iter().map(|(group, _)| group).collect()
    };
    for group in due {
        // EKS takes its own security group away; one still referenced by a rule of ours stays, as on AWS.
        state
            .ask("ec2", who, "DeleteSecurityGroup", &[("GroupId", &group)])
            .await;
    }
}

/// Every interface that EKS has in the account now. Call after [`pass_time`].
pub(crate) fn interfaces(store: &Store) -> Vec<Interface> {
    let standing = store.clusters.values().flat_map(Cluster::interfaces);
    standing
        .chain(store.left.iter().map(|(i, _)| Interface {
            // Nothing is attached any more: somebody has to delete it, and EKS will.
            managed: false,
            instance: None,
            ..i.clone()
        }))
        .collect()
}

impl Cluster {
    /// Gives back the interfaces of node groups that are gone now.
    fn pass_time(&mut self, config: &super::Config) -> Vec<Interface> {
        let idle = self.finish_updates();
        match self.life {
            Life::Creating(at) if at.elapsed() >= config.cluster_delay => {
                self.life = match self.doom {
                    Some(_) => Life::Failed,
                    None => Life::Active,
                };
            }
            Life::Updating(_) if idle => self.life = Life::Active,
            _ => {}
        }
        addon::sweep(self, config);
        nodegroup::sweep(self, config)
    }
}

pub(crate) fn text<'a>(body: &'a Value, key: &str) -> Option<&'a str> {
    body.get(key).and_then(Value::as_str)
}

pub(crate) fn texts(body: &Value, key: &str) -> Vec<String> {
    body.get(key)
        .and_then(Value::as_array)
        .map(|items| {
            items
                .iter()
                .filter_map(|i| i.as_str().map(str::to_owned))
                .collect()
        })
        .unwrap_or_default()
}

/// Whether two requests with the same client token are the same request.
pub(crate) fn same_request(first: &Value, second: &Value) -> bool {
    text(first, "clientRequestToken").is_some() && first == second
}

/// Refuses a client token that made something else before: other parameters, another name (eks.md 1.2: a token makes retries of one
/// request idempotent, nothing else). AWS's very words for EKS are not known [?].
pub(crate) fn fresh_token<'a>(
    body: &Value,
    requests: impl IntoIterator<Item = &'a Value>,
) -> Result<(), Refusal> {
    let Some(token) = text(body, "clientRequestToken") else {
        return Ok(());
    };
    let used = requests
        .into_iter()
        .any(|r| text(r, "clientRequestToken") == Some(token) && r != body);
    if used {
        return Err(bad(
            "The client request token was used before with other parameters",
        ));
    }
    Ok(())
}

/// Tag limits of EKS.
pub(crate) fn check_tags(tags: &Value) -> Result<(), Refusal> {
    let Some(tags) = tags.as_object() else {
        return Ok(());
    };
    if tags.len() > 50 {
        return Err(bad("at most 50 tags are allowed"));
    }
    for (key, value) in tags {
        if key.is_empty() || key.chars().count() > 128 || key.to_lowercase().starts_with("aws:") {
            return Err(bad(format!("Invalid tag key: '{key}'")));
        }
        if value.as_str().is_none_or(|v| v.chars().count() > 256) {
            return Err(bad(format!("Invalid tag value for key '{key}'")));
        }
    }
    Ok(())
}
