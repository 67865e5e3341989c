//! The leaves of a document and the one way in which their paths are spelled.
//!
//! `spec.kubelet.maxPods`, `spec.subnets[0].cidr`, `spec.nodeLabels["kops.k8s.io/instancegroup"]`. The same spelling is used for
//! places (`snapshot.kops.places`), for the fates of fields and by `crossfade explain`.

use serde_json::Value;

/// All leaves of a document (give the whole one, so that paths begin with `spec.`), in the order of the document. A leaf is a
/// scalar, a null, or a map or list that is empty. A document that is itself a leaf has the empty path.
pub fn leaves(doc: &Value) -> Vec<(String, &Value)> {
    let mut out = vec![];
    walk(doc, &mut String::new(), &mut out);
    out
}

fn walk<'v>(value: &'v Value, path: &mut String, out: &mut Vec<(String, &'v Value)>) {
    let length = path.len();
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, v) in map {
                push_key(path, key);
                walk(v, path, out);
                path.truncate(length);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (i, v) in items.iter().enumerate() {
                push_index(path, i);
                walk(v, path, out);
                path.truncate(length);
            }
        }
        leaf => out.push((path.clone(), leaf)),
    }
}

/// Adds a map key to a path. A key of letters, digits, `_` and `-` follows a dot; any other stands in brackets as a JSON string.
pub fn push_key(path: &mut String, key: &str) {
    let plain = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if !plain {
        path.push_str(&format!("[{}]", Value::from(key)));
        return;
    }
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}

/// Adds the index of a list item to a path.
pub fn push_index(path: &mut String, index: usize) {
    path.push_str(&format!("[{index}]"));
}

/// One part of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Key of a map.
    Key(String),
    /// Index of a list.
    Index(usize),
}

/// The parts of a path as `leaves` spells it; `None` when it is spelled otherwise.
pub fn parts(path: &str) -> Option<Vec<Part>> {
    let mut out = vec![];
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            if after.starts_with('"') {
                let mut json = serde_json::Deserializer::from_str(after).into_iter::<String>();
                let key = json.next()?.ok()?;
                rest = after.get(json.byte_offset()..)?.strip_prefix(']')?;
                out.push(Part::Key(key));
            } else {
                let (number, tail) = after.split_once(']')?;
                out.push(Part::Index(number.parse().ok()?));
                rest = tail;
            }
        } else {
            let bare = match rest.strip_prefix('.') {
                Some(bare) if !out.is_empty() => bare,
                None if out.is_empty() => rest,
                _ => return None,
            };
            let end = bare.find(['.', '[']).unwrap_or(bare.len());
            let (key, tail) = bare.split_at(end);
            if key.is_empty() {
                return None;
            }
            out.push(Part::Key(key.into()));
            rest = tail;
        }
    }
    Some(out)
}

/// The value at a path as `leaves` spells it.
pub fn at<'v>(doc: &'v Value, path: &str) -> Option<&'v Value> {
    parts(path)?.iter().try_fold(doc, |v, part| match part {
        Part::Key(k) => v.get(k.as_str()),
        Part::Index(i) => v.get(*i),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_leaf_has_one_path_and_the_path_leads_back_to_it() {
        let doc = json!({
            "metadata": {"name": "nodes", "annotations": {}},
            "spec": {
                "nodeLabels": {"kops.k8s.io/instancegroup": "nodes", "a\"b]": "x", "": "empty key", "node-class": "y"},
                "subnets": [{"name": "a", "zone": null}, [], [1, "two"]],
                "kubelet": {"maxPods": 58},
            },
        });
        let found: Vec<(String, Value)> = leaves(&doc)
            .into_iter()
            .map(|(p, v)| (p, v.clone()))
            .collect();
        let mut wanted = vec![
            ("metadata.name", json!("nodes")),
            ("metadata.annotations", json!({})),
            (
                "spec.nodeLabels[\"kops.k8s.io/instancegroup\"]",
                json!("nodes"),
            ),
            ("spec.nodeLabels[\"a\\\"b]\"]", json!("x")),
            ("spec.nodeLabels[\"\"]", json!("empty key")),
            ("spec.nodeLabels.node-class", json!("y")),
            ("spec.subnets[0].name", json!("a")),
            ("spec.subnets[0].zone", json!(null)),
            ("spec.subnets[1]", json!([])),
            ("spec.subnets[2][0]", json!(1)),
            ("spec.subnets[2][1]", json!("two")),
            ("spec.kubelet.maxPods", json!(58)),
        ];
        let mut sorted: Vec<(&str, Value)> =
            found.iter().map(|(p, v)| (p.as_str(), v.clone())).collect();
        sorted.sort_by(|a, b| a.0.cmp(b.0));
        wanted.sort_by(|a, b| a.0.cmp(b.0));
        assert_eq!(sorted, wanted);
        for (path, value) in &found {
            assert_eq!(at(&doc, path), Some(value), "{path}");
        }
        assert_eq!(leaves(&json!(3)), [(String::new(), &json!(3))]);
        for bad in [
            "spec..a",
            ".spec",
            "spec[a]",
            "spec[\"a]",
            "spec.",
            "spec[0",
        ] {
            assert_eq!(parts(bad), None, "{bad}");
        }
    }
}
