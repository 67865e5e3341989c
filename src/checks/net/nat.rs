//! NET-04.

use crate::checks::{Answered, Check, Input, Need, Part, Report};
use crate::plan::fit::routes;
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "NET-04",
    severity: Severity::Blocker,
    question: "Do partners see green under addresses that they know from blue?",
    needs: &[Need::Aws],
    answered: Answered::Plan,
    remedy: "Route green's subnets by blue's NAT gateways, or announce the new addresses to every partner that lists blue's; then waive this.",
    source: "checks.md NET-04, eks.md 2.3",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let e = &i.network.egress;
    let list = |a: &[String], ways: &[String]| {
        if a.is_empty() {
            ways.join(", ")
        } else {
            a.join(", ")
        }
    };
    match e.same {
        Some(true) => {}
        Some(false) => {
            let own = e.green.iter().any(|w| *w == routes::Way::Internet.text());
            let message = if own {
                "green's nodes leave by an internet gateway with public addresses of their own, which nobody knows before they run".to_string()
            } else {
                format!(
                    "blue leaves by {}, green by {}: who lists blue's addresses refuses green",
                    list(&e.blue_addresses, &e.blue),
                    list(&e.green_addresses, &e.green)
                )
            };
            // Blue had no fixed addresses either: nobody can have listed them.
            let never_fixed = own && e.blue.iter().all(|w| *w == routes::Way::Internet.text());
            if never_fixed {
                r.warning("egress", format!("{message}; so do blue's, and a partner's list would have to name each of them"), CHECK.remedy);
            } else {
                r.found("egress", message);
            }
        }
        None => {
            if i.load.groups.is_empty() {
                return;
            }
            let aws = i.snapshot.aws.as_ref();
            let part = if aws.is_some_and(|a| a.route_tables.is_none()) {
                Part::RouteTables
            } else {
                Part::NatGateways
            };
            let (what, how) = Need::Part(part).words();
            let what = if aws.is_some_and(|a| a.route_tables.is_some()) {
                "which way blue's nodes or green's leave is not known"
            } else {
                what
            };
            r.not_checked("egress", what, how);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{nat_gateway, of, route_table, says, snapshot, spec, subnet};
    use crate::plan::model::Severity;
    use crate::plan::plan;

    fn moved(
        blue: &str,
        green: &str,
    ) -> (crate::spec::model::Spec, crate::snapshot::model::Snapshot) {
        let mut s = snapshot();
        if let Some(a) = &mut s.aws {
            a.subnets
                .push(subnet("subnet-new-a", "eu-west-1a", "172.20.64.0/19", 4000));
            a.subnets
                .push(subnet("subnet-new-b", "eu-west-1b", "172.20.96.0/19", 4000));
            a.nat_gateways = Some(vec![
                nat_gateway("nat-1", "198.51.100.1"),
                nat_gateway("nat-2", "198.51.100.2"),
            ]);
            a.route_tables = Some(vec![
                route_table(
                    "rtb-blue",
                    &["subnet-a", "subnet-b"],
                    &[("0.0.0.0/0", blue)],
                ),
                route_table(
                    "rtb-new",
                    &["subnet-new-a", "subnet-new-b"],
                    &[("0.0.0.0/0", green)],
                ),
            ]);
        }
        let mut spec = spec();
        spec.green.subnets = vec!["subnet-new-a".into(), "subnet-new-b".into()];
        (spec, s)
    }

    #[test]
    fn net_04_another_nat_gateway_means_that_partners_refuse_green() {
        let (spec, s) = moved("nat-1", "nat-2");
        let p = plan(&spec, &s);
        says(
            &p,
            "NET-04",
            Severity::Blocker,
            "blue leaves by 198.51.100.1, green by 198.51.100.2",
        );
        assert_eq!(p.network.egress.green_addresses, ["198.51.100.2"]);
        let (spec, s) = moved("nat-1", "nat-1");
        assert!(of(&plan(&spec, &s), "NET-04").is_empty());
    }

    #[test]
    fn net_04_the_same_nat_instance_or_transit_gateway_keeps_the_address() {
        for way in ["eni-0nat", "i-0nat", "tgw-1"] {
            let (spec, s) = moved(way, way);
            assert!(of(&plan(&spec, &s), "NET-04").is_empty(), "{way}");
        }
        let (spec, s) = moved("i-0nat", "nat-1");
        says(
            &plan(&spec, &s),
            "NET-04",
            Severity::Blocker,
            "blue leaves by NAT instance i-0nat, green by 198.51.100.1",
        );
    }

    #[test]
    fn net_04_public_nodes_have_new_addresses_even_in_the_same_subnets() {
        let (_, mut s) = moved("igw-1", "igw-1");
        says(
            &plan(&spec(), &s),
            "NET-04",
            Severity::Warning,
            "public addresses of their own",
        );
        let (moved_spec, t) = moved("nat-1", "igw-1");
        says(
            &plan(&moved_spec, &t),
            "NET-04",
            Severity::Blocker,
            "public addresses of their own",
        );
        // Blue's own private subnets, nothing read: the same routes, so the same addresses.
        if let Some(a) = &mut s.aws {
            a.route_tables = None;
        }
        assert!(of(&plan(&spec(), &s), "NET-04").is_empty());
        says(
            &plan(&moved_spec, &s),
            "NET-04",
            Severity::NotChecked,
            "route tables were not read",
        );
    }
}
