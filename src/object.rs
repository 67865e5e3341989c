//! Kubernetes objects as JSON: identity, canonical hashing, small accessors.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt;

/// The blue or the green side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The kops cluster that production leaves.
    Blue,
    /// The EKS cluster that production goes to.
    Green,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Blue => "blue",
            Side::Green => "green",
        })
    }
}

/// Names one object of a cluster in one API version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectId {
    /// `group/version`, or `v1` for the core group.
    pub api_version: String,
    /// Kind, as in `Deployment`.
    pub kind: String,
    /// Namespace, absent for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

/// Groups whose kinds need no group in their short name.
const BUILT_IN: &[&str] = &["", "apps", "extensions", "batch", "autoscaling", "policy"];

impl ObjectId {
    /// A new id.
    pub fn new(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Self {
        ObjectId {
            api_version: api_version.into(),
            kind: kind.into(),
            namespace: namespace.map(Into::into),
            name: name.into(),
        }
    }
    /// The id of a live or written object, if it carries apiVersion, kind and a name.
    pub fn of(object: &Value) -> Option<Self> {
        Some(ObjectId {
            api_version: object.get("apiVersion")?.as_str()?.into(),
            kind: object.get("kind")?.as_str()?.into(),
            namespace: object
                .pointer("/metadata/namespace")
                .and_then(Value::as_str)
                .map(Into::into),
            name: object.pointer("/metadata/name")?.as_str()?.into(),
        })
    }
    /// API group, empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(g, _)| g)
    }
    /// Version without the group.
    pub fn version(&self) -> &str {
        self.api_version.rsplit('/').next().unwrap_or("")
    }
    /// The same object in another API version.
    pub fn in_version(&self, api_version: &str) -> Self {
        ObjectId {
            api_version: api_version.into(),
            ..self.clone()
        }
    }
}

/// `kind/namespace/name` (`kind/name` for cluster-scoped kinds), with `.group` after the kind for custom resources.
/// This is the spelling of every object in plans, findings, journals and on the command line.
impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind.to_lowercase())?;
        let group = self.group();
        if !BUILT_IN.contains(&group) && !group.ends_with(".k8s.io") {
            write!(f, ".{group}")?;
        }
        match &self.namespace {
            Some(ns) => write!(f, "/{ns}/{}", self.name),
            None => write!(f, "/{}", self.name),
        }
    }
}

/// Canonical bytes of a JSON value: object keys sorted, no white space. The input of every digest.
pub fn canonical(value: &Value) -> String {
    let mut out = Vec::new();
    write_canonical(value, None, &mut out).expect("memory takes what is written");
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// Writes the canonical JSON of a value without a copy of it: keys sorted at every level; `indent` spaces when it is for people, else no white space at all.
pub fn write_canonical(
    value: &Value,
    indent: Option<usize>,
    out: &mut dyn std::io::Write,
) -> std::io::Result<()> {
    let inner = indent.map(|n| n + 2);
    match value {
        Value::Object(m) if !m.is_empty() => {
            let mut keys: Vec<(&String, &Value)> = m.iter().collect();
            keys.sort_unstable_by(|a, b| a.0.cmp(b.0));
            out.write_all(b"{")?;
            for (n, (key, value)) in keys.into_iter().enumerate() {
                separate(n > 0, inner, out)?;
                serde_json::to_writer(&mut *out, key)?;
                out.write_all(if indent.is_some() { b": " } else { b":" })?;
                write_canonical(value, inner, out)?;
            }
            separate(false, indent, out)?;
            out.write_all(b"}")
        }
        Value::Array(a) if !a.is_empty() => {
            out.write_all(b"[")?;
            for (n, value) in a.iter().enumerate() {
                separate(n > 0, inner, out)?;
                write_canonical(value, inner, out)?;
            }
            separate(false, indent, out)?;
            out.write_all(b"]")
        }
        other => Ok(serde_json::to_writer(out, other)?),
    }
}

/// What stands between two entries, and before the first and after the last: a comma where one is due, a new line where people read.
pub(crate) fn separate(
    comma: bool,
    indent: Option<usize>,
    out: &mut dyn std::io::Write,
) -> std::io::Result<()> {
    if comma {
        out.write_all(b",")?;
    }
    if let Some(n) = indent {
        out.write_all(b"\n")?;
        out.write_all(" ".repeat(n).as_bytes())?;
    }
    Ok(())
}

/// Lower-case hex sha256 of bytes.
pub fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    Sha256::digest(bytes.as_ref())
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

/// Digest of a JSON value over its canonical bytes.
pub fn digest(value: &Value) -> String {
    let mut hash = Hashing::default();
    write_canonical(value, None, &mut hash).expect("a hash takes what is written");
    hash.hex()
}

/// sha256 of what is written to it.
#[derive(Default)]
pub struct Hashing(Sha256);

impl Hashing {
    /// Lower-case hex of all that was written.
    pub fn hex(self) -> String {
        self.0
            .finalize()
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect()
    }
}

impl std::io::Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A string annotation of an object.
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object
        .get("metadata")?
        .get("annotations")?
        .get(key)?
        .as_str()
}

/// A string label of an object.
pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get("labels")?.get(key)?.as_str()
}

/// uid of a live object.
pub fn uid(object: &Value) -> Option<&str> {
    object.get("metadata")?.get("uid")?.as_str()
}

/// resourceVersion of a live object.
pub fn resource_version(object: &Value) -> Option<&str> {
    object.get("metadata")?.get("resourceVersion")?.as_str()
}
