//! Rule 51: an empty selector of a disruption budget means the opposite in policy/v1.

use super::super::removed::Removal;
use super::super::work::{Work, items, set};
use super::rename;
use crate::plan::model::Severity;
use serde_json::{Value, json};

/// By an expression on this label, which no pod has, servers from 1.21 on say in one version what the empty selector says in the other
/// (`Exists` in v1: none; `DoesNotExist` in v1beta1: all).
const MARKER: &str = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";

pub(super) fn convert(w: &mut Work, r: &Removal) {
    let selector = w.object.pointer("/spec/selector").cloned();
    if selector.as_ref().is_some_and(is_empty) {
        w.refuse(51);
        w.find(
            "API-05",
            Severity::Blocker,
            51,
            "an empty selector guards no pod in policy/v1beta1 and every pod of the namespace in policy/v1",
            "Give the budget a selector on blue, delete it, or list it under workloads.skip.",
        );
        return;
    }
    let all = json!({"matchExpressions": [{"key": MARKER, "operator": "DoesNotExist"}]});
    if selector.is_some_and(|s| s == all) {
        // Made as policy/v1 with an empty selector and read as v1beta1.
        set(&mut w.object, "/spec/selector", json!({}));
    }
    w.tidied(51);
    rename::convert(w, r);
}

/// A budget whose selector means nobody carries the marker in policy/v1: it must stay (a text conversion would drop it).
pub(super) fn current(w: &mut Work) {
    if items(&w.object, "/spec/selector/matchExpressions").any(|e| e["key"] == MARKER) {
        w.tidied(51);
    }
}

fn is_empty(selector: &Value) -> bool {
    let none = |k: &str| {
        selector.get(k).is_none_or(|v| match v {
            Value::Object(o) => o.is_empty(),
            Value::Array(a) => a.is_empty(),
            other => other.is_null(),
        })
    };
    !selector.is_null() && none("matchLabels") && none("matchExpressions")
}
