//! The wave written: one stream of requests from the first object to the last. The next group is announced in the journal while the one
//! before is still under way, so nobody waits for a disk; what was created is recorded along with it.

use super::compare::differences;
use super::items::{Items, after, id_of, kind_of_name};
use super::mark;
use super::owners::Owners;
use super::ready;
use super::record::{self, Before, Record};
use super::retry::{Shared, going};
use super::secrets::Secrets;
use crate::object::{self, ObjectId, annotation};
use crate::step::util::{at, refused};
use crate::step::{Cx, StepError, StepResult};
use crate::world::Class;
use crate::world::kube::{ApplyOptions, CreateOptions, apply_over};
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Objects between two records: a twentieth of the wave within these bounds. A record costs a disk one write and a process that starts
/// again a look at this many objects.
const GROUP: (usize, usize) = (50, 250);
/// Objects whose changed fields are told.
const TOLD: usize = 100;

/// One object, written.
struct Made {
    uid: String,
    /// Fields of ours that green did not take.
    dropped: Vec<String>,
    /// Fields that green's admission changed.
    changed: Vec<String>,
}

struct Writer<'a> {
    items: &'a Items<'a>,
    cx: &'a Cx,
    shared: &'a Shared,
    secrets: Secrets<'a>,
    owners: Owners,
}

/// What happened so far.
#[derive(Default)]
struct Progress {
    /// uids that no record has yet.
    unrecorded: BTreeMap<String, String>,
    created: usize,
    /// Fields that green did not take: those that no record has yet, and all.
    dropped: BTreeMap<String, Vec<String>>,
    lost: BTreeMap<String, Vec<String>>,
    changed: BTreeMap<String, Vec<String>>,
    failed: Vec<(usize, StepError)>,
}

/// Creates what is not there yet; `after` of the step.
pub async fn write(
    items: &Items<'_>,
    cx: &Cx,
    before: &Before,
    shared: &Shared,
) -> StepResult<Value> {
    let recorded = record::read(cx)?;
    let lost = recorded.dropped;
    let recorded = recorded.created;
    let adopted: HashSet<&str> = before.adopted.iter().map(String::as_str).collect();
    let done = |name: &str| {
        adopted.contains(name) || before.ours.contains_key(name) || recorded.contains_key(name)
    };
    let todo: Vec<usize> = items
        .order()
        .iter()
        .copied()
        .filter(|n| !done(items.name(*n)))
        .collect();
    let there_already = recorded.len() + before.ours.len();
    drop(recorded);
    let writer = Writer {
        items,
        cx,
        shared,
        secrets: Secrets::new(cx, todo.iter().map(|n| items.name(*n))),
        owners: Owners::default(),
    };
    let mut progress = writer.run(&todo).await?;
    if let Some(error) = first_failure(progress.failed, items) {
        return Err(error);
    }
    // Also those of an earlier process: an error of the plan does not go away by running again.
    progress.lost.extend(lost);
    if let Some((name, fields)) = progress.lost.iter().next() {
        let others = match progress.lost.len() {
            1 => String::new(),
            n => format!(", and {} more objects lost fields", n - 1),
        };
        return Err(refused(
            name,
            format!(
                "green does not know {} and dropped it{others}",
                fields.join(", ")
            ),
            "roll back to provision, change the object on blue or list it under workloads.skip, and plan again (replay.md 20)",
        ));
    }
    let mut after = json!({
        "created": there_already + progress.created,
        "adopted": before.adopted.len(),
        "pace": shared.learned(),
    });
    if !progress.changed.is_empty() {
        after["changed_by_green"] = json!(progress.changed);
    }
    Ok(after)
}

/// The first in the order of the wave; how many others failed with it is part of what it says.
fn first_failure(mut failed: Vec<(usize, StepError)>, items: &Items<'_>) -> Option<StepError> {
    failed.sort_by_key(|(n, _)| *n);
    let others = failed.len().saturating_sub(1);
    let second = failed.get(1).map(|(n, _)| items.name(*n).to_string());
    let mut first = failed.into_iter().next()?.1;
    if let Some(second) = second {
        let told = match others {
            1 => format!("; {second} failed too"),
            n => format!("; {second} and {} more failed too", n - 1),
        };
        match &mut first {
            StepError::World(e) => e.message.push_str(&told),
            StepError::Refused { why, .. } => why.push_str(&told),
            _ => {}
        }
    }
    Some(first)
}

