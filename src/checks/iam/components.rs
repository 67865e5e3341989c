//! EKS-components: what kops runs in blue and EKS has no add-on of, and settings that do not carry over.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "EKS-components",
    severity: Severity::Warning,
    question: "Is there a part of blue's platform that green needs and crossfade does not make?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Install the chart, or waive it.",
    source: "eks.md 1.5",
    run,
};

fn run(i: &Input, r: &mut Report) {
    super::said(i, r);
}
