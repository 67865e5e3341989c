//! The types of the fields that crossfade or kops itself reads. kops decodes strictly by type, so a value of another type was never
//! read by kops either; here it is an error with its place, since the planner would take it for absent (kops.md 1.2, 1.5).

use super::leaves::{push_index, push_key};
use serde_json::Value;

/// A type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum T {
    /// Text.
    S,
    /// Whole number from 0 to 2147483647.
    I,
    /// Whole number, negative too.
    Signed,
    /// Truth value.
    B,
    /// Map.
    M,
    /// List.
    L,
    /// List of texts.
    Ss,
    /// Map of texts.
    Sm,
    /// Quantity: text or number, as in `200m`, `2`.
    Q,
}
use T::*;

/// Fields of either document. `[]` is each item of a list, `*` each value of a map.
const METADATA: &[(T, &[&str])] = &[
    (M, &["metadata", "spec"]),
    (S, &["metadata.name"]),
    (Sm, &["metadata.labels", "metadata.annotations"]),
];

#[rustfmt::skip]
const CLUSTER: &[(T, &[&str])] = &[
    (
        M,
        &[
            "api", "api.dns", "api.loadBalancer", "api.loadBalancer.accessLog", "assets", "authentication", "authentication.aws",
            "authentication.aws.identityMappings[]", "authorization", "authorization.alwaysAllow", "authorization.rbac",
            "awsLoadBalancerController", "certManager", "cloudConfig", "cloudConfig.awsEBSCSIDriver", "cloudControllerManager",
            "clusterAutoscaler", "containerd", "containerd.registryMirrors", "docker", "egressProxy", "egressProxy.httpProxy", "etcdClusters[]",
            "etcdClusters[].backups", "etcdClusters[].etcdMembers[]", "etcdClusters[].manager", "externalDns", "externalPolicies",
            "fileAssets[]", "hooks[]", "hooks[].execContainer", "iam", "iam.serviceAccountExternalPermissions[]",
            "iam.serviceAccountExternalPermissions[].aws", "karpenter", "kubeAPIServer", "kubeControllerManager", "kubeDNS",
            "kubeDNS.nodeLocalDNS", "kubeDNS.stubDomains", "kubeProxy", "kubeScheduler", "kubelet", "masterKubelet", "metricsServer",
            "networking", "networking.amazonvpc", "networking.calico", "networking.canal", "networking.cilium", "networking.classic",
            "networking.cni", "networking.external", "networking.flannel", "networking.kindnet", "networking.kopeio", "networking.kubenet",
            "networking.kuberouter", "networking.lyftvpc", "networking.romana", "networking.weave", "nodeProblemDetector",
            "nodeTerminationHandler", "podIdentityWebhook", "rollingUpdate", "serviceAccountIssuerDiscovery", "snapshotController",
            "subnets[]", "topology", "topology.bastion", "topology.dns", "warmPool",
        ],
    ),
    (
        L,
        &[
            "addons", "api.loadBalancer.subnets", "authentication.aws.identityMappings", "etcdClusters", "etcdClusters[].etcdMembers",
            "fileAssets", "hooks", "iam.serviceAccountExternalPermissions", "networking.amazonvpc.env", "subnets", "subnets[].additionalRoutes",
        ],
    ),
    (
        S,
        &[
            "addons[].manifest", "api.loadBalancer.class", "api.loadBalancer.securityGroupOverride", "api.loadBalancer.sslCertificate",
            "api.loadBalancer.sslPolicy", "api.loadBalancer.type", "assets.containerProxy", "assets.containerRegistry",
            "assets.fileRepository", "authentication.aws.backendMode", "authentication.aws.clusterID",
            "authentication.aws.identityMappings[].arn", "authentication.aws.identityMappings[].username", "channel", "cloudProvider",
            "clusterAutoscaler.expander", "clusterDNSDomain", "configBase", "containerRuntime", "containerd.version", "dnsZone",
            "docker.logDriver", "docker.storage", "docker.version", "egressProxy.excludes", "egressProxy.httpProxy.host",
            "etcdClusters[].backups.backupStore", "etcdClusters[].etcdMembers[].instanceGroup", "etcdClusters[].etcdMembers[].kmsKeyId",
            "etcdClusters[].etcdMembers[].name", "etcdClusters[].etcdMembers[].volumeType", "etcdClusters[].image", "etcdClusters[].name",
            "etcdClusters[].provider", "etcdClusters[].version", "externalDns.provider", "externalDns.watchNamespace",
            "fileAssets[].content", "fileAssets[].name", "fileAssets[].path", "hooks[].execContainer.image", "hooks[].manifest",
            "hooks[].name", "iam.permissionsBoundary", "iam.serviceAccountExternalPermissions[].aws.inlinePolicy",
            "iam.serviceAccountExternalPermissions[].name", "iam.serviceAccountExternalPermissions[].namespace", "keyStore",
            "kubeAPIServer.auditLogPath", "kubeAPIServer.auditPolicyFile", "kubeAPIServer.oidcClientID", "kubeAPIServer.oidcGroupsClaim",
            "kubeAPIServer.oidcGroupsPrefix", "kubeAPIServer.oidcIssuerURL", "kubeAPIServer.oidcUsernameClaim",
            "kubeAPIServer.oidcUsernamePrefix", "kubeAPIServer.serviceAccountIssuer", "kubeAPIServer.serviceAccountJWKSURI",
            "kubeAPIServer.serviceNodePortRange", "kubeControllerManager.clusterCIDR", "kubeDNS.domain", "kubeDNS.externalCoreFile",
            "kubeDNS.nodeLocalDNS.localIP", "kubeDNS.provider", "kubeProxy.proxyMode", "kubernetesVersion", "masterInternalName",
            "masterPublicName", "networkCIDR", "networkID", "networking.cilium.ipam", "networking.cilium.version", "nonMasqueradeCIDR",
            "podCIDR", "project", "secretStore", "serviceAccountIssuerDiscovery.discoveryStore", "serviceClusterIPRange", "sshKeyName",
            "subnets[].cidr", "subnets[].egress", "subnets[].id", "subnets[].ipv6CIDR", "subnets[].name", "subnets[].publicIP",
            "subnets[].region", "subnets[].type", "subnets[].zone", "topology.bastion.bastionPublicName", "topology.dns.type",
            "topology.masters", "topology.nodes", "updatePolicy",
        ],
    ),
    (
        Ss,
        &[
            "additionalNetworkCIDRs", "additionalSans", "api.loadBalancer.additionalSecurityGroups",
            "authentication.aws.identityMappings[].groups", "containerd.registryMirrors.*", "docker.execOpt", "docker.logOpt",
            "externalPolicies.*", "fileAssets[].roles", "hooks[].roles", "iam.serviceAccountExternalPermissions[].aws.policyARNs",
            "kubeAPIServer.additionalServiceAccountIssuers", "kubeAPIServer.admissionControl", "kubeAPIServer.apiAudiences",
            "kubeAPIServer.appendAdmissionPlugins", "kubeAPIServer.disableAdmissionPlugins", "kubeAPIServer.enableAdmissionPlugins",
            "kubeDNS.stubDomains.*", "kubeDNS.upstreamNameservers", "kubernetesApiAccess", "nodePortAccess",
            "serviceAccountIssuerDiscovery.additionalAudiences", "sshAccess", "sysctlParameters",
        ],
    ),
    (
        Sm,
        &["additionalPolicies", "cloudLabels", "kubeAPIServer.featureGates", "kubeAPIServer.runtimeConfig", "kubeControllerManager.featureGates"],
    ),
    (
        B,
        &[
            "DisableSubnetTags", "api.loadBalancer.crossZoneLoadBalancing", "api.loadBalancer.useForInternalApi",
            "awsLoadBalancerController.enabled", "certManager.enabled", "cloudConfig.awsEBSCSIDriver.enabled",
            "cloudConfig.disableSecurityGroupIngress", "cloudConfig.manageStorageClasses", "clusterAutoscaler.enabled", "encryptionConfig",
            "etcdClusters[].enableEtcdTLS", "etcdClusters[].etcdMembers[].encryptedVolume", "externalDns.disable", "externalDns.watchIngress",
            "fileAssets[].isBase64", "hooks[].disabled", "iam.allowContainerRegistry", "iam.legacy",
            "iam.useServiceAccountExternalPermissions", "isolateMasters", "karpenter.enabled", "kubeDNS.nodeLocalDNS.enabled",
            "kubeProxy.enabled", "metricsServer.enabled", "networking.cilium.enableNodePort", "nodeTerminationHandler.enableSQSTerminationDraining",
            "nodeTerminationHandler.enabled", "podIdentityWebhook.enabled", "rollingUpdate.drainAndTerminate",
            "serviceAccountIssuerDiscovery.enableAWSOIDCProvider", "snapshotController.enabled", "useHostCertificates",
            "warmPool.enableLifecycleHook",
        ],
    ),
    (
        I,
        &[
            "api.loadBalancer.accessLog.interval", "api.loadBalancer.idleTimeoutSeconds", "egressProxy.httpProxy.port",
            "etcdClusters[].etcdMembers[].volumeIops", "etcdClusters[].etcdMembers[].volumeSize", "kubeAPIServer.auditLogMaxAge",
            "kubeAPIServer.auditLogMaxBackups", "kubeAPIServer.auditLogMaxSize", "warmPool.maxSize", "warmPool.minSize",
        ],
    ),
    (Q, &["etcdClusters[].cpuRequest", "etcdClusters[].memoryRequest", "rollingUpdate.maxSurge", "rollingUpdate.maxUnavailable"]),
];

