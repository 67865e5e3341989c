//! One connection to one database, with errors in our classes.

use crate::spec::model::Database;
use crate::world::{Class, Error, Result};
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Row};

/// A session of the administrator. Ends when dropped.
pub(super) struct Session {
    pub(super) client: Client,
    at: String,
}

impl Session {
    pub(super) async fn open(database: &Database, at: String) -> Result<Session> {
        let mut config = tokio_postgres::Config::new();
        config
            .host(&database.host)
            .port(database.port)
            .dbname(&database.database)
            .user(&database.admin)
            .application_name("crossfade")
            .connect_timeout(Duration::from_secs(10));
        if let Some(password) = password(database, &at)? {
            config.password(password);
        }
        let (client, connection) = config.connect(NoTls).await.map_err(|e| {
            let mut error = error(&at, &e);
            error.message = format!("{}:{}: {}", database.host, database.port, error.message);
            error
        })?;
        tokio::spawn(async move {
            if let Err(e) = connection.await {
                tracing::debug!(error = %e, "a database connection ended");
            }
        });
        Ok(Session { client, at })
    }

    /// Runs statements without parameters, one after the other.
    pub(super) async fn run(&self, sql: &str) -> Result<()> {
        self.client
            .batch_execute(sql)
            .await
            .map_err(|e| error(&self.at, &e))
    }

    pub(super) async fn rows(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        self.client
            .query(sql, params)
            .await
            .map_err(|e| error(&self.at, &e))
    }

    pub(super) async fn one(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Row> {
        self.client
            .query_one(sql, params)
            .await
            .map_err(|e| error(&self.at, &e))
    }

    pub(super) async fn exists(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<bool> {
        Ok(!self.rows(sql, params).await?.is_empty())
    }

    pub(super) fn error(&self, e: &tokio_postgres::Error) -> Error {
        error(&self.at, e)
    }
}

/// The administrator's password, from the environment variable that the spec names.
pub(super) fn password(database: &Database, at: &str) -> Result<Option<String>> {
    match &database.admin_password_env {
        None => Ok(None),
        Some(variable) => std::env::var(variable).map(Some).map_err(|_| {
            Error::new(
                Class::Unauthorized,
                at,
                format!("the environment variable {variable} is not set"),
            )
            .remedy(format!(
                "set {variable} to the password of {}",
                database.admin
            ))
        }),
    }
}

/// Class of a failed statement.
fn error(at: &str, e: &tokio_postgres::Error) -> Error {
    let Some(db) = e.as_db_error() else {
        return Error::new(Class::Unreachable, at, super::super::kube_error::chain(e));
    };
    let class = match db.code() {
        c if c.code().starts_with("28") => Class::Unauthorized,
        c if *c == SqlState::INSUFFICIENT_PRIVILEGE => Class::Unauthorized,
        c if *c == SqlState::TOO_MANY_CONNECTIONS => Class::Throttled,
        c if *c == SqlState::CANNOT_CONNECT_NOW || *c == SqlState::OBJECT_IN_USE => Class::NotReady,
        c if *c == SqlState::LOCK_NOT_AVAILABLE
            || *c == SqlState::T_R_DEADLOCK_DETECTED
            || *c == SqlState::T_R_SERIALIZATION_FAILURE =>
        {
            Class::NotReady
        }
        c if c.code().starts_with("08") || c.code().starts_with("57P") => Class::Unreachable,
        c if *c == SqlState::DUPLICATE_OBJECT || *c == SqlState::DUPLICATE_TABLE => {
            Class::AlreadyExists
        }
        c if *c == SqlState::UNDEFINED_TABLE || *c == SqlState::INVALID_CATALOG_NAME => {
            Class::NotFound
        }
        _ => Class::Refused,
    };
    let mut message = format!("{} ({})", db.message(), db.code().code());
    if let Some(detail) = db.detail() {
        message.push_str(&format!("; {detail}"));
    }
    Error::new(class, at, message)
}

/// An identifier, quoted.
pub(super) fn ident(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A string literal, quoted whatever `standard_conforming_strings` says.
pub(super) fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// One `key=value` of a libpq connection string.
pub(super) fn conninfo(key: &str, value: &str) -> String {
    format!(
        "{key}='{}'",
        value.replace('\\', "\\\\").replace('\'', "\\'")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_cannot_break_out_of_their_quotes() {
        assert_eq!(ident("a\"b"), "\"a\"\"b\"");
        assert_eq!(literal("o'clock\\"), "E'o''clock\\\\'");
        assert_eq!(conninfo("password", "a'b\\"), "password='a\\'b\\\\'");
    }
}
