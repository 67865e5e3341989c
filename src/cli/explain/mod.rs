//! `explain`: everything that the plan says about one thing. `query` reads the question, `search` and `fields` look, `show` answers,
//! `near` says what may have been meant.

mod changes;
mod fields;
mod near;
mod query;
mod search;
mod show;

use super::args::{ExplainArgs, Global};
use super::exit;
use super::folder::PlanFolder;
use super::printer::Printer;
use crate::error::{Error, Kind, Result};
use crate::plan::model::Plan;
use crate::snapshot::model::Snapshot;
use query::Query;

/// Objects whose differences are shown at once.
const DIFFERENCES: usize = 20;

/// Runs the verb.
pub fn run(args: &ExplainArgs, global: &Global, printer: &Printer) -> Result<u8> {
    if args.what.trim().is_empty() {
        return Err(Error::new(Kind::Usage, "what is to be explained?")
            .remedy("name an object, a field, a host, a node group, a role or a finding; crossfade plan shows them"));
    }
    let folder = PlanFolder::resolve(&args.folder, global)?;
    let plan = folder.load_plan()?;
    // Only for what the plan leaves out: defaults that nobody wrote, and records that stay as they are.
    let snapshot = crate::snapshot::store::read(&folder.snapshot()).ok();
    let query = Query::read(&args.what);
    let mut found = search::search(&plan, snapshot.as_ref(), &query)?;
    // A question that hits half the cluster gets verdicts, not half a cluster of differences.
    if found.verdicts.len() <= DIFFERENCES {
        found.changes = changes::of(
            &plan,
            snapshot.as_ref(),
            found.verdicts.iter().map(AsRef::as_ref),
        );
    }
    if found.is_empty() {
        return Err(nothing(&plan, snapshot.as_ref(), &args.what, &query)?
            .at(folder.plan().display().to_string()));
    }
    if printer.json() {
        printer.document(&found.as_json());
    } else {
        found.show(printer);
    }
    Ok(exit::DONE)
}

fn nothing(plan: &Plan, snapshot: Option<&Snapshot>, what: &str, query: &Query) -> Result<Error> {
    let near = near::near(plan, what)?;
    let mut remedy = if near.is_empty() {
        "objects are spelled kind/namespace/name, as in deployment/orders/orders, fields as in spec.kubelet.maxPods; a part of an object's name is enough".to_string()
    } else {
        format!("near it: {}", near.join(", "))
    };
    if let Some(check) = crate::checks::all().find(|c| c.id.eq_ignore_ascii_case(what.trim())) {
        remedy = format!(
            "{} found nothing in this plan; crossfade checks {} says what it asks",
            check.id, check.id
        );
    }
    if let (Query::Record(_), None) = (query, snapshot) {
        remedy.push_str(
            "; records that stay as they are stand in the snapshot, which is not beside this plan",
        );
    }
    Ok(Error::new(
        Kind::BadInput,
        format!("the plan says nothing about {what:?}"),
    )
    .remedy(remedy))
}
