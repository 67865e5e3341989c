//! What a `cloud.ensure` step writes into the journal between intent and done, and what a later process reads out of it.

use crate::step::{Cx, StepError, StepResult};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// One progress record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mark {
    /// It was seen with this run's tag. With name and tag, the time tells it from another that took its name.
    Made {
        /// When AWS made it, RFC 3339.
        created: String,
    },
    /// It is deleted and made again, written down before the delete.
    Replaced {
        /// What was wrong with it.
        why: String,
        /// When the failed one had been made.
        created: Option<String>,
    },
    /// The wait for it ended badly; whoever resumes has done something about it.
    GaveUp {
        /// What was wrong with it.
        why: String,
    },
    /// A look at something that takes its time. One line when what AWS does changes, and one a minute.
    Look {
        /// When.
        at: Timestamp,
        /// What AWS is doing.
        doing: String,
        /// For so long, seconds, since it was made.
        for_s: i64,
        /// What is typical, in words with the source.
        typical: String,
        /// When the next look is.
        next: Timestamp,
    },
}

impl Mark {
    /// Into the journal, with fsync.
    pub(super) fn write(&self, cx: &Cx) -> StepResult<()> {
        cx.log
            .progress(&cx.step, json!(self))
            .map_err(StepError::Journal)
    }
}

/// All of them since the step began.
#[derive(Debug, Default)]
pub(super) struct Trail(Vec<Mark>);

impl Trail {
    pub(super) fn of(cx: &Cx) -> Trail {
        // Records of another kind (an older version wrote none) say nothing here.
        let read = |v| serde_json::from_value(v).ok();
        Trail(
            cx.log
                .recorded(&cx.step)
                .into_iter()
                .filter_map(read)
                .collect(),
        )
    }

    /// Times at which what we know as ours was made.
    pub(super) fn made(&self) -> Vec<&str> {
        self.0
            .iter()
            .filter_map(|m| match m {
                Mark::Made { created } => Some(created.as_str()),
                _ => None,
            })
            .collect()
    }

    /// How often it was replaced so far.
    pub(super) fn replaced(&self) -> usize {
        let is = |m: &&Mark| matches!(m, Mark::Replaced { .. });
        self.0.iter().filter(is).count()
    }

    /// A replacement that is not seen yet: what the failed one was, and when it had been made.
    pub(super) fn under_way(&self) -> Option<(&str, Option<&str>)> {
        self.0.iter().rev().find_map(|m| match m {
            Mark::Made { .. } => Some(None),
            Mark::Replaced { why, created } => Some(Some((why.as_str(), created.as_deref()))),
            _ => None,
        })?
    }

    /// Whether the last that was said is that it will not come: then a person has looked since.
    pub(super) fn gave_up(&self) -> bool {
        matches!(self.0.last(), Some(Mark::GaveUp { .. }))
    }

    /// The last look.
    pub(super) fn look(&self) -> Option<(Timestamp, &str)> {
        self.0.iter().rev().find_map(|m| match m {
            Mark::Look { at, doing, .. } => Some((*at, doing.as_str())),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(created: &str) -> Mark {
        Mark::Made {
            created: created.into(),
        }
    }
    fn replaced(created: &str) -> Mark {
        Mark::Replaced {
            why: "CREATE_FAILED".into(),
            created: Some(created.into()),
        }
    }

    #[test]
    fn a_replacement_is_under_way_until_the_new_one_was_seen() {
        let trail = Trail(vec![made("1"), replaced("1")]);
        assert_eq!(trail.under_way(), Some(("CREATE_FAILED", Some("1"))));
        let trail = Trail(vec![made("1"), replaced("1"), made("2")]);
        assert_eq!(trail.under_way(), None);
        assert_eq!(trail.made(), ["1", "2"]);
        assert_eq!(trail.replaced(), 1);
    }

    #[test]
    fn marks_read_back_as_they_were_written() {
        for mark in [
            made("2026-11-30T10:00:00Z"),
            replaced("2026-11-30T10:00:00Z"),
        ] {
            let text = json!(mark).to_string();
            assert_eq!(serde_json::from_str::<Mark>(&text).unwrap(), mark);
        }
    }
}
