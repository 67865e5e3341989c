//! Green is there already, in part or whole: from a former run, Terraform, eksctl or somebody's hands.

use super::*;
use crate::engine::{Engine, Options, silent};
use crate::journal::{Journal, Record};
use crate::plan::model::{Phase, Plan};
use crate::snapshot::model::TerraformResource;
use crate::world::World;
use crate::world::cloud::{EksCluster, Existing, RUN_TAG};
use crate::world::observe;
use crate::world::twin::{self, Twin};
use serde_json::json;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

fn demo() -> (Spec, Snapshot) {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/demo");
    (
        crate::spec::load(&demo.join("migration.yaml")).unwrap(),
        crate::snapshot::store::read(&demo.join("snapshot")).unwrap(),
    )
}

fn engine(world: &World, plan: &Plan, journal: &Arc<Journal>) -> Engine {
    let registry = crate::step::registry();
    Engine::new(
        world.clone(),
        Arc::new(plan.clone()),
        journal.clone(),
        registry,
        silent(),
    )
    .options(Options {
        check_drift: false,
        ..Options::default()
    })
}

/// The demo's account after a run has provisioned green.
async fn provisioned() -> (Spec, Snapshot) {
    let (spec, mut snapshot) = demo();
    let plan = crate::plan::plan(&spec, &snapshot);
    let twin = Twin::new(&snapshot, &spec, twin::Options::default());
    let world = twin.world();
    let outcome = engine(&world, &plan, &Arc::new(Journal::memory()))
        .forward(Some(Phase::Provision))
        .await
        .unwrap();
    assert!(!outcome.name().contains("stop"), "{outcome:?}");
    snapshot.aws = Some(world.cloud.inventory("").await.unwrap());
    (spec, snapshot)
}

/// The same account, but somebody else made everything in it: tags of eksctl instead of a run's.
fn somebodys(snapshot: &mut Snapshot) {
    let inv = snapshot.aws.as_mut().unwrap();
    let other = |tags: &mut BTreeMap<String, String>| {
        if tags.remove(RUN_TAG).is_some() {
            tags.insert("alpha.eksctl.io/cluster-name".into(), "shop-green".into());
        }
    };
    inv.roles.iter_mut().for_each(|r| other(&mut r.tags));
    for c in &mut inv.clusters {
        other(&mut c.tags);
        c.parts
            .iter_mut()
            .flatten()
            .for_each(|p| other(&mut p.tags));
    }
    inv.launch_templates
        .iter_mut()
        .flatten()
        .for_each(|t| other(&mut t.tags));
}

fn state_of<'p>(plan: &'p Plan, id: &str) -> &'p TargetResource {
    plan.target
        .resources
        .iter()
        .find(|r| r.id == id)
        .unwrap_or_else(|| panic!("no {id} in {:#?}", plan.target.resources))
}

fn adopts(plan: &Plan) -> Vec<(&str, Severity, &str)> {
    plan.findings
        .iter()
        .filter(|f| f.id.starts_with("ADOPT-"))
        .map(|f| (f.id.as_str(), f.severity, f.object.as_str()))
        .collect()
}

fn part<'s>(snapshot: &'s mut Snapshot, id: &str) -> &'s mut Existing {
    let inv = snapshot.aws.as_mut().unwrap();
    inv.clusters
        .iter_mut()
        .flat_map(|c| c.parts.iter_mut().flatten())
        .find(|p| p.resource.id() == id)
        .unwrap()
}

#[test]
fn in_an_account_without_green_everything_is_to_be_made() {
    let (spec, snapshot) = demo();
    let plan = crate::plan::plan(&spec, &snapshot);
    assert!(plan.target.resources.len() > 15);
    assert!(
        plan.target
            .resources
            .iter()
            .all(|r| r.state == ResourceState::Create),
        "{:#?}",
        plan.target.resources
    );
    assert_eq!(adopts(&plan), []);
}

#[test]
fn without_the_account_nobody_says_that_a_thing_is_missing() {
    let (spec, mut snapshot) = demo();
    snapshot.aws = None;
    let plan = crate::plan::plan(&spec, &snapshot);
    let cluster = state_of(&plan, "cluster/shop-green");
    assert_eq!(cluster.state, ResourceState::Create);
    assert!(cluster.why.contains("not read"), "{}", cluster.why);
}

