//! Rules 61, 62, 63, 64, 65: API versions that green does not serve, CRDs, webhooks.

use super::removed::{Removal, removal};
use super::work::{Work, items, set, take, text};
use crate::plan::model::Severity;
use serde_json::{Value, json};

/// The API server's "no limit" of an int32 field.
const UNLIMITED: i64 = 2_147_483_647;

/// Brings the object into a version that green serves, or refuses it.
pub(super) fn convert(w: &mut Work) {
    if w.kind() == "PodSecurityPolicy" {
        return psp(w);
    }
    let id = w.id.clone();
    let Some(r) = removal(id.group(), id.version(), &id.kind, w.cx.green_minor) else {
        match w.kind() {
            "CustomResourceDefinition" => crd(w),
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => webhook(w, false),
            "APIService" => api_service(w),
            "HorizontalPodAutoscaler" => scale_target(w),
            _ => {
                third_party(w);
                custom_resource(w);
            }
        }
        return;
    };
    if r.stored == Some(false) {
        return w.skip(1);
    }
    let specific = matches!(
        id.kind.as_str(),
        "Ingress"
            | "CustomResourceDefinition"
            | "PodDisruptionBudget"
            | "HorizontalPodAutoscaler"
            | "ValidatingWebhookConfiguration"
            | "MutatingWebhookConfiguration"
    );
    let successor = r.successor().map(String::from);
    match successor {
        Some(api) if specific || r.conversion.starts_with("mechanical") => {
            set(&mut w.object, "/apiVersion", json!(api));
            w.changed(65);
            w.find(
                "API-01",
                Severity::Info,
                65,
                format!("{} {} becomes {api}", id.api_version, id.kind),
                "Review the difference in the plan.",
            );
            match id.kind.as_str() {
                "Deployment" | "DaemonSet" | "StatefulSet" | "ReplicaSet" => workload(w),
                "CustomResourceDefinition" => crd(w),
                "PodDisruptionBudget" => pdb(w),
                "HorizontalPodAutoscaler" => hpa(w),
                "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
                    webhook(w, true)
                }
                "APIService" => api_service(w),
                // The Ingress shape is rule 66's.
                _ => {}
            }
        }
        _ => refuse(w, r),
    }
}

fn refuse(w: &mut Work, r: &Removal) {
    let gone = r.removed.clone().unwrap_or_default();
    let (id, what) = match &r.replacement {
        None => ("API-03", "has no successor".to_string()),
        Some(s) => (
            "API-02",
            format!("becomes {}, which needs a person's judgement", s.api),
        ),
    };
    w.refuse(65);
    w.find(
        id,
        Severity::Blocker,
        65,
        format!(
            "{} {} was removed in {gone} and {what}",
            w.id.api_version, w.id.kind
        ),
        "Replace the object on blue by its successor, or list it under workloads.skip.",
    );
}

/// Rule 53.
fn psp(w: &mut Work) {
    let level = super::pod_security::level_of_policy(w.original);
    w.refuse(53);
    w.find(
        "API-03",
        Severity::Warning,
        53,
        "PodSecurityPolicy was removed in 1.25: it cannot be carried over",
        format!("Label the namespaces that used it `pod-security.kubernetes.io/enforce: {level}`."),
    );
}

