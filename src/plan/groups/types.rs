//! Instance types, processor architecture, AMI type and the number of pods (kops.md 3, eks.md 1.6, 2.1).

use super::super::fit::cni;
use super::super::kops::strings;
use super::super::model::Severity;
use super::Ig;
use crate::instance_types;
use crate::object::label;
use crate::snapshot::model::Snapshot;
use std::collections::BTreeSet;

/// Most instance types of a managed node group (eks.md 1.6).
const MOST_TYPES: usize = 20;

/// What the nodes of a group are.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    /// What an on-demand group takes, first choice first.
    pub types: Vec<String>,
    /// What a spot group takes: also those that an Auto Scaling group passes over.
    pub spot_types: Vec<String>,
    pub ami_type: String,
    pub gpu: bool,
    /// AL2023 runs MIME user data and shell; Bottlerocket takes TOML and has no shell (eks.md 1.7).
    pub bottlerocket: bool,
}

/// The instance types of a group and the AMI type for them.
pub(super) fn machine(ig: &mut Ig) -> Machine {
    let (types, spot_types) = wanted(ig);
    let types = one_architecture(ig, types);
    let spot_types = spot_types
        .into_iter()
        .filter(|t| arm(ig.snapshot, t) == arm(ig.snapshot, &types[0]))
        .collect();
    for t in &types {
        if previous_generation(t) {
            ig.find(
                "KOPS-ig-oldtype",
                Severity::Warning,
                format!("{t} is of a previous generation: today's AMIs may not boot on it, and the VPC CNI has no prefixes there"),
                "Name a Nitro type under green.nodeGroups, or change the type on blue.",
            );
        }
    }
    let gpu = types.iter().any(|t| is_gpu(ig.snapshot, t));
    let ami_type = ami(ig, &types, gpu);
    if gpu {
        ig.find(
            "KOPS-ig-gpu",
            Severity::Warning,
            format!("has GPUs: its nodes take {ami_type}, which brings the driver; kops's device plugin, RuntimeClass nvidia and label kops.k8s.io/gpu do not come along by themselves"),
            "Install the NVIDIA device plugin on green before the workloads wake.",
        );
    }
    Machine {
        bottlerocket: ami_type.starts_with("BOTTLEROCKET"),
        types,
        spot_types,
        ami_type,
        gpu,
    }
}

/// Types by wish, by mixed policy, by machine type.
fn wanted(ig: &mut Ig) -> (Vec<String>, Vec<String>) {
    if !ig.wish.instance_types.is_empty() {
        let types = ig.wish.instance_types.clone();
        ig.note(format!(
            "instance types {} by green.nodeGroups",
            types.join(", ")
        ));
        return (types.clone(), types);
    }
    let mut list: Vec<String> = ig
        .text("/spec/machineType")
        .unwrap_or("")
        .split(',')
        .map(|t| t.trim().to_string())
        .filter(|t| !t.is_empty())
        .collect();
    list.dedup();
    let mut mixed = strings(ig.doc, "/spec/mixedInstancesPolicy/instances");
    let mut seen = BTreeSet::new();
    mixed.retain(|t| seen.insert(t.clone()));
    if ig
        .field("/spec/mixedInstancesPolicy/instanceRequirements")
        .is_some()
    {
        return by_requirements(ig, mixed, list);
    }
    if !mixed.is_empty() {
        if mixed.len() > MOST_TYPES {
            ig.find(
                "KOPS-ig-mixed",
                Severity::Warning,
                format!(
                    "{} instance types: a managed node group takes {MOST_TYPES}; left out: {}",
                    mixed.len(),
                    mixed[MOST_TYPES..].join(", ")
                ),
                "Name the types that count under green.nodeGroups.",
            );
            mixed.truncate(MOST_TYPES);
        }
        return (mixed.clone(), mixed);
    }
    if list.is_empty() {
        ig.find(
            "KOPS-ig-default",
            Severity::Info,
            "no machineType: kops takes t3.medium",
            "Nothing to do.",
        );
        list.push("t3.medium".into());
    }
    list.truncate(MOST_TYPES);
    if list.len() > 1 {
        ig.note(format!(
            "machineType is a list: an Auto Scaling group takes the first, {}; a spot group takes them all",
            list[0]
        ));
    }
    (vec![list[0].clone()], list)
}

/// Processors and memory instead of types: Karpenter can, a managed node group cannot.
fn by_requirements(
    ig: &mut Ig,
    mixed: Vec<String>,
    machine: Vec<String>,
) -> (Vec<String>, Vec<String>) {
    let running: BTreeSet<String> = ig
        .snapshot
        .blue
        .of_kind("Node")
        .filter(|n| label(n, "kops.k8s.io/instancegroup") == Some(&ig.name))
        .filter_map(|n| {
            label(n, "node.kubernetes.io/instance-type")
                .or_else(|| label(n, "beta.kubernetes.io/instance-type"))
        })
        .map(String::from)
        .collect();
    let (types, severity, what) = if !mixed.is_empty() {
        (
            mixed,
            Severity::Warning,
            "the types that the policy also names are taken",
        )
    } else if !running.is_empty() {
        (
            running.into_iter().take(MOST_TYPES).collect(),
            Severity::Warning,
            "the types that run now are taken",
        )
    } else if let Some(first) = machine.into_iter().next() {
        (
            vec![first],
            Severity::Warning,
            "its machineType alone is taken",
        )
    } else {
        (
            vec!["t3.medium".to_string()],
            Severity::Blocker,
            "no type is known, t3.medium only holds the place",
        )
    };
    ig.find(
        "KOPS-ig-requirements",
        severity,
        format!("instanceRequirements ask for processors and memory, which a managed node group cannot: {what} ({})", types.join(", ")),
        "List types under green.nodeGroups, or use Karpenter on green for this group.",
    );
    (types.clone(), types)
}

