//! What kops did with a group's Auto Scaling group and its nodes besides starting them, and who does it on green (kops.md 3).

use super::super::kops::{strings, text};
use super::super::model::Severity;
use super::types::Machine;
use super::{Ig, kubelet, labels};
use serde_json::Value;

/// Nodes that an update may take away at once: EKS has 1 to 100 or a percentage; kops's default is 1 as well.
pub(super) fn max_unavailable(ig: &mut Ig) -> Option<String> {
    // Field by field, the group's over the cluster's (kops.md 1.5).
    let field = |ig: &Ig, name: &str| {
        ig.over_cluster(&format!("/spec/rollingUpdate/{name}"))
            .cloned()
    };
    for (name, what) in [
        (
            "maxSurge",
            "a managed node group always starts new nodes first",
        ),
        ("drainAndTerminate", "a managed node group always drains"),
    ] {
        if let Some(v) = field(ig, name) {
            ig.note(format!("rollingUpdate.{name} {v} is dropped: {what}"));
        }
    }
    let value = field(ig, "maxUnavailable")?;
    let said = value
        .as_str()
        .map_or_else(|| value.to_string(), String::from);
    let (digits, unit) = match said.strip_suffix('%') {
        Some(d) => (d, "%"),
        None => (said.as_str(), ""),
    };
    let Ok(n) = digits.trim().parse::<u32>() else {
        ig.find(
            "KOPS-ig-rollingUpdate",
            Severity::Warning,
            format!("rollingUpdate.maxUnavailable {said} cannot be read: one node at a time"),
            "Correct it on blue.",
        );
        return None;
    };
    let inside = n.clamp(1, 100);
    if inside != n {
        ig.note(format!(
            "rollingUpdate.maxUnavailable {said} becomes {inside}{unit}: EKS takes 1 to 100"
        ));
    }
    Some(format!("{inside}{unit}"))
}

/// A group without an Auto Scaling group behind it: what its NodePool on green must carry (kops.md 3).
pub(super) fn karpenter(ig: &mut Ig) {
    let mut types = strings(ig.doc, "/spec/mixedInstancesPolicy/instances");
    if types.is_empty() {
        types = ig
            .text("/spec/machineType")
            .into_iter()
            .flat_map(|t| t.split(','))
            .map(|t| t.trim().to_string())
            .filter(|t| !t.is_empty())
            .collect();
    }
    let mut carries = vec![if types.is_empty() {
        "no machineType: Karpenter chose".to_string()
    } else {
        format!("types {}", types.join(", "))
    }];
    let labels: Vec<String> = labels::declared(ig)
        .into_iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    let mut add = |what: &str, list: Vec<String>| {
        carries.push(if list.is_empty() {
            format!("no {what}")
        } else {
            format!("{what} {}", list.join(", "))
        });
    };
    add("labels", labels);
    add("taints", labels::spelled(ig));
    add("kubelet settings", kubelet::named(ig));
    ig.find(
        "KOPS-ig-karpenter",
        Severity::Warning,
        format!(
            "is managed by Karpenter and becomes no managed node group: there is no Auto Scaling group behind it. Its NodePool and EC2NodeClass on green must carry: {}",
            carries.join("; ")
        ),
        "Install Karpenter on green and write an EC2NodeClass and a NodePool that carry this.",
    );
}

/// Findings for what has no place in a managed node group.
pub(super) fn findings(ig: &mut Ig, machine: &Machine) {
    balancers(ig);
    profile(ig);
    image(ig, machine);
    scaling(ig);
    warm_pool(ig);
    let yes = |ig: &Ig, p: &str| ig.field(p) == Some(&Value::Bool(true));
    if yes(ig, "/spec/instanceProtection") {
        ig.find(
            "KOPS-ig-instanceProtection",
            Severity::Info,
            "nodes are protected from scale-in on blue: a managed node group's Auto Scaling group belongs to EKS and must not be edited",
            "Annotate pods that must stay (cluster-autoscaler.kubernetes.io/safe-to-evict: \"false\").",
        );
    }
    if let Some(life) = ig.field("/spec/maxInstanceLifetime").cloned() {
        let life = life.as_str().map_or_else(|| life.to_string(), String::from);
        ig.find(
            "KOPS-ig-maxInstanceLifetime",
            Severity::Info,
            format!(
                "nodes are replaced after {life} on blue: a managed node group has no such setting"
            ),
            "Update the node group regularly, or use Karpenter (expireAfter).",
        );
    }
    if yes(ig, "/spec/capacityRebalance") {
        ig.note("capacityRebalance: a managed SPOT group does that by itself");
    }
    for list in ["guestAccelerators", "gcpProvisioningModel", "zones"] {
        if ig.field(&format!("/spec/{list}")).is_some() {
            ig.note(format!("{list} has no meaning on AWS"));
        }
    }
}

