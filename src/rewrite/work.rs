//! One object on its way through the rules.

use super::context::Context;
use super::trace::{Hunk, Trace};
use crate::object::{ObjectId, at};
use crate::plan::model::{Fate, Finding, Park, Severity};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What became of one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Rewritten {
    /// Fate.
    pub fate: Fate,
    /// Rule ids in numeric order, as in `replay.md 29`.
    pub rules: Vec<String>,
    /// The object as it is created on green; `None` when skipped or refused.
    pub target: Option<Value>,
    /// How it is parked and woken.
    pub park: Option<Park>,
    /// What a person should know.
    pub findings: Vec<Finding>,
}

impl Rewritten {
    /// Something without apiVersion, kind or name: nothing that could be created.
    pub(super) fn nameless(object: &Value) -> Rewritten {
        Rewritten {
            fate: Fate::Refused,
            rules: vec!["replay.md 1".into()],
            target: None,
            park: None,
            findings: vec![Finding {
                id: "API-02".into(),
                severity: Severity::Blocker,
                object: object["kind"].as_str().unwrap_or("?").into(),
                message: "the object has no apiVersion, kind or name".into(),
                remedy: "Remove it from the input.".into(),
                source: "replay.md 1".into(),
                waived: None,
            }],
        }
    }
}

/// The state of one rewrite.
pub(super) struct Work<'a> {
    pub original: &'a Value,
    pub id: ObjectId,
    pub cx: &'a Context,
    /// The object being rewritten; null until [`Work::copy`], unless it is traced.
    pub object: Value,
    rules: BTreeSet<u32>,
    other_rules: BTreeSet<String>,
    pub findings: Vec<Finding>,
    pub park: Option<Park>,
    changed: bool,
    fate: Option<Fate>,
    held: bool,
    /// Only when somebody asks which rule changed what: it costs a copy of the object a mark.
    trace: Option<Trace>,
}

