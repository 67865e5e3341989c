//! EKS, IAM, EC2 and STS, as far as crossfade needs them: things that exist or not, each found by a deterministic name.

pub mod assume;
pub mod compare;
pub mod left;

use super::Result;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Tag that every created resource carries where it can: the run that made it.
pub const RUN_TAG: &str = "crossfade.dev/run";

/// Who calls, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CloudIdentity {
    /// AWS account id, 12 digits.
    pub account: String,
    /// Region.
    pub region: String,
    /// ARN of the caller.
    pub arn: String,
}

/// A taint of a node group, in Kubernetes spelling (`NoSchedule`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value, may be empty.
    #[serde(default)]
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// An EBS volume of a launch template.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Disk {
    /// Device name, as in `/dev/xvda`.
    pub device: String,
    /// Size, GiB.
    pub gib: u32,
    /// Type, as in `gp3`.
    pub kind: String,
    /// Provisioned operations a second (`gp3`, `io1`, `io2`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<u32>,
    /// Provisioned throughput, MiB/s (`gp3`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<u32>,
    /// Encrypted.
    pub encrypted: bool,
    /// KMS key (ARN, id or alias); the account's default key when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kms_key: Option<String>,
    /// Goes when the instance goes.
    pub delete_on_termination: bool,
}

