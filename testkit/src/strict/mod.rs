//! The strict AWS layer: stands in front of the emulator, refuses what AWS refuses, answers what the emulator lacks,
//! takes its time as AWS does, fails on demand and remembers every call. `bench.md` 4, rules from `eks.md` 7.
//!
//! - Route 53, EKS, launch templates and instance types are wholly ours ([`route53`], [`eks`], [`launch`], [`instance_types`]); all else is checked ([`guard`]) and forwarded.
//! - What a test may turn on (denials, a policy, quotas, delays, failures, throttling, small pages) is in [`controls`].
//! - [`Strict::endpoint`] is for clients that honour `AWS_ENDPOINT_URL`; [`Strict::proxy`] for those that only know
//!   `HTTPS_PROXY` (set `SSL_CERT_FILE` to the test CA and unset `AWS_CA_BUNDLE`).

mod buckets;
mod controls;
pub mod eks;
mod guard;
pub mod http;
mod iam_clock;
mod instance_types;
mod interfaces;
mod launch;
pub mod log;
mod pages;
mod permit;
mod quotas;
pub mod route53;
pub(crate) mod server;
mod upstream;
pub mod xml;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::error::{Context, Result};
use crate::servers::pki::TestCa;

pub use controls::{Fails, KeyTrouble};
pub use log::{Call, Fault, FaultKind, Met};

/// Where green's real API server answers: every cluster that the layer creates hands this out.
#[derive(Debug, Clone)]
pub struct GreenEndpoint {
    pub url: String,
    pub ca_pem: String,
}

/// How to start the layer.
#[derive(Clone)]
pub struct Config {
    /// `http://127.0.0.1:PORT` of the emulator.
    pub upstream: String,
    /// Account id, 12 digits.
    pub account: String,
    pub region: String,
    /// Route 53: from accepted to INSYNC.
    pub insync_delay: Duration,
    /// EKS cluster: CREATING to ACTIVE, DELETING to gone; updates take a quarter of it.
    pub cluster_delay: Duration,
    pub nodegroup_delay: Duration,
    pub addon_delay: Duration,
    pub green: GreenEndpoint,
    pub ca: TestCa,
}

/// A running layer; clones share it. The servers end with the last clone.
#[derive(Clone)]
pub struct Strict {
    state: Arc<State>,
    _tasks: Arc<Tasks>,
}

struct Tasks(Vec<JoinHandle<()>>);

impl Drop for Tasks {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

type ZoneListener = Box<dyn Fn() + Send + Sync>;

/// What all handlers share.
pub(crate) struct State {
    pub config: Config,
    pub address: SocketAddr,
    pub proxy_address: SocketAddr,
    pub webhook_address: SocketAddr,
    client: upstream::Client,
    log: Mutex<Vec<Call>>,
    faults: Mutex<log::Faults>,
    met: Mutex<Vec<Met>>,
    permits: Mutex<permit::Permits>,
    controls: Mutex<controls::Controls>,
    buckets: Mutex<buckets::Buckets>,
    iam_clock: Mutex<iam_clock::Clock>,
    route53: Mutex<route53::Store>,
    eks: Mutex<eks::Store>,
    launch: Mutex<launch::Store>,
    /// Role -> permissions boundary: the emulator forgets it in GetAccountAuthorizationDetails.
    boundaries: Mutex<HashMap<String, String>>,
    client_ids: Mutex<guard::oidc::ClientIds>,
    /// Access key id -> secret, for checking pre-signed tokens.
    keys: Mutex<HashMap<String, String>>,
    zone_listeners: Mutex<Vec<ZoneListener>>,
}

/// A panic while holding one of these locks fails its own test; the others go on with what is there.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    pub fn lock_route53(&self) -> MutexGuard<'_, route53::Store> {
        lock(&self.route53)
    }

    pub fn lock_eks(&self) -> MutexGuard<'_, eks::Store> {
        lock(&self.eks)
    }

    pub fn lock_launch(&self) -> MutexGuard<'_, launch::Store> {
        lock(&self.launch)
    }

    pub fn lock_boundaries(&self) -> MutexGuard<'_, HashMap<String, String>> {
        lock(&self.boundaries)
    }

    pub fn lock_client_ids(&self) -> MutexGuard<'_, guard::oidc::ClientIds> {
        lock(&self.client_ids)
    }

    pub fn lock_controls(&self) -> MutexGuard<'_, controls::Controls> {
        lock(&self.controls)
    }

    pub fn lock_iam_clock(&self) -> MutexGuard<'_, iam_clock::Clock> {
        lock(&self.iam_clock)
    }

    pub fn learn_key(&self, id: &str, secret: &str) {
        lock(&self.keys).insert(id.to_owned(), secret.to_owned());
    }

    pub fn secret_of(&self, id: &str) -> Option<String> {
        lock(&self.keys).get(id).cloned()
    }

    pub fn zone_changed(&self) {
        for listener in lock(&self.zone_listeners).iter() {
            listener();
        }
    }
}

