//! The status that a kubelet reports for a pod.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use serde_json::{Value, json};

/// The state of the pod's known container; the others follow it.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// Not started, or between two starts.
    Waiting {
        reason: &'static str,
        message: String,
    },
    /// Runs since then.
    Running { since: Timestamp },
    /// Ended for good.
    Ended {
        code: i32,
        since: Timestamp,
        at: Timestamp,
    },
}

/// What one status write says.
#[derive(Clone, Debug)]
pub(super) struct Report<'a> {
    pub pod: &'a Pod,
    pub pod_ip: &'a str,
    pub started: Timestamp,
    pub state: State,
    pub restarts: i32,
    /// Exit code and time of the life before, if there was one.
    pub last: Option<(i32, Timestamp)>,
}

fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl Report<'_> {
    /// A strategic merge patch for the status subresource; the uid in it makes the server refuse a namesake.
    pub(super) fn patch(&self) -> Value {
        let ready = matches!(self.state, State::Running { .. });
        let phase = match self.state {
            State::Waiting { .. } if self.restarts == 0 => "Pending",
            State::Waiting { .. } | State::Running { .. } => "Running",
            State::Ended { code: 0, .. } => "Succeeded",
            State::Ended { .. } => "Failed",
        };
        let ended = matches!(self.state, State::Ended { .. });
        let containers = self
            .pod
            .spec
            .as_ref()
            .map_or(&[][..], |spec| &spec.containers);
        let statuses: Vec<Value> = containers
            .iter()
            .map(|container| self.container(container, ready))
            .collect();
        let reason = match (ready, &self.state) {
            (true, _) => Value::Null,
            (false, State::Ended { code: 0, .. }) => json!("PodCompleted"),
            (false, State::Ended { .. }) => json!("PodFailed"),
            (false, _) => json!("ContainersNotReady"),
        };
        let condition = |kind: &str, status: bool, reason: &Value| {
            json!({
                "type": kind,
                "status": if status { "True" } else { "False" },
                "reason": reason,
                "lastTransitionTime": time(Timestamp::now()),
            })
        };
        json!({
            "metadata": {"uid": self.pod.metadata.uid},
            "status": {
                "phase": phase,
                "startTime": time(self.started),
                "podIP": self.pod_ip,
                "podIPs": [{"ip": self.pod_ip}],
                "conditions": [
                    condition("Initialized", true, if ended { &reason } else { &Value::Null }),
                    condition("Ready", ready, &reason),
                    condition("ContainersReady", ready, &reason),
                    condition("PodScheduled", true, &Value::Null),
                ],
                "containerStatuses": statuses,
            }
        })
    }

    fn container(&self, container: &Container, ready: bool) -> Value {
        let state = match &self.state {
            State::Waiting { reason, message } => {
                json!({"waiting": {"reason": reason, "message": message}})
            }
            State::Running { since } => json!({"running": {"startedAt": time(*since)}}),
            State::Ended { code, since, at } => json!({"terminated": {
                "exitCode": code,
                "reason": if *code == 0 { "Completed" } else { "Error" },
                "startedAt": time(*since),
                "finishedAt": time(*at),
            }}),
        };
        let last = self.last.map(|(code, at)| {
            json!({"terminated": {
                "exitCode": code,
                "reason": if code == 0 { "Completed" } else { "Error" },
                "startedAt": time(self.started),
                "finishedAt": time(at),
            }})
        });
        let image = container.image.as_deref().unwrap_or_default();
        json!({
            "name": container.name,
            "image": image,
            "imageID": format!("bench://{image}"),
            "ready": ready,
            "started": ready,
            "restartCount": self.restarts,
            "state": state,
            "lastState": last.unwrap_or_else(|| json!({})),
        })
    }
}
