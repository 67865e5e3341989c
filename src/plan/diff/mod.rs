//! What of green is there already: from a former run, from Terraform, from eksctl or the console. Only what is missing is
//! made; what is somebody's is used with consent and never deleted; what Terraform keeps is left to it.

mod judge;
mod look;
mod terraform;
#[cfg(test)]
mod tests;

pub use judge::{Judged, Seen, additive, consent_line, consents, judge, shown};

use super::model::{Finding, ResourceState, Severity, TargetResource};
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use crate::world::cloud::compare::Difference;
use crate::world::cloud::{Inventory, Resource};
use look::{Look, look};

/// States of all resources, in the order of the plan, with findings.
pub fn diff<'r>(
    resources: impl IntoIterator<Item = &'r Resource>,
    spec: &Spec,
    snapshot: &Snapshot,
) -> (Vec<TargetResource>, Vec<Finding>) {
    let cluster = &spec.green.name;
    let fill = Fill::new(snapshot.aws.as_ref(), cluster);
    let state = snapshot.terraform.as_deref().unwrap_or_default();
    let (mut out, mut findings, mut ids) = (vec![], vec![], vec![]);
    for wanted in resources {
        let id = shown(&wanted.id(), cluster);
        let want = fill.fill(wanted);
        let real = want.id();
        let consent = consents(&spec.green.adopt, &[&id, &real]);
        let address = terraform::address(&want, state);
        let found = snapshot
            .aws
            .as_ref()
            .map(|inv| look(inv, &want))
            .unwrap_or(Look::Absent);
        let mut say = Say {
            id: &id,
            findings: &mut findings,
        };
        let (state_of, why) = match found {
            Look::Absent => absent(snapshot, &want, address, &mut say),
            Look::NamedOnly(why) => named_only(&want, address, consent, why, &mut say),
            Look::There {
                run,
                made_by,
                mut differences,
            } => {
                // A cluster that stands has its issuer, though an old snapshot does not know it: nothing to compare with.
                if fill.stands {
                    differences.retain(|d| !d.want.contains("${cluster."));
                }
                let seen = Seen {
                    run: run.as_deref(),
                    differences: &differences,
                    consent,
                    terraform: address,
                };
                there(&want, &seen, &made_by, &mut say)
            }
        };
        if matches!(state_of, ResourceState::Create)
            && let Some(owner) = terraform::owner(&want, state)
        {
            say.say("ADOPT-05", Severity::Warning,
                format!("it becomes a part of {}, which Terraform keeps: its next apply takes it away again", owner.address),
                format!("Add it to {} too, or let its lifecycle ignore such changes, before the next terraform apply.", owner.address));
        }
        ids.push((id.clone(), real));
        out.push(TargetResource {
            id,
            state: state_of,
            why,
        });
    }
    if let (Some(file), None) = (&spec.green.terraform_state, &snapshot.terraform) {
        let mut say = Say {
            id: "green.terraformState",
            findings: &mut findings,
        };
        say.say(
            "ADOPT-08",
            Severity::Blocker,
            format!(
                "{file} is not in the snapshot: what Terraform keeps would be made a second time"
            ),
            "Run crossfade discover again: it reads the state, plan does not.".into(),
        );
    }
    for line in &spec.green.adopt {
        let made: Vec<&str> = ids
            .iter()
            .zip(&out)
            .filter(|((a, b), _)| consents(std::slice::from_ref(line), &[a, b]))
            .filter(|(_, r)| r.state == ResourceState::Create)
            .map(|((a, _), _)| a.as_str())
            .collect();
        if snapshot.aws.is_some()
            && let [one] = made.as_slice()
            && one == line
        {
            let mut say = Say {
                id: line,
                findings: &mut findings,
            };
            say.say(
                "ADOPT-09",
                Severity::Warning,
                "green.adopt names it, but the account has no such thing: it would be made".into(),
                "Correct the id or the name of green, or remove the line.".into(),
            );
        }
        let named = ids
            .iter()
            .any(|(a, b)| consents(std::slice::from_ref(line), &[a, b]));
        if !named {
            let mut say = Say {
                id: line,
                findings: &mut findings,
            };
            say.say(
                "ADOPT-06",
                Severity::Warning,
                "green.adopt names it, and the plan has no such resource".into(),
                "Correct the id: crossfade plan -o json lists them under target.resources.".into(),
            );
        }
    }
    (out, findings)
}

