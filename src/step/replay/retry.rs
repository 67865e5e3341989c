//! What is repeated on the spot, how often, after which pause (replay.md 5). What lasts longer is repeated by the engine.

use super::pace::{Learned, Pace};
use crate::step::{StepError, StepResult};
use crate::world::{self, Class, Error};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Tries of one request.
const TRIES: u32 = 5;
/// How long something that is only not ready yet (a namespace that is still being deleted, a backend without a pod) is waited for. The
/// engine comes back for some minutes, and can be stopped between.
const PATIENCE: Duration = Duration::from_secs(30);

/// A read that is repeated on the spot when the connection broke or the server asked to wait: a look of forty lists must not begin again
/// because one of them was cut.
pub async fn read<T, F>(name: &str, mut call: impl FnMut() -> F) -> world::Result<T>
where
    F: Future<Output = world::Result<T>>,
{
    let mut tries = 0;
    loop {
        match call().await {
            Err(e)
                if matches!(e.class, Class::Unreachable | Class::Throttled)
                    && tries + 1 < TRIES =>
            {
                tries += 1;
                tokio::time::sleep(pause(&e, name, tries)).await;
            }
            answer => return answer,
        }
    }
}

/// The pace of one wave, shared by the requests under way.
pub struct Shared {
    pace: Mutex<Pace>,
    began: Instant,
}

impl Shared {
    pub fn new(most: Option<u32>, learned: Option<Learned>) -> Shared {
        Shared {
            pace: Mutex::new(Pace::new(most, learned)),
            began: Instant::now(),
        }
    }
    fn with<R>(&self, act: impl FnOnce(&mut Pace, Duration) -> R) -> R {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut pace, self.began.elapsed())
    }
    pub fn limit(&self) -> usize {
        self.with(|p, _| p.limit())
    }
    pub fn idle(&self) {
        self.with(|p, _| p.idle());
    }
    pub fn learned(&self) -> Learned {
        self.with(|p, _| p.learned())
    }

    /// Repeats a call while that can help, telling the pace how the server takes it.
    pub async fn patiently<T, F>(&self, name: &str, mut call: impl FnMut() -> F) -> StepResult<T>
    where
        F: Future<Output = StepResult<T>>,
    {
        let began = Instant::now();
        let mut tries = 0;
        loop {
            let sent = Instant::now();
            let error = match call().await {
                Ok(answer) => {
                    self.with(|p, now| p.answered(now, sent.elapsed()));
                    return Ok(answer);
                }
                Err(StepError::World(e)) => e,
                Err(e) => return Err(e),
            };
            tries += 1;
            let again = match error.class {
                Class::Throttled => {
                    self.with(|p, now| p.throttled(now));
                    tries < TRIES
                }
                Class::Unreachable => {
                    self.with(|p, now| p.lost(now));
                    tries < TRIES
                }
                // Somebody's quota or status moved meanwhile.
                Class::Conflict => tries < TRIES,
                Class::NotReady => began.elapsed() < PATIENCE,
                _ => false,
            };
            if !again {
                return Err(error.into());
            }
            tokio::time::sleep(pause(&error, name, tries)).await;
        }
    }
}

/// Doubling from a quarter of a second to eight, between half and all of it by a hash of the name (so that those who failed together do
/// not come back together), and never sooner than the server asked for.
fn pause(error: &world::Error, name: &str, tries: u32) -> Duration {
    let full = Duration::from_millis(250) * (1 << (tries - 1).min(5));
    let hash = name
        .bytes()
        .fold(tries, |h, b| h.wrapping_mul(31).wrapping_add(u32::from(b)));
    let own = full.mul_f64(0.5 + f64::from(hash % 512) / 1024.0);
    error.retry_after.map_or(own, |asked| asked.max(own))
}

/// An error that passes, about a thing that is on its way out.
pub fn going(name: &str, what: &str) -> Error {
    Error::new(
        Class::NotReady,
        name,
        format!("{what} is still being deleted on green"),
    )
    .remedy("look what holds it (finalizers), or wait; nothing is written into it before it is gone (replay.md 5)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_05_a_server_that_says_when_to_come_back_is_not_asked_before() {
        let e = Error::new(Class::Throttled, "x", "slow down");
        assert!(pause(&e, "secret/a/b", 1) <= Duration::from_millis(250));
        let asked = Duration::from_secs(7);
        assert_eq!(
            pause(&e.clone().retry_after(Some(asked)), "secret/a/b", 1),
            asked
        );
        let apart: std::collections::BTreeSet<Duration> = (0..20)
            .map(|n| pause(&e, &format!("secret/a/{n}"), 2))
            .collect();
        assert!(apart.len() > 10, "{apart:?}");
    }
}
