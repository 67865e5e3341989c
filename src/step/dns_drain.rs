//! `dns.drain`: lets resolvers and clients forget where the names pointed before, on the way there or on the way back.
//!
//! While caches still send some clients to the side that was left, that side must answer reads, and writes must be open on neither: so the
//! step stands between the last handover and the opening of green, and (direction `back`) between the first handover and everything of blue that was
//! stopped before it (reversibility.md 3.2.4).

use super::util::{params, recorded};
use super::{Cx, Settle, Step, StepError, StepResult};
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// Makes the step.
pub fn make(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(params::<Drain>("dns.drain", value)?))
}

#[derive(Deserialize)]
struct Drain {
    /// Seconds after which caches count as empty: never less than the largest TTL in force.
    seconds: u32,
    /// On the way there or on the way back.
    direction: Direction,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Direction {
    There,
    Back,
}

#[derive(Serialize, Deserialize)]
struct After {
    at: Timestamp,
}

/// Progress of an undo; `of` ties it to one application, so that a second migration of the same run waits anew.
#[derive(Serialize, Deserialize)]
struct Undo {
    of: Timestamp,
    since: Timestamp,
}

impl Drain {
    fn left(&self, cx: &Cx, since: Timestamp) -> Settle {
        // Never less than what was really served: somebody's ExternalDNS may have put a lowered TTL back in the days between.
        let seconds = self.seconds.max(super::handover::longest_ttl(
            cx,
            self.direction == Direction::Back,
        ));
        let until = since + SignedDuration::from_secs(i64::from(seconds));
        let left = until.duration_since(cx.world.clock.now()).as_secs_f64();
        if left <= 0.0 {
            return Settle::Ready;
        }
        Settle::Pending {
            why: format!(
                "caches to forget the side that was left, {seconds} s{}",
                super::util::hours(left as i64)
            ),
            poll: Duration::from_secs_f64(left.clamp(0.5, 30.0)),
        }
    }

    fn undo_since(cx: &Cx, of: Timestamp) -> StepResult<Option<Timestamp>> {
        for record in cx.log.recorded(&cx.step).iter().rev() {
            let undo: Undo = recorded(&cx.step, record)?;
            if undo.of == of {
                return Ok(Some(undo.since));
            }
        }
        Ok(None)
    }
}

#[async_trait]
impl Step for Drain {
    async fn observe(&self, _: &Cx) -> StepResult<Value> {
        Ok(json!({}))
    }
    async fn apply(&self, cx: &Cx, _: &Value) -> StepResult<Value> {
        Ok(json!(After {
            at: cx.world.clock.now()
        }))
    }
    async fn settle(&self, cx: &Cx, _: &Value, after: &Value) -> StepResult<Settle> {
        if self.direction == Direction::Back {
            return Ok(Settle::Ready);
        }
        let After { at } = recorded(&cx.step, after)?;
        Ok(self.left(cx, at))
    }
    async fn undo(&self, cx: &Cx, _: &Value, after: Option<&Value>) -> StepResult<()> {
        let (Direction::Back, Some(after)) = (&self.direction, after) else {
            return Ok(());
        };
        let After { at } = recorded(&cx.step, after)?;
        if Self::undo_since(cx, at)?.is_none() {
            let undo = Undo {
                of: at,
                since: cx.world.clock.now(),
            };
            cx.log
                .progress(&cx.step, json!(undo))
                .map_err(StepError::Journal)?;
        }
        Ok(())
    }
    async fn undone(&self, cx: &Cx, _: &Value, after: Option<&Value>) -> StepResult<Settle> {
        let (Direction::Back, Some(after)) = (&self.direction, after) else {
            return Ok(Settle::Ready);
        };
        let After { at } = recorded(&cx.step, after)?;
        Ok(match Self::undo_since(cx, at)? {
            Some(since) => self.left(cx, since),
            None => Settle::Ready,
        })
    }
}
