//! The rooms "kubelet", "lb", "dns" and "traffic" on real API servers, with a real ExternalDNS and a real database: what
//! the company's users and operators see.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;
use testkit::bench::{Bench, BenchOptions};
use testkit::dns::{Mode, Resolver};
use testkit::servers::{Side, postgres};
use testkit::traffic::{Clients, ClientsConfig, Target, Writers, WritersConfig};

async fn until<F: AsyncFnMut() -> bool>(what: &str, patience: Duration, mut reached: F) {
    let start = Instant::now();
    while !reached().await {
        assert!(
            start.elapsed() < patience,
            "not within {patience:?}: {what}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    println!("{what}: {:?}", start.elapsed());
}

fn external_dns_processes(needle: &str) -> usize {
    let folders = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = folders.filter_map(|folder| std::fs::read(folder.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).into_owned())
        .filter(|line| line.contains("external-dns") && line.contains(needle))
        .count()
}

async fn scale(client: &kube::Client, namespace: &str, name: &str, replicas: i32) {
    let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let patch = json!({"spec": {"replicas": replicas}});
    api.patch(name, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_company_on_blue_answers_its_users_by_dns_takes_their_orders_and_its_external_dns_is_a_real_process()
 {
    let _ = tracing_subscriber::fmt()
        .with_env_filter("warn,kube_client=off,testkit=debug")
        .with_test_writer()
        .try_init();
    let bench = Bench::start(BenchOptions::default()).await.unwrap();
    let (net, observed, authority) = (bench.net(), bench.observed(), bench.authority());
    let database = bench.database(Side::Blue);
    let client = bench.control_plane(Side::Blue).client().await.unwrap();
    let work_dir: PathBuf = bench.workdir().join("blue").join("kubelet");
    let needle = work_dir.display().to_string();
    assert_eq!(external_dns_processes(&needle), 1);
    assert_eq!(observed.consumers_alive().len(), 1);

    let hosts = [
        "www.shop.test",
        "m.shop.test",
        "gateway.shop.test",
        "status.shop.test",
        "orders.shop.test",
        "pay.shop.test",
    ];
    let honest = bench.resolver().clone();
    let jvm = Resolver::start(authority.addr(), Mode::Forever)
        .await
        .unwrap();
    let clients = Clients::start(ClientsConfig {
        targets: hosts.map(Target::root).to_vec(),
        resolvers: vec![
            ("honest".to_owned(), honest.clone()),
            ("jvm".to_owned(), jvm),
        ],
        gateway: net.gateway(),
        pause: Duration::from_millis(100),
    });
    let writers = Writers::start(WritersConfig {
        host: "orders.shop.test".to_owned(),
        writers: 2,
        resolver: honest,
        gateway: net.gateway(),
        pause: Duration::from_millis(50),
    });
    tokio::time::sleep(Duration::from_secs(2)).await;

    // A rolling restart under traffic: no user notices.
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "storefront");
    deployments.restart("web").await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client.clone(), "storefront");
    let of_web = ListParams::default().labels("app=web");
    until("web restarted", Duration::from_secs(60), async || {
        let now = pods.list(&of_web).await.unwrap().items;
        let deployment = deployments.get("web").await.unwrap().status.unwrap();
        deployment.observed_generation.is_some_and(|seen| seen >= 2)
            && deployment.updated_replicas == Some(3)
            && deployment.ready_replicas == Some(3)
            && now.len() == 3
            && now.iter().all(|pod| {
                pod.metadata.creation_timestamp.is_some()
                    && pod.metadata.deletion_timestamp.is_none()
            })
    })
    .await;

    // The database closes for writing: 503 with Retry-After, then open again; reads of the front go on.
    database
        .execute(
            "alter role orders set default_transaction_read_only = on;
             select pg_terminate_backend(pid) from pg_stat_activity where usename = 'orders';",
        )
        .await
        .unwrap();
    let closed_at = Timestamp::now();
    tokio::time::sleep(Duration::from_secs(1)).await;
    database
        .execute(
            "alter role orders reset default_transaction_read_only;
             select pg_terminate_backend(pid) from pg_stat_activity where usename = 'orders';",
        )
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let written = writers.stop().await;
    assert!(
        written.closed.iter().any(|at| *at >= closed_at),
        "the fence was noticed"
    );
    assert!(written.errors.is_empty(), "{:?}", written.errors);
    assert!(written.acked.len() > 40, "{}", written.acked.len());
    assert!(
        written.acked.last().unwrap().at > closed_at,
        "writing went on after the fence"
    );
    assert!(
        written.longest_pause() >= Duration::from_millis(900),
        "{:?}",
        written.longest_pause()
    );
    let db = postgres::connect(&database.superuser_url()).await.unwrap();
    let rows = db
        .query("select client, seq from orders", &[])
        .await
        .unwrap();
    let rows = rows
        .iter()
        .filter_map(|row| Some((row.try_get(0).ok()?, row.try_get(1).ok()?)));
    assert_eq!(written.missing_from(rows), vec![]);

    // The consumer moves away and nobody is left; ExternalDNS at zero replicas is really dead.
    scale(&client, "platform", "consumer", 0).await;
    scale(&client, "platform", "external-dns", 0).await;
    until(
        "consumer and ExternalDNS gone",
        Duration::from_secs(20),
        async || observed.consumers_alive().is_empty() && external_dns_processes(&needle) == 0,
    )
    .await;
    let platform: Api<Pod> = Api::namespaced(client.clone(), "platform");
    until("pods deleted", Duration::from_secs(20), async || {
        let left = platform
            .list(&ListParams::default().labels("app in (consumer,external-dns)"))
            .await
            .unwrap()
            .items;
        left.is_empty()
    })
    .await;
    scale(&client, "platform", "external-dns", 1).await;
    until("ExternalDNS back", Duration::from_secs(20), async || {
        external_dns_processes(&needle) == 1
    })
    .await;

    let seen = clients.stop();
    assert!(seen.failures().is_empty(), "{}", seen.failure_summary());
    println!("{:?}", seen.counts());
    assert_eq!(seen.last_side("pay.shop.test", "jvm"), Some("blue"));
    assert!(
        bench
            .load_balancers(Side::Blue)
            .meter()
            .host("www.shop.test")
            .requests
            > 20
    );
    assert_eq!(
        balancers
            .meter()
            .host("www.shop.test")
            .statuses
            .keys()
            .copied()
            .collect::<Vec<_>>(),
        [200]
    );

    assert_eq!(observed.consumer_overlaps(), vec![]);
    drop(bench);
    until("no process left", Duration::from_secs(5), async || {
        external_dns_processes(&needle) == 0
    })
    .await;
}
