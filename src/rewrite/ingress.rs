//! Rule 66 and externaldns.md rule 18: Ingress shapes, classes, DNS annotations.

use super::work::{Work, items, set, take, text};
use crate::object::annotation;
use crate::plan::model::Severity;
use serde_json::{Value, json};

/// Rewrites Ingresses and the DNS annotations of Services.
pub(super) fn rewrite(w: &mut Work) {
    match w.kind() {
        "Ingress" => {
            ingress(w);
            dns(w);
        }
        "Service" => dns(w),
        "DNSEndpoint" => {
            w.hold(66);
            w.find(
                "DNS-14",
                Severity::Warning,
                66,
                "its targets are written down and mean blue: it is created only when nothing on green writes DNS, with the targets unchanged",
                "Replace the targets by green's load balancer.",
            );
        }
        _ => {}
    }
}

fn ingress(w: &mut Work) {
    w.tidied(66);
    let old = w.id.version() == "v1beta1";
    if old {
        if let Some(b) = take(&mut w.object, "/spec/backend") {
            set(&mut w.object, "/spec/defaultBackend", backend(&b));
        }
        let mut no_path = false;
        let mut regex = false;
        for rule in w
            .object
            .pointer_mut("/spec/rules")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            for p in rule
                .pointer_mut("/http/paths")
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                if p.get("path").is_none() {
                    p["path"] = json!("/");
                    no_path = true;
                }
                regex |= p["path"]
                    .as_str()
                    .is_some_and(|t| t.contains(['(', '*', '[', '$', '^']));
                if p.get("pathType").is_none() {
                    p["pathType"] = json!("ImplementationSpecific");
                }
                if let Some(b) = p.get("backend").cloned() {
                    p["backend"] = backend(&b);
                }
            }
        }
        w.changed(66);
        if no_path || regex {
            w.find(
                "API-06",
                Severity::Warning,
                66,
                format!(
                    "{}; every path gets pathType ImplementationSpecific",
                    match (no_path, regex) {
                        (true, true) =>
                            "a rule without a path becomes `/`, and a path is a regular expression",
                        (true, false) => "a rule without a path becomes `/`",
                        _ => "a path is a regular expression",
                    }
                ),
                "Confirm the path type with the ingress controller of green.",
            );
        }
    }
    let class = annotation(w.original, "kubernetes.io/ingress.class")
        .map(String::from)
        .or(text(w.original, "/spec/ingressClassName").map(String::from));
    // The annotation stays: controllers of both ages read it, and with it ingressClassName must not be set at creation.
    if class.is_none() {
        w.find(
            "API-06",
            Severity::Warning,
            66,
            "names no ingress class: every controller of green may serve it, or none",
            "Give it the class on blue.",
        );
    }
    for (key, rule) in [
        ("alb.ingress.kubernetes.io/subnets", 32),
        ("alb.ingress.kubernetes.io/security-groups", 32),
        ("alb.ingress.kubernetes.io/load-balancer-name", 32),
    ] {
        if take(
            &mut w.object,
            &format!("/metadata/annotations/{}", key.replace('/', "~1")),
        )
        .is_some()
        {
            w.changed(rule);
            w.find(
                "NET-11",
                Severity::Warning,
                rule,
                format!("{key} names something of blue and is left out"),
                "Set green's own value after the replay.",
            );
        }
    }
    if let Some(group) = annotation(w.original, "alb.ingress.kubernetes.io/group.name") {
        let group = format!("{group}-green");
        set(
            &mut w.object,
            "/metadata/annotations/alb.ingress.kubernetes.io~1group.name",
            json!(group),
        );
        w.changed(66);
    }
    if annotation(w.original, "nginx.ingress.kubernetes.io/rewrite-target")
        .is_some_and(|t| t.contains("://"))
    {
        w.find(
            "API-06",
            Severity::Warning,
            66,
            "rewrites to an absolute URL",
            "Check the redirect on green.",
        );
    }
    for key in [
        "nginx.ingress.kubernetes.io/configuration-snippet",
        "nginx.ingress.kubernetes.io/server-snippet",
    ] {
        if annotation(w.original, key).is_some() {
            w.find(
                "VER-03",
                Severity::Warning,
                66,
                format!("{key} is off by default in today's controllers"),
                "Allow snippets on green or replace it.",
            );
        }
    }
    let mixed = items(w.original, "/spec/rules")
        .any(|r| r.get("host").is_none() && r.get("http").is_some());
    if mixed {
        w.find(
            "API-06",
            Severity::Info,
            66,
            "a rule without a host catches every name",
            "Nothing to do.",
        );
    }
}

