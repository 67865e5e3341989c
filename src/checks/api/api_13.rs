//! API-13: webhooks and aggregated APIs.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "API-13",
    severity: Severity::Blocker,
    question: "Could an admission webhook or an aggregated API refuse every write on green?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Apply it last, mend it, or drop it.",
    source: "checks.md API-13",
    run,
};

/// The rewrite says it where it acts on the object (src/rewrite/apis.rs); nothing is left to ask.
fn run(_: &Input, _: &mut Report) {}
