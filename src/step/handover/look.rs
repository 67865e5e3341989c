//! What the step looks at: its names, and their record sets as they are now, together as they were together before.

use super::green::hosts;
use super::{Groups, Handover};
use crate::edns::Config;
use crate::edns::switch::{self, Unit};
use crate::plan::model::Name;
use crate::step::{Cx, StepResult};
use crate::world::dns::RecordSet;
use std::collections::{BTreeMap, BTreeSet};

impl Handover {
    /// Names of this step.
    pub(super) fn names<'a>(&self, cx: &'a Cx) -> StepResult<Vec<&'a Name>> {
        let mut wanted: BTreeSet<&str> = self.p.names.iter().map(String::as_str).collect();
        if !self.p.held_of.is_empty() {
            let mut held: BTreeSet<String> = BTreeSet::new();
            for step in &self.p.held_of {
                let of = cx.output(step)?;
                let keys = of["held"].as_object().into_iter().flatten();
                held.extend(keys.flat_map(|(k, _)| k.split('+').map(String::from)));
            }
            wanted.retain(|n| held.contains(*n));
        }
        let mine = |n: &&Name| n.zone_id == self.p.zone_id && wanted.contains(n.host.as_str());
        Ok(cx.plan.names.iter().filter(mine).collect())
    }

    /// Owners whose TXTs are ours to rewrite; none stands for any, in a plan of before owners were kept.
    pub(super) fn owners(cx: &Cx, config: &Config) -> BTreeSet<String> {
        let owners: Option<BTreeSet<String>> =
            cx.plan.names.iter().map(|n| n.owner.clone()).collect();
        owners.map_or_else(BTreeSet::new, |mut o| {
            o.insert(config.owner.clone());
            o
        })
    }

    pub(super) async fn units(&self, cx: &Cx, config: &Config) -> StepResult<Vec<Unit>> {
        let names = self.names(cx)?;
        if names.is_empty() {
            return Ok(vec![]);
        }
        let records = cx.world.dns.records(&self.p.zone_id).await?;
        let owners = Self::owners(cx, config);
        Ok(switch::units(
            &hosts(names.into_iter()),
            &records,
            config,
            &owners,
        ))
    }

    /// The units of an earlier look as they are now: the same hosts together, whatever was added since.
    pub(super) async fn again(
        &self,
        cx: &Cx,
        config: &Config,
        before: &Groups,
    ) -> StepResult<Groups> {
        if before.is_empty() {
            return Ok(Groups::new());
        }
        let records = cx.world.dns.records(&self.p.zone_id).await?;
        let owners = Self::owners(cx, config);
        let all = hosts(cx.plan.names.iter().filter(|n| n.zone_id == self.p.zone_id));
        let all: Vec<switch::Host> = {
            let asked: BTreeSet<&str> = before.keys().flat_map(|k| k.split('+')).collect();
            let asked_for = |h: &switch::Host| asked.contains(h.host.as_str());
            all.into_iter().filter(asked_for).collect()
        };
        let key_of: BTreeMap<&str, &String> = before
            .keys()
            .flat_map(|k| k.split('+').map(move |h| (h, k)))
            .collect();
        let mut now: BTreeMap<String, Vec<RecordSet>> = BTreeMap::new();
        for unit in switch::units(&all, &records, config, &owners) {
            let key = match key_of.get(unit.hosts[0].host.as_str()) {
                Some(key) => (*key).clone(),
                None => unit.key(),
            };
            now.entry(key).or_default().extend(unit.records);
        }
        for (key, group) in &mut now {
            group.sort_by_key(RecordSet::key);
            group.dedup();
            debug_assert!(before.contains_key(key));
        }
        for key in before.keys() {
            now.entry(key.clone()).or_default();
        }
        Ok(now)
    }

    /// Names of the zone by host.
    pub(super) fn by_host<'a>(&self, cx: &'a Cx) -> BTreeMap<&'a str, Vec<&'a Name>> {
        let mut by_host: BTreeMap<&str, Vec<&Name>> = BTreeMap::new();
        for n in cx.plan.names.iter().filter(|n| n.zone_id == self.p.zone_id) {
            by_host.entry(n.host.as_str()).or_default().push(n);
        }
        by_host
    }

    /// The unit of an earlier look, with these records.
    pub(super) fn unit(
        by_host: &BTreeMap<&str, Vec<&Name>>,
        key: &str,
        records: &[RecordSet],
    ) -> Unit {
        let names = key.split('+').filter_map(|h| by_host.get(h)).flatten();
        Unit {
            hosts: hosts(names.copied()),
            records: records.to_vec(),
        }
    }
}
