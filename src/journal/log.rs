//! The journal as the engine uses it: append, and what the records add up to.

use super::error::JournalError;
use super::file::Disk;
use super::record::{Entry, GENESIS, Record};
use super::state::State;
use jiff::Timestamp;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where a rehearsed process dies, relative to an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashPoint {
    /// The record is durable, nothing after it happens: what an intent announces was never begun.
    AfterRecord,
    /// The next record is never written: what this record announces happened, but its result is unknown.
    BeforeNext,
}

enum Store {
    Disk(Disk),
    Memory,
    /// A store whose writes fail from a given number of records on, as a full disk does.
    #[cfg(test)]
    FailsAt(u64),
}

struct Inner {
    store: Store,
    /// Number and hash of the last record.
    seq: u64,
    last: String,
    /// All records, where no disk keeps them: a run of 100,000 objects must not have its journal in memory too.
    entries: Vec<Entry>,
    state: State,
    dead: bool,
    crash: Option<(u64, CrashPoint)>,
}

/// A journal that is open for writing. Nobody else can have the same folder open.
pub struct Journal {
    inner: Mutex<Inner>,
}

/// A journal and what there is to say about how it was found.
pub struct Opened {
    /// The journal.
    pub journal: Journal,
    /// A torn last line was dropped: one sentence for people.
    pub notice: Option<String>,
}

impl Journal {
    /// Opens the journal of a run folder, creating it when there is none; `verb` tells others what this process does.
    pub fn open(dir: &Path, verb: &str) -> Result<Opened, JournalError> {
        let (disk, entries, notice) = Disk::open(dir, verb)?;
        let path = dir.join(super::JOURNAL).display().to_string();
        let state = replay(&entries, &path)?;
        Ok(Opened {
            journal: Journal::with(Store::Disk(disk), entries, state),
            notice,
        })
    }
    /// A journal that lives and dies with the process, for rehearsals.
    pub fn memory() -> Journal {
        Journal::with(Store::Memory, vec![], State::default())
    }
    /// A journal in memory that begins with records of another one: the next process after a rehearsed crash.
    pub fn restart(entries: Vec<Entry>) -> Result<Journal, JournalError> {
        let state = replay(&entries, "memory")?;
        Ok(Journal::with(Store::Memory, entries, state))
    }
    fn with(store: Store, entries: Vec<Entry>, state: State) -> Journal {
        let kept = !matches!(store, Store::Disk(_));
        Journal {
            inner: Mutex::new(Inner {
                store,
                seq: entries.len() as u64,
                last: entries.last().map_or(GENESIS.into(), |e| e.hash.clone()),
                entries: if kept { entries } else { vec![] },
                state,
                dead: false,
                crash: None,
            }),
        }
    }
    #[cfg(test)]
    pub(crate) fn failing_at(records: u64) -> Journal {
        Journal::with(Store::FailsAt(records), vec![], State::default())
    }
    /// Whether its records go to a disk.
    pub fn is_on_disk(&self) -> bool {
        matches!(self.lock().store, Store::Disk(_))
    }
    /// Ends the (rehearsed) process around the `n`-th record of the whole journal, counted from 1.
    pub fn crash_after(&self, n: u64, point: CrashPoint) {
        self.lock().crash = Some((n, point));
    }
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while appending leaves at worst a dead journal behind, which is checked on every use.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Appends a record: returns only when it is durable. After any failure the journal is dead.
    pub fn append(&self, at: Timestamp, record: Record) -> Result<(), JournalError> {
        let mut inner = self.lock();
        if inner.dead {
            return Err(JournalError::Dead);
        }
        let seq = inner.seq + 1;
        if let Some((n, CrashPoint::BeforeNext)) = inner.crash
            && seq > n
        {
            inner.dead = true;
            return Err(JournalError::Dead);
        }
        inner.state.check(&record).map_err(JournalError::Illegal)?;
        let entry = Entry::chain(seq, &inner.last, at, record);
        let written = match &mut inner.store {
            Store::Disk(disk) => disk.write(&entry.line()),
            Store::Memory => Ok(()),
            #[cfg(test)]
            Store::FailsAt(n) if seq > *n => Err(JournalError::Io {
                path: "full".into(),
                why: "No space left on device".into(),
            }),
            #[cfg(test)]
            Store::FailsAt(_) => Ok(()),
        };
        if let Err(e) = written {
            inner.dead = true;
            return Err(e);
        }
        inner.state.apply(at, &entry.record);
        inner.seq = seq;
        inner.last.clone_from(&entry.hash);
        if !matches!(inner.store, Store::Disk(_)) {
            inner.entries.push(entry);
        }
        if let Some((n, CrashPoint::AfterRecord)) = inner.crash
            && seq >= n
        {
            inner.dead = true;
            return Err(JournalError::Dead);
        }
        Ok(())
    }
    /// Looks at what the records add up to.
    pub fn with_state<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        look(&self.lock().state)
    }
    /// What the records add up to.
    pub fn state(&self) -> State {
        self.lock().state.clone()
    }
    /// All entries; those on a disk are read from there again.
    pub fn entries(&self) -> Vec<Entry> {
        let inner = self.lock();
        match &inner.store {
            Store::Disk(disk) => disk.entries().unwrap_or_default(),
            _ => inner.entries.clone(),
        }
    }
    /// Number of records.
    pub fn len(&self) -> u64 {
        self.lock().seq
    }
    /// Whether there is no record yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn replay(entries: &[Entry], path: &str) -> Result<State, JournalError> {
    State::replay(entries.iter().map(|e| (e.at, &e.record))).map_err(|(n, why)| {
        JournalError::Broken {
            record: n as u64 + 1,
            offset: 0,
            why,
            path: path.into(),
        }
    })
}
