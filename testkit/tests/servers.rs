//! The bench's own servers, before anything is built on them.

use testkit::servers::etcd::Etcd;
use testkit::servers::kube::{self, ControlPlane, Side};
use testkit::servers::kwok::Kwok;
use testkit::servers::ministack::MiniStack;
use testkit::servers::ports::Port;
use testkit::servers::postgres::{Postgres, connect};
use testkit::{Result, TestCa, fixture};

fn init() {
    let _ = tracing_subscriber::fmt()
        .with_env_filter("warn,kube_client=off,testkit=info")
        .with_test_writer()
        .try_init();
}

#[tokio::test]
async fn the_companys_objects_apply_to_a_real_1_21_api_server_and_its_pods_run() -> Result<()> {
    init();
    let dir = tempfile::tempdir().expect("folder");
    let shop = fixture::Fixture::shop();
    let etcd = Etcd::start(dir.path()).await?;
    let blue = ControlPlane::start(kube::Options {
        side: Side::Blue,
        dir: dir.path(),
        etcd: &etcd,
        port: Port::reserve()?,
        ca: TestCa::new()?,
        token_webhook: None,
    })
    .await?;
    let client = blue.client().await?;
    let version = client.apiserver_version().await.expect("version");
    assert_eq!(version.git_version, "v1.21.14");
    fixture::cluster::create_nodes(&client, &shop.yaml("nodes.yaml")?, &Default::default()).await?;
    let _kwok = Kwok::start(&blue, dir.path(), &[]).await?;
    fixture::cluster::apply(&client, &shop.addons()?).await?;
    fixture::cluster::apply(&client, &shop.objects()?).await?;
    fixture::cluster::wait_ready(
        &client,
        &["storefront", "orders", "platform", "kube-system"],
        std::time::Duration::from_secs(60),
    )
    .await
}

#[tokio::test]
async fn what_kops_made_in_aws_loads_into_the_emulator() -> Result<()> {
    init();
    let dir = tempfile::tempdir().expect("folder");
    let emulator = MiniStack::start(dir.path()).await?;
    let shop = fixture::Fixture::shop();
    let ids = fixture::aws::load(&shop, emulator.endpoint()).await?;
    assert_ne!(ids.get("vpc-9be933fecd3db0c5c")?, "vpc-9be933fecd3db0c5c");
    let zone = fixture::aws::load_zone(&shop, emulator.endpoint()).await?;
    assert!(!zone.contains('/'), "{zone}");
    Ok(())
}

#[tokio::test]
async fn the_orders_database_takes_rows_from_the_application_but_not_with_another_password()
-> Result<()> {
    init();
    let dir = tempfile::tempdir().expect("folder");
    let shop = fixture::Fixture::shop();
    let database = Postgres::start(Side::Blue, dir.path(), &shop.database_password()?).await?;
    database.execute(&shop.text("sql/schema.sql")?).await?;
    database.execute(&shop.text("sql/seed.sql")?).await?;
    let app = connect(&database.app_url()).await?;
    app.execute("INSERT INTO orders (client, seq) VALUES ('test', 1)", &[])
        .await
        .expect("insert");
    let count: i64 = app
        .query_one("SELECT count(*) FROM orders", &[])
        .await
        .expect("count")
        .get(0);
    assert_eq!(count, 201);
    let level: String = app
        .query_one("SHOW wal_level", &[])
        .await
        .expect("wal_level")
        .get(0);
    assert_eq!(level, "logical");
    let wrong = database.app_url().replace("CANARY", "WRONG");
    assert!(connect(&wrong).await.is_err());
    Ok(())
}
