//! Looks through the plan.

use super::changes::Changes;
use super::fields::{self, Fields};
use super::query::Query;
use crate::error::Result;
use crate::object::ObjectId;
use crate::plan::model::{
    Finding, Name, Plan, StepSpec, TargetAddon, TargetNodeGroup, TargetRole, Verdict,
};
use crate::rewrite::rules::{self, Rule};
use crate::snapshot::model::Snapshot;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A record that stays as it is.
#[derive(serde::Serialize)]
pub(super) struct LeftAlone {
    pub name: String,
    #[serde(rename = "type")]
    pub rtype: String,
    pub zone: String,
    pub values: Vec<String>,
    pub why: String,
}

/// Everything that was found.
#[derive(Default)]
pub(super) struct Found<'p> {
    pub verdicts: Vec<Cow<'p, Verdict>>,
    pub generated: Vec<String>,
    pub names: Vec<&'p Name>,
    pub groups: Vec<&'p TargetNodeGroup>,
    pub roles: Vec<&'p TargetRole>,
    pub addons: Vec<&'p TargetAddon>,
    pub findings: Vec<&'p Finding>,
    pub steps: Vec<&'p StepSpec>,
    pub fields: Fields<'p>,
    pub left_alone: Vec<LeftAlone>,
    /// The plan, when its cluster is asked for.
    pub cluster: Option<&'p Plan>,
    /// A subnet and who uses it.
    pub subnet: Option<(String, Vec<String>)>,
    /// A rule, with the objects that it touched.
    pub rule: Option<(&'static Rule, Vec<String>)>,
    /// What became of the fields of the objects that were found, by object.
    pub changes: BTreeMap<String, Changes>,
}

impl Found<'_> {
    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.verdicts.is_empty()
            && self.generated.is_empty()
            && self.names.is_empty()
            && self.groups.is_empty()
            && self.roles.is_empty()
            && self.addons.is_empty()
            && self.findings.is_empty()
            && self.steps.is_empty()
            && self.fields.set.is_empty()
            && self.fields.unset.is_empty()
            && self.left_alone.is_empty()
            && self.cluster.is_none()
            && self.subnet.is_none()
            && self.rule.is_none()
    }
}

/// Answers a question. Exact spellings win over parts: `deployment/orders/orders` is not also `deployment/orders/orders-admin`.
pub(super) fn search<'p>(
    plan: &'p Plan,
    snapshot: Option<&Snapshot>,
    query: &Query,
) -> Result<Found<'p>> {
    Ok(match query {
        Query::Field { document, path } => Found {
            fields: fields::fields(plan, snapshot, document.as_deref(), path),
            ..Found::default()
        },
        Query::NodeGroup(name) => either(
            name,
            |hit| {
                let t = &plan.target;
                let groups = t.node_groups.iter();
                let groups: Vec<_> = groups
                    .filter(|g| hit(&g.name) || hit(&g.instance_group))
                    .collect();
                let mut found = Found {
                    findings: of_objects(
                        plan,
                        groups.iter().flat_map(|g| {
                            [
                                format!("instancegroup/{}", g.instance_group),
                                format!("node-group/{}", g.name),
                                format!("nodegroup/{}", g.name),
                            ]
                        }),
                    ),
                    groups,
                    ..Found::default()
                };
                found.steps = touching(
                    plan,
                    found.groups.iter().map(|g| g.name.as_str()),
                    "node-group",
                );
                found
            },
            |f| f.groups.is_empty(),
        ),
        Query::Role(name) => either(
            name,
            |hit| {
                let roles: Vec<_> = plan.target.roles.iter().filter(|r| hit(&r.name)).collect();
                let mut found = Found {
                    findings: of_objects(plan, roles.iter().map(|r| format!("role/{}", r.name))),
                    roles,
                    ..Found::default()
                };
                found.steps = touching(plan, found.roles.iter().map(|r| r.name.as_str()), "");
                found
            },
            |f| f.roles.is_empty(),
        ),
        Query::Addon(name) => either(
            name,
            |hit| {
                let addons: Vec<_> = plan.target.addons.iter().filter(|a| hit(&a.name)).collect();
                let mut found = Found {
                    findings: of_objects(plan, addons.iter().map(|a| format!("addon/{}", a.name))),
                    addons,
                    ..Found::default()
                };
                found.steps = touching(plan, found.addons.iter().map(|a| a.name.as_str()), "addon");
                found
            },
            |f| f.addons.is_empty(),
        ),
        Query::Rule(id) => {
            let mut touched = vec![];
            for head in plan.verdicts.heads() {
                let head = head?;
                if head.rules.contains(id) {
                    touched.push(head.object);
                }
            }
            Found {
                rule: rules::by_id(id).map(|rule| (rule, touched)),
                ..Found::default()
            }
        }
        Query::Finding(id) => either(
            id,
            |hit| Found {
                findings: plan.findings.iter().filter(|f| hit(&f.id)).collect(),
                ..Found::default()
            },
            |f| f.findings.is_empty(),
        ),
        Query::Subnet(id) => subnet(plan, id),
        Query::Cluster => cluster(plan),
        Query::Record(host) => record(plan, snapshot, host),
        Query::Text(text) => {
            let mut found = collect(plan, &|o| o == text)?;
            if found.is_empty() {
                found = collect(plan, &|o| o.contains(text.as_str()))?;
            }
            if !found.is_empty() {
                return Ok(found);
            }
            // `deploy/orders`: kind and name without the namespace between.
            if let Some((kind, name)) = text.split_once('/').filter(|(_, n)| !n.contains('/')) {
                let (head, tail) = (format!("{kind}/"), format!("/{name}"));
                let found = collect(plan, &|o| o.starts_with(&head) && o.ends_with(&tail))?;
                if !found.is_empty() {
                    return Ok(found);
                }
            }
            record(plan, snapshot, text)
        }
    })
}

