//! Runs through the binary as far as no server is needed: what stops them, with which exit code, and that nothing was written.

mod common;
use common::{Dir, done, plan, started};
use crossfade::journal::{Journal, Record};
use std::fs;

#[test]
fn a_plan_without_approval_does_not_run() {
    let dir = Dir::with_plan();
    let before = dir.files();
    dir.run(&["migrate"])
        .expect(4)
        .err_has("not approved for: preflight, freeze, soak")
        .err_has("crossfade review");
    dir.run(&["review", "--approve", "preflight"]).expect(0);
    dir.run(&["migrate"])
        .expect(4)
        .err_has("not approved for: freeze, soak");
    // An approval of the phases asked for is enough to begin (and then nobody answers).
    dir.run(&["migrate", "--to", "preflight"]).expect(69);
    assert_eq!(
        dir.files().len(),
        before.len() + 3,
        "approvals, an empty journal and its lock"
    );
}

#[test]
fn an_approval_of_another_plan_does_not_count() {
    let dir = Dir::approved();
    let mut other = plan();
    other.timeline.total_s = [61, 121];
    other.digest = crossfade::plan::digest_of(&other);
    dir.write_plan(&other);
    dir.run(&["migrate"])
        .expect(4)
        .err_has("approvals of another plan");
}

#[test]
fn a_plan_edited_by_hand_does_not_run() {
    let dir = Dir::approved();
    let file = dir.folder().join("plan.json");
    let edited = fs::read_to_string(&file)
        .unwrap()
        .replace("\"desired\": 2", "\"desired\": 3");
    fs::write(&file, edited).unwrap();
    let before = dir.files();
    for verb in ["migrate", "rollback", "review", "status"] {
        dir.run(&[verb]).expect(4);
    }
    let json = dir.run(&["migrate", "-o", "json"]);
    assert_eq!(json.error()["kind"], "stale-plan");
    assert_eq!(dir.files(), before, "nothing was written");
}

#[test]
fn a_migration_yaml_that_was_changed_after_the_plan_stops_the_run() {
    let dir = Dir::approved();
    let file = dir.folder().join("migration.yaml");
    let mut spec = plan().spec;
    // The planner fills these in, so a spec that leaves them out is still the same.
    (spec.aws.account, spec.aws.region) = (None, None);
    fs::write(&file, crossfade::yaml::to_string(&spec).unwrap()).unwrap();
    // The same spec: it goes on until nobody answers.
    dir.run(&["migrate"]).expect(69);
    spec.dns.low_ttl += 1;
    fs::write(&file, crossfade::yaml::to_string(&spec).unwrap()).unwrap();
    let before = dir.files();
    dir.run(&["migrate"])
        .expect(4)
        .err_has("migration.yaml was changed since the plan was made")
        .err_has("plan again");
    assert_eq!(dir.files(), before, "nothing was written");
}

#[test]
fn a_plan_made_from_files_does_not_run() {
    let dir = Dir::with_plan();
    let mut offline = plan();
    offline.basis.blue = None;
    offline.basis.account = None;
    offline.digest = crossfade::plan::digest_of(&offline);
    dir.write_plan(&offline);
    dir.run(&["review", "--approve", "all"]).expect(0);
    dir.run(&["migrate"]).expect(3).err_has("made from files");
}

#[test]
fn an_unreachable_api_server_is_exit_69_and_nothing_begins() {
    let dir = Dir::approved();
    let said = dir.run(&["migrate", "-o", "json"]);
    said.expect(69);
    let error = said.error();
    assert_eq!(error["kind"], "unreachable");
    assert!(error["message"].as_str().is_some_and(|m| !m.is_empty()));
    assert_eq!(fs::read(dir.journal_file()).unwrap(), b"");
}

#[test]
fn a_kubeconfig_without_that_context_is_exit_65_and_nothing_begins() {
    let dir = Dir::approved();
    let file = dir.folder().join("kubeconfig");
    let text = fs::read_to_string(&file)
        .unwrap()
        .replace("- name: shop\n  context", "- name: other\n  context");
    fs::write(&file, text).unwrap();
    let said = dir.run(&["migrate"]);
    said.expect(65).err_has("shop");
    assert_eq!(fs::read(dir.journal_file()).unwrap(), b"");
}

