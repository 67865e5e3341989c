//! Controllers, as far as their effects are visible: pods of workloads, namespaces, claims, CRDs, garbage collection.

use super::pods::{fits, pod_of};
use super::state::{Ev, State};
use super::store::{Key, PodInfo, key_of};
use crate::object::{Side, uid};
use serde_json::{Map, Value, json};
use std::hash::{Hash, Hasher};
use std::time::Duration;

/// A controller's reaction time.
const REACT: Duration = Duration::from_secs(1);

pub(super) fn owned_by(o: &Value, owner_uid: &str) -> bool {
    o.pointer("/metadata/ownerReferences")
        .and_then(Value::as_array)
        .is_some_and(|refs| refs.iter().any(|r| r["uid"].as_str() == Some(owner_uid)))
}

impl State {
    /// Brings a freshly built side to rest: workloads have their pods, load balancers their addresses.
    pub fn start_cluster(&mut self, side: Side) {
        let keys: Vec<Key> = self.store(side).objects.keys().cloned().collect();
        self.building = true;
        for key in &keys {
            match key.1.as_str() {
                "Deployment" | "StatefulSet" => {
                    self.reconcile(side, key);
                    self.start_pods_of(side, key);
                    self.workload_status(side, key);
                }
                "Job" => self.at(REACT, Ev::Reconcile(side, key.clone())),
                "CronJob" => self.plan_cron(side, key),
                "Service" | "Ingress" => self.adopt_lb(side, key),
                _ => {}
            }
        }
        self.building = false;
        for key in keys.iter().filter(|k| k.1 == "Service") {
            self.sync_service(side, key);
        }
    }

    fn start_pods_of(&mut self, side: Side, key: &Key) {
        let Some(owner) = self
            .store(side)
            .objects
            .get(key)
            .and_then(uid)
            .map(String::from)
        else {
            return;
        };
        for pod in self.pods_of(side, &key.2, &owner) {
            self.pod_start(side, &pod);
            // What does not start now (no node, no config) is tried again like any other pod.
            if self.pod(side, &pod).is_some_and(|p| p.pending) {
                let after = self.secs(3);
                self.at(after, Ev::PodStart(side, pod));
            }
        }
    }

    /// Keys of the pods that an owner has, terminating ones too.
    pub fn pods_of(&self, side: Side, ns: &str, owner: &str) -> Vec<Key> {
        self.store(side)
            .pods_of(ns, owner)
            .map(|(name, _)| key_of("", "Pod", ns, name))
            .collect()
    }

    pub fn pod(&self, side: Side, key: &Key) -> Option<&PodInfo> {
        self.store(side).pods.get(&(key.2.clone(), key.3.clone()))
    }

    /// Hash of a workload's pod template, computed once per generation.
    fn template_hash(&mut self, object: &Value) -> String {
        let uid = uid(object).unwrap_or("").to_owned();
        let generation = object
            .pointer("/metadata/generation")
            .and_then(Value::as_u64)
            .unwrap_or(1);
        match self.hashes.get(&uid) {
            Some((g, hash)) if *g == generation => hash.clone(),
            _ => {
                let mut hasher = std::hash::DefaultHasher::new();
                crate::object::canonical(&object["spec"]["template"]).hash(&mut hasher);
                let hash = format!("{:010x}", hasher.finish() & 0xff_ffff_ffff);
                self.hashes.insert(uid, (generation, hash.clone()));
                hash
            }
        }
    }

