//! Every journal record × {died before the effect, died after it} × {resume, rollback}, and every call × {lost reply, no connection, refusal}:
//! the end is always the same.

use super::toy::{Fault, Toy, engine};
use super::*;
use crate::journal::{CrashPoint, Journal};
use std::collections::BTreeMap;

type End = BTreeMap<String, Value>;

/// End states of undisturbed runs, their numbers of records, and the number of calls.
async fn undisturbed() -> (End, End, u64, u64, u64) {
    let toy = Toy::new();
    let start = toy.state();
    let journal = Arc::new(Journal::memory());
    engine(&toy, &journal).forward(None).await.unwrap();
    let (there, forward, calls) = (toy.state(), journal.len(), toy.calls());
    engine(&toy, &journal).rollback(None).await.unwrap();
    assert_eq!(toy.state(), start);
    (start, there, forward, journal.len(), calls)
}

fn next_process(journal: &Journal) -> Arc<Journal> {
    Arc::new(Journal::restart(journal.entries()).expect("a legal journal"))
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_record_forwards_then_resume_or_rollback() {
    let (start, there, records, _, _) = undisturbed().await;
    assert!(records > 25, "{records}");
    for n in 1..records {
        for point in [CrashPoint::AfterRecord, CrashPoint::BeforeNext] {
            for back in [false, true] {
                let toy = Toy::new();
                let journal = Arc::new(Journal::memory());
                journal.crash_after(n, point);
                let died = engine(&toy, &journal).forward(None).await;
                assert!(died.is_err(), "{n} {point:?}");
                assert_eq!(journal.len(), n);
                let journal = next_process(&journal);
                if back {
                    let outcome = engine(&toy, &journal).rollback(None).await.unwrap();
                    assert_eq!(outcome.name(), "restored", "{n} {point:?}");
                    assert_eq!(toy.state(), start, "{n} {point:?} rollback");
                } else {
                    let outcome = engine(&toy, &journal).forward(None).await.unwrap();
                    assert_eq!(outcome.name(), "migrated", "{n} {point:?}");
                    assert_eq!(toy.state(), there, "{n} {point:?} resume");
                    // And the way back from there is still whole.
                    engine(&toy, &journal).rollback(None).await.unwrap();
                    assert_eq!(toy.state(), start, "{n} {point:?} resume, rollback");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_record_of_the_way_back_then_rollback_again() {
    let (start, there, first, last, _) = undisturbed().await;
    for n in first + 1..last {
        for point in [CrashPoint::AfterRecord, CrashPoint::BeforeNext] {
            let toy = Toy::new();
            let journal = Arc::new(Journal::memory());
            engine(&toy, &journal).forward(None).await.unwrap();
            journal.crash_after(n, point);
            assert!(engine(&toy, &journal).rollback(None).await.is_err());
            let journal = next_process(&journal);
            let outcome = engine(&toy, &journal).rollback(None).await.unwrap();
            assert_eq!(outcome.name(), "restored", "{n} {point:?}");
            assert_eq!(toy.state(), start, "{n} {point:?}");
            // What was moved back can be moved again.
            engine(&toy, &journal).forward(None).await.unwrap();
            assert_eq!(toy.state(), there, "{n} {point:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn any_call_may_fail_or_lose_its_reply_and_the_run_goes_on_by_itself() {
    let (start, there, _, _, calls) = undisturbed().await;
    for call in 1..=calls {
        for fault in [Fault::LostReply, Fault::NoConnection] {
            let toy = Toy::new();
            toy.fault(call, fault);
            let journal = Arc::new(Journal::memory());
            let outcome = engine(&toy, &journal).forward(None).await.unwrap();
            assert_eq!(outcome.name(), "migrated", "call {call} {fault:?}");
            assert_eq!(toy.state(), there, "call {call} {fault:?}");
            let here = toy.calls();
            toy.fault(here + call, fault);
            engine(&toy, &journal).rollback(None).await.unwrap();
            assert_eq!(toy.state(), start, "call {call} {fault:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn any_call_may_be_refused_then_the_run_stops_and_can_go_on_or_back() {
    let (start, there, _, _, calls) = undisturbed().await;
    for call in 1..=calls {
        for back in [false, true] {
            let toy = Toy::new();
            toy.fault(call, Fault::Refused);
            let journal = Arc::new(Journal::memory());
            let outcome = engine(&toy, &journal).forward(None).await.unwrap();
            assert_eq!(outcome.name(), "stopped", "call {call}");
            if back {
                engine(&toy, &journal).rollback(None).await.unwrap();
                assert_eq!(toy.state(), start, "call {call}");
            } else {
                let outcome = engine(&toy, &journal).forward(None).await.unwrap();
                assert_eq!(outcome.name(), "migrated", "call {call}");
                assert_eq!(toy.state(), there, "call {call}");
            }
        }
    }
}
