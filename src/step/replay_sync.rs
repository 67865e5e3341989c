//! `replay.sync`: brings to objects that the run made what changed on blue since: single fields, by server-side apply, unforced.
//!
//! Its parameters come from a look at both sides (`drift`), not from the planner; they stand in the journal. A field that somebody changed
//! on green between the look and the write is left and named. New objects are created by `replay.wave` steps that need this one.

use super::replay::mark;
use super::util::{busy, params, recorded};
use super::{Cx, Settle, Step, StepError, StepResult};
use crate::drift::{Managers, Op, Path, apply_ops};
use crate::object::{self, ObjectId};
use crate::world::kube::{ApplyOptions, Kube, apply_over};
use crate::world::{Class, Error};
use async_trait::async_trait;
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Objects between two fsyncs.
const GROUP: usize = 50;
/// Tries when somebody else writes the object at the same time.
const TRIES: usize = 5;

/// Makes the step.
pub fn make(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(params::<Sync>("replay.sync", value)?))
}

#[derive(Deserialize)]
struct Sync {
    changes: Vec<Changed>,
    /// Objects to delete, with their uid on green.
    #[serde(default)]
    prune: BTreeMap<String, String>,
}

/// Changes of one object, as the look at it gave them.
#[derive(Clone, Deserialize)]
struct Changed {
    object: String,
    uid: String,
    /// resourceVersion that was looked at.
    version: String,
    ops: Vec<Op>,
}

/// A progress record.
#[derive(Serialize, Deserialize, Default)]
struct Record {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    changing: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    changed: BTreeMap<String, Done>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deleting: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deleted: Vec<String>,
    /// Taken back again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    restored: Vec<String>,
}

/// What became of one object.
#[derive(Serialize, Deserialize, Default)]
struct Done {
    /// resourceVersion before and after.
    before: String,
    after: String,
    /// Fields that were written.
    fields: Vec<String>,
    /// Fields that were left, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    left: BTreeMap<String, String>,
}

fn log(cx: &Cx, record: Record) -> StepResult<()> {
    cx.log
        .progress(&cx.step, json!(record))
        .map_err(StepError::Journal)
}

fn is_secret(id: &ObjectId) -> bool {
    id.kind == "Secret" && id.api_version == "v1"
}

fn version(object: &Value) -> String {
    object::resource_version(object).unwrap_or_default().into()
}

fn in_data(op: &Op) -> bool {
    op.path.meets(&Path::keys(&["data"]))
}

/// The mark says what was written last (replay.md 14).
fn new_mark(there: &Value, target: &Value) -> Option<Op> {
    object::annotation(there, mark::CONTENT)?;
    Some(Op {
        path: Path::keys(&["metadata", "annotations", mark::CONTENT]),
        value: Some(json!(mark::content(target))),
        was: None,
    })
}

/// Where an operation takes its value from: a Secret's is read on blue now, and stays in memory.
async fn with_values(cx: &Cx, name: &str, id: &ObjectId, ops: &[Op]) -> StepResult<Vec<Op>> {
    if !is_secret(id) || !ops.iter().any(in_data) {
        return Ok(ops.to_vec());
    }
    let live = cx.world.blue.get(&cx.blue_id(name)?).await?;
    let Some(live) = live else {
        // Gone from blue between the look and now: the next look says so.
        return Ok(ops.iter().filter(|op| !in_data(op)).cloned().collect());
    };
    let target = super::replay::secret_of_green(cx, name, &live, &cx.target(name)?)?;
    Ok(ops
        .iter()
        .filter_map(|op| match (&op.value, in_data(op)) {
            (Some(_), true) => op.path.get(&target).map(|v| Op {
                path: op.path.clone(),
                value: Some(v.clone()),
                was: None,
            }),
            _ => Some(op.clone()),
        })
        .collect())
}

/// Writes changes over the object as it was just read. `Conflict` when it is not that any more.
async fn write(green: &dyn Kube, there: &Value, ops: &[Op]) -> crate::world::Result<Value> {
    let managers = Managers::of(there);
    if managers.known() {
        let mut config = managers.ours(there);
        apply_ops(&mut config, ops);
        let answer = apply_over(green, there, &config, ApplyOptions::default()).await?;
        return Ok(answer.object);
    }
    // A server that does not say who holds what: the same by a merge patch.
    let mut wanted = there.clone();
    apply_ops(&mut wanted, ops);
    let mut body = merge_of(there, &wanted);
    body["metadata"]["resourceVersion"] = json!(version(there));
    let id = ObjectId::of(there)
        .ok_or_else(|| Error::new(Class::Internal, "object", "green's object has no name"))?;
    green.merge(&id, &body).await
}

