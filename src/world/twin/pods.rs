//! Pods: where they are placed, what they wait for, how they start and end.

use super::state::{Ev, State};
use super::store::{Key, key_of};
use crate::object::Side;
use serde_json::{Value, json};
use std::time::Duration;

/// A controller's reaction time.
const REACT: Duration = Duration::from_secs(1);

impl State {
    /// The kubelet tries to start a pod.
    pub fn pod_start(&mut self, side: Side, key: &Key) {
        let Some(pod) = self.store(side).objects.get(key) else {
            return;
        };
        if pod.pointer("/metadata/deletionTimestamp").is_some()
            || pod["status"]["phase"] != json!("Pending")
        {
            return;
        }
        let outcome = match self.place(side, pod) {
            Err(why) => Err(unscheduled(&why)),
            Ok(node) => match self.missing_reference(side, pod) {
                Some(why) => Err(waiting(pod, &node, &why)),
                None => Ok(node),
            },
        };
        let count = self.store(side).rv;
        match outcome {
            Ok(node) => {
                let account = pod["spec"]["serviceAccountName"]
                    .as_str()
                    .unwrap_or("default");
                let broken = (side == Side::Green)
                    .then(|| self.identity_broken(&key.2, account))
                    .flatten();
                if let Some(why) = broken {
                    self.violate(why);
                }
                let net = if side == Side::Blue {
                    "100.96"
                } else {
                    "172.20"
                };
                let ip = format!("{net}.{}.{}", (count / 250) % 250, 2 + count % 250);
                self.store_mut(side).update(key, |p| {
                    p["spec"]["nodeName"] = json!(node);
                    p["status"] = json!({"phase":"Running","podIP":ip,"conditions":[
                        {"type":"PodScheduled","status":"True"},{"type":"Ready","status":"True"}]});
                });
                let pod = self.store(side).objects.get(key).cloned();
                if let Some(pod) = pod {
                    self.tender_started(side, &pod);
                }
            }
            Err(status) => {
                self.store_mut(side).update(key, |p| p["status"] = status);
            }
        }
        self.pod_changed(side, key);
    }

