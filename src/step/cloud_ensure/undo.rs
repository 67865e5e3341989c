//! The way back: only what this run made, known by id, tag and time of creation, and only when nobody hung anything on it.

use super::settle::{self, Since};
use super::trail::Trail;
use super::{Before, issues, make_it};
use crate::step::{Cx, Settle, StepError, StepResult};
use crate::world::Class;
use crate::world::cloud::{Attached, Found, Resource, Status};
use std::time::Duration;

/// How long AWS may take to clear away what is its own (network interfaces, instance profiles).
const CLEARS: Duration = Duration::from_secs(20 * 60);

/// Deletes it, or says why not. Idempotent.
pub(super) async fn undo(cx: &Cx, before: &Before) -> StepResult<()> {
    if before.existed {
        return Ok(());
    }
    let resource = &before.resource;
    let Some(found) = cx.world.cloud.find(resource).await? else {
        return Ok(());
    };
    is_the_one(cx, resource, &found)?;
    if matches!(found.status, Status::Deleting) {
        return Ok(());
    }
    if waits_for(cx, resource).await?.is_empty() {
        delete(cx, resource, &found).await?;
    }
    // Otherwise `undone` waits, and deletes then.
    Ok(())
}

/// Whether it is what this run made, and not another under its name.
fn is_the_one(cx: &Cx, resource: &Resource, found: &Found) -> StepResult<()> {
    let changed = |expected: String, found: String| {
        Err(StepError::Changed {
            object: resource.id(),
            expected,
            found,
        })
    };
    match &found.run {
        Some(run) if *run != cx.run => {
            return changed(
                format!("tag of run {}", cx.run),
                format!("tag of run {run}"),
            );
        }
        // A rule of somebody's group: old runs did not tag it, its exact content is ours then.
        None if make_it::carries_tag(resource)
            && !(matches!(resource, Resource::SecurityGroupRule { .. }) && found.equal) =>
        {
            return changed(
                format!("tag of run {}", cx.run),
                "one without that tag: somebody deleted ours and made another under its name"
                    .into(),
            );
        }
        None if !found.equal => {
            return changed("what this run added".into(), content(found));
        }
        // Our tag on a rule, and somebody's words in it.
        Some(_) if matches!(resource, Resource::SecurityGroupRule { .. }) && !found.equal => {
            return changed("what this run added".into(), content(found));
        }
        _ => {}
    }
    let trail = Trail::of(cx);
    let made = trail.made();
    if let Some(created) = &found.created
        && !made.is_empty()
        && !made.contains(&created.as_str())
    {
        return changed(
            format!("the one that was made at {}", made.join(", ")),
            format!(
                "one that was made at {created}: somebody deleted ours and made it again under its name"
            ),
        );
    }
    Ok(())
}

fn content(found: &Found) -> String {
    let mut said: Vec<String> = found.differences.iter().map(ToString::to_string).collect();
    if let Some(value) = found
        .attributes
        .get("value")
        .or(found.attributes.get("statement"))
    {
        said.push(value.clone());
    }
    match said.is_empty() {
        true => "another content".into(),
        false => format!("another content: {}", said.join("; ")),
    }
}

/// What AWS still has to clear away. Refuses when something of others hangs on it.
async fn waits_for(cx: &Cx, resource: &Resource) -> StepResult<Vec<String>> {
    let (passing, theirs): (Vec<Attached>, Vec<Attached>) = cx
        .world
        .cloud
        .attached(resource, &cx.run)
        .await?
        .into_iter()
        .partition(|a| a.passes);
    if !theirs.is_empty() {
        return Err(StepError::Changed {
            object: resource.id(),
            expected: "nothing on it but what this run made".into(),
            found: theirs
                .into_iter()
                .map(|a| a.what)
                .collect::<Vec<_>>()
                .join(", "),
        });
    }
    Ok(passing.into_iter().map(|a| a.what).collect())
}

async fn delete(cx: &Cx, resource: &Resource, found: &Found) -> StepResult<()> {
    // One update at a time, and no delete meanwhile (eks.md 1.2).
    let patience = match found.doing {
        Some(_) => settle::UPDATE,
        None => CLEARS,
    };
    cx.world.cloud.delete(resource).await.map_err(|e| {
        match e.class {
            // Something that is on its way out still holds it: a node group under a cluster, an update.
            Class::NotReady if e.patience.is_none() => e.patience(patience),
            _ => e,
        }
        .into()
    })
}

/// Whether it is gone, and what AWS made for it too.
pub(super) async fn undone(cx: &Cx, before: &Before, since: &Since) -> StepResult<Settle> {
    let resource = &before.resource;
    if before.existed {
        return Ok(Settle::Ready);
    }
    let waited = since.waited();
    let poll = settle::next_look(waited);
    let Some(found) = cx.world.cloud.find(resource).await? else {
        return gone(cx, resource, waited, poll).await;
    };
    let why = match &found.status {
        Status::Deleting => "is being deleted by AWS".to_string(),
        Status::Failed(word) if word.starts_with("DELETE_FAILED") => {
            let explained = issues::of(resource, word, &found);
            if waited >= settle::budget(resource) {
                return Ok(Settle::Failed {
                    why: explained.why,
                    remedy: explained.act,
                });
            }
            is_the_one(cx, resource, &found)?;
            delete(cx, resource, &found).await?;
            format!("is deleted again, because {}", explained.why)
        }
        _ => {
            is_the_one(cx, resource, &found)?;
            let waits = waits_for(cx, resource).await?;
            if waits.is_empty() {
                delete(cx, resource, &found).await?;
                "to be gone".to_string()
            } else if waited >= CLEARS {
                return Ok(left(resource, &waits));
            } else {
                format!("waits for AWS to clear away {}", waits.join(", "))
            }
        }
    };
    if waited >= settle::budget(resource).max(CLEARS) {
        return Ok(Settle::Failed {
            why: format!(
                "{} {why}, for {} min now",
                resource.id(),
                waited.as_secs() / 60
            ),
            remedy: "look at it in the AWS console; the same command waits on".into(),
        });
    }
    Ok(Settle::Pending {
        why: format!("{} {why}", resource.id()),
        poll,
    })
}

/// The cluster is gone; its network interfaces go a while later, and until then its subnets are not as they were.
async fn gone(
    cx: &Cx,
    resource: &Resource,
    waited: Duration,
    poll: Duration,
) -> StepResult<Settle> {
    if !matches!(resource, Resource::Cluster { .. }) {
        return Ok(Settle::Ready);
    }
    let waits: Vec<String> = cx
        .world
        .cloud
        .attached(resource, &cx.run)
        .await?
        .into_iter()
        .filter(|a| a.passes)
        .map(|a| a.what)
        .collect();
    if waits.is_empty() {
        return Ok(Settle::Ready);
    }
    if waited >= CLEARS {
        return Ok(left(resource, &waits));
    }
    Ok(Settle::Pending {
        why: format!(
            "{} is gone; AWS still clears away {}",
            resource.id(),
            waits.join(", ")
        ),
        poll,
    })
}

fn left(resource: &Resource, what: &[String]) -> Settle {
    Settle::Failed {
        why: format!(
            "{}: after {} min AWS has not cleared away {}",
            resource.id(),
            CLEARS.as_secs() / 60,
            what.join(", ")
        ),
        remedy: "delete what is named by hand (aws ec2 delete-network-interface --network-interface-id ...), then try again"
            .into(),
    }
}
