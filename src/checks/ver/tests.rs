use crate::checks::testing::*;
use crate::plan::model::Severity::{Blocker, Info, NotChecked, Warning};
use crate::snapshot::model::Snapshot;
use serde_json::{Value, json};

fn blue(version: &str) -> Snapshot {
    let mut s = snapshot(vec![]);
    s.kops.cluster = Some(kops(json!({"kubernetesVersion": version})));
    s
}

#[test]
fn ver_01_each_change_that_is_crossed_is_confirmed_by_itself() {
    let s = blue("1.21.14");
    let object = "green.version/1.25/pod-security";
    fires(
        &spec(),
        &s,
        "VER-01",
        Warning,
        object,
        "no PodSecurityPolicy",
    );
    let read = spec_with(
        json!({"waivers": [{"check": "VER-01", "object": object, "reason": "we use Pod Security labels"}]}),
    );
    let p = crate::plan::plan(&read, &s);
    let (waived, standing): (Vec<_>, Vec<_>) = p
        .findings
        .iter()
        .filter(|f| f.id == "VER-01")
        .partition(|f| f.waived.is_some());
    assert_eq!(waived.len(), 1);
    assert!(
        standing
            .iter()
            .any(|f| f.object == "green.version/1.24/token-secrets")
    );
    fires(
        &spec(),
        &blue("v1.37.0"),
        "VER-01",
        Blocker,
        "green.version",
        "older than blue",
    );
    fires(
        &spec(),
        &Snapshot::default(),
        "VER-01",
        NotChecked,
        "blue",
        "not known",
    );
}

fn crossed(version: &str, runtime: Option<&str>) -> Vec<String> {
    let mut s = blue(version);
    if let (Some(c), Some(r)) = (&mut s.kops.cluster, runtime) {
        c["spec"]["containerRuntime"] = json!(r);
    }
    crate::plan::plan(&spec(), &s)
        .findings
        .iter()
        .filter(|f| f.id == "VER-01" && f.severity == Warning)
        .map(|f| f.object.trim_start_matches("green.version/").to_string())
        .collect()
}

/// eks.md 1.1: a warning for each version that breaks something, also where the two are near.
#[test]
fn ver_01_near_versions_are_not_silent_and_the_node_image_changes_whatever_they_are() {
    assert_eq!(
        crossed("1.33.1", None),
        [
            "1.34/containerd-2",
            "1.35/cgroup-v1",
            "1.36/addresses",
            "1.36/git-repo"
        ]
    );
    assert_eq!(crossed("1.35.0", None), ["1.36/addresses", "1.36/git-repo"]);
    for version in ["1.15.0", "1.33.1", "1.36.0"] {
        fires(
            &spec(),
            &blue(version),
            "VER-01",
            Info,
            "green.version/node-image",
            "Amazon Linux 2023",
        );
    }
}

#[test]
fn ver_01_dockershim_ends_only_for_who_runs_docker_without_a_word_and_the_first_betas_for_the_oldest()
 {
    let has = |version: &str, runtime: Option<&str>, key: &str| {
        crossed(version, runtime).iter().any(|o| o == key)
    };
    // kops runs docker below Kubernetes 1.20 when nothing is said (kops.md 1.4).
    assert!(has("1.19.3", None, "1.24/dockershim"));
    assert!(!has("1.20.0", None, "1.24/dockershim"));
    assert!(!has("1.19.3", Some("containerd"), "1.24/dockershim"));
    assert!(
        !has("1.22.0", Some("docker"), "1.24/dockershim"),
        "written: KOPS-runtime speaks"
    );
    assert!(has("1.15.0", None, "1.16/workload-betas"));
    assert!(!has("1.16.4", None, "1.16/workload-betas"));
}

