//! How a run behaves: order, waiting, stopping, being stuck.

use super::toy::{Fault, Toy, engine, engine_with, plan, registry};
use super::*;
use crate::journal::{Mode, Status};
use crate::object::Side;
use crate::plan::model::Phase;
use std::sync::Mutex;

fn recorder() -> (Events, Arc<Mutex<Vec<EventKind>>>) {
    let seen = Arc::new(Mutex::new(vec![]));
    let sink = seen.clone();
    (
        Arc::new(move |e: &Event| sink.lock().unwrap().push(e.kind.clone())),
        seen,
    )
}

fn migrated(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Migrated {
            changed: true,
            complete: true
        }
    )
}

#[tokio::test(start_paused = true)]
async fn the_hour_of_the_lowered_ttl_passes_while_the_rest_is_made_and_names_move_last() {
    let toy = Toy::new();
    let journal = Arc::new(Journal::memory());
    let (events, seen) = recorder();
    let began = tokio::time::Instant::now();
    let outcome = engine_with(&toy, &journal, plan(), events)
        .forward(None)
        .await
        .unwrap();
    assert!(migrated(&outcome), "{outcome:?}");
    let took = began.elapsed().as_secs();
    assert!((3600..3620).contains(&took), "{took} s");
    let done: Vec<String> = seen
        .lock()
        .unwrap()
        .iter()
        .filter_map(|e| match e {
            EventKind::StepDone { step, .. } => Some(step.clone()),
            _ => None,
        })
        .collect();
    let place = |id: &str| done.iter().position(|d| d == id).unwrap();
    assert!(place("unpark/all") < place("ttl/wait"));
    assert_eq!(place("cutover/names"), 6);
    assert!(journal.state().done);
}

#[tokio::test(start_paused = true)]
async fn a_second_migrate_writes_nothing_and_says_so() {
    let toy = Toy::new();
    let journal = Arc::new(Journal::memory());
    engine(&toy, &journal).forward(None).await.unwrap();
    let (writes, records) = (toy.writes(), journal.len());
    let outcome = engine(&toy, &journal).forward(None).await.unwrap();
    assert_eq!(
        outcome,
        Outcome::Migrated {
            changed: false,
            complete: true
        }
    );
    assert_eq!((toy.writes(), journal.len()), (writes, records));
}

#[tokio::test(start_paused = true)]
async fn migrate_to_a_phase_does_that_phase_and_what_it_needs_and_then_goes_on() {
    let toy = Toy::new();
    let journal = Arc::new(Journal::memory());
    let outcome = engine(&toy, &journal)
        .forward(Some(Phase::Unpark))
        .await
        .unwrap();
    assert_eq!(
        outcome,
        Outcome::Migrated {
            changed: true,
            complete: false
        }
    );
    // The data stream is of a later phase, but unpark needs it.
    assert_eq!(journal.state().status("data/stream"), Status::Done);
    assert_eq!(journal.state().status("cutover/names"), Status::Fresh);
    assert!(migrated(
        &engine(&toy, &journal).forward(None).await.unwrap()
    ));
}

#[tokio::test(start_paused = true)]
async fn rollback_restores_everything_and_a_second_one_does_nothing() {
    let toy = Toy::new();
    let before = toy.state();
    let journal = Arc::new(Journal::memory());
    engine(&toy, &journal).forward(None).await.unwrap();
    assert_ne!(toy.state(), before);
    let preview = engine(&toy, &journal).rollback_preview(None);
    assert_eq!(preview.len(), 7);
    assert_eq!(preview[0].step, "cutover/names");
    let outcome = engine(&toy, &journal).rollback(None).await.unwrap();
    assert_eq!(outcome, Outcome::Restored { changed: true });
    assert_eq!(toy.state(), before);
    let writes = toy.writes();
    let again = engine(&toy, &journal).rollback(None).await.unwrap();
    assert_eq!(again, Outcome::Restored { changed: false });
    assert_eq!(toy.writes(), writes);
}

