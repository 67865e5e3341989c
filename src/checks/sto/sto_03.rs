//! STO-03: a volume of EBS is in one zone. Zones of in-tree volumes are found by the rewrite; here are those of the CSI driver, by affinity,
//! label or the account's own listing.

use super::volumes::{self, EBS, Source};
use crate::checks::look::count;
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::plan::model::Severity;
use std::collections::BTreeMap;

pub(super) const CHECK: Check = Check {
    id: "STO-03",
    severity: Severity::Blocker,
    question: "Is a volume in a zone without nodes of green?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Give green a subnet and a node group in that zone.",
    source: "checks.md STO-03",
    run,
};

fn run(i: &Input, r: &mut Report) {
    if i.cx.zones.is_empty() {
        return;
    }
    let listed = i
        .snapshot
        .aws
        .iter()
        .flat_map(|a| a.volumes.iter().flatten());
    let listed: BTreeMap<&str, &str> = listed.map(|v| (v.id.as_str(), v.zone.as_str())).collect();
    let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for v in volumes::all(i).into_iter().filter(|v| v.object.moves()) {
        let Source::Csi(driver, handle) = &v.source else {
            continue;
        };
        if driver != EBS || v.object.object.pointer("/spec/csi").is_none() {
            continue;
        }
        let mut zones = v.zones;
        if zones.is_empty() {
            zones.extend(listed.get(handle.as_str()).map(|z| z.to_string()));
        }
        if !zones.is_empty() && zones.is_disjoint(&i.cx.zones) {
            let zone = zones.into_iter().next().unwrap_or_default();
            out.entry(zone).or_default().push(v.object.name.clone());
        }
    }
    for (zone, names) in out {
        r.found(
            names[0].clone(),
            format!(
                "{} in {zone}, where green has no nodes: {}",
                count(names.len(), "volume"),
                few(&names)
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::Blocker;
    use crate::snapshot::model::Snapshot;
    use crate::world::cloud::Volume;
    use serde_json::json;

    fn volume(zone: &str) -> Snapshot {
        with(vec![object(
            "v1",
            "PersistentVolume",
            "pv-1",
            json!({"spec": {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": [zone]}]}]}}}}),
        )])
    }

    #[test]
    fn a_csi_volume_in_a_zone_without_green_nodes_blocks() {
        fires(
            &spec(),
            &volume("eu-west-1c"),
            "STO-03",
            Blocker,
            "1 volume in eu-west-1c",
        );
        let mut s = volume("eu-west-1c");
        s.blue.objects[0]["spec"]
            .as_object_mut()
            .map(|o| o.remove("nodeAffinity"));
        silent(&spec(), &s, "STO-03");
        if let Some(a) = &mut s.aws {
            a.volumes = Some(vec![Volume {
                id: "vol-1".into(),
                zone: "eu-west-1c".into(),
                size_gib: 1,
                kind: "gp2".into(),
                encrypted: false,
                kms_key: None,
                attached_to: None,
                tags: Default::default(),
            }]);
        }
        fires(&spec(), &s, "STO-03", Blocker, "1 volume in eu-west-1c");
    }

    #[test]
    fn a_volume_in_a_zone_of_green_is_fine() {
        silent(&spec(), &volume("eu-west-1b"), "STO-03");
    }
}
