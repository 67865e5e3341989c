//! Helm's records of releases: how Helm 3 keeps them, and what a snapshot may know of one.
//!
//! A record is a Secret of type `helm.sh/release.v1` (or a ConfigMap labelled `owner=helm`) named `sh.helm.release.v1.NAME.vREVISION`; its
//! key `release` holds base64 of gzip of JSON, which a Secret's own base64 wraps once more. The JSON has the values that the user gave and the
//! rendered manifest, Secrets in clear: it is never kept, only the names of the objects are.

pub mod manifest;
#[cfg(test)]
pub(crate) mod tests;

use crate::object::{ObjectId, label};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::{Read, Write};

/// Type of the Secrets.
pub const SECRET_TYPE: &str = "helm.sh/release.v1";
/// What a Secret may hold, bytes (Kubernetes' own limit).
pub const MAX_RECORD: usize = 1 << 20;
/// What a record may unpack to, bytes: a record of 1 MiB that unpacks to more is no record.
const MAX_UNPACKED: u64 = 64 << 20;

/// What a snapshot keeps of a record: names, never values.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Release {
    /// The record, as in `secret/shop/sh.helm.release.v1.web.v3`.
    pub object: String,
    /// Namespace of the release.
    pub namespace: String,
    /// Name of the release.
    pub name: String,
    /// Chart.
    pub chart: String,
    /// Version of the chart.
    pub chart_version: String,
    /// Objects of its manifest; without a namespace where the manifest gives none.
    pub objects: Vec<ObjectId>,
    /// Objects of its hooks.
    pub hooks: Vec<ObjectId>,
    /// Why nothing could be read of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// Whether an object is a record of Helm 3.
pub fn is_record(object: &Value) -> bool {
    match object.get("kind").and_then(Value::as_str) {
        Some("Secret") => object.get("type").and_then(Value::as_str) == Some(SECRET_TYPE),
        Some("ConfigMap") => {
            label(object, "owner") == Some("helm")
                && object
                    .pointer("/metadata/name")
                    .and_then(Value::as_str)
                    .is_some_and(|n| n.starts_with("sh.helm.release.v1."))
        }
        _ => false,
    }
}

/// The record's text: base64 of gzip of JSON. `None` when its value is not there (a snapshot holds none).
pub fn text_of(object: &Value) -> Option<String> {
    let held = object.pointer("/data/release")?.as_str()?;
    if object.get("kind").and_then(Value::as_str) != Some("Secret") {
        return Some(held.to_string());
    }
    let plain: String = held.chars().filter(|c| !c.is_whitespace()).collect();
    String::from_utf8(STANDARD.decode(plain).ok()?).ok()
}

/// The same text as the object holds it.
pub fn held_by(kind: &str, text: &str) -> Value {
    match kind {
        "Secret" => json!(STANDARD.encode(text)),
        _ => json!(text),
    }
}

/// Unpacks a record. The error says nothing of its content.
pub fn unpack(text: &str) -> Result<Value, String> {
    let packed = STANDARD
        .decode(text.trim())
        .map_err(|_| "it is not base64".to_string())?;
    // The first records of Helm 3 were not compressed.
    let json = if packed.starts_with(&[0x1f, 0x8b]) {
        let mut out = vec![];
        let mut reader = flate2::read::GzDecoder::new(packed.as_slice()).take(MAX_UNPACKED + 1);
        reader
            .read_to_end(&mut out)
            .map_err(|_| "its gzip is damaged".to_string())?;
        if out.len() as u64 > MAX_UNPACKED {
            return Err(format!("it unpacks to more than {MAX_UNPACKED} bytes"));
        }
        out
    } else {
        packed
    };
    let value: Value = serde_json::from_slice(&json).map_err(|_| "it is not JSON".to_string())?;
    if !value.is_object() {
        return Err("it is not a release".into());
    }
    Ok(value)
}

/// Packs a record as Helm does; the same release gives the same bytes.
pub fn pack(release: &Value) -> Result<String, String> {
    let mut gz = flate2::write::GzEncoder::new(vec![], flate2::Compression::best());
    let packed = gz
        .write_all(release.to_string().as_bytes())
        .and_then(|()| gz.finish())
        .map_err(|e| format!("it cannot be packed: {e}"))?;
    Ok(STANDARD.encode(packed))
}

/// What may be kept of a record, when the object is one and holds its value.
pub fn release(object: &Value) -> Option<Release> {
    if !is_record(object) {
        return None;
    }
    let id = ObjectId::of(object)?;
    let masked = object
        .pointer("/data/release")
        .and_then(Value::as_str)
        .is_none_or(|t| t.starts_with(crate::snapshot::model::HASH_PREFIX));
    if masked {
        return None;
    }
    let mut out = Release {
        object: id.to_string(),
        namespace: id.namespace.clone().unwrap_or_default(),
        name: label(object, "name").unwrap_or("?").to_string(),
        ..Release::default()
    };
    let read = text_of(object)
        .ok_or_else(|| "its value is not base64".to_string())
        .and_then(|t| unpack(&t));
    let value = match read {
        Ok(v) => v,
        Err(why) => {
            out.unreadable = Some(why);
            return Some(out);
        }
    };
    let text = |p: &str| {
        value
            .pointer(p)
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_string()
    };
    out.chart = text("/chart/metadata/name");
    out.chart_version = text("/chart/metadata/version");
    match manifest::ids(&text("/manifest")) {
        Ok(ids) => out.objects = ids,
        Err(why) => out.unreadable = Some(why),
    }
    let hooks = value.get("hooks").and_then(Value::as_array);
    for hook in hooks.into_iter().flatten() {
        let text = hook.get("manifest").and_then(Value::as_str).unwrap_or("");
        match manifest::ids(text) {
            Ok(ids) => out.hooks.extend(ids),
            Err(why) => out.unreadable = Some(why),
        }
    }
    Some(out)
}
