//! EKS-version: how long the chosen version is supported (eks.md 1.1; a table only as offline fall-back).

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "EKS-version",
    severity: Severity::Warning,
    question: "How long is green's version supported?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Choose a version in standard support.",
    source: "eks.md 1.1",
    run,
};

/// Support of the chosen version (eks.md 1.1; a table only as offline fall-back).
fn run(i: &Input, r: &mut Report) {
    match i.cx.green_minor {
        m if m < 32 => r.blocker(
            "green.version",
            format!("EKS does not offer 1.{m} any more"),
            "Choose 1.35 or 1.36.",
        ),
        m @ 32..=34 => r.warning(
            "green.version",
            format!("1.{m} is in extended support, or will be within weeks"),
            "Choose 1.35 or 1.36.",
        ),
        m if m > 36 => r.blocker(
            "green.version",
            format!("EKS does not offer 1.{m} yet"),
            "Choose 1.35 or 1.36.",
        ),
        _ => {}
    }
}
