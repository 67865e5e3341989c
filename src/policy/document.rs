//! Grants to statements, statements to documents that each fit into a managed policy.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Most characters of a managed policy, white space not counted (eks.md 3).
pub const LIMIT: usize = 6_144;
/// Managed policies that a role takes by default (eks.md 3).
pub const PER_ROLE: usize = 10;

/// One action on some things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub writes: bool,
    pub purpose: &'static str,
    pub action: &'static str,
    pub on: BTreeSet<String>,
    pub condition: Value,
}

impl Grant {
    fn key(&self) -> (bool, &'static str, &'static str, &BTreeSet<String>, String) {
        (
            self.writes,
            self.purpose,
            self.action,
            &self.on,
            self.condition.to_string(),
        )
    }
}

impl Ord for Grant {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Grant {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// One policy document.
#[derive(Clone, Debug)]
pub struct Document {
    /// Name for the managed policy, as in `crossfade-shop-read`.
    pub name: String,
    /// Whether it allows changes.
    pub writes: bool,
    /// Its size as AWS counts it.
    pub size: usize,
    /// The document.
    pub policy: Value,
}

/// Characters that count: all but white space.
pub(super) fn size(policy: &Value) -> usize {
    policy
        .to_string()
        .chars()
        .filter(|c| !c.is_whitespace())
        .count()
}

fn wrapped(statements: &[Value]) -> Value {
    json!({"Version": "2012-10-17", "Statement": statements})
}

/// All documents: the reading ones, then the writing ones.
pub(super) fn documents(plan: &str, grants: BTreeSet<Grant>) -> Vec<Document> {
    let mut out = vec![];
    for writes in [false, true] {
        let part: Vec<Grant> = grants
            .iter()
            .filter(|g| g.writes == writes)
            .cloned()
            .collect();
        let packed = packed(statements(part));
        let of = packed.len();
        for (n, statements) in packed.into_iter().enumerate() {
            let policy = wrapped(&statements);
            let number = if of > 1 {
                format!("-{}", n + 1)
            } else {
                String::new()
            };
            out.push(Document {
                name: format!(
                    "crossfade-{plan}-{}{number}",
                    if writes { "write" } else { "read" }
                ),
                writes,
                size: size(&policy),
                policy,
            });
        }
    }
    out
}

/// Grants that differ only in what they are on become one, then those that differ only in the action.
fn statements(grants: Vec<Grant>) -> Vec<Value> {
    let mut things: BTreeMap<(&str, &str, String), BTreeSet<String>> = BTreeMap::new();
    let mut conditions: BTreeMap<String, Value> = BTreeMap::new();
    for g in grants {
        // Reading is one statement for all that takes no ARN, whatever it is read for: AWS knows no finer grain there.
        let any = g.on.len() == 1 && g.on.contains("*") && g.condition.is_null();
        let purpose = match (any, g.writes) {
            (true, false) => "ReadAll",
            _ => g.purpose,
        };
        let condition = g.condition.to_string();
        conditions.insert(condition.clone(), g.condition);
        things
            .entry((purpose, g.action, condition))
            .or_default()
            .extend(g.on);
    }
    // A tag key is a step's own: conditions on keys with the same ARNs join into one list.
    let mut actions: BTreeMap<(&str, BTreeSet<String>, String), BTreeSet<&str>> = BTreeMap::new();
    for ((purpose, action, condition), on) in things {
        let on = without_covered(on);
        actions
            .entry((purpose, on, condition))
            .or_default()
            .insert(action);
    }
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut out = vec![];
    for ((purpose, on, condition), actions) in actions {
        let condition = conditions.get(&condition).cloned().unwrap_or(Value::Null);
        for some in pieces(&actions, &on, &condition) {
            let n = numbers.entry(purpose.to_string()).or_default();
            *n += 1;
            let sid = if *n == 1 {
                purpose.to_string()
            } else {
                format!("{purpose}{n}")
            };
            out.push(statement(&sid, &actions, &some, &condition));
        }
    }
    out
}

/// Leaves out what a `*` at the end of another already covers.
fn without_covered(on: BTreeSet<String>) -> BTreeSet<String> {
    let heads: Vec<String> = on
        .iter()
        .filter_map(|a| a.strip_suffix('*').map(str::to_string))
        .collect();
    on.into_iter()
        .filter(|a| {
            !heads
                .iter()
                .any(|h| a.starts_with(h.as_str()) && *a != format!("{h}*"))
        })
        .collect()
}

fn statement(sid: &str, actions: &BTreeSet<&str>, on: &[String], condition: &Value) -> Value {
    let one_or_all = |list: Vec<&str>| match list.as_slice() {
        [one] => json!(one),
        all => json!(all),
    };
    let mut out = json!({
        "Sid": sid,
        "Effect": "Allow",
        "Action": one_or_all(actions.iter().copied().collect()),
        "Resource": one_or_all(on.iter().map(String::as_str).collect()),
    });
    if !condition.is_null() {
        out["Condition"] = condition.clone();
    }
    out
}

/// The things of a statement in lots that each fit into a document.
fn pieces(actions: &BTreeSet<&str>, on: &BTreeSet<String>, condition: &Value) -> Vec<Vec<String>> {
    let empty = size(&wrapped(&[statement(
        "LongestPurposeOfAll999",
        actions,
        &["".into(), "".into()],
        condition,
    )]));
    let room = LIMIT.saturating_sub(empty);
    let (mut out, mut now, mut used) = (vec![], vec![], 0);
    for arn in on {
        // Quotes and comma.
        let more = arn.chars().count() + 3;
        if used + more > room && !now.is_empty() {
            out.push(std::mem::take(&mut now));
            used = 0;
        }
        used += more;
        now.push(arn.clone());
    }
    out.push(now);
    out
}

/// Statements in order, as many into each document as fit.
fn packed(statements: Vec<Value>) -> Vec<Vec<Value>> {
    let mut out: Vec<Vec<Value>> = vec![];
    for s in statements {
        match out.last_mut() {
            Some(last) => {
                last.push(s);
                if size(&wrapped(last)) > LIMIT
                    && last.len() > 1
                    && let Some(s) = last.pop()
                {
                    out.push(vec![s]);
                }
            }
            None => out.push(vec![s]),
        }
    }
    out
}
