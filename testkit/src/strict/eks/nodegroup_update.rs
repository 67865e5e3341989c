//! Changes of a node group: its size, labels, taints, version (eks.md 1.6).

use std::time::Instant;

use serde_json::{Map, Value, json};

use super::nodegroup::group;
use super::nodegroup_checks::{check_labels, check_scaling, check_taints, check_update};
use super::{Answer, Life, bad, in_use, now, text, texts};
use crate::strict::State;
use crate::strict::controls::Fails;

/// Brings the nodes to the cluster's version, or to another release of it.
pub fn update_version(state: &State, cluster_name: &str, name: &str, body: &Value) -> Answer {
    let mut store = state.lock_eks();
    let version = store.cluster(cluster_name)?.version().to_owned();
    let group = group(&mut store, cluster_name, name)?;
    if group.life != Life::Active {
        return Err(in_use(format!(
            "Nodegroup {name} cannot be updated while it is {}",
            group.life.word()
        ))
        .with("clusterName", cluster_name)
        .with("nodegroupName", name));
    }
    let wanted = text(body, "version").unwrap_or(&version).to_owned();
    if wanted != version {
        return Err(bad(format!(
            "Requested Nodegroup version {wanted} must be the cluster's version {version}"
        )));
    }
    let doom = state.lock_controls().take_failure(Fails::Update, name);
    if doom.is_none() {
        group.doc["version"] = json!(wanted);
        group.doc["releaseVersion"] = json!(format!("{wanted}.3-20261115"));
    }
    group.life = Life::Updating(Instant::now());
    let takes = state.config.nodegroup_delay / 2;
    let params = vec![("Version".to_owned(), wanted)];
    let cluster = store.cluster(cluster_name)?;
    let update = cluster.start_update("VersionUpdate", params, takes, doom);
    update.nodegroup = Some(name.to_owned());
    Ok(json!({"update": update.json()}))
}

pub fn update(state: &State, cluster_name: &str, name: &str, body: &Value) -> Answer {
    let mut store = state.lock_eks();
    let group = group(&mut store, cluster_name, name)?;
    if group.life != Life::Active {
        return Err(in_use(format!(
            "Nodegroup {name} cannot be updated while it is {}",
            group.life.word()
        ))
        .with("clusterName", cluster_name)
        .with("nodegroupName", name));
    }
    let mut doc = group.doc.clone();
    if let Some(given) = body["scalingConfig"].as_object() {
        for (key, value) in given {
            doc["scalingConfig"][key] = value.clone();
        }
        check_scaling(state, &doc["scalingConfig"])?;
    }
    let (add, remove) = (
        &body["labels"]["addOrUpdateLabels"],
        texts(&body["labels"], "removeLabels"),
    );
    check_labels(add)?;
    let mut labels: Map<String, Value> = doc["labels"].as_object().cloned().unwrap_or_default();
    labels.retain(|k, _| !remove.contains(k));
    labels.extend(add.as_object().cloned().unwrap_or_default());
    doc["labels"] = Value::Object(labels);
    let taint_key = |t: &Value| (t["key"].clone(), t["effect"].clone());
    let changes = |key: &str| body["taints"][key].as_array().cloned().unwrap_or_default();
    let (add, remove) = (changes("addOrUpdateTaints"), changes("removeTaints"));
    let mut taints = doc["taints"].as_array().cloned().unwrap_or_default();
    taints.retain(|t| {
        !remove
            .iter()
            .chain(&add)
            .any(|r| taint_key(r) == taint_key(t))
    });
    taints.extend(add);
    check_taints(&taints)?;
    doc["taints"] = json!(taints);
    if body["updateConfig"].is_object() {
        check_update(&body["updateConfig"])?;
        doc["updateConfig"] = body["updateConfig"].clone();
    }
    doc["modifiedAt"] = json!(now());
    let doom = state.lock_controls().take_failure(Fails::Update, name);
    if doom.is_none() {
        group.doc = doc;
    }
    group.life = Life::Updating(Instant::now());
    let takes = state.config.nodegroup_delay / 2;
    let cluster = store.cluster(cluster_name)?;
    let update = cluster.start_update("ConfigUpdate", vec![], takes, doom);
    update.nodegroup = Some(name.to_owned());
    Ok(json!({"update": update.json()}))
}
