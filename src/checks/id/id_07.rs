//! ID-07: drift between the plan and the world.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "ID-07",
    severity: Severity::Blocker,
    question: "Has anything changed since the plan was made?",
    needs: &[],
    answered: Answered::Run("pins"),
    remedy: "Freeze changes on blue before migrate; plan again when something did change.",
    source: "checks.md ID-07",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let objects = i.blue.iter().filter(|o| o.moves()).count();
    if objects + i.names.len() > 0 {
        r.ask(
            "drift",
            format!("{objects} objects and the records of {} names are compared with the live ones before the first write", i.names.len()),
        );
    }
}
