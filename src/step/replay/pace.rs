//! How many requests are in flight: found while running, between 1 and 64.
//!
//! A server that is bound by its CPU gives its best with just enough requests waiting that it never idles; more only make each
//! slower, and beyond some number all of them (measured on a small server: best at about 16, half of that at 64). A long way to the
//! server needs more of them. Both are one rule: of those in flight, so many wait (in flight x (1 - shortest / present latency), as TCP
//! Vegas reckons it); grow while fewer than a handful do, shrink when it is many, halve on 429. The rate itself is no measure: on a
//! shared machine it swings more than any step changes it. Pure: the caller tells the time, so the same answers give the same decisions.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// No server gets more than this at once from one migration.
pub const MOST: usize = 64;
/// Where a run begins that knows nothing: polite to the smallest server, and only a few windows from any other's best.
const FIRST: f64 = 8.0;
/// What one step of the climb multiplies by, and one step later adds or takes.
const CLIMB: f64 = 1.5;
const STEP: f64 = 0.1;
/// Requests that may wait at the server: below the first more are sent, above the second fewer.
const FEW: f64 = 5.0;
const MANY: f64 = 9.0;
/// After the server refused to take more, that number is not tried again for this long.
const MEMORY: Duration = Duration::from_secs(20);

/// What a wave leaves to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// Requests in flight at its end.
    pub in_flight: usize,
    /// Whether the climb was over.
    pub settled: bool,
    /// Seconds of an answer when nobody waits: a wave that began with all places taken could not find it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quickest: Option<f64>,
}

#[derive(Clone, Debug, Default)]
struct Window {
    /// Seconds of each answer.
    took: Vec<f64>,
    /// There was not always enough to do: how long answers took says nothing about that many.
    idle: bool,
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Pace {
    most: f64,
    limit: f64,
    /// Growing quickly, until the first requests wait.
    climbing: bool,
    window: Window,
    /// Seconds of an answer when nobody waits: the shortest median of a window.
    base: Option<f64>,
    /// Not above this until then.
    ceiling: Option<(f64, Duration)>,
    /// Answers until another refusal may shrink the number again: those under way were sent before it was known.
    deaf: usize,
}

impl Pace {
    /// A new one; `most` is what the user allows at most, `learned` what a former wave found.
    pub fn new(most: Option<u32>, learned: Option<Learned>) -> Pace {
        let most = most.map_or(MOST, |m| (m as usize).clamp(1, MOST)) as f64;
        let start = learned.map_or(FIRST, |l| l.in_flight as f64);
        Pace {
            most,
            limit: start.clamp(1.0, most),
            climbing: !learned.is_some_and(|l| l.settled),
            window: Window::default(),
            base: learned.and_then(|l| l.quickest),
            ceiling: None,
            deaf: 0,
        }
    }

    /// Requests that may be in flight now.
    pub fn limit(&self) -> usize {
        (self.limit.round() as usize).clamp(1, self.most as usize)
    }

    /// What the next wave can begin with.
    pub fn learned(&self) -> Learned {
        Learned {
            in_flight: self.limit(),
            settled: !self.climbing,
            quickest: self.base,
        }
    }

    /// There is a free place and nothing to send.
    pub fn idle(&mut self) {
        self.window.idle = true;
    }

    /// The server took a request and answered after so long.
    pub fn answered(&mut self, now: Duration, took: Duration) {
        self.deaf = self.deaf.saturating_sub(1);
        self.window.took.push(took.as_secs_f64());
        // Each place was used a few times: the first of them were sent when the number was another.
        let enough = (self.limit() * 3).max(24);
        if self.window.took.len() < enough {
            return;
        }
        let window = std::mem::take(&mut self.window);
        if !window.idle {
            self.judge(now, window.took);
        }
    }

    /// 429: it is too much for the server.
    pub fn throttled(&mut self, now: Duration) {
        self.shrink(now, 0.5);
    }

    /// No answer: a lost connection, a timeout, 5xx. May be the load, may be the way.
    pub fn lost(&mut self, now: Duration) {
        self.shrink(now, 0.7);
    }

    fn shrink(&mut self, now: Duration, factor: f64) {
        if self.deaf > 0 {
            return;
        }
        self.deaf = self.limit();
        self.ceiling = Some(((self.limit * 0.9).max(1.0), now + MEMORY));
        self.limit = (self.limit * factor).max(1.0);
        self.climbing = false;
        self.window = Window::default();
    }

    fn judge(&mut self, now: Duration, mut took: Vec<f64>) {
        // The first of a window were sent at the number before.
        took.drain(..took.len() / 3);
        let mean = took.iter().sum::<f64>() / took.len() as f64;
        took.sort_by(f64::total_cmp);
        let median = took[took.len() / 2];
        let base = self.base.map_or(median, |b| b.min(median));
        self.base = Some(base);
        let waiting = self.limit * (1.0 - base / mean.max(base));
        if waiting < FEW {
            let wanted = match self.climbing {
                true => self.limit * CLIMB,
                false => self.limit + (self.limit * STEP).max(1.0),
            };
            if !self.go(now, wanted) {
                self.climbing = false;
            }
        } else {
            self.climbing = false;
            if waiting > MANY {
                self.limit = (self.limit - (self.limit * STEP).max(1.0)).max(1.0);
            }
        }
    }

    /// Sets the number when it may be that; `false` when it is as high as it may be.
    fn go(&mut self, now: Duration, wanted: f64) -> bool {
        let ceiling = match self.ceiling {
            Some((limit, until)) if now < until => limit,
            _ => self.most,
        };
        let wanted = wanted.min(ceiling).min(self.most);
        let more = wanted.round() > self.limit.round();
        if more {
            self.limit = wanted;
        }
        more
    }
}

#[cfg(test)]
#[path = "pace_tests.rs"]
mod tests;
