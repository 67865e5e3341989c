//! Rules 37 to 44: accounts, roles, secrets, RBAC.

use super::work::{Work, items, set, take, text};
use crate::object::annotation;
use crate::plan::model::Severity;
use serde_json::{Value, json};

/// Rewrites identity objects.
pub(super) fn rewrite(w: &mut Work) {
    match w.kind() {
        "ServiceAccount" => account(w),
        "Secret" => secret(w),
        "Namespace" => namespace(w),
        "ClusterRole" | "Role" => role(w),
        "ClusterRoleBinding" | "RoleBinding" => binding(w),
        _ => {}
    }
}

/// Rules 37 and 39.
fn account(w: &mut Work) {
    if take(&mut w.object, "/secrets").is_some() {
        w.tidied(37);
    }
    let key = format!("{}/{}", w.namespace(), w.name());
    if let Some(arn) = w.cx.sa_roles.get(&key).cloned()
        && annotation(w.original, "eks.amazonaws.com/role-arn") != Some(arn.as_str())
    {
        set(
            &mut w.object,
            "/metadata/annotations/eks.amazonaws.com~1role-arn",
            json!(arn),
        );
        w.changed(39);
    }
}

/// Rules 38, 42, 69 and the markers of hashed values.
fn secret(w: &mut Work) {
    let stype = text(w.original, "/type").unwrap_or("").to_string();
    if stype == "kubernetes.io/service-account-token" {
        let sa = annotation(w.original, "kubernetes.io/service-account.name")
            .unwrap_or("")
            .to_string();
        let auto =
            w.cx.auto_tokens
                .contains(&format!("{}/{}", w.namespace(), w.name()))
                || w.name().starts_with(&format!("{sa}-token-"));
        if auto {
            w.skip(38);
            if w.cx
                .outside_accounts
                .contains(&format!("{}/{sa}", w.namespace()))
            {
                w.find(
                    "GIT-05",
                    Severity::Warning,
                    38,
                    format!("account {sa} runs no pod: an outside system may hold its token and blue's CA"),
                    "Give that system new credentials for green and leave the old ones until finalize.",
                );
            }
            return;
        }
        for key in ["token", "ca.crt", "namespace"] {
            take(&mut w.object, &format!("/data/{key}"));
        }
        w.changed(38);
        w.find(
            "GIT-05",
            Severity::Warning,
            38,
            format!("a hand-made token of account {sa}: green signs a new one, the old one stays valid on blue only"),
            "Renew the credentials of whatever uses it.",
        );
    }
    if items(w.original, "/metadata/ownerReferences").any(|r| r["kind"] == "SealedSecret") {
        w.skip(42);
    }
}

/// Rule 39: kiam's and kube2iam's permissions of a namespace end with them.
fn namespace(w: &mut Work) {
    if take(&mut w.object, "/spec/finalizers").is_some() {
        w.tidied(11);
        if w.object
            .pointer("/spec")
            .and_then(Value::as_object)
            .is_some_and(|s| s.is_empty())
        {
            take(&mut w.object, "/spec");
        }
    }
    for key in [
        "iam.amazonaws.com/permitted",
        "iam.amazonaws.com/allowed-roles",
    ] {
        let Some(v) = annotation(w.original, key).map(String::from) else {
            continue;
        };
        take(
            &mut w.object,
            &format!("/metadata/annotations/{}", key.replace('/', "~1")),
        );
        w.changed(39);
        let used: Vec<String> =
            w.cx.pod_roles
                .iter()
                .filter(|(sa, _)| sa.split('/').next() == Some(w.id.name.as_str()))
                .flat_map(|(_, roles)| roles.iter().cloned())
                .collect();
        w.find(
            "IAM-01",
            Severity::Warning,
            39,
            format!(
                "pods of this namespace may assume roles `{v}`{}; used by pods: {}",
                if v.ends_with(".*") {
                    " (over-broad)"
                } else {
                    ""
                },
                if used.is_empty() {
                    "none".into()
                } else {
                    used.join(", ")
                }
            ),
            "Every role in use is mapped to a service account.",
        );
    }
    if w.object
        .pointer("/metadata/annotations")
        .and_then(Value::as_object)
        .is_some_and(|a| a.is_empty())
    {
        take(&mut w.object, "/metadata/annotations");
    }
}

/// Rule 41.
fn role(w: &mut Work) {
    if w.object
        .get("aggregationRule")
        .is_some_and(|a| !a.is_null())
    {
        set(&mut w.object, "/rules", json!([]));
        w.changed(41);
    }
    let psp_only = items(w.original, "/rules").next().is_some()
        && items(w.original, "/rules").all(|r| {
            items(r, "/resources").next().is_some()
                && items(r, "/resources").all(|x| x == "podsecuritypolicies")
        });
    if psp_only {
        w.skip(53);
        w.find(
            "API-03",
            Severity::Info,
            53,
            "grants only the use of a PodSecurityPolicy, which green does not have",
            "Nothing to do.",
        );
    }
}

/// Rule 41: subjects that EKS's login does not know.
fn binding(w: &mut Work) {
    if let Some(name) = text(w.original, "/roleRef/name")
        && w.cx.psp_roles.contains(name)
    {
        w.skip(53);
        w.find(
            "API-03",
            Severity::Info,
            53,
            "binds a role that only grants a PodSecurityPolicy",
            "Nothing to do.",
        );
        return;
    }
    w.tidied(41);
    let people: Vec<String> = items(w.original, "/subjects")
        .filter(|s| matches!(s["kind"].as_str(), Some("User" | "Group")))
        .filter_map(|s| s["name"].as_str())
        .filter(|n| !n.starts_with("system:serviceaccount"))
        .map(String::from)
        .collect();
    let unknown: Vec<String> = people
        .iter()
        .filter(|n| !w.cx.known_groups.contains(*n))
        .cloned()
        .collect();
    if !unknown.is_empty() && !unknown.iter().all(|n| n.starts_with("system:")) {
        w.find(
            "IAM-07",
            Severity::Warning,
            41,
            format!(
                "binds users or groups that no access entry of green gives: {}",
                unknown.join(", ")
            ),
            "Give an IAM principal these groups under green.access.",
        );
    }
}
