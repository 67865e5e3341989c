//! DNS-15: a name that comes into being at the flip was asked for before: resolvers hold "does not exist" for the zone's negative TTL, the
//! smaller of the SOA's TTL and its last field (RFC 2308; 900 s in a default zone of Route 53).

use super::after::host_of;
use crate::checks::look::count;
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::plan::model::Severity;
use crate::world::dns::Change;
use std::collections::BTreeSet;

pub(super) const CHECK: Check = Check {
    id: "DNS-15",
    severity: Severity::Warning,
    question: "Are names created at the flip whose absence resolvers may still hold?",
    needs: &[Need::Zones],
    answered: Answered::Plan,
    remedy: "Create these names on blue before the cutover.",
    source: "checks.md DNS-15",
    run,
};

fn run(i: &Input, r: &mut Report) {
    for a in &i.shared.after {
        let there: BTreeSet<&str> = a
            .zone
            .records
            .iter()
            .map(|x| x.name.trim_end_matches('.'))
            .collect();
        let new: BTreeSet<&str> = a
            .changes
            .iter()
            .filter(|c| matches!(c, Change::Create(_)))
            .map(host_of)
            .filter(|h| !there.contains(h))
            .collect();
        if new.is_empty() {
            continue;
        }
        let new: Vec<&str> = new.into_iter().collect();
        let zone = format!("zone/{}", a.zone.zone.name.trim_end_matches('.'));
        let soa = a.zone.records.iter().find(|x| x.rtype == "SOA");
        let negative = soa.and_then(|s| {
            let minimum: u32 = s.values.first()?.split_whitespace().last()?.parse().ok()?;
            Some(minimum.min(s.ttl?))
        });
        match negative {
            Some(n) if n <= i.spec.dns.low_ttl => {}
            Some(n) => r.found(
                &zone,
                format!(
                    "{} created at the flip ({}); who asked before may be told for {n} s that they do not exist",
                    count(new.len(), "name"),
                    few(&new)
                ),
            ),
            None => r.not_checked(
                &zone,
                "names are created at the flip, and the zone's SOA record was not read",
                "Give the whole listing of the zone.",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::{NotChecked, Warning};
    use crate::snapshot::model::Snapshot;

    fn with_a_new_name(soa: Option<&str>) -> Snapshot {
        let mut s = shop();
        s.blue.objects.push(ingress("next", &["next.shop.test"]));
        if let Some(v) = soa {
            s.zones[0].records.push(record("shop.test", "SOA", 900, v));
        }
        s
    }

    #[test]
    fn a_name_that_green_creates_may_be_unknown_for_the_negative_ttl() {
        let soa = "ns-1.awsdns-00.example. host.example. 1 7200 900 1209600 86400";
        fires(
            &spec(),
            &with_a_new_name(Some(soa)),
            "DNS-15",
            Warning,
            "for 900 s",
        );
        fires(
            &spec(),
            &with_a_new_name(None),
            "DNS-15",
            NotChecked,
            "SOA record was not read",
        );
    }

    #[test]
    fn a_short_negative_ttl_and_no_new_name_are_fine() {
        let soa = "ns-1.awsdns-00.example. host.example. 1 7200 900 1209600 30";
        silent(&spec(), &with_a_new_name(Some(soa)), "DNS-15");
        silent(&spec(), &shop(), "DNS-15");
    }
}
