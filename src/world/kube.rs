//! A Kubernetes API server, as far as crossfade needs one.

use super::Result;
use crate::object::ObjectId;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One kind that the server serves, from discovery.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKind {
    /// Group, empty for core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Plural, as in the URL.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Verbs.
    pub verbs: Vec<String>,
}

impl ApiKind {
    /// `group/version`, or the version alone for core.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// What `/version` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeVersion {
    /// As in `v1.21.14`.
    pub git_version: String,
    /// Minor number, as in 21.
    pub minor: u32,
}

/// What pins a cluster: no name of a context or a file decides which cluster this is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterIdentity {
    /// uid of the namespace kube-system.
    pub uid: String,
    /// sha256 of the CA certificate (DER) that the server's certificate is checked against.
    pub ca_sha256: String,
}

/// All objects of one kind at one moment.
#[derive(Clone, Debug)]
pub struct Listing {
    /// Objects, each with apiVersion and kind filled in.
    pub items: Vec<Value>,
    /// The list's resourceVersion.
    pub resource_version: String,
}

/// Objects in one page of a list (replay.md 2).
pub const PAGE: usize = 500;

/// A part of a list, at most [`PAGE`] objects.
#[derive(Clone, Debug)]
pub struct ListPage {
    /// Objects, each with apiVersion and kind filled in.
    pub items: Vec<Value>,
    /// The list's resourceVersion, the same on every page of one list.
    pub resource_version: String,
    /// What to ask for the next page with; `None` on the last.
    pub continue_token: Option<String>,
    /// How many objects are left after this page, when the server says so.
    pub remaining: Option<u64>,
}

/// What a server made of a write.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The object as it is stored now.
    pub object: Value,
    /// `Warning` headers: unknown fields, deprecated versions, what an admission policy only warns of.
    pub warnings: Vec<String>,
}

/// How to apply.
#[derive(Clone, Copy, Debug, Default)]
pub struct ApplyOptions {
    /// Only ask (`dryRun=All`).
    pub dry_run: bool,
    /// Refuse unknown fields (`fieldValidation=Strict`) where the server can.
    pub strict: bool,
    /// Take fields over from other managers.
    pub force: bool,
}

/// How to create.
#[derive(Clone, Copy, Debug, Default)]
pub struct CreateOptions {
    /// Only ask (`dryRun=All`).
    pub dry_run: bool,
    /// Refuse unknown fields (`fieldValidation=Strict`) where the server can.
    pub strict: bool,
}

/// Who writes, in `managedFields`.
pub const FIELD_MANAGER: &str = "crossfade";

/// `managedFields` of an object with our own "Update" entry (from POST and merge patches) turned into an "Apply" one, as client-go's
/// csaupgrade does; `None` when there is none. Without that an apply would conflict with ourselves, and could never take a field away.
pub fn upgraded_managers(there: &Value) -> Option<Value> {
    let entries = there.pointer("/metadata/managedFields")?.as_array()?;
    let ours = |e: &Value, op: &str| {
        e["manager"] == FIELD_MANAGER
            && e["operation"] == op
            && e["subresource"].as_str().is_none_or(str::is_empty)
    };
    entries.iter().find(|e| ours(e, "Update"))?;
    let mut kept: Vec<Value> = vec![];
    let mut fields = Value::Null;
    let mut applied: Option<Value> = None;
    for e in entries {
        if ours(e, "Update") || ours(e, "Apply") {
            unite(&mut fields, &e["fieldsV1"]);
            let first = applied.get_or_insert_with(|| e.clone());
            if e["operation"] == "Apply" {
                *first = e.clone();
            }
        } else {
            kept.push(e.clone());
        }
    }
    let mut entry = applied?;
    entry["operation"] = "Apply".into();
    entry["fieldsV1"] = fields;
    kept.push(entry);
    Some(Value::Array(kept))
}

/// The union of two `fieldsV1` trees.
fn unite(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                unite(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) if into.is_null() => *into = from.clone(),
        _ => {}
    }
}

