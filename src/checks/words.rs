//! What the checks of CAP and NET say and look through.

pub(super) use super::few as some;
pub(super) use super::look::{count, items, text};

use super::Input;
use crate::object::ObjectId;
use crate::rewrite::template_path;
use serde_json::Value;

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
