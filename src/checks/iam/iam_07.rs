//! IAM-07: logins of blue that become no access entry. Bindings that name unknown groups are found by the rewrite.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "IAM-07",
    severity: Severity::Blocker,
    question: "Are there people or groups that green's login does not know?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Give them entries under green.access.",
    source: "checks.md IAM-07",
    run,
};

fn run(i: &Input, r: &mut Report) {
    super::said(i, r);
}
