//! `explain` and `hazards` as the released binary says them, on a plan made from files.

mod common;
use common::{Dir, Said};
use serde_json::Value;

/// A plan folder of the company "shop", made offline.
fn shop() -> Dir {
    let dir = Dir::new();
    let files = format!("{}/testkit/fixtures/shop", env!("CARGO_MANIFEST_DIR"));
    dir.run(&[
        "discover",
        "--from-files",
        &files,
        "--cluster",
        "shop.test",
        "--out",
        "plans/shop/snapshot",
    ])
    .expect(0);
    let plan = dir.run(&[
        "plan",
        "--snapshot",
        "plans/shop/snapshot",
        "--out",
        "plans/shop/plan.json",
    ]);
    assert!(plan.code == 2 || plan.code == 3, "{}", plan.stderr);
    plan.out_has("(crossfade hazards)");
    dir
}

fn explain(dir: &Dir, what: &str) -> Said {
    dir.run(&["explain", what, "plans/shop"])
}

#[test]
fn a_field_of_the_kops_spec_is_explained_with_what_it_became() {
    let dir = shop();
    // In all documents that set it, with the node group that came of it.
    explain(&dir, "spec.minSize")
        .expect(0)
        .out_has("instancegroup/nodes-eu-west-1a/spec.minSize  2 on blue")
        .out_has("mapped: the smallest size of the node group")
        .out_has("became node group nodes-eu-west-1a: min = 2")
        .out_has("instancegroup/master-eu-west-1a/spec.minSize  1 on blue")
        .out_has("EKS runs the control plane");
    // In one document, named in three ways.
    for what in [
        "instancegroup/nodes-eu-west-1b/spec.minSize",
        "ig/nodes-eu-west-1b/spec.minSize",
        "nodes-eu-west-1b/spec.minSize",
    ] {
        let said = explain(&dir, what);
        said.expect(0).out_has("min = 1");
        assert!(!said.stdout.contains("1a"), "{}", said.stdout);
    }
    // A section, with its findings.
    explain(&dir, "cluster/spec.networking")
        .expect(0)
        .out_has("cluster/spec.networking.calico  {} on blue")
        .out_has("by KOPS-net-calico")
        .out_has("test a connection that must fail");
}

#[test]
fn a_field_that_blue_does_not_set_is_explained_with_the_default_in_force() {
    let dir = shop();
    explain(&dir, "spec.kubelet.maxPods")
        .expect(0)
        .out_has("cluster/spec.kubelet.maxPods  is not set on blue")
        .out_has("by KOPS-kubelet-max-pods");
    explain(&dir, "nodes-eu-west-1a/spec.rootVolumeSize")
        .expect(0)
        .out_has("in force: 128 (")
        .out_has("the root volume of the node group");
    // A field that nobody knows is an error that says what may have been meant.
    let wrong = explain(&dir, "spec.kubelet.maxPod");
    wrong
        .expect(65)
        .err_has("the plan says nothing about")
        .err_has("spec.kubelet.maxPods");
}

#[test]
fn parts_of_green_and_objects_are_found_by_their_kind_and_name() {
    let dir = shop();
    explain(&dir, "node-group/nodes-eu-west-1a")
        .expect(0)
        .out_has("from instance group nodes-eu-west-1a");
    explain(&dir, "cluster")
        .expect(0)
        .out_has("in place of shop.test (kops)")
        .out_has("in place instead:");
    for what in [
        "deploy/orders/orders",
        "deployments/orders/orders",
        "deployment/orders/orders",
        "deploy/orders",
    ] {
        explain(&dir, what)
            .expect(0)
            .out_has("deployment/orders/orders  ");
    }
    explain(&dir, "finding/KOPS-net-calico")
        .expect(0)
        .out_has("kops/spec.networking.calico");
    explain(&dir, "KOPS-net-calico")
        .expect(0)
        .out_has("kops/spec.networking.calico");
    let plan: Value =
        serde_json::from_str(&std::fs::read_to_string(dir.folder().join("plan.json")).unwrap())
            .unwrap();
    let name = |list: &str| {
        plan["target"][list][0]["name"]
            .as_str()
            .unwrap()
            .to_string()
    };
    explain(&dir, &format!("role/{}", name("roles")))
        .expect(0)
        .out_has(&name("roles"))
        .out_has("role, ");
    explain(&dir, &format!("addon/{}", name("addons")))
        .expect(0)
        .out_has("add-on");
    let subnet = plan["target"]["cluster"]["subnets"][0].as_str().unwrap();
    explain(
        &dir,
        &format!("subnet/{}", subnet.split(" (").next().unwrap()),
    )
    .expect(0)
    .out_has("used by cluster ");
    let missed = explain(&dir, "deployment/orders/ordres");
    missed
        .expect(65)
        .err_has("near it: deployment/orders/orders");
}

