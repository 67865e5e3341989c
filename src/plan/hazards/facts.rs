//! What the snapshot tells of blue's age, read once.

use crate::object::{ObjectId, annotation, at};
use crate::rewrite::removals;
use crate::snapshot::kops::{Release, effective, kubernetes_version, name_of};
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use jiff::civil::Date;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Newest release of kops (kops.md, head: release branches up to 1.36).
pub const KOPS_TODAY: u32 = 36;
/// A kops release accepts its own minor and the five before it; of these it deprecates the older ones (kops.md 6: HEAD 1.37
/// accepts 1.32 and deprecates below 1.34).
pub const KOPS_WINDOW: u32 = 5;
/// Minors of the window that are not deprecated.
pub const KOPS_FRESH: u32 = 3;
/// Last day of extended support of EKS, by minor (eks.md 1.1).
const EKS_UNTIL: &[(u32, &str)] = &[
    (31, "2026-11-26"),
    (32, "2027-03-23"),
    (33, "2027-07-29"),
    (34, "2027-12-02"),
    (35, "2028-03-27"),
];

/// Systems that start with cgroup v1, by what image names say: Debian up to 10, Ubuntu up to 20.04, Amazon Linux 2, CentOS 7.
const OLD_SYSTEMS: &[&str] = &[
    "jessie", "stretch", "buster", "xenial", "bionic", "focal", "amzn2", "centos-7",
];

/// An etcd cluster of the spec.
pub struct Etcd {
    pub name: String,
    pub legacy: bool,
    /// Major version.
    pub major: Option<u32>,
    pub version: Option<String>,
    /// Whether the provider is written, not guessed.
    pub said: bool,
}

/// Objects of one kind in one API version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Api {
    pub api_version: String,
    pub kind: String,
}

/// Counts of objects, when blue was read.
#[derive(Default)]
pub struct Objects {
    /// By the minor that no longer serves them.
    pub removed: BTreeMap<u32, BTreeMap<Api, usize>>,
    pub psp: usize,
    pub in_tree_volumes: usize,
    pub in_tree_classes: usize,
    pub nfs_volumes: usize,
    pub master_label: usize,
    pub role_label: usize,
    pub docker_socket: usize,
    pub git_repo: usize,
    pub token_secrets: usize,
    pub iam_annotation: usize,
    /// `kube2iam`, `kiam`, ...
    pub iam_agents: BTreeSet<String>,
    pub docker_nodes: usize,
    pub nodes: usize,
}

/// An image of a group.
pub struct Image {
    pub group: String,
    pub image: String,
    pub made: Option<Date>,
}

pub struct Facts {
    pub minor: Option<u32>,
    pub green: u32,
    pub oldest: Option<u32>,
    pub release: Release,
    pub taken: Option<Date>,
    pub created: Option<Date>,
    pub gossip: bool,
    pub network: String,
    pub runtime: String,
    pub always_allow: bool,
    /// Not written: kops's default.
    pub always_allow_silent: bool,
    pub legacy_iam: bool,
    pub own_profiles: Vec<String>,
    pub terraform_iam: usize,
    pub etcd: Vec<Etcd>,
    pub psp_plugin: bool,
    pub static_tokens: bool,
    pub basic_auth_off: bool,
    pub classic_api: bool,
    pub reserved_labels: Vec<String>,
    /// A component is told its cloud by a flag.
    pub cloud_flags: bool,
    /// Groups whose system starts with cgroup v1.
    pub old_systems: Vec<String>,
    /// Groups whose metadata service answers without a token.
    pub optional_tokens: Vec<String>,
    pub images: Vec<Image>,
    pub groups: usize,
    pub masters: usize,
    pub instances: usize,
    pub master_instances: usize,
    pub objects: Option<Objects>,
    pub has_kops: bool,
}

fn text<'v>(v: &'v Value, p: &str) -> &'v str {
    v.pointer(p).and_then(Value::as_str).unwrap_or_default()
}
fn list<'v>(v: &'v Value, p: &str) -> impl Iterator<Item = &'v Value> {
    v.pointer(p).and_then(Value::as_array).into_iter().flatten()
}

