//! Rule 10: owners. A uid of blue means nothing on green, and an object whose owner is not there is garbage that is collected.

use super::UID_OF;
use super::context::Context;
use super::work::{Work, items, set, take};
use crate::object::{ObjectId, uid};
use crate::plan::model::Severity;
use crate::snapshot::roll::{self, Entry};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Who owns what on blue: only what some object names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Owners {
    by_uid: BTreeMap<String, ObjectId>,
    /// By (kind, namespace or nothing, name), with the uid that the object has.
    by_name: BTreeMap<(String, String, String), (ObjectId, Option<String>)>,
    /// Owners that do not control: they may be created again.
    plain: BTreeSet<ObjectId>,
    /// Those of them that green gets, with the version in which it gets them.
    pub(super) kept: BTreeMap<String, String>,
}

/// What an owner reference leads to.
enum Found<'a> {
    Here(&'a ObjectId),
    Elsewhere(&'a ObjectId),
    Nowhere,
}

impl Owners {
    pub(super) fn of(entries: &[Entry]) -> Owners {
        let owned = || {
            entries
                .iter()
                .filter(|e| e.child)
                .flat_map(|e| references(e.object))
        };
        let mut uids: BTreeSet<&str> = BTreeSet::new();
        let mut names: BTreeSet<(&str, &str, &str)> = BTreeSet::new();
        for (ns, r) in owned() {
            uids.extend(r["uid"].as_str());
            let (kind, name) = (word(r, "kind"), word(r, "name"));
            names.insert((kind, ns, name));
            names.insert((kind, "", name));
        }
        let mut out = Owners::default();
        if names.is_empty() {
            return out;
        }
        for Entry { id, object, .. } in entries {
            let ns = id.namespace.as_deref().unwrap_or("");
            let uid = uid(object);
            if let Some(uid) = uid.filter(|u| uids.contains(u)) {
                out.by_uid.entry(uid.into()).or_insert_with(|| id.clone());
            }
            if names.contains(&(id.kind.as_str(), ns, id.name.as_str())) {
                let key = (id.kind.clone(), ns.to_string(), id.name.clone());
                out.by_name
                    .entry(key)
                    .or_insert_with(|| (id.clone(), uid.map(String::from)));
            }
        }
        let mut plain = BTreeSet::new();
        for (ns, r) in owned().filter(|(_, r)| r["controller"] != true) {
            if let Found::Here(id) = out.find(r, ns) {
                plain.insert(id.clone());
            }
        }
        out.plain = plain;
        out
    }

    /// Whether somebody asks what becomes of this object.
    pub(super) fn wanted(&self, id: &ObjectId) -> bool {
        self.plain.contains(id)
    }

    fn find(&self, r: &Value, ns: &str) -> Found<'_> {
        let by_uid = r["uid"].as_str().and_then(|u| self.by_uid.get(u));
        if let Some(id) = by_uid {
            return match &id.namespace {
                Some(n) if n != ns => Found::Elsewhere(id),
                _ => Found::Here(id),
            };
        }
        let key = |ns: &str| {
            (
                word(r, "kind").to_string(),
                ns.to_string(),
                word(r, "name").to_string(),
            )
        };
        let named = self
            .by_name
            .get(&key(ns))
            .or_else(|| self.by_name.get(&key("")));
        match named {
            // Manifests have no uids; another uid is another object that took the name.
            Some((id, uid)) if uid.is_none() || r["uid"].as_str().is_none() => Found::Here(id),
            _ => Found::Nowhere,
        }
    }
}