/// serviceName and servicePort become service.name and service.port.
fn backend(b: &Value) -> Value {
    let Some(name) = b.get("serviceName") else {
        return b.clone();
    };
    let port = match b.get("servicePort") {
        Some(Value::Number(n)) => json!({"number": n}),
        // A port in quotes is a number all the same.
        Some(Value::String(s)) => match s.parse::<u16>() {
            Ok(n) => json!({"number": n}),
            Err(_) => json!({"name": s}),
        },
        _ => json!({}),
    };
    json!({"service": {"name": name, "port": port}})
}

/// DNS annotations of blue in the prefix that green reads, with the low TTL until finalize.
fn dns(w: &mut Work) {
    let (from, to) = (w.cx.blue_prefix.clone(), w.cx.green_prefix.clone());
    if from != to {
        let keys: Vec<String> = w
            .object
            .pointer("/metadata/annotations")
            .and_then(Value::as_object)
            .map(|a| a.keys().filter(|k| k.starts_with(&from)).cloned().collect())
            .unwrap_or_default();
        for k in keys {
            let short = k[from.len()..].to_string();
            if let Some(v) = take(
                &mut w.object,
                &format!("/metadata/annotations/{}", k.replace('/', "~1")),
            ) {
                set(
                    &mut w.object,
                    &format!("/metadata/annotations/{}{short}", to.replace('/', "~1")),
                    v,
                );
                w.changed(66);
            }
        }
    }
    let key = |name: &str| format!("/metadata/annotations/{}{name}", to.replace('/', "~1"));
    if let Some(t) = take(&mut w.object, &key("target")) {
        w.changed(66);
        w.find(
            "DNS-14",
            Severity::Warning,
            66,
            format!(
                "the target annotation ({}) would keep green's names on blue: it is left out",
                t.as_str().unwrap_or("")
            ),
            "Give green its own target if it needs one (externaldns.md trap 24).",
        );
    }
    if text(&w.object, &key("set-identifier")).is_some() {
        set_weighted(w, &key("set-identifier"), &key("aws-weight"));
    }
    if annotation(w.original, "dns.alpha.kubernetes.io/external").is_some()
        || annotation(w.original, "dns.alpha.kubernetes.io/internal").is_some()
    {
        let mut hosts = vec![];
        for k in [
            "dns.alpha.kubernetes.io~1external",
            "dns.alpha.kubernetes.io~1internal",
        ] {
            if let Some(v) = take(&mut w.object, &format!("/metadata/annotations/{k}")) {
                hosts.push(v.as_str().unwrap_or("").to_string());
            }
        }
        w.changed(66);
        w.find(
            "DNS-13",
            Severity::Warning,
            66,
            format!("dns-controller of blue keeps {} without any owner mark; green has no dns-controller", hosts.join(", ")),
            "Decide who keeps these names: they do not move by themselves.",
        );
    }
    let id = w.id.to_string();
    if w.cx.lowered.contains(&id) {
        // Without it the first UPSERT of green's ExternalDNS would bring the old TTL back (externaldns.md rule 18, trap 10).
        set(&mut w.object, &key("ttl"), json!(w.cx.low_ttl.to_string()));
        w.changed_by("externaldns.md rule 18");
    }
}

fn set_weighted(w: &mut Work, id_key: &str, weight_key: &str) {
    let old = text(&w.object, id_key).unwrap_or("").to_string();
    let new = match old.strip_suffix("-blue") {
        Some(base) => format!("{base}-green"),
        None => format!("{old}-{}", w.cx.green_name),
    };
    set(&mut w.object, id_key, json!(new));
    set(&mut w.object, weight_key, json!("0"));
    w.hold(66);
    w.changed(66);
    w.find(
        "DNS-06",
        Severity::Warning,
        66,
        format!("weighted record: green's copy gets set identifier {new} and weight 0"),
        "Raise the weight by hand: weighted handover comes in a later version.",
    );
}
