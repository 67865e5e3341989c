//! kops's managed add-ons, and what green has in the place of each: one row a component.

mod corefile;
mod wishes;

use super::iam::{Problem, controllers, text};
use super::kops::role_name;
use super::model::{Severity, TargetAddon, TargetComponent};
use crate::object::{ObjectId, label};
use crate::snapshot::kops::kubernetes_version;
use crate::snapshot::model::Snapshot;
use crate::snapshot::roll::Found;
use crate::spec::model::{Identity, Spec};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What green has instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Becomes {
    /// An EKS add-on, which crossfade creates; EKS's default version for the cluster's version.
    Addon(&'static str),
    /// A Helm chart that somebody must install.
    Chart(&'static str),
    /// A part of EKS itself.
    Eks,
    /// Nothing: green has no need of it.
    Nothing,
}

/// When a component is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// In every cluster.
    Always,
    /// The field is there and `enabled` is not false.
    Field,
    /// The field says `enabled: true`.
    Enabled,
    /// Only objects or other things tell.
    Objects,
}

struct Row {
    /// Name of the component.
    name: &'static str,
    when: When,
    /// Fields of the Cluster spec, v1alpha2 and v1alpha3.
    fields: &'static [&'static str],
    /// Names of its workloads in kube-system.
    objects: &'static [&'static str],
    becomes: Becomes,
    /// What a person must know.
    note: &'static str,
}

