//! VER-05: what kops set on the control plane and EKS does not let anybody set.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use serde_json::Value;

pub(super) const CHECK: Check = Check {
    id: "VER-05",
    severity: Severity::Blocker,
    question: "Not available on a managed control plane?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Replace X.",
    source: "checks.md VER-05",
    run,
};

/// VER-05: what kops set on the control plane and EKS does not let anybody set.
fn run(i: &Input, r: &mut Report) {
    let Some(c) = &i.snapshot.kops.cluster else {
        r.not_checked(
            "kops",
            "the cluster document was not read",
            "Give the output of `kops get -o yaml`.",
        );
        return;
    };
    let api = "/spec/kubeAPIServer";
    let map = |p: &str| {
        c.pointer(p)
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    };
    for (gate, on) in map(&format!("{api}/featureGates")) {
        r.blocker(
            format!("kops/spec.kubeAPIServer.featureGates.{gate}"),
            format!(
                "feature gate {gate}={} cannot be set on EKS",
                on.as_str().unwrap_or("")
            ),
            "Find out what relies on it, and remove it from blue.",
        );
    }
    for (group, on) in map(&format!("{api}/runtimeConfig")) {
        r.blocker(
            format!("kops/spec.kubeAPIServer.runtimeConfig.{group}"),
            format!(
                "API group setting {group}={} cannot be set on EKS",
                on.as_str().unwrap_or("")
            ),
            "Move its objects to a served version.",
        );
    }
    for key in [
        "admissionControl",
        "enableAdmissionPlugins",
        "appendAdmissionPlugins",
    ] {
        for p in c
            .pointer(&format!("{api}/{key}"))
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            if matches!(
                p,
                "PodSecurityPolicy"
                    | "AlwaysPullImages"
                    | "PodNodeSelector"
                    | "EventRateLimit"
                    | "ImagePolicyWebhook"
                    | "PodTolerationRestriction"
                    | "DenyEscalatingExec"
                    | "Initializers"
            ) {
                r.warning(
                    format!("kops/spec.kubeAPIServer.{key}"),
                    format!("admission plugin {p} does not exist on EKS"),
                    "Replace it by Pod Security labels or a policy engine.",
                );
            }
        }
    }
    for (key, what) in [
        (
            "authenticationTokenWebhookConfigFile",
            "webhook authentication",
        ),
        ("authorizationWebhookConfigFile", "webhook authorisation"),
        ("auditWebhookConfigFile", "an audit webhook"),
        ("tokenAuthFile", "static tokens"),
        ("serviceNodePortRange", "another NodePort range"),
    ] {
        if let Some(v) = c.pointer(&format!("{api}/{key}")).filter(|v| !v.is_null()) {
            let object = format!("kops/spec.kubeAPIServer.{key}");
            let message = format!(
                "{what} ({}) cannot be had on EKS",
                v.as_str().unwrap_or("set")
            );
            if key == "serviceNodePortRange" {
                r.warning(
                    object,
                    message,
                    "Services on ports outside 30000-32767 must move.",
                );
            } else {
                r.blocker(object, message, "Replace it before the migration.");
            }
        }
    }
}
