//! ID-08: the way back of a run that has begun.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use crate::world::cloud::RUN_TAG;

pub(super) const CHECK: Check = Check {
    id: "ID-08",
    severity: Severity::Blocker,
    question: "Is the undo record of the last phase there and readable?",
    needs: &[],
    answered: Answered::Run("the journal"),
    remedy: "Bring the run folder back from where the run was started before going on.",
    source: "checks.md ID-08",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let began = i
        .snapshot
        .aws
        .iter()
        .flat_map(|a| &a.clusters)
        .find(|c| c.name == i.spec.green.name && c.tags.contains_key(RUN_TAG));
    if let Some(c) = began {
        r.ask(
            format!("cluster/{}", c.name),
            "a run has begun, and only its journal knows the way back: `crossfade status` must be able to read it",
        );
    }
}
