//! Whatever a file holds, reading it ends in documents or in an error, and a plan of what could be read is made: no panic.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// xorshift64*: the same cases on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

const VALUES: &[&str] = &[
    "{}",
    "{a: 1}",
    "{a: {b: [c]}}",
    "[]",
    "[1, two]",
    "[[]]",
    "3",
    "-1",
    "0",
    "2.5",
    "99999999999999999999",
    "1e400",
    "null",
    "~",
    "\"\"",
    "' '",
    "true",
    "no",
    "0x10",
    "0644",
    "!!binary aGk=",
    "&a [*a]",
    "\"\\u0000\"",
    "x",
    "10.0.0.0/99",
    "::/0",
    "100.64.0.0/32",
    "0.0.0.0/0",
    "a,b,,",
    "=:NoSchedule",
    "aws://",
    "m5",
    ".large",
    "\u{e9}\u{e9}",
];

/// One change of a text. Line ends stay as they are.
fn mutate(text: &str, r: &mut Random) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let at = r.below(lines.len());
    let with = |line: String| -> String {
        let mut all: Vec<String> = lines.iter().map(|l| l.to_string()).collect();
        all[at] = line;
        all.join("\n")
    };
    match r.below(10) {
        0 => {
            let mut end = r.below(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text[..end].into()
        }
        1 => with(format!("  {}", lines[at])),
        2 => with(lines[at].strip_prefix("  ").unwrap_or(lines[at]).into()),
        3 => {
            let mut all = lines.clone();
            all.remove(at);
            all.join("\n")
        }
        4 => with(format!("{0}\n{0}", lines[at])),
        5 => {
            let mut parts: Vec<&str> = text.split("\n---\n").collect();
            let (a, b) = (r.below(parts.len()), r.below(parts.len()));
            parts.swap(a, b);
            parts.join("\n---\n")
        }
        // Values matter most: they are what a planner trusts.
        _ => {
            let value = VALUES[r.below(VALUES.len())];
            // The next line that has a value, so that no case is lost.
            let Some(i) = (0..lines.len())
                .map(|k| (at + k) % lines.len())
                .find(|i| lines[*i].contains(": ") || lines[*i].trim_start().starts_with("- "))
            else {
                return text.into();
            };
            let mut all: Vec<String> = lines.iter().map(|l| l.to_string()).collect();
            let cut = lines[i]
                .find(": ")
                .map(|p| p + 2)
                .or(lines[i].find("- ").map(|p| p + 2));
            let tail = if lines[i].trim_end().ends_with(',') {
                ","
            } else {
                ""
            };
            all[i] = format!("{}{value}{tail}", &lines[i][..cut.unwrap_or_default()]);
            all.join("\n")
        }
    }
}

/// Files of both corpora, as text.
fn texts() -> Vec<(String, String)> {
    let mut out = vec![];
    for folder in ["kops", "kops-handwritten"] {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/corpus")
            .join(folder);
        for entry in std::fs::read_dir(dir).expect("corpus") {
            let path = entry.expect("entry").path();
            let name = path
                .file_name()
                .expect("name")
                .to_string_lossy()
                .to_string();
            if !name.ends_with(".md") {
                out.push((name, std::fs::read_to_string(&path).expect("text")));
            }
        }
    }
    out.sort();
    out
}

/// Reads a text and plans what was read. Gives whether it was read.
fn drive(dir: &Path, name: &str, text: &str) -> bool {
    let path = dir.join(name);
    std::fs::write(&path, text).expect("written");
    let Ok(found) = from_files(&[path], None, &Key::from_bytes([9; 32])) else {
        return false;
    };
    let spec = crate::spec::defaults_for(&found.snapshot);
    crate::plan::plan(&spec, &found.snapshot);
    true
}

/// All cases of the files whose number has this parity: cases, how many were read, and those that panicked.
fn half(parity: usize) -> (usize, usize, Vec<String>) {
    const EACH: usize = 34;
    let dir = tempfile::tempdir().expect("dir");
    let (mut cases, mut read, mut broken) = (0, 0, vec![]);
    for (i, (name, text)) in texts().iter().enumerate().filter(|(i, _)| i % 2 == parity) {
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (i as u64 + 1));
        for case in 0..EACH {
            let mut changed = mutate(text, &mut random);
            // Every fourth is changed twice: the second change meets what the first let through.
            if case % 4 == 0 {
                changed = mutate(&changed, &mut random);
            }
            cases += 1;
            match catch_unwind(AssertUnwindSafe(|| drive(dir.path(), name, &changed))) {
                Ok(true) => read += 1,
                Ok(false) => {}
                Err(_) => broken.push(format!("{name}, case {case}")),
            }
        }
    }
    (cases, read, broken)
}

#[test]
fn no_mutation_of_a_spec_makes_reading_or_planning_panic() {
    let (a, b) = std::thread::scope(|s| {
        let other = s.spawn(|| half(1));
        (half(0), other.join().expect("cases are caught one by one"))
    });
    let (cases, read) = (a.0 + b.0, a.1 + b.1);
    let broken = [a.2, b.2].concat();
    assert!(
        broken.is_empty(),
        "{} of {cases} panicked: {broken:#?}",
        broken.len()
    );
    // The mutations must reach both ways out, or they prove nothing.
    assert!(
        cases >= 2000 && read > cases / 5 && read < cases,
        "{read} of {cases} were read"
    );
}
