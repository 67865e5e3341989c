//! Who gets into green: blue's authenticator mappings as access entries (eks.md 1.4), as far as they can be.

use super::iam::{Problem, text};
use super::model::{Severity, TargetAccess};
use crate::object::label;
use crate::rewrite::template_path;
use crate::snapshot::kops::{effective, kubernetes_version};
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use crate::yaml;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Entries and what could not become one.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Entries, those of migration.yaml first.
    pub entries: Vec<TargetAccess>,
    /// What the check says.
    pub problems: Vec<Problem>,
}

/// A mapping of blue.
struct Mapping {
    /// Where it stands.
    place: String,
    arn: String,
    username: String,
    groups: Vec<String>,
}

fn items<'a>(v: &'a Value, path: &str) -> impl Iterator<Item = &'a Value> {
    crate::object::at(v, path)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn problem(severity: Severity, object: &str, message: String, remedy: &str) -> Problem {
    Problem::new("IAM-07", severity, object, message, remedy)
}

/// Studies blue's logins.
pub(super) fn access(spec: &Spec, snapshot: &Snapshot) -> Access {
    let mut out = Access::default();
    let mut seen = BTreeSet::new();
    for a in spec
        .green
        .access
        .iter()
        .filter(|a| seen.insert(a.principal.clone()))
    {
        out.entries.push(TargetAccess {
            principal: a.principal.clone(),
            groups: a.groups.clone(),
            policy: a.policy.clone(),
            from: "migration.yaml".into(),
        });
    }
    let mut made: BTreeMap<String, TargetAccess> = BTreeMap::new();
    for m in mappings(snapshot, &mut out.problems) {
        entry(&m, snapshot, &seen, &mut made, &mut out.problems);
    }
    out.entries.extend(made.into_values());
    other_logins(snapshot, &mut out.problems);
    out.problems.sort();
    out.problems.dedup();
    out
}

/// From the kops spec, IAMIdentityMapping objects and the two ConfigMaps.
fn mappings(snapshot: &Snapshot, problems: &mut Vec<Problem>) -> Vec<Mapping> {
    let mut out = vec![];
    let one = |place: &str, m: &Value, arn: &[&str]| {
        let arn = arn.iter().find_map(|k| m[*k].as_str())?;
        Some(Mapping {
            place: place.into(),
            arn: arn.into(),
            username: m["username"].as_str().unwrap_or("").into(),
            groups: items(m, "/groups")
                .filter_map(|g| g.as_str().map(String::from))
                .collect(),
        })
    };
    if let Some(c) = &snapshot.kops.cluster {
        let place = "kops/spec.authentication.aws.identityMappings";
        out.extend(
            items(c, "/spec/authentication/aws/identityMappings")
                .filter_map(|m| one(place, m, &["arn"])),
        );
    }
    for o in &snapshot.blue.objects {
        let kind = text(o, "/kind").unwrap_or("");
        let name = text(o, "/metadata/name").unwrap_or("");
        if kind == "IAMIdentityMapping" {
            let place = format!("iamidentitymapping/{name}");
            out.extend(o.get("spec").and_then(|s| one(&place, s, &["arn"])));
            continue;
        }
        if kind != "ConfigMap" || text(o, "/metadata/namespace") != Some("kube-system") {
            continue;
        }
        let place = format!("configmap/kube-system/{name}");
        // A list comes as one document for each of its members.
        let mut read = |text: &str| -> Vec<Value> {
            let mut out = vec![];
            for document in yaml::manifests(text, &place) {
                match document {
                    Ok((Value::Array(list), _)) => out.extend(list),
                    Ok((v, _)) => out.push(v),
                    Err(e) => {
                        let why = e.to_string();
                        problems.push(problem(
                            Severity::Warning,
                            &place,
                            format!(
                                "cannot be read ({}): its mappings are not carried over",
                                why.lines().next().unwrap_or("")
                            ),
                            "Give these people entries under green.access.",
                        ));
                    }
                }
            }
            out
        };
        let (roles, users, accounts) = match name {
            "aws-iam-authenticator" => {
                let v = text(o, "/data/config.yaml")
                    .map(&mut read)
                    .and_then(|all| all.into_iter().next())
                    .unwrap_or_default();
                let part = |k: &str| {
                    v.pointer(&format!("/server/{k}"))
                        .cloned()
                        .unwrap_or_default()
                };
                (part("mapRoles"), part("mapUsers"), part("mapAccounts"))
            }
            "aws-auth" => {
                let mut part = |k: &str| {
                    Value::Array(
                        text(o, &format!("/data/{k}"))
                            .map(&mut read)
                            .unwrap_or_default(),
                    )
                };
                (part("mapRoles"), part("mapUsers"), part("mapAccounts"))
            }
            _ => continue,
        };
        out.extend(items(&roles, "").filter_map(|m| one(&place, m, &["rolearn", "roleARN"])));
        out.extend(items(&users, "").filter_map(|m| one(&place, m, &["userarn", "userARN"])));
        let accounts: Vec<&str> = items(&accounts, "").filter_map(Value::as_str).collect();
        if !accounts.is_empty() {
            problems.push(problem(
                Severity::Warning,
                &place,
                format!("lets in every IAM principal of account {}: an access entry names one principal", accounts.join(", ")),
                "Name those who use it under green.access.",
            ));
        }
    }
    out
}

