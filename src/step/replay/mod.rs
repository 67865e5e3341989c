//! `replay.wave`: one wave of objects created on green, parked, journaled in groups; and taken back.
//!
//! | file | what |
//! |---|---|
//! | `items` | which objects, in which order; each is read from the plan when its turn comes |
//! | `look` | what green has already: ours, equal (adopted), or in the way |
//! | `write`, `pace`, `retry` | one stream of requests, as many at once as the server takes well |
//! | `secrets`, `owners`, `ready` | values from blue, uids of owners, backends of webhooks |
//! | `mark`, `record` | what is left on objects and in the journal |
//! | `undo`, `edited`, `strangers` | back: what somebody changed or added is left and named |
//! | `compare` | what was meant against what is there |

pub(crate) mod compare;
pub(crate) mod edited;
mod items;
mod look;
pub(crate) mod mark;
mod owners;
mod pace;
mod ready;
mod record;
mod retry;
mod secrets;
mod strangers;
mod undo;
mod write;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use self::items::after;
pub(super) use self::secrets::with_values as secret_of_green;

use self::items::{Items, Wave, id_of};
use self::pace::Learned;
use self::retry::Shared;
use super::util::{at, params};
use super::{Cx, Settle, Step, StepResult};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::time::Duration;

/// Makes the step.
pub fn make(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(params::<Wave>("replay.wave", value)?))
}

/// The pace of a wave: bounded by the spec, beginning where the wave before ended.
fn shared(cx: &Cx, after: Option<&Value>) -> Shared {
    let learned =
        |after: &Value| serde_json::from_value::<Learned>(after.get("pace")?.clone()).ok();
    let outputs = cx.outputs.read().unwrap_or_else(|p| p.into_inner());
    let last = cx
        .plan
        .steps
        .iter()
        .take_while(|s| s.id != cx.step)
        .filter_map(|s| learned(outputs.get(&s.id)?))
        .last();
    Shared::new(
        cx.plan.spec.limits.write_concurrency,
        after.and_then(learned).or(last),
    )
}

#[async_trait]
impl Step for Wave {
    async fn observe(&self, cx: &Cx) -> StepResult<Value> {
        Ok(json!(look::look(&Items::new(cx, self)?, cx).await?))
    }

    async fn apply(&self, cx: &Cx, before: &Value) -> StepResult<Value> {
        let before = record::before(cx, before)?;
        write::write(&Items::new(cx, self)?, cx, &before, &shared(cx, None)).await
    }

    async fn settle(&self, cx: &Cx, _: &Value, _: &Value) -> StepResult<Settle> {
        let items = Items::new(cx, self)?;
        let mut definitions = false;
        for n in items.order() {
            let name = items.name(*n);
            if !name.starts_with("customresourcedefinition/") {
                continue;
            }
            definitions = true;
            let id = id_of(name, &items.planned(*n)?.target)?;
            let there = cx.world.green.get(&id).await?.unwrap_or_default();
            let established = at(&there, "/status/conditions")
                .as_array()
                .into_iter()
                .flatten()
                .any(|c| c["type"] == "Established" && c["status"] == "True");
            if !established {
                return Ok(Settle::Pending {
                    why: format!("{name} to be established"),
                    poll: Duration::from_millis(200),
                });
            }
        }
        if definitions {
            // What they define is served now.
            cx.world.green.kinds(true).await?;
        }
        Ok(Settle::Ready)
    }

    async fn undo(&self, cx: &Cx, before: &Value, after: Option<&Value>) -> StepResult<()> {
        let before = record::before(cx, before)?;
        undo::undo(&Items::new(cx, self)?, cx, &before, &shared(cx, after)).await
    }

    async fn undone(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<Settle> {
        let before = record::before(cx, before)?;
        undo::undone(&Items::new(cx, self)?, cx, &before).await
    }
}
