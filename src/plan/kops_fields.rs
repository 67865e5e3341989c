//! The fate of every field of a kops document (kops.md 2, 3): a field that is in no table is reported, never dropped silently.

use super::model::{Finding, Severity};
use serde_json::Value;

use Severity::{Blocker, Info, Warning};

/// Fields of the Cluster spec that the planner reads or that belong to kops alone.
const CLUSTER_QUIET: &[&str] = &[
    "subnets",
    "kubernetesVersion",
    "cloudProvider",
    "networking",
    "networkCIDR",
    "networkID",
    "channel",
    "configBase",
    "configStore",
    "keyStore",
    "secretStore",
    "etcdClusters",
    "masterPublicName",
    "masterInternalName",
    "topology",
    "nonMasqueradeCIDR",
    "podCIDR",
    "serviceClusterIPRange",
    "api",
    "target",
    "updatePolicy",
    "rollingUpdate",
    "tagSubnets",
    "DisableSubnetTags",
    "masterKubelet",
    "controlPlaneKubelet",
    "project",
    "isolateMasters",
    "dnsControllerGossipConfig",
    "kubernetesApiAccess",
    "sshAccess",
    "sshKeyName",
    "dnsZone",
    "cloudLabels",
    "kubelet",
    "iam",
    "additionalNetworkCIDRs",
    "useHostCertificates",
    "ntp",
    "containerRuntime",
    "docker",
    "kubeProxy",
    "assets",
];

/// Fields with a word to say. (field, severity, what becomes of it, what to do)
const CLUSTER: &[(&str, Severity, &str, &str)] = &[
    (
        "additionalSans",
        Warning,
        "EKS's certificate has no names of your own",
        "Give clients a new kubeconfig.",
    ),
    (
        "externalDns",
        Warning,
        "dns-controller or kops's external-dns ends with blue",
        "See the DNS findings.",
    ),
    (
        "addons",
        Warning,
        "manifests that blue's masters apply",
        "Fetch and treat them as workloads.",
    ),
    (
        "additionalPolicies",
        Warning,
        "grants that pods used through the node role: green's nodes do not have them",
        "Give each workload a role of its own.",
    ),
    (
        "externalPolicies",
        Warning,
        "managed policies on blue's node role: green's nodes do not have them",
        "Give each workload a role of its own.",
    ),
    (
        "hooks",
        Warning,
        "changes hosts of blue: green's nodes are not changed",
        "Decide for each hook: DaemonSet, launch template, or drop.",
    ),
    (
        "fileAssets",
        Warning,
        "files on hosts of blue: green's nodes do not have them",
        "Decide for each file.",
    ),
    (
        "packages",
        Warning,
        "packages on hosts of blue: green's nodes do not have them",
        "Use an own AMI if they are needed.",
    ),
    (
        "sysctlParameters",
        Warning,
        "kernel settings of blue's hosts",
        "Set them in the launch template if they are needed.",
    ),
    (
        "kubeAPIServer",
        Warning,
        "API server settings cannot be set on EKS",
        "Read each one: see VER-05.",
    ),
    (
        "kubeControllerManager",
        Warning,
        "controller manager settings cannot be set on EKS",
        "Read each one.",
    ),
    (
        "kubeScheduler",
        Warning,
        "scheduler settings cannot be set on EKS",
        "Run a second scheduler if a profile is needed.",
    ),
    (
        "cloudControllerManager",
        Info,
        "EKS runs its own cloud controller",
        "Nothing to do.",
    ),
    (
        "kubeDNS",
        Warning,
        "DNS settings of blue (stub zones, upstreams)",
        "Put them into the configuration of green's coredns add-on.",
    ),
    (
        "clusterDNSDomain",
        Blocker,
        "a cluster domain of your own is not supported by EKS's CoreDNS",
        "Workloads must use cluster.local.",
    ),
    (
        "encryptionConfig",
        Info,
        "EKS encrypts all API data by default",
        "Give a KMS key if one is demanded.",
    ),
    (
        "egressProxy",
        Warning,
        "an HTTP proxy for nodes",
        "Set it on green's nodes and add-ons.",
    ),
    (
        "authentication",
        Warning,
        "users of blue's authenticator",
        "Map them under green.access.",
    ),
    (
        "nodeAuthorization",
        Info,
        "kops's own node authorisation",
        "Nothing to do.",
    ),
    (
        "nodePortAccess",
        Warning,
        "NodePorts are open on blue's nodes",
        "Open them on green's group if something uses them.",
    ),
    (
        "clusterAutoscaler",
        Warning,
        "kops runs the cluster autoscaler",
        "Install it (or Karpenter) on green; a priority map by group name must be rewritten.",
    ),
    (
        "metricsServer",
        Info,
        "becomes the metrics-server add-on",
        "Nothing to do.",
    ),
    (
        "nodeTerminationHandler",
        Info,
        "managed node groups drain spot nodes themselves",
        "Nothing to do.",
    ),
    (
        "nodeProblemDetector",
        Info,
        "kops runs it",
        "Install it on green if it is needed.",
    ),
    (
        "snapshotController",
        Info,
        "kops runs it",
        "Add the snapshot-controller add-on if it is needed.",
    ),
    (
        "certManager",
        Warning,
        "kops runs cert-manager",
        "Install it on green before the replay.",
    ),
    (
        "awsLoadBalancerController",
        Warning,
        "kops runs the load balancer controller",
        "Install it on green with its own role; never with blue's cluster name.",
    ),
    (
        "karpenter",
        Warning,
        "kops runs Karpenter",
        "Install it on green and write NodePools.",
    ),
    (
        "podIdentityWebhook",
        Info,
        "EKS has its own",
        "Nothing to do.",
    ),
    (
        "serviceAccountIssuerDiscovery",
        Warning,
        "blue's token issuer: green has another one",
        "Each role gets a second trust statement.",
    ),
    (
        "warmPool",
        Info,
        "a warm pool for all groups",
        "Set it on the node groups if it is needed.",
    ),
    (
        "cloudConfig",
        Info,
        "settings of the in-tree cloud provider",
        "Set them as annotations or on the add-ons.",
    ),
    (
        "gossipConfig",
        Info,
        "gossip ends with blue",
        "Nothing to do.",
    ),
    (
        "containerd",
        Warning,
        "containerd settings (mirrors, additions)",
        "Set them in the node configuration of green.",
    ),
    (
        "kubeProxyReplacement",
        Info,
        "see networking",
        "Nothing to do.",
    ),
    (
        "awsEBSCSIDriver",
        Info,
        "becomes the aws-ebs-csi-driver add-on",
        "Nothing to do.",
    ),
];

