//! User data: MIME parts for AL2023, settings for Bottlerocket (eks.md 1.7). Without an AMI id in the template EKS adds its own node
//! configuration (cluster, endpoint, CA), so only `spec.kubelet` is ours.

use super::host::Change;
use super::kubelet::Kubelet;
use crate::object::sha256_hex;
use crate::yaml;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The text, or `None` when there is nothing to say.
pub(super) fn render(bottlerocket: bool, kubelet: &Kubelet, host: &[Change]) -> Option<String> {
    if bottlerocket {
        return settings(kubelet);
    }
    let mut parts: Vec<(String, String)> = vec![];
    if !kubelet.config.is_empty() {
        let config = json!({
            "apiVersion": "node.eks.aws/v1alpha1",
            "kind": "NodeConfig",
            "spec": {"kubelet": {"config": sorted(&kubelet.config)}}
        });
        let text = yaml::to_string(&config).unwrap_or_else(|_| config.to_string());
        parts.push((
            "application/node.eks.aws".into(),
            format!("---\n{}", text.trim_start_matches("---\n")),
        ));
    }
    if !kubelet.mirrors.is_empty() {
        parts.push((SHELL.into(), mirrors(&kubelet.mirrors)));
    }
    parts.extend(
        host.iter()
            .map(|c| (c.content_type.clone(), c.content.clone())),
    );
    if parts.is_empty() {
        return None;
    }
    let all: String = parts.iter().map(|(t, c)| format!("{t}\n{c}\n")).collect();
    // A hash of the content cannot stand in the content.
    let boundary = format!("crossfade-{}", &sha256_hex(&all)[..16]);
    let mut out =
        format!("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"{boundary}\"\n\n");
    for (content_type, content) in parts {
        out.push_str(&format!(
            "--{boundary}\nContent-Type: {content_type}\n\n{}\n",
            content.trim_end_matches('\n')
        ));
    }
    out.push_str(&format!("--{boundary}--\n"));
    Some(out)
}

/// Type of a shell part.
pub(super) const SHELL: &str = "text/x-shellscript; charset=\"utf-8\"";

fn sorted(map: &serde_json::Map<String, Value>) -> Value {
    let sorted: BTreeMap<&String, &Value> = map.iter().collect();
    json!(sorted)
}

/// containerd of EKS's AMI reads mirrors from `/etc/containerd/certs.d/REGISTRY/hosts.toml`; `registry.mirrors` in its own file would clash
/// with that and containerd would not start. Shell parts run before nodeadm starts containerd.
fn mirrors(mirrors: &BTreeMap<String, Vec<String>>) -> String {
    let mut out = String::from("#!/bin/bash\n# registry mirrors of blue\nset -eu\n");
    for (registry, urls) in mirrors {
        let folder = if registry == "*" {
            "_default"
        } else {
            registry.as_str()
        };
        let path = format!("/etc/containerd/certs.d/{folder}");
        out.push_str(&format!(
            "mkdir -p '{path}'\ncat > '{path}/hosts.toml' <<'MIRRORS'\n"
        ));
        for url in urls {
            out.push_str(&format!(
                "[host.\"{url}\"]\n  capabilities = [\"pull\", \"resolve\"]\n"
            ));
        }
        out.push_str("MIRRORS\n");
    }
    out
}

/// `[settings.kubernetes]` of Bottlerocket: the settings that it has a word for.
fn settings(kubelet: &Kubelet) -> Option<String> {
    const PLAIN: &[(&str, &str)] = &[
        ("maxPods", "max-pods"),
        ("registryPullQPS", "registry-qps"),
        ("registryBurst", "registry-burst"),
        ("eventRecordQPS", "event-qps"),
        ("eventBurst", "event-burst"),
        ("containerLogMaxSize", "container-log-max-size"),
        ("containerLogMaxFiles", "container-log-max-files"),
        ("cpuManagerPolicy", "cpu-manager-policy"),
        ("topologyManagerPolicy", "topology-manager-policy"),
        ("podPidsLimit", "pod-pids-limit"),
        ("allowedUnsafeSysctls", "allowed-unsafe-sysctls"),
    ];
    const TABLES: &[(&str, &str)] = &[
        ("kubeReserved", "kube-reserved"),
        ("systemReserved", "system-reserved"),
        ("evictionHard", "eviction-hard"),
    ];
    let mut out = String::new();
    for (k, name) in PLAIN {
        if let Some(v) = kubelet.config.get(*k) {
            // JSON's numbers, strings and lists of strings are TOML's.
            out.push_str(&format!("{name} = {v}\n"));
        }
    }
    for (k, name) in TABLES {
        if let Some(map) = kubelet.config.get(*k).and_then(Value::as_object) {
            out.push_str(&format!("\n[settings.kubernetes.{name}]\n"));
            for (k, v) in map {
                out.push_str(&format!("\"{k}\" = {v}\n"));
            }
        }
    }
    (!out.is_empty()).then(|| format!("[settings.kubernetes]\n{out}"))
}
