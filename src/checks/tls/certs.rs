//! What is known about certificates: Certificates of cert-manager of any age, TLS entries of Ingresses, Secrets.

use crate::checks::look::{items, text};
use crate::checks::{BlueObject, Input};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A cert-manager Certificate.
pub(super) struct Certificate<'a> {
    /// The object.
    pub object: &'a BlueObject<'a>,
    /// Secret it writes, `namespace/name`.
    pub secret: String,
    /// Names in it.
    pub names: Vec<&'a str>,
    /// Last day on which it is valid, when its status tells.
    pub until: Option<jiff::civil::Date>,
    /// Issuer: its kind, and `namespace/name` or the name of a ClusterIssuer.
    pub issuer: (String, String),
}

/// All Certificates of blue (cert-manager.io, and certmanager.k8s.io up to 0.10).
pub(super) fn certificates<'a>(i: &Input<'a>) -> Vec<Certificate<'a>> {
    i.of_kind("Certificate")
        .filter(|o| matches!(o.id.group(), "cert-manager.io" | "certmanager.k8s.io"))
        .filter_map(|o| {
            let v = o.object;
            let ns = o.id.namespace.as_deref().unwrap_or("");
            let names = items(v, "/spec/dnsNames")
                .filter_map(Value::as_str)
                .chain(text(v, "/spec/commonName"))
                .collect();
            let until = text(v, "/status/notAfter")
                .and_then(|t| t.get(..10))
                .and_then(|d| d.parse().ok());
            let issuer = text(v, "/spec/issuerRef/name").unwrap_or("");
            let kind = text(v, "/spec/issuerRef/kind").unwrap_or("Issuer");
            Some(Certificate {
                object: o,
                secret: format!("{ns}/{}", text(v, "/spec/secretName")?),
                names,
                until,
                issuer: (
                    kind.to_string(),
                    if kind == "ClusterIssuer" {
                        issuer.to_string()
                    } else {
                        format!("{ns}/{issuer}")
                    },
                ),
            })
        })
        .collect()
}

/// Hosts by the Secret that an Ingress which goes to green names for them.
pub(super) fn named_secrets(i: &Input) -> BTreeMap<String, BTreeSet<String>> {
    let mut out: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for o in i.moving(&["Ingress"]) {
        let ns = o.id.namespace.as_deref().unwrap_or("");
        for t in items(o.object, "/spec/tls") {
            if let Some(name) = text(t, "/secretName").filter(|n| !n.is_empty()) {
                out.entry(format!("{ns}/{name}")).or_default().extend(
                    items(t, "/hosts")
                        .filter_map(Value::as_str)
                        .map(str::to_lowercase),
                );
            }
        }
    }
    out
}

/// Secrets of blue by `namespace/name`: whether green gets them (copied, or made again there by what owns them). `None` when no Secret was read.
pub(super) fn secrets(i: &Input) -> Option<BTreeMap<String, bool>> {
    let all: BTreeMap<String, bool> = i
        .of_kind("Secret")
        .map(|o| (o.key(), o.moves() || o.is_child()))
        .collect();
    (!all.is_empty()).then_some(all)
}

/// An Issuer or ClusterIssuer.
pub(super) fn issuers<'a>(i: &Input<'a>) -> impl Iterator<Item = &'a BlueObject<'a>> {
    i.of_kind("Issuer")
        .chain(i.of_kind("ClusterIssuer"))
        .filter(|o| matches!(o.id.group(), "cert-manager.io" | "certmanager.k8s.io"))
}

/// Issuers that order by ACME, as a Certificate names them: kind, and `namespace/name` or the name of a ClusterIssuer.
pub(super) fn acme_issuers(i: &Input) -> BTreeSet<(String, String)> {
    issuers(i)
        .filter(|o| o.object.pointer("/spec/acme").is_some())
        .map(|o| {
            let key = if o.id.kind == "ClusterIssuer" {
                o.id.name.clone()
            } else {
                o.key()
            };
            (o.id.kind.clone(), key)
        })
        .collect()
}
