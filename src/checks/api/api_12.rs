//! API-12: records of Helm releases.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "API-12",
    severity: Severity::Blocker,
    question: "Does the record of a Helm release stand in the way of its next upgrade?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Finish the release on blue, or map its record.",
    source: "checks.md API-12",
    run,
};

/// The rewrite says it where it acts on the object (src/rewrite/tools.rs); nothing is left to ask.
fn run(_: &Input, _: &mut Report) {}
