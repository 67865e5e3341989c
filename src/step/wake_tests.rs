//! Waking and stopping on the twin: the demo's company with KEDA, Flux, a DaemonSet and a bare pod on top.

use crate::engine::rehearse::Company;
use crate::engine::{Engine, Event, EventKind, Events, Options, Outcome, silent};
use crate::journal::Journal;
use crate::object::{ObjectId, Side};
use crate::plan::model::{Phase, Plan};
use crate::plan::plan;
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use crate::world::World;
use crate::world::kube::ApiKind;
use crate::world::twin::{self, Twin};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn demo() -> (Spec, Snapshot) {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/demo");
    let spec = crate::spec::load(&demo.join("migration.yaml")).expect("the demo's spec");
    let snapshot =
        crate::snapshot::store::read(&demo.join("snapshot")).expect("the demo's snapshot");
    (spec, snapshot)
}

fn crd(group: &str, kind: &str, plural: &str, version: &str) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{"name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

fn deployment(ns: &str, name: &str, replicas: u64, image: &str, env: &[(&str, &str)]) -> Value {
    let env: Vec<Value> = env
        .iter()
        .map(|(k, v)| json!({"name": k, "value": v}))
        .collect();
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": ns, "labels": {}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": name, "image": image, "env": env}]}}}})
}

fn service(ns: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": ns},
        "spec": {"type": "ClusterIP", "selector": {"app": name}, "ports": [{"port": 80}]}})
}

fn scaled(ns: &str, name: &str) -> Value {
    json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": name, "namespace": ns},
        "spec": {"scaleTargetRef": {"name": name}, "minReplicaCount": 1, "triggers": [{"type": "cron"}]}})
}

/// The demo with everything that wakes or is held in some way of its own.
fn company() -> (Spec, Snapshot) {
    let (spec, mut snapshot) = demo();
    let labelled = |o: &mut Value| {
        o["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/name"] = json!("apps");
        o["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/namespace"] = json!("platform");
    };
    // Flux keeps the singleton and a cron job: what freeze stops would be started again within seconds.
    for o in &mut snapshot.blue.objects {
        let name = o["metadata"]["name"].as_str().unwrap_or("").to_string();
        let kind = o["kind"].as_str().unwrap_or("").to_string();
        if kind == "Deployment" && name == "consumer" || kind == "CronJob" {
            labelled(o);
        }
    }
    let mut clock = deployment("platform", "clock", 1, "clock:1", &[]);
    clock["metadata"]["annotations"] = json!({"crossfade.dev/singleton": "true"});
    let mut gitops = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": "apps", "namespace": "platform"},
        "spec": {"interval": "1m", "prune": true, "path": "./apps"}});
    gitops["status"] = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    snapshot.blue.objects.extend([
        crd("keda.sh", "ScaledObject", "scaledobjects", "v1alpha1"),
        crd("kustomize.toolkit.fluxcd.io", "Kustomization", "kustomizations", "v1"),
        deployment("platform", "keda-operator", 1, "ghcr.io/kedacore/keda:2.15", &[]),
        deployment("platform", "kustomize-controller", 1, "ghcr.io/fluxcd/kustomize-controller:v1", &[]),
        clock,
        scaled("platform", "clock"),
        deployment("storefront", "search", 4, "search:1", &[("CART", "http://cart/v1")]),
        deployment("storefront", "cart", 2, "cart:1", &[]),
        service("storefront", "cart"),
        scaled("storefront", "search"),
        gitops,
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "platform"},
            "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "a", "image": "agent:1"}]}}}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "toolbox", "namespace": "platform"}, "spec": {"containers": [{"name": "t", "image": "t:1"}]}, "status": {"phase": "Running"}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "old"}, "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Delete", "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}, "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "platform", "name": "old"}}}),
    ]);
    for (group, version, kind, plural) in [
        ("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects"),
        (
            "kustomize.toolkit.fluxcd.io",
            "v1",
            "Kustomization",
            "kustomizations",
        ),
    ] {
        snapshot.blue.kinds.push(ApiKind {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
            namespaced: true,
            verbs: ["create", "get", "list", "patch"]
                .map(String::from)
                .to_vec(),
        });
    }
    let mut spec = spec;
    // What other rooms say about GitOps objects and volumes is not what these tests are about.
    spec.workloads.skip = vec![
        "kustomization.kustomize.toolkit.fluxcd.io/platform/apps".into(),
        "persistentvolume/old".into(),
        "deployment/platform/kustomize-controller".into(),
    ];
    spec.limits.wake_pods = 4;
    (spec, snapshot)
}

