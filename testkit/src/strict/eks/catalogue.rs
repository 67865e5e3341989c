//! What EKS offered at the end of November 2026: Kubernetes versions, add-ons, access policies (eks.md 1.1, 1.4, 1.5).

use serde_json::{Value, json};

use super::{Answer, page};
use crate::strict::State;
use crate::strict::http::Req;

/// version, released, end of standard support, end of extended support.
const VERSIONS: &[(&str, &str, &str, &str)] = &[
    ("1.36", "2026-06-02", "2027-08-02", "2028-08-02"),
    ("1.35", "2026-01-28", "2027-03-27", "2028-03-27"),
    ("1.34", "2025-10-06", "2026-12-02", "2027-12-02"),
    ("1.33", "2025-05-29", "2026-07-29", "2027-07-29"),
    ("1.32", "2025-01-23", "2026-03-23", "2027-03-23"),
    ("1.31", "2024-09-26", "2025-11-26", "2026-11-26"),
];

/// What CreateCluster takes when no version is named.
pub const DEFAULT_VERSION: &str = "1.35";

/// A version that clusters can have: in standard or extended support (eks.md 1.1).
pub fn known_version(version: &str) -> bool {
    let now = super::now();
    VERSIONS
        .iter()
        .any(|v| v.0 == version && support(v, now) != "UNSUPPORTED")
}

fn support(row: &(&str, &str, &str, &str), now: f64) -> &'static str {
    if now < midnight(row.2) {
        "STANDARD_SUPPORT"
    } else if now < midnight(row.3) {
        "EXTENDED_SUPPORT"
    } else {
        "UNSUPPORTED"
    }
}

/// Minor number of a `1.N` version.
pub fn minor(version: &str) -> u32 {
    version
        .split('.')
        .nth(1)
        .and_then(|m| m.parse().ok())
        .unwrap_or(0)
}

fn midnight(date: &str) -> f64 {
    format!("{date}T00:00:00Z")
        .parse::<jiff::Timestamp>()
        .map(|t| t.as_second() as f64)
        .unwrap_or(0.0)
}

pub(crate) fn describe_cluster_versions(state: &State, req: &Req) -> Answer {
    let wanted = req.query_all("clusterVersions");
    let status = req.query("versionStatus").or(req.query("status"));
    let now = super::now();
    // Those that nobody can have any more are shown to who asks for all, or for them.
    let all = req.query("includeAll") == Some("true") || !wanted.is_empty() || status.is_some();
    let items: Vec<Value> = VERSIONS
        .iter()
        .filter(|v| wanted.is_empty() || wanted.contains(&v.0))
        .filter(|v| all || support(v, now) != "UNSUPPORTED")
        .map(|row| {
            let (version, released, standard, extended) = row;
            let word = support(row, now);
            json!({
                "clusterVersion": version,
                "clusterType": "eks",
                "defaultPlatformVersion": "eks.3",
                "defaultVersion": *version == DEFAULT_VERSION,
                "releaseDate": midnight(released),
                "endOfStandardSupportDate": midnight(standard),
                "endOfExtendedSupportDate": midnight(extended),
                "status": word.to_lowercase().replace('_', "-"),
                "versionStatus": word,
                "kubernetesPatchVersion": format!("{version}.3"),
            })
        })
        .filter(|v| {
            status.is_none_or(|s| {
                v["versionStatus"]
                    .as_str()
                    .is_some_and(|w| w.eq_ignore_ascii_case(&s.replace('-', "_")))
            })
        })
        .filter(|v| req.query("defaultOnly") != Some("true") || v["defaultVersion"] == true)
        .collect();
    page(state, req, "clusterVersions", items)
}

