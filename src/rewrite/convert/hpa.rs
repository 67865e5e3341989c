//! Rule 50: autoscalers in v2.

use super::super::removed::{Removal, removal};
use super::super::work::{Work, items, set, text};
use super::rename;
use crate::plan::model::Severity;
use serde_json::{Value, json};

/// v2beta1 spelled metrics flat.
pub(super) fn convert(w: &mut Work, r: &Removal) {
    let metrics: Vec<Value> = items(&w.object, "/spec/metrics").map(metric).collect();
    if !metrics.is_empty() {
        set(&mut w.object, "/spec/metrics", Value::Array(metrics));
    }
    w.changed(50);
    rename::convert(w, r);
}

pub(in crate::rewrite) fn metric(m: &Value) -> Value {
    let mtype = m["type"].as_str().unwrap_or("").to_string();
    // `ContainerResource` to `containerResource`.
    let mut key = mtype.clone();
    if let Some(first) = key.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    let src = m.get(&key).cloned().unwrap_or(json!({}));
    let mut out = json!({});
    match mtype.as_str() {
        "Resource" => {
            out["name"] = src["name"].clone();
        }
        "ContainerResource" => {
            out["name"] = src["name"].clone();
            out["container"] = src["container"].clone();
        }
        "External" => {
            out["metric"] = json!({"name": src["metricName"]});
            if let Some(s) = src.get("metricSelector") {
                out["metric"]["selector"] = s.clone();
            }
        }
        "Pods" | "Object" => {
            out["metric"] = json!({"name": src["metricName"]});
            if let Some(s) = src.get("selector") {
                out["metric"]["selector"] = s.clone();
            }
            if let Some(t) = src.get("target") {
                out["describedObject"] = t.clone();
            }
        }
        _ => return m.clone(),
    }
    out["target"] = if let Some(u) = src.get("targetAverageUtilization") {
        json!({"type": "Utilization", "averageUtilization": u})
    } else if let Some(v) = src.get("targetAverageValue").or(src.get("averageValue")) {
        json!({"type": "AverageValue", "averageValue": v})
    } else if let Some(v) = src.get("targetValue") {
        json!({"type": "Value", "value": v})
    } else {
        Value::Null
    };
    json!({"type": mtype, key: out})
}

/// Of every version: what it scales, and by what.
pub(super) fn current(w: &mut Work) {
    if w.object["apiVersion"] == "autoscaling/v1" {
        super::super::scalers::to_v2(w);
    }
    let mut paths = vec!["/spec/scaleTargetRef".to_string()];
    // An Object metric may name something by a removed version too.
    for n in 0..items(&w.object, "/spec/metrics").count() {
        paths.push(format!("/spec/metrics/{n}/object/describedObject"));
    }
    for path in paths {
        reference(w, &path);
    }
    let external = items(&w.object, "/spec/metrics")
        .any(|m| matches!(m["type"].as_str(), Some("External" | "Object" | "Pods")));
    if external {
        w.find(
            "VER-02",
            Severity::Warning,
            50,
            "scales by custom or external metrics, which an adapter must serve on green",
            "Install the metrics adapter on green before unpark.",
        );
    }
}

/// What is named by a version that green does not serve is named by its successor.
fn reference(w: &mut Work, path: &str) {
    let api = text(&w.object, &format!("{path}/apiVersion"))
        .unwrap_or("")
        .to_string();
    let kind = text(&w.object, &format!("{path}/kind"))
        .unwrap_or("")
        .to_string();
    let (group, version) = api.split_once('/').unwrap_or(("", &api));
    if let Some(r) = removal(group, version, &kind, w.cx.green_minor)
        && let Some(next) = r.successor()
    {
        if let Some(api) = w.object.pointer_mut(&format!("{path}/apiVersion")) {
            *api = json!(next);
        }
        w.changed(65);
    }
}
