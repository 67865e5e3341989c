//! Rule 46: what binds a pod to blue's nodes: labels, topology keys, names of nodes.

use super::work::{Work, items, set, take, text};
use crate::plan::model::Severity;
use serde_json::{Value, json};

/// Old node labels and their successors (rule 46).
const LABELS: &[(&str, &str)] = &[
    (
        "failure-domain.beta.kubernetes.io/zone",
        "topology.kubernetes.io/zone",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/region",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
    ),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
];

/// Rule 46.
pub(super) fn rewrite(w: &mut Work, spec: &str) {
    let mut unmapped = vec![];
    let mut changed = false;
    let path = format!("{spec}/nodeSelector");
    if let Some(map) = w.object.pointer(&path).and_then(Value::as_object).cloned() {
        let mut out = serde_json::Map::new();
        for (k, v) in map {
            match map_label(&k, v.as_str().unwrap_or(""), w) {
                Mapped::Same => {
                    out.insert(k, v);
                }
                Mapped::To(k2, v2) => {
                    out.insert(k2, json!(v2));
                    changed = true;
                }
                Mapped::Gone => changed = true,
                Mapped::Missing(why) => {
                    unmapped.push(why);
                    out.insert(k, v);
                }
            }
        }
        if out.is_empty() {
            take(&mut w.object, &path);
        } else {
            set(&mut w.object, &path, Value::Object(out));
        }
    }
    let terms = [
        format!(
            "{spec}/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"
        ),
        format!("{spec}/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution"),
    ];
    for path in terms {
        let Some(mut list) = w.object.pointer(&path).and_then(Value::as_array).cloned() else {
            continue;
        };
        for term in &mut list {
            let exprs = if term.get("preference").is_some() {
                "/preference/matchExpressions"
            } else {
                "/matchExpressions"
            };
            let required = !exprs.starts_with("/preference");
            for e in term
                .pointer_mut(exprs)
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                match map_expression(e, w) {
                    Expression::Same => {}
                    Expression::Changed => changed = true,
                    Expression::Missing(why) if required => unmapped.push(why),
                    Expression::Missing(_) => {}
                }
            }
        }
        set(&mut w.object, &path, Value::Array(list));
    }
    changed |= topology_keys(w, spec);
    if text(&w.object, &format!("{spec}/nodeName")).is_some() && w.kind() != "Pod" {
        take(&mut w.object, &format!("{spec}/nodeName"));
        changed = true;
    }
    if changed {
        w.changed(46);
    }
    // Whether a node answers what is left is asked over all groups at once: CAP-01.
    if !unmapped.is_empty() {
        w.tidied(46);
    }
    let by_name: Vec<String> = items(
        w.original,
        &format!("{spec}/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"),
    )
    .flat_map(|t| items(t, "/matchFields"))
    .flat_map(|f| items(f, "/values"))
    .filter_map(|v| v.as_str().map(String::from))
    .collect();
    if !by_name.is_empty() && w.kind() != "Pod" {
        w.find(
            "CAP-01",
            Severity::Blocker,
            46,
            format!(
                "asks for nodes of blue by name ({}): green's have others",
                by_name.join(", ")
            ),
            "Use a label that green's nodes carry (green.nodeGroups).",
        );
    }
    let master = items(w.original, &format!("{spec}/tolerations")).any(|t| {
        t["key"].as_str().is_some_and(|k| {
            k.starts_with("node-role.kubernetes.io/master")
                || k.starts_with("node-role.kubernetes.io/control-plane")
        })
    });
    if master {
        w.find(
            "CAP-02",
            Severity::Info,
            46,
            "tolerates control-plane nodes: green shows none",
            "Nothing to do.",
        );
    }
}

/// Keys by which pods are spread or held together: a key that no node of green has would leave them unscheduled.
fn topology_keys(w: &mut Work, spec: &str) -> bool {
    let mut paths = vec![];
    for side in ["podAffinity", "podAntiAffinity"] {
        let base = format!("{spec}/affinity/{side}");
        for (list, key) in [
            (
                "requiredDuringSchedulingIgnoredDuringExecution",
                "topologyKey",
            ),
            (
                "preferredDuringSchedulingIgnoredDuringExecution",
                "podAffinityTerm/topologyKey",
            ),
        ] {
            let n = items(&w.object, &format!("{base}/{list}")).count();
            paths.extend((0..n).map(|i| format!("{base}/{list}/{i}/{key}")));
        }
    }
    let spread = format!("{spec}/topologySpreadConstraints");
    let n = items(&w.object, &spread).count();
    paths.extend((0..n).map(|i| format!("{spread}/{i}/topologyKey")));
    let mut changed = false;
    for path in paths {
        let Some(key) = text(&w.object, &path) else {
            continue;
        };
        let new = match key {
            "kops.k8s.io/instancegroup" => Some("crossfade.dev/instancegroup".to_string()),
            key => LABELS
                .iter()
                .find(|(old, _)| *old == key)
                .map(|(_, new)| new.to_string())
                .or_else(|| w.cx.label_keys.get(key).cloned()),
        };
        if let (Some(new), Some(place)) = (new, w.object.pointer_mut(&path)) {
            *place = json!(new);
            changed = true;
        }
    }
    changed
}

