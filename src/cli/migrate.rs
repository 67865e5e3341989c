//! `migrate`: every phase up to its gate, for real.

use super::approvals::Approvals;
use super::args::{Global, MigrateArgs};
use super::folder::PlanFolder;
use super::printer::Printer;
use super::progress::Progress;
use super::rooms;
use crate::engine::{Engine, LookHook, Moment, Options, Outcome};
use crate::error::{Error, Result};
use crate::journal::{Holder, Journal};
use crate::plan::model::{Phase, Plan};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Runs the verb.
pub fn run(args: &MigrateArgs, global: &Global, printer: &Printer) -> Result<u8> {
    let folder = PlanFolder::resolve(&args.folder, global)?;
    let plan = folder.load_plan()?;
    blockers(&plan)?;
    rooms::require_live_plan(&plan)?;
    same_spec(&folder, &plan)?;
    Approvals::load(&folder)?.require(&folder, &plan, &phases_to_run(&plan, args.to))?;
    super::terraform::require_approved(&folder, &plan, args.to)?;
    if let Some(aside) = folder.archive_clean_run(&plan.digest)? {
        printer.note(format!(
            "the journal of the earlier plan (all undone) is kept in {}",
            aside.display()
        ));
    }
    let look = |engine: &Engine| Some(last_look(engine, &folder, *printer, args.leave_drift));
    let outcome =
        with_engine_that_looks(&folder, plan, "migrate", printer, look, async |engine| {
            engine.forward(args.to).await
        })?;
    report(&outcome, &folder, printer);
    Ok(outcome.exit_code())
}

/// Looks for what changed on blue: at the start of a run for what is new (a plan that no longer fits is refused anyway), before the freeze
/// for everything. A look that fails is said, not a reason to stop.
fn last_look(
    engine: &Engine,
    folder: &PlanFolder,
    printer: Printer,
    leave_drift: bool,
) -> LookHook {
    let (world, plan, journal) = engine.parts();
    let folder = folder.clone();
    LookHook(Arc::new(move |moment| {
        let (world, plan, journal, folder) =
            (world.clone(), plan.clone(), journal.clone(), folder.clone());
        Box::pin(async move {
            let arg = folder.arg();
            let state = journal.state();
            let frozen = moment == Moment::BeforeFreeze;
            let found = super::replay::look(&folder, &plan, &state, &world, frozen).await;
            let found = match found {
                Ok(found) => found,
                Err(e) => {
                    printer.note(format!(
                        "notice: whether blue changed since the plan could not be looked at: {e} ({})",
                        e.at
                    ));
                    return Ok(None);
                }
            };
            super::replay::remember(&folder, &found);
            let line = found.line();
            if line.is_empty() {
                return Ok(None);
            }
            if !frozen {
                printer.note(format!(
                    "notice: since the plan: {line}; after the replay phase: crossfade replay{arg}"
                ));
                return Ok(None);
            }
            if leave_drift {
                printer.note(format!("notice: left behind on blue: {line}"));
                return Ok(None);
            }
            Ok(Some(Outcome::Stopped {
                step: "freeze".into(),
                object: String::new(),
                why: format!("blue is not what green was made from: {line}"),
                remedy: format!(
                    "look at it (crossfade replay{arg}) and bring it (crossfade replay{arg} --apply), or leave it behind (crossfade migrate{arg} --leave-drift)"
                ),
                kind: crate::error::Kind::StalePlan,
            }))
        })
    }))
}

/// Phases of the steps that a run up to `to` touches: also early steps of later phases that others need.
fn phases_to_run(plan: &Plan, to: Option<Phase>) -> BTreeSet<Phase> {
    crate::engine::steps_to(&plan.steps, to)
        .into_iter()
        .map(|s| s.phase)
        .collect()
}

/// A plan carries the spec that it was made of: one that was edited since is not what was reviewed. Without a `migration.yaml` the
/// plan speaks for itself.
fn same_spec(folder: &PlanFolder, plan: &Plan) -> Result<()> {
    let file = folder.spec();
    if !file.exists() {
        return Ok(());
    }
    let mut spec = crate::spec::load(&file)?;
    // What the planner fills in from the snapshot when nobody says it.
    let aws = &plan.spec.aws;
    spec.aws.account = spec.aws.account.or_else(|| aws.account.clone());
    spec.aws.region = spec.aws.region.or_else(|| aws.region.clone());
    if spec == plan.spec {
        return Ok(());
    }
    Err(Error::new(
        crate::error::Kind::StalePlan,
        "migration.yaml was changed since the plan was made: the plan would carry out the old one",
    )
    .at(file.display().to_string())
    .remedy(format!(
        "plan again: crossfade plan{0}, then crossfade review{0}; or take the change back",
        folder.arg()
    )))
}