#[tokio::test(start_paused = true)]
async fn rollback_with_an_empty_journal_is_no_op_argo_rollouts_1292() {
    let toy = Toy::new();
    let journal = Arc::new(Journal::memory());
    let outcome = engine(&toy, &journal).rollback(None).await.unwrap();
    assert_eq!(outcome, Outcome::Restored { changed: false });
    assert_eq!((toy.writes(), journal.len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn rollback_to_unpark_keeps_the_early_data_stream_that_unpark_needs() {
    let toy = Toy::new();
    let journal = Arc::new(Journal::memory());
    engine(&toy, &journal)
        .forward(Some(Phase::Unpark))
        .await
        .unwrap();
    let at_unpark = toy.state();
    engine(&toy, &journal).forward(None).await.unwrap();
    engine(&toy, &journal)
        .rollback(Some(Phase::Unpark))
        .await
        .unwrap();
    assert_eq!(toy.state(), at_unpark);
    assert_eq!(journal.state().status("data/stream"), Status::Done);
    // And to replay: nothing that stays needs it any more.
    engine(&toy, &journal)
        .rollback(Some(Phase::Replay))
        .await
        .unwrap();
    assert_eq!(journal.state().status("data/stream"), Status::Undone);
    assert_eq!(journal.state().status("replay/objects"), Status::Done);
    // Forwards again from there.
    assert!(migrated(
        &engine(&toy, &journal).forward(None).await.unwrap()
    ));
}

#[tokio::test(start_paused = true)]
async fn an_undo_stops_at_a_foreign_change_and_goes_on_when_that_is_gone() {
    let toy = Toy::new();
    let before = toy.state();
    let journal = Arc::new(Journal::memory());
    engine(&toy, &journal).forward(None).await.unwrap();
    toy.put(Side::Blue, "api", "somebody else's");
    let outcome = engine(&toy, &journal).rollback(None).await.unwrap();
    let Outcome::Stuck { step, stuck } = &outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(step, "cutover/names");
    assert_eq!(stuck.object, "configmap/toy/api");
    assert_eq!(stuck.expected, "\"green\"");
    assert_eq!(stuck.found, "\"somebody else's\"");
    assert_eq!(outcome.exit_code(), 5);
    // Nothing behind it was undone: what the names pointed to is still there.
    assert_eq!(journal.state().status("unpark/all"), Status::Done);
    // Forwards is refused while the way back is not finished.
    let refused = engine(&toy, &journal).forward(None).await.unwrap_err();
    assert_eq!(refused.kind, Kind::Stuck);
    toy.put(Side::Blue, "api", "green");
    let outcome = engine(&toy, &journal).rollback(None).await.unwrap();
    assert_eq!(outcome, Outcome::Restored { changed: true });
    assert_eq!(toy.state(), before);
    assert_eq!(journal.state().mode, Mode::RolledBack(None));
}

#[tokio::test(start_paused = true)]
async fn a_stuck_undo_can_be_skipped_with_a_reason_and_only_a_stuck_one() {
    let toy = Toy::new();
    let journal = Arc::new(Journal::memory());
    engine(&toy, &journal).forward(None).await.unwrap();
    let refused = engine(&toy, &journal)
        .skip("cutover/names", "why not")
        .unwrap_err();
    assert_eq!(refused.kind, Kind::Usage);
    toy.put(Side::Blue, "api", "somebody else's");
    engine(&toy, &journal).rollback(None).await.unwrap();
    engine(&toy, &journal)
        .skip("cutover/names", "they want it")
        .unwrap();
    let outcome = engine(&toy, &journal).rollback(None).await.unwrap();
    assert_eq!(outcome, Outcome::Restored { changed: true });
    assert_eq!(
        toy.state()["blue/configmap/toy/api"]["value"],
        "somebody else's"
    );
    assert!(journal.entries().iter().any(|e| matches!(&e.record, Record::Skipped { reason, by, .. } if reason == "they want it" && by == "ops@here")));
}

#[tokio::test(start_paused = true)]
async fn ctrl_c_abandons_waits_and_the_same_command_goes_on_without_writing_again() {
    let toy = Toy::new();
    let journal = Arc::new(Journal::memory());
    let first = engine(&toy, &journal);
    let cancel = first.cancel();
    let (outcome, ()) = tokio::join!(first.forward(None), async move {
        tokio::time::sleep(Duration::from_secs(600)).await;
        cancel.cancel();
    });
    let outcome = outcome.unwrap();
    assert_eq!(outcome, Outcome::Interrupted);
    assert_eq!(outcome.exit_code(), 6);
    let writes = toy.writes();
    let state = journal.state();
    assert_eq!(state.status("ttl/wait"), Status::Applied);
    assert_eq!(state.stopped.as_deref(), Some("asked to stop"));
    assert!(migrated(
        &engine(&toy, &journal).forward(None).await.unwrap()
    ));
    assert_eq!(toy.writes(), writes + 1, "only the names are left to move");
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_refused_stops_the_run_and_the_next_run_heals_it() {
    let toy = Toy::new();
    let journal = Arc::new(Journal::memory());
    toy.put(Side::Green, "o2", "was there");
    let outcome = engine(&toy, &journal).forward(None).await.unwrap();
    let Outcome::Stopped {
        step, object, kind, ..
    } = &outcome
    else {
        panic!("{outcome:?}")
    };
    assert_eq!(step, "replay/objects");
    assert_eq!(object, "configmap/toy/o2");
    assert_eq!(*kind, Kind::Stuck);
    assert_eq!(
        journal.state().status("unpark/all"),
        Status::Fresh,
        "no new step starts"
    );
    assert_eq!(
        journal.state().status("data/stream"),
        Status::Done,
        "running ones finish"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stays_away_stops_the_run_after_eight_tries_resumably() {
    let toy = Toy::new();
    let journal = Arc::new(Journal::memory());
    for call in 1..400 {
        toy.fault(call, Fault::NoConnection);
    }
    let outcome = engine(&toy, &journal).forward(None).await.unwrap();
    assert_eq!(outcome.exit_code(), 69, "{outcome:?}");
    let state = journal.state();
    let tries = journal
        .entries()
        .iter()
        .filter(|e| e.record.name() == "attempt" && e.record.step() == Some("ttl/lower"))
        .count();
    assert_eq!(tries, 7, "the eighth failure stops");
    assert!(state.stopped.is_some());
    let pauses: Vec<f64> = journal
        .entries()
        .iter()
        .filter_map(|e| match &e.record {
            Record::Attempt {
                step, retry_in_s, ..
            } if step == "ttl/lower" => Some(*retry_in_s),
            _ => None,
        })
        .collect();
    for (n, pause) in pauses.iter().enumerate() {
        let full = f64::from(1u32 << n).min(60.0);
        assert!((full / 2.0..=full).contains(pause), "{n}: {pause}");
    }
}

#[tokio::test(start_paused = true)]
async fn when_the_journal_cannot_be_written_the_effect_does_not_happen() {
    let before = Toy::new().state();
    // Record 1 is the start, record 2 the first intent: fails.
    let toy = Toy::new();
    let journal = Arc::new(Journal::failing_at(1));
    let error = engine(&toy, &journal).forward(None).await.unwrap_err();
    assert_eq!(error.kind, Kind::Interrupted);
    assert!(error.message.contains("No space left"), "{}", error.message);
    assert_eq!(toy.state(), before);
    assert_eq!(toy.writes(), 0);
    // Nothing can be appended afterwards either.
    let dead = journal.append(jiff::Timestamp::now(), Record::RunDone);
    assert!(matches!(dead, Err(JournalError::Dead)));
}

#[tokio::test(start_paused = true)]
async fn a_wrong_account_cluster_or_zone_stops_before_the_first_write() {
    type Bend = fn(&mut crate::plan::model::Basis);
    let bends: [(&str, Bend); 5] = [
        ("account", |b| b.account = Some("222222222222".into())),
        ("region", |b| b.region = Some("us-east-1".into())),
        ("uid", |b| b.blue.as_mut().unwrap().uid = "other".into()),
        ("CA", |b| {
            b.blue.as_mut().unwrap().ca_sha256 = "other".into()
        }),
        ("zone", |b| {
            b.zones.insert("shop.test".into(), "Z2".into());
        }),
    ];
    for (what, bend) in bends {
        let toy = Toy::new();
        let journal = Arc::new(Journal::memory());
        let mut plan = plan();
        bend(&mut plan.basis);
        let error = engine_with(&toy, &journal, plan, silent())
            .forward(None)
            .await
            .unwrap_err();
        assert_eq!(error.kind, Kind::StalePlan, "{what}");
        assert!(error.message.contains(what), "{what}: {}", error.message);
        assert_eq!((toy.writes(), journal.len()), (0, 0), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn drift_of_blue_stops_a_new_run_and_is_shown_but_does_not_stop_a_begun_one() {
    let toy = Toy::new();
    let mut plan = plan();
    let listing = toy
        .world()
        .blue
        .list(&toy.world().blue.kinds(false).await.unwrap()[0])
        .await
        .unwrap();
    let verdict = |object: String, basis: String| crate::plan::model::Verdict {
        object,
        api_version: "v1".into(),
        verdict: crate::plan::model::Fate::Copied,
        rules: vec![],
        target: None,
        basis: Some(basis),
        uid: None,
        park: None,
    };
    let mut verdicts: Vec<_> = listing
        .items
        .iter()
        .map(|item| {
            let id = crate::object::ObjectId::of(item).unwrap().to_string();
            verdict(id, crate::engine::pins::object_hash(item))
        })
        .collect();
    let still_there = verdicts.clone();
    verdicts.push(verdict("configmap/toy/lost".into(), "x".into()));
    plan.verdicts = verdicts.into();
    let journal = Arc::new(Journal::memory());
    let error = engine_with(&toy, &journal, plan.clone(), silent())
        .forward(None)
        .await
        .unwrap_err();
    assert_eq!(error.kind, Kind::StalePlan);
    assert!(
        !error.message.contains("configmap/toy/web"),
        "{}",
        error.message
    );
    plan.verdicts = still_there.into();
    toy.put(Side::Blue, "web", "edited");
    let error = engine_with(&toy, &journal, plan.clone(), silent())
        .forward(None)
        .await
        .unwrap_err();
    assert!(
        error.message.contains("configmap/toy/web: changed on blue"),
        "{}",
        error.message
    );
    assert_eq!((toy.writes(), journal.len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_plan_of_another_version_is_refused_before_anything_happens() {
    let toy = Toy::new();
    let journal = Arc::new(Journal::memory());
    let mut unknown = plan();
    unknown.steps[6].kind = "toy.teleport".into();
    let error = engine_with(&toy, &journal, unknown, silent())
        .forward(None)
        .await
        .unwrap_err();
    assert_eq!(error.kind, Kind::BadInput);
    let mut params = plan();
    params.steps[0].params = serde_json::json!({});
    assert!(check_plan(&params, &registry()).is_err());
    let mut order = plan();
    order.steps.reverse();
    assert!(check_plan(&order, &registry()).is_err());
    assert_eq!(toy.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_journal_of_another_plan_is_refused() {
    let toy = Toy::new();
    let journal = Arc::new(Journal::memory());
    engine(&toy, &journal)
        .forward(Some(Phase::Ttl))
        .await
        .unwrap();
    let mut other = plan();
    other.digest = "other".into();
    let error = engine_with(&toy, &journal, other, silent())
        .forward(None)
        .await
        .unwrap_err();
    assert_eq!(error.kind, Kind::StalePlan);
}
