//! What AWS rights blue's pods have today, and the roles by which they have them on green (kops.md 5, eks.md 3).
//!
//! Two rules: each statement of a role that is made from blue can be traced to one on blue (`TargetRole::grants`), and nothing is
//! widened: what denies goes with what allows, a boundary goes with its role, and green's node role gets nothing of blue's.

mod accounts;
pub mod controllers;
mod leaning;
mod limits;
pub mod made_by_kops;
pub mod node_role;
pub mod policy;
pub mod trust;
pub mod workloads;

#[cfg(test)]
mod tests;

pub use limits::{INLINE, MANAGED};

use super::addons::Addons;
use super::dns::Names;
use super::generated;
use super::keys;
use super::kops::role_name;
use super::model::{Severity, TargetRole};
use crate::rewrite::{Context, partition};
use crate::snapshot::model::Snapshot;
use crate::snapshot::roll::Found;
use crate::spec::model::{Identity, Spec};
use node_role::NodeRole;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Policies of green's node role (eks.md 1.3). Nothing of blue's node role is added: pods have roles of their own.
const WORKER: &[&str] = &[
    "AmazonEKSWorkerNodePolicy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
];

/// Something that a check will say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Id of the check.
    pub check: &'static str,
    /// Severity.
    pub severity: Severity,
    /// Object.
    pub object: String,
    /// What is the matter.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

impl Problem {
    pub(crate) fn new(
        check: &'static str,
        severity: Severity,
        object: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Problem {
        Problem {
            check,
            severity,
            object: object.into(),
            message: message.into(),
            remedy: remedy.into(),
        }
    }
}

/// IAM of blue and what becomes of it.
#[derive(Clone, Debug, Default)]
pub struct Iam {
    /// What the house demands of every role.
    pub house: House,
    /// Roles that blue's nodes carry.
    pub node_roles: Vec<NodeRole>,
    /// Roles of green's service accounts.
    pub roles: Vec<TargetRole>,
    /// Role of blue to the role of green that takes its place: policies of buckets, keys and queues name the first.
    pub successors: BTreeMap<String, Vec<String>>,
    /// What checks say.
    pub problems: Vec<Problem>,
}

/// What an organisation demands of every role in the account, as blue's roles show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct House {
    /// Permissions boundary.
    pub boundary: Option<String>,
    /// Path, `None` for `/`.
    pub path: Option<String>,
}

impl House {
    fn of(snapshot: &Snapshot, node_roles: &[NodeRole]) -> House {
        let spec = snapshot.kops.cluster.as_ref();
        let declared = spec
            .and_then(|c| {
                text(c, "/spec/iam/permissionsBoundary").or(text(c, "/spec/iam/permissionBoundary"))
            })
            .map(String::from);
        let workers = || node_roles.iter().filter(|r| !r.masters);
        let path = workers().find_map(|w| {
            let arn = snapshot
                .aws
                .iter()
                .flat_map(|a| &a.roles)
                .find(|r| r.name == w.name)
                .map(|r| r.arn.as_str())?;
            let (_, tail) = arn.split_once(":role/")?;
            let (path, _) = tail.rsplit_once('/')?;
            Some(format!("/{path}/"))
        });
        House {
            boundary: declared.or_else(|| workers().find_map(|r| r.boundary.clone())),
            path,
        }
    }

    /// ARN of a role that is made on green.
    pub fn arn(&self, region: &str, account: &str, role: &str) -> String {
        format!(
            "arn:{}:iam::{account}:role{}{role}",
            partition(region),
            self.path.as_deref().unwrap_or("/")
        )
    }
}

pub(crate) fn text<'v>(v: &'v Value, p: &str) -> Option<&'v str> {
    crate::object::at(v, p).and_then(Value::as_str)
}

/// Studies blue and tells the rewrite which account gets which role.
pub(super) fn study(spec: &Spec, snapshot: &Found, cx: &mut Context, names: &Names) -> Iam {
    let mut problems = vec![];
    let node_roles = node_role::node_roles(snapshot, &spec.blue.cluster, &mut problems);
    let house = House::of(snapshot, &node_roles);
    let workloads = workloads::workloads(snapshot);
    let mut iam = Iam {
        house,
        node_roles,
        problems,
        ..Iam::default()
    };
    accounts::roles(spec, snapshot, cx, &workloads, &mut iam);
    leaning::unmapped(spec, snapshot, cx, &workloads, names, &mut iam);
    limits::sizes(snapshot, &mut iam);
    iam.problems.sort();
    iam.problems.dedup();
    iam
}

