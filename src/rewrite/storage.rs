//! Rules 54 to 58 and 72: volumes and classes.

use super::work::{Work, items, set, take, text};
use crate::object::annotation;
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
        "StorageClass" => class(w),
        "IngressClass"
            if annotation(w.original, "ingressclass.kubernetes.io/is-default-class")
                == Some("true") =>
        {
            w.tidied(72)
        }
        _ => {}
    }
}

fn volume(w: &mut Work) {
    let zone_label = "failure-domain.beta.kubernetes.io/zone";
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
            "reclaim policy Delete: deleting the claim or blue would delete the data",
            "Set persistentVolumeReclaimPolicy to Retain on blue.",
        );
    }
    if let Some(ebs) = take(&mut w.object, "/spec/awsElasticBlockStore") {
        let id = ebs["volumeID"].as_str().unwrap_or("").to_string();
        let handle = id.rsplit('/').next().unwrap_or("").to_string();
        let zone = id
            .strip_prefix("aws://")
            .and_then(|r| {
                r.split('/')
                    .find(|p| !p.is_empty() && !p.starts_with("vol-"))
            })
            .map(String::from)
            .or_else(|| {
                w.original
                    .pointer("/metadata/labels")
                    .and_then(|l| l.get(zone_label))
                    .and_then(Value::as_str)
                    .map(String::from)
            });
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
            if !w.cx.zones.is_empty() && !w.cx.zones.contains(zone) {
                w.find(
                    "STO-03",
                    Severity::Blocker,
                    59,
                    format!("the volume is in {zone}, where green has no nodes"),
                    "Give green a subnet and a node group in that zone.",
                );
            }
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
        if w.object
            .pointer("/metadata/annotations")
            .and_then(Value::as_object)
            .is_some_and(|a| a.is_empty())
        {
            take(&mut w.object, "/metadata/annotations");
        }
        w.changed(56);
    }
    if let Some(c) = text(&w.object, "/spec/storageClassName").map(String::from) {
        let new = green_class(&c);
        if new != c {
            set(&mut w.object, "/spec/storageClassName", json!(new));
            w.changed(58);
        }
    }
    w.hold(59);
    w.find(
        "WL-04",
        Severity::Blocker,
        59,
        "a volume attaches to one side only, and volumes are not moved yet",
        "Move the data first, and list the volume and its claim under workloads.skip.",
    );
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
    if w.object
        .pointer(ann)
        .and_then(Value::as_object)
        .is_some_and(|a| a.is_empty())
    {
        take(&mut w.object, ann);
    }
    for key in ["dataSource", "dataSourceRef"] {
        take(&mut w.object, &format!("/spec/{key}"));
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
        }
    }
    if before != w.object {
        w.changed(55);
    } else {
        w.tidied(55);
    }
    w.find(
        "WL-04",
        Severity::Blocker,
        60,
        "a claim with data on blue: green's would be empty, and volumes are not moved yet",
        "Move the data first, and list the claim under workloads.skip.",
    );
}

fn class(w: &mut Work) {
    let provisioner = text(w.original, "/provisioner").unwrap_or("").to_string();
    let name = w.name().to_string();
    if green_class(&name) != name {
        // kops's and the in-tree default classes: green has its own default (rule 58).
        w.skip(58);
        if text(w.original, "/volumeBindingMode") == Some("Immediate") {
            w.find(
                "STO-04",
                Severity::Warning,
                58,
                format!(
                    "class {name} binds at once, green's {DEFAULT_CLASS} when a pod is scheduled"
                ),
                "Nothing to do, unless something waits for bound claims.",
            );
        }
        if let Some(zones) = text(w.original, "/parameters/zones") {
            let zones = zones.to_string();
            w.find(
                "STO-04",
                Severity::Warning,
                58,
                format!(
                    "class {name} is limited to {zones}; green's {DEFAULT_CLASS} follows the pods"
                ),
                "Give green an own class with allowedTopologies if that limit matters.",
            );
        }
        return;
    }
    for key in [
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ] {
        if take(
            &mut w.object,
            &format!("/metadata/annotations/{}", key.replace('/', "~1")),
        )
        .is_some()
        {
            w.changed(58);
        }
    }
    if w.object
        .pointer("/metadata/annotations")
        .and_then(Value::as_object)
        .is_some_and(|a| a.is_empty())
    {
        take(&mut w.object, "/metadata/annotations");
    }
    if provisioner == "kubernetes.io/aws-ebs" {
        set(&mut w.object, "/provisioner", json!("ebs.csi.aws.com"));
        w.changed(56);
        if let Some(fs) = take(&mut w.object, "/parameters/fsType") {
            set(&mut w.object, "/parameters/csi.storage.k8s.io~1fstype", fs);
        }
        let mut zones: Vec<String> = vec![];
        for key in ["zone", "zones"] {
            if let Some(z) = take(&mut w.object, &format!("/parameters/{key}")) {
                zones.extend(
                    z.as_str()
                        .unwrap_or("")
                        .split(',')
                        .map(|s| s.trim().to_string()),
                );
            }
        }
        if !zones.is_empty() {
            set(
                &mut w.object,
                "/allowedTopologies",
                json!([{"matchLabelExpressions": [{"key": "topology.ebs.csi.aws.com/zone", "values": zones}]}]),
            );
        }
    } else if provisioner.starts_with("kubernetes.io/")
        && provisioner != "kubernetes.io/no-provisioner"
    {
        w.find(
            "STO-04",
            Severity::Warning,
            58,
            format!("provisioner {provisioner} is in-tree and gone on green"),
            "Replace the class.",
        );
    }
    if items(&w.object, "/allowedTopologies").next().is_none()
        && text(&w.object, "/volumeBindingMode") == Some("Immediate")
    {
        w.find(
            "STO-04",
            Severity::Warning,
            58,
            "Immediate binding can put a volume into a zone without nodes",
            "Use WaitForFirstConsumer.",
        );
    }
}