#[test]
fn ver_02_controllers_that_cannot_work_on_green_block_and_newer_ones_do_not() {
    for (old, new) in [
        (
            "quay.io/kubernetes-ingress-controller/nginx-ingress-controller:0.30.0",
            "registry.k8s.io/ingress-nginx/controller:v1.9.4@sha256:ab",
        ),
        (
            "quay.io/jetstack/cert-manager-controller:v1.1.0",
            "quay.io/jetstack/cert-manager-controller:v1.14.4",
        ),
        (
            "docker.io/amazon/aws-alb-ingress-controller:v1.1.9",
            "public.ecr.aws/eks/aws-load-balancer-controller:v2.7.0",
        ),
        (
            "k8s.gcr.io/autoscaling/cluster-autoscaler:v1.21.0",
            "registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.0",
        ),
        (
            "ghcr.io/kedacore/keda:2.8.1",
            "ghcr.io/kedacore/keda:2.16.0",
        ),
        ("velero/velero:v1.6.2", "velero/velero:v1.17.0"),
        (
            "quay.io/coreos/prometheus-operator:v0.38.1",
            "quay.io/prometheus-operator/prometheus-operator:v0.70.0",
        ),
    ] {
        fires(
            &spec(),
            &snapshot(vec![runs("x", old)]),
            "VER-02",
            Blocker,
            "deployment/n/x",
            "too old",
        );
        quiet(&spec(), &snapshot(vec![runs("x", new)]), "VER-02");
    }
    for (image, part) in [
        ("docker.io/istio/pilot:1.10.0", "up to 1.21"),
        ("traefik:1.7.34-alpine", "v1beta1"),
        (
            "registry.k8s.io/autoscaling/cluster-autoscaler:v1.30.1",
            "its own minor",
        ),
    ] {
        fires(
            &spec(),
            &snapshot(vec![runs("x", image)]),
            "VER-02",
            Warning,
            "deployment/n/x",
            part,
        );
    }
}

#[test]
fn ver_02_what_green_gets_anew_is_not_asked() {
    let mut kept = runs(
        "cluster-autoscaler",
        "k8s.gcr.io/autoscaling/cluster-autoscaler:v1.21.0",
    );
    kept["metadata"]["namespace"] = json!("kube-system");
    quiet(&spec(), &snapshot(vec![kept]), "VER-02");
}

#[test]
fn ver_03_another_version_of_the_ingress_controller_on_green_is_named() {
    let mut s = snapshot(vec![runs("ingress", "traefik:2.9.1")]);
    quiet(&spec(), &s, "VER-03");
    s.green = Some(crate::snapshot::model::Cluster {
        objects: vec![runs("ingress", "traefik:3.1.0")],
        ..Default::default()
    });
    fires(
        &spec(),
        &s,
        "VER-03",
        Warning,
        "deployment/n/ingress",
        "2.9.1 on blue and 3.1.0 on green",
    );
    let nginx = snapshot(vec![runs(
        "ingress",
        "registry.k8s.io/ingress-nginx/controller:v1.9.4",
    )]);
    fires(
        &spec(),
        &nginx,
        "VER-03",
        Info,
        "deployment/n/ingress",
        "retired",
    );
}

