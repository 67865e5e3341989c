//! SNG-06: impossible dates.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "SNG-06",
    severity: Severity::Info,
    question: "Is a CronJob switched off by a date that never comes?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Say which side is meant to be active.",
    source: "checks.md SNG-06",
    run,
};

/// The rewrite says it where it acts on the object (src/rewrite/workloads.rs); nothing is left to ask.
fn run(_: &Input, _: &mut Report) {}
