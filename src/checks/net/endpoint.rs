//! NET-12.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "NET-12",
    severity: Severity::Blocker,
    question: "Does everybody who talks to blue's API server reach green's?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Open a path (VPN, peering), or use the public endpoint with green.endpointCidrs.",
    source: "checks.md NET-12, eks.md 1.2",
    run,
};

/// Address ranges of the public endpoint that EKS takes at most (eks.md 1.2).
const RANGES: usize = 40;

fn run(i: &Input, r: &mut Report) {
    let g = &i.spec.green;
    if !g.public_endpoint {
        r.warning(
            "green.publicEndpoint",
            "the API is reached from inside the VPC only: CI, Vault and operators outside cannot, and neither can crossfade from elsewhere",
            CHECK.remedy,
        );
        if !g.endpoint_cidrs.is_empty() {
            r.info(
                "green.endpointCidrs",
                "has no effect without the public endpoint",
                "Take it out.",
            );
        }
        return;
    }
    if g.endpoint_cidrs.len() > RANGES {
        r.found(
            "green.endpointCidrs",
            format!(
                "{} ranges are given, EKS takes {RANGES}",
                g.endpoint_cidrs.len()
            ),
        );
    }
    // Blue's API had doors of its own: who came by one that green does not open is locked out.
    if g.endpoint_cidrs.is_empty() {
        return;
    }
    let blue: Vec<&str> = i
        .snapshot
        .kops
        .cluster
        .iter()
        .flat_map(|c| {
            crate::checks::words::items(c, "/spec/kubernetesApiAccess")
                .chain(crate::checks::words::items(c, "/spec/api/access"))
        })
        .filter_map(|v| v.as_str())
        .collect();
    let open = |range: &str| {
        g.endpoint_cidrs.iter().any(|c| {
            match (crate::rewrite::range(c), crate::rewrite::range(range)) {
                (Some(door), Some(who)) => door.0 <= who.0 && who.1 <= door.1,
                _ => c == range,
            }
        })
    };
    // Everybody is no list of people: a narrower door on green is what its owner wants.
    let out: Vec<&str> = blue
        .into_iter()
        .filter(|b| *b != "0.0.0.0/0" && !b.contains(':') && !open(b))
        .collect();
    if !out.is_empty() {
        r.found(
            "green.endpointCidrs",
            format!("blue's API server lets {} in, green's will not: who comes from there cannot reach it", out.join(", ")),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{of, says, snapshot, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::json;

    #[test]
    fn net_12_a_private_endpoint_shuts_out_who_is_outside() {
        let mut s = spec();
        s.green.public_endpoint = false;
        says(
            &plan(&s, &snapshot()),
            "NET-12",
            Severity::Warning,
            "inside the VPC only",
        );
        assert!(of(&plan(&spec(), &snapshot()), "NET-12").is_empty());
    }

    #[test]
    fn net_12_a_range_that_blue_lets_in_and_green_does_not_blocks() {
        let mut snapshot = snapshot();
        if let Some(c) = &mut snapshot.kops.cluster {
            c["spec"]["kubernetesApiAccess"] = json!(["203.0.113.0/24", "198.51.100.7/32"]);
        }
        let mut s = spec();
        s.green.endpoint_cidrs = vec!["203.0.113.0/24".into()];
        says(
            &plan(&s, &snapshot),
            "NET-12",
            Severity::Blocker,
            "198.51.100.7/32",
        );
        s.green.endpoint_cidrs = vec!["203.0.112.0/23".into(), "198.51.100.0/24".into()];
        assert!(of(&plan(&s, &snapshot), "NET-12").is_empty());
    }
}