#[rustfmt::skip]
const GROUP: &[(T, &[&str])] = &[
    (
        M,
        &[
            "additionalUserData[]", "containerd", "externalLoadBalancers[]", "fileAssets[]", "hooks[]", "hooks[].execContainer", "iam",
            "instanceMetadata", "kubelet", "mixedInstancesPolicy", "mixedInstancesPolicy.instanceRequirements",
            "mixedInstancesPolicy.instanceRequirements.cpu", "mixedInstancesPolicy.instanceRequirements.memory", "rollingUpdate",
            "volumeMounts[]", "volumes[]", "warmPool",
        ],
    ),
    (L, &["additionalUserData", "externalLoadBalancers", "fileAssets", "hooks", "volumeMounts", "volumes"]),
    (
        S,
        &[
            "additionalUserData[].content", "additionalUserData[].name", "additionalUserData[].type", "containerd.version", "cpuCredits",
            "externalLoadBalancers[].loadBalancerName", "externalLoadBalancers[].targetGroupArn", "fileAssets[].content", "fileAssets[].name",
            "fileAssets[].path", "hooks[].execContainer.image", "hooks[].manifest", "hooks[].name", "iam.profile", "image",
            "instanceInterruptionBehavior", "instanceMetadata.httpTokens", "machineType", "manager", "maxInstanceLifetime", "maxPrice",
            "mixedInstancesPolicy.onDemandAllocationStrategy", "mixedInstancesPolicy.spotAllocationStrategy", "role", "rootVolumeEncryptionKey",
            "rootVolumeType", "securityGroupOverride", "tenancy", "updatePolicy", "volumeMounts[].device", "volumeMounts[].filesystem",
            "volumeMounts[].path", "volumes[].device", "volumes[].key", "volumes[].type",
        ],
    ),
    (
        Ss,
        &[
            "additionalSecurityGroups", "fileAssets[].roles", "hooks[].roles", "mixedInstancesPolicy.instances", "packages", "subnets",
            "suspendProcesses", "sysctlParameters", "taints", "volumeMounts[].formatOptions", "volumeMounts[].mountOptions", "zones",
        ],
    ),
    (Sm, &["cloudLabels", "nodeLabels"]),
    (
        B,
        &[
            "associatePublicIp", "autoscale", "capacityRebalance", "compressUserData", "detailedInstanceMonitoring", "fileAssets[].isBase64",
            "hooks[].disabled", "instanceProtection", "rollingUpdate.drainAndTerminate", "rootVolumeDeleteOnTermination",
            "rootVolumeEncryption", "rootVolumeOptimization", "volumes[].deleteOnTermination", "volumes[].encrypted",
            "warmPool.enableLifecycleHook",
        ],
    ),
    (
        I,
        &[
            "autoscalePriority", "instanceMetadata.httpPutResponseHopLimit", "maxSize", "minSize", "mixedInstancesPolicy.onDemandAboveBase",
            "mixedInstancesPolicy.onDemandBase", "mixedInstancesPolicy.spotInstancePools", "rootVolumeIops", "rootVolumeSize",
            "rootVolumeThroughput", "spotDurationInMinutes", "volumes[].iops", "volumes[].size", "volumes[].throughput", "warmPool.maxSize",
            "warmPool.minSize",
        ],
    ),
    (
        Q,
        &[
            "mixedInstancesPolicy.instanceRequirements.cpu.max", "mixedInstancesPolicy.instanceRequirements.cpu.min",
            "mixedInstancesPolicy.instanceRequirements.memory.max", "mixedInstancesPolicy.instanceRequirements.memory.min",
            "rollingUpdate.maxSurge", "rollingUpdate.maxUnavailable",
        ],
    ),
];

