//! Rule 61: CustomResourceDefinitions in v1, with a structural schema, without a lost field.

use super::super::removed::Removal;
use super::super::work::{Work, items, set, take, text};
use super::{ca_is_injected, rename, schema};
use crate::object::annotation;
use crate::plan::model::Severity;
use serde_json::{Value, json};

/// v1beta1 to v1: what stood once for all versions stands in each.
pub(super) fn convert(w: &mut Work, r: &Removal) {
    let old = w.object.pointer("/spec").cloned().unwrap_or(json!({}));
    // v1beta1 kept unknown fields unless told otherwise; pruning them now would lose data.
    let preserve = old.get("preserveUnknownFields") != Some(&json!(false));
    let shared_schema = old.pointer("/validation/openAPIV3Schema");
    let mut versions: Vec<Value> = items(&old, "/versions").cloned().collect();
    if versions.is_empty() {
        versions = vec![json!({"name": old["version"], "served": true, "storage": true})];
    }
    let mut schemaless = false;
    let mut lost = vec![];
    for v in &mut versions {
        let own = v.pointer("/schema/openAPIV3Schema").or(shared_schema);
        let mut s = own.cloned().unwrap_or_else(|| {
            schemaless = true;
            json!({})
        });
        // Where unknown fields were pruned already, the server had made sure of the structure.
        if preserve || schemaless {
            lost.extend(schema::structural(&mut s));
        }
        v["schema"] = json!({"openAPIV3Schema": s});
        for key in ["subresources", "additionalPrinterColumns"] {
            if v.get(key).is_none()
                && let Some(x) = old.get(key)
            {
                v[key] = x.clone();
            }
        }
        let columns = v
            .get_mut("additionalPrinterColumns")
            .and_then(Value::as_array_mut);
        for c in columns.into_iter().flatten() {
            if let Some(path) = take(c, "/JSONPath") {
                c["jsonPath"] = path;
            }
        }
    }
    let spec = &mut w.object["spec"];
    spec["versions"] = Value::Array(versions);
    for key in [
        "version",
        "validation",
        "subresources",
        "additionalPrinterColumns",
        "preserveUnknownFields",
    ] {
        take(spec, &format!("/{key}"));
    }
    if spec.get("scope").is_none() {
        // What v1beta1 took where nothing was said.
        spec["scope"] = json!("Namespaced");
    }
    if let Some(c) = take(spec, "/conversion") {
        let strategy = c["strategy"].as_str().unwrap_or("None").to_string();
        let mut new = json!({"strategy": strategy});
        if let Some(client) = c.get("webhookClientConfig") {
            let reviews = c
                .get("conversionReviewVersions")
                .cloned()
                .unwrap_or(json!(["v1beta1"]));
            new["webhook"] = json!({"clientConfig": client, "conversionReviewVersions": reviews});
        }
        spec["conversion"] = new;
    }
    w.changed(61);
    rename::convert(w, r);
    if schemaless {
        w.find(
            "API-07",
            Severity::Warning,
            61,
            "has no schema: green keeps every field and validates none",
            "Write a structural schema when there is time.",
        );
    }
    say_lost(w, lost);
}

fn say_lost(w: &mut Work, mut lost: Vec<String>) {
    lost.sort();
    lost.dedup();
    if lost.is_empty() {
        return;
    }
    w.find(
        "API-07",
        Severity::Warning,
        61,
        format!(
            "a structural schema cannot say all that this one did; green keeps the fields and does not check: {}",
            crate::checks::few(&lost)
        ),
        "Install the CRD of the operator's present release, or accept it.",
    );
}

/// Of every version.
pub(super) fn current(w: &mut Work) {
    w.tidied(61);
    // Written as v1beta1 long ago and read as v1: the server shows what v1 itself would refuse to create.
    let preserve = w.object.pointer("/spec/preserveUnknownFields") == Some(&json!(true));
    if w.object.pointer("/spec/preserveUnknownFields").is_some() {
        take(&mut w.object, "/spec/preserveUnknownFields");
        w.changed(61);
    }
    if preserve {
        let mut lost = vec![];
        let versions = w.object.pointer_mut("/spec/versions");
        for version in versions.and_then(Value::as_array_mut).into_iter().flatten() {
            let mut s = version
                .pointer("/schema/openAPIV3Schema")
                .cloned()
                .unwrap_or(json!({}));
            lost.extend(schema::structural(&mut s));
            version["schema"] = json!({"openAPIV3Schema": s});
        }
        w.changed(61);
        say_lost(w, lost);
    }
    approval(w);
    if text(&w.object, "/spec/conversion/strategy") == Some("Webhook") {
        if ca_is_injected(w.original) {
            take(
                &mut w.object,
                "/spec/conversion/webhook/clientConfig/caBundle",
            );
            w.changed(61);
        }
        w.find(
            "API-07",
            Severity::Blocker,
            61,
            "versions are converted by a webhook, whose backend must answer on green before any object of this kind is written",
            "Install the operator on green first, then list the CRD under workloads.skip.",
        );
    }
}

/// v1 takes a group below k8s.io or kubernetes.io only with a word about its review.
fn approval(w: &mut Work) {
    const KEY: &str = "api-approved.kubernetes.io";
    let group = text(&w.object, "/spec/group").unwrap_or("");
    let theirs = group == "k8s.io"
        || group == "kubernetes.io"
        || group.ends_with(".k8s.io")
        || group.ends_with(".kubernetes.io");
    if theirs && annotation(&w.object, KEY).is_none() {
        set(
            &mut w.object,
            &format!("/metadata/annotations/{KEY}"),
            json!("unapproved, as on the old cluster"),
        );
        w.changed(61);
    }
}
