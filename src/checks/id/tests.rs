use crate::checks::testing::*;
use crate::plan::model::Severity::{Blocker, NotChecked, Warning};
use crate::world::cloud::Volume;
use crate::world::kube::ClusterIdentity;
use serde_json::json;

#[test]
fn read_01_says_what_was_not_read_and_nothing_when_all_was() {
    let mut s = snapshot(vec![]);
    quiet(&spec(), &s, "READ-01");
    s.not_checked = vec![crate::snapshot::model::NotChecked {
        what: "blue.kind/secrets".into(),
        why: "forbidden".into(),
    }];
    fires(
        &spec(),
        &s,
        "READ-01",
        NotChecked,
        "blue.kind/secrets",
        "forbidden",
    );
}

#[test]
fn id_01_the_wrong_blue_blues_name_for_green_and_a_strangers_cluster_block() {
    let mut s = snapshot(vec![]);
    s.aws = Some(inventory());
    quiet(&spec(), &s, "ID-01");
    let other = spec_with(json!({"blue": {"cluster": "bank.test"}}));
    fires(
        &other,
        &s,
        "ID-01",
        Blocker,
        "blue.cluster",
        "made of shop.test",
    );
    let mut same = spec();
    same.green.name = "shop.test".into();
    fires(&same, &s, "ID-01", Blocker, "green.name", "blue's name");
    if let Some(a) = &mut s.aws {
        a.clusters = vec![eks("shop-green", &[("Owner", "someone")])];
    }
    fires(
        &spec(),
        &s,
        "ID-01",
        Blocker,
        "cluster/shop-green",
        "not made by crossfade",
    );
}

#[test]
fn id_03_a_zone_that_is_not_among_those_read_blocks() {
    let edns = runs(
        "external-dns",
        "registry.k8s.io/external-dns/external-dns:v0.10.2",
    );
    let mut s = snapshot(vec![edns]);
    let zone = |name: &str| crate::snapshot::model::ZoneRecords {
        zone: crate::world::dns::Zone {
            id: "Z1".into(),
            name: name.into(),
            private: false,
        },
        records: vec![],
    };
    s.zones = vec![zone("shop.test.")];
    let wants = spec_with(json!({"dns": {"zones": ["shop.test"]}}));
    quiet(&wants, &s, "ID-03");
    let wants = spec_with(json!({"dns": {"zones": ["shop.example"]}}));
    fires(
        &wants,
        &s,
        "ID-03",
        Blocker,
        "zone/shop.example",
        "no hosted zone",
    );
}

#[test]
fn id_04_is_asked_where_migration_yaml_leaves_a_choice_to_the_environment() {
    let mut s = snapshot(vec![]);
    s.aws = Some(inventory());
    let mut open = spec();
    open.blue.kubeconfig = Some("config".into());
    fires(
        &open,
        &s,
        "ID-04",
        NotChecked,
        "environment",
        "current context",
    );
    open.blue.context = Some("shop".into());
    fires(&open, &s, "ID-04", NotChecked, "environment", "AWS_PROFILE");
    open.aws.profile = Some("shop".into());
    quiet(&open, &s, "ID-04");
}

#[test]
fn id_05_reading_as_root_or_administrator_is_more_power_than_reading_needs() {
    let mut s = snapshot(vec![]);
    let mut read_as = |arn: &str| {
        let mut a = inventory();
        a.identity.arn = arn.into();
        s.aws = Some(a);
        s.clone()
    };
    let root = read_as("arn:aws:iam::000000000000:root");
    fires(&spec(), &root, "ID-05", Warning, "aws", "root user");
    let admin =
        read_as("arn:aws:sts::000000000000:assumed-role/AWSReservedSSO_AdministratorAccess_1/ann");
    fires(&spec(), &admin, "ID-05", Warning, "aws", "administrator");
    let mut reader = read_as("arn:aws:iam::000000000000:user/reader");
    quiet(&spec(), &reader, "ID-05");
    // Read live, the kubeconfig's user counts too, and nobody but its owner knows what it may do.
    reader.blue.identity = Some(ClusterIdentity {
        uid: "u".into(),
        ca_sha256: "c".into(),
    });
    fires(
        &spec(),
        &reader,
        "ID-05",
        NotChecked,
        "identities",
        "can-i delete",
    );
}

