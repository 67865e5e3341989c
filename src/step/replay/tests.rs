//! Waves on the twin: what is read, in which order it is written, what a fault or a second run changes, and what an undo leaves alone.

use super::items::Wave;
use super::mark;
use crate::engine::{Engine, Options, silent};
use crate::journal::Journal;
use crate::object::{ObjectId, Side, annotation, uid};
use crate::plan::model::{Fate, Park, Phase, Plan, Verdict};
use crate::step::{Cx, Settle, Step, StepError, StepLog};
use crate::world::twin::{self, Fault, Twin};
use crate::world::{Class, World};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

/// A journal that knows after how many calls each record came, and may die.
struct Notes {
    twin: Twin,
    records: Mutex<Vec<(u64, Value)>>,
    dies_at: usize,
}

impl StepLog for Notes {
    fn progress(&self, _: &str, data: Value) -> Result<(), String> {
        let mut records = self.records.lock().unwrap();
        if records.len() >= self.dies_at {
            return Err("No space left on device".into());
        }
        records.push((self.twin.call_count(), data));
        Ok(())
    }
    fn recorded(&self, _: &str) -> Vec<Value> {
        self.records
            .lock()
            .unwrap()
            .iter()
            .map(|r| r.1.clone())
            .collect()
    }
}

struct Place {
    twin: Twin,
    world: World,
    plan: Plan,
}

/// The demo company with green provisioned and empty.
async fn place() -> Place {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/demo");
    let spec = crate::spec::load(&demo.join("migration.yaml")).unwrap();
    let snapshot = crate::snapshot::store::read(&demo.join("snapshot")).unwrap();
    let plan = crate::plan::plan(&spec, &snapshot);
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
    let there = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "yard"}});
    twin.somebody_creates(Side::Green, &there).unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    Place {
        world: twin.world(),
        twin,
        plan,
    }
}

impl Place {
    /// A step over these targets, with a journal of its own.
    fn wave(&self, targets: &[Value]) -> (Wave, Cx, Arc<Notes>) {
        self.wave_with(targets, usize::MAX)
    }

    fn wave_with(&self, targets: &[Value], dies_at: usize) -> (Wave, Cx, Arc<Notes>) {
        let verdicts: Vec<Verdict> = targets.iter().map(copied).collect();
        let mut kinds: BTreeMap<(String, String), usize> = BTreeMap::new();
        for t in targets {
            let id = ObjectId::of(t).unwrap();
            *kinds.entry((id.api_version, id.kind)).or_default() += 1;
        }
        let wave = Wave {
            objects: verdicts.iter().map(|v| v.object.clone()).collect(),
            generated: vec![],
            kinds: kinds.into_iter().map(|((v, k), n)| (v, k, n)).collect(),
            owners: BTreeMap::new(),
        };
        let log = Arc::new(Notes {
            twin: self.twin.clone(),
            records: Mutex::new(vec![]),
            dies_at,
        });
        let mut plan = self.plan.clone();
        plan.verdicts = verdicts.into();
        let cx = Cx {
            world: self.world.clone(),
            plan: Arc::new(plan),
            run: "yard-1".into(),
            step: "replay/test".into(),
            log: log.clone(),
            outputs: Arc::new(RwLock::new(BTreeMap::new())),
            extra: Arc::default(),
        };
        (wave, cx, log)
    }

    async fn green(&self, target: &Value) -> Option<Value> {
        let id = ObjectId::of(target).unwrap();
        self.world.green.get(&id).await.unwrap()
    }

    /// Calls from the n-th on.
    fn calls(&self, from: u64) -> Vec<String> {
        let calls = self.twin.calls();
        calls
            .into_iter()
            .filter(|c| c.n >= from)
            .map(|c| c.what)
            .collect()
    }

    fn writes(&self, from: u64) -> usize {
        let calls = self.twin.calls();
        calls.iter().filter(|c| c.n >= from && c.write).count()
    }
}

