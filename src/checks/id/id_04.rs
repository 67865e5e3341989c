//! ID-04: settings of the person who runs it, which a pure planner cannot see.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "ID-04",
    severity: Severity::Blocker,
    question: "Could a variable or a default of whoever runs crossfade win over what the plan was made for?",
    needs: &[],
    answered: Answered::Run("pins"),
    remedy: "Name the context and the profile in migration.yaml, and unset what is set besides.",
    source: "checks.md ID-04",
    run,
};

/// The plan sees where migration.yaml leaves a choice to the environment; what is set there only the run sees.
fn run(i: &Input, r: &mut Report) {
    let mut open = vec![];
    if i.spec.blue.kubeconfig.is_some() && i.spec.blue.context.is_none() {
        open.push("blue.context is not set, so the current context of the kubeconfig decides");
    }
    if i.snapshot.aws.is_some() && i.spec.aws.profile.is_none() {
        open.push("aws.profile is not set, so AWS_PROFILE, AWS_ACCESS_KEY_ID or the machine's role decides");
    }
    if !open.is_empty() {
        r.ask(
            "environment",
            format!("{}; before each write the account, region and cluster are compared with the plan's", open.join("; ")),
        );
    }
}
