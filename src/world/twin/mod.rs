//! The twin: an in-process, deterministic simulation of everything in [`World`](super::World).
//!
//! It is a discrete-event simulation without tasks of its own. Every call of a world trait first brings the simulation to
//! tokio's present moment (all events due by then, in order), then acts. So it costs nothing while the engine sleeps, behaves
//! the same on every run, and outlives the engine: dropping the engine's futures leaves the world as it was, which is what a
//! SIGKILL does to the real one. Under tokio's paused clock days pass in milliseconds.

mod admit;
mod apply;
mod cloud;
mod controllers;
mod cron;
mod data;
mod dns;
mod edns;
mod faults;
mod invariants;
mod keepers;
mod kinds;
mod kube;
mod lb;
mod lists;
mod managed;
mod pods;
mod probe;
mod state;
mod store;
mod tenders;
mod traffic;

#[cfg(test)]
mod tests;

pub use faults::{CallRecord, Fault};
pub use invariants::BlueWrite;
pub use traffic::Traffic;

use super::dns::Change;
use super::{Clock, Error, Result, World};
use crate::object::{ObjectId, Side};
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use serde_json::Value;
use state::State;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Field manager of what other people do.
pub const SOMEBODY: &str = "kubectl-edit";

/// How the twin behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of everything that is made up (uids, issuer ids).
    pub seed: u64,
    /// Clients and writers on or off.
    pub traffic: bool,
    /// Factor on the durations of slow things (cluster creation, DNS propagation, pods starting). 1.0 is realistic.
    pub scale: f64,
    /// Time that one call takes.
    pub latency: Duration,
    /// Cache time of the resolver that ignores shorter TTLs.
    pub min_ttl: Duration,
    /// Lets controllers and ExternalDNS run this long before anything is watched: for companies written by hand, without status
    /// and without the records that their ExternalDNS would have made.
    pub warm_up: Duration,
    /// Absolute time at which the simulation starts.
    pub epoch: jiff::Timestamp,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            seed: 1,
            traffic: true,
            scale: 1.0,
            latency: Duration::from_millis(50),
            min_ttl: Duration::from_secs(60),
            warm_up: Duration::ZERO,
            // Fixed, so that two rehearsals of one plan write the same journal.
            epoch: jiff::Timestamp::constant(1_796_000_000, 0),
        }
    }
}

/// A simulated company. Clones share one state.
#[derive(Clone)]
pub struct Twin {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    latency: Duration,
    hung: tokio::sync::Notify,
}

impl Twin {
    /// A company as the snapshot saw it, with green as the spec wants it.
    pub fn new(snapshot: &Snapshot, spec: &Spec, options: Options) -> Twin {
        let latency = options.latency;
        Twin {
            inner: Arc::new(Inner {
                state: Mutex::new(State::new(snapshot, spec, options)),
                latency,
                hung: tokio::sync::Notify::new(),
            }),
        }
    }

    /// An independent copy of this world as it is now: both go on from here without knowing of each other. Cheaper than a new
    /// twin, so that a sweep can run to a point once and try many things from there.
    pub fn fork(&self) -> Twin {
        let state = self.lock().clone();
        Twin {
            inner: Arc::new(Inner {
                state: Mutex::new(state),
                latency: self.inner.latency,
                hung: tokio::sync::Notify::new(),
            }),
        }
    }

    /// The world traits over this twin.
    pub fn world(&self) -> World {
        World {
            blue: Arc::new(kube::TwinKube::new(self.clone(), Side::Blue)),
            green: Arc::new(kube::TwinKube::new(self.clone(), Side::Green)),
            dns: Arc::new(self.clone()),
            cloud: Arc::new(self.clone()),
            terraform: Arc::new(self.clone()),
            data: Arc::new(self.clone()),
            probe: Arc::new(self.clone()),
            clock: Arc::new(self.clone()),
        }
    }

