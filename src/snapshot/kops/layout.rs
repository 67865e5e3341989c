//! The layout of one cluster's folder in a state store (kops.md 1.1): what is read, what is only named, and what is never opened.

use super::{Marks, name_of, read};
use crate::error::{Error, Kind, Result};
use crate::object::ObjectId;
use crate::snapshot::model::{Kops, NotChecked};
use crate::yaml;
use serde_json::Value;
use std::collections::BTreeMap;

/// What the user wrote.
pub const CONFIG: &str = "config";
/// Folder of the groups, each a key of its own without an extension.
pub const GROUPS: &str = "instancegroup/";
/// The cluster with all defaults; the first is the name since kops 1.22, the second the one until 1.21. A store that was
/// upgraded holds both, and the older one is stale.
pub const COMPLETED: [&str; 2] = ["cluster-completed.spec", "cluster.spec"];
/// Release that last applied the cluster.
pub const VERSION: &str = "kops-version.txt";
/// The add-ons that masters apply.
pub const CHANNEL: &str = "addons/bootstrap-channel.yaml";
/// Objects given beside the cluster.
pub const EXTRA: &str = "clusteraddons/default";
/// Keys, secrets and backups: names at most.
pub const CLOSED: [&str; 3] = ["pki/", "secrets/", "backups/"];
/// At most so many names of closed keys are kept.
pub const CLOSED_MAX: usize = 1000;

/// A text and where it is.
#[derive(Clone, Debug)]
pub struct Text {
    /// The text.
    pub text: String,
    /// Key, URL or file.
    pub place: String,
}

/// What was fetched of one cluster's folder. Keys are relative to it.
#[derive(Clone, Debug, Default)]
pub struct Folder {
    /// Name of the folder, which kops takes for the cluster's name. Slashes may stand in it.
    pub name: String,
    /// Texts by key: [`CONFIG`], groups and what else is wanted.
    pub texts: BTreeMap<String, Text>,
    /// Names of closed keys.
    pub closed: Vec<String>,
    /// What could not be fetched.
    pub not_read: Vec<NotChecked>,
}

/// Makes the documents of a folder into one view.
pub fn assemble(folder: Folder) -> Result<Kops> {
    let mut kops = Kops {
        closed_keys: folder.closed,
        not_read: folder.not_read,
        ..Kops::default()
    };
    let last = folder.name.rsplit('/').next().unwrap_or_default();
    for (key, text) in &folder.texts {
        match key.as_str() {
            CONFIG => {
                let (doc, places) = document(text, "Cluster", Some(last))?;
                kops.sources.insert("cluster".into(), text.place.clone());
                add(&mut kops.places, "cluster", places);
                kops.cluster = Some(doc);
            }
            VERSION => {
                kops.kops_version = Some(text.text.trim().into());
                kops.sources
                    .insert("kopsVersion".into(), text.place.clone());
            }
            CHANNEL => {
                kops.addons = addons(&text.text, &text.place)?;
                kops.sources.insert("addons".into(), text.place.clone());
            }
            EXTRA => {
                kops.extra_objects = extra(&text.text, &text.place)?;
                kops.sources
                    .insert("extraObjects".into(), text.place.clone());
            }
            _ => {}
        }
        if let Some(name) = key.strip_prefix(GROUPS) {
            let (doc, places) = document(text, "InstanceGroup", Some(name))?;
            owner(&doc, last, &text.place)?;
            let id = format!("instancegroup/{name}");
            kops.sources.insert(id.clone(), text.place.clone());
            add(&mut kops.places, &id, places);
            kops.instance_groups.push(doc);
        }
    }
    kops.instance_groups
        .sort_by(|a, b| name_of(a).cmp(name_of(b)));
    let mut given = COMPLETED.iter().filter_map(|k| folder.texts.get(*k));
    if let Some(text) = given.next() {
        let (doc, _) = document(text, "Cluster", Some(last))?;
        kops.sources.insert("completed".into(), text.place.clone());
        kops.completed = Some(doc);
    }
    if let Some(old) = given.next() {
        kops.not_read.push(NotChecked {
            what: "kops.cluster.spec".into(),
            why: format!("{} was written by kops 1.21 or older; the newer cluster-completed.spec beside it is taken", old.place),
        });
    }
    Ok(kops)
}

