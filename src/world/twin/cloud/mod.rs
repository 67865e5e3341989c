//! EKS, IAM and EC2: what exists, what state it is in, how long it takes.

mod make;
mod terraform;
mod trouble;

use super::state::{Ev, State, system_objects};
use super::store::{Key, Store};
use super::{Options, Twin, kinds};
use crate::object::{Side, sha256_hex};
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use crate::world::cloud::{
    Attached, Cloud, CloudIdentity, EksCluster, Existing, Found, HealthIssue, Inventory, Now,
    RUN_TAG, Resource, Status, assume::trusts, compare,
};
use crate::world::kube::Admission;
use crate::world::{Class, Error, Result};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Seconds until a cluster, node group and add-on is ACTIVE, and gone (eks.md 1.8).
const CLUSTER: (u64, u64) = (540, 300);
const NODE_GROUP: (u64, u64) = (180, 150);
const ADDON: (u64, u64) = (60, 20);
/// Nodes register a while before their group is ACTIVE.
const NODES: u64 = 120;
/// An access entry works on the API server after this time.
const ACCESS: u64 = 5;

/// A thing that was created, by [`Resource::id`].
#[derive(Clone, Debug)]
pub(super) struct Thing {
    pub resource: Resource,
    pub run: Option<String>,
    pub made: Duration,
    pub deleted: Option<Duration>,
    /// Why it comes out CREATE_FAILED.
    pub fate: Option<HealthIssue>,
}

impl Thing {
    /// In the words of an inventory.
    fn existing(&self, status: Status) -> Existing {
        Existing {
            resource: self.resource.clone(),
            tags: self
                .run
                .iter()
                .map(|r| (RUN_TAG.to_owned(), r.clone()))
                .collect(),
            status,
            extras: vec![],
            attributes: BTreeMap::new(),
            now: Now::default(),
        }
    }
}

#[derive(Clone)]
pub(super) struct CloudState {
    pub inventory: Inventory,
    pub green: String,
    pub things: BTreeMap<String, Thing>,
    pub terraform: Option<terraform::Started>,
    region: String,
    account: String,
    seed: u64,
    trouble: trouble::Trouble,
}

impl CloudState {
    pub fn new(snapshot: &Snapshot, spec: &Spec, options: &Options) -> Self {
        let account = spec
            .aws
            .account
            .clone()
            .unwrap_or_else(|| "000000000000".into());
        let region = spec
            .aws
            .region
            .clone()
            .unwrap_or_else(|| "eu-west-1".into());
        let inventory = snapshot.aws.clone().unwrap_or_else(|| Inventory {
            identity: CloudIdentity {
                arn: format!("arn:aws:iam::{account}:user/crossfade"),
                account: account.clone(),
                region: region.clone(),
            },
            vpc: None,
            subnets: vec![],
            security_groups: vec![],
            roles: vec![],
            oidc_providers: vec![],
            clusters: vec![],
            ..Inventory::default()
        });
        CloudState {
            account: inventory.identity.account.clone(),
            region: inventory.identity.region.clone(),
            inventory,
            green: spec.green.name.clone(),
            things: BTreeMap::new(),
            terraform: None,
            seed: options.seed,
            trouble: Default::default(),
        }
    }

