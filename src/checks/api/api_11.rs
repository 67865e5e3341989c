//! API-11: doubles in the input: the planner takes the first and says so.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "API-11",
    severity: Severity::Warning,
    question: "Is an object given twice, or in two versions?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Drop one of the inputs.",
    source: "checks.md API-11",
    run,
};

/// The planner says it where it makes verdicts (src/plan/mod.rs); nothing is left to ask.
fn run(_: &Input, _: &mut Report) {}
