//! The types of `migration.yaml` (`crossfade.dev/v1alpha1`). Never `flatten` or `untagged`: both lose line and column.

use super::connections::Connections;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the spec that this crossfade reads.
pub const API_VERSION: &str = "crossfade.dev/v1alpha1";

/// A migration from one kops cluster to one EKS cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Spec {
    /// `crossfade.dev/v1alpha1`.
    pub api_version: String,
    /// `Migration`.
    pub kind: String,
    /// Name of the migration; also part of the names of what it creates. Lower case, digits, `-`.
    pub name: String,
    /// The cluster that production leaves.
    pub blue: Blue,
    /// The cluster that production goes to.
    pub green: Green,
    /// The AWS account.
    #[serde(default)]
    pub aws: Aws,
    /// Who makes green's AWS resources.
    #[serde(default, skip_serializing_if = "Provision::is_default")]
    pub provision: Provision,
    /// DNS cutover.
    #[serde(default)]
    pub dns: Dns,
    /// What is special about workloads.
    #[serde(default)]
    pub workloads: Workloads,
    /// Data sets that move with the workloads.
    #[serde(default)]
    pub data: Vec<DataSet>,
    /// How hosts are probed.
    #[serde(default)]
    pub probes: Probes,
    /// Limits that the plan must respect.
    #[serde(default)]
    pub limits: Limits,
    /// How the API servers are reached, where not directly.
    #[serde(default, skip_serializing_if = "Connections::is_default")]
    pub connections: Connections,
    /// Findings that somebody has read and accepts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waivers: Vec<Waiver>,
    /// The estimate of costs.
    #[serde(default, skip_serializing_if = "CostWish::is_default")]
    pub cost: CostWish,
}

/// A finding that somebody accepts. It stays in the plan, marked, and no longer stands in the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Waiver {
    /// Id of the check, as in `NET-06`.
    pub check: String,
    /// Object as the finding spells it; every object of that check when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Why this is accepted: shown in the plan.
    pub reason: String,
    /// Last day on which it counts, `2026-12-31`; for ever when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// Severity instead of a waiver: the findings keep standing, but as this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<WaivedSeverity>,
}

/// Severity that a waiver gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WaivedSeverity {
    /// Stands in the way.
    Blocker,
    /// To be read.
    Warning,
    /// Good to know.
    Info,
}

/// What the estimate of costs takes instead of its own numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CostWish {
    /// Prices in US dollars by the key of the price file, as in `instance/m5.large` (an hour) or `eks/cluster` (an hour).
    pub prices: BTreeMap<String, f64>,
    /// Weeks during which both clusters run, 0 to 104.
    pub both_weeks: Option<u32>,
}

impl CostWish {
    fn is_default(&self) -> bool {
        *self == CostWish::default()
    }
}

/// The kops cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Blue {
    /// Name of the kops cluster, as in `kops get clusters`.
    pub cluster: String,
    /// Kubeconfig file; relative to this file. Never taken from the environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<String>,
    /// Context in that file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// State store: `s3://bucket/prefix` or a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_store: Option<String>,
}

/// The EKS cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Green {
    /// Name of the EKS cluster: 1 to 100 characters, letters, digits, `-`, `_`. Never blue's name.
    pub name: String,
    /// Kubernetes version, `1.36`.
    #[serde(default = "default_version")]
    pub version: String,
    /// Subnet ids; blue's private subnets when empty.
    #[serde(default)]
    pub subnets: Vec<String>,
    /// Service CIDR inside 10/8, 172.16/12 or 192.168/16, `/12` to `/24`, not overlapping the VPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_cidr: Option<String>,
    /// Whether the API endpoint is reachable from outside the VPC.
    #[serde(default = "yes")]
    pub public_endpoint: bool,
    /// Who gets in besides the roles that crossfade makes: IAM principals and what they may do.
    #[serde(default)]
    pub access: Vec<Access>,
    /// Address ranges that may reach the public endpoint; everybody when empty. At most 40.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoint_cidrs: Vec<String>,
    /// What node groups are to be instead of what the planner makes of the instance groups, by instance group.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_groups: BTreeMap<String, NodeGroupWish>,
    /// Roles for service accounts (`namespace/name`) that the planner cannot find out: what their pods use today.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<String, RoleWish>,
    /// Addresses of nodes and pods.
    #[serde(default, skip_serializing_if = "NetworkWish::is_default")]
    pub network: NetworkWish,
    /// Things that exist already and that crossfade may use as they are, by resource id (`cluster/shop-green`, `role/...`; `addon/shop-green/*` for all that begin so); it never changes and never deletes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adopt: Vec<String>,
    /// Terraform state (`terraform show -json`, or a state file) relative to this file: what is in it is left to Terraform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terraform_state: Option<String>,
    /// Logs, keys and protection of the control plane.
    #[serde(default, skip_serializing_if = "ControlPlane::is_default")]
    pub control_plane: ControlPlane,
    /// How pods come to their roles.
    #[serde(default, skip_serializing_if = "IdentityWish::is_default")]
    pub identity: IdentityWish,
    /// What add-ons are to be instead of what the planner makes of them, by EKS's name (`coredns`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub addons: BTreeMap<String, AddonWish>,
    /// What holds for all node groups.
    #[serde(default, skip_serializing_if = "NodesWish::is_default")]
    pub nodes: NodesWish,
}

