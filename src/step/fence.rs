//! `fence.close` and `fence.open`: who may write. At every moment at most one side can, and the order is always close, prove, then open.

use super::util::{params, recorded, refused};
use super::{Cx, Settle, Step, StepResult};
use crate::object::Side;
use crate::world::probe::{HttpProbe, Via};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Makes `fence.close`: writes are closed on blue.
pub fn make_close(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(Close(params::<Sets>("fence.close", value)?.sets)))
}

/// Makes `fence.open`: writes are opened on green.
pub fn make_open(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(Open(params::<Sets>("fence.open", value)?.sets)))
}

#[derive(Deserialize)]
struct Sets {
    sets: Vec<String>,
}

struct Close(Vec<String>);
struct Open(Vec<String>);

fn other(side: Side) -> Side {
    match side {
        Side::Blue => Side::Green,
        Side::Green => Side::Blue,
    }
}

/// Opens one side after proving that the other is closed.
async fn open(cx: &Cx, set: &str, side: Side) -> StepResult<()> {
    if cx.world.data.probe_write(set, other(side)).await? {
        return Err(refused(
            format!("data set {set}"),
            format!(
                "{} still accepts writes, so {side} must not be opened",
                other(side)
            ),
            format!("close {} first, or find who opened it", other(side)),
        ));
    }
    cx.world.data.set_writable(set, side, true).await?;
    Ok(())
}

/// Whether a side is proven closed: the database refuses a write of the application's role, no session of it can still commit one,
/// and the company's front door refuses as well.
async fn proven_closed(cx: &Cx, set: &str, side: Side) -> StepResult<Settle> {
    if cx.world.data.probe_write(set, side).await? {
        return Ok(Settle::Failed {
            why: format!("data set {set}: {side} accepted a write behind the fence"),
            remedy: "find what opened it; writes stay closed elsewhere; resume or roll back".into(),
        });
    }
    let Some(probe) = cx
        .plan
        .spec
        .data
        .iter()
        .find(|d| d.name == set)
        .and_then(|d| d.write_probe.clone())
    else {
        return Ok(Settle::Ready);
    };
    let request = HttpProbe {
        method: probe.method,
        host: probe.host.clone(),
        path: probe.path,
        body: probe.body,
        via: Via::Dns,
    };
    match cx.world.probe.http(&request).await {
        Ok(answer) if answer.status < 400 => Ok(Settle::Failed {
            why: format!("data set {set}: a write through {} was accepted (HTTP {}) behind the fence", probe.host, answer.status),
            remedy: "that write went to a store which is not fenced: find which, declare it; resume or roll back".into(),
        }),
        Ok(_) => Ok(Settle::Ready),
        Err(e) if e.is_transient() => Ok(Settle::Pending { why: format!("the write probe through {}: {}", probe.host, e.message), poll: Duration::from_secs(1) }),
        Err(e) => Err(e.into()),
    }
}

#[async_trait]
impl Step for Close {
    async fn observe(&self, cx: &Cx) -> StepResult<Value> {
        for set in &self.0 {
            if cx.world.data.probe_write(set, Side::Green).await? {
                return Err(refused(
                    format!("data set {set}"),
                    "green accepts writes already",
                    "close green's database for the application's role first",
                ));
            }
            let mut stream = cx.world.data.stream(set, Side::Blue).await?;
            // While blue writes, a receiver that follows is behind now and then, but it gains ground between two looks; a broken one
            // never does, and closing over it would keep both sides closed for nothing.
            let mut follows = stream.lag_bytes == 0;
            for _ in 0..20 {
                if follows || !(stream.exists && stream.copied) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(700)).await;
                let now = cx.world.data.stream(set, Side::Blue).await?;
                follows = now.lag_bytes == 0 || now.lag_bytes < stream.lag_bytes;
                stream = now;
            }
            if stream.exists && !follows {
                return Err(refused(
                    format!("data set {set}"),
                    format!(
                        "green's copy is {} bytes behind and does not catch up; writes stay open",
                        stream.lag_bytes
                    ),
                    "look at the subscription's log on green's database (a changed table on blue?); repair, then resume",
                ));
            }
            if !(stream.exists && stream.copied) {
                return Err(refused(
                    format!("data set {set}"),
                    "its copy to green is not complete",
                    "wait for it, or look at the subscription on green",
                ));
            }
        }
        Ok(json!({ "owner": "blue" }))
    }
    async fn apply(&self, cx: &Cx, _: &Value) -> StepResult<Value> {
        for set in &self.0 {
            cx.world.data.set_writable(set, Side::Blue, false).await?;
        }
        Ok(json!({ "owner": "nobody", "closed_at": cx.world.clock.now() }))
    }
    async fn settle(&self, cx: &Cx, _: &Value, _: &Value) -> StepResult<Settle> {
        for set in &self.0 {
            match proven_closed(cx, set, Side::Blue).await? {
                Settle::Ready => {}
                other => return Ok(other),
            }
        }
        Ok(Settle::Ready)
    }
    async fn undo(&self, cx: &Cx, _: &Value, _: Option<&Value>) -> StepResult<()> {
        for set in &self.0 {
            open(cx, set, Side::Blue).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Step for Open {
    async fn observe(&self, cx: &Cx) -> StepResult<Value> {
        for set in &self.0 {
            // The way back must stand before the first write on green (reversibility.md 3.2.1, vitess 16794).
            let reverse = cx.world.data.stream(set, Side::Green).await?;
            if !reverse.exists {
                return Err(refused(
                    format!("data set {set}"),
                    "the reverse stream from green to blue is not running",
                    "without it a rollback would lose writes; resume the data phase",
                ));
            }
        }
        Ok(json!({ "owner": "nobody" }))
    }
    async fn apply(&self, cx: &Cx, _: &Value) -> StepResult<Value> {
        for set in &self.0 {
            // Between the switch and now nobody may have written; a hand that lifted the fence for a moment shows here.
            if !cx.world.data.probe_write(set, Side::Green).await?
                && cx.world.data.tables(set, Side::Blue).await?
                    != cx.world.data.tables(set, Side::Green).await?
            {
                return Err(refused(
                    format!("data set {set}"),
                    "blue and green differ though both are closed: somebody wrote behind the fence",
                    "roll back (blue keeps what it has), or bring both to the same rows and resume",
                ));
            }
            open(cx, set, Side::Green).await?;
        }
        Ok(json!({ "owner": "green", "opened_at": cx.world.clock.now() }))
    }
    async fn settle(&self, cx: &Cx, _: &Value, _: &Value) -> StepResult<Settle> {
        for set in &self.0 {
            if !cx.world.data.probe_write(set, Side::Green).await? {
                return Ok(Settle::Pending {
                    why: format!("data set {set}: green to accept writes"),
                    poll: Duration::from_secs(1),
                });
            }
        }
        Ok(Settle::Ready)
    }
    async fn undo(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<()> {
        let _: Value = recorded(&cx.step, before)?;
        for set in &self.0 {
            cx.world.data.set_writable(set, Side::Green, false).await?;
        }
        Ok(())
    }
    async fn undone(&self, cx: &Cx, _: &Value, _: Option<&Value>) -> StepResult<Settle> {
        for set in &self.0 {
            match proven_closed(cx, set, Side::Green).await? {
                Settle::Ready => {}
                other => return Ok(other),
            }
        }
        Ok(Settle::Ready)
    }
}
