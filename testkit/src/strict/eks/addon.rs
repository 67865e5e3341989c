//! Add-ons (eks.md 1.5).

use std::time::Instant;

use serde_json::{Value, json};

use super::roles::For;
use super::{
    Answer, Cluster, Life, bad, catalogue, check_tags, fresh_token, health, in_use, not_found, now,
    pods, same_request, schemas, text,
};
use crate::strict::controls::{Fails, Issue};
use crate::strict::http::{Refusal, Req, unique_id};
use crate::strict::{Config, State};

#[derive(Debug)]
pub(crate) struct Addon {
    pub doc: Value,
    pub life: Life,
    pub request: Value,
    /// It will end CREATE_FAILED.
    pub doom: Option<Issue>,
    /// It is installed and not healthy, whatever its needs: until it is updated.
    pub sick: Option<Issue>,
}

/// Why an add-on that has been installed is not healthy, if so.
fn degraded(cluster: &Cluster, addon: &Addon) -> Option<Issue> {
    if let Some(sick) = &addon.sick {
        return Some(sick.clone());
    }
    let name = text(&addon.doc, "addonName").unwrap_or("");
    let offer = catalogue::offer(name)?;
    if offer.needs_nodes && !cluster.nodegroups.values().any(|g| g.has_nodes()) {
        return Some(Issue {
            code: "InsufficientNumberOfReplicas".into(),
            message: format!(
                "The add-on {name} is unhealthy because it doesn't have the desired number of replicas."
            ),
        });
    }
    let account = offer.needs_role?;
    let has_role = text(&addon.doc, "serviceAccountRoleArn").is_some()
        || cluster
            .pods
            .values()
            .any(|a| a["namespace"] == offer.namespace && a["serviceAccount"] == account);
    (!has_role).then(|| Issue {
        code: "AccessDenied".into(),
        message: format!(
            "The add-on {name} is unhealthy: service account {}/{account} has no role",
            offer.namespace
        ),
    })
}

fn show(cluster: &Cluster, addon: &Addon) -> Value {
    let mut doc = addon.doc.clone();
    let trouble = match addon.life {
        Life::Active | Life::Updating(_) => degraded(cluster, addon),
        Life::Failed => addon.doom.clone(),
        _ => None,
    };
    doc["status"] = match (addon.life, &trouble) {
        (Life::Active, Some(_)) => json!("DEGRADED"),
        (life, _) => json!(life.word()),
    };
    doc["health"] = health(&trouble, &[]);
    doc
}

pub(super) fn sweep(cluster: &mut Cluster, config: &Config) {
    let mut gone = Vec::new();
    cluster.addons.retain(|name, addon| {
        match addon.life {
            Life::Creating(at) if at.elapsed() >= config.addon_delay => {
                addon.life = match addon.doom {
                    Some(_) => Life::Failed,
                    None => Life::Active,
                };
            }
            Life::Updating(at) if at.elapsed() >= config.addon_delay => {
                addon.life = Life::Active;
            }
            Life::Deleting(at) if at.elapsed() >= config.addon_delay => {
                gone.push(name.clone());
                return false;
            }
            _ => {}
        }
        true
    });
    // Associations that an add-on owns go with it.
    cluster.pods.retain(|_, a| {
        !gone.iter().any(|name| {
            a["ownerArn"]
                .as_str()
                .is_some_and(|o| o.contains(&format!("/{name}/")))
        })
    });
}

/// Checks what CreateAddon and UpdateAddon have in common; returns the version.
async fn check(
    state: &State,
    req: &Req,
    cluster_version: &str,
    name: &str,
    body: &Value,
) -> Result<String, Refusal> {
    let offer = catalogue::offer(name).ok_or_else(|| {
        bad(format!(
            "Addon {name} specified is not supported in {cluster_version} kubernetes version"
        ))
    })?;
    let versions = offer.versions_for(cluster_version);
    let version = text(body, "addonVersion")
        .unwrap_or(&versions[0])
        .to_owned();
    if !versions.contains(&version) {
        return Err(bad(format!(
            "Addon version specified is not supported: {name} {version} on Kubernetes {cluster_version}; there are {versions:?}"
        )));
    }
    if let Some(values) = text(body, "configurationValues").filter(|v| !v.trim().is_empty()) {
        schemas::check(name, values)?;
    }
    if let Some(role) = text(body, "serviceAccountRoleArn") {
        state.role_trusts(&req.who, role, For::Existing).await?;
    }
    if let Some(mode) = text(body, "resolveConflicts")
        && !["NONE", "OVERWRITE", "PRESERVE"].contains(&mode)
    {
        return Err(bad(format!(
            "resolveConflicts must be NONE, OVERWRITE or PRESERVE, not '{mode}'"
        )));
    }
    for pair in body["podIdentityAssociations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let role = text(pair, "roleArn").unwrap_or("");
        state.role_trusts(&req.who, role, For::Pods).await?;
    }
    Ok(version)
}