#[tokio::test(start_paused = true)]
async fn what_a_former_run_made_is_kept_and_nothing_is_made_twice() {
    let (spec, snapshot) = provisioned().await;
    let plan = crate::plan::plan(&spec, &snapshot);
    for r in &plan.target.resources {
        assert_eq!(r.state, ResourceState::ExistsEqual, "{r:?}");
    }
    assert_eq!(adopts(&plan), []);
    let step = plan
        .steps
        .iter()
        .find(|s| s.id == "provision/cluster/shop-green")
        .unwrap();
    assert_eq!(step.summary, "keep cluster/shop-green: it is there");
}

#[tokio::test(start_paused = true)]
async fn somebodys_things_stop_the_plan_with_the_very_lines_that_release_them() {
    let (mut spec, mut snapshot) = provisioned().await;
    somebodys(&mut snapshot);
    let plan = crate::plan::plan(&spec, &snapshot);
    let foreign: BTreeSet<&str> = adopts(&plan)
        .into_iter()
        .filter(|(id, severity, _)| *id == "ADOPT-01" && *severity == Severity::Blocker)
        .map(|(_, _, object)| object)
        .collect();
    for id in [
        "cluster/shop-green",
        "role/shop-green-node",
        "addon/shop-green/vpc-cni",
        "access-entry/shop-green/caller",
    ] {
        assert!(foreign.contains(id), "{id} is not in {foreign:?}");
    }
    // Parts of other people's things ask nobody: their exact content counts.
    assert!(!foreign.iter().any(|id| id.starts_with("tag/")
        || id.starts_with("trust-statement/")
        || id.starts_with("oidc-provider/")));
    let said = plan
        .findings
        .iter()
        .find(|f| f.id == "ADOPT-01" && f.object == "cluster/shop-green")
        .unwrap();
    assert!(said.message.contains("eksctl"), "{}", said.message);
    assert!(
        said.remedy.contains("  - cluster/shop-green"),
        "{}",
        said.remedy
    );
    // Taken at its word.
    spec.green.adopt = foreign.iter().map(|id| (*id).to_owned()).collect();
    let plan = crate::plan::plan(&spec, &snapshot);
    assert_eq!(adopts(&plan), []);
    assert_eq!(
        state_of(&plan, "cluster/shop-green").state,
        ResourceState::Adopt
    );
    // Or in one line for all parts of the cluster.
    spec.green.adopt = [
        "cluster/*",
        "role/*",
        "addon/shop-green/*",
        "access-entry/*",
        "node-group/*",
        "launch-template/*",
    ]
    .map(String::from)
    .to_vec();
    let plan = crate::plan::plan(&spec, &snapshot);
    assert!(
        !adopts(&plan)
            .iter()
            .any(|(_, severity, _)| *severity == Severity::Blocker),
        "{:?}",
        adopts(&plan)
    );
}

