//! The demo on the twin: fast, faultless, and the same end whatever kills it.

use crossfade::engine::rehearse::Company;
use crossfade::engine::silent;
use crossfade::plan::model::Plan;
use crossfade::snapshot::model::Snapshot;
use crossfade::spec::model::Spec;
use std::path::Path;
use std::sync::Arc;

fn demo() -> (Spec, Snapshot, Arc<Plan>) {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/demo");
    let spec = crossfade::spec::load(&demo.join("migration.yaml")).unwrap();
    let snapshot = crossfade::snapshot::store::read(&demo.join("snapshot")).unwrap();
    let plan = Arc::new(crossfade::plan::plan(&spec, &snapshot));
    (spec, snapshot, plan)
}

#[test]
fn the_demo_goes_there_and_back_and_keeps_every_promise() {
    let (spec, snapshot, plan) = demo();
    let registry = crossfade::step::registry();
    let company = Company {
        spec: &spec,
        snapshot: &snapshot,
        plan,
        registry,
    };
    let rehearsal = company.there_and_back(silent()).unwrap();
    assert_eq!(rehearsal.violations, Vec::<String>::new());
    assert_eq!(rehearsal.outcome, "migrated");
    assert_eq!(rehearsal.rollback.outcome, "restored");
    // A whole EKS cluster takes its virtual minutes; writes are closed for a few of them only.
    assert!(rehearsal.virtual_s > 600.0, "{}", rehearsal.virtual_s);
    assert!(
        rehearsal.write_closed_s > 60.0 && rehearsal.write_closed_s <= 300.0,
        "{}",
        rehearsal.write_closed_s
    );
    println!("real {} ms", rehearsal.real_ms);
}

#[test]
fn killed_after_each_journal_record_the_same_command_reaches_the_same_state_there_and_back() {
    let (spec, snapshot, plan) = demo();
    let registry = crossfade::step::registry();
    let company = Company {
        spec: &spec,
        snapshot: &snapshot,
        plan,
        registry,
    };
    let said = |class: &crossfade::engine::rehearse::FaultClass| {
        println!("{} cases: {}", class.cases, class.class);
    };
    // Every record; of the calls a few of each class (the command line can do all of them).
    let rehearsal = company.with_faults(silent(), usize::MAX, 8, &said).unwrap();
    assert_eq!(rehearsal.violations, Vec::<String>::new());
    let classes = rehearsal.faults.expect("the undisturbed run was good");
    let records: usize = classes
        .iter()
        .filter(|c| c.class.contains("journal record"))
        .map(|c| c.cases)
        .sum();
    assert!(
        records as u64 >= 2 * rehearsal.records,
        "{records} cases for {} records",
        rehearsal.records
    );
}
