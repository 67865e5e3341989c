//! Finds the files, reads their documents and sorts them by what they are.

use super::not;
use crate::error::{Error, Kind, Result};
use crate::object::canonical;
use crate::snapshot::kops;
use crate::snapshot::model::{Kops, NotChecked};
use crate::yaml;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A document and its place.
#[derive(Debug)]
pub(super) struct Doc {
    /// The document.
    pub value: Value,
    /// `file:line`, relative to what the user named, so that a snapshot does not depend on where it was made.
    pub at: String,
    /// File name alone: AWS CLI output often says whose it is only there.
    pub file: String,
    /// Which form of kops document: the full one has every default filled in.
    pub full: bool,
    /// From a state store, which is what kops itself goes by.
    pub store: bool,
}

/// Everything that was read.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub kops: Vec<Doc>,
    pub kops_version: Option<(String, String)>,
    pub kube: Vec<Doc>,
    pub kubeconfig: Vec<Doc>,
    pub api_lists: Vec<Doc>,
    pub aws: Vec<Doc>,
    pub unused: Vec<String>,
}

impl Found {
    pub fn is_empty(&self) -> bool {
        self.kops.is_empty()
            && self.kube.is_empty()
            && self.api_lists.is_empty()
            && self.aws.is_empty()
    }
}

/// Folders of a state store that hold keys, secrets, backups or what kops itself makes: never opened (kops.md 1.1).
const STORE_ONLY: &[&str] = &[
    "config",
    "cluster-completed.spec",
    "cluster.spec",
    "kops-version.txt",
];

pub(super) fn gather(paths: &[PathBuf]) -> Result<Found> {
    let mut found = Found::default();
    for path in paths {
        let base = if path.is_dir() {
            path.clone()
        } else {
            path.parent().unwrap_or(Path::new("")).to_path_buf()
        };
        if path.is_dir() {
            folder(path, &base, &mut found)?;
        } else {
            file(path, &base, false, &mut found)?;
        }
    }
    Ok(found)
}

fn folder(dir: &Path, base: &Path, found: &mut Found) -> Result<()> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(dir)
        .and_then(|d| d.map(|e| e.map(|e| e.path())).collect())
        .map_err(|e| unreadable(dir, &e))?;
    entries.sort();
    // A state store keeps the Cluster in `config` beside the folder of its groups.
    if dir.join("config").is_file() && dir.join("instancegroup").is_dir() {
        for name in STORE_ONLY {
            let path = dir.join(name);
            if path.is_file() {
                file(&path, base, true, found)?;
            }
        }
        let mut groups: Vec<PathBuf> = std::fs::read_dir(dir.join("instancegroup"))
            .and_then(|d| d.map(|e| e.map(|e| e.path())).collect())
            .map_err(|e| unreadable(dir, &e))?;
        groups.sort();
        for path in groups.iter().filter(|p| p.is_file()) {
            file(path, base, true, found)?;
        }
        return Ok(());
    }
    for path in entries {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_string();
        if name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            folder(&path, base, found)?;
        } else if ["yaml", "yml", "json"]
            .iter()
            .any(|e| path.extension().is_some_and(|x| x == *e))
        {
            file(&path, base, false, found)?;
        } else {
            found.unused.push(format!(
                "{}: not YAML or JSON by its name",
                shown(&path, base)
            ));
        }
    }
    Ok(())
}

fn shown(path: &Path, base: &Path) -> String {
    path.strip_prefix(base)
        .unwrap_or(path)
        .display()
        .to_string()
}

fn unreadable(path: &Path, e: &dyn std::fmt::Display) -> Error {
    Error::new(Kind::BadInput, format!("this cannot be read: {e}"))
        .at(path.display().to_string())
        .remedy("name an existing file or folder that you may read")
}

