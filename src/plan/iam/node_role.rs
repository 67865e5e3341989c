//! The roles that blue's nodes carry, and what they allow beyond what kops put there: the real grants of workloads.

use super::made_by_kops::{MadeByKops, Rest};
use super::policy::{self, Statement};
use super::{Problem, text};
use crate::plan::model::Severity;
use crate::snapshot::model::Snapshot;
use crate::world::cloud::{Inventory, Role};
use serde_json::Value;
use std::collections::BTreeMap;

/// Policies for the hosts themselves: green's node role has their like (eks.md 1.3), no pod is meant by them.
const FOR_HOSTS: &[&str] = &[
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonEC2ContainerRegistryReadOnly",
    "AmazonEC2RoleforSSM",
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonSSMManagedInstanceCore",
];

/// Where the content of a role comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// From the account.
    Live,
    /// Only what the kops spec adds to it.
    Spec,
    /// Nobody knows.
    Nothing,
}

/// A role that nodes of blue carry.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRole {
    /// Role name; the instance profile's ARN when the role behind it is not known.
    pub name: String,
    /// Of masters, not of workers.
    pub masters: bool,
    /// Instance groups whose nodes carry it.
    pub groups: Vec<String>,
    /// Where its content comes from.
    pub read: Read,
    /// Statements that are not kops's own, those of attached policies included where their document is known.
    pub grants: Vec<Statement>,
    /// Attached managed policies beyond those for hosts, with whether the document is known.
    pub attached: BTreeMap<String, bool>,
    /// Permissions boundary.
    pub boundary: Option<String>,
}

/// kops's name for a role or profile: cut at 64 characters, with six of base32hex(fnv1a) (kops.md 4.1).
pub fn kops_name(name: &str) -> String {
    const MAX: usize = 64;
    if name.len() <= MAX {
        return name.into();
    }
    let hash = name.bytes().fold(0x811c_9dc5_u32, |h, b| {
        (h ^ u32::from(b)).wrapping_mul(0x0100_0193)
    });
    // base32hex of four bytes, lower case: the first six characters are the upper 30 bits.
    let six: String = (0..6)
        .map(|i| {
            let five = (hash >> (27 - 5 * i)) & 31;
            char::from_digit(five, 32).unwrap_or('0')
        })
        .collect();
    let mut cut = MAX - 7;
    while !name.is_char_boundary(cut) {
        cut -= 1;
    }
    format!("{}-{six}", &name[..cut])
}

/// Last part of an ARN.
pub fn last(arn: &str) -> &str {
    arn.rsplit('/').next().unwrap_or(arn)
}

/// The roles of all worker and master groups.
pub fn node_roles(
    snapshot: &Snapshot,
    cluster: &str,
    problems: &mut Vec<Problem>,
) -> Vec<NodeRole> {
    let kops = MadeByKops::new(&snapshot.kops, cluster);
    let aws = snapshot.aws.as_ref();
    let mut found: BTreeMap<(bool, String), Found> = BTreeMap::new();
    for ig in &snapshot.kops.instance_groups {
        let name = text(ig, "/metadata/name").unwrap_or("").to_string();
        let masters = match text(ig, "/spec/role")
            .unwrap_or("Node")
            .to_lowercase()
            .as_str()
        {
            "node" => false,
            "master" | "controlplane" | "control-plane" => true,
            _ => continue,
        };
        let own = text(ig, "/spec/iam/profile").map(String::from);
        let role = match &own {
            Some(profile) => aws
                .and_then(|a| a.instance_profiles.as_ref())
                .and_then(|p| p.get(profile).cloned())
                .unwrap_or_else(|| profile.clone()),
            None => {
                let plain = if masters { "masters" } else { "nodes" };
                kops_name(&format!("{plain}.{cluster}"))
            }
        };
        let f = found.entry((masters, role)).or_default();
        f.groups.push(name);
        f.own = own.or(f.own.take());
    }
    let mut out = vec![];
    for ((masters, name), f) in found {
        out.push(one(snapshot, &kops, masters, name, f, problems));
    }
    out
}

#[derive(Default)]
struct Found {
    groups: Vec<String>,
    own: Option<String>,
}

