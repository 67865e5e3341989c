//! IAM-authz: alwaysAllow on blue. On EKS every account without a binding is refused.

use crate::checks::{Answered, Check, Input, Need, Report};
use crate::plan::access;
use crate::plan::model::Severity;
use crate::snapshot::kops::{Source, effective};

pub(super) const CHECK: Check = Check {
    id: "IAM-authz",
    severity: Severity::Blocker,
    question: "Does blue allow every request, so that nobody has RBAC rights on green?",
    needs: &[Need::Kops],
    answered: Answered::Plan,
    remedy: "Give each account a role by RBAC on blue first; it does no harm there.",
    source: "kops.md 2",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let object = "kops/spec.authorization";
    match access::allows_everything(i.snapshot) {
        Some(false) => return,
        None => {
            r.not_checked(
                object,
                "the spec does not say, and kops before 1.36 allows everything then; which kops wrote it is not known",
                "Run discover with the state store (kops-version.txt), or give the full spec (`kops get cluster --full`).",
            );
            return;
        }
        Some(true) => {}
    }
    // Where nobody wrote it, the reader must know why it is so.
    let why = match effective(&i.snapshot.kops).authorization().source {
        Source::Default(why) => format!(" (nobody wrote it: {why})"),
        Source::Spec | Source::Completed => String::new(),
    };
    if i.snapshot.blue.objects.is_empty() {
        r.blocker(
            object,
            format!("blue allows every request{why}, and its accounts and bindings were not read: those without a binding are refused on green"),
            "Run discover with blue's kubeconfig: the finding then names them.",
        );
        return;
    }
    let unbound: Vec<String> = access::unbound_accounts(i.snapshot).into_iter().collect();
    if unbound.is_empty() {
        r.info(
            object,
            format!("blue allows every request{why}, but each account that runs a pod has a binding or holds no token"),
            "Look at what these bindings allow: blue never asked.",
        );
        return;
    }
    r.blocker(
        object,
        format!(
            "blue allows every request{why}; on green these accounts would be refused everything: {}",
            unbound.join(", ")
        ),
        r.check.remedy,
    );
}
