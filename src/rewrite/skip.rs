//! Rules 22 to 28 and the user's own list: what is never copied.

use super::work::{Work, items, text};
use crate::object::{annotation, label};
use crate::plan::model::Severity;
use serde_json::Value;

/// Kinds that only a running cluster makes (rule 22).
const RUNTIME: &[&str] = &[
    "Event",
    "Lease",
    "Node",
    "CSINode",
    "VolumeAttachment",
    "CSIStorageCapacity",
    "CertificateSigningRequest",
    "ControllerRevision",
    "PodMetrics",
    "NodeMetrics",
    "ComponentStatus",
];
/// Kinds that a controller makes again from their parents (rule 27).
const CHILDREN: &[&str] = &[
    "CertificateRequest",
    "Order",
    "Challenge",
    "PolicyEndpoint",
    "CiliumEndpoint",
    "CiliumIdentity",
    "CiliumNode",
    "IPAMBlock",
    "IPAMHandle",
    "BlockAffinity",
    "CNINode",
    "VerticalPodAutoscalerCheckpoint",
];
/// Calico's own configuration of blue's network: never copied (rule 67).
const CALICO_CONFIG: &[&str] = &[
    "IPPool",
    "BGPConfiguration",
    "BGPPeer",
    "FelixConfiguration",
    "ClusterInformation",
    "IPReservation",
    "KubeControllersConfiguration",
];
/// Names of kops's managed add-ons in kube-system (rule 26).
const ADDONS: &[&str] = &[
    "coredns",
    "kube-dns",
    "coredns-autoscaler",
    "kube-dns-autoscaler",
    "kube-proxy",
    "dns-controller",
    "kops-controller",
    "calico-node",
    "calico-kube-controllers",
    "calico-config",
    "calico-typha",
    "canal",
    "weave-net",
    "kube-flannel-ds",
    "cilium",
    "cilium-operator",
    "aws-node",
    "aws-cloud-controller-manager",
    "ebs-csi-controller",
    "ebs-csi-node",
    "ebs-csi-controller-sa",
    "ebs-csi-node-sa",
    "cluster-autoscaler",
    "metrics-server",
    "aws-node-termination-handler",
    "pod-identity-webhook",
    "aws-iam-authenticator",
    "node-local-dns",
    "kube-router",
    "etcd-manager-main",
    "etcd-manager-events",
];
/// Namespaces that green has of its own.
const SYSTEM_NAMESPACES: &[&str] = &["kube-system", "kube-public", "kube-node-lease", "default"];

/// Decides whether the object is copied at all.
pub(super) fn decide(w: &mut Work) {
    let id = w.id.to_string();
    if w.cx.skips(&id, w.namespace(), w.name()) {
        w.skip_by("spec workloads.skip");
        return;
    }
    if let Some(why) = w.cx.replaced.get(&id) {
        let why = why.clone();
        w.skip_by(&why);
        return;
    }
    let kind = w.kind().to_string();
    let kind = kind.as_str();
    if RUNTIME.contains(&kind) {
        w.skip(22);
    } else if leader_lock(w) {
        w.skip(23);
    } else if generated(w, kind) {
        w.skip(24);
    } else if bootstrap(w, kind) {
        w.skip(25);
    } else if kind == "LimitRange" && w.namespace() == "default" && w.name() == "limits" {
        kops_limits(w);
    } else if kops(w, kind) {
        w.skip(26);
        if kind == "ConfigMap" && w.name() == "coredns" {
            port_corefile(w);
        }
    } else if CHILDREN.contains(&kind) || lbc_child(w, kind) {
        w.skip(27);
    } else if CALICO_CONFIG.contains(&kind) && w.id.group().ends_with("projectcalico.org") {
        w.skip(67);
    } else {
        finished(w, kind);
    }
}

/// Rule 23.
fn leader_lock(w: &Work) -> bool {
    matches!(w.kind(), "Endpoints" | "ConfigMap")
        && (annotation(w.original, "control-plane.alpha.kubernetes.io/leader").is_some()
            || w.name().ends_with("-leader-election")
                && w.original
                    .get("data")
                    .and_then(Value::as_object)
                    .is_none_or(|d| d.is_empty()))
}

