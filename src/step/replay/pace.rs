//! How many requests are in flight: found while running, between 1 and 64.
//!
//! A server that is bound by its CPU gives its best with just enough requests waiting that it never idles; more only make each
//! slower, and beyond some number all of them (measured on a small server: best at 16, half of that at 64). A long way to the server
//! needs more of them. So: grow while the rate grows, go back when only the latency does, halve on 429. Pure: the caller tells
//! the time, so the same answers give the same decisions.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// No server gets more than this at once from one migration.
pub const MOST: usize = 64;
/// Where a run begins that knows nothing: polite to the smallest server, and only a few windows from any other's best.
const FIRST: f64 = 8.0;
/// What one step of the climb multiplies by, and what it must bring to be followed by another.
const CLIMB: f64 = 1.5;
const CLIMB_GAIN: f64 = 1.12;
/// What one trial multiplies or divides by.
const TRIAL: f64 = 1.25;
/// A trial upwards stays when it brings this much, one downwards when it costs no more than that.
const UP_GAIN: f64 = 1.03;
const DOWN_LOSS: f64 = 0.985;
/// Pauses between trials: doubled as long as nothing better is found.
const REST: Duration = Duration::from_secs(2);
const LONGEST_REST: Duration = Duration::from_secs(16);
/// After the server refused to take more, that number is not tried again for this long.
const MEMORY: Duration = Duration::from_secs(20);

/// What a wave leaves to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// Requests in flight at its end.
    pub in_flight: usize,
    /// Whether the climb was over.
    pub settled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Growing quickly; the rate of the window before.
    Climb(Option<f64>),
    /// Measuring at the present number, until then.
    Rest(Duration),
    /// Trying another number; the rate and latency at the one before, and which that was.
    Up(Measure, f64),
    Down(Measure, f64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Measure {
    /// Answers a second.
    rate: f64,
    /// Mean seconds of one.
    latency: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    began: Duration,
    answers: usize,
    seconds: f64,
    /// There was not always enough to do: the rate says nothing about the server.
    idle: bool,
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Pace {
    most: f64,
    limit: f64,
    phase: Phase,
    window: Window,
    rest: Duration,
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
            phase: match learned {
                Some(l) if l.settled => Phase::Rest(Duration::ZERO),
                _ => Phase::Climb(None),
            },
            window: Window::default(),
            rest: REST,
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
            in_flight: match self.phase {
                // A trial is no finding yet.
                Phase::Up(_, before) | Phase::Down(_, before) => before.round() as usize,
                _ => self.limit(),
            },
            settled: !matches!(self.phase, Phase::Climb(_)),
        }
    }

    /// There is a free place and nothing to send.
    pub fn idle(&mut self) {
        self.window.idle = true;
    }

    /// The server took a request and answered after so long.
    pub fn answered(&mut self, now: Duration, took: Duration) {
        self.deaf = self.deaf.saturating_sub(1);
        self.window.answers += 1;
        self.window.seconds += took.as_secs_f64();
        // Enough to tell a rate: each place was used a few times. Trials are judged more carefully than the climb.
        let (times, least) = match self.phase {
            Phase::Climb(_) => (3.0, 24),
            _ => (6.0, 48),
        };
        let enough = ((self.limit * times) as usize).max(least);
        if self.window.answers < enough || now <= self.window.began {
            return;
        }
        let window = std::mem::replace(&mut self.window, Window::from(now));
        if window.idle {
            return;
        }
        let seen = Measure {
            rate: window.answers as f64 / (now - window.began).as_secs_f64(),
            latency: window.seconds / window.answers as f64,
        };
        self.judge(now, seen);
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
        self.rest = REST;
        self.phase = Phase::Rest(now + self.rest);
        self.window = Window::from(now);
    }

    fn judge(&mut self, now: Duration, seen: Measure) {
        match self.phase {
            Phase::Climb(before) => {
                let last = self.limit;
                let grew = before.is_none_or(|rate| seen.rate >= rate * CLIMB_GAIN);
                if grew && self.go(now, last * CLIMB) {
                    self.phase = Phase::Climb(Some(seen.rate));
                    return;
                }
                // The last step brought little: half of it is near the best.
                if !grew {
                    self.limit = (last / CLIMB.sqrt()).max(1.0);
                }
                self.phase = Phase::Rest(now);
            }
            Phase::Rest(until) if now < until => {}
            Phase::Rest(_) => {
                let here = self.limit;
                if self.go(now, up(here)) {
                    self.phase = Phase::Up(seen, here);
                } else if here > 1.0 {
                    self.limit = down(here);
                    self.phase = Phase::Down(seen, here);
                }
            }
            Phase::Up(base, before) => {
                if seen.rate >= base.rate * UP_GAIN {
                    // Better: what is more still is asked at once.
                    self.rest = REST;
                    let here = self.limit;
                    self.phase = if self.go(now, up(here)) {
                        Phase::Up(seen, here)
                    } else {
                        Phase::Rest(now + self.rest)
                    };
                } else if before > 1.0 {
                    self.limit = down(before);
                    self.phase = Phase::Down(base, before);
                } else {
                    self.back(now, before);
                }
            }
            Phase::Down(base, before) => {
                let slower_only = base.latency > seen.latency * 1.1;
                if seen.rate >= base.rate * DOWN_LOSS && slower_only {
                    // As fast with fewer: the others only waited.
                    self.rest = REST;
                    self.phase = Phase::Rest(now);
                } else {
                    self.back(now, before);
                }
            }
        }
    }

    /// Nothing better was found.
    fn back(&mut self, now: Duration, limit: f64) {
        self.limit = limit;
        self.phase = Phase::Rest(now + self.rest);
        self.rest = (self.rest * 2).min(LONGEST_REST);
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

fn up(limit: f64) -> f64 {
    (limit * TRIAL).max(limit + 1.0)
}

fn down(limit: f64) -> f64 {
    (limit / TRIAL).min(limit - 1.0).max(1.0)
}

impl Window {
    fn from(began: Duration) -> Window {
        Window {
            began,
            ..Window::default()
        }
    }
}

#[cfg(test)]
#[path = "pace_tests.rs"]
mod tests;
