//! `unpark`: wakes parked workloads of green: at blue's live size in phase unpark, singletons and cron jobs in phase open.

use super::util::{
    Expect, active_jobs, at, at_size, must_get, params, pods_of, recorded, refused, set,
};
use super::{Cx, Settle, Step, StepResult};
use crate::plan::model::Park;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Makes the step.
pub fn make(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(params::<Unpark>("unpark", value)?))
}

#[derive(Deserialize)]
struct Unpark {
    objects: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Awake {
    /// Field that parks.
    field: String,
    /// Value while parked.
    parked: Value,
    /// Value to wake up with.
    awake: Value,
}

fn park(cx: &Cx, object: &str) -> StepResult<Park> {
    cx.verdict(object)?
        .park
        .ok_or_else(|| refused(object, "the plan does not park it", "make the plan again"))
}

#[async_trait]
impl Step for Unpark {
    async fn observe(&self, cx: &Cx) -> StepResult<Value> {
        let mut before = BTreeMap::new();
        for object in &self.objects {
            let park = park(cx, object)?;
            let green = must_get(cx.world.green.as_ref(), &cx.green_id(object)?).await?;
            // Live size, not the plan's: an HPA may have moved it since (replay.md 50). What wakes at open was stopped on
            // blue by the freeze, so there the plan's value is the true one.
            let awake = if park.wakes == "unpark" {
                let blue = must_get(cx.world.blue.as_ref(), &cx.blue_id(object)?).await?;
                match at(&blue, &park.field) {
                    Value::Null => park.value.clone(),
                    live => live.clone(),
                }
            } else {
                park.value.clone()
            };
            before.insert(
                object.clone(),
                Awake {
                    field: park.field.clone(),
                    parked: at(&green, &park.field).clone(),
                    awake,
                },
            );
        }
        Ok(json!(before))
    }

    async fn apply(&self, cx: &Cx, before: &Value) -> StepResult<Value> {
        let before: BTreeMap<String, Awake> = recorded(&cx.step, before)?;
        for (object, awake) in &before {
            set(
                cx.world.green.as_ref(),
                &cx.green_id(object)?,
                &awake.field,
                Expect::Value(&awake.parked),
                &awake.awake,
            )
            .await?;
        }
        Ok(json!({ "woken": before.len() }))
    }

    async fn settle(&self, cx: &Cx, before: &Value, _: &Value) -> StepResult<Settle> {
        let before: BTreeMap<String, Awake> = recorded(&cx.step, before)?;
        for (object, _) in before.iter().filter(|(_, a)| a.field == "/spec/replicas") {
            let green = must_get(cx.world.green.as_ref(), &cx.green_id(object)?).await?;
            if let Err(why) = at_size(&green) {
                return Ok(Settle::Pending {
                    why: format!("{object} on green: {why}"),
                    poll: Duration::from_secs(1),
                });
            }
        }
        Ok(Settle::Ready)
    }

    async fn undo(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<()> {
        let before: BTreeMap<String, Awake> = recorded(&cx.step, before)?;
        for (object, awake) in &before {
            // Parked is always the safe state, whatever an autoscaler or a person made of the size meanwhile.
            set(
                cx.world.green.as_ref(),
                &cx.green_id(object)?,
                &awake.field,
                Expect::Anything,
                &awake.parked,
            )
            .await?;
        }
        Ok(())
    }

    async fn undone(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<Settle> {
        let before: BTreeMap<String, Awake> = recorded(&cx.step, before)?;
        let green = cx.world.green.as_ref();
        for (object, awake) in &before {
            let workload = must_get(green, &cx.green_id(object)?).await?;
            // Proof of stop, or blue's copy would run beside it (reversibility.md 3.2.15).
            let left = match awake.field.as_str() {
                "/spec/suspend" => active_jobs(green, &workload).await?,
                _ if awake.parked == json!(0) => pods_of(green, &workload).await?.len(),
                _ => 0,
            };
            if left > 0 {
                return Ok(Settle::Pending {
                    why: format!("{left} of {object} on green to end"),
                    poll: Duration::from_secs(1),
                });
            }
        }
        Ok(Settle::Ready)
    }
}