/// A resource that crossfade may create. String fields may hold `${cluster.issuer}`, `${cluster.security_group}` and
/// `${account}`, resolved by the step that creates it (issuer without the `https://`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Resource {
    /// IAM role with its trust policy and policies.
    Role {
        /// Role name, at most 64 characters.
        name: String,
        /// Trust policy document.
        trust: Value,
        /// ARNs of managed policies to attach.
        managed_policies: Vec<String>,
        /// Inline policies by name.
        inline_policies: BTreeMap<String, Value>,
        /// ARN of the permissions boundary that the role is made under.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boundary: Option<String>,
        /// Path, as in `/team/`; `/` when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    /// IAM OIDC provider of green's issuer.
    OidcProvider {
        /// Issuer URL with `https://`.
        issuer: String,
        /// Client ids (audiences).
        client_ids: Vec<String>,
    },
    /// EKS cluster.
    Cluster {
        /// Name, 1 to 100 characters.
        name: String,
        /// Kubernetes version, `1.36`.
        version: String,
        /// Cluster role ARN.
        role_arn: String,
        /// Subnet ids, at least two in two zones.
        subnets: Vec<String>,
        /// Service CIDR; EKS chooses when absent.
        service_cidr: Option<String>,
        /// Public endpoint on.
        public_endpoint: bool,
        /// Private endpoint on.
        private_endpoint: bool,
        /// CIDRs that the public endpoint answers; empty: EKS's default, all of them (0.0.0.0/0).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        endpoint_cidrs: Vec<String>,
        /// Logs of the control plane that go to CloudWatch: any of `api`, `audit`, `authenticator`, `controllerManager`, `scheduler`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        logging: Vec<String>,
        /// ARN of the customer's KMS key that wraps Secrets; AWS's own when absent. It can never be taken off again (eks.md 1.2).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kms_key: Option<String>,
        /// EKS refuses to delete it. The undo of the step that made it so switches that off first.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        deletion_protection: bool,
        /// What happens when standard support of the version ends: `STANDARD` (upgraded by force) or `EXTENDED` (paid by the hour).
        #[serde(default = "standard", skip_serializing_if = "is_standard")]
        support_type: String,
        /// Security groups of the control plane's network interfaces besides the one that EKS makes; at most 4 (eks.md 1.2).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        security_groups: Vec<String>,
    },
    /// EKS add-on.
    Addon {
        /// Cluster name.
        cluster: String,
        /// Add-on name, as in `vpc-cni`.
        name: String,
        /// Version, EKS's default for the cluster when absent.
        version: Option<String>,
        /// Role ARN for its service account.
        service_account_role: Option<String>,
        /// Settings (`configurationValues`), as the add-on's schema wants them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        configuration: Option<Value>,
        /// What EKS does with objects of the add-on that are there already: `NONE` (it fails), `OVERWRITE` or `PRESERVE`. Not told back.
        #[serde(default = "overwrite", skip_serializing_if = "is_overwrite")]
        conflicts: String,
    },
    /// A service account that has a role by EKS Pod Identity.
    PodIdentityAssociation {
        /// Cluster name.
        cluster: String,
        /// Namespace of the account.
        namespace: String,
        /// The account; it need not exist yet.
        service_account: String,
        /// ARN of the role; it trusts `pods.eks.amazonaws.com`.
        role_arn: String,
    },
    /// CloudWatch log group. EKS makes the one of a cluster itself, without retention, when nobody did before (eks.md 1.2).
    LogGroup {
        /// Name, as in `/aws/eks/shop-green/cluster`.
        name: String,
        /// Days after which entries go; never when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retention_days: Option<u32>,
    },
    /// S3 bucket for crossfade's own records: versioned, encrypted, closed to the public.
    StateBucket {
        /// Name.
        name: String,
        /// Make it when it is not there; otherwise its absence is an error.
        create: bool,
        /// Every version of an object is kept.
        #[serde(default = "yes", skip_serializing_if = "is_yes")]
        versioned: bool,
        /// Objects are encrypted by default.
        #[serde(default = "yes", skip_serializing_if = "is_yes")]
        encrypted: bool,
        /// All four blocks of public access are on.
        #[serde(default = "yes", skip_serializing_if = "is_yes")]
        closed: bool,
    },
    /// EKS access entry with an optional access policy.
    AccessEntry {
        /// Cluster name.
        cluster: String,
        /// IAM principal ARN.
        principal: String,
        /// Kubernetes groups.
        groups: Vec<String>,
        /// Access policy name, as in `AmazonEKSClusterAdminPolicy`.
        policy: Option<String>,
        /// Namespaces in which the policy holds; empty: the whole cluster.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        namespaces: Vec<String>,
    },
    /// EC2 launch template of a node group. Never with a subnet, an instance profile or a behaviour at shutdown: EKS refuses
    /// those (eks.md 1.6).
    LaunchTemplate {
        /// Name, 3 to 128 characters.
        name: String,
        /// Root volume.
        root: Disk,
        /// Further volumes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        volumes: Vec<Disk>,
        /// Instance metadata: `required` (version 2 only) or `optional`.
        http_tokens: String,
        /// How many hops an answer of the instance metadata lives, 1 to 64.
        hop_limit: u32,
        /// Security groups; empty: EKS adds the cluster's own. Otherwise that one must be named too, or no node joins.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        security_groups: Vec<String>,
        /// User data as plain MIME multipart text; the world encodes it. At most 16 KB.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user_data: Option<String>,
        /// Tags of the instances and volumes that come from it.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        tags: BTreeMap<String, String>,
        /// Detailed monitoring.
        monitoring: bool,
        /// `default`, `dedicated` or `host`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tenancy: Option<String>,
        /// `standard` or `unlimited`, for burstable types.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cpu_credits: Option<String>,
        /// Public address; absent: as the subnet says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        associate_public_ip: Option<bool>,
    },
    /// Managed node group.
    NodeGroup {
        /// Cluster name.
        cluster: String,
        /// Name, at most 63 characters.
        name: String,
        /// Node role ARN.
        role_arn: String,
        /// Subnet ids.
        subnets: Vec<String>,
        /// Instance types.
        instance_types: Vec<String>,
        /// AMI type, as in `AL2023_x86_64_STANDARD`.
        ami_type: String,
        /// `ON_DEMAND` or `SPOT`.
        capacity_type: String,
        /// Smallest size.
        min: u32,
        /// Largest size.
        max: u32,
        /// Size at creation.
        desired: u32,
        /// Root volume, GiB; not asked for when a launch template says it.
        disk_gib: u32,
        /// Node labels.
        labels: BTreeMap<String, String>,
        /// Node taints.
        taints: Vec<Taint>,
        /// Name of its launch template.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        launch_template: Option<String>,
        /// Nodes that may be away during an update: `1` or `10%`; absent: 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_unavailable: Option<String>,
        /// EKS replaces or reboots nodes that it finds broken.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        repair: bool,
    },
    /// One ingress rule of a security group that blue or somebody else owns: added beside theirs, never edited.
    SecurityGroupRule {
        /// Group that gets the rule.
        group: String,
        /// `tcp`, `udp` or `-1`.
        protocol: String,
        /// First port; -1 for all.
        from_port: i32,
        /// Last port; -1 for all.
        to_port: i32,
        /// Security group that may come in.
        source_group: String,
        /// Description, names the migration.
        description: String,
    },
    /// One tag on a subnet or another EC2 resource.
    Tag {
        /// Resource id.
        resource: String,
        /// Key.
        key: String,
        /// Value.
        value: String,
    },
    /// One statement added to the trust policy of an existing role.
    TrustStatement {
        /// Role name.
        role: String,
        /// Sid of the statement; ours begin with `Crossfade`.
        sid: String,
        /// The statement.
        statement: Value,
    },
}

fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands a reference
fn is_yes(on: &bool) -> bool {
    *on
}

fn standard() -> String {
    "STANDARD".into()
}

fn is_standard(text: &str) -> bool {
    text == "STANDARD"
}

fn overwrite() -> String {
    "OVERWRITE".into()
}

fn is_overwrite(text: &str) -> bool {
    text == "OVERWRITE"
}

impl Resource {
    /// Green as something to look for: its name alone counts.
    pub fn named_cluster(name: &str) -> Resource {
        Resource::Cluster {
            name: name.into(),
            version: String::new(),
            role_arn: String::new(),
            subnets: vec![],
            service_cidr: None,
            public_endpoint: true,
            private_endpoint: true,
            endpoint_cidrs: vec![],
            logging: vec![],
            kms_key: None,
            deletion_protection: false,
            support_type: standard(),
            security_groups: vec![],
        }
    }

    /// A bucket as crossfade wants one.
    pub fn state_bucket(name: &str, create: bool) -> Resource {
        Resource::StateBucket {
            name: name.into(),
            create,
            versioned: true,
            encrypted: true,
            closed: true,
        }
    }

    /// A short stable name: `role/shop-green-node`, `node-group/shop-green/nodes`.
    pub fn id(&self) -> String {
        match self {
            Resource::Role { name, .. } => format!("role/{name}"),
            Resource::OidcProvider { issuer, .. } => {
                format!("oidc-provider/{}", issuer.trim_start_matches("https://"))
            }
            Resource::Cluster { name, .. } => format!("cluster/{name}"),
            Resource::Addon { cluster, name, .. } => format!("addon/{cluster}/{name}"),
            Resource::AccessEntry {
                cluster, principal, ..
            } => format!("access-entry/{cluster}/{principal}"),
            Resource::NodeGroup { cluster, name, .. } => format!("node-group/{cluster}/{name}"),
            Resource::LaunchTemplate { name, .. } => format!("launch-template/{name}"),
            Resource::SecurityGroupRule {
                group,
                protocol,
                from_port,
                to_port,
                source_group,
                ..
            } => {
                format!(
                    "security-group-rule/{group}/{protocol}/{from_port}-{to_port}/{source_group}"
                )
            }
            Resource::Tag { resource, key, .. } => format!("tag/{resource}/{key}"),
            Resource::TrustStatement { role, sid, .. } => format!("trust-statement/{role}/{sid}"),
            Resource::PodIdentityAssociation {
                cluster,
                namespace,
                service_account,
                ..
            } => format!("pod-identity/{cluster}/{namespace}/{service_account}"),
            Resource::LogGroup { name, .. } => format!("log-group/{name}"),
            Resource::StateBucket { name, .. } => format!("state-bucket/{name}"),
        }
    }
}

/// The role behind an STS session, and every other principal as it is: an access entry takes a role or user (eks.md 1.4).
pub fn principal_of(arn: &str) -> String {
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    match parts.as_slice() {
        [_, partition, "sts", _, account, resource] => match resource
            .strip_prefix("assumed-role/")
            .and_then(|r| r.split('/').next())
        {
            Some(role) => format!("arn:{partition}:iam::{account}:role/{role}"),
            None => arn.into(),
        },
        _ => arn.into(),
    }
}

/// How far a found resource is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "state", content = "why")]
pub enum Status {
    /// Usable.
    Ready,
    /// On its way; what the service says it is doing.
    Pending(String),
    /// Will not become ready; why, with health issues.
    Failed(String),
    /// Being deleted.
    Deleting,
}