/// Fields of `kubelet` (Cluster and InstanceGroup) and `masterKubelet`.
#[rustfmt::skip]
const KUBELET: &[(T, &[&str])] = &[
    (
        S,
        &[
            "cgroupDriver", "clusterDNS", "clusterDomain", "containerLogMaxSize", "cpuManagerPolicy", "evictionHard", "evictionSoft",
            "hostnameOverride", "resolvConf", "topologyManagerPolicy",
        ],
    ),
    (Ss, &["allowedUnsafeSysctls", "taints"]),
    (Sm, &["featureGates", "kubeReserved", "nodeLabels", "systemReserved"]),
    (B, &["anonymousAuth", "cpuCFSQuota", "failSwapOn", "seccompDefault", "serializeImagePulls"]),
    (
        I,
        &[
            "containerLogMaxFiles", "imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "maxPods", "readOnlyPort", "registryBurst",
            "registryPullQPS",
        ],
    ),
    (Signed, &["podPidsLimit"]),
];

/// A value of another type than its field has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Path as `leaves` spells it.
    pub path: String,
    /// What stands there, as in `the text "two"`.
    pub found: String,
    /// What belongs there.
    pub wanted: &'static str,
}

/// All values of a v1alpha2 document that are of another type than their field, in the order of this table.
pub fn wrong(doc: &Value) -> Vec<Wrong> {
    let mut out = vec![];
    each(doc, "", METADATA, &mut out);
    let cluster = doc["kind"] == "Cluster";
    each(
        doc,
        "spec.",
        if cluster { CLUSTER } else { GROUP },
        &mut out,
    );
    let kubelets: &[&str] = if cluster {
        &["spec.kubelet.", "spec.masterKubelet."]
    } else {
        &["spec.kubelet."]
    };
    for prefix in kubelets {
        each(doc, prefix, KUBELET, &mut out);
    }
    out
}

