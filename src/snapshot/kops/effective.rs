//! What is in force: the completed spec, else the spec, else the default of the release that wrote it (kops.md 1.4, 1.5).

use super::release::{Release, key_of, minor_of, release};
use super::{kubernetes_version, name_of};
use crate::snapshot::model::Kops;
use serde_json::{Value, json};

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Somebody wrote it.
    Spec,
    /// kops wrote it into the completed spec.
    Completed,
    /// Nobody wrote it: the default, with the reason why it is this one.
    Default(String),
}

/// A value and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known<T> {
    /// The value.
    pub value: T,
    /// Its source.
    pub source: Source,
}

impl<T> Known<T> {
    /// Whether nobody wrote it.
    pub fn is_default(&self) -> bool {
        matches!(self.source, Source::Default(_))
    }
    fn map<U>(self, f: impl FnOnce(T) -> U) -> Known<U> {
        Known {
            value: f(self.value),
            source: self.source,
        }
    }
}

/// How the API of blue is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Api {
    /// A record that names the masters.
    Dns,
    /// A load balancer.
    LoadBalancer {
        /// `Public` or `Internal`.
        scheme: String,
        /// `Classic` or `Network`.
        class: String,
    },
}

/// Root volume of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootVolume {
    /// GiB.
    pub size: Known<u32>,
    /// As in `gp3`.
    pub kind: Known<String>,
    /// Encrypted at rest.
    pub encrypted: Known<bool>,
    /// Provisioned operations a second; `None` where the type has none of its own.
    pub iops: Option<Known<u32>>,
    /// MiB a second, gp3 only.
    pub throughput: Option<Known<u32>>,
}

/// Instance metadata service of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imds {
    /// `required` or `optional`.
    pub tokens: Known<String>,
    /// Hops that an answer may take: 1 keeps pods with their own network away when tokens are required.
    pub hop_limit: Known<u32>,
}

/// One value, for lists.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// `cluster` or `instancegroup/NAME`.
    pub document: String,
    /// Path as `leaves` spells it.
    pub path: String,
    /// Value.
    pub value: Value,
    /// Source.
    pub source: Source,
}

/// The spec with what is in force.
#[derive(Clone, Debug)]
pub struct Effective<'k> {
    kops: &'k Kops,
    /// The release that wrote it.
    pub release: Release,
    /// Why the completed spec is not used, when one was given and is older than the spec.
    pub stale: Option<String>,
}

/// The CNI names of v1alpha2 (kops.md 1.4, 2).
pub const NETWORKS: &[&str] = &[
    "amazonvpc",
    "calico",
    "canal",
    "cilium",
    "classic",
    "cni",
    "external",
    "flannel",
    "gce",
    "kindnet",
    "kopeio",
    "kubenet",
    "kuberouter",
    "lyftvpc",
    "romana",
    "weave",
];

/// What is in force.
pub fn effective(kops: &Kops) -> Effective<'_> {
    let release = release(kops);
    let stale = stale(kops, &release);
    Effective {
        kops,
        release,
        stale,
    }
}

/// kops writes the completed spec on `update cluster`: an edit after that is not in it, and the file of kops 1.21 stays behind.
fn stale(kops: &Kops, release: &Release) -> Option<String> {
    let (Some(cluster), Some(completed)) = (&kops.cluster, &kops.completed) else {
        return None;
    };
    let source = kops.sources.get("completed").map_or("", String::as_str);
    let old_name = key_of(source).rsplit('/').next() == Some("cluster.spec");
    if old_name && release.known && release.minor >= 22 {
        return Some(format!(
            "`cluster.spec` was written by kops 1.21 or older, the cluster is run by {release}"
        ));
    }
    let version = |d: &Value| {
        d.pointer("/spec/kubernetesVersion")
            .and_then(Value::as_str)
            .and_then(|v| minor_of(v.trim_end_matches('/').rsplit('/').next().unwrap_or(v)))
    };
    match (version(cluster), version(completed)) {
        (Some(a), Some(b)) if a != b => Some(format!(
            "it is for Kubernetes 1.{b}, the spec says 1.{a}: the spec was edited after the last `kops update cluster`"
        )),
        _ => None,
    }
}

fn text<'v>(doc: &'v Value, pointer: &str) -> Option<&'v str> {
    doc.pointer(pointer)
        .and_then(Value::as_str)
        .filter(|s| !s.is_empty())
}

