//! Reports of clusters of several ages, each read against kops.md 1.4, 6 and mission.md D1, D2, D4.

use super::*;
use crate::snapshot::mask::Key;
use serde_json::json;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).into()
}

fn corpus(name: &str) -> (Spec, Snapshot) {
    let path = root()
        .join("tests/corpus/kops")
        .join(format!("{name}.yaml"));
    let mut s = crate::snapshot::files::from_files(&[path], None, &Key::from_bytes([7; 32]))
        .expect("the corpus is readable")
        .snapshot;
    s.taken = Some("2026-11-30".into());
    let mut spec = crate::spec::defaults_for(&s);
    spec.green.version = "1.35".into();
    (spec, s)
}

#[track_caller]
fn reads(name: &str) {
    let (spec, s) = corpus(name);
    let said = hazards(&spec, &s).lines().join("\n") + "\n";
    let file = root().join(format!("src/plan/hazards/expected/{name}.txt"));
    if std::env::var_os("CROSSFADE_BLESS").is_some() {
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("writable");
        std::fs::write(&file, &said).expect("writable");
    }
    let wanted = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(
        said, wanted,
        "{name}: read the new text against the reference, then bless it"
    );
}

#[test]
fn a_cluster_of_kops_1_11_must_pass_etcd_and_24_hops() {
    reads("minimal-kops1.11");
}
#[test]
fn a_cluster_of_the_documentation_runs_1_6_and_says_it_allows_everything() {
    reads("docs-ha-private-bastion");
}
#[test]
fn a_cluster_with_legacy_iam_loses_it_on_the_way() {
    reads("legacy-iam-kops1.17");
}
#[test]
fn a_cluster_with_own_profiles_has_its_iam_elsewhere() {
    reads("existing-iam-kops1.18");
}
#[test]
fn a_cluster_on_weave_is_stuck_at_1_22() {
    reads("private-dns-zone-kops1.26");
}
#[test]
fn a_cluster_on_canal_at_1_21() {
    reads("canal-kops1.33");
}
#[test]
fn a_cluster_on_docker_at_1_21() {
    reads("docker-custom-kops1.22");
}
#[test]
fn a_cluster_of_1_32_has_three_hops() {
    reads("cilium-eni");
}
#[test]
fn a_gossip_cluster_newer_than_green_has_no_hops() {
    reads("gossip-aws-kops1.36");
}

#[track_caller]
fn the<'h>(h: &'h Hazards, id: &str) -> &'h Hazard {
    h.hazards
        .iter()
        .find(|x| x.id == id)
        .unwrap_or_else(|| panic!("no {id}: {:#?}", h.hazards))
}
fn none(h: &Hazards, id: &str) {
    assert!(
        h.hazards.iter().all(|x| x.id != id),
        "{id}: {:?}",
        h.hazards
    );
}

/// The only clock is `snapshot.taken`.
#[test]
fn without_a_date_nothing_is_said_of_ages() {
    let (spec, mut s) = corpus("minimal-kops1.11");
    s.taken = None;
    let h = hazards(&spec, &s);
    for id in ["HAZ-hops", "HAZ-ami-age", "HAZ-ca-age"] {
        assert_eq!(the(&h, id).severity, Severity::NotChecked);
        assert!(
            the(&h, id).what.contains("the snapshot has no date"),
            "{:?}",
            the(&h, id)
        );
    }
    assert_eq!(
        (h.oldest_supported, h.total.hops_to_supported),
        (None, None)
    );
    assert_eq!(h.total.hops, 24, "1.11 to 1.35 needs no date");
}

/// mission.md D1: etcd2, then etcd-manager, then etcd3; never in one go.
#[test]
fn legacy_etcd_2_blocks_and_costs_two_more_rolls_of_the_masters() {
    let (spec, mut s) = corpus("ha-kops1.16");
    let before = hazards(&spec, &s);
    none(&before, "HAZ-etcd-legacy");
    let groups = s.kops.instance_groups.len();
    assert_eq!(before.total.rolling_updates, 21 * groups, "1.14 to 1.35");
    let Some(c) = s.kops.cluster.as_mut() else {
        panic!("a cluster")
    };
    for e in c["spec"]["etcdClusters"].as_array_mut().expect("etcd") {
        e["provider"] = json!("Legacy");
        e["version"] = json!("2.2.1");
    }
    let h = hazards(&spec, &s);
    assert_eq!(the(&h, "HAZ-etcd-legacy").severity, Severity::Blocker);
    assert!(
        the(&h, "HAZ-etcd2")
            .what
            .contains("main 2.2.1, events 2.2.1")
    );
    assert_eq!(
        h.total.rolling_updates,
        21 * groups + 2 * 3,
        "three masters, each a group"
    );
    let hop = h.hops.iter().find(|x| x.to == "1.18").expect("a hop");
    assert!(
        hop.breaks
            .iter()
            .any(|b| b.what == "etcd provider Legacy is refused")
    );
}

