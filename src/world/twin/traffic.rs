//! Clients that ask every host all the time through resolvers of three kinds, and writers that remember what was acknowledged.

use super::data::Row;
use super::lb::{Route, normal};
use super::state::{Ev, State};
use crate::object::Side;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What a resolver does with TTLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cache {
    /// Honours them.
    True,
    /// Keeps answers at least this long, whatever the TTL.
    AtLeast,
    /// Never asks twice, as an old JVM.
    Forever,
}

/// What clients and writers saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Answered reads per side, `blue` and `green`.
    pub reads: BTreeMap<String, u64>,
    /// Failed reads.
    pub failed_reads: u64,
    /// Acknowledged rows.
    pub acknowledged: u64,
    /// Writes refused while the company was closed for writes.
    pub refused_writes: u64,
    /// Hosts that clients ask.
    pub hosts: Vec<String>,
}

#[derive(Clone)]
struct Answer {
    address: Option<Arc<str>>,
    until: Option<Duration>,
    /// Side that served the last read, while nothing that routes has moved.
    served: Option<(Side, (u64, u64, u64))>,
}

#[derive(Clone, Default)]
pub(super) struct TrafficState {
    pub seen: Traffic,
    /// Rows by data set, then id.
    pub acknowledged: BTreeMap<String, BTreeMap<u64, Row>>,
    hosts: Vec<String>,
    /// One answer for each host and kind of resolver.
    cache: Vec<[Option<Answer>; 3]>,
    /// Answered reads of blue and green.
    reads: [u64; 2],
    /// Data set and front-door host of each writer.
    writers: Vec<(String, Option<String>)>,
    next: u64,
    moved: Duration,
    inputs: (u64, u64, u64),
}

/// Between two rounds while something moves, and when nothing has moved for a while.
const BUSY: Duration = Duration::from_secs(2);
const IDLE: Duration = Duration::from_secs(30);
const CALM: Duration = Duration::from_secs(300);

impl State {
    /// Finds out which hosts the company serves now, and starts asking.
    pub fn start_traffic(&mut self) {
        if !self.options.traffic {
            return;
        }
        let names: Vec<String> = self
            .dns
            .zones
            .values()
            .filter(|z| !z.zone.private)
            .flat_map(|z| z.records.values())
            .filter(|r| matches!(r.rtype.as_str(), "A" | "CNAME"))
            .map(|r| r.name.trim_end_matches('.').to_owned())
            .collect();
        for host in names {
            let Some((address, _)) = self.look_up(&host) else {
                continue;
            };
            if matches!(self.route(&address, &host), Route::Served(Side::Blue, _)) {
                self.traffic.hosts.push(host);
            }
        }
        self.traffic.hosts.dedup();
        self.traffic.seen.hosts = self.traffic.hosts.clone();
        self.traffic.cache = vec![[None, None, None]; self.traffic.hosts.len()];
        self.traffic.writers = self
            .data
            .sets
            .keys()
            .map(|name| (name.clone(), self.probe_host(name)))
            .collect();
        self.at(Duration::ZERO, Ev::Traffic);
    }

    fn probe_host(&self, set: &str) -> Option<String> {
        let host = self.write_probes.get(set)?.0.clone();
        self.traffic.hosts.contains(&host).then_some(host)
    }

    /// What the name servers say: an address and its TTL in seconds.
    pub fn look_up(&self, host: &str) -> Option<(String, u64)> {
        if let Some(r) = self.dns.answer(host, "A") {
            return match &r.alias {
                // An ELB answers with 60 s (externaldns.md 3); an alias inside the zone has its target's TTL.
                Some(a) if self.is_front(&normal(&a.name)) => Some((normal(&a.name), 60)),
                Some(a) => self
                    .look_up(a.name.trim_end_matches('.'))
                    .or(Some((normal(&a.name), 60))),
                None => Some((r.values.first()?.clone(), u64::from(r.ttl.unwrap_or(300)))),
            };
        }
        let r = self.dns.answer(host, "CNAME")?;
        let target = normal(r.values.first()?);
        let ttl = u64::from(r.ttl.unwrap_or(300));
        Some(if self.is_front(&target) {
            (target, ttl)
        } else {
            self.look_up(&target).unwrap_or((target, ttl))
        })
    }

    /// The address that a resolver hands out for a host, from its cache while that lasts.
    fn resolve_cached(&mut self, cache: Cache, n: usize) -> Option<Arc<str>> {
        if let Some(a) = &self.traffic.cache[n][cache as usize]
            && a.until.is_none_or(|u| self.now < u)
        {
            return a.address.clone();
        }
        let host = self.traffic.hosts[n].clone();
        let found = self.look_up(&host);
        // A name that is gone is remembered for a moment too.
        let ttl = Duration::from_secs(found.as_ref().map_or(5, |f| f.1));
        let until = match cache {
            Cache::True => Some(self.now + ttl),
            Cache::AtLeast => Some(self.now + ttl.max(self.options.min_ttl)),
            Cache::Forever => None,
        };
        let address: Option<Arc<str>> = found.map(|f| f.0.into());
        self.traffic.cache[n][cache as usize] = Some(Answer {
            address: address.clone(),
            until,
            served: None,
        });
        address
    }

