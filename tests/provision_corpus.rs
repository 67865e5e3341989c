//! Plans of real kops specs, provisioned on the strict AWS layer and taken back: no call is refused, the account is as it was.
//!
//! The AWS SDK takes its endpoint from the environment, so the outer test starts the emulator and the layer and runs the inner
//! one in a process of its own. Green's API server is the twin's: only the cloud is asked for here.

use aws_sdk_ec2::types::{ResourceType, Tag, TagSpecification};
use crossfade::engine::{Engine, Options, silent};
use crossfade::journal::Journal;
use crossfade::plan::model::{Plan, ResourceState};
use crossfade::snapshot::model::Snapshot;
use crossfade::spec::model::Spec;
use crossfade::world::cloud::{Disk, EksCluster, Inventory, Resource, Status};
use crossfade::world::twin::{self, Twin};
use crossfade::world::{Class, World, live, observe};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use testkit::TestCa;
use testkit::servers::ministack::{ACCOUNT, MiniStack, REGION};
use testkit::strict::{Call, Config, GreenEndpoint, Strict};

/// What is special in each (tests/corpus/kops/README.md), by green's name.
const CORPUS: &[(&str, &str)] = &[
    ("spot", "launch-templates-spot-kops1.20"),
    ("mixed", "mixed-instances-kops1.16"),
    ("bastion", "privatecalico-kops1.19"),
    ("shared-vpc", "shared-vpc-kops1.16"),
    ("shared-subnet", "shared-subnet-kops1.20"),
    ("own-profiles", "existing-iam-kops1.18"),
    ("irsa", "irsa-kops1.31"),
    ("addons", "many-addons-kops1.28"),
    ("addons-irsa", "many-addons-ccm-irsa"),
    ("policies", "external-policies-kops1.22"),
    ("complex", "complex-legacy-apigroup"),
    ("three-groups", "autoscaler-priority"),
];
/// What each team asks for besides, by green's name: together every field that a cluster, its pods and its nodes can be made with.
fn wishes(green: &str, key: &str) -> Value {
    match green {
        "spot" => json!({"green": {"identity": {"addons": "podIdentity"}}}),
        "bastion" => json!({"green": {"publicEndpoint": false, "serviceCidr": "10.200.0.0/16",
            "controlPlane": {"logs": ["audit", "authenticator"], "logDays": 90, "support": "extended"}}}),
        "shared-vpc" => {
            json!({"green": {"endpointCidrs": ["203.0.113.0/24"], "controlPlane": {"deletionProtection": false}}})
        }
        "own-profiles" => json!({"green": {"controlPlane": {"secretsKey": key, "logs": ["api"]},
            "nodes": {"volumeKey": key, "repair": true}}}),
        "irsa" => json!({"green": {"identity": {"workloads": "podIdentity"}}}),
        "addons" => {
            json!({"green": {"addons": {"coredns": {"configuration": {"replicaCount": 3}, "conflicts": "preserve"},
            "eks-node-monitoring-agent": {"conflicts": "none"}}}})
        }
        "policies" => {
            json!({"aws": {"stateBucket": {"name": "crossfade-records-of-policies", "create": true}}})
        }
        _ => json!({}),
    }
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(a), Value::Object(b)) => {
            for (k, v) in b {
                merge(a.entry(k.clone()).or_insert(Value::Null), v);
            }
        }
        (a, b) => *a = b.clone(),
    }
}

/// Names the folder of the inner test.
const FOLDER: &str = "CROSSFADE_TEST_FOLDER";
/// Long enough to be seen as CREATING, short enough to wait for.
const DELAY: Duration = Duration::from_millis(200);