#[tokio::test(start_paused = true)]
async fn an_adopted_cluster_is_used_never_recorded_as_made_and_still_there_after_the_way_back() {
    let (mut spec, mut snapshot) = provisioned().await;
    somebodys(&mut snapshot);
    // Node groups are missing: those alone the run makes.
    for c in &mut snapshot.aws.as_mut().unwrap().clusters {
        c.node_groups.clear();
        let parts = c.parts.as_mut().unwrap();
        parts.retain(|p| !matches!(p.resource, Resource::NodeGroup { .. }));
    }
    spec.green.adopt = [
        "cluster/*",
        "role/*",
        "addon/*",
        "access-entry/*",
        "launch-template/*",
    ]
    .map(String::from)
    .to_vec();
    let plan = crate::plan::plan(&spec, &snapshot);
    let to_make: Vec<&str> = plan
        .target
        .resources
        .iter()
        .filter(|r| r.state == ResourceState::Create)
        .map(|r| r.id.as_str())
        .collect();
    assert!(
        !to_make.is_empty() && to_make.iter().all(|id| id.starts_with("node-group/")),
        "{to_make:?}"
    );
    let twin = Twin::new(&snapshot, &spec, twin::Options::default());
    let world = twin.world();
    let before = world.cloud.inventory("").await.unwrap();
    let journal = Arc::new(Journal::memory());
    let outcome = engine(&world, &plan, &journal)
        .forward(Some(Phase::Provision))
        .await
        .unwrap();
    assert!(!outcome.name().contains("stop"), "{outcome:?}");
    let between = world.cloud.inventory("").await.unwrap();
    assert_ne!(before, between, "the node group is there");
    let created: Vec<String> = journal
        .entries()
        .into_iter()
        .filter_map(|e| match e.record {
            Record::Applied { after, .. } if after["created"] == true => {
                after["id"].as_str().map(String::from)
            }
            _ => None,
        })
        .collect();
    assert_eq!(created, to_make);
    let outcome = engine(&world, &plan, &journal)
        .rollback(None)
        .await
        .unwrap();
    assert_eq!(outcome.name(), "restored", "{outcome:?}");
    let after = world.cloud.inventory("").await.unwrap();
    assert_eq!(
        observe::diff(
            &serde_json::to_value(&before).unwrap(),
            &serde_json::to_value(&after).unwrap()
        ),
        Vec::<String>::new()
    );
}

#[tokio::test(start_paused = true)]
async fn a_thing_that_somebody_makes_between_plan_and_run_stops_the_run_with_the_same_words() {
    let (spec, snapshot) = demo();
    let plan = crate::plan::plan(&spec, &snapshot);
    // The node role appears after the plan was made: equal, but not ours.
    let (_, later) = provisioned().await;
    let mut inv = later.aws.unwrap();
    inv.roles.retain(|r| r.name == "shop-green-node");
    inv.roles[0].tags.clear();
    let mut then = snapshot.clone();
    then.aws.as_mut().unwrap().roles.push(inv.roles.remove(0));
    let twin = Twin::new(&then, &spec, twin::Options::default());
    let journal = Arc::new(Journal::memory());
    let outcome = engine(&twin.world(), &plan, &journal)
        .forward(Some(Phase::Provision))
        .await;
    let said = format!("{outcome:?}");
    assert!(said.contains("- role/shop-green-node"), "{said}");
    assert!(said.contains("crossfade did not make it"), "{said}");
    // The plan of that moment says it too.
    let plan = crate::plan::plan(&spec, &then);
    assert_eq!(
        adopts(&plan),
        [("ADOPT-01", Severity::Blocker, "role/shop-green-node")]
    );
}

