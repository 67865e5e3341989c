//! Public bug reports about copied objects (reversibility.md, the table at its end, odd numbers), each reproduced small: what
//! went wrong in other tools must go right here. Those that a rule answers stand beside the rules (`src/rewrite/tests`), those that
//! need real servers in `replay_corpus.rs` and `replay_kill.rs`; the last test knows where each is.

use crossfade::engine::{Engine, Options, Outcome, silent};
use crossfade::error::Kind;
use crossfade::journal::{CrashPoint, Journal, Record};
use crossfade::object::{ObjectId, Side, uid};
use crossfade::plan::model::{Fate, Phase, Plan, Verdict};
use crossfade::snapshot::model::Snapshot;
use crossfade::spec::model::Spec;
use crossfade::world::World;
use crossfade::world::twin::{self, Fault, Twin};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The demo company with more objects on blue.
struct Company {
    spec: Spec,
    snapshot: Snapshot,
    plan: Arc<Plan>,
}

impl Company {
    fn with(objects: Vec<Value>) -> Company {
        let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/demo");
        let spec = crossfade::spec::load(&demo.join("migration.yaml")).unwrap();
        let mut snapshot = crossfade::snapshot::store::read(&demo.join("snapshot")).unwrap();
        snapshot.blue.objects.extend(objects);
        let plan = Arc::new(crossfade::plan::plan(&spec, &snapshot));
        Company {
            spec,
            snapshot,
            plan,
        }
    }
    fn verdict(&self, object: &str) -> Verdict {
        let found = self.plan.verdicts.get(object).unwrap();
        found
            .unwrap_or_else(|| panic!("no verdict on {object}"))
            .into_owned()
    }
    fn twin(&self) -> Twin {
        Twin::new(&self.snapshot, &self.spec, twin::Options::default())
    }
    fn engine(&self, world: &World, journal: &Arc<Journal>) -> Engine {
        Engine::new(
            world.clone(),
            self.plan.clone(),
            journal.clone(),
            crossfade::step::registry(),
            silent(),
        )
        .options(Options {
            check_drift: false,
            ..Options::default()
        })
    }
    /// Everything up to a phase on a twin of its own.
    async fn run_to(&self, phase: Phase) -> (Twin, World, Arc<Journal>) {
        let twin = self.twin();
        let world = twin.world();
        let journal = Arc::new(Journal::memory());
        let outcome = self.engine(&world, &journal).forward(Some(phase)).await;
        let outcome = outcome.unwrap();
        assert_eq!(outcome.name(), "migrated", "{outcome:?}");
        (twin, world, journal)
    }
}

fn id(api: &str, kind: &str, ns: &str, name: &str) -> ObjectId {
    ObjectId::new(api, kind, Some(ns), name)
}