fn file(path: &Path, base: &Path, store: bool, found: &mut Found) -> Result<()> {
    let bytes = std::fs::read(path).map_err(|e| unreadable(path, &e))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable(path, &"it is not text (UTF-8)"))?;
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_string();
    let place = shown(path, base);
    if name == "kops-version.txt" {
        found.kops_version = Some((text.trim().to_string(), place));
        return Ok(());
    }
    // `kops get cluster --full` begins with a comment block; the state store says it by the name.
    let full = name == "cluster-completed.spec"
        || name == "cluster.spec"
        || text.trim_start().starts_with("//");
    let mut any = false;
    for item in yaml::manifests(&text, &path.display().to_string()) {
        let (value, line) = item?;
        any = true;
        let doc = Doc {
            value,
            at: format!("{place}:{line}"),
            file: name.clone(),
            full,
            store,
        };
        sort(doc, found)?;
    }
    if !any {
        found.unused.push(format!("{place}: empty"));
    }
    Ok(())
}

/// Puts a document where it belongs; a list is taken apart.
fn sort(doc: Doc, found: &mut Found) -> Result<()> {
    let kind = doc
        .value
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_string();
    if kops::is_kops(&doc.value) {
        if ["Cluster", "InstanceGroup"].contains(&kind.as_str()) {
            found.kops.push(doc);
        } else {
            found.unused.push(format!("{}: a kops {kind}", doc.at));
        }
        return Ok(());
    }
    if kind == "APIResourceList" {
        found.api_lists.push(doc);
        return Ok(());
    }
    let api = doc
        .value
        .get("apiVersion")
        .and_then(Value::as_str)
        .map(String::from);
    if let Some(api) = api {
        if kind == "Config" && api == "v1" && doc.value.get("clusters").is_some() {
            found.kubeconfig.push(doc);
            return Ok(());
        }
        let items = doc.value.get("items").and_then(Value::as_array).cloned();
        // A custom resource may have a field `items` of its own; a list has no name.
        if let Some(items) = items
            .filter(|_| kind.ends_with("List") && doc.value.pointer("/metadata/name").is_none())
        {
            let item_kind = kind.trim_end_matches("List");
            if doc
                .value
                .pointer("/metadata/continue")
                .and_then(Value::as_str)
                .is_some_and(|c| !c.is_empty())
            {
                return Err(Error::new(
                    Kind::BadInput,
                    format!("this {kind} is one page of several"),
                )
                .at(&doc.at)
                .remedy("dump it whole: `kubectl get KIND -A -o json`"));
            }
            for mut value in items {
                // Items of a typed list carry neither kind nor apiVersion.
                if let Some(o) = value.as_object_mut().filter(|_| !item_kind.is_empty()) {
                    o.entry("apiVersion").or_insert_with(|| api.clone().into());
                    o.entry("kind").or_insert_with(|| item_kind.into());
                }
                sort(
                    Doc {
                        value,
                        at: doc.at.clone(),
                        file: doc.file.clone(),
                        ..doc
                    },
                    found,
                )?;
            }
            return Ok(());
        }
        if kind.is_empty() {
            return Err(
                Error::new(Kind::BadInput, "this object has an apiVersion but no kind")
                    .at(&doc.at)
                    .remedy("give whole objects, as `kubectl get -o yaml` prints them"),
            );
        }
        found.kube.push(doc);
        return Ok(());
    }
    if doc.value.get("serverVersion").is_some() || doc.value.get("gitVersion").is_some() {
        found.kube.push(doc);
    } else if doc.value.is_object() {
        found.aws.push(doc);
    } else {
        found.unused.push(format!(
            "{}: neither an object of kops or Kubernetes nor AWS output",
            doc.at
        ));
    }
    Ok(())
}

