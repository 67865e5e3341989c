//! Rule 45: bare pods, without what blue's admission made of them. Nothing can park a pod, so it is created when the others wake.

use super::injected::{self, INJECTORS};
use super::work::{Work, take, text};
use super::workloads::SINGLETON;
use crate::object::annotation;
use crate::plan::model::Severity;
use serde_json::{Value, json};

/// Fields of a pod's spec that the server or its admission wrote, or that no client may write.
const MADE: &[&str] = &[
    "nodeName",
    // From the priority class, whose name stays.
    "priority",
    "preemptionPolicy",
    // The old name of serviceAccountName, always written beside it.
    "serviceAccount",
    // From the RuntimeClass.
    "overhead",
    "ephemeralContainers",
];

/// Annotations that blue's network and admission wrote; a last `*` stands for any rest.
const WRITTEN: &[&str] = &[
    "cni.projectcalico.org/",
    "k8s.v1.cni.cncf.io/network-status",
    "k8s.v1.cni.cncf.io/networks-status",
    "kubernetes.io/limit-ranger",
    "vpc.amazonaws.com/pod-eni",
];

pub(super) fn rewrite(w: &mut Work) {
    let system = w.namespace() == "kube-system"
        || text(w.original, "/spec/priorityClassName").is_some_and(|c| c.starts_with("system-"));
    if w.original.pointer("/spec/hostNetwork") == Some(&json!(true)) && system {
        return w.skip(45);
    }
    let mut injected = vec![];
    for injector in INJECTORS.iter().filter(|i| i.carried_by(w.original)) {
        injector.strip(&mut w.object);
        injected.push(injector.name);
    }
    for key in MADE {
        take(&mut w.object, &format!("/spec/{key}"));
    }
    if w.object["spec"]["enableServiceLinks"] == true {
        take(&mut w.object, "/spec/enableServiceLinks");
    }
    let token = injected::token_volume(w.original);
    let identity =
        super::work::items(w.original, "/spec/volumes").any(|v| v["name"] == "aws-iam-token");
    injected::strip_volumes(&mut w.object, token);
    if identity {
        for list in ["containers", "initContainers"] {
            for c in w.object["spec"]
                .get_mut(list)
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                injected::without(c, "env", |e| {
                    e["name"]
                        .as_str()
                        .is_some_and(|n| injected::IDENTITY_ENV.contains(&n))
                });
            }
        }
    }
    // Five minutes on a lost node are what admission gives to everybody; other times are somebody's wish.
    injected::without(&mut w.object["spec"], "tolerations", |t| {
        matches!(
            t["key"].as_str(),
            Some("node.kubernetes.io/not-ready" | "node.kubernetes.io/unreachable")
        ) && t["operator"] == "Exists"
            && t["effect"] == "NoExecute"
            && t["tolerationSeconds"] == 300
    });
    if let Some(map) = w.object["metadata"]
        .get_mut("annotations")
        .and_then(Value::as_object_mut)
    {
        map.retain(|k, _| {
            !WRITTEN
                .iter()
                .any(|a| k == a || a.ends_with('/') && k.starts_with(a))
        });
        if map.is_empty() {
            take(&mut w.object, "/metadata/annotations");
        }
    }
    w.changed(45);
    let id = w.id.to_string();
    if w.cx.singletons.contains(&id) || annotation(w.original, SINGLETON) == Some("true") {
        w.skip(45);
        w.find(
            "WL-03",
            Severity::Warning,
            45,
            "must be single, but a bare pod cannot be stopped without deleting it: it is not copied",
            "Wrap it in a Deployment on blue, then plan again.",
        );
        return;
    }
    if w.original["spec"].to_string().contains("/vault/vault-env") {
        w.find(
            "WL-03",
            Severity::Warning,
            45,
            "its command was rewritten by Bank-Vaults' webhook, and what it was before is not in the pod (bank-vaults 1352)",
            "Create it on green from its source, and list it under workloads.skip.",
        );
    }
    w.find(
        "WL-03",
        Severity::Warning,
        45,
        format!(
            "a bare pod: nothing makes it again when its node goes; it is created on green at unpark and runs on both sides then{}",
            if injected.is_empty() {
                String::new()
            } else {
                format!("; the sidecar of {} is left to green's own injector", injected.join(" and "))
            }
        ),
        "Wrap it in a Deployment on blue, or list it under workloads.skip if two must not run.",
    );
}
