//! What changed since the plan was made, on either side, and what of it a run may bring to green (both clusters live for days).
//!
//! [`compare()`] is pure: base (what the run wrote, or would have), blue's object as it is rewritten now, green's object now. Only what
//! blue changed and green did not is brought; what somebody changed on green is left and named; what both changed is a conflict, shown and
//! left. The room [`read`] fetches both sides page by page; nothing here writes.

mod compare;
mod dry_run;
mod extend;
mod immutable;
mod lists;
mod managers;
mod path;
mod read;
mod report;
mod secret;

#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod tests;

pub use compare::{Field, Options, Outcome, compare};
pub use dry_run::server_dry_run;
pub use extend::extension;
pub use managers::Managers;
pub use path::{Path, Seg};
pub use read::{Look, look};
pub use report::{Change, Entry, Report};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One change of one field, ready to be written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub struct Op {
    /// Which field.
    pub path: Path,
    /// The value that it gets; `None` takes it away. Of a Secret a marker, never a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// What green had there when it was looked at: the write holds only as long as that stands. Of a Secret a marker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<Value>,
}

/// Applies changes to an object.
pub fn apply_ops(object: &mut Value, ops: &[Op]) {
    for op in ops {
        match &op.value {
            Some(value) => op.path.set(object, value.clone()),
            None => op.path.remove(object),
        }
    }
}
