//! Rights of controllers that green needs and that are no add-ons of EKS. What they may do is data: `controllers.yaml`.

use crate::rewrite::partition;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

const TEXT: &str = include_str!("controllers.yaml");

/// A controller.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Service account as its chart names it, `namespace/name`.
    account: String,
    /// Statements of its policy, with placeholders.
    statements: Vec<Value>,
}

static ROWS: LazyLock<BTreeMap<String, Row>> = LazyLock::new(|| {
    serde_saphyr::from_str(TEXT).unwrap_or_else(|e| unreachable!("controllers.yaml: {e}"))
});

/// Service account of a controller, when its rights are known.
pub fn account(controller: &str) -> Option<&'static str> {
    ROWS.get(controller).map(|r| r.account.as_str())
}

/// Names of all of them.
pub fn names() -> impl Iterator<Item = &'static str> {
    ROWS.keys().map(String::as_str)
}

/// Policy of a controller in a cluster. `${account}` stays for the step to fill in.
pub fn policy(controller: &str, region: &str, green: &str) -> Option<Value> {
    let row = ROWS.get(controller)?;
    let text = serde_json::to_string(&row.statements)
        .ok()?
        .replace("${green}", green)
        .replace("${partition}", partition(region))
        .replace("${region}", region);
    let statements: Value = serde_json::from_str(&text).ok()?;
    Some(json!({"Version": "2012-10-17", "Statement": statements}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::iam::{INLINE, policy as documents};

    #[test]
    fn the_policies_fit_into_a_role_and_hold_no_placeholder_but_the_account() {
        assert_eq!(names().count(), 2);
        for name in names() {
            let doc = policy(name, "eu-west-1", "shop-green").unwrap();
            let size = documents::size(&doc);
            assert!(size < INLINE, "{name}: {size} characters");
            let rest = doc.to_string().replace("${account}", "");
            assert!(!rest.contains("${"), "{name}");
            let sids: Vec<&str> = documents::bodies(&doc)
                .iter()
                .filter_map(|s| s["Sid"].as_str())
                .collect();
            let unique: std::collections::BTreeSet<&&str> = sids.iter().collect();
            assert_eq!(unique.len(), documents::bodies(&doc).len(), "{name}");
            assert!(
                sids.iter()
                    .all(|s| s.chars().all(|c| c.is_ascii_alphanumeric())),
                "IAM takes letters and digits only"
            );
        }
    }

    /// Everything that changes a thing of load balancing asks for green's tag, or stands here with the reason why it cannot.
    #[test]
    fn greens_controller_cannot_delete_or_change_blues_load_balancers() {
        let doc = policy("aws-load-balancer-controller", "eu-west-1", "shop-green").unwrap();
        let tagless = [
            "ServiceLinkedRole",
            "Look",
            "Shields",
            "Rules",
            "NewGroups",
            "TagListeners",
            "Targets",
            "Listeners",
        ];
        for s in documents::bodies(&doc) {
            let sid = s["Sid"].as_str().unwrap();
            let asks = s["Condition"]["StringEquals"].as_object().is_some_and(|c| {
                c.iter()
                    .any(|(k, v)| k.ends_with("Tag/elbv2.k8s.aws/cluster") && v == "shop-green")
            });
            assert_eq!(asks, !tagless.contains(&sid), "{sid}");
        }
        let of = |action: &str| {
            documents::bodies(&doc)
                .into_iter()
                .filter(|s| documents::list(s, "Action").contains(&action))
                .map(|s| s["Sid"].as_str().unwrap_or(""))
                .collect::<Vec<_>>()
        };
        assert_eq!(of("elasticloadbalancing:DeleteLoadBalancer"), ["Own"]);
        assert_eq!(of("elasticloadbalancing:DeleteTargetGroup"), ["Own"]);
        assert_eq!(of("ec2:DeleteSecurityGroup"), ["GroupsGo"]);
        assert!(of("elasticloadbalancing:SetRulePriorities").contains(&"Listeners"));
    }

    #[test]
    fn in_china_the_arns_are_chinas() {
        let doc = policy("aws-load-balancer-controller", "cn-north-1", "g").unwrap();
        assert!(!doc.to_string().contains("arn:aws:"), "{doc}");
    }

    #[test]
    fn the_autoscaler_resizes_greens_groups_only() {
        let doc = policy("cluster-autoscaler", "eu-west-1", "shop-green").unwrap();
        for s in documents::bodies(&doc) {
            if documents::list(s, "Action")
                .iter()
                .any(|a| a.starts_with("autoscaling:Set") || a.starts_with("autoscaling:Terminate"))
            {
                assert_eq!(
                    s["Condition"]["StringEquals"],
                    json!({"aws:ResourceTag/k8s.io/cluster-autoscaler/shop-green": "owned"})
                );
            }
        }
    }
}
