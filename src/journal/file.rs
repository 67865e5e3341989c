//! The journal on disk: one folder with the lines, the lock and who holds it.

use super::error::JournalError;
use super::record::{Entry, GENESIS, LineError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Name of the file with the lines.
pub const JOURNAL: &str = "journal.jsonl";
const LOCK: &str = "lock";
const HOLDER: &str = "holder";

/// Who works on a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Process id.
    pub pid: u32,
    /// Host.
    pub host: String,
    /// User.
    pub user: String,
    /// Since when.
    pub since: Timestamp,
    /// What it does, as in `migrate`.
    pub verb: String,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "`{}` by {}@{}, process {}, since {}",
            self.verb, self.user, self.host, self.pid, self.since
        )
    }
}

impl Holder {
    /// This process.
    pub fn me(verb: &str) -> Self {
        let env = |k: &str| std::env::var(k).ok().filter(|v| !v.is_empty());
        let host = fs::read_to_string("/proc/sys/kernel/hostname")
            .ok()
            .map(|h| h.trim().to_string())
            .or_else(|| env("HOSTNAME"))
            .unwrap_or_else(|| "unknown-host".into());
        Holder {
            pid: std::process::id(),
            host,
            user: env("USER")
                .or_else(|| env("LOGNAME"))
                .unwrap_or_else(|| "unknown".into()),
            since: Timestamp::now(),
            verb: verb.into(),
        }
    }
    /// `user@host`.
    pub fn who(&self) -> String {
        format!("{}@{}", self.user, self.host)
    }
    /// Who holds a run folder now; `None` when nobody does.
    pub fn of(dir: &Path) -> Option<Holder> {
        let lock = File::open(dir.join(LOCK)).ok()?;
        match lock.try_lock_shared() {
            Ok(()) => None,
            Err(_) => Some(read_holder(dir)),
        }
    }
}

fn read_holder(dir: &Path) -> Holder {
    fs::read(dir.join(HOLDER))
        .ok()
        .and_then(|b| serde_json::from_slice(&b).ok())
        .unwrap_or_else(|| Holder {
            pid: 0,
            host: "unknown-host".into(),
            user: "unknown".into(),
            since: Timestamp::UNIX_EPOCH,
            verb: "unknown".into(),
        })
}

/// The lines and what is behind the last whole one.
pub(super) struct Lines {
    pub entries: Vec<Entry>,
    /// Bytes of whole records.
    pub whole: u64,
    /// A last line that was not written to its end.
    pub torn: Option<Vec<u8>>,
    /// The last record is whole but its line break is missing.
    pub unended: bool,
}

/// Reads and verifies a journal. Only what can be the trace of a write that never returned is forgiven: a last line that is no JSON.
pub(super) fn parse(bytes: &[u8], path: &Path) -> Result<Lines, JournalError> {
    let mut lines = Lines {
        entries: vec![],
        whole: 0,
        torn: None,
        unended: false,
    };
    let mut prev = GENESIS.to_string();
    let mut offset = 0;
    while offset < bytes.len() {
        let rest = &bytes[offset..];
        let end = rest.iter().position(|b| *b == b'\n');
        let line = &rest[..end.unwrap_or(rest.len())];
        let next = offset + line.len() + usize::from(end.is_some());
        let record = lines.entries.len() as u64 + 1;
        let at = offset as u64;
        let path = path.display().to_string();
        let broken = |why: String| JournalError::Broken {
            record,
            offset: at,
            why,
            path: path.clone(),
        };
        let value: Value = match serde_json::from_slice(line) {
            Ok(v) => v,
            Err(_) if next >= bytes.len() => {
                lines.torn = Some(rest.to_vec());
                return Ok(lines);
            }
            Err(e) => return Err(broken(format!("it is not JSON ({e})"))),
        };
        let entry = Entry::from_value(value).map_err(|e| match e {
            LineError::Damaged(why) => broken(why),
            LineError::Version(why) => JournalError::Version {
                record,
                why,
                path: path.clone(),
            },
        })?;
        if entry.seq != record {
            return Err(broken(format!("it says it is record {}", entry.seq)));
        }
        if entry.prev != prev {
            return Err(broken(
                "it does not follow the record before it (chain broken)".into(),
            ));
        }
        prev.clone_from(&entry.hash);
        lines.entries.push(entry);
        lines.unended = end.is_none();
        offset = next;
        lines.whole = offset as u64;
    }
    Ok(lines)
}

