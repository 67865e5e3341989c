//! Secrets are compared by keyed hashes only: no value ever gets into a result, an error or a print.

use super::managers::Managers;
use super::path::Path;
use crate::snapshot::mask::{self, Key};
use serde_json::{Map, Value};

/// An object whose values, if it is a Secret, are markers. `managedFields` stay: they hold names of keys, no values.
pub(super) fn masked(key: &Key, mut object: Value) -> Value {
    let fields = object
        .pointer_mut("/metadata/managedFields")
        .map(Value::take);
    mask::object(key, &mut object);
    if let Some(fields) = fields {
        object["metadata"]["managedFields"] = fields;
    }
    object
}

/// What the run wrote, as far as it can be known. The plan holds names of keys only, so per key: what we still hold on green is what
/// we wrote; else what the snapshot has; else nobody knows, and the present value of blue stands in (then a change on green is seen, and
/// nothing is overwritten).
pub(super) fn base(
    target: &Value,
    snapshot: Option<&Value>,
    now: Option<&Value>,
    green: Option<&Value>,
) -> Value {
    let mut out = target.clone();
    let managers = green.map(Managers::of).unwrap_or_default();
    let in_data = |o: Option<&Value>, key: &str| o?.get("data")?.get(key).cloned();
    let mut data = Map::new();
    let names: Vec<String> = target
        .get("data")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(|d| d.keys().cloned())
        .collect();
    for name in names {
        let path = Path::keys(&["data", &name]);
        let ours = in_data(green, &name).filter(|_| managers.only_ours(&path));
        let value = ours
            .or_else(|| in_data(snapshot, &name))
            .or_else(|| in_data(now, &name))
            .or_else(|| in_data(green, &name));
        data.insert(name, value.unwrap_or(Value::Null));
    }
    if target.get("data").is_some() {
        out["data"] = Value::Object(data);
    }
    out
}
