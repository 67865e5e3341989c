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
        "IngressClassParams" => class_params(w),
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

/// Written as v1beta1 long ago and read as v1: a path may still be missing. It means `/`, as it did then.
fn paths(w: &mut Work) {
    let mut filled = false;
    let rules = w.object.pointer_mut("/spec/rules");
    for rule in rules.and_then(Value::as_array_mut).into_iter().flatten() {
        let paths = rule.pointer_mut("/http/paths");
        for p in paths.and_then(Value::as_array_mut).into_iter().flatten() {
            if p.get("path").is_none_or(|t| t == "") {
                p["path"] = json!("/");
                filled = true;
            }
        }
    }
    if filled {
        w.changed(66);
        w.find(
            "API-06",
            Severity::Warning,
            66,
            "a rule without a path becomes `/`",
            "Confirm the path type with the ingress controller of green.",
        );
    }
}

fn ingress(w: &mut Work) {
    w.tidied(66);
    paths(w);
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
        let group = group_of_green(group);
        set(
            &mut w.object,
            "/metadata/annotations/alb.ingress.kubernetes.io~1group.name",
            json!(group),
        );
        w.changed(66);
    }
    alb(w);
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

/// Ingresses of one group share a load balancer, and the controller finds it by the group's name: green's group has another one, of at most 63
/// characters as the controller demands.
fn group_of_green(group: &str) -> String {
    const TAIL: &str = "-green";
    let keep = group
        .char_indices()
        .map(|(at, c)| at + c.len_utf8())
        .take_while(|end| end + TAIL.len() <= 63)
        .last()
        .unwrap_or(0);
    format!("{}{TAIL}", group[..keep].trim_end_matches(['-', '.']))
}

/// Annotations of the AWS Load Balancer Controller that name things by ARN.
fn alb(w: &mut Work) {
    const PREFIX: &str = "alb.ingress.kubernetes.io/";
    let notes: Vec<(String, String)> = w
        .original
        .pointer("/metadata/annotations")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(k, v)| Some((k.strip_prefix(PREFIX)?.to_string(), v.as_str()?.to_string())))
        .collect();
    for (key, value) in notes {
        let path = format!("/metadata/annotations/{}{key}", PREFIX.replace('/', "~1"));
        // Both spellings of the controller's two ages.
        if key.starts_with("actions.") && value.to_lowercase().contains("targetgrouparn") {
            w.find(
                "NET-11",
                Severity::Warning,
                66,
                format!("{PREFIX}{key} forwards to a target group by ARN: from green it would reach what is registered for blue"),
                "Forward to a Service, or to a target group of green's.",
            );
        } else if key == "tags"
            && value.contains(&format!("kubernetes.io/cluster/{}", w.cx.blue_cluster))
            && !w.cx.blue_cluster.is_empty()
        {
            let kept: Vec<&str> = value
                .split(',')
                .filter(|t| !t.contains("kubernetes.io/cluster/"))
                .collect();
            if kept.is_empty() {
                take(&mut w.object, &path);
            } else {
                set(&mut w.object, &path, json!(kept.join(",")));
            }
            w.changed(32);
        }
    }
}

/// An IngressClassParams of the AWS Load Balancer Controller says for a whole class what annotations say for one Ingress.
fn class_params(w: &mut Work) {
    if w.id.group() != "elbv2.k8s.aws" {
        return;
    }
    if let Some(group) = text(w.original, "/spec/group/name") {
        let group = group_of_green(group);
        set(&mut w.object, "/spec/group/name", json!(group));
        w.changed(66);
    }
    for path in ["/spec/subnets", "/spec/loadBalancerName"] {
        if take(&mut w.object, path).is_some() {
            w.changed(32);
            w.find(
                "NET-11",
                Severity::Warning,
                32,
                format!("{path} names something of blue and is left out"),
                "Set green's own value after the replay.",
            );
        }
    }
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
