//! Volumes of blue as several checks see them.

use crate::checks::look::{bytes, items, text};
use crate::checks::{BlueObject, Input};
use serde_json::Value;
use std::collections::BTreeSet;

/// Driver of EBS.
pub(super) const EBS: &str = "ebs.csi.aws.com";
/// Driver of EFS.
pub(super) const EFS: &str = "efs.csi.aws.com";

/// Where the data of a volume is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Source {
    /// A CSI driver that green needs, with the volume's handle.
    Csi(String, String),
    /// NFS server and path; Kubernetes mounts it by itself.
    Nfs(String),
    /// An in-tree driver that has no successor on EKS.
    InTree(String),
    /// On the node, or nothing to attach.
    Node,
}

/// In-tree sources that no EKS release can mount, whatever is installed.
const IN_TREE: &[&str] = &[
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "glusterfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];

/// Source of a PersistentVolume's `spec` or of an entry of a pod's `volumes`.
pub(super) fn source(v: &Value) -> Option<Source> {
    if let Some(ebs) = v.get("awsElasticBlockStore") {
        let id = text(ebs, "/volumeID").unwrap_or("");
        return Some(Source::Csi(
            EBS.into(),
            id.rsplit('/').next().unwrap_or("").into(),
        ));
    }
    if let Some(csi) = v.get("csi") {
        return Some(Source::Csi(
            text(csi, "/driver")?.into(),
            text(csi, "/volumeHandle").unwrap_or("").into(),
        ));
    }
    if let Some(nfs) = v.get("nfs") {
        return Some(Source::Nfs(text(nfs, "/server")?.into()));
    }
    if let Some(name) = IN_TREE.iter().find(|n| v.get(**n).is_some()) {
        return Some(Source::InTree((*name).into()));
    }
    (v.get("hostPath").is_some() || v.get("local").is_some()).then_some(Source::Node)
}

/// A PersistentVolume of blue.
pub(super) struct Volume<'a> {
    /// The object.
    pub object: &'a BlueObject<'a>,
    /// Where its data is.
    pub source: Source,
    /// Zones it may be used in, by labels and affinity.
    pub zones: BTreeSet<String>,
    /// Capacity, bytes.
    pub size: u64,
}

const ZONE_KEYS: &[&str] = &[
    "topology.kubernetes.io/zone",
    "topology.ebs.csi.aws.com/zone",
    "failure-domain.beta.kubernetes.io/zone",
];

/// All PersistentVolumes of blue.
pub(super) fn all<'a>(i: &Input<'a>) -> Vec<Volume<'a>> {
    i.of_kind("PersistentVolume")
        .filter_map(|o| {
            let spec = o.object.get("spec")?;
            let mut zones: BTreeSet<String> =
                items(spec, "/nodeAffinity/required/nodeSelectorTerms")
                    .flat_map(|t| items(t, "/matchExpressions"))
                    .filter(|e| text(e, "/key").is_some_and(|k| ZONE_KEYS.contains(&k)))
                    .flat_map(|e| items(e, "/values"))
                    .filter_map(|z| z.as_str().map(String::from))
                    .collect();
            if zones.is_empty() {
                // Several zones in one label are joined by two underscores.
                zones = ZONE_KEYS
                    .iter()
                    .filter_map(|k| crate::object::label(o.object, k))
                    .flat_map(|z| z.split("__"))
                    .map(String::from)
                    .collect();
            }
            Some(Volume {
                object: o,
                source: source(spec)?,
                zones,
                size: text(spec, "/capacity/storage").and_then(bytes).unwrap_or(0),
            })
        })
        .collect()
}

/// Volumes written into pods of workloads that go to green, with the workload.
pub(super) fn inline<'a>(i: &Input<'a>) -> Vec<(&'a BlueObject<'a>, Source)> {
    i.moving(&[
        "Deployment",
        "StatefulSet",
        "DaemonSet",
        "ReplicaSet",
        "Job",
        "CronJob",
        "Pod",
    ])
    .filter_map(|o| Some((o, o.pod()?)))
    .flat_map(|(o, pod)| items(pod, "/volumes").filter_map(move |v| Some((o, source(v)?))))
    .collect()
}

/// GiB of bytes, rounded.
pub(super) fn gib(bytes: u64) -> u64 {
    (bytes + (1 << 29)) >> 30
}
