//! DNS-06: wishes that Route 53 refuses. Before 0.13.4 one of them rejects the whole batch of its zone (incident of 2022-01-22), from then
//! on only its own name. Records that are routed in the zone already are found where names are picked.

use super::after;
use crate::checks::look::count;
use crate::checks::{Answered, Check, Input, Report, few};
use crate::edns::{self, canonical_zone};
use crate::object::annotation;
use crate::plan::model::Severity;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECK: Check = Check {
    id: "DNS-06",
    severity: Severity::Blocker,
    question: "Does an object want a record that Route 53 refuses (identifier without weight, simple beside weighted, A beside CNAME)?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Correct the objects on blue.",
    source: "checks.md DNS-06",
    run,
};

fn run(i: &Input, r: &mut Report) {
    if i.instances.is_empty() {
        return;
    }
    let mut bare_identifier: BTreeSet<String> = BTreeSet::new();
    for (_, c) in i.instances {
        // Per host: wants a simple record, wants a routed one, an address, a plain CNAME.
        let mut hosts: BTreeMap<String, [bool; 4]> = BTreeMap::new();
        for e in edns::desired(after::on_blue(i), c) {
            let routed = e.set_identifier.is_some();
            if routed && e.routing.keys().all(|k| k == "HealthCheckId") {
                bare_identifier.insert(e.resource.clone());
            }
            // A CNAME to a load balancer becomes an alias A (externaldns.md 4).
            let cname = e.rtype == "CNAME"
                && (c.prefer_cname
                    || e.targets
                        .first()
                        .is_none_or(|t| canonical_zone(t).is_none()));
            let seen = hosts.entry(e.name.clone()).or_default();
            for (slot, on) in seen.iter_mut().zip([!routed, routed, !cname, cname]) {
                *slot |= on;
            }
        }
        let with = |a: usize, b: usize| -> Vec<String> {
            hosts
                .iter()
                .filter(|(_, s)| s[a] && s[b])
                .map(|(h, _)| h.clone())
                .collect()
        };
        for (hosts, what) in [
            (with(0, 1), "a simple and a routed record"),
            (with(2, 3), "an address and a CNAME"),
        ] {
            if !hosts.is_empty() {
                r.found(
                    format!("host/{}", hosts[0]),
                    format!(
                        "objects want {what} for {}: {}",
                        count(hosts.len(), "name"),
                        few(&hosts)
                    ),
                );
            }
        }
        let weight = format!("{}aws-weight", c.annotation_prefix);
        let identifier = format!("{}set-identifier", c.annotation_prefix);
        for o in i.moving(&["Ingress", "Service"]) {
            if annotation(o.object, &weight).is_some()
                && annotation(o.object, &identifier).is_none()
            {
                r.warning(o.name.as_str(), "has a weight without a set identifier: ExternalDNS ignores it and makes a simple record", "Add set-identifier, or take the weight away.");
            }
        }
    }
    if !bare_identifier.is_empty() {
        let all: Vec<String> = bare_identifier.into_iter().collect();
        r.found(
            all[0].clone(),
            format!(
                "{} with a set identifier and no weight, region or other policy: {}; Route 53 refuses such a record",
                count(all.len(), "object"),
                few(&all)
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::{Blocker, Warning};
    use serde_json::json;

    fn annotated(name: &str, notes: serde_json::Value) -> crate::snapshot::model::Snapshot {
        let mut s = shop();
        let mut o = ingress(name, &[&format!("{name}.shop.test")]);
        for (k, v) in notes.as_object().into_iter().flatten() {
            o["metadata"]["annotations"][format!("external-dns.alpha.kubernetes.io/{k}")] =
                v.clone();
        }
        s.blue.objects.push(o);
        s
    }

    #[test]
    fn an_identifier_without_a_policy_blocks_and_a_weight_without_an_identifier_is_named() {
        let s = annotated("shopping", json!({"set-identifier": "blue"}));
        fires(&spec(), &s, "DNS-06", Blocker, "ingress/web/shopping");
        let s = annotated("shopping", json!({"aws-weight": "10"}));
        fires(
            &spec(),
            &s,
            "DNS-06",
            Warning,
            "weight without a set identifier",
        );
        let s = annotated(
            "shopping",
            json!({"set-identifier": "a-blue", "aws-weight": "10"}),
        );
        never_says(&spec(), &s, "DNS-06", "and no weight");
    }

    #[test]
    fn a_simple_record_beside_a_weighted_one_and_an_address_beside_a_cname_block() {
        let mut s = annotated("web2", json!({"set-identifier": "b", "aws-weight": "1"}));
        s.blue.objects[2]["spec"]["rules"][0]["host"] = "www.shop.test".into();
        fires(
            &spec(),
            &s,
            "DNS-06",
            Blocker,
            "a simple and a routed record",
        );
        let mut s = shop();
        let mut cdn = ingress("cdn", &["www.shop.test"]);
        cdn["metadata"]["annotations"]["external-dns.alpha.kubernetes.io/target"] =
            "edge.cdn.example".into();
        s.blue.objects.push(cdn);
        fires(&spec(), &s, "DNS-06", Blocker, "an address and a CNAME");
    }

    #[test]
    fn plain_hosts_are_fine() {
        silent(&spec(), &shop(), "DNS-06");
    }
}
