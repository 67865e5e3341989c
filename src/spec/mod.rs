//! What the user wants: `migration.yaml`, strict and versioned.

pub mod connections;
mod defaults;
pub mod model;
mod validate;

use crate::error::{Error, Kind, Result};
pub use defaults::defaults_for;
pub(crate) use defaults::{api_doors, is_private};
use model::Spec;
use std::path::Path;
pub(crate) use validate::is_label;

/// Reads and checks a `migration.yaml`. Errors are [`Kind::BadInput`] with file, line and column.
pub fn load(path: &Path) -> Result<Spec> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| {
        Error::new(Kind::BadInput, format!("the spec cannot be read: {e}"))
            .at(&file)
            .remedy("name an existing migration.yaml, or let `crossfade init` write one")
    })?;
    parse(&text, &file)
}

/// Reads and checks the text of a `migration.yaml`; `file` names it in errors.
pub fn parse(text: &str, file: &str) -> Result<Spec> {
    validate::head(text, file)?;
    let spec: Spec = crate::yaml::strict(text, file)?;
    validate::spec(&spec, text, file)?;
    Ok(spec)
}

/// JSON Schema of `migration.yaml`, made from the types. `plans/migration.schema.json` is kept equal by a test.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Spec).to_value();
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".into(), "crossfade migration".into());
    }
    schema
}
