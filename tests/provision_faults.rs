//! Every call of a provision and of its undo, with every way in which a call can go wrong: throttled, HTTP 500, the answer lost after
//! it took effect, the process killed right after it took effect. Each ends complete after a resume, and clean after a rollback.
//!
//! The table is made from the call log of an undisturbed run on the strict AWS layer, so no call is left out. Several lanes work at
//! once, each in its own VPC, with its own access key (faults are for one key), its own names and its own journal. "Killed" is the
//! engine dropped at that call, with nothing written after it; the next process reads the journal anew.
//!
//! The SDK reads its endpoint from a configuration file whose place is in the environment: the inner test runs in a process of its own.

use aws_sdk_ec2::types::{ResourceType, Tag, TagSpecification};
use crossfade::engine::{Engine, Options, Outcome, silent};
use crossfade::journal::{Journal, Status};
use crossfade::plan::model::{Plan, StepSpec};
use crossfade::snapshot::model::Snapshot;
use crossfade::spec::model::Spec;
use crossfade::world::cloud::{Cloud, EksCluster, Inventory, Resource, Status as There, left};
use crossfade::world::twin::{self, Twin};
use crossfade::world::{World, live};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use testkit::TestCa;
use testkit::servers::ministack::{ACCOUNT, MiniStack, REGION};
use testkit::strict::{Config, Fault, FaultKind, GreenEndpoint, Strict};

/// Names the folder of the inner test.
const FOLDER: &str = "CROSSFADE_TEST_FOLDER";
/// Works on the table at the same time.
const LANES: usize = 6;

/// Killed on the way there, and taken back without going on first.
const BACK_AT_ONCE: &str = "killed after it, then back at once";
/// The ways in which a call goes wrong; the last one only on the way there.
const WAYS: [(&str, FaultKind); 5] = [
    ("throttled", FaultKind::Throttle),
    ("500", FaultKind::Error500),
    ("reply lost", FaultKind::LostReply),
    ("killed after it", FaultKind::NoAnswer),
    (BACK_AT_ONCE, FaultKind::NoAnswer),
];

#[tokio::test]
async fn every_call_of_provision_and_undo_may_fail_in_every_way() {
    let dir = tempfile::tempdir().unwrap();
    let outcome = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "the_table", "--nocapture"])
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

/// One call of the table.
#[derive(Clone, Debug)]
struct Row {
    /// Counted from 1 in its direction.
    nth: usize,
    action: String,
    way: &'static str,
    kind: FaultKind,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "run by the test above, in a process with an AWS configuration of its own"]
