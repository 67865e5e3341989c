//! `cloud.ensure`: one cloud resource that must exist, made exactly once. What was there before is used and never deleted.
//!
//! A create can fail in every way (throttled, answer lost, process killed, made and then FAILED). None of that is guessed at: names,
//! run tags and client tokens are deterministic, so whoever comes next looks, and knows whether the thing is ours.
//!
//! - [`observe`]: may what is there be used; [`make_it`]: the create and its refusals; [`settle`]: the wait, with what AWS is doing;
//! - [`cure`]: what came out FAILED is made again where that is safe, [`issues`] says what EKS means, [`quota`] which quota is used up;
//! - [`undo`]: only what this run made, known by id, tag and time, and only when nobody hung anything on it.

mod cure;
mod issues;
mod make_it;
mod observe;
mod quota;
mod settle;
#[cfg(test)]
mod tests;
mod trail;
mod undo;

pub(in crate::step) use settle::admitted;

use super::util::{params, recorded};
use super::{Cx, Settle, Step, StepResult};
use crate::world::cloud::{Resource, principal_of};
use crate::world::{Class, Error};
use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Makes the step.
pub fn make(value: &Value) -> Result<Box<dyn Step>, String> {
    Ok(Box::new(params::<Ensure>("cloud.ensure", value)?))
}

#[derive(Deserialize)]
struct Ensure {
    resource: Resource,
    /// When this process began to wait for it.
    #[serde(skip)]
    waits: settle::Since,
}

#[derive(Serialize, Deserialize)]
struct Before {
    /// It was there already: adopted, never deleted.
    existed: bool,
    /// With every placeholder resolved.
    resource: Resource,
    /// When the run looked before it made it: part of the client token, so that a second way there after a rollback is not answered
    /// with what the first had made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<Timestamp>,
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
                .replace("${caller}", &principal_of(&who.arn));
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
        let ours = found.as_ref().is_some_and(|f| make_it::ours(cx, f));
        if !ours {
            self.may_be_used(cx, &resource, found.as_ref())?;
        }
        let existed = found.is_some() && !ours;
        Ok(json!(Before {
            existed,
            resource,
            asked: (!existed).then(|| cx.world.clock.now()),
        }))
    }

    async fn apply(&self, cx: &Cx, before: &Value) -> StepResult<Value> {
        let before: Before = recorded(&cx.step, before)?;
        if !before.existed {
            make_it::make(cx, &before).await?;
        }
        Ok(json!({ "created": !before.existed, "id": before.resource.id() }))
    }

    async fn settle(&self, cx: &Cx, before: &Value, _: &Value) -> StepResult<Settle> {
        settle::settle(cx, &recorded(&cx.step, before)?, &self.waits).await
    }

    async fn undo(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<()> {
        undo::undo(cx, &recorded(&cx.step, before)?).await
    }

    async fn undone(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<Settle> {
        undo::undone(cx, &recorded(&cx.step, before)?, &self.waits).await
    }
}

#[cfg(test)]
mod principal_tests {
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
