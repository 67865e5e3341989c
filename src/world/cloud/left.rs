//! Whether the account is as it was: two inventories, as far as provisioning touches what they tell.

use super::Inventory;
use crate::world::observe;
use serde_json::{Value, json};

/// What a provision touches, by name or id, without what moves by itself (free addresses, instances, volumes).
fn touched(inventory: &Inventory) -> Value {
    let mut out = json!({
        "vpc tags": inventory.vpc.as_ref().map(|v| &v.tags),
        "oidc providers": inventory.oidc_providers,
        "instance profiles": inventory.instance_profiles,
    });
    let mut by = |kind: &str, name: &str, value: Value| {
        out[kind][name] = value;
    };
    for s in &inventory.subnets {
        by("subnet tags", &s.id, json!(s.tags));
    }
    for g in &inventory.security_groups {
        by(
            "security groups",
            &g.id,
            json!({"tags": g.tags, "ingress": g.ingress}),
        );
    }
    for r in &inventory.roles {
        by("roles", &r.name, json!(r));
    }
    for c in &inventory.clusters {
        by("clusters", &c.name, json!(c));
    }
    for t in inventory.launch_templates.iter().flatten() {
        by("launch templates", &t.resource.id(), json!(t));
    }
    for g in inventory.log_groups.iter().flatten() {
        by("log groups", &g.resource.id(), json!(g));
    }
    if let Some(b) = &inventory.state_bucket {
        by("state bucket", &b.resource.id(), json!(b));
    }
    out
}

/// The places where the account differs from what it was, as `kind > name > field: before -> after`; empty when it is as it was.
/// A part that one of the two did not read says nothing.
pub fn diff(before: &Inventory, after: &Inventory) -> Vec<String> {
    let (mut a, mut b) = (touched(before), touched(after));
    for (part, read) in [
        (
            "launch templates",
            before.launch_templates.is_some() && after.launch_templates.is_some(),
        ),
        (
            "instance profiles",
            before.instance_profiles.is_some() && after.instance_profiles.is_some(),
        ),
        (
            "log groups",
            before.log_groups.is_some() && after.log_groups.is_some(),
        ),
    ] {
        if !read {
            for side in [&mut a, &mut b] {
                if let Some(m) = side.as_object_mut() {
                    m.remove(part);
                }
            }
        }
    }
    observe::diff(&a, &b)
}

/// Of such lines those that are about what a run made: they carry its id, or the name of green.
pub fn of_run<'d>(lines: &'d [String], run: &str, green: &str) -> Vec<&'d String> {
    lines
        .iter()
        .filter(|l| l.contains(run) || l.contains(green))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Role, Subnet};
    use super::*;
    use std::collections::BTreeMap;

    fn account() -> Inventory {
        Inventory {
            subnets: vec![Subnet {
                id: "subnet-1".into(),
                vpc: "vpc-1".into(),
                zone: "eu-west-1a".into(),
                cidr: "10.0.0.0/24".into(),
                free_ips: 250,
                tags: BTreeMap::new(),
            }],
            ..Inventory::default()
        }
    }

    #[test]
    fn addresses_that_others_took_meanwhile_are_no_difference_and_a_tag_that_stayed_is_one() {
        let mut after = account();
        after.subnets[0].free_ips = 12;
        assert_eq!(diff(&account(), &after), Vec::<String>::new());
        let tag = (
            "kubernetes.io/cluster/shop-green".to_string(),
            "shared".to_string(),
        );
        after.subnets[0].tags.extend([tag]);
        let lines = diff(&account(), &after);
        assert_eq!(
            lines,
            ["subnet tags > subnet-1 > kubernetes.io/cluster/shop-green: absent -> \"shared\""]
        );
        assert_eq!(of_run(&lines, "shop-1a2b3c", "shop-green").len(), 1);
    }

    #[test]
    fn a_role_that_somebody_else_made_meanwhile_is_told_apart_from_what_the_run_left() {
        let mut after = account();
        after.roles.push(Role {
            name: "billing".into(),
            arn: "arn:aws:iam::000000000000:role/billing".into(),
            trust: json!({}),
            managed_policies: vec![],
            inline_policies: BTreeMap::new(),
            boundary: None,
            tags: BTreeMap::new(),
        });
        let lines = diff(&account(), &after);
        assert_eq!(lines.len(), 1);
        assert!(of_run(&lines, "shop-1a2b3c", "shop-green").is_empty());
    }
}
