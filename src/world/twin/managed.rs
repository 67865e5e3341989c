//! Who holds which field: `managedFields` as far as an apply and an undo need them.
//!
//! Fields are leaf paths; lists whose items all have a `name` of their own are keyed by it, any other list is one value. A real server
//! keys by schema (ports by number and protocol, finalizers by value); nothing that crossfade asks depends on that.

use crate::world::{Class, Error};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Steps from the root to a leaf, spelled as in `fieldsV1`: `f:spec`, `k:{"name":"web"}`.
type Path = Vec<String>;

/// Metadata that clients hold; the rest is the server's.
const METADATA: &[&str] = &["annotations", "labels", "finalizers", "ownerReferences"];

/// All leaves of an object that a client can hold.
fn leaves(object: &Value) -> BTreeMap<Path, &Value> {
    let mut out = BTreeMap::new();
    for (key, value) in object.as_object().into_iter().flatten() {
        match key.as_str() {
            "apiVersion" | "kind" | "status" => {}
            "metadata" => {
                for field in METADATA {
                    if let Some(v) = value.get(field) {
                        walk(v, vec!["f:metadata".into(), format!("f:{field}")], &mut out);
                    }
                }
            }
            _ => walk(value, vec![format!("f:{key}")], &mut out),
        }
    }
    out
}

fn walk<'a>(value: &'a Value, path: Path, out: &mut BTreeMap<Path, &'a Value>) {
    let step = |segment: String| {
        let mut longer = path.clone();
        longer.push(segment);
        longer
    };
    match value {
        Value::Object(m) if !m.is_empty() => {
            for (k, v) in m {
                walk(v, step(format!("f:{k}")), out);
            }
        }
        Value::Array(a) => match keyed(a) {
            Some(items) => {
                for (name, item) in items {
                    walk(item, step(key_of(name)), out);
                }
            }
            None => {
                out.insert(path, value);
            }
        },
        _ => {
            out.insert(path, value);
        }
    }
}

fn key_of(name: &str) -> String {
    format!("k:{}", json!({ "name": name }))
}

/// The items of a list by name, when each has one of its own.
fn keyed(list: &[Value]) -> Option<BTreeMap<&str, &Value>> {
    let items: BTreeMap<&str, &Value> = list
        .iter()
        .map(|i| Some((i.get("name")?.as_str()?, i)))
        .collect::<Option<_>>()?;
    (!items.is_empty() && items.len() == list.len()).then_some(items)
}

fn tree(paths: &BTreeSet<Path>) -> Value {
    let mut root = Map::new();
    for path in paths {
        let mut at = &mut root;
        for segment in path {
            let next = at.entry(segment.clone()).or_insert_with(|| json!({}));
            match next.as_object_mut() {
                Some(m) => at = m,
                None => break,
            }
        }
    }
    Value::Object(root)
}

fn paths(tree: &Value) -> BTreeSet<Path> {
    fn down(tree: &Value, path: &Path, out: &mut BTreeSet<Path>) {
        match tree.as_object() {
            Some(m) if m.keys().any(|k| k != ".") => {
                for (k, v) in m.iter().filter(|(k, _)| *k != ".") {
                    let mut longer = path.clone();
                    longer.push(k.clone());
                    down(v, &longer, out);
                }
            }
            _ => {
                out.insert(path.clone());
            }
        }
    }
    let mut out = BTreeSet::new();
    if tree.as_object().is_some_and(|m| !m.is_empty()) {
        down(tree, &vec![], &mut out);
    }
    out
}

/// As the server spells a field in a conflict: `.spec.template.spec.containers[name="web"].image`.
fn spell(path: &Path) -> String {
    path.iter()
        .map(|s| match (s.strip_prefix("f:"), s.strip_prefix("k:")) {
            (Some(field), _) => format!(".{field}"),
            (_, Some(key)) => {
                let key: Value = serde_json::from_str(key).unwrap_or_default();
                format!("[name={}]", key["name"])
            }
            _ => s.clone(),
        })
        .collect()
}

fn entries(object: &Value) -> Vec<Value> {
    object["metadata"]["managedFields"]
        .as_array()
        .cloned()
        .unwrap_or_default()
}

fn set_entries(object: &mut Value, mut entries: Vec<Value>) {
    entries.retain(|e| e["fieldsV1"].as_object().is_some_and(|m| !m.is_empty()));
    if entries.is_empty() {
        object["metadata"]
            .as_object_mut()
            .map(|m| m.shift_remove("managedFields"));
    } else {
        object["metadata"]["managedFields"] = Value::Array(entries);
    }
}

fn entry(who: &Who, operation: &str, held: &BTreeSet<Path>) -> Value {
    json!({"manager": who.manager, "operation": operation, "apiVersion": who.api_version, "time": who.at,
        "fieldsType": "FieldsV1", "fieldsV1": tree(held)})
}

fn is(e: &Value, manager: &str, operation: &str) -> bool {
    e["manager"] == manager && e["operation"] == operation
}

/// Who writes, in which version, when.
pub(super) struct Who<'a> {
    pub manager: &'a str,
    pub api_version: &'a str,
    pub at: &'a str,
}

/// The entry of a POST: everything that was sent.
pub(super) fn created(sent: &Value, who: &Who) -> Value {
    let held: BTreeSet<Path> = leaves(sent).into_keys().collect();
    json!([entry(who, "Update", &held)])
}

