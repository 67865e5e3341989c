//! NET-11. TargetGroupBindings and fixed names of load balancers are refused or taken out by the rewrite; this asks about what is outside of Kubernetes.

use crate::checks::words::{items, some, text};
use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "NET-11",
    severity: Severity::Blocker,
    question: "Are target groups and load balancers that blue's nodes stand behind left alone by green, and does green get traffic too?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Give green a target group of its own behind the same listener, or a load balancer of its own.",
    source: "checks.md NET-11, eks.md 5, kops.md 3",
    run,
};

fn run(i: &Input, r: &mut Report) {
    // kops attaches auto scaling groups to load balancers that nothing in Kubernetes knows: traffic past every Ingress. Of workers
    // KOPS-ig-externalLoadBalancers speaks, of bastions nothing of the cluster; masters have no group on green at all.
    for g in &i.snapshot.kops.instance_groups {
        let role = text(g, "/spec/role").unwrap_or("Node").to_lowercase();
        if !["master", "controlplane", "control-plane", "apiserver"].contains(&role.as_str()) {
            continue;
        }
        let behind: Vec<&str> = items(g, "/spec/externalLoadBalancers")
            .filter_map(|l| {
                text(l, "/targetGroupArn")
                    .or(text(l, "/targetGroupARN"))
                    .or(text(l, "/loadBalancerName"))
            })
            .collect();
        if !behind.is_empty() {
            r.warning(
                format!("instancegroup/{}", text(g, "/metadata/name").unwrap_or("")),
                format!("its masters stand behind {} by their auto scaling group: whoever reaches blue's API or a NodePort by it loses it", some(&behind)),
                "Send who uses it to green's endpoint or to a load balancer of green's own before blue ends; take it down with blue.",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{of, says, snapshot, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::json;

    fn binding(shared: bool) -> serde_json::Value {
        json!({"apiVersion": "elbv2.k8s.aws/v1beta1", "kind": "TargetGroupBinding", "metadata": {"name": "web", "namespace": "n"},
            "spec": {"targetGroupARN": "arn:aws:elasticloadbalancing:eu-west-1:000000000000:targetgroup/web/1", "multiClusterTargetGroup": shared}})
    }

    #[test]
    fn net_11_a_binding_of_blues_target_group_blocks_and_a_shared_one_says_how() {
        let mut s = snapshot();
        s.blue.objects = vec![binding(false)];
        let p = plan(&spec(), &s);
        says(&p, "NET-11", Severity::Blocker, "throw blue's targets out");
        assert_eq!(of(&p, "NET-11").len(), 1, "found by the rewrite, and once");
        s.blue.objects = vec![binding(true)];
        says(
            &plan(&spec(), &s),
            "NET-11",
            Severity::Warning,
            "long before the cutover",
        );
    }

    #[test]
    fn net_11_masters_behind_a_load_balancer_of_somebody_warn_and_workers_are_said_once_by_kops_ig()
    {
        let behind = json!([
            {"targetGroupArn": "arn:aws:elasticloadbalancing:eu-west-1:000000000000:targetgroup/old/1"},
            {"loadBalancerName": "api-elb"}
        ]);
        let mut s = snapshot();
        s.kops.instance_groups = vec![
            json!({"metadata": {"name": "masters"}, "spec": {"role": "Master", "externalLoadBalancers": behind}}),
        ];
        let p = plan(&spec(), &s);
        says(
            &p,
            "NET-11",
            Severity::Warning,
            "its masters stand behind arn:aws:elasticloadbalancing:eu-west-1:000000000000:targetgroup/old/1, api-elb",
        );
        let mut s = snapshot();
        s.kops.instance_groups[0]["spec"]["externalLoadBalancers"] = behind;
        let p = plan(&spec(), &s);
        assert!(of(&p, "NET-11").is_empty());
        says(
            &p,
            "KOPS-ig-externalLoadBalancers",
            Severity::Blocker,
            "classic load balancer api-elb",
        );
    }
}
