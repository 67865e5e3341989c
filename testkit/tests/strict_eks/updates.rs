//! Updates of a cluster: one at a time, with an id, an end, and a change that is seen at the end (eks.md 1.1, 1.2).

use aws_sdk_eks::types::{
    ClusterStatus, EncryptionConfig, LogSetup, LogType, Logging, Provider, Update, UpdateStatus,
    VpcConfigRequest,
};
use testkit::strict::Fails;

use crate::strict_bench::eventually;
use crate::world::{World, code, world};

impl World {
    async fn update(&self, id: &str) -> Update {
        let found = self
            .api
            .describe_update()
            .name("green")
            .update_id(id)
            .send()
            .await;
        found.expect("update").update.expect("update")
    }

    async fn ends(&self, id: &str) -> Update {
        eventually("the update ends", || async {
            let update = self.update(id).await;
            (update.status() != Some(&UpdateStatus::InProgress)).then_some(update)
        })
        .await
    }

    async fn enabled_logs(&self) -> Vec<LogType> {
        let found = self.api.describe_cluster().name("green").send().await;
        let cluster = found.expect("cluster").cluster.expect("cluster");
        cluster
            .logging()
            .map(|l| l.cluster_logging().to_vec())
            .unwrap_or_default()
            .iter()
            .filter(|s| s.enabled() == Some(true))
            .flat_map(|s| s.types().to_vec())
            .collect()
    }
}

fn audit(enabled: bool) -> Logging {
    Logging::builder()
        .cluster_logging(
            LogSetup::builder()
                .types(LogType::Audit)
                .enabled(enabled)
                .build(),
        )
        .build()
}

