//! Tags on anything that has an EKS ARN.

use serde_json::{Value, json};

use super::{Answer, Store, bad, check_tags, not_found};
use crate::strict::State;
use crate::strict::http::{Refusal, Req};

/// The `tags` object of whatever carries this ARN.
fn tags_of<'a>(store: &'a mut Store, arn: &str) -> Result<&'a mut Value, Refusal> {
    if !arn.starts_with("arn:aws:eks:") {
        return Err(bad(format!("'{arn}' is not the ARN of an EKS resource")));
    }
    for cluster in store.clusters.values_mut() {
        if cluster.doc["arn"] == arn {
            return Ok(&mut cluster.doc["tags"]);
        }
        let inner = cluster
            .nodegroups
            .values_mut()
            .map(|g| (&mut g.doc, "nodegroupArn"))
            .chain(
                cluster
                    .addons
                    .values_mut()
                    .map(|a| (&mut a.doc, "addonArn")),
            )
            .chain(
                cluster
                    .access
                    .values_mut()
                    .map(|a| (&mut a.doc, "accessEntryArn")),
            )
            .chain(cluster.pods.values_mut().map(|a| (a, "associationArn")));
        for (doc, key) in inner {
            if doc[key] == arn {
                return Ok(&mut doc["tags"]);
            }
        }
    }
    Err(Refusal {
        code: "NotFoundException".into(),
        ..not_found(format!("No resource found for ARN: {arn}"))
    })
}

/// Tags of whatever carries this ARN.
pub(crate) fn tags_by_arn(store: &mut Store, arn: &str) -> Vec<(String, String)> {
    let Ok(tags) = tags_of(store, arn) else {
        return vec![];
    };
    tags.as_object()
        .into_iter()
        .flatten()
        .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())))
        .collect()
}

/// The ARN of a thing in a cluster, by its kind as ARNs name it and its name.
pub(crate) fn arn_of(store: &Store, cluster: &str, kind: &str, name: &str) -> Option<String> {
    let cluster = store.clusters.get(cluster)?;
    let arn = match kind {
        "nodegroup" => &cluster.nodegroups.get(name)?.doc["nodegroupArn"],
        "addon" => &cluster.addons.get(name)?.doc["addonArn"],
        "access-entry" => &cluster.access.get(name)?.doc["accessEntryArn"],
        "podidentityassociation" => &cluster.pods.get(name)?["associationArn"],
        _ => return None,
    };
    arn.as_str().map(str::to_owned)
}

pub fn tag(state: &State, arn: &str, body: &Value) -> Answer {
    let mut store = state.lock_eks();
    let tags = tags_of(&mut store, arn)?;
    let mut next = tags.clone();
    for (key, value) in body["tags"].as_object().into_iter().flatten() {
        next[key] = value.clone();
    }
    check_tags(&next)?;
    *tags = next;
    Ok(json!({}))
}

pub fn untag(state: &State, req: &Req, arn: &str) -> Answer {
    let mut store = state.lock_eks();
    let tags = tags_of(&mut store, arn)?;
    for key in req.query_all("tagKeys") {
        if let Some(map) = tags.as_object_mut() {
            map.shift_remove(key);
        }
    }
    Ok(json!({}))
}

pub fn list(state: &State, arn: &str) -> Answer {
    let mut store = state.lock_eks();
    Ok(json!({"tags": tags_of(&mut store, arn)?}))
}