#[tokio::test(start_paused = true)]
async fn a_cluster_of_another_version_cannot_be_used_and_both_versions_are_named() {
    let (spec, mut snapshot) = provisioned().await;
    let p = part(&mut snapshot, "cluster/shop-green");
    if let Resource::Cluster { version, .. } = &mut p.resource {
        *version = "1.33".into();
    }
    let plan = crate::plan::plan(&spec, &snapshot);
    assert_eq!(
        adopts(&plan),
        [("ADOPT-02", Severity::Blocker, "cluster/shop-green")]
    );
    let f = plan.findings.iter().find(|f| f.id == "ADOPT-02").unwrap();
    assert!(
        f.message.contains("version: 1.33 instead of 1.36"),
        "{}",
        f.message
    );
    assert_eq!(
        state_of(&plan, "cluster/shop-green").state,
        ResourceState::Differs
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_group_of_another_size_is_used_with_a_warning_and_one_without_a_label_is_not() {
    let (spec, mut snapshot) = provisioned().await;
    let id = {
        let plan = crate::plan::plan(&spec, &snapshot);
        let mut ids = plan.target.resources.iter().map(|r| r.id.clone());
        ids.find(|id| id.starts_with("node-group/")).unwrap()
    };
    let set = |snapshot: &mut Snapshot, n: u32, label: bool| {
        if let Resource::NodeGroup {
            max,
            labels,
            taints,
            ..
        } = &mut part(snapshot, &id).resource
        {
            *max = n;
            labels.insert("team".into(), "web".into());
            if !label {
                taints.push(crate::world::cloud::Taint {
                    key: "team".into(),
                    value: "web".into(),
                    effect: "NoSchedule".into(),
                });
            }
        }
    };
    set(&mut snapshot, 99, true);
    let plan = crate::plan::plan(&spec, &snapshot);
    assert_eq!(
        adopts(&plan),
        [("ADOPT-03", Severity::Warning, id.as_str())]
    );
    let f = plan.findings.iter().find(|f| f.id == "ADOPT-03").unwrap();
    assert!(f.message.contains("max: 99 instead of "), "{}", f.message);
    assert_eq!(state_of(&plan, &id).state, ResourceState::ExistsEqual);
    // A taint that nobody planned keeps the pods away.
    set(&mut snapshot, 99, false);
    let plan = crate::plan::plan(&spec, &snapshot);
    assert_eq!(
        adopts(&plan),
        [("ADOPT-02", Severity::Blocker, id.as_str())]
    );
}

fn kept(address: &str, kind: &str, attributes: &[(&str, &str)]) -> TerraformResource {
    TerraformResource {
        address: address.into(),
        kind: kind.into(),
        attributes: attributes
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
    }
}

#[tokio::test(start_paused = true)]
async fn what_terraform_keeps_is_left_to_it_and_a_difference_names_its_address() {
    let (spec, mut snapshot) = provisioned().await;
    somebodys(&mut snapshot);
    let group = {
        let plan = crate::plan::plan(&spec, &snapshot);
        let ids = plan.target.resources.iter().map(|r| r.id.clone());
        ids.into_iter()
            .find(|id| id.starts_with("node-group/"))
            .unwrap()
    };
    let name = group.rsplit('/').next().unwrap().to_owned();
    if let Resource::NodeGroup { max, .. } = &mut part(&mut snapshot, &group).resource {
        *max = 99;
    }
    snapshot.terraform = Some(vec![
        kept(
            "module.eks.aws_eks_cluster.this[0]",
            "aws_eks_cluster",
            &[("name", "shop-green")],
        ),
        kept(
            "module.eks.aws_eks_node_group.main",
            "aws_eks_node_group",
            &[("cluster_name", "shop-green"), ("node_group_name", &name)],
        ),
        kept(
            "module.eks.aws_eks_addon.this[\"vpc-cni\"]",
            "aws_eks_addon",
            &[("id", "shop-green:vpc-cni")],
        ),
    ]);
    let plan = crate::plan::plan(&spec, &snapshot);
    for (id, address) in [
        ("cluster/shop-green", "module.eks.aws_eks_cluster.this[0]"),
        (group.as_str(), "module.eks.aws_eks_node_group.main"),
        (
            "addon/shop-green/vpc-cni",
            "module.eks.aws_eks_addon.this[\"vpc-cni\"]",
        ),
    ] {
        let r = state_of(&plan, id);
        assert_eq!(
            (r.state, r.why.as_str()),
            (ResourceState::Terraform, address)
        );
    }
    let said: Vec<_> = plan
        .findings
        .iter()
        .filter(|f| f.id == "ADOPT-04")
        .collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(
        (said[0].severity, said[0].object.as_str()),
        (Severity::Warning, group.as_str())
    );
    assert!(
        said[0]
            .message
            .contains("module.eks.aws_eks_node_group.main")
    );
    assert!(said[0].message.contains("max: 99 instead of "));
    // What is nobody's but somebody's is still asked for.
    assert_eq!(
        state_of(&plan, "role/shop-green-node").state,
        ResourceState::Foreign
    );
}

#[test]
fn what_terraform_has_not_applied_yet_is_not_made_in_its_place() {
    let (spec, mut snapshot) = demo();
    snapshot.terraform = Some(vec![kept(
        "aws_eks_cluster.green",
        "aws_eks_cluster",
        &[("id", "shop-green")],
    )]);
    let plan = crate::plan::plan(&spec, &snapshot);
    assert_eq!(
        adopts(&plan),
        [("ADOPT-04", Severity::Blocker, "cluster/shop-green")]
    );
    assert_eq!(
        state_of(&plan, "cluster/shop-green").state,
        ResourceState::Terraform
    );
}

#[test]
fn a_tag_on_a_subnet_of_terraforms_would_not_last_and_a_wrong_line_under_adopt_is_noticed() {
    let (mut spec, mut snapshot) = demo();
    let subnet = {
        let plan = crate::plan::plan(&spec, &snapshot);
        plan.target.cluster.subnets[0].clone()
    };
    snapshot.terraform = Some(vec![kept("aws_subnet.a", "aws_subnet", &[("id", &subnet)])]);
    spec.green.adopt = vec!["cluster/shop-grene".into()];
    let plan = crate::plan::plan(&spec, &snapshot);
    let tag = format!("tag/{subnet}/kubernetes.io/cluster/shop-green");
    assert_eq!(
        adopts(&plan),
        [
            ("ADOPT-05", Severity::Warning, tag.as_str()),
            ("ADOPT-06", Severity::Warning, "cluster/shop-grene"),
        ]
    );
}

#[test]
fn a_subnet_that_belongs_to_green_is_as_good_as_one_it_shares() {
    let (spec, mut snapshot) = demo();
    let subnet = {
        let plan = crate::plan::plan(&spec, &snapshot);
        plan.target.cluster.subnets[0].clone()
    };
    let key = "kubernetes.io/cluster/shop-green";
    let id = format!("tag/{subnet}/{key}");
    for (value, state) in [
        ("owned", ResourceState::ExistsEqual),
        ("shared", ResourceState::ExistsEqual),
        ("no", ResourceState::Differs),
    ] {
        let inv = snapshot.aws.as_mut().unwrap();
        let s = inv.subnets.iter_mut().find(|s| s.id == subnet).unwrap();
        s.tags.insert(key.into(), value.into());
        let plan = crate::plan::plan(&spec, &snapshot);
        assert_eq!(state_of(&plan, &id).state, state, "{value}");
    }
}

#[test]
fn a_snapshot_of_an_older_version_has_names_only_and_says_that_nothing_was_compared() {
    let (mut spec, mut snapshot) = demo();
    let old: EksCluster = serde_json::from_value(json!({"name": "shop-green", "version": "1.36",
        "nodeGroups": [], "addons": ["vpc-cni"], "accessEntries": [], "tags": {}}))
    .expect("an old snapshot still loads");
    snapshot.aws.as_mut().unwrap().clusters = vec![old];
    spec.green.adopt = vec![
        "cluster/shop-green".into(),
        "addon/shop-green/vpc-cni".into(),
    ];
    let plan = crate::plan::plan(&spec, &snapshot);
    assert_eq!(
        adopts(&plan),
        [("ADOPT-07", Severity::NotChecked, "addon/shop-green/vpc-cni")]
    );
}

#[test]
fn a_rule_of_terraforms_is_known_by_group_ports_and_source() {
    let rule = |to: i32| Resource::SecurityGroupRule {
        group: "sg-db".into(),
        protocol: "tcp".into(),
        from_port: 5432,
        to_port: to,
        source_group: "sg-green".into(),
        description: String::new(),
    };
    // Ports are numbers in a state file, as the reader keeps them.
    let old = kept(
        "aws_security_group_rule.db",
        "aws_security_group_rule",
        &[
            ("type", "ingress"),
            ("security_group_id", "sg-db"),
            ("protocol", "tcp"),
            ("from_port", "5432"),
            ("to_port", "5432"),
            ("source_security_group_id", "sg-green"),
        ],
    );
    let new = kept(
        "aws_vpc_security_group_ingress_rule.db",
        "aws_vpc_security_group_ingress_rule",
        &[
            ("security_group_id", "sg-db"),
            ("ip_protocol", "tcp"),
            ("from_port", "5432"),
            ("to_port", "5432"),
            ("referenced_security_group_id", "sg-green"),
        ],
    );
    for state in [old, new] {
        let address = state.address.clone();
        let state = [state];
        assert_eq!(
            terraform::address(&rule(5432), &state),
            Some(address.as_str())
        );
        assert_eq!(terraform::address(&rule(5433), &state), None);
    }
}
