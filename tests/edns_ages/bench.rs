//! A zone behind the strict layer, a few objects behind an API server that only lists, and real ExternalDNS binaries that meet there.

use aws_config::BehaviorVersion;
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use crossfade::edns::{self, Config, Group, switch};
use crossfade::world::dns::{Change, Dns, RecordSet, Zone};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::TestCa;
use testkit::servers::paths;
use testkit::strict::{self, GreenEndpoint, Strict};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::process::Command;

/// The ages that can be had (bench.md 2): legacy TXTs, both formats, typed TXTs alone.
pub const AGES: [&str; 3] = ["0.10.2", "0.14.2", "0.21.0"];
/// Green's age.
pub const GREEN: &str = "0.21.0";
pub const BLUE_IP: &str = "203.0.113.10";
pub const GREEN_IP: &str = "198.51.100.10";
pub const BLUE_LB: &str = "ablue-1.eu-west-1.elb.amazonaws.com";
pub const GREEN_LB: &str = "agreen-2.eu-west-1.elb.amazonaws.com";
pub const ALPHA: &str = "external-dns.alpha.kubernetes.io";

pub struct Bench {
    pub strict: Strict,
    pub dns: Arc<dyn Dns>,
    pub zone: Zone,
    sdk: aws_config::SdkConfig,
    ca: TestCa,
    dir: tempfile::TempDir,
    objects: Arc<Mutex<Vec<Value>>>,
    api: String,
}

/// The layer alone answers Route 53. Of what is behind it only "is there such a VPC" is asked, and the answer is always yes.
pub async fn layer(ca: &TestCa) -> Strict {
    Strict::start(strict::Config {
        upstream: serve(Arc::default()).await,
        account: "000000000000".into(),
        region: "eu-west-1".into(),
        insync_delay: Duration::from_millis(50),
        cluster_delay: Duration::ZERO,
        nodegroup_delay: Duration::ZERO,
        addon_delay: Duration::ZERO,
        green: GreenEndpoint {
            url: "https://127.0.0.1:1".into(),
            ca_pem: ca.pem().into(),
        },
        ca: ca.clone(),
    })
    .await
    .expect("the strict layer starts")
}

/// The SDK on the layer.
pub fn sdk(strict: &Strict, key: &'static str) -> aws_config::SdkConfig {
    aws_config::SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(aws_config::Region::from_static("eu-west-1"))
        .endpoint_url(strict.endpoint())
        .credentials_provider(SharedCredentialsProvider::new(Credentials::new(
            key, "test", None, None, "bench",
        )))
        .retry_config(aws_config::retry::RetryConfig::disabled())
        .build()
}

impl Bench {
    pub async fn new() -> Bench {
        let ca = TestCa::new().expect("a CA");
        let strict = layer(&ca).await;
        let sdk = sdk(&strict, "test");
        let dns = crossfade::world::live::route_53(sdk.clone(), 1000.0);
        let objects = Arc::new(Mutex::new(vec![]));
        let api = serve(objects.clone()).await;
        let mut bench = Bench {
            strict,
            dns,
            zone: Zone {
                id: String::new(),
                name: "shop.test.".into(),
                private: false,
            },
            sdk,
            ca,
            dir: tempfile::tempdir().expect("a folder"),
            objects,
            api,
        };
        bench.zone = bench.zone_named("shop.test", false).await;
        bench
    }

    /// One more zone.
    pub async fn zone_named(&self, name: &str, private: bool) -> Zone {
        let client = aws_sdk_route53::Client::new(&self.sdk);
        let mut request = client
            .create_hosted_zone()
            .name(name)
            .caller_reference(format!("{name}-{private}"));
        if private {
            let vpc = aws_sdk_route53::types::Vpc::builder()
                .vpc_id("vpc-1")
                .vpc_region(aws_sdk_route53::types::VpcRegion::EuWest1)
                .build();
            request = request.vpc(vpc);
        }
        let made = request
            .send()
            .await
            .expect("a zone")
            .hosted_zone
            .expect("a zone");
        Zone {
            id: made.id.trim_start_matches("/hostedzone/").into(),
            name: format!("{name}."),
            private,
        }
    }

