//! The planner on real kops specs and on small companies.

use super::*;
use crate::spec::model::Spec;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// All documents of a YAML file, as kubectl would read them.
pub(crate) fn documents(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.split("\n---")
        .filter(|d| {
            d.lines().any(|l| {
                !l.trim().is_empty() && !l.trim_start().starts_with('#') && !l.starts_with("//")
            })
        })
        .map(|d| {
            let d: String = d
                .lines()
                .filter(|l| !l.starts_with("//"))
                .collect::<Vec<_>>()
                .join("\n");
            serde_saphyr::from_str::<Value>(&d)
                .unwrap_or_else(|e| panic!("{}: {e}\n{d}", path.display()))
        })
        .filter(|v| v.is_object())
        .collect()
}

pub(crate) fn spec(cluster: &str) -> Spec {
    serde_json::from_value(json!({
        "apiVersion": "crossfade.dev/v1alpha1", "kind": "Migration", "name": "demo",
        "blue": {"cluster": cluster},
        "green": {"name": "shop-green", "version": "1.36"},
        "aws": {"account": "000000000000"},
        "dns": {"externalDns": {"ownerId": "shop-green", "interval": 3}, "lowTtl": 5}
    }))
    .expect("a valid spec")
}

pub(crate) fn kops_snapshot(path: &Path) -> Snapshot {
    let mut s = Snapshot::default();
    for d in documents(path) {
        match d["kind"].as_str() {
            Some("Cluster") => s.kops.cluster = Some(d),
            Some("InstanceGroup") => s.kops.instance_groups.push(d),
            _ => {}
        }
    }
    s
}

pub(crate) fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus/kops")
        .join(name)
}

#[test]
fn every_aws_kops_spec_gives_a_complete_plan_offline() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/kops");
    let mut seen = 0;
    for entry in std::fs::read_dir(&dir).expect("the corpus is there") {
        let path = entry.expect("readable").path();
        let name = path
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or("")
            .to_string();
        if !name.ends_with(".yaml") || name.contains("REFUSE") {
            continue;
        }
        seen += 1;
        let snapshot = kops_snapshot(&path);
        let cluster = snapshot
            .kops
            .cluster
            .as_ref()
            .and_then(|c| c.pointer("/metadata/name"))
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_string();
        let plan = plan(&spec(&cluster), &snapshot);
        assert_eq!(plan.digest, digest_of(&plan), "{name}");
        let workers = snapshot
            .kops
            .instance_groups
            .iter()
            .filter(|g| g.pointer("/spec/role").and_then(Value::as_str) == Some("Node"))
            .filter(|g| g.pointer("/spec/manager").is_none())
            .count();
        let from: std::collections::BTreeSet<&str> = plan
            .target
            .node_groups
            .iter()
            .map(|g| g.instance_group.as_str())
            .collect();
        assert_eq!(
            from.len(),
            workers,
            "{name}: worker groups in = groups out, or an explained split (kops.md 8.6)"
        );
        for g in &plan.target.node_groups {
            let parts = plan
                .target
                .node_groups
                .iter()
                .filter(|o| o.instance_group == g.instance_group)
                .count();
            assert!(
                parts == 1 || g.notes.iter().any(|n| n.contains("half")),
                "{name}: {g:?}"
            );
        }
        assert!(!plan.target.cluster.subnets.is_empty(), "{name}");
        assert!(!plan.target.cluster.region.is_empty(), "{name}");
        for g in &plan.target.node_groups {
            assert!(
                !g.subnets.is_empty()
                    && !g.instance_types.is_empty()
                    && g.max >= g.min
                    && g.max >= 1,
                "{name}: {g:?}"
            );
            assert!(
                g.labels
                    .keys()
                    .all(|k| !k.contains("k8s.io/") && !k.contains("kubernetes.io/")),
                "{name}: {g:?}"
            );
        }
        assert!(
            plan.steps
                .iter()
                .any(|s| s.id == "provision/cluster/shop-green"),
            "{name}"
        );
        assert_topological(&plan);
    }
    assert_eq!(seen, 44, "the AWS part of the corpus");
}

