//! `access.assume` and `access.prove`: people get into green, not only the run. Both write nothing.
//!
//! The first asks in preflight whether the caller can act as each admin role at all: when not, the run stops before anything is made. The
//! second shows green a token of each, after the entries stand and before anything else is built on them.

use super::util::params;
use super::{Cx, Settle, Step, StepResult};
use crate::world::kube::Admission;
use crate::world::{Class, Error};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// An entry that is not in force by then is not: EKS takes seconds (eks.md 1.4).
const PATIENCE_S: i64 = 180;
const POLL: Duration = Duration::from_secs(3);

#[derive(Deserialize)]
struct Principals {
    principals: Vec<String>,
}

/// Makes the step of preflight.
pub fn make_assume(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(Assume(params("access.assume", value)?)))
}

/// Makes the step of provision.
pub fn make_prove(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(Prove(params("access.prove", value)?)))
}

struct Assume(Principals);

#[async_trait]
impl Step for Assume {
    async fn observe(&self, cx: &Cx) -> StepResult<Value> {
        for p in &self.0.principals {
            if let Some(why) = cx.world.cloud.assumable(p).await? {
                // Who may not is told as everywhere, with its exit code: a right is missing, nothing is wrong with the plan.
                return Err(Error::new(
                    Class::Unauthorized,
                    format!("access-proof/{p}"),
                    format!("the caller cannot act as this admin, so nobody could prove that it gets into green: {why}"),
                )
                .remedy(format!(
                    "let the caller do sts:AssumeRole on {p} (in its trust policy and in the caller's own; `crossfade policy` prints that), or take its proof out of the run by a waiver of IAM-07 for the object access-proof/{p}, with the reason; then plan and review again. Nothing was written"
                ))
                .into());
            }
        }
        Ok(json!({ "principals": self.0.principals }))
    }

    async fn apply(&self, _: &Cx, _: &Value) -> StepResult<Value> {
        Ok(json!({}))
    }

    async fn settle(&self, _: &Cx, _: &Value, _: &Value) -> StepResult<Settle> {
        Ok(Settle::Ready)
    }

    async fn undo(&self, _: &Cx, _: &Value, _: Option<&Value>) -> StepResult<()> {
        Ok(())
    }
}

struct Prove(Principals);

#[derive(Serialize, Deserialize)]
struct Since {
    /// When waiting began, seconds since 1970.
    since: i64,
}

#[async_trait]
impl Step for Prove {
    async fn observe(&self, _: &Cx) -> StepResult<Value> {
        Ok(json!({ "principals": self.0.principals }))
    }

    async fn apply(&self, cx: &Cx, _: &Value) -> StepResult<Value> {
        Ok(json!(Since {
            since: cx.world.clock.now().as_second()
        }))
    }

    async fn settle(&self, cx: &Cx, _: &Value, after: &Value) -> StepResult<Settle> {
        let since = after["since"].as_i64().unwrap_or(0);
        let waited = cx.world.clock.now().as_second() - since;
        for p in &self.0.principals {
            let why = match cx.world.green.admits(p).await? {
                Admission::In { admin: true, .. } => continue,
                Admission::In {
                    username, groups, ..
                } => format!(
                    "green knows {p} as {username} (groups {}), and does not let it do everything",
                    if groups.is_empty() {
                        "none".into()
                    } else {
                        groups.join(", ")
                    }
                ),
                Admission::Refused(words) => format!("green does not let {p} in: {words}"),
                Admission::Unproven(why) => {
                    return Ok(Settle::Failed {
                        why: format!("nobody can prove that {p} gets into green: {why}"),
                        remedy: "let the caller assume it again (it could in preflight), then resume; or roll back".into(),
                    });
                }
            };
            return Ok(if waited < PATIENCE_S {
                Settle::Pending { why, poll: POLL }
            } else {
                Settle::Failed {
                    why,
                    remedy: format!(
                        "was the role deleted and made again since its entry was made (EKS keeps the id: eks.md 1.4)? Then roll back provision, or delete the entry access-entry/{}/{p} and resume",
                        cx.plan.target.cluster.name
                    ),
                }
            });
        }
        Ok(Settle::Ready)
    }

    async fn undo(&self, _: &Cx, _: &Value, _: Option<&Value>) -> StepResult<()> {
        Ok(())
    }
}
