//! The snapshot on disk: plain files with deterministic bytes, so that two snapshots can be compared with `diff`.
//!
//! ```text
//! manifest.json                              {"format":1,"what":"crossfade.dev/snapshot","files":[..]}
//! kops/cluster.json kops/instancegroups.json kops/completed.json kops/sources.json
//! blue/version.json identity.json kinds.json helm.json blue/objects/<kind>.<group>.jsonl
//! green/ (the same, when there is a green)
//! aws/inventory.json
//! dns/<zone name>.<zone id>.jsonl            first line the zone, then one record set a line, in Route 53's order
//! not_checked.json
//! ```

use super::model::{Cluster, FORMAT, Kops, NotChecked, Snapshot, ZoneRecords};
use crate::error::{Error, Kind, Result};
use crate::object::{ObjectId, canonical, sha256_hex};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const WHAT: &str = "crossfade.dev/snapshot";
const MANIFEST: &str = "manifest.json";

/// Writes a snapshot as a folder. The folder appears whole or not at all; an older snapshot of that name is replaced,
/// anything else in its place is refused.
pub fn write(dir: &Path, snapshot: &Snapshot) -> Result<()> {
    let files = render(snapshot)?;
    let fail = |e: std::io::Error| {
        Error::new(
            Kind::BadInput,
            format!("the snapshot cannot be written: {e}"),
        )
        .at(dir.display().to_string())
        .remedy("name a folder that can be written, on a disk with room")
    };
    if dir.exists() && !dir.join(MANIFEST).is_file() {
        let empty = dir.is_dir() && std::fs::read_dir(dir).map_err(fail)?.next().is_none();
        if !empty {
            return Err(Error::new(
                Kind::BadInput,
                "there is something else where the snapshot would go",
            )
            .at(dir.display().to_string())
            .remedy("name a new folder, or one that holds a snapshot"));
        }
    }
    let beside = |what: &str| -> PathBuf {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        dir.with_file_name(format!(".{name}.{what}-{}", std::process::id()))
    };
    let (fresh, old) = (beside("new"), beside("old"));
    let result = (|| -> std::io::Result<()> {
        for (name, text) in &files {
            let path = fresh.join(name);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            let file = std::fs::File::create(&path)?;
            std::io::Write::write_all(&mut &file, text.as_bytes())?;
            file.sync_all()?;
        }
        if dir.exists() {
            std::fs::rename(dir, &old)?;
        }
        std::fs::rename(&fresh, dir)?;
        if old.exists() {
            std::fs::remove_dir_all(&old)?;
        }
        Ok(())
    })();
    result.map_err(|e| {
        // Only our own temporary folder; its loss is the aim, so a second failure adds nothing.
        std::fs::remove_dir_all(&fresh).ok();
        if !dir.exists() && old.exists() {
            std::fs::rename(&old, dir).ok();
        }
        fail(e)
    })
}

/// All files of a snapshot by relative name.
fn render(snapshot: &Snapshot) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    if let Some(cluster) = &snapshot.kops.cluster {
        files.insert("kops/cluster.json".into(), pretty(cluster)?);
    }
    if let Some(completed) = &snapshot.kops.completed {
        files.insert("kops/completed.json".into(), pretty(completed)?);
    }
    files.insert(
        "kops/instancegroups.json".into(),
        pretty(&snapshot.kops.instance_groups)?,
    );
    files.insert(
        "kops/sources.json".into(),
        pretty(&json!({
            "kopsVersion": snapshot.kops.kops_version,
            "sources": snapshot.kops.sources,
            "places": snapshot.kops.places,
            "addons": snapshot.kops.addons,
            "extraObjects": snapshot.kops.extra_objects,
            "closedKeys": snapshot.kops.closed_keys,
        }))?,
    );
    cluster_files("blue", &snapshot.blue, &mut files)?;
    if let Some(green) = &snapshot.green {
        cluster_files("green", green, &mut files)?;
    }
    if let Some(aws) = &snapshot.aws {
        files.insert("aws/inventory.json".into(), pretty(aws)?);
    }
    for zone in &snapshot.zones {
        let name = format!(
            "dns/{}.{}.jsonl",
            safe(zone.zone.name.trim_end_matches('.')),
            safe(&zone.zone.id)
        );
        let mut text = line(&zone.zone)?;
        for record in &zone.records {
            text.push_str(&line(record)?);
        }
        if files.insert(name.clone(), text).is_some() {
            return Err(Error::new(Kind::BadInput, "two zones have the same name and id").at(name));
        }
    }
    files.insert("not_checked.json".into(), pretty(&snapshot.not_checked)?);
    if let Some(terraform) = &snapshot.terraform {
        files.insert("terraform.json".into(), pretty(terraform)?);
    }
    // A sum for each file: half a copy, or an edit, is no snapshot of anything.
    let sums: BTreeMap<&String, String> = files.iter().map(|(n, t)| (n, sha256_hex(t))).collect();
    let manifest = pretty(
        &json!({"format": FORMAT, "what": WHAT, "taken": snapshot.taken, "files": files.keys().collect::<Vec<_>>(), "sha256": sums}),
    )?;
    files.insert(MANIFEST.into(), manifest);
    Ok(files)
}