impl Facts {
    pub fn of(spec: &Spec, snapshot: &Snapshot) -> Facts {
        let nothing = Value::Null;
        let kops = &snapshot.kops;
        let cluster = kops.cluster.as_ref().unwrap_or(&nothing);
        let known = effective(kops);
        let minor = (snapshot.blue.version.as_ref().map(|v| v.minor)).or_else(|| {
            kops.cluster
                .as_ref()
                .and_then(kubernetes_version)
                .map(|v| v.minor)
        });
        let taken: Option<Date> = snapshot.taken.as_deref().and_then(|d| d.parse().ok());
        let authorization = known.authorization();
        let api = "/spec/kubeAPIServer";
        let plugins = [
            "admissionControl",
            "enableAdmissionPlugins",
            "appendAdmissionPlugins",
        ];
        let mut groups: Vec<&Value> = kops.instance_groups.iter().collect();
        groups.sort_by_key(|g| name_of(g));
        let master = |g: &&&Value| {
            let r = text(g, "/spec/role").to_lowercase();
            !matches!(r.as_str(), "" | "node" | "bastion")
        };
        let size = |g: &&Value| known.sizes(g).0.value as usize;
        let objects = (!snapshot.blue.objects.is_empty()).then(|| objects(snapshot, minor));
        Facts {
            minor,
            green: green_minor(spec),
            oldest: taken.and_then(oldest_supported),
            taken,
            created: day_of(text(cluster, "/metadata/creationTimestamp")),
            gossip: kops.cluster.is_some() && known.dns().value == "Gossip",
            network: known.networking().value,
            runtime: known.container_runtime().value,
            always_allow: kops.cluster.is_some() && authorization.value == "alwaysAllow",
            always_allow_silent: authorization.is_default(),
            legacy_iam: kops.cluster.is_some() && known.iam_legacy().value,
            own_profiles: groups
                .iter()
                .filter(|g| !text(g, "/spec/iam/profile").is_empty())
                .map(|g| name_of(g).to_string())
                .collect(),
            terraform_iam: snapshot
                .terraform
                .iter()
                .flatten()
                .filter(|r| r.kind.starts_with("aws_iam_"))
                .filter(|r| {
                    let name = name_of(cluster);
                    !name.is_empty() && r.attributes.values().any(|v| v.contains(name))
                })
                .count(),
            etcd: etcd(cluster, minor, known.release.minor),
            psp_plugin: plugins.iter().any(|p| {
                list(cluster, &format!("{api}/{p}"))
                    .any(|v| v.as_str() == Some("PodSecurityPolicy"))
            }),
            static_tokens: !text(cluster, &format!("{api}/tokenAuthFile")).is_empty(),
            basic_auth_off: cluster.pointer(&format!("{api}/disableBasicAuth"))
                == Some(&Value::Bool(true)),
            classic_api: matches!(
                known.api().value,
                crate::snapshot::kops::Api::LoadBalancer { ref class, .. } if class == "Classic"
            ) && kops.cluster.is_some(),
            reserved_labels: reserved_labels(cluster, &groups),
            cloud_flags: [
                "kubelet",
                "masterKubelet",
                "kubeAPIServer",
                "kubeControllerManager",
            ]
            .iter()
            .any(|c| !text(cluster, &format!("/spec/{c}/cloudProvider")).is_empty()),
            old_systems: groups
                .iter()
                .filter(|g| {
                    OLD_SYSTEMS
                        .iter()
                        .any(|s| text(g, "/spec/image").contains(s))
                })
                .map(|g| name_of(g).to_string())
                .collect(),
            optional_tokens: groups
                .iter()
                .filter(|g| known.imds(g).tokens.value != "required")
                .map(|g| name_of(g).to_string())
                .collect(),
            images: groups
                .iter()
                .filter(|g| !text(g, "/spec/image").is_empty())
                .map(|g| Image {
                    group: name_of(g).into(),
                    image: text(g, "/spec/image").into(),
                    made: image_day(text(g, "/spec/image")),
                })
                .collect(),
            groups: groups.len(),
            masters: groups.iter().filter(master).count(),
            instances: groups.iter().map(size).sum(),
            master_instances: groups.iter().filter(master).map(size).sum(),
            objects,
            has_kops: kops.cluster.is_some(),
            release: known.release,
        }
    }
}

fn green_minor(spec: &Spec) -> u32 {
    spec.green
        .version
        .trim_start_matches('v')
        .split('.')
        .nth(1)
        .and_then(|m| m.parse().ok())
        .unwrap_or(35)
}

