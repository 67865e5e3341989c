//! SNG-01: cron jobs and declared singletons on both sides.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use serde_json::Value;

pub(super) const CHECK: Check = Check {
    id: "SNG-01",
    severity: Severity::Blocker,
    question: "Is anything that must run once active on both sides?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Suspend one side before going on.",
    source: "checks.md SNG-01",
    run,
};

fn run(i: &Input, r: &mut Report) {
    for s in &i.spec.workloads.singletons {
        let exists = i.verdicts.iter().any(|v| v.object == *s);
        if !exists && !i.snapshot.blue.objects.is_empty() {
            r.blocker(
                s,
                "is listed under workloads.singletons and blue has no such object",
                "Correct the spelling (kind/namespace/name).",
            );
        }
    }
    let Some(green) = &i.snapshot.green else {
        return;
    };
    let suspended = |o: &Value| o.pointer("/spec/suspend") == Some(&Value::Bool(true));
    for o in i.moving(&["CronJob", "Deployment", "StatefulSet"]) {
        let Some(there) = green.find(&o.id.kind, o.id.namespace.as_deref(), &o.id.name) else {
            continue;
        };
        let both = if o.id.kind == "CronJob" {
            !suspended(o.object) && !suspended(there)
        } else {
            let runs = there
                .pointer("/spec/replicas")
                .and_then(Value::as_u64)
                .unwrap_or(1);
            super::declared(i, o) && o.replicas() > 0 && runs > 0
        };
        if both {
            r.found(&o.name, "is active on blue and on green");
        }
    }
}
