//! Whether both sides hold the same rows, and whether the next number will be a new one.

use super::pg::{Session, ident, literal};
use super::{Place, schema};
use crate::world::Result;
use crate::world::data::TableState;

/// Text forms that do not depend on a server's or a role's settings.
const SETTINGS: &str = "set timezone = 'UTC'; set datestyle = 'ISO, YMD'; set intervalstyle = 'postgres'; \
                        set extra_float_digits = 1; set bytea_output = 'hex'; set xmlbinary = 'base64';";

/// Counts and checksums of all tables at one moment. The checksum is a sum over rows, so no sorting is needed.
pub(super) async fn tables(place: &Place<'_>, session: &Session) -> Result<Vec<TableState>> {
    session.run(SETTINGS).await?;
    session
        .run("begin isolation level repeatable read read only")
        .await?;
    let mut out = vec![];
    for t in schema::tables(place, session)
        .await?
        .into_iter()
        .filter(|t| t.stores_rows)
    {
        let row = session
            .one(
                &format!(
                    "select count(*), coalesce(sum(('x' || substr(md5(crossfade_row::text), 1, 16))::bit(64)::bigint::numeric), 0)::text \
                     from only {} as crossfade_row",
                    t.quoted()
                ),
                &[],
            )
            .await?;
        out.push(TableState {
            name: t.plain(),
            rows: u64::try_from(row.get::<_, i64>(0)).unwrap_or(0),
            checksum: row.get(1),
        });
    }
    session.run("commit").await?;
    Ok(out)
}

struct Sequence {
    schema: String,
    name: String,
    last: i64,
    called: bool,
    increment: i64,
}

async fn sequences(place: &Place<'_>, session: &Session) -> Result<Vec<Sequence>> {
    let mut schemas: Vec<String> = schema::tables(place, session)
        .await?
        .into_iter()
        .map(|t| t.schema)
        .collect();
    schemas.dedup();
    let mut out = vec![];
    for row in session
        .rows(
            "select n.nspname, c.relname, s.seqincrement from pg_sequence s join pg_class c on c.oid = s.seqrelid \
             join pg_namespace n on n.oid = c.relnamespace where n.nspname = any($1) and c.relpersistence <> 't' order by 1, 2",
            &[&schemas],
        )
        .await?
    {
        let (schema, name): (String, String) = (row.get(0), row.get(1));
        let state = session
            .one(&format!("select last_value, is_called from {}.{}", ident(&schema), ident(&name)), &[])
            .await?;
        out.push(Sequence {
            schema,
            name,
            last: state.get(0),
            called: state.get(1),
            increment: row.get(2),
        });
    }
    Ok(out)
}

/// Replication carries rows, not sequences. Never sets one back: the other side may have handed out more.
pub(super) async fn copy_sequences(source: &Place<'_>, target: &Place<'_>) -> Result<()> {
    let from = source.session().await?;
    let to = target.session().await?;
    let there = sequences(target, &to).await?;
    for s in sequences(source, &from).await? {
        let Some(t) = there
            .iter()
            .find(|t| t.schema == s.schema && t.name == s.name)
        else {
            continue;
        };
        let ahead = if s.increment < 0 {
            s.last < t.last
        } else {
            s.last > t.last
        };
        if ahead || (s.last == t.last && s.called && !t.called) {
            to.run(&format!(
                "select setval({}, {}, {})",
                literal(&format!("{}.{}", ident(&s.schema), ident(&s.name))),
                s.last,
                s.called
            ))
            .await?;
        }
    }
    Ok(())
}
