//! The API servers: what a request may do, and what it does.

use super::admit::{has_status, prune, validate};
use super::apply::check_preconditions;
use super::kinds;
use super::managed::{self, Who};
use super::state::{Ev, State};
use super::store::{Key, Store, merge_patch};
use super::{Twin, invariants::BlueWrite};
use crate::object::{ObjectId, Side};
use crate::world::kube::{
    Admission, Answer, ApiKind, ApplyOptions, ClusterIdentity, CreateOptions, FIELD_MANAGER, Kube,
    KubeVersion, ListPage, Listing,
};
use crate::world::{Class, Error, Result};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::time::Duration;

/// One side's API server.
pub(super) struct TwinKube {
    twin: Twin,
    side: Side,
}

impl TwinKube {
    pub fn new(twin: Twin, side: Side) -> Self {
        TwinKube { twin, side }
    }
    async fn call<T>(
        &self,
        what: impl std::fmt::Display,
        write: bool,
        act: impl FnOnce(&mut State, Side) -> Result<T>,
    ) -> Result<T> {
        let side = self.side;
        let at = format!("{side} {what}");
        self.twin
            .call(at, write, move |s| {
                if side == Side::Green {
                    s.green_admits()?;
                }
                act(s, side)
            })
            .await
    }
}

#[async_trait]
impl Kube for TwinKube {
    async fn version(&self) -> Result<KubeVersion> {
        self.call("version", false, |s, side| {
            Ok(s.store(side).version.clone())
        })
        .await
    }
    async fn identity(&self) -> Result<ClusterIdentity> {
        self.call("identity", false, |s, side| {
            Ok(s.store(side).identity.clone())
        })
        .await
    }
    async fn admits(&self, principal: &str) -> Result<Admission> {
        self.call(format!("admits {principal}"), false, |s, side| match side {
            Side::Green => Ok(s.admission(principal)),
            Side::Blue => Ok(Admission::Unproven("blue is no EKS cluster".into())),
        })
        .await
    }
    async fn kinds(&self, _refresh: bool) -> Result<Vec<ApiKind>> {
        self.call("kinds", false, |s, side| Ok(s.store(side).kinds.clone()))
            .await
    }
    async fn list(&self, kind: &ApiKind) -> Result<Listing> {
        self.call(
            format!("list {}.{}", kind.plural, kind.api_version()),
            false,
            |s, side| s.list(side, kind),
        )
        .await
    }
    async fn list_page(
        &self,
        kind: &ApiKind,
        namespace: Option<&str>,
        continue_token: Option<&str>,
    ) -> Result<ListPage> {
        let part = continue_token.map_or("", |_| " (next page)");
        self.call(
            format!("list {}.{}{part}", kind.plural, kind.api_version()),
            false,
            |s, side| s.list_page(side, kind, namespace, continue_token),
        )
        .await
    }
    async fn get(&self, id: &ObjectId) -> Result<Option<Value>> {
        self.call(format!("get {id}"), false, |s, side| {
            served(s.store(side), id)?;
            Ok(s.store(side)
                .objects
                .get(&Store::key(id))
                .map(|o| kinds::convert(o, &id.api_version)))
        })
        .await
    }
    async fn create(&self, object: &Value, options: CreateOptions) -> Result<Value> {
        Ok(self.create_heard(object, options).await?.object)
    }
    async fn create_heard(&self, object: &Value, options: CreateOptions) -> Result<Answer> {
        let name = ObjectId::of(object)
            .map(|i| i.to_string())
            .unwrap_or_default();
        self.call(format!("create {name}"), !options.dry_run, |s, side| {
            s.note_blue_write(side, "create", &name, object);
            s.create(side, object, options, FIELD_MANAGER)
        })
        .await
    }
    async fn apply_heard(&self, object: &Value, options: ApplyOptions) -> Result<Answer> {
        let name = ObjectId::of(object)
            .map(|i| i.to_string())
            .unwrap_or_default();
        self.call(format!("apply {name}"), !options.dry_run, |s, side| {
            s.note_blue_write(side, "apply", &name, object);
            s.apply(side, object, options, FIELD_MANAGER)
        })
        .await
    }
    async fn merge(&self, id: &ObjectId, body: &Value) -> Result<Value> {
        self.call(format!("merge {id}"), true, |s, side| {
            s.note_blue_write(side, "merge", &id.to_string(), body);
            s.merge(side, id, body, FIELD_MANAGER)
        })
        .await
    }
    async fn delete(&self, id: &ObjectId, uid: &str) -> Result<()> {
        self.call(format!("delete {id}"), true, |s, side| {
            s.note_blue_write(side, "delete", &id.to_string(), &Value::Null);
            s.delete(side, id, Some(uid))
        })
        .await
    }
}

/// The kind of an id as this server serves it; a removed version is a 404 like any unknown path.
pub(super) fn served(store: &Store, id: &ObjectId) -> Result<ApiKind> {
    store.served(id).cloned().ok_or_else(|| {
        Error::new(
            Class::NotFound,
            id.to_string(),
            format!(
                "the server could not find the requested resource: {} {}",
                id.api_version, id.kind
            ),
        )
        .remedy(format!(
            "{} serves other versions of this kind, or none",
            store.version.git_version
        ))
    })
}

