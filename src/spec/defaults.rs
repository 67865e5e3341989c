//! What `init` writes, and what `plan` takes without a spec.

use super::model::{API_VERSION, Aws, Blue, Dns, Green, Limits, Probes, Spec, Workloads};
use super::validate::overlap;
use crate::object::{ObjectId, annotation, sha256_hex};
use crate::snapshot::kops::{Api, effective};
use crate::snapshot::model::{Kops, Snapshot};

/// Marks a workload of which never two may run.
pub const SINGLETON: &str = "crossfade.dev/singleton";

/// A spec with every default that the snapshot supports. It always passes its own checks.
pub fn defaults_for(snapshot: &Snapshot) -> Spec {
    let cluster = snapshot
        .kops
        .cluster
        .as_ref()
        .and_then(|c| c.pointer("/metadata/name")?.as_str())
        .unwrap_or("blue");
    let base = plain_name(cluster);
    let mut green = format!("{base}-green");
    if green == cluster {
        green.push('2');
    }
    let identity = snapshot.aws.as_ref().map(|a| &a.identity);
    let doors = api_doors(&snapshot.kops);
    let endpoint_cidrs = doors.public_ranges();
    Spec {
        api_version: API_VERSION.into(),
        kind: "Migration".into(),
        name: base,
        blue: Blue {
            cluster: cluster.into(),
            kubeconfig: None,
            context: None,
            state_store: None,
        },
        green: Green {
            name: green,
            version: version_for(snapshot),
            subnets: vec![],
            service_cidr: service_range(snapshot),
            // A private or narrowed API does not become a world-open one without a word.
            public_endpoint: !doors.internal && (doors.open() || !endpoint_cidrs.is_empty()),
            access: vec![],
            endpoint_cidrs: if doors.internal {
                vec![]
            } else {
                endpoint_cidrs
            },
            node_groups: Default::default(),
            roles: Default::default(),
            network: Default::default(),
            adopt: vec![],
            terraform_state: None,
            control_plane: Default::default(),
            identity: Default::default(),
            addons: Default::default(),
            nodes: Default::default(),
        },
        aws: Aws {
            account: identity
                .map(|i| i.account.clone())
                .filter(|a| a.len() == 12),
            region: identity
                .map(|i| i.region.clone())
                .filter(|r| !r.is_empty())
                .or_else(|| kops_region(snapshot)),
            profile: None,
            state_bucket: None,
        },
        provision: Default::default(),
        dns: Dns::default(),
        workloads: Workloads {
            singletons: singletons(snapshot),
            ..Workloads::default()
        },
        data: vec![],
        probes: Probes::default(),
        limits: Limits::default(),
        connections: Default::default(),
        waivers: vec![],
        cost: Default::default(),
    }
}

/// Who reaches blue's API server.
pub(crate) struct ApiDoors {
    /// Its load balancer is `Internal`: nobody from outside the VPC, whatever the list says.
    pub internal: bool,
    /// What `kubernetesApiAccess` lists; empty when it is open to everybody.
    pub list: Vec<String>,
}

impl ApiDoors {
    /// Whether the list lets everybody in.
    pub fn open(&self) -> bool {
        self.list.is_empty()
    }

    /// What of the list EKS's public endpoint takes and can use: IPv4 ranges of the internet. Private ranges come by the private
    /// endpoint, prefix lists (`pl-`) cannot be given, and a cluster with IPv4 pods has no IPv6 endpoint (eks.md 1.2).
    pub fn public_ranges(&self) -> Vec<String> {
        let mut out: Vec<String> = self
            .list
            .iter()
            .filter(|r| crate::rewrite::range(r).is_some() && !is_private(r))
            .cloned()
            .collect();
        out.sort();
        out.dedup();
        out
    }
}

/// Whether an IPv4 range lies inside one that the internet does not carry.
pub(crate) fn is_private(cidr: &str) -> bool {
    let Some(who) = crate::rewrite::range(cidr) else {
        return false;
    };
    [
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
    ]
    .into_iter()
    .filter_map(crate::rewrite::range)
    .any(|p| p.0 <= who.0 && who.1 <= p.1)
}

/// kops opens the API to everybody when nothing is listed (kops.md 3).
pub(crate) fn api_doors(kops: &Kops) -> ApiDoors {
    let list: Vec<String> = kops
        .cluster
        .iter()
        .flat_map(|c| {
            ["/spec/kubernetesApiAccess", "/spec/api/access"]
                .into_iter()
                .filter_map(|p| c.pointer(p)?.as_array())
        })
        .flatten()
        .filter_map(|v| v.as_str().map(String::from))
        .collect();
    let everybody = list.iter().any(|r| r == "0.0.0.0/0" || r == "::/0");
    ApiDoors {
        internal: matches!(
            effective(kops).api().value,
            Api::LoadBalancer { scheme, .. } if scheme == "Internal"
        ),
        list: if everybody { vec![] } else { list },
    }
}

/// The default version, or blue's own when that is newer and EKS has it: a cluster never goes back a minor version.
fn version_for(snapshot: &Snapshot) -> String {
    /// Newest version of EKS that crossfade knows (eks.md 1.1).
    const NEWEST: u32 = 36;
    let default = super::model::default_version();
    let blue = snapshot.blue.version.as_ref().map(|v| v.minor).or_else(|| {
        let cluster = snapshot.kops.cluster.as_ref()?;
        Some(crate::snapshot::kops::kubernetes_version(cluster)?.minor)
    });
    match blue {
        Some(minor) if crate::rewrite::minor(&default).is_some_and(|d| minor > d) => {
            format!("1.{}", minor.min(NEWEST))
        }
        _ => default,
    }
}

