//! What a row of the table is, and how the row of a leaf is found.

use super::Fate;
use crate::plan::model::Severity;
use crate::snapshot::kops::{Part, parts};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Kind of document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doc {
    /// The Cluster.
    Cluster,
    /// An InstanceGroup.
    Group,
}

/// What becomes of a field, or of one value of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub fate: Fate,
    pub sentence: &'static str,
    /// Severity and remedy of the finding, where a person must know.
    pub notice: Option<(Severity, &'static str)>,
}

/// One row. The pattern is a path with `[]` for any list item, `*` for any map key, `**` for all that is below, and `{a,b}` for
/// fields that stand side by side and share one fate; each field is still named.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub pattern: &'static str,
    /// Family: rows of one family give one finding per document.
    pub rule: &'static str,
    pub outcome: Outcome,
    /// Another outcome for some values.
    pub when: Option<fn(&Value) -> Option<Outcome>>,
    /// Its value may be a credential or code: it is never repeated (kops.md 8.4).
    pub secret: bool,
}

pub(super) const fn outcome(fate: Fate, sentence: &'static str) -> Outcome {
    Outcome {
        fate,
        sentence,
        notice: None,
    }
}

impl Outcome {
    pub const fn says(mut self, severity: Severity, remedy: &'static str) -> Outcome {
        self.notice = Some((severity, remedy));
        self
    }
}

const fn row(pattern: &'static str, rule: &'static str, outcome: Outcome) -> Row {
    Row {
        pattern,
        rule,
        outcome,
        when: None,
        secret: false,
    }
}

/// Green gets the same.
pub(super) const fn mapped(
    pattern: &'static str,
    rule: &'static str,
    sentence: &'static str,
) -> Row {
    row(pattern, rule, outcome(Fate::Mapped, sentence))
}
/// Green gets something else in its place.
pub(super) const fn replaced(
    pattern: &'static str,
    rule: &'static str,
    sentence: &'static str,
) -> Row {
    row(pattern, rule, outcome(Fate::Replaced, sentence))
}
/// A person must decide.
pub(super) const fn decision(
    pattern: &'static str,
    rule: &'static str,
    sentence: &'static str,
) -> Row {
    row(pattern, rule, outcome(Fate::Decision, sentence))
}
/// It has no meaning on EKS.
pub(super) const fn gone(pattern: &'static str, rule: &'static str, sentence: &'static str) -> Row {
    row(pattern, rule, outcome(Fate::NoMeaning, sentence))
}

impl Row {
    /// With a finding.
    pub const fn says(mut self, severity: Severity, remedy: &'static str) -> Row {
        self.outcome.notice = Some((severity, remedy));
        self
    }
    /// With another outcome for some values.
    pub const fn when(mut self, f: fn(&Value) -> Option<Outcome>) -> Row {
        self.when = Some(f);
        self
    }
    /// With a value that is not repeated.
    pub const fn secret(mut self) -> Row {
        self.secret = true;
        self
    }
    /// What becomes of this value.
    pub fn of(&self, value: &Value) -> Outcome {
        self.when.and_then(|f| f(value)).unwrap_or(self.outcome)
    }
}

/// A row's pattern, one alternative, cut into parts.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Spelled without braces.
    pub pattern: String,
    pub parts: Vec<Piece>,
    pub row: &'static Row,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Key(String),
    AnyKey,
    AnyItem,
    /// Everything below, whatever its shape (an embedded Kubernetes type).
    Rest,
}

impl Piece {
    fn takes(&self, part: &Part) -> bool {
        match (self, part) {
            (Piece::Key(k), Part::Key(p)) => k == p,
            (Piece::AnyKey, Part::Key(_)) => true,
            (Piece::AnyItem, Part::Index(_)) | (Piece::Rest, _) => true,
            _ => false,
        }
    }
}

/// All alternatives of `a.{b,c}[]`; braces may follow each other.
pub(super) fn alternatives(pattern: &str) -> Vec<String> {
    let Some((head, rest)) = pattern.split_once('{') else {
        return vec![pattern.into()];
    };
    let Some((inside, tail)) = rest.split_once('}') else {
        return vec![pattern.into()];
    };
    inside
        .split(',')
        .flat_map(|choice| alternatives(&format!("{head}{}{tail}", choice.trim())))
        .collect()
}

fn pieces(pattern: &str) -> Vec<Piece> {
    let mut out = vec![];
    for word in pattern.split('.') {
        let bare = word.trim_end_matches("[]");
        out.push(match bare {
            "**" => Piece::Rest,
            "*" => Piece::AnyKey,
            key => Piece::Key(key.into()),
        });
        for _ in 0..(word.len() - bare.len()) / 2 {
            out.push(Piece::AnyItem);
        }
    }
    out
}

/// The table, by kind of document and first field of the spec.
pub(super) struct Table {
    rows: BTreeMap<(Doc, String), Vec<Entry>>,
}

/// How a path stands to the table.
pub(super) enum Hit {
    /// Its row.
    Row(&'static Row),
    /// It is a map or list that kops knows, and it is empty or null here.
    Above,
    /// Nothing.
    Unknown,
}

impl Table {
    /// All rows.
    pub fn get() -> &'static Table {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(|| {
            let mut rows: BTreeMap<(Doc, String), Vec<Entry>> = BTreeMap::new();
            for (doc, row) in super::all_rows() {
                for pattern in alternatives(row.pattern) {
                    let parts = pieces(&pattern);
                    let key = (doc, section(&parts));
                    rows.entry(key).or_default().push(Entry {
                        pattern,
                        parts,
                        row,
                    });
                }
            }
            Table { rows }
        })
    }
    /// All entries.
    pub fn entries(&self) -> impl Iterator<Item = (Doc, &Entry)> {
        self.rows
            .iter()
            .flat_map(|((doc, _), all)| all.iter().map(|e| (*doc, e)))
    }
    /// Finds a path that is spelled as `snapshot::kops::leaves` spells it.
    pub fn find(&self, doc: Doc, path: &str) -> Hit {
        match self.entry(doc, path) {
            Ok(e) => Hit::Row(e.row),
            Err(true) => Hit::Above,
            Err(false) => Hit::Unknown,
        }
    }
    /// The entry of a path; else whether rows stand below it.
    pub fn entry(&self, doc: Doc, path: &str) -> Result<&Entry, bool> {
        let Some(parts) = parts(path) else {
            return Err(false);
        };
        let section = match parts.get(..2) {
            Some([_, Part::Key(k)]) => k.clone(),
            _ => return Err(path == "spec"),
        };
        let mut above = false;
        for e in self.rows.get(&(doc, section)).into_iter().flatten() {
            let fits = e.parts.iter().zip(&parts).all(|(a, b)| a.takes(b));
            let deep = e.parts.last() == Some(&Piece::Rest) && parts.len() > e.parts.len();
            if fits && (e.parts.len() == parts.len() || deep) {
                return Ok(e);
            }
            above |= fits && e.parts.len() > parts.len();
        }
        Err(above)
    }
}

fn section(parts: &[Piece]) -> String {
    match parts.get(1) {
        Some(Piece::Key(k)) => k.clone(),
        _ => String::new(),
    }
}
