//! The Cluster document but for its components and its network (kops.md 2).

use super::Fate;
use super::row::{Outcome, Row, decision, gone, mapped, outcome, replaced};
use crate::plan::model::Severity::{Blocker, Info, Warning};
use serde_json::Value;

const KOPS_ONLY: &str =
    "kops keeps its own state and names there: EKS has no such thing, and green does not read it";

/// An add-on that kops runs: said only when it is on.
pub(super) fn off(v: &Value) -> Option<Outcome> {
    (v == &Value::Bool(false)).then_some(outcome(
        Fate::NoMeaning,
        "it is switched off on blue: green does not get it either",
    ))
}

fn legacy_iam(v: &Value) -> Option<Outcome> {
    (v == &Value::Bool(false)).then_some(outcome(
        Fate::NoMeaning,
        "blue's roles are the strict ones of kops; green's roles are made by crossfade",
    ))
}

fn own_domain(v: &Value) -> Option<Outcome> {
    matches!(v.as_str(), Some("cluster.local" | "cluster.local."))
        .then_some(outcome(Fate::Mapped, "cluster.local: the same on EKS"))
}

fn ipv6(v: &Value) -> Option<Outcome> {
    v.as_str().filter(|c| c.contains(':'))?;
    // NET-01 blocks it; two blockers for one fact are one too many.
    Some(outcome(
        Fate::Decision,
        "IPv6 pods: the IP family of EKS is chosen at creation, and crossfade makes IPv4 clusters (NET-01)",
    ))
}

fn lb_type(v: &Value) -> Option<Outcome> {
    (v.as_str() == Some("Internal")).then_some(outcome(
        Fate::Replaced,
        "Internal: blue's API is reached from inside only; EKS's private endpoint does that (green.endpoints)",
    ))
}

fn egress(v: &Value) -> Option<Outcome> {
    let s = v.as_str()?;
    if s.starts_with("i-") {
        return Some(outcome(
            Fate::Mapped,
            "a NAT instance: green's nodes in this subnet leave by it too, so it must outlive blue",
        ));
    }
    (s == "External").then_some(outcome(
        Fate::Mapped,
        "External: somebody else routes this subnet, for green's nodes too",
    ))
}

fn runtime(v: &Value) -> Option<Outcome> {
    (v.as_str() == Some("docker")).then_some(
        outcome(
            Fate::Replaced,
            "docker: EKS nodes run containerd; mounts of docker.sock and of /var/lib/docker break",
        )
        .says(
            Warning,
            "Look for workloads that mount docker.sock or read /var/lib/docker, and change them first.",
        ),
    )
}

fn dns_provider(v: &Value) -> Option<Outcome> {
    (v.as_str() == Some("external-dns")).then_some(
        outcome(
            Fate::Replaced,
            "kops's external-dns ends with blue: green gets its own, which takes over by name",
        )
        .says(Warning, "See the DNS findings."),
    )
}

fn dns_off(v: &Value) -> Option<Outcome> {
    (v == &Value::Bool(true)).then_some(outcome(
        Fate::NoMeaning,
        "kops runs no DNS controller on blue",
    ))
}

/// An empty text is kops's way to say nothing.
fn unset(v: &Value) -> Option<Outcome> {
    (v.as_str() == Some("")).then_some(outcome(Fate::NoMeaning, "empty: as if it were not there"))
}

const API_PINS: &str = "Find the clients, firewalls and auditors that count on it, and give them green's endpoint before the move.";