/// How many nodes an existing node group has now: what a wait for its nodes must count on.
pub fn nodes_now(snapshot: &Snapshot, cluster: &str, group: &str) -> Option<u32> {
    let id = format!("node-group/{cluster}/{group}");
    let clusters = &snapshot.aws.as_ref()?.clusters;
    let mut parts = clusters.iter().flat_map(|c| c.parts.iter().flatten());
    match &parts.find(|p| p.resource.id() == id)?.resource {
        Resource::NodeGroup { desired, .. } => Some(*desired),
        _ => None,
    }
}

struct Say<'a> {
    id: &'a str,
    findings: &'a mut Vec<Finding>,
}

impl Say<'_> {
    fn say(&mut self, id: &str, severity: Severity, message: String, remedy: String) {
        self.findings.push(Finding {
            id: id.into(),
            severity,
            object: self.id.into(),
            message,
            remedy,
            source: "DESIGN 3".into(),
            waived: None,
        });
    }
}

/// For people, one after the other.
fn words(differences: &[Difference]) -> String {
    let all: Vec<String> = differences.iter().map(Difference::to_string).collect();
    all.join("; ")
}

fn absent(
    snapshot: &Snapshot,
    want: &Resource,
    address: Option<&str>,
    say: &mut Say,
) -> (ResourceState, String) {
    match address {
        Some(address) if snapshot.aws.is_some() && !want.id().contains("${") => {
            say.say(
                "ADOPT-04",
                Severity::Blocker,
                format!("Terraform keeps it as {address}, and it is not in the account"),
                "Run terraform apply first, then discover and plan again.".into(),
            );
            (
                ResourceState::Terraform,
                format!("{address}, not applied yet"),
            )
        }
        Some(address) => (ResourceState::Terraform, address.into()),
        None if snapshot.aws.is_none() => (
            ResourceState::Create,
            "the account was not read: the run looks before it makes it".into(),
        ),
        None => {
            if let Resource::StateBucket { create: false, .. } = want {
                say.say(
                    "ADOPT-10",
                    Severity::Blocker,
                    "migration.yaml names it for crossfade's records, and the snapshot does not know it".into(),
                    "Set aws.stateBucket.create: true to have it made; if it is there, run discover again with this migration.yaml.".into(),
                );
            }
            (ResourceState::Create, "it is not there".into())
        }
    }
}

/// It is there, but only its name was read.
fn named_only(
    want: &Resource,
    address: Option<&str>,
    consent: bool,
    why: &str,
    say: &mut Say,
) -> (ResourceState, String) {
    if let Some(address) = address {
        return (ResourceState::Terraform, address.into());
    }
    if additive(want) {
        return (ResourceState::ExistsEqual, why.into());
    }
    if !consent {
        foreign(say, "it is there already", &[]);
        return (ResourceState::Foreign, why.into());
    }
    say.say(
        "ADOPT-07",
        Severity::NotChecked,
        format!("it is there and will be used, but it was not compared: {why}"),
        "Read the account again (crossfade discover).".into(),
    );
    (ResourceState::Adopt, why.into())
}

fn foreign(say: &mut Say, what: &str, differences: &[Difference]) {
    let id = say.id.to_owned();
    let mut message = format!("{what}, and crossfade did not make it");
    if !differences.is_empty() {
        message.push_str(&format!("; it differs: {}", words(differences)));
    }
    say.say(
        "ADOPT-01",
        Severity::Blocker,
        message,
        format!(
            "To use it as it is (it is never changed and never deleted), {}. Or give green another name.",
            consent_line(&id)
        ),
    );
}

