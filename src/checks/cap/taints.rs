//! CAP-02.

use crate::checks::words::some;
use crate::checks::{Answered, Check, Input, Need, Report};
use crate::plan::fit::{Group, HOST, Workload, ZONES};
use crate::plan::model::Severity;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECK: Check = Check {
    id: "CAP-02",
    severity: Severity::Blocker,
    question: "Do taints, spread and anti-affinity leave room for all replicas in green's zones and nodes?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Add a zone or nodes, or relax the rule on blue.",
    source: "checks.md CAP-02",
    run,
};

fn run(i: &Input, r: &mut Report) {
    if i.load.groups.is_empty() {
        return;
    }
    let mut closed: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for w in i
        .load
        .workloads
        .iter()
        .filter(|w| !w.daemon && w.replicas > 0)
    {
        let by_labels: Vec<&Group> = groups(i, w, false);
        if by_labels.is_empty() {
            // CAP-01's.
            continue;
        }
        let open = groups(i, w, true);
        if open.is_empty() {
            let taints: BTreeSet<String> = by_labels
                .iter()
                .flat_map(|g| &g.taints)
                .filter(|t| !w.placement.tolerates(t))
                .map(|t| format!("{}={}:{}", t.key, t.value, t.effect))
                .collect();
            closed
                .entry(taints.into_iter().collect::<Vec<_>>().join(", "))
                .or_default()
                .push(&w.object);
            continue;
        }
        limits(i, w, &open, r);
    }
    for (taints, objects) in closed {
        let message = format!(
            "every node group that {} may run on is tainted {taints}, which {} tolerated",
            if objects.len() == 1 {
                "it".to_string()
            } else {
                format!("{} workloads ({})", objects.len(), some(&objects))
            },
            if objects.len() == 1 {
                "is not"
            } else {
                "none of them"
            },
        );
        r.blocker(
            objects[0],
            message,
            "Tolerate the taint on blue, or give green a node group without it.",
        );
    }
}

fn groups<'a>(i: &Input<'a>, w: &Workload, taints: bool) -> Vec<&'a Group> {
    i.load
        .groups
        .iter()
        .filter(|g| !i.load.eligible(w, g, taints).is_empty())
        .collect()
}

/// At most so many of each domain, and so many domains.
fn limits(i: &Input, w: &Workload, open: &[&Group], r: &mut Report) {
    for l in &w.placement.limits {
        let each = u64::from(l.each);
        let want = u64::from(w.replicas);
        if l.key == HOST {
            let nodes =
                |f: fn(&Group) -> u32| open.iter().map(|g| u64::from(f(g))).sum::<u64>() * each;
            let (first, most) = (nodes(|g| g.desired), nodes(|g| g.max));
            if most < want {
                r.found(
                    &w.object,
                    format!("at most {most} of {want} replicas fit: one node takes {each} ({}), and green has {} nodes for it at most", l.why, most / each.max(1)),
                );
            } else if first < want {
                r.warning(
                    &w.object,
                    format!("{first} of {want} replicas fit at first: one node takes {each} ({}), green starts with {} nodes for it", l.why, first / each.max(1)),
                    "Raise minSize of the group before unpark, or let an autoscaler do it.",
                );
            }
        } else if ZONES.contains(&l.key.as_str()) {
            let mut zones: BTreeSet<&str> = BTreeSet::new();
            for g in open {
                if g.zones.is_empty() {
                    // Zones are not known: EKS-zones or READ-01 says so.
                    return;
                }
                zones.extend(
                    i.load
                        .eligible(w, g, true)
                        .into_iter()
                        .map(|z| g.zones[z].as_str()),
                );
            }
            let most = zones.len() as u64 * each;
            if most < want {
                r.found(
                    &w.object,
                    format!("at most {most} of {want} replicas fit: one zone takes {each} ({}), green has nodes for it in {}", l.why, zones.into_iter().collect::<Vec<_>>().join(", ")),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{deployment, of, says, snapshot, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::{Value, json};

    fn apart(key: &str) -> Value {
        json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "db"}}}]}}})
    }

    #[test]
    fn cap_02_three_replicas_that_want_zones_of_their_own_do_not_fit_in_two() {
        let mut s = snapshot();
        s.blue.objects = vec![deployment("db", 3, apart("topology.kubernetes.io/zone"))];
        says(
            &plan(&spec(), &s),
            "CAP-02",
            Severity::Blocker,
            "at most 2 of 3 replicas fit",
        );
        s.blue.objects = vec![deployment("db", 2, apart("topology.kubernetes.io/zone"))];
        assert!(of(&plan(&spec(), &s), "CAP-02").is_empty());
    }

    #[test]
    fn cap_02_replicas_that_want_nodes_of_their_own_are_counted_against_the_largest_size() {
        // Four nodes of m5.large, minSize and maxSize 4.
        let mut s = snapshot();
        s.blue.objects = vec![deployment("db", 5, apart("kubernetes.io/hostname"))];
        says(
            &plan(&spec(), &s),
            "CAP-02",
            Severity::Blocker,
            "at most 4 of 5",
        );
        s.kops.instance_groups[0]["spec"]["maxSize"] = json!(8);
        says(
            &plan(&spec(), &s),
            "CAP-02",
            Severity::Warning,
            "4 of 5 replicas fit at first",
        );
        // Anti-affinity against others is no limit on its own number.
        let mut other = deployment("web", 9, apart("kubernetes.io/hostname"));
        other["spec"]["template"]["metadata"]["labels"] = json!({"app": "web"});
        s.blue.objects = vec![other];
        assert!(of(&plan(&spec(), &s), "CAP-02").is_empty());
    }

    #[test]
    fn cap_02_a_cluster_of_tainted_groups_alone_leaves_eks_no_place_for_coredns() {
        let mut s = snapshot();
        s.blue.objects = vec![deployment(
            "web",
            1,
            json!({"tolerations": [{"key": "dedicated", "operator": "Equal", "value": "web", "effect": "NoSchedule"}]}),
        )];
        s.kops.instance_groups[0]["spec"]["taints"] = json!(["dedicated=web:NoSchedule"]);
        let p = plan(&spec(), &s);
        says(&p, "CAP-02", Severity::Blocker, "dedicated=web:NoSchedule");
        assert_eq!(of(&p, "CAP-02")[0].object, "addon/aws-ebs-csi-driver");
        assert!(of(&p, "CAP-02")[0].message.contains("addon/coredns"));
        s.kops.instance_groups[0]["spec"]["taints"] = json!(["dedicated=web:PreferNoSchedule"]);
        assert!(of(&plan(&spec(), &s), "CAP-02").is_empty());
    }
}
