//! What kops itself writes into the policy of its nodes (kops.md 5): recognised by what a statement says, never by its name, so that
//! a line that somebody added by hand is seen.

use super::policy::{allows, list};
use crate::rewrite::minor;
use crate::snapshot::model::Kops;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// On every worker since 1.11.
const ALWAYS: &[&str] = &["ec2:DescribeInstances", "ec2:DescribeRegions"];
/// On every worker from 1.22 (kops.md 5).
const SINCE_1_22: &[&str] = &[
    "autoscaling:DescribeAutoScalingInstances",
    "ec2:DescribeInstanceTypes",
    "iam:GetServerCertificate",
    "iam:ListServerCertificates",
    "kms:GenerateRandom",
];
/// `iam.allowContainerRegistry`, and legacy IAM. Image pulls on green are covered by its node role's own policy.
const REGISTRY: &[&str] = &[
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:DescribeRepositories",
    "ecr:GetAuthorizationToken",
    "ecr:GetDownloadUrlForLayer",
    "ecr:GetRepositoryPolicy",
    "ecr:ListImages",
];
/// Networking that gives pods addresses of network interfaces: amazonvpc, and cilium with `ipam: eni`.
const INTERFACES: &[&str] = &[
    "ec2:AssignIpv6Addresses",
    "ec2:AssignPrivateIpAddresses",
    "ec2:AttachNetworkInterface",
    "ec2:CreateNetworkInterface",
    "ec2:CreateTags",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeTags",
    "ec2:DescribeVpcs",
    "ec2:DetachNetworkInterface",
    "ec2:ModifyNetworkInterfaceAttribute",
    "ec2:UnassignIpv6Addresses",
    "ec2:UnassignPrivateIpAddresses",
];
/// What kops asks of the state bucket as a whole.
const BUCKET: &[&str] = &[
    "s3:GetBucketLocation",
    "s3:GetEncryptionConfiguration",
    "s3:ListBucket",
    "s3:ListBucketVersions",
];
/// Services that a master of kops works with: EC2, load balancers, groups, volumes' keys, DNS, its queue, what the load balancer controller
/// asks (kops.md 5).
const MASTER_SERVICES: &[&str] = &[
    "acm",
    "autoscaling",
    "cognito-idp",
    "ec2",
    "ecr",
    "elasticloadbalancing",
    "iam",
    "kms",
    "route53",
    "shield",
    "sqs",
    "waf-regional",
    "wafv2",
];

/// What is left of a statement when kops's own part is taken out.
#[derive(Clone, Debug, PartialEq)]
pub enum Rest {
    /// kops put all of it there.
    Nothing,
    /// Somebody else's.
    All,
    /// The statement with fewer actions.
    Part(Value),
}

/// kops as it worked on this cluster.
pub struct MadeByKops {
    cluster: String,
    /// `bucket/prefix/cluster` of the state and of stores that stand elsewhere.
    stores: Vec<String>,
    actions: BTreeSet<String>,
}

impl MadeByKops {
    /// From the kops documents.
    pub fn new(kops: &Kops, cluster: &str) -> MadeByKops {
        let spec = kops
            .completed
            .as_ref()
            .or(kops.cluster.as_ref())
            .and_then(|c| c.get("spec"));
        let get = |p: &str| spec.and_then(|s| s.pointer(p));
        let mut stores = BTreeSet::new();
        for p in [
            "/configBase",
            "/keyStore",
            "/secretStore",
            "/configStore/base",
            "/configStore/keypairs",
            "/configStore/secrets",
        ] {
            if let Some(path) = get(p)
                .and_then(Value::as_str)
                .and_then(|s| s.strip_prefix("s3://"))
            {
                stores.insert(path.trim_end_matches('/').to_string());
            }
        }
        let release = kops.kops_version.as_deref().and_then(minor);
        let mut actions: BTreeSet<String> = ALWAYS.iter().chain(REGISTRY).map(lower).collect();
        // Without the release in the store the newer list counts: it only has reads of facts that no workload is given on purpose.
        if release.is_none_or(|m| m >= 22) {
            actions.extend(SINCE_1_22.iter().map(lower));
        }
        let net = |names: &[&str]| {
            names
                .iter()
                .find_map(|n| get(&format!("/networking/{n}")).filter(|v| !v.is_null()))
        };
        if net(&["amazonvpc", "amazonVPC"]).is_some()
            || net(&["cilium"]).is_some_and(|c| c["ipam"] == "eni")
        {
            actions.extend(INTERFACES.iter().map(lower));
        }
        if net(&["calico", "canal"]).is_some() {
            // awsSrcDstCheck.
            actions.insert(lower(&"ec2:ModifyNetworkInterfaceAttribute"));
        }
        if net(&["kuberouter", "kubeRouter", "kindnet"]).is_some() {
            actions.insert(lower(&"ec2:ModifyInstanceAttribute"));
        }
        let warm = get("/warmPool").is_some()
            || get("/cloudProvider/aws/warmPool").is_some()
            || kops
                .instance_groups
                .iter()
                .any(|g| g.pointer("/spec/warmPool").is_some());
        if warm {
            actions.insert(lower(&"autoscaling:CompleteLifecycleAction"));
        }
        MadeByKops {
            cluster: cluster.into(),
            stores: stores.into_iter().collect(),
            actions,
        }
    }

