//! The ExternalDNS instances of both sides: the pure model of `edns`, run as the controller it is.
//!
//! An instance runs while its Deployment has a ready pod. A loop whose inputs have not changed since the last one would do
//! the same again, so it sleeps until a record, Ingress or Service moves and then acts on its next interval.

use super::state::{Ev, State};
use super::store::{Key, Store};
use crate::edns::{Config, desired, plan_groups};
use crate::object::Side;
use crate::world::dns::Change;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

pub(super) type InstanceKey = (Side, String, String);

#[derive(Clone)]
struct Instance {
    started: Duration,
    /// Inputs of the last loop: zone serials and the side's names.
    seen: Option<(u64, u64, u64)>,
    scheduled: bool,
    config: Config,
}

#[derive(Clone, Default)]
pub(super) struct EdnsState {
    instances: BTreeMap<InstanceKey, Instance>,
    pub log: Vec<String>,
}

/// Configuration of a Deployment that runs an ExternalDNS which this model can play.
pub(super) fn config_of(deployment: &Value) -> Option<Config> {
    Config::of_workload(deployment)?.ok()
}

impl State {
    /// Instances that run from the beginning.
    pub fn start_edns(&mut self) {
        for side in [Side::Blue, Side::Green] {
            let keys: Vec<Key> = self
                .store(side)
                .of_kind("apps", "Deployment")
                .map(|(k, _)| k.clone())
                .collect();
            for key in keys {
                self.edns_maybe_started(side, &key);
            }
        }
    }

    /// A pod of a workload became ready: if it is an ExternalDNS, its loop begins.
    pub fn edns_maybe_started(&mut self, side: Side, owner: &Key) {
        if owner.1 != "Deployment" || !self.edns_running(side, owner) {
            return;
        }
        let Some(config) = self.store(side).objects.get(owner).and_then(config_of) else {
            return;
        };
        let id = (side, owner.2.clone(), owner.3.clone());
        let started = self.now;
        let fresh = self
            .edns
            .instances
            .get(&id)
            .is_none_or(|i| i.config != config);
        if fresh {
            self.edns.instances.insert(
                id.clone(),
                Instance {
                    started,
                    seen: None,
                    scheduled: true,
                    config,
                },
            );
            self.at(Duration::from_secs(1), Ev::Edns(id));
        }
    }

    fn edns_running(&self, side: Side, owner: &Key) -> bool {
        let store = self.store(side);
        let Some(uid) = store.objects.get(owner).and_then(crate::object::uid) else {
            return false;
        };
        store.pods_of(&owner.2, uid).any(|(_, p)| p.ready)
    }

    fn edns_inputs(&self, side: Side) -> (u64, u64, u64) {
        let serials = self.dns.zones.values().map(|z| z.serial).sum();
        let store: &Store = self.store(side);
        (serials, store.names, self.dns.zones.len() as u64)
    }

    /// Schedules the loops of instances whose inputs have changed.
    pub fn wake_edns(&mut self) {
        let mut due = vec![];
        for (id, i) in &self.edns.instances {
            if !i.scheduled && i.seen != Some(self.edns_inputs(id.0)) {
                let interval = Duration::from_secs(u64::from(i.config.interval.max(1)));
                let since = self.now.saturating_sub(i.started);
                let wait = interval.saturating_sub(Duration::from_nanos(
                    (since.as_nanos() % interval.as_nanos()) as u64,
                ));
                due.push((id.clone(), wait));
            }
        }
        for (id, wait) in due {
            if let Some(i) = self.edns.instances.get_mut(&id) {
                i.scheduled = true;
            }
            self.at(wait, Ev::Edns(id));
        }
    }

    /// One loop of an instance.
    pub fn edns_loop(&mut self, id: &InstanceKey) {
        let (side, ns, name) = id;
        let owner = super::store::key_of("apps", "Deployment", ns, name);
        if !self.edns_running(*side, &owner) {
            self.edns.instances.remove(id);
            return;
        }
        let Some(instance) = self.edns.instances.get(id) else {
            return;
        };
        let config = instance.config.clone();
        let inputs = self.edns_inputs(*side);
        let store = self.store(*side);
        let mut objects: Vec<Value> = store
            .of_kind("networking.k8s.io", "Ingress")
            .map(|(_, o)| o.clone())
            .collect();
        objects.extend(store.of_kind("", "Service").map(|(_, o)| o.clone()));
        objects.extend(
            store
                .of_kind("externaldns.k8s.io", "DNSEndpoint")
                .map(|(_, o)| o.clone()),
        );
        let wanted = desired(&objects, &config);
        let account = store
            .objects
            .get(&owner)
            .and_then(|d| d.pointer("/spec/template/spec/serviceAccountName"))
            .and_then(Value::as_str)
            .unwrap_or("default");
        let denied = *side == Side::Green && self.identity_broken(ns, account).is_some();
        let mut batches: Vec<(String, Vec<Vec<Change>>)> = vec![];
        for (zone_id, zone) in &self.dns.zones {
            let records: Vec<_> = zone.records.values().cloned().collect();
            let groups = plan_groups(&config, &records, &wanted, &zone.zone);
            if groups.is_empty() || config.dry_run || denied {
                continue;
            }
            let mut groups: Vec<Vec<Change>> = groups.into_iter().map(|g| g.changes).collect();
            // Up to 0.13.3 one poison record blocks the whole zone (externaldns.md 4).
            if !config.version.at_least(13, 4) {
                groups = vec![groups.concat()];
            }
            batches.push((zone_id.clone(), groups));
        }
        for (zone_id, groups) in batches {
            for group in groups {
                let outcome = self.change_records(&zone_id, &group);
                for c in &group {
                    let (verb, r) = match c {
                        Change::Create(r) => ("CREATE", r),
                        Change::Delete(r) => ("DELETE", r),
                        Change::Upsert(r) => ("UPSERT", r),
                    };
                    let failed = if outcome.is_err() { " (refused)" } else { "" };
                    self.edns.log.push(format!(
                        "{side} {ns}/{name} {verb} {} {}{failed}",
                        r.name, r.rtype
                    ));
                }
            }
        }
        if let Some(i) = self.edns.instances.get_mut(id) {
            // What it saw, not what it wrote: its own changes are looked at once more in the next loop, as by the real one.
            i.seen = Some(inputs);
            i.scheduled = false;
        }
    }
}