/// Rule 65: apps/v1 wants a selector, and silently changes defaults that the old versions had.
fn workload(w: &mut Work) {
    let kind = w.id.kind.clone();
    let extensions = w.id.group() == "extensions";
    let v1beta1 = w.id.version() == "v1beta1";
    take(&mut w.object, "/spec/rollbackTo");
    take(&mut w.object, "/spec/templateGeneration");
    if w.object.pointer("/spec/selector").is_none()
        && let Some(labels) = w.object.pointer("/spec/template/metadata/labels").cloned()
    {
        set(
            &mut w.object,
            "/spec/selector",
            json!({"matchLabels": labels}),
        );
    }
    let mut defaults: Vec<(&str, Value)> = vec![];
    match kind.as_str() {
        "Deployment" if extensions => {
            defaults.push(("/spec/progressDeadlineSeconds", json!(UNLIMITED)));
            defaults.push(("/spec/revisionHistoryLimit", json!(UNLIMITED)));
            let recreate = text(&w.object, "/spec/strategy/type") == Some("Recreate");
            if !recreate {
                defaults.push(("/spec/strategy/type", json!("RollingUpdate")));
                defaults.push(("/spec/strategy/rollingUpdate/maxSurge", json!(1)));
                defaults.push(("/spec/strategy/rollingUpdate/maxUnavailable", json!(1)));
            }
        }
        "Deployment" if v1beta1 => defaults.push(("/spec/revisionHistoryLimit", json!(2))),
        "DaemonSet" if v1beta1 => defaults.push(("/spec/updateStrategy/type", json!("OnDelete"))),
        "StatefulSet" if v1beta1 => defaults.push(("/spec/updateStrategy/type", json!("OnDelete"))),
        _ => {}
    }
    let mut written = vec![];
    for (path, value) in defaults {
        if w.object.pointer(path).is_none() {
            set(&mut w.object, path, value.clone());
            written.push(format!(
                "{} = {value}",
                path.trim_start_matches("/spec/").replace('/', ".")
            ));
        }
    }
    if !written.is_empty() {
        w.find(
            "API-04",
            Severity::Warning,
            65,
            format!(
                "the old version's defaults are written out, apps/v1 has others: {}",
                written.join(", ")
            ),
            "Keep them, or choose the new defaults after the migration.",
        );
    }
}

/// Rule 51.
fn pdb(w: &mut Work) {
    let empty = match w.object.pointer("/spec/selector") {
        None => false,
        Some(s) => {
            let none = |k: &str| {
                s.get(k).is_none_or(|v| {
                    v.as_object().is_some_and(|o| o.is_empty())
                        || v.as_array().is_some_and(|a| a.is_empty())
                })
            };
            none("matchLabels") && none("matchExpressions")
        }
    };
    if empty {
        w.refuse(51);
        w.find(
            "API-05",
            Severity::Blocker,
            51,
            "an empty selector guards no pod in policy/v1beta1 and every pod of the namespace in policy/v1",
            "Give the budget a selector on blue, delete it, or list it under workloads.skip.",
        );
        return;
    }
    w.tidied(51);
}

/// Rule 50.
fn hpa(w: &mut Work) {
    if w.id.version() == "v2beta1" {
        let metrics: Vec<Value> = items(&w.object, "/spec/metrics")
            .map(v2beta1_metric)
            .collect();
        if !metrics.is_empty() {
            set(&mut w.object, "/spec/metrics", Value::Array(metrics));
        }
    }
    w.changed(50);
    scale_target(w);
    let external = items(&w.object, "/spec/metrics")
        .any(|m| matches!(m["type"].as_str(), Some("External" | "Object" | "Pods")));
    if external {
        w.find(
            "VER-02",
            Severity::Warning,
            50,
            "scales by custom or external metrics, which an adapter must serve on green",
            "Install the metrics adapter on green before unpark.",
        );
    }
}

/// v2beta1 spelled targets flat.
pub(super) fn v2beta1_metric(m: &Value) -> Value {
    let mtype = m["type"].as_str().unwrap_or("").to_string();
    let key = mtype
        .chars()
        .next()
        .map(|c| c.to_lowercase().to_string())
        .unwrap_or_default()
        + mtype.get(1..).unwrap_or("");
    let src = m.get(&key).cloned().unwrap_or(json!({}));
    let mut out = json!({});
    match mtype.as_str() {
        "Resource" => {
            out["name"] = src["name"].clone();
        }
        "External" => {
            out["metric"] = json!({"name": src["metricName"]});
            if let Some(s) = src.get("metricSelector") {
                out["metric"]["selector"] = s.clone();
            }
        }
        "Pods" | "Object" => {
            out["metric"] = json!({"name": src["metricName"]});
            if let Some(s) = src.get("selector") {
                out["metric"]["selector"] = s.clone();
            }
            if let Some(t) = src.get("target") {
                out["describedObject"] = t.clone();
            }
        }
        _ => out = src.clone(),
    }
    out["target"] = if let Some(u) = src.get("targetAverageUtilization") {
        json!({"type": "Utilization", "averageUtilization": u})
    } else if let Some(v) = src.get("targetAverageValue").or(src.get("averageValue")) {
        json!({"type": "AverageValue", "averageValue": v})
    } else if let Some(v) = src.get("targetValue") {
        json!({"type": "Value", "value": v})
    } else {
        src.get("target").cloned().unwrap_or(Value::Null)
    };
    json!({"type": mtype, key: out})
}

