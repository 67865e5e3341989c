//! Reads both sides again, page by page, and compares. Reads only.

use super::compare::{Options, Outcome, compare};
use super::report::{Change, Entry, Report};
use super::secret;
use crate::edns;
use crate::error::{Error, Kind, Result};
use crate::journal::State;
use crate::object::{ObjectId, annotation, resource_version, uid};
use crate::plan::model::{Fate, Phase, Plan, Verdict};
use crate::rewrite::{self, Context, Rewritten};
use crate::snapshot::mask::Key;
use crate::snapshot::model::Snapshot;
use crate::snapshot::prefer::readable;
use crate::step::util::RUN_ANNOTATION;
use crate::world::kube::{ApiKind, Kube};
use crate::world::{self, Class, World};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What a look needs beside the world.
pub struct Look<'a> {
    /// The plan of the run.
    pub plan: &'a Plan,
    /// What the run's records add up to.
    pub state: &'a State,
    /// The snapshot that the plan was made from.
    pub snapshot: Snapshot,
    /// Key of the hashes of the snapshot's Secrets.
    pub key: &'a Key,
    /// Whether green is there to be compared: before the replay only blue is looked at.
    pub green: bool,
}

/// What the run did so far, as far as objects go.
struct Run<'a> {
    plan: &'a Plan,
    /// API version and kind on green of everything that is copied, by object.
    copied: BTreeMap<String, (String, String)>,
    later: BTreeMap<&'a str, &'a Verdict>,
    id: Option<&'a str>,
    /// uid of everything that it created.
    created: BTreeMap<String, String>,
    adopted: BTreeSet<&'a str>,
}

impl<'a> Run<'a> {
    fn new(plan: &'a Plan, state: &'a State) -> Result<Run<'a>> {
        let mut created: BTreeMap<String, String> = BTreeMap::new();
        let mut adopted = BTreeSet::new();
        for (_, step) in state.steps.iter().filter(|(_, s)| s.status.is_active()) {
            let ours = step.before.as_ref().and_then(|b| b.get("ours"));
            let records = step.progress.iter().map(|text| {
                serde_json::from_str::<Value>(text).map_err(|e| {
                    Error::new(
                        Kind::BadInput,
                        format!("a progress record cannot be read: {e}"),
                    )
                    .remedy("use the crossfade version that wrote the journal")
                })
            });
            for uids in
                ours.cloned().map(Ok).into_iter().chain(
                    records.map(|r| r.map(|r| r.get("created").cloned().unwrap_or_default())),
                )
            {
                for (name, uid) in uids?.as_object().into_iter().flatten() {
                    created.insert(name.clone(), uid.as_str().unwrap_or_default().into());
                }
            }
            let all = step.before.as_ref().and_then(|b| b.get("adopted"));
            for name in all.and_then(Value::as_array).into_iter().flatten() {
                adopted.extend(name.as_str());
            }
        }
        let later: BTreeMap<&str, &Verdict> = state
            .extensions()
            .flat_map(|e| &e.verdicts)
            .map(|v| (v.object.as_str(), v))
            .collect();
        let mut copied = BTreeMap::new();
        let mut note = |v: &Verdict| {
            if let Some(id) = v.target.as_ref().and_then(ObjectId::of) {
                copied.insert(v.object.clone(), (id.api_version, id.kind));
            }
        };
        for verdict in plan.verdicts.iter() {
            note(verdict?.as_ref());
        }
        later.values().for_each(|v| note(v));
        Ok(Run {
            plan,
            copied,
            later,
            id: state.run.as_ref().map(|r| r.run.as_str()),
            created,
            adopted,
        })
    }
    /// The verdict with the target that was written last.
    fn verdict(&self, name: &str) -> Result<Option<Verdict>> {
        match self.later.get(name) {
            Some(later) => Ok(Some((*later).clone())),
            None => Ok(self.plan.verdicts.get(name)?.map(|v| v.into_owned())),
        }
    }
    fn copies(&self, name: &str) -> bool {
        self.copied.contains_key(name)
    }
    /// Whether an object of green was made by this run.
    fn made(&self, name: &str, green: &Value) -> bool {
        if self.adopted.contains(name) {
            return false;
        }
        match self.created.get(name) {
            Some(recorded) => Some(recorded.as_str()) == uid(green),
            None => self.id.is_some() && annotation(green, RUN_ANNOTATION) == self.id,
        }
    }
}

