//! API-10: annotations that once did work. One that is dead on blue too is no change, and not said.

use crate::checks::BlueObject;
use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use crate::rewrite::features;
use serde_json::Value;

pub(super) const CHECK: Check = Check {
    id: "API-10",
    severity: Severity::Blocker,
    question: "Does an annotation that still acts on blue no longer act on green?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Move it to the field that took its place.",
    source: "checks.md API-10",
    run,
};

/// Asks the node for a profile of AppArmor; green's nodes run SELinux.
const APPARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

fn run(i: &Input, r: &mut Report) {
    let blue = crate::checks::ver::blue_minor(i);
    for o in i.blue.iter().filter(|o| o.moves()) {
        let of_template = o.template().filter(|_| o.id.kind != "Pod");
        let all = [Some(o.object), of_template]
            .into_iter()
            .flatten()
            .filter_map(|x| x.pointer("/metadata/annotations")?.as_object())
            .flatten();
        for (key, value) in all {
            // removed-apis.yaml, removed_features.
            let dead = features().iter().find_map(|f| {
                let (dead, since) = (f.dead.as_ref()?, f.minor()?);
                let named = dead.annotations.iter().any(|name| {
                    key == name || name.ends_with('/') && key.starts_with(name.as_str())
                });
                (named && since <= i.cx.green_minor && blue.is_none_or(|b| b < since))
                    .then_some((since, dead.field.as_str()))
            });
            if let Some((since, field)) = dead
                && !has_field(o, field)
                && !moved(o, key)
            {
                r.blocker(
                    &o.name,
                    format!("{key} has no effect since 1.{since}"),
                    format!("Set {field} instead."),
                );
            }
            if key.starts_with(APPARMOR) && value != "unconfined" {
                r.blocker(
                    &o.name,
                    format!("{key} asks for the AppArmor profile {value}: green's nodes run SELinux and would refuse the pod, so the copy does not ask"),
                    "Take the annotation away, or run nodes with AppArmor and set appArmorProfile there.",
                );
            }
        }
    }
}

/// Whether the rewrite took the annotation off the pod template, into a field (replay.md 53).
fn moved(o: &BlueObject, key: &str) -> bool {
    let here = |template: &Value| {
        let annotations = template.pointer("/metadata/annotations");
        annotations.is_some_and(|a| a.get(key).is_some())
    };
    let path = crate::rewrite::template_path(&o.id.kind);
    let copy = path.and_then(|p| o.on_green()?.pointer(p));
    o.template().is_some_and(here) && copy.is_some_and(|c| !here(c))
}

/// Whether the successor is set already: then the annotation is only a leftover.
fn has_field(o: &BlueObject, field: &str) -> bool {
    let of_pod = |p: &str| o.template().is_some_and(|t| t.pointer(p).is_some());
    match field {
        "publishNotReadyAddresses" => {
            // The rewrite writes it where the annotation asks for it.
            let on =
                |v: &Value| v.pointer("/spec/publishNotReadyAddresses") == Some(&Value::Bool(true));
            on(o.object) || o.on_green().is_some_and(on)
        }
        "priorityClassName" => of_pod("/spec/priorityClassName"),
        _ => {
            let key = field.rsplit('.').next().unwrap_or(field);
            of_pod(&format!("/spec/securityContext/{key}"))
                || o.containers(false).next().is_some()
                    && o.containers(false)
                        .all(|c| c.pointer(&format!("/securityContext/{key}")).is_some())
        }
    }
}
