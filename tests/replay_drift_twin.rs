//! While both clusters live for days, people go on changing blue, and look around on green: what `crossfade replay` then sees, brings,
//! leaves, and takes back. On the twin of the demo company.

use crossfade::drift::{self, Change, Report};
use crossfade::engine::{Engine, LookHook, Moment, Options, Outcome, silent};
use crossfade::error::Kind;
use crossfade::journal::{CrashPoint, Journal, Status};
use crossfade::object::{ObjectId, Side, annotation};
use crossfade::plan::model::{Phase, Plan};
use crossfade::snapshot::mask::Key;
use crossfade::snapshot::model::Snapshot;
use crossfade::snapshot::prefer::readable;
use crossfade::world::twin::{self, Twin};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

struct Company {
    twin: Twin,
    plan: Arc<Plan>,
    snapshot: Snapshot,
    journal: Arc<Journal>,
}

fn id(text: &str) -> ObjectId {
    let parts: Vec<&str> = text.split('/').collect();
    let (api, kind) = match parts[0] {
        "configmap" => ("v1", "ConfigMap"),
        "secret" => ("v1", "Secret"),
        "serviceaccount" => ("v1", "ServiceAccount"),
        "deployment" => ("apps/v1", "Deployment"),
        "cronjob" => ("batch/v1", "CronJob"),
        "poddisruptionbudget" => ("policy/v1", "PodDisruptionBudget"),
        other => panic!("{other}"),
    };
    ObjectId::new(api, kind, Some(parts[1]), parts[2])
}

