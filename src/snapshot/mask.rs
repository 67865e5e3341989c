//! Secret values never leave the cluster: before an object is kept, each value becomes a keyed hash and its size.
//!
//! The key lies beside the snapshot, not inside: who has only the snapshot can neither read nor guess a value (a plain hash
//! of a short password could be guessed), and who made it can still tell an unchanged value from a changed one.

use super::model::HASH_PREFIX;
use crate::error::{Error, Kind, Result};
use base64::Engine;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Map, Value, json};
use sha2::Sha256;
use std::io::Write;
use std::path::Path;

/// Name of the key file.
pub const KEY_FILE: &str = ".hash-key";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Key of the hashes of one plan folder.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// A key from bytes, for tests and twins.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Key(bytes)
    }

    /// The key beside a snapshot folder (`.hash-key`, mode 0600), made and kept when there is none yet.
    pub fn beside(snapshot: &Path) -> Result<Self> {
        let key = Self::load_or_new(snapshot)?;
        key.keep(snapshot)?;
        Ok(key)
    }

    /// The key beside a snapshot folder, or a new one from the system's randomness that is not kept yet: bad input must
    /// leave nothing behind, not even a key.
    pub fn load_or_new(snapshot: &Path) -> Result<Self> {
        let path = key_path(snapshot);
        match std::fs::read_to_string(&path) {
            Ok(text) => parse(text.trim())
                .map(Key)
                .ok_or_else(|| fail(&path, "used", &"it is not 64 hex digits")),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let mut bytes = [0u8; 32];
                rustls::crypto::aws_lc_rs::default_provider()
                    .secure_random
                    .fill(&mut bytes)
                    .map_err(|_| fail(&path, "made", &"no randomness"))?;
                Ok(Key(bytes))
            }
            Err(e) => Err(fail(&path, "read", &e)),
        }
    }

    /// Writes the key beside a snapshot folder, unless there is one.
    pub fn keep(&self, snapshot: &Path) -> Result<()> {
        let path = key_path(snapshot);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|e| fail(&path, "written", &e))?;
        }
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let hex: String = self.0.iter().map(|b| format!("{b:02x}")).collect();
        let written = options.open(&path).and_then(|mut f| {
            f.write_all(format!("{hex}\n").as_bytes())?;
            f.sync_all()
        });
        match written {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            other => other.map_err(|e| fail(&path, "written", &e)),
        }
    }

    /// `hmac-sha256:<hex>:<bytes>` of a value.
    pub fn marker(&self, value: &[u8]) -> String {
        // An HMAC takes a key of any length, so this cannot fail.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("any key length is fine");
        mac.update(value);
        let hex: String = mac
            .finalize()
            .into_bytes()
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        format!("{HASH_PREFIX}{hex}:{}", value.len())
    }
}

fn key_path(snapshot: &Path) -> std::path::PathBuf {
    match snapshot.parent() {
        Some(p) if !p.as_os_str().is_empty() => p.join(KEY_FILE),
        _ => Path::new(".").join(KEY_FILE),
    }
}

fn fail(path: &Path, what: &str, e: &dyn std::fmt::Display) -> Error {
    Error::new(
        Kind::BadInput,
        format!("the hash key cannot be {what}: {e}"),
    )
    .at(path.display().to_string())
    .remedy("make the folder writable, or restore the key file of this plan")
}

fn parse(hex: &str) -> Option<[u8; 32]> {
    let mut out = [0; 32];
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    for (i, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(out)
}

/// Masks one object in place, whatever its kind: values of a Secret (`data` and `stringData`, so Helm releases too) become
/// markers under `data`, keyed and sized by the decoded bytes; its last-applied annotation, which repeats them, goes.
/// managedFields go from every object, but for the node ports that somebody asked for. A value that already is a marker stays, so masking twice changes nothing.
pub fn object(key: &Key, object: &mut Value) {
    let secret = object.get("kind").and_then(Value::as_str) == Some("Secret")
        && object.get("apiVersion").and_then(Value::as_str) == Some("v1");
    if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        if let Some(managed) = meta.remove("managedFields")
            && let Some(ports) = asked_ports(&managed)
        {
            meta.insert("managedFields".into(), ports);
        }
        if let Some(notes) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
            // kubectl writes the whole applied text here; of a List it may be another object's, so look inside too.
            let repeats = notes
                .get(LAST_APPLIED)
                .and_then(Value::as_str)
                .is_some_and(|t| secret || t.contains("\"kind\":\"Secret\""));
            if repeats {
                notes.remove(LAST_APPLIED);
                if notes.is_empty() {
                    meta.remove("annotations");
                }
            }
        }
    }
    if !secret {
        return;
    }
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    let mut data = Map::new();
    // An empty map stays one: the hash of the live object must equal that of the kept one.
    let had_data = fields.get("data").is_some_and(Value::is_object);
    if let Some(Value::Object(old)) = fields.remove("data") {
        for (name, value) in old {
            let marker = match value.as_str() {
                Some(text) if is_marker(text) => text.to_string(),
                Some(text) => {
                    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
                    match base64::engine::general_purpose::STANDARD.decode(&plain) {
                        Ok(bytes) => key.marker(&bytes),
                        // Not base64, so no API server took it; it still is somebody's secret.
                        Err(_) => key.marker(text.as_bytes()),
                    }
                }
                None => key.marker(value.to_string().as_bytes()),
            };
            data.insert(name, Value::String(marker));
        }
    }
    if let Some(Value::Object(plain)) = fields.remove("stringData") {
        for (name, value) in plain {
            let marker = match value.as_str() {
                Some(text) if is_marker(text) => text.to_string(),
                Some(text) => key.marker(text.as_bytes()),
                None => key.marker(value.to_string().as_bytes()),
            };
            data.insert(name, Value::String(marker));
        }
    }
    if had_data || !data.is_empty() {
        fields.insert("data".into(), Value::Object(data));
    }
}

