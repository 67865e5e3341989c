//! NET-08.

use crate::checks::words::{images, some, templates};
use crate::checks::{Answered, Check, Input, Need, Report};
use crate::object::annotation;
use crate::plan::carried;
use crate::plan::model::Severity;
use std::collections::BTreeSet;

pub(super) const CHECK: Check = Check {
    id: "NET-08",
    severity: Severity::Blocker,
    question: "Do load balancers of green find their subnets, and nodes exactly one tagged group?",
    needs: &[Need::Aws],
    answered: Answered::Plan,
    remedy: "Tag the subnets: kubernetes.io/role/elb=1 on public ones, kubernetes.io/role/internal-elb=1 on private ones.",
    source: "checks.md NET-08, eks.md 2.2.6",
    run,
};

const PUBLIC: &str = "kubernetes.io/role/elb";
const INTERNAL: &str = "kubernetes.io/role/internal-elb";

fn run(i: &Input, r: &mut Report) {
    let Some(aws) = &i.snapshot.aws else { return };
    // Which kinds of load balancer green will make.
    let (mut open, mut internal) = (vec![], vec![]);
    for b in i.blue.iter().filter(|b| b.moves()) {
        let (o, name) = (b.object, b.name.clone());
        match b.id.kind.as_str() {
            "Service"
                if o.pointer("/spec/type").and_then(|t| t.as_str()) == Some("LoadBalancer") =>
            {
                let short = |a: &str| annotation(o, &format!("service.beta.kubernetes.io/{a}"));
                let inside = short("aws-load-balancer-internal").is_some_and(|v| v != "false")
                    || short("aws-load-balancer-scheme") == Some("internal");
                if inside {
                    internal.push(name)
                } else {
                    open.push(name)
                }
            }
            "Ingress" => {
                let alb = annotation(o, "kubernetes.io/ingress.class") == Some("alb")
                    || o.pointer("/spec/ingressClassName").and_then(|c| c.as_str()) == Some("alb");
                if alb
                    && annotation(o, "alb.ingress.kubernetes.io/scheme") == Some("internet-facing")
                {
                    open.push(name);
                } else if alb {
                    internal.push(name);
                }
            }
            _ => {}
        }
    }
    // AWS's own controller refuses what carries no tag; the cloud controller guesses.
    let controller = templates(i).any(|(_, t)| {
        images(t).any(|m| {
            m.contains("aws-load-balancer-controller") || m.contains("aws-alb-ingress-controller")
        })
    }) || i.snapshot.kops.cluster.as_ref().is_some_and(|c| {
        c.pointer("/spec/awsLoadBalancerController/enabled") == Some(&true.into())
    });
    for (objects, tag, what) in [
        (open, PUBLIC, "internet-facing"),
        (internal, INTERNAL, "internal"),
    ] {
        if objects.is_empty() {
            continue;
        }
        let zones: BTreeSet<&str> = aws
            .subnets
            .iter()
            .filter(|s| s.tags.contains_key(tag))
            .map(|s| s.zone.as_str())
            .collect();
        if zones.is_empty() && controller {
            r.found(
                "subnets",
                format!(
                    "no subnet carries {tag}: {what} load balancers of green stay pending ({})",
                    some(&objects)
                ),
            );
        } else if zones.is_empty() {
            r.warning("subnets", format!("no subnet carries {tag}: which subnets {what} load balancers of green take is left to the cloud controller ({})", some(&objects)), CHECK.remedy);
        } else if zones.len() == 1 && controller {
            r.warning(
                "subnets",
                format!(
                    "only subnets in {} carry {tag}: an ALB wants two zones ({})",
                    zones.into_iter().collect::<Vec<_>>().join(", "),
                    some(&objects)
                ),
                CHECK.remedy,
            );
        }
    }
    // Two tagged groups on a node stop the cloud controller ("Multiple tagged security groups"). EKS tags green's own.
    let tagged: Vec<&str> = carried(i.snapshot)
        .into_iter()
        .filter_map(|id| aws.security_groups.iter().find(|g| g.id == id))
        .filter(|g| {
            g.tags
                .keys()
                .any(|k| k.starts_with("kubernetes.io/cluster/"))
        })
        .map(|g| g.name.as_str())
        .collect();
    if !tagged.is_empty() {
        r.warning(
            "security groups",
            format!("{} carry a kubernetes.io/cluster tag and stand on blue's nodes beside their own: on green's nodes they would be the second tagged group, and load balancers stay pending", some(&tagged)),
            "Do not give these groups to green's nodes; rules that trust them are added for green's own group (NET-02).",
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{deployment, group, of, says, snapshot, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::json;

    fn company(controller: bool, tag: Option<&str>) -> crate::snapshot::model::Snapshot {
        let mut s = snapshot();
        let mut lbc = deployment("lbc", 1, json!({}));
        let image = if controller {
            "public.ecr.aws/eks/aws-load-balancer-controller:v2.4.1"
        } else {
            "x"
        };
        lbc["spec"]["template"]["spec"]["containers"] = json!([{"name": "c", "image": image}]);
        s.blue.objects = vec![
            lbc,
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "edge", "namespace": "n"}, "spec": {"type": "LoadBalancer", "selector": {"app": "x"}, "ports": []}}),
        ];
        for subnet in s.aws.iter_mut().flat_map(|a| &mut a.subnets) {
            if let Some(t) = tag {
                subnet.tags.insert(t.into(), "1".into());
            }
        }
        s
    }

    #[test]
    fn net_08_without_the_role_tag_load_balancers_stay_pending() {
        says(
            &plan(&spec(), &company(true, None)),
            "NET-08",
            Severity::Blocker,
            "no subnet carries kubernetes.io/role/elb",
        );
        says(
            &plan(
                &spec(),
                &company(true, Some("kubernetes.io/role/internal-elb")),
            ),
            "NET-08",
            Severity::Blocker,
            "service/n/edge",
        );
        says(
            &plan(&spec(), &company(false, None)),
            "NET-08",
            Severity::Warning,
            "left to the cloud controller",
        );
        assert!(
            of(
                &plan(&spec(), &company(true, Some("kubernetes.io/role/elb"))),
                "NET-08"
            )
            .is_empty()
        );
    }

    #[test]
    fn net_08_a_second_tagged_group_on_nodes_is_named() {
        let mut s = snapshot();
        let mut extra = group("sg-extra", "extra", vec![]);
        extra
            .tags
            .insert("kubernetes.io/cluster/shop.test".into(), "shared".into());
        if let Some(a) = &mut s.aws {
            a.security_groups = vec![extra];
        }
        assert!(of(&plan(&spec(), &s), "NET-08").is_empty());
        s.kops.instance_groups[0]["spec"]["additionalSecurityGroups"] = json!(["sg-extra"]);
        says(
            &plan(&spec(), &s),
            "NET-08",
            Severity::Warning,
            "second tagged group",
        );
    }
}