fn copied(target: &Value) -> Verdict {
    let id = ObjectId::of(target).unwrap();
    Verdict {
        object: id.to_string(),
        api_version: id.api_version,
        verdict: Fate::Copied,
        rules: vec![],
        target: Some(target.clone()),
        basis: None,
        uid: Some("uid-on-blue".into()),
        park: (id.kind == "Deployment").then(|| Park {
            field: "/spec/replicas".into(),
            wakes: "unpark".into(),
            value: json!(2),
        }),
    }
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "yard"}, "data": {"k": "v"}})
}

fn maps(count: usize) -> Vec<Value> {
    (0..count).map(|n| map(&format!("m{n:04}"))).collect()
}

fn rbac(kind: &str, name: &str) -> Value {
    let mut o = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name, "namespace": "yard"}});
    match kind {
        "Role" => {
            o["rules"] = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])
        }
        _ => {
            o["roleRef"] =
                json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"});
            o["subjects"] = json!([{"kind": "User", "name": "u"}]);
        }
    }
    o
}

async fn create_all(wave: &Wave, cx: &Cx) -> (Value, Value) {
    let before = wave.observe(cx).await.unwrap();
    let after = wave.apply(cx, &before).await.unwrap();
    (before, after)
}

#[tokio::test(start_paused = true)]
async fn an_empty_green_is_looked_at_with_a_handful_of_requests() {
    let place = place().await;
    let (wave, cx, _) = place.wave(&maps(300));
    let from = place.twin.call_count();
    let before = wave.observe(&cx).await.unwrap();
    assert_eq!(before, json!({"adopted": []}));
    assert!(place.calls(from).len() <= 3, "{:?}", place.calls(from));
}

#[tokio::test(start_paused = true)]
async fn rule_02_a_list_that_expires_between_two_pages_is_read_from_the_start() {
    let place = place().await;
    for n in 0..700 {
        place
            .twin
            .somebody_creates(Side::Green, &map(&format!("a{n:04}")))
            .unwrap();
    }
    // On the last page.
    for name in ["z0", "z1"] {
        place
            .twin
            .somebody_creates(Side::Green, &map(name))
            .unwrap();
    }
    let wanted: Vec<Value> = ["z0", "z1", "z2", "z3", "z4"]
        .iter()
        .map(|n| map(n))
        .collect();
    let (wave, cx, _) = place.wave(&wanted);
    place.twin.fail_matching("(next page)", 1, Fault::Expired);
    let from = place.twin.call_count();
    let before = wave.observe(&cx).await.unwrap();
    assert_eq!(
        before["adopted"],
        json!(["configmap/yard/z0", "configmap/yard/z1"])
    );
    let pages = place
        .calls(from)
        .iter()
        .filter(|c| c.contains("list configmaps"))
        .count();
    assert!(
        (4..=8).contains(&pages),
        "two tries of two pages: {:?}",
        place.calls(from)
    );
}

#[tokio::test(start_paused = true)]
async fn rule_03_roles_stand_before_bindings_and_services_before_hand_written_endpoints() {
    let place = place().await;
    let mut targets = vec![];
    for n in 0..30 {
        targets.push(rbac("RoleBinding", &format!("b{n}")));
        targets.push(rbac("Role", &format!("r{n}")));
    }
    for name in ["db", "cache"] {
        targets.push(json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": name, "namespace": "yard"}, "subsets": [{"addresses": [{"ip": "10.9.9.9"}]}]}));
        targets.push(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "yard"}, "spec": {"ports": [{"port": 80}]}}));
    }
    let (wave, cx, _) = place.wave(&targets);
    let from = place.twin.call_count();
    create_all(&wave, &cx).await;
    let calls = place.calls(from);
    let at = |part: &str, last: bool| {
        let all: Vec<usize> = calls
            .iter()
            .enumerate()
            .filter(|(_, c)| c.contains(part))
            .map(|(n, _)| n)
            .collect();
        if last { *all.last().unwrap() } else { all[0] }
    };
    assert!(at("create role/", true) < at("create rolebinding/", false));
    assert!(at("create service/", true) < at("create endpoints/", false));
}

