//! People get into green, not only the run: tokens of admin roles shown to a real API server that asks the token webhook, and tokens that
//! are signed with the server's time when this machine's clock is wrong.

use base64::Engine as _;
use crossfade::spec::model::Spec;
use crossfade::world::cloud::{Resource, Status};
use crossfade::world::kube::Admission;
use crossfade::world::{World, live};
use http_body_util::Full;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use testkit::TestCa;
use testkit::servers::etcd::Etcd;
use testkit::servers::kube::{self as planes, ControlPlane, Side};
use testkit::servers::ministack::{ACCOUNT, MiniStack, REGION};
use testkit::servers::ports::Port;
use testkit::strict::{Config, GreenEndpoint, Strict};

const FOLDER: &str = "CROSSFADE_TEST_FOLDER";
/// URL of a server whose clock is ahead.
const AHEAD: &str = "CROSSFADE_TEST_AHEAD";
const GREEN: &str = "proof-green";
const DELAY: Duration = Duration::from_millis(100);
/// How far its clock is ahead, seconds: more than the quarter of an hour that a token lives.
const SKEW: i64 = 20 * 60;

#[tokio::test(flavor = "multi_thread")]
async fn admins_are_proven_to_get_into_green_and_tokens_carry_the_servers_time() {
    let dir = tempfile::tempdir().unwrap();
    let etcd = Etcd::start(dir.path()).await.expect("etcd");
    let emulator = MiniStack::start(dir.path()).await.expect("emulator");
    let ca = TestCa::new().unwrap();
    let port = Port::reserve().expect("port");
    let strict = Strict::start(Config {
        upstream: emulator.endpoint().to_owned(),
        account: ACCOUNT.to_owned(),
        region: REGION.to_owned(),
        insync_delay: DELAY,
        cluster_delay: DELAY,
        nodegroup_delay: DELAY,
        addon_delay: DELAY,
        green: GreenEndpoint {
            url: planes::url_of(&port),
            ca_pem: ca.pem().to_owned(),
        },
        ca: ca.clone(),
    })
    .await
    .expect("strict layer");
    let webhook = dir.path().join("webhook.kubeconfig");
    std::fs::write(&webhook, strict.webhook_kubeconfig()).unwrap();
    let _green = ControlPlane::start(planes::Options {
        side: Side::Green,
        dir: dir.path(),
        etcd: &etcd,
        port,
        ca,
        token_webhook: Some(webhook),
    })
    .await
    .expect("green");
    inner(&strict, dir.path(), "inside_with_people", "").await;
    let refused = Arc::new(AtomicUsize::new(0));
    let counter = refused.clone();
    let ahead = testkit::apps::http::HttpServer::start(move |request| {
        let answer = by_another_clock(&request, &counter);
        async move { answer }
    })
    .await
    .unwrap();
    let url = format!("http://{}", ahead.addr());
    strict.reach_clusters_at(&url);
    inner(&strict, dir.path(), "inside_by_another_clock", &url).await;
    assert_eq!(
        refused.load(Ordering::Relaxed),
        1,
        "one token was too old, then none"
    );
}

async fn inner(strict: &Strict, folder: &Path, test: &str, ahead: &str) {
    let outcome = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", test, "--nocapture"])
        .env(FOLDER, folder)
        .env(AHEAD, ahead)
        .env("AWS_ENDPOINT_URL", strict.endpoint())
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_REGION", REGION)
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env_remove("AWS_PROFILE")
        .env_remove("AWS_SESSION_TOKEN")
        .env_remove("HTTP_PROXY")
        .env_remove("HTTPS_PROXY")
        .status()
        .await
        .unwrap();
    assert!(outcome.success(), "{test} failed, see above");
}

/// An API server that takes a token for a quarter of an hour by its own clock.
fn by_another_clock(
    request: &http::Request<bytes::Bytes>,
    refused: &AtomicUsize,
) -> http::Response<Full<bytes::Bytes>> {
    let now = jiff::Timestamp::now().as_second() + SKEW;
    let token = request
        .headers()
        .get("authorization")
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.strip_prefix("Bearer k8s-aws-v1."))
        .unwrap_or_default();
    let url = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(token)
        .ok()
        .and_then(|b| String::from_utf8(b).ok())
        .unwrap_or_default();
    let d = url
        .split("X-Amz-Date=")
        .nth(1)
        .map(|d| d.chars().take(16).collect::<String>())
        .unwrap_or_default();
    let signed = (d.len() == 16)
        .then(|| {
            format!(
                "{}-{}-{}T{}:{}:{}Z",
                &d[0..4],
                &d[4..6],
                &d[6..8],
                &d[9..11],
                &d[11..13],
                &d[13..15]
            )
        })
        .and_then(|t| t.parse::<jiff::Timestamp>().ok())
        .map_or(0, |t| t.as_second());
    let fresh = (now - signed).abs() <= 15 * 60;
    let (status, body) = if fresh {
        (
            200,
            json!({"major": "1", "minor": "36", "gitVersion": "v1.36.0"}),
        )
    } else {
        refused.fetch_add(1, Ordering::Relaxed);
        (
            401,
            json!({"kind": "Status", "reason": "Unauthorized", "message": "Unauthorized"}),
        )
    };
    let date = jiff::Timestamp::from_second(now)
        .unwrap()
        .strftime("%a, %d %b %Y %H:%M:%S GMT")
        .to_string();
    http::Response::builder()
        .status(status)
        .header("date", date)
        .header("content-type", "application/json")
        .body(Full::from(body.to_string()))
        .unwrap()
}

