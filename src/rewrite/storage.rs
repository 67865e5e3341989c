//! Rules 54 to 58 and 72: volumes and classes.

use super::work::{Work, items, set, take, text};
use crate::object::{annotation, label};
use crate::plan::model::Severity;
use serde_json::{Value, json};

/// Name of green's default class.
pub const DEFAULT_CLASS: &str = "gp3";

/// The class of green for a class of blue: kops's own and the in-tree defaults become gp3, others keep their name.
pub(super) fn green_class(name: &str) -> String {
    match name {
        "default" | "gp2" | "kops-ssd-1-17" | "kops-csi-1-21" => DEFAULT_CLASS.into(),
        other => other.into(),
    }
}

/// Rewrites volumes, claims and classes.
pub(super) fn rewrite(w: &mut Work) {
    match w.kind() {
        "PersistentVolume" => volume(w),
        "PersistentVolumeClaim" => claim(w),
        "StorageClass" => super::classes::rewrite(w),
        "IngressClass"
            if annotation(w.original, "ingressclass.kubernetes.io/is-default-class")
                == Some("true") =>
        {
            w.tidied(72)
        }
        _ => {}
    }
}

/// Drivers of file systems of the network: any number of nodes of both sides mount them at once.
const SHARED: &[&str] = &[
    "efs.csi.aws.com",
    "fsx.csi.aws.com",
    "nfs.csi.k8s.io",
    "s3.csi.aws.com",
    "smb.csi.k8s.io",
];
/// Node labels by which a zone was and is named.
const ZONE_KEYS: &[&str] = &[
    "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/zone",
    "topology.ebs.csi.aws.com/zone",
];

/// Whether a volume can be mounted on both sides at once.
pub(super) fn shared(volume: &Value) -> bool {
    volume.pointer("/spec/nfs").is_some()
        || text(volume, "/spec/csi/driver").is_some_and(|d| SHARED.contains(&d))
}

/// Whether the claim of a volume is gone: on green it would bind to the next claim of that name, with old data in it.
pub(super) fn released(volume: &Value) -> bool {
    matches!(text(volume, "/status/phase"), Some("Released" | "Failed"))
}

fn volume(w: &mut Work) {
    if released(w.original) {
        w.skip(54);
        w.find(
            "STO-01",
            Severity::Info,
            54,
            "its claim was deleted: the volume is not copied, and its data stays where it is",
            "Keep or delete it on blue before the cluster goes.",
        );
        return;
    }
    for key in ["uid", "resourceVersion"] {
        if take(&mut w.object, &format!("/spec/claimRef/{key}")).is_some() {
            w.changed(54);
        }
    }
    let policy = text(w.original, "/spec/persistentVolumeReclaimPolicy")
        .unwrap_or("Retain")
        .to_string();
    if policy != "Retain" {
        set(
            &mut w.object,
            "/spec/persistentVolumeReclaimPolicy",
            json!("Retain"),
        );
        w.changed(54);
        w.find(
            "STO-01",
            Severity::Blocker,
            54,
            format!("reclaim policy {policy}: deleting the claim or blue would delete the data"),
            "Set persistentVolumeReclaimPolicy to Retain on blue.",
        );
    }
    if let Some(class) = take(
        &mut w.object,
        "/metadata/annotations/volume.beta.kubernetes.io~1storage-class",
    ) {
        set(&mut w.object, "/spec/storageClassName", class);
        w.changed(54);
    }
    if w.object.pointer("/spec/awsElasticBlockStore").is_some() {
        in_tree(w);
    }
    if let Some(c) = text(&w.object, "/spec/storageClassName").map(String::from) {
        let new = green_class(&c);
        if new != c {
            set(&mut w.object, "/spec/storageClassName", json!(new));
            w.changed(58);
        }
    }
    if shared(w.original) {
        w.find(
            "WL-04",
            Severity::Warning,
            54,
            "a file system of the network, bound to the same claim on green: from unpark on both sides write to it",
            "List workloads that must not write twice under workloads.singletons.",
        );
        return;
    }
    w.hold(59);
    let local = ["/spec/local", "/spec/hostPath"]
        .iter()
        .any(|p| w.original.pointer(p).is_some());
    w.find(
        "WL-04",
        Severity::Blocker,
        59,
        if local {
            "its data is on a disk of one of blue's nodes, which green's nodes do not have"
        } else {
            "a volume attaches to one side only, and volumes are not moved yet"
        },
        "Move the data first, and list the volume and its claim under workloads.skip.",
    );
}

