//! DNS-16: a simple record cannot become a weighted one in place: Route 53 keeps one policy a name, and upsert-only cannot delete the old
//! one (externaldns.md 4, trap 14). A routed record whose object wants its identifier moves as it is.

use crate::checks::look::count;
use crate::checks::{Answered, Check, Input, Report, few};
use crate::object::annotation;
use crate::plan::model::Severity;
use std::collections::BTreeSet;

pub(super) const CHECK: Check = Check {
    id: "DNS-16",
    severity: Severity::Warning,
    question: "Does an object want another routing policy than its record has?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Stay simple (take set-identifier away on blue), or let blue's ExternalDNS make the weighted record before the migration.",
    source: "checks.md DNS-16",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let Some((_, c)) = i.instances.first() else {
        return;
    };
    let key = format!("{}set-identifier", c.annotation_prefix);
    let routed: BTreeSet<&str> = i
        .moving(&["Ingress", "Service"])
        .filter(|o| annotation(o.object, &key).is_some())
        .map(|o| o.name.as_str())
        .collect();
    let hosts: Vec<&str> = i
        .names
        .iter()
        .filter(|n| n.set_identifier.is_none() && routed.contains(n.object.as_str()))
        .map(|n| n.host.as_str())
        .collect();
    if !hosts.is_empty() {
        r.found(
            format!("host/{}", hosts[0]),
            format!(
                "{} with a simple record whose object wants a weighted one: {}; green's ExternalDNS could never write it",
                count(hosts.len(), "name"),
                few(&hosts)
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::Warning;

    #[test]
    fn a_simple_record_whose_ingress_wants_a_weight_is_named_and_a_plain_one_is_not() {
        let mut s = shop();
        silent(&spec(), &s, "DNS-16");
        let notes = &mut s.blue.objects[1]["metadata"]["annotations"];
        notes["external-dns.alpha.kubernetes.io/set-identifier"] = "web-blue".into();
        notes["external-dns.alpha.kubernetes.io/aws-weight"] = "100".into();
        fires(&spec(), &s, "DNS-16", Warning, "www.shop.test");
    }
}
