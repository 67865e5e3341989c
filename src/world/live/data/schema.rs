//! Tables of a data set, the copy of their definitions, and the marker that says "these rows are only a copy".

use super::pg::{Session, ident, password};
use super::{Place, fence};
use crate::world::{Class, Error, Result};
use tokio::process::Command;

/// A table of the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) oid: u32,
    pub(super) schema: String,
    pub(super) name: String,
    /// `r` holds rows; `p` is a partitioned parent whose partitions are in the list too.
    pub(super) stores_rows: bool,
}

impl Table {
    /// `schema.table`, as people write it.
    pub(super) fn plain(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }
    pub(super) fn quoted(&self) -> String {
        format!("{}.{}", ident(&self.schema), ident(&self.name))
    }
}

/// The tables that exist, sorted by name: those declared with their partitions, or all of schema `public`.
pub(super) async fn tables(place: &Place<'_>, session: &Session) -> Result<Vec<Table>> {
    let declared = &place.set.tables;
    let rows = session
        .rows(
            "with roots as (select c.oid, c.relkind from pg_class c join pg_namespace n on n.oid = c.relnamespace \
               where c.relkind in ('r', 'p') and c.relpersistence <> 't' \
                 and case when cardinality($1::text[]) = 0 then n.nspname = 'public' \
                          else n.nspname || '.' || c.relname = any($1) end), \
             every as (select oid from roots union select t.relid from roots, pg_partition_tree(roots.oid) t where roots.relkind = 'p') \
             select c.oid, n.nspname, c.relname, c.relkind = 'r' from every join pg_class c on c.oid = every.oid \
               join pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', 'p') order by 2, 3",
            &[declared],
        )
        .await?;
    Ok(rows
        .iter()
        .map(|r| Table {
            oid: r.get(0),
            schema: r.get(1),
            name: r.get(2),
            stores_rows: r.get(3),
        })
        .collect())
}

/// Whether all declared tables (or any at all) exist.
pub(super) async fn complete(place: &Place<'_>, session: &Session) -> Result<bool> {
    let there = tables(place, session).await?;
    Ok(!there.is_empty()
        && place
            .set
            .tables
            .iter()
            .all(|d| there.iter().any(|t| t.plain() == *d)))
}

/// What would break production once the tables are published, or would not arrive: found before anything is made.
pub(super) async fn replicable(place: &Place<'_>, session: &Session) -> Result<()> {
    let level: String = session
        .one("select current_setting('wal_level')", &[])
        .await?
        .get(0);
    if level != "logical" {
        return Err(Error::new(Class::Refused, place.at(), format!("wal_level is {level}, logical replication needs `logical`"))
            .remedy("set wal_level = logical (RDS: rds.logical_replication = 1) and restart the server in a quiet hour"));
    }
    let oids: Vec<u32> = tables(place, session)
        .await?
        .iter()
        .map(|t| t.oid)
        .collect();
    let names = |rows: Vec<tokio_postgres::Row>| {
        rows.iter()
            .map(|r| r.get::<_, String>(0))
            .collect::<Vec<_>>()
            .join(", ")
    };
    // UPDATE and DELETE on a published table without one would fail for the application itself.
    let without = session
        .rows(
            "select c.oid::regclass::text from pg_class c where c.oid = any($1) and c.relkind = 'r' and (c.relreplident = 'n' or \
               (c.relreplident = 'd' and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary))) order by 1",
            &[&oids],
        )
        .await?;
    if !without.is_empty() {
        return Err(Error::new(
            Class::Refused,
            place.at(),
            format!("these tables have no primary key and no replica identity: {}; updates on them would fail once they are published", names(without)),
        )
        .remedy("give each a primary key, or `ALTER TABLE ... REPLICA IDENTITY FULL`"));
    }
    let unlogged = session
        .rows("select c.oid::regclass::text from pg_class c where c.oid = any($1) and c.relpersistence = 'u' order by 1", &[&oids])
        .await?;
    if !unlogged.is_empty() {
        return Err(Error::new(
            Class::Refused,
            place.at(),
            format!("unlogged tables cannot be replicated: {}", names(unlogged)),
        )
        .remedy("list the tables that shall move under data[].tables, or make these logged"));
    }
    Ok(())
}

/// Definitions of the tables that the target lacks, through pg_dump: owners, grants, indexes, constraints, sequences.
pub(super) async fn copy(
    source: &Place<'_>,
    target: &Place<'_>,
    from: &Session,
    to: &mut Session,
) -> Result<()> {
    let wanted = tables(source, from).await?;
    if wanted.is_empty() {
        return Err(Error::new(
            Class::NotFound,
            source.at(),
            "the data set has no tables",
        ));
    }
    let there = tables(target, to).await?;
    let missing: Vec<&Table> = wanted
        .iter()
        .filter(|w| !there.iter().any(|t| t.plain() == w.plain()))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut command = Command::new("pg_dump");
    command
        .args([
            "--schema-only",
            "--no-publications",
            "--no-subscriptions",
            "--no-comments",
        ])
        .args([
            "--host",
            &source.database.host,
            "--port",
            &source.database.port.to_string(),
        ])
        .args([
            "--username",
            &source.database.admin,
            "--dbname",
            &source.database.database,
        ])
        .arg("--no-password");
    if source.set.tables.is_empty() && there.is_empty() {
        command.args(["--schema", "public"]);
    } else {
        for t in &missing {
            command.args(["--table", &t.quoted()]);
        }
    }
    // PGSERVICE, PGOPTIONS and their like must not decide which database this is.
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("PG") {
            command.env_remove(variable);
        }
    }
    if let Some(password) = password(source.database, &source.at())? {
        command.env("PGPASSWORD", password);
    }
    let output = command.stdin(std::process::Stdio::null()).output().await.map_err(|e| {
        Error::new(Class::Refused, source.at(), format!("pg_dump cannot be started: {e}"))
            .remedy("install the PostgreSQL client of at least the servers' version, or create the tables on green by hand")
    })?;
    if !output.status.success() {
        return Err(Error::new(
            Class::Refused,
            source.at(),
            format!(
                "pg_dump failed: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            ),
        ));
    }
    let sql = for_target(&String::from_utf8_lossy(&output.stdout));
    fence::in_transaction(to, &sql).await.map_err(|e| {
        Error::new(e.class, target.at(), format!("the table definitions do not fit here: {}", e.message))
            .remedy("create what the message names on this server first (roles, extensions, types), then resume")
    })?;
    // The dump empties the search path of the session it runs in.
    to.run("reset all").await
}

