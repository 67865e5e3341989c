//! `replay.wave`: one wave of objects created on green, parked, journaled in groups.
//!
//! Secrets go from API server to API server in memory: the plan holds only markers, the live values are read here and never written down.

use super::util::{RUN_ANNOTATION, at, params, recorded, refused};
use super::{Cx, Settle, Step, StepError, StepResult};
use crate::object::{self, ObjectId};
use crate::world::kube::CreateOptions;
use crate::world::{Class, Error};
use async_trait::async_trait;
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Objects between two fsyncs.
const GROUP: usize = 50;

/// Makes the step.
pub fn make(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(params::<Wave>("replay.wave", value)?))
}

#[derive(Deserialize)]
struct Wave {
    #[serde(default)]
    objects: Vec<String>,
    /// Indices into `Plan.generated`.
    #[serde(default)]
    generated: Vec<usize>,
}

#[derive(Serialize, Deserialize)]
struct Before {
    /// Objects that green had already, equal to ours: adopted, never touched, never deleted.
    adopted: Vec<String>,
}

/// What a progress record says: a group is about to be created, or was, with the uids that the server gave.
#[derive(Serialize, Deserialize, Default)]
struct Record {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    creating: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    created: BTreeMap<String, String>,
}

impl Wave {
    /// Targets in the order of the plan, with the object's name.
    fn targets(&self, cx: &Cx) -> StepResult<Vec<(String, Value)>> {
        let mut all = vec![];
        for index in &self.generated {
            let object = cx.plan.generated.get(*index).ok_or_else(|| {
                refused(
                    &cx.step,
                    format!("the plan has no generated object {index}"),
                    "make the plan again",
                )
            })?;
            let id = ObjectId::of(object).ok_or_else(|| {
                refused(
                    &cx.step,
                    "a generated object has no name",
                    "make the plan again",
                )
            })?;
            all.push((id.to_string(), object.clone()));
        }
        for name in &self.objects {
            all.push((name.clone(), cx.target(name)?.clone()));
        }
        Ok(all)
    }

    fn id(name: &str, target: &Value) -> StepResult<ObjectId> {
        ObjectId::of(target)
            .ok_or_else(|| refused(name, "its target has no name", "make the plan again"))
    }

    /// uids of everything that this step created, as far as the journal knows.
    fn uids(cx: &Cx) -> StepResult<BTreeMap<String, String>> {
        let mut uids = BTreeMap::new();
        for record in cx.log.recorded(&cx.step) {
            uids.extend(recorded::<Record>(&cx.step, &record)?.created);
        }
        Ok(uids)
    }

    async fn create(cx: &Cx, name: &str, target: &Value) -> StepResult<String> {
        let mut object = target.clone();
        if object["kind"] == "Secret" {
            let blue = cx.blue_id(name)?;
            let live = cx.world.blue.get(&blue).await?;
            let live = live.ok_or_else(|| {
                Error::new(Class::NotFound, name, "it is gone from blue since the plan")
                    .remedy("make a new plan")
            })?;
            object = crate::rewrite::for_green(&live, target);
        }
        mark(&mut object, &cx.run);
        let id = Self::id(name, &object)?;
        match cx
            .world
            .green
            .create(&object, CreateOptions::default())
            .await
        {
            Ok(made) => Ok(object::uid(&made).unwrap_or_default().to_string()),
            Err(e) if e.class == Class::AlreadyExists => {
                let there = cx.world.green.get(&id).await?;
                let there = there.ok_or_else(|| {
                    Error::new(
                        Class::Unreachable,
                        name,
                        "it exists and does not: an earlier one is being deleted",
                    )
                })?;
                if object::annotation(&there, RUN_ANNOTATION) == Some(cx.run.as_str()) {
                    return Ok(object::uid(&there).unwrap_or_default().to_string());
                }
                Err(StepError::Changed {
                    object: name.into(),
                    expected: "nothing on green".into(),
                    found: "an object that somebody else made".into(),
                })
            }
            Err(e) => Err(e.into()),
        }
    }
}

fn mark(object: &mut Value, run: &str) {
    object["metadata"]["annotations"][RUN_ANNOTATION] = json!(run);
}

/// Objects in a namespace of green that neither this run, the server nor a controller made.
async fn strangers_in(cx: &Cx, namespace: &str) -> StepResult<Vec<String>> {
    const MADE_BY_SERVERS: &[&str] = &[
        "Event",
        "Endpoints",
        "EndpointSlice",
        "Lease",
        "ControllerRevision",
    ];
    let green = cx.world.green.as_ref();
    let mut strangers = vec![];
    let mut seen = std::collections::BTreeSet::new();
    for kind in green.kinds(false).await? {
        let usable = |verb: &str| kind.verbs.iter().any(|v| v == verb);
        if !kind.namespaced
            || !usable("list")
            || !usable("create")
            || MADE_BY_SERVERS.contains(&kind.kind.as_str())
            || !seen.insert((kind.group.clone(), kind.kind.clone()))
        {
            continue;
        }
        let listing = match green.list(&kind).await {
            Ok(listing) => listing,
            Err(e) if e.class == Class::NotFound => continue,
            Err(e) => return Err(e.into()),
        };
        for object in listing.items {
            let Some(id) = ObjectId::of(&object) else {
                continue;
            };
            let controlled = at(&object, "/metadata/ownerReferences")
                .as_array()
                .is_some_and(|owners| owners.iter().any(|o| o["controller"] == true));
            let by_itself = matches!(
                (id.kind.as_str(), id.name.as_str()),
                ("ServiceAccount", "default") | ("ConfigMap", "kube-root-ca.crt")
            );
            let ours = object::annotation(&object, RUN_ANNOTATION) == Some(cx.run.as_str());
            let going = !at(&object, "/metadata/deletionTimestamp").is_null();
            if id.namespace.as_deref() == Some(namespace)
                && !(controlled || by_itself || ours || going)
            {
                strangers.push(id.to_string());
            }
        }
    }
    Ok(strangers)
}

