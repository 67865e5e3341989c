//! DNS-13: hosts that blue serves and that no ExternalDNS keeps: they stay on blue after the switch. Names of dns-controller are found by the
//! rewrite, records of a third party where names are picked (DNS-02), hosts that only a wildcard answers by DNS-14.

use super::after;
use crate::checks::look::{count, covers, load_balancer};
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::edns;
use crate::plan::model::Severity;
use std::collections::BTreeSet;

pub(super) const CHECK: Check = Check {
    id: "DNS-13",
    severity: Severity::Warning,
    question: "Which hosts does blue serve that no ExternalDNS keeps (by hand, CDN, another provider)?",
    needs: &[Need::Blue, Need::Zones],
    answered: Answered::Plan,
    remedy: "They do not move by themselves: list them and say who changes each.",
    source: "checks.md DNS-13",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let moving = i.hosts();
    let wanted: BTreeSet<String> = i
        .instances
        .iter()
        .flat_map(|(_, c)| edns::desired(after::on_blue(i), c))
        .map(|e| e.name)
        .collect();
    let records: BTreeSet<&str> = i
        .snapshot
        .zones
        .iter()
        .flat_map(|z| &z.records)
        .filter(|x| matches!(x.rtype.as_str(), "A" | "AAAA" | "CNAME"))
        .map(|x| x.name.trim_end_matches('.'))
        .collect();
    let mut elsewhere: BTreeSet<String> = BTreeSet::new();
    let mut by_hand: BTreeSet<String> = BTreeSet::new();
    for o in i.moving(&["Ingress"]) {
        for host in o.hosts() {
            if moving.contains_key(host.as_str()) {
                continue;
            }
            let zone = i
                .snapshot
                .zones
                .iter()
                .any(|z| edns::in_zone(&host, &z.zone.name));
            if !zone {
                elsewhere.insert(host);
            } else if !wanted.contains(&host) && records.contains(host.as_str()) {
                by_hand.insert(host);
            }
        }
    }
    // Records that lead to blue's load balancers without any object that says so.
    let targets: BTreeSet<String> = i
        .of_kind("Ingress")
        .chain(i.of_kind("Service"))
        .flat_map(|o| load_balancer(o.object))
        .collect();
    let plain = |t: &str| {
        let t = t.trim_end_matches('.').to_lowercase();
        t.strip_prefix("dualstack.").map(String::from).unwrap_or(t)
    };
    for x in i.snapshot.zones.iter().flat_map(|z| &z.records) {
        let host = x.name.trim_end_matches('.');
        let leads = match &x.alias {
            Some(a) => targets.contains(&plain(&a.name)),
            None if matches!(x.rtype.as_str(), "A" | "CNAME") => {
                x.values.iter().any(|v| targets.contains(&plain(v)))
            }
            None => false,
        };
        if leads && !moving.contains_key(host) && !wanted.contains(host) {
            by_hand.insert(host.to_string());
        }
    }
    // A host that a moving wildcard answers has no record of its own.
    let wildcards: Vec<&str> = moving
        .keys()
        .copied()
        .filter(|h| h.starts_with("*."))
        .collect();
    elsewhere.retain(|h| !wildcards.iter().any(|w| covers(w, h)));
    if !by_hand.is_empty() {
        let all: Vec<String> = by_hand.into_iter().collect();
        r.found(
            format!("host/{}", all[0]),
            format!(
                "{} with a record that no ExternalDNS of blue keeps: {}",
                count(all.len(), "host"),
                few(&all)
            ),
        );
    }
    if !elsewhere.is_empty() {
        let all: Vec<String> = elsewhere.into_iter().collect();
        r.found(
            format!("host/{}", all[0]),
            format!(
                "{} in no zone that was read: {}",
                count(all.len(), "host"),
                few(&all)
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::Warning;

    #[test]
    fn a_host_at_another_provider_and_a_record_by_hand_to_blues_load_balancer_are_named() {
        let mut s = shop();
        s.blue
            .objects
            .push(ingress("partner", &["shop.partner.example"]));
        s.zones[0]
            .records
            .push(record("promo.shop.test", "A", 300, BLUE));
        fires(&spec(), &s, "DNS-13", Warning, "shop.partner.example");
        fires(&spec(), &s, "DNS-13", Warning, "promo.shop.test");
    }

    #[test]
    fn hosts_that_are_handed_over_and_records_to_other_places_are_fine() {
        let mut s = shop();
        s.zones[0]
            .records
            .push(record("mail.shop.test", "A", 300, "192.0.2.25"));
        silent(&spec(), &s, "DNS-13");
    }
}
