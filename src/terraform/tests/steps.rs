//! The step `terraform.apply` in the plan, on the twin with its faults, and what it refuses.

use super::super::{APPLY, address, covers, resources};
use super::{demo, via_terraform};
use crate::engine::rehearse::Company;
use crate::engine::silent;
use crate::plan::model::ResourceState;
use crate::spec::model::Via;
use crate::step::terraform_apply::{job, only_creates};
use crate::world::Class;
use crate::world::cloud::Resource;
use crate::world::live::LiveTerraform;
use crate::world::terraform::{Change, Planned, Terraform, What};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[test]
fn one_step_makes_what_is_greens_own_and_what_others_own_keeps_a_step_each() {
    let (_, _, plan) = via_terraform();
    let step = plan
        .steps
        .iter()
        .find(|s| s.kind == APPLY)
        .expect("the step");
    let (_, _, direct) = {
        let (spec, snapshot) = demo();
        let plan = crate::plan::plan(&spec, &snapshot);
        (spec, snapshot, plan)
    };
    let all = resources(&direct);
    let ids = |list: &[(Resource, bool)], terraform: bool| -> BTreeSet<String> {
        list.iter()
            .filter(|(_, t)| *t == terraform)
            .map(|(r, _)| r.id())
            .collect()
    };
    let here = resources(&plan);
    let expected: BTreeSet<String> = all
        .iter()
        .filter(|(r, _)| covers(r))
        .map(|(r, _)| r.id())
        .collect();
    assert_eq!(ids(&here, true), expected);
    let rest: BTreeSet<String> = all
        .iter()
        .filter(|(r, _)| !covers(r))
        .map(|(r, _)| r.id())
        .collect();
    assert_eq!(ids(&here, false), rest);
    assert!(rest.iter().any(|r| r.starts_with("tag/")), "{rest:?}");
    // Whoever needed one of them waits for all of them; what they need is no part of them.
    let ids: BTreeSet<&String> = plan.steps.iter().map(|s| &s.id).collect();
    for s in &plan.steps {
        for n in &s.needs {
            assert!(ids.contains(n), "{} waits for {n}, which is no step", s.id);
        }
    }
    assert!(
        step.needs.iter().all(|n| n.starts_with("preflight/")),
        "{:?}",
        step.needs
    );
    let first = plan
        .steps
        .iter()
        .find(|s| s.kind == "replay.wave")
        .expect("a wave");
    assert!(first.needs.contains(&step.id), "{:?}", first.needs);
    assert!(
        step.expect_s[0] >= 600 && step.expect_s[1] >= 1500,
        "{:?}",
        step.expect_s
    );
}

#[test]
fn a_kept_role_that_waits_for_the_issuer_is_not_waited_for_by_terraform() {
    let (spec, mut snapshot) = demo();
    let mut spec = spec;
    spec.provision.via = Via::Terraform;
    // The whole of green stands but its nodes: everything else is looked at, one step each.
    let direct = crate::plan::plan(&spec, &snapshot);
    let accounts: Vec<Resource> = resources(&direct)
        .into_iter()
        .map(|(r, _)| r)
        .filter(super::super::imports::after_cluster)
        .collect();
    let Some(Resource::Role {
        name,
        trust,
        managed_policies,
        inline_policies,
        ..
    }) = accounts.first()
    else {
        panic!("the demo has a role for a service account");
    };
    let aws = snapshot.aws.as_mut().expect("the account was read");
    aws.roles.push(crate::world::cloud::Role {
        name: name.clone(),
        arn: format!("arn:aws:iam::{}:role/{name}", aws.identity.account),
        trust: trust.clone(),
        managed_policies: managed_policies.clone(),
        inline_policies: inline_policies.clone(),
        boundary: None,
        tags: [("crossfade.dev/run".to_string(), "demo-0".to_string())].into(),
    });
    aws.roles.sort_by(|a, b| a.name.cmp(&b.name));
    let plan = crate::plan::plan(&spec, &snapshot);
    let state = plan
        .target
        .resources
        .iter()
        .find(|r| r.id == format!("role/{name}"));
    assert_ne!(
        state.map(|s| s.state),
        Some(ResourceState::Create),
        "{state:?}"
    );
    // Sorted with every edge kept: no ring.
    let place: BTreeMap<&String, usize> = plan
        .steps
        .iter()
        .enumerate()
        .map(|(i, s)| (&s.id, i))
        .collect();
    for (i, s) in plan.steps.iter().enumerate() {
        assert!(
            s.needs.iter().all(|n| place[n] < i),
            "{} {:?}",
            s.id,
            s.needs
        );
    }
}

