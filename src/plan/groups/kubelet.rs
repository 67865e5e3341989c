//! kubelet settings of a group: the cluster's, the group's over them field by field (kops.md 1.5), in the words of KubeletConfiguration
//! as nodeadm takes them (eks.md 1.7). What green's kubelet would not accept is left out: it would not start.

use super::super::model::Severity;
use super::Ig;
use super::types::{self, Machine};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What goes into the node configuration.
#[derive(Debug, Default)]
pub(super) struct Kubelet {
    /// Fields of KubeletConfiguration.
    pub config: Map<String, Value>,
    /// maxPods of blue's kubelet.
    pub wished_pods: Option<u32>,
    /// Registry to its mirrors.
    pub mirrors: BTreeMap<String, Vec<String>>,
}

/// How kops spells a value.
#[derive(Clone, Copy)]
enum Shape {
    /// A whole number.
    Number,
    /// `true` or `false`.
    Bool,
    /// Text: a word or a duration.
    Text,
    /// A list, or text with commas.
    List,
    /// Quantities by resource.
    Quantities,
    /// `memory.available<100Mi,nodefs.available<10%`.
    Signals,
    /// `memory.available=30s,...`.
    Pairs,
}

use Shape::{Bool, List, Number, Pairs, Quantities, Signals, Text};

/// (field of kops, field of KubeletConfiguration, shape).
const CARRIED: &[(&str, &str, Shape)] = &[
    ("allowedUnsafeSysctls", "allowedUnsafeSysctls", List),
    (
        "experimentalAllowedUnsafeSysctls",
        "allowedUnsafeSysctls",
        List,
    ),
    ("containerLogMaxFiles", "containerLogMaxFiles", Number),
    ("containerLogMaxSize", "containerLogMaxSize", Text),
    ("cpuCFSQuota", "cpuCFSQuota", Bool),
    ("cpuCFSQuotaPeriod", "cpuCFSQuotaPeriod", Text),
    ("cpuManagerPolicy", "cpuManagerPolicy", Text),
    ("eventBurst", "eventBurst", Number),
    ("eventQPS", "eventRecordQPS", Number),
    ("evictionHard", "evictionHard", Signals),
    (
        "evictionMaxPodGracePeriod",
        "evictionMaxPodGracePeriod",
        Number,
    ),
    ("evictionMinimumReclaim", "evictionMinimumReclaim", Pairs),
    (
        "evictionPressureTransitionPeriod",
        "evictionPressureTransitionPeriod",
        Text,
    ),
    ("evictionSoft", "evictionSoft", Signals),
    ("evictionSoftGracePeriod", "evictionSoftGracePeriod", Pairs),
    ("failSwapOn", "failSwapOn", Bool),
    (
        "imageGCHighThresholdPercent",
        "imageGCHighThresholdPercent",
        Number,
    ),
    (
        "imageGCLowThresholdPercent",
        "imageGCLowThresholdPercent",
        Number,
    ),
    ("imageMaximumGCAge", "imageMaximumGCAge", Text),
    ("imageMinimumGCAge", "imageMinimumGCAge", Text),
    ("kubeReserved", "kubeReserved", Quantities),
    ("maxParallelImagePulls", "maxParallelImagePulls", Number),
    ("podPidsLimit", "podPidsLimit", Number),
    ("registryBurst", "registryBurst", Number),
    ("registryPullQPS", "registryPullQPS", Number),
    ("resolvConf", "resolvConf", Text),
    ("runtimeRequestTimeout", "runtimeRequestTimeout", Text),
    ("seccompDefault", "seccompDefault", Bool),
    ("serializeImagePulls", "serializeImagePulls", Bool),
    ("shutdownGracePeriod", "shutdownGracePeriod", Text),
    (
        "shutdownGracePeriodCriticalPods",
        "shutdownGracePeriodCriticalPods",
        Text,
    ),
    (
        "streamingConnectionIdleTimeout",
        "streamingConnectionIdleTimeout",
        Text,
    ),
    ("systemReserved", "systemReserved", Quantities),
    ("tlsCipherSuites", "tlsCipherSuites", List),
    ("tlsMinVersion", "tlsMinVersion", Text),
    ("topologyManagerPolicy", "topologyManagerPolicy", Text),
];

