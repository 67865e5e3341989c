//! The table itself: whoever adds a call of AWS adds its row here.

use super::table::{Kind, On, Only, Op, Row, read, write};
use crate::world::cloud::Resource;

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
