//! A plan on disk: what is written is what is read, and whatever was done to it since is told.

use super::model::{Fate, Plan, Verdict};
use super::objects::{self, Lines, Pin, beside, temporary};
use super::verdicts::Verdicts;
use super::{digest_of, load, store};
use crate::error::{Error, Kind};
use crate::object::{canonical, sha256_hex};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn demo() -> Plan {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/demo/snapshot");
    let snapshot = crate::snapshot::store::read(&dir).expect("the demo's snapshot");
    super::plan(&crate::spec::defaults_for(&snapshot), &snapshot)
}

/// The verdict on a ConfigMap that is copied.
fn copied(name: &str) -> Verdict {
    Verdict {
        object: format!("configmap/shop/{name}"),
        api_version: "v1".into(),
        verdict: Fate::Copied,
        rules: vec!["replay.md 5".into()],
        target: Some(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": {"a": "1"}}),
        ),
        basis: Some(sha256_hex(name)),
        uid: None,
        park: None,
    }
}

/// A plan of three ConfigMaps, `a`, `b` and `c`.
fn small() -> Plan {
    let mut plan = demo();
    plan.verdicts = ["c", "a", "b"].into_iter().map(copied).collect();
    plan.digest = digest_of(&plan);
    plan
}

/// A plan in a folder of its own.
struct Stored {
    dir: tempfile::TempDir,
    plan: Plan,
}

impl Stored {
    fn new(plan: Plan) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let stored = Stored { dir, plan };
        store(&stored.path(), &stored.plan).expect("stored");
        stored
    }
    fn path(&self) -> PathBuf {
        self.dir.path().join("plan.json")
    }
    fn objects(&self) -> PathBuf {
        self.dir.path().join("objects.ndjson")
    }
    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.objects()).expect("text");
        text.lines().map(String::from).collect()
    }
    fn write(&self, text: &str) {
        std::fs::write(self.objects(), text).expect("written");
    }
    /// Says in plan.json that the file is as it should be, as somebody would who edits both.
    fn repin(&self) {
        let text = std::fs::read_to_string(self.path()).expect("text");
        let mut raw: Value = serde_json::from_str(&text).expect("JSON");
        let bytes = std::fs::read(self.objects()).expect("bytes");
        raw["verdicts"]["sha256"] = sha256_hex(&bytes).into();
        raw["verdicts"]["lines"] = bytes
            .split(|b| *b == b'\n')
            .count()
            .saturating_sub(1)
            .into();
        std::fs::write(self.path(), raw.to_string()).expect("written");
    }
    /// Why it cannot be loaded: always as a plan that no longer holds, with a way on.
    #[track_caller]
    fn refused(&self) -> Error {
        let e = load(&self.path()).expect_err("it must not load");
        assert_eq!(e.kind, Kind::StalePlan, "{e}");
        assert!(
            e.at.contains("plan.json") || e.at.contains("objects.ndjson"),
            "{}",
            e.at
        );
        assert!(e.remedy.contains("crossfade plan"), "{}", e.remedy);
        e
    }
    #[track_caller]
    fn refused_with(&self, words: &str) {
        let e = self.refused();
        assert!(e.message.contains(words), "no {words:?} in {}", e.message);
    }
}

#[test]
fn the_digest_of_a_plan_is_that_of_the_whole_document_in_memory_and_from_disk() {
    let s = Stored::new(demo());
    let mut whole = serde_json::to_value(&s.plan).expect("plain data");
    let from_disk = load(&s.path()).expect("the digest holds");
    assert_eq!(serde_json::to_value(&from_disk).expect("plain data"), whole);
    whole.as_object_mut().map(|o| o.shift_remove("digest"));
    assert_eq!(s.plan.digest, sha256_hex(canonical(&whole)));
    assert_eq!(digest_of(&from_disk), s.plan.digest);
}