fn entry(
    m: &Mapping,
    snapshot: &Snapshot,
    declared: &BTreeSet<String>,
    made: &mut BTreeMap<String, TargetAccess>,
    problems: &mut Vec<Problem>,
) {
    let object = format!("access/{}", m.arn);
    // Nodes: EKS makes their entry with the node group.
    if m.username.starts_with("system:node:") || m.groups.iter().any(|g| g == "system:nodes") {
        return;
    }
    let principal = match principal(&m.arn, snapshot) {
        Ok(p) => p,
        Err(why) => {
            problems.push(problem(
                Severity::Warning,
                &object,
                format!("{why}: the mapping of {} is not carried over", m.place),
                "Give these people an entry under green.access.",
            ));
            return;
        }
    };
    if declared.contains(&principal) {
        return;
    }
    let admin = m.groups.iter().any(|g| g == "system:masters");
    let refused: Vec<&str> = m
        .groups
        .iter()
        .map(String::as_str)
        .filter(|g| {
            g.starts_with("system:") && *g != "system:masters" && *g != "system:authenticated"
        })
        .collect();
    if !refused.is_empty() {
        problems.push(problem(
            Severity::Warning,
            &object,
            format!(
                "is in {}, which EKS refuses in an access entry: these rights are not carried over",
                refused.join(", ")
            ),
            "Bind a group of your own to the same role, and give that group under green.access.",
        ));
    }
    let kept: BTreeSet<String> = m
        .groups
        .iter()
        .filter(|g| !g.starts_with("system:"))
        .cloned()
        .collect();
    if !m.username.is_empty() && bound(snapshot, &m.username) {
        problems.push(problem(
            Severity::Warning,
            &object,
            format!(
                "blue knows it as user {}, and a binding names that user: on green its name is the ARN of its session{}",
                m.username,
                if m.username.contains("{{") { " (templates do not carry over)" } else { "" }
            ),
            "Bind a group instead, and give it under green.access.",
        ));
    }
    if m.username.contains("{{") && !bound(snapshot, &m.username) {
        // Without blue's bindings nobody can say whether one names such a user.
        let read = !snapshot.blue.objects.is_empty();
        problems.push(problem(
            if read { Severity::Info } else { Severity::Warning },
            &object,
            format!(
                "blue calls its users {}: templates do not carry over, and on green their name is the ARN of their session{}",
                m.username,
                if read { "" } else { " (blue's bindings were not read: one that names such a user gives it nothing on green)" }
            ),
            "Look for what knows people by that name (bindings, audit, webhooks); bind groups instead.",
        ));
    }
    if !admin && kept.is_empty() {
        if refused.is_empty() && !bound(snapshot, &m.username) {
            problems.push(problem(
                Severity::Info,
                &object,
                format!(
                    "the mapping of {} gives no group: it becomes no access entry",
                    m.place
                ),
                "Nothing to do when nobody uses it.",
            ));
        }
        return;
    }
    let e = made.entry(principal.clone()).or_insert(TargetAccess {
        principal,
        groups: vec![],
        policy: None,
        from: "blue".into(),
    });
    let mut groups: BTreeSet<String> = e.groups.drain(..).collect();
    groups.extend(kept);
    e.groups = groups.into_iter().collect();
    if admin {
        e.policy = Some("AmazonEKSClusterAdminPolicy".into());
    }
}

