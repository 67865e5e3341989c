//! What admission webhooks put into pods: each injector, by what its objects are called. Rule 45 takes it off bare pods; `checks::wl` names
//! who asks for it and who carries it in a template (checks.md WL-09).

use super::work::{items, text};
use crate::object::annotation;
use serde_json::Value;
use std::collections::BTreeSet;

/// One injector.
pub(crate) struct Injector {
    /// Name for people.
    pub name: &'static str,
    /// Annotation that it leaves on what it changed: the proof that containers of these names are its own.
    mark: &'static str,
    /// Containers and init containers that it adds.
    containers: &'static [&'static str],
    /// Volumes that it adds.
    volumes: &'static [&'static str],
    /// Labels and annotations that it adds; a last `*` stands for any rest.
    keys: &'static [&'static str],
    /// Labels or annotations of a pod template that ask for it, with the value that does (`*`: any but `false` and `disabled`).
    asks: &'static [(&'static str, &'static str)],
    /// Labels or annotations of a namespace that ask for it for all its pods.
    asks_for_all: &'static [(&'static str, &'static str)],
}

/// All that are known: istio#27675, velero#2997, velero#5193, bank-vaults#1352, and the projects' own injection templates.
pub(crate) const INJECTORS: &[Injector] = &[
    Injector {
        name: "Istio",
        mark: "sidecar.istio.io/status",
        containers: &[
            "istio-proxy",
            "istio-init",
            "istio-validation",
            "enable-core-dump",
        ],
        volumes: &[
            "istio-envoy",
            "istio-data",
            "istio-podinfo",
            "istio-token",
            "istiod-ca-cert",
            "istio-ca-crl",
            "istio-certs",
            "workload-socket",
            "credential-socket",
            "workload-certs",
        ],
        keys: &[
            "sidecar.istio.io/status",
            "security.istio.io/tlsMode",
            "service.istio.io/canonical-name",
            "service.istio.io/canonical-revision",
            "istio.io/rev",
        ],
        asks: &[("sidecar.istio.io/inject", "true")],
        asks_for_all: &[("istio-injection", "enabled"), ("istio.io/rev", "*")],
    },
    Injector {
        name: "Linkerd",
        mark: "linkerd.io/proxy-version",
        containers: &[
            "linkerd-proxy",
            "linkerd-init",
            "linkerd-network-validator",
            "linkerd-debug",
        ],
        volumes: &[
            "linkerd-proxy-init-xtables-lock",
            "linkerd-identity-end-entity",
            "linkerd-identity-token",
        ],
        keys: &[
            "linkerd.io/proxy-version",
            "linkerd.io/identity-mode",
            "linkerd.io/created-by",
            "linkerd.io/trust-root-sha256",
            "linkerd.io/proxy-deployment",
            "linkerd.io/proxy-statefulset",
            "linkerd.io/proxy-daemonset",
            "linkerd.io/control-plane-ns",
            "linkerd.io/workload-ns",
            "viz.linkerd.io/tap-enabled",
        ],
        asks: &[
            ("linkerd.io/inject", "enabled"),
            ("linkerd.io/inject", "ingress"),
        ],
        asks_for_all: &[
            ("linkerd.io/inject", "enabled"),
            ("linkerd.io/inject", "ingress"),
        ],
    },
    Injector {
        name: "Vault's agent injector",
        mark: "vault.hashicorp.com/agent-inject-status",
        containers: &["vault-agent", "vault-agent-init"],
        volumes: &[
            "home-init",
            "home-sidecar",
            "vault-secrets",
            "vault-config",
            "vault-tls-secrets",
            "vault-agent-caching",
        ],
        keys: &["vault.hashicorp.com/agent-inject-status"],
        asks: &[("vault.hashicorp.com/agent-inject", "true")],
        asks_for_all: &[],
    },
    Injector {
        name: "Bank-Vaults' webhook",
        mark: "vault.security.banzaicloud.io/vault-addr",
        containers: &["copy-vault-env", "vault-agent", "consul-template"],
        volumes: &[
            "vault-env",
            "agent-secrets",
            "agent-configmap",
            "vault-agent-config",
        ],
        keys: &[],
        asks: &[("vault.security.banzaicloud.io/vault-addr", "*")],
        asks_for_all: &[],
    },
    Injector {
        name: "Consul Connect",
        mark: "consul.hashicorp.com/connect-inject-status",
        containers: &[
            "consul-connect-inject-init",
            "consul-dataplane",
            "envoy-sidecar",
            "consul-sidecar",
            "consul-connect-envoy-sidecar",
        ],
        volumes: &["consul-connect-inject-data"],
        keys: &[
            "consul.hashicorp.com/connect-inject-status",
            "consul.hashicorp.com/connect-inject-managed-by",
        ],
        asks: &[("consul.hashicorp.com/connect-inject", "true")],
        asks_for_all: &[],
    },
];

