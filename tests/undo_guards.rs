//! What the way back must never do: each was found by breaking a real run on the bench.

use crossfade::engine::{Engine, Options, Outcome, silent};
use crossfade::journal::Journal;
use crossfade::object::{ObjectId, Side};
use crossfade::plan::model::{Phase, Plan};
use crossfade::world::dns::{Change, RecordSet};
use crossfade::world::twin::{self, Twin};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

struct Demo {
    twin: Twin,
    plan: Arc<Plan>,
    journal: Arc<Journal>,
}

impl Demo {
    fn new() -> Demo {
        let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/demo");
        let spec = crossfade::spec::load(&demo.join("migration.yaml")).unwrap();
        let snapshot = crossfade::snapshot::store::read(&demo.join("snapshot")).unwrap();
        Demo {
            plan: Arc::new(crossfade::plan::plan(&spec, &snapshot)),
            twin: Twin::new(&snapshot, &spec, twin::Options::default()),
            journal: Arc::new(Journal::memory()),
        }
    }
    fn engine(&self) -> Engine {
        Engine::new(
            self.twin.world(),
            self.plan.clone(),
            self.journal.clone(),
            crossfade::step::registry(),
            silent(),
        )
        .options(Options {
            check_drift: false,
            ..Options::default()
        })
    }
    async fn forward(&self, to: Option<Phase>) {
        let outcome = self.engine().forward(to).await.unwrap();
        assert_eq!(outcome.name(), "migrated", "{outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_person_made_in_a_namespace_of_green_is_never_deleted_with_it() {
    let demo = Demo::new();
    demo.forward(Some(Phase::Replay)).await;
    let own = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "users-own", "namespace": "storefront"}, "data": {"important": "data"}});
    demo.twin.somebody_creates(Side::Green, &own).unwrap();
    let outcome = demo
        .engine()
        .rollback(Some(Phase::Provision))
        .await
        .unwrap();
    let Outcome::Stuck { step, stuck } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(
        (step.as_str(), stuck.object.as_str()),
        ("replay/namespaces", "namespace/storefront")
    );
    assert!(
        stuck.found.contains("configmap/storefront/users-own"),
        "{}",
        stuck.found
    );
    let id = ObjectId::of(&own).unwrap();
    let there = demo.twin.world().green.get(&id).await.unwrap();
    assert!(there.is_some(), "it is still there");
}

#[tokio::test(start_paused = true)]
async fn after_a_rollback_to_unpark_the_same_plan_goes_forward_again() {
    let demo = Demo::new();
    demo.forward(Some(Phase::Data)).await;
    let back = demo.engine().rollback(Some(Phase::Unpark)).await.unwrap();
    assert_eq!(back.name(), "restored", "{back:?}");
    // The copy to green follows again, or the fence could never close a second time.
    demo.forward(None).await;
    assert_eq!(demo.twin.violations(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_moved_record_that_a_person_changed_stops_the_rollback_and_is_named() {
    let demo = Demo::new();
    demo.forward(None).await;
    let start = demo
        .plan
        .steps
        .iter()
        .find(|s| s.kind == "edns.start")
        .unwrap();
    let mut parts = start.params["object"].as_str().unwrap().split('/').skip(1);
    let edns = ObjectId::new("apps/v1", "Deployment", parts.next(), parts.next().unwrap());
    demo.twin
        .somebody_merges(Side::Green, &edns, &json!({"spec": {"replicas": 0}}))
        .unwrap();
    let www = demo
        .plan
        .names
        .iter()
        .find(|n| n.host == "www.shop.test")
        .unwrap();
    let record = RecordSet {
        name: "www.shop.test.".into(),
        rtype: "A".into(),
        ttl: Some(77),
        values: vec!["203.0.113.99".into()],
        alias: None,
        set_identifier: None,
        routing: Default::default(),
    };
    demo.twin
        .somebody_changes_records(&www.zone_id, &[Change::Upsert(record.clone())])
        .unwrap();
    let outcome = demo.engine().rollback(None).await.unwrap();
    let Outcome::Stuck { stuck, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(stuck.object, "record/www.shop.test");
    assert!(stuck.found.contains("203.0.113.99"), "{}", stuck.found);
    let records = demo.twin.world().dns.records(&www.zone_id).await.unwrap();
    assert!(records.contains(&record), "the person's record stands");
}

#[tokio::test(start_paused = true)]
async fn after_a_rollback_of_the_cutover_blues_external_dns_runs_again_and_the_zone_is_as_before() {
    let demo = Demo::new();
    demo.forward(Some(Phase::Data)).await;
    let zone = demo.plan.names[0].zone_id.clone();
    let before = demo.twin.world().dns.records(&zone).await.unwrap();
    demo.forward(None).await;
    assert_ne!(
        demo.twin.world().dns.records(&zone).await.unwrap(),
        before,
        "the names moved"
    );
    let back = demo.engine().rollback(Some(Phase::Data)).await.unwrap();
    assert_eq!(back.name(), "restored", "{back:?}");
    let edns = ObjectId::new("apps/v1", "Deployment", Some("platform"), "external-dns");
    let blue = demo.twin.world().blue.get(&edns).await.unwrap().unwrap();
    assert_eq!(blue["spec"]["replicas"], 1, "blue's writer is back");
    assert_eq!(demo.twin.world().dns.records(&zone).await.unwrap(), before);
}