#[test]
fn id_06_and_08_traces_of_another_run_are_named_and_its_journal_is_asked_for() {
    let mut s = snapshot(vec![]);
    let mut a = inventory();
    a.clusters = vec![eks("other", &[("Owner", "someone")])];
    s.aws = Some(a.clone());
    quiet(&spec(), &s, "ID-06");
    quiet(&spec(), &s, "ID-08");
    a.clusters = vec![
        eks("bank-green", &[("crossfade.dev/run", "r1")]),
        eks("shop-green", &[("crossfade.dev/run", "r2")]),
    ];
    s.aws = Some(a);
    fires(
        &spec(),
        &s,
        "ID-06",
        Warning,
        "cluster/bank-green",
        "run r1",
    );
    fires(
        &spec(),
        &s,
        "ID-06",
        NotChecked,
        "cluster/shop-green",
        "run r2",
    );
    fires(
        &spec(),
        &s,
        "ID-08",
        NotChecked,
        "cluster/shop-green",
        "way back",
    );
}

#[test]
fn id_07_what_the_run_will_compare_is_counted() {
    quiet(&spec(), &snapshot(vec![]), "ID-07");
    let s = snapshot(vec![runs("web", "registry.shop.test/web:1.0")]);
    fires(&spec(), &s, "ID-07", NotChecked, "drift", "1 objects");
}

#[test]
fn id_09_names_the_buckets_and_backups_that_end_too_soon() {
    let mut s = snapshot(vec![]);
    quiet(&spec(), &s, "ID-09");
    s.kops.cluster = Some(kops(json!({"configBase": "s3://state/shop.test",
        "etcdClusters": [{"name": "main", "backups": {"backupStore": "s3://backups/main"}, "manager": {"backupRetentionDays": 7}}, {"name": "events", "manager": {"backupRetentionDays": 90}}]})));
    let p = fires(
        &spec(),
        &s,
        "ID-09",
        Warning,
        "kops/spec.etcdClusters.main",
        "7 days",
    );
    fires(
        &spec(),
        &s,
        "ID-09",
        NotChecked,
        "state store",
        "s3://backups/main, s3://state/shop.test",
    );
    assert_eq!(said(&p, "ID-09").len(), 2);
    // A person looked: the answer is a waiver.
    let answered = spec_with(
        json!({"waivers": [{"check": "ID-09", "object": "state store", "reason": "no rules, Ann 2026-11-29"}]}),
    );
    let p = crate::plan::plan(&answered, &s);
    let ask = p.findings.iter().find(|f| f.object == "state store");
    assert_eq!(
        ask.and_then(|f| f.waived.as_deref()),
        Some("no rules, Ann 2026-11-29")
    );
}

#[test]
fn id_10_what_kops_would_delete_under_green_is_said_and_shared_things_are_not() {
    let pv = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv1"}, "spec": {"persistentVolumeReclaimPolicy": "Retain",
        "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}}});
    let mut s = snapshot(vec![pv]);
    let mut a = inventory();
    let tag = |v: &str| [("kubernetes.io/cluster/shop.test".to_string(), v.to_string())].into();
    a.subnets[0].tags = tag("shared");
    a.volumes = Some(vec![Volume {
        id: "vol-1".into(),
        zone: "eu-west-1a".into(),
        size_gib: 8,
        kind: "gp3".into(),
        encrypted: true,
        kms_key: None,
        attached_to: None,
        tags: Default::default(),
    }]);
    s.aws = Some(a.clone());
    quiet(&spec(), &s, "ID-10");
    a.subnets[0].tags = tag("owned");
    s.aws = Some(a.clone());
    fires(&spec(), &s, "ID-10", Warning, "subnets", "subnet-a");
    if let Some(v) = a.volumes.as_mut().and_then(|v| v.first_mut()) {
        v.tags = [("KubernetesCluster".to_string(), "shop.test".to_string())].into();
    }
    s.aws = Some(a);
    let p = crate::plan::plan(&spec(), &s);
    let moves = p
        .verdicts
        .all()
        .iter()
        .any(|v| v.object == "persistentvolume/pv1" && v.target.is_some());
    assert!(
        moves,
        "the test's volume must go to green: {:?}",
        p.verdicts
    );
    fires(&spec(), &s, "ID-10", Warning, "volumes", "vol-1");
}
