//! Blue's objects by kind and by name. A plan asks for them thousands of times, and a walk over 50,000 objects is some 100 ms of waiting for memory.

use super::model::{Cluster, Snapshot};
use crate::object::ObjectId;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Deref;

/// A snapshot with the roll of blue's objects: it answers all that a [`Snapshot`] answers.
pub struct Found<'a> {
    snapshot: &'a Snapshot,
    /// Blue's API server.
    pub blue: Roll<'a>,
}

impl<'a> Found<'a> {
    /// Makes the roll.
    pub fn of(snapshot: &'a Snapshot) -> Found<'a> {
        Found {
            snapshot,
            blue: Roll::of(&snapshot.blue),
        }
    }
    /// The snapshot itself, for as long as it lives.
    pub fn snapshot(&self) -> &'a Snapshot {
        self.snapshot
    }
}

impl Deref for Found<'_> {
    type Target = Snapshot;
    fn deref(&self) -> &Snapshot {
        self.snapshot
    }
}

/// An object with what is asked of it most.
pub struct Entry<'a> {
    /// As spelled everywhere: `deployment/orders/orders`.
    pub name: String,
    /// Its id.
    pub id: ObjectId,
    /// The object, with status.
    pub object: &'a Value,
    /// Another object makes it (a Pod of a ReplicaSet, a Job of a CronJob).
    pub child: bool,
}

/// The objects of a cluster, in its order: it answers all that a [`Cluster`] answers.
pub struct Roll<'a> {
    cluster: &'a Cluster,
    entries: Vec<Entry<'a>>,
    kinds: BTreeMap<&'a str, Vec<&'a Value>>,
}

impl Deref for Roll<'_> {
    type Target = Cluster;
    fn deref(&self) -> &Cluster {
        self.cluster
    }
}

impl<'a> Roll<'a> {
    fn of(cluster: &'a Cluster) -> Roll<'a> {
        let mut kinds: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        let mut entries = Vec::with_capacity(cluster.objects.len());
        for object in &cluster.objects {
            if let Some(kind) = object.get("kind").and_then(Value::as_str) {
                kinds.entry(kind).or_default().push(object);
            }
            if let Some(id) = ObjectId::of(object) {
                entries.push(Entry {
                    name: id.to_string(),
                    id,
                    object,
                    child: object
                        .get("metadata")
                        .and_then(|m| m.get("ownerReferences"))
                        .and_then(Value::as_array)
                        .is_some_and(|o| !o.is_empty()),
                });
            }
        }
        Roll {
            cluster,
            entries,
            kinds,
        }
    }
    /// Every object that has an id, one given twice too.
    pub fn entries(&self) -> &[Entry<'a>] {
        &self.entries
    }
    /// [`Cluster::of_kind`] without a walk.
    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = &'a Value> {
        self.kinds.get(kind).into_iter().flatten().copied()
    }
    /// [`Cluster::find`] with a walk over one kind only.
    pub fn find(&self, kind: &str, namespace: Option<&str>, name: &str) -> Option<&'a Value> {
        self.of_kind(kind).find(|o| {
            let meta = &o["metadata"];
            meta["name"] == name
                && meta["namespace"].as_str() == namespace
                && o["apiVersion"].is_string()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_roll_answers_what_the_cluster_answers_for_objects_given_twice_and_without_a_name_too() {
        let mut s = Snapshot::default();
        let pod = |name: &str, n: u32| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "a"}, "n": n});
        s.blue.objects = vec![
            pod("x", 1),
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}}),
            pod("x", 2),
            json!({"kind": "Pod", "metadata": {"name": "nameless", "namespace": "a"}}),
            json!({"metadata": {}}),
            json!("nonsense"),
        ];
        let found = Found::of(&s);
        for kind in ["Pod", "Node", "Service"] {
            let asked: Vec<_> = found.blue.of_kind(kind).collect();
            assert_eq!(asked, s.blue.of_kind(kind).collect::<Vec<_>>(), "{kind}");
        }
        for (kind, ns, name) in [
            ("Pod", Some("a"), "x"),
            ("Pod", None, "x"),
            ("Node", None, "x"),
            ("Pod", Some("a"), "nameless"),
        ] {
            assert_eq!(
                found.blue.find(kind, ns, name),
                s.blue.find(kind, ns, name),
                "{kind} {ns:?} {name}"
            );
        }
        assert_eq!(
            found.blue.find("Pod", Some("a"), "x").map(|o| &o["n"]),
            Some(&json!(1))
        );
        let names: Vec<&str> = found
            .blue
            .entries()
            .iter()
            .map(|e| e.name.as_str())
            .collect();
        assert_eq!(names, ["pod/a/x", "node/x", "pod/a/x"]);
    }
}
