//! Whether somebody changed an object of ours on green. `managedFields` knows who wrote which field last; a field that is gone without a
//! trace is found by comparing.

use super::compare::differences;
use crate::object::ObjectId;
use crate::step::util::at;
use crate::world::kube::FIELD_MANAGER;
use serde_json::Value;

/// Managers (exact, or as a prefix ending in `-`) that are parts of a cluster: what they set is no decision of a person.
const SERVERS: &[&str] = &[
    "kube-",
    "kubelet",
    "cloud-controller-manager",
    "aws-",
    "amazon-",
    "eks",
    "vpc-",
    "ebs-",
    "efs-",
    "csi-",
    // The name that the AWS load balancer controller writes under: its program's file name.
    "controller",
    "cluster-autoscaler",
    "karpenter",
    "horizontal-pod-autoscaler",
    "vpa-",
    "keda",
    "clusterrole-aggregation-controller",
    "cainjector",
    "before-first-apply",
];
/// Managers of people and of what people deploy with: even a label of theirs is meant.
const PEOPLE: &[&str] = &[
    "kubectl-",
    "kubectl",
    "helm",
    "Helm",
    "argocd-",
    "argocd",
    "kustomize-",
    "flux",
    "Mozilla",
    "k9s",
    "lens-",
    "node-fetch",
    "terraform",
    "HashiCorp",
    "pulumi-",
    "rancher",
    "dashboard",
    "OpenAPI-Generator",
];

fn among(list: &[&str], manager: &str) -> bool {
    list.iter()
        .any(|m| manager == *m || m.ends_with('-') && manager.starts_with(m))
}

/// What was changed, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// As in `.spec.replicas`.
    pub field: String,
    /// As in `kubectl-edit`.
    pub by: String,
}

/// The first change by somebody, outside of the field that parks.
pub fn edit(there: &Value, meant: &Value, park: Option<&str>) -> Option<Edit> {
    let parked = park.map(|p| p.replace('/', "."));
    for entry in at(there, "/metadata/managedFields")
        .as_array()
        .into_iter()
        .flatten()
    {
        let by = entry["manager"].as_str().unwrap_or_default();
        let of_a_part = entry["subresource"].as_str().is_some_and(|s| !s.is_empty());
        if by == FIELD_MANAGER || of_a_part || among(SERVERS, by) {
            continue;
        }
        let person = among(PEOPLE, by);
        let counts = |field: &str| {
            // Controllers of the copied company note things on objects; only what they say about the work itself counts.
            let noted = [
                ".metadata.finalizers",
                ".metadata.ownerReferences",
                ".status",
            ]
            .iter()
            .any(|f| field.starts_with(f))
                || !person && field.starts_with(".metadata");
            !noted && parked.as_deref() != Some(field)
        };
        let mut fields = vec![];
        spell(&entry["fieldsV1"], "", &mut fields);
        if let Some(field) = fields.into_iter().find(|f| counts(f)) {
            return Some(Edit {
                field,
                by: by.into(),
            });
        }
    }
    let gone = differences(meant, there)
        .into_iter()
        .find(|d| d.dropped && !d.path.starts_with(".metadata"));
    gone.map(|d| Edit {
        field: d.path,
        by: "somebody (it is gone)".into(),
    })
}

/// Leaves of a `fieldsV1` tree.
fn spell(tree: &Value, path: &str, out: &mut Vec<String>) {
    let inner: Vec<(&String, &Value)> = tree
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(k, _)| *k != ".")
        .collect();
    if inner.is_empty() && !path.is_empty() {
        out.push(path.into());
    }
    for (key, value) in inner {
        let step = match key.split_once(':') {
            Some(("f", field)) => format!("{path}.{field}"),
            Some(("k", key)) => match serde_json::from_str::<Value>(key) {
                Ok(Value::Object(m)) => {
                    let keys: Vec<String> = m.iter().map(|(k, v)| format!("{k}={v}")).collect();
                    format!("{path}[{}]", keys.join(","))
                }
                _ => format!("{path}[{key}]"),
            },
            Some((_, value)) => format!("{path}[={value}]"),
            None => format!("{path}.{key}"),
        };
        spell(value, &step, out);
    }
}