/// Everything that kops runs in a cluster (kops.md 2, 5) or that a cluster made by it must have (eks.md 1.5).
const ROWS: &[Row] = &[
    Row {
        name: "network",
        when: When::Always,
        fields: &[],
        objects: &[
            "aws-node",
            "calico-node",
            "calico-kube-controllers",
            "calico-typha",
            "canal",
            "cilium",
            "cilium-operator",
            "kindnet",
            "kopeio-networking-agent",
            "kube-flannel-ds",
            "kube-router",
            "romana-agent",
            "romana-daemon",
            "weave-net",
        ],
        becomes: Becomes::Addon("vpc-cni"),
        note: "pods get addresses of the VPC",
    },
    Row {
        name: "kube-proxy",
        when: When::Always,
        fields: &["/kubeProxy"],
        objects: &["kube-proxy"],
        becomes: Becomes::Addon("kube-proxy"),
        note: "",
    },
    Row {
        name: "pod identity agent",
        when: When::Always,
        fields: &[],
        objects: &[],
        becomes: Becomes::Addon("eks-pod-identity-agent"),
        note: "there for those who want Pod Identity; service accounts of blue use IRSA",
    },
    Row {
        name: "coredns",
        when: When::Always,
        fields: &["/kubeDNS"],
        objects: &[
            "coredns",
            "coredns-autoscaler",
            "kube-dns",
            "kube-dns-autoscaler",
        ],
        becomes: Becomes::Addon("coredns"),
        note: "",
    },
    Row {
        name: "aws-ebs-csi-driver",
        when: When::Always,
        fields: &[
            "/cloudConfig/awsEBSCSIDriver",
            "/cloudProvider/aws/ebsCSIDriver",
        ],
        objects: &["ebs-csi-controller", "ebs-csi-node"],
        becomes: Becomes::Addon("aws-ebs-csi-driver"),
        note: "kubernetes.io/aws-ebs is served by it too",
    },
    Row {
        name: "metrics-server",
        when: When::Enabled,
        fields: &["/metricsServer"],
        objects: &["metrics-server"],
        becomes: Becomes::Addon("metrics-server"),
        note: "",
    },
    Row {
        name: "snapshot-controller",
        when: When::Enabled,
        fields: &["/snapshotController"],
        objects: &["snapshot-controller"],
        becomes: Becomes::Addon("snapshot-controller"),
        note: "",
    },
    Row {
        name: "cert-manager",
        when: When::Enabled,
        fields: &["/certManager"],
        objects: &[
            "cert-manager",
            "cert-manager-cainjector",
            "cert-manager-webhook",
        ],
        becomes: Becomes::Addon("cert-manager"),
        note: "solvers by DNS-01 used the masters' role or one of kops: its account needs a role of its own (green.roles.cert-manager/cert-manager)",
    },
    Row {
        name: "node-problem-detector",
        when: When::Enabled,
        fields: &["/nodeProblemDetector"],
        objects: &["node-problem-detector"],
        becomes: Becomes::Addon("eks-node-monitoring-agent"),
        note: "its conditions have other names: look at alerts",
    },
    Row {
        name: "efs-csi-driver",
        when: When::Objects,
        fields: &[],
        objects: &["efs-csi-controller", "efs-csi-node"],
        becomes: Becomes::Addon("aws-efs-csi-driver"),
        note: "",
    },
    Row {
        name: "mountpoint-s3-csi-driver",
        when: When::Objects,
        fields: &[],
        objects: &["s3-csi-node", "s3-csi-controller"],
        becomes: Becomes::Addon("aws-mountpoint-s3-csi-driver"),
        note: "",
    },
    Row {
        name: "cluster-autoscaler",
        when: When::Enabled,
        fields: &["/clusterAutoscaler"],
        objects: &["cluster-autoscaler"],
        becomes: Becomes::Chart("autoscaler/cluster-autoscaler"),
        note: "install it with autoDiscovery.clusterName of green (managed groups carry its tags); a priority map by group name must be rewritten. Or use Karpenter",
    },
    Row {
        name: "karpenter",
        when: When::Enabled,
        fields: &["/karpenter"],
        objects: &["karpenter"],
        becomes: Becomes::Chart("karpenter"),
        note: "install it with the controller policy of its CloudFormation template, a node role and an interruption queue of its own; write NodePool and EC2NodeClass anew (kops's use its own user data)",
    },
    Row {
        name: "aws-load-balancer-controller",
        when: When::Enabled,
        fields: &[
            "/awsLoadBalancerController",
            "/cloudProvider/aws/loadBalancerController",
        ],
        objects: &["aws-load-balancer-controller"],
        becomes: Becomes::Chart("eks/aws-load-balancer-controller"),
        note: "install it before the replay, with clusterName of green (never blue's)",
    },
    Row {
        name: "nvidia device plugin",
        when: When::Field,
        fields: &["/containerd/nvidiaGPU"],
        objects: &["nvidia-device-plugin-daemonset"],
        becomes: Becomes::Chart("nvdp/nvidia-device-plugin"),
        note: "accelerated AMIs hold the driver, the plugin is yours to install; RuntimeClass nvidia too",
    },
    Row {
        name: "node-local-dns",
        when: When::Enabled,
        fields: &["/kubeDNS/nodeLocalDNS"],
        objects: &["node-local-dns"],
        becomes: Becomes::Chart("node-local-dns"),
        note: "without it pods ask CoreDNS, whose load grows; zones of its own that blue added go into the corefile of the coredns add-on. When you install it, the nodes' clusterDNS must name its address",
    },
    Row {
        name: "node termination handler",
        when: When::Field,
        fields: &[
            "/nodeTerminationHandler",
            "/cloudProvider/aws/nodeTerminationHandler",
        ],
        objects: &["aws-node-termination-handler"],
        becomes: Becomes::Nothing,
        note: "managed node groups drain spot and retired nodes themselves; its queue and rules end with blue",
    },
    Row {
        name: "pod identity webhook",
        when: When::Field,
        fields: &[
            "/podIdentityWebhook",
            "/cloudProvider/aws/podIdentityWebhook",
        ],
        objects: &["pod-identity-webhook"],
        becomes: Becomes::Eks,
        note: "the webhook of EKS reads the same annotation",
    },
    Row {
        name: "aws-iam-authenticator",
        when: When::Field,
        fields: &["/authentication/aws"],
        objects: &["aws-iam-authenticator"],
        becomes: Becomes::Eks,
        note: "its mappings become access entries (IAM-07 says which do not)",
    },
    Row {
        name: "cloud controller manager",
        when: When::Field,
        fields: &["/cloudControllerManager"],
        objects: &["aws-cloud-controller-manager"],
        becomes: Becomes::Eks,
        note: "",
    },
    Row {
        name: "dns-controller",
        when: When::Always,
        fields: &["/externalDns", "/externalDNS"],
        objects: &["dns-controller"],
        becomes: Becomes::Nothing,
        note: "objects with dns.alpha.kubernetes.io annotations need ExternalDNS annotations on green",
    },
    Row {
        name: "kops-controller",
        when: When::Always,
        fields: &[],
        objects: &["kops-controller"],
        becomes: Becomes::Nothing,
        note: "node groups set labels and bootstrap nodes",
    },
    Row {
        name: "etcd and API server",
        when: When::Always,
        fields: &["/etcdClusters"],
        objects: &[
            "etcd-manager-events",
            "etcd-manager-main",
            "etcd-manager-cilium",
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
        ],
        becomes: Becomes::Eks,
        note: "",
    },
];

