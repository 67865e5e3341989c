//! The plan on disk: plan.json and, beside it, its verdicts; together the canonical JSON whose digest must hold.

use super::model::Plan;
use super::objects::{self, Lines, Pin, short, temporary};
use super::verdicts::Verdicts;
use crate::error::{Error, Kind, Result};
use crate::object::{Hashing, separate, write_canonical};
use serde::Serialize;
use serde_json::Value;
use std::io::Write;
use std::path::Path;

/// sha256 over the canonical JSON of everything but the digest itself; empty, which no plan's digest is, when its verdicts cannot be read from disk any more.
pub fn digest_of(plan: &Plan) -> String {
    let mut hash = Hashing::default();
    match write(plan, Form::Unsigned, None, &mut hash) {
        Ok(()) => hash.hex(),
        Err(_) => String::new(),
    }
}

/// What of a plan is written.
#[derive(Clone, Copy)]
enum Form<'p> {
    /// All but the digest: what is hashed.
    Unsigned,
    /// All but the verdicts, in whose place stands where they are.
    Pinned(&'p Pin),
}

/// Writes the canonical JSON of a plan piece by piece: a plan of 50,000 objects is hundreds of megabytes as one JSON value.
fn write(
    plan: &Plan,
    form: Form<'_>,
    indent: Option<usize>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    // Taken apart field by field: a new field that is not written does not compile.
    let Plan {
        api_version,
        kind,
        digest,
        spec,
        basis,
        target,
        findings,
        verdicts,
        generated,
        fields,
        hazards,
        network,
        cost,
        names,
        steps,
        timeline,
    } = plan;
    let mut w = Fields::new(out, indent);
    w.one("api_version", api_version)?;
    w.one("basis", basis)?;
    w.one("cost", cost)?;
    if let Form::Pinned(_) = form {
        w.one("digest", digest)?;
    }
    w.list("fields", fields.iter().map(Ok))?;
    w.list("findings", findings.iter().map(Ok))?;
    w.list("generated", generated.iter().map(Ok))?;
    w.one("hazards", hazards)?;
    w.one("kind", kind)?;
    w.list("names", names.iter().map(Ok))?;
    w.one("network", network)?;
    w.one("spec", spec)?;
    w.list("steps", steps.iter().map(Ok))?;
    w.one("target", target)?;
    w.one("timeline", timeline)?;
    match form {
        Form::Unsigned => w.list("verdicts", verdicts.iter())?,
        Form::Pinned(pin) => w.one("verdicts", pin)?,
    }
    separate(false, w.indent, w.out)?;
    w.out.write_all(b"}")
}

/// Fields of one object, written in the order of the calls, which is the sorted one.
struct Fields<'o> {
    out: &'o mut dyn Write,
    indent: Option<usize>,
    begun: bool,
}

impl<'o> Fields<'o> {
    fn new(out: &'o mut dyn Write, indent: Option<usize>) -> Self {
        Fields {
            out,
            indent,
            begun: false,
        }
    }
    fn key(&mut self, key: &str) -> std::io::Result<()> {
        if !self.begun {
            self.out.write_all(b"{")?;
        }
        separate(self.begun, self.indent.map(|n| n + 2), self.out)?;
        self.begun = true;
        serde_json::to_writer(&mut *self.out, key)?;
        self.out
            .write_all(if self.indent.is_some() { b": " } else { b":" })
    }
    fn value(&mut self, key: &str, value: &Value) -> std::io::Result<()> {
        self.key(key)?;
        write_canonical(value, self.indent.map(|n| n + 2), self.out)
    }
    fn one<T: Serialize>(&mut self, key: &str, value: &T) -> std::io::Result<()> {
        self.value(key, &serde_json::to_value(value)?)
    }
    fn list<T: Serialize>(
        &mut self,
        key: &str,
        list: impl Iterator<Item = Result<T>>,
    ) -> std::io::Result<()> {
        self.key(key)?;
        let inner = self.indent.map(|n| n + 4);
        self.out.write_all(b"[")?;
        let mut any = false;
        for item in list {
            let item = item.map_err(std::io::Error::other)?;
            separate(any, inner, self.out)?;
            write_canonical(&serde_json::to_value(item)?, inner, self.out)?;
            any = true;
        }
        separate(false, self.indent.filter(|_| any).map(|n| n + 2), self.out)?;
        self.out.write_all(b"]")
    }
}

