//! What a rule changed: the difference between blue's object and green's, each piece with the rules that made it.

use serde::Serialize;
use serde_json::Value;

/// One piece of the difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hunk {
    /// JSON pointer.
    pub path: String,
    /// What blue has; `None`: nothing.
    pub before: Option<Value>,
    /// What green gets; `None`: it is left out.
    pub after: Option<Value>,
    /// Rules that made it, in the order in which they acted.
    pub rules: Vec<String>,
}

/// What was changed since the last mark.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    last: Value,
    marks: Vec<(String, Vec<Difference>)>,
}

/// A place where two values differ.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference {
    pub path: String,
    pub before: Option<Value>,
    pub after: Option<Value>,
}

impl Trace {
    pub(super) fn begin(object: &Value) -> Trace {
        Trace {
            last: object.clone(),
            marks: vec![],
        }
    }

    /// Everything that changed since the last mark was this rule's doing.
    pub(super) fn mark(&mut self, rule: String, now: &Value) {
        let changes = differences(&self.last, now);
        if !changes.is_empty() {
            self.last = now.clone();
            self.marks.push((rule, changes));
        }
    }

    /// Hunks from blue's object to the target. What no rule answers for carries no rule: a test finds it.
    pub(super) fn hunks(mut self, original: &Value, target: &Value) -> Vec<Hunk> {
        let rest = differences(&self.last, target);
        if !rest.is_empty() {
            self.marks.push((String::new(), rest));
        }
        differences(original, target)
            .into_iter()
            .map(|d| {
                let mut rules: Vec<String> = vec![];
                for (rule, changes) in &self.marks {
                    let touches = changes.iter().any(|c| related(&c.path, &d.path));
                    if touches && !rule.is_empty() && !rules.contains(rule) {
                        rules.push(rule.clone());
                    }
                }
                Hunk {
                    path: d.path,
                    before: d.before,
                    after: d.after,
                    rules,
                }
            })
            .collect()
    }
}

/// Whether one place lies in the other.
fn related(a: &str, b: &str) -> bool {
    let inside = |outer: &str, inner: &str| {
        inner
            .strip_prefix(outer)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    inside(a, b) || inside(b, a)
}

/// Where two values differ, as deep as both have the same shape. A list is compared item by item when it kept its
/// length; else what its two forms share at the head and the tail is left out.
pub(super) fn differences(before: &Value, after: &Value) -> Vec<Difference> {
    let mut out = vec![];
    walk("", Some(before), Some(after), &mut out);
    out
}

fn walk(path: &str, before: Option<&Value>, after: Option<&Value>, out: &mut Vec<Difference>) {
    match (before, after) {
        (Some(a), Some(b)) if a == b => {}
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            for (key, value) in a {
                walk(&join(path, key), Some(value), b.get(key), out);
            }
            for (key, value) in b.iter().filter(|(k, _)| !a.contains_key(*k)) {
                walk(&join(path, key), None, Some(value), out);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
            for (n, (x, y)) in a.iter().zip(b).enumerate() {
                walk(&format!("{path}/{n}"), Some(x), Some(y), out);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
            let short = a.len().min(b.len()) - head;
            let tail = a
                .iter()
                .rev()
                .zip(b.iter().rev())
                .take(short)
                .take_while(|(x, y)| x == y)
                .count();
            let (a, b) = (&a[head..a.len() - tail], &b[head..b.len() - tail]);
            for n in 0..a.len().max(b.len()) {
                walk(&format!("{path}/{}", head + n), a.get(n), b.get(n), out);
            }
        }
        (None, None) => {}
        (before, after) => out.push(Difference {
            path: path.into(),
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}

fn join(path: &str, key: &str) -> String {
    format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn paths(before: Value, after: Value) -> Vec<String> {
        differences(&before, &after)
            .into_iter()
            .map(|d| d.path)
            .collect()
    }

    #[test]
    fn a_difference_is_as_small_as_it_can_be_said() {
        assert_eq!(
            paths(
                json!({"a": {"b": 1, "c": 2}, "gone/by": 1}),
                json!({"a": {"b": 1, "c": 3, "d": 4}})
            ),
            ["/a/c", "/a/d", "/gone~1by"]
        );
        assert_eq!(paths(json!([1, 2, 3]), json!([1, 5, 3])), ["/1"]);
        // One item taken out of the middle is one line, not a shift of all that follow.
        assert_eq!(paths(json!([1, 2, 3, 4]), json!([1, 3, 4])), ["/1"]);
        assert!(paths(json!({"a": []}), json!({"a": []})).is_empty());
    }

    #[test]
    fn a_hunk_names_the_rules_that_made_it_and_no_others() {
        let blue = json!({"spec": {"clusterIP": "100.64.0.9", "ports": [{"port": 80, "nodePort": 30080}]}, "status": {}});
        let mut trace = Trace::begin(&blue);
        let mut now = blue.clone();
        now.as_object_mut().map(|o| o.shift_remove("status"));
        trace.mark("replay.md 9".into(), &now);
        now["spec"]
            .as_object_mut()
            .map(|o| o.shift_remove("clusterIP"));
        trace.mark("replay.md 29".into(), &now);
        now["spec"]["ports"][0]
            .as_object_mut()
            .map(|o| o.shift_remove("nodePort"));
        trace.mark("replay.md 30".into(), &now);
        let hunks = trace.hunks(&blue, &now);
        let said: Vec<(&str, &str)> = hunks
            .iter()
            .map(|h| (h.path.as_str(), h.rules[0].as_str()))
            .collect();
        assert_eq!(
            said,
            [
                ("/spec/clusterIP", "replay.md 29"),
                ("/spec/ports/0/nodePort", "replay.md 30"),
                ("/status", "replay.md 9")
            ]
        );
        assert!(hunks.iter().all(|h| h.rules.len() == 1));
    }

    #[test]
    fn a_change_that_no_rule_answers_for_has_no_rule() {
        let blue = json!({"a": 1});
        let hunks = Trace::begin(&blue).hunks(&blue, &json!({"a": 2}));
        assert_eq!(hunks.len(), 1);
        assert!(hunks[0].rules.is_empty());
    }
}
