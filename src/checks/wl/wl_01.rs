//! WL-01: running Jobs: they are not copied, and the freeze waits for those that CronJobs started.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "WL-01",
    severity: Severity::Blocker,
    question: "Is a Job running that the freeze would have to wait for?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Let it end before the freeze.",
    source: "checks.md WL-01",
    run,
};

/// The rewrite says it where it acts on the object (src/rewrite/workloads.rs); nothing is left to ask.
fn run(_: &Input, _: &mut Report) {}