pub(super) const ROWS: &[Row] = &[
    // Identity and kops's own state (kops.md 1).
    replaced("metadata.name", "KOPS-name", "an EKS name has no dots and at most 100 characters: green is called green.name of migration.yaml"),
    gone("metadata.{creationTimestamp,generation,resourceVersion,uid,selfLink,deletionTimestamp}", "KOPS-metadata", KOPS_ONLY),
    gone("metadata.{labels,annotations}.*", "KOPS-metadata", KOPS_ONLY),
    gone("spec.{channel,configBase,configStore,keyStore,secretStore,project}", "KOPS-state", KOPS_ONLY),
    mapped("spec.cloudProvider", "KOPS-cloud", "aws: crossfade moves within AWS"),
    replaced("spec.kubernetesVersion", "KOPS-version", "green runs green.version of migration.yaml: see VER-01 and `crossfade hazards`"),
    gone("spec.target.terraform.{providerExtraConfig,filesProviderExtraConfig}.*", "KOPS-target", "settings for kops's own Terraform output: green is not made by kops").secret(),
    gone("spec.{updatePolicy,isolateMasters,useHostCertificates}", "KOPS-operation", "how kops runs its hosts; managed node groups are updated by their own settings"),
    replaced("spec.rollingUpdate.{maxSurge,maxUnavailable}", "KOPS-rolling-update", "managed node groups roll by updateConfig.maxUnavailable (eks.md 1.6); a surge is EKS's own"),
    gone("spec.rollingUpdate.{drainAndTerminate,exponentialBackoff}", "KOPS-rolling-update", "managed node groups always drain"),
    gone("spec.ntp.{managed,chrony}", "KOPS-operation", "EKS AMIs keep time by themselves"),
    gone("spec.assets.{containerRegistry,containerProxy,fileRepository}", "KOPS-assets", "only kops's own images and files came from there; images of workloads are not touched"),
    mapped("spec.cloudLabels.*", "KOPS-cloud-labels", "become tags of green's node groups and volumes"),

    // Gossip ends with blue (docs/gossip.md; kops.md 6).
    gone("spec.gossipConfig.{protocol,listen,secondary.protocol,secondary.listen}", "KOPS-field-gossipConfig", "gossip ends with blue").says(Info, "Nothing to do."),
    gone("spec.gossipConfig.{secret,secondary.secret}", "KOPS-field-gossipConfig", "gossip ends with blue").secret(),
    gone("spec.dnsControllerGossipConfig.{protocol,listen,seed,secondary.protocol,secondary.listen,secondary.seed}", "KOPS-field-gossipConfig", "gossip ends with blue"),
    gone("spec.dnsControllerGossipConfig.{secret,secondary.secret}", "KOPS-field-gossipConfig", "gossip ends with blue").secret(),

    // Network of the VPC: the network room answers for addresses.
    mapped("spec.networkID", "KOPS-vpc", "green stands in the same VPC"),
    mapped("spec.{networkCIDR,additionalNetworkCIDRs[]}", "KOPS-vpc", "the VPC's ranges stay; green's service range must lie outside them (NET-01)"),
    gone("spec.podCIDR", "KOPS-pod-cidr", "pods of green have addresses of the VPC's subnets: there is no pod range"),
    replaced("spec.serviceClusterIPRange", "KOPS-service-range", "EKS takes no service range of 100.64.0.0/10: every ClusterIP changes, and the DNS address with them (eks.md 1.2)"),
    replaced("spec.nonMasqueradeCIDR", "KOPS-ipv6", "pods of green have addresses of the VPC; what is masqueraded is a setting of the VPC CNI").when(ipv6),
    mapped("spec.subnets[].{name,zone,region,type,id,cidr,publicIP}", "KOPS-subnets", "private subnets (else public ones) become subnets of green and of its node groups; utility subnets hold load balancers only"),
    mapped("spec.subnets[].egress", "KOPS-subnets", "the way out of the subnet stays: green's nodes have the same addresses for partners").when(egress),
    mapped("spec.subnets[].additionalRoutes[].{cidr,target}", "KOPS-subnets", "routes of the subnet's table stay as they are: green uses the same tables"),
    decision("spec.subnets[].ipv6CIDR", "KOPS-subnets", "an IPv6 range of the subnet stays; green's pods get IPv4 addresses"),
    gone("spec.{DisableSubnetTags,tagSubnets}", "KOPS-subnet-tags", "green's load balancers need their own tag on the subnets, which crossfade adds (kops.md 4.3)"),
    gone("spec.topology.{masters,nodes}", "KOPS-topology", "unused by kops too: the subnets of a node group decide whether it is public"),
    gone("spec.topology.dns.type", "KOPS-topology", "the API of green has EKS's own name; blue's zone is not touched"),
    gone("spec.topology.bastion.{bastionPublicName,idleTimeoutSeconds,loadBalancer.type,loadBalancer.additionalSecurityGroups[]}", "KOPS-bastion", "the bastion goes with blue: reach green's private endpoint by SSM, or keep an instance"),

    // The API's names and doors.
    gone("spec.{masterPublicName,masterInternalName,dnsZone}", "KOPS-api-name", "blue's API names end with blue: green has EKS's own name and certificate, so clients need a new kubeconfig"),
    decision("spec.additionalSans[]", "KOPS-field-additionalSans", "EKS's certificate has no names of your own").says(Warning, "Give clients a new kubeconfig."),
    replaced("spec.api.dns", "KOPS-api-access", "the API of green is reached by EKS's endpoint"),
    replaced("spec.api.loadBalancer.type", "KOPS-api-access", "Public: EKS's public endpoint, with the CIDRs of green.endpointCidrs").when(lb_type),
    gone("spec.api.loadBalancer.{class,crossZoneLoadBalancing,idleTimeoutSeconds,useForInternalApi}", "KOPS-api-access", "EKS runs the API's load balancer"),
    gone("spec.api.loadBalancer.{sslPolicy,accessLog.interval,accessLog.bucketPrefix,subnets[].name}", "KOPS-api-access", "EKS runs the API's load balancer"),
    gone("spec.api.loadBalancer.sslCertificate", "KOPS-api-load-balancer", "EKS's endpoint takes no certificate of your own: clients that trust this one only need EKS's authority").says(Warning, API_PINS).when(unset),
    gone("spec.api.loadBalancer.accessLog.bucket", "KOPS-api-load-balancer", "EKS's endpoint writes no access log: the audit log in CloudWatch says who called").says(Warning, API_PINS).when(unset),
    gone("spec.api.loadBalancer.subnets[].{allocationId,privateIPv4Address}", "KOPS-api-load-balancer", "EKS's endpoint takes no addresses of your own: firewalls that let these through need others").says(Warning, API_PINS).when(unset),
    gone("spec.api.loadBalancer.{securityGroupOverride,additionalSecurityGroups[]}", "KOPS-api-access", "EKS's public endpoint has no security group; the private one has the cluster's"),
    replaced("spec.kubernetesApiAccess[]", "KOPS-api-access", "become the public access CIDRs of green's endpoint; prefix lists (pl-) cannot be given there"),
    gone("spec.{sshAccess[],sshKeyName}", "KOPS-ssh", "green's nodes have no SSH: use SSM"),
    decision("spec.nodePortAccess[]", "KOPS-field-nodePortAccess", "NodePorts are open on blue's nodes").says(Warning, "Open them on green's group if something uses them."),
    decision("spec.egressProxy.{httpProxy.host,httpProxy.port,excludes}", "KOPS-field-egressProxy", "nodes and system pods leave by an HTTP proxy").says(Warning, "Set it on green's nodes and add-ons, with EKS's endpoint and the service range in no_proxy."),

    // Who may do what.
    decision("spec.authorization.alwaysAllow", "KOPS-authz-alwaysallow", "alwaysAllow: on EKS every account that worked without RBAC will be refused (IAM-authz names them)"),
    mapped("spec.authorization.rbac", "KOPS-authz-rbac", "EKS authorises by Node and RBAC too"),
    gone("spec.authentication.kopeio", "KOPS-authn-kopeio", "kopeio's OIDC webhook does not exist on EKS").says(Warning, "Give its users access entries or an OIDC provider of EKS."),
    replaced("spec.authentication.aws", "KOPS-field-authentication", "blue's aws-iam-authenticator: its users become access entries of green (IAM-07 names those that do not)"),
    replaced("spec.authentication.aws.{backendMode,clusterID,image,memoryRequest,cpuRequest,memoryLimit,cpuLimit}", "KOPS-field-authentication", "blue's aws-iam-authenticator: its users become access entries of green (IAM-07 names those that do not)"),
    replaced("spec.authentication.aws.identityMappings[].{arn,username,groups[]}", "KOPS-field-authentication", "blue's aws-iam-authenticator: its users become access entries of green (IAM-07 names those that do not)"),
    decision("spec.authentication.oidc.{clientID,issuerURL,usernameClaim,usernamePrefix,groupsPrefix,groupsClaims[],requiredClaims.*,caFile}", "KOPS-oidc", "people log in by OIDC: EKS has one identity provider configuration per cluster, without a CA of its own (IAM-07)"),
    gone("spec.nodeAuthorization.nodeAuthorizer.{authorizer,features[],image,nodeURL,port,interval,timeout,tokenTTL}", "KOPS-field-nodeAuthorization", "kops's own node authorisation: EKS nodes join by their role").says(Info, "Nothing to do."),
    decision("spec.iam.legacy", "KOPS-iam-legacy", "legacy roles: every pod on blue's nodes may write the state store and the hosted zone (kops.md 5); green's node role may not: see the IAM findings").when(legacy_iam),
    mapped("spec.iam.allowContainerRegistry", "KOPS-iam-registry", "green's node role pulls from ECR (AmazonEC2ContainerRegistryPullOnly)"),
    mapped("spec.iam.permissionsBoundary", "KOPS-iam-boundary", "the boundary is set on green's roles too: see the IAM findings"),
    replaced("spec.iam.useServiceAccountExternalPermissions", "KOPS-iam-service-accounts", "roles of service accounts: on green each gets a role or a second trust statement"),
    replaced("spec.iam.serviceAccountExternalPermissions[].{name,namespace,aws.policyARNs[],aws.inlinePolicy}", "KOPS-iam-service-accounts", "roles of service accounts: on green each gets a role or a second trust statement"),
    replaced("spec.{additionalPolicies.*,externalPolicies.*[]}", "KOPS-iam-node-policies", "grants that pods used through the node role: green gives them to service accounts, see the IAM findings"),
    replaced("spec.serviceAccountIssuerDiscovery.{discoveryStore,enableAWSOIDCProvider,additionalAudiences[]}", "KOPS-field-serviceAccountIssuerDiscovery", "blue's token issuer: green has another one").says(Warning, "Each role gets a second trust statement; whoever verifies blue's tokens elsewhere (Vault) must learn green's issuer."),
    gone("spec.podIdentityWebhook.{enabled,replicas}", "KOPS-field-podIdentityWebhook", "EKS has its own").says(Info, "Nothing to do.").when(off),

    // Hosts.
    replaced("spec.containerRuntime", "KOPS-runtime", "containerd, as on EKS").when(runtime),
    decision("spec.hooks[].{name,disabled,roles[],requires[],before[],execContainer.image,execContainer.command[],execContainer.environment.*,manifest,useRawManifest}", "KOPS-hosts-hooks", "hooks change hosts of blue: each node group says whether they come along (KOPS-ig-host)").secret(),
    decision("spec.fileAssets[].{name,path,roles[],isBase64,mode}", "KOPS-hosts-fileAssets", "files on hosts of blue: each node group says whether they come along (KOPS-ig-host)"),
    decision("spec.fileAssets[].content", "KOPS-hosts-fileAssets", "files on hosts of blue: each node group says whether they come along (KOPS-ig-host)").secret(),
    decision("spec.packages[]", "KOPS-hosts-packages", "packages on hosts of blue: each node group says whether they come along (KOPS-ig-host)"),
    decision("spec.sysctlParameters[]", "KOPS-hosts-sysctlParameters", "kernel settings of blue's hosts: each node group says whether they come along (KOPS-ig-host)"),
    decision("spec.warmPool.{minSize,maxSize,enableLifecycleHook}", "KOPS-hosts-warmPool", "a warm pool for all groups: each node group says what becomes of it (KOPS-ig-warmPool)"),
    gone("spec.encryptionConfig", "KOPS-field-encryptionConfig", "EKS encrypts all API data by default").says(Info, "Give a KMS key if one is demanded.").when(off),

    // Add-ons that kops runs.
    decision("spec.addons[].manifest", "KOPS-field-addons", "manifests that blue's masters apply").says(Warning, "Fetch and treat them as workloads."),
    replaced("spec.externalDns.provider", "KOPS-field-externalDns", "dns-controller ends with blue, and EKS has none: what it named by annotation needs ExternalDNS").says(Warning, "See the DNS findings.").when(dns_provider),
    replaced("spec.externalDns.disable", "KOPS-field-externalDns", "kops's DNS controller ends with blue").when(dns_off),
    replaced("spec.externalDns.{watchIngress,watchNamespace}", "KOPS-field-externalDns", "what blue's DNS controller looked at: green's ExternalDNS takes over by name").says(Warning, "See the DNS findings."),
    replaced("spec.clusterAutoscaler.enabled", "KOPS-field-clusterAutoscaler", "kops runs the cluster autoscaler: green needs its chart (EKS-components says how)").when(off),
    replaced("spec.clusterAutoscaler.{expander,priorities.*[],balanceSimilarNodeGroups,emitPerNodegroupMetrics,awsUseStaticInstanceList,ignoreDaemonSetsUtilization,scaleDownUtilizationThreshold,skipNodesWithCustomControllerPods,skipNodesWithSystemPods,skipNodesWithLocalStorage,newPodScaleUpDelay,scaleDownDelayAfterAdd,scaleDownUnneededTime,scaleDownUnreadyTime,cordonNodeBeforeTerminating,image,memoryRequest,cpuRequest,maxNodeProvisionTime,podAnnotations.*,createPriorityExpanderConfig,customPriorityExpanderConfig.*[]}", "KOPS-field-clusterAutoscaler", "settings of kops's cluster autoscaler: give them to green's"),
    replaced("spec.metricsServer.enabled", "KOPS-field-metricsServer", "becomes the metrics-server add-on").says(Info, "Nothing to do.").when(off),
    replaced("spec.metricsServer.{image,insecure}", "KOPS-field-metricsServer", "the add-on has its own image and certificates"),
    gone("spec.nodeTerminationHandler.enabled", "KOPS-field-nodeTerminationHandler", "managed node groups drain spot nodes themselves").says(Info, "Nothing to do.").when(off),
    gone("spec.nodeTerminationHandler.{enableSpotInterruptionDraining,enableScheduledEventDraining,enableRebalanceMonitoring,enableRebalanceDraining,enablePrometheusMetrics,prometheusEnable,enableSQSTerminationDraining,managedASGTag,excludeFromLoadBalancers,memoryRequest,cpuRequest,version,taintNode,podTerminationGracePeriod,deleteSQSMsgIfNodeNotFound}", "KOPS-field-nodeTerminationHandler", "managed node groups drain spot nodes themselves; its queue and rules go with blue"),
    gone("spec.nodeTerminationHandler.webhookURL", "KOPS-field-nodeTerminationHandler", "managed node groups drain spot nodes themselves").secret(),
    replaced("spec.nodeProblemDetector.enabled", "KOPS-field-nodeProblemDetector", "becomes the eks-node-monitoring-agent add-on").when(off),
    replaced("spec.nodeProblemDetector.{image,memoryRequest,cpuRequest,memoryLimit,cpuLimit}", "KOPS-field-nodeProblemDetector", "the eks-node-monitoring-agent add-on has its own image and sizes"),
    replaced("spec.snapshotController.enabled", "KOPS-field-snapshotController", "becomes the snapshot-controller add-on").says(Info, "Nothing to do.").when(off),
    replaced("spec.snapshotController.installDefaultClass", "KOPS-field-snapshotController", "the add-on brings no VolumeSnapshotClass: make one on green when snapshots are taken there"),
    replaced("spec.certManager.enabled", "KOPS-field-certManager", "becomes the cert-manager add-on").when(off),
    replaced("spec.certManager.{managed,image,defaultIssuer,nameservers[],hostedZoneIDs[],featureGates.*}", "KOPS-field-certManager", "settings of kops's cert-manager: give them to green's cert-manager add-on"),
    replaced("spec.awsLoadBalancerController.enabled", "KOPS-field-awsLoadBalancerController", "kops runs the load balancer controller: green needs its chart (EKS-components says how)").when(off),
    replaced("spec.awsLoadBalancerController.{version,enableWAF,enableWAFv2,enableShield,memoryRequest,cpuRequest,memoryLimit,cpuLimit}", "KOPS-field-awsLoadBalancerController", "settings of kops's load balancer controller: give them to green's"),
    decision("spec.karpenter.enabled", "KOPS-field-karpenter", "kops runs Karpenter: green needs its chart and NodePools (EKS-components says how)").when(off),
    decision("spec.karpenter.{image,version,logFormat,logEncoding,logLevel,memoryLimit,memoryRequest,cpuRequest,featureGates}", "KOPS-field-karpenter", "settings of kops's Karpenter: give them to green's"),
    replaced("spec.cloudConfig.awsEBSCSIDriver.enabled", "KOPS-field-awsEBSCSIDriver", "becomes the aws-ebs-csi-driver add-on").says(Info, "Nothing to do."),
    replaced("spec.cloudConfig.awsEBSCSIDriver.{managed,version,volumeAttachLimit,podAnnotations.*,kubeAPIQPS,kubeAPIBurst,hostNetwork}", "KOPS-field-awsEBSCSIDriver", "becomes the aws-ebs-csi-driver add-on, with settings of its own"),
    replaced("spec.cloudConfig.manageStorageClasses", "KOPS-storage-classes", "kops's storage classes are made again on green with the CSI provisioner: claims name them"),
    decision("spec.cloudConfig.{disableSecurityGroupIngress,elbSecurityGroup,nlbSecurityGroupMode}", "KOPS-field-cloudConfig", "how the in-tree provider opened load balancers to nodes").says(Info, "Set it as annotations of Services, or on the load balancer controller."),
    decision("spec.cloudConfig.nodeIPFamilies[]", "KOPS-field-cloudConfig", "IP families of nodes: EKS chooses one at creation"),
    gone("spec.cloudConfig.useIPBasedNodeNames", "KOPS-node-names", "nodes of green have names of their own: nothing that is keyed by a node's name carries over"),
    gone("spec.cloudConfig.{spotinstProduct,spotinstOrientation}", "KOPS-spotinst", "Spotinst groups of kops: Ocean has an EKS product of its own").says(Warning, "Decide whether green's nodes are managed node groups or Ocean's."),
    gone("spec.cloudConfig.{multizone,nodeTags,nodeInstancePrefix,gceServiceAccount,gcpPDCSIDriver.enabled,gcpPDCSIDriver.defaultStorageClassName,binariesLocation,vSphereUsername,vSphereServer,vSphereDatacenter,vSphereResourcePool,vSphereDatastore,vSphereCoreDNSServer}", "KOPS-other-clouds", "a setting for another cloud: it does nothing on AWS"),
    gone("spec.cloudConfig.vSpherePassword", "KOPS-other-clouds", "a setting for another cloud: it does nothing on AWS").secret(),
    gone("spec.cloudConfig.{openstack,azure}.**", "KOPS-other-clouds", "a setting for another cloud: it does nothing on AWS").secret(),

    // DNS inside the cluster.
    replaced("spec.clusterDNSDomain", "KOPS-field-clusterDNSDomain", "a cluster domain of your own is not supported by EKS's CoreDNS").says(Blocker, "Workloads must use cluster.local.").when(own_domain),
    replaced("spec.kubeDNS.domain", "KOPS-field-clusterDNSDomain", "a cluster domain of your own is not supported by EKS's CoreDNS").says(Blocker, "Workloads must use cluster.local.").when(own_domain),
    replaced("spec.kubeDNS.provider", "KOPS-dns-provider", "becomes the coredns add-on"),
    replaced("spec.kubeDNS.serverIP", "KOPS-service-range", "the DNS address is the tenth of green's service range: it changes"),
    mapped("spec.kubeDNS.{stubDomains.*[],upstreamNameservers[],externalCoreFile}", "KOPS-field-kubeDNS", "stub zones, upstreams and the Corefile of blue come along in the corefile of green's coredns add-on").says(Warning, "Check that these servers answer addresses of green's pods."),
    gone("spec.kubeDNS.{cacheMaxSize,cacheMaxConcurrent,image,coreDNSImage,cpaImage,replicas,memoryRequest,cpuRequest,memoryLimit}", "KOPS-dns-sizes", "the coredns add-on has its own image and sizes"),
    replaced("spec.kubeDNS.{tolerations[].**,affinity.**,podAnnotations.*}", "KOPS-dns-sizes", "placement of blue's DNS pods: give it to the coredns add-on if it is needed"),
    decision("spec.kubeDNS.nodeLocalDNS.enabled", "KOPS-node-local-dns", "a DNS cache on every node: EKS has no add-on for it (EKS-components says how to have it)").when(off),
    mapped("spec.kubeDNS.nodeLocalDNS.{externalCoreFile,additionalConfig}", "KOPS-node-local-dns", "zones of blue's DNS cache come along in the corefile of green's coredns add-on (EKS-components names them)"),
    decision("spec.kubeDNS.nodeLocalDNS.{localIP,forwardToKubeDNS,image,memoryRequest,cpuRequest,podAnnotations.*}", "KOPS-node-local-dns", "settings of blue's DNS cache on every node: they go with it"),
];
