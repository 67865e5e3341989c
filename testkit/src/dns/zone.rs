//! Zones as Route 53 answers from them: aliases, wildcards, weights, CNAME chains, NODATA and NXDOMAIN.

use std::collections::BTreeMap;

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::rdata::{A, AAAA, CNAME, MX, NS, PTR, SOA, SRV, TXT};
use hickory_proto::rr::{Name, RData, Record, RecordType};

use crate::net::BenchNet;

/// One hosted zone.
#[derive(Clone, Debug)]
pub struct Zone {
    /// Lower case, without the last dot.
    pub name: String,
    /// Without `/hostedzone/`.
    pub id: String,
    records: BTreeMap<String, Vec<RecordSet>>,
}

/// One record set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordSet {
    /// Lower case, without the last dot, `*` for a wildcard.
    pub name: String,
    /// `A`, `TXT`, ...
    pub kind: String,
    /// Seconds; an alias has none.
    pub ttl: Option<u32>,
    /// The values as Route 53 writes them.
    pub values: Vec<String>,
    /// Where an alias points.
    pub alias: Option<Alias>,
    /// Of a weighted record set.
    pub weight: Option<u64>,
}

/// The target of an alias.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// Lower case, without the last dot.
    pub name: String,
    /// The hosted zone of the target.
    pub zone_id: String,
}

/// What a question is answered with.
#[derive(Debug)]
pub(super) struct Answer {
    pub code: ResponseCode,
    pub authoritative: bool,
    pub answers: Vec<Record>,
    pub authorities: Vec<Record>,
}

/// Lower case, no last dot, octal escapes (`\052`) undone.
pub(super) fn normal(name: &str) -> String {
    let mut out = String::new();
    let mut rest = name.trim_end_matches('.');
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let digits = rest
            .get(at + 1..at + 4)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match digits {
            Some(byte) => {
                out.push(char::from(byte));
                rest = &rest[at + 4..];
            }
            None => {
                out.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    out.push_str(rest);
    out.to_ascii_lowercase()
}

impl Zone {
    /// A zone from its record sets.
    pub fn new(name: &str, id: &str, list: Vec<RecordSet>) -> Self {
        let mut records: BTreeMap<String, Vec<RecordSet>> = BTreeMap::new();
        for set in list {
            records.entry(set.name.clone()).or_default().push(set);
        }
        Zone {
            name: normal(name),
            id: id.to_owned(),
            records,
        }
    }

    fn holds(&self, name: &str) -> bool {
        name == self.name
            || name
                .strip_suffix(&self.name)
                .is_some_and(|rest| rest.ends_with('.'))
    }

    /// The record sets of a name: its own, or a wildcard's; `None` when the name does not exist.
    fn sets(&self, name: &str) -> Option<&[RecordSet]> {
        if let Some(own) = self.records.get(name) {
            return Some(own);
        }
        // An empty non-terminal exists, without records.
        let below = format!(".{name}");
        if self.records.keys().any(|key| key.ends_with(&below)) {
            return Some(&[]);
        }
        let mut rest = name;
        while let Some((_, parent)) = rest.split_once('.') {
            if let Some(wild) = self.records.get(&format!("*.{parent}")) {
                return Some(wild);
            }
            // The closest encloser decides: a wildcard further up does not reach below an existing name.
            if parent == self.name || self.records.contains_key(parent) {
                return None;
            }
            rest = parent;
        }
        None
    }

    fn soa(&self) -> Option<Record> {
        let set = self
            .records
            .get(&self.name)?
            .iter()
            .find(|set| set.kind == "SOA")?;
        let data = rdata("SOA", set.values.first()?)?;
        let mut record = Record::from_rdata(name(&self.name)?, set.ttl.unwrap_or(900), data);
        // RFC 2308: a negative answer lives for the smaller of the SOA's TTL and its minimum.
        if let RData::SOA(soa) = &record.data {
            record.ttl = record.ttl.min(soa.minimum);
        }
        Some(record)
    }
}

fn name(text: &str) -> Option<Name> {
    let mut name = Name::from_ascii(text).ok()?;
    name.set_fqdn(true);
    Some(name)
}

/// Chooses among the record sets of one name and type by weight, as Route 53 does; `point` is in 0..1.
fn choose<'a>(sets: &[&'a RecordSet], point: f64) -> Option<&'a RecordSet> {
    let total: u64 = sets.iter().filter_map(|set| set.weight).sum();
    if total == 0 {
        // All weights zero means equal chances; without weights the first one answers.
        let weighted = sets.iter().any(|set| set.weight.is_some());
        let index = if weighted {
            (point * sets.len() as f64) as usize
        } else {
            0
        };
        return sets.get(index).copied();
    }
    let mut left = point * total as f64;
    for set in sets {
        left -= set.weight.unwrap_or(0) as f64;
        if left < 0.0 {
            return Some(set);
        }
    }
    sets.last().copied()
}

