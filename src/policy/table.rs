//! Which action of AWS is needed for what: one row an action and operation.
//!
//! `called` rows are calls that crossfade makes (the call log of a bench shows each). The others are never called: AWS checks them on the
//! caller's behalf (tags given at creation, roles that are passed, service-linked roles, what EKS tries out with a launch template).

use crate::world::cloud::Resource;

/// What a row is about: a kind of [`Resource`], or one of the things that are only read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // the names are those of `Resource`
pub enum Kind {
    Role,
    OidcProvider,
    Cluster,
    Addon,
    AccessEntry,
    NodeGroup,
    LaunchTemplate,
    SecurityGroupRule,
    Tag,
    TrustStatement,
    PodIdentityAssociation,
    LogGroup,
    StateBucket,
    /// Who we are.
    Identity,
    /// What discover reads of the account.
    Account,
    /// Green's cluster as a way to its API server.
    Green,
    /// Hosted zones.
    Zones,
    /// KMS keys that green would use.
    Keys,
    /// kops's state store on S3.
    StateStore,
    /// A principal whose way into green is proven.
    Principal,
}

impl Kind {
    /// Of a resource. A new kind of resource does not compile without a kind here, and a test asks for its rows.
    pub fn of(resource: &Resource) -> Kind {
        match resource {
            Resource::Role { .. } => Kind::Role,
            Resource::OidcProvider { .. } => Kind::OidcProvider,
            Resource::Cluster { .. } => Kind::Cluster,
            Resource::Addon { .. } => Kind::Addon,
            Resource::AccessEntry { .. } => Kind::AccessEntry,
            Resource::NodeGroup { .. } => Kind::NodeGroup,
            Resource::LaunchTemplate { .. } => Kind::LaunchTemplate,
            Resource::SecurityGroupRule { .. } => Kind::SecurityGroupRule,
            Resource::Tag { .. } => Kind::Tag,
            Resource::TrustStatement { .. } => Kind::TrustStatement,
            Resource::PodIdentityAssociation { .. } => Kind::PodIdentityAssociation,
            Resource::LogGroup { .. } => Kind::LogGroup,
            Resource::StateBucket { .. } => Kind::StateBucket,
        }
    }

    /// Begin of the statement's Sid.
    pub(super) fn purpose(self, op: Op) -> &'static str {
        match (self, op) {
            (Kind::Identity | Kind::Account, _) => "Account",
            (Kind::Green, _) => "Green",
            (Kind::Zones, _) => "Zones",
            (Kind::StateStore, _) => "StateStore",
            (Kind::Principal, _) => "ProveAccess",
            (_, Op::Find | Op::Discover) => "Look",
            (Kind::Role, Op::Undo) => "UndoRoles",
            (Kind::Role, _) => "Roles",
            (Kind::OidcProvider, Op::Undo) => "UndoIssuer",
            (Kind::OidcProvider, _) => "Issuer",
            (Kind::Cluster, Op::Undo) => "UndoCluster",
            (Kind::Cluster, _) => "Cluster",
            (Kind::Addon, Op::Undo) => "UndoAddons",
            (Kind::Addon, _) => "Addons",
            (Kind::AccessEntry, Op::Undo) => "UndoAccess",
            (Kind::AccessEntry, _) => "Access",
            (Kind::NodeGroup, Op::Undo) => "UndoNodeGroups",
            (Kind::NodeGroup, _) => "NodeGroups",
            (Kind::LaunchTemplate, Op::Undo) => "UndoTemplates",
            (Kind::LaunchTemplate, _) => "Templates",
            (Kind::SecurityGroupRule, Op::Undo) => "UndoRules",
            (Kind::SecurityGroupRule, _) => "Rules",
            (Kind::Tag, Op::Undo) => "UndoTags",
            (Kind::Tag, _) => "Tags",
            (Kind::PodIdentityAssociation, Op::Undo) => "UndoPodIdentity",
            (Kind::PodIdentityAssociation, _) => "PodIdentity",
            (Kind::LogGroup, Op::Undo) => "UndoLogs",
            (Kind::LogGroup, _) => "Logs",
            (Kind::StateBucket, Op::Undo) => "UndoBucket",
            (Kind::StateBucket, _) => "Bucket",
            (Kind::Keys, _) => "Keys",
            (Kind::TrustStatement, Op::Undo) => "UndoTrust",
            (Kind::TrustStatement, _) => "Trust",
        }
    }
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    /// `discover` and `init`.
    Discover,
    /// A run looks whether, and how, it is there.
    Find,
    /// A run makes it.
    Make,
    /// A rollback takes it back.
    Undo,
    /// `finalize`.
    End,
}