fn add(all: &mut BTreeMap<String, String>, document: &str, places: BTreeMap<String, String>) {
    all.extend(
        places
            .into_iter()
            .map(|(path, at)| (format!("{document}/{path}"), at)),
    );
}

/// The one document of a key.
fn document(
    text: &Text,
    kind: &str,
    name: Option<&str>,
) -> Result<(Value, BTreeMap<String, String>)> {
    let place = &text.place;
    let bad =
        |what: String, remedy: &str| Error::new(Kind::BadInput, what).at(place).remedy(remedy);
    let mut docs = yaml::manifests(&text.text, place);
    if docs.len() > 1 && docs.iter().all(Result::is_ok) {
        return Err(bad(
            format!(
                "this key holds {} documents, and kops keeps one here",
                docs.len()
            ),
            "give the state store as kops wrote it",
        ));
    }
    if docs.is_empty() {
        return Err(bad(
            "this kops document is empty".into(),
            "look whether the copy of the store is whole",
        ));
    }
    let (doc, line) = docs.remove(0)?;
    let at = format!("{place}:{line}");
    let lines = yaml::places(&text.text).into_iter().next();
    let marks = Marks {
        file: place.clone(),
        lines: lines.map(|l| l.0).unwrap_or_default(),
    };
    let (doc, places) = read(doc, &at, &marks)?;
    if doc["kind"] != kind {
        return Err(bad(
            format!(
                "this key holds the kind `{}`, where `{kind}` belongs",
                doc["kind"].as_str().unwrap_or_default()
            ),
            "give the state store as kops wrote it",
        ));
    }
    if let Some(name) = name {
        named(&doc, name, &at)?;
    }
    Ok((doc, places))
}

/// A key and the name inside must agree (kops.md 8.1): else a copy was mixed up, and kops would apply the one under the name of
/// the other.
pub fn named(doc: &Value, key: &str, at: &str) -> Result<()> {
    if name_of(doc) == key {
        return Ok(());
    }
    Err(Error::new(
        Kind::BadInput,
        format!(
            "the key says `{key}`, the {} inside is named `{}`",
            doc["kind"].as_str().unwrap_or_default(),
            name_of(doc)
        ),
    )
    .at(at)
    .remedy("keep the folder and file names of the state store; they are the names of cluster and groups"))
}

/// The label of a group names its cluster, when there is one.
pub fn owner(doc: &Value, cluster: &str, at: &str) -> Result<()> {
    match label(doc) {
        Some(label) if label != cluster => Err(Error::new(
            Kind::BadInput,
            format!(
                "the group `{}` is kept under the cluster `{cluster}`, its label says `{label}`",
                name_of(doc)
            ),
        )
        .at(at)
        .remedy("give the state store as kops wrote it")),
        _ => Ok(()),
    }
}

/// The label that names the cluster of a group.
pub fn label(doc: &Value) -> Option<&str> {
    doc.pointer("/metadata/labels/kops.k8s.io~1cluster")
        .and_then(Value::as_str)
}

/// Names and versions out of a channel.
pub fn addons(text: &str, place: &str) -> Result<BTreeMap<String, String>> {
    let mut out = BTreeMap::new();
    for item in yaml::manifests(text, place) {
        let (doc, _) = item?;
        let list = doc.pointer("/spec/addons").and_then(Value::as_array);
        for addon in list.into_iter().flatten() {
            if let Some(name) = addon["name"].as_str() {
                // One add-on may stand there once for each range of Kubernetes versions.
                let version = addon["version"].as_str().unwrap_or_default();
                let old = out.entry(name.to_string()).or_insert_with(String::new);
                if old.is_empty() {
                    *old = version.into();
                }
            }
        }
    }
    Ok(out)
}

