//! Rule 63: admission webhooks.

use super::super::removed::Removal;
use super::super::work::{Work, take, text};
use super::{ca_is_injected, rename};
use crate::plan::model::Severity;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What v1beta1 took where nothing was said, and v1 would take otherwise.
fn old_defaults() -> [(&'static str, Value); 4] {
    [
        ("failurePolicy", json!("Ignore")),
        ("matchPolicy", json!("Exact")),
        ("timeoutSeconds", json!(30)),
        ("admissionReviewVersions", json!(["v1beta1"])),
    ]
}

fn hooks(object: &mut Value) -> impl Iterator<Item = &mut Value> {
    object
        .get_mut("webhooks")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}

/// v1beta1 to v1.
pub(super) fn convert(w: &mut Work, r: &Removal) {
    for hook in hooks(&mut w.object) {
        for (key, old) in old_defaults() {
            if hook.get(key).is_none_or(Value::is_null) {
                hook[key] = old;
            }
        }
    }
    w.changed(63);
    rename::convert(w, r);
}

/// Of every version.
pub(super) fn current(w: &mut Work) {
    let mut questions = vec![];
    let mut fail_closed = false;
    let mut with_ca = false;
    let mut urls = vec![];
    let mut names = BTreeSet::new();
    let mut twice = BTreeSet::new();
    let injected = ca_is_injected(w.original);
    for hook in hooks(&mut w.object) {
        let name = hook["name"].as_str().unwrap_or("?").to_string();
        if !names.insert(name.clone()) {
            twice.insert(name.clone());
        }
        let effects = hook["sideEffects"]
            .as_str()
            .unwrap_or("Unknown")
            .to_string();
        if !matches!(effects.as_str(), "None" | "NoneOnDryRun") {
            questions.push(format!("{name} ({effects})"));
            hook["sideEffects"] = json!("NoneOnDryRun");
        }
        fail_closed |= hook["failurePolicy"] == "Fail";
        if injected {
            take(hook, "/clientConfig/caBundle");
        } else {
            with_ca |= hook.pointer("/clientConfig/caBundle").is_some();
        }
        if let Some(url) = text(hook, "/clientConfig/url") {
            urls.push(url.to_string());
        }
    }
    w.hold(63);
    if !questions.is_empty() {
        w.find(
            "API-13",
            Severity::Blocker,
            63,
            format!(
                "sideEffects must be None or NoneOnDryRun in v1; unknown for {}",
                questions.join(", ")
            ),
            "Set sideEffects on blue to what is true, then plan again.",
        );
    }
    if !twice.is_empty() {
        let list: Vec<String> = twice.into_iter().collect();
        w.find(
            "API-13",
            Severity::Blocker,
            63,
            format!(
                "names of webhooks must be unique in v1: {}",
                list.join(", ")
            ),
            "Rename one of them on blue.",
        );
    }
    if fail_closed {
        w.find(
            "API-13",
            Severity::Warning,
            63,
            "fails closed: it is created after its backend runs on green, last of all",
            "Make sure that its Service has ready endpoints after unpark.",
        );
    }
    if with_ca {
        w.find(
            "API-13",
            Severity::Warning,
            63,
            "carries a CA bundle of blue: a new serving certificate on green will not match it",
            "Copy the serving certificate's Secret too, or let cert-manager inject the CA.",
        );
    }
    let (blue, elsewhere): (Vec<String>, Vec<String>) = urls
        .into_iter()
        .partition(|u| loops_back(u) || !w.cx.blue_literals(u).is_empty());
    if !blue.is_empty() {
        w.find(
            "API-13",
            Severity::Blocker,
            63,
            format!(
                "calls a URL that means blue or blue's own masters: {}",
                blue.join(", ")
            ),
            "Give the webhook a Service of green, or list it under workloads.skip.",
        );
    }
    if !elsewhere.is_empty() {
        w.find(
            "API-13",
            Severity::Warning,
            63,
            format!("calls a URL: {}", elsewhere.join(", ")),
            "Check that the address is reached from green and does not mean blue.",
        );
    }
}

/// Whether a URL means the machine of the API server itself.
fn loops_back(url: &str) -> bool {
    let host = url.split("://").nth(1).unwrap_or(url);
    let host = host.split('/').next().unwrap_or("");
    host.starts_with("127.") || host.starts_with("localhost") || host.starts_with("[::1]")
}
