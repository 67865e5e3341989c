//! IAM-02: an account has one role on EKS. Pods of one account with different roles are found by the rewrite, where they are refused.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "IAM-02",
    severity: Severity::Blocker,
    question: "Does one service account need several roles?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Split the account on blue.",
    source: "checks.md IAM-02",
    run,
};

fn run(i: &Input, r: &mut Report) {
    super::said(i, r);
}