/// The chosen Cluster and its groups. The same document in several forms is one; two that differ are refused.
pub(super) fn kops(
    found: &mut Found,
    wanted: Option<&str>,
    missing: &mut Vec<NotChecked>,
) -> Result<Kops> {
    let mut out = Kops::default();
    let mut clusters: BTreeMap<String, Vec<Doc>> = BTreeMap::new();
    let mut groups: Vec<Doc> = vec![];
    for mut doc in std::mem::take(&mut found.kops) {
        doc.value = kops::normal(doc.value, &doc.at)?;
        if doc.value["kind"] == "Cluster" {
            clusters
                .entry(kops::name_of(&doc.value).to_string())
                .or_default()
                .push(doc);
        } else {
            groups.push(doc);
        }
    }
    let name = match wanted {
        Some(w) if clusters.contains_key(w) => w.to_string(),
        Some(w) => {
            let names: Vec<_> = clusters.keys().map(String::as_str).collect();
            return Err(Error::new(
                Kind::BadInput,
                format!("no kops cluster `{w}` is in these files"),
            )
            .at("--cluster")
            .remedy(match names.as_slice() {
                [] => "name the file with the kops Cluster".into(),
                n => format!("there is {}", n.join(", ")),
            }));
        }
        None if clusters.len() > 1 => {
            let places: Vec<String> = clusters
                .iter()
                .map(|(n, d)| format!("{n} ({})", d[0].at))
                .collect();
            return Err(Error::new(
                Kind::BadInput,
                format!("these files hold {} kops clusters", clusters.len()),
            )
            .at(places.join(", "))
            .remedy("choose one with --cluster NAME"));
        }
        None => match clusters.keys().next() {
            Some(n) => n.clone(),
            None => {
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
                String::new()
            }
        },
    };
    if let Some(docs) = clusters.remove(&name) {
        let (full, plain): (Vec<Doc>, Vec<Doc>) = docs.into_iter().partition(|d| d.full);
        let completed = one(full)?;
        match (one(plain)?, completed) {
            (Some(d), completed) => {
                out.sources.insert("cluster".into(), d.at);
                out.cluster = Some(d.value);
                if let Some(c) = completed {
                    out.sources.insert("completed".into(), c.at);
                    out.completed = Some(c.value);
                }
            }
            // Only the full form was given: every default is written out in it, so it serves as the cluster too.
            (None, Some(c)) => {
                out.sources.insert("cluster".into(), c.at.clone());
                out.sources.insert("completed".into(), c.at);
                out.cluster = Some(c.value.clone());
                out.completed = Some(c.value);
            }
            (None, None) => {}
        }
    }
    let mut by_name: BTreeMap<String, Vec<Doc>> = BTreeMap::new();
    for doc in groups {
        let owner = doc
            .value
            .pointer("/metadata/labels/kops.k8s.io~1cluster")
            .and_then(Value::as_str);
        if owner.is_none_or(|o| name.is_empty() || o == name) {
            by_name
                .entry(kops::name_of(&doc.value).to_string())
                .or_default()
                .push(doc);
        }
    }
    for (group, docs) in by_name {
        if let Some(d) = one(docs)? {
            out.sources.insert(format!("instancegroup/{group}"), d.at);
            out.instance_groups.push(d.value);
        }
    }
    if out.instance_groups.is_empty() && !name.is_empty() {
        missing.push(not(
            "kops.instancegroups",
            "no kops InstanceGroup was given (`kops get ig --name NAME -o yaml`)",
        ));
    }
    match found.kops_version.take() {
        Some((version, at)) => {
            out.sources.insert("kopsVersion".into(), at);
            out.kops_version = Some(version);
        }
        None => missing.push(not(
            "kops.version",
            "no kops-version.txt was given, so defaults of that kops release are not known",
        )),
    }
    Ok(out)
}

/// One document out of several copies. The state store's wins, since kops goes by it; copies may differ in what kops adds on
/// reading, never in the spec.
fn one(docs: Vec<Doc>) -> Result<Option<Doc>> {
    let mut best: Option<Doc> = None;
    for doc in docs {
        let Some(old) = &best else {
            best = Some(doc);
            continue;
        };
        if canonical(&old.value["spec"]) != canonical(&doc.value["spec"]) {
            return Err(Error::new(
                Kind::BadInput,
                format!(
                    "{} `{}` is given twice, and the two differ",
                    doc.value["kind"].as_str().unwrap_or_default(),
                    kops::name_of(&doc.value)
                ),
            )
            .at(format!("{} and {}", old.at, doc.at))
            .remedy("give only the newer one"));
        }
        if doc.store && !old.store {
            best = Some(doc);
        }
    }
    Ok(best)
}
