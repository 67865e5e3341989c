//! PostgreSQL data sets: a fence that holds for everybody, logical replication both ways, comparison.
//!
//! **The fence** is a statement trigger on every table of the set that raises `25006 read_only_sql_transaction`. Why a trigger:
//! - It binds every session at once, open ones included, and every role: owners and superusers too, whom a REVOKE or a
//!   `default_transaction_read_only` would not stop.
//! - Making it needs a lock that conflicts with every writer, so when it stands no older write can still commit. Readers are
//!   never blocked, and idle sessions are left alone: only transactions that hold the lock too long are ended.
//! - Statement triggers fire before a row is made, so refused inserts burn no sequence values.
//! - Replication passes: an apply worker runs under `session_replication_role = replica`, where ordinary triggers are silent.
//! - The way back is exact: the triggers are dropped, and grants, owners and settings never changed.

mod compare;
mod fence;
mod pg;
mod schema;
mod stream;
#[cfg(test)]
mod tests;

use crate::object::Side;
use crate::spec::model::{DataMode, DataSet, Database};
use crate::world::data::{Data, DatabaseState, StreamState, TableState};
use crate::world::{Class, Error, Result};
use async_trait::async_trait;
use pg::Session;
use std::collections::BTreeMap;

/// The databases of the spec.
pub(super) struct LiveData {
    sets: BTreeMap<String, DataSet>,
}

/// One side of a data set.
struct Place<'a> {
    set: &'a DataSet,
    side: Side,
    database: &'a Database,
}

impl Place<'_> {
    /// How errors name it.
    fn at(&self) -> String {
        format!("data set {} ({})", self.set.name, self.side)
    }
    async fn session(&self) -> Result<Session> {
        Session::open(self.database, self.at()).await
    }
}

fn other(side: Side) -> Side {
    match side {
        Side::Blue => Side::Green,
        Side::Green => Side::Blue,
    }
}

impl LiveData {
    pub(super) fn new(sets: &[DataSet]) -> Self {
        LiveData {
            sets: sets.iter().map(|s| (s.name.clone(), s.clone())).collect(),
        }
    }

    fn place(&self, set: &str, side: Side) -> Result<Place<'_>> {
        let at = format!("data set {set} ({side})");
        let found = self
            .sets
            .get(set)
            .ok_or_else(|| Error::new(Class::Internal, &at, "the spec has no such data set"))?;
        if found.mode != DataMode::Postgres {
            return Err(Error::new(
                Class::Refused,
                at,
                "both clusters share this data set; there is nothing to move",
            ));
        }
        let database = match side {
            Side::Blue => &found.blue,
            Side::Green => &found.green,
        };
        Ok(Place {
            set: found,
            side,
            database: database.as_ref().ok_or_else(|| {
                Error::new(
                    Class::Refused,
                    &at,
                    "the spec does not say where this database is",
                )
                .remedy(format!("add data[].{side} to migration.yaml"))
            })?,
        })
    }
}

#[async_trait]
impl Data for LiveData {
    async fn state(&self, set: &str, side: Side) -> Result<DatabaseState> {
        let place = self.place(set, side)?;
        let session = place.session().await?;
        let sessions = session
            .one(
                "select count(*) from pg_stat_activity where datname = current_database() and usename = $1",
                &[&place.database.role],
            )
            .await?
            .get::<_, i64>(0);
        Ok(DatabaseState {
            writable: fence::accepts_writes(&place, &session).await?,
            sessions: u32::try_from(sessions).unwrap_or(u32::MAX),
            has_schema: schema::complete(&place, &session).await?,
        })
    }

    async fn set_writable(&self, set: &str, side: Side, writable: bool) -> Result<()> {
        let place = self.place(set, side)?;
        let mut session = place.session().await?;
        if writable {
            // From the first foreign write on, green is no longer a mere copy that a later run may empty.
            schema::forget_copy(&place, &session).await?;
            fence::open(&place, &mut session).await
        } else {
            fence::close(&place, &mut session).await
        }
    }

    async fn probe_write(&self, set: &str, side: Side) -> Result<bool> {
        let place = self.place(set, side)?;
        let session = place.session().await?;
        fence::accepts_writes(&place, &session).await
    }

    async fn start_stream(&self, set: &str, from: Side, initial: bool) -> Result<()> {
        let source = self.place(set, from)?;
        let target = self.place(set, other(from))?;
        stream::start(&source, &target, initial).await
    }

    async fn stream(&self, set: &str, from: Side) -> Result<StreamState> {
        let source = self.place(set, from)?;
        let target = self.place(set, other(from))?;
        stream::state(&source, &target).await
    }

    async fn stop_stream(&self, set: &str, from: Side) -> Result<()> {
        let source = self.place(set, from)?;
        let target = self.place(set, other(from))?;
        stream::stop(&source, &target).await
    }

    async fn copy_sequences(&self, set: &str, from: Side) -> Result<()> {
        let source = self.place(set, from)?;
        let target = self.place(set, other(from))?;
        compare::copy_sequences(&source, &target).await
    }

    async fn tables(&self, set: &str, side: Side) -> Result<Vec<TableState>> {
        let place = self.place(set, side)?;
        let session = place.session().await?;
        compare::tables(&place, &session).await
    }
}
