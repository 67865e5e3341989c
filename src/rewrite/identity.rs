//! Rules 37 to 44: accounts, roles, secrets, RBAC.

use super::context::SEALING_KEY;
use super::work::{Work, items, set, take, text};
use crate::object::{annotation, label};
use crate::plan::model::Severity;
use serde_json::{Value, json};

/// What the server fills into a token Secret.
const TOKEN_KEYS: [&str; 3] = ["token", "ca.crt", "namespace"];

/// Rewrites identity objects.
pub(super) fn rewrite(w: &mut Work) {
    match w.kind() {
        "ServiceAccount" => account(w),
        "Secret" => secret(w),
        "Namespace" => namespace(w),
        "ConfigMap" => injected_ca(w),
        "ClusterRole" | "Role" => role(w),
        "ClusterRoleBinding" | "RoleBinding" => binding(w),
        _ => {}
    }
}

/// Rules 37 and 39.
fn account(w: &mut Work) {
    let name = w.name().to_string();
    if let Some(list) = w.object.get_mut("secrets").and_then(Value::as_array_mut) {
        // Tokens that the server made are made anew; what somebody listed beside them stays.
        let before = list.len();
        list.retain(|s| {
            let secret = s["name"].as_str().unwrap_or("");
            !made_by_server(&name, "token", secret) && !made_by_server(&name, "dockercfg", secret)
        });
        let (left, dropped) = (list.len(), list.len() < before);
        if left == 0 {
            take(&mut w.object, "/secrets");
        }
        if dropped || left == 0 {
            w.tidied(37);
        }
    }
    let key = format!("{}/{}", w.namespace(), w.name());
    if w.cx.pod_identity.contains(&key) {
        // The SDKs ask the web identity that this brings before they ask Pod Identity (eks.md 3).
        let gone = take(
            &mut w.object,
            "/metadata/annotations/eks.amazonaws.com~1role-arn",
        );
        if gone.is_some() {
            let left = w.object.pointer("/metadata/annotations");
            if left
                .and_then(Value::as_object)
                .is_some_and(|a| a.is_empty())
            {
                take(&mut w.object, "/metadata/annotations");
            }
            w.changed(39);
        }
        return;
    }
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

/// Whether a name is one that a server gives to the Secrets that it makes for an account: `NAME-token-` and five letters or digits, the front
/// cut so that the whole has 63 characters at most (apiserver storage/names).
fn made_by_server(account: &str, what: &str, secret: &str) -> bool {
    let Some((front, end)) = secret
        .len()
        .checked_sub(5)
        .and_then(|n| secret.split_at_checked(n))
    else {
        return false;
    };
    let full = format!("{account}-{what}-");
    let cut = full.get(..58).unwrap_or(&full);
    front == cut
        && end
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

/// Rules 38 and 42.
fn secret(w: &mut Work) {
    let stype = text(w.original, "/type").unwrap_or("").to_string();
    if stype == "kubernetes.io/service-account-token" {
        let sa = annotation(w.original, "kubernetes.io/service-account.name")
            .unwrap_or("")
            .to_string();
        let auto = made_by_server(&sa, "token", w.name());
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
        for key in TOKEN_KEYS {
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
    if label(w.original, SEALING_KEY).is_some() {
        w.tidied(42);
        w.find(
            "OBJ-sealed-secrets",
            Severity::Info,
            42,
            "a key of sealed-secrets: copied before its controller starts, so that green unseals what blue could",
            "Nothing to do; a key that blue makes after the plan comes with the next replay.",
        );
    }
}

/// Rule 24 (migtools/crane#486): a CA that an operator of the cluster writes into a ConfigMap that somebody made for it.
fn injected_ca(w: &mut Work) {
    let asked = annotation(w.original, "service.beta.openshift.io/inject-cabundle") == Some("true")
        || label(w.original, "config.openshift.io/inject-trusted-cabundle") == Some("true");
    if asked && take(&mut w.object, "/data").is_some() {
        w.changed(24);
        w.find(
            "TLS-04",
            Severity::Warning,
            24,
            "holds a CA that an operator of blue writes into it: it is created empty, for green's operator to fill",
            "See that the same operator runs on green, or give the ConfigMap green's CA.",
        );
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
        .filter(|n| !n.starts_with("system:") && !w.cx.known_groups.contains(*n))
        .cloned()
        .collect();
    if !unknown.is_empty() {
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
