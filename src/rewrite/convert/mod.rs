//! Rules 61 to 65: API versions that green does not serve, and kinds whose present version has rules too.
//!
//! Which version is gone when, what took its place and how it is converted is data (`removed-apis.yaml`). A row names a conversion; most are
//! `rename` (with the moves, fills and defaults of the row). One that needs code is a file here and a line in [`REGISTRY`].

mod cert_manager;
mod crd;
mod custom;
mod device;
mod endpoint_slice;
mod flow;
mod hpa;
mod ingress;
mod pdb;
mod psp;
mod rbac;
mod rename;
mod schema;
mod webhook;

#[cfg(test)]
mod tests;

pub(super) use hpa::metric as hpa_metric;
pub(crate) use psp::{Level, level, mutates};

use super::removed::{Removal, Table, table};
use super::work::{Work, set, take};
use crate::object::annotation;
use crate::plan::model::Severity;
use serde_json::{Value, json};

/// A conversion: brings the object into the successor's version, or refuses it, and marks what it changed.
type Convert = fn(&mut Work, &Removal);

/// The conversions by the name that rows of the data use.
const REGISTRY: &[(&str, Convert)] = &[
    ("cert-manager", cert_manager::convert),
    ("crd", crd::convert),
    ("device-requests", device::convert),
    ("endpoint-slice", endpoint_slice::convert),
    ("hpa", hpa::convert),
    ("ingress", ingress::convert),
    ("keep", keep),
    ("never", never),
    ("pdb", pdb::convert),
    ("pod-security-policy", psp::convert),
    ("priority-level", flow::convert),
    ("rbac-subjects", rbac::subjects),
    ("refuse", refuse),
    ("rename", rename::convert),
    ("webhook", webhook::convert),
];

fn by_name(name: &str) -> Option<Convert> {
    REGISTRY.iter().find(|(n, _)| *n == name).map(|(_, c)| *c)
}

/// Brings the object into a version that green serves, or refuses it.
pub(super) fn convert(w: &mut Work) {
    with(w, table());
}

/// The same by another table (a test's).
fn with(w: &mut Work, table: &Table) {
    to_served(w, table);
    if w.decided() {
        return;
    }
    features(w, table);
    current(w);
}

/// The version alone, without what else rules say about the kind: what a stored manifest needs.
pub(super) fn to_served_version(w: &mut Work) {
    let table = table();
    let row = table.removal(w.id.group(), w.id.version(), &w.id.kind, w.cx.green_minor);
    match row {
        // The effective defaults of blue stand in the live object; a manifest says only what its author said, or the next
        // upgrade would take them for the author's and remove them.
        // Whatever green makes itself, the manifest may name.
        Some(r) if r.convert() == "never" => rename::convert(w, r),
        Some(r) if r.stored != Some(false) => run(w, &r.without_defaults()),
        _ => third_party(w, table),
    }
}

fn to_served(w: &mut Work, table: &Table) {
    let row = table.removal(w.id.group(), w.id.version(), &w.id.kind, w.cx.green_minor);
    match row {
        Some(r) if r.stored == Some(false) => w.skip(1),
        Some(r) => run(w, r),
        None if table.never(w.id.group(), &w.id.kind) => w.skip(22),
        None => third_party(w, table),
    }
}

fn run(w: &mut Work, r: &Removal) {
    match by_name(r.convert()) {
        Some(convert) => convert(w, r),
        // A test reads all rows; a table from elsewhere may still name what this crossfade does not have.
        None => refuse(w, r),
    }
}

fn third_party(w: &mut Work, table: &Table) {
    let (group, version) = (w.id.group().to_string(), w.id.version().to_string());
    if let Some(t) = table.third_party(&group, &version, &w.id.kind) {
        let row = Removal::of_operator(t, &version, &w.id.kind);
        run(w, &row);
    }
}

/// Written as it was read (rule 62).
fn keep(_: &mut Work, _: &Removal) {}

/// Something on green makes it.
fn never(w: &mut Work, _: &Removal) {
    w.skip(22);
}

