//! The guard against what kops 1.22.6 itself printed (`tests/corpus/kops-live/kops-delete.txt`).

use super::*;
use crate::snapshot::files::from_files;
use crate::snapshot::mask::Key;
use crate::spec::model::Spec;
use serde_json::json;
use std::path::{Path, PathBuf};

fn live(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus/kops-live")
        .join(part)
}

fn company() -> (Plan, Snapshot) {
    let snapshot = from_files(
        &[live("get-all.yaml"), live("aws")],
        None,
        &Key::from_bytes([9; 32]),
    )
    .expect("read")
    .snapshot;
    let spec: Spec = serde_json::from_value(json!({
        "apiVersion": "crossfade.dev/v1alpha1", "kind": "Migration", "name": "demo",
        "blue": {"cluster": "shop.test"}, "green": {"name": "shop-green", "version": "1.36", "serviceCidr": "10.96.0.0/16"},
        "aws": {"account": "000000000000", "region": "eu-west-1"}
    }))
    .expect("a valid spec");
    (crate::plan::plan(&spec, &snapshot), snapshot)
}

/// Kind as kops spells it, our kind.
const KINDS: [(&str, &str); 8] = [
    ("iam-instance-profile", "instance-profile"),
    ("iam-role", "role"),
    ("nat-gateway", "nat-gateway"),
    ("route-table", "route-table"),
    ("security-group", "security-group"),
    ("subnet", "subnet"),
    ("volume", "volume"),
    ("vpc", "vpc"),
];

#[test]
fn dns_rule_16_the_list_is_the_one_that_kops_prints_for_every_kind_that_is_read() {
    let (plan, snapshot) = company();
    let text = std::fs::read_to_string(live("kops-delete.txt")).expect("the truth");
    let mut truth: BTreeSet<(String, String)> = BTreeSet::new();
    let mut not_read: BTreeSet<&str> = BTreeSet::new();
    for line in text.lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (kind, id) = (words[0], words[words.len() - 1]);
        match KINDS.iter().find(|(k, _)| *k == kind) {
            Some((_, ours)) => {
                truth.insert((ours.to_string(), id.to_string()));
            }
            None => {
                not_read.insert(kind);
            }
        }
    }
    assert_eq!(
        not_read,
        BTreeSet::from(["dhcp-options", "internet-gateway", "keypair"]),
        "said to be not read"
    );
    let ours: BTreeSet<(String, String)> = doomed(&plan, &snapshot)
        .into_iter()
        .filter(|d| d.kind != "route53-record")
        .map(|d| (d.kind.to_string(), d.id))
        .collect();
    let missing: Vec<_> = truth.difference(&ours).collect();
    let more: Vec<_> = ours.difference(&truth).collect();
    assert!(
        missing.is_empty() && more.is_empty(),
        "missing {missing:?}, too many {more:?}"
    );
}

#[test]
fn dns_rule_16_what_green_stands_on_is_told_apart_down_to_its_way_out() {
    let (plan, snapshot) = company();
    let list = doomed(&plan, &snapshot);
    let used = |kind: &str| {
        list.iter()
            .filter(|d| d.kind == kind && d.green_uses_it)
            .count()
    };
    assert_eq!(used("vpc"), 1);
    assert!(used("subnet") >= 2, "{list:#?}");
    assert!(
        used("route-table") >= 1 && used("nat-gateway") >= 1,
        "without them green's nodes reach nothing: {list:#?}"
    );
    assert_eq!(used("instance-profile") + used("volume"), 0);
}

#[test]
fn dns_rule_16_of_the_zone_kops_takes_its_own_names_and_no_other() {
    let (plan, mut snapshot) = company();
    let record = |name: &str| crate::world::dns::RecordSet {
        name: format!("{name}."),
        rtype: "A".into(),
        ttl: Some(60),
        values: vec!["192.0.2.1".into()],
        alias: None,
        set_identifier: None,
        routing: BTreeMap::new(),
    };
    snapshot.zones = vec![crate::snapshot::model::ZoneRecords {
        zone: crate::world::dns::Zone {
            id: "Z1".into(),
            name: "shop.test.".into(),
            private: false,
        },
        records: [
            "api.shop.test",
            "api.internal.shop.test",
            "etcd-a.internal.shop.test",
            "www.shop.test",
            "api.other.test",
            "etcd.shop.test",
        ]
        .map(record)
        .to_vec(),
    }];
    let records: Vec<String> = doomed(&plan, &snapshot)
        .into_iter()
        .filter(|d| d.kind == "route53-record")
        .map(|d| d.id)
        .collect();
    assert_eq!(
        records,
        [
            "api.shop.test/A",
            "api.internal.shop.test/A",
            "etcd-a.internal.shop.test/A"
        ]
    );
}
