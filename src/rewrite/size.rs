//! Rule 16: what is too big for the API server is found here, not while it is written. Blue holds it, so only what we add or convert can make it so.

use super::work::Work;
use crate::plan::model::Severity;
use crate::snapshot::model::HASH_PREFIX;
use serde_json::Value;

/// etcd's limit of one request, bytes (`--max-request-bytes`, 1.5 MiB).
const REQUEST: usize = 3 << 19;
/// Values of a Secret or a ConfigMap together, bytes (core/v1 MaxSecretSize).
const VALUES: usize = 1 << 20;
/// Keys and values of all annotations of an object together, bytes (TotalAnnotationSizeLimitB).
const ANNOTATIONS: usize = 256 << 10;
/// What the run adds, bytes: three annotations (run, blue's uid, hash of the content) with their quotes.
const MARKS: usize = 320;

/// Blocks what the server would refuse.
pub(super) fn check(w: &mut Work) {
    let notes: usize = w
        .object
        .get("metadata")
        .and_then(|m| m.get("annotations"))
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(k, v)| k.len() + v.as_str().map_or(0, str::len))
        .sum();
    if notes + MARKS > ANNOTATIONS {
        return too_big(
            w,
            "its annotations with our marks",
            notes + MARKS,
            ANNOTATIONS,
        );
    }
    let core = w.id.group().is_empty();
    if core && matches!(w.kind(), "Secret" | "ConfigMap") {
        let secret = w.kind() == "Secret";
        let values: usize = ["data", "binaryData"]
            .iter()
            .filter_map(|f| w.object.get(f)?.as_object().map(|m| (*f, m)))
            .flat_map(|(f, m)| m.values().map(move |v| (f, v)))
            .filter_map(|(f, v)| Some((f, v.as_str()?)))
            .map(|(f, v)| match hashed(v) {
                Some(real) => real,
                // Base64.
                None if secret || f == "binaryData" => v.len() / 4 * 3,
                None => v.len(),
            })
            .sum();
        if values > VALUES {
            too_big(w, "its values", values, VALUES);
        }
        return;
    }
    let (bytes, fields) = measure(&w.object);
    // The server keeps beside the object who set which field.
    let total = bytes + fields + MARKS;
    if total > REQUEST {
        too_big(
            w,
            "it, with our marks and who set which field,",
            total,
            REQUEST,
        );
    }
}

fn too_big(w: &mut Work, what: &str, bytes: usize, limit: usize) {
    w.tidied(16);
    w.find(
        "API-08",
        Severity::Blocker,
        16,
        format!("{what} would have about {bytes} bytes, the API server takes {limit}"),
        "Make it smaller on blue (large texts into more objects, unused annotations or versions out), or list it under workloads.skip.",
    );
}

/// Size of a value that the snapshot holds as a keyed hash.
fn hashed(value: &str) -> Option<usize> {
    value
        .strip_prefix(HASH_PREFIX)?
        .rsplit(':')
        .next()?
        .parse()
        .ok()
}

/// About the bytes of a value as JSON, and about those of its entry in managedFields (`"f:KEY":{}` for each key).
fn measure(v: &Value) -> (usize, usize) {
    match v {
        Value::Object(m) => m.iter().fold((2, 0), |(bytes, fields), (k, v)| {
            let (b, f) = measure(v);
            (bytes + k.len() + 4 + b, fields + k.len() + 8 + f)
        }),
        // A list is one field, or one entry an item when its items have keys.
        Value::Array(a) => a.iter().fold((2, 0), |(bytes, fields), v| {
            let (b, f) = measure(v);
            (bytes + b + 1, fields + f)
        }),
        Value::String(s) => (s.len() + 2, 0),
        Value::Number(_) => (8, 0),
        _ => (5, 0),
    }
}