fn refuse(w: &mut Work, r: &Removal) {
    let (id, what) = match &r.replacement {
        None => ("API-03", "has no successor".to_string()),
        Some(s) => (
            "API-02",
            format!("becomes {}, which needs a person's judgement", s.api),
        ),
    };
    let gone = match &r.removed {
        Some(v) => format!("was removed in {v}"),
        None => "is no longer served by its operator".into(),
    };
    let remedy = match &r.ask {
        Some(ask) => format!(
            "On blue or by hand on green: {ask}. Then list the object under workloads.skip."
        ),
        None => {
            "Replace the object on blue by its successor, or list it under workloads.skip.".into()
        }
    };
    w.refuse(65);
    w.find(
        id,
        Severity::Blocker,
        65,
        format!("{} {} {gone} and {what}", w.id.api_version, w.id.kind),
        remedy,
    );
}

/// Annotations that became fields or other annotations (`removed_features` of the data).
fn features(w: &mut Work, table: &Table) {
    for f in &table.removed_features {
        let Some(r) = &f.rewrite else { continue };
        if !w.id.group().is_empty() || !r.kinds.contains(&w.id.kind) {
            continue;
        }
        let key = format!("/metadata/annotations/{}", r.annotation.replace('/', "~1"));
        let Some(Value::String(text)) = take(&mut w.object, &key) else {
            continue;
        };
        if w.object.pointer(&r.to).is_none() {
            let value = match &r.split {
                Some(cut) => text
                    .split(cut.as_str())
                    .map(str::trim)
                    .filter(|t| !t.is_empty())
                    .map(Value::from)
                    .collect(),
                None => json!(text),
            };
            set(&mut w.object, &r.to, value);
        }
        w.changed(65);
    }
}

/// Kinds whose present version has rules too.
fn current(w: &mut Work) {
    let core = w.id.group().is_empty() || w.id.group().ends_with(".k8s.io");
    match w.kind() {
        "CustomResourceDefinition" => crd::current(w),
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => webhook::current(w),
        "APIService" => api_service(w),
        "HorizontalPodAutoscaler" => hpa::current(w),
        "PodDisruptionBudget" => pdb::current(w),
        "ClusterRole" | "Role" if core => rbac::rules(w),
        "RuntimeClass" if core => runtime_class(w),
        "PodSecurityPolicy" => psp::refuse(w),
        _ => custom::current(w),
    }
}

/// Annotations by which an injector of green puts its own CA in.
fn ca_is_injected(object: &Value) -> bool {
    [
        "cert-manager.io/inject-ca-from",
        "cert-manager.io/inject-ca-from-secret",
        "cert-manager.io/inject-apiserver-ca",
        "service.beta.openshift.io/inject-cabundle",
    ]
    .iter()
    .any(|k| annotation(object, k).is_some())
}

/// Rule 64.
fn api_service(w: &mut Work) {
    if w.object.pointer("/spec/caBundle").is_some() {
        if ca_is_injected(w.original) {
            take(&mut w.object, "/spec/caBundle");
            w.changed(64);
        } else {
            w.find(
                "API-13",
                Severity::Warning,
                64,
                "carries a CA bundle of blue: it answers only if its serving certificate comes along",
                "Copy the serving certificate's Secret too, or let cert-manager inject the CA.",
            );
        }
    }
    w.hold(64);
    w.find(
        "API-13",
        Severity::Warning,
        64,
        "an aggregated API: while its Service is not ready, discovery and the deletion of namespaces fail on green",
        "Check the backend after unpark.",
    );
}

/// The handler of a runtime class is a name in the nodes' containerd configuration.
fn runtime_class(w: &mut Work) {
    let handler = w.object["handler"].as_str().unwrap_or("?").to_string();
    if matches!(handler.as_str(), "runc" | "nvidia") {
        return;
    }
    w.find(
        "API-04",
        Severity::Warning,
        68,
        format!("pods of this class need the handler {handler} in the containerd configuration of green's nodes, and the handler of a class cannot be changed later"),
        "Give green's nodes the handler (node configuration of the launch template), or leave the class out.",
    );
}
