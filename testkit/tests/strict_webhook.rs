//! Green's real API server asks the token webhook who comes, and node groups become its nodes.

mod strict_bench;

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_sdk_eks::types::{
    AccessScope, AccessScopeType, AuthenticationMode, CreateAccessConfigRequest,
    NodegroupScalingConfig, Taint, TaintEffect, VpcConfigRequest,
};
use aws_sigv4::http_request::{
    SignableBody, SignableRequest, SignatureLocation, SigningSettings, sign,
};
use aws_sigv4::sign::v4;
use base64::Engine;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::api::{Api, ListParams};
use strict_bench::{DELAY, eks, eventually, iam, network, role, sts};
use testkit::servers::etcd::Etcd;
use testkit::servers::kube::{self as planes, ControlPlane, Side, User};
use testkit::servers::ministack::{ACCOUNT, MiniStack, REGION};
use testkit::servers::ports::Port;
use testkit::strict::{Config, GreenEndpoint, Strict};
use testkit::{TestCa, nodes};

struct World {
    strict: Strict,
    green: ControlPlane,
    ca: TestCa,
    _etcd: Etcd,
    _emulator: MiniStack,
    dir: tempfile::TempDir,
}

async fn world() -> World {
    let dir = tempfile::tempdir().expect("folder");
    let etcd = Etcd::start(dir.path()).await.expect("etcd");
    let emulator = MiniStack::start(dir.path()).await.expect("emulator");
    let ca = TestCa::new().expect("CA");
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
    std::fs::write(&webhook, strict.webhook_kubeconfig()).expect("webhook kubeconfig");
    let green = ControlPlane::start(planes::Options {
        side: Side::Green,
        dir: dir.path(),
        etcd: &etcd,
        port,
        ca: ca.clone(),
        token_webhook: Some(webhook),
    })
    .await
    .expect("green");
    let (_, subnets) = network(&strict).await;
    let cluster_role = role(&strict, "cluster", "eks.amazonaws.com").await;
    eks(&strict)
        .create_cluster()
        .name("shop-green")
        .role_arn(cluster_role)
        .access_config(
            CreateAccessConfigRequest::builder()
                .authentication_mode(AuthenticationMode::Api)
                .bootstrap_cluster_creator_admin_permissions(false)
                .build(),
        )
        .resources_vpc_config(
            VpcConfigRequest::builder()
                .set_subnet_ids(Some(subnets))
                .build(),
        )
        .send()
        .await
        .expect("cluster");
    eventually("cluster ACTIVE", || async {
        let described = eks(&strict)
            .describe_cluster()
            .name("shop-green")
            .send()
            .await
            .expect("described");
        described.cluster?.endpoint.map(|_| ())
    })
    .await;
    World {
        strict,
        green,
        ca,
        _etcd: etcd,
        _emulator: emulator,
        dir,
    }
}

/// As `aws eks get-token` makes it.
fn token(key: &Credentials, cluster: &str) -> String {
    let url =
        format!("https://sts.{REGION}.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15");
    let mut settings = SigningSettings::default();
    settings.signature_location = SignatureLocation::QueryParams;
    settings.expires_in = Some(Duration::from_secs(60));
    let identity = key.clone().into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(REGION)
        .name("sts")
        .time(SystemTime::now())
        .settings(settings)
        .build()
        .expect("parameters")
        .into();
    let signable = SignableRequest::new(
        "GET",
        &url,
        std::iter::once(("x-k8s-aws-id", cluster)),
        SignableBody::Bytes(b""),
    )
    .expect("signable");
    let (instructions, _) = sign(signable, &params).expect("signed").into_parts();
    let mut request = http::Request::get(&url).body(()).expect("request");
    instructions.apply_to_request_http1x(&mut request);
    let signed = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(request.uri().to_string());
    format!("k8s-aws-v1.{signed}")
}

