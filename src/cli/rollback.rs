//! `rollback`, and `skip` for an undo that a person decides to leave.

use super::args::{Global, RollbackArgs, SkipArgs};
use super::exit;
use super::folder::PlanFolder;
use super::migrate::{report, with_engine};
use super::printer::Printer;
use super::review::promise;
use crate::engine::{UndoPreview, undo_preview};
use crate::error::{Error, Kind, Result};
use crate::journal::{Holder, Journal, JournalError, Record};
use serde_json::json;

/// Runs `rollback`.
pub fn run(args: &RollbackArgs, global: &Global, printer: &Printer) -> Result<u8> {
    let folder = PlanFolder::resolve(&args.folder, global)?;
    let plan = folder.load_plan()?;
    if args.dry_run {
        let (_, state) = folder.read_journal()?;
        let preview = undo_preview(&plan, &state, args.to);
        if printer.json() {
            printer.document(&json!({"to": args.to, "undo": preview}));
        } else {
            show(&preview, printer);
        }
        return Ok(exit::DONE);
    }
    let outcome = with_engine(&folder, plan, "rollback", printer, async |engine| {
        engine.rollback(args.to).await
    })?;
    report(&outcome, &folder, printer);
    Ok(outcome.exit_code())
}

/// The steps that would be undone.
pub fn show(preview: &[UndoPreview], printer: &Printer) {
    if preview.is_empty() {
        return printer.line("nothing to undo");
    }
    printer.line(printer.bold(&format!(
        "{} steps would be undone, in this order (independent ones at once):",
        preview.len()
    )));
    for u in preview {
        printer.line(format!("  {}  {}", u.step, u.summary));
        printer.line(format!("      gives back {}", promise(&u.promise)));
    }
}

/// Runs `skip`.
pub fn skip(args: &SkipArgs, global: &Global, printer: &Printer) -> Result<u8> {
    let folder = PlanFolder::resolve(&args.folder, global)?;
    if args.reason.trim().is_empty() {
        return Err(Error::new(Kind::Usage, "a skip needs a reason").at("--reason"));
    }
    let (_, state) = folder.read_journal()?;
    if state.run.is_none() {
        return Err(
            Error::new(Kind::Usage, "there is no run, so nothing is stuck")
                .at(folder.run().display().to_string()),
        );
    }
    if state
        .steps
        .get(&args.step)
        .is_none_or(|s| s.stuck.is_none())
    {
        return Err(Error::new(
            Kind::Usage,
            format!("the undo of step {} is not stuck", args.step),
        )
        .at(folder.run().display().to_string())
        .remedy(match state.stuck() {
            Some((id, _)) => format!("stuck is: {id}"),
            None => "nothing is stuck; only a stuck undo can be skipped".into(),
        }));
    }
    let opened = Journal::open(&folder.run(), "skip")?;
    let append = opened.journal.append(
        jiff::Timestamp::now(),
        Record::Skipped {
            step: args.step.clone(),
            reason: args.reason.clone(),
            by: Holder::me("skip").who(),
        },
    );
    match append {
        // Somebody finished it between the look and the lock.
        Err(JournalError::Illegal(why)) => return Err(Error::new(Kind::Usage, why)),
        other => other?,
    }
    if printer.json() {
        printer.document(&json!({"skipped": args.step, "reason": args.reason}));
    } else {
        printer.line(format!("{} is left as it is", args.step));
        printer.line(format!("next: crossfade rollback{}", folder.arg()));
    }
    Ok(exit::DONE)
}