    fn issuer(&self, cluster: &str) -> String {
        let id =
            sha256_hex(format!("{}/{}/{cluster}", self.seed, self.account))[..32].to_uppercase();
        format!("oidc.eks.{}.amazonaws.com/id/{id}", self.region)
    }
    fn cluster_group(&self, cluster: &str) -> String {
        format!(
            "sg-{}",
            &sha256_hex(format!("{}/sg/{cluster}", self.seed))[..17]
        )
    }
    fn role_arn(&self, name: &str) -> String {
        format!("arn:aws:iam::{}:role/{name}", self.account)
    }
    /// IAM ARN of the caller: access entries are for roles and users, never for sessions.
    fn caller(&self) -> String {
        let arn = &self.inventory.identity.arn;
        match arn.split_once(":assumed-role/") {
            Some((head, tail)) => format!(
                "{}:role/{}",
                head.replace(":sts:", ":iam:"),
                tail.split('/').next().unwrap_or(tail)
            ),
            None => arn.clone(),
        }
    }
    /// Whether pods of green may assume a role: it exists and trusts green's issuer, which the account knows. A role of
    /// another account cannot be judged from here.
    fn trusts_green(&self, arn: &str) -> bool {
        if self.foreign(arn) {
            return true;
        }
        let issuer = self.issuer(&self.green);
        let known = self.things.contains_key(&format!("oidc-provider/{issuer}"))
            || self.inventory.oidc_providers.contains(&issuer);
        known && self.trusts(arn, &issuer)
    }
    fn foreign(&self, arn: &str) -> bool {
        arn.split(':').nth(4).is_some_and(|a| a != self.account)
    }
    /// Whether a role exists and its trust policy names somebody.
    fn trusts(&self, arn: &str, whom: &str) -> bool {
        let name = arn.rsplit('/').next().unwrap_or(arn);
        let trust = match self
            .things
            .get(&format!("role/{name}"))
            .map(|t| &t.resource)
        {
            Some(Resource::Role { trust, .. }) => Some(trust),
            _ => self
                .inventory
                .roles
                .iter()
                .find(|r| r.name == name)
                .map(|r| &r.trust),
        };
        trust.is_some_and(|t| t.to_string().contains(whom))
    }
    /// Role that an account of green has by Pod Identity.
    fn associated(&self, ns: &str, service_account: &str) -> Option<&str> {
        let id = format!("pod-identity/{}/{ns}/{service_account}", self.green);
        let of = |r: &'_ Resource| matches!(r, Resource::PodIdentityAssociation { .. });
        let made = self.things.get(&id).map(|t| &t.resource);
        let before = || {
            self.inventory
                .clusters
                .iter()
                .flat_map(|c| c.parts.iter().flatten())
                .map(|p| &p.resource)
                .find(|r| of(r) && r.id() == id)
        };
        match made.or_else(before)? {
            Resource::PodIdentityAssociation { role_arn, .. } => Some(role_arn),
            _ => None,
        }
    }
    fn role_exists(&self, arn: &str) -> bool {
        let name = arn.rsplit('/').next().unwrap_or(arn);
        self.things.contains_key(&format!("role/{name}"))
            || self
                .inventory
                .roles
                .iter()
                .any(|r| r.arn == arn || r.name == name)
    }
}

/// A state that `after` seconds lead to.
fn timed(now: Duration, since: Duration, after: Duration) -> bool {
    now >= since + after
}

impl State {
    /// Whether green's API server exists and lets the caller in.
    pub fn green_admits(&self) -> Result<()> {
        let name = &self.cloud.green;
        let at = format!("cluster/{name}");
        if self
            .cloud
            .inventory
            .clusters
            .iter()
            .any(|c| c.name == *name)
        {
            return Ok(());
        }
        let Some(cluster) = self.cloud.things.get(&at) else {
            return Err(Error::new(
                Class::NotReady,
                &at,
                "the cluster does not exist yet",
            ));
        };
        if cluster.deleted.is_some() || !timed(self.now, cluster.made, self.secs(CLUSTER.0)) {
            return Err(Error::new(
                Class::NotReady,
                &at,
                "the cluster is not ACTIVE",
            ));
        }
        let caller = self.cloud.caller();
        let entry = self
            .cloud
            .things
            .get(&format!("access-entry/{name}/{caller}"));
        let admits = entry.is_some_and(|t| {
            let admin = matches!(&t.resource, Resource::AccessEntry { policy: Some(p), .. } if p.contains("ClusterAdmin"));
            admin && timed(self.now, t.made, self.secs(ACCESS))
        });
        if !admits {
            return Err(Error::new(
                Class::Unauthorized,
                &at,
                format!("{caller} has no access entry with AmazonEKSClusterAdminPolicy"),
            )
            .remedy("create an access entry for the caller"));
        }
        Ok(())
    }

