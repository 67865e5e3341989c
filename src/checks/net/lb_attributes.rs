//! NET-10. Attributes that stand in annotations are listed by the rewrite, object by object; this asks about the rest.

use crate::checks::words::{count, images, some, templates};
use crate::checks::{Answered, Check, Input, Need, Report};
use crate::object::{ObjectId, annotation};
use crate::plan::model::Severity;
use serde_json::Value;

pub(super) const CHECK: Check = Check {
    id: "NET-10",
    severity: Severity::Warning,
    question: "Do green's load balancers have the attributes of blue's: idle time, draining, cross-zone, TLS policy, client addresses?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Write the attribute as an annotation on blue's object, so that green's gets it too.",
    source: "checks.md NET-10, eks.md 5",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let services: Vec<(&Value, String)> = i
        .snapshot
        .blue
        .of_kind("Service")
        .filter(|o| o.pointer("/spec/type").and_then(Value::as_str) == Some("LoadBalancer"))
        .filter_map(|o| Some((o, ObjectId::of(o)?.to_string())))
        .filter(|(_, n)| {
            i.verdicts
                .iter()
                .any(|v| v.object == *n && v.target.is_some())
        })
        .collect();
    if services.is_empty() {
        return;
    }
    // From 2.5 on the controller's webhook makes every new Service of type LoadBalancer an NLB of its own (eks.md 5).
    let controller = templates(i).any(|(_, t)| images(t).any(takes_services));
    if controller {
        let (mut classic, mut http, mut proxy) = (vec![], vec![], vec![]);
        for (o, name) in &services {
            let short = |a: &str| annotation(o, &format!("service.beta.kubernetes.io/{a}"));
            if o.pointer("/spec/loadBalancerClass").is_some()
                || short("aws-load-balancer-type").is_some()
            {
                continue;
            }
            classic.push(name.as_str());
            if short("aws-load-balancer-backend-protocol").is_some_and(|p| p.starts_with("http")) {
                http.push(name.as_str());
            }
            if short("aws-load-balancer-proxy-protocol").is_some() {
                proxy.push(name.as_str());
            }
        }
        if !classic.is_empty() {
            let mut words = vec![
                "idle connections end after 350 s instead of 60 s".to_string(),
                "internal unless aws-load-balancer-scheme: internet-facing is set".to_string(),
            ];
            if !http.is_empty() {
                words.push(format!(
                    "no HTTP listeners, X-Forwarded-For or sticky cookies ({})",
                    some(&http)
                ));
            }
            if !proxy.is_empty() {
                words.push(format!(
                    "proxy protocol v2 instead of v1 ({})",
                    some(&proxy)
                ));
            }
            r.found(
                classic[0],
                format!("{} of blue's classic load balancers become network load balancers, because the load balancer controller takes them on green: {} ({})", classic.len(), words.join("; "), some(&classic)),
            );
        }
    }
    let names: Vec<&str> = services.iter().map(|(_, n)| n.as_str()).collect();
    r.not_checked(
        "load balancers",
        &format!("attributes that somebody set by hand are not read, for {} ({})", count(names.len(), "load balancer"), some(&names)),
        "Compare `aws elb describe-load-balancer-attributes` or `aws elbv2 describe-load-balancer-attributes` of both sides after unpark; then waive this.",
    );
}

/// The load balancer controller, 2.5 or newer.
fn takes_services(image: &str) -> bool {
    let Some((name, tag)) = image.rsplit_once(':') else {
        return image.contains("aws-load-balancer-controller");
    };
    if !name.ends_with("aws-load-balancer-controller") {
        return false;
    }
    let mut parts = tag
        .trim_start_matches('v')
        .split(['.', '-'])
        .map(|p| p.parse::<u32>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(2), Some(minor)) => minor >= 5,
        (Some(major), _) => major > 2,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{deployment, of, says, snapshot, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::json;

    fn company(image: &str, stype: &str) -> crate::snapshot::model::Snapshot {
        let mut s = snapshot();
        let mut lbc = deployment("lbc", 1, json!({}));
        lbc["spec"]["template"]["spec"]["containers"] = json!([{"name": "c", "image": image}]);
        s.blue.objects = vec![
            lbc,
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "edge", "namespace": "n", "annotations": {"service.beta.kubernetes.io/aws-load-balancer-proxy-protocol": "*"}},
                "spec": {"type": stype, "selector": {"app": "x"}, "ports": []}}),
        ];
        s
    }

    #[test]
    fn net_10_a_classic_load_balancer_that_the_controller_takes_over_changes_in_kind() {
        let p = plan(
            &spec(),
            &company(
                "public.ecr.aws/eks/aws-load-balancer-controller:v2.7.0",
                "LoadBalancer",
            ),
        );
        says(
            &p,
            "NET-10",
            Severity::Warning,
            "become network load balancers",
        );
        says(
            &p,
            "NET-10",
            Severity::Warning,
            "proxy protocol v2 instead of v1 (service/n/edge)",
        );
        // Before 2.5 only annotated Services were taken.
        let p = plan(
            &spec(),
            &company(
                "public.ecr.aws/eks/aws-load-balancer-controller:v2.4.1",
                "LoadBalancer",
            ),
        );
        assert!(
            of(&p, "NET-10")
                .iter()
                .all(|f| !f.message.contains("become network"))
        );
        says(
            &p,
            "NET-10",
            Severity::NotChecked,
            "set by hand are not read, for 1 load balancer",
        );
    }

    #[test]
    fn net_10_a_company_without_load_balancers_of_its_own_has_none_to_compare() {
        assert!(of(&plan(&spec(), &company("x", "ClusterIP")), "NET-10").is_empty());
    }
}
