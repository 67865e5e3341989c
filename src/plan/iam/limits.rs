//! Sizes that IAM counts (eks.md 3): inline policies, attached policies, roles of the account.

use super::trust::number;
use super::{Iam, Problem, policy};
use crate::plan::model::Severity;
use crate::snapshot::model::Snapshot;
use crate::world::cloud::Inventory;

/// Characters of all inline policies of a role together.
pub const INLINE: usize = 10_240;
/// Managed policies attached to a role, unless the quota was raised (to 20 at most).
pub const MANAGED: usize = 10;
/// Roles of an account, unless the quota was raised (to 5,000 at most).
const ROLES: usize = 1000;
/// Roles that green's platform takes besides those of service accounts: cluster, node, CNI, storage drivers, ExternalDNS.
const PLATFORM: usize = 5;

pub(super) fn sizes(snapshot: &Snapshot, iam: &mut Iam) {
    let aws = snapshot.aws.as_ref();
    let attached = number(
        aws,
        &["iam/L-0DA4ABF3", "iam/AttachedPoliciesPerRoleQuota"],
        MANAGED,
    );
    let mut found = vec![];
    for role in iam.roles.iter().filter(|r| !r.existing) {
        let object = format!("role/{}", role.name);
        let inline: usize = role.inline_policies.values().map(policy::size).sum();
        if inline > INLINE {
            found.push(Problem::new(
                "IAM-limits",
                Severity::Blocker,
                object.clone(),
                format!("its inline policies have {inline} characters, IAM allows {INLINE} in a role"),
                "Put some of the statements into a managed policy on blue and name that under green.roles.",
            ));
        }
        let n = role
            .policies
            .iter()
            .filter(|p| p.starts_with("arn:"))
            .count();
        if n > attached {
            found.push(Problem::new(
                "IAM-limits",
                Severity::Blocker,
                object,
                format!("has {n} managed policies, the quota is {attached}"),
                "Raise the quota (20 at most), or put policies together.",
            ));
        }
    }
    if let Some(aws) = aws {
        attachable(aws, iam, &mut found);
        let new = PLATFORM + iam.roles.iter().filter(|r| !r.existing).count();
        let there = aws.roles.len();
        let quota = number(Some(aws), &["iam/L-FE177D64", "iam/RolesQuota"], ROLES);
        if there + new > quota {
            found.push(Problem::new(
                "IAM-limits",
                Severity::Blocker,
                "aws.roles",
                format!(
                    "the account has {there} roles and green needs {new} more, the quota is {quota}"
                ),
                "Raise the quota (5,000 at most) before the date.",
            ));
        }
    }
    iam.problems.extend(found);
}

/// A role takes policies of AWS and of its own account, and only those that exist.
fn attachable(aws: &Inventory, iam: &Iam, found: &mut Vec<Problem>) {
    let own = &aws.identity.account;
    for role in iam.roles.iter().filter(|r| !r.existing) {
        let arns = role
            .policies
            .iter()
            .filter(|p| p.starts_with("arn:"))
            .chain(&role.boundary);
        for arn in arns {
            let account = arn.split(':').nth(4).unwrap_or("");
            let why = if account == "aws" {
                continue;
            } else if account != own {
                format!(
                    "is of account {account}, and a role takes policies of its own account only"
                )
            } else if aws.policies.as_ref().is_some_and(|p| !p.contains_key(arn)) {
                "does not exist in the account".into()
            } else {
                continue;
            };
            found.push(Problem::new(
                "IAM-limits",
                Severity::Blocker,
                format!("role/{}", role.name),
                format!("policy {arn} {why}"),
                "Make a policy with the same document in this account, and name it on blue (or under green.roles).",
            ));
        }
    }
}
