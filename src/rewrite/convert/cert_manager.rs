//! cert-manager's versions before v1 (removed in its release 1.6).

use super::super::removed::Removal;
use super::super::work::{Work, set, take};
use serde_json::{Value, json};

/// Rule 44. Written as it was read when green's CRD is the one of blue and serves only that.
pub(super) fn convert(w: &mut Work, r: &Removal) {
    let key = (w.id.group().to_string(), w.id.kind.clone());
    let only_old =
        w.cx.served
            .get(&key)
            .is_some_and(|v| !v.contains("v1") && v.contains(w.id.version()));
    if only_old {
        return;
    }
    let Some(api) = r.successor().map(String::from) else {
        return;
    };
    set(&mut w.object, "/apiVersion", json!(api));
    if w.kind() == "Certificate" {
        let mut key = w
            .object
            .pointer("/spec/privateKey")
            .cloned()
            .unwrap_or(json!({}));
        for (old, new) in [
            ("keyAlgorithm", "algorithm"),
            ("keySize", "size"),
            ("keyEncoding", "encoding"),
        ] {
            if let Some(v) = take(&mut w.object, &format!("/spec/{old}")) {
                key[new] = match v.as_str() {
                    Some("rsa") => json!("RSA"),
                    Some("ecdsa") => json!("ECDSA"),
                    Some("pkcs1") => json!("PKCS1"),
                    Some("pkcs8") => json!("PKCS8"),
                    _ => v,
                };
            }
        }
        if key.as_object().is_some_and(|k| !k.is_empty()) {
            set(&mut w.object, "/spec/privateKey", key);
        }
        // v1alpha2 to v1beta1 spelled these flat, v1 below subject and in capitals.
        for (old, new) in [
            ("/spec/organization", "/spec/subject/organizations"),
            ("/spec/emailSANs", "/spec/emailAddresses"),
            ("/spec/uriSANs", "/spec/uris"),
        ] {
            if let Some(v) = take(&mut w.object, old)
                && !matches!(&v, Value::Array(a) if a.is_empty())
            {
                set(&mut w.object, new, v);
            }
        }
    }
    w.changed(44);
}
