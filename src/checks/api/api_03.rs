//! API-03: kinds that cannot be carried over (PodSecurityPolicy).

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "API-03",
    severity: Severity::Blocker,
    question: "Which kinds were removed without a successor?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Choose the replacement on blue.",
    source: "checks.md API-03",
    run,
};

/// The rewrite says it where it acts on the object (src/rewrite/apis.rs and identity.rs); nothing is left to ask.
fn run(_: &Input, _: &mut Report) {}