/// One add-on of the catalogue.
pub(crate) struct Offer {
    pub name: &'static str,
    pub namespace: &'static str,
    /// Needs AWS rights of its own; the service account that uses them.
    pub needs_role: Option<&'static str>,
    /// Runs as a Deployment: without nodes it is DEGRADED (eks.md 1.5).
    pub needs_nodes: bool,
    pub versions: &'static [&'static str],
    /// AWS's managed policies that it recommends for that account (eks.md 1.3).
    pub policies: &'static [&'static str],
}

/// `{minor}` stands for the cluster's minor version (kube-proxy follows it).
pub(crate) const OFFERS: &[Offer] = &[
    Offer {
        name: "vpc-cni",
        namespace: "kube-system",
        needs_role: None,
        needs_nodes: false,
        versions: &["v1.23.1-eksbuild.1", "v1.21.1-eksbuild.3"],
        policies: &[],
    },
    Offer {
        name: "coredns",
        namespace: "kube-system",
        needs_role: None,
        needs_nodes: true,
        versions: &["v1.13.2-eksbuild.1", "v1.12.4-eksbuild.1"],
        policies: &[],
    },
    Offer {
        name: "kube-proxy",
        namespace: "kube-system",
        needs_role: None,
        needs_nodes: false,
        versions: &["v1.{minor}.3-eksbuild.2", "v1.{minor}.0-eksbuild.2"],
        policies: &[],
    },
    Offer {
        name: "eks-pod-identity-agent",
        namespace: "kube-system",
        needs_role: None,
        needs_nodes: false,
        versions: &["v1.3.10-eksbuild.1"],
        policies: &[],
    },
    Offer {
        name: "aws-ebs-csi-driver",
        namespace: "kube-system",
        needs_role: Some("ebs-csi-controller-sa"),
        needs_nodes: true,
        versions: &["v1.58.0-eksbuild.1"],
        policies: &["arn:aws:iam::aws:policy/service-role/AmazonEBSCSIDriverPolicyV2"],
    },
    Offer {
        name: "aws-efs-csi-driver",
        namespace: "kube-system",
        needs_role: Some("efs-csi-controller-sa"),
        needs_nodes: true,
        versions: &["v2.1.15-eksbuild.1"],
        policies: &["arn:aws:iam::aws:policy/service-role/AmazonEFSCSIDriverPolicy"],
    },
    Offer {
        name: "aws-mountpoint-s3-csi-driver",
        namespace: "kube-system",
        needs_role: Some("s3-csi-driver-sa"),
        needs_nodes: false,
        versions: &["v2.2.2-eksbuild.1"],
        policies: &[],
    },
    Offer {
        name: "snapshot-controller",
        namespace: "kube-system",
        needs_role: None,
        needs_nodes: true,
        versions: &["v8.4.0-eksbuild.1"],
        policies: &[],
    },
    Offer {
        name: "eks-node-monitoring-agent",
        namespace: "kube-system",
        needs_role: None,
        needs_nodes: false,
        versions: &["v1.5.0-eksbuild.1"],
        policies: &[],
    },
    Offer {
        name: "amazon-cloudwatch-observability",
        namespace: "amazon-cloudwatch",
        needs_role: Some("cloudwatch-agent"),
        needs_nodes: true,
        versions: &["v4.7.0-eksbuild.1"],
        policies: &[
            "arn:aws:iam::aws:policy/CloudWatchAgentServerPolicy",
            "arn:aws:iam::aws:policy/AWSXrayWriteOnlyAccess",
        ],
    },
    Offer {
        name: "metrics-server",
        namespace: "kube-system",
        needs_role: None,
        needs_nodes: true,
        versions: &["v0.8.1-eksbuild.1"],
        policies: &[],
    },
    Offer {
        name: "kube-state-metrics",
        namespace: "kube-state-metrics",
        needs_role: None,
        needs_nodes: true,
        versions: &["v2.18.0-eksbuild.1"],
        policies: &[],
    },
    Offer {
        name: "cert-manager",
        namespace: "cert-manager",
        needs_role: None,
        needs_nodes: true,
        versions: &["v1.19.2-eksbuild.1"],
        policies: &[],
    },
    Offer {
        name: "external-dns",
        namespace: "external-dns",
        needs_role: Some("external-dns"),
        needs_nodes: true,
        versions: &["v0.21.0-eksbuild.1"],
        policies: &["arn:aws:iam::aws:policy/AmazonRoute53FullAccess"],
    },
    Offer {
        name: "fluent-bit",
        namespace: "fluent-bit",
        needs_role: None,
        needs_nodes: false,
        versions: &["v4.2.2-eksbuild.1"],
        policies: &[],
    },
];

