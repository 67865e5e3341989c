//! Sizes and what buys the nodes (kops.md 3; PIG and the Auto Scaling group of kops).

use super::super::capacity::shares;
use super::{Company, blocks, finding, is, silent};
use crate::plan::model::Severity;
use crate::world::cloud::{AutoScalingGroup, Inventory};
use serde_json::json;

#[test]
fn a_group_that_says_nothing_of_sizes_has_two_nodes_as_in_kops() {
    let c = Company::new(json!({"machineType": "m5.large"}));
    is(&c.plan(), &[("nodes", "ON_DEMAND", 2, 2, 2)]);
    assert!(
        c.one()
            .notes
            .iter()
            .any(|n| n.contains("minSize and maxSize are not given"))
    );
}

#[test]
fn the_first_size_is_that_of_the_live_auto_scaling_group_then_of_the_nodes_then_the_smallest() {
    let mut c = Company::new(json!({"machineType": "m5.large", "minSize": 2, "maxSize": 9}));
    is(&c.plan(), &[("nodes", "ON_DEMAND", 2, 9, 2)]);
    for n in 0..4 {
        c.snapshot.blue.objects.push(json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": format!("n{n}"), "labels": {"kops.k8s.io/instancegroup": "nodes"}}}));
    }
    is(&c.plan(), &[("nodes", "ON_DEMAND", 2, 9, 4)]);
    let asg = |name: &str, tag: Option<&str>, desired| AutoScalingGroup {
        name: name.into(),
        min: 2,
        max: 9,
        desired,
        instances: desired,
        subnets: vec![],
        tags: tag
            .map(|t| ("kops.k8s.io/instancegroup".to_string(), t.to_string()))
            .into_iter()
            .collect(),
    };
    c.snapshot.aws = Some(Inventory {
        auto_scaling_groups: Some(vec![
            asg("other.shop.test", Some("other"), 7),
            asg("renamed", Some("nodes"), 5),
        ]),
        ..Default::default()
    });
    assert_eq!(c.one().desired, 5, "by tag");
    c.snapshot
        .aws
        .as_mut()
        .and_then(|a| a.auto_scaling_groups.as_mut())
        .expect("groups")
        .push(asg("nodes.shop.test", None, 6));
    assert_eq!(c.one().desired, 6, "by name: kops calls it <ig>.<cluster>");
}

#[test]
fn a_live_group_beyond_its_spec_keeps_its_nodes_and_is_told_of() {
    let mut c = Company::new(json!({"machineType": "m5.large", "minSize": 1, "maxSize": 2}));
    for n in 0..3 {
        c.snapshot.blue.objects.push(json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": format!("n{n}"), "labels": {"kops.k8s.io/instancegroup": "nodes"}}}));
    }
    let p = c.plan();
    is(&p, &[("nodes", "ON_DEMAND", 1, 3, 3)]);
    assert_eq!(finding(&p, "KOPS-ig-live").severity, Severity::Warning);
}

#[test]
fn a_largest_size_below_the_smallest_is_not_mended_in_silence() {
    // maxSize is missing and kops takes 2.
    let p = Company::new(json!({"machineType": "m5.large", "minSize": 5})).plan();
    let f = finding(&p, "KOPS-ig-size");
    blocks(&f);
    assert!(f.message.contains('5') && f.message.contains('2'), "{f:?}");
    let mut c = Company::new(json!({"machineType": "m5.large", "minSize": 5}));
    c.wish(json!({"max": 6}));
    silent(&c.plan(), "KOPS-ig-size");
    is(&c.plan(), &[("nodes", "ON_DEMAND", 5, 6, 5)]);
}

#[test]
fn a_group_that_is_switched_off_stays_visible_without_nodes() {
    let p = Company::new(json!({"machineType": "m5.large", "minSize": 0, "maxSize": 0})).plan();
    is(&p, &[("nodes", "ON_DEMAND", 0, 1, 0)]);
    assert_eq!(finding(&p, "KOPS-ig-zero").severity, Severity::Info);
}

#[test]
fn spot_has_four_spellings_and_two_that_are_none() {
    let spot = |ig| {
        let g = Company::new(ig).one();
        g.capacity_type
    };
    assert_eq!(
        spot(json!({"machineType": "m5.large", "maxPrice": "0.1"})),
        "SPOT"
    );
    assert_eq!(
        spot(json!({"machineType": "m5.large", "maxPrice": 0.1})),
        "SPOT"
    );
    assert_eq!(
        spot(json!({"mixedInstancesPolicy": {"instances": ["m5.large"], "onDemandAboveBase": 0}})),
        "SPOT"
    );
    assert_eq!(
        spot(
            json!({"machineType": "m5.large", "maxPrice": "0.1", "spotDurationInMinutes": 120, "instanceInterruptionBehavior": "hibernate"})
        ),
        "SPOT"
    );
    // Without a bid kops asks for no spot, whatever the other fields say.
    assert_eq!(
        spot(json!({"machineType": "m5.large", "spotDurationInMinutes": 120})),
        "ON_DEMAND"
    );
    assert_eq!(
        spot(json!({"machineType": "m5.large", "maxPrice": ""})),
        "ON_DEMAND"
    );
    // With a policy the bid sits on the Auto Scaling group and the policy decides: 100 % on demand is its default.
    assert_eq!(
        spot(json!({"maxPrice": "0.1", "mixedInstancesPolicy": {"instances": ["m5.large"]}})),
        "ON_DEMAND"
    );
    let p = Company::new(json!({"machineType": "m5.large", "maxPrice": "0.1", "spotDurationInMinutes": 120, "instanceInterruptionBehavior": "hibernate"})).plan();
    assert!(
        finding(&p, "KOPS-ig-spotDurationInMinutes")
            .message
            .contains("do not exist any more")
    );
    assert_eq!(
        finding(&p, "KOPS-ig-instanceInterruptionBehavior").severity,
        Severity::Warning
    );
}

#[test]
fn a_mixed_group_becomes_two_whose_sizes_sum_up() {
    // 2 on demand, then a quarter of the rest, rounded up: of 3 nodes 3, of 10 nodes 4.
    let p = Company::new(json!({"minSize": 3, "maxSize": 10, "mixedInstancesPolicy":
        {"instances": ["m5.large", "m5a.large"], "onDemandBase": 2, "onDemandAboveBase": 25}}))
    .plan();
    is(
        &p,
        &[
            ("nodes-ondemand", "ON_DEMAND", 3, 4, 3),
            ("nodes-spot", "SPOT", 0, 6, 0),
        ],
    );
    let f = finding(&p, "KOPS-ig-mixed");
    assert!(
        f.message.contains("together 3 to 10") && f.message.contains("2 on demand, then 25 %"),
        "{f:?}"
    );
    for g in &p.target.node_groups {
        assert_eq!(g.instance_group, "nodes");
        assert_eq!(g.instance_types, ["m5.large", "m5a.large"]);
        assert!(g.notes.iter().any(|n| n.contains("blue mixes")), "{g:?}");
    }
}

#[test]
fn a_mixed_group_so_small_that_no_spot_node_would_come_is_one() {
    let p = Company::new(json!({"minSize": 1, "maxSize": 2, "mixedInstancesPolicy":
        {"instances": ["m5.large"], "onDemandBase": 2, "onDemandAboveBase": 0}}))
    .plan();
    is(&p, &[("nodes", "ON_DEMAND", 1, 2, 1)]);
}

#[test]
fn every_split_of_any_sizes_sums_up_and_never_shrinks_the_largest_below_the_smallest() {
    for base in 0..4 {
        for above in [0, 1, 33, 50, 99, 100] {
            for (min, max) in [(0, 1), (1, 1), (1, 5), (3, 8), (7, 20)] {
                let p = Company::new(
                    json!({"minSize": min, "maxSize": max, "mixedInstancesPolicy":
                    {"instances": ["m5.large"], "onDemandBase": base, "onDemandAboveBase": above}}),
                )
                .plan();
                let g = &p.target.node_groups;
                assert_eq!(g.iter().map(|g| g.max).sum::<u32>(), max, "{base} {above}");
                assert_eq!(g.iter().map(|g| g.min).sum::<u32>(), min, "{base} {above}");
                assert!(
                    g.iter()
                        .all(|g| g.min <= g.desired && g.desired <= g.max && g.max >= 1),
                    "{g:?}"
                );
            }
        }
    }
    for n in 0..30 {
        for places in 1..5 {
            let (a, b) = (shares(n, places), shares(n + 1, places));
            assert_eq!(a.iter().sum::<u32>(), n);
            assert!(a.iter().zip(&b).all(|(a, b)| a <= b), "{n} over {places}");
        }
    }
}

#[test]
fn the_types_of_a_list_are_the_first_on_demand_and_all_for_spot() {
    let types = |ig| Company::new(ig).one().instance_types;
    assert_eq!(
        types(json!({"machineType": "m5.large, m4.large"})),
        ["m5.large"],
        "an Auto Scaling group takes the first"
    );
    assert_eq!(
        types(json!({"machineType": "m5.large,m4.large", "maxPrice": "0.1"})),
        ["m5.large", "m4.large"]
    );
    assert_eq!(types(json!({})), ["t3.medium"], "kops's default");
}

#[test]
fn more_than_twenty_types_and_requirements_instead_of_types_are_told_of() {
    let many: Vec<String> = (1..=22).map(|n| format!("m5.{n}xlarge")).collect();
    let c = Company::new(json!({"mixedInstancesPolicy": {"instances": many}}));
    assert_eq!(c.one().instance_types.len(), 20);
    assert!(
        finding(&c.plan(), "KOPS-ig-mixed")
            .message
            .contains("m5.21xlarge, m5.22xlarge")
    );
    let by = json!({"mixedInstancesPolicy": {"instanceRequirements": {"cpu": {"min": "2"}, "memory": {"min": "2G"}}}});
    let mut c = Company::new(by);
    blocks(&finding(&c.plan(), "KOPS-ig-requirements"));
    c.snapshot.blue.objects.push(
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels":
        {"kops.k8s.io/instancegroup": "nodes", "node.kubernetes.io/instance-type": "m6i.large"}}}),
    );
    assert_eq!(c.one().instance_types, ["m6i.large"], "what runs now");
    assert_eq!(
        finding(&c.plan(), "KOPS-ig-requirements").severity,
        Severity::Warning
    );
    c.wish(json!({"instanceTypes": ["c5.large", "c6i.large"]}));
    assert_eq!(c.one().instance_types, ["c5.large", "c6i.large"]);
    silent(&c.plan(), "KOPS-ig-requirements");
}

