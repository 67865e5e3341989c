//! Where a pod may run: selectors, node affinity, tolerations, and how many of its kind one node or zone takes.

use super::load::Group;
use crate::world::cloud::Taint;
use serde_json::Value;
use std::collections::BTreeMap;

/// Topology key of a node.
pub const HOST: &str = "kubernetes.io/hostname";
/// Topology keys of a zone.
pub const ZONES: [&str; 2] = [
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
];
/// Topology keys of a region.
const REGIONS: [&str; 2] = [
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/region",
];
const TYPES: [&str; 2] = [
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
];

/// One requirement on a label of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Label.
    pub key: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt`, `Lt`.
    pub op: String,
    /// Values.
    pub values: Vec<String>,
}

impl Requirement {
    /// For people.
    pub fn text(&self) -> String {
        match self.op.as_str() {
            "In" => format!("{}={}", self.key, self.values.join("|")),
            "Exists" => self.key.clone(),
            "DoesNotExist" => format!("no {}", self.key),
            op => format!("{} {op} {}", self.key, self.values.join("|")),
        }
    }
}

#[derive(Clone, Debug)]
struct Toleration {
    key: String,
    exists: bool,
    value: String,
    effect: String,
}

/// How many pods of the same kind one domain takes at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Topology key.
    pub key: String,
    /// Pods in each domain.
    pub each: u32,
    /// For people.
    pub why: String,
}

/// Where a pod may run.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    /// All must hold (nodeSelector).
    pub selector: Vec<Requirement>,
    /// One of these must hold, each with all its parts; no condition when empty.
    pub terms: Vec<Vec<Requirement>>,
    tolerations: Vec<Toleration>,
    /// Limits.
    pub limits: Vec<Limit>,
}

fn text(v: &Value) -> String {
    v.as_str().unwrap_or("").to_string()
}
fn items<'v>(v: &'v Value, p: &str) -> impl Iterator<Item = &'v Value> {
    crate::object::at(v, p)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}
fn requirement(v: &Value) -> Requirement {
    Requirement {
        key: text(&v["key"]),
        op: text(&v["operator"]),
        values: items(v, "/values").map(text).collect(),
    }
}

impl Placement {
    /// Runs on every node, tainted or not.
    pub fn everywhere() -> Placement {
        Placement {
            tolerations: vec![Toleration {
                key: String::new(),
                exists: true,
                value: String::new(),
                effect: String::new(),
            }],
            ..Placement::default()
        }
    }
    /// As EKS's own deployments: they tolerate `CriticalAddonsOnly` and nothing else that a worker carries.
    pub fn critical_addon() -> Placement {
        Placement {
            tolerations: vec![Toleration {
                key: "CriticalAddonsOnly".into(),
                exists: true,
                value: String::new(),
                effect: String::new(),
            }],
            ..Placement::default()
        }
    }
    /// From a pod template.
    pub fn of(template: &Value) -> Placement {
        let spec = &template["spec"];
        let mut selector: Vec<Requirement> = spec["nodeSelector"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(k, v)| Requirement {
                key: k.clone(),
                op: "In".into(),
                values: vec![text(v)],
            })
            .collect();
        selector.sort_by(|a, b| a.key.cmp(&b.key));
        let terms = items(
            spec,
            "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms",
        )
        .map(|t| {
            items(t, "/matchExpressions")
                .chain(items(t, "/matchFields"))
                .map(requirement)
                .collect()
        })
        .collect();
        let tolerations = items(spec, "/tolerations")
            .map(|t| Toleration {
                key: text(&t["key"]),
                exists: t["operator"] == "Exists",
                value: text(&t["value"]),
                effect: text(&t["effect"]),
            })
            .collect();
        let labels: BTreeMap<String, String> = template
            .pointer("/metadata/labels")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(k, v)| (k.clone(), text(v)))
            .collect();
        let mut limits = vec![];
        for term in items(
            spec,
            "/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution",
        ) {
            // Only pods of its own kind: what other workloads keep away is not reckoned.
            if selects(&term["labelSelector"], &labels) {
                limits.push(Limit {
                    key: text(&term["topologyKey"]),
                    each: 1,
                    why: "anti-affinity".into(),
                });
            }
        }
        for s in items(spec, "/topologySpreadConstraints") {
            // Without minDomains the skew is counted over the domains that there are, and everything fits somewhere.
            if s["whenUnsatisfiable"] == "DoNotSchedule" && s["minDomains"].as_u64().is_some() {
                limits.push(Limit {
                    key: text(&s["topologyKey"]),
                    each: s["maxSkew"].as_u64().unwrap_or(1) as u32,
                    why: format!("minDomains {}", s["minDomains"]),
                });
            }
        }
        Placement {
            selector,
            terms,
            tolerations,
            limits,
        }
    }

    /// Whether the pod tolerates a taint (one that only prefers is no obstacle).
    pub fn tolerates(&self, taint: &Taint) -> bool {
        taint.effect == "PreferNoSchedule"
            || self.tolerations.iter().any(|t| {
                (t.effect.is_empty() || t.effect == taint.effect)
                    && (t.key.is_empty() && t.exists
                        || t.key == taint.key && (t.exists || t.value == taint.value))
            })
    }

    /// Whether a node of the group in the zone answers selector and affinity.
    pub fn matches(&self, g: &Group, zone: Option<&str>, region: &str) -> bool {
        self.selector.iter().all(|r| holds(r, g, zone, region))
            && (self.terms.is_empty()
                || self
                    .terms
                    .iter()
                    .any(|t| !t.is_empty() && t.iter().all(|r| holds(r, g, zone, region))))
    }

    /// Requirements that no group answers, for people; empty when each alone is answered somewhere.
    pub fn unanswered(&self, groups: &[Group], region: &str) -> Vec<String> {
        let nobody = |r: &&Requirement| {
            !groups.iter().any(|g| {
                if g.zones.is_empty() {
                    return holds(r, g, None, region);
                }
                g.zones.iter().any(|z| holds(r, g, Some(z), region))
            })
        };
        let mut out: Vec<String> = self
            .selector
            .iter()
            .chain(self.terms.iter().flatten())
            .filter(nobody)
            .map(Requirement::text)
            .collect();
        out.sort();
        out.dedup();
        out
    }
}

/// Whether a label selector (never an empty one) matches labels.
fn selects(selector: &Value, labels: &BTreeMap<String, String>) -> bool {
    let pairs = selector["matchLabels"].as_object();
    let exprs: Vec<Requirement> = items(selector, "/matchExpressions")
        .map(requirement)
        .collect();
    if pairs.is_none_or(|p| p.is_empty()) && exprs.is_empty() {
        return selector.is_object();
    }
    pairs
        .into_iter()
        .flatten()
        .all(|(k, v)| labels.get(k).map(String::as_str) == v.as_str())
        && exprs.iter().all(|r| {
            let found = labels.get(&r.key);
            match r.op.as_str() {
                "In" => found.is_some_and(|v| r.values.contains(v)),
                "NotIn" => found.is_none_or(|v| !r.values.contains(v)),
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => false,
            }
        })
}

fn holds(r: &Requirement, g: &Group, zone: Option<&str>, region: &str) -> bool {
    let key = r.key.as_str();
    let found: Vec<&str> = if ZONES.contains(&key) {
        match zone {
            Some(z) => vec![z],
            // Not known: nothing is refused for it.
            None => return r.op != "DoesNotExist",
        }
    } else if REGIONS.contains(&key) {
        if region.is_empty() {
            return r.op != "DoesNotExist";
        }
        vec![region]
    } else if TYPES.contains(&key) {
        let mut all: Vec<&str> = g.types.iter().map(|(n, _)| n.as_str()).collect();
        all.extend(g.unknown.iter().map(String::as_str));
        all
    } else if key == HOST {
        // A name of a node of blue: green's nodes have others, and nobody knows them yet.
        return matches!(r.op.as_str(), "Exists" | "NotIn");
    } else {
        g.labels.get(key).map(String::as_str).into_iter().collect()
    };
    let number = |s: &str| s.parse::<i64>().ok();
    match r.op.as_str() {
        "In" => found.iter().any(|v| r.values.iter().any(|x| x == v)),
        "NotIn" => found.is_empty() || found.iter().any(|v| !r.values.iter().any(|x| x == v)),
        "Exists" => !found.is_empty(),
        "DoesNotExist" => found.is_empty(),
        "Gt" | "Lt" => {
            found.iter().any(
                |v| match (number(v), r.values.first().and_then(|x| number(x))) {
                    (Some(a), Some(b)) => (r.op == "Gt") == (a > b) && a != b,
                    _ => false,
                },
            )
        }
        _ => false,
    }
}
