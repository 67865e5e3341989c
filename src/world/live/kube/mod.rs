//! A real API server through `kube::Client`, with raw requests and untyped JSON: a field that this build has never
//! heard of survives being read, planned and written.

mod admit;
mod api;
mod served;

use super::aws::AwsBase;
use super::kube_error;
use super::kubeconfig;
use super::way::{self, Dial, Way};
use crate::object::{ObjectId, sha256_hex};
use crate::world::kube::{Answer, ApiKind, ListPage};
use crate::world::{Class, Error, Result};
use http::{Method, Request};
use http_body_util::BodyExt;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Who asks, for the server's log and its priority and fairness (a FlowSchema matches the user; people match this).
const USER_AGENT: &str = concat!("crossfade/", env!("CARGO_PKG_VERSION"));
/// A listing whose continue token expired (410) starts again this often before it is given up.
const RESTARTS: u32 = 3;
/// An EKS token lives 15 minutes; a client older than this is built again with a fresh one.
const CLIENT_LIFE: Duration = Duration::from_secs(600);
/// Clocks further apart than this are told apart, seconds: the time of an answer on its way is less.
const SKEW: i64 = 30;
/// A token that was refused when it was younger than this is refused for another reason than its age.
const YOUNG: Duration = Duration::from_secs(60);

/// Where the connection of a side comes from.
pub(super) enum Source {
    /// A file and a context, both named by the spec.
    Kubeconfig {
        /// File.
        path: PathBuf,
        /// Context.
        context: String,
    },
    /// DescribeCluster and a pre-signed STS token.
    Eks {
        /// Account and region.
        aws: Arc<AwsBase>,
        /// EKS cluster name.
        name: String,
    },
}

struct Connection {
    client: kube::Client,
    ca_sha256: String,
    built: Instant,
}

/// One API server.
pub(super) struct LiveKube {
    /// `blue` or `green`, for messages.
    side: &'static str,
    source: Source,
    way: Way,
    connection: Mutex<Option<Arc<Connection>>>,
    kinds: RwLock<Option<Arc<Vec<ApiKind>>>>,
}

impl LiveKube {
    pub(super) fn new(side: &'static str, source: Source, way: Way) -> Self {
        LiveKube {
            side,
            source,
            way,
            connection: Mutex::new(None),
            kinds: RwLock::new(None),
        }
    }

    async fn connection(&self) -> Result<Arc<Connection>> {
        let mut held = self.connection.lock().await;
        if let Some(c) = held.as_ref()
            && c.built.elapsed() < CLIENT_LIFE
        {
            return Ok(c.clone());
        }
        let config = match &self.source {
            Source::Kubeconfig { path, context } => kubeconfig::config(path, context)
                .await
                .map_err(|e| Error::new(Class::Refused, self.side, e.message).remedy(e.remedy))?,
            Source::Eks { aws, name } => aws.eks_config(name, None).await?,
        };
        let ca_sha256 = ca_digest(config.root_cert.as_deref());
        let client = self.client(config)?;
        let made = Arc::new(Connection {
            client,
            ca_sha256,
            built: Instant::now(),
        });
        *held = Some(made.clone());
        Ok(made)
    }

    /// A client on the way that the spec (or else the kubeconfig) names.
    fn client(&self, mut config: kube::Config) -> Result<kube::Client> {
        if let Some(name) = &self.way.tls_server_name {
            config.tls_server_name = Some(name.clone());
        }
        let proxy = config.proxy_url.take();
        let dial = match (&self.way.dial, proxy) {
            (Some(dial), _) => Some(dial.clone()),
            (None, Some(url)) => Some(
                Dial::of_kubeconfig(self.side, &url)
                    .map_err(|e| Error::new(Class::Refused, e.at, e.message).remedy(e.remedy))?,
            ),
            (None, None) => None,
        };
        match dial {
            Some(dial) => way::client(config, dial),
            None => kube::Client::try_from(config),
        }
        .map_err(|e| {
            Error::new(
                Class::Unauthorized,
                self.side,
                format!("cannot set up the connection: {}", kube_error::chain(&e)),
            )
        })
    }