async fn get(world: &World, side: Side, id: &ObjectId) -> Value {
    let found = world.kube(side).get(id).await.unwrap();
    found.unwrap_or_else(|| panic!("{id} is not on {side}"))
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

fn config_map(ns: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": ns}, "data": {"a": "1"}})
}

fn cron_job(name: &str, suspend: bool) -> Value {
    json!({"apiVersion": "batch/v1beta1", "kind": "CronJob", "metadata": {"name": name, "namespace": "batch", "uid": format!("uid-{name}")},
        "spec": {"schedule": "0 3 * * *", "suspend": suspend, "startingDeadlineSeconds": 600, "concurrencyPolicy": "Forbid",
            "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "job", "image": "registry.example.com/job:1"}]}}}}}})
}

/// Report 3. The other tool needed 52 minutes for 31,000 Secrets, one request after the other; 4 minutes are the aim. Here a tenth
/// of both, since the twin's planning and storing is real work.
#[tokio::test(start_paused = true)]
async fn velero_6845_3100_secrets_at_5_ms_a_call_take_less_than_24_seconds_and_no_storm() {
    let secrets = (0..3_100).map(|n| {
        json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": format!("s-{n:05}"), "namespace": "many"},
            "data": {"v": format!("hmac-sha256:{n:064x}:1")}})
    });
    let company = Company::with([namespace("many")].into_iter().chain(secrets).collect());
    let options = twin::Options {
        latency: Duration::from_millis(5),
        traffic: false,
        ..twin::Options::default()
    };
    let twin = Twin::new(&company.snapshot, &company.spec, options);
    let world = twin.world();
    let journal = Arc::new(Journal::memory());
    let engine = company.engine(&world, &journal);
    engine.forward(Some(Phase::Provision)).await.unwrap();
    let (began, calls) = (twin.elapsed(), twin.call_count());
    engine.forward(Some(Phase::Replay)).await.unwrap();
    let took = twin.elapsed() - began;
    assert!(took < Duration::from_secs(24), "{took:?}");
    // One look or create on green and one read on blue for each, and little beside.
    let calls = twin.call_count() - calls;
    assert!(calls < 3_100 * 3 + 1_000, "{calls} calls");
    let last = id("v1", "Secret", "many", "s-03099");
    get(&world, Side::Green, &last).await;
}

/// Report 9. Endpoints that came before their Service were removed by whoever mirrors them.
#[tokio::test(start_paused = true)]
async fn velero_6280_a_service_without_selector_comes_before_its_endpoints_and_both_stay() {
    let company = Company::with(vec![
        namespace("legacy"),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "zz-db", "namespace": "legacy"}, "spec": {"ports": [{"port": 3306}]}}),
        json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "zz-db", "namespace": "legacy"},
            "subsets": [{"addresses": [{"ip": "198.51.100.21"}], "ports": [{"port": 3306}]}]}),
    ]);
    let (twin, world, _) = company.run_to(Phase::Replay).await;
    let created = |what: &str| {
        let calls = twin.calls();
        let at = calls
            .iter()
            .position(|c| c.what.contains("create") && c.what.contains(what));
        at.unwrap_or_else(|| panic!("{what} was never created"))
    };
    assert!(created("service/legacy/zz-db") < created("endpoints/legacy/zz-db"));
    let there = get(
        &world,
        Side::Green,
        &id("v1", "Endpoints", "legacy", "zz-db"),
    )
    .await;
    assert_eq!(there["subsets"][0]["addresses"][0]["ip"], "198.51.100.21");
}

/// Report 13. Owners were lost, or kept blue's uid, and the garbage collector took the children.
#[tokio::test(start_paused = true)]
async fn velero_4707_cluster_api_6007_a_child_names_its_owner_by_greens_uid_and_a_controllers_child_is_left_to_it()
 {
    let owner = |kind: &str, name: &str, uid: &str, controller: bool| json!({"apiVersion": if kind == "ConfigMap" { "v1" } else { "apps/v1" }, "kind": kind, "name": name, "uid": uid, "controller": controller});
    let mut parent = config_map("family", "parent");
    parent["metadata"]["uid"] = "blue-parent".into();
    let mut child = config_map("family", "aa-child");
    child["metadata"]["ownerReferences"] =
        json!([owner("ConfigMap", "parent", "blue-parent", false)]);
    let mut controlled = config_map("family", "made-by-a-controller");
    controlled["metadata"]["ownerReferences"] =
        json!([owner("Deployment", "operator", "blue-operator", true)]);
    let operator = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "operator", "namespace": "family", "uid": "blue-operator"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "operator"}}, "template": {"metadata": {"labels": {"app": "operator"}}, "spec": {"containers": [{"name": "o", "image": "registry.example.com/o:1"}]}}}});
    let company = Company::with(vec![
        namespace("family"),
        parent,
        child,
        controlled,
        operator,
    ]);
    let fate = company
        .verdict("configmap/family/made-by-a-controller")
        .verdict;
    assert_eq!(fate, Fate::Skipped);
    let (_, world, _) = company.run_to(Phase::Replay).await;
    let parent = get(
        &world,
        Side::Green,
        &id("v1", "ConfigMap", "family", "parent"),
    )
    .await;
    let child = get(
        &world,
        Side::Green,
        &id("v1", "ConfigMap", "family", "aa-child"),
    )
    .await;
    let owner = &child["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"].as_str(), uid(&parent), "{child}");
    assert_ne!(owner["uid"], "blue-parent");
}

