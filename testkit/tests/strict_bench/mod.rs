//! The strict layer before a real emulator, with the AWS SDK's clients on it.
#![allow(dead_code)] // each test file uses its own part

use std::time::Duration;

use aws_credential_types::Credentials;
use testkit::servers::ministack::{ACCOUNT, MiniStack, REGION};
use testkit::strict::{Config, GreenEndpoint, Strict};
use testkit::{Result, TestCa};

pub struct Layer {
    pub strict: Strict,
    pub ca: TestCa,
    pub emulator: MiniStack,
    pub dir: tempfile::TempDir,
}

/// Delays long enough to be seen and short enough to wait for.
pub const DELAY: Duration = Duration::from_millis(400);

pub async fn layer() -> Result<Layer> {
    layer_for("https://127.0.0.1:1").await
}

pub async fn layer_for(green: &str) -> Result<Layer> {
    let dir = tempfile::tempdir().expect("folder");
    let emulator = MiniStack::start(dir.path()).await?;
    let ca = TestCa::new()?;
    let strict = Strict::start(Config {
        upstream: emulator.endpoint().to_owned(),
        account: ACCOUNT.to_owned(),
        region: REGION.to_owned(),
        insync_delay: DELAY,
        cluster_delay: DELAY,
        nodegroup_delay: DELAY,
        addon_delay: DELAY,
        green: GreenEndpoint {
            url: green.to_owned(),
            ca_pem: ca.pem().to_owned(),
        },
        ca: ca.clone(),
    })
    .await?;
    Ok(Layer {
        strict,
        ca,
        emulator,
        dir,
    })
}

macro_rules! client {
    ($name:ident, $sdk:ident) => {
        pub fn $name(strict: &Strict) -> $sdk::Client {
            $sdk::Client::from_conf(
                $sdk::Config::builder()
                    .behavior_version($sdk::config::BehaviorVersion::v2026_01_12())
                    .region($sdk::config::Region::from_static(REGION))
                    .endpoint_url(strict.endpoint())
                    .credentials_provider(Credentials::new("test", "test", None, None, "bench"))
                    .retry_config($sdk::config::retry::RetryConfig::disabled())
                    .build(),
            )
        }
    };
}

client!(route53, aws_sdk_route53);
client!(eks, aws_sdk_eks);
client!(iam, aws_sdk_iam);
client!(ec2, aws_sdk_ec2);
client!(sts, aws_sdk_sts);

/// Polls until `done` gives a value; panics with `what` after ten seconds.
pub async fn eventually<T, F>(what: &str, mut done: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    for _ in 0..100 {
        if let Some(value) = done().await {
            return value;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("never happened: {what}");
}

pub fn trust(service: &str) -> String {
    format!(
        r#"{{"Version":"2012-10-17","Statement":[{{"Effect":"Allow","Principal":{{"Service":"{service}"}},"Action":["sts:AssumeRole","sts:TagSession"]}}]}}"#
    )
}

/// A role; returns its ARN.
pub async fn role(strict: &Strict, name: &str, service: &str) -> String {
    iam(strict)
        .create_role()
        .role_name(name)
        .assume_role_policy_document(trust(service))
        .send()
        .await
        .expect("role")
        .role
        .expect("role")
        .arn
}

/// A VPC 10.0.0.0/16 and subnets in zones a, b and again a.
pub async fn network(strict: &Strict) -> (String, Vec<String>) {
    let ec2 = ec2(strict);
    let vpc = ec2
        .create_vpc()
        .cidr_block("10.0.0.0/16")
        .send()
        .await
        .expect("vpc");
    let vpc = vpc.vpc.and_then(|v| v.vpc_id).expect("vpc id");
    let mut subnets = Vec::new();
    for (n, zone) in ["a", "b", "a"].iter().enumerate() {
        let subnet = ec2
            .create_subnet()
            .vpc_id(&vpc)
            .cidr_block(format!("10.0.{n}.0/24"))
            .availability_zone(format!("{REGION}{zone}"))
            .send()
            .await
            .expect("subnet");
        subnets.push(subnet.subnet.and_then(|s| s.subnet_id).expect("subnet id"));
    }
    (vpc, subnets)
}
