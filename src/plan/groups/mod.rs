//! Instance groups to managed node groups with launch templates (kops.md 3, eks.md 1.6 and 1.7). Worker groups in are groups out, or
//! an explained split; what cannot come along is said.

mod capacity;
mod disks;
mod host;
mod kubelet;
mod labels;
mod names;
mod operate;
mod template;
mod types;
mod userdata;
mod zones;

#[cfg(test)]
mod tests;

use super::kops::{Subnet, note, text};
use super::model::{Finding, Severity, TargetNodeGroup};
use crate::snapshot::roll::Found;
use crate::spec::model::{NodeGroupWish, Spec};
use crate::yaml;
use names::Names;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The node groups, and what the rewrite of workloads must know of them.
pub(super) struct Groups {
    pub groups: Vec<TargetNodeGroup>,
    pub findings: Vec<Finding>,
    /// Value of the label that stands in for `kops.k8s.io/instancegroup`, by instance group.
    pub instance_groups: BTreeMap<String, String>,
    /// Label keys that EKS refuses, and the keys that stand in for them.
    pub label_keys: BTreeMap<String, String>,
}

/// Where node groups may stand.
pub(super) struct Places<'a> {
    /// Subnets of the kops spec.
    pub all: &'a [Subnet],
    /// Those that green's cluster takes.
    pub cluster: &'a [String],
    /// Zone of a subnet by id or label.
    pub zone: &'a dyn Fn(&str) -> Option<String>,
}

/// One instance group at work.
struct Ig<'a> {
    doc: &'a Value,
    name: String,
    /// `instancegroup/NAME`.
    object: String,
    spec: &'a Spec,
    snapshot: &'a Found<'a>,
    wish: NodeGroupWish,
    /// Its machine has GPUs.
    gpu: bool,
    findings: Vec<Finding>,
    notes: Vec<String>,
}

impl Ig<'_> {
    fn find(&mut self, id: &str, severity: Severity, message: impl Into<String>, remedy: &str) {
        self.findings.push(note(
            id,
            severity,
            &self.object,
            message,
            remedy,
            source(id),
        ));
    }
    fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }
    /// A field of the group, `None` when absent or null.
    fn field(&self, pointer: &str) -> Option<&Value> {
        self.doc.pointer(pointer).filter(|v| !v.is_null())
    }
    fn text(&self, pointer: &str) -> Option<&str> {
        text(self.doc, pointer).filter(|t| !t.is_empty())
    }
    /// A field of the cluster document.
    fn of_cluster(&self, pointer: &str) -> Option<&Value> {
        self.snapshot
            .kops
            .cluster
            .as_ref()?
            .pointer(pointer)
            .filter(|v| !v.is_null())
    }
    /// The group's field, else the cluster's of the same name (kops.md 1.5).
    fn over_cluster(&self, pointer: &str) -> Option<&Value> {
        self.field(pointer).or_else(|| self.of_cluster(pointer))
    }
}

/// Where the rules stand.
fn source(id: &str) -> &'static str {
    match id {
        "KOPS-ig-label" | "KOPS-ig-labels" | "KOPS-ig-taints" | "KOPS-ig-groups" => "eks.md 1.6",
        "KOPS-ig-kubelet" | "KOPS-ig-maxpods" | "KOPS-ig-userdata" => "eks.md 1.7",
        _ => "kops.md 3",
    }
}

