//! Why the instances of a node group cannot be launched: keys, quotas, addresses (eks.md 1.6, 4). AWS says so minutes after it took the
//! request, as a health issue of the group.

use serde_json::{Value, json};

use super::{Subnet, text, texts};
use crate::strict::controls::{Issue, KeyTrouble};
use crate::strict::instance_types::size_of;
use crate::strict::launch::Template;
use crate::strict::{State, quotas};

fn issue(code: &str, message: impl Into<String>) -> Issue {
    Issue {
        code: code.to_owned(),
        message: message.into(),
    }
}

/// The first reason, if there is one.
pub(super) async fn trouble(
    state: &State,
    body: &Value,
    scaling: &Value,
    template: Option<&Template>,
    subnets: &[Subnet],
) -> Option<Issue> {
    for key in template.map(Template::kms_keys).unwrap_or_default() {
        if let Some(trouble) = state.lock_controls().key_trouble(&key) {
            let reason = match trouble {
                KeyTrouble::Absent => {
                    "Client.InvalidKMSKey.NotFound: The KMS key provided does not exist"
                }
                KeyTrouble::Disabled | KeyTrouble::PendingDeletion => {
                    "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state"
                }
                KeyTrouble::Denied => "Client.InternalError: Client error on launch",
            };
            return Some(issue(
                "AsgInstanceLaunchFailures",
                format!(
                    "Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: {reason}"
                ),
            ));
        }
    }
    let nodes = scaling["desiredSize"].as_u64().unwrap_or(0);
    let free: u64 = subnets.iter().map(|s| s.free).sum();
    if nodes > free {
        return Some(issue(
            "InsufficientFreeAddresses",
            format!(
                "Amazon Autoscaling was unable to launch instances because there are not enough free addresses in the subnet(s): {nodes} nodes, {free} free addresses"
            ),
        ));
    }
    let spot = text(body, "capacityType") == Some("SPOT");
    let code = match spot {
        true => quotas::VCPUS_SPOT,
        false => quotas::VCPUS_ON_DEMAND,
    };
    let quota = state.lock_controls().quota(code)?;
    let kind = texts(body, "instanceTypes").into_iter().next();
    let kind = kind.as_deref().unwrap_or("t3.medium");
    let vcpus = |kind: &str, nodes: u64| size_of(kind).map_or(2, |t| u64::from(t.vcpus)) * nodes;
    let running: u64 = state
        .lock_eks()
        .node_plans()
        .iter()
        .filter(|p| (p.capacity_type == "SPOT") == spot)
        .map(|p| vcpus(&p.instance_type, p.desired as u64))
        .sum();
    if running + vcpus(kind, nodes) <= quota {
        return None;
    }
    Some(issue(
        "AsgInstanceLaunchFailures",
        match spot {
            true => "Could not launch Spot Instances. MaxSpotInstanceCountExceeded - Max spot instance count exceeded. Launching EC2 instance failed.".to_owned(),
            false => format!("Could not launch On-Demand Instances. VcpuLimitExceeded - You have requested more vCPU capacity than your current vCPU limit of {quota} allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit. Launching EC2 instance failed."),
        },
    ))
}

/// Label domains that a kubelet may give itself, of those that are Kubernetes' own (eks.md 1.6).
const OWN_DOMAINS: &[&str] = &["kubelet.kubernetes.io", "node.kubernetes.io"];
const OWN_LABELS: &[&str] = &[
    "kubernetes.io/hostname",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/instance-type",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
];

/// The first label that the kubelet refuses to give itself: it ends, and the node never joins (eks.md 1.6).
fn refused_label(user_data: &str) -> Option<String> {
    let lists = user_data.split("--node-labels=").skip(1);
    let labels = lists.flat_map(|rest| {
        let end = rest.find(|c: char| c.is_whitespace() || "\"'`".contains(c));
        rest[..end.unwrap_or(rest.len())].split(',')
    });
    for label in labels {
        let key = label.split('=').next().unwrap_or(label);
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        let of = |d: &str| domain == d || domain.ends_with(&format!(".{d}"));
        let reserved = of("kubernetes.io") || of("k8s.io");
        if reserved && !OWN_DOMAINS.iter().any(|d| of(d)) && !OWN_LABELS.contains(&key) {
            return Some(key.to_owned());
        }
    }
    None
}

