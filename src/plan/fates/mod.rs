//! What becomes of each field of the kops documents (kops.md 2, 3): one row a field, none passed over in silence.
//!
//! `cluster`, `components`, `network` and `group` hold the table, `row` finds the row of a leaf, `suggest` says what a misspelt
//! field may have meant. Rows of one rule give at most one finding for each document.

mod changes;
mod cluster;
mod components;
mod group;
mod network;
mod row;
mod suggest;
#[cfg(test)]
mod tests;

pub(super) use changes::changes;
pub use row::Doc;

use super::model::{Finding, Severity};
use crate::snapshot::kops::{Part, leaves, name_of, parts, push_index, push_key};
use crate::snapshot::model::Snapshot;
use row::{Hit, Row, Table};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Stands where a value is not repeated: user data, hooks, credentials (kops.md 8.4).
pub const HIDDEN: &str = "(not shown)";

/// Rule of a field that no row names.
pub const UNKNOWN: &str = "KOPS-unknown-field";

/// Rule of a map or list that is there but holds nothing.
const EMPTY: &str = "KOPS-empty";

/// What becomes of one leaf.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct FieldFate {
    /// `cluster` or `instancegroup/NAME`.
    pub document: String,
    /// Path in the document as kops spells it in v1alpha2, as in `spec.kubelet.maxPods`.
    pub path: String,
    /// Value on blue; `(not shown)` where it may be code or a credential.
    #[serde(default)]
    pub value: Value,
    /// `file:line:column`, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What becomes of it.
    pub fate: Fate,
    /// Id of the row, as in `KOPS-kubelet-max-pods`.
    pub rule: String,
    /// One sentence for people.
    pub sentence: String,
}

/// Fate of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Green gets the same.
    Mapped,
    /// Green gets something else in its place.
    Replaced,
    /// A person must decide.
    Decision,
    /// It has no meaning on EKS.
    NoMeaning,
    /// kops itself does not know it, or this table does not.
    Unknown,
}

impl Fate {
    /// As people say it.
    pub fn name(self) -> &'static str {
        match self {
            Fate::Mapped => "mapped",
            Fate::Replaced => "replaced",
            Fate::Decision => "needs a decision",
            Fate::NoMeaning => "no meaning on EKS",
            Fate::Unknown => "unknown",
        }
    }
}

/// What the table says of a field that blue does not set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Known {
    /// Pattern of the row.
    pub pattern: String,
    /// What would become of it.
    pub fate: Fate,
    /// Id of the row.
    pub rule: String,
    /// The row's sentence.
    pub sentence: String,
}

/// The whole table.
fn all_rows() -> impl Iterator<Item = (Doc, &'static Row)> {
    let cluster = [cluster::ROWS, components::ROWS, network::ROWS];
    cluster
        .into_iter()
        .flatten()
        .map(|r| (Doc::Cluster, r))
        .chain(group::ROWS.iter().map(|r| (Doc::Group, r)))
}

/// The rows at a path or below it, for a field that blue may not set. Indexes and keys may be left out: `spec.subnets.cidr`.
pub fn known(doc: Doc, path: &str) -> Vec<Known> {
    let mut out: Vec<Known> = Table::get()
        .entries()
        .filter(|(d, _)| *d == doc)
        .filter(|(_, e)| {
            let bare = e.pattern.replace("[]", "");
            let asked = bare_path(path);
            bare == asked
                || bare.starts_with(&format!("{asked}."))
                || matches!(Table::get().entry(doc, path), Ok(hit) if hit.pattern == e.pattern)
        })
        .map(|(_, e)| Known {
            pattern: e.pattern.clone(),
            fate: e.row.outcome.fate,
            rule: e.row.rule.into(),
            sentence: e.row.outcome.sentence.into(),
        })
        .collect();
    out.sort_by(|a, b| a.pattern.cmp(&b.pattern));
    out
}

