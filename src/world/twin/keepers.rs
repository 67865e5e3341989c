//! Controllers that keep the cluster itself: claims, garbage, namespaces, CRDs.

use super::controllers::owned_by;
use super::kinds;
use super::state::{Ev, State};
use super::store::{Key, Store, key_of};
use crate::object::Side;
use serde_json::json;

impl State {
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
