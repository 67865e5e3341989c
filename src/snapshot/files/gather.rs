//! Finds the files, reads their documents and sorts them by what they are.

use crate::error::{Error, Kind, Result};
use crate::snapshot::kops::{self, Marks, layout};
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
    /// Name of the cluster in whose folder of a state store it lies: that is what kops itself goes by.
    pub store: Option<String>,
    /// File as shown to people, and the place of each leaf, for kops documents.
    pub marks: Marks,
}

/// What a cluster's folder of a state store says beside its documents.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// Version and where it stands.
    pub version: Option<(String, String)>,
    /// Add-ons and where they stand.
    pub addons: Option<(BTreeMap<String, String>, String)>,
    /// Names of extra objects and where they stand.
    pub extra: Option<(Vec<String>, String)>,
    /// Names of closed keys.
    pub closed: Vec<String>,
    /// An older completed spec that was not read.
    pub older: Option<String>,
}

/// Everything that was read.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub kops: Vec<Doc>,
    /// A version file that lies in no state store: of the only cluster there is.
    pub kops_version: Option<(String, String)>,
    /// By name of the cluster.
    pub stores: BTreeMap<String, Beside>,
    pub kube: Vec<Doc>,
    pub kubeconfig: Vec<Doc>,
    pub api_lists: Vec<Doc>,
    pub aws: Vec<Doc>,
    pub terraform: Vec<Doc>,
    pub unused: Vec<String>,
}

impl Found {
    pub fn is_empty(&self) -> bool {
        self.kops.is_empty()
            && self.kube.is_empty()
            && self.api_lists.is_empty()
            && self.aws.is_empty()
            && self.terraform.is_empty()
    }
}

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
            file(path, &base, None, &mut found)?;
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
    if dir.join(layout::CONFIG).is_file() && dir.join("instancegroup").is_dir() {
        return store(dir, base, found);
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
        } else if ["yaml", "yml", "json", "tfstate"]
            .iter()
            .any(|e| path.extension().is_some_and(|x| x == *e))
        {
            file(&path, base, None, found)?;
        } else {
            found.unused.push(format!(
                "{}: not YAML or JSON by its name",
                shown(&path, base)
            ));
        }
    }
    Ok(())
}

/// One cluster's folder of a state store (kops.md 1.1).
fn store(dir: &Path, base: &Path, found: &mut Found) -> Result<()> {
    let text = |path: &Path| std::fs::read_to_string(path).map_err(|e| unreadable(path, &e));
    let config = dir.join(layout::CONFIG);
    // The name inside is the cluster's; the folder has the same one, unless it was named by hand on the command line.
    let first = yaml::manifests(&text(&config)?, &config.display().to_string())
        .into_iter()
        .next();
    let name = match first {
        Some(doc) => kops::name_of(&doc?.0).to_string(),
        None => String::new(),
    };
    let before = found.kops.len();
    file(&config, base, Some(&name), found)?;
    let at = shown(&config, base);
    let mut documents = found.kops[before..].iter();
    let (Some(cluster), None) = (documents.next(), documents.next()) else {
        return Err(Error::new(
            Kind::BadInput,
            "`config` of a state store holds exactly one kops Cluster",
        )
        .at(at)
        .remedy("give the state store as kops wrote it"));
    };
    if cluster.value["kind"] != "Cluster" {
        return Err(Error::new(
            Kind::BadInput,
            "`config` of a state store holds the Cluster",
        )
        .at(&cluster.at)
        .remedy("give the state store as kops wrote it"));
    }
    if dir != base {
        let key = dir.file_name().unwrap_or_default().to_string_lossy();
        layout::named(&cluster.value, &key, &cluster.at)?;
    }
    let mut groups: Vec<PathBuf> = std::fs::read_dir(dir.join("instancegroup"))
        .and_then(|d| d.map(|e| e.map(|e| e.path())).collect())
        .map_err(|e| unreadable(dir, &e))?;
    groups.sort();
    for path in groups.iter().filter(|p| p.is_file()) {
        let before = found.kops.len();
        file(path, base, Some(&name), found)?;
        let key = path.file_name().unwrap_or_default().to_string_lossy();
        for group in &found.kops[before..] {
            layout::named(&group.value, &key, &group.at)?;
            layout::owner(&group.value, &name, &group.at)?;
        }
    }
    let mut beside = Beside::default();
    let mut completed = layout::COMPLETED
        .iter()
        .map(|k| dir.join(k))
        .filter(|p| p.is_file());
    if let Some(path) = completed.next() {
        file(&path, base, Some(&name), found)?;
    }
    beside.older = completed.next().map(|p| shown(&p, base));
    let wanted = |key: &str| Some(dir.join(key)).filter(|p| p.is_file());
    if let Some(path) = wanted(layout::VERSION) {
        beside.version = Some((text(&path)?.trim().into(), shown(&path, base)));
    }
    if let Some(path) = wanted(layout::CHANNEL) {
        let place = shown(&path, base);
        beside.addons = Some((layout::addons(&text(&path)?, &place)?, place));
    }
    if let Some(path) = wanted(layout::EXTRA) {
        let place = shown(&path, base);
        beside.extra = Some((layout::extra(&text(&path)?, &place)?, place));
    }
    for closed in layout::CLOSED {
        let mut names = vec![];
        list(&dir.join(closed), closed.trim_end_matches('/'), &mut names);
        names.sort();
        beside.closed.extend(names);
    }
    beside.closed.truncate(layout::CLOSED_MAX);
    found.stores.insert(name, beside);
    Ok(())
}