/// The nearest known spelling of a field.
pub fn suggestion(doc: Doc, path: &str) -> Option<String> {
    suggest::near(doc, path)
}

/// A path without indexes.
fn bare_path(path: &str) -> String {
    let Some(parts) = parts(path) else {
        return path.into();
    };
    let mut out = String::new();
    for part in parts {
        if let Part::Key(k) = part {
            push_key(&mut out, &k);
        }
    }
    out
}

/// Fates of all leaves, and what a person must know of them.
pub(super) struct Read {
    pub fields: Vec<FieldFate>,
    pub findings: Vec<Finding>,
}

/// Reads the snapshot's kops documents by the table.
pub(super) fn read(snapshot: &Snapshot) -> Read {
    let mut out = Read {
        fields: vec![],
        findings: vec![],
    };
    if let Some(c) = &snapshot.kops.cluster {
        document(snapshot, Doc::Cluster, "cluster", c, &mut out);
        out.findings.extend(gossip(c));
    }
    let mut groups: Vec<&Value> = snapshot.kops.instance_groups.iter().collect();
    groups.sort_by_key(|g| name_of(g));
    for g in groups {
        let name = format!("instancegroup/{}", name_of(g));
        document(snapshot, Doc::Group, &name, g, &mut out);
    }
    out
}

/// Why a whole group becomes no managed node group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Aside {
    No,
    Bastion,
    ControlPlane,
    Karpenter,
}

fn aside(doc: Doc, value: &Value) -> Aside {
    if doc == Doc::Cluster {
        return Aside::No;
    }
    let text = |p: &str| value.pointer(p).and_then(Value::as_str).unwrap_or_default();
    let role = text("/spec/role").to_lowercase();
    match role.as_str() {
        "" | "node" if text("/spec/manager").eq_ignore_ascii_case("karpenter") => Aside::Karpenter,
        "" | "node" => Aside::No,
        "bastion" => Aside::Bastion,
        "master" | "controlplane" | "control-plane" | "apiserver" => Aside::ControlPlane,
        // Not guessed: KOPS-ig-role blocks.
        _ => Aside::No,
    }
}

/// One finding for each family: the severity that is worst, what is said, and of which fields.
struct Family {
    severity: Severity,
    remedy: &'static str,
    sentences: Vec<&'static str>,
    fields: Vec<String>,
}

/// A value as it may be repeated: no password of a URL, and nothing whose own name says that it is one (labels are free text, and people put tokens there).
fn without_passwords(path: &str, leaf: &Value) -> Value {
    let last = path.rsplit('.').next().unwrap_or(path).to_lowercase();
    let telling = ["password", "passwd", "secret", "token", "credential"]
        .iter()
        .any(|w| last.contains(w));
    match leaf.as_str() {
        // `httpTokens` and the like are settings, not tokens.
        Some(text) if telling && !matches!(text, "optional" | "required" | "true" | "false") => {
            HIDDEN.into()
        }
        Some(text) => {
            let mut out = String::new();
            let mut rest = text;
            // `https://user:password@host` and `user:password@host`.
            while let Some(at) = rest.find('@') {
                let (before, after) = (&rest[..at], &rest[at + 1..]);
                let start = before
                    .rfind(|c: char| c == '/' || c.is_whitespace() || c == ',' || c == '"')
                    .map_or(0, |n| n + 1);
                let (head, user) = before.split_at(start);
                out.push_str(head);
                out.push_str(if user.contains(':') { "***" } else { user });
                out.push('@');
                rest = after;
            }
            out.push_str(rest);
            Value::from(out)
        }
        None => leaf.clone(),
    }
}