/// Fields that belong to kops, to blue's own addresses or to the AMI: nobody misses them.
const OWN: &[&str] = &[
    "allowPrivileged",
    "anonymousAuth",
    "apiServers",
    "authenticationTokenWebhook",
    "authenticationTokenWebhookCacheTtl",
    "authorizationMode",
    "babysitDaemons",
    "bootstrapKubeconfig",
    "cgroupDriver",
    "cgroupRoot",
    "clientCaFile",
    "cloudProvider",
    "clusterDNS",
    "clusterDomain",
    "config",
    "configureCbr0",
    "enableCadvisorJsonEndpoints",
    "enableCustomMetrics",
    "enableDebuggingHandlers",
    "hairpinMode",
    "hostnameOverride",
    "kubeconfigPath",
    "kubeletCgroups",
    "logFormat",
    "logLevel",
    "maxPods",
    "networkPluginMTU",
    "networkPluginName",
    "nodeLabels",
    "nonMasqueradeCIDR",
    "podCIDR",
    "podInfraContainerImage",
    "podManifestPath",
    "protectKernelDefaults",
    "reconcileCIDR",
    "registerNode",
    "registerSchedulable",
    "requireKubeconfig",
    "rootDir",
    "rotateCertificates",
    "runtimeCgroups",
    "systemCgroups",
    "taints",
    "tlsCertFile",
    "tlsPrivateKeyFile",
];

/// Signals of eviction that every kubelet knows.
const SIGNALS: &[&str] = &[
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
];

/// Field by field: the group's over the cluster's; maps inside are merged the same way (kops.md 1.5).
fn merged(ig: &Ig) -> Map<String, Value> {
    let mut out = ig
        .of_cluster("/spec/kubelet")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    for (k, v) in ig
        .field("/spec/kubelet")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        match (out.get_mut(k), v) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                old.extend(new.iter().map(|(k, v)| (k.clone(), v.clone())));
            }
            _ => {
                out.insert(k.clone(), v.clone());
            }
        }
    }
    out.retain(|_, v| !v.is_null());
    out
}

/// Settings that somebody gave the kubelets of a group, by name; those that are kops's own are left out.
pub(super) fn named(ig: &Ig) -> Vec<String> {
    let mut out: Vec<String> = merged(ig)
        .into_iter()
        .map(|(k, _)| k)
        // maxPods is in that list because `pods` has a rule for it.
        .filter(|k| k == "maxPods" || !OWN.contains(&k.as_str()))
        .collect();
    out.sort();
    out
}

/// The node configuration of a group.
pub(super) fn settings(ig: &mut Ig, machine: &Machine) -> Kubelet {
    let blue = merged(ig);
    let mut config = Map::new();
    let (mut left, mut broken) = (vec![], vec![]);
    let mut keys: Vec<&String> = blue.keys().collect();
    keys.sort();
    for key in keys {
        let value = &blue[key];
        let Some((_, name, shape)) = CARRIED.iter().find(|(k, ..)| k == key) else {
            let harmless = OWN.contains(&key.as_str())
                && !(key == "anonymousAuth" && *value == Value::Bool(true))
                || key == "readOnlyPort" && *value == json!(0)
                || key == "enforceNodeAllocatable" && *value == json!("pods");
            if !harmless {
                left.push(key.clone());
            }
            continue;
        };
        match shaped(value, *shape) {
            Some(v) => {
                config.insert((*name).into(), v);
            }
            None => broken.push(format!("{key} = {value}")),
        }
    }
    // A soft threshold without its grace period keeps kubelet from starting.
    let graced = |c: &Map<String, Value>| {
        let keys = |k: &str| -> Option<Vec<String>> {
            Some(c.get(k)?.as_object()?.keys().cloned().collect())
        };
        let (soft, grace) = (keys("evictionSoft"), keys("evictionSoftGracePeriod"));
        soft.is_none_or(|s| grace.is_some_and(|g| s.iter().all(|k| g.contains(k))))
    };
    if !graced(&config) {
        config.remove("evictionSoft");
        config.remove("evictionSoftGracePeriod");
        broken.push("evictionSoft without evictionSoftGracePeriod for each signal".into());
    }
    if !config.contains_key("evictionSoft") {
        config.remove("evictionSoftGracePeriod");
    }
    if !broken.is_empty() {
        ig.find(
            "KOPS-ig-kubelet",
            Severity::Warning,
            format!(
                "kubelet settings that green's kubelet could not read are left out: {}",
                broken.join("; ")
            ),
            "Correct them on blue.",
        );
    }
    if !left.is_empty() {
        ig.find(
            "KOPS-ig-kubelet",
            Severity::Warning,
            format!(
                "kubelet settings {} are left out: {}",
                left.join(", "),
                why_left(&left)
            ),
            "Decide for each; what is needed can be set in the node configuration by hand.",
        );
    }
    let wished_pods = pods(ig, machine, &blue, &mut config);
    let reserved: Vec<&str> = ["kubeReserved", "systemReserved", "evictionHard"]
        .into_iter()
        .filter(|k| config.contains_key(*k))
        .collect();
    if !config.is_empty() {
        let names: Vec<&str> = config.keys().map(String::as_str).collect();
        ig.notes
            .push(format!("kubelet settings of blue: {}", names.join(", ")));
    }
    if reserved.is_empty() {
        ig.note("memory reserved for the system is EKS's: 11 MiB a pod and 255 MiB; kops reserves nothing by itself, so pods find a little less room");
    }
    Kubelet {
        config,
        wished_pods,
        mirrors: mirrors(ig, machine),
    }
}

