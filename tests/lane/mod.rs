//! Companies in one account of the strict AWS layer, each in its own VPC, with its own access key and names, so that several provision at once
//! and a fault is for one of them only. What is asked for is one of each kind of thing; green's API server is the twin's.

use aws_sdk_ec2::types::{ResourceType, Tag, TagSpecification};
use crossfade::engine::{Engine, Event, EventKind, Events, Options, Outcome, silent};
use crossfade::journal::{Journal, Status};
use crossfade::plan::model::{Plan, StepSpec};
use crossfade::snapshot::model::Snapshot;
use crossfade::spec::model::Spec;
use crossfade::world::cloud::{Cloud, EksCluster, Inventory, Resource, Status as There};
use crossfade::world::twin::{self, Twin};
use crossfade::world::{World, live};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::TestCa;
use testkit::servers::ministack::{ACCOUNT, MiniStack, REGION};
use testkit::strict::{Config, Fault, FaultKind, GreenEndpoint, Met, Strict};

/// Names the folder of an inner test.
const FOLDER: &str = "CROSSFADE_TEST_FOLDER";
/// Killed on the way there, and taken back without going on first.
pub const BACK_AT_ONCE: &str = "killed after it, then back at once";
/// What a process asks before its first step.
const START: &str = "(start)";

/// Runs an ignored test of this binary in a process of its own: the SDK finds its endpoint and keys in files that the environment names.
pub async fn in_its_own_process(test: &str) {
    let dir = tempfile::tempdir().unwrap();
    let outcome = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", test, "--nocapture"])
        .env(FOLDER, dir.path())
        .env("AWS_CONFIG_FILE", dir.path().join("config"))
        .env(
            "AWS_SHARED_CREDENTIALS_FILE",
            dir.path().join("credentials"),
        )
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env_remove("AWS_ENDPOINT_URL")
        .env_remove("AWS_ACCESS_KEY_ID")
        .env_remove("AWS_SECRET_ACCESS_KEY")
        .env_remove("AWS_SESSION_TOKEN")
        .env_remove("AWS_PROFILE")
        .env_remove("AWS_REGION")
        .env_remove("AWS_CA_BUNDLE")
        .env_remove("HTTP_PROXY")
        .env_remove("HTTPS_PROXY")
        .status()
        .await
        .unwrap();
    assert!(outcome.success(), "the inner test failed, see above");
}

/// The folder that the outer test made.
pub fn folder() -> std::path::PathBuf {
    std::env::var(FOLDER)
        .expect("started by the outer test")
        .into()
}

/// One call of the table.
#[derive(Clone, Debug)]
pub struct Row {
    pub step: String,
    /// Counted from 1 since the step began in its direction.
    pub nth: usize,
    /// `service:Action`.
    pub action: String,
    /// How it goes wrong.
    pub way: &'static str,
    pub kind: FaultKind,
}

/// The calls of each step in one direction, in their order.
pub type Calls = BTreeMap<String, Vec<String>>;

/// Emulator and strict layer without delays, and the SDK's files that lead there.
pub async fn account(folder: &Path, lanes: usize) -> (MiniStack, Strict) {
    let emulator = MiniStack::start(folder).await.expect("the emulator starts");
    let ca = TestCa::new().unwrap();
    let strict = Strict::start(Config {
        upstream: emulator.endpoint().to_owned(),
        account: ACCOUNT.to_owned(),
        region: REGION.to_owned(),
        insync_delay: Duration::ZERO,
        cluster_delay: Duration::ZERO,
        nodegroup_delay: Duration::ZERO,
        addon_delay: Duration::ZERO,
        green: GreenEndpoint {
            url: "https://127.0.0.1:1".into(),
            ca_pem: ca.pem().to_owned(),
        },
        ca,
    })
    .await
    .unwrap();
    let (mut config, mut credentials) = (String::new(), String::new());
    let mut profile = |name: &str, key: &str| {
        config.push_str(&format!(
            "[profile {name}]\nregion = {REGION}\nendpoint_url = {}\n",
            strict.endpoint()
        ));
        credentials.push_str(&format!(
            "[{name}]\naws_access_key_id = {key}\naws_secret_access_key = test\n"
        ));
    };
    profile("admin", "test");
    for n in 0..lanes {
        profile(&format!("lane-{n}"), &key(n));
    }
    std::fs::write(folder.join("config"), config).unwrap();
    std::fs::write(folder.join("credentials"), credentials).unwrap();
    std::fs::write(folder.join("kubeconfig"), KUBECONFIG).unwrap();
    (emulator, strict)
}

