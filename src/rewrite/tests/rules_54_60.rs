//! Rules 54 to 60 of replay.md: storage. Rule 57 is a check over the account (src/checks/sto/sto_01.rs).

use super::{corpus, found, of, planned, says, spec, target};
use crate::plan::model::{Fate, Severity};
use crate::plan::plan;
use crate::snapshot::model::Snapshot;
use serde_json::{Value, json};

fn volume(name: &str, spec: Value) -> Value {
    let mut v = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "persistentVolumeReclaimPolicy": "Delete", "storageClassName": "gp2",
        "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "shop", "name": "data", "uid": "9", "resourceVersion": "7"}}});
    for (k, value) in spec.as_object().cloned().unwrap_or_default() {
        v["spec"][k] = value;
    }
    v
}

fn claim(name: &str, volume: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "shop", "annotations": {
            "pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes",
            "volume.beta.kubernetes.io/storage-provisioner": "kubernetes.io/aws-ebs", "volume.kubernetes.io/selected-node": "ip-1"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": volume, "storageClassName": "gp2",
            "dataSource": {"kind": "PersistentVolumeClaim", "name": "old"}, "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "old"}},
        "status": {"phase": "Bound"}})
}

#[test]
fn rule_54_a_volume_keeps_its_claims_name_without_its_uid_and_outlives_it_on_both_sides() {
    let p = planned(vec![volume(
        "pv-1",
        json!({"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}}),
    )]);
    let t = target(&p, "persistentvolume/pv-1");
    assert_eq!(
        t["spec"]["claimRef"],
        json!({"kind": "PersistentVolumeClaim", "namespace": "shop", "name": "data"})
    );
    assert_eq!(t["spec"]["persistentVolumeReclaimPolicy"], "Retain");
    says(
        &p,
        "STO-01",
        "persistentvolume/pv-1",
        Severity::Blocker,
        "reclaim policy Delete",
    );
    // Blue's own is a step of the freeze; what was there is in its record, and the way back writes it again.
    let step = p
        .steps
        .iter()
        .find(|s| s.id == "freeze/volumes")
        .expect("a step");
    assert_eq!(
        step.params["holds"],
        json!([{"id": {"apiVersion": "v1", "kind": "PersistentVolume", "name": "pv-1"}, "set": {"/spec/persistentVolumeReclaimPolicy": "Retain"}}])
    );
    let mut gone = volume("pv-2", json!({}));
    gone["status"] = json!({"phase": "Released"});
    assert_eq!(
        of(&planned(vec![gone]), "persistentvolume/pv-2").verdict,
        Fate::Skipped
    );
}

#[test]
fn rule_55_a_claim_names_its_volume_only_when_that_comes_along() {
    let pv = volume(
        "pv-1",
        json!({"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}}),
    );
    let p = planned(vec![pv.clone(), claim("data", "pv-1")]);
    assert_eq!(
        target(&p, "persistentvolumeclaim/shop/data"),
        &json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "shop"},
            "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "pv-1", "storageClassName": "gp3"}})
    );
    let mut s = Snapshot::default();
    s.blue.objects = vec![pv, claim("data", "pv-1")];
    let mut skip = spec();
    skip.workloads.skip = vec!["persistentvolume/pv-1".into()];
    let p = plan(&skip, &s);
    assert!(
        target(&p, "persistentvolumeclaim/shop/data")["spec"]
            .get("volumeName")
            .is_none()
    );
    says(
        &p,
        "WL-04",
        "persistentvolumeclaim/shop/data",
        Severity::Blocker,
        "would be empty",
    );
}

#[test]
fn rule_55_a_file_system_of_the_network_is_bound_again_and_blocks_nothing() {
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "cms", "namespace": "shop"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "cms"}}, "template": {"metadata": {"labels": {"app": "cms"}}, "spec": {"containers": []}},
            "volumeClaimTemplates": [{"metadata": {"name": "media"}, "spec": {"storageClassName": "efs"}}]}});
    let mut pv = volume(
        "media",
        json!({"csi": {"driver": "efs.csi.aws.com", "volumeHandle": "fs-1::fsap-1"}, "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "efs"}),
    );
    pv["spec"]["claimRef"]["name"] = json!("media-cms-0");
    let mut c = claim("media-cms-0", "media");
    c["spec"]["storageClassName"] = json!("efs");
    let p = planned(vec![pv, c, set]);
    says(
        &p,
        "WL-04",
        "persistentvolume/media",
        Severity::Warning,
        "both sides write to it",
    );
    for id in [
        "persistentvolumeclaim/shop/media-cms-0",
        "statefulset/shop/cms",
    ] {
        assert!(
            found(&p, "WL-04", id).is_empty(),
            "{id}: {:?}",
            found(&p, "WL-04", id)
        );
    }
    assert_eq!(
        target(&p, "persistentvolumeclaim/shop/media-cms-0")["spec"]["volumeName"],
        "media"
    );
}

#[test]
fn velero_4108_a_migrated_in_tree_volume_is_converted_and_keeps_its_zone() {
    let mut pv = volume(
        "pv-1",
        json!({"awsElasticBlockStore": {"volumeID": "vol-0abc", "fsType": "xfs", "partition": 1, "readOnly": true},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["eu-west-1b"]},
            {"key": "topology.kubernetes.io/region", "operator": "In", "values": ["eu-west-1"]}]}]}}}),
    );
    pv["metadata"]["annotations"] = json!({"pv.kubernetes.io/migrated-to": "ebs.csi.aws.com", "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs"});
    let p = planned(vec![pv]);
    let t = target(&p, "persistentvolume/pv-1");
    assert_eq!(t["metadata"], json!({"name": "pv-1"}));
    assert_eq!(
        t["spec"]["csi"],
        json!({"driver": "ebs.csi.aws.com", "volumeHandle": "vol-0abc", "fsType": "xfs", "volumeAttributes": {"partition": "1"}, "readOnly": true})
    );
    assert_eq!(
        t["spec"]["nodeAffinity"],
        json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": ["eu-west-1b"]}]}]}})
    );
}

