//! Policy documents as IAM takes them: trust policies and identity-based ones.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::strict::http::Refusal;

pub(super) fn malformed(message: impl Into<String>) -> Refusal {
    Refusal::new(400, "MalformedPolicyDocument", message)
}

/// Non-white-space characters: how IAM counts policy sizes.
pub(super) fn size(document: &str) -> usize {
    document.chars().filter(|c| !c.is_whitespace()).count()
}

pub(super) fn many(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items.clone(),
        Value::Null => vec![],
        other => vec![other.clone()],
    }
}

/// The statements of a document, each with a sound effect, actions and Sid.
fn statements(document: &str) -> Result<Vec<Value>, Refusal> {
    let policy: Value = serde_json::from_str(document)
        .map_err(|e| malformed(format!("This policy contains invalid Json: {e}")))?;
    let statements = many(&policy["Statement"]);
    if statements.is_empty() {
        return Err(malformed("Syntax errors in policy: there is no Statement."));
    }
    let version = &policy["Version"];
    if !version.is_null() && *version != "2012-10-17" && *version != "2008-10-17" {
        return Err(malformed("The policy must contain a valid version string."));
    }
    let mut sids = BTreeSet::new();
    for statement in &statements {
        if statement["Effect"] != "Allow" && statement["Effect"] != "Deny" {
            return Err(malformed(
                "Syntax errors in policy: Effect must be Allow or Deny.",
            ));
        }
        let actions = [many(&statement["Action"]), many(&statement["NotAction"])].concat();
        if actions.is_empty() {
            return Err(malformed("Policy statement must contain actions."));
        }
        if let Some(bare) = actions
            .iter()
            .filter_map(Value::as_str)
            .find(|a| *a != "*" && !a.contains(':'))
        {
            return Err(malformed(format!(
                "Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc. ('{bare}')"
            )));
        }
        if let Some(sid) = statement["Sid"].as_str() {
            if !sid.chars().all(|c| c.is_ascii_alphanumeric()) {
                return Err(malformed(format!(
                    "Statement IDs (SID) must be alpha-numeric: '{sid}'"
                )));
            }
            if !sid.is_empty() && !sids.insert(sid.to_owned()) {
                return Err(malformed(format!(
                    "Statement IDs (SID) in a single policy must be unique: '{sid}'"
                )));
            }
        }
    }
    Ok(statements)
}

/// Checks a trust policy by itself; gives back the AWS principals that it names.
pub(super) fn trust(document: &str) -> Result<Vec<String>, Refusal> {
    let mut principals = vec![];
    for statement in statements(document)? {
        if statement["Principal"].is_null() && statement["NotPrincipal"].is_null() {
            return Err(malformed("Missing required field Principal"));
        }
        if !statement["Resource"].is_null() {
            return Err(malformed("Has prohibited field Resource"));
        }
        let foreign = many(&statement["Action"])
            .iter()
            .filter_map(Value::as_str)
            .any(|a| *a != *"*" && !a.starts_with("sts:"));
        if foreign {
            return Err(malformed(
                "AssumeRole policy may only specify STS AssumeRole actions.",
            ));
        }
        principals.extend(
            many(&statement["Principal"]["AWS"])
                .iter()
                .map(|p| p.as_str().unwrap_or("").to_owned()),
        );
    }
    Ok(principals)
}

/// Checks an identity-based policy by itself.
pub(super) fn identity(document: &str) -> Result<(), Refusal> {
    for statement in statements(document)? {
        if !statement["Principal"].is_null() || !statement["NotPrincipal"].is_null() {
            return Err(malformed("Policy document should not specify a principal."));
        }
        let resources = [
            many(&statement["Resource"]),
            many(&statement["NotResource"]),
        ]
        .concat();
        if resources.is_empty() {
            return Err(malformed("Policy statement must contain resources."));
        }
        if let Some(bad) = resources
            .iter()
            .filter_map(Value::as_str)
            .find(|r| *r != "*" && (!r.starts_with("arn:") || r.split(':').count() < 6))
        {
            return Err(malformed(format!(
                "Resource {bad} must be in ARN format or \"*\"."
            )));
        }
    }
    Ok(())
}