/// The merge patch that makes one object of another; lists are one value.
fn merge_of(from: &Value, to: &Value) -> Value {
    let (Value::Object(a), Value::Object(b)) = (from, to) else {
        return to.clone();
    };
    let mut out = serde_json::Map::new();
    for (key, value) in b {
        match a.get(key) {
            Some(old) if old == value => {}
            Some(old) if old.is_object() && value.is_object() => {
                out.insert(key.clone(), merge_of(old, value));
            }
            _ => {
                out.insert(key.clone(), value.clone());
            }
        }
    }
    for key in a.keys().filter(|k| !b.contains_key(*k)) {
        out.insert(key.clone(), Value::Null);
    }
    Value::Object(out)
}

impl Sync {
    async fn change(cx: &Cx, change: &Changed) -> StepResult<Done> {
        let name = &change.object;
        let id = cx.green_id(name)?;
        let leave_all = |why: &str| {
            let left = change
                .ops
                .iter()
                .map(|op| (op.path.to_string(), why.into()));
            Ok(Done {
                left: left.collect(),
                ..Done::default()
            })
        };
        let ops = with_values(cx, name, &id, &change.ops).await?;
        for _ in 0..TRIES {
            let Some(there) = cx.world.green.get(&id).await? else {
                return leave_all("somebody deleted the object on green");
            };
            if object::uid(&there) != Some(change.uid.as_str()) {
                return leave_all("somebody made the object on green again");
            }
            let managers = Managers::of(&there);
            let (mut todo, mut left) = (vec![], BTreeMap::new());
            for op in &ops {
                let here = op.path.get(&there);
                if here == op.value.as_ref() {
                    continue;
                }
                let as_seen = if is_secret(&id) && in_data(op) {
                    // Its value is not known, only whether anybody else has touched it.
                    change.version == version(&there) || managers.only_ours(&op.path)
                } else {
                    here == op.was.as_ref()
                };
                if as_seen {
                    todo.push(op.clone());
                } else {
                    let who = managers.others(&op.path).join(", ");
                    let by = if who.is_empty() { "somebody" } else { &who };
                    left.insert(op.path.to_string(), format!("changed on green by {by}"));
                }
            }
            let mut done = Done {
                before: version(&there),
                after: version(&there),
                fields: todo.iter().map(|o| o.path.to_string()).collect(),
                left,
            };
            if todo.is_empty() {
                return Ok(done);
            }
            let mut all = todo.clone();
            all.extend(new_mark(&there, &cx.target(name)?));
            match write(cx.world.green.as_ref(), &there, &all).await {
                Ok(now) => {
                    done.after = version(&now);
                    for op in &todo {
                        if op.path.get(&now).is_none() && op.value.is_some() {
                            done.left.insert(
                                op.path.to_string(),
                                "green's server does not keep this field".into(),
                            );
                        }
                    }
                    return Ok(done);
                }
                Err(e) if e.class == Class::Conflict => continue,
                Err(e) => return Err(e.into()),
            }
        }
        Err(busy(name))
    }