fn cluster_files(
    side: &str,
    cluster: &Cluster,
    files: &mut BTreeMap<String, String>,
) -> Result<()> {
    files.insert(format!("{side}/version.json"), pretty(&cluster.version)?);
    files.insert(format!("{side}/identity.json"), pretty(&cluster.identity)?);
    files.insert(format!("{side}/kinds.json"), pretty(&cluster.kinds)?);
    if !cluster.helm.is_empty() {
        files.insert(format!("{side}/helm.json"), pretty(&cluster.helm)?);
    }
    let mut by_file: BTreeMap<String, Vec<(ObjectId, String)>> = BTreeMap::new();
    for object in &cluster.objects {
        let id = ObjectId::of(object).ok_or_else(|| {
            Error::new(
                Kind::Bug,
                "an object of the snapshot has no apiVersion, kind or name",
            )
            .at(side)
        })?;
        let group = id.group();
        let dot = if group.is_empty() { "" } else { "." };
        let name = format!(
            "{side}/objects/{}{dot}{}.jsonl",
            safe(&id.kind.to_lowercase()),
            safe(group)
        );
        by_file
            .entry(name)
            .or_default()
            .push((id, canonical(object) + "\n"));
    }
    for (name, mut lines) in by_file {
        lines.sort();
        files.insert(name, lines.into_iter().map(|(_, l)| l).collect());
    }
    Ok(())
}

/// A name as one path part: nothing that leaves the folder, whatever an object or zone is called.
fn safe(name: &str) -> String {
    let mut out: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "._-".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    if out.starts_with('.') {
        out.insert(0, '_');
    }
    out
}

fn value<T: Serialize>(v: &T) -> Result<Value> {
    serde_json::to_value(v)
        .map_err(|e| Error::new(Kind::Bug, format!("the snapshot is no JSON: {e}")))
}

fn line<T: Serialize>(v: &T) -> Result<String> {
    Ok(canonical(&value(v)?) + "\n")
}

/// Sorted keys, indented: these files are read by people.
fn pretty<T: Serialize>(v: &T) -> Result<String> {
    let sorted: Value = serde_json::from_str(&canonical(&value(v)?))
        .map_err(|e| Error::new(Kind::Bug, format!("the snapshot is no JSON: {e}")))?;
    let text = serde_json::to_string_pretty(&sorted)
        .map_err(|e| Error::new(Kind::Bug, format!("the snapshot is no JSON: {e}")))?;
    Ok(text + "\n")
}

