//! The emulator behind the layer: forwarding, and the layer's own questions to it.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, header};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use super::State;
use super::http::{Refusal, Reply, Req, percent_encode};
use super::xml::Element;

pub type Client = hyper_util::client::legacy::Client<HttpConnector, Full<Bytes>>;

pub fn client() -> Client {
    hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build_http()
}

/// Headers that belong to one connection, not to the message.
const HOP: &[HeaderName] = &[
    header::CONNECTION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::EXPECT,
    header::PROXY_AUTHORIZATION,
];

fn strip(headers: &mut HeaderMap) {
    for name in HOP {
        headers.remove(name);
    }
    headers.remove("keep-alive");
    headers.remove("proxy-connection");
}

impl State {
    /// Hands a request on as it came and gives the answer back as it comes.
    pub async fn forward(&self, req: &Req) -> Reply {
        let query = req
            .raw_query
            .as_ref()
            .map(|q| format!("?{q}"))
            .unwrap_or_default();
        let mut headers = req.headers.clone();
        strip(&mut headers);
        headers.remove(header::CONTENT_LENGTH);
        self.send(
            &req.service,
            req.method.clone(),
            &format!("{}{query}", req.path),
            headers,
            req.body.clone(),
        )
        .await
    }

    async fn send(
        &self,
        service: &str,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Reply {
        let unreachable = |why: String| {
            Refusal::new(
                503,
                "ServiceUnavailable",
                format!(
                    "the emulator at {} did not answer: {why}",
                    self.config.upstream
                ),
            )
            .reply(service)
        };
        let head = method == Method::HEAD;
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.config.upstream))
            .body(Full::new(body));
        let mut request = match request {
            Ok(request) => request,
            Err(error) => return unreachable(error.to_string()),
        };
        *request.headers_mut() = headers;
        let reply = match self.client.request(request).await {
            Ok(reply) => reply,
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                return unreachable(cause.unwrap_or_else(|| error.to_string()));
            }
        };
        let (mut parts, body) = reply.into_parts();
        strip(&mut parts.headers);
        if !head {
            parts.headers.remove(header::CONTENT_LENGTH);
        }
        match body.collect().await {
            Ok(body) => Reply::from_parts(parts, Full::new(body.to_bytes())),
            Err(error) => unreachable(error.to_string()),
        }
    }

    /// Asks the emulator a query-protocol question in somebody's name: status and body.
    pub async fn ask(
        &self,
        service: &str,
        who: &str,
        action: &str,
        params: &[(&str, &str)],
    ) -> (u16, Element) {
        let version = match service {
            "ec2" => "2016-11-15",
            "iam" => "2010-05-08",
            _ => "2011-06-15",
        };
        let mut form = format!("Action={action}&Version={version}");
        for (key, value) in params {
            form.push_str(&format!(
                "&{}={}",
                percent_encode(key),
                percent_encode(value)
            ));
        }
        let mut headers = self.own_headers(service, who);
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/x-www-form-urlencoded"),
        );
        let reply = self
            .send(service, Method::POST, "/", headers, Bytes::from(form))
            .await;
        let (status, text) = text_of(reply).await;
        (status, Element::parse(&text).unwrap_or_default())
    }

    /// Asks the emulator a question of a JSON protocol (`TrentService.DescribeKey`) in somebody's name: status and body.
    pub async fn ask_json(
        &self,
        service: &str,
        who: &str,
        target: &str,
        body: &Value,
    ) -> (u16, Value) {
        let mut headers = self.own_headers(service, who);
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/x-amz-json-1.1"),
        );
        if let Ok(target) = HeaderValue::from_str(target) {
            headers.insert("x-amz-target", target);
        }
        let body = Bytes::from(body.to_string());
        let reply = self.send(service, Method::POST, "/", headers, body).await;
        let (status, text) = text_of(reply).await;
        (status, serde_json::from_str(&text).unwrap_or_default())
    }

    fn own_headers(&self, service: &str, who: &str) -> HeaderMap {
        let who = if who == "-" { "test" } else { who };
        let mut headers = HeaderMap::new();
        let credential = format!(
            "AWS4-HMAC-SHA256 Credential={who}/20260101/{}/{service}/aws4_request, SignedHeaders=host, Signature=00",
            self.config.region
        );
        if let Ok(value) = HeaderValue::from_str(&credential) {
            headers.insert(header::AUTHORIZATION, value);
        }
        headers
    }

    pub async fn vpc_exists(&self, who: &str, id: &str) -> bool {
        let (status, _) = self
            .ask("ec2", who, "DescribeVpcs", &[("VpcId.1", id)])
            .await;
        status == 200
    }

    pub async fn health_check_exists(&self, who: &str, id: &str) -> bool {
        let reply = self
            .send(
                "route53",
                Method::GET,
                &format!("/2013-04-01/healthcheck/{}", percent_encode(id)),
                self.own_headers("route53", who),
                Bytes::new(),
            )
            .await;
        reply.status().as_u16() == 200
    }
}