/// A resource that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// How far it is.
    pub status: Status,
    /// Value of [`RUN_TAG`], for kinds that carry tags. A tag, trust statement or rule carries none: there the exact content decides.
    pub run: Option<String>,
    /// Whether it equals what was asked for (in the fields of [`Resource`]); `false` means somebody made it differently.
    pub equal: bool,
    /// In which fields it differs, where the kind tells them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<compare::Difference>,
    /// What else the service says: for a cluster `issuer` (without https://), `endpoint`, `caData`, `securityGroup`; a tag's `value`; a role's `arn`.
    pub attributes: BTreeMap<String, String>,
    /// When it was made (RFC 3339), for kinds that say it: with the name and the run's tag it tells ours from one that was deleted
    /// and made again under its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// What EKS says is wrong with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<HealthIssue>,
    /// An update under way, as in `UPDATING: VpcConfigUpdate`; nothing else may be asked of it meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,
}

/// What hangs on a thing that is about to be deleted, though this run did not put it there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attached {
    /// In words: `policy arn:...`, `node group batch`, `network interface eni-1 (Amazon EKS shop-green)`.
    pub what: String,
    /// AWS takes it away by itself after a while (a network interface, EKS's own instance profile): wait for it. Otherwise it is
    /// somebody's.
    pub passes: bool,
}

/// One thing that EKS finds wrong (eks.md 1.2, 1.6).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthIssue {
    /// Code, as in `AsgInstanceLaunchFailures`.
    pub code: String,
    /// EKS's own words.
    #[serde(default)]
    pub message: String,
    /// What it is about: instances, subnets, roles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
}

/// What is true of a thing at the moment of the look only: a run asks for it, no snapshot keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// As in [`Found::created`].
    pub created: Option<String>,
    /// As in [`Found::issues`].
    pub issues: Vec<HealthIssue>,
    /// As in [`Found::doing`].
    pub doing: Option<String>,
}

/// A thing that exists, in the words in which crossfade would make it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Existing {
    /// What it is. User data is only its hash here ([`compare::hashed`]).
    pub resource: Resource,
    /// Tags.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// How far it is.
    pub status: Status,
    /// What it has that crossfade never makes, as in `image ami-0123`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extras: Vec<String>,
    /// As in [`Found`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
    /// What a snapshot does not keep.
    #[serde(skip)]
    pub now: Now,
}

/// A subnet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subnet {
    /// Id.
    pub id: String,
    /// VPC id.
    pub vpc: String,
    /// Availability zone.
    pub zone: String,
    /// IPv4 CIDR.
    pub cidr: String,
    /// Free addresses now.
    pub free_ips: u32,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

/// One ingress rule as EC2 lists it, one source each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IngressRule {
    /// Protocol.
    pub protocol: String,
    /// First port, -1 for all.
    pub from_port: i32,
    /// Last port, -1 for all.
    pub to_port: i32,
    /// Source group id, if the source is a group.
    pub source_group: Option<String>,
    /// Source CIDR, if the source is a range.
    pub cidr: Option<String>,
    /// Description.
    pub description: Option<String>,
}

/// A security group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroup {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// VPC id.
    pub vpc: String,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Ingress rules.
    pub ingress: Vec<IngressRule>,
}

/// An IAM role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Role {
    /// Name.
    pub name: String,
    /// ARN.
    pub arn: String,
    /// Trust policy document.
    pub trust: Value,
    /// Attached managed policy ARNs.
    pub managed_policies: Vec<String>,
    /// Inline policies by name.
    pub inline_policies: BTreeMap<String, Value>,
    /// ARN of the permissions boundary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary: Option<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

