//! `terraform.apply`: what is wholly green's own, made by Terraform from exactly the plan that was reviewed.
//!
//! Terraform is started and then watched: it outlives a crossfade that is killed. What it had not done is found by its state, and by looking
//! for what it made but could not write down any more. Undo destroys the addresses that this run created and nothing else.

use super::cloud_ensure::admitted;
use super::util::{params, recorded, refused};
use super::{Cx, Settle, Step, StepError, StepResult};
use crate::plan::diff;
use crate::terraform::{Known, Made, Purpose, address, import_id, render};
use crate::world::cloud::principal_of;
use crate::world::cloud::{Found, Resource, Status};
use crate::world::terraform::{Change, Doing, Job, Kept, Planned, What};
use crate::world::{Class, Error};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How often a run of Terraform is looked at.
const POLL: Duration = Duration::from_secs(5);

/// Makes the step.
pub fn make(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(params::<Apply>("terraform.apply", value)?))
}

#[derive(Deserialize)]
struct Apply {
    /// What the rendering makes, in the order of the plan.
    resources: Vec<Resource>,
}

/// What was approved, and what there was.
#[derive(Serialize, Deserialize)]
struct Before {
    /// Hash of the approved plan file.
    sha256: String,
    /// Addresses that it creates.
    creates: BTreeSet<String>,
    /// Addresses that were in the state before, with ids: never touched.
    existed: BTreeMap<String, Option<String>>,
}

/// A resource of the job in the world.
struct Seen {
    address: String,
    resource: Resource,
    found: Option<Found>,
}

/// What the run knows of the plan's placeholders: who we are, and the cluster when it stands.
struct Fill(Vec<(String, String)>);

impl Fill {
    async fn new(cx: &Cx) -> StepResult<Fill> {
        let who = cx.world.cloud.identity().await?;
        let mut known = vec![
            ("${account}".to_string(), who.account.clone()),
            ("${caller}".to_string(), principal_of(&who.arn)),
        ];
        let green = Resource::named_cluster(&cx.plan.target.cluster.name);
        if let Some(found) = cx.world.cloud.find(&green).await? {
            for (name, value) in found.attributes {
                let name = if name == "securityGroup" {
                    "security_group".into()
                } else {
                    name
                };
                known.push((format!("${{cluster.{name}}}"), value));
            }
        }
        Ok(Fill(known))
    }

    /// `None` while something of it is not known.
    fn filled(&self, resource: &Resource) -> Option<Resource> {
        let mut wanted = resource.clone();
        // User data is shell: its `${...}` are its own.
        let script = match &mut wanted {
            Resource::LaunchTemplate { user_data, .. } => user_data.take(),
            _ => None,
        };
        let mut text = serde_json::to_string(&wanted).ok()?;
        for (placeholder, value) in &self.0 {
            text = text.replace(placeholder, value);
        }
        let open = crate::terraform::PLACEHOLDERS;
        if open.iter().any(|(p, _)| text.contains(p)) {
            return None;
        }
        let mut out: Resource = serde_json::from_str(&text).ok()?;
        if let Resource::LaunchTemplate { user_data, .. } = &mut out {
            *user_data = script;
        }
        Some(out)
    }
}

/// A plan file that Terraform was asked to apply.
struct Last {
    sha256: String,
    destroys: bool,
}