/// Networks of kops, as `networking` names them.
const NETWORKS: &[&str] = &[
    "amazonvpc",
    "amazonVPC",
    "calico",
    "canal",
    "cilium",
    "classic",
    "cni",
    "external",
    "flannel",
    "gce",
    "gcp",
    "kindnet",
    "kopeio",
    "kubenet",
    "kubeRouter",
    "kuberouter",
    "lyftvpc",
    "romana",
    "weave",
];
/// Networks that enforce NetworkPolicies on blue (kops.md 2).
const ENFORCING: &[&str] = &[
    "calico",
    "canal",
    "cilium",
    "kuberouter",
    "kubeRouter",
    "romana",
    "weave",
];
/// DaemonSets of engines that do so beside another network.
const ENGINES: &[&str] = &["calico-node", "canal", "cilium", "kube-router", "weave-net"];

/// Variables that the VPC CNI reads (amazon-vpc-cni-k8s 1.23); the add-on's schema refuses others.
const CNI_ENV: &[&str] = &[
    "ADDITIONAL_ENI_TAGS",
    "ANNOTATE_POD_IP",
    "AWS_EC2_ENDPOINT",
    "AWS_EXTERNAL_SERVICE_CIDRS",
    "AWS_MANAGE_ENIS_NON_SCHEDULABLE",
    "AWS_VPC_CNI_NODE_PORT_SUPPORT",
    "AWS_VPC_ENI_MTU",
    "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG",
    "AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS",
    "AWS_VPC_K8S_CNI_EXTERNALSNAT",
    "AWS_VPC_K8S_CNI_LOGLEVEL",
    "AWS_VPC_K8S_CNI_LOG_FILE",
    "AWS_VPC_K8S_CNI_RANDOMIZESNAT",
    "AWS_VPC_K8S_CNI_VETHPREFIX",
    "AWS_VPC_K8S_PLUGIN_LOG_FILE",
    "AWS_VPC_K8S_PLUGIN_LOG_LEVEL",
    "DISABLE_INTROSPECTION",
    "DISABLE_LEAKED_ENI_CLEANUP",
    "DISABLE_METRICS",
    "DISABLE_NETWORK_RESOURCE_PROVISIONING",
    "DISABLE_POD_V6",
    "DISABLE_TCP_EARLY_DEMUX",
    "ENABLE_BANDWIDTH_PLUGIN",
    "ENABLE_POD_ENI",
    "ENABLE_PREFIX_DELEGATION",
    "ENABLE_SUBNET_DISCOVERY",
    "ENABLE_V6_EGRESS",
    "ENI_CONFIG_ANNOTATION_DEF",
    "ENI_CONFIG_LABEL_DEF",
    "INTROSPECTION_BIND_ADDRESS",
    "IP_COOLDOWN_PERIOD",
    "MAX_ENI",
    "MINIMUM_IP_TARGET",
    "NETWORK_POLICY_ENFORCING_MODE",
    "POD_SECURITY_GROUP_ENFORCING_MODE",
    "WARM_ENI_TARGET",
    "WARM_IP_TARGET",
    "WARM_PREFIX_TARGET",
];

/// Drivers with a role of their own on green: (role, service account, managed policy).
pub(super) type Driver = (&'static str, &'static str, &'static str);
const EBS: Driver = (
    "ebs-csi",
    "kube-system/ebs-csi-controller-sa",
    "AmazonEBSCSIDriverPolicy",
);
const EFS: Driver = (
    "efs-csi",
    "kube-system/efs-csi-controller-sa",
    "AmazonEFSCSIDriverPolicy",
);
/// Account of the Mountpoint driver; its rights are buckets, which only people know.
pub(super) const S3_ACCOUNT: &str = "kube-system/s3-csi-driver-sa";
const EFS_DRIVER: &str = "efs.csi.aws.com";
const S3_DRIVER: &str = "s3.csi.aws.com";

/// Add-ons of green and what became of each component.
#[derive(Clone, Debug, Default)]
pub struct Addons {
    /// EKS add-ons, in order of creation.
    pub addons: Vec<TargetAddon>,
    /// Every component of blue.
    pub components: Vec<TargetComponent>,
    /// Roles that drivers need.
    pub(super) drivers: Vec<Driver>,
    /// Controllers that people install and whose roles are made.
    pub(super) controllers: Vec<&'static str>,
    /// What the check says.
    pub problems: Vec<Problem>,
}

/// Whether an object is a part of blue's platform: labelled by kops, or in kube-system under the name of a component.
pub(super) fn of_platform(object: &Value, id: &ObjectId) -> bool {
    labelled(object)
        || id.namespace.as_deref() == Some("kube-system")
            && ROWS.iter().any(|r| r.objects.contains(&id.name.as_str()))
}

fn labelled(o: &Value) -> bool {
    label(o, "app.kubernetes.io/managed-by") == Some("kops")
        || label(o, "addon.kops.k8s.io/name").is_some()
        || label(o, "k8s-addon").is_some_and(|a| a.ends_with(".addons.k8s.io"))
}

/// What of blue a row stands for.
struct Blue<'a> {
    spec: Option<&'a Value>,
    /// Workloads of the platform.
    workloads: BTreeSet<&'a str>,
    /// CSI drivers that volumes or classes name.
    drivers: BTreeSet<&'a str>,
    buckets: BTreeSet<&'a str>,
}

