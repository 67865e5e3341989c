//! STO-02: every volume that green mounts has a driver there. EBS gets its add-on with a role by the plan.

use super::volumes::{self, EBS, EFS, Source};
use crate::checks::look::{count, text};
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::plan::model::Severity;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECK: Check = Check {
    id: "STO-02",
    severity: Severity::Blocker,
    question: "Is there a volume whose driver green does not have, or that no driver can mount any more?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Install the driver on green, with a role if it calls AWS.",
    source: "checks.md STO-02",
    run,
};

/// Drivers that EKS add-ons bring.
const ADDONS: &[(&str, &str)] = &[
    ("aws-ebs-csi-driver", EBS),
    ("aws-efs-csi-driver", EFS),
    ("aws-fsx-csi-driver", "fsx.csi.aws.com"),
    ("aws-mountpoint-s3-csi-driver", "s3.csi.aws.com"),
];

fn run(i: &Input, r: &mut Report) {
    let mut there: BTreeSet<&str> = ADDONS
        .iter()
        .filter(|(addon, _)| i.target.addons.iter().any(|a| a.name == *addon))
        .map(|(_, driver)| *driver)
        .collect();
    // A driver that the user installed on blue and that is copied with its registration.
    there.extend(i.moving(&["CSIDriver"]).map(|o| o.id.name.as_str()));
    let green = i.snapshot.green.iter().flat_map(|g| g.of_kind("CSIDriver"));
    there.extend(green.filter_map(|o| text(o, "/metadata/name")));
    let mut missing: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let mut gone: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let mut see = |object, source: Source| match source {
        Source::Csi(driver, _) if !there.contains(driver.as_str()) => {
            missing.entry(driver).or_default().insert(object);
        }
        Source::InTree(kind) => {
            gone.entry(kind).or_default().insert(object);
        }
        _ => {}
    };
    for v in volumes::all(i).into_iter().filter(|v| v.object.moves()) {
        see(v.object.name.as_str(), v.source);
    }
    for (o, source) in volumes::inline(i) {
        see(o.name.as_str(), source);
    }
    for o in i.moving(&["StorageClass"]) {
        let provisioner = text(o.object, "/provisioner").unwrap_or("");
        if provisioner.ends_with(".csi.aws.com") {
            see(
                o.name.as_str(),
                Source::Csi(provisioner.into(), String::new()),
            );
        }
    }
    for (driver, objects) in missing {
        let all: Vec<&str> = objects.into_iter().collect();
        r.found(
            format!("csidriver/{driver}"),
            format!(
                "green has no driver {driver}, which {} needs: {}",
                count(all.len(), "object"),
                few(&all)
            ),
        );
    }
    for (kind, objects) in gone {
        let all: Vec<&str> = objects.into_iter().collect();
        r.blocker(
            all[0],
            format!(
                "{kind} is an in-tree volume that green cannot mount, in {}: {}",
                count(all.len(), "object"),
                few(&all)
            ),
            "Move the data to a volume with a CSI driver first.",
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::Blocker;
    use serde_json::json;

    #[test]
    fn a_driver_that_stays_on_blue_blocks_and_one_that_comes_along_does_not() {
        let mut s = with(vec![object(
            "v1",
            "PersistentVolume",
            "media",
            json!({"spec": {"csi": {"driver": "juice.example.com", "volumeHandle": "m"}}}),
        )]);
        fires(
            &spec(),
            &s,
            "STO-02",
            Blocker,
            "csidriver/juice.example.com",
        );
        s.blue.objects.push(object(
            "storage.k8s.io/v1",
            "CSIDriver",
            "juice.example.com",
            json!({"spec": {}}),
        ));
        silent(&spec(), &s, "STO-02");
    }

    #[test]
    fn a_flex_volume_has_no_successor() {
        let s = with(vec![workload(
            "Deployment",
            "app",
            "app:1",
            json!({"volumes": [{"name": "v", "flexVolume": {"driver": "x/y"}}]}),
        )]);
        fires(
            &spec(),
            &s,
            "STO-02",
            Blocker,
            "flexVolume is an in-tree volume",
        );
    }

    #[test]
    fn an_in_tree_ebs_volume_is_served_by_the_add_on() {
        let s = with(vec![object(
            "v1",
            "PersistentVolume",
            "pv-1",
            json!({"spec": {"awsElasticBlockStore": {"volumeID": "aws://eu-west-1a/vol-1"}}}),
        )]);
        silent(&spec(), &s, "STO-02");
    }

    #[test]
    fn the_driver_of_an_efs_volume_comes_as_an_add_on() {
        let s = with(vec![object(
            "v1",
            "PersistentVolume",
            "media",
            json!({"spec": {"csi": {"driver": "efs.csi.aws.com", "volumeHandle": "fs-1"}}}),
        )]);
        silent(&spec(), &s, "STO-02");
    }
}
