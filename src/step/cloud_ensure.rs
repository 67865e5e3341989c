//! `cloud.ensure`: one cloud resource that must exist. What was there before is used and never deleted.

use super::util::{params, recorded, refused};
use super::{Cx, Settle, Step, StepError, StepResult};
use crate::plan::diff;
use crate::plan::model::ResourceState;
use crate::world::cloud::compare::Difference;
use crate::world::cloud::{Found, Resource, Status, principal_of as principal};
use crate::world::{Class, Error};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Makes the step.
pub fn make(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(params::<Ensure>("cloud.ensure", value)?))
}

#[derive(Deserialize)]
struct Ensure {
    resource: Resource,
}

#[derive(Serialize, Deserialize)]
struct Before {
    /// It was there already: adopted, never deleted.
    existed: bool,
    /// With every placeholder resolved.
    resource: Resource,
}

impl Ensure {
    /// Fills in what is known only once the cluster stands (its issuer, its security group) or who we are.
    async fn resolved(&self, cx: &Cx) -> StepResult<Resource> {
        let mut wanted = self.resource.clone();
        // User data is shell: its `${...}` are its own.
        let script = match &mut wanted {
            Resource::LaunchTemplate { user_data, .. } => user_data.take(),
            _ => None,
        };
        let mut text = serde_json::to_string(&wanted)
            .map_err(|e| Error::new(Class::Internal, self.resource.id(), e.to_string()))?;
        if text.contains("${account}") || text.contains("${caller}") {
            let who = cx.world.cloud.identity().await?;
            text = text
                .replace("${account}", &who.account)
                .replace("${caller}", &principal(&who.arn));
        }
        if text.contains("${cluster.") {
            for (name, value) in cluster_attributes(cx).await? {
                text = text.replace(&format!("${{cluster.{name}}}"), &value);
            }
        }
        if let Some(start) = text.find("${") {
            let rest: String = text[start..].chars().take_while(|c| *c != '"').collect();
            return Err(Error::new(
                Class::NotReady,
                self.resource.id(),
                format!("{rest} is not known yet"),
            )
            .into());
        }
        let mut resource: Resource = serde_json::from_str(&text)
            .map_err(|e| Error::new(Class::Internal, self.resource.id(), e.to_string()))?;
        if let Resource::LaunchTemplate { user_data, .. } = &mut resource {
            *user_data = script;
        }
        Ok(resource)
    }
}

impl Ensure {
    /// The same judgement as in the plan, on what is there now.
    fn may_be_used(&self, cx: &Cx, resource: &Resource, found: Option<&Found>) -> StepResult<()> {
        let id = diff::shown(&self.resource.id(), &cx.plan.target.cluster.name);
        let planned = cx.plan.target.resources.iter().find(|t| t.id == id);
        let state = planned.map(|t| t.state);
        let Some(found) = found else {
            return match (state, planned) {
                (Some(ResourceState::Terraform), Some(t)) => Err(refused(
                    id,
                    format!("it is left to Terraform ({}), and it is not there", t.why),
                    "run terraform apply, then resume",
                )),
                (Some(ResourceState::Adopt), _) => Err(refused(
                    id,
                    "the plan uses one that was there, and it is gone",
                    "find out who removed it; then discover and plan again",
                )),
                _ => Ok(()),
            };
        };
        let differ = |field: &str, have: &str, want: &str| Difference {
            field: field.into(),
            have: have.into(),
            want: want.into(),
        };
        let unknown = [match (resource, found.attributes.get("value")) {
            (Resource::Tag { value, .. }, Some(have)) => differ("value", have, value),
            _ => differ("content", "something else", "what the plan asks for"),
        }];
        let judged = diff::judge(
            resource,
            &diff::Seen {
                run: found.run.as_deref(),
                differences: match (found.equal, found.differences.is_empty()) {
                    (true, _) => &[],
                    (false, true) => &unknown,
                    (false, false) => &found.differences,
                },
                consent: diff::consents(&cx.plan.spec.green.adopt, &[&id, &resource.id()]),
                terraform: planned
                    .filter(|t| t.state == ResourceState::Terraform)
                    .map(|t| t.why.as_str()),
            },
        );
        if judged.state == ResourceState::Foreign {
            let remedy = format!("{}; then plan again", diff::consent_line(&id));
            return Err(refused(
                id,
                "it exists already, and crossfade did not make it",
                remedy,
            ));
        }
        if !judged.hard.is_empty() {
            let what: Vec<String> = judged.hard.iter().map(Difference::to_string).collect();
            return Err(refused(
                id,
                format!(
                    "it exists already and differs from what the plan asks for ({})",
                    what.join("; ")
                ),
                "somebody made it: remove it, rename green in migration.yaml, or make it equal; then plan again",
            ));
        }
        Ok(())
    }
}

/// Attributes of green's cluster: `issuer`, `security_group`, `endpoint`.
async fn cluster_attributes(cx: &Cx) -> StepResult<BTreeMap<String, String>> {
    let name = &cx.plan.target.cluster.name;
    let probe = Resource::named_cluster(name);
    let found = cx.world.cloud.find(&probe).await?.ok_or_else(|| {
        Error::new(
            Class::NotReady,
            format!("cluster/{name}"),
            "it does not exist yet",
        )
    })?;
    Ok(found
        .attributes
        .into_iter()
        .map(|(k, v)| {
            (
                if k == "securityGroup" {
                    "security_group".into()
                } else {
                    k
                },
                v,
            )
        })
        .collect())
}

