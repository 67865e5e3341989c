//! The planner: a pure function of Spec and Snapshot. The same input gives the same digest on every machine: no time, no randomness, no I/O.

pub mod access;
mod access_proof;
pub mod addons;
pub mod cost;
mod defaults;
pub mod diff;
mod dns;
pub mod fates;
mod file;
pub mod fit;
mod generated;
mod groups;
pub mod hazards;
mod holds;
pub mod iam;
mod keys;
mod kops;
pub mod model;
mod objects;
mod resources;
mod steps;
mod timeline;
mod trust;
pub mod verdicts;
mod waivers;
mod wake;
mod waves;

pub use file::{digest_of, load, store};
pub(crate) use kops::overlap;
pub use objects::beside as objects_file;
pub(crate) use trust::{NodeTrust, carried, trust_of_blue};
#[cfg(test)]
pub(crate) use waves::wave_place;
pub(crate) use waves::{is_last, is_merged, wave_of};

#[cfg(test)]
pub(crate) mod corpus_tests;
#[cfg(test)]
mod disk_tests;
#[cfg(test)]
pub(crate) mod tests;

use crate::checks;
use crate::rewrite::{self, Context};
use crate::snapshot::model::{HASH_PREFIX, Snapshot};
use crate::snapshot::roll::Found;
use crate::spec::model::Spec;
use model::{Basis, Fate, Finding, Plan, Severity, Verdict};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};

/// What has to be known before the first object of blue can be judged.
struct Prepared {
    spec: Spec,
    cx: Context,
    built: kops::Built,
    names: dns::Names,
    iam: iam::Iam,
    addons: addons::Addons,
    access: access::Access,
}

fn prepare(spec: &Spec, snapshot: &Found) -> Prepared {
    let spec = with_defaults(spec, snapshot);
    let mut cx = Context::new(&spec, snapshot);
    let built = kops::target(&spec, snapshot, &cx);
    cx.region = built.target.cluster.region.clone();
    cx.node_groups = built.groups.clone();
    cx.label_keys = built.label_keys.clone();
    cx.node_labels = built.labels.clone();
    cx.zones = built.zones.clone();
    let names = dns::names(&spec, snapshot);
    cx.learn_dns(
        &names.instances,
        names.names.iter().map(|n| n.host.clone()).collect(),
    );
    cx.lowered = names.lowered(spec.dns.low_ttl);
    let instances: BTreeSet<String> = names.instances.iter().map(|(id, _)| id.clone()).collect();
    cx.replace_external_dns(snapshot, &instances);
    cx.replaced.extend(addons::replaced(snapshot));
    let mut iam = iam::study(&spec, snapshot, &mut cx, &names);
    let addons = addons::addons(&spec, snapshot);
    let access = access::access(&spec, snapshot);
    let proof = access_proof::proof(&access.entries, &spec.waivers, snapshot);
    cx.known_groups
        .extend(access.entries.iter().flat_map(|e| e.groups.clone()));
    iam.problems.extend(addons.problems.iter().cloned());
    iam.problems.extend(access.problems.iter().cloned());
    iam.problems.extend(proof.problems.iter().cloned());
    cx.learn_releases(snapshot);
    cx.keep_owners(snapshot);
    Prepared {
        spec,
        cx,
        built,
        names,
        iam,
        addons,
        access,
    }
}

/// What the rules of `rewrite` know when this plan is made: who judges a single object again (`explain`, drift) judges it as the plan did. Pure.
pub fn context(spec: &Spec, snapshot: &Snapshot) -> Context {
    prepare(spec, &Found::of(snapshot)).cx
}

