//! The wave taken back: only what the journal says this run created, by uid, in the reverse order, as many at once as the server takes.

use super::edited;
use super::items::{Items, after, id_of, kind_of_name};
use super::look;
use super::mark;
use super::record::{self, Before, Record};
use super::retry::Shared;
use super::strangers::strangers;
use crate::object::{self, ObjectId};
use crate::step::util::at;
use crate::step::{Cx, Settle, StepError, StepResult};
use crate::world::Class;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// Objects that are named when several need a person.
const TOLD: usize = 5;

/// Names that this run may have made: announced or created. What was never announced was never sent.
fn touched(before: &Before, record: &Record) -> BTreeSet<String> {
    before
        .ours
        .keys()
        .chain(record.created.keys())
        .chain(&record.creating)
        .cloned()
        .collect()
}

/// Takes everything back. An object that somebody changed, or that is somebody's, is left; the others go first, then it is named.
pub async fn undo(items: &Items<'_>, cx: &Cx, before: &Before, shared: &Shared) -> StepResult<()> {
    let record = record::read(cx)?;
    let names = touched(before, &record);
    let uids: HashMap<&str, &str> = before
        .ours
        .iter()
        .chain(&record.created)
        .map(|(name, uid)| (name.as_str(), uid.as_str()))
        .collect();
    let todo: Vec<usize> = items
        .order()
        .iter()
        .rev()
        .copied()
        .filter(|n| names.contains(items.name(*n)))
        .collect();
    let namespaces: BTreeSet<String> = todo
        .iter()
        .filter_map(|n| items.name(*n).strip_prefix("namespace/"))
        .map(String::from)
        .collect();
    let undo = Undo {
        items,
        cx,
        shared,
        uids,
        strangers: strangers(cx, &namespaces).await?,
    };
    undo.run(&todo).await
}

struct Undo<'a> {
    items: &'a Items<'a>,
    cx: &'a Cx,
    shared: &'a Shared,
    uids: HashMap<&'a str, &'a str>,
    strangers: BTreeMap<String, Vec<String>>,
}

