//! Components of the control plane and of nodes (kops.md 2; field names as in kops's componentconfig).

use super::Fate;
use super::row::{Outcome, Row, decision, gone, mapped, outcome, replaced};
use crate::plan::model::Severity::{Info, Warning};
use serde_json::Value;

fn anonymous(v: &Value) -> Option<Outcome> {
    (v == &Value::Bool(true)).then_some(outcome(
        Fate::Decision,
        "the kubelet of blue answers anybody: EKS's does not",
    ))
}

fn ipvs(v: &Value) -> Option<Outcome> {
    (v.as_str() == Some("ipvs")).then_some(
        outcome(
            Fate::Decision,
            "ipvs: EKS's kube-proxy runs iptables unless told otherwise, and ipvs is deprecated from 1.35",
        )
        .says(Info, "Leave it at iptables, or set the mode in the configuration of the kube-proxy add-on."),
    )
}

fn no_proxy(v: &Value) -> Option<Outcome> {
    (v == &Value::Bool(false)).then_some(
        outcome(
            Fate::Replaced,
            "blue has no kube-proxy (blue's network stands in for it): green has one, as the VPC CNI needs it",
        )
        .says(Info, "Nothing to do, unless Cilium is installed on green."),
    )
}

fn cluster_domain(v: &Value) -> Option<Outcome> {
    super::cluster::ROWS
        .iter()
        .find(|r| r.pattern == "spec.clusterDNSDomain")
        .and_then(|r| r.when)
        .and_then(|f| f(v))
}

/// Kubelet settings that a node configuration of EKS can carry.
macro_rules! node_config {
    ($at:literal) => {
        concat!($at, ".{kubeReserved.*,systemReserved.*,kubeReservedCgroup,systemReservedCgroup,enforceNodeAllocatable,evictionHard,evictionSoft,evictionSoftGracePeriod,evictionPressureTransitionPeriod,evictionMaxPodGracePeriod,evictionMinimumReclaim,cpuManagerPolicy,cpuManagerPolicyOptions.*,cpuCFSQuota,cpuCFSQuotaPeriod,topologyManagerPolicy,topologyManagerScope,memoryManagerPolicy,memorySwapBehavior,failSwapOn,imageGCHighThresholdPercent,imageGCLowThresholdPercent,imageMinimumGCAge,imageMaximumGCAge,podPidsLimit,containerLogMaxSize,containerLogMaxFiles,registryPullQPS,registryBurst,serializeImagePulls,maxParallelImagePulls,seccompDefault,resolvConf,eventQPS,eventBurst,shutdownGracePeriod,shutdownGracePeriodCriticalPods,streamingConnectionIdleTimeout,runtimeRequestTimeout,volumeStatsAggPeriod,nodeStatusUpdateFrequency,kernelMemcgNotification,syncFrequency,protectKernelDefaults,tlsCipherSuites[],tlsMinVersion,hairpinMode}")
    };
}
/// Kubelet settings that the nodes of EKS set by themselves.
macro_rules! node_owned {
    ($at:literal) => {
        concat!($at, ".{authorizationMode,authenticationTokenWebhook,authenticationTokenWebhookCacheTtl,bootstrapKubeconfig,clientCaFile,tlsCertFile,tlsPrivateKeyFile,kubeconfigPath,requireKubeconfig,logFormat,logLevel,podManifestPath,podInfraContainerImage,enableDebuggingHandlers,registerNode,clusterDNS,cloudProvider,kubeletCgroups,runtimeCgroups,readOnlyPort,systemCgroups,cgroupRoot,cgroupDriver,volumePluginDirectory,rootDir,rotateCertificates,housekeepingInterval,seccompProfileRoot,containerRuntime,containerRuntimeEndpoint,hostnameOverride,enableSystemLogQuery}")
    };
}
/// Kubelet settings that no kubelet of today knows.
macro_rules! node_dead {
    ($at:literal) => {
        concat!($at, ".{apiServers,allowPrivileged,networkPluginName,networkPluginMTU,configureCbr0,babysitDaemons,nvidiaGPUs,podCIDR,reconcileCIDR,registerSchedulable,nonMasqueradeCIDR,enableCustomMetrics,imagePullProgressDeadline,dockerDisableSharedPID,enableCadvisorJsonEndpoints}")
    };
}
pub(super) use {node_config, node_dead, node_owned};

