//! A toy world for the engine's own tests: two "clusters" that are maps, calls that can fail, be lost or be refused, and four step kinds.

use super::{Engine, Events, Options, Registry, silent};
use crate::journal::Journal;
use crate::object::{ObjectId, Side, label};
use crate::plan::model::{Basis, Phase, Plan, Promise, StepSpec, Target, TargetCluster, Timeline};
use crate::step::{Cx, Factory, Group, Settle, Step, StepError, StepResult};
use crate::world::cloud::{Cloud, CloudIdentity, Found, Inventory, Resource};
use crate::world::data::{Data, DatabaseState, StreamState, TableState};
use crate::world::dns::{Change, Dns, RecordSet, Zone};
use crate::world::kube::{ApiKind, ClusterIdentity, CreateOptions, Kube, KubeVersion, Listing};
use crate::world::probe::{DnsAnswer, HttpAnswer, HttpProbe, Probe};
use crate::world::{Class, Clock, Error, Result, World};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What happens to one call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// It happens, but the answer is lost.
    LostReply,
    /// It does not happen.
    NoConnection,
    /// The server refuses it.
    Refused,
}

#[derive(Default)]
struct Shared {
    objects: BTreeMap<(Side, String), Value>,
    serial: u64,
    calls: u64,
    writes: u64,
    /// Numbers of calls (from 1) that go wrong.
    faults: BTreeMap<u64, Fault>,
}

/// Both clusters.
#[derive(Clone, Default)]
pub struct Toy(Arc<Mutex<Shared>>);

impl Toy {
    pub fn new() -> Self {
        let toy = Toy::default();
        for name in ["web", "api"] {
            toy.put(Side::Blue, name, "old");
        }
        toy
    }
    pub fn put(&self, side: Side, name: &str, value: &str) {
        let mut s = self.0.lock().unwrap();
        s.serial += 1;
        let serial = s.serial.to_string();
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "toy", "uid": format!("u{serial}"), "resourceVersion": serial}, "data": {"value": value}});
        s.objects.insert((side, id(name).to_string()), object);
    }
    pub fn fault(&self, call: u64, fault: Fault) {
        self.0.lock().unwrap().faults.insert(call, fault);
    }
    pub fn calls(&self) -> u64 {
        self.0.lock().unwrap().calls
    }
    pub fn writes(&self) -> u64 {
        self.0.lock().unwrap().writes
    }
    /// The end state, without what servers number.
    pub fn state(&self) -> BTreeMap<String, Value> {
        let s = self.0.lock().unwrap();
        s.objects
            .iter()
            .map(|((side, id), o)| (format!("{side}/{id}"), o["data"].clone()))
            .collect()
    }
    pub fn world(&self) -> World {
        World {
            blue: Arc::new(ToyKube(self.clone(), Side::Blue)),
            green: Arc::new(ToyKube(self.clone(), Side::Green)),
            dns: Arc::new(Rest),
            cloud: Arc::new(Rest),
            terraform: Arc::new(crate::world::terraform::Without),
            data: Arc::new(Rest),
            probe: Arc::new(Rest),
            clock: Arc::new(ToyClock(tokio::time::Instant::now())),
        }
    }
    /// One call: counts it, and says what goes wrong with it.
    fn call<T>(&self, write: bool, act: impl FnOnce(&mut Shared) -> Result<T>) -> Result<T> {
        let mut s = self.0.lock().unwrap();
        s.calls += 1;
        let fault = s.calls;
        let fault = s.faults.remove(&fault);
        match fault {
            Some(Fault::NoConnection) => {
                return Err(Error::new(Class::Unreachable, "toy", "no connection"));
            }
            Some(Fault::Refused) => return Err(Error::new(Class::Refused, "toy", "no")),
            _ => {}
        }
        let answer = act(&mut s)?;
        s.writes += u64::from(write);
        match fault {
            Some(Fault::LostReply) => {
                Err(Error::new(Class::Unreachable, "toy", "the answer was lost"))
            }
            _ => Ok(answer),
        }
    }
}

