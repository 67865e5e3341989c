//! Rules 69 to 71: Helm, GitOps, operators that own cloud things.

use super::work::{Work, text};
use crate::object::{annotation, label};
use crate::plan::model::Severity;

/// Groups whose objects own things in AWS (rule 71).
const CLOUD: &[&str] = &[
    "crossplane.io",
    "upbound.io",
    "services.k8s.aws",
    "cluster.x-k8s.io",
    "karpenter.sh",
    "karpenter.k8s.aws",
];

/// Marks what tools manage.
pub(super) fn rewrite(w: &mut Work) {
    if w.kind() == "Secret" && text(w.original, "/type") == Some("helm.sh/release.v1") {
        let status = label(w.original, "status").unwrap_or("").to_string();
        let release = label(w.original, "name").unwrap_or("?").to_string();
        w.tidied(69);
        if status.starts_with("pending") {
            w.find(
                "API-12",
                Severity::Blocker,
                69,
                format!("release {release} is {status}: Helm is in the middle of something"),
                "Finish or roll back the release on blue.",
            );
        } else if status != "superseded" {
            w.find(
                "API-12",
                Severity::Warning,
                69,
                format!("the record of release {release} is copied as it is; a manifest in it may name removed APIs"),
                "Run the mapkubeapis plugin on green before the next upgrade.",
            );
        }
    }
    if w.kind() == "ConfigMap" && label(w.original, "OWNER") == Some("TILLER") {
        w.skip(69);
        w.find(
            "API-12",
            Severity::Warning,
            69,
            "a record of Helm 2",
            "Move the release to Helm 3 first.",
        );
    }
    let group = w.id.group().to_string();
    let gitops_kind = group == "argoproj.io"
        && matches!(w.kind(), "Application" | "ApplicationSet" | "AppProject")
        || group.ends_with("toolkit.fluxcd.io");
    if gitops_kind {
        w.hold(70);
        w.find(
            "GIT-01",
            Severity::Blocker,
            70,
            "a GitOps object: its reconciler would undo every hold, and delete on both sides",
            "Suspend it on blue and list it under workloads.skip.",
        );
    } else if annotation(w.original, "argocd.argoproj.io/tracking-id").is_some()
        || label(w.original, "argocd.argoproj.io/instance").is_some()
        || label(w.original, "kustomize.toolkit.fluxcd.io/name").is_some()
        || label(w.original, "helm.toolkit.fluxcd.io/name").is_some()
    {
        w.hold(70);
        w.find(
            "GIT-01",
            Severity::Warning,
            70,
            "is kept by a GitOps tool, which may undo what freeze does on blue",
            "Suspend the reconciler before migrate.",
        );
    }
    if CLOUD
        .iter()
        .any(|c| group == *c || group.ends_with(&format!(".{c}")))
    {
        w.refuse(71);
        w.find(
            "SNG-04",
            Severity::Blocker,
            71,
            "owns things in AWS: two clusters that reconcile it would fight over them",
            "Move it by its own tool, and list it under workloads.skip.",
        );
    }
}
