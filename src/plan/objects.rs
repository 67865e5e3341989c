//! `objects.ndjson`: the verdicts of a plan on disk, one canonical JSON line each, sorted by object, pinned by sha256 in plan.json.
//!
//! Loading reads the file once from end to end and keeps 36 bytes a line; a verdict is read when it is asked for. The file stays open: a plan that
//! is written anew beside a run does not change what the run reads.

use super::model::Verdict;
use super::verdicts::Head;
use crate::error::{Error, Kind, Result};
use crate::object::{Hashing, write_canonical};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::borrow::{Borrow, Cow};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Longest line, bytes: an object is at most 1.5 MiB in etcd, and JSON's escapes make at most six bytes of one.
const LONGEST: u64 = 16 << 20;

/// What plan.json says about the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pin {
    /// Name of the file, in the folder of plan.json.
    pub file: String,
    /// Lines, one a verdict.
    pub lines: usize,
    /// sha256 over the whole file.
    pub sha256: String,
}

/// Where the verdicts of a plan stand: `objects.ndjson` beside `plan.json`, `NAME.objects.ndjson` beside `NAME.json`.
pub fn beside(plan: &Path) -> PathBuf {
    let name = match plan.file_stem().map(|s| s.to_string_lossy()) {
        Some(stem) if stem != "plan" => format!("{stem}.objects.ndjson"),
        _ => "objects.ndjson".to_string(),
    };
    plan.with_file_name(name)
}

/// Writes verdicts, which come sorted; answers the pin of a file of that name.
pub(super) fn write<V: Borrow<Verdict>>(
    file: &Path,
    verdicts: impl Iterator<Item = Result<V>>,
    out: &mut dyn Write,
) -> std::io::Result<Pin> {
    let mut both = Both(Hashing::default(), out);
    let mut lines = 0;
    for verdict in verdicts {
        let verdict = verdict.map_err(std::io::Error::other)?;
        write_canonical(&serde_json::to_value(verdict.borrow())?, None, &mut both)?;
        both.write_all(b"\n")?;
        lines += 1;
    }
    let name = file.file_name().unwrap_or_default();
    Ok(Pin {
        file: name.to_string_lossy().into_owned(),
        lines,
        sha256: both.0.hex(),
    })
}

/// Hashes what it passes on.
struct Both<'o>(Hashing, &'o mut dyn Write);

impl Write for Both<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = self.1.write(bytes)?;
        self.0.write_all(&bytes[..n])?;
        Ok(n)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.1.flush()
    }
}

/// The open file and where in it each verdict stands.
pub(super) struct Lines {
    file: File,
    place: String,
    /// In the file's order.
    entries: Vec<Entry>,
    /// Indices of `entries`, by hash of the object's name.
    by_name: Vec<u32>,
    /// Keyed anew in each process, so nobody can write a line that fits another's hash.
    keys: RandomState,
}

struct Entry {
    offset: u64,
    /// Hash of the object's name.
    name: u64,
    /// Hash of the line.
    content: u64,
    /// Bytes without the line's end, at most [`LONGEST`].
    len: u32,
}

/// All that has to be read of a line to find it again.
#[derive(Deserialize)]
struct Named<'l> {
    #[serde(borrow)]
    object: Cow<'l, str>,
}

impl Lines {
    /// Reads the whole file that a plan names, checks pin, order and syntax, and shows each line (without its end) to `each`.
    pub fn open(plan: &Path, pin: &Pin, each: &mut dyn FnMut(&[u8])) -> Result<Lines> {
        if Path::new(&pin.file).file_name() != Some(pin.file.as_ref()) {
            return Err(stale(format!(
                "the plan was edited by hand: its verdicts can only stand beside it, and it says {:?}",
                pin.file
            ))
            .at(plan.display().to_string()));
        }
        let path = plan.with_file_name(&pin.file);
        let place = path.display().to_string();
        let file = File::open(&path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => stale(format!(
                "half of the plan is missing: {} holds the verdicts on {} objects",
                pin.file, pin.lines
            ))
            .at(&place),
            _ => unreadable(&place, &e),
        })?;
        let mut read = Reading {
            keys: RandomState::new(),
            entries: Vec::with_capacity(pin.lines.min(1 << 20)),
            last: String::new(),
            fault: None,
        };
        let mut hash = Hashing::default();
        let mut reader = BufReader::with_capacity(1 << 16, &file);
        let mut line = Vec::new();
        let mut offset = 0;
        loop {
            line.clear();
            let n = (&mut reader)
                .take(LONGEST)
                .read_until(b'\n', &mut line)
                .map_err(|e| unreadable(&place, &e))?;
            if n == 0 {
                break;
            }
            // A hash takes all that is written to it.
            let _ = hash.write_all(&line);
            let whole = line.strip_suffix(b"\n");
            let content = whole.unwrap_or(&line);
            read.line(offset, content, whole.is_some());
            each(content);
            offset += n as u64;
        }
        let found = hash.hex();
        if found != pin.sha256 {
            return Err(read.not_pinned(plan, pin, &found).at(place));
        }
        if let Some((n, why)) = read.fault {
            return Err(
                stale(format!("the plan was not written by crossfade: {why}"))
                    .at(format!("{place}:{n}")),
            );
        }
        if read.entries.len() != pin.lines {
            return Err(stale(format!(
                "the plan was edited by hand: it says {} lines, {} has {}",
                pin.lines,
                pin.file,
                read.entries.len()
            ))
            .at(place));
        }
        read.entries.shrink_to_fit();
        let entries = read.entries;
        let mut by_name: Vec<u32> = (0..entries.len() as u32).collect();
        by_name.sort_unstable_by_key(|n| entries[*n as usize].name);
        Ok(Lines {
            file,
            place,
            entries,
            by_name,
            keys: read.keys,
        })
    }

    /// How many verdicts there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The `n`th line, 0 to `len() - 1`, as a verdict or as its head.
    pub fn read<T: DeserializeOwned>(&self, n: usize) -> Result<T> {
        let at = || format!("{}:{}", self.place, n + 1);
        let entry = self.entries.get(n).ok_or_else(|| {
            Error::new(Kind::Bug, "there is no such line of the plan's verdicts").at(at())
        })?;
        let mut line = vec![0; entry.len as usize];
        self.file
            .read_exact_at(&mut line, entry.offset)
            .map_err(|e| match e.kind() {
                std::io::ErrorKind::UnexpectedEof => {
                    stale("the plan was cut off while it was in use").at(at())
                }
                _ => unreadable(&at(), &e),
            })?;
        if self.keys.hash_one(line.as_slice()) != entry.content {
            return Err(stale("the plan was edited by hand while it was in use").at(at()));
        }
        serde_json::from_slice(&line)
            .map_err(|e| stale(format!("this is no verdict: {e}")).at(at()))
    }

    /// The line of an object, and what it says.
    pub fn find<T: DeserializeOwned>(
        &self,
        object: &str,
        name_of: impl Fn(&T) -> &str,
    ) -> Result<Option<(usize, T)>> {
        let hash = self.keys.hash_one(object);
        let name = |n: u32| self.entries[n as usize].name;
        let first = self.by_name.partition_point(|n| name(*n) < hash);
        // Two names may have one hash: the line decides.
        for n in self.by_name[first..]
            .iter()
            .take_while(|n| name(**n) == hash)
        {
            let found = self.read(*n as usize)?;
            if name_of(&found) == object {
                return Ok(Some((*n as usize, found)));
            }
        }
        Ok(None)
    }
}

