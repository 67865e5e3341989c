//! `nodes.ready`: waits until the node groups' nodes have joined green and are Ready, and are what the plan counts on.

use super::util::{at, kind_of, params};
use super::{Cx, Settle, Step, StepResult};
use crate::object::label;
use crate::plan::model::TargetNodeGroup;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::OnceLock;
use std::time::Duration;
use tokio::time::Instant;

/// A group that is ACTIVE has its nodes; a node that is not Ready after this time never will be by itself (eks.md 1.6: EKS gives a
/// group up after 20 to 25 minutes).
const PATIENCE: Duration = Duration::from_secs(25 * 60);

/// Makes the step.
pub fn make(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(params::<NodesReady>("nodes.ready", value)?))
}

#[derive(Deserialize)]
struct NodesReady {
    node_groups: Vec<Group>,
    /// When this process began to wait.
    #[serde(skip)]
    since: OnceLock<Instant>,
}

#[derive(Deserialize)]
struct Group {
    name: String,
    count: usize,
}

fn name(node: &Value) -> &str {
    node["metadata"]["name"].as_str().unwrap_or_default()
}

/// The node's own word on whether it is Ready: status and message.
fn ready(node: &Value) -> (bool, &str) {
    let conditions = at(node, "/status/conditions").as_array();
    let condition = conditions
        .into_iter()
        .flatten()
        .find(|c| c["type"] == "Ready");
    match condition {
        Some(c) => (
            c["status"] == "True",
            c["message"].as_str().unwrap_or_default(),
        ),
        None => (false, "its kubelet has said nothing yet"),
    }
}

/// What a node lacks of what its group was planned with: whatever selects or tolerates it would not find it.
fn lacks(node: &Value, planned: &TargetNodeGroup) -> Vec<String> {
    let mut out = vec![];
    for (key, value) in &planned.labels {
        match label(node, key) {
            Some(have) if have == value => {}
            Some(have) => out.push(format!("label {key}={have} instead of {value}")),
            None => out.push(format!("label {key}={value} is missing")),
        }
    }
    for taint in &planned.taints {
        let there = at(node, "/spec/taints")
            .as_array()
            .into_iter()
            .flatten()
            .any(|t| {
                t["key"] == taint.key
                    && t["effect"] == taint.effect
                    && t["value"].as_str().unwrap_or_default() == taint.value
            });
        if !there {
            out.push(format!(
                "taint {}={}:{} is missing",
                taint.key, taint.value, taint.effect
            ));
        }
    }
    out
}

