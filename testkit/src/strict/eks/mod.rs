//! EKS, wholly our own (the emulator lacks most of it): states take their time, rules are those of `eks.md` 1.

mod access;
mod addon;
pub mod catalogue;
mod cluster;
mod nodegroup;
mod pods;
mod tags;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Map, Value, json};

use super::State;
use super::http::{Refusal, Reply, Req, json_reply};

pub(crate) use access::{principal_id, principal_of};
use nodegroup::NodeGroup;
pub(crate) use nodegroup::NodePlan;

/// All clusters of the account.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub clusters: BTreeMap<String, Cluster>,
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
}

/// What the layer knows of a subnet from EC2.
#[derive(Debug, Clone)]
pub(crate) struct Subnet {
    pub id: String,
    pub vpc: String,
    pub zone: String,
    pub cidr: String,
}

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
}

impl Update {
    fn json(&self) -> Value {
        json!({
            "id": self.id,
            "status": if self.at.elapsed() < self.takes { "InProgress" } else { "Successful" },
            "type": self.kind,
            "params": self.params.iter().map(|(k, v)| json!({"type": k, "value": v})).collect::<Vec<_>>(),
            "createdAt": self.created,
            "errors": [],
        })
    }
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

pub(crate) fn now() -> f64 {
    jiff::Timestamp::now().as_millisecond() as f64 / 1000.0
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

    /// As [`Store::sweep`], for readers that cannot clean up in EC2: clusters due to go stay until the next call.
    pub fn sweep_quietly(&mut self, config: &super::Config) {
        for cluster in self.clusters.values_mut() {
            cluster.pass_time(config);
        }
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

    /// Lets time pass; gives back the security groups of clusters that are gone now.
    pub fn sweep(&mut self, config: &super::Config) -> Vec<String> {
        let mut gone = Vec::new();
        self.clusters.retain(|_, cluster| {
            if let Life::Deleting(at) = cluster.life
                && at.elapsed() >= config.cluster_delay
            {
                gone.push(cluster.security_group.clone());
                return false;
            }
            cluster.pass_time(config);
            true
        });
        gone
    }
}

impl Cluster {
    fn pass_time(&mut self, config: &super::Config) {
        match self.life {
            Life::Creating(at) if at.elapsed() >= config.cluster_delay => self.life = Life::Active,
            Life::Updating(at) if at.elapsed() >= config.cluster_delay / 4 => {
                self.life = Life::Active;
            }
            _ => {}
        }
        addon::sweep(self, config);
        nodegroup::sweep(self, config);
    }
}

/// Operation of a method and path.
pub(crate) fn action_of(req: &Req) -> &'static str {
    let segments = req.segments();
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (get, post, delete) = (
        req.method == Method::GET,
        req.method == Method::POST,
        req.method == Method::DELETE,
    );
    match parts.as_slice() {
        ["clusters"] if post => "CreateCluster",
        ["clusters"] if get => "ListClusters",
        ["clusters", _] if get => "DescribeCluster",
        ["clusters", _] if delete => "DeleteCluster",
        ["clusters", _, "update-config"] if post => "UpdateClusterConfig",
        ["clusters", _, "updates"] if post => "UpdateClusterVersion",
        ["clusters", _, "updates"] if get => "ListUpdates",
        ["clusters", _, "updates", _] if get => "DescribeUpdate",
        ["clusters", _, "node-groups"] if post => "CreateNodegroup",
        ["clusters", _, "node-groups"] if get => "ListNodegroups",
        ["clusters", _, "node-groups", _] if get => "DescribeNodegroup",
        ["clusters", _, "node-groups", _] if delete => "DeleteNodegroup",
        ["clusters", _, "node-groups", _, "update-config"] if post => "UpdateNodegroupConfig",
        ["clusters", _, "addons"] if post => "CreateAddon",
        ["clusters", _, "addons"] if get => "ListAddons",
        ["clusters", _, "addons", _] if get => "DescribeAddon",
        ["clusters", _, "addons", _] if delete => "DeleteAddon",
        ["clusters", _, "addons", _, "update"] if post => "UpdateAddon",
        ["clusters", _, "access-entries"] if post => "CreateAccessEntry",
        ["clusters", _, "access-entries"] if get => "ListAccessEntries",
        ["clusters", _, "access-entries", _] if get => "DescribeAccessEntry",
        ["clusters", _, "access-entries", _] if post => "UpdateAccessEntry",
        ["clusters", _, "access-entries", _] if delete => "DeleteAccessEntry",
        ["clusters", _, "access-entries", _, "access-policies"] if post => "AssociateAccessPolicy",
        ["clusters", _, "access-entries", _, "access-policies"] if get => {
            "ListAssociatedAccessPolicies"
        }
        ["clusters", _, "access-entries", _, "access-policies", _] if delete => {
            "DisassociateAccessPolicy"
        }
        ["access-policies"] if get => "ListAccessPolicies",
        ["clusters", _, "pod-identity-associations"] if post => "CreatePodIdentityAssociation",
        ["clusters", _, "pod-identity-associations"] if get => "ListPodIdentityAssociations",
        ["clusters", _, "pod-identity-associations", _] if get => "DescribePodIdentityAssociation",
        ["clusters", _, "pod-identity-associations", _] if post => "UpdatePodIdentityAssociation",
        ["clusters", _, "pod-identity-associations", _] if delete => "DeletePodIdentityAssociation",
        ["clusters", _, "fargate-profiles"] if get => "ListFargateProfiles",
        ["clusters", _, "identity-provider-configs"] if get => "ListIdentityProviderConfigs",
        ["clusters", _, "insights"] if post => "ListInsights",
        ["addons", "supported-versions"] if get => "DescribeAddonVersions",
        ["cluster-versions"] if get => "DescribeClusterVersions",
        ["tags", ..] if get => "ListTagsForResource",
        ["tags", ..] if post => "TagResource",
        ["tags", ..] if delete => "UntagResource",
        _ => "Unknown",
    }
}

/// What the call log keeps: names from the path, the query and the body.
pub(crate) fn params_of(req: &Req) -> Value {
    let segments = req.segments();
    let mut out = Map::new();
    let mut put = |key: &str, index: usize| {
        if let Some(value) = segments.get(index) {
            out.insert(key.to_owned(), json!(value));
        }
    };
    match segments.first().map(String::as_str) {
        Some("clusters") => {
            put("clusterName", 1);
            match segments.get(2).map(String::as_str) {
                Some("node-groups") => put("nodegroupName", 3),
                Some("addons") => put("addonName", 3),
                Some("access-entries") => {
                    put("principalArn", 3);
                    put("policyArn", 5);
                }
                Some("pod-identity-associations") => put("associationId", 3),
                Some("updates") => put("updateId", 3),
                _ => {}
            }
        }
        Some("tags") => put("resourceArn", 1),
        _ => {}
    }
    for (key, value) in &req.query {
        out.insert(key.clone(), json!(value));
    }
    if let Ok(Value::Object(body)) = serde_json::from_slice(&req.body) {
        out.extend(body);
    }
    Value::Object(out)
}

pub(crate) async fn handle(state: &State, req: &Req) -> Reply {
    let gone = state.lock_eks().sweep(&state.config);
    for group in gone {
        // EKS takes its own security group away; one still referenced by a rule of ours stays, as on AWS.
        state
            .ask(
                "ec2",
                &req.who,
                "DeleteSecurityGroup",
                &[("GroupId", &group)],
            )
            .await;
    }
    match answer(state, req).await {
        Ok(value) => json_reply(200, &value),
        Err(refusal) => refusal.reply("eks"),
    }
}

async fn answer(state: &State, req: &Req) -> Answer {
    let body: Value = if req.body.is_empty() {
        json!({})
    } else {
        serde_json::from_slice(&req.body).map_err(|error| {
            Refusal::new(
                400,
                "SerializationException",
                format!("the body is not JSON: {error}"),
            )
        })?
    };
    let segments = req.segments();
    let part = |index: usize| segments.get(index).cloned().unwrap_or_default();
    let (cluster, item) = (part(1), part(3));
    match req.action.as_str() {
        "CreateCluster" => cluster::create(state, req, body).await,
        "ListClusters" => {
            let names = state.lock_eks().clusters.keys().map(|n| json!(n)).collect();
            page(req, "clusters", names)
        }
        "DescribeCluster" => cluster::describe(state, &cluster),
        "DeleteCluster" => cluster::delete(state, &cluster),
        "UpdateClusterConfig" => cluster::update_config(state, req, &cluster, body).await,
        "UpdateClusterVersion" => cluster::update_version(state, &cluster, &body),
        "ListUpdates" => cluster::list_updates(state, req, &cluster),
        "DescribeUpdate" => cluster::describe_update(state, &cluster, &item),
        "DescribeClusterVersions" => catalogue::describe_cluster_versions(req),
        "CreateNodegroup" => nodegroup::create(state, req, &cluster, body).await,
        "ListNodegroups" => {
            let names = state
                .lock_eks()
                .cluster(&cluster)?
                .nodegroups
                .keys()
                .map(|n| json!(n))
                .collect();
            page(req, "nodegroups", names)
        }
        "DescribeNodegroup" => nodegroup::describe(state, &cluster, &item),
        "DeleteNodegroup" => nodegroup::delete(state, &cluster, &item),
        "UpdateNodegroupConfig" => nodegroup::update(state, &cluster, &item, &body),
        "CreateAddon" => addon::create(state, req, &cluster, body).await,
        "ListAddons" => {
            let names = state
                .lock_eks()
                .cluster(&cluster)?
                .addons
                .keys()
                .map(|n| json!(n))
                .collect();
            page(req, "addons", names)
        }
        "DescribeAddon" => addon::describe(state, &cluster, &item),
        "DeleteAddon" => addon::delete(state, &cluster, &item),
        "UpdateAddon" => addon::update(state, req, &cluster, &item, body).await,
        "DescribeAddonVersions" => catalogue::describe_addon_versions(req),
        "CreateAccessEntry" => access::create(state, req, &cluster, body).await,
        "ListAccessEntries" => access::list(state, req, &cluster),
        "DescribeAccessEntry" => access::describe(state, &cluster, &item),
        "UpdateAccessEntry" => access::update(state, &cluster, &item, &body),
        "DeleteAccessEntry" => access::delete(state, &cluster, &item),
        "AssociateAccessPolicy" => access::associate(state, &cluster, &item, &body),
        "DisassociateAccessPolicy" => access::disassociate(state, &cluster, &item, &part(5)),
        "ListAssociatedAccessPolicies" => access::list_policies(state, req, &cluster, &item),
        "ListAccessPolicies" => page(req, "accessPolicies", catalogue::access_policies()),
        "CreatePodIdentityAssociation" => pods::create(state, req, &cluster, body).await,
        "ListPodIdentityAssociations" => pods::list(state, req, &cluster),
        "DescribePodIdentityAssociation" => pods::describe(state, &cluster, &item),
        "UpdatePodIdentityAssociation" => pods::update(state, req, &cluster, &item, &body).await,
        "DeletePodIdentityAssociation" => pods::delete(state, &cluster, &item),
        "ListFargateProfiles" | "ListIdentityProviderConfigs" | "ListInsights" => {
            state.lock_eks().cluster(&cluster)?;
            let key = match req.action.as_str() {
                "ListFargateProfiles" => "fargateProfileNames",
                "ListInsights" => "insights",
                _ => "identityProviderConfigs",
            };
            Ok(json!({ key: [] }))
        }
        "TagResource" => tags::tag(state, &part(1), &body),
        "UntagResource" => tags::untag(state, req, &part(1)),
        "ListTagsForResource" => tags::list(state, &part(1)),
        _ => Err(Refusal::new(
            404,
            "UnknownOperationException",
            format!(
                "the strict layer knows no EKS call {} {}",
                req.method, req.path
            ),
        )),
    }
}

/// One page of a listing; the token is the index of the next item.
pub(crate) fn page(req: &Req, key: &str, items: Vec<Value>) -> Answer {
    let limit = match req.query("maxResults") {
        None => 100,
        Some(text) => text
            .parse::<usize>()
            .ok()
            .filter(|n| (1..=100).contains(n))
            .ok_or_else(|| bad(format!("maxResults must be 1 to 100, not '{text}'")))?,
    };
    let start = match req.query("nextToken") {
        None => 0,
        Some(token) => token
            .parse::<usize>()
            .map_err(|_| bad(format!("Invalid token: '{token}'")))?,
    };
    let more = start + limit < items.len();
    let slice: Vec<Value> = items.into_iter().skip(start).take(limit).collect();
    let mut out = json!({ key: slice });
    if more {
        out["nextToken"] = json!((start + limit).to_string());
    }
    Ok(out)
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

impl State {
    /// Subnets as EC2 has them, in the order asked; refuses unknown ones.
    pub(crate) async fn subnets(&self, who: &str, ids: &[String]) -> Result<Vec<Subnet>, Refusal> {
        let mut out = Vec::new();
        for id in ids {
            let (status, root) = self
                .ask("ec2", who, "DescribeSubnets", &[("SubnetId.1", id)])
                .await;
            let item = root.find("subnetSet").and_then(|s| s.child("item"));
            let Some(item) = item.filter(|_| status == 200) else {
                return Err(bad(format!("The subnet ID '{id}' does not exist")));
            };
            let get = |key: &str| item.text_of(key).unwrap_or("").to_owned();
            out.push(Subnet {
                id: id.clone(),
                vpc: get("vpcId"),
                zone: get("availabilityZone"),
                cidr: get("cidrBlock"),
            });
        }
        Ok(out)
    }

    /// Refuses a role that does not exist or does not trust this service. Returns the role's unique id.
    pub(crate) async fn role_trusts(
        &self,
        who: &str,
        arn: &str,
        service: &str,
    ) -> Result<String, Refusal> {
        let name = arn
            .strip_prefix("arn:aws:iam::")
            .and_then(|rest| rest.split_once(":role/"))
            .map(|(_, path)| path.rsplit('/').next().unwrap_or(path))
            .ok_or_else(|| bad(format!("'{arn}' is not a role ARN")))?;
        let (status, root) = self.ask("iam", who, "GetRole", &[("RoleName", name)]).await;
        let role = root.find("Role").filter(|_| status == 200);
        let refused = || {
            bad(format!(
                "Role with arn: {arn}, could not be assumed because it does not exist or the trusted entity is not correct"
            ))
        };
        let role = role
            .filter(|r| r.text_of("Arn") == Some(arn))
            .ok_or_else(refused)?;
        let trust =
            super::http::percent_decode(role.text_of("AssumeRolePolicyDocument").unwrap_or(""));
        let trust: Value = serde_json::from_str(&trust).unwrap_or_default();
        let one_or_many = |v: &Value| match v {
            Value::Array(items) => items.clone(),
            Value::Null => vec![],
            other => vec![other.clone()],
        };
        let trusted = service.is_empty()
            || one_or_many(&trust["Statement"]).iter().any(|s| {
                s["Effect"] == "Allow"
                    && one_or_many(&s["Principal"]["Service"])
                        .iter()
                        .any(|p| p == service)
                    && one_or_many(&s["Action"])
                        .iter()
                        .any(|a| a == "sts:AssumeRole" || a == "sts:*")
            });
        if !trusted {
            return Err(refused());
        }
        Ok(role.text_of("RoleId").unwrap_or("").to_owned())
    }
}