/// removed-apis.yaml: what is applied in an old version breaks, even if the server hands it out in a newer one.
#[test]
fn objects_are_counted_at_the_hop_that_refuses_them() {
    let (spec, mut s) = corpus("ha-kops1.16");
    let applied = json!({"apiVersion": "extensions/v1beta1", "kind": "Deployment", "metadata": {"name": "b", "namespace": "x"}}).to_string();
    let pod = |spec: serde_json::Value| json!({"metadata": {}, "spec": spec});
    s.blue.objects = vec![
        json!({"apiVersion": "extensions/v1beta1", "kind": "Ingress", "metadata": {"name": "a", "namespace": "x"}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "b", "namespace": "x", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": applied}},
            "spec": {"template": pod(json!({"containers": [], "tolerations": [{"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}]}))}}),
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "b-1", "namespace": "x", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": applied}, "ownerReferences": [{"kind": "Deployment", "name": "b"}]},
            "spec": {"template": pod(json!({"containers": [], "tolerations": [{"key": "node-role.kubernetes.io/master"}]}))}}),
        json!({"apiVersion": "policy/v1beta1", "kind": "PodSecurityPolicy", "metadata": {"name": "p"}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": {"awsElasticBlockStore": {"volumeID": "vol-1"}}}),
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "gp2"}, "provisioner": "kubernetes.io/aws-ebs"}),
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "kube2iam", "namespace": "kube-system"},
            "spec": {"template": pod(json!({"containers": [{"name": "a", "image": "jtblin/kube2iam:0.10.9"}], "volumes": [{"name": "d", "hostPath": {"path": "/var/run/docker.sock"}}]}))}}),
    ];
    let h = hazards(&spec, &s);
    let at = |to: &str| -> Vec<(Option<usize>, String)> {
        let hop = h.hops.iter().find(|x| x.to == to).expect("a hop");
        hop.breaks
            .iter()
            .map(|b| (b.objects, b.what.clone()))
            .collect()
    };
    assert!(
        at("1.16").contains(&(
            Some(1),
            "extensions/v1beta1 Deployment is no longer served".into()
        )),
        "{:?}",
        at("1.16")
    );
    assert!(at("1.22").contains(&(
        Some(1),
        "extensions/v1beta1 Ingress is no longer served".into()
    )));
    assert!(
        at("1.24").contains(&(
            Some(1),
            "workloads that select or tolerate node-role.kubernetes.io/master".into()
        )),
        "an owned ReplicaSet is not counted twice"
    );
    assert!(at("1.24").contains(&(
        Some(1),
        "volumes of docker's socket or files stay empty".into()
    )));
    assert!(
        at("1.25")
            .iter()
            .any(|(n, w)| *n == Some(1) && w.starts_with("PodSecurityPolicies end"))
    );
    assert!(
        at("1.27")
            .iter()
            .any(|(n, w)| *n == Some(1) && w.starts_with("in-tree EBS volumes"))
    );
    assert!(the(&h, "HAZ-removed-apis").what.starts_with("3 objects are kept or applied in versions that end on the way (1.16: 1, 1.22: 1, 1.25: 1)"), "{:?}", the(&h, "HAZ-removed-apis"));
    assert!(
        the(&h, "HAZ-in-tree-volumes")
            .what
            .contains("1 in-tree EBS volumes and 1 storage classes")
    );
    assert!(
        the(&h, "HAZ-iam-agent")
            .what
            .starts_with("kube2iam gives pods")
    );
    assert_eq!(the(&h, "HAZ-psp").until.as_deref(), Some("Kubernetes 1.24"));
}

/// mission.md D4: stuck at 1.16 to 1.17, workers never Ready, labels lost.
#[test]
fn labels_that_a_kubelet_may_not_set_stop_the_hop_to_1_17() {
    let (spec, mut s) = corpus("ha-kops1.16");
    let at = |s: &Snapshot| {
        let h = hazards(&spec, s);
        h.hops
            .iter()
            .find(|x| x.to == "1.17")
            .expect("a hop")
            .breaks
            .len()
    };
    assert_eq!(at(&s), 0);
    let worker = s
        .kops
        .instance_groups
        .iter_mut()
        .find(|g| g["spec"]["role"] == "Node")
        .expect("a worker");
    worker["spec"]["nodeLabels"] =
        json!({"kops.k8s.io/instancegroup": "nodes", "node-role.kubernetes.io/ingress": ""});
    assert_eq!(at(&s), 1);
}

#[test]
fn the_day_of_an_image_is_read_from_its_name() {
    let day = |n: &str| facts::image_day(n).map(|d| d.to_string());
    assert_eq!(
        day("kope.io/k8s-1.14-debian-stretch-amd64-hvm-ebs-2019-08-16").as_deref(),
        Some("2019-08-16")
    );
    assert_eq!(
        day("ubuntu/images/hvm-ssd/ubuntu-focal-20.04-amd64-server-20220404").as_deref(),
        Some("2022-04-04")
    );
    assert_eq!(
        day("ubuntu-os-cloud/ubuntu-2604-resolute-amd64-v20221018").as_deref(),
        Some("2022-10-18")
    );
    assert_eq!(day("ami-1234"), None);
    assert_eq!(day("x-20221399"), None, "no such day");
}

/// eks.md 1.1: 1.31 ended on 2026-11-26, 1.32 ends on 2027-03-23; kops 1.36 accepts 1.31 on.
#[test]
fn the_oldest_supported_version_moves_with_the_day() {
    let oldest = |day: &str| {
        let (spec, mut s) = corpus("minimal-kops1.11");
        s.taken = Some(day.into());
        hazards(&spec, &s).oldest_supported
    };
    assert_eq!(oldest("2026-11-26").as_deref(), Some("1.31"));
    assert_eq!(oldest("2026-11-27").as_deref(), Some("1.32"));
    assert_eq!(oldest("2027-03-24").as_deref(), Some("1.33"));
}

#[test]
fn nothing_read_gives_a_report_that_says_so() {
    let (spec, _) = corpus("minimal-kops1.11");
    let h = hazards(&spec, &Snapshot::default());
    assert_eq!(h.line(), None);
    assert!(h.hazards.iter().all(|x| x.severity == Severity::NotChecked));
    assert!(h.lines().iter().any(|l| l == "  not known"));
}