/// A dump without psql's own commands, without the schema that every database has, and without our own fence.
fn for_target(dump: &str) -> String {
    dump.lines()
        .filter(|l| {
            !(l.starts_with("\\restrict")
                || l.starts_with("\\unrestrict")
                || *l == "CREATE SCHEMA public;"
                || l.starts_with(&format!("CREATE TRIGGER {}", fence::TRIGGER)))
        })
        .collect::<Vec<_>>()
        .join("\n")
}

/// Remembers that this side holds nothing but a copy of the other, so that a later run may empty it.
pub(super) async fn remember_copy(place: &Place<'_>, session: &mut Session) -> Result<()> {
    let sql = format!(
        "create schema if not exists crossfade;\n\
         create table if not exists crossfade.copies (data_set text primary key, since timestamptz not null default now());\n\
         insert into crossfade.copies (data_set) values ({}) on conflict (data_set) do update set since = now();",
        fence::quoted(&place.set.name)
    );
    fence::in_transaction(session, &sql).await
}

/// Whether [`remember_copy`] still holds.
pub(super) async fn is_copy(place: &Place<'_>, session: &Session) -> Result<bool> {
    if !session
        .exists(
            "select where to_regclass('crossfade.copies') is not null",
            &[],
        )
        .await?
    {
        return Ok(false);
    }
    session
        .exists(
            "select from crossfade.copies where data_set = $1",
            &[&place.set.name],
        )
        .await
}

/// Ends [`remember_copy`].
pub(super) async fn forget_copy(place: &Place<'_>, session: &Session) -> Result<()> {
    if is_copy(place, session).await? {
        session
            .rows(
                "delete from crossfade.copies where data_set = $1",
                &[&place.set.name],
            )
            .await?;
    }
    if session
        .exists(
            "select where to_regclass('crossfade.copies') is not null",
            &[],
        )
        .await?
        && !session.exists("select from crossfade.copies", &[]).await?
    {
        session.run("drop table crossfade.copies").await?;
    }
    Ok(())
}

/// Makes the target ready for a first copy: tables there, closed, empty.
pub(super) async fn prepare(
    source: &Place<'_>,
    target: &Place<'_>,
    from: &Session,
    to: &mut Session,
) -> Result<()> {
    let new = tables(target, to).await?.is_empty();
    copy(source, target, from, to).await?;
    fence::close(target, to).await?;
    let mut filled = vec![];
    for t in tables(target, to).await? {
        if t.stores_rows
            && to
                .exists(&format!("select from {} limit 1", t.quoted()), &[])
                .await?
        {
            filled.push(t);
        }
    }
    if !filled.is_empty() {
        if !is_copy(target, to).await? {
            let names: Vec<String> = filled.iter().map(Table::plain).collect();
            return Err(Error::new(
                Class::Refused,
                target.at(),
                format!("these tables hold rows that crossfade did not copy here: {}", names.join(", ")),
            )
            .remedy("empty them if they are not needed; crossfade never deletes rows that it did not bring"));
        }
        // Behind the fence, in one transaction: the truncate trigger is away only inside it.
        let names: Vec<String> = tables(target, to)
            .await?
            .iter()
            .filter(|t| t.stores_rows)
            .map(Table::quoted)
            .collect();
        let mut sql = String::new();
        for t in tables(target, to).await? {
            sql.push_str(&format!(
                "alter table {} disable trigger crossfade_fence_truncate;\n",
                t.quoted()
            ));
        }
        sql.push_str(&format!("truncate {};\n", names.join(", ")));
        for t in tables(target, to).await? {
            sql.push_str(&format!(
                "alter table {} enable trigger crossfade_fence_truncate;\n",
                t.quoted()
            ));
        }
        fence::in_transaction(to, &sql).await?;
    }
    if new || !is_copy(target, to).await? {
        remember_copy(target, to).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_is_cleared_of_what_only_psql_knows_and_of_our_own_fence() {
        let dump = "\\restrict abc\nSET x = 1;\nCREATE SCHEMA public;\nCREATE TABLE a ();\n\
                    CREATE TRIGGER crossfade_fence BEFORE INSERT ON a;\nCREATE TRIGGER audit AFTER INSERT ON a;\n\\unrestrict abc";
        assert_eq!(
            for_target(dump),
            "SET x = 1;\nCREATE TABLE a ();\nCREATE TRIGGER audit AFTER INSERT ON a;"
        );
    }
}