/// The target's apiVersion may be a removed one.
fn scale_target(w: &mut Work) {
    let api = text(&w.object, "/spec/scaleTargetRef/apiVersion")
        .unwrap_or("")
        .to_string();
    let kind = text(&w.object, "/spec/scaleTargetRef/kind")
        .unwrap_or("")
        .to_string();
    let (group, version) = api.split_once('/').unwrap_or(("", &api));
    if let Some(r) = removal(group, version, &kind, w.cx.green_minor)
        && let Some(next) = r.successor()
    {
        set(
            &mut w.object,
            "/spec/scaleTargetRef/apiVersion",
            json!(next),
        );
        w.changed(65);
    }
}

/// Rule 61.
fn crd(w: &mut Work) {
    w.tidied(61);
    if w.id.version() == "v1beta1" {
        let old = w.object.pointer("/spec").cloned().unwrap_or(json!({}));
        let top_schema = old.pointer("/validation/openAPIV3Schema").cloned();
        let preserve = old.get("preserveUnknownFields") != Some(&json!(false));
        let mut versions: Vec<Value> = items(&old, "/versions").cloned().collect();
        if versions.is_empty() {
            versions = vec![json!({"name": old["version"], "served": true, "storage": true})];
        }
        let mut schemaless = false;
        for v in &mut versions {
            let own = v.pointer("/schema/openAPIV3Schema").cloned();
            let mut schema = match own.or(top_schema.clone()) {
                Some(s) => s,
                None => {
                    schemaless = true;
                    json!({})
                }
            };
            structural(&mut schema);
            schema["type"] = json!("object");
            if preserve {
                // v1beta1 kept unknown fields by default; pruning them now would lose data (rule 61).
                schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
            }
            v["schema"] = json!({"openAPIV3Schema": schema});
            for key in ["subresources"] {
                if v.get(key).is_none()
                    && let Some(x) = old.get(key)
                {
                    v[key] = x.clone();
                }
            }
            if v.get("additionalPrinterColumns").is_none()
                && let Some(x) = old.get("additionalPrinterColumns")
            {
                v["additionalPrinterColumns"] = x.clone();
            }
            if let Some(cols) = v
                .get_mut("additionalPrinterColumns")
                .and_then(Value::as_array_mut)
            {
                for c in cols {
                    if let Some(path) = take(c, "/JSONPath") {
                        c["jsonPath"] = path;
                    }
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
        if let Some(c) = take(spec, "/conversion") {
            let strategy = c["strategy"].as_str().unwrap_or("None").to_string();
            let mut new = json!({"strategy": strategy});
            if let Some(client) = c.get("webhookClientConfig") {
                let reviews = c
                    .get("conversionReviewVersions")
                    .cloned()
                    .unwrap_or(json!(["v1beta1"]));
                new["webhook"] =
                    json!({"clientConfig": client, "conversionReviewVersions": reviews});
            }
            spec["conversion"] = new;
        }
        w.changed(61);
        if schemaless {
            w.find(
                "API-07",
                Severity::Warning,
                61,
                "has no schema: green keeps every field and validates none",
                "Write a structural schema when there is time.",
            );
        }
    }
    // Written as v1beta1 long ago and read as v1: the server shows what v1 itself would refuse to create.
    if w.object.pointer("/spec/preserveUnknownFields") == Some(&json!(true)) {
        take(&mut w.object, "/spec/preserveUnknownFields");
        let versions = w.object.pointer_mut("/spec/versions");
        for version in versions.and_then(Value::as_array_mut).into_iter().flatten() {
            let mut schema = version
                .pointer("/schema/openAPIV3Schema")
                .cloned()
                .unwrap_or(json!({}));
            structural(&mut schema);
            schema["type"] = json!("object");
            schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
            version["schema"] = json!({"openAPIV3Schema": schema});
        }
        w.changed(61);
    }
    if text(&w.object, "/spec/conversion/strategy") == Some("Webhook") {
        take(
            &mut w.object,
            "/spec/conversion/webhook/clientConfig/caBundle",
        );
        w.changed(61);
        w.find(
            "API-07",
            Severity::Blocker,
            61,
            "versions are converted by a webhook, whose backend must answer on green before any object of this kind is written",
            "Install the operator on green first, then list the CRD under workloads.skip.",
        );
    }
}

/// What v1 demands of every level of a schema: a type, unless unknown fields are preserved or it is int-or-string.
fn structural(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else {
        return;
    };
    if map.get("x-kubernetes-int-or-string") != Some(&json!(true)) && !map.contains_key("type") {
        if map.contains_key("properties") || map.contains_key("additionalProperties") {
            map.insert("type".into(), json!("object"));
        } else if map.contains_key("items") {
            map.insert("type".into(), json!("array"));
        } else if map.len() <= 1 && !map.contains_key("$ref") {
            map.insert("x-kubernetes-preserve-unknown-fields".into(), json!(true));
        }
    }
    if let Some(props) = map.get_mut("properties").and_then(Value::as_object_mut) {
        props.values_mut().for_each(structural);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(v) = map.get_mut(key) {
            structural(v);
        }
    }
}

/// Rule 63.
fn webhook(w: &mut Work, v1beta1: bool) {
    let mut questions = vec![];
    let mut fail_closed = false;
    let mut with_ca = false;
    let mut by_url = vec![];
    let hooks = w.object.get_mut("webhooks").and_then(Value::as_array_mut);
    for hook in hooks.into_iter().flatten() {
        let name = hook["name"].as_str().unwrap_or("?").to_string();
        if v1beta1 {
            for (key, old) in [
                ("failurePolicy", json!("Ignore")),
                ("matchPolicy", json!("Exact")),
                ("timeoutSeconds", json!(30)),
                ("admissionReviewVersions", json!(["v1beta1"])),
            ] {
                if hook.get(key).is_none() {
                    hook[key] = old;
                }
            }
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
        with_ca |= hook.pointer("/clientConfig/caBundle").is_some();
        if let Some(url) = text(hook, "/clientConfig/url") {
            by_url.push(url.to_string());
        }
    }
    w.hold(63);
    if !questions.is_empty() {
        w.changed(63);
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
    if !by_url.is_empty() {
        w.find(
            "API-13",
            Severity::Warning,
            63,
            format!("calls a URL: {}", by_url.join(", ")),
            "Check that the address is reached from green and does not mean blue.",
        );
    }
}

/// Rule 64.
fn api_service(w: &mut Work) {
    w.hold(64);
    if take(&mut w.object, "/spec/caBundle").is_some() {
        w.changed(64);
    }
    w.find(
        "API-13",
        Severity::Warning,
        64,
        "an aggregated API: while its Service is not ready, discovery and the deletion of namespaces fail on green",
        "Check the backend after unpark.",
    );
}

/// Versions of well-known operators that are gone since long (removed-apis.yaml, third_party_apis).
fn third_party(w: &mut Work) {
    let group = w.id.group().to_string();
    let version = w.id.version().to_string();
    if (group == "cert-manager.io" || group == "acme.cert-manager.io") && version != "v1" {
        set(&mut w.object, "/apiVersion", json!(format!("{group}/v1")));
        if w.kind() == "Certificate" {
            let mut key = json!({});
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
            if let Some(o) = take(&mut w.object, "/spec/organization") {
                set(&mut w.object, "/spec/subject/organizations", o);
            }
        }
        w.changed(44);
    }
}

/// Rule 62: a custom resource is written in the version it was read in, so its CRD must come along.
fn custom_resource(w: &mut Work) {
    let group = w.id.group();
    let built_in = group.is_empty() || group.ends_with(".k8s.io") || !group.contains('.');
    if built_in || w.id.api_version.starts_with("cert-manager.io/v1alpha") {
        return;
    }
    if w.id.api_version.contains("cert-manager.io/") {
        w.tidied(62);
        return;
    }
    if w.cx.crds.is_empty()
        || !w
            .cx
            .crds
            .contains_key(&(group.to_string(), w.id.kind.clone()))
    {
        w.find(
            "API-02",
            Severity::Warning,
            62,
            format!(
                "no CustomResourceDefinition of {}/{} was found on blue",
                group, w.id.kind
            ),
            "Install the CRD on green before the replay.",
        );
    }
    w.tidied(62);
}
