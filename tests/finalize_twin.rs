//! `finalize` on the twin of the demo: what it raises, what it lets go, and that there is no way back.

use crossfade::engine::{Engine, Options, silent};
use crossfade::error::Kind;
use crossfade::journal::Journal;
use crossfade::object::{ObjectId, Side};
use crossfade::world::dns::{Change, RecordSet};
use crossfade::world::twin::{self, Twin};
use std::path::Path;
use std::sync::Arc;

#[tokio::test(start_paused = true)]
async fn finalize_raises_ttls_lets_green_delete_and_ends_the_way_back() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/demo");
    let spec = crossfade::spec::load(&demo.join("migration.yaml")).unwrap();
    let snapshot = crossfade::snapshot::store::read(&demo.join("snapshot")).unwrap();
    let plan = Arc::new(crossfade::plan::plan(&spec, &snapshot));
    let twin = Twin::new(&snapshot, &spec, twin::Options::default());
    let world = twin.world();
    let journal = Arc::new(Journal::memory());
    let engine = |journal: &Arc<Journal>| {
        Engine::new(
            world.clone(),
            plan.clone(),
            journal.clone(),
            crossfade::step::registry(),
            silent(),
        )
        .options(Options {
            check_drift: false,
            ..Options::default()
        })
    };
    // Before the end of the run it refuses.
    let early = engine(&journal).finalize().await.unwrap_err();
    assert_eq!(early.kind, Kind::StalePlan);
    let outcome = engine(&journal).forward(None).await.unwrap();
    assert_eq!(outcome.name(), "migrated", "{outcome:?}");

    let name = plan
        .names
        .iter()
        .find(|n| n.ttl_annotation && n.ttl.is_some())
        .expect("a name with an annotated TTL");
    let ttl = async || {
        let records = world.dns.records(&name.zone_id).await.unwrap();
        records
            .iter()
            .find(|r| r.name.trim_end_matches('.') == name.host && r.rtype == name.rtype)
            .unwrap()
            .ttl
    };
    assert_eq!(ttl().await, Some(spec.dns.low_ttl));

    assert!(engine(&journal).finalize().await.unwrap());
    assert_eq!(ttl().await, name.ttl, "the original TTL");
    for set in &spec.data {
        assert!(
            !world
                .data
                .stream(&set.name, Side::Green)
                .await
                .unwrap()
                .exists,
            "{}",
            set.name
        );
    }
    let start = plan.steps.iter().find(|s| s.kind == "edns.start").unwrap();
    let object = start.params["object"].as_str().unwrap();
    let mut parts = object.split('/').skip(1);
    let id = ObjectId::new("apps/v1", "Deployment", parts.next(), parts.next().unwrap());
    let text = world.green.get(&id).await.unwrap().unwrap().to_string();
    assert!(text.contains("--policy=sync") && !text.contains("upsert-only"));

    // Again: nothing to do. Back: never.
    let calls = twin.call_count();
    assert!(!engine(&journal).finalize().await.unwrap());
    assert_eq!(twin.call_count(), calls);
    let back = engine(&journal).rollback(None).await.unwrap_err();
    assert!(back.message.contains("no way back"), "{}", back.message);
    assert_eq!(twin.violations(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn dns_rule_13_sync_is_refused_while_green_owns_a_record_that_nothing_on_green_wants() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/demo");
    let spec = crossfade::spec::load(&demo.join("migration.yaml")).unwrap();
    let snapshot = crossfade::snapshot::store::read(&demo.join("snapshot")).unwrap();
    let plan = Arc::new(crossfade::plan::plan(&spec, &snapshot));
    let twin = Twin::new(&snapshot, &spec, twin::Options::default());
    let journal = Arc::new(Journal::memory());
    let engine = || {
        Engine::new(
            twin.world(),
            plan.clone(),
            journal.clone(),
            crossfade::step::registry(),
            silent(),
        )
        .options(Options {
            check_drift: false,
            ..Options::default()
        })
    };
    let outcome = engine().forward(None).await.unwrap();
    assert_eq!(outcome.name(), "migrated", "{outcome:?}");
    let zone = plan.names[0].zone_id.clone();
    let set = |name: &str, rtype: &str, value: &str| RecordSet {
        name: name.into(),
        rtype: rtype.into(),
        ttl: Some(300),
        values: vec![value.into()],
        alias: None,
        set_identifier: None,
        routing: Default::default(),
    };
    let text = crossfade::edns::heritage_value("shop-green", "ingress/gone/gone");
    let stray = [
        set("stray.shop.test.", "A", "192.0.2.50"),
        set("a-stray.shop.test.", "TXT", &text),
    ];
    let there: Vec<Change> = stray.iter().cloned().map(Change::Create).collect();
    twin.somebody_changes_records(&zone, &there).unwrap();
    let refused = engine().finalize().await.unwrap_err();
    assert_eq!(refused.kind, Kind::Blocked);
    assert!(
        refused.message.contains("DELETE record/stray.shop.test/A"),
        "{}",
        refused.message
    );
    assert!(
        refused.remedy.contains("way back is still open"),
        "{}",
        refused.remedy
    );
    // Nothing has begun: the way back is whole.
    let gone: Vec<Change> = stray.iter().cloned().map(Change::Delete).collect();
    twin.somebody_changes_records(&zone, &gone).unwrap();
    // A TXT of a live name that carries blue's owner again is refused as well (rule 16).
    let name = plan.names.iter().find(|n| n.ttl.is_some()).unwrap();
    let records = twin.world().dns.records(&zone).await.unwrap();
    let typed = records
        .iter()
        .find(|r| r.name == format!("{}.", name.host) && r.rtype == "TXT")
        .unwrap()
        .clone();
    let blues = RecordSet {
        values: vec![crossfade::edns::heritage_value("shop-blue", &name.object)],
        ..typed.clone()
    };
    let swap = |from: &RecordSet, to: &RecordSet| {
        [Change::Delete(from.clone()), Change::Create(to.clone())]
    };
    twin.somebody_changes_records(&zone, &swap(&typed, &blues))
        .unwrap();
    let refused = engine().finalize().await.unwrap_err();
    assert!(
        refused.message.contains("blue's owner") || refused.message.contains("not green's"),
        "{}",
        refused.message
    );
    twin.somebody_changes_records(&zone, &swap(&blues, &typed))
        .unwrap();
    assert!(engine().finalize().await.unwrap());
}
