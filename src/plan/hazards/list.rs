//! The hazards, each from one fact.

use super::facts::{Facts, KOPS_FRESH, KOPS_TODAY, KOPS_WINDOW, Objects};
use super::{Hazard, Hop};
use crate::plan::model::Severity::{self, Blocker, Info, NotChecked, Warning};
use jiff::civil::Date;

fn hazard(id: &str, severity: Severity, what: impl Into<String>, source: &str) -> Hazard {
    Hazard {
        id: format!("HAZ-{id}"),
        severity,
        what: what.into(),
        since: None,
        until: None,
        source: source.into(),
    }
}

impl Hazard {
    fn since(mut self, when: impl Into<String>) -> Self {
        self.since = Some(when.into());
        self
    }
    fn until(mut self, when: impl Into<String>) -> Self {
        self.until = Some(when.into());
        self
    }
}

/// All of them, unsorted.
pub(super) fn list(f: &Facts, hops: &[Hop]) -> Vec<Hazard> {
    let mut out = vec![];
    if !f.has_kops {
        out.push(hazard(
            "kops-spec",
            NotChecked,
            "not known: the kops documents were not read; give the state store or `kops get all -o yaml`",
            "kops.md 1",
        ));
    }
    versions(f, hops, &mut out);
    if f.has_kops {
        etcd(f, &mut out);
        spec(f, &mut out);
        images(f, &mut out);
        age(f, &mut out);
    }
    match &f.objects {
        Some(o) => objects(f, o, &mut out),
        None => out.push(hazard(
            "removed-apis",
            NotChecked,
            "not known: blue's objects were not read, so nobody can say what each hop would refuse; run discover against blue",
            "removed-apis.yaml",
        )),
    }
    out
}

fn versions(f: &Facts, hops: &[Hop], out: &mut Vec<Hazard>) {
    let Some(blue) = f.minor else {
        out.push(hazard(
            "version",
            NotChecked,
            "not known: blue's version was not read",
            "kops.md 1.2",
        ));
        return;
    };
    let oldest = KOPS_TODAY - KOPS_WINDOW;
    if f.has_kops {
        if blue < oldest {
            out.push(hazard("kops-window", Blocker, format!("today's kops (1.{KOPS_TODAY}) accepts Kubernetes 1.{oldest} and newer: it cannot read this cluster (1.{blue}, {}); each hop needs an old release of kops, which nobody fixes any more", f.release), "kops.md 6").until(format!("kops 1.{}", blue + KOPS_WINDOW)));
        } else if blue + KOPS_FRESH < KOPS_TODAY {
            out.push(
                hazard(
                    "kops-window",
                    Warning,
                    format!("today's kops (1.{KOPS_TODAY}) still accepts Kubernetes 1.{blue}, as deprecated"),
                    "kops.md 6",
                )
                .until(format!("kops 1.{}", blue + KOPS_WINDOW)),
            );
        }
    }
    match f.oldest {
        Some(goal) if blue < goal => out.push(
            hazard(
                "hops",
                Warning,
                format!(
                    "{} minor versions below 1.{goal}, the oldest that both EKS and today's kops run: {} hops, none may be skipped",
                    goal - blue,
                    goal - blue
                ),
                "eks.md 1.1; mission.md D2",
            ),
        ),
        Some(_) => {}
        None => out.push(hazard(
            "hops",
            NotChecked,
            format!(
                "{} hops to green's version; how many to a supported one is not known: the snapshot has no date",
                hops.len()
            ),
            "eks.md 1.1",
        )),
    }
}