fn managed(region: &str, name: &str) -> String {
    let path = if matches!(
        name,
        "AmazonEBSCSIDriverPolicy" | "AmazonEFSCSIDriverPolicy"
    ) {
        "service-role/"
    } else {
        ""
    };
    format!("arn:{}:iam::aws:policy/{path}{name}", partition(region))
}

/// Every role of the target: those of the platform, then those of blue's service accounts.
pub(super) fn complete(
    spec: &Spec,
    region: &str,
    names: &Names,
    addons: &Addons,
    snapshot: &Snapshot,
    iam: &Iam,
) -> Vec<TargetRole> {
    let green = &spec.green.name;
    let plain = |what: &str| TargetRole {
        name: role_name(green, what),
        boundary: iam.house.boundary.clone(),
        path: iam.house.path.clone(),
        ..TargetRole::default()
    };
    let of = |list: &[&str]| list.iter().map(|p| managed(region, p)).collect();
    let mut out = vec![
        TargetRole {
            service: Some("eks.amazonaws.com".into()),
            policies: of(&["AmazonEKSClusterPolicy"]),
            ..plain("cluster")
        },
        TargetRole {
            service: Some("ec2.amazonaws.com".into()),
            policies: of(WORKER),
            ..plain("node")
        },
        TargetRole {
            service_account: Some("kube-system/aws-node".into()),
            policies: of(&["AmazonEKS_CNI_Policy"]),
            ..plain("vpc-cni")
        },
    ];
    for (what, account, policy) in &addons.drivers {
        let mut role = TargetRole {
            service_account: Some(account.to_string()),
            policies: of(&[policy]),
            ..plain(what)
        };
        if *what == "ebs-csi"
            && let Some(document) = keys::of_volumes(snapshot, region)
        {
            role.policies.push("keys".into());
            role.inline_policies.insert("keys".into(), document);
        }
        out.push(role);
    }
    for controller in &addons.controllers {
        let Some((account, document)) =
            controllers::account(controller).zip(controllers::policy(controller, region, green))
        else {
            continue;
        };
        // A role that somebody gave its account, on blue or in migration.yaml, is enough.
        let taken = iam
            .roles
            .iter()
            .any(|r| r.service_account.as_deref() == Some(account));
        if !taken {
            out.push(TargetRole {
                service_account: Some(account.into()),
                policies: vec![controller.to_string()],
                inline_policies: BTreeMap::from([(controller.to_string(), document)]),
                ..plain(controller)
            });
        }
    }
    if !names.instances.is_empty() {
        out.push(TargetRole {
            service_account: Some(format!(
                "{}/{}",
                generated::namespace(spec, names),
                generated::EXTERNAL_DNS
            )),
            policies: vec!["route53".into()],
            inline_policies: BTreeMap::from([("route53".into(), route53(region, names))]),
            ..plain(generated::EXTERNAL_DNS)
        });
    }
    for role in &mut out {
        role.pod_identity = role
            .service_account
            .as_deref()
            .is_some_and(|account| spec.green.identity.of(account, true) == Identity::PodIdentity);
    }
    out.extend(iam.roles.iter().cloned());
    out
}

/// Least rights on the zones that are handed over.
fn route53(region: &str, names: &Names) -> Value {
    let zones: Vec<String> = names
        .zones
        .values()
        .map(|id| format!("arn:{}:route53:::hostedzone/{id}", partition(region)))
        .collect();
    let zones = if zones.is_empty() {
        vec![format!("arn:{}:route53:::hostedzone/*", partition(region))]
    } else {
        zones
    };
    json!({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Action": ["route53:ChangeResourceRecordSets", "route53:ListResourceRecordSets", "route53:ListTagsForResource", "route53:ListTagsForResources"], "Resource": zones},
        {"Effect": "Allow", "Action": ["route53:ListHostedZones"], "Resource": ["*"]}
    ]})
}
