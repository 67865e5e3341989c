//! Kubernetes objects as JSON: identity, canonical hashing, small accessors.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt;
use std::io::Write as _;

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
                .get("metadata")
                .and_then(|m| m.get("namespace"))
                .and_then(Value::as_str)
                .map(Into::into),
            name: object.get("metadata")?.get("name")?.as_str()?.into(),
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
    hex(&Sha256::digest(bytes.as_ref()))
}

/// Digest of a JSON value over its canonical bytes.
pub fn digest(value: &Value) -> String {
    let mut out = Canonical::default();
    out.value(value);
    out.hex()
}

/// Digest of an object that is told piece by piece, in the order of the keys: the same as [`digest`] of the object in one piece, without a copy of it.
#[derive(Default)]
pub struct Canonical {
    hash: Hashing,
    begun: bool,
}

impl Canonical {
    fn write(&mut self, bytes: &[u8]) {
        self.hash
            .write_all(bytes)
            .expect("a hash takes what is written");
    }
    /// Begins a map.
    pub fn open(&mut self) {
        self.write(b"{");
        self.begun = false;
    }
    /// Ends the map.
    pub fn close(&mut self) {
        self.write(b"}");
        self.begun = true;
    }
    /// A key; its value comes next.
    pub fn key(&mut self, key: &str) {
        if self.begun {
            self.write(b",");
        }
        serde_json::to_writer(&mut self.hash, key).expect("a hash takes what is written");
        self.write(b":");
        self.begun = true;
    }
    /// A value.
    pub fn value(&mut self, value: &Value) {
        write_canonical(value, None, &mut self.hash).expect("a hash takes what is written");
    }
    /// A map of those keys that are kept, each with what stands for its value.
    pub fn fields<'v>(
        &mut self,
        map: &'v serde_json::Map<String, Value>,
        kept: impl Fn(&str) -> bool,
        stands: impl Fn(&'v Value) -> &'v Value,
    ) {
        let mut pairs: Vec<(&String, &Value)> = map.iter().filter(|(k, _)| kept(k)).collect();
        pairs.sort_unstable_by_key(|(k, _)| *k);
        self.open();
        for (key, value) in pairs {
            self.key(key);
            self.value(stands(value));
        }
        self.close();
    }
    /// Lower-case hex of all that was told.
    pub fn hex(self) -> String {
        self.hash.hex()
    }
}

/// sha256 of what is written to it. JSON comes a word at a time: it is gathered first.
#[derive(Default)]
pub struct Hashing {
    hash: Sha256,
    gathered: Vec<u8>,
}

/// Bytes that are hashed at once.
const GATHERED: usize = 8192;

impl Hashing {
    /// Lower-case hex of all that was written.
    pub fn hex(mut self) -> String {
        self.hash.update(&self.gathered);
        hex(&self.hash.finalize())
    }
}

impl std::io::Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() >= GATHERED {
            self.hash.update(&self.gathered);
            self.gathered.clear();
        }
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|b| [b >> 4, b & 15])
        .map(|d| char::from(DIGITS[usize::from(d)]))
        .collect()
}

/// The value at a JSON pointer, as `Value::pointer` finds it. That makes two strings for each part of the pointer, whether or not the part
/// holds an escape; the planner asks millions of times.
pub fn at<'v>(value: &'v Value, pointer: &str) -> Option<&'v Value> {
    if pointer.contains('~') {
        return value.pointer(pointer);
    }
    if pointer.is_empty() {
        return Some(value);
    }
    let mut at = value;
    for part in pointer.strip_prefix('/')?.split('/') {
        at = match at {
            Value::Object(map) => map.get(part)?,
            // Array indices in the one spelling that RFC 6901 allows.
            Value::Array(list) if part == "0" || !part.starts_with(['0', '+']) => {
                list.get(part.parse::<usize>().ok()?)?
            }
            _ => return None,
        };
    }
    Some(at)
}

/// A copy that takes no more memory than it needs: a clone of a map reserves as many entries as its index has room for, up to twice as many as there are.
pub fn tight(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut out = serde_json::Map::with_capacity(map.len());
            for (key, value) in map {
                out.insert(key.clone(), tight(value));
            }
            Value::Object(out)
        }
        Value::Array(list) => Value::Array(list.iter().map(tight).collect()),
        plain => plain.clone(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pointer_finds_what_serde_json_finds() {
        let v = json!({"a": {"b": [{"c": 1}, 2], "": 3, "x/y": 4, "0": 5}, "": {"z": 6}});
        for p in [
            "", "/", "/a", "/a/b", "/a/b/0/c", "/a/b/1", "/a/b/01", "/a/b/+1", "/a/b/2", "/a/b/-",
            "/a/b/", "/a/", "/a/x~1y", "/a/0", "/a/b/c", "a", "//z", "/a/b/1/q",
        ] {
            assert_eq!(at(&v, p), v.pointer(p), "{p}");
        }
    }

    #[test]
    fn a_tight_copy_is_the_same_in_the_same_order() {
        let v = json!({"z": [{"b": 1, "a": {}}, null, "x"], "a": {"k": [1.5, true, []]}});
        assert_eq!(tight(&v), v);
        assert_eq!(tight(&v).to_string(), v.to_string());
    }

    #[test]
    fn an_object_told_piece_by_piece_has_the_digest_of_the_whole() {
        let v = json!({"b": {"y": 1, "x": "\u{e4}"}, "a": [1, {}], "c": {}});
        let mut told = Canonical::default();
        told.open();
        told.key("a");
        told.value(&v["a"]);
        for key in ["b", "c"] {
            told.key(key);
            told.fields(v[key].as_object().expect("a map"), |_| true, |v| v);
        }
        told.close();
        assert_eq!(told.hex(), digest(&v));
        assert_eq!(digest(&v), sha256_hex(canonical(&v)));
        // More than is gathered at once.
        let long = json!("0123456789".repeat(5000));
        assert_eq!(digest(&long), sha256_hex(canonical(&long)));
    }
}
