//! CAP-03.

use crate::checks::words::{count, some};
use crate::checks::{Answered, Check, Input, Need, Report};
use crate::plan::fit::{Left, Size, Why, pack};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "CAP-03",
    severity: Severity::Blocker,
    question: "Do the node groups hold all requests at live replica counts?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Raise maxSize or take bigger instances (green.nodeGroups).",
    source: "checks.md CAP-03",
    run,
};

fn run(i: &Input, r: &mut Report) {
    if i.load.groups.is_empty() {
        return;
    }
    let unknown: Vec<&str> = i
        .load
        .groups
        .iter()
        .flat_map(|g| &g.unknown)
        .map(String::as_str)
        .collect();
    if !unknown.is_empty() {
        r.not_checked(
            "node groups",
            &format!("the size of {} is not known", some(&unknown)),
            "Run discover with AWS credentials, or name a current type under green.nodeGroups.",
        );
        return;
    }
    let name = |l: &Left| i.load.workloads[l.workload].object.as_str();
    let most = pack(i.load, Size::Max);
    for l in most.left.iter().filter(|l| l.why == Why::TooLarge) {
        let w = &i.load.workloads[l.workload];
        let (cpu, memory) = (
            i.load.groups.iter().map(|g| g.cpu).max().unwrap_or(0),
            i.load.groups.iter().map(|g| g.memory).max().unwrap_or(0),
        );
        r.blocker(
            name(l),
            format!("one pod requests {}m CPU and {} MiB, the largest node of green gives {cpu}m and {memory} MiB", w.cpu, w.memory),
            "Take bigger instances for its group (green.nodeGroups), or lower the request.",
        );
    }
    let without = |left: &[Left]| -> Vec<Left> {
        left.iter()
            .filter(|l| matches!(l.why, Why::Resources | Why::Slots))
            .cloned()
            .collect()
    };
    let short = without(&most.left);
    if !short.is_empty() {
        r.found(
            "node groups",
            sentence(i, &short, most.nodes, "at their largest"),
        );
        return;
    }
    let first = pack(i.load, Size::Desired);
    let late = without(&first.left);
    if !late.is_empty() {
        r.warning(
            "node groups",
            sentence(i, &late, first.nodes, "at their first size"),
            "Raise minSize (green.nodeGroups) or have an autoscaler on green before unpark.",
        );
    }
}

fn sentence(i: &Input, left: &[Left], nodes: u32, when: &str) -> String {
    let pods: u32 = left.iter().map(|l| l.left).sum();
    let (mut cpu, mut memory) = (0u64, 0u64);
    for l in left {
        let w = &i.load.workloads[l.workload];
        cpu = cpu.saturating_add(w.cpu.saturating_mul(l.left.into()));
        memory = memory.saturating_add(w.memory.saturating_mul(l.left.into()));
    }
    let names: Vec<&str> = left
        .iter()
        .map(|l| i.load.workloads[l.workload].object.as_str())
        .collect();
    let slots = left.iter().any(|l| l.why == Why::Slots);
    format!(
        "{} of {} find no place on {nodes} nodes {when}: short by {cpu}m CPU and {memory} MiB{} ({})",
        count(pods as usize, "pod"),
        count(names.len(), "workload"),
        if slots {
            ", some only by the pod limit of nodes (CAP-05)"
        } else {
            ""
        },
        some(&names)
    )
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{deployment, of, says, snapshot, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::{Value, json};

    fn asks(name: &str, replicas: u32, cpu: &str, memory: &str) -> Value {
        let mut d = deployment(name, replicas, json!({}));
        d["spec"]["template"]["spec"]["containers"] = json!([{"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]);
        d
    }

    #[test]
    fn cap_03_live_counts_that_do_not_fit_block_with_what_is_missing() {
        // Four m5.large of 2000m - 70m for the kubelet - 180m for EKS's daemons = 1750m: one pod of 1000m each.
        let mut s = snapshot();
        s.blue.objects = vec![asks("api", 6, "1", "100Mi")];
        let p = plan(&spec(), &s);
        says(
            &p,
            "CAP-03",
            Severity::Blocker,
            "2 pods of 1 workload find no place on 4 nodes at their largest: short by 2000m CPU and 200 MiB",
        );
        s.blue.objects = vec![asks("api", 4, "1", "100Mi")];
        assert!(of(&plan(&spec(), &s), "CAP-03").is_empty());
    }

    #[test]
    fn cap_03_what_fits_only_after_growth_is_a_warning_before_unpark() {
        let mut s = snapshot();
        s.kops.instance_groups[0]["spec"]["maxSize"] = json!(8);
        s.blue.objects = vec![asks("api", 6, "1", "100Mi")];
        says(
            &plan(&spec(), &s),
            "CAP-03",
            Severity::Warning,
            "2 pods of 1 workload find no place on 4 nodes at their first size",
        );
    }

    #[test]
    fn cap_03_a_pod_larger_than_every_node_blocks_by_name() {
        let mut s = snapshot();
        s.blue.objects = vec![asks("giant", 1, "100m", "9Gi")];
        let p = plan(&spec(), &s);
        says(
            &p,
            "CAP-03",
            Severity::Blocker,
            "one pod requests 100m CPU and 9216 MiB",
        );
        assert_eq!(of(&p, "CAP-03")[0].object, "deployment/n/giant");
    }

    #[test]
    fn cap_03_a_free_group_that_a_pod_may_not_use_does_not_count() {
        let mut s = snapshot();
        s.kops.instance_groups.push(json!({"kind": "InstanceGroup", "metadata": {"name": "batch"},
            "spec": {"role": "Node", "machineType": "m5.4xlarge", "minSize": 4, "maxSize": 4, "taints": ["batch=yes:NoSchedule"]}}));
        s.blue.objects = vec![asks("api", 6, "1", "100Mi")];
        says(
            &plan(&spec(), &s),
            "CAP-03",
            Severity::Blocker,
            "2 pods of 1 workload",
        );
        s.kops.instance_groups[1]["spec"]["taints"] = json!([]);
        assert!(of(&plan(&spec(), &s), "CAP-03").is_empty());
    }

    #[test]
    fn cap_03_a_type_that_nobody_knows_is_not_checked() {
        let mut s = snapshot();
        s.kops.instance_groups[0]["spec"]["machineType"] = json!("p2.xlarge");
        s.blue.objects = vec![asks("api", 6, "1", "100Mi")];
        let p = plan(&spec(), &s);
        says(&p, "CAP-03", Severity::NotChecked, "p2.xlarge");
        assert_eq!(of(&p, "CAP-03").len(), 1);
    }
}
