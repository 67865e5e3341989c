//! From a Kubernetes `Status` (or a broken connection) to a [`Class`].

use crate::world::{Class, Error};
use serde_json::Value;

/// The whole chain of an error: kube's own text stops at "client error (Connect)".
pub(super) fn chain(e: &(dyn std::error::Error + 'static)) -> String {
    let mut parts: Vec<String> = vec![e.to_string()];
    let mut source = e.source();
    while let Some(s) = source {
        let text = s.to_string();
        if parts.last().is_none_or(|last| !last.contains(&text)) {
            parts.push(text);
        }
        source = s.source();
    }
    parts.join(": ")
}

/// No answer: the call may or may not have happened.
pub(super) fn transport(side: &str, at: &str, e: &(dyn std::error::Error + 'static)) -> Error {
    let text = chain(e);
    let lower = text.to_lowercase();
    // Credentials that the server or the plug-in rejects, and a certificate of somebody else, do not heal by repeating.
    if lower.contains("certificate") || lower.contains("auth exec") || lower.contains("auth error")
    {
        return Error::new(Class::Unauthorized, at, text).remedy(format!(
            "check the credentials and the certificate authority of the {side} cluster"
        ));
    }
    Error::new(Class::Unreachable, at, text).remedy(format!(
        "check that the API server of {side} can be reached from here"
    ))
}

/// An answer that is no success.
///
/// `quiet` is for Secrets: a server quotes what it refuses, so only reason and field names may be told.
pub(super) fn answer(side: &str, at: &str, status: u16, body: &[u8], quiet: bool) -> Error {
    let parsed: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let reason = parsed["reason"].as_str().unwrap_or_default();
    let message = match parsed["message"].as_str() {
        Some(m) if !m.is_empty() => m.to_string(),
        _ => {
            let text = String::from_utf8_lossy(body);
            let first: String = text
                .lines()
                .next()
                .unwrap_or_default()
                .chars()
                .take(200)
                .collect();
            format!("HTTP {status} {first}").trim_end().to_string()
        }
    };
    let cause = parsed["details"]["causes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|c| c["reason"].as_str())
        .any(|r| r == "NamespaceTerminating");
    let (class, remedy) = match status {
        401 => (
            Class::Unauthorized,
            format!("{side} does not know who we are: check the credentials"),
        ),
        // 403 says three different things: not permitted, not now, and "an admission rule says no".
        403 if cause || message.contains("is being terminated") => (
            Class::NotReady,
            "wait until the old namespace is gone".to_string(),
        ),
        403 if message.contains(" cannot ") => (
            Class::Unauthorized,
            "give this identity the right that the message names".to_string(),
        ),
        403 => (
            Class::Refused,
            "an admission rule refused it: change the object or the rule".into(),
        ),
        404 => (Class::NotFound, String::new()),
        409 if reason == "AlreadyExists" => (Class::AlreadyExists, String::new()),
        409 => (Class::Conflict, String::new()),
        410 => (Class::Gone, String::new()),
        429 => (Class::Throttled, String::new()),
        400 | 405 | 406 | 413 | 415 | 422 => (Class::Refused, String::new()),
        s if s >= 500 => (Class::Unreachable, String::new()),
        _ => (Class::Internal, String::new()),
    };
    // "Is there already" and "not found" name the object only; whatever else is said of a Secret may quote it.
    let message = match status {
        404 | 409 | 410 | 429 => message,
        403 if class == Class::Unauthorized => message,
        _ if quiet => without_values(status, reason, &parsed),
        _ => message,
    };
    Error::new(class, at, message).remedy(remedy)
}

/// What can be told of a refused Secret: the reason, and which fields.
fn without_values(status: u16, reason: &str, parsed: &Value) -> String {
    let fields: Vec<&str> = parsed["details"]["causes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|c| c["field"].as_str())
        .collect();
    let of = match fields.as_slice() {
        [] => String::new(),
        some => format!(", about {}", some.join(", ")),
    };
    let reason = if reason.is_empty() {
        "no reason"
    } else {
        reason
    };
    format!(
        "HTTP {status} {reason}{of} (the server's words are not shown: they may quote the Secret)"
    )
}

/// Seconds of a `Retry-After` header; a date is not what API servers send.
pub(super) fn retry_after(headers: &http::HeaderMap) -> Option<std::time::Duration> {
    let seconds: u64 = headers
        .get(http::header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(std::time::Duration::from_secs(seconds.min(300)))
}

/// Texts of `Warning: 299 - "text"` headers.
pub(super) fn warnings(headers: &http::HeaderMap) -> Vec<String> {
    headers
        .get_all(http::header::WARNING)
        .iter()
        .filter_map(|w| w.to_str().ok())
        .map(|w| match w.split_once('"') {
            Some((_, text)) => {
                let text = text.trim_end();
                text.strip_suffix('"').unwrap_or(text).replace("\\\"", "\"")
            }
            None => w.into(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn class(status: u16, body: Value) -> Class {
        answer(
            "blue",
            "deployment/a/b",
            status,
            body.to_string().as_bytes(),
            false,
        )
        .class
    }

    #[test]
    fn each_kind_of_no_has_its_class() {
        assert_eq!(
            class(404, json!({"reason": "NotFound", "message": "x"})),
            Class::NotFound
        );
        assert_eq!(
            class(409, json!({"reason": "AlreadyExists"})),
            Class::AlreadyExists
        );
        assert_eq!(class(409, json!({"reason": "Conflict"})), Class::Conflict);
        assert_eq!(class(422, json!({"reason": "Invalid"})), Class::Refused);
        assert_eq!(class(400, json!({"reason": "BadRequest"})), Class::Refused);
        assert_eq!(class(401, json!({})), Class::Unauthorized);
        assert_eq!(
            class(429, json!({"reason": "TooManyRequests"})),
            Class::Throttled
        );
        assert_eq!(class(500, json!({})), Class::Unreachable);
        assert_eq!(class(302, json!({})), Class::Internal);
    }

    #[test]
    fn a_504_on_post_may_have_happened() {
        assert_eq!(class(504, json!({"reason": "Timeout"})), Class::Unreachable);
    }

    #[test]
    fn a_403_is_a_missing_right_or_an_admission_rule_or_a_dying_namespace() {
        assert_eq!(
            class(
                403,
                json!({"message": "pods is forbidden: User \"x\" cannot create resource \"pods\""})
            ),
            Class::Unauthorized
        );
        assert_eq!(
            class(
                403,
                json!({"message": "pods \"a\" is forbidden: violates PodSecurity \"restricted\""})
            ),
            Class::Refused
        );
        assert_eq!(
            class(
                403,
                json!({"message": "forbidden: unable to create new content in namespace a because it is being terminated",
                "details": {"causes": [{"reason": "NamespaceTerminating"}]}})
            ),
            Class::NotReady
        );
    }

    #[test]
    fn an_answer_of_a_proxy_that_is_no_json_is_still_readable() {
        let f = answer("green", "x", 502, b"<html>bad gateway</html>\nmore", false);
        assert_eq!(f.class, Class::Unreachable);
        assert_eq!(f.message, "HTTP 502 <html>bad gateway</html>");
    }

    #[test]
    fn rule_02_an_expired_list_is_told_apart_so_that_it_begins_again() {
        assert_eq!(class(410, json!({"reason": "Expired"})), Class::Gone);
    }

    #[test]
    fn what_a_server_says_of_a_refused_secret_never_quotes_its_value() {
        let body = json!({"reason": "Invalid", "message": "Secret \"a\" is invalid: data[password]: Invalid value: \"hunter2\": no",
            "details": {"causes": [{"reason": "FieldValueInvalid", "message": "Invalid value: \"hunter2\"", "field": "data[password]"}]}});
        let text = body.to_string();
        let said = |quiet| answer("green", "secret/a/b", 422, text.as_bytes(), quiet).message;
        assert!(said(false).contains("hunter2"));
        assert!(!said(true).contains("hunter2"), "{}", said(true));
        assert!(said(true).contains("data[password]"), "{}", said(true));
    }

    #[test]
    fn a_server_says_how_long_to_wait_and_what_it_dropped() {
        let mut headers = http::HeaderMap::new();
        headers.insert("retry-after", "7".parse().unwrap());
        headers.append(
            "warning",
            r#"299 - "unknown field \"spec.foo\"""#.parse().unwrap(),
        );
        headers.append(
            "warning",
            r#"299 - "policy/v1beta1 is deprecated""#.parse().unwrap(),
        );
        assert_eq!(
            retry_after(&headers),
            Some(std::time::Duration::from_secs(7))
        );
        assert_eq!(
            warnings(&headers),
            [
                r#"unknown field "spec.foo""#,
                "policy/v1beta1 is deprecated"
            ]
        );
        headers.insert(
            "retry-after",
            "Wed, 21 Oct 2026 07:28:00 GMT".parse().unwrap(),
        );
        assert_eq!(retry_after(&headers), None);
    }
}
