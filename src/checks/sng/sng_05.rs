//! SNG-05: missed starts of CronJobs that are held for a while.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "SNG-05",
    severity: Severity::Warning,
    question: "Would a CronJob run at once when it is resumed, or never?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Give it a startingDeadlineSeconds.",
    source: "checks.md SNG-05",
    run,
};

/// The rewrite says it where it acts on the object (src/rewrite/workloads.rs); nothing is left to ask.
fn run(_: &Input, _: &mut Report) {}