/// Reads and verifies a plan: plan.json, and beside it the file with its verdicts, which stay on disk.
pub fn load(path: &Path) -> Result<Plan> {
    let place = path.display().to_string();
    let again = "Make it again with `crossfade plan`.";
    let no_plan = |e: serde_json::Error| {
        Error::new(Kind::BadInput, format!("this is no plan: {e}"))
            .at(format!("{place}:{}:{}", e.line(), e.column()))
            .remedy(again)
    };
    let text = std::fs::read_to_string(path).map_err(|e| {
        Error::new(Kind::BadInput, format!("the plan cannot be read: {e}"))
            .at(&place)
            .remedy("Run `crossfade plan` first, or give the folder that holds plan.json.")
    })?;
    let mut plan: Plan = serde_json::from_str(&text).map_err(no_plan)?;
    // The digest covers what the files say, not only what this version understands of them.
    let mut hash = Hashing::default();
    hash_document(&text, &["digest", "verdicts"], &mut hash);
    drop(text);
    let Some(pin) = plan.verdicts.pin().cloned() else {
        return Err(Error::new(
            Kind::StalePlan,
            "this plan is of an older crossfade: its verdicts stand in plan.json itself",
        )
        .at(&place)
        .remedy(again));
    };
    // `verdicts` is the last key, and its lines are canonical already: what stands in two files is one document.
    hash_all(&mut hash, &[b",\"verdicts\":["]);
    let mut between: &[u8] = b"";
    let lines = Lines::open(path, &pin, &mut |line| {
        hash_all(&mut hash, &[between, line]);
        between = b",";
    })?;
    hash_all(&mut hash, &[b"]}"]);
    plan.verdicts = Verdicts::on_disk(lines);
    let actual = hash.hex();
    if actual != plan.digest {
        return Err(Error::new(
            Kind::StalePlan,
            format!(
                "the plan was edited by hand: it says digest {}, its content has {}",
                short(&plan.digest),
                short(&actual)
            ),
        )
        .at(place)
        .remedy("Change migration.yaml instead and run `crossfade plan` again."));
    }
    Ok(plan)
}

/// A hash takes all that is written to it.
fn hash_all(hash: &mut Hashing, pieces: &[&[u8]]) {
    for piece in pieces {
        let _ = hash.write_all(piece);
    }
}

/// Hashes a JSON object that reads as one, but for its closing brace and some members, without the white space between its tokens. Of what [`write`] wrote
/// that is its canonical JSON, without a second copy of it in memory; anybody else's order of keys or spelling of a value is an edit.
fn hash_document(text: &str, but: &[&str], hash: &mut Hashing) {
    let bytes = text.as_bytes();
    // Where the member of the outer object that is being read begins, and whether one was hashed.
    let (mut member, mut any) = (0, false);
    let (mut depth, mut in_string, mut escaped) = (0u32, false, false);
    for (n, b) in bytes.iter().enumerate() {
        if in_string {
            in_string = escaped || *b != b'"';
            escaped = !escaped && *b == b'\\';
            continue;
        }
        match b {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                if depth == 1 {
                    member = n + 1;
                }
            }
            b'}' | b']' | b',' => {
                if depth == 1 {
                    let content = bytes[member..n].trim_ascii();
                    let skipped = but.iter().any(|k| {
                        content
                            .strip_prefix(b"\"")
                            .and_then(|c| c.strip_prefix(k.as_bytes()))
                            .is_some_and(|c| c.starts_with(b"\""))
                    });
                    if !skipped && !content.is_empty() {
                        hash_all(hash, &[if any { b"," } else { b"{" }]);
                        hash_tokens(content, hash);
                        any = true;
                    }
                    member = n + 1;
                }
                if *b != b',' {
                    depth = depth.saturating_sub(1);
                }
            }
            _ => {}
        }
    }
}

/// Hashes JSON without the white space between its tokens.
fn hash_tokens(json: &[u8], hash: &mut Hashing) {
    let (mut begin, mut in_string, mut escaped) = (0, false, false);
    for (n, b) in json.iter().enumerate() {
        if in_string {
            in_string = escaped || *b != b'"';
            escaped = !escaped && *b == b'\\';
        } else if *b == b'"' {
            in_string = true;
        } else if b.is_ascii_whitespace() {
            hash_all(hash, &[&json[begin..n]]);
            begin = n + 1;
        }
    }
    hash_all(hash, &[&json[begin..]]);
}

/// Writes a plan: canonical JSON, pretty for people, and beside it its verdicts, one line each; through temporary files, so that no half plan is ever
/// seen. A crash between the two renames leaves a plan.json whose pin does not hold, beside the new one that was to take its place: [`load`] says so.
pub fn store(path: &Path, plan: &Plan) -> Result<()> {
    let place = path.display().to_string();
    let beside = objects::beside(path);
    let pin = written(&beside, |out| {
        objects::write(&beside, plan.verdicts.iter(), out)
    })
    .map_err(|e| io(&place, &e))?;
    written(path, |out| {
        write(plan, Form::Pinned(&pin), Some(0), out)?;
        out.write_all(b"\n")
    })
    .and_then(|()| placed(&beside))
    .and_then(|()| placed(path))
    .map_err(|e| io(&place, &e))
}

/// Writes what is to become a file, durably, beside it.
fn written<T>(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> std::io::Result<T>,
) -> std::io::Result<T> {
    let f = std::fs::File::create(temporary(path))?;
    let mut out = std::io::BufWriter::new(&f);
    let result = content(&mut out)?;
    out.flush()?;
    drop(out);
    f.sync_all()?;
    Ok(result)
}

/// Gives what was written its name, durably.
fn placed(path: &Path) -> std::io::Result<()> {
    std::fs::rename(temporary(path), path)?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    std::fs::File::open(folder)?.sync_all()
}

fn io(place: &str, e: &std::io::Error) -> Error {
    Error::new(Kind::BadInput, format!("the plan cannot be written: {e}"))
        .at(place)
        .remedy("Check the folder and the space on the disk.")
}