/// Something that exists and that Terraform could not write down any more.
struct Lost {
    address: String,
    resource: String,
    /// By which Terraform imports it.
    id: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct After {
    /// Hash of the plan file that was started; none when everything was there.
    started: Option<String>,
}

/// What Terraform is asked to do in a run of a plan, called by `caller`.
pub fn job(plan: &crate::plan::model::Plan, run: &str, caller: &str) -> Job {
    let made = Made {
        caller: Some(caller.into()),
        ..Made::default()
    };
    let rendering = render(plan, &made, &Purpose::Run { run: run.into() });
    let known = Known {
        account: plan.basis.account.clone(),
        caller: made.caller,
    };
    Job {
        resources: rendering
            .rendered
            .iter()
            .filter_map(|r| Some((address(r, &known)?, r.clone())))
            .collect(),
        files: rendering.files,
        run: run.into(),
    }
}

/// Refuses a plan that does more than create.
pub fn only_creates(planned: &Planned) -> StepResult<()> {
    let Some(bad) = planned.changes.iter().find(|c| !c.creates()) else {
        return Ok(());
    };
    Err(refused(
        &bad.address,
        format!(
            "the Terraform plan would {} it, and a run only creates",
            bad.actions.join(" and ")
        ),
        if bad.deletes() {
            "it is in the state already: give this migration a state of its own (provision.backend), or take it out of the state; then plan again"
        } else {
            "it is in the state already, and undo could not give it back: take it out of the state, or change it there yourself; then plan again"
        },
    ))
}

impl Apply {
    async fn job(&self, cx: &Cx) -> StepResult<Job> {
        let who = cx.world.cloud.identity().await?;
        let job = job(&cx.plan, &cx.run, &principal_of(&who.arn));
        let ids: BTreeSet<String> = job.resources.iter().map(|(_, r)| r.id()).collect();
        match self.resources.iter().find(|r| !ids.contains(&r.id())) {
            None => Ok(job),
            Some(r) => Err(refused(
                r.id(),
                "it has no address in Terraform",
                "report this: every resource of this step has one",
            )),
        }
    }

    /// Each resource that can be named now, with its address and what the world has of it. What hangs on a cluster that does not stand
    /// cannot be there.
    async fn look(&self, cx: &Cx, job: &Job) -> StepResult<Vec<Seen>> {
        let fill = Fill::new(cx).await?;
        let mut out = vec![];
        for (address, r) in &job.resources {
            let Some(resource) = fill.filled(r) else {
                continue;
            };
            let found = cx.world.cloud.find(&resource).await?;
            out.push(Seen {
                address: address.clone(),
                resource,
                found,
            });
        }
        Ok(out)
    }

    /// What exists with this run's tag and is not in the state: Terraform was killed between AWS's answer and its own record.
    async fn lost(&self, cx: &Cx, job: &Job, state: &[Kept]) -> StepResult<Vec<Lost>> {
        let has = |a: &str| state.iter().any(|k| k.address == a);
        let mut out = vec![];
        for seen in self.look(cx, job).await? {
            let (address, r) = (seen.address, seen.resource);
            let found = seen
                .found
                .filter(|f| f.run.as_deref() == Some(cx.run.as_str()) && !has(&address));
            let Some(found) = found else {
                continue;
            };
            if !matches!(found.status, Status::Ready) {
                return Err(Error::new(
                    Class::NotReady,
                    r.id(),
                    "Terraform began it before it was stopped; it is not ready yet",
                )
                .into());
            }
            let known = Known {
                account: cx.plan.basis.account.clone(),
                caller: None,
            };
            out.push(Lost {
                // A launch template goes by an id that only EC2 gives.
                id: import_id(&r, &known).or_else(|| found.attributes.get("id").cloned()),
                address,
                resource: r.id(),
            });
        }
        Ok(out)
    }

    /// The rest of a plan that was begun: what is missing, and what is half made.
    async fn rest(
        &self,
        cx: &Cx,
        job: &Job,
        before: &Before,
        state: &[Kept],
    ) -> StepResult<Option<Planned>> {
        for lost in self.lost(cx, job, state).await? {
            let (address, resource) = (lost.address, lost.resource);
            let id = lost.id.ok_or_else(|| {
                refused(
                    &resource,
                    "Terraform made it and was stopped before it wrote that down; it cannot be found by an id that crossfade knows",
                    format!("import it in the folder terraform-run as {address}, or delete it; then resume"),
                )
            })?;
            cx.log
                .progress(&cx.step, json!({"found": resource, "address": address}))
                .map_err(StepError::Journal)?;
            cx.world.terraform.import(job, &address, &id).await?;
        }
        let planned = cx.world.terraform.plan(job, &What::Rest).await?;
        let tainted = |a: &str| state.iter().any(|k| k.address == a && k.tainted);
        let stranger = planned
            .changes
            .iter()
            .find(|c| !before.creates.contains(&c.address) || c.deletes() && !tainted(&c.address));
        if let Some(c) = stranger {
            return Err(refused(
                &c.address,
                format!(
                    "what is left of the approved Terraform plan would {} it, which was not approved",
                    c.actions.join(" and ")
                ),
                "somebody changed the state or green meanwhile: look at it in the folder terraform-run; then resume, or roll back",
            ));
        }
        Ok((!planned.changes.is_empty()).then_some(planned))
    }

