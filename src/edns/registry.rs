//! The TXT registry: who owns a record, in the eyes of an instance of a given version (externaldns.md 1).

use super::config::{Config, Version};
use super::{bare, fqdn, mapper};
use crate::world::dns::{RecordKey, RecordSet};
use std::collections::BTreeMap;

/// What a registry TXT says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heritage {
    /// Labels without the `external-dns/` prefix: `owner`, `resource`, ...
    pub labels: BTreeMap<String, String>,
}

impl Heritage {
    /// Reads one TXT value; `None` when it is no registry value (externaldns.md 1.2).
    pub fn parse(value: &str) -> Option<Heritage> {
        let text = value.trim().trim_matches('"');
        let mut labels = BTreeMap::new();
        let mut ours = false;
        for token in text.split(',') {
            let Some((key, v)) = token.split_once('=') else {
                continue;
            };
            if key == "heritage" {
                ours = v == "external-dns";
                if !ours {
                    return None;
                }
            } else if let Some(key) = key.strip_prefix("external-dns/") {
                labels.insert(key.to_string(), v.to_string());
            }
        }
        ours.then_some(Heritage { labels })
    }
    /// Owner id.
    pub fn owner(&self) -> Option<&str> {
        self.labels.get("owner").map(String::as_str)
    }
    /// `kind/namespace/name`.
    pub fn resource(&self) -> Option<&str> {
        self.labels.get("resource").map(String::as_str)
    }
    /// As the registry writes it, quoted, keys sorted.
    pub fn value(&self) -> String {
        let mut tokens = vec!["heritage=external-dns".to_string()];
        tokens.extend(
            self.labels
                .iter()
                .map(|(k, v)| format!("external-dns/{k}={v}")),
        );
        format!("\"{}\"", tokens.join(","))
    }
}

/// The TXT value of an owner and a resource.
pub fn heritage_value(owner: &str, resource: &str) -> String {
    let mut h = Heritage::default();
    h.labels.insert("owner".into(), owner.into());
    h.labels.insert("resource".into(), resource.into());
    h.value()
}

/// A registry TXT value with another owner, everything else as it was; `None` when it is no registry value (rule 7).
pub fn rewrite_owner(txt_value: &str, new_owner: &str) -> Option<String> {
    Heritage::parse(txt_value)?;
    let mut done = false;
    let tokens: Vec<String> = txt_value
        .trim()
        .trim_matches('"')
        .split(',')
        .map(|token| {
            if token.starts_with("external-dns/owner=") {
                done = true;
                format!("external-dns/owner={new_owner}")
            } else {
                token.to_string()
            }
        })
        .collect();
    done.then(|| format!("\"{}\"", tokens.join(",")))
}

/// Ownership of one record set, as one instance sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// The record set (never a registry TXT).
    pub key: RecordKey,
    /// Owner id; `None` when nobody owns it in the eyes of this version.
    pub owner: Option<String>,
    /// `kind/namespace/name` from the TXT.
    pub resource: Option<String>,
    /// All registry TXT sets present for this record under any version's naming, whatever owner they carry (rule 7 rewrites every one of them).
    pub txt: Vec<RecordKey>,
}

/// Which TXT record sets a version writes for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formats {
    /// `foo`.
    pub legacy: bool,
    /// `a-foo`, `cname-foo`, `aaaa-foo`.
    pub typed: bool,
}

/// What an ExternalDNS of a version writes (externaldns.md 1.3): up to 0.11 legacy only, 0.12 to 0.17 both, from 0.18 typed only.
pub fn txt_written_by(version: Version) -> Formats {
    Formats {
        legacy: !version.at_least(18, 0),
        typed: version.at_least(12, 0),
    }
}

/// Type word of a record in typed TXT names: an alias A is `cname` up to 0.21, `a` from 0.22.
pub(super) fn type_word(rtype: &str, alias: bool, version: Version) -> String {
    if rtype == "A" && alias && !version.at_least(22, 0) {
        "cname".into()
    } else {
        rtype.to_lowercase()
    }
}

/// TXT names (final dot) that an instance writes for a record.
pub(super) fn written(name: &str, rtype: &str, alias: bool, config: &Config) -> Vec<String> {
    let formats = txt_written_by(config.version);
    let mut out = vec![];
    let template = config.prefix.contains("%{") || config.suffix.contains("%{");
    let typed_only =
        config.new_format_only || config.version.at_least(13, 6) && (config.encrypted || template);
    let legacy = formats.legacy && rtype != "AAAA" && !typed_only;
    if legacy {
        out.push(fqdn(&mapper::legacy(&bare(name), config)));
    }
    if formats.typed {
        let word = type_word(rtype, alias, config.version);
        out.push(fqdn(&mapper::typed(&bare(name), &word, config)));
    }
    out
}

