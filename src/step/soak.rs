//! `soak.watch`: a gate on numbers. For its whole time every host must resolve to green and answer.

use super::probe_hosts::ask;
use super::util::{params, recorded};
use super::{Cx, Settle, Step, StepResult};
use crate::world::probe::Via;
use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

/// Makes the step.
pub fn make(value: &Value) -> Result<Box<dyn Step>, String> {
    let p: Params = params("soak.watch", value)?;
    Ok(Box::new(Soak {
        hosts: p.hosts,
        seconds: p.seconds,
        part: p.part,
        watch: Mutex::new(Watch::default()),
    }))
}

#[derive(Deserialize)]
struct Params {
    hosts: Vec<String>,
    seconds: u32,
    /// A gate between two waves: only these hosts must be green's at its end.
    #[serde(default)]
    part: bool,
}

struct Soak {
    hosts: Vec<String>,
    seconds: u32,
    part: bool,
    watch: Mutex<Watch>,
}

/// What this process has seen. Not journaled: after a restart the watch begins anew, which is the safe side.
#[derive(Default)]
struct Watch {
    errors_in_a_row: BTreeMap<String, u32>,
    /// Since when every host has answered.
    clean_since: Option<Timestamp>,
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
        let After { since } = recorded(&cx.step, after)?;
        let mut bad = vec![];
        for host in &self.hosts {
            match ask(cx, host, Via::Dns).await {
                Ok(answer) if answer.status < 500 => {}
                Ok(answer) => bad.push((host, format!("{host} answers {}", answer.status))),
                Err(e) => bad.push((host, format!("{host}: {}", e.message))),
            }
        }
        let now = cx.world.clock.now();
        let (clean_since, lasting) = {
            let mut watch = self.watch.lock().unwrap_or_else(|p| p.into_inner());
            watch
                .errors_in_a_row
                .retain(|h, _| bad.iter().any(|(host, _)| *host == h));
            for (host, _) in &bad {
                *watch.errors_in_a_row.entry((*host).clone()).or_default() += 1;
            }
            let clean = if bad.is_empty() {
                watch.clean_since.unwrap_or(since)
            } else {
                now
            };
            watch.clean_since = Some(clean);
            let lasting = watch.errors_in_a_row.values().any(|n| *n >= 3);
            (clean, lasting)
        };
        if let Some((_, why)) = bad.first() {
            if lasting {
                return Ok(Settle::Failed {
                    why: format!("soak: {why}, three times in a row"),
                    remedy: "look at green; roll back, or cure it and resume".into(),
                });
            }
            return Ok(Settle::Pending {
                why: why.clone(),
                poll: Duration::from_secs(1),
            });
        }
        let watched = now.duration_since(clean_since).as_secs();
        if watched < i64::from(self.seconds) {
            return Ok(Settle::Pending {
                why: format!("soak: {watched} of {} s without an error", self.seconds),
                poll: Duration::from_secs(u64::from(self.seconds / 20).clamp(1, 30)),
            });
        }
        super::edns::still_stopped(cx).await?;
        let mut lost = super::handover::not_handed_over(cx).await?;
        if self.part {
            // A held name waits for the last step of the cutover.
            let held = super::handover::held(cx);
            lost.retain(|h| self.hosts.contains(h) && !held.contains(h));
        }
        if lost.is_empty() {
            return Ok(Settle::Ready);
        }
        Ok(Settle::Failed {
            why: format!(
                "soak: these names are not green's any more: {}",
                lost.join(", ")
            ),
            remedy:
                "find the other writer of the zone; roll back the cutover, or repair and resume"
                    .into(),
        })
    }
    async fn undo(&self, _: &Cx, _: &Value, _: Option<&Value>) -> StepResult<()> {
        Ok(())
    }
}