/// Makes the node groups.
pub(super) fn build(spec: &Spec, snapshot: &Found, places: &Places) -> Groups {
    let mut out = Groups {
        groups: vec![],
        findings: vec![],
        instance_groups: BTreeMap::new(),
        label_keys: BTreeMap::new(),
    };
    let mut ordered: Vec<&Value> = snapshot.kops.instance_groups.iter().collect();
    ordered.sort_by_key(|g| text(g, "/metadata/name").unwrap_or("").to_string());
    let mut workers: Vec<&Value> = vec![];
    for doc in ordered {
        match worker(doc) {
            None => workers.push(doc),
            Some(finding) => out.findings.push(finding),
        }
    }
    let selected = labels::selected(snapshot);
    let volumes = zones::volumes(snapshot);
    let mut names = Names::new(
        &spec.green.name,
        workers
            .iter()
            .map(|d| text(d, "/metadata/name").unwrap_or("")),
    );
    unknown_wishes(spec, &workers, &mut out.findings);
    let mut named: Vec<(String, String)> = vec![];
    let of_all = host_of_all(spec, snapshot, &workers, &mut out.findings);
    for doc in workers {
        let name = text(doc, "/metadata/name").unwrap_or("").to_string();
        let object = format!("instancegroup/{name}");
        let mut ig = Ig {
            doc,
            object,
            spec,
            snapshot,
            wish: spec
                .green
                .node_groups
                .get(&name)
                .cloned()
                .unwrap_or_default(),
            name,
            gpu: false,
            findings: vec![],
            notes: vec![],
        };
        if let Some(made) =
            instance_group(&mut ig, places, &selected, &volumes, &mut names, &of_all)
        {
            // Blue's nodes carry the declared value; two groups may declare the same one.
            let value = labels::instance_group(&ig);
            named.push((ig.name.clone(), names::label_value(&value)));
            out.instance_groups
                .insert(value.clone(), names::label_value(&value));
            out.label_keys.extend(made.label_keys);
            out.groups.extend(made.groups);
        }
        out.findings.append(&mut ig.findings);
    }
    // Who selects by a group's name means the group, unless another one carries that value.
    for (name, value) in named {
        out.instance_groups.entry(name).or_insert(value);
    }
    let count = out.groups.len();
    if count > 30 {
        out.findings.push(note(
            "KOPS-ig-groups",
            Severity::Warning,
            &format!("cluster/{}", spec.green.name),
            format!("{count} node groups: the quota of EKS is 30 a cluster"),
            "Ask AWS for a higher quota, or let instance groups go together.",
            source("KOPS-ig-groups"),
        ));
    }
    out
}

/// Hooks, files, packages and kernel settings of the cluster's document: one finding for all groups that have not decided, and also when no
/// group is there to decide, or Karpenter makes all nodes (kops.md 3, 8.4).
fn host_of_all(
    spec: &Spec,
    snapshot: &Found,
    workers: &[&Value],
    findings: &mut Vec<Finding>,
) -> Vec<String> {
    let cluster = Ig {
        doc: &Value::Null,
        name: String::new(),
        object: "kops/spec.hooks".into(),
        spec,
        snapshot,
        wish: NodeGroupWish::default(),
        gpu: false,
        findings: vec![],
        notes: vec![],
    };
    let masters = host::of_control_plane(&cluster);
    if !masters.is_empty() {
        findings.push(note(
            "KOPS-ig-role",
            Severity::Info,
            &cluster.object,
            format!(
                "is for the hosts of blue's control plane only and stays there, for EKS runs green's: {}",
                masters.join(", ")
            ),
            "Look what each is for: EKS has its own audit logs, authenticators and encryption of secrets.",
            source("KOPS-ig-role"),
        ));
    }
    let words = host::of_all(&cluster);
    if words.is_empty() {
        return words;
    }
    let managed: Vec<&str> = workers
        .iter()
        .filter(|d| !by_karpenter(d))
        .filter_map(|d| text(d, "/metadata/name"))
        .collect();
    let wish = |name: &str| spec.green.node_groups.get(name);
    let open: Vec<&str> = managed
        .iter()
        .copied()
        .filter(|n| wish(n).is_none_or(|w| !w.skip && w.host_changes.is_none()))
        .collect();
    let remedy = if managed.is_empty() {
        "Read each; what green's nodes need goes into a DaemonSet, or into the user data of Karpenter's EC2NodeClass.".to_string()
    } else if open.is_empty() {
        return words;
    } else {
        format!(
            "Read each; then say hostChanges: true (take along what AL2023 can run) or false (leave it) under green.nodeGroups for {}. A DaemonSet is often the better place.",
            open.join(", ")
        )
    };
    findings.push(note(
        "KOPS-ig-host",
        Severity::Warning,
        &cluster.object,
        format!(
            "the cluster changes the hosts of all its nodes, and green's would be without that: {}",
            words.join("; ")
        ),
        &remedy,
        source("KOPS-ig-host"),
    ));
    words
}

fn by_karpenter(doc: &Value) -> bool {
    text(doc, "/spec/manager").is_some_and(|m| m.eq_ignore_ascii_case("karpenter"))
}

