//! Rule 68: fields that the API server never changes on a living object. To have another value there an object is made again, and a difference in
//! one is never reported as changed.

/// (kind, JSON pointers). Kubernetes' own validation; of custom kinds only their definitions say so.
const FIELDS: &[(&str, &[&str])] = &[
    ("ClusterRoleBinding", &["/roleRef"]),
    ("ControllerRevision", &["/data"]),
    (
        "CSIDriver",
        &[
            "/spec/attachRequired",
            "/spec/fsGroupPolicy",
            "/spec/volumeLifecycleModes",
        ],
    ),
    ("DaemonSet", &["/spec/selector"]),
    ("Deployment", &["/spec/selector"]),
    ("EndpointSlice", &["/addressType"]),
    ("IngressClass", &["/spec/controller"]),
    (
        "Job",
        &[
            "/spec/completionMode",
            "/spec/completions",
            "/spec/podFailurePolicy",
            "/spec/selector",
            "/spec/template",
        ],
    ),
    (
        "PersistentVolume",
        &[
            "/spec/awsElasticBlockStore",
            "/spec/csi",
            "/spec/hostPath",
            "/spec/local",
            "/spec/nfs",
            "/spec/nodeAffinity",
            "/spec/volumeMode",
        ],
    ),
    (
        "PersistentVolumeClaim",
        &[
            "/spec/accessModes",
            "/spec/dataSource",
            "/spec/dataSourceRef",
            "/spec/selector",
            "/spec/storageClassName",
            "/spec/volumeMode",
            "/spec/volumeName",
        ],
    ),
    // Of a pod only images, deadlines, added tolerations and the grace period may change.
    (
        "Pod",
        &[
            "/spec/affinity",
            "/spec/hostNetwork",
            "/spec/nodeSelector",
            "/spec/restartPolicy",
            "/spec/securityContext",
            "/spec/serviceAccountName",
            "/spec/volumes",
        ],
    ),
    ("PriorityClass", &["/preemptionPolicy", "/value"]),
    ("ReplicaSet", &["/spec/selector"]),
    ("RoleBinding", &["/roleRef"]),
    ("RuntimeClass", &["/handler"]),
    ("Secret", &["/type"]),
    // A headless Service cannot become another, a class not another class; the type may change.
    (
        "Service",
        &[
            "/spec/clusterIP",
            "/spec/clusterIPs",
            "/spec/loadBalancerClass",
        ],
    ),
    (
        "StatefulSet",
        &[
            "/spec/podManagementPolicy",
            "/spec/selector",
            "/spec/serviceName",
            "/spec/volumeClaimTemplates",
        ],
    ),
    (
        "StorageClass",
        &[
            "/allowedTopologies",
            "/mountOptions",
            "/parameters",
            "/provisioner",
            "/reclaimPolicy",
            "/volumeBindingMode",
        ],
    ),
];

/// JSON pointers of the fields of a kind that cannot be changed. Of what says `immutable: true`, all content is ([`content`]).
pub fn immutable(kind: &str) -> &'static [&'static str] {
    FIELDS
        .iter()
        .find(|(k, _)| *k == kind)
        .map_or(&[], |(_, f)| f)
}

/// Fields that an object's own `immutable: true` closes (rule 40).
pub fn content(kind: &str) -> &'static [&'static str] {
    match kind {
        "Secret" | "ConfigMap" => &["/binaryData", "/data", "/immutable"],
        _ => &[],
    }
}

/// The fields among those of the kind in which two objects differ: to change them the object has to be made again.
pub fn differing(kind: &str, a: &serde_json::Value, b: &serde_json::Value) -> Vec<&'static str> {
    let closed = a["immutable"] == true;
    immutable(kind)
        .iter()
        .chain(content(kind).iter().filter(|_| closed))
        .filter(|p| a.pointer(p) != b.pointer(p))
        .copied()
        .collect()
}
