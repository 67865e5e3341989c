//! Trust policies as documents: adding and removing one statement by its Sid leaves every other statement as it was.

use serde_json::{Value, json};

/// What a document says under a Sid.
pub(super) fn statement<'a>(document: &'a Value, sid: &str) -> Option<&'a Value> {
    statements(document).into_iter().find(|s| s["Sid"] == sid)
}

/// A policy's `Statement` may be one object instead of a list.
fn statements(document: &Value) -> Vec<&Value> {
    match &document["Statement"] {
        Value::Array(list) => list.iter().collect(),
        Value::Object(_) => vec![&document["Statement"]],
        _ => vec![],
    }
}

/// The document with one more statement at the end.
pub(super) fn with(document: &Value, sid: &str, statement: &Value) -> Value {
    let mut list: Vec<Value> = statements(document).into_iter().cloned().collect();
    list.push(with_sid(sid, statement));
    replace(document, list)
}

/// The document without the statement of that Sid.
pub(super) fn without(document: &Value, sid: &str) -> Value {
    let list = statements(document)
        .into_iter()
        .filter(|s| s["Sid"] != sid)
        .cloned()
        .collect();
    replace(document, list)
}

/// A statement with its Sid in front.
pub(super) fn with_sid(sid: &str, statement: &Value) -> Value {
    let mut out = json!({"Sid": sid});
    if let (Some(out), Some(fields)) = (out.as_object_mut(), statement.as_object()) {
        for (k, v) in fields {
            if k != "Sid" {
                out.insert(k.clone(), v.clone());
            }
        }
    }
    out
}

fn replace(document: &Value, list: Vec<Value>) -> Value {
    let mut out = if document.is_object() {
        document.clone()
    } else {
        json!({"Version": "2012-10-17"})
    };
    out["Statement"] = Value::Array(list);
    out
}

/// Whether two policies (or parts of one) mean the same: IAM may write a list of one as a plain string and sort lists.
pub(super) fn same_policy(a: &Value, b: &Value) -> bool {
    normal(a) == normal(b)
}

fn normal(v: &Value) -> String {
    fn walk(v: &Value) -> Value {
        match v {
            Value::Object(m) => {
                Value::Object(m.iter().map(|(k, v)| (k.clone(), walk(v))).collect())
            }
            Value::Array(list) if list.len() == 1 => walk(&list[0]),
            Value::Array(list) => {
                let mut list: Vec<Value> = list.iter().map(walk).collect();
                list.sort_by_key(crate::object::canonical);
                Value::Array(list)
            }
            other => other.clone(),
        }
    }
    crate::object::canonical(&walk(v))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn theirs() -> Value {
        json!({"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"},
            {"Sid": "Blue", "Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::000000000000:role/nodes.shop.test"}, "Action": "sts:AssumeRole"},
        ]})
    }

    #[test]
    fn removing_our_statement_gives_back_the_document_to_the_letter() {
        let ours = json!({"Effect": "Allow", "Principal": {"Federated": "x"}, "Action": "sts:AssumeRoleWithWebIdentity"});
        let added = with(&theirs(), "CrossfadeMailer", &ours);
        assert_eq!(
            statement(&added, "CrossfadeMailer").unwrap()["Principal"]["Federated"],
            "x"
        );
        assert_eq!(added["Statement"].as_array().unwrap().len(), 3);
        assert_eq!(
            without(&added, "CrossfadeMailer").to_string(),
            theirs().to_string()
        );
    }

    #[test]
    fn a_document_whose_statement_is_no_list_is_understood() {
        let single =
            json!({"Version": "2012-10-17", "Statement": {"Sid": "Only", "Effect": "Allow"}});
        let added = with(&single, "CrossfadeX", &json!({"Effect": "Allow"}));
        assert_eq!(added["Statement"][0]["Sid"], "Only");
        assert_eq!(
            added["Statement"][1],
            json!({"Sid": "CrossfadeX", "Effect": "Allow"})
        );
    }

    #[test]
    fn a_list_of_one_and_a_plain_string_mean_the_same() {
        assert!(same_policy(
            &json!({"Action": ["a"]}),
            &json!({"Action": "a"})
        ));
        assert!(same_policy(
            &json!({"Action": ["b", "a"]}),
            &json!({"Action": ["a", "b"]})
        ));
        assert!(!same_policy(
            &json!({"Action": "a"}),
            &json!({"Action": "b"})
        ));
    }
}
