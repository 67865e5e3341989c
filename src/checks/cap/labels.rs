//! CAP-01.

use crate::checks::words::some;
use crate::checks::{Answered, Check, Input, Need, Report};
use crate::plan::model::Severity;
use std::collections::BTreeMap;

pub(super) const CHECK: Check = Check {
    id: "CAP-01",
    severity: Severity::Blocker,
    question: "Does every workload find a node of green that answers its selector and affinity?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Label a node group accordingly (green.nodeGroups), or change the selector on blue.",
    source: "checks.md CAP-01",
    run,
};

/// Workloads of one cause that are named one by one; more become one finding.
const ONE_BY_ONE: usize = 3;

fn run(i: &Input, r: &mut Report) {
    // Without groups there is nothing to compare with: KOPS-ig-none says so.
    if i.load.groups.is_empty() {
        return;
    }
    let mut causes: BTreeMap<(Severity, String), Vec<&str>> = BTreeMap::new();
    for w in i.load.workloads.iter().filter(|w| !w.is_addon()) {
        if i.load
            .groups
            .iter()
            .any(|g| !i.load.eligible(w, g, false).is_empty())
        {
            continue;
        }
        let missing = w.placement.unanswered(&i.load.groups, &i.load.region);
        let why = if missing.is_empty() {
            let all: Vec<String> = w
                .placement
                .selector
                .iter()
                .chain(w.placement.terms.iter().flatten())
                .map(|q| q.text())
                .collect();
            format!("no node group answers all of {} together", some(&all))
        } else {
            format!("no node of green will have {}", missing.join(", "))
        };
        // A daemon that no node takes, and what is held at 0, is no outage.
        let severity = if w.daemon || w.replicas == 0 {
            Severity::Warning
        } else {
            Severity::Blocker
        };
        causes.entry((severity, why)).or_default().push(&w.object);
    }
    for ((severity, why), objects) in causes {
        let tail = if severity == Severity::Blocker {
            "it could not be scheduled"
        } else {
            "it would run nowhere"
        };
        if objects.len() <= ONE_BY_ONE {
            for o in objects {
                r.say(severity, o, format!("{why}: {tail}"), CHECK.remedy);
            }
        } else {
            r.say(
                severity,
                objects[0],
                format!(
                    "{why}: {} workloads could not be scheduled ({})",
                    objects.len(),
                    some(&objects)
                ),
                CHECK.remedy,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{deployment, of, says, snapshot, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::json;

    fn affinity(key: &str, op: &str, values: &[&str]) -> serde_json::Value {
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": key, "operator": op, "values": values}]}]}}}})
    }

    #[test]
    fn cap_01_a_zone_or_a_type_that_green_does_not_have_blocks() {
        let mut s = snapshot();
        s.blue.objects = vec![
            deployment(
                "far",
                1,
                json!({"nodeSelector": {"topology.kubernetes.io/zone": "eu-west-1c"}}),
            ),
            deployment(
                "gpu",
                1,
                affinity("node.kubernetes.io/instance-type", "In", &["p3.2xlarge"]),
            ),
        ];
        let p = plan(&spec(), &s);
        says(
            &p,
            "CAP-01",
            Severity::Blocker,
            "topology.kubernetes.io/zone=eu-west-1c",
        );
        says(&p, "CAP-01", Severity::Blocker, "instance-type=p3.2xlarge");
        assert_eq!(of(&p, "CAP-01").len(), 2);
    }

    #[test]
    fn cap_01_what_green_answers_or_does_not_carry_is_no_obstacle() {
        let mut s = snapshot();
        s.blue.objects = vec![
            deployment(
                "near",
                1,
                json!({"nodeSelector": {"topology.kubernetes.io/zone": "eu-west-1b", "kubernetes.io/arch": "amd64"}}),
            ),
            deployment(
                "two",
                1,
                affinity(
                    "node.kubernetes.io/instance-type",
                    "In",
                    &["m5.large", "m5.xlarge"],
                ),
            ),
            // Words against masters: no node of green is one.
            deployment(
                "workers",
                1,
                affinity("node-role.kubernetes.io/master", "DoesNotExist", &[]),
            ),
            deployment("others", 1, affinity("lifecycle", "NotIn", &["spot"])),
        ];
        assert!(
            of(&plan(&spec(), &s), "CAP-01").is_empty(),
            "{:?}",
            of(&plan(&spec(), &s), "CAP-01")
        );
    }

    #[test]
    fn cap_01_many_workloads_of_one_cause_are_one_finding_with_their_count() {
        let mut s = snapshot();
        s.blue.objects = (0..9)
            .map(|n| {
                deployment(
                    &format!("app{n}"),
                    1,
                    json!({"nodeSelector": {"disk": "fast"}}),
                )
            })
            .collect();
        let p = plan(&spec(), &s);
        assert_eq!(of(&p, "CAP-01").len(), 1);
        says(
            &p,
            "CAP-01",
            Severity::Blocker,
            "disk=fast: 9 workloads could not be scheduled",
        );
    }
}
