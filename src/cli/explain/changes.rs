//! The difference between blue's object and green's, each piece with the rules that made it.

use crate::cli::printer::Printer;
use crate::object::ObjectId;
use crate::plan::model::{Plan, Verdict};
use crate::rewrite::{self, Hunk, rules};
use crate::snapshot::model::Snapshot;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Longest text of a value on a line, in characters; JSON output has all of it.
const WIDTH: usize = 96;

/// What is said about the changes of one object.
#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Changes {
    /// Piece by piece.
    Hunks(Vec<Hunk>),
    /// Why they cannot be said.
    Unknown(String),
}

/// Changes of the objects that were found. The snapshot holds blue's side; without it, or with another one than the plan was
/// made from, that is said instead of something wrong.
pub(super) fn of<'v>(
    plan: &Plan,
    snapshot: Option<&Snapshot>,
    verdicts: impl Iterator<Item = &'v Verdict>,
) -> BTreeMap<String, Changes> {
    let wanted: BTreeMap<&str, &Verdict> = verdicts
        .filter(|v| v.target.is_some())
        .map(|v| (v.object.as_str(), v))
        .collect();
    let mut out = BTreeMap::new();
    if wanted.is_empty() {
        return out;
    }
    let Some(snapshot) = snapshot else {
        for name in wanted.keys() {
            out.insert(
                name.to_string(),
                Changes::Unknown("the snapshot is not beside this plan".into()),
            );
        }
        return out;
    };
    let cx = crate::plan::context(&plan.spec, snapshot);
    for object in &snapshot.blue.objects {
        let Some(id) = ObjectId::of(object) else {
            continue;
        };
        let name = id.to_string();
        let Some(verdict) = wanted.get(name.as_str()) else {
            continue;
        };
        if verdict.api_version != id.api_version || out.contains_key(&name) {
            continue;
        }
        let (_, hunks) = rewrite::trace(object, &cx);
        let same = verdict.basis.as_ref() == Some(&rewrite::basis_hash(object));
        out.insert(
            name,
            if same {
                Changes::Hunks(hunks)
            } else {
                Changes::Unknown(
                    "the snapshot has changed since the plan: crossfade plan makes it anew".into(),
                )
            },
        );
    }
    out
}

/// Prints them under an object.
pub(super) fn show(p: &Printer, changes: &Changes) {
    match changes {
        Changes::Unknown(why) => p.line(format!("  changes: not shown, {why}")),
        Changes::Hunks(hunks) if hunks.is_empty() => {
            p.line("  changes: none, green gets what blue has");
        }
        Changes::Hunks(hunks) => {
            // What the API server owns goes from every object: one line, after what somebody may want to read.
            let (owned, told): (Vec<&Hunk>, Vec<&Hunk>) =
                hunks.iter().partition(|h| h.rules == ["replay.md 6"]);
            p.line("  changes from blue to green:");
            for h in told {
                let by: Vec<&str> = h.rules.iter().map(String::as_str).collect();
                p.line(format!(
                    "  {}  ({})",
                    p.bold(&spelled(&h.path)),
                    by.join(", ")
                ));
                if let Some(v) = &h.before {
                    p.line(format!("    - {}", short(v)));
                }
                if let Some(v) = &h.after {
                    p.line(format!("    + {}", short(v)));
                }
            }
            if !owned.is_empty() {
                let paths: Vec<String> = owned.iter().map(|h| spelled(&h.path)).collect();
                p.line(format!("  left out: {}  (replay.md 6)", paths.join(", ")));
            }
        }
    }
}

/// What a rule says, when it is one of replay.md's.
pub(super) fn rule(id: &str) -> Option<&'static str> {
    rules::by_id(id).map(|r| r.says)
}

/// A pointer as people write paths: `spec.ports[0].nodePort`, keys with dots or slashes in brackets.
fn spelled(pointer: &str) -> String {
    let mut out = String::new();
    for part in pointer.split('/').skip(1) {
        let key = part.replace("~1", "/").replace("~0", "~");
        if !key.is_empty() && key.bytes().all(|b| b.is_ascii_digit()) {
            out.push_str(&format!("[{key}]"));
        } else if key.contains(['.', '/']) {
            out.push_str(&format!("[{key:?}]"));
        } else {
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(&key);
        }
    }
    out
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    let count = text.chars().count();
    if count <= WIDTH {
        return text;
    }
    let head: String = text.chars().take(WIDTH).collect();
    format!("{head}... ({count} characters)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_spelled_as_people_write_it() {
        assert_eq!(spelled("/spec/ports/0/nodePort"), "spec.ports[0].nodePort");
        assert_eq!(
            spelled("/metadata/annotations/a.b~1c"),
            "metadata.annotations[\"a.b/c\"]"
        );
    }

    #[test]
    fn a_long_value_is_cut_at_a_character_and_says_how_long_it_is() {
        let text = "ä".repeat(500);
        let said = short(&Value::from(text));
        assert!(said.ends_with("... (502 characters)"), "{said}");
    }
}