async fn the_table() {
    let folder = std::env::var(FOLDER).expect("started by the outer test");
    let folder = Path::new(&folder);
    let (_emulator, strict) = account(folder).await;
    let admin = Admin::new().await;
    let mut lanes = vec![];
    for n in 0..LANES {
        lanes.push(Lane::new(&admin, &strict, folder, n).await);
    }

    // The undisturbed run says which calls there are.
    let first = &mut lanes[0];
    let before = strict.calls().len();
    first.there(None).await.unwrap();
    let middle = strict.calls().len();
    first.is_complete().await.unwrap();
    let after = strict.calls().len();
    first.back(None).await.unwrap();
    let calls = strict.calls();
    let of_lane = |from: usize, to: usize| -> Vec<String> {
        let own = calls[from..to].iter().filter(|c| c.who == first.key);
        own.map(|c| format!("{}:{}", c.service, c.action)).collect()
    };
    let (there, back) = (of_lane(before, middle), of_lane(after, calls.len()));
    first.is_clean().await.unwrap();
    let table = |actions: &[String], ways: &[(&'static str, FaultKind)]| -> Vec<Row> {
        let mut rows = vec![];
        for (way, kind) in ways.iter().copied() {
            for (i, action) in actions.iter().enumerate() {
                rows.push(Row {
                    nth: i + 1,
                    action: action.clone(),
                    way,
                    kind,
                });
            }
        }
        rows
    };
    let (there_rows, back_rows) = (table(&there, &WAYS), table(&back, &WAYS[..4]));
    let size = there_rows.len() + back_rows.len();
    for changing in [
        "iam:CreateRole",
        "eks:CreateCluster",
        "eks:CreateNodegroup",
        "eks:CreateAddon",
        "eks:CreateAccessEntry",
        "iam:CreateOpenIDConnectProvider",
        "iam:UpdateAssumeRolePolicy",
        "ec2:CreateLaunchTemplate",
        "ec2:AuthorizeSecurityGroupIngress",
        "ec2:CreateTags",
    ] {
        assert!(
            there.iter().any(|a| a == changing),
            "{changing} is not in the table: {there:?}"
        );
    }

    // One way there and back serves two rows: a fault on the way there, another on the way back.
    let (at_once, there_rows): (Vec<Row>, Vec<Row>) =
        there_rows.into_iter().partition(|r| r.way == BACK_AT_ONCE);
    let pairs = there_rows.len().max(back_rows.len());
    let mut queue: VecDeque<(Option<Row>, Option<Row>)> = (0..pairs)
        .map(|i| (there_rows.get(i).cloned(), back_rows.get(i).cloned()))
        .collect();
    queue.extend(at_once.into_iter().map(|r| (Some(r), None)));
    let cases = queue.len();
    let queue = Arc::new(Mutex::new(queue));
    let wrong = Arc::new(Mutex::new(Vec::<String>::new()));
    let started = Instant::now();
    let work = lanes.into_iter().map(|mut lane| {
        let (queue, wrong) = (queue.clone(), wrong.clone());
        async move {
            loop {
                let next = queue.lock().unwrap().pop_front();
                let Some((there, back)) = next else { break };
                let case = format!("{there:?} {back:?}");
                if let Err(why) = lane.case(there, back).await {
                    wrong
                        .lock()
                        .unwrap()
                        .push(format!("{}: {case}\n    {why}", lane.green));
                    // What is left of this case would fail the next ones.
                    break;
                }
            }
            lane
        }
    });
    let lanes = futures::future::join_all(work).await;
    let wrong = std::mem::take(&mut *wrong.lock().unwrap());
    println!(
        "{size} rows ({} calls there, {} back, {} and 4 ways) in {cases} runs, {:.0} s",
        there.len(),
        back.len(),
        WAYS.len(),
        started.elapsed().as_secs_f32()
    );
    assert!(
        wrong.is_empty(),
        "{} of {cases} runs went wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(queue.lock().unwrap().is_empty(), "rows were left out");
    for lane in &lanes {
        let now = lane.inventory(&admin.cloud(folder, &lane.spec)).await;
        assert_eq!(
            left::diff(&lane.account, &now),
            Vec::<String>::new(),
            "{}",
            lane.green
        );
    }
}

/// Emulator and strict layer without delays, and the SDK's files that lead there.
async fn account(folder: &Path) -> (MiniStack, Strict) {
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
    for n in 0..LANES {
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
struct Admin {
    ec2: aws_sdk_ec2::Client,
    iam: aws_sdk_iam::Client,
}

impl Admin {
    async fn new() -> Admin {
        let config = aws_config::defaults(aws_config::BehaviorVersion::v2026_01_12())
            .profile_name("admin")
            .load()
            .await;
        Admin {
            ec2: aws_sdk_ec2::Client::new(&config),
            iam: aws_sdk_iam::Client::new(&config),
        }
    }

    /// The account as the admin's key sees it.
    fn cloud(&self, folder: &Path, spec: &Spec) -> Arc<dyn Cloud> {
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
            .description("of the company's database")
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
struct Lane {
    strict: Strict,
    key: String,
    green: String,
    spec: Spec,
    plan: Arc<Plan>,
    world: World,
    journal: Arc<Journal>,
    /// As it was before anything was made.
    account: Inventory,
}

impl Lane {
    async fn new(admin: &Admin, strict: &Strict, folder: &Path, n: usize) -> Lane {
        let green = format!("lane-{n}");
        let cluster = format!("{green}.example.com");
        let (vpc, subnets, database) = admin.vpc(n, &cluster).await;
        let mailer = format!("{green}-mailer");
        admin.role(&mailer).await;
        let spec: Spec = serde_json::from_value(json!({
            "apiVersion": "crossfade.dev/v1alpha1", "kind": "Migration", "name": green,
            "blue": {"cluster": cluster, "kubeconfig": "kubeconfig", "context": "blue"},
            "green": {"name": green, "version": "1.35", "subnets": subnets},
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
        }
    }

    fn engine(&self) -> Engine {
        Engine::new(
            self.world.clone(),
            self.plan.clone(),
            self.journal.clone(),
            crossfade::step::registry(),
            silent(),
        )
        .options(Options {
            check_drift: false,
            // One after the other: the n-th call is the same call in every run.
            parallel: 1,
            backoff: Duration::from_millis(4),
            ..Options::default()
        })
    }

    /// What a row does, from its first call to the end of the direction.
    async fn case(&mut self, there: Option<Row>, back: Option<Row>) -> Result<(), String> {
        self.journal = Arc::new(Journal::memory());
        let at_once = there.as_ref().is_some_and(|r| r.way == BACK_AT_ONCE);
        self.there(there)
            .await
            .map_err(|e| format!("on the way there: {e}"))?;
        if !at_once {
            self.is_complete().await?;
        }
        self.back(back)
            .await
            .map_err(|e| format!("on the way back: {e}"))?;
        self.is_clean().await
    }

    async fn there(&mut self, row: Option<Row>) -> Result<(), String> {
        self.go(row, "migrated", async |engine: &Engine| {
            engine.forward(None).await.map_err(|e| e.to_string())
        })
        .await
    }

    async fn back(&mut self, row: Option<Row>) -> Result<(), String> {
        self.go(row, "restored", async |engine: &Engine| {
            engine.rollback(None).await.map_err(|e| e.to_string())
        })
        .await
    }

    /// Runs to the end, with a fault on the way; what a stop leaves is taken up by the next process.
    async fn go(
        &mut self,
        row: Option<Row>,
        good: &str,
        run: impl AsyncFn(&Engine) -> Result<Outcome, String>,
    ) -> Result<(), String> {
        self.strict.met(&self.key);
        if let Some(row) = &row {
            let fault = Fault::new("*", "*", row.kind).of(&self.key).nth(row.nth);
            self.strict.inject(fault);
        }
        let killed = row.as_ref().is_some_and(|r| r.kind == FaultKind::NoAnswer);
        let mut met = vec![];
        let mut said = String::new();
        for _ in 0..3 {
            let engine = self.engine();
            let outcome = if killed && met.is_empty() {
                tokio::select! {
                    outcome = run(&engine) => outcome,
                    struck = self.struck() => {
                        met = struck;
                        // The engine and all that it had under way are gone at this moment.
                        Err("killed".into())
                    }
                }
            } else {
                run(&engine).await
            };
            drop(engine);
            // The next process reads the journal anew.
            let entries = self.journal.entries();
            self.journal = Arc::new(Journal::restart(entries).map_err(|e| e.to_string())?);
            met.extend(self.strict.met(&self.key));
            let at_once = row.as_ref().is_some_and(|r| r.way == BACK_AT_ONCE) && !met.is_empty();
            match outcome {
                Err(why) if at_once && why == "killed" => {
                    self.strict.clear_faults_of(&self.key);
                    return Ok(());
                }
                Ok(o) if o.name() == good => {
                    self.strict.clear_faults_of(&self.key);
                    return match (&row, met.first()) {
                        (Some(row), None) => {
                            Err(format!("call {} was never made: {row:?}", row.nth))
                        }
                        (Some(row), Some(m))
                            if format!("{}:{}", m.service, m.action) != row.action =>
                        {
                            Err(format!(
                                "{row:?} met {m:?}: the calls are not the same in every run"
                            ))
                        }
                        _ => Ok(()),
                    };
                }
                other => said = format!("{other:?}"),
            }
        }
        Err(said)
    }

    /// Waits until the fault strikes.
    async fn struck(&self) -> Vec<testkit::strict::Met> {
        loop {
            let met = self.strict.met(&self.key);
            if !met.is_empty() {
                return met;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// What the journal says was made, placeholders filled in.
    fn made(&self) -> Result<Vec<(String, Status, Resource)>, String> {
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
    async fn is_complete(&self) -> Result<(), String> {
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
    async fn is_clean(&self) -> Result<(), String> {
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

    async fn inventory(&self, cloud: &Arc<dyn Cloud>) -> Inventory {
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