    /// An error of the way itself, or of what it leads to.
    fn lost(&self, at: &str, e: &(dyn std::error::Error + 'static)) -> Error {
        if let Some(blocked) = way::Blocked::within(e) {
            return Error::new(blocked.class, at, blocked.message.clone())
                .remedy(blocked.remedy.clone());
        }
        let mut error = kube_error::transport(self.side, at, e);
        // A forwarded port accepts, and only the program says that the far end did not.
        if let Some(words) = self.way.dial.as_ref().and_then(Dial::last_words)
            && error.class == Class::Unreachable
        {
            error.message = format!("{}; the tunnel said: {words}", error.message);
        }
        error
    }

    /// One request. `at` names what it is about in errors.
    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &Value)>,
        at: &str,
    ) -> Result<Value> {
        Ok(self.heard(method, path, body, at).await?.object)
    }

    /// One request, with what the server warned of.
    async fn heard(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &Value)>,
        at: &str,
    ) -> Result<Answer> {
        let connection = self.connection().await?;
        let first = self.ask(&connection, &method, path, body, at).await;
        let Err((error, Some(date))) = first else {
            return first.map_err(|(e, _)| e);
        };
        // A 401 did nothing, so it may be asked again: with a new token, signed with the server's time.
        if !self.renew(&connection, &date).await {
            return Err(error);
        }
        let connection = self.connection().await?;
        self.ask(&connection, &method, path, body, at)
            .await
            .map_err(|(e, _)| self.with_skew(e))
    }

    /// After a 401: drops the connection, and says whether a new one would show another token that may be accepted.
    async fn renew(&self, refused: &Arc<Connection>, date: &str) -> bool {
        let mut held = self.connection.lock().await;
        if held.as_ref().is_some_and(|c| Arc::ptr_eq(c, refused)) {
            *held = None;
        }
        let Source::Eks { aws, .. } = &self.source else {
            return false;
        };
        let ahead = http_date(date).map_or(0, |theirs| theirs - jiff::Timestamp::now().as_second());
        let known = aws.skew();
        let moved = (ahead - known).abs() > SKEW;
        if moved {
            tracing::warn!(
                side = self.side,
                seconds = ahead,
                "the server's clock differs from this machine's: tokens are signed with the server's time"
            );
            aws.set_skew(ahead);
        }
        moved || refused.built.elapsed() > YOUNG
    }

    /// Says that the clocks differ, when a token was refused although it was signed with the server's time.
    fn with_skew(&self, mut e: Error) -> Error {
        if let Source::Eks { aws, .. } = &self.source
            && aws.skew() != 0
            && e.class == Class::Unauthorized
        {
            let skew = aws.skew();
            e.message = format!(
                "{} (this machine's clock is {} s {} the server's)",
                e.message,
                skew.abs(),
                if skew > 0 { "behind" } else { "ahead of" }
            );
            e.remedy = format!("set this machine's clock; then: {}", e.remedy);
        }
        e
    }

    /// One request on a connection. Of a 401 also the server's `Date`.
    async fn ask(
        &self,
        connection: &Connection,
        method: &Method,
        path: &str,
        body: Option<(&str, &Value)>,
        at: &str,
    ) -> std::result::Result<Answer, (Error, Option<String>)> {
        let internal = |text: String| (Error::new(Class::Internal, at, text), None);
        let mut request = Request::builder()
            .method(method.clone())
            .uri(path)
            .header("accept", "application/json")
            .header("user-agent", USER_AGENT);
        let bytes = match body {
            Some((content_type, value)) => {
                request = request.header("content-type", content_type);
                serde_json::to_vec(value).map_err(|e| internal(e.to_string()))?
            }
            None => vec![],
        };
        let request = request
            .body(kube::client::Body::from(bytes))
            .map_err(|e| internal(e.to_string()))?;
        let answer = connection
            .client
            .send(request)
            .await
            .map_err(|e| (self.lost(at, &e), None))?;
        let status = answer.status();
        let date = answer
            .headers()
            .get(http::header::DATE)
            .and_then(|d| d.to_str().ok())
            .unwrap_or_default()
            .to_string();
        let (warnings, pause) = (
            kube_error::warnings(answer.headers()),
            kube_error::retry_after(answer.headers()),
        );
        let bytes = answer
            .into_body()
            .collect()
            .await
            .map_err(|e| (self.lost(at, &e), None))?
            .to_bytes();
        if status.is_success() {
            let object = serde_json::from_slice(&bytes)
                .map_err(|e| internal(format!("the answer is no JSON: {e}")))?;
            return Ok(Answer { object, warnings });
        }
        let quiet = path.contains("/secrets");
        let error =
            kube_error::answer(self.side, at, status.as_u16(), &bytes, quiet).retry_after(pause);
        Err((error, (status.as_u16() == 401).then_some(date)))
    }

    /// One page; `limit` 0 asks for everything at once.
    async fn page(
        &self,
        kind: &ApiKind,
        namespace: Option<&str>,
        limit: usize,
        token: &str,
    ) -> Result<ListPage> {
        let mut path = path_of(kind, namespace, None);
        let mut sign = '?';
        if limit > 0 {
            path.push_str(&format!("{sign}limit={limit}"));
            sign = '&';
        }
        if !token.is_empty() {
            path.push_str(&format!("{sign}continue={}", encode(token)));
        }
        let at = format!("{} {}", self.side, kind.plural);
        let mut page = self.call(Method::GET, &path, None, &at).await?;
        let items = match page.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items.into_iter().map(|i| fill_type(kind, i)).collect(),
            _ => vec![],
        };
        let meta = &page["metadata"];
        let text = |key: &str| meta[key].as_str().unwrap_or_default().to_string();
        Ok(ListPage {
            items,
            resource_version: text("resourceVersion"),
            continue_token: Some(text("continue")).filter(|t| !t.is_empty()),
            remaining: meta["remainingItemCount"].as_u64(),
        })
    }

    async fn get_json(&self, path: &str) -> Result<Value> {
        let at = format!("{}{path}", self.side);
        let answer = self.call(Method::GET, path, None, &at).await?;
        Ok(answer)
    }

    fn place(&self, id: &ObjectId) -> String {
        format!("{} {id}", self.side)
    }
}

