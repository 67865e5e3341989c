//! `status`: where the run is. Reads files only, so it works while another process migrates, on any machine that sees the folder.

use super::args::{Global, StatusArgs};
use super::exit;
use super::folder::PlanFolder;
use super::printer::{Printer, range, seconds};
use super::progress::Hint;
use super::replay::LastLook;
use super::review::{promise, short};
use crate::engine::{UndoPreview, steps_of, undo_preview};
use crate::error::Result;
use crate::journal::{Entry, Holder, Mode, State, Status, Stuck};
use crate::plan::model::{Phase, Plan};
use jiff::Timestamp;
use serde::Serialize;

/// What the verb answers with `-o json`.
#[derive(Debug, Serialize)]
struct Report {
    /// Run id; absent before the first `migrate`.
    run: Option<String>,
    /// Digest of the plan.
    plan: String,
    /// Phase of `step`.
    phase: Option<Phase>,
    /// Step that runs, failed, or comes next.
    step: Option<String>,
    /// `new`, `running`, `stopped`, `stuck`, `done`, `rolling_back`, `rolled_back`, `finalized`.
    state: &'static str,
    /// What it waits for: a condition, a person, or a command.
    waiting_for: Option<String>,
    /// What `rollback` would undo now, in order.
    undo: Vec<UndoPreview>,
    /// Why the last process stopped.
    stopped: Option<String>,
    /// Undo that needs a person.
    stuck: Option<StuckStep>,
    /// Who works on it now.
    holder: Option<Holder>,
    /// Time of the last record.
    last_record: Option<Timestamp>,
    /// Number of records.
    records: usize,
    /// What the last look at blue found that green does not have; absent when nobody looked yet.
    drift: Option<LastLook>,
    /// All steps.
    steps: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct StuckStep {
    step: String,
    #[serde(flatten)]
    stuck: Stuck,
}

#[derive(Debug, Serialize)]
struct Line {
    step: String,
    phase: Phase,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    expect_s: [u32; 2],
}

/// Runs the verb.
pub fn run(args: &StatusArgs, global: &Global, printer: &Printer) -> Result<u8> {
    let folder = PlanFolder::resolve(&args.folder, global)?;
    let plan = folder.load_plan()?;
    // Who holds it first: a run that ends in between is then read to its end.
    let holder = Holder::of(&folder.run());
    let (entries, state) = folder.read_journal()?;
    let hint = holder
        .as_ref()
        .and_then(|h| Hint::read(&folder.run(), h.pid));
    let report = look(&plan, &state, &entries, holder, hint.as_ref(), &folder);
    if printer.json() {
        let value = serde_json::to_value(&report)
            .map_err(|e| crate::error::Error::new(crate::error::Kind::Bug, e.to_string()))?;
        printer.document(&value);
    } else {
        show(&report, printer);
    }
    Ok(exit::DONE)
}

fn look(
    plan: &Plan,
    state: &State,
    entries: &[Entry],
    holder: Option<Holder>,
    hint: Option<&Hint>,
    folder: &PlanFolder,
) -> Report {
    let arg = folder.arg();
    let steps: Vec<Line> = steps_of(plan, state)
        .iter()
        .map(|s| {
            let of = state.steps.get(&s.id);
            Line {
                step: s.id.clone(),
                phase: s.phase,
                status: state.status(&s.id),
                since: of.map(|o| o.since),
                waiting_for: hint
                    .and_then(|h| h.running.get(&s.id))
                    .and_then(|r| r.waiting_for.clone()),
                failed: of.and_then(|o| o.failed.clone()),
                expect_s: s.expect_s,
            }
        })
        .collect();
    let running = holder
        .as_ref()
        .is_some_and(|h| ["migrate", "replay", "rollback", "finalize"].contains(&h.verb.as_str()));
    let stuck = state.stuck().map(|(step, stuck)| StuckStep {
        step: step.into(),
        stuck: stuck.clone(),
    });
    let word = match state.mode {
        _ if state.run.is_none() => "new",
        _ if !state.finalized.is_empty() => "finalized",
        _ if stuck.is_some() && !running => "stuck",
        Mode::RollingBack(_) if running => "rolling_back",
        Mode::RolledBack(_) if !running => "rolled_back",
        _ if running => "running",
        _ if state.done => "done",
        _ => "stopped",
    };
    // What a person asks first: the step that waits, failed, or is in the middle; else the next one.
    let middle = |l: &&Line| {
        matches!(
            l.status,
            Status::Intent | Status::Applied | Status::UndoIntent
        )
    };
    let current = steps
        .iter()
        .find(|l| l.failed.is_some())
        .or_else(|| {
            steps
                .iter()
                .filter(middle)
                .find(|l| l.waiting_for.is_some())
        })
        .or_else(|| steps.iter().find(middle))
        .or_else(|| match state.mode {
            Mode::Forward if !state.done => steps.iter().find(|l| l.status != Status::Done),
            _ => None,
        });
    let phase = current.map(|l| l.phase).or_else(|| {
        steps
            .iter()
            .rev()
            .find(|l| l.status == Status::Done)
            .map(|l| l.phase)
    });
    let waiting_for = match word {
        "new" => Some(format!("crossfade migrate{arg}")),
        "stopped" => Some(match state.mode {
            Mode::RollingBack(_) => format!("crossfade rollback{arg}"),
            _ => format!("crossfade migrate{arg} (or rollback)"),
        }),
        "stuck" => stuck
            .as_ref()
            .map(|s| format!("a person: {}", s.stuck.object)),
        "done" => Some(format!("crossfade finalize{arg} (or rollback)")),
        _ => current.and_then(|l| l.waiting_for.clone()),
    };
    Report {
        run: state.run.as_ref().map(|r| r.run.clone()),
        plan: plan.digest.clone(),
        phase,
        step: current.map(|l| l.step.clone()),
        state: word,
        waiting_for,
        undo: if state.finalized.is_empty() {
            undo_preview(plan, state, None)
        } else {
            vec![]
        },
        stopped: state.stopped.clone(),
        stuck,
        holder,
        last_record: state.last,
        records: entries.len(),
        drift: LastLook::read(folder),
        steps,
    }
}

fn show(r: &Report, printer: &Printer) {
    let name = r.run.as_deref().unwrap_or("no run yet");
    printer.line(printer.bold(&format!(
        "{name}: {} (plan {})",
        r.state.replace('_', " "),
        short(&r.plan)
    )));
    if let Some(holder) = &r.holder {
        printer.line(format!("  held by {holder}"));
    }
    if let (Some(why), None) = (&r.stopped, &r.holder) {
        printer.line(format!("  stopped: {why}"));
    }
    for phase in Phase::ALL {
        let lines: Vec<_> = r.steps.iter().filter(|l| l.phase == phase).collect();
        if lines.is_empty() {
            continue;
        }
        let done = lines.iter().filter(|l| l.status == Status::Done).count();
        printer.line(format!("  {:<10} {done}/{}", phase.name(), lines.len()));
        for l in lines {
            let word = match l.status {
                Status::Fresh | Status::Done => continue,
                Status::Intent => "applying",
                Status::Applied => "settling",
                Status::UndoIntent => "undoing",
                Status::Undone => "undone",
                Status::Skipped => "left as it is",
            };
            let since = l.since.map_or(String::new(), |s| {
                let ago = Timestamp::now().as_second() - s.as_second();
                format!(" for {}", seconds(ago as f64))
            });
            let mut text = format!("    {} {word}{since}", l.step);
            if !matches!(l.status, Status::Undone | Status::Skipped) {
                text.push_str(&format!(" (expected {})", range(l.expect_s)));
            }
            if let Some(why) = &l.waiting_for {
                text.push_str(&format!(", waits for {why}"));
            }
            printer.line(text);
        }
        for l in r.steps.iter().filter(|l| l.phase == phase) {
            if let Some(why) = &l.failed {
                printer.line(printer.tint("red", &format!("    {} failed: {why}", l.step)));
            }
        }
    }
    if let Some(s) = &r.stuck {
        printer.line(printer.tint("red", &format!("  stuck: {} {}", s.step, s.stuck.object)));
        printer.line(format!("    expected {}", s.stuck.expected));
        printer.line(format!("    found    {}", s.stuck.found));
        for way in &s.stuck.ways {
            printer.line(format!("    next: {way}"));
        }
    }
    if let Some(what) = &r.waiting_for {
        printer.line(format!("  waits for {what}"));
    }
    if let Some(look) = r.drift.as_ref().filter(|l| !l.line.is_empty()) {
        let ago = Timestamp::now().as_second() - look.at.as_second();
        printer.line(format!(
            "  blue since the plan: {} (looked {} ago): crossfade replay",
            look.line,
            seconds(ago as f64)
        ));
    }
    let weak: Vec<_> = r
        .undo
        .iter()
        .filter(|u| u.promise != crate::plan::model::Promise::Exact)
        .collect();
    printer.line(format!(
        "  undo now: {} steps, {} of them exact",
        r.undo.len(),
        r.undo.len() - weak.len()
    ));
    for u in weak {
        printer.line(format!("    {}: {}", u.step, promise(&u.promise)));
    }
}
