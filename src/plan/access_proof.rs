//! Which admins' way into green a run proves, and what it says of those whose it cannot.
//!
//! Only the caller's entry is proven by the run itself. If it were the only one that works, whoever loses that role would be locked out of
//! production (the creator's lock-in), so the others are tried before anything is built on green: the caller assumes each role and shows green
//! a token of it.

use super::iam::Problem;
use super::model::{Severity, TargetAccess};
use super::waivers::accepted;
use crate::snapshot::model::Snapshot;
use crate::spec::model::Waiver;
use crate::world::cloud::{assume, principal_of};

const ADMIN: &str = "AmazonEKSClusterAdminPolicy";

/// What is to be proven.
#[derive(Clone, Debug, Default)]
pub(super) struct Proof {
    /// Roles that the caller can assume, as far as their trust says.
    pub principals: Vec<String>,
    /// What cannot be proven, and why.
    pub problems: Vec<Problem>,
}

fn problem(severity: Severity, object: String, message: String, remedy: &str) -> Problem {
    Problem::new("IAM-07", severity, &object, message, remedy)
}

/// Looks at the admins among the entries.
pub(super) fn proof(entries: &[TargetAccess], waivers: &[Waiver], snapshot: &Snapshot) -> Proof {
    let mut out = Proof::default();
    let today = snapshot.taken.as_deref().and_then(|d| d.parse().ok());
    let aws = snapshot.aws.as_ref();
    let caller = aws
        .map(|a| principal_of(&a.identity.arn))
        .unwrap_or_default();
    for e in entries
        .iter()
        .filter(|e| e.policy.as_deref() == Some(ADMIN) && e.principal != caller)
    {
        let object = format!("access-proof/{}", e.principal);
        let why = if accepted(waivers, today, "IAM-07", &object) {
            Err("its proof is taken out by a waiver".to_string())
        } else if !e.principal.contains(":role/") {
            Err("it is a user, and only that user can show a token of its own".to_string())
        } else {
            match aws.and_then(|a| a.roles.iter().find(|r| r.arn == e.principal)) {
                Some(role) => assume::trusts(
                    &role.trust,
                    &aws.map_or(String::new(), |a| a.identity.arn.clone()),
                ),
                // Of another account, or not read: the run tries it, before anything is written.
                None => Ok(()),
            }
        };
        match why {
            Ok(()) => out.principals.push(e.principal.clone()),
            Err(why) => out.problems.push(problem(
                Severity::Warning,
                object,
                format!(
                    "the run cannot prove that this admin gets into green: {why}. If the entry were wrong, it would be found out when it is needed"
                ),
                "Let the caller assume the role for the run, or have one of these people run `kubectl auth whoami` on green after provision; then waive this finding.",
            )),
        }
    }
    out.principals.sort();
    out.principals.dedup();
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::cloud::{CloudIdentity, Inventory, Role};
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    fn entry(principal: &str, policy: &str) -> TargetAccess {
        TargetAccess {
            principal: principal.into(),
            groups: vec![],
            policy: Some(policy.into()),
            from: "blue".into(),
        }
    }

    fn account(roles: &[(&str, Value)]) -> Snapshot {
        Snapshot {
            aws: Some(Inventory {
                identity: CloudIdentity {
                    account: "111122223333".into(),
                    region: "eu-west-1".into(),
                    arn: "arn:aws:sts::111122223333:assumed-role/crossfade/me".into(),
                },
                roles: roles
                    .iter()
                    .map(|(name, principal)| Role {
                        name: name.to_string(),
                        arn: format!("arn:aws:iam::111122223333:role/{name}"),
                        trust: json!({"Statement": [{"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}]}),
                        managed_policies: vec![],
                        inline_policies: BTreeMap::new(),
                        boundary: None,
                        tags: BTreeMap::new(),
                    })
                    .collect(),
                ..Inventory::default()
            }),
            ..Snapshot::default()
        }
    }

    #[test]
    fn admins_whose_role_the_caller_can_assume_are_proven_and_the_others_are_said() {
        let s = account(&[
            ("ops", json!({"AWS": "arn:aws:iam::111122223333:root"})),
            (
                "sso",
                json!({"Federated": "arn:aws:iam::111122223333:saml-provider/S"}),
            ),
        ]);
        let p = proof(
            &[
                entry("arn:aws:iam::111122223333:role/ops", ADMIN),
                entry("arn:aws:iam::111122223333:role/sso", ADMIN),
                entry("arn:aws:iam::111122223333:user/old-admin", ADMIN),
                entry("arn:aws:iam::444455556666:role/auditors", ADMIN),
                // No admin, and the caller, whose own entry is proven anyway.
                entry(
                    "arn:aws:iam::111122223333:role/readers",
                    "AmazonEKSViewPolicy",
                ),
                entry("arn:aws:iam::111122223333:role/crossfade", ADMIN),
            ],
            &[],
            &s,
        );
        assert_eq!(
            p.principals,
            [
                "arn:aws:iam::111122223333:role/ops",
                "arn:aws:iam::444455556666:role/auditors"
            ]
        );
        let said: Vec<&str> = p.problems.iter().map(|p| p.object.as_str()).collect();
        assert_eq!(
            said,
            [
                "access-proof/arn:aws:iam::111122223333:role/sso",
                "access-proof/arn:aws:iam::111122223333:user/old-admin"
            ]
        );
    }

    #[test]
    fn a_waiver_of_one_proof_takes_it_out_of_the_run_and_leaves_the_finding() {
        let s = account(&[("ops", json!({"AWS": "arn:aws:iam::111122223333:root"}))]);
        let waiver: Waiver = serde_json::from_value(json!({
            "check": "IAM-07", "object": "access-proof/arn:aws:iam::111122223333:role/ops",
            "reason": "the right to assume it is given only by ticket",
        }))
        .unwrap();
        let p = proof(
            &[entry("arn:aws:iam::111122223333:role/ops", ADMIN)],
            &[waiver],
            &s,
        );
        assert!(p.principals.is_empty());
        assert_eq!(p.problems.len(), 1);
        assert!(p.problems[0].message.contains("taken out by a waiver"));
    }

    #[test]
    fn nothing_is_built_on_green_before_its_admins_are_proven() {
        let (mut spec, snapshot) = crate::plan::tests::shop();
        spec.green.access = serde_json::from_value(json!([
            {"principal": "arn:aws:iam::000000000000:role/people", "policy": ADMIN},
        ]))
        .unwrap();
        let plan = crate::plan::plan(&spec, &snapshot);
        let step = |id: &str| plan.steps.iter().find(|s| s.id == id).expect("a step");
        let needs = |id: &str, need: &str| {
            let mut seen = std::collections::BTreeSet::new();
            let mut todo = vec![id.to_string()];
            while let Some(next) = todo.pop() {
                if next == need {
                    return true;
                }
                if seen.insert(next.clone()) {
                    todo.extend(step(&next).needs.iter().cloned());
                }
            }
            false
        };
        assert!(needs("provision/cluster/shop-green", "preflight/access"));
        for s in &plan.steps {
            let on_green = s.id.starts_with("provision/node-group/")
                || s.id.starts_with("provision/addon/")
                || s.id.starts_with("replay/");
            assert!(
                !on_green || needs(&s.id, "provision/access-proven"),
                "{} goes on without proof",
                s.id
            );
        }
        // Without admins beside the caller there is nothing to prove.
        spec.green.access.clear();
        let plan = crate::plan::plan(&spec, &snapshot);
        assert!(plan.steps.iter().all(|s| !s.kind.starts_with("access.")));
    }
}