/// What the account holds, as far as a plan needs it. Lists are sorted by id or name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inventory {
    /// Caller and region.
    pub identity: CloudIdentity,
    /// VPC id and CIDRs of the cluster's VPC.
    pub vpc: Option<Vpc>,
    /// Subnets of that VPC.
    pub subnets: Vec<Subnet>,
    /// Security groups of that VPC.
    pub security_groups: Vec<SecurityGroup>,
    /// All IAM roles (service-linked ones left out).
    pub roles: Vec<Role>,
    /// Issuers of the account's OIDC providers (without https://).
    pub oidc_providers: Vec<String>,
    /// EKS clusters with node groups, add-ons and access entries by name.
    pub clusters: Vec<EksCluster>,
    /// Customer managed policies: default version's document by ARN. `None` here and below: not read.
    #[serde(default)]
    pub policies: Option<BTreeMap<String, Value>>,
    /// Role name by instance profile ARN.
    #[serde(default)]
    pub instance_profiles: Option<BTreeMap<String, String>>,
    /// NAT gateways of the VPC.
    #[serde(default)]
    pub nat_gateways: Option<Vec<NatGateway>>,
    /// Route tables of the VPC.
    #[serde(default)]
    pub route_tables: Option<Vec<RouteTable>>,
    /// EBS volumes that carry blue's tags or that a volume of blue names.
    #[serde(default)]
    pub volumes: Option<Vec<Volume>>,
    /// Auto scaling groups of blue.
    #[serde(default)]
    pub auto_scaling_groups: Option<Vec<AutoScalingGroup>>,
    /// Load balancers of the VPC.
    #[serde(default)]
    pub load_balancers: Option<Vec<LoadBalancer>>,
    /// Instance types that blue uses, as EC2 describes them, by name.
    #[serde(default)]
    pub instance_types: Option<BTreeMap<String, InstanceType>>,
    /// Zones in which each instance type of blue is offered.
    #[serde(default)]
    pub offerings: Option<BTreeMap<String, Vec<String>>>,
    /// Launch templates of the account, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_templates: Option<Vec<Existing>>,
    /// Service quotas by `service/code`.
    #[serde(default)]
    pub quotas: Option<BTreeMap<String, Quota>>,
    /// Log groups of EKS clusters (`/aws/eks/...`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_groups: Option<Vec<Existing>>,
    /// The bucket that migration.yaml names for crossfade's records, if it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_bucket: Option<Existing>,
    /// Add-ons that EKS offers for green's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addon_offers: Option<AddonOffers>,
    /// Kubernetes versions of EKS, by version (`1.35`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_versions: Option<BTreeMap<String, ClusterVersion>>,
    /// KMS keys that migration.yaml or blue's volumes name, by that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<BTreeMap<String, Key>>,
    /// Parts that were asked for and not given, with the reason; discover makes `not_checked` entries of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_read: BTreeMap<String, String>,
}

/// What EKS offers for one Kubernetes version (DescribeAddonVersions).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddonOffers {
    /// Kubernetes version, `1.35`.
    pub kubernetes: String,
    /// Add-ons by name.
    pub addons: BTreeMap<String, AddonOffer>,
}

/// One add-on of EKS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddonOffer {
    /// The version that EKS takes when none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// All versions, newest first.
    pub versions: Vec<String>,
    /// Its pods need a role.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_role: bool,
}

/// A Kubernetes version of EKS (DescribeClusterVersions).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterVersion {
    /// `STANDARD_SUPPORT`, `EXTENDED_SUPPORT` or `UNSUPPORTED`.
    pub status: String,
    /// Day on which standard support ends, `2027-03-27`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standard_until: Option<String>,
    /// Day on which extended support ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extended_until: Option<String>,
}

/// A KMS key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Key {
    /// ARN.
    pub arn: String,
    /// `Enabled`, `Disabled`, `PendingDeletion` ...
    pub state: String,
    /// `CUSTOMER` or `AWS` (managed by AWS: its policy admits whoever uses the service).
    pub manager: String,
    /// `SYMMETRIC_DEFAULT`, or another: EKS and EBS take only that one.
    pub spec: String,
    /// Its policy; `None`: not readable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Value>,
    /// Principals that grants let use it, with their operations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub grants: BTreeMap<String, Vec<String>>,
}

/// A NAT gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NatGateway {
    /// Id.
    pub id: String,
    /// Subnet it stands in.
    pub subnet: String,
    /// Public addresses.
    pub public_ips: Vec<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

/// A route table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteTable {
    /// Id.
    pub id: String,
    /// The VPC's main table.
    pub main: bool,
    /// Subnets that use it by association.
    pub subnets: Vec<String>,
    /// Destination to target (`igw-`, `nat-`, `tgw-`, `pcx-`, `eni-`, `local` ...).
    pub routes: BTreeMap<String, String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

