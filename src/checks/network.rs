//! NET: ranges, security groups, endpoint. Literals (NET-06) and policies (NET-07) are found by the rewrite.

use super::{Input, Report};
use crate::plan::overlap;
use serde_json::Value;

/// NET-01.
pub(super) fn service_range(i: &Input, r: &mut Report) {
    let mut routed: Vec<(String, String)> = vec![];
    if let Some(v) = i.snapshot.aws.as_ref().and_then(|a| a.vpc.as_ref()) {
        routed.extend(v.cidrs.iter().map(|c| (c.clone(), format!("VPC {}", v.id))));
    } else if let Some(c) = &i.snapshot.kops.cluster {
        for p in ["/spec/networkCIDR", "/spec/networking/networkCIDR"] {
            routed.extend(
                c.pointer(p)
                    .and_then(Value::as_str)
                    .map(|c| (c.to_string(), "blue's VPC".to_string())),
            );
        }
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
        // EKS takes 10.100.0.0/16 or 172.20.0.0/16; it avoids the VPC, not what is routed to it.
        r.warning(
            "green.serviceCidr",
            "not set: EKS takes 10.100.0.0/16 or 172.20.0.0/16, whatever else is routed to the VPC",
            "Set a range that no peer uses.",
        );
        return;
    };
    for (range, what) in routed {
        match overlap(cidr, &range) {
            Some(true) => r.blocker(
                "green.serviceCidr",
                format!("{cidr} overlaps {what} ({range}): pods could not reach it"),
                "Choose another range.",
            ),
            Some(false) => {}
            None => r.not_checked(
                "green.serviceCidr",
                &format!("{cidr} or {range} is no IPv4 range"),
                "Correct the range.",
            ),
        }
    }
}

/// NET-02: what trusts blue's nodes, and gets a rule for green's.
pub(super) fn security_groups(i: &Input, r: &mut Report) {
    let Some(aws) = &i.snapshot.aws else {
        r.not_checked(
            "security groups",
            "they were not read",
            "Run discover with AWS credentials.",
        );
        return;
    };
    let blue = format!("nodes.{}", i.spec.blue.cluster);
    let nodes: Vec<&str> = aws
        .security_groups
        .iter()
        .filter(|g| g.name == blue)
        .map(|g| g.id.as_str())
        .collect();
    for g in &aws.security_groups {
        if g.tags.get("KubernetesCluster") == Some(&i.spec.blue.cluster) {
            continue;
        }
        let n = g
            .ingress
            .iter()
            .filter(|x| {
                x.source_group
                    .as_deref()
                    .is_some_and(|s| nodes.contains(&s))
            })
            .count();
        if n > 0 {
            r.info(
                format!("security-group/{}", g.id),
                format!(
                    "{} lets blue's nodes in by {n} rules; green's nodes get the same, beside them",
                    g.name
                ),
                "Nothing to do.",
            );
        }
    }
}

/// NET-12.
pub(super) fn endpoint_mode(i: &Input, r: &mut Report) {
    if !i.spec.green.public_endpoint {
        r.warning(
            "green.publicEndpoint",
            "the API is reached from inside the VPC only: CI and operators outside cannot",
            "Open a path (VPN, peering) or use the public endpoint.",
        );
    }
}
