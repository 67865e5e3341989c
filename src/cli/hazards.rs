//! `hazards`: why blue is not upgraded in place.

use super::args::{Global, HazardsArgs};
use super::exit;
use super::folder::PlanFolder;
use super::printer::Printer;
use crate::error::{Error, Kind, Result};

/// Runs the verb.
pub fn run(args: &HazardsArgs, global: &Global, printer: &Printer) -> Result<u8> {
    let folder = PlanFolder::resolve(&args.folder, global)?;
    let hazards = folder.load_plan()?.hazards;
    if printer.json() {
        let value =
            serde_json::to_value(&hazards).map_err(|e| Error::new(Kind::Bug, e.to_string()))?;
        printer.document(&value);
        return Ok(exit::DONE);
    }
    for line in hazards.lines() {
        // Titles stand at the margin.
        if line.starts_with(' ') || line.is_empty() {
            printer.line(line);
        } else {
            printer.line(printer.bold(&line));
        }
    }
    Ok(exit::DONE)
}