/// Status and body of an answer.
pub async fn text_of(reply: Reply) -> (u16, String) {
    let status = reply.status().as_u16();
    let body = reply
        .into_body()
        .collect()
        .await
        .map(|b| b.to_bytes())
        .unwrap_or_default();
    (status, String::from_utf8_lossy(&body).into_owned())
}

/// Operation name of an S3 request: method, whether there is a key, and the sub-resource.
pub fn s3_action(req: &Req) -> String {
    let params = s3_params(req);
    let key = params.get("key").is_some();
    let bucket = params.get("bucket").is_some();
    let sub = |name: &str| req.query.iter().any(|(k, _)| k == name);
    let kind = if key { "Object" } else { "Bucket" };
    let verb = match req.method {
        Method::PUT => "Put",
        Method::DELETE => "Delete",
        Method::HEAD => "Head",
        Method::POST => "Post",
        _ => "Get",
    };
    match (&req.method, bucket, key) {
        (_, false, _) => "ListBuckets".into(),
        _ if sub("tagging") => format!("{verb}{kind}Tagging"),
        (&Method::PUT, _, true) if req.headers.contains_key("x-amz-copy-source") => {
            "CopyObject".into()
        }
        (&Method::PUT, _, false) if req.query.is_empty() => "CreateBucket".into(),
        (&Method::GET, _, false) if sub("list-type") => "ListObjectsV2".into(),
        (&Method::GET, _, false) if sub("versions") => "ListObjectVersions".into(),
        (&Method::GET, _, false) if req.query.is_empty() || sub("prefix") => "ListObjects".into(),
        (&Method::POST, _, false) if sub("delete") => "DeleteObjects".into(),
        (_, _, false) => match req.query.first() {
            // Sub-resources are named by a bare query key: `?versioning`.
            Some((name, _)) if name != "x-id" => format!("{verb}Bucket:{name}"),
            _ => format!("{verb}Bucket"),
        },
        _ => format!("{verb}{kind}"),
    }
}

/// `{bucket, key}` of a path-style or host-style request.
pub fn s3_params(req: &Req) -> Value {
    let path = super::http::percent_decode(req.path.trim_start_matches('/'));
    let host = req
        .headers
        .get(header::HOST)
        .and_then(|h| h.to_str().ok())
        .unwrap_or("");
    let from_host = host
        .split_once(".s3.")
        .or_else(|| host.split_once(".s3-"))
        .map(|(bucket, _)| bucket.to_owned());
    let (bucket, key) = match from_host {
        Some(bucket) => (bucket, path),
        None => {
            let (bucket, key) = path.split_once('/').unwrap_or((&path, ""));
            (bucket.to_owned(), key.to_owned())
        }
    };
    let mut out = json!({});
    if !bucket.is_empty() {
        out["bucket"] = json!(bucket);
    }
    if !key.is_empty() {
        out["key"] = json!(key);
    }
    out
}