/// Networks, and what becomes of them.
const NETWORKS: &[(&str, Severity, &str, &str)] = &[
    (
        "kubenet",
        Info,
        "becomes the VPC CNI: pods take addresses of the VPC",
        "Check CAP-04.",
    ),
    ("classic", Info, "becomes the VPC CNI", "Check CAP-04."),
    (
        "external",
        Warning,
        "an external network",
        "Find out what it is.",
    ),
    ("kopeio", Info, "becomes the VPC CNI", "Check CAP-04."),
    (
        "cni",
        Warning,
        "a network of your own, unknown to kops",
        "Find it in the cluster: it becomes the VPC CNI.",
    ),
    (
        "weave",
        Warning,
        "becomes the VPC CNI: its encryption has no equivalent",
        "Check NetworkPolicies and CAP-04.",
    ),
    ("flannel", Info, "becomes the VPC CNI", "Check CAP-04."),
    (
        "canal",
        Warning,
        "becomes the VPC CNI: policies need its policy agent",
        "Switch network policy on in the vpc-cni add-on.",
    ),
    (
        "calico",
        Warning,
        "becomes the VPC CNI: NetworkPolicies carry over, objects of projectcalico.org do not",
        "Switch network policy on in the vpc-cni add-on.",
    ),
    (
        "cilium",
        Warning,
        "becomes the VPC CNI: CiliumNetworkPolicies, encryption and mesh do not carry over",
        "List what is used; run Cilium on green by hand if it is needed.",
    ),
    (
        "amazonvpc",
        Info,
        "the same CNI; its env settings become add-on configuration",
        "Carry the settings over.",
    ),
    (
        "amazonVPC",
        Info,
        "the same CNI; its env settings become add-on configuration",
        "Carry the settings over.",
    ),
    (
        "kuberouter",
        Warning,
        "becomes the VPC CNI",
        "Check NetworkPolicies and CAP-04.",
    ),
    (
        "kubeRouter",
        Warning,
        "becomes the VPC CNI",
        "Check NetworkPolicies and CAP-04.",
    ),
    ("romana", Warning, "becomes the VPC CNI", "Check CAP-04."),
    ("lyftvpc", Info, "becomes the VPC CNI", "Check CAP-04."),
    ("kindnet", Info, "becomes the VPC CNI", "Check CAP-04."),
    (
        "gce",
        Blocker,
        "a network of another cloud",
        "crossfade moves clusters within AWS only.",
    ),
];

