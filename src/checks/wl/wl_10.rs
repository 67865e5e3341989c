//! WL-10: live replica counts.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "WL-10",
    severity: Severity::Warning,
    question: "Which replica counts are held at 0, or far above their minimum, or allow no disruption?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Nothing to do: the live counts move. Check that 0 is meant.",
    source: "checks.md WL-10",
    run,
};

/// The rewrite says it where it acts on the object (src/rewrite/workloads.rs); nothing is left to ask.
fn run(_: &Input, _: &mut Report) {}