const ENDS: &str = "EKS runs the control plane: this setting ends with blue's";
const NOT_SETTABLE: &str = "API server settings cannot be set on EKS";
const CERTS: &str = "keys and files of blue's masters: EKS has its own";
const OIDC: &str = "people log in by OIDC: EKS has one identity provider configuration per cluster, without a CA of its own (IAM-07)";

pub(super) const ROWS: &[Row] = &[
    gone("spec.{kubeAPIServer,kubeControllerManager,kubeScheduler,kubelet,masterKubelet}.featureGates.{CSIMigrationAWS,InTreePluginAWSUnregister,CSIMigration}", "KOPS-csi-migration", "a gate of the move from in-tree volumes to the CSI driver, which is over on every version of EKS"),
    mapped("spec.kubeAPIServer.allowPrivileged", "KOPS-api-privileged", "EKS allows privileged pods too"),
    // kubeAPIServer. What VER-05 says one by one has no second finding here.
    decision("spec.kubeAPIServer.{featureGates.*,runtimeConfig.*,admissionControl[],enableAdmissionPlugins[],appendAdmissionPlugins[],disableAdmissionPlugins[]}", "KOPS-api-ver-05", "EKS has a fixed list of admission plugins, no alpha gates and no API groups to switch on: see VER-05"),
    decision("spec.kubeAPIServer.{authenticationTokenWebhookConfigFile,authorizationWebhookConfigFile,auditWebhookConfigFile,tokenAuthFile,basicAuthFile,serviceNodePortRange}", "KOPS-api-ver-05", "it cannot be had on EKS: see VER-05"),
    decision("spec.kubeAPIServer.{admissionControlConfigFile,authenticationConfigFile,authenticationTokenWebhookVersion,authenticationTokenWebhookCacheTtl,authorizationMode,authorizationWebhookCacheAuthorizedTtl,authorizationWebhookCacheUnauthorizedTtl,authorizationRbacSuperUser,disableBasicAuth,anonymousAuth}", "KOPS-field-kubeAPIServer", NOT_SETTABLE).says(Warning, "Read each one: see VER-05."),
    replaced("spec.kubeAPIServer.{auditLogFormat,auditLogPath,auditLogMaxAge,auditLogMaxBackups,auditLogMaxSize,auditPolicyFile,auditDynamicConfiguration}", "KOPS-api-audit", "audit logs of EKS go to CloudWatch by a policy that cannot be changed").says(Warning, "Switch green's audit log on, and check that what the auditors ask for is in it."),
    decision("spec.kubeAPIServer.{auditWebhookBatchBufferSize,auditWebhookBatchMaxSize,auditWebhookBatchMaxWait,auditWebhookBatchThrottleBurst,auditWebhookBatchThrottleEnable,auditWebhookBatchThrottleQps,auditWebhookInitialBackoff,auditWebhookMode}", "KOPS-api-audit", "how blue's API server calls an audit webhook: EKS calls none (VER-05 speaks of one that is set)"),
    decision("spec.kubeAPIServer.{oidcUsernameClaim,oidcUsernamePrefix,oidcGroupsClaim,oidcGroupsPrefix,oidcIssuerURL,oidcClientID,oidcRequiredClaim[]}", "KOPS-oidc", OIDC),
    decision("spec.kubeAPIServer.oidcCAFile", "KOPS-oidc", "the OIDC provider has a CA of its own: EKS accepts public ones only"),
    replaced("spec.kubeAPIServer.{serviceAccountIssuer,additionalServiceAccountIssuers[],serviceAccountJWKSURI,apiAudiences[]}", "KOPS-api-issuer", "green's tokens come from EKS's issuer, for the audiences of EKS").says(Warning, "Whoever verifies blue's tokens elsewhere (Vault, an OIDC peer) must learn green's issuer."),
    decision("spec.kubeAPIServer.{eventTTL,maxRequestsInflight,maxMutatingRequestsInflight,http2MaxStreamsPerConnection,requestTimeout,minRequestTimeout,watchCache,watchCacheSizes[],goawayChance,defaultNotReadyTolerationSeconds,defaultUnreachableTolerationSeconds,corsAllowedOrigins[],enableAggregatorRouting,enableProfiling,enableContentionProfiling}", "KOPS-field-kubeAPIServer", NOT_SETTABLE).says(Warning, "Read each one: see VER-05."),
    gone("spec.kubeAPIServer.{image,logFormat,logLevel,cloudProvider,securePort,insecurePort,address,advertiseAddress,bindAddress,insecureBindAddress,enableBootstrapTokenAuth,serviceClusterIPRange,apiServerCount,kubeletPreferredAddressTypes[],storageBackend,etcdServers[],etcdServersOverrides[],etcdQuorumRead,targetRamMb,tlsCipherSuites[],tlsMinVersion,cpuRequest,cpuLimit,memoryRequest,memoryLimit}", "KOPS-control-plane", ENDS),
    gone("spec.kubeAPIServer.env[].{name,value}", "KOPS-control-plane", ENDS).secret(),
    gone("spec.kubeAPIServer.{etcdCaFile,etcdCertFile,etcdKeyFile,clientCAFile,tlsCertFile,tlsPrivateKeyFile,kubeletClientCertificate,kubeletCertificateAuthority,kubeletClientKey,proxyClientCertFile,proxyClientKeyFile,requestheaderClientCAFile,serviceAccountKeyFile[],serviceAccountSigningKeyFile,requestheaderUsernameHeaders[],requestheaderGroupHeaders[],requestheaderExtraHeaderPrefixes[],requestheaderAllowedNames[]}", "KOPS-control-plane", CERTS),
    gone("spec.kubeAPIServer.{encryptionProviderConfig,experimentalEncryptionProviderConfig}", "KOPS-field-encryptionConfig", "EKS encrypts all API data by default").says(Info, "Give a KMS key if one is demanded."),

    // kubeControllerManager.
    decision("spec.kubeControllerManager.{horizontalPodAutoscalerSyncPeriod,horizontalPodAutoscalerDownscaleDelay,horizontalPodAutoscalerDownscaleStabilization,horizontalPodAutoscalerUpscaleDelay,horizontalPodAutoscalerInitialReadinessDelay,horizontalPodAutoscalerCpuInitializationPeriod,horizontalPodAutoscalerTolerance,horizontalPodAutoscalerUseRestClients,terminatedPodGCThreshold,nodeMonitorPeriod,nodeMonitorGracePeriod,podEvictionTimeout,experimentalClusterSigningDuration,controllers[],featureGates.*}", "KOPS-field-kubeControllerManager", "controller manager settings cannot be set on EKS").says(Warning, "Read each one."),
    gone("spec.kubeControllerManager.{image,logFormat,logLevel,cloudProvider,clusterName,clusterCIDR,allocateNodeCIDRs,nodeCIDRMaskSize,configureCloudRoutes,cidrAllocatorType,leaderElection.**,attachDetachReconcileSyncPeriod,disableAttachDetachReconcileSync,useServiceAccountCredentials,minResyncPeriod,kubeAPIQPS,kubeAPIBurst,concurrentDeploymentSyncs,concurrentEndpointSyncs,concurrentNamespaceSyncs,concurrentReplicasetSyncs,concurrentServiceSyncs,concurrentResourceQuotaSyncs,concurrentServiceaccountTokenSyncs,concurrentRcSyncs,concurrentHorizontalPodAustoscalerSyncs,concurrentJobSyncs,endpointUpdatesBatchPeriod,endpointSliceUpdatesBatchPeriod,externalCloudVolumePlugin,enableProfiling,enableContentionProfiling,enableLeaderMigration,cpuRequest,cpuLimit,memoryRequest,memoryLimit,tlsCipherSuites[],tlsMinVersion}", "KOPS-control-plane", ENDS),
    gone("spec.kubeControllerManager.{master,serviceAccountPrivateKeyFile,rootCAFile,tlsCertFile,tlsPrivateKeyFile,authenticationKubeconfig,authorizationKubeconfig,authorizationAlwaysAllowPaths[]}", "KOPS-control-plane", CERTS),

    // kubeScheduler.
    decision("spec.kubeScheduler.{usePolicyConfigMap,featureGates.*,maxPersistentVolumes}", "KOPS-field-kubeScheduler", "scheduler settings cannot be set on EKS").says(Warning, "Run a second scheduler if a profile is needed."),
    gone("spec.kubeScheduler.{image,logFormat,logLevel,leaderElection.**,qps,burst,enableProfiling,enableContentionProfiling,cpuRequest,cpuLimit,memoryRequest,memoryLimit,tlsCipherSuites[],tlsMinVersion,kubeAPIQPS,kubeAPIBurst}", "KOPS-control-plane", ENDS),
    gone("spec.kubeScheduler.{master,tlsCertFile,tlsPrivateKeyFile,authenticationKubeconfig,authorizationKubeconfig,authorizationAlwaysAllowPaths[]}", "KOPS-control-plane", CERTS),

    // cloudControllerManager.
    gone("spec.cloudControllerManager", "KOPS-field-cloudControllerManager", "EKS runs its own cloud controller").says(Info, "Nothing to do."),
    gone("spec.cloudControllerManager.{master,logLevel,image,cloudProvider,clusterName,clusterCIDR,allocateNodeCIDRs,configureCloudRoutes,controllers[],cidrAllocatorType,leaderElection.**,useServiceAccountCredentials,enableLeaderMigration,cpuRequest,nodeStatusUpdateFrequency,concurrentNodeSyncs}", "KOPS-field-cloudControllerManager", "EKS runs its own cloud controller").says(Info, "Nothing to do."),

    // etcd: objects move through the API, never the store.
    gone("spec.etcdClusters[].{name,provider,version,image,enableEtcdTLS,enableTLSAuth,leaderElectionTimeout,heartbeatInterval,memoryRequest,cpuRequest,manager.image,manager.discoveryPollInterval,manager.logLevel,manager.listenMetricsURLs[],manager.backupInterval,manager.backupRetentionDays,backups.image}", "KOPS-etcd", "EKS runs its own etcd: objects move through the API, the store does not"),
    gone("spec.etcdClusters[].manager.env[].{name,value}", "KOPS-etcd", "EKS runs its own etcd: objects move through the API, the store does not").secret(),
    gone("spec.etcdClusters[].backups.backupStore", "KOPS-etcd", "backups of blue's etcd stay where they are: blue's own way back until it is removed"),
    gone("spec.etcdClusters[].etcdMembers[].{name,instanceGroup,volumeType,volumeIops,volumeThroughput,volumeSize,kmsKeyId,encryptedVolume}", "KOPS-etcd", "volumes of blue's etcd: they are no volumes of workloads, and stay with blue (kops.md 4.2)"),

    // kubeProxy.
    replaced("spec.kubeProxy.enabled", "KOPS-kube-proxy", "becomes the kube-proxy add-on").when(no_proxy),
    mapped("spec.kubeProxy.proxyMode", "KOPS-kube-proxy", "the mode of the kube-proxy add-on").when(ipvs),
    decision("spec.kubeProxy.{ipvsExcludeCidrs[],ipvsMinSyncPeriod,ipvsScheduler,ipvsSyncPeriod,featureGates.*,conntrackMaxPerCore,conntrackMin,metricsBindAddress}", "KOPS-kube-proxy-settings", "settings of blue's kube-proxy").says(Info, "Put them into the configuration of the kube-proxy add-on if they are needed."),
    gone("spec.kubeProxy.{image,cpuRequest,cpuLimit,memoryRequest,memoryLimit,logLevel,clusterCIDR,hostnameOverride,bindAddress,master}", "KOPS-kube-proxy", "the kube-proxy add-on has its own image, sizes and addresses"),

    // kubelet of workers.
    mapped("spec.kubelet.nodeLabels.*", "KOPS-labels", "labels of every worker: become labels of green's node groups where EKS allows the key"),
    mapped("spec.kubelet.taints[]", "KOPS-taints", "taints of every worker: become taints of green's node groups"),
    replaced("spec.kubelet.maxPods", "KOPS-kubelet-max-pods", "goes into the node configuration of green's groups, but the VPC CNI sets a limit for each instance type: see the node group"),
    replaced(node_config!("spec.kubelet"), "KOPS-kubelet", "goes into kubelet.config of the node configuration of green's groups: each says what is left out (KOPS-ig-kubelet)"),
    decision("spec.kubelet.featureGates.*", "KOPS-kubelet-gates", "feature gates of blue's kubelet: a gate that green's kubelet does not know keeps the node from starting; each node group says what is left out (KOPS-ig-kubelet)"),
    decision("spec.kubelet.{allowedUnsafeSysctls[],experimentalAllowedUnsafeSysctls[]}", "KOPS-kubelet", "sysctls that pods may set: they go into kubelet.config of the node configuration, and into each pod that needs them"),
    mapped("spec.kubelet.anonymousAuth", "KOPS-kubelet-auth", "EKS's kubelet refuses the anonymous too").when(anonymous),
    replaced("spec.kubelet.clusterDomain", "KOPS-field-clusterDNSDomain", "a cluster domain of your own is not supported by EKS's CoreDNS").when(cluster_domain),
    gone(node_owned!("spec.kubelet"), "KOPS-kubelet-owned", "EKS's nodes set it by themselves"),
    gone(node_dead!("spec.kubelet"), "KOPS-kubelet-dead", "no kubelet of green's age has this setting"),

    // kubelet of masters.
    gone("spec.masterKubelet.{nodeLabels.*,taints[],maxPods,featureGates.*,allowedUnsafeSysctls[],experimentalAllowedUnsafeSysctls[],anonymousAuth,clusterDomain}", "KOPS-control-plane", ENDS),
    gone(node_config!("spec.masterKubelet"), "KOPS-control-plane", ENDS),
    gone(node_owned!("spec.masterKubelet"), "KOPS-control-plane", ENDS),
    gone(node_dead!("spec.masterKubelet"), "KOPS-control-plane", ENDS),

    // Runtimes.
    gone("spec.docker.{authorizationPlugins[],bridge,bridgeIP,dataRoot,defaultRuntime,defaultUlimit[],dns[],execOpt[],execRoot,experimental,healthCheck,hosts[],ipMasq,ipTables,liveRestore,logDriver,logLevel,logOpt[],maxConcurrentDownloads,maxConcurrentUploads,maxDownloadAttempts,metricsAddress,mtu,packages.hashAmd64,packages.hashArm64,packages.urlAmd64,packages.urlArm64,selinuxEnabled,skipInstall,storage,storageOpts[],userNamespaceRemap,version}", "KOPS-runtime", "settings of docker: EKS nodes run containerd").says(Info, "Log rotation goes into green's node configuration if it is needed."),
    decision("spec.docker.{insecureRegistry,insecureRegistries[],registryMirrors[]}", "KOPS-docker-registries", "registries that blue's docker reads without TLS or by a mirror: green's containerd knows nothing of them, so images from there are not pulled").says(Warning, "Write them as hosts.toml of containerd into the user data of green's node groups, or pull from a registry with TLS."),
    decision("spec.containerd.{configAdditions.*,registryMirrors.*[],useECRCredentialsForMirrors,nvidiaGPU.enabled,nvidiaGPU.package,nvidiaGPU.dcgmExporter.enabled,nri.enabled,nri.pluginRegistrationTimeout,nri.pluginRequestTimeout,selinuxEnabled}", "KOPS-hosts-containerd", "containerd settings (mirrors, additions): each node group says what it takes over (KOPS-ig-containerd)"),
    decision("spec.containerd.{configOverride,configFile,registryMirrorAuths[].name,registryMirrorAuths[].username,registryMirrorAuths[].password,registryMirrorAuths[].auth}", "KOPS-hosts-containerd", "containerd settings (mirrors, additions): each node group says what it takes over (KOPS-ig-containerd)").secret(),
    gone("spec.containerd.{address,logLevel,root,state,skipInstall,version,packages.hashAmd64,packages.hashArm64,packages.urlAmd64,packages.urlArm64,runc.version,runc.packages.hashAmd64,runc.packages.hashArm64,runc.packages.urlAmd64,runc.packages.urlArm64}", "KOPS-containerd-owned", "EKS AMIs bring their own containerd"),
];
