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

pub(super) const fn read(kind: Kind, op: Op, action: &'static str, on: On) -> Row {
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

pub(super) const fn write(kind: Kind, op: Op, action: &'static str, on: On) -> Row {
    let mut row = read(kind, op, action, on);
    row.writes = true;
    row
}

impl Row {
    pub(super) const fn only(mut self, only: Only) -> Row {
        self.only = only;
        self
    }
    /// AWS checks it within another call.
    pub(super) const fn within(mut self) -> Row {
        self.called = false;
        self
    }
    pub(super) const fn when(mut self, when: fn(&Resource) -> bool) -> Row {
        self.when = Some(when);
        self
    }
}

pub use super::rows::TABLE;
