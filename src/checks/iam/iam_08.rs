//! IAM-08: static keys work on both sides, so what they pay for happens on both sides too.

use crate::checks::{Answered, Check, Input, Need, Report};
use crate::plan::iam::workloads::is_key_name;
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "IAM-08",
    severity: Severity::Info,
    question: "Are there static AWS keys in Secrets or environments?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Nothing to do for access; see SNG for work that would be done twice.",
    source: "checks.md IAM-08",
    run,
};

fn run(i: &Input, r: &mut Report) {
    for b in i.blue.iter().filter(|b| !b.is_child() && b.moves()) {
        let in_secret = b.id.kind == "Secret"
            && b.object["data"]
                .as_object()
                .into_iter()
                .flatten()
                .any(|(k, _)| is_key_name(k));
        let literal = b.containers(true).any(|c| {
            c["env"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|e| e["name"].as_str().is_some_and(is_key_name) && e["value"].is_string())
        });
        if in_secret {
            r.found(
                &b.name,
                "holds AWS access keys: they work on green as on blue, at the same time",
            );
        }
        if literal {
            r.warning(
                &b.name,
                "has AWS access keys as plain text in its environment: they work on green as on blue, and everybody who reads the object has them",
                "Put them into a Secret, or give its account a role under green.roles.",
            );
        }
    }
}
