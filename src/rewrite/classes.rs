//! Rules 56 and 58: storage classes. One default, green's; what the in-tree driver made becomes the CSI driver's, with the same meaning.

use super::storage::{DEFAULT_CLASS, green_class};
use super::work::{Work, items, set, take, text};
use crate::plan::model::Severity;
use serde_json::{Value, json};

pub(super) fn rewrite(w: &mut Work) {
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
        let differs = against_default(w.original);
        if !differs.is_empty() {
            w.find(
                "STO-04",
                Severity::Warning,
                58,
                format!(
                    "class {name} becomes green's {DEFAULT_CLASS}, which differs: {}",
                    differs.join(", ")
                ),
                "Give blue's claims a class of another name and copy it, if that matters.",
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
        for key in ["fsType", "fstype"] {
            if let Some(fs) = take(&mut w.object, &format!("/parameters/{key}")) {
                set(&mut w.object, "/parameters/csi.storage.k8s.io~1fstype", fs);
            }
        }
        // The in-tree driver made gp2 when nothing was said, the CSI driver makes gp3 (aws-ebs-csi-driver docs/parameters.md).
        if text(&w.object, "/parameters/type").is_none() {
            set(&mut w.object, "/parameters/type", json!("gp2"));
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
        topologies(w);
        w.changed(56);
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

/// Zones by the old label are zones by the driver's own.
fn topologies(w: &mut Work) {
    let terms = w
        .object
        .get_mut("allowedTopologies")
        .and_then(Value::as_array_mut);
    for expression in terms
        .into_iter()
        .flatten()
        .filter_map(|t| t.get_mut("matchLabelExpressions")?.as_array_mut())
        .flatten()
    {
        if matches!(
            expression["key"].as_str(),
            Some("failure-domain.beta.kubernetes.io/zone" | "topology.kubernetes.io/zone")
        ) {
            expression["key"] = json!("topology.ebs.csi.aws.com/zone");
        }
    }
}

/// In which points a class of blue means something else than green's default (gp3, encrypted, deleted with its claim).
fn against_default(class: &Value) -> Vec<String> {
    let mut out = vec![];
    let get = |k: &str| text(class, &format!("/parameters/{k}"));
    let kind = get("type").unwrap_or("gp2");
    // gp3 is never slower than gp2 of up to 1 TiB; others were chosen for something.
    if !matches!(kind, "gp2" | "gp3") {
        out.push(format!("type {kind}"));
    }
    for key in ["iopsPerGB", "iops", "throughput", "kmsKeyId"] {
        if let Some(v) = get(key) {
            out.push(format!("{key} {v}"));
        }
    }
    let fs = get("fsType")
        .or(get("fstype"))
        .or(get("csi.storage.k8s.io~1fstype"))
        .unwrap_or("ext4");
    if fs != "ext4" {
        out.push(format!("fsType {fs}"));
    }
    if text(class, "/reclaimPolicy") == Some("Retain") {
        out.push("reclaimPolicy Retain".into());
    }
    for option in items(class, "/mountOptions").filter_map(Value::as_str) {
        out.push(format!("mountOptions {option}"));
    }
    out
}
