//! What checks of every family say and look through.

use super::Input;
use crate::object::ObjectId;
use crate::rewrite::template_path;
use serde_json::Value;

/// `a, b, c and 4 more`: the first names of a list and how many follow.
pub(super) fn some<S: AsRef<str>>(names: &[S]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// `1 pod`, `2 pods`.
pub(super) fn count(n: usize, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// Pod templates of everything that green gets: object, template as green gets it.
pub(super) fn templates<'a>(i: &Input<'a>) -> impl Iterator<Item = (&'a str, &'a Value)> {
    i.verdicts.iter().filter_map(|v| {
        let o = v.target.as_ref()?;
        let id = ObjectId::of(o)?;
        Some((v.object.as_str(), o.pointer(template_path(&id.kind)?)?))
    })
}

/// Containers of a template, init containers too.
pub(super) fn containers(template: &Value) -> impl Iterator<Item = &Value> {
    ["/spec/initContainers", "/spec/containers"]
        .into_iter()
        .filter_map(|p| template.pointer(p).and_then(Value::as_array))
        .flatten()
}

/// Images of a template.
pub(super) fn images(template: &Value) -> impl Iterator<Item = &str> {
    containers(template).filter_map(|c| c["image"].as_str())
}

/// Text at a JSON pointer.
pub(super) fn text<'v>(v: &'v Value, p: &str) -> Option<&'v str> {
    v.pointer(p).and_then(Value::as_str)
}

/// Items of an array at a JSON pointer.
pub(super) fn items<'v>(v: &'v Value, p: &str) -> impl Iterator<Item = &'v Value> {
    v.pointer(p).and_then(Value::as_array).into_iter().flatten()
}