/// Logs, keys and protection of the control plane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ControlPlane {
    /// Logs that go to CloudWatch: any of `api`, `audit`, `authenticator`, `controllerManager`, `scheduler`. None when empty, as EKS has it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<String>,
    /// Days for which CloudWatch keeps them, one of its steps from 1 to 3653; for ever when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_days: Option<u32>,
    /// ARN of the KMS key that wraps Secrets; AWS's own key when absent. It can never be taken off a cluster again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secrets_key: Option<String>,
    /// EKS refuses to delete the cluster while this is on. A rollback of crossfade switches it off first.
    pub deletion_protection: bool,
    /// What happens when standard support of green's version ends.
    pub support: Support,
    /// Security groups of its network interfaces besides the one that EKS makes: 4 at most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<String>,
}

impl Default for ControlPlane {
    fn default() -> Self {
        ControlPlane {
            logs: vec![],
            log_days: None,
            secrets_key: None,
            deletion_protection: true,
            support: Support::Standard,
            security_groups: vec![],
        }
    }
}

impl ControlPlane {
    fn is_default(&self) -> bool {
        *self == ControlPlane::default()
    }
}

/// What happens when standard support of a version ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Support {
    /// EKS upgrades the cluster by force.
    #[default]
    Standard,
    /// The cluster stays as it is, at a higher price an hour, for 12 months more.
    Extended,
}

impl Support {
    /// As EKS spells it.
    pub fn word(self) -> &'static str {
        match self {
            Support::Standard => "STANDARD",
            Support::Extended => "EXTENDED",
        }
    }
}

/// How pods come to their roles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct IdentityWish {
    /// Workloads that move. Old images hold SDKs that do not know Pod Identity (eks.md 3).
    pub workloads: Identity,
    /// EKS add-ons and controllers of green's own.
    pub addons: Identity,
    /// Single service accounts (`namespace/name`) otherwise.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub accounts: BTreeMap<String, Identity>,
}

impl IdentityWish {
    fn is_default(&self) -> bool {
        *self == IdentityWish::default()
    }

    /// How a service account comes to its role. A pattern of accounts can only have IRSA: an association names one.
    pub fn of(&self, account: &str, addon: bool) -> Identity {
        if account.contains('*') {
            return Identity::Irsa;
        }
        let default = if addon { self.addons } else { self.workloads };
        self.accounts.get(account).copied().unwrap_or(default)
    }
}

/// A way from a service account to an IAM role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Identity {
    /// The token of the account, trusted by its issuer and named by an annotation.
    #[default]
    Irsa,
    /// EKS Pod Identity: an association and the agent on the node.
    PodIdentity,
}

/// What an add-on is to be instead of what the planner makes of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AddonWish {
    /// Version, as in `v1.20.1-eksbuild.3`; EKS's default for green's version when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Settings over those of the planner, field by field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<serde_json::Value>,
    /// What EKS does with objects of the add-on that are there already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflicts: Option<Conflicts>,
}

/// What EKS does with objects of an add-on that are there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Conflicts {
    /// The add-on fails.
    None,
    /// They become the add-on's.
    Overwrite,
    /// Fields that somebody set stay.
    Preserve,
}

impl Conflicts {
    /// As EKS spells it.
    pub fn word(self) -> &'static str {
        match self {
            Conflicts::None => "NONE",
            Conflicts::Overwrite => "OVERWRITE",
            Conflicts::Preserve => "PRESERVE",
        }
    }
}

/// What holds for all node groups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NodesWish {
    /// KMS key (ARN, id or alias) of volumes that have none on blue; they are encrypted then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_key: Option<String>,
    /// EKS replaces or reboots nodes that it finds broken.
    pub repair: bool,
}

impl NodesWish {
    fn is_default(&self) -> bool {
        *self == NodesWish::default()
    }
}

