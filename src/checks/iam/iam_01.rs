//! IAM-01: roles by annotation. Those of pods are mapped by the rewrite; what the agent gives to all others is found here.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "IAM-01",
    severity: Severity::Blocker,
    question: "Do pods get a role from kube2iam or kiam that no service account has on green?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Name the role on the pods, or map it under green.roles.",
    source: "checks.md IAM-01",
    run,
};

fn run(i: &Input, r: &mut Report) {
    super::said(i, r);
    for b in i.blue.iter().filter(|b| !b.is_child()) {
        for c in b.containers(false) {
            let image = c["image"].as_str().unwrap_or("");
            if !(image.contains("kube2iam") || image.contains("kiam")) {
                continue;
            }
            let args = ["args", "command"]
                .into_iter()
                .filter_map(|k| c[k].as_array())
                .flatten()
                .filter_map(|a| a.as_str());
            for arg in args {
                let Some((_, role)) = arg.split_once("--default-role=") else {
                    continue;
                };
                r.blocker(
                    &b.name,
                    format!("gives role {role} to every pod without an annotation: on green such pods have no role"),
                    "Find out which pods use it (IAM-04 has hints) and name it for their accounts under green.roles, then waive this finding.",
                );
            }
        }
    }
}
