//! What was meant against what green has: after a write (replay.md 20), before adopting (replay.md 17), before an undo.
//!
//! Defaulted fields of green never count: only what we meant is looked for. Paths are spelled as in a server's own conflicts; values
//! are never told, they may be a Secret's.

use serde_json::Value;
use std::collections::BTreeMap;

/// One field that is not as it was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// As in `.spec.template.spec.containers[name="web"].image`.
    pub path: String,
    /// It is not there at all.
    pub dropped: bool,
}

/// Where an object on green differs from what was meant. Of the metadata, labels, annotations and owners count.
pub fn differences(meant: &Value, there: &Value) -> Vec<Difference> {
    let mut out = vec![];
    for (key, value) in meant.as_object().into_iter().flatten() {
        match key.as_str() {
            // A status is written by controllers, a Secret's stringData is stored as data.
            "apiVersion" | "kind" | "status" | "stringData" => {}
            "metadata" => {
                for field in ["labels", "annotations", "ownerReferences"] {
                    if let Some(v) = value.get(field) {
                        let there = there.get("metadata").and_then(|m| m.get(field));
                        compare(v, there, &mut format!(".metadata.{field}"), &mut out);
                    }
                }
            }
            _ => compare(value, there.get(key), &mut format!(".{key}"), &mut out),
        }
    }
    out
}

/// Whether everything that was meant is there.
#[cfg(test)]
pub fn covers(there: &Value, meant: &Value) -> bool {
    differences(meant, there).is_empty()
}

/// What a server leaves out when it writes an object: it means the same as nothing.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::String(s) => s.is_empty(),
        Value::Array(a) => a.is_empty(),
        Value::Object(m) => m.values().all(is_nothing),
        Value::Bool(true) => false,
    }
}

fn compare(meant: &Value, there: Option<&Value>, path: &mut String, out: &mut Vec<Difference>) {
    let found = |path: &str, dropped| Difference {
        path: path.into(),
        dropped,
    };
    let Some(there) = there else {
        if !is_nothing(meant) {
            out.push(found(path, true));
        }
        return;
    };
    let length = path.len();
    match (meant, there) {
        (Value::Object(m), Value::Object(t)) => {
            for (key, value) in m {
                step(path, key);
                compare(value, t.get(key), path, out);
                path.truncate(length);
            }
        }
        (Value::Array(m), Value::Array(t)) => match (by_name(m), by_name(t)) {
            (Some(items), Some(theirs)) => {
                for (name, item) in items {
                    path.push_str(&format!("[name={name:?}]"));
                    compare(item, theirs.get(name).copied(), path, out);
                    path.truncate(length);
                }
            }
            _ => list(m, t, path, out),
        },
        _ if same(meant, there, path) => {}
        _ => out.push(found(path, false)),
    }
}

/// Lists without names. Servers sort and fill some of them up: what counts is that each item of ours has one of theirs.
fn list(meant: &[Value], there: &[Value], path: &mut String, out: &mut Vec<Difference>) {
    let length = path.len();
    for (n, item) in meant.iter().enumerate() {
        let here = path.clone();
        let alike = |t: &Value| {
            let mut none = vec![];
            compare(item, Some(t), &mut here.clone(), &mut none);
            none.is_empty()
        };
        if there.get(n).is_some_and(alike) || there.iter().any(alike) {
            continue;
        }
        path.push_str(&format!("[{n}]"));
        if meant.len() == there.len() {
            compare(item, there.get(n), path, out);
        } else {
            out.push(Difference {
                path: path.clone(),
                dropped: there.len() < meant.len(),
            });
        }
        path.truncate(length);
    }
}

fn step(path: &mut String, key: &str) {
    let plain = key
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if plain {
        path.push('.');
        path.push_str(key);
    } else {
        path.push_str(&format!("[{key:?}]"));
    }
}

fn by_name(list: &[Value]) -> Option<BTreeMap<&str, &Value>> {
    let items: BTreeMap<&str, &Value> = list
        .iter()
        .map(|i| Some((i.get("name")?.as_str()?, i)))
        .collect::<Option<_>>()?;
    (!items.is_empty() && items.len() == list.len()).then_some(items)
}

/// Fields whose values are quantities: only there `1000m` is `1`. Elsewhere a text is a text.
const QUANTITIES: &[&str] = &[
    ".requests",
    ".limits",
    ".hard",
    ".capacity",
    ".sizeLimit",
    ".divisor",
    ".metrics",
    ".default",
    ".max",
    ".min",
    ".overhead",
    ".podFixed",
];

/// Equal, or spelled anew by the server.
fn same(meant: &Value, there: &Value, path: &str) -> bool {
    if meant == there || is_nothing(meant) && is_nothing(there) {
        return true;
    }
    let typed = [".spec", ".overhead"].iter().any(|p| path.starts_with(p));
    if !typed || !QUANTITIES.iter().any(|q| path.contains(q)) {
        return false;
    }
    match (quantity(meant), quantity(there)) {
        (Some(a), Some(b)) => (a - b).abs() <= a.abs().max(b.abs()) * 1e-9,
        _ => false,
    }
}

