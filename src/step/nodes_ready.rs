//! `nodes.ready`: waits until the node groups' nodes have joined green and are Ready.

use super::util::{at, kind_of, params};
use super::{Cx, Settle, Step, StepResult};
use crate::object::label;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Makes the step.
pub fn make(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(params::<NodesReady>("nodes.ready", value)?))
}

#[derive(Deserialize)]
struct NodesReady {
    node_groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    name: String,
    count: usize,
}

#[async_trait]
impl Step for NodesReady {
    async fn observe(&self, _: &Cx) -> StepResult<Value> {
        Ok(json!({}))
    }
    async fn apply(&self, _: &Cx, _: &Value) -> StepResult<Value> {
        Ok(json!({}))
    }
    async fn settle(&self, cx: &Cx, _: &Value, _: &Value) -> StepResult<Settle> {
        let green = cx.world.green.as_ref();
        let nodes = green
            .list(&kind_of(green, "v1", "Node").await?)
            .await?
            .items;
        for group in &self.node_groups {
            let ready = nodes
                .iter()
                .filter(|n| label(n, "eks.amazonaws.com/nodegroup") == Some(group.name.as_str()))
                .filter(|n| {
                    at(n, "/status/conditions")
                        .as_array()
                        .into_iter()
                        .flatten()
                        .any(|c| c["type"] == "Ready" && c["status"] == "True")
                })
                .count();
            if ready < group.count {
                return Ok(Settle::Pending {
                    why: format!(
                        "nodes of group {}: {ready} of {} ready",
                        group.name, group.count
                    ),
                    poll: Duration::from_secs(2),
                });
            }
        }
        Ok(Settle::Ready)
    }
    async fn undo(&self, _: &Cx, _: &Value, _: Option<&Value>) -> StepResult<()> {
        Ok(())
    }
}
