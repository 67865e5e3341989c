//! The pod network (kops.md 2): all become the VPC CNI; what each leaves behind.

use super::Fate;
use super::row::{Outcome, Row, decision, gone, outcome, replaced};
use crate::plan::model::Severity::{Blocker, Info, Warning};
use serde_json::Value;

fn switched_on(v: &Value) -> bool {
    v == &Value::Bool(true)
}

fn encryption(v: &Value) -> Option<Outcome> {
    switched_on(v).then_some(ENCRYPTED)
}
fn encryption_type(v: &Value) -> Option<Outcome> {
    v.as_str()
        .is_some_and(|t| !t.is_empty())
        .then_some(ENCRYPTED)
}
const ENCRYPTED: Outcome = outcome(
    Fate::Decision,
    "traffic between pods is encrypted on blue: the VPC CNI does not do that",
)
.says(
    Blocker,
    "Decide: Nitro instances encrypt between each other, or install Cilium or a mesh on green.",
);

fn bpf(v: &Value) -> Option<Outcome> {
    switched_on(v).then_some(
        outcome(
            Fate::Decision,
            "Calico's eBPF data plane: the VPC CNI has none",
        )
        .says(
            Warning,
            "Check what relies on it (client addresses, no kube-proxy).",
        ),
    )
}
fn secondary(v: &Value) -> Option<Outcome> {
    switched_on(v).then_some(outcome(
        Fate::Replaced,
        "usesSecondaryIP: blue's own network gives pods addresses of network interfaces, as the VPC CNI does",
    ))
}
fn mesh(v: &Value) -> Option<Outcome> {
    v.as_str()
        .is_some_and(|t| !t.is_empty() && t != "default")
        .then_some(
            outcome(
                Fate::Decision,
                "a name in a mesh of Cilium clusters: green does not join the mesh",
            )
            .says(
                Blocker,
                "Find the peers of the mesh and decide how they reach green.",
            ),
        )
}

const CALICO: &str =
    "becomes the VPC CNI: NetworkPolicies carry over, objects of projectcalico.org do not";
const CILIUM: &str =
    "becomes the VPC CNI: CiliumNetworkPolicies, encryption and mesh do not carry over";
const POLICY: &str =
    "Network policy is switched on in green's vpc-cni add-on: test a connection that must fail.";
const LIST: &str = "List what is used; run Cilium on green by hand if it is needed.";
const CAP: &str = "Check CAP-04.";
const VPC: &str = "becomes the VPC CNI";
const DEAD: &str = "kops does not use this setting either";

