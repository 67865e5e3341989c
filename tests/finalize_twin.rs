//! `finalize` on the twin of the demo: what it raises, what it lets go, and that there is no way back.

use crossfade::engine::{Engine, Options, silent};
use crossfade::error::Kind;
use crossfade::journal::Journal;
use crossfade::object::{ObjectId, Side};
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
