//! The table against every kops document that the repository has.

use super::row::{Hit, Table, alternatives};
use super::*;
use crate::snapshot::mask::Key;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn files(folder: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut out: Vec<PathBuf> = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "yaml"))
        .filter(|p| !p.to_string_lossy().contains("REFUSE"))
        .collect();
    out.sort();
    out
}

fn snapshot(path: &Path) -> Snapshot {
    crate::snapshot::files::from_files(&[path.into()], None, &Key::from_bytes([7; 32]))
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        .snapshot
}

fn all() -> Vec<(String, Snapshot)> {
    let mut out = vec![];
    for folder in ["tests/corpus/kops", "tests/corpus/kops-handwritten"] {
        for path in files(folder) {
            let name = path
                .file_name()
                .map(|n| n.to_string_lossy().into_owned())
                .unwrap_or_default();
            let mut s = snapshot(&path);
            // A completed spec is a Cluster like any other; every leaf of it has a row too.
            if s.kops.cluster.is_none() {
                s.kops.cluster = s.kops.completed.clone();
            }
            out.push((name, s));
        }
    }
    out
}

/// A snapshot with one Cluster, which says `rbac` unless it says something else, and one worker group.
fn with(mut cluster: Value, group: Value) -> Snapshot {
    if cluster.get("authorization").is_none() {
        cluster["authorization"] = json!({"rbac": {}});
    }
    let mut s = Snapshot::default();
    s.kops.cluster =
        Some(json!({"kind": "Cluster", "metadata": {"name": "a.test"}, "spec": cluster}));
    s.kops.instance_groups =
        vec![json!({"kind": "InstanceGroup", "metadata": {"name": "nodes"}, "spec": group})];
    s
}

#[track_caller]
fn fate<'r>(r: &'r Read, path: &str) -> &'r FieldFate {
    r.fields
        .iter()
        .find(|f| f.path == path)
        .unwrap_or_else(|| panic!("no {path}"))
}
#[track_caller]
fn finding<'r>(r: &'r Read, id: &str) -> &'r Finding {
    let all: Vec<_> = r.findings.iter().filter(|f| f.id == id).collect();
    assert_eq!(all.len(), 1, "{id}: {:?}", r.findings);
    all[0]
}

/// kops.md 8.5: never dropped silently. The README of the corpus names the fields that kops itself does not know.
#[test]
fn every_leaf_of_every_document_has_a_row_but_those_that_kops_does_not_know() {
    let mut unknown: BTreeSet<(String, String)> = BTreeSet::new();
    let (mut documents, mut leaves) = (0, 0);
    for (name, s) in all() {
        documents += usize::from(s.kops.cluster.is_some()) + s.kops.instance_groups.len();
        for f in read(&s).fields {
            leaves += 1;
            if f.fate == Fate::Unknown {
                unknown.insert((name.clone(), f.path.clone()));
            }
            assert!(
                !f.rule.is_empty() && !f.sentence.is_empty(),
                "{name}: {f:?}"
            );
        }
    }
    unknown.retain(|(file, _)| !file.contains("unknown-field"));
    let wanted: BTreeSet<(String, String)> = [
        (
            "complex-legacy-apigroup.yaml",
            "spec.serviceOIDCProvider.issuerCAThumbprints[0]",
        ),
        (
            "complex-legacy-apigroup.yaml",
            "spec.serviceOIDCProvider.issuerURL",
        ),
        (
            "existing-iam-kops1.18.yaml",
            "spec.roleCustomIamRoles.Master",
        ),
        ("existing-iam-kops1.18.yaml", "spec.roleCustomIamRoles.Node"),
    ]
    .into_iter()
    .map(|(f, p)| (f.to_string(), p.to_string()))
    .collect();
    assert_eq!(unknown, wanted);
    assert!(documents > 120 && leaves > 2500, "{documents} {leaves}");
}

/// Fields of kops's API types that no document of the repository sets: the table knows them from kops's source only.
const NO_FILE_HAS_IT: &str = include_str!("no_file_has_it.txt");