/// Of managedFields only who set which node port of a Service: nothing else tells a port that its owner asked for from one that the server gave
/// (replay.md 30).
fn asked_ports(managed: &Value) -> Option<Value> {
    let mut out = vec![];
    for entry in managed.as_array()? {
        let Some(spec) = entry.pointer("/fieldsV1/f:spec").and_then(Value::as_object) else {
            continue;
        };
        let mut kept = Map::new();
        let ports: Map<String, Value> = spec
            .get("f:ports")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter(|(_, fields)| fields.get("f:nodePort").is_some())
            .map(|(key, _)| (key.clone(), json!({"f:nodePort": {}})))
            .collect();
        if !ports.is_empty() {
            kept.insert("f:ports".into(), Value::Object(ports));
        }
        if spec.contains_key("f:healthCheckNodePort") {
            kept.insert("f:healthCheckNodePort".into(), json!({}));
        }
        if !kept.is_empty() {
            out.push(json!({"manager": entry["manager"], "operation": entry["operation"], "fieldsV1": {"f:spec": kept}}));
        }
    }
    (!out.is_empty()).then_some(Value::Array(out))
}

/// Whether a text is a marker, and not a value that only begins like one.
pub fn is_marker(text: &str) -> bool {
    text.strip_prefix(HASH_PREFIX)
        .and_then(|rest| rest.split_once(':'))
        .is_some_and(|(hex, size)| {
            hex.len() == 64
                && hex.chars().all(|c| c.is_ascii_hexdigit())
                && !size.is_empty()
                && size.chars().all(|c| c.is_ascii_digit())
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_way_of_writing_a_secret_leaves_its_value_behind() {
        let key = Key::from_bytes([7; 32]);
        let mut secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "s", "managedFields": [{"manager": "kubectl"}], "annotations": {
                LAST_APPLIED: "{\"kind\":\"Secret\",\"data\":{\"password\":\"Q0FOQVJZLWE=\"}}", "team": "a"}},
            "data": {"password": "Q0FOQVJZLWE=", "folded": "Q0FO\nQVJZLWE=", "broken": "CANARY!"},
            "stringData": {"token": "CANARY-a"}
        });
        object(&key, &mut secret);
        let text = secret.to_string();
        assert!(
            !text.contains("CANARY")
                && !text.contains("Q0FOQVJZ")
                && !text.contains("managedFields"),
            "{text}"
        );
        assert_eq!(secret["metadata"]["annotations"], json!({"team": "a"}));
        assert_eq!(
            secret["data"]["password"], secret["data"]["token"],
            "equal values, however written, hash alike"
        );
        assert_eq!(secret["data"]["password"], secret["data"]["folded"]);
        assert!(
            secret["data"]["password"]
                .as_str()
                .expect("text")
                .ends_with(":8")
        );
        assert!(secret.get("stringData").is_none());
        let once = secret.clone();
        object(&key, &mut secret);
        assert_eq!(once, secret, "masking twice changes nothing");
        let mut empty =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "e"}, "data": {}});
        let before = crate::rewrite::basis_hash(&empty);
        object(&key, &mut empty);
        assert_eq!(
            crate::rewrite::basis_hash(&empty),
            before,
            "no drift where nothing drifted"
        );
    }

    #[test]
    fn another_key_gives_other_hashes_and_other_objects_keep_their_values() {
        assert_ne!(
            Key::from_bytes([1; 32]).marker(b"x"),
            Key::from_bytes([2; 32]).marker(b"x")
        );
        let mut config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}});
        let before = config.clone();
        object(&Key::from_bytes([1; 32]), &mut config);
        assert_eq!(config, before);
    }

    #[test]
    fn the_key_is_made_once_private_and_beside_the_snapshot() {
        let dir = tempfile::tempdir().expect("dir");
        let snapshot = dir.path().join("plan/snapshot");
        let first = Key::beside(&snapshot).expect("made");
        let again = Key::beside(&snapshot).expect("found");
        assert_eq!(first.marker(b"x"), again.marker(b"x"));
        let path = dir.path().join("plan").join(KEY_FILE);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(
                std::fs::metadata(&path)
                    .expect("there")
                    .permissions()
                    .mode()
                    & 0o777,
                0o600
            );
        }
        std::fs::write(&path, "short").expect("written");
        assert_eq!(
            Key::beside(&snapshot).expect_err("damaged").kind,
            Kind::BadInput
        );
    }
}
