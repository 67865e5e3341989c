//! What the checks of CAP and NET say and look through.

pub(super) use super::few as some;
pub(super) use super::look::{count, items, text};

use super::Input;
use crate::object::at;
use crate::plan::model::Verdict;
use crate::rewrite::template_path;
use serde_json::Value;

/// Pod templates of everything that green gets: object, template as green gets it.
pub(super) fn templates<'a>(i: &Input<'a>) -> impl Iterator<Item = (&'a str, &'a Value)> {
    i.shared.templates.iter().copied()
}

/// The same from the verdicts.
pub(super) fn templates_of(verdicts: &[Verdict]) -> impl Iterator<Item = (&str, &Value)> {
    verdicts.iter().filter_map(|v| {
        let o = v.target.as_ref()?;
        let path = template_path(o.get("kind")?.as_str()?)?;
        Some((v.object.as_str(), at(o, path)?))
    })
}

/// Containers of a template, init containers too.
pub(super) fn containers(template: &Value) -> impl Iterator<Item = &Value> {
    ["/spec/initContainers", "/spec/containers"]
        .into_iter()
        .filter_map(|p| at(template, p).and_then(Value::as_array))
        .flatten()
}

/// Images of a template.
pub(super) fn images(template: &Value) -> impl Iterator<Item = &str> {
    containers(template).filter_map(|c| c["image"].as_str())
}
