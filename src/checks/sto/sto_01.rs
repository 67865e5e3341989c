//! STO-01. Volumes that go to green get Retain there and a finding by the rewrite; here are those that stay: their data is the way back.

use super::volumes;
use crate::checks::look::{count, text};
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::plan::model::Severity;

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
            CHECK.remedy,
        );
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
}
