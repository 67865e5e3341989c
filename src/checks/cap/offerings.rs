//! CAP-07.

use crate::checks::words::some;
use crate::checks::{Answered, Check, Input, Need, Part, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "CAP-07",
    severity: Severity::Warning,
    question: "Does EC2 offer each group's types in its zones, and is there more than one type?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Add a second type (green.nodeGroups).",
    source: "checks.md CAP-07",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let mut alone = vec![];
    for g in i
        .target
        .node_groups
        .iter()
        .filter(|g| g.instance_types.len() == 1)
    {
        let t = &g.instance_types[0];
        if g.capacity_type == "SPOT" {
            r.found(
                format!("node-group/{}", g.name),
                format!("a SPOT group of one type ({t}): a stock-out stops it"),
            );
        } else {
            alone.push(format!("{} ({t})", g.name));
        }
    }
    if !alone.is_empty() {
        r.info(
            "node groups",
            format!(
                "of one type each: {}; a stock-out stops scaling",
                some(&alone)
            ),
            "A second type of the same size makes them safer.",
        );
    }
    let Some(aws) = &i.snapshot.aws else { return };
    let Some(offered) = &aws.offerings else {
        if !i.load.groups.is_empty() {
            let (what, how) = Need::Part(Part::Offerings).words();
            r.not_checked("node groups", what, how);
        }
        return;
    };
    for (g, t) in i.load.groups.iter().zip(&i.target.node_groups) {
        let lacking: Vec<&str> = g
            .zones
            .iter()
            .map(String::as_str)
            .filter(|z| {
                // A type that was not asked about is not known to be missing.
                t.instance_types.iter().all(|n| {
                    offered
                        .get(n)
                        .is_some_and(|zones| !zones.iter().any(|x| x == z))
                })
            })
            .collect();
        if lacking.is_empty() {
            continue;
        }
        let object = format!("node-group/{}", t.name);
        let message = format!(
            "EC2 does not offer {} in {}",
            t.instance_types.join(" or "),
            lacking.join(", ")
        );
        if lacking.len() == g.zones.len() {
            r.blocker(
                object,
                format!("{message}: the group would stay empty"),
                "Choose another type (green.nodeGroups) or other subnets.",
            );
        } else {
            r.warning(
                object,
                format!("{message}: no node would start there"),
                "Add a type that the zone has (green.nodeGroups).",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{of, says, snapshot, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::json;

    #[test]
    fn cap_07_a_zone_without_the_type_is_named_and_no_zone_at_all_blocks() {
        let mut s = snapshot();
        let mut offered = |zones: &[&str]| {
            if let Some(a) = &mut s.aws {
                a.offerings = Some(
                    [(
                        "m5.large".to_string(),
                        zones.iter().map(|z| z.to_string()).collect(),
                    )]
                    .into(),
                );
            }
            plan(&spec(), &s)
        };
        says(
            &offered(&["eu-west-1a", "eu-west-1c"]),
            "CAP-07",
            Severity::Warning,
            "does not offer m5.large in eu-west-1b",
        );
        says(
            &offered(&["eu-west-1c"]),
            "CAP-07",
            Severity::Blocker,
            "stay empty",
        );
        assert!(
            of(&offered(&["eu-west-1a", "eu-west-1b"]), "CAP-07")
                .iter()
                .all(|f| f.severity == Severity::Info)
        );
    }

    #[test]
    fn cap_07_a_spot_group_of_one_type_is_a_risk_and_of_two_is_not() {
        let mut s = snapshot();
        s.kops.instance_groups[0]["spec"]["maxPrice"] = json!("0.08");
        says(
            &plan(&spec(), &s),
            "CAP-07",
            Severity::Warning,
            "SPOT group of one type",
        );
        s.kops.instance_groups[0]["spec"]["mixedInstancesPolicy"] =
            json!({"instances": ["m5.large", "m5a.large"]});
        assert!(
            of(&plan(&spec(), &s), "CAP-07")
                .iter()
                .all(|f| f.severity != Severity::Warning)
        );
    }
}
