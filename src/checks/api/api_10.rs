//! API-10: annotations that once did work. One that is dead on blue too is no change, and not said.

use crate::checks::BlueObject;
use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
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

/// (annotation, exact or a beginning that ends in `/`; first minor that ignores it; field that took its place). removed-apis.yaml, removed_features.
const DEAD: &[(&str, u32, &str)] = &[
    (
        "seccomp.security.alpha.kubernetes.io/pod",
        27,
        "securityContext.seccompProfile",
    ),
    (
        "container.seccomp.security.alpha.kubernetes.io/",
        27,
        "securityContext.seccompProfile",
    ),
    (
        "service.alpha.kubernetes.io/tolerate-unready-endpoints",
        24,
        "publishNotReadyAddresses",
    ),
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        16,
        "priorityClassName",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        12,
        "securityContext.sysctls",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        12,
        "securityContext.sysctls",
    ),
];
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
            let dead = DEAD.iter().find(|(name, since, _)| {
                (key == name || name.ends_with('/') && key.starts_with(name))
                    && *since <= i.cx.green_minor
                    && blue.is_none_or(|b| b < *since)
            });
            if let Some((_, since, field)) = dead
                && !has_field(o, field)
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
                    format!("{key} asks for the AppArmor profile {value}: green's nodes run SELinux and refuse the pod"),
                    "Take the annotation away, or run nodes with AppArmor.",
                );
            }
        }
    }
}

/// Whether the successor is set already: then the annotation is only a leftover.
fn has_field(o: &BlueObject, field: &str) -> bool {
    let of_pod = |p: &str| o.template().is_some_and(|t| t.pointer(p).is_some());
    match field {
        "publishNotReadyAddresses" => {
            o.object.pointer("/spec/publishNotReadyAddresses") == Some(&Value::Bool(true))
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