/// Report 17. A CronJob that its owner had suspended was started by the tool that "restored" it.
#[tokio::test(start_paused = true)]
async fn mig_controller_a_cron_job_that_its_owner_suspended_stays_suspended_there_and_back() {
    let company = Company::with(vec![
        namespace("batch"),
        cron_job("asleep", true),
        cron_job("awake", false),
    ]);
    let twin = company.twin();
    let world = twin.world();
    let journal = Arc::new(Journal::memory());
    let engine = company.engine(&world, &journal);
    let suspended = async |side: Side, name: &str| {
        let api = if side == Side::Blue {
            "batch/v1beta1"
        } else {
            "batch/v1"
        };
        get(&world, side, &id(api, "CronJob", "batch", name)).await["spec"]["suspend"].clone()
    };
    engine.forward(Some(Phase::Replay)).await.unwrap();
    assert_eq!(suspended(Side::Green, "awake").await, true, "parked");
    let outcome = engine.forward(None).await.unwrap();
    assert_eq!(outcome.name(), "migrated", "{outcome:?}");
    assert_eq!(suspended(Side::Green, "asleep").await, true);
    assert_ne!(suspended(Side::Green, "awake").await, true);
    engine.rollback(None).await.unwrap();
    assert_eq!(suspended(Side::Blue, "asleep").await, true);
    assert_ne!(suspended(Side::Blue, "awake").await, true);
}

/// Report 19. The tool died after it had scaled the applications to 0 and nobody knew their counts any more.
#[tokio::test(start_paused = true)]
async fn mig_controller_701_counts_come_back_from_the_journal_after_a_crash_behind_the_scale_down()
{
    let company = Company::with(vec![]);
    let singleton = company
        .spec
        .workloads
        .singletons
        .first()
        .expect("the demo has a singleton")
        .clone();
    let mut parts = singleton.split('/').skip(1);
    let it = id(
        "apps/v1",
        "Deployment",
        parts.next().unwrap(),
        parts.next().unwrap(),
    );
    // Where the scale-down is in an undisturbed run.
    let (_, _, journal) = company.run_to(Phase::Freeze).await;
    let step = company
        .plan
        .steps
        .iter()
        .find(|s| s.kind == "freeze.singletons")
        .expect("the freeze stops singletons");
    let applied = journal
        .entries()
        .iter()
        .position(|e| matches!(&e.record, Record::Applied { step: s, .. } if *s == step.id));
    let applied = applied.expect("it was applied") as u64 + 1;

    let twin = company.twin();
    let world = twin.world();
    let before = get(&world, Side::Blue, &it).await["spec"]["replicas"].clone();
    assert_ne!(before, 0);
    let journal = Arc::new(Journal::memory());
    // The effect happened, the record of it was never written.
    journal.crash_after(applied - 1, CrashPoint::BeforeNext);
    assert!(
        company
            .engine(&world, &journal)
            .forward(None)
            .await
            .is_err()
    );
    assert_eq!(get(&world, Side::Blue, &it).await["spec"]["replicas"], 0);

    let journal = Arc::new(Journal::restart(journal.entries()).unwrap());
    let outcome = company
        .engine(&world, &journal)
        .rollback(None)
        .await
        .unwrap();
    assert_eq!(outcome.name(), "restored", "{outcome:?}");
    assert_eq!(
        get(&world, Side::Blue, &it).await["spec"]["replicas"],
        before
    );
}

/// Report 23. What its owner had paused before was running after a failed move, or everything stayed paused.
#[tokio::test(start_paused = true)]
async fn cluster_api_12742_7407_after_a_failure_in_the_move_what_was_paused_is_paused_and_what_ran_runs()
 {
    let company = Company::with(vec![
        namespace("batch"),
        cron_job("paused-before", true),
        cron_job("running-before", false),
    ]);
    let twin = company.twin();
    let world = twin.world();
    let journal = Arc::new(Journal::memory());
    let engine = company.engine(&world, &journal);
    let suspended = async |name: &str| {
        get(
            &world,
            Side::Blue,
            &id("batch/v1beta1", "CronJob", "batch", name),
        )
        .await["spec"]["suspend"]
            .clone()
    };
    engine.forward(Some(Phase::Freeze)).await.unwrap();
    assert_eq!(
        suspended("running-before").await,
        true,
        "the freeze suspends it"
    );
    // The move fails behind the freeze.
    twin.fail_matching("route53", u32::MAX, Fault::Error);
    twin.fail_matching("change", u32::MAX, Fault::Error);
    let outcome = engine.forward(None).await.unwrap();
    assert!(matches!(outcome, Outcome::Stopped { .. }), "{outcome:?}");
    twin.clear_faults();
    let outcome = engine.rollback(None).await.unwrap();
    assert_eq!(outcome.name(), "restored", "{outcome:?}");
    assert_eq!(suspended("paused-before").await, true);
    assert_ne!(suspended("running-before").await, true);
}

