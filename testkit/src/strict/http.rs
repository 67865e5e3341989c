//! What a request to AWS says about itself: service, action, caller, parameters; and answers in each protocol's shape.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use http_body_util::Full;
use serde_json::{Map, Value, json};

use super::xml;

/// An answer of the layer.
pub type Reply = Response<Full<Bytes>>;

/// A request with its body read and its SigV4 scope understood.
#[derive(Debug, Clone)]
pub struct Req {
    pub method: Method,
    /// As sent, percent-encoded.
    pub path: String,
    pub query: Vec<(String, String)>,
    pub raw_query: Option<String>,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Access key id of the caller ("-" when unsigned).
    pub who: String,
    pub region: String,
    /// Signing name: `route53`, `eks`, `iam`, `ec2`, `sts`, `s3` ...
    pub service: String,
    /// Operation name; Route 53, EKS and S3 set it when they route. Of other REST services: method and path.
    pub action: String,
    /// Parameters of the query protocol (form body and query string).
    pub form: Vec<(String, String)>,
}

impl Req {
    pub fn new(parts: http::request::Parts, body: Bytes, host: &str, default_region: &str) -> Req {
        let raw_query = parts.uri.query().map(str::to_owned);
        let query = parse_form(raw_query.as_deref().unwrap_or(""));
        let credential = parts
            .headers
            .get(header::AUTHORIZATION)
            .and_then(|v| v.to_str().ok())
            .and_then(|v| v.split_once("Credential="))
            .map(|(_, rest)| rest.split([',', ' ']).next().unwrap_or("").to_owned())
            .or_else(|| find(&query, "X-Amz-Credential").map(str::to_owned));
        let mut scope = credential.as_deref().unwrap_or("").split('/');
        let who = scope
            .next()
            .filter(|w| !w.is_empty())
            .unwrap_or("-")
            .to_owned();
        let region = scope.nth(1).unwrap_or(default_region).to_owned();
        let service = scope
            .next()
            .map(str::to_owned)
            .unwrap_or_else(|| service_of_host(host));
        let mut form = query.clone();
        let is_form = parts
            .headers
            .get(header::CONTENT_TYPE)
            .and_then(|v| v.to_str().ok())
            .is_some_and(|v| v.starts_with("application/x-www-form-urlencoded"));
        if is_form {
            form.extend(parse_form(&String::from_utf8_lossy(&body)));
        }
        // JSON protocols name the operation in a header: `ServiceQuotasV20190624.GetServiceQuota`.
        let target = parts
            .headers
            .get("x-amz-target")
            .and_then(|v| v.to_str().ok())
            .and_then(|v| v.rsplit('.').next());
        let action = find(&form, "Action").or(target).map_or_else(
            || format!("{} {}", parts.method, parts.uri.path()),
            str::to_owned,
        );
        Req {
            method: parts.method,
            path: parts.uri.path().to_owned(),
            query,
            raw_query,
            headers: parts.headers,
            body,
            who,
            region,
            service,
            action,
            form,
        }
    }

    /// The path's parts, decoded. An encoded slash stays inside its part (ARNs in EKS paths).
    pub fn segments(&self) -> Vec<String> {
        self.path
            .split('/')
            .filter(|s| !s.is_empty())
            .map(percent_decode)
            .collect()
    }

    pub fn query(&self, name: &str) -> Option<&str> {
        find(&self.query, name)
    }

    /// All values of a repeated query parameter.
    pub fn query_all(&self, name: &str) -> Vec<&str> {
        self.query
            .iter()
            .filter(|(k, _)| k == name)
            .map(|(_, v)| v.as_str())
            .collect()
    }

    pub fn form(&self, name: &str) -> Option<&str> {
        find(&self.form, name)
    }

