//! What the bench saw its programs do: the consumers' lives and the reports' runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

/// Shared by all pods of both sides. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Observed(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    consumers: Vec<Presence>,
    reports: Vec<ReportRun>,
}

/// One life of a consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presence {
    /// `blue` or `green`.
    pub side: String,
    /// `namespace/name` of its pod.
    pub pod: String,
    /// When it began to consume.
    pub from: Timestamp,
    /// When it ended; `None` while it lives.
    pub until: Option<Timestamp>,
}

/// One run of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportRun {
    /// `blue` or `green`.
    pub side: String,
    /// `namespace/name` of its pod.
    pub pod: String,
    /// When it ran.
    pub at: Timestamp,
}

/// Held by a living consumer; dropping it writes down the end.
#[derive(Debug)]
pub struct Alive {
    observed: Observed,
    index: usize,
}

impl Drop for Alive {
    fn drop(&mut self) {
        let mut seen = self.observed.seen();
        if let Some(presence) = seen.consumers.get_mut(self.index) {
            presence.until = Some(Timestamp::now());
        }
    }
}

impl Observed {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn consumer_started(&self, side: &str, pod: &str) -> Alive {
        let mut seen = self.seen();
        let index = seen.consumers.len();
        seen.consumers.push(Presence {
            side: side.to_owned(),
            pod: pod.to_owned(),
            from: Timestamp::now(),
            until: None,
        });
        Alive {
            observed: self.clone(),
            index,
        }
    }

    pub(super) fn report_ran(&self, side: &str, pod: &str) {
        self.seen().reports.push(ReportRun {
            side: side.to_owned(),
            pod: pod.to_owned(),
            at: Timestamp::now(),
        });
    }

    /// All lives of consumers, in the order of their beginning.
    pub fn consumers(&self) -> Vec<Presence> {
        self.seen().consumers.clone()
    }

    /// Side and pod of each consumer that lives now.
    pub fn consumers_alive(&self) -> Vec<(String, String)> {
        let seen = self.seen();
        let alive = seen
            .consumers
            .iter()
            .filter(|presence| presence.until.is_none());
        alive
            .map(|presence| (presence.side.clone(), presence.pod.clone()))
            .collect()
    }

    /// Pairs of consumers that lived at the same time; a singleton never has one.
    pub fn consumer_overlaps(&self) -> Vec<(Presence, Presence)> {
        let all = self.consumers();
        let mut overlaps = Vec::new();
        for (i, first) in all.iter().enumerate() {
            for second in &all[i + 1..] {
                if first.until.is_none_or(|until| until > second.from) {
                    overlaps.push((first.clone(), second.clone()));
                }
            }
        }
        overlaps
    }

    /// All runs of the report.
    pub fn reports(&self) -> Vec<ReportRun> {
        self.seen().reports.clone()
    }
}