/// Why the nodes of this template start and never join, if so (eks.md 1.6, 1.7).
pub(super) fn never_joins(template: &Template, cluster_group: &str) -> Option<String> {
    const HEAD: &str = "Instances failed to join the kubernetes cluster: launch template";
    let name = &template.name;
    let groups = template.security_groups();
    if !groups.is_empty() && !groups.iter().any(|g| g == cluster_group) {
        return Some(format!(
            "{HEAD} {name} names security groups without the cluster's own {cluster_group}"
        ));
    }
    let user_data = template.user_data();
    if let Some(label) = refused_label(&user_data) {
        return Some(format!(
            "{HEAD} {name} has the kubelet label itself {label}, which it may not"
        ));
    }
    // With an image of one's own nothing is merged: the node must be told all of it.
    let told = ["apiServerEndpoint", "certificateAuthority", "cidr", "name"];
    let nodeadm = user_data.contains("kind: NodeConfig") || user_data.is_empty();
    if template.has_image() && nodeadm && told.iter().any(|field| !user_data.contains(field)) {
        return Some(format!(
            "{HEAD} {name} has an image and no NodeConfig with {told:?}"
        ));
    }
    None
}

/// Why EKS cannot encrypt with this key: what a test said, else what KMS says of it.
pub(super) async fn key_refusal(state: &State, who: &str, key: &str) -> Option<String> {
    let said = state.lock_controls().key_trouble(key);
    if let Some(trouble) = said {
        return Some(match trouble {
            KeyTrouble::Absent => format!("The KMS key {key} does not exist"),
            KeyTrouble::Disabled => format!("The KMS key {key} is not enabled: it is Disabled"),
            KeyTrouble::PendingDeletion => {
                format!("The KMS key {key} is not enabled: it is PendingDeletion")
            }
            KeyTrouble::Denied => "User not authorized to perform kms:CreateGrant operation".into(),
        });
    }
    let (status, answer) = state
        .ask_json(
            "kms",
            who,
            "TrentService.DescribeKey",
            &json!({"KeyId": key}),
        )
        .await;
    let found = &answer["KeyMetadata"];
    if status != 200 || !found.is_object() {
        return Some(format!("The KMS key {key} does not exist"));
    }
    if found["KeyState"] != "Enabled" {
        return Some(format!(
            "The KMS key {key} is not enabled: it is {}",
            found["KeyState"].as_str().unwrap_or("")
        ));
    }
    let symmetric = found["KeySpec"].as_str().unwrap_or("SYMMETRIC_DEFAULT") == "SYMMETRIC_DEFAULT"
        && found["KeyUsage"] == "ENCRYPT_DECRYPT";
    (!symmetric).then(|| format!("The KMS key {key} must be symmetric, for encryption"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_labels_itself_only_with_the_short_list_and_foreign_domains() {
        for (user_data, refused) in [
            ("flags: ['--node-labels=team=web,example.com/x=1']", None),
            (
                "--node-labels=node.kubernetes.io/role=web,topology.kubernetes.io/zone=a",
                None,
            ),
            (
                "--node-labels=team=web,kubernetes.io/role=node",
                Some("kubernetes.io/role"),
            ),
            ("--node-labels=\"", None),
            (
                "--node-labels=kops.k8s.io/instancegroup=nodes --v=2",
                Some("kops.k8s.io/instancegroup"),
            ),
            (
                "--node-labels=node-role.kubernetes.io/node=",
                Some("node-role.kubernetes.io/node"),
            ),
        ] {
            assert_eq!(refused_label(user_data).as_deref(), refused, "{user_data}");
        }
    }
}
