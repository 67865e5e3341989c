//! `freeze.cron` and `freeze.singletons`: what must never run twice stops on blue, with proof, before green's copy may start.

use super::pods::{active_jobs, at_size, pods_of};
use super::util::{Expect, at, must_get, params, recorded, set};
use super::{Cx, Settle, Step, StepResult};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Makes `freeze.cron`.
pub fn make_cron(value: &Value) -> Result<Box<dyn Step>, String> {
    let objects = params::<Objects>("freeze.cron", value)?.objects;
    Ok(Box::new(Freeze {
        objects,
        field: "/spec/suspend",
        stopped: json!(true),
    }))
}

/// Makes `freeze.singletons`.
pub fn make_singletons(value: &Value) -> Result<Box<dyn Step>, String> {
    let objects = params::<Objects>("freeze.singletons", value)?.objects;
    Ok(Box::new(Freeze {
        objects,
        field: "/spec/replicas",
        stopped: json!(0),
    }))
}

#[derive(Deserialize)]
struct Objects {
    objects: Vec<String>,
}

struct Freeze {
    objects: Vec<String>,
    field: &'static str,
    stopped: Value,
}

#[async_trait]
impl Step for Freeze {
    async fn observe(&self, cx: &Cx) -> StepResult<Value> {
        let mut before = BTreeMap::new();
        for object in &self.objects {
            let blue = must_get(cx.world.blue.as_ref(), &cx.blue_id(object)?).await?;
            before.insert(object.clone(), at(&blue, self.field).clone());
        }
        Ok(json!(before))
    }

    async fn apply(&self, cx: &Cx, before: &Value) -> StepResult<Value> {
        let before: BTreeMap<String, Value> = recorded(&cx.step, before)?;
        for (object, value) in &before {
            set(
                cx.world.blue.as_ref(),
                &cx.blue_id(object)?,
                self.field,
                Expect::Value(value),
                &self.stopped,
            )
            .await?;
        }
        // What wakes on green at open wakes as it was here at this moment, not as it was when the plan was made.
        Ok(json!({ "stopped": before.len(), "was": before }))
    }

    async fn settle(&self, cx: &Cx, before: &Value, _: &Value) -> StepResult<Settle> {
        let before: BTreeMap<String, Value> = recorded(&cx.step, before)?;
        for object in before.keys() {
            let blue = must_get(cx.world.blue.as_ref(), &cx.blue_id(object)?).await?;
            if at(&blue, self.field) != &self.stopped {
                // An operator or GitOps lifted the hold by itself (reversibility.md 3.2.2).
                return Ok(Settle::Failed {
                    why: format!("{object} was started again by somebody: {} is {}", self.field, at(&blue, self.field)),
                    remedy: "find what starts it (GitOps, an operator, a person) and pause that; then resume".into(),
                });
            }
            let left = if self.field == "/spec/suspend" {
                active_jobs(cx.world.blue.as_ref(), &blue).await?
            } else {
                pods_of(cx.world.blue.as_ref(), &blue).await?.len()
            };
            if left > 0 {
                return Ok(Settle::Pending {
                    why: format!("{left} of {object} on blue to end"),
                    poll: Duration::from_secs(1),
                });
            }
        }
        Ok(Settle::Ready)
    }

    async fn undo(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<()> {
        let before: BTreeMap<String, Value> = recorded(&cx.step, before)?;
        for (object, value) in &before {
            set(
                cx.world.blue.as_ref(),
                &cx.blue_id(object)?,
                self.field,
                Expect::Value(&self.stopped),
                value,
            )
            .await?;
        }
        Ok(())
    }

    async fn undone(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<Settle> {
        let before: BTreeMap<String, Value> = recorded(&cx.step, before)?;
        if self.field != "/spec/replicas" {
            return Ok(Settle::Ready);
        }
        for object in before.keys() {
            let blue = must_get(cx.world.blue.as_ref(), &cx.blue_id(object)?).await?;
            if let Err(why) = at_size(&blue) {
                return Ok(Settle::Pending {
                    why: format!("{object} on blue: {why}"),
                    poll: Duration::from_secs(1),
                });
            }
        }
        Ok(Settle::Ready)
    }
}
