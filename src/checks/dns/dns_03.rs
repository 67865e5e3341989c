//! DNS-03: the first loop of green's ExternalDNS, run over the zone as the handover leaves it, must delete nothing and touch no other host.

use super::after::host_of;
use crate::checks::look::count;
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::plan::model::Severity;
use crate::world::dns::Change;
use std::collections::BTreeSet;

pub(super) const CHECK: Check = Check {
    id: "DNS-03",
    severity: Severity::Blocker,
    question: "Would green's ExternalDNS delete records, or touch hosts outside the plan?",
    needs: &[Need::Zones],
    answered: Answered::Plan,
    remedy: "Narrow the filters of green's ExternalDNS, or take the hosts out of the objects.",
    source: "checks.md DNS-03",
    run,
};

fn run(i: &Input, r: &mut Report) {
    for a in &i.shared.after {
        let zone = format!("zone/{}", a.zone.zone.name.trim_end_matches('.'));
        // A change of routing policy is DNS-16's.
        let routed: BTreeSet<&str> = a
            .wanted
            .iter()
            .filter(|e| e.set_identifier.is_some())
            .map(|e| e.name.as_str())
            .collect();
        let hosts = |pick: &dyn Fn(&Change) -> bool| -> Vec<String> {
            let set: BTreeSet<&str> = a
                .changes
                .iter()
                .filter(|c| pick(c))
                .map(host_of)
                .filter(|h| !routed.contains(h))
                .collect();
            set.into_iter().map(String::from).collect()
        };
        let planned = |c: &Change| a.names.contains_key(host_of(c));
        let deleted = hosts(&|c| matches!(c, Change::Delete(_)) && !planned(c));
        let others = hosts(&|c| !matches!(c, Change::Delete(_)) && !planned(c));
        let created: BTreeSet<String> = hosts(&|c| matches!(c, Change::Create(_)) && planned(c))
            .into_iter()
            .collect();
        let mut replaced = hosts(&|c| matches!(c, Change::Delete(_)) && planned(c));
        replaced.retain(|h| created.contains(h));
        if !deleted.is_empty() {
            r.found(
                &zone,
                format!(
                    "green's ExternalDNS would delete {}: {}",
                    count(deleted.len(), "record"),
                    few(&deleted)
                ),
            );
        }
        if !replaced.is_empty() {
            r.found(&zone, format!("green wants another record type for {}: {}; upsert-only cannot replace a type (externaldns.md trap 14)", count(replaced.len(), "name"), few(&replaced)));
        }
        if !others.is_empty() {
            r.found(&zone, format!("green's ExternalDNS would write {} that the plan does not hand over: {}; blue's makes no record of them", count(others.len(), "host"), few(&others)));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::Blocker;
    use crate::snapshot::model::Snapshot;

    /// Blue publishes only what carries an annotation.
    fn filtered() -> Snapshot {
        let mut s = shop();
        s.blue.objects[0] = external_dns(&["--annotation-filter=publish=yes"]);
        s.blue.objects[1]["metadata"]["annotations"]["publish"] = "yes".into();
        s.blue
            .objects
            .push(ingress("intern", &["intern.shop.test"]));
        s
    }

    #[test]
    fn a_host_that_filters_of_two_instances_hide_would_be_published_by_green() {
        let mut s = filtered();
        let mut second = external_dns(&["--annotation-filter=partner=yes"]);
        second["metadata"]["name"] = "partner-dns".into();
        second["spec"]["template"]["spec"]["containers"][0]["args"][3] =
            "--txt-owner-id=partner-blue".into();
        s.blue.objects.push(second);
        fires(&spec(), &s, "DNS-03", Blocker, "intern.shop.test");
        never_says(&spec(), &s, "DNS-03", "www.shop.test");
    }

    #[test]
    fn the_filter_of_one_instance_comes_along_and_hides_the_host_on_green_too() {
        silent(&spec(), &filtered(), "DNS-03");
    }

    #[test]
    fn handing_over_what_blue_keeps_changes_nothing_else() {
        let mut s = shop();
        s.zones[0]
            .records
            .push(record("mail.shop.test", "A", 300, "192.0.2.25"));
        silent(&spec(), &s, "DNS-03");
    }
}