/// Server-side apply over an object that was just read: our own "Update" entry is upgraded first, then the apply holds only for the
/// version that was seen (nobody's change in between is lost: `Conflict`). Unforced as long as `options` say so.
///
/// An apply takes away what we hold and `target` lacks: whoever changes one field must leave the parked ones (`/spec/replicas`) in `target`.
pub async fn apply_over(
    kube: &dyn Kube,
    there: &Value,
    target: &Value,
    options: ApplyOptions,
) -> Result<Answer> {
    let id = ObjectId::of(target).ok_or_else(|| {
        super::Error::new(
            super::Class::Internal,
            "apply",
            "an object without apiVersion, kind or name cannot be applied",
        )
    })?;
    let mut version = crate::object::resource_version(there).map(String::from);
    if let Some(managers) = upgraded_managers(there).filter(|_| !options.dry_run) {
        let body = serde_json::json!({"metadata": {"resourceVersion": version, "managedFields": managers}});
        let seen = kube.merge(&id, &body).await?;
        version = crate::object::resource_version(&seen).map(String::from);
    }
    let mut object = target.clone();
    object["metadata"]["resourceVersion"] = serde_json::json!(version);
    kube.apply_heard(&object, options).await
}

/// What became of somebody's token at the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The server knows who it is.
    In {
        /// Kubernetes user.
        username: String,
        /// Groups.
        groups: Vec<String>,
        /// May do everything.
        admin: bool,
    },
    /// The server does not know the token; its words.
    Refused(String),
    /// There is no token to show; why.
    Unproven(String),
}

/// An API server. Every method is one request (listing: one a page); none retries by itself.
#[async_trait]
pub trait Kube: Send + Sync {
    /// `/version`.
    async fn version(&self) -> Result<KubeVersion>;
    /// Who this cluster is.
    async fn identity(&self) -> Result<ClusterIdentity>;
    /// Shows the server a token of an IAM principal (a role that the caller may assume, or the caller): whether it is let in, and as whom.
    async fn admits(&self, principal: &str) -> Result<Admission> {
        Ok(Admission::Unproven(format!(
            "this server lets no IAM principal in, so {principal} cannot be tried"
        )))
    }
    /// Every kind in every served version (not only the preferred one). May be cached; `refresh` asks again.
    async fn kinds(&self, refresh: bool) -> Result<Vec<ApiKind>>;
    /// All objects of a kind in all namespaces, paged by 500.
    async fn list(&self, kind: &ApiKind) -> Result<Listing>;
    /// One page of a list, of one namespace or of all. [`Class::Gone`](super::Class::Gone) when the token is too old: begin again
    /// without one. A server that knows no pages answers all at once.
    async fn list_page(
        &self,
        kind: &ApiKind,
        namespace: Option<&str>,
        _continue_token: Option<&str>,
    ) -> Result<ListPage> {
        let mut all = self.list(kind).await?;
        if let Some(ns) = namespace {
            all.items.retain(|o| o["metadata"]["namespace"] == ns);
        }
        Ok(ListPage {
            items: all.items,
            resource_version: all.resource_version,
            continue_token: None,
            remaining: None,
        })
    }
    /// One object, `None` when absent.
    async fn get(&self, id: &ObjectId) -> Result<Option<Value>>;
    /// POST with field manager `crossfade`. `AlreadyExists` when there is one.
    async fn create(&self, object: &Value, options: CreateOptions) -> Result<Value>;
    /// [`create`](Kube::create), with what the server warned of.
    async fn create_heard(&self, object: &Value, options: CreateOptions) -> Result<Answer> {
        Ok(Answer {
            object: self.create(object, options).await?,
            warnings: vec![],
        })
    }
    /// Server-side apply with field manager `crossfade`. A `metadata.resourceVersion` in the body is a precondition. `Conflict` when other
    /// managers hold fields with other values: the message names both. What we created by POST is held by ourselves as "Update": see [`apply_over`].
    async fn apply(&self, object: &Value, options: ApplyOptions) -> Result<Value> {
        Ok(self.apply_heard(object, options).await?.object)
    }
    /// [`apply`](Kube::apply), with what the server warned of.
    async fn apply_heard(&self, object: &Value, _options: ApplyOptions) -> Result<Answer> {
        Err(super::Error::new(
            super::Class::Refused,
            ObjectId::of(object).map_or_else(String::new, |id| id.to_string()),
            "this server does not know server-side apply",
        ))
    }
    /// JSON merge patch with field manager `crossfade`. A `metadata.resourceVersion` in the body is a precondition: `Conflict` when it no longer holds.
    async fn merge(&self, id: &ObjectId, body: &Value) -> Result<Value>;
    /// DELETE with a uid precondition, background propagation. Absent is `NotFound`, another uid is `Conflict`.
    async fn delete(&self, id: &ObjectId, uid: &str) -> Result<()>;
}
