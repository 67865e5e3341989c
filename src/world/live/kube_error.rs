//! From a Kubernetes `Status` (or a broken connection) to a [`Class`].

use crate::world::{Class, Error};
use serde_json::Value;

/// A failed request with its HTTP status (0 when there was no answer).
pub(super) struct Failure {
    pub(super) status: u16,
    pub(super) error: Error,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure { status: 0, error }
    }
}

impl From<Failure> for Error {
    fn from(f: Failure) -> Self {
        f.error
    }
}

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
pub(super) fn answer(side: &str, at: &str, status: u16, body: &[u8]) -> Failure {
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
        410 => (Class::Conflict, String::new()),
        429 => (Class::Throttled, String::new()),
        400 | 405 | 406 | 413 | 415 | 422 => (Class::Refused, String::new()),
        s if s >= 500 => (Class::Unreachable, String::new()),
        _ => (Class::Internal, String::new()),
    };
    Failure {
        status,
        error: Error::new(class, at, message).remedy(remedy),
    }
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
        )
        .error
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
        let f = answer("green", "x", 502, b"<html>bad gateway</html>\nmore");
        assert_eq!(f.error.class, Class::Unreachable);
        assert_eq!(f.error.message, "HTTP 502 <html>bad gateway</html>");
    }
}
