//! SNG-01 to SNG-03, SNG-07: what looks as if it must be single but is not declared.

use crate::checks::{Answered, Check, Input, Report};
use crate::object::{ObjectId, annotation};
use crate::plan::model::Severity;
use crate::rewrite::{SINGLETON, template_path};
use serde_json::Value;

pub(super) const CHECK: Check = Check {
    id: "SNG-01",
    severity: Severity::Blocker,
    question: "Active on both, or unrecorded original state?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Suspend one side.",
    source: "checks.md SNG-01",
    run,
};

/// SNG-01 to SNG-03, SNG-07: what looks as if it must be single but is not declared.
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
    for o in &i.snapshot.blue.objects {
        let Some(id) = ObjectId::of(o) else { continue };
        if !matches!(id.kind.as_str(), "Deployment" | "StatefulSet")
            || id.namespace.as_deref() == Some("kube-system")
        {
            continue;
        }
        let name = id.to_string();
        if i.instances.iter().any(|(x, _)| *x == name)
            || !i
                .verdicts
                .iter()
                .any(|v| v.object == name && v.target.is_some())
        {
            continue;
        }
        let Some(t) = template_path(&id.kind) else {
            continue;
        };
        let declared =
            annotation(o, SINGLETON).is_some() || i.spec.workloads.singletons.contains(&name);
        let one = o
            .pointer("/spec/replicas")
            .and_then(Value::as_u64)
            .unwrap_or(1)
            == 1;
        let recreate = o.pointer("/spec/strategy/type").and_then(Value::as_str) == Some("Recreate");
        let containers = || {
            o.pointer(&format!("{t}/spec/containers"))
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
        };
        let words = containers()
            .flat_map(|c| {
                ["command", "args"]
                    .into_iter()
                    .filter_map(|k| c.get(k).and_then(Value::as_array))
                    .flatten()
            })
            .filter_map(Value::as_str)
            .chain([id.name.as_str()])
            .any(|w| {
                let w = w.to_lowercase();
                ["scheduler", "beat", "consumer", "worker", "cron", "clock"]
                    .iter()
                    .any(|k| w.contains(k))
            });
        if !declared && one && (recreate || words) {
            r.warning(
                &name,
                format!(
                    "looks as if it must be single ({}): from unpark on a second one runs on green",
                    if recreate {
                        "one replica, strategy Recreate"
                    } else {
                        "one replica, named like a scheduler or consumer"
                    }
                ),
                format!(
                    "List it under workloads.singletons, or annotate it `{SINGLETON}: \"false\"`."
                ),
            );
        }
        let migrates = o
            .pointer(&format!("{t}/spec/initContainers"))
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .any(|c| c.to_string().to_lowercase().contains("migrat"));
        if migrates {
            r.warning(&name, "an init container seems to change a schema: green's first pod would do so in the shared store", "Run schema changes once, before the freeze.");
        }
    }
}