    /// The records of the zone, but for NS and SOA.
    pub async fn records(&self) -> Vec<RecordSet> {
        self.records_of(&self.zone).await
    }
    pub async fn records_of(&self, zone: &Zone) -> Vec<RecordSet> {
        let mut all = self.dns.records(&zone.id).await.expect("a listing");
        all.retain(|r| !matches!(r.rtype.as_str(), "NS" | "SOA"));
        all
    }
    /// The zone holds these records and no others.
    pub async fn put(&self, records: &[RecordSet]) {
        let changes = switch::batch(&self.records().await, records);
        self.change(&changes).await;
    }
    pub async fn change(&self, changes: &[Change]) {
        if !changes.is_empty() {
            self.dns
                .change(&self.zone.id, changes, "a test")
                .await
                .expect("a batch");
        }
    }
    /// What the API server lists.
    pub fn objects(&self, objects: &[Value]) {
        *self.objects.lock().unwrap() = objects.to_vec();
    }
    pub fn current_objects(&self) -> Vec<Value> {
        self.objects.lock().unwrap().clone()
    }

    /// One round of the real binary; whether it was content, and its log.
    pub async fn run(&self, version: &str, args: &[&str]) -> (bool, String) {
        let ca = self.dir.path().join("ca.pem");
        std::fs::write(&ca, self.ca.pem()).expect("the CA's file");
        let program = paths::binary(&format!("external-dns-{version}"), "external-dns")
            .expect("run the bench's build first");
        // KUBECONFIG is not read, and without a file --server is not enough (bench.md 3).
        let kubeconfig = self.dir.path().join("kubeconfig");
        let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "x", "cluster": {"server": self.api}}],
            "users": [{"name": "x", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}]});
        std::fs::write(&kubeconfig, config.to_string()).expect("the kubeconfig");
        let mut command = Command::new(program);
        command
            .args(args)
            .args([
                "--once",
                "--log-level=debug",
                "--metrics-address=127.0.0.1:0",
            ])
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.dir.path())
            .env("AWS_ACCESS_KEY_ID", "EDNS")
            .env("AWS_SECRET_ACCESS_KEY", "bench")
            .env("AWS_REGION", "eu-west-1")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        if version == GREEN {
            command.env("AWS_ENDPOINT_URL", self.strict.endpoint());
        } else {
            // Before 0.15.1 the endpoint cannot be told: through the CONNECT proxy (bench.md 3).
            command
                .env("HTTPS_PROXY", self.strict.proxy())
                .env("NO_PROXY", "127.0.0.1")
                .env("SSL_CERT_FILE", &ca);
        }
        let output = tokio::time::timeout(Duration::from_secs(60), command.output())
            .await
            .expect("ExternalDNS ends its round")
            .expect("ExternalDNS starts");
        let log = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = log.lines().filter(|l| !l.contains("config: {")).collect();
        (output.status.success(), lines.join("\n"))
    }

    /// One round of the binary, which must leave the zone as the model of that version says; answers the zone then.
    pub async fn agree(&self, version: &str, args: &[&str]) -> Vec<RecordSet> {
        let before = self.records().await;
        let (_, predicted) = self.model(version, args, &before);
        let (_, log) = self.run(version, args).await;
        let after = self.records().await;
        assert_eq!(
            sorted(&after),
            sorted(&predicted),
            "{version} {args:?}: left is what ExternalDNS did, right what the model said. Its log:\n{log}"
        );
        after
    }

    /// What the model of a version would change, and the zone after it.
    pub fn model(
        &self,
        version: &str,
        args: &[&str],
        records: &[RecordSet],
    ) -> (Vec<Change>, Vec<RecordSet>) {
        let config = config(version, args);
        let wanted = edns::desired(self.current_objects(), &config);
        let groups = edns::plan_groups(&config, records, &wanted, &self.zone);
        let changes = groups.iter().flat_map(|g| g.changes.clone()).collect();
        (changes, apply(&config, records, groups))
    }
}

/// Configuration of an instance, as the model reads its arguments.
pub fn config(version: &str, args: &[&str]) -> Config {
    let args: Vec<String> = args.iter().map(|a| a.to_string()).collect();
    Config::from_args(
        &format!("registry.k8s.io/external-dns/external-dns:v{version}"),
        &args,
    )
    .expect("a valid configuration")
}

pub fn sorted(records: &[RecordSet]) -> Vec<RecordSet> {
    let mut all = records.to_vec();
    all.sort_by_key(RecordSet::key);
    all
}