/// Rule 24.
fn generated(w: &Work, kind: &str) -> bool {
    match kind {
        "Namespace" => SYSTEM_NAMESPACES.contains(&w.name()),
        "ServiceAccount" => {
            // The default account is copied only for its pull secrets and annotations.
            w.name() == "default"
                && items(w.original, "/imagePullSecrets").next().is_none()
                && w.original
                    .pointer("/metadata/annotations")
                    .and_then(Value::as_object)
                    .is_none_or(|a| a.is_empty())
                && !w
                    .cx
                    .sa_roles
                    .contains_key(&format!("{}/default", w.namespace()))
        }
        "ConfigMap" => matches!(
            w.name(),
            "kube-root-ca.crt" | "openshift-service-ca.crt" | "istio-ca-root-cert"
        ),
        "Service" | "Endpoints" | "EndpointSlice" => {
            w.namespace() == "default" && w.name() == "kubernetes"
        }
        _ => false,
    }
}

/// Flow schemas and priority levels that API servers have made by themselves since 1.18.
const BUILT_IN_FLOW: &[&str] = &[
    "catch-all",
    "endpoint-controller",
    "exempt",
    "global-default",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-system-service-accounts",
    "leader-election",
    "node-high",
    "probes",
    "service-accounts",
    "system",
    "system-leader-election",
    "system-node-high",
    "system-nodes",
    "workload-high",
    "workload-leader-election",
    "workload-low",
];

/// Rule 25.
fn bootstrap(w: &Work, kind: &str) -> bool {
    let name = w.name();
    match kind {
        "ClusterRole" | "ClusterRoleBinding" | "Role" | "RoleBinding" => {
            label(w.original, "kubernetes.io/bootstrapping") == Some("rbac-defaults")
                || name.starts_with("system:")
                || name.starts_with("eks:")
                || matches!(name, "cluster-admin" | "admin" | "edit" | "view")
        }
        "PriorityClass" => name.starts_with("system-"),
        "FlowSchema" | "PriorityLevelConfiguration" => {
            // Servers before 1.23 put no annotation on the objects that they make themselves: there the name tells.
            annotation(w.original, "apf.kubernetes.io/autoupdate-spec").is_some()
                || BUILT_IN_FLOW.contains(&name)
        }
        "ConfigMap" if w.namespace() == "kube-system" => matches!(
            name,
            "extension-apiserver-authentication"
                | "kube-apiserver-legacy-service-account-token-tracking"
                | "aws-auth"
        ),
        "Secret" => text(w.original, "/type") == Some("bootstrap.kubernetes.io/token"),
        "APIService" => label(w.original, "kube-aggregator.kubernetes.io/automanaged").is_some(),
        _ => false,
    }
}

/// Rule 26.
fn kops(w: &Work, kind: &str) -> bool {
    let o = w.original;
    if label(o, "app.kubernetes.io/managed-by") == Some("kops")
        || label(o, "addon.kops.k8s.io/name").is_some()
        || label(o, "k8s-addon").is_some_and(|a| a.ends_with(".addons.k8s.io"))
    {
        return true;
    }
    if matches!(kind, "ClusterRole" | "ClusterRoleBinding") {
        return w.name().starts_with("kops:") || w.name().starts_with("kops-");
    }
    if kind == "StorageClass" {
        return false;
    }
    let owner_is_addon = items(o, "/metadata/ownerReferences")
        .filter_map(|r| r["name"].as_str())
        .any(|n| ADDONS.iter().any(|a| n.starts_with(a)));
    w.namespace() == "kube-system"
        && (ADDONS.contains(&w.name())
            || owner_is_addon
            || label(o, "k8s-app").is_some_and(|a| ADDONS.contains(&a))
            || matches!(kind, "Pod" | "Endpoints" | "EndpointSlice")
            || service_account_token_of_addon(w)
            // The accounts of kube-controller-manager's loops.
            || kind == "ServiceAccount" && w.name().ends_with("-controller")
            || kind == "ServiceAccount" && w.cx.controller_accounts.contains(w.name()))
}

