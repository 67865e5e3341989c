//! Policy documents: statements by name, their size as IAM counts it, and whether one allows no more than another.

use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A statement of a policy of blue.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// `policy/Sid`, or `policy/index` (from 0) where the statement has no Sid.
    pub name: String,
    /// The statement.
    pub body: Value,
}

/// Statements of a document; IAM takes one object for a list of one.
pub fn bodies(document: &Value) -> Vec<&Value> {
    match document.get("Statement") {
        Some(Value::Array(list)) => list.iter().collect(),
        Some(one @ Value::Object(_)) => vec![one],
        _ => vec![],
    }
}

/// Statements of a document with their names.
pub fn statements(policy: &str, document: &Value) -> Vec<Statement> {
    named(policy, bodies(document))
}

/// Names for a list of statements.
pub fn named<'a>(policy: &str, list: impl IntoIterator<Item = &'a Value>) -> Vec<Statement> {
    list.into_iter()
        .enumerate()
        .map(|(i, body)| Statement {
            name: match body["Sid"].as_str().filter(|s| !s.is_empty()) {
                Some(sid) => format!("{policy}/{sid}"),
                None => format!("{policy}/{i}"),
            },
            body: body.clone(),
        })
        .collect()
}

/// A document of some statements. Sids must be unique inside a document: a repeated one is left out (the statement means the same).
pub fn document(list: impl IntoIterator<Item = Value>) -> Value {
    let mut seen = BTreeSet::new();
    let list: Vec<Value> = list
        .into_iter()
        .map(|mut s| {
            if let Some(sid) = s["Sid"].as_str().map(String::from)
                && !seen.insert(sid)
                && let Some(m) = s.as_object_mut()
            {
                m.remove("Sid");
            }
            s
        })
        .collect();
    json!({"Version": "2012-10-17", "Statement": list})
}

/// Characters as IAM counts them: white space does not count (eks.md 3).
pub fn size(document: &Value) -> usize {
    document
        .to_string()
        .chars()
        .filter(|c| !c.is_whitespace())
        .count()
}

/// A field that may be a string or a list of strings.
pub fn list<'a>(statement: &'a Value, field: &str) -> Vec<&'a str> {
    match statement.get(field) {
        Some(Value::String(s)) => vec![s],
        Some(Value::Array(a)) => a.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    }
}

/// Whether a statement allows something.
pub fn allows(statement: &Value) -> bool {
    statement["Effect"] == "Allow"
}

/// Whether a statement denies something.
pub fn denies(statement: &Value) -> bool {
    statement["Effect"] == "Deny"
}

/// Whether `small` allows nothing that `big` does not: the same but for its Sid, or with fewer actions or resources. Exact words only: a
/// narrower pattern is not recognised, which errs on the safe side.
pub fn within(small: &Value, big: &Value) -> bool {
    let subset = |field: &str, lower: bool| {
        let words = |s: &Value| -> BTreeSet<String> {
            list(s, field)
                .into_iter()
                .map(|w| {
                    if lower {
                        w.to_lowercase()
                    } else {
                        w.to_string()
                    }
                })
                .collect()
        };
        let (a, b) = (words(small), words(big));
        a.is_empty() == b.is_empty() && a.is_subset(&b)
    };
    let same = |field: &str| small.get(field) == big.get(field);
    subset("Action", true)
        && subset("Resource", false)
        && [
            "Effect",
            "NotAction",
            "NotResource",
            "Condition",
            "Principal",
        ]
        .into_iter()
        .all(same)
}

/// A statement in a few words: `s3:GetObject, s3:PutObject on arn:aws:s3:::orders/*`.
pub fn words(statement: &Value) -> String {
    let some = |field: &str| -> Option<String> {
        let all = list(statement, field);
        let shown = all.iter().take(4).copied().collect::<Vec<_>>().join(", ");
        match all.len() {
            0 => None,
            1..=4 => Some(shown),
            n => Some(format!("{shown} and {} more", n - 4)),
        }
    };
    let what = some("Action")
        .or_else(|| some("NotAction").map(|w| format!("everything but {w}")))
        .unwrap_or_else(|| "nothing".into());
    let on = some("Resource")
        .or_else(|| some("NotResource").map(|w| format!("everything but {w}")))
        .unwrap_or_else(|| "nothing".into());
    let verb = if denies(statement) { "denies " } else { "" };
    let condition = if statement.get("Condition").is_some() {
        ", under a condition"
    } else {
        ""
    };
    format!("{verb}{what} on {on}{condition}")
}

/// Condition keys of a statement, in lower case.
pub fn condition_keys(statement: &Value) -> BTreeSet<String> {
    statement["Condition"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(_, tests)| tests.as_object())
        .flat_map(|tests| tests.keys().map(|k| k.to_lowercase()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_goes_by_its_sid_or_by_its_place() {
        let doc = json!({"Statement": [{"Sid": "Mail", "Effect": "Allow"}, {"Effect": "Allow"}]});
        let names: Vec<String> = statements("additional.nodes.shop.test", &doc)
            .into_iter()
            .map(|s| s.name)
            .collect();
        assert_eq!(
            names,
            [
                "additional.nodes.shop.test/Mail",
                "additional.nodes.shop.test/1"
            ]
        );
        assert_eq!(
            statements("p", &json!({"Statement": {"Effect": "Allow"}})).len(),
            1
        );
    }

    #[test]
    fn white_space_does_not_count_and_the_rest_does() {
        assert_eq!(size(&json!({"a": "b c"})), r#"{"a":"bc"}"#.len());
    }

    #[test]
    fn fewer_actions_are_within_more_are_not_and_a_lost_condition_is_wider() {
        let big = json!({"Sid": "X", "Effect": "Allow", "Action": ["s3:Get*", "s3:PutObject"], "Resource": ["a", "b"], "Condition": {"Bool": {"aws:SecureTransport": "true"}}});
        let mut small = big.clone();
        small["Action"] = json!("S3:PutObject");
        small["Resource"] = json!("a");
        assert!(within(&small, &big));
        small["Action"] = json!(["s3:PutObject", "s3:DeleteObject"]);
        assert!(!within(&small, &big), "one action more");
        small["Action"] = json!("s3:PutObject");
        small["Resource"] = json!("*");
        assert!(!within(&small, &big), "everywhere");
        small["Resource"] = json!("a");
        small
            .as_object_mut()
            .expect("an object")
            .remove("Condition");
        assert!(!within(&small, &big), "the condition is gone");
    }

    #[test]
    fn sids_stay_unique_when_statements_of_two_policies_meet() {
        let d = document([
            json!({"Sid": "A", "Effect": "Allow"}),
            json!({"Sid": "A", "Effect": "Deny"}),
        ]);
        assert_eq!(d["Statement"][0]["Sid"], "A");
        assert!(d["Statement"][1].get("Sid").is_none());
    }
}
