//! Rule 53: a PodSecurityPolicy is never copied; what it let through becomes a level of Pod Security.

use super::super::pod_security::{ADDABLE, VOLUMES};
use super::super::removed::Removal;
use super::super::work::{Work, items, text};
use crate::object::annotation;
use crate::plan::model::Severity;
use serde_json::{Value, json};

/// A level of Pod Security, strictest first: of two policies the namespace needs the later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// No root, no escalation, no capabilities.
    Restricted,
    /// Nothing of the node.
    Baseline,
    /// Everything.
    Privileged,
}

impl Level {
    /// As the label spells it.
    pub fn name(self) -> &'static str {
        match self {
            Level::Restricted => "restricted",
            Level::Baseline => "baseline",
            Level::Privileged => "privileged",
        }
    }
}

/// The strictest level that lets through everything that the policy does.
pub fn level(policy: &Value) -> Level {
    let flag = |p: &str| policy.pointer(p).and_then(Value::as_bool) == Some(true);
    let strings = |p: &'static str| items(policy, p).filter_map(Value::as_str);
    let node = flag("/spec/privileged")
        || flag("/spec/hostNetwork")
        || flag("/spec/hostPID")
        || flag("/spec/hostIPC")
        || items(policy, "/spec/hostPorts").next().is_some()
        || items(policy, "/spec/allowedUnsafeSysctls").next().is_some()
        || strings("/spec/allowedCapabilities")
            .chain(strings("/spec/defaultAddCapabilities"))
            .any(|c| !ADDABLE.contains(&c))
        || strings("/spec/volumes").any(|v| matches!(v, "*" | "hostPath"))
        || strings("/spec/allowedProcMountTypes").any(|t| t != "Default");
    if node {
        return Level::Privileged;
    }
    let user = match text(policy, "/spec/runAsUser/rule") {
        Some("MustRunAsNonRoot") => true,
        Some("MustRunAs") => {
            items(policy, "/spec/runAsUser/ranges").all(|r| r["min"].as_u64().unwrap_or(0) > 0)
        }
        _ => false,
    };
    let strict = user
        && policy.pointer("/spec/allowPrivilegeEscalation") == Some(&json!(false))
        && strings("/spec/allowedCapabilities").all(|c| c == "NET_BIND_SERVICE")
        && strings("/spec/volumes").all(|v| VOLUMES.contains(&v));
    if strict {
        Level::Restricted
    } else {
        Level::Baseline
    }
}

/// What the policy wrote into pods that did not say it themselves: Pod Security writes nothing.
pub fn mutates(policy: &Value) -> Vec<&'static str> {
    let some = |p: &str| items(policy, p).next().is_some();
    let must = |p: &str| text(policy, p) == Some("MustRunAs");
    let mut out = vec![];
    if some("/spec/requiredDropCapabilities") || some("/spec/defaultAddCapabilities") {
        out.push("capabilities");
    }
    if must("/spec/runAsUser/rule") {
        out.push("runAsUser");
    }
    if must("/spec/fsGroup/rule") {
        out.push("fsGroup");
    }
    if must("/spec/supplementalGroups/rule") {
        out.push("supplementalGroups");
    }
    if policy
        .pointer("/spec/defaultAllowPrivilegeEscalation")
        .is_some()
        || policy.pointer("/spec/allowPrivilegeEscalation") == Some(&json!(false))
    {
        out.push("allowPrivilegeEscalation");
    }
    if policy.pointer("/spec/readOnlyRootFilesystem") == Some(&json!(true)) {
        out.push("readOnlyRootFilesystem");
    }
    if annotation(
        policy,
        "seccomp.security.alpha.kubernetes.io/defaultProfileName",
    )
    .is_some()
    {
        out.push("seccompProfile");
    }
    out
}

pub(super) fn convert(w: &mut Work, _: &Removal) {
    refuse(w);
}

pub(super) fn refuse(w: &mut Work) {
    let level = level(w.original).name();
    let written = mutates(w.original);
    w.refuse(53);
    w.find(
        "API-03",
        Severity::Warning,
        53,
        match written.as_slice() {
            [] => "PodSecurityPolicy was removed in 1.25: it cannot be carried over".to_string(),
            list => format!(
                "PodSecurityPolicy was removed in 1.25: it cannot be carried over, and nothing on green writes into pods what it wrote ({})",
                list.join(", ")
            ),
        },
        format!("Label the namespaces that used it `pod-security.kubernetes.io/enforce: {level}`."),
    );
}