fn service_account_token_of_addon(w: &Work) -> bool {
    w.kind() == "Secret"
        && annotation(w.original, "kubernetes.io/service-account.name").is_some_and(|sa| {
            ADDONS.contains(&sa)
                || sa.ends_with("-controller")
                || w.cx.controller_accounts.contains(sa)
        })
}

/// Without kops's LimitRange pods that request nothing would be packed more densely (rule 26): it is copied, without kops's marks.
fn kops_limits(w: &mut Work) {
    w.copy();
    let Some(labels) = w
        .object
        .pointer_mut("/metadata/labels")
        .and_then(Value::as_object_mut)
    else {
        return w.tidied(26);
    };
    labels.retain(|k, _| {
        !matches!(
            k.as_str(),
            "app.kubernetes.io/managed-by" | "addon.kops.k8s.io/name" | "k8s-addon"
        )
    });
    if labels.is_empty() {
        super::work::take(&mut w.object, "/metadata/labels");
    }
    w.changed(26);
}

/// Custom zones in blue's Corefile are intent (rule 26): they are reported, green's CoreDNS is EKS's.
fn port_corefile(w: &mut Work) {
    let corefile = text(w.original, "/data/Corefile").unwrap_or("");
    let zones: Vec<&str> = corefile
        .lines()
        .filter(|l| !l.starts_with([' ', '\t']) && l.trim_end().ends_with('{'))
        .map(|l| l.trim_end().trim_end_matches('{').trim())
        .filter(|z| !matches!(*z, ".:53" | "."))
        .collect();
    if !zones.is_empty() {
        w.find(
            "VER-04",
            Severity::Warning,
            26,
            format!("blue's CoreDNS serves its own zones: {}", zones.join(", ")),
            "Put these zones into the configuration of green's coredns add-on.",
        );
    }
}

/// Rule 27: what the load balancer controller made.
fn lbc_child(w: &Work, kind: &str) -> bool {
    kind == "TargetGroupBinding"
        && w.original
            .pointer("/metadata/labels")
            .and_then(Value::as_object)
            .is_some_and(|l| {
                l.keys()
                    .any(|k| k.starts_with("ingress.k8s.aws/") || k.starts_with("service.k8s.aws/"))
            })
        || kind == "ConfigMap" && w.name().starts_with("aws-lbc-targets-")
}

/// Rule 28 and 35, 48: finished pods and jobs, mirror pods, generated slices.
fn finished(w: &mut Work, kind: &str) {
    let o = w.original;
    match kind {
        "Pod" => {
            let phase = text(o, "/status/phase").unwrap_or("");
            if annotation(o, "kubernetes.io/config.mirror").is_some()
                || matches!(phase, "Succeeded" | "Failed")
            {
                w.skip(28);
            } else if items(o, "/metadata/ownerReferences").next().is_some() {
                w.skip(27);
            }
        }
        "Job" => {
            let done = items(o, "/status/conditions").any(|c| {
                matches!(c["type"].as_str(), Some("Complete" | "Failed")) && c["status"] == "True"
            });
            let by_cron = items(o, "/metadata/ownerReferences").any(|r| r["kind"] == "CronJob");
            if by_cron {
                w.skip(48);
            } else if done {
                w.skip(28);
                w.find(
                    "WL-02",
                    Severity::Info,
                    28,
                    "a finished Job is not copied: it would run again",
                    "Nothing to do, unless an init container on green waits for it.",
                );
            }
        }
        "ReplicaSet"
            if items(o, "/metadata/ownerReferences").any(|r| r["kind"] == "Deployment") =>
        {
            w.skip(27);
        }
        "EndpointSlice" => {
            let by = label(o, "endpointslice.kubernetes.io/managed-by").unwrap_or("");
            if by.starts_with("endpointslice-controller")
                || by.starts_with("endpointslicemirroring")
            {
                w.skip(35);
            }
        }
        _ => {}
    }
}