#[tokio::test(flavor = "multi_thread")]
async fn plans_of_real_kops_specs_are_provisioned_without_a_refused_call_and_leave_nothing_behind()
{
    let dir = tempfile::tempdir().unwrap();
    let emulator = MiniStack::start(dir.path())
        .await
        .expect("the emulator starts");
    let ca = TestCa::new().unwrap();
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
        ca,
    })
    .await
    .unwrap();
    let outcome = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "inside_the_account", "--nocapture"])
        .env(FOLDER, dir.path())
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
    let calls = strict.calls();
    let refused: Vec<&Call> = calls.iter().filter(|c| refused(c)).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    assert!(outcome.success(), "the inner test failed, see above");
    let count = |action: &str| calls.iter().filter(|c| c.action == action).count();
    assert_eq!(count("CreateCluster"), CORPUS.len());
    assert_eq!(count("DeleteCluster"), CORPUS.len());
    assert!(count("CreateNodegroup") >= CORPUS.len());
    assert_eq!(count("CreateNodegroup"), count("DeleteNodegroup"));
    // Only the team that asked for none has no deletion protection, which the way back switches off first.
    assert_eq!(count("UpdateClusterConfig"), CORPUS.len() - 1);
    assert!(
        count("CreatePodIdentityAssociation") >= 4,
        "add-ons and workloads"
    );
    assert_eq!(
        count("CreatePodIdentityAssociation"),
        count("DeletePodIdentityAssociation")
    );
    let nth = |action: &str, name: &str| {
        calls
            .iter()
            .position(|c| c.action == action && c.params.to_string().contains(name))
    };
    assert_eq!((count("CreateLogGroup"), count("DeleteLogGroup")), (2, 2));
    assert_eq!(
        count("PutRetentionPolicy"),
        1,
        "one team keeps its logs for ever"
    );
    let cluster = nth("CreateCluster", "\"bastion\"").expect("it is made");
    let group = calls
        .iter()
        .position(|c| c.action == "CreateLogGroup")
        .expect("it is made");
    assert!(
        group < cluster,
        "EKS would make the log group itself, without retention"
    );
    assert_eq!((count("CreateBucket"), count("DeleteBucket")), (1, 1));
    // The CNI's settings are there before the first node is (eks.md 1.5).
    for (green, _) in CORPUS {
        let at = format!("\"{green}\"");
        let of = |action: &str, what: &str| {
            calls.iter().position(|c| {
                let params = c.params.to_string();
                c.action == action && params.contains(&at) && params.contains(what)
            })
        };
        assert!(
            of("CreateAddon", "vpc-cni") < of("CreateNodegroup", ""),
            "{green}"
        );
    }
}

