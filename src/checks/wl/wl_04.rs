//! WL-04: volumes that would start empty. The rewrite says it where it acts on a volume, a claim or a StatefulSet (src/rewrite/storage.rs,
//! workloads.rs); here are the StatefulSets and claims that an operator would make anew, empty (replay.md 60).

use crate::checks::{Answered, BlueObject, Check, Input, Report, few};
use crate::plan::model::Severity;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECK: Check = Check {
    id: "WL-04",
    severity: Severity::Blocker,
    question: "Does a StatefulSet have volumes without a plan for their data?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Declare how its data moves.",
    source: "checks.md WL-04",
    run,
};

/// Whether an object holds data of its own.
fn holds_data(o: &BlueObject) -> bool {
    let templates = o.object.pointer("/spec/volumeClaimTemplates");
    o.id.kind == "PersistentVolumeClaim"
        || templates
            .and_then(Value::as_array)
            .is_some_and(|t| !t.is_empty())
}

/// Kinds whose own rules say what becomes of the volumes of their children.
const BUILT_IN: &[&str] = &["StatefulSet", "Deployment", "ReplicaSet", "Pod", "Job"];

fn run(i: &Input, r: &mut Report) {
    let moving: BTreeMap<(&str, &str, &str), &BlueObject> = i
        .blue
        .iter()
        .filter(|o| o.moves() && !BUILT_IN.contains(&o.id.kind.as_str()))
        .map(|o| {
            let ns = o.id.namespace.as_deref().unwrap_or("");
            ((o.id.kind.as_str(), ns, o.id.name.as_str()), o)
        })
        .collect();
    let mut by_owner: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for o in i.blue.iter().filter(|o| holds_data(o)) {
        let owners = o.object.pointer("/metadata/ownerReferences");
        for owner in owners.and_then(Value::as_array).into_iter().flatten() {
            let (Some(kind), Some(name)) = (owner["kind"].as_str(), owner["name"].as_str()) else {
                continue;
            };
            let ns = o.id.namespace.as_deref().unwrap_or("");
            if let Some(owner) = moving
                .get(&(kind, ns, name))
                .or(moving.get(&(kind, "", name)))
            {
                by_owner.entry(&owner.name).or_default().insert(&o.name);
            }
        }
    }
    for (owner, children) in by_owner {
        let children: Vec<&str> = children.into_iter().collect();
        r.blocker(
            owner,
            format!("its operator would make empty volumes on green as soon as it wakes, for {}", few(&children)),
            "Restore the data first, by the operator's own backup, and list the object under workloads.skip until then.",
        );
    }
}