/// On what an action is asked for, as AWS's own reference of actions has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// The action knows no resource: `*`.
    Any,
    /// The thing itself.
    This,
    /// The EKS cluster that the thing belongs to.
    ItsCluster,
    /// The role that is handed to a service.
    PassedRole,
    /// A service-linked role: service.
    ServiceRole(&'static str),
    /// The KMS key that the cluster encrypts Secrets with.
    ItsKey,
    /// Everything of this EC2 kind (its id is not known before it is made): `launch-template`, `security-group-rule`.
    New(&'static str),
    /// All of this EKS kind in the thing's cluster.
    Inside(&'static str),
    /// Every cluster, node group, add-on and entry of the account.
    Eks,
    /// The log groups of all EKS clusters.
    EksLogs,
    /// The changes of Route 53.
    Changes,
    /// Objects of the bucket.
    Objects,
}

/// What narrows a statement beyond its ARNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// Nothing.
    Always,
    /// Tags only while this action makes the thing.
    While(&'static str),
    /// Only things that carry a run's tag.
    Ours,
    /// The role only for the services of EKS.
    ForEks,
    /// The service-linked role of this service.
    Service(&'static str),
    /// Only the tag key of the step.
    ItsKey,
    /// Only from launch templates of this account.
    FromTemplates,
    /// Only the managed policies that the plan names.
    ItsPolicies,
    /// Only under the permissions boundary that the plan names, where it names one.
    ItsBoundary,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// About what.
    pub kind: Kind,
    /// For what.
    pub op: Op,
    /// `service:Action`.
    pub action: &'static str,
    /// On what.
    pub on: On,
    /// Narrowed to.
    pub only: Only,
    /// Changes something.
    pub writes: bool,
    /// crossfade makes this call; otherwise AWS checks it within another.
    pub called: bool,
    /// Whether a resource of the kind needs it; `None`: each does.
    pub when: Option<fn(&Resource) -> bool>,
}

const fn read(kind: Kind, op: Op, action: &'static str, on: On) -> Row {
    Row {
        kind,
        op,
        action,
        on,
        only: Only::Always,
        writes: false,
        called: true,
        when: None,
    }
}

const fn write(kind: Kind, op: Op, action: &'static str, on: On) -> Row {
    let mut row = read(kind, op, action, on);
    row.writes = true;
    row
}

impl Row {
    const fn only(mut self, only: Only) -> Row {
        self.only = only;
        self
    }
    /// AWS checks it within another call.
    const fn within(mut self) -> Row {
        self.called = false;
        self
    }
    const fn when(mut self, when: fn(&Resource) -> bool) -> Row {
        self.when = Some(when);
        self
    }
}

fn managed(r: &Resource) -> bool {
    matches!(r, Resource::Role { managed_policies, .. } if !managed_policies.is_empty())
}
fn inline(r: &Resource) -> bool {
    matches!(r, Resource::Role { inline_policies, .. } if !inline_policies.is_empty())
}
fn with_role(r: &Resource) -> bool {
    matches!(
        r,
        Resource::Addon {
            service_account_role: Some(_),
            ..
        }
    )
}
fn with_policy(r: &Resource) -> bool {
    matches!(
        r,
        Resource::AccessEntry {
            policy: Some(_),
            ..
        }
    )
}
fn from_template(r: &Resource) -> bool {
    matches!(
        r,
        Resource::NodeGroup {
            launch_template: Some(_),
            ..
        }
    )
}
fn spot(r: &Resource) -> bool {
    matches!(r, Resource::NodeGroup { capacity_type, .. } if capacity_type == "SPOT")
}

fn with_key(r: &Resource) -> bool {
    matches!(
        r,
        Resource::Cluster {
            kms_key: Some(_),
            ..
        }
    )
}
fn protected(r: &Resource) -> bool {
    matches!(
        r,
        Resource::Cluster {
            deletion_protection: true,
            ..
        }
    )
}
fn kept_for_days(r: &Resource) -> bool {
    matches!(
        r,
        Resource::LogGroup {
            retention_days: Some(_),
            ..
        }
    )
}
fn made_here(r: &Resource) -> bool {
    matches!(r, Resource::StateBucket { create: true, .. })
}

use Kind as K;
use Op::{Discover, End, Find, Make, Undo};

/// The table. Sorted by kind, then by what is done.
pub const TABLE: &[Row] = &[
    // IAM roles (eks.md 1.3).
    read(K::Role, Find, "iam:GetRole", On::This),
    read(K::Role, Find, "iam:ListAttachedRolePolicies", On::This),
    read(K::Role, Find, "iam:ListRolePolicies", On::This),
    read(K::Role, Find, "iam:GetRolePolicy", On::This).when(inline),
    write(K::Role, Make, "iam:CreateRole", On::This).only(Only::ItsBoundary),
    write(K::Role, Make, "iam:TagRole", On::This).within(),
    write(K::Role, Make, "iam:AttachRolePolicy", On::This)
        .only(Only::ItsPolicies)
        .when(managed),
    write(K::Role, Make, "iam:PutRolePolicy", On::This).when(inline),
    read(K::Role, Undo, "iam:ListInstanceProfilesForRole", On::This),
    write(K::Role, Undo, "iam:DetachRolePolicy", On::This)
        .only(Only::ItsPolicies)
        .when(managed),
    write(K::Role, Undo, "iam:DeleteRolePolicy", On::This).when(inline),
    write(K::Role, Undo, "iam:DeleteRole", On::This),
    // Green's issuer (eks.md 3).
    read(
        K::OidcProvider,
        Find,
        "iam:ListOpenIDConnectProviders",
        On::Any,
    ),
    read(
        K::OidcProvider,
        Find,
        "iam:GetOpenIDConnectProvider",
        On::This,
    ),
    write(
        K::OidcProvider,
        Make,
        "iam:CreateOpenIDConnectProvider",
        On::This,
    ),
    write(
        K::OidcProvider,
        Make,
        "iam:TagOpenIDConnectProvider",
        On::This,
    )
    .within(),
    write(
        K::OidcProvider,
        Undo,
        "iam:DeleteOpenIDConnectProvider",
        On::This,
    ),
    // The cluster (eks.md 1.2).
    read(K::Cluster, Find, "eks:DescribeCluster", On::This),
    write(K::Cluster, Make, "eks:CreateCluster", On::This),
    write(K::Cluster, Make, "eks:TagResource", On::This).within(),
    write(K::Cluster, Make, "iam:PassRole", On::PassedRole)
        .only(Only::ForEks)
        .within(),
    write(
        K::Cluster,
        Make,
        "iam:CreateServiceLinkedRole",
        On::ServiceRole("eks.amazonaws.com"),
    )
    .only(Only::Service("eks.amazonaws.com"))
    .within(),
    read(K::Cluster, Make, "kms:DescribeKey", On::ItsKey)
        .when(with_key)
        .within(),
    write(K::Cluster, Make, "kms:CreateGrant", On::ItsKey)
        .when(with_key)
        .within(),
    // What hangs on it, that a delete would take along or stumble over.
    read(K::Cluster, Undo, "eks:ListNodegroups", On::This),
    read(
        K::Cluster,
        Undo,
        "eks:DescribeNodegroup",
        On::Inside("nodegroup"),
    ),
    read(K::Cluster, Undo, "eks:ListAddons", On::This),
    read(K::Cluster, Undo, "eks:DescribeAddon", On::Inside("addon")),
    read(
        K::Cluster,
        Undo,
        "eks:ListPodIdentityAssociations",
        On::This,
    ),
    read(
        K::Cluster,
        Undo,
        "eks:DescribePodIdentityAssociation",
        On::Inside("podidentityassociation"),
    ),
    read(K::Cluster, Undo, "ec2:DescribeSecurityGroups", On::Any),
    read(K::Cluster, Undo, "ec2:DescribeNetworkInterfaces", On::Any),
    write(K::Cluster, Undo, "eks:UpdateClusterConfig", On::This).when(protected),
    read(K::Cluster, Undo, "eks:DescribeUpdate", On::This).when(protected),
    write(K::Cluster, Undo, "eks:DeleteCluster", On::This),
    // Add-ons (eks.md 1.5).
    read(K::Addon, Find, "eks:DescribeAddon", On::This),
    write(K::Addon, Make, "eks:CreateAddon", On::ItsCluster),
    write(K::Addon, Make, "eks:TagResource", On::This).within(),
    write(K::Addon, Make, "iam:PassRole", On::PassedRole)
        .only(Only::ForEks)
        .when(with_role)
        .within(),
    write(K::Addon, Undo, "eks:DeleteAddon", On::This),
    // Access entries (eks.md 1.4).
    read(K::AccessEntry, Find, "eks:DescribeAccessEntry", On::This),
    read(
        K::AccessEntry,
        Find,
        "eks:ListAssociatedAccessPolicies",
        On::This,
    ),
    write(
        K::AccessEntry,
        Make,
        "eks:CreateAccessEntry",
        On::ItsCluster,
    ),
    write(K::AccessEntry, Make, "eks:TagResource", On::This).within(),
    write(K::AccessEntry, Make, "eks:AssociateAccessPolicy", On::This).when(with_policy),
    write(K::AccessEntry, Undo, "eks:DeleteAccessEntry", On::This),
    // Node groups (eks.md 1.6). EKS tries the template out as the caller: RunInstances with the tags that it carries.
    read(K::NodeGroup, Find, "eks:DescribeNodegroup", On::This),
    write(K::NodeGroup, Make, "eks:CreateNodegroup", On::ItsCluster),
    write(K::NodeGroup, Make, "eks:TagResource", On::This).within(),
    write(K::NodeGroup, Make, "iam:PassRole", On::PassedRole)
        .only(Only::ForEks)
        .within(),
    read(
        K::NodeGroup,
        Make,
        "iam:GetRole",
        On::ServiceRole("eks-nodegroup.amazonaws.com"),
    )
    .within(),
    write(
        K::NodeGroup,
        Make,
        "iam:CreateServiceLinkedRole",
        On::ServiceRole("eks-nodegroup.amazonaws.com"),
    )
    .only(Only::Service("eks-nodegroup.amazonaws.com"))
    .within(),
    write(
        K::NodeGroup,
        Make,
        "iam:CreateServiceLinkedRole",
        On::ServiceRole("spot.amazonaws.com"),
    )
    .only(Only::Service("spot.amazonaws.com"))
    .when(spot)
    .within(),
    write(K::NodeGroup, Make, "ec2:RunInstances", On::Any)
        .only(Only::FromTemplates)
        .when(from_template)
        .within(),
    write(K::NodeGroup, Make, "ec2:CreateTags", On::New("instance"))
        .only(Only::While("RunInstances"))
        .when(from_template)
        .within(),
    write(K::NodeGroup, Make, "ec2:CreateTags", On::New("volume"))
        .only(Only::While("RunInstances"))
        .when(from_template)
        .within(),
    write(K::NodeGroup, Undo, "eks:DeleteNodegroup", On::This),
    // Launch templates: their ids are not known before, so tags say whose they are.
    read(
        K::LaunchTemplate,
        Find,
        "ec2:DescribeLaunchTemplates",
        On::Any,
    ),
    read(
        K::LaunchTemplate,
        Find,
        "ec2:DescribeLaunchTemplateVersions",
        On::Any,
    ),
    write(
        K::LaunchTemplate,
        Make,
        "ec2:CreateLaunchTemplate",
        On::New("launch-template"),
    ),
    write(
        K::LaunchTemplate,
        Make,
        "ec2:CreateTags",
        On::New("launch-template"),
    )
    .only(Only::While("CreateLaunchTemplate"))
    .within(),
    write(
        K::LaunchTemplate,
        Undo,
        "ec2:DeleteLaunchTemplate",
        On::New("launch-template"),
    )
    .only(Only::Ours),
    // Additive rules, by group (eks.md 2.3).
    read(
        K::SecurityGroupRule,
        Find,
        "ec2:DescribeSecurityGroupRules",
        On::Any,
    ),
    write(
        K::SecurityGroupRule,
        Make,
        "ec2:AuthorizeSecurityGroupIngress",
        On::This,
    ),
    write(
        K::SecurityGroupRule,
        Make,
        "ec2:CreateTags",
        On::New("security-group-rule"),
    )
    .only(Only::While("AuthorizeSecurityGroupIngress"))
    .within(),
    write(
        K::SecurityGroupRule,
        Undo,
        "ec2:RevokeSecurityGroupIngress",
        On::This,
    ),
    // Tags on what is there (eks.md 2.2).
    read(K::Tag, Find, "ec2:DescribeTags", On::Any),
    write(K::Tag, Make, "ec2:CreateTags", On::This).only(Only::ItsKey),
    write(K::Tag, Undo, "ec2:DeleteTags", On::This).only(Only::ItsKey),
    // Statements in the trust of roles that are there (eks.md 3).
    read(K::TrustStatement, Find, "iam:GetRole", On::This),
    write(
        K::TrustStatement,
        Make,
        "iam:UpdateAssumeRolePolicy",
        On::This,
    ),
    write(
        K::TrustStatement,
        Undo,
        "iam:UpdateAssumeRolePolicy",
        On::This,
    ),
    // Pod identity (eks.md 3).
    read(
        K::PodIdentityAssociation,
        Find,
        "eks:ListPodIdentityAssociations",
        On::ItsCluster,
    ),
    read(
        K::PodIdentityAssociation,
        Find,
        "eks:DescribePodIdentityAssociation",
        On::This,
    ),
    write(
        K::PodIdentityAssociation,
        Make,
        "eks:CreatePodIdentityAssociation",
        On::ItsCluster,
    ),
    write(K::PodIdentityAssociation, Make, "eks:TagResource", On::This).within(),
    write(
        K::PodIdentityAssociation,
        Make,
        "iam:PassRole",
        On::PassedRole,
    )
    .only(Only::ForEks)
    .within(),
    write(
        K::PodIdentityAssociation,
        Undo,
        "eks:DeletePodIdentityAssociation",
        On::This,
    ),
    // Log groups (eks.md 1.2). Listing them knows no single group.
    read(K::LogGroup, Discover, "logs:DescribeLogGroups", On::Any),
    read(
        K::LogGroup,
        Discover,
        "logs:ListTagsForResource",
        On::EksLogs,
    ),
    read(K::LogGroup, Find, "logs:DescribeLogGroups", On::Any),
    read(K::LogGroup, Find, "logs:ListTagsForResource", On::This),
    write(K::LogGroup, Make, "logs:CreateLogGroup", On::This),
    write(K::LogGroup, Make, "logs:TagResource", On::This).within(),
    write(K::LogGroup, Make, "logs:PutRetentionPolicy", On::This).when(kept_for_days),
    write(K::LogGroup, Undo, "logs:DeleteLogGroup", On::This),
    // The bucket for records. IAM's names of these rights are not the calls' names.
    read(K::StateBucket, Discover, "s3:ListBucket", On::This),
    read(K::StateBucket, Discover, "s3:GetBucketVersioning", On::This),
    read(
        K::StateBucket,
        Discover,
        "s3:GetEncryptionConfiguration",
        On::This,
    ),
    read(
        K::StateBucket,
        Discover,
        "s3:GetBucketPublicAccessBlock",
        On::This,
    ),
    read(K::StateBucket, Discover, "s3:GetBucketTagging", On::This),
    read(K::StateBucket, Find, "s3:ListBucket", On::This),
    read(K::StateBucket, Find, "s3:GetBucketVersioning", On::This),
    read(
        K::StateBucket,
        Find,
        "s3:GetEncryptionConfiguration",
        On::This,
    ),
    read(
        K::StateBucket,
        Find,
        "s3:GetBucketPublicAccessBlock",
        On::This,
    ),
    read(K::StateBucket, Find, "s3:GetBucketTagging", On::This),
    write(K::StateBucket, Make, "s3:CreateBucket", On::This).when(made_here),
    write(K::StateBucket, Make, "s3:TagResource", On::This)
        .when(made_here)
        .within(),
    write(
        K::StateBucket,
        Make,
        "s3:PutBucketPublicAccessBlock",
        On::This,
    )
    .when(made_here),
    write(K::StateBucket, Make, "s3:PutBucketVersioning", On::This).when(made_here),
    write(
        K::StateBucket,
        Make,
        "s3:PutEncryptionConfiguration",
        On::This,
    )
    .when(made_here),
    write(K::StateBucket, Undo, "s3:DeleteBucket", On::This).when(made_here),
    // AWS lets everybody ask this; it stands here because it is called, and because a deny of an organisation may say otherwise.
    read(K::Identity, Discover, "sts:GetCallerIdentity", On::Any),
    read(K::Identity, Find, "sts:GetCallerIdentity", On::Any),
    // Discover.
    read(K::Account, Discover, "ec2:DescribeVpcs", On::Any),
    read(K::Account, Discover, "ec2:DescribeSubnets", On::Any),
    read(K::Account, Discover, "ec2:DescribeSecurityGroups", On::Any),
    read(K::Account, Discover, "ec2:DescribeLaunchTemplates", On::Any),
    read(
        K::Account,
        Discover,
        "ec2:DescribeLaunchTemplateVersions",
        On::Any,
    ),
    read(K::Account, Discover, "ec2:DescribeNatGateways", On::Any),
    read(K::Account, Discover, "ec2:DescribeRouteTables", On::Any),
    read(K::Account, Discover, "ec2:DescribeVolumes", On::Any),
    read(K::Account, Discover, "ec2:DescribeInstances", On::Any),
    read(K::Account, Discover, "ec2:DescribeInstanceTypes", On::Any),
    read(
        K::Account,
        Discover,
        "ec2:DescribeInstanceTypeOfferings",
        On::Any,
    ),
    read(
        K::Account,
        Discover,
        "iam:GetAccountAuthorizationDetails",
        On::Any,
    ),
    read(
        K::Account,
        Discover,
        "iam:ListOpenIDConnectProviders",
        On::Any,
    ),
    read(K::Account, Discover, "eks:ListClusters", On::Any),
    read(K::Account, Discover, "eks:DescribeCluster", On::Eks),
    read(K::Account, Discover, "eks:ListNodegroups", On::Eks),
    read(K::Account, Discover, "eks:DescribeNodegroup", On::Eks),
    read(K::Account, Discover, "eks:ListAddons", On::Eks),
    read(K::Account, Discover, "eks:DescribeAddon", On::Eks),
    read(K::Account, Discover, "eks:ListAccessEntries", On::Eks),
    read(K::Account, Discover, "eks:DescribeAccessEntry", On::Eks),
    read(
        K::Account,
        Discover,
        "eks:ListAssociatedAccessPolicies",
        On::Eks,
    ),
    read(
        K::Account,
        Discover,
        "eks:ListPodIdentityAssociations",
        On::Eks,
    ),
    read(
        K::Account,
        Discover,
        "eks:DescribePodIdentityAssociation",
        On::Eks,
    ),
    read(K::Account, Discover, "eks:DescribeClusterVersions", On::Any),
    read(K::Account, Discover, "eks:DescribeAddonVersions", On::Any),
    read(K::Keys, Discover, "kms:DescribeKey", On::This),
    read(K::Keys, Discover, "kms:GetKeyPolicy", On::This),
    read(K::Keys, Discover, "kms:ListGrants", On::This),
    read(K::StateStore, Discover, "s3:ListBucket", On::This),
    read(K::StateStore, Discover, "s3:GetObject", On::Objects),
    read(K::Green, Discover, "eks:DescribeCluster", On::This),
    read(K::Green, Find, "eks:DescribeCluster", On::This),
    // DNS (externaldns.md 8).
    read(K::Zones, Discover, "route53:ListHostedZones", On::Any),
    read(
        K::Zones,
        Discover,
        "route53:ListResourceRecordSets",
        On::New("hostedzone"),
    ),
    read(K::Zones, Find, "route53:ListHostedZones", On::Any),
    read(K::Zones, Find, "route53:ListResourceRecordSets", On::This),
    write(K::Zones, Make, "route53:ChangeResourceRecordSets", On::This),
    read(K::Zones, Make, "route53:GetChange", On::Changes),
    write(K::Zones, Undo, "route53:ChangeResourceRecordSets", On::This),
    read(K::Zones, Undo, "route53:GetChange", On::Changes),
    write(K::Zones, End, "route53:ChangeResourceRecordSets", On::This),
    read(K::Zones, End, "route53:GetChange", On::Changes),
    // Proof that people get in.
    read(K::Principal, Make, "sts:AssumeRole", On::This),
];

/// Actions that crossfade calls for these kinds and operations, for comparing with a call log.
pub fn called(of: impl Fn(&Row) -> bool) -> std::collections::BTreeSet<&'static str> {
    TABLE
        .iter()
        .filter(|r| r.called && of(r))
        .map(|r| r.action)
        .collect()
}
