//! Looks for a planned resource in the inventory.

use crate::world::cloud::compare::{Difference, differences};
use crate::world::cloud::{EksCluster, Existing, Inventory, RUN_TAG, Resource, Status};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What there is.
pub(super) enum Look {
    Absent,
    /// There by name; why no more is known.
    NamedOnly(&'static str),
    There {
        run: Option<String>,
        made_by: String,
        differences: Vec<Difference>,
    },
}

/// Who made a thing, by its tags.
fn made_by(tags: &BTreeMap<String, String>) -> String {
    let tag = |key: &str| tags.get(key).filter(|v| !v.is_empty());
    if let Some(run) = tag(RUN_TAG) {
        return format!("run {run}");
    }
    if tags.keys().any(|k| k.starts_with("alpha.eksctl.io/")) {
        return "eksctl".into();
    }
    if let Some(stack) = tag("aws:cloudformation:stack-name") {
        return format!("CloudFormation stack {stack}");
    }
    "somebody".into()
}

fn existing(e: &Existing, want: &Resource) -> Look {
    if matches!(e.status, Status::Deleting) {
        return Look::There {
            run: e.tags.get(RUN_TAG).cloned(),
            made_by: made_by(&e.tags),
            differences: vec![Difference {
                field: "content".into(),
                have: "being deleted".into(),
                want: "there".into(),
            }],
        };
    }
    Look::There {
        run: e.tags.get(RUN_TAG).cloned(),
        made_by: made_by(&e.tags),
        differences: e.differences(want),
    }
}

fn part_of_other(differences: Vec<Difference>) -> Look {
    Look::There {
        run: None,
        made_by: "somebody or a former run".into(),
        differences,
    }
}

fn differs(field: &str, have: &str, want: &str) -> Vec<Difference> {
    if have == want {
        return vec![];
    }
    vec![Difference {
        field: field.into(),
        have: have.into(),
        want: want.into(),
    }]
}

/// Looks for a resource in the inventory.
pub(super) fn look(inv: &Inventory, want: &Resource) -> Look {
    // What the cluster gives a name to cannot be there before the cluster.
    if want.id().contains("${") {
        return Look::Absent;
    }
    match want {
        Resource::Role { name, .. } => {
            let Some(r) = inv.roles.iter().find(|r| r.name == *name) else {
                return Look::Absent;
            };
            existing(
                &Existing {
                    resource: Resource::Role {
                        name: r.name.clone(),
                        trust: r.trust.clone(),
                        managed_policies: r.managed_policies.clone(),
                        inline_policies: r.inline_policies.clone(),
                        boundary: r.boundary.clone(),
                        path: r
                            .arn
                            .split_once(":role")
                            .and_then(|(_, p)| p.strip_suffix(&r.name))
                            .filter(|p| *p != "/")
                            .map(String::from),
                    },
                    tags: r.tags.clone(),
                    status: Status::Ready,
                    extras: vec![],
                    attributes: BTreeMap::new(),
                    now: Default::default(),
                },
                want,
            )
        }
        Resource::OidcProvider { issuer, .. } => {
            let bare = issuer.trim_start_matches("https://");
            if inv.oidc_providers.iter().any(|p| p == bare) {
                Look::NamedOnly("it is there; the run compares its audiences")
            } else {
                Look::Absent
            }
        }
        Resource::Cluster { name, version, .. } => {
            match inv.clusters.iter().find(|c| c.name == *name) {
                None => Look::Absent,
                Some(c) => part(c, want).unwrap_or_else(|| Look::There {
                    run: c.tags.get(RUN_TAG).cloned(),
                    made_by: made_by(&c.tags),
                    differences: differs("version", &c.version, version),
                }),
            }
        }
        Resource::NodeGroup { cluster, name, .. } => {
            within(inv, cluster, want, |c| c.node_groups.contains(name))
        }
        Resource::Addon { cluster, name, .. } => {
            within(inv, cluster, want, |c| c.addons.contains(name))
        }
        Resource::AccessEntry {
            cluster, principal, ..
        } => within(inv, cluster, want, |c| c.access_entries.contains(principal)),
        // With the parts of a cluster all its associations were read.
        Resource::PodIdentityAssociation { cluster, .. } => within(inv, cluster, want, |_| false),
        Resource::LogGroup { .. } => inv
            .log_groups
            .iter()
            .flatten()
            .find(|g| g.resource.id() == want.id())
            .map_or(Look::Absent, |g| existing(g, want)),
        Resource::StateBucket { .. } => inv
            .state_bucket
            .iter()
            .find(|b| b.resource.id() == want.id())
            .map_or(Look::Absent, |b| existing(b, want)),
        Resource::LaunchTemplate { .. } => inv
            .launch_templates
            .iter()
            .flatten()
            .find(|t| t.resource.id() == want.id())
            .map_or(Look::Absent, |t| existing(t, want)),
        Resource::SecurityGroupRule {
            group,
            protocol,
            from_port,
            to_port,
            source_group,
            description,
        } => inv
            .security_groups
            .iter()
            .filter(|g| g.id == *group)
            .flat_map(|g| &g.ingress)
            .find(|r| {
                r.protocol == *protocol
                    && (protocol == "-1" || r.from_port == *from_port && r.to_port == *to_port)
                    && r.source_group.as_deref() == Some(source_group)
            })
            .map_or(Look::Absent, |r| {
                let have = r.description.as_deref().unwrap_or("");
                part_of_other(differs("description", have, description))
            }),
        Resource::Tag {
            resource,
            key,
            value,
        } => tags_of(inv, resource)
            .and_then(|t| t.get(key))
            .map_or(Look::Absent, |have| {
                part_of_other(differs("value", have, value))
            }),
        Resource::TrustStatement {
            role,
            sid,
            statement,
        } => {
            let trust = inv
                .roles
                .iter()
                .find(|r| r.name == *role)
                .map(|r| &r.trust["Statement"]);
            let list = match trust {
                Some(Value::Array(a)) => a.iter().collect(),
                Some(v) => vec![v],
                None => vec![],
            };
            let Some(have) = list.into_iter().find(|s| s["Sid"] == json!(sid)) else {
                return Look::Absent;
            };
            let mut full = statement.clone();
            full["Sid"] = json!(sid);
            let as_resource = |s: &Value| Resource::TrustStatement {
                role: role.clone(),
                sid: sid.clone(),
                statement: s.clone(),
            };
            part_of_other(differences(&as_resource(have), &as_resource(&full)))
        }
    }
}

fn tags_of<'a>(inv: &'a Inventory, id: &str) -> Option<&'a BTreeMap<String, String>> {
    let subnet = inv.subnets.iter().find(|s| s.id == id).map(|s| &s.tags);
    let group = || {
        inv.security_groups
            .iter()
            .find(|g| g.id == id)
            .map(|g| &g.tags)
    };
    let vpc = || inv.vpc.as_ref().filter(|v| v.id == id).map(|v| &v.tags);
    subnet.or_else(group).or_else(vpc)
}

fn part(cluster: &EksCluster, want: &Resource) -> Option<Look> {
    let id = want.id();
    let parts = cluster.parts.as_ref()?;
    parts
        .iter()
        .find(|p| p.resource.id() == id)
        .map(|p| existing(p, want))
}

fn within(
    inv: &Inventory,
    cluster: &str,
    want: &Resource,
    listed: impl Fn(&EksCluster) -> bool,
) -> Look {
    let Some(c) = inv.clusters.iter().find(|c| c.name == cluster) else {
        return Look::Absent;
    };
    match part(c, want) {
        Some(look) => look,
        None if listed(c) => Look::NamedOnly("only its name was read"),
        None => Look::Absent,
    }
}
