//! Readers: one task per host and resolver.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use jiff::Timestamp;
use tokio::task::JoinSet;

use super::send;
use crate::apps::SERVED_BY;
use crate::apps::http::{Pool, pool};
use crate::dns::Resolver;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// e.g. `www.shop.test`.
    pub host: String,
    /// e.g. `/`.
    pub path: String,
}

impl Target {
    /// `GET /` of a host.
    pub fn root(host: &str) -> Self {
        Target {
            host: host.to_owned(),
            path: "/".to_owned(),
        }
    }
}

/// Who asks, through what, and how often.
#[derive(Clone, Debug)]
pub struct ClientsConfig {
    /// Every target is asked through every resolver.
    pub targets: Vec<Target>,
    /// By a label that reports use, e.g. `honest`, `stubborn`, `jvm`.
    pub resolvers: Vec<(String, Resolver)>,
    /// [`crate::net::BenchNet::gateway`].
    pub gateway: SocketAddr,
    /// The pause between two requests of one task.
    pub pause: Duration,
}

/// One request and what came of it.
#[derive(Clone, Debug)]
pub struct Sample {
    /// When it was sent.
    pub at: Timestamp,
    /// The host.
    pub host: Arc<str>,
    /// The resolver's label.
    pub resolver: Arc<str>,
    /// What came of it.
    pub outcome: Outcome,
    /// From the look-up of the name to the last byte.
    pub took: Duration,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An HTTP answer.
    Answer {
        /// The address that the name resolved to.
        address: Ipv4Addr,
        /// The status code.
        status: u16,
        /// `x-served-by`, when an app answered.
        side: Option<Arc<str>>,
    },
    /// The name had no address.
    NoAddress(String),
    /// Nobody answered.
    NoAnswer(String),
}

impl Sample {
    /// Whether the user saw an error.
    pub fn failed(&self) -> bool {
        !matches!(
            self.outcome,
            Outcome::Answer {
                status: 200..400,
                side: Some(_),
                ..
            }
        )
    }

    /// The side that answered.
    pub fn side(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Answer { side, .. } => side.as_deref(),
            _ => None,
        }
    }
}

/// Running clients. Dropping them ends them.
#[derive(Debug)]
pub struct Clients {
    samples: Arc<Mutex<Vec<Sample>>>,
    _tasks: JoinSet<()>,
}

impl Clients {
    /// Starts asking at once.
    pub fn start(config: ClientsConfig) -> Self {
        let samples = Arc::default();
        let mut tasks = JoinSet::new();
        let pool = pool();
        for target in &config.targets {
            for (label, resolver) in &config.resolvers {
                let client = Client {
                    target: target.clone(),
                    host: target.host.as_str().into(),
                    label: label.as_str().into(),
                    resolver: resolver.clone(),
                    gateway: config.gateway,
                    pool: pool.clone(),
                    samples: Arc::clone(&samples),
                };
                tasks.spawn(client.run(config.pause));
            }
        }
        Clients {
            samples,
            _tasks: tasks,
        }
    }

    /// What was seen so far.
    pub fn report(&self) -> Report {
        Report {
            samples: self
                .samples
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
        }
    }

    /// Ends the clients and gives all that was seen; a request under way is not counted.
    pub fn stop(self) -> Report {
        self.report()
    }
}

struct Client {
    target: Target,
    host: Arc<str>,
    label: Arc<str>,
    resolver: Resolver,
    gateway: SocketAddr,
    pool: Pool,
    samples: Arc<Mutex<Vec<Sample>>>,
}

impl Client {
    async fn run(self, pause: Duration) {
        let mut tick = tokio::time::interval(pause);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let at = Timestamp::now();
            let began = std::time::Instant::now();
            let outcome = self.once().await;
            let sample = Sample {
                at,
                host: self.host.clone(),
                resolver: self.label.clone(),
                outcome,
                took: began.elapsed(),
            };
            self.samples
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(sample);
        }
    }

    async fn once(&self) -> Outcome {
        let address = match self.resolver.lookup(&self.target.host).await {
            Ok(addresses) => addresses[0],
            Err(error) => return Outcome::NoAddress(error),
        };
        let (path, host) = (&self.target.path, &self.target.host);
        match send(
            &self.pool,
            self.gateway,
            Method::GET,
            &address.to_string(),
            path,
            host,
            Bytes::new(),
        )
        .await
        {
            Ok(response) => Outcome::Answer {
                address,
                status: response.status().as_u16(),
                side: response
                    .headers()
                    .get(SERVED_BY)
                    .and_then(|side| side.to_str().ok())
                    .map(Into::into),
            },
            Err(error) => Outcome::NoAnswer(error),
        }
    }
}

/// What the clients saw.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// In the order in which the answers came.
    pub samples: Vec<Sample>,
}

impl Report {
    /// The samples sent in `from..to`.
    pub fn between(&self, from: Timestamp, to: Timestamp) -> Report {
        let samples = self
            .samples
            .iter()
            .filter(|sample| sample.at >= from && sample.at < to);
        Report {
            samples: samples.cloned().collect(),
        }
    }

    /// All that a user would have seen as an error.
    pub fn failures(&self) -> Vec<&Sample> {
        self.samples
            .iter()
            .filter(|sample| sample.failed())
            .collect()
    }

    /// Requests by host, resolver and side (`-` for failures).
    pub fn counts(&self) -> BTreeMap<(String, String, String), u64> {
        let mut counts = BTreeMap::new();
        for sample in &self.samples {
            let side = if sample.failed() {
                "-"
            } else {
                sample.side().unwrap_or("-")
            };
            let key = (
                sample.host.to_string(),
                sample.resolver.to_string(),
                side.to_owned(),
            );
            *counts.entry(key).or_default() += 1;
        }
        counts
    }

    /// The side that served the last good answer of a host through a resolver.
    pub fn last_side(&self, host: &str, resolver: &str) -> Option<&str> {
        let matching = self
            .samples
            .iter()
            .rev()
            .filter(|sample| &*sample.host == host && &*sample.resolver == resolver);
        matching
            .filter(|sample| !sample.failed())
            .find_map(Sample::side)
    }

    /// The last failure of each kind with its number, for a test's message.
    pub fn failure_summary(&self) -> String {
        let mut kinds: BTreeMap<String, (u64, Timestamp)> = BTreeMap::new();
        for sample in self.failures() {
            let kind = format!(
                "{} via {}: {:?}",
                sample.host, sample.resolver, sample.outcome
            );
            let entry = kinds.entry(kind).or_insert((0, sample.at));
            entry.0 += 1;
            entry.1 = sample.at;
        }
        let lines = kinds
            .iter()
            .map(|(kind, (number, at))| format!("{number} x {kind}, last at {at}"));
        lines.collect::<Vec<_>>().join("\n")
    }
}