impl<'a> Blue<'a> {
    fn new(snapshot: &'a Snapshot) -> Blue<'a> {
        let mut b = Blue {
            spec: snapshot.kops.cluster.as_ref().and_then(|c| c.get("spec")),
            workloads: BTreeSet::new(),
            drivers: BTreeSet::new(),
            buckets: BTreeSet::new(),
        };
        for o in &snapshot.blue.objects {
            match text(o, "/kind") {
                Some("Deployment" | "DaemonSet" | "StatefulSet")
                    if text(o, "/metadata/namespace") == Some("kube-system") || labelled(o) =>
                {
                    b.workloads.insert(text(o, "/metadata/name").unwrap_or(""));
                }
                Some("StorageClass") => b.drivers.extend(text(o, "/provisioner")),
                Some("PersistentVolume") => {
                    b.drivers.extend(text(o, "/spec/csi/driver"));
                    if text(o, "/spec/csi/driver") == Some(S3_DRIVER) {
                        b.buckets
                            .extend(text(o, "/spec/csi/volumeAttributes/bucketName"));
                    }
                }
                _ => {}
            }
        }
        b
    }

    fn field(&self, path: &str) -> Option<&'a Value> {
        self.spec?.pointer(path).filter(|v| !v.is_null())
    }

    /// The network by kops's name.
    fn network(&self) -> Option<(&'static str, &'a Value)> {
        NETWORKS
            .iter()
            .find_map(|n| Some((*n, self.field(&format!("/networking/{n}"))?)))
    }

    /// Where a component was found; `None` when it is not there.
    fn found(&self, row: &Row) -> Option<Vec<String>> {
        let mut at = vec![];
        for f in row.fields {
            let Some(v) = self.field(f) else { continue };
            let on = match row.when {
                When::Enabled => v["enabled"] == true,
                _ => v["enabled"] != false,
            };
            if on {
                at.push(format!("spec{}", f.replace('/', ".")));
            }
        }
        for name in row.objects {
            if self.workloads.contains(name) {
                at.push(format!("kube-system/{name}"));
            }
        }
        match row.name {
            "network" => at.extend(self.network().map(|(n, _)| format!("spec.networking.{n}"))),
            "efs-csi-driver" if self.drivers.contains(EFS_DRIVER) => at.push(EFS_DRIVER.into()),
            "mountpoint-s3-csi-driver" if self.drivers.contains(S3_DRIVER) => {
                at.push(S3_DRIVER.into());
            }
            _ => {}
        }
        at.sort();
        (row.when == When::Always || !at.is_empty()).then_some(at)
    }
}

/// Objects of drivers that people installed on blue and that are add-ons on green: green's own take their place.
pub(super) fn replaced(snapshot: &Found) -> BTreeMap<String, String> {
    const PREFIXES: &[(&str, &str)] = &[
        ("efs-csi-", "aws-efs-csi-driver"),
        ("s3-csi-", "aws-mountpoint-s3-csi-driver"),
    ];
    let mut out = BTreeMap::new();
    for e in snapshot.blue.entries() {
        let id = &e.id;
        let here = matches!(id.namespace.as_deref(), None | Some("kube-system"));
        let kinds = matches!(
            id.kind.as_str(),
            "ClusterRole"
                | "ClusterRoleBinding"
                | "DaemonSet"
                | "Deployment"
                | "Role"
                | "RoleBinding"
                | "ServiceAccount"
        );
        let addon = match id.name.as_str() {
            EFS_DRIVER if id.kind == "CSIDriver" => Some("aws-efs-csi-driver"),
            S3_DRIVER if id.kind == "CSIDriver" => Some("aws-mountpoint-s3-csi-driver"),
            name => PREFIXES
                .iter()
                .find(|(p, _)| here && kinds && name.starts_with(p))
                .map(|(_, a)| *a),
        };
        if let Some(a) = addon {
            out.insert(e.name.clone(), format!("eks.md 1.5: add-on {a}"));
        }
    }
    out
}

