//! Which Cluster and groups are meant, out of everything that was read.

use super::gather::{Beside, Doc, Found};
use super::not;
use crate::error::{Error, Kind, Result};
use crate::object::canonical;
use crate::snapshot::kops::{self, layout};
use crate::snapshot::model::{Kops, NotChecked};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A document that was checked, with the place of each leaf.
struct Read {
    doc: Doc,
    places: BTreeMap<String, String>,
}

/// The chosen Cluster and its groups. The same document in several forms is one; two that differ are refused.
pub(super) fn kops(
    found: &mut Found,
    wanted: Option<&str>,
    missing: &mut Vec<NotChecked>,
) -> Result<Kops> {
    let mut out = Kops::default();
    let mut clusters: BTreeMap<String, Vec<Read>> = BTreeMap::new();
    let mut groups: Vec<Read> = vec![];
    // Clusters of each file: a group without a label belongs to the one it stands with.
    let mut by_file: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for mut doc in std::mem::take(&mut found.kops) {
        let (value, places) = kops::read(doc.value.take(), &doc.at, &doc.marks)?;
        doc.value = value;
        if doc.value["kind"] == "Cluster" {
            let name = kops::name_of(&doc.value).to_string();
            by_file
                .entry(doc.marks.file.clone())
                .or_default()
                .insert(name.clone());
            clusters.entry(name).or_default().push(Read { doc, places });
        } else {
            groups.push(Read { doc, places });
        }
    }
    let several = clusters.len() > 1;
    let name = choose(&clusters, wanted)?.unwrap_or_default();
    if name.is_empty() {
        missing.push(not(
            "kops.cluster",
            "no kops Cluster was given (`kops get all NAME -o yaml`)",
        ));
        if groups.is_empty() {
            missing.push(not(
                "kops.instancegroups",
                "no kops InstanceGroup was given (`kops get all NAME -o yaml`)",
            ));
        }
    }
    if let Some(docs) = clusters.remove(&name) {
        cluster(docs, &mut out)?;
    }
    let mut by_name: BTreeMap<String, Vec<Read>> = BTreeMap::new();
    for group in groups {
        let owner = owner(&group.doc, &by_file, several)?;
        if owner.as_ref().is_none_or(|o| name.is_empty() || *o == name) {
            by_name
                .entry(kops::name_of(&group.doc.value).to_string())
                .or_default()
                .push(group);
        } else {
            found.unused.push(format!(
                "{}: a group of the cluster {}",
                group.doc.at,
                owner.unwrap_or_default()
            ));
        }
    }
    for (group, docs) in by_name {
        if let Some(r) = one(docs)? {
            let id = format!("instancegroup/{group}");
            add(&mut out.places, &id, r.places);
            out.sources.insert(id, r.doc.at);
            out.instance_groups.push(r.doc.value);
        }
    }
    if out.instance_groups.is_empty() && !name.is_empty() {
        missing.push(not(
            "kops.instancegroups",
            "no kops InstanceGroup was given (`kops get ig --name NAME -o yaml`)",
        ));
    }
    let mut beside = found.stores.remove(&name).unwrap_or_default();
    if beside.version.is_none() {
        beside.version = found.kops_version.take();
    }
    take(beside, &mut out, missing, found);
    Ok(out)
}

fn choose(clusters: &BTreeMap<String, Vec<Read>>, wanted: Option<&str>) -> Result<Option<String>> {
    match wanted {
        Some(w) if clusters.contains_key(w) => Ok(Some(w.to_string())),
        Some(w) => {
            let names: Vec<_> = clusters.keys().map(String::as_str).collect();
            Err(Error::new(
                Kind::BadInput,
                format!("no kops cluster `{w}` is in these files"),
            )
            .at("--cluster")
            .remedy(match names.as_slice() {
                [] => "name the file with the kops Cluster".into(),
                n => format!("there is {}", n.join(", ")),
            }))
        }
        None if clusters.len() > 1 => {
            let places: Vec<String> = clusters
                .iter()
                .map(|(n, d)| format!("{n} ({})", d[0].doc.at))
                .collect();
            Err(Error::new(
                Kind::BadInput,
                format!("these files hold {} kops clusters", clusters.len()),
            )
            .at(places.join(", "))
            .remedy("choose one with --cluster NAME"))
        }
        None => Ok(clusters.keys().next().cloned()),
    }
}

