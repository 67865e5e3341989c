use super::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

const CLUSTER: &str = "apiVersion: kops.k8s.io/v1alpha2\nkind: Cluster\nmetadata: {name: shop.test}\nspec: {cloudProvider: aws, neverHeardOf: 1}\n";

fn group(name: &str) -> String {
    format!(
        "apiVersion: kops.k8s.io/v1alpha2\nkind: InstanceGroup\nmetadata: {{name: {name}}}\nspec: {{role: Node}}\n"
    )
}

#[tokio::test]
async fn a_folder_gives_cluster_groups_and_version_with_their_sources() {
    let dir = tempfile::tempdir().unwrap();
    let put = |file: &str, text: &str| write(dir.path(), &format!("store/shop.test/{file}"), text);
    put("config", CLUSTER);
    put("instancegroup/nodes", &group("nodes"));
    put("instancegroup/master", &group("master"));
    put("kops-version.txt", "1.22.6\n");
    // Not YAML at all: reading it would fail, so passing proves that keys are not read.
    put("pki/private/ca/keyset.yaml", "\u{1}{{{");
    put("secrets/dockerconfig", "CANARY-secret");
    put(
        "backups/etcd/main/control/etcd-cluster-created",
        "CANARY-backup",
    );
    let kops = read_state_store("./store", dir.path(), "shop.test", &model::Aws::default())
        .await
        .unwrap();
    assert_eq!(kops.cluster.as_ref().unwrap()["spec"]["neverHeardOf"], 1);
    let names: Vec<&str> = kops
        .instance_groups
        .iter()
        .filter_map(|g| g["metadata"]["name"].as_str())
        .collect();
    assert_eq!(names, ["master", "nodes"]);
    assert_eq!(kops.kops_version.as_deref(), Some("1.22.6"));
    assert_eq!(
        kops.sources["instancegroup/nodes"],
        "./store/shop.test/instancegroup/nodes"
    );
    assert_eq!(
        kops.places["cluster/spec.neverHeardOf"],
        "./store/shop.test/config:4:42"
    );
    assert_eq!(
        kops.closed_keys,
        [
            "pki/private/ca/keyset.yaml",
            "secrets/dockerconfig",
            "backups/etcd/main/control/etcd-cluster-created"
        ]
    );
    assert!(!serde_json::to_string(&kops).unwrap().contains("CANARY"));
}

#[tokio::test]
async fn a_cluster_that_is_not_in_the_store_is_bad_input_and_those_that_are_there_are_named() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "shop.test/config", CLUSTER);
    write(dir.path(), "team/b.test/config", CLUSTER);
    let e = read_state_store(".", dir.path(), "shop.example", &model::Aws::default())
        .await
        .unwrap_err();
    assert_eq!(e.kind, Kind::BadInput);
    assert!(e.message.contains("shop.example/config"), "{}", e.message);
    assert!(e.remedy.ends_with("shop.test, team/b.test"), "{}", e.remedy);
}

#[tokio::test]
async fn a_store_of_another_cloud_is_bad_input() {
    let e = read_state_store("gs://bucket", Path::new("."), "x", &model::Aws::default())
        .await
        .unwrap_err();
    assert_eq!(e.kind, Kind::BadInput);
    assert!(e.message.contains("gs://"), "{}", e.message);
}

/// A bucket that answers ListObjectsV2 and GetObject, and keeps what was asked.
async fn bucket(objects: &[(&str, &str)]) -> (Store, Arc<Mutex<Vec<String>>>) {
    let objects: BTreeMap<String, String> = objects
        .iter()
        .map(|(k, v)| (k.to_string(), v.to_string()))
        .collect();
    let asked = Arc::new(Mutex::new(vec![]));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let log = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![];
            let mut part = [0; 4096];
            while !request.windows(4).any(|w| w == b"\r\n\r\n") {
                match stream.read(&mut part).await {
                    Ok(n) if n > 0 => request.extend_from_slice(&part[..n]),
                    _ => break,
                }
            }
            let text = String::from_utf8_lossy(&request).to_string();
            let target = text.split(' ').nth(1).unwrap_or_default().to_string();
            let decode = |s: &str| s.replace("%2F", "/").replace("%20", " ");
            let (path, query) = target.split_once('?').unwrap_or((&target, ""));
            let key = decode(path.trim_start_matches("/bucket").trim_start_matches('/'));
            let value = |name: &str| {
                query
                    .split('&')
                    .find_map(|p| p.strip_prefix(&format!("{name}=")))
                    .map(decode)
            };
            let (status, body) = if query.contains("list-type=2") {
                let prefix = value("prefix").unwrap_or_default();
                log.lock().unwrap().push(format!("list {prefix}"));
                let mut xml = String::from("<ListBucketResult><IsTruncated>false</IsTruncated>");
                let mut seen = std::collections::BTreeSet::new();
                for k in objects.keys().filter(|k| k.starts_with(&prefix)) {
                    let rest = &k[prefix.len()..];
                    match rest
                        .split_once('/')
                        .filter(|_| value("delimiter").is_some())
                    {
                        Some((folder, _)) => {
                            if seen.insert(folder.to_string()) {
                                xml += &format!(
                                    "<CommonPrefixes><Prefix>{prefix}{folder}/</Prefix></CommonPrefixes>"
                                );
                            }
                        }
                        None => xml += &format!("<Contents><Key>{k}</Key></Contents>"),
                    }
                }
                (200, xml + "</ListBucketResult>")
            } else {
                log.lock().unwrap().push(format!("get {key}"));
                match objects.get(&key) {
                    Some(body) => (200, body.clone()),
                    None => (
                        404,
                        "<Error><Code>NoSuchKey</Code><Message>no</Message></Error>".into(),
                    ),
                }
            };
            let answer = format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).await.ok();
        }
    });
    let config = aws_sdk_s3::config::Builder::new()
        .behavior_version(aws_sdk_s3::config::BehaviorVersion::latest())
        .region(aws_sdk_s3::config::Region::new("eu-west-1"))
        .credentials_provider(aws_sdk_s3::config::Credentials::new(
            "a", "b", None, None, "test",
        ))
        .endpoint_url(format!("http://{address}"))
        .force_path_style(true)
        .build();
    let store = Store::S3 {
        client: aws_sdk_s3::Client::from_conf(config),
        bucket: "bucket".into(),
        prefix: "prod/kops".into(),
    };
    (store, asked)
}

