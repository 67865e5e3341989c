//! Names inside the limits of EKS and EC2, the same on every machine.

use super::super::names::{Names, label_value};
use super::Company;
use serde_json::json;

#[test]
fn a_name_that_eks_takes_stays_and_others_are_cut_with_a_hash() {
    let long = "n".repeat(80);
    let mut names = Names::new("green", ["nodes", "nodes.gpu", long.as_str()].into_iter());
    assert_eq!(names.group("nodes", ""), "nodes");
    assert_eq!(names.group("nodes.gpu", ""), "nodes-gpu");
    let cut = names.group(&long, "");
    assert_eq!(cut.len(), 63);
    assert!(cut.starts_with("nnnn"));
    // Letters that EKS has not: `nodes.gpu` has taken the name.
    let twin = names.group("nodes_gpu!", "");
    assert_eq!(twin, "nodes_gpu-");
    let second = names.group("nodes gpu", "");
    assert!(
        second.starts_with("nodes-gpu-") && second.len() == 16,
        "{second}"
    );
}

#[test]
fn the_split_of_one_group_never_takes_the_name_of_another() {
    let mut c = Company::new(json!({"machineType": "m5.large", "minSize": 3, "maxSize": 3}));
    c.add(
        "nodes-eu-west-1a",
        json!({"machineType": "c5.large", "subnets": ["eu-west-1a"]}),
    );
    c.wish(json!({"splitByZone": true}));
    let p = c.plan();
    let of = |name: &str| {
        p.target
            .node_groups
            .iter()
            .find(|g| g.name == name)
            .map(|g| g.instance_group.as_str())
    };
    assert_eq!(of("nodes-eu-west-1a"), Some("nodes-eu-west-1a"));
    assert_eq!(of("nodes-eu-west-1b"), Some("nodes"));
    let names: std::collections::BTreeSet<&str> = p
        .target
        .node_groups
        .iter()
        .map(|g| g.name.as_str())
        .collect();
    assert_eq!(names.len(), 4, "{names:?}");
    let templates: std::collections::BTreeSet<&str> = p
        .target
        .node_groups
        .iter()
        .map(|g| g.launch_template.name.as_str())
        .collect();
    assert_eq!(templates.len(), 4);
}

#[test]
fn launch_templates_carry_greens_name_and_stay_below_128() {
    assert_eq!(
        Company::new(json!({"machineType": "m5.large"}))
            .one()
            .launch_template
            .name,
        "crossfade-shop-green-nodes"
    );
    let mut c = Company::new(json!({"machineType": "m5.large"}));
    c.spec.green.name = "g".repeat(100);
    c.add(&"n".repeat(63), json!({"machineType": "m5.large"}));
    let p = c.plan();
    let names: Vec<&str> = p
        .target
        .node_groups
        .iter()
        .map(|g| g.launch_template.name.as_str())
        .collect();
    assert!(
        names.iter().all(|n| (3..=128).contains(&n.len())),
        "{names:?}"
    );
    assert_ne!(names[0], names[1]);
}

#[test]
fn a_label_value_is_always_one() {
    assert_eq!(label_value("nodes.gpu_1-a"), "nodes.gpu_1-a");
    for odd in ["nodes gpu", "-nodes", &"n".repeat(64)] {
        let v = label_value(odd);
        assert!(
            v.len() <= 63 && v.starts_with(|c: char| c.is_ascii_alphanumeric()),
            "{v}"
        );
        assert_ne!(v, odd);
    }
}
