//! Terraform in the twin: its effect is the same resources, made and deleted in stages as its graph would. It works whenever it is asked
//! how far it is.

use super::{State, Twin};
use crate::object::sha256_hex;
use crate::world::cloud::{Resource, Status};
use crate::world::terraform::{Change, Doing, Job, Kept, Planned, Terraform, What};
use crate::world::{Class, Error, Result};
use async_trait::async_trait;

/// A run of Terraform that was started.
#[derive(Clone, Debug)]
pub(in crate::world::twin) struct Started {
    sha256: String,
    what: What,
    failed: Option<String>,
}

/// Who must stand before whom (eks.md 0.4).
fn stage(r: &Resource) -> u8 {
    match r {
        Resource::Cluster { .. } => 1,
        Resource::NodeGroup { .. } => 3,
        Resource::Addon { name, .. }
            if !matches!(
                name.as_str(),
                "vpc-cni" | "kube-proxy" | "eks-pod-identity-agent"
            ) =>
        {
            4
        }
        Resource::Addon { .. }
        | Resource::OidcProvider { .. }
        | Resource::AccessEntry { .. }
        | Resource::PodIdentityAssociation { .. } => 2,
        other => {
            let waits = serde_json::to_string(other).is_ok_and(|t| t.contains("${cluster."));
            2 * u8::from(waits)
        }
    }
}

impl State {
    /// With what a cluster, once it stands, has given it.
    fn terraform_filled(&self, r: &Resource) -> Resource {
        let green = &self.cloud.green;
        let known = [
            ("${account}", self.cloud.account.clone()),
            ("${caller}", self.cloud.caller()),
            ("${cluster.issuer}", self.cloud.issuer(green)),
            ("${cluster.security_group}", self.cloud.cluster_group(green)),
        ];
        // User data is shell: its `${...}` are its own.
        let mut wanted = r.clone();
        let script = match &mut wanted {
            Resource::LaunchTemplate { user_data, .. } => user_data.take(),
            _ => None,
        };
        let Ok(mut text) = serde_json::to_string(&wanted) else {
            return r.clone();
        };
        for (placeholder, value) in known {
            text = text.replace(placeholder, &value);
        }
        let mut out: Resource = serde_json::from_str(&text).unwrap_or(wanted);
        if let Resource::LaunchTemplate { user_data, .. } = &mut out {
            *user_data = script;
        }
        out
    }

    /// Whether this run's Terraform has made it.
    fn terraform_has(&self, job: &Job, r: &Resource) -> bool {
        let id = self.terraform_filled(r).id();
        self.cloud
            .things
            .get(&id)
            .is_some_and(|t| t.run.as_deref() == Some(&job.run))
    }

    fn terraform_plan(&self, job: &Job, what: &What) -> Planned {
        let change = |address: &String, action: &str| Change {
            address: address.clone(),
            kind: address.split('.').nth(2).unwrap_or_default().into(),
            actions: vec![action.into()],
        };
        let changes: Vec<Change> = match what {
            What::Pinned => job
                .resources
                .iter()
                .map(|(a, _)| change(a, "create"))
                .collect(),
            What::Rest => job
                .resources
                .iter()
                .filter(|(_, r)| !self.terraform_has(job, r))
                .map(|(a, _)| change(a, "create"))
                .collect(),
            What::Destroy(all) => all.iter().map(|a| change(a, "delete")).collect(),
        };
        let said: Vec<&str> = changes.iter().map(|c| c.address.as_str()).collect();
        Planned {
            sha256: sha256_hex(format!("{} {:?} {}", job.run, what, said.join(" "))),
            tool: "terraform of the twin".into(),
            job: String::new(),
            changes,
        }
    }