    fn made(&self, cx: &Cx) -> BTreeMap<String, Option<String>> {
        let records = cx.log.recorded(&cx.step);
        let last = records.iter().rev().find_map(|r| r.get("made"));
        last.and_then(|m| serde_json::from_value(m.clone()).ok())
            .unwrap_or_default()
    }

    /// What Terraform was last asked to apply.
    fn last(&self, cx: &Cx) -> Option<Last> {
        let records = cx.log.recorded(&cx.step);
        records.iter().rev().find_map(|r| {
            let sha256 = |key: &str| r.get(key)?.as_str().map(String::from);
            let (sha256, destroys) = match sha256("destroy") {
                Some(s) => (s, true),
                None => (sha256("start")?, false),
            };
            Some(Last { sha256, destroys })
        })
    }

    /// What this run has in the state; stops at anything there that it did not put there.
    fn own(&self, cx: &Cx, before: &Before, state: &[Kept]) -> StepResult<Vec<String>> {
        let made = self.made(cx);
        let mut own = vec![];
        for kept in state {
            if let Some(id) = before.existed.get(&kept.address) {
                same(kept, id)?;
                continue;
            }
            if !before.creates.contains(&kept.address) {
                return Err(StepError::Changed {
                    object: kept.address.clone(),
                    expected: "nothing: this run did not put it into the state".into(),
                    found: kept.id.clone().unwrap_or_else(|| kept.kind.clone()),
                });
            }
            if let Some(id) = made.get(&kept.address) {
                same(kept, id)?;
            }
            own.push(kept.address.clone());
        }
        Ok(own)
    }
}

fn same(kept: &Kept, id: &Option<String>) -> StepResult<()> {
    if kept.id == *id {
        return Ok(());
    }
    let word = |id: &Option<String>| id.clone().unwrap_or_else(|| "no id".into());
    Err(StepError::Changed {
        object: kept.address.clone(),
        expected: word(id),
        found: word(&kept.id),
    })
}

#[async_trait]
impl Step for Apply {
    async fn observe(&self, cx: &Cx) -> StepResult<Value> {
        let job = self.job(cx).await?;
        let planned = cx.world.terraform.pinned(&job).await?.ok_or_else(|| {
            refused(
                "terraform",
                "there is no Terraform plan for this plan, this run and this caller",
                "make and review it: crossfade plan, crossfade review",
            )
        })?;
        only_creates(&planned)?;
        for Seen {
            resource: r, found, ..
        } in self.look(cx, &job).await?
        {
            if let Some(found) = found
                && found.run.as_deref() != Some(cx.run.as_str())
            {
                let id = diff::shown(&r.id(), &cx.plan.target.cluster.name);
                return Err(refused(
                    &id,
                    "it exists already, and this run did not make it",
                    format!("{}; then discover and plan again", diff::consent_line(&id)),
                ));
            }
        }
        let state = cx.world.terraform.state(&job).await?;
        let creates: BTreeSet<String> = planned.changes.iter().map(|c| c.address.clone()).collect();
        Ok(json!(Before {
            sha256: planned.sha256,
            existed: state
                .into_iter()
                .filter(|k| !creates.contains(&k.address))
                .map(|k| (k.address, k.id))
                .collect(),
            creates,
        }))
    }