#[tokio::test]
async fn an_update_runs_alone_and_is_seen_when_it_has_ended() {
    let world = world().await;
    world.cluster("green").await;
    let on = || {
        world
            .api
            .update_cluster_config()
            .name("green")
            .logging(audit(true))
            .send()
    };
    let update = on().await.expect("taken").update.expect("update");
    assert_eq!(update.status(), Some(&UpdateStatus::InProgress));
    assert_eq!(update.r#type().map(|t| t.as_str()), Some("LoggingUpdate"));
    assert!(world.enabled_logs().await.is_empty(), "not yet");
    assert_eq!(world.status("green").await, Some(ClusterStatus::Updating));
    assert_eq!(code(on().await).0, "ResourceInUseException");
    let protect = world
        .api
        .update_cluster_config()
        .name("green")
        .deletion_protection(true);
    assert_eq!(code(protect.send().await).0, "ResourceInUseException");
    let id = update.id().expect("id");
    assert_eq!(
        world.ends(id).await.status(),
        Some(&UpdateStatus::Successful)
    );
    assert_eq!(world.enabled_logs().await, [LogType::Audit]);
    assert_eq!(world.status("green").await, Some(ClusterStatus::Active));
    let (kind, message) = code(on().await);
    assert_eq!(kind, "InvalidParameterException");
    assert!(message.contains("already at the desired"), "{message}");
    let listed = world.api.list_updates().name("green").send().await;
    assert_eq!(listed.expect("updates").update_ids(), [id]);
    let two = world
        .api
        .update_cluster_config()
        .name("green")
        .logging(audit(false))
        .deletion_protection(true);
    let (kind, message) = code(two.send().await);
    assert_eq!(kind, "InvalidParameterException", "{message}");
    assert!(message.contains("Only one type of update"), "{message}");
    let unknown = world
        .api
        .describe_update()
        .name("green")
        .update_id("00000000-0000-0000-0000-000000000000");
    assert_eq!(code(unknown.send().await).0, "ResourceNotFoundException");
}

#[tokio::test]
async fn an_update_that_fails_changes_nothing_and_says_why() {
    let world = world().await;
    world.cluster("green").await;
    world.layer.strict.fail_next(
        Fails::Update,
        "green",
        "InsufficientFreeAddresses",
        "no addresses",
    );
    let private = || {
        world
            .api
            .update_cluster_config()
            .name("green")
            .resources_vpc_config(
                VpcConfigRequest::builder()
                    .endpoint_private_access(true)
                    .build(),
            )
            .send()
    };
    let update = private().await.expect("taken").update.expect("update");
    let ended = world.ends(update.id().expect("id")).await;
    assert_eq!(ended.status(), Some(&UpdateStatus::Failed));
    let error = &ended.errors()[0];
    assert_eq!(
        (
            error.error_code().map(|c| c.as_str()),
            error.error_message()
        ),
        (Some("InsufficientFreeAddresses"), Some("no addresses"))
    );
    let is_private = || async {
        let found = world.api.describe_cluster().name("green").send().await;
        let cluster = found.expect("cluster").cluster.expect("cluster");
        cluster
            .resources_vpc_config()
            .is_some_and(|v| v.endpoint_private_access)
    };
    assert!(!is_private().await);
    world.active("green").await;
    let update = private().await.expect("again").update.expect("update");
    assert_eq!(
        world.ends(update.id().expect("id")).await.status(),
        Some(&UpdateStatus::Successful)
    );
    assert!(is_private().await);
}

// eks.md 1.1: one minor at a time, and back to the version before within seven days.
#[tokio::test]
async fn a_version_goes_one_step_up_and_one_step_back() {
    let world = world().await;
    world
        .creation("green")
        .version("1.34")
        .send()
        .await
        .expect("cluster");
    world.active("green").await;
    let to = |version: &str| {
        world
            .api
            .update_cluster_version()
            .name("green")
            .version(version)
            .send()
    };
    assert_eq!(code(to("1.36").await).0, "InvalidParameterException");
    assert_eq!(
        code(to("1.33").await).0,
        "InvalidParameterException",
        "it never was 1.33"
    );
    for version in ["1.35", "1.34"] {
        let update = to(version).await.expect(version).update.expect("update");
        world.ends(update.id().expect("id")).await;
        world.active("green").await;
        let found = world.api.describe_cluster().name("green").send().await;
        let cluster = found.expect("cluster").cluster.expect("cluster");
        assert_eq!(cluster.version(), Some(version));
    }
    assert_eq!(
        code(to("1.33").await).0,
        "InvalidParameterException",
        "one step back only"
    );
    // eks.md 1.1: 1.31's extended support ended on 26 November 2026.
    let gone = world.creation("old").version("1.31");
    let (_, message) = code(gone.send().await);
    assert!(
        message.contains("unsupported Kubernetes version"),
        "{message}"
    );
    let versions = |all: bool| {
        world
            .api
            .describe_cluster_versions()
            .include_all(all)
            .send()
    };
    let named =
        |v: &aws_sdk_eks::operation::describe_cluster_versions::DescribeClusterVersionsOutput| {
            v.cluster_versions()
                .iter()
                .filter_map(|v| v.cluster_version().map(str::to_owned))
                .collect::<Vec<_>>()
        };
    assert!(!named(&versions(false).await.expect("versions")).contains(&"1.31".to_owned()));
    let all = versions(true).await.expect("versions");
    let old = all
        .cluster_versions()
        .iter()
        .find(|v| v.cluster_version() == Some("1.31"))
        .expect("shown to who asks for all");
    assert_eq!(
        old.version_status().map(|s| s.as_str()),
        Some("UNSUPPORTED")
    );
}

// eks.md 1.2: a customer key is set once and cannot be taken back.
#[tokio::test]
async fn a_key_for_secrets_is_added_once() {
    let world = world().await;
    world.cluster("green").await;
    let key = world.layer.strict.make_key().await.expect("key");
    let associate = || {
        world
            .api
            .associate_encryption_config()
            .cluster_name("green")
            .encryption_config(
                EncryptionConfig::builder()
                    .provider(Provider::builder().key_arn(&key).build())
                    .build(),
            )
            .send()
    };
    let update = associate().await.expect("taken").update.expect("update");
    assert_eq!(
        world.ends(update.id().expect("id")).await.status(),
        Some(&UpdateStatus::Successful)
    );
    let (kind, message) = code(associate().await);
    assert_eq!(kind, "InvalidParameterException");
    assert!(message.contains("already enabled"), "{message}");
}
