//! Rule 67 and NET-06: policies and literals that mean blue's network.

use super::work::{Work, items, set};
use crate::plan::model::Severity;
use serde_json::{Value, json};

/// Rewrites policies and scans configuration.
pub(super) fn rewrite(w: &mut Work) {
    match w.kind() {
        "NetworkPolicy" if w.id.group() == "networking.k8s.io" || w.id.group() == "extensions" => {
            policy(w)
        }
        "NetworkPolicy"
        | "GlobalNetworkPolicy"
        | "CiliumNetworkPolicy"
        | "CiliumClusterwideNetworkPolicy"
        | "GlobalNetworkSet"
        | "NetworkSet" => {
            w.refuse(67);
            w.find(
                "NET-07",
                Severity::Warning,
                67,
                format!("{} of {} has no engine on green: its protection is lost", w.kind(), w.id.group()),
                "Translate it into networking.k8s.io NetworkPolicies, or install the engine on green.",
            );
        }
        "ConfigMap" => config(w),
        _ => {}
    }
}

fn policy(w: &mut Work) {
    w.tidied(67);
    let mut old = vec![];
    let mut identity = false;
    for dir in ["/spec/ingress", "/spec/egress"] {
        for rule in items(w.original, dir) {
            for peer in items(rule, "/from").chain(items(rule, "/to")) {
                if let Some(cidr) = peer.pointer("/ipBlock/cidr").and_then(Value::as_str)
                    && w.cx.is_blue_range(cidr)
                {
                    old.push(cidr.to_string());
                }
                identity |= items(peer, "/ipBlock/except").any(|c| c == "169.254.0.0/16");
            }
        }
    }
    if !old.is_empty() {
        w.find(
            "NET-07",
            Severity::Warning,
            67,
            format!(
                "{} holds pods on blue only: on green the rule matches nothing",
                old.join(", ")
            ),
            "Select pods by label, or use green's subnets.",
        );
    }
    if identity {
        w.find(
            "NET-07",
            Severity::Warning,
            67,
            "blocks all of 169.254.0.0/16, so the pod identity agent (169.254.170.23) and a node-local DNS too",
            "Except only 169.254.169.254/32.",
        );
    }
}

/// spec.workloads.replace, and literals that only mean something on blue (NET-06).
fn config(w: &mut Work) {
    let Some(data) = w.object.get("data").and_then(Value::as_object).cloned() else {
        return;
    };
    let mut hits = false;
    let mut literals = vec![];
    for (k, v) in &data {
        let Some(text) = v.as_str() else { continue };
        let mut text = text.to_string();
        if let Some(new) = w.cx.replace(&text) {
            set(
                &mut w.object,
                &format!("/data/{}", k.replace('~', "~0").replace('/', "~1")),
                json!(new),
            );
            text = new;
            hits = true;
        }
        literals.extend(
            w.cx.blue_literals(&text)
                .into_iter()
                .map(|l| format!("{k}: {l}")),
        );
    }
    if hits {
        w.changed_by("spec workloads.replace");
    }
    if !literals.is_empty() {
        w.find(
            "NET-06",
            Severity::Warning,
            36,
            format!("names things of blue: {}", literals.join(", ")),
            "Give the new value under workloads.replace.",
        );
    }
}