impl World {
    fn client(&self, token: String) -> kube::Client {
        let mut config = kube::Config::new(self.green.url().parse().expect("url"));
        let pem = pem_der(self.ca.pem());
        config.root_cert = Some(vec![pem]);
        config.auth_info.token = Some(token.into());
        config.default_retry = false;
        kube::Client::try_from(config).expect("client")
    }

    /// The HTTP status of listing namespaces.
    async fn list(&self, token: String) -> u16 {
        let namespaces: Api<Namespace> = Api::all(self.client(token));
        match namespaces.list(&ListParams::default()).await {
            Ok(_) => 200,
            Err(kube::Error::Api(error)) => error.code,
            Err(error) => panic!("{error}"),
        }
    }

    async fn assume(&self, name: &str) -> Credentials {
        let assumed = sts(&self.strict)
            .assume_role()
            .role_arn(format!("arn:aws:iam::{ACCOUNT}:role/{name}"))
            .role_session_name("tester")
            .send()
            .await
            .expect("assumed");
        let key = assumed.credentials.expect("credentials");
        Credentials::new(
            key.access_key_id,
            key.secret_access_key,
            Some(key.session_token),
            None,
            "bench",
        )
    }

    async fn entry(&self, arn: &str, groups: &[&str]) {
        eks(&self.strict)
            .create_access_entry()
            .cluster_name("shop-green")
            .principal_arn(arn)
            .set_kubernetes_groups(Some(groups.iter().map(ToString::to_string).collect()))
            .send()
            .await
            .expect("entry");
    }

    async fn make_admin(&self, arn: &str) {
        eks(&self.strict)
            .associate_access_policy()
            .cluster_name("shop-green")
            .principal_arn(arn)
            .policy_arn("arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy")
            .access_scope(
                AccessScope::builder()
                    .r#type(AccessScopeType::Cluster)
                    .build(),
            )
            .send()
            .await
            .expect("policy");
    }
}

fn pem_der(pem: &str) -> Vec<u8> {
    let body: String = pem.lines().filter(|l| !l.starts_with("-----")).collect();
    base64::engine::general_purpose::STANDARD
        .decode(body)
        .expect("pem")
}

#[tokio::test]
async fn only_who_has_an_access_entry_gets_in_and_only_with_a_token_for_this_cluster() {
    let world = world().await;
    let arn = role(&world.strict, "ops", "ec2.amazonaws.com").await;
    let key = world.assume("ops").await;
    assert_eq!(
        world.list(token(&key, "shop-green")).await,
        401,
        "no access entry yet"
    );
    world.entry(&arn, &["viewers"]).await;
    eventually("known, but without rights", || async {
        (world.list(token(&key, "shop-green")).await == 403).then_some(())
    })
    .await;
    world.make_admin(&arn).await;
    eventually("admin", || async {
        (world.list(token(&key, "shop-green")).await == 200).then_some(())
    })
    .await;
    assert_eq!(
        world.list(token(&key, "another-cluster")).await,
        401,
        "the token is for another cluster"
    );
    let forged = Credentials::new(key.access_key_id(), "guessed", None, None, "bench");
    assert_eq!(
        world.list(token(&forged, "shop-green")).await,
        401,
        "the secret is wrong"
    );
    assert_eq!(world.list("k8s-aws-v1.nonsense".into()).await, 401);
    // An IAM user's own key is learnt as IAM hands it out.
    let iam = iam(&world.strict);
    let user = iam
        .create_user()
        .user_name("ann")
        .send()
        .await
        .expect("user")
        .user
        .expect("user");
    let made = iam
        .create_access_key()
        .user_name("ann")
        .send()
        .await
        .expect("key")
        .access_key
        .expect("key");
    let ann = Credentials::new(
        made.access_key_id,
        made.secret_access_key,
        None,
        None,
        "bench",
    );
    world.entry(&user.arn, &[]).await;
    world.make_admin(&user.arn).await;
    assert_eq!(world.list(token(&ann, "shop-green")).await, 200);
    // A role of the same name made again is another principal (eks.md 1.4).
    iam.delete_role()
        .role_name("ops")
        .send()
        .await
        .expect("deleted");
    role(&world.strict, "ops", "ec2.amazonaws.com").await;
    let again = world.assume("ops").await;
    assert_eq!(world.list(token(&again, "shop-green")).await, 401);
}