/// All TXT names (final dot) under which any version with this configuration's affix keeps the ownership of a record: legacy, typed, and the other spelling of an alias.
pub fn txt_variants(name: &str, rtype: &str, alias: bool, config: &Config) -> Vec<String> {
    let name = bare(name);
    let mut out = vec![];
    if rtype != "AAAA" {
        out.push(fqdn(&mapper::legacy(&name, config)));
    }
    let mut words = vec![rtype.to_lowercase()];
    if rtype == "A" && alias {
        words.insert(0, "cname".into());
    }
    for word in words {
        let n = fqdn(&mapper::typed(&name, &word, config));
        if !out.contains(&n) {
            out.push(n);
        }
    }
    out
}

/// Labels by (endpoint name, type word or empty, set identifier).
type Labels = BTreeMap<(String, String, Option<String>), Heritage>;

fn labels(records: &[RecordSet], config: &Config) -> Labels {
    let mut map = Labels::new();
    for r in records.iter().filter(|r| r.rtype == "TXT") {
        // Only the first value is ever read (trap 28).
        let Some(h) = r.values.first().and_then(|v| Heritage::parse(v)) else {
            continue;
        };
        let Some((name, word)) = mapper::endpoint_of(&bare(&r.name), config) else {
            continue;
        };
        let by_type = config.version.at_least(13, 6);
        let word = match word {
            Some(w) if by_type => w,
            // 0.13.5 keeps AAAA apart; 0.12 to 0.13.4 know only the name, so the last one listed wins (trap 3).
            Some(w) if w == "aaaa" && config.version.at_least(13, 5) => w,
            _ => String::new(),
        };
        map.insert((name, word, r.set_identifier.clone()), h);
    }
    map
}

fn lookup<'a>(r: &RecordSet, config: &Config, map: &'a Labels) -> Option<&'a Heritage> {
    let mut name = bare(&r.name);
    if !config.wildcard.is_empty()
        && let Some(rest) = name.strip_prefix("*.")
    {
        name = format!("{}.{rest}", config.wildcard);
    }
    let get = |word: &str| map.get(&(name.clone(), word.to_string(), r.set_identifier.clone()));
    let alias = r.alias.is_some();
    if config.version.at_least(13, 6) {
        let first = get(&type_word(&r.rtype, alias, config.version));
        let second = (r.rtype == "A" && alias && config.version.at_least(22, 0))
            .then(|| get("cname"))
            .flatten();
        let third = (r.rtype != "AAAA").then(|| get("")).flatten();
        first.or(second).or(third)
    } else if r.rtype == "AAAA" && config.version.at_least(13, 5) {
        get("aaaa")
    } else {
        get("")
    }
}

/// Whether a TXT set is a registry record (its first value carries the heritage).
pub(super) fn is_registry_txt(r: &RecordSet) -> bool {
    r.rtype == "TXT" && r.values.first().and_then(|v| Heritage::parse(v)).is_some()
}

/// Who owns each record set of a zone in the eyes of an instance. Registry TXTs themselves are not listed. Order as in `records`.
pub fn ownership(records: &[RecordSet], config: &Config) -> Vec<Ownership> {
    let map = labels(records, config);
    // Registry TXTs by name, each with its place in the zone.
    let mut registry: BTreeMap<String, Vec<(usize, &RecordSet)>> = BTreeMap::new();
    for (n, t) in records
        .iter()
        .enumerate()
        .filter(|(_, t)| is_registry_txt(t))
    {
        registry.entry(fqdn(&t.name)).or_default().push((n, t));
    }
    records
        .iter()
        .filter(|r| !is_registry_txt(r))
        .map(|r| {
            // noop and crd keep no TXT; dynamodb keeps its owners elsewhere: nothing is known from the zone.
            let found = (config.registry == "txt")
                .then(|| lookup(r, config, &map))
                .flatten();
            let names = txt_variants(&r.name, &r.rtype, r.alias.is_some(), config);
            let mut txt: Vec<(usize, &RecordSet)> = names
                .iter()
                .filter_map(|n| registry.get(n))
                .flatten()
                .filter(|(_, t)| t.set_identifier == r.set_identifier)
                .copied()
                .collect();
            txt.sort_by_key(|(n, _)| *n);
            Ownership {
                key: r.key(),
                owner: found.and_then(|h| h.owner()).map(String::from),
                resource: found.and_then(|h| h.resource()).map(String::from),
                txt: txt.into_iter().map(|(_, t)| t.key()).collect(),
            }
        })
        .collect()
}

/// Labels of a record as this instance reads them.
pub(super) fn heritage_of(records: &[RecordSet], config: &Config) -> Vec<Option<Heritage>> {
    let map = labels(records, config);
    records
        .iter()
        .map(|r| lookup(r, config, &map).cloned())
        .collect()
}
