//! DNS-02. That a record of a moving host belongs to somebody else is found where names are picked (plan/dns.rs); what is left for here
//! is the ownership without a record: green would create the record and leave the old owner in place (externaldns.md 1.7, trap 8).

use super::after;
use crate::checks::look::count;
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::edns::{Heritage, txt_variants};
use crate::plan::model::Severity;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECK: Check = Check {
    id: "DNS-02",
    severity: Severity::Blocker,
    question: "Does a record of a moving host belong to a third party or to nobody?",
    needs: &[Need::Zones],
    answered: Answered::Plan,
    remedy: "Adopt it on blue first, or remove the host from the object.",
    source: "checks.md DNS-02",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let Some(green) = after::green_config(i) else {
        return;
    };
    for a in &i.shared.after {
        let records: BTreeSet<&str> = a
            .zone
            .records
            .iter()
            .filter(|x| matches!(x.rtype.as_str(), "A" | "AAAA" | "CNAME"))
            .map(|x| x.name.trim_end_matches('.'))
            .collect();
        let owners: BTreeMap<&str, String> = a
            .zone
            .records
            .iter()
            .filter(|x| x.rtype == "TXT")
            .filter_map(|x| {
                let owner = Heritage::parse(x.values.first()?)?.owner()?.to_string();
                Some((x.name.as_str(), owner))
            })
            .collect();
        let mut left: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for e in &a.wanted {
            if records.contains(e.name.as_str()) {
                continue;
            }
            let owner = txt_variants(&e.name, &e.rtype, true, &green)
                .iter()
                .find_map(|n| owners.get(n.as_str()));
            if let Some(owner) = owner {
                left.entry(owner).or_default().insert(e.name.clone());
            }
        }
        for (owner, hosts) in left {
            let hosts: Vec<String> = hosts.into_iter().collect();
            r.warning(
                format!("zone/{}", a.zone.zone.name.trim_end_matches('.')),
                format!("{} without a record but with an ownership record of `{owner}`: {}; green would create the record and never own it", count(hosts.len(), "host"), few(&hosts)),
                "Delete the ownership records that were left behind, or take the hosts out of the objects.",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::{Blocker, Warning};

    #[test]
    fn a_moving_host_of_a_third_party_blocks_and_an_ownership_without_a_record_is_named() {
        let mut s = shop();
        s.blue.objects[1] = ingress("web", &["www.shop.test", "old.shop.test"]);
        s.zones[0]
            .records
            .push(txt("old.shop.test", "other-team", "ingress/x/x"));
        fires(
            &spec(),
            &s,
            "DNS-02",
            Warning,
            "of `other-team`: old.shop.test",
        );
        s.zones[0]
            .records
            .push(record("old.shop.test", "A", 300, "192.0.2.1"));
        fires(&spec(), &s, "DNS-02", Blocker, "belongs to other-team");
    }

    #[test]
    fn records_that_blue_owns_are_fine() {
        silent(&spec(), &shop(), "DNS-02");
    }
}
