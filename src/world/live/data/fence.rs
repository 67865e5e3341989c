//! The write fence (see the module above for why it is a trigger).

use super::pg::{Session, ident, literal};
use super::{Place, schema};
use crate::world::{Class, Error, Result};
use std::time::Duration;
use tokio_postgres::error::SqlState;

/// Name of both triggers on a table, and of nothing else.
pub(super) const TRIGGER: &str = "crossfade_fence";
const TRUNCATE_TRIGGER: &str = "crossfade_fence_truncate";
/// How long a writer may hold us up before its transaction is ended.
const WAIT_MS: u32 = 1_000;
/// Attempts before the fence is given up.
const ATTEMPTS: u32 = 15;

const FUNCTION: &str = "
create schema if not exists crossfade;
create or replace function crossfade.fence() returns trigger language plpgsql as $fence$
begin
  raise exception using errcode = '25006',
    message = format('writes to %I.%I are closed while this database moves', TG_TABLE_SCHEMA, TG_TABLE_NAME),
    hint = 'crossfade closed them; they open again here or on the other side';
end
$fence$;";

/// Closes writes. When this returns, no older write can commit any more and every new one fails.
pub(super) async fn close(place: &Place<'_>, session: &mut Session) -> Result<()> {
    let tables = schema::tables(place, session).await?;
    if tables.is_empty() {
        return Err(Error::new(
            Class::NotFound,
            place.at(),
            "there are no tables to close",
        ));
    }
    let mut sql = format!("set local lock_timeout = {WAIT_MS};\n{FUNCTION}\n");
    for t in &tables {
        let table = t.quoted();
        sql.push_str(&format!(
            "create or replace trigger {TRIGGER} before insert or update or delete on {table} for each statement execute function crossfade.fence();\n\
             create or replace trigger {TRUNCATE_TRIGGER} before truncate on {table} for each statement execute function crossfade.fence();\n"
        ));
    }
    if closed(place, session).await? {
        return Ok(());
    }
    for attempt in 0..ATTEMPTS {
        match in_transaction(session, &sql).await {
            Ok(()) => return Ok(()),
            // A transaction of the application holds the lock: end it, as a fence must.
            Err(e) if e.class == Class::NotReady => {
                let ended = end_writers(place, session, &tables).await?;
                tracing::info!(
                    attempt,
                    ended,
                    at = place.at(),
                    "writers held up the fence and were ended"
                );
            }
            Err(e) => return Err(e),
        }
    }
    Err(Error::new(
        Class::NotReady,
        place.at(),
        format!("the fence did not get its locks in {ATTEMPTS} attempts"),
    )
    .remedy("look in pg_locks who holds locks on the tables (a long maintenance job?), end it, then resume"))
}

