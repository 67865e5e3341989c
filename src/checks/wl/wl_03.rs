//! WL-03: bare pods (said by the rewrite, src/rewrite/workloads.rs) and controllers older than Deployments, which cannot be parked.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "WL-03",
    severity: Severity::Warning,
    question: "Which pods would nothing make again, or start too early?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Wrap it in a Deployment on blue, or list it under workloads.skip.",
    source: "checks.md WL-03",
    run,
};

fn run(i: &Input, r: &mut Report) {
    for o in i.moving(&["ReplicationController"]) {
        if o.replicas() > 0 {
            r.blocker(
                &o.name,
                format!("a ReplicationController cannot be parked: its {} pods would run on green from the replay on, beside blue's", o.replicas()),
                CHECK.remedy,
            );
        }
    }
}
