//! API-04: defaults that differ between versions of one kind (rolling update, OnDelete).

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "API-04",
    severity: Severity::Warning,
    question: "Which objects lean on a default that their new version does not have?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Keep the old default, which is written out, or choose the new one after the migration.",
    source: "checks.md API-04",
    run,
};

/// The rewrite says it where it acts on the object (src/rewrite/convert); nothing is left to ask.
fn run(_: &Input, _: &mut Report) {}