    /// Query-protocol parameters as an object for the call log.
    pub fn form_json(&self) -> Value {
        let mut map = Map::new();
        for (key, value) in &self.form {
            if key != "Action" && key != "Version" && !key.starts_with("X-Amz-") {
                map.insert(key.clone(), json!(value));
            }
        }
        Value::Object(map)
    }
}

/// Services whose requests and errors are JSON, the operation in `x-amz-target`.
pub fn speaks_json(service: &str) -> bool {
    [
        "acm",
        "dynamodb",
        "kms",
        "logs",
        "secretsmanager",
        "servicequotas",
        "ssm",
        "tagging",
    ]
    .contains(&service)
}

fn find<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs
        .iter()
        .find(|(k, _)| k == name)
        .map(|(_, v)| v.as_str())
}

/// `route53.amazonaws.com`, `sts.eu-west-1.amazonaws.com`, `bucket.s3.amazonaws.com`; anything else is taken for S3,
/// the only service that is commonly called unsigned.
fn service_of_host(host: &str) -> String {
    let host = host.split(':').next().unwrap_or(host);
    let Some(rest) = host.strip_suffix(".amazonaws.com") else {
        return "s3".into();
    };
    let labels: Vec<&str> = rest.split('.').collect();
    if labels.iter().any(|l| *l == "s3" || l.starts_with("s3-")) {
        return "s3".into();
    }
    labels.first().copied().unwrap_or("s3").to_owned()
}

pub fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let hex = (bytes[i] == b'%')
            .then(|| text.get(i + 1..i + 3))
            .flatten()
            .and_then(|h| u8::from_str_radix(h, 16).ok());
        match hex {
            Some(byte) => {
                out.push(byte);
                i += 3;
            }
            None => {
                out.push(bytes[i]);
                i += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// RFC 3986 encoding as SigV4 wants it.
pub fn percent_encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

pub fn parse_form(text: &str) -> Vec<(String, String)> {
    text.split('&')
        .filter(|p| !p.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (
                percent_decode(&key.replace('+', " ")),
                percent_decode(&value.replace('+', " ")),
            )
        })
        .collect()
}

/// A unique id in the usual form of request ids; also the source of the layer's other made-up identifiers.
pub fn unique_id() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    let seed = format!(
        "{n}:{:?}:{}",
        std::time::SystemTime::now(),
        std::process::id()
    );
    let h = hex(&sha2_256(seed.as_bytes()));
    format!(
        "{}-{}-4{}-8{}-{}",
        &h[0..8],
        &h[8..12],
        &h[13..16],
        &h[17..20],
        &h[20..32]
    )
}

pub fn sha2_256(bytes: &[u8]) -> Vec<u8> {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).to_vec()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn reply(status: u16, content_type: &'static str, body: String) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(body)));
    *reply.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Ok(id) = HeaderValue::from_str(&unique_id()) {
        headers.insert("x-amzn-requestid", id);
    }
    reply
}

pub fn xml_reply(status: u16, body: String) -> Reply {
    reply(
        status,
        "text/xml",
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{body}"),
    )
}

pub fn json_reply(status: u16, body: &Value) -> Reply {
    reply(status, "application/json", body.to_string())
}

/// A refusal as AWS words it. `service` decides the protocol's shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    pub status: u16,
    pub code: String,
    pub message: String,
    /// More members of a JSON error (`clusterName` ...).
    pub extra: Vec<(String, String)>,
}

impl Refusal {
    pub fn new(status: u16, code: &str, message: impl Into<String>) -> Refusal {
        Refusal {
            status,
            code: code.to_owned(),
            message: message.into(),
            extra: Vec::new(),
        }
    }

    pub fn with(mut self, key: &str, value: &str) -> Refusal {
        self.extra.push((key.to_owned(), value.to_owned()));
        self
    }

