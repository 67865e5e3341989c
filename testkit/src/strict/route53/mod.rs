//! Route 53, wholly our own: the emulator's store is neither atomic nor exact (eks.md 7), so nothing of it is used.
//! Health checks alone are the emulator's.

pub mod batch;
pub mod record;
mod service;
pub mod values;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use batch::Records;
use record::{Key, RecordSet};

pub(crate) use service::{action_of, handle, params_of};

pub const NAMESPACE: &str = "https://route53.amazonaws.com/doc/2013-04-01/";

/// One hosted zone.
#[derive(Debug, Clone)]
pub struct Zone {
    /// Without `/hostedzone/`.
    pub id: String,
    /// Lower case, trailing dot.
    pub name: String,
    pub caller_reference: String,
    pub comment: Option<String>,
    pub private: bool,
    /// `(region, vpc id)` of a private zone.
    pub vpcs: Vec<(String, String)>,
    pub records: Records,
    pub tags: BTreeMap<String, String>,
    pub name_servers: Vec<String>,
}

#[derive(Debug)]
struct ChangeInfo {
    id: String,
    submitted: jiff::Timestamp,
    at: Instant,
}

/// All zones and changes of the account.
#[derive(Debug, Default)]
pub(crate) struct Store {
    zones: BTreeMap<String, Zone>,
    changes: BTreeMap<String, ChangeInfo>,
    /// Requests a second; none means unlimited (AWS: 5 per account).
    pub rate: Option<usize>,
    recent: VecDeque<Instant>,
}

impl Store {
    /// Whether this request is over the account's rate.
    pub fn over_rate(&mut self) -> bool {
        let Some(rate) = self.rate else {
            return false;
        };
        let now = Instant::now();
        while self
            .recent
            .front()
            .is_some_and(|at| now.duration_since(*at) >= Duration::from_secs(1))
        {
            self.recent.pop_front();
        }
        if self.recent.len() >= rate {
            return true;
        }
        self.recent.push_back(now);
        false
    }

    pub fn zones(&self) -> Vec<Zone> {
        self.zones.values().cloned().collect()
    }

    fn submit(&mut self) -> &ChangeInfo {
        let id = format!("C{}", short_id(20));
        let info = ChangeInfo {
            id: id.clone(),
            submitted: jiff::Timestamp::now(),
            at: Instant::now(),
        };
        self.changes.entry(id).or_insert(info)
    }
}

/// Upper-case letters and digits from a unique id.
pub(crate) fn short_id(length: usize) -> String {
    super::http::hex(&super::http::sha2_256(super::http::unique_id().as_bytes()))
        .to_uppercase()
        .chars()
        .take(length)
        .collect()
}

/// The NS and SOA sets that every zone begins with.
fn first_records(name: &str, name_servers: &[String]) -> Records {
    let set = |rtype: &str, ttl: u32, values: Vec<String>| RecordSet {
        name: name.to_owned(),
        rtype: rtype.to_owned(),
        set_id: None,
        routing: record::Routing::Simple,
        ttl: Some(ttl),
        values,
        alias: None,
        health_check: None,
    };
    let soa = format!(
        "{} awsdns-hostmaster.amazon.com. 1 7200 900 1209600 86400",
        name_servers[0]
    );
    [
        set("NS", 172_800, name_servers.to_vec()),
        set("SOA", 900, vec![soa]),
    ]
    .into_iter()
    .map(|r| (r.key(), r))
    .collect()
}

impl Zone {
    /// The zone as a sorted text, one line per record set: two equal texts are two equal zones, byte for byte.
    pub fn listing(&self) -> String {
        let mut out = String::new();
        for record in self.records.values() {
            record.write(&mut out);
            out.push('\n');
        }
        out
    }

    /// The first set of that name (any spelling) and type.
    pub fn find(&self, name: &str, rtype: &str) -> Option<&RecordSet> {
        let first = Key::new(&record::normal_name(name), rtype, "");
        self.records
            .range(&first..)
            .next()
            .filter(|(k, _)| k.order == first.order && k.rtype == first.rtype)
            .map(|(_, r)| r)
    }
}
