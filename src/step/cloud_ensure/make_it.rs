//! The create: looked for first, so that a lost answer, a crash or a second process never makes a second one.

use super::trail::{Mark, Trail};
use super::{Before, quota, settle};
use crate::plan::diff;
use crate::step::util::refused;
use crate::step::{Cx, StepError, StepResult};
use crate::world::cloud::{Found, Resource, Status};
use crate::world::{Class, Error};
use std::time::Duration;

/// A new role, profile or policy is seen everywhere after seconds, rarely after more than a minute (eks.md 1.3): two are waited.
pub(super) const IAM_SPREADS: Duration = Duration::from_secs(120);

/// Whether it carries this run's tag.
pub(super) fn ours(cx: &Cx, found: &Found) -> bool {
    found.run.as_deref() == Some(cx.run.as_str())
}

/// Kinds that carry the run's tag. Of the others (a tag, a statement of somebody's trust policy) the exact content is all there is.
pub(super) fn carries_tag(resource: &Resource) -> bool {
    !matches!(
        resource,
        Resource::Tag { .. } | Resource::TrustStatement { .. }
    )
}

/// Makes it, unless it is there.
pub(super) async fn make(cx: &Cx, before: &Before) -> StepResult<()> {
    let resource = &before.resource;
    let trail = Trail::of(cx);
    let Some(found) = cx.world.cloud.find(resource).await? else {
        // It was there, and is gone, and somebody said "go on": the next one is another one.
        if trail.under_way().is_none()
            && let Some(last) = trail.made().last()
        {
            Mark::Replaced {
                why: "it was deleted by somebody".into(),
                created: Some((*last).into()),
            }
            .write(cx)?;
        }
        return create(cx, before).await;
    };
    match &found.status {
        Status::Deleting if trail.under_way().is_some() => Ok(()),
        Status::Deleting => Err(Error::new(
            Class::NotReady,
            resource.id(),
            "an earlier one of this name is still being deleted",
        )
        .patience(settle::budget(resource))
        .into()),
        // A person looked at why it failed, and resumed: what is there never heals by itself.
        Status::Failed(why) if ours(cx, &found) && trail.gave_up() => {
            super::cure::again(cx, before, &found, why).await
        }
        // Half made before a crash: every request of a create is idempotent, so it is finished by repeating it.
        _ if !found.equal && ours(cx, &found) => create(cx, before).await,
        _ if ours(cx, &found) => Ok(()),
        // Made by us a moment ago and without a tag, or made by somebody since we looked: the content tells.
        _ if found.run.is_none() && found.equal && diff::additive(resource) => Ok(()),
        _ => Err(taken(resource, &found)),
    }
}

/// Somebody else's, though a moment ago nobody's.
fn taken(resource: &Resource, found: &Found) -> StepError {
    let whose = match &found.run {
        Some(run) => format!("run {run} of crossfade made it"),
        None => "it is not crossfade's".into(),
    };
    refused(
        resource.id(),
        format!("the name was taken by somebody since the run looked: {whose}"),
        "find out who made it; remove it, or give green another name and plan again",
    )
}

/// One create, with what its refusals mean.
pub(super) async fn create(cx: &Cx, before: &Before) -> StepResult<()> {
    let resource = &before.resource;
    let again = Trail::of(cx).replaced();
    let made = match before.asked {
        // Journals of older versions say no time: their token is the plain one.
        None if again == 0 => cx.world.cloud.create(resource, &cx.run).await,
        asked => {
            let salt = format!("{}/{again}", asked.map_or(String::new(), |t| t.to_string()));
            cx.world.cloud.create_anew(resource, &cx.run, &salt).await
        }
    };
    let error = match made {
        Ok(()) => return Ok(()),
        Err(e) => e,
    };
    match error.class {
        // Ours whose answer was lost, or somebody's: looking tells.
        Class::AlreadyExists => match cx.world.cloud.find(resource).await? {
            Some(found) if ours(cx, &found) => Ok(()),
            Some(found) if found.run.is_none() && found.equal && diff::additive(resource) => Ok(()),
            Some(found) => Err(taken(resource, &found)),
            None => Err(Error::new(
                Class::NotReady,
                resource.id(),
                format!("it exists ({}), and is not visible yet", error.message),
            )
            .patience(IAM_SPREADS)
            .into()),
        },
        Class::NotReady if error.patience.is_none() => {
            let patience = patience(resource, &error.message);
            Err(error.patience(patience).into())
        }
        Class::Refused => Err(quota::explain(cx, resource, error).await.into()),
        _ => Err(error.into()),
    }
}

/// How long "not yet" may last: IAM spreads a role in a minute or two; an update, a delete or a cluster on its way takes as long
/// as EKS takes for such things.
fn patience(resource: &Resource, words: &str) -> Duration {
    let words = words.to_lowercase();
    let busy = [
        "in progress",
        "being deleted",
        "currently being",
        "not in active",
        "not active",
        "resourceinuse",
        "update",
    ];
    if busy.iter().any(|w| words.contains(w)) {
        return settle::budget(resource).max(settle::UPDATE);
    }
    IAM_SPREADS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_that_spreads_is_waited_for_two_minutes_and_an_update_under_way_as_long_as_updates_take()
     {
        let tag = Resource::Tag {
            resource: "subnet-1".into(),
            key: "k".into(),
            value: "v".into(),
        };
        // EKS's words (eks.md 1.3).
        let role = "InvalidParameterException: Role with arn: arn:aws:iam::000000000000:role/x, could not be assumed because it does not exist or the trusted entity is not correct";
        assert_eq!(patience(&tag, role), IAM_SPREADS);
        let busy = "ResourceInUseException: Cluster green currently has update 4f in progress";
        assert_eq!(patience(&tag, busy), settle::UPDATE);
    }
}
