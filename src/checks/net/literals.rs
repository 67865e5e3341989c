//! NET-06. ConfigMaps, Endpoints and ExternalNames are read by the rewrite, which may replace in them; this is what it leaves alone.

use crate::checks::words::{containers, count, some, templates};
use crate::checks::{Answered, Check, Input, Need, Report};
use crate::plan::model::{Fate, Severity};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECK: Check = Check {
    id: "NET-06",
    severity: Severity::Blocker,
    question: "Does configuration name addresses or names that only blue has?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Give the new value under workloads.replace (env values) or change the workload on blue.",
    source: "checks.md NET-06",
    run,
};

fn run(i: &Input, r: &mut Report) {
    // Addresses of blue's nodes: they live in the VPC, and end with their node.
    let mut nodes: BTreeSet<&str> = BTreeSet::new();
    for n in i.snapshot.blue.of_kind("Node") {
        for a in n
            .pointer("/status/addresses")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if matches!(
                a["type"].as_str(),
                Some("InternalIP" | "InternalDNS" | "ExternalIP")
            ) {
                nodes.extend(a["address"].as_str());
            }
        }
    }
    let domain = i
        .snapshot
        .kops
        .cluster
        .as_ref()
        .and_then(|c| c.pointer("/spec/clusterDNSDomain"))
        .and_then(Value::as_str)
        .filter(|d| *d != "cluster.local" && !d.is_empty());
    let literals = |text: &str| -> Vec<String> {
        let mut out = i.cx.blue_literals(text);
        for w in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '-')) {
            let w = w.trim_matches(['.', '-']);
            if nodes.contains(w) || domain.is_some_and(|d| w.ends_with(&format!(".svc.{d}"))) {
                out.push(w.to_string());
            }
        }
        out.sort();
        out.dedup();
        out
    };
    for (object, template) in templates(i) {
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for c in containers(template) {
            for e in c["env"].as_array().into_iter().flatten() {
                for l in e["value"].as_str().map(&literals).unwrap_or_default() {
                    found
                        .entry(l)
                        .or_default()
                        .insert(format!("env {}", e["name"].as_str().unwrap_or("")));
                }
            }
            for k in ["command", "args"] {
                for w in c[k]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                {
                    for l in literals(w) {
                        found.entry(l).or_default().insert(k.into());
                    }
                }
            }
        }
        for a in template
            .pointer("/spec/hostAliases")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            for l in a["ip"].as_str().map(&literals).unwrap_or_default() {
                found.entry(l).or_default().insert("hostAliases".into());
            }
        }
        for n in template
            .pointer("/spec/dnsConfig/nameservers")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            for l in n.as_str().map(&literals).unwrap_or_default() {
                found.entry(l).or_default().insert("dnsConfig".into());
            }
        }
        if !found.is_empty() {
            let words: Vec<String> = found
                .iter()
                .map(|(l, at)| {
                    format!(
                        "{l} ({})",
                        at.iter().cloned().collect::<Vec<_>>().join(", ")
                    )
                })
                .collect();
            r.found(
                object,
                format!(
                    "{} that only blue has: {}",
                    count(found.len(), "literal"),
                    some(&words)
                ),
            );
        }
    }
    let secrets = i
        .verdicts
        .iter()
        .filter(|v| {
            v.object.starts_with("secret/")
                && matches!(v.verdict, Fate::Copied | Fate::Changed | Fate::Held)
        })
        .count();
    if secrets > 0 {
        r.not_checked(
            "secrets",
            &format!("{} known as hashes only, by design: an address of blue in them is not seen", count(secrets, "Secret")),
            "Look for addresses of blue's pods, services, nodes and load balancers in connection strings on blue; then waive this.",
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{deployment, of, says, snapshot, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::{Value, json};

    fn with(container: Value) -> crate::snapshot::model::Snapshot {
        let mut s = snapshot();
        let mut d = deployment("api", 1, json!({}));
        d["spec"]["template"]["spec"]["containers"] = json!([container]);
        s.blue.objects = vec![
            d,
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"addresses": [{"type": "InternalIP", "address": "172.20.32.17"}]}}),
        ];
        s
    }

    #[test]
    fn net_06_addresses_of_blues_services_and_nodes_in_env_and_args_block() {
        let p = plan(
            &spec(),
            &with(
                json!({"name": "c", "image": "x", "env": [{"name": "DNS", "value": "100.64.0.10:53"}], "args": ["--peer=172.20.32.17"]}),
            ),
        );
        says(
            &p,
            "NET-06",
            Severity::Blocker,
            "2 literals that only blue has: 100.64.0.10 (env DNS), 172.20.32.17 (args)",
        );
    }

    #[test]
    fn net_06_a_declared_replacement_and_other_peoples_addresses_are_no_matter() {
        let s = with(
            json!({"name": "c", "image": "x", "env": [{"name": "DB", "value": "postgres://172.20.40.5/x"}, {"name": "DNS", "value": "100.64.0.10:53"}]}),
        );
        let mut replaced = spec();
        replaced.workloads.replace = [("100.64.0.10".to_string(), "10.96.0.10".to_string())].into();
        assert!(of(&plan(&replaced, &s), "NET-06").is_empty());
    }

    #[test]
    fn net_06_secrets_are_hashes_and_the_plan_says_that_it_cannot_look_into_them() {
        let mut s = snapshot();
        s.blue.objects = vec![
            json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": "db", "namespace": "n"}, "data": {"url": "hmac-sha256:00:12"}}),
        ];
        says(
            &plan(&spec(), &s),
            "NET-06",
            Severity::NotChecked,
            "1 Secret known as hashes only",
        );
    }
}