/// By the exact name, else by a part of it.
fn either<'p>(
    name: &str,
    find: impl Fn(Box<dyn Fn(&str) -> bool + '_>) -> Found<'p>,
    empty: impl Fn(&Found<'p>) -> bool,
) -> Found<'p> {
    let exact = find(Box::new(move |text: &str| text == name));
    if !empty(&exact) {
        return exact;
    }
    let part = find(Box::new(move |text: &str| text.contains(name)));
    if empty(&part) { Found::default() } else { part }
}

/// Findings about these objects, and fields of them.
fn of_objects(plan: &Plan, objects: impl Iterator<Item = String>) -> Vec<&Finding> {
    let objects: Vec<String> = objects.collect();
    plan.findings
        .iter()
        .filter(|f| {
            objects.iter().any(|o| {
                f.object == *o
                    || f.object.starts_with(&format!("{o} "))
                    || f.object.starts_with(&format!("{o}/"))
            })
        })
        .collect()
}

/// Steps whose id ends with one of these, or whose parameters name one.
fn touching<'p, 'n>(
    plan: &'p Plan,
    names: impl Iterator<Item = &'n str>,
    kind: &str,
) -> Vec<&'p StepSpec> {
    let names: Vec<&str> = names.collect();
    plan.steps
        .iter()
        .filter(|s| {
            names.iter().any(|n| {
                let own =
                    s.id.ends_with(&format!("/{n}")) && (kind.is_empty() || s.id.contains(kind));
                own || mentions(&s.params, n)
            })
        })
        .collect()
}

fn collect<'p>(plan: &'p Plan, hit: &dyn Fn(&str) -> bool) -> Result<Found<'p>> {
    let t = &plan.target;
    let mut found = Found {
        verdicts: plan.verdicts.named(hit)?,
        generated: plan
            .generated
            .iter()
            .filter_map(|o| Some(ObjectId::of(o)?.to_string()))
            .filter(|o| hit(o))
            .collect(),
        names: plan
            .names
            .iter()
            .filter(|n| hit(&n.host) || hit(&n.object))
            .collect(),
        groups: t
            .node_groups
            .iter()
            .filter(|g| hit(&g.name) || hit(&g.instance_group))
            .collect(),
        roles: t.roles.iter().filter(|r| hit(&r.name)).collect(),
        addons: t.addons.iter().filter(|a| hit(&a.name)).collect(),
        findings: plan
            .findings
            .iter()
            .filter(|f| hit(&f.object) || hit(&f.id))
            .collect(),
        ..Found::default()
    };
    // Steps by their own id, and those that touch what was found.
    let mut touched: Vec<&str> = found.verdicts.iter().map(|v| v.object.as_str()).collect();
    touched.extend(found.names.iter().map(|n| n.host.as_str()));
    touched.extend(found.groups.iter().map(|g| g.name.as_str()));
    touched.extend(found.roles.iter().map(|r| r.name.as_str()));
    touched.extend(found.addons.iter().map(|a| a.name.as_str()));
    touched.extend(found.generated.iter().map(String::as_str));
    let steps = plan
        .steps
        .iter()
        .filter(|s| hit(&s.id) || touched.iter().any(|t| mentions(&s.params, t)))
        .collect();
    found.steps = steps;
    Ok(found)
}

