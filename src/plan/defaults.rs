//! Defaults that nobody wrote but that are in force: each is said, with the release that they are of (kops.md 1.4, 8.2).

use super::model::{Finding, Severity};
use crate::snapshot::kops::{Setting, Source, effective, name_of};
use crate::snapshot::model::Kops;
use serde_json::Value;

/// One finding for each default of the cluster, one for all defaults of a worker group, and one when the completed spec is stale.
pub(super) fn findings(kops: &Kops) -> Vec<Finding> {
    let known = effective(kops);
    let mut out = vec![];
    if let Some(why) = &known.stale {
        out.push(Finding {
            id: "KOPS-stale".into(),
            severity: Severity::Warning,
            object: "kops/completed".into(),
            message: format!("the completed spec is not used: {why}"),
            remedy: "Run `kops update cluster --yes` if the edit is meant, then discover again."
                .into(),
            source: "kops.md 1.1".into(),
            waived: None,
        });
    }
    let workers: Vec<String> = kops
        .instance_groups
        .iter()
        .filter(|g| {
            g.pointer("/spec/role")
                .and_then(Value::as_str)
                .is_none_or(|r| r.eq_ignore_ascii_case("node"))
        })
        .map(|g| format!("instancegroup/{}", name_of(g)))
        .collect();
    let settings = known.settings();
    let defaults = |document: &str| -> Vec<(&Setting, &str)> {
        settings
            .iter()
            .filter(|s| s.document == document)
            .filter_map(|s| match &s.source {
                Source::Default(why) => Some((s, why.as_str())),
                _ => None,
            })
            .collect()
    };
    for (s, why) in defaults("cluster") {
        out.push(note(
            format!("cluster/{}", s.path),
            format!("not set, so it is {}: {why}", shown(&s.value)),
        ));
    }
    for group in workers {
        let all = defaults(&group);
        if all.is_empty() {
            continue;
        }
        let list: Vec<String> = all
            .iter()
            .map(|(s, why)| {
                // The release is the same for all of them; it is said once.
                let why = why.strip_prefix(&known.release.to_string()).unwrap_or(why);
                format!("{} is {} ({})", s.path, shown(&s.value), why.trim())
            })
            .collect();
        out.push(note(
            group,
            format!("not set, so by {}: {}", known.release, list.join("; ")),
        ));
    }
    out
}

fn note(object: String, message: String) -> Finding {
    Finding {
        id: "KOPS-default".into(),
        severity: Severity::Info,
        object,
        message,
        remedy: "Nothing to do, when it is what you expect; else give kops-version.txt or the completed spec."
            .into(),
        source: "kops.md 1.4".into(),
        waived: None,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        Value::Null => "none".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_default_in_force_is_said_with_its_release_and_nothing_that_was_written() {
        let kops = Kops {
            cluster: Some(
                json!({"kind": "Cluster", "apiVersion": "kops.k8s.io/v1alpha2", "metadata": {"name": "shop.test"},
                "spec": {"kubernetesVersion": "1.16.0", "authorization": {"rbac": {}}, "networking": {"weave": {}}, "topology": {"dns": {"type": "Public"}}}}),
            ),
            instance_groups: vec![
                json!({"metadata": {"name": "masters"}, "spec": {"role": "Master"}}),
                json!({"metadata": {"name": "nodes"}, "spec": {"role": "Node", "minSize": 3, "maxSize": 5}}),
            ],
            kops_version: Some("1.16.4".into()),
            ..Kops::default()
        };
        let found = findings(&kops);
        let by_object: Vec<(&str, &str)> = found
            .iter()
            .map(|f| (f.object.as_str(), f.message.as_str()))
            .collect();
        let objects: Vec<&str> = by_object.iter().map(|(o, _)| *o).collect();
        assert_eq!(
            objects,
            [
                "cluster/spec.api",
                "cluster/spec.containerRuntime",
                "cluster/spec.iam.legacy",
                "cluster/spec.nonMasqueradeCIDR",
                "cluster/spec.podCIDR",
                "cluster/spec.serviceClusterIPRange",
                "instancegroup/nodes",
            ]
        );
        assert_eq!(
            by_object[2].1,
            "not set, so it is true: kops 1.16 (kops-version.txt) takes legacy IAM when nothing is said, up to 1.18"
        );
        let group = by_object[6].1;
        assert!(
            group.contains("spec.rootVolumeType is gp2")
                && group.contains("spec.rootVolumeSize is 128"),
            "{group}"
        );
        assert!(
            !group.contains("minSize"),
            "what was written is no default: {group}"
        );
        assert!(found.iter().all(|f| f.severity == Severity::Info));
    }

    #[test]
    fn a_completed_spec_that_is_older_than_the_spec_is_said_and_not_believed() {
        let cluster = |v: &str, range: Option<&str>| {
            let mut c =
                json!({"metadata": {"name": "shop.test"}, "spec": {"kubernetesVersion": v}});
            if let Some(r) = range {
                c["spec"]["serviceClusterIPRange"] = json!(r);
            }
            Some(c)
        };
        let mut kops = Kops {
            cluster: cluster("1.22.1", None),
            completed: cluster("1.21.14", Some("10.9.0.0/16")),
            ..Kops::default()
        };
        assert!(findings(&kops).iter().any(|f| f.id == "KOPS-stale"));
        assert!(effective(&kops).service_range().is_default());
        kops.completed = cluster("1.22.0", Some("10.9.0.0/16"));
        assert!(findings(&kops).iter().all(|f| f.id != "KOPS-stale"));
        assert_eq!(
            effective(&kops).service_range(),
            crate::snapshot::kops::Known {
                value: "10.9.0.0/16".into(),
                source: Source::Completed
            }
        );
    }
}
