//! `soak.watch`: a gate on numbers. For its whole time every host must resolve to green and answer.

use super::probe_hosts::ask;
use super::util::{params, recorded};
use super::{Cx, Settle, Step, StepResult};
use crate::world::probe::Via;
use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Makes the step.
pub fn make(value: &Value) -> Result<Box<dyn Step>, String> {
    let p: Params = params("soak.watch", value)?;
    Ok(Box::new(Soak {
        hosts: p.hosts,
        seconds: p.seconds,
        errors_in_a_row: AtomicU32::new(0),
    }))
}

#[derive(Deserialize)]
struct Params {
    hosts: Vec<String>,
    seconds: u32,
}

struct Soak {
    hosts: Vec<String>,
    seconds: u32,
    errors_in_a_row: AtomicU32,
}

#[derive(Serialize, Deserialize)]
struct After {
    since: Timestamp,
}

#[async_trait]
impl Step for Soak {
    async fn observe(&self, _: &Cx) -> StepResult<Value> {
        Ok(json!({}))
    }
    async fn apply(&self, cx: &Cx, _: &Value) -> StepResult<Value> {
        Ok(json!(After {
            since: cx.world.clock.now()
        }))
    }
    async fn settle(&self, cx: &Cx, _: &Value, after: &Value) -> StepResult<Settle> {
        let after: After = recorded(&cx.step, after)?;
        for host in &self.hosts {
            let bad = match ask(cx, host, Via::Dns).await {
                Ok(answer) if answer.status < 500 => None,
                Ok(answer) => Some(format!("{host} answers {}", answer.status)),
                Err(e) => Some(format!("{host}: {}", e.message)),
            };
            match bad {
                None => self.errors_in_a_row.store(0, Ordering::Relaxed),
                Some(why) if self.errors_in_a_row.fetch_add(1, Ordering::Relaxed) >= 2 => {
                    return Ok(Settle::Failed {
                        why: format!("soak: {why}, three times in a row"),
                        remedy: "look at green; roll back, or cure it and resume".into(),
                    });
                }
                Some(why) => {
                    return Ok(Settle::Pending {
                        why,
                        poll: Duration::from_secs(1),
                    });
                }
            }
        }
        let watched = cx.world.clock.now().duration_since(after.since).as_secs();
        if watched >= i64::from(self.seconds) {
            return Ok(Settle::Ready);
        }
        Ok(Settle::Pending {
            why: format!("soak: {watched} of {} s without an error", self.seconds),
            poll: Duration::from_secs(u64::from(self.seconds / 20).clamp(1, 30)),
        })
    }
    async fn undo(&self, _: &Cx, _: &Value, _: Option<&Value>) -> StepResult<()> {
        Ok(())
    }
}
