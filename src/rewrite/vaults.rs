//! Rules 42 and 43: what gets its secrets from outside or unseals them. A login by blue's issuer or API server means nothing to a vault on green's side.

use super::work::{Work, template_path, text};
use crate::plan::model::Severity;
use serde_json::Value;

/// Names what logs in by blue, and what cannot be unsealed.
pub(super) fn rewrite(w: &mut Work) {
    let group = w.id.group().to_string();
    match (group.as_str(), w.id.kind.as_str()) {
        ("bitnami.com", "SealedSecret") => sealed(w),
        ("external-secrets.io", "SecretStore" | "ClusterSecretStore") => store(w),
        ("external-secrets.io", "PushSecret" | "ClusterPushSecret") => push(w),
        ("secrets.hashicorp.com", "VaultAuth" | "VaultAuthGlobal") => {
            let mount = text(w.original, "/spec/mount")
                .or(text(w.original, "/spec/kubernetes/mount"))
                .or(text(w.original, "/spec/jwt/mount"))
                .unwrap_or("kubernetes")
                .to_string();
            vault(w, "the Vault operator", &mount);
        }
        ("external-secrets.io", "ExternalSecret" | "ClusterExternalSecret")
        | ("secrets.hashicorp.com", _) => w.tidied(43),
        _ => agent(w),
    }
}

/// Rule 42.
fn sealed(w: &mut Work) {
    w.tidied(42);
    if w.cx.sealing_keys == 0 {
        w.find(
            "OBJ-sealed-secrets",
            Severity::Warning,
            42,
            "is sealed, and no key of sealed-secrets (label sealedsecrets.bitnami.com/sealed-secrets-key) was found on blue: green's controller could not open it",
            "Let discover read the Secrets of the controller's namespace, or bring all its keys to green before unpark.",
        );
    }
}

/// Rule 43: how external-secrets logs in.
fn store(w: &mut Work) {
    w.tidied(43);
    if let Some(kubernetes) = w.original.pointer("/spec/provider/vault/auth/kubernetes") {
        let mount = kubernetes["mountPath"]
            .as_str()
            .unwrap_or("kubernetes")
            .to_string();
        return vault(w, "external-secrets", &mount);
    }
    if let Some(jwt) = w.original.pointer("/spec/provider/vault/auth/jwt") {
        let mount = jwt["path"].as_str().unwrap_or("jwt").to_string();
        return vault(w, "external-secrets", &mount);
    }
    let provider = w
        .original
        .pointer("/spec/provider")
        .and_then(Value::as_object)
        .and_then(|p| p.keys().next().cloned())
        .unwrap_or_else(|| "?".into());
    let (severity, message, remedy) = match provider.as_str() {
        "kubernetes" => (
            Severity::Warning,
            "external-secrets reads from an API server by a token or CA that may be blue's"
                .to_string(),
            "Check the server and its CA in the store, and give green's account a login there before unpark.",
        ),
        p => (
            Severity::Info,
            format!(
                "external-secrets reads from {p} by this store; each Secret that it keeps is made anew on green, not copied"
            ),
            "See that green's account (or its AWS role) may read there before unpark.",
        ),
    };
    w.find("OBJ-external-secrets", severity, 43, message, remedy);
}

/// Rule 43 (external-secrets#6918): both sides would write.
fn push(w: &mut Work) {
    w.tidied(43);
    w.find(
        "OBJ-external-secrets",
        Severity::Warning,
        43,
        "pushes a Secret outside: while both sides run, each overwrites what the other pushed, and deletes it when its own is deleted (deletionPolicy Delete)",
        "Set deletionPolicy to None on blue, and see that both sides hold the same Secret.",
    );
}

/// Rule 43: pods into which an agent or an init process brings secrets of a Vault.
fn agent(w: &mut Work) {
    let Some(template) = template_path(w.kind()) else {
        return;
    };
    let notes = w
        .original
        .pointer(&format!("{template}/metadata/annotations"));
    let note = |key: &str| notes.and_then(|a| a.get(key)).and_then(Value::as_str);
    let injected = note("vault.hashicorp.com/agent-inject") == Some("true");
    let banzai = note("vault.security.banzaicloud.io/vault-addr")
        .or(note("vault.security.bank-vaults.io/vault-addr"));
    if !injected && banzai.is_none() {
        return;
    }
    let mount = note("vault.hashicorp.com/auth-path")
        .or(note("vault.security.banzaicloud.io/vault-path"))
        .or(note("vault.security.bank-vaults.io/vault-path"))
        .unwrap_or("auth/kubernetes")
        .to_string();
    let by = if injected {
        "the Vault agent"
    } else {
        "bank-vaults"
    };
    vault(w, by, &mount);
}

fn vault(w: &mut Work, by: &str, mount: &str) {
    w.tidied(43);
    let mount = mount.trim_start_matches("auth/").trim_matches('/');
    w.find(
        "OBJ-vault",
        Severity::Warning,
        43,
        format!("{by} logs in to Vault by auth mount {mount}, which asks blue's API server or trusts blue's issuer: on green the login fails"),
        "Before unpark give Vault an auth mount for green (its issuer, API server and CA) with the same roles, and name it here; leave blue's until finalize.",
    );
}
