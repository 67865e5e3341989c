//! NET-12.

use crate::checks::words::some;
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
    let blue = crate::spec::api_doors(&i.snapshot.kops);
    if !g.public_endpoint {
        r.warning(
            "green.publicEndpoint",
            if blue.internal {
                "the API is reached from inside the VPC only, as blue's (Internal): CI, Vault and operators outside need the path that they have to blue, and so does crossfade"
            } else {
                "the API is reached from inside the VPC only: CI, Vault and operators outside cannot, and neither can crossfade from elsewhere"
            },
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
    let everybody =
        g.endpoint_cidrs.is_empty() || g.endpoint_cidrs.iter().any(|c| c == "0.0.0.0/0");
    if everybody {
        // The catalogue blocks what locks people out; a door that opens is a warning.
        let narrow: Vec<&str> = blue.list.iter().map(String::as_str).collect();
        if blue.internal {
            r.warning(
                "green.endpointCidrs",
                "blue's API is Internal (inside the VPC only), green's public endpoint is open to everybody (0.0.0.0/0)",
                "Set green.publicEndpoint to false, or name the ranges that may come in green.endpointCidrs.",
            );
        } else if !narrow.is_empty() {
            r.warning(
                "green.endpointCidrs",
                format!(
                    "blue's API lets only {} in (kubernetesApiAccess), green's public endpoint is open to everybody (0.0.0.0/0)",
                    some(&narrow)
                ),
                "Name the ranges that may come in green.endpointCidrs.",
            );
        }
        return;
    }
    // Nobody came from outside: there is nobody to lock out.
    if blue.internal {
        return;
    }
    let lists: Vec<&str> = blue
        .list
        .iter()
        .map(String::as_str)
        .filter(|b| b.starts_with("pl-"))
        .collect();
    if !lists.is_empty() {
        r.warning(
            "green.endpointCidrs",
            format!(
                "blue's API lets the prefix lists {} in: EKS's endpoint takes no prefix lists, so who is in them cannot reach green unless its ranges are named",
                some(&lists)
            ),
            "Write the ranges of the lists (aws ec2 get-managed-prefix-list-entries) into green.endpointCidrs.",
        );
    }
    // Blue's API had doors of its own: who came by one that green does not open is locked out.
    let open = |range: &str| {
        g.endpoint_cidrs.iter().any(|c| {
            match (crate::rewrite::range(c), crate::rewrite::range(range)) {
                (Some(door), Some(who)) => door.0 <= who.0 && who.1 <= door.1,
                _ => c == range,
            }
        })
    };
    // Everybody is no list of people: a narrower door on green is what its owner wants. Who has a private address comes by the
    // private endpoint, which green always has.
    let out: Vec<&str> = blue
        .list
        .iter()
        .map(String::as_str)
        .filter(|b| !b.starts_with("pl-") && !b.contains(':'))
        .filter(|b| !crate::spec::is_private(b) && !open(b))
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

    #[test]
    fn net_12_a_closed_api_that_would_be_open_to_everybody_is_said_with_both_sides() {
        let with = |path: &str, value: serde_json::Value| {
            let mut s = snapshot();
            if let Some(c) = &mut s.kops.cluster {
                c["spec"][path] = value;
            }
            s
        };
        let internal = with("api", json!({"loadBalancer": {"type": "Internal"}}));
        says(
            &plan(&spec(), &internal),
            "NET-12",
            Severity::Warning,
            "blue's API is Internal (inside the VPC only), green's public endpoint is open to everybody",
        );
        let narrow = with("kubernetesApiAccess", json!(["1.1.1.0/24", "pl-44444444"]));
        says(
            &plan(&spec(), &narrow),
            "NET-12",
            Severity::Warning,
            "only 1.1.1.0/24, pl-44444444 in (kubernetesApiAccess), green's public endpoint is open",
        );
        let mut s = spec();
        s.green.endpoint_cidrs = vec!["1.1.1.0/24".into()];
        let p = plan(&s, &narrow);
        says(&p, "NET-12", Severity::Warning, "prefix lists pl-44444444");
        assert!(of(&p, "NET-12").iter().all(|f| !f.blocks()));
        assert!(of(&plan(&s, &internal), "NET-12").is_empty());
        // What was open to everybody may stay open, and what comes from inside comes by the private endpoint.
        let open = with("kubernetesApiAccess", json!(["0.0.0.0/0"]));
        assert!(of(&plan(&spec(), &open), "NET-12").is_empty());
        let inside = with("kubernetesApiAccess", json!(["1.1.1.0/24", "10.0.0.0/8"]));
        assert!(of(&plan(&s, &inside), "NET-12").is_empty());
    }
}