/// Answers a question from the zones. `point` (0..1) decides among weighted records.
pub(super) fn answer(
    zones: &[Zone],
    net: &BenchNet,
    alias_ttl: u32,
    asked: &Name,
    kind: RecordType,
    point: f64,
) -> Answer {
    let mut result = Answer {
        code: ResponseCode::Refused,
        authoritative: false,
        answers: vec![],
        authorities: vec![],
    };
    let mut current = normal(&asked.to_ascii());
    for _ in 0..8 {
        let Some(zone) = zones
            .iter()
            .filter(|zone| zone.holds(&current))
            .max_by_key(|zone| zone.name.len())
        else {
            return result;
        };
        if result.answers.is_empty() {
            result.authoritative = true;
        }
        result.code = ResponseCode::NoError;
        let Some(sets) = zone.sets(&current) else {
            result.code = ResponseCode::NXDomain;
            result.authorities.extend(zone.soa());
            return result;
        };
        let wanted = kind.to_string();
        let of_kind: Vec<&RecordSet> = sets.iter().filter(|set| set.kind == wanted).collect();
        if let Some(set) = choose(&of_kind, point) {
            let records = records(zone, net, alias_ttl, &current, set, point);
            if records.is_empty() {
                result.authorities.extend(zone.soa());
            }
            result.answers.extend(records);
            return result;
        }
        let aliases: Vec<&RecordSet> = sets.iter().filter(|set| set.kind == "CNAME").collect();
        let target = choose(&aliases, point).and_then(|set| Some((set, set.values.first()?)));
        let Some((set, target)) = target else {
            result.authorities.extend(zone.soa());
            return result;
        };
        let target = normal(target);
        if let (Some(owner), Some(to)) = (name(&current), name(&target)) {
            result.answers.push(Record::from_rdata(
                owner,
                set.ttl.unwrap_or(300),
                RData::CNAME(CNAME(to)),
            ));
        }
        current = target;
    }
    result
}

fn records(
    zone: &Zone,
    net: &BenchNet,
    alias_ttl: u32,
    owner: &str,
    set: &RecordSet,
    point: f64,
) -> Vec<Record> {
    let Some(owner_name) = name(owner) else {
        return Vec::new();
    };
    let Some(alias) = &set.alias else {
        let data = set
            .values
            .iter()
            .filter_map(|value| rdata(&set.kind, value));
        return data
            .map(|data| Record::from_rdata(owner_name.clone(), set.ttl.unwrap_or(300), data))
            .collect();
    };
    if zone.holds(&alias.name) && alias.name != owner {
        // An alias to another record of the zone answers with that record's values and TTL, under its own name.
        let sets = zone.sets(&alias.name).unwrap_or_default();
        let of_kind: Vec<&RecordSet> = sets
            .iter()
            .filter(|other| other.kind == set.kind && other.alias.is_none())
            .collect();
        let Some(target) = choose(&of_kind, point) else {
            return Vec::new();
        };
        return records(zone, net, alias_ttl, owner, target, point);
    }
    match (set.kind.as_str(), net.resolve(&alias.name)) {
        ("A", Some(address)) => vec![Record::from_rdata(
            owner_name,
            alias_ttl,
            RData::A(A(address)),
        )],
        // The load balancer is gone, or has no IPv6: an empty answer.
        _ => Vec::new(),
    }
}

