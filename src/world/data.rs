//! Databases of the declared data sets (mode `postgres`): fence, copy, compare.

use super::Result;
use crate::object::Side;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// A table as the comparison sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TableState {
    /// `schema.table`.
    pub name: String,
    /// Exact row count.
    pub rows: u64,
    /// Order-independent checksum over all rows.
    pub checksum: String,
}

/// A database of one side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseState {
    /// Whether the application role may write.
    pub writable: bool,
    /// Sessions of the application role.
    pub sessions: u32,
    /// Whether the declared tables exist here.
    pub has_schema: bool,
}

/// How far a replication stream is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamState {
    /// Publication, subscription and slot exist.
    pub exists: bool,
    /// The initial copy of all tables is done.
    pub copied: bool,
    /// Bytes of WAL not yet applied on the other side.
    pub lag_bytes: u64,
}

/// Databases. `set` names a data set of the spec. Every call is idempotent.
#[async_trait]
pub trait Data: Send + Sync {
    /// Fence and sessions of one side.
    async fn state(&self, set: &str, side: Side) -> Result<DatabaseState>;
    /// Opens or closes writes for the application role on one side. Closing ends its open transactions.
    async fn set_writable(&self, set: &str, side: Side, writable: bool) -> Result<()>;
    /// Tries a write as the application role in a transaction that is rolled back: `true` when it was accepted.
    async fn probe_write(&self, set: &str, side: Side) -> Result<bool>;
    /// Prepares the other side (schema without data, emptied if an earlier run of ours filled it) and starts the stream from `from`.
    /// `initial`: copy existing rows first. Without it the stream starts at the present position.
    async fn start_stream(&self, set: &str, from: Side, initial: bool) -> Result<()>;
    /// How far the stream from `from` is.
    async fn stream(&self, set: &str, from: Side) -> Result<StreamState>;
    /// Ends the stream from `from`: subscription, slot and publication are gone afterwards.
    async fn stop_stream(&self, set: &str, from: Side) -> Result<()>;
    /// Sets every sequence of the other side to at least the value on `from`.
    async fn copy_sequences(&self, set: &str, from: Side) -> Result<()>;
    /// Row counts and checksums of all tables of the set.
    async fn tables(&self, set: &str, side: Side) -> Result<Vec<TableState>>;
}
