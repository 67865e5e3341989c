//! The wait: what AWS is doing, what is typical and who says so, when the next look is.

use super::make_it::{self, IAM_SPREADS};
use super::trail::{Mark, Trail};
use super::{Before, cure, issues};
use crate::step::{Cx, Settle, StepResult};
use crate::world::Class;
use crate::world::cloud::{Found, Resource, Status};
use jiff::{SignedDuration, Timestamp};
use std::sync::OnceLock;
use std::time::Duration;
use tokio::time::Instant;

/// Longest update of a cluster that is waited for: an endpoint or logging update takes minutes.
pub(super) const UPDATE: Duration = Duration::from_secs(20 * 60);
/// A look at the same thing leaves one line a minute in the journal.
const LINE: SignedDuration = SignedDuration::from_secs(60);

/// When this process began to wait.
#[derive(Default)]
pub(super) struct Since(OnceLock<Instant>);

impl Since {
    /// How long it waits.
    pub(super) fn waited(&self) -> Duration {
        self.0.get_or_init(Instant::now).elapsed()
    }
}

/// After so long it is no wait any more (eks.md 1.8: 30, 45 and 15 minutes).
pub(super) fn budget(resource: &Resource) -> Duration {
    let minutes = match resource {
        Resource::Cluster { .. } => 30,
        Resource::NodeGroup { .. } => 45,
        Resource::Addon { .. } => 15,
        _ => return IAM_SPREADS,
    };
    Duration::from_secs(minutes * 60)
}

/// What is typical of a creation, with who says so (eks.md 1.8).
fn typical(resource: &Resource) -> &'static str {
    match resource {
        Resource::Cluster { .. } => {
            "typically some minutes by AWS's words, 13 to 17 with all that belongs to it in a run over 21 regions of 2025"
        }
        Resource::NodeGroup { .. } => {
            "typically 2 to 5 min when nodes can join; EKS gives up after 20 to 25"
        }
        Resource::Addon { .. } => "AWS's own waiter gives an add-on 10 min",
        _ => "IAM and EC2 show what was made within a minute or two",
    }
}

/// How soon to look again: at once while it may be quick, then ever more rarely, at most every quarter of a minute.
pub(super) fn next_look(waited: Duration) -> Duration {
    (waited / 4).clamp(Duration::from_millis(250), Duration::from_secs(15))
}

fn minutes(seconds: i64) -> String {
    match seconds {
        s if s < 120 => format!("{} s", s.max(0)),
        s => format!("{} min", s / 60),
    }
}

pub(super) async fn settle(cx: &Cx, before: &Before, since: &Since) -> StepResult<Settle> {
    let resource = &before.resource;
    let waited = since.waited();
    let trail = Trail::of(cx);
    let Some(found) = cx.world.cloud.find(resource).await? else {
        return absent(cx, before, &trail, waited).await;
    };
    if before.existed {
        return Ok(match &found.status {
            Status::Ready => Settle::Ready,
            status => theirs(resource, status, &found, waited),
        });
    }
    let created = found.created.as_deref();
    // The failed one that is on its way out is not the new one.
    let old = trail
        .under_way()
        .is_some_and(|(_, was)| was.is_some() && was == created);
    if let Some(created) = created
        && !old
        && make_it::ours(cx, &found)
        && trail.made().last() != Some(&created)
    {
        Mark::Made {
            created: created.into(),
        }
        .write(cx)?;
    }
    match &found.status {
        Status::Ready => admitted(cx, resource).await,
        Status::Pending(doing) => {
            let doing = said(resource, doing, &found);
            if waited >= budget(resource) {
                return gave_up(cx, resource, doing, &found);
            }
            pending(cx, resource, &doing, created, &trail, waited)
        }
        Status::Deleting if trail.under_way().is_some() => pending(
            cx,
            resource,
            "the failed one is being deleted",
            None,
            &trail,
            waited,
        ),
        Status::Deleting => Ok(Settle::Failed {
            why: format!("{} is being deleted by somebody", resource.id()),
            remedy: "find out who deletes it; then resume with the same command".into(),
        }),
        Status::Failed(why) => cure::cure(cx, before, &found, why, old, waited).await,
    }
}

/// What AWS is doing, with what it says is wrong meanwhile.
fn said(resource: &Resource, doing: &str, found: &Found) -> String {
    if found.issues.is_empty() {
        return found.doing.clone().unwrap_or_else(|| doing.into());
    }
    let explained = issues::of(resource, doing, found);
    let start = format!("{}: ", resource.id());
    explained
        .why
        .strip_prefix(start.as_str())
        .unwrap_or(&explained.why)
        .into()
}