fn blockers(plan: &Plan) -> Result<()> {
    match plan.findings.iter().find(|f| f.blocks()) {
        None => Ok(()),
        Some(f) => Err(Error::new(
            crate::error::Kind::Blocked,
            format!("a finding stands in the way: {} {}", f.id, f.message),
        )
        .at(&f.object)
        .remedy(&f.remedy)),
    }
}

/// Opens the journal, connects, and lets an engine run with signals and progress wired. Shared by the verbs that write.
pub fn with_engine<T>(
    folder: &PlanFolder,
    plan: Plan,
    verb: &str,
    printer: &Printer,
    go: impl AsyncFnOnce(&Engine) -> Result<T>,
) -> Result<T> {
    with_engine_that_looks(folder, plan, verb, printer, |_| None, go)
}

fn with_engine_that_looks<T>(
    folder: &PlanFolder,
    plan: Plan,
    verb: &str,
    printer: &Printer,
    look: impl FnOnce(&Engine) -> Option<LookHook>,
    go: impl AsyncFnOnce(&Engine) -> Result<T>,
) -> Result<T> {
    let run = folder.run();
    let opened = Journal::open(&run, verb)?;
    if let Some(notice) = &opened.notice {
        printer.note(format!("notice: {notice}"));
    }
    let runtime = rooms::runtime()?;
    let progress = Progress::start(printer, Some(&run));
    let outcome = runtime.block_on(async {
        let world = rooms::live(&plan.spec, &folder.root)?;
        let engine = Engine::new(
            world,
            Arc::new(plan),
            Arc::new(opened.journal),
            rooms::registry(),
            progress.events(),
        );
        let look = look(&engine);
        let engine = engine.options(Options {
            by: Holder::me(verb).who(),
            look,
            ..Options::default()
        });
        rooms::stop_on_signals(engine.cancel(), *printer);
        go(&engine).await
    });
    drop(progress);
    outcome
}

/// What happened and what to do next.
pub fn report(outcome: &Outcome, folder: &PlanFolder, printer: &Printer) {
    let arg = folder.arg();
    if printer.json() {
        let mut value = json!(outcome);
        value["event"] = json!("end");
        value["exit_code"] = json!(outcome.exit_code());
        return printer.line(value.to_string());
    }
    printer.line("");
    match outcome {
        Outcome::Migrated { changed, complete } => {
            match (changed, complete) {
                (false, true) => {
                    printer.line("nothing to do: the migration is done; nothing was written")
                }
                (false, false) => {
                    printer.line("nothing to do: these phases are done; nothing was written")
                }
                (true, true) => printer.line(printer.tint("green", "migrated: every step is done")),
                (true, false) => printer.line(printer.tint("green", "done up to this phase")),
            }
            if *complete {
                printer.line(format!("next: watch it; back at any time: crossfade rollback{arg}; for good: crossfade finalize{arg}"));
            } else {
                printer.line(format!(
                    "next: on: crossfade migrate{arg}; back: crossfade rollback{arg}"
                ));
            }
        }
        Outcome::Restored { changed } => {
            if *changed {
                printer.line(printer.tint("green", "rolled back"));
            } else {
                printer.line("nothing to undo; nothing was written");
            }
            printer.line(format!("next: crossfade status{arg}"));
        }
        Outcome::Stopped {
            step,
            object,
            why,
            remedy,
            ..
        } => {
            printer.note(format!("error: step {step} cannot go on: {why}"));
            if !object.is_empty() {
                printer.note(format!("  where: {object}"));
            }
            let remedy = if remedy.is_empty() {
                String::new()
            } else {
                format!("{remedy}; then ")
            };
            printer.note(format!(
                "  next:  {remedy}run the same command again (done steps stay done), or go back: crossfade rollback{arg}"
            ));
        }
        Outcome::Interrupted => {
            printer.line("stopped at a safe point; everything that happened is in the journal");
            printer.line(format!(
                "next: on: run the same command again; back: crossfade rollback{arg}"
            ));
        }
        Outcome::Stuck { step, stuck } => {
            printer.note(format!("error: the undo of step {step} needs a person"));
            printer.note(format!("  where:    {}", stuck.object));
            printer.note(format!("  expected: {}", stuck.expected));
            printer.note(format!("  found:    {}", stuck.found));
            for way in &stuck.ways {
                printer.note(format!("  next:     {way}"));
            }
        }
    }
}