pub(crate) fn offer(name: &str) -> Option<&'static Offer> {
    OFFERS.iter().find(|o| o.name == name)
}

impl Offer {
    /// Whether some version of Kubernetes has it.
    pub fn has_version(&self, version: &str) -> bool {
        VERSIONS
            .iter()
            .any(|v| self.versions_for(v.0).iter().any(|o| o == version))
    }

    /// Versions for a cluster's version, the default first.
    pub fn versions_for(&self, version: &str) -> Vec<String> {
        self.versions
            .iter()
            .map(|v| v.replace("{minor}", &minor(version).to_string()))
            .collect()
    }
}

pub(crate) fn describe_addon_versions(state: &State, req: &Req) -> Answer {
    let version = req.query("kubernetesVersion");
    let name = req.query("addonName");
    let clusters: Vec<&str> = VERSIONS
        .iter()
        .map(|v| v.0)
        .filter(|v| known_version(v))
        .filter(|v| version.is_none_or(|w| w == *v))
        .collect();
    let items: Vec<Value> = OFFERS
        .iter()
        .filter(|o| name.is_none_or(|n| n == o.name) && !clusters.is_empty())
        .map(|offer| {
            // One entry a version, each with all cluster versions it goes with.
            let mut rows: Vec<(String, Vec<Value>)> = Vec::new();
            for cluster in &clusters {
                for (index, addon) in offer.versions_for(cluster).into_iter().enumerate() {
                    let fits = json!({"clusterVersion": cluster, "platformVersions": ["*"], "defaultVersion": index == 0});
                    match rows.iter_mut().find(|r| r.0 == addon) {
                        Some(row) => row.1.push(fits),
                        None => rows.push((addon, vec![fits])),
                    }
                }
            }
            json!({
                "addonName": offer.name,
                "type": if offer.needs_role.is_some() { "storage" } else { "networking" },
                "publisher": "eks",
                "owner": "aws",
                "defaultNamespace": offer.namespace,
                "addonVersions": rows.into_iter().map(|(addon, compatibilities)| json!({
                    "addonVersion": addon,
                    "architecture": ["amd64", "arm64"],
                    "computeTypes": ["ec2"],
                    "compatibilities": compatibilities,
                    "requiresConfiguration": false,
                    "requiresIamPermissions": offer.needs_role.is_some() || offer.name == "vpc-cni",
                })).collect::<Vec<_>>(),
            })
        })
        .collect();
    page(state, req, "addons", items)
}

const POLICIES: &[&str] = &[
    "AmazonEKSClusterAdminPolicy",
    "AmazonEKSAdminPolicy",
    "AmazonEKSAdminViewPolicy",
    "AmazonEKSEditPolicy",
    "AmazonEKSViewPolicy",
];

/// `arn:aws:eks::aws:cluster-access-policy/NAME`.
pub fn policy_arn(name: &str) -> String {
    format!("arn:aws:eks::aws:cluster-access-policy/{name}")
}

pub(crate) fn known_policy(arn: &str) -> bool {
    POLICIES.iter().any(|name| policy_arn(name) == arn)
}

pub(crate) fn access_policies() -> Vec<Value> {
    POLICIES
        .iter()
        .map(|name| json!({"name": name, "arn": policy_arn(name)}))
        .collect()
}