#[test]
fn every_row_is_met_by_a_document_or_stands_in_the_reviewed_list() {
    let mut met: BTreeSet<String> = BTreeSet::new();
    for (_, s) in all() {
        for f in read(&s).fields {
            let doc = if f.document == "cluster" {
                Doc::Cluster
            } else {
                Doc::Group
            };
            if let Ok(e) = Table::get().entry(doc, &f.path) {
                met.insert(format!("{doc:?} {}", e.pattern));
            }
        }
    }
    let rows: BTreeSet<String> = Table::get()
        .entries()
        .map(|(d, e)| format!("{d:?} {}", e.pattern))
        .collect();
    let listed: BTreeSet<String> = NO_FILE_HAS_IT
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
        .map(String::from)
        .collect();
    let unlisted: Vec<_> = rows
        .difference(&met)
        .filter(|r| !listed.contains(*r))
        .collect();
    assert!(unlisted.is_empty(), "{unlisted:#?}");
    let stale: Vec<_> = listed.difference(&rows).collect();
    assert!(stale.is_empty(), "no such row any more: {stale:#?}");
}

#[test]
fn no_field_has_two_rows_and_every_row_is_found_by_its_own_path() {
    let mut seen = BTreeSet::new();
    for (doc, e) in Table::get().entries() {
        assert!(
            seen.insert((doc, e.pattern.clone())),
            "twice: {}",
            e.pattern
        );
        let example = e
            .pattern
            .replace("[]", "[0]")
            .replace(".**", ".x")
            .replace(".*", "[\"a.b/c\"]");
        match Table::get().entry(doc, &example) {
            Ok(hit) => assert_eq!(hit.pattern, e.pattern, "{example}"),
            Err(_) => panic!("{example} is not found"),
        }
        assert!(e.row.rule.starts_with("KOPS-"), "{}", e.pattern);
    }
    assert_eq!(alternatives("a.{b,c.d}.{e,f[]}").len(), 4);
}

/// kops.md 1.2: kops drops unknown fields without a word; before 1.11 names were not case-sensitive, and old files show it.
#[test]
fn a_field_that_kops_does_not_know_is_told_with_its_place_and_what_was_meant() {
    let mut s = with(
        json!({"serviceOIDCProvider": {"issuerURL": "x", "thumbs": [1]}, "kubelet": {"maxPod": 20}}),
        json!({"role": "Node", "additionaluserdata": [{"name": "a", "content": "secret"}]}),
    );
    s.kops.places.insert(
        "instancegroup/nodes/spec.additionaluserdata[0].content".into(),
        "ig.yaml:9:5".into(),
    );
    let r = read(&s);
    let said: Vec<(&str, &str)> = r
        .findings
        .iter()
        .map(|f| (f.object.as_str(), f.message.as_str()))
        .collect();
    let base =
        "not a field of kops 1.11 to 1.37 that crossfade knows: kops ignores such a field silently";
    assert_eq!(
        said,
        [
            (
                "kops/spec.kubelet.maxPod",
                &*format!("{base}; did you mean spec.kubelet.maxPods?")
            ),
            ("kops/spec.serviceOIDCProvider", base),
            (
                "instancegroup/nodes spec.additionaluserdata",
                &*format!("{base}; did you mean spec.additionalUserData? (at ig.yaml:9:5)")
            ),
        ]
    );
    assert!(
        r.findings
            .iter()
            .all(|f| f.id == UNKNOWN && f.severity == Severity::Warning)
    );
    // What it holds is not repeated: nobody knows what it is.
    assert_eq!(fate(&r, "spec.additionaluserdata[0].content").value, HIDDEN);
}

#[test]
fn a_value_can_decide_the_fate_of_its_field() {
    let r = read(&with(
        json!({
            "clusterDNSDomain": "cluster.local",
            "nonMasqueradeCIDR": "::/0",
            "iam": {"legacy": false},
            "kubeProxy": {"enabled": false, "proxyMode": "ipvs"},
            "networking": {"cilium": {"enableEncryption": true, "encryptionType": "wireguard"}},
            "metricsServer": {"enabled": false},
            "api": {"loadBalancer": {"type": "Internal"}},
        }),
        json!({"role": "Node", "maxSize": 0}),
    ));
    assert_eq!(fate(&r, "spec.clusterDNSDomain").fate, Fate::Mapped);
    assert_eq!(fate(&r, "spec.nonMasqueradeCIDR").fate, Fate::Decision);
    assert!(
        r.findings.iter().all(|f| f.id != "KOPS-ipv6"),
        "NET-01 blocks it, and once is enough"
    );
    assert_eq!(fate(&r, "spec.iam.legacy").fate, Fate::NoMeaning);
    let encrypted = finding(&r, "KOPS-net-encryption");
    assert_eq!(encrypted.severity, Severity::Blocker);
    assert_eq!(encrypted.object, "kops/spec.networking.cilium");
    assert!(
        encrypted
            .message
            .contains("networking.cilium.enableEncryption, networking.cilium.encryptionType"),
        "{}",
        encrypted.message
    );
    assert_eq!(fate(&r, "spec.metricsServer.enabled").fate, Fate::NoMeaning);
    assert!(
        !r.findings
            .iter()
            .any(|f| f.id == "KOPS-field-metricsServer")
    );
    assert!(fate(&r, "spec.maxSize").sentence.starts_with("0:"));
    assert!(
        fate(&r, "spec.api.loadBalancer.type")
            .sentence
            .contains("private endpoint")
    );
    assert!(
        fate(&r, "spec.kubeProxy.proxyMode")
            .sentence
            .contains("deprecated from 1.35")
    );

    let own = read(&with(
        json!({"clusterDNSDomain": "corp.internal"}),
        json!({}),
    ));
    assert_eq!(
        finding(&own, "KOPS-field-clusterDNSDomain").severity,
        Severity::Blocker
    );
}

