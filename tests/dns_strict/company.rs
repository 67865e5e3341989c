//! A company of any number of names behind the strict Route 53, and one wave of its handover driven through the product's own step.

use async_trait::async_trait;
use crossfade::edns::{heritage_value, switch};
use crossfade::object::ObjectId;
use crossfade::plan::model::{Plan, StepSpec};
use crossfade::snapshot::model::{Snapshot, ZoneRecords};
use crossfade::spec::model::Spec;
use crossfade::step::{Cx, Settle, Step, StepError, StepLog, registry};
use crossfade::world::dns::{Change, Dns, RecordSet, Zone};
use crossfade::world::kube::{ApiKind, ClusterIdentity, CreateOptions, Kube, KubeVersion, Listing};
use crossfade::world::probe::{DnsAnswer, HttpAnswer, HttpProbe, Probe};
use crossfade::world::twin::{self, Twin};
use crossfade::world::{Class, Error, Result as WorldResult, World};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::strict::Strict;

const BLUE_IP: &str = "203.0.113.10";
const GREEN_IP: &str = "198.51.100.10";
/// Hosts of one Ingress.
const PER_INGRESS: usize = 50;

/// An API server that holds these objects.
struct Objects(Vec<Value>);

#[async_trait]
impl Kube for Objects {
    async fn version(&self) -> WorldResult<KubeVersion> {
        Ok(KubeVersion {
            git_version: "v1.36.3".into(),
            minor: 36,
        })
    }
    async fn identity(&self) -> WorldResult<ClusterIdentity> {
        Err(Error::new(Class::Internal, "identity", "not asked here"))
    }
    async fn kinds(&self, _: bool) -> WorldResult<Vec<ApiKind>> {
        let kind = |group: &str, kind: &str, plural: &str| ApiKind {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            plural: plural.into(),
            namespaced: true,
            verbs: vec!["list".into()],
        };
        Ok(vec![
            kind("networking.k8s.io", "Ingress", "ingresses"),
            kind("", "Service", "services"),
        ])
    }
    async fn list(&self, kind: &ApiKind) -> WorldResult<Listing> {
        let items = self
            .0
            .iter()
            .filter(|o| o["kind"] == kind.kind.as_str())
            .cloned()
            .collect();
        Ok(Listing {
            items,
            resource_version: "1".into(),
        })
    }
    async fn get(&self, id: &ObjectId) -> WorldResult<Option<Value>> {
        let same = |o: &&Value| {
            ObjectId::of(o).is_some_and(|i| {
                i.kind == id.kind && i.name == id.name && i.namespace == id.namespace
            })
        };
        Ok(self.0.iter().find(same).cloned())
    }
    async fn create(&self, _: &Value, _: CreateOptions) -> WorldResult<Value> {
        Err(Error::new(Class::Refused, "create", "not here"))
    }
    async fn merge(&self, _: &ObjectId, _: &Value) -> WorldResult<Value> {
        Err(Error::new(Class::Refused, "merge", "not here"))
    }
    async fn delete(&self, _: &ObjectId, _: &str) -> WorldResult<()> {
        Err(Error::new(Class::Refused, "delete", "not here"))
    }
}

struct Content;

#[async_trait]
impl Probe for Content {
    async fn http(&self, probe: &HttpProbe) -> WorldResult<HttpAnswer> {
        Ok(HttpAnswer {
            status: 200,
            headers: BTreeMap::new(),
            body_sha256: String::new(),
            address: probe.host.clone(),
        })
    }
    async fn resolve(&self, name: &str, _: &str) -> WorldResult<DnsAnswer> {
        Err(Error::new(Class::NotFound, name, "not asked here"))
    }
}

/// A journal of progress records in memory.
#[derive(Default)]
struct Memory(Mutex<Vec<Value>>);

impl StepLog for Memory {
    fn progress(&self, _: &str, data: Value) -> Result<(), String> {
        self.0.lock().unwrap().push(data);
        Ok(())
    }
    fn recorded(&self, _: &str) -> Vec<Value> {
        self.0.lock().unwrap().clone()
    }
}

fn ingress(n: usize, hosts: &[String], ip: &str) -> Value {
    let rules: Vec<Value> = hosts
        .iter()
        .map(|h| json!({"host": h, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}}]}}))
        .collect();
    json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": format!("web-{n:03}"), "namespace": "web", "annotations": {"external-dns.alpha.kubernetes.io/ttl": "60"}},
        "spec": {"rules": rules}, "status": {"loadBalancer": {"ingress": [{"ip": ip}]}}})
}