/// What a node group is to be instead of what the planner makes of its instance group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NodeGroupWish {
    /// Instance types, 1 to 20.
    pub instance_types: Vec<String>,
    /// AMI type, as in `AL2023_x86_64_STANDARD` or `BOTTLEROCKET_ARM_64`.
    pub ami_type: Option<String>,
    /// Smallest size.
    pub min: Option<u32>,
    /// Largest size.
    pub max: Option<u32>,
    /// One node group in each zone (`true`), or one over all (`false`); by need when absent.
    pub split_by_zone: Option<bool>,
    /// Take blue's user data, hooks, packages, files and kernel settings into the launch template where AL2023 can run them (`true`), or leave
    /// them (`false`). A group that has any needs this word.
    pub host_changes: Option<bool>,
    /// Labels besides those of blue.
    pub labels: BTreeMap<String, String>,
    /// No node group for this instance group.
    pub skip: bool,
}

/// What the pods of a service account may do in AWS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RoleWish {
    /// A role that exists: it gets a trust statement for green.
    pub role: Option<String>,
    /// Statements of blue's node role that these pods use, by `policy name/Sid or index`, as the finding IAM-04 lists them.
    pub from_node_role: Vec<String>,
    /// ARNs of managed policies of blue's node role that these pods use.
    pub policies: Vec<String>,
}

/// Addresses of nodes and pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NetworkWish {
    /// /28 prefixes instead of single addresses on network interfaces.
    pub prefix_delegation: Option<bool>,
    /// Free addresses kept ready on each node.
    pub warm_ip_target: Option<u32>,
    /// Environment of the vpc-cni add-on besides that of blue.
    pub cni_env: BTreeMap<String, String>,
}

impl NetworkWish {
    fn is_default(&self) -> bool {
        *self == NetworkWish::default()
    }
}

/// Access of one IAM principal to green.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Access {
    /// ARN of an IAM role or user (never of an STS session).
    pub principal: String,
    /// Access policy, as in `AmazonEKSClusterAdminPolicy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Kubernetes groups; must not begin with `system:`.
    #[serde(default)]
    pub groups: Vec<String>,
}

/// The AWS account: pinned, and how to reach it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Aws {
    /// Account id, 12 digits, quoted. When given, any other account stops the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Region; that of blue's subnets when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Profile of the shared AWS config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Bucket for crossfade's own records. It must be versioned, encrypted and closed to the public.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_bucket: Option<StateBucket>,
}

/// Bucket for crossfade's own records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StateBucket {
    /// Name.
    pub name: String,
    /// Make it when it is not there. A rollback deletes one that was made so while it is empty.
    #[serde(default)]
    pub create: bool,
}

/// Who makes green's AWS resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Provision {
    /// crossfade itself (`aws`), or `terraform`: then what is wholly green's own is one step, whose Terraform plan is reviewed and applied as it is.
    pub via: Via,
    /// Program instead of `terraform`: `tofu`, or a path (relative to this file when it holds a `/`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binary: Option<String>,
    /// Where Terraform keeps its state; a file in the plan folder when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<Backend>,
}

impl Provision {
    fn is_default(&self) -> bool {
        *self == Provision::default()
    }
}

/// Who makes green's AWS resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// crossfade, one step a resource.
    #[default]
    Aws,
    /// Terraform or OpenTofu.
    Terraform,
}

/// A backend of Terraform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Backend {
    /// Type, as in `s3`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its settings, all strings: `bucket`, `key`, `region`. Never credentials. A place of its own for this migration: what else is in the
    /// state would be taken for something to delete, and refused.
    #[serde(default)]
    pub config: BTreeMap<String, String>,
}

/// DNS cutover.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Dns {
    /// Zones by name (`shop.test`); all zones that blue's ExternalDNS owns records in when empty.
    pub zones: Vec<String>,
    /// TTL in seconds while the cutover lasts, 1 to 3600.
    pub low_ttl: u32,
    /// Host that is switched first, alone.
    pub canary: Option<String>,
    /// Hosts per wave after the canary and the declared waves; all at once when 0.
    pub wave_size: u32,
    /// Waves by host or namespace, in order, after the canary; what none of them names comes last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waves: Vec<DnsWave>,
    /// Seconds for which the hosts of each wave must answer before the next wave begins, 0 to 86400; no watch when 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub wave_gate_seconds: u32,
    /// Seconds after a switch during which some clients still go to the side that was left; writes stay closed that long. Never less
    /// than `lowTtl`; 60 is also the TTL of load balancer aliases and the floor of many resolvers. 1 to 86400.
    pub drain_seconds: u32,
    /// ExternalDNS of green.
    pub external_dns: ExternalDns,
}