pub fn id(name: &str) -> ObjectId {
    ObjectId::new("v1", "ConfigMap", Some("toy"), name)
}

struct ToyClock(tokio::time::Instant);
impl Clock for ToyClock {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::from_second(1_800_000_000).unwrap() + self.0.elapsed()
    }
}

struct ToyKube(Toy, Side);
#[async_trait]
impl Kube for ToyKube {
    async fn version(&self) -> Result<KubeVersion> {
        unreachable!("the engine does not ask")
    }
    async fn identity(&self) -> Result<ClusterIdentity> {
        Ok(ClusterIdentity {
            uid: "uid-blue".into(),
            ca_sha256: "ca-blue".into(),
        })
    }
    async fn kinds(&self, _refresh: bool) -> Result<Vec<ApiKind>> {
        Ok(vec![ApiKind {
            group: String::new(),
            version: "v1".into(),
            kind: "ConfigMap".into(),
            plural: "configmaps".into(),
            namespaced: true,
            verbs: vec!["list".into()],
        }])
    }
    async fn list(&self, _kind: &ApiKind) -> Result<Listing> {
        let s = self.0.0.lock().unwrap();
        Ok(Listing {
            items: s
                .objects
                .iter()
                .filter(|((side, _), _)| *side == self.1)
                .map(|(_, o)| o.clone())
                .collect(),
            resource_version: s.serial.to_string(),
        })
    }
    async fn get(&self, id: &ObjectId) -> Result<Option<Value>> {
        self.0.call(false, |s| {
            Ok(s.objects.get(&(self.1, id.to_string())).cloned())
        })
    }
    async fn create(&self, object: &Value, _options: CreateOptions) -> Result<Value> {
        let key = (self.1, ObjectId::of(object).unwrap().to_string());
        self.0.call(true, |s| {
            if s.objects.contains_key(&key) {
                return Err(Error::new(Class::AlreadyExists, &key.1, "exists"));
            }
            s.serial += 1;
            let mut object = object.clone();
            object["metadata"]["uid"] = json!(format!("u{}", s.serial));
            object["metadata"]["resourceVersion"] = json!(s.serial.to_string());
            s.objects.insert(key.clone(), object.clone());
            Ok(object)
        })
    }
    async fn merge(&self, id: &ObjectId, body: &Value) -> Result<Value> {
        let key = (self.1, id.to_string());
        self.0.call(true, |s| {
            s.serial += 1;
            let serial = s.serial.to_string();
            let object = s
                .objects
                .get_mut(&key)
                .ok_or_else(|| Error::new(Class::NotFound, &key.1, "gone"))?;
            if body["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
                return Err(Error::new(Class::Conflict, &key.1, "changed"));
            }
            object["data"] = body["data"].clone();
            object["metadata"]["resourceVersion"] = json!(serial);
            Ok(object.clone())
        })
    }
    async fn delete(&self, id: &ObjectId, uid: &str) -> Result<()> {
        let key = (self.1, id.to_string());
        self.0.call(true, |s| match s.objects.get(&key) {
            None => Err(Error::new(Class::NotFound, &key.1, "gone")),
            Some(o) if o["metadata"]["uid"] != uid => {
                Err(Error::new(Class::Conflict, &key.1, "another uid"))
            }
            Some(_) => {
                s.objects.remove(&key);
                Ok(())
            }
        })
    }
}

