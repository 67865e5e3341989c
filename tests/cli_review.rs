//! Review, approval, explain: what a person reads before anything runs.

mod common;
use common::{Dir, plan};
use crossfade::plan::model::{Finding, Severity};

#[test]
fn review_shows_each_phase_with_its_promise_and_what_to_do_next() {
    let dir = Dir::with_plan();
    dir.run(&["review"])
        .expect(0)
        .out_has("preflight  not approved")
        .out_has("freeze/cron  does freeze/cron")
        .out_has("undo exact: everything as before")
        .out_has("undo none: it only watches")
        .out_has("DNS-09")
        .out_has("crossfade review --approve all");
    let json = dir.run(&["review", "-o", "json"]);
    json.expect(0);
    let phases = json.json()["phases"].as_array().unwrap().len();
    assert_eq!(phases, 3);
    assert!(json.json()["phases"][0]["approval"].is_null());
}

#[test]
fn approval_names_who_when_and_the_digest_and_a_phase_at_a_time_is_possible() {
    let dir = Dir::with_plan();
    dir.run(&["review", "--approve", "freeze"])
        .expect(0)
        .out_has("not approved: preflight, soak");
    dir.run(&["review", "--approve", "cutover"])
        .expect(64)
        .err_has("no phase \"cutover\"");
    dir.run(&["review", "--approve", "all"])
        .expect(0)
        .out_has("crossfade migrate");
    let text = std::fs::read_to_string(dir.folder().join("approvals.json")).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let all = value["approvals"].as_array().unwrap();
    assert_eq!(all.len(), 3);
    for approval in all {
        assert_eq!(approval["digest"], plan().digest);
        assert!(approval["by"].as_str().unwrap().starts_with("ops@"));
        assert!(approval["at"].as_str().unwrap().ends_with('Z'));
    }
}

#[test]
fn a_plan_with_a_blocker_cannot_be_approved_and_does_not_run() {
    let dir = Dir::with_plan();
    let mut blocked = plan();
    blocked.findings.push(Finding {
        id: "KOPS-01".into(),
        severity: Severity::Blocker,
        object: "cluster/shop.test".into(),
        message: "not on AWS".into(),
        remedy: "none".into(),
        source: "checks.md KOPS-01".into(),
        waived: None,
    });
    blocked.digest = crossfade::plan::digest_of(&blocked);
    dir.write_plan(&blocked);
    dir.run(&["review", "--approve", "all"])
        .expect(3)
        .err_has("KOPS-01");
    dir.run(&["migrate"]).expect(3).err_has("not on AWS");
    assert!(!dir.folder().join("approvals.json").exists());
    assert!(!dir.run_folder().exists());
}

#[test]
fn explain_answers_for_an_object_exactly_and_for_a_part_broadly() {
    let dir = Dir::with_plan();
    let exact = dir.run(&["explain", "deployment/orders/orders"]);
    exact
        .expect(0)
        .out_has("changed")
        .out_has("replay.md 29")
        .out_has("waits until unpark");
    assert!(!exact.stdout.contains("orders-admin"));
    dir.run(&["explain", "orders"])
        .expect(0)
        .out_has("orders-admin")
        .out_has("DNS-09");
    dir.run(&["explain", "nodes"])
        .expect(0)
        .out_has("from instance group nodes");
    dir.run(&["explain", "soak/watch"])
        .expect(0)
        .out_has("step soak/watch");
    let none = dir.run(&["explain", "no/such/thing", "-o", "json"]);
    none.expect(65);
    assert_eq!(none.error()["kind"], "bad-input");
}