/// A wait, with its line in the journal.
pub(super) fn pending(
    cx: &Cx,
    resource: &Resource,
    doing: &str,
    created: Option<&str>,
    trail: &Trail,
    waited: Duration,
) -> StepResult<Settle> {
    let now = cx.world.clock.now();
    // Since it was made, also when another process made it.
    let for_s = created
        .and_then(|c| c.parse::<Timestamp>().ok())
        .map(|c| now.duration_since(c).as_secs())
        .filter(|s| *s >= 0)
        .unwrap_or(i64::try_from(waited.as_secs()).unwrap_or(i64::MAX));
    let poll = next_look(waited);
    let typical = typical(resource);
    // What counts down in the words ("about 40 s left") is no other thing.
    let plain = |text: &str| text.split(',').next().unwrap_or(text).to_owned();
    let news = match trail.look() {
        None => waited >= Duration::from_secs(1),
        Some((at, was)) => plain(was) != plain(doing) || now.duration_since(at) >= LINE,
    };
    if news {
        Mark::Look {
            at: now,
            doing: doing.into(),
            for_s,
            typical: typical.into(),
            next: now
                .checked_add(SignedDuration::try_from(poll).unwrap_or_default())
                .unwrap_or(now),
        }
        .write(cx)?;
    }
    Ok(Settle::Pending {
        why: format!(
            "{}: {doing}, for {} now ({typical}; at most {} min are waited; next look in {:.0} s)",
            resource.id(),
            minutes(for_s / 30 * 30),
            budget(resource).as_secs() / 60,
            poll.as_secs_f64().ceil()
        ),
        poll,
    })
}

/// Somebody's, used as it is: only its owner can cure it.
fn theirs(resource: &Resource, status: &Status, found: &Found, waited: Duration) -> Settle {
    let (word, fails) = match status {
        Status::Pending(doing) => (doing.clone(), waited >= budget(resource)),
        Status::Failed(why) => (why.clone(), true),
        _ => ("it is being deleted".into(), true),
    };
    let explained = issues::of(resource, &word, found);
    if fails {
        return Settle::Failed {
            why: format!(
                "{} (it was there before, and crossfade leaves it alone)",
                explained.why
            ),
            remedy: format!("its owner must see to it: {}", explained.act),
        };
    }
    Settle::Pending {
        why: format!("{}: {word}", resource.id()),
        poll: next_look(waited),
    }
}

fn gave_up(cx: &Cx, resource: &Resource, doing: String, found: &Found) -> StepResult<Settle> {
    let minutes = budget(resource).as_secs() / 60;
    Mark::GaveUp { why: doing.clone() }.write(cx)?;
    let remedy = if found.issues.is_empty() {
        "look at it in the AWS console; the same command waits on".into()
    } else {
        issues::of(resource, &doing, found).act
    };
    Ok(Settle::Failed {
        why: format!("{}: still {doing} after {minutes} min", resource.id()),
        remedy,
    })
}

/// Not there (any more, or yet).
async fn absent(cx: &Cx, before: &Before, trail: &Trail, waited: Duration) -> StepResult<Settle> {
    let resource = &before.resource;
    if trail.under_way().is_some() {
        make_it::create(cx, before).await?;
        return pending(cx, resource, "it is made again", None, trail, waited);
    }
    if before.existed || !trail.made().is_empty() {
        return Ok(Settle::Failed {
            why: format!(
                "{} was there and is gone: somebody deleted it",
                resource.id()
            ),
            remedy: if before.existed {
                "find out who removed it; then discover and plan again".into()
            } else {
                "find out who deleted it; the same command makes it again".into()
            },
        });
    }
    if waited >= IAM_SPREADS {
        return Ok(Settle::Failed {
            why: format!(
                "{} was made, and {} s later nobody sees it",
                resource.id(),
                waited.as_secs()
            ),
            remedy:
                "look for it in the AWS console; the same command makes it again if it is not there"
                    .into(),
        });
    }
    pending(
        cx,
        resource,
        "it is made, and not visible yet",
        None,
        trail,
        waited,
    )
}

/// An access entry takes effect some seconds after EKS shows it: until green lets us in, our own entry is not done.
pub(in crate::step) async fn admitted(cx: &Cx, resource: &Resource) -> StepResult<Settle> {
    let Resource::AccessEntry {
        principal: entry, ..
    } = resource
    else {
        return Ok(Settle::Ready);
    };
    if *entry != crate::world::cloud::principal_of(&cx.world.cloud.identity().await?.arn) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_quick_at_first_and_every_quarter_of_a_minute_in_the_end() {
        assert_eq!(next_look(Duration::ZERO), Duration::from_millis(250));
        assert_eq!(next_look(Duration::from_secs(20)), Duration::from_secs(5));
        assert_eq!(next_look(Duration::from_secs(600)), Duration::from_secs(15));
    }
}