fn key(lane: usize) -> String {
    format!("AKIALANE{lane:04}")
}

/// Who made what was there before.
pub struct Admin {
    pub ec2: aws_sdk_ec2::Client,
    pub iam: aws_sdk_iam::Client,
    pub eks: aws_sdk_eks::Client,
}

impl Admin {
    pub async fn new() -> Admin {
        let config = aws_config::defaults(aws_config::BehaviorVersion::v2026_01_12())
            .profile_name("admin")
            .load()
            .await;
        Admin {
            ec2: aws_sdk_ec2::Client::new(&config),
            iam: aws_sdk_iam::Client::new(&config),
            eks: aws_sdk_eks::Client::new(&config),
        }
    }

    /// The account as the admin's key sees it.
    pub fn cloud(&self, folder: &Path, spec: &Spec) -> Arc<dyn Cloud> {
        let mut spec = spec.clone();
        spec.aws.profile = Some("admin".into());
        live::connect(&spec, folder).unwrap().cloud
    }

    async fn vpc(&self, lane: usize, cluster: &str) -> (String, Vec<String>, String) {
        let tags = |kind: ResourceType, name: &str| {
            TagSpecification::builder()
                .resource_type(kind)
                .tags(Tag::builder().key("Name").value(name).build())
                .tags(
                    Tag::builder()
                        .key("KubernetesCluster")
                        .value(cluster)
                        .build(),
                )
                .build()
        };
        let made = self
            .ec2
            .create_vpc()
            .cidr_block(format!("10.{}.0.0/16", 10 + lane))
            .tag_specifications(tags(ResourceType::Vpc, cluster))
            .send()
            .await
            .unwrap();
        let vpc = made.vpc.and_then(|v| v.vpc_id).unwrap();
        let mut subnets = vec![];
        for (i, zone) in ["a", "b"].iter().enumerate() {
            let made = self
                .ec2
                .create_subnet()
                .vpc_id(&vpc)
                .cidr_block(format!("10.{}.{}.0/24", 10 + lane, i))
                .availability_zone(format!("{REGION}{zone}"))
                .tag_specifications(tags(ResourceType::Subnet, &format!("{zone}.{cluster}")))
                .send()
                .await
                .unwrap();
            subnets.push(made.subnet.and_then(|s| s.subnet_id).unwrap());
        }
        let group = self
            .ec2
            .create_security_group()
            .group_name(format!("database-{lane}"))
            .description("of the company")
            .vpc_id(&vpc)
            .send()
            .await
            .unwrap();
        (vpc, subnets, group.group_id.unwrap())
    }

    /// A role of the company, with a statement of its own.
    async fn role(&self, name: &str) {
        let trust = json!({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]});
        self.iam
            .create_role()
            .role_name(name)
            .assume_role_policy_document(trust.to_string())
            .send()
            .await
            .unwrap();
    }
}

/// One company in its own VPC, with its own access key.
pub struct Lane {
    strict: Strict,
    pub key: String,
    pub green: String,
    spec: Spec,
    pub plan: Arc<Plan>,
    pub world: World,
    pub journal: Arc<Journal>,
    /// As it was before anything was made.
    pub account: Inventory,
    pub subnets: Vec<String>,
}

