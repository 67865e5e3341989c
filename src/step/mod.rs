//! A step is one reversible change: observe, apply, settle, undo.

use crate::plan::model::{Plan, Verdict};
use crate::world::{self, World};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;

/// Why a step could not go on.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StepError {
    /// A call failed; transient classes are retried by the engine.
    #[error(transparent)]
    World(#[from] world::Error),
    /// Somebody changed what we were about to change or restore: who owns the truth is for a person to say.
    #[error("{object} was changed by somebody else: expected {expected}, found {found}")]
    Changed {
        /// Object, record, resource.
        object: String,
        /// What we expected.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The step refuses: a gate does not hold.
    #[error("{object}: {why}")]
    Refused {
        /// What about.
        object: String,
        /// Why.
        why: String,
        /// What to do next.
        remedy: String,
    },
    /// The journal could not be written: nothing more may happen.
    #[error("journal: {0}")]
    Journal(String),
}

/// Result of a step's method.
pub type StepResult<T> = std::result::Result<T, StepError>;

/// Whether the world shows the target.
#[derive(Clone, Debug, PartialEq)]
pub enum Settle {
    /// It does.
    Ready,
    /// Not yet.
    Pending {
        /// What it waits for, one line for people.
        why: String,
        /// Ask again after this time.
        poll: Duration,
    },
    /// It will not.
    Failed {
        /// Why.
        why: String,
        /// What to do.
        remedy: String,
    },
}

/// Appends to the journal on behalf of a running step (groups of a big wave, attempts).
pub trait StepLog: Send + Sync {
    /// Writes one progress record with fsync; returns only when it is durable.
    fn progress(&self, step: &str, data: Value) -> Result<(), String>;
    /// Whether a record waits for a disk: then it is better written beside the async worker. A journal in memory answers at once, and
    /// what runs on a paused clock stays in its order.
    fn waits_for_disk(&self) -> bool {
        false
    }
    /// All progress records of a step so far, oldest first (also those of an earlier process).
    fn recorded(&self, step: &str) -> Vec<Value>;
}

/// What a step sees.
#[derive(Clone)]
pub struct Cx {
    /// The world.
    pub world: World,
    /// The approved plan.
    pub plan: Arc<Plan>,
    /// Run id, as in `shop-7f3a9c`.
    pub run: String,
    /// Id of this step.
    pub step: String,
    /// Journal access.
    pub log: Arc<dyn StepLog>,
    /// What `apply` of finished steps returned, by step id.
    pub outputs: Arc<RwLock<BTreeMap<String, Value>>>,
    /// Verdicts that came after the plan (`crossfade replay --apply`): they stand before its own.
    pub extra: Arc<BTreeMap<String, Verdict>>,
}

/// One reversible change.
///
/// The engine writes `Intent{before}` before `apply`, `Applied{after}` after it, `Done` when settled. After a crash it calls `apply`
/// again with the *recorded* before: `apply` must be idempotent and compare-and-set against `before`.
#[async_trait]
pub trait Step: Send + Sync {
    /// Reads exactly what this step would touch.
    async fn observe(&self, cx: &Cx) -> StepResult<Value>;
    /// Brings it to the target.
    async fn apply(&self, cx: &Cx, before: &Value) -> StepResult<Value>;
    /// Whether the world shows the target.
    async fn settle(&self, cx: &Cx, before: &Value, after: &Value) -> StepResult<Settle>;
    /// Restores `before`. `after` is absent when a crash hit between intent and result: then look. Idempotent; `Changed` if somebody else changed it since.
    async fn undo(&self, cx: &Cx, before: &Value, after: Option<&Value>) -> StepResult<()>;
    /// Whether the undo has taken effect (resources gone, pods back).
    async fn undone(
        &self,
        _cx: &Cx,
        _before: &Value,
        _after: Option<&Value>,
    ) -> StepResult<Settle> {
        Ok(Settle::Ready)
    }
}

/// Makes a step of a kind from its parameters.
pub type Factory = fn(&Value) -> Result<Box<dyn Step>, String>;

/// Progress data of steps that write many objects.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Group {
    /// Objects of the group.
    pub objects: Vec<String>,
}

mod access;
mod cloud_ensure;
mod data;
mod dns_drain;
mod dns_ttl;
pub(crate) mod edns;
mod fence;
mod freeze;
pub(crate) mod handover;
pub(crate) mod hold;
mod nodes_ready;
mod pins;
pub(crate) mod pods;
mod probe_hosts;
pub(crate) mod replay;
mod replay_merge;
mod replay_sync;
mod soak;
pub(crate) mod terraform_apply;
mod unpark;
pub mod util;
#[cfg(test)]
mod wake_tests;

/// All step kinds. A new kind is one file and one line here.
pub fn registry() -> BTreeMap<&'static str, Factory> {
    let kinds: &[(&str, Factory)] = &[
        ("pins", pins::make),
        ("dns.ttl", dns_ttl::make),
        ("dns.ttl-wait", dns_ttl::make_wait),
        ("access.assume", access::make_assume),
        ("access.prove", access::make_prove),
        ("cloud.ensure", cloud_ensure::make),
        (crate::terraform::APPLY, terraform_apply::make),
        ("nodes.ready", nodes_ready::make),
        ("replay.wave", replay::make),
        ("replay.merge", replay_merge::make),
        ("replay.sync", replay_sync::make),
        ("unpark", unpark::make),
        ("probe.hosts", probe_hosts::make),
        ("freeze.hold", hold::make),
        ("freeze.cron", freeze::make_cron),
        ("freeze.singletons", freeze::make_singletons),
        ("fence.close", fence::make_close),
        ("fence.open", fence::make_open),
        ("data.stream", data::make_stream),
        ("data.switch", data::make_switch),
        ("edns.stop", edns::make_stop),
        ("dns.handover", handover::make),
        ("dns.drain", dns_drain::make),
        ("edns.start", edns::make_start),
        ("soak.watch", soak::make),
    ];
    kinds.iter().copied().collect()
}