impl NodesReady {
    /// How it stands with one group; `None` when all is well.
    fn judge(
        &self,
        group: &Group,
        nodes: &[Value],
        planned: Option<&TargetNodeGroup>,
    ) -> Option<Settle> {
        let of_group: Vec<&Value> = nodes
            .iter()
            .filter(|n| label(n, "eks.amazonaws.com/nodegroup") == Some(group.name.as_str()))
            .collect();
        let (up, down): (Vec<&Value>, Vec<&Value>) = of_group.into_iter().partition(|n| ready(n).0);
        let waited = self.since.get_or_init(Instant::now).elapsed();
        if up.len() < group.count {
            let not_yet: Vec<String> = down
                .iter()
                .take(3)
                .map(|n| format!("{}: {}", name(n), ready(n).1))
                .collect();
            let mut why = format!(
                "nodes of group {}: {} of {} ready",
                group.name,
                up.len(),
                group.count
            );
            if waited >= PATIENCE {
                let what = if not_yet.is_empty() {
                    "no further instance joined".to_string()
                } else {
                    not_yet.join("; ")
                };
                why.push_str(&format!(" after {} min ({what})", waited.as_secs() / 60));
                return Some(Settle::Failed {
                    why,
                    remedy: "see that the instances reach green's API (NAT or endpoints, security groups) and that the pods of aws-node run \
                             (kubectl -n kube-system get pods); the same command waits on"
                        .into(),
                });
            }
            // An instance starts and joins within 2 to 5 min (eks.md 1.8).
            why.push_str("; typically 2 to 5 min after the group was asked for");
            return Some(Settle::Pending {
                why,
                poll: (waited / 4).clamp(Duration::from_millis(500), Duration::from_secs(10)),
            });
        }
        let wrong: Vec<String> = up
            .iter()
            .filter_map(|n| {
                let lacks = lacks(n, planned?);
                (!lacks.is_empty()).then(|| format!("{}: {}", name(n), lacks.join(", ")))
            })
            .take(3)
            .collect();
        (!wrong.is_empty()).then(|| Settle::Failed {
            why: format!(
                "nodes of group {} are not as planned: {}",
                group.name,
                wrong.join("; ")
            ),
            remedy: "pods that select or tolerate by these would not be placed: set them on the node group again (or find out who takes \
                     them away), then resume"
                .into(),
        })
    }
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
            let planned = cx.plan.target.node_groups.iter();
            let planned = planned.into_iter().find(|g| g.name == group.name);
            if let Some(not_yet) = self.judge(group, &nodes, planned) {
                return Ok(not_yet);
            }
        }
        Ok(Settle::Ready)
    }
    async fn undo(&self, _: &Cx, _: &Value, _: Option<&Value>) -> StepResult<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::cloud::Taint;

    fn node(labels: Value, taints: Value, status: &str) -> Value {
        let mut labels = labels;
        labels["eks.amazonaws.com/nodegroup"] = json!("nodes");
        json!({"metadata": {"name": "ip-10-1-0-17", "labels": labels}, "spec": {"taints": taints},
            "status": {"conditions": [{"type": "Ready", "status": status, "message": "cni plugin not initialized"}]}})
    }

    fn step() -> NodesReady {
        NodesReady {
            node_groups: vec![],
            since: OnceLock::new(),
        }
    }

    fn group() -> Group {
        Group {
            name: "nodes".into(),
            count: 1,
        }
    }

    fn planned() -> TargetNodeGroup {
        let mut g: TargetNodeGroup = serde_json::from_value(json!({"name": "nodes", "instance_group": "nodes", "instance_types": ["m5.large"],
            "capacity_type": "ON_DEMAND", "ami_type": "AL2023_x86_64_STANDARD", "min": 1, "max": 1, "desired": 1, "disk_gib": 20,
            "disk_type": "gp3", "subnets": [], "labels": {"team": "web"}, "taints": []}))
        .expect("a node group");
        g.taints = vec![Taint {
            key: "gpu".into(),
            value: String::new(),
            effect: "NoSchedule".into(),
        }];
        g
    }

    #[test]
    fn a_node_with_the_planned_labels_and_taints_is_what_the_plan_counts_on() {
        let taints = json!([{"key": "gpu", "effect": "NoSchedule"}]);
        let n = node(json!({"team": "web"}), taints, "True");
        assert_eq!(step().judge(&group(), &[n], Some(&planned())), None);
    }

    #[test]
    fn a_node_without_a_planned_label_or_taint_stops_before_pods_wait_for_it() {
        let n = node(json!({"team": "db"}), json!([]), "True");
        let Some(Settle::Failed { why, .. }) = step().judge(&group(), &[n], Some(&planned()))
        else {
            panic!("it must not pass");
        };
        assert!(why.contains("label team=db instead of web"), "{why}");
        assert!(why.contains("taint gpu=:NoSchedule is missing"), "{why}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_never_becomes_ready_is_named_with_its_own_words_after_25_minutes() {
        let step = step();
        let n = [node(json!({}), json!([]), "False")];
        let first = step.judge(&group(), &n, None);
        assert!(matches!(first, Some(Settle::Pending { .. })), "{first:?}");
        tokio::time::sleep(PATIENCE).await;
        let Some(Settle::Failed { why, .. }) = step.judge(&group(), &n, None) else {
            panic!("it must end");
        };
        assert!(
            why.contains("ip-10-1-0-17: cni plugin not initialized"),
            "{why}"
        );
    }
}
