//! Rule 50: what moves replica counts by itself. An autoscaler rests while its target is at 0; KEDA does not and has to be told.

use super::convert::hpa_metric;
use super::work::{Work, items, set, take, text};
use crate::plan::model::Severity;
use serde_json::{Map, Value, json};

/// KEDA's annotation that holds a target at a count (since 2.8).
pub(crate) const KEDA_PAUSED_AT: &str = "autoscaling.keda.sh/paused-replicas";
/// KEDA's annotation that holds a ScaledObject (since 2.13) or ScaledJob (since 2.11) as it is.
pub(crate) const KEDA_PAUSED: &str = "autoscaling.keda.sh/paused";

/// JSON pointer of an annotation.
pub(crate) fn annotation_pointer(key: &str) -> String {
    format!("/metadata/annotations/{}", key.replace('/', "~1"))
}

/// The object that a ScaledObject scales, as spelled everywhere.
pub(crate) fn keda_target(object: &Value) -> Option<String> {
    let name = text(object, "/spec/scaleTargetRef/name")?;
    let kind = text(object, "/spec/scaleTargetRef/kind").unwrap_or("Deployment");
    let namespace = text(object, "/metadata/namespace")?;
    Some(format!("{}/{namespace}/{name}", kind.to_lowercase()))
}

/// A HorizontalPodAutoscaler.
pub(super) fn autoscaler(w: &mut Work) {
    w.tidied(50);
    let live = w
        .original
        .pointer("/status/currentReplicas")
        .and_then(Value::as_u64);
    let min = w
        .original
        .pointer("/spec/minReplicas")
        .and_then(Value::as_u64)
        .unwrap_or(1);
    if let Some(live) = live.filter(|l| *l > min) {
        w.find(
            "WL-10",
            Severity::Info,
            50,
            format!("runs at {live}, its minimum is {min}: green starts at the live count"),
            "Nothing to do.",
        );
    }
}

/// v1 knows CPU only and hides the rest in annotations: metrics in v2beta1's flat spelling, behavior as the server's own type without
/// JSON names (kubernetes pkg/apis/autoscaling/v1/conversion.go).
pub(super) fn to_v2(w: &mut Work) {
    let taken = |w: &mut Work, key: &str| {
        let pointer = annotation_pointer(&format!("autoscaling.alpha.kubernetes.io/{key}"));
        take(&mut w.object, &pointer).and_then(|v| v.as_str().map(String::from))
    };
    let mut metrics: Vec<Value> = vec![];
    if let Some(percent) = take(&mut w.object, "/spec/targetCPUUtilizationPercentage") {
        metrics.push(json!({"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": percent}}}));
    }
    let mut unread = vec![];
    if let Some(hidden) = taken(w, "metrics") {
        match serde_json::from_str::<Vec<Value>>(&hidden) {
            Ok(list) => metrics.extend(list.iter().map(hpa_metric)),
            Err(_) => unread.push("metrics"),
        }
    }
    if let Some(hidden) = taken(w, "behavior") {
        match serde_json::from_str::<Value>(&hidden) {
            Ok(behavior) => set(&mut w.object, "/spec/behavior", uncapitalised(behavior)),
            Err(_) => unread.push("behavior"),
        }
    }
    if w.object
        .pointer("/metadata/annotations")
        .and_then(Value::as_object)
        .is_some_and(|a| a.is_empty())
    {
        take(&mut w.object, "/metadata/annotations");
    }
    if !metrics.is_empty() {
        set(&mut w.object, "/spec/metrics", Value::Array(metrics));
    }
    set(&mut w.object, "/apiVersion", json!("autoscaling/v2"));
    w.changed(50);
    if !unread.is_empty() {
        w.refuse(50);
        w.find(
            "API-02",
            Severity::Blocker,
            50,
            format!(
                "its annotation of {} is no JSON: what it scales by cannot be told",
                unread.join(" and ")
            ),
            "Read it as autoscaling/v2beta2 or v2 on blue and write it again.",
        );
    }
}

/// `ScaleUp` to `scaleUp`, at every level.
fn uncapitalised(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut out = Map::new();
            for (key, value) in map.into_iter().filter(|(_, v)| !v.is_null()) {
                let mut letters = key.chars();
                let key = letters
                    .next()
                    .map(|c| c.to_lowercase().collect::<String>() + letters.as_str())
                    .unwrap_or_default();
                out.insert(key, uncapitalised(value));
            }
            Value::Object(out)
        }
        Value::Array(list) => Value::Array(list.into_iter().map(uncapitalised).collect()),
        other => other,
    }
}

/// A ScaledObject holds its target at 0 until that wakes; a ScaledJob makes no Jobs before open.
pub(super) fn keda(w: &mut Work) {
    let job = w.kind() == "ScaledJob";
    let (key, parked) = if job {
        (KEDA_PAUSED, "true")
    } else {
        (KEDA_PAUSED_AT, "0")
    };
    let pointer = annotation_pointer(key);
    let was = w.original.pointer(&pointer).cloned().unwrap_or(Value::Null);
    let target = keda_target(w.original);
    let held = job || target.is_some_and(|t| w.cx.singletons.contains(&t));
    w.park(
        &pointer,
        json!(parked),
        if held { "open" } else { "unpark" },
        was,
        50,
    );
    let auth = items(w.original, "/spec/triggers").count();
    w.find(
        "WL-10",
        Severity::Info,
        50,
        format!("scaled by KEDA ({auth} triggers): it is created paused and goes on when its target has blue's size"),
        "See that KEDA runs on green and reaches what it scales by.",
    );
}
