//! The verdicts of a plan: in memory while it is made, on disk while it is carried out, so that a run weighs the same for 10,000 and 100,000 objects.
//!
//! What was read from disk can have been edited meanwhile: every look at it may fail, and says so.

use super::model::{Fate, Verdict};
use super::objects::{Lines, Pin, by_head, by_object};
use crate::error::{Error, Kind, Result};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// One verdict per object of blue, sorted by object.
#[derive(Clone)]
pub struct Verdicts(Inner);

#[derive(Clone)]
enum Inner {
    Memory(Vec<Verdict>),
    Disk(Arc<Lines>),
    /// Of a plan.json that was read by itself: they are somewhere, but nobody opened the file.
    Pinned(Pin),
}

/// A verdict without its target: what a look over all of them needs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Head {
    /// Object, `kind/namespace/name`.
    pub object: String,
    /// API version on blue in which it was read.
    pub api_version: String,
    /// What becomes of it.
    pub verdict: Fate,
    /// Rule ids, as in `replay.md 29`.
    pub rules: Vec<String>,
    /// Hash of the object as it was read, see [`Verdict::basis`].
    #[serde(default)]
    pub basis: Option<String>,
}

impl From<&Verdict> for Head {
    fn from(v: &Verdict) -> Self {
        Head {
            object: v.object.clone(),
            api_version: v.api_version.clone(),
            verdict: v.verdict,
            rules: v.rules.clone(),
            basis: v.basis.clone(),
        }
    }
}

impl Verdicts {
    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Inner::Memory(all) => all.len(),
            Inner::Disk(lines) => lines.len(),
            Inner::Pinned(pin) => pin.lines,
        }
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The verdict on an object, found by an index.
    pub fn get(&self, object: &str) -> Result<Option<Cow<'_, Verdict>>> {
        match &self.0 {
            Inner::Memory(all) => Ok(position(all, object).map(|n| Cow::Borrowed(&all[n]))),
            Inner::Disk(lines) => Ok(lines.find(object, by_object)?.map(|(_, v)| Cow::Owned(v))),
            Inner::Pinned(pin) => Err(not_opened(pin)),
        }
    }
    /// The beginning of the verdict on an object, and its place among all of them (0 to `len() - 1`).
    pub fn head(&self, object: &str) -> Result<Option<(usize, Head)>> {
        match &self.0 {
            Inner::Memory(all) => Ok(position(all, object).map(|n| (n, Head::from(&all[n])))),
            Inner::Disk(lines) => lines.find(object, by_head),
            Inner::Pinned(pin) => Err(not_opened(pin)),
        }
    }
    /// All of them, one at a time, in the order of their objects.
    pub fn iter(&self) -> Box<dyn Iterator<Item = Result<Cow<'_, Verdict>>> + '_> {
        match &self.0 {
            Inner::Memory(all) => Box::new(all.iter().map(|v| Ok(Cow::Borrowed(v)))),
            Inner::Disk(lines) => Box::new((0..lines.len()).map(|n| lines.read(n).map(Cow::Owned))),
            Inner::Pinned(pin) => Box::new(std::iter::once(Err(not_opened(pin)))),
        }
    }
    /// All of them without their targets, one at a time, in the order of their objects.
    pub fn heads(&self) -> Box<dyn Iterator<Item = Result<Head>> + '_> {
        match &self.0 {
            Inner::Memory(all) => Box::new(all.iter().map(|v| Ok(Head::from(v)))),
            Inner::Disk(lines) => Box::new((0..lines.len()).map(|n| lines.read(n))),
            Inner::Pinned(pin) => Box::new(std::iter::once(Err(not_opened(pin)))),
        }
    }
    /// Names of all objects, sorted.
    pub fn names(&self) -> impl Iterator<Item = Result<String>> + '_ {
        self.heads().map(|head| Ok(head?.object))
    }
    /// Those whose object's name is asked for, in the order of their objects.
    pub fn named(&self, asked: impl Fn(&str) -> bool) -> Result<Vec<Cow<'_, Verdict>>> {
        let mut found = vec![];
        for name in self.names() {
            let name = name?;
            if asked(&name) {
                found.extend(self.get(&name)?);
            }
        }
        Ok(found)
    }
    /// What the planner just made, all at once.
    #[cfg(test)]
    pub fn all(&self) -> &[Verdict] {
        match &self.0 {
            Inner::Memory(all) => all,
            _ => panic!("this plan was read from disk"),
        }
    }
    /// Of verdicts on disk.
    pub(super) fn on_disk(lines: Lines) -> Self {
        Verdicts(Inner::Disk(Arc::new(lines)))
    }
    /// What plan.json says of them, as long as nobody opened the file.
    pub(super) fn pin(&self) -> Option<&Pin> {
        match &self.0 {
            Inner::Pinned(pin) => Some(pin),
            _ => None,
        }
    }
}

fn not_opened(pin: &Pin) -> Error {
    Error::new(
        Kind::BadInput,
        format!("the verdicts of this plan stand in {}", pin.file),
    )
    .remedy("Read the plan with its folder.")
}

fn position(sorted: &[Verdict], object: &str) -> Option<usize> {
    sorted
        .binary_search_by(|v| v.object.as_str().cmp(object))
        .ok()
}

impl Default for Verdicts {
    fn default() -> Self {
        Verdicts(Inner::Memory(vec![]))
    }
}

impl From<Vec<Verdict>> for Verdicts {
    fn from(mut all: Vec<Verdict>) -> Self {
        all.sort_by(|a, b| a.object.cmp(&b.object));
        Verdicts(Inner::Memory(all))
    }
}

impl FromIterator<Verdict> for Verdicts {
    fn from_iter<I: IntoIterator<Item = Verdict>>(all: I) -> Self {
        all.into_iter().collect::<Vec<_>>().into()
    }
}

/// The same verdicts, wherever they are kept. What cannot be read equals nothing.
impl PartialEq for Verdicts {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self
                .iter()
                .zip(other.iter())
                .all(|pair| matches!(pair, (Ok(a), Ok(b)) if a == b))
    }
}

impl fmt::Debug for Verdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Inner::Memory(all) => all.fmt(f),
            _ => write!(f, "{} verdicts on disk", self.len()),
        }
    }
}

/// One list, as `plan -o json` prints it, wherever they are kept.
impl Serialize for Verdicts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::{Error, SerializeSeq};
        let mut list = serializer.serialize_seq(Some(self.len()))?;
        for verdict in self.iter() {
            list.serialize_element(verdict.map_err(S::Error::custom)?.as_ref())?;
        }
        list.end()
    }
}

impl<'de> Deserialize<'de> for Verdicts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Verdicts;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of verdicts, or where they stand")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Verdicts, A::Error> {
                let mut all: Vec<Verdict> = vec![];
                while let Some(verdict) = list.next_element()? {
                    all.push(verdict);
                }
                Ok(all.into())
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Verdicts, A::Error> {
                let pin = Pin::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Verdicts(Inner::Pinned(pin)))
            }
        }
        deserializer.deserialize_any(List)
    }
}
