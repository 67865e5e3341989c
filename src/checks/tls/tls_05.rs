//! TLS-05: certificates by ARN are of one region and account (eks.md 5). Regions of Services are found by the rewrite, which reads their
//! annotations anyway; here are Ingresses, and the account of both.

use crate::checks::look::count;
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::object::annotation;
use crate::plan::model::Severity;
use std::collections::BTreeMap;

pub(super) const CHECK: Check = Check {
    id: "TLS-05",
    severity: Severity::Blocker,
    question: "Is a certificate ARN not of green's account and region?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Import the certificate there and change the annotation on blue.",
    source: "checks.md TLS-05",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let region = i.cx.region.as_str();
    let account = i.cx.account.as_deref();
    let mut wrong: BTreeMap<(String, &str), Vec<String>> = BTreeMap::new();
    for (kind, key) in [
        ("Ingress", "alb.ingress.kubernetes.io/certificate-arn"),
        (
            "Service",
            "service.beta.kubernetes.io/aws-load-balancer-ssl-cert",
        ),
    ] {
        for o in i.moving(&[kind]) {
            let arns = annotation(o.object, key).unwrap_or("");
            for arn in arns
                .split(',')
                .map(str::trim)
                .filter(|a| a.starts_with("arn:"))
            {
                let part = |n: usize| arn.split(':').nth(n).unwrap_or("");
                // IAM server certificates have no region.
                if kind == "Ingress"
                    && !part(3).is_empty()
                    && !region.is_empty()
                    && part(3) != region
                {
                    let what = format!("{arn} is in {}, green is in {region}", part(3));
                    wrong.entry((what, key)).or_default().push(o.name.clone());
                } else if account.is_some_and(|a| a != part(4)) {
                    let what = format!(
                        "{arn} is of account {}, green is in {}",
                        part(4),
                        account.unwrap_or("")
                    );
                    wrong.entry((what, key)).or_default().push(o.name.clone());
                }
            }
        }
    }
    for ((what, _), mut objects) in wrong {
        objects.dedup();
        r.found(
            objects[0].clone(),
            format!(
                "certificate {what}; named by {}: {}",
                count(objects.len(), "object"),
                few(&objects)
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::Blocker;
    use crate::snapshot::model::Snapshot;

    fn with_arn(arn: &str) -> Snapshot {
        let mut s = shop();
        s.blue.objects[1]["metadata"]["annotations"]["alb.ingress.kubernetes.io/certificate-arn"] =
            arn.into();
        s
    }

    #[test]
    fn a_certificate_of_another_region_or_account_blocks() {
        let other = "arn:aws:acm:us-east-1:000000000000:certificate/1";
        fires(
            &spec(),
            &with_arn(other),
            "TLS-05",
            Blocker,
            "is in us-east-1",
        );
        let other = "arn:aws:acm:eu-west-1:111111111111:certificate/1";
        fires(
            &spec(),
            &with_arn(other),
            "TLS-05",
            Blocker,
            "of account 111111111111",
        );
    }

    #[test]
    fn certificates_of_green_and_server_certificates_of_iam_are_fine() {
        let both = "arn:aws:acm:eu-west-1:000000000000:certificate/1, arn:aws:iam::000000000000:server-certificate/old";
        silent(&spec(), &with_arn(both), "TLS-05");
    }
}
