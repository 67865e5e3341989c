//! What a run may do, and what happens when it may not: the printed policy against everything that a provision and its undo need; an explicit
//! deny for each of these actions in turn; an exhausted quota; a name that somebody else took; another account.
//!
//! The AWS SDK takes its endpoint from the environment, so each lane is a process of its own in front of a strict layer of its own (all on one
//! emulator); it asks the outer process to deny and to allow.

use crossfade::engine::{Engine, Options, Outcome, silent};
use crossfade::error::Kind;
use crossfade::journal::Journal;
use crossfade::plan::model::{Phase, Plan, Promise, StepSpec};
use crossfade::policy::{self, Verb};
use crossfade::snapshot::model::Snapshot;
use crossfade::spec::model::Spec;
use crossfade::world::cloud::{Cloud, EksCluster, Resource};
use crossfade::world::twin::{self, Twin};
use crossfade::world::{World, live, observe};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use testkit::TestCa;
use testkit::servers::ministack::{ACCOUNT, MiniStack, REGION};
use testkit::strict::{Config, GreenEndpoint, Strict};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Names the folder of a lane.
const FOLDER: &str = "CROSSFADE_TEST_FOLDER";
/// Number of the lane.
const LANE: &str = "CROSSFADE_TEST_LANE";
/// Where the outer process listens.
const CONTROL: &str = "CROSSFADE_TEST_CONTROL";
/// Actions to deny, by commas.
const ACTIONS: &str = "CROSSFADE_TEST_ACTIONS";
/// Long enough to be seen as CREATING, short enough to wait for.
const DELAY: Duration = Duration::from_millis(100);
/// Lanes at once.
const LANES: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn a_run_needs_what_crossfade_policy_prints_and_each_denial_is_told_and_taken_back() {
    let dir = tempfile::tempdir().unwrap();
    let emulator = MiniStack::start(dir.path())
        .await
        .expect("the emulator starts");
    let ca = TestCa::new().unwrap();
    // First: what is needed at all, that it is what is printed, and that exactly this is enough.
    let used = dir.path().join("0");
    lane(
        &emulator,
        &ca,
        used.clone(),
        0,
        "measured_against_the_table",
        "",
    )
    .await;
    let read = |name: &str| -> Vec<String> {
        serde_json::from_str(&std::fs::read_to_string(used.join(name)).unwrap()).unwrap()
    };
    let (run, discover) = (read("run.json"), read("discover.json"));
    assert!(
        run.len() > 35,
        "a whole provision and undo need many actions: {run:?}"
    );
    // Then every one of them denied, each in its turn, and what is not a denial.
    let mut lots: Vec<Vec<String>> = vec![vec![]; LANES];
    for (n, a) in run.iter().enumerate() {
        lots[n % LANES].push(a.clone());
    }
    let mut lanes: Vec<_> = lots
        .iter()
        .enumerate()
        .map(|(n, lot)| {
            let folder = dir.path().join(format!("{}", n + 1));
            lane(
                &emulator,
                &ca,
                folder,
                n + 1,
                "each_denied_in_turn",
                &lot.join(","),
            )
        })
        .map(|f| Box::pin(f) as std::pin::Pin<Box<dyn Future<Output = ()>>>)
        .collect();
    let folder = dir.path().join("discover");
    lanes.push(Box::pin(lane(
        &emulator,
        &ca,
        folder,
        LANES + 1,
        "discover_denied_in_turn",
        &discover.join(","),
    )));
    let folder = dir.path().join("others");
    lanes.push(Box::pin(lane(
        &emulator,
        &ca,
        folder,
        LANES + 2,
        "refused_for_other_reasons",
        "",
    )));
    futures::future::join_all(lanes).await;
}