#[test]
fn a_stored_plan_is_readable_and_reads_back_the_same() {
    let s = Stored::new(demo());
    let text = std::fs::read_to_string(s.path()).expect("text");
    assert!(
        text.starts_with("{\n  \"api_version\": \"crossfade.dev/v1alpha1\",\n  \"basis\": {\n"),
        "{}",
        &text[..200]
    );
    let objects = std::fs::read(s.objects()).expect("bytes");
    let raw: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        raw["verdicts"],
        json!({"file": "objects.ndjson", "lines": s.plan.verdicts.len(), "sha256": sha256_hex(objects)})
    );
    let names: Vec<String> = s
        .lines()
        .iter()
        .map(|line| {
            let value: Value = serde_json::from_str(line).expect("JSON");
            assert_eq!(canonical(&value), *line);
            value["object"].as_str().expect("an object").to_string()
        })
        .collect();
    assert!(names.len() > 20 && names.is_sorted(), "{names:?}");
    let again = load(&s.path()).expect("the digest holds");
    assert!(again == s.plan);
    // Written once more from disk, over itself, it is the same to the byte.
    store(&s.path(), &again).expect("stored");
    assert_eq!(std::fs::read_to_string(s.path()).expect("text"), text);
    let left: Vec<_> = std::fs::read_dir(s.dir.path())
        .expect("the folder")
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn verdicts_answer_the_same_from_memory_and_from_disk() {
    let s = Stored::new(demo());
    let (memory, disk) = (&s.plan.verdicts, load(&s.path()).expect("a plan").verdicts);
    assert_eq!(memory.len(), disk.len());
    for (n, v) in memory.all().iter().enumerate() {
        for verdicts in [memory, &disk] {
            let got = verdicts.get(&v.object).expect("readable");
            assert_eq!(got.as_deref(), Some(v));
            let (place, head) = verdicts.head(&v.object).expect("readable").expect("there");
            assert_eq!(
                (place, &head.object, head.verdict),
                (n, &v.object, v.verdict)
            );
            assert_eq!((&head.api_version, &head.basis), (&v.api_version, &v.basis));
        }
    }
    for unknown in ["", "configmap", "configmap/shop/no-such", "zz/zz/zz"] {
        for verdicts in [memory, &disk] {
            assert!(verdicts.get(unknown).expect("readable").is_none());
            assert!(verdicts.head(unknown).expect("readable").is_none());
        }
    }
    let names = |v: &Verdicts| v.names().collect::<Result<Vec<_>, _>>().expect("readable");
    assert_eq!(names(memory), names(&disk));
    let deployments = |v: &Verdicts| {
        let found = v.named(|o| o.starts_with("deployment/")).expect("readable");
        found
            .into_iter()
            .map(|v| v.into_owned())
            .collect::<Vec<_>>()
    };
    assert!(!deployments(&disk).is_empty());
    assert_eq!(deployments(memory), deployments(&disk));
}

#[test]
fn an_edited_line_is_a_plan_edited_by_hand_even_when_the_pin_was_edited_too() {
    let s = Stored::new(small());
    let text = s.lines().join("\n") + "\n";
    s.write(&text.replacen("\"a\":\"1\"", "\"a\":\"2\"", 1));
    s.refused_with("not what this plan was written with");
    s.repin();
    s.refused_with("the plan was edited by hand: it says digest");
    s.write(&text);
    s.repin();
    load(&s.path()).expect("as it was");
}

#[test]
fn a_plan_whose_objects_are_missing_says_which_file_to_put_back() {
    let s = Stored::new(small());
    std::fs::remove_file(s.objects()).expect("removed");
    s.refused_with("objects.ndjson holds the verdicts on 3 objects");
}