/// Lower-case letters, digits and `-`, beginning with a letter, at most 34 characters: there is room for `-green`. A name that is
/// cut ends with a hash of the whole, so that two long names with one beginning stay two.
fn plain_name(cluster: &str) -> String {
    let mut name: String = cluster
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        name.insert(0, 'k');
    }
    if name.len() > 34 {
        name.truncate(27);
        let hash = &sha256_hex(cluster)[..6];
        return format!("{}-{hash}", name.trim_end_matches('-'));
    }
    name.trim_end_matches('-').to_string()
}

/// Region of the kops subnets: their zone without its letter.
fn kops_region(snapshot: &Snapshot) -> Option<String> {
    let subnets = snapshot.kops.cluster.as_ref()?.pointer("/spec/subnets")?;
    subnets.as_array()?.iter().find_map(|s| {
        let zone = s.get("zone")?.as_str()?;
        zone.ends_with(|c: char| c.is_ascii_lowercase())
            .then(|| zone[..zone.len() - 1].to_string())
    })
}

/// kops's default VPC, 172.20.0.0/16, is one of the two ranges that EKS would choose from by itself (eks.md), so the range is
/// always said: the first that overlaps nothing of the VPC.
fn service_range(snapshot: &Snapshot) -> Option<String> {
    let mut taken: Vec<String> = snapshot
        .aws
        .as_ref()
        .and_then(|a| a.vpc.as_ref())
        .map(|v| v.cidrs.clone())
        .unwrap_or_default();
    if let Some(spec) = snapshot.kops.cluster.as_ref().and_then(|c| c.get("spec")) {
        let text = |v: &serde_json::Value| v.as_str().map(String::from);
        taken.extend(spec.get("networkCIDR").and_then(text));
        taken.extend(
            spec.get("additionalNetworkCIDRs")
                .and_then(|v| v.as_array())
                .into_iter()
                .flatten()
                .filter_map(text),
        );
    }
    [
        "10.100.0.0/16",
        "172.20.0.0/16",
        "10.200.0.0/16",
        "192.168.0.0/16",
        "172.31.0.0/16",
    ]
    .into_iter()
    .find(|range| !taken.iter().any(|t| overlap(range, t)))
    .map(Into::into)
}

fn singletons(snapshot: &Snapshot) -> Vec<String> {
    let mut found: Vec<String> = snapshot
        .blue
        .objects
        .iter()
        .filter(|o| annotation(o, SINGLETON) == Some("true"))
        .filter_map(ObjectId::of)
        .filter(|id| ["Deployment", "StatefulSet"].contains(&id.kind.as_str()))
        .map(|id| id.to_string())
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn green_of(spec: Value) -> Green {
        let mut s = Snapshot::default();
        s.kops.cluster = Some(
            json!({"apiVersion": "kops.k8s.io/v1alpha2", "kind": "Cluster", "metadata": {"name": "shop.test"}, "spec": spec}),
        );
        defaults_for(&s).green
    }

    #[test]
    fn an_api_that_everybody_reaches_stays_one_and_an_internal_one_stays_inside() {
        for access in [
            json!(null),
            json!([]),
            json!(["0.0.0.0/0", "::/0"]),
            json!(["203.0.113.0/24", "0.0.0.0/0"]),
        ] {
            let g = green_of(
                json!({"kubernetesApiAccess": access, "api": {"loadBalancer": {"type": "Public"}}}),
            );
            assert!(g.public_endpoint && g.endpoint_cidrs.is_empty(), "{access}");
        }
        for access in [json!(["0.0.0.0/0"]), json!(["203.0.113.0/24"])] {
            let g = green_of(
                json!({"kubernetesApiAccess": access, "api": {"loadBalancer": {"type": "Internal"}}}),
            );
            assert!(
                !g.public_endpoint && g.endpoint_cidrs.is_empty(),
                "{access}"
            );
        }
    }

    #[test]
    fn two_long_names_with_one_beginning_get_two_names_for_green() {
        let long = "production-eu-west-1-platform-team";
        assert_eq!(plain_name(long), long, "34 characters fit");
        let (a, b) = (format!("{long}-a.shop.test"), format!("{long}-b.shop.test"));
        let (one, two) = (plain_name(&a), plain_name(&b));
        assert_ne!(one, two);
        for name in [&one, &two] {
            assert!(
                name.starts_with("production-eu-west-1-platfo") && name.len() <= 34,
                "{name}"
            );
        }
        assert_eq!(one, plain_name(&a), "the same every time");
        // A dash at the cut is not doubled.
        assert!(!plain_name("abcdefghijklmnopqrstuvwxyz.abcdefghijklmn").contains("--"));
    }

    #[test]
    fn a_narrowed_api_stays_narrow_with_what_the_public_endpoint_can_take() {
        let g = green_of(
            json!({"kubernetesApiAccess": ["203.0.113.0/24", "pl-44444444", "2001:db8::/32", "10.0.0.0/8", "1.1.1.0/24"]}),
        );
        assert!(g.public_endpoint);
        assert_eq!(g.endpoint_cidrs, ["1.1.1.0/24", "203.0.113.0/24"]);
        for inside in [
            json!(["10.0.0.0/8", "172.20.0.0/16"]),
            json!(["pl-44444444"]),
        ] {
            let g = green_of(json!({"kubernetesApiAccess": inside}));
            assert!(
                !g.public_endpoint && g.endpoint_cidrs.is_empty(),
                "{inside}"
            );
        }
    }
}
