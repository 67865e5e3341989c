//! API-01: removed versions that convert by themselves.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "API-01",
    severity: Severity::Info,
    question: "Which objects are in a version that green does not serve, with a safe conversion?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Review the difference in the plan.",
    source: "checks.md API-01",
    run,
};

/// The rewrite says it where it acts on the object (src/rewrite/convert); nothing is left to ask.
fn run(_: &Input, _: &mut Report) {}
