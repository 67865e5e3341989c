//! Events on the terminal: what runs, what it waits for, since when, how long by plan. Off a terminal one plain line per event, with
//! `-o json` one JSON line. What a step waits for is also left in `run/progress.json` for `status` (a hint, never the truth).

use super::printer::{Printer, range, seconds};
use crate::engine::{Event, EventKind, Events};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Name of the hint in the run folder.
const HINT: &str = "progress.json";

/// What runs now, for `status` of another process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Hint {
    /// Process that wrote it.
    pub pid: u32,
    /// By step: what it waits for and since when.
    pub running: BTreeMap<String, Running>,
}

/// A running step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Running {
    /// Since when it runs in this process.
    pub since: Timestamp,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// Expected duration, seconds.
    pub expect_s: [u32; 2],
}

impl Hint {
    /// The hint of a run folder, if the process with this id wrote it.
    pub fn read(run: &Path, pid: u32) -> Option<Hint> {
        let bytes = std::fs::read(run.join(HINT)).ok()?;
        let hint: Hint = serde_json::from_slice(&bytes).ok()?;
        (hint.pid == pid).then_some(hint)
    }
}

struct Shared {
    printer: Printer,
    hint: Hint,
    file: Option<PathBuf>,
    now: Timestamp,
    heard: std::time::Instant,
    /// Lines of the live region that are on the screen.
    drawn: usize,
    done: usize,
    steps: usize,
    live: bool,
    over: bool,
    /// By step, the wait that was last said, without its numbers.
    waits: BTreeMap<String, String>,
}

/// Shows events until it is dropped.
pub struct Progress {
    shared: Arc<Mutex<Shared>>,
    ticker: Option<std::thread::JoinHandle<()>>,
}

impl Progress {
    /// Begins; `run` is where the hint goes.
    pub fn start(printer: &Printer, run: Option<&Path>) -> Self {
        let live = printer.terminal && !printer.json();
        let shared = Arc::new(Mutex::new(Shared {
            printer: *printer,
            hint: Hint {
                pid: std::process::id(),
                ..Hint::default()
            },
            file: run.map(|r| r.join(HINT)),
            now: Timestamp::now(),
            heard: std::time::Instant::now(),
            drawn: 0,
            done: 0,
            steps: 0,
            live,
            over: false,
            waits: BTreeMap::new(),
        }));
        let ticker = live.then(|| {
            let shared = shared.clone();
            std::thread::spawn(move || {
                loop {
                    std::thread::park_timeout(Duration::from_secs(1));
                    let mut s = lock(&shared);
                    if s.over {
                        return;
                    }
                    s.redraw(&[]);
                }
            })
        });
        Progress { shared, ticker }
    }
    /// The sink for an engine.
    pub fn events(&self) -> Events {
        let shared = self.shared.clone();
        Arc::new(move |event| lock(&shared).on(event))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        {
            let mut s = lock(&self.shared);
            s.over = true;
            s.hint.running.clear();
            s.redraw(&[]);
            if let Some(file) = &s.file {
                let _ = std::fs::remove_file(file);
            }
        }
        if let Some(ticker) = self.ticker.take() {
            ticker.thread().unpark();
            let _ = ticker.join();
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> std::sync::MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Whether a line says more than the one before: a wait of which only a number moved is said once off a terminal.
    fn is_news(&mut self, kind: &EventKind, line: &str) -> bool {
        let EventKind::Waiting { step, .. } = kind else {
            return true;
        };
        let words: String = line.chars().filter(|c| !c.is_ascii_digit()).collect();
        self.waits.insert(step.clone(), words.clone()) != Some(words)
    }

    fn on(&mut self, event: &Event) {
        self.now = event.at;
        self.heard = std::time::Instant::now();
        self.remember(event);
        if self.printer.json() {
            return self.printer.line(json!(event).to_string());
        }
        let line = self
            .line(&event.kind)
            .filter(|line| self.is_news(&event.kind, line));
        if self.live {
            // The region below shows what runs and waits; only what is settled becomes a line for good.
            let passing = matches!(
                event.kind,
                EventKind::StepStarted { .. }
                    | EventKind::UndoStarted { .. }
                    | EventKind::Waiting { .. }
            );
            let lines: Vec<String> = line.into_iter().filter(|_| !passing).collect();
            self.redraw(&lines);
        } else if let Some(line) = line {
            self.printer.line(format!("{:.0} {line}", event.at));
        }
    }

    fn remember(&mut self, event: &Event) {
        let at = event.at;
        let running = &mut self.hint.running;
        match &event.kind {
            EventKind::Started { steps, done, .. } => {
                self.steps = *steps;
                self.done = *done;
            }
            EventKind::RollbackStarted { steps, .. } => {
                self.steps = *steps;
                self.done = 0;
            }
            EventKind::StepStarted { step, expect_s, .. } => {
                running.insert(
                    step.clone(),
                    Running {
                        since: at,
                        waiting_for: None,
                        expect_s: *expect_s,
                    },
                );
            }
            EventKind::UndoStarted { step, .. } => {
                running.insert(
                    step.clone(),
                    Running {
                        since: at,
                        waiting_for: None,
                        expect_s: [0, 0],
                    },
                );
            }
            EventKind::Waiting { step, why, .. } => {
                if let Some(r) = running.get_mut(step) {
                    r.waiting_for = Some(why.clone());
                }
            }
            EventKind::Retrying { step, error, .. } => {
                if let Some(r) = running.get_mut(step) {
                    r.waiting_for = Some(format!("a retry after: {error}"));
                }
            }
            EventKind::StepDone { step, .. } | EventKind::Undone { step, .. } => {
                running.remove(step);
                self.done += 1;
            }
            EventKind::StepFailed { step, .. } | EventKind::Stuck { step, .. } => {
                running.remove(step);
            }
            _ => return,
        }
        if let Some(file) = &self.file {
            // A hint: when it cannot be written, `status` shows less.
            let text = json!(self.hint).to_string();
            let beside = file.with_extension("tmp");
            let _ = std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, file));
        }
    }

