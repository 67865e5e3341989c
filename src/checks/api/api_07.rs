//! API-07: definitions that need something before their objects.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "API-07",
    severity: Severity::Blocker,
    question: "Is a custom resource definition not structural, or converted by a webhook?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Install its operator on green first, or convert offline.",
    source: "checks.md API-07",
    run,
};

/// The rewrite says it where it acts on the object (src/rewrite/apis.rs); nothing is left to ask.
fn run(_: &Input, _: &mut Report) {}
