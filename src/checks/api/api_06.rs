//! API-06: paths, ports and classes of Ingresses.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "API-06",
    severity: Severity::Warning,
    question: "Which choices does the conversion of an old Ingress make?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Confirm class and path type with green's controller.",
    source: "checks.md API-06",
    run,
};

/// The rewrite says it where it acts on the object (src/rewrite/ingress.rs); nothing is left to ask.
fn run(_: &Input, _: &mut Report) {}
