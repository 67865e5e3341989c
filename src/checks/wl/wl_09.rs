//! WL-09: owners and finalizers (the rewrite says them, src/rewrite/owners.rs), Secrets and ConfigMaps that a pod names and that green will not have,
//! and controllers that have to change a pod before it starts: those who inject sidecars (replay.md 45).

use crate::checks::words::{containers, templates};
use crate::checks::{Answered, Check, Input, RUNNING, Report, few};
use crate::plan::model::{Fate, Severity};
use crate::rewrite::injected::INJECTORS;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

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
    injected(i, r);
    named(i, r);
}

/// Who injects sidecars has to be there before the pods.
fn injected(i: &Input, r: &mut Report) {
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

/// A Secret or ConfigMap without which a pod does not start. The reference itself stays as it is (migtools/crane#501).
fn named(i: &Input, r: &mut Report) {
    // Who gave a dump without Secrets did not say that there are none.
    let mut there: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for o in i.blue.iter() {
        if matches!(o.id.kind.as_str(), "Secret" | "ConfigMap") && o.id.group().is_empty() {
            there.entry(o.id.kind.as_str()).or_default().insert(&o.name);
        }
    }
    for (object, template) in templates(i) {
        let Some(ns) = object.split('/').nth(1) else {
            continue;
        };
        let (mut absent, mut left) = (BTreeSet::new(), BTreeSet::new());
        for (kind, name) in needed(template) {
            let Some(known) = there.get(kind) else {
                continue;
            };
            let full = format!("{}/{ns}/{name}", kind.to_lowercase());
            let verdict = i
                .verdicts
                .binary_search_by(|v| v.object.as_str().cmp(&full))
                .ok()
                .map(|n| &i.verdicts[n]);
            if !known.contains(full.as_str()) {
                // What the server itself puts into each namespace.
                if name != "kube-root-ca.crt" {
                    absent.insert(full);
                }
            } else if verdict.is_some_and(|v| {
                v.verdict == Fate::Skipped
                    && v.rules
                        .iter()
                        .any(|r| r == "replay.md 38" || r == "spec workloads.skip")
            }) {
                left.insert(full);
            }
        }
        let say = |names: BTreeSet<String>| few(&names.into_iter().collect::<Vec<_>>());
        if !absent.is_empty() {
            r.warning(
                object,
                format!("its pods need {}, which is not there on blue either: they do not start on green", say(absent)),
                "Make it, or mark the reference optional; it is copied as it is.",
            );
        }
        if !left.is_empty() {
            r.warning(
                object,
                format!("its pods need {}, which is not copied: they do not start on green", say(left)),
                "Let the pods use the token that the server mounts by itself, or make the object on green before unpark.",
            );
        }
    }
}

/// Secrets and ConfigMaps that pods of a template cannot start without.
fn needed(template: &Value) -> Vec<(&'static str, &str)> {
    let mut out = vec![];
    let list = |p: &str| {
        template
            .pointer(p)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let must = |r: &&Value| r.get("optional") != Some(&Value::Bool(true));
    for v in list("/spec/volumes") {
        if let Some(s) = v.get("secret").filter(must) {
            out.extend(s["secretName"].as_str().map(|n| ("Secret", n)));
        }
        if let Some(c) = v.get("configMap").filter(must) {
            out.extend(c["name"].as_str().map(|n| ("ConfigMap", n)));
        }
    }
    for c in containers(template) {
        for e in c["envFrom"].as_array().into_iter().flatten() {
            for (field, kind) in [("secretRef", "Secret"), ("configMapRef", "ConfigMap")] {
                if let Some(r) = e.get(field).filter(must) {
                    out.extend(r["name"].as_str().map(|n| (kind, n)));
                }
            }
        }
        for e in c["env"].as_array().into_iter().flatten() {
            for (field, kind) in [("secretKeyRef", "Secret"), ("configMapKeyRef", "ConfigMap")] {
                if let Some(r) = e.pointer(&format!("/valueFrom/{field}")).filter(must) {
                    out.extend(r["name"].as_str().map(|n| (kind, n)));
                }
            }
        }
    }
    out
}
