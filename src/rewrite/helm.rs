//! Rule 69: a Helm release moves with its objects, and its stored manifests name only APIs that green serves.
//!
//! The planner sees labels and names; what is in a record changes on the stream, when the run reads it from blue and writes it to green.

use super::context::Context;
use super::work::{Work, text};
use super::{convert, skip};
use crate::error::{Error, Kind, Result};
use crate::helm::{self, manifest::Change};
use crate::object::{ObjectId, label};
use crate::plan::model::{Fate, Severity};
use crate::snapshot::model::Snapshot;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Records of a release that Helm itself keeps (`--history-max`).
pub const HISTORY: usize = 10;

/// What a record is to its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The newest one.
    Latest,
    /// One that a rollback may need.
    History,
    /// One that Helm would have forgotten.
    TooOld,
    /// None of the release's objects comes to green.
    Alone,
    /// The release was uninstalled: only its history is left.
    Uninstalled,
}

/// One record, by its labels.
struct Record<'a> {
    id: String,
    revision: u64,
    status: &'a str,
}

/// The place of each record, by object. With [`Context`] complete: whether an object comes to green is asked of the rules.
pub(super) fn places(snapshot: &Snapshot, cx: &Context) -> BTreeMap<String, Place> {
    let mut releases: BTreeMap<(String, String), Vec<Record>> = BTreeMap::new();
    for o in &snapshot.blue.objects {
        let kind = o["kind"].as_str().unwrap_or("");
        if !matches!(kind, "Secret" | "ConfigMap") || !helm::is_record(o) {
            continue;
        }
        let Some(id) = ObjectId::of(o) else { continue };
        let name = label(o, "name").unwrap_or("?").to_string();
        let tail = id.name.rsplit(".v").next().unwrap_or("");
        releases
            .entry((id.namespace.clone().unwrap_or_default(), name))
            .or_default()
            .push(Record {
                revision: label(o, "version")
                    .unwrap_or(tail)
                    .parse()
                    .unwrap_or_default(),
                id: id.to_string(),
                status: label(o, "status").unwrap_or(""),
            });
    }
    let alone = Alone::new(snapshot, cx, !releases.is_empty());
    let mut out = BTreeMap::new();
    for ((namespace, _), mut records) in releases {
        records.sort_by(|a, b| b.revision.cmp(&a.revision).then(a.id.cmp(&b.id)));
        let deployed = records.iter().position(|r| r.status == "deployed");
        let gone = records
            .first()
            .is_some_and(|r| matches!(r.status, "uninstalled" | "uninstalling"));
        let whole = deployed.and_then(|n| records.get(n)).or(records.first());
        let alone = whole.is_some_and(|r| alone.is(&r.id, &namespace));
        for (n, r) in records.iter().enumerate() {
            let place = if gone {
                Place::Uninstalled
            } else if alone {
                Place::Alone
            } else if n == 0 {
                Place::Latest
            } else if n < HISTORY || deployed == Some(n) {
                Place::History
            } else {
                Place::TooOld
            };
            out.insert(r.id.clone(), place);
        }
    }
    out
}

/// Whether nothing of a release comes to green.
struct Alone<'a> {
    cx: &'a Context,
    summaries: BTreeMap<&'a str, &'a helm::Release>,
    objects: BTreeMap<(String, String, String), &'a Value>,
}

impl<'a> Alone<'a> {
    fn new(snapshot: &'a Snapshot, cx: &'a Context, any: bool) -> Self {
        let mut objects = BTreeMap::new();
        let wanted: std::collections::BTreeSet<(&str, &str)> = snapshot
            .blue
            .helm
            .iter()
            .flat_map(|r| &r.objects)
            .map(|o| (o.kind.as_str(), o.name.as_str()))
            .collect();
        if any && !wanted.is_empty() {
            for o in &snapshot.blue.objects {
                let kind = o["kind"].as_str().unwrap_or("");
                let name = text(o, "/metadata/name").unwrap_or("");
                if wanted.contains(&(kind, name)) {
                    let ns = text(o, "/metadata/namespace").unwrap_or("");
                    objects.insert((kind.to_string(), ns.to_string(), name.to_string()), o);
                }
            }
        }
        Alone {
            cx,
            summaries: snapshot
                .blue
                .helm
                .iter()
                .map(|r| (r.object.as_str(), r))
                .collect(),
            objects,
        }
    }
    fn is(&self, record: &str, namespace: &str) -> bool {
        let Some(release) = self.summaries.get(record) else {
            return false;
        };
        if release.unreadable.is_some() || release.objects.is_empty() {
            return false;
        }
        // One that comes is enough, and most do.
        !release.objects.iter().any(|id| {
            let ns = id.namespace.as_deref().unwrap_or(namespace);
            let found = [ns, ""].iter().find_map(|ns| {
                self.objects
                    .get(&(id.kind.clone(), ns.to_string(), id.name.clone()))
            });
            let Some((object, id)) = found.and_then(|o| Some((*o, ObjectId::of(o)?))) else {
                return false;
            };
            let mut w = Work::new(object, id, self.cx);
            skip::decide(&mut w);
            !w.decided()
        })
    }
}

