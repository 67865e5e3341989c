//! IAM-03: roles that exist and get a statement for green's issuer beside blue's.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "IAM-03",
    severity: Severity::Blocker,
    question: "Is there a role that does not trust green, or whose trust policy cannot hold both issuers?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Add green's issuer, keep blue's.",
    source: "checks.md IAM-03",
    run,
};

fn run(i: &Input, r: &mut Report) {
    super::said(i, r);
    for role in i.target.roles.iter().filter(|x| x.existing) {
        let object = format!("role/{}", role.name);
        let Some(aws) = &i.snapshot.aws else {
            r.not_checked(
                object,
                "the account's roles were not read",
                "Run discover with AWS credentials.",
            );
            continue;
        };
        let account = role.service_account.as_deref().unwrap_or("?");
        // A role of another account is said by the planner's room.
        let foreign =
            i.cx.sa_roles
                .get(account)
                .and_then(|arn| arn.split(':').nth(4))
                .is_some_and(|a| a != aws.identity.account);
        if !foreign && !aws.roles.iter().any(|x| x.name == role.name) {
            r.blocker(
                object,
                format!(
                    "service account {account} needs this role, and the account does not have it"
                ),
                "Create the role, or correct the annotation on blue.",
            );
        }
    }
}
