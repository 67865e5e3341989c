//! The store of one API server: uids, resource versions, generations, one object for all its versions.

use super::kinds;
use crate::object::{ObjectId, Side, sha256_hex};
use crate::world::kube::{ApiKind, ClusterIdentity, KubeVersion};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Storage group, kind, namespace (empty when cluster-scoped), name.
pub(super) type Key = (String, String, String, String);

/// What controllers and load balancers ask about a pod all the time, read from its JSON once per change.
#[derive(Clone)]
pub(super) struct PodInfo {
    pub labels: Vec<(String, String)>,
    pub owners: Vec<String>,
    /// Running and answering.
    pub ready: bool,
    /// Its containers run, ready or on its way out.
    pub running: bool,
    pub leaving: bool,
    pub pending: bool,
    pub node: Option<String>,
}

impl PodInfo {
    fn of(pod: &Value) -> PodInfo {
        let phase = pod["status"]["phase"].as_str().unwrap_or("");
        let conditions = pod["status"]["conditions"].as_array();
        let leaving = pod.pointer("/metadata/deletionTimestamp").is_some();
        PodInfo {
            labels: pod["metadata"]["labels"]
                .as_object()
                .into_iter()
                .flatten()
                .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())))
                .collect(),
            owners: pod["metadata"]["ownerReferences"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|r| r["uid"].as_str().map(String::from))
                .collect(),
            ready: !leaving
                && phase == "Running"
                && conditions
                    .into_iter()
                    .flatten()
                    .any(|c| c["type"] == "Ready" && c["status"] == "True"),
            running: phase == "Running",
            leaving,
            pending: phase == "Pending" && !leaving,
            node: pod["spec"]["nodeName"].as_str().map(String::from),
        }
    }
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, v)| v.as_str())
    }
    /// Whether a label selector takes it; an empty one takes nothing.
    pub fn selected(&self, selector: &Value) -> bool {
        selector.as_object().is_some_and(|m| {
            !m.is_empty()
                && m.iter()
                    .all(|(k, v)| v.as_str().is_some_and(|v| self.label(k) == Some(v)))
        })
    }
}

#[derive(Clone)]
pub(super) struct Store {
    /// All pods by namespace and name.
    pub pods: BTreeMap<(String, String), PodInfo>,
    pub side: Side,
    pub seed: u64,
    pub kinds: Vec<ApiKind>,
    pub objects: BTreeMap<Key, Value>,
    pub version: KubeVersion,
    pub identity: ClusterIdentity,
    pub rv: u64,
    uids: u64,
    /// Moves when something that routes traffic moved: pods, services, ingresses.
    pub routes: u64,
    /// Moves when something that ExternalDNS reads moved.
    pub names: u64,
    /// No Node is known (an offline snapshot): every pod finds a place.
    pub any_node: bool,
}

impl Store {
    pub fn new(side: Side, seed: u64, version: KubeVersion, kinds: Vec<ApiKind>) -> Self {
        let pin = made_up(seed, side, 0);
        Store {
            side,
            seed,
            kinds,
            pods: BTreeMap::new(),
            objects: BTreeMap::new(),
            version,
            identity: ClusterIdentity {
                uid: uuid(&pin),
                ca_sha256: sha256_hex(format!("{seed}/{side}/ca")),
            },
            rv: 1000,
            uids: 0,
            routes: 1,
            names: 1,
            any_node: false,
        }
    }

    pub fn key(id: &ObjectId) -> Key {
        key_of(
            id.group(),
            &id.kind,
            id.namespace.as_deref().unwrap_or(""),
            &id.name,
        )
    }

    /// The served kind of an id, if its very version is served.
    pub fn served(&self, id: &ObjectId) -> Option<&ApiKind> {
        self.kinds
            .iter()
            .find(|k| k.kind == id.kind && k.group == id.group() && k.version == id.version())
    }

    pub fn get(&self, group: &str, kind: &str, ns: &str, name: &str) -> Option<&Value> {
        self.objects.get(&key_of(group, kind, ns, name))
    }