/// kops.md 2: authorization.alwaysAllow is an empty map, and still the largest decision of all.
#[test]
fn a_choice_that_is_made_by_an_empty_map_is_seen_and_one_by_null_is_not() {
    let r = read(&with(
        json!({"authorization": {"alwaysAllow": {}}, "networking": {"kubenet": {}}, "kubelet": {}, "iam": null}),
        json!({}),
    ));
    let allow = fate(&r, "spec.authorization.alwaysAllow");
    assert_eq!(
        (allow.fate, allow.rule.as_str()),
        (Fate::Decision, "KOPS-authz-alwaysallow")
    );
    // IAM-authz is the voice that names the accounts.
    assert!(
        !r.findings
            .iter()
            .any(|f| f.object.contains("authorization"))
    );
    assert_eq!(fate(&r, "spec.networking.kubenet").rule, "KOPS-net-kubenet");
    assert_eq!(fate(&r, "spec.kubelet").rule, EMPTY);
    assert_eq!(fate(&r, "spec.iam").rule, EMPTY);
    let r = read(&with(
        json!({"authorization": {"alwaysAllow": null, "rbac": {}}}),
        json!({}),
    ));
    assert!(r.findings.is_empty(), "{:?}", r.findings);
}

/// EKS-components names the chart or the add-on, and what must be done: a second finding would only repeat it.
#[test]
fn an_add_on_of_kops_is_not_said_twice() {
    let on = json!({"enabled": true});
    let r = read(&with(
        json!({"clusterAutoscaler": on, "certManager": on, "awsLoadBalancerController": on, "karpenter": on,
            "nodeProblemDetector": on, "kubeDNS": {"nodeLocalDNS": on}}),
        json!({}),
    ));
    assert!(r.findings.is_empty(), "{:?}", r.findings);
    assert!(
        fate(&r, "spec.certManager.enabled")
            .sentence
            .contains("becomes the cert-manager add-on")
    );
}

/// complex-legacy.yaml of kops's tests: what clients and auditors pin has no like on EKS.
#[test]
fn what_is_pinned_on_the_api_and_the_registries_of_docker_are_said() {
    let r = read(&with(
        json!({
            "api": {"loadBalancer": {"sslCertificate": "arn:aws:acm:us-test-1:000000000000:certificate/x", "accessLog": {"bucket": "logs", "interval": 5}, "subnets": [{"name": "a", "allocationId": "eipalloc-1"}]}},
            "docker": {"insecureRegistries": ["10.0.0.1:5000"], "registryMirrors": ["https://mirror.test"], "logLevel": "warn"},
            "authentication": {"aws": {"backendMode": "CRD"}},
        }),
        json!({}),
    ));
    let pins = finding(&r, "KOPS-api-load-balancer");
    assert_eq!(
        (pins.severity, pins.object.as_str()),
        (Severity::Warning, "kops/spec.api.loadBalancer")
    );
    for part in ["certificate", "access log", "addresses"] {
        assert!(pins.message.contains(part), "{}", pins.message);
    }
    let docker = finding(&r, "KOPS-docker-registries");
    assert_eq!(docker.severity, Severity::Warning);
    assert!(
        docker
            .message
            .contains("docker.insecureRegistries[0], docker.registryMirrors[0]"),
        "{}",
        docker.message
    );
    assert_eq!(finding(&r, "KOPS-runtime").severity, Severity::Info);
    assert_eq!(
        r.findings.len(),
        3,
        "IAM-07 speaks of the authenticator: {:?}",
        r.findings
    );
    let r = read(&with(
        json!({"api": {"loadBalancer": {"sslCertificate": ""}}}),
        json!({}),
    ));
    assert!(r.findings.is_empty(), "{:?}", r.findings);
}

