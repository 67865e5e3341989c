//! A whole bench: it starts, holds the company, and leaves nothing behind.

use std::time::Instant;

use serde_json::Value;
use testkit::Result;
use testkit::bench::{Bench, BenchOptions};
use testkit::fixture::{Fixture, MANAGED_NAMES};
use testkit::servers::{Side, User, http, kube, postgres};

/// Command lines of all processes on this machine that mention `needle`.
fn processes_with(needle: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let Ok(bytes) = std::fs::read(entry.path().join("cmdline")) else {
            continue;
        };
        let line = String::from_utf8_lossy(&bytes).replace('\0', " ");
        if line.contains(needle) {
            found.push(line);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bench_starts_with_the_company_in_it_and_leaves_nothing_behind() -> Result<()> {
    let _ = tracing_subscriber::fmt()
        .with_env_filter("warn,kube_client=off,testkit=info")
        .with_test_writer()
        .try_init();
    let start = Instant::now();
    let mut bench = Bench::start(BenchOptions::default()).await?;
    println!("up after {:?}", start.elapsed());
    bench.check_alive()?;

    for (side, version) in [(Side::Blue, "v1.21.14"), (Side::Green, "v1.36.3")] {
        let client = bench.control_plane(side).client().await?;
        let info = client.apiserver_version().await.expect("version");
        assert_eq!(info.git_version, version);
    }

    for host in MANAGED_NAMES {
        let (status, side) = ask(&bench, "GET", host, "/", "").await;
        assert_eq!((status, side.as_deref()), (200, Some("blue")), "{host}");
    }
    only_the_old_ownership_format_and_nobody_elses_record_changed(&bench);
    an_order_reaches_blues_database(&bench).await;
    kubelets_and_balancers_do_not_write_as_the_operator(&bench).await;

    let folder = bench.workdir().to_owned();
    let needle = folder.display().to_string();
    assert!(
        processes_with(&needle).len() >= 9,
        "etcd, 2 x 3 of Kubernetes, 2 databases"
    );
    let emulator = bench.aws_endpoint();
    let start = Instant::now();
    drop(bench);
    println!("down after {:?}", start.elapsed());
    assert_eq!(processes_with(&needle), Vec::<String>::new());
    assert!(!folder.exists(), "{needle} is still there");
    let port = emulator
        .rsplit_once(':')
        .expect("port")
        .1
        .parse::<u16>()
        .expect("port");
    assert!(
        std::net::TcpStream::connect(("127.0.0.1", port)).is_err(),
        "the emulator still answers"
    );
    Ok(())
}

/// As a client does: the name through a resolver, the request to the address. Status and `x-served-by`.
async fn ask(
    bench: &Bench,
    method: &str,
    host: &str,
    path: &str,
    body: &'static str,
) -> (u16, Option<String>) {
    let addresses = bench
        .resolver()
        .lookup(host)
        .await
        .expect("the name resolves");
    let target = format!("http://{}{path}", addresses[0]);
    let headers = [("host", host), ("content-type", "application/json")];
    let answer = http::send(&bench.gateway(), method, &target, &headers, body)
        .await
        .expect("an answer");
    (
        answer.status,
        answer.header("x-served-by").map(String::from),
    )
}

fn only_the_old_ownership_format_and_nobody_elses_record_changed(bench: &Bench) {
    let sets = bench.record_sets();
    for name in MANAGED_NAMES {
        let owned: Vec<_> = sets
            .iter()
            .filter(|s| s.rtype == "TXT" && s.name.ends_with(&format!("{name}.")))
            .collect();
        // externaldns.md: 0.10 writes one TXT of the record's own name, no `a-` prefix.
        assert_eq!(owned.len(), 1, "{name}");
        assert!(owned[0].values[0].contains("external-dns/owner=shop-blue"));
        let address = sets
            .iter()
            .find(|s| s.rtype == "A" && s.name == format!("{name}."))
            .expect("an address record");
        if name.starts_with("orders") || name.starts_with("pay") {
            let alias = address.alias.as_ref().expect("an alias to a load balancer");
            assert_eq!(
                alias.zone_id, "Z32O12XQLNTSW2",
                "the zone of load balancers in eu-west-1"
            );
        } else {
            assert_eq!(address.ttl, Some(20), "{name}: the Ingress's annotation");
            assert_eq!(address.values, ["203.0.113.10"]);
        }
    }
    let foreign = Fixture::shop().json("zone.json").expect("zone");
    for record in foreign["ResourceRecordSets"].as_array().expect("list") {
        let found = sets
            .iter()
            .find(|s| record["Name"] == *s.name && record["Type"] == *s.rtype)
            .unwrap_or_else(|| panic!("{record} is gone"));
        assert_eq!(Some(&Value::from(found.ttl)), record.get("TTL"));
        assert_eq!(record["ResourceRecords"][0]["Value"], found.values[0]);
    }
}

async fn an_order_reaches_blues_database(bench: &Bench) {
    let order = r#"{"client":"bench-test","seq":7}"#;
    let (status, side) = ask(bench, "POST", "orders.shop.test", "/orders", order).await;
    assert_eq!((status, side.as_deref()), (201, Some("blue")));
    for (side, expected) in [(Side::Blue, 1_i64), (Side::Green, 0)] {
        let database = postgres::connect(&bench.database(side).superuser_url())
            .await
            .expect("database");
        let count: i64 = match database
            .query_one(
                "SELECT count(*) FROM orders WHERE client = 'bench-test' AND seq = 7",
                &[],
            )
            .await
        {
            Ok(row) => row.get(0),
            Err(error)
                if side == Side::Green && error.code().is_some_and(|c| c.code() == "42P01") =>
            {
                0
            }
            Err(error) => panic!("{}: {error}", side.name()),
        };
        assert_eq!(count, expected, "{}", side.name());
    }
}

/// Promise 2 is proven by the audit log: it must tell the migrating person from everybody else.
async fn kubelets_and_balancers_do_not_write_as_the_operator(bench: &Bench) {
    let users = || -> Vec<String> {
        let log = std::fs::read_to_string(bench.audit_log(Side::Blue)).expect("audit log");
        log.lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter_map(|event| event["user"]["username"].as_str().map(String::from))
            .collect()
    };
    let operator = User::Operator.name();
    assert!(!users().iter().any(|u| u == operator));
    assert!(users().iter().any(|u| u == User::Kubelet.name()));
    let client = kube::client(&bench.blue_kubeconfig())
        .await
        .expect("client");
    let maps: ::kube::Api<k8s_openapi::api::core::v1::ConfigMap> =
        ::kube::Api::namespaced(client, "platform");
    let patch = serde_json::json!({"metadata": {"labels": {"touched": "yes"}}});
    maps.patch(
        "consumer-config",
        &Default::default(),
        &::kube::api::Patch::Merge(&patch),
    )
    .await
    .expect("the operator may write on blue");
    assert!(users().iter().any(|u| u == operator));
}