/// Names below a closed folder. What cannot be listed has no name to tell; nothing is opened either way.
fn list(dir: &Path, name: &str, out: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let inner = format!("{name}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            list(&entry.path(), &inner, out);
        } else {
            out.push(inner);
        }
    }
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

fn file(path: &Path, base: &Path, store: Option<&str>, found: &mut Found) -> Result<()> {
    let bytes = std::fs::read(path).map_err(|e| unreadable(path, &e))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable(path, &"it is not text (UTF-8)"))?;
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_string();
    let place = shown(path, base);
    if name == layout::VERSION {
        found.kops_version = Some((text.trim().to_string(), place));
        return Ok(());
    }
    // `kops get cluster --full` begins with a comment block; the state store says it by the name.
    let full = layout::COMPLETED.contains(&name.as_str()) || begins_with_comment(&text);
    let read: Vec<(Value, usize)> = yaml::manifests(&text, &path.display().to_string())
        .into_iter()
        .collect::<Result<_>>()?;
    if read.is_empty() {
        found.unused.push(format!("{place}: empty"));
    }
    // Places cost a second reading; only kops documents want them.
    let places = if read.iter().any(|(v, _)| holds_kops(v)) {
        yaml::places(&text)
    } else {
        vec![]
    };
    let known = places.len() == read.len();
    let mut places = places.into_iter();
    for (value, line) in read {
        let (lines, line) = match places.next().filter(|_| known) {
            Some((lines, own)) => (lines, own),
            None => (Value::Null, line),
        };
        let doc = Doc {
            value,
            at: format!("{place}:{line}"),
            file: name.clone(),
            full,
            store: store.map(String::from),
            marks: Marks {
                file: place.clone(),
                lines,
            },
        };
        sort(doc, found)?;
    }
    Ok(())
}

fn begins_with_comment(text: &str) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.trim_start().starts_with("//")
}

fn holds_kops(value: &Value) -> bool {
    kops::is_kops(value)
        || value["items"]
            .as_array()
            .is_some_and(|items| items.iter().any(kops::is_kops))
}

/// Line of the first leaf of marks.
fn first_line(lines: &Value) -> Option<u64> {
    kops::leaves(lines)
        .into_iter()
        .filter_map(|(_, at)| at.as_str()?.split(':').next()?.parse().ok())
        .min()
}

/// Puts a document where it belongs; a list is taken apart.
fn sort(doc: Doc, found: &mut Found) -> Result<()> {
    let kind = doc
        .value
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_string();
    if kops::is_kops(&doc.value) && !is_list(&doc.value, &kind) {
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
        if is_list(&doc.value, &kind) {
            return items(doc, &api, &kind, found);
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
    } else if super::terraform::is_state(&doc.value) {
        found.terraform.push(doc);
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

/// A custom resource may have a field `items` of its own; a list has no name.
fn is_list(value: &Value, kind: &str) -> bool {
    kind.ends_with("List") && value["items"].is_array() && value.pointer("/metadata/name").is_none()
}

/// The items of a list, each as if it stood alone.
fn items(mut doc: Doc, api: &str, kind: &str, found: &mut Found) -> Result<()> {
    let next = doc.value.pointer("/metadata/continue");
    if next.and_then(Value::as_str).is_some_and(|c| !c.is_empty()) {
        return Err(Error::new(
            Kind::BadInput,
            format!("this {kind} is one page of several"),
        )
        .at(&doc.at)
        .remedy("dump it whole: `kubectl get KIND -A -o json`"));
    }
    let item_kind = kind.trim_end_matches("List");
    let Value::Array(items) = doc.value["items"].take() else {
        return Ok(());
    };
    for (i, mut value) in items.into_iter().enumerate() {
        // Items of a typed list carry neither kind nor apiVersion.
        if let Some(o) = value.as_object_mut().filter(|_| !item_kind.is_empty()) {
            o.entry("apiVersion").or_insert_with(|| api.into());
            o.entry("kind").or_insert_with(|| item_kind.into());
        }
        let lines = match doc.marks.lines.pointer_mut(&format!("/items/{i}")) {
            Some(lines) => lines.take(),
            None => Value::Null,
        };
        let at = match first_line(&lines) {
            Some(line) => format!("{}:{line}", doc.marks.file),
            None => doc.at.clone(),
        };
        let item = Doc {
            value,
            at,
            file: doc.file.clone(),
            full: doc.full,
            store: doc.store.clone(),
            marks: Marks {
                file: doc.marks.file.clone(),
                lines,
            },
        };
        sort(item, found)?;
    }
    Ok(())
}
