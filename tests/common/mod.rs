//! A plan folder on disk and the released binary run in it, with a home and an environment of its own.
#![allow(dead_code)]

use crossfade::journal::{Journal, Record};
use crossfade::plan::model::{Phase, Plan};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A working directory with `plans/shop/`.
pub struct Dir {
    pub root: tempfile::TempDir,
}

/// What the binary said.
pub struct Said {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Said {
    /// The error object of `-o json`.
    pub fn error(&self) -> Value {
        let line = self.stderr.lines().last().unwrap_or_default();
        let value: Value =
            serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {}", self.stderr));
        value["error"].clone()
    }
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}\n{}", self.stdout, self.stderr))
    }
    #[track_caller]
    pub fn expect(&self, code: i32) -> &Self {
        assert_eq!(
            self.code, code,
            "stdout:\n{}\nstderr:\n{}",
            self.stdout, self.stderr
        );
        self
    }
    #[track_caller]
    pub fn err_has(&self, text: &str) -> &Self {
        assert!(
            self.stderr.contains(text),
            "no {text:?} in stderr:\n{}",
            self.stderr
        );
        self
    }
    #[track_caller]
    pub fn out_has(&self, text: &str) -> &Self {
        assert!(
            self.stdout.contains(text),
            "no {text:?} in stdout:\n{}",
            self.stdout
        );
        self
    }
}

impl Dir {
    pub fn new() -> Self {
        Dir {
            root: tempfile::tempdir().unwrap(),
        }
    }
    /// With a plan folder `plans/shop` whose plan was made for a live cluster that nobody can reach (nothing listens on port 1).
    pub fn with_plan() -> Self {
        let dir = Dir::new();
        fs::create_dir_all(dir.folder()).unwrap();
        dir.write_plan(&plan());
        fs::write(dir.folder().join("kubeconfig"), KUBECONFIG).unwrap();
        dir
    }
    /// And every phase approved.
    pub fn approved() -> Self {
        let dir = Dir::with_plan();
        dir.run(&["review", "--approve", "all"]).expect(0);
        dir
    }
    pub fn path(&self) -> &Path {
        self.root.path()
    }
    pub fn folder(&self) -> PathBuf {
        self.path().join("plans/shop")
    }
    pub fn run_folder(&self) -> PathBuf {
        self.folder().join("run")
    }
    pub fn journal_file(&self) -> PathBuf {
        self.run_folder().join("journal.jsonl")
    }
    pub fn write_plan(&self, plan: &Plan) {
        crossfade::plan::store(&self.folder().join("plan.json"), plan).unwrap();
    }
    /// Fills the journal of the plan's run.
    pub fn journal(&self, records: Vec<Record>) {
        let journal = Journal::open(&self.run_folder(), "test").unwrap().journal;
        for (n, record) in records.into_iter().enumerate() {
            let at = jiff::Timestamp::from_second(1_796_000_000 + n as i64).unwrap();
            journal.append(at, record).unwrap();
        }
    }
    pub fn command(&self) -> Command {
        let mut c = Command::new(env!("CARGO_BIN_EXE_crossfade"));
        c.current_dir(self.path())
            .env_clear()
            .env("HOME", self.path())
            .env("USER", "ops")
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
            .env("AWS_SECRET_ACCESS_KEY", "not-a-secret")
            .env("AWS_ENDPOINT_URL", "http://127.0.0.1:1");
        c
    }
    pub fn run(&self, args: &[&str]) -> Said {
        said(self.command().args(args).output().unwrap())
    }
    /// Every file below the directory with its content, to prove that nothing was written.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = vec![];
        let mut todo = vec![self.path().to_path_buf()];
        while let Some(dir) = todo.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    todo.push(path);
                } else {
                    let content = fs::read(&path).unwrap();
                    found.push((path, content));
                }
            }
        }
        found.sort();
        found
    }
}

pub fn said(out: Output) -> Said {
    Said {
        code: out.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
    }
}

const KUBECONFIG: &str = r#"apiVersion: v1
kind: Config
clusters:
- name: shop
  cluster:
    server: https://127.0.0.1:1