/// Whether a binding names a user, or, for a template, one of its users.
fn bound(snapshot: &Snapshot, username: &str) -> bool {
    if username.is_empty() {
        return false;
    }
    let fixed = username.split("{{").next().unwrap_or("");
    let template = username.contains("{{");
    ["ClusterRoleBinding", "RoleBinding"].iter().any(|kind| {
        snapshot.blue.of_kind(kind).any(|o| {
            items(o, "/subjects").any(|s| {
                s["kind"] == "User"
                    && s["name"].as_str().is_some_and(|n| {
                        n == username || template && !fixed.is_empty() && n.starts_with(fixed)
                    })
            })
        })
    })
}

/// The principal of an entry: a role or user, with the path that old mappings had to leave out.
fn principal(arn: &str, snapshot: &Snapshot) -> Result<String, String> {
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let [_, _, service, _, account, resource] = parts.as_slice() else {
        return Err("is no ARN".into());
    };
    if *service != "iam" {
        return Err("is a session, and an access entry takes a role or a user".into());
    }
    if account.len() != 12 || !account.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("has no account id of 12 digits ({account})"));
    }
    let Some((kind @ ("role" | "user"), name)) = resource.split_once('/') else {
        return Err("names no role and no user".into());
    };
    if kind == "user" || name.contains('/') {
        return Ok(arn.into());
    }
    let own = snapshot
        .aws
        .as_ref()
        .filter(|a| a.identity.account == *account);
    match own {
        // The authenticator compares ARNs without their path; EKS wants the whole one.
        Some(aws) => match aws.roles.iter().find(|r| r.name == name) {
            Some(r) => Ok(r.arn.clone()),
            None => Err("is a role that the account does not have".into()),
        },
        None if name.starts_with("AWSReservedSSO_") => Err(
            "is a role of IAM Identity Center without its path, which EKS wants and which was not read".into(),
        ),
        None => Ok(arn.into()),
    }
}

/// Ways into blue that EKS does not know (kops.md 2).
fn other_logins(snapshot: &Snapshot, problems: &mut Vec<Problem>) {
    let Some(spec) = snapshot.kops.cluster.as_ref().and_then(|c| c.get("spec")) else {
        return;
    };
    let api = &spec["kubeAPIServer"];
    oidc(spec, problems);
    // What VER-05 says of the API server's flags (passwords, tokens, webhooks) is not said again.
    if !api["authenticationConfigFile"].is_null() {
        problems.push(problem(
            Severity::Warning,
            "kops/spec.kubeAPIServer.authenticationConfigFile",
            "people log in by an authentication configuration, which EKS does not offer".into(),
            "Give them entries under green.access.",
        ));
    }
    if !spec["authentication"]["kopeio"].is_null() {
        problems.push(problem(
            Severity::Warning,
            "kops/spec.authentication.kopeio",
            "people log in by kopeio's webhook, which EKS does not offer".into(),
            "Give them entries under green.access.",
        ));
    }
    // Basic authentication ended with Kubernetes 1.19.
    let old = snapshot
        .kops
        .cluster
        .as_ref()
        .and_then(kubernetes_version)
        .is_some_and(|v| v.minor < 19);
    let hold = if old {
        "client certificates of blue, and those of this age the admin's password or a static token too"
    } else {
        "client certificates of blue"
    };
    problems.push(problem(
        Severity::Info,
        "kops/kubeconfig",
        format!("kubeconfigs of `kops export kubeconfig` hold {hold}: EKS knows none of it, so jobs of CI with one are shut out of green"),
        "Let them use an IAM role that green.access names.",
    ));
}