    /// One more look at everything: what can be made now is made.
    fn terraform_makes(&mut self, job: &Job) -> Result<Doing> {
        let mut open: Option<(u8, String)> = None;
        let mut order: Vec<&Resource> = job.resources.iter().map(|(_, r)| r).collect();
        order.sort_by_key(|r| stage(r));
        for r in order {
            let at = stage(r);
            if let Some((stage, line)) = &open
                && *stage < at
            {
                return Ok(Doing::Running(line.clone()));
            }
            let filled = self.terraform_filled(r);
            if self.find_resource(&filled).is_none() {
                self.create_resource(&filled, &job.run)?;
            }
            let (id, found) = (filled.id(), self.find_resource(&filled));
            match found.map(|f| f.status) {
                Some(Status::Ready) => {}
                Some(Status::Failed(why)) => {
                    return Err(Error::new(Class::Refused, id, why));
                }
                Some(Status::Pending(why)) => open = Some((at, format!("{id}: {why}"))),
                Some(Status::Deleting) | None => {
                    open = Some((at, format!("{id}: not there yet")));
                }
            }
        }
        Ok(match open {
            Some((_, line)) => Doing::Running(line),
            None => Doing::Ended,
        })
    }

    fn terraform_deletes(&mut self, job: &Job, addresses: &[String]) -> Result<Doing> {
        let mut open: Option<(u8, String)> = None;
        let mut order: Vec<&(String, Resource)> = job
            .resources
            .iter()
            .filter(|(a, _)| addresses.contains(a))
            .collect();
        order.sort_by_key(|(_, r)| std::cmp::Reverse(stage(r)));
        for (_, r) in order {
            let at = stage(r);
            if let Some((stage, line)) = &open
                && *stage > at
            {
                return Ok(Doing::Running(line.clone()));
            }
            let filled = self.terraform_filled(r);
            let Some(found) = self.find_resource(&filled) else {
                continue;
            };
            if found.run.as_deref() != Some(&job.run) {
                continue;
            }
            if !matches!(found.status, Status::Deleting) {
                self.delete_resource(&filled)?;
            }
            if self.find_resource(&filled).is_some() {
                open = Some((at, format!("{}: DELETING", filled.id())));
            }
        }
        Ok(match open {
            Some((_, line)) => Doing::Running(line),
            None => Doing::Ended,
        })
    }
}

#[async_trait]
impl Terraform for Twin {
    async fn plan(&self, job: &Job, what: &What) -> Result<Planned> {
        self.call("terraform plan".into(), false, |s| {
            Ok(s.terraform_plan(job, what))
        })
        .await
    }
    async fn pinned(&self, job: &Job) -> Result<Option<Planned>> {
        self.call("terraform show".into(), false, |s| {
            Ok(Some(s.terraform_plan(job, &What::Pinned)))
        })
        .await
    }
    async fn state(&self, job: &Job) -> Result<Vec<Kept>> {
        self.call("terraform state".into(), false, |s| {
            Ok(job
                .resources
                .iter()
                .filter(|(_, r)| s.terraform_has(job, r))
                .map(|(address, r)| Kept {
                    address: address.clone(),
                    kind: address.split('.').nth(2).unwrap_or_default().into(),
                    id: Some(s.terraform_filled(r).id()),
                    tainted: false,
                })
                .collect())
        })
        .await
    }
    async fn start(&self, _: &Job, what: &What, sha256: &str) -> Result<()> {
        let started = Started {
            sha256: sha256.into(),
            what: what.clone(),
            failed: None,
        };
        self.call("terraform apply".into(), true, |s| {
            s.cloud.terraform = Some(started);
            Ok(())
        })
        .await
    }
    async fn doing(&self, job: &Job, sha256: &str) -> Result<Doing> {
        self.call("terraform works".into(), true, |s| {
            let Some(started) = s.cloud.terraform.clone().filter(|t| t.sha256 == sha256) else {
                return Ok(Doing::Nothing);
            };
            if let Some(why) = started.failed {
                return Ok(Doing::Failed(why));
            }
            let went = match &started.what {
                What::Pinned | What::Rest => s.terraform_makes(job),
                What::Destroy(addresses) => s.terraform_deletes(job, addresses),
            };
            match went {
                Err(e) if e.is_transient() => Ok(Doing::Running(e.message)),
                Err(e) => {
                    let why = format!("{}: {}", e.at, e.message);
                    if let Some(t) = &mut s.cloud.terraform {
                        t.failed = Some(why.clone());
                    }
                    Ok(Doing::Failed(why))
                }
                Ok(doing) => Ok(doing),
            }
        })
        .await
    }
    async fn import(&self, _: &Job, _: &str, _: &str) -> Result<()> {
        // What exists with the run's tag is in this state already.
        self.call("terraform import".into(), false, |_| Ok(()))
            .await
    }
}