impl Lane {
    pub async fn new(
        admin: &Admin,
        strict: &Strict,
        folder: &Path,
        n: usize,
        protected: bool,
    ) -> Lane {
        let green = format!("lane-{n}");
        let cluster = format!("{green}.example.com");
        let (vpc, subnets, database) = admin.vpc(n, &cluster).await;
        let mailer = format!("{green}-mailer");
        admin.role(&mailer).await;
        let spec: Spec = serde_json::from_value(json!({
            "apiVersion": "crossfade.dev/v1alpha1", "kind": "Migration", "name": green,
            "blue": {"cluster": cluster, "kubeconfig": "kubeconfig", "context": "blue"},
            "green": {"name": green, "version": "1.35", "subnets": subnets, "controlPlane": {"deletionProtection": protected}},
            "aws": {"account": ACCOUNT, "region": REGION, "profile": green},
        }))
        .unwrap();
        let world = live::connect(&spec, folder).unwrap();
        let account = {
            let cloud = admin.cloud(folder, &spec);
            cloud.inventory(&cluster).await.unwrap()
        };
        let mut snapshot = Snapshot {
            aws: Some(account.clone()),
            ..Snapshot::default()
        };
        snapshot.kops.cluster = Some(
            json!({"apiVersion": "kops.k8s.io/v1alpha2", "kind": "Cluster", "metadata": {"name": cluster},
            "spec": {"kubernetesVersion": "v1.26.0", "networkCIDR": format!("10.{}.0.0/16", 10 + n), "networkID": vpc, "networking": {"cni": {}},
                "subnets": subnets.iter().enumerate().map(|(i, s)| json!({"id": s, "name": format!("s{i}"), "type": "Public",
                    "cidr": format!("10.{}.{i}.0/24", 10 + n), "zone": format!("{REGION}{}", ["a", "b"][i])})).collect::<Vec<_>>()}}),
        );
        snapshot.kops.instance_groups = vec![
            json!({"apiVersion": "kops.k8s.io/v1alpha2", "kind": "InstanceGroup", "metadata": {"name": "nodes"},
            "spec": {"role": "Node", "machineType": "t3.medium", "minSize": 1, "maxSize": 2, "subnets": ["s0", "s1"]}}),
        ];
        let plan = compact(
            crossfade::plan::plan(&spec, &snapshot),
            &green,
            &mailer,
            &database,
        );
        // Green's own API server is the twin's, and lets the caller in as soon as the entry is there.
        let mut standing = snapshot.clone();
        standing.aws.as_mut().unwrap().clusters = vec![EksCluster {
            name: green.clone(),
            version: "1.35".into(),
            node_groups: vec![],
            addons: vec![],
            access_entries: vec![],
            tags: BTreeMap::new(),
            parts: None,
        }];
        let twin = Twin::new(&standing, &spec, twin::Options::default());
        Lane {
            strict: strict.clone(),
            key: key(n),
            green,
            spec,
            plan: Arc::new(plan),
            world: World {
                cloud: world.cloud,
                clock: world.clock,
                ..twin.world()
            },
            journal: Arc::new(Journal::memory()),
            account,
            subnets,
        }
    }

    pub fn engine(&self) -> Engine {
        self.engine_with(silent())
    }

    fn engine_with(&self, events: Events) -> Engine {
        Engine::new(
            self.world.clone(),
            self.plan.clone(),
            self.journal.clone(),
            crossfade::step::registry(),
            events,
        )
        .options(Options {
            check_drift: false,
            // One after the other: the n-th call is the same call in every run.
            parallel: 1,
            backoff: Duration::from_millis(4),
            ..Options::default()
        })
    }

    /// One way there and back, with at most one fault in each step of each direction.
    pub async fn case(&mut self, there: Vec<Row>, back: Vec<Row>) -> Result<(), String> {
        self.begin();
        let at_once = there.iter().any(|r| r.way == BACK_AT_ONCE);
        let forward = self.go(there, "migrated", async |engine: &Engine| {
            engine.forward(None).await.map_err(|e| e.to_string())
        });
        forward
            .await
            .map_err(|e| format!("on the way there: {e}"))?;
        if !at_once {
            self.is_complete().await?;
        }
        let home = self.go(back, "restored", async |engine: &Engine| {
            engine.rollback(None).await.map_err(|e| e.to_string())
        });
        home.await.map_err(|e| format!("on the way back: {e}"))?;
        self.is_clean().await
    }

    /// The calls of an undisturbed way there and back, by step. Steps run one after the other.
    pub async fn undisturbed(&mut self) -> (Calls, Calls) {
        self.begin();
        let there = self.recorded(async |engine: &Engine| engine.forward(None).await.unwrap());
        let there = there.await;
        self.is_complete().await.unwrap();
        let back = self.recorded(async |engine: &Engine| engine.rollback(None).await.unwrap());
        let back = back.await;
        self.is_clean().await.unwrap();
        (there, back)
    }

    async fn recorded(&self, run: impl AsyncFn(&Engine) -> Outcome) -> Calls {
        let marks: Arc<Mutex<Vec<(usize, String)>>> = Arc::default();
        let (strict, seen) = (self.strict.clone(), marks.clone());
        // Every process proves where it is before its first step.
        marks
            .lock()
            .unwrap()
            .push((strict.calls().len(), START.into()));
        let engine = self.engine_with(Arc::new(move |event: &Event| {
            if let EventKind::StepStarted { step, .. } | EventKind::UndoStarted { step, .. } =
                &event.kind
            {
                seen.lock()
                    .unwrap()
                    .push((strict.calls().len(), step.clone()));
            }
        }));
        let outcome = run(&engine).await;
        assert!(
            ["migrated", "restored"].contains(&outcome.name()),
            "{outcome:?}"
        );
        let calls = self.strict.calls();
        let marks = marks.lock().unwrap().clone();
        let ends = marks.iter().skip(1).map(|(at, _)| *at).chain([calls.len()]);
        marks
            .iter()
            .zip(ends)
            .map(|((from, step), to)| {
                let own = calls[*from..to].iter().filter(|c| c.who == self.key);
                let own = own.map(|c| format!("{}:{}", c.service, c.action)).collect();
                (step.clone(), own)
            })
            .collect()
    }

