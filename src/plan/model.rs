//! The plan: public, documented, canonical JSON with a digest. Everything that a run needs is in it; a run decides nothing.

use crate::spec::model::Spec;
use crate::world::kube::ClusterIdentity;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub struct Plan {
    /// `crossfade.dev/v1alpha1`.
    pub api_version: String,
    /// `Plan`.
    pub kind: String,
    /// sha256 over the canonical JSON of everything else in this document.
    pub digest: String,
    /// The spec it was made from (defaults filled in). Holds no secrets by construction.
    pub spec: Spec,
    /// What it was made from: pins and hashes, compared with the world before the first write (hashes of objects stand in their verdicts).
    pub basis: Basis,
    /// What green will be.
    pub target: Target,
    /// Verdicts of checks.
    pub findings: Vec<Finding>,
    /// One per object of blue, sorted by object.
    pub verdicts: super::verdicts::Verdicts,
    /// Objects that only green has (ExternalDNS, storage class, ...), complete, in order of creation.
    pub generated: Vec<Value>,
    /// What becomes of each field of the kops documents.
    #[serde(default)]
    pub fields: Vec<super::fates::FieldFate>,
    /// Why blue is not upgraded in place.
    #[serde(default)]
    pub hazards: super::hazards::Hazards,
    /// Addresses: what green needs and what there is.
    #[serde(default)]
    pub network: super::fit::NetworkFit,
    /// Estimate of costs.
    #[serde(default)]
    pub cost: super::cost::Cost,
    /// Names to hand over.
    pub names: Vec<Name>,
    /// Steps, in a topological order.
    pub steps: Vec<StepSpec>,
    /// Time estimates.
    pub timeline: Timeline,
}

/// Pins and hashes of the world that the plan was made from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Basis {
    /// AWS account; `None` when the snapshot was made without AWS.
    pub account: Option<String>,
    /// Region.
    pub region: Option<String>,
    /// Blue's pins; `None` when offline.
    pub blue: Option<ClusterIdentity>,
    /// Zone ids by zone name.
    pub zones: BTreeMap<String, String>,
    /// Hash of each record set that the plan will touch.
    pub records: BTreeMap<String, String>,
    /// What was not read, as `what: why`.
    pub not_checked: Vec<String>,
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The migration cannot go on.
    Blocker,
    /// A person should know and decide.
    Warning,
    /// Good to know.
    Info,
    /// The check had no input: neither good nor bad.
    NotChecked,
}

/// A check's verdict.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Finding {
    /// Stable id, as in `DNS-01` or `KOPS-net-weave`.
    pub id: String,
    /// Severity.
    pub severity: Severity,
    /// Object, record, field, as spelled everywhere.
    pub object: String,
    /// What is the matter.
    pub message: String,
    /// What to do.
    pub remedy: String,
    /// Source of the rule, as in `checks.md DNS-01`.
    pub source: String,
    /// Why somebody accepts it (`waivers` of migration.yaml): then it stands in nobody's way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waived: Option<String>,
}

impl Finding {
    /// Whether it stands in the way of the migration: a blocker that nobody has accepted.
    pub fn blocks(&self) -> bool {
        self.severity == Severity::Blocker && self.waived.is_none()
    }
}

/// What becomes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Copied as it is (server-owned metadata dropped).
    Copied,
    /// Copied with changes, each by a rule.
    Changed,
    /// Copied but kept from acting until a later phase (singletons, cron jobs).
    Held,
    /// Not copied: green makes its own, or has no need of it.
    Skipped,
    /// Not copied: it cannot be, or must not be; a finding says why.
    Refused,
}

/// The verdict on one object of blue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Verdict {
    /// Object, `kind/namespace/name`.
    pub object: String,
    /// API version on blue in which it was read.
    pub api_version: String,
    /// What becomes of it.
    pub verdict: Fate,
    /// Rule ids, as in `replay.md 29`.
    pub rules: Vec<String>,
    /// The object as it is created on green (parked); `None` when skipped or refused. Secret values are `HASH_PREFIX` markers: the run streams the real ones.
    pub target: Option<Value>,
    /// Hash of the object as it was read, of what the plan copies, changes or holds (`rewrite::basis_hash`: no status, no metadata noise, no replica count).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<String>,
    /// uid on blue of what the plan copies, changes or holds: the run leaves it on the copy (replay.md 14).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// How it is parked and woken; `None` for what needs no parking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub park: Option<Park>,
}

/// How a workload is parked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Park {
    /// Field that parks: `/spec/replicas` or `/spec/suspend`.
    pub field: String,
    /// When it wakes: `unpark` or `open`.
    pub wakes: String,
    /// Value on blue when the plan was made (the run reads it again).
    pub value: Value,
}