/// The oldest minor that EKS still runs on that day and that today's kops accepts.
fn oldest_supported(day: Date) -> Option<u32> {
    EKS_UNTIL
        .iter()
        .filter(|(m, _)| *m + KOPS_WINDOW >= KOPS_TODAY)
        .find(|(_, until)| until.parse::<Date>().is_ok_and(|u| u >= day))
        .map(|(m, _)| *m)
}

/// The day of `2016-12-10T22:42:27Z`.
fn day_of(timestamp: &str) -> Option<Date> {
    timestamp.get(..10)?.parse().ok()
}

/// The day in an image's name: `...-2019-08-16`, `...-20220404`, `...-v20221018`.
pub fn image_day(image: &str) -> Option<Date> {
    let parts: Vec<&str> = image.split('-').collect();
    for i in (0..parts.len()).rev() {
        let last = parts[i].trim_start_matches('v');
        let digits = |s: &str, n: usize| s.len() == n && s.bytes().all(|b| b.is_ascii_digit());
        if digits(last, 8) {
            let day = format!("{}-{}-{}", &last[..4], &last[4..6], &last[6..]);
            return day.parse().ok();
        }
        if i >= 2 && digits(last, 2) && digits(parts[i - 1], 2) && digits(parts[i - 2], 4) {
            return format!("{}-{}-{last}", parts[i - 2], parts[i - 1])
                .parse()
                .ok();
        }
    }
    None
}

/// Provider and version of each etcd cluster. Nothing said means Manager from kops 1.12 with Kubernetes 1.12 on, Legacy before
/// (kops.md 6); etcd 2 is possible below Kubernetes 1.13 or when it is pinned.
fn etcd(cluster: &Value, minor: Option<u32>, kops: u32) -> Vec<Etcd> {
    let backend = text(cluster, "/spec/kubeAPIServer/storageBackend");
    list(cluster, "/spec/etcdClusters")
        .map(|e| {
            let provider = text(e, "/provider");
            let old = minor.is_some_and(|m| m < 12) || kops < 12;
            let version = Some(text(e, "/version").to_string()).filter(|v| !v.is_empty());
            let major = version
                .as_deref()
                .and_then(|v| v.trim_start_matches('v').split('.').next()?.parse().ok())
                .or(match backend {
                    "etcd2" => Some(2),
                    "etcd3" => Some(3),
                    _ => None,
                });
            Etcd {
                name: text(e, "/name").into(),
                legacy: provider == "Legacy"
                    || provider.is_empty() && old && e.get("manager").is_none(),
                major,
                version,
                said: !provider.is_empty(),
            }
        })
        .collect()
}

/// Groups with labels that a kubelet may not give to itself: keys of kubernetes.io and k8s.io but for those that kops sets.
fn reserved_labels(cluster: &Value, groups: &[&Value]) -> Vec<String> {
    let reserved = |v: &Value, p: &str| {
        v.pointer(p)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .any(|(k, _)| {
                let domain = k.split('/').next().unwrap_or_default();
                let of = |d: &str| domain == d || domain.ends_with(&format!(".{d}"));
                (of("kubernetes.io") || of("k8s.io")) && domain != "kops.k8s.io"
            })
    };
    let all = reserved(cluster, "/spec/kubelet/nodeLabels");
    groups
        .iter()
        .filter(|g| {
            all || reserved(g, "/spec/nodeLabels") || reserved(g, "/spec/kubelet/nodeLabels")
        })
        .map(|g| name_of(g).to_string())
        .collect()
}

/// The version in which somebody applies the object, when it says so: no more of the text is kept than that.
fn applied(o: &Value) -> Option<ObjectId> {
    #[derive(serde::Deserialize)]
    struct Applied {
        #[serde(rename = "apiVersion")]
        api_version: String,
        kind: String,
        metadata: Named,
    }
    #[derive(serde::Deserialize)]
    struct Named {
        name: String,
    }
    let text = annotation(o, "kubectl.kubernetes.io/last-applied-configuration")?;
    let a: Applied = serde_json::from_str(text).ok()?;
    Some(ObjectId::new(
        &a.api_version,
        &a.kind,
        None,
        &a.metadata.name,
    ))
}

