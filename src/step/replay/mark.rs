//! What crossfade writes on each object that it made (replay.md 14): the run, the uid on blue, a hash of the content.
//!
//! Annotations only: a label may be selected by, an annotation is nobody's business. The journal counts, not the mark; the mark decides
//! when a crash took the record away, and it tells a second run that nothing is to be written.

use crate::object::{annotation, digest};
use serde_json::{Value, json};

pub use crate::step::util::RUN_ANNOTATION as RUN;
/// uid of the object on blue.
pub const SOURCE_UID: &str = "crossfade.dev/source-uid";
/// Hash of what was written, see [`content`].
pub const CONTENT: &str = "crossfade.dev/content";
/// Bytes that the three take at most in `metadata.annotations` (keys, a run id, a uid, a sha256).
#[cfg(test)]
const BYTES: usize = 300;

/// sha256 of an object's canonical JSON without the marks and without its owners, whose uids are another cluster's. Of a Secret only the keys of its data count: an annotation is read by more
/// people than a Secret, and short values could be guessed from a plain hash.
pub fn content(object: &Value) -> String {
    let secret = object["kind"] == "Secret";
    let more = [RUN, SOURCE_UID, CONTENT]
        .iter()
        .any(|key| annotation(object, key).is_some())
        || object.pointer("/metadata/ownerReferences").is_some();
    if !secret && !more {
        return digest(object);
    }
    let mut bare = object.clone();
    if secret {
        for field in ["data", "stringData"] {
            if let Some(data) = bare.get_mut(field).and_then(Value::as_object_mut) {
                data.values_mut().for_each(|v| *v = Value::Null);
            }
        }
    }
    if let Some(meta) = bare.get_mut("metadata").and_then(Value::as_object_mut) {
        let empty = meta
            .get_mut("annotations")
            .and_then(Value::as_object_mut)
            .is_some_and(|a| {
                a.retain(|k, _| ![RUN, SOURCE_UID, CONTENT].contains(&k.as_str()));
                a.is_empty()
            });
        if empty {
            meta.shift_remove("annotations");
        }
        meta.shift_remove("ownerReferences");
    }
    digest(&bare)
}

/// Puts the marks on an object that is about to be written.
pub fn put(object: &mut Value, run: &str, source_uid: Option<&str>) {
    let content = content(object);
    let annotations = &mut object["metadata"]["annotations"];
    if !annotations.is_object() {
        *annotations = json!({});
    }
    annotations[RUN] = json!(run);
    if let Some(uid) = source_uid {
        annotations[SOURCE_UID] = json!(uid);
    }
    annotations[CONTENT] = json!(content);
}

/// Whether this run made an object.
pub fn ours(object: &Value, run: &str) -> bool {
    annotation(object, RUN) == Some(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_14_the_mark_names_run_source_and_content_and_is_no_part_of_the_content() {
        let bare = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}, "data": {"k": "v"}});
        let mut object = bare.clone();
        put(&mut object, "shop-7f3a9c", Some("uid-on-blue"));
        assert!(ours(&object, "shop-7f3a9c") && !ours(&object, "other"));
        assert_eq!(annotation(&object, SOURCE_UID), Some("uid-on-blue"));
        assert_eq!(annotation(&object, CONTENT), Some(digest(&bare).as_str()));
        assert_eq!(content(&object), digest(&bare), "marks do not count");
        assert!(object["metadata"].get("labels").is_none(), "no label");
        object["data"]["k"] = json!("w");
        assert_ne!(content(&object), digest(&bare));
    }

    #[test]
    fn rule_14_the_mark_of_a_secret_tells_nothing_of_its_values() {
        let secret = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"pin": value}});
        assert_eq!(content(&secret("MTIzNA==")), content(&secret("OTk5OQ==")));
        let mut more = secret("MTIzNA==");
        more["data"]["other"] = json!("");
        assert_ne!(content(&more), content(&secret("MTIzNA==")));
    }

    #[test]
    fn the_marks_are_as_short_as_the_planner_was_told() {
        let mut object = json!({"metadata": {}});
        let run = format!("{}-7f3a9c", "n".repeat(63));
        put(
            &mut object,
            &run,
            Some("12345678-1234-1234-1234-123456789012"),
        );
        let bytes: usize = object["metadata"]["annotations"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(k, v)| k.len() + v.as_str().unwrap().len())
            .sum();
        assert!(bytes <= BYTES, "{bytes}");
    }
}
