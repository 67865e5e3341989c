//! `rehearse`: the whole plan and its way back, on a twin of the snapshot.

use super::args::{Faults, Global, RehearseArgs};
use super::exit;
use super::folder::PlanFolder;
use super::printer::{Printer, seconds};
use super::rooms;
use crate::engine::rehearse::{Company, FaultClass, Rehearsal};
use crate::engine::{Event, EventKind, Events, Outcome, silent};
use crate::error::{Error, Kind, Result};
use crate::plan::model::{Phase, Plan};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Faults of each class that are tried by default.
const SAMPLE: usize = 16;

/// Runs the verb.
pub fn run(args: &RehearseArgs, global: &Global, printer: &Printer) -> Result<u8> {
    let folder = PlanFolder::resolve(&args.folder, global)?;
    let (spec, snapshot) = rooms::spec_and_snapshot(&folder)?;
    let fresh = crate::plan::plan(&spec, &snapshot);
    let plan = if folder.plan().exists() {
        let plan = folder.load_plan()?;
        if plan.digest != fresh.digest {
            printer.note(
                "notice: plan.json is not what migration.yaml and the snapshot give now; rehearsing plan.json",
            );
        }
        plan
    } else {
        fresh
    };
    let plan = Arc::new(plan);
    let company = Company {
        spec: &spec,
        snapshot: &snapshot,
        plan: plan.clone(),
        registry: rooms::registry(),
    };
    printer.text(printer.bold(&format!(
        "rehearsal of {} on a twin of the snapshot",
        plan.spec.name
    )));
    let events = if printer.json() {
        silent()
    } else {
        story(&plan, *printer, args.verbose)
    };
    let result = if let Some(how) = args.faults {
        let how_many = match how {
            Faults::Sample => SAMPLE,
            Faults::All => usize::MAX,
        };
        company.with_faults(events, how_many, how_many, &|class| {
            show_class(class, printer)
        })?
    } else {
        company.there_and_back(events)?
    };
    if printer.json() {
        let value =
            serde_json::to_value(&result).map_err(|e| Error::new(Kind::Bug, e.to_string()))?;
        printer.document(&value);
    } else {
        show(&result, &folder, printer);
    }
    Ok(code(&result))
}

/// 0 when it went there and back with every promise kept.
fn code(r: &Rehearsal) -> u8 {
    let stopped = [&r.stopped, &r.rollback.stopped]
        .into_iter()
        .flatten()
        .next();
    match stopped {
        Some(outcome) => outcome.exit_code(),
        None if r.violations.is_empty() => exit::DONE,
        None => Kind::Blocked.exit_code(),
    }
}

/// One line per phase (or per step), with virtual times.
fn story(plan: &Plan, printer: Printer, verbose: bool) -> Events {
    #[derive(Default)]
    struct Seen {
        start: Option<jiff::Timestamp>,
        left: BTreeMap<Phase, usize>,
        back: bool,
    }
    let phases: BTreeMap<String, Phase> =
        plan.steps.iter().map(|s| (s.id.clone(), s.phase)).collect();
    let seen = Mutex::new(Seen::default());
    Arc::new(move |event: &Event| {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let start = *seen.start.get_or_insert(event.at);
        let at = seconds((event.at.as_millisecond() - start.as_millisecond()) as f64 / 1000.0);
        let say = |text: String| printer.line(format!("  {at:>12}  {text}"));
        match &event.kind {
            EventKind::Started { .. } => {
                for phase in phases.values() {
                    *seen.left.entry(*phase).or_default() += 1;
                }
            }
            EventKind::RollbackStarted { steps, .. } => {
                seen.back = true;
                say(format!("way back: {steps} steps to undo"));
            }
            EventKind::StepDone { step, took_s } | EventKind::Undone { step, took_s } => {
                if verbose {
                    let word = if seen.back { "undone" } else { "done" };
                    say(format!("{word} {step} ({})", seconds(*took_s)));
                }
                if !seen.back
                    && let Some(phase) = phases.get(step)
                    && let Some(left) = seen.left.get_mut(phase)
                {
                    *left -= 1;
                    if *left == 0 {
                        say(printer.tint("green", &format!("{} done", phase.name())));
                    }
                }
            }
            EventKind::StepFailed { step, why, .. } => {
                say(printer.tint("red", &format!("{step} failed: {why}")));
            }
            EventKind::Stuck { step, stuck } => {
                say(printer.tint(
                    "red",
                    &format!(
                        "{step} stuck: {} expected {}, found {}",
                        stuck.object, stuck.expected, stuck.found
                    ),
                ));
            }
            EventKind::RollbackDone { .. } => say(printer.tint("green", "back at the start")),
            EventKind::Retrying { step, error, .. } if verbose => {
                say(format!("retry {step}: {error}"));
            }
            _ => {}
        }
    })
}

fn show_class(class: &FaultClass, printer: &Printer) {
    if printer.json() {
        return;
    }
    let good = class.cases - class.failed.len();
    let word = if class.failed.is_empty() {
        printer.tint("green", "ok")
    } else {
        printer.tint("red", "WRONG")
    };
    printer.line(format!(
        "  {word} {good:>4} of {:<4} {}",
        class.cases, class.class
    ));
    for f in class.failed.iter().take(3) {
        printer.line(format!("       {f}"));
    }
}

fn show(r: &Rehearsal, folder: &PlanFolder, printer: &Printer) {
    printer.line("");
    printer.line(format!(
        "there: {} in {} of virtual time; writes closed for {}",
        r.outcome,
        seconds(r.virtual_s),
        seconds(r.write_closed_s)
    ));
    printer.line(format!(
        "back:  {} in {} of virtual time",
        r.rollback.outcome,
        seconds(r.rollback.virtual_s)
    ));
    for stopped in [&r.stopped, &r.rollback.stopped].into_iter().flatten() {
        if let Outcome::Stopped {
            step, why, remedy, ..
        } = stopped
        {
            printer.line(format!("  {step}: {why}"));
            if !remedy.is_empty() {
                printer.line(format!("  next: {remedy}"));
            }
        }
    }
    if let Some(classes) = &r.faults {
        let cases: usize = classes.iter().map(|c| c.cases).sum();
        let failed: usize = classes.iter().map(|c| c.failed.len()).sum();
        printer.line(format!("faults: {cases} rehearsed, {failed} ended wrong"));
    }
    if r.violations.is_empty() {
        printer.line(printer.tint("green", "every promise was kept"));
    } else {
        printer.line(printer.tint("red", &format!("broken promises: {}", r.violations.len())));
        for v in r.violations.iter().take(20) {
            printer.line(format!("  {v}"));
        }
    }
    printer.line(format!(
        "({} journal records, {} calls, {} of real time there and back)",
        r.records,
        r.calls,
        seconds(r.real_ms as f64 / 1000.0)
    ));
    if r.violations.is_empty() && code(r) == exit::DONE {
        printer.line(format!("next: crossfade review{}", folder.arg()));
    }
}
