//! `cost`: what both clusters cost, as the plan estimates it.

use super::args::{CostArgs, Global};
use super::exit;
use super::printer::Printer;
use super::rooms;
use crate::error::Result;
use crate::plan::cost::{Cost, Side, dollars};
use crate::plan::model::Plan;
use serde_json::json;

/// Hours of a month.
const MONTH: u64 = 730;

/// Runs the verb.
pub fn run(args: &CostArgs, global: &Global, printer: &Printer) -> Result<u8> {
    let plan = rooms::plan_of(&args.source, global)?;
    if printer.json() {
        printer.document(&json!(plan.cost));
        return Ok(exit::DONE);
    }
    let cost = &plan.cost;
    side(
        &format!("blue   {}", plan.spec.blue.cluster),
        &cost.blue,
        printer,
    );
    side(
        &format!("green  {}", plan.spec.green.name),
        &cost.green,
        printer,
    );
    printer.line(line(&plan));
    printer.line("");
    printer.line(printer.bold("Not in these numbers"));
    for what in &cost.not_counted {
        printer.line(format!("  {what}"));
    }
    printer.line(format!(
        "An estimate with prices of {} on {} ({}); override them under cost.prices in migration.yaml.",
        cost.prices_region, cost.prices_of, cost.source
    ));
    Ok(exit::DONE)
}

fn side(title: &str, side: &Side, printer: &Printer) {
    printer.line(printer.bold(title));
    for l in &side.lines {
        let price = l.hourly.map_or("no price".into(), dollars_an_hour);
        printer.line(format!("  {:<58} {price:>10}  {}", l.what, l.key));
    }
    printer.line(format!(
        "  {:<58} {:>10}  an hour, about {} USD a month\n",
        "sum",
        dollars_an_hour(side.hourly),
        dollars(side.hourly.saturating_mul(MONTH))
    ));
}

/// Four decimals: a disk costs less than a cent an hour.
fn dollars_an_hour(micros: u64) -> String {
    let rounded = micros.saturating_add(50) / 100;
    format!("{}.{:04}", rounded / 10_000, rounded % 10_000)
}

/// One line for the first look at a plan.
pub fn line(plan: &Plan) -> String {
    let Cost {
        blue,
        green,
        both_weeks,
        both_extra,
        ..
    } = &plan.cost;
    format!(
        "blue about {} USD an hour, green about {}; {both_weeks} weeks with both cost {} USD on top (estimate)",
        dollars(blue.hourly),
        dollars(green.hourly),
        dollars(*both_extra)
    )
}
