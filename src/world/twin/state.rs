//! The whole simulated world and its queue of events.

use super::cloud::CloudState;
use super::data::DataState;
use super::dns::DnsState;
use super::edns::EdnsState;
use super::faults::Faults;
use super::invariants::Invariants;
use super::store::{Key, Store};
use super::traffic::TrafficState;
use super::{Options, kinds};
use crate::object::Side;
use crate::snapshot::model::{Cluster, Snapshot};
use crate::spec::model::Spec;
use crate::world::kube::KubeVersion;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Something that happens by itself.
#[derive(Clone, Debug)]
pub(super) enum Ev {
    /// A controller looks at a workload.
    Reconcile(Side, Key),
    /// A pod may become ready.
    PodStart(Side, Key),
    /// A terminating pod is gone.
    PodGone(Side, Key),
    /// The garbage collector looks for children of a uid.
    Collect(Side, String),
    /// The namespace controller: default service account and CA bundle, or the emptying of a dying namespace.
    Namespace(Side, String),
    /// A CRD becomes Established.
    Established(Side, Key),
    /// A load balancer got its address.
    LoadBalancer(Side, Key),
    /// The load balancer of a dying Service is gone.
    LoadBalancerGone(Side, Key),
    /// A claim is bound.
    Bind(Side, Key),
    /// A CronJob may be due.
    Cron(Side, Key),
    /// A Job's pods have finished.
    JobDone(Side, Key),
    /// KEDA, Flux or Argo CD look at a workload.
    Tend(Side, Key),
    /// The cloud looks at its transitions.
    Cloud,
    /// Record changes reach the name servers.
    Publish(String, Vec<super::dns::Published>),
    /// One loop of an ExternalDNS.
    Edns(super::edns::InstanceKey),
    /// Replication moves.
    Stream(String, Side),
    /// Clients read, writers write.
    Traffic,
}

#[derive(Clone)]
pub(super) struct State {
    pub now: Duration,
    last: tokio::time::Instant,
    events: BTreeMap<(Duration, u64), Ev>,
    seq: u64,
    pub options: Options,
    /// Host, path and method of the write probe of each data set.
    pub write_probes: BTreeMap<String, (String, String, String)>,
    pub blue: Store,
    pub green: Store,
    pub cloud: CloudState,
    pub dns: DnsState,
    pub edns: EdnsState,
    pub data: DataState,
    pub traffic: TrafficState,
    pub lb: super::lb::LbState,
    /// The sides are being built: controllers act at once and look at the result only once, at the end.
    pub building: bool,
    /// Pod template hashes by uid, with the generation they belong to.
    pub hashes: BTreeMap<String, (u64, String)>,
    /// What repositories say of workloads, for those who put that back.
    pub declared: BTreeMap<(Side, Key), Value>,
    pub faults: Faults,
    pub invariants: Invariants,
}

impl State {
    pub fn new(snapshot: &Snapshot, spec: &Spec, options: Options) -> State {
        let blue = blue_store(snapshot, &options);
        let green = green_store(snapshot, spec, &options);
        let mut state = State {
            now: Duration::ZERO,
            last: tokio::time::Instant::now(),
            events: BTreeMap::new(),
            seq: 0,
            cloud: CloudState::new(snapshot, spec, &options),
            dns: DnsState::new(snapshot),
            edns: EdnsState::default(),
            data: DataState::new(spec),
            traffic: TrafficState::default(),
            lb: super::lb::LbState::new(snapshot),
            building: false,
            hashes: BTreeMap::new(),
            declared: BTreeMap::new(),
            faults: Faults::default(),
            invariants: Invariants::new(spec),
            write_probes: spec
                .data
                .iter()
                .filter_map(|d| {
                    let p = d.write_probe.as_ref()?;
                    Some((
                        d.name.clone(),
                        (p.host.clone(), p.path.clone(), p.method.clone()),
                    ))
                })
                .collect(),
            options,
            blue,
            green,
        };
        state.note_declared(Side::Blue);
        state.start_cluster(Side::Blue);
        state.start_cluster(Side::Green);
        state.start_edns();
        let warm = state.options.warm_up;
        state.advance(warm);
        state.start_traffic();
        state.note_foreign_records();
        state
    }