fn etcd(f: &Facts, out: &mut Vec<Hazard>) {
    let names = |pick: &dyn Fn(&super::facts::Etcd) -> bool| {
        f.etcd
            .iter()
            .filter(|e| pick(e))
            .map(|e| e.name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let legacy = names(&|e| e.legacy);
    if !legacy.is_empty() {
        let guess = if f.etcd.iter().any(|e| e.legacy && !e.said) {
            " (not written: kops's default of that time)"
        } else {
            ""
        };
        out.push(hazard("etcd-legacy", Blocker, format!("etcd ({legacy}) is run by provider Legacy{guess}: it must go to Manager first, with all masters down together and a backup that is proven"), "kops.md 6; mission.md D1").until("Kubernetes 1.17"));
    }
    let two: Vec<String> = f
        .etcd
        .iter()
        .filter(|e| e.major == Some(2))
        .map(|e| match &e.version {
            Some(v) => format!("{} {v}", e.name),
            None => e.name.clone(),
        })
        .collect();
    if !two.is_empty() {
        out.push(hazard("etcd2", Blocker, format!("etcd 2 ({}): the move to etcd 3 goes Legacy, Manager, etcd 3, and has killed masters", two.join(", ")), "kops.md 6; mission.md D1").until("Kubernetes 1.12"));
    }
    let unknown = names(&|e| e.legacy && e.major.is_none());
    if !unknown.is_empty() {
        out.push(hazard("etcd-version", NotChecked, format!("version of etcd ({unknown}) is not written: below Kubernetes 1.13 it may be etcd 2; ask a master"), "kops.md 6"));
    }
}

fn spec(f: &Facts, out: &mut Vec<Hazard>) {
    if f.gossip {
        out.push(
            hazard(
                "gossip",
                Warning,
                "a gossip cluster: it can keep its name only until kops drops gossip, and a name cannot be changed in place",
                "kops.md 1.4, 6",
            )
            .since("kops 1.35: none can be made")
            .until("kops 1.36"),
        );
    }
    let blue = f.minor.unwrap_or(0);
    if f.runtime == "docker" {
        out.push(
            hazard(
                "runtime",
                Warning,
                "docker is the container runtime",
                "kops.md 1.4, 6",
            )
            .until("Kubernetes 1.23"),
        );
    }
    if f.psp_plugin {
        out.push(
            hazard(
                "psp",
                Warning,
                "the admission plugin PodSecurityPolicy is on",
                "kops.md 6",
            )
            .until("Kubernetes 1.24"),
        );
    }
    if f.legacy_iam {
        out.push(hazard("iam-legacy", Warning, "legacy roles: pods use the state bucket and the hosted zone through their node; strict roles take that away", "kops.md 5").until("kops 1.21"));
    }
    if !f.own_profiles.is_empty() {
        out.push(hazard("iam-elsewhere", Warning, format!("IAM is kept outside kops ({} with own instance profiles): rights that a new release needs are missing until somebody adds them, and etcd's backup is the first to fail", f.own_profiles.join(", ")), "mission.md D1"));
    } else if f.terraform_iam > 0 {
        out.push(hazard("iam-elsewhere", Warning, format!("IAM of the cluster is in Terraform ({} resources): rights that a new release needs are missing until somebody adds them there", f.terraform_iam), "mission.md D1"));
    }
    match (f.always_allow, f.always_allow_silent) {
        (true, true) => out.push(
            hazard(
                "alwaysallow",
                Warning,
                "no word on authorisation, so every account may do everything; a later kops takes RBAC instead",
                "kops.md 1.4",
            )
            .until("kops 1.35"),
        ),
        (true, false) => out.push(hazard(
            "alwaysallow",
            Warning,
            "alwaysAllow: every account may do everything",
            "kops.md 2",
        )),
        _ => {}
    }
    if f.static_tokens || blue > 0 && blue < 19 && !f.basic_auth_off {
        out.push(hazard("static-auth", Warning, "passwords and static tokens open the API: kubeconfigs of people and of CI may lean on them", "kops.md 2, 6").until("Kubernetes 1.17 (tokens), 1.18 (passwords)"));
    }
    network(f, out);
}

fn network(f: &Facts, out: &mut Vec<Hazard>) {
    let name = f.network.as_str();
    let (severity, what, until) = match name {
        "romana" => (Blocker, "kops dropped it", "kops 1.18"),
        "lyftvpc" => (Blocker, "kops dropped it", "kops 1.22"),
        "classic" => (Blocker, "dead for long", "Kubernetes 1.3"),
        "weave" => (
            Blocker,
            "kops refuses it on newer versions: the network of a running cluster would have to be changed",
            "Kubernetes 1.22",
        ),
        "canal" => (
            Blocker,
            "kops refuses it on newer versions: the network of a running cluster would have to be changed",
            "Kubernetes 1.27",
        ),
        "external" => (
            Blocker,
            "kops refuses it on newer versions",
            "Kubernetes 1.25",
        ),
        "kopeio" => (Info, "still accepted by kops; nobody else runs it", ""),
        "flannel" => (
            Info,
            "still accepted by kops; it enforces no NetworkPolicy",
            "",
        ),
        "kubenet" => (
            Info,
            "still accepted by kops; one route for each node, so a VPC route table ends it at 50 to 100 nodes",
            "",
        ),
        _ => return,
    };
    let h = hazard(
        "network",
        severity,
        format!("network {name}: {what}"),
        "kops.md 1.4, 2",
    );
    out.push(if until.is_empty() { h } else { h.until(until) });
}

/// Years and months between two days, as people say it.
fn between(from: Date, to: Date) -> String {
    let days = (to - from).get_days().max(0);
    match days {
        0..60 => format!("{days} days"),
        60..730 => format!("{} months", days * 12 / 365),
        _ => format!("{} years", days / 365),
    }
}

fn images(f: &Facts, out: &mut Vec<Hazard>) {
    let lost: Vec<&str> = f
        .images
        .iter()
        .filter(|i| i.image.starts_with("kope.io/") || i.image.starts_with("383156758163/"))
        .map(|i| i.group.as_str())
        .collect();
    if !lost.is_empty() {
        out.push(hazard("ami-gone", Blocker, format!("images of kope.io ({}): the account is gone, so a node that dies or a group that grows cannot start a new one", lost.join(", ")), "kops.md 3"));
    }
    let (mut dated, mut undated): (Vec<&super::facts::Image>, Vec<&str>) = (vec![], vec![]);
    for i in &f.images {
        match i.made {
            Some(_) => dated.push(i),
            None => undated.push(&i.group),
        }
    }
    dated.sort_by(|a, b| (a.made, &a.group).cmp(&(b.made, &b.group)));
    if let Some((first, made)) = dated.first().and_then(|i| Some((i, i.made?))) {
        let h = match f.taken {
            Some(day) => {
                let old = (day - made).get_days() > 365;
                hazard(
                    "ami-age",
                    if old { Warning } else { Info },
                    format!(
                        "the oldest image is {} old (group {}): every fix of its system since then is missing",
                        between(made, day),
                        first.group
                    ),
                    "practice.md 2",
                )
            }
            None => hazard(
                "ami-age",
                NotChecked,
                format!(
                    "age of the images is not known: the snapshot has no date (the oldest is of {made}, group {})",
                    first.group
                ),
                "practice.md 2",
            ),
        };
        out.push(h.since(made.to_string()));
    }
    if !undated.is_empty() {
        out.push(hazard(
            "ami-age",
            NotChecked,
            format!(
                "age of the image of {} is not known: its name has no date; ask EC2",
                undated.join(", ")
            ),
            "practice.md 2",
        ));
    }
}

/// Years that a CA of kops lasts.
const CA_YEARS: i16 = 10;

fn age(f: &Facts, out: &mut Vec<Hazard>) {
    // The keys themselves are never read (kops.md 8.4).
    out.push(hazard("certificates", NotChecked, "when certificates end is not known: crossfade never reads keys; look on a master (openssl x509 -noout -enddate under /srv/kubernetes): leaves last a year", "mission.md D2; kops.md 8.4"));
    let Some(made) = f.created else {
        out.push(hazard(
            "ca-age",
            NotChecked,
            "age of the CA is not known: the document has no creationTimestamp",
            "mission.md D2",
        ));
        return;
    };
    let end = Date::new(
        made.year().saturating_add(CA_YEARS),
        made.month(),
        made.day(),
    )
    .unwrap_or(made);
    let h = match f.taken {
        None => hazard(
            "ca-age",
            NotChecked,
            format!(
                "the CA is of {made} unless it was renewed; how long it still lasts is not known: the snapshot has no date"
            ),
            "mission.md D2",
        ),
        Some(day) if day >= end => hazard(
            "ca-age",
            Blocker,
            format!(
                "the CA, unless it was renewed, has ended: the cluster was made {} ago, a CA lasts {CA_YEARS} years",
                between(made, day)
            ),
            "mission.md D2",
        ),
        Some(day) => {
            let left = (end - day).get_days();
            let severity = if left <= 365 { Warning } else { Info };
            hazard(
                "ca-age",
                severity,
                format!(
                    "the CA, unless it was renewed, ends in {}: the cluster was made {} ago, a CA lasts {CA_YEARS} years",
                    between(day, end),
                    between(made, day)
                ),
                "mission.md D2",
            )
        }
    };
    out.push(h.since(made.to_string()).until(end.to_string()));
}

fn objects(f: &Facts, o: &Objects, out: &mut Vec<Hazard>) {
    let coming: Vec<(u32, usize)> = o
        .removed
        .iter()
        .filter(|(m, _)| **m <= f.green)
        .map(|(m, apis)| (*m, apis.values().sum()))
        .collect();
    if !coming.is_empty() {
        let all: usize = coming.iter().map(|(_, n)| n).sum();
        let each: Vec<String> = coming.iter().map(|(m, n)| format!("1.{m}: {n}")).collect();
        out.push(
            hazard(
                "removed-apis",
                Warning,
                format!(
                    "{all} objects are kept or applied in versions that end on the way ({})",
                    each.join(", ")
                ),
                "removed-apis.yaml",
            )
            .until(format!("Kubernetes 1.{}", coming[0].0 - 1)),
        );
    }
    if o.docker_nodes > 0 && f.runtime != "docker" {
        out.push(
            hazard(
                "runtime",
                Warning,
                format!("{} of {} nodes still run docker", o.docker_nodes, o.nodes),
                "kops.md 6",
            )
            .until("Kubernetes 1.23"),
        );
    }
    if o.psp > 0 && f.minor.is_some_and(|m| m < 25) {
        out.push(
            hazard(
                "psp",
                Warning,
                format!("{} PodSecurityPolicies", o.psp),
                "kops.md 6",
            )
            .until("Kubernetes 1.24"),
        );
    }
    let in_tree = o.in_tree_volumes + o.in_tree_classes;
    if in_tree > 0 && f.minor.is_some_and(|m| m < 27) {
        out.push(
            hazard(
                "in-tree-volumes",
                Warning,
                format!(
                    "{} in-tree EBS volumes and {} storage classes of the in-tree provisioner",
                    o.in_tree_volumes, o.in_tree_classes
                ),
                "kops.md 6",
            )
            .until("Kubernetes 1.26"),
        );
    }
    if !o.iam_agents.is_empty() || o.iam_annotation > 0 {
        let agents: Vec<&str> = o.iam_agents.iter().map(String::as_str).collect();
        let by = if agents.is_empty() {
            "an agent".to_string()
        } else {
            agents.join(", ")
        };
        out.push(hazard("iam-agent", Warning, format!("{by} gives pods their roles ({} workloads ask for one): it leans on the metadata service, which later releases close", o.iam_annotation), "kops.md 5"));
    }
}