fn there(want: &Resource, seen: &Seen, made_by: &str, say: &mut Say) -> (ResourceState, String) {
    let judged = judge(want, seen);
    let (hard, soft) = (&judged.hard, &judged.soft);
    let because = match judged.state {
        ResourceState::Terraform => {
            let address = seen.terraform.unwrap_or_default();
            for (list, severity) in [(hard, Severity::Blocker), (soft, Severity::Warning)] {
                if !list.is_empty() {
                    say.say(
                        "ADOPT-04",
                        severity,
                        format!(
                            "Terraform keeps it as {address}, and it differs: {}",
                            words(list)
                        ),
                        format!("Change {address} in Terraform and apply, or accept it as it is; crossfade does not touch it."),
                    );
                }
            }
            return (ResourceState::Terraform, address.into());
        }
        ResourceState::Foreign => {
            foreign(
                say,
                &format!("it is there already, made by {made_by}"),
                seen.differences,
            );
            return (ResourceState::Foreign, format!("made by {made_by}"));
        }
        ResourceState::Differs => {
            let remedy = match seen.run {
                Some(run) => format!("Roll back run {run}, or remove it; then plan again. crossfade does not change what exists."),
                None => "Make it equal, remove it, or give green another name; then plan again. crossfade does not change what exists.".into(),
            };
            say.say(
                "ADOPT-02",
                Severity::Blocker,
                format!(
                    "it is there already, made by {made_by}, and cannot be used: {}",
                    words(hard)
                ),
                remedy,
            );
            return (ResourceState::Differs, words(hard));
        }
        ResourceState::Adopt => format!("made by {made_by}; used by consent, never deleted"),
        _ => format!("made by {made_by}; kept"),
    };
    if !soft.is_empty() && !additive(want) {
        say.say(
            "ADOPT-03",
            Severity::Warning,
            format!(
                "it is there already and is used as it is, though it differs: {}",
                words(soft)
            ),
            "Accept it, or make it equal before the run; crossfade does not change what exists."
                .into(),
        );
    }
    (judged.state, because)
}

/// What is known before the run of what a run fills in: who we are, and a cluster that stands already.
struct Fill {
    known: Vec<(String, String)>,
    /// Whether there is a cluster of green's name.
    stands: bool,
}

impl Fill {
    fn new(aws: Option<&Inventory>, cluster: &str) -> Fill {
        let mut known = vec![];
        let Some(inv) = aws else {
            return Fill {
                known,
                stands: false,
            };
        };
        known.push(("${account}".into(), inv.identity.account.clone()));
        known.push((
            "${caller}".into(),
            crate::world::cloud::principal_of(&inv.identity.arn),
        ));
        let eks = inv.clusters.iter().find(|c| c.name == cluster);
        let own = eks.and_then(|c| {
            c.parts
                .iter()
                .flatten()
                .find(|p| matches!(p.resource, Resource::Cluster { .. }))
        });
        let from = |key: &str| own.and_then(|p| p.attributes.get(key).cloned());
        let group = from("securityGroup").or_else(|| {
            eks?;
            inv.security_groups
                .iter()
                .find(|g| {
                    g.tags
                        .get("aws:eks:cluster-name")
                        .is_some_and(|c| c == cluster)
                })
                .map(|g| g.id.clone())
        });
        for (name, value) in [("issuer", from("issuer")), ("security_group", group)] {
            if let Some(v) = value {
                known.push((format!("${{cluster.{name}}}"), v));
            }
        }
        Fill {
            known,
            stands: eks.is_some(),
        }
    }

    fn fill(&self, r: &Resource) -> Resource {
        let Ok(mut text) = serde_json::to_string(r) else {
            return r.clone();
        };
        if !text.contains("${") {
            return r.clone();
        }
        for (name, value) in &self.known {
            text = text.replace(name.as_str(), value);
        }
        serde_json::from_str(&text).unwrap_or_else(|_| r.clone())
    }
}
