//! What apiextensions.k8s.io/v1 demands of a schema ("structural"), made from what v1beta1 took. A field of an object is never lost by it; what
//! can no longer be checked is told.
//!
//! The demands (Kubernetes documentation, "Specifying a structural schema"): every place has a type, or is int-or-string, or keeps
//! unknown fields; what stands inside `allOf`, `anyOf`, `oneOf`, `not` only restricts what stands outside too, and says neither type, default,
//! nullable nor additionalProperties there; `properties` and `additionalProperties` exclude each other; of `metadata` only the name may be restricted.

use serde_json::{Map, Value, json};

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const JUNCTIONS: &[&str] = &["allOf", "anyOf", "oneOf"];
/// Words of JSON Schema that v1 refuses wherever they stand.
const REFUSED: &[&str] = &[
    "$ref",
    "$schema",
    "id",
    "definitions",
    "dependencies",
    "patternProperties",
    "additionalItems",
    "deprecated",
    "discriminator",
    "readOnly",
    "writeOnly",
    "xml",
];
/// Of these a schema says something that other words of it do not.
const MEANINGFUL: &[&str] = &[
    "$ref",
    "dependencies",
    "patternProperties",
    "additionalItems",
];

/// Makes a schema structural that kept unknown fields at every depth (v1beta1's default). Each object in it must say so: the mark of the root
/// ends where a nested place lists properties. Returns what is no longer checked, as places.
pub(super) fn structural(schema: &mut Value) -> Vec<String> {
    let mut lost = vec![];
    if !schema.is_object() {
        *schema = json!({});
    }
    place(schema, "", &mut lost);
    let Some(root) = schema.as_object_mut() else {
        return lost;
    };
    root.insert("type".into(), json!("object"));
    root.insert(PRESERVE.into(), json!(true));
    if let Some(meta) = root
        .get_mut("properties")
        .and_then(|p| p.get_mut("metadata"))
    {
        metadata(meta, &mut lost);
    }
    lost
}

/// `metadata` is the API server's: a schema may restrict its names only.
fn metadata(meta: &mut Value, lost: &mut Vec<String>) {
    let mut kept = Map::new();
    for name in ["name", "generateName"] {
        if let Some(p) = meta.pointer(&format!("/properties/{name}")) {
            kept.insert(name.into(), p.clone());
        }
    }
    let more = meta
        .get("properties")
        .and_then(Value::as_object)
        .is_some_and(|p| p.len() > kept.len());
    if more {
        lost.push("metadata".into());
    }
    *meta = json!({"type": "object"});
    if !kept.is_empty() {
        meta["properties"] = Value::Object(kept);
    }
}