/// Whether a finalizer stands for something in the cloud that its controller deletes first.
fn cleans_the_cloud(finalizer: &Value) -> bool {
    const CLOUD: &[&str] = &[
        "service.kubernetes.io/load-balancer-cleanup",
        "service.k8s.aws/",
        "elbv2.k8s.aws/",
        "ingress.k8s.aws/",
        "external-attacher/",
        "kubernetes.io/pv-protection",
    ];
    finalizer
        .as_str()
        .is_some_and(|f| CLOUD.iter().any(|c| f.starts_with(c)))
}

/// Whether what green has already serves as the copy: every field of the target is there with the same value.
/// What the server defaults beside it does not count; `metadata` counts for labels only.
fn covers(there: &Value, target: &Value) -> bool {
    match (there, target) {
        (Value::Object(there), Value::Object(target)) => {
            target.iter().all(|(key, value)| match key.as_str() {
                "metadata" => value.get("labels").is_none_or(|labels| {
                    there
                        .get("metadata")
                        .and_then(|m| m.get("labels"))
                        .is_some_and(|l| covers(l, labels))
                }),
                "status" => true,
                _ => there.get(key).is_some_and(|t| covers(t, value)),
            })
        }
        (Value::Array(there), Value::Array(target)) => {
            there.len() == target.len() && there.iter().zip(target).all(|(a, b)| covers(a, b))
        }
        (there, target) => there == target,
    }
}

#[async_trait]
impl Step for Wave {
    async fn observe(&self, cx: &Cx) -> StepResult<Value> {
        let mut adopted = vec![];
        // A wave is looked up at once but politely: this many requests in flight.
        let width = cx.plan.spec.limits.write_concurrency.clamp(1, 64) as usize;
        let targets = self.targets(cx)?;
        let looked: Vec<StepResult<Option<String>>> = futures::stream::iter(targets.into_iter().map(|(name, target)| async move {
            let id = Wave::id(&name, &target)?;
            let there = match cx.world.green.get(&id).await {
                Ok(there) => there,
                // A kind whose CRD comes in an earlier object of this same wave, or an unknown one: creation will tell.
                Err(e) if e.class == Class::NotFound => None,
                Err(e) => return Err(e.into()),
            };
            match there {
                None => Ok(None),
                Some(there) if object::annotation(&there, RUN_ANNOTATION) == Some(cx.run.as_str()) => Ok(None),
                Some(there) if target["kind"] != "Secret" && covers(&there, &target) => Ok(Some(name)),
                Some(_) => Err(refused(&name, "green has an object of this name already, and it differs", "delete or rename it on green, or list it under workloads.skip; then plan again (replay.md 17)")),
            }
        }))
        .buffered(width)
        .collect()
        .await;
        for result in looked {
            adopted.extend(result?);
        }
        Ok(json!(Before { adopted }))
    }

    async fn apply(&self, cx: &Cx, before: &Value) -> StepResult<Value> {
        let before: Before = recorded(&cx.step, before)?;
        let done = Self::uids(cx)?;
        let width = cx.plan.spec.limits.write_concurrency.clamp(1, 64) as usize;
        let todo: Vec<(String, Value)> = self
            .targets(cx)?
            .into_iter()
            .filter(|(name, _)| !before.adopted.contains(name) && !done.contains_key(name))
            .collect();
        cx.world.green.kinds(true).await?;
        for group in todo.chunks(GROUP) {
            let creating = group.iter().map(|(name, _)| name.clone()).collect();
            cx.log
                .progress(
                    &cx.step,
                    json!(Record {
                        creating,
                        ..Record::default()
                    }),
                )
                .map_err(StepError::Journal)?;
            let results: Vec<(String, StepResult<String>)> =
                futures::stream::iter(group.iter().cloned().map(|(name, target)| async move {
                    let made = Wave::create(cx, &name, &target).await;
                    (name, made)
                }))
                .buffer_unordered(width)
                .collect()
                .await;
            let mut created = BTreeMap::new();
            let mut failed = None;
            for (name, result) in results {
                match result {
                    Ok(uid) => {
                        created.insert(name, uid);
                    }
                    Err(e) => failed = failed.or(Some(e)),
                }
            }
            if !created.is_empty() {
                cx.log
                    .progress(
                        &cx.step,
                        json!(Record {
                            created,
                            ..Record::default()
                        }),
                    )
                    .map_err(StepError::Journal)?;
            }
            if let Some(e) = failed {
                return Err(e);
            }
        }
        Ok(json!({ "created": Self::uids(cx)?.len(), "adopted": before.adopted.len() }))
    }