#[test]
fn groups_of_karpenter_and_skipped_ones_become_none_and_are_named() {
    let mut c = Company::new(json!({"manager": "Karpenter"}));
    c.add("other", json!({"machineType": "m5.large"}));
    let p = c.plan();
    assert_eq!(p.target.node_groups.len(), 1);
    let f = finding(&p, "KOPS-ig-karpenter");
    assert_eq!(f.severity, Severity::Warning);
    assert!(
        f.message.contains("no machineType: Karpenter chose"),
        "{f:?}"
    );
    // What the NodePool must carry stands in the finding.
    c.snapshot.kops.instance_groups[0]["spec"] = json!({"role": "Node", "manager": "Karpenter",
        "machineType": "c5.large,m5.large", "nodeLabels": {"tier": "batch"}, "taints": ["batch=yes:NoSchedule"],
        "kubelet": {"maxPods": 20, "anonymousAuth": false}});
    let f = finding(&c.plan(), "KOPS-ig-karpenter");
    assert!(
        f.message.contains("types c5.large, m5.large; labels tier=batch; taints batch=yes:NoSchedule; kubelet settings maxPods"),
        "{f:?}"
    );
    c.snapshot.kops.instance_groups[0]["spec"] = json!({"role": "Node", "machineType": "m5.large"});
    c.wish(json!({"skip": true}));
    let p = c.plan();
    assert_eq!(p.target.node_groups.len(), 1);
    finding(&p, "KOPS-ig-skipped");
}