/// The add-ons.
pub(super) fn addons(spec: &Spec, snapshot: &Snapshot) -> Addons {
    let blue = Blue::new(snapshot);
    let mut out = Addons {
        drivers: vec![EBS],
        ..Addons::default()
    };
    for row in ROWS {
        let Some(found) = blue.found(row) else {
            continue;
        };
        let becomes = match row.becomes {
            Becomes::Addon(name) => {
                let mut addon = TargetAddon {
                    name: name.into(),
                    replaces: match (row.name, blue.network()) {
                        ("network", Some((n, _))) => n.into(),
                        ("network", None) | ("pod identity agent", _) => String::new(),
                        ("kube-proxy", n)
                            if blue.field("/kubeProxy/enabled") == Some(&json!(false)) =>
                        {
                            // The network stands in for it.
                            n.map(|(n, _)| n.to_string()).unwrap_or_default()
                        }
                        ("coredns", _) if kube_dns(&blue, snapshot) => "kube-dns".into(),
                        ("aws-ebs-csi-driver", _) => {
                            "kubernetes.io/aws-ebs and kops's aws-ebs-csi-driver".into()
                        }
                        (other, _) => other.into(),
                    },
                    ..TargetAddon::default()
                };
                match row.name {
                    "network" => {
                        addon.role = Some("vpc-cni".into());
                        addon.configuration = cni(&blue, spec, &mut out.problems);
                    }
                    "kube-proxy" => addon.configuration = proxy(&blue),
                    "coredns" => {
                        addon.configuration =
                            corefile::corefile(&blue, snapshot, &mut out.problems);
                    }
                    "aws-ebs-csi-driver" => addon.role = Some(EBS.0.into()),
                    "efs-csi-driver" => {
                        addon.role = Some(EFS.0.into());
                        out.drivers.push(EFS);
                    }
                    "mountpoint-s3-csi-driver" => buckets(&blue, spec, &mut out.problems),
                    "cert-manager" | "node-problem-detector" => out.problems.push(says(
                        row,
                        Severity::Info,
                        &format!("becomes add-on {name}: {}", row.note),
                        "Nothing to do when no solver and no alert is touched.",
                    )),
                    _ => {}
                }
                out.addons.push(addon);
                format!("add-on {name}")
            }
            Becomes::Chart(chart) => {
                let account = controllers::account(row.name);
                let role = match account {
                    Some(account) => {
                        out.controllers.push(row.name);
                        let role = role_name(&spec.green.name, row.name);
                        match spec.green.identity.of(account, true) {
                            Identity::Irsa => format!(
                                " Let it run as {account}, annotated with the ARN of role {role}, which crossfade makes."
                            ),
                            Identity::PodIdentity => format!(
                                " Let it run as {account}: crossfade gives that account role {role} by Pod Identity."
                            ),
                        }
                    }
                    None => String::new(),
                };
                out.problems.push(says(
                    row,
                    Severity::Warning,
                    &format!("kops runs it and EKS has no add-on of it: {}", row.note),
                    &format!("Install chart {chart} on green when its nodes stand, or waive this finding.{role}"),
                ));
                format!("chart {chart}, by you")
            }
            Becomes::Eks => "part of EKS".into(),
            Becomes::Nothing => "nothing".into(),
        };
        out.components.push(TargetComponent {
            name: row.name.into(),
            found,
            becomes,
            note: row.note.into(),
        });
    }
    wishes::apply(spec, snapshot, &mut out);
    out
}

/// Whether blue runs kube-dns: declared, or by the default of kops below Kubernetes 1.20.
fn kube_dns(blue: &Blue, snapshot: &Snapshot) -> bool {
    match blue.field("/kubeDNS/provider").and_then(Value::as_str) {
        Some(p) => p.eq_ignore_ascii_case("KubeDNS"),
        None => snapshot
            .kops
            .cluster
            .as_ref()
            .and_then(kubernetes_version)
            .is_some_and(|v| v.minor < 20),
    }
}