fn assert_topological(plan: &model::Plan) {
    let mut done = std::collections::BTreeSet::new();
    for s in &plan.steps {
        for n in &s.needs {
            assert!(
                done.contains(n.as_str()),
                "{} needs {n}, which is not before it",
                s.id
            );
        }
        assert!(done.insert(s.id.as_str()), "{} twice", s.id);
    }
}

#[test]
fn the_same_input_gives_the_same_digest_whatever_the_order_of_instance_groups() {
    let mut s = kops_snapshot(&corpus("ha-kops1.16.yaml"));
    let a = plan(&spec("ha.example.com"), &s);
    s.kops.instance_groups.reverse();
    let b = plan(&spec("ha.example.com"), &s);
    assert_eq!(a.digest, b.digest);
}

/// The company "shop" as the repository keeps it, with the statuses and records that its controllers and its ExternalDNS 0.10.2 made.
pub(crate) fn shop() -> (Spec, Snapshot) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testkit/fixtures/shop");
    let mut paths = vec![
        dir.join("kops/get-all.yaml"),
        dir.join("aws"),
        dir.join("nodes.yaml"),
        dir.join("blue"),
    ];
    paths.push(dir.join("kops/state/shop.test/addons"));
    let key = crate::snapshot::mask::Key::from_bytes([7; 32]);
    let mut s = crate::snapshot::files::from_files(&paths, None, &key)
        .expect("the fixture is readable")
        .snapshot;
    for o in &mut s.blue.objects {
        let kind = o["kind"].as_str().unwrap_or("").to_string();
        if kind == "Ingress" {
            o["status"] = json!({"loadBalancer": {"ingress": [{"ip": "203.0.113.10"}]}});
        } else if kind == "Service" && o["spec"]["type"] == "LoadBalancer" {
            o["status"] = json!({"loadBalancer": {"ingress": [{"hostname": "ablue-1.eu-west-1.elb.amazonaws.com"}]}});
        }
    }
    let edns = s
        .blue
        .find("Deployment", Some("platform"), "external-dns")
        .expect("blue's ExternalDNS");
    let config = crate::edns::Config::of_workload(edns)
        .expect("an ExternalDNS")
        .expect("valid");
    let zone = crate::world::dns::Zone {
        id: "ZSHOP".into(),
        name: "shop.test.".into(),
        private: false,
    };
    let mut records: Vec<crate::world::dns::RecordSet> = crate::edns::plan_changes(
        &config,
        &[],
        &crate::edns::desired(&s.blue.objects, &config),
        &zone,
    )
    .into_iter()
    .map(|c| match c {
        crate::world::dns::Change::Create(r) => r,
        other => panic!("{other:?}"),
    })
    .collect();
    let foreign: Value =
        serde_json::from_str(&std::fs::read_to_string(dir.join("zone.json")).expect("readable"))
            .expect("JSON");
    for r in foreign["ResourceRecordSets"].as_array().expect("records") {
        records.push(crate::world::dns::RecordSet {
            name: r["Name"].as_str().expect("name").into(),
            rtype: r["Type"].as_str().expect("type").into(),
            ttl: r["TTL"].as_u64().map(|t| t as u32),
            values: r["ResourceRecords"]
                .as_array()
                .expect("values")
                .iter()
                .map(|v| v["Value"].as_str().expect("text").to_string())
                .collect(),
            alias: None,
            set_identifier: None,
            routing: Default::default(),
        });
    }
    s.zones = vec![crate::snapshot::model::ZoneRecords { zone, records }];
    let mut spec = spec("shop.test");
    spec.dns.zones = vec!["shop.test".into()];
    spec.dns.canary = Some("status.shop.test".into());
    spec.dns.wave_size = 3;
    spec.workloads.singletons = vec!["deployment/platform/consumer".into()];
    spec.workloads.replace = [("10.20.0.5".to_string(), "10.20.0.6".to_string())].into();
    spec.data = serde_json::from_value(json!([{"name": "orders", "mode": "postgres",
        "blue": {"host": "127.0.0.1", "database": "orders", "admin": "postgres", "role": "orders"},
        "green": {"host": "127.0.0.1", "port": 5433, "database": "orders", "admin": "postgres", "role": "orders"},
        "writeProbe": {"host": "orders.shop.test", "path": "/orders"}}])).expect("a data set");
    (spec, s)
}

