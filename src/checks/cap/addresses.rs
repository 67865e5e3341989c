//! CAP-04.

use crate::checks::words::some;
use crate::checks::{Answered, Check, Input, Need, Report};
use crate::plan::fit::with_reserve;
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "CAP-04",
    severity: Severity::Blocker,
    question: "Do the subnets have the addresses that green's nodes and pods take, and a fifth more?",
    needs: &[Need::Aws],
    answered: Answered::Plan,
    remedy: "Take prefixes, more subnets or a secondary CIDR.",
    source: "checks.md CAP-04, eks.md 2.2",
    run,
};

/// AWS's load balancer controller leaves out subnets with fewer free addresses (eks.md 2.2).
const BALANCER: u32 = 8;

fn run(i: &Input, r: &mut Report) {
    let unknown: Vec<&str> = i
        .load
        .groups
        .iter()
        .flat_map(|g| &g.unknown)
        .map(String::as_str)
        .collect();
    if !unknown.is_empty() {
        r.not_checked(
            "subnets",
            &format!("addresses per node of {} are not known", some(&unknown)),
            "Run discover with AWS credentials, or name a current type under green.nodeGroups.",
        );
        return;
    }
    let remedy = if i.network.offers.is_empty() {
        CHECK.remedy.to_string()
    } else {
        format!("One of these. {}.", i.network.offers.join(". "))
    };
    let density = i
        .network
        .groups
        .iter()
        .map(|g| {
            format!(
                "{} {} pods and {} addresses a node",
                g.node_group, g.pods, g.addresses
            )
        })
        .collect::<Vec<_>>();
    for s in &i.network.subnets {
        let object = format!("subnet/{}", s.subnet);
        let Some(free) = s.free else {
            r.blocker(
                object,
                "the account has no such subnet in blue's VPC",
                "Correct green.subnets.",
            );
            continue;
        };
        let n = s.need_now;
        if free < n {
            r.blocker(
                object,
                format!(
                    "{free} addresses are free, green needs about {n} there ({})",
                    some(&density)
                ),
                &remedy,
            );
        } else if free < with_reserve(n) {
            r.warning(
                object,
                format!(
                    "{free} addresses are free, green needs about {n}: less than a fifth in reserve"
                ),
                &remedy,
            );
        } else if free < s.need_max {
            r.warning(
                object,
                format!("{free} addresses are free, green needs about {n} at first and {} when its groups are at their largest", s.need_max),
                &remedy,
            );
        }
    }
    for s in i.snapshot.aws.iter().flat_map(|a| &a.subnets) {
        let for_balancers = s
            .tags
            .keys()
            .any(|k| k == "kubernetes.io/role/elb" || k == "kubernetes.io/role/internal-elb");
        if for_balancers
            && s.free_ips < BALANCER
            && !i.network.subnets.iter().any(|f| f.subnet == s.id)
        {
            r.warning(
                format!("subnet/{}", s.id),
                format!("{} addresses are free: load balancers of green leave out subnets with fewer than {BALANCER}", s.free_ips),
                "Free some, or tag another subnet of the zone.",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{deployment, inventory, of, says, snapshot, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::json;

    #[test]
    fn cap_04_counts_addresses_as_the_vpc_cni_takes_them() {
        // 4 nodes over 2 zones, one zone lost: 4, and 2 more while they surge: 6 * 20 (m5.large, 5 pods) + 16 = 136.
        let mut s = snapshot();
        s.aws = Some(inventory(135));
        let p = plan(&spec(), &s);
        says(&p, "CAP-04", Severity::Blocker, "about 136");
        // The VPC is 172.20.0.0/16: the first free /16 of its family, and never 100.64.0.0/10.
        assert!(
            of(&p, "CAP-04")[0]
                .remedy
                .contains("172.16.0.0/16 as a secondary CIDR"),
            "{}",
            of(&p, "CAP-04")[0].remedy
        );
        assert_eq!(p.network.subnets[0].ok, Some(false));
        s.aws = Some(inventory(150));
        says(&plan(&spec(), &s), "CAP-04", Severity::Warning, "reserve");
        s.aws = Some(inventory(164));
        assert!(of(&plan(&spec(), &s), "CAP-04").is_empty());
    }

    #[test]
    fn cap_04_more_pods_take_more_interfaces_and_single_addresses_fewer() {
        // 80 pods of one deployment on 4 nodes: 20 and, of 4 pods of add-ons, one more, and the CSI driver's: 22 a node, so all 3 interfaces: 30.
        let mut s = snapshot();
        s.blue.objects = vec![deployment("web", 80, json!({}))];
        s.aws = Some(inventory(195));
        let p = plan(&spec(), &s);
        says(&p, "CAP-04", Severity::Blocker, "about 196");
        // With WARM_IP_TARGET=2 and MINIMUM_IP_TARGET=22: 24 + 3 = 27 a node: 6 * 27 + 16 = 178.
        let mut wish = spec();
        wish.green.network.warm_ip_target = Some(2);
        wish.green.network.cni_env = [("MINIMUM_IP_TARGET".to_string(), "22".to_string())].into();
        assert_eq!(plan(&wish, &s).network.subnets[0].need_now, 178);
    }

    #[test]
    fn cap_04_the_largest_size_is_a_warning_of_its_own() {
        let mut s = snapshot();
        s.kops.instance_groups[0]["spec"]["maxSize"] = json!(20);
        s.aws = Some(inventory(300));
        says(
            &plan(&spec(), &s),
            "CAP-04",
            Severity::Warning,
            "136 at first and 456 when",
        );
    }
}
