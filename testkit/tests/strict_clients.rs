//! Real, unmodified clients on the strict layer: ExternalDNS 0.10.2 (SDK for Go v1, HTTPS through the CONNECT proxy)
//! and 0.21.0 (v2, AWS_ENDPOINT_URL). bench.md 3

mod strict_bench;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use strict_bench::{Layer, layer, route53};
use testkit::servers::etcd::Etcd;
use testkit::servers::kube::{self as planes, ControlPlane, Side, User};
use testkit::servers::paths;
use testkit::servers::ports::Port;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;

async fn zone(layer: &Layer) -> String {
    let made = route53(&layer.strict)
        .create_hosted_zone()
        .name("example.com")
        .caller_reference("one")
        .send()
        .await
        .expect("zone");
    made.hosted_zone.expect("zone").id
}

/// Source `fake` wishes for ten random names, below example.com, others at each start.
async fn run(
    program: &Path,
    layer: &Layer,
    owner: &str,
    source: &str,
    env: &[(&str, String)],
) -> String {
    let output = Command::new(program)
        .args([
            "--provider=aws",
            "--registry=txt",
            "--policy=sync",
            "--domain-filter=example.com",
            "--aws-zone-type=public",
            "--once",
            "--log-level=debug",
            "--metrics-address=127.0.0.1:0",
        ])
        .arg(format!("--txt-owner-id={owner}"))
        .arg(format!("--source={source}"))
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", layer.dir.path())
        .env("AWS_ACCESS_KEY_ID", "EDNS")
        .env("AWS_SECRET_ACCESS_KEY", "bench")
        .env("AWS_REGION", "eu-west-1")
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .envs(env.iter().map(|(k, v)| (*k, v.as_str())))
        .stdin(Stdio::null())
        .output()
        .await
        .expect("ExternalDNS starts");
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "ExternalDNS failed:\n{log}");
    log
}

fn proxied(layer: &Layer) -> Vec<(&'static str, String)> {
    let ca = layer.dir.path().join("ca.pem");
    std::fs::write(&ca, layer.ca.pem()).expect("CA file");
    vec![
        ("HTTPS_PROXY", layer.strict.proxy()),
        ("NO_PROXY", "127.0.0.1".into()),
        ("SSL_CERT_FILE", ca.display().to_string()),
    ]
}

fn program(version: &str) -> PathBuf {
    paths::binary(&format!("external-dns-{version}"), "external-dns")
        .expect("run the bench's build first")
}

#[tokio::test]
async fn external_dns_0_10_2_writes_and_removes_its_records_through_the_connect_proxy() {
    let layer = layer().await.expect("layer");
    zone(&layer).await;
    let program = program("0.10.2");
    let env = proxied(&layer);
    run(&program, &layer, "shop-blue", "fake", &env).await;
    let zone = layer.strict.zones().remove(0);
    let (records, texts): (Vec<_>, Vec<_>) = zone
        .records
        .values()
        .filter(|r| r.name != "example.com.")
        .partition(|r| r.rtype == "A");
    assert!(!records.is_empty());
    // One TXT a name, in the old format: the very name of the record (externaldns.md 1.3).
    assert_eq!(records.len(), texts.len());
    assert!(
        texts
            .iter()
            .all(|t| t.values[0].contains("external-dns/owner=shop-blue") && t.ttl == Some(300))
    );
    run(&program, &layer, "shop-blue", "fake", &env).await;
    let now = layer.strict.zones().remove(0);
    assert!(
        records
            .iter()
            .chain(&texts)
            .all(|r| !now.records.contains_key(&r.key())),
        "sync deletes what it owns and no longer wishes for"
    );
    assert_eq!(now.records.len(), zone.records.len());
    let calls = layer.strict.calls();
    assert!(
        calls.iter().all(|c| c.who != "EDNS" || c.status == 200),
        "{calls:?}"
    );
    assert!(
        calls
            .iter()
            .any(|c| c.who == "EDNS" && c.action == "ChangeResourceRecordSets" && c.changed)
    );
}

/// A Service whose load balancer has an address, on green's real API server.
async fn service(green: &ControlPlane) {
    let services: Api<Service> = Api::namespaced(green.client().await.expect("client"), "default");
    let wanted: Service = serde_json::from_value(json!({
        "metadata": {
            "name": "web",
            "annotations": {"external-dns.alpha.kubernetes.io/hostname": "web.example.com"},
        },
        "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]},
    }))
    .expect("service");
    services
        .create(&PostParams::default(), &wanted)
        .await
        .expect("created");
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "198.51.100.10"}]}}});
    services
        .patch_status("web", &PatchParams::default(), &Patch::Merge(status))
        .await
        .expect("status");
}

#[tokio::test]
async fn external_dns_0_21_0_leaves_another_owners_records_alone() {
    let layer = layer().await.expect("layer");
    zone(&layer).await;
    run(
        &program("0.10.2"),
        &layer,
        "shop-blue",
        "fake",
        &proxied(&layer),
    )
    .await;
    let blue = layer.strict.zones().remove(0).records;
    let etcd = Etcd::start(layer.dir.path()).await.expect("etcd");
    let green = ControlPlane::start(planes::Options {
        side: Side::Green,
        dir: layer.dir.path(),
        etcd: &etcd,
        port: Port::reserve().expect("port"),
        ca: layer.ca.clone(),
        token_webhook: None,
    })
    .await
    .expect("green");
    service(&green).await;
    let env = [
        ("AWS_ENDPOINT_URL", layer.strict.endpoint()),
        (
            "EXTERNAL_DNS_KUBECONFIG",
            green.kubeconfig(User::Bench).display().to_string(),
        ),
        ("EXTERNAL_DNS_SERVICE_TYPE_FILTER", "LoadBalancer".into()),
    ];
    run(&program("0.21.0"), &layer, "shop-green", "service", &env).await;
    let zone = layer.strict.zones().remove(0);
    assert!(
        blue.iter()
            .all(|(key, record)| zone.records.get(key) == Some(record)),
        "green touched what is blue's"
    );
    let a = zone.find("web.example.com", "A").expect("green's record");
    assert_eq!(
        (a.values.as_slice(), a.ttl),
        (["198.51.100.10".to_owned()].as_slice(), Some(300))
    );
    // Typed ownership only, no TXT at the name itself (externaldns.md 1.3).
    let owner = zone.find("a-web.example.com", "TXT").expect("typed TXT");
    assert!(
        owner.values[0].contains("external-dns/owner=shop-green"),
        "{owner:?}"
    );
    assert!(zone.find("web.example.com", "TXT").is_none());
    // A second round has nothing to do.
    let log = run(&program("0.21.0"), &layer, "shop-green", "service", &env).await;
    assert!(log.contains("All records are already up to date"), "{log}");
}

#[tokio::test]
async fn the_proxy_leads_to_aws_only() {
    let layer = layer().await.expect("layer");
    let address = layer.strict.proxy().replace("http://", "");
    let mut stream = TcpStream::connect(address).await.expect("proxy");
    stream
        .write_all(b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n")
        .await
        .expect("request");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.expect("answer");
    assert_eq!(&answer, b"HTTP/1.1 403");
}
