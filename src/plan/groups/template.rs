//! The launch template of a group (kops.md 3, eks.md 1.6): what a managed node group's own request cannot say.

use super::super::kops::{number, strings};
use super::super::model::{Severity, TargetLaunchTemplate};
use super::host::Change;
use super::kubelet::Kubelet;
use super::types::Machine;
use super::zones::Own;
use super::{Ig, userdata};
use crate::snapshot::kops::effective;
use crate::world::cloud::Disk;
use serde_json::Value;
use std::collections::BTreeMap;

/// Most security groups on a network interface (eks.md 2.3).
const MOST_GROUPS: usize = 5;
/// Most tags of a resource, longest key and value (EC2).
const MOST_TAGS: usize = 50;
const TAG_KEY: usize = 128;
const TAG_VALUE: usize = 256;
/// User data before encoding, bytes (EC2).
const USER_DATA: usize = 16 * 1024;

/// Makes it; the name comes with the group's.
pub(super) fn template(
    ig: &mut Ig,
    machine: &Machine,
    own: &Own,
    (root, volumes): (Disk, Vec<Disk>),
    kubelet: &Kubelet,
    host: Vec<Change>,
) -> TargetLaunchTemplate {
    let (http_tokens, hop_limit) = metadata(ig);
    let security_groups = security_groups(ig);
    let tags = tags(ig);
    let user_data = userdata::render(machine.bottlerocket, kubelet, &host);
    if let Some(text) = &user_data
        && text.len() > USER_DATA
    {
        ig.find(
            "KOPS-ig-userdata",
            Severity::Blocker,
            format!("user data of {} bytes: EC2 takes {USER_DATA}", text.len()),
            "Move files and scripts into a DaemonSet or an AMI of your own.",
        );
    }
    TargetLaunchTemplate {
        name: String::new(),
        root,
        volumes,
        http_tokens,
        hop_limit,
        security_groups,
        user_data,
        tags,
        monitoring: ig.field("/spec/detailedInstanceMonitoring") == Some(&Value::Bool(true)),
        tenancy: tenancy(ig),
        cpu_credits: cpu_credits(ig, machine),
        associate_public_ip: public_ip(ig, own),
    }
}

/// Instance metadata: what the group says, else EKS's demand for tokens with as many hops as pods of blue needed.
///
/// The trap (kops.md 3): hop limit 1 and tokens keep pods away from the node's role; kops before Kubernetes 1.27 let them in by default.
fn metadata(ig: &mut Ig) -> (String, u32) {
    let tokens = ig
        .text("/spec/instanceMetadata/httpTokens")
        .map(String::from);
    let hops = number(ig.doc, "/spec/instanceMetadata/httpPutResponseHopLimit");
    // The group's word, else the default of its kops (kops.md 1.4, row IMDS).
    let optional = effective(&ig.snapshot.kops).imds(ig.doc).tokens.value == "optional";
    let reached = optional || hops.is_some_and(|h| h > 1);
    match (&tokens, hops) {
        (Some(t), _) => ig.note(format!(
            "instance metadata as on blue: tokens {t}, {} hops",
            hops.unwrap_or(1)
        )),
        (None, _) if optional => ig.find(
            "KOPS-ig-imds",
            Severity::Warning,
            "blue's nodes answer metadata requests without a token, so every pod could ask for the node's role; green demands tokens (version 2), over two hops so that pods still reach it: a program that knows only version 1 gets no answer",
            "Give such programs a newer SDK or a role of their own (IAM-04).",
        ),
        (None, _) => ig.note("instance metadata: tokens required, the default of kops from Kubernetes 1.27 on"),
    }
    if tokens.as_deref() == Some("optional")
        && let Some(hops) = hops.filter(|h| *h > 1)
    {
        ig.find(
            "KOPS-ig-imds",
            Severity::Warning,
            format!("instance metadata comes along as on blue, without a token and over {hops} hops: every pod of green has the node's role, and so has whoever makes one fetch an address"),
            "Say httpTokens: required and httpPutResponseHopLimit: 1 on blue's group once no pod needs the node's role; give those that do a role of their own (IAM-04).",
        );
    }
    if !reached {
        ig.note("pods outside the host's network cannot reach the instance metadata, as on blue");
    }
    let hop_limit = hops
        .unwrap_or(if tokens.is_none() && optional { 2 } else { 1 })
        .clamp(1, 64);
    (tokens.unwrap_or_else(|| "required".into()), hop_limit)
}