fn world() -> World {
    let folder = std::env::var(FOLDER).expect("started by the outer test");
    let folder = Path::new(&folder);
    std::fs::write(folder.join("kubeconfig"), KUBECONFIG).unwrap();
    let spec: Spec = serde_json::from_value(json!({
        "apiVersion": "crossfade.dev/v1alpha1", "kind": "Migration", "name": "proof",
        "blue": {"cluster": "proof.test", "kubeconfig": "kubeconfig", "context": "blue"},
        "green": {"name": GREEN, "version": "1.35"},
        "aws": {"account": ACCOUNT, "region": REGION},
    }))
    .unwrap();
    live::connect(&spec, folder).unwrap()
}

async fn until<F: Future<Output = bool>>(what: &str, mut done: impl FnMut() -> F) {
    for _ in 0..100 {
        if done().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("never: {what}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in the layer's environment"]
async fn inside_with_people() {
    let world = world();
    let config = aws_config::load_defaults(aws_config::BehaviorVersion::v2026_01_12()).await;
    let (ec2, iam) = (
        aws_sdk_ec2::Client::new(&config),
        aws_sdk_iam::Client::new(&config),
    );
    let vpc = ec2
        .create_vpc()
        .cidr_block("10.0.0.0/16")
        .send()
        .await
        .unwrap();
    let vpc = vpc.vpc.and_then(|v| v.vpc_id).unwrap();
    let mut subnets = vec![];
    for (n, zone) in ["a", "b"].iter().enumerate() {
        let made = ec2
            .create_subnet()
            .vpc_id(&vpc)
            .cidr_block(format!("10.0.{n}.0/24"))
            .availability_zone(format!("{REGION}{zone}"))
            .send()
            .await
            .unwrap();
        subnets.push(made.subnet.and_then(|s| s.subnet_id).unwrap());
    }
    let role = async |name: &str, service: Option<&str>| {
        let principal = match service {
            Some(s) => json!({"Service": s}),
            None => json!({"AWS": format!("arn:aws:iam::{ACCOUNT}:root")}),
        };
        let trust = json!({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}]});
        let made = iam
            .create_role()
            .role_name(name)
            .assume_role_policy_document(trust.to_string())
            .send()
            .await
            .unwrap();
        made.role.unwrap().arn
    };
    let cluster_role = role("proof-cluster", Some("eks.amazonaws.com")).await;
    iam.attach_role_policy()
        .role_name("proof-cluster")
        .policy_arn("arn:aws:iam::aws:policy/AmazonEKSClusterPolicy")
        .send()
        .await
        .unwrap();
    let cluster: Resource = serde_json::from_value(json!({
        "type": "cluster", "name": GREEN, "version": "1.35", "roleArn": cluster_role, "subnets": subnets,
        "serviceCidr": null, "publicEndpoint": true, "privateEndpoint": true,
    }))
    .unwrap();
    world.cloud.create(&cluster, "proof").await.unwrap();
    until("the cluster stands", || async {
        let found = world.cloud.find(&cluster).await.unwrap();
        found.is_some_and(|f| f.status == Status::Ready)
    })
    .await;
    let entry = |arn: &str, policy: &str| -> Resource {
        serde_json::from_value(json!({
            "type": "access-entry", "cluster": GREEN, "principal": arn, "groups": ["people"], "policy": policy,
        }))
        .unwrap()
    };
    let ops = role("proof-ops", None).await;
    // It can be assumed, and green does not know it: the very lock-in that this is for.
    assert_eq!(world.cloud.assumable(&ops).await.unwrap(), None);
    match world.green.admits(&ops).await.unwrap() {
        Admission::Refused(_) => {}
        other => panic!("{other:?}"),
    }
    world
        .cloud
        .create(&entry(&ops, "AmazonEKSClusterAdminPolicy"), "proof")
        .await
        .unwrap();
    until("the admin is let in with all rights", || async {
        matches!(
            world.green.admits(&ops).await.unwrap(),
            Admission::In { admin: true, username, .. } if username.contains("proof-ops")
        )
    })
    .await;
    // Let in, and no admin: told apart.
    let readers = role("proof-readers", None).await;
    world
        .cloud
        .create(&entry(&readers, "AmazonEKSViewPolicy"), "proof")
        .await
        .unwrap();
    until("the reader is let in", || async {
        matches!(
            world.green.admits(&readers).await.unwrap(),
            Admission::In { admin: false, groups, .. } if groups.iter().any(|g| g == "people")
        )
    })
    .await;
    // A role that was deleted and made again is another one, whatever its name (eks.md 1.4).
    iam.delete_role()
        .role_name("proof-ops")
        .send()
        .await
        .unwrap();
    role("proof-ops", None).await;
    until("the role of the same name is not let in", || async {
        matches!(
            world.green.admits(&ops).await.unwrap(),
            Admission::Refused(_)
        )
    })
    .await;
    // A user can only be proven by itself.
    let user = format!("arn:aws:iam::{ACCOUNT}:user/old-admin");
    assert!(matches!(
        world.green.admits(&user).await.unwrap(),
        Admission::Unproven(_)
    ));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in the layer's environment"]
async fn inside_by_another_clock() {
    let world = world();
    // The first token is 20 minutes old for the server; the answer says what time it is, and the same call goes through.
    assert_eq!(world.green.version().await.unwrap().minor, 36);
    // And so does every later one, without being refused first.
    assert_eq!(world.green.version().await.unwrap().minor, 36);
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