/// A value as Route 53 writes it.
fn rdata(kind: &str, value: &str) -> Option<RData> {
    let words: Vec<&str> = value.split_whitespace().collect();
    Some(match kind {
        "A" => RData::A(A(value.trim().parse().ok()?)),
        "AAAA" => RData::AAAA(AAAA(value.trim().parse().ok()?)),
        "CNAME" => RData::CNAME(CNAME(name(value.trim())?)),
        "NS" => RData::NS(NS(name(value.trim())?)),
        "PTR" => RData::PTR(PTR(name(value.trim())?)),
        "MX" => RData::MX(MX::new(words.first()?.parse().ok()?, name(words.get(1)?)?)),
        "SRV" => RData::SRV(SRV::new(
            words.first()?.parse().ok()?,
            words.get(1)?.parse().ok()?,
            words.get(2)?.parse().ok()?,
            name(words.get(3)?)?,
        )),
        "SOA" => RData::SOA(SOA::new(
            name(words.first()?)?,
            name(words.get(1)?)?,
            words.get(2)?.parse().ok()?,
            words.get(3)?.parse().ok()?,
            words.get(4)?.parse().ok()?,
            words.get(5)?.parse().ok()?,
            words.get(6)?.parse().ok()?,
        )),
        "TXT" | "SPF" => RData::TXT(TXT::from_bytes(
            character_strings(value).iter().map(Vec::as_slice).collect(),
        )),
        _ => return None,
    })
}

