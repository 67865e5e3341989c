//! READ-01: what discover could not read is said, never taken for "nothing there".

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "READ-01",
    severity: Severity::NotChecked,
    question: "Was everything read that a plan needs?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Give discover access to it, or the file that shows it, and plan again.",
    source: "DESIGN 5.4",
    run,
};

/// READ-01: what discover could not read is said, never taken for "nothing there".
fn run(i: &Input, r: &mut Report) {
    for gap in &i.snapshot.not_checked {
        r.not_checked(
            gap.what.clone(),
            &gap.why,
            "Give discover access to it, or the file that shows it, and plan again.",
        );
    }
}