/// Looks at both sides.
pub async fn look(world: &World, look: Look<'_>) -> Result<Report> {
    let Look {
        plan,
        state,
        snapshot,
        key,
        green,
    } = look;
    let run = Run::new(plan, state)?;
    let mut report = Report::default();
    let before = context_of_plan(plan, &snapshot)?;
    let names = names_of(&snapshot);
    let blue = read_blue(world, &snapshot, key, &mut report).await?;
    // The snapshot as it would be now: what the rules know of other objects, they know of today's.
    let secrets: BTreeMap<String, Value> = snapshot
        .blue
        .objects
        .iter()
        .filter(|o| o["kind"] == "Secret")
        .filter_map(|o| Some((ObjectId::of(o)?.to_string(), o.clone())))
        .collect();
    let judge = if blue.changed.is_empty() && blue.gone.is_empty() {
        None
    } else {
        Some(Judge::new(plan, before, snapshot, &blue, names))
    };
    let mut now: BTreeMap<&str, Now> = BTreeMap::new();
    for (name, object) in &blue.changed {
        let judged = judge.as_ref().map(|j| j.judge(object));
        if let Some(judged) = judged {
            now.insert(name, judged);
        }
    }
    let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
    for (name, judged) in &now {
        if let Some(entry) = whole(name, judged, run.copies(name)) {
            entries.insert((*name).to_string(), entry);
        }
    }
    let gone: BTreeSet<&str> = blue
        .gone
        .iter()
        .map(String::as_str)
        .filter(|n| run.copies(n))
        .collect();
    for name in &gone {
        let note = if green {
            ""
        } else {
            "the plan would copy it: make a new plan"
        };
        entries.insert((*name).into(), Entry::whole(name, Change::Gone, note));
    }
    if green {
        let mut both = Both {
            run: &run,
            now: &now,
            gone: &gone,
            secrets: &secrets,
            key,
            report: &mut report,
            entries: &mut entries,
        };
        both.read(world.green.as_ref(), state).await?;
    } else {
        for (name, judged) in &now {
            if let Now::Judged(_) = judged
                && run.copies(name)
            {
                entries
                    .entry((*name).into())
                    .or_insert_with(|| Entry::whole(name, Change::Bring, "changed on blue"));
            }
        }
    }
    report.entries = entries.into_values().collect();
    Ok(report)
}

/// The context in which the plan was made; an error when the snapshot beside it is another one.
fn context_of_plan(plan: &Plan, snapshot: &Snapshot) -> Result<Context> {
    for object in &snapshot.blue.objects {
        let Some(name) = ObjectId::of(object).map(|id| id.to_string()) else {
            continue;
        };
        let basis = plan.verdicts.head(&name)?.and_then(|(_, head)| head.basis);
        if basis.is_some_and(|b| b != rewrite::basis_hash(object)) {
            return Err(Error::new(
                Kind::StalePlan,
                "the snapshot was read again since the plan was made, so what changed since the plan cannot be told",
            )
            .at(format!("snapshot: {name}"))
            .remedy("put the snapshot of this plan back, or make a new plan"));
        }
    }
    Ok(crate::plan::context(&plan.spec, snapshot))
}

/// Host names that each object of blue asks its ExternalDNS for.
fn names_of(snapshot: &Snapshot) -> Vec<edns::Config> {
    snapshot
        .blue
        .objects
        .iter()
        .filter_map(|o| edns::Config::of_workload(o)?.ok())
        .collect()
}

/// What became of blue since the snapshot.
struct Blue {
    /// New and changed objects; Secrets with markers instead of values.
    changed: BTreeMap<String, Value>,
    gone: Vec<String>,
}

async fn read_blue(
    world: &World,
    snapshot: &Snapshot,
    key: &Key,
    report: &mut Report,
) -> Result<Blue> {
    let mut known: BTreeMap<String, &Value> = snapshot
        .blue
        .objects
        .iter()
        .filter_map(|o| Some((ObjectId::of(o)?.to_string(), o)))
        .collect();
    let mut changed = BTreeMap::new();
    let blue = world.blue.as_ref();
    let kinds = again(|| blue.kinds(true)).await?;
    // In the versions in which the snapshot has them.
    let on_green = snapshot
        .green
        .as_ref()
        .map(|g| g.kinds.as_slice())
        .unwrap_or_default();
    for kind in readable(&kinds, on_green) {
        let read = each(blue, &kind, |object| {
            let Some(name) = ObjectId::of(&object).map(|id| id.to_string()) else {
                return;
            };
            report.blue += 1;
            let mut object = secret::masked(key, object);
            let same = known.remove(&name).is_some_and(|old| same(old, &object));
            if !same {
                if let Some(meta) = object["metadata"].as_object_mut() {
                    meta.remove("managedFields");
                }
                changed.insert(name, object);
            }
        })
        .await;
        if let Err(e) = read {
            report.not_checked.push(format!(
                "blue {}.{}: {}",
                kind.plural,
                kind.api_version(),
                e.message
            ));
            known.retain(|_, o| o["kind"] != kind.kind.as_str());
        }
    }
    // A kind that blue does not serve any more went with its objects.
    let gone = known.into_keys().collect();
    Ok(Blue { changed, gone })
}

