//! Provisioning on the twin: what AWS, other people and chance do to it, and what the run makes of it.

use crate::engine::{Engine, Options, Outcome, silent};
use crate::journal::{Journal, Record};
use crate::plan::model::{Phase, Plan};
use crate::world::cloud::Resource;
use crate::world::twin::{self, Twin};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

struct Demo {
    twin: Twin,
    plan: Arc<Plan>,
    journal: Arc<Journal>,
}

impl Demo {
    fn new() -> Demo {
        let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/demo");
        let spec = crate::spec::load(&demo.join("migration.yaml")).expect("the demo's spec");
        let snapshot =
            crate::snapshot::store::read(&demo.join("snapshot")).expect("the demo's snapshot");
        Demo {
            plan: Arc::new(crate::plan::plan(&spec, &snapshot)),
            twin: Twin::new(&snapshot, &spec, twin::Options::default()),
            journal: Arc::new(Journal::memory()),
        }
    }
    fn engine(&self) -> Engine {
        Engine::new(
            self.twin.world(),
            self.plan.clone(),
            self.journal.clone(),
            crate::step::registry(),
            silent(),
        )
        .options(Options {
            check_drift: false,
            ..Options::default()
        })
    }
    async fn there(&self) -> Outcome {
        let engine = self.engine();
        engine
            .forward(Some(Phase::Provision))
            .await
            .expect("the journal works")
    }
    async fn back(&self) -> Outcome {
        let engine = self.engine();
        engine.rollback(None).await.expect("the journal works")
    }
    /// Ids of the plan's resources of a kind, with what depends on the cluster filled in as far as the tests need it.
    fn ids(&self, kind: &str) -> Vec<String> {
        let ensures = self.plan.steps.iter().filter(|s| s.kind == "cloud.ensure");
        ensures
            .filter_map(|s| serde_json::from_value::<Resource>(s.params["resource"].clone()).ok())
            .map(|r| r.id())
            .filter(|id| id.starts_with(&format!("{kind}/")))
            .collect()
    }
    fn id(&self, kind: &str) -> String {
        self.ids(kind).first().expect("the demo has one").clone()
    }
    fn progress(&self, step: &str) -> Vec<Value> {
        let entries = self.journal.entries();
        entries
            .into_iter()
            .filter_map(|e| match e.record {
                Record::Progress { step: s, data } if s == step => Some(data),
                _ => None,
            })
            .collect()
    }
    fn attempts(&self, step: &str) -> Vec<String> {
        let entries = self.journal.entries();
        entries
            .into_iter()
            .filter_map(|e| match e.record {
                Record::Attempt { step: s, error, .. } if s == step => Some(error),
                _ => None,
            })
            .collect()
    }
    fn created(&self, id: &str) -> usize {
        let what = format!("cloud create {id}");
        self.twin.calls().iter().filter(|c| c.what == what).count()
    }
}

fn stopped(outcome: Outcome) -> (String, String, String) {
    match outcome {
        Outcome::Stopped {
            object,
            why,
            remedy,
            ..
        } => (object, why, remedy),
        other => panic!("{other:?}"),
    }
}