fn place(schema: &mut Value, at: &str, lost: &mut Vec<String>) {
    let Some(map) = schema.as_object_mut() else {
        // `true` or `null` where a schema should stand: anything goes.
        *schema = json!({ PRESERVE: true });
        return;
    };
    let name = || if at.is_empty() { "the root" } else { at }.to_string();
    let mut open = false;
    for key in REFUSED {
        if map.shift_remove(*key).is_some() && MEANINGFUL.contains(key) {
            lost.push(format!("{} ({key})", name()));
            open = true;
        }
    }
    if map.get("uniqueItems") == Some(&json!(true)) {
        map.shift_remove("uniqueItems");
        lost.push(format!("{} (uniqueItems)", name()));
    }
    int_or_string(map, &name(), lost);
    junctions(map, &name(), lost);
    let is_int_or_string = map.get(INT_OR_STRING) == Some(&json!(true));
    if is_int_or_string {
        map.shift_remove("type");
        return;
    }
    // Both at once: the named ones are checked, the others kept.
    if map.contains_key("properties")
        && let Some(more) = map.shift_remove("additionalProperties")
        && more != json!(false)
    {
        map.insert(PRESERVE.into(), json!(true));
        if more.as_object().is_some_and(|m| !m.is_empty()) {
            lost.push(format!("{} (additionalProperties)", name()));
        }
    }
    match map.get("additionalProperties") {
        Some(Value::Bool(true)) => {
            map.shift_remove("additionalProperties");
            map.insert(PRESERVE.into(), json!(true));
        }
        Some(Value::Bool(false)) => {
            map.shift_remove("additionalProperties");
        }
        _ => {}
    }
    if let Some(list) = map.get("items").filter(|i| i.is_array()) {
        // A schema for each position of a list.
        if list.as_array().is_some_and(|l| !l.is_empty()) {
            lost.push(format!("{} (items)", name()));
        }
        map.insert("items".into(), json!({ PRESERVE: true }));
    }
    if !map.contains_key("type")
        && let Some(t) = guessed_type(map)
    {
        map.insert("type".into(), json!(t));
    }
    match map.get("type").and_then(Value::as_str) {
        Some("array") => {
            map.entry("items").or_insert(json!({ PRESERVE: true }));
        }
        Some("object") => {
            // With a schema for any key there is no unknown one.
            if open || !map.contains_key("additionalProperties") {
                map.insert(PRESERVE.into(), json!(true));
            }
        }
        Some(_) => {}
        None => {
            map.insert(PRESERVE.into(), json!(true));
        }
    }
    if map.get(EMBEDDED) == Some(&json!(true)) {
        map.insert("type".into(), json!("object"));
        if !map.contains_key("properties") {
            map.insert(PRESERVE.into(), json!(true));
        }
    }
    if let Some(props) = map.get_mut("properties").and_then(Value::as_object_mut) {
        for (key, p) in props {
            let inner = if at.is_empty() {
                key.clone()
            } else {
                format!("{at}.{key}")
            };
            place(p, &inner, lost);
        }
    }
    for (key, mark) in [("items", "[]"), ("additionalProperties", ".*")] {
        if let Some(v) = map.get_mut(key) {
            place(v, &format!("{at}{mark}"), lost);
        }
    }
}

/// The ways in which old generators said "a number or a text".
fn int_or_string(map: &mut Map<String, Value>, at: &str, lost: &mut Vec<String>) {
    let pair = |v: &Value| {
        let mut types: Vec<&str> = v
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|s| s.get("type").and_then(Value::as_str))
            .collect();
        types.sort_unstable();
        types == ["integer", "string"]
    };
    let by_format = map.get("format") == Some(&json!("int-or-string"));
    let by_pair = JUNCTIONS
        .iter()
        .find(|k| **k != "allOf" && !map.contains_key("type") && map.get(**k).is_some_and(pair));
    if by_format {
        map.shift_remove("format");
    }
    if let Some(key) = by_pair
        && let Some(branches) = map.shift_remove(*key)
    {
        let says_more = |b: &Value| b.as_object().is_some_and(|b| b.len() > 1);
        if branches.as_array().is_some_and(|l| l.iter().any(says_more)) {
            lost.push(format!("{at} ({key})"));
        }
    }
    if by_format || by_pair.is_some() {
        map.shift_remove("type");
        map.insert(INT_OR_STRING.into(), json!(true));
    }
    if map.get(INT_OR_STRING) == Some(&json!(true)) && map.get("anyOf").is_some_and(pair) {
        map.shift_remove("anyOf");
    }
}

/// What stands only inside a junction is said outside too, so that it is no unknown field; inside stays what restricts.
fn junctions(map: &mut Map<String, Value>, at: &str, lost: &mut Vec<String>) {
    let mut inner: Vec<Value> = vec![];
    for key in JUNCTIONS {
        inner.extend(
            map.get(*key)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .cloned(),
        );
    }
    inner.extend(map.get("not").cloned());
    if inner.is_empty() {
        return;
    }
    let mut types: Vec<&Value> = inner.iter().filter_map(|b| b.get("type")).collect();
    types.extend(map.get("type"));
    types.sort_by_key(|t| t.to_string());
    types.dedup();
    if types.len() > 1 {
        // One of several types: no structural schema says that of a place.
        lost.push(format!("{at} (one of several types)"));
        map.retain(|k, _| k == "description" || k == "nullable");
        map.insert(PRESERVE.into(), json!(true));
        return;
    }
    for branch in &inner {
        lift(map, branch);
    }
    for key in JUNCTIONS {
        for branch in map
            .get_mut(*key)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            only_restrict(branch, at, lost);
        }
    }
    if let Some(branch) = map.get_mut("not") {
        only_restrict(branch, at, lost);
    }
}