/// A question about what is not there is answered with an error; everything else that fails was refused.
fn refused(call: &Call) -> bool {
    let question = ["Describe", "Get", "Head", "List"]
        .iter()
        .any(|p| call.action.starts_with(p));
    // Made by another run and deleted twice on purpose: its refusals are looked at where they happen.
    if call.params["LaunchTemplateName"] == "with-everything" {
        return false;
    }
    let absent = call.status == 404
        // EC2 and the JSON services answer everything with 400.
        || call.status == 400
            && (call.action == "DescribeLaunchTemplates" || matches!(call.service.as_str(), "logs" | "kms"));
    call.status >= 400 && !(question && absent)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in the layer's environment"]
async fn inside_the_account() {
    let folder = std::env::var(FOLDER).expect("started by the outer test");
    let folder = Path::new(&folder);
    std::fs::write(folder.join("kubeconfig"), KUBECONFIG).unwrap();
    let account = Account::new().await;
    let mut companies = vec![];
    let key = emulated("TrentService.CreateKey", "kms", json!({})).await["KeyMetadata"]["Arn"]
        .as_str()
        .expect("the account has a key")
        .to_owned();
    for (green, file) in CORPUS {
        companies.push(Company::new(&account, folder, green, file, &key).await);
    }
    let before = account_of(&companies).await;
    // All at once: the waits of one are the work of the others, and nobody touches what is another's.
    let started = std::time::Instant::now();
    futures::future::join_all(companies.iter().map(Company::there)).await;
    for company in &companies {
        company.is_as_planned().await;
    }
    launch_templates(&companies[0]).await;
    futures::future::join_all(companies.iter().map(Company::back)).await;
    let after = account_of(&companies).await;
    assert_eq!(observe::diff(&before, &after), Vec::<String>::new());
    println!(
        "{} plans there and back in {:.0} s",
        companies.len(),
        started.elapsed().as_secs_f32()
    );
}

/// Everything in the account that a run could have touched.
async fn account_of(companies: &[Company]) -> Value {
    let mut out = BTreeMap::new();
    for c in companies {
        let mut inventory = c.inventory().await;
        for s in &mut inventory.subnets {
            s.free_ips = 0;
        }
        out.insert(c.green.clone(), inventory);
    }
    serde_json::to_value(out).unwrap()
}

/// The account's network and identities, made as the companies had them.
struct Account {
    ec2: aws_sdk_ec2::Client,
    iam: aws_sdk_iam::Client,
}

impl Account {
    async fn new() -> Account {
        let config = aws_config::load_defaults(aws_config::BehaviorVersion::v2026_01_12()).await;
        Account {
            ec2: aws_sdk_ec2::Client::new(&config),
            iam: aws_sdk_iam::Client::new(&config),
        }
    }

    async fn vpc(&self, cidr: &str, cluster: &str) -> String {
        let made = self
            .ec2
            .create_vpc()
            .cidr_block(cidr)
            .tag_specifications(tags(
                ResourceType::Vpc,
                &[("Name", cluster), ("KubernetesCluster", cluster)],
            ))
            .send()
            .await
            .unwrap();
        made.vpc.and_then(|v| v.vpc_id).unwrap()
    }

    async fn subnet(&self, vpc: &str, cidr: &str, zone: &str, name: &str, cluster: &str) -> String {
        let made = self
            .ec2
            .create_subnet()
            .vpc_id(vpc)
            .cidr_block(cidr)
            .availability_zone(zone)
            .tag_specifications(tags(
                ResourceType::Subnet,
                &[
                    ("Name", &format!("{name}.{cluster}")),
                    ("KubernetesCluster", cluster),
                ],
            ))
            .send()
            .await
            .unwrap_or_else(|e| panic!("{name} {cidr}: {e:?}"));
        made.subnet.and_then(|s| s.subnet_id).unwrap()
    }

    /// Security groups that an instance group names exist in its company's VPC.
    async fn own_groups(&self, vpc: &str, company: &str, ig: &mut Value) {
        let name = ig["metadata"]["name"].as_str().unwrap_or("").to_owned();
        for g in ig["spec"]["additionalSecurityGroups"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            let made = self
                .ec2
                .create_security_group()
                .group_name(format!("{company}-{name}-{}", g.as_str().unwrap()))
                .description("of the company itself")
                .vpc_id(vpc)
                .send()
                .await
                .unwrap();
            *g = json!(made.group_id.unwrap());
        }
    }

    /// Policies, roles and instance profiles that a spec names by ARN exist in its company's account.
    async fn identities(&self, text: &str) {
        let named = |kind: &str| -> BTreeSet<String> {
            text.split(&format!("arn:aws:iam::{ACCOUNT}:{kind}/"))
                .skip(1)
                .map(|rest| {
                    let end =
                        rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+=,.@_-".contains(c)));
                    rest[..end.unwrap_or(rest.len())].to_string()
                })
                .collect()
        };
        let policy = json!({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "*"}]});
        for name in named("policy") {
            // Two companies may name the same.
            let _ = self
                .iam
                .create_policy()
                .policy_name(&name)
                .policy_document(policy.to_string())
                .send()
                .await;
        }
        let trust = json!({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]});
        for name in named("role").union(&named("instance-profile")) {
            let made = self
                .iam
                .create_role()
                .role_name(name)
                .assume_role_policy_document(trust.to_string())
                .send()
                .await;
            if made.is_err() {
                continue;
            }
            self.iam
                .create_instance_profile()
                .instance_profile_name(name)
                .send()
                .await
                .unwrap();
            self.iam
                .add_role_to_instance_profile()
                .instance_profile_name(name)
                .role_name(name)
                .send()
                .await
                .unwrap();
        }
    }
}

fn tags(kind: ResourceType, list: &[(&str, &str)]) -> TagSpecification {
    TagSpecification::builder()
        .resource_type(kind)
        .set_tags(Some(
            list.iter()
                .map(|(k, v)| Tag::builder().key(*k).value(*v).build())
                .collect(),
        ))
        .build()
}

/// One kops cluster of the corpus, in the account.
struct Company {
    green: String,
    cluster: String,
    spec: Spec,
    snapshot: Snapshot,
    plan: Plan,
    cloud: Arc<dyn crossfade::world::cloud::Cloud>,
    world: World,
    journal: Arc<Journal>,
}