/// Everything that the engine itself needs of the rest of the world: identities.
struct Rest;
#[async_trait]
impl Cloud for Rest {
    async fn identity(&self) -> Result<CloudIdentity> {
        Ok(CloudIdentity {
            account: "111111111111".into(),
            region: "eu-west-1".into(),
            arn: "arn:aws:iam::111111111111:role/ops".into(),
        })
    }
    async fn assumable(&self, _: &str) -> Result<Option<String>> {
        unreachable!("the engine does not ask")
    }
    async fn find(&self, _: &Resource) -> Result<Option<Found>> {
        unreachable!("the engine does not ask")
    }
    async fn create(&self, _: &Resource, _: &str) -> Result<()> {
        unreachable!("the engine does not ask")
    }
    async fn delete(&self, _: &Resource) -> Result<()> {
        unreachable!("the engine does not ask")
    }
    async fn inventory(&self, _: &str) -> Result<Inventory> {
        unreachable!("the engine does not ask")
    }
}
#[async_trait]
impl Dns for Rest {
    async fn zones(&self) -> Result<Vec<Zone>> {
        Ok(vec![Zone {
            id: "Z1".into(),
            name: "shop.test.".into(),
            private: false,
        }])
    }
    async fn records(&self, _: &str) -> Result<Vec<RecordSet>> {
        Ok(vec![])
    }
    async fn change(&self, _: &str, _: &[Change], _: &str) -> Result<String> {
        unreachable!("the engine does not ask")
    }
    async fn in_sync(&self, _: &str) -> Result<bool> {
        unreachable!("the engine does not ask")
    }
}
#[async_trait]
impl Data for Rest {
    async fn state(&self, _: &str, _: Side) -> Result<DatabaseState> {
        unreachable!("the engine does not ask")
    }
    async fn set_writable(&self, _: &str, _: Side, _: bool) -> Result<()> {
        unreachable!("the engine does not ask")
    }
    async fn probe_write(&self, _: &str, _: Side) -> Result<bool> {
        unreachable!("the engine does not ask")
    }
    async fn start_stream(&self, _: &str, _: Side, _: bool) -> Result<()> {
        unreachable!("the engine does not ask")
    }
    async fn stream(&self, _: &str, _: Side) -> Result<StreamState> {
        unreachable!("the engine does not ask")
    }
    async fn stop_stream(&self, _: &str, _: Side) -> Result<()> {
        unreachable!("the engine does not ask")
    }
    async fn copy_sequences(&self, _: &str, _: Side) -> Result<()> {
        unreachable!("the engine does not ask")
    }
    async fn tables(&self, _: &str, _: Side) -> Result<Vec<TableState>> {
        unreachable!("the engine does not ask")
    }
}
#[async_trait]
impl Probe for Rest {
    async fn http(&self, _: &HttpProbe) -> Result<HttpAnswer> {
        unreachable!("the engine does not ask")
    }
    async fn resolve(&self, _: &str, _: &str) -> Result<DnsAnswer> {
        unreachable!("the engine does not ask")
    }
}

fn text(params: &Value, key: &str) -> std::result::Result<String, String> {
    params[key]
        .as_str()
        .map(Into::into)
        .ok_or_else(|| format!("no {key}"))
}

/// Sets a value on blue; settles five seconds later.
struct Set {
    name: String,
    value: String,
}
impl Set {
    async fn write(&self, cx: &Cx, from: &Value, to: &Value) -> StepResult<()> {
        let object = cx.world.blue.get(&id(&self.name)).await?;
        let found = object
            .as_ref()
            .map_or(Value::Null, |o| o["data"]["value"].clone());
        if found == *to {
            return Ok(());
        }
        let Some(object) = object.filter(|_| found == *from) else {
            return Err(StepError::Changed {
                object: id(&self.name).to_string(),
                expected: from.to_string(),
                found: found.to_string(),
            });
        };
        let body = json!({"metadata": {"resourceVersion": object["metadata"]["resourceVersion"]}, "data": {"value": to}});
        cx.world.blue.merge(&id(&self.name), &body).await?;
        Ok(())
    }
}
#[async_trait]
impl Step for Set {
    async fn observe(&self, cx: &Cx) -> StepResult<Value> {
        let object = cx.world.blue.get(&id(&self.name)).await?;
        Ok(object.map_or(Value::Null, |o| o["data"]["value"].clone()))
    }
    async fn apply(&self, cx: &Cx, before: &Value) -> StepResult<Value> {
        self.write(cx, before, &json!(self.value)).await?;
        Ok(json!(cx.world.clock.now().as_second()))
    }
    async fn settle(&self, cx: &Cx, _: &Value, after: &Value) -> StepResult<Settle> {
        if cx.world.clock.now().as_second() >= after.as_i64().unwrap() + 5 {
            return Ok(Settle::Ready);
        }
        Ok(Settle::Pending {
            why: format!("{} to settle", self.name),
            poll: Duration::from_secs(1),
        })
    }
    async fn undo(&self, cx: &Cx, before: &Value, _: Option<&Value>) -> StepResult<()> {
        self.write(cx, &json!(self.value), before).await
    }
}