#[test]
fn lines_out_of_order_or_twice_are_told_with_their_number() {
    let s = Stored::new(small());
    let lines = s.lines();
    let [a, b, c] = &lines[..] else {
        panic!("three lines")
    };
    for (text, says) in [
        (
            format!("{b}\n{a}\n{c}\n"),
            "line 2 (configmap/shop/a) does not stand in order after configmap/shop/b",
        ),
        (
            format!("{a}\n{b}\n{b}\n"),
            "line 3 (configmap/shop/b) does not stand in order",
        ),
        (format!("{a}\n\n{c}\n"), "line 2 is no verdict"),
        (
            format!("{a}\n{{\"object\": 5}}\n{c}\n"),
            "line 2 is no verdict",
        ),
    ] {
        s.write(&text);
        s.refused_with(says);
        s.repin();
        s.refused_with(says);
        assert!(
            s.refused().at.contains("objects.ndjson:"),
            "the line's number"
        );
    }
}

#[test]
fn a_file_that_was_cut_off_is_told_in_the_middle_of_a_line_and_between_two() {
    let s = Stored::new(small());
    let text = s.lines().join("\n") + "\n";
    for keep in 0..text.len() {
        s.write(&text[..keep]);
        s.refused_with("not what this plan was written with: edited by hand, cut off");
    }
    let (two, _) = text.trim_end().rsplit_once('\n').expect("three lines");
    s.write(&format!("{two}\n"));
    s.refused_with("2 lines, the plan says 3");
    s.repin();
    s.refused_with("the plan was edited by hand: it says digest");
    s.write(text.trim_end());
    s.refused_with("line 3 has no end");
}

#[test]
fn the_objects_of_another_plan_do_not_belong_to_this_one() {
    let s = Stored::new(small());
    let mut other = small();
    other.verdicts = ["a", "b", "x"].into_iter().map(copied).collect();
    other.digest = digest_of(&other);
    let other = Stored::new(other);
    std::fs::copy(other.objects(), s.objects()).expect("copied");
    s.refused_with("or of another plan");
    s.repin();
    s.refused_with("the plan was edited by hand: it says digest");
}

#[test]
fn a_crash_between_the_two_renames_is_told_as_such_and_cured_by_planning_again() {
    let s = Stored::new(small());
    let mut new = small();
    new.verdicts = ["a", "d"].into_iter().map(copied).collect();
    new.digest = digest_of(&new);
    // The new plan was written, the objects have their name, plan.json is still the old one.
    let elsewhere = Stored::new(new.clone());
    std::fs::copy(elsewhere.path(), temporary(&s.path())).expect("copied");
    std::fs::copy(elsewhere.objects(), s.objects()).expect("copied");
    s.refused_with("cut off between its two files: objects.ndjson is the new plan's, plan.json still the old one's");
    store(&s.path(), &new).expect("stored");
    assert!(load(&s.path()).expect("whole again") == new);
    // Half-written temporary files are nobody's plan.
    std::fs::write(temporary(&s.path()), "{\"verdicts\": {").expect("written");
    std::fs::write(temporary(&s.objects()), "{\"obj").expect("written");
    assert!(load(&s.path()).expect("the old plan") == new);
}

#[test]
fn a_plan_of_before_with_its_verdicts_inside_is_to_be_made_again() {
    let s = Stored::new(small());
    let whole = serde_json::to_string(&s.plan).expect("JSON");
    std::fs::write(s.path(), whole).expect("written");
    s.refused_with("this plan is of an older crossfade");
}

#[test]
fn a_plan_reads_no_file_outside_of_its_folder() {
    let s = Stored::new(small());
    let text = std::fs::read_to_string(s.path()).expect("text");
    for file in ["../objects.ndjson", "/etc/hostname", "..", ""] {
        let edited = text.replace("\"objects.ndjson\"", &format!("{file:?}"));
        std::fs::write(s.path(), edited).expect("written");
        s.refused_with("its verdicts can only stand beside it");
    }
}