impl Writer<'_> {
    async fn run(&self, todo: &[usize]) -> StepResult<Progress> {
        let group = (todo.len() / 20).clamp(GROUP.0, GROUP.1);
        let mut p = Progress::default();
        // Numbers of `todo`: sent, and announced durably. Between the two lies at most what is announced and not begun.
        let (mut next, mut announced) = (0, 0);
        let mut flying: FuturesUnordered<BoxFuture<'_, (usize, StepResult<Made>)>> =
            FuturesUnordered::new();
        let mut busy: HashMap<&str, usize> = HashMap::new();
        let mut owners: BTreeSet<&str> = self
            .items
            .wave
            .owners
            .values()
            .flatten()
            .map(String::as_str)
            .collect();
        if !owners.is_empty() {
            let here: HashSet<&str> = todo.iter().map(|n| self.items.name(*n)).collect();
            owners.retain(|o| here.contains(o));
        }
        // The record that is being written, and how many objects it announces.
        let mut journal: Option<(BoxFuture<'_, StepResult<()>>, usize)> = None;
        loop {
            let stopping = !p.failed.is_empty();
            if journal.is_none() {
                let coming = match !stopping && announced - next < group {
                    true => group.min(todo.len() - announced),
                    false => 0,
                };
                let last = flying.is_empty() && (stopping || next == todo.len());
                if coming > 0 || (last && !p.unrecorded.is_empty()) {
                    let record = Record {
                        creating: todo[announced..announced + coming]
                            .iter()
                            .map(|n| self.items.name(*n).to_string())
                            .collect(),
                        created: std::mem::take(&mut p.unrecorded),
                        dropped: std::mem::take(&mut p.dropped),
                    };
                    journal = Some((Box::pin(record.write(self.cx)), coming));
                }
            }
            while !stopping && next < announced && flying.len() < self.shared.limit() {
                let n = todo[next];
                let name = self.items.name(n);
                let kind = kind_of_name(name);
                let waits = after(kind)
                    .iter()
                    .any(|k| busy.get(k).is_some_and(|count| *count > 0))
                    || self
                        .items
                        .wave
                        .owners
                        .get(name)
                        .is_some_and(|of| of.iter().any(|o| owners.contains(o.as_str())));
                if waits {
                    break;
                }
                *busy.entry(kind).or_default() += 1;
                next += 1;
                flying.push(Box::pin(async move { (n, self.one(n).await) }));
            }
            if flying.len() < self.shared.limit() {
                self.shared.idle();
            }
            if flying.is_empty() && journal.is_none() {
                return Ok(p);
            }
            tokio::select! {
                biased;
                written = async { match journal.as_mut() { Some((j, _)) => j.await, None => std::future::pending().await } } => {
                    written?;
                    announced += journal.take().map_or(0, |(_, coming)| coming);
                }
                Some((n, made)) = flying.next(), if !flying.is_empty() => {
                    let name = self.items.name(n);
                    if let Some(count) = busy.get_mut(kind_of_name(name)) {
                        *count -= 1;
                    }
                    owners.remove(name);
                    p.take(n, name, made);
                }
            }
        }
    }

    /// One object, from the plan to green.
    async fn one(&self, n: usize) -> StepResult<Made> {
        let name = self.items.name(n);
        let planned = self.items.planned(n)?;
        let copied = !planned.blue_version.is_empty();
        let source_uid = planned.source_uid.clone();
        let mut object = match copied && planned.target["kind"] == "Secret" {
            true => self.secrets.fill(name, &planned).await?,
            false => planned.target,
        };
        self.owners.remap(self.cx, name, &mut object).await?;
        mark::put(&mut object, &self.cx.run, source_uid.as_deref());
        let id = id_of(name, &object)?;
        if !ready::backends(&object).is_empty() {
            self.shared
                .patiently(name, || ready::alive(self.cx, name, &object))
                .await?;
        }
        let there = self
            .shared
            .patiently(name, || self.create(name, &id, &object))
            .await?;
        let mut made = Made {
            uid: object::uid(&there).unwrap_or_default().into(),
            dropped: vec![],
            changed: vec![],
        };
        for d in differences(&object, &there) {
            match d.dropped {
                true => made.dropped.push(d.path),
                false => made.changed.push(d.path),
            }
        }
        Ok(made)
    }

    /// POST, or a look at what is there already: after a lost answer that may be ours.
    async fn create(&self, name: &str, id: &ObjectId, object: &Value) -> StepResult<Value> {
        let green = self.cx.world.green.as_ref();
        let options = CreateOptions {
            dry_run: false,
            // A server before 1.25 does not know the word; there the answer is compared.
            strict: true,
        };
        match green.create_heard(object, options).await {
            Ok(answer) => return Ok(answer.object),
            Err(e) if e.class == Class::AlreadyExists => {}
            Err(e) => return Err(e.into()),
        }
        // Gone between the two requests: the next try creates it.
        let Some(there) = green.get(id).await? else {
            return Err(going(name, "an earlier one").into());
        };
        if !at(&there, "/metadata/deletionTimestamp").is_null() {
            return Err(going(name, "an earlier one").into());
        }
        if !mark::ours(&there, &self.cx.run) {
            return Err(StepError::Changed {
                object: name.into(),
                expected: "nothing on green".into(),
                found: "an object that somebody else made".into(),
            });
        }
        if annotation(&there, mark::CONTENT) == annotation(object, mark::CONTENT) {
            return Ok(there);
        }
        let options = ApplyOptions {
            strict: true,
            ..ApplyOptions::default()
        };
        Ok(apply_over(green, &there, object, options).await?.object)
    }
}

impl Progress {
    fn take(&mut self, n: usize, name: &str, made: StepResult<Made>) {
        match made {
            Ok(made) => {
                self.created += 1;
                self.unrecorded.insert(name.into(), made.uid);
                if !made.dropped.is_empty() {
                    self.lost.insert(name.into(), made.dropped.clone());
                    self.dropped.insert(name.into(), made.dropped);
                }
                if !made.changed.is_empty() && self.changed.len() < TOLD {
                    self.changed.insert(name.into(), made.changed);
                }
            }
            Err(e) => self.failed.push((n, e)),
        }
    }
}