impl Injector {
    /// Whether a label or annotation of `metadata` asks for it.
    fn asked(asks: &[(&str, &str)], metadata: &Value) -> bool {
        asks.iter().any(|(key, wanted)| {
            ["annotations", "labels"].iter().any(|part| {
                metadata[*part]
                    .get(*key)
                    .and_then(Value::as_str)
                    .is_some_and(|v| {
                        v == *wanted || *wanted == "*" && !matches!(v, "" | "false" | "disabled")
                    })
            })
        })
    }
    /// Whether this pod template asks for it.
    pub(crate) fn asked_by(&self, template: &Value) -> bool {
        Self::asked(self.asks, &template["metadata"])
    }
    /// Whether this namespace asks for it.
    pub(crate) fn asked_by_namespace(&self, namespace: &Value) -> bool {
        Self::asked(self.asks_for_all, &namespace["metadata"])
    }
    /// Whether the pod (or its template) carries what it makes.
    pub(crate) fn carried_by(&self, pod: &Value) -> bool {
        annotation(pod, self.mark).is_some()
            && ["/spec/containers", "/spec/initContainers"]
                .iter()
                .flat_map(|l| items(pod, l))
                .any(|c| self.containers.iter().any(|n| c["name"] == *n))
    }
    /// Names that its own mark lists (Istio writes them down), besides those that are known.
    fn listed(&self, pod: &Value, what: &str) -> BTreeSet<String> {
        let said: Value = annotation(pod, self.mark)
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or(Value::Null);
        items(&said, &format!("/{what}"))
            .filter_map(|n| n.as_str().map(String::from))
            .collect()
    }
    /// Takes off a pod what this injector put on it.
    pub(super) fn strip(&self, pod: &mut Value) {
        let mut names: BTreeSet<String> = self.containers.iter().map(|n| n.to_string()).collect();
        names.extend(self.listed(pod, "containers"));
        names.extend(self.listed(pod, "initContainers"));
        let mut volumes: BTreeSet<String> = self.volumes.iter().map(|n| n.to_string()).collect();
        volumes.extend(self.listed(pod, "volumes"));
        for list in ["containers", "initContainers"] {
            without(&mut pod["spec"], list, |c| named(c, &names));
        }
        strip_volumes(pod, |name| volumes.contains(name));
        for part in ["labels", "annotations"] {
            if let Some(map) = pod["metadata"].get_mut(part).and_then(Value::as_object_mut) {
                map.retain(|k, _| !self.keys.contains(&k.as_str()));
                if map.is_empty() {
                    pod["metadata"]
                        .as_object_mut()
                        .map(|m| m.shift_remove(part));
                }
            }
        }
    }
}

fn named(value: &Value, names: &BTreeSet<String>) -> bool {
    value["name"].as_str().is_some_and(|n| names.contains(n))
}

/// Takes items out of a list; a list that gets empty by that goes too.
pub(super) fn without(parent: &mut Value, list: &str, gone: impl Fn(&Value) -> bool) {
    let Some(items) = parent.get_mut(list).and_then(Value::as_array_mut) else {
        return;
    };
    let before = items.len();
    items.retain(|v| !gone(v));
    if items.is_empty() && before > 0 {
        parent.as_object_mut().map(|o| o.shift_remove(list));
    }
}

/// Takes volumes and their mounts off a pod.
pub(super) fn strip_volumes(pod: &mut Value, gone: impl Fn(&str) -> bool) {
    let hit = |v: &Value| v["name"].as_str().is_some_and(&gone);
    without(&mut pod["spec"], "volumes", hit);
    for list in ["containers", "initContainers"] {
        for c in pod["spec"]
            .get_mut(list)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            without(c, "volumeMounts", hit);
        }
    }
}

/// Variables that pod identity webhooks add beside their token (kops.md 5, eks.md 3).
pub(super) const IDENTITY_ENV: &[&str] = &[
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_STS_REGIONAL_ENDPOINTS",
];

/// Names of volumes by which a service account's token came into the pod.
pub(super) fn token_volume(pod: &Value) -> impl Fn(&str) -> bool + use<> {
    let account = text(pod, "/spec/serviceAccountName")
        .unwrap_or("default")
        .to_string();
    move |name: &str| {
        name.starts_with("kube-api-access-")
            || name == "aws-iam-token"
            // Before 1.21: the Secret's own name, `ACCOUNT-token-` and five characters.
            || name.strip_prefix(&format!("{account}-token-")).is_some_and(|rest| rest.len() == 5)
    }
}