/// sha256 over the CA certificates (DER) that the server is checked against; of the one certificate in the usual case.
fn ca_digest(certs: Option<&[Vec<u8>]>) -> String {
    match certs {
        Some(certs) if !certs.is_empty() => sha256_hex(certs.concat()),
        // A kubeconfig without a CA means a certificate that a public authority signed.
        _ => "system-roots".into(),
    }
}

/// Seconds since 1970 of an HTTP date, as in `Tue, 01 Dec 2026 00:00:00 GMT`.
fn http_date(text: &str) -> Option<i64> {
    let mut words = text.split([' ', ',']).filter(|w| !w.is_empty());
    let (_, day, month, year, time) = (
        words.next()?,
        words.next()?,
        words.next()?,
        words.next()?,
        words.next()?,
    );
    let month = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    .iter()
    .position(|m| *m == month)?
        + 1;
    let stamp: jiff::Timestamp = format!("{year}-{month:02}-{day:0>2}T{time}Z")
        .parse()
        .ok()?;
    Some(stamp.as_second())
}

/// Percent-encodes one path segment or query value (RBAC names hold colons, which may stay; tokens hold `=`).
pub(super) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for b in text.bytes() {
        match b {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                out.push(b as char)
            }
            _ => out.push_str(&format!("%{b:02X}")),
        }
    }
    out
}

/// URL path of a kind, in a namespace when given, to one object when named.
fn path_of(kind: &ApiKind, namespace: Option<&str>, name: Option<&str>) -> String {
    let mut path = if kind.group.is_empty() {
        format!("/api/{}", kind.version)
    } else {
        format!("/apis/{}/{}", kind.group, kind.version)
    };
    if let (true, Some(ns)) = (kind.namespaced, namespace) {
        path.push_str(&format!("/namespaces/{}", encode(ns)));
    }
    path.push('/');
    path.push_str(&kind.plural);
    if let Some(name) = name {
        path.push('/');
        path.push_str(&encode(name));
    }
    path
}

/// What a write asks for beside the change.
fn asked(dry_run: bool, strict: bool) -> &'static str {
    match (dry_run, strict) {
        (false, false) => "",
        (true, false) => "&dryRun=All",
        (false, true) => "&fieldValidation=Strict",
        (true, true) => "&dryRun=All&fieldValidation=Strict",
    }
}

/// Lists leave apiVersion and kind out of their items; put them back in front, where a person expects them.
fn fill_type(kind: &ApiKind, item: Value) -> Value {
    let Value::Object(map) = item else {
        return item;
    };
    let mut out = serde_json::Map::with_capacity(map.len() + 2);
    out.insert("apiVersion".into(), kind.api_version().into());
    out.insert("kind".into(), kind.kind.clone().into());
    for (k, v) in map {
        out.insert(k, v);
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployments() -> ApiKind {
        ApiKind {
            group: "apps".into(),
            version: "v1".into(),
            kind: "Deployment".into(),
            plural: "deployments".into(),
            namespaced: true,
            verbs: vec![],
        }
    }

    #[test]
    fn paths_name_group_namespace_and_object() {
        let k = deployments();
        assert_eq!(path_of(&k, None, None), "/apis/apps/v1/deployments");
        assert_eq!(
            path_of(&k, Some("shop"), Some("web")),
            "/apis/apps/v1/namespaces/shop/deployments/web"
        );
        let role = ApiKind {
            group: "rbac.authorization.k8s.io".into(),
            kind: "ClusterRole".into(),
            plural: "clusterroles".into(),
            namespaced: false,
            ..k
        };
        assert_eq!(
            path_of(&role, None, Some("system:node/é")),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node%2F%C3%A9"
        );
    }

    #[test]
    fn list_items_get_their_type_back_and_keep_unknown_fields() {
        let item = json!({"metadata": {"name": "web"}, "neverHeardOf": {"x": 1}});
        let full = fill_type(&deployments(), item);
        assert_eq!(
            full.to_string(),
            r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"neverHeardOf":{"x":1}}"#
        );
    }

    #[test]
    fn a_date_of_http_is_seconds() {
        assert_eq!(
            http_date("Tue, 01 Dec 2026 00:00:30 GMT"),
            Some(1_796_083_230)
        );
        assert_eq!(http_date("now"), None);
    }

    #[test]
    fn the_ca_pin_is_what_sha256sum_says_of_the_der() {
        assert_eq!(
            ca_digest(Some(&[b"abc".to_vec()])),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(ca_digest(None), "system-roots");
    }
}
