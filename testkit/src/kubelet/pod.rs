//! One pod's life: environment, start, status, restarts, graceful end, deletion.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use tokio::sync::watch;

use super::external_dns::ExternalDns;
use super::status::{Report, State};
use super::{Order, Shared, container_env};
use crate::apps::{APP_PORT, App, AppContext, Program};
use crate::net::BenchNet;

/// How often a failed status write or start is tried again.
const RETRY: Duration = Duration::from_millis(500);
/// The longest pause of a crash loop (a real kubelet's is five minutes; the bench's minutes are seconds).
const MAX_BACKOFF: Duration = Duration::from_secs(8);
/// A process that is not healthy after this time is reported as running but not ready.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(10);

enum Running {
    App(App),
    Process(ExternalDns),
}

/// The pod's addresses on the private network; forgotten when dropped.
struct Routes {
    net: BenchNet,
    addresses: Vec<String>,
}

impl Drop for Routes {
    fn drop(&mut self) {
        for address in &self.addresses {
            self.net.unregister(address);
        }
    }
}

struct Life {
    shared: Arc<Shared>,
    pod: Pod,
    container: Container,
    program: Program,
    pod_ip: String,
    started: Timestamp,
    restarts: i32,
    last: Option<(i32, Timestamp)>,
}

/// Runs a bound pod until it is deleted.
pub(super) async fn run(
    shared: Arc<Shared>,
    pod: Pod,
    index: usize,
    program: Program,
    mut order: watch::Receiver<Order>,
) {
    let Some(container) = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.containers.get(index))
        .cloned()
    else {
        return;
    };
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.clone())
        .unwrap_or_default();
    let mut life = Life {
        pod_ip: shared.config.net.next_pod_ip().to_string(),
        shared,
        pod,
        container,
        program,
        started: Timestamp::now(),
        restarts: 0,
        last: None,
    };
    if phase == "Succeeded" || phase == "Failed" {
        told_to_end(&mut order).await;
    } else if *order.borrow() == Order::Run {
        life.live(&mut order).await;
    }
    life.delete().await;
}

/// Waits for the order to end and gives its grace.
async fn told_to_end(order: &mut watch::Receiver<Order>) -> Duration {
    match order
        .wait_for(|order| *order != Order::Run)
        .await
        .as_deref()
    {
        Ok(Order::End(grace)) => *grace,
        _ => Duration::ZERO,
    }
}

impl Life {
    async fn live(&mut self, order: &mut watch::Receiver<Order>) {
        loop {
            let mut running = tokio::select! {
                grace = told_to_end(order) => { let _ = grace; return; }
                running = self.start_until_it_works() => running,
            };
            let since = Timestamp::now();
            let routes = self.routes(&running);
            let code = tokio::select! {
                grace = told_to_end(order) => {
                    tracing::debug!(pod = self.name(), "SIGTERM");
                    let code = stop(running, routes, grace, order).await;
                    self.report(State::Ended { code, since, at: Timestamp::now() }).await;
                    return;
                }
                code = self.watch(&mut running, since) => code,
            };
            drop(routes);
            let policy = self
                .pod
                .spec
                .as_ref()
                .and_then(|spec| spec.restart_policy.as_deref())
                .unwrap_or("Always");
            if policy == "Never" || (policy == "OnFailure" && code == 0) {
                self.report(State::Ended {
                    code,
                    since,
                    at: Timestamp::now(),
                })
                .await;
                told_to_end(order).await;
                return;
            }
            self.restarts += 1;
            self.last = Some((code, Timestamp::now()));
            let exponent = u32::try_from(self.restarts.clamp(1, 4) - 1).unwrap_or(0);
            let backoff = (Duration::from_secs(1) * 2_u32.pow(exponent)).min(MAX_BACKOFF);
            let message =
                format!("back-off {backoff:?} restarting failed container (exit code {code})");
            tracing::info!(pod = self.name(), code, "container ended, restarting");
            self.report(State::Waiting {
                reason: "CrashLoopBackOff",
                message,
            })
            .await;
            tokio::select! {
                _ = told_to_end(order) => return,
                () = tokio::time::sleep(backoff) => {}
            }
        }
    }