/// Zone of a volume: in its id, its affinity or its labels.
fn zone(object: &Value, id: &str) -> Option<String> {
    let in_id = id.strip_prefix("aws://").and_then(|r| {
        r.split('/')
            .find(|p| !p.is_empty() && !p.starts_with("vol-"))
    });
    let by_affinity = || {
        items(object, "/spec/nodeAffinity/required/nodeSelectorTerms")
            .flat_map(|t| items(t, "/matchExpressions"))
            .filter(|e| text(e, "/key").is_some_and(|k| ZONE_KEYS.contains(&k)))
            .flat_map(|e| items(e, "/values"))
            .find_map(Value::as_str)
    };
    let by_label = || ZONE_KEYS.iter().find_map(|k| label(object, k));
    in_id
        .or_else(by_affinity)
        .or_else(by_label)
        .map(String::from)
}

/// Rule 56: what the in-tree driver kept becomes the CSI driver's.
fn in_tree(w: &mut Work) {
    let Some(ebs) = take(&mut w.object, "/spec/awsElasticBlockStore") else {
        return;
    };
    let id = ebs["volumeID"].as_str().unwrap_or("").to_string();
    let handle = id.rsplit('/').next().unwrap_or("").to_string();
    let zone = zone(w.original, &id);
    let mut csi = json!({"driver": "ebs.csi.aws.com", "volumeHandle": handle,
        "fsType": ebs.get("fsType").cloned().unwrap_or(json!("ext4"))});
    if let Some(p) = ebs
        .get("partition")
        .and_then(Value::as_u64)
        .filter(|p| *p > 0)
    {
        csi["volumeAttributes"] = json!({"partition": p.to_string()});
    }
    if ebs["readOnly"] == true {
        csi["readOnly"] = json!(true);
    }
    set(&mut w.object, "/spec/csi", csi);
    if let Some(zone) = &zone {
        set(
            &mut w.object,
            "/spec/nodeAffinity",
            json!({"required": {"nodeSelectorTerms": [{"matchExpressions":
                [{"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": [zone]}]}]}}),
        );
    }
    if let Some(labels) = w
        .object
        .pointer_mut("/metadata/labels")
        .and_then(Value::as_object_mut)
    {
        labels.retain(|k, _| !k.starts_with("failure-domain.beta.kubernetes.io/"));
        if labels.is_empty() {
            take(&mut w.object, "/metadata/labels");
        }
    }
    take(
        &mut w.object,
        "/metadata/annotations/kubernetes.io~1createdby",
    );
    no_empty_annotations(w);
    w.changed(56);
    if let Some(zone) = &zone
        && !w.cx.zones.is_empty()
        && !w.cx.zones.contains(zone)
    {
        w.find(
            "STO-03",
            Severity::Blocker,
            59,
            format!("the volume is in {zone}, where green has no nodes"),
            "Give green a subnet and a node group in that zone.",
        );
    }
}

fn no_empty_annotations(w: &mut Work) {
    if w.object
        .pointer("/metadata/annotations")
        .and_then(Value::as_object)
        .is_some_and(|a| a.is_empty())
    {
        take(&mut w.object, "/metadata/annotations");
    }
}

fn claim(w: &mut Work) {
    let before = w.object.clone();
    let ann = "/metadata/annotations";
    for key in [
        "pv.kubernetes.io~1bind-completed",
        "pv.kubernetes.io~1bound-by-controller",
    ] {
        take(&mut w.object, &format!("{ann}/{key}"));
    }
    let beta = take(
        &mut w.object,
        &format!("{ann}/volume.beta.kubernetes.io~1storage-class"),
    );
    no_empty_annotations(w);
    for key in ["dataSource", "dataSourceRef"] {
        take(&mut w.object, &format!("/spec/{key}"));
    }
    let volume = text(w.original, "/spec/volumeName").map(String::from);
    // A claim that names a volume which green does not have would wait for ever.
    let comes = volume.as_ref().and_then(|v| w.cx.volumes.get(v)).copied();
    if comes.is_none() {
        take(&mut w.object, "/spec/volumeName");
    }
    if before != w.object {
        w.changed(55);
    } else {
        w.tidied(55);
    }
    let class = beta.and_then(|v| v.as_str().map(String::from)).or(text(
        &w.object,
        "/spec/storageClassName",
    )
    .map(String::from));
    if let Some(c) = class {
        let new = green_class(&c);
        set(&mut w.object, "/spec/storageClassName", json!(new));
        if new != c {
            w.changed(58);
        } else {
            w.tidied(55);
        }
    }
    if comes == Some(true) {
        return;
    }
    w.find(
        "WL-04",
        Severity::Blocker,
        60,
        "a claim with data on blue: green's would be empty, and volumes are not moved yet",
        "Move the data first, and list the claim under workloads.skip.",
    );
}
