//! Whether a role's trust policy lets somebody assume it, as far as the document alone says.

use super::principal_of;
use serde_json::Value;

/// `Ok`: it may (as far as the trust goes: a root principal also wants a right of the caller's own). `Err`: why not.
pub fn trusts(trust: &Value, caller: &str) -> Result<(), String> {
    let principal = principal_of(caller);
    let account = caller.split(':').nth(4).unwrap_or_default();
    let mut conditional = None;
    for statement in listed(&trust["Statement"]) {
        let allows = statement["Effect"] == "Allow"
            && words(&statement["Action"])
                .iter()
                .any(|a| matches!(*a, "sts:AssumeRole" | "sts:*" | "*"));
        let named = words(&statement["Principal"]["AWS"]).iter().any(|p| {
            *p == "*"
                || *p == principal
                || *p == caller
                || *p == account
                || p.ends_with(&format!("::{account}:root"))
        }) || statement["Principal"] == "*";
        if !allows || !named {
            continue;
        }
        match statement["Condition"].as_object().filter(|c| !c.is_empty()) {
            None => return Ok(()),
            Some(c) => {
                let keys: Vec<&str> = c
                    .values()
                    .filter_map(Value::as_object)
                    .flat_map(|m| m.keys().map(String::as_str))
                    .collect();
                conditional = Some(keys.join(", "));
            }
        }
    }
    Err(match conditional {
        Some(keys) => {
            format!("its trust policy lets {principal} in only under a condition ({keys})")
        }
        None => format!("its trust policy does not name {principal}"),
    })
}

fn listed(v: &Value) -> Vec<&Value> {
    match v {
        Value::Array(a) => a.iter().collect(),
        Value::Null => vec![],
        one => vec![one],
    }
}

fn words(v: &Value) -> Vec<&str> {
    listed(v).into_iter().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ME: &str = "arn:aws:sts::111122223333:assumed-role/crossfade/run";

    fn said(principal: Value, condition: Value) -> Result<(), String> {
        let mut s = json!({"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"});
        if !condition.is_null() {
            s["Condition"] = condition;
        }
        trusts(&json!({"Version": "2012-10-17", "Statement": [s]}), ME)
    }

    #[test]
    fn a_role_that_names_the_caller_or_its_account_can_be_tried() {
        for p in [
            json!({"AWS": "arn:aws:iam::111122223333:role/crossfade"}),
            json!({"AWS": ["arn:aws:iam::444455556666:root", "arn:aws:iam::111122223333:root"]}),
            json!({"AWS": "111122223333"}),
            json!({"AWS": ME}),
            json!("*"),
        ] {
            assert_eq!(said(p.clone(), Value::Null), Ok(()), "{p}");
        }
    }

    #[test]
    fn a_role_of_single_sign_on_or_behind_mfa_cannot() {
        let sso = json!({"Federated": "arn:aws:iam::111122223333:saml-provider/AWSSSO_1"});
        assert!(
            said(sso, Value::Null)
                .unwrap_err()
                .contains("does not name")
        );
        let mfa = said(
            json!({"AWS": "arn:aws:iam::111122223333:root"}),
            json!({"Bool": {"aws:MultiFactorAuthPresent": "true"}}),
        );
        assert!(mfa.unwrap_err().contains("aws:MultiFactorAuthPresent"));
        assert!(
            said(
                json!({"AWS": "arn:aws:iam::444455556666:root"}),
                Value::Null
            )
            .is_err(),
            "another account"
        );
    }
}
