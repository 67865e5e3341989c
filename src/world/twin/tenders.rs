//! Who tends workloads beside the built-in controllers: KEDA scales its targets, Flux and Argo CD put back what somebody changed. Only as far
//! as it matters to a migration: whether what was stopped stays stopped.

use super::state::{Ev, State};
use super::store::{Key, key_of};
use crate::object::{Side, annotation, label};
use serde_json::{Value, json};
use std::time::Duration;

/// How long they take to notice.
const NOTICE: Duration = Duration::from_secs(5);

/// What a repository declares of a workload, as far as somebody could change it by hand.
fn declared_field(kind: &str) -> Option<&'static str> {
    match kind {
        "Deployment" | "StatefulSet" => Some("replicas"),
        "CronJob" => Some("suspend"),
        _ => None,
    }
}

impl State {
    /// Remembers what the repositories say, from how blue was found.
    pub fn note_declared(&mut self, side: Side) {
        let mut found = vec![];
        for (key, object) in &self.store(side).objects {
            if let Some(field) = declared_field(&key.1) {
                found.push((key.clone(), object["spec"][field].clone()));
            }
        }
        for (key, value) in found {
            self.declared.insert((side, key), value);
        }
    }

    /// Somebody wrote: whoever tends that will notice.
    pub fn tended(&mut self, side: Side, key: &Key) {
        let target = if key.0 == "keda.sh" {
            self.store(side).objects.get(key).and_then(scaled)
        } else {
            declared_field(&key.1).map(|_| key.clone())
        };
        let all = self.store(side).kinds.iter().any(|k| {
            k.group == "keda.sh"
                || k.group.ends_with("toolkit.fluxcd.io")
                || k.group == "argoproj.io"
        });
        if let Some(target) = target.filter(|_| all) {
            self.at(NOTICE, Ev::Tend(side, target));
        }
    }

    /// A controller of KEDA came up: it looks at everything.
    pub fn tender_started(&mut self, side: Side, pod: &Value) {
        if !image(pod).contains("keda") {
            return;
        }
        let targets: Vec<Key> = self
            .store(side)
            .of_kind("keda.sh", "ScaledObject")
            .filter_map(|(_, o)| scaled(o))
            .collect();
        for target in targets {
            self.at(NOTICE, Ev::Tend(side, target));
        }
    }

    /// Whether a controller of this name runs.
    fn runs_image(&self, side: Side, part: &str) -> bool {
        self.store(side).of_kind("", "Pod").any(|(_, p)| {
            p["status"]["phase"] == json!("Running")
                && p.pointer("/metadata/deletionTimestamp").is_none()
                && image(p).contains(part)
        })
    }

    /// They look at a workload.
    pub fn tend(&mut self, side: Side, key: &Key) {
        let Some(object) = self.store(side).objects.get(key).cloned() else {
            return;
        };
        let Some(field) = declared_field(&key.1) else {
            return;
        };
        let mut wanted: Option<Value> = None;
        if self.runs_image(side, "keda") {
            let scaler = self
                .store(side)
                .in_namespace("keda.sh", "ScaledObject", &key.2)
                .find(|(_, o)| scaled(o).as_ref() == Some(key))
                .map(|(_, o)| o.clone());
            if let Some(scaler) = scaler {
                let paused = annotation(&scaler, "autoscaling.keda.sh/paused-replicas");
                let least = scaler["spec"]["minReplicaCount"]
                    .as_u64()
                    .unwrap_or(1)
                    .max(1);
                wanted = match paused.and_then(|p| p.parse::<u64>().ok()) {
                    Some(n) => Some(json!(n)),
                    // There is always work in this company.
                    None => (object["spec"][field] == json!(0)).then(|| json!(least)),
                };
            }
        }
        if wanted.is_none() && self.healed(side, &object) {
            wanted = self.declared.get(&(side, key.clone())).cloned();
        }
        let Some(wanted) = wanted.filter(|w| *w != object["spec"][field]) else {
            return;
        };
        self.store_mut(side).update(key, |o| {
            o["spec"][field] = wanted;
            let generation = o["metadata"]["generation"].as_u64().unwrap_or(1) + 1;
            o["metadata"]["generation"] = json!(generation);
        });
        if key.1 == "CronJob" {
            self.plan_cron(side, key);
        } else {
            self.at(Duration::from_secs(1), Ev::Reconcile(side, key.clone()));
        }
    }

    /// Whether a GitOps tool that is awake keeps an object.
    fn healed(&self, side: Side, object: &Value) -> bool {
        let store = self.store(side);
        let flux = label(object, "kustomize.toolkit.fluxcd.io/name")
            .zip(label(object, "kustomize.toolkit.fluxcd.io/namespace"))
            .and_then(|(name, ns)| {
                store.get("kustomize.toolkit.fluxcd.io", "Kustomization", ns, name)
            })
            .is_some_and(|k| k["spec"]["suspend"] != json!(true));
        if flux && self.runs_image(side, "kustomize-controller") {
            return true;
        }
        let argo = label(object, "argocd.argoproj.io/instance").is_some_and(|app| {
            store.of_kind("argoproj.io", "Application").any(|(k, a)| {
                k.3 == app
                    && a.pointer("/spec/syncPolicy/automated/selfHeal") == Some(&json!(true))
                    && annotation(a, "argocd.argoproj.io/skip-reconcile") != Some("true")
            })
        });
        argo && self.runs_image(side, "argocd")
    }
}

fn image(pod: &Value) -> &str {
    pod.pointer("/spec/containers/0/image")
        .and_then(Value::as_str)
        .unwrap_or("")
}

/// What a ScaledObject scales.
fn scaled(object: &Value) -> Option<Key> {
    let target = &object["spec"]["scaleTargetRef"];
    let kind = target["kind"].as_str().unwrap_or("Deployment");
    let ns = object["metadata"]["namespace"].as_str()?;
    (object["kind"] == "ScaledObject")
        .then(|| key_of("apps", kind, ns, target["name"].as_str().unwrap_or("")))
}