/// Traffic that reaches nodes without Kubernetes knowing (kops.md 3).
fn balancers(ig: &mut Ig) {
    let all: Vec<Value> = ig
        .field("/spec/externalLoadBalancers")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    for b in all {
        if let Some(name) = text(&b, "/loadBalancerName") {
            ig.find(
                "KOPS-ig-externalLoadBalancers",
                Severity::Blocker,
                format!("nodes stand behind the classic load balancer {name}, outside Kubernetes: its traffic stays on blue, whatever DNS says, and a classic load balancer cannot serve both"),
                "Put a Service or Ingress with a load balancer of its own in its place on blue first, or waive this when nobody uses it.",
            );
        }
        if let Some(arn) = text(&b, "/targetGroupArn").or(text(&b, "/targetGroupARN")) {
            ig.find(
                "KOPS-ig-externalLoadBalancers",
                Severity::Warning,
                format!("nodes stand in the target group {arn}, outside Kubernetes: its traffic stays on blue, whatever DNS says"),
                "Before the cutover, bind the target group on green (TargetGroupBinding to the Service behind the NodePort) or attach the node group's Auto Scaling group to it; take blue's out afterwards.",
            );
        }
    }
}

fn profile(ig: &mut Ig) {
    let Some(arn) = ig.text("/spec/iam/profile").map(String::from) else {
        return;
    };
    let role = ig
        .snapshot
        .aws
        .as_ref()
        .and_then(|a| a.instance_profiles.as_ref())
        .and_then(|p| p.get(&arn))
        .map(|r| format!(" (role {r})"))
        .unwrap_or_default();
    ig.find(
        "KOPS-ig-iam",
        Severity::Warning,
        format!("nodes have an instance profile of their own, {arn}{role}; green's nodes take crossfade's node role, and a launch template must not name a profile: what pods did by it they cannot do"),
        "Give each of these workloads a role of its own (IAM-04).",
    );
}

/// Another operating system: what was added to an image of one's own is missing.
fn image(ig: &mut Ig, machine: &Machine) {
    let Some(image) = ig.text("/spec/image").map(String::from) else {
        return;
    };
    let owner = image.split_once('/').map(|(o, _)| o);
    let public = image.starts_with("ssm:")
        || owner.is_some_and(|o| {
            matches!(
                o,
                "kope.io"
                    | "amazon"
                    | "debian"
                    | "flatcar"
                    | "redhat"
                    | "ubuntu"
                    | "coreos"
                    | "099720109477"
                    | "136693071363"
                    | "075585003325"
                    | "379101102735"
                    | "309956199498"
                    | "137112412989"
                    | "595879546273"
                    | "383156758163"
            )
        });
    if public {
        ig.note(format!(
            "image {image} on blue, {} on green",
            machine.ami_type
        ));
    } else {
        ig.find(
            "KOPS-ig-image",
            Severity::Info,
            format!("image {image} may be one of your own: green's nodes run {}, without what was added to it", machine.ami_type),
            "Look what the image holds besides kops's needs; a custom AMI must be built anew for EKS.",
        );
    }
}

fn scaling(ig: &mut Ig) {
    let by_kops = ig
        .of_cluster("/spec/clusterAutoscaler/enabled")
        .is_some_and(|e| *e == Value::Bool(true));
    if ig.field("/spec/autoscale") == Some(&Value::Bool(false)) {
        ig.find(
            "KOPS-ig-autoscale",
            Severity::Warning,
            "kops's autoscaler leaves this group alone (autoscale: false); every managed node group carries the tags by which an autoscaler finds it",
            "Give min = max under green.nodeGroups, or list groups by name in green's autoscaler.",
        );
    }
    if let Some(priority) = ig.field("/spec/autoscalePriority").cloned() {
        ig.find(
            "KOPS-ig-autoscalePriority",
            Severity::Info,
            format!("has priority {priority} for kops's autoscaler, whose map names Auto Scaling groups of blue"),
            "Write the priority map of green's autoscaler with the names of its groups (eks-NAME-...).",
        );
    }
    let suspended: Vec<String> = ig
        .field("/spec/suspendProcesses")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|p| p.as_str().map(String::from))
        .collect();
    if !suspended.is_empty() {
        let why = if suspended.iter().any(|p| p == "AZRebalance") {
            " (green may rebalance zones; a group that is split by zone has nothing to rebalance)"
        } else {
            ""
        };
        ig.find(
            "KOPS-ig-suspendProcesses",
            Severity::Info,
            format!("suspends {} on blue: a managed node group's Auto Scaling group belongs to EKS and must not be edited{why}", suspended.join(", ")),
            "Nothing to do.",
        );
    }
    let (min, max) = (
        super::super::kops::number(ig.doc, "/spec/minSize"),
        super::super::kops::number(ig.doc, "/spec/maxSize"),
    );
    if by_kops && min < max && ig.field("/spec/autoscale") != Some(&Value::Bool(false)) {
        ig.note("kops's autoscaler changes its size on blue: green needs an autoscaler of its own to do so");
    }
}

/// The group's warm pool, else the cluster's; a largest size of 0 switches it off.
fn warm_pool(ig: &mut Ig) {
    let Some(pool) = ig.over_cluster("/spec/warmPool").cloned() else {
        return;
    };
    if pool.get("maxSize").and_then(Value::as_u64) == Some(0) {
        return;
    }
    let hook = if pool.get("enableLifecycleHook") == Some(&Value::Bool(true)) {
        "; its lifecycle hook and the images that kops pulls ahead have no equivalent"
    } else {
        ""
    };
    ig.find(
        "KOPS-ig-warmPool",
        Severity::Warning,
        format!("has a warm pool of stopped instances; crossfade sets none on green, so new nodes take longer to come{hook}"),
        "Set warmPoolConfig on the node group after the move, or keep spare nodes (a higher min).",
    );
}