#[test]
fn what_is_no_plan_is_told_with_line_and_column() {
    let s = Stored::new(small());
    let text = std::fs::read_to_string(s.path()).expect("text");
    for (edited, words) in [
        (
            text.replacen("\"kind\": \"Plan\"", "\"kind\": 7", 1),
            "expected a string",
        ),
        (
            text.replacen("\"names\"", "\"nomes\"", 1),
            "unknown field `nomes`",
        ),
        (text.replacen('}', "", 1), "this is no plan"),
        (
            text.replacen("\"lines\": 3", "\"lines\": \"3\"", 1),
            "this is no plan",
        ),
    ] {
        std::fs::write(s.path(), edited).expect("written");
        let e = load(&s.path()).expect_err("no plan");
        assert_eq!(e.kind, Kind::BadInput, "{e}");
        assert!(e.message.contains(words), "no {words:?} in {}", e.message);
        let place: Vec<&str> = e.at.rsplit(':').take(2).collect();
        assert!(place.iter().all(|n| n.parse::<u32>().is_ok()), "{}", e.at);
    }
}

#[test]
fn a_line_edited_under_a_run_is_an_error_of_that_object_and_not_what_the_run_writes() {
    let s = Stored::new(small());
    let plan = load(&s.path()).expect("a plan");
    let text = std::fs::read_to_string(s.objects()).expect("text");
    let ask = |name: &str| plan.verdicts.get(&format!("configmap/shop/{name}"));
    // In place, to another value of the same length.
    std::fs::write(s.objects(), text.replacen("\"a\":\"1\"", "\"a\":\"2\"", 1)).expect("written");
    let e = ask("a").expect_err("edited");
    assert_eq!(e.kind, Kind::StalePlan);
    assert!(
        e.message.contains("while it was in use") && e.at.ends_with("objects.ndjson:1"),
        "{e} {}",
        e.at
    );
    assert!(ask("b").expect("as it was").is_some());
    assert_eq!(plan.verdicts.iter().filter(Result::is_err).count(), 1);
    assert_eq!(digest_of(&plan), "", "no plan has this digest");
    // Cut off in place.
    std::fs::write(s.objects(), &text[..text.len() - 5]).expect("written");
    let e = ask("c").expect_err("cut off");
    assert_eq!(e.kind, Kind::StalePlan);
    assert!(e.message.contains("cut off"), "{e}");
}

#[test]
fn a_new_plan_beside_a_run_does_not_change_what_the_run_reads() {
    let s = Stored::new(small());
    let plan = load(&s.path()).expect("a plan");
    let mut other = small();
    other.verdicts = ["x"].into_iter().map(copied).collect();
    other.digest = digest_of(&other);
    store(&s.path(), &other).expect("stored");
    assert!(plan == s.plan);
    assert!(load(&s.path()).expect("the new one") == other);
}

#[test]
fn plans_of_different_names_in_one_folder_keep_their_objects_apart() {
    let s = Stored::new(small());
    let mut other = small();
    other.verdicts = ["x"].into_iter().map(copied).collect();
    other.digest = digest_of(&other);
    let elsewhere = s.dir.path().join("other.json");
    store(&elsewhere, &other).expect("stored");
    assert!(s.dir.path().join("other.objects.ndjson").is_file());
    assert!(load(&elsewhere).expect("the other") == other);
    assert!(load(&s.path()).expect("the first") == s.plan);
}

#[test]
fn a_plan_json_without_its_folder_has_no_verdicts_to_look_at_and_says_so() {
    let s = Stored::new(small());
    let text = std::fs::read_to_string(s.path()).expect("text");
    let half: Plan = serde_json::from_str(&text).expect("the half of a plan");
    assert_eq!(half.verdicts.len(), 3);
    let e = half.verdicts.get("configmap/shop/a").expect_err("not here");
    assert!(e.message.contains("objects.ndjson"), "{e}");
    assert_eq!(half.verdicts.iter().filter(Result::is_ok).count(), 0);
    assert!(
        serde_json::to_string(&half).is_err(),
        "never printed as a plan without objects"
    );
}

