//! Logical replication from one side to the other: publication, subscription, slot.

use super::pg::{Session, conninfo, ident, literal, password};
use super::{Place, fence, schema};
use crate::object::Side;
use crate::world::data::StreamState;
use crate::world::{Class, Error, Result};
use std::time::Duration;
use tokio_postgres::error::SqlState;

/// Bytes of WAL that a healthy stream confirms while we watch for a moment; more is reported as it is.
const SMALL_LAG: i64 = 1 << 20;
/// How long one look waits for a small lag to be confirmed.
const LOOK: Duration = Duration::from_millis(1_000);

/// Name of publication, subscription and slot: `crossfade_<set>_<from>`, in the letters a slot allows.
pub(super) fn name(set: &str, from: Side) -> String {
    let clean: String = set
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '_'
            }
        })
        .take(40)
        .collect();
    format!("crossfade_{clean}_{from}")
}

struct Parts {
    publication: bool,
    /// oid of the subscription.
    subscription: Option<u32>,
    slot: bool,
}

async fn parts(name: &str, from: &Session, to: &Session) -> Result<Parts> {
    Ok(Parts {
        publication: from
            .exists("select from pg_publication where pubname = $1", &[&name])
            .await?,
        subscription: to
            .rows(
                "select s.oid from pg_subscription s join pg_database d on d.oid = s.subdbid \
                 where s.subname = $1 and d.datname = current_database()",
                &[&name],
            )
            .await?
            .first()
            .map(|r| r.get(0)),
        slot: from
            .exists(
                "select from pg_replication_slots where slot_name = $1",
                &[&name],
            )
            .await?,
    })
}

/// Starts the stream. Every part that is there already is kept, so a run that was cut off goes on.
pub(super) async fn start(source: &Place<'_>, target: &Place<'_>, initial: bool) -> Result<()> {
    let name = name(&source.set.name, source.side);
    let from = source.session().await?;
    let mut to = target.session().await?;
    let there = parts(&name, &from, &to).await?;
    if there.subscription.is_some() {
        return to
            .run(&format!("alter subscription {} enable", ident(&name)))
            .await;
    }
    schema::replicable(source, &from).await?;
    if initial {
        schema::prepare(source, target, &from, &mut to).await?;
        // The way back will need the same of the other server: find out now, not behind the fence.
        schema::replicable(target, &to).await?;
    }
    if !there.publication {
        let tables: Vec<String> = schema::tables(source, &from)
            .await?
            .iter()
            .filter(|t| t.stores_rows)
            .map(schema::Table::quoted)
            .collect();
        from.run(&format!(
            // Never TRUNCATE: emptying a stale copy must not empty the side it came from. One by the application shows in the comparison.
            "create publication {} for table {} with (publish = 'insert, update, delete')",
            ident(&name),
            tables.join(", ")
        ))
        .await?;
    }
    if there.slot {
        // Made by a CREATE SUBSCRIPTION that did not live to write itself down.
        drop_slots(&from, &name, None).await?;
    }
    let create = format!(
        "create subscription {} connection {} publication {} with (copy_data = {initial}, create_slot = true, slot_name = {}, enabled = true)",
        ident(&name),
        literal(&connection(source)?),
        ident(&name),
        ident(&name)
    );
    to.run(&create).await.map_err(|e| {
        // The text of the statement holds a password and is in no message.
        Error::new(e.class, target.at(), format!("the subscription was not created: {}", e.message)).remedy(format!(
            "{} must reach {} as {} with the right to replicate (pg_hba.conf, security groups); data[].{}.peerAddress says by which address",
            target.side, source.side, source.database.admin, source.side
        ))
    })
}

/// How the other server reaches this database.
fn connection(source: &Place<'_>) -> Result<String> {
    let db = source.database;
    let (host, port) = match &db.peer_address {
        Some(address) => match address.rsplit_once(':') {
            Some((h, p)) => (h.to_string(), p.to_string()),
            None => (address.clone(), db.port.to_string()),
        },
        None => (db.host.clone(), db.port.to_string()),
    };
    let mut text = [
        conninfo("host", &host),
        conninfo("port", &port),
        conninfo("dbname", &db.database),
        conninfo("user", &db.admin),
        // Without it DROP SUBSCRIPTION waits for ever for a server that is gone.
        conninfo("connect_timeout", "10"),
    ]
    .join(" ");
    if let Some(password) = password(db, &source.at())? {
        text.push(' ');
        text.push_str(&conninfo("password", &password));
    }
    Ok(text)
}

