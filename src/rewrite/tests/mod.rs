//! Helpers of all tests of the rules, and the tests that are about no single rule.

mod copies;
mod corpus;
mod corpus_14_25;
mod rules_01_05;
mod rules_06_21;
mod rules_22_28;
mod rules_29_36;
mod rules_37_44;
mod rules_45_53;
mod rules_54_60;
mod rules_61_72;
mod rules_69_72;

use crate::plan::model::{Fate, Plan, Severity, Verdict};
use crate::plan::plan;
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use serde_json::{Value, json};
use std::path::Path;

pub(super) fn spec() -> Spec {
    serde_json::from_value(json!({
        "apiVersion": "crossfade.dev/v1alpha1", "kind": "Migration", "name": "demo",
        "blue": {"cluster": "blue.example.com"},
        "green": {"name": "green", "version": "1.36"},
        "aws": {"account": "123456789012", "region": "eu-west-1"}
    }))
    .expect("a valid spec")
}

pub(super) fn corpus(number: &str) -> Vec<Value> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/objects");
    let path = std::fs::read_dir(&dir)
        .expect("the corpus is there")
        .map(|e| e.expect("readable").path())
        .find(|p| {
            p.file_name()
                .and_then(|n| n.to_str())
                .is_some_and(|n| n.starts_with(number))
        })
        .unwrap_or_else(|| panic!("no file {number}"));
    let text = std::fs::read_to_string(&path).expect("readable");
    crate::yaml::manifests(&text, number)
        .into_iter()
        .map(|r| r.expect("a manifest").0)
        .collect()
}

pub(crate) fn planned(objects: Vec<Value>) -> Plan {
    let mut s = Snapshot::default();
    s.blue.objects = objects;
    plan(&spec(), &s)
}

pub(super) fn of<'p>(plan: &'p Plan, object: &str) -> &'p Verdict {
    plan.verdicts
        .all()
        .iter()
        .find(|v| v.object == object)
        .unwrap_or_else(|| {
            panic!(
                "{object} among {:?}",
                plan.verdicts
                    .all()
                    .iter()
                    .map(|v| &v.object)
                    .collect::<Vec<_>>()
            )
        })
}
/// Whether one is created before the other: in an earlier step, or in the same by the order of kinds inside it.
pub(super) fn before(plan: &Plan, first: &str, second: &str) -> bool {
    let step = |id: &str| {
        plan.steps
            .iter()
            .position(|s| {
                s.kind == "replay.wave"
                    && s.params["objects"]
                        .as_array()
                        .is_some_and(|o| o.iter().any(|o| o == id))
            })
            .unwrap_or_else(|| panic!("{id} is in a step"))
    };
    let kind = |id: &str| id.split('/').next().unwrap_or_default().to_string();
    match step(first).cmp(&step(second)) {
        std::cmp::Ordering::Equal => {
            crate::step::replay::after(&kind(second)).contains(&kind(first).as_str())
        }
        order => order.is_lt(),
    }
}
pub(super) fn target<'p>(plan: &'p Plan, object: &str) -> &'p Value {
    of(plan, object)
        .target
        .as_ref()
        .unwrap_or_else(|| panic!("{object} has no target"))
}
pub(super) fn found(plan: &Plan, id: &str, object: &str) -> Vec<(Severity, String)> {
    plan.findings
        .iter()
        .filter(|f| f.id == id && f.object == object)
        .map(|f| (f.severity, f.message.clone()))
        .collect()
}

#[track_caller]
pub(super) fn says(plan: &Plan, id: &str, object: &str, severity: Severity, part: &str) {
    let all = found(plan, id, object);
    assert!(
        all.iter().any(|(s, m)| *s == severity && m.contains(part)),
        "{id} {object}: {all:?}"
    );
}

#[test]
fn the_table_of_removed_apis_is_readable_and_knows_the_famous_ones() {
    let gone = |g: &str, v: &str, k: &str, m: u32| {
        crate::rewrite::removal(g, v, k, m).and_then(crate::rewrite::Removal::successor)
    };
    assert_eq!(
        gone("networking.k8s.io", "v1beta1", "Ingress", 36),
        Some("networking.k8s.io/v1")
    );
    assert_eq!(gone("networking.k8s.io", "v1beta1", "Ingress", 21), None);
    assert_eq!(gone("batch", "v1beta1", "CronJob", 36), Some("batch/v1"));
    assert_eq!(gone("apps", "v1", "Deployment", 36), None);
}

#[test]
fn the_hash_of_an_object_ignores_what_controllers_move_and_sees_what_people_change() {
    let a = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "uid": "1", "resourceVersion": "5",
        "annotations": {"deployment.kubernetes.io/revision": "3"}}, "spec": {"replicas": 3, "paused": false}, "status": {"x": 1}});
    let mut b = a.clone();
    b["metadata"] = json!({"name": "a", "uid": "2"});
    b["spec"]["replicas"] = json!(7);
    assert_eq!(
        crate::rewrite::basis_hash(&a),
        crate::rewrite::basis_hash(&b)
    );
    b["spec"]["paused"] = json!(true);
    assert_ne!(
        crate::rewrite::basis_hash(&a),
        crate::rewrite::basis_hash(&b)
    );
    let live = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": "Opaque", "data": {"password": "Q0FOQVJZ"}});
    let masked = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": "Opaque", "data": {"password": "hmac-sha256:00:8"}});
    assert_eq!(
        crate::rewrite::basis_hash(&live),
        crate::rewrite::basis_hash(&masked)
    );
    assert_eq!(crate::rewrite::for_green(&live, &masked), live);
}

#[test]
fn declared_words_are_replaced_longest_first_and_never_twice() {
    let mut s = spec();
    s.workloads.replace = [
        ("10.0.0.5".to_string(), "10.0.0.50".to_string()),
        ("10.0.0.50".to_string(), "10.9.9.9".to_string()),
    ]
    .into();
    let mut snap = Snapshot::default();
    snap.blue.objects = vec![
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}, "data": {"a": "10.0.0.5 10.0.0.50"}}),
    ];
    let p = plan(&s, &snap);
    assert_eq!(
        target(&p, "configmap/n/c")["data"]["a"],
        "10.0.0.50 10.9.9.9"
    );
    assert_eq!(of(&p, "configmap/n/c").rules, ["spec workloads.replace"]);
}

#[test]
fn every_change_to_an_object_has_a_rule_that_answers_for_it() {
    let mut unanswered = vec![];
    let mut seen = 0;
    let mut look = |objects: Vec<Value>, spec: &Spec, what: &str| {
        let mut s = Snapshot::default();
        s.blue.objects = objects;
        let cx = crate::plan::context(spec, &s);
        for o in &s.blue.objects {
            let (done, hunks) = crate::rewrite::trace(o, &cx);
            assert_eq!(
                done,
                crate::rewrite::rewrite(o, &cx),
                "to be asked changes nothing"
            );
            seen += hunks.len();
            for h in hunks.iter().filter(|h| h.rules.is_empty()) {
                unanswered.push(format!(
                    "{what} {}: {} {:?} -> {:?}",
                    crate::object::ObjectId::of(o)
                        .map(|i| i.to_string())
                        .unwrap_or_default(),
                    h.path,
                    h.before,
                    h.after
                ));
            }
        }
    };
    for n in 1..=25 {
        look(corpus(&format!("{n:02}")), &spec(), &format!("corpus {n}"));
    }
    assert!(unanswered.is_empty(), "{}", unanswered.join("\n"));
    assert!(seen >= 80, "{seen} changes were looked at");
}
