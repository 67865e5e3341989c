//! The decommission guard: what `kops delete cluster` would remove, and what of that green needs (kops.md 4.3, externaldns.md rule 16).

use crate::object::ObjectId;
use crate::plan::model::{Fate, Plan};
use crate::snapshot::model::Snapshot;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One thing that `kops delete cluster` would remove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Doomed {
    /// Kind, as in `subnet`.
    pub kind: &'static str,
    /// Id or name.
    pub id: String,
    /// Why kops takes it for its own.
    pub tag: String,
    /// Green needs it: it must be retagged before anybody deletes blue with kops.
    pub green_uses_it: bool,
}

/// What `kops delete cluster` would remove: it selects by tag, not by spec (kops.md 4.3). From the snapshot's inventory, so what was
/// not read (instances, load balancers) is not listed.
pub fn doomed(plan: &Plan, snapshot: &Snapshot) -> Vec<Doomed> {
    let Some(aws) = &snapshot.aws else {
        return vec![];
    };
    let cluster = &plan.spec.blue.cluster;
    let key = format!("kubernetes.io/cluster/{cluster}");
    let tag = |tags: &BTreeMap<String, String>| -> Option<String> {
        match tags.get(&key).map(String::as_str) {
            Some("shared") => return None,
            Some(value) => return Some(format!("{key}={value}")),
            None => {}
        }
        (tags.get("KubernetesCluster") == Some(cluster))
            .then(|| format!("KubernetesCluster={cluster}"))
    };
    let mut list = vec![];
    let mut add =
        |kind: &'static str, id: &str, tags: &BTreeMap<String, String>, green_uses_it: bool| {
            if let Some(tag) = tag(tags) {
                list.push(Doomed {
                    kind,
                    id: id.into(),
                    tag,
                    green_uses_it,
                });
            }
        };
    let used: BTreeSet<&str> = plan
        .target
        .cluster
        .subnets
        .iter()
        .chain(plan.target.node_groups.iter().flat_map(|g| &g.subnets))
        .map(String::as_str)
        .collect();
    if let Some(vpc) = &aws.vpc {
        add("vpc", &vpc.id, &vpc.tags, !used.is_empty());
    }
    for s in &aws.subnets {
        add("subnet", &s.id, &s.tags, used.contains(s.id.as_str()));
    }
    for g in &aws.security_groups {
        // A group that lets green in is one that something green talks to.
        let named = plan
            .steps
            .iter()
            .any(|s| s.params["resource"]["group"] == g.id.as_str());
        add("security-group", &g.id, &g.tags, named);
    }
    for r in &aws.roles {
        let shared = plan
            .target
            .roles
            .iter()
            .any(|t| t.existing && t.name == r.name);
        add("role", &r.name, &r.tags, shared);
    }
    // The way of green's subnets to the world: gone without an error if kops takes it.
    let tables: Vec<_> = aws.route_tables.iter().flatten().collect();
    let leads =
        |t: &&&crate::world::cloud::RouteTable| t.subnets.iter().any(|s| used.contains(s.as_str()));
    let ways: BTreeSet<&str> = tables
        .iter()
        .filter(leads)
        .flat_map(|t| t.routes.values())
        .map(String::as_str)
        .collect();
    for t in &tables {
        add(
            "route-table",
            &t.id,
            &t.tags,
            t.subnets.iter().any(|s| used.contains(s.as_str())),
        );
    }
    for l in aws.load_balancers.iter().flatten() {
        add("load-balancer", &l.name, &l.tags, false);
    }
    for g in aws.auto_scaling_groups.iter().flatten() {
        add("autoscaling-group", &g.name, &g.tags, false);
    }
    // Retain does not save a volume from kops (kops#5526, kubernetes#66750; replay.md 57).
    let mounted = volumes_of_green(plan, snapshot);
    for v in aws.volumes.iter().flatten() {
        add("volume", &v.id, &v.tags, mounted.contains(&v.id));
    }
    // kops takes a NAT gateway by its tags, or because a route table of its own leads there.
    for n in aws.nat_gateways.iter().flatten() {
        let linked = tables
            .iter()
            .find(|t| tag(&t.tags).is_some() && t.routes.values().any(|to| *to == n.id));
        let why = tag(&n.tags).or_else(|| linked.map(|t| format!("route of {}", t.id)));
        if let Some(tag) = why {
            list.push(Doomed {
                kind: "nat-gateway",
                id: n.id.clone(),
                tag,
                green_uses_it: ways.contains(n.id.as_str()),
            });
        }
    }
    let roles: BTreeSet<String> = list
        .iter()
        .filter(|d| d.kind == "role")
        .map(|d| d.id.clone())
        .collect();
    for (arn, role) in aws.instance_profiles.iter().flatten() {
        if roles.contains(role) {
            list.push(Doomed {
                kind: "instance-profile",
                id: arn.rsplit('/').next().unwrap_or(arn).into(),
                tag: format!("role {role}"),
                green_uses_it: false,
            });
        }
    }
    list.extend(doomed_records(plan, snapshot));
    list
}

/// Records that kops takes for its own by their names alone (kops.md 4.3); one that the plan moves is live on green.
fn doomed_records(plan: &Plan, snapshot: &Snapshot) -> Vec<Doomed> {
    let cluster = &plan.spec.blue.cluster;
    let below = |name: &str| -> Option<String> {
        Some(
            name.trim_end_matches('.')
                .strip_suffix(cluster.as_str())?
                .strip_suffix('.')?
                .to_string(),
        )
    };
    let mut list = vec![];
    for r in snapshot.zones.iter().flat_map(|z| &z.records) {
        let Some(word) = below(&r.name).filter(|_| matches!(r.rtype.as_str(), "A" | "AAAA")) else {
            continue;
        };
        let own = matches!(
            word.as_str(),
            "api" | "api.internal" | "bastion" | "kops-controller.internal"
        ) || word.starts_with("etcd-") && word.ends_with(".internal");
        if own {
            let host = r.name.trim_end_matches('.');
            list.push(Doomed {
                kind: "route53-record",
                id: format!("{host}/{}", r.rtype),
                tag: "its name".into(),
                green_uses_it: plan.names.iter().any(|n| n.host == host),
            });
        }
    }
    list
}

/// EBS volumes of PersistentVolumes that green has too.
fn volumes_of_green(plan: &Plan, snapshot: &Snapshot) -> BTreeSet<String> {
    let moves = |o: &Value| {
        let id = ObjectId::of(o)?.to_string();
        let (_, head) = plan.verdicts.head(&id).ok()??;
        (!matches!(head.verdict, Fate::Skipped | Fate::Refused)).then_some(())
    };
    snapshot
        .blue
        .of_kind("PersistentVolume")
        .filter(|o| moves(o).is_some())
        .filter_map(|o| {
            let text = |p: &str| o.pointer(p).and_then(Value::as_str);
            let id =
                text("/spec/awsElasticBlockStore/volumeID").or(text("/spec/csi/volumeHandle"))?;
            Some(id.rsplit('/').next().unwrap_or(id).to_string())
        })
        .collect()
}

#[cfg(test)]
#[path = "decommission_tests.rs"]
mod tests;