    async fn delete(cx: &Cx, name: &str, uid: &str) -> StepResult<()> {
        match cx.world.green.delete(&cx.green_id(name)?, uid).await {
            Ok(()) => Ok(()),
            // Gone, or made again by somebody: nothing of ours is left.
            Err(e) if matches!(e.class, Class::NotFound | Class::Conflict) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Gives back what was written; whether anything was.
    async fn restore(cx: &Cx, change: &Changed) -> StepResult<bool> {
        let id = cx.green_id(&change.object)?;
        for _ in 0..TRIES {
            let Some(there) = cx.world.green.get(&id).await? else {
                return Ok(false);
            };
            if object::uid(&there) != Some(change.uid.as_str()) {
                return Ok(false);
            }
            // What is not as we wrote it any more belongs to whoever changed it.
            let back: Vec<Op> = change
                .ops
                .iter()
                .filter_map(|op| {
                    let here = op.path.get(&there);
                    let value = if is_secret(&id) && in_data(op) {
                        // Its old value is nowhere any more. A key that was taken away comes back empty, so that the object is
                        // whole for the wave that deletes it next.
                        (op.value.is_none() && op.was.is_some() && here.is_none())
                            .then(|| Some(json!("")))?
                    } else {
                        (here == op.value.as_ref() && op.was != op.value).then(|| op.was.clone())?
                    };
                    Some(Op {
                        path: op.path.clone(),
                        value,
                        was: here.cloned(),
                    })
                })
                .collect();
            if back.is_empty() {
                return Ok(false);
            }
            match write(cx.world.green.as_ref(), &there, &back).await {
                Ok(_) => return Ok(true),
                Err(e) if e.class == Class::Conflict => continue,
                Err(e) if e.class == Class::NotFound => return Ok(false),
                Err(e) => return Err(e.into()),
            }
        }
        Err(busy(&change.object))
    }
}

#[async_trait]
impl Step for Sync {
    /// What stood there is in the parameters: the look read it, and the write holds only as long as it stands.
    async fn observe(&self, _: &Cx) -> StepResult<Value> {
        Ok(json!({ "changes": self.changes.len(), "prune": self.prune.len() }))
    }

    async fn apply(&self, cx: &Cx, _: &Value) -> StepResult<Value> {
        let mut done: BTreeMap<String, Done> = BTreeMap::new();
        let mut deleted = vec![];
        for record in cx.log.recorded(&cx.step) {
            let record: Record = recorded(&cx.step, &record)?;
            done.extend(record.changed);
            deleted.extend(record.deleted);
        }
        let todo: Vec<&Changed> = self
            .changes
            .iter()
            .filter(|c| !done.contains_key(&c.object))
            .collect();
        let width = cx
            .plan
            .spec
            .limits
            .write_concurrency
            .unwrap_or(16)
            .clamp(1, 64) as usize;
        for group in todo.chunks(GROUP) {
            log(
                cx,
                Record {
                    changing: group.iter().map(|c| c.object.clone()).collect(),
                    ..Record::default()
                },
            )?;
            let mine: Vec<Changed> = group.iter().copied().cloned().collect();
            let results: Vec<(String, StepResult<Done>)> =
                futures::stream::iter(mine.into_iter().map(|change| async move {
                    let done = Sync::change(cx, &change).await;
                    (change.object, done)
                }))
                .buffer_unordered(width)
                .collect()
                .await;
            let mut changed = BTreeMap::new();
            let mut failed = None;
            for (name, result) in results {
                match result {
                    Ok(one) => {
                        changed.insert(name, one);
                    }
                    Err(e) => failed = failed.or(Some(e)),
                }
            }
            if !changed.is_empty() {
                let record = Record {
                    changed,
                    ..Record::default()
                };
                log(cx, record)?;
            }
            if let Some(e) = failed {
                return Err(e);
            }
        }
        let todo: Vec<(&String, &String)> = self
            .prune
            .iter()
            .filter(|(name, _)| !deleted.contains(name))
            .collect();
        for group in todo.chunks(GROUP) {
            let names: Vec<String> = group.iter().map(|(name, _)| (*name).clone()).collect();
            log(
                cx,
                Record {
                    deleting: names.clone(),
                    ..Record::default()
                },
            )?;
            for (name, uid) in group {
                Self::delete(cx, name, uid).await?;
            }
            log(
                cx,
                Record {
                    deleted: names,
                    ..Record::default()
                },
            )?;
        }
        // What became of each object, for people and for the report.
        let mut left: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        let mut written = 0;
        for record in cx.log.recorded(&cx.step) {
            for (name, one) in recorded::<Record>(&cx.step, &record)?.changed {
                written += usize::from(!one.fields.is_empty());
                if !one.left.is_empty() {
                    left.insert(name, one.left);
                }
            }
        }
        Ok(json!({"changed": written, "deleted": self.prune.len(), "left": left}))
    }

    async fn settle(&self, _: &Cx, _: &Value, _: &Value) -> StepResult<Settle> {
        Ok(Settle::Ready)
    }

    async fn undo(&self, cx: &Cx, _: &Value, _: Option<&Value>) -> StepResult<()> {
        // Only what was begun; values of Secrets were never written down, and the undo of the wave that made the object follows.
        let mut begun = vec![];
        for record in cx.log.recorded(&cx.step) {
            begun.extend(recorded::<Record>(&cx.step, &record)?.changing);
        }
        let mut restored = vec![];
        for change in self.changes.iter().filter(|c| begun.contains(&c.object)) {
            if Self::restore(cx, change).await? {
                restored.push(change.object.clone());
            }
        }
        if restored.is_empty() {
            return Ok(());
        }
        log(
            cx,
            Record {
                restored,
                ..Record::default()
            },
        )
    }
}