    /// All objects of a kind, with their keys.
    pub fn of_kind<'a>(
        &'a self,
        group: &'a str,
        kind: &'a str,
    ) -> impl Iterator<Item = (&'a Key, &'a Value)> + 'a {
        let from = key_of(group, kind, "", "");
        self.objects
            .range(from..)
            .take_while(move |(k, _)| k.0 == group && k.1 == kind)
    }

    /// All objects of a kind in a namespace.
    pub fn in_namespace<'a>(
        &'a self,
        group: &'a str,
        kind: &'a str,
        ns: &'a str,
    ) -> impl Iterator<Item = (&'a Key, &'a Value)> + 'a {
        let from = key_of(group, kind, ns, "");
        self.objects
            .range(from..)
            .take_while(move |(k, _)| k.0 == group && k.1 == kind && k.2 == ns)
    }

    pub fn uid(&mut self) -> String {
        self.uids += 1;
        uuid(&made_up(self.seed, self.side, self.uids))
    }

    fn put(&mut self, key: &Key, object: Value) {
        if key.1 == "Pod" {
            self.pods
                .insert((key.2.clone(), key.3.clone()), PodInfo::of(&object));
        }
        self.objects.insert(key.clone(), object);
    }

    /// Names of the pods that a uid owns in a namespace, with what is known about them.
    pub fn pods_of<'a>(
        &'a self,
        ns: &'a str,
        owner: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a PodInfo)> + 'a {
        self.pods_in(ns)
            .filter(move |(_, p)| p.owners.iter().any(|o| o == owner))
    }

    /// All pods of a namespace.
    pub fn pods_in<'a>(&'a self, ns: &'a str) -> impl Iterator<Item = (&'a str, &'a PodInfo)> + 'a {
        self.pods
            .range((ns.to_owned(), String::new())..)
            .take_while(move |(k, _)| k.0 == ns)
            .map(|(k, p)| (k.1.as_str(), p))
    }

    fn touch(&mut self, kind: &str, object: &Value) {
        self.rv += 1;
        match kind {
            // Pods of Jobs are behind no Service; they come and go all day.
            "Pod" if object.pointer("/metadata/labels/job-name").is_none() => self.routes += 1,
            "Service" | "Ingress" => {
                self.routes += 1;
                self.names += 1;
            }
            _ => {}
        }
    }

    /// Stores a new object with the metadata that the server gives.
    pub fn insert(&mut self, mut object: Value, at: &str) -> (Key, Value) {
        let id =
            ObjectId::of(&object).expect("checked by the caller: has apiVersion, kind and name");
        let key = Self::key(&id);
        self.touch(&id.kind, &object);
        let fresh = self.uid();
        let rv = self.rv;
        if let Some(m) = object["metadata"].as_object_mut() {
            m.insert("uid".into(), json!(fresh));
            m.insert("resourceVersion".into(), json!(rv.to_string()));
            m.insert("creationTimestamp".into(), json!(at));
            m.remove("managedFields");
            m.remove("selfLink");
            m.remove("deletionTimestamp");
            if object.get("spec").is_some() {
                object["metadata"]["generation"] = json!(1);
            }
        }
        self.put(&key, object.clone());
        (key, object)
    }

    /// Says who holds the fields of an object that was just stored; that is part of the same write.
    pub fn annotate(&mut self, key: &Key, managers: Value) {
        if let Some(object) = self.objects.get_mut(key)
            && managers[0]["fieldsV1"]
                .as_object()
                .is_some_and(|f| !f.is_empty())
        {
            object["metadata"]["managedFields"] = managers;
        }
    }
    /// Changes that.
    pub fn annotate_with(&mut self, key: &Key, change: impl FnOnce(&mut Value)) {
        if let Some(managers) = self
            .objects
            .get_mut(key)
            .and_then(|o| o.pointer_mut("/metadata/managedFields"))
        {
            change(managers);
        }
    }

    /// Takes an object of the snapshot as it is.
    pub fn adopt(&mut self, mut object: Value) {
        let Some(id) = ObjectId::of(&object) else {
            return;
        };
        if object.pointer("/metadata/uid").is_none() {
            let uid = self.uid();
            object["metadata"]["uid"] = json!(uid);
        }
        self.rv += 1;
        object["metadata"]["resourceVersion"] = json!(self.rv.to_string());
        self.put(&Self::key(&id), object);
    }

    /// Changes an object in place; nothing moves when nothing changed. Says whether it did.
    pub fn update(&mut self, key: &Key, change: impl FnOnce(&mut Value)) -> bool {
        let Some(old) = self.objects.get(key) else {
            return false;
        };
        let mut new = old.clone();
        change(&mut new);
        if new == *old {
            return false;
        }
        let spec_changed = new.get("spec") != old.get("spec");
        self.touch(&key.1, &new);
        new["metadata"]["resourceVersion"] = json!(self.rv.to_string());
        if spec_changed {
            let g = new
                .pointer("/metadata/generation")
                .and_then(Value::as_u64)
                .unwrap_or(1);
            new["metadata"]["generation"] = json!(g + 1);
        }
        self.put(key, new);
        true
    }

    pub fn remove(&mut self, key: &Key) -> Option<Value> {
        let gone = self.objects.remove(key);
        if key.1 == "Pod" {
            self.pods.remove(&(key.2.clone(), key.3.clone()));
        }
        if let Some(gone) = &gone {
            self.touch(&key.1, gone);
        }
        gone
    }
}

pub(super) fn key_of(group: &str, kind: &str, ns: &str, name: &str) -> Key {
    (
        kinds::storage_group(group, kind).to_owned(),
        kind.to_owned(),
        ns.to_owned(),
        name.to_owned(),
    )
}

/// 32 hex digits that look random and are always the same for the same seed, side and number (splitmix64).
fn made_up(seed: u64, side: Side, n: u64) -> String {
    let mix = |mut x: u64| {
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let a = mix(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (n << 1) ^ side as u64);
    format!("{a:016x}{:016x}", mix(a.wrapping_add(n)))
}

/// A uid-looking string from hex digits.
pub(super) fn uuid(hex: &str) -> String {
    format!(
        "{}-{}-4{}-a{}-{}",
        &hex[0..8],
        &hex[8..12],
        &hex[13..16],
        &hex[17..20],
        &hex[20..32]
    )
}

/// RFC 7386.
pub(super) fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    if let Value::Object(t) = target {
        for (k, v) in patch {
            if v.is_null() {
                t.shift_remove(k);
            } else {
                merge_patch(t.entry(k.clone()).or_insert(Value::Null), v);
            }
        }
    }
}
