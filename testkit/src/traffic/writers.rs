//! Writers: they post orders all the time and remember what was acknowledged.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode, header};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::send;
use crate::apps::SERVED_BY;
use crate::apps::http::{Pool, pool, told};
use crate::dns::Resolver;

/// Who writes, through what, and how often.
#[derive(Clone, Debug)]
pub struct WritersConfig {
    /// The orders service, e.g. `orders.shop.test`.
    pub host: String,
    /// How many write at the same time.
    pub writers: usize,
    /// Through which resolver.
    pub resolver: Resolver,
    /// [`crate::net::BenchNet::gateway`].
    pub gateway: SocketAddr,
    /// The pause between two orders of one writer.
    pub pause: Duration,
}

/// An order that the service acknowledged: it must be in the database for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The writer.
    pub client: String,
    /// Its running number, unique per writer.
    pub seq: i64,
    /// The row's id.
    pub id: i64,
    /// Which side's service took it.
    pub side: String,
    /// When the answer came.
    pub at: Timestamp,
}

/// What the writers saw.
#[derive(Clone, Debug, Default)]
pub struct WriteReport {
    /// Acknowledged orders.
    pub acked: Vec<Ack>,
    /// 503 with Retry-After: the service said that writing is closed for now; the writer tries the same order again.
    pub closed: Vec<Timestamp>,
    /// Everything else that went wrong. Whether the order was taken is unknown, so its number is not used again.
    pub errors: Vec<(Timestamp, String)>,
}

impl WriteReport {
    /// The acknowledged orders that are not among `rows` (client and seq of the database): lost data.
    pub fn missing_from(&self, rows: impl IntoIterator<Item = (String, i64)>) -> Vec<Ack> {
        let rows: HashSet<(String, i64)> = rows.into_iter().collect();
        let lost = self
            .acked
            .iter()
            .filter(|ack| !rows.contains(&(ack.client.clone(), ack.seq)));
        lost.cloned().collect()
    }

    /// The longest time without an acknowledged order: the write-closed window as a user saw it.
    pub fn longest_pause(&self) -> Duration {
        let mut times: Vec<Timestamp> = self.acked.iter().map(|ack| ack.at).collect();
        times.sort();
        let gaps = times.windows(2).map(|pair| pair[1].duration_since(pair[0]));
        gaps.max()
            .and_then(|gap| Duration::try_from(gap).ok())
            .unwrap_or_default()
    }

    /// The side that took the last acknowledged order.
    pub fn last_side(&self) -> Option<&str> {
        self.acked
            .iter()
            .max_by_key(|ack| ack.at)
            .map(|ack| ack.side.as_str())
    }
}

/// Running writers. Dropping them ends them at once; [`Writers::stop`] waits for the orders under way.
#[derive(Debug)]
pub struct Writers {
    report: Arc<Mutex<WriteReport>>,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Writers {
    /// Starts writing at once.
    pub fn start(config: WritersConfig) -> Self {
        let report = Arc::default();
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let pool = pool();
        // A second set of writers on the same database must not repeat the first one's numbers.
        let run = Timestamp::now().as_millisecond();
        for number in 0..config.writers {
            let writer = Writer {
                client: format!("writer-{run}-{number}"),
                config: config.clone(),
                pool: pool.clone(),
                report: Arc::clone(&report),
            };
            tasks.spawn(writer.run(stopped.clone()));
        }
        Writers {
            report,
            stop,
            tasks,
        }
    }

    /// What was seen so far.
    pub fn report(&self) -> WriteReport {
        self.report
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Ends after the orders under way.
    pub async fn stop(mut self) -> WriteReport {
        let _ = self.stop.send(true);
        while self.tasks.join_next().await.is_some() {}
        self.report()
    }
}

struct Writer {
    client: String,
    config: WritersConfig,
    pool: Pool,
    report: Arc<Mutex<WriteReport>>,
}

enum Written {
    Acked { id: i64, side: String },
    Closed,
    Failed(String),
}

impl Writer {
    async fn run(self, mut stopped: watch::Receiver<bool>) {
        let mut seq = 1;
        loop {
            let written = self.write(seq).await;
            {
                let at = Timestamp::now();
                let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
                match written {
                    Written::Acked { id, side } => {
                        report.acked.push(Ack {
                            client: self.client.clone(),
                            seq,
                            id,
                            side,
                            at,
                        });
                        seq += 1;
                    }
                    Written::Closed => report.closed.push(at),
                    Written::Failed(why) => {
                        report.errors.push((at, why));
                        seq += 1;
                    }
                }
            }
            tokio::select! {
                () = told(&mut stopped) => return,
                () = tokio::time::sleep(self.config.pause) => {}
            }
        }
    }

    async fn write(&self, seq: i64) -> Written {
        let host = &self.config.host;
        let address = match self.config.resolver.lookup(host).await {
            Ok(addresses) => addresses[0].to_string(),
            Err(error) => return Written::Failed(error),
        };
        let body = Bytes::from(json!({"client": self.client, "seq": seq}).to_string());
        let sent = send(
            &self.pool,
            self.config.gateway,
            Method::POST,
            &address,
            "/orders",
            host,
            body,
        )
        .await;
        let response = match sent {
            Ok(response) => response,
            Err(error) => return Written::Failed(error),
        };
        let text = String::from_utf8_lossy(response.body()).trim().to_owned();
        let header = |name: header::HeaderName| {
            response
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok())
        };
        match response.status() {
            StatusCode::CREATED => {
                let id = serde_json::from_str::<Value>(&text)
                    .ok()
                    .and_then(|body| body["id"].as_i64());
                match (id, header(SERVED_BY)) {
                    (Some(id), Some(side)) => Written::Acked {
                        id,
                        side: side.to_owned(),
                    },
                    _ => Written::Failed(format!("201 without id or side: {text}")),
                }
            }
            StatusCode::SERVICE_UNAVAILABLE if header(header::RETRY_AFTER).is_some() => {
                Written::Closed
            }
            status => Written::Failed(format!("{status} from {address}: {text}")),
        }
    }
}
