//! The forms in which kops documents come, and the specs written by hand for what kops's own fixtures lack.

use super::tests::{folder, gaps};
use super::*;
use crate::error::Kind;
use crate::snapshot::kops::{self, leaves};
use serde_json::json;
use std::path::Path;

const CLUSTER: &str = "apiVersion: kops.k8s.io/v1alpha2\nkind: Cluster\nmetadata:\n  creationTimestamp: 2019-01-01T00:00:00Z\n  generation: 3\n  name: shop.test\nspec: {cloudProvider: aws, kubernetesVersion: 1.21.14}\n";
const NODES: &str = "apiVersion: kops.k8s.io/v1alpha2\nkind: InstanceGroup\nmetadata: {name: nodes, labels: {kops.k8s.io/cluster: shop.test}}\nspec: {role: Node, minSize: 2}\n";
const BARE: &str = "apiVersion: kops.k8s.io/v1alpha2\nkind: InstanceGroup\nmetadata: {name: bare}\nspec: {role: Node}\n";

fn value(text: &str) -> Value {
    crate::yaml::manifests(text, "t").remove(0).expect("read").0
}

fn names(f: &FromFiles) -> Vec<&str> {
    f.snapshot
        .kops
        .instance_groups
        .iter()
        .map(kops::name_of)
        .collect()
}

#[test]
fn every_form_of_an_export_gives_the_same_documents_and_a_place_for_each_leaf() {
    let (c, n) = (value(CLUSTER), value(NODES));
    let pretty = |v: &Value| serde_json::to_string_pretty(v).expect("json");
    let all = format!("{CLUSTER}\n---\n\n{NODES}");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [c, n]});
    let typed = json!({"apiVersion": "kops.k8s.io/v1alpha2", "kind": "InstanceGroupList", "metadata": {"resourceVersion": "1"}, "items": [{"metadata": n["metadata"], "spec": n["spec"]}]});
    let forms: Vec<(&str, Vec<(&str, String)>)> = vec![
        ("documents in a row", vec![("a.yaml", all.clone())]),
        ("CRLF", vec![("a.yaml", all.replace('\n', "\r\n"))]),
        (
            "byte-order mark",
            vec![("a.yaml", format!("\u{feff}{all}"))],
        ),
        (
            "quoted timestamp",
            vec![(
                "a.yaml",
                all.replace("2019-01-01T00:00:00Z", "\"2019-01-01T00:00:00Z\""),
            )],
        ),
        ("JSON array", vec![("a.json", pretty(&json!([c, n])))]),
        (
            "JSON objects",
            vec![("c.json", pretty(&c)), ("n.json", n.to_string())],
        ),
        ("JSON in a row", vec![("a.json", format!("{c}\n{n}\n"))]),
        (
            "list of kubectl",
            vec![("a.yaml", crate::yaml::to_string(&list).expect("yaml"))],
        ),
        (
            "list of the CRDs",
            vec![("c.yaml", CLUSTER.into()), ("n.json", pretty(&typed))],
        ),
        (
            "two files",
            vec![("c.yaml", CLUSTER.into()), ("deep/n.yml", NODES.into())],
        ),
    ];
    for (form, files) in &forms {
        let files: Vec<(&str, &str)> = files.iter().map(|(n, t)| (*n, t.as_str())).collect();
        let f = folder(&files).unwrap_or_else(|e| panic!("{form}: {e:?}"));
        let k = &f.snapshot.kops;
        assert_eq!(
            k.cluster.as_ref().map(|c| &c["spec"]),
            Some(&c["spec"]),
            "{form}"
        );
        assert_eq!(k.instance_groups[0]["spec"], n["spec"], "{form}");
        let groups = k
            .instance_groups
            .iter()
            .map(|g| (format!("instancegroup/{}", kops::name_of(g)), g));
        for (id, doc) in k
            .cluster
            .iter()
            .map(|c| ("cluster".to_string(), c))
            .chain(groups)
        {
            for (path, _) in leaves(doc) {
                // Kind and version of an item of a typed list are said by the list.
                let said = ["list of the CRDs"].contains(form)
                    && ["kind", "apiVersion"].contains(&path.as_str());
                assert!(
                    said || k.places.contains_key(&format!("{id}/{path}")),
                    "{form}: {id}/{path}"
                );
            }
        }
    }
    let (_, files) = &forms[4];
    let f = folder(&[(files[0].0, files[0].1.as_str())]).expect("array");
    let place = &f.snapshot.kops.places["instancegroup/nodes/spec.minSize"];
    let line: usize = place
        .split(':')
        .nth(1)
        .and_then(|n| n.parse().ok())
        .expect("line");
    assert_eq!(
        files[0].1.lines().nth(line - 1).map(str::trim),
        Some("\"minSize\": 2"),
        "{place}"
    );
}