impl State {
    fn note_blue_write(&mut self, side: Side, verb: &str, object: &str, body: &Value) {
        if side == Side::Blue {
            let at = self.now;
            self.invariants.blue_writes.push(BlueWrite {
                at,
                verb: verb.into(),
                object: object.into(),
                body: body.clone(),
            });
            if verb == "delete" {
                self.violate(format!("DELETE on blue: {object}"));
            }
        }
    }

    /// POST.
    pub fn create(
        &mut self,
        side: Side,
        object: &Value,
        options: CreateOptions,
        manager: &str,
    ) -> Result<Answer> {
        let id = ObjectId::of(object).ok_or_else(|| {
            Error::new(
                Class::Refused,
                "object",
                "apiVersion, kind and metadata.name are required",
            )
        })?;
        let at = id.to_string();
        let refuse = |why: String| Error::new(Class::Refused, &at, why);
        let store = self.store(side);
        let kind = served(store, &id)?;
        match (&id.namespace, kind.namespaced) {
            (None, true) => {
                return Err(refuse(
                    "an empty namespace may not be set during creation".into(),
                ));
            }
            (Some(_), false) => {
                return Err(refuse(
                    "namespace is not allowed on a cluster-scoped kind".into(),
                ));
            }
            (Some(ns), true) => match store.get("", "Namespace", "", ns) {
                None => {
                    return Err(Error::new(
                        Class::NotFound,
                        &at,
                        format!("namespaces \"{ns}\" not found"),
                    )
                    .remedy("create the namespace first"));
                }
                Some(n) if n.pointer("/metadata/deletionTimestamp").is_some() => {
                    // 403 with cause NamespaceTerminating: it passes.
                    return Err(Error::new(
                        Class::NotReady,
                        &at,
                        format!(
                            "forbidden: unable to create new content in namespace {ns} because it is being terminated"
                        ),
                    )
                    .remedy("wait until the old namespace is gone"));
                }
                _ => {}
            },
            (None, false) => {}
        }
        if store.objects.contains_key(&Store::key(&id)) {
            return Err(Error::new(
                Class::AlreadyExists,
                &at,
                format!("{} \"{}\" already exists", kind.plural, id.name),
            ));
        }
        validate(object, &id, side).map_err(refuse)?;
        let mut object = object.clone();
        if let Some(m) = object["metadata"].as_object_mut() {
            m.remove("generateName");
        }
        // A main-resource POST cannot set the status of kinds that have the subresource.
        if has_status(&id.kind) {
            object.as_object_mut().map(|o| o.shift_remove("status"));
        }
        let warnings = self.drop_unknown(side, &id, &mut object, options.strict)?;
        let stamp = self.stamp();
        let who = Who {
            manager,
            api_version: &id.api_version,
            at: &stamp,
        };
        let managers = managed::created(&object, &who);
        self.server_defaults(side, &mut object);
        if options.dry_run {
            return Ok(Answer { object, warnings });
        }
        let (key, _) = self.store_mut(side).insert(object, &stamp);
        self.store_mut(side).annotate(&key, managers);
        self.on_written(side, &key, true);
        let object = self.store(side).objects.get(&key).cloned();
        Ok(Answer {
            object: object.unwrap_or_default(),
            warnings,
        })
    }

    /// PATCH with a merge patch.
    pub fn merge(
        &mut self,
        side: Side,
        id: &ObjectId,
        body: &Value,
        manager: &str,
    ) -> Result<Value> {
        let at = id.to_string();
        served(self.store(side), id)?;
        let key = Store::key(id);
        let Some(stored) = self.store(side).objects.get(&key) else {
            return Err(Error::new(
                Class::NotFound,
                &at,
                format!("{} \"{}\" not found", id.kind, id.name),
            ));
        };
        let stored_version = stored["apiVersion"].as_str().unwrap_or("v1").to_owned();
        let mut view = kinds::convert(stored, &id.api_version);
        check_preconditions(&view, body, &at)?;
        let before = view.clone();
        merge_patch(&mut view, body);
        prune(self.store(side), id, &mut view);
        let stamp = self.stamp();
        let who = Who {
            manager,
            api_version: &id.api_version,
            at: &stamp,
        };
        managed::updated(&before, &mut view, &who);
        self.put_view(side, &key, id, &stored_version, &before, view)
    }