/// Whether a string of the parameters is exactly this.
fn mentions(params: &Value, text: &str) -> bool {
    match params {
        Value::String(s) => s == text,
        Value::Array(a) => a.iter().any(|v| mentions(v, text)),
        Value::Object(m) => m.values().any(|v| mentions(v, text)),
        _ => false,
    }
}

fn subnet<'p>(plan: &'p Plan, id: &str) -> Found<'p> {
    // Without AWS a subnet is `name (cidr)`: its name is enough.
    let is = |s: &str| s == id || s.split(" (").next() == Some(id);
    let t = &plan.target;
    let mut users = vec![];
    if t.cluster.subnets.iter().any(|s| is(s)) {
        users.push(format!("cluster {}", t.cluster.name));
    }
    for g in &t.node_groups {
        if g.subnets.iter().any(|s| is(s)) {
            users.push(format!("node group {}", g.name));
        }
    }
    let findings = of_objects(plan, std::iter::once(format!("subnet/{id}")));
    let steps: Vec<_> = plan
        .steps
        .iter()
        .filter(|s| mentions(&s.params, id))
        .collect();
    if users.is_empty() && findings.is_empty() && steps.is_empty() {
        return Found::default();
    }
    Found {
        subnet: Some((id.into(), users)),
        findings,
        steps,
        ..Found::default()
    }
}

fn cluster(plan: &Plan) -> Found<'_> {
    let name = &plan.target.cluster.name;
    Found {
        cluster: Some(plan),
        findings: of_objects(
            plan,
            [format!("cluster/{name}"), "green.version".to_string()].into_iter(),
        ),
        steps: touching(plan, std::iter::once(name.as_str()), "provision/cluster")
            .into_iter()
            .filter(|s| s.id == format!("provision/cluster/{name}"))
            .collect(),
        ..Found::default()
    }
}

fn record<'p>(plan: &'p Plan, snapshot: Option<&Snapshot>, host: &str) -> Found<'p> {
    let names: Vec<_> = plan.names.iter().filter(|n| n.host == host).collect();
    let mut found = Found {
        findings: of_objects(
            plan,
            [format!("record/{host}"), host.to_string()].into_iter(),
        ),
        ..Found::default()
    };
    if names.is_empty() {
        found.left_alone = left_alone(plan, snapshot, host);
    } else {
        found.steps = touching(plan, std::iter::once(host), "");
        found.names = names;
    }
    found
}

/// Records of a name that no wave hands over.
fn left_alone(plan: &Plan, snapshot: Option<&Snapshot>, host: &str) -> Vec<LeftAlone> {
    let wanted = format!("{}.", host.trim_end_matches('.'));
    let mut out = vec![];
    for z in snapshot.iter().flat_map(|s| &s.zones) {
        for r in z.records.iter().filter(|r| r.name == wanted) {
            let registry = plan.names.iter().find(|n| n.txt.contains(&r.name));
            let why = match registry {
                Some(n) => format!(
                    "an ownership record of {}: it is handed over with that name, in wave {}",
                    n.host, n.wave
                ),
                None if matches!(r.rtype.as_str(), "NS" | "SOA") => {
                    "belongs to the zone itself: nobody's to change".into()
                }
                None => "left alone: no object of blue whose name an ExternalDNS of blue owns asks for it, so green does not take it over and the run writes nothing to it".into(),
            };
            out.push(LeftAlone {
                name: host.into(),
                rtype: r.rtype.clone(),
                zone: z.zone.name.trim_end_matches('.').into(),
                values: r.values.clone(),
                why,
            });
        }
    }
    out
}