/// The Cluster and its completed form.
fn cluster(docs: Vec<Read>, out: &mut Kops) -> Result<()> {
    let (full, plain): (Vec<Read>, Vec<Read>) = docs.into_iter().partition(|r| r.doc.full);
    let completed = one(full)?;
    match (one(plain)?, completed) {
        (Some(r), completed) => {
            out.sources.insert("cluster".into(), r.doc.at);
            add(&mut out.places, "cluster", r.places);
            out.cluster = Some(r.doc.value);
            if let Some(c) = completed {
                out.sources.insert("completed".into(), c.doc.at);
                out.completed = Some(c.doc.value);
            }
        }
        // Only the full form was given: every default is written out in it, so it serves as the cluster too.
        (None, Some(c)) => {
            out.sources.insert("cluster".into(), c.doc.at.clone());
            out.sources.insert("completed".into(), c.doc.at);
            add(&mut out.places, "cluster", c.places);
            out.cluster = Some(c.doc.value.clone());
            out.completed = Some(c.doc.value);
        }
        (None, None) => {}
    }
    Ok(())
}

/// Cluster of a group: of its label, of the store it lies in, or of the one Cluster of its file.
fn owner(
    doc: &Doc,
    by_file: &BTreeMap<String, BTreeSet<String>>,
    several: bool,
) -> Result<Option<String>> {
    if let Some(name) = layout::label(&doc.value)
        .map(String::from)
        .or(doc.store.clone())
    {
        return Ok(Some(name));
    }
    let here = by_file.get(&doc.marks.file);
    match here
        .map(|names| names.iter().collect::<Vec<_>>())
        .as_deref()
    {
        Some([only]) => Ok(Some(only.to_string())),
        _ if several => Err(Error::new(
            Kind::BadInput,
            format!(
                "the group `{}` does not say which of several clusters it is of",
                kops::name_of(&doc.value)
            ),
        )
        .at(&doc.at)
        .remedy("add the label kops.k8s.io/cluster to it, or give the files of one cluster only")),
        _ => Ok(None),
    }
}

fn take(beside: Beside, out: &mut Kops, missing: &mut Vec<NotChecked>, found: &mut Found) {
    match beside.version {
        Some((version, at)) => {
            out.sources.insert("kopsVersion".into(), at);
            out.kops_version = Some(version);
        }
        None => missing.push(not(
            "kops.version",
            "no kops-version.txt was given, so defaults are those of a guessed kops release",
        )),
    }
    if let Some((addons, at)) = beside.addons {
        out.sources.insert("addons".into(), at);
        out.addons = addons;
    }
    if let Some((extra, at)) = beside.extra {
        out.sources.insert("extraObjects".into(), at);
        out.extra_objects = extra;
    }
    out.closed_keys = beside.closed;
    if let Some(older) = beside.older {
        found.unused.push(format!(
            "{older}: written by kops 1.21 or older; the newer cluster-completed.spec beside it is taken"
        ));
    }
}

fn add(all: &mut BTreeMap<String, String>, document: &str, places: BTreeMap<String, String>) {
    all.extend(
        places
            .into_iter()
            .map(|(path, at)| (format!("{document}/{path}"), at)),
    );
}

/// One document out of several copies. The state store's wins, since kops goes by it; copies may differ in what kops adds on
/// reading, never in the spec.
fn one(docs: Vec<Read>) -> Result<Option<Read>> {
    let mut best: Option<Read> = None;
    for read in docs {
        let Some(old) = &best else {
            best = Some(read);
            continue;
        };
        let same = |v: &Value| canonical(&v["spec"]);
        if same(&old.doc.value) != same(&read.doc.value) {
            return Err(Error::new(
                Kind::BadInput,
                format!(
                    "{} `{}` is given twice, and the two differ",
                    read.doc.value["kind"].as_str().unwrap_or_default(),
                    kops::name_of(&read.doc.value)
                ),
            )
            .at(format!("{} and {}", old.doc.at, read.doc.at))
            .remedy("give only the newer one"));
        }
        if read.doc.store.is_some() && old.doc.store.is_none() {
            best = Some(read);
        }
    }
    Ok(best)
}
