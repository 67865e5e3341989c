//! Values that mean nothing: said, and never replaced by a guess in silence.

use super::{Company, finding, silent};
use crate::plan::model::Severity;
use serde_json::json;

#[test]
fn a_role_that_kops_does_not_know_blocks_and_makes_no_group() {
    let p = Company::new(json!({"role": "Bogus", "machineType": "m5.large"})).plan();
    let f = finding(&p, "KOPS-ig-role");
    assert_eq!(f.severity, Severity::Blocker);
    assert!(f.message.contains("role Bogus is none that kops knows"));
    assert!(p.target.node_groups.is_empty());
    for (role, part) in [
        ("Master", "EKS runs the control plane"),
        ("ControlPlane", "EKS runs the control plane"),
        ("APIServer", "its own API servers"),
        ("Bastion", "no node group"),
    ] {
        let p = Company::new(json!({"role": role, "machineType": "m5.large"})).plan();
        let f = finding(&p, "KOPS-ig-role");
        assert_eq!(f.severity, Severity::Info, "{role}");
        assert!(f.message.contains(part), "{role}: {}", f.message);
    }
}

#[test]
fn a_root_volume_that_cannot_be_made_blocks() {
    for (ig, part) in [
        (json!({"rootVolumeSize": -5}), "of -5 GiB"),
        (json!({"rootVolumeSize": 100_000}), "of 100000 GiB"),
        (json!({"rootVolumeType": "gp9"}), "of type gp9"),
        // Disks that turn cannot be started from.
        (json!({"rootVolumeType": "sc1"}), "of type sc1"),
    ] {
        let mut ig = ig;
        ig["machineType"] = json!("m5.large");
        let p = Company::new(ig).plan();
        let f = finding(&p, "KOPS-ig-disk");
        assert_eq!(f.severity, Severity::Blocker, "{part}");
        assert!(f.message.contains(part), "{}", f.message);
    }
    for ig in [
        json!({"rootVolumeSize": 0}),
        json!({"rootVolumeSize": 64, "rootVolumeType": "io2"}),
    ] {
        let mut ig = ig;
        ig["machineType"] = json!("m5.large");
        silent(&Company::new(ig).plan(), "KOPS-ig-disk");
    }
}

#[test]
fn labels_that_eks_would_refuse_never_reach_green() {
    let c = Company::new(
        json!({"machineType": "m5.large", "nodeLabels": {"tier": "web", "a b": "x", "-x": "y", "Up/name": "z", "note": "two words"}}),
    );
    let group = c.one();
    assert_eq!(group.labels.keys().collect::<Vec<_>>(), ["tier"]);
    let said: Vec<String> = c
        .plan()
        .findings
        .iter()
        .filter(|f| f.id == "KOPS-ig-label" && f.message.contains("is no label"))
        .map(|f| f.message.split('`').nth(1).unwrap_or("").to_string())
        .collect();
    assert_eq!(said, ["-x=y", "Up/name=z", "a b=x", "note=two words"]);
}

#[test]
fn a_kubelet_that_may_run_no_pod_is_named_and_green_is_not_told_so() {
    let p = Company::new(json!({"machineType": "m5.large", "kubelet": {"maxPods": 0}})).plan();
    let f = finding(&p, "KOPS-ig-maxpods");
    assert_eq!(f.severity, Severity::Warning);
    assert!(f.message.contains("maxPods 0 would let no pod run"));
    let told = serde_json::to_string(&p.target.node_groups).expect("plain data");
    assert!(!told.contains("maxPods: 0") && !told.contains("\"maxPods\":0"));
}

#[test]
fn a_version_that_is_none_blocks_and_every_spelling_of_kops_is_one() {
    let of = |version: &str| {
        let mut c = Company::new(json!({"machineType": "m5.large"}));
        c.cluster()["kubernetesVersion"] = json!(version);
        c.plan()
            .findings
            .into_iter()
            .find(|f| f.object == "kops/spec.kubernetesVersion" && f.severity == Severity::Blocker)
    };
    for wrong in ["abc", "v", "1", "2.0.1"] {
        let f = of(wrong).unwrap_or_else(|| panic!("{wrong} goes by"));
        assert_eq!(f.id, "KOPS-version");
        assert!(f.message.contains(&format!("`{wrong}`")));
    }
    for right in [
        "1.21.14",
        "v1.36.0-rc.1",
        "https://storage.googleapis.com/kubernetes-release/release/v1.9.0/",
    ] {
        assert_eq!(of(right), None, "{right}");
    }
}