/// Fields of an InstanceGroup that the planner reads or that end with kops.
const GROUP_QUIET: &[&str] = &[
    "role",
    "machineType",
    "minSize",
    "maxSize",
    "subnets",
    "nodeLabels",
    "taints",
    "maxPrice",
    "rootVolumeSize",
    "rootVolumeType",
    "rootVolume",
    "manager",
    "image",
    "zones",
    "associatePublicIp",
    "associatePublicIP",
    "mixedInstancesPolicy",
    "autoscale",
    "updatePolicy",
    "rollingUpdate",
    "cloudLabels",
    "rootVolumeEncryption",
    "rootVolumeOptimization",
    "compressUserData",
];
const GROUP: &[(&str, Severity, &str, &str)] = &[
    (
        "kubelet",
        Warning,
        "kubelet settings (labels and taints are taken over, the rest is not)",
        "Set them in the node configuration of green.",
    ),
    (
        "spotDurationInMinutes",
        Info,
        "spot blocks do not exist any more",
        "Nothing to do.",
    ),
    (
        "instanceInterruptionBehavior",
        Info,
        "hibernate and stop are not allowed in a managed node group",
        "Nothing to do.",
    ),
    (
        "rootVolumeIops",
        Warning,
        "IOPS of the root volume",
        "Set them in a launch template if they are needed.",
    ),
    (
        "rootVolumeThroughput",
        Warning,
        "throughput of the root volume",
        "Set it in a launch template if it is needed.",
    ),
    (
        "rootVolumeEncryptionKey",
        Warning,
        "an own key for root volumes",
        "Set it in a launch template.",
    ),
    (
        "volumes",
        Warning,
        "more volumes for each node",
        "Use a launch template.",
    ),
    (
        "volumeMounts",
        Warning,
        "mounted by user data",
        "Use a launch template.",
    ),
    (
        "additionalSecurityGroups",
        Warning,
        "more security groups on each node: rules that trust them do not trust green yet",
        "See NET-02; use a launch template if the groups are needed.",
    ),
    (
        "securityGroupOverride",
        Warning,
        "a security group of your own",
        "Use a launch template.",
    ),
    (
        "iam",
        Warning,
        "an instance profile of your own",
        "Give workloads roles of their own.",
    ),
    (
        "externalLoadBalancers",
        Warning,
        "nodes are attached to load balancers outside Kubernetes",
        "Attach green's group to the target groups; replace classic ELBs.",
    ),
    (
        "additionalUserData",
        Warning,
        "user data runs on blue's hosts only (content not shown)",
        "Use a launch template if it is needed.",
    ),
    (
        "instanceMetadata",
        Info,
        "metadata settings; EKS demands tokens",
        "Pods that leaned on the node role: see IAM-04.",
    ),
    (
        "warmPool",
        Info,
        "a warm pool",
        "Set it on the node group if it is needed.",
    ),
    (
        "suspendProcesses",
        Info,
        "auto scaling settings belong to EKS in a managed group",
        "Nothing to do.",
    ),
    (
        "instanceProtection",
        Info,
        "auto scaling settings belong to EKS in a managed group",
        "Nothing to do.",
    ),
    (
        "maxInstanceLifetime",
        Info,
        "auto scaling settings belong to EKS in a managed group",
        "Nothing to do.",
    ),
    (
        "capacityRebalance",
        Info,
        "managed SPOT groups rebalance by themselves",
        "Nothing to do.",
    ),
    (
        "detailedInstanceMonitoring",
        Info,
        "detailed monitoring",
        "Use a launch template.",
    ),
    (
        "tenancy",
        Warning,
        "dedicated tenancy",
        "Use a launch template.",
    ),
    ("cpuCredits", Info, "CPU credits", "Use a launch template."),
    (
        "hooks",
        Warning,
        "changes hosts of blue: green's nodes are not changed",
        "Decide for each hook.",
    ),
    (
        "fileAssets",
        Warning,
        "files on hosts of blue",
        "Decide for each file.",
    ),
    (
        "packages",
        Warning,
        "packages on hosts of blue",
        "Use an own AMI if they are needed.",
    ),
    (
        "sysctlParameters",
        Warning,
        "kernel settings",
        "Use a launch template.",
    ),
    (
        "containerd",
        Warning,
        "containerd settings",
        "Set them in the node configuration of green.",
    ),
    (
        "autoscalePriority",
        Info,
        "priority for kops's autoscaler",
        "Rewrite the priority map of green's autoscaler.",
    ),
    ("guestAccelerators", Info, "not AWS", "Nothing to do."),
    ("gcpProvisioningModel", Info, "not AWS", "Nothing to do."),
];

