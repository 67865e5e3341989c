//! Fields that no server lets change: an object whose copy must differ there has to be made again (replay.md 40, 68).

use super::path::{Path, Seg};
use serde_json::Value;

/// Whether a field of an object on green cannot be changed any more.
///
/// `rewrite::immutable` is the table of single fields; here stands what it cannot say: kinds of which only named fields may change, and what hangs on
/// the object itself.
pub(super) fn immutable(kind: &str, green: &Value, path: &Path) -> bool {
    let fields = crate::rewrite::immutable(kind);
    fields
        .iter()
        .any(|f| path.0.starts_with(&Path::pointer(f).0))
        || by_kind(kind, green, path)
}

fn by_kind(kind: &str, green: &Value, path: &Path) -> bool {
    let key = |n: usize| match path.0.get(n) {
        Some(Seg::Key(k)) => k.as_str(),
        _ => "",
    };
    let (first, second) = (key(0), key(1));
    match kind {
        // Rule 40: data of an immutable one, and the mark itself, which cannot be taken back.
        "Secret" | "ConfigMap" if green["immutable"] == true => {
            matches!(
                first,
                "data" | "binaryData" | "stringData" | "immutable" | "type"
            )
        }
        "Service" => {
            first == "spec"
                && matches!(
                    second,
                    "clusterIP" | "clusterIPs" | "loadBalancerClass" | "ipFamilies"
                )
        }
        "StatefulSet" => {
            first == "spec"
                && !matches!(
                    second,
                    "replicas"
                        | "ordinals"
                        | "template"
                        | "updateStrategy"
                        | "persistentVolumeClaimRetentionPolicy"
                        | "minReadySeconds"
                        | "revisionHistoryLimit"
                )
        }
        "Job" => {
            first == "spec"
                && matches!(
                    second,
                    "template" | "selector" | "completions" | "completionMode" | "manualSelector"
                )
        }
        "PersistentVolumeClaim" => {
            first == "spec" && !matches!(second, "resources" | "volumeAttributesClassName")
        }
        "PersistentVolume" => {
            first == "spec"
                && !matches!(
                    second,
                    "capacity"
                        | "accessModes"
                        | "persistentVolumeReclaimPolicy"
                        | "storageClassName"
                        | "mountOptions"
                        | "claimRef"
                        | "volumeAttributesClassName"
                )
        }
        "StorageClass" => matches!(
            first,
            "provisioner" | "parameters" | "reclaimPolicy" | "volumeBindingMode"
        ),
        // Of a running pod only images, deadlines and further tolerations change.
        "Pod" => {
            first == "spec"
                && !(matches!(second, "containers" | "initContainers")
                    && path.last_key() == Some("image")
                    || matches!(second, "activeDeadlineSeconds" | "tolerations"))
        }
        "CustomResourceDefinition" => first == "spec" && (second == "scope" || second == "group"),
        _ => false,
    }
}