    pub fn reply(&self, service: &str) -> Reply {
        let mut out = String::new();
        match service {
            "eks" => {
                let mut body = Map::new();
                body.insert("message".into(), json!(self.message));
                for (key, value) in &self.extra {
                    body.insert(key.clone(), json!(value));
                }
                let mut reply = json_reply(self.status, &Value::Object(body));
                if let Ok(code) = HeaderValue::from_str(&self.code) {
                    reply.headers_mut().insert("x-amzn-errortype", code);
                }
                return reply;
            }
            service if speaks_json(service) => {
                let body = json!({"__type": self.code, "message": self.message});
                return json_reply(self.status, &body);
            }
            "ec2" => {
                out.push_str("<Response><Errors><Error>");
                xml::leaf(&mut out, "Code", &self.code);
                xml::leaf(&mut out, "Message", &self.message);
                out.push_str("</Error></Errors>");
                xml::leaf(&mut out, "RequestID", &unique_id());
                out.push_str("</Response>");
            }
            "s3" => {
                out.push_str("<Error>");
                xml::leaf(&mut out, "Code", &self.code);
                xml::leaf(&mut out, "Message", &self.message);
                xml::leaf(&mut out, "RequestId", &unique_id());
                out.push_str("</Error>");
            }
            _ => {
                out.push_str("<ErrorResponse");
                if let Some(namespace) = namespace(service) {
                    out.push_str(&format!(" xmlns=\"{namespace}\""));
                }
                out.push_str("><Error><Type>");
                out.push_str(if self.status >= 500 {
                    "Receiver"
                } else {
                    "Sender"
                });
                out.push_str("</Type>");
                xml::leaf(&mut out, "Code", &self.code);
                xml::leaf(&mut out, "Message", &self.message);
                out.push_str("</Error>");
                xml::leaf(&mut out, "RequestId", &unique_id());
                out.push_str("</ErrorResponse>");
            }
        }
        xml_reply(self.status, out)
    }
}

fn namespace(service: &str) -> Option<&'static str> {
    Some(match service {
        "route53" => super::route53::NAMESPACE,
        "iam" => "https://iam.amazonaws.com/doc/2010-05-08/",
        "sts" => "https://sts.amazonaws.com/doc/2011-06-15/",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn req(builder: ::http::request::Builder, body: &str) -> Req {
        let (parts, ()) = builder.body(()).expect("request").into_parts();
        Req::new(
            parts,
            Bytes::from(body.to_owned()),
            "127.0.0.1:1",
            "eu-west-1",
        )
    }

    #[test]
    fn service_caller_and_action_are_read_from_signature_form_and_target() {
        let signed = |service: &str| {
            ::http::Request::post("/").header(
                "authorization",
                format!("AWS4-HMAC-SHA256 Credential=AKIA1/20261130/eu-central-1/{service}/aws4_request, SignedHeaders=host, Signature=0"),
            )
        };
        let iam = req(
            signed("iam").header("content-type", "application/x-www-form-urlencoded"),
            "Action=CreateRole&RoleName=a+b%2Fc",
        );
        assert_eq!(
            (
                iam.service.as_str(),
                iam.who.as_str(),
                iam.region.as_str(),
                iam.action.as_str()
            ),
            ("iam", "AKIA1", "eu-central-1", "CreateRole")
        );
        assert_eq!(iam.form_json(), json!({"RoleName": "a b/c"}));
        let quotas = req(
            signed("servicequotas")
                .header("x-amz-target", "ServiceQuotasV20190624.GetServiceQuota"),
            "{}",
        );
        assert_eq!(quotas.action, "GetServiceQuota");
        let presigned = req(
            ::http::Request::get(
                "/?Action=GetCallerIdentity&X-Amz-Credential=K%2F20261130%2Feu-west-1%2Fsts%2Faws4_request",
            ),
            "",
        );
        assert_eq!(
            (presigned.service.as_str(), presigned.who.as_str()),
            ("sts", "K")
        );
        assert_eq!(req(::http::Request::get("/bucket/key"), "").service, "s3");
    }
}