impl Undo<'_> {
    async fn run(&self, todo: &[usize]) -> StepResult<()> {
        let mut flying: FuturesUnordered<BoxFuture<'_, (usize, StepResult<()>)>> =
            FuturesUnordered::new();
        let mut busy: HashMap<&str, usize> = HashMap::new();
        let mut next = 0;
        let mut left = vec![];
        let mut failed: Option<StepError> = None;
        loop {
            while failed.is_none() && next < todo.len() && flying.len() < self.shared.limit() {
                let n = todo[next];
                let kind = kind_of_name(self.items.name(n));
                if busy
                    .iter()
                    .any(|(k, count)| *count > 0 && after(k).contains(&kind))
                {
                    break;
                }
                *busy.entry(kind).or_default() += 1;
                next += 1;
                flying.push(Box::pin(async move { (n, self.one(n).await) }));
            }
            if flying.len() < self.shared.limit() {
                self.shared.idle();
            }
            let Some((n, result)) = flying.next().await else {
                break;
            };
            if let Some(count) = busy.get_mut(kind_of_name(self.items.name(n))) {
                *count -= 1;
            }
            match result {
                Ok(()) => {}
                // A person's matter: everything else can go.
                Err(StepError::Changed {
                    object,
                    expected,
                    found,
                }) => left.push((n, object, expected, found)),
                Err(e) => failed = failed.or(Some(e)),
            }
        }
        if let Some(e) = failed {
            return Err(e);
        }
        left.sort();
        let others: Vec<&str> = left.iter().skip(1).map(|l| l.1.as_str()).collect();
        let others = match others.len() {
            0 => String::new(),
            n if n <= TOLD => format!(" (left for the same reason: {})", others.join(", ")),
            n => format!(
                " (left for the same reason: {} and {} more)",
                others[..TOLD].join(", "),
                n - TOLD
            ),
        };
        match left.into_iter().next() {
            None => Ok(()),
            Some((_, object, expected, found)) => Err(StepError::Changed {
                object,
                expected,
                found: format!("{found}{others}"),
            }),
        }
    }

    async fn one(&self, n: usize) -> StepResult<()> {
        let name = self.items.name(n);
        let planned = self.items.planned(n)?;
        let id = id_of(name, &planned.target)?;
        self.shared
            .patiently(name, || self.take_back(name, &id, &planned.target))
            .await
    }

    async fn take_back(&self, name: &str, id: &ObjectId, meant: &Value) -> StepResult<()> {
        let green = self.cx.world.green.as_ref();
        let there = match green.get(id).await {
            Ok(Some(there)) => there,
            Ok(None) => return Ok(()),
            Err(e) if e.class == Class::NotFound => return Ok(()),
            Err(e) => return Err(e.into()),
        };
        let uid = object::uid(&there).unwrap_or_default();
        let recorded = self.uids.get(name).copied();
        let ours = match recorded {
            Some(recorded) => recorded == uid,
            // Created, but the crash came before the record: the mark decides.
            None => mark::ours(&there, &self.cx.run),
        };
        if !ours {
            return Err(StepError::Changed {
                object: name.into(),
                expected: format!("uid {}", recorded.unwrap_or("of this run")),
                found: format!("uid {uid}"),
            });
        }
        if !at(&there, "/metadata/deletionTimestamp").is_null() {
            return Ok(());
        }
        let park = self.cx.verdict(name).ok().and_then(|v| v.park);
        if let Some(edit) = edited::edit(&there, meant, park.as_ref().map(|p| p.field.as_str())) {
            return Err(StepError::Changed {
                object: name.into(),
                expected: "the object as this run wrote it".into(),
                found: format!("{} changed by {}", edit.field, edit.by),
            });
        }
        if id.kind == "Namespace"
            && let Some(strangers) = self.strangers.get(&id.name)
        {
            return Err(StepError::Changed {
                object: name.into(),
                expected: "nothing in it that this run did not make".into(),
                found: format!("{}, which would be deleted with it", strangers.join(", ")),
            });
        }
        if id.kind == "PersistentVolumeClaim" {
            self.retain_volume(&there).await?;
        }
        if let Some(patch) = edited::orphan(&there) {
            green.merge(id, &patch).await?;
        }
        // A controller that goes away in the same undo could never clear its finalizer (replay.md 11). Those by which a
        // controller deletes something in the cloud stay: without them green's load balancer would be left behind.
        let (kept, stripped): (Vec<Value>, Vec<Value>) = at(&there, "/metadata/finalizers")
            .as_array()
            .into_iter()
            .flatten()
            .cloned()
            .partition(cleans_the_cloud);
        if !stripped.is_empty() {
            green
                .merge(id, &json!({ "metadata": { "finalizers": kept } }))
                .await?;
        }
        match green.delete(id, uid).await {
            Ok(()) => Ok(()),
            Err(e) if e.class == Class::NotFound => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// The volume behind a claim keeps its data, unless green made it for this claim: then it is as much ours as the claim.
    async fn retain_volume(&self, claim: &Value) -> StepResult<()> {
        let Some(volume) = at(claim, "/spec/volumeName").as_str() else {
            return Ok(());
        };
        let id = ObjectId::new("v1", "PersistentVolume", None, volume);
        let green = self.cx.world.green.as_ref();
        let Some(there) = green.get(&id).await? else {
            return Ok(());
        };
        let made_by_green = object::annotation(&there, "pv.kubernetes.io/provisioned-by").is_some();
        match edited::orphan(&there) {
            Some(patch) if !made_by_green => {
                green.merge(&id, &patch).await?;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Whether a finalizer stands for something in the cloud that its controller deletes first.
fn cleans_the_cloud(finalizer: &Value) -> bool {
    const CLOUD: &[&str] = &[
        "service.kubernetes.io/load-balancer-cleanup",
        "service.k8s.aws/",
        "elbv2.k8s.aws/",
        "ingress.k8s.aws/",
        "external-attacher/",
        "kubernetes.io/pv-protection",
    ];
    finalizer
        .as_str()
        .is_some_and(|f| CLOUD.iter().any(|c| f.starts_with(c)))
}

/// Whether everything is gone.
pub async fn undone(items: &Items<'_>, cx: &Cx, before: &Before) -> StepResult<Settle> {
    let names = touched(before, &record::read(cx)?);
    let asked: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    if asked.is_empty() {
        return Ok(Settle::Ready);
    }
    let left = look::present(items, cx, &asked).await?;
    let Some((name, finalizers)) = left.iter().next() else {
        return Ok(Settle::Ready);
    };
    let more = match left.len() {
        1 => String::new(),
        n => format!(" and {} more", n - 1),
    };
    let held = match finalizers.as_array() {
        Some(f) if !f.is_empty() => format!(", held by {finalizers}"),
        _ => String::new(),
    };
    Ok(Settle::Pending {
        why: format!("{name}{more} to be gone from green{held}"),
        poll: Duration::from_secs(1),
    })
}
