//! VER-05: what kops set on the control plane and EKS does not let anybody set (eks.md 1.2).

use crate::checks::{Answered, Check, Input, Need, Report};
use crate::plan::model::Severity;
use serde_json::Value;

pub(super) const CHECK: Check = Check {
    id: "VER-05",
    severity: Severity::Blocker,
    question: "What is set on blue's control plane that a managed one does not offer?",
    needs: &[Need::Kops],
    answered: Answered::Plan,
    remedy: "Find out what relies on it, and replace that on blue first.",
    source: "checks.md VER-05",
    run,
};

/// Feature gates that are on for everybody from a minor on (kubernetes, feature gates: GA).
const GENERAL: &[(&str, u32)] = &[
    ("BoundServiceAccountTokenVolume", 22),
    ("CSIDriverRegistry", 18),
    ("CSIMigration", 25),
    ("CSIMigrationAWS", 25),
    ("CSINodeInfo", 17),
    ("CronJobControllerV2", 22),
    ("EphemeralContainers", 25),
    ("EvenPodsSpread", 19),
    ("ExpandCSIVolumes", 24),
    ("ExpandInUsePersistentVolumes", 24),
    ("ExpandPersistentVolumes", 24),
    ("IPv6DualStack", 23),
    ("InPlacePodVerticalScaling", 35),
    ("IndexedJob", 24),
    ("JobTrackingWithFinalizers", 26),
    ("MixedProtocolLBService", 26),
    ("PodPriority", 14),
    ("PodSecurity", 25),
    ("PodShareProcessNamespace", 17),
    ("ReadWriteOncePod", 29),
    ("RuntimeClass", 20),
    ("SCTPSupport", 20),
    ("ServerSideApply", 22),
    ("SidecarContainers", 33),
    ("StartupProbe", 20),
    ("StatefulSetMinReadySeconds", 25),
    ("SuspendJob", 24),
    ("TTLAfterFinished", 23),
    ("TaintBasedEvictions", 18),
    ("TokenRequest", 20),
    ("TokenRequestProjection", 20),
    ("TopologyAwareHints", 33),
    ("VolumeScheduling", 13),
    ("VolumeSnapshotDataSource", 20),
];

/// Admission plugins that every EKS cluster runs, or that do nothing any more.
const RUN_BY_EKS: &[&str] = &[
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "ExtendedResourceToleration",
    "LimitRanger",
    "MutatingAdmissionWebhook",
    "NamespaceLifecycle",
    "NodeRestriction",
    "PersistentVolumeClaimResize",
    "PersistentVolumeLabel",
    "PodSecurity",
    "Priority",
    "ResourceQuota",
    "RuntimeClass",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
];

fn run(i: &Input, r: &mut Report) {
    let Some(api) = i
        .snapshot
        .kops
        .cluster
        .as_ref()
        .and_then(|c| c.pointer("/spec/kubeAPIServer"))
    else {
        return;
    };
    gates(i.cx.green_minor, api, r);
    groups(api, r);
    plugins(api, r);
    flags(api, r);
}

/// Each key and value of a map of the API server's settings, values as text.
fn map<'v>(api: &'v Value, key: &str) -> impl Iterator<Item = (&'v String, String)> {
    api.get(key)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(k, v)| (k, v.as_str().map_or_else(|| v.to_string(), String::from)))
}

/// Gates that kops itself sets when it moves blue to the CSI driver: every version of EKS has that behind it.
const CSI_MIGRATION: &[&str] = &[
    "CSIMigration",
    "CSIMigrationAWS",
    "CSIMigrationAWSComplete",
    "InTreePluginAWSUnregister",
];

fn gates(green: u32, api: &Value, r: &mut Report) {
    for (gate, on) in map(api, "featureGates") {
        if CSI_MIGRATION.contains(&gate.as_str()) && on == "true" {
            continue;
        }
        let object = format!("kops/spec.kubeAPIServer.featureGates.{gate}");
        let general = GENERAL.iter().any(|(g, m)| g == gate && *m <= green);
        match (general, on.as_str()) {
            (true, "true") => r.info(
                object,
                format!("feature gate {gate} is on for everybody in 1.{green}"),
                "Nothing to do.",
            ),
            (true, _) => r.warning(
                object,
                format!(
                    "feature gate {gate} is off on blue and cannot be switched off in 1.{green}"
                ),
                "Find out why it was switched off.",
            ),
            (false, _) => r.found(
                object,
                format!("feature gate {gate}={on} cannot be set on EKS"),
            ),
        }
    }
}

fn groups(api: &Value, r: &mut Report) {
    for (group, on) in map(api, "runtimeConfig") {
        let object = format!("kops/spec.kubeAPIServer.runtimeConfig.{group}");
        let alpha = group.contains("alpha") || group == "api/all";
        if on != "false" && alpha {
            r.blocker(
                object,
                format!(
                    "API group setting {group}={on} cannot be set on EKS, which serves no alpha API"
                ),
                "Move its objects to a served version.",
            );
        } else {
            r.warning(
                object,
                format!("API group setting {group}={on} cannot be set on EKS"),
                "Check that nothing relies on the API being there, or on its being away.",
            );
        }
    }
}

fn plugins(api: &Value, r: &mut Report) {
    let list = |key: &str| {
        api.get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
    };
    for key in [
        "admissionControl",
        "enableAdmissionPlugins",
        "appendAdmissionPlugins",
    ] {
        for p in list(key).filter(|p| !RUN_BY_EKS.contains(p)) {
            r.warning(
                format!("kops/spec.kubeAPIServer.{key}.{p}"),
                format!("admission plugin {p} does not run on EKS"),
                "Replace it by Pod Security labels or a policy engine.",
            );
        }
    }
    for p in list("disableAdmissionPlugins").filter(|p| RUN_BY_EKS.contains(p)) {
        r.warning(
            format!("kops/spec.kubeAPIServer.disableAdmissionPlugins.{p}"),
            format!("admission plugin {p} is off on blue and runs on every EKS cluster"),
            "Check what it would refuse or change.",
        );
    }
}

fn flags(api: &Value, r: &mut Report) {
    // (key, what, whether objects or callers stop working without it, remedy)
    for (key, what, stops, remedy) in [
        (
            "authenticationTokenWebhookConfigFile",
            "webhook authentication",
            true,
            "Replace it before the migration.",
        ),
        (
            "authorizationWebhookConfigFile",
            "webhook authorisation",
            true,
            "Replace it before the migration.",
        ),
        (
            "auditWebhookConfigFile",
            "an audit webhook",
            true,
            "Read EKS's audit log instead.",
        ),
        (
            "tokenAuthFile",
            "static tokens",
            true,
            "Replace them before the migration.",
        ),
        (
            "basicAuthFile",
            "basic authentication",
            true,
            "Replace it before the migration.",
        ),
        (
            "serviceNodePortRange",
            "another NodePort range",
            false,
            "Services on ports outside 30000-32767 must move.",
        ),
    ] {
        let Some(v) = api.get(key).filter(|v| !v.is_null()) else {
            continue;
        };
        let severity = if stops {
            Severity::Blocker
        } else {
            Severity::Warning
        };
        r.say(
            severity,
            format!("kops/spec.kubeAPIServer.{key}"),
            format!(
                "{what} ({}) cannot be had on EKS in this way",
                v.as_str().unwrap_or("set")
            ),
            remedy,
        );
    }
}
