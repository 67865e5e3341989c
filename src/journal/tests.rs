//! The journal on a real disk: torn ends, broken chains, two openers, a full disk.

use super::file::{Holder, JOURNAL};
use super::*;
use serde_json::json;
use std::fs;
use std::path::Path;

fn at(n: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(1_800_000_000 + n).unwrap()
}

fn records() -> Vec<Record> {
    let step = || "replay/objects".to_string();
    vec![
        Record::RunStarted {
            run: "shop-7f3a9c".into(),
            plan_digest: "d".into(),
            crossfade_version: "0.1.0".into(),
        },
        Record::Intent {
            step: step(),
            before: json!({"replicas": 3, "name": "grün"}),
        },
        Record::Progress {
            step: step(),
            data: json!({"objects": ["a", "b"]}),
        },
        Record::Attempt {
            step: step(),
            error: "slow down".into(),
            retry_in_s: 1.5,
        },
        Record::Applied {
            step: step(),
            after: json!({"uid": "u1"}),
        },
        Record::Done { step: step() },
        Record::RollbackStarted { to: None },
        Record::UndoIntent { step: step() },
        Record::Undone { step: step() },
        Record::RollbackDone { to: None },
    ]
}

fn filled(dir: &Path) -> Vec<u8> {
    let journal = Journal::open(dir, "migrate").unwrap().journal;
    for (n, record) in records().into_iter().enumerate() {
        journal.append(at(n as i64), record).unwrap();
    }
    drop(journal);
    fs::read(dir.join(JOURNAL)).unwrap()
}

#[test]
fn what_was_written_is_read_back_and_can_be_continued() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let opened = Journal::open(dir.path(), "migrate").unwrap();
    assert!(opened.notice.is_none());
    let read: Vec<_> = opened
        .journal
        .entries()
        .into_iter()
        .map(|e| e.record)
        .collect();
    assert_eq!(read, records());
    opened
        .journal
        .append(
            at(99),
            Record::Resumed {
                crossfade_version: "0.1.0".into(),
                by: "ops@here".into(),
            },
        )
        .unwrap();
    assert_eq!(read_all(dir.path()), 11);
}

fn read_all(dir: &Path) -> usize {
    read(dir).unwrap().len()
}

#[test]
fn cut_at_any_byte_it_recovers_to_the_last_whole_record() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = filled(dir.path());
    for cut in 0..=bytes.len() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(JOURNAL), &bytes[..cut]).unwrap();
        // A record whose only missing byte is its line break is whole.
        let ends: Vec<usize> = bytes
            .iter()
            .enumerate()
            .filter(|(_, b)| **b == b'\n')
            .map(|(n, _)| n)
            .collect();
        let whole = ends.iter().filter(|n| **n <= cut).count();
        let torn = cut > 0 && bytes[cut - 1] != b'\n' && !ends.contains(&cut);
        assert_eq!(read_all(dir.path()), whole, "cut at {cut}");
        // Every byte is read; opening syncs, so only around the ends of records and now and then in between.
        if cut % 97 != 0 && !ends.iter().any(|e| cut.abs_diff(*e) <= 1) {
            continue;
        }
        let opened = Journal::open(dir.path(), "migrate").unwrap();
        assert_eq!(opened.journal.len() as usize, whole, "cut at {cut}");
        assert_eq!(opened.notice.is_some(), torn, "cut at {cut}");
        // The torn bytes are kept beside, and what follows is chained to the last whole record.
        let kept = dir
            .path()
            .join(format!("{JOURNAL}.{}.torn", whole + 1))
            .exists();
        assert_eq!(kept, torn, "cut at {cut}");
        let stopped = Record::Stopped { why: "test".into() };
        if whole > 0 {
            opened.journal.append(at(100), stopped).unwrap();
        }
        drop(opened);
        assert_eq!(read_all(dir.path()), whole + usize::from(whole > 0));
    }
}

#[test]
fn a_flipped_bit_anywhere_before_the_last_line_stops_with_record_and_offset() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = filled(dir.path());
    let last = bytes[..bytes.len() - 1]
        .iter()
        .rposition(|b| *b == b'\n')
        .unwrap();
    for n in 0..last {
        let mut damaged = bytes.clone();
        damaged[n] ^= 1;
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(JOURNAL), &damaged).unwrap();
        let record = bytes[..n].iter().filter(|b| **b == b'\n').count() as u64 + 1;
        let broken = |r: Result<(), JournalError>| match r {
            Err(JournalError::Broken {
                record: r, offset, ..
            }) => {
                assert_eq!(r, record, "byte {n}");
                assert!(offset as usize <= n);
            }
            other => panic!("byte {n}: {other:?}"),
        };
        broken(read(dir.path()).map(|_| ()));
        if n % 97 == 0 {
            broken(Journal::open(dir.path(), "migrate").map(|_| ()));
            // Nothing was cut off.
            assert_eq!(fs::read(dir.path().join(JOURNAL)).unwrap(), damaged);
        }
    }
}