    /// Another run, from the beginning.
    pub fn begin(&mut self) {
        self.journal = Arc::new(Journal::memory());
    }

    /// Runs to the end, with one fault in each step that has a row; what a stop or a kill leaves is taken up by the next process.
    async fn go(
        &mut self,
        rows: Vec<Row>,
        good: &str,
        run: impl AsyncFn(&Engine) -> Result<Outcome, String>,
    ) -> Result<(), String> {
        self.strict.met(&self.key);
        let killing = rows.iter().any(|r| r.kind == FaultKind::NoAnswer);
        let at_once = rows.iter().any(|r| r.way == BACK_AT_ONCE);
        let wanted = rows.len();
        // A step's fault is set when the step begins: so its n-th call is the same call in every run.
        let waiting: BTreeMap<String, Row> =
            rows.into_iter().map(|r| (r.step.clone(), r)).collect();
        let waiting = Arc::new(Mutex::new(waiting));
        let set: Arc<Mutex<Vec<Row>>> = Arc::default();
        let events: Events = {
            let (strict, key) = (self.strict.clone(), self.key.clone());
            let (waiting, set) = (waiting.clone(), set.clone());
            Arc::new(move |event: &Event| {
                let (EventKind::StepStarted { step, .. } | EventKind::UndoStarted { step, .. }) =
                    &event.kind
                else {
                    return;
                };
                strict.clear_faults_of(&key);
                if let Some(row) = waiting.lock().unwrap().remove(step) {
                    strict.inject(Fault::new("*", "*", row.kind).of(&key).nth(row.nth));
                    set.lock().unwrap().push(row);
                }
            })
        };
        if let Some(row) = waiting.lock().unwrap().remove(START) {
            let fault = Fault::new("*", "*", row.kind).of(&self.key).nth(row.nth);
            self.strict.inject(fault);
            set.lock().unwrap().push(row);
        }
        let mut met: Vec<Met> = vec![];
        for _ in 0..wanted + 3 {
            let engine = self.engine_with(events.clone());
            // A fault costs milliseconds here: whoever waits a minute waits for what never comes.
            let outcome = tokio::select! {
                outcome = run(&engine) => outcome,
                struck = self.struck(), if killing => {
                    met.extend(struck);
                    // The engine and all that it had under way are gone at this moment.
                    Err("killed".into())
                }
                () = tokio::time::sleep(Duration::from_secs(60)) => {
                    let entries = self.journal.entries();
                    let last: Vec<String> = entries.iter().rev().take(4).map(|e| format!("{:?}", e.record)).collect();
                    Err(format!("a minute later it still waits: {last:#?}"))
                }
            };
            drop(engine);
            // The next process reads the journal anew.
            let entries = self.journal.entries();
            self.journal = Arc::new(Journal::restart(entries).map_err(|e| e.to_string())?);
            met.extend(self.strict.met(&self.key));
            let done = match outcome {
                Ok(o) if o.name() == good => true,
                Err(why) if why == "killed" => at_once,
                other => return Err(format!("{other:?} after {:?}", set.lock().unwrap().last())),
            };
            if done {
                self.strict.clear_faults_of(&self.key);
                let set = set.lock().unwrap();
                let planned: Vec<&str> = set.iter().map(|r| r.action.as_str()).collect();
                let struck: Vec<String> = met
                    .iter()
                    .map(|m| format!("{}:{}", m.service, m.action))
                    .collect();
                if planned != struck || set.len() != wanted {
                    return Err(format!(
                        "{wanted} faults were meant, {planned:?} were set, {struck:?} struck"
                    ));
                }
                return Ok(());
            }
        }
        Err("it never came to an end".into())
    }