    /// What green's API server makes of a token of an IAM principal.
    pub fn admission(&self, principal: &str) -> Admission {
        let name = &self.cloud.green;
        let roles = &self.cloud.inventory.roles;
        if let Some(role) = roles.iter().find(|r| r.arn == principal)
            && let Err(why) = trusts(&role.trust, &self.cloud.inventory.identity.arn)
        {
            return Admission::Unproven(why);
        }
        let entry = self
            .cloud
            .things
            .get(&format!("access-entry/{name}/{principal}"))
            .filter(|t| t.deleted.is_none() && timed(self.now, t.made, self.secs(ACCESS)));
        let listed = self
            .cloud
            .inventory
            .clusters
            .iter()
            .any(|c| c.name == *name && c.access_entries.iter().any(|e| e == principal));
        let (groups, admin) = match entry.map(|t| &t.resource) {
            Some(Resource::AccessEntry { groups, policy, .. }) => (
                groups.clone(),
                policy
                    .as_deref()
                    .is_some_and(|p| p.contains("ClusterAdmin")),
            ),
            // The snapshot names who gets in, not with which rights.
            _ if listed => (vec![], true),
            _ => return Admission::Refused(format!("{principal} has no access entry")),
        };
        Admission::In {
            username: principal.into(),
            groups,
            admin,
        }
    }

    /// Why a pod of green cannot use the role of its service account; `None` when it can or has none.
    pub fn identity_broken(&self, ns: &str, service_account: &str) -> Option<String> {
        let account = self.green.get("", "ServiceAccount", ns, service_account)?;
        // The SDKs ask the web identity first, so the annotation counts where there is one (eks.md 3).
        let Some(role) = crate::object::annotation(account, "eks.amazonaws.com/role-arn") else {
            let role = self.cloud.associated(ns, service_account)?;
            let agent = format!("addon/{}/eks-pod-identity-agent", self.cloud.green);
            let agent = self.cloud.things.contains_key(&agent)
                || self
                    .cloud
                    .inventory
                    .clusters
                    .iter()
                    .any(|c| c.addons.iter().any(|a| a == "eks-pod-identity-agent"));
            let fit = agent
                && (self.cloud.foreign(role) || self.cloud.trusts(role, "pods.eks.amazonaws.com"));
            return (!fit).then(|| {
                format!("service account {ns}/{service_account} on green has {role} by Pod Identity and cannot assume it")
            });
        };
        (!self.cloud.trusts_green(role)).then(|| {
            format!("service account {ns}/{service_account} on green cannot assume {role}")
        })
    }

    fn status_of(&self, thing: &Thing) -> Status {
        let (up, what) = match &thing.resource {
            Resource::Cluster { .. } => (CLUSTER.0, "CREATING"),
            Resource::NodeGroup { .. } => (NODE_GROUP.0, "CREATING"),
            Resource::Addon { .. } => (ADDON.0, "CREATING"),
            _ => return Status::Ready,
        };
        if thing.deleted.is_some() {
            return Status::Deleting;
        }
        if !timed(self.now, thing.made, self.secs(up)) {
            let left = (thing.made + self.secs(up))
                .saturating_sub(self.now)
                .as_secs();
            return Status::Pending(format!("{what}, about {left} s left"));
        }
        if let Some(issue) = &thing.fate {
            return Status::Failed(format!("CREATE_FAILED: {} {}", issue.code, issue.message));
        }
        // DEGRADED is no end: it heals once a node can run it (eks.md 0.4, 1.5).
        if let Some(issue) = self.homeless(thing) {
            return Status::Pending(format!("DEGRADED: {} {}", issue.code, issue.message));
        }
        Status::Ready
    }

    /// Add-ons that run as Deployments need a node.
    fn homeless(&self, thing: &Thing) -> Option<HealthIssue> {
        let Resource::Addon { name, cluster, .. } = &thing.resource else {
            return None;
        };
        let needs = matches!(name.as_str(), "coredns" | "aws-ebs-csi-driver");
        let nobody = self.green.of_kind("", "Node").next().is_none();
        (needs && *cluster == self.cloud.green && nobody).then(|| HealthIssue {
            code: "InsufficientNumberOfReplicas".into(),
            message: "no node can run it".into(),
            resources: vec![],
        })
    }

