//! Access entries and access policies (eks.md 1.4), and what they mean to the API server.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::roles::For;
use super::{
    Answer, Cluster, bad, bad_request, catalogue, check_tags, in_use, not_found, now, page, text,
    texts,
};
use crate::strict::http::{Refusal, Req, unique_id};
use crate::strict::{Config, State};

const TYPES: &[&str] = &[
    "STANDARD",
    "EC2_LINUX",
    "EC2_WINDOWS",
    "EC2",
    "FARGATE_LINUX",
    "HYBRID_LINUX",
    "HYPERPOD_LINUX",
];

#[derive(Debug)]
pub(crate) struct Entry {
    pub doc: Value,
    /// IAM's unique id of the principal when the entry was made: a re-created namesake does not match (eks.md 1.4).
    pub principal_id: String,
    pub policies: BTreeMap<String, Value>,
    /// Made by a managed node group; goes with it.
    by_nodegroup: bool,
}

/// Who a request comes from: `(role or user ARN, unique id)` in IAM's words.
pub(crate) async fn caller(state: &State, who: &str) -> (String, String) {
    let (_, root) = state.ask("sts", who, "GetCallerIdentity", &[]).await;
    let arn = root.find("Arn").map(|a| a.text.clone()).unwrap_or_default();
    let id = root
        .find("UserId")
        .map(|a| a.text.clone())
        .unwrap_or_default();
    (
        principal_of(&arn),
        id.split(':').next().unwrap_or("").to_owned(),
    )
}

/// `arn:aws:sts::1:assumed-role/R/session` -> `arn:aws:iam::1:role/R`; others stay.
pub(crate) fn principal_of(arn: &str) -> String {
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    match parts.as_slice() {
        [_, partition, "sts", _, account, resource] => {
            match resource.split('/').collect::<Vec<_>>().as_slice() {
                ["assumed-role", role, ..] => format!("arn:{partition}:iam::{account}:role/{role}"),
                _ => arn.to_owned(),
            }
        }
        _ => arn.to_owned(),
    }
}

fn new_entry(
    cluster: &str,
    config: &Config,
    principal: &str,
    kind: &str,
    user: &str,
    groups: Vec<String>,
) -> Entry {
    let short = principal.rsplit(['/', ':']).next().unwrap_or(principal);
    let noun = if principal.contains(":user/") {
        "user"
    } else {
        "role"
    };
    Entry {
        doc: json!({
            "clusterName": cluster,
            "principalArn": principal,
            "kubernetesGroups": groups,
            "accessEntryArn": format!(
                "arn:aws:eks:{}:{}:access-entry/{cluster}/{noun}/{}/{short}/{}",
                config.region, config.account, config.account, unique_id()
            ),
            "createdAt": now(),
            "modifiedAt": now(),
            "tags": {},
            "username": user,
            "type": kind,
        }),
        principal_id: String::new(),
        policies: BTreeMap::new(),
        by_nodegroup: false,
    }
}

fn default_username(principal: &str) -> String {
    match principal.split_once(":role/") {
        Some((head, path)) => format!(
            "{}:assumed-role/{}/{{{{SessionName}}}}",
            head.replace(":iam:", ":sts:"),
            path.rsplit('/').next().unwrap_or(path)
        ),
        None => principal.to_owned(),
    }
}

fn associated(policy: &str, scope: &Value) -> Value {
    json!({"policyArn": policy, "accessScope": scope, "associatedAt": now(), "modifiedAt": now()})
}

/// bootstrapClusterCreatorAdminPermissions: the creator gets an entry with the cluster admin policy.
pub(super) fn admit_creator(cluster: &mut Cluster, config: &Config, creator: &(String, String)) {
    let (principal, id) = creator;
    let mut entry = new_entry(
        cluster.name(),
        config,
        principal,
        "STANDARD",
        &default_username(principal),
        vec![],
    );
    entry.principal_id = id.clone();
    let policy = catalogue::policy_arn("AmazonEKSClusterAdminPolicy");
    entry.policies.insert(
        policy.clone(),
        associated(&policy, &json!({"type": "cluster", "namespaces": []})),
    );
    cluster.access.insert(principal.clone(), entry);
}