/// What was seen of the file so far.
struct Reading {
    keys: RandomState,
    entries: Vec<Entry>,
    /// Object of the line before.
    last: String,
    /// First line that cannot be, from 1, and why.
    fault: Option<(usize, String)>,
}

impl Reading {
    fn line(&mut self, offset: u64, content: &[u8], ended: bool) {
        let n = self.entries.len() + 1;
        let mut fault = |why: String| {
            self.fault.get_or_insert((n, why));
        };
        if !ended {
            fault(format!("line {n} has no end"));
        }
        let named: Option<Named> = serde_json::from_slice(content)
            .map_err(|e| fault(format!("line {n} is no verdict: {e}")))
            .ok();
        let object = named.map(|n| n.object).unwrap_or_default();
        if n > 1 && *object <= *self.last {
            fault(format!(
                "line {n} ({object}) does not stand in order after {}",
                self.last
            ));
        }
        self.entries.push(Entry {
            offset,
            name: self.keys.hash_one(&*object),
            content: self.keys.hash_one(content),
            len: u32::try_from(content.len()).unwrap_or(u32::MAX),
        });
        self.last.clear();
        self.last.push_str(&object);
    }

    /// The file is not the one that plan.json was written with: why, as far as one can see.
    fn not_pinned(self, plan: &Path, pin: &Pin, found: &str) -> Error {
        if pin_of(&temporary(plan)).is_some_and(|new| new.sha256 == found) {
            return Error::new(
                Kind::StalePlan,
                format!(
                    "the writing of a new plan was cut off between its two files: {} is the new plan's, {} still the old one's",
                    pin.file,
                    plan.file_name().unwrap_or_default().display()
                ),
            )
            .remedy("Run `crossfade plan` again: it writes both.");
        }
        let mut message = format!(
            "{} is not what this plan was written with: edited by hand, cut off, or of another plan (sha256 {}, the plan says {}; {} lines, the plan says {})",
            pin.file,
            short(found),
            short(&pin.sha256),
            self.entries.len(),
            pin.lines
        );
        if let Some((_, why)) = self.fault {
            message.push_str(&format!("; {why}"));
        }
        stale(message)
    }
}

/// The pin of a plan's file, as far as there is one.
fn pin_of(plan: &Path) -> Option<Pin> {
    #[derive(Deserialize)]
    struct Pinned {
        verdicts: Pin,
    }
    let text = std::fs::read_to_string(plan).ok()?;
    serde_json::from_str::<Pinned>(&text)
        .ok()
        .map(|p| p.verdicts)
}

/// Where a file is written before it takes its place.
pub(super) fn temporary(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    path.with_file_name(name)
}

/// The first twelve digits of a digest.
pub(super) fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}

fn stale(message: impl Into<String>) -> Error {
    Error::new(Kind::StalePlan, message).remedy(
        "Put back the file that was written with this plan, or run `crossfade plan` again and review what it gives.",
    )
}

fn unreadable(place: &str, e: &std::io::Error) -> Error {
    Error::new(
        Kind::BadInput,
        format!("the plan's verdicts cannot be read: {e}"),
    )
    .at(place)
    .remedy("Check the file's permissions and the disk.")
}

/// A verdict by the name of its object.
pub(super) fn by_object(v: &Verdict) -> &str {
    &v.object
}

/// A head by the name of its object.
pub(super) fn by_head(h: &Head) -> &str {
    &h.object
}