enum Expression {
    Same,
    Changed,
    Missing(String),
}

/// One expression of a node affinity. What asks for the absence of a label that green does not have is true there, as it was meant.
fn map_expression(e: &mut Value, w: &Work) -> Expression {
    let key = e["key"].as_str().unwrap_or("").to_string();
    let operator = e["operator"].as_str().unwrap_or("").to_string();
    let absent = matches!(operator.as_str(), "DoesNotExist" | "NotIn");
    let values: Vec<String> = items(e, "/values")
        .filter_map(|v| v.as_str().map(String::from))
        .collect();
    // `In` lists alternatives: one that green knows is enough.
    let all: Vec<Mapped> = if values.is_empty() {
        vec![map_label(&key, "", w)]
    } else {
        values.iter().map(|v| map_label(&key, v, w)).collect()
    };
    if all.iter().any(|m| matches!(m, Mapped::Gone)) {
        // Every worker of blue has this label; every node of a managed group has that one.
        e["key"] = json!("eks.amazonaws.com/nodegroup");
        e["operator"] = json!(if absent { "DoesNotExist" } else { "Exists" });
        take(e, "/values");
        return Expression::Changed;
    }
    let new_key = all.iter().find_map(|m| match m {
        Mapped::To(k, _) => Some(k.clone()),
        _ => None,
    });
    let Some(new_key) = new_key else {
        let known = absent || all.iter().any(|m| matches!(m, Mapped::Same));
        return match all.into_iter().next() {
            Some(Mapped::Missing(why)) if !known => Expression::Missing(why),
            _ => Expression::Same,
        };
    };
    let mapped: Vec<Value> = all
        .iter()
        .zip(values.iter().map(Some).chain(std::iter::repeat(None)))
        .map(|(m, v)| match m {
            Mapped::To(_, v2) => json!(v2),
            _ => json!(v.map_or("", String::as_str)),
        })
        .collect();
    e["key"] = json!(new_key);
    if key == SPOT_WORKER {
        // Its presence meant spot; the label that EKS has is on every node.
        e["operator"] = json!(if absent { "NotIn" } else { "In" });
        e["values"] = json!(["SPOT"]);
    } else if !values.is_empty() {
        e["values"] = Value::Array(mapped);
    }
    Expression::Changed
}

/// What kops-controller puts on spot nodes (kops.md 3).
const SPOT_WORKER: &str = "node-role.kubernetes.io/spot-worker";

enum Mapped {
    Same,
    To(String, String),
    Gone,
    Missing(String),
}

fn map_label(key: &str, value: &str, w: &Work) -> Mapped {
    if let Some((_, new)) = LABELS.iter().find(|(old, _)| *old == key) {
        return Mapped::To((*new).into(), value.into());
    }
    if let Some(new) = w.cx.label_keys.get(key) {
        return Mapped::To(new.clone(), value.into());
    }
    match key {
        // An instance group may be several node groups: they share a label of ours.
        "kops.k8s.io/instancegroup" if value.is_empty() => {
            Mapped::To("crossfade.dev/instancegroup".into(), String::new())
        }
        "kops.k8s.io/instancegroup" => match w.cx.node_groups.get(value) {
            Some(stand_in) => Mapped::To("crossfade.dev/instancegroup".into(), stand_in.clone()),
            None => Mapped::Missing(format!("{key}={value}")),
        },
        "node-role.kubernetes.io/node" => Mapped::Gone,
        "kubernetes.io/role" if value == "node" => Mapped::Gone,
        SPOT_WORKER => Mapped::To("eks.amazonaws.com/capacityType".into(), "SPOT".into()),
        k if k.starts_with("node-role.kubernetes.io/") || k == "kubernetes.io/role" => {
            Mapped::Missing(format!("{key}={value}"))
        }
        k if k.starts_with("topology.kubernetes.io/")
            || k.starts_with("node.kubernetes.io/")
            || k.starts_with("kubernetes.io/")
            || k.starts_with("eks.amazonaws.com/") =>
        {
            Mapped::Same
        }
        _ if w.cx.node_labels.is_empty() => Mapped::Same,
        _ if w
            .cx
            .node_labels
            .contains(&(key.to_string(), value.to_string())) =>
        {
            Mapped::Same
        }
        _ if w.cx.node_labels.iter().any(|(k, _)| k == key) && value.is_empty() => Mapped::Same,
        _ => Mapped::Missing(format!("{key}={value}")),
    }
}
