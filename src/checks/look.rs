//! What several checks look at: fields of objects, sizes, targets of load balancers.

use super::{BlueObject, Input};
use crate::object::at;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Text at a JSON pointer.
pub(super) fn text<'v>(v: &'v Value, pointer: &str) -> Option<&'v str> {
    at(v, pointer).and_then(Value::as_str)
}

/// Items of an array at a JSON pointer.
pub(super) fn items<'v>(v: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    at(v, pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Annotations of an object.
pub(super) fn annotations(v: &Value) -> impl Iterator<Item = (&str, &str)> {
    at(v, "/metadata/annotations")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(k, v)| Some((k.as_str(), v.as_str()?)))
}

/// `1 name`, `2 names`.
pub(super) fn count(n: usize, what: &str) -> String {
    if n == 1 {
        format!("1 {what}")
    } else {
        format!("{n} {what}s")
    }
}

/// `is` after one, `are` after more.
pub(super) fn are(n: usize) -> &'static str {
    if n == 1 { "is" } else { "are" }
}

/// Bytes of a Kubernetes quantity of storage (`10Gi`, `500M`).
pub(super) fn bytes(quantity: &str) -> Option<u64> {
    let end = quantity
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(quantity.len());
    let n: f64 = quantity[..end].parse().ok()?;
    let unit = match &quantity[end..] {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "Ki" => 1024.0,
        "Mi" => 1024f64.powi(2),
        "Gi" => 1024f64.powi(3),
        "Ti" => 1024f64.powi(4),
        "Pi" => 1024f64.powi(5),
        _ => return None,
    };
    (n >= 0.0).then_some((n * unit) as u64)
}

impl<'a> Input<'a> {
    /// Objects of blue of one kind, whatever becomes of them.
    pub(super) fn of_kind(&self, kind: &str) -> impl Iterator<Item = &'a BlueObject<'a>> {
        let blue = self.blue;
        self.shared.of_kind(kind).iter().map(|n| &blue[*n])
    }
    /// An object of blue by its spelling.
    pub(super) fn object(&self, name: &str) -> Option<&'a BlueObject<'a>> {
        self.blue.iter().find(|o| o.name == name)
    }
    /// Host names that are handed over, with the index of the name.
    pub(super) fn hosts(&self) -> BTreeMap<&'a str, &'a crate::plan::model::Name> {
        self.names.iter().map(|n| (n.host.as_str(), n)).collect()
    }
    /// Ids of the zones in which names are handed over.
    pub(super) fn zone_ids(&self) -> BTreeSet<&'a str> {
        self.names.iter().map(|n| n.zone_id.as_str()).collect()
    }
    /// The zones in which names are handed over.
    pub(super) fn zones(&self) -> Vec<&'a crate::snapshot::model::ZoneRecords> {
        let used = self.zone_ids();
        self.snapshot
            .zones
            .iter()
            .filter(|z| used.contains(z.zone.id.as_str()))
            .collect()
    }
}

impl<'a> BlueObject<'a> {
    /// The object as it is created on green.
    pub(super) fn on_green(&self) -> Option<&'a Value> {
        self.verdict.and_then(|v| v.target.as_ref())
    }
    /// The pod's spec, for kinds that have one.
    pub(super) fn pod(&self) -> Option<&'a Value> {
        self.template()?.get("spec")
    }
    /// `namespace/name`.
    pub(super) fn key(&self) -> String {
        format!(
            "{}/{}",
            self.id.namespace.as_deref().unwrap_or(""),
            self.id.name
        )
    }
    /// Host names of an Ingress, of rules and TLS entries, in order, without duplicates.
    pub(super) fn hosts(&self) -> Vec<String> {
        let rules = items(self.object, "/spec/rules").filter_map(|r| text(r, "/host"));
        let tls = items(self.object, "/spec/tls")
            .flat_map(|t| items(t, "/hosts"))
            .filter_map(Value::as_str);
        let mut seen = BTreeSet::new();
        rules
            .chain(tls)
            .map(str::to_lowercase)
            .filter(|h| !h.is_empty() && seen.insert(h.clone()))
            .collect()
    }
    /// Last part of the image of each container, without tag: `kafka` of `docker.io/bitnami/kafka:3.5`.
    pub(super) fn images(&self) -> Vec<String> {
        self.containers(false)
            .filter_map(|c| text(c, "/image"))
            .map(|i| {
                let path = i.split('@').next().unwrap_or(i);
                let last = path.rsplit('/').next().unwrap_or(path);
                last.split(':').next().unwrap_or(last).to_lowercase()
            })
            .collect()
    }
    /// Command words and arguments of all containers.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &'a str> {
        self.containers(false).flat_map(|c| {
            items(c, "/command")
                .chain(items(c, "/args"))
                .filter_map(Value::as_str)
        })
    }
}

/// Whether a host name is covered by a name of a certificate or a record: equal, or a wildcard one label deep.
pub(super) fn covers(name: &str, host: &str) -> bool {
    let (name, host) = (name.to_lowercase(), host.to_lowercase());
    name == host
        || name
            .strip_prefix("*.")
            .zip(host.split_once('.'))
            .is_some_and(|(zone, (_, rest))| zone == rest)
}

/// Addresses and host names of an object's load balancer, lower case.
pub(super) fn load_balancer(object: &Value) -> Vec<String> {
    items(object, "/status/loadBalancer/ingress")
        .flat_map(|i| [text(i, "/ip"), text(i, "/hostname")])
        .flatten()
        .filter(|t| !t.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// A status with one target.
pub(super) fn status(target: &str) -> Value {
    let key = if target.parse::<std::net::IpAddr>().is_ok() {
        "ip"
    } else {
        "hostname"
    };
    json!({"loadBalancer": {"ingress": [{key: target}]}})
}
