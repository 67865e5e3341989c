//! CAP-14.

use crate::checks::words::{containers, count, some, templates};
use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "CAP-14",
    severity: Severity::Blocker,
    question: "Do the connection pools of both sides together stay under the limits of the databases?",
    needs: &[],
    answered: Answered::Person,
    remedy: "Ask each database for max_connections and the sessions it has at the peak (`show max_connections`, pg_stat_activity, DatabaseConnections in CloudWatch). From unpark to the end of the freeze both sides hold their pools: twice the peak must fit, or shrink the pools for that time. Then waive this.",
    source: "checks.md CAP-14",
    run,
};

/// Names of settings that size a pool.
fn sizes_a_pool(name: &str) -> bool {
    let n = name.to_uppercase();
    [
        "POOL_SIZE",
        "POOLSIZE",
        "MAX_POOL",
        "MAXPOOL",
        "POOL_MAX",
        "MAXIMUM_POOL",
        "MAXIMUMPOOLSIZE",
        "MAX_CONNECTIONS",
        "MAX_OPEN_CONN",
        "DB_POOL",
        "MAX_CONNS",
    ]
    .iter()
    .any(|p| n.contains(p))
}

fn run(i: &Input, r: &mut Report) {
    let mut pools = vec![];
    let mut sum = 0u64;
    for (object, template) in templates(i) {
        // Sorted by object.
        let workloads = &i.load.workloads;
        let replicas = workloads
            .binary_search_by(|w| w.object.as_str().cmp(object))
            .map_or(1, |n| u64::from(workloads[n].replicas.max(1)));
        for e in containers(template)
            .filter_map(|c| c["env"].as_array())
            .flatten()
        {
            if let (Some(name), Some(size)) = (
                e["name"].as_str(),
                e["value"].as_str().and_then(|v| v.parse::<u64>().ok()),
            ) && sizes_a_pool(name)
            {
                sum = sum.saturating_add(size.saturating_mul(replicas));
                pools.push(format!("{object} {name}={size} x {replicas}"));
            }
        }
    }
    // Without a store that both use there is nothing to add up.
    let stores: Vec<&str> = i.spec.data.iter().map(|d| d.name.as_str()).collect();
    if pools.is_empty() && stores.is_empty() {
        return;
    }
    let found = if pools.is_empty() {
        "no pool size stands in an env value".to_string()
    } else {
        format!(
            "{} in env values sum up to {sum} on blue and, with green, {} ({})",
            count(pools.len(), "pool"),
            sum.saturating_mul(2),
            some(&pools)
        )
    };
    r.not_checked(
        "data",
        &format!(
            "the limits of the databases were not read; {found}{}",
            if stores.is_empty() {
                String::new()
            } else {
                format!("; data sets {}", some(&stores))
            }
        ),
        CHECK.remedy,
    );
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{deployment, of, says, snapshot, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::json;

    #[test]
    fn cap_14_pools_are_summed_up_over_replicas_and_both_sides_for_a_person_to_compare() {
        let mut s = snapshot();
        let mut d = deployment("orders", 4, json!({}));
        d["spec"]["template"]["spec"]["containers"] = json!([{"name": "c", "image": "x", "env": [{"name": "SPRING_DATASOURCE_HIKARI_MAXIMUM_POOL_SIZE", "value": "20"}, {"name": "PORT", "value": "8080"}]}]);
        s.blue.objects = vec![d];
        let p = plan(&spec(), &s);
        says(
            &p,
            "CAP-14",
            Severity::NotChecked,
            "sum up to 80 on blue and, with green, 160",
        );
        assert_eq!(of(&p, "CAP-14").len(), 1);
    }

    #[test]
    fn cap_14_a_company_without_stores_and_pools_is_not_asked() {
        let mut s = snapshot();
        s.blue.objects = vec![deployment("web", 4, json!({}))];
        assert!(of(&plan(&spec(), &s), "CAP-14").is_empty());
    }
}