/// What a company is made of.
pub struct Company {
    pub spec: Spec,
    pub snapshot: Snapshot,
    pub plan: Arc<Plan>,
    green: Vec<Value>,
    blue: Vec<Value>,
}

pub fn record(name: &str, rtype: &str, ttl: u32, value: &str) -> RecordSet {
    RecordSet {
        name: format!("{name}."),
        rtype: rtype.into(),
        ttl: Some(ttl),
        values: vec![value.into()],
        alias: None,
        set_identifier: None,
        routing: BTreeMap::new(),
    }
}

impl Company {
    /// So many names of blue's ExternalDNS 0.10.2 in one zone, all in one wave.
    pub fn of(names: usize, zone: &Zone) -> Company {
        let hosts: Vec<String> = (0..names)
            .map(|n| format!("host-{n:04}.shop.test"))
            .collect();
        let object = |ip: &str| -> Vec<Value> {
            hosts
                .chunks(PER_INGRESS)
                .enumerate()
                .map(|(n, h)| ingress(n, h, ip))
                .collect()
        };
        let records = hosts
            .iter()
            .enumerate()
            .flat_map(|(n, h)| {
                let resource = format!("ingress/web/web-{:03}", n / PER_INGRESS);
                [
                    record(h, "A", 60, BLUE_IP),
                    record(h, "TXT", 300, &heritage_value("shop-blue", &resource)),
                ]
            })
            .collect();
        let dns = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "external-dns", "namespace": "platform"},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "dns"}}, "template": {"metadata": {"labels": {"app": "dns"}}, "spec": {"containers": [{"name": "dns", "image": "registry.k8s.io/external-dns/external-dns:v0.10.2",
                "args": ["--provider=aws", "--source=ingress", "--txt-owner-id=shop-blue", "--domain-filter=shop.test", "--aws-zone-type=public"]}]}}}});
        let mut blue = object(BLUE_IP);
        blue.push(dns);
        let mut snapshot = Snapshot::default();
        snapshot.blue.objects = blue.clone();
        snapshot.zones = vec![ZoneRecords {
            zone: zone.clone(),
            records,
        }];
        let spec: Spec = serde_json::from_value(json!({
            "apiVersion": "crossfade.dev/v1alpha1", "kind": "Migration", "name": "big",
            "blue": {"cluster": "shop.test"}, "green": {"name": "shop-green", "version": "1.36"}
        }))
        .unwrap();
        let plan = crossfade::plan::plan(&spec, &snapshot);
        assert_eq!(plan.names.len(), names);
        Company {
            plan: Arc::new(plan),
            green: object(GREEN_IP),
            blue,
            spec,
            snapshot,
        }
    }

    /// Writes blue's zone, as it was found.
    pub async fn seed(&self, dns: &dyn Dns) {
        let zone = &self.snapshot.zones[0];
        let work = zone
            .records
            .iter()
            .map(|r| ((), vec![Change::Create(r.clone())]));
        for batch in switch::pack(work) {
            let changes: Vec<Change> = batch.into_iter().flat_map(|(_, c)| c).collect();
            dns.change(&zone.zone.id, &changes, "seed").await.unwrap();
        }
    }

    pub fn handover(&self) -> &StepSpec {
        self.plan
            .steps
            .iter()
            .find(|s| s.kind == "dns.handover" && s.params["hold"] == true)
            .unwrap()
    }

    /// What the step sees: this Route 53, API servers that hold the objects, probes that are content.
    pub fn cx(&self, dns: Arc<dyn Dns>) -> Cx {
        let rest = Twin::new(&Snapshot::default(), &self.spec, twin::Options::default()).world();
        let world = World {
            blue: Arc::new(Objects(self.blue.clone())),
            green: Arc::new(Objects(self.green.clone())),
            dns,
            probe: Arc::new(Content),
            clock: Arc::new(crossfade::world::live::WorldClock),
            ..rest
        };
        Cx {
            world,
            plan: self.plan.clone(),
            run: "big-1".into(),
            step: self.handover().id.clone(),
            log: Arc::new(Memory::default()),
            outputs: Arc::default(),
            extra: Arc::default(),
        }
    }

    pub fn step(&self) -> Box<dyn Step> {
        registry()["dns.handover"](&self.handover().params).unwrap()
    }
}

