//! Who holds which field, by `managedFields`.

use super::path::{Path, Seg, is_item};
use crate::world::kube::FIELD_MANAGER;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Managers whose additions are what a server makes of any object: allocated addresses, bound volumes, counters. What they add beside our
/// fields is no news to anybody; a change of a value that we wrote is, whoever made it.
const SERVERS: &[&str] = &[
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "cloud-controller-manager",
    "aws-cloud-controller-manager",
    "eks",
    "vpc-resource-controller",
    "clusterrole-aggregation-controller",
];

/// The managers of one object.
#[derive(Clone, Debug, Default)]
pub struct Managers {
    /// Name and field set, `status` left out.
    entries: Vec<(String, Value)>,
}

impl Managers {
    /// Of a live object; nothing when the server tells nothing.
    pub fn of(object: &Value) -> Managers {
        let entries = object
            .pointer("/metadata/managedFields")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter(|e| {
                let fields = e["fieldsV1"].as_object();
                e["subresource"] != "status" && fields.is_some_and(|f| !f.is_empty())
            })
            .map(|e| {
                (
                    e["manager"].as_str().unwrap_or("?").to_string(),
                    e["fieldsV1"].clone(),
                )
            })
            .collect();
        Managers { entries }
    }
    /// Whether anything is known.
    pub fn known(&self) -> bool {
        !self.entries.is_empty()
    }
    /// Everybody who holds a field, or something of it or above it.
    pub fn of_path(&self, path: &Path) -> BTreeSet<&str> {
        self.entries
            .iter()
            .filter(|(_, fields)| holds(fields, &path.0))
            .map(|(name, _)| name.as_str())
            .collect()
    }
    /// Whether only we hold a field: then its value is what we wrote, in the server's own spelling (`1000m` is stored as `1`).
    pub fn only_ours(&self, path: &Path) -> bool {
        let all = self.of_path(path);
        !all.is_empty() && all.iter().all(|m| *m == FIELD_MANAGER)
    }
    /// Those beside us who hold something at or below a path.
    pub fn others(&self, path: &Path) -> Vec<String> {
        self.of_path(path)
            .into_iter()
            .filter(|m| *m != FIELD_MANAGER)
            .map(String::from)
            .collect()
    }
    /// The same without the servers themselves.
    pub fn people(&self, path: &Path) -> Vec<String> {
        let mut all = self.others(path);
        all.retain(|m| !SERVERS.contains(&m.as_str()));
        all
    }
    /// The part of an object that we hold, with its values as they are: an apply of it changes nothing. What only others hold is not in
    /// it; identity is.
    pub fn ours(&self, object: &Value) -> Value {
        let mut fields = Value::Object(Map::new());
        for (name, set) in &self.entries {
            if name == FIELD_MANAGER {
                unite(&mut fields, set);
            }
        }
        let mut out = extract(&fields, object).unwrap_or_else(|| Value::Object(Map::new()));
        for key in ["apiVersion", "kind"] {
            out[key] = object[key].clone();
        }
        out.as_object_mut().map(|o| o.shift_remove("status"));
        let kept = out["metadata"].take();
        let mut meta = Map::new();
        for key in ["name", "namespace"] {
            if let Some(v) = object["metadata"].get(key) {
                meta.insert(key.into(), v.clone());
            }
        }
        for key in ["labels", "annotations", "ownerReferences", "finalizers"] {
            if let Some(v) = kept.get(key) {
                meta.insert(key.into(), v.clone());
            }
        }
        out["metadata"] = Value::Object(meta);
        out
    }
}

fn unite(into: &mut Value, from: &Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        for (key, value) in from {
            unite(
                into.entry(key.clone())
                    .or_insert_with(|| Value::Object(Map::new())),
                value,
            );
        }
    }
}

/// The keys of an item as `fieldsV1` spells them, `k:{"name":"web"}`.
fn item_keys(spelled: &str) -> Option<BTreeMap<String, Value>> {
    serde_json::from_str(spelled.strip_prefix("k:")?).ok()
}

/// A set without members below: it stands for everything there.
fn is_leaf(fields: &Value) -> bool {
    fields.as_object().is_none_or(Map::is_empty)
}

/// Whether a field set has a path, or something above or below it.
fn holds(fields: &Value, path: &[Seg]) -> bool {
    let Some((seg, rest)) = path.split_first() else {
        return true;
    };
    // Held as a whole further up.
    if is_leaf(fields) {
        return true;
    }
    let Some(map) = fields.as_object() else {
        return false;
    };
    map.iter().any(|(spelled, below)| {
        let meant = match seg {
            Seg::Key(key) => spelled.strip_prefix("f:") == Some(key.as_str()),
            Seg::Item(keys) => item_keys(spelled).is_some_and(|k| {
                k.iter()
                    .all(|(name, v)| keys.get(name).is_none_or(|w| w == v))
            }),
        };
        meant && holds(below, rest)
    })
}

/// The part of a value that a field set names.
fn extract(fields: &Value, value: &Value) -> Option<Value> {
    if is_leaf(fields) {
        return Some(value.clone());
    }
    let map = fields.as_object()?;
    match value {
        Value::Object(object) => {
            let mut out = Map::new();
            for (key, v) in object {
                if let Some(below) = map.get(&format!("f:{key}"))
                    && let Some(part) = extract(below, v)
                {
                    out.insert(key.clone(), part);
                }
            }
            (!out.is_empty() || map.contains_key(".")).then_some(Value::Object(out))
        }
        Value::Array(list) => {
            let mut out = vec![];
            for item in list {
                let mine = map.iter().find_map(|(spelled, below)| {
                    let keys = item_keys(spelled)?;
                    is_item(item, &keys).then_some((keys, below))
                });
                if let Some((keys, below)) = mine {
                    let mut part = match below.as_object().is_some_and(|b| b.is_empty()) {
                        true => item.clone(),
                        false => extract(below, item).unwrap_or_else(|| Value::Object(Map::new())),
                    };
                    for (key, v) in keys {
                        if part.get(&key).is_none() {
                            part[key] = v;
                        }
                    }
                    out.push(part);
                } else if map.contains_key(&format!("v:{item}")) {
                    out.push(item.clone());
                }
            }
            (!out.is_empty() || map.contains_key(".")).then_some(Value::Array(out))
        }
        other => Some(other.clone()),
    }
}