contexts:
- name: shop
  context: {cluster: shop, user: ops}
current-context: shop
users:
- name: ops
  user: {token: not-a-token}
"#;

/// A small plan with real step kinds.
pub fn plan() -> Plan {
    let step = |id: &str, phase: &str, kind: &str, needs: Value, promise: Value, params: Value| json!({"id": id, "phase": phase, "kind": kind, "needs": needs, "promise": promise, "summary": format!("does {id}"), "params": params, "expect_s": [1, 60]});
    let exact = || json!({"kind": "exact"});
    let mut plan: Plan = serde_json::from_value(json!({
        "api_version": "crossfade.dev/v1alpha1", "kind": "Plan", "digest": "",
        "spec": {"apiVersion": "crossfade.dev/v1alpha1", "kind": "Migration", "name": "shop",
            "blue": {"cluster": "shop.test", "kubeconfig": "kubeconfig", "context": "shop"}, "green": {"name": "shop-green"}, "aws": {"region": "eu-west-1"}},
        "basis": {"account": "000000000000", "region": "eu-west-1", "blue": {"uid": "uid-1", "caSha256": "ca-1"}, "zones": {"shop.test": "Z1"}, "records": {}, "not_checked": []},
        "target": {"cluster": {"name": "shop-green", "version": "1.36", "region": "eu-west-1", "subnets": ["subnet-1"]},
            "node_groups": [{"name": "nodes", "instance_group": "nodes", "instance_types": ["t3.medium"], "capacity_type": "ON_DEMAND", "ami_type": "AL2023_x86_64_STANDARD", "min": 1, "max": 3, "desired": 2, "disk_gib": 20, "disk_type": "gp3", "subnets": ["subnet-1"], "labels": {}, "taints": []}],
            "roles": [{"name": "shop-green-node", "policies": ["arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"], "existing": false}], "addons": [{"name": "vpc-cni", "replaces": "calico"}]},
        "findings": [{"id": "DNS-09", "severity": "warning", "object": "record/orders.shop.test/A", "message": "an alias has no TTL to lower", "remedy": "expect clients to hold it for 60 s", "source": "checks.md DNS-09"}],
        "verdicts": [
            {"object": "deployment/orders/orders", "api_version": "apps/v1", "verdict": "changed", "rules": ["replay.md 29"], "target": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "orders", "namespace": "orders"}}, "park": {"field": "/spec/replicas", "wakes": "unpark", "value": 2}},
            {"object": "deployment/orders/orders-admin", "api_version": "apps/v1", "verdict": "copied", "rules": [], "target": null},
            {"object": "lease/kube-system/x", "api_version": "coordination.k8s.io/v1", "verdict": "skipped", "rules": ["replay.md 3"], "target": null}
        ],
        "generated": [], "names": [],
        "steps": [
            step("preflight/pins", "preflight", "pins", json!([]), exact(), json!({})),
            step("freeze/cron", "freeze", "freeze.cron", json!(["preflight/pins"]), exact(), json!({"objects": []})),
            step("soak/watch", "soak", "soak.watch", json!(["freeze/cron"]), json!({"kind": "none", "reason": "it only watches"}), json!({"hosts": [], "seconds": 1})),
        ],
        "timeline": {"critical_path": ["preflight/pins", "freeze/cron", "soak/watch"], "write_closed_s": [5, 10], "total_s": [60, 120], "sources": []}
    }))
    .unwrap();
    plan.digest = crossfade::plan::digest_of(&plan);
    plan
}

/// The first record of a run of the plan.
pub fn started() -> Record {
    Record::RunStarted {
        run: "shop-7f3a9c".into(),
        plan_digest: plan().digest,
        crossfade_version: "0.1.0".into(),
    }
}

/// Records that carry a step to its end.
pub fn done(step: &str) -> Vec<Record> {
    vec![
        Record::Intent {
            step: step.into(),
            before: json!({}),
        },
        Record::Applied {
            step: step.into(),
            after: json!({}),
        },
        Record::Done { step: step.into() },
    ]
}

pub fn phases() -> Vec<Phase> {
    vec![Phase::Preflight, Phase::Freeze, Phase::Soak]
}