    /// Starts the program; a missing ConfigMap, Secret or token is reported and tried again, as a kubelet does.
    async fn start_until_it_works(&mut self) -> Running {
        let mut said = String::new();
        loop {
            match self.start().await {
                Ok(running) => return running,
                Err(message) => {
                    if message != said {
                        tracing::info!(
                            pod = self.name(),
                            message,
                            "container cannot be started yet"
                        );
                        self.report(State::Waiting {
                            reason: "CreateContainerConfigError",
                            message: message.clone(),
                        })
                        .await;
                        said = message;
                    }
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    async fn start(&self) -> Result<Running, String> {
        let shared = &self.shared;
        let env = container_env::resolve(&shared.client, &self.pod, &self.container, &self.pod_ip)
            .await?;
        if let Program::ExternalDns(tag) = self.program {
            let started = ExternalDns::start(shared, &self.pod, &self.container, tag, &env).await?;
            return Ok(Running::Process(started));
        }
        let context = AppContext {
            side: shared.config.side.clone(),
            pod: self.name(),
            net: shared.config.net.clone(),
            observed: shared.config.observed.clone(),
        };
        let app = App::start(self.program, &env, context)
            .await
            .map_err(|error| error.to_string())?;
        Ok(Running::App(app))
    }

    /// An HTTP app answers at its pod IP, on its container's ports only.
    fn routes(&self, running: &Running) -> Routes {
        let mut routes = Routes {
            net: self.shared.config.net.clone(),
            addresses: Vec::new(),
        };
        if let Running::App(app) = running
            && let Some(real) = app.addr()
        {
            let mut ports: Vec<i32> = self
                .container
                .ports
                .iter()
                .flatten()
                .map(|port| port.container_port)
                .collect();
            if ports.is_empty() {
                ports.push(i32::from(APP_PORT));
            }
            routes.addresses = ports
                .iter()
                .map(|port| format!("{}:{port}", self.pod_ip))
                .collect();
            for address in &routes.addresses {
                routes.net.register(address, real);
            }
        }
        routes
    }

    /// Reports the program as running once it is healthy and waits for its end; gives the exit code.
    async fn watch(&self, running: &mut Running, since: Timestamp) -> i32 {
        match running {
            Running::App(app) => {
                self.report(State::Running { since }).await;
                app.ended().await;
                0
            }
            Running::Process(external_dns) => {
                let deadline = tokio::time::Instant::now() + HEALTH_TIMEOUT;
                while tokio::time::Instant::now() < deadline {
                    if external_dns.healthy().await {
                        self.report(State::Running { since }).await;
                        break;
                    }
                    let pause = tokio::time::timeout(
                        Duration::from_millis(100),
                        external_dns.process.wait(),
                    );
                    if let Ok(status) = pause.await {
                        return exit_code(status);
                    }
                }
                exit_code(external_dns.process.wait().await)
            }
        }
    }

    fn name(&self) -> String {
        let namespace = self.pod.metadata.namespace.as_deref().unwrap_or("default");
        format!(
            "{namespace}/{}",
            self.pod.metadata.name.as_deref().unwrap_or_default()
        )
    }

    fn api(&self) -> Api<Pod> {
        let namespace = self.pod.metadata.namespace.as_deref().unwrap_or("default");
        Api::namespaced(self.shared.client.clone(), namespace)
    }

    /// Writes the status; tries until the server takes it, or says that the pod is gone or another one.
    async fn report(&self, state: State) {
        let patch = Report {
            pod: &self.pod,
            pod_ip: &self.pod_ip,
            started: self.started,
            state,
            restarts: self.restarts,
            last: self.last,
        }
        .patch();
        let name = self.pod.metadata.name.as_deref().unwrap_or_default();
        let api = self.api();
        loop {
            match api
                .patch_status(name, &PatchParams::default(), &Patch::Strategic(&patch))
                .await
            {
                Ok(_) => return,
                Err(kube::Error::Api(status)) if [404, 409, 422, 400].contains(&status.code) => {
                    tracing::debug!(
                        pod = self.name(),
                        message = status.message,
                        "status not taken"
                    );
                    return;
                }
                Err(error) => {
                    tracing::debug!(pod = self.name(), %error, "status not written yet");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// The kubelet's last word: the program has ended, the object may go.
    async fn delete(&self) {
        let parameters = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions {
                uid: self.pod.metadata.uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let name = self.pod.metadata.name.as_deref().unwrap_or_default();
        let api = self.api();
        loop {
            match api.delete(name, &parameters).await {
                Ok(_) => return,
                Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => return,
                Err(error) => {
                    tracing::debug!(pod = self.name(), %error, "pod not deleted yet");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }
}

/// Ends the program within its grace; a shorter second grace cuts it off.
async fn stop(
    running: Running,
    routes: Routes,
    grace: Duration,
    order: &mut watch::Receiver<Order>,
) -> i32 {
    let stopping = async {
        match running {
            Running::App(app) => {
                app.stop(grace, || drop(routes)).await;
                0
            }
            Running::Process(external_dns) => {
                exit_code(external_dns.process.terminate(grace).await)
            }
        }
    };
    tokio::pin!(stopping);
    loop {
        tokio::select! {
            code = &mut stopping => return code,
            Ok(()) = order.changed() => {
                let now = *order.borrow_and_update();
                if let Order::End(shorter) = now {
                    return tokio::time::timeout(shorter, &mut stopping).await.unwrap_or(137);
                }
            }
        }
    }
}

/// As a container runtime gives it: 128 + signal for a killed process.
fn exit_code(status: std::io::Result<std::process::ExitStatus>) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    match status {
        Ok(status) => status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
        Err(_) => 255,
    }
}
