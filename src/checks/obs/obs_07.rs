//! OBS-07: an ingress controller can send stragglers on to green (S18); a load balancer of a Service cannot: there the tail is cut.

use crate::checks::look::count;
use crate::checks::{Answered, Check, Input, Report, few};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "OBS-07",
    severity: Severity::Info,
    question: "Which names cannot be forwarded from blue to green for stragglers?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Keep these workloads running on blue until their counters are 0, or put an ingress in front of them first.",
    source: "checks.md OBS-07",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let direct: Vec<&str> = i
        .names
        .iter()
        .filter(|n| n.object.starts_with("service/"))
        .map(|n| n.host.as_str())
        .collect();
    if !direct.is_empty() {
        r.found(
            format!("host/{}", direct[0]),
            format!(
                "{} behind load balancers of Services: {}; blue cannot forward who comes late",
                count(direct.len(), "name"),
                few(&direct)
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::Info;
    use serde_json::json;

    #[test]
    fn a_name_of_a_service_cannot_be_forwarded_and_one_of_an_ingress_can() {
        silent(&spec(), &shop(), "OBS-07");
        let mut s = shop();
        s.blue.objects.push(object("v1", "Service", "mail", json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 25}]},
            "metadata": {"annotations": {"external-dns.alpha.kubernetes.io/hostname": "smtp.shop.test"}},
            "status": {"loadBalancer": {"ingress": [{"ip": BLUE}]}}})));
        s.zones[0].records.extend([
            record("smtp.shop.test", "A", 300, BLUE),
            txt("smtp.shop.test", "shop-blue", "service/web/mail"),
        ]);
        fires(&spec(), &s, "OBS-07", Info, "smtp.shop.test");
    }
}
