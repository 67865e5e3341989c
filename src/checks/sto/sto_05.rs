//! STO-05: an EBS volume attaches to one node. Volumes with a PersistentVolume are held and named by the rewrite (WL-04); here are those
//! that a pod names itself: green's copy would want the very volume that blue's pod has.

use super::volumes::{self, EBS, Source};
use crate::checks::look::count;
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::plan::model::Severity;
use std::collections::BTreeMap;

pub(super) const CHECK: Check = Check {
    id: "STO-05",
    severity: Severity::Blocker,
    question: "Would both sides attach one volume?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "List the workload under workloads.skip and move it by hand: stop it on blue, wait until the volume is detached, start it on green.",
    source: "checks.md STO-05",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let mut used: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (o, source) in volumes::inline(i) {
        if let Source::Csi(driver, handle) = source
            && driver == EBS
            && !handle.is_empty()
        {
            used.entry(handle).or_default().push(&o.name);
        }
    }
    for (volume, objects) in used {
        r.found(
            objects[0],
            format!("{volume} is named by the pods of {} that both sides run: {}; a volume attaches to one node", count(objects.len(), "workload"), few(&objects)),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::Blocker;
    use serde_json::json;

    #[test]
    fn a_pod_that_names_its_ebs_volume_blocks_until_it_is_skipped() {
        let s = with(vec![workload(
            "Deployment",
            "wiki",
            "wiki:1",
            json!({"volumes": [{"name": "d", "awsElasticBlockStore": {"volumeID": "aws://eu-west-1a/vol-7"}}]}),
        )]);
        fires(&spec(), &s, "STO-05", Blocker, "vol-7");
        let mut skip = spec();
        skip.workloads.skip = vec!["deployment/web/wiki".into()];
        silent(&skip, &s, "STO-05");
    }
}
