//! `replay`: what changed on blue since the plan was made, compared three ways with green; with `--apply` it is brought.

use super::approvals::Approvals;
use super::args::{Global, ReplayArgs};
use super::folder::{PlanFolder, write_file};
use super::migrate::{report as report_outcome, with_engine};
use super::printer::Printer;
use super::rooms;
use crate::drift::{Change, Entry, Field, Report};
use crate::engine::Outcome;
use crate::error::{Error, Kind, Result};
use crate::journal::{State, Status};
use crate::plan::model::{Phase, Plan};
use crate::snapshot::mask::Key;
use crate::world::World;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Fields of one object that are shown; the rest is counted.
const SHOWN_FIELDS: usize = 12;
/// Characters of a value that are shown.
const SHOWN_VALUE: usize = 48;

/// Runs the verb.
pub fn run(args: &ReplayArgs, global: &Global, printer: &Printer) -> Result<u8> {
    let folder = PlanFolder::resolve(&args.folder, global)?;
    let plan = folder.load_plan()?;
    rooms::require_live_plan(&plan)?;
    let (_, state) = folder.read_journal()?;
    may(&plan, &state, &folder, args.apply)?;
    if args.apply {
        return apply(args, &folder, plan, printer);
    }
    let runtime = rooms::runtime()?;
    let report = runtime.block_on(async {
        let world = rooms::live(&plan.spec, &folder.root)?;
        crate::engine::verify_pins(&world, &plan.basis).await?;
        look(&folder, &plan, &state, &world, true).await
    })?;
    remember(&folder, &report);
    show(&report, args, &folder, printer);
    Ok(report.exit_code())
}

/// Between the replay and the cutover: before, there is nothing on green to compare; after, blue is the old side.
fn may(plan: &Plan, state: &State, folder: &PlanFolder, write: bool) -> Result<()> {
    let arg = folder.arg();
    let waves: Vec<_> = plan
        .steps
        .iter()
        .filter(|s| s.phase == Phase::Replay)
        .collect();
    if waves.iter().any(|s| state.status(&s.id) != Status::Done) {
        return Err(Error::new(
            Kind::StalePlan,
            "the replay phase of this plan has not run to its end: there is nothing on green to compare with yet",
        )
        .at(folder.run().display().to_string())
        .remedy(format!(
            "crossfade migrate{arg} --to replay; what changed on blue before that needs a new plan: crossfade discover{arg}, crossfade plan{arg}"
        )));
    }
    let moved = plan
        .steps
        .iter()
        .find(|s| s.phase >= Phase::Cutover && state.status(&s.id).is_active());
    if write && let Some(step) = moved {
        return Err(Error::new(
            Kind::StalePlan,
            format!(
                "the cutover has begun (step {}): green is what counts now, nothing of blue is brought any more",
                step.id
            ),
        )
        .at(folder.run().display().to_string())
        .remedy(format!(
            "change green itself, or go back first: crossfade rollback{arg} --to freeze"
        )));
    }
    Ok(())
}

/// Reads both sides (blue alone before the replay) and compares.
pub async fn look(
    folder: &PlanFolder,
    plan: &Plan,
    state: &State,
    world: &World,
    green: bool,
) -> Result<Report> {
    let place = folder.snapshot();
    let snapshot = crate::snapshot::store::read(&place)?;
    let key = Key::load_or_new(&place)?;
    crate::drift::look(
        world,
        crate::drift::Look {
            plan,
            state,
            snapshot,
            key: &key,
            green,
        },
    )
    .await
}