#[test]
fn of_several_clusters_in_one_export_the_chosen_one_gets_its_own_groups_only() {
    let other = |t: &str| {
        t.replace("shop.test", "other.test")
            .replace("nodes", "workers")
    };
    let text = format!(
        "{CLUSTER}---\n{}---\n{NODES}---\n{}",
        other(CLUSTER),
        other(NODES)
    );
    let dir = tempfile::tempdir().expect("dir");
    std::fs::write(dir.path().join("all.yaml"), &text).expect("written");
    let read = |wanted: Option<&str>| {
        from_files(
            &[dir.path().to_path_buf()],
            wanted,
            &Key::from_bytes([9; 32]),
        )
    };
    assert_eq!(names(&read(Some("shop.test")).expect("shop")), ["nodes"]);
    let f = read(Some("other.test")).expect("other");
    assert_eq!(names(&f), ["workers"]);
    assert!(
        f.unused
            .iter()
            .any(|u| u.contains("a group of the cluster shop.test")),
        "{:?}",
        f.unused
    );
    assert!(
        read(None)
            .expect_err("a choice")
            .remedy
            .contains("--cluster")
    );
    assert!(
        read(Some("none.test"))
            .expect_err("absent")
            .remedy
            .contains("other.test, shop.test")
    );
    // A group that does not say whose it is belongs to the one cluster of its file, and to no one where there are two.
    std::fs::write(dir.path().join("all.yaml"), format!("{text}---\n{BARE}")).expect("written");
    let e = read(Some("shop.test")).expect_err("whose");
    assert!(
        e.message.contains("`bare`") && e.at.starts_with("all.yaml:"),
        "{e:?}"
    );
    let f = folder(&[
        ("a.yaml", &format!("{CLUSTER}---\n{BARE}")),
        ("b.yaml", NODES),
    ])
    .expect("one cluster");
    assert_eq!(names(&f), ["bare", "nodes"]);
}

#[test]
fn a_copy_of_a_whole_store_keeps_clusters_apart_and_its_closed_folders_shut() {
    let other = CLUSTER
        .replace("shop.test", "other.test")
        .replace("1.21.14", "1.25.1");
    let dir = tempfile::tempdir().expect("dir");
    let put = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().expect("parent")).expect("made");
        std::fs::write(path, text).expect("written");
    };
    put("shop.test/config", CLUSTER);
    put("shop.test/instancegroup/bare", BARE);
    put(
        "shop.test/cluster.spec",
        &CLUSTER.replace("1.21.14", "1.20.1"),
    );
    put(
        "shop.test/cluster-completed.spec",
        &CLUSTER.replace("aws,", "aws, clusterDNSDomain: cluster.local,"),
    );
    put("shop.test/kops-version.txt", "1.22.6");
    put("shop.test/pki/private/ca/keyset.yaml", "\u{1}: {{{ CANARY");
    put("shop.test/secrets/dockerconfig.json", "CANARY");
    put("team/other.test/config", &other);
    put(
        "team/other.test/instancegroup/bare",
        &BARE.replace("Node", "Bastion"),
    );
    put("team/other.test/kops-version.txt", "1.26.1");
    let read = |wanted: &str| {
        from_files(
            &[dir.path().to_path_buf()],
            Some(wanted),
            &Key::from_bytes([9; 32]),
        )
    };
    let f = read("shop.test").expect("shop");
    let k = &f.snapshot.kops;
    assert_eq!(
        (
            k.kops_version.as_deref(),
            k.instance_groups[0]["spec"]["role"].as_str()
        ),
        (Some("1.22.6"), Some("Node"))
    );
    assert_eq!(
        k.completed.as_ref().expect("full")["spec"]["clusterDNSDomain"],
        "cluster.local"
    );
    assert_eq!(k.sources["completed"], "shop.test/cluster-completed.spec:1");
    assert!(
        f.unused
            .iter()
            .any(|u| u.starts_with("shop.test/cluster.spec: written by kops 1.21")),
        "{:?}",
        f.unused
    );
    assert_eq!(
        k.closed_keys,
        ["pki/private/ca/keyset.yaml", "secrets/dockerconfig.json"]
    );
    assert!(
        !serde_json::to_string(&f.snapshot)
            .expect("json")
            .contains("CANARY")
    );
    let f = read("other.test").expect("other");
    assert_eq!(
        (
            f.snapshot.kops.kops_version.as_deref(),
            f.snapshot.kops.instance_groups[0]["spec"]["role"].as_str()
        ),
        (Some("1.26.1"), Some("Bastion"))
    );
    // Key and name differ: the copy was mixed up.
    put("team/third.test/config", &other);
    put("team/third.test/instancegroup/x", BARE);
    let e = read("shop.test").expect_err("mixed up");
    assert!(
        e.message.contains("`third.test`") && e.at == "team/third.test/config:1",
        "{e:?}"
    );
}