fn document(snapshot: &Snapshot, doc: Doc, name: &str, value: &Value, out: &mut Read) {
    let table = Table::get();
    let aside = aside(doc, value);
    let mut families: BTreeMap<&'static str, Family> = BTreeMap::new();
    let mut unknown: BTreeMap<String, Option<String>> = BTreeMap::new();
    for (path, leaf) in leaves(value) {
        if path == "apiVersion" || path == "kind" {
            continue;
        }
        let place = snapshot.kops.places.get(&format!("{name}/{path}")).cloned();
        let empty = leaf.is_null()
            || leaf.as_object().is_some_and(|m| m.is_empty())
            || leaf.as_array().is_some_and(|a| a.is_empty());
        let mut field = FieldFate {
            document: name.into(),
            value: without_passwords(&path, leaf),
            place,
            fate: Fate::Unknown,
            rule: UNKNOWN.into(),
            sentence: String::new(),
            path,
        };
        match table.find(doc, &field.path) {
            // `null` is how kops prints what is not set, but for fields that are a choice by being there.
            Hit::Row(row) if !leaf.is_null() => {
                let outcome = row.of(leaf);
                field.fate = outcome.fate;
                field.rule = row.rule.into();
                field.sentence = outcome.sentence.into();
                if row.secret {
                    field.value = HIDDEN.into();
                }
                if let Some((fate, sentence)) = set_aside(aside, &field) {
                    field.fate = fate;
                    field.sentence = sentence.into();
                    if aside != Aside::Karpenter {
                        field.rule = "KOPS-ig-role".into();
                    }
                }
                if let Some((severity, remedy)) = outcome.notice
                    && matches!(aside, Aside::No | Aside::Karpenter)
                {
                    let family = families.entry(row.rule).or_insert(Family {
                        severity,
                        remedy,
                        sentences: vec![],
                        fields: vec![],
                    });
                    if severity < family.severity {
                        (family.severity, family.remedy) = (severity, remedy);
                    }
                    if !family.sentences.contains(&outcome.sentence) {
                        family.sentences.push(outcome.sentence);
                    }
                    let item = item_of(&field.path);
                    if !family.fields.contains(&item) {
                        family.fields.push(item);
                    }
                }
            }
            Hit::Row(_) | Hit::Above if empty => {
                field.fate = Fate::NoMeaning;
                field.rule = EMPTY.into();
                field.sentence = "empty: as if it were not there".into();
            }
            _ => {
                field.value = HIDDEN.into();
                let root = unknown_root(doc, &field.path);
                let hint = suggest::near(doc, &root);
                field.sentence = not_known(hint.as_deref());
                let at = unknown.entry(root).or_default();
                if at.is_none() {
                    *at = field.place.clone();
                }
            }
        }
        out.fields.push(field);
    }
    let at = |path: &str| match doc {
        Doc::Cluster => format!("kops/{path}"),
        Doc::Group => format!("{name} {path}"),
    };
    for (rule, f) in families {
        // One field, or several of one section: the section is the object.
        let object = at(&common(&f.fields));
        let mut message = f.sentences.join("; ");
        if f.fields.len() > 1 {
            message = format!("{message} ({})", some(&f.fields));
        }
        out.findings.push(Finding {
            id: rule.into(),
            severity: f.severity,
            object,
            message,
            remedy: f.remedy.into(),
            source: match doc {
                Doc::Cluster => "kops.md 2".into(),
                Doc::Group => "kops.md 3".into(),
            },
            waived: None,
        });
    }
    for (root, place) in unknown {
        let hint = suggest::near(doc, &root);
        let place = place.map(|p| format!(" (at {p})")).unwrap_or_default();
        out.findings.push(Finding {
            id: UNKNOWN.into(),
            severity: Severity::Warning,
            object: at(&root),
            message: format!("{}{place}", not_known(hint.as_deref())),
            remedy: match hint {
                Some(h) => format!(
                    "If {h} was meant, blue never had it: decide whether green should. Else drop the field."
                ),
                None => "Find out who wrote it and what it was to do; decide what it means for green.".into(),
            },
            source: "kops.md 1.2".into(),
            waived: None,
        });
    }
}

