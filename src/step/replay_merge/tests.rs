//! On the twin, whose green makes the account `default` of a new namespace as a controller manager does.

use super::*;
use crate::engine::{Engine, Options, silent};
use crate::journal::Journal;
use crate::object::{ObjectId, Side};
use crate::plan::model::{Fate, Phase, Plan, Verdict};
use crate::rewrite::tests::planned;
use crate::step::StepLog;
use crate::world::twin::{self, Twin};
use std::path::Path;
use std::sync::{Arc, RwLock};
use std::time::Duration;

struct Silent;
impl StepLog for Silent {
    fn progress(&self, _: &str, _: Value) -> Result<(), String> {
        Ok(())
    }
    fn recorded(&self, _: &str) -> Vec<Value> {
        vec![]
    }
}

const NAME: &str = "serviceaccount/yard/default";

fn id() -> ObjectId {
    ObjectId::new("v1", "ServiceAccount", Some("yard"), "default")
}

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "yard"}})
}

/// As blue of 1.21 has it.
fn account() -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "yard", "uid": "u-1",
        "annotations": {"team.example.com/owner": "yard"}},
        "imagePullSecrets": [{"name": "registry"}], "secrets": [{"name": "default-token-x7k2p"}]})
}

/// The demo's green, provisioned, with the step over that account; nothing made the namespace yet.
async fn place() -> (Twin, Cx, Box<dyn Step>) {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/demo");
    let spec = crate::spec::load(&demo.join("migration.yaml")).unwrap();
    let snapshot = crate::snapshot::store::read(&demo.join("snapshot")).unwrap();
    let mut plan: Plan = crate::plan::plan(&spec, &snapshot);
    let twin = Twin::new(&snapshot, &spec, twin::Options::default());
    let engine = Engine::new(
        twin.world(),
        Arc::new(plan.clone()),
        Arc::new(Journal::memory()),
        crate::step::registry(),
        silent(),
    )
    .options(Options {
        check_drift: false,
        ..Options::default()
    });
    let outcome = engine.forward(Some(Phase::Provision)).await.unwrap();
    assert_eq!(outcome.name(), "migrated", "{outcome:?}");
    let small = planned(vec![namespace(), account()]);
    let verdict: Verdict = small.verdicts.get(NAME).unwrap().unwrap().into_owned();
    assert_eq!(verdict.verdict, Fate::Copied);
    plan.verdicts = vec![verdict].into();
    let step = small
        .steps
        .iter()
        .find(|s| s.kind == "replay.merge")
        .expect("it is planned");
    assert_eq!(step.needs, ["replay/namespaces"]);
    assert!(
        !small
            .steps
            .iter()
            .any(|s| s.kind == "replay.wave" && s.params.to_string().contains(NAME)),
        "no wave creates it"
    );
    let cx = Cx {
        world: twin.world(),
        plan: Arc::new(plan),
        run: "yard-1".into(),
        step: "replay/defaults".into(),
        log: Arc::new(Silent),
        outputs: Arc::new(RwLock::new(BTreeMap::new())),
        extra: Arc::default(),
    };
    let step = make(&step.params).unwrap();
    (twin, cx, step)
}

/// Without what changes with every write.
fn content(mut object: Value) -> Value {
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("resourceVersion");
        meta.remove("managedFields");
        if meta.get("annotations").is_some_and(|a| *a == json!({})) {
            meta.remove("annotations");
        }
    }
    object
}

async fn on_green(cx: &Cx) -> Value {
    cx.world.green.get(&id()).await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn rule_37_the_account_default_gets_blues_pull_secrets_beside_its_own_and_loses_only_those_again()
 {
    let (twin, cx, step) = place().await;
    let e = step.observe(&cx).await.unwrap_err();
    assert!(
        matches!(&e, StepError::World(e) if e.class == Class::NotReady),
        "green makes it once the namespace stands: {e}"
    );
    twin.somebody_creates(Side::Green, &namespace()).unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let theirs = json!({"imagePullSecrets": [{"name": "mirror"}], "metadata": {"annotations": {"green.example.com/note": "ours"}}});
    twin.somebody_merges(Side::Green, &id(), &theirs).unwrap();
    let start = on_green(&cx).await;

    let before = step.observe(&cx).await.unwrap();
    let after = step.apply(&cx, &before).await.unwrap();
    let merged = on_green(&cx).await;
    assert_eq!(
        merged["imagePullSecrets"],
        json!([{"name": "mirror"}, {"name": "registry"}])
    );
    assert_eq!(
        merged["metadata"]["annotations"],
        json!({"green.example.com/note": "ours", "team.example.com/owner": "yard"})
    );
    assert!(merged.get("secrets").is_none(), "blue's token stays there");
    assert_eq!(
        crate::object::uid(&merged),
        crate::object::uid(&start),
        "the same account: pods that use it keep their tokens"
    );
    // Again, as after a crash: no write.
    let calls = twin.call_count();
    step.apply(&cx, &before).await.unwrap();
    assert_eq!(twin.call_count() - calls, 1, "one look");

    step.undo(&cx, &before, Some(&after)).await.unwrap();
    assert_eq!(content(on_green(&cx).await), content(start));
    // And once more, as after a crash.
    step.undo(&cx, &before, None).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn rule_37_what_green_says_otherwise_is_never_overwritten_neither_there_nor_back() {
    let (twin, cx, step) = place().await;
    twin.somebody_creates(Side::Green, &namespace()).unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let owner = |who: &str| json!({"metadata": {"annotations": {"team.example.com/owner": who}}});
    twin.somebody_merges(Side::Green, &id(), &owner("platform"))
        .unwrap();
    let e = step.observe(&cx).await.unwrap_err().to_string();
    assert!(e.contains("team.example.com/owner"), "{e}");
    twin.somebody_merges(
        Side::Green,
        &id(),
        &json!({"metadata": {"annotations": {"team.example.com/owner": null}}}),
    )
    .unwrap();
    let before = step.observe(&cx).await.unwrap();
    step.apply(&cx, &before).await.unwrap();
    twin.somebody_merges(Side::Green, &id(), &owner("platform"))
        .unwrap();
    let e = step.undo(&cx, &before, None).await.unwrap_err();
    assert!(
        matches!(&e, StepError::Changed { object, .. } if object == NAME),
        "{e}"
    );
    let left = on_green(&cx).await;
    assert_eq!(
        left["metadata"]["annotations"]["team.example.com/owner"],
        "platform"
    );
    assert!(
        left.get("imagePullSecrets").is_none(),
        "what nobody changed was taken back: {left}"
    );
}