fn engine(
    twin: &Twin,
    plan: &Arc<Plan>,
    journal: &Arc<Journal>,
    events: Events,
    stall: u64,
) -> Engine {
    Engine::new(
        twin.world(),
        plan.clone(),
        journal.clone(),
        crate::step::registry(),
        events,
    )
    .options(Options {
        check_drift: false,
        stall: Some(Duration::from_secs(stall)),
        ..Options::default()
    })
}

fn twin_of(spec: &Spec, snapshot: &Snapshot) -> (Twin, Arc<Plan>, Arc<Journal>) {
    let plan = Arc::new(plan(spec, snapshot));
    let twin = Twin::new(snapshot, spec, twin::Options::default());
    (twin, plan, Arc::new(Journal::memory()))
}

fn id(api: &str, kind: &str, ns: &str, name: &str) -> ObjectId {
    ObjectId::new(api, kind, (!ns.is_empty()).then_some(ns), name)
}

async fn read(world: &World, side: Side, id: &ObjectId) -> Value {
    world
        .kube(side)
        .get(id)
        .await
        .expect("answers")
        .unwrap_or_default()
}

type Said = Arc<Mutex<Vec<(String, String)>>>;

/// Everything that a run says while it waits.
fn listener() -> (Events, Said) {
    let said = Arc::new(Mutex::new(vec![]));
    let sink = said.clone();
    let events: Events = Arc::new(move |e: &Event| {
        if let EventKind::Waiting { step, why, .. } = &e.kind {
            sink.lock()
                .expect("one at a time")
                .push((step.clone(), why.clone()));
        }
    });
    (events, said)
}

fn writes(twin: &Twin, part: &str) -> Vec<String> {
    let all = twin
        .calls()
        .into_iter()
        .filter(|c| c.write && c.what.contains(part));
    all.map(|c| c.what).collect()
}

#[test]
fn a_company_with_keda_flux_daemons_and_bare_pods_goes_there_and_back_and_keeps_every_promise() {
    let (spec, snapshot) = company();
    let made = Arc::new(plan(&spec, &snapshot));
    let steps: Vec<&str> = made.steps.iter().map(|s| s.id.as_str()).collect();
    for step in [
        "unpark/operators",
        "unpark/workloads",
        "unpark/pods",
        "freeze/gitops",
        "freeze/scalers",
        "freeze/volumes",
        "freeze/cron",
        "freeze/singletons",
    ] {
        assert!(steps.contains(&step), "{step} in {steps:?}");
    }
    let company = Company {
        spec: &spec,
        snapshot: &snapshot,
        plan: made,
        registry: crate::step::registry(),
    };
    // Every record would take minutes here; the demo's own sweep does that.
    let rehearsal = company
        .with_faults(silent(), 24, 4, &|_| {})
        .expect("rehearsed");
    assert_eq!(rehearsal.violations, Vec::<String>::new());
    assert_eq!(rehearsal.outcome, "migrated", "{:?}", rehearsal.stopped);
    assert_eq!(
        rehearsal.rollback.outcome, "restored",
        "{:?}",
        rehearsal.rollback.stopped
    );
    assert!(rehearsal.faults.is_some());
}

