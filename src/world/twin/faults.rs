//! Faults: any call can be refused, throttled, lose its connection, lose its reply, or never come back.

use crate::world::{Class, Error};
use std::collections::BTreeMap;
use std::time::Duration;

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Refused before any effect ([`Class::Refused`]).
    Error,
    /// 429 or Throttling before any effect ([`Class::Throttled`]).
    Throttle,
    /// 410: a list's continue token is too old ([`Class::Gone`]).
    Expired,
    /// No connection: no effect ([`Class::Unreachable`]).
    NoConnection,
    /// The effect happened, the caller sees a timeout ([`Class::Unreachable`]).
    LostReply,
    /// No effect, the call never returns: SIGKILL before the request. See [`Twin::hung`](super::Twin::hung).
    HangBefore,
    /// The effect happened, the call never returns: SIGKILL before the answer.
    HangAfter,
}

impl Fault {
    /// The answer when the call must not take effect.
    pub(super) fn before(self, what: &str) -> Option<Error> {
        match self {
            Fault::Error => Some(
                Error::new(Class::Refused, what, "refused by an injected fault")
                    .remedy("this is a rehearsed failure"),
            ),
            Fault::Throttle => Some(
                Error::new(Class::Throttled, what, "Rate exceeded (injected)")
                    .retry_after(Some(Duration::from_secs(1))),
            ),
            Fault::Expired => Some(Error::new(
                Class::Gone,
                what,
                "The provided continue parameter is too old (injected)",
            )),
            Fault::NoConnection => Some(Error::new(
                Class::Unreachable,
                what,
                "connection refused (injected)",
            )),
            Fault::LostReply | Fault::HangBefore | Fault::HangAfter => None,
        }
    }
    /// The answer after the effect.
    pub(super) fn after(self, what: &str) -> Option<Error> {
        (self == Fault::LostReply)
            .then(|| Error::new(Class::Unreachable, what, "the reply was lost (injected)"))
    }
}

/// One call on the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRecord {
    /// Number, from 0.
    pub n: u64,
    /// Virtual time.
    pub at: Duration,
    /// As in `blue merge deployment/platform/external-dns`, `dns change Z1`, `cloud create role/x`.
    pub what: String,
    /// Whether it can change anything.
    pub write: bool,
}

#[derive(Clone, Default)]
pub(super) struct Faults {
    pub at: BTreeMap<u64, Fault>,
    pub matching: Vec<(String, u32, Fault)>,
    pub calls: Vec<CallRecord>,
}

impl Faults {
    pub fn count(&self) -> u64 {
        self.calls.len() as u64
    }
    pub fn clear(&mut self) {
        self.at.clear();
        self.matching.clear();
    }
    /// Counts a call and says how it fails, if it does.
    pub fn next(&mut self, at: Duration, what: &str, write: bool) -> Option<Fault> {
        let n = self.count();
        self.calls.push(CallRecord {
            n,
            at,
            what: what.into(),
            write,
        });
        if let Some(fault) = self.at.remove(&n) {
            return Some(fault);
        }
        let hit = self
            .matching
            .iter_mut()
            .find(|m| m.1 > 0 && what.contains(m.0.as_str()))?;
        hit.1 -= 1;
        Some(hit.2)
    }
}