/// Makes the plan. Pure.
pub fn plan(spec: &Spec, snapshot: &Snapshot) -> Plan {
    let found = Found::of(snapshot);
    let snapshot = &found;
    let Prepared {
        spec,
        cx,
        built,
        mut names,
        iam,
        addons,
        access,
    } = prepare(spec, snapshot);
    let mut findings: Vec<Finding> = built.findings.clone();
    findings.extend(defaults::findings(&snapshot.kops));
    let read = fates::read(snapshot);
    findings.extend(read.findings);
    findings.extend(fates::changes(&spec, snapshot));
    let instances = names.instances.iter().map(|(d, _)| d.as_str()).collect();
    let mut verdicts = verdicts(snapshot, &cx, &instances, &mut findings);
    verdicts.sort_by(|a, b| a.object.cmp(&b.object));
    findings.extend(rewrite::tools::report(snapshot));
    names.only_copied(&verdicts);
    findings.append(&mut names.findings);
    let generated = generated::objects(&spec, snapshot, &names, &iam.house);
    let mut target = resources::complete(
        built.target,
        &spec,
        &names,
        &iam,
        &addons,
        &access,
        snapshot,
    );
    let made = resources::all(&target, &spec, snapshot);
    let (states, differences) = diff::diff(made.iter().map(|n| &n.resource), &spec, snapshot);
    target.resources = states;
    findings.extend(differences);
    findings.extend(keys::findings(&spec, snapshot, &target));
    let basis = basis(&spec, snapshot, &names, &target);
    let load = fit::Load::new(&spec, snapshot, &target, &verdicts);
    let network = fit::fit(&spec, snapshot, &target, &load);
    let today = snapshot.taken.as_deref().and_then(|d| d.parse().ok());
    let blue = checks::blue_objects(snapshot, &verdicts);
    findings.extend(checks::run(checks::Input {
        spec: &spec,
        snapshot,
        target: &target,
        names: &names.names,
        instances: &names.instances,
        verdicts: &verdicts,
        blue: &blue,
        shared: checks::Shared::of(&blue, &verdicts),
        generated: &generated,
        cx: &cx,
        load: &load,
        network: &network,
        iam: &iam,
        today,
    }));
    let cost = cost::cost(&spec, snapshot, &target);
    let mut steps = steps::steps(&steps::Input {
        spec: &spec,
        snapshot,
        target: &target,
        names: &names,
        verdicts: &verdicts,
        generated: &generated,
    });
    steps::sort(&mut steps);
    let timeline = timeline::timeline(&steps);
    if timeline.write_closed_s[1] > spec.limits.write_closed_seconds {
        findings.push(Finding {
            id: "TIME-01".into(),
            severity: Severity::Warning,
            object: "limits.writeClosedSeconds".into(),
            message: format!(
                "writes may be closed for {} seconds, the limit is {}",
                timeline.write_closed_s[1], spec.limits.write_closed_seconds
            ),
            remedy: "Rehearse, and raise the limit or make the data sets smaller.".into(),
            source: "DESIGN 4".into(),
            waived: None,
        });
    }
    waivers::apply(&spec.waivers, today, &mut findings);
    findings.sort_by(|a, b| {
        (a.severity, &a.id, &a.object, &a.message).cmp(&(b.severity, &b.id, &b.object, &b.message))
    });
    findings.dedup();
    let hazards = hazards::hazards(&spec, snapshot);
    // What only the rules and checks needed makes room for the rest.
    drop((blue, load, cx, iam));
    drop(found);
    let mut plan = Plan {
        api_version: "crossfade.dev/v1alpha1".into(),
        kind: "Plan".into(),
        digest: String::new(),
        spec,
        basis,
        target,
        findings,
        verdicts: verdicts.into(),
        generated,
        fields: read.fields,
        hazards,
        network,
        cost,
        names: names.names,
        steps,
        timeline,
    };
    plan.digest = digest_of(&plan);
    plan
}

/// Defaults that depend on what was found.
fn with_defaults(spec: &Spec, snapshot: &Snapshot) -> Spec {
    let mut spec = spec.clone();
    if spec.aws.account.is_none() {
        spec.aws.account = snapshot.aws.as_ref().map(|a| a.identity.account.clone());
    }
    if spec.aws.region.is_none() {
        spec.aws.region = kops::region(&spec, snapshot);
    }
    spec
}

/// One verdict per object, each with its findings. The hash of an ExternalDNS of blue counts even if it is not copied: names hang on it.
fn verdicts(
    snapshot: &Found,
    cx: &Context,
    instances: &BTreeSet<&str>,
    findings: &mut Vec<Finding>,
) -> Vec<Verdict> {
    let mut seen: HashMap<&str, &str> = HashMap::new();
    let mut out = Vec::with_capacity(snapshot.blue.entries().len());
    let mut entries = snapshot.blue.entries().iter().peekable();
    for object in &snapshot.blue.objects {
        // The roll has the same order and leaves out what has no name.
        let Some(entry) = entries.next_if(|e| std::ptr::eq(e.object, object)) else {
            findings.extend(rewrite::rewrite(object, cx).findings);
            continue;
        };
        let version = entry.id.api_version.as_str();
        if let Some(first) = seen.get(entry.name.as_str()) {
            let (severity, message, remedy) = if *first != version {
                (
                    Severity::Info,
                    format!("given as {first} and as {version}; the first is taken"),
                    "Nothing to do.",
                )
            } else {
                (
                    Severity::Warning,
                    "given twice in the same version; the first is taken".into(),
                    "Drop one of the inputs.",
                )
            };
            findings.push(Finding {
                id: "API-11".into(),
                severity,
                object: entry.name.clone(),
                message,
                remedy: remedy.into(),
                source: "checks.md API-11".into(),
                waived: None,
            });
            continue;
        }
        seen.insert(&entry.name, version);
        let r = rewrite::rewrite(object, cx);
        findings.extend(r.findings);
        let used = matches!(r.fate, Fate::Copied | Fate::Changed | Fate::Held);
        out.push(Verdict {
            uid: used
                .then(|| crate::object::uid(object).map(String::from))
                .flatten(),
            basis: (used || instances.contains(entry.name.as_str()))
                .then(|| rewrite::basis_hash(object)),
            object: entry.name.clone(),
            api_version: version.into(),
            verdict: r.fate,
            rules: r.rules,
            target: r.target.map(without_values),
            park: r.park,
        });
    }
    out
}

/// Secret values never were here, only their keyed hashes; those differ from snapshot folder to snapshot folder, and the run streams
/// the real ones anyway.
pub(crate) fn without_values(mut target: Value) -> Value {
    if target["kind"] == "Secret" {
        for (_, value) in target["data"].as_object_mut().into_iter().flatten() {
            *value = Value::from(format!("{HASH_PREFIX}from-blue"));
        }
    }
    target
}

/// What the plan was made from.
fn basis(spec: &Spec, snapshot: &Snapshot, names: &dns::Names, target: &model::Target) -> Basis {
    Basis {
        account: spec.aws.account.clone(),
        region: Some(target.cluster.region.clone()).filter(|r| !r.is_empty()),
        blue: snapshot.blue.identity.clone(),
        zones: names.zones.clone(),
        records: names.basis.clone(),
        not_checked: snapshot
            .not_checked
            .iter()
            .map(|n| format!("{}: {}", n.what, n.why))
            .collect(),
    }
}
