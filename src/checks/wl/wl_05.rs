//! WL-05: live objects against what kubectl last applied. What moves is the live object; the next apply on green would bring the other back.

use crate::checks::few;
use crate::checks::{Answered, Check, Input, Report};
use crate::object::annotation;
use crate::plan::model::Severity;
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) const CHECK: Check = Check {
    id: "WL-05",
    severity: Severity::Warning,
    question: "Was an object edited by hand since it was last applied?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Decide which one wins, and apply it on blue.",
    source: "checks.md WL-05",
    run,
};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Kinds whose shape is the same in all their versions.
const SAME_SHAPE: &[&str] = &["Deployment", "StatefulSet", "DaemonSet", "CronJob"];
/// Fields that old versions had and servers dropped.
const GONE: &[&str] = &["spec.templateGeneration", "spec.rollbackTo"];

fn run(i: &Input, r: &mut Report) {
    let scaled: BTreeSet<String> = i
        .blue
        .iter()
        .filter(|o| o.id.kind == "HorizontalPodAutoscaler")
        .filter_map(|o| {
            let t = o.object.pointer("/spec/scaleTargetRef")?;
            Some(format!(
                "{}/{}/{}",
                t["kind"].as_str()?.to_lowercase(),
                o.id.namespace.as_deref()?,
                t["name"].as_str()?
            ))
        })
        .collect();
    for o in i.blue.iter().filter(|o| o.moves() && !o.is_child()) {
        let Some(last) =
            annotation(o.object, LAST_APPLIED).and_then(|t| serde_json::from_str::<Value>(t).ok())
        else {
            continue;
        };
        let same = last["apiVersion"] == o.object["apiVersion"];
        if !same && !SAME_SHAPE.contains(&o.id.kind.as_str()) || last["kind"] != o.object["kind"] {
            continue;
        }
        let mut drift = vec![];
        for part in ["spec", "data"] {
            if let (Some(a), Some(b)) = (last.get(part), o.object.get(part)) {
                compare(a, b, part, &mut drift);
            }
        }
        drift.retain(|p| {
            !(GONE.contains(&p.as_str()) || p == "spec.replicas" && scaled.contains(&o.name))
        });
        if !drift.is_empty() {
            r.found(
                &o.name,
                format!("differs from what was last applied: {}", few(&drift)),
            );
        }
    }
}

/// Paths at which a live value is not what was applied. What the server added is no drift; a named element that nobody applied is.
fn compare(applied: &Value, live: &Value, path: &str, out: &mut Vec<String>) {
    match (applied, live) {
        (Value::Null, _) => {}
        (Value::String(s), _) if s.is_empty() => {}
        (Value::Object(a), Value::Object(b)) => {
            for (k, v) in a {
                let at = format!("{path}.{k}");
                match b.get(k) {
                    Some(w) => compare(v, w, &at, out),
                    None if empty(v) => {}
                    None => out.push(at),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            let name = |v: &Value| v.get("name").and_then(Value::as_str).map(String::from);
            let (left, right): (Vec<_>, Vec<_>) = (
                a.iter().filter_map(name).collect(),
                b.iter().filter_map(name).collect(),
            );
            if !a.is_empty() && left.len() == a.len() && right.len() == b.len() {
                for (n, v) in left.iter().zip(a) {
                    let at = format!("{path}[{n}]");
                    match right.iter().position(|m| m == n) {
                        Some(m) => compare(v, &b[m], &at, out),
                        None => out.push(at),
                    }
                }
                out.extend(
                    right
                        .iter()
                        .filter(|n| !left.contains(n))
                        .map(|n| format!("{path}[{n}]")),
                );
            } else if a.len() != b.len() {
                out.push(path.into());
            } else {
                for (n, (v, w)) in a.iter().zip(b).enumerate() {
                    compare(v, w, &format!("{path}[{n}]"), out);
                }
            }
        }
        (a, b) if same_scalar(a, b) => {}
        _ => out.push(path.into()),
    }
}

fn empty(v: &Value) -> bool {
    match v {
        Value::Null | Value::Bool(false) => true,
        Value::String(s) => s.is_empty(),
        Value::Array(a) => a.is_empty(),
        Value::Object(o) => o.is_empty(),
        Value::Number(n) => n.as_u64() == Some(0),
        Value::Bool(true) => false,
    }
}

/// Equal as the server sees it: `1000m` is `1`, `"80"` is `80`.
fn same_scalar(a: &Value, b: &Value) -> bool {
    let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), String::from);
    let (a, b) = (text(a), text(b));
    a == b || matches!((quantity(&a), quantity(&b)), (Some(x), Some(y)) if x == y)
}

/// A quantity in thousandths.
fn quantity(text: &str) -> Option<i128> {
    let end = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let factor: i128 = match &text[end..] {
        "m" => 1,
        "" => 1000,
        "k" => 1_000_000,
        "M" => 1_000_000_000,
        "G" => 1_000_000_000_000,
        "Ki" => 1000 << 10,
        "Mi" => 1000 << 20,
        "Gi" => 1000 << 30,
        "Ti" => 1000 << 40,
        _ => return None,
    };
    let (whole, fraction) = text[..end].split_once('.').unwrap_or((&text[..end], ""));
    let digits = fraction.len() as u32;
    let all: i128 = format!("{whole}{fraction}").parse().ok()?;
    (digits <= 9).then(|| all * factor / 10i128.pow(digits))
}