/// Reads a journal without taking the lock; a record that another process is just writing is left out. Empty when there is none.
pub fn read(dir: &Path) -> Result<Vec<Entry>, JournalError> {
    let path = dir.join(JOURNAL);
    match fs::read(&path) {
        Ok(bytes) => Ok(parse(&bytes, &path)?.entries),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(vec![]),
        Err(e) => Err(JournalError::io(&path, &e)),
    }
}

/// An open, locked journal file.
pub(super) struct Disk {
    path: PathBuf,
    dir: PathBuf,
    file: File,
    /// Held until the journal is dropped.
    _lock: File,
}

impl Disk {
    /// Takes the lock, reads what is there, cuts a torn last line off (keeping it beside). Answers a notice about the latter.
    pub fn open(
        dir: &Path,
        verb: &str,
    ) -> Result<(Disk, Vec<Entry>, Option<String>), JournalError> {
        let io = |p: &Path| {
            let p = p.to_path_buf();
            move |e: std::io::Error| JournalError::io(&p, &e)
        };
        fs::create_dir_all(dir).map_err(io(dir))?;
        let lock_path = dir.join(LOCK);
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(io(&lock_path))?;
        // A `status` that looks who holds the lock has it shared for a moment: ask a few times.
        for attempt in 0.. {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if attempt < 10 => {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(JournalError::Held(Box::new(read_holder(dir))));
                }
                Err(TryLockError::Error(e)) => return Err(JournalError::io(&lock_path, &e)),
            }
        }
        let holder = dir.join(HOLDER);
        let me = serde_json::to_vec(&Holder::me(verb)).unwrap_or_default();
        fs::write(&holder, me).map_err(io(&holder))?;

        let path = dir.join(JOURNAL);
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(&path)
            .map_err(io(&path))?;
        // The name of a new file is durable only when its folder is.
        sync_dir(dir)?;
        let mut bytes = vec![];
        file.read_to_end(&mut bytes).map_err(io(&path))?;
        let lines = parse(&bytes, &path)?;
        let mut notice = None;
        if let Some(torn) = &lines.torn {
            let beside = dir.join(format!("{JOURNAL}.{}.torn", lines.entries.len() + 1));
            fs::write(&beside, torn).map_err(io(&beside))?;
            file.set_len(lines.whole).map_err(io(&path))?;
            file.sync_all().map_err(io(&path))?;
            notice = Some(format!(
                "{}: the last line (record {}, {} bytes) was not written to its end and is dropped; its effect never began. Kept as {}",
                path.display(),
                lines.entries.len() + 1,
                torn.len(),
                beside.display()
            ));
        } else if lines.unended {
            file.write_all(b"\n").map_err(io(&path))?;
            file.sync_data().map_err(io(&path))?;
        }
        let disk = Disk {
            path,
            dir: dir.to_path_buf(),
            file,
            _lock: lock,
        };
        Ok((disk, lines.entries, notice))
    }
    /// What is written so far.
    pub fn entries(&self) -> Result<Vec<Entry>, JournalError> {
        read(&self.dir)
    }
    /// Writes one line; returns only when it is durable.
    pub fn write(&mut self, line: &str) -> Result<(), JournalError> {
        let mut bytes = Vec::with_capacity(line.len() + 1);
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        self.file
            .write_all(&bytes)
            .and_then(|()| self.file.sync_data())
            .map_err(|e| JournalError::io(&self.path, &e))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A holder without a lock says nothing, but a tidy folder is easier to read.
        let _ = fs::remove_file(self.dir.join(HOLDER));
    }
}

fn sync_dir(dir: &Path) -> Result<(), JournalError> {
    File::open(dir)
        .and_then(|d| d.sync_all())
        .map_err(|e| JournalError::io(dir, &e))
}