#[tokio::test(start_paused = true)]
async fn a_wave_is_one_stream_and_the_next_group_is_announced_while_the_last_is_under_way() {
    let place = place().await;
    let (wave, cx, log) = place.wave(&maps(400));
    let from = place.twin.call_count();
    let began = place.twin.elapsed();
    let (_, after) = create_all(&wave, &cx).await;
    // One at a time would take 20 s of the twin's 50 ms a call.
    let took = place.twin.elapsed() - began;
    assert!(took < Duration::from_secs(4), "{took:?}");
    assert_eq!(after["created"], 400);
    assert!(after["pace"]["in_flight"].as_u64().unwrap() >= 8, "{after}");

    let records = log.records.lock().unwrap().clone();
    let calls = place.twin.calls();
    let announced = |name: &str| {
        records
            .iter()
            .find(|(_, r)| {
                r["creating"]
                    .as_array()
                    .is_some_and(|c| c.iter().any(|n| n == name))
            })
            .map(|(calls, _)| *calls)
            .unwrap()
    };
    for call in calls.iter().filter(|c| c.n >= from && c.write) {
        let name = call.what.strip_prefix("green create ").unwrap();
        assert!(
            announced(name) <= call.n,
            "{name} was sent before it was announced"
        );
    }
    // The second group was announced when the first was not even half created.
    let second = records[1].0 - from;
    assert!(second < 30, "the second record came after {second} calls");
    let created: usize = records
        .iter()
        .filter_map(|(_, r)| r["created"].as_object())
        .map(|c| c.len())
        .sum();
    assert_eq!(created, 400, "every uid is recorded, once");
    assert!(records.len() <= 12, "{} records", records.len());
}

#[tokio::test(start_paused = true)]
async fn when_the_journal_dies_nothing_that_it_did_not_announce_is_sent() {
    let place = place().await;
    let (wave, cx, log) = place.wave_with(&maps(400), 1);
    let from = place.twin.call_count();
    let before = wave.observe(&cx).await.unwrap();
    let e = wave.apply(&cx, &before).await.unwrap_err();
    assert!(matches!(e, StepError::Journal(_)), "{e:?}");
    let announced = log.records.lock().unwrap()[0].1["creating"]
        .as_array()
        .unwrap()
        .len();
    assert!(place.writes(from) <= announced);
    // What was sent is found by its mark, and taken back.
    wave.undo(&cx, &before, None).await.unwrap();
    assert_eq!(
        wave.undone(&cx, &before, None).await.unwrap(),
        Settle::Ready
    );
}

#[tokio::test(start_paused = true)]
async fn rule_05_a_throttled_server_is_left_alone_as_long_as_it_asks_and_then_served() {
    let place = place().await;
    let (wave, cx, _) = place.wave(&maps(60));
    place
        .twin
        .fail_matching("green create", 12, Fault::Throttle);
    place
        .twin
        .fail_matching("green create", 3, Fault::NoConnection);
    let (_, after) = create_all(&wave, &cx).await;
    assert_eq!(after["created"], 60);
    assert!(after["pace"]["in_flight"].as_u64().unwrap() < 8, "{after}");
}

#[tokio::test(start_paused = true)]
async fn rule_05_nothing_is_written_into_a_namespace_that_is_being_deleted() {
    let place = place().await;
    let mut held = map("held");
    held["metadata"]["finalizers"] = json!(["somebody.test/holds"]);
    place.twin.somebody_creates(Side::Green, &held).unwrap();
    let yard = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "yard"}});
    let id = ObjectId::of(&yard).unwrap();
    place.twin.somebody_deletes(Side::Green, &id).unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;

    // The namespace itself: waited for with a bound, then told.
    let (wave, cx, _) = place.wave(std::slice::from_ref(&yard));
    let before = wave.observe(&cx).await.unwrap();
    assert_eq!(before["adopted"], json!([]), "a dying one is not adopted");
    let began = place.twin.elapsed();
    let e = wave.apply(&cx, &before).await.unwrap_err();
    let StepError::World(e) = e else {
        panic!("{e:?}")
    };
    assert_eq!(e.class, Class::NotReady, "{e}");
    assert!(e.message.contains("being deleted"), "{e}");
    let waited = place.twin.elapsed() - began;
    assert!(
        waited > Duration::from_secs(25) && waited < Duration::from_secs(60),
        "{waited:?}"
    );
    // An object inside: the same.
    let (inner, inner_cx, _) = place.wave(&[map("m")]);
    let e = inner
        .apply(&inner_cx, &json!({"adopted": []}))
        .await
        .unwrap_err();
    assert!(
        matches!(&e, StepError::World(e) if e.class == Class::NotReady),
        "{e:?}"
    );

    // Once it is gone, it is made anew, and is ours.
    let free = json!({"metadata": {"finalizers": null}});
    place
        .twin
        .somebody_merges(Side::Green, &ObjectId::of(&held).unwrap(), &free)
        .unwrap();
    wave.apply(&cx, &before).await.unwrap();
    assert!(mark::ours(&place.green(&yard).await.unwrap(), "yard-1"));
}