/// Fields of a branch that the place itself does not know.
fn lift(map: &mut Map<String, Value>, branch: &Value) {
    if let (None, Some(t)) = (map.get("type"), branch.get("type")) {
        map.insert("type".into(), t.clone());
    }
    if let Some(props) = branch.get("properties").and_then(Value::as_object) {
        let own = map.entry("properties").or_insert(json!({}));
        for (key, p) in props {
            match own.get_mut(key.as_str()).and_then(Value::as_object_mut) {
                None => own[key.as_str()] = bare(p),
                Some(known) => lift(known, p),
            }
        }
    }
    if let (None, Some(items)) = (map.get("items"), branch.get("items")) {
        map.insert("items".into(), bare(items));
    }
}

/// The shape of a schema without what it restricts.
fn bare(schema: &Value) -> Value {
    let mut out = Map::new();
    for key in [
        "type",
        "items",
        "additionalProperties",
        INT_OR_STRING,
        PRESERVE,
        "format",
    ] {
        if let Some(v) = schema.get(key) {
            out.insert(key.into(), v.clone());
        }
    }
    if let Some(props) = schema.get("properties").and_then(Value::as_object) {
        let inner: Map<String, Value> = props.iter().map(|(k, v)| (k.clone(), bare(v))).collect();
        out.insert("properties".into(), Value::Object(inner));
    }
    Value::Object(out)
}

/// What a branch may say.
fn only_restrict(branch: &mut Value, at: &str, lost: &mut Vec<String>) {
    let Some(map) = branch.as_object_mut() else {
        return;
    };
    for key in REFUSED {
        if map.shift_remove(*key).is_some() && MEANINGFUL.contains(key) {
            lost.push(format!("{at} ({key})"));
        }
    }
    for key in [
        "type",
        "default",
        "nullable",
        "additionalProperties",
        "description",
        "title",
        "example",
        "externalDocs",
        PRESERVE,
        INT_OR_STRING,
        EMBEDDED,
    ] {
        map.shift_remove(key);
    }
    if map.get("uniqueItems") == Some(&json!(true)) {
        map.shift_remove("uniqueItems");
        lost.push(format!("{at} (uniqueItems)"));
    }
    if let Some(props) = map.get_mut("properties").and_then(Value::as_object_mut) {
        props.values_mut().for_each(|p| only_restrict(p, at, lost));
    }
    for key in ["items", "not"] {
        if let Some(v) = map.get_mut(key) {
            only_restrict(v, at, lost);
        }
    }
    for key in JUNCTIONS {
        for b in map
            .get_mut(*key)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            only_restrict(b, at, lost);
        }
    }
}

/// The type that the other words speak of.
fn guessed_type(map: &Map<String, Value>) -> Option<&'static str> {
    let has = |keys: &[&str]| keys.iter().any(|k| map.contains_key(*k));
    let of_value = |v: &Value| match v {
        Value::String(_) => Some("string"),
        Value::Bool(_) => Some("boolean"),
        Value::Number(n) if n.is_f64() => Some("number"),
        Value::Number(_) => Some("integer"),
        _ => None,
    };
    if has(&[
        "properties",
        "additionalProperties",
        "required",
        "minProperties",
        "maxProperties",
    ]) {
        Some("object")
    } else if has(&["items", "minItems", "maxItems"]) {
        Some("array")
    } else if has(&["pattern", "minLength", "maxLength"]) {
        Some("string")
    } else if has(&["minimum", "maximum", "multipleOf"]) {
        Some("number")
    } else {
        let all: Vec<Option<&str>> = map.get("enum")?.as_array()?.iter().map(of_value).collect();
        let first = all.first().copied().flatten()?;
        all.iter().all(|t| *t == Some(first)).then_some(first)
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
