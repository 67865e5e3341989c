//! What green has already of a wave: pages of each of its kinds, not one request an object. On an empty green that is a handful of
//! requests; of what is there only what the wave asks about is kept, and compared while its page is in memory.

use super::compare::differences;
use super::items::{Items, id_of};
use super::mark;
use super::record::Before;
use super::retry;
use super::secrets::with_values;
use crate::object::{self, ObjectId, annotation, label};
use crate::step::util::{at, refused};
use crate::step::{Cx, StepError, StepResult};
use crate::world::kube::ApiKind;
use crate::world::{Class, Error};
use futures::StreamExt;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// So few of a kind are asked for one by one: green may have thousands of others.
const FEW: usize = 3;
/// Kinds at once.
const KINDS: usize = 8;
/// A list that expires again and again (410) is read at once after so many tries (replay.md 2).
const RESTARTS: usize = 3;
/// Conflicts that are told in full.
const TOLD: usize = 10;

/// What one object of green means for the wave.
enum Found {
    Adopted,
    Ours(String),
    Conflict(String),
}

/// Reads what is there, and refuses when something of another kind of making stands in the way.
pub async fn look(items: &Items<'_>, cx: &Cx) -> StepResult<Before> {
    let wanted: BTreeMap<&str, usize> =
        items.order().iter().map(|n| (items.name(*n), *n)).collect();
    let kinds = served(cx, items).await?;
    let looked: Vec<StepResult<Vec<(usize, Found)>>> = futures::stream::iter(
        kinds
            .into_iter()
            .map(|(kind, count)| of_kind(items, cx, &wanted, kind, count)),
    )
    .buffered(KINDS)
    .collect()
    .await;
    let mut before = Before::default();
    let mut conflicts = vec![];
    for found in looked {
        for (n, found) in found? {
            let name = items.name(n).to_string();
            match found {
                Found::Adopted => before.adopted.push(name),
                Found::Ours(uid) => {
                    before.ours.insert(name, uid);
                }
                Found::Conflict(why) => conflicts.push((name, why)),
            }
        }
    }
    before.adopted.sort();
    before.adopted.dedup();
    if conflicts.is_empty() {
        return Ok(before);
    }
    Err(refuse(conflicts))
}

/// Cluster-scoped objects first: they stand in everybody's way (replay.md 17).
fn refuse(mut conflicts: Vec<(String, String)>) -> StepError {
    let cluster = |name: &str| name.matches('/').count() == 1;
    conflicts.sort_by(|a, b| (!cluster(&a.0), a).cmp(&(!cluster(&b.0), b)));
    conflicts.dedup();
    let (first, why) = conflicts[0].clone();
    let others: Vec<String> = conflicts
        .iter()
        .skip(1)
        .take(TOLD)
        .map(|(name, why)| format!("{name} ({why})"))
        .collect();
    let more = match conflicts.len().saturating_sub(1 + TOLD) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let others = match others.as_slice() {
        [] => String::new(),
        some => format!("; so do {}{more}", some.join(", ")),
    };
    refused(
        first,
        format!("green has an object of this name already, and it differs: {why}{others}"),
        "delete or rename it on green, or list it under workloads.skip; then plan again (replay.md 17)",
    )
}

/// The wave's kinds as green serves them. One that it does not serve has no objects; its creation will tell.
pub async fn served(cx: &Cx, items: &Items<'_>) -> StepResult<Vec<(ApiKind, usize)>> {
    let kinds = items.kinds()?;
    let find = |served: &[ApiKind]| -> Vec<(ApiKind, usize)> {
        kinds
            .iter()
            .filter_map(|(version, kind, count)| {
                let k = served
                    .iter()
                    .find(|k| k.kind == *kind && k.api_version() == *version)?;
                Some((k.clone(), *count))
            })
            .collect()
    };
    let found = find(&cx.world.green.kinds(false).await?);
    if found.len() == kinds.len() {
        return Ok(found);
    }
    Ok(find(&cx.world.green.kinds(true).await?))
}

async fn of_kind(
    items: &Items<'_>,
    cx: &Cx,
    wanted: &BTreeMap<&str, usize>,
    kind: ApiKind,
    count: usize,
) -> StepResult<Vec<(usize, Found)>> {
    let mut out = vec![];
    if count <= FEW {
        for (name, n) in wanted {
            let planned = match name.split(['/', '.']).next() {
                Some(prefix) if prefix == kind.kind.to_lowercase() => items.planned(*n)?,
                _ => continue,
            };
            let Some(id) = ObjectId::of(&planned.target)
                .filter(|id| id.kind == kind.kind && id.api_version == kind.api_version())
            else {
                continue;
            };
            if let Some(there) = cx.world.green.get(&id).await? {
                out.extend(judge(items, cx, *n, &there).await?.map(|f| (*n, f)));
            }
        }
        return Ok(out);
    }
    let green = cx.world.green.as_ref();
    let mut restarts = 0;
    let mut token: Option<String> = None;
    loop {
        let listed = retry::read(&kind.plural, || {
            green.list_page(&kind, None, token.as_deref())
        });
        let page = match listed.await {
            Err(e) if e.class == Class::Gone && restarts < RESTARTS => {
                // From the start; what was seen is seen again.
                restarts += 1;
                token = None;
                out.clear();
                continue;
            }
            Err(e) if e.class == Class::NotFound => return Ok(out),
            other => other?,
        };
        for there in &page.items {
            let Some(id) = ObjectId::of(there) else {
                continue;
            };
            if let Some(n) = wanted.get(id.to_string().as_str()) {
                out.extend(judge(items, cx, *n, there).await?.map(|f| (*n, f)));
            }
        }
        token = page.continue_token;
        if token.is_none() {
            return Ok(out);
        }
    }
}