#[test]
fn rule_56_an_in_tree_class_becomes_the_csi_drivers_with_the_same_meaning() {
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}, "provisioner": "kubernetes.io/aws-ebs",
        "parameters": {"fsType": "xfs", "encrypted": "true", "iopsPerGB": "10"}, "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "failure-domain.beta.kubernetes.io/zone", "values": ["eu-west-1a"]}]}]});
    let p = planned(vec![class]);
    let t = target(&p, "storageclass/fast");
    assert_eq!(t["provisioner"], "ebs.csi.aws.com");
    // Nothing said meant gp2 in the tree, and means gp3 to the driver.
    assert_eq!(
        t["parameters"],
        json!({"encrypted": "true", "iopsPerGB": "10", "csi.storage.k8s.io/fstype": "xfs", "type": "gp2"})
    );
    assert_eq!(
        t["allowedTopologies"],
        json!([{"matchLabelExpressions": [{"key": "topology.ebs.csi.aws.com/zone", "values": ["eu-west-1a"]}]}])
    );
}

#[test]
fn rule_58_one_default_class_is_greens_and_kops_own_classes_are_mapped_to_it() {
    let class = |name: &str, default: bool, more: Value| {
        let mut c = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, "provisioner": "ebs.csi.aws.com", "parameters": more, "volumeBindingMode": "WaitForFirstConsumer"});
        if default {
            c["metadata"]["annotations"] =
                json!({"storageclass.kubernetes.io/is-default-class": "true"});
        }
        c
    };
    let p = planned(vec![
        class("default", false, json!({})),
        class("gp2", false, json!({})),
        class(
            "kops-ssd-1-17",
            false,
            json!({"type": "io1", "fsType": "xfs"}),
        ),
        class("kops-csi-1-21", true, json!({})),
        class("own", true, json!({})),
    ]);
    for name in ["default", "gp2", "kops-ssd-1-17", "kops-csi-1-21"] {
        assert_eq!(
            of(&p, &format!("storageclass/{name}")).verdict,
            Fate::Skipped,
            "{name}"
        );
    }
    assert!(
        target(&p, "storageclass/own")["metadata"]
            .get("annotations")
            .is_none()
    );
    let default = |o: &&Value| {
        crate::object::annotation(o, "storageclass.kubernetes.io/is-default-class") == Some("true")
    };
    let targets = p.verdicts.all().iter().filter_map(|v| v.target.clone());
    let all: Vec<Value> = targets.chain(p.generated.iter().cloned()).collect();
    assert_eq!(all.iter().filter(default).count(), 1);
    says(
        &p,
        "STO-04",
        "storageclass/kops-ssd-1-17",
        Severity::Warning,
        "type io1, fsType xfs",
    );
}