/// Names of the objects in a text; nothing of them is kept.
pub fn extra(text: &str, place: &str) -> Result<Vec<String>> {
    let mut out = vec![];
    for item in yaml::manifests(text, place) {
        let (doc, _) = item?;
        out.extend(ObjectId::of(&doc).map(|id| id.to_string()));
    }
    out.sort();
    out.dedup();
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER: &str = "apiVersion: kops.k8s.io/v1alpha2\nkind: Cluster\nmetadata: {name: shop.test}\nspec: {cloudProvider: aws}\n";
    const NODES: &str = "apiVersion: kops.k8s.io/v1alpha2\nkind: InstanceGroup\nmetadata: {name: nodes}\nspec: {role: Node}\n";

    fn folder(texts: &[(&str, &str)]) -> Folder {
        Folder {
            name: "team/shop.test".into(),
            texts: texts
                .iter()
                .map(|(key, text)| {
                    (
                        key.to_string(),
                        Text {
                            text: text.to_string(),
                            place: format!("s3://b/team/shop.test/{key}"),
                        },
                    )
                })
                .collect(),
            ..Folder::default()
        }
    }

    #[test]
    fn the_newer_name_of_the_completed_spec_wins_and_the_older_one_is_said() {
        let old = CLUSTER.replace("aws", "aws, kubernetesVersion: 1.18.0");
        let new = CLUSTER.replace("aws", "aws, kubernetesVersion: 1.22.0");
        let kops = assemble(folder(&[
            ("config", CLUSTER),
            ("cluster.spec", &old),
            ("cluster-completed.spec", &new),
        ]))
        .expect("read");
        assert_eq!(
            kops.sources["completed"],
            "s3://b/team/shop.test/cluster-completed.spec"
        );
        assert_eq!(
            kops.completed.expect("full")["spec"]["kubernetesVersion"],
            "1.22.0"
        );
        assert_eq!(kops.not_read[0].what, "kops.cluster.spec");
        let kops = assemble(folder(&[("config", CLUSTER), ("cluster.spec", &old)])).expect("read");
        assert!(kops.completed.is_some() && kops.not_read.is_empty());
    }

    #[test]
    fn a_key_and_the_name_inside_that_differ_are_refused() {
        let e = assemble(folder(&[(
            "config",
            &CLUSTER.replace("shop.test", "other.test"),
        )]))
        .expect_err("cluster");
        assert_eq!(e.at, "s3://b/team/shop.test/config:1");
        assert!(e.message.contains("`shop.test`") && e.message.contains("`other.test`"));
        let e = assemble(folder(&[
            ("config", CLUSTER),
            ("instancegroup/workers", NODES),
        ]))
        .expect_err("group");
        assert!(e.message.contains("`workers`"), "{e:?}");
        let foreign = NODES.replace(
            "{name: nodes}",
            "{name: nodes, labels: {kops.k8s.io/cluster: x.test}}",
        );
        let e = assemble(folder(&[
            ("config", CLUSTER),
            ("instancegroup/nodes", &foreign),
        ]))
        .expect_err("label");
        assert!(e.message.contains("`x.test`"), "{e:?}");
        let e = assemble(folder(&[("config", NODES)])).expect_err("kind");
        assert!(
            e.message
                .contains("the kind `InstanceGroup`, where `Cluster` belongs"),
            "{e:?}"
        );
        let two = format!("{CLUSTER}---\n{NODES}");
        let e = assemble(folder(&[("config", &two)])).expect_err("two");
        assert!(e.message.contains("2 documents"), "{e:?}");
        let e = assemble(folder(&[("config", "# nothing\n")])).expect_err("empty");
        assert!(e.message.contains("empty"), "{e:?}");
    }

    #[test]
    fn add_ons_and_extra_objects_are_kept_by_name_alone() {
        let channel = "kind: Addons\nmetadata: {name: bootstrap}\nspec:\n  addons:\n  - name: coredns.addons.k8s.io\n    manifest: x.yaml\n  - {name: core.addons.k8s.io, version: 1.4.0}\n";
        let extra = "apiVersion: v1\nkind: Secret\nmetadata: {name: pull, namespace: kube-system}\ndata: {a: Q0FOQVJZ}\n";
        let kops = assemble(folder(&[
            ("config", CLUSTER),
            ("addons/bootstrap-channel.yaml", channel),
            ("clusteraddons/default", extra),
            ("kops-version.txt", "1.22.6\n"),
        ]))
        .expect("read");
        assert_eq!(kops.addons["core.addons.k8s.io"], "1.4.0");
        assert_eq!(kops.addons["coredns.addons.k8s.io"], "");
        assert_eq!(kops.extra_objects, ["secret/kube-system/pull"]);
        assert_eq!(kops.kops_version.as_deref(), Some("1.22.6"));
        assert!(
            !serde_json::to_string(&kops)
                .expect("json")
                .contains("Q0FOQVJZ")
        );
        assert_eq!(
            kops.places["cluster/spec.cloudProvider"],
            "s3://b/team/shop.test/config:4:23"
        );
    }
}