#[test]
fn a_plan_without_objects_is_a_plan() {
    let mut plan = small();
    plan.verdicts = Verdicts::default();
    plan.digest = digest_of(&plan);
    let s = Stored::new(plan);
    assert_eq!(std::fs::read(s.objects()).expect("bytes"), b"");
    assert!(load(&s.path()).expect("a plan") == s.plan);
}

/// Peak resident memory of this process, KiB.
#[cfg(target_os = "linux")]
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let number = line.and_then(|l| l.trim().strip_suffix("kB"));
    number.and_then(|n| n.trim().parse().ok()).expect("a peak")
}

/// 40 MB for 100,000 objects, of which the names in the steps' parameters are the most (issue 5). In a process of its own, whose peak is its own.
#[cfg(target_os = "linux")]
#[test]
fn a_plan_of_100000_objects_weighs_at_most_40_mb_however_big_its_objects_are() {
    const OBJECTS: usize = 100_000;
    const FILE: &str = "CROSSFADE_TEST_PLAN";
    if let Some(path) = std::env::var_os(FILE) {
        let before = peak();
        let plan = load(Path::new(&path)).expect("a plan");
        let loaded = peak();
        let mut n = 0;
        for head in plan.verdicts.heads() {
            let head = head.expect("readable");
            n += usize::from(head.basis.is_some());
        }
        for n in (0..OBJECTS).step_by(97) {
            let name = format!("configmap/shop/{n:06}");
            let v = plan.verdicts.get(&name).expect("readable").expect("there");
            assert_eq!(v.object, name);
        }
        println!("WEIGHS {n} {} {}", loaded - before, peak() - before);
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("plan.json");
    let mut plan = demo();
    // The big plan never is in memory here either: its verdicts are written first, then read from there.
    let many = (0..OBJECTS).map(|n| {
        let mut v = copied(&format!("{n:06}"));
        if n % 1000 == 0
            && let Some(target) = &mut v.target
        {
            target["data"]["big"] = "x".repeat(50_000).into();
        }
        Ok(v)
    });
    let first = dir.path().join("first.ndjson");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&first).expect("a file"));
    let pin: Pin = objects::write(&first, many, &mut file).expect("written");
    drop(file);
    let lines = Lines::open(&path, &pin, &mut |_| {}).expect("readable");
    plan.verdicts = Verdicts::on_disk(lines);
    let names: Vec<String> = (0..OBJECTS)
        .map(|n| format!("configmap/shop/{n:06}"))
        .collect();
    for step in plan.steps.iter_mut().filter(|s| s.id == "replay/base") {
        step.params["objects"] = json!(names);
    }
    assert!(plan.steps.iter().any(|s| s.id == "replay/base"));
    plan.digest = digest_of(&plan);
    store(&path, &plan).expect("stored");
    assert!(beside(&path).is_file());
    let me = std::env::current_exe().expect("this test");
    let out = std::process::Command::new(me)
        .args(["--exact", "--nocapture", "plan::disk_tests::a_plan_of_100000_objects_weighs_at_most_40_mb_however_big_its_objects_are"])
        .env(FILE, &path)
        .output()
        .expect("a process");
    let said = String::from_utf8_lossy(&out.stdout);
    let line = said.lines().find_map(|l| l.split_once("WEIGHS "));
    let line = line.unwrap_or_else(|| panic!("{said}\n{}", String::from_utf8_lossy(&out.stderr)));
    let numbers: Vec<u64> = line.1.split(' ').filter_map(|n| n.parse().ok()).collect();
    assert_eq!(numbers[0], OBJECTS as u64);
    assert!(
        numbers[2] < 40 * 1024,
        "KiB to load, KiB with reading: {numbers:?}"
    );
    assert!(
        numbers[2] - numbers[1] < 2 * 1024,
        "looking at objects adds nothing: {numbers:?}"
    );
}
