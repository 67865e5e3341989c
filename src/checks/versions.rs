//! VER: what changes between the versions of both sides.

use super::{Input, Report};
use crate::rewrite::minor;
use serde_json::Value;

fn blue_minor(i: &Input) -> Option<u32> {
    i.snapshot
        .blue
        .version
        .as_ref()
        .map(|v| v.minor)
        .or_else(|| {
            let c = i.snapshot.kops.cluster.as_ref()?;
            let v = c.pointer("/spec/kubernetesVersion")?.as_str()?;
            minor(&format!(
                "v{}",
                v.rsplit('/').next()?.trim_start_matches('v')
            ))
        })
}

/// VER-01.
pub(super) fn minors_apart(i: &Input, r: &mut Report) {
    let Some(blue) = blue_minor(i) else {
        r.not_checked(
            "blue",
            "blue's version is not known",
            "Run discover against blue, or give the kops cluster document.",
        );
        return;
    };
    let green = i.cx.green_minor;
    if green > blue + 3 {
        let mut crossed = vec![];
        for (m, what) in [
            (22, "Ingress, CRD and webhook betas end"),
            (24, "no dockershim, no token Secrets made by themselves"),
            (25, "no PodSecurityPolicy, cgroup v2"),
            (27, "EBS by CSI only"),
            (34, "containerd 2"),
            (35, "no cgroup v1"),
            (36, "stricter validation of addresses at creation"),
        ] {
            if blue < m && m <= green {
                crossed.push(format!("1.{m}: {what}"));
            }
        }
        r.warning(
            "green.version",
            format!(
                "{} minor versions apart (1.{blue} to 1.{green}); {}",
                green - blue,
                crossed.join("; ")
            ),
            "Read each and confirm.",
        );
    }
    if green < blue {
        r.blocker(
            "green.version",
            format!("green (1.{green}) would be older than blue (1.{blue})"),
            "Choose a version that is not older.",
        );
    }
}

/// VER-05: what kops set on the control plane and EKS does not let anybody set.
pub(super) fn control_plane_settings(i: &Input, r: &mut Report) {
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

/// Support of the chosen version (eks.md 1.1; a table only as offline fall-back).
pub(super) fn support(i: &Input, r: &mut Report) {
    match i.cx.green_minor {
        m if m < 32 => r.blocker(
            "green.version",
            format!("EKS does not offer 1.{m} any more"),
            "Choose 1.35 or 1.36.",
        ),
        m @ 32..=34 => r.warning(
            "green.version",
            format!("1.{m} is in extended support, or will be within weeks"),
            "Choose 1.35 or 1.36.",
        ),
        m if m > 36 => r.blocker(
            "green.version",
            format!("EKS does not offer 1.{m} yet"),
            "Choose 1.35 or 1.36.",
        ),
        _ => {}
    }
}