    fn pod_changed(&mut self, side: Side, key: &Key) {
        if self.building {
            return;
        }
        let owners: Vec<Key> = self
            .store(side)
            .objects
            .get(key)
            .and_then(|p| p.pointer("/metadata/ownerReferences"))
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|r| {
                let group = r["apiVersion"]
                    .as_str()?
                    .split_once('/')
                    .map_or("", |x| x.0);
                Some(key_of(
                    group,
                    r["kind"].as_str()?,
                    &key.2,
                    r["name"].as_str()?,
                ))
            })
            .collect();
        for owner in owners {
            if owner.1 == "Job" {
                let after = self.secs(20);
                self.at(after, Ev::JobDone(side, owner));
            } else {
                self.workload_status(side, &owner);
                self.at(REACT, Ev::Reconcile(side, owner.clone()));
                self.edns_maybe_started(side, &owner);
                self.check_singleton(&owner);
            }
        }
        self.sync_endpoints(side, &key.2, &key.3);
    }

    /// SIGTERM: out of the endpoints at once, gone after a grace.
    pub fn end_pod(&mut self, side: Side, key: &Key) {
        let stamp = self.stamp();
        let Some(pod) = self.store(side).objects.get(key) else {
            return;
        };
        if pod.pointer("/metadata/deletionTimestamp").is_some() {
            return;
        }
        let grace = pod["spec"]["terminationGracePeriodSeconds"]
            .as_u64()
            .unwrap_or(30)
            .min(3);
        let grace = if pod["status"]["phase"] == "Running" {
            grace
        } else {
            0
        };
        self.store_mut(side)
            .update(key, |p| p["metadata"]["deletionTimestamp"] = json!(stamp));
        let after = self.secs(grace);
        self.at(after, Ev::PodGone(side, key.clone()));
        self.sync_endpoints(side, &key.2, &key.3);
    }

    /// A terminating pod is gone.
    // It left the endpoints when it began to leave.
    pub fn pod_gone(&mut self, side: Side, key: &Key) {
        let Some(pod) = self.store_mut(side).remove(key) else {
            return;
        };
        for r in pod
            .pointer("/metadata/ownerReferences")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let group = r["apiVersion"]
                .as_str()
                .and_then(|a| a.split_once('/'))
                .map_or("", |x| x.0);
            if let (Some(kind), Some(name)) = (r["kind"].as_str(), r["name"].as_str()) {
                let owner = key_of(group, kind, &key.2, name);
                self.workload_status(side, &owner);
                if kind != "Job" {
                    self.at(REACT, Ev::Reconcile(side, owner));
                }
            }
        }
    }

    /// A node went: so do its pods.
    pub fn node_gone(&mut self, side: Side, node: &str) {
        let pods: Vec<Key> = self
            .store(side)
            .pods
            .iter()
            .filter(|(_, p)| p.node.as_deref() == Some(node))
            .map(|(k, _)| key_of("", "Pod", &k.0, &k.1))
            .collect();
        for pod in pods {
            self.end_pod(side, &pod);
        }
    }

    /// A node for a pod, or why there is none.
    fn place(&self, side: Side, pod: &Value) -> Result<String, String> {
        let store = self.store(side);
        if store.any_node {
            return Ok("node".into());
        }
        let mut why = vec![];
        let mut found = vec![];
        for (key, node) in store.of_kind("", "Node") {
            match fits(node, &pod["spec"]) {
                Ok(()) => found.push(&key.3),
                Err(e) => why.push(format!("{}: {e}", key.3)),
            }
        }
        if found.is_empty() {
            why.truncate(3);
            return Err(format!("0 nodes are available: {}", why.join("; ")));
        }
        Ok(found[store.rv as usize % found.len()].clone())
    }

    /// A ConfigMap, Secret, service account or claim that the pod needs and that is not there.
    fn missing_reference(&self, side: Side, pod: &Value) -> Option<String> {
        let store = self.store(side);
        let ns = pod["metadata"]["namespace"].as_str().unwrap_or("default");
        let spec = &pod["spec"];
        let absent = |kind: &str, name: &Value, optional: &Value| {
            let name = name.as_str()?;
            (optional != &json!(true) && store.get("", kind, ns, name).is_none())
                .then(|| format!("{kind} {ns}/{name} not found"))
        };
        let no = Value::Null;
        if store.side == Side::Green
            && let Some(why) = absent("ServiceAccount", &spec["serviceAccountName"], &no)
        {
            return Some(why);
        }
        let containers = ["initContainers", "containers"]
            .iter()
            .flat_map(|f| spec[*f].as_array().into_iter().flatten());
        for c in containers {
            for e in c["envFrom"].as_array().into_iter().flatten() {
                let (m, s) = (&e["configMapRef"], &e["secretRef"]);
                let hit = absent("ConfigMap", &m["name"], &m["optional"])
                    .or_else(|| absent("Secret", &s["name"], &s["optional"]));
                if hit.is_some() {
                    return hit;
                }
            }
            for e in c["env"].as_array().into_iter().flatten() {
                let (m, s) = (
                    &e["valueFrom"]["configMapKeyRef"],
                    &e["valueFrom"]["secretKeyRef"],
                );
                let hit = absent("ConfigMap", &m["name"], &m["optional"])
                    .or_else(|| absent("Secret", &s["name"], &s["optional"]));
                if hit.is_some() {
                    return hit;
                }
            }
        }
        for v in spec["volumes"].as_array().into_iter().flatten() {
            let hit = absent(
                "ConfigMap",
                &v["configMap"]["name"],
                &v["configMap"]["optional"],
            )
            .or_else(|| {
                absent(
                    "Secret",
                    &v["secret"]["secretName"],
                    &v["secret"]["optional"],
                )
            });
            if hit.is_some() {
                return hit;
            }
            if let Some(claim) = v["persistentVolumeClaim"]["claimName"].as_str()
                && store.side == Side::Green
                && store
                    .get("", "PersistentVolumeClaim", ns, claim)
                    .is_none_or(|c| c["status"]["phase"] != json!("Bound"))
            {
                return Some(format!("PersistentVolumeClaim {ns}/{claim} is not bound"));
            }
        }
        None
    }
}

