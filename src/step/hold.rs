//! `freeze.hold`: fields of blue's objects that keep something from acting while blue is being left: GitOps reconcilers that would undo every
//! other hold (replay.md 70), KEDA's scalers (50), the reclaim policy of volumes (54). What was there is in the journal, and comes back exactly.

use super::pods::active_jobs;
use super::util::{Expect, at, params, recorded, set};
use super::{Cx, Settle, Step, StepResult};
use crate::object::ObjectId;
use crate::world::Class;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Makes the step.
pub fn make(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(params::<Holds>("freeze.hold", value)?))
}

#[derive(Deserialize)]
struct Holds {
    holds: Vec<Hold>,
}

/// What is written into one object of blue.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Hold {
    /// The object, in the version in which it was read.
    pub id: ObjectId,
    /// Value by JSON pointer; `null` takes the field away.
    pub set: BTreeMap<String, Value>,
}

/// Values of before, by object and pointer.
type Before = BTreeMap<String, BTreeMap<String, Value>>;

impl Holds {
    /// Those that were there when the step began, in order.
    fn held<'a>(
        &'a self,
        before: &'a Before,
    ) -> impl DoubleEndedIterator<Item = (&'a Hold, &'a BTreeMap<String, Value>)> {
        self.holds
            .iter()
            .filter_map(|h| Some((h, before.get(&h.id.to_string())?)))
    }
}

/// What a reconciler still does, although it is held: it ends what it has begun.
async fn still_works(cx: &Cx, id: &ObjectId, object: &Value) -> StepResult<Option<String>> {
    let condition = |kind: &str| {
        at(object, "/status/conditions")
            .as_array()
            .into_iter()
            .flatten()
            .any(|c| c["type"] == kind && c["status"] == "True")
    };
    let flux = id.group().ends_with("toolkit.fluxcd.io");
    if flux && condition("Reconciling") {
        return Ok(Some("to end the reconciliation that it has begun".into()));
    }
    if at(object, "/status/operationState/phase") == "Running" {
        return Ok(Some("to end the sync that it has begun".into()));
    }
    if id.kind == "ScaledJob" {
        let left = active_jobs(cx.world.blue.as_ref(), object).await?;
        if left > 0 {
            return Ok(Some(format!("to end {left} of its jobs")));
        }
    }
    Ok(None)
}

#[async_trait]
impl Step for Holds {
    async fn observe(&self, cx: &Cx) -> StepResult<Value> {
        let mut before = Before::new();
        for hold in &self.holds {
            let blue = match cx.world.blue.get(&hold.id).await {
                Ok(Some(blue)) => blue,
                // Deleted since the plan: nothing to hold.
                Ok(None) => continue,
                Err(e) if e.class == Class::NotFound => continue,
                Err(e) => return Err(e.into()),
            };
            let was = hold
                .set
                .keys()
                .map(|pointer| (pointer.clone(), at(&blue, pointer).clone()))
                .collect();
            before.insert(hold.id.to_string(), was);
        }
        Ok(json!(before))
    }

    async fn apply(&self, cx: &Cx, before: &Value) -> StepResult<Value> {
        let before: Before = recorded(&cx.step, before)?;
        for (hold, was) in self.held(&before) {
            for (pointer, value) in &hold.set {
                let expected = was.get(pointer).unwrap_or(&Value::Null);
                set(
                    cx.world.blue.as_ref(),
                    &hold.id,
                    pointer,
                    Expect::Value(expected),
                    value,
                )
                .await?;
            }
        }
        Ok(json!({ "held": before.len() }))
    }

    async fn settle(&self, cx: &Cx, before: &Value, _: &Value) -> StepResult<Settle> {
        let before: Before = recorded(&cx.step, before)?;
        for (hold, _) in self.held(&before) {
            let Some(blue) = cx.world.blue.get(&hold.id).await? else {
                continue;
            };
            let lifted = hold
                .set
                .iter()
                .find(|(pointer, value)| at(&blue, pointer) != *value);
            if let Some((pointer, _)) = lifted {
                return Ok(Settle::Failed {
                    why: format!("{} on blue was released again by somebody: {pointer} is {}", hold.id, at(&blue, pointer)),
                    remedy: "find what writes it (an app of apps, an ApplicationSet, a person) and pause that; then resume".into(),
                });
            }
            if let Some(what) = still_works(cx, &hold.id, &blue).await? {
                return Ok(Settle::Pending {
                    why: format!("{} on blue {what}", hold.id),
                    poll: Duration::from_secs(1),
                });
            }
        }
        Ok(Settle::Ready)
    }

    async fn undo(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<()> {
        let before: Before = recorded(&cx.step, before)?;
        for (hold, was) in self.held(&before).rev() {
            for (pointer, value) in &hold.set {
                let old = was.get(pointer).unwrap_or(&Value::Null);
                set(
                    cx.world.blue.as_ref(),
                    &hold.id,
                    pointer,
                    Expect::Value(value),
                    old,
                )
                .await?;
            }
        }
        Ok(())
    }
}
