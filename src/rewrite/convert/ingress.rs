//! Ingresses before v1: backends have another shape, every path a type. What else happens to an Ingress is `rewrite::ingress`.

use super::super::removed::Removal;
use super::super::work::{Work, set, take};
use super::rename;
use crate::plan::model::Severity;
use serde_json::{Value, json};

/// Rules 65 and 66.
pub(super) fn convert(w: &mut Work, r: &Removal) {
    rename::convert(w, r);
    if let Some(b) = take(&mut w.object, "/spec/backend") {
        set(&mut w.object, "/spec/defaultBackend", backend(&b));
    }
    let mut no_path = false;
    let mut regex = false;
    let rules = w
        .object
        .pointer_mut("/spec/rules")
        .and_then(Value::as_array_mut);
    for rule in rules.into_iter().flatten() {
        let paths = rule
            .pointer_mut("/http/paths")
            .and_then(Value::as_array_mut);
        for p in paths.into_iter().flatten() {
            if p.get("path").is_none_or(|t| t == "") {
                p["path"] = json!("/");
                no_path = true;
            }
            regex |= p["path"]
                .as_str()
                .is_some_and(|t| t.contains(['(', '*', '[', '$', '^']));
            if p.get("pathType").is_none() {
                p["pathType"] = json!("ImplementationSpecific");
            }
            if let Some(b) = p.get("backend").cloned() {
                p["backend"] = backend(&b);
            }
        }
    }
    w.changed(66);
    if no_path || regex {
        let what = match (no_path, regex) {
            (true, true) => "a rule without a path becomes `/`, and a path is a regular expression",
            (true, false) => "a rule without a path becomes `/`",
            _ => "a path is a regular expression",
        };
        w.find(
            "API-06",
            Severity::Warning,
            66,
            format!("{what}; every path gets pathType ImplementationSpecific"),
            "Confirm the path type with the ingress controller of green.",
        );
    }
}

/// serviceName and servicePort become service.name and service.port; a backend by `resource` keeps its shape.
fn backend(b: &Value) -> Value {
    let Some(name) = b.get("serviceName") else {
        return b.clone();
    };
    let port = match b.get("servicePort") {
        Some(Value::Number(n)) => json!({"number": n}),
        // A port in quotes is a number all the same.
        Some(Value::String(s)) => match s.parse::<u16>() {
            Ok(n) => json!({"number": n}),
            Err(_) => json!({"name": s}),
        },
        _ => json!({}),
    };
    json!({"service": {"name": name, "port": port}})
}
