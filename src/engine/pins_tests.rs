//! Drift of a big blue: read by pages, told by name.

use super::drift;
use crate::object::{ObjectId, Side};
use crate::snapshot::model::Snapshot;
use crate::world::twin::{Fault, Options, Twin};
use serde_json::{Value, json};

fn config(n: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{n:04}"), "namespace": "shop"}, "data": {"n": n.to_string()}})
}

fn id(n: usize) -> ObjectId {
    ObjectId::new("v1", "ConfigMap", Some("shop"), &format!("c{n:04}"))
}

#[tokio::test(start_paused = true)]
async fn drift_among_1200_objects_is_found_on_every_page_also_when_pages_grow_too_old() {
    let mut snapshot = Snapshot::default();
    snapshot.blue.objects =
        vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})];
    snapshot.blue.objects.extend((0..1200).map(config));
    let plan = crate::plan::plan(&crate::spec::defaults_for(&snapshot), &snapshot);
    let twin = Twin::new(&snapshot, &plan.spec, Options::default());
    let world = twin.world();
    let drift = async || drift(&world, &plan).await.expect("readable");
    assert_eq!(drift().await, Vec::<String>::new());
    // A token that is too old, once: the list is read again from its beginning, and nothing is told twice.
    twin.somebody_merges(Side::Blue, &id(3), &json!({"data": {"n": "x"}}))
        .expect("there");
    twin.somebody_merges(Side::Blue, &id(1100), &json!({"data": {"n": "x"}}))
        .expect("there");
    twin.somebody_deletes(Side::Blue, &id(700)).expect("there");
    twin.somebody_creates(Side::Blue, &config(5000))
        .expect("not of this plan");
    let found = [
        "configmap/shop/c0003: changed on blue",
        "configmap/shop/c0700: gone from blue",
        "configmap/shop/c1100: changed on blue",
    ];
    assert_eq!(drift().await, found);
    twin.fail_matching("(next page)", 1, Fault::Expired);
    assert_eq!(drift().await, found);
    // Always: then all at once.
    twin.fail_matching("(next page)", 100, Fault::Expired);
    assert_eq!(drift().await, found);
}