/// Only the types of the first one's architecture: one AMI serves a group.
fn one_architecture(ig: &mut Ig, types: Vec<String>) -> Vec<String> {
    let first = arm(ig.snapshot, &types[0]);
    let (same, other): (Vec<String>, Vec<String>) = types
        .into_iter()
        .partition(|t| arm(ig.snapshot, t) == first);
    if !other.is_empty() {
        ig.find(
            "KOPS-ig-arch",
            Severity::Warning,
            format!("mixes processor architectures: a node group has one AMI, so {} stays and {} is left out", same.join(", "), other.join(", ")),
            "Name types of one architecture under green.nodeGroups; a second group must be made by hand.",
        );
    }
    same
}

fn ami(ig: &mut Ig, types: &[String], gpu: bool) -> String {
    let is_arm = arm(ig.snapshot, &types[0]);
    let family = family(&types[0]);
    let Some(wish) = ig.wish.ami_type.clone() else {
        return match (family.0.as_str(), is_arm, gpu) {
            ("inf" | "trn", _, _) => "AL2023_x86_64_NEURON",
            (_, true, true) => "AL2023_ARM_64_NVIDIA",
            (_, false, true) => "AL2023_x86_64_NVIDIA",
            (_, true, false) => "AL2023_ARM_64_STANDARD",
            _ => "AL2023_x86_64_STANDARD",
        }
        .into();
    };
    ig.note(format!("AMI type {wish} by green.nodeGroups"));
    if wish.contains("ARM_64") != is_arm && wish != "CUSTOM" {
        ig.find(
            "KOPS-ig-ami",
            Severity::Blocker,
            format!(
                "{wish} does not boot on {}, which is {}",
                types[0],
                if is_arm { "arm64" } else { "x86_64" }
            ),
            "Correct amiType or instanceTypes under green.nodeGroups.",
        );
    }
    wish
}

/// Letters of a family, and what follows its generation: `m6gd.large` is (`m`, `gd`).
fn family(t: &str) -> (String, String) {
    let family = t.split('.').next().unwrap_or("");
    let letters: String = family
        .chars()
        .take_while(|c| c.is_ascii_alphabetic())
        .collect();
    let rest = family[letters.len()..]
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .to_string();
    (letters, rest)
}

/// arm64, by EC2's word where it was read, else by the name: `a1`, and a `g` behind the generation (Graviton).
fn arm(snapshot: &Snapshot, t: &str) -> bool {
    if let Some(known) = instance_types::find(snapshot, t) {
        return known.arch == "arm64";
    }
    let (letters, rest) = family(t);
    letters == "a" || rest.split('-').next().unwrap_or("").contains('g') || rest.contains("-gb")
}

fn is_gpu(snapshot: &Snapshot, t: &str) -> bool {
    if let Some(known) = instance_types::find(snapshot, t) {
        return known.gpus > 0;
    }
    matches!(family(t).0.as_str(), "p" | "g" | "gr")
}

/// Families before Nitro that today's AMIs or the VPC CNI's prefixes do not support (kops.md 3).
fn previous_generation(t: &str) -> bool {
    matches!(
        t.split('.').next().unwrap_or(""),
        "m1" | "m2"
            | "m3"
            | "c1"
            | "c3"
            | "t1"
            | "r3"
            | "i2"
            | "g2"
            | "hs1"
            | "cr1"
            | "cc2"
            | "cg1"
            | "hi1"
    )
}

/// The type of these that takes the fewest pods, and how many: the VPC CNI's addresses and the cap of managed node groups (eks.md 1.7, 2.1),
/// by the same rule as the plan of addresses (`plan::fit`). `None`: none of them is known.
pub(super) fn fewest_pods<'t>(
    ig: &Ig,
    types: impl Iterator<Item = &'t String>,
) -> Option<(&'t str, u32)> {
    let mode = cni::mode(&cni::environment(ig.spec, ig.snapshot));
    types
        .filter_map(|t| {
            let known = instance_types::find(ig.snapshot, t)?;
            Some((t.as_str(), mode.max_pods(&known, None).0))
        })
        .min_by_key(|(t, most)| (*most, *t))
}

/// The types of these that nobody knows.
pub(super) fn unknown<'t>(ig: &Ig, types: impl Iterator<Item = &'t String>) -> BTreeSet<&'t str> {
    types
        .filter(|t| instance_types::find(ig.snapshot, t).is_none())
        .map(String::as_str)
        .collect()
}

/// Whether the VPC CNI would hand out more addresses on this type with prefixes, and does not yet: on Nitro only (eks.md 2.1).
pub(super) fn prefixes_help(ig: &Ig, t: &str) -> bool {
    !cni::mode(&cni::environment(ig.spec, ig.snapshot)).prefixes
        && instance_types::find(ig.snapshot, t).is_some_and(|t| t.nitro)
}