fn objects(snapshot: &Snapshot, minor: Option<u32>) -> Objects {
    let from = minor.unwrap_or(0);
    // Removals to come, by group/version and kind.
    let mut coming: BTreeMap<(String, &str), u32> = BTreeMap::new();
    for r in removals() {
        let Some(m) = r.minor().filter(|m| *m > from && r.stored != Some(false)) else {
            continue;
        };
        let api = match r.group.as_str() {
            "" | "core" => r.version.clone(),
            g => format!("{g}/{}", r.version),
        };
        coming.insert((api, r.kind.as_str()), m);
    }
    let mut out = Objects::default();
    for o in &snapshot.blue.objects {
        let Some(id) = &ObjectId::of(o) else { continue };
        let owned = at(o, "/metadata/ownerReferences")
            .and_then(Value::as_array)
            .is_some_and(|a| !a.is_empty());
        for id in [Some(id.clone()), applied(o).filter(|_| !owned)]
            .into_iter()
            .flatten()
        {
            let key = (id.api_version.clone(), id.kind.as_str());
            if let Some(m) = coming.get(&key).copied().filter(|_| !owned) {
                let api = Api {
                    api_version: id.api_version.clone(),
                    kind: id.kind.clone(),
                };
                *out.removed.entry(m).or_default().entry(api).or_default() += 1;
                break;
            }
        }
        of_kind(id, o, owned, &mut out);
    }
    out
}

fn of_kind(id: &ObjectId, o: &Value, owned: bool, out: &mut Objects) {
    match id.kind.as_str() {
        "PodSecurityPolicy" => out.psp += 1,
        "PersistentVolume" => {
            out.in_tree_volumes += usize::from(o.pointer("/spec/awsElasticBlockStore").is_some());
            out.nfs_volumes += usize::from(o.pointer("/spec/nfs").is_some());
        }
        "StorageClass" => {
            out.in_tree_classes += usize::from(text(o, "/provisioner") == "kubernetes.io/aws-ebs");
        }
        "Node" => {
            out.nodes += 1;
            let runtime = text(o, "/status/nodeInfo/containerRuntimeVersion");
            out.docker_nodes += usize::from(runtime.starts_with("docker://"));
        }
        "Secret" => {
            out.token_secrets +=
                usize::from(text(o, "/type") == "kubernetes.io/service-account-token");
        }
        _ => {}
    }
    if owned {
        return;
    }
    let Some(template) = crate::rewrite::template_path(&id.kind) else {
        return;
    };
    let at = |p: &str| format!("{template}{p}");
    let key = at("/metadata/annotations/iam.amazonaws.com~1role");
    out.iam_annotation += usize::from(o.pointer(&key).is_some());
    let Some(pod) = o.pointer(&at("/spec")) else {
        return;
    };
    for c in list(pod, "/containers") {
        let image = text(c, "/image").split(':').next().unwrap_or_default();
        let name = image.rsplit('/').next().unwrap_or_default();
        if matches!(
            name,
            "kube2iam" | "kiam" | "kiam-agent" | "kiam-server" | "kube-aws-iam-controller"
        ) {
            out.iam_agents.insert(name.into());
        }
    }
    for v in list(pod, "/volumes") {
        let path = text(v, "/hostPath/path");
        out.docker_socket +=
            usize::from(path.ends_with("docker.sock") || path.starts_with("/var/lib/docker"));
        out.git_repo += usize::from(v.get("gitRepo").is_some());
        out.in_tree_volumes += usize::from(v.get("awsElasticBlockStore").is_some());
        out.nfs_volumes += usize::from(v.get("nfs").is_some());
    }
    let placed = [
        pod.get("nodeSelector"),
        pod.get("affinity"),
        pod.get("tolerations"),
    ];
    let says = |word: &str| placed.iter().flatten().any(|v| mentions(v, word));
    out.master_label += usize::from(says("node-role.kubernetes.io/master"));
    out.role_label += usize::from(says("kubernetes.io/role"));
}

/// Whether a key or a string below is exactly this.
fn mentions(v: &Value, word: &str) -> bool {
    match v {
        Value::String(s) => s == word,
        Value::Array(a) => a.iter().any(|v| mentions(v, word)),
        Value::Object(m) => m.iter().any(|(k, v)| k == word || mentions(v, word)),
        _ => false,
    }
}
