//! CAP-08.

use crate::checks::words::{count, some};
use crate::checks::{Answered, Check, Input, Need, Report};
use crate::object::annotation;
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "CAP-08",
    severity: Severity::Warning,
    question: "Is a new load balancer given time or reserve for the traffic that comes at once?",
    needs: &[Need::Blue],
    answered: Answered::Person,
    remedy: "Look up the peak of each load balancer of blue (CloudWatch: RequestCount, ProcessedBytes a minute). Reserve capacity on green's before the cutover (elbv2 modify-capacity-reservation, or the annotation minimum-load-balancer-capacity), or set dns.waveSize so that no wave brings more than half as much again in 5 minutes; then waive this.",
    source: "checks.md CAP-08, eks.md 5",
    run,
};

/// A fresh load balancer grows with its traffic: what comes faster than half as much again in 5 minutes may get 503 (eks.md 5).
fn run(i: &Input, r: &mut Report) {
    let mut objects: Vec<&str> = i.names.iter().map(|n| n.object.as_str()).collect();
    objects.sort();
    objects.dedup();
    let reserved: std::collections::BTreeSet<&str> = i
        .blue
        .iter()
        .filter(|b| reserves(b.object))
        .map(|b| b.name.as_str())
        .collect();
    objects.retain(|o| !reserved.contains(o));
    if objects.is_empty() {
        return;
    }
    let waves: std::collections::BTreeSet<u32> = i.names.iter().map(|n| n.wave).collect();
    r.not_checked(
        "load balancers",
        &format!(
            "the peak rate is known to CloudWatch only; {} of {} in {} to new load balancers without reserved capacity ({}), and traffic that grows faster than by half in 5 minutes may get 503",
            count(i.names.len(), "name"),
            count(objects.len(), "object"),
            count(waves.len(), "wave"),
            some(&objects)
        ),
        CHECK.remedy,
    );
}

/// Whether capacity of a load balancer is reserved for it.
fn reserves(object: &serde_json::Value) -> bool {
    [
        "alb.ingress.kubernetes.io/minimum-load-balancer-capacity",
        "service.beta.kubernetes.io/aws-load-balancer-minimum-load-balancer-capacity",
    ]
    .iter()
    .any(|a| annotation(object, a).is_some())
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{handed_over, of, says, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::json;

    #[test]
    fn cap_08_names_that_move_to_a_cold_load_balancer_are_a_question_for_a_person() {
        let mut s = handed_over();
        let p = plan(&spec(), &s);
        assert!(!p.names.is_empty(), "the fixture hands a name over");
        says(
            &p,
            "CAP-08",
            Severity::NotChecked,
            "known to CloudWatch only",
        );
        assert_eq!(of(&p, "CAP-08").len(), 1);
        for o in &mut s.blue.objects {
            if o["kind"] == "Ingress" {
                o["metadata"]["annotations"]["alb.ingress.kubernetes.io/minimum-load-balancer-capacity"] =
                    json!("CapacityUnits=500");
            }
        }
        assert!(of(&plan(&spec(), &s), "CAP-08").is_empty());
    }
}
