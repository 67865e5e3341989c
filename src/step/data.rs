//! `data.stream` and `data.switch`: rows follow blue to green while both live; behind the fence the direction turns round,
//! and the way back stands before anybody may write on green.

use super::util::{params, refused};
use super::{Cx, Settle, Step, StepError, StepResult};
use crate::object::Side;
use crate::world::{Class, Error};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Makes `data.stream`.
pub fn make_stream(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(Stream(params::<Set>("data.stream", value)?.set)))
}

/// Makes `data.switch`.
pub fn make_switch(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(Switch(params::<Set>("data.switch", value)?.set)))
}

#[derive(Deserialize)]
struct Set {
    set: String,
}

struct Stream(String);
struct Switch(String);

#[async_trait]
impl Step for Stream {
    async fn observe(&self, cx: &Cx) -> StepResult<Value> {
        let green = cx.world.data.state(&self.0, Side::Green).await?;
        Ok(json!({ "green": green }))
    }
    async fn apply(&self, cx: &Cx, _: &Value) -> StepResult<Value> {
        no_stream_back(cx, &self.0).await?;
        cx.world
            .data
            .start_stream(&self.0, Side::Blue, true)
            .await?;
        Ok(json!({ "started_at": cx.world.clock.now() }))
    }
    async fn settle(&self, cx: &Cx, _: &Value, _: &Value) -> StepResult<Settle> {
        let stream = cx.world.data.stream(&self.0, Side::Blue).await?;
        if cx.world.data.probe_write(&self.0, Side::Green).await? {
            return Ok(Settle::Failed {
                why: format!("data set {}: green accepts writes while blue does", self.0),
                remedy: "close green's database for the application's role; resume or roll back"
                    .into(),
            });
        }
        if stream.exists && stream.copied {
            return Ok(Settle::Ready);
        }
        Ok(Settle::Pending {
            why: format!("data set {}: the first copy of all tables", self.0),
            poll: Duration::from_secs(1),
        })
    }
    async fn undo(&self, cx: &Cx, _: &Value, _: Option<&Value>) -> StepResult<()> {
        // The copy on green stays where it is, closed: a later run empties and refills it.
        cx.world.data.stop_stream(&self.0, Side::Blue).await?;
        Ok(())
    }
}

/// A stream from green to blue that an earlier run left behind would carry the emptying of green's old copy to production.
async fn no_stream_back(cx: &Cx, set: &str) -> StepResult<()> {
    let back = cx.world.data.stream(set, Side::Green).await?;
    if !back.exists {
        return Ok(());
    }
    if back.lag_bytes > 0 || cx.world.data.probe_write(set, Side::Green).await? {
        return Err(refused(
            format!("data set {set}"),
            "a stream from green to blue of an earlier run still stands, and green is open or not drained: its rows may be missing on blue",
            "close green, let it drain, compare both sides; then drop the subscription on blue and the publication on green",
        ));
    }
    cx.world.data.stop_stream(set, Side::Green).await?;
    Ok(())
}