/// Blue's own groups for these nodes, and then the cluster's too: with any group in the template EKS adds none (eks.md 1.6).
fn security_groups(ig: &mut Ig) -> Vec<String> {
    let mut own: Vec<String> = vec![];
    if let Some(group) = ig.text("/spec/securityGroupOverride").map(String::from) {
        ig.find(
            "KOPS-ig-securityGroupOverride",
            Severity::Warning,
            format!("{group} takes the place of kops's node group on blue; on green it stands beside the cluster's group, without which no node joins"),
            "Check that its rules fit: it was written for nodes of blue.",
        );
        own.push(group);
    }
    own.extend(strings(ig.doc, "/spec/additionalSecurityGroups"));
    let mut out: Vec<String> = vec![];
    for group in own {
        if let Some(why) = of_blue(ig, &group) {
            ig.find(
                "KOPS-ig-additionalSecurityGroups",
                Severity::Warning,
                format!("{group} {why}: on green's nodes it would stop `kops delete cluster` and join the two clusters' nodes, so it is left out"),
                "Rules that trust it get a twin for green's group (NET-02).",
            );
        } else if !out.contains(&group) {
            if unknown(ig, &group) {
                ig.find(
                    "KOPS-ig-additionalSecurityGroups",
                    Severity::Blocker,
                    format!("{group} is not in blue's VPC: EKS would refuse the node group"),
                    "Correct the instance group, or read the account again.",
                );
            }
            out.push(group);
        }
    }
    if out.is_empty() {
        return out;
    }
    ig.find(
        "KOPS-ig-additionalSecurityGroups",
        Severity::Info,
        format!("green's nodes carry {} as blue's do, beside the cluster's own group: rules that trust them trust green's nodes too", out.join(", ")),
        "Nothing to do.",
    );
    out.insert(0, "${cluster.security_group}".into());
    if out.len() > MOST_GROUPS {
        ig.find(
            "KOPS-ig-additionalSecurityGroups",
            Severity::Blocker,
            format!(
                "{} security groups with the cluster's own: a network interface takes {MOST_GROUPS}",
                out.len()
            ),
            "Put rules together on blue.",
        );
    }
    out
}

/// Whether the VPC's groups were read and this is none of them.
fn unknown(ig: &Ig, id: &str) -> bool {
    let read = ig
        .snapshot
        .aws
        .as_ref()
        .map(|a| a.security_groups.as_slice())
        .unwrap_or_default();
    !read.is_empty() && read.iter().all(|g| g.id != id)
}

/// Whether a security group is kops's own (eks.md 2.3).
fn of_blue(ig: &Ig, id: &str) -> Option<String> {
    let blue = &ig.spec.blue.cluster;
    let group = ig
        .snapshot
        .aws
        .as_ref()?
        .security_groups
        .iter()
        .find(|g| g.id == id)?;
    let owned = group.tags.get("KubernetesCluster") == Some(blue)
        || group
            .tags
            .get(&format!("kubernetes.io/cluster/{blue}"))
            .is_some_and(|v| v == "owned");
    owned.then(|| format!("({}) is kops's own", group.name))
}

