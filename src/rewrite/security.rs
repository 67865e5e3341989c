//! Rule 53: seccomp and AppArmor annotations become fields of the security context; servers of today do not read the annotations any more.

use super::work::{Work, items, set, take};
use crate::plan::model::Severity;
use serde_json::{Value, json};

const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APPARMOR_CONTAINER: &str = "container.apparmor.security.beta.kubernetes.io/";

/// A profile as the fields spell it (removed-apis.yaml, seccomp-annotations); `None` for what no server ever took.
fn profile(annotation: &str) -> Option<Value> {
    Some(match annotation {
        "runtime/default" | "docker/default" => json!({"type": "RuntimeDefault"}),
        "unconfined" => json!({"type": "Unconfined"}),
        other => {
            let file = other.strip_prefix("localhost/")?;
            json!({"type": "Localhost", "localhostProfile": file})
        }
    })
}

pub(super) fn rewrite(w: &mut Work, template: &str) {
    let path = format!("{template}/metadata/annotations");
    let Some(annotations) = w.object.pointer(&path).and_then(Value::as_object).cloned() else {
        return;
    };
    let mut local = vec![];
    let mut changed = false;
    for (key, value) in &annotations {
        let value = value.as_str().unwrap_or("");
        let seccomp = key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER);
        let apparmor = key.starts_with(APPARMOR_CONTAINER);
        if !seccomp && !apparmor {
            continue;
        }
        // What no server ever read is left, and asked about (API-10).
        let Some(profile) = profile(value) else {
            continue;
        };
        take(&mut w.object, &format!("{path}/{}", key.replace('/', "~1")));
        changed = true;
        if apparmor && profile["type"] != "Unconfined" {
            // A node without AppArmor refuses a pod that demands a profile: dropped, and said by API-10.
            continue;
        }
        if profile["type"] == "Localhost" {
            local.push(value.to_string());
        }
        let (field, container) = if key == SECCOMP_POD {
            ("seccompProfile", None)
        } else if let Some(name) = key.strip_prefix(SECCOMP_CONTAINER) {
            ("seccompProfile", Some(name))
        } else {
            ("appArmorProfile", key.strip_prefix(APPARMOR_CONTAINER))
        };
        match container {
            None => put(
                w,
                &format!("{template}/spec/securityContext/{field}"),
                profile,
            ),
            Some(name) => {
                for list in ["containers", "initContainers"] {
                    let list = format!("{template}/spec/{list}");
                    let at = items(&w.object, &list).position(|c| c["name"] == name);
                    if let Some(n) = at {
                        put(
                            w,
                            &format!("{list}/{n}/securityContext/{field}"),
                            profile.clone(),
                        );
                    }
                }
            }
        }
    }
    if w.object
        .pointer(&path)
        .and_then(Value::as_object)
        .is_some_and(|a| a.is_empty())
    {
        take(&mut w.object, &path);
    }
    if changed {
        w.changed(53);
    }
    if !local.is_empty() {
        w.find(
            "CAP-12",
            Severity::Warning,
            53,
            format!("asks for seccomp profiles that are files of its node: {}", local.join(", ")),
            "Put them below /var/lib/kubelet/seccomp on green's nodes (green.nodeGroups userData), or use RuntimeDefault.",
        );
    }
}

/// A field that is there already is what its owner wants.
fn put(w: &mut Work, pointer: &str, value: Value) {
    if w.object.pointer(pointer).is_none() {
        set_in(&mut w.object, pointer, value);
    }
}

/// [`set`], through the number of a list's item.
fn set_in(object: &mut Value, pointer: &str, value: Value) {
    let Some((item, rest)) = pointer.split_once("/securityContext/") else {
        return;
    };
    if let Some(item) = object.pointer_mut(item) {
        set(item, &format!("/securityContext/{rest}"), value);
    }
}