/// Creates objects on green, two a group, journaled per group.
struct Wave {
    names: Vec<String>,
}
#[async_trait]
impl Step for Wave {
    async fn observe(&self, cx: &Cx) -> StepResult<Value> {
        for name in &self.names {
            if cx.world.green.get(&id(name)).await?.is_some() {
                return Err(StepError::Refused {
                    object: id(name).to_string(),
                    why: "it is there already".into(),
                    remedy: "remove it".into(),
                });
            }
        }
        Ok(json!({}))
    }
    async fn apply(&self, cx: &Cx, _: &Value) -> StepResult<Value> {
        let done = cx.log.recorded(&cx.step).len() * 2;
        for group in self.names.chunks(2).skip(done / 2) {
            for name in group {
                let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "toy", "labels": {"run": cx.run}}, "data": {"value": "made"}});
                match cx
                    .world
                    .green
                    .create(&object, CreateOptions::default())
                    .await
                {
                    Err(e) if e.class == Class::AlreadyExists => {}
                    other => {
                        other?;
                    }
                }
            }
            let group = json!(Group {
                objects: group.to_vec()
            });
            cx.log
                .progress(&cx.step, group)
                .map_err(StepError::Journal)?;
        }
        Ok(json!({"made": self.names.len()}))
    }
    async fn settle(&self, _: &Cx, _: &Value, _: &Value) -> StepResult<Settle> {
        Ok(Settle::Ready)
    }
    async fn undo(&self, cx: &Cx, _: &Value, _: Option<&Value>) -> StepResult<()> {
        for name in &self.names {
            if let Some(o) = cx.world.green.get(&id(name)).await?
                && label(&o, "run") == Some(&cx.run)
            {
                match cx
                    .world
                    .green
                    .delete(&id(name), o["metadata"]["uid"].as_str().unwrap())
                    .await
                {
                    Err(e) if e.class == Class::NotFound => {}
                    other => other?,
                }
            }
        }
        Ok(())
    }
    async fn undone(&self, cx: &Cx, _: &Value, _: Option<&Value>) -> StepResult<Settle> {
        for name in &self.names {
            if cx.world.green.get(&id(name)).await?.is_some() {
                return Ok(Settle::Pending {
                    why: format!("{name} to go"),
                    poll: Duration::from_secs(1),
                });
            }
        }
        Ok(Settle::Ready)
    }
}

/// Waits for a time after an earlier step was applied.
struct Wait {
    of: String,
    seconds: i64,
}
#[async_trait]
impl Step for Wait {
    async fn observe(&self, _: &Cx) -> StepResult<Value> {
        Ok(Value::Null)
    }
    async fn apply(&self, cx: &Cx, _: &Value) -> StepResult<Value> {
        let outputs = cx.outputs.read().unwrap();
        let from = outputs[&self.of]
            .as_i64()
            .expect("output of the step before");
        Ok(json!(from + self.seconds))
    }
    async fn settle(&self, cx: &Cx, _: &Value, after: &Value) -> StepResult<Settle> {
        let left = after.as_i64().unwrap() - cx.world.clock.now().as_second();
        if left <= 0 {
            return Ok(Settle::Ready);
        }
        Ok(Settle::Pending {
            why: "old TTLs to run out".into(),
            poll: Duration::from_secs(left.min(600) as u64),
        })
    }
    async fn undo(&self, _: &Cx, _: &Value, _: Option<&Value>) -> StepResult<()> {
        Ok(())
    }
}