    /// Brings the simulation to the present and gives access to it.
    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.inner.state.lock().unwrap_or_else(|e| e.into_inner());
        state.sync();
        state
    }

    /// One request: it takes its time, may be made to fail, acts at one instant, and its answer takes a moment more.
    async fn call<T>(
        &self,
        what: String,
        write: bool,
        act: impl FnOnce(&mut State) -> Result<T>,
    ) -> Result<T> {
        tokio::time::sleep(self.inner.latency).await;
        let (answer, fault) = {
            let mut state = self.lock();
            let now = state.now;
            let fault = state.faults.next(now, &what, write);
            let answer = match fault.and_then(|f| f.before(&what)) {
                Some(error) => Err(error),
                None if fault == Some(Fault::HangBefore) => Err(Error::new(
                    super::Class::Unreachable,
                    &what,
                    "the caller was gone before the request was sent",
                )),
                None => {
                    let answer = act(&mut state);
                    state.after_mutation();
                    answer
                }
            };
            (answer, fault)
        };
        if matches!(fault, Some(Fault::HangBefore | Fault::HangAfter)) {
            self.inner.hung.notify_one();
            std::future::pending::<()>().await;
        }
        // The caller can be dropped here: the effect stays, the answer is gone.
        tokio::task::yield_now().await;
        match fault.and_then(|f| f.after(&what)) {
            Some(error) => Err(error),
            None => answer,
        }
    }

    // ---- what happened -------------------------------------------------------------------------------------------

    /// Broken promises so far, each said once with the virtual time of its first occurrence.
    pub fn violations(&self) -> Vec<String> {
        self.lock().violations()
    }
    /// Virtual time during which some data set could be written on neither side.
    pub fn write_closed(&self) -> Duration {
        self.lock().write_closed()
    }
    /// Virtual time since the start.
    pub fn elapsed(&self) -> Duration {
        self.lock().now
    }
    /// Every write that the engine sent to blue's API server.
    pub fn blue_writes(&self) -> Vec<BlueWrite> {
        self.lock().invariants.blue_writes.clone()
    }
    /// What clients and writers saw.
    pub fn traffic(&self) -> Traffic {
        self.lock().seen()
    }
    /// What the running ExternalDNS instances did, oldest first, as `side ns/name ACTION name TYPE`.
    pub fn external_dns_log(&self) -> Vec<String> {
        self.lock().edns.log.clone()
    }

    // ---- faults --------------------------------------------------------------------------------------------------

    /// Number of calls so far; the next one has this number.
    pub fn call_count(&self) -> u64 {
        self.lock().faults.count()
    }
    /// All calls so far.
    pub fn calls(&self) -> Vec<CallRecord> {
        self.lock().faults.calls.clone()
    }
    /// Makes the call with this number fail (numbers count from 0 over all world calls).
    pub fn fail_call(&self, n: u64, fault: Fault) {
        self.lock().faults.at.insert(n, fault);
    }
    /// Makes the next `times` calls whose name contains `part` fail.
    pub fn fail_matching(&self, part: &str, times: u32, fault: Fault) {
        self.lock()
            .faults
            .matching
            .push((part.into(), times, fault));
    }
    /// Removes all planned faults.
    pub fn clear_faults(&self) {
        self.lock().faults.clear();
    }
    /// Waits until a call hit [`Fault::HangBefore`] or [`Fault::HangAfter`]: the moment to drop the engine.
    pub async fn hung(&self) {
        self.inner.hung.notified().await;
    }

    // ---- other people --------------------------------------------------------------------------------------------

    /// Somebody else merges a patch into an object; not counted as a call of ours.
    pub fn somebody_merges(&self, side: Side, id: &ObjectId, body: &Value) -> Result<()> {
        let mut state = self.lock();
        state.merge(side, id, body, SOMEBODY)?;
        state.after_mutation();
        Ok(())
    }
    /// Somebody else creates an object.
    pub fn somebody_creates(&self, side: Side, object: &Value) -> Result<()> {
        let mut state = self.lock();
        state.create(side, object, Default::default(), SOMEBODY)?;
        state.after_mutation();
        Ok(())
    }
    /// Somebody else deletes an object.
    pub fn somebody_deletes(&self, side: Side, id: &ObjectId) -> Result<()> {
        let mut state = self.lock();
        state.delete(side, id, None)?;
        state.after_mutation();
        Ok(())
    }
    /// Somebody else changes a zone.
    pub fn somebody_changes_records(&self, zone_id: &str, changes: &[Change]) -> Result<()> {
        let mut state = self.lock();
        state.change_records(zone_id, changes)?;
        state.after_mutation();
        Ok(())
    }
}

impl Clock for Twin {
    fn now(&self) -> jiff::Timestamp {
        self.lock().timestamp()
    }
}
