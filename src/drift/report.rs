//! What a look at both sides found, object by object.

use super::compare::Outcome;
use super::{Op, Path};
use crate::object::digest;
use crate::plan::model::Verdict;
use serde::Serialize;
use serde_json::json;

/// What is to be said about one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Blue changed it: these fields are brought.
    Bring,
    /// New on blue since the plan: it is created.
    New,
    /// Gone from blue since the plan. Deleted on green only when the run made it, nobody touched it since, and it is asked for (`--prune`).
    Gone,
    /// Changed on green: left as it is.
    Kept,
    /// Both changed the same field, differently: left as it is; a person decides.
    Conflict,
    /// Blue changed a field that no server lets change (replay.md 40, 68): left; the object must be made again.
    Recreate,
    /// It cannot be judged with the plan's context (a role, a name, a node group that the plan does not have): left; a new plan can.
    Replan,
}

impl Change {
    /// Word for people.
    pub fn word(self) -> &'static str {
        match self {
            Change::Bring => "bring",
            Change::New => "new",
            Change::Gone => "gone",
            Change::Kept => "on green",
            Change::Conflict => "conflict",
            Change::Recreate => "again",
            Change::Replan => "new plan",
        }
    }
}

/// One object that is not the same everywhere.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// Object, as spelled everywhere.
    pub object: String,
    /// The gravest thing to be said about it.
    pub change: Change,
    /// Its fields.
    #[serde(flatten)]
    pub fields: Outcome,
    /// What to know beside, one sentence; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Whether `--prune` deletes it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub prunable: bool,
    /// Whether the run made it: of what was on green before, nothing is written.
    #[serde(skip)]
    pub made: bool,
    /// uid on green.
    #[serde(skip)]
    pub uid: String,
    /// resourceVersion on green when it was looked at.
    #[serde(skip)]
    pub version: String,
    /// The verdict with the target that it has now.
    #[serde(skip)]
    pub verdict: Option<Verdict>,
}

impl Entry {
    /// An entry about an object as a whole.
    pub fn whole(object: &str, change: Change, note: impl Into<String>) -> Entry {
        Entry {
            object: object.into(),
            change,
            fields: Outcome::default(),
            note: note.into(),
            prunable: false,
            made: false,
            uid: String::new(),
            version: String::new(),
            verdict: None,
        }
    }
    /// What would be written to the object on green.
    pub fn ops(&self) -> Vec<Op> {
        match self.change {
            Change::Bring | Change::Conflict if self.made => self.fields.ops(),
            _ => vec![],
        }
    }
}

/// What a look found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Objects read on blue.
    pub blue: usize,
    /// Objects compared on green.
    pub green: usize,
    /// What differs, sorted by object.
    pub entries: Vec<Entry>,
    /// What could not be read: nothing is said about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_checked: Vec<String>,
}

impl Report {
    /// Entries of one kind.
    pub fn of(&self, change: Change) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |e| e.change == change)
    }
    /// Entries of which something would be written, with or without deleting.
    pub fn to_write(&self, prune: bool) -> Vec<&Entry> {
        self.entries
            .iter()
            .filter(|e| !e.ops().is_empty() || e.change == Change::New || prune && e.prunable)
            .collect()
    }
    /// Whether a person has to decide something.
    pub fn needs_a_person(&self) -> bool {
        // What could not be read is not "nothing".
        !self.not_checked.is_empty()
            || self.entries.iter().any(|e| {
                matches!(
                    e.change,
                    Change::Conflict | Change::Recreate | Change::Replan
                )
            })
    }
    /// 0 nothing to do, 2 changes, 3 a person has to decide.
    pub fn exit_code(&self) -> u8 {
        if self.needs_a_person() {
            3
        } else if self.entries.iter().any(|e| e.change != Change::Kept) {
            2
        } else {
            0
        }
    }
    /// One line: what a run says in passing. Empty when there is nothing.
    pub fn line(&self) -> String {
        let count = |c: Change| self.of(c).count();
        let parts: Vec<String> = [
            (count(Change::New), "new on blue"),
            (count(Change::Bring), "changed on blue"),
            (count(Change::Gone), "gone from blue"),
            (count(Change::Conflict), "changed on both sides"),
            (count(Change::Recreate), "to be made again"),
            (count(Change::Replan), "for which a new plan is needed"),
            (self.not_checked.len(), "not checked"),
        ]
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{n} {what}"))
        .collect();
        parts.join(", ")
    }
    /// Digest of what would be written: what was looked at can be told from what is there a minute later.
    pub fn digest(&self, prune: bool) -> String {
        let all: Vec<_> = self
            .to_write(prune)
            .into_iter()
            .map(|e| {
                let target = e.verdict.as_ref().and_then(|v| v.target.as_ref());
                json!({"object": e.object, "change": e.change, "ops": e.ops(), "new": (e.change == Change::New).then_some(target)})
            })
            .collect();
        digest(&json!(all)).chars().take(12).collect()
    }
    /// Every field that is shown, with its object.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.entries.iter().flat_map(|e| {
            let f = &e.fields;
            f.bring
                .iter()
                .chain(&f.kept)
                .chain(&f.conflicts)
                .chain(&f.recreate)
                .map(|x| (e.object.as_str(), &x.path))
        })
    }
}
