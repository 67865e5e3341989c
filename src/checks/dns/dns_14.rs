//! DNS-14: a host of blue that green will not serve although its name leads there, because a wildcard moves; and a private zone of the same
//! name whose answers stay on blue. Names whose object is not copied are found where names are picked, targets by the rewrite.

use crate::checks::look::{count, covers};
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::plan::model::Severity;
use std::collections::BTreeSet;

pub(super) const CHECK: Check = Check {
    id: "DNS-14",
    severity: Severity::Blocker,
    question: "Is a host missing on green behind a wildcard, or answered differently inside the VPC?",
    needs: &[Need::Blue, Need::Zones],
    answered: Answered::Plan,
    remedy: "Copy the object that serves the host, or take the host out of it on blue before the migration.",
    source: "checks.md DNS-14",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let moving = i.hosts();
    let wildcards: Vec<&str> = moving
        .keys()
        .copied()
        .filter(|h| h.starts_with("*."))
        .collect();
    if !wildcards.is_empty() {
        let served: BTreeSet<String> = i
            .moving(&["Ingress"])
            .flat_map(|o| o.hosts())
            .filter(|h| !h.starts_with("*."))
            .collect();
        let records: BTreeSet<&str> = i
            .snapshot
            .zones
            .iter()
            .flat_map(|z| &z.records)
            .map(|x| x.name.trim_end_matches('.'))
            .collect();
        let missing: BTreeSet<String> = i
            .of_kind("Ingress")
            .filter(|o| !o.moves())
            .flat_map(|o| o.hosts())
            .filter(|h| {
                wildcards.iter().any(|w| covers(w, h))
                    && !served.contains(h)
                    && !records.contains(h.as_str())
            })
            .collect();
        if !missing.is_empty() {
            let all: Vec<String> = missing.into_iter().collect();
            r.found(
                format!("host/{}", all[0]),
                format!("{} that only a moving wildcard resolves and whose Ingress is not copied: {}; they would get green's answer for unknown hosts", count(all.len(), "host"), few(&all)),
            );
        }
    }
    // Split horizon: the same names in a private zone that the plan does not touch.
    let touched = i.zone_ids();
    for z in i
        .snapshot
        .zones
        .iter()
        .filter(|z| z.zone.private && !touched.contains(z.zone.id.as_str()))
    {
        let inside: BTreeSet<&str> = z
            .records
            .iter()
            .filter(|x| matches!(x.rtype.as_str(), "A" | "AAAA" | "CNAME"))
            .map(|x| x.name.trim_end_matches('.'))
            .filter(|h| moving.contains_key(h))
            .collect();
        if !inside.is_empty() {
            let all: Vec<&str> = inside.into_iter().collect();
            r.warning(
                format!("zone/{}", z.zone.id),
                format!("the private zone {} answers {} inside the VPC, and the plan does not change it: {}", z.zone.name.trim_end_matches('.'), count(all.len(), "moving name"), few(&all)),
                "Change these records by hand at the cutover and on the way back, or let blue's ExternalDNS keep them first.",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::{Blocker, Warning};

    #[test]
    fn a_host_whose_ingress_stays_behind_a_moving_wildcard_blocks() {
        let mut s = shop();
        s.blue.objects[1] = ingress("web", &["*.shop.test"]);
        s.zones[0].records = kept(&["*.shop.test"]);
        s.blue.objects.push(ingress("old", &["old.shop.test"]));
        silent(&spec(), &s, "DNS-14");
        let mut skip = spec();
        skip.workloads.skip = vec!["ingress/web/old".into()];
        fires(&skip, &s, "DNS-14", Blocker, "old.shop.test");
    }

    #[test]
    fn a_private_zone_with_the_same_names_is_named() {
        let mut s = shop();
        s.blue.objects[0] = external_dns(&["--aws-zone-type=public"]);
        let mut private = zone(vec![record("www.shop.test", "A", 60, "172.20.32.9")]);
        private.zone.id = "Z2".into();
        private.zone.private = true;
        s.zones.push(private);
        fires(&spec(), &s, "DNS-14", Warning, "the private zone shop.test");
    }
}
