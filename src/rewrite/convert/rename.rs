//! The conversion that is all data: another apiVersion, fields that move, end or are written out.

use super::super::removed::{Fill, Removal};
use super::super::work::{Work, set, take};
use crate::plan::model::Severity;
use serde_json::json;

/// Rule 65.
pub(super) fn convert(w: &mut Work, r: &Removal) {
    let Some(api) = r.successor().map(String::from) else {
        return super::refuse(w, r);
    };
    let from = w.id.api_version.clone();
    set(&mut w.object, "/apiVersion", json!(api));
    for m in &r.moves {
        if let Some(v) = take(&mut w.object, &m.from)
            && w.object.pointer(&m.to).is_none()
        {
            set(&mut w.object, &m.to, v);
        }
    }
    for path in &r.drop {
        take(&mut w.object, path);
    }
    for fill in &r.fill {
        write(w, fill);
    }
    let mut written = vec![];
    for d in &r.defaults {
        if write(w, d)
            && let Some(v) = w.object.pointer(&d.at)
        {
            let path = d.at.trim_start_matches("/spec/").replace('/', ".");
            written.push(format!("{path} = {v}"));
        }
    }
    w.changed(65);
    w.find(
        "API-01",
        Severity::Info,
        65,
        format!("{from} {} becomes {api}", w.id.kind),
        "Review the difference in the plan.",
    );
    if !written.is_empty() {
        w.find(
            "API-04",
            Severity::Warning,
            65,
            format!(
                "the old version's defaults are written out, {api} has others: {}",
                written.join(", ")
            ),
            "Keep them, or choose the new defaults after the migration.",
        );
    }
    if let Some(ask) = &r.ask {
        w.find(
            "API-01",
            Severity::Warning,
            65,
            ask.clone(),
            "Confirm it, or list the object under workloads.skip.",
        );
    }
}

/// Writes a value where nothing is; whether it did.
fn write(w: &mut Work, f: &Fill) -> bool {
    let there = |p: &str| w.object.pointer(p).filter(|v| !v.is_null());
    let unless = f.unless.as_deref().and_then(there);
    let barred = match (unless, &f.is) {
        (Some(v), Some(is)) => v == is,
        (found, _) => found.is_some(),
    };
    if barred || there(&f.at).is_some() || f.when.as_deref().is_some_and(|p| there(p).is_none()) {
        return false;
    }
    let value = match (&f.value, &f.from) {
        (Some(v), _) => Some(v.clone()),
        (None, Some(p)) => there(p).cloned(),
        _ => None,
    };
    match value {
        Some(v) => {
            set(&mut w.object, &f.at, v);
            true
        }
        None => false,
    }
}