impl Company {
    async fn new(account: &Account, folder: &Path, green: &str, file: &str, key: &str) -> Company {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/corpus/kops")
            .join(format!("{file}.yaml"));
        let text = real(&std::fs::read_to_string(&path).unwrap());
        // Several specs carry one cluster name; one account holds a name once.
        let cluster = format!("{green}.example.com");
        let name = text
            .lines()
            .find_map(|l| {
                l.trim()
                    .strip_prefix("name: ")
                    .filter(|n| n.ends_with(".example.com"))
            })
            .unwrap();
        let text = text.replace(name, &cluster);
        account.identities(&text).await;
        let mut snapshot = Snapshot::default();
        for part in text.split("\n---") {
            let Ok(doc) = serde_saphyr::from_str::<Value>(part) else {
                panic!("{}: {part}", path.display());
            };
            match doc["kind"].as_str() {
                Some("Cluster") => snapshot.kops.cluster = Some(doc),
                Some("InstanceGroup") => snapshot.kops.instance_groups.push(doc),
                _ => {}
            }
        }
        let (vpc, subnets) = network(account, snapshot.kops.cluster.as_mut().unwrap()).await;
        for group in &mut snapshot.kops.instance_groups {
            account.own_groups(&vpc, green, group).await;
        }
        let mut wanted = json!({
            "apiVersion": "crossfade.dev/v1alpha1", "kind": "Migration", "name": green,
            "blue": {"cluster": cluster, "kubeconfig": "kubeconfig", "context": "blue"},
            "green": {"name": green, "version": "1.35", "subnets": subnets},
            "aws": {"account": ACCOUNT, "region": REGION},
        });
        merge(&mut wanted, &wishes(green, key));
        let mut spec: Spec = serde_json::from_value(wanted).unwrap();
        if green == "complex" {
            // Its scripts and packages come along.
            spec.green.node_groups =
                serde_json::from_value(json!({"nodes": {"hostChanges": true}})).unwrap();
        }
        let live = live::connect(&spec, folder).unwrap();
        snapshot.aws = Some(live.cloud.inventory(&cluster).await.unwrap());
        let plan = only_the_cloud(crossfade::plan::plan(&spec, &snapshot));
        // A green that lets the caller in as soon as the entry is there.
        let mut standing = snapshot.clone();
        standing.aws.as_mut().unwrap().clusters = vec![EksCluster {
            name: green.into(),
            version: "1.35".into(),
            node_groups: vec![],
            addons: vec![],
            access_entries: vec![],
            tags: BTreeMap::new(),
            parts: None,
        }];
        let twin = Twin::new(&standing, &spec, twin::Options::default());
        Company {
            green: green.into(),
            cluster,
            spec,
            snapshot,
            plan,
            cloud: live.cloud.clone(),
            world: World {
                cloud: live.cloud,
                ..twin.world()
            },
            journal: Arc::new(Journal::memory()),
        }
    }

    async fn inventory(&self) -> Inventory {
        self.cloud.inventory(&self.cluster).await.unwrap()
    }

    fn engine(&self) -> Engine {
        Engine::new(
            self.world.clone(),
            Arc::new(self.plan.clone()),
            self.journal.clone(),
            crossfade::step::registry(),
            silent(),
        )
        .options(Options {
            check_drift: false,
            stall: Some(Duration::from_secs(40)),
            ..Options::default()
        })
    }

    async fn there(&self) {
        let outcome = self.engine().forward(None).await;
        match outcome {
            Ok(o) if o.name() == "migrated" => {}
            other => panic!("{}: {other:#?}", self.green),
        }
    }

    async fn back(&self) {
        let outcome = self.engine().rollback(None).await;
        match outcome {
            Ok(o) if o.name() == "restored" => {}
            other => panic!("{}: {other:#?}", self.green),
        }
    }

