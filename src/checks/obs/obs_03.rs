//! OBS-03: a line written on green must be found where people read logs (S52). crossfade reads no log store.

use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "OBS-03",
    severity: Severity::Blocker,
    question: "Is a marker line of green found in the log store within 5 minutes?",
    needs: &[Need::Blue],
    answered: Answered::Person,
    remedy: "Write a line on green (`kubectl run marker --image=busybox --restart=Never -- echo MARKER`) and find it in the log store.",
    source: "checks.md OBS-03",
    run,
};

/// Images of agents that ship logs.
const AGENTS: &[&str] = &[
    "agent",
    "alloy",
    "datadog-agent",
    "filebeat",
    "fluent-bit",
    "aws-for-fluent-bit",
    "fluentd",
    "fluentd-kubernetes-daemonset",
    "logging-agent",
    "logspout",
    "newrelic-fluentbit-output",
    "opentelemetry-collector-contrib",
    "promtail",
    "splunk-fluentd",
    "vector",
];

fn run(i: &Input, r: &mut Report) {
    let agents: Vec<&str> = i
        .of_kind("DaemonSet")
        .filter(|o| o.images().iter().any(|x| AGENTS.contains(&x.as_str())))
        .map(|o| o.name.as_str())
        .collect();
    if let Some(first) = agents.first() {
        r.ask(
            *first,
            format!(
                "whether logs of green arrive; blue's are shipped by {}",
                few(&agents)
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::NotChecked;
    use serde_json::json;

    #[test]
    fn where_an_agent_ships_logs_a_person_looks_for_a_marker_and_elsewhere_not() {
        let s = |image: &str| with(vec![workload("DaemonSet", "logs", image, json!({}))]);
        fires(
            &spec(),
            &s("fluent/fluent-bit:1.8"),
            "OBS-03",
            NotChecked,
            "daemonset/web/logs",
        );
        silent(&spec(), &s("node-exporter:1"), "OBS-03");
    }
}