#[test]
fn a_second_migrate_is_refused_with_who_holds_the_run_while_status_still_answers() {
    let dir = Dir::approved();
    dir.journal(vec![started()]);
    let held = Journal::open(&dir.run_folder(), "migrate").unwrap();
    for verb in ["migrate", "rollback"] {
        dir.run(&[verb])
            .expect(5)
            .err_has("another crossfade works on this run")
            .err_has(&format!("process {}", std::process::id()));
    }
    dir.run(&["status"]).expect(0).out_has("held by `migrate`");
    let json = dir.run(&["status", "-o", "json"]);
    assert_eq!(json.json()["state"], "running");
    assert_eq!(json.json()["holder"]["pid"], std::process::id());
    drop(held);
    dir.run(&["migrate"]).expect(69);
}

#[test]
fn a_torn_last_line_is_dropped_with_a_notice_and_kept_beside() {
    let dir = Dir::approved();
    let mut records = vec![started()];
    records.extend(done("preflight/pins"));
    dir.journal(records);
    let whole = fs::read(dir.journal_file()).unwrap();
    let torn = [whole.as_slice(), br#"{"v":1,"seq":5,"pre"#].concat();
    fs::write(dir.journal_file(), torn).unwrap();
    // Reading leaves it alone.
    dir.run(&["status"]).expect(0);
    assert_ne!(fs::read(dir.journal_file()).unwrap(), whole);
    dir.run(&["migrate"])
        .expect(69)
        .err_has("notice:")
        .err_has("record 5");
    assert_eq!(fs::read(dir.journal_file()).unwrap(), whole);
    let beside = dir.run_folder().join("journal.jsonl.5.torn");
    assert_eq!(fs::read(beside).unwrap(), br#"{"v":1,"seq":5,"pre"#);
}

#[test]
fn a_broken_chain_stops_with_record_and_offset_and_nothing_is_cut() {
    let dir = Dir::approved();
    let mut records = vec![started()];
    records.extend(done("preflight/pins"));
    dir.journal(records);
    let text = fs::read_to_string(dir.journal_file()).unwrap();
    let edited = text
        .replace("\"seq\":2", "\"seq\":2 ")
        .replace("{}", "{\"x\":1}");
    assert_ne!(text, edited);
    fs::write(dir.journal_file(), &edited).unwrap();
    let offset = text.lines().next().unwrap().len() + 1;
    for verb in ["status", "migrate", "rollback"] {
        dir.run(&[verb])
            .expect(65)
            .err_has(&format!("record 2 at byte {offset}"));
    }
    assert_eq!(fs::read_to_string(dir.journal_file()).unwrap(), edited);
}

#[test]
fn a_full_disk_stops_before_the_effect() {
    let dir = Dir::approved();
    let out = std::process::Command::new("bash")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 0; exec \"$CROSSFADE\" migrate",
        ])
        .env("CROSSFADE", env!("CARGO_BIN_EXE_crossfade"))
        .env("HOME", dir.path())
        .current_dir(dir.path())
        .output()
        .unwrap();
    common::said(out)
        .expect(6)
        .err_has("the journal cannot be written")
        .err_has("free some space");
}

#[test]
fn status_tells_new_from_stopped_done_and_stuck() {
    let state = |records: Vec<Record>| {
        let dir = Dir::with_plan();
        if !records.is_empty() {
            dir.journal(records);
        }
        dir.run(&["status"]).expect(0);
        let said = dir.run(&["status", "-o", "json"]);
        said.expect(0);
        let v = said.json();
        for key in ["run", "phase", "step", "state", "waiting_for", "undo"] {
            assert!(v.get(key).is_some(), "{key}");
        }
        v
    };
    let new = state(vec![]);
    assert_eq!(
        (&new["state"], &new["run"]),
        (&"new".into(), &serde_json::Value::Null)
    );

    let mut some = vec![started()];
    some.extend(done("preflight/pins"));
    let mut middle = some.clone();
    middle.push(done("freeze/cron").remove(0));
    middle.push(Record::Stopped {
        why: "asked to stop".into(),
    });
    let stopped = state(middle);
    assert_eq!(stopped["state"], "stopped");
    assert_eq!(stopped["phase"], "freeze");
    assert_eq!(stopped["step"], "freeze/cron");
    assert_eq!(stopped["stopped"], "asked to stop");
    assert_eq!(stopped["undo"][0]["step"], "freeze/cron");

    let mut all = some.clone();
    all.extend(done("freeze/cron"));
    all.extend(done("soak/watch"));
    all.push(Record::RunDone);
    let whole = state(all.clone());
    assert_eq!(whole["state"], "done");
    assert_eq!(whole["undo"].as_array().unwrap().len(), 3);

    all.push(Record::RollbackStarted { to: None });
    all.push(Record::UndoIntent {
        step: "soak/watch".into(),
    });
    all.push(Record::Stuck {
        step: "soak/watch".into(),
        object: "deployment/orders/orders".into(),
        expected: "2".into(),
        found: "5".into(),
        ways: vec!["crossfade rollback".into()],
    });
    let stuck = state(all);
    assert_eq!(stuck["state"], "stuck");
    assert_eq!(stuck["stuck"]["found"], "5");
    assert_eq!(stuck["waiting_for"], "a person: deployment/orders/orders");
}

