//! DNS-09: a name that points at a moving name is not moved itself; its own TTL does not matter, only that of the link that changes (S23).

use crate::checks::look::count;
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::plan::model::Severity;
use crate::world::dns::RecordSet;
use std::collections::BTreeMap;

pub(super) const CHECK: Check = Check {
    id: "DNS-09",
    severity: Severity::Info,
    question: "Do CNAMEs or aliases point at moving names, with another TTL than the link that changes?",
    needs: &[Need::Zones],
    answered: Answered::Plan,
    remedy: "Nothing to do: lower the TTL of the link that changes, which the plan does.",
    source: "checks.md DNS-09",
    run,
};

/// Where a record leads, when that is another name.
fn next(r: &RecordSet) -> Option<String> {
    let name = match &r.alias {
        Some(a) => &a.name,
        None if r.rtype == "CNAME" => r.values.first()?,
        None => return None,
    };
    Some(name.trim_end_matches('.').to_lowercase())
}

fn run(i: &Input, r: &mut Report) {
    let moving = i.hosts();
    let links: BTreeMap<&str, &RecordSet> = i
        .snapshot
        .zones
        .iter()
        .flat_map(|z| &z.records)
        .filter(|x| next(x).is_some())
        .map(|x| (x.name.trim_end_matches('.'), x))
        .collect();
    let mut followers: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, first) in &links {
        if moving.contains_key(name) {
            continue;
        }
        let mut at = next(first);
        // Longer chains than this no resolver follows.
        for _ in 0..8 {
            let Some(here) = at.take() else { break };
            if let Some((host, n)) = moving.get_key_value(here.as_str()) {
                if first.ttl != n.ttl {
                    let ttl = first
                        .ttl
                        .map_or_else(String::new, |t| format!(" (TTL {t} s)"));
                    followers
                        .entry(host)
                        .or_default()
                        .push(format!("{name}{ttl}"));
                }
                break;
            }
            at = links.get(here.as_str()).and_then(|x| next(x));
        }
    }
    for (host, names) in followers {
        let ttl = moving[host].ttl.map_or(60, |t| t.min(i.spec.dns.low_ttl));
        r.found(
            format!("host/{host}"),
            format!(
                "{} lead here: {}; only {host} changes, so clients follow within {ttl} s",
                count(names.len(), "name"),
                few(&names)
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::Info;

    #[test]
    fn a_chain_of_cnames_is_followed_to_the_link_that_changes() {
        let mut s = shop();
        s.zones[0].records.extend([
            record("shop.shop.test", "CNAME", 3600, "front.shop.test."),
            record("front.shop.test", "CNAME", 86400, "www.shop.test."),
        ]);
        fires(&spec(), &s, "DNS-09", Info, "shop.shop.test (TTL 3600 s)");
        fires(
            &spec(),
            &s,
            "DNS-09",
            Info,
            "only www.shop.test changes, so clients follow within 60 s",
        );
    }

    #[test]
    fn a_cname_to_somewhere_else_is_none_of_it() {
        let mut s = shop();
        s.zones[0]
            .records
            .push(record("cdn.shop.test", "CNAME", 3600, "edge.cdn.example."));
        silent(&spec(), &s, "DNS-09");
    }
}