impl Default for Dns {
    fn default() -> Self {
        Dns {
            zones: vec![],
            low_ttl: 60,
            canary: None,
            wave_size: 0,
            waves: vec![],
            wave_gate_seconds: 0,
            drain_seconds: 60,
            external_dns: ExternalDns::default(),
        }
    }
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

fn is_false(on: &bool) -> bool {
    !on
}

/// Names that are switched together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DnsWave {
    /// Hosts; `*.shop.test` also stands for all names below `shop.test`.
    pub hosts: Vec<String>,
    /// Namespaces of the objects that want the names.
    pub namespaces: Vec<String>,
}

/// ExternalDNS of green.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ExternalDns {
    /// Namespace; that of blue's ExternalDNS when absent.
    pub namespace: Option<String>,
    /// Owner id; `<green name>` when absent. Never blue's.
    pub owner_id: Option<String>,
    /// Image.
    pub image: String,
    /// Seconds between two loops, 1 to 3600.
    pub interval: u32,
}

impl Default for ExternalDns {
    fn default() -> Self {
        ExternalDns {
            namespace: None,
            owner_id: None,
            image: "registry.k8s.io/external-dns/external-dns:v0.21.0".into(),
            interval: 60,
        }
    }
}

/// What is special about workloads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Workloads {
    /// Workloads of which never two may run, across both clusters: `deployment/ns/name`. Stopped on blue at freeze, started on green at open.
    pub singletons: Vec<String>,
    /// Objects that must not be copied, as `kind/ns/name` or `namespace/name`.
    pub skip: Vec<String>,
    /// Text that is replaced in ConfigMaps and in plain env values of workloads, longest first: blue's addresses to green's.
    pub replace: BTreeMap<String, String>,
}

/// A data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DataSet {
    /// Name.
    pub name: String,
    /// How it moves.
    pub mode: DataMode,
    /// Blue's database (mode `postgres`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blue: Option<Database>,
    /// Green's database (mode `postgres`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub green: Option<Database>,
    /// Tables as `schema.table`; all of schema `public` when empty.
    #[serde(default)]
    pub tables: Vec<String>,
    /// A write through the company's front door that must fail while the fence is up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_probe: Option<WriteProbe>,
}

/// How a data set moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DataMode {
    /// Both clusters use the same store; nothing is copied.
    Shared,
    /// PostgreSQL logical replication, forwards and then backwards.
    Postgres,
}

/// A PostgreSQL database as crossfade reaches it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Database {
    /// Host.
    pub host: String,
    /// Port.
    #[serde(default = "pg_port")]
    pub port: u16,
    /// Database name.
    pub database: String,
    /// Role that may create publications and subscriptions.
    pub admin: String,
    /// Environment variable that holds its password; none for trust or peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin_password_env: Option<String>,
    /// Role of the application, the one that is fenced.
    pub role: String,
    /// Host and port by which the *other* database server reaches this one, when it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_address: Option<String>,
}

/// A write through the front door.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WriteProbe {
    /// Host.
    pub host: String,
    /// Path.
    pub path: String,
    /// Method.
    #[serde(default = "post")]
    pub method: String,
    /// Body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// How hosts are probed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Probes {
    /// Path that is asked on every host.
    pub path: String,
    /// DNS server (`address:port`) instead of the system's resolver.
    pub resolver: Option<String>,
    /// HTTP proxy (`http://host:port`) for probes.
    pub proxy: Option<String>,
    /// Hosts that are not probed.
    pub skip: Vec<String>,
    /// Response headers that must be the same on both sides before a name moves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub same_headers: Vec<String>,
    /// Whether the body must be the same on both sides before a name moves.
    #[serde(skip_serializing_if = "is_false")]
    pub same_body: bool,
}

impl Default for Probes {
    fn default() -> Self {
        Probes {
            path: "/".into(),
            resolver: None,
            proxy: None,
            skip: vec![],
            same_headers: vec![],
            same_body: false,
        }
    }
}

/// Limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    /// Longest time without writes, seconds.
    pub write_closed_seconds: u32,
    /// How long the soak gate watches, seconds.
    pub soak_seconds: u32,
    /// Most requests to green at once, 1 to 64. Normally left out: how many are best is found while writing, this only bounds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_concurrency: Option<u32>,
    /// Pods that green starts at once when workloads wake: the next are started when these are ready. A single workload with more pods
    /// starts alone. 1 to 10000.
    pub wake_pods: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            write_closed_seconds: 300,
            soak_seconds: 60,
            write_concurrency: None,
            wake_pods: 100,
        }
    }
}

pub(crate) fn default_version() -> String {
    "1.35".into()
}
fn yes() -> bool {
    true
}
fn pg_port() -> u16 {
    5432
}
fn post() -> String {
    "POST".into()
}