#[test]
fn a_rehearsal_with_terraform_goes_there_and_back_and_survives_deaths_and_lost_answers_on_the_way()
{
    let (spec, snapshot, plan) = via_terraform();
    let company = Company {
        spec: &spec,
        snapshot: &snapshot,
        plan: Arc::new(plan),
        registry: crate::step::registry(),
    };
    let said = |c: &crate::engine::rehearse::FaultClass| {
        println!("{} of {}: {}", c.cases - c.failed.len(), c.cases, c.class)
    };
    let r = company.with_faults(silent(), 4, 1, &said).expect("it runs");
    assert_eq!(
        (r.outcome, r.rollback.outcome),
        ("migrated", "restored"),
        "{:?} {:?}",
        r.stopped,
        r.rollback.stopped
    );
    assert_eq!(r.violations, Vec::<String>::new());
    for class in r.faults.expect("tried") {
        assert_eq!(class.failed, Vec::<String>::new(), "{}", class.class);
    }
    assert!(
        r.virtual_s > 600.0,
        "a cluster takes its minutes: {}",
        r.virtual_s
    );
}

#[test]
fn a_plan_that_deletes_replaces_or_changes_anything_is_refused_by_name() {
    let plan = |actions: &[&str]| Planned {
        sha256: String::new(),
        tool: String::new(),
        job: String::new(),
        changes: vec![Change {
            address: "module.cluster.aws_eks_cluster.green".into(),
            kind: "aws_eks_cluster".into(),
            actions: actions.iter().map(|a| (*a).into()).collect(),
        }],
    };
    only_creates(&plan(&["create"])).unwrap();
    for bad in [
        &["delete"] as &[&str],
        &["delete", "create"],
        &["create", "delete"],
        &["update"],
        &["forget"],
        &["import"],
    ] {
        let e = only_creates(&plan(bad)).unwrap_err().to_string();
        assert!(e.contains("module.cluster.aws_eks_cluster.green"), "{e}");
    }
}

#[tokio::test]
async fn a_machine_without_the_program_is_told_so_with_the_ways_on() {
    let dir = tempfile::tempdir().unwrap();
    let (mut spec, _, plan) = via_terraform();
    spec.provision.binary = Some("no-such-terraform".into());
    let live = LiveTerraform::new(&spec, dir.path());
    let job = job(&plan, "demo-1", "arn:aws:iam::000000000000:role/ops");
    let e = live.plan(&job, &What::Pinned).await.unwrap_err();
    assert_eq!(e.class, Class::Refused);
    assert!(
        e.at.contains("no-such-terraform") && e.message.contains("not on this machine"),
        "{e:?}"
    );
    assert!(e.remedy.contains("provision.binary"), "{e:?}");
}

#[tokio::test]
async fn a_file_that_would_add_to_the_plan_is_refused_in_crossfades_own_folder() {
    let dir = tempfile::tempdir().unwrap();
    let (spec, _, plan) = via_terraform();
    let live = LiveTerraform::new(&spec, dir.path());
    let job = job(&plan, "demo-1", "arn:aws:iam::000000000000:role/ops");
    std::fs::create_dir_all(dir.path().join("terraform-run")).unwrap();
    std::fs::write(
        dir.path().join("terraform-run/evil.auto.tfvars"),
        "account = \"1\"\n",
    )
    .unwrap();
    let e = live.plan(&job, &What::Pinned).await.unwrap_err();
    assert!(e.at.contains("evil.auto.tfvars"), "{e:?}");
}

#[test]
fn addresses_of_the_plan_are_where_the_run_looks_for_them() {
    let (_, _, plan) = via_terraform();
    let job = job(&plan, "demo-1", "arn:aws:iam::000000000000:role/ops");
    assert_eq!(
        job.resources.len(),
        resources(&plan).iter().filter(|(_, t)| *t).count()
    );
    let known = super::super::Known {
        account: plan.basis.account.clone(),
        caller: Some("arn:aws:iam::000000000000:role/ops".into()),
    };
    for (a, r) in &job.resources {
        assert_eq!(address(r, &known).as_ref(), Some(a));
    }
    assert!(
        job.files["provider.tf"].contains("\"crossfade.dev/run\" = \"demo-1\""),
        "{}",
        job.files["provider.tf"]
    );
    assert!(!job.files.contains_key("imports.tf") && !job.files.contains_key("backend.tf"));
}