impl Strict {
    /// Starts the endpoint, the proxy and the token webhook on free ports of 127.0.0.1.
    pub async fn start(config: Config) -> Result<Strict> {
        let bind = || async {
            let listener = TcpListener::bind("127.0.0.1:0")
                .await
                .context(|| "the strict AWS layer found no free port on 127.0.0.1".into())?;
            let address = listener
                .local_addr()
                .context(|| "the strict AWS layer cannot tell its port".into())?;
            Ok::<_, crate::Error>((listener, address))
        };
        let (plain, address) = bind().await?;
        let (proxy, proxy_address) = bind().await?;
        let (webhook, webhook_address) = bind().await?;
        let webhook_tls = server::tls_config(&config.ca, "127.0.0.1")?;
        let state = Arc::new(State {
            config,
            address,
            proxy_address,
            webhook_address,
            client: upstream::client(),
            log: Mutex::default(),
            faults: Mutex::default(),
            met: Mutex::default(),
            permits: Mutex::default(),
            controls: Mutex::default(),
            buckets: Mutex::default(),
            iam_clock: Mutex::default(),
            route53: Mutex::default(),
            eks: Mutex::default(),
            launch: Mutex::default(),
            boundaries: Mutex::default(),
            client_ids: Mutex::default(),
            keys: Mutex::default(),
            zone_listeners: Mutex::default(),
        });
        // What everybody uses against emulators; other keys are learnt as STS and IAM hand them out.
        state.learn_key("test", "test");
        let tasks = vec![
            tokio::spawn(server::serve_plain(plain, state.clone())),
            tokio::spawn(server::serve_proxy(proxy, state.clone())),
            tokio::spawn(crate::webhook::serve(webhook, webhook_tls, state.clone())),
        ];
        Ok(Strict {
            state,
            _tasks: Arc::new(Tasks(tasks)),
        })
    }

    /// Plain HTTP: the value of `AWS_ENDPOINT_URL`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.state.address)
    }

    /// The value of `HTTPS_PROXY` for clients that cannot be given an endpoint.
    pub fn proxy(&self) -> String {
        format!("http://{}", self.state.proxy_address)
    }

    /// Every call so far.
    pub fn calls(&self) -> Vec<Call> {
        lock(&self.state.log).clone()
    }

    pub fn inject(&self, fault: Fault) {
        lock(&self.state.faults).inject(fault);
    }

    pub fn clear_faults(&self) {
        lock(&self.state.faults).clear();
    }

    /// Forgets the faults of one caller.
    pub fn clear_faults_of(&self, who: &str) {
        lock(&self.state.faults).clear_of(who);
    }

    /// Takes out what struck one caller since the last time: a call that is done is in the log by then.
    pub fn met(&self, who: &str) -> Vec<Met> {
        lock(&self.state.met)
            .extract_if(.., |m| m.who == who)
            .collect()
    }

    /// Limits Route 53 to so many requests a second, as AWS does with 5 for an account.
    pub fn throttle_route53(&self, per_second: Option<usize>) {
        self.state.lock_route53().rate = per_second;
    }

    /// Tells the token webhook the secret of a long-lived access key that was not made through this layer.
    pub fn learn_key(&self, id: &str, secret: &str) {
        self.state.learn_key(id, secret);
    }

    /// All hosted zones with their records, as they are now; no call is logged.
    pub fn zones(&self) -> Vec<route53::Zone> {
        self.state.lock_route53().zones()
    }

    /// Runs `listener` after each change of a zone.
    pub fn on_zone_change(&self, listener: impl Fn() + Send + Sync + 'static) {
        lock(&self.state.zone_listeners).push(Box::new(listener));
    }

    /// Sends clients of every cluster that there is another way to the same API server, as after a change of its endpoint:
    /// DescribeCluster hands this URL out from now on.
    pub fn reach_clusters_at(&self, url: &str) {
        for cluster in self.state.lock_eks().clusters.values_mut() {
            cluster.doc["endpoint"] = url.into();
        }
    }

    /// The kubeconfig for green's `--authentication-token-webhook-config-file`.
    pub fn webhook_kubeconfig(&self) -> String {
        crate::webhook::kubeconfig(self.state.webhook_address, &self.state.config.ca)
    }

    pub(crate) fn state(&self) -> &Arc<State> {
        &self.state
    }
}

