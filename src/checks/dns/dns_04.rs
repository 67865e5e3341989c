//! DNS-04: after the handover green's ExternalDNS must want every name and own it, or starting it changes nothing (externaldns.md trap 7).
//! A canary that blue does not own is found where names are picked.

use super::after::host_of;
use crate::checks::look::count;
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::plan::model::Severity;
use std::collections::BTreeSet;

pub(super) const CHECK: Check = Check {
    id: "DNS-04",
    severity: Severity::Blocker,
    question: "Would green's ExternalDNS skip hosts, because it does not want them or another owns them?",
    needs: &[Need::Zones],
    answered: Answered::Plan,
    remedy: "Give all of blue's ExternalDNS instances the same TXT prefix, suffix and annotation prefix, and let them rewrite their records first.",
    source: "checks.md DNS-04",
    run,
};

fn run(i: &Input, r: &mut Report) {
    for a in &i.shared.after {
        let touched: BTreeSet<&str> = a.changes.iter().map(host_of).collect();
        let wanted: BTreeSet<&str> = a.wanted.iter().map(|e| e.name.as_str()).collect();
        let skipped: Vec<&str> = a
            .names
            .keys()
            .copied()
            // Green's target differs from blue's, so a name without a change is one that is skipped.
            .filter(|h| !touched.contains(h))
            .collect();
        let (not_owned, mut unwanted): (Vec<&str>, Vec<&str>) =
            skipped.into_iter().partition(|h| wanted.contains(h));
        // Under `sync` an owned but unwanted name shows as a delete.
        unwanted.extend(
            a.names
                .keys()
                .copied()
                .filter(|h| touched.contains(h) && !wanted.contains(h)),
        );
        unwanted.sort();
        let zone = format!("zone/{}", a.zone.zone.name.trim_end_matches('.'));
        let all = a.names.len();
        if !not_owned.is_empty() {
            r.found(&zone, format!("green's ExternalDNS would skip {} of {}: it does not read their ownership records as its own: {}", not_owned.len(), count(all, "name"), few(&not_owned)));
        }
        if !unwanted.is_empty() {
            r.found(
                &zone,
                format!(
                    "green's ExternalDNS would not want {} of {}: {}",
                    unwanted.len(),
                    count(all, "name"),
                    few(&unwanted)
                ),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::Blocker;

    #[test]
    fn names_of_a_second_instance_with_another_txt_prefix_would_be_skipped() {
        let mut s = shop();
        s.blue.objects[1]["metadata"]["annotations"]["public"] = "yes".into();
        s.blue.objects[0] = external_dns(&["--annotation-filter=public=yes"]);
        let mut second = external_dns(&["--txt-prefix=own-", "--annotation-filter=partner=yes"]);
        second["metadata"]["name"] = "partner-dns".into();
        second["spec"]["template"]["spec"]["containers"][0]["args"][3] =
            "--txt-owner-id=partner-blue".into();
        let mut partner = ingress("partner", &["b2b.shop.test"]);
        partner["metadata"]["annotations"]["partner"] = "yes".into();
        s.blue.objects.extend([second, partner]);
        s.zones[0].records.extend([
            record("b2b.shop.test", "A", 300, BLUE),
            txt("own-b2b.shop.test", "partner-blue", "ingress/web/partner"),
        ]);
        fires(&spec(), &s, "DNS-04", Blocker, "b2b.shop.test");
        never_says(&spec(), &s, "DNS-04", "www.shop.test");
    }

    #[test]
    fn a_name_whose_record_is_known_but_whose_object_shows_no_load_balancer_is_not_skipped() {
        let mut s = shop();
        silent(&spec(), &s, "DNS-04");
        s.blue.objects[1]
            .as_object_mut()
            .map(|o| o.remove("status"));
        silent(&spec(), &s, "DNS-04");
    }
}