fn push(
    out: &mut Vec<Finding>,
    id: String,
    severity: Severity,
    object: String,
    message: String,
    remedy: &str,
    source: &str,
) {
    out.push(Finding {
        id,
        severity,
        object,
        message,
        remedy: remedy.into(),
        source: source.into(),
        waived: None,
    });
}

/// Findings for the fields of a Cluster document.
pub(super) fn cluster(c: &Value) -> Vec<Finding> {
    let mut out = vec![];
    let Some(spec) = c.get("spec").and_then(Value::as_object) else {
        return out;
    };
    for (field, value) in spec {
        let object = format!("kops/spec.{field}");
        if value.is_null() || CLUSTER_QUIET.contains(&field.as_str()) {
            continue;
        }
        if field == "authorization" {
            if value.get("alwaysAllow").is_some() {
                push(
                    &mut out,
                    "KOPS-authz-alwaysallow".into(),
                    Blocker,
                    object,
                    "alwaysAllow: on EKS every account that worked without RBAC will be refused"
                        .into(),
                    "Give workloads and people RBAC roles on blue first.",
                    "kops.md 2",
                );
            }
            continue;
        }
        match CLUSTER.iter().find(|(f, ..)| f == field) {
            Some((f, s, what, remedy)) => push(
                &mut out,
                format!("KOPS-field-{f}"),
                *s,
                object,
                (*what).into(),
                remedy,
                "kops.md 2",
            ),
            None => push(
                &mut out,
                "KOPS-unmapped".into(),
                Warning,
                object,
                "not mapped: crossfade does not know this field".into(),
                "Decide what it means for green.",
                "kops.md 8.5",
            ),
        }
    }
    if let Some(net) = spec.get("networking").and_then(Value::as_object) {
        for (f, s, what, remedy) in NETWORKS {
            if net.get(*f).is_some_and(|v| !v.is_null()) {
                push(
                    &mut out,
                    format!("KOPS-net-{f}"),
                    *s,
                    format!("kops/spec.networking.{f}"),
                    (*what).into(),
                    remedy,
                    "kops.md 2",
                );
            }
        }
    }
    let non_masq = spec
        .get("nonMasqueradeCIDR")
        .and_then(Value::as_str)
        .unwrap_or("");
    if non_masq.contains(':') {
        push(&mut out, "KOPS-ipv6".into(), Blocker, "kops/spec.nonMasqueradeCIDR".into(), "IPv6 pods: the IP family of EKS is chosen at creation, and crossfade makes IPv4 clusters".into(), "Plan the IPv6 cluster by hand.", "kops.md 2");
    }
    if c.pointer("/metadata/name")
        .and_then(Value::as_str)
        .is_some_and(|n| n.ends_with(".k8s.local"))
    {
        push(
            &mut out,
            "KOPS-gossip".into(),
            Info,
            "kops/metadata.name".into(),
            "a gossip name: there is no hosted zone for the cluster".into(),
            "Nothing to do.",
            "kops.md 6",
        );
    }
    out
}

/// Findings for the fields of a worker InstanceGroup.
pub(super) fn instance_group(ig: &Value, object: &str) -> Vec<Finding> {
    let mut out = vec![];
    for (field, value) in ig
        .get("spec")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        if value.is_null() || GROUP_QUIET.contains(&field.as_str()) {
            continue;
        }
        if field == "kubelet"
            && value.as_object().is_some_and(|k| {
                k.keys()
                    .all(|x| matches!(x.as_str(), "nodeLabels" | "taints" | "anonymousAuth"))
            })
        {
            continue;
        }
        let at = format!("{object} spec.{field}");
        match GROUP.iter().find(|(f, ..)| f == field) {
            Some((f, s, what, remedy)) => push(
                &mut out,
                format!("KOPS-ig-{f}"),
                *s,
                at,
                (*what).into(),
                remedy,
                "kops.md 3",
            ),
            None => push(
                &mut out,
                "KOPS-unmapped".into(),
                Warning,
                at,
                "not mapped: crossfade does not know this field".into(),
                "Decide what it means for green.",
                "kops.md 8.5",
            ),
        }
    }
    out
}