fn each(doc: &Value, prefix: &str, table: &[(T, &[&str])], out: &mut Vec<Wrong>) {
    for (kind, fields) in table {
        for field in *fields {
            let pattern = format!("{prefix}{field}").replace("[]", ".[]");
            let parts: Vec<&str> = pattern.split('.').collect();
            visit(doc, &parts, &mut String::new(), &mut |path, value| {
                check(*kind, path, value, out);
            });
        }
    }
}

/// Calls `then` for every value that a pattern reaches. A way through a value of the wrong shape ends there: its own row says it.
fn visit(
    value: &Value,
    parts: &[&str],
    path: &mut String,
    then: &mut impl FnMut(&mut String, &Value),
) {
    let Some((first, rest)) = parts.split_first() else {
        if !value.is_null() {
            then(path, value);
        }
        return;
    };
    let length = path.len();
    match (*first, value) {
        ("[]", Value::Array(items)) => {
            for (i, item) in items.iter().enumerate() {
                push_index(path, i);
                visit(item, rest, path, then);
                path.truncate(length);
            }
        }
        ("*", Value::Object(map)) => {
            for (key, item) in map {
                push_key(path, key);
                visit(item, rest, path, then);
                path.truncate(length);
            }
        }
        (key, Value::Object(map)) => {
            if let Some(item) = map.get(key) {
                push_key(path, key);
                visit(item, rest, path, then);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

fn check(kind: T, path: &mut String, value: &Value, out: &mut Vec<Wrong>) {
    let mut bad = |path: &str, value: &Value, wanted| {
        out.push(Wrong {
            path: path.into(),
            found: shown(value),
            wanted,
        });
    };
    let length = path.len();
    match (kind, value) {
        (S, Value::String(_))
        | (B, Value::Bool(_))
        | (M, Value::Object(_))
        | (L, Value::Array(_)) => {}
        (Q, Value::String(_) | Value::Number(_)) => {}
        (I, Value::Number(n)) if n.as_u64().is_some_and(|n| n <= i32::MAX as u64) => {}
        (Signed, Value::Number(n)) if n.is_i64() => {}
        (Ss, Value::Array(items)) => {
            for (i, item) in items.iter().enumerate().filter(|(_, v)| !v.is_string()) {
                push_index(path, i);
                bad(path, item, TEXT);
                path.truncate(length);
            }
        }
        (Sm, Value::Object(map)) => {
            for (key, item) in map.iter().filter(|(_, v)| !v.is_string() && !v.is_null()) {
                push_key(path, key);
                bad(path, item, TEXT);
                path.truncate(length);
            }
        }
        (kind, other) => bad(
            path,
            other,
            match kind {
                S => TEXT,
                I => "a whole number from 0 to 2147483647",
                Signed => "a whole number",
                B => "true or false",
                M => "a map",
                L => "a list",
                Ss => "a list of texts",
                Sm => "a map of texts",
                Q => "a text or a number",
            },
        ),
    }
}

const TEXT: &str = "a text (in quotes, when it looks like a number or a truth value)";

/// What a value is, for people. Texts are not repeated: some fields hold what must not be shown.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".into(),
        Value::Bool(b) => format!("the truth value {b}"),
        Value::Number(n) => format!("the number {n}"),
        Value::String(_) => "a text".into(),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "a map".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn paths(doc: Value) -> Vec<String> {
        wrong(&doc)
            .into_iter()
            .map(|w| format!("{}: {}, {}", w.path, w.found, w.wanted))
            .collect()
    }

    #[test]
    fn a_value_of_another_type_is_found_wherever_it_stands() {
        let cluster = json!({"kind": "Cluster", "metadata": {"name": "a", "labels": {"x": 1}}, "spec": {
            "subnets": 3, "kubernetesVersion": 1.2, "iam": {"legacy": "true"}, "sshAccess": ["0.0.0.0/0", 4],
            "externalPolicies": {"node": "arn"}, "kubelet": {"maxPods": "110", "featureGates": {"a.b/c": true}},
            "etcdClusters": [{"etcdMembers": [{"encryptedVolume": 1}]}, "main"], "authorization": null}});
        let mut found = paths(cluster);
        found.sort();
        assert_eq!(
            found,
            [
                "metadata.labels.x: the number 1, a text (in quotes, when it looks like a number or a truth value)",
                "spec.etcdClusters[0].etcdMembers[0].encryptedVolume: the number 1, true or false",
                "spec.etcdClusters[1]: a text, a map",
                "spec.externalPolicies.node: a text, a list of texts",
                "spec.iam.legacy: a text, true or false",
                "spec.kubelet.featureGates[\"a.b/c\"]: the truth value true, a text (in quotes, when it looks like a number or a truth value)",
                "spec.kubelet.maxPods: a text, a whole number from 0 to 2147483647",
                "spec.kubernetesVersion: the number 1.2, a text (in quotes, when it looks like a number or a truth value)",
                "spec.sshAccess[1]: the number 4, a text (in quotes, when it looks like a number or a truth value)",
                "spec.subnets: the number 3, a list",
            ]
        );
    }

    #[test]
    fn numbers_that_no_field_of_kops_can_hold_are_wrong_and_minus_one_is_right_where_it_means_without_limit()
     {
        let group =
            |spec: Value| json!({"kind": "InstanceGroup", "metadata": {"name": "a"}, "spec": spec});
        for bad in [
            json!("two"),
            json!(-1),
            json!(2.0),
            json!(3_000_000_000_u64),
            json!([2]),
        ] {
            assert_eq!(paths(group(json!({"minSize": bad}))).len(), 1, "{bad}");
        }
        assert!(
            paths(group(
                json!({"minSize": 0, "maxSize": null, "kubelet": {"podPidsLimit": -1}})
            ))
            .is_empty()
        );
        assert!(
            paths(group(
                json!({"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}})
            ))
            .is_empty()
        );
        assert_eq!(paths(group(json!({"maxPrice": 0.1}))).len(), 1);
    }

    /// The table must agree with what kops itself wrote and reads.
    #[test]
    fn nothing_in_the_corpus_is_of_a_wrong_type() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/kops");
        for entry in std::fs::read_dir(folder).expect("corpus").flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|e| e != "yaml") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("text");
            for (doc, _) in crate::yaml::manifests(&text, "f").into_iter().flatten() {
                let alpha2 = doc["apiVersion"]
                    .as_str()
                    .is_some_and(|a| a.ends_with("v1alpha2"));
                if alpha2 && (doc["kind"] == "Cluster" || doc["kind"] == "InstanceGroup") {
                    assert_eq!(wrong(&doc), [], "{}", path.display());
                }
            }
        }
    }
}
