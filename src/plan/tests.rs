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

fn corpus(name: &str) -> PathBuf {
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
        assert_eq!(
            plan.target.node_groups.len(),
            workers,
            "{name}: worker groups in = groups out"
        );
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
