//! What goes wrong in an account: things that come out FAILED, roles that spread slowly, other people's hands.

use super::super::{Twin, state::State};
use crate::world::cloud::{Attached, HealthIssue, Resource};
use crate::world::{Class, Error, Result};
use std::collections::BTreeMap;
use std::time::Duration;

/// Trouble that was asked for.
#[derive(Clone, Debug, Default)]
pub(in crate::world::twin) struct Trouble {
    /// The next creates of things whose id contains the text come out CREATE_FAILED: so many times.
    fails: Vec<(String, HealthIssue, u32)>,
    /// Things of others on ours, by id.
    attached: BTreeMap<String, Vec<Attached>>,
    /// Time until EKS may assume a new role.
    spreads: Duration,
    /// Quotas that are used up: kind of the id, and AWS's words.
    used_up: BTreeMap<String, String>,
}

impl Trouble {
    /// What is wrong with a thing that is made now.
    pub(super) fn fate(&mut self, id: &str) -> Option<HealthIssue> {
        let (_, issue, times) = self
            .fails
            .iter_mut()
            .find(|(part, _, times)| *times > 0 && id.contains(part.as_str()))?;
        *times -= 1;
        Some(issue.clone())
    }
}

impl State {
    /// Refuses as AWS does while a role is not seen everywhere, or a quota is used up.
    pub(super) fn trouble_with(&self, resource: &Resource) -> Result<()> {
        let at = resource.id();
        let kind = at.split('/').next().unwrap_or("");
        if let Some(words) = self.cloud.trouble.used_up.get(kind) {
            return Err(Error::new(Class::Refused, &at, words));
        }
        let arn = match resource {
            Resource::Cluster { role_arn, .. } | Resource::NodeGroup { role_arn, .. } => role_arn,
            Resource::Addon {
                service_account_role: Some(arn),
                ..
            } => arn,
            _ => return Ok(()),
        };
        let name = arn.rsplit('/').next().unwrap_or(arn);
        let made = self
            .cloud
            .things
            .get(&format!("role/{name}"))
            .map(|t| t.made);
        if made.is_some_and(|m| self.now < m + self.cloud.trouble.spreads) {
            return Err(Error::new(
                Class::NotReady,
                &at,
                format!(
                    "InvalidParameterException: Role with arn: {arn}, could not be assumed because it does not exist or the trusted entity is not correct"
                ),
            ));
        }
        Ok(())
    }

    pub(super) fn attached_to(&self, resource: &Resource, run: &str) -> Vec<Attached> {
        let id = resource.id();
        let mut out: Vec<Attached> = self
            .cloud
            .trouble
            .attached
            .get(&id)
            .cloned()
            .unwrap_or_default();
        let theirs = |what: String| Attached {
            what,
            passes: false,
        };
        if let Resource::Cluster { name, .. } = resource {
            let foreign = |t: &super::Thing| t.run.as_deref() != Some(run);
            for (kind, word) in [
                ("node-group", "node group"),
                ("addon", "add-on"),
                ("pod-identity", "pod identity association"),
            ] {
                let prefix = format!("{kind}/{name}/");
                let inside = self.cloud.things.iter();
                out.extend(
                    inside
                        .filter(|(k, t)| k.starts_with(&prefix) && foreign(t))
                        .map(|(k, _)| theirs(format!("{word} {}", &k[prefix.len()..]))),
                );
            }
            let group = self.cloud.cluster_group(name);
            out.extend(
                self.cloud
                    .inventory
                    .security_groups
                    .iter()
                    .filter(|g| g.id != group)
                    .filter(|g| {
                        g.ingress
                            .iter()
                            .any(|r| r.source_group.as_ref() == Some(&group))
                    })
                    .map(|g| theirs(format!("rule of security group {} ({})", g.id, g.name))),
            );
        }
        out.sort();
        out.dedup();
        out
    }
}

impl Twin {
    /// The next `times` creates of something whose id contains `part` come out CREATE_FAILED with this health issue.
    pub fn cloud_fails(&self, part: &str, code: &str, message: &str, times: u32) {
        let issue = HealthIssue {
            code: code.into(),
            message: message.into(),
            resources: vec![],
        };
        self.lock()
            .cloud
            .trouble
            .fails
            .push((part.into(), issue, times));
    }
    /// EKS may assume a new role only after this time.
    pub fn roles_spread_in(&self, time: Duration) {
        self.lock().cloud.trouble.spreads = time;
    }
    /// A quota is used up for a kind of things (`cluster`, `role`), in AWS's words; `None`: no longer.
    pub fn quota_is_used_up(&self, kind: &str, words: Option<&str>) {
        let used_up = &mut self.lock().cloud.trouble.used_up;
        match words {
            Some(words) => used_up.insert(kind.into(), words.into()),
            None => used_up.remove(kind),
        };
    }
    /// Somebody hangs something on a thing, or AWS still has something on it (`passes`).
    pub fn somebody_attaches(&self, id: &str, what: &str, passes: bool) {
        let attached = Attached {
            what: what.into(),
            passes,
        };
        self.lock()
            .cloud
            .trouble
            .attached
            .entry(id.into())
            .or_default()
            .push(attached);
    }
    /// It is taken away again.
    pub fn nobody_attaches(&self, id: &str) {
        self.lock().cloud.trouble.attached.remove(id);
    }
    /// Somebody deletes a thing and makes it again under its name, with or without the run's tag.
    pub fn somebody_makes_again(&self, id: &str, with_tag: bool) {
        let mut state = self.lock();
        let now = state.now;
        if let Some(thing) = state.cloud.things.get_mut(id) {
            thing.made = now;
            if !with_tag {
                thing.run = None;
            }
        }
    }
    /// Somebody makes a thing.
    pub fn somebody_makes(&self, resource: &Resource) -> Result<()> {
        let mut state = self.lock();
        state.create_resource(resource, "somebody")?;
        if let Some(thing) = state.cloud.things.get_mut(&resource.id()) {
            thing.run = None;
        }
        state.after_mutation();
        Ok(())
    }
    /// Somebody deletes a thing, at once.
    pub fn somebody_takes_away(&self, id: &str) {
        self.lock().cloud.things.remove(id);
    }
    /// Ids of everything that stands because it was made here.
    pub fn cloud_things(&self) -> Vec<String> {
        self.lock().cloud.things.keys().cloned().collect()
    }
}

impl State {
    /// A moment of the simulation as AWS writes it.
    pub(super) fn stamp_at(&self, moment: Duration) -> String {
        let micros = i64::try_from(moment.as_micros()).unwrap_or(i64::MAX);
        self.options
            .epoch
            .checked_add(jiff::SignedDuration::from_micros(micros))
            .unwrap_or(self.options.epoch)
            .to_string()
    }
}