    /// Defaults that the server fills in.
    pub fn server_defaults(&mut self, side: Side, object: &mut Value) {
        let kind = object["kind"].as_str().unwrap_or("").to_owned();
        let count = self.store(side).rv;
        let default = |o: &mut Value, field: &str, v: Value| {
            if let Some(spec) = o["spec"].as_object_mut() {
                spec.entry(field.to_owned()).or_insert(v);
            }
        };
        match kind.as_str() {
            "Namespace" => {
                let name = object["metadata"]["name"].clone();
                if self.store(side).version.minor >= 21 {
                    object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
                }
                object["spec"] = json!({"finalizers": ["kubernetes"]});
                object["status"] = json!({"phase": "Active"});
            }
            "Deployment" => {
                default(object, "replicas", json!(1));
                default(
                    object,
                    "strategy",
                    json!({"type":"RollingUpdate","rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"}}),
                );
            }
            "StatefulSet" => default(object, "replicas", json!(1)),
            "CronJob" => {
                default(object, "suspend", json!(false));
                default(object, "concurrencyPolicy", json!("Allow"));
            }
            "Service" => {
                default(object, "type", json!("ClusterIP"));
                let net = if side == Side::Blue {
                    "100.65"
                } else {
                    "10.100"
                };
                let ip = format!("{net}.{}.{}", (count / 250) % 250, 2 + count % 250);
                if object["spec"]["type"] != json!("ExternalName") {
                    default(object, "clusterIP", json!(ip));
                    let ip = object["spec"]["clusterIP"].clone();
                    default(object, "clusterIPs", json!([ip]));
                }
                object["status"] = json!({"loadBalancer": {}});
            }
            "PersistentVolumeClaim" => object["status"] = json!({"phase": "Pending"}),
            "Pod" => object["status"] = json!({"phase": "Pending"}),
            _ => {}
        }
    }

    /// An object was created or changed by a client: controllers will notice.
    pub fn on_written(&mut self, side: Side, key: &Key, created: bool) {
        self.tended(side, key);
        match key.1.as_str() {
            "Deployment" | "StatefulSet" | "DaemonSet" | "Job" => {
                self.at(REACT, Ev::Reconcile(side, key.clone()))
            }
            "HorizontalPodAutoscaler" => {
                let target =
                    self.store(side).objects.get(key).and_then(|h| {
                        Some(h["spec"]["scaleTargetRef"]["name"].as_str()?.to_owned())
                    });
                if let Some(name) = target {
                    self.at(
                        REACT,
                        Ev::Reconcile(side, key_of("apps", "Deployment", &key.2, &name)),
                    );
                }
            }
            "CronJob" => self.plan_cron(side, key),
            "Pod" if created => {
                let after = self.secs(3);
                self.at(after, Ev::PodStart(side, key.clone()));
            }
            "Namespace" if created => self.at(REACT, Ev::Namespace(side, key.3.clone())),
            "CustomResourceDefinition" => self.at(REACT * 2, Ev::Established(side, key.clone())),
            "Service" | "Ingress" => self.lb_wanted(side, key),
            "PersistentVolumeClaim" if created => {
                let after = self.secs(3);
                self.at(after, Ev::Bind(side, key.clone()));
            }
            _ => {}
        }
        if matches!(
            key.1.as_str(),
            "Node" | "ConfigMap" | "Secret" | "ServiceAccount" | "PersistentVolumeClaim"
        ) {
            self.wake_pending(side);
        }
        if key.1 == "Node" {
            let sets: Vec<Key> = self
                .store(side)
                .of_kind("apps", "DaemonSet")
                .map(|(k, _)| k.clone())
                .collect();
            for set in sets {
                self.at(REACT, Ev::Reconcile(side, set));
            }
        }
        if key.1 == "Service" {
            self.sync_service(side, key);
        }
    }

    /// Pods that wait for something look again.
    pub fn wake_pending(&mut self, side: Side) {
        let waiting: Vec<Key> = self
            .store(side)
            .pods
            .iter()
            .filter(|(_, p)| p.pending)
            .map(|(k, _)| key_of("", "Pod", &k.0, &k.1))
            .collect();
        let after = self.secs(3);
        for key in waiting {
            self.at(after, Ev::PodStart(side, key));
        }
    }

    /// One look of a workload controller.
    pub fn reconcile(&mut self, side: Side, key: &Key) {
        let Some(object) = self.store(side).objects.get(key) else {
            return;
        };
        if object.pointer("/metadata/deletionTimestamp").is_some() {
            return;
        }
        match key.1.as_str() {
            "DaemonSet" => return self.daemon_status(side, key),
            "Job" => return self.job_start(side, key),
            _ => {}
        }
        let object = object.clone();
        let owner = uid(&object).unwrap_or("").to_owned();
        let want =
            self.autoscaled(side, key, object["spec"]["replicas"].as_u64().unwrap_or(1)) as usize;
        let hash = self.template_hash(&object);
        let mut current = vec![];
        let mut old = vec![];
        let mut leaving_old = false;
        for pod in self.pods_of(side, &key.2, &owner) {
            let Some(p) = self.pod(side, &pod) else {
                continue;
            };
            match (
                p.leaving,
                p.label("pod-template-hash") == Some(hash.as_str()),
            ) {
                (true, false) => leaving_old = true,
                (true, true) => {}
                (false, true) => current.push(pod),
                (false, false) => old.push(pod),
            }
        }
        let stateful = key.1 == "StatefulSet";
        let recreate = stateful || object["spec"]["strategy"]["type"] == json!("Recreate");
        if recreate && !old.is_empty() {
            for pod in &old {
                self.end_pod(side, pod);
            }
            return self.workload_status(side, key);
        }
        if !(recreate && leaving_old) {
            let mut n = current.len();
            let mut ordinal = 0;
            while n < want {
                let name = if stateful {
                    while self
                        .store(side)
                        .get("", "Pod", &key.2, &format!("{}-{ordinal}", key.3))
                        .is_some()
                    {
                        ordinal += 1;
                    }
                    if ordinal >= want {
                        break; // An earlier pod of that ordinal is still leaving.
                    }
                    format!("{}-{ordinal}", key.3)
                } else {
                    let id = self.store_mut(side).uid();
                    format!("{}-{hash}-{}", key.3, &id[..5])
                };
                let pod = pod_of(&object, &name, &hash);
                if stateful {
                    self.claims_of(side, &object, &name);
                }
                self.make_pod(side, pod);
                if !stateful && !self.building {
                    let deadline = object["spec"]["progressDeadlineSeconds"]
                        .as_u64()
                        .unwrap_or(600);
                    // "No limit" is the largest number of 32 bits.
                    if deadline < 86_400 {
                        self.at(
                            Duration::from_secs(deadline),
                            Ev::Reconcile(side, key.clone()),
                        );
                    }
                }
                n += 1;
            }
            // Unready ones go first, of a StatefulSet the highest ordinals.
            current.sort_by_key(|k| {
                let ready = self.pod(side, k).is_some_and(|p| p.ready);
                (stateful || ready, k.3.len(), k.3.clone())
            });
            let surplus = current.len().saturating_sub(want);
            let go: Vec<Key> = if stateful {
                current.iter().rev().take(surplus).cloned().collect()
            } else {
                current.iter().take(surplus).cloned().collect()
            };
            for pod in go {
                self.end_pod(side, &pod);
            }
        }
        let ready = current
            .iter()
            .filter(|k| self.pod(side, k).is_some_and(|p| p.ready))
            .count();
        if ready >= want {
            for pod in &old {
                self.end_pod(side, pod);
            }
        }
        self.workload_status(side, key);
    }

    /// What an autoscaler makes of a replica count: never below its minimum, and never awake at 0.
    fn autoscaled(&mut self, side: Side, key: &Key, replicas: u64) -> u64 {
        if replicas == 0 || key.1 != "Deployment" {
            return replicas;
        }
        let least = self
            .store(side)
            .in_namespace("autoscaling", "HorizontalPodAutoscaler", &key.2)
            .find(|(_, h)| h["spec"]["scaleTargetRef"]["name"] == json!(key.3))
            .and_then(|(_, h)| h["spec"]["minReplicas"].as_u64());
        match least {
            Some(min) if replicas < min => {
                self.store_mut(side)
                    .update(key, |o| o["spec"]["replicas"] = json!(min));
                min
            }
            _ => replicas,
        }
    }

    fn make_pod(&mut self, side: Side, pod: Value) {
        let stamp = self.stamp();
        let (key, _) = self.store_mut(side).insert(pod, &stamp);
        if !self.building {
            let after = self.secs(3);
            self.at(after, Ev::PodStart(side, key));
        }
    }

    fn claims_of(&mut self, side: Side, set: &Value, pod: &str) {
        let ns = set["metadata"]["namespace"]
            .as_str()
            .unwrap_or("default")
            .to_owned();
        for template in set["spec"]["volumeClaimTemplates"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let name = format!(
                "{}-{pod}",
                template["metadata"]["name"].as_str().unwrap_or("data")
            );
            if self
                .store(side)
                .get("", "PersistentVolumeClaim", &ns, &name)
                .is_some()
            {
                continue;
            }
            let claim = json!({"apiVersion":"v1","kind":"PersistentVolumeClaim",
                "metadata":{"name":name,"namespace":ns,"labels":set["spec"]["selector"]["matchLabels"]},
                "spec":template["spec"],"status":{"phase":"Pending"}});
            let stamp = self.stamp();
            let (key, _) = self.store_mut(side).insert(claim, &stamp);
            let after = self.secs(3);
            self.at(after, Ev::Bind(side, key));
        }
    }

    /// Status of a workload from its pods; zeros are left out, as the servers do.
    pub fn workload_status(&mut self, side: Side, key: &Key) {
        if !matches!(key.1.as_str(), "Deployment" | "StatefulSet") {
            return;
        }
        let Some(object) = self.store(side).objects.get(key).cloned() else {
            return;
        };
        let owner = uid(&object).unwrap_or("").to_owned();
        let hash = self.template_hash(&object);
        let want = object["spec"]["replicas"].as_u64().unwrap_or(1);
        let generation = object["metadata"]["generation"].clone();
        let (mut all, mut ready, mut updated) = (0u64, 0u64, 0u64);
        let pods = self.store(side).pods_of(&key.2, &owner);
        for (_, p) in pods.filter(|(_, p)| !p.leaving) {
            all += 1;
            ready += u64::from(p.ready);
            updated += u64::from(p.label("pod-template-hash") == Some(hash.as_str()));
        }
        let stateful = key.1 == "StatefulSet";
        let late = ready < want && self.past_deadline(side, key, &object);
        self.store_mut(side).update(key, |o| {
            let mut s = Map::new();
            if !generation.is_null() {
                s.insert("observedGeneration".into(), generation);
            }
            for (name, n, keep_zero) in [
                ("replicas", all, stateful),
                ("updatedReplicas", updated, false),
                ("readyReplicas", ready, false),
                ("availableReplicas", ready, false),
                ("currentReplicas", if stateful { all } else { 0 }, false),
                (
                    "unavailableReplicas",
                    if stateful {
                        0
                    } else {
                        want.saturating_sub(ready)
                    },
                    false,
                ),
            ] {
                if n > 0 || keep_zero {
                    s.insert(name.into(), json!(n));
                }
            }
            if !stateful {
                let available = if ready >= want { "True" } else { "False" };
                let mut conditions = json!([{"type":"Available","status":available}]);
                if late && ready < want {
                    let late = json!({"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded"});
                    if let Some(c) = conditions.as_array_mut() {
                        c.push(late);
                    }
                }
                s.insert("conditions".into(), conditions);
            }
            o["status"] = Value::Object(s);
        });
    }

    /// Whether the oldest pod of a Deployment that is not ready has waited longer than its deadline (600 s by default).
    fn past_deadline(&self, side: Side, key: &Key, object: &Value) -> bool {
        let deadline = object["spec"]["progressDeadlineSeconds"]
            .as_i64()
            .unwrap_or(600);
        let now = self.timestamp().as_second();
        let owner = uid(object).unwrap_or("");
        self.pods_of(side, &key.2, owner).iter().any(|pod| {
            let since = self
                .store(side)
                .objects
                .get(pod)
                .and_then(|p| p.pointer("/metadata/creationTimestamp")?.as_str())
                .and_then(|t| t.parse::<jiff::Timestamp>().ok());
            let waits = self.pod(side, pod).is_some_and(|p| !p.ready && !p.leaving);
            waits && since.is_some_and(|t| now - t.as_second() >= deadline)
        })
    }

    fn daemon_status(&mut self, side: Side, key: &Key) {
        let template = self.store(side).objects[key]["spec"]["template"].clone();
        let pod = json!({"spec": template["spec"]});
        let n = self
            .store(side)
            .of_kind("", "Node")
            .filter(|(_, node)| fits(node, &pod["spec"]).is_ok())
            .count();
        self.store_mut(side).update(key, |o| {
            let g = o["metadata"]["generation"].clone();
            o["status"] = json!({"observedGeneration":g,"desiredNumberScheduled":n,"currentNumberScheduled":n,
                "numberReady":n,"numberAvailable":n,"updatedNumberScheduled":n,"numberMisscheduled":0});
        });
    }
}
