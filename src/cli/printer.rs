//! Everything that reaches the terminal goes through here. A closed pipe is no error.

use super::args::Format;
use crate::error::Error;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};

/// Where output goes and how it looks.
#[derive(Clone, Copy, Debug)]
pub struct Printer {
    /// Format.
    pub format: Format,
    /// Whether stdout is a terminal.
    pub terminal: bool,
    color: bool,
}

impl Printer {
    /// Looks at the terminal and `NO_COLOR`.
    pub fn new(format: Format) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        Printer {
            format,
            terminal,
            color: terminal && !no_color,
        }
    }
    /// Whether output is JSON.
    pub fn json(&self) -> bool {
        self.format == Format::Json
    }
    /// One line (or several) on stdout.
    pub fn line(&self, text: impl AsRef<str>) {
        // Nobody reads any more: `crossfade ... | head` is a good command.
        let _ = writeln!(std::io::stdout(), "{}", tame(text.as_ref()));
    }
    /// One line on stdout when people read it.
    pub fn text(&self, text: impl AsRef<str>) {
        if !self.json() {
            self.line(text);
        }
    }
    /// A remark on stderr.
    pub fn note(&self, text: impl AsRef<str>) {
        let _ = writeln!(std::io::stderr(), "{}", tame(text.as_ref()));
    }
    /// A JSON document on stdout: pretty on a terminal, one line otherwise.
    pub fn document(&self, value: &Value) {
        let pretty = self.terminal.then(|| serde_json::to_string_pretty(value));
        match pretty {
            Some(Ok(text)) => self.line(text),
            _ => self.line(value.to_string()),
        }
    }
    /// Bold on a terminal.
    pub fn bold(&self, text: &str) -> String {
        self.paint("1", text)
    }
    /// A colour by severity or outcome, on a terminal: `red`, `yellow`, `green`, `dim`.
    pub fn tint(&self, how: &str, text: &str) -> String {
        match how {
            "red" => self.paint("31", text),
            "yellow" => self.paint("33", text),
            "green" => self.paint("32", text),
            "dim" => self.paint("2", text),
            _ => text.into(),
        }
    }
    fn paint(&self, code: &str, text: &str) -> String {
        if self.color {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.into()
        }
    }
    /// An error, on stderr.
    pub fn error(&self, error: &Error) {
        if self.json() {
            let value = json!({"error": {"kind": error.kind, "message": error.message, "where": error.at, "remedy": error.remedy}});
            return self.note(value.to_string());
        }
        let mut lines = vec![format!("error: {}", error.message)];
        if !error.at.is_empty() {
            lines.push(format!("  where: {}", error.at));
        }
        if let Some(excerpt) = &error.excerpt {
            lines.extend(excerpt.lines().map(|l| format!("    {l}")));
        }
        if !error.remedy.is_empty() {
            lines.push(format!("  next:  {}", error.remedy));
        }
        self.note(lines.join("\n"));
    }
}

/// Names and messages of other people's objects reach the terminal only as text: control characters and those that turn the direction of
/// writing are shown as escapes. Our own colours pass.
fn tame(text: &str) -> std::borrow::Cow<'_, str> {
    const OURS: [&str; 6] = [
        "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m",
    ];
    let wild = |c: char| {
        c.is_control() && c != '\n' && c != '\t'
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(wild) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(ours) = OURS.iter().find(|o| rest.starts_with(**o)) {
            out.push_str(ours);
            rest = &rest[ours.len()..];
            continue;
        }
        if wild(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
        rest = &rest[c.len_utf8()..];
    }
    out.into()
}

/// Seconds for people: `45 s`, `3 min 20 s`, `1 h 5 min`, `2 d 3 h`.
pub fn seconds(s: f64) -> String {
    let s = s.max(0.0);
    let n = s.round() as u64;
    match n {
        0 if s > 0.0 => format!("{:.0} ms", s * 1000.0),
        0..60 => format!("{n} s"),
        60..3600 => parts(n / 60, "min", n % 60, "s"),
        3600..86400 => parts(n / 3600, "h", n % 3600 / 60, "min"),
        _ => parts(n / 86400, "d", n % 86400 / 3600, "h"),
    }
}

fn parts(a: u64, unit: &str, b: u64, small: &str) -> String {
    if b == 0 {
        format!("{a} {unit}")
    } else {
        format!("{a} {unit} {b} {small}")
    }
}

/// A range of seconds for people.
pub fn range(r: [u32; 2]) -> String {
    if r[0] == r[1] {
        return seconds(f64::from(r[0]));
    }
    format!(
        "{} to {}",
        seconds(f64::from(r[0])),
        seconds(f64::from(r[1]))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_clear_the_screen_or_turn_the_line_round() {
        assert_eq!(tame("node\u{202e}s\x1b[2Jx"), "node\\u{202e}s\\u{1b}[2Jx");
        assert_eq!(
            tame("\x1b[31mblocker\x1b[0m plain"),
            "\x1b[31mblocker\x1b[0m plain"
        );
        assert_eq!(tame("two\nlines"), "two\nlines");
    }

    #[test]
    fn durations_read_as_people_say_them() {
        let said: Vec<_> = [0.0, 0.25, 45.0, 60.0, 200.0, 3900.0, 183600.0]
            .into_iter()
            .map(seconds)
            .collect();
        assert_eq!(
            said,
            [
                "0 s",
                "250 ms",
                "45 s",
                "1 min",
                "3 min 20 s",
                "1 h 5 min",
                "2 d 3 h"
            ]
        );
        assert_eq!(range([60, 60]), "1 min");
        assert_eq!(range([10, 120]), "10 s to 2 min");
    }
}