/// A Kubernetes quantity as a number.
fn quantity(value: &Value) -> Option<f64> {
    let text = match value {
        Value::String(s) => s.trim(),
        Value::Number(n) => return n.as_f64(),
        _ => return None,
    };
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return None;
    }
    // `1e3` is a number, `1E` an exa; "inf" and "nan" do not begin with a digit.
    if let Ok(n) = text.parse::<f64>() {
        return Some(n);
    }
    let end = text.find(|c: char| c.is_ascii_alphabetic())?;
    let n: f64 = text[..end].parse().ok()?;
    let factor = match &text[end..] {
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1_048_576.0,
        "Gi" => 1_073_741_824.0,
        "Ti" => 1024_f64.powi(4),
        "Pi" => 1024_f64.powi(5),
        "Ei" => 1024_f64.powi(6),
        _ => return None,
    };
    Some(n * factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn paths(meant: Value, there: Value) -> Vec<(String, bool)> {
        differences(&meant, &there)
            .into_iter()
            .map(|d| (d.path, d.dropped))
            .collect()
    }

    #[test]
    fn rule_17_an_object_is_adopted_only_when_every_field_of_ours_is_there() {
        let there = json!({"kind": "Namespace", "metadata": {"name": "shop", "uid": "1", "labels": {"team": "a", "kubernetes.io/metadata.name": "shop"}}, "spec": {"finalizers": ["kubernetes"]}});
        let meant = |team: &str| json!({"kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": team}}});
        assert!(covers(&there, &meant("a")));
        assert_eq!(
            paths(meant("b"), there),
            [(".metadata.labels.team".to_string(), false)]
        );
        assert!(!covers(
            &json!({"data": {"a": "1"}}),
            &json!({"data": {"a": "2"}})
        ));
    }

    #[test]
    fn rule_20_a_dropped_field_is_told_by_its_path() {
        let meant = json!({"spec": {"topologyKeys": ["zone"], "template": {"spec": {"containers": [{"name": "web", "image": "a", "stdin": true}]}}}});
        let there = json!({"spec": {"template": {"spec": {"containers": [{"name": "side"}, {"name": "web", "image": "b"}]}}}});
        assert_eq!(
            paths(meant, there),
            [
                (".spec.topologyKeys".to_string(), true),
                (
                    ".spec.template.spec.containers[name=\"web\"].image".to_string(),
                    false
                ),
                (
                    ".spec.template.spec.containers[name=\"web\"].stdin".to_string(),
                    true
                ),
            ]
        );
    }

    #[test]
    fn what_a_server_spells_anew_fills_up_or_sorts_is_no_difference() {
        for (meant, there) in [
            (
                json!({"requests": {"cpu": "1000m", "memory": "1024Mi", "disk": "1e3"}}),
                json!({"requests": {"cpu": "1", "memory": "1Gi", "disk": 1000}}),
            ),
            (
                json!({"metadata": {"creationTimestamp": null}, "hostNetwork": false, "minReadySeconds": 0, "env": []}),
                json!({"metadata": {}}),
            ),
            (
                json!({"ips": ["10.0.0.9", "10.0.0.1"]}),
                json!({"ips": ["10.0.0.1", "10.0.0.9"]}),
            ),
            (
                json!({"tolerations": [{"key": "a"}]}),
                json!({"tolerations": [{"key": "b"}, {"key": "a", "operator": "Exists"}]}),
            ),
            (
                json!({"ports": [{"port": 80}]}),
                json!({"ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]}),
            ),
        ] {
            let told = paths(json!({"spec": meant}), json!({"spec": there}));
            assert!(told.is_empty(), "{told:?}");
        }
    }

    #[test]
    fn replicas_0_is_not_3_and_a_lost_item_of_a_list_is_named() {
        assert_eq!(
            paths(
                json!({"spec": {"replicas": 0}}),
                json!({"spec": {"replicas": 3}})
            ),
            [(".spec.replicas".to_string(), false)]
        );
        assert_eq!(
            paths(
                json!({"rules": [{"verbs": ["get"]}, {"verbs": ["list"]}]}),
                json!({"rules": [{"verbs": ["get"]}]})
            ),
            [(".rules[1]".to_string(), true)]
        );
        assert_eq!(
            paths(
                json!({"metadata": {"annotations": {"a.b/c": "1"}}}),
                json!({"metadata": {}})
            ),
            [(".metadata.annotations".to_string(), true)]
        );
    }

    #[test]
    fn a_text_that_looks_like_a_quantity_is_a_text_where_no_quantity_stands() {
        let data = |v: &str| json!({"data": {"limits": v}});
        assert!(!covers(&data("1000m"), &data("1")));
        let env = |v: &str| json!({"spec": {"env": [{"name": "SHARE", "value": v}]}});
        assert!(!covers(&env("1000m"), &env("1")));
        let cpu = |v: &str| json!({"spec": {"limits": {"cpu": v}}});
        assert!(covers(&cpu("1"), &cpu("1000m")));
        assert!(!covers(&cpu("1a"), &cpu("1b")));
    }
}
