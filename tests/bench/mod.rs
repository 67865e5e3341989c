//! The company on the bench, the released binary beside it, and what tests ask of both.

use crossfade::engine::{Engine, Options, silent};
use crossfade::journal::Journal;
use crossfade::plan::model::{Phase, Plan};
use crossfade::world::twin::{self, Twin};
use crossfade::world::{live, observe};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::bench::{Bench, BenchOptions};
use testkit::dns::{Mode, Resolver};
use testkit::fixture::MANAGED_NAMES;
use testkit::servers::{Side, http};
use testkit::traffic::{Clients, ClientsConfig, Target, Writers, WritersConfig};

/// The kops cluster by whose tags the account is read.
const KOPS: &str = "shop.test";
/// Access key of the product.
const PRODUCT: &str = "test";
/// User of the product on blue.
const OPERATOR: &str = "operator@shop.test";
/// Every secret of the fixture holds this text.
const CANARY: &str = "CANARY-";

/// A bench with a working directory that has `plans/shop/migration.yaml`.
pub struct Shop {
    pub bench: Bench,
    dir: tempfile::TempDir,
    _alone: tokio::sync::MutexGuard<'static, ()>,
}

/// Two benches at once on two cores would measure the machine, not the product.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// What the binary said.
pub struct Said {
    code: Option<i32>,
    output: String,
}

impl Said {
    #[track_caller]
    pub fn expect(&self, code: i32) {
        assert_eq!(self.code, Some(code), "{}", self.output);
    }
    /// All of it.
    #[allow(dead_code, reason = "not every test reads it")]
    pub fn text(&self) -> &str {
        &self.output
    }
}

/// A write in an API server's audit log.
#[derive(Debug, Clone)]
pub struct Write {
    pub verb: String,
    /// `resource/namespace/name`.
    pub object: String,
}

impl Shop {
    pub async fn open() -> Shop {
        let alone = ONE_AT_A_TIME.lock().await;
        let bench = Bench::start(BenchOptions::default())
            .await
            .expect("the bench starts");
        let dir = tempfile::tempdir().unwrap();
        let plan = dir.path().join("plans/shop");
        std::fs::create_dir_all(&plan).unwrap();
        let spec = bench
            .migration_yaml()
            .unwrap()
            .expect("the fixture has a template");
        std::fs::write(plan.join("migration.yaml"), spec).unwrap();
        Shop {
            bench,
            dir,
            _alone: alone,
        }
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("plans/shop")
    }

    fn command(&self, program: &Path) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(program);
        command
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        for (key, value) in self.bench.env() {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        // Ambient context that must decide nothing.
        command
            .env("KUBECONFIG", "/nonexistent/kubeconfig")
            .env(live::ROUTE53_RPS, "20");
        command
    }

    /// Runs the released binary to its end.
    pub async fn run(&self, args: &[&str]) -> Said {
        let began = Instant::now();
        let output = self
            .command(Path::new(env!("CARGO_BIN_EXE_crossfade")))
            .args(args)
            .output()
            .await
            .unwrap();
        println!(
            "crossfade {}: {:?} after {:?}",
            args.join(" "),
            output.status.code(),
            began.elapsed()
        );
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Said {
            code: output.status.code(),
            output: text,
        }
    }

