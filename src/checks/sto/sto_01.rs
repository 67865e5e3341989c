//! STO-01. Volumes that go to green get Retain there and a finding by the rewrite; here are those that stay: their data is the way back.

use super::volumes::{self, EBS, Source};
use crate::checks::look::{count, text};
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::plan::model::Severity;
use std::collections::BTreeMap;

pub(super) const CHECK: Check = Check {
    id: "STO-01",
    severity: Severity::Blocker,
    question: "Would deleting a claim on blue delete data, because the reclaim policy is Delete?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Set persistentVolumeReclaimPolicy to Retain on blue.",
    source: "checks.md STO-01",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let loose: Vec<&str> = volumes::all(i)
        .into_iter()
        .filter(|v| !v.object.moves())
        .filter(|v| text(v.object.object, "/spec/persistentVolumeReclaimPolicy") == Some("Delete"))
        .map(|v| v.object.name.as_str())
        .collect();
    if !loose.is_empty() {
        r.warning(
            loose[0],
            format!("{} on blue with reclaim policy Delete ({}): whoever deletes a claim there deletes the data that the way back needs", count(loose.len(), "volume"), few(&loose)),
            "Nothing to do: the run sets Retain on blue at freeze, and the way back gives the old policy back.",
        );
    }
    owned(i, r);
}

/// Replay.md 57: `kops delete cluster` deletes every volume that carries its mark, Retain or not (kops#5526, kubernetes#66750; kops.md 4).
fn owned(i: &Input, r: &mut Report) {
    let listed = i
        .snapshot
        .aws
        .iter()
        .flat_map(|a| a.volumes.iter().flatten());
    let blue = i.spec.blue.cluster.as_str();
    let marks: BTreeMap<&str, Vec<String>> = listed
        .filter_map(|v| {
            // Whatever else it carries, kops spares what is marked as shared.
            if v.tags
                .get(&format!("kubernetes.io/cluster/{blue}"))
                .is_some_and(|t| t == "shared")
            {
                return None;
            }
            let tags: Vec<String> = v
                .tags
                .iter()
                .filter(|(k, value)| {
                    **k == format!("kubernetes.io/cluster/{blue}")
                        || *k == "KubernetesCluster" && *value == blue
                })
                .map(|(k, value)| format!("{k}={value}"))
                .collect();
            (!tags.is_empty()).then_some((v.id.as_str(), tags))
        })
        .collect();
    for v in volumes::all(i).into_iter().filter(|v| v.object.moves()) {
        let Source::Csi(driver, handle) = &v.source else {
            continue;
        };
        if let Some(tags) = marks.get(handle.as_str()).filter(|_| driver == EBS) {
            r.warning(
                &v.object.name,
                format!("{handle} carries {}: `kops delete cluster` deletes it with blue, whatever its reclaim policy says", tags.join(" and ")),
                format!("Before blue is deleted: `aws ec2 create-tags --resources {handle} --tags Key=kubernetes.io/cluster/{blue},Value=shared` and `aws ec2 delete-tags --resources {handle} --tags Key=KubernetesCluster`; undo by setting them back."),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::{Blocker, Warning};
    use serde_json::json;

    #[test]
    fn a_volume_with_delete_blocks_and_one_that_stays_behind_is_named() {
        let mut s = with(vec![object(
            "v1",
            "PersistentVolume",
            "pv-1",
            json!({"spec": {"persistentVolumeReclaimPolicy": "Delete", "awsElasticBlockStore": {"volumeID": "aws://eu-west-1a/vol-1"}}}),
        )]);
        fires(&spec(), &s, "STO-01", Blocker, "persistentvolume/pv-1");
        let mut skip = spec();
        skip.workloads.skip = vec!["persistentvolume/pv-1".into()];
        fires(
            &skip,
            &s,
            "STO-01",
            Warning,
            "1 volume on blue with reclaim policy Delete",
        );
        s.blue.objects[0]["spec"]["persistentVolumeReclaimPolicy"] = "Retain".into();
        silent(&skip, &s, "STO-01");
    }

    #[test]
    fn rule_57_a_volume_that_is_used_again_must_not_carry_blues_mark_and_the_tags_are_named() {
        let mut s = with(vec![object(
            "v1",
            "PersistentVolume",
            "pv-1",
            json!({"spec": {"persistentVolumeReclaimPolicy": "Retain", "awsElasticBlockStore": {"volumeID": "aws://eu-west-1a/vol-1"}}}),
        )]);
        let volume = |tags: &[(&str, &str)]| crate::world::cloud::Volume {
            id: "vol-1".into(),
            zone: "eu-west-1a".into(),
            size_gib: 1,
            kind: "gp2".into(),
            encrypted: false,
            kms_key: None,
            attached_to: None,
            tags: tags
                .iter()
                .map(|(k, v)| (k.to_string(), v.to_string()))
                .collect(),
        };
        let mut tagged = |tags: &[(&str, &str)]| {
            if let Some(a) = &mut s.aws {
                a.volumes = Some(vec![volume(tags)]);
            }
            s.clone()
        };
        // kops 5526, kubernetes 66750: deleted in spite of Retain.
        let owned = tagged(&[
            ("KubernetesCluster", "shop.test"),
            ("kubernetes.io/cluster/shop.test", "owned"),
            ("Name", "shop.test-dynamic-pvc-1"),
        ]);
        fires(
            &spec(),
            &owned,
            "STO-01",
            Warning,
            "vol-1 carries KubernetesCluster=shop.test and kubernetes.io/cluster/shop.test=owned",
        );
        let retagged = tagged(&[("kubernetes.io/cluster/shop.test", "shared")]);
        silent(&spec(), &retagged, "STO-01");
        let foreign = tagged(&[("kubernetes.io/cluster/other.test", "owned")]);
        silent(&spec(), &foreign, "STO-01");
    }
}
