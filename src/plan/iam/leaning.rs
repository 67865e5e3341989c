//! IAM-04: rights that blue's pods have through their node and that nobody has mapped yet.

use super::node_role::{NodeRole, Read, last};
use super::policy::{self, Statement, list};
use super::workloads::{self, Settings, Workload};
use super::{Iam, Problem};
use crate::plan::dns::Names;
use crate::plan::model::Severity;
use crate::rewrite::Context;
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use serde_json::Value;
use std::collections::BTreeSet;

/// Workloads that a finding names at most.
const SHOWN: usize = 6;

pub(super) fn unmapped(
    spec: &Spec,
    snapshot: &Snapshot,
    cx: &Context,
    workloads: &[Workload],
    names: &Names,
    iam: &mut Iam,
) {
    let mut found = vec![];
    let mapped: BTreeSet<&str> = spec
        .green
        .roles
        .values()
        .flat_map(|w| w.from_node_role.iter().chain(&w.policies))
        .map(String::as_str)
        .collect();
    let imds = workloads::imds(snapshot);
    let maps = if iam.node_roles.iter().any(|r| !r.grants.is_empty()) {
        workloads::config_maps(snapshot)
    } else {
        Default::default()
    };
    // A pod that has a role of its own, by whatever way, does not need its node's.
    let lean: Vec<(&Workload, Settings)> = workloads
        .iter()
        .filter(|w| !w.platform && w.agent_role.is_none() && !cx.sa_roles.contains_key(&w.account))
        .filter(|w| !cx.replaced.contains_key(&w.id))
        .map(|w| (w, w.settings(&maps)))
        .collect();
    for role in &iam.node_roles {
        known(snapshot, role, &mut found);
        for s in role.grants.iter().filter(|s| policy::allows(&s.body)) {
            let policy = s.name.split('/').next().unwrap_or("");
            let whole = role
                .attached
                .keys()
                .any(|arn| last(arn) == policy && mapped.contains(arn.as_str()));
            if mapped.contains(s.name.as_str()) || whole || accounted(s, cx, names, &lean) {
                continue;
            }
            statement(snapshot, role, s, &imds, &lean, &mut found);
        }
        for (arn, read) in &role.attached {
            if !read && !mapped.contains(arn.as_str()) {
                found.push(Problem::new(
                    "IAM-04",
                    Severity::Warning,
                    format!("role/{}/{}", role.name, last(arn)),
                    format!(
                        "{arn} is attached to the role of {}, and green's nodes do not have it; {}",
                        nodes(role),
                        if role.masters { "only pods that run on masters have it" } else { imds.why.as_str() }
                    ),
                    "Find out which pods use it and name it under green.roles.NAMESPACE/ACCOUNT.policies, or waive IAM-04 when none does.",
                ));
            }
        }
    }
    let masters = iam.node_roles.iter().find(|r| r.masters);
    for w in workloads.iter().filter(|w| w.on_masters && !w.platform) {
        if cx.sa_roles.contains_key(&w.account) || cx.replaced.contains_key(&w.id) {
            continue;
        }
        found.push(Problem::new(
            "IAM-04",
            Severity::Warning,
            w.id.clone(),
            format!(
                "runs on masters and so may do what {} may: EKS has no such nodes, and its account {} has no role",
                masters.map_or("their role".into(), |r| format!("role/{}", r.name)),
                w.account
            ),
            "Give its account a role under green.roles, or waive this when it calls no AWS service.",
        ));
    }
    iam.problems.extend(found);
}

fn nodes(role: &NodeRole) -> &'static str {
    if role.masters {
        "blue's masters"
    } else {
        "blue's workers"
    }
}

/// What is not known about a node role.
fn known(snapshot: &Snapshot, role: &NodeRole, found: &mut Vec<Problem>) {
    let read = snapshot.aws.is_some();
    let what = match role.read {
        Read::Live => return,
        Read::Spec if read => {
            "the account has no role of this name: only what the kops spec adds to it is known"
        }
        Read::Spec => {
            "the account was not read: only what the kops spec adds to this role is known, not what was attached by hand"
        }
        Read::Nothing if read => "the role behind this instance profile was not read",
        Read::Nothing => "the account was not read: what this instance profile allows is not known",
    };
    found.push(Problem::new(
        "IAM-04",
        Severity::NotChecked,
        format!("role/{}", role.name),
        format!("not checked: {what}"),
        "Run discover with AWS credentials, or add `aws iam get-account-authorization-details` output to the files.",
    ));
}