fn why_left(left: &[String]) -> &'static str {
    if left.iter().any(|k| k == "featureGates") {
        "a gate or flag of an old release keeps a new kubelet from starting"
    } else {
        "green's kubelet has no such setting, or must not have it"
    }
}

/// A value in the shape of KubeletConfiguration.
fn shaped(value: &Value, shape: Shape) -> Option<Value> {
    match shape {
        Number => match value {
            Value::Number(n) => n.as_i64().map(|n| json!(n)),
            Value::String(s) => s.parse::<i64>().ok().map(|n| json!(n)),
            _ => None,
        },
        Bool => match value {
            Value::Bool(b) => Some(json!(b)),
            Value::String(s) => s.parse::<bool>().ok().map(|b| json!(b)),
            _ => None,
        },
        Text => value.as_str().filter(|s| !s.is_empty()).map(|s| json!(s)),
        List => match value {
            Value::Array(a) => a
                .iter()
                .all(Value::is_string)
                .then(|| Value::Array(a.clone())),
            Value::String(s) => Some(json!(
                s.split(',')
                    .map(str::trim)
                    .filter(|x| !x.is_empty())
                    .collect::<Vec<_>>()
            )),
            _ => None,
        },
        Quantities => {
            let mut out = BTreeMap::new();
            for (k, v) in value.as_object()? {
                let v = match v {
                    Value::String(s) => s.clone(),
                    Value::Number(n) => n.to_string(),
                    _ => return None,
                };
                out.insert(k.clone(), v);
            }
            Some(json!(out))
        }
        Signals => pairs(value, '<').filter(|m| {
            m.as_object()
                .is_some_and(|m| m.keys().all(|k| SIGNALS.contains(&k.as_str())))
        }),
        Pairs => pairs(value, '='),
    }
}

/// `a<b,c<d` as a map, sorted by key.
fn pairs(value: &Value, by: char) -> Option<Value> {
    let mut out = BTreeMap::new();
    for part in value.as_str()?.split(',').filter(|p| !p.trim().is_empty()) {
        let (k, v) = part.split_once(by)?;
        out.insert(k.trim().to_string(), v.trim().to_string());
    }
    (!out.is_empty()).then(|| json!(out))
}

/// What every type of EC2 that runs Kubernetes has addresses for: a t3.medium (eks.md 2.1).
const PODS_ANYWHERE: u32 = 17;

/// maxPods of blue, and whether green's kubelet is told it. The VPC CNI has addresses for so many only; an overlay of blue had 110 whatever
/// the type. A lower wish of blue is kept, and then memory is reserved for that number: setting maxPods alone does not do it (eks.md 1.7, trap 13).
fn pods(
    ig: &mut Ig,
    machine: &Machine,
    blue: &Map<String, Value>,
    config: &mut Map<String, Value>,
) -> Option<u32> {
    let wished = blue
        .get("maxPods")
        .and_then(|v| shaped(v, Number))
        .and_then(|v| v.as_u64())
        .and_then(|n| u32::try_from(n).ok())?;
    if wished == 0 {
        ig.find(
            "KOPS-ig-maxpods",
            Severity::Warning,
            "maxPods 0 would let no pod run: green's nodes take what their type has addresses for",
            "Correct it on blue, or remove it there.",
        );
        return None;
    }
    let all = || machine.types.iter().chain(&machine.spot_types);
    if let Some((t, most)) = types::fewest_pods(ig, all()).filter(|(_, most)| wished > *most) {
        ig.find(
            "KOPS-ig-maxpods",
            Severity::Warning,
            format!("blue allows {wished} pods on a node; the VPC CNI has addresses for {most} on {t}: green's nodes take what their type has addresses for"),
            if types::prefixes_help(ig, t) {
                "Set network.prefixDelegation under green, or take more or larger nodes."
            } else {
                "Take more or larger nodes."
            },
        );
        return Some(wished);
    }
    let unknown = types::unknown(ig, all());
    if !unknown.is_empty() && wished > PODS_ANYWHERE {
        ig.find(
            "KOPS-ig-maxpods",
            Severity::NotChecked,
            format!("blue allows {wished} pods on a node; the limit of {} is not known, so green's kubelet is not told that number", unknown.into_iter().collect::<Vec<_>>().join(", ")),
            "Run discover against the account, which describes the type, or name a type under green.nodeGroups.",
        );
        return Some(wished);
    }
    config.insert("maxPods".into(), json!(wished));
    if !config.contains_key("kubeReserved") {
        let memory = format!("{}Mi", 11 * wished + 255);
        ig.note(format!("maxPods {wished} as on blue, with {memory} reserved for it: kubelet does not count that anew by itself"));
        config.insert("kubeReserved".into(), json!({"memory": memory}));
    }
    Some(wished)
}