    /// What a statement of a worker's role says beyond kops.
    pub fn rest(&self, statement: &Value) -> Rest {
        if !allows(statement)
            || statement.get("NotAction").is_some()
            || statement.get("NotResource").is_some()
        {
            return Rest::All;
        }
        let actions = list(statement, "Action");
        let resources = list(statement, "Resource");
        if statement.get("Condition").is_some() {
            let own = self.tagged(statement) && actions.iter().all(|a| self.known(a));
            return if own { Rest::Nothing } else { Rest::All };
        }
        if self.state(&actions, &resources) {
            return Rest::Nothing;
        }
        let anywhere = resources
            .iter()
            .all(|r| *r == "*" || r.contains(":network-interface/") && r.starts_with("arn:"));
        if resources.is_empty() || !anywhere {
            return Rest::All;
        }
        let left: Vec<&str> = actions.iter().copied().filter(|a| !self.known(a)).collect();
        match left.len() {
            0 => Rest::Nothing,
            n if n == actions.len() => Rest::All,
            _ => {
                let mut part = statement.clone();
                part["Action"] = json!(left);
                Rest::Part(part)
            }
        }
    }

    /// What a statement of a master's role says beyond kops. Masters may do so much that only another service tells.
    pub fn rest_of_master(&self, statement: &Value) -> Rest {
        let actions = list(statement, "Action");
        if !allows(statement) || actions.is_empty() {
            return Rest::All;
        }
        if self.state(&actions, &list(statement, "Resource")) {
            return Rest::Nothing;
        }
        let services = |a: &&str| MASTER_SERVICES.contains(&a.split(':').next().unwrap_or(""));
        if actions.iter().all(services) {
            Rest::Nothing
        } else {
            Rest::All
        }
    }

    fn known(&self, action: &str) -> bool {
        self.actions.contains(&action.to_lowercase())
    }

    /// The condition names the cluster by its tag.
    fn tagged(&self, statement: &Value) -> bool {
        statement["Condition"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(_, t)| t.as_object())
            .flatten()
            .any(|(key, value)| {
                key.ends_with("/KubernetesCluster") && *value == json!(self.cluster)
            })
    }

    /// Only reads, or in legacy clusters writes, of kops's own store.
    fn state(&self, actions: &[&str], resources: &[&str]) -> bool {
        let s3 = |a: &&str| a.to_lowercase().starts_with("s3:");
        if actions.is_empty() || resources.is_empty() || !actions.iter().all(s3) {
            return false;
        }
        let whole = actions
            .iter()
            .all(|a| BUCKET.iter().any(|b| b.eq_ignore_ascii_case(a)));
        resources.iter().all(|r| {
            let Some((_, path)) = r.split_once(":s3:::") else {
                return false;
            };
            if path.contains('/') {
                self.own_path(path)
            } else {
                whole && self.own_bucket(path)
            }
        })
    }

    /// A path under the cluster's part of the store. Without a store in the spec (or one that is no bucket) only the paths that
    /// kops itself writes count.
    fn own_path(&self, path: &str) -> bool {
        if !self.stores.is_empty() {
            return self.stores.iter().any(|s| {
                let base = format!("{s}/");
                // A store that stands elsewhere (keyStore) is a folder of its own; the state is a folder named as the cluster.
                path.starts_with(&base) || path == s
            });
        }
        let Some((_, tail)) = path.split_once(&format!("/{}/", self.cluster)) else {
            return false;
        };
        ["addons/", "igconfig/", "instancegroup/", "pki/", "secrets/"]
            .iter()
            .any(|p| tail.starts_with(p))
            || matches!(tail, "cluster.spec" | "cluster-completed.spec" | "config")
    }

    fn own_bucket(&self, bucket: &str) -> bool {
        self.stores
            .iter()
            .any(|s| s.split('/').next() == Some(bucket))
    }
}

fn lower(action: &&str) -> String {
    action.to_lowercase()
}