fn apply(args: &ReplayArgs, folder: &PlanFolder, plan: Plan, printer: &Printer) -> Result<u8> {
    // As for `migrate`: the replay of exactly this plan is approved.
    Approvals::load(folder)?.require(folder, &plan, &BTreeSet::from([Phase::Replay]))?;
    let mut found = None;
    let outcome = with_engine(folder, plan, "replay", printer, async |engine| {
        // What an earlier process had begun first: it stands in the journal.
        let first = engine.bring(None).await?;
        if !matches!(first, Outcome::Migrated { .. }) {
            return Ok(first);
        }
        let (plan, state) = (engine.plan(), engine.state());
        may(plan, &state, folder, true)?;
        crate::engine::verify_pins(engine.world(), &plan.basis).await?;
        let report = look(folder, plan, &state, engine.world(), true).await?;
        if let Some(seen) = &args.digest {
            let now = report.digest(args.prune);
            if *seen != now {
                return Err(Error::new(
                    Kind::StalePlan,
                    format!("what would be written is not what was looked at any more: digest {seen} then, {now} now"),
                )
                .at("--digest")
                .remedy(format!("look again: crossfade replay{}", folder.arg())));
            }
        }
        let extension = crate::drift::extension(plan, &state, &report, args.prune);
        let brought = match extension {
            Some(extension) => engine.bring(Some(extension)).await?,
            None => first,
        };
        found = Some((report, engine.state()));
        Ok(brought)
    })?;
    let Some((report, state)) = found else {
        report_outcome(&outcome, folder, printer);
        return Ok(outcome.exit_code());
    };
    show(&report, args, folder, printer);
    if !matches!(outcome, Outcome::Migrated { .. }) {
        report_outcome(&outcome, folder, printer);
        return Ok(outcome.exit_code());
    }
    let changed = !report.to_write(args.prune).is_empty();
    let left = left(&state);
    forget(folder, &report, args.prune);
    if printer.json() {
        printer.document(
            &json!({"event": "end", "outcome": "brought", "changed": changed, "left": left}),
        );
    } else if changed {
        printer.line(printer.tint("green", "brought; rollback takes it back with the rest"));
        for (object, fields) in left.as_object().into_iter().flatten() {
            for (field, why) in fields.as_object().into_iter().flatten() {
                let why = why.as_str().unwrap_or_default();
                printer.line(format!("  left: {object} {field}: {why}"));
            }
        }
        printer.line(format!("next: crossfade migrate{}", folder.arg()));
    } else {
        printer.line("nothing to bring; nothing was written");
    }
    // What a person has to decide stays to be decided.
    Ok(if report.needs_a_person() { 3 } else { 0 })
}

/// Fields that the last sync found changed on green between the look and the write.
fn left(state: &State) -> Value {
    state
        .extensions()
        .last()
        .and_then(|e| e.steps.first())
        .and_then(|root| state.steps.get(&root.id)?.after.clone())
        .map_or(Value::Null, |after| after["left"].clone())
}

/// What the last look found, for `status`, which reads files only.
#[derive(Debug, Serialize, Deserialize)]
pub struct LastLook {
    /// When.
    pub at: jiff::Timestamp,
    /// In one line; empty when nothing differed that has to be decided or brought.
    pub line: String,
}

impl LastLook {
    fn file(folder: &PlanFolder) -> std::path::PathBuf {
        folder.run().join("drift.json")
    }
    /// Of a run.
    pub fn read(folder: &PlanFolder) -> Option<LastLook> {
        serde_json::from_str(&std::fs::read_to_string(Self::file(folder)).ok()?).ok()
    }
    fn write(folder: &PlanFolder, line: String) {
        if !folder.run().is_dir() {
            return;
        }
        let look = LastLook {
            at: jiff::Timestamp::now(),
            line,
        };
        // A note for `status`, no part of the run: where it cannot be written, status says nothing.
        if let Ok(text) = serde_json::to_string(&look) {
            let _ = write_file(&Self::file(folder), &(text + "\n"));
        }
    }
}

/// Keeps what a look found for `status`.
pub fn remember(folder: &PlanFolder, report: &Report) {
    LastLook::write(folder, report.line());
}

/// The same after what could be brought was.
fn forget(folder: &PlanFolder, report: &Report, prune: bool) {
    let mut left = report.clone();
    left.entries.retain(|e| match e.change {
        Change::Bring | Change::New => false,
        Change::Gone => !(prune && e.prunable),
        _ => true,
    });
    remember(folder, &left);
}