#[test]
fn rule_59_a_volume_needs_nodes_in_its_zone_and_is_held_until_blue_has_let_go() {
    let mut s = Snapshot::default();
    s.kops.cluster = Some(
        json!({"kind": "Cluster", "metadata": {"name": "blue.example.com"}, "spec": {"networkCIDR": "172.20.0.0/16",
        "subnets": [{"name": "a", "zone": "eu-west-1a", "type": "Private", "cidr": "172.20.32.0/24"}, {"name": "c", "zone": "eu-west-1c", "type": "Private", "cidr": "172.20.34.0/24"}]}}),
    );
    s.kops.instance_groups = vec![
        json!({"kind": "InstanceGroup", "metadata": {"name": "workers"}, "spec": {"role": "Node", "machineType": "m5.large", "minSize": 2, "maxSize": 2, "subnets": ["a"]}}),
    ];
    let ebs = |zone: &str| json!({"awsElasticBlockStore": {"volumeID": format!("aws://{zone}/vol-1")}, "persistentVolumeReclaimPolicy": "Retain"});
    s.blue.objects = vec![
        volume("near", ebs("eu-west-1a")),
        volume("far", ebs("eu-west-1c")),
    ];
    let p = plan(&spec(), &s);
    says(
        &p,
        "STO-03",
        "persistentvolume/far",
        Severity::Blocker,
        "eu-west-1c, where green has no nodes",
    );
    assert!(found(&p, "STO-03", "persistentvolume/near").is_empty());
    for id in ["persistentvolume/far", "persistentvolume/near"] {
        assert_eq!(of(&p, id).verdict, Fate::Held, "{id}");
        says(
            &p,
            "WL-04",
            id,
            Severity::Blocker,
            "attaches to one side only",
        );
    }
}

#[test]
fn rule_60_data_comes_before_the_operator_that_would_make_empty_volumes() {
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "postgresqls.acid.zalan.do"},
        "spec": {"group": "acid.zalan.do", "scope": "Namespaced", "names": {"kind": "postgresql", "plural": "postgresqls"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    let database = json!({"apiVersion": "acid.zalan.do/v1", "kind": "postgresql", "metadata": {"name": "orders", "namespace": "shop"}, "spec": {"volume": {"size": "10Gi"}}});
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "orders", "namespace": "shop",
            "ownerReferences": [{"apiVersion": "acid.zalan.do/v1", "kind": "postgresql", "name": "orders", "uid": "1", "controller": true}]},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"db": "orders"}}, "template": {"metadata": {"labels": {"db": "orders"}}, "spec": {"containers": []}},
            "volumeClaimTemplates": [{"metadata": {"name": "pgdata"}, "spec": {}}]}});
    let p = planned(vec![crd, database, set]);
    // The operator makes it again, so it is not copied, and the data in it would be left behind without a word.
    assert_eq!(of(&p, "statefulset/shop/orders").verdict, Fate::Skipped);
    says(
        &p,
        "WL-04",
        "postgresql.acid.zalan.do/shop/orders",
        Severity::Blocker,
        "would make empty volumes",
    );
    // Volumes and claims are there before custom resources, and these before who makes pods of them.
    let place = |wave: &str| crate::plan::wave_place(wave);
    assert!(place("base") < place("custom") && place("custom") < place("workloads"));
    // A StatefulSet of one's own is a blocker by itself.
    let p = planned(corpus("04"));
    says(
        &p,
        "WL-04",
        "statefulset/coordination/zk",
        Severity::Blocker,
        "start empty",
    );
}
