//! The least IAM policy that a run of a plan needs. Pure: the plan says what is touched, [`table`] says by which actions, [`scope`] on what.
//!
//! One table, one row an action and kind of thing, is the truth: whoever adds a call of AWS adds its row. Tests compare the table with the call
//! log of a whole provision and its undo (none missing, none too many), and run under exactly the policy that is printed.

mod document;
mod rows;
mod scope;
pub mod table;

#[cfg(test)]
mod tests;

pub use document::{Document, LIMIT, PER_ROLE};

use crate::plan::model::{Plan, ResourceState};
use crate::world::cloud::Resource;
use document::Grant;
use scope::{Place, Subject};
use std::collections::{BTreeMap, BTreeSet};
use table::{Kind, Op, Row, TABLE};

/// What the caller is going to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// `discover` (and `init`): reads only.
    Discover,
    /// `migrate`, and what it starts with (`replay`, `status` touch nothing more).
    Migrate,
    /// `rollback`.
    Rollback,
    /// `finalize`.
    Finalize,
}

impl Verb {
    /// All of them, in the order of a migration.
    pub const ALL: [Verb; 4] = [
        Verb::Discover,
        Verb::Migrate,
        Verb::Rollback,
        Verb::Finalize,
    ];

    /// What is done to a thing of the plan: asked for, made, taken back.
    fn ops(self) -> &'static [Op] {
        match self {
            Verb::Discover => &[Op::Discover],
            Verb::Migrate => &[Op::Find, Op::Make],
            Verb::Rollback => &[Op::Find, Op::Undo],
            Verb::Finalize => &[Op::Find, Op::End],
        }
    }
}

/// What a run needs.
#[derive(Clone, Debug)]
pub struct Policies {
    /// Documents, those that only read first. Each fits into one managed policy.
    pub documents: Vec<Document>,
    /// What a person must know beside them.
    pub notes: Vec<String>,
}

/// The least policy for these verbs on this plan.
pub fn needed(plan: &Plan, verbs: &BTreeSet<Verb>) -> Policies {
    let mut place = Place::of(plan);
    let subjects = subjects(plan);
    for s in &subjects {
        if let Subject::Thing {
            resource,
            made: true,
        } = s
            && let Resource::Role {
                managed_policies, ..
            } = resource.as_ref()
        {
            place.policies.extend(managed_policies.iter().cloned());
        }
    }
    let mut grants: BTreeSet<Grant> = BTreeSet::new();
    for verb in verbs {
        for subject in &subjects {
            for row in rows(subject, verb.ops()) {
                grants.insert(Grant {
                    writes: row.writes,
                    purpose: row.kind.purpose(row.op),
                    action: row.action,
                    on: scope::arns(row.on, subject, &place),
                    condition: scope::condition(row.only, subject, &place),
                });
            }
        }
    }
    let documents = document::documents(&plan.spec.name, grants);
    let mut notes = notes(&place, plan);
    for write in [false, true] {
        let n = documents.iter().filter(|d| d.writes == write).count();
        if n > 1 {
            notes.push(format!(
                "the {} part is over the {LIMIT} characters of one managed policy and comes as {n} documents: attach all of them",
                if write { "writing" } else { "reading" }
            ));
        }
    }
    if documents.len() > PER_ROLE {
        notes.push(format!(
            "{} documents are more than the {PER_ROLE} managed policies that a role takes: raise the quota \"Managed policies attached to an IAM role\" (20 at most), or use two roles",
            documents.len()
        ));
    }
    Policies { documents, notes }
}

/// Rows of the table that count for a thing, in the table's order.
fn rows<'a>(subject: &'a Subject, ops: &'a [Op]) -> impl Iterator<Item = &'static Row> + 'a {
    TABLE
        .iter()
        .filter(move |r| r.kind == subject.kind() && ops.contains(&r.op) && subject.does(r))
}