    /// Starts a verb and kills it (SIGKILL) as soon as its journal shows work in a phase that is not in `killed` yet; the phases
    /// that were at work then, or `None` when the verb came to its end first.
    pub async fn run_until_killed(
        &self,
        verb: &str,
        phases: &[Phase],
        killed: &BTreeSet<Phase>,
    ) -> Option<BTreeSet<Phase>> {
        let log = self.dir.path().join("last.log");
        let file = std::fs::File::create(&log).unwrap();
        let mut child = self
            .command(Path::new(env!("CARGO_BIN_EXE_crossfade")))
            .args([verb, "plans/shop"])
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                let said = std::fs::read_to_string(&log).unwrap();
                assert_eq!(status.code(), Some(0), "{said}");
                return None;
            }
            let at_work = self.at_work(verb);
            if at_work
                .iter()
                .any(|p| phases.contains(p) && !killed.contains(p))
            {
                child.kill().await.unwrap();
                let at_work = self.at_work(verb);
                println!("killed {verb} at work in {at_work:?}");
                return Some(at_work);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Phases of the steps that the journal shows begun and not ended, in a verb's direction.
    fn at_work(&self, verb: &str) -> BTreeSet<Phase> {
        let journal = self.folder().join("run/journal.jsonl");
        let (begun, ended) = if verb == "rollback" {
            ("undo_intent", "undone")
        } else {
            ("intent", "done")
        };
        let mut open = BTreeSet::new();
        for line in std::fs::read_to_string(journal).unwrap_or_default().lines() {
            let Ok(line) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let record = &line["record"];
            let step = record["step"].as_str().unwrap_or_default().to_owned();
            if record["type"] == begun {
                open.insert(step);
            } else if record["type"] == ended {
                open.remove(&step);
            }
        }
        let phase = |step: &String| Phase::parse(step.split('/').next()?);
        open.iter().filter_map(phase).collect()
    }

    pub fn plan(&self) -> Plan {
        crossfade::plan::load(&self.folder().join("plan.json")).unwrap()
    }

    /// Readers of every host through two tempers of resolvers, and writers of orders.
    pub async fn traffic(&self) -> (Clients, Writers) {
        let authority = self.bench.authority().addr();
        let honest = Resolver::start(authority, Mode::TtlTrue).await.unwrap();
        let stubborn = Resolver::start(authority, Mode::MinTtl(Duration::from_secs(7)))
            .await
            .unwrap();
        let gateway = self.bench.net().gateway();
        let clients = Clients::start(ClientsConfig {
            targets: MANAGED_NAMES
                .iter()
                .map(|host| Target::root(host))
                .collect(),
            resolvers: vec![
                ("honest".into(), honest.clone()),
                ("stubborn".into(), stubborn),
            ],
            gateway,
            pause: Duration::from_millis(150),
        });
        let writers = Writers::start(WritersConfig {
            host: "orders.shop.test".into(),
            writers: 2,
            resolver: honest,
            gateway,
            pause: Duration::from_millis(100),
        });
        (clients, writers)
    }

    /// Waits until a side acknowledged an order.
    pub async fn until_written_on(&self, side: &str, writers: &Writers) {
        for _ in 0..300 {
            if writers.report().last_side() == Some(side) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!(
            "no order was taken by {side}: {:?}",
            writers.report().errors.last()
        );
    }

    /// Status and side of a host's `GET /`, by its name.
    pub async fn served_by(&self, host: &str) -> (u16, String) {
        let addresses = self
            .bench
            .resolver()
            .lookup(host)
            .await
            .expect("the name resolves");
        let answer = http::send(
            &self.bench.gateway(),
            "GET",
            &format!("http://{}/", addresses[0]),
            &[("host", host)],
            "",
        )
        .await
        .expect("an answer");
        (
            answer.status,
            answer.header("x-served-by").unwrap_or_default().to_owned(),
        )
    }

    /// The record sets that are none of ours, as text.
    pub fn foreign_records(&self, names: &[&str]) -> Vec<String> {
        let names: Vec<String> = names.iter().map(|n| format!("{n}.shop.test.")).collect();
        let foreign = |name: &str| names.iter().any(|n| n == name) || name == "shop.test.";
        self.bench
            .record_sets()
            .iter()
            .filter(|r| foreign(&r.name))
            .map(|r| format!("{r:?}"))
            .collect()
    }

    /// (client, seq) of all orders in a side's database.
    pub async fn rows(&self, side: Side) -> Vec<(String, i64)> {
        let (client, connection) = tokio_postgres::connect(
            &self.bench.database(side).superuser_url(),
            tokio_postgres::NoTls,
        )
        .await
        .unwrap();
        tokio::spawn(connection);
        let rows = client
            .query("select client, seq from orders", &[])
            .await
            .unwrap();
        rows.iter().map(|r| (r.get(0), r.get(1))).collect()
    }

    /// Writes of the operator in a side's audit log.
    pub fn audited_writes(&self, side: Side) -> Vec<Write> {
        let log = std::fs::read_to_string(self.bench.audit_log(side)).unwrap();
        log.lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|e| {
                e["stage"] == "ResponseComplete"
                    && e["responseStatus"]["code"]
                        .as_u64()
                        .is_some_and(|c| c < 300)
            })
            .filter(|e| {
                let who = e["user"]["username"].as_str().unwrap_or_default();
                // On green the product comes in as an IAM principal.
                if side == Side::Blue {
                    who == OPERATOR
                } else {
                    who.starts_with("arn:")
                }
            })
            .filter(|e| {
                matches!(
                    e["verb"].as_str(),
                    Some("create" | "update" | "patch" | "delete" | "deletecollection")
                )
            })
            .filter(|e| e["objectRef"]["resource"] != "selfsubjectaccessreviews")
            .map(|e| {
                let part = |key: &str| e["objectRef"][key].as_str().unwrap_or_default().to_owned();
                Write {
                    verb: e["verb"].as_str().unwrap_or_default().into(),
                    object: format!(
                        "{}/{}/{}",
                        part("resource"),
                        part("namespace"),
                        part("name")
                    ),
                }
            })
            .collect()
    }

    /// How many calls of the product changed AWS.
    pub fn product_changes(&self) -> usize {
        self.bench
            .calls()
            .iter()
            .filter(|c| c.who == PRODUCT && c.changed)
            .count()
    }

    /// What the product deleted in EKS, IAM and EC2 since a call is what it had made itself.
    pub fn only_own_things_were_deleted(&self, since: usize) {
        let calls = self.bench.calls();
        let name = |p: &Value| -> String {
            let keys = [
                "RoleName",
                "OpenIDConnectProviderArn",
                "nodegroupName",
                "addonName",
                "principalArn",
                "name",
                "clusterName",
            ];
            keys.iter()
                .filter_map(|k| p.get(k).or_else(|| p.get("body").and_then(|b| b.get(k))))
                .filter_map(Value::as_str)
                .next()
                .unwrap_or_default()
                .into()
        };
        let made: BTreeSet<String> = calls
            .iter()
            .skip(since)
            .filter(|c| c.who == PRODUCT && c.changed && c.action.starts_with("Create"))
            .map(|c| name(&c.params))
            .collect();
        let mut deleted = 0;
        for call in calls
            .iter()
            .skip(since)
            .filter(|c| c.who == PRODUCT && c.changed && c.action.starts_with("Delete"))
        {
            let what = name(&call.params);
            let own = made.contains(&what)
                || what.contains("oidc-provider/")
                || call.action == "DeleteTags";
            assert!(
                own,
                "{} {} {}: never created by this run ({made:?})",
                call.service, call.action, call.params
            );
            deleted += 1;
        }
        assert!(deleted > 10, "the rollback deleted {deleted} things");
    }

    /// The state of all servers in the words of `world::observe`.
    pub async fn observe(&self, moment: &str) -> Value {
        let file = self.dir.path().join(format!("{moment}.json"));
        let status = self
            .command(&std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "write_observation", "--nocapture"])
            .env("CROSSFADE_TEST_SPEC", self.folder().join("migration.yaml"))
            .env("CROSSFADE_TEST_OUT", &file)
            .env("CROSSFADE_TEST_ZONE", self.bench.zone_id().unwrap())
            .stdout(Stdio::null())
            .status()
            .await
            .unwrap();
        assert!(status.success(), "the observation failed");
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
    }