impl Context {
    /// Finds out which owners that objects name are created on green (rule 10). Last of all: it judges them by everything else that is known.
    pub fn keep_owners(&mut self, snapshot: &roll::Found) {
        let mut kept = BTreeMap::new();
        for Entry {
            name, id, object, ..
        } in snapshot.blue.entries()
        {
            // What comes last, with its backend, is no owner that others could be created after.
            if !self.owners.wanted(id) || kept.contains_key(name) || crate::plan::is_last(&id.kind)
            {
                continue;
            }
            let target = super::rewrite(object, self).target;
            if let Some(api) = target.as_ref().and_then(|t| t["apiVersion"].as_str()) {
                kept.insert(name.clone(), api.to_string());
            }
        }
        self.owners.kept = kept;
    }
}

/// Owner references of an object, each with the object's namespace.
fn references(o: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let ns = o
        .get("metadata")
        .and_then(|m| m.get("namespace"))
        .and_then(Value::as_str)
        .unwrap_or("");
    o.get("metadata")
        .and_then(|m| m.get("ownerReferences"))
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(move |r| (ns, r))
}

fn word<'v>(r: &'v Value, key: &str) -> &'v str {
    r[key].as_str().unwrap_or("")
}

fn of_group(r: &Value, group: &str) -> bool {
    word(r, "apiVersion")
        .split_once('/')
        .is_some_and(|(g, _)| g == group || g.ends_with(&format!(".{group}")))
}

/// A child that its controller makes again is skipped; another owner is named, so that the run finds its uid on green; what is not there is dropped.
pub(super) fn rewrite(w: &mut Work) {
    let refs: Vec<Value> = items(w.original, "/metadata/ownerReferences")
        .cloned()
        .collect();
    if refs.is_empty() {
        return;
    }
    take(&mut w.object, "/metadata/ownerReferences");
    if w.decided() {
        return;
    }
    if w.kind() == "EndpointSlice" {
        // One that a controller keeps was skipped before; any other stands for itself.
        return w.changed(35);
    }
    let ns = w.namespace().to_string();
    let (mut kept, mut dropped, mut certificate) = (vec![], vec![], false);
    for r in &refs {
        let (kind, name) = (word(r, "kind"), word(r, "name"));
        let shown = format!("{kind}/{name}");
        if kind == "Pod" && word(r, "apiVersion") == "v1" {
            // A leader lock (rule 23).
            return w.skip(10);
        }
        if w.kind() == "Secret" && kind == "SealedSecret" && of_group(r, "bitnami.com") {
            return w.skip(42);
        }
        if w.kind() == "Secret" && kind == "Certificate" && of_group(r, "cert-manager.io") {
            // Without its Secret the certificate would be ordered again; cert-manager takes it over by its name (rule 44).
            certificate = true;
            continue;
        }
        let controls = r["controller"] == true;
        match w.cx.owners.find(r, &ns) {
            Found::Here(_) if controls => return w.skip(10),
            Found::Here(id) => match w.cx.owners.kept.get(&id.to_string()) {
                Some(api) => {
                    let mut named = json!({"apiVersion": api, "kind": kind, "name": name, "uid": format!("{UID_OF}{id}")});
                    if r["blockOwnerDeletion"] == true {
                        named["blockOwnerDeletion"] = json!(true);
                    }
                    kept.push(named);
                }
                None => dropped.push(format!("{shown}, which is not created on green")),
            },
            Found::Elsewhere(id) => dropped.push(format!(
                "{shown} of namespace {}, which cannot own anything here",
                id.namespace.as_deref().unwrap_or("")
            )),
            Found::Nowhere => dropped.push(format!("{shown}, which is not there on blue")),
        }
    }
    w.copy();
    if !kept.is_empty() {
        set(&mut w.object, "/metadata/ownerReferences", json!(kept));
    }
    w.changed(if certificate && kept.is_empty() && dropped.is_empty() {
        44
    } else {
        10
    });
    if !dropped.is_empty() {
        w.find(
            "WL-09",
            Severity::Warning,
            10,
            format!(
                "owned by {}: the reference is dropped, because what names an owner that is not there is deleted as garbage",
                dropped.join("; ")
            ),
            "Check that nothing relies on the object being deleted with its owner.",
        );
    }
}