    /// Stores an object that a client changed, as far as a client may.
    pub(super) fn put_view(
        &mut self,
        side: Side,
        key: &Key,
        id: &ObjectId,
        stored_version: &str,
        before: &Value,
        mut view: Value,
    ) -> Result<Value> {
        let at = id.to_string();
        for field in [
            "uid",
            "name",
            "namespace",
            "creationTimestamp",
            "generation",
            "resourceVersion",
            "deletionTimestamp",
        ] {
            match before["metadata"].get(field) {
                Some(v) => view["metadata"][field] = v.clone(),
                None => {
                    view["metadata"]
                        .as_object_mut()
                        .map(|m| m.shift_remove(field));
                }
            }
        }
        if has_status(&id.kind) {
            match before.get("status") {
                Some(s) => view["status"] = s.clone(),
                None => {
                    view.as_object_mut().map(|o| o.shift_remove("status"));
                }
            }
        }
        if matches!(
            id.kind.as_str(),
            "Deployment" | "StatefulSet" | "DaemonSet" | "Job"
        ) && before["spec"].get("selector") != view["spec"].get("selector")
        {
            return Err(Error::new(
                Class::Refused,
                &at,
                "spec.selector: Invalid value: field is immutable",
            ));
        }
        if id.kind == "Secret" && before["type"] != view["type"] {
            return Err(Error::new(
                Class::Refused,
                &at,
                "type: Invalid value: field is immutable",
            ));
        }
        let new = kinds::convert(&view, stored_version);
        if self.store_mut(side).update(key, |o| *o = new) {
            self.on_written(side, key, false);
        }
        // The last finalizer of a dying object went: it goes too.
        self.finish_deletion(side, key);
        Ok(match self.store(side).objects.get(key) {
            Some(o) => kinds::convert(o, &id.api_version),
            None => view,
        })
    }

    /// DELETE.
    pub fn delete(&mut self, side: Side, id: &ObjectId, uid: Option<&str>) -> Result<()> {
        let at = id.to_string();
        served(self.store(side), id)?;
        let key = Store::key(id);
        let Some(stored) = self.store(side).objects.get(&key) else {
            return Err(Error::new(
                Class::NotFound,
                &at,
                format!("{} \"{}\" not found", id.kind, id.name),
            ));
        };
        if uid.is_some_and(|u| crate::object::uid(stored) != Some(u)) {
            return Err(Error::new(
                Class::Conflict,
                &at,
                "Precondition failed: the UID in the precondition is not the UID of the object",
            ));
        }
        if id.kind == "Namespace"
            && matches!(id.name.as_str(), "default" | "kube-system" | "kube-public")
        {
            return Err(Error::new(
                Class::Refused,
                &at,
                "this namespace may not be deleted",
            ));
        }
        self.remove_object(side, &key);
        Ok(())
    }

    /// What deletion does to any object: pods end gracefully, finalizers hold, namespaces empty themselves first.
    pub fn remove_object(&mut self, side: Side, key: &Key) {
        let stamp = self.stamp();
        if key.1 == "Pod" {
            return self.end_pod(side, key);
        }
        let store = self.store_mut(side);
        let Some(object) = store.objects.get(key) else {
            return;
        };
        let held = key.1 == "Namespace"
            || object
                .pointer("/metadata/finalizers")
                .and_then(Value::as_array)
                .is_some_and(|f| !f.is_empty());
        if !held {
            return self.remove_now(side, key);
        }
        let fresh = object.pointer("/metadata/deletionTimestamp").is_none();
        let balanced = object
            .pointer("/metadata/finalizers/0")
            .is_some_and(|f| f == super::lb::CLEANUP);
        if fresh && balanced {
            let after = self.secs(10);
            self.at(after, Ev::LoadBalancerGone(side, key.clone()));
        }
        let store = self.store_mut(side);
        if fresh {
            store.update(key, |o| {
                o["metadata"]["deletionTimestamp"] = json!(stamp);
                if o["kind"] == json!("Namespace") {
                    o["status"]["phase"] = json!("Terminating");
                }
            });
            if key.1 == "Namespace" {
                let after = self.secs(2);
                self.at(after, Ev::Namespace(side, key.3.clone()));
            }
        }
    }

    pub(super) fn finish_deletion(&mut self, side: Side, key: &Key) {
        let ready = self.store(side).objects.get(key).is_some_and(|o| {
            key.1 != "Namespace"
                && key.1 != "Pod"
                && o.pointer("/metadata/deletionTimestamp").is_some()
                && o.pointer("/metadata/finalizers")
                    .and_then(Value::as_array)
                    .is_none_or(Vec::is_empty)
        });
        if ready {
            self.remove_now(side, key);
        }
    }

    /// The object is gone; its children follow.
    pub fn remove_now(&mut self, side: Side, key: &Key) {
        let Some(gone) = self.store_mut(side).remove(key) else {
            return;
        };
        if let Some(uid) = crate::object::uid(&gone) {
            let ev = Ev::Collect(side, uid.to_owned());
            self.at(Duration::from_secs(1), ev);
        }
        match key.1.as_str() {
            "CustomResourceDefinition" => {
                let served = kinds::of_crd(&gone);
                if let Some(k) = served.first() {
                    let children: Vec<Key> = self
                        .store(side)
                        .of_kind(&k.group, &k.kind)
                        .map(|(k, _)| k.clone())
                        .collect();
                    for child in children {
                        self.remove_object(side, &child);
                    }
                    let (group, kind) = (k.group.clone(), k.kind.clone());
                    self.store_mut(side)
                        .kinds
                        .retain(|x| x.group != group || x.kind != kind);
                }
            }
            "Service" | "Ingress" => self.lb_gone(side, key),
            "Node" => self.node_gone(side, &key.3),
            _ => {}
        }
    }
}