/// Opens writes: the triggers go, and with the last one the function and its schema.
pub(super) async fn open(place: &Place<'_>, session: &mut Session) -> Result<()> {
    let tables = schema::tables(place, session).await?;
    let mut sql = format!("set local lock_timeout = {WAIT_MS};\n");
    for t in &tables {
        let table = t.quoted();
        sql.push_str(&format!(
            "drop trigger if exists {TRIGGER} on {table};\ndrop trigger if exists {TRUNCATE_TRIGGER} on {table};\n"
        ));
    }
    let mut attempt = 0;
    loop {
        match in_transaction(session, &sql).await {
            Ok(()) => break,
            // Dropping waits for readers. They are never ended; between attempts others get through.
            Err(e) if e.class == Class::NotReady && attempt < ATTEMPTS => {
                attempt += 1;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            Err(e) => return Err(e),
        }
    }
    // Another data set in the same database may still need them: then they stay.
    for leftover in [
        "drop function if exists crossfade.fence()",
        "drop schema if exists crossfade restrict",
    ] {
        if let Err(e) = session.client.batch_execute(leftover).await
            && e.code() != Some(&SqlState::DEPENDENT_OBJECTS_STILL_EXIST)
        {
            return Err(session.error(&e));
        }
    }
    Ok(())
}

/// Whether every table carries both triggers, enabled.
pub(super) async fn closed(place: &Place<'_>, session: &Session) -> Result<bool> {
    let tables = schema::tables(place, session).await?;
    if tables.is_empty() {
        return Ok(false);
    }
    let mut fenced = vec![];
    for row in session
        .rows(
            "select t.tgrelid from pg_trigger t where t.tgname in ($1, $2) and t.tgenabled in ('O', 'A') \
             group by t.tgrelid having count(*) = 2",
            &[&TRIGGER, &TRUNCATE_TRIGGER],
        )
        .await?
    {
        fenced.push(row.get::<_, u32>(0));
    }
    Ok(tables.iter().all(|t| fenced.contains(&t.oid)))
}

/// Really tries: as the application's role, a statement that inserts no row into each table, in a transaction that is rolled back.
/// Statement triggers and permissions are checked all the same. `true` when any table lets it through.
pub(super) async fn accepts_writes(place: &Place<'_>, session: &Session) -> Result<bool> {
    for t in schema::tables(place, session).await? {
        // Becoming the role is a statement of its own: that *we* may not do it proves nothing about the fence.
        let become_role = format!(
            "begin; set local lock_timeout = {WAIT_MS}; set local role {}",
            ident(&place.database.role)
        );
        if let Err(e) = session.client.batch_execute(&become_role).await {
            session.run("rollback").await?;
            return Err(cannot_become(place, session, &e));
        }
        let attempt = format!("insert into {} select where false", t.quoted());
        let outcome = session.client.batch_execute(&attempt).await;
        session.run("rollback").await?;
        match outcome {
            Ok(()) => return Ok(true),
            Err(e)
                if e.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION)
                    || e.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {}
            Err(e) => return Err(session.error(&e)),
        }
    }
    Ok(false)
}

fn cannot_become(place: &Place<'_>, session: &Session, e: &tokio_postgres::Error) -> Error {
    let (role, admin) = (&place.database.role, &place.database.admin);
    match e.code() {
        Some(c) if *c == SqlState::UNDEFINED_OBJECT || *c == SqlState::INVALID_PARAMETER_VALUE => {
            Error::new(
                Class::Refused,
                place.at(),
                format!("the application's role {role} does not exist on this server"),
            )
            .remedy(format!(
                "create role {role} there, with the password that the application uses"
            ))
        }
        Some(c) if *c == SqlState::INSUFFICIENT_PRIVILEGE => session.error(e).remedy(format!(
            "GRANT {role} TO {admin}, so that a write of the application can be tried"
        )),
        _ => session.error(e),
    }
}

/// Ends transactions (other than ours and replication's) that hold write locks on the tables.
async fn end_writers(
    place: &Place<'_>,
    session: &Session,
    tables: &[schema::Table],
) -> Result<usize> {
    let oids: Vec<u32> = tables.iter().map(|t| t.oid).collect();
    let ended = session
        .rows(
            "select pg_terminate_backend(a.pid) from pg_stat_activity a \
             where a.datname = current_database() and a.pid <> pg_backend_pid() and a.backend_type = 'client backend' \
               and exists (select from pg_locks l where l.pid = a.pid and l.granted and l.relation = any($1) \
                           and l.mode in ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'))",
            &[&oids],
        )
        .await
        .map_err(|e| Error { at: place.at(), ..e })?;
    Ok(ended.len())
}

/// All or nothing.
pub(super) async fn in_transaction(session: &mut Session, sql: &str) -> Result<()> {
    let outcome = session.run(&format!("begin;\n{sql}\ncommit;")).await;
    if outcome.is_err() {
        // The block is aborted; leave it so that the session can be used again.
        let _ = session.run("rollback").await;
    }
    outcome
}

/// What a comment or a marker of ours says, quoted for SQL.
pub(super) fn quoted(text: &str) -> String {
    literal(text)
}