impl<'a> Work<'a> {
    pub fn new(original: &'a Value, id: ObjectId, cx: &'a Context) -> Self {
        Work {
            original,
            id,
            cx,
            object: Value::Null,
            rules: BTreeSet::new(),
            other_rules: BTreeSet::new(),
            findings: vec![],
            park: None,
            changed: false,
            fate: None,
            held: false,
            trace: None,
        }
    }
    /// Keeps which rule changed what, for [`Work::finish_traced`].
    pub fn traced(mut self) -> Self {
        self.trace = Some(Trace::begin(self.original));
        self.object = self.original.clone();
        self
    }
    /// Whether it is kept which rule changed what.
    pub fn is_traced(&self) -> bool {
        self.trace.is_some()
    }
    fn mark(&mut self, rule: String) {
        if let Some(trace) = &mut self.trace {
            trace.mark(rule, &self.object);
        }
    }
    fn mark_rule(&mut self, rule: u32) {
        if self.trace.is_some() {
            self.mark(format!("replay.md {rule}"));
        }
    }
    /// Makes the copy that the rules change, once: most objects of a cluster are Pods and other children, of which none is needed.
    pub fn copy(&mut self) {
        if self.object.is_null() {
            self.object = super::metadata::copy(self.original);
        }
    }
    /// With a copy of all of it, for who uses a single family of rules on something that is no live object (a manifest).
    pub fn whole(mut self) -> Self {
        self.object = self.original.clone();
        self
    }
    pub fn kind(&self) -> &str {
        &self.id.kind
    }
    pub fn namespace(&self) -> &str {
        self.id.namespace.as_deref().unwrap_or("")
    }
    pub fn name(&self) -> &str {
        &self.id.name
    }
    /// The fate is settled: no further rule is needed.
    pub fn decided(&self) -> bool {
        self.fate.is_some()
    }
    /// Of a StatefulSet: whether the claims of all its templates are there, on file systems that both sides mount.
    pub fn claims_are_shared(&self) -> bool {
        let first = |template: &Value| {
            let claim = format!(
                "{}/{}-{}-0",
                self.namespace(),
                text(template, "/metadata/name")?,
                self.name()
            );
            self.cx.volumes.get(self.cx.claims.get(&claim)?).copied()
        };
        items(self.original, "/spec/volumeClaimTemplates").all(|t| first(t) == Some(true))
    }
    /// A rule acted without changing what the object means (server-owned metadata). Said after the change, as all of these:
    /// what changed since the last word of a rule is this one's doing.
    pub fn tidied(&mut self, rule: u32) {
        self.rules.insert(rule);
        self.mark_rule(rule);
    }
    /// A rule changed the object.
    pub fn changed(&mut self, rule: u32) {
        self.rules.insert(rule);
        self.changed = true;
        self.mark_rule(rule);
    }
    /// A change by something that is no rule of replay.md.
    pub fn changed_by(&mut self, rule: &str) {
        self.other_rules.insert(rule.into());
        self.changed = true;
        self.mark(rule.into());
    }
    pub fn skip(&mut self, rule: u32) {
        self.rules.insert(rule);
        self.fate.get_or_insert(Fate::Skipped);
    }
    pub fn skip_by(&mut self, rule: &str) {
        self.other_rules.insert(rule.into());
        self.fate.get_or_insert(Fate::Skipped);
    }
    pub fn refuse(&mut self, rule: u32) {
        self.rules.insert(rule);
        self.fate = Some(Fate::Refused);
    }
    /// Copied, but kept from acting until a later phase.
    pub fn hold(&mut self, rule: u32) {
        self.rules.insert(rule);
        self.held = true;
        self.mark_rule(rule);
    }
    pub fn find(
        &mut self,
        id: &str,
        severity: Severity,
        rule: u32,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.findings.push(Finding {
            id: id.into(),
            severity,
            object: self.id.to_string(),
            message: message.into(),
            remedy: remedy.into(),
            source: format!("replay.md {rule}"),
            waived: None,
        });
    }
    /// Parks by a field that green gets instead of blue's value.
    pub fn park(&mut self, field: &str, parked: Value, wakes: &str, value: Value, rule: u32) {
        set(&mut self.object, field, parked);
        self.rules.insert(rule);
        self.mark_rule(rule);
        self.park = Some(Park {
            field: field.into(),
            wakes: wakes.into(),
            value,
        });
        if wakes == "open" {
            self.held = true;
        }
    }
    /// What became of it, and which rule changed what.
    pub fn finish_traced(mut self) -> (Rewritten, Vec<Hunk>) {
        let trace = self.trace.take();
        let original = self.original;
        let done = self.finish();
        let hunks = match (trace, &done.target) {
            (Some(trace), Some(target)) => trace.hunks(original, target),
            _ => vec![],
        };
        (done, hunks)
    }
    pub fn finish(self) -> Rewritten {
        let fate = match self.fate {
            Some(f) => f,
            None if self.held => Fate::Held,
            None if self.changed => Fate::Changed,
            None => Fate::Copied,
        };
        let gone = matches!(fate, Fate::Skipped | Fate::Refused);
        Rewritten {
            fate,
            rules: self
                .rules
                .iter()
                .map(|r| format!("replay.md {r}"))
                .chain(self.other_rules)
                .collect(),
            target: (!gone).then_some(self.object),
            park: self.park.filter(|_| !gone),
            findings: self.findings,
        }
    }
}

/// Sets a value at a JSON pointer, making missing maps on the way.
pub(super) fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    for part in pointer.trim_start_matches('/').split('/') {
        let key = part.replace("~1", "/").replace("~0", "~");
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[key];
    }
    *at = value;
}

/// Removes a value at a JSON pointer.
pub(super) fn take(object: &mut Value, pointer: &str) -> Option<Value> {
    let (parent, key) = pointer.rsplit_once('/')?;
    let key = key.replace("~1", "/").replace("~0", "~");
    object
        .pointer_mut(parent)?
        .as_object_mut()?
        .shift_remove(&key)
}

/// Text at a JSON pointer.
pub(super) fn text<'v>(object: &'v Value, pointer: &str) -> Option<&'v str> {
    at(object, pointer).and_then(Value::as_str)
}

/// Items of an array at a JSON pointer.
pub(super) fn items<'v>(object: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    at(object, pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Where the pod template of a kind is.
pub(crate) fn template_path(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "Job" => "/spec/template",
        "CronJob" => "/spec/jobTemplate/spec/template",
        "Pod" => "",
        _ => return None,
    })
}
