//! ID-02: the account and region of migration.yaml are those of the snapshot.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "ID-02",
    severity: Severity::Blocker,
    question: "Is this the account and region that the plan is for?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Switch the identity, then discover and plan again.",
    source: "checks.md ID-02",
    run,
};

/// ID-02.
fn run(i: &Input, r: &mut Report) {
    let Some(aws) = &i.snapshot.aws else {
        r.not_checked(
            "aws",
            "the account was not read",
            "Run discover with AWS credentials.",
        );
        return;
    };
    for (what, found) in [
        ("aws.account", &aws.identity.account),
        ("aws.region", &aws.identity.region),
    ] {
        if found.is_empty() {
            r.not_checked(
                what,
                "the AWS output that was given does not say it",
                "Run discover with AWS credentials, or add `aws sts get-caller-identity` and `aws ec2 describe-subnets` output to the files.",
            );
        }
    }
    if let Some(a) = &i.spec.aws.account
        && !aws.identity.account.is_empty()
        && *a != aws.identity.account
    {
        r.blocker(
            "aws.account",
            format!(
                "migration.yaml says account {a}, the snapshot was made in {}",
                aws.identity.account
            ),
            "Use the right profile, then discover again.",
        );
    }
    if let Some(region) = &i.spec.aws.region
        && !aws.identity.region.is_empty()
        && *region != aws.identity.region
    {
        r.blocker(
            "aws.region",
            format!(
                "migration.yaml says region {region}, the snapshot was made in {}",
                aws.identity.region
            ),
            "Use the right region, then discover again.",
        );
    }
}