fn verdict<'p>(plan: &'p model::Plan, object: &str) -> &'p model::Verdict {
    plan.verdicts
        .all()
        .iter()
        .find(|v| v.object == object)
        .unwrap_or_else(|| panic!("no {object}"))
}

#[test]
fn the_shop_gets_its_three_worker_groups_with_labels_taints_and_spot() {
    let (spec, s) = shop();
    let p = plan(&spec, &s);
    let groups: Vec<(&str, &str, u32, u32, u32, &str)> = p
        .target
        .node_groups
        .iter()
        .map(|g| {
            (
                g.name.as_str(),
                g.capacity_type.as_str(),
                g.min,
                g.max,
                g.disk_gib,
                g.instance_types[0].as_str(),
            )
        })
        .collect();
    assert_eq!(
        groups,
        [
            ("nodes-eu-west-1a", "ON_DEMAND", 2, 2, 128, "m5.large"),
            ("nodes-eu-west-1b", "ON_DEMAND", 1, 1, 128, "m5.large"),
            ("nodes-spot", "SPOT", 2, 4, 128, "m5.large")
        ]
    );
    let spot = &p.target.node_groups[2];
    assert_eq!(
        spot.labels,
        [("workload".to_string(), "spot".to_string())].into()
    );
    assert_eq!(
        (
            spot.taints[0].key.as_str(),
            spot.taints[0].value.as_str(),
            spot.taints[0].effect.as_str()
        ),
        ("workload", "spot", "NoSchedule")
    );
    assert!(
        p.target
            .cluster
            .subnets
            .iter()
            .all(|s| s.starts_with("subnet-")),
        "{:?}",
        p.target.cluster.subnets
    );
    assert_eq!(p.target.cluster.subnets.len(), 2, "the private ones");
    assert_eq!(p.basis.region.as_deref(), Some("eu-west-1"));
    assert!(p.target.roles.iter().any(|r| r.existing
        && r.name == "shop-mailer"
        && r.service_account.as_deref() == Some("platform/mailer")));
}