/// What must be said to an object before it is deleted, so that nothing in the cloud goes with it (replay.md 71, reversibility.md 14): a
/// merge patch, when it does not say so already.
pub fn orphan(there: &Value) -> Option<Value> {
    let id = ObjectId::of(there)?;
    let group = id.group();
    let patch = |pointer: &str, value: Value| {
        (*at(there, pointer) != value).then(|| crate::step::util::patch_of(pointer, &value))
    };
    if group.ends_with(".crossplane.io") || group.ends_with(".upbound.io") {
        // Claims and composites have no policy of their own; a managed resource says what becomes of the thing it stands for.
        at(there, "/spec/forProvider").as_object()?;
        return patch("/spec/deletionPolicy", "Orphan".into());
    }
    if group.ends_with(".services.k8s.aws") {
        return patch(
            "/metadata/annotations/services.k8s.aws~1deletion-policy",
            "retain".into(),
        );
    }
    if group == "infra.contrib.fluxcd.io" {
        return patch("/spec/destroyResourcesOnDeletion", false.into());
    }
    if group.ends_with("cluster.x-k8s.io") {
        return patch(
            "/metadata/annotations/cluster.x-k8s.io~1paused",
            "true".into(),
        );
    }
    if group == "kustomize.toolkit.fluxcd.io" {
        return patch("/spec/prune", false.into());
    }
    if id.kind == "PersistentVolume" {
        return patch("/spec/persistentVolumeReclaimPolicy", "Retain".into());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn held(manager: &str, fields: Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"managedFields": [
            {"manager": "crossfade", "operation": "Update", "fieldsV1": {"f:spec": {"f:paused": {}}}},
            {"manager": manager, "operation": "Update", "fieldsV1": fields}]}, "spec": {}})
    }

    #[test]
    fn a_person_who_changed_anything_is_named_with_the_field() {
        let labels = json!({"f:metadata": {"f:labels": {"f:team": {}}}});
        let found = edit(&held("kubectl-label", labels.clone()), &json!({}), None).unwrap();
        assert_eq!(
            (found.field.as_str(), found.by.as_str()),
            (".metadata.labels.team", "kubectl-label")
        );
        let image = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:image": {}}}}}}});
        let found = edit(&held("prometheus-operator", image), &json!({}), None).unwrap();
        assert_eq!(
            found.field,
            ".spec.template.spec.containers[name=\"web\"].image"
        );
        // An operator's note is its own business.
        assert_eq!(
            edit(&held("prometheus-operator", labels), &json!({}), None),
            None
        );
    }

    #[test]
    fn the_field_that_parks_a_status_and_parts_of_the_cluster_are_nobodys_edit() {
        let replicas = json!({"f:spec": {"f:replicas": {}}});
        assert_eq!(
            edit(
                &held("kubectl-scale", replicas.clone()),
                &json!({}),
                Some("/spec/replicas")
            ),
            None
        );
        assert!(edit(&held("kubectl-scale", replicas.clone()), &json!({}), None).is_some());
        assert_eq!(
            edit(&held("kube-controller-manager", replicas), &json!({}), None),
            None
        );
        let status = json!({"f:status": {"f:x": {}}});
        assert_eq!(edit(&held("some-operator", status), &json!({}), None), None);
    }

    #[test]
    fn a_field_that_somebody_removed_is_found_without_a_trace_of_who() {
        let meant = json!({"spec": {"paused": true}});
        let found = edit(&held("kube-scheduler", json!({})), &meant, None).unwrap();
        assert_eq!(found.field, ".spec.paused");
    }

    #[test]
    fn rule_71_what_stands_for_something_in_the_cloud_is_orphaned_before_it_is_deleted() {
        let bucket = json!({"apiVersion": "s3.aws.upbound.io/v1beta1", "kind": "Bucket", "metadata": {"name": "b"}, "spec": {"forProvider": {}, "deletionPolicy": "Delete"}});
        assert_eq!(
            orphan(&bucket),
            Some(json!({"spec": {"deletionPolicy": "Orphan"}}))
        );
        let ack = json!({"apiVersion": "rds.services.k8s.aws/v1alpha1", "kind": "DBInstance", "metadata": {"name": "d"}});
        assert_eq!(
            orphan(&ack),
            Some(
                json!({"metadata": {"annotations": {"services.k8s.aws/deletion-policy": "retain"}}})
            )
        );
        let mut said = bucket;
        said["spec"]["deletionPolicy"] = json!("Orphan");
        assert_eq!(orphan(&said), None, "said already");
    }

    #[test]
    fn rule_54_a_volume_is_retained_before_it_is_deleted() {
        let pv = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "p"}, "spec": {"persistentVolumeReclaimPolicy": "Delete"}});
        assert_eq!(
            orphan(&pv),
            Some(json!({"spec": {"persistentVolumeReclaimPolicy": "Retain"}}))
        );
    }
}