/// Runs one inner test in front of a strict layer of its own.
async fn lane(
    emulator: &MiniStack,
    ca: &TestCa,
    folder: PathBuf,
    number: usize,
    test: &str,
    actions: &str,
) {
    std::fs::create_dir_all(&folder).unwrap();
    let strict = Strict::start(Config {
        upstream: emulator.endpoint().to_owned(),
        account: ACCOUNT.to_owned(),
        region: REGION.to_owned(),
        insync_delay: DELAY,
        cluster_delay: DELAY,
        nodegroup_delay: DELAY,
        addon_delay: DELAY,
        green: GreenEndpoint {
            url: "https://127.0.0.1:1".into(),
            ca_pem: ca.pem().to_owned(),
        },
        ca: ca.clone(),
    })
    .await
    .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let control = listener.local_addr().unwrap();
    let server = tokio::spawn(obey(listener, strict.clone()));
    let outcome = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", test, "--nocapture"])
        .env(FOLDER, &folder)
        .env(LANE, number.to_string())
        .env(CONTROL, control.to_string())
        .env(ACTIONS, actions)
        .env("AWS_ENDPOINT_URL", strict.endpoint())
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_REGION", REGION)
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env_remove("AWS_PROFILE")
        .env_remove("AWS_SESSION_TOKEN")
        .env_remove("AWS_CA_BUNDLE")
        .env_remove("HTTP_PROXY")
        .env_remove("HTTPS_PROXY")
        .status()
        .await
        .unwrap();
    server.abort();
    assert!(
        outcome.success(),
        "lane {number} ({test}, {actions}) failed, see above"
    );
}

/// Does what a lane asks of its strict layer, a line each.
async fn obey(listener: TcpListener, strict: Strict) {
    while let Ok((stream, _)) = listener.accept().await {
        let mut lines = BufReader::new(stream).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
            let answer = match word {
                "deny" => {
                    strict.deny(rest);
                    Value::Null
                }
                "allow" => {
                    strict.allow_all();
                    Value::Null
                }
                "enforce" => match strict.enforce(serde_json::from_str(rest).unwrap()) {
                    Ok(()) => Value::Null,
                    Err(e) => json!(e.to_string()),
                },
                "forget" => {
                    strict.forget_permissions();
                    Value::Null
                }
                "used" => json!(strict.permissions_used()),
                "quota" => {
                    let (code, value) = rest.split_once(' ').unwrap();
                    strict.quota(code, value.parse().unwrap());
                    Value::Null
                }
                "key" => json!(strict.make_key().await.unwrap()),
                "writes" => json!(strict.calls().iter().filter(|c| c.changed).count()),
                other => panic!("{other}"),
            };
            let text = format!("{answer}\n");
            if lines.get_mut().write_all(text.as_bytes()).await.is_err() {
                break;
            }
        }
    }
}

/// A lane's line to the outer process.
struct Layer(tokio::sync::Mutex<BufReader<TcpStream>>);

impl Layer {
    async fn connect() -> Layer {
        let address = std::env::var(CONTROL).expect("started by the outer test");
        Layer(tokio::sync::Mutex::new(BufReader::new(
            TcpStream::connect(address).await.unwrap(),
        )))
    }
    async fn ask(&self, line: &str) -> Value {
        let mut stream = self.0.lock().await;
        stream
            .get_mut()
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
        let mut answer = String::new();
        stream.read_line(&mut answer).await.unwrap();
        serde_json::from_str(&answer).unwrap()
    }
    /// Action to the ARNs that it was needed on.
    async fn used(&self) -> BTreeMap<String, BTreeSet<String>> {
        serde_json::from_value(self.ask("used").await).unwrap()
    }
}

/// A company with everything that a provision can make.
struct Company {
    layer: Layer,
    cluster: String,
    green: String,
    plan: Plan,
    cloud: Arc<dyn Cloud>,
    world: World,
    runs: AtomicU32,
    iam: aws_sdk_iam::Client,
}