    fn line(&self, kind: &EventKind) -> Option<String> {
        let p = &self.printer;
        let count = format!("[{}/{}]", self.done, self.steps);
        Some(match kind {
            EventKind::Started {
                run,
                resumed,
                steps,
                done,
            } => format!(
                "run {run} {}: {done} of {steps} steps are done",
                if *resumed { "goes on" } else { "begins" }
            ),
            EventKind::StepStarted {
                step,
                summary,
                expect_s,
                ..
            } => format!("start   {step}: {summary} (expected {})", range(*expect_s)),
            EventKind::Waiting { step, why, .. } => format!("wait    {step}: {why}"),
            EventKind::Retrying {
                step,
                error,
                attempt,
                retry_in_s,
            } => format!(
                "retry   {step}: {error} (try {attempt} failed, next in {})",
                seconds(*retry_in_s)
            ),
            EventKind::StepDone { step, took_s } => format!(
                "{} {step} ({}) {count}",
                p.tint("green", "done   "),
                seconds(*took_s)
            ),
            EventKind::StepFailed { step, why, .. } => {
                format!("{} {step}: {why}", p.tint("red", "failed "))
            }
            EventKind::Stopping { why, running } => {
                format!("stopping: {why} ({running} still running)")
            }
            EventKind::RunDone { run } => format!("run {run}: every step is done"),
            EventKind::RollbackStarted { run, to, steps } => format!(
                "rollback of run {run} to {}: {steps} steps to undo",
                to.map_or("the start", crate::plan::model::Phase::name)
            ),
            EventKind::UndoStarted { step, .. } => format!("undo    {step}"),
            EventKind::Undone { step, took_s } => format!(
                "{} {step} ({}) {count}",
                p.tint("green", "undone "),
                seconds(*took_s)
            ),
            EventKind::Stuck { step, stuck } => format!(
                "{} {step}: {} (expected {}, found {})",
                p.tint("red", "stuck  "),
                stuck.object,
                stuck.expected,
                stuck.found
            ),
            EventKind::FinalizeStarted { what } => format!("final   {what}"),
            EventKind::FinalizeDone { what, took_s } => format!(
                "{} {what} ({})",
                p.tint("green", "done   "),
                seconds(*took_s)
            ),
            EventKind::RollbackDone { to } => format!(
                "rolled back to {}",
                to.map_or("the start", crate::plan::model::Phase::name)
            ),
        })
    }

    /// Removes the region, prints lines for good, draws the region again.
    fn redraw(&mut self, lines: &[String]) {
        if !self.live {
            return;
        }
        let mut out = String::new();
        if self.drawn > 0 {
            out.push_str(&format!("\x1b[{}A\x1b[J", self.drawn));
        }
        for line in lines {
            out.push_str(line);
            out.push('\n');
        }
        let now = self.now + self.heard.elapsed();
        self.drawn = 0;
        for (step, r) in &self.hint.running {
            let since = (now.as_millisecond() - r.since.as_millisecond()) as f64 / 1000.0;
            let mut line = format!("  {step}  {}", seconds(since.round()));
            if r.expect_s[1] > 0 {
                line.push_str(&format!(" of {}", range(r.expect_s)));
            }
            if let Some(why) = &r.waiting_for {
                line.push_str(&format!("  waits for {why}"));
            }
            // One row each, so that going up again is right: longer lines would wrap.
            let line: String = line.chars().take(self.width()).collect();
            out.push_str(&self.printer.tint("dim", &line));
            out.push('\n');
            self.drawn += 1;
        }
        let mut stdout = std::io::stdout();
        let _ = stdout
            .write_all(out.as_bytes())
            .and_then(|()| stdout.flush());
    }

    fn width(&self) -> usize {
        std::env::var("COLUMNS")
            .ok()
            .and_then(|c| c.parse().ok())
            .unwrap_or(79)
    }
}