    pub fn store(&self, side: Side) -> &Store {
        match side {
            Side::Blue => &self.blue,
            Side::Green => &self.green,
        }
    }
    pub fn store_mut(&mut self, side: Side) -> &mut Store {
        match side {
            Side::Blue => &mut self.blue,
            Side::Green => &mut self.green,
        }
    }

    /// A realistic number of seconds, scaled.
    pub fn secs(&self, s: u64) -> Duration {
        Duration::from_secs(s).mul_f64(self.options.scale)
    }
    pub fn at(&mut self, after: Duration, ev: Ev) {
        self.seq += 1;
        self.events.insert((self.now + after, self.seq), ev);
    }
    /// Absolute time.
    pub fn timestamp(&self) -> jiff::Timestamp {
        self.options
            .epoch
            .checked_add(jiff::SignedDuration::from_micros(
                self.now.as_micros() as i64
            ))
            .unwrap_or(self.options.epoch)
    }
    /// Absolute time as Kubernetes writes it.
    pub fn stamp(&self) -> String {
        self.timestamp().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// Lets the simulation catch up with tokio's clock. Time never runs backwards, also when a second runtime
    /// (with another paused clock) drives the same twin after a "crash".
    pub fn sync(&mut self) {
        let instant = tokio::time::Instant::now();
        let passed = instant.saturating_duration_since(self.last);
        self.last = instant;
        self.advance(self.now + passed);
    }

    fn advance(&mut self, until: Duration) {
        while let Some(first) = self.events.first_entry() {
            if first.key().0 > until {
                break;
            }
            let ((at, _), ev) = first.remove_entry();
            self.now = at;
            self.handle(ev);
            self.after_mutation();
        }
        self.now = until;
    }

    fn handle(&mut self, ev: Ev) {
        match ev {
            Ev::Reconcile(side, key) => self.reconcile(side, &key),
            Ev::PodStart(side, key) => self.pod_start(side, &key),
            Ev::PodGone(side, key) => self.pod_gone(side, &key),
            Ev::Collect(side, uid) => self.collect(side, &uid),
            Ev::Namespace(side, name) => self.namespace_controller(side, &name),
            Ev::Established(side, key) => self.established(side, &key),
            Ev::LoadBalancer(side, key) => self.load_balancer(side, &key),
            Ev::LoadBalancerGone(side, key) => self.load_balancer_gone(side, &key),
            Ev::Bind(side, key) => self.bind_claim(side, &key),
            Ev::Cron(side, key) => self.cron_due(side, &key),
            Ev::JobDone(side, key) => self.job_done(side, &key),
            Ev::Tend(side, key) => self.tend(side, &key),
            Ev::Cloud => self.cloud_transitions(),
            Ev::Publish(zone, records) => self.publish(&zone, records),
            Ev::Edns(key) => self.edns_loop(&key),
            Ev::Stream(set, from) => self.stream_moves(&set, from),
            Ev::Traffic => self.traffic_tick(),
        }
    }

    /// After every call and event: wakes what waits for changes, and looks whether a promise is broken.
    pub fn after_mutation(&mut self) {
        self.wake_edns();
        self.check_invariants();
    }
}

fn blue_store(snapshot: &Snapshot, options: &Options) -> Store {
    let b = &snapshot.blue;
    let version = b.version.clone().unwrap_or(KubeVersion {
        git_version: "v1.21.14".into(),
        minor: 21,
    });
    let mut kinds = b.kinds.clone();
    if kinds.is_empty() {
        kinds = kinds::built_in(version.minor);
        for crd in b.of_kind("CustomResourceDefinition") {
            kinds.extend(kinds::of_crd(crd));
        }
    }
    let mut store = Store::new(Side::Blue, options.seed, version, kinds);
    adopt_all(&mut store, b);
    let nodes = store.of_kind("", "Node").count();
    store.any_node = nodes == 0;
    store
}

fn green_store(snapshot: &Snapshot, spec: &Spec, options: &Options) -> Store {
    let minor: u32 = spec
        .green
        .version
        .split('.')
        .nth(1)
        .and_then(|m| m.parse().ok())
        .unwrap_or(35);
    let version = KubeVersion {
        git_version: format!("v1.{minor}.0-eks-twin"),
        minor,
    };
    let mut store = Store::new(Side::Green, options.seed, version, kinds::built_in(minor));
    match &snapshot.green {
        Some(g) if !g.objects.is_empty() => {
            if let Some(v) = &g.version {
                store.version = v.clone();
            }
            if !g.kinds.is_empty() {
                store.kinds = g.kinds.clone();
            }
            adopt_all(&mut store, g);
        }
        _ => system_objects(&mut store),
    }
    store
}

fn adopt_all(store: &mut Store, cluster: &Cluster) {
    for object in &cluster.objects {
        // Pods and ReplicaSets of controllers are made anew: the twin's controllers own theirs.
        let owned = object
            .pointer("/metadata/ownerReferences")
            .and_then(Value::as_array)
            .is_some_and(|o| o.iter().any(|r| r["controller"] == json!(true)));
        if owned && matches!(object["kind"].as_str(), Some("Pod" | "ReplicaSet")) {
            continue;
        }
        store.adopt(object.clone());
    }
    if let Some(identity) = &cluster.identity {
        store.identity = identity.clone();
    } else if let Some(uid) = cluster
        .find("Namespace", None, "kube-system")
        .and_then(crate::object::uid)
    {
        store.identity.uid = uid.into();
    }
    // An offline dump may lack the namespaces that its objects live in.
    let spaces: Vec<String> = store
        .objects
        .keys()
        .map(|k| k.2.clone())
        .filter(|n| !n.is_empty())
        .collect();
    for ns in spaces
        .into_iter()
        .chain(["default".into(), "kube-system".into()])
    {
        if store.get("", "Namespace", "", &ns).is_none() {
            store.adopt(json!({"apiVersion":"v1","kind":"Namespace","metadata":{"name":ns},"status":{"phase":"Active"}}));
        }
    }
}

/// What a fresh cluster holds before anybody touches it.
pub(super) fn system_objects(store: &mut Store) {
    let mut add = |v: Value| store.adopt(v);
    for ns in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        add(
            json!({"apiVersion":"v1","kind":"Namespace","metadata":{"name":ns,"labels":{"kubernetes.io/metadata.name":ns}},
            "spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}),
        );
        add(
            json!({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default","namespace":ns}}),
        );
        add(
            json!({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kube-root-ca.crt","namespace":ns},"data":{"ca.crt":"simulated"}}),
        );
    }
    add(
        json!({"apiVersion":"v1","kind":"Service","metadata":{"name":"kubernetes","namespace":"default"},
        "spec":{"type":"ClusterIP","clusterIP":"10.100.0.1","ports":[{"name":"https","port":443,"protocol":"TCP","targetPort":443}]}}),
    );
    for role in ["cluster-admin", "admin", "edit", "view"] {
        add(
            json!({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole",
            "metadata":{"name":role,"labels":{"kubernetes.io/bootstrapping":"rbac-defaults"}},"rules":[]}),
        );
    }
    for class in ["system-cluster-critical", "system-node-critical"] {
        add(
            json!({"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":class},"value":2000000000}),
        );
    }
    let pin = store.identity.uid.clone();
    store.update(
        &super::store::key_of("", "Namespace", "", "kube-system"),
        |o| {
            o["metadata"]["uid"] = json!(pin);
        },
    );
}
