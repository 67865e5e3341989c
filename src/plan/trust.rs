//! Who lets blue's nodes in: rules of other people's security groups by group or by address (eks.md 2.3).

use super::fit::routes;
use super::model::Target;
use crate::rewrite::range;
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use crate::world::cloud::{IngressRule, Resource};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One rule that trusts blue.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NodeTrust {
    /// Green gets the same rule beside it.
    Mirrored {
        /// Group that holds the rule.
        group: String,
        /// The rule for green.
        rule: Box<Resource>,
    },
    /// One address of a node: nobody knows which of green's it should be.
    SingleAddress {
        /// Group that holds the rule.
        group: String,
        /// The address.
        cidr: String,
    },
    /// Trusts masters alone.
    Masters {
        /// Group that holds the rule.
        group: String,
    },
}

/// Every rule of a group that blue does not own and that trusts blue's nodes, sorted by group.
pub(crate) fn trust_of_blue(snapshot: &Snapshot, spec: &Spec, target: &Target) -> Vec<NodeTrust> {
    let Some(aws) = &snapshot.aws else {
        return vec![];
    };
    let blue = &spec.blue.cluster;
    let owned = |tags: &BTreeMap<String, String>| {
        tags.get("KubernetesCluster") == Some(blue)
            || tags
                .get(&format!("kubernetes.io/cluster/{blue}"))
                .is_some_and(|v| v == "owned")
    };
    let named = |prefix: &str| -> BTreeSet<String> {
        aws.security_groups
            .iter()
            .filter(|g| g.name == format!("{prefix}.{blue}"))
            .map(|g| g.id.clone())
            .collect()
    };
    let masters = named("masters");
    let mut nodes = named("nodes");
    let extra = carried(snapshot);
    nodes.extend(extra.iter().cloned());
    let cidr_of = |id: &String| {
        aws.subnets
            .iter()
            .find(|s| s.id == *id)
            .and_then(|s| range(&s.cidr))
    };
    let from: Vec<(u32, u32)> = routes::blue_node_subnets(snapshot)
        .iter()
        .filter_map(cidr_of)
        .collect();
    let to: Vec<(u32, u32)> = target
        .node_groups
        .iter()
        .flat_map(|g| &g.subnets)
        .filter_map(cidr_of)
        .collect();
    let within = |a: &(u32, u32), b: &(u32, u32)| b.0 <= a.0 && a.1 <= b.1;
    let mirror = |group: &str, r: &IngressRule| NodeTrust::Mirrored {
        group: group.into(),
        rule: Box::new(Resource::SecurityGroupRule {
            group: group.into(),
            protocol: r.protocol.clone(),
            from_port: r.from_port,
            to_port: r.to_port,
            source_group: "${cluster.security_group}".into(),
            description: format!("crossfade {}: as nodes.{blue}", spec.name),
        }),
    };
    let mut out = vec![];
    for g in &aws.security_groups {
        // A group that blue's nodes carry trusts itself for their talk with each other: green's own group does the same.
        if owned(&g.tags) || named("nodes").contains(&g.id) {
            continue;
        }
        for r in &g.ingress {
            if let Some(source) = &r.source_group {
                if nodes.contains(source) && *source != g.id {
                    out.push(mirror(&g.id, r));
                } else if masters.contains(source) {
                    out.push(NodeTrust::Masters {
                        group: g.id.clone(),
                    });
                }
            } else if let Some((cidr, span)) = r.cidr.as_ref().and_then(|c| Some((c, range(c)?))) {
                let lets_blue_in = from.iter().any(|s| within(s, &span));
                let lets_green_in = !to.is_empty() && to.iter().all(|s| within(s, &span));
                if lets_blue_in && !lets_green_in && !to.is_empty() {
                    out.push(mirror(&g.id, r));
                } else if !lets_blue_in && span.0 == span.1 && from.iter().any(|s| within(&span, s))
                {
                    out.push(NodeTrust::SingleAddress {
                        group: g.id.clone(),
                        cidr: cidr.clone(),
                    });
                }
            }
        }
    }
    // A rule by group and one by range may ask for the same.
    let mut seen = BTreeSet::new();
    out.retain(|t| match t {
        NodeTrust::Mirrored { rule, .. } => seen.insert(rule.id()),
        _ => true,
    });
    out
}

/// Groups that the worker groups of blue carry besides `nodes.<cluster>`, or instead of it.
pub(crate) fn carried(snapshot: &Snapshot) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for g in &snapshot.kops.instance_groups {
        let role = g.pointer("/spec/role").and_then(Value::as_str);
        if !role.unwrap_or("Node").eq_ignore_ascii_case("node") {
            continue;
        }
        out.extend(
            g.pointer("/spec/additionalSecurityGroups")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|s| s.as_str().map(String::from)),
        );
        out.extend(
            g.pointer("/spec/securityGroupOverride")
                .and_then(Value::as_str)
                .map(String::from),
        );
    }
    out
}
