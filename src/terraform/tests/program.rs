//! The step with the real program: applied, killed, resumed, undone. Where there is no program, this says so.

use super::bench::{bench, why};
use crate::engine::Outcome;
use crate::journal::Status;
use crate::step::terraform_apply::only_creates;
use crate::world::cloud::{Attached, Resource};
use crate::world::terraform::What;
use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn the_approved_plan_is_applied_as_it_is_and_undone_to_an_empty_state() {
    let Some(b) = bench(None).await else { return };
    let planned = b.pin().await;
    only_creates(&planned).unwrap();
    assert_eq!(
        b.world.terraform.pinned(&b.job).await.unwrap(),
        Some(planned.clone())
    );
    // Each resource of the plan is in it, and the roles' policies besides.
    for (a, _) in &b.job.resources {
        assert!(planned.changes.iter().any(|c| c.address == *a), "{a}");
    }
    let outcome = b.engine().forward(None).await.unwrap();
    assert!(
        matches!(outcome, Outcome::Migrated { .. }),
        "{}",
        why(&outcome)
    );
    let planned: BTreeSet<String> = planned.changes.into_iter().map(|c| c.address).collect();
    assert_eq!(
        b.state().await.into_iter().collect::<BTreeSet<_>>(),
        planned
    );
    assert_eq!(b.things(), b.job.resources.len());
    // Once more changes nothing.
    let outcome = b.engine().forward(None).await.unwrap();
    assert!(
        matches!(outcome, Outcome::Migrated { changed: false, .. }),
        "{}",
        why(&outcome)
    );
    let outcome = b.engine().rollback(None).await.unwrap();
    assert!(
        matches!(outcome, Outcome::Restored { changed: true }),
        "{}",
        why(&outcome)
    );
    assert_eq!(b.state().await, Vec::<String>::new());
    assert_eq!(b.things(), 0);
    assert_eq!(
        *b.account.deleted.lock().unwrap(),
        Vec::<String>::new(),
        "Terraform took all of it away"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_file_that_is_not_the_approved_one_is_not_applied() {
    let Some(b) = bench(None).await else { return };
    b.pin().await;
    let observed = b.world.terraform.pinned(&b.job).await.unwrap().unwrap();
    // Somebody plans again behind the approval.
    std::fs::write(b.folder().join("pinned.tfplan"), "another plan").unwrap();
    assert_eq!(b.world.terraform.pinned(&b.job).await.unwrap(), None);
    let e = b
        .world
        .terraform
        .start(&b.job, &What::Pinned, &observed.sha256)
        .await
        .unwrap_err();
    assert!(
        e.message.contains("not the plan that was approved"),
        "{e:?}"
    );
    let outcome = b.engine().forward(None).await.unwrap();
    assert!(
        why(&outcome).contains("no Terraform plan"),
        "{}",
        why(&outcome)
    );
    assert_eq!(b.things(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_half_way_the_rest_is_made_and_what_was_made_but_not_written_down_is_found() {
    // The first apply makes the roles alone and is then killed with the shell that watches it.
    let script = "echo \"$1\" >> $HERE/calls\nif [ \"$1\" = apply ] && [ ! -e $HERE/once ]; then\n  touch $HERE/once\n  $REAL apply -auto-approve -input=false -no-color -target=module.service_roles > /dev/null 2>&1\n  kill -9 $PPID\n  exit 1\nfi\nexec $REAL \"$@\"";
    let Some(b) = bench(Some(script)).await else {
        return;
    };
    b.pin().await;
    let outcome = b.engine().forward(None).await.unwrap();
    assert!(
        why(&outcome).contains("Terraform was killed"),
        "{}",
        why(&outcome)
    );
    let half = b.state().await;
    assert!(
        !half.is_empty() && half.iter().all(|a| a.contains("service_roles")),
        "{half:?}"
    );
    // AWS had made the templates, Terraform could not write that down any more.
    let templates: Vec<&Resource> = b
        .job
        .resources
        .iter()
        .map(|(_, r)| r)
        .filter(|r| matches!(r, Resource::LaunchTemplate { security_groups, .. } if security_groups.is_empty()))
        .collect();
    assert!(!templates.is_empty());
    for t in &templates {
        b.account
            .things
            .lock()
            .unwrap()
            .insert(t.id(), Some(b.job.run.clone()));
    }
    let outcome = b.engine().forward(None).await.unwrap();
    assert!(
        matches!(outcome, Outcome::Migrated { .. }),
        "{}",
        why(&outcome)
    );
    assert_eq!(b.things(), b.job.resources.len());
    let calls = std::fs::read_to_string(b.dir.path().join("calls")).unwrap();
    assert_eq!(
        calls.lines().filter(|l| *l == "import").count(),
        templates.len(),
        "{calls}"
    );
    assert_eq!(b.applies(), 2, "{calls}");
    let outcome = b.engine().rollback(None).await.unwrap();
    assert!(
        matches!(outcome, Outcome::Restored { .. }),
        "{}",
        why(&outcome)
    );
    assert_eq!((b.state().await.len(), b.things()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crossfade_that_is_killed_finds_terraform_still_at_work_and_does_not_start_it_twice() {
    let script = "echo \"$1\" >> $HERE/calls\n[ \"$1\" = apply ] && sleep 3\nexec $REAL \"$@\"";
    let Some(b) = bench(Some(script)).await else {
        return;
    };
    b.pin().await;
    let engine = b.engine();
    let going = tokio::spawn(async move { engine.forward(None).await.map(|_| ()) });
    for _ in 0..600 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if b.applies() == 1 {
            break;
        }
    }
    assert!(!going.is_finished(), "it is killed while Terraform works");
    going.abort();
    assert_eq!(b.applies(), 1);
    let outcome = b.engine().forward(None).await.unwrap();
    assert!(
        matches!(outcome, Outcome::Migrated { .. }),
        "{}",
        why(&outcome)
    );
    assert_eq!(b.applies(), 1);
    assert_eq!(b.things(), b.job.resources.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn undo_stops_at_what_somebody_else_put_into_the_state_and_deletes_nothing() {
    let Some(b) = bench(None).await else { return };
    b.pin().await;
    let outcome = b.engine().forward(None).await.unwrap();
    assert!(
        matches!(outcome, Outcome::Migrated { .. }),
        "{}",
        why(&outcome)
    );
    let theirs = b.folder().join("theirs.tf");
    std::fs::write(&theirs, "resource \"terraform_data\" \"theirs\" {}\n").unwrap();
    let real = |args: &[&str]| {
        let out = Command::new("terraform")
            .args(args)
            .current_dir(b.folder())
            .output()
            .unwrap();
        assert!(
            out.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&out.stderr)
        );
    };
    real(&[
        "apply",
        "-auto-approve",
        "-input=false",
        "-target=terraform_data.theirs",
    ]);
    std::fs::remove_file(&theirs).unwrap();
    let outcome = b.engine().rollback(None).await.unwrap();
    assert!(
        matches!(&outcome, Outcome::Stuck { stuck, .. } if stuck.object == "terraform_data.theirs"),
        "{}",
        why(&outcome)
    );
    assert_eq!(b.things(), b.job.resources.len(), "nothing was deleted");
    // They take it out again: then the way back is free.
    real(&["state", "rm", "terraform_data.theirs"]);
    let outcome = b.engine().rollback(None).await.unwrap();
    assert!(
        matches!(outcome, Outcome::Restored { .. }),
        "{}",
        why(&outcome)
    );
    assert_eq!((b.state().await.len(), b.things()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn undo_stops_at_a_node_group_that_somebody_added_to_the_cluster_and_waits_for_nothing_that_passes()
 {
    let Some(b) = bench(None).await else { return };
    b.pin().await;
    let outcome = b.engine().forward(None).await.unwrap();
    assert!(
        matches!(outcome, Outcome::Migrated { .. }),
        "{}",
        why(&outcome)
    );
    let hung = |what: &str, passes: bool| {
        *b.account.hung.lock().unwrap() = vec![Attached {
            what: what.into(),
            passes,
        }];
    };
    hung("node group batch", false);
    let outcome = b.engine().rollback(None).await.unwrap();
    assert!(
        matches!(&outcome, Outcome::Stuck { stuck, .. } if stuck.found == "node group batch"),
        "{}",
        why(&outcome)
    );
    assert_eq!(b.things(), b.job.resources.len(), "nothing was deleted");
    hung("network interface eni-1", true);
    let outcome = b.engine().rollback(None).await.unwrap();
    assert!(
        matches!(outcome, Outcome::Restored { .. }),
        "{}",
        why(&outcome)
    );
    assert_eq!((b.state().await.len(), b.things()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_terraform_says_when_it_fails_is_shown_and_the_next_run_makes_the_rest() {
    let script = "echo \"$1\" >> $HERE/calls\nif [ \"$1\" = apply ] && [ ! -e $HERE/once ]; then\n  touch $HERE/once\n  echo \"Error: creating EKS Cluster: ResourceLimitExceeded: Cluster limit exceeded\"\n  exit 1\nfi\nexec $REAL \"$@\"";
    let Some(b) = bench(Some(script)).await else {
        return;
    };
    b.pin().await;
    let outcome = b.engine().forward(None).await.unwrap();
    assert!(
        why(&outcome).contains("ResourceLimitExceeded"),
        "{}",
        why(&outcome)
    );
    let outcome = b.engine().forward(None).await.unwrap();
    assert!(
        matches!(outcome, Outcome::Migrated { .. }),
        "{}",
        why(&outcome)
    );
    assert_eq!(b.things(), b.job.resources.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destroy_that_fails_leaves_the_run_stuck_and_the_next_rollback_ends_it() {
    let script = "if [ \"$1\" = apply ] && [ \"$5\" = destroy.tfplan ] && [ ! -e $HERE/once ]; then\n  touch $HERE/once\n  echo \"Error: DependencyViolation: eni-1 is in use\"\n  exit 1\nfi\nexec $REAL \"$@\"";
    let Some(b) = bench(Some(script)).await else {
        return;
    };
    b.pin().await;
    let outcome = b.engine().forward(None).await.unwrap();
    assert!(
        matches!(outcome, Outcome::Migrated { .. }),
        "{}",
        why(&outcome)
    );
    let outcome = b.engine().rollback(None).await.unwrap();
    let said = format!("{outcome:?}");
    assert!(said.contains("eni-1 is in use"), "{said}");
    let outcome = b.engine().rollback(None).await.unwrap();
    assert!(
        matches!(outcome, Outcome::Restored { .. }),
        "{}",
        why(&outcome)
    );
    assert_eq!((b.state().await.len(), b.things()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_exists_under_a_planned_name_stops_the_step_before_terraform_is_started() {
    let Some(b) = bench(None).await else { return };
    b.pin().await;
    let (_, role) = &b.job.resources[0];
    b.account.things.lock().unwrap().insert(role.id(), None);
    let outcome = b.engine().forward(None).await.unwrap();
    let said = why(&outcome);
    assert!(
        said.contains(&role.id()) && said.contains("green.adopt"),
        "{said}"
    );
    assert_eq!(b.state().await, Vec::<String>::new());
    assert_eq!(
        b.journal.state().status("provision/terraform"),
        Status::Fresh
    );
}