/// Report 33. Terraform refuses a plan of a world that has moved on; so must this.
#[tokio::test(start_paused = true)]
async fn terraform_stale_plan_a_blue_that_was_edited_after_the_plan_is_named_and_nothing_is_written()
 {
    let company = Company::with(vec![namespace("moved"), config_map("moved", "settings")]);
    let twin = company.twin();
    let edited = id("v1", "ConfigMap", "moved", "settings");
    twin.somebody_merges(Side::Blue, &edited, &json!({"data": {"a": "2"}}))
        .unwrap();
    let world = twin.world();
    let journal = Arc::new(Journal::memory());
    let engine = company.engine(&world, &journal).options(Options::default());
    let error = engine.forward(None).await.unwrap_err();
    assert_eq!(error.kind, Kind::StalePlan);
    assert!(
        error.message.contains("configmap/moved/settings"),
        "{error}"
    );
    assert!(journal.is_empty());
    assert!(twin.calls().iter().all(|c| !c.write), "nothing was written");
}

/// Report 35. A drain hung for ever on a budget that allows nothing, and nobody said which.
#[test]
fn eksctl_1052_7719_a_budget_that_allows_no_disruption_is_named_before_anything_drains() {
    let company = Company::with(vec![
        namespace("drain"),
        json!({"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "never", "namespace": "drain"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "one"}}}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "one", "namespace": "drain"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "one"}}, "template": {"metadata": {"labels": {"app": "one"}}, "spec": {"containers": [{"name": "o", "image": "registry.example.com/o:1"}]}}}}),
    ]);
    let named = company.plan.findings.iter().any(|f| {
        f.id == "WL-10"
            && f.object == "poddisruptionbudget/drain/never"
            && f.message.contains("no disruption")
    });
    assert!(named, "WL-10 says so");
}

/// Report 53. A lost answer, then a repeat: an object with a name and a generateName must not come twice or end in an error.
#[tokio::test(start_paused = true)]
async fn kubernetes_32220_an_object_with_name_and_generate_name_is_created_once_though_the_answer_was_lost()
 {
    let mut object = config_map("names", "run-abc12");
    object["metadata"]["generateName"] = "run-".into();
    let company = Company::with(vec![namespace("names"), object]);
    let target = company.verdict("configmap/names/run-abc12").target.unwrap();
    assert!(target["metadata"].get("generateName").is_none(), "{target}");
    let twin = company.twin();
    twin.fail_matching("configmap/names/run-abc12", 1, Fault::LostReply);
    let world = twin.world();
    let journal = Arc::new(Journal::memory());
    let engine = company.engine(&world, &journal);
    let outcome = engine.forward(Some(Phase::Replay)).await.unwrap();
    assert_eq!(outcome.name(), "migrated", "{outcome:?}");
    let kinds = world.green.kinds(false).await.unwrap();
    let kind = kinds.iter().find(|k| k.kind == "ConfigMap").unwrap();
    let all = world.green.list(kind).await.unwrap().items;
    let ours = all
        .iter()
        .filter(|o| o["metadata"]["namespace"] == "names" && o["data"]["a"] == "1")
        .count();
    assert_eq!(ours, 1);
}

/// Where each report about objects has its test: the function's name holds the word.
#[test]
fn every_odd_public_report_about_objects_is_a_test_by_name() {
    const REPORTS: [(u32, &str); 19] = [
        (1, "velero_9576"),
        (3, "velero_6845"),
        (5, "velero_6711"),
        (7, "velero_2997"),
        (9, "velero_6280"),
        (11, "velero_4108"),
        (13, "velero_4707"),
        (15, "velero_2319"),
        (17, "mig_controller_a_cron_job"),
        (19, "mig_controller_701"),
        (21, "crane_486"),
        (23, "cluster_api_12742"),
        (33, "terraform_stale_plan"),
        (35, "eksctl_1052"),
        (47, "argo_cd_6046"),
        (49, "helm_11287"),
        (53, "kubernetes_32220"),
        (55, "kubectl_neat"),
        (57, "velero_9432"),
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut names = vec![];
    let mut todo = vec![root.join("src"), root.join("tests")];
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(path).unwrap();
                let functions = text.lines().filter_map(|l| {
                    let l = l.trim().trim_start_matches("async ");
                    Some(l.strip_prefix("fn ")?.split('(').next()?.to_owned())
                });
                names.extend(functions);
            }
        }
    }
    let missing: Vec<_> = REPORTS
        .iter()
        .filter(|(_, word)| !names.iter().any(|n| n.contains(word)))
        .collect();
    assert!(missing.is_empty(), "no test for {missing:?}");
}
