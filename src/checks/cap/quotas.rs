//! CAP-06.

use crate::checks::{Answered, Check, Input, Need, Part, Report};
use crate::plan::model::Severity;
use crate::world::cloud::{Inventory, Quota};

pub(super) const CHECK: Check = Check {
    id: "CAP-06",
    severity: Severity::Blocker,
    question: "Do the account's quotas hold blue and green at once?",
    needs: &[Need::Aws, Need::Part(Part::Quotas)],
    answered: Answered::Plan,
    remedy: "Ask for a higher quota before the date; a raise may take days.",
    source: "checks.md CAP-06",
    run,
};

/// Share of a quota from which it is worth a word, percent.
const NEAR: f64 = 80.0;

fn run(i: &Input, r: &mut Report) {
    let Some(aws) = &i.snapshot.aws else { return };
    let vcpus = |spot: bool, size: fn(&crate::plan::fit::Group) -> u32| -> f64 {
        i.load
            .groups
            .iter()
            .zip(&i.target.node_groups)
            .filter(|(_, t)| (t.capacity_type == "SPOT") == spot)
            .map(|(g, _)| {
                let each = g.types.iter().map(|(_, t)| t.vcpus).max().unwrap_or(0);
                f64::from(each) * f64::from(size(g))
            })
            .sum()
    };
    // What runs today counts where the service tells it; else blue is taken to be as large as green starts.
    for (code, name, spot) in [
        (
            "ec2/L-1216C47A",
            "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
            false,
        ),
        (
            "ec2/L-34B43A08",
            "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests",
            true,
        ),
    ] {
        let blue = vcpus(spot, |g| g.desired);
        let (first, most) = (blue, vcpus(spot, |g| g.max));
        if most > 0.0 {
            held(aws, r, code, name, "vCPUs", blue, first, Some(most));
        }
    }
    held(
        aws,
        r,
        "eks/L-1194D53C",
        "Clusters",
        "clusters",
        aws.clusters.len() as f64,
        new(aws.clusters.iter().any(|c| c.name == i.spec.green.name)),
        None,
    );
    let groups = i.target.node_groups.len() as f64;
    held(
        aws,
        r,
        "eks/L-6D54EA21",
        "Managed node groups per cluster",
        "node groups",
        0.0,
        groups,
        None,
    );
    let widest = i
        .target
        .node_groups
        .iter()
        .map(|g| g.max)
        .max()
        .unwrap_or(0);
    held(
        aws,
        r,
        "eks/L-BD136A63",
        "Nodes per managed node group",
        "nodes",
        0.0,
        f64::from(widest),
        None,
    );
    let roles = i.target.roles.iter().filter(|r| !r.existing).count() as f64;
    held(
        aws,
        r,
        "iam/L-FE177D64",
        "Roles per account",
        "roles",
        aws.roles.len() as f64,
        roles,
        None,
    );
    if let Some(lbs) = &aws.load_balancers {
        for (code, name, kind) in [
            (
                "elasticloadbalancing/L-53DA6B97",
                "Application Load Balancers per Region",
                "application",
            ),
            (
                "elasticloadbalancing/L-69A177A2",
                "Network Load Balancers per Region",
                "network",
            ),
            (
                "elasticloadbalancing/L-E9E9831D",
                "Classic Load Balancers per Region",
                "classic",
            ),
        ] {
            let mine = lbs.iter().filter(|l| l.kind == kind);
            let all = mine.clone().count() as f64;
            // Those that blue's Services and Ingresses made; green makes each once more.
            let again = mine
                .filter(|l| {
                    l.tags
                        .contains_key(&format!("kubernetes.io/cluster/{}", i.spec.blue.cluster))
                        || l.tags.get("elbv2.k8s.aws/cluster") == Some(&i.spec.blue.cluster)
                })
                .count() as f64;
            if again > 0.0 {
                held(aws, r, code, name, "load balancers", all, again, None);
            }
        }
    }
}

fn new(exists: bool) -> f64 {
    if exists { 0.0 } else { 1.0 }
}

/// `use_now` counts when the service does not say itself.
#[allow(clippy::too_many_arguments)]
fn held(
    aws: &Inventory,
    r: &mut Report,
    code: &str,
    name: &str,
    unit: &str,
    use_now: f64,
    more: f64,
    at_most: Option<f64>,
) {
    let Some((key, q)) = find(aws, code, name) else {
        return;
    };
    let used = q.used.unwrap_or(use_now);
    let after = used + more;
    let percent = |n: f64| {
        if q.value > 0.0 {
            (n / q.value * 100.0).round()
        } else {
            100.0
        }
    };
    let object = format!("quota/{key}");
    if after > q.value {
        r.found(
            object,
            format!(
                "{}: {} of {} {unit} in use, green takes {more} more: {} %",
                q.name,
                used,
                q.value,
                percent(after)
            ),
        );
    } else if let Some(most) = at_most.filter(|m| used + m > q.value) {
        r.warning(object, format!("{}: {} of {} {unit} in use, green's groups at their largest take {most} more: {} %", q.name, used, q.value, percent(used + most)), CHECK.remedy);
    } else if percent(after) >= NEAR {
        r.warning(
            object,
            format!(
                "{}: {} of {} {unit} with green: {} %",
                q.name,
                after,
                q.value,
                percent(after)
            ),
            CHECK.remedy,
        );
    }
}

/// By code, or by name where a service has other codes.
fn find<'a>(aws: &'a Inventory, code: &str, name: &str) -> Option<(&'a str, &'a Quota)> {
    let service = code.split('/').next().unwrap_or("");
    aws.quotas
        .iter()
        .flatten()
        .find(|(k, q)| *k == code || k.starts_with(&format!("{service}/")) && q.name == name)
        .map(|(k, q)| (k.as_str(), q))
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{of, says, snapshot, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use crate::world::cloud::Quota;

    fn with(value: f64, used: Option<f64>) -> crate::snapshot::model::Snapshot {
        let mut s = snapshot();
        if let Some(a) = &mut s.aws {
            let name = "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances";
            a.quotas = Some(
                [(
                    "ec2/L-1216C47A".to_string(),
                    Quota {
                        name: name.into(),
                        value,
                        used,
                    },
                )]
                .into(),
            );
        }
        s
    }

    #[test]
    fn cap_06_green_beside_blue_must_stay_under_the_quota_of_vcpus() {
        // Four m5.large: 8 vCPUs more.
        says(
            &plan(&spec(), &with(32.0, Some(28.0))),
            "CAP-06",
            Severity::Blocker,
            "28 of 32 vCPUs in use, green takes 8 more: 113 %",
        );
        says(
            &plan(&spec(), &with(32.0, Some(20.0))),
            "CAP-06",
            Severity::Warning,
            "28 of 32 vCPUs with green: 88 %",
        );
        assert!(of(&plan(&spec(), &with(64.0, Some(20.0))), "CAP-06").is_empty());
        // Use not told: blue counts as large as green.
        says(
            &plan(&spec(), &with(12.0, None)),
            "CAP-06",
            Severity::Blocker,
            "8 of 12",
        );
    }

    #[test]
    fn cap_06_without_quotas_nothing_is_promised() {
        says(
            &plan(&spec(), &snapshot()),
            "CAP-06",
            Severity::NotChecked,
            "service quotas were not read",
        );
    }
}