/// An EBS volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// Id.
    pub id: String,
    /// Zone.
    pub zone: String,
    /// Size, GiB.
    pub size_gib: u32,
    /// Type, as in `gp2`.
    pub kind: String,
    /// Encrypted.
    pub encrypted: bool,
    /// KMS key ARN.
    pub kms_key: Option<String>,
    /// Instance it is attached to.
    pub attached_to: Option<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

/// An auto scaling group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutoScalingGroup {
    /// Name.
    pub name: String,
    /// Smallest size.
    pub min: u32,
    /// Largest size.
    pub max: u32,
    /// Desired capacity.
    pub desired: u32,
    /// Instances now.
    pub instances: u32,
    /// Subnets.
    pub subnets: Vec<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

/// A load balancer of any generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancer {
    /// Name.
    pub name: String,
    /// `classic`, `application`, `network` or `gateway`.
    pub kind: String,
    /// `internet-facing` or `internal`.
    pub scheme: String,
    /// DNS name.
    pub dns_name: String,
    /// Security groups.
    pub security_groups: Vec<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

/// An instance type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceType {
    /// vCPUs.
    pub vcpus: u32,
    /// Memory, MiB.
    pub memory_mib: u32,
    /// Network interfaces of the default network card.
    pub interfaces: u32,
    /// IPv4 addresses on each interface.
    pub addresses: u32,
    /// `x86_64` or `arm64`.
    pub arch: String,
    /// GPUs.
    pub gpus: u32,
    /// Nitro: prefix delegation and today's AMIs want it.
    pub nitro: bool,
    /// Instance store, GB.
    pub instance_store_gb: u32,
}

/// A service quota.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Quota {
    /// Name.
    pub name: String,
    /// Value in force.
    pub value: f64,
    /// Use now, where a service tells.
    pub used: Option<f64>,
}

/// A VPC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Vpc {
    /// Id.
    pub id: String,
    /// IPv4 CIDRs.
    pub cidrs: Vec<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

/// An EKS cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EksCluster {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// Node group names.
    pub node_groups: Vec<String>,
    /// Add-on names.
    pub addons: Vec<String>,
    /// Principals with access entries.
    pub access_entries: Vec<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// The cluster itself, its node groups, add-ons and the access entries of people, by id. `None`: only names were read
    /// (a cluster of another VPC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<Existing>>,
}

/// The cloud. `create` and `delete` are single requests (a role: a few in a fixed order, each idempotent).
#[async_trait]
pub trait Cloud: Send + Sync {
    /// Account, region, caller.
    async fn identity(&self) -> Result<CloudIdentity>;
    /// Whether the caller may act as this role: tried, and the credentials thrown away. `Some`: why not.
    async fn assumable(&self, role: &str) -> Result<Option<String>>;
    /// Looks for a resource by its identifying fields; `None` when absent.
    async fn find(&self, resource: &Resource) -> Result<Option<Found>>;
    /// Creates it, tagged with the run and with a client token made from `run` and the resource's id, so a repeat finds the same one.
    async fn create(&self, resource: &Resource, run: &str) -> Result<()>;
    /// The same for something that this run made before and that is gone since: another `salt` makes another client token, for AWS
    /// remembers a token (and answers with what it made for it) longer than the thing may have lived.
    async fn create_anew(&self, resource: &Resource, run: &str, salt: &str) -> Result<()> {
        let _ = salt;
        self.create(resource, run).await
    }
    /// What hangs on it that `run` did not put there: what a delete would take with it, or what forbids the delete. Asked only
    /// before a delete; also when the thing itself is gone already (network interfaces stay a while).
    async fn attached(&self, resource: &Resource, run: &str) -> Result<Vec<Attached>> {
        let _ = (resource, run);
        Ok(vec![])
    }
    /// Deletes it; absent is fine.
    async fn delete(&self, resource: &Resource) -> Result<()>;
    /// Reads the account. `vpc_tag` is the kops cluster name whose VPC, subnets and groups are meant.
    async fn inventory(&self, kops_cluster: &str) -> Result<Inventory>;
}
