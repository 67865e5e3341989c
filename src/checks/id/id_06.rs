//! ID-06: who else is at it. The lock of the journal decides at the start of a run; the account shows the traces of one that began elsewhere.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use crate::world::cloud::RUN_TAG;

pub(super) const CHECK: Check = Check {
    id: "ID-06",
    severity: Severity::Blocker,
    question: "Does another run, or a journal of another plan, hold the migration?",
    needs: &[],
    answered: Answered::Run("the journal's lock"),
    remedy: "Finish, resume or abandon the other run from the folder that has its journal.",
    source: "checks.md ID-06",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let Some(aws) = i.snapshot.aws.as_ref() else {
        return;
    };
    for c in &aws.clusters {
        let Some(run) = c.tags.get(RUN_TAG) else {
            continue;
        };
        let object = format!("cluster/{}", c.name);
        if c.name == i.spec.green.name {
            r.ask(
                object,
                format!("run {run} made it: is the journal of that run in this plan folder?"),
            );
        } else {
            r.warning(
                object,
                format!("was made by run {run} of crossfade under another name: another migration of this account may be under way"),
                "Make sure that it is not of the same blue.",
            );
        }
    }
}