/// Login by OIDC, by the flags of the API server or by the block of later releases: EKS has one configuration a cluster (eks.md 1.4).
fn oidc(spec: &Value, problems: &mut Vec<Problem>) {
    let api = &spec["kubeAPIServer"];
    let block = spec.pointer("/authentication/oidc").unwrap_or(&Value::Null);
    let (object, url, client) = match (text(api, "/oidcIssuerURL"), text(block, "/issuerURL")) {
        (Some(url), _) => (
            "kops/spec.kubeAPIServer.oidcIssuerURL",
            url,
            text(api, "/oidcClientID").or(text(block, "/clientID")),
        ),
        (None, Some(url)) => (
            "kops/spec.authentication.oidc",
            url,
            text(block, "/clientID").or(text(api, "/oidcClientID")),
        ),
        (None, None) => return,
    };
    let client = client.unwrap_or("?");
    problems.push(problem(
        Severity::Warning,
        object,
        format!("people log in by OIDC at {url} (client {client}): green lets them in only with an identity provider configuration of its own, one a cluster"),
        "Associate it when green stands (aws eks associate-identity-provider-config, with the same claims and prefixes), then waive this finding.",
    ));
    for (at, ca) in [
        ("kops/spec.kubeAPIServer.oidcCAFile", &api["oidcCAFile"]),
        ("kops/spec.authentication.oidc.caFile", &block["caFile"]),
    ] {
        if !ca.is_null() {
            problems.push(problem(
                Severity::Blocker,
                at,
                "the OIDC provider has a certificate authority of its own, and EKS accepts public ones only".into(),
                "Give the provider a public certificate, or let these people in by IAM; then waive this finding.",
            ));
        }
    }
    let claims: BTreeSet<&str> = text(api, "/oidcGroupsClaim")
        .into_iter()
        .flat_map(|c| c.split(','))
        .chain(items(block, "/groupsClaims").filter_map(Value::as_str))
        .map(str::trim)
        .filter(|c| !c.is_empty())
        .collect();
    if claims.len() > 1 {
        let all: Vec<&str> = claims.into_iter().collect();
        problems.push(problem(
            Severity::Warning,
            object,
            format!(
                "groups come from several claims ({}), and an identity provider configuration of EKS reads one: who is known by another is in no group on green",
                all.join(", ")
            ),
            "Let the provider put all groups into one claim, before green's configuration is made.",
        ));
    }
}

/// Whether every request is allowed on blue: declared, or by the default of its kops (through 1.35; kops.md 1.4). `None`: not known.
pub fn allows_everything(snapshot: &Snapshot) -> Option<bool> {
    snapshot.kops.cluster.as_ref()?;
    let kops = effective(&snapshot.kops);
    let found = kops.authorization();
    // A guessed release is the lowest possible one, and at most six lie above it.
    let unsure =
        found.is_default() && !kops.release.known && (30..36).contains(&kops.release.minor);
    (!unsure).then(|| found.value == "alwaysAllow")
}

/// Service accounts of workloads that no binding gives anything, though their pods hold a token.
pub fn unbound_accounts(snapshot: &Snapshot) -> BTreeSet<String> {
    let mut bound: BTreeSet<String> = BTreeSet::new();
    let mut groups: BTreeSet<String> = BTreeSet::new();
    let mut silent: BTreeSet<String> = BTreeSet::new();
    for o in &snapshot.blue.objects {
        let ns = text(o, "/metadata/namespace").unwrap_or("");
        match text(o, "/kind") {
            Some("ClusterRoleBinding" | "RoleBinding") => {
                if label(o, "kubernetes.io/bootstrapping") == Some("rbac-defaults") {
                    continue;
                }
                for s in items(o, "/subjects") {
                    let name = s["name"].as_str().unwrap_or("");
                    match s["kind"].as_str() {
                        Some("ServiceAccount") => {
                            let of = s["namespace"].as_str().unwrap_or(ns);
                            bound.insert(format!("{of}/{name}"));
                        }
                        Some("Group") => {
                            groups.insert(name.into());
                        }
                        Some("User") => {
                            if let Some(sa) = name.strip_prefix("system:serviceaccount:") {
                                bound.insert(sa.replacen(':', "/", 1));
                            }
                        }
                        _ => {}
                    }
                }
            }
            Some("ServiceAccount") if o["automountServiceAccountToken"] == false => {
                silent.insert(format!("{ns}/{}", text(o, "/metadata/name").unwrap_or("")));
            }
            _ => {}
        }
    }
    if groups.contains("system:serviceaccounts") || groups.contains("system:authenticated") {
        return BTreeSet::new();
    }
    let mut out = BTreeSet::new();
    for o in &snapshot.blue.objects {
        let Some(t) = text(o, "/kind").and_then(template_path) else {
            continue;
        };
        let ns = text(o, "/metadata/namespace").unwrap_or("");
        if ns == "kube-system" || items(o, "/metadata/ownerReferences").next().is_some() {
            continue;
        }
        let Some(pod) = o.pointer(&format!("{t}/spec")) else {
            continue;
        };
        let name = text(pod, "/serviceAccountName")
            .or(text(pod, "/serviceAccount"))
            .unwrap_or("default");
        let account = format!("{ns}/{name}");
        let quiet = match pod["automountServiceAccountToken"].as_bool() {
            Some(on) => !on,
            None => silent.contains(&account),
        };
        if !quiet
            && !bound.contains(&account)
            && !groups.contains(&format!("system:serviceaccounts:{ns}"))
        {
            out.insert(account);
        }
    }
    out
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