    async fn apply(&self, cx: &Cx, before: &Value) -> StepResult<Value> {
        let before: Before = recorded(&cx.step, before)?;
        let job = self.job(cx).await?;
        let begun: Vec<String> = cx
            .log
            .recorded(&cx.step)
            .iter()
            .filter_map(|r| r.get("start")?.as_str().map(String::from))
            .collect();
        let mut started = false;
        if let Some(last) = begun.last() {
            match cx.world.terraform.doing(&job, last).await? {
                // It goes on since a process that is gone.
                Doing::Running(_) => {
                    return Ok(json!(After {
                        started: Some(last.clone()),
                    }));
                }
                doing => started = doing != Doing::Nothing,
            }
        }
        let state = cx.world.terraform.state(&job).await?;
        let made = |a: &String| state.iter().any(|k| k.address == *a);
        // A plan counts once: what was begun with it is gone on with by a plan of the rest.
        let untouched = !started && !before.creates.iter().any(made);
        let (what, sha256) = if untouched {
            (What::Pinned, before.sha256.clone())
        } else {
            match self.rest(cx, &job, &before, &state).await? {
                Some(planned) => (What::Rest, planned.sha256),
                None => return Ok(json!(After { started: None })),
            }
        };
        cx.log
            .progress(&cx.step, json!({"start": sha256}))
            .map_err(StepError::Journal)?;
        cx.world.terraform.start(&job, &what, &sha256).await?;
        Ok(json!(After {
            started: Some(sha256),
        }))
    }

    async fn settle(&self, cx: &Cx, before: &Value, after: &Value) -> StepResult<Settle> {
        let before: Before = recorded(&cx.step, before)?;
        let after: After = recorded(&cx.step, after)?;
        let job = self.job(cx).await?;
        let failed = |why: String| Settle::Failed {
            why,
            remedy: "cure the cause, then resume: Terraform makes what is missing; or roll back"
                .into(),
        };
        if let Some(started) = &after.started {
            match cx.world.terraform.doing(&job, started).await? {
                Doing::Running(line) => {
                    return Ok(Settle::Pending {
                        why: format!("Terraform: {line}"),
                        poll: POLL,
                    });
                }
                Doing::Failed(why) => return Ok(failed(format!("Terraform stopped: {why}"))),
                Doing::Ended | Doing::Nothing => {}
            }
        }
        let state = cx.world.terraform.state(&job).await?;
        let good = |a: &String| state.iter().any(|k| k.address == *a && !k.tainted);
        let missing: Vec<&String> = before.creates.iter().filter(|a| !good(a)).collect();
        if let Some(first) = missing.first() {
            return Ok(failed(format!(
                "{} of {} resources are not in Terraform's state, the first is {first}",
                missing.len(),
                before.creates.len()
            )));
        }
        for Seen {
            resource: r, found, ..
        } in self.look(cx, &job).await?
        {
            let status = found.map(|f| f.status);
            let pending = |why: String| Settle::Pending {
                why,
                poll: Duration::from_secs(2),
            };
            match status {
                Some(Status::Ready) => {
                    let admitted = admitted(cx, &r).await?;
                    if admitted != Settle::Ready {
                        return Ok(admitted);
                    }
                }
                None => return Ok(pending(format!("{} to become visible", r.id()))),
                Some(Status::Pending(what)) => return Ok(pending(format!("{}: {what}", r.id()))),
                Some(Status::Deleting) => {
                    return Ok(failed(format!("{} is being deleted by somebody", r.id())));
                }
                Some(Status::Failed(why)) => return Ok(failed(format!("{}: {why}", r.id()))),
            }
        }
        let made: BTreeMap<&String, &Option<String>> = state
            .iter()
            .filter(|k| before.creates.contains(&k.address))
            .map(|k| (&k.address, &k.id))
            .collect();
        cx.log
            .progress(&cx.step, json!({"made": made}))
            .map_err(StepError::Journal)?;
        Ok(Settle::Ready)
    }