    /// What is due in the cloud: nodes register, deleted things vanish.
    pub fn cloud_transitions(&mut self) {
        let now = self.now;
        let gone: Vec<String> = self
            .cloud
            .things
            .iter()
            .filter(|(_, t)| {
                let down = match &t.resource {
                    Resource::Cluster { .. } => CLUSTER.1,
                    Resource::NodeGroup { .. } => NODE_GROUP.1,
                    _ => ADDON.1,
                };
                t.deleted.is_some_and(|at| timed(now, at, self.secs(down)))
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in gone {
            let Some(thing) = self.cloud.things.remove(&id) else {
                continue;
            };
            match thing.resource {
                Resource::Cluster { name, .. } => self.cluster_gone(&name),
                Resource::NodeGroup { name, .. } => self.nodes_of_group_gone(&name),
                _ => {}
            }
        }
        let due: Vec<Resource> = self
            .cloud
            .things
            .values()
            .filter(|t| {
                t.deleted.is_none()
                    && t.fate.is_none()
                    && matches!(t.resource, Resource::NodeGroup { .. })
                    && timed(now, t.made, self.secs(NODES))
            })
            .map(|t| t.resource.clone())
            .collect();
        for group in due {
            self.register_nodes(&group);
        }
    }

    fn cluster_gone(&mut self, name: &str) {
        self.cloud.things.retain(|id, _| {
            !(id.starts_with(&format!("access-entry/{name}/"))
                || id.starts_with(&format!("addon/{name}/"))
                || id.starts_with(&format!("pod-identity/{name}/")))
        });
        let group = self.cloud.cluster_group(name);
        self.cloud
            .inventory
            .security_groups
            .retain(|g| g.id != group);
        if *name == self.cloud.green {
            self.lb_side_gone(Side::Green);
            let minor = self.green.version.minor;
            let (routes, names, seed) =
                (self.green.routes + 1, self.green.names + 1, self.green.seed);
            self.green = Store::new(
                Side::Green,
                seed,
                self.green.version.clone(),
                kinds::built_in(minor),
            );
            self.green.routes = routes;
            self.green.names = names;
            system_objects(&mut self.green);
        }
    }

    fn nodes_of_group_gone(&mut self, group: &str) {
        let nodes: Vec<Key> = self
            .green
            .of_kind("", "Node")
            .filter(|(_, n)| n["metadata"]["labels"]["eks.amazonaws.com/nodegroup"] == json!(group))
            .map(|(k, _)| k.clone())
            .collect();
        for node in nodes {
            self.remove_now(Side::Green, &node);
        }
    }

    fn register_nodes(&mut self, group: &Resource) {
        let Resource::NodeGroup {
            cluster,
            name,
            subnets,
            instance_types,
            desired,
            labels,
            taints,
            capacity_type,
            ..
        } = group
        else {
            return;
        };
        if *cluster != self.cloud.green {
            return;
        }
        let networked = self
            .cloud
            .things
            .contains_key(&format!("addon/{cluster}/vpc-cni"))
            || self
                .cloud
                .inventory
                .clusters
                .iter()
                .any(|c| c.name == *cluster && c.addons.iter().any(|a| a == "vpc-cni"));
        let stamp = self.stamp();
        for n in 0..*desired {
            let host = format!(
                "ip-10-1-{}-{}.{}.compute.internal",
                sum(name),
                10 + n,
                self.cloud.region
            );
            if self.green.get("", "Node", "", &host).is_some() {
                continue;
            }
            let subnet = &subnets[n as usize % subnets.len().max(1)];
            let zone = self
                .cloud
                .inventory
                .subnets
                .iter()
                .find(|s| s.id == *subnet)
                .map_or_else(|| format!("{}a", self.cloud.region), |s| s.zone.clone());
            let mut all = json!({
                "eks.amazonaws.com/nodegroup": name, "eks.amazonaws.com/capacityType": capacity_type,
                "kubernetes.io/hostname": host, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                "node.kubernetes.io/instance-type": instance_types.first().cloned().unwrap_or_default(),
                "topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": self.cloud.region,
            });
            for (k, v) in labels {
                all[k] = json!(v);
            }
            let taints: Vec<Value> = taints
                .iter()
                .map(|t| json!({"key": t.key, "value": t.value, "effect": t.effect}))
                .collect();
            let mut spec =
                json!({"providerID": format!("aws:///{zone}/i-{}", &sha256_hex(&host)[..17])});
            if !taints.is_empty() {
                spec["taints"] = json!(taints);
            }
            // Without the CNI add-on a node never becomes ready.
            let ready = if networked { "True" } else { "False" };
            let node = json!({"apiVersion":"v1","kind":"Node","metadata":{"name":host,"labels":all},"spec":spec,
                "status":{"conditions":[{"type":"Ready","status":ready}],"allocatable":{"cpu":"2","memory":"7Gi","pods":"29"}}});
            let (key, _) = self.green.insert(node, &stamp);
            self.on_written(Side::Green, &key, true);
        }
    }

    fn find_resource(&self, resource: &Resource) -> Option<Found> {
        if let Some(found) = self.find_in_inventory(resource) {
            return Some(found);
        }
        let thing = self.cloud.things.get(&resource.id())?;
        Some(self.existing(thing).found(resource))
    }

    /// A thing that was made here, in the words of an inventory.
    fn existing(&self, thing: &Thing) -> Existing {
        let mut attributes = BTreeMap::new();
        match &thing.resource {
            Resource::Cluster { name, .. }
                if thing.deleted.is_none() && timed(self.now, thing.made, self.secs(CLUSTER.0)) =>
            {
                attributes.insert("endpoint".into(), format!("https://{}.eks.invalid", name));
                attributes.insert("caData".into(), self.green.identity.ca_sha256.clone());
                attributes.insert("issuer".into(), self.cloud.issuer(name));
                attributes.insert("securityGroup".into(), self.cloud.cluster_group(name));
            }
            Resource::Role { name, .. } => {
                attributes.insert("arn".into(), self.cloud.role_arn(name));
            }
            _ => {}
        }
        let status = self.status_of(thing);
        let issues = match &status {
            Status::Failed(_) => thing.fate.iter().cloned().collect(),
            Status::Pending(what) if what.starts_with("DEGRADED") => {
                self.homeless(thing).into_iter().collect()
            }
            _ => vec![],
        };
        let mut existing = thing.existing(status);
        existing.attributes = attributes;
        existing.now = Now {
            created: Some(self.stamp_at(thing.made)),
            issues,
            doing: None,
        };
        existing
    }
}

fn sum(name: &str) -> u32 {
    name.bytes().map(u32::from).sum::<u32>() % 250
}

#[async_trait]
impl Cloud for Twin {
    async fn identity(&self) -> Result<CloudIdentity> {
        self.call("cloud identity".into(), false, |s| {
            Ok(s.cloud.inventory.identity.clone())
        })
        .await
    }
    async fn assumable(&self, role: &str) -> Result<Option<String>> {
        self.call(format!("cloud assume {role}"), false, |s| {
            let inventory = &s.cloud.inventory;
            // A role of another account cannot be judged from here.
            Ok(inventory
                .roles
                .iter()
                .find(|r| r.arn == role)
                .and_then(|r| trusts(&r.trust, &inventory.identity.arn).err()))
        })
        .await
    }
    async fn find(&self, resource: &Resource) -> Result<Option<Found>> {
        self.call(format!("cloud find {}", resource.id()), false, |s| {
            Ok(s.find_resource(resource))
        })
        .await
    }
    async fn create(&self, resource: &Resource, run: &str) -> Result<()> {
        self.call(format!("cloud create {}", resource.id()), true, |s| {
            s.create_resource(resource, run)
        })
        .await
    }
    async fn attached(&self, resource: &Resource, run: &str) -> Result<Vec<Attached>> {
        self.call(format!("cloud attached {}", resource.id()), false, |s| {
            Ok(s.attached_to(resource, run))
        })
        .await
    }
    async fn delete(&self, resource: &Resource) -> Result<()> {
        self.call(format!("cloud delete {}", resource.id()), true, |s| {
            s.delete_resource(resource)
        })
        .await
    }
    async fn inventory(&self, _kops_cluster: &str) -> Result<Inventory> {
        self.call("cloud inventory".into(), false, |s| {
            let mut all = s.cloud.inventory.clone();
            for thing in s.cloud.things.values() {
                match &thing.resource {
                    Resource::Role {
                        name,
                        trust,
                        managed_policies,
                        inline_policies,
                        boundary,
                        ..
                    } => all.roles.push(crate::world::cloud::Role {
                        name: name.clone(),
                        arn: s.cloud.role_arn(name),
                        trust: trust.clone(),
                        managed_policies: managed_policies.clone(),
                        inline_policies: inline_policies.clone(),
                        boundary: boundary.clone(),
                        tags: thing
                            .run
                            .iter()
                            .map(|r| (RUN_TAG.to_owned(), r.clone()))
                            .collect(),
                    }),
                    Resource::OidcProvider { issuer, .. } => {
                        all.oidc_providers
                            .push(issuer.trim_start_matches("https://").to_owned());
                    }
                    Resource::Cluster { name, version, .. } => {
                        let under = |kind: &str| -> Vec<String> {
                            let prefix = format!("{kind}/{name}/");
                            s.cloud
                                .things
                                .keys()
                                .filter_map(|k| k.strip_prefix(&prefix))
                                .map(String::from)
                                .collect()
                        };
                        // A managed node group makes an entry for its role by itself (eks.md 1.4).
                        let node_roles =
                            s.cloud.things.values().filter_map(|t| match &t.resource {
                                Resource::NodeGroup {
                                    cluster, role_arn, ..
                                } if cluster == name => Some(role_arn.clone()),
                                _ => None,
                            });
                        let mut access_entries = under("access-entry");
                        access_entries.extend(node_roles);
                        access_entries.sort();
                        access_entries.dedup();
                        all.clusters.push(EksCluster {
                            name: name.clone(),
                            version: version.clone(),
                            node_groups: under("node-group"),
                            addons: under("addon"),
                            access_entries,
                            parts: Some(s.parts_of(name)),
                            tags: thing
                                .run
                                .iter()
                                .map(|r| (RUN_TAG.to_owned(), r.clone()))
                                .collect(),
                        });
                    }
                    Resource::LaunchTemplate { .. } => {
                        let mut t = thing.existing(Status::Ready);
                        if let Resource::LaunchTemplate {
                            user_data: Some(text),
                            ..
                        } = &mut t.resource
                        {
                            *text = compare::hashed(text);
                        }
                        all.launch_templates.get_or_insert_default().push(t);
                    }
                    Resource::LogGroup { .. } => {
                        let group = thing.existing(Status::Ready);
                        all.log_groups.get_or_insert_default().push(group);
                    }
                    Resource::StateBucket { .. } => {
                        all.state_bucket = Some(thing.existing(Status::Ready));
                    }
                    _ => {}
                }
            }
            // What was made inside a cluster that stood before.
            for c in &mut all.clusters {
                if s.cloud.things.contains_key(&format!("cluster/{}", c.name)) {
                    continue;
                }
                let made = s.parts_of(&c.name);
                for part in &made {
                    match &part.resource {
                        Resource::NodeGroup { name, .. } => c.node_groups.push(name.clone()),
                        Resource::Addon { name, .. } => c.addons.push(name.clone()),
                        Resource::AccessEntry { principal, .. } => {
                            c.access_entries.push(principal.clone());
                        }
                        _ => {}
                    }
                }
                for list in [&mut c.node_groups, &mut c.addons, &mut c.access_entries] {
                    list.sort();
                }
                if let Some(parts) = &mut c.parts {
                    parts.extend(made);
                    parts.sort_by_key(|p| p.resource.id());
                }
            }
            for list in all
                .launch_templates
                .iter_mut()
                .chain(all.log_groups.iter_mut())
            {
                list.sort_by_key(|t| t.resource.id());
            }
            all.roles.sort_by(|a, b| a.name.cmp(&b.name));
            all.oidc_providers.sort();
            all.clusters.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(all)
        })
        .await
    }
}

impl State {
    /// A cluster that was made here, and what is in it.
    fn parts_of(&self, cluster: &str) -> Vec<Existing> {
        let own = format!("cluster/{cluster}");
        let inside = ["node-group", "addon", "access-entry", "pod-identity"]
            .map(|k| format!("{k}/{cluster}/"));
        self.cloud
            .things
            .iter()
            .filter(|(id, _)| **id == own || inside.iter().any(|p| id.starts_with(p)))
            .map(|(_, t)| self.existing(t))
            .collect()
    }

    fn cloud_later(&mut self, seconds: &[u64]) {
        for s in seconds {
            let after = self.secs(*s);
            self.at(after, Ev::Cloud);
        }
    }
}