/// Judges a record. What is inside is changed by [`on_stream`].
pub(super) fn record(w: &mut Work) {
    let status = label(w.original, "status").unwrap_or("").to_string();
    let release = label(w.original, "name").unwrap_or("?").to_string();
    let place =
        w.cx.releases
            .get(&w.id.to_string())
            .copied()
            .unwrap_or(Place::Latest);
    match place {
        Place::TooOld | Place::Uninstalled => return w.skip(69),
        Place::Alone => {
            w.skip(69);
            w.find(
                "API-12",
                Severity::Info,
                69,
                format!("nothing of release {release} comes to green, so its record stays on blue"),
                "Nothing to do.",
            );
            return;
        }
        Place::Latest | Place::History => {}
    }
    if place == Place::Latest && status.starts_with("pending") {
        w.find(
            "API-12",
            Severity::Blocker,
            69,
            format!("release {release} is {status}: Helm is in the middle of something"),
            "Finish or roll back the release on blue.",
        );
    } else if place == Place::Latest && status == "failed" {
        w.find(
            "API-12",
            Severity::Warning,
            69,
            format!("the last upgrade of release {release} failed: its record says what was tried, not what runs"),
            "Roll the release back or upgrade it on blue, then plan again.",
        );
    }
    if w.kind() == "ConfigMap" {
        return in_clear(w);
    }
    w.tidied(69);
}

/// ConfigMaps are whole in the snapshot: their records change while the plan is made.
fn in_clear(w: &mut Work) {
    match rewritten(&w.object, w.cx.green_minor) {
        Ok(Some(held)) => {
            w.object["data"]["release"] = held;
            w.changed(69);
        }
        Ok(None) => w.tidied(69),
        Err(why) => w.find(
            "API-12",
            Severity::Blocker,
            69,
            format!("the record cannot be read: {why}"),
            "Mend or delete the record on blue: Helm cannot read it either.",
        ),
    }
}

/// A live Secret of blue as it is written on green: the planned target with blue's values; of a record of Helm's with manifests that name only
/// APIs that green (a minor of 1.x) serves. Byte for byte blue's where nothing changes. Only the run calls it, and only in memory.
pub fn on_stream(live: &Value, target: &Value, green_minor: u32) -> Result<Value> {
    let mut out = super::for_green(live, target);
    if !helm::is_record(live) {
        return Ok(out);
    }
    let name = ObjectId::of(live)
        .map(|i| i.to_string())
        .unwrap_or_default();
    let fail = |why: String| {
        Error::new(
            Kind::BadInput,
            format!("the record of a Helm release cannot be taken over: {why}"),
        )
        .at(name.clone())
        .remedy("mend or delete the record on blue (Helm cannot read it either), or list it under workloads.skip; then plan again")
    };
    if let Some(held) = rewritten(live, green_minor).map_err(fail)? {
        out["data"]["release"] = held;
    }
    Ok(out)
}

/// The value of the record for green; `None` when it stays.
fn rewritten(object: &Value, minor: u32) -> std::result::Result<Option<Value>, String> {
    let held = helm::text_of(object).ok_or("its value is not base64")?;
    let mut release = helm::unpack(&held)?;
    let mut changed = false;
    let mut one = |text: &mut Value| -> std::result::Result<(), String> {
        if let Some(manifest) = text.as_str()
            && let Some(new) = helm::manifest::change(manifest, &mut |o| to_green(o, minor))?
        {
            *text = json!(new);
            changed = true;
        }
        Ok(())
    };
    if let Some(text) = release.get_mut("manifest") {
        one(text)?;
    }
    let hooks = release.get_mut("hooks").and_then(Value::as_array_mut);
    for hook in hooks.into_iter().flatten() {
        if let Some(text) = hook.get_mut("manifest") {
            one(text)?;
        }
    }
    if !changed {
        return Ok(None);
    }
    let packed = helm::pack(&release)?;
    if packed.len() > helm::MAX_RECORD {
        return Err(format!(
            "with its new manifests it has {} bytes, and a Secret holds {}",
            packed.len(),
            helm::MAX_RECORD
        ));
    }
    let kind = object["kind"].as_str().unwrap_or("");
    Ok(Some(helm::held_by(kind, &packed)))
}

/// An object of a manifest in a version that green serves. What is refused there goes from the manifest: it is not on green, and Helm could not even
/// look for it.
fn to_green(object: &Value, minor: u32) -> Change {
    let Some(id) = ObjectId::of(object) else {
        return Change::Same;
    };
    let mut cx = Context::default();
    cx.green_minor = minor;
    let mut w = Work::new(object, id, &cx).whole();
    convert::to_served_version(&mut w);
    let done = w.finish();
    match (done.fate, done.target) {
        (Fate::Refused, _) => Change::Gone,
        (_, Some(new)) if new != *object => Change::To(Box::new(new)),
        _ => Change::Same,
    }
}

/// APIs that a release names and green does not serve, as `extensions/v1beta1 Ingress`.
pub fn gone(release: &helm::Release, minor: u32) -> Vec<String> {
    let mut out: Vec<String> = release
        .objects
        .iter()
        .chain(&release.hooks)
        .filter(|o| {
            super::removal(o.group(), o.version(), &o.kind, minor)
                .is_some_and(|r| r.stored != Some(false))
        })
        .map(|o| format!("{} {}", o.api_version, o.kind))
        .collect();
    out.sort();
    out.dedup();
    out
}
