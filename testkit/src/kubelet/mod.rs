//! The process kubelet: pods with a known image run as real programs, wherever they are bound.
//!
//! HTTP apps, the consumer and the report are tasks of the bench with their own listener; ExternalDNS is a real child
//! process with the pod's own arguments, service account token and AWS environment. All other pods are KWOK's.

mod container_env;
mod external_dns;
mod pod;
pub mod process;
mod status;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::sync::watch;

pub use self::external_dns::AwsEnv;
pub use crate::apps::KNOWN_IMAGES;
use crate::apps::http::{Task, told};
use crate::apps::{Observed, program};
use crate::net::BenchNet;

/// How often the API server is asked for pods.
const POLL: Duration = Duration::from_millis(200);

/// What a process kubelet needs.
#[derive(Clone, Debug)]
pub struct Config {
    /// `blue` or `green`; the apps say it in `x-served-by`.
    pub side: String,
    /// A kubeconfig with full rights whose user is the kubelet's alone, so that the audit log can tell it apart.
    pub kubeconfig: PathBuf,
    /// The private network.
    pub net: BenchNet,
    /// Where consumers and reports leave their traces; give both sides the same one.
    pub observed: Observed,
    /// ExternalDNS binaries by image tag, e.g. `v0.10.2`.
    pub external_dns: BTreeMap<String, PathBuf>,
    /// How the pods' AWS calls reach the strict layer.
    pub aws: AwsEnv,
    /// Kubeconfigs and logs of child processes are written below.
    pub work_dir: PathBuf,
}

/// A running process kubelet of one side. Dropping it kills its pods' programs.
#[derive(Debug)]
pub struct ProcessKubelet {
    stop: watch::Sender<bool>,
    task: Task,
}

/// What a pod's task is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Run,
    /// SIGTERM, then SIGKILL after this grace.
    End(Duration),
}

/// What all pod tasks of a side share.
struct Shared {
    config: Config,
    client: kube::Client,
    /// The cluster part of the kubelet's kubeconfig, for the children's own.
    cluster: serde_json::Value,
}

struct Tracked {
    order: watch::Sender<Order>,
    _task: Task,
}

/// A client for a kubeconfig file, and the cluster part of that file.
pub async fn client(kubeconfig: &Path) -> io::Result<(kube::Client, serde_json::Value)> {
    let context = |error: &dyn std::fmt::Display| {
        io::Error::other(format!("{}: {error}", kubeconfig.display()))
    };
    let file = Kubeconfig::read_from(kubeconfig).map_err(|error| context(&error))?;
    let cluster = file
        .clusters
        .first()
        .and_then(|named| named.cluster.as_ref())
        .ok_or_else(|| context(&"holds no cluster"))?;
    let cluster = serde_json::to_value(cluster).map_err(|error| context(&error))?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .map_err(|error| context(&error))?;
    let client = kube::Client::try_from(config).map_err(|error| context(&error))?;
    Ok((client, cluster))
}

impl ProcessKubelet {
    /// Starts a process kubelet; it retries for ever while the API server is not there.
    pub async fn start(config: Config) -> io::Result<Self> {
        let (client, cluster) = client(&config.kubeconfig).await?;
        std::fs::create_dir_all(&config.work_dir)?;
        let (stop, stopped) = watch::channel(false);
        let shared = Arc::new(Shared {
            config,
            client,
            cluster,
        });
        let task = Task::spawn(run(shared, stopped));
        Ok(ProcessKubelet { stop, task })
    }

    /// Ends all programs as a machine that is switched off: the pods stay in the API server.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        self.task.join().await;
    }
}

async fn run(shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    let pods: Api<Pod> = Api::all(shared.client.clone());
    // From the watch cache: cheap, and monotonic with a single API server.
    let everything = ListParams::default().match_any();
    let mut tracked: HashMap<String, Tracked> = HashMap::new();
    let mut tick = tokio::time::interval(POLL);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = told(&mut stopped) => return,
            _ = tick.tick() => {}
        }
        match pods.list(&everything).await {
            Ok(list) => reconcile(&shared, &mut tracked, list.items),
            Err(error) => {
                tracing::debug!(side = shared.config.side, %error, "process kubelet: list of pods failed");
                tokio::time::sleep(POLL).await;
            }
        }
    }
}

fn reconcile(shared: &Arc<Shared>, tracked: &mut HashMap<String, Tracked>, pods: Vec<Pod>) {
    let mut seen = HashSet::new();
    for pod in pods {
        let Some(uid) = pod.metadata.uid.clone() else {
            continue;
        };
        let Some(spec) = &pod.spec else { continue };
        if spec.node_name.as_deref().unwrap_or_default().is_empty() {
            continue;
        }
        let known = spec
            .containers
            .iter()
            .enumerate()
            .find_map(|(index, container)| Some((index, program(container.image.as_deref()?)?)));
        let Some((index, program)) = known else {
            continue;
        };
        let order = match pod.metadata.deletion_timestamp {
            Some(_) => {
                let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(30);
                Order::End(Duration::from_secs(u64::try_from(grace).unwrap_or(0)))
            }
            None => Order::Run,
        };
        let entry = tracked.entry(uid.clone()).or_insert_with(|| {
            let (order_sender, order_receiver) = watch::channel(order);
            let _task = Task::spawn(pod::run(
                shared.clone(),
                pod,
                index,
                program,
                order_receiver,
            ));
            Tracked {
                order: order_sender,
                _task,
            }
        });
        // A second, shorter grace (`kubectl delete --now`) counts too.
        entry.order.send_if_modified(|current| {
            let changed = *current != order && order != Order::Run;
            if changed {
                *current = order;
            }
            changed
        });
        seen.insert(uid);
    }
    // A pod that is gone from the API server (deleted by force): its task is dropped, and with it its program.
    tracked.retain(|uid, _| seen.contains(uid));
}