#[test]
fn a_removed_repeated_or_edited_last_record_stops() {
    let dir = tempfile::tempdir().unwrap();
    let text = String::from_utf8(filled(dir.path())).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let mut removed = lines.clone();
    removed.remove(3);
    let mut repeated = lines.clone();
    repeated.insert(3, lines[3]);
    let edited_last = lines[9].replace("rollback_done", "run_done");
    let mut edited = lines.clone();
    edited[9] = &edited_last;
    for (broken, record) in [(removed, 4), (repeated, 5), (edited, 10)] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(JOURNAL), broken.join("\n") + "\n").unwrap();
        match Journal::open(dir.path(), "migrate").map(|o| o.notice) {
            Err(JournalError::Broken { record: r, .. }) => assert_eq!(r, record),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_record_of_a_newer_version_is_refused_even_as_the_last_one() {
    let dir = tempfile::tempdir().unwrap();
    let entry = Entry::chain(1, GENESIS, at(0), Record::RunDone);
    let mut line: serde_json::Value = serde_json::from_str(&entry.line()).unwrap();
    line["record"]["type"] = json!("teleported");
    line.as_object_mut().unwrap().remove("hash");
    line["hash"] = json!(crate::object::digest(&line));
    fs::write(dir.path().join(JOURNAL), format!("{line}\n")).unwrap();
    assert!(matches!(
        Journal::open(dir.path(), "migrate").map(|o| o.notice),
        Err(JournalError::Version { record: 1, .. })
    ));
}

#[test]
fn a_second_opener_is_refused_with_who_holds_it_and_may_come_after() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Holder::of(dir.path()).is_none());
    let first = Journal::open(dir.path(), "migrate").unwrap();
    let held = Holder::of(dir.path()).unwrap();
    assert_eq!(
        (held.pid, held.verb.as_str()),
        (std::process::id(), "migrate")
    );
    match Journal::open(dir.path(), "rollback").map(|o| o.notice) {
        Err(JournalError::Held(h)) => assert_eq!(*h, held),
        other => panic!("{other:?}"),
    }
    // Reading needs no lock.
    assert_eq!(read_all(dir.path()), 0);
    drop(first);
    assert!(Journal::open(dir.path(), "rollback").is_ok());
}

#[test]
fn a_full_disk_fails_the_append_and_what_was_synced_before_stays() {
    let Ok(dir) = std::env::var("CROSSFADE_TEST_FULL_DISK") else {
        // A real short write needs a limit on the process: run this very test again under one.
        let dir = tempfile::tempdir().unwrap();
        let exe = std::env::current_exe().unwrap();
        let script = format!(
            "trap '' XFSZ; ulimit -f 2; exec {} --exact {}::a_full_disk_fails_the_append_and_what_was_synced_before_stays --nocapture",
            exe.display(),
            module_path!().split_once("::").unwrap().1
        );
        let out = std::process::Command::new("bash")
            .args(["-c", &script])
            .env("CROSSFADE_TEST_FULL_DISK", dir.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(
            out.status.success(),
            "{said}{}",
            String::from_utf8_lossy(&out.stderr)
        );
        let whole: usize = said
            .lines()
            .find_map(|l| l.split("WHOLE=").nth(1)?.trim().parse().ok())
            .expect("the child wrote how many");
        assert!(whole > 3);
        // The next process, with space again, drops the torn end and goes on.
        let opened = Journal::open(dir.path(), "migrate").unwrap();
        assert_eq!(opened.journal.len() as usize, whole);
        assert!(
            opened
                .notice
                .unwrap()
                .contains("was not written to its end")
        );
        return;
    };
    let journal = Journal::open(Path::new(&dir), "migrate").unwrap().journal;
    journal.append(at(0), records().remove(0)).unwrap();
    for n in 1.. {
        let stopped = Record::Stopped {
            why: format!("{n} {}", "x".repeat(100)),
        };
        match journal.append(at(n), stopped.clone()) {
            Ok(()) => continue,
            Err(JournalError::Io { why, .. }) => assert!(why.contains("File too large"), "{why}"),
            Err(e) => panic!("{e}"),
        }
        assert!(matches!(
            journal.append(at(n), stopped),
            Err(JournalError::Dead)
        ));
        // The limit is on file size only: stdout is a pipe.
        println!("WHOLE={n}");
        return;
    }
}

#[test]
fn illegal_transitions_are_refused_live_and_on_replay() {
    let start = records().remove(0);
    let step = || "a".to_string();
    let intent = || Record::Intent {
        step: step(),
        before: json!(1),
    };
    let applied = || Record::Applied {
        step: step(),
        after: json!(2),
    };
    let back = || Record::RollbackStarted { to: None };
    let undo = || Record::UndoIntent { step: step() };
    let illegal: Vec<(&str, Vec<Record>)> = vec![
        ("no start", vec![intent()]),
        ("two starts", vec![start.clone(), start.clone()]),
        ("applied without intent", vec![start.clone(), applied()]),
        (
            "done before applied",
            vec![start.clone(), intent(), Record::Done { step: step() }],
        ),
        ("intent twice", vec![start.clone(), intent(), intent()]),
        ("undo of nothing", vec![start.clone(), back(), undo()]),
        (
            "undo without rollback",
            vec![start.clone(), intent(), undo()],
        ),
        (
            "forwards while going back",
            vec![start.clone(), back(), intent()],
        ),
        (
            "back is done with an open undo",
            vec![
                start.clone(),
                intent(),
                back(),
                undo(),
                Record::RollbackDone { to: None },
            ],
        ),
        (
            "run done with an open step",
            vec![start.clone(), intent(), applied(), Record::RunDone],
        ),
        (
            "resume in the middle of a rollback",
            vec![
                start.clone(),
                back(),
                Record::Resumed {
                    crossfade_version: String::new(),
                    by: String::new(),
                },
            ],
        ),
        (
            "finalize before the end",
            vec![
                start.clone(),
                Record::Finalized {
                    what: "x".into(),
                    data: json!({}),
                },
            ],
        ),
    ];
    for (what, records) in illegal {
        let last = records.len() - 1;
        let replayed = State::replay(records.iter().map(|r| (at(0), r)));
        assert_eq!(replayed.unwrap_err().0, last, "{what}");
        let journal = Journal::memory();
        for (n, record) in records.into_iter().enumerate() {
            let result = journal.append(at(0), record);
            assert_eq!(result.is_err(), n == last, "{what} {n}");
        }
    }
}
