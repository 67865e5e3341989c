//! CloudWatch Logs: the log group of a control plane, made before the cluster so that its retention is ours (eks.md 1.2).

use serde_json::Value;

use crate::strict::http::{Refusal, Req};

/// Days that a group can keep its events.
const RETENTION: &[u64] = &[
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922,
    3288, 3653,
];

fn invalid(message: String) -> Refusal {
    Refusal::new(400, "InvalidParameterException", message)
}

pub(super) fn check(req: &Req) -> Result<(), Refusal> {
    let body: Value = serde_json::from_slice(&req.body).unwrap_or_default();
    match req.action.as_str() {
        "CreateLogGroup" => {
            let name = body["logGroupName"].as_str().unwrap_or("");
            let plain = |c: char| c.is_ascii_alphanumeric() || ".-_/#".contains(c);
            if !(1..=512).contains(&name.len()) || !name.chars().all(plain) {
                return Err(invalid(format!(
                    "1 validation error detected: Value '{name}' at 'logGroupName' failed to satisfy constraint: Member must satisfy regular expression pattern: [\\.\\-_/#A-Za-z0-9]+"
                )));
            }
            Ok(())
        }
        "PutRetentionPolicy" => {
            let days = &body["retentionInDays"];
            if days.as_u64().is_some_and(|d| RETENTION.contains(&d)) {
                return Ok(());
            }
            Err(invalid(format!(
                "1 validation error detected: Value '{days}' at 'retentionInDays' failed to satisfy constraint: Member must be one of {RETENTION:?}"
            )))
        }
        _ => Ok(()),
    }
}