#[async_trait]
impl Step for Ensure {
    async fn observe(&self, cx: &Cx) -> StepResult<Value> {
        let resource = self.resolved(cx).await?;
        let found = cx.world.cloud.find(&resource).await?;
        // Half made by this run before a crash (a role without its policies yet): ours to finish.
        let ours = found
            .as_ref()
            .is_some_and(|f| f.run.as_deref() == Some(cx.run.as_str()));
        if !ours {
            self.may_be_used(cx, &resource, found.as_ref())?;
        }
        Ok(json!(Before {
            existed: found.is_some() && !ours,
            resource
        }))
    }

    async fn apply(&self, cx: &Cx, before: &Value) -> StepResult<Value> {
        let before: Before = recorded(&cx.step, before)?;
        if !before.existed {
            // A create whose answer was lost, or a crash after it: found here, never made twice.
            let found = cx.world.cloud.find(&before.resource).await?;
            match found {
                None => create(cx, &before.resource).await?,
                Some(found) if matches!(found.status, Status::Deleting) => {
                    return Err(Error::new(
                        Class::NotReady,
                        before.resource.id(),
                        "an earlier one of this name is still being deleted",
                    )
                    .into());
                }
                // Half made before a crash: every request of a create is idempotent, so it is finished by repeating it.
                Some(found) if !found.equal && found.run.as_deref() == Some(cx.run.as_str()) => {
                    create(cx, &before.resource).await?;
                }
                Some(_) => {}
            }
        }
        Ok(json!({ "created": !before.existed, "id": before.resource.id() }))
    }

    async fn settle(&self, cx: &Cx, before: &Value, _: &Value) -> StepResult<Settle> {
        let before: Before = recorded(&cx.step, before)?;
        Ok(match cx.world.cloud.find(&before.resource).await? {
            None => Settle::Pending {
                why: format!("{} to become visible", before.resource.id()),
                poll: Duration::from_secs(1),
            },
            Some(found) => match found.status {
                Status::Ready => admitted(cx, &before.resource).await?,
                Status::Pending(what) => Settle::Pending {
                    why: format!("{}: {what}", before.resource.id()),
                    poll: poll(&before.resource),
                },
                Status::Deleting => Settle::Failed {
                    why: format!("{} is being deleted by somebody", before.resource.id()),
                    remedy: "find out who deletes it; then resume with the same command".into(),
                },
                Status::Failed(why) => Settle::Failed {
                    why: format!("{}: {why}", before.resource.id()),
                    remedy: "cure the cause, then resume, or roll back".into(),
                },
            },
        })
    }

    async fn undo(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<()> {
        let before: Before = recorded(&cx.step, before)?;
        if before.existed {
            return Ok(());
        }
        let Some(found) = cx.world.cloud.find(&before.resource).await? else {
            return Ok(());
        };
        if let Some(run) = &found.run
            && *run != cx.run
        {
            return Err(StepError::Changed {
                object: before.resource.id(),
                expected: format!("tag of run {}", cx.run),
                found: format!("tag of run {run}"),
            });
        }
        if found.run.is_none() && !found.equal {
            return Err(StepError::Changed {
                object: before.resource.id(),
                expected: "what this run added".into(),
                found: "another content".into(),
            });
        }
        if !matches!(found.status, Status::Deleting) {
            cx.world.cloud.delete(&before.resource).await?;
        }
        Ok(())
    }

    async fn undone(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<Settle> {
        let before: Before = recorded(&cx.step, before)?;
        if before.existed || cx.world.cloud.find(&before.resource).await?.is_none() {
            return Ok(Settle::Ready);
        }
        Ok(Settle::Pending {
            why: format!("{} to be gone", before.resource.id()),
            poll: poll(&before.resource),
        })
    }
}

/// An access entry takes effect some seconds after EKS shows it: until green lets us in, our own entry is not done.
async fn admitted(cx: &Cx, resource: &Resource) -> StepResult<Settle> {
    let Resource::AccessEntry {
        principal: entry, ..
    } = resource
    else {
        return Ok(Settle::Ready);
    };
    if *entry != principal(&cx.world.cloud.identity().await?.arn) {
        return Ok(Settle::Ready);
    }
    match cx.world.green.identity().await {
        Ok(_) => Ok(Settle::Ready),
        Err(e) if e.class == Class::Unauthorized || e.is_transient() => Ok(Settle::Pending {
            why: format!("green to let {entry} in"),
            poll: Duration::from_secs(2),
        }),
        Err(e) => Err(e.into()),
    }
}

async fn create(cx: &Cx, resource: &Resource) -> StepResult<()> {
    match cx.world.cloud.create(resource, &cx.run).await {
        Err(e) if e.class != Class::AlreadyExists => Err(e.into()),
        _ => Ok(()),
    }
}

/// How often to ask: EKS takes minutes, IAM and EC2 answer at once (eks.md 1.8).
fn poll(resource: &Resource) -> Duration {
    match resource {
        Resource::Cluster { .. } | Resource::NodeGroup { .. } => Duration::from_secs(5),
        Resource::Addon { .. } => Duration::from_secs(3),
        _ => Duration::from_secs(1),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_sts_session_becomes_the_role_behind_it() {
        assert_eq!(
            crate::world::cloud::principal_of(
                "arn:aws:sts::000000000000:assumed-role/Admin/me@shop"
            ),
            "arn:aws:iam::000000000000:role/Admin"
        );
        assert_eq!(
            crate::world::cloud::principal_of("arn:aws:iam::000000000000:user/ops"),
            "arn:aws:iam::000000000000:user/ops"
        );
    }
}