/// A zone after these groups, each all or nothing as Route 53 has it; up to 0.13.3 all in one batch (externaldns.md 4).
fn apply(config: &Config, records: &[RecordSet], mut groups: Vec<Group>) -> Vec<RecordSet> {
    if !config.version.at_least(13, 4) && !groups.is_empty() {
        let changes = groups.into_iter().flat_map(|g| g.changes).collect();
        groups = vec![Group {
            name: String::new(),
            changes,
        }];
    }
    let mut zone: BTreeMap<_, RecordSet> = records.iter().map(|r| (r.key(), r.clone())).collect();
    for g in groups {
        let mut next = zone.clone();
        let refused = g.changes.iter().any(|c| {
            let r = switch::record_of(c);
            match c {
                Change::Delete(_) => next.remove(&r.key()).as_ref() != Some(r),
                Change::Create(_) => next.insert(r.key(), r.clone()).is_some(),
                Change::Upsert(_) => {
                    next.insert(r.key(), r.clone());
                    false
                }
            }
        });
        let clash = next.values().any(|c| {
            c.rtype == "CNAME"
                && next
                    .values()
                    .any(|o| o.name == c.name && o.rtype != "CNAME")
        });
        if !refused && !clash {
            zone = next;
        }
    }
    zone.into_values().collect()
}

pub fn rec(name: &str, rtype: &str, ttl: u32, values: &[&str]) -> RecordSet {
    RecordSet {
        name: format!("{name}."),
        rtype: rtype.into(),
        ttl: Some(ttl),
        values: values.iter().map(|v| v.to_string()).collect(),
        alias: None,
        set_identifier: None,
        routing: BTreeMap::new(),
    }
}

pub fn txt(name: &str, owner: &str, resource: &str) -> RecordSet {
    rec(name, "TXT", 300, &[&edns::heritage_value(owner, resource)])
}

fn meta(name: &str, notes: &[(&str, &str)]) -> Value {
    let notes: serde_json::Map<String, Value> = notes
        .iter()
        .map(|(k, v)| (format!("{ALPHA}/{k}"), json!(v)))
        .collect();
    json!({"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "resourceVersion": "1", "annotations": notes})
}

/// An Ingress `ingress/shop/NAME`; without an address its load balancer is pending.
pub fn ingress(name: &str, hosts: &[&str], address: Option<&str>, notes: &[(&str, &str)]) -> Value {
    let rules: Vec<Value> = hosts
        .iter()
        .map(|h| json!({"host": h, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": name, "port": {"number": 80}}}}]}}))
        .collect();
    let mut o = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": meta(name, notes),
        "spec": {"rules": rules}, "status": {"loadBalancer": {}}});
    if let Some(a) = address {
        let key = if a.parse::<std::net::IpAddr>().is_ok() {
            "ip"
        } else {
            "hostname"
        };
        o["status"] = json!({"loadBalancer": {"ingress": [{key: a}]}});
    }
    o
}

/// A small HTTP server with the lists of an API server; watches stay open and say nothing.
async fn serve(objects: Arc<Mutex<Vec<Value>>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let objects = objects.clone();
            tokio::spawn(async move {
                let mut request = vec![];
                let mut buffer = [0; 4096];
                while !request.windows(4).any(|w| w == b"\r\n\r\n") {
                    match stream.read(&mut buffer).await {
                        Ok(n) if n > 0 => request.extend_from_slice(&buffer[..n]),
                        _ => return,
                    }
                }
                let head = String::from_utf8_lossy(&request).into_owned();
                let target = head.split(' ').nth(1).unwrap_or("/").to_string();
                let (path, query) = target.split_once('?').unwrap_or((&target, ""));
                if query.contains("watch=") {
                    if query.contains("sendInitialEvents") {
                        // As a server without streaming lists says it: the client then lists.
                        answer(&mut stream, "422 Unprocessable Entity", &json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422})).await;
                        return;
                    }
                    let _ = stream
                        .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
                        .await;
                    let _ = stream.read(&mut buffer).await;
                    return;
                }
                let (kind, api) = match path.rsplit('/').next().unwrap_or("") {
                    "ingresses" => ("Ingress", "networking.k8s.io/v1"),
                    "services" => ("Service", "v1"),
                    other => (other, "v1"),
                };
                let items: Vec<Value> = {
                    let all = objects.lock().unwrap();
                    all.iter().filter(|o| o["kind"] == kind).cloned().collect()
                };
                let list = json!({"kind": format!("{kind}List"), "apiVersion": api, "metadata": {"resourceVersion": "1"}, "items": items});
                answer(&mut stream, "200 OK", &list).await;
            });
        }
    });
    url
}

async fn answer(stream: &mut tokio::net::TcpStream, status: &str, body: &Value) {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(body.as_bytes()).await;
    let _ = stream.shutdown().await;
}
