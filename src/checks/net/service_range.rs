//! NET-01.

use crate::checks::words::items;
use crate::checks::{Answered, Check, Input, Report};
use crate::plan::fit::{cni, routes};
use crate::plan::model::Severity;
use crate::plan::overlap;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) const CHECK: Check = Check {
    id: "NET-01",
    severity: Severity::Blocker,
    question: "Is green's service range free of the VPC and of every network that is routed to it?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Choose another range (green.serviceCidr).",
    source: "checks.md NET-01, eks.md 1.2",
    run,
};

/// What EKS takes by itself (eks.md 1.2).
const EKS: [&str; 2] = ["10.100.0.0/16", "172.20.0.0/16"];

fn run(i: &Input, r: &mut Report) {
    if cni::ipv6(i.snapshot) {
        r.blocker(
            "kops/spec.nonMasqueradeCIDR",
            "blue's pods and services have IPv6 addresses; green as planned has IPv4, and EKS never changes the family of a cluster",
            "Decide first: an IPv6 cluster is not made by crossfade; moving to IPv4 means that whatever names IPv6 addresses of pods must change.",
        );
    }
    let mut routed: BTreeMap<String, String> = BTreeMap::new();
    if let Some(c) = &i.snapshot.kops.cluster {
        for p in ["/spec/networkCIDR", "/spec/networking/networkCIDR"] {
            if let Some(c) = c.pointer(p).and_then(Value::as_str) {
                routed.insert(c.into(), "blue's VPC".into());
            }
        }
        for p in [
            "/spec/additionalNetworkCIDRs",
            "/spec/networking/additionalNetworkCIDRs",
        ] {
            for c in items(c, p).filter_map(Value::as_str) {
                routed.insert(c.into(), "blue's VPC".into());
            }
        }
    }
    for (range, by) in routes::routed(i.snapshot) {
        routed.insert(range, format!("a network that is routed to by {by}"));
    }
    if let Some(v) = i.snapshot.aws.as_ref().and_then(|a| a.vpc.as_ref()) {
        routed.extend(v.cidrs.iter().map(|c| (c.clone(), format!("VPC {}", v.id))));
    }
    if routed.is_empty() {
        r.not_checked(
            "green.serviceCidr",
            "the VPC's ranges are not known",
            "Run discover with AWS credentials.",
        );
        return;
    }
    let Some(cidr) = &i.spec.green.service_cidr else {
        // EKS avoids the VPC's ranges, not what is routed to it.
        let taken: Vec<String> = EKS
            .iter()
            .filter_map(|e| {
                let (range, what) = routed
                    .iter()
                    .find(|(c, w)| !w.contains("VPC") && overlap(c, e) == Some(true))?;
                Some(format!("{e} overlaps {range}, {what}"))
            })
            .collect();
        let tail = if taken.is_empty() {
            String::new()
        } else {
            format!(": {}", taken.join("; "))
        };
        r.warning(
            "green.serviceCidr",
            format!("not set: EKS takes 10.100.0.0/16 or 172.20.0.0/16, whatever else is routed to the VPC{tail}"),
            "Set a range that no peer uses.",
        );
        return;
    };
    for (range, what) in routed {
        match overlap(cidr, &range) {
            Some(true) => r.found(
                "green.serviceCidr",
                format!("{cidr} overlaps {what} ({range}): pods could not reach it"),
            ),
            Some(false) => {}
            // Prefix lists and IPv6 are no IPv4 range: nothing to compare.
            None if range.starts_with("pl-") || range.contains(':') => {}
            None => r.not_checked(
                "green.serviceCidr",
                &format!("{cidr} or {range} is no IPv4 range"),
                "Correct the range.",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{of, route_table, says, snapshot, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::json;

    #[test]
    fn net_01_a_service_range_inside_the_vpc_blocks_and_none_is_a_warning() {
        let mut s = spec();
        s.green.service_cidr = Some("172.20.0.0/16".into());
        says(
            &plan(&s, &snapshot()),
            "NET-01",
            Severity::Blocker,
            "overlaps VPC vpc-1",
        );
        s.green.service_cidr = None;
        says(
            &plan(&s, &snapshot()),
            "NET-01",
            Severity::Warning,
            "not set",
        );
        assert!(of(&plan(&spec(), &snapshot()), "NET-01").is_empty());
    }

    #[test]
    fn net_01_a_peer_behind_a_transit_gateway_counts_like_the_vpc() {
        let mut s = snapshot();
        if let Some(a) = &mut s.aws {
            a.route_tables = Some(vec![route_table(
                "rtb-1",
                &["subnet-a", "subnet-b"],
                &[
                    ("172.20.0.0/16", "local"),
                    ("0.0.0.0/0", "nat-1"),
                    ("10.96.0.0/12", "tgw-1"),
                    ("pl-1", "vpce-1"),
                ],
            )]);
        }
        says(
            &plan(&spec(), &s),
            "NET-01",
            Severity::Blocker,
            "routed to by tgw-1 (10.96.0.0/12)",
        );
        let mut unset = spec();
        unset.green.service_cidr = None;
        says(
            &plan(&unset, &s),
            "NET-01",
            Severity::Warning,
            "10.100.0.0/16 overlaps 10.96.0.0/12",
        );
    }

    #[test]
    fn net_01_an_ipv6_blue_is_a_decision_of_its_own() {
        let mut s = snapshot();
        if let Some(c) = &mut s.kops.cluster {
            c["spec"]["nonMasqueradeCIDR"] = json!("::/0");
        }
        says(&plan(&spec(), &s), "NET-01", Severity::Blocker, "IPv6");
    }
}
