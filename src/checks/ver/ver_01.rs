//! VER-01: what changes between the versions of both sides, one finding each, so that each can be confirmed by itself.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use crate::snapshot::kops::{Source, effective};

pub(super) const CHECK: Check = Check {
    id: "VER-01",
    severity: Severity::Warning,
    question: "Which changes of behaviour lie between the two versions?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Read it, and confirm it by a waiver of this object with what you found.",
    source: "checks.md VER-01",
    run,
};

/// (minor, key, what changes there). eks.md 1.1; removed-apis.yaml, removed_features.
const CROSSINGS: &[(u32, &str, &str)] = &[
    (
        16,
        "workload-betas",
        "Deployments, DaemonSets, StatefulSets and ReplicaSets of extensions/v1beta1 and apps/v1beta1, v1beta2 end: charts and pipelines that still write them fail",
    ),
    (
        22,
        "beta-apis",
        "Ingress, CRD and webhook betas end; controllers that still speak them stop working",
    ),
    (
        24,
        "dockershim",
        "no dockershim: containers run in containerd, docker.sock is gone",
    ),
    (
        24,
        "token-secrets",
        "no token Secrets made by themselves for service accounts",
    ),
    (
        25,
        "pod-security",
        "no PodSecurityPolicy, and nothing of what it filled into pods",
    ),
    (
        27,
        "ebs-csi",
        "EBS by CSI only: every volume needs the driver and its role",
    ),
    (
        30,
        "default-class",
        "no class is the default by itself: claims without a class stay pending",
    ),
    (
        34,
        "containerd-2",
        "containerd 2: images of schema 1 are refused",
    ),
    (35, "cgroup-v1", "kubelet refuses cgroup v1"),
    (
        36,
        "addresses",
        "stricter validation of addresses at creation: a copy is a creation",
    ),
    (36, "git-repo", "kubelet refuses gitRepo volumes"),
];

fn run(i: &Input, r: &mut Report) {
    let Some(blue) = super::blue_minor(i) else {
        r.not_checked(
            "blue",
            "blue's version is not known",
            "Run discover against blue, or give the kops cluster document.",
        );
        return;
    };
    let green = i.cx.green_minor;
    if green < blue {
        r.blocker(
            "green.version",
            format!("green (1.{green}) would be older than blue (1.{blue})"),
            "Choose a version that is not older.",
        );
    }
    // The image of the nodes changes for every kops blue, whatever the versions.
    if i.snapshot.kops.cluster.is_some() {
        r.info(
            "green.version/node-image",
            "green's nodes run Amazon Linux 2023, not the image of kops: cgroup v2, which old Java, .NET and agents misread; other packages, paths and users on the node",
            "Read it; try what looks at its node (agents, hostPath, JVM heap by container limit) on green first.",
        );
    }
    // Each version that breaks something is a warning, however near the two are (eks.md 1.1).
    for (minor, key, what) in CROSSINGS {
        if *key == "dockershim" && !docker_unsaid(i) {
            continue;
        }
        if blue < *minor && *minor <= green {
            r.found(
                format!("green.version/1.{minor}/{key}"),
                format!("1.{minor}: {what}"),
            );
        }
    }
}

/// Whether blue runs docker, or may, without its spec saying so. What is written is told by KOPS-runtime.
fn docker_unsaid(i: &Input) -> bool {
    let kops = &i.snapshot.kops;
    if kops.cluster.is_none() {
        return true;
    }
    let runtime = effective(kops).container_runtime();
    runtime.value == "docker" && runtime.source != Source::Spec
}