/// Status of a pod that no node takes.
fn unscheduled(why: &str) -> Value {
    json!({"phase":"Pending","conditions":[
        {"type":"PodScheduled","status":"False","reason":"Unschedulable","message":why},
        {"type":"Ready","status":"False","reason":"NotReady","message":why}]})
}

/// Status of a pod that has a node and lacks something else.
fn waiting(pod: &Value, node: &str, why: &str) -> Value {
    let name = pod.pointer("/spec/containers/0/name").cloned();
    json!({"phase":"Pending","hostIP":node,"conditions":[
            {"type":"PodScheduled","status":"True"},
            {"type":"Ready","status":"False","reason":"ContainersNotReady","message":why}],
        "containerStatuses":[{"name":name,"ready":false,"state":{"waiting":{"reason":"CreateContainerConfigError","message":why}}}]})
}

/// A pod of a workload.
pub(super) fn pod_of(owner: &Value, name: &str, hash: &str) -> Value {
    let template = &owner["spec"]["template"];
    let mut metadata = template["metadata"].clone();
    if !metadata.is_object() {
        metadata = json!({});
    }
    metadata["name"] = json!(name);
    metadata["namespace"] = owner["metadata"]["namespace"].clone();
    metadata["labels"]["pod-template-hash"] = json!(hash);
    metadata["ownerReferences"] = json!([{"apiVersion":owner["apiVersion"],"kind":owner["kind"],
        "name":owner["metadata"]["name"],"uid":owner["metadata"]["uid"],"controller":true}]);
    json!({"apiVersion":"v1","kind":"Pod","metadata":metadata,"spec":template["spec"],"status":{"phase":"Pending"}})
}

/// Whether a node takes a pod: ready, selector, required affinity, taints.
pub(super) fn fits(node: &Value, spec: &Value) -> Result<(), String> {
    let ready = node["status"]["conditions"].as_array().is_none_or(|c| {
        c.iter()
            .find(|c| c["type"] == json!("Ready"))
            .is_none_or(|c| c["status"] == json!("True"))
    });
    if !ready {
        return Err("not ready".into());
    }
    if node["spec"]["unschedulable"] == json!(true) {
        return Err("unschedulable".into());
    }
    let labels = &node["metadata"]["labels"];
    for (k, v) in spec["nodeSelector"].as_object().into_iter().flatten() {
        if labels.get(k) != Some(v) {
            return Err(format!("no label {k}={}", v.as_str().unwrap_or("")));
        }
    }
    let terms = spec.pointer(
        "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms",
    );
    if let Some(terms) = terms.and_then(Value::as_array)
        && !terms.iter().any(|t| {
            t["matchExpressions"]
                .as_array()
                .into_iter()
                .flatten()
                .all(|e| expression(labels, e))
        })
    {
        return Err("node affinity does not match".into());
    }
    for taint in node["spec"]["taints"].as_array().into_iter().flatten() {
        if taint["effect"] == json!("PreferNoSchedule") {
            continue;
        }
        let tolerated = spec["tolerations"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|t| {
                let key = t["key"].as_str().unwrap_or("");
                let exists = t["operator"] == json!("Exists");
                (key.is_empty() && exists || taint["key"] == json!(key))
                    && (t["effect"].as_str().unwrap_or("").is_empty()
                        || t["effect"] == taint["effect"])
                    && (exists
                        || t["value"].as_str().unwrap_or("")
                            == taint["value"].as_str().unwrap_or(""))
            });
        if !tolerated {
            return Err(format!(
                "taint {} is not tolerated",
                taint["key"].as_str().unwrap_or("")
            ));
        }
    }
    Ok(())
}

fn expression(labels: &Value, e: &Value) -> bool {
    let have = e["key"].as_str().and_then(|k| labels.get(k));
    let among = have.is_some_and(|v| e["values"].as_array().is_some_and(|vs| vs.contains(v)));
    match e["operator"].as_str() {
        Some("In") => among,
        Some("NotIn") => !among,
        Some("Exists") => have.is_some(),
        Some("DoesNotExist") => have.is_none(),
        _ => true,
    }
}
