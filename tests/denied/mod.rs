//! A company with everything that a provision can make, in an account of its own.

use super::{CONTROL, FOLDER, LANE};
use crossfade::engine::{Engine, Options, silent};
use crossfade::journal::Journal;
use crossfade::plan::model::{Phase, Plan, Promise, StepSpec};
use crossfade::policy::{self, Verb};
use crossfade::snapshot::model::Snapshot;
use crossfade::spec::model::Spec;
use crossfade::world::cloud::{Cloud, EksCluster, Resource};
use crossfade::world::twin::{self, Twin};
use crossfade::world::{World, live};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use testkit::servers::ministack::{ACCOUNT, REGION};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A lane's line to the outer process.
pub struct Layer(tokio::sync::Mutex<BufReader<TcpStream>>);

impl Layer {
    pub async fn connect() -> Layer {
        let address = std::env::var(CONTROL).expect("started by the outer test");
        Layer(tokio::sync::Mutex::new(BufReader::new(
            TcpStream::connect(address).await.unwrap(),
        )))
    }
    pub async fn ask(&self, line: &str) -> Value {
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
    pub async fn used(&self) -> BTreeMap<String, BTreeSet<String>> {
        serde_json::from_value(self.ask("used").await).unwrap()
    }
}

/// A company with everything that a provision can make.
pub struct Company {
    pub layer: Layer,
    pub cluster: String,
    pub green: String,
    pub plan: Plan,
    pub cloud: Arc<dyn Cloud>,
    pub world: World,
    pub runs: AtomicU32,
    pub iam: aws_sdk_iam::Client,
}

impl Company {
    pub async fn new() -> Company {
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
    pub fn engine(&self, plan: &Plan) -> (Engine, Arc<Journal>) {
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

    pub async fn inventory(&self) -> Value {
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
        if let Some(groups) = &mut inventory.log_groups {
            let own = format!("/aws/eks/{}/", self.green);
            groups.retain(
                |g| matches!(&g.resource, Resource::LogGroup { name, .. } if name.starts_with(&own)),
            );
        }
        inventory.policies = None;
        inventory.oidc_providers.clear();
        serde_json::to_value(inventory).unwrap()
    }

    pub async fn back(&self, engine: &Engine, why: &str) {
        match engine.rollback(None).await {
            Ok(o) if o.name() == "restored" => {}
            other => panic!("{why}: {other:#?}"),
        }
    }

    pub fn documents(&self, verbs: &[Verb]) -> Vec<Value> {
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