#[test]
fn every_object_of_the_shop_has_the_fate_that_its_owner_would_expect() {
    use model::Fate::*;
    let (spec, s) = shop();
    let p = plan(&spec, &s);
    for (object, fate, rule) in [
        ("deployment/storefront/web", Copied, "replay.md 47"),
        ("ingress/storefront/web", Changed, "replay.md 66"),
        (
            "horizontalpodautoscaler/storefront/api",
            Changed,
            "replay.md 50",
        ),
        (
            "poddisruptionbudget/storefront/api",
            Changed,
            "replay.md 65",
        ),
        ("deployment/platform/consumer", Held, "replay.md 3"),
        ("cronjob/platform/report", Held, "replay.md 49"),
        ("cronjob/platform/cleanup", Held, "replay.md 49"),
        ("serviceaccount/platform/mailer", Changed, "replay.md 39"),
        ("deployment/platform/mailer", Changed, "replay.md 39"),
        (
            "configmap/orders/orders-config",
            Changed,
            "spec workloads.replace",
        ),
        (
            "customresourcedefinition/promotions.shop.test",
            Changed,
            "replay.md 61",
        ),
        (
            "deployment/platform/external-dns",
            Skipped,
            "externaldns.md rule 9",
        ),
        (
            "serviceaccount/platform/external-dns",
            Skipped,
            "externaldns.md rule 9",
        ),
        ("clusterrole/external-dns", Skipped, "externaldns.md rule 9"),
        (
            "clusterrolebinding/external-dns-viewer",
            Skipped,
            "externaldns.md rule 9",
        ),
    ] {
        let v = verdict(&p, object);
        assert_eq!(v.verdict, fate, "{object}: {:?}", v.rules);
        assert!(
            v.rules.contains(&rule.to_string()),
            "{object}: {:?}",
            v.rules
        );
    }
    let mailer = verdict(&p, "serviceaccount/platform/mailer")
        .target
        .as_ref()
        .expect("copied");
    assert_eq!(
        mailer["metadata"]["annotations"]["eks.amazonaws.com/role-arn"],
        "arn:aws:iam::000000000000:role/shop-mailer"
    );
    assert_eq!(
        verdict(&p, "cronjob/platform/cleanup")
            .park
            .as_ref()
            .map(|p| p.value.clone()),
        Some(json!(true)),
        "suspended by its owner: stays so"
    );
    let web = verdict(&p, "ingress/storefront/web")
        .target
        .as_ref()
        .expect("copied");
    assert_eq!(
        web["metadata"]["annotations"]["external-dns.alpha.kubernetes.io/ttl"],
        "5"
    );
    let config = verdict(&p, "configmap/orders/orders-config")
        .target
        .as_ref()
        .expect("copied");
    assert_eq!(config["data"]["DATABASE_HOST"], "10.20.0.6");
    for v in p
        .verdicts
        .all()
        .iter()
        .filter(|v| v.object.contains("/kube-system/"))
    {
        assert_eq!(v.verdict, Skipped, "{}: {:?}", v.object, v.rules);
    }
    let text = serde_json::to_string(&p).expect("JSON");
    assert!(
        !text.contains("CANARY") && !text.contains("Q0FOQVJZ"),
        "no secret value in a plan"
    );
}

#[test]
fn the_six_names_of_the_shop_move_and_no_foreign_one_does() {
    let (spec, s) = shop();
    let p = plan(&spec, &s);
    let names: Vec<(u32, &str, &str, Option<u32>, bool)> = p
        .names
        .iter()
        .map(|n| {
            (
                n.wave,
                n.host.as_str(),
                n.object.as_str(),
                n.ttl,
                n.ttl_annotation,
            )
        })
        .collect();
    assert_eq!(
        names,
        [
            (
                0,
                "status.shop.test",
                "ingress/platform/status",
                Some(20),
                true
            ),
            (
                1,
                "gateway.shop.test",
                "ingress/storefront/api",
                Some(20),
                true
            ),
            (1, "m.shop.test", "ingress/storefront/web", Some(20), true),
            (1, "orders.shop.test", "service/orders/orders", None, false),
            (2, "pay.shop.test", "service/orders/orders", None, false),
            (2, "www.shop.test", "ingress/storefront/web", Some(20), true),
        ]
    );
    assert!(
        p.names.iter().all(|n| n.txt == [format!("{}.", n.host)]),
        "one legacy TXT each"
    );
    assert_eq!(p.basis.records.len(), 12);
    let blockers: Vec<String> = p
        .findings
        .iter()
        .filter(|f| f.severity == Severity::Blocker)
        .map(|f| format!("{} {} {}", f.id, f.object, f.message))
        .collect();
    assert_eq!(blockers, Vec::<String>::new(), "the fixture migrates");
}