/// Whether nothing that counts changed between two looks at an object of blue.
fn same(old: &Value, now: &Value) -> bool {
    old["apiVersion"] == now["apiVersion"]
        && rewrite::basis_hash(old) == rewrite::basis_hash(now)
        && (old["kind"] != "Secret" || old.get("data") == now.get("data"))
}

/// An object of blue as it is judged today.
enum Now {
    /// With its target, if it has one.
    Judged(Box<Verdict>),
    /// Not with this plan; why.
    Replan(String),
}

/// Judges objects of today with the plan's context.
struct Judge<'a> {
    plan: &'a Plan,
    /// What the plan decided (roles, names, node groups), and today's other objects.
    planned: Context,
    /// What a plan of today would decide.
    today: Context,
    dns: Vec<edns::Config>,
}

impl<'a> Judge<'a> {
    fn new(
        plan: &'a Plan,
        before: Context,
        mut snapshot: Snapshot,
        blue: &Blue,
        dns: Vec<edns::Config>,
    ) -> Judge<'a> {
        let gone: BTreeSet<&String> = blue.gone.iter().chain(blue.changed.keys()).collect();
        snapshot
            .blue
            .objects
            .retain(|o| ObjectId::of(o).is_none_or(|id| !gone.contains(&id.to_string())));
        snapshot.blue.objects.extend(blue.changed.values().cloned());
        snapshot.blue.objects.sort_by_key(ObjectId::of);
        let today = crate::plan::context(&plan.spec, &snapshot);
        // Decisions stay as the plan made them: roles exist, names are handed over and nodes are labelled as it says. What other
        // objects there are is as of now.
        let mut planned = today.clone();
        planned.region = before.region;
        planned.lowered = before.lowered;
        planned.blue_prefix = before.blue_prefix;
        planned.green_prefix = before.green_prefix;
        planned.replaced = before.replaced;
        planned.pod_roles = before.pod_roles;
        planned.sa_roles = before.sa_roles;
        planned.pod_identity = before.pod_identity;
        planned.sa_conflicts = before.sa_conflicts;
        planned.node_groups = before.node_groups;
        planned.label_keys = before.label_keys;
        planned.node_labels = before.node_labels;
        planned.zones = before.zones;
        planned.owned_hosts = before.owned_hosts;
        planned.known_groups = before.known_groups;
        Judge {
            plan,
            planned,
            today,
            dns,
        }
    }

    fn judge(&self, object: &Value) -> Now {
        let planned = rewrite::rewrite(object, &self.planned);
        let today = rewrite::rewrite(object, &self.today);
        if (planned.target.is_some() || today.target.is_some())
            && let Some(host) = self.new_host(object)
        {
            return Now::Replan(format!(
                "it asks for the name {host}, which the plan does not hand over"
            ));
        }
        if (planned.fate, &planned.target, &planned.park)
            != (today.fate, &today.target, &today.park)
        {
            return Now::Replan(why_differs(&planned, &today));
        }
        if planned.fate == Fate::Refused {
            let why = planned.findings.first().map(|f| f.message.clone());
            return Now::Replan(why.unwrap_or_else(|| "the rules refuse it".into()));
        }
        let Some(id) = ObjectId::of(object) else {
            return Now::Replan("it has no name".into());
        };
        Now::Judged(Box::new(Verdict {
            object: id.to_string(),
            api_version: id.api_version,
            verdict: planned.fate,
            rules: planned.rules,
            basis: Some(rewrite::basis_hash(object)),
            uid: uid(object).map(String::from),
            target: planned.target,
            park: planned.park,
        }))
    }

    /// A host in one of the plan's zones that the plan does not hand over.
    fn new_host(&self, object: &Value) -> Option<String> {
        let mut hosts = self
            .dns
            .iter()
            .flat_map(|config| edns::hosts_of(object, config));
        hosts.find(|host| {
            let in_zone = self.plan.basis.zones.keys().any(|zone| {
                let zone = zone.trim_end_matches('.');
                host == zone || host.ends_with(&format!(".{zone}"))
            });
            in_zone && !self.plan.names.iter().any(|n| n.host == *host)
        })
    }
}