fn says(row: &Row, severity: Severity, message: &str, remedy: &str) -> Problem {
    Problem::new(
        "EKS-components",
        severity,
        format!("component/{}", row.name),
        message,
        remedy,
    )
}

fn problem(severity: Severity, object: &str, message: String, remedy: &str) -> Problem {
    Problem::new("EKS-components", severity, object, message, remedy)
}

/// Settings of the VPC CNI: blue's where it runs the same one, then the wishes of migration.yaml; policies where blue enforces them.
fn cni(blue: &Blue, spec: &Spec, problems: &mut Vec<Problem>) -> Option<Value> {
    let mut env: BTreeMap<String, String> = BTreeMap::new();
    let network = blue.network();
    if let Some(("amazonvpc" | "amazonVPC", v)) = network {
        for e in v["env"].as_array().into_iter().flatten() {
            let (Some(name), Some(value)) = (e["name"].as_str(), e["value"].as_str()) else {
                continue;
            };
            match name {
                // The add-on sets these itself.
                "CLUSTER_NAME" | "CLUSTER_ENDPOINT" | "MY_NODE_NAME" | "MY_POD_NAME" | "VPC_ID" => {
                }
                name if CNI_ENV.contains(&name) => {
                    env.insert(name.into(), value.into());
                }
                other => problems.push(problem(
                    Severity::Warning,
                    "addon/vpc-cni",
                    format!(
                        "{other} of blue's CNI is no variable that the add-on takes: it is left out"
                    ),
                    "Look up what became of it; give its successor under green.network.cniEnv.",
                )),
            }
        }
    }
    let wish = &spec.green.network;
    if let Some(on) = wish.prefix_delegation {
        env.insert("ENABLE_PREFIX_DELEGATION".into(), on.to_string());
        if on && !env.contains_key("WARM_IP_TARGET") && wish.warm_ip_target.is_none() {
            env.entry("WARM_PREFIX_TARGET".into()).or_insert("1".into());
        }
    }
    if let Some(n) = wish.warm_ip_target {
        env.insert("WARM_IP_TARGET".into(), n.to_string());
    }
    for (name, value) in &wish.cni_env {
        if !CNI_ENV.contains(&name.as_str()) {
            problems.push(problem(
                Severity::Warning,
                "addon/vpc-cni",
                format!("green.network.cniEnv has {name}, which is not known as a variable of the VPC CNI: EKS may refuse it"),
                "Check its spelling.",
            ));
        }
        env.insert(name.clone(), value.clone());
    }
    let enforcing = network.is_some_and(|(n, v)| {
        ENFORCING.contains(&n)
            || matches!(n, "amazonvpc" | "amazonVPC") && v["networkPolicy"] == "Enabled"
    }) || ENGINES.iter().any(|e| blue.workloads.contains(e));
    let mut out = Map::new();
    if !env.is_empty() {
        out.insert("env".into(), json!(env));
    }
    if enforcing {
        // Without it every NetworkPolicy of blue would be accepted and do nothing.
        out.insert("enableNetworkPolicy".into(), json!("true"));
    }
    (!out.is_empty()).then_some(Value::Object(out))
}

fn proxy(blue: &Blue) -> Option<Value> {
    let proxy = blue.field("/kubeProxy")?;
    if !proxy["proxyMode"].as_str()?.eq_ignore_ascii_case("ipvs") {
        return None;
    }
    // The add-on wants a scheduler with the mode; kube-proxy's own default is rr.
    let scheduler = proxy["ipvsScheduler"].as_str().unwrap_or("rr");
    Some(json!({"mode": "ipvs", "ipvs": {"scheduler": scheduler}}))
}

fn buckets(blue: &Blue, spec: &Spec, problems: &mut Vec<Problem>) {
    if spec.green.roles.contains_key(S3_ACCOUNT) {
        return;
    }
    let named: Vec<&str> = blue.buckets.iter().copied().collect();
    problems.push(problem(
        Severity::Warning,
        "addon/aws-mountpoint-s3-csi-driver",
        format!(
            "its account {S3_ACCOUNT} needs a role that may read (and write) the buckets of blue's volumes{}",
            if named.is_empty() {
                String::new()
            } else {
                format!(": {}", named.join(", "))
            }
        ),
        "Give it under green.roles.",
    ));
}

#[cfg(test)]
#[path = "addons_tests.rs"]
mod tests;
