//! The rooms "kubelet", "lb", "dns" and "traffic" on real API servers, with a real ExternalDNS and a real database: what
//! the company's users and operators see.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;
use testkit::apps::{KNOWN_IMAGES, Observed};
use testkit::bench::{Bench, BenchOptions};
use testkit::dns::{Authority, AuthorityConfig, Mode, Resolver};
use testkit::fixture::{self, Fixture};
use testkit::kubelet::{self, AwsEnv, ProcessKubelet};
use testkit::lb;
use testkit::net::BenchNet;
use testkit::servers::kwok::Kwok;
use testkit::servers::{Side, TestCa, User, paths, postgres};
use testkit::traffic::{Clients, ClientsConfig, Target, Writers, WritersConfig};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// The smallest stand-in for the strict layer's CONNECT side: ends TLS and hands the bytes to the emulator.
async fn connect_proxy(ca: &TestCa, emulator: SocketAddr) -> SocketAddr {
    let names = [
        "route53.amazonaws.com",
        "*.amazonaws.com",
        "*.eu-west-1.amazonaws.com",
    ];
    let (cert, key) = ca.issue(&names, &[]).unwrap();
    use rustls_pki_types::pem::PemObject;
    let certs = rustls_pki_types::CertificateDer::pem_slice_iter(cert.as_bytes())
        .map(Result::unwrap)
        .collect();
    let key = rustls_pki_types::PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certs, key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let mut line = String::new();
                while stream.read_line(&mut line).await.is_ok_and(|read| read > 2) {
                    line.clear();
                }
                stream
                    .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    .await
                    .ok()?;
                let mut tls = acceptor.accept(stream.into_inner()).await.ok()?;
                let mut upstream = TcpStream::connect(emulator).await.ok()?;
                tokio::io::copy_bidirectional(&mut tls, &mut upstream)
                    .await
                    .ok()
            });
        }
    });
    addr
}

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
    let options = BenchOptions {
        load_fixture: false,
        ..BenchOptions::default()
    };
    let bench = Bench::start(options).await.unwrap();
    let fixture = Fixture::shop();
    let net = BenchNet::start().await.unwrap();
    let database = bench.database(Side::Blue);
    net.register(
        "10.20.0.5:5432",
        SocketAddr::from(([127, 0, 0, 1], database.port())),
    );
    database
        .execute(&fixture.text("sql/schema.sql").unwrap())
        .await
        .unwrap();
    database
        .execute(&fixture.text("sql/seed.sql").unwrap())
        .await
        .unwrap();
    let zone = fixture::aws::load_zone(&fixture, &bench.aws_endpoint())
        .await
        .unwrap();
    println!("zone {zone}");

    let plane = bench.control_plane(Side::Blue);
    let client = plane.client().await.unwrap();
    let images: Vec<String> = KNOWN_IMAGES.map(str::to_owned).to_vec();
    fixture::cluster::create_nodes(
        &client,
        &fixture.yaml("nodes.yaml").unwrap(),
        &Default::default(),
    )
    .await
    .unwrap();
    let _kwok = Kwok::start(plane, bench.workdir(), &images).await.unwrap();

    let ca = TestCa::new().unwrap();
    let ca_file = bench.workdir().join("aws-ca.pem");
    std::fs::write(&ca_file, ca.pem()).unwrap();
    let emulator: SocketAddr = bench
        .aws_endpoint()
        .trim_start_matches("http://")
        .replace("localhost", "127.0.0.1")
        .parse()
        .unwrap();
    let proxy = connect_proxy(&ca, emulator).await;
    let observed = Observed::default();
    let work_dir: PathBuf = bench.workdir().join("process-kubelet");
    let kubelet = ProcessKubelet::start(kubelet::Config {
        side: "blue".to_owned(),
        kubeconfig: plane.kubeconfig(User::Kubelet),
        net: net.clone(),
        observed: observed.clone(),
        external_dns: BTreeMap::from([(
            "v0.10.2".to_owned(),
            paths::binary("external-dns-0.10.2", "external-dns").unwrap(),
        )]),
        aws: AwsEnv {
            endpoint: bench.aws_endpoint(),
            proxy: format!("http://{proxy}"),
            ca_file,
            region: "eu-west-1".to_owned(),
        },
        work_dir: work_dir.clone(),
    })
    .await
    .unwrap();
    let balancers = lb::start(lb::Config::shop(
        "blue",
        plane.kubeconfig(User::LoadBalancers),
        net.clone(),
    ))
    .await
    .unwrap();

    fixture::cluster::apply(&client, &fixture.objects().unwrap())
        .await
        .unwrap();
    let start = Instant::now();
    fixture::cluster::wait_ready(
        &client,
        &["storefront", "orders", "platform"],
        Duration::from_secs(60),
    )
    .await
    .unwrap();
    println!("all workloads ready after {:?}", start.elapsed());
    let needle = work_dir.display().to_string();
    assert_eq!(external_dns_processes(&needle), 1);
    assert_eq!(observed.consumers_alive().len(), 1);

    // ExternalDNS itself writes the names; the authoritative server follows.
    let authority = Authority::start(AuthorityConfig::new(&bench.aws_endpoint(), net.clone()))
        .await
        .unwrap();
    let hosts = [
        "www.shop.test",
        "m.shop.test",
        "gateway.shop.test",
        "status.shop.test",
        "orders.shop.test",
        "pay.shop.test",
    ];
    for host in hosts {
        until(host, Duration::from_secs(30), async || {
            authority.refreshed().await;
            let answer =
                testkit::dns::query(authority.addr(), host, hickory_proto::rr::RecordType::A)
                    .await
                    .unwrap();
            !answer.answers.is_empty()
        })
        .await;
    }
    let honest = Resolver::start(authority.addr(), Mode::TtlTrue)
        .await
        .unwrap();
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
    assert!(balancers.meter().host("www.shop.test").requests > 20);
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

    kubelet.stop().await;
    until("no process left", Duration::from_secs(5), async || {
        external_dns_processes(&needle) == 0
    })
    .await;
    assert_eq!(observed.consumer_overlaps(), vec![]);
}