    /// One round: everybody reads once, writers write once.
    pub fn traffic_tick(&mut self) {
        for n in 0..self.traffic.hosts.len() {
            for cache in [Cache::True, Cache::AtLeast, Cache::Forever] {
                self.read(cache, n);
            }
        }
        let writers = self.traffic.writers.clone();
        for (n, (set, host)) in writers.iter().enumerate() {
            self.write(n as u32 + 1, set, host.as_deref());
        }
        let inputs = (
            self.blue.routes + self.green.routes,
            self.dns.published,
            self.faults.count(),
        );
        if inputs != self.traffic.inputs {
            self.traffic.inputs = inputs;
            self.traffic.moved = self.now;
        }
        let calm = self.now.saturating_sub(self.traffic.moved) > CALM;
        self.at(if calm { IDLE } else { BUSY }, Ev::Traffic);
    }

    fn read(&mut self, cache: Cache, n: usize) {
        let version = self.routes_version();
        if let Some(Answer {
            until,
            served: Some((side, seen)),
            ..
        }) = &self.traffic.cache[n][cache as usize]
            && *seen == version
            && until.is_none_or(|u| self.now < u)
        {
            self.traffic.reads[*side as usize] += 1;
            return;
        }
        let host = self.traffic.hosts[n].clone();
        let Some(address) = self.resolve_cached(cache, n) else {
            self.traffic.seen.failed_reads += 1;
            return self.violate(format!("a client could not resolve {host}"));
        };
        match self.route(&address, &host) {
            Route::Served(side, _) => {
                self.traffic.reads[side as usize] += 1;
                if let Some(a) = &mut self.traffic.cache[n][cache as usize] {
                    a.served = Some((side, version));
                }
            }
            wrong => {
                self.traffic.seen.failed_reads += 1;
                let how = match cache {
                    Cache::True => "that honours TTLs",
                    Cache::AtLeast => "that keeps answers longer than their TTL",
                    Cache::Forever => "that never asks DNS again",
                };
                let why = match wrong {
                    Route::NoPods(side, s) => {
                        format!("service {s} on {side} has no ready pod (503)")
                    }
                    Route::NoHost(side) => {
                        format!("the load balancer of {side} does not know the host (404)")
                    }
                    _ => "nothing answers there".into(),
                };
                self.violate(format!("a client {how} asked {host} at {address}: {why}"));
            }
        }
    }

    fn write(&mut self, client: u32, set: &str, host: Option<&str>) {
        let side = match host {
            Some(host) => {
                let Some(n) = self.traffic.hosts.iter().position(|h| h == host) else {
                    return;
                };
                let Some(address) = self.resolve_cached(Cache::True, n) else {
                    return;
                };
                match self.route(&address, host) {
                    Route::Served(side, _) => side,
                    _ => return, // The reader of the same host has said so.
                }
            }
            // Without a front door the writer is a pod: it writes where its own side's database is open.
            None => match self.data.sets.get(set) {
                Some(s) if s.green.accepts() => Side::Green,
                _ => Side::Blue,
            },
        };
        self.traffic.next += 1;
        let row = (client, self.traffic.next);
        match self.insert_row(set, side, row) {
            Some(id) => self.acknowledge(set, id, row),
            None => {
                self.traffic.seen.refused_writes += 1;
                let Some(s) = self.data.sets.get(set) else {
                    return;
                };
                let duplicate = s.side(side).duplicate_keys > 0;
                if duplicate {
                    self.violate(format!(
                        "a write to {set} on {side} met a duplicate key: its sequence is behind"
                    ));
                } else if s.side(super::data::other(side)).accepts() {
                    self.violate(format!("a write to {set} reached {side}, which is closed, while the other side is open"));
                }
            }
        }
    }

    /// What clients and writers saw so far.
    pub fn seen(&self) -> Traffic {
        let mut seen = self.traffic.seen.clone();
        for side in [Side::Blue, Side::Green] {
            seen.reads
                .insert(side.to_string(), self.traffic.reads[side as usize]);
        }
        seen
    }

    /// Remembers a row that the company promised to keep.
    pub fn acknowledge(&mut self, set: &str, id: u64, row: Row) {
        self.traffic.seen.acknowledged += 1;
        self.traffic
            .acknowledged
            .entry(set.into())
            .or_default()
            .insert(id, row);
    }

    /// A number that no row has yet.
    pub fn next_row(&mut self) -> u64 {
        self.traffic.next += 1;
        self.traffic.next
    }
}
