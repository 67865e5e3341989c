//! WL-09: owners and finalizers (said by the rewrite, src/rewrite/metadata.rs), and controllers that have to change a pod before it starts: those
//! who inject sidecars (replay.md 45).

use crate::checks::{Answered, Check, Input, RUNNING, Report, few};
use crate::plan::model::Severity;
use crate::rewrite::injected::INJECTORS;
use std::collections::BTreeSet;

pub(super) const CHECK: Check = Check {
    id: "WL-09",
    severity: Severity::Warning,
    question: "Does an object name an owner or a controller that green does not have?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Check that nothing relies on it being deleted with its owner.",
    source: "checks.md WL-09",
    run,
};

fn run(i: &Input, r: &mut Report) {
    for injector in INJECTORS {
        let namespaces: BTreeSet<&str> = i
            .of_kind("Namespace")
            .filter(|o| injector.asked_by_namespace(o.object))
            .map(|o| o.id.name.as_str())
            .collect();
        let mut asking = vec![];
        let mut carrying = vec![];
        for o in i.moving(RUNNING).chain(i.moving(&["CronJob", "Job"])) {
            let Some(template) = o.template() else {
                continue;
            };
            if injector.carried_by(template) {
                carrying.push(o.name.as_str());
            } else if injector.asked_by(template)
                || o.id
                    .namespace
                    .as_deref()
                    .is_some_and(|n| namespaces.contains(n))
            {
                asking.push(o.name.as_str());
            }
        }
        asking.sort_unstable();
        carrying.sort_unstable();
        if !asking.is_empty() {
            r.found(
                asking[0],
                format!("{} puts its containers into the pods of {} workloads: {}; without it on green they start bare", injector.name, asking.len(), few(&asking)),
            );
        }
        if !carrying.is_empty() {
            r.found(
                carrying[0],
                format!("containers of {} are written into the templates of {} workloads, in blue's version and with blue's trust: {}", injector.name, carrying.len(), few(&carrying)),
            );
        }
    }
}