#[test]
fn ver_04_settings_of_coredns_and_the_autoscaler_that_green_does_not_have_are_named() {
    let coredns = |inside: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "coredns", "namespace": "kube-system"},
            "data": {"Corefile": format!(".:53 {{\n    errors\n    kubernetes cluster.local {{\n      pods insecure\n    }}\n    {inside}\n    cache 30\n}}\n")}})
    };
    let autoscaler = |args: Value| {
        let mut o = runs("cluster-autoscaler", "x:1.21.0");
        o["metadata"]["namespace"] = json!("kube-system");
        o["spec"]["template"]["spec"]["containers"][0]["command"] = args;
        o
    };
    let plain = vec![
        coredns("forward . /etc/resolv.conf"),
        autoscaler(json!(["./cluster-autoscaler", "--v=4"])),
    ];
    quiet(&spec(), &snapshot(plain), "VER-04");
    let set = vec![
        coredns("rewrite name a.test b.test"),
        autoscaler(json!(["--expander=priority"])),
    ];
    let mut s = snapshot(set);
    fires(
        &spec(),
        &s,
        "VER-04",
        Warning,
        "configmap/kube-system/coredns",
        "rewrite name a.test b.test",
    );
    fires(
        &spec(),
        &s,
        "VER-04",
        Warning,
        "deployment/kube-system/cluster-autoscaler",
        "--expander=priority",
    );
    let own = snapshot(vec![coredns("forward . 10.0.0.2")]);
    fires(
        &spec(),
        &own,
        "VER-04",
        Warning,
        "configmap/kube-system/coredns",
        "forward . 10.0.0.2",
    );
    s.blue.objects.truncate(1);
    s.green = Some(crate::snapshot::model::Cluster {
        objects: vec![coredns("rewrite name a.test b.test")],
        ..Default::default()
    });
    quiet(&spec(), &s, "VER-04");
}

#[test]
fn ver_05_settings_of_the_control_plane_are_weighed_one_by_one() {
    let with = |api: Value| {
        let mut s = snapshot(vec![]);
        s.kops.cluster = Some(kops(json!({"kubeAPIServer": api})));
        s
    };
    let at = |rest: &str| format!("kops/spec.kubeAPIServer.{rest}");
    let s = with(
        json!({"featureGates": {"CSIMigrationAWS": "true", "InTreePluginAWSUnregister": "true", "HPAScaleToZero": "true", "TTLAfterFinished": "true", "EphemeralContainers": "false"},
        "runtimeConfig": {"batch/v2alpha1": "true", "policy/v1beta1": "false"},
        "enableAdmissionPlugins": ["NodeRestriction", "EventRateLimit"], "disableAdmissionPlugins": ["PersistentVolumeClaimResize"],
        "tokenAuthFile": "/srv/tokens", "oidcIssuerURL": "https://login.test"}),
    );
    for (severity, object, part) in [
        (Blocker, "featureGates.HPAScaleToZero", "cannot be set"),
        (Info, "featureGates.TTLAfterFinished", "on for everybody"),
        (
            Warning,
            "featureGates.EphemeralContainers",
            "cannot be switched off",
        ),
        (Blocker, "runtimeConfig.batch/v2alpha1", "no alpha API"),
        (Warning, "runtimeConfig.policy/v1beta1", "cannot be set"),
        (
            Warning,
            "enableAdmissionPlugins.EventRateLimit",
            "does not run",
        ),
        (
            Warning,
            "disableAdmissionPlugins.PersistentVolumeClaimResize",
            "off on blue",
        ),
        (Blocker, "tokenAuthFile", "static tokens"),
    ] {
        fires(&spec(), &s, "VER-05", severity, &at(object), part);
    }
    // kops's own gates of the CSI migration are no finding, and IAM-07 speaks of OIDC.
    assert_eq!(said(&crate::plan::plan(&spec(), &s), "VER-05").len(), 8);
    quiet(
        &spec(),
        &with(json!({"enableAdmissionPlugins": ["NodeRestriction"], "anonymousAuth": false})),
        "VER-05",
    );
    fires(
        &spec(),
        &Snapshot::default(),
        "VER-05",
        NotChecked,
        "VER-05",
        "kops Cluster document",
    );
}

#[test]
fn eks_version_says_how_long_a_version_is_supported() {
    let wants = |v: &str| spec_with(json!({"green": {"name": "g", "version": v}}));
    let s = snapshot(vec![]);
    quiet(&wants("1.35"), &s, "EKS-version");
    fires(
        &wants("1.34"),
        &s,
        "EKS-version",
        Warning,
        "green.version",
        "extended support",
    );
    fires(
        &wants("1.31"),
        &s,
        "EKS-version",
        Blocker,
        "green.version",
        "any more",
    );
}
