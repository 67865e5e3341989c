//! Pod identity associations (eks.md 3).

use serde_json::{Value, json};

use super::roles::For;
use super::{
    Answer, Cluster, bad, check_tags, fresh_token, in_use, not_found, now, over_limit, page, text,
};
use crate::strict::http::{Refusal, Req};
use crate::strict::route53::short_id;
use crate::strict::{Config, State};

/// In a cluster (eks.md 3, the number of the 2024 guide).
const ASSOCIATIONS: usize = 1_000;

/// Adds an association; one for each service account.
pub(super) fn associate(
    cluster: &mut Cluster,
    config: &Config,
    namespace: &str,
    account: &str,
    role: &str,
    owner: Option<&str>,
) -> Result<Value, Refusal> {
    let plain = |name: &str, most: usize| {
        (1..=most).contains(&name.len())
            && name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c))
    };
    if !plain(namespace, 63) || !plain(account, 253) {
        return Err(bad(format!(
            "namespace '{namespace}' and serviceAccount '{account}' must be names as Kubernetes takes them"
        )));
    }
    if cluster.pods.len() >= ASSOCIATIONS {
        return Err(over_limit(format!(
            "A cluster can have {ASSOCIATIONS} pod identity associations"
        )));
    }
    if let Some(other) = cluster
        .pods
        .values()
        .find(|a| a["namespace"] == namespace && a["serviceAccount"] == account)
    {
        return Err(in_use(format!(
            "Association already exists: {}",
            other["associationId"]
        )));
    }
    let name = cluster.name().to_owned();
    let id = format!("a-{}", short_id(17).to_lowercase());
    let mut doc = json!({
        "clusterName": name,
        "namespace": namespace,
        "serviceAccount": account,
        "roleArn": role,
        "associationArn": format!(
            "arn:aws:eks:{}:{}:podidentityassociation/{name}/{id}",
            config.region, config.account
        ),
        "associationId": id,
        "tags": {},
        "createdAt": now(),
        "modifiedAt": now(),
        "disableSessionTags": false,
    });
    if let Some(owner) = owner {
        doc["ownerArn"] = json!(owner);
    }
    cluster.pods.insert(id, doc.clone());
    Ok(doc)
}

pub async fn create(state: &State, req: &Req, cluster: &str, body: Value) -> Answer {
    let role = text(&body, "roleArn").unwrap_or("");
    check_tags(&body["tags"])?;
    session_policy(&body)?;
    state.role_trusts(&req.who, role, For::Pods).await?;
    let mut store = state.lock_eks();
    let cluster = store.ready_cluster(cluster)?;
    // The same request again gives the association that it made; another one with its token is refused.
    if let Some(token) = text(&body, "clientRequestToken") {
        let made = cluster
            .pods
            .values()
            .find(|a| a["_request"]["clientRequestToken"] == token);
        if let Some(made) = made.filter(|a| a["_request"] == body) {
            return Ok(json!({"association": public(made)}));
        }
        fresh_token(&body, cluster.pods.values().map(|a| &a["_request"]))?;
    }
    let made = associate(
        cluster,
        &state.config,
        text(&body, "namespace").unwrap_or(""),
        text(&body, "serviceAccount").unwrap_or(""),
        role,
        None,
    )?;
    let id = text(&made, "associationId").unwrap_or("").to_owned();
    let Some(doc) = cluster.pods.get_mut(&id) else {
        return Err(not_found(id));
    };
    for key in ["tags", "targetRoleArn", "disableSessionTags", "policy"] {
        if !body[key].is_null() {
            doc[key] = body[key].clone();
        }
    }
    doc["_request"] = body;
    Ok(json!({"association": public(doc)}))
}

/// A policy that narrows the role takes the place of the session tags (eks.md 3).
fn session_policy(body: &Value) -> Result<(), Refusal> {
    if !body["policy"].is_null() && body["disableSessionTags"] != true {
        return Err(bad(
            "disableSessionTags must be true when a policy is specified",
        ));
    }
    Ok(())
}

/// Without the layer's own note of the request.
fn public(doc: &Value) -> Value {
    let mut doc = doc.clone();
    if let Some(map) = doc.as_object_mut() {
        map.shift_remove("_request");
    }
    doc
}

fn association<'a>(
    store: &'a mut super::Store,
    cluster: &str,
    id: &str,
) -> Result<&'a mut Value, Refusal> {
    store
        .cluster(cluster)?
        .pods
        .get_mut(id)
        .ok_or_else(|| not_found(format!("No association found for ID: {id}")))
}

pub fn list(state: &State, req: &Req, cluster: &str) -> Answer {
    let mut store = state.lock_eks();
    let items = store
        .cluster(cluster)?
        .pods
        .values()
        .filter(|a| req.query("namespace").is_none_or(|n| a["namespace"] == n))
        .filter(|a| {
            req.query("serviceAccount")
                .is_none_or(|s| a["serviceAccount"] == s)
        })
        .map(|a| {
            json!({
                "clusterName": a["clusterName"],
                "namespace": a["namespace"],
                "serviceAccount": a["serviceAccount"],
                "associationArn": a["associationArn"],
                "associationId": a["associationId"],
                "ownerArn": a["ownerArn"],
            })
        })
        .collect();
    page(state, req, "associations", items)
}

pub fn describe(state: &State, cluster: &str, id: &str) -> Answer {
    let mut store = state.lock_eks();
    Ok(json!({"association": public(association(&mut store, cluster, id)?)}))
}

pub async fn update(state: &State, req: &Req, cluster: &str, id: &str, body: &Value) -> Answer {
    session_policy(body)?;
    let role = text(body, "roleArn");
    if let Some(role) = role {
        state.role_trusts(&req.who, role, For::Pods).await?;
    }
    let mut store = state.lock_eks();
    let doc = association(&mut store, cluster, id)?;
    for key in ["roleArn", "targetRoleArn", "disableSessionTags", "policy"] {
        if !body[key].is_null() {
            doc[key] = body[key].clone();
        }
    }
    doc["modifiedAt"] = json!(now());
    Ok(json!({"association": public(doc)}))
}

pub fn delete(state: &State, cluster: &str, id: &str) -> Answer {
    let mut store = state.lock_eks();
    let doc = public(association(&mut store, cluster, id)?);
    store.cluster(cluster)?.pods.remove(id);
    Ok(json!({"association": doc}))
}
