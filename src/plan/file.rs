//! The plan on disk: canonical JSON whose digest must hold.

use super::model::Plan;
use crate::error::{Error, Kind, Result};
use crate::object::{canonical, sha256_hex};
use serde_json::Value;
use std::io::Write;
use std::path::Path;

/// sha256 over the canonical JSON of everything but the digest itself.
pub fn digest_of(plan: &Plan) -> String {
    let mut v = serde_json::to_value(plan).expect("a plan is plain data");
    v.as_object_mut().map(|o| o.shift_remove("digest"));
    sha256_hex(canonical(&v))
}

/// Reads and verifies a plan.
pub fn load(path: &Path) -> Result<Plan> {
    let place = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| {
        Error::new(Kind::BadInput, format!("the plan cannot be read: {e}"))
            .at(&place)
            .remedy("Run `crossfade plan` first, or give the folder that holds plan.json.")
    })?;
    parse(&text, &place)
}

/// Reads and verifies a plan from text; `place` is for errors.
pub fn parse(text: &str, place: &str) -> Result<Plan> {
    let plan: Plan = serde_json::from_str(text).map_err(|e| {
        Error::new(Kind::BadInput, format!("this is no plan: {e}"))
            .at(format!("{place}:{}:{}", e.line(), e.column()))
            .remedy("Make it again with `crossfade plan`.")
    })?;
    // The digest covers what the file says, not only what this version understands of it.
    let mut raw: Value = serde_json::from_str(text)
        .map_err(|e| Error::new(Kind::BadInput, format!("this is no plan: {e}")).at(place))?;
    raw.as_object_mut().map(|o| o.shift_remove("digest"));
    let actual = sha256_hex(canonical(&raw));
    if actual != plan.digest {
        return Err(Error::new(
            Kind::StalePlan,
            format!(
                "the plan was edited by hand: it says digest {}, its content has {}",
                short(&plan.digest),
                short(&actual)
            ),
        )
        .at(place)
        .remedy("Change migration.yaml instead and run `crossfade plan` again."));
    }
    Ok(plan)
}

fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}

/// Writes a plan: canonical JSON, pretty for people, through a temporary file so that no half plan is ever seen.
pub fn store(path: &Path, plan: &Plan) -> Result<()> {
    let place = path.display().to_string();
    let fail = |e: std::io::Error| {
        Error::new(Kind::BadInput, format!("the plan cannot be written: {e}"))
            .at(&place)
            .remedy("Check the folder and the space on the disk.")
    };
    let value: Value = serde_json::to_value(plan).expect("a plan is plain data");
    let sorted: Value = serde_json::from_str(&canonical(&value)).expect("canonical JSON is JSON");
    let mut text = serde_json::to_string_pretty(&sorted).expect("JSON is text");
    text.push('\n');
    let tmp = path.with_extension("json.tmp");
    let mut f = std::fs::File::create(&tmp).map_err(fail)?;
    f.write_all(text.as_bytes()).map_err(fail)?;
    f.sync_all().map_err(fail)?;
    std::fs::rename(&tmp, path).map_err(fail)
}