/// cloudLabels: the cluster's, then the group's over them (kops.md 1.5). Those by which kops owns things never come along:
/// `kops delete cluster` selects by them (kops.md 4.3).
fn tags(ig: &mut Ig) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    for source in [
        ig.of_cluster("/spec/cloudLabels"),
        ig.field("/spec/cloudLabels"),
    ]
    .into_iter()
    .flatten()
    {
        for (k, v) in source.as_object().into_iter().flatten() {
            let v = v.as_str().map_or_else(|| v.to_string(), String::from);
            out.insert(k.clone(), v);
        }
    }
    let (mut kops, mut scaling, mut bad) = (vec![], vec![], vec![]);
    out.retain(|k: &String, v: &mut String| {
        let list = if k == "KubernetesCluster"
            || k.starts_with("kubernetes.io/")
            || k.starts_with("kops.k8s.io/")
            || k.starts_with("k8s.io/role/")
            || k.starts_with("k8s.io/etcd/")
        {
            &mut kops
        } else if k.starts_with("k8s.io/cluster-autoscaler/") {
            &mut scaling
        } else if k.starts_with("aws:") || k.len() > TAG_KEY || v.len() > TAG_VALUE || k.is_empty()
        {
            &mut bad
        } else {
            return true;
        };
        list.push(k.clone());
        false
    });
    if !kops.is_empty() {
        ig.find(
            "KOPS-ig-tags",
            Severity::Info,
            format!(
                "tags {} name blue and stay there: `kops delete cluster` deletes what carries them",
                kops.join(", ")
            ),
            "Nothing to do.",
        );
    }
    if !scaling.is_empty() {
        ig.find(
            "KOPS-ig-autoscaler-tags",
            Severity::Warning,
            format!("tags {} are meant for an Auto Scaling group, which tags of a launch template do not reach; EKS itself tags its groups so that the autoscaler finds them", scaling.join(", ")),
            "Hints for scaling from zero (node-template) must be put on the Auto Scaling group by hand; labels and taints of the node group the autoscaler reads from EKS.",
        );
    }
    if !bad.is_empty() {
        ig.find(
            "KOPS-ig-tags",
            Severity::Warning,
            format!(
                "tags {} are none that EC2 takes and are left out",
                bad.join(", ")
            ),
            "Correct cloudLabels on blue.",
        );
    }
    if out.len() > MOST_TAGS - 5 {
        ig.find(
            "KOPS-ig-tags",
            Severity::Blocker,
            format!(
                "{} tags: EC2 takes {MOST_TAGS} with those of EKS and crossfade",
                out.len()
            ),
            "Remove cloudLabels on blue.",
        );
    }
    out
}

fn tenancy(ig: &mut Ig) -> Option<String> {
    let tenancy = ig
        .text("/spec/tenancy")
        .filter(|t| *t != "default")?
        .to_string();
    if tenancy == "host" {
        ig.find(
            "KOPS-ig-tenancy",
            Severity::Warning,
            "runs on dedicated hosts: the launch template asks for them, but a managed node group has no word for which",
            "Make sure that free hosts with auto-placement are there, or take dedicated instances.",
        );
    } else {
        ig.note(format!("tenancy {tenancy}, as on blue"));
    }
    Some(tenancy)
}

/// Only burstable types have credits: EC2 refuses the setting for others.
fn cpu_credits(ig: &mut Ig, machine: &Machine) -> Option<String> {
    let credits = ig.text("/spec/cpuCredits")?.to_string();
    let burstable = |t: &String| {
        let family = t.split('.').next().unwrap_or("");
        family.starts_with('t') && family[1..].starts_with(|c: char| c.is_ascii_digit())
    };
    if machine
        .types
        .iter()
        .chain(&machine.spot_types)
        .all(burstable)
    {
        return Some(credits);
    }
    ig.note(format!(
        "CPU credits {credits} are dropped: not all types are burstable"
    ));
    None
}

/// kops gives nodes in public subnets a public address unless told otherwise, and never one in private subnets. Its subnets do not do it
/// by themselves, so EKS would refuse the group (eks.md 1.6, Ec2SubnetInvalidConfiguration).
fn public_ip(ig: &mut Ig, own: &Own) -> Option<bool> {
    let said = ig
        .field("/spec/associatePublicIp")
        .or(ig.field("/spec/associatePublicIP"))
        .and_then(Value::as_bool);
    match own.kind.as_deref() {
        Some(k) if k.eq_ignore_ascii_case("public") => {
            if said != Some(false) {
                ig.note("public addresses: kops's nodes in public subnets have them, the subnets give none by themselves");
            }
            Some(said.unwrap_or(true))
        }
        Some(_) => None,
        None => {
            if said.is_some() {
                ig.note(
                    "associatePublicIp is dropped: the subnets of green.subnets decide for themselves",
                );
            }
            None
        }
    }
}
