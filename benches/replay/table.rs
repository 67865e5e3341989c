//! The table that the benchmark prints.

use super::{Ours, replay::writer::Pace};
use std::time::Duration;

/// One contender.
pub struct Line {
    name: String,
    objects: usize,
    took: Duration,
    rate: f64,
    /// By the journal's own times.
    waves: Option<Duration>,
    p50: Duration,
    p99: Duration,
    throttled: usize,
    server: Duration,
    own: Duration,
}

impl Line {
    pub fn bare(name: &str, pace: &Pace, server: Duration, own: Duration) -> Line {
        let line = Line {
            name: name.into(),
            objects: pace.objects,
            took: pace.took,
            rate: pace.rate(),
            waves: None,
            p50: pace.p50,
            p99: pace.p99,
            throttled: pace.throttled,
            server,
            own,
        };
        line.told()
    }

    pub fn ours(name: &str, ours: &Ours) -> Line {
        let line = Line {
            waves: Some(ours.waves),
            ..Line::bare(name, &ours.pace, ours.server, ours.own)
        };
        line.told()
    }

    /// While it runs somebody may be watching.
    fn told(self) -> Line {
        println!("{}", self.text());
        self
    }

    fn text(&self) -> String {
        let ms = |d: Duration| match d.as_millis() {
            0 => "-".to_string(),
            n => n.to_string(),
        };
        let waves = self
            .waves
            .map_or("-".into(), |w| format!("{:.1}", w.as_secs_f64()));
        format!(
            "{:<48} {:>8} {:>8.1} {:>8} {:>9.1} {:>7} {:>7} {:>5} {:>8.1} {:>8.1}",
            self.name,
            self.objects,
            self.took.as_secs_f64(),
            waves,
            self.rate,
            ms(self.p50),
            ms(self.p99),
            self.throttled,
            self.server.as_secs_f64(),
            self.own.as_secs_f64()
        )
    }
}

/// All of them, then what they are to each other.
#[derive(Default)]
pub struct Table {
    lines: Vec<Line>,
    below: Vec<String>,
}

impl Table {
    pub fn add(&mut self, line: Line) {
        self.lines.push(line);
    }

    pub fn ratio(&mut self, what: &str, value: f64, aim: &str) {
        self.below.push(format!("{what:<64} {value:>8.3}   {aim}"));
    }

    pub fn number(&mut self, what: &str, value: f64, unit: &str, aim: &str) {
        self.below
            .push(format!("{what:<64} {value:>8.1} {unit} {aim}"));
    }

    pub fn note(&mut self, text: &str) {
        self.below.push(text.into());
    }

    pub fn print(&self) {
        println!(
            "{:<48} {:>8} {:>8} {:>8} {:>9} {:>7} {:>7} {:>5} {:>8} {:>8}",
            "writer",
            "objects",
            "seconds",
            "waves s",
            "per s",
            "p50 ms",
            "p99 ms",
            "429",
            "srv cpu",
            "own cpu"
        );
        for line in &self.lines {
            println!("{}", line.text());
        }
        println!("\n{:<64} {:>8}   aim", "ratio", "");
        for line in &self.below {
            println!("{line}");
        }
    }
}