/// A managed node group makes the entry for its role itself, unless the cluster only knows aws-auth.
pub(super) fn admit_nodes(cluster: &mut Cluster, config: &Config, role: &str) {
    if cluster.authentication_mode() == "CONFIG_MAP" || cluster.access.contains_key(role) {
        return;
    }
    let mut entry = new_entry(
        cluster.name(),
        config,
        role,
        "EC2_LINUX",
        "system:node:{{EC2PrivateDNSName}}",
        vec!["system:nodes".into()],
    );
    entry.by_nodegroup = true;
    cluster.access.insert(role.to_owned(), entry);
}

pub(super) fn release_nodes(cluster: &mut Cluster, role: &str) {
    if cluster.access.get(role).is_some_and(|e| e.by_nodegroup) {
        cluster.access.remove(role);
    }
}

/// A cluster whose authentication mode knows access entries.
fn with_entries<'a>(store: &'a mut super::Store, name: &str) -> Result<&'a mut Cluster, Refusal> {
    let cluster = store.cluster(name)?;
    if cluster.authentication_mode() == "CONFIG_MAP" {
        return Err(bad_request(
            "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this operation.",
        ));
    }
    Ok(cluster)
}

fn entry<'a>(
    store: &'a mut super::Store,
    cluster: &str,
    principal: &str,
) -> Result<&'a mut Entry, Refusal> {
    with_entries(store, cluster)?.access.get_mut(principal).ok_or_else(|| {
        not_found(format!(
            "The specified principalArn could not be found: {principal} has no access entry in {cluster}"
        ))
    })
}

fn check_names(groups: &[String], username: Option<&str>) -> Result<(), Refusal> {
    let reserved = ["system:", "eks:", "aws:", "amazon:", "iam:"];
    for name in groups.iter().map(String::as_str).chain(username) {
        if let Some(prefix) = reserved.iter().find(|p| name.starts_with(**p)) {
            return Err(bad(format!(
                "The name '{name}' begins with the reserved prefix '{prefix}'"
            )));
        }
    }
    Ok(())
}

pub async fn create(state: &State, req: &Req, cluster: &str, body: Value) -> Answer {
    let principal = text(&body, "principalArn").unwrap_or("").to_owned();
    if principal.contains(":sts:") {
        return Err(bad(format!(
            "The principalArn '{principal}' must be an IAM role or user, not an STS session"
        )));
    }
    let kind = text(&body, "type").unwrap_or("STANDARD").to_owned();
    if !TYPES.contains(&kind.as_str()) {
        return Err(bad(format!("type must be one of {TYPES:?}, not '{kind}'")));
    }
    let groups = texts(&body, "kubernetesGroups");
    let username = text(&body, "username").filter(|u| !u.is_empty());
    if kind != "STANDARD" && (!groups.is_empty() || username.is_some()) {
        return Err(bad(format!(
            "An access entry of type {kind} cannot carry kubernetesGroups or a username"
        )));
    }
    check_names(&groups, username)?;
    check_tags(&body["tags"])?;
    let principal_id = principal_id(state, &req.who, &principal).await?;
    let mut store = state.lock_eks();
    let known = with_entries(&mut store, cluster)?;
    if known.access.contains_key(&principal) {
        return Err(in_use(
            "The specified access entry resource is already in use on this cluster.",
        ));
    }
    let (user, groups) = match kind.as_str() {
        "STANDARD" => (
            username.map_or_else(|| default_username(&principal), str::to_owned),
            groups,
        ),
        _ => (
            "system:node:{{EC2PrivateDNSName}}".to_owned(),
            vec!["system:nodes".to_owned()],
        ),
    };
    let mut entry = new_entry(cluster, &state.config, &principal, &kind, &user, groups);
    entry.principal_id = principal_id;
    if body["tags"].is_object() {
        entry.doc["tags"] = body["tags"].clone();
    }
    let out = json!({"accessEntry": entry.doc});
    known.access.insert(principal, entry);
    Ok(out)
}

