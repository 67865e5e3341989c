//! WL-08: pods that get traffic before they can serve it, and cannot be judged.

use crate::checks::{Answered, Check, Input, Report};
use crate::checks::{BlueObject, RUNNING};
use crate::plan::model::Severity;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECK: Check = Check {
    id: "WL-08",
    severity: Severity::Warning,
    question: "Is a workload behind a load balancer without a readiness probe?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Give it a readiness probe.",
    source: "checks.md WL-08",
    run,
};

fn run(i: &Input, r: &mut Report) {
    // Services that outsiders reach: of type LoadBalancer, or behind an Ingress.
    let mut front: BTreeSet<(String, String)> = BTreeSet::new();
    for o in i.blue.iter().filter(|o| o.moves()) {
        let ns = o.id.namespace.clone().unwrap_or_default();
        match o.id.kind.as_str() {
            "Service"
                if o.object
                    .pointer("/spec/type")
                    .is_some_and(|t| t == "LoadBalancer") =>
            {
                front.insert((ns, o.id.name.clone()));
            }
            "Ingress" => {
                let mut names = vec![];
                backends(&o.object["spec"], &mut names);
                front.extend(names.into_iter().map(|n| (ns.clone(), n)));
            }
            _ => {}
        }
    }
    let mut by_namespace: BTreeMap<&str, Vec<&BlueObject>> = BTreeMap::new();
    for o in i.moving(RUNNING) {
        by_namespace
            .entry(o.id.namespace.as_deref().unwrap_or(""))
            .or_default()
            .push(o);
    }
    let mut bare: BTreeMap<&str, &str> = BTreeMap::new();
    for o in i.blue.iter().filter(|o| o.id.kind == "Service") {
        let ns = o.id.namespace.as_deref().unwrap_or("");
        if !front.contains(&(ns.to_string(), o.id.name.clone())) {
            continue;
        }
        let Some(selector) = o
            .object
            .pointer("/spec/selector")
            .and_then(Value::as_object)
            .filter(|s| !s.is_empty())
        else {
            continue;
        };
        for w in by_namespace.get(ns).into_iter().flatten() {
            let labels = w.template().and_then(|t| t.pointer("/metadata/labels"));
            let hit = selector
                .iter()
                .all(|(k, v)| labels.and_then(|l| l.get(k)) == Some(v));
            if hit
                && !w
                    .containers(false)
                    .any(|c| c.get("readinessProbe").is_some())
            {
                bare.insert(&w.name, &o.name);
            }
        }
    }
    for (workload, service) in bare {
        r.found(
            workload,
            format!("no readiness probe, and {service} sends it traffic from outside: green cannot be judged by its health"),
        );
    }
}

/// Names of the Services in an Ingress's spec, of any version.
fn backends(v: &Value, out: &mut Vec<String>) {
    match v {
        Value::Object(m) => {
            let name = m
                .get("serviceName")
                .or(m.get("service").and_then(|s| s.get("name")))
                .and_then(Value::as_str);
            out.extend(name.map(String::from));
            m.values().for_each(|x| backends(x, out));
        }
        Value::Array(a) => a.iter().for_each(|x| backends(x, out)),
        _ => {}
    }
}