/// Everything of a plan that AWS is asked about.
fn subjects(plan: &Plan) -> Vec<Subject> {
    let mut out = vec![
        Subject::Plain(Kind::Identity),
        Subject::Plain(Kind::Account),
        Subject::Green(plan.target.cluster.name.clone()),
    ];
    if plan
        .spec
        .blue
        .state_store
        .as_deref()
        .is_some_and(|s| s.starts_with("s3://"))
    {
        out.push(Subject::Store(
            plan.spec.blue.state_store.clone().unwrap_or_default(),
        ));
    }
    let keys = keys(plan);
    if !keys.is_empty() {
        out.push(Subject::Keys(keys));
    }
    let zones: BTreeSet<String> = plan.basis.zones.values().cloned().collect();
    out.push(Subject::Zones(zones.into_iter().collect()));
    let states: BTreeMap<&str, ResourceState> = plan
        .target
        .resources
        .iter()
        .map(|r| (r.id.as_str(), r.state))
        .collect();
    for step in &plan.steps {
        if matches!(step.kind.as_str(), "access.assume" | "access.prove") {
            for p in step.params["principals"].as_array().into_iter().flatten() {
                out.push(Subject::Principal(
                    p.as_str().unwrap_or_default().to_string(),
                ));
            }
        }
        if step.kind != "cloud.ensure" {
            continue;
        }
        // Whoever writes a plan writes resources that can be read; a plan file of a later release is refused before this.
        let Ok(resource) = serde_json::from_value::<Resource>(step.params["resource"].clone())
        else {
            continue;
        };
        let shown = crate::plan::diff::shown(&resource.id(), &plan.target.cluster.name);
        // What is there already and stays somebody else's is looked at and never touched.
        let made = !matches!(
            states.get(shown.as_str()),
            Some(ResourceState::ExistsEqual | ResourceState::Adopt | ResourceState::Terraform)
        );
        out.push(Subject::Thing {
            resource: Box::new(resource),
            made,
        });
    }
    out
}

/// KMS keys that the spec names and that volumes of green would use: discover looks whether they can be used.
fn keys(plan: &Plan) -> Vec<String> {
    let green = &plan.spec.green;
    let named = [&green.control_plane.secrets_key, &green.nodes.volume_key];
    let mut keys: BTreeSet<String> = named
        .iter()
        .filter_map(|k| k.as_deref())
        .map(String::from)
        .collect();
    for step in &plan.steps {
        let r = &step.params["resource"];
        let disks = r["volumes"]
            .as_array()
            .into_iter()
            .flatten()
            .chain([&r["root"]]);
        keys.extend(disks.filter_map(|d| d["kmsKey"].as_str()).map(String::from));
    }
    keys.into_iter().collect()
}

fn notes(place: &Place, plan: &Plan) -> Vec<String> {
    let mut notes = vec![];
    if place.account == "*" {
        notes.push(
            "the account is not known (no aws.account, no snapshot of AWS): its place in each ARN is `*`; run discover, or set aws.account, for a narrower policy"
                .into(),
        );
    }
    if place.region == "*" {
        notes.push("the region is not known: its place in each ARN is `*`; set aws.region".into());
    }
    if plan.basis.zones.is_empty() {
        notes.push(
            "no hosted zone was read: reading is allowed on all zones, changing on none; run discover and plan, then print again".into(),
        );
    }
    let left: Vec<&str> = plan
        .target
        .resources
        .iter()
        .filter(|r| r.state == ResourceState::Terraform)
        .map(|r| r.id.as_str())
        .collect();
    if !left.is_empty() {
        notes.push(format!(
            "{} left to Terraform: whoever runs terraform needs rights of their own for them ({})",
            if left.len() == 1 {
                "one resource is".to_string()
            } else {
                format!("{} resources are", left.len())
            },
            crate::checks::few(&left)
        ));
    }
    notes.push(
        "a KMS key named by volumes or the cluster must allow its use in its own key policy; rights in the clusters come from access entries and RBAC, not from here"
            .into(),
    );
    notes
}