fn why_differs(planned: &Rewritten, today: &Rewritten) -> String {
    let path = match (&planned.target, &today.target) {
        (Some(a), Some(b)) => first_difference("", a, b),
        _ => None,
    };
    match path {
        Some(path) => format!(
            "a plan of today would give it another {path}: a role, a name or a node group came in between"
        ),
        None => {
            "a plan of today would judge it otherwise: what it depends on changed on blue".into()
        }
    }
}

fn first_difference(at: &str, a: &Value, b: &Value) -> Option<String> {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => x
            .keys()
            .chain(y.keys())
            .find_map(|k| first_difference(&format!("{at}.{k}"), &a[k.as_str()], &b[k.as_str()])),
        _ => (a != b).then(|| at.trim_start_matches('.').to_string()),
    }
}

/// What is to be said about an object as a whole, from blue alone.
fn whole(name: &str, now: &Now, known: bool) -> Option<Entry> {
    match now {
        Now::Replan(why) => Some(Entry::whole(name, Change::Replan, why.clone())),
        Now::Judged(v) => match (known, v.target.is_some()) {
            (false, true) => {
                let mut entry = Entry::whole(name, Change::New, "");
                entry.verdict = Some((**v).clone());
                Some(entry)
            }
            (true, false) => Some(Entry::whole(
                name,
                Change::Replan,
                "the plan copies it, and the rules would not copy it as it is now",
            )),
            _ => None,
        },
    }
}

/// The compare with green.
struct Both<'a> {
    run: &'a Run<'a>,
    now: &'a BTreeMap<&'a str, Now>,
    gone: &'a BTreeSet<&'a str>,
    secrets: &'a BTreeMap<String, Value>,
    key: &'a Key,
    report: &'a mut Report,
    entries: &'a mut BTreeMap<String, Entry>,
}

/// Objects that `--prune` never deletes: with them goes what nobody compared, or data.
const NEVER_PRUNED: &[&str] = &[
    "Namespace",
    "CustomResourceDefinition",
    "PersistentVolume",
    "PersistentVolumeClaim",
];

