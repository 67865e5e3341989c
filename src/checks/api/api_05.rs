//! API-05: empty selectors of policy/v1beta1.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "API-05",
    severity: Severity::Blocker,
    question: "Does a disruption budget have an empty selector, which means none before and all after?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Let its owner decide, on blue.",
    source: "checks.md API-05",
    run,
};

/// The rewrite says it where it acts on the object (src/rewrite/convert); nothing is left to ask.
fn run(_: &Input, _: &mut Report) {}
