//! What came out FAILED never heals by itself. Where it is safe it is deleted and made again: it is this run's own, nothing of others is
//! in it, and EKS names a reason that may pass. At most [`TIMES`] times by itself; after that a person decides.

use super::issues::{self, Explained};
use super::trail::{Mark, Trail};
use super::{Before, make_it, settle};
use crate::step::util::{kind_of, refused};
use crate::step::{Cx, Settle, StepResult};
use crate::world::cloud::{Found, Resource, Status};
use std::time::Duration;

/// Replacements without a person's word: each takes EKS's whole time, and what failed three times is no bad luck.
pub(super) const TIMES: usize = 2;

/// Why it may not be replaced; `None` when it may.
async fn obstacle(
    cx: &Cx,
    resource: &Resource,
    found: &Found,
    trail: &Trail,
    status: &str,
) -> StepResult<Option<String>> {
    if !make_it::ours(cx, found) {
        return Ok(Some("this run did not make it".into()));
    }
    if !matches!(
        resource,
        Resource::Cluster { .. } | Resource::NodeGroup { .. } | Resource::Addon { .. }
    ) {
        return Ok(Some("it is not of a kind that EKS makes".into()));
    }
    // What was usable once (UPDATE_FAILED, DEGRADED) may be in use.
    if !(status.starts_with("CREATE_FAILED") || status.starts_with("FAILED")) {
        return Ok(Some(format!(
            "its state is {}, so it may be in use",
            status.split([':', ' ']).next().unwrap_or(status)
        )));
    }
    if let Some(created) = &found.created {
        let made = trail.made();
        if !made.is_empty() && !made.contains(&created.as_str()) {
            return Ok(Some(format!(
                "the journal knows one that was made at {}, this one was made at {created}",
                made.join(", ")
            )));
        }
    }
    let theirs: Vec<String> = cx
        .world
        .cloud
        .attached(resource, &cx.run)
        .await?
        .into_iter()
        .filter(|a| !a.passes)
        .map(|a| a.what)
        .collect();
    if !theirs.is_empty() {
        return Ok(Some(format!("in it is {}", theirs.join(", "))));
    }
    if let Resource::NodeGroup { name, .. } = resource {
        return guests(cx, name).await;
    }
    Ok(None)
}

/// Pods of others on a node group's nodes: some of its nodes may have joined.
async fn guests(cx: &Cx, group: &str) -> StepResult<Option<String>> {
    let green = cx.world.green.as_ref();
    let listed = async {
        let nodes = green
            .list(&kind_of(green, "v1", "Node").await?)
            .await?
            .items;
        let pods = green.list(&kind_of(green, "v1", "Pod").await?).await?.items;
        StepResult::Ok((nodes, pods))
    };
    let Ok((nodes, pods)) = listed.await else {
        return Ok(Some("green cannot be asked what runs on its nodes".into()));
    };
    let of_group: Vec<&str> = nodes
        .iter()
        .filter(|n| crate::object::label(n, "eks.amazonaws.com/nodegroup") == Some(group))
        .filter_map(|n| n["metadata"]["name"].as_str())
        .collect();
    let guests: Vec<String> = pods
        .iter()
        .filter(|p| p["metadata"]["namespace"] != "kube-system")
        .filter(|p| {
            p["spec"]["nodeName"]
                .as_str()
                .is_some_and(|n| of_group.contains(&n))
        })
        .filter_map(|p| {
            Some(format!(
                "{}/{}",
                p["metadata"]["namespace"].as_str()?,
                p["metadata"]["name"].as_str()?
            ))
        })
        .take(5)
        .collect();
    Ok((!guests.is_empty()).then(|| format!("on its nodes runs {}", guests.join(", "))))
}

/// Looks at a failed thing: replaced, or told in plain words.
pub(super) async fn cure(
    cx: &Cx,
    before: &Before,
    found: &Found,
    status: &str,
    old: bool,
    waited: Duration,
) -> StepResult<Settle> {
    let resource = &before.resource;
    let trail = Trail::of(cx);
    if old {
        // A crash between the journal's line and the delete, or a delete that failed: the same one again.
        cx.world.cloud.delete(resource).await?;
        return settle::pending(
            cx,
            resource,
            "the failed one is being deleted",
            None,
            &trail,
            waited,
        );
    }
    let explained = issues::of(resource, status, found);
    let why_not = if !explained.again {
        Some("making it again would not help".into())
    } else if trail.replaced() >= TIMES {
        Some(format!(
            "it was made {} times already",
            trail.replaced() + 1
        ))
    } else {
        obstacle(cx, resource, found, &trail, status).await?
    };
    match why_not {
        None => {
            replace(cx, resource, found, &explained).await?;
            let doing = format!("replaced, because {}", explained.why);
            settle::pending(cx, resource, &doing, None, &Trail::of(cx), waited)
        }
        Some(why_not) => {
            Mark::GaveUp {
                why: explained.why.clone(),
            }
            .write(cx)?;
            Ok(Settle::Failed {
                why: format!(
                    "{}; it is not made again by itself: {why_not}",
                    explained.why
                ),
                remedy: explained.act,
            })
        }
    }
}

async fn replace(
    cx: &Cx,
    resource: &Resource,
    found: &Found,
    explained: &Explained,
) -> StepResult<()> {
    Mark::Replaced {
        why: explained.why.clone(),
        created: found.created.clone(),
    }
    .write(cx)?;
    Ok(cx.world.cloud.delete(resource).await?)
}

/// Somebody read why it failed, and resumed: whatever the reason was, it is made again, where nothing of others goes with it.
pub(super) async fn again(cx: &Cx, before: &Before, found: &Found, status: &str) -> StepResult<()> {
    let resource = &before.resource;
    let explained = issues::of(resource, status, found);
    if let Some(why_not) = obstacle(cx, resource, found, &Trail::of(cx), status).await? {
        return Err(refused(
            resource.id(),
            format!("{}; it cannot be made again: {why_not}", explained.why),
            format!("{}; or roll back", explained.act),
        ));
    }
    debug_assert!(matches!(found.status, Status::Failed(_)));
    replace(cx, resource, found, &explained).await
}
