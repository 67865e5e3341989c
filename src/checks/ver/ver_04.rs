//! VER-04: settings of add-ons that green gets anew. Zones of blue's Corefile are named by the rewrite (replay.md 26), kops fields by their own rows.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) const CHECK: Check = Check {
    id: "VER-04",
    severity: Severity::Warning,
    question: "Does a setting of CoreDNS or the autoscaler exist on blue only?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Set it on green too, or waive it with the reason why it is not needed.",
    source: "checks.md VER-04",
    run,
};

/// Plugins of the Corefile that kops and EKS write themselves.
const DEFAULT_PLUGINS: &[&str] = &[
    "errors",
    "health",
    "ready",
    "kubernetes",
    "prometheus",
    "forward",
    "proxy",
    "cache",
    "loop",
    "reload",
    "loadbalance",
    "log",
];
/// Flags of the autoscaler that change what it does.
const AUTOSCALER: &[&str] = &[
    "--expander",
    "--scale-down",
    "--skip-nodes",
    "--balance",
    "--max-node",
    "--priority",
    "--ignore-daemonsets",
    "--new-pod-scale-up-delay",
    "--cores-total",
    "--memory-total",
];

/// Settings of the server block of the root zone, one a line: plugins that are not default ones, and upstreams.
fn settings(corefile: &str) -> BTreeSet<String> {
    let mut depth = 0i32;
    let mut root = false;
    let mut out = BTreeSet::new();
    for line in corefile.lines() {
        let line = line.trim();
        if depth == 0 && line.ends_with('{') {
            let zone = line.trim_end_matches('{').trim();
            root = matches!(zone, ".:53" | ".");
        } else if depth == 1 && root && !line.is_empty() && line != "}" && !line.starts_with('#') {
            let plugin = line.split_whitespace().next().unwrap_or("");
            let upstream =
                matches!(plugin, "forward" | "proxy") && !line.contains("/etc/resolv.conf");
            if upstream || !DEFAULT_PLUGINS.contains(&plugin) {
                out.insert(line.trim_end_matches('{').trim().to_string());
            }
        }
        depth += line.matches('{').count() as i32 - line.matches('}').count() as i32;
    }
    out
}

fn run(i: &Input, r: &mut Report) {
    let corefile = |c: &crate::snapshot::model::Cluster| {
        c.find("ConfigMap", Some("kube-system"), "coredns")
            .and_then(|o| o.pointer("/data/Corefile")?.as_str())
            .map(settings)
            .unwrap_or_default()
    };
    let green = i.snapshot.green.as_ref().map(corefile).unwrap_or_default();
    for line in corefile(&i.snapshot.blue).difference(&green) {
        r.found(
            "configmap/kube-system/coredns",
            format!("blue's CoreDNS has `{line}`, which green's does not"),
        );
    }
    let autoscaler = i
        .blue
        .iter()
        .find(|o| o.id.kind == "Deployment" && o.id.name == "cluster-autoscaler" && !o.moves());
    if let Some(o) = autoscaler {
        let flags: Vec<&str> = o
            .containers(false)
            .flat_map(|c| {
                ["command", "args"]
                    .into_iter()
                    .filter_map(|k| c.get(k)?.as_array())
            })
            .flatten()
            .filter_map(Value::as_str)
            .filter(|a| AUTOSCALER.iter().any(|f| a.starts_with(f)))
            .collect();
        if !flags.is_empty() {
            r.found(
                &o.name,
                format!(
                    "blue's autoscaler runs with {}; green gets no copy of it",
                    flags.join(" ")
                ),
            );
        }
    }
}