pub(super) const ROWS: &[Row] = &[
    replaced("spec.networking.kubenet", "KOPS-net-kubenet", "becomes the VPC CNI: pods take addresses of the VPC").says(Info, CAP),
    replaced("spec.networking.classic", "KOPS-net-classic", VPC).says(Info, CAP),
    replaced("spec.networking.external", "KOPS-net-external", "an external network").says(Warning, "Find out what it is."),
    replaced("spec.networking.kopeio", "KOPS-net-kopeio", VPC).says(Info, CAP),
    replaced("spec.networking.cni", "KOPS-net-cni", "a network of your own, unknown to kops").says(Warning, "Find it in the cluster: it becomes the VPC CNI."),
    replaced("spec.networking.cni.usesSecondaryIP", "KOPS-net-cni", "a network of your own, unknown to kops").says(Warning, "Find it in the cluster: it becomes the VPC CNI.").when(secondary),
    replaced("spec.networking.weave", "KOPS-net-weave", "becomes the VPC CNI: its encryption has no equivalent").says(Warning, "Check NetworkPolicies and CAP-04."),
    replaced("spec.networking.weave.{mtu,connLimit,noMasqLocal,memoryRequest,cpuRequest,memoryLimit,cpuLimit,npcMemoryRequest,npcCPURequest,npcMemoryLimit,npcCPULimit,npcExtraArgs,netExtraArgs,version}", "KOPS-net-weave", "becomes the VPC CNI: its encryption has no equivalent").says(Warning, "Check NetworkPolicies and CAP-04."),
    replaced("spec.networking.flannel", "KOPS-net-flannel", VPC).says(Info, CAP),
    replaced("spec.networking.flannel.{backend,disableTxChecksumOffloading,iptablesResyncSeconds}", "KOPS-net-flannel", VPC).says(Info, CAP),
    replaced("spec.networking.canal", "KOPS-net-canal", "becomes the VPC CNI: its policy agent enforces NetworkPolicies").says(Warning, POLICY),
    replaced("spec.networking.canal.{chainInsertMode,cpuRequest,defaultEndpointToHostAction,disableFlannelForwardRules,flanneldIptablesForwardRules,disableTxChecksumOffloading,iptablesBackend,logSeveritySys,mtu,prometheusGoMetricsEnabled,prometheusMetricsEnabled,prometheusMetricsPort,prometheusProcessMetricsEnabled,typhaPrometheusMetricsEnabled,typhaPrometheusMetricsPort,typhaReplicas}", "KOPS-net-canal", "becomes the VPC CNI: its policy agent enforces NetworkPolicies").says(Warning, POLICY),

    replaced("spec.networking.calico", "KOPS-net-calico", CALICO).says(Warning, POLICY),
    gone("spec.networking.calico.wireguardEnabled", "KOPS-net-encryption", "no encryption between pods, as on EKS").when(encryption),
    gone("spec.networking.calico.bpfEnabled", "KOPS-net-calico-bpf", "no eBPF data plane, as on EKS").when(bpf),
    gone("spec.networking.calico.{majorVersion,crossSubnet}", "KOPS-net-calico", CALICO).says(Warning, POLICY),
    replaced("spec.networking.calico.{registry,version,allowIPForwarding,awsSrcDstCheck,bpfExternalServiceMode,bpfKubeProxyIptablesCleanupEnabled,bpfLogLevel,chainInsertMode,cpuRequest,encapsulationMode,ipipMode,ipv4AutoDetectionMethod,ipv6AutoDetectionMethod,iptablesBackend,logSeverityScreen,mtu,prometheusMetricsEnabled,prometheusMetricsPort,prometheusGoMetricsEnabled,prometheusProcessMetricsEnabled,typhaPrometheusMetricsEnabled,typhaPrometheusMetricsPort,typhaReplicas,vxlanMode}", "KOPS-net-calico", CALICO).says(Warning, POLICY),

    replaced("spec.networking.cilium", "KOPS-net-cilium", CILIUM).says(Warning, LIST),
    gone("spec.networking.cilium.enableEncryption", "KOPS-net-encryption", "no encryption between pods, as on EKS").when(encryption),
    gone("spec.networking.cilium.encryptionType", "KOPS-net-encryption", "no encryption between pods, as on EKS").when(encryption_type),
    gone("spec.networking.cilium.{clusterName,clusterID}", "KOPS-net-mesh", "no mesh of clusters").when(mesh),
    replaced("spec.networking.cilium.{hubble.enabled,hubble.metrics[]}", "KOPS-net-hubble", "Hubble shows flows on blue: EKS has no such add-on").says(Info, "Install another flow log on green if people look at it."),
    replaced("spec.networking.cilium.{ingress,gatewayAPI}.{enabled,enableSecretsSync,enforceHttps,defaultLoadBalancerMode,loadBalancerAnnotationPrefixes,sharedLoadBalancerServiceName}", "KOPS-net-cilium-ingress", "Cilium is also an ingress or gateway on blue: green needs another controller for it").says(Warning, "Choose an ingress controller for green before the replay."),
    replaced("spec.networking.cilium.{version,ipam,tunnel,disableMasquerade,masquerade,enablePolicy,enableL7Proxy,enableLocalRedirectPolicy,enableBPFMasquerade,enableEndpointHealthChecking,enablePrometheusMetrics,enableServiceTopology,enableNodePort,enableHostReachableServices,enableRemoteNodeIdentity,enableUnreachableRoutes,enableNodeEncryption,etcdManaged,identityAllocationMode,identityChangeGracePeriod,IPTablesRulesNoinstall,installIptablesRules,autoDirectNodeRoutes,chainingMode,cniExclusive,memoryRequest,cpuRequest,agentPrometheusPort,agentPodAnnotations.*,operatorPodAnnotations.*,metrics[],debug,disableEndpointCRD,disableCNPStatusUpdates,monitorAggregation,nodeInitBootstrapFile,preallocateBPFMaps,sidecarIstioProxyImage,toFqdnsDnsRejectResponseCode,toFQDNsDNSRejectResponseCode,toFqdnsEnablePoller,toFQDNsEnablePoller,bpfCTGlobalTCPMax,bpfCTGlobalAnyMax,bpfLBAlgorithm,bpfLBMaglevTableSize,bpfLBMapMax,bpfLBSockHostNSOnly,bpfNATGlobalMax,bpfNeighGlobalMax,bpfPolicyMapMax,registry}", "KOPS-net-cilium", CILIUM).says(Warning, LIST),
    gone("spec.networking.cilium.{accessLog,agentLabels[],allowLocalhost,autoIpv6NodeRoutes,bpfRoot,containerRuntime[],containerRuntimeEndpoint.*,containerRuntimeLabels,debugVerbose[],device,disableConntrack,disableIpv4,disableK8sServices,enableTracing,enableipv4,enableipv6,envoyLog,ipv4ClusterCidrMaskSize,ipv4Node,ipv4Range,ipv4ServiceRange,ipv6ClusterAllocCidr,ipv6Node,ipv6Range,ipv6ServiceRange,k8sApiServer,k8sKubeconfigPath,keepBpfTemplates,keepConfig,labelPrefixFile,labels[],lb,libDir,logDriver[],logOpt.*,logstash,logstashAgent,logstashProbeTimer,nat46Range,pprof,prefilterDevice,prometheusServeAddr,removeCbrBridge,restartPods,reconfigureKubelet,cniBinPath,restore,singleClusterRoute,socketPath,stateDir,tracePayloadlen}", "KOPS-net-unused", DEAD),

    replaced("spec.networking.{amazonvpc,amazonVPC}", "KOPS-net-amazonvpc", "the same CNI; its env settings become add-on configuration").says(Info, "Nothing to do: EKS-components names what the add-on does not take."),
    replaced("spec.networking.{amazonvpc,amazonVPC}.env[].{name,value}", "KOPS-net-amazonvpc", "the same CNI; its env settings become add-on configuration").says(Info, "Nothing to do: EKS-components names what the add-on does not take."),
    gone("spec.networking.{amazonvpc,amazonVPC}.{imageName,initImageName,networkPolicyAgentImage}", "KOPS-net-amazonvpc", "the vpc-cni add-on has its own image").says(Info, "Nothing to do: EKS-components names what the add-on does not take."),
    replaced("spec.networking.{kuberouter,kubeRouter}", "KOPS-net-kuberouter", "becomes the VPC CNI: its service proxy has no equivalent").says(Warning, "Check NetworkPolicies and CAP-04."),
    replaced("spec.networking.romana", "KOPS-net-romana", VPC).says(Warning, CAP),
    replaced("spec.networking.romana.{daemonServiceIP,etcdServiceIP}", "KOPS-net-romana", VPC).says(Warning, CAP),
    replaced("spec.networking.lyftvpc", "KOPS-net-lyftvpc", VPC).says(Info, CAP),
    replaced("spec.networking.lyftvpc.subnetTags.*", "KOPS-net-lyftvpc", VPC).says(Info, CAP),
    replaced("spec.networking.kindnet", "KOPS-net-kindnet", VPC).says(Info, CAP),
    replaced("spec.networking.kindnet.{version,networkPolicies,adminNetworkPolicies,baselineAdminNetworkPolicies,dnsCaching,nat64,fastPathThreshold,logLevel,masquerade.enabled,masquerade.nonMasqueradeCIDRs[]}", "KOPS-net-kindnet", VPC).says(Info, CAP),
    decision("spec.networking.{gce,gcp}", "KOPS-net-gce", "a network of another cloud").says(Blocker, "crossfade moves clusters within AWS only."),
];