#[test]
fn a_stuck_undo_is_skipped_with_a_reason_by_name_only() {
    let dir = Dir::with_plan();
    let mut records = vec![started()];
    records.extend(done("preflight/pins"));
    records.push(Record::RollbackStarted { to: None });
    records.push(Record::UndoIntent {
        step: "preflight/pins".into(),
    });
    records.push(Record::Stuck {
        step: "preflight/pins".into(),
        object: "x".into(),
        expected: "1".into(),
        found: "2".into(),
        ways: vec![],
    });
    dir.journal(records);
    dir.run(&["skip", "preflight/pins"])
        .expect(64)
        .err_has("--reason");
    dir.run(&["skip", "freeze/cron", "--reason", "x"])
        .expect(64)
        .err_has("stuck is: preflight/pins");
    // Forwards is refused while the way back is not finished.
    dir.run(&["review", "--approve", "all"]).expect(0);
    dir.run(&["migrate"])
        .expect(5)
        .err_has("a rollback to the start is not finished");
    dir.run(&["skip", "preflight/pins", "--reason", "theirs"])
        .expect(0)
        .out_has("crossfade rollback");
    let text = fs::read_to_string(dir.journal_file()).unwrap();
    assert!(text.contains("\"reason\":\"theirs\"") && text.contains("ops@"));
}

#[test]
fn rollback_dry_run_lists_promises_and_touches_nothing() {
    let dir = Dir::with_plan();
    let mut records = vec![started()];
    records.extend(done("preflight/pins"));
    records.extend(done("freeze/cron"));
    records.extend(done("soak/watch"));
    dir.journal(records);
    let before = dir.files();
    let said = dir.run(&["rollback", "--dry-run"]);
    said.expect(0)
        .out_has("3 steps would be undone")
        .out_has("gives back none: it only watches");
    let soak = said.stdout.find("soak/watch").unwrap();
    assert!(
        soak < said.stdout.find("preflight/pins").unwrap(),
        "last first"
    );
    let json = dir.run(&["rollback", "--dry-run", "--to", "freeze", "-o", "json"]);
    assert_eq!(json.json()["undo"].as_array().unwrap().len(), 1);
    assert_eq!(dir.files(), before);
}

#[test]
fn a_new_plan_does_not_run_over_the_journal_of_an_unfinished_one() {
    let dir = Dir::approved();
    let mut records = vec![started()];
    records.extend(done("preflight/pins"));
    dir.journal(records);
    let mut other = plan();
    other.timeline.total_s = [61, 121];
    other.digest = crossfade::plan::digest_of(&other);
    dir.write_plan(&other);
    dir.run(&["review", "--approve", "all"]).expect(0);
    dir.run(&["migrate"])
        .expect(4)
        .err_has("begun with another plan");
    dir.run(&["rollback"]).expect(4);
}

#[test]
fn finalize_wants_a_finished_run_and_the_clusters_name() {
    let dir = Dir::with_plan();
    dir.run(&["finalize", "--confirm", "shop.test"])
        .expect(4)
        .err_has("only a finished migration");
    let mut all = vec![started()];
    for step in ["preflight/pins", "freeze/cron", "soak/watch"] {
        all.extend(done(step));
    }
    all.push(Record::RunDone);
    dir.journal(all);
    let before = dir.files();
    dir.run(&["finalize"])
        .expect(64)
        .err_has("--confirm shop.test");
    dir.run(&["finalize", "--confirm", "shop-green"])
        .expect(64)
        .err_has("not the name of the kops cluster");
    assert_eq!(dir.files(), before, "nothing was written");
}
