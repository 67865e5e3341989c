//! From files to a rehearsed plan, with no server: the way of somebody who first wants to see.

mod common;
use common::Dir;

fn fixture() -> String {
    format!("{}/testkit/fixtures/shop", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn from_dumps_to_a_plan_that_is_the_same_twice() {
    let dir = Dir::new();
    let files = fixture();
    dir.run(&[
        "discover",
        "--from-files",
        &files,
        "--cluster",
        "shop.test",
        "--out",
        "snap",
    ])
    .expect(0);
    let plan = |args: &[&str]| {
        let said = dir.run(&[&["plan", "--snapshot", "snap", "-o", "json"], args].concat());
        said.expect(2);
        said
    };
    let first = plan(&["--out", "plan.json"]);
    let second = plan(&[]);
    assert_eq!(first.stdout, second.stdout);
    let v = first.json();
    for key in [
        "digest", "findings", "verdicts", "target", "steps", "timeline",
    ] {
        assert!(v.get(key).is_some(), "{key}");
    }
    assert_eq!(
        crossfade::plan::load(&dir.path().join("plan.json"))
            .unwrap()
            .digest,
        v["digest"]
    );
    // Values of secrets are in none of it.
    for (path, content) in dir.files() {
        let text = String::from_utf8_lossy(&content);
        assert!(!text.contains("CANARY-"), "{}", path.display());
    }
    assert!(!first.stdout.contains("CANARY-"));
}

#[test]
fn a_plan_folder_from_files_can_be_read_but_never_run() {
    let dir = Dir::new();
    let files = fixture();
    dir.run(&[
        "init",
        "shop",
        "--from-files",
        &files,
        "--cluster",
        "shop.test",
    ])
    .expect(0);
    dir.run(&[
        "discover",
        "--from-files",
        &files,
        "--out",
        "plans/shop/snapshot",
    ])
    .expect(0);
    dir.run(&["plan"])
        .expect(2)
        .out_has("node group")
        .out_has("this plan is for reading only")
        .out_has("next: crossfade review");
    dir.run(&["plan"]).expect(2);
    dir.run(&["review", "--approve", "all"]).expect(0);
    dir.run(&["migrate"]).expect(3).err_has("made from files");
    assert!(!dir.run_folder().exists(), "nothing was begun");
    let rehearsed = dir.run(&["rehearse", "-o", "json"]).json();
    for key in [
        "outcome",
        "rollback",
        "violations",
        "write_closed_s",
        "virtual_s",
        "real_ms",
    ] {
        assert!(rehearsed.get(key).is_some(), "{key}");
    }
    // The twin proves it, too: without pins the very first step refuses.
    assert_eq!(rehearsed["outcome"], "stopped");
    assert_eq!(rehearsed["stopped"]["step"], "preflight/pins");
}

#[test]
fn a_misspelt_key_of_the_spec_is_exit_65_with_line_and_column_and_nothing_is_written() {
    let dir = Dir::new();
    let files = fixture();
    dir.run(&[
        "init",
        "shop",
        "--from-files",
        &files,
        "--cluster",
        "shop.test",
    ])
    .expect(0);
    dir.run(&[
        "discover",
        "--from-files",
        &files,
        "--out",
        "plans/shop/snapshot",
    ])
    .expect(0);
    let spec = dir.folder().join("migration.yaml");
    let text = std::fs::read_to_string(&spec).unwrap();
    std::fs::write(&spec, text.replacen("green:", "grene:", 1)).unwrap();
    let before = dir.files();
    let said = dir.run(&["plan", "-o", "json"]);
    said.expect(65);
    assert_eq!(said.error()["kind"], "bad-input");
    assert!(
        said.error()["where"]
            .as_str()
            .unwrap()
            .contains("migration.yaml:")
    );
    dir.run(&["plan"]).expect(65).err_has("green");
    assert_eq!(dir.files(), before);
}

#[test]
fn costs_are_estimated_offline_and_every_price_can_be_overridden() {
    let dir = Dir::new();
    dir.run(&[
        "discover",
        "--from-files",
        &fixture(),
        "--cluster",
        "shop.test",
        "--out",
        "snap",
    ])
    .expect(0);
    let said = dir.run(&["cost", "--snapshot", "snap"]);
    said.expect(0);
    for part in [
        "EKS control plane",
        "eks/cluster",
        "Not in these numbers",
        "estimate",
    ] {
        assert!(said.stdout.contains(part), "{part}: {}", said.stdout);
    }
    let doc = dir
        .run(&["cost", "--snapshot", "snap", "-o", "json"])
        .json();
    let lines = doc["green"]["lines"].as_array().expect("lines");
    let eks = lines
        .iter()
        .find(|l| l["key"] == "eks/cluster")
        .expect("the control plane");
    assert_eq!(eks["hourly"], 100_000);
}
