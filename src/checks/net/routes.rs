//! NET-03.

use crate::checks::words::some;
use crate::checks::{Answered, Check, Input, Need, Part, Report};
use crate::plan::fit::routes::{self, Way};
use crate::plan::model::Severity;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECK: Check = Check {
    id: "NET-03",
    severity: Severity::Blocker,
    question: "Has every subnet of green a route to what blue's nodes reach?",
    needs: &[Need::Aws],
    answered: Answered::Plan,
    remedy: "Add the route to the subnet's route table.",
    source: "checks.md NET-03, eks.md 2.2",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let Some(aws) = &i.snapshot.aws else { return };
    let green: BTreeSet<String> = i
        .target
        .node_groups
        .iter()
        .flat_map(|g| g.subnets.iter().cloned())
        .collect();
    let blue = routes::blue_node_subnets(i.snapshot);
    let new: Vec<&String> = green.iter().filter(|s| !blue.contains(*s)).collect();
    if aws.route_tables.is_none() {
        // Blue's own subnets are known to work: only new ones need their routes read.
        if !new.is_empty() {
            let (what, how) = Need::Part(Part::RouteTables).words();
            r.not_checked("subnets", what, how);
        }
        return;
    }
    // What blue's workers reach, without their own pods' routes.
    let mut reached: BTreeMap<&str, &str> = BTreeMap::new();
    for s in &blue {
        for (to, by) in routes::table(aws, s).iter().flat_map(|t| &t.routes) {
            if to != "0.0.0.0/0"
                && by != "local"
                && by != "blackhole"
                && !by.starts_with("eni-")
                && !by.starts_with("i-")
            {
                reached.insert(to, by);
            }
        }
    }
    let mut open = vec![];
    for s in &green {
        let object = format!("subnet/{s}");
        match routes::way(aws, s) {
            Some(Way::Nowhere) => r.warning(
                object.as_str(),
                "has no default route: nodes join and pull images only if the VPC has endpoints for ecr.api, ecr.dkr, s3, sts, ec2, eks, eks-auth, logs and autoscaling, which were not read",
                "Add a route by a NAT gateway, or make sure of the endpoints.",
            ),
            Some(Way::Internet) => open.push(s.as_str()),
            Some(_) => {}
            None => r.not_checked(object.as_str(), "no route table counts for it", "Check that the subnet is in blue's VPC."),
        }
        let has = routes::table(aws, s).map(|t| &t.routes);
        let lacking: Vec<String> = reached
            .iter()
            .filter(|(to, _)| has.is_some_and(|h| !h.contains_key(**to)))
            .map(|(to, by)| format!("{to} ({by})"))
            .collect();
        if !lacking.is_empty() {
            r.found(
                object,
                format!("no route to {}, which blue's nodes have", some(&lacking)),
            );
        }
    }
    if !open.is_empty() {
        r.warning(
            "subnets",
            format!("{} lead out by an internet gateway: nodes need public addresses, and a managed node group is refused where the subnet does not give them by itself (Ec2SubnetInvalidConfiguration)", some(&open)),
            "Switch MapPublicIpOnLaunch on for these subnets, or name private ones under green.subnets.",
        );
    }
    if !new.is_empty() {
        r.not_checked(
            "network ACLs",
            &format!("network ACLs were not read, and green's nodes stand in subnets in which blue has none ({})", some(&new)),
            "Compare `aws ec2 describe-network-acls` of these subnets with those of blue's; then waive this.",
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{of, route_table, says, snapshot, spec, subnet};
    use crate::plan::model::Severity;
    use crate::plan::plan;

    /// Green in a new subnet a, blue in its old ones; the new one uses the given routes.
    fn moved(
        routes: &[(&str, &str)],
    ) -> (crate::spec::model::Spec, crate::snapshot::model::Snapshot) {
        let mut s = snapshot();
        if let Some(a) = &mut s.aws {
            a.subnets
                .push(subnet("subnet-new-a", "eu-west-1a", "172.20.64.0/19", 4000));
            a.subnets
                .push(subnet("subnet-new-b", "eu-west-1b", "172.20.96.0/19", 4000));
            a.route_tables = Some(vec![
                route_table(
                    "rtb-blue",
                    &["subnet-a", "subnet-b"],
                    &[
                        ("172.20.0.0/16", "local"),
                        ("0.0.0.0/0", "nat-1"),
                        ("10.1.0.0/16", "pcx-1"),
                        ("100.96.1.0/24", "eni-pod"),
                    ],
                ),
                route_table("rtb-new", &["subnet-new-a", "subnet-new-b"], routes),
            ]);
        }
        let mut spec = spec();
        spec.green.subnets = vec!["subnet-new-a".into(), "subnet-new-b".into()];
        (spec, s)
    }

    #[test]
    fn net_03_a_peer_that_only_blues_route_table_knows_blocks() {
        let (spec, s) = moved(&[("0.0.0.0/0", "nat-1")]);
        let p = plan(&spec, &s);
        says(
            &p,
            "NET-03",
            Severity::Blocker,
            "no route to 10.1.0.0/16 (pcx-1), which blue's nodes have",
        );
        // kubenet's routes to pods end with blue.
        assert!(
            of(&p, "NET-03")
                .iter()
                .all(|f| !f.message.contains("100.96"))
        );
        let (spec, s) = moved(&[("0.0.0.0/0", "nat-1"), ("10.1.0.0/16", "pcx-1")]);
        assert!(
            of(&plan(&spec, &s), "NET-03")
                .iter()
                .all(|f| f.severity == Severity::NotChecked)
        );
    }

    #[test]
    fn net_03_no_way_out_and_a_way_by_public_addresses_are_warnings() {
        let (spec, s) = moved(&[("10.1.0.0/16", "pcx-1")]);
        says(
            &plan(&spec, &s),
            "NET-03",
            Severity::Warning,
            "no default route",
        );
        let (spec, s) = moved(&[("10.1.0.0/16", "pcx-1"), ("0.0.0.0/0", "igw-1")]);
        says(
            &plan(&spec, &s),
            "NET-03",
            Severity::Warning,
            "internet gateway",
        );
    }

    #[test]
    fn net_03_blues_own_subnets_need_no_route_tables_to_be_trusted() {
        assert!(of(&plan(&spec(), &snapshot()), "NET-03").is_empty());
        let (spec, mut s) = moved(&[]);
        if let Some(a) = &mut s.aws {
            a.route_tables = None;
        }
        says(
            &plan(&spec, &s),
            "NET-03",
            Severity::NotChecked,
            "route tables were not read",
        );
    }
}
