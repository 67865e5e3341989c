//! NET-02.

use crate::checks::words::count;
use crate::checks::{Answered, Check, Input, Need, Report};
use crate::plan::model::Severity;
use crate::plan::{NodeTrust, trust_of_blue};
use std::collections::BTreeMap;

pub(super) const CHECK: Check = Check {
    id: "NET-02",
    severity: Severity::Blocker,
    question: "Does every security group that lets blue's nodes in let green's in too?",
    needs: &[Need::Aws],
    answered: Answered::Plan,
    remedy: "Add a rule for green's nodes before the cutover.",
    source: "checks.md NET-02, eks.md 2.3",
    run,
};

/// Rules in each direction that EC2 allows on a group unless it was asked for more (eks.md 2.3).
const RULES: usize = 60;

fn run(i: &Input, r: &mut Report) {
    let Some(aws) = &i.snapshot.aws else { return };
    let mut mirrored: BTreeMap<&str, usize> = BTreeMap::new();
    let mut single: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut masters: BTreeMap<&str, usize> = BTreeMap::new();
    let all = trust_of_blue(i.snapshot, i.spec, i.target);
    for t in &all {
        match t {
            NodeTrust::Mirrored { group, .. } => *mirrored.entry(group).or_default() += 1,
            NodeTrust::SingleAddress { group, cidr } => single.entry(group).or_default().push(cidr),
            NodeTrust::Masters { group } => *masters.entry(group).or_default() += 1,
        }
    }
    let name = |id: &str| {
        aws.security_groups
            .iter()
            .find(|g| g.id == id)
            .map_or(id.to_string(), |g| g.name.clone())
    };
    let quota = aws
        .quotas
        .iter()
        .flatten()
        .find(|(k, _)| *k == "vpc/L-0EA8095F")
        .map(|(_, q)| q.value as usize);
    for (id, n) in mirrored {
        let now = aws
            .security_groups
            .iter()
            .find(|g| g.id == id)
            .map_or(0, |g| g.ingress.len());
        let limit = quota.unwrap_or(RULES);
        let object = format!("security-group/{id}");
        if now + n > limit {
            r.blocker(
                object,
                format!(
                    "{} has {now} rules, green's nodes need {n} more, and {limit} are allowed{}",
                    name(id),
                    if quota.is_some() { "" } else { " by default" }
                ),
                "Ask for a higher quota (rules per security group), or merge rules first.",
            );
        } else {
            r.info(
                object,
                format!(
                    "{} lets blue's nodes in by {}; green's nodes get the same, beside them",
                    name(id),
                    count(n, "rule")
                ),
                "Nothing to do.",
            );
        }
    }
    for (id, cidrs) in single {
        r.warning(
            format!("security-group/{id}"),
            format!(
                "{} lets single addresses of blue's nodes in ({}): green's nodes have others",
                name(id),
                cidrs.join(", ")
            ),
            "Add a rule for green's cluster security group when it stands, if pods use this way.",
        );
    }
    for (id, n) in masters {
        r.warning(
            format!("security-group/{id}"),
            format!("{} lets blue's control plane in by {}: what ran on masters runs on green's nodes, or not at all", name(id), count(n, "rule")),
            "Add a rule for green's cluster security group if a pod of the masters used this way.",
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{
        group, of, rule_from_cidr, rule_from_group, says, snapshot, spec, subnet,
    };
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::json;

    fn with(groups: Vec<crate::world::cloud::SecurityGroup>) -> crate::snapshot::model::Snapshot {
        let mut s = snapshot();
        if let Some(a) = &mut s.aws {
            a.security_groups = groups;
        }
        s
    }
    fn step(p: &crate::plan::model::Plan, id: &str) -> bool {
        p.steps.iter().any(|s| s.id == id)
    }

    #[test]
    fn net_02_a_foreign_group_that_trusts_blues_nodes_gets_a_rule_for_greens() {
        let p = plan(
            &spec(),
            &with(vec![
                group("sg-nodes", "nodes.shop.test", vec![]),
                group("sg-db", "database", vec![rule_from_group(5432, "sg-nodes")]),
            ]),
        );
        says(
            &p,
            "NET-02",
            Severity::Info,
            "database lets blue's nodes in by 1 rule",
        );
        assert!(step(
            &p,
            "provision/security-group-rule/sg-db/tcp/5432-5432/green"
        ));
        let p = plan(
            &spec(),
            &with(vec![
                group("sg-nodes", "nodes.shop.test", vec![]),
                group(
                    "sg-db",
                    "database",
                    vec![rule_from_group(5432, "sg-office")],
                ),
            ]),
        );
        assert!(of(&p, "NET-02").is_empty());
    }

    #[test]
    fn net_02_a_group_that_blues_nodes_carry_besides_their_own_is_trust_too() {
        let mut s = with(vec![
            group("sg-nodes", "nodes.shop.test", vec![]),
            group("sg-extra", "db-clients", vec![]),
            group("sg-db", "database", vec![rule_from_group(3306, "sg-extra")]),
        ]);
        assert!(of(&plan(&spec(), &s), "NET-02").is_empty());
        s.kops.instance_groups[0]["spec"]["additionalSecurityGroups"] = json!(["sg-extra"]);
        let p = plan(&spec(), &s);
        says(&p, "NET-02", Severity::Info, "database");
        assert!(step(
            &p,
            "provision/security-group-rule/sg-db/tcp/3306-3306/green"
        ));
    }

    #[test]
    fn net_02_a_range_of_blues_subnets_is_trust_only_where_green_stands_elsewhere() {
        let db = || {
            vec![
                group("sg-nodes", "nodes.shop.test", vec![]),
                group(
                    "sg-db",
                    "database",
                    vec![rule_from_cidr(5432, "172.20.32.0/23")],
                ),
            ]
        };
        // Green in blue's subnets: its addresses are in the range already.
        assert!(of(&plan(&spec(), &with(db())), "NET-02").is_empty());
        let mut s = with(db());
        if let Some(a) = &mut s.aws {
            a.subnets
                .push(subnet("subnet-new-a", "eu-west-1a", "172.20.64.0/19", 4000));
            a.subnets
                .push(subnet("subnet-new-b", "eu-west-1b", "172.20.96.0/19", 4000));
        }
        let mut moved = spec();
        moved.green.subnets = vec!["subnet-new-a".into(), "subnet-new-b".into()];
        let p = plan(&moved, &s);
        says(&p, "NET-02", Severity::Info, "database");
        assert!(step(
            &p,
            "provision/security-group-rule/sg-db/tcp/5432-5432/green"
        ));
    }

    #[test]
    fn net_02_single_addresses_and_trust_in_masters_are_for_a_person() {
        let p = plan(
            &spec(),
            &with(vec![
                group("sg-nodes", "nodes.shop.test", vec![]),
                group("sg-masters", "masters.shop.test", vec![]),
                group(
                    "sg-a",
                    "legacy",
                    vec![rule_from_cidr(80, "172.20.32.17/32")],
                ),
                group("sg-b", "vault", vec![rule_from_group(8200, "sg-masters")]),
            ]),
        );
        says(&p, "NET-02", Severity::Warning, "172.20.32.17/32");
        says(
            &p,
            "NET-02",
            Severity::Warning,
            "vault lets blue's control plane in",
        );
    }

    #[test]
    fn net_02_a_group_whose_rules_are_full_cannot_take_one_more() {
        let mut rules: Vec<_> = (0..59)
            .map(|n| rule_from_cidr(1000 + n, "192.0.2.0/24"))
            .collect();
        rules.push(rule_from_group(5432, "sg-nodes"));
        let p = plan(
            &spec(),
            &with(vec![
                group("sg-nodes", "nodes.shop.test", vec![]),
                group("sg-db", "database", rules),
            ]),
        );
        says(
            &p,
            "NET-02",
            Severity::Blocker,
            "has 60 rules, green's nodes need 1 more, and 60 are allowed",
        );
    }
}
