//! Blue with objects of the test's own, green as `crossfade migrate --to provision` leaves it, and the released binary between
//! them: for the tests and the benchmark of the replay.
#![allow(dead_code)]

pub mod look;
pub mod writer;

use crossfade::plan::model::Plan;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::bench::{Bench, BenchOptions};
use testkit::servers::Side;
use testkit::usage;

/// Where the plan is, below a working directory.
const PLAN: &str = "plans/shop";
/// The product's user on blue.
pub const OPERATOR: &str = "operator@shop.test";

/// A bench and a folder for working directories.
pub struct Move {
    pub bench: Bench,
    pub dir: tempfile::TempDir,
    binary: PathBuf,
    _alone: tokio::sync::MutexGuard<'static, ()>,
}

/// Two benches at once on two cores would measure the machine, not the product.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// What the binary said, and what it used.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
    pub cpu: Duration,
    pub peak_kib: u64,
}

impl Said {
    #[track_caller]
    pub fn expect(&self, code: i32) -> &Self {
        assert_eq!(
            self.code,
            Some(code),
            "{}{}",
            tail(&self.stdout),
            tail(&self.stderr)
        );
        self
    }
}

/// The end of a long text.
fn tail(text: &str) -> &str {
    let start = text.len().saturating_sub(20_000);
    let start = (start..=text.len())
        .find(|i| text.is_char_boundary(*i))
        .unwrap_or(0);
    &text[start..]
}

/// A binary at work.
pub struct Running {
    child: Child,
    out: PathBuf,
    err: PathBuf,
    began: Instant,
    peak_kib: u64,
}

impl Running {
    /// Whether it has come to its end by itself.
    pub fn ended(&mut self) -> bool {
        let pid = self.child.id();
        self.peak_kib = self.peak_kib.max(usage::peak_memory(pid).unwrap_or(0));
        usage::ended(pid)
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
    }

    /// Waits for its end.
    pub async fn end(mut self) -> Said {
        while !self.ended() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let took = self.began.elapsed();
        let cpu = usage::cpu(self.child.id()).unwrap_or_default();
        let status = self.child.wait().expect("its end");
        let read = |path: &Path| {
            String::from_utf8_lossy(&std::fs::read(path).expect("its output")).into_owned()
        };
        Said {
            code: status.code(),
            stdout: read(&self.out),
            stderr: read(&self.err),
            took,
            cpu,
            peak_kib: self.peak_kib,
        }
    }
}

impl Move {
    /// Starts the servers. `spec` is what this migration says beside the usual in its `migration.yaml`.
    pub async fn open(binary: &str, spec: &str) -> Move {
        let alone = ONE_AT_A_TIME.lock().await;
        let bench = Bench::start(BenchOptions {
            load_objects: false,
            ..BenchOptions::default()
        })
        .await
        .expect("the bench starts");
        let made = Move {
            bench,
            dir: tempfile::tempdir().expect("a folder"),
            binary: binary.into(),
            _alone: alone,
        };
        std::fs::create_dir_all(made.folder("work")).expect("a folder");
        made.write_spec(spec);
        made
    }

    /// Writes `migration.yaml` anew.
    pub fn write_spec(&self, extra: &str) {
        let values = self.bench.values();
        let value = |key: &str| {
            let found = values.iter().find(|(k, _)| *k == key);
            found.map(|(_, v)| v.as_str()).expect("the bench knows it")
        };
        let text = format!(
            "apiVersion: crossfade.dev/v1alpha1\nkind: Migration\nname: shop\n\
             blue: {{cluster: shop.test, kubeconfig: {kubeconfig}, context: shop.test, stateStore: \"s3://kops-state-shop\"}}\n\
             green:\n  name: shop-green\n  version: \"1.36\"\n  access:\n  - principal: arn:aws:iam::{account}:role/shop-operators\n    policy: AmazonEKSClusterAdminPolicy\n\
             aws: {{account: \"{account}\", region: {region}}}\n\
             dns: {{zones: [shop.test], lowTtl: 5, drainSeconds: 8}}\n\
             probes: {{path: /, resolver: \"{resolver}\", proxy: \"http://{gateway}\"}}\n{extra}",
            kubeconfig = value("BLUE_KUBECONFIG"),
            account = value("ACCOUNT"),
            region = value("REGION"),
            resolver = value("RESOLVER"),
            gateway = value("GATEWAY"),
        );
        std::fs::write(self.folder("work").join("migration.yaml"), text).expect("written");
    }