#[tokio::test(start_paused = true)]
async fn rule_10_an_owner_is_named_by_its_uid_on_green_and_stands_there_first() {
    let place = place().await;
    let mut child = map("child");
    child["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "parent", "uid": "blue-uid"}]);
    let mut targets = vec![map("parent"), child.clone()];
    targets.extend(maps(20));
    let (mut wave, cx, _) = place.wave(&targets);
    wave.owners.insert(
        "configmap/yard/child".into(),
        vec!["configmap/yard/parent".into()],
    );
    create_all(&wave, &cx).await;
    let parent = place.green(&map("parent")).await.unwrap();
    let child = place.green(&child).await.unwrap();
    assert_eq!(
        child["metadata"]["ownerReferences"][0]["uid"].as_str(),
        uid(&parent)
    );
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(
        place.green(&child).await.is_some(),
        "the garbage collector leaves it"
    );

    // An owner that is not copied: no dangling uid is ever written.
    let mut lost = map("lost");
    lost["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "blue-uid"}]);
    let (wave, cx, _) = place.wave(&[lost.clone()]);
    let before = wave.observe(&cx).await.unwrap();
    let e = wave.apply(&cx, &before).await.unwrap_err();
    assert!(
        matches!(&e, StepError::Refused { why, .. } if why.contains("configmap/yard/nobody")),
        "{e:?}"
    );
    assert!(place.green(&lost).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn rule_14_what_is_written_carries_run_source_and_content() {
    let place = place().await;
    let (wave, cx, _) = place.wave(&[map("m")]);
    create_all(&wave, &cx).await;
    let there = place.green(&map("m")).await.unwrap();
    assert_eq!(annotation(&there, mark::RUN), Some("yard-1"));
    assert_eq!(annotation(&there, mark::SOURCE_UID), Some("uid-on-blue"));
    assert_eq!(
        annotation(&there, mark::CONTENT),
        Some(mark::content(&map("m")).as_str())
    );
    assert!(there["metadata"].get("labels").is_none());
}

#[tokio::test(start_paused = true)]
async fn rule_15_a_second_run_without_the_firsts_journal_writes_nothing_and_can_take_everything_back()
 {
    let place = place().await;
    let targets = maps(60);
    let (wave, cx, _) = place.wave(&targets);
    create_all(&wave, &cx).await;
    let (again, cx, _) = place.wave(&targets);
    let from = place.twin.call_count();
    let (before, after) = create_all(&again, &cx).await;
    assert_eq!(place.writes(from), 0, "{:?}", place.calls(from));
    assert_eq!(before["ours"].as_object().unwrap().len(), 60);
    assert_eq!(after["created"], 60);
    again.undo(&cx, &before, Some(&after)).await.unwrap();
    assert!(place.green(&map("m0000")).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn rule_17_what_green_has_is_adopted_when_equal_and_named_when_not_cluster_scoped_first() {
    let place = place().await;
    let mut there = map("same");
    there["metadata"]["labels"] = json!({"more": "is fine"});
    place.twin.somebody_creates(Side::Green, &there).unwrap();
    let (wave, cx, _) = place.wave(&[map("same"), map("new")]);
    let (before, _) = create_all(&wave, &cx).await;
    assert_eq!(before["adopted"], json!(["configmap/yard/same"]));
    wave.undo(&cx, &before, None).await.unwrap();
    assert!(
        place.green(&map("same")).await.is_some(),
        "adopted is never deleted"
    );
    assert!(place.green(&map("new")).await.is_none());

    let mut other = map("differs");
    other["data"]["k"] = json!("w");
    place.twin.somebody_creates(Side::Green, &other).unwrap();
    let admin = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "admin"}, "rules": [{"verbs": ["*"]}]});
    let (wave, cx, _) = place.wave(&[map("differs"), admin]);
    let from = place.twin.call_count();
    let e = wave.observe(&cx).await.unwrap_err();
    let StepError::Refused { object, why, .. } = e else {
        panic!("{e:?}")
    };
    assert_eq!(object, "clusterrole/admin");
    assert!(why.contains("belongs to green's system"), "{why}");
    assert!(why.contains("configmap/yard/differs (.data.k)"), "{why}");
    assert_eq!(place.writes(from), 0);
}

#[tokio::test(start_paused = true)]
async fn rule_20_a_field_that_green_would_drop_stops_the_wave_with_its_path() {
    let place = place().await;
    let crd = json!({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"ovens.bakery.test"},
        "spec":{"group":"bakery.test","scope":"Namespaced","names":{"kind":"Oven","plural":"ovens"},
        "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":
            {"spec":{"type":"object","properties":{"heat":{"type":"integer"}}}}}}}]}});
    let (wave, cx, _) = place.wave(&[crd]);
    let (before, after) = create_all(&wave, &cx).await;
    while wave.settle(&cx, &before, &after).await.unwrap() != Settle::Ready {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let oven = json!({"apiVersion":"bakery.test/v1","kind":"Oven","metadata":{"name":"o","namespace":"yard"},"spec":{"heat":250,"colour":"red"}});
    let (wave, cx, _) = place.wave(std::slice::from_ref(&oven));
    let before = wave.observe(&cx).await.unwrap();
    let e = wave.apply(&cx, &before).await.unwrap_err();
    let StepError::World(e) = e else {
        panic!("{e:?}")
    };
    assert!(
        e.at.contains("oven.bakery.test/yard/o") && e.message.contains("spec.colour"),
        "{e}"
    );
    assert!(place.green(&oven).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_looked_after_and_nothing_is_made_twice() {
    let place = place().await;
    let (wave, cx, log) = place.wave(&maps(10));
    place
        .twin
        .fail_matching("green create configmap/yard/m0003", 1, Fault::LostReply);
    let (_, after) = create_all(&wave, &cx).await;
    assert_eq!(after["created"], 10);
    let there = place.green(&map("m0003")).await.unwrap();
    let recorded = log.recorded("").iter().find_map(|r| {
        r["created"]["configmap/yard/m0003"]
            .as_str()
            .map(String::from)
    });
    assert_eq!(recorded.as_deref(), uid(&there));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_created_is_named_and_what_was_created_is_recorded() {
    let place = place().await;
    let mut targets = maps(20);
    targets.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Not-A-Name", "namespace": "yard"}}));
    let (wave, cx, log) = place.wave(&targets);
    let before = wave.observe(&cx).await.unwrap();
    let e = wave.apply(&cx, &before).await.unwrap_err();
    assert!(e.to_string().contains("Not-A-Name"), "{e}");
    let created: usize = log
        .recorded("")
        .iter()
        .filter_map(|r| r["created"].as_object())
        .map(|c| c.len())
        .sum();
    assert_eq!(created, 20, "the others are there and known");
}

#[tokio::test(start_paused = true)]
async fn secrets_are_read_from_blue_in_pages_and_their_values_are_nowhere_but_on_green() {
    let place = place().await;
    let secret = |n: usize, value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("s{n:03}"), "namespace": "yard"}, "type": "Opaque", "data": {"pin": value}});
    let yard = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "yard"}});
    place.twin.somebody_creates(Side::Blue, &yard).unwrap();
    for n in 0..40 {
        place
            .twin
            .somebody_creates(Side::Blue, &secret(n, &format!("Q0FOQVJZ{n:03}=")))
            .unwrap();
    }
    let targets: Vec<Value> = (0..40).map(|n| secret(n, "sha256:marker")).collect();
    let (wave, cx, log) = place.wave(&targets);
    let from = place.twin.call_count();
    create_all(&wave, &cx).await;
    let reads = place
        .calls(from)
        .iter()
        .filter(|c| c.starts_with("blue "))
        .count();
    assert!(reads <= 2, "{reads} requests to blue for 40 Secrets");
    for (n, target) in targets.iter().enumerate() {
        let there = place.green(target).await.unwrap();
        assert_eq!(there["data"]["pin"], format!("Q0FOQVJZ{n:03}="));
    }
    let journal = serde_json::to_string(&log.recorded("")).unwrap();
    assert!(!journal.contains("Q0FOQVJZ"));
    // Equal ones are adopted by their values, in memory; one that differs is told without them.
    let mut theirs = secret(50, "T1RIRVI=");
    place
        .twin
        .somebody_creates(Side::Blue, &secret(50, "Q0FOQVJZ050="))
        .unwrap();
    place.twin.somebody_creates(Side::Green, &theirs).unwrap();
    let (wave, cx, _) = place.wave(&[secret(50, "sha256:marker")]);
    let e = wave.observe(&cx).await.unwrap_err();
    let said = format!("{e:?}");
    assert!(
        said.contains(".data.pin") && !said.contains("T1RIRVI") && !said.contains("Q0FOQVJZ"),
        "{said}"
    );
    theirs["data"]["pin"] = json!("Q0FOQVJZ050=");
    let body = json!({"data": theirs["data"]});
    place
        .twin
        .somebody_merges(Side::Green, &ObjectId::of(&theirs).unwrap(), &body)
        .unwrap();
    let before = wave.observe(&cx).await.unwrap();
    assert_eq!(before["adopted"], json!(["secret/yard/s050"]));
}