/// The reply got lost: the connection is cut instead.
#[derive(Debug)]
pub(crate) struct LostReply;

impl std::fmt::Display for LostReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an injected fault cut the connection before the reply")
    }
}

impl std::error::Error for LostReply {}

/// One request through faults, service and log.
pub(crate) async fn answer(state: &State, mut req: http::Req) -> Result<http::Reply, LostReply> {
    let params = match req.service.as_str() {
        "route53" => {
            req.action = route53::action_of(&req).to_owned();
            route53::params_of(&req)
        }
        "eks" => {
            req.action = eks::action_of(&req).to_owned();
            eks::params_of(&req)
        }
        "s3" => {
            req.action = upstream::s3_action(&req);
            upstream::s3_params(&req)
        }
        _ => req.form_json(),
    };
    // The bench's own DNS server asks all the time: what goes wrong is meant for whoever is under test.
    let under_test = req.who != crate::dns::POLLER_KEY;
    let mut fault = under_test
        .then(|| lock(&state.faults).meet(&req.who, &req.service, &req.action))
        .flatten();
    if fault.is_none()
        && under_test
        && lock(&state.buckets).refuse(&req.service, &req.action, Instant::now())
    {
        fault = Some(FaultKind::Throttle);
    }
    let reply = match fault {
        Some(FaultKind::Throttle) => throttled(&req.service),
        Some(FaultKind::Error500) => http::Refusal::new(
            500,
            "InternalFailure",
            "We encountered an internal error. Please try again. (injected fault)",
        )
        .reply(&req.service),
        other => {
            if let Some(FaultKind::Delay(time)) = other {
                tokio::time::sleep(time).await;
            }
            let permit = match under_test {
                true => permit::check(state, &req).await,
                false => Ok(()),
            };
            match (permit, req.service.as_str()) {
                (Err(refusal), service) => refusal.reply(service),
                (Ok(()), "route53") => route53::handle(state, &req).await,
                (Ok(()), "eks") => eks::handle(state, &req).await,
                (Ok(()), "servicequotas") => quotas::handle(state, &req),
                (Ok(()), _) => guard::handle(state, &req).await,
            }
        }
    };
    let status = reply.status().as_u16();
    let met = fault.map(|kind| Met {
        who: req.who.clone(),
        service: req.service.clone(),
        action: req.action.clone(),
        kind,
    });
    lock(&state.log).push(Call {
        at: jiff::Timestamp::now(),
        who: req.who.clone(),
        service: req.service.clone(),
        changed: status < 400 && !log::reads_only(&req.action),
        action: req.action,
        params,
        status,
    });
    if let Some(kind) = met {
        lock(&state.met).push(kind);
    }
    match fault {
        Some(FaultKind::LostReply) => Err(LostReply),
        Some(FaultKind::NoAnswer) => std::future::pending().await,
        _ => Ok(reply),
    }
}

fn throttled(service: &str) -> http::Reply {
    let (status, code) = match service {
        "ec2" => (503, "RequestLimitExceeded"),
        "s3" => (503, "SlowDown"),
        "eks" => (429, "ThrottlingException"),
        service if http::speaks_json(service) => (400, "ThrottlingException"),
        _ => (400, "Throttling"),
    };
    http::Refusal::new(status, code, "Rate exceeded").reply(service)
}