fn stuck(outcome: Outcome) -> (String, String, String) {
    match outcome {
        Outcome::Stuck { stuck, .. } => (stuck.object, stuck.expected, stuck.found),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_role_that_iam_spreads_slowly_is_waited_for_with_one_line_in_the_journal_a_try() {
    let demo = Demo::new();
    demo.twin.roles_spread_in(Duration::from_secs(90));
    assert_eq!(demo.there().await.name(), "migrated");
    let tries = demo.attempts(&format!("provision/{}", demo.id("cluster")));
    assert!(tries.len() >= 4, "{tries:?}");
    assert!(
        tries.iter().all(|t| t.contains("could not be assumed")),
        "{tries:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_role_that_stays_unseen_ends_the_wait_after_two_minutes_and_the_same_command_goes_on() {
    let demo = Demo::new();
    demo.twin.roles_spread_in(Duration::from_secs(3600));
    let before = demo.twin.elapsed();
    let (_, why, _) = stopped(demo.there().await);
    assert!(why.contains("could not be assumed"), "{why}");
    let waited = (demo.twin.elapsed() - before).as_secs();
    assert!((120..240).contains(&waited), "{waited} s");
    demo.twin.roles_spread_in(Duration::ZERO);
    assert_eq!(demo.there().await.name(), "migrated");
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_cluster_says_what_eks_does_what_is_typical_and_when_it_looks_again() {
    let demo = Demo::new();
    assert_eq!(demo.there().await.name(), "migrated");
    let lines = demo.progress(&format!("provision/{}", demo.id("cluster")));
    let looks: Vec<&Value> = lines.iter().filter_map(|l| l.get("look")).collect();
    assert!(
        (5..20).contains(&looks.len()),
        "about one a minute: {looks:?}"
    );
    for look in looks {
        assert!(
            look["doing"]
                .as_str()
                .is_some_and(|d| d.contains("CREATING")),
            "{look}"
        );
        assert!(
            look["typical"]
                .as_str()
                .is_some_and(|t| t.contains("21 regions")),
            "{look}"
        );
        assert!(look["next"].as_str() > look["at"].as_str(), "{look}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_group_that_failed_for_what_may_pass_is_made_again_and_the_journal_says_so() {
    let demo = Demo::new();
    let id = demo.id("node-group");
    demo.twin
        .cloud_fails(&id, "IamNodeRoleNotFound", "the role was not found", 2);
    assert_eq!(demo.there().await.name(), "migrated");
    assert_eq!(demo.created(&id), 3, "made, and made again twice");
    let lines = demo.progress(&format!("provision/{id}"));
    let replaced = lines.iter().filter(|l| l.get("replaced").is_some()).count();
    let made = lines.iter().filter(|l| l.get("made").is_some()).count();
    assert_eq!((replaced, made), (2, 3), "{lines:#?}");
    assert_eq!(demo.back().await.name(), "restored");
    assert_eq!(demo.twin.cloud_things(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_fails_a_third_time_is_told_and_left_to_a_person() {
    let demo = Demo::new();
    let id = demo.id("node-group");
    demo.twin
        .cloud_fails(&id, "InternalFailure", "try later", 3);
    let (_, why, remedy) = stopped(demo.there().await);
    assert!(
        why.contains("EKS failed by itself (InternalFailure)"),
        "{why}"
    );
    assert!(why.contains("it was made 3 times already"), "{why}");
    assert!(remedy.contains("AWS support"), "{remedy}");
    // Whoever resumes has looked: it is made again.
    assert_eq!(demo.there().await.name(), "migrated");
    assert_eq!(demo.created(&id), 4);
}

#[tokio::test(start_paused = true)]
async fn what_no_repeat_can_heal_is_not_made_again_before_a_person_cured_it() {
    let demo = Demo::new();
    let id = demo.id("node-group");
    demo.twin.cloud_fails(
        &id,
        "InsufficientFreeAddresses",
        "no free addresses in subnet-1",
        1,
    );
    let (_, why, remedy) = stopped(demo.there().await);
    assert!(why.contains("a subnet has no free addresses left"), "{why}");
    assert!(
        why.contains("in EKS's words: no free addresses in subnet-1"),
        "{why}"
    );
    assert!(remedy.contains("green.subnets"), "{remedy}");
    assert_eq!(demo.created(&id), 1);
    assert_eq!(demo.there().await.name(), "migrated");
    assert_eq!(demo.created(&id), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failed_cluster_in_which_something_of_others_stands_is_never_made_again() {
    let demo = Demo::new();
    let id = demo.id("cluster");
    demo.twin
        .cloud_fails(&id, "InternalFailure", "try later", 1);
    demo.twin.somebody_attaches(&id, "node group batch", false);
    let (_, why, _) = stopped(demo.there().await);
    assert!(
        why.contains("it is not made again by itself: in it is node group batch"),
        "{why}"
    );
    assert_eq!(demo.created(&id), 1);
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_is_used_up_is_named_with_its_code_value_need_and_how_to_raise_it() {
    let demo = Demo::new();
    let words = "ResourceLimitExceededException: The maximum number of clusters per account and Region has been reached: 100";
    demo.twin.quota_is_used_up("cluster", Some(words));
    let (_, why, remedy) = stopped(demo.there().await);
    assert!(
        why.contains("the quota Clusters (eks/L-1194D53C) is used up: its value is"),
        "{why}"
    );
    assert!(why.contains("the plan needs 1 more"), "{why}");
    assert!(
        remedy.contains("--service-code eks --quota-code L-1194D53C"),
        "{remedy}"
    );
    demo.twin.quota_is_used_up("cluster", None);
    assert_eq!(demo.there().await.name(), "migrated");
}

#[tokio::test(start_paused = true)]
async fn a_name_that_somebody_took_between_look_and_make_is_theirs() {
    let demo = Demo::new();
    let ensure = |id: &str| {
        let mut steps = demo.plan.steps.iter();
        let step = steps
            .find(|s| s.id == format!("provision/{id}"))
            .expect("the step");
        serde_json::from_value::<Resource>(step.params["resource"].clone()).expect("a resource")
    };
    let id = demo.id("role");
    // The process dies after the intent, before the create.
    demo.twin
        .fail_matching(&format!("cloud create {id}"), 1, twin::Fault::HangBefore);
    let engine = demo.engine();
    let run = engine.forward(Some(Phase::Provision));
    tokio::select! {
        _ = run => panic!("it hangs"),
        () = demo.twin.hung() => {}
    }
    demo.twin.somebody_makes(&ensure(&id)).expect("a free name");
    let outcome = Demo {
        twin: demo.twin.clone(),
        plan: demo.plan.clone(),
        journal: Arc::new(Journal::restart(demo.journal.entries()).expect("a journal")),
    }
    .there()
    .await;
    let (object, why, _) = stopped(outcome);
    assert_eq!(object, id);
    assert!(
        why.contains("the name was taken by somebody since the run looked"),
        "{why}"
    );
}

#[tokio::test(start_paused = true)]
async fn undo_refuses_a_role_to_which_somebody_attached_a_policy_and_names_it() {
    let demo = Demo::new();
    assert_eq!(demo.there().await.name(), "migrated");
    let id = demo.id("role");
    demo.twin.somebody_attaches(
        &id,
        "policy arn:aws:iam::aws:policy/AmazonS3FullAccess",
        false,
    );
    let (object, expected, found) = stuck(demo.back().await);
    assert_eq!(object, id);
    assert_eq!(expected, "nothing on it but what this run made");
    assert!(found.contains("AmazonS3FullAccess"), "{found}");
    assert!(demo.twin.cloud_things().contains(&id), "it stands");
    demo.twin.nobody_attaches(&id);
    assert_eq!(demo.back().await.name(), "restored");
    assert_eq!(demo.twin.cloud_things(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn undo_refuses_a_cluster_in_which_somebody_runs_a_node_group() {
    let demo = Demo::new();
    assert_eq!(demo.there().await.name(), "migrated");
    let ours = demo.id("node-group");
    let step = demo
        .plan
        .steps
        .iter()
        .find(|s| s.id == format!("provision/{ours}"));
    let mut theirs = step.expect("the step").params["resource"].clone();
    // With a role and disks of their own.
    theirs["name"] = json!("batch");
    theirs["roleArn"] = json!("arn:aws:iam::000000000000:role/nodes.shop.test");
    theirs["launchTemplate"] = Value::Null;
    let who = demo
        .twin
        .world()
        .cloud
        .identity()
        .await
        .expect("an identity");
    let text = theirs.to_string().replace("${account}", &who.account);
    let theirs: Resource = serde_json::from_str(&text).expect("a resource");
    demo.twin.somebody_makes(&theirs).expect("it can be made");
    let (object, _, found) = stuck(demo.back().await);
    assert_eq!(object, demo.id("cluster"));
    assert!(found.contains("node group batch"), "{found}");
    assert!(demo.twin.cloud_things().contains(&theirs.id()));
}

#[tokio::test(start_paused = true)]
async fn undo_knows_a_thing_that_was_deleted_and_made_again_under_its_name() {
    for with_tag in [true, false] {
        let demo = Demo::new();
        assert_eq!(demo.there().await.name(), "migrated");
        tokio::time::sleep(Duration::from_secs(60)).await;
        let id = demo.ids("role").pop().expect("a role");
        demo.twin.somebody_makes_again(&id, with_tag);
        let (object, expected, found) = stuck(demo.back().await);
        assert_eq!(object, id);
        let words = if with_tag {
            "made it again"
        } else {
            "another under its name"
        };
        assert!(found.contains(words), "{expected} / {found}");
        assert!(demo.twin.cloud_things().contains(&id), "it is theirs now");
    }
}

#[tokio::test(start_paused = true)]
async fn undo_waits_for_the_network_interfaces_of_the_cluster() {
    let demo = Demo::new();
    assert_eq!(demo.there().await.name(), "migrated");
    let id = demo.id("cluster");
    let eni = "network interface eni-1 (aws-K8S-i-0)";
    demo.twin.somebody_attaches(&id, eni, true);
    let twin = demo.twin.clone();
    let freed = id.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(900)).await;
        twin.nobody_attaches(&freed);
    });
    let before = demo.twin.elapsed();
    assert_eq!(demo.back().await.name(), "restored");
    assert!(demo.twin.elapsed() - before >= Duration::from_secs(900));
    assert_eq!(demo.twin.cloud_things(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_aws_never_clears_away_is_named_with_the_command_that_does() {
    let demo = Demo::new();
    assert_eq!(demo.there().await.name(), "migrated");
    demo.twin.somebody_attaches(
        &demo.id("cluster"),
        "network interface eni-1 (aws-K8S-i-0)",
        true,
    );
    let (_, expected, found) = stuck(demo.back().await);
    assert!(found.contains("network interface eni-1"), "{found}");
    assert!(
        expected.contains("aws ec2 delete-network-interface"),
        "{expected}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_somebody_deletes_while_it_is_made_is_told_and_made_again_by_the_same_command() {
    let demo = Demo::new();
    let id = demo.id("node-group");
    let twin = demo.twin.clone();
    let gone = id.clone();
    tokio::spawn(async move {
        // While it is CREATING.
        loop {
            tokio::time::sleep(Duration::from_secs(20)).await;
            if twin.cloud_things().contains(&gone) {
                tokio::time::sleep(Duration::from_secs(60)).await;
                return twin.somebody_takes_away(&gone);
            }
        }
    });
    let (_, why, remedy) = stopped(demo.there().await);
    assert!(
        why.contains("was there and is gone: somebody deleted it"),
        "{why}"
    );
    assert!(remedy.contains("makes it again"), "{remedy}");
    assert_eq!(demo.there().await.name(), "migrated");
    assert_eq!(demo.created(&id), 2);
}