/// What green will be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Target {
    /// The EKS cluster.
    pub cluster: TargetCluster,
    /// Node groups.
    pub node_groups: Vec<TargetNodeGroup>,
    /// Roles.
    pub roles: Vec<TargetRole>,
    /// Add-ons.
    pub addons: Vec<TargetAddon>,
    /// What is done with each resource that green is made of, in the order of the steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<TargetResource>,
    /// Each part of blue's platform, and what green has in its place.
    #[serde(default)]
    pub components: Vec<TargetComponent>,
    /// Who gets in, besides the caller.
    #[serde(default)]
    pub access: Vec<TargetAccess>,
}

/// What is done with a resource of green.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceState {
    /// It is made.
    Create,
    /// It is there, from a former run or as a part of something else: kept.
    ExistsEqual,
    /// Somebody made it, and `green.adopt` says to use it: never changed, never deleted.
    Adopt,
    /// It is there and cannot be used as it is.
    Differs,
    /// It is in the given Terraform state: left to Terraform.
    Terraform,
    /// Somebody made it, and nobody said that it may be used.
    Foreign,
}

/// A resource of green against what is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub struct TargetResource {
    /// Id, as in `node-group/shop-green/nodes`; `green.adopt` takes it.
    pub id: String,
    /// What is done.
    pub state: ResourceState,
    /// Why; of a resource left to Terraform its address.
    pub why: String,
}

/// The EKS cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct TargetCluster {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// Region.
    pub region: String,
    /// Subnets: ids, or `name (cidr)` from the kops spec when AWS was not read.
    pub subnets: Vec<String>,
}

/// A node group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct TargetNodeGroup {
    /// Name.
    pub name: String,
    /// Instance group it comes from.
    pub instance_group: String,
    /// Instance types.
    pub instance_types: Vec<String>,
    /// `ON_DEMAND` or `SPOT`.
    pub capacity_type: String,
    /// AMI type.
    pub ami_type: String,
    /// Smallest size.
    pub min: u32,
    /// Largest size.
    pub max: u32,
    /// Size at creation.
    pub desired: u32,
    /// Root volume, GiB.
    pub disk_gib: u32,
    /// Root volume type.
    pub disk_type: String,
    /// Subnets.
    pub subnets: Vec<String>,
    /// Zones of these subnets, as far as they are known.
    #[serde(default)]
    pub zones: Vec<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Taints.
    pub taints: Vec<crate::world::cloud::Taint>,
    /// What its nodes are started from; empty in a plan of before there were launch templates.
    #[serde(default)]
    pub launch_template: TargetLaunchTemplate,
    /// Pods on each node, 1 to 250, where the type's addresses are known or blue said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_pods: Option<u32>,
    /// Nodes that an update may take away at once: `1` to `100`, or a percentage (`10%`); EKS's default, 1, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<String>,
    /// Why it is as it is, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A launch template: the fields of `world::cloud::Resource::LaunchTemplate`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct TargetLaunchTemplate {
    /// Name, 3 to 128 characters.
    pub name: String,
    /// Root volume.
    pub root: crate::world::cloud::Disk,
    /// Further volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<crate::world::cloud::Disk>,
    /// Instance metadata: `required` or `optional`.
    pub http_tokens: String,
    /// How many hops an answer of the instance metadata lives, 1 to 64.
    pub hop_limit: u32,
    /// Security groups; empty: EKS adds the cluster's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<String>,
    /// User data as plain text, at most 16 KB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<String>,
    /// Tags of instances and volumes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Detailed monitoring.
    pub monitoring: bool,
    /// `dedicated` or `host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenancy: Option<String>,
    /// `standard` or `unlimited`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_credits: Option<String>,
    /// Public address; absent: as the subnet says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub associate_public_ip: Option<bool>,
}

/// A role.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct TargetRole {
    /// Name.
    pub name: String,
    /// `namespace/name` of the service account that assumes it; none for cluster and node roles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
    /// AWS service that assumes it, for cluster and node roles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Managed policy ARNs and names of inline policies.
    pub policies: Vec<String>,
    /// Inline policies.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inline_policies: BTreeMap<String, Value>,
    /// Permissions boundary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary: Option<String>,
    /// Path, when it is not `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Role of blue that its rights come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Where each right comes from: green never has one that blue does not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// `true` when the role exists on blue's side and only gets a trust statement.
    pub existing: bool,
    /// Its account comes to it by Pod Identity, not by IRSA.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pod_identity: bool,
}