#[tokio::test]
async fn a_node_groups_nodes_come_and_go_on_the_real_api_server() {
    let world = world().await;
    let _nodes = nodes::start(&world.strict, &world.green.kubeconfig(User::Bench));
    let api = eks(&world.strict);
    let cluster = api
        .describe_cluster()
        .name("shop-green")
        .send()
        .await
        .expect("described")
        .cluster
        .expect("cluster");
    let subnets = cluster
        .resources_vpc_config
        .expect("vpc")
        .subnet_ids
        .expect("subnets");
    let node_role = role(&world.strict, "node", "ec2.amazonaws.com").await;
    api.create_nodegroup()
        .cluster_name("shop-green")
        .nodegroup_name("spot")
        .node_role(node_role)
        .set_subnets(Some(subnets[..2].to_vec()))
        .instance_types("m5.large")
        .labels("workload", "spot")
        .taints(
            Taint::builder()
                .key("workload")
                .value("spot")
                .effect(TaintEffect::NoSchedule)
                .build(),
        )
        .scaling_config(
            NodegroupScalingConfig::builder()
                .min_size(1)
                .max_size(4)
                .desired_size(2)
                .build(),
        )
        .send()
        .await
        .expect("group");
    let nodes: Api<Node> = Api::all(world.green.client().await.expect("client"));
    let count = |n: usize| {
        let nodes = nodes.clone();
        async move {
            let list = nodes
                .list(&ListParams::default())
                .await
                .expect("nodes")
                .items;
            let ready = list
                .iter()
                .all(|n| n.status.as_ref().is_some_and(|s| s.capacity.is_some()));
            (list.len() == n && ready).then_some(list)
        }
    };
    let two = eventually("two nodes", || count(2)).await;
    let label = |n: &Node, key: &str| {
        n.metadata
            .labels
            .as_ref()
            .and_then(|l| l.get(key))
            .cloned()
            .unwrap_or_default()
    };
    let zones: BTreeSet<String> = two
        .iter()
        .map(|n| label(n, "topology.kubernetes.io/zone"))
        .collect();
    assert_eq!(
        zones.into_iter().collect::<Vec<_>>(),
        ["eu-west-1a", "eu-west-1b"]
    );
    for node in &two {
        assert_eq!(label(node, "workload"), "spot");
        assert_eq!(label(node, "eks.amazonaws.com/nodegroup"), "spot");
        let taints = node
            .spec
            .as_ref()
            .and_then(|s| s.taints.clone())
            .unwrap_or_default();
        assert!(
            taints
                .iter()
                .any(|t| t.key == "workload" && t.effect == "NoSchedule"),
            "{taints:?}"
        );
        let pods = node
            .status
            .as_ref()
            .and_then(|s| s.capacity.as_ref())
            .and_then(|c| c.get("pods"))
            .expect("pods");
        assert_eq!(pods.0, "29");
    }
    api.update_nodegroup_config()
        .cluster_name("shop-green")
        .nodegroup_name("spot")
        .scaling_config(NodegroupScalingConfig::builder().desired_size(3).build())
        .send()
        .await
        .expect("scaled");
    eventually("three nodes", || count(3)).await;
    tokio::time::sleep(DELAY).await;
    api.delete_nodegroup()
        .cluster_name("shop-green")
        .nodegroup_name("spot")
        .send()
        .await
        .expect("deleted");
    eventually("no nodes", || count(0)).await;
    assert!(world.dir.path().exists());
}
