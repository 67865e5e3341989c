//! The orders service: it acknowledges an order only after the database has committed it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderValue, Method, Request, Response, StatusCode, header};
use bytes::Bytes;
use http_body_util::Full;
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio_postgres::{Client, NoTls};

use super::http::{HttpServer, Task, json, text};
use super::{AppContext, SERVED_BY};
use crate::net::BenchNet;

/// A database that does not answer in this time counts as unreachable.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(2);

/// The body of `POST /orders`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    client: String,
    seq: i64,
}

struct Database {
    net: BenchNet,
    /// `host:port` in the company's words, e.g. `10.20.0.5:5432`.
    address: String,
    name: String,
    user: String,
    password: String,
    client: Mutex<Option<Link>>,
}

struct Link {
    client: Arc<Client>,
    _connection: Task,
}

/// Reads `DATABASE_HOST`, `_PORT`, `_NAME`, `_USER`, `_PASSWORD` and serves. A missing one ends the program, as it would
/// end a real one; an unreachable database does not: that is a 503 until it is back.
pub(super) async fn start(
    env: &BTreeMap<String, String>,
    context: &AppContext,
) -> io::Result<HttpServer> {
    let need = |name: &str| {
        env.get(name).cloned().ok_or_else(|| {
            io::Error::other(format!("orders: environment variable {name} is not set"))
        })
    };
    let database = Arc::new(Database {
        net: context.net.clone(),
        address: format!("{}:{}", need("DATABASE_HOST")?, need("DATABASE_PORT")?),
        name: need("DATABASE_NAME")?,
        user: need("DATABASE_USER")?,
        password: need("DATABASE_PASSWORD")?,
        client: Mutex::new(None),
    });
    let side = super::served_by(&context.side)?;
    HttpServer::start(move |request| {
        let (database, side) = (database.clone(), side.clone());
        async move {
            let mut response = answer(&database, request).await;
            response.headers_mut().insert(SERVED_BY, side);
            response
        }
    })
    .await
}

async fn answer(database: &Database, request: Request<Bytes>) -> Response<Full<Bytes>> {
    match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/") => {
            json(StatusCode::OK, &serde_json::json!({"app": "orders"}))
        }
        (&Method::GET | &Method::HEAD, "/healthz") => text(StatusCode::OK, "ok\n"),
        (&Method::GET, "/orders") => match database.count().await {
            Ok(count) => json(StatusCode::OK, &serde_json::json!({"orders": count})),
            Err(why) => unavailable(&why),
        },
        (&Method::POST, "/orders") => match serde_json::from_slice::<Order>(request.body()) {
            Ok(order) => match database.insert(&order).await {
                Ok(id) => json(StatusCode::CREATED, &serde_json::json!({"id": id})),
                Err(why) => unavailable(&why),
            },
            Err(error) => text(StatusCode::BAD_REQUEST, &format!("order: {error}\n")),
        },
        _ => text(StatusCode::NOT_FOUND, "not found\n"),
    }
}

fn unavailable(why: &str) -> Response<Full<Bytes>> {
    let mut response = text(StatusCode::SERVICE_UNAVAILABLE, &format!("{why}\n"));
    response
        .headers_mut()
        .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

impl Database {
    async fn link(&self) -> Result<Arc<Client>, String> {
        let mut slot = self.client.lock().await;
        if let Some(link) = slot.as_ref()
            && !link.client.is_closed()
        {
            return Ok(link.client.clone());
        }
        *slot = None;
        let real = self
            .net
            .lookup(&self.address)
            .ok_or_else(|| format!("database {}: no route to host", self.address))?;
        let mut config = tokio_postgres::Config::new();
        config
            .host(real.ip().to_string())
            .port(real.port())
            .dbname(&self.name)
            .user(&self.user)
            .password(&self.password)
            .application_name("orders")
            .connect_timeout(DATABASE_TIMEOUT);
        let (client, connection) = config
            .connect(NoTls)
            .await
            .map_err(|error| self.why(&error))?;
        let connection = Task::spawn(async move {
            let _ = connection.await;
        });
        let client = Arc::new(client);
        *slot = Some(Link {
            client: client.clone(),
            _connection: connection,
        });
        Ok(client)
    }

    fn why(&self, error: &tokio_postgres::Error) -> String {
        match error.as_db_error() {
            Some(db) => format!(
                "database {}: {} ({})",
                self.address,
                db.message(),
                db.code().code()
            ),
            None => format!("database {}: {error}", self.address),
        }
    }

    async fn count(&self) -> Result<i64, String> {
        let client = self.link().await?;
        self.timed(client.query_one("select count(*) from orders", &[]))
            .await
    }

    /// One statement is one transaction, and the answer is complete only when the server is ready for the next query,
    /// which is after the commit.
    async fn insert(&self, order: &Order) -> Result<i64, String> {
        let client = self.link().await?;
        self.timed(client.query_one(
            "insert into orders (client, seq) values ($1, $2) returning id",
            &[&order.client, &order.seq],
        ))
        .await
    }

    async fn timed(
        &self,
        query: impl Future<Output = Result<tokio_postgres::Row, tokio_postgres::Error>>,
    ) -> Result<i64, String> {
        match tokio::time::timeout(DATABASE_TIMEOUT, query).await {
            Ok(Ok(row)) => row.try_get(0).map_err(|error| self.why(&error)),
            Ok(Err(error)) => Err(self.why(&error)),
            Err(_) => {
                // The statement may still be waiting on a lock: give up this connection, so that it cannot commit
                // later unseen by a request that believes it failed.
                *self.client.lock().await = None;
                Err(format!("database {}: no answer in 2 s", self.address))
            }
        }
    }
}
