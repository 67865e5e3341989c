//! Device requests of resource.k8s.io/v1beta1: what a request asks for moves below `exactly`.

use super::super::removed::Removal;
use super::super::work::{Work, take};
use super::rename;
use serde_json::{Value, json};

/// Rule 65.
pub(super) fn convert(w: &mut Work, r: &Removal) {
    let base = match w.kind() {
        "ResourceClaimTemplate" => "/spec/spec/devices/requests",
        _ => "/spec/devices/requests",
    };
    let requests = w.object.pointer_mut(base).and_then(Value::as_array_mut);
    for request in requests.into_iter().flatten() {
        let mut exactly = json!({});
        for key in [
            "deviceClassName",
            "selectors",
            "allocationMode",
            "count",
            "adminAccess",
            "tolerations",
            "capacity",
        ] {
            if let Some(v) = take(request, &format!("/{key}")) {
                exactly[key] = v;
            }
        }
        if exactly.as_object().is_some_and(|e| !e.is_empty()) {
            request["exactly"] = exactly;
        }
    }
    rename::convert(w, r);
}