pub async fn create(state: &State, req: &Req, cluster_name: &str, body: Value) -> Answer {
    let name = text(&body, "addonName").unwrap_or("").to_owned();
    let named = |r: Refusal| r.with("clusterName", cluster_name).with("addonName", &name);
    let cluster_version = {
        let mut store = state.lock_eks();
        let cluster = store.ready_cluster(cluster_name)?;
        if let Some(existing) = cluster.addons.get(&name) {
            return if same_request(&existing.request, &body) {
                Ok(json!({"addon": show(cluster, existing)}))
            } else {
                Err(named(in_use("Addon already exists.")))
            };
        }
        fresh_token(&body, cluster.addons.values().map(|a| &a.request)).map_err(named)?;
        cluster.version().to_owned()
    };
    check_tags(&body["tags"]).map_err(named)?;
    let version = check(state, req, &cluster_version, &name, &body)
        .await
        .map_err(named)?;
    let config = &state.config;
    let arn = format!(
        "arn:aws:eks:{}:{}:addon/{cluster_name}/{name}/{}",
        config.region,
        config.account,
        unique_id()
    );
    let mut doc = json!({
        "addonName": name,
        "clusterName": cluster_name,
        "addonVersion": version,
        "addonArn": arn,
        "createdAt": now(),
        "modifiedAt": now(),
        "publisher": "eks",
        "owner": "aws",
        "tags": if body["tags"].is_object() { body["tags"].clone() } else { json!({}) },
    });
    for key in ["serviceAccountRoleArn", "configurationValues"] {
        if text(&body, key).is_some_and(|v| !v.is_empty()) {
            doc[key] = body[key].clone();
        }
    }
    let mut store = state.lock_eks();
    let cluster = store.ready_cluster(cluster_name)?;
    let namespace = catalogue::offer(&name).map_or("kube-system", |o| o.namespace);
    let mut associations = Vec::new();
    for pair in body["podIdentityAssociations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let association = pods::associate(
            cluster,
            config,
            namespace,
            text(pair, "serviceAccount").unwrap_or(""),
            text(pair, "roleArn").unwrap_or(""),
            Some(&arn),
        )
        .map_err(named)?;
        associations.push(association["associationArn"].clone());
    }
    if !associations.is_empty() {
        doc["podIdentityAssociations"] = json!(associations);
    }
    let ordered = {
        let mut controls = state.lock_controls();
        (
            controls.take_failure(Fails::Addon, &name),
            controls.take_failure(Fails::AddonHealth, &name),
        )
    };
    let addon = Addon {
        doc,
        life: Life::Creating(Instant::now()),
        doom: ordered.0.or_else(|| conflict(cluster, &name, &body)),
        sick: ordered.1,
        request: body,
    };
    let out = json!({"addon": show(cluster, &addon)});
    cluster.addons.insert(name, addon);
    Ok(out)
}

/// What came by itself is only replaced by who says so (eks.md 1.2, 1.5).
fn conflict(cluster: &Cluster, name: &str, body: &Value) -> Option<Issue> {
    let there = cluster.self_managed && ["vpc-cni", "coredns", "kube-proxy"].contains(&name);
    let overwrite = text(body, "resolveConflicts") == Some("OVERWRITE");
    (there && !overwrite).then(|| Issue {
        code: "ConfigurationConflict".into(),
        message: format!(
            "Conflicts found when trying to apply. Will not continue due to resolve conflicts mode. Conflicts: {name} is there already, self-managed"
        ),
    })
}

fn missing(cluster: &str, name: &str) -> Refusal {
    not_found(format!("No addon: {name} found in cluster: {cluster}"))
        .with("clusterName", cluster)
        .with("addonName", name)
}

pub fn describe(state: &State, cluster_name: &str, name: &str) -> Answer {
    let mut store = state.lock_eks();
    let cluster = store.cluster(cluster_name)?;
    let addon = cluster
        .addons
        .get(name)
        .ok_or_else(|| missing(cluster_name, name))?;
    Ok(json!({"addon": show(cluster, addon)}))
}

pub fn delete(state: &State, cluster_name: &str, name: &str) -> Answer {
    let mut store = state.lock_eks();
    let cluster = store.cluster(cluster_name)?;
    let addon = cluster
        .addons
        .get_mut(name)
        .ok_or_else(|| missing(cluster_name, name))?;
    if matches!(addon.life, Life::Deleting(_)) {
        return Err(in_use(format!("Addon {name} is already being deleted")));
    }
    addon.life = Life::Deleting(Instant::now());
    let mut doc = addon.doc.clone();
    doc["status"] = json!("DELETING");
    Ok(json!({"addon": doc}))
}

pub async fn update(
    state: &State,
    req: &Req,
    cluster_name: &str,
    name: &str,
    body: Value,
) -> Answer {
    let (cluster_version, current) = {
        let mut store = state.lock_eks();
        let cluster = store.ready_cluster(cluster_name)?;
        let addon = cluster
            .addons
            .get(name)
            .ok_or_else(|| missing(cluster_name, name))?;
        // One whose creation failed can be updated: with conflicts overwritten, for instance.
        if !matches!(addon.life, Life::Active | Life::Failed) {
            return Err(in_use(format!(
                "Addon {name} cannot be updated while it is {}",
                addon.life.word()
            )));
        }
        (
            cluster.version().to_owned(),
            addon.doc["addonVersion"].clone(),
        )
    };
    let mut asked = body.clone();
    if text(&asked, "addonVersion").is_none() {
        asked["addonVersion"] = current;
    }
    let version = check(state, req, &cluster_version, name, &asked).await?;
    let mut store = state.lock_eks();
    let cluster = store.ready_cluster(cluster_name)?;
    let addon = cluster
        .addons
        .get_mut(name)
        .ok_or_else(|| missing(cluster_name, name))?;
    let doom = state.lock_controls().take_failure(Fails::Update, name);
    if doom.is_none() {
        addon.doom = None;
        addon.sick = None;
        addon.doc["addonVersion"] = json!(version);
    }
    addon.doc["modifiedAt"] = json!(now());
    for key in ["serviceAccountRoleArn", "configurationValues"] {
        if !body[key].is_null() && doom.is_none() {
            addon.doc[key] = body[key].clone();
        }
    }
    addon.life = Life::Updating(Instant::now());
    let update = cluster.start_update(
        "AddonUpdate",
        vec![("AddonVersion".into(), version)],
        state.config.addon_delay,
        doom,
    );
    update.addon = Some(name.to_owned());
    Ok(json!({"update": update.json()}))
}
