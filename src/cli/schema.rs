//! `crossfade schema`: the JSON Schema of `migration.yaml`, for editors.

use crate::error::{Error, Kind, Result};

/// The schema as text, as `plans/migration.schema.json` keeps it.
pub fn run() -> Result<String> {
    serde_json::to_string_pretty(&crate::spec::schema())
        .map_err(|e| Error::new(Kind::Bug, format!("the schema is no JSON: {e}")))
}