impl Switch {
    /// Waits until everything that `from` wrote has arrived on the other side. Both sides are closed, so it ends.
    async fn drain(&self, cx: &Cx, from: Side) -> StepResult<()> {
        for _ in 0..cx.plan.spec.limits.write_closed_seconds.max(10) * 2 {
            if cx.world.data.stream(&self.0, from).await?.lag_bytes == 0 {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        Err(refused(
            format!("data set {}", self.0),
            format!(
                "the stream from {from} did not drain within the declared window though nobody writes"
            ),
            "look at the subscription's log on the receiving server; resume or roll back",
        ))
    }

    /// Row counts and checksums of every table must agree; the names of those that do not are said.
    async fn compare(&self, cx: &Cx) -> StepResult<Value> {
        let blue = cx.world.data.tables(&self.0, Side::Blue).await?;
        let green = cx.world.data.tables(&self.0, Side::Green).await?;
        if blue == green && !blue.is_empty() {
            return Ok(json!(blue));
        }
        let differing: Vec<String> = blue
            .iter()
            .filter(|t| !green.contains(t))
            .map(|t| {
                let there = green
                    .iter()
                    .find(|g| g.name == t.name)
                    .map_or("no such table".to_string(), |g| {
                        format!("{} rows {}", g.rows, g.checksum)
                    });
                format!(
                    "{}: blue {} rows {}, green {there}",
                    t.name, t.rows, t.checksum
                )
            })
            .collect();
        Err(StepError::Refused {
            object: format!("data set {}", self.0),
            why: format!(
                "the comparison found differences: {}",
                if differing.is_empty() {
                    "no tables, or tables on one side only".into()
                } else {
                    differing.join("; ")
                }
            ),
            remedy:
                "writes are still closed on green; roll back to open blue, or repair and resume"
                    .into(),
        })
    }

    async fn both_closed(&self, cx: &Cx) -> StepResult<()> {
        for side in [Side::Blue, Side::Green] {
            if cx.world.data.probe_write(&self.0, side).await? {
                return Err(refused(
                    format!("data set {}", self.0),
                    format!("{side} accepts writes, the fence does not hold"),
                    "close it again before the position is taken; resume",
                ));
            }
        }
        Ok(())
    }

    /// Turns the direction: drained, compared, sequences, old stream gone, new stream up. Idempotent at every boundary.
    async fn turn(&self, cx: &Cx, from: Side) -> StepResult<Value> {
        let to = if from == Side::Blue {
            Side::Green
        } else {
            Side::Blue
        };
        self.both_closed(cx).await?;
        if cx.world.data.stream(&self.0, from).await?.exists {
            self.drain(cx, from).await?;
            self.compare(cx).await?;
            cx.world.data.copy_sequences(&self.0, from).await?;
            // PostgreSQL before 16 cannot tell origins apart: two streams at once would send each row round for ever.
            cx.world.data.stop_stream(&self.0, from).await?;
        }
        let tables = self.compare(cx).await?;
        if !cx.world.data.stream(&self.0, to).await?.exists {
            cx.world.data.start_stream(&self.0, to, false).await?;
        }
        Ok(tables)
    }
}

#[async_trait]
impl Step for Switch {
    async fn observe(&self, cx: &Cx) -> StepResult<Value> {
        self.both_closed(cx).await?;
        Ok(json!({ "tables": cx.world.data.tables(&self.0, Side::Blue).await? }))
    }
    async fn apply(&self, cx: &Cx, _: &Value) -> StepResult<Value> {
        Ok(json!({ "compared": self.turn(cx, Side::Blue).await? }))
    }
    async fn settle(&self, cx: &Cx, _: &Value, _: &Value) -> StepResult<Settle> {
        let reverse = cx.world.data.stream(&self.0, Side::Green).await?;
        if reverse.exists && reverse.copied && reverse.lag_bytes == 0 {
            return Ok(Settle::Ready);
        }
        Ok(Settle::Pending {
            why: format!("data set {}: the reverse stream to catch up", self.0),
            poll: Duration::from_secs(1),
        })
    }
    async fn undo(&self, cx: &Cx, _: &Value, _: Option<&Value>) -> StepResult<()> {
        if cx.world.data.stream(&self.0, Side::Green).await?.exists {
            // What green took since the switch flows back before blue opens: nothing is lost. The stream to green stands again
            // afterwards, as it did before; both sides are equal and closed, so it starts where it is.
            self.turn(cx, Side::Green).await?;
        } else if cx.world.data.probe_write(&self.0, Side::Green).await? {
            return Err(Error::new(
                Class::Refused,
                format!("data set {}", self.0),
                "green accepts writes and no stream brings them back",
            )
            .remedy("close green, copy by hand, then skip this undo")
            .into());
        }
        Ok(())
    }
}