impl Company {
    async fn new() -> Company {
        let layer = Layer::connect().await;
        let key = layer.ask("key").await;
        let folder = std::env::var(FOLDER).expect("started by the outer test");
        let lane = std::env::var(LANE).expect("started by the outer test");
        let folder = Path::new(&folder);
        std::fs::write(folder.join("kubeconfig"), KUBECONFIG).unwrap();
        let green = format!("denied-{lane}");
        let cluster = format!("{green}.example.com");
        let config = aws_config::load_defaults(aws_config::BehaviorVersion::v2026_01_12()).await;
        let ec2 = aws_sdk_ec2::Client::new(&config);
        let iam = aws_sdk_iam::Client::new(&config);
        let (subnets, blue_nodes, database) = network(&ec2, &cluster).await;
        let people = format!("{green}-people");
        let pods = format!("{green}-pods");
        for (name, principal) in [
            (
                &people,
                json!({"AWS": format!("arn:aws:iam::{ACCOUNT}:root")}),
            ),
            (&pods, json!({"Service": "ec2.amazonaws.com"})),
        ] {
            let trust = json!({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}]});
            iam.create_role()
                .role_name(name)
                .assume_role_policy_document(trust.to_string())
                .send()
                .await
                .unwrap();
        }
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/corpus/kops/launch-templates-spot-kops1.20.yaml");
        let mut snapshot = kops(&file, &cluster);
        let spec: Spec = serde_json::from_value(json!({
            "apiVersion": "crossfade.dev/v1alpha1", "kind": "Migration", "name": green,
            "blue": {"cluster": cluster, "kubeconfig": "kubeconfig", "context": "blue"},
            "green": {"name": green, "version": "1.35", "subnets": subnets, "access": [
                {"principal": format!("arn:aws:iam::{ACCOUNT}:role/{people}"), "policy": "AmazonEKSClusterAdminPolicy"},
            ], "controlPlane": {"logs": ["audit"], "logDays": 30, "secretsKey": key}, "identity": {"addons": "podIdentity"}},
            "aws": {"account": ACCOUNT, "region": REGION, "stateBucket": {"name": format!("{green}-records"), "create": true}},
        }))
        .unwrap();
        let live = live::connect(&spec, folder).unwrap();
        snapshot.aws = Some(live.cloud.inventory(&cluster).await.unwrap());
        let mut plan = crossfade::plan::plan(&spec, &snapshot);
        complete(&mut plan, &green, &pods, &blue_nodes, &database);
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
        // A green that lets the caller in as soon as the entry is there.
        let twin = Twin::new(&standing, &spec, twin::Options::default());
        Company {
            layer,
            cluster,
            green,
            plan,
            cloud: live.cloud.clone(),
            world: World {
                cloud: live.cloud,
                ..twin.world()
            },
            runs: AtomicU32::new(0),
            iam,
        }
    }

    /// An engine of a new run.
    fn engine(&self, plan: &Plan) -> (Engine, Arc<Journal>) {
        let journal = Arc::new(Journal::memory());
        let n = self.runs.fetch_add(1, Ordering::Relaxed);
        let engine = Engine::new(
            self.world.clone(),
            Arc::new(plan.clone()),
            journal.clone(),
            crossfade::step::registry(),
            silent(),
        )
        .options(Options {
            check_drift: false,
            run: Some(format!("{}-{n}", self.green)),
            stall: Some(Duration::from_secs(60)),
            ..Options::default()
        });
        (engine, journal)
    }

    async fn inventory(&self) -> Value {
        let mut inventory = self.cloud.inventory(&self.cluster).await.unwrap();
        for s in &mut inventory.subnets {
            s.free_ips = 0;
        }
        // Other lanes live in the same account.
        let ours = |name: &str| name.starts_with(&format!("{}-", self.green)) || name == self.green;
        inventory.roles.retain(|r| ours(&r.name));
        inventory.clusters.retain(|c| ours(&c.name));
        if let Some(t) = &mut inventory.launch_templates {
            t.retain(
                |t| matches!(&t.resource, Resource::LaunchTemplate { name, .. } if ours(name)),
            );
        }
        inventory.policies = None;
        inventory.oidc_providers.clear();
        serde_json::to_value(inventory).unwrap()
    }

    async fn back(&self, engine: &Engine, why: &str) {
        match engine.rollback(None).await {
            Ok(o) if o.name() == "restored" => {}
            other => panic!("{why}: {other:#?}"),
        }
    }

    fn documents(&self, verbs: &[Verb]) -> Vec<Value> {
        policy::needed(&self.plan, &verbs.iter().copied().collect())
            .documents
            .into_iter()
            .map(|d| d.policy)
            .collect()
    }
}