impl Company {
    fn new() -> Company {
        let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/demo");
        let spec = crossfade::spec::load(&demo.join("migration.yaml")).unwrap();
        let snapshot = crossfade::snapshot::store::read(&demo.join("snapshot")).unwrap();
        Company {
            plan: Arc::new(crossfade::plan::plan(&spec, &snapshot)),
            twin: Twin::new(&snapshot, &spec, twin::Options::default()),
            journal: Arc::new(Journal::memory()),
            snapshot,
        }
    }
    /// The same moment once more: another world, another process.
    fn again(&self) -> Company {
        Company {
            twin: self.twin.fork(),
            plan: self.plan.clone(),
            snapshot: self.snapshot.clone(),
            journal: Arc::new(Journal::restart(self.journal.entries()).unwrap()),
        }
    }
    fn engine(&self) -> Engine {
        self.engine_that_looks(None)
    }
    fn engine_that_looks(&self, look: Option<LookHook>) -> Engine {
        Engine::new(
            self.twin.world(),
            self.plan.clone(),
            self.journal.clone(),
            crossfade::step::registry(),
            silent(),
        )
        .options(Options {
            check_drift: false,
            look,
            ..Options::default()
        })
    }
    async fn forward(&self, to: Option<Phase>) {
        let outcome = self.engine().forward(to).await.unwrap();
        assert_eq!(outcome.name(), "migrated", "{outcome:?}");
    }
    async fn look(&self) -> Report {
        let state = self.journal.state();
        drift::look(
            &self.twin.world(),
            drift::Look {
                plan: &self.plan,
                state: &state,
                snapshot: self.snapshot.clone(),
                key: &Key::from_bytes([5; 32]),
                green: true,
            },
        )
        .await
        .unwrap()
    }
    /// Looks and brings; whether there was something to bring.
    async fn bring(&self, prune: bool) -> bool {
        let report = self.look().await;
        let state = self.journal.state();
        let Some(extension) = drift::extension(&self.plan, &state, &report, prune) else {
            return false;
        };
        let outcome = self.engine().bring(Some(extension)).await.unwrap();
        assert_eq!(outcome.name(), "migrated", "{outcome:?}");
        true
    }
    /// Rolls back to the end of phase provision. What somebody changed on green may be left (and then named, with its namespace); nothing else.
    async fn back(&self, empty: &BTreeMap<String, Value>) {
        const THEIRS: &[&str] = &[
            "configmap/orders/orders-config",
            "configmap/storefront/web-config",
            "namespace/orders",
            "namespace/storefront",
        ];
        let mut skipped = 0;
        loop {
            let engine = self.engine();
            match engine.rollback(Some(Phase::Provision)).await.unwrap() {
                Outcome::Restored { .. } => break,
                Outcome::Stuck { step, stuck } if skipped < 5 => {
                    assert!(THEIRS.contains(&stuck.object.as_str()), "{stuck:?}");
                    engine.skip(&step, "theirs").unwrap();
                    skipped += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        let mut left = self.objects(Side::Green).await;
        if skipped > 0 {
            // What a namespace that stays has of its own accord.
            left.retain(|name, _| {
                !THEIRS.contains(&name.as_str())
                    && !name.contains("kube-root-ca.crt")
                    && !name.ends_with("/default")
            });
        }
        let wanted: BTreeMap<_, _> = empty
            .iter()
            .filter(|(name, _)| skipped == 0 || left.contains_key(*name))
            .map(|(name, object)| (name.clone(), object.clone()))
            .collect();
        assert_eq!(left, wanted);
    }
    async fn get(&self, side: Side, object: &str) -> Option<Value> {
        self.twin.world().kube(side).get(&id(object)).await.unwrap()
    }
    fn merge(&self, side: Side, object: &str, body: Value) {
        self.twin.somebody_merges(side, &id(object), &body).unwrap();
    }
    fn create(&self, side: Side, object: Value) {
        self.twin.somebody_creates(side, &object).unwrap();
    }
    /// Everything that people and runs make, without what servers count and stamp.
    async fn objects(&self, side: Side) -> BTreeMap<String, Value> {
        let world = self.twin.world();
        let kube = world.kube(side);
        let mut all = BTreeMap::new();
        for kind in readable(&kube.kinds(true).await.unwrap(), &[]) {
            for mut object in kube.list(&kind).await.unwrap().items {
                let id = ObjectId::of(&object).unwrap();
                if ![
                    "Pod",
                    "ReplicaSet",
                    "Endpoints",
                    "EndpointSlice",
                    "Node",
                    "Job",
                ]
                .contains(&id.kind.as_str())
                {
                    let meta = object["metadata"].as_object_mut().unwrap();
                    meta.retain(|k, _| ["labels", "annotations"].contains(&k.as_str()));
                    object.as_object_mut().unwrap().remove("status");
                    all.insert(id.to_string(), object);
                }
            }
        }
        all
    }
    /// A week of work: on blue, on green, on both.
    async fn a_week_goes_by(&self) {
        use Side::{Blue, Green};
        self.merge(
            Blue,
            "configmap/storefront/web-config",
            json!({"data": {"BANNER": "winter is coming", "API_URL": "http://new.example"}}),
        );
        self.merge(
            Green,
            "configmap/storefront/web-config",
            json!({"data": {"API_URL": "http://tried.example"}}),
        );
        self.merge(
            Green,
            "configmap/orders/orders-config",
            json!({"data": {"DATABASE_NAME": "tried"}, "metadata": {"labels": {"tried": "yes"}}}),
        );
        self.merge(
            Blue,
            "secret/orders/orders-db",
            json!({"data": {"password": "Q0FOQVJZLW5ldw=="}}),
        );
        let web = self.get(Blue, "deployment/storefront/web").await.unwrap();
        let mut containers = web["spec"]["template"]["spec"]["containers"].clone();
        containers[0]["image"] = json!("shop/web:next");
        self.merge(
            Blue,
            "deployment/storefront/web",
            json!({"spec": {"template": {"spec": {"containers": containers}}}}),
        );
        self.create(Blue, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new-config", "namespace": "storefront"}, "data": {"a": "1"}}));
        let mut app = web.clone();
        app["metadata"] =
            json!({"name": "new-app", "namespace": "storefront", "labels": {"app": "new-app"}});
        app["spec"]["replicas"] = json!(2);
        app["spec"]["selector"] = json!({"matchLabels": {"app": "new-app"}});
        app["spec"]["template"]["metadata"]["labels"] = json!({"app": "new-app"});
        app.as_object_mut().unwrap().remove("status");
        self.create(Blue, app);
        let mut cron = self.get(Blue, "cronjob/platform/report").await.unwrap();
        cron["metadata"] = json!({"name": "new-cron", "namespace": "platform"});
        cron["spec"]["suspend"] = json!(false);
        cron.as_object_mut().unwrap().remove("status");
        self.create(Blue, cron);
        self.twin
            .somebody_deletes(Blue, &id("poddisruptionbudget/storefront/api"))
            .unwrap();
    }
}

fn said(report: &Report) -> BTreeMap<&str, Change> {
    report
        .entries
        .iter()
        .map(|e| (e.object.as_str(), e.change))
        .collect()
}

fn fields<'r>(report: &'r Report, object: &str) -> (Vec<String>, Vec<String>, Vec<String>) {
    let entry = report
        .entries
        .iter()
        .find(|e| e.object == object)
        .unwrap_or_else(|| panic!("{object}: {:?}", said(report)));
    let names = |list: &'r [drift::Field]| list.iter().map(|f| f.path.to_string()).collect();
    let f = &entry.fields;
    (names(&f.bring), names(&f.kept), names(&f.conflicts))
}

#[tokio::test(start_paused = true)]
async fn when_nobody_changed_anything_a_look_finds_nothing_in_any_phase() {
    let company = Company::new();
    for to in [Phase::Replay, Phase::Unpark, Phase::Freeze] {
        company.forward(Some(to)).await;
        let report = company.look().await;
        assert_eq!(said(&report), BTreeMap::new(), "{to:?}: {report:?}");
        assert_eq!(report.not_checked, Vec::<String>::new());
        assert!(report.blue > 100 && report.green > 20, "{report:?}");
        assert_eq!(report.exit_code(), 0);
        let state = company.journal.state();
        assert!(drift::extension(&company.plan, &state, &report, true).is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_week_of_changes_on_both_sides_is_told_apart_brought_and_taken_back() {
    let company = Company::new();
    company.forward(Some(Phase::Provision)).await;
    let empty = company.objects(Side::Green).await;
    company.forward(Some(Phase::Replay)).await;
    company.a_week_goes_by().await;
    let on_blue = company.objects(Side::Blue).await;

    let report = company.look().await;
    assert_eq!(
        said(&report),
        BTreeMap::from([
            ("configmap/orders/orders-config", Change::Kept),
            ("poddisruptionbudget/storefront/api", Change::Gone),
            ("configmap/storefront/new-config", Change::New),
            ("configmap/storefront/web-config", Change::Conflict),
            ("cronjob/platform/new-cron", Change::New),
            ("deployment/storefront/new-app", Change::New),
            ("deployment/storefront/web", Change::Bring),
            ("secret/orders/orders-db", Change::Bring),
        ])
    );
    assert_eq!(report.exit_code(), 3, "a conflict is for a person");
    let list = |all: &[&str]| all.iter().map(|s| s.to_string()).collect::<Vec<_>>();
    assert_eq!(
        fields(&report, "configmap/storefront/web-config"),
        (list(&["data.BANNER"]), vec![], list(&["data.API_URL"]))
    );
    assert_eq!(
        fields(&report, "configmap/orders/orders-config").1,
        ["data.DATABASE_NAME", "metadata.labels.tried"],
        "the label is new on green"
    );
    let text = format!("{report:?} {}", json!(report));
    assert!(!text.contains("Q0FOQVJZLW5ldw") && !text.contains("CANARY-new"));

    assert!(company.bring(true).await);
    let green = |object: &'static str| company.get(Side::Green, object);
    let web_config = green("configmap/storefront/web-config").await.unwrap();
    assert_eq!(web_config["data"]["BANNER"], "winter is coming");
    assert_eq!(
        web_config["data"]["API_URL"], "http://tried.example",
        "what somebody did on green stays"
    );
    let orders = green("configmap/orders/orders-config").await.unwrap();
    assert_eq!(orders["data"]["DATABASE_NAME"], "tried");
    assert_eq!(
        green("secret/orders/orders-db").await.unwrap()["data"]["password"],
        "Q0FOQVJZLW5ldw=="
    );
    let web = green("deployment/storefront/web").await.unwrap();
    assert_eq!(
        web["spec"]["template"]["spec"]["containers"][0]["image"],
        "shop/web:next"
    );
    assert_eq!(web["spec"]["replicas"], 0, "still parked");
    let app = green("deployment/storefront/new-app").await.unwrap();
    assert_eq!(app["spec"]["replicas"], 0, "parked as in the replay");
    assert!(annotation(&app, "crossfade.dev/run").is_some());
    assert_eq!(
        green("cronjob/platform/new-cron").await.unwrap()["spec"]["suspend"],
        true
    );
    assert!(
        green("poddisruptionbudget/storefront/api").await.is_none(),
        "pruned"
    );
    let journal = format!("{:?}", company.journal.entries());
    assert!(
        !journal.contains("Q0FOQVJZLW5ldw"),
        "no value of a Secret in the journal"
    );

    // Once more: nothing to write, and nothing is.
    let writes = || company.twin.calls().iter().filter(|c| c.write).count();
    let before = writes();
    assert!(!company.bring(true).await);
    assert_eq!(writes(), before);
    assert_eq!(
        said(&company.look().await),
        BTreeMap::from([
            ("configmap/orders/orders-config", Change::Kept),
            ("configmap/storefront/web-config", Change::Conflict),
        ])
    );

    // On to the end: what is new is woken, stopped and started with the rest.
    company.forward(None).await;
    let app = green("deployment/storefront/new-app").await.unwrap();
    assert_eq!(
        (&app["spec"]["replicas"], &app["status"]["readyReplicas"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(
        green("cronjob/platform/new-cron").await.unwrap()["spec"]["suspend"],
        false
    );
    let cron = company
        .get(Side::Blue, "cronjob/platform/new-cron")
        .await
        .unwrap();
    assert_eq!(cron["spec"]["suspend"], true, "two of it never run");
    assert_eq!(company.twin.violations(), Vec::<String>::new());

    // And all of it back.
    company.back(&empty).await;
    assert_eq!(company.objects(Side::Blue).await, on_blue);
    assert_eq!(company.twin.violations(), Vec::<String>::new());
    // What was undone is history: the same plan goes forward without it.
    company.forward(Some(Phase::Replay)).await;
    assert!(green("configmap/storefront/new-config").await.is_none());
    assert_eq!(
        green("configmap/storefront/web-config").await.unwrap()["data"]["BANNER"],
        "summer is coming"
    );
}

#[tokio::test(start_paused = true)]
async fn killed_after_any_journal_record_of_a_sync_resume_completes_it_and_rollback_leaves_nothing()
{
    let company = Company::new();
    company.forward(Some(Phase::Provision)).await;
    let empty = company.objects(Side::Green).await;
    company.forward(Some(Phase::Replay)).await;
    company.a_week_goes_by().await;
    let first = company.journal.len();
    let whole = company.again();
    assert!(whole.bring(true).await);
    let last = whole.journal.len();
    let wanted = whole.objects(Side::Green).await;
    assert!(last - first > 20, "{} records", last - first);

    for n in first + 1..=last {
        for point in [CrashPoint::AfterRecord, CrashPoint::BeforeNext] {
            let dead = company.again();
            dead.journal.crash_after(n, point);
            let report = dead.look().await;
            let state = dead.journal.state();
            let extension = drift::extension(&dead.plan, &state, &report, true);
            let died = dead.engine().bring(extension).await;
            if n < last || point == CrashPoint::AfterRecord {
                assert!(died.is_err(), "record {n}: {died:?}");
            }
            let resumed = dead.again();
            let outcome = resumed.engine().bring(None).await.unwrap();
            assert_eq!(
                outcome.name(),
                "migrated",
                "record {n} {point:?}: {outcome:?}"
            );
            resumed.bring(true).await;
            assert_eq!(
                resumed.objects(Side::Green).await,
                wanted,
                "record {n} {point:?}"
            );

            let back = dead.again();
            back.back(&empty).await;
            assert_eq!(back.twin.violations(), Vec::<String>::new());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_somebody_changes_on_green_between_the_look_and_the_write_is_left_and_named() {
    let company = Company::new();
    company.forward(Some(Phase::Replay)).await;
    company.merge(
        Side::Blue,
        "configmap/storefront/web-config",
        json!({"data": {"BANNER": "blue's", "API_URL": "blue's"}}),
    );
    let report = company.look().await;
    let state = company.journal.state();
    let extension = drift::extension(&company.plan, &state, &report, false).unwrap();
    let root = extension.steps[0].id.clone();
    company.merge(
        Side::Green,
        "configmap/storefront/web-config",
        json!({"data": {"BANNER": "green's"}}),
    );
    company.engine().bring(Some(extension)).await.unwrap();
    let data = company
        .get(Side::Green, "configmap/storefront/web-config")
        .await
        .unwrap()["data"]
        .clone();
    assert_eq!(data["API_URL"], "blue's");
    assert_eq!(data["BANNER"], "green's");
    let after = company.journal.state().steps[&root].after.clone().unwrap();
    let left = after["left"]["configmap/storefront/web-config"]["data.BANNER"]
        .as_str()
        .unwrap();
    assert!(left.starts_with("changed on green by"), "{left}");
}

#[tokio::test(start_paused = true)]
async fn a_role_or_a_name_that_the_plan_does_not_have_needs_a_new_plan() {
    let company = Company::new();
    company.forward(Some(Phase::Replay)).await;
    company.create(Side::Blue, json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "uploader", "namespace": "storefront"}}));
    let mut app = company
        .get(Side::Blue, "deployment/storefront/web")
        .await
        .unwrap();
    app["metadata"] = json!({"name": "uploader", "namespace": "storefront"});
    app["spec"]["selector"] = json!({"matchLabels": {"app": "uploader"}});
    app["spec"]["template"]["metadata"] = json!({"labels": {"app": "uploader"}, "annotations": {"iam.amazonaws.com/role": "uploader"}});
    app["spec"]["template"]["spec"]["serviceAccountName"] = json!("uploader");
    app.as_object_mut().unwrap().remove("status");
    company.create(Side::Blue, app);
    company.create(Side::Blue, json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "fresh", "namespace": "storefront"},
        "spec": {"rules": [{"host": "fresh.shop.test", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}}]}}]}}));
    let report = company.look().await;
    let said = said(&report);
    assert_eq!(
        said.get("serviceaccount/storefront/uploader"),
        Some(&Change::Replan),
        "{said:?}"
    );
    assert_eq!(
        said.get("ingress/storefront/fresh"),
        Some(&Change::Replan),
        "{said:?}"
    );
    let fresh = report
        .entries
        .iter()
        .find(|e| e.object == "ingress/storefront/fresh")
        .unwrap();
    assert!(fresh.note.contains("fresh.shop.test"), "{}", fresh.note);
    assert_eq!(report.exit_code(), 3);
    let state = company.journal.state();
    let extension = drift::extension(&company.plan, &state, &report, true);
    let written = extension.map(|e| e.verdicts).unwrap_or_default();
    assert!(
        !written
            .iter()
            .any(|v| v.object.ends_with("/fresh")
                || v.object == "serviceaccount/storefront/uploader")
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_looks_when_it_begins_and_stops_before_the_freeze_until_the_drift_is_decided() {
    let company = Company::new();
    let moments = Arc::new(Mutex::new(vec![]));
    let seen = moments.clone();
    let hook = LookHook(Arc::new(move |moment| {
        seen.lock().unwrap().push(moment);
        Box::pin(async move {
            Ok((moment == Moment::BeforeFreeze).then(|| Outcome::Stopped {
                step: "freeze".into(),
                object: String::new(),
                why: "1 new on blue".into(),
                remedy: "crossfade replay".into(),
                kind: Kind::StalePlan,
            }))
        })
    }));
    let outcome = company
        .engine_that_looks(Some(hook.clone()))
        .forward(None)
        .await
        .unwrap();
    assert_eq!((outcome.name(), outcome.exit_code()), ("stopped", 4));
    assert_eq!(
        *moments.lock().unwrap(),
        [Moment::Begin, Moment::BeforeFreeze]
    );
    let state = company.journal.state();
    for step in &company.plan.steps {
        let done = state.status(&step.id) == Status::Done;
        let early = step.phase <= Phase::Unpark || step.kind == "data.stream";
        assert_eq!(done, early, "{}", step.id);
    }
    // Decided: it goes on, and does not look again once blue is frozen.
    company.forward(Some(Phase::Freeze)).await;
    let outcome = company
        .engine_that_looks(Some(hook))
        .forward(None)
        .await
        .unwrap();
    assert_eq!(outcome.name(), "migrated", "{outcome:?}");
    assert_eq!(moments.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_green_had_before_the_run_is_compared_and_never_written() {
    let company = Company::new();
    company.forward(Some(Phase::Provision)).await;
    for object in ["namespace/storefront", "configmap/storefront/web-config"] {
        let verdict = company.plan.verdicts.get(object).unwrap().unwrap();
        company.create(Side::Green, verdict.target.clone().unwrap());
    }
    company.forward(Some(Phase::Replay)).await;
    company.merge(
        Side::Blue,
        "configmap/storefront/web-config",
        json!({"data": {"BANNER": "new"}}),
    );
    let report = company.look().await;
    let entry = report
        .entries
        .iter()
        .find(|e| e.object == "configmap/storefront/web-config")
        .unwrap();
    assert_eq!(entry.change, Change::Conflict);
    assert!(entry.note.contains("before the run"));
    assert_eq!(report.to_write(true).len(), 0);
    let names: BTreeSet<&str> = report.entries.iter().map(|e| e.object.as_str()).collect();
    assert_eq!(names, BTreeSet::from(["configmap/storefront/web-config"]));
}
