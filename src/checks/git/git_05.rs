//! GIT-05: tokens that outside systems use.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "GIT-05",
    severity: Severity::Warning,
    question: "Which outside systems hold credentials for blue that green does not know?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Renew them for green, and leave the old ones until finalize.",
    source: "checks.md GIT-05",
    run,
};

/// The rewrite says it where it acts on the object (src/rewrite/identity.rs); nothing is left to ask.
fn run(_: &Input, _: &mut Report) {}
