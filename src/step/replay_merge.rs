//! `replay.merge`: what people added to objects that green makes by itself, the service account `default` of each namespace: pull secrets and
//! annotations are added, nothing is taken away or overwritten (replay.md 24 and 37). Such an object is never created, never deleted.

use super::util::{at, change, params, recorded, refused};
use super::{Cx, Settle, Step, StepError, StepResult};
use crate::world::{Class, Error};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Makes the step.
pub fn make(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(params::<Merge>("replay.merge", value)?))
}

#[derive(Deserialize)]
struct Merge {
    objects: Vec<String>,
}

/// What one of them had, of what is added.
#[derive(Serialize, Deserialize, Default, PartialEq, Debug)]
struct Had {
    /// Keys of ours that were there, with that value (it equals ours).
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    annotations: BTreeSet<String>,
    /// Names of pull secrets of ours that were there.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pull_secrets: BTreeSet<String>,
}

/// What is added to one of them.
struct Added {
    annotations: Map<String, Value>,
    pull_secrets: BTreeSet<String>,
}

fn names(list: &Value) -> Vec<String> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(|s| s["name"].as_str().map(String::from))
        .collect()
}

fn annotations(object: &Value) -> Map<String, Value> {
    at(object, "/metadata/annotations")
        .as_object()
        .cloned()
        .unwrap_or_default()
}

impl Added {
    fn of(target: &Value) -> Added {
        Added {
            annotations: annotations(target),
            pull_secrets: names(at(target, "/imagePullSecrets")).into_iter().collect(),
        }
    }
    /// Without what was there before.
    fn beyond(mut self, had: &Had) -> Added {
        self.annotations.retain(|k, _| !had.annotations.contains(k));
        self.pull_secrets.retain(|n| !had.pull_secrets.contains(n));
        self
    }
}

/// A new namespace gets its account a moment after it was made.
fn not_yet(name: &str) -> StepError {
    Error::new(Class::NotReady, name, "green has not made it yet")
        .remedy("green's controller manager makes it once the namespace stands; if the namespace was listed under workloads.skip, list this account too")
        .into()
}

/// The list with these names added, or without them.
fn with_secrets(there: &Value, add: &BTreeSet<String>, remove: &BTreeSet<String>) -> Option<Value> {
    let now = names(at(there, "/imagePullSecrets"));
    let mut wanted: Vec<&String> = now.iter().filter(|n| !remove.contains(*n)).collect();
    wanted.extend(add.iter().filter(|n| !now.contains(n)));
    if wanted.len() == now.len() && wanted.iter().zip(&now).all(|(a, b)| *a == b) {
        return None;
    }
    if wanted.is_empty() {
        return Some(Value::Null);
    }
    Some(wanted.iter().map(|n| json!({ "name": n })).collect())
}

fn body(annotations: Map<String, Value>, secrets: Option<Value>) -> Option<Value> {
    if annotations.is_empty() && secrets.is_none() {
        return None;
    }
    let mut body = json!({ "metadata": {} });
    if !annotations.is_empty() {
        body["metadata"]["annotations"] = Value::Object(annotations);
    }
    if let Some(secrets) = secrets {
        body["imagePullSecrets"] = secrets;
    }
    Some(body)
}

#[async_trait]
impl Step for Merge {
    async fn observe(&self, cx: &Cx) -> StepResult<Value> {
        let mut before = BTreeMap::new();
        for name in &self.objects {
            let there = match cx.world.green.get(&cx.green_id(name)?).await {
                Ok(Some(there)) => there,
                Ok(None) => return Err(not_yet(name)),
                Err(e) if e.class == Class::NotFound => return Err(not_yet(name)),
                Err(e) => return Err(e.into()),
            };
            let added = Added::of(&cx.target(name)?);
            let now = annotations(&there);
            let mut had = Had::default();
            for (key, value) in &added.annotations {
                match now.get(key) {
                    None => {}
                    Some(same) if same == value => {
                        had.annotations.insert(key.clone());
                    }
                    Some(_) => {
                        return Err(refused(
                            name,
                            format!("green has another value in its annotation {key}"),
                            "make both equal, or list the account under workloads.skip; then plan again (replay.md 37)",
                        ));
                    }
                }
            }
            had.pull_secrets = names(at(&there, "/imagePullSecrets"))
                .into_iter()
                .filter(|n| added.pull_secrets.contains(n))
                .collect();
            before.insert(name.clone(), had);
        }
        Ok(json!(before))
    }

    async fn apply(&self, cx: &Cx, before: &Value) -> StepResult<Value> {
        let before: BTreeMap<String, Had> = recorded(&cx.step, before)?;
        for (name, had) in &before {
            let added = Added::of(&cx.target(name)?).beyond(had);
            let found = change(cx.world.green.as_ref(), &cx.green_id(name)?, |there| {
                let now = annotations(there);
                let mut missing = Map::new();
                for (key, value) in &added.annotations {
                    match now.get(key) {
                        Some(same) if same == value => {}
                        None => {
                            missing.insert(key.clone(), value.clone());
                        }
                        Some(_) => {
                            return Err(StepError::Changed {
                                object: name.clone(),
                                expected: format!("no annotation {key}"),
                                found: "another value, written since".into(),
                            });
                        }
                    }
                }
                let secrets = with_secrets(there, &added.pull_secrets, &BTreeSet::new());
                Ok(body(missing, secrets))
            })
            .await?;
            if !found {
                return Err(not_yet(name));
            }
        }
        Ok(json!({ "merged": before.len() }))
    }

    async fn settle(&self, _: &Cx, _: &Value, _: &Value) -> StepResult<Settle> {
        Ok(Settle::Ready)
    }

    async fn undo(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<()> {
        let before: BTreeMap<String, Had> = recorded(&cx.step, before)?;
        let mut left = vec![];
        for (name, had) in &before {
            let added = Added::of(&cx.target(name)?).beyond(had);
            let mut edited = vec![];
            change(cx.world.green.as_ref(), &cx.green_id(name)?, |there| {
                let now = annotations(there);
                let mut ours = Map::new();
                edited.clear();
                for (key, value) in &added.annotations {
                    match now.get(key) {
                        Some(same) if same == value => {
                            ours.insert(key.clone(), Value::Null);
                        }
                        Some(_) => edited.push(key.clone()),
                        None => {}
                    }
                }
                let secrets = with_secrets(there, &BTreeSet::new(), &added.pull_secrets);
                Ok(body(ours, secrets))
            })
            .await?;
            if !edited.is_empty() {
                left.push((name.clone(), edited.join(", ")));
            }
        }
        match left.into_iter().next() {
            None => Ok(()),
            Some((object, keys)) => Err(StepError::Changed {
                object,
                expected: format!("the annotations {keys} as this run wrote them"),
                found: "other values; what nobody changed was taken back".into(),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
