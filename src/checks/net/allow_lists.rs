//! NET-05.

use crate::checks::words::{items, some};
use crate::checks::{Answered, Check, Input, Need, Report};
use crate::object::annotation;
use crate::plan::model::Severity;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) const CHECK: Check = Check {
    id: "NET-05",
    severity: Severity::Warning,
    question: "Do source ranges and policies by address let green in where they let blue in?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Add green's addresses now, take blue's out after finalize.",
    source: "checks.md NET-05, eks.md 2.3",
    run,
};

/// Annotations that hold a list of source ranges.
const RANGES: &[&str] = &[
    "nginx.ingress.kubernetes.io/whitelist-source-range",
    "nginx.ingress.kubernetes.io/allowlist-source-range",
    "ingress.kubernetes.io/whitelist-source-range",
    "traefik.ingress.kubernetes.io/whitelist-source-range",
    "service.beta.kubernetes.io/load-balancer-source-ranges",
    "alb.ingress.kubernetes.io/inbound-cidrs",
];

fn run(i: &Input, r: &mut Report) {
    let e = &i.network.egress;
    let lost = |text: &str| -> bool {
        let ip = text.split('/').next().unwrap_or("").trim();
        let exact = text.trim().ends_with("/32") || !text.contains('/');
        // Pods of blue; or a NAT address that green does not leave by.
        i.cx.is_blue_range(text.trim())
            || i.cx.is_blue_address(ip)
            || exact
                && e.same != Some(true)
                && e.blue_addresses.iter().any(|a| a == ip)
                && !e.green_addresses.iter().any(|a| a == ip)
    };
    for o in i.of_kind("Service").chain(i.of_kind("Ingress")) {
        let (name, o) = (&o.name, o.object);
        let mut found: Vec<String> = items(o, "/spec/loadBalancerSourceRanges")
            .filter_map(Value::as_str)
            .filter(|c| lost(c))
            .map(String::from)
            .collect();
        for a in RANGES {
            for c in annotation(o, a).unwrap_or("").split(',') {
                if lost(c) {
                    found.push(c.trim().to_string());
                }
            }
        }
        if !found.is_empty() {
            r.found(
                name.as_str(),
                format!("lets blue's addresses in ({}), not green's", some(&found)),
            );
        }
    }
    let Some(aws) = &i.snapshot.aws else { return };
    // Policies of IAM that ask for a source address: named with the addresses that green will not have.
    let mut policies: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for role in &aws.roles {
        for (name, document) in &role.inline_policies {
            note(
                &mut policies,
                format!("role/{} policy {name}", role.name),
                document,
                &lost,
            );
        }
    }
    for (arn, document) in aws.policies.iter().flatten() {
        note(&mut policies, arn.clone(), document, &lost);
    }
    for (name, ranges) in policies {
        r.found(
            name,
            format!(
                "allows by aws:SourceIp for addresses of blue ({}): calls from green are denied",
                some(&ranges)
            ),
        );
    }
    if e.same == Some(false) {
        r.not_checked(
            "bucket, queue and key policies",
            "resource policies are not read, and green leaves under other addresses than blue",
            "Search them for aws:SourceIp, aws:SourceVpce and aws:VpcSourceIp (`aws s3api get-bucket-policy` ...) and add green's addresses; then waive this.",
        );
    }
}

fn note(
    into: &mut BTreeMap<String, Vec<String>>,
    name: String,
    document: &Value,
    lost: &impl Fn(&str) -> bool,
) {
    let mut found = vec![];
    let statements = match &document["Statement"] {
        Value::Array(a) => a.as_slice(),
        one => std::slice::from_ref(one),
    };
    for s in statements {
        for condition in s["Condition"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(_, v)| v)
        {
            for (_, values) in condition
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(k, _)| k.eq_ignore_ascii_case("aws:SourceIp"))
            {
                match values {
                    Value::String(v) => found.extend(lost(v).then(|| v.clone())),
                    Value::Array(all) => found.extend(
                        all.iter()
                            .filter_map(Value::as_str)
                            .filter(|v| lost(v))
                            .map(String::from),
                    ),
                    _ => {}
                }
            }
        }
    }
    if !found.is_empty() {
        into.insert(name, found);
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{nat_gateway, of, route_table, says, snapshot, spec, subnet};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use crate::world::cloud::Role;
    use serde_json::{Value, json};

    fn company(green_nat: &str) -> (crate::spec::model::Spec, crate::snapshot::model::Snapshot) {
        let mut s = snapshot();
        let service = |name: &str, ranges: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "n"}, "spec": {"type": "LoadBalancer", "loadBalancerSourceRanges": ranges, "ports": []}});
        s.blue.objects = vec![
            service("api", json!(["198.51.100.1/32", "203.0.113.0/24"])),
            service("office", json!(["203.0.113.0/24"])),
        ];
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
                    &[("0.0.0.0/0", "nat-1")],
                ),
                route_table(
                    "rtb-new",
                    &["subnet-new-a", "subnet-new-b"],
                    &[("0.0.0.0/0", green_nat)],
                ),
            ]);
            a.roles.push(Role {
                name: "ci".into(),
                arn: "arn:aws:iam::000000000000:role/ci".into(),
                trust: json!({}),
                managed_policies: vec![],
                boundary: None,
                inline_policies: [("by-address".to_string(), json!({"Statement": {"Effect": "Allow", "Action": "s3:*", "Resource": "*", "Condition": {"IpAddress": {"aws:SourceIp": ["198.51.100.1/32"]}}}}))].into(),
                tags: Default::default(),
            });
        }
        let mut spec = spec();
        spec.green.subnets = vec!["subnet-new-a".into(), "subnet-new-b".into()];
        (spec, s)
    }

    #[test]
    fn net_05_lists_that_name_blues_nat_address_are_extended_before_green_leaves_by_another() {
        let (spec, s) = company("nat-2");
        let p = plan(&spec, &s);
        says(
            &p,
            "NET-05",
            Severity::Warning,
            "lets blue's addresses in (198.51.100.1/32), not green's",
        );
        says(&p, "NET-05", Severity::Warning, "aws:SourceIp");
        says(
            &p,
            "NET-05",
            Severity::NotChecked,
            "resource policies are not read",
        );
        assert_eq!(
            of(&p, "NET-05").len(),
            3,
            "the office's range is no address of blue"
        );
    }

    #[test]
    fn net_05_with_the_same_nat_every_list_stays_good() {
        let (spec, s) = company("nat-1");
        assert!(of(&plan(&spec, &s), "NET-05").is_empty());
    }
}
