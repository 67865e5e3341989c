//! Services of which crossfade needs a call or two (CloudWatch Logs, KMS): AWS's JSON protocol 1.1, signed here. A whole SDK
//! crate for each would double the time of a build for six operations.

use crate::world::live::aws::{self, AwsBase};
use crate::world::live::kube_error::chain;
use crate::world::{Class, Error, Result};
use aws_credential_types::provider::ProvideCredentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use kube::client::ConfigExt;
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// An answer of these services has at most 1 MB by their documentation.
const MAX_ANSWER: usize = 8 << 20;
/// As the SDK's clients are set up.
const ANSWER: Duration = Duration::from_secs(60);

/// A service.
pub(super) struct Service {
    /// Signing name, and first label of its host.
    name: &'static str,
    /// Prefix of operations in `X-Amz-Target`.
    target: &'static str,
    /// Its own endpoint variable.
    variable: &'static str,
}

pub(super) const LOGS: Service = Service {
    name: "logs",
    target: "Logs_20140328",
    variable: "AWS_ENDPOINT_URL_CLOUDWATCH_LOGS",
};

pub(super) const KMS: Service = Service {
    name: "kms",
    target: "TrentService",
    variable: "AWS_ENDPOINT_URL_KMS",
};

impl Service {
    /// Where it answers: declared for it, declared for all, or the region's own.
    fn endpoint(&self, declared: Option<&str>, region: &str) -> String {
        let own = std::env::var(self.variable).ok().filter(|v| !v.is_empty());
        if let Some(url) = own.as_deref().or(declared) {
            return url.trim_end_matches('/').into();
        }
        let suffix = if region.starts_with("cn-") {
            "amazonaws.com.cn"
        } else {
            "amazonaws.com"
        };
        format!("https://{}.{region}.{suffix}", self.name)
    }
}

/// One call. `at` is the resource.
pub(super) async fn call(
    aws: &AwsBase,
    service: &Service,
    operation: &str,
    at: &str,
    body: &Value,
) -> Result<Value> {
    let config = aws.config().await;
    let region = aws.region().await?;
    let unauthorized = |text: String| {
        Error::new(Class::Unauthorized, at, text).remedy(
            "set aws.profile in migration.yaml, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )
    };
    let credentials = config
        .credentials_provider()
        .ok_or_else(|| unauthorized("no AWS credentials".into()))?
        .provide_credentials()
        .await
        .map_err(|e| unauthorized(chain(&e)))?;
    let url = format!("{}/", service.endpoint(config.endpoint_url(), &region));
    let uri: http::Uri = url.parse().map_err(|_| {
        Error::new(
            Class::Refused,
            at,
            format!("the endpoint {url} of {} is no URL", service.name),
        )
    })?;
    let text = body.to_string();
    let target = format!("{}.{operation}", service.target);
    let internal = |what: String| Error::new(Class::Internal, at, what);
    let headers = [
        ("host", uri.authority().map_or("", |a| a.as_str())),
        ("content-type", "application/x-amz-json-1.1"),
        ("x-amz-target", target.as_str()),
    ];
    let identity = credentials.into();
    let params = aws_sigv4::sign::v4::SigningParams::builder()
        .identity(&identity)
        .region(&region)
        .name(service.name)
        .time(SystemTime::now())
        .settings(SigningSettings::default())
        .build()
        .map_err(|e| internal(e.to_string()))?
        .into();
    let signable = SignableRequest::new(
        "POST",
        url.clone(),
        headers.iter().copied(),
        SignableBody::Bytes(text.as_bytes()),
    )
    .map_err(|e| internal(chain(&e)))?;
    let (instructions, _) = sign(signable, &params)
        .map_err(|e| internal(chain(&e)))?
        .into_parts();
    let mut request = http::Request::builder().method("POST").uri(uri.clone());
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let mut request = request
        .body(Full::new(Bytes::from(text)))
        .map_err(|e| internal(e.to_string()))?;
    instructions.apply_to_request_http1x(&mut request);
    let lost = |e: &(dyn std::error::Error + 'static)| {
        Error::new(Class::Unreachable, at, format!("{} (at {url})", chain(e)))
    };
    // The same trust in certificates as every other client here.
    let connector = kube::Config::new(uri)
        .rustls_https_connector()
        .map_err(|e| internal(chain(&e)))?;
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let answer = tokio::time::timeout(ANSWER, client.request(request))
        .await
        .map_err(|e| lost(&e))?
        .map_err(|e| lost(&e))?;
    let status = answer.status().as_u16();
    let answer = Limited::new(answer.into_body(), MAX_ANSWER)
        .collect()
        .await
        .map_err(|e| Error::new(Class::Unreachable, at, format!("the answer broke off: {e}")))?
        .to_bytes();
    understood(at, status, &answer)
}

/// The answer, or its error in our classes. Success without a body is an empty object.
fn understood(at: &str, status: u16, body: &[u8]) -> Result<Value> {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    if (200..300).contains(&status) {
        return match value {
            Value::Object(_) => Ok(value),
            _ if body.is_empty() => Ok(Value::Object(serde_json::Map::new())),
            _ => Err(Error::new(
                Class::Internal,
                at,
                "the answer is no JSON object",
            )),
        };
    }
    // `__type` may come with a namespace in front: `com.amazonaws.logs#ResourceNotFoundException`.
    let code = value["__type"].as_str().unwrap_or("");
    let code = code.rsplit('#').next().unwrap_or(code);
    let message = ["message", "Message"]
        .iter()
        .find_map(|k| value[*k].as_str())
        .unwrap_or("");
    Err(aws::refusal(at, code, message, status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_is_the_regions_unless_one_is_declared() {
        assert_eq!(
            LOGS.endpoint(None, "eu-west-1"),
            "https://logs.eu-west-1.amazonaws.com"
        );
        assert_eq!(
            KMS.endpoint(None, "cn-north-1"),
            "https://kms.cn-north-1.amazonaws.com.cn"
        );
        assert_eq!(
            LOGS.endpoint(Some("http://127.0.0.1:4566/"), "eu-west-1"),
            "http://127.0.0.1:4566"
        );
    }

    #[test]
    fn an_error_has_its_class_with_or_without_a_namespace() {
        let of = |body: &str| understood("log-group/x", 400, body.as_bytes()).unwrap_err();
        let e = of(r#"{"__type":"com.amazonaws.logs#ResourceNotFoundException","message":"no"}"#);
        assert_eq!(e.class, Class::NotFound);
        let e = of(r#"{"__type":"ResourceAlreadyExistsException","message":"there"}"#);
        assert_eq!(e.class, Class::AlreadyExists);
        assert_eq!(e.message, "ResourceAlreadyExistsException: there");
        let e = of(r#"{"__type":"AccessDeniedException","Message":"not you"}"#);
        assert_eq!(e.class, Class::Unauthorized);
        assert!(!e.remedy.is_empty());
        assert_eq!(of("<html>").class, Class::Internal, "never not found");
        assert_eq!(
            understood("x", 200, b"").unwrap(),
            serde_json::json!({}),
            "PutRetentionPolicy answers with nothing"
        );
    }
}
