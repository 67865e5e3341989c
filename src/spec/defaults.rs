//! What `init` writes, and what `plan` takes without a spec.

use super::model::{API_VERSION, Aws, Blue, Dns, Green, Limits, Probes, Spec, Workloads};
use super::validate::overlap;
use crate::object::{ObjectId, annotation};
use crate::snapshot::model::Snapshot;

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
            public_endpoint: true,
            access: vec![],
            endpoint_cidrs: vec![],
            node_groups: Default::default(),
            roles: Default::default(),
            network: Default::default(),
            adopt: vec![],
            terraform_state: None,
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
        },
        dns: Dns::default(),
        workloads: Workloads {
            singletons: singletons(snapshot),
            ..Workloads::default()
        },
        data: vec![],
        probes: Probes::default(),
        limits: Limits::default(),
        waivers: vec![],
        cost: Default::default(),
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

/// Lower-case letters, digits and `-`, beginning with a letter, at most 34 characters: there is room for `-green`.
fn plain_name(cluster: &str) -> String {
    let mut name: String = cluster
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        name.insert(0, 'k');
    }
    name.truncate(34);
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