    /// The plan folder in a working directory; the usual one is `work`.
    pub fn folder(&self, place: &str) -> PathBuf {
        self.dir.path().join(place).join(PLAN)
    }

    /// The journal in it.
    pub fn journal(&self, place: &str) -> PathBuf {
        self.folder(place).join("run/journal.jsonl")
    }

    pub fn plan(&self, place: &str) -> Plan {
        crossfade::plan::load(&self.folder(place).join("plan.json")).expect("a plan")
    }

    /// A working directory like another one is now: the same plan, the same journal.
    pub fn copy_place(&self, from: &str, to: &str) {
        copy(&self.dir.path().join(from), &self.dir.path().join(to));
    }

    /// A command in the bench's environment, in a working directory.
    pub fn command(&self, program: &Path, place: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.dir.path().join(place))
            .stdin(Stdio::null());
        for (key, value) in self.bench.env() {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        command
            // Ambient context that must decide nothing.
            .env("KUBECONFIG", "/nonexistent/kubeconfig")
            .env(crossfade::world::live::ROUTE53_RPS, "20");
        command
    }

    /// Starts the binary; `PLAN` is put behind the verb.
    pub fn start(&self, place: &str, args: &[&str], env: &[(&str, &str)]) -> Running {
        let mut command = self.command(&self.binary, place);
        command.arg(args[0]).arg(PLAN).args(&args[1..]);
        command.envs(env.iter().copied());
        self.spawn(command)
    }

    /// Starts any command with its output in files.
    pub fn spawn(&self, mut command: Command) -> Running {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let n = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let file = |kind: &str| {
            let path = self.dir.path().join(format!("{n}.{kind}"));
            (std::fs::File::create(&path).expect("a file"), path)
        };
        let ((stdout, out), (stderr, err)) = (file("out"), file("err"));
        Running {
            child: command
                .stdout(stdout)
                .stderr(stderr)
                .spawn()
                .expect("it starts"),
            out,
            err,
            began: Instant::now(),
            peak_kib: 0,
        }
    }

    /// Runs the binary to its end.
    pub async fn run_in(&self, place: &str, args: &[&str], env: &[(&str, &str)]) -> Said {
        let said = self.start(place, args, env).end().await;
        println!(
            "crossfade {}: {:?} after {:.1} s",
            args.join(" "),
            said.code,
            said.took.as_secs_f64()
        );
        said
    }

    /// Runs the binary in the usual place.
    pub async fn run(&self, args: &[&str]) -> Said {
        self.run_in("work", args, &[]).await
    }

    /// From nothing to a provisioned green: everything that comes before the replay.
    pub async fn provision(&self) {
        self.run(&["review", "--approve", "all"]).await.expect(0);
        self.run(&["migrate", "--to", "provision"]).await.expect(0);
    }

    /// The requests in a side's audit log that have been answered.
    pub fn audit(&self, side: Side) -> Vec<Value> {
        let log = std::fs::read_to_string(self.bench.audit_log(side)).unwrap_or_default();
        log.lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|e| e["stage"] == "ResponseComplete")
            .collect()
    }

    /// The answered requests of the product on a side: it comes to blue as a person, to green as an IAM principal.
    pub fn audit_of_product(&self, side: Side) -> Vec<Value> {
        let mut audit = self.audit(side);
        audit.retain(|e| {
            let who = e["user"]["username"].as_str().unwrap_or_default();
            match side {
                Side::Blue => who == OPERATOR,
                Side::Green => who.starts_with("arn:"),
            }
        });
        audit
    }

    /// A client with the bench's own rights.
    pub async fn client(&self, side: Side) -> kube::Client {
        let plane = self.bench.control_plane(side);
        plane.client().await.expect("a client")
    }
}

/// Whether an audited request wrote something.
pub fn is_write(event: &Value) -> bool {
    let ok = event["responseStatus"]["code"]
        .as_u64()
        .is_some_and(|c| c < 300);
    let write = matches!(
        event["verb"].as_str(),
        Some("create" | "update" | "patch" | "delete" | "deletecollection")
    );
    ok && write && event["objectRef"]["resource"] != "selfsubjectaccessreviews"
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("copied");
        }
    }
}