/// After an update (patch, PUT): the writer holds what it changed, nobody what went away.
pub(super) fn updated(before: &Value, after: &mut Value, who: &Who) {
    let (old, new) = (leaves(before), leaves(after));
    let changed: BTreeSet<Path> = new
        .iter()
        .filter(|(p, v)| old.get(*p) != Some(v))
        .map(|(p, _)| p.clone())
        .collect();
    let gone: BTreeSet<Path> = old
        .keys()
        .filter(|p| !new.contains_key(*p))
        .cloned()
        .collect();
    if changed.is_empty() && gone.is_empty() {
        return;
    }
    let mut mine = changed.clone();
    let mut kept = vec![];
    for mut e in entries(after) {
        let held: BTreeSet<Path> = &paths(&e["fieldsV1"]) - &gone;
        if is(&e, who.manager, "Update") {
            mine.extend(held);
        } else {
            e["fieldsV1"] = tree(&(&held - &changed));
            kept.push(e);
        }
    }
    kept.push(entry(who, "Update", &mine));
    set_entries(after, kept);
}

/// Server-side apply: the object as it becomes, or the conflict.
pub(super) fn applied(
    there: &Value,
    target: &Value,
    who: &Who,
    force: bool,
    at: &str,
) -> Result<Value, Error> {
    let (wanted, live) = (leaves(target), leaves(there));
    let taken: BTreeSet<Path> = wanted
        .iter()
        .filter(|(p, v)| live.get(*p) != Some(v))
        .map(|(p, _)| p.clone())
        .collect();
    let (mut mine, mut others, mut conflicts) = (BTreeSet::new(), BTreeSet::new(), vec![]);
    let mut kept = vec![];
    for mut e in entries(there) {
        let held = paths(&e["fieldsV1"]);
        if is(&e, who.manager, "Apply") {
            mine = held;
            continue;
        }
        let both: Vec<String> = held.intersection(&taken).map(spell).collect();
        if !both.is_empty() {
            let using = match e["operation"].as_str() {
                Some("Apply") => String::new(),
                _ => format!(" using {}", e["apiVersion"].as_str().unwrap_or("")),
            };
            conflicts.push((format!("{}{using}", e["manager"]), both));
        }
        let left: BTreeSet<Path> = if force { &held - &taken } else { held };
        e["fieldsV1"] = tree(&left);
        others.extend(left);
        kept.push(e);
    }
    if !conflicts.is_empty() && !force {
        return Err(Error::new(Class::Conflict, at, conflict_text(&conflicts)));
    }
    let all: BTreeSet<Path> = wanted.keys().cloned().collect();
    let mut new = there.clone();
    lay_over(&mut new, target);
    for gone in mine.difference(&all).filter(|p| !others.contains(*p)) {
        take_away(&mut new, gone);
    }
    kept.push(entry(who, "Apply", &all));
    set_entries(&mut new, kept);
    Ok(new)
}

fn conflict_text(conflicts: &[(String, Vec<String>)]) -> String {
    let count: usize = conflicts.iter().map(|(_, f)| f.len()).sum();
    if count == 1 {
        let (manager, fields) = &conflicts[0];
        return format!(
            "Apply failed with 1 conflict: conflict with {manager}: {}",
            fields[0]
        );
    }
    let each: Vec<String> = conflicts
        .iter()
        .map(|(m, f)| format!("conflicts with {m}:\n- {}", f.join("\n- ")))
        .collect();
    format!("Apply failed with {count} conflicts: {}", each.join("\n"))
}

/// The target's values over what is there; keyed lists item by item. The server's own fields stay.
fn lay_over(there: &mut Value, target: &Value) {
    for (key, value) in target.as_object().into_iter().flatten() {
        match key.as_str() {
            "apiVersion" | "kind" | "status" => {}
            "metadata" => {
                for field in METADATA {
                    if let Some(v) = value.get(field) {
                        merge(&mut there["metadata"][field], v);
                    }
                }
            }
            _ => merge(&mut there[key], value),
        }
    }
}

fn merge(there: &mut Value, target: &Value) {
    match (there, target) {
        (Value::Object(there), Value::Object(target)) if !target.is_empty() => {
            for (k, v) in target {
                merge(there.entry(k.clone()).or_insert(Value::Null), v);
            }
        }
        (Value::Array(there), Value::Array(target))
            if keyed(target).is_some() && (there.is_empty() || keyed(there).is_some()) =>
        {
            for item in target {
                match there.iter_mut().find(|t| t["name"] == item["name"]) {
                    Some(old) => merge(old, item),
                    None => there.push(item.clone()),
                }
            }
        }
        (there, target) => *there = target.clone(),
    }
}

fn take_away(object: &mut Value, path: &[String]) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    if let Some(field) = first.strip_prefix("f:") {
        if rest.is_empty() {
            object.as_object_mut().map(|m| m.shift_remove(field));
        } else if let Some(inner) = object.get_mut(field) {
            take_away(inner, rest);
        }
    } else if let (Some(list), Some(key)) = (object.as_array_mut(), first.strip_prefix("k:")) {
        let key: Value = serde_json::from_str(key).unwrap_or_default();
        let Some(n) = list.iter().position(|i| i["name"] == key["name"]) else {
            return;
        };
        // The name goes last: with it the item.
        if rest.len() == 1 && rest[0] == "f:name" {
            list.remove(n);
        } else {
            take_away(&mut list[n], rest);
        }
    }
}