/// Reads a snapshot folder.
pub fn read(dir: &Path) -> Result<Snapshot> {
    let r = Reader { dir };
    if !dir.join(MANIFEST).is_file() {
        return Err(Error::new(
            Kind::BadInput,
            "this is no snapshot: it has no manifest.json",
        )
        .at(dir.display().to_string())
        .remedy("name the folder that `crossfade discover` wrote"));
    }
    let manifest: Value = r.json(MANIFEST)?;
    if manifest["what"] != WHAT || manifest["format"] != FORMAT {
        let found = format!(
            "{} format {}",
            manifest["what"].as_str().unwrap_or("unknown"),
            manifest["format"]
        );
        return Err(Error::new(
            Kind::BadInput,
            format!("the snapshot is of another format ({found})"),
        )
        .at(dir.join(MANIFEST).display().to_string())
        .remedy(format!(
            "this crossfade reads {WHAT} format {FORMAT}: run `crossfade discover` again"
        )));
    }
    let names: Vec<String> = manifest["files"]
        .as_array()
        .map(|a| {
            a.iter()
                .filter_map(|v| v.as_str().map(String::from))
                .collect()
        })
        .unwrap_or_default();
    for name in &names {
        let inside = Path::new(name)
            .components()
            .all(|c| matches!(c, std::path::Component::Normal(_)));
        if !inside || !dir.join(name).is_file() {
            return Err(
                Error::new(Kind::BadInput, format!("the snapshot lacks {name}"))
                    .at(dir.display().to_string())
                    .remedy("copy the whole folder, or run `crossfade discover` again"),
            );
        }
    }
    for (name, sum) in manifest["sha256"].as_object().into_iter().flatten() {
        if names.contains(name) && sum.as_str() != Some(&sha256_hex(r.text(name)?)) {
            return Err(Error::new(
                Kind::BadInput,
                format!("the snapshot is damaged or was edited: {name} is not what discover wrote"),
            )
            .at(dir.join(name).display().to_string())
            .remedy("copy the whole folder again, or run `crossfade discover` again"));
        }
    }
    let has = |name: &str| names.iter().any(|n| n == name);
    let sources: Value = r.json("kops/sources.json")?;
    fn part<T: serde::de::DeserializeOwned + Default>(v: &Value) -> T {
        serde_json::from_value(v.clone()).unwrap_or_default()
    }
    let mut zones = vec![];
    for name in names.iter().filter(|n| n.starts_with("dns/")) {
        let text = r.text(name)?;
        let mut lines = text.lines().enumerate();
        let (_, first) = lines.next().ok_or_else(|| r.bad(name, 1, "it is empty"))?;
        zones.push(ZoneRecords {
            zone: r.parse(name, 1, first)?,
            records: lines
                .map(|(i, l)| r.parse(name, i + 1, l))
                .collect::<Result<_>>()?,
        });
    }
    zones.sort_by(|a, b| (&a.zone.name, &a.zone.id).cmp(&(&b.zone.name, &b.zone.id)));
    Ok(Snapshot {
        kops: Kops {
            cluster: has("kops/cluster.json")
                .then(|| r.json("kops/cluster.json"))
                .transpose()?,
            completed: has("kops/completed.json")
                .then(|| r.json("kops/completed.json"))
                .transpose()?,
            instance_groups: r.json("kops/instancegroups.json")?,
            kops_version: part(&sources["kopsVersion"]),
            sources: part(&sources["sources"]),
            places: part(&sources["places"]),
            addons: part(&sources["addons"]),
            extra_objects: part(&sources["extraObjects"]),
            closed_keys: part(&sources["closedKeys"]),
            not_read: vec![],
        },
        blue: r.cluster("blue", &names)?,
        green: has("green/kinds.json")
            .then(|| r.cluster("green", &names))
            .transpose()?,
        aws: has("aws/inventory.json")
            .then(|| r.json("aws/inventory.json"))
            .transpose()?,
        zones,
        not_checked: r.json::<Vec<NotChecked>>("not_checked.json")?,
        taken: manifest["taken"].as_str().map(String::from),
        terraform: has("terraform.json")
            .then(|| r.json("terraform.json"))
            .transpose()?,
    })
}

struct Reader<'a> {
    dir: &'a Path,
}