/// The source of one right of a role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Grant {
    /// Policy of the role: a managed one's ARN, or an inline one's name.
    pub policy: String,
    /// Index of the statement in it, from 0; `*` for a whole managed policy.
    pub statement: String,
    /// Where it stands on blue: `role/NAME POLICY/SID-OR-INDEX`, `role/NAME ARN`, or a place in the kops spec.
    pub from: String,
}

/// A part of blue's platform.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct TargetComponent {
    /// Name.
    pub name: String,
    /// Where it was found: fields of the kops spec, workloads.
    pub found: Vec<String>,
    /// `add-on NAME`, `chart NAME, by you`, `part of EKS` or `nothing`.
    pub becomes: String,
    /// What a person must know, may be empty.
    pub note: String,
}

/// Somebody's way into green.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct TargetAccess {
    /// IAM principal.
    pub principal: String,
    /// Kubernetes groups.
    pub groups: Vec<String>,
    /// Access policy.
    pub policy: Option<String>,
    /// `migration.yaml`, or `blue`: the same people have the same power there.
    pub from: String,
}

/// An add-on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct TargetAddon {
    /// Name.
    pub name: String,
    /// What of blue it replaces, may be empty.
    pub replaces: String,
    /// Version; EKS's default for the cluster's version when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Value>,
    /// Role of its service account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// What EKS does with objects of it that are there: `NONE`, `OVERWRITE` (when absent) or `PRESERVE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflicts: Option<String>,
}

/// A DNS name that is handed over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Name {
    /// Host name without final dot.
    pub host: String,
    /// Zone id.
    pub zone_id: String,
    /// Record type, `A` or `CNAME`.
    pub rtype: String,
    /// Object of blue that wants it (and of green, after the replay): `ingress/ns/name` or `service/ns/name`.
    pub object: String,
    /// TTL before, `None` for an alias.
    pub ttl: Option<u32>,
    /// Whether the TTL comes from an annotation on `object` (then it is lowered there).
    pub ttl_annotation: bool,
    /// Wave: 0 is the canary.
    pub wave: u32,
    /// Registry TXT names that carry ownership now, with final dot.
    pub txt: Vec<String>,
    /// Set identifier of a routed record (weight, region, ...); a host with several has a row for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_identifier: Option<String>,
    /// Owner id on blue; absent in a plan of before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// A phase, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Checks and pins; writes nothing.
    Preflight,
    /// TTLs lowered.
    Ttl,
    /// EKS, IAM, node groups.
    Provision,
    /// Objects copied, parked.
    Replay,
    /// Green at live size.
    Unpark,
    /// Writers stopped, maintenance proven.
    Freeze,
    /// Final copy, comparison, reverse path.
    Data,
    /// Names handed over.
    Cutover,
    /// Writes open on green.
    Open,
    /// Watching.
    Soak,
}

impl Phase {
    /// All phases in order.
    pub const ALL: [Phase; 10] = [
        Phase::Preflight,
        Phase::Ttl,
        Phase::Provision,
        Phase::Replay,
        Phase::Unpark,
        Phase::Freeze,
        Phase::Data,
        Phase::Cutover,
        Phase::Open,
        Phase::Soak,
    ];
    /// Name as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Preflight => "preflight",
            Phase::Ttl => "ttl",
            Phase::Provision => "provision",
            Phase::Replay => "replay",
            Phase::Unpark => "unpark",
            Phase::Freeze => "freeze",
            Phase::Data => "data",
            Phase::Cutover => "cutover",
            Phase::Open => "open",
            Phase::Soak => "soak",
        }
    }
    /// By name.
    pub fn parse(name: &str) -> Option<Phase> {
        Phase::ALL.into_iter().find(|p| p.name() == name)
    }
}

/// What undo gives back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "reason")]
pub enum Promise {
    /// Everything as before.
    Exact,
    /// As before but for what is said.
    Compensating(String),
    /// Nothing to give back, or no way; why.
    None(String),
}

/// One step of the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct StepSpec {
    /// Stable id, as in `provision/node-group/nodes`.
    pub id: String,
    /// Phase.
    pub phase: Phase,
    /// Kind, as registered in `step`.
    pub kind: String,
    /// Ids of steps that must be done before.
    pub needs: Vec<String>,
    /// What undo gives back.
    pub promise: Promise,
    /// One line for people: what it does.
    pub summary: String,
    /// Parameters of the kind.
    pub params: Value,
    /// Expected duration, seconds, low and high.
    pub expect_s: [u32; 2],
}

/// Time estimates, seconds, as ranges.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Timeline {
    /// Step ids of the longest chain.
    pub critical_path: Vec<String>,
    /// Time without writes, low and high.
    pub write_closed_s: [u32; 2],
    /// Whole run, low and high.
    pub total_s: [u32; 2],
    /// Where the numbers come from.
    pub sources: Vec<String>,
}