    /// The same two runs on the twin of the snapshot that the binary discovered.
    pub async fn twin(&self) -> (Value, Value) {
        let folder = self.folder();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .start_paused(true)
                .build()
                .unwrap();
            runtime.block_on(async {
                let plan = Arc::new(crossfade::plan::load(&folder.join("plan.json")).unwrap());
                let snapshot = crossfade::snapshot::store::read(&folder.join("snapshot")).unwrap();
                let twin = Twin::new(&snapshot, &plan.spec, twin::Options::default());
                let engine = Engine::new(
                    twin.world(),
                    plan.clone(),
                    Arc::new(Journal::memory()),
                    crossfade::step::registry(),
                    silent(),
                )
                .options(Options {
                    check_drift: false,
                    ..Options::default()
                });
                let zones: Vec<String> = plan.basis.zones.values().cloned().collect();
                let sets = vec!["orders".to_string()];
                let look = async || {
                    observe::observable_in(&twin.world(), KOPS, &zones, &sets)
                        .await
                        .unwrap()
                };
                assert_eq!(engine.forward(None).await.unwrap().name(), "migrated");
                let there = look().await;
                assert_eq!(engine.rollback(None).await.unwrap().name(), "restored");
                (there, look().await)
            })
        })
        .join()
        .expect("the twin's thread")
    }

    /// No secret of the fixture is in anything that the product wrote.
    pub fn no_secret_on_disk(&self) {
        let mut folders = vec![self.folder()];
        let mut files = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                    continue;
                }
                let bytes = std::fs::read(entry.path()).unwrap();
                let text = String::from_utf8_lossy(&bytes);
                assert!(!text.contains(CANARY), "{}", entry.path().display());
                // The same in base64, at its three alignments.
                for form in ["Q0FOQVJZL", "NBTkFSWS", "DQU5BUl"] {
                    assert!(
                        !text.contains(form),
                        "{} holds {form}",
                        entry.path().display()
                    );
                }
                files += 1;
            }
        }
        assert!(files > 10, "{files} files looked at");
    }
}

