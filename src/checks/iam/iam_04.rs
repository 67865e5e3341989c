//! IAM-04: what pods may do through blue's nodes, statement by statement; green's node role gets none of it.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "IAM-04",
    severity: Severity::Blocker,
    question: "Does a workload lean on the rights of its node?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Map the statement to the account that uses it (green.roles), or waive it.",
    source: "checks.md IAM-04",
    run,
};

fn run(i: &Input, r: &mut Report) {
    super::said(i, r);
}
