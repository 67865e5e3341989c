//! The InstanceGroup document (kops.md 3): workers become managed node groups. The room of the node groups answers for what each
//! group needs and raises the findings; the sentences here say where a field goes.

use super::Fate;
use super::components::{node_config, node_dead, node_owned};
use super::row::{Outcome, Row, decision, gone, mapped, outcome, replaced};
use serde_json::Value;

fn karpenter(v: &Value) -> Option<Outcome> {
    v.as_str()
        .is_some_and(|m| m.eq_ignore_ascii_case("karpenter"))
        .then_some(outcome(
            Fate::Decision,
            "Karpenter makes these nodes: the group becomes no managed node group, but a NodePool that a person writes",
        ))
}

fn tokens(v: &Value) -> Option<Outcome> {
    (v.as_str() == Some("required"))
        .then_some(outcome(Fate::Mapped, "required: EKS demands tokens too"))
}

fn never(v: &Value) -> Option<Outcome> {
    v.as_u64().filter(|n| *n == 0)?;
    Some(outcome(
        Fate::Replaced,
        "0: a managed node group has at least 1, so it becomes 1 (with a minimum of 0)",
    ))
}

const LT: &str = "belongs into the launch template of the node group";
const ASG: &str = "auto scaling settings belong to EKS in a managed group";