#[test]
fn the_steps_of_the_shop_keep_one_writer_and_prove_green_before_blue_stops() {
    let (spec, s) = shop();
    let p = plan(&spec, &s);
    assert_topological(&p);
    let needs = |id: &str| -> std::collections::BTreeSet<String> {
        let mut all = std::collections::BTreeSet::new();
        let mut todo = vec![id.to_string()];
        while let Some(x) = todo.pop() {
            for n in &p
                .steps
                .iter()
                .find(|s| s.id == x)
                .unwrap_or_else(|| panic!("no step {x}"))
                .needs
            {
                if all.insert(n.clone()) {
                    todo.push(n.clone());
                }
            }
        }
        all
    };
    for (step, before) in [
        (
            "freeze/fence",
            vec![
                "unpark/probe",
                "ttl/wait/shop.test",
                "freeze/cron",
                "freeze/singletons",
                "data/stream/orders",
            ],
        ),
        ("data/switch/orders", vec!["freeze/fence"]),
        (
            "cutover/stop/deployment/platform/external-dns",
            vec!["data/switch/orders"],
        ),
        (
            "cutover/handover/1/shop.test",
            vec!["cutover/handover/0/shop.test", "cutover/drain-back"],
        ),
        ("cutover/start", vec!["cutover/handover/2/shop.test"]),
        ("open/fence", vec!["cutover/start", "cutover/drain"]),
        ("open/cron", vec!["open/singletons", "open/fence"]),
        (
            "unpark/workloads",
            vec![
                "provision/nodes-ready",
                "replay/ingress",
                "data/stream/orders",
            ],
        ),
        (
            "provision/node-group/shop-green/nodes-spot",
            vec![
                "provision/addon/shop-green/vpc-cni",
                "provision/role/shop-green-node",
            ],
        ),
        (
            "provision/addon/shop-green/coredns",
            vec!["provision/node-group/shop-green/nodes-spot"],
        ),
        (
            "provision/trust-statement/shop-mailer/CrossfadeShopGreenPlatformMailer",
            vec!["provision/oidc-provider/shop-green"],
        ),
    ] {
        let all = needs(step);
        for b in before {
            assert!(all.contains(b), "{step} must need {b}: {all:?}");
        }
    }
    assert_eq!(p.steps[0].id, "preflight/pins");
    let phases: Vec<model::Phase> = p
        .steps
        .iter()
        .filter(|s| s.phase != model::Phase::Data)
        .map(|s| s.phase)
        .collect();
    assert!(
        phases.windows(2).all(|w| w[0] <= w[1]),
        "phases in order, but for the streams that start early"
    );
    let closed = p.timeline.write_closed_s;
    assert!(closed[0] > 0 && closed[0] < closed[1], "{closed:?}");
    assert!(
        p.findings.iter().any(|f| f.id == "TIME-01") == (closed[1] > 300),
        "more than the limit is said"
    );
    let path = &p.timeline.critical_path;
    assert_eq!(
        (
            path.first().map(String::as_str),
            path.last().map(String::as_str)
        ),
        (Some("preflight/pins"), Some("soak/watch"))
    );
    assert!(p.timeline.total_s[0] < p.timeline.total_s[1]);
}

#[test]
fn a_plan_of_the_shop_is_the_same_on_every_machine_and_survives_the_disk() {
    let (spec, mut s) = shop();
    let a = plan(&spec, &s);
    s.blue.objects.reverse();
    let b = plan(&spec, &s);
    assert_eq!(a.digest, b.digest);
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("plan.json");
    store(&path, &a).expect("written");
    assert_eq!(load(&path).expect("read"), a);
    let edited = std::fs::read_to_string(&path).expect("text").replacen(
        "\"desired\": 2",
        "\"desired\": 9",
        1,
    );
    std::fs::write(&path, edited).expect("written");
    let e = load(&path).expect_err("edited by hand");
    assert_eq!(e.kind, crate::error::Kind::StalePlan);
}

#[test]
fn a_name_whose_object_does_not_come_along_stays_on_blue_and_blocks() {
    let (mut spec, s) = shop();
    spec.workloads.skip = vec!["ingress/platform/status".into()];
    spec.dns.canary = None;
    let p = plan(&spec, &s);
    assert!(!p.names.iter().any(|n| n.host == "status.shop.test"));
    assert!(
        p.findings.iter().any(|f| f.id == "DNS-14"
            && f.severity == Severity::Blocker
            && f.object == "host/status.shop.test"),
        "{:?}",
        p.findings
    );
    assert!(
        !p.steps
            .iter()
            .any(|s| s.params.to_string().contains("status.shop.test"))
    );
}
