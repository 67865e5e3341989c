//! What each record of a zone is to the handover: whose it is, what kind it is, which ownership TXTs it has (externaldns.md rule 3).

use super::config::Config;
use super::registry::{Heritage, is_registry_txt, ownership, txt_variants};
use super::{bare, fqdn};
use crate::world::dns::{RecordKey, RecordSet};
use base64::Engine;
use std::collections::{BTreeMap, BTreeSet};

/// Whose a record is, in the eyes of one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// This instance's own.
    Own,
    /// Another owner's.
    Other(String),
    /// Nobody's: hand-made, Terraform, kops's dns-controller.
    Nobody,
    /// It has a TXT where the ownership would stand, and that is encrypted: it looks like nobody's to who has no key (trap 26).
    Unreadable,
}

/// A record as the handover sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// The record set.
    pub key: RecordKey,
    /// Whose.
    pub holder: Holder,
    /// An alias: it has no TTL, or 0 from emulators (trap 27).
    pub alias: bool,
    /// `simple`, or the routing field that decides: `Weight`, `Region`, `Failover`, `GeoLocation`, `GeoProximityLocation`,
    /// `CidrRoutingConfig`, `MultiValueAnswer`, `TrafficPolicyInstanceId`.
    pub routing: String,
    /// Ownership TXTs by name (final dot), each with the owner that it names.
    pub variants: BTreeMap<String, String>,
}

impl Class {
    /// Whether its TXTs name more than one owner: two versions may both believe that they own it (externaldns.md 0).
    pub fn disputed(&self) -> bool {
        self.variants.values().collect::<BTreeSet<_>>().len() > 1
    }
}

/// The routing policy of a record set.
pub fn routing_of(r: &RecordSet) -> String {
    r.routing
        .keys()
        .find(|k| k.as_str() != "HealthCheckId")
        .cloned()
        .unwrap_or_else(|| "simple".into())
}

/// Whether a TXT value can only be an encrypted ownership: base64 of a nonce, at least one block and a tag (externaldns.md 1.5).
pub fn looks_encrypted(value: &str) -> bool {
    let text = value.trim().trim_matches('"');
    let plain = !text.contains(|c: char| c.is_whitespace());
    plain
        && text.len() >= 40
        && base64::engine::general_purpose::STANDARD
            .decode(text)
            .is_ok_and(|bytes| bytes.len() >= 12 + 1 + 16)
}

/// Classifies every record of a zone but its registry TXTs; order as in `records`.
pub fn classify(records: &[RecordSet], config: &Config) -> Vec<Class> {
    let mut texts: BTreeMap<String, Vec<&RecordSet>> = BTreeMap::new();
    for t in records.iter().filter(|t| t.rtype == "TXT") {
        texts.entry(fqdn(&t.name)).or_default().push(t);
    }
    let shown = records.iter().filter(|r| !is_registry_txt(r));
    ownership(records, config)
        .into_iter()
        .zip(shown)
        .map(|(o, r)| {
            let alias = r.alias.is_some();
            let here = || {
                txt_variants(&bare(&r.name), &r.rtype, alias, config)
                    .into_iter()
                    .filter_map(|n| texts.get(&n))
                    .flatten()
                    .filter(|t| t.set_identifier == r.set_identifier && t.key() != r.key())
                    .collect::<Vec<_>>()
            };
            let variants = here()
                .into_iter()
                .filter_map(|t| {
                    let owner = Heritage::parse(t.values.first()?)?.owner()?.to_string();
                    Some((t.name.clone(), owner))
                })
                .collect();
            let hidden = || {
                here()
                    .iter()
                    .any(|t| t.values.first().is_some_and(|v| looks_encrypted(v)))
            };
            let holder = match o.owner {
                Some(owner) if owner == config.owner => Holder::Own,
                Some(owner) => Holder::Other(owner),
                None if hidden() => Holder::Unreadable,
                None => Holder::Nobody,
            };
            Class {
                key: o.key,
                holder,
                alias,
                routing: routing_of(r),
                variants,
            }
        })
        .collect()
}