#[tokio::test]
async fn below_a_prefix_in_s3_the_cluster_is_read_and_keys_and_secrets_are_listed_but_never_fetched()
 {
    let nodes = group("nodes");
    let (store, asked) = bucket(&[
        ("prod/kops/team/shop.test/config", CLUSTER),
        ("prod/kops/team/shop.test/instancegroup/nodes", &nodes),
        ("prod/kops/team/shop.test/cluster.spec", CLUSTER),
        ("prod/kops/team/shop.test/kops-version.txt", "1.20.1"),
        ("prod/kops/team/shop.test/pki/private/ca/1.key", "CANARY"),
        ("prod/kops/team/shop.test/secrets/admin", "CANARY"),
        ("prod/kops/other.test/config", "\u{1}{{{"),
    ])
    .await;
    let mut folder = documents(&store, "team/shop.test").await.unwrap();
    assert_eq!(elsewhere(&store, "team/shop.test", &folder), None);
    let rest = rest(&store, "team/shop.test").await;
    folder.texts.extend(rest.texts);
    folder.closed = rest.closed;
    let kops = layout::assemble(folder).unwrap();
    assert_eq!(
        kops.sources["cluster"],
        "s3://bucket/prod/kops/team/shop.test/config"
    );
    assert_eq!(
        kops.places["instancegroup/nodes/spec.role"],
        "s3://bucket/prod/kops/team/shop.test/instancegroup/nodes:4:14"
    );
    assert_eq!(kops.kops_version.as_deref(), Some("1.20.1"));
    assert!(
        kops.completed.is_some(),
        "cluster.spec of kops 1.21 and older"
    );
    assert_eq!(kops.closed_keys, ["pki/private/ca/1.key", "secrets/admin"]);
    let asked = asked.lock().unwrap().clone();
    assert!(
        asked.iter().all(|a| !a.starts_with("get")
            || !["/pki/", "/secrets/", "/backups/"]
                .iter()
                .any(|c| a.contains(c))),
        "{asked:?}"
    );
    let e = documents(&store, "shop.test")
        .await
        .map(|_| ())
        .unwrap_err();
    assert!(
        e.remedy.ends_with("other.test, team/shop.test"),
        "{}",
        e.remedy
    );
}

#[tokio::test]
async fn a_config_base_in_another_bucket_is_followed_and_the_usual_one_is_not() {
    let spec = |base: &str| CLUSTER.replace("neverHeardOf: 1", &format!("configBase: \"{base}\""));
    for (base, wanted) in [
        ("s3://bucket/prod/kops/shop.test", None),
        ("s3://bucket/prod/kops/shop.test/", None),
        ("s3://other/shop.test", Some("s3://other/shop.test")),
    ] {
        let text = spec(base);
        let (store, _) = bucket(&[("prod/kops/shop.test/config", &text)]).await;
        let folder = documents(&store, "shop.test").await.unwrap();
        assert_eq!(
            elsewhere(&store, "shop.test", &folder).as_deref(),
            wanted,
            "{base}"
        );
    }
    // A folder is a copy: all of it lies together.
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        "shop.test/config",
        &spec("s3://other/shop.test"),
    );
    write(dir.path(), "shop.test/kops-version.txt", "1.19.0");
    let kops = read_state_store(".", dir.path(), "shop.test", &model::Aws::default())
        .await
        .unwrap();
    assert_eq!(kops.kops_version.as_deref(), Some("1.19.0"));
}