/// How far it is. `lag_bytes` is 0 once everything that was written *before this call* has been applied and flushed over there.
pub(super) async fn state(source: &Place<'_>, target: &Place<'_>) -> Result<StreamState> {
    let name = name(&source.set.name, source.side);
    let from = source.session().await?;
    let to = target.session().await?;
    let there = parts(&name, &from, &to).await?;
    let exists = there.publication && there.subscription.is_some() && there.slot;
    if !exists {
        return Ok(StreamState {
            exists,
            copied: false,
            lag_bytes: 0,
        });
    }
    let copied = to
        .one(
            "select count(*) > 0 and bool_and(r.srsubstate = 'r') from pg_subscription_rel r where r.srsubid = $1",
            &[&there.subscription],
        )
        .await?
        .get::<_, Option<bool>>(0)
        .unwrap_or(false);
    Ok(StreamState {
        exists,
        copied,
        lag_bytes: u64::try_from(lag(&from, &name).await?).unwrap_or(0),
    })
}

/// The position is taken once; the receiver confirms it a moment later even when nothing is written, so a short look is enough.
async fn lag(from: &Session, name: &str) -> Result<i64> {
    let mark: String = from
        .one("select pg_current_wal_insert_lsn()::text", &[])
        .await?
        .get(0);
    let deadline = tokio::time::Instant::now() + LOOK;
    loop {
        let behind = from
            .rows(
                "select coalesce(pg_wal_lsn_diff(cast($2::text as pg_lsn), confirmed_flush_lsn), 1)::bigint \
                 from pg_replication_slots where slot_name = $1",
                &[&name, &mark],
            )
            .await?
            .first()
            .map_or(1, |r| r.get::<_, i64>(0));
        if behind <= 0 {
            return Ok(0);
        }
        if behind > SMALL_LAG || tokio::time::Instant::now() >= deadline {
            return Ok(behind);
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

/// Ends the stream and leaves no slot behind: a forgotten slot keeps WAL until the disk is full.
pub(super) async fn stop(source: &Place<'_>, target: &Place<'_>) -> Result<()> {
    let name = name(&source.set.name, source.side);
    let from = source.session().await?;
    let to = target.session().await?;
    let there = parts(&name, &from, &to).await?;
    // Green closed and drained holds nothing that blue lacks: a later run may empty it again.
    if source.side == Side::Green
        && there.subscription.is_some()
        && fence::closed(source, &from).await?
        && lag(&from, &name).await? == 0
    {
        let mut green = source.session().await?;
        schema::remember_copy(source, &mut green).await?;
    }
    if there.subscription.is_some() {
        let id = ident(&name);
        if let Err(first) = to.run(&format!("drop subscription {id}")).await {
            // It could not reach the slot (which may be gone): part from it, the slot is dropped below.
            tracing::warn!(error = %first, "the subscription is dropped without its slot");
            to.run(&format!("alter subscription {id} disable")).await?;
            to.run(&format!("alter subscription {id} set (slot_name = none)"))
                .await?;
            to.run(&format!("drop subscription {id}")).await?;
        }
    }
    drop_slots(&from, &name, there.subscription).await?;
    if there.publication {
        from.run(&format!("drop publication if exists {}", ident(&name)))
            .await?;
    }
    Ok(())
}

/// Drops the slot, and those of table copies that a subscription of that oid had under way.
async fn drop_slots(from: &Session, name: &str, subscription: Option<u32>) -> Result<()> {
    let sync = subscription.map_or_else(|| "-".to_string(), |oid| format!("pg\\_{oid}\\_sync\\_%"));
    for attempt in 0..40 {
        let slots = from
            .rows(
                "select slot_name::text, active_pid from pg_replication_slots where database = current_database() \
                 and (slot_name = $1 or slot_name like $2)",
                &[&name, &sync],
            )
            .await?;
        if slots.is_empty() {
            return Ok(());
        }
        for slot in &slots {
            let slot_name: String = slot.get(0);
            if attempt > 20
                && let Some(pid) = slot.get::<_, Option<i32>>(1)
            {
                from.rows("select pg_terminate_backend($1)", &[&pid])
                    .await?;
            }
            match from
                .client
                .query("select pg_drop_replication_slot($1)", &[&slot_name])
                .await
            {
                Ok(_) => {}
                // Its sender has not ended yet, or somebody else just dropped it.
                Err(e)
                    if e.code() == Some(&SqlState::OBJECT_IN_USE)
                        || e.code() == Some(&SqlState::UNDEFINED_OBJECT) => {}
                Err(e) => return Err(from.error(&e)),
            }
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    Err(Error::new(
        Class::NotReady,
        "replication slots",
        format!("slot {name} is still in use"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_name_has_only_letters_that_a_slot_may_have() {
        assert_eq!(name("orders", Side::Blue), "crossfade_orders_blue");
        assert_eq!(
            name("Order-Book.EU", Side::Green),
            "crossfade_order_book_eu_green"
        );
        assert!(name(&"x".repeat(200), Side::Green).len() <= 63);
    }
}