#[tokio::test(start_paused = true)]
async fn rule_63_a_webhook_waits_for_a_pod_behind_it() {
    let place = place().await;
    let hook = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "guard"},
        "webhooks": [{"name": "guard.yard.test", "clientConfig": {"service": {"namespace": "yard", "name": "guard"}}, "failurePolicy": "Fail"}]});
    let (wave, cx, _) = place.wave(std::slice::from_ref(&hook));
    let before = wave.observe(&cx).await.unwrap();
    let e = wave.apply(&cx, &before).await.unwrap_err();
    assert!(
        matches!(&e, StepError::Refused { why, .. } if why.contains("service/yard/guard")),
        "{e:?}"
    );
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "guard", "namespace": "yard"}, "spec": {"selector": {"app": "guard"}, "ports": [{"port": 443}]}});
    place.twin.somebody_creates(Side::Green, &service).unwrap();
    let e = wave.apply(&cx, &before).await.unwrap_err();
    assert!(
        matches!(&e, StepError::World(e) if e.class == Class::NotReady),
        "{e:?}"
    );
    assert!(
        place.green(&hook).await.is_none(),
        "nobody would answer for it"
    );
    let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "guard-x", "namespace": "yard", "labels": {"kubernetes.io/service-name": "guard"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.5"], "conditions": {"ready": true}}]});
    place.twin.somebody_creates(Side::Green, &slice).unwrap();
    wave.apply(&cx, &before).await.unwrap();
    assert!(place.green(&hook).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn an_undo_leaves_what_a_person_edited_names_it_and_takes_the_rest_back() {
    let place = place().await;
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "yard"}, "spec": {"replicas": 0,
        "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "a:1"}]}}}});
    let (wave, cx, _) = place.wave(&[web.clone(), map("edited"), map("plain")]);
    let (before, after) = create_all(&wave, &cx).await;
    let id = |o: &Value| ObjectId::of(o).unwrap();
    // Its size is what unpark and autoscalers move: nobody's edit.
    place
        .twin
        .somebody_merges(Side::Green, &id(&web), &json!({"spec": {"replicas": 3}}))
        .unwrap();
    place
        .twin
        .somebody_merges(
            Side::Green,
            &id(&map("edited")),
            &json!({"data": {"k": "mine now"}}),
        )
        .unwrap();
    let e = wave.undo(&cx, &before, Some(&after)).await.unwrap_err();
    let StepError::Changed { object, found, .. } = e else {
        panic!("{e:?}")
    };
    assert_eq!(object, "configmap/yard/edited");
    assert_eq!(found, ".data.k changed by kubectl-edit");
    assert_eq!(
        place.green(&map("edited")).await.unwrap()["data"]["k"],
        "mine now"
    );
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(place.green(&map("plain")).await.is_none());
    assert!(place.green(&web).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_undo_leaves_a_namespace_that_somebody_uses_and_only_that_one() {
    let place = place().await;
    let space =
        |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let (wave, cx, _) = place.wave(&[space("one"), space("two"), space("three")]);
    let (before, after) = create_all(&wave, &cx).await;
    let own = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "users-own", "namespace": "two"}});
    place.twin.somebody_creates(Side::Green, &own).unwrap();
    let e = wave.undo(&cx, &before, Some(&after)).await.unwrap_err();
    let StepError::Changed { object, found, .. } = e else {
        panic!("{e:?}")
    };
    assert_eq!(object, "namespace/two");
    assert!(found.contains("configmap/two/users-own"), "{found}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(place.green(&own).await.is_some());
    assert!(
        place.green(&space("one")).await.is_none() && place.green(&space("three")).await.is_none()
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_of_the_same_name_that_is_another_one_is_never_deleted() {
    let place = place().await;
    let (wave, cx, _) = place.wave(&[map("m")]);
    let (before, after) = create_all(&wave, &cx).await;
    let id = ObjectId::of(&map("m")).unwrap();
    place.twin.somebody_deletes(Side::Green, &id).unwrap();
    place.twin.somebody_creates(Side::Green, &map("m")).unwrap();
    let e = wave.undo(&cx, &before, Some(&after)).await.unwrap_err();
    assert!(
        matches!(&e, StepError::Changed { object, .. } if object == "configmap/yard/m"),
        "{e:?}"
    );
    assert!(place.green(&map("m")).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn rule_54_a_claim_is_deleted_after_its_volume_was_told_to_stay() {
    let place = place().await;
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv-db"}, "spec": {"capacity": {"storage": "1Gi"},
        "persistentVolumeReclaimPolicy": "Delete", "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}}});
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "db", "namespace": "yard"},
        "spec": {"volumeName": "pv-db", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    // The volume is somebody else's on green; only the claim is ours.
    place.twin.somebody_creates(Side::Green, &volume).unwrap();
    let (wave, cx, _) = place.wave(std::slice::from_ref(&claim));
    let (before, after) = create_all(&wave, &cx).await;
    let from = place.twin.call_count();
    wave.undo(&cx, &before, Some(&after)).await.unwrap();
    let calls = place.calls(from);
    let at = |part: &str| {
        calls
            .iter()
            .position(|c| c.contains(part))
            .unwrap_or_else(|| panic!("{calls:?}"))
    };
    assert!(at("merge persistentvolume/pv-db") < at("delete persistentvolumeclaim/"));
    let there = place.green(&volume).await.unwrap();
    assert_eq!(there["spec"]["persistentVolumeReclaimPolicy"], "Retain");
}

#[tokio::test(start_paused = true)]
async fn an_undo_runs_as_many_at_once_as_the_wave_did() {
    let place = place().await;
    let (wave, cx, _) = place.wave(&maps(300));
    let (before, after) = create_all(&wave, &cx).await;
    let began = place.twin.elapsed();
    wave.undo(&cx, &before, Some(&after)).await.unwrap();
    // 600 requests of 50 ms: one at a time half a minute.
    let took = place.twin.elapsed() - began;
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(
        wave.undone(&cx, &before, Some(&after)).await.unwrap(),
        Settle::Ready
    );
}
