//! API-09: time zones in the schedule of CronJobs.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "API-09",
    severity: Severity::Warning,
    question: "Does a schedule carry its time zone inside?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Confirm the name of the zone.",
    source: "checks.md API-09",
    run,
};

/// The rewrite says it where it acts on the object (src/rewrite/workloads.rs); nothing is left to ask.
fn run(_: &Input, _: &mut Report) {}