/// What an object that is there means; `None` for one on its way out: its place will be free.
async fn judge(items: &Items<'_>, cx: &Cx, n: usize, there: &Value) -> StepResult<Option<Found>> {
    if !at(there, "/metadata/deletionTimestamp").is_null() {
        return Ok(None);
    }
    let name = items.name(n);
    if mark::ours(there, &cx.run) {
        let uid = object::uid(there).unwrap_or_default();
        return Ok(Some(Found::Ours(uid.into())));
    }
    let planned = items.planned(n)?;
    let mut target = planned.target;
    if target["kind"] == "Secret" && !planned.blue_version.is_empty() {
        // The values are compared here, in memory; the plan has only markers.
        let id = id_of(name, &target)?.in_version(&planned.blue_version);
        let live = cx.world.blue.get(&id).await?;
        let live = live.ok_or_else(|| {
            Error::new(Class::NotFound, name, "it is gone from blue since the plan")
                .remedy("make a new plan")
        })?;
        target = with_values(cx, name, &live, &target)?;
    }
    if target["kind"] == "Namespace"
        && let Some(meta) = target["metadata"].as_object_mut()
    {
        // Whoever made the namespace on green before us need not have copied notes of blue's tools.
        meta.remove("annotations");
    }
    // uids of owners are another cluster's.
    if let Some(meta) = target["metadata"].as_object_mut() {
        meta.remove("ownerReferences");
    }
    let differs = differences(&target, there);
    let Some(first) = differs.first() else {
        return Ok(Some(Found::Adopted));
    };
    let whose = match annotation(there, mark::RUN) {
        Some(run) => format!(" (run {run} made it: roll that one back first)"),
        None if of_the_system(there) => {
            " (it belongs to green's system and is never touched)".into()
        }
        None => String::new(),
    };
    let more = match differs.len() {
        1 => String::new(),
        n => format!(" and {} more", n - 1),
    };
    Ok(Some(Found::Conflict(format!(
        "{}{more}{whose}",
        first.path
    ))))
}

/// Whether an object belongs to green itself: made by the server, by EKS or an add-on.
fn of_the_system(object: &Value) -> bool {
    let name = at(object, "/metadata/name").as_str().unwrap_or_default();
    name.starts_with("system:")
        || name.starts_with("eks:")
        || label(object, "kubernetes.io/bootstrapping").is_some()
        || label(object, "eks.amazonaws.com/component").is_some()
        || label(object, "app.kubernetes.io/managed-by") == Some("EKS")
        || label(object, "addonmanager.kubernetes.io/mode").is_some()
        || at(object, "/metadata/managedFields")
            .as_array()
            .into_iter()
            .flatten()
            .any(|e| e["manager"] == "eks")
}

/// Names of the wave that green has (still), for the end of an undo.
pub async fn present(
    items: &Items<'_>,
    cx: &Cx,
    asked: &BTreeSet<&str>,
) -> StepResult<BTreeMap<String, Value>> {
    let mut there = BTreeMap::new();
    for (kind, _) in served(cx, items).await? {
        let mut token: Option<String> = None;
        loop {
            let green = &cx.world.green;
            let listed = retry::read(&kind.plural, || {
                green.list_page(&kind, None, token.as_deref())
            });
            let page = match listed.await {
                Err(e) if e.class == Class::NotFound => break,
                Err(e) if e.class == Class::Gone => {
                    token = None;
                    continue;
                }
                other => other?,
            };
            for object in page.items {
                let Some(id) = ObjectId::of(&object) else {
                    continue;
                };
                let name = id.to_string();
                if asked.contains(name.as_str()) {
                    there.insert(name, at(&object, "/metadata/finalizers").clone());
                }
            }
            token = page.continue_token;
            if token.is_none() {
                break;
            }
        }
    }
    Ok(there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_17_cluster_scoped_conflicts_are_told_first() {
        let e = refuse(vec![
            ("configmap/a/x".into(), ".data.k".into()),
            ("clusterrole/ops".into(), ".rules[0]".into()),
            ("configmap/a/b".into(), ".data.k".into()),
        ]);
        let StepError::Refused { object, why, .. } = e else {
            panic!("{e:?}");
        };
        assert_eq!(object, "clusterrole/ops");
        assert!(
            why.ends_with(".rules[0]; so do configmap/a/b (.data.k), configmap/a/x (.data.k)"),
            "{why}"
        );
    }
}