#[test]
fn an_object_is_explained_by_its_difference_with_the_rule_beside_each_piece() {
    let dir = shop();
    let said = explain(&dir, "deployment/orders/orders");
    said.expect(0)
        .out_has("changes from blue to green:")
        .out_has("spec.replicas  (replay.md 47)\n    - 2\n    + 0\n")
        .out_has("by replay.md 47: workloads start parked at 0");
    // The same as data, and a rule by its number.
    let json = dir.run(&[
        "explain",
        "deployment/orders/orders",
        "plans/shop",
        "-o",
        "json",
    ]);
    let doc: Value = serde_json::from_str(&json.stdout).expect("JSON");
    let hunks = doc["changes"]["deployment/orders/orders"]
        .as_array()
        .expect("hunks");
    let parked = hunks
        .iter()
        .find(|h| h["path"] == "/spec/replicas")
        .expect("replicas change");
    assert_eq!(
        (&parked["before"], &parked["after"], &parked["rules"]),
        (
            &serde_json::json!(2),
            &serde_json::json!(0),
            &serde_json::json!(["replay.md 47"])
        )
    );
    explain(&dir, "rule/47")
        .expect(0)
        .out_has("replay.md 47  workloads start parked at 0")
        .out_has("  deployment/orders/orders\n");
    // What stays behind says only what decided.
    let skipped = explain(&dir, "rule/22");
    skipped
        .expect(0)
        .out_has("replay.md 22  events, leases, nodes");
}

#[test]
fn without_the_snapshot_the_verdict_is_told_and_the_difference_is_not_made_up() {
    let dir = shop();
    std::fs::rename(
        dir.path().join("plans/shop/snapshot"),
        dir.path().join("elsewhere"),
    )
    .expect("moved");
    explain(&dir, "deployment/orders/orders")
        .expect(0)
        .out_has("changes: not shown, the snapshot is not beside this plan");
}

#[test]
fn explain_and_hazards_speak_json_too() {
    let dir = shop();
    let said = dir.run(&[
        "explain",
        "nodes-eu-west-1a/spec.minSize",
        "plans/shop",
        "-o",
        "json",
    ]);
    said.expect(0);
    let v = said.json();
    let f = &v["fields"][0];
    assert_eq!(f["document"], "instancegroup/nodes-eu-west-1a");
    assert_eq!(f["path"], "spec.minSize");
    assert_eq!(f["value"], 2);
    assert_eq!(f["fate"], "mapped");
    assert_eq!(f["rule"], "KOPS-ig-size");
    assert_eq!(f["became"][0], "node group nodes-eu-west-1a: min = 2");

    let said = dir.run(&["hazards", "plans/shop", "-o", "json"]);
    said.expect(0);
    let v = said.json();
    assert_eq!(v["kubernetes"], "1.21");
    // One hop for each minor, each with every group: bastion, master and three groups of workers.
    let hops = v["hops"].as_array().unwrap().len() as u64;
    assert_eq!(v["total"]["hops"], hops);
    assert_eq!(v["total"]["rolling_updates"], hops * 5);
    dir.run(&["hazards", "plans/shop"])
        .expect(0)
        .out_has("Why blue is not upgraded in place: Kubernetes 1.21")
        .out_has("blocker HAZ-kops-window")
        .out_has("1.21 to 1.22 (kops 1.22 to 1.26)");
}