#[test]
fn a_wrong_type_in_a_file_is_refused_with_file_line_and_column() {
    for (bad, at) in [
        (
            NODES.replace("minSize: 2", "minSize: \"two\""),
            "n.yaml:4:29",
        ),
        (
            NODES.replace("minSize: 2", "minSize: 99999999999"),
            "n.yaml:4:29",
        ),
        (CLUSTER.replace("aws,", "aws, subnets: 3,"), "n.yaml:7:37"),
        (CLUSTER.replace("1.21.14", "1.21"), "n.yaml:7:47"),
    ] {
        let e = folder(&[("n.yaml", &bad)]).expect_err(&bad);
        assert_eq!((e.kind, e.at.as_str()), (Kind::BadInput, at), "{e:?}");
    }
}

fn by_hand() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/kops-handwritten");
    let mut all: Vec<PathBuf> = std::fs::read_dir(dir)
        .expect("corpus")
        .map(|e| e.expect("entry").path())
        .filter(|p| p.extension().is_some_and(|e| e != "md"))
        .collect();
    all.sort();
    all
}

/// tests/corpus/kops/README.md, "What the repository cannot give": each gap is in a file written by hand.
#[test]
fn each_gap_of_the_fixtures_of_kops_is_in_a_spec_written_by_hand() {
    let (mut clusters, mut groups, mut texts) = (vec![], vec![], vec![]);
    for path in by_hand() {
        let f = from_files(std::slice::from_ref(&path), None, &Key::from_bytes([9; 32]))
            .unwrap_or_else(|e| panic!("{}: {e:?}", path.display()));
        let k = f.snapshot.kops;
        let without = path.to_string_lossy().contains("full-comment-block");
        assert_eq!(k.instance_groups.is_empty(), without, "{}", path.display());
        clusters.extend(k.cluster);
        groups.extend(k.instance_groups);
        texts.push(std::fs::read_to_string(&path).expect("text"));
    }
    assert_eq!(clusters.len(), 12);
    let any = |docs: &[Value], path: &str| {
        docs.iter()
            .any(|d| kops::at(d, path).is_some_and(|v| !v.is_null()))
    };
    for path in [
        "spec.networking.kuberouter",
        "spec.networking.romana",
        "spec.networking.lyftvpc",
        "spec.networking.classic",
        "spec.networking.external",
        "spec.encryptionConfig",
        "spec.kubeAPIServer.admissionControl",
        "spec.kubeAPIServer.enableAdmissionPlugins",
        "spec.kubeAPIServer.appendAdmissionPlugins",
        "spec.kubeDNS.stubDomains",
        "spec.kubeDNS.externalCoreFile",
        "spec.kubelet.maxPods",
        "spec.additionalPolicies.node",
        "spec.hooks[0].manifest",
        "spec.docker.logOpt",
        "spec.docker.execOpt",
        "spec.docker.storage",
        "spec.rollingUpdate",
        "spec.assets.fileRepository",
        "metadata.generation",
    ] {
        assert!(any(&clusters, path), "no cluster has {path}");
    }
    for path in [
        "spec.taints",
        "spec.nodeLabels[\"hand.test/pool\"]",
        "spec.kubelet.evictionHard",
        "spec.tenancy",
        "spec.capacityRebalance",
        "spec.mixedInstancesPolicy.instanceRequirements",
        "spec.mixedInstancesPolicy.onDemandBase",
        "spec.sysctlParameters",
        "spec.volumeMounts",
        "spec.fileAssets",
        "spec.hooks",
        "spec.warmPool",
        "spec.rollingUpdate",
    ] {
        assert!(any(&groups, path), "no group has {path}");
    }
    let text = |doc: &Value, path: &str| {
        kops::at(doc, path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_string()
    };
    assert!(
        groups
            .iter()
            .any(|g| text(g, "spec.machineType").contains(',')),
        "comma list"
    );
    assert!(groups.iter().any(|g| text(g, "spec.role") == "Node"
        && g["spec"].get("minSize").is_none()
        && g["spec"].get("maxSize").is_none()));
    assert!(
        clusters
            .iter()
            .any(|c| text(c, "spec.etcdClusters[0].provider") == "Legacy"
                && text(c, "spec.etcdClusters[0].version").starts_with("2."))
    );
    assert!(clusters.iter().any(|c| {
        c["spec"]["kubeAPIServer"]
            .to_string()
            .contains("PodSecurityPolicy")
    }));
    assert!(
        texts.iter().any(|t| t.contains("\r\n"))
            && texts.iter().any(|t| t.starts_with("//"))
            && texts.iter().any(|t| t.starts_with('['))
    );
    assert!(
        texts.iter().any(|t| t.contains("creationTimestamp: \""))
            && texts.iter().any(|t| t.contains("creationTimestamp: 2"))
    );
    assert!(texts.iter().all(|t| t.contains("s3://")));
}

/// What the specs written by hand are, by the defaults of their release: read against kops.md 1.4.
#[test]
fn the_specs_written_by_hand_have_the_defaults_of_their_release() {
    let read = |name: &str| {
        let path = by_hand()
            .into_iter()
            .find(|p| p.ends_with(name))
            .expect(name);
        from_files(&[path], None, &Key::from_bytes([9; 32]))
            .expect(name)
            .snapshot
            .kops
    };
    let old = read("classic-etcd2-kops1.11.yaml");
    let e = kops::effective(&old);
    assert_eq!(e.release.minor, 11);
    assert_eq!(
        (e.authorization().value.as_str(), e.iam_legacy().value),
        ("alwaysAllow", true)
    );
    let nodes = old
        .instance_groups
        .iter()
        .find(|g| kops::name_of(g) == "nodes")
        .expect("nodes");
    assert_eq!(
        (
            e.root_volume(nodes).kind.value.as_str(),
            e.root_volume(nodes).encrypted.value
        ),
        ("gp2", false)
    );
    assert_eq!(e.imds(nodes).tokens.value, "optional");
    let external = read("external-no-sizes-kops1.20.yaml");
    let e = kops::effective(&external);
    let nodes = external
        .instance_groups
        .iter()
        .find(|g| kops::name_of(g) == "nodes")
        .expect("nodes");
    assert_eq!(
        (
            e.sizes(nodes).0.value,
            e.sizes(nodes).1.value,
            e.networking().value.as_str()
        ),
        (2, 2, "external")
    );
    let gpu = read("gpu-spot-kops1.28.yaml");
    let e = kops::effective(&gpu);
    assert_eq!(
        e.pod_range().value,
        None,
        "cilium in ENI mode gives pods addresses of the VPC"
    );
    assert_eq!(e.imds(&gpu.instance_groups[0]).tokens.value, "required");
    assert!(gaps(&folder(&[("a.yaml", BARE)]).expect("no cluster")).contains(&"kops.cluster"));
}