pub fn registry() -> Registry {
    let set: Factory = |p| {
        Ok(Box::new(Set {
            name: text(p, "name")?,
            value: text(p, "value")?,
        }))
    };
    let wave: Factory = |p| {
        let names = p["names"].as_array().ok_or("no names")?;
        Ok(Box::new(Wave {
            names: names
                .iter()
                .filter_map(Value::as_str)
                .map(Into::into)
                .collect(),
        }))
    };
    let wait: Factory = |p| {
        Ok(Box::new(Wait {
            of: text(p, "of")?,
            seconds: p["seconds"].as_i64().ok_or("no seconds")?,
        }))
    };
    BTreeMap::from([("toy.set", set), ("toy.wave", wave), ("toy.wait", wait)])
}

fn step(id: &str, phase: Phase, kind: &str, needs: &[&str], params: Value) -> StepSpec {
    StepSpec {
        id: id.into(),
        phase,
        kind: kind.into(),
        needs: needs.iter().map(|n| n.to_string()).collect(),
        promise: Promise::Exact,
        summary: format!("does {id}"),
        params,
        expect_s: [1, 10],
    }
}

/// ttl (+ an hour's wait) beside provision, a data step that runs early, then replay, unpark, cutover.
pub fn plan() -> Plan {
    let spec = serde_json::from_value(json!({"apiVersion": "crossfade.dev/v1alpha1", "kind": "Migration", "name": "toy", "blue": {"cluster": "toy.test"}, "green": {"name": "toy-green"}})).unwrap();
    Plan {
        api_version: "crossfade.dev/v1alpha1".into(),
        kind: "Plan".into(),
        digest: "d1a2b3c4d5".into(),
        spec,
        basis: Basis {
            account: Some("111111111111".into()),
            region: Some("eu-west-1".into()),
            blue: Some(ClusterIdentity {
                uid: "uid-blue".into(),
                ca_sha256: "ca-blue".into(),
            }),
            zones: BTreeMap::from([("shop.test".into(), "Z1".into())]),
            ..Basis::default()
        },
        target: Target {
            cluster: TargetCluster {
                name: "toy-green".into(),
                version: "1.36".into(),
                region: "eu-west-1".into(),
                subnets: vec![],
            },
            node_groups: vec![],
            roles: vec![],
            addons: vec![],
            resources: vec![],
            components: vec![],
            access: vec![],
        },
        findings: vec![],
        verdicts: Default::default(),
        fields: vec![],
        hazards: Default::default(),
        network: Default::default(),
        cost: Default::default(),
        generated: vec![],
        names: vec![],
        steps: vec![
            step(
                "ttl/lower",
                Phase::Ttl,
                "toy.set",
                &[],
                json!({"name": "web", "value": "low"}),
            ),
            step(
                "ttl/wait",
                Phase::Ttl,
                "toy.wait",
                &["ttl/lower"],
                json!({"of": "ttl/lower", "seconds": 3600}),
            ),
            step(
                "provision/nodes",
                Phase::Provision,
                "toy.wave",
                &[],
                json!({"names": ["n1", "n2", "n3"]}),
            ),
            step(
                "data/stream",
                Phase::Data,
                "toy.wave",
                &[],
                json!({"names": ["slot"]}),
            ),
            step(
                "replay/objects",
                Phase::Replay,
                "toy.wave",
                &["provision/nodes"],
                json!({"names": ["o1", "o2", "o3", "o4", "o5"]}),
            ),
            step(
                "unpark/all",
                Phase::Unpark,
                "toy.wave",
                &["replay/objects", "data/stream"],
                json!({"names": ["pods"]}),
            ),
            step(
                "cutover/names",
                Phase::Cutover,
                "toy.set",
                &["unpark/all", "ttl/wait"],
                json!({"name": "api", "value": "green"}),
            ),
        ],
        timeline: Timeline::default(),
    }
}

pub fn engine(toy: &Toy, journal: &Arc<Journal>) -> Engine {
    engine_with(toy, journal, plan(), silent())
}

pub fn engine_with(toy: &Toy, journal: &Arc<Journal>, plan: Plan, events: Events) -> Engine {
    Engine::new(
        toy.world(),
        Arc::new(plan),
        journal.clone(),
        registry(),
        events,
    )
    .options(Options {
        by: "ops@here".into(),
        ..Options::default()
    })
}