impl Reader<'_> {
    fn bad(&self, name: &str, line: usize, why: &str) -> Error {
        Error::new(Kind::BadInput, format!("the snapshot is damaged: {why}"))
            .at(format!("{}:{line}", self.dir.join(name).display()))
            .remedy("run `crossfade discover` again")
    }
    fn text(&self, name: &str) -> Result<String> {
        std::fs::read_to_string(self.dir.join(name)).map_err(|e| self.bad(name, 1, &e.to_string()))
    }
    fn parse<T: DeserializeOwned>(&self, name: &str, line: usize, text: &str) -> Result<T> {
        serde_json::from_str(text)
            .map_err(|e| self.bad(name, line.max(e.line() + line - 1), &e.to_string()))
    }
    fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        self.parse(name, 1, &self.text(name)?)
    }
    fn cluster(&self, side: &str, names: &[String]) -> Result<Cluster> {
        let mut objects: Vec<(ObjectId, Value)> = vec![];
        let folder = format!("{side}/objects/");
        for name in names.iter().filter(|n| n.starts_with(&folder)) {
            for (i, line) in self.text(name)?.lines().enumerate() {
                let object: Value = self.parse(name, i + 1, line)?;
                let id = ObjectId::of(&object)
                    .ok_or_else(|| self.bad(name, i + 1, "an object without a name"))?;
                objects.push((id, object));
            }
        }
        objects.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Cluster {
            version: self.json(&format!("{side}/version.json"))?,
            identity: self.json(&format!("{side}/identity.json"))?,
            kinds: self.json(&format!("{side}/kinds.json"))?,
            objects: objects.into_iter().map(|(_, o)| o).collect(),
            helm: names
                .iter()
                .find(|n| **n == format!("{side}/helm.json"))
                .map(|n| self.json(n))
                .transpose()?
                .unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::dns::{RecordSet, Zone};

    fn sample() -> Snapshot {
        let mut s = Snapshot {
            zones: vec![ZoneRecords {
                zone: Zone {
                    id: "Z1".into(),
                    name: "shop.test.".into(),
                    private: false,
                },
                records: vec![RecordSet {
                    name: "*.shop.test.".into(),
                    rtype: "A".into(),
                    ttl: Some(5),
                    values: vec!["192.0.2.1".into()],
                    alias: None,
                    set_identifier: None,
                    routing: Default::default(),
                }],
            }],
            not_checked: vec![NotChecked {
                what: "aws.inventory".into(),
                why: "no input".into(),
            }],
            ..Snapshot::default()
        };
        for (api, kind, name) in [
            ("v1", "ConfigMap", "b"),
            ("v1", "ConfigMap", "a"),
            ("shop.test/v1", "Promotion", "s"),
        ] {
            s.blue.objects.push(json!({"kind": kind, "apiVersion": api, "metadata": {"namespace": "n", "name": name}}));
        }
        s.blue.objects.sort_by_key(ObjectId::of);
        s
    }

    fn bytes(dir: &Path) -> BTreeMap<String, Vec<u8>> {
        let mut out = BTreeMap::new();
        let mut todo = vec![dir.to_path_buf()];
        while let Some(d) = todo.pop() {
            for e in std::fs::read_dir(&d).expect("folder") {
                let p = e.expect("entry").path();
                if p.is_dir() {
                    todo.push(p);
                } else {
                    let name = p.strip_prefix(dir).expect("inside").display().to_string();
                    out.insert(name, std::fs::read(&p).expect("file"));
                }
            }
        }
        out
    }

    #[test]
    fn what_is_written_is_read_back_and_the_bytes_never_vary() {
        let tmp = tempfile::tempdir().expect("dir");
        let (a, b) = (tmp.path().join("a"), tmp.path().join("b"));
        write(&a, &sample()).expect("written");
        assert_eq!(read(&a).expect("read"), sample());
        write(&b, &read(&a).expect("read")).expect("written");
        assert_eq!(bytes(&a), bytes(&b));
        let names = bytes(&a);
        for name in [
            "blue/objects/configmap.jsonl",
            "blue/objects/promotion.shop.test.jsonl",
            "dns/shop.test.Z1.jsonl",
        ] {
            assert!(names.contains_key(name), "{:?}", names.keys());
        }
        write(&a, &Snapshot::default()).expect("replaced");
        assert_eq!(
            read(&a).expect("read"),
            Snapshot::default(),
            "nothing of the older snapshot stays"
        );
        assert_eq!(
            std::fs::read_dir(tmp.path()).expect("folder").count(),
            2,
            "no temporary folder stays"
        );
    }

    #[test]
    fn another_format_a_missing_file_a_torn_line_and_a_foreign_folder_are_refused() {
        let tmp = tempfile::tempdir().expect("dir");
        let dir = tmp.path().join("s");
        let fresh = || write(&dir, &sample()).expect("written");
        let refused = |why: &str| {
            let e = read(&dir).expect_err(why);
            assert_eq!(e.kind, Kind::BadInput);
            assert!(!e.remedy.is_empty());
            e
        };
        assert!(refused("absent").message.contains("no snapshot"));
        fresh();
        let manifest = std::fs::read_to_string(dir.join(MANIFEST)).expect("there");
        std::fs::write(
            dir.join(MANIFEST),
            manifest.replace("\"format\": 1", "\"format\": 2"),
        )
        .expect("written");
        assert!(refused("format").message.contains("another format"));
        fresh();
        std::fs::remove_file(dir.join("dns/shop.test.Z1.jsonl")).expect("removed");
        assert!(
            refused("missing")
                .message
                .contains("lacks dns/shop.test.Z1.jsonl")
        );
        fresh();
        std::fs::write(dir.join("blue/objects/configmap.jsonl"), "{}\n{\"kind\":")
            .expect("written");
        assert!(refused("torn").at.contains("configmap.jsonl"));
        fresh();
        std::fs::write(dir.join("blue/objects/configmap.jsonl"), "").expect("emptied");
        let e = refused("a copy that broke off would plan a company without its ConfigMaps");
        assert!(e.message.contains("is not what discover wrote"), "{e:?}");
        // A snapshot of before there were sums: the line that cannot be read is named.
        let mut old: Value =
            serde_json::from_str(&std::fs::read_to_string(dir.join(MANIFEST)).expect("there"))
                .expect("JSON");
        old.as_object_mut().map(|o| o.remove("sha256"));
        std::fs::write(dir.join(MANIFEST), old.to_string()).expect("written");
        std::fs::write(dir.join("blue/objects/configmap.jsonl"), "{}\n{\"kind\":").expect("torn");
        assert!(refused("torn").at.contains("configmap.jsonl:1"));
        std::fs::remove_dir_all(&dir).expect("removed");
        std::fs::create_dir_all(dir.join("photos")).expect("made");
        assert_eq!(
            write(&dir, &sample()).expect_err("foreign").kind,
            Kind::BadInput
        );
        assert!(
            dir.join("photos").is_dir(),
            "somebody else's folder is left alone"
        );
    }
}
