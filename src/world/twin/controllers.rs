//! Controllers, as far as their effects are visible: pods of workloads, namespaces, claims, CRDs, garbage collection.

use super::kinds;
use super::state::{Ev, State};
use super::store::{Key, PodInfo, Store, key_of};
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

    fn pod(&self, side: Side, key: &Key) -> Option<&PodInfo> {
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
        let outcome =
            self.place(side, pod)
                .and_then(|node| match self.missing_reference(side, pod) {
                    Some(why) => Err(why),
                    None => Ok(node),
                });
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
            }
            Err(why) => {
                self.store_mut(side).update(key, |p| {
                    p["status"] = json!({"phase":"Pending","conditions":[
                        {"type":"Ready","status":"False","reason":"NotReady","message":why}]});
                });
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

    /// Status of a workload from its pods; zeros are left out, as the servers do.
    fn workload_status(&mut self, side: Side, key: &Key) {
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
                s.insert(
                    "conditions".into(),
                    json!([{"type":"Available","status":available}]),
                );
            }
            o["status"] = Value::Object(s);
        });
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

    /// Claims are bound when their class exists, or when a volume waits for them.
    pub fn bind_claim(&mut self, side: Side, key: &Key) {
        let store = self.store(side);
        let Some(claim) = store.objects.get(key) else {
            return;
        };
        let class = claim["spec"]["storageClassName"].as_str();
        let volume = claim["spec"]["volumeName"].as_str();
        let ok = match (class, volume) {
            (_, Some(v)) => store.get("", "PersistentVolume", "", v).is_some(),
            (Some(c), None) => store.get("storage.k8s.io", "StorageClass", "", c).is_some(),
            (None, None) => store
                .of_kind("storage.k8s.io", "StorageClass")
                .any(|(_, c)| {
                    crate::object::annotation(c, "storageclass.kubernetes.io/is-default-class")
                        == Some("true")
                }),
        };
        if ok {
            self.store_mut(side)
                .update(key, |o| o["status"]["phase"] = json!("Bound"));
            self.wake_pending(side);
        } else {
            let again = self.secs(60);
            self.at(again, Ev::Bind(side, key.clone()));
        }
    }

    /// Children of a gone owner go too.
    pub fn collect(&mut self, side: Side, owner: &str) {
        let children: Vec<Key> = self
            .store(side)
            .objects
            .iter()
            .filter(|(_, o)| owned_by(o, owner))
            .map(|(k, _)| k.clone())
            .collect();
        for child in children {
            self.remove_object(side, &child);
        }
    }

    /// Fills a new namespace, empties a dying one.
    pub fn namespace_controller(&mut self, side: Side, name: &str) {
        let key = key_of("", "Namespace", "", name);
        let Some(ns) = self.store(side).objects.get(&key) else {
            return;
        };
        let stamp = self.stamp();
        if ns.pointer("/metadata/deletionTimestamp").is_none() {
            for object in [
                json!({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default","namespace":name}}),
                json!({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kube-root-ca.crt","namespace":name},"data":{"ca.crt":"simulated"}}),
            ] {
                let kind = object["kind"].as_str().unwrap_or("").to_owned();
                let own = object["metadata"]["name"].as_str().unwrap_or("").to_owned();
                if self.store(side).get("", &kind, name, &own).is_none() {
                    self.store_mut(side).insert(object, &stamp);
                }
            }
            return self.wake_pending(side);
        }
        let inside: Vec<Key> = self
            .store(side)
            .objects
            .keys()
            .filter(|k| k.2 == name)
            .cloned()
            .collect();
        for k in &inside {
            self.remove_object(side, k);
        }
        if self.store(side).objects.keys().any(|k| k.2 == name) {
            let again = self.secs(5);
            self.at(again, Ev::Namespace(side, name.into()));
        } else {
            self.remove_now(side, &key);
        }
    }

    /// A CRD is served.
    pub fn established(&mut self, side: Side, key: &Key) {
        let Some(crd) = self.store(side).objects.get(key) else {
            return;
        };
        let served = kinds::of_crd(crd);
        let store: &mut Store = self.store_mut(side);
        store.update(key, |o| {
            let names = o["spec"]["names"].clone();
            o["status"] = json!({"acceptedNames": names, "conditions":[
                {"type":"NamesAccepted","status":"True"},{"type":"Established","status":"True"}]});
        });
        for k in served {
            if !store.kinds.contains(&k) {
                store.kinds.push(k);
            }
        }
    }
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
fn fits(node: &Value, spec: &Value) -> Result<(), String> {
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