#[tokio::test(start_paused = true)]
async fn rule_70_flux_lifts_a_hold_on_blue_unless_it_is_suspended_first() {
    let (spec, snapshot) = company();
    let consumer = id("apps/v1", "Deployment", "platform", "consumer");
    // Without the step: started again within seconds.
    let (twin, ..) = twin_of(&spec, &snapshot);
    let world = twin.world();
    world
        .blue
        .merge(&consumer, &json!({"spec": {"replicas": 0}}))
        .await
        .expect("scaled");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(
        read(&world, Side::Blue, &consumer).await["spec"]["replicas"],
        1
    );
    // With it: suspended before anything on blue is scaled, and exactly as it was after the rollback.
    let (twin, plan, journal) = twin_of(&spec, &snapshot);
    let world = twin.world();
    let flux = id(
        "kustomize.toolkit.fluxcd.io/v1",
        "Kustomization",
        "platform",
        "apps",
    );
    let before = read(&world, Side::Blue, &flux).await["spec"].clone();
    let outcome = engine(&twin, &plan, &journal, silent(), 3600)
        .forward(Some(Phase::Freeze))
        .await
        .expect("runs");
    assert_eq!(outcome.name(), "migrated", "{outcome:?}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(
        read(&world, Side::Blue, &flux).await["spec"]["suspend"],
        true
    );
    assert_eq!(
        read(&world, Side::Blue, &consumer).await["spec"]["replicas"],
        0
    );
    let on_blue = writes(&twin, "blue merge");
    let place = |part: &str| {
        on_blue
            .iter()
            .position(|w| w.contains(part))
            .unwrap_or_else(|| panic!("{part} in {on_blue:?}"))
    };
    assert!(
        place("kustomization") < place("deployment/platform/consumer")
            && place("kustomization") < place("cronjob")
    );
    let outcome = engine(&twin, &plan, &journal, silent(), 3600)
        .rollback(None)
        .await
        .expect("runs");
    assert_eq!(outcome.name(), "restored", "{outcome:?}");
    assert_eq!(read(&world, Side::Blue, &flux).await["spec"], before);
    assert_eq!(twin.violations(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn rule_50_green_wakes_at_the_size_that_blue_has_now_and_keda_does_not_start_what_is_stopped()
{
    let (spec, snapshot) = company();
    let (twin, plan, journal) = twin_of(&spec, &snapshot);
    let world = twin.world();
    let search = id("apps/v1", "Deployment", "storefront", "search");
    let clock = id("apps/v1", "Deployment", "platform", "clock");
    // An autoscaler moves it after the plan was made.
    twin.somebody_merges(Side::Blue, &search, &json!({"spec": {"replicas": 7}}))
        .expect("scaled");
    tokio::time::sleep(Duration::from_secs(30)).await;
    let outcome = engine(&twin, &plan, &journal, silent(), 3600)
        .forward(Some(Phase::Freeze))
        .await
        .expect("runs");
    assert_eq!(outcome.name(), "migrated", "{outcome:?}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let green = read(&world, Side::Green, &search).await;
    assert_eq!(
        (
            &green["spec"]["replicas"],
            &green["status"]["readyReplicas"]
        ),
        (&json!(7), &json!(7))
    );
    // The singleton is stopped on blue and not yet awake on green, and KEDA of both sides lets it be.
    for side in [Side::Blue, Side::Green] {
        assert_eq!(
            read(&world, side, &clock).await["spec"]["replicas"],
            0,
            "{side}"
        );
    }
    let outcome = engine(&twin, &plan, &journal, silent(), 3600)
        .forward(None)
        .await
        .expect("runs");
    assert_eq!(outcome.name(), "migrated", "{outcome:?}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(
        read(&world, Side::Green, &clock).await["status"]["readyReplicas"],
        1
    );
    let scaler = id("keda.sh/v1alpha1", "ScaledObject", "platform", "clock");
    assert!(
        crate::object::annotation(
            &read(&world, Side::Green, &scaler).await,
            "autoscaling.keda.sh/paused-replicas"
        )
        .is_none()
    );
    assert_eq!(twin.violations(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn mig_controller_a_cron_job_that_its_owner_suspended_is_never_started_rule_49() {
    let (spec, snapshot) = company();
    let cron = snapshot
        .blue
        .of_kind("CronJob")
        .find(|o| o["spec"]["suspend"] != json!(true))
        .and_then(ObjectId::of)
        .expect("the demo has a cron job");
    let (twin, plan, journal) = twin_of(&spec, &snapshot);
    let world = twin.world();
    let outcome = engine(&twin, &plan, &journal, silent(), 3600)
        .forward(Some(Phase::Unpark))
        .await
        .expect("runs");
    assert_eq!(outcome.name(), "migrated", "{outcome:?}");
    // Flux would undo it: its owner takes the label off, as one does.
    twin.somebody_merges(Side::Blue, &cron, &json!({"metadata": {"labels": {"kustomize.toolkit.fluxcd.io/name": null}}, "spec": {"suspend": true}}))
        .expect("suspended");
    let outcome = engine(&twin, &plan, &journal, silent(), 3600)
        .forward(None)
        .await
        .expect("runs");
    assert_eq!(outcome.name(), "migrated", "{outcome:?}");
    let green = cron.in_version("batch/v1");
    assert_eq!(
        read(&world, Side::Green, &green).await["spec"]["suspend"],
        true
    );
    let outcome = engine(&twin, &plan, &journal, silent(), 3600)
        .rollback(None)
        .await
        .expect("runs");
    assert_eq!(outcome.name(), "restored", "{outcome:?}");
    assert_eq!(
        read(&world, Side::Blue, &cron).await["spec"]["suspend"],
        true
    );
}

#[tokio::test(start_paused = true)]
async fn workloads_wake_after_those_they_call_and_so_many_at_once_and_each_batch_is_said() {
    let (spec, snapshot) = company();
    let (twin, plan, journal) = twin_of(&spec, &snapshot);
    let (events, said) = listener();
    let outcome = engine(&twin, &plan, &journal, events, 3600)
        .forward(Some(Phase::Unpark))
        .await
        .expect("runs");
    assert_eq!(outcome.name(), "migrated", "{outcome:?}");
    let merges = writes(&twin, "green merge");
    let place = |part: &str| {
        merges
            .iter()
            .position(|w| w.ends_with(part))
            .unwrap_or_else(|| panic!("{part} in {merges:?}"))
    };
    assert!(
        place("deployment/storefront/cart") < place("deployment/storefront/search"),
        "called first"
    );
    assert!(
        place("daemonset/platform/agent") < place("deployment/storefront/cart"),
        "agents of nodes first"
    );
    assert!(
        place("scaledobject.keda.sh/storefront/search") < place("deployment/storefront/search"),
        "its scaler lets go first"
    );
    let said = said.lock().expect("one at a time").clone();
    let of_workloads: Vec<&str> = said
        .iter()
        .filter(|(s, _)| s == "unpark/workloads")
        .map(|(_, w)| w.as_str())
        .collect();
    assert!(
        of_workloads.iter().any(|w| w.starts_with("batch 2 of ")),
        "{of_workloads:?}"
    );
    // No batch has more pods than the limit, but for one workload that is larger by itself.
    for why in &of_workloads {
        let counts = why.split('(').nth(1).unwrap_or("");
        let numbers: Vec<u64> = counts
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|n| n.parse().ok())
            .collect();
        assert!(numbers[1] <= 4 || numbers[0] <= 2, "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_workload_that_finds_no_node_is_named_with_the_servers_words_and_the_run_goes_on_when_it_does()
 {
    let (spec, mut snapshot) = company();
    let mut picky = deployment("storefront", "picky", 1, "picky:1", &[]);
    picky["spec"]["template"]["spec"]["nodeSelector"] = json!({"disk": "nvme"});
    picky["spec"]["progressDeadlineSeconds"] = json!(120);
    snapshot.blue.objects.push(picky);
    // Blue has a node that takes it.
    for node in snapshot
        .blue
        .objects
        .iter_mut()
        .filter(|o| o["kind"] == "Node")
    {
        node["metadata"]["labels"]["disk"] = json!("nvme");
    }
    let (twin, plan, journal) = twin_of(&spec, &snapshot);
    let outcome = engine(&twin, &plan, &journal, silent(), 3600)
        .forward(Some(Phase::Unpark))
        .await
        .expect("runs");
    let Outcome::Stopped {
        step, why, remedy, ..
    } = &outcome
    else {
        panic!("{outcome:?}");
    };
    assert_eq!(step, "unpark/workloads");
    assert!(
        why.contains("deployment/storefront/picky on green: 0 of 1 ready")
            && why.contains("Unschedulable")
            && why.contains("no label disk=nvme"),
        "{why}"
    );
    assert!(
        why.contains("deadline has passed") && remedy.contains("node group"),
        "{why}: {remedy}"
    );
    // Somebody gives a node the label; the same command goes on.
    let nodes: Vec<ObjectId> = {
        let kinds = twin.world().green.kinds(false).await.expect("kinds");
        let node = kinds
            .iter()
            .find(|k| k.kind == "Node")
            .expect("nodes")
            .clone();
        let all = twin.world().green.list(&node).await.expect("lists");
        all.items.iter().filter_map(ObjectId::of).collect()
    };
    twin.somebody_merges(
        Side::Green,
        &nodes[0],
        &json!({"metadata": {"labels": {"disk": "nvme"}}}),
    )
    .expect("labelled");
    tokio::time::sleep(Duration::from_secs(30)).await;
    let outcome = engine(&twin, &plan, &journal, silent(), 3600)
        .forward(None)
        .await
        .expect("runs");
    assert_eq!(outcome.name(), "migrated", "{outcome:?}");
    assert_eq!(twin.violations(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn rule_54_volumes_of_blue_outlive_their_claims_while_the_move_lasts_and_get_their_policy_back()
 {
    let (spec, snapshot) = company();
    let (twin, plan, journal) = twin_of(&spec, &snapshot);
    let world = twin.world();
    let volume = id("v1", "PersistentVolume", "", "old");
    let outcome = engine(&twin, &plan, &journal, silent(), 3600)
        .forward(Some(Phase::Freeze))
        .await
        .expect("runs");
    assert_eq!(outcome.name(), "migrated", "{outcome:?}");
    assert_eq!(
        read(&world, Side::Blue, &volume).await["spec"]["persistentVolumeReclaimPolicy"],
        "Retain"
    );
    // Somebody changed it meanwhile: the way back stops and asks (clusterctl 12742).
    twin.somebody_merges(
        Side::Blue,
        &volume,
        &json!({"spec": {"persistentVolumeReclaimPolicy": "Recycle"}}),
    )
    .expect("changed");
    let outcome = engine(&twin, &plan, &journal, silent(), 3600)
        .rollback(None)
        .await
        .expect("runs");
    assert_eq!(outcome.name(), "stuck", "{outcome:?}");
    twin.somebody_merges(
        Side::Blue,
        &volume,
        &json!({"spec": {"persistentVolumeReclaimPolicy": "Retain"}}),
    )
    .expect("changed");
    let outcome = engine(&twin, &plan, &journal, silent(), 3600)
        .rollback(None)
        .await
        .expect("runs");
    assert_eq!(outcome.name(), "restored", "{outcome:?}");
    assert_eq!(
        read(&world, Side::Blue, &volume).await["spec"]["persistentVolumeReclaimPolicy"],
        "Delete"
    );
}