fn not_known(hint: Option<&str>) -> String {
    let meant = hint
        .map(|h| format!("; did you mean {h}?"))
        .unwrap_or_default();
    format!(
        "not a field of kops 1.11 to 1.37 that crossfade knows: kops ignores such a field silently{meant}"
    )
}

/// Fields of a group that becomes no managed node group.
fn set_aside(aside: Aside, field: &FieldFate) -> Option<(Fate, &'static str)> {
    if field.path.starts_with("metadata.") || field.path == "spec.manager" {
        return None;
    }
    match aside {
        Aside::No => None,
        Aside::Bastion => Some((
            Fate::NoMeaning,
            "a bastion becomes no node group: use SSM, or keep the instance",
        )),
        Aside::ControlPlane => Some((
            Fate::NoMeaning,
            "EKS runs the control plane: this group becomes nothing",
        )),
        Aside::Karpenter if matches!(field.fate, Fate::Mapped | Fate::Replaced) => Some((
            Fate::Decision,
            "the group is Karpenter's: it goes into the NodePool or EC2NodeClass that a person writes for green",
        )),
        Aside::Karpenter => None,
    }
}

/// A path up to its first list item: `spec.hooks[0].name` is about `spec.hooks[0]`; of a list below an odd key, about the key.
fn item_of(path: &str) -> String {
    let mut out = String::new();
    for part in parts(path).unwrap_or_default() {
        match part {
            Part::Key(k) => push_key(&mut out, &k),
            Part::Index(_) if out.ends_with(']') => break,
            Part::Index(i) => {
                push_index(&mut out, i);
                break;
            }
        }
    }
    out
}

/// The longest path of keys that all begin with; without indexes.
fn common(fields: &[String]) -> String {
    let mut all = fields.iter().map(|f| {
        parts(f)
            .unwrap_or_default()
            .into_iter()
            .map_while(|p| match p {
                Part::Key(k) => Some(k),
                Part::Index(_) => None,
            })
            .collect::<Vec<_>>()
    });
    let mut prefix = all.next().unwrap_or_default();
    for other in all {
        let same = prefix
            .iter()
            .zip(&other)
            .take_while(|(a, b)| a == b)
            .count();
        prefix.truncate(same);
    }
    let mut out = String::new();
    for key in prefix {
        push_key(&mut out, &key);
    }
    out
}

/// Up to eight of them, without `spec.`.
fn some(fields: &[String]) -> String {
    let mut words: Vec<&str> = fields
        .iter()
        .take(8)
        .map(|f| f.strip_prefix("spec.").unwrap_or(f))
        .collect();
    let more = format!("{} more", fields.len().saturating_sub(8));
    if fields.len() > 8 {
        words.push(&more);
    }
    words.join(", ")
}

/// The first part of a path at which the table ends.
fn unknown_root(doc: Doc, path: &str) -> String {
    let mut out = String::new();
    for part in parts(path).unwrap_or_default() {
        match part {
            Part::Key(k) => push_key(&mut out, &k),
            Part::Index(i) => push_index(&mut out, i),
        }
        if out != "spec" && matches!(Table::get().find(doc, &out), Hit::Unknown) {
            break;
        }
    }
    out
}

/// A gossip name, unless it is one of dns none (kops.md 6).
fn gossip(c: &Value) -> Option<Finding> {
    let none = c
        .pointer("/spec/topology/dns/type")
        .and_then(Value::as_str)
        .is_some_and(|t| t.eq_ignore_ascii_case("none"));
    (name_of(c).ends_with(".k8s.local") && !none).then(|| Finding {
        id: "KOPS-gossip".into(),
        severity: Severity::Info,
        object: "kops/metadata.name".into(),
        message: "a gossip name: there is no hosted zone for the cluster".into(),
        remedy: "Nothing to do.".into(),
        source: "kops.md 6".into(),
        waived: None,
    })
}