/// Only the cloud's steps, and those kinds of resources that this company's own plan would not have.
fn complete(plan: &mut Plan, green: &str, pods: &str, blue_nodes: &str, database: &str) {
    plan.steps
        .retain(|s| s.kind == "cloud.ensure" || s.kind == "access.assume");
    let cluster = format!("provision/cluster/{green}");
    let oidc = plan
        .steps
        .iter()
        .find(|s| s.id.starts_with("provision/oidc-provider/"))
        .expect("an issuer")
        .id
        .clone();
    let mut add = |resource: Resource, need: &str| {
        let id = format!("provision/{}", resource.id());
        if plan.steps.iter().any(|s| s.id == id) {
            return;
        }
        plan.steps.push(StepSpec {
            id,
            phase: Phase::Provision,
            kind: "cloud.ensure".into(),
            needs: vec![need.into()],
            promise: Promise::Exact,
            summary: "one more kind".into(),
            params: json!({"resource": resource}),
            expect_s: [1, 15],
        });
    };
    add(
        Resource::TrustStatement {
            role: pods.into(),
            sid: "CrossfadeDenied".into(),
            statement: json!({
                "Sid": "CrossfadeDenied", "Effect": "Allow", "Action": "sts:AssumeRoleWithWebIdentity",
                "Principal": {"Federated": "arn:aws:iam::${account}:oidc-provider/${cluster.issuer}"},
                "Condition": {"StringEquals": {"${cluster.issuer}:aud": "sts.amazonaws.com"}},
            }),
        },
        &oidc,
    );
    add(
        Resource::SecurityGroupRule {
            group: database.into(),
            protocol: "tcp".into(),
            from_port: 5432,
            to_port: 5432,
            source_group: blue_nodes.into(),
            description: format!("crossfade {green}"),
        },
        &cluster,
    );
    let ids: BTreeSet<String> = plan.steps.iter().map(|s| s.id.clone()).collect();
    for s in &mut plan.steps {
        s.needs.retain(|n| ids.contains(n));
    }
    plan.digest = crossfade::plan::digest_of(plan);
    let kinds: BTreeSet<String> = plan
        .steps
        .iter()
        .filter_map(|s| s.params["resource"]["type"].as_str().map(String::from))
        .collect();
    for kind in [
        "role",
        "oidc-provider",
        "cluster",
        "addon",
        "access-entry",
        "node-group",
        "launch-template",
        "security-group-rule",
        "tag",
        "trust-statement",
        "pod-identity-association",
        "log-group",
        "state-bucket",
    ] {
        assert!(kinds.contains(kind), "no {kind} in {kinds:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in the layer's environment"]
async fn measured_against_the_table() {
    let company = Company::new().await;
    let layer = &company.layer;
    let before = company.inventory().await;
    layer.ask("forget").await;
    company.inventory().await;
    let discover = layer.used().await;
    layer.ask("forget").await;
    let (engine, _) = company.engine(&company.plan);
    match engine.forward(None).await {
        Ok(o) if o.name() == "migrated" => {}
        other => panic!("{other:#?}"),
    }
    company.back(&engine, "without a denial").await;
    let run = layer.used().await;
    assert_eq!(
        observe::diff(&before, &company.inventory().await),
        Vec::<String>::new()
    );

    same_actions("discover", &company.documents(&[Verb::Discover]), &discover);
    same_actions(
        "run",
        &company.documents(&[Verb::Migrate, Verb::Rollback]),
        &run,
    );
    // Under exactly this, and nothing more, the same run passes, there and back.
    let documents = json!(company.documents(&Verb::ALL));
    assert_eq!(
        layer.ask(&format!("enforce {documents}")).await,
        Value::Null
    );
    company.inventory().await;
    let (engine, _) = company.engine(&company.plan);
    match engine.forward(None).await {
        Ok(o) if o.name() == "migrated" => {}
        other => panic!("under the printed policy: {other:#?}"),
    }
    company.back(&engine, "under the printed policy").await;
    // And it is a fence: what no step needs is refused.
    let e = company
        .cloud
        .delete(
            &serde_json::from_value(
                json!({"type": "role", "name": format!("{}-people", company.green), "trust": {},
            "managedPolicies": [], "inlinePolicies": {}}),
            )
            .unwrap(),
        )
        .await
        .expect_err("somebody else's role");
    assert!(
        e.message.contains("no identity-based policy allows"),
        "{e:?}"
    );
    layer.ask("allow").await;
    assert_eq!(
        observe::diff(&before, &company.inventory().await),
        Vec::<String>::new()
    );

    let folder = PathBuf::from(std::env::var(FOLDER).unwrap());
    let keep = |name: &str, used: &BTreeMap<String, BTreeSet<String>>| {
        let actions: Vec<&String> = used.keys().collect();
        std::fs::write(folder.join(name), serde_json::to_string(&actions).unwrap()).unwrap();
    };
    keep("run.json", &run);
    keep("discover.json", &discover);
}

/// The printed policy and what was needed name the same actions: none is missing, none is too many.
fn same_actions(what: &str, documents: &[Value], used: &BTreeMap<String, BTreeSet<String>>) {
    let printed: BTreeSet<&str> = documents
        .iter()
        .flat_map(|d| d["Statement"].as_array().unwrap())
        .flat_map(|s| match &s["Action"] {
            Value::String(a) => vec![a.as_str()],
            many => many
                .as_array()
                .unwrap()
                .iter()
                .filter_map(Value::as_str)
                .collect(),
        })
        .collect();
    let used: BTreeSet<&str> = used.keys().map(String::as_str).collect();
    let missing: Vec<&&str> = used.difference(&printed).collect();
    let unused: Vec<&&str> = printed
        .difference(&used)
        .filter(|a| {
            // Needs no right at all; zones are the twin's here, so Route 53 is not called.
            **a != "sts:GetCallerIdentity" && !a.starts_with("route53:")
        })
        .collect();
    assert!(
        missing.is_empty() && unused.is_empty(),
        "{what}: needed and not in the table: {missing:?}; in the table and not needed: {unused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in the layer's environment"]
async fn each_denied_in_turn() {
    let company = Company::new().await;
    let before = company.inventory().await;
    for action in std::env::var(ACTIONS)
        .unwrap()
        .split(',')
        .filter(|a| !a.is_empty())
    {
        company.layer.ask(&format!("deny {action}")).await;
        let (engine, journal) = company.engine(&company.plan);
        let there = engine.forward(None).await;
        let mut told = match &there {
            Ok(Outcome::Migrated { .. }) => false,
            Ok(stopped @ Outcome::Stopped { .. }) => {
                says(action, stopped);
                true
            }
            Err(e) => {
                assert_eq!(e.kind, Kind::Unreachable, "{action}: {e:?}");
                assert!(e.message.contains(action), "{action}: {e:?}");
                assert!(e.remedy.contains("crossfade policy"), "{action}: {e:?}");
                true
            }
            other => panic!("{action}: {other:#?}"),
        };
        if !told {
            // Only the way back needs it.
            match engine.rollback(None).await {
                Ok(stopped @ Outcome::Stopped { .. }) => {
                    says(action, &stopped);
                    told = true;
                }
                Ok(o) if o.name() == "stuck" => {
                    let text = format!("{o:?}");
                    assert!(
                        text.contains(action) && text.contains("crossfade policy"),
                        "{action}: {text}"
                    );
                    told = true;
                }
                other => panic!("{action}: {other:#?}"),
            }
        }
        assert!(
            told,
            "{action}: there and back without it, yet it was needed before"
        );
        company.layer.ask("allow").await;
        // Nothing was made that the journal does not know: what it knows is taken back, and nothing is left.
        if journal.state().run.is_some() {
            company.back(&engine, action).await;
        }
        let left = observe::diff(&before, &company.inventory().await);
        assert!(left.is_empty(), "{action}: {left:#?}");
    }
}

/// What, where, why, what next, and the exit code of "a server refused who we are".
fn says(action: &str, outcome: &Outcome) {
    let Outcome::Stopped {
        object,
        why,
        remedy,
        kind,
        ..
    } = outcome
    else {
        panic!("{action}: {outcome:?}");
    };
    assert!(!object.is_empty(), "{action}: {outcome:?}");
    assert!(why.contains(action), "{action}: the action is named: {why}");
    assert!(
        why.contains("arn:aws:")
            || why.contains("resource: *")
            || remedy.contains("arn:aws:")
            || remedy.contains(" on *"),
        "{action}: on what: {why}"
    );
    assert!(remedy.contains("crossfade policy"), "{action}: {remedy}");
    assert_eq!(kind.exit_code(), 69, "{action}: {outcome:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in the layer's environment"]
async fn discover_denied_in_turn() {
    let company = Company::new().await;
    for action in std::env::var(ACTIONS)
        .unwrap()
        .split(',')
        .filter(|a| !a.is_empty())
    {
        company.layer.ask(&format!("deny {action}")).await;
        // Either it cannot go on and says why, or it says what was not read: never "there is none".
        let text = match company.cloud.inventory(&company.cluster).await {
            Err(e) => {
                assert!(e.remedy.contains("crossfade policy"), "{action}: {e:?}");
                e.message
            }
            Ok(inventory) => format!("{:?}", inventory.not_read),
        };
        assert!(text.contains(action), "{action}: {text}");
        company.layer.ask("allow").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in the layer's environment"]
async fn refused_for_other_reasons() {
    let company = Company::new().await;
    let before = company.inventory().await;

    // Another account: nothing is written, not even the first step.
    let writes = company.layer.ask("writes").await;
    let mut other = company.plan.clone();
    other.basis.account = Some("999999999999".into());
    other.digest = crossfade::plan::digest_of(&other);
    let e = company
        .engine(&other)
        .0
        .forward(None)
        .await
        .expect_err("the wrong account");
    assert_eq!((e.kind, e.kind.exit_code()), (Kind::StalePlan, 4), "{e:?}");
    assert!(
        e.message.contains("999999999999") && e.message.contains(ACCOUNT),
        "{e:?}"
    );
    assert!(e.remedy.contains("profile"), "{e:?}");
    assert_eq!(company.layer.ask("writes").await, writes);

    // A name that somebody else took since the plan.
    let taken = company
        .plan
        .steps
        .iter()
        .find_map(|s| s.id.strip_prefix("provision/role/"))
        .expect("a role")
        .to_owned();
    let trust = json!({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}]});
    company
        .iam
        .create_role()
        .role_name(&taken)
        .assume_role_policy_document(trust.to_string())
        .send()
        .await
        .unwrap();
    let (engine, _) = company.engine(&company.plan);
    match engine.forward(None).await {
        Ok(Outcome::Stopped {
            object,
            why,
            remedy,
            ..
        }) => {
            assert!(object.contains(&taken), "{object}");
            assert!(why.contains("crossfade did not make it"), "{why}");
            assert!(remedy.contains("green.adopt"), "{remedy}");
        }
        other => panic!("{other:#?}"),
    }
    company.back(&engine, "a name that is taken").await;
    // Theirs it stays.
    company
        .iam
        .get_role()
        .role_name(&taken)
        .send()
        .await
        .expect("still there");
    company
        .iam
        .delete_role()
        .role_name(&taken)
        .send()
        .await
        .unwrap();
    assert_eq!(
        observe::diff(&before, &company.inventory().await),
        Vec::<String>::new()
    );

    // No cluster more in this account (Service Quotas L-1194D53C).
    company.layer.ask("quota L-1194D53C 0").await;
    let (engine, _) = company.engine(&company.plan);
    match engine.forward(None).await {
        Ok(Outcome::Stopped {
            object,
            why,
            remedy,
            ..
        }) => {
            assert_eq!(object, format!("cluster/{}", company.green));
            assert!(why.contains("ResourceLimitExceeded"), "{why}");
            assert!(remedy.to_lowercase().contains("quota"), "{remedy}");
        }
        other => panic!("{other:#?}"),
    }
    company.layer.ask("quota L-1194D53C 100").await;
    company.back(&engine, "an exhausted quota").await;
    assert_eq!(
        observe::diff(&before, &company.inventory().await),
        Vec::<String>::new()
    );
}

fn kops(file: &Path, cluster: &str) -> Snapshot {
    let text = std::fs::read_to_string(file)
        .unwrap()
        .replace("us-test-1", REGION)
        .replace("arn:aws-test:", "arn:aws:")
        .replace("launchtemplates.example.com", cluster);
    let mut snapshot = Snapshot::default();
    for part in text.split("\n---") {
        let Ok(doc) = serde_saphyr::from_str::<Value>(part) else {
            panic!("{}: {part}", file.display());
        };
        match doc["kind"].as_str() {
            Some("Cluster") => snapshot.kops.cluster = Some(doc),
            Some("InstanceGroup") => snapshot.kops.instance_groups.push(doc),
            _ => {}
        }
    }
    let doc = snapshot.kops.cluster.as_mut().expect("a cluster");
    doc["metadata"]["name"] = json!(cluster);
    snapshot
}

/// A VPC with two subnets, blue's nodes' group and a database's. Each lane has its own.
async fn network(ec2: &aws_sdk_ec2::Client, cluster: &str) -> (Vec<String>, String, String) {
    use aws_sdk_ec2::types::{ResourceType, Tag, TagSpecification};
    let tagged = |kind: ResourceType| {
        TagSpecification::builder()
            .resource_type(kind)
            .tags(
                Tag::builder()
                    .key("KubernetesCluster")
                    .value(cluster)
                    .build(),
            )
            .build()
    };
    let vpc = ec2
        .create_vpc()
        .cidr_block("10.0.0.0/16")
        .tag_specifications(tagged(ResourceType::Vpc))
        .send()
        .await
        .unwrap();
    let vpc = vpc.vpc.and_then(|v| v.vpc_id).unwrap();
    let mut subnets = vec![];
    for (n, zone) in ["a", "b"].iter().enumerate() {
        let s = ec2
            .create_subnet()
            .vpc_id(&vpc)
            .cidr_block(format!("10.0.{}.0/24", n + 1))
            .availability_zone(format!("{REGION}{zone}"))
            .tag_specifications(tagged(ResourceType::Subnet))
            .send()
            .await
            .unwrap();
        subnets.push(s.subnet.and_then(|s| s.subnet_id).unwrap());
    }
    let mut groups = vec![];
    for name in [format!("nodes.{cluster}"), format!("database.{cluster}")] {
        let g = ec2
            .create_security_group()
            .group_name(&name)
            .description("of the company itself")
            .vpc_id(&vpc)
            .send()
            .await
            .unwrap();
        groups.push(g.group_id.unwrap());
    }
    let database = groups.pop().unwrap();
    (subnets, groups.pop().unwrap(), database)
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
