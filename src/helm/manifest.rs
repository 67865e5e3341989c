//! The manifest in a record: YAML documents that are left as they are, byte for byte, unless one must change.

use crate::object::ObjectId;
use crate::yaml;
use serde_json::{Value, json};

/// What becomes of a document.
pub enum Change {
    /// It stays as it is, byte for byte.
    Same,
    /// It says this from now on.
    To(Box<Value>),
    /// It goes: green has nothing of the kind.
    Gone,
}

/// The documents of a manifest; put together again they are the manifest.
fn documents(manifest: &str) -> Vec<&str> {
    let mut starts = vec![0];
    let mut at = 0;
    for line in manifest.split_inclusive('\n') {
        // `-----BEGIN` of a certificate is no separator, `--- # Source` is.
        let separator = line
            .strip_prefix("---")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
        if separator && at > 0 {
            starts.push(at);
        }
        at += line.len();
    }
    starts.push(manifest.len());
    starts.windows(2).map(|w| &manifest[w[0]..w[1]]).collect()
}

/// The objects of one document: none when it is empty or a comment. The error holds nothing of the text.
fn objects(document: &str) -> Result<Vec<Value>, String> {
    yaml::manifests(document, "manifest")
        .into_iter()
        .map(|r| {
            r.map(|(v, _)| v)
                .map_err(|_| "a document of its manifest is no YAML".to_string())
        })
        .collect()
}

/// Names of all objects of a manifest, those in a `List` too.
pub fn ids(manifest: &str) -> Result<Vec<ObjectId>, String> {
    let mut out = vec![];
    for document in documents(manifest) {
        for object in objects(document)? {
            match object.get("items").and_then(Value::as_array) {
                Some(items) if object["kind"].as_str().is_some_and(|k| k.ends_with("List")) => {
                    out.extend(items.iter().filter_map(ObjectId::of));
                }
                _ => out.extend(ObjectId::of(&object)),
            }
        }
    }
    Ok(out)
}

/// The manifest with changes to single objects; `None` when none changes.
pub fn change(
    manifest: &str,
    decide: &mut dyn FnMut(&Value) -> Change,
) -> Result<Option<String>, String> {
    let mut out = String::with_capacity(manifest.len());
    let mut changed = false;
    for document in documents(manifest) {
        let found = objects(document)?;
        let [object] = found.as_slice() else {
            out.push_str(document);
            continue;
        };
        match of_one(object, decide) {
            Change::Same => out.push_str(document),
            Change::To(new) => {
                changed = true;
                out.push_str(&rewritten(document, &new));
            }
            Change::Gone => changed = true,
        }
    }
    Ok(changed.then_some(out))
}

/// A document is an object, or a list of them.
fn of_one(object: &Value, decide: &mut dyn FnMut(&Value) -> Change) -> Change {
    let list = object
        .get("items")
        .and_then(Value::as_array)
        .filter(|_| object["kind"] == "List");
    let Some(list) = list else {
        return decide(object);
    };
    let mut items = vec![];
    let mut changed = false;
    for item in list {
        match decide(item) {
            Change::Same => items.push(item.clone()),
            Change::To(new) => {
                changed = true;
                items.push(*new);
            }
            Change::Gone => changed = true,
        }
    }
    if !changed {
        return Change::Same;
    }
    let mut new = object.clone();
    new["items"] = json!(items);
    Change::To(Box::new(new))
}

/// The document that says `new`: where another apiVersion is all, only that line changes; else its comments stay and the body is written as JSON,
/// which every reader of YAML takes the same way.
fn rewritten(document: &str, new: &Value) -> String {
    let api = new["apiVersion"].as_str().unwrap_or_default();
    let mut edited = String::with_capacity(document.len());
    for line in document.split_inclusive('\n') {
        if line.starts_with("apiVersion:") {
            let end = if line.ends_with("\r\n") {
                "\r\n"
            } else if line.ends_with('\n') {
                "\n"
            } else {
                ""
            };
            edited.push_str(&format!("apiVersion: {api}{end}"));
        } else {
            edited.push_str(line);
        }
    }
    if objects(&edited).is_ok_and(|o| o.as_slice() == [new.clone()]) {
        return edited;
    }
    let head: String = document
        .split_inclusive('\n')
        .take_while(|l| {
            let l = l.trim();
            l.is_empty() || l.starts_with('#') || l.starts_with("---")
        })
        .collect();
    let body = serde_json::to_string_pretty(new).unwrap_or_else(|_| new.to_string());
    let line = if head.is_empty() || head.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{head}{line}{body}\n")
}