    /// Read back and planned again, every resource is there as it was asked for: nothing is to be made, nothing differs.
    async fn is_as_planned(&self) {
        let mut now = self.snapshot.clone();
        now.aws = Some(self.inventory().await);
        let again = crossfade::plan::plan(&self.spec, &now);
        let wrong: Vec<_> = again
            .target
            .resources
            .iter()
            .filter(|r| r.state != ResourceState::ExistsEqual)
            .collect();
        assert!(wrong.is_empty(), "{}: {wrong:#?}", self.green);
        if self.green == "complex" {
            let text = again.target.node_groups[0]
                .launch_template
                .user_data
                .as_deref()
                .unwrap_or("");
            assert!(text.contains("in ${HOME}"), "{text}");
        }
        assert!(
            again.target.resources.len() >= 12,
            "{}: {}",
            self.green,
            again.target.resources.len()
        );
        let said: Vec<_> = again
            .findings
            .iter()
            .filter(|f| f.id.starts_with("ADOPT-"))
            .collect();
        assert!(said.is_empty(), "{}: {said:#?}", self.green);
    }
}

/// A launch template with everything that one can say, and a node group from it, made, read back and gone again.
async fn launch_templates(company: &Company) {
    const RUN: &str = "run-templates";
    let cloud = &company.cloud;
    let inventory = company.inventory().await;
    let group = inventory
        .security_groups
        .iter()
        .find(|g| g.tags.get("aws:eks:cluster-name") == Some(&company.green))
        .unwrap();
    let disk = |device: &str, kms: Option<&str>| Disk {
        device: device.into(),
        gib: 64,
        kind: "gp3".into(),
        iops: Some(4_000),
        throughput: Some(250),
        encrypted: true,
        kms_key: kms.map(String::from),
        delete_on_termination: true,
    };
    let secret = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n--x--\n";
    let template = |hop_limit: u32, public: Option<bool>| Resource::LaunchTemplate {
        name: "with-everything".into(),
        root: disk("/dev/xvda", Some("alias/nodes")),
        volumes: vec![disk("/dev/xvdb", None)],
        http_tokens: "required".into(),
        hop_limit,
        security_groups: vec![group.id.clone()],
        user_data: Some(secret.into()),
        tags: BTreeMap::from([("team".to_owned(), "web & co".to_owned())]),
        monitoring: true,
        tenancy: Some("dedicated".into()),
        cpu_credits: Some("unlimited".into()),
        associate_public_ip: public,
    };
    for public in [None, Some(false)] {
        let wanted = template(2, public);
        assert!(cloud.find(&wanted).await.unwrap().is_none());
        cloud.create(&wanted, RUN).await.unwrap();
        let found = cloud.find(&wanted).await.unwrap().unwrap();
        assert!(found.equal, "{:?}", found.differences);
        assert_eq!(found.run.as_deref(), Some(RUN));
        cloud
            .create(&wanted, RUN)
            .await
            .expect("the client token finds the same one");
        let other = cloud.create(&wanted, "another run").await.unwrap_err();
        assert_eq!(other.class, Class::AlreadyExists);
        let found = cloud.find(&template(1, public)).await.unwrap().unwrap();
        let said: Vec<String> = found.differences.iter().map(ToString::to_string).collect();
        assert_eq!(said, ["hopLimit: 2 instead of 1"]);
        cloud.delete(&wanted).await.unwrap();
        cloud.delete(&wanted).await.expect("absent is fine");
    }
    let wanted = template(2, None);
    cloud.create(&wanted, RUN).await.unwrap();
    let mut from_it = company
        .plan
        .steps
        .iter()
        .find(|s| s.id.starts_with("provision/node-group/"))
        .unwrap()
        .params["resource"]
        .clone();
    from_it["name"] = json!("from-template");
    from_it["launchTemplate"] = json!("with-everything");
    from_it["maxUnavailable"] = json!("10%");
    let from_it = from_it.to_string().replace("${account}", ACCOUNT);
    let from_it: Resource = serde_json::from_str(&from_it).unwrap();
    cloud.create(&from_it, RUN).await.unwrap();
    until(|| async {
        let found = cloud.find(&from_it).await.unwrap().unwrap();
        assert!(found.equal, "{:?}", found.differences);
        found.status == Status::Ready
    })
    .await;
    let inventory = company.inventory().await;
    let kept = serde_json::to_string(&inventory).unwrap();
    assert!(kept.contains("with-everything") && kept.contains("from-template"));
    assert!(
        !kept.contains("multipart"),
        "user data may hold secrets: an inventory has its hash only"
    );
    cloud.delete(&from_it).await.unwrap();
    until(|| async { cloud.find(&from_it).await.unwrap().is_none() }).await;
    cloud.delete(&wanted).await.unwrap();
}