/// IAM's unique id of a role or user; refuses what does not exist.
pub(crate) async fn principal_id(
    state: &State,
    who: &str,
    principal: &str,
) -> Result<String, Refusal> {
    if principal.contains(":role/") {
        return state
            .role_trusts(who, principal, For::Existing)
            .await
            .map_err(|_| bad(format!("The specified principalArn is invalid: invalid principal. {principal} does not exist")));
    }
    if let Some((_, path)) = principal.split_once(":user/") {
        let name = path.rsplit('/').next().unwrap_or(path);
        let (status, root) = state
            .ask("iam", who, "GetUser", &[("UserName", name)])
            .await;
        if let Some(id) = root.find("UserId").filter(|_| status == 200) {
            return Ok(id.text.clone());
        }
    }
    if principal.ends_with(":root") {
        return Ok(state.config.account.clone());
    }
    Err(bad(format!(
        "The specified principalArn is invalid: invalid principal. {principal} does not exist"
    )))
}

pub fn list(state: &State, req: &Req, cluster: &str) -> Answer {
    let mut store = state.lock_eks();
    let policy = req.query("associatedPolicyArn");
    let names = with_entries(&mut store, cluster)?
        .access
        .iter()
        .filter(|(_, e)| policy.is_none_or(|p| e.policies.contains_key(p)))
        .map(|(principal, _)| json!(principal))
        .collect();
    page(state, req, "accessEntries", names)
}

pub fn describe(state: &State, cluster: &str, principal: &str) -> Answer {
    let mut store = state.lock_eks();
    Ok(json!({"accessEntry": entry(&mut store, cluster, principal)?.doc}))
}

pub fn update(state: &State, cluster: &str, principal: &str, body: &Value) -> Answer {
    let mut store = state.lock_eks();
    let entry = entry(&mut store, cluster, principal)?;
    if entry.doc["type"] != "STANDARD" {
        return Err(bad("Only access entries of type STANDARD can be updated"));
    }
    let (groups, username) = (texts(body, "kubernetesGroups"), text(body, "username"));
    check_names(&groups, username)?;
    if body["kubernetesGroups"].is_array() {
        entry.doc["kubernetesGroups"] = json!(groups);
    }
    if let Some(username) = username {
        entry.doc["username"] = json!(username);
    }
    entry.doc["modifiedAt"] = json!(now());
    Ok(json!({"accessEntry": entry.doc}))
}

pub fn delete(state: &State, cluster: &str, principal: &str) -> Answer {
    let mut store = state.lock_eks();
    entry(&mut store, cluster, principal)?;
    store.cluster(cluster)?.access.remove(principal);
    Ok(json!({}))
}

pub fn associate(state: &State, cluster: &str, principal: &str, body: &Value) -> Answer {
    let policy = text(body, "policyArn").unwrap_or("").to_owned();
    if !catalogue::known_policy(&policy) {
        return Err(bad(format!(
            "The policyArn parameter format is not valid or there is no such policy: '{policy}'"
        )));
    }
    let scope = &body["accessScope"];
    let namespaces = texts(scope, "namespaces");
    match text(scope, "type") {
        Some("cluster") if namespaces.is_empty() => {}
        Some("namespace") if !namespaces.is_empty() => {}
        _ => {
            return Err(bad(
                "accessScope must be {type: cluster} or {type: namespace, namespaces: [...]}",
            ));
        }
    }
    let mut store = state.lock_eks();
    let entry = entry(&mut store, cluster, principal)?;
    if entry.doc["type"] != "STANDARD" {
        return Err(bad(format!(
            "An access entry of type {} cannot be associated with policies",
            entry.doc["type"]
        )));
    }
    let link = associated(
        &policy,
        &json!({"type": scope["type"], "namespaces": namespaces}),
    );
    entry.policies.insert(policy, link.clone());
    Ok(json!({"clusterName": cluster, "principalArn": principal, "associatedAccessPolicy": link}))
}

pub fn disassociate(state: &State, cluster: &str, principal: &str, policy: &str) -> Answer {
    let mut store = state.lock_eks();
    let entry = entry(&mut store, cluster, principal)?;
    if entry.policies.remove(policy).is_none() {
        return Err(not_found(format!(
            "{policy} is not associated with {principal}"
        )));
    }
    Ok(json!({}))
}

pub fn list_policies(state: &State, req: &Req, cluster: &str, principal: &str) -> Answer {
    let mut store = state.lock_eks();
    let links = entry(&mut store, cluster, principal)?
        .policies
        .values()
        .cloned()
        .collect();
    let mut out = page(state, req, "associatedAccessPolicies", links)?;
    out["clusterName"] = json!(cluster);
    out["principalArn"] = json!(principal);
    Ok(out)
}
