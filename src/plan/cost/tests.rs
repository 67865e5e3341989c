//! Estimates checked by hand.

use super::*;
use crate::plan::plan;
use crate::plan::tests::spec;
use crate::snapshot::model::Snapshot;
use serde_json::json;

fn snapshot() -> Snapshot {
    let mut s = Snapshot::default();
    s.kops.kops_version = Some("1.18.2".into());
    s.kops.cluster = Some(
        json!({"kind": "Cluster", "metadata": {"name": "shop.test"}, "spec": {"kubernetesVersion": "1.18.20", "networkCIDR": "172.20.0.0/16",
        "api": {"loadBalancer": {"type": "Public"}},
        "etcdClusters": [{"name": "main", "etcdMembers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}],
        "subnets": [{"name": "a", "zone": "us-east-1a", "type": "Private", "cidr": "172.20.32.0/20"}, {"name": "b", "zone": "us-east-1b", "type": "Private", "cidr": "172.20.48.0/20"}]}}),
    );
    s.kops.instance_groups = vec![
        json!({"kind": "InstanceGroup", "metadata": {"name": "master-a"}, "spec": {"role": "Master", "machineType": "m5.large", "minSize": 3, "maxSize": 3}}),
        json!({"kind": "InstanceGroup", "metadata": {"name": "nodes"}, "spec": {"role": "Node", "machineType": "m5.xlarge", "minSize": 4, "maxSize": 8, "rootVolumeSize": 100}}),
    ];
    s.blue.objects = vec![
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"type": "LoadBalancer"}}),
    ];
    s
}

fn line<'c>(side: &'c Side, what: &str) -> &'c Line {
    side.lines
        .iter()
        .find(|l| l.what.contains(what))
        .unwrap_or_else(|| panic!("no line {what} in {:#?}", side.lines))
}

#[test]
fn three_masters_and_their_disks_are_what_eks_saves() {
    let p = plan(&spec("shop.test"), &snapshot());
    let blue = &p.cost.blue;
    // 3 x 0.096, 4 x 0.192, 3 x 64 GiB and 4 x 100 GiB gp2 at 0.10 a month (kops 1.18: gp2), etcd 3 x 20 GiB, two classic load balancers.
    assert_eq!(line(blue, "3 x m5.large").hourly, Some(288_000));
    assert_eq!(line(blue, "4 x m5.xlarge").hourly, Some(768_000));
    assert_eq!(line(blue, "3 x 64 GiB gp2").hourly, Some(26_301));
    assert_eq!(line(blue, "4 x 100 GiB gp2").hourly, Some(54_795));
    assert_eq!(line(blue, "3 x 20 GiB gp2 (etcd main)").hourly, Some(8_219));
    assert_eq!(line(blue, "load balancer of the API").hourly, Some(25_000));
    assert_eq!(
        line(blue, "load balancer of a Service").hourly,
        Some(25_000)
    );
    assert_eq!(blue.hourly, 1_195_315);
    assert_eq!(
        line(&p.cost.green, "EKS control plane").hourly,
        Some(100_000)
    );
}

#[test]
fn the_weeks_with_both_clusters_cost_all_of_green() {
    let mut s = spec("shop.test");
    s.cost.both_weeks = Some(2);
    let p = plan(&s, &snapshot());
    assert_eq!(p.cost.both_extra, p.cost.green.hourly * 336);
}

#[test]
fn a_version_in_extended_support_costs_six_times_as_much() {
    let mut s = spec("shop.test");
    s.green.version = "1.34".into();
    let mut snap = snapshot();
    snap.taken = Some("2026-12-02".into());
    let last_day = plan(&s, &snap);
    assert!(
        !last_day
            .cost
            .green
            .lines
            .iter()
            .any(|l| l.key == "eks/extended-support")
    );
    snap.taken = Some("2026-12-03".into());
    let day_after = plan(&s, &snap);
    assert_eq!(
        line(&day_after.cost.green, "extended support").hourly,
        Some(500_000)
    );
}

#[test]
fn a_type_without_a_price_is_named_and_not_counted_as_nothing() {
    let mut snap = snapshot();
    snap.kops.instance_groups[1]["spec"]["machineType"] = json!("hpc9z.96xlarge");
    let p = plan(&spec("shop.test"), &snap);
    assert_eq!(line(&p.cost.blue, "hpc9z").hourly, None);
    assert!(
        p.cost
            .not_counted
            .iter()
            .any(|n| n.contains("instance/hpc9z.96xlarge") && n.contains("cost.prices")),
        "{:#?}",
        p.cost.not_counted
    );
}

#[test]
fn spot_groups_are_estimated_as_spot_on_both_sides() {
    let mut snap = snapshot();
    snap.kops.instance_groups[1]["spec"]["maxPrice"] = json!("0.10");
    let p = plan(&spec("shop.test"), &snap);
    // 4 x 0.192 x 0.35
    assert_eq!(line(&p.cost.blue, "m5.xlarge spot").hourly, Some(268_800));
    assert_eq!(line(&p.cost.green, "m5.xlarge spot").hourly, Some(268_800));
}

#[test]
fn money_is_written_as_people_write_it() {
    assert_eq!(dollars(0), "0.00");
    assert_eq!(dollars(1_195_315), "1.20");
    assert_eq!(dollars(1_234_567_890_000), "1,234,567.89");
    assert_eq!(dollars(999_996_000), "1,000.00");
}