/// Pods on each node of a node group, when that is known.
pub(super) fn max_pods(ig: &Ig, kubelet: &Kubelet, types: &[String]) -> Option<u32> {
    let wished = kubelet.wished_pods;
    if !types::unknown(ig, types.iter()).is_empty() {
        return wished.filter(|n| *n <= PODS_ANYWHERE);
    }
    let (_, most) = types::fewest_pods(ig, types.iter())?;
    Some(wished.map_or(most, |n| n.min(most)))
}

/// Whether a URL has no port or a number for one: `http://HostIP2:Port2` is of an example.
fn port(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or("");
    // An IPv6 address has colons of its own.
    let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
    after
        .split_once(':')
        .is_none_or(|(_, port)| port.parse::<u16>().is_ok())
}

/// Registry mirrors of containerd; other settings of it belong to kops's own installation.
fn mirrors(ig: &mut Ig, machine: &Machine) -> BTreeMap<String, Vec<String>> {
    let Some(containerd) = ig.over_cluster("/spec/containerd").cloned() else {
        return BTreeMap::new();
    };
    let mut out = BTreeMap::new();
    let (mut hidden, mut odd) = (vec![], vec![]);
    for (registry, urls) in containerd
        .pointer("/registryMirrors")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let urls: Vec<String> = urls
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|u| u.as_str().map(String::from))
            .collect();
        let safe = |s: &str| {
            s.chars()
                .all(|c| c.is_ascii_alphanumeric() || "-._:/*[]".contains(c))
        };
        // A name and a password in a URL, or something that is no URL at all, is not for a plan.
        if urls.iter().all(|u| safe(u)) && safe(registry) && !registry.contains("..") {
            // containerd refuses the whole hosts.toml for one such URL.
            let (good, bad): (Vec<String>, Vec<String>) = urls.into_iter().partition(|u| port(u));
            odd.extend(bad.into_iter().map(|u| format!("{u} of {registry}")));
            if !good.is_empty() {
                out.insert(registry.clone(), good);
            }
        } else {
            hidden.push(registry.clone());
        }
    }
    if !hidden.is_empty() {
        ig.find(
            "KOPS-ig-containerd",
            Severity::Warning,
            format!(
                "mirrors of {} hold credentials or odd characters (not shown) and are left out",
                hidden.join(", ")
            ),
            "Give green's nodes these mirrors by hand.",
        );
    }
    if !odd.is_empty() {
        ig.find(
            "KOPS-ig-containerd",
            Severity::Warning,
            format!(
                "mirrors whose port is no number are left out: {}",
                odd.join(", ")
            ),
            "Correct registryMirrors on blue.",
        );
    }
    if machine.bottlerocket && !out.is_empty() {
        ig.find(
            "KOPS-ig-containerd",
            Severity::Warning,
            "registry mirrors are not carried over to Bottlerocket",
            "Set settings.container-registry.mirrors by hand.",
        );
        out.clear();
    }
    let other: Vec<String> = containerd
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(k, v)| {
            !v.is_null()
                && matches!(
                    k.as_str(),
                    "configOverride"
                        | "configAdditions"
                        | "configFile"
                        | "nri"
                        | "registryMirrorAuths"
                        | "selinuxEnabled"
                        | "useECRCredentialsForMirrors"
                )
        })
        .map(|(k, _)| k.clone())
        .collect();
    if !other.is_empty() {
        ig.find(
            "KOPS-ig-containerd",
            Severity::Warning,
            format!(
                "containerd settings {} are left out: EKS's AMI has a configuration of its own",
                other.join(", ")
            ),
            "Set what is needed under spec.containerd of a node configuration by hand.",
        );
    }
    if !out.is_empty() {
        let names: Vec<&str> = out.keys().map(String::as_str).collect();
        let names = names.join(", ");
        let all = if out.contains_key("*") {
            ". The mirror of * stands before every other registry: green's add-on images, which blue never pulled, come through it as well"
        } else {
            ""
        };
        ig.find(
            "KOPS-ig-containerd",
            Severity::Info,
            format!("registry mirrors of blue for {names} come along in the user data{all}"),
            "Make sure that green's subnets reach them.",
        );
        ig.note(format!("registry mirrors of blue for {names}"));
    }
    out
}