fn number(doc: &Value, pointer: &str) -> Option<u32> {
    doc.pointer(pointer)
        .and_then(Value::as_u64)
        .and_then(|n| u32::try_from(n).ok())
}

impl Effective<'_> {
    fn default<T>(&self, value: impl Into<T>, why: &str) -> Known<T> {
        Known {
            value: value.into(),
            source: Source::Default(format!("{} {why}", self.release)),
        }
    }

    /// The first answer of the completed spec and the spec, in this order.
    fn find<T>(&self, get: impl Fn(&Value) -> Option<T>) -> Option<Known<T>> {
        let completed = self
            .kops
            .completed
            .as_ref()
            .filter(|_| self.stale.is_none());
        if let Some(value) = completed.and_then(&get) {
            return Some(Known {
                value,
                source: Source::Completed,
            });
        }
        self.kops
            .cluster
            .as_ref()
            .and_then(&get)
            .map(|value| Known {
                value,
                source: Source::Spec,
            })
    }

    fn kubernetes(&self) -> u32 {
        self.kops
            .cluster
            .as_ref()
            .and_then(kubernetes_version)
            .map_or(self.release.minor, |v| v.minor)
    }

    fn name(&self) -> &str {
        self.kops.cluster.as_ref().map_or("", name_of)
    }

    /// `rbac` or `alwaysAllow`.
    pub fn authorization(&self) -> Known<String> {
        let get = |d: &Value| {
            let a = d.pointer("/spec/authorization")?.as_object()?;
            ["alwaysAllow", "rbac"]
                .into_iter()
                .find(|k| a.get(*k).is_some_and(|v| !v.is_null()))
                .map(String::from)
        };
        self.find(get).unwrap_or_else(|| {
            // A guess is the lowest release it can be; the true one may be up to six later.
            if !self.release.known && (30..36).contains(&self.release.minor) {
                self.default(
                    "alwaysAllow",
                    "takes it; alwaysAllow up to kops 1.35, rbac from 1.36: which kops wrote it is not known",
                )
            } else if self.release.minor >= 36 {
                self.default("rbac", "takes rbac when nothing is said, from 1.36 on")
            } else {
                self.default(
                    "alwaysAllow",
                    "takes alwaysAllow when nothing is said, up to 1.35",
                )
            }
        })
    }

    /// Whether nodes have the wide rights of old (whole state of the cluster in S3, Route 53, ECR).
    pub fn iam_legacy(&self) -> Known<bool> {
        self.find(|d| d.pointer("/spec/iam/legacy")?.as_bool())
            .or_else(|| {
                // `iam: {}` without the word is strict: only an omitted block was legacy.
                self.find(|d| d.pointer("/spec/iam")?.as_object().map(|_| false))
            })
            .unwrap_or_else(|| {
                if self.release.minor <= 18 {
                    self.default(true, "takes legacy IAM when nothing is said, up to 1.18")
                } else {
                    self.default(false, "takes strict IAM, from 1.19 on")
                }
            })
    }

    /// Name of the network, one of [`NETWORKS`].
    pub fn networking(&self) -> Known<String> {
        self.find(|d| {
            let n = d.pointer("/spec/networking")?.as_object()?;
            n.iter()
                .find(|(k, v)| NETWORKS.contains(&k.as_str()) && !v.is_null())
                .map(|(k, _)| k.clone())
        })
        .unwrap_or_else(|| {
            if self.release.minor >= 26 {
                self.default("cilium", "makes new clusters with cilium, from 1.26 on")
            } else {
                self.default("kubenet", "makes new clusters with kubenet, up to 1.25")
            }
        })
    }

    /// `docker` or `containerd`.
    pub fn container_runtime(&self) -> Known<String> {
        self.find(|d| text(d, "/spec/containerRuntime").map(String::from))
            .unwrap_or_else(|| {
                if self.kubernetes() < 20 {
                    self.default("docker", "runs docker below Kubernetes 1.20")
                } else {
                    self.default("containerd", "runs containerd from Kubernetes 1.20 on")
                }
            })
    }

    /// How the API is reached.
    pub fn api(&self) -> Known<Api> {
        let class = |d: &Value| {
            text(d, "/spec/api/loadBalancer/class")
                .unwrap_or("Classic")
                .to_string()
        };
        let scheme = |d: &Value| {
            text(d, "/spec/api/loadBalancer/type")
                .unwrap_or("Public")
                .to_string()
        };
        let said = self.find(|d| {
            let api = d.pointer("/spec/api")?.as_object()?;
            let has = |k: &str| api.get(k).is_some_and(|v| !v.is_null());
            if has("loadBalancer") {
                Some(Api::LoadBalancer {
                    scheme: scheme(d),
                    class: class(d),
                })
            } else {
                has("dns").then_some(Api::Dns)
            }
        });
        said.unwrap_or_else(|| {
            let balancer = Api::LoadBalancer {
                scheme: "Public".into(),
                class: "Classic".into(),
            };
            match self.masters_private() {
                (true, why) => self.default(balancer, &format!("takes a load balancer: {why}")),
                (false, why) => self.default(Api::Dns, &format!("takes a DNS record: {why}")),
            }
        })
    }

    /// Class of a load balancer that is written without one.
    fn api_class(&self) -> Option<Known<String>> {
        self.find(|d| {
            d.pointer("/spec/api/loadBalancer")
                .filter(|b| !b.is_null())
                .map(|_| text(d, "/spec/api/loadBalancer/class").is_none())
        })
        .filter(|unsaid| unsaid.value)
        .map(|_| {
            self.default(
                "Classic",
                "takes a classic load balancer when no class is said",
            )
        })
    }

    /// Whether the masters stand in private subnets, and what says so.
    fn masters_private(&self) -> (bool, &'static str) {
        let Some(c) = &self.kops.cluster else {
            return (false, "nothing is known of the masters");
        };
        match text(c, "/spec/topology/masters") {
            Some("private") => return (true, "topology.masters is private"),
            Some(_) => return (false, "topology.masters is public"),
            None => {}
        }
        let names: Vec<&str> = self
            .kops
            .instance_groups
            .iter()
            .filter(|g| text(g, "/spec/role").is_some_and(|r| r.eq_ignore_ascii_case("master")))
            .flat_map(|g| g.pointer("/spec/subnets").and_then(Value::as_array))
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let private = c
            .pointer("/spec/subnets")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter(|s| text(s, "/name").is_some_and(|n| names.contains(&n)))
            .any(|s| text(s, "/type") == Some("Private"));
        if private {
            (true, "the masters are in private subnets")
        } else {
            (false, "the masters are in public subnets")
        }
    }

    /// `Public`, `Private`, `None` or `Gossip`.
    pub fn dns(&self) -> Known<String> {
        let said = self.find(|d| text(d, "/spec/topology/dns/type").map(String::from));
        if let Some(k) = &said
            && k.value.eq_ignore_ascii_case("none")
        {
            return Known {
                value: "None".into(),
                source: k.source.clone(),
            };
        }
        if self.name().ends_with(".k8s.local") {
            // The name decides, whatever the type says (kops.md 6), and somebody wrote the name: it is no default.
            return Known {
                value: "Gossip".into(),
                source: Source::Spec,
            };
        }
        said.unwrap_or_else(|| self.default("Public", "takes a public zone when nothing is said"))
    }

    /// Range of pods and services together.
    pub fn non_masquerade(&self) -> Known<String> {
        self.find(|d| text(d, "/spec/nonMasqueradeCIDR").map(String::from))
            .unwrap_or_else(|| self.default("100.64.0.0/10", "takes 100.64.0.0/10"))
    }

    /// Range of ClusterIPs.
    pub fn service_range(&self) -> Known<String> {
        self.find(|d| text(d, "/spec/serviceClusterIPRange").map(String::from))
            .unwrap_or_else(|| {
                let all = self.non_masquerade().value;
                if all.contains(':') {
                    return self.default(
                        "fd00:5e4f:ce::/108",
                        "takes fd00:5e4f:ce::/108 with IPv6 pods",
                    );
                }
                match part(&all, 3, false) {
                    Some(eighth)
                        if !self.release.known
                            && (22..28).contains(&self.release.minor)
                            && eighth != "100.64.0.0/13" =>
                    {
                        let why = format!(
                            "takes {eighth}, the first eighth of nonMasqueradeCIDR, up to kops 1.27, and 100.64.0.0/13 from 1.28 on: which kops wrote it is not known"
                        );
                        self.default(eighth, &why)
                    }
                    Some(eighth) if self.release.minor <= 27 => self.default(
                        eighth,
                        "takes the first eighth of nonMasqueradeCIDR, up to 1.27",
                    ),
                    _ => self.default("100.64.0.0/13", "takes 100.64.0.0/13, from 1.28 on"),
                }
            })
    }

    /// Range of pods; `None` where pods have addresses of the VPC or the network chooses by itself.
    pub fn pod_range(&self) -> Known<Option<String>> {
        let said = self.find(|d| {
            text(d, "/spec/podCIDR")
                .or(text(d, "/spec/kubeControllerManager/clusterCIDR"))
                .map(|s| Some(s.to_string()))
        });
        let vpc = match self.networking().value.as_str() {
            "amazonvpc" | "lyftvpc" => true,
            "cilium" => self
                .find(|d| text(d, "/spec/networking/cilium/ipam").map(String::from))
                .is_some_and(|i| i.value == "eni"),
            _ => false,
        };
        if vpc {
            return self.default(None, "gives pods addresses of the VPC with this network");
        }
        said.unwrap_or_else(|| {
            let all = self.non_masquerade().value;
            match part(&all, 1, true) {
                Some(half) => self.default(Some(half), "takes the upper half of nonMasqueradeCIDR"),
                None => self.default(None, "chooses no IPv4 range of pods"),
            }
        })
    }

    /// Smallest and largest size of a group.
    pub fn sizes(&self, group: &Value) -> (Known<u32>, Known<u32>) {
        let usual: u32 = if is_worker(group) { 2 } else { 1 };
        let why = if is_worker(group) {
            "takes 2 for a worker group"
        } else {
            "takes 1 for a group of this role"
        };
        let min = match number(group, "/spec/minSize") {
            Some(value) => Known {
                value,
                source: Source::Spec,
            },
            None => self.default(usual, why),
        };
        let max = match number(group, "/spec/maxSize") {
            Some(value) => Known {
                value,
                source: Source::Spec,
            },
            None => self.default(usual.max(min.value), why),
        };
        (min, max)
    }

    /// Root volume of a group.
    pub fn root_volume(&self, group: &Value) -> RootVolume {
        let said = |value| Known {
            value,
            source: Source::Spec,
        };
        let new = self.release.minor >= 20;
        let size = number(group, "/spec/rootVolumeSize").filter(|n| *n > 0);
        let kind = match text(group, "/spec/rootVolumeType") {
            Some(k) => said(k.to_string()),
            None if new => self.default("gp3", "takes gp3, from 1.20 on"),
            None => self.default("gp2", "takes gp2, up to 1.19"),
        };
        let gp3 = kind.value == "gp3";
        let rate = |pointer: &str, usual: u32, why: &str| match number(group, pointer) {
            Some(n) => Some(Known {
                value: n,
                source: Source::Spec,
            }),
            None => gp3.then(|| self.default(usual, why)),
        };
        let iops = rate(
            "/spec/rootVolumeIops",
            3000,
            "takes 3000 operations a second for gp3",
        );
        let throughput = rate(
            "/spec/rootVolumeThroughput",
            125,
            "takes 125 MiB a second for gp3",
        );
        RootVolume {
            size: match (size, role(group).as_str()) {
                (Some(n), _) => Known {
                    value: n,
                    source: Source::Spec,
                },
                (None, "node") => self.default(128u32, "takes 128 GiB for a worker"),
                (None, "bastion") => self.default(32u32, "takes 32 GiB for a bastion"),
                (None, _) => self.default(64u32, "takes 64 GiB for a master"),
            },
            iops,
            throughput,
            encrypted: match group
                .pointer("/spec/rootVolumeEncryption")
                .and_then(Value::as_bool)
            {
                Some(b) => Known {
                    value: b,
                    source: Source::Spec,
                },
                None if new => self.default(true, "encrypts root volumes, from 1.20 on"),
                None => self.default(false, "does not encrypt root volumes, up to 1.19"),
            },
            kind,
        }
    }

    /// Instance metadata service of a group.
    pub fn imds(&self, group: &Value) -> Imds {
        Imds {
            tokens: match text(group, "/spec/instanceMetadata/httpTokens") {
                Some(t) => Known {
                    value: t.to_string(),
                    source: Source::Spec,
                },
                None if self.kubernetes() >= 27 && self.release.minor >= 27 => {
                    self.default("required", "requires tokens from Kubernetes 1.27 on")
                }
                None => self.default("optional", "leaves tokens optional below Kubernetes 1.27"),
            },
            hop_limit: match number(group, "/spec/instanceMetadata/httpPutResponseHopLimit") {
                Some(value) => Known {
                    value,
                    source: Source::Spec,
                },
                None => self.default(1u32, "takes a hop limit of 1"),
            },
        }
    }

    /// Everything above, cluster first, then groups by name.
    pub fn settings(&self) -> Vec<Setting> {
        let mut out = vec![];
        if self.kops.cluster.is_some() {
            let mut add = |path: &str, k: Known<Value>| {
                out.push(Setting {
                    document: "cluster".into(),
                    path: path.into(),
                    value: k.value,
                    source: k.source,
                });
            };
            add(
                "spec.api",
                self.api().map(|a| match a {
                    Api::Dns => json!("dns"),
                    Api::LoadBalancer { scheme, class } => {
                        json!(format!("loadBalancer {scheme} {class}"))
                    }
                }),
            );
            if let Some(class) = self.api_class() {
                add("spec.api.loadBalancer.class", class.map(Value::from));
            }
            add("spec.authorization", self.authorization().map(Value::from));
            add(
                "spec.containerRuntime",
                self.container_runtime().map(Value::from),
            );
            add("spec.iam.legacy", self.iam_legacy().map(Value::from));
            add("spec.networking", self.networking().map(Value::from));
            add(
                "spec.nonMasqueradeCIDR",
                self.non_masquerade().map(Value::from),
            );
            add("spec.podCIDR", self.pod_range().map(Value::from));
            add(
                "spec.serviceClusterIPRange",
                self.service_range().map(Value::from),
            );
            add("spec.topology.dns.type", self.dns().map(Value::from));
        }
        let mut groups: Vec<&Value> = self.kops.instance_groups.iter().collect();
        groups.sort_by(|a, b| name_of(a).cmp(name_of(b)));
        for group in groups {
            let mut add = |path: &str, k: Known<Value>| {
                out.push(Setting {
                    document: format!("instancegroup/{}", name_of(group)),
                    path: path.into(),
                    value: k.value,
                    source: k.source,
                });
            };
            let (min, max) = self.sizes(group);
            let root = self.root_volume(group);
            let imds = self.imds(group);
            add(
                "spec.instanceMetadata.httpPutResponseHopLimit",
                imds.hop_limit.map(Value::from),
            );
            add(
                "spec.instanceMetadata.httpTokens",
                imds.tokens.map(Value::from),
            );
            // Karpenter counts by itself: kops gives its groups no sizes.
            let karpenter =
                text(group, "/spec/manager").is_some_and(|m| m.eq_ignore_ascii_case("karpenter"));
            for (path, size) in [("spec.maxSize", max), ("spec.minSize", min)] {
                if !(karpenter && size.is_default()) {
                    add(path, size.map(Value::from));
                }
            }
            add("spec.rootVolumeEncryption", root.encrypted.map(Value::from));
            if let Some(iops) = root.iops {
                add("spec.rootVolumeIops", iops.map(Value::from));
            }
            add("spec.rootVolumeSize", root.size.map(Value::from));
            if let Some(throughput) = root.throughput {
                add("spec.rootVolumeThroughput", throughput.map(Value::from));
            }
            add("spec.rootVolumeType", root.kind.map(Value::from));
        }
        out
    }
}

fn role(group: &Value) -> String {
    text(group, "/spec/role").unwrap_or("Node").to_lowercase()
}

fn is_worker(group: &Value) -> bool {
    role(group) == "node"
}

/// The first or last of the `2^bits` equal parts of an IPv4 range.
fn part(cidr: &str, bits: u32, last: bool) -> Option<String> {
    let (ip, length) = cidr.split_once('/')?;
    let ip: u32 = ip.parse::<std::net::Ipv4Addr>().ok()?.into();
    let length: u32 = length.parse().ok()?;
    let small = length.checked_add(bits).filter(|l| *l <= 32)?;
    let mask = |l: u32| if l == 0 { 0 } else { u32::MAX << (32 - l) };
    let mut base = ip & mask(length);
    if last {
        base |= mask(small) & !mask(length);
    }
    Some(format!("{}/{small}", std::net::Ipv4Addr::from(base)))
}

#[cfg(test)]
#[path = "effective_tests.rs"]
mod tests;