/// The inner side of [`Shop::observe`].
pub async fn write_observation() {
    let var = |name: &str| std::env::var(name).expect("started by a test");
    let path = PathBuf::from(var("CROSSFADE_TEST_SPEC"));
    let spec = crossfade::spec::load(&path).unwrap();
    let world = live::connect(&spec, path.parent().unwrap()).unwrap();
    let state = observe::observable_in(
        &world,
        KOPS,
        &[var("CROSSFADE_TEST_ZONE")],
        &["orders".into()],
    )
    .await
    .unwrap();
    std::fs::write(var("CROSSFADE_TEST_OUT"), state.to_string()).unwrap();
}

/// Differences, one line each.
pub fn diff_lines(left: &Value, right: &Value) -> Vec<String> {
    observe::diff(left, right)
}

/// What both worlds can have in common.
pub fn comparable(state: &Value) -> Value {
    let mut state = state.clone();
    for side in ["blue", "green"] {
        for (name, object) in state[side].as_object_mut().into_iter().flatten() {
            if name.starts_with("secret/") {
                // The twin never saw the values, only their hashes.
                for value in object["data"].as_object_mut().into_iter().flatten() {
                    *value.1 = Value::from("<value>");
                }
            }
        }
    }
    state
}

/// `resource/namespace/name` of everything on blue that a step of the plan may write.
pub fn objects_that_steps_write_on_blue(plan: &Plan) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    let mut add = |object: &str| {
        let (kind, rest) = object.split_once('/').unwrap();
        let plural = match kind {
            "ingress" => "ingresses".to_string(),
            other => format!("{other}s"),
        };
        named.insert(format!("{plural}/{rest}"));
    };
    for step in &plan.steps {
        match step.kind.as_str() {
            "freeze.cron" | "freeze.singletons" => step.params["objects"]
                .as_array()
                .unwrap()
                .iter()
                .for_each(|o| add(o.as_str().unwrap())),
            "edns.stop" => add(step.params["object"].as_str().unwrap()),
            "dns.ttl" => plan
                .names
                .iter()
                .filter(|n| n.ttl_annotation)
                .for_each(|n| add(&n.object)),
            _ => {}
        }
    }
    named
}