    /// Waits until a fault strikes.
    async fn struck(&self) -> Vec<Met> {
        loop {
            let met = self.strict.met(&self.key);
            if !met.is_empty() {
                return met;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// What the journal says was made, placeholders filled in.
    pub fn made(&self) -> Result<Vec<(String, Status, Resource)>, String> {
        let mut out = vec![];
        for (id, step) in &self.journal.state().steps {
            let Some(before) = &step.before else { continue };
            if before["existed"] != json!(false) {
                return Err(format!("{id} is taken for somebody's"));
            }
            let resource = serde_json::from_value(before["resource"].clone());
            out.push((
                id.clone(),
                step.status,
                resource.map_err(|e| e.to_string())?,
            ));
        }
        Ok(out)
    }

    /// Every step is done, and every thing is there as it was asked for, with this run's tag.
    pub async fn is_complete(&self) -> Result<(), String> {
        let made = self.made()?;
        if made.len() != self.plan.steps.len() {
            return Err(format!(
                "{} of {} steps were begun",
                made.len(),
                self.plan.steps.len()
            ));
        }
        let run = self.journal.state().run.map(|r| r.run);
        for (step, status, resource) in &made {
            if *status != Status::Done {
                return Err(format!("{step} is {status:?}"));
            }
            let found = self.world.cloud.find(resource).await;
            match found.map_err(|e| e.to_string())? {
                Some(f)
                    if f.status == There::Ready && f.equal && (f.run.is_none() || f.run == run) => {
                }
                other => return Err(format!("{} is {other:?}", resource.id())),
            }
        }
        Ok(())
    }

    /// Nothing of it is there, and the journal knows.
    pub async fn is_clean(&self) -> Result<(), String> {
        if !self.journal.state().is_clean() {
            return Err("the journal is not clean".into());
        }
        for (_, _, resource) in self.made()? {
            match self.world.cloud.find(&resource).await {
                Ok(None) => {}
                other => return Err(format!("{} is still there: {other:?}", resource.id())),
            }
        }
        Ok(())
    }

    /// The account now, read with the admin's key.
    pub async fn account_now(&self, admin: &Admin, folder: &Path) -> Inventory {
        let cloud = admin.cloud(folder, &self.spec);
        cloud.inventory(&self.spec.blue.cluster).await.unwrap()
    }
}

/// One of each kind of thing, so that the table stays small: what a second add-on or role does is what the first one does.
fn compact(mut plan: Plan, green: &str, mailer: &str, database: &str) -> Plan {
    plan.steps.retain(|s| s.kind == "cloud.ensure");
    let mut addons = 0;
    plan.steps
        .retain(|s| match s.params["resource"]["type"].as_str() {
            Some("addon") => {
                addons += 1;
                s.params["resource"]["name"] == "vpc-cni"
            }
            Some("role") => {
                let name = s.params["resource"]["name"].as_str().unwrap_or("");
                ["cluster", "node", "vpc-cni"]
                    .iter()
                    .any(|r| name.ends_with(r))
            }
            _ => true,
        });
    assert!(addons > 1, "a plan has add-ons");
    let step = |id: &str, needs: &str, resource: Value, steps: &[StepSpec]| {
        let needed = steps.iter().find(|s| s.id.starts_with(needs));
        let needed = needed.unwrap_or_else(|| panic!("no step {needs}"));
        StepSpec {
            id: id.into(),
            needs: vec![needed.id.clone()],
            summary: id.into(),
            params: json!({ "resource": resource }),
            ..needed.clone()
        }
    };
    let statement = step(
        "provision/trust-statement",
        "provision/oidc-provider/",
        json!({"type": "trust-statement", "role": mailer, "sid": format!("Crossfade{}", green.replace('-', "")), "statement":
            {"Effect": "Allow", "Principal": {"Federated": "arn:aws:iam::${account}:oidc-provider/${cluster.issuer}"}, "Action": "sts:AssumeRoleWithWebIdentity"}}),
        &plan.steps,
    );
    let rule = step(
        "provision/security-group-rule",
        "provision/cluster/",
        json!({"type": "security-group-rule", "group": database, "protocol": "tcp", "fromPort": 5432, "toPort": 5432,
            "sourceGroup": "${cluster.security_group}", "description": format!("crossfade {green}")}),
        &plan.steps,
    );
    plan.steps.extend([statement, rule]);
    let ids: BTreeSet<String> = plan.steps.iter().map(|s| s.id.clone()).collect();
    for s in &mut plan.steps {
        s.needs.retain(|n| ids.contains(n));
    }
    plan.digest = crossfade::plan::digest_of(&plan);
    plan
}

const KUBECONFIG: &str = "apiVersion: v1
kind: Config
clusters:
- name: blue
  cluster: {server: 'https://127.0.0.1:1'}
contexts:
- name: blue
  context: {cluster: blue, user: ops}
current-context: blue
users:
- name: ops
  user: {token: not-a-token}
";
