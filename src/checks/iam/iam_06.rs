//! IAM-06: who else names a role of blue. Trust policies are read; policies of buckets, keys and queues only people know.

use crate::checks::{Answered, Check, Input, Report, few};
use crate::plan::iam::node_role::{NodeRole, last};
use crate::plan::iam::policy;
use crate::plan::model::Severity;
use crate::plan::model::TargetRole;

pub(super) const CHECK: Check = Check {
    id: "IAM-06",
    severity: Severity::Warning,
    question: "Do policies of keys, buckets, queues or roles name blue's roles only?",
    needs: &[],
    answered: Answered::Person,
    remedy: "Let them name green's roles too.",
    source: "checks.md IAM-06",
    run,
};

fn run(i: &Input, r: &mut Report) {
    super::said(i, r);
    for (arn, new) in &i.iam.successors {
        r.found(
            format!("role/{}", last(arn)),
            format!(
                "its rights go to {} on green: a policy of a bucket, key or queue that names {arn} shuts green out (crossfade does not read those policies)",
                few(new)
            ),
        );
    }
    let Some(aws) = &i.snapshot.aws else { return };
    let nodes: Vec<&NodeRole> = i.iam.node_roles.iter().collect();
    let asked: Vec<&str> =
        i.cx.pod_roles
            .values()
            .flatten()
            .map(|role| last(role))
            .collect();
    for role in &aws.roles {
        let text = role.trust.to_string();
        // kube2iam's and kiam's roles trust the node; they get green's issuer (IAM-03).
        if asked.contains(&role.name.as_str()) {
            continue;
        }
        let Some(node) = nodes.iter().find(|n| names(&text, &n.name)) else {
            continue;
        };
        let heirs: Vec<&str> = i
            .target
            .roles
            .iter()
            .filter(|t| t.from.as_deref() == Some(&node.name) && assumes(t, &role.name))
            .map(|t| t.name.as_str())
            .collect();
        if heirs.is_empty() {
            r.found(
                format!("role/{}", role.name),
                format!("trusts role/{}: something on blue's nodes may assume it, and nothing on green will", node.name),
            );
        } else {
            r.blocker(
                format!("role/{}", role.name),
                format!(
                    "{} may assume it on green, but it trusts role/{} only",
                    few(&heirs),
                    node.name
                ),
                "Add the new role to its trust policy, beside blue's.",
            );
        }
    }
}

/// Whether a trust policy names a role, whatever its path.
fn names(trust: &str, role: &str) -> bool {
    trust.contains(&format!("/{role}\""))
}

/// Whether a statement of the role's own policies lets it assume another.
fn assumes(role: &TargetRole, other: &str) -> bool {
    role.inline_policies
        .values()
        .flat_map(policy::bodies)
        .filter(|s| policy::allows(s))
        .any(|s| {
            policy::list(s, "Action")
                .iter()
                .any(|a| a.eq_ignore_ascii_case("sts:AssumeRole") || *a == "sts:*" || *a == "*")
                && policy::list(s, "Resource")
                    .iter()
                    .any(|x| *x == "*" || last(x) == other)
        })
}