#[test]
fn one_family_gives_one_finding_that_names_its_fields() {
    let r = read(&with(
        json!({
            "kubeDNS": {"stubDomains": {"corp.internal": ["10.0.0.2", "10.0.0.3"]}, "upstreamNameservers": ["10.0.0.4"]},
            "hooks": [{"name": "a", "manifest": "Type=oneshot"}],
        }),
        json!({}),
    ));
    let f = finding(&r, "KOPS-field-kubeDNS");
    assert_eq!(f.object, "kops/spec.kubeDNS");
    assert_eq!(
        f.message,
        "stub zones, upstreams and the Corefile of blue come along in the corefile of green's coredns add-on (kubeDNS.stubDomains[\"corp.internal\"], kubeDNS.upstreamNameservers[0])"
    );
    // The node groups speak of hooks; what a hook runs is repeated by nobody.
    assert_eq!(r.findings.len(), 1, "{:?}", r.findings);
    assert_eq!(fate(&r, "spec.hooks[0].manifest").value, HIDDEN);
}

#[test]
fn fields_of_masters_and_bastions_end_with_them_and_those_of_karpenter_go_into_a_node_pool() {
    for (group, rule, part) in [
        (
            json!({"role": "Master", "machineType": "m5.large", "hooks": [{"name": "x"}]}),
            "KOPS-ig-role",
            "control plane",
        ),
        (
            json!({"role": "Bastion", "machineType": "t3.micro"}),
            "KOPS-ig-role",
            "SSM",
        ),
        (
            json!({"role": "Node", "manager": "Karpenter", "machineType": "m5.large"}),
            "KOPS-ig-type",
            "NodePool",
        ),
    ] {
        let r = read(&with(json!({}), group));
        let f = fate(&r, "spec.machineType");
        assert_eq!(f.rule, rule);
        assert!(f.sentence.contains(part), "{f:?}");
        assert!(r.findings.is_empty(), "{:?}", r.findings);
    }
}

/// kops.md 6: `.k8s.local` with dns none is not gossip.
#[test]
fn a_gossip_name_is_told_unless_dns_is_none() {
    let mut s = with(json!({}), json!({}));
    s.kops.cluster =
        Some(json!({"metadata": {"name": "a.k8s.local"}, "spec": {"authorization": {"rbac": {}}}}));
    assert_eq!(finding(&read(&s), "KOPS-gossip").severity, Severity::Info);
    s.kops.cluster = Some(
        json!({"metadata": {"name": "a.k8s.local"}, "spec": {"authorization": {"rbac": {}}, "topology": {"dns": {"type": "None"}}}}),
    );
    assert!(read(&s).findings.is_empty());
}

#[test]
fn the_row_of_a_field_that_blue_does_not_set_can_be_asked_for() {
    let rules =
        |doc, path: &str| -> Vec<String> { known(doc, path).into_iter().map(|k| k.rule).collect() };
    assert_eq!(
        rules(Doc::Cluster, "spec.kubelet.maxPods"),
        ["KOPS-kubelet-max-pods"]
    );
    assert_eq!(rules(Doc::Cluster, "spec.subnets.egress"), ["KOPS-subnets"]);
    assert_eq!(
        rules(Doc::Cluster, "spec.subnets[3].egress"),
        ["KOPS-subnets"]
    );
    assert_eq!(
        rules(Doc::Group, "spec.nodeLabels[\"a/b\"]"),
        ["KOPS-ig-label"]
    );
    assert!(known(Doc::Cluster, "spec.hooks").len() > 5);
    assert!(matches!(
        Table::get().find(Doc::Cluster, "spec.nothing"),
        Hit::Unknown
    ));
    assert!(known(Doc::Cluster, "spec.nothing").is_empty());
}

#[test]
fn a_password_in_a_url_or_under_a_telling_name_is_not_repeated() {
    let shown = |path: &str, v: &str| super::without_passwords(path, &serde_json::json!(v));
    assert_eq!(
        shown("spec.egressProxy.httpProxy.host", "u:CANARY@proxy"),
        "***@proxy"
    );
    assert_eq!(
        shown(
            "spec.docker.registryMirrors[0]",
            "https://u:CANARY@mirror/x"
        ),
        "https://***@mirror/x"
    );
    assert_eq!(
        shown("spec.addons[0].manifest", "https://git@host/x.yaml"),
        "https://git@host/x.yaml"
    );
    assert_eq!(
        shown("spec.cloudLabels.deploy-token", "CANARY"),
        super::HIDDEN
    );
    assert_eq!(
        shown("spec.instanceMetadata.httpTokens", "required"),
        "required"
    );
}