    async fn settle(&self, cx: &Cx, _: &Value, _: &Value) -> StepResult<Settle> {
        for (name, target) in self
            .targets(cx)?
            .into_iter()
            .filter(|(_, t)| t["kind"] == "CustomResourceDefinition")
        {
            let there = cx
                .world
                .green
                .get(&Self::id(&name, &target)?)
                .await?
                .unwrap_or_default();
            let established = at(&there, "/status/conditions")
                .as_array()
                .into_iter()
                .flatten()
                .any(|c| c["type"] == "Established" && c["status"] == "True");
            if !established {
                return Ok(Settle::Pending {
                    why: format!("{name} to be established"),
                    poll: Duration::from_secs(1),
                });
            }
        }
        cx.world.green.kinds(true).await?;
        Ok(Settle::Ready)
    }

    async fn undo(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<()> {
        let before: Before = recorded(&cx.step, before)?;
        let uids = Self::uids(cx)?;
        for (name, target) in self
            .targets(cx)?
            .into_iter()
            .rev()
            .filter(|(name, _)| !before.adopted.contains(name))
        {
            let id = Self::id(&name, &target)?;
            let there = match cx.world.green.get(&id).await {
                Ok(Some(there)) => there,
                Ok(None) => continue,
                Err(e) if e.class == Class::NotFound => continue,
                Err(e) => return Err(e.into()),
            };
            let uid = object::uid(&there).unwrap_or_default();
            let ours = match uids.get(&name) {
                Some(recorded) => recorded == uid,
                // Created, but the crash came before the record: the mark decides.
                None => object::annotation(&there, RUN_ANNOTATION) == Some(cx.run.as_str()),
            };
            if !ours {
                return Err(StepError::Changed {
                    object: name,
                    expected: format!(
                        "uid {}",
                        uids.get(&id.to_string())
                            .map_or("of this run", String::as_str)
                    ),
                    found: format!("uid {uid}"),
                });
            }
            if !at(&there, "/metadata/deletionTimestamp").is_null() {
                continue;
            }
            if id.kind == "Namespace" {
                let strangers = strangers_in(cx, &id.name).await?;
                if !strangers.is_empty() {
                    return Err(StepError::Changed {
                        object: name,
                        expected: "nothing in it that this run did not make".into(),
                        found: format!("{}, which would be deleted with it", strangers.join(", ")),
                    });
                }
            }
            // A controller that goes away in the same undo could never clear its finalizer (replay.md 11). Those by which a
            // controller deletes something in the cloud stay: without them green's load balancer would be left behind.
            let (kept, stripped): (Vec<Value>, Vec<Value>) = at(&there, "/metadata/finalizers")
                .as_array()
                .into_iter()
                .flatten()
                .cloned()
                .partition(cleans_the_cloud);
            if !stripped.is_empty() {
                cx.world
                    .green
                    .merge(&id, &json!({ "metadata": { "finalizers": kept } }))
                    .await?;
            }
            match cx.world.green.delete(&id, uid).await {
                Ok(()) => {}
                Err(e) if e.class == Class::NotFound => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    async fn undone(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<Settle> {
        let before: Before = recorded(&cx.step, before)?;
        for (name, target) in self
            .targets(cx)?
            .into_iter()
            .filter(|(name, _)| !before.adopted.contains(name))
        {
            match cx.world.green.get(&Self::id(&name, &target)?).await {
                Ok(None) => {}
                Ok(Some(there)) => {
                    return Ok(Settle::Pending {
                        why: match at(&there, "/metadata/finalizers").as_array() {
                            Some(f) if !f.is_empty() => {
                                format!(
                                    "{name} to be gone from green, held by {}",
                                    at(&there, "/metadata/finalizers")
                                )
                            }
                            _ => format!("{name} to be gone from green"),
                        },
                        poll: Duration::from_secs(1),
                    });
                }
                Err(e) if e.class == Class::NotFound => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(Settle::Ready)
    }
}

#[cfg(test)]
mod tests {
    use super::covers;
    use serde_json::json;

    #[test]
    fn an_object_that_green_has_already_is_adopted_only_when_every_field_of_ours_is_there() {
        let there = json!({"kind": "Namespace", "metadata": {"name": "shop", "uid": "1", "labels": {"team": "a", "kubernetes.io/metadata.name": "shop"}}, "spec": {"finalizers": ["kubernetes"]}});
        assert!(covers(
            &there,
            &json!({"kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "a"}}})
        ));
        assert!(!covers(
            &there,
            &json!({"kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "b"}}})
        ));
        assert!(!covers(
            &json!({"data": {"a": "1"}}),
            &json!({"data": {"a": "2"}})
        ));
    }
}