/// Rights that green has another way already.
fn accounted(s: &Statement, cx: &Context, names: &Names, lean: &[(&Workload, Settings)]) -> bool {
    let actions = list(&s.body, "Action");
    // kube2iam and kiam assume their pods' roles with it; those roles go to service accounts.
    if !actions.is_empty()
        && actions
            .iter()
            .all(|a| a.eq_ignore_ascii_case("sts:AssumeRole"))
    {
        let asked: BTreeSet<&str> = cx.pod_roles.values().flatten().map(|r| last(r)).collect();
        let resources = list(&s.body, "Resource");
        let all = !resources.is_empty()
            && resources
                .iter()
                .all(|r| asked.contains(last(r)) || r.contains('*') && !asked.is_empty());
        return all && !lean.iter().any(|(_, t)| strong(s, t));
    }
    // Green's ExternalDNS has a role of its own.
    let route53 = |a: &&str| a.to_lowercase().starts_with("route53:");
    !actions.is_empty()
        && actions.iter().all(route53)
        && !names.instances.is_empty()
        && !lean.iter().any(|(_, t)| strong(s, t))
}

fn strong(s: &Statement, settings: &Settings) -> bool {
    workloads::hint(&s.body, settings).is_some_and(|h| h.strong)
}

fn statement(
    snapshot: &Snapshot,
    role: &NodeRole,
    s: &Statement,
    imds: &workloads::Imds,
    lean: &[(&Workload, Settings)],
    found: &mut Vec<Problem>,
) {
    let reaches = |w: &Workload| (imds.open || w.host_network) && w.on_masters == role.masters;
    let mut users: Vec<(bool, String)> = lean
        .iter()
        .filter(|(w, _)| reaches(w))
        .filter_map(|(w, t)| {
            let h = workloads::hint(&s.body, t)?;
            Some((
                !h.strong,
                format!("{} of account {} ({})", w.id, w.account, h.why),
            ))
        })
        .collect();
    users.sort();
    // What is known of the workers' metadata says nothing about masters.
    let why = if role.masters {
        "only pods that run on masters have it"
    } else {
        imds.why.as_str()
    };
    let certain = users.first().is_some_and(|(weak, _)| !weak);
    let n = users.len();
    let shown: Vec<String> = users.into_iter().take(SHOWN).map(|(_, u)| u).collect();
    let who = if snapshot.blue.objects.is_empty() {
        "workloads were not read, so nobody can say which use it".into()
    } else if shown.is_empty() {
        format!("no workload shows that it uses it; {why}")
    } else {
        let more = if n > SHOWN {
            format!(" and {} more", n - SHOWN)
        } else {
            String::new()
        };
        format!(
            "hints, no proof, at what uses it: {}{more}; {why}",
            shown.join("; ")
        )
    };
    let dns = list(&s.body, "Action")
        .iter()
        .all(|a| a.to_lowercase().starts_with("route53:"))
        && !s.name.starts_with("additional.");
    let legacy = if dns {
        " (legacy IAM gave it to every node: ExternalDNS and cert-manager lean on it)"
    } else {
        ""
    };
    let example = name_for(&s.body);
    found.push(Problem::new(
        "IAM-04",
        if certain {
            Severity::Blocker
        } else {
            Severity::Warning
        },
        format!("role/{}/{}", role.name, s.name),
        format!(
            "the role of {} allows {}{legacy}, and green's nodes do not: {who}",
            nodes(role),
            policy::words(&s.body)
        ),
        if role.masters {
            "Give the account that uses it a role (green.roles.NAMESPACE/ACCOUNT.role), or waive IAM-04 for it when none does.".into()
        } else {
            format!("Map it: green.roles.NAMESPACE/ACCOUNT.fromNodeRole: [{:?}]{example}, or waive IAM-04 for it when no pod uses it.", s.name)
        },
    ));
}

/// A statement that hands everything out deserves a word.
fn name_for(s: &Value) -> &'static str {
    if list(s, "Action").contains(&"*") {
        " (it allows everything: better a role with less)"
    } else {
        ""
    }
}
