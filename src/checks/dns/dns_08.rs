//! DNS-08: an alias has no TTL of its own (externaldns.md 3).

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use std::collections::BTreeSet;

pub(super) const CHECK: Check = Check {
    id: "DNS-08",
    severity: Severity::Warning,
    question: "Does a TTL annotation stand on a name whose record is an alias?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Plan with 60 s, the TTL of a load balancer.",
    source: "checks.md DNS-08",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let Some((_, c)) = i.instances.first() else {
        return;
    };
    let key = format!("{}ttl", c.annotation_prefix);
    let aliases: Vec<_> = i.names.iter().filter(|n| n.ttl.is_none()).collect();
    if aliases.is_empty() {
        return;
    }
    let annotated: BTreeSet<&str> = i
        .moving(&["Ingress", "Service"])
        .filter(|o| crate::object::annotation(o.object, &key).is_some())
        .map(|o| o.name.as_str())
        .collect();
    for n in aliases {
        if annotated.contains(n.object.as_str()) {
            r.found(format!("host/{}", n.host), "its TTL annotation has no effect: an alias has the TTL of its target (60 s for a load balancer)");
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::Warning;

    #[test]
    fn a_ttl_annotation_works_on_a_record_and_not_on_an_alias() {
        let mut s = shop();
        s.blue.objects[1]["metadata"]["annotations"]["external-dns.alpha.kubernetes.io/ttl"] =
            "20".into();
        silent(&spec(), &s, "DNS-08");
        s.zones[0].records[0] = alias("www.shop.test", "a1.eu-west-1.elb.amazonaws.com");
        fires(&spec(), &s, "DNS-08", Warning, "host/www.shop.test");
    }
}