    async fn undo(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<()> {
        let before: Before = recorded(&cx.step, before)?;
        let job = self.job(cx).await?;
        // Terraform ends what it began before anything is taken away: `undone` waits for it.
        match self.last(cx) {
            Some(Last { sha256, .. })
                if matches!(
                    cx.world.terraform.doing(&job, &sha256).await?,
                    Doing::Running(_)
                ) =>
            {
                Ok(())
            }
            _ => self.destroy(cx, &before, &job).await.map(|_| ()),
        }
    }

    async fn undone(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<Settle> {
        let before: Before = recorded(&cx.step, before)?;
        let job = self.job(cx).await?;
        let destroys = self.last(cx).is_some_and(|l| l.destroys);
        if let Some(Last { sha256, .. }) = self.last(cx) {
            match cx.world.terraform.doing(&job, &sha256).await? {
                Doing::Running(line) => {
                    return Ok(Settle::Pending {
                        why: format!("Terraform: {line}"),
                        poll: POLL,
                    });
                }
                Doing::Failed(why) if destroys => {
                    return Ok(Settle::Failed {
                        why: format!("Terraform could not destroy everything: {why}"),
                        remedy: "cure the cause, then roll back again".into(),
                    });
                }
                _ => {}
            }
        }
        if !destroys && self.destroy(cx, &before, &job).await? {
            return Ok(Settle::Pending {
                why: "Terraform to destroy what this run created".into(),
                poll: POLL,
            });
        }
        let state = cx.world.terraform.state(&job).await?;
        let left = self.own(cx, &before, &state)?;
        if let Some(first) = left.first() {
            return Ok(Settle::Failed {
                why: format!("{first} is still in Terraform's state"),
                remedy: "look at it in the folder terraform-run, then roll back again".into(),
            });
        }
        // Made, but never written down: found by its tag, gone by its own delete.
        let mut waits = None;
        for Seen {
            resource: r, found, ..
        } in self.look(cx, &job).await?.into_iter().rev()
        {
            let Some(found) = found.filter(|f| f.run.as_deref() == Some(cx.run.as_str())) else {
                continue;
            };
            if !matches!(found.status, Status::Deleting) {
                cx.world.cloud.delete(&r).await?;
            }
            waits = Some(r.id());
            break;
        }
        Ok(match waits {
            Some(id) => Settle::Pending {
                why: format!("{id} to be gone"),
                poll: POLL,
            },
            None => Settle::Ready,
        })
    }
}

impl Apply {
    /// Starts to destroy what this run has in the state; `false` when it has nothing there.
    async fn destroy(&self, cx: &Cx, before: &Before, job: &Job) -> StepResult<bool> {
        let state = cx.world.terraform.state(job).await?;
        let own = self.own(cx, before, &state)?;
        if own.is_empty() {
            return Ok(false);
        }
        for seen in self.look(cx, job).await? {
            let ours = seen
                .found
                .is_some_and(|f| f.run.as_deref() == Some(cx.run.as_str()));
            if !ours || !own.contains(&seen.address) {
                continue;
            }
            let hung = cx.world.cloud.attached(&seen.resource, &cx.run).await?;
            if let Some(theirs) = hung.iter().find(|a| !a.passes) {
                return Err(StepError::Changed {
                    object: seen.resource.id(),
                    expected: "nothing of others on it".into(),
                    found: theirs.what.clone(),
                });
            }
        }
        let what = What::Destroy(own.clone());
        let planned = cx.world.terraform.plan(job, &what).await?;
        let wrong = |c: &&Change| c.actions != ["delete"] || !own.contains(&c.address);
        if let Some(c) = planned.changes.iter().find(wrong) {
            return Err(StepError::Changed {
                object: c.address.clone(),
                expected: "to be left alone: this run did not create it".into(),
                found: format!("Terraform's plan to {} it", c.actions.join(" and ")),
            });
        }
        cx.log
            .progress(&cx.step, json!({"destroy": planned.sha256}))
            .map_err(StepError::Journal)?;
        cx.world
            .terraform
            .start(job, &what, &planned.sha256)
            .await?;
        Ok(true)
    }
}