fn one(
    snapshot: &Snapshot,
    kops: &MadeByKops,
    masters: bool,
    name: String,
    f: Found,
    problems: &mut Vec<Problem>,
) -> NodeRole {
    let mut groups = f.groups;
    groups.sort();
    let mut role = NodeRole {
        read: Read::Nothing,
        grants: vec![],
        attached: BTreeMap::new(),
        boundary: None,
        masters,
        groups,
        name,
    };
    let live = snapshot
        .aws
        .as_ref()
        .and_then(|a| Some((a, a.roles.iter().find(|r| r.name == role.name)?)));
    if let Some((aws, r)) = live {
        role.read = Read::Live;
        role.boundary = r.boundary.clone();
        from_account(aws, r, kops, &mut role);
    } else if f.own.is_none() {
        role.read = Read::Spec;
        from_spec(snapshot, &mut role, problems);
    }
    role
}

fn keep(role: &mut NodeRole, kops: &MadeByKops, list: Vec<Statement>) {
    for s in list {
        let rest = if role.masters {
            kops.rest_of_master(&s.body)
        } else {
            kops.rest(&s.body)
        };
        match rest {
            Rest::Nothing => {}
            Rest::All => role.grants.push(s),
            Rest::Part(body) => role.grants.push(Statement { name: s.name, body }),
        }
    }
}

fn from_account(aws: &Inventory, r: &Role, kops: &MadeByKops, role: &mut NodeRole) {
    for (policy, document) in &r.inline_policies {
        let list = policy::statements(policy, document);
        // Somebody wrote these on purpose, whatever kops gives besides.
        if policy.starts_with("additional.") {
            role.grants.extend(list);
        } else {
            keep(role, kops, list);
        }
    }
    for arn in &r.managed_policies {
        if arn.contains(":iam::aws:") && FOR_HOSTS.contains(&last(arn)) {
            continue;
        }
        let document = aws.policies.as_ref().and_then(|p| p.get(arn));
        role.attached.insert(arn.clone(), document.is_some());
        if let Some(d) = document {
            role.grants.extend(policy::statements(last(arn), d));
        }
    }
}

/// `additionalPolicies` and `externalPolicies` of the spec: all that can be told without the account.
fn from_spec(snapshot: &Snapshot, role: &mut NodeRole, problems: &mut Vec<Problem>) {
    let keys: &[&str] = if role.masters {
        &["master", "control-plane"]
    } else {
        &["node"]
    };
    let Some(spec) = snapshot.kops.cluster.as_ref().and_then(|c| c.get("spec")) else {
        return;
    };
    for key in keys {
        if let Some(json) = spec["additionalPolicies"][*key].as_str() {
            match statements_of(json) {
                Ok(list) => role
                    .grants
                    .extend(policy::named(&format!("additional.{}", role.name), &list)),
                Err(why) => problems.push(Problem::new(
                    "IAM-04",
                    Severity::Blocker,
                    format!("kops/spec.additionalPolicies.{key}"),
                    format!("is no JSON list of IAM statements ({why}): what pods may do through their node cannot be told"),
                    "Correct the text, or discover with AWS: the live role then counts.",
                )),
            }
        }
        for arn in spec["externalPolicies"][*key]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            role.attached.insert(arn.into(), false);
        }
    }
}

/// A JSON list of statements in a string, as kops takes it.
pub fn statements_of(json: &str) -> Result<Vec<Value>, String> {
    let value: Value = serde_json::from_str(json).map_err(|e| e.to_string())?;
    match value {
        Value::Array(list) if list.iter().all(Value::is_object) => Ok(list),
        Value::Array(_) => Err("a member is no object".into()),
        _ => Err("it is no list".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_cluster_name_is_cut_as_kops_cuts_it() {
        assert_eq!(kops_name("nodes.shop.test"), "nodes.shop.test");
        // 73 characters; the hash was computed with another implementation of FNV-1a and base32hex.
        let long = "nodes.this.is.a.very.long.name.that.is.longer.than.sixty.four.example.com";
        let name = kops_name(long);
        assert_eq!(name.len(), 64);
        assert_eq!(name, EXPECTED);
    }
    const EXPECTED: &str = "nodes.this.is.a.very.long.name.that.is.longer.than.sixty.-03or9c";
}
