//! A real API server through `kube::Client`, with raw requests and untyped JSON: a field that this build has never
//! heard of survives being read, planned and written.

use super::aws::AwsBase;
use super::kube_error;
use super::kubeconfig;
use crate::object::{ObjectId, sha256_hex};
use crate::world::kube::{
    Answer, ApiKind, ApplyOptions, ClusterIdentity, CreateOptions, FIELD_MANAGER, Kube,
    KubeVersion, ListPage, Listing, PAGE,
};
use crate::world::{Class, Error, Result};
use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream};
use http::{Method, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
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
/// Discovery asks for this many group versions at once.
const DISCOVERY_WIDTH: usize = 8;

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
    connection: Mutex<Option<Arc<Connection>>>,
    kinds: RwLock<Option<Arc<Vec<ApiKind>>>>,
}

impl LiveKube {
    pub(super) fn new(side: &'static str, source: Source) -> Self {
        LiveKube {
            side,
            source,
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
            Source::Eks { aws, name } => aws.eks_config(name).await?,
        };
        let ca_sha256 = ca_digest(config.root_cert.as_deref());
        let client = kube::Client::try_from(config).map_err(|e| {
            Error::new(
                Class::Unauthorized,
                self.side,
                format!("cannot set up the connection: {}", kube_error::chain(&e)),
            )
        })?;
        let made = Arc::new(Connection {
            client,
            ca_sha256,
            built: Instant::now(),
        });
        *held = Some(made.clone());
        Ok(made)
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
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("accept", "application/json")
            .header("user-agent", USER_AGENT);
        let bytes = match body {
            Some((content_type, value)) => {
                request = request.header("content-type", content_type);
                serde_json::to_vec(value)
                    .map_err(|e| Error::new(Class::Internal, at, e.to_string()))?
            }
            None => vec![],
        };
        let request = request
            .body(kube::client::Body::from(bytes))
            .map_err(|e| Error::new(Class::Internal, at, e.to_string()))?;
        let answer = connection
            .client
            .send(request)
            .await
            .map_err(|e| kube_error::transport(self.side, at, &e))?;
        let status = answer.status();
        let (warnings, pause) = (
            kube_error::warnings(answer.headers()),
            kube_error::retry_after(answer.headers()),
        );
        let bytes = answer
            .into_body()
            .collect()
            .await
            .map_err(|e| kube_error::transport(self.side, at, &e))?
            .to_bytes();
        if status.is_success() {
            let object = serde_json::from_slice(&bytes).map_err(|e| {
                Error::new(Class::Internal, at, format!("the answer is no JSON: {e}"))
            })?;
            return Ok(Answer { object, warnings });
        }
        if status.as_u16() == 401 {
            // The token may have run out early (clock skew, revoked entry): the next call makes a new one.
            *self.connection.lock().await = None;
        }
        let quiet = path.contains("/secrets");
        Err(kube_error::answer(self.side, at, status.as_u16(), &bytes, quiet).retry_after(pause))
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

    /// Discovery of one group version. `None` when the server does not serve it.
    async fn group_version(&self, group: &str, version: &str) -> Result<Option<Vec<ApiKind>>> {
        let path = if group.is_empty() {
            format!("/api/{version}")
        } else {
            format!("/apis/{group}/{version}")
        };
        match self.get_json(&path).await {
            Ok(list) => Ok(Some(parse_resources(group, version, &list))),
            Err(e) if e.class == Class::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    async fn discover(&self) -> Result<Vec<ApiKind>> {
        let mut group_versions: Vec<(String, String)> = vec![];
        let core = self.get_json("/api").await?;
        for v in core["versions"].as_array().into_iter().flatten() {
            group_versions.push((String::new(), v.as_str().unwrap_or("v1").into()));
        }
        let groups = self.get_json("/apis").await?;
        for g in groups["groups"].as_array().into_iter().flatten() {
            let name = g["name"].as_str().unwrap_or_default();
            for v in g["versions"].as_array().into_iter().flatten() {
                if let Some(version) = v["version"].as_str() {
                    group_versions.push((name.into(), version.into()));
                }
            }
        }
        let found: Vec<Vec<ApiKind>> = stream::iter(group_versions)
            .map(|(group, version)| async move {
                match self.group_version(&group, &version).await {
                    Ok(kinds) => Ok(kinds.unwrap_or_default()),
                    // An aggregated API whose server is down must not hide the whole cluster. It stays visible as a
                    // kind `*` without verbs, so that discovery can say "not checked" instead of "nothing there".
                    Err(e) if e.class == Class::Unreachable && !group.is_empty() => {
                        tracing::warn!(group, version, error = %e, "this API group does not answer");
                        Ok(vec![ApiKind {
                            group,
                            version,
                            kind: "*".into(),
                            plural: "*".into(),
                            namespaced: false,
                            verbs: vec![],
                        }])
                    }
                    Err(e) => Err(e),
                }
            })
            .buffered(DISCOVERY_WIDTH)
            .try_collect()
            .await?;
        let mut all: Vec<ApiKind> = found.into_iter().flatten().collect();
        all.sort();
        all.dedup();
        Ok(all)
    }

    async fn cached_kinds(&self, refresh: bool) -> Result<Arc<Vec<ApiKind>>> {
        if !refresh && let Some(k) = self.kinds.read().ok().and_then(|k| k.clone()) {
            return Ok(k);
        }
        let fresh = Arc::new(self.discover().await?);
        if let Ok(mut k) = self.kinds.write() {
            *k = Some(fresh.clone());
        }
        Ok(fresh)
    }

    /// The served kind of an object. A miss asks the server once more about that one group version, because a CRD may
    /// have been created since discovery.
    async fn kind_of(&self, id: &ObjectId) -> Result<Option<ApiKind>> {
        let find = |kinds: &[ApiKind]| {
            kinds
                .iter()
                .find(|k| k.kind == id.kind && k.group == id.group() && k.version == id.version())
                .cloned()
        };
        let known = self.cached_kinds(false).await?;
        if let Some(kind) = find(&known) {
            return Ok(Some(kind));
        }
        let Some(fresh) = self.group_version(id.group(), id.version()).await? else {
            return Ok(None);
        };
        let found = find(&fresh);
        if found.is_some()
            && let Ok(mut k) = self.kinds.write()
        {
            let mut all: Vec<ApiKind> = k
                .as_ref()
                .map(|k| k.to_vec())
                .unwrap_or_default()
                .into_iter()
                .filter(|k| !(k.group == id.group() && k.version == id.version()))
                .collect();
            all.extend(fresh);
            all.sort();
            *k = Some(Arc::new(all));
        }
        Ok(found)
    }

    async fn served(&self, id: &ObjectId) -> Result<ApiKind> {
        self.kind_of(id).await?.ok_or_else(|| {
            Error::new(
                Class::NotReady,
                format!("{} {id}", self.side),
                format!(
                    "{} does not serve {} {} (yet)",
                    self.side, id.api_version, id.kind
                ),
            )
            .remedy(
                "wait until its CustomResourceDefinition is Established, or plan another version",
            )
        })
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

/// Kinds of an APIResourceList; subresources (`pods/log`) are not kinds.
fn parse_resources(group: &str, version: &str, list: &Value) -> Vec<ApiKind> {
    list["resources"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|r| {
            let plural = r["name"].as_str()?;
            if plural.contains('/') {
                return None;
            }
            Some(ApiKind {
                // The list's own: that is where the resource is served, whatever group its objects name.
                group: group.into(),
                version: version.into(),
                kind: r["kind"].as_str()?.into(),
                plural: plural.into(),
                namespaced: r["namespaced"].as_bool().unwrap_or(false),
                verbs: r["verbs"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|v| v.as_str().map(Into::into))
                    .collect(),
            })
        })
        .collect()
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

#[async_trait]
impl Kube for LiveKube {
    async fn version(&self) -> Result<KubeVersion> {
        let v = self.get_json("/version").await?;
        let git_version = v["gitVersion"].as_str().unwrap_or_default().to_string();
        // EKS says "36+"; a build without version says "v0.0.0-master".
        let digits = |s: &str| {
            s.chars()
                .take_while(char::is_ascii_digit)
                .collect::<String>()
        };
        let minor = digits(v["minor"].as_str().unwrap_or_default())
            .parse()
            .or_else(|_| digits(git_version.split('.').nth(1).unwrap_or_default()).parse())
            .map_err(|_| {
                Error::new(
                    Class::Internal,
                    self.side,
                    format!("/version makes no sense: {v}"),
                )
            })?;
        Ok(KubeVersion { git_version, minor })
    }

    async fn identity(&self) -> Result<ClusterIdentity> {
        let ns = self.get_json("/api/v1/namespaces/kube-system").await?;
        let uid = crate::object::uid(&ns).ok_or_else(|| {
            Error::new(
                Class::Internal,
                self.side,
                "namespace kube-system has no uid",
            )
        })?;
        let ca_sha256 = self.connection().await?.ca_sha256.clone();
        Ok(ClusterIdentity {
            uid: uid.into(),
            ca_sha256,
        })
    }

    async fn kinds(&self, refresh: bool) -> Result<Vec<ApiKind>> {
        Ok(self.cached_kinds(refresh).await?.to_vec())
    }

    async fn list(&self, kind: &ApiKind) -> Result<Listing> {
        let mut restarts = 0;
        'again: loop {
            // The last attempt asks for everything at once: expired tokens cannot stop that one.
            let limit = if restarts < RESTARTS { PAGE } else { 0 };
            let (mut items, mut token) = (vec![], String::new());
            loop {
                let page = match self.page(kind, None, limit, &token).await {
                    Err(e) if e.class == Class::Gone && restarts < RESTARTS => {
                        restarts += 1;
                        continue 'again;
                    }
                    other => other?,
                };
                items.extend(page.items);
                match page.continue_token {
                    Some(next) => token = next,
                    None => {
                        return Ok(Listing {
                            items,
                            resource_version: page.resource_version,
                        });
                    }
                }
            }
        }
    }

    async fn list_page(
        &self,
        kind: &ApiKind,
        namespace: Option<&str>,
        continue_token: Option<&str>,
    ) -> Result<ListPage> {
        // Secrets may weigh a MiB each (Helm releases do): a page of them is kept small.
        let limit = match (kind.group.as_str(), kind.kind.as_str()) {
            ("", "Secret") => PAGE / 5,
            _ => PAGE,
        };
        self.page(kind, namespace, limit, continue_token.unwrap_or_default())
            .await
    }

    async fn get(&self, id: &ObjectId) -> Result<Option<Value>> {
        let Some(kind) = self.kind_of(id).await? else {
            return Ok(None);
        };
        let path = path_of(&kind, id.namespace.as_deref(), Some(&id.name));
        match self.call(Method::GET, &path, None, &self.place(id)).await {
            Ok(v) => Ok(Some(v)),
            Err(e) if e.class == Class::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    async fn create(&self, object: &Value, options: CreateOptions) -> Result<Value> {
        Ok(self.create_heard(object, options).await?.object)
    }

    async fn create_heard(&self, object: &Value, options: CreateOptions) -> Result<Answer> {
        let id = ObjectId::of(object).ok_or_else(|| {
            Error::new(
                Class::Internal,
                self.side,
                "an object without apiVersion, kind or name cannot be created",
            )
        })?;
        let kind = self.served(&id).await?;
        let mut path = format!(
            "{}?fieldManager={FIELD_MANAGER}",
            path_of(&kind, id.namespace.as_deref(), None)
        );
        path.push_str(asked(options.dry_run, options.strict));
        Ok(self
            .heard(
                Method::POST,
                &path,
                Some(("application/json", object)),
                &self.place(&id),
            )
            .await?)
    }

    async fn apply_heard(&self, object: &Value, options: ApplyOptions) -> Result<Answer> {
        let id = ObjectId::of(object).ok_or_else(|| {
            Error::new(
                Class::Internal,
                self.side,
                "an object without apiVersion, kind or name cannot be applied",
            )
        })?;
        let kind = self.served(&id).await?;
        let mut path = format!(
            "{}?fieldManager={FIELD_MANAGER}&force={}",
            path_of(&kind, id.namespace.as_deref(), Some(&id.name)),
            options.force,
        );
        path.push_str(asked(options.dry_run, options.strict));
        // JSON is YAML.
        Ok(self
            .heard(
                Method::PATCH,
                &path,
                Some(("application/apply-patch+yaml", object)),
                &self.place(&id),
            )
            .await?)
    }

    async fn merge(&self, id: &ObjectId, body: &Value) -> Result<Value> {
        let kind = self.served(id).await?;
        let path = format!(
            "{}?fieldManager={FIELD_MANAGER}",
            path_of(&kind, id.namespace.as_deref(), Some(&id.name))
        );
        Ok(self
            .call(
                Method::PATCH,
                &path,
                Some(("application/merge-patch+json", body)),
                &self.place(id),
            )
            .await?)
    }

    async fn delete(&self, id: &ObjectId, uid: &str) -> Result<()> {
        let Some(kind) = self.kind_of(id).await? else {
            return Err(Error::new(
                Class::NotFound,
                self.place(id),
                format!("{} {} is not served", id.api_version, id.kind),
            ));
        };
        let path = path_of(&kind, id.namespace.as_deref(), Some(&id.name));
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "preconditions": {"uid": uid}, "propagationPolicy": "Background",
        });
        self.call(
            Method::DELETE,
            &path,
            Some(("application/json", &options)),
            &self.place(id),
        )
        .await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn subresources_are_not_kinds() {
        let list = json!({"resources": [
            {"name": "pods", "kind": "Pod", "namespaced": true, "verbs": ["list", "create"]},
            {"name": "pods/log", "kind": "Pod", "namespaced": true, "verbs": ["get"]},
        ]});
        let kinds = parse_resources("", "v1", &list);
        assert_eq!(kinds.len(), 1);
        assert_eq!(kinds[0].api_version(), "v1");
        assert_eq!(kinds[0].verbs, ["list", "create"]);
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
