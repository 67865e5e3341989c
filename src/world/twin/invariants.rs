//! Promises that hold after every call and every event (DESIGN 5), and what an observer must remember to judge them.

use super::edns::config_of;
use super::state::State;
use super::store::Key;
use crate::edns::ownership;
use crate::object::{Side, annotation};
use crate::spec::model::Spec;
use crate::world::dns::{RecordKey, RecordSet};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Marks a workload of which never two may run.
pub(super) const SINGLETON: &str = "crossfade.dev/singleton";

/// One write request to blue's API server.
#[derive(Clone, Debug, PartialEq)]
pub struct BlueWrite {
    /// Virtual time.
    pub at: Duration,
    /// `create`, `merge` or `delete`.
    pub verb: String,
    /// Object as spelled everywhere.
    pub object: String,
    /// Body of the request.
    pub body: Value,
}

#[derive(Clone)]
pub(super) struct Invariants {
    found: Vec<String>,
    said: BTreeSet<String>,
    pub blue_writes: Vec<BlueWrite>,
    declared_singletons: BTreeSet<String>,
    foreign: BTreeMap<String, Vec<RecordSet>>,
    closed_since: Option<Duration>,
    closed: Duration,
    pub cron_planned: BTreeSet<(Side, Key)>,
}

impl Invariants {
    pub fn new(spec: &Spec) -> Self {
        Invariants {
            found: vec![],
            said: BTreeSet::new(),
            blue_writes: vec![],
            declared_singletons: spec.workloads.singletons.iter().cloned().collect(),
            foreign: BTreeMap::new(),
            closed_since: None,
            closed: Duration::ZERO,
            cron_planned: BTreeSet::new(),
        }
    }
}

impl State {
    /// Notes a broken promise; the same sentence is said once.
    pub fn violate(&mut self, what: String) {
        if self.invariants.said.insert(what.clone()) {
            self.invariants
                .found
                .push(format!("{:.0?}s: {what}", self.now.as_secs_f64()));
        }
    }

    /// Everything broken so far, lost rows included.
    pub fn violations(&self) -> Vec<String> {
        let mut all = self.invariants.found.clone();
        all.extend(self.lost_rows());
        all
    }

    pub fn write_closed(&self) -> Duration {
        self.invariants.closed
            + self
                .invariants
                .closed_since
                .map_or(Duration::ZERO, |s| self.now - s)
    }

    /// Records that are not blue's ExternalDNS's: nobody may touch them.
    pub fn note_foreign_records(&mut self) {
        let configs: Vec<_> = self
            .blue
            .of_kind("apps", "Deployment")
            .filter_map(|(_, d)| config_of(d))
            .collect();
        for (id, zone) in &self.dns.zones {
            let records: Vec<RecordSet> = zone.records.values().cloned().collect();
            let mut ours: BTreeSet<RecordKey> = BTreeSet::new();
            for config in &configs {
                for o in ownership(&records, config) {
                    if o.owner.as_deref() == Some(config.owner.as_str()) {
                        ours.insert(o.key);
                        ours.extend(o.txt);
                    }
                }
            }
            let foreign = records
                .into_iter()
                .filter(|r| !ours.contains(&r.key()))
                .collect();
            self.invariants.foreign.insert(id.clone(), foreign);
        }
    }

    /// After a batch: everybody else's records are as they were.
    pub fn check_foreign_records(&mut self, zone_id: &str) {
        let Some(zone) = self.dns.zones.get(zone_id) else {
            return;
        };
        let broken: Vec<String> = self
            .invariants
            .foreign
            .get(zone_id)
            .into_iter()
            .flatten()
            .filter(|r| !zone.records.values().any(|now| now == *r))
            .map(|r| format!("{} belongs to somebody else and was changed", r.key()))
            .collect();
        for b in broken {
            self.violate(b);
        }
    }

    /// Looks at what must hold at every moment.
    pub fn check_invariants(&mut self) {
        let mut all_open = true;
        let both: Vec<String> = self
            .data
            .sets
            .iter()
            .filter_map(|(name, set)| {
                let (b, g) = (set.blue.accepts(), set.green.accepts());
                all_open &= b || g;
                (b && g).then(|| format!("data set {name} can be written on both sides"))
            })
            .collect();
        for b in both {
            self.violate(b);
        }
        match (all_open, self.invariants.closed_since) {
            (false, None) => self.invariants.closed_since = Some(self.now),
            (true, Some(since)) => {
                self.invariants.closed += self.now - since;
                self.invariants.closed_since = None;
            }
            _ => {}
        }
    }

    /// A singleton never runs on both sides at once; a pod that is still leaving counts.
    pub fn check_singleton(&mut self, workload: &Key) {
        let id = format!(
            "{}/{}/{}",
            workload.1.to_lowercase(),
            workload.2,
            workload.3
        );
        let marked = self
            .blue
            .objects
            .get(workload)
            .is_some_and(|w| annotation(w, SINGLETON) == Some("true"));
        let single = marked || self.invariants.declared_singletons.contains(&id);
        if single && self.runs(Side::Blue, workload) && self.runs(Side::Green, workload) {
            self.violate(format!("{id} must be single and runs on both sides"));
        }
    }

    fn runs(&self, side: Side, workload: &Key) -> bool {
        let store = self.store(side);
        let Some(uid) = store.objects.get(workload).and_then(crate::object::uid) else {
            return false;
        };
        store.pods_of(&workload.2, uid).any(|(_, p)| p.running)
    }
}