fn show(report: &Report, args: &ReplayArgs, folder: &PlanFolder, printer: &Printer) {
    let digest = report.digest(args.prune);
    if printer.json() {
        let mut value = json!(report);
        value["digest"] = json!(digest);
        value["exit_code"] = json!(report.exit_code());
        return printer.document(&value);
    }
    printer.line(printer.bold(&format!(
        "{} objects looked at on blue, {} compared on green",
        report.blue, report.green
    )));
    let order = [
        Change::Bring,
        Change::New,
        Change::Gone,
        Change::Kept,
        Change::Conflict,
        Change::Recreate,
        Change::Replan,
    ];
    for change in order {
        for entry in report.of(change) {
            show_entry(entry, printer);
        }
    }
    for what in &report.not_checked {
        printer.line(printer.tint("yellow", &format!("  not checked  {what}")));
    }
    let arg = folder.arg();
    let prunable = report.entries.iter().any(|e| e.prunable);
    if report.entries.is_empty() {
        printer.line("nothing changed on either side");
    } else if args.apply {
        // What was done is said after this.
    } else if report.to_write(args.prune).is_empty() {
        printer.line("nothing to bring");
        if prunable {
            printer.line(format!(
                "next: crossfade replay{arg} --apply --prune (deletes what is gone), or leave it"
            ));
        }
    } else {
        let prune = if args.prune { " --prune" } else { "" };
        printer.line(format!(
            "next: crossfade replay{arg} --apply{prune} (or, exactly this: --digest {digest})"
        ));
    }
}

fn show_entry(entry: &Entry, printer: &Printer) {
    let word = format!("{:<9}", entry.change.word());
    let word = match entry.change {
        Change::Bring | Change::New => printer.tint("green", &word),
        Change::Gone | Change::Replan => printer.tint("yellow", &word),
        Change::Conflict | Change::Recreate => printer.tint("red", &word),
        Change::Kept => printer.tint("dim", &word),
    };
    let note = if entry.note.is_empty() {
        String::new()
    } else {
        format!(": {}", entry.note)
    };
    printer.line(format!("  {word} {}{note}", entry.object));
    let secret = entry.object.starts_with("secret/");
    let f = &entry.fields;
    let mut lines: Vec<String> = vec![];
    for x in &f.bring {
        lines.push(format!(
            "{}: {} -> {}",
            x.path,
            value(&x.green, secret),
            value(&x.blue, secret)
        ));
    }
    for x in &f.kept {
        lines.push(format!(
            "{}: {} on green{}; left",
            x.path,
            value(&x.green, secret),
            by(x)
        ));
    }
    for x in &f.conflicts {
        lines.push(format!(
            "{}: {} on blue, {} on green{}, was {}; left",
            x.path,
            value(&x.blue, secret),
            value(&x.green, secret),
            by(x),
            value(&x.base, secret)
        ));
    }
    for x in &f.recreate {
        lines.push(format!(
            "{}: {} -> {}, cannot be changed",
            x.path,
            value(&x.green, secret),
            value(&x.blue, secret)
        ));
    }
    for line in lines.iter().take(SHOWN_FIELDS) {
        printer.line(format!("              {line}"));
    }
    if lines.len() > SHOWN_FIELDS {
        let more = lines.len() - SHOWN_FIELDS;
        printer.line(format!("              and {more} more (-o json shows all)"));
    }
}

fn by(field: &Field) -> String {
    if field.who.is_empty() {
        String::new()
    } else {
        format!(" by {}", field.who.join(", "))
    }
}

/// A value in one line. Of a Secret only whether there is one: not even the hash is of use to a reader.
fn value(value: &Option<Value>, secret: bool) -> String {
    let text = match value {
        None => return "nothing".into(),
        Some(Value::String(s)) if secret && s.starts_with(crate::snapshot::model::HASH_PREFIX) => {
            return "(a secret value)".into();
        }
        Some(v) => v.to_string(),
    };
    if text.chars().count() <= SHOWN_VALUE {
        return text;
    }
    let short: String = text.chars().take(SHOWN_VALUE).collect();
    format!("{short}...")
}
