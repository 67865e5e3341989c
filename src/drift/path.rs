//! Where in an object: keys of maps, and items of lists by the fields that identify them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// One part of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Seg {
    /// A key of a map.
    Key(String),
    /// The item of a list whose fields have these values.
    Item(BTreeMap<String, Value>),
}

/// A place in an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Path(pub Vec<Seg>);

impl Path {
    /// From names of keys only, as in `["spec", "type"]`.
    pub fn keys(keys: &[&str]) -> Path {
        Path(keys.iter().map(|k| Seg::Key((*k).into())).collect())
    }
    /// From a JSON pointer without list indices.
    pub fn pointer(pointer: &str) -> Path {
        Path(
            pointer
                .split('/')
                .skip(1)
                .map(|k| Seg::Key(k.replace("~1", "/").replace("~0", "~")))
                .collect(),
        )
    }
    /// With one more key.
    pub fn key(&self, key: &str) -> Path {
        let mut path = self.clone();
        path.0.push(Seg::Key(key.into()));
        path
    }
    /// With one more item.
    pub fn item(&self, keys: &BTreeMap<String, Value>) -> Path {
        let mut path = self.clone();
        path.0.push(Seg::Item(keys.clone()));
        path
    }
    /// The last key, when it ends with one.
    pub fn last_key(&self) -> Option<&str> {
        match self.0.last() {
            Some(Seg::Key(k)) => Some(k),
            _ => None,
        }
    }
    /// Whether one lies at or below the other.
    pub fn meets(&self, other: &Path) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a == b)
    }
    /// The value there.
    pub fn get<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(object, |at, seg| match seg {
            Seg::Key(key) => at.get(key),
            Seg::Item(keys) => at.as_array()?.iter().find(|i| is_item(i, keys)),
        })
    }
    /// Sets the value there, making what is missing on the way; a new item goes to the end of its list.
    pub fn set(&self, object: &mut Value, value: Value) {
        let mut at = object;
        for seg in &self.0 {
            match seg {
                Seg::Key(key) => {
                    if !at.is_object() {
                        *at = Value::Object(Map::new());
                    }
                    at = &mut at[key.as_str()];
                }
                Seg::Item(keys) => {
                    if !at.is_array() {
                        *at = Value::Array(vec![]);
                    }
                    let Some(list) = at.as_array_mut() else {
                        return;
                    };
                    let n = match list.iter().position(|i| is_item(i, keys)) {
                        Some(n) => n,
                        None => {
                            list.push(Value::Object(keys.clone().into_iter().collect()));
                            list.len() - 1
                        }
                    };
                    at = &mut list[n];
                }
            }
        }
        *at = value;
    }
    /// Takes the value there away.
    pub fn remove(&self, object: &mut Value) {
        let Some((last, way)) = self.0.split_last() else {
            return;
        };
        let mut at = object;
        for seg in way {
            let next = match seg {
                Seg::Key(key) => at.get_mut(key.as_str()),
                Seg::Item(keys) => at
                    .as_array_mut()
                    .and_then(|l| l.iter_mut().find(|i| is_item(i, keys))),
            };
            match next {
                Some(next) => at = next,
                None => return,
            }
        }
        match (last, at) {
            (Seg::Key(key), Value::Object(map)) => {
                map.shift_remove(key);
            }
            (Seg::Item(keys), Value::Array(list)) => list.retain(|i| !is_item(i, keys)),
            _ => {}
        }
    }
}

/// Whether a list item is the one with these keys. A port's protocol is TCP when it does not say.
pub(super) fn is_item(item: &Value, keys: &BTreeMap<String, Value>) -> bool {
    keys.iter()
        .all(|(key, value)| match (item.get(key), key.as_str()) {
            (Some(v), _) => v == value,
            (None, "protocol") => value == "TCP",
            (None, _) => false,
        })
}

/// `spec.template.spec.containers[web].image`; a key with a dot or slash in it is quoted.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, seg) in self.0.iter().enumerate() {
            match seg {
                Seg::Key(k) if k.contains(['.', '/', ' ']) => write!(f, "[{k:?}]")?,
                Seg::Key(k) => write!(f, "{}{k}", if n > 0 { "." } else { "" })?,
                Seg::Item(keys) => {
                    let words: Vec<String> = keys
                        .values()
                        .map(|v| v.as_str().map_or_else(|| v.to_string(), String::from))
                        .collect();
                    write!(f, "[{}]", words.join("/"))?;
                }
            }
        }
        Ok(())
    }
}