async fn until<F: Future<Output = bool>>(mut done: impl FnMut() -> F) {
    for _ in 0..100 {
        if done().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it never came to an end");
}

/// A call of a JSON service for which the tests have no client. The emulator looks at no signature.
async fn emulated(target: &str, service: &str, body: Value) -> Value {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let endpoint = std::env::var("AWS_ENDPOINT_URL").unwrap();
    let host = endpoint.strip_prefix("http://").unwrap();
    let body = body.to_string();
    let request = format!(
        "POST / HTTP/1.1\r\nHost: {host}\r\nX-Amz-Target: {target}\r\nContent-Type: application/x-amz-json-1.1\r\n\
         Authorization: AWS4-HMAC-SHA256 Credential=test/20261130/{REGION}/{service}/aws4_request, SignedHeaders=host, Signature=0\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (_, json) = answer.split_once("\r\n\r\n").unwrap();
    let json = &json[json.find('{').unwrap_or(0)..=json.rfind('}').unwrap_or(0)];
    serde_json::from_str(json).unwrap_or_else(|e| panic!("{e}: {answer}"))
}

/// The specs are of a region and partition that do not exist, and of accounts that are not ours.
fn real(text: &str) -> String {
    let mut text = text
        .replace("us-test-1", REGION)
        .replace("us-east-1", REGION)
        .replace("arn:aws-test:", "arn:aws:")
        // A shell variable looks like what the step fills in, and must reach the node untouched.
        .replace("$(date -R)", "$(date -R) in ${HOME}")
        // A VPC of 172.16.0.0/12 takes no second range of 10.0.0.0/8: the emulator knows that, kops's tests do not.
        .replace("10.1.64.0/19", "172.20.64.0/19");
    for theirs in [
        "4222917490108",
        "422917490108",
        "123456789012",
        "123456789000",
    ] {
        text = text.replace(&format!("iam::{theirs}:"), &format!("iam::{ACCOUNT}:"));
    }
    text
}

/// VPC and subnets as the spec has them. EKS wants two zones: a spec with one gets a subnet in another, as its owner would have to.
async fn network(account: &Account, doc: &mut Value) -> (String, Vec<String>) {
    let cluster = doc["metadata"]["name"].as_str().unwrap().to_owned();
    let cidr = doc["spec"]["networkCIDR"]
        .as_str()
        .unwrap_or("172.20.0.0/16")
        .to_owned();
    let vpc = account.vpc(&cidr, &cluster).await;
    if !doc["spec"]["networkID"].is_null() {
        doc["spec"]["networkID"] = json!(vpc);
    }
    let (a, b) = cidr
        .split_once('.')
        .and_then(|(a, rest)| Some((a, rest.split_once('.')?.0)))
        .unwrap();
    let (mut ids, mut zones) = (vec![], BTreeSet::new());
    let private = doc["spec"]["subnets"]
        .as_array()
        .unwrap()
        .iter()
        .any(|s| s["type"] == "Private");
    for (n, s) in doc["spec"]["subnets"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .enumerate()
    {
        let block = s["cidr"]
            .as_str()
            .map_or_else(|| format!("{a}.{b}.{}.0/24", 200 + n), String::from);
        let zone = s["zone"].as_str().unwrap().to_owned();
        let name = s["name"].as_str().unwrap().to_owned();
        let id = account.subnet(&vpc, &block, &zone, &name, &cluster).await;
        if !s["id"].is_null() {
            s["id"] = json!(id);
        }
        if !private || s["type"] == "Private" {
            ids.push(id);
            zones.insert(zone);
        }
    }
    for letter in ["a", "b"] {
        let zone = format!("{REGION}{letter}");
        if zones.len() < 2 && zones.insert(zone.clone()) {
            let block = format!("{a}.{b}.250.0/24");
            ids.push(
                account
                    .subnet(&vpc, &block, &zone, "second-zone", &cluster)
                    .await,
            );
        }
    }
    (vpc, ids)
}

/// The plan's cloud resources in its own order, without what needs the clusters themselves.
fn only_the_cloud(mut plan: Plan) -> Plan {
    plan.steps.retain(|s| s.kind == "cloud.ensure");
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
