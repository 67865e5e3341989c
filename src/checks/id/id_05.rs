//! ID-05: more power than a phase needs.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "ID-05",
    severity: Severity::Warning,
    question: "Can the identity that only reads also delete?",
    needs: &[],
    answered: Answered::Person,
    remedy: "Read with an identity that can only read, and keep the strong one for migrate.",
    source: "checks.md ID-05",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let Some(aws) = i.snapshot.aws.as_ref() else {
        return;
    };
    let arn = &aws.identity.arn;
    if arn.ends_with(":root") {
        r.found(
            "aws",
            format!("the snapshot was read as the account's root user ({arn})"),
        );
    } else if arn.contains("AdministratorAccess") {
        r.found(
            "aws",
            format!("the snapshot was read as an administrator ({arn})"),
        );
    } else if i.snapshot.blue.identity.is_some() {
        r.ask(
            "identities",
            format!("may {arn}, and the user of blue's kubeconfig, delete? (`aws iam simulate-principal-policy`, `kubectl auth can-i delete pods -A`)"),
        );
    }
}
