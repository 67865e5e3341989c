//! `rollback`, and `skip` for an undo that a person decides to leave.

use super::args::{Global, RollbackArgs, SkipArgs};
use super::exit;
use super::folder::PlanFolder;
use super::migrate::{report, with_engine};
use super::printer::Printer;
use super::review::promise;
use crate::engine::{Engine, Outcome, UndoPreview, undo_preview};
use crate::error::{Error, Kind, Result};
use crate::journal::{Holder, Journal, JournalError, Record};
use crate::plan::model::Phase;
use crate::world::cloud::left;
use serde::Serialize;
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
    let mut account = None;
    let outcome = with_engine(&folder, plan, "rollback", printer, async |engine| {
        let outcome = engine.rollback(args.to).await?;
        let all = args.to.is_none_or(|to| to < Phase::Provision);
        if all && matches!(outcome, Outcome::Restored { changed: true }) {
            account = Some(compared(engine, &folder).await);
        }
        Ok(outcome)
    })?;
    report(&outcome, &folder, printer);
    if let Some(account) = account {
        tell(&account, printer);
    }
    Ok(outcome.exit_code())
}

/// The account after the way back, beside what it was when it was read for the plan.
#[derive(Serialize)]
struct Account {
    /// Of this run: should be empty.
    ours: Vec<String>,
    /// What others changed meanwhile.
    others: Vec<String>,
    /// Why it could not be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_compared: Option<String>,
}

/// Reads the account once more. That it cannot be read is said; the way back is done all the same.
async fn compared(engine: &Engine, folder: &PlanFolder) -> Account {
    let failed = |why: String| Account {
        ours: vec![],
        others: vec![],
        not_compared: Some(why),
    };
    let before = match crate::snapshot::store::read(&folder.snapshot()) {
        Ok(s) => s.aws,
        Err(e) => return failed(e.to_string()),
    };
    let Some(before) = before else {
        return failed("the account was not read when the plan was made".into());
    };
    let spec = &engine.plan().spec;
    let after = match engine.world().cloud.inventory(&spec.blue.cluster).await {
        Ok(after) => after,
        Err(e) => return failed(format!("{e} ({})", e.at)),
    };
    let lines = left::diff(&before, &after);
    let run = engine.run_id();
    let ours: Vec<String> = left::of_run(&lines, &run, &spec.green.name)
        .into_iter()
        .cloned()
        .collect();
    Account {
        others: lines.into_iter().filter(|l| !ours.contains(l)).collect(),
        ours,
        not_compared: None,
    }
}

fn tell(account: &Account, printer: &Printer) {
    if printer.json() {
        return printer.line(json!({"event": "account", "account": account}).to_string());
    }
    if let Some(why) = &account.not_compared {
        return printer.note(format!(
            "notice: the account could not be compared with what it was: {why}"
        ));
    }
    if account.ours.is_empty() {
        printer.line("the account has nothing of this run any more: roles, clusters, templates, tags, rules and providers compared with the snapshot");
    } else {
        printer.note("error: of this run is still there:");
        for line in &account.ours {
            printer.note(format!("  {line}"));
        }
    }
    if !account.others.is_empty() {
        printer.line(format!(
            "{} things changed since the account was read for the plan, and crossfade did not do it:",
            account.others.len()
        ));
        for line in account.others.iter().take(20) {
            printer.line(format!("  {line}"));
        }
    }
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
