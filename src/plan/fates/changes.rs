//! What of blue is another thing on green whatever the spec says (kops.md 8.7), and what legacy roles gave to every pod (kops.md 5).

use crate::plan::model::{Finding, Severity};
use crate::snapshot::kops::{Source, effective, name_of};
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use serde_json::Value;

/// One finding each, when the kops spec was read.
pub(in crate::plan) fn changes(spec: &Spec, snapshot: &Snapshot) -> Vec<Finding> {
    let Some(cluster) = &snapshot.kops.cluster else {
        return vec![];
    };
    let mut out = vec![breaking(spec, snapshot, cluster)];
    out.extend(legacy_iam(snapshot));
    out
}

/// Addresses, names, issuer and node role: breaking changes of every move (kops.md 8.7).
fn breaking(spec: &Spec, snapshot: &Snapshot, cluster: &Value) -> Finding {
    let range = effective(&snapshot.kops).service_range().value;
    let green = spec.green.service_cidr.as_deref();
    let addresses = match green {
        Some(g) if g == range => format!("Services get other addresses of the same range ({g})"),
        Some(g) => {
            format!("every ClusterIP and the address of the cluster's DNS change ({range} -> {g})")
        }
        None => format!(
            "every ClusterIP and the address of the cluster's DNS change ({range} -> a range that EKS chooses)"
        ),
    };
    let name = name_of(cluster);
    let api = cluster
        .pointer("/spec/masterPublicName")
        .and_then(Value::as_str)
        .map_or_else(|| format!("api.{name}"), String::from);
    Finding {
        id: "KOPS-changes".into(),
        severity: Severity::Warning,
        object: "kops/cluster".into(),
        message: format!(
            "what changes in every case: {addresses}; the API's names ({api} and the internal ones) end with blue; tokens of service accounts come from another issuer; nodes have another role"
        ),
        remedy: "Look for literals of the old addresses (NET-06), give clients new kubeconfigs, register green's issuer wherever blue's is trusted, and name green's roles beside blue's in policies.".into(),
        source: "kops.md 8.7".into(),
        waived: None,
    }
}

/// Legacy roles let every pod of a worker write the state store and the hosted zone, and pull from ECR (kops.md 5).
fn legacy_iam(snapshot: &Snapshot) -> Option<Finding> {
    let known = effective(&snapshot.kops).iam_legacy();
    // A group with an instance profile of its own has what that profile gives.
    let of_kops = snapshot.kops.instance_groups.iter().any(|g| {
        let text = |p: &str| g.pointer(p).and_then(Value::as_str);
        text("/spec/role")
            .unwrap_or("Node")
            .eq_ignore_ascii_case("node")
            && text("/spec/iam/profile").is_none()
    });
    let why = match &known.source {
        Source::Default(why) => format!(" ({why})"),
        Source::Spec | Source::Completed => String::new(),
    };
    (known.value && of_kops).then(|| Finding {
        id: "KOPS-iam-legacy".into(),
        severity: Severity::Warning,
        object: "kops/spec.iam".into(),
        message: format!(
            "legacy roles{why}: every pod on blue's workers may write the state store and the hosted zone and pull from ECR, so ExternalDNS and DNS-01 of cert-manager work there without a role; on green pods may do none of it, but for pulling images"
        ),
        remedy: "Before the replay give ExternalDNS, cert-manager and whatever reads the state bucket roles of their own (green.roles).".into(),
        source: "kops.md 5".into(),
        waived: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn snapshot(kops: &str, spec: Value, group: Value) -> Snapshot {
        let mut s = Snapshot::default();
        s.kops.cluster =
            Some(json!({"kind": "Cluster", "metadata": {"name": "shop.test"}, "spec": spec}));
        s.kops.instance_groups =
            vec![json!({"kind": "InstanceGroup", "metadata": {"name": "n"}, "spec": group})];
        s.kops.kops_version = Some(kops.into());
        s
    }

    fn found(s: &Snapshot) -> Vec<Finding> {
        let mut spec = crate::plan::tests::spec("shop.test");
        spec.green.service_cidr = Some("10.96.0.0/16".into());
        changes(&spec, s)
    }

    /// kops.md 8.7: said of every cluster, with the range that is in force though nobody wrote it.
    #[test]
    fn ranges_names_issuer_and_role_change_in_every_move() {
        let all = found(&snapshot(
            "1.22.0",
            json!({"masterPublicName": "k8s.shop.test", "iam": {"legacy": false}}),
            json!({"role": "Node"}),
        ));
        assert_eq!(all.len(), 1, "{all:?}");
        for part in ["100.64.0.0/13 -> 10.96.0.0/16", "k8s.shop.test", "issuer"] {
            assert!(all[0].message.contains(part), "{all:?}");
        }
        assert!(changes(&crate::plan::tests::spec("x"), &Snapshot::default()).is_empty());
    }

    /// kops.md 1.4, 5: an omitted block was legacy up to 1.18; own profiles have what people gave them.
    #[test]
    fn legacy_roles_are_said_when_written_or_by_default_and_not_of_own_profiles() {
        let legacy = |kops: &str, spec: Value, group: Value| {
            found(&snapshot(kops, spec, group))
                .iter()
                .any(|f| f.id == "KOPS-iam-legacy")
        };
        let node = json!({"role": "Node"});
        assert!(legacy("1.18.0", json!({}), node.clone()));
        assert!(legacy(
            "1.20.0",
            json!({"iam": {"legacy": true}}),
            node.clone()
        ));
        assert!(!legacy(
            "1.18.0",
            json!({"iam": {"legacy": false}}),
            node.clone()
        ));
        assert!(!legacy("1.19.0", json!({}), node));
        let own = json!({"role": "Node", "iam": {"profile": "arn:aws:iam::000000000000:instance-profile/x"}});
        assert!(!legacy("1.18.0", json!({}), own));
    }
}
