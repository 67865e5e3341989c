//! WL-09: owners and finalizers.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "WL-09",
    severity: Severity::Warning,
    question: "Does an object name an owner or a controller that green does not have?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Check that nothing relies on it being deleted with its owner.",
    source: "checks.md WL-09",
    run,
};

/// The rewrite says it where it acts on the object (src/rewrite/metadata.rs); nothing is left to ask.
fn run(_: &Input, _: &mut Report) {}