/// What the engine does with a step, without its journal: repeats what may pass, polls until it is settled.
pub async fn drive(cx: &Cx, step: &dyn Step) -> (Value, Value) {
    let before = patient(|| step.observe(cx)).await;
    let after = patient(|| step.apply(cx, &before)).await;
    loop {
        match patient(|| step.settle(cx, &before, &after)).await {
            Settle::Ready => return (before, after),
            Settle::Pending { .. } => tokio::time::sleep(Duration::from_millis(200)).await,
            Settle::Failed { why, .. } => panic!("{why}"),
        }
    }
}

async fn patient<T, F: Future<Output = Result<T, StepError>>>(mut call: impl FnMut() -> F) -> T {
    for _ in 0..20 {
        match call().await {
            Ok(t) => return t,
            Err(StepError::World(e)) if e.is_transient() => {
                tokio::time::sleep(Duration::from_millis(50)).await
            }
            Err(e) => panic!("{e}"),
        }
    }
    panic!("it never came through");
}

/// And back.
pub async fn drive_back(cx: &Cx, step: &dyn Step, before: &Value, after: &Value) {
    patient(|| step.undo(cx, before, Some(after))).await;
    loop {
        match patient(|| step.undone(cx, before, Some(after))).await {
            Settle::Ready => return,
            Settle::Pending { .. } => tokio::time::sleep(Duration::from_millis(200)).await,
            Settle::Failed { why, .. } => panic!("{why}"),
        }
    }
}

/// Calls that one wave needs at least, with the reason of each line.
pub struct Needed {
    pub lines: Vec<(usize, String)>,
}

impl Needed {
    /// For a zone of so many record sets, of which these batches change some.
    pub fn of(record_sets_before: usize, record_sets_after: usize, changes: &[Change]) -> Needed {
        let (values, characters) = switch::weight(changes);
        let batches = values
            .div_ceil(switch::BATCH_VALUES)
            .max(characters.div_ceil(switch::BATCH_CHARACTERS));
        let pages = |n: usize| n.div_ceil(300);
        Needed {
            lines: vec![
                (1, "ListHostedZones: the zone is the plan's".into()),
                (
                    pages(record_sets_before),
                    format!(
                        "ListResourceRecordSets: {record_sets_before} record sets before, 300 a page at most: the undo file"
                    ),
                ),
                (
                    batches,
                    format!(
                        "ChangeResourceRecordSets: {values} values and {characters} characters, 1000 and 32000 a batch at most (DELETE of the old plus CREATE of the new counts as one UPSERT does)"
                    ),
                ),
                (
                    batches,
                    "GetChange: each batch has a status of its own, asked once".into(),
                ),
                (
                    pages(record_sets_after),
                    format!(
                        "ListResourceRecordSets: {record_sets_after} record sets after, to prove it by the zone itself (rule 12)"
                    ),
                ),
            ],
        }
    }
    pub fn calls(&self) -> usize {
        self.lines.iter().map(|(n, _)| n).sum()
    }
    pub fn print(&self) {
        println!("calls needed: {}", self.calls());
        for (n, why) in &self.lines {
            println!("  {n:4}  {why}");
        }
    }
}

/// All changes that took a zone from one journaled state to the other.
pub fn changes_of(before: &Value, after: &Value) -> Vec<Change> {
    let groups = |v: &Value| -> BTreeMap<String, Vec<RecordSet>> {
        serde_json::from_value(v["groups"].clone()).unwrap()
    };
    let (old, new) = (groups(before), groups(after));
    new.iter()
        .flat_map(|(k, g)| switch::batch(&old[k], g))
        .collect()
}

/// Route 53 calls of ours that the layer saw since `first`, by action.
pub fn calls_since(strict: &Strict, first: usize, who: &str) -> BTreeMap<String, usize> {
    let mut out = BTreeMap::new();
    for c in strict
        .calls()
        .into_iter()
        .skip(first)
        .filter(|c| c.service == "route53" && c.who == who)
    {
        *out.entry(c.action).or_default() += 1;
    }
    out
}

/// Another tenant of the account: so many requests a second, until dropped.
pub fn tenant(dns: Arc<dyn Dns>, per_second: f64) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        let mut tick = tokio::time::interval(Duration::from_secs_f64(1.0 / per_second));
        loop {
            tick.tick().await;
            let _ = dns.in_sync("C0").await;
        }
    })
}
