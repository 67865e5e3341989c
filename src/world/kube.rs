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

/// How to create.
#[derive(Clone, Copy, Debug, Default)]
pub struct CreateOptions {
    /// Only ask (`dryRun=All`).
    pub dry_run: bool,
    /// Refuse unknown fields (`fieldValidation=Strict`) where the server can.
    pub strict: bool,
}

/// An API server. Every method is one request (listing: one a page); none retries by itself.
#[async_trait]
pub trait Kube: Send + Sync {
    /// `/version`.
    async fn version(&self) -> Result<KubeVersion>;
    /// Who this cluster is.
    async fn identity(&self) -> Result<ClusterIdentity>;
    /// Every kind in every served version (not only the preferred one). May be cached; `refresh` asks again.
    async fn kinds(&self, refresh: bool) -> Result<Vec<ApiKind>>;
    /// All objects of a kind in all namespaces, paged by 500.
    async fn list(&self, kind: &ApiKind) -> Result<Listing>;
    /// One object, `None` when absent.
    async fn get(&self, id: &ObjectId) -> Result<Option<Value>>;
    /// POST with field manager `crossfade`. `AlreadyExists` when there is one.
    async fn create(&self, object: &Value, options: CreateOptions) -> Result<Value>;
    /// JSON merge patch with field manager `crossfade`. A `metadata.resourceVersion` in the body is a precondition: `Conflict` when it no longer holds.
    async fn merge(&self, id: &ObjectId, body: &Value) -> Result<Value>;
    /// DELETE with a uid precondition, background propagation. Absent is `NotFound`, another uid is `Conflict`.
    async fn delete(&self, id: &ObjectId, uid: &str) -> Result<()>;
}