/// `None` for a worker group; otherwise what is said about the others.
fn worker(doc: &Value) -> Option<Finding> {
    let role = text(doc, "/spec/role").unwrap_or("Node");
    if role.eq_ignore_ascii_case("node") {
        return None;
    }
    let why = match role.to_lowercase().as_str() {
        "bastion" => "a bastion becomes no node group: use SSM, or keep the instance",
        "apiserver" => "EKS runs its own API servers",
        "master" | "controlplane" | "control-plane" => "EKS runs the control plane",
        _ => {
            return Some(note(
                "KOPS-ig-role",
                Severity::Blocker,
                &format!(
                    "instancegroup/{}",
                    text(doc, "/metadata/name").unwrap_or("")
                ),
                format!(
                    "role {role} is none that kops knows (Node, Master, ControlPlane, APIServer, Bastion): what runs on these machines is not guessed, so no node group is made of them"
                ),
                "Correct the role on blue (`kops edit ig`), then discover again.",
                "kops.md 3",
            ));
        }
    };
    Some(note(
        "KOPS-ig-role",
        Severity::Info,
        &format!(
            "instancegroup/{}",
            text(doc, "/metadata/name").unwrap_or("")
        ),
        format!("role {role} is dropped: {why}"),
        "Nothing to do.",
        "kops.md 3",
    ))
}

/// Wishes for groups that blue does not have: a slip of the pen would otherwise go by unseen.
fn unknown_wishes(spec: &Spec, workers: &[&Value], findings: &mut Vec<Finding>) {
    let known: Vec<&str> = workers
        .iter()
        .filter_map(|d| text(d, "/metadata/name"))
        .collect();
    for wish in spec.green.node_groups.keys() {
        if known.contains(&wish.as_str()) || known.is_empty() {
            continue;
        }
        let near = yaml::nearest(wish, known.iter().copied())
            .map(|n| format!(" (did you mean {n}?)"))
            .unwrap_or_default();
        findings.push(note(
            "KOPS-ig-wish",
            Severity::Blocker,
            &format!("green.nodeGroups.{wish}"),
            format!("blue has no worker instance group {wish}{near}"),
            &format!(
                "Name one of {}, or remove the entry from migration.yaml.",
                known.join(", ")
            ),
            "spec green.nodeGroups",
        ));
    }
}

struct Made {
    groups: Vec<TargetNodeGroup>,
    label_keys: BTreeMap<String, String>,
}

/// The node groups of one instance group; `None` when it becomes none.
fn instance_group(
    ig: &mut Ig,
    places: &Places,
    selected: &labels::Selected,
    volumes: &[zones::ZonalVolume],
    names: &mut Names,
    of_all: &[String],
) -> Option<Made> {
    if ig.wish.skip {
        ig.find(
            "KOPS-ig-skipped",
            Severity::Info,
            "becomes no node group: green.nodeGroups says skip",
            "Nothing to do.",
        );
        return None;
    }
    if by_karpenter(ig.doc) {
        operate::karpenter(ig);
        return None;
    }
    let machine = types::machine(ig);
    ig.gpu = machine.gpu;
    let labels = labels::labels(ig, selected);
    let taints = labels::taints(ig);
    let own = zones::subnets(ig, places);
    let sizes = capacity::sizes(ig);
    let parts = capacity::parts(ig, &machine, sizes);
    let disks = disks::disks(ig, &machine);
    let kubelet = kubelet::settings(ig, &machine);
    let host = host::changes(ig, &machine, of_all);
    let template = template::template(ig, &machine, &own, disks, &kubelet, host);
    let max_unavailable = operate::max_unavailable(ig);
    operate::findings(ig, &machine);
    let split = zones::split(ig, &own, volumes, &taints);
    let mut groups = vec![];
    for part in &parts {
        for (suffix, subnets, sizes, why) in zones::pieces(ig, &own, &split, part, parts.len() > 1)
        {
            let name = names.group(&ig.name, &suffix);
            let mut template = template.clone();
            template.name = names.template(&name);
            let mut notes = ig.notes.clone();
            notes.extend(part.why.clone());
            notes.extend(why);
            let zones: BTreeSet<String> = subnets
                .iter()
                .filter_map(|s| (places.zone)(s))
                .filter(|z| !z.is_empty())
                .collect();
            groups.push(TargetNodeGroup {
                instance_group: ig.name.clone(),
                instance_types: part.types.clone(),
                capacity_type: part.capacity_type.into(),
                ami_type: machine.ami_type.clone(),
                min: sizes.min,
                max: sizes.max,
                desired: sizes.desired,
                disk_gib: template.root.gib,
                disk_type: template.root.kind.clone(),
                subnets,
                zones: zones.into_iter().collect(),
                labels: labels.labels.clone(),
                taints: taints.clone(),
                launch_template: template,
                max_pods: kubelet::max_pods(ig, &kubelet, &part.types),
                max_unavailable: max_unavailable.clone(),
                notes,
                name,
            });
        }
    }
    Some(Made {
        groups,
        label_keys: labels.stand_ins,
    })
}
