//! IAM-limits: inline policies of a role together, attached policies, roles of the account.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "IAM-limits",
    severity: Severity::Blocker,
    question: "Do green's roles fit what IAM allows?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Raise the quota, or take statements apart.",
    source: "eks.md 3",
    run,
};

fn run(i: &Input, r: &mut Report) {
    super::said(i, r);
}
