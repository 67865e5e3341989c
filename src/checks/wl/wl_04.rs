//! WL-04: volumes that would start empty.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "WL-04",
    severity: Severity::Blocker,
    question: "Does a StatefulSet have volumes without a plan for their data?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Declare how its data moves.",
    source: "checks.md WL-04",
    run,
};

/// The rewrite says it where it acts on the object (src/rewrite/workloads.rs and storage.rs); nothing is left to ask.
fn run(_: &Input, _: &mut Report) {}