/// `"a" "b"` to its strings; `\"`, `\\` and octal `\ddd` are undone.
fn character_strings(value: &str) -> Vec<Vec<u8>> {
    let mut strings = Vec::new();
    let mut current: Option<Vec<u8>> = None;
    let mut bytes = value.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match (byte, current.as_mut()) {
            (b'"', None) => current = Some(Vec::new()),
            (b'"', Some(_)) => strings.extend(current.take()),
            (b'\\', Some(text)) => {
                let mut digits = String::new();
                while digits.len() < 3
                    && let Some(digit) = bytes.next_if(|byte| (b'0'..=b'7').contains(byte))
                {
                    digits.push(char::from(digit));
                }
                match u8::from_str_radix(&digits, 8) {
                    Ok(byte) => text.push(byte),
                    Err(_) => text.extend(bytes.next()),
                }
            }
            (byte, Some(text)) => text.push(byte),
            (_, None) => {}
        }
    }
    strings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, kind: &str, ttl: u32, values: &[&str]) -> RecordSet {
        RecordSet {
            name: name.to_owned(),
            kind: kind.to_owned(),
            ttl: Some(ttl),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            ..RecordSet::default()
        }
    }

    fn alias(name: &str, target: &str) -> RecordSet {
        RecordSet {
            name: name.to_owned(),
            kind: "A".to_owned(),
            alias: Some(Alias {
                name: target.to_owned(),
                zone_id: "Z32O12XQLNTSW2".to_owned(),
            }),
            ..RecordSet::default()
        }
    }

    fn shop() -> Vec<Zone> {
        let elb = "a1-2.eu-west-1.elb.amazonaws.com";
        let mut light = set("split.shop.test", "A", 20, &["192.0.2.1"]);
        light.weight = Some(0);
        let mut heavy = set("split.shop.test", "A", 20, &["192.0.2.2"]);
        heavy.weight = Some(10);
        vec![Zone::new(
            "shop.test.",
            "Z1",
            vec![
                set(
                    "shop.test",
                    "SOA",
                    900,
                    &["ns-1.awsdns.com. hostmaster.amazon.com. 1 7200 900 1209600 86400"],
                ),
                set("shop.test", "MX", 300, &["10 mail.shop.test."]),
                set("www.shop.test", "A", 20, &["203.0.113.10"]),
                set(
                    "www.shop.test",
                    "TXT",
                    300,
                    &[r#""heritage=external-dns" "a\"b\052""#],
                ),
                set("old.shop.test", "CNAME", 60, &["www.shop.test."]),
                set("a.deep.shop.test", "A", 60, &["192.0.2.9"]),
                set("*.wild.shop.test", "A", 60, &["192.0.2.7"]),
                alias("orders.shop.test", elb),
                alias("gone.shop.test", "a9-9.eu-west-1.elb.amazonaws.com"),
                alias("apex-like.shop.test", "www.shop.test"),
                light,
                heavy,
            ],
        )]
    }

    async fn ask(net: &BenchNet, asked: &str, kind: RecordType) -> Answer {
        answer(&shop(), net, 5, &name(asked).unwrap(), kind, 0.5)
    }

    fn addresses(answer: &Answer) -> Vec<String> {
        let a = answer
            .answers
            .iter()
            .filter(|record| matches!(record.data, RData::A(_)));
        a.map(|record| format!("{} {} {}", record.name, record.ttl, record.data))
            .collect()
    }

    #[tokio::test]
    async fn an_alias_answers_with_its_load_balancers_address_and_nothing_when_that_is_gone() {
        let net = BenchNet::start().await.unwrap();
        net.set_name(
            "a1-2.eu-west-1.elb.amazonaws.com",
            "198.18.0.1".parse().unwrap(),
        );
        let orders = ask(&net, "ORDERS.shop.test", RecordType::A).await;
        assert!(orders.authoritative);
        assert_eq!(addresses(&orders), ["orders.shop.test. 5 198.18.0.1"]);
        let gone = ask(&net, "gone.shop.test", RecordType::A).await;
        assert_eq!(
            (gone.code, gone.answers.len(), gone.authorities.len()),
            (ResponseCode::NoError, 0, 1)
        );
        assert_eq!(
            addresses(&ask(&net, "apex-like.shop.test", RecordType::A).await),
            ["apex-like.shop.test. 20 203.0.113.10"]
        );
    }

    #[tokio::test]
    async fn a_missing_name_is_nxdomain_a_missing_type_is_nodata_and_both_carry_the_soa() {
        let net = BenchNet::start().await.unwrap();
        let missing = ask(&net, "nope.shop.test", RecordType::A).await;
        assert_eq!(missing.code, ResponseCode::NXDomain);
        assert_eq!(missing.authorities[0].ttl, 900);
        for existing in ["www.shop.test", "deep.shop.test"] {
            let nodata = ask(&net, existing, RecordType::AAAA).await;
            assert_eq!(
                (nodata.code, nodata.answers.len()),
                (ResponseCode::NoError, 0),
                "{existing}"
            );
            assert_eq!(nodata.authorities.len(), 1);
        }
        let foreign = ask(&net, "www.other.test", RecordType::A).await;
        assert_eq!(
            (foreign.code, foreign.authoritative),
            (ResponseCode::Refused, false)
        );
    }

    #[tokio::test]
    async fn cname_chains_wildcards_and_weights_are_followed() {
        let net = BenchNet::start().await.unwrap();
        let chain = ask(&net, "old.shop.test", RecordType::A).await;
        assert_eq!(chain.answers.len(), 2);
        assert_eq!(addresses(&chain), ["www.shop.test. 20 203.0.113.10"]);
        assert_eq!(
            addresses(&ask(&net, "x.wild.shop.test", RecordType::A).await),
            ["x.wild.shop.test. 60 192.0.2.7"]
        );
        // Weight 0 next to a positive weight is never chosen.
        assert_eq!(
            addresses(&ask(&net, "split.shop.test", RecordType::A).await),
            ["split.shop.test. 20 192.0.2.2"]
        );
        let mx = ask(&net, "shop.test", RecordType::MX).await;
        assert_eq!(mx.answers[0].data.to_string(), "10 mail.shop.test.");
    }

    #[test]
    fn a_txt_value_is_unquoted_as_route_53_quotes_it() {
        assert_eq!(
            character_strings(r#""heritage=external-dns" "a\"b\052""#),
            [b"heritage=external-dns".to_vec(), b"a\"b*".to_vec()]
        );
    }
}
