//! WL-02: finished Jobs, which are not copied.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "WL-02",
    severity: Severity::Info,
    question: "Which Jobs are finished and would run again?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Nothing to do, unless something on green waits for them.",
    source: "checks.md WL-02",
    run,
};

/// The rewrite says it where it acts on the object (src/rewrite/skip.rs); nothing is left to ask.
fn run(_: &Input, _: &mut Report) {}