impl Both<'_> {
    async fn read(&mut self, green: &dyn Kube, state: &State) -> Result<()> {
        // What the run wrote, by the kind that green serves it in.
        let mut wanted: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
        for (name, kind) in &self.run.copied {
            wanted.entry(kind.clone()).or_default().insert(name.clone());
        }
        let kinds = again(|| green.kinds(true)).await?;
        for ((api_version, kind), mut names) in wanted {
            let served = kinds
                .iter()
                .find(|k| k.kind == kind && k.api_version() == api_version);
            let Some(served) = served else {
                self.report
                    .not_checked
                    .push(format!("green {kind} {api_version}: not served yet"));
                continue;
            };
            let mut failed = None;
            let read = each(green, served, |object| {
                if let Some(name) = ObjectId::of(&object).map(|id| id.to_string())
                    && names.remove(&name)
                {
                    self.report.green += 1;
                    failed = self.object(&name, object).err().or(failed.take());
                }
            })
            .await;
            if let Some(e) = failed {
                return Err(e);
            }
            if let Err(e) = read {
                self.report.not_checked.push(format!(
                    "green {}.{api_version}: {}",
                    served.plural, e.message
                ));
                continue;
            }
            for name in names {
                self.absent(&name, state);
            }
        }
        Ok(())
    }

    /// An object that green has.
    fn object(&mut self, name: &str, mut object: Value) -> Result<()> {
        let Some(verdict) = self.run.verdict(name)? else {
            return Ok(());
        };
        let Some(target) = &verdict.target else {
            return Ok(());
        };
        if self
            .entries
            .get(name)
            .is_some_and(|e| matches!(e.change, Change::Replan))
        {
            return Ok(());
        }
        let is_secret = object["kind"] == "Secret";
        let judged = match self.now.get(name) {
            Some(Now::Judged(v)) => Some(v),
            _ => None,
        };
        let wanted = judged.and_then(|v| v.target.as_ref());
        if is_secret {
            object = secret::masked(self.key, object);
        }
        let base = if is_secret {
            secret::base(target, self.secrets.get(name), wanted, Some(&object))
        } else {
            target.clone()
        };
        let park = verdict
            .park
            .iter()
            .chain(judged.and_then(|v| v.park.as_ref()))
            .map(|p| p.field.clone())
            .collect();
        let outcome = compare(&base, wanted.unwrap_or(&base), &object, &Options { park });
        let made = self.run.made(name, &object);
        if self.gone.contains(name) {
            let touched = !outcome.kept.is_empty() || !outcome.conflicts.is_empty();
            let kind = object["kind"].as_str().unwrap_or("");
            let note = if !made {
                "on green it was there before the run: left"
            } else if touched {
                "on green somebody changed it since: left"
            } else if NEVER_PRUNED.contains(&kind) {
                "on green it is left: other things hang on it; delete it by hand if you want to"
            } else {
                "on green it is as the run made it: --prune deletes it"
            };
            let mut entry = Entry::whole(name, Change::Gone, note);
            entry.fields = outcome;
            entry.prunable = made && !touched && !NEVER_PRUNED.contains(&kind);
            entry.uid = uid(&object).unwrap_or_default().into();
            self.entries.insert(name.into(), entry);
            return Ok(());
        }
        if outcome.is_equal() {
            return Ok(());
        }
        let mut entry = Entry::whole(name, change_of(&outcome), "");
        let brings = !outcome.bring.is_empty() || !outcome.recreate.is_empty();
        if !made && brings {
            entry.change = Change::Conflict;
            entry.note = "it was on green before the run, so the run does not change it".into();
        }
        if !outcome.recreate.is_empty() {
            entry.note = "these fields cannot be changed: delete it on green and run replay again, when nothing hangs on it".into();
        }
        entry.fields = outcome;
        entry.made = made;
        entry.uid = uid(&object).unwrap_or_default().into();
        entry.version = resource_version(&object).unwrap_or_default().into();
        entry.verdict = judged.map(|v| (**v).clone());
        self.entries.insert(name.into(), entry);
        Ok(())
    }

    /// An object that green should have and has not.
    fn absent(&mut self, name: &str, state: &State) {
        let made = self.run.created.contains_key(name) || self.run.adopted.contains(name);
        if !made || self.gone.contains(name) {
            if self.gone.contains(name) {
                // Gone on both sides, or never made: nothing is left to say.
                self.entries.remove(name);
            } else if state_done(state, self.run.plan) {
                self.report.not_checked.push(format!(
                    "{name}: not on green, and the run has not made it yet"
                ));
            }
            return;
        }
        let entry = if let Some(Now::Judged(v)) = self.now.get(name) {
            let mut entry = Entry::whole(
                name,
                Change::Conflict,
                "changed on blue, and somebody deleted it on green",
            );
            entry.verdict = Some((**v).clone());
            entry
        } else {
            Entry::whole(name, Change::Kept, "somebody deleted it on green")
        };
        self.entries.entry(name.into()).or_insert(entry);
    }
}

/// Whether everything that the plan creates should be there.
fn state_done(state: &State, plan: &Plan) -> bool {
    plan.steps
        .iter()
        .filter(|s| s.kind == "replay.wave" && s.phase <= Phase::Unpark)
        .all(|s| state.status(&s.id) == crate::journal::Status::Done)
}

fn change_of(outcome: &Outcome) -> Change {
    if !outcome.recreate.is_empty() {
        Change::Recreate
    } else if !outcome.conflicts.is_empty() {
        Change::Conflict
    } else if !outcome.bring.is_empty() {
        Change::Bring
    } else {
        Change::Kept
    }
}

/// Every object of a kind, a page at a time. When the server forgot the list in between it is read again (replay.md 2), each object once.
async fn each(kube: &dyn Kube, kind: &ApiKind, mut take: impl FnMut(Value)) -> world::Result<()> {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut restarts = 0;
    let mut token: Option<String> = None;
    loop {
        let page = again(|| kube.list_page(kind, None, token.as_deref())).await;
        let page = match page {
            Ok(page) => page,
            // Served by discovery, not by the server: a CRD that just went.
            Err(e) if e.class == Class::NotFound => return Ok(()),
            Err(e) if e.class == Class::Gone && token.is_some() && restarts < 5 => {
                token = None;
                restarts += 1;
                continue;
            }
            Err(e) => return Err(e),
        };
        for item in page.items {
            let name = ObjectId::of(&item).map(|id| id.to_string());
            if name.is_some_and(|name| taken.insert(name)) {
                take(item);
            }
        }
        token = page.continue_token;
        if token.is_none() {
            return Ok(());
        }
    }
}

/// A few tries only: a person waits for the answer.
async fn again<T, F>(mut call: impl FnMut() -> F) -> world::Result<T>
where
    F: Future<Output = world::Result<T>>,
{
    for pause in [1, 2, 4] {
        match call().await {
            Err(e) if e.is_transient() => tokio::time::sleep(Duration::from_secs(pause)).await,
            other => return other,
        }
    }
    call().await
}