pub(super) const ROWS: &[Row] = &[
    mapped("metadata.name", "KOPS-ig-name", "the node group has the same name, where EKS allows it"),
    gone("metadata.{creationTimestamp,generation,resourceVersion,uid,selfLink,deletionTimestamp}", "KOPS-metadata", "kops's own bookkeeping"),
    gone("metadata.{labels,annotations}.*", "KOPS-metadata", "kops's own bookkeeping"),
    mapped("spec.role", "KOPS-ig-role", "Node: becomes a managed node group"),
    mapped("spec.manager", "KOPS-ig-karpenter", "CloudGroup: an auto scaling group, as a managed node group has one").when(karpenter),
    replaced("spec.image", "KOPS-ig-image", "green's nodes run an EKS AMI (AL2023 unless told otherwise): what relies on the old system must be looked at"),
    mapped("spec.machineType", "KOPS-ig-type", "the instance type of the node group"),
    mapped("spec.minSize", "KOPS-ig-size", "the smallest size of the node group"),
    mapped("spec.maxSize", "KOPS-ig-size", "the largest size of the node group").when(never),
    replaced("spec.autoscale", "KOPS-ig-autoscale", "managed node groups always carry the tags by which the autoscaler finds them"),
    replaced("spec.autoscalePriority", "KOPS-ig-autoscalePriority", "priority for kops's autoscaler"),
    mapped("spec.subnets[]", "KOPS-ig-subnets", "the subnets of the node group"),
    gone("spec.zones[]", "KOPS-ig-zones", "only Google Cloud uses it: the subnets decide the zones"),
    mapped("spec.nodeLabels.*", "KOPS-ig-label", "a label of the node group, where EKS allows the key (eks.md 1.6)"),
    mapped("spec.taints[]", "KOPS-ig-taint", "a taint of the node group"),
    mapped("spec.cloudLabels.*", "KOPS-cloud-labels", "become tags of green's node groups and volumes"),
    replaced("spec.maxPrice", "KOPS-ig-maxprice", "a spot group: the bid is dropped, a managed node group pays the spot price"),
    gone("spec.spotDurationInMinutes", "KOPS-ig-spotDurationInMinutes", "spot blocks do not exist any more"),
    gone("spec.instanceInterruptionBehavior", "KOPS-ig-instanceInterruptionBehavior", "hibernate and stop are not allowed in a managed node group"),
    mapped("spec.mixedInstancesPolicy.instances[]", "KOPS-ig-mixed", "the instance types of the node group, at most 20"),
    replaced("spec.mixedInstancesPolicy.{onDemandBase,onDemandAboveBase}", "KOPS-ig-mixed", "a managed node group is all on demand or all spot: the share decides which, or splits the group"),
    gone("spec.mixedInstancesPolicy.{onDemandAllocationStrategy,spotAllocationStrategy,spotInstancePools}", "KOPS-ig-mixed", "EKS chooses how to allocate in a managed node group"),
    decision("spec.mixedInstancesPolicy.instanceRequirements.{cpu,memory}.{min,max}", "KOPS-ig-mixed", "types by requirement: a managed node group wants names; Karpenter takes requirements"),
    decision("spec.mixedInstancesPolicy.instanceRequirements.excludedInstanceTypes[]", "KOPS-ig-mixed", "types by requirement: a managed node group wants names; Karpenter takes requirements"),

    // Volumes.
    mapped("spec.rootVolumeSize", "KOPS-ig-root-volume", "the root volume of the node group"),
    mapped("spec.rootVolumeType", "KOPS-ig-root-volume", "the root volume of the node group"),
    mapped("spec.rootVolume.{size,type}", "KOPS-ig-root-volume", "the root volume of the node group"),
    mapped("spec.{rootVolumeIops,rootVolume.iops}", "KOPS-ig-rootVolumeIops", LT),
    mapped("spec.{rootVolumeThroughput,rootVolume.throughput}", "KOPS-ig-rootVolumeThroughput", LT),
    mapped("spec.{rootVolumeEncryption,rootVolume.encryption}", "KOPS-ig-root-volume", "the root volume of the node group"),
    mapped("spec.{rootVolumeEncryptionKey,rootVolume.encryptionKey}", "KOPS-ig-rootVolumeEncryptionKey", "an own key for root volumes: it belongs into the launch template of the node group"),
    gone("spec.{rootVolumeOptimization,rootVolumeDeleteOnTermination,rootVolume.optimization}", "KOPS-ig-root-volume", "every Nitro type is EBS optimised, and root volumes go with their node"),
    mapped("spec.volumes[].{device,size,type,iops,throughput,encrypted,key,deleteOnTermination}", "KOPS-ig-volumes", "more volumes for each node: they belong into the launch template of the node group"),
    decision("spec.volumeMounts[].{device,filesystem,formatOptions[],mountOptions[],path}", "KOPS-ig-volumeMounts", "mounted by user data"),

    // Network and identity of nodes.
    mapped("spec.additionalSecurityGroups[]", "KOPS-ig-additionalSecurityGroups", "more security groups on each node: rules that trust them do not trust green yet"),
    decision("spec.securityGroupOverride", "KOPS-ig-securityGroupOverride", "a security group of your own"),
    replaced("spec.associatePublicIp", "KOPS-ig-public-ip", "whether nodes have public addresses: the subnet decides, unless a launch template does"),
    replaced("spec.associatePublicIP", "KOPS-ig-public-ip", "whether nodes have public addresses: the subnet decides, unless a launch template does"),
    replaced("spec.iam.profile", "KOPS-ig-iam", "an instance profile of your own: a node group takes a role, and pods get roles of their own"),
    decision("spec.externalLoadBalancers[].{loadBalancerName,targetGroupArn,targetGroupARN}", "KOPS-ig-externalLoadBalancers", "nodes are attached to load balancers outside Kubernetes"),
    replaced("spec.instanceMetadata.httpTokens", "KOPS-ig-instanceMetadata", "EKS demands tokens: an old SDK that cannot ask for one loses the metadata service").when(tokens),
    replaced("spec.instanceMetadata.httpPutResponseHopLimit", "KOPS-ig-instanceMetadata", "the hop limit decides whether pods reach the node's role; EKS's default is 2, kops's 1"),

    // Hosts.
    decision("spec.additionalUserData[].{name,type,content}", "KOPS-ig-additionalUserData", "user data runs on blue's hosts only (content not shown)").secret(),
    decision("spec.hooks[].{name,disabled,roles[],requires[],before[],execContainer.image,execContainer.command[],execContainer.environment.*,manifest,useRawManifest}", "KOPS-ig-hooks", "changes hosts of blue: green's nodes are not changed").secret(),
    decision("spec.fileAssets[].{name,path,roles[],isBase64,mode}", "KOPS-ig-fileAssets", "files on hosts of blue"),
    decision("spec.fileAssets[].content", "KOPS-ig-fileAssets", "files on hosts of blue").secret(),
    decision("spec.packages[]", "KOPS-ig-packages", "packages on hosts of blue"),
    decision("spec.sysctlParameters[]", "KOPS-ig-sysctlParameters", "kernel settings"),
    decision("spec.containerd.{configAdditions.*,registryMirrors.*[],useECRCredentialsForMirrors,nvidiaGPU.enabled,nvidiaGPU.package,nvidiaGPU.dcgmExporter.enabled,nri.enabled,nri.pluginRegistrationTimeout,nri.pluginRequestTimeout,selinuxEnabled}", "KOPS-ig-containerd", "containerd settings"),
    decision("spec.containerd.{configOverride,configFile,registryMirrorAuths[].name,registryMirrorAuths[].username,registryMirrorAuths[].password,registryMirrorAuths[].auth}", "KOPS-ig-containerd", "containerd settings").secret(),
    gone("spec.containerd.{address,logLevel,root,state,skipInstall,version,packages.hashAmd64,packages.hashArm64,packages.urlAmd64,packages.urlArm64,runc.version,runc.packages.hashAmd64,runc.packages.hashArm64,runc.packages.urlAmd64,runc.packages.urlArm64}", "KOPS-containerd-owned", "EKS AMIs bring their own containerd"),
    gone("spec.compressUserData", "KOPS-ig-user-data", "kops's own user data ends with blue"),

    // kubelet of the group.
    gone("spec.kubelet.featureGates.{CSIMigrationAWS,InTreePluginAWSUnregister,CSIMigration}", "KOPS-csi-migration", "a gate of the move from in-tree volumes to the CSI driver, which is over on every version of EKS"),
    decision("spec.kubelet.featureGates.*", "KOPS-kubelet-gates", "feature gates of blue's kubelet: a gate that green's kubelet does not know keeps the node from starting"),
    mapped("spec.kubelet.nodeLabels.*", "KOPS-ig-label", "a label of the node group, where EKS allows the key (eks.md 1.6)"),
    mapped("spec.kubelet.taints[]", "KOPS-ig-taint", "a taint of the node group"),
    mapped("spec.kubelet.anonymousAuth", "KOPS-kubelet-auth", "EKS's kubelet refuses the anonymous too"),
    replaced("spec.kubelet.clusterDomain", "KOPS-field-clusterDNSDomain", "a cluster domain of your own is not supported by EKS's CoreDNS"),
    replaced("spec.kubelet.maxPods", "KOPS-kubelet-max-pods", "goes into the node configuration of the group, but the VPC CNI sets a limit for each instance type: see the node group"),
    replaced(node_config!("spec.kubelet"), "KOPS-ig-kubelet", "goes into kubelet.config of the node configuration of the group"),
    decision("spec.kubelet.{allowedUnsafeSysctls[],experimentalAllowedUnsafeSysctls[]}", "KOPS-ig-kubelet", "sysctls that pods may set: they go into kubelet.config of the node configuration"),
    gone(node_owned!("spec.kubelet"), "KOPS-kubelet-owned", "EKS's nodes set it by themselves"),
    gone(node_dead!("spec.kubelet"), "KOPS-kubelet-dead", "no kubelet of green's age has this setting"),

    // The auto scaling group.
    gone("spec.{suspendProcesses[],instanceProtection}", "KOPS-ig-asg", ASG),
    gone("spec.maxInstanceLifetime", "KOPS-ig-maxInstanceLifetime", "nodes of blue end at an age: EKS owns the auto scaling group of a managed group; Karpenter has expireAfter"),
    gone("spec.capacityRebalance", "KOPS-ig-capacityRebalance", "managed SPOT groups rebalance by themselves"),
    mapped("spec.detailedInstanceMonitoring", "KOPS-ig-detailedInstanceMonitoring", LT),
    mapped("spec.tenancy", "KOPS-ig-tenancy", "dedicated tenancy: it belongs into the launch template of the node group"),
    mapped("spec.cpuCredits", "KOPS-ig-cpuCredits", LT),
    decision("spec.warmPool.{minSize,maxSize,enableLifecycleHook}", "KOPS-ig-warmPool", "a warm pool: a managed node group has one of its own, without lifecycle hook"),
    replaced("spec.rollingUpdate.{maxSurge,maxUnavailable}", "KOPS-rolling-update", "managed node groups roll by updateConfig.maxUnavailable (eks.md 1.6); a surge is EKS's own"),
    gone("spec.rollingUpdate.{drainAndTerminate,exponentialBackoff}", "KOPS-rolling-update", "managed node groups always drain"),
    gone("spec.updatePolicy", "KOPS-operation", "how kops runs its hosts; managed node groups are updated by their own settings"),
    gone("spec.{servesWellKnownServices[],hostedComponents[]}", "KOPS-control-plane", "where kops puts parts of its control plane: EKS runs it"),
    gone("spec.guestAccelerators[].{acceleratorCount,acceleratorType}", "KOPS-other-clouds", "a setting for another cloud: it does nothing on AWS"),
    gone("spec.gcpProvisioningModel", "KOPS-other-clouds", "a setting for another cloud: it does nothing on AWS"),
];
