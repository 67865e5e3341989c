//! TLS-03: certificates that green would order anew because their Secrets do not come along. Issuers allow 5 duplicates a week and name set
//! (practice.md 5); Let's Encrypt also 50 certificates a week and registered domain.

use super::certs::{acme_issuers, certificates, secrets};
use crate::checks::look::count;
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::plan::model::Severity;
use std::collections::BTreeMap;

pub(super) const CHECK: Check = Check {
    id: "TLS-03",
    severity: Severity::Blocker,
    question: "Would green order so many certificates that the issuer's weekly limit is near?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Copy the Secrets instead: take them out of workloads.skip.",
    source: "checks.md TLS-03",
    run,
};

/// Orders of one week and registered domain that Let's Encrypt takes.
const WEEKLY: usize = 50;

fn run(i: &Input, r: &mut Report) {
    let secrets = secrets(i);
    let acme = acme_issuers(i);
    let orders: Vec<_> = certificates(i)
        .into_iter()
        .filter(|c| c.object.moves() || c.object.is_child())
        .filter(|c| acme.contains(&c.issuer))
        .filter(|c| {
            secrets
                .as_ref()
                .is_some_and(|s| s.get(&c.secret) != Some(&true))
        })
        .collect();
    let mut by_domain: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for c in &orders {
        let name = c.names.first().copied().unwrap_or("");
        let mut labels: Vec<&str> = name.rsplit('.').take(2).collect();
        labels.reverse();
        by_domain
            .entry(labels.join("."))
            .or_default()
            .push(&c.object.name);
    }
    for (domain, names) in by_domain {
        let message = format!(
            "green would order {} of {domain} anew, their Secrets do not come along: {}; an issuer takes about {WEEKLY} a week",
            count(names.len(), "certificate"),
            few(&names)
        );
        // Near: four fifths, for the renewals of everybody else go on meanwhile.
        if names.len() * 5 >= WEEKLY * 4 {
            r.found(format!("domain/{domain}"), message);
        } else {
            r.warning(format!("domain/{domain}"), message, CHECK.remedy);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::{Blocker, Warning};
    use crate::snapshot::model::Snapshot;
    use serde_json::json;

    fn ordering(n: usize, secrets: bool) -> Snapshot {
        let mut objects = vec![
            object(
                "cert-manager.io/v1",
                "ClusterIssuer",
                "letsencrypt",
                json!({"spec": {"acme": {"solvers": []}}}),
            ),
            object("v1", "Secret", "unrelated", json!({"type": "Opaque"})),
            object(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                "certificates.cert-manager.io",
                json!({"spec": {"group": "cert-manager.io", "names": {"kind": "Certificate", "plural": "certificates"}, "versions": [{"name": "v1", "served": true, "storage": true}]}}),
            ),
        ];
        for k in 0..n {
            let name = format!("c{k:02}");
            objects.push(object("cert-manager.io/v1", "Certificate", &name,
                json!({"spec": {"secretName": name, "dnsNames": [format!("{name}.shop.test")], "issuerRef": {"kind": "ClusterIssuer", "name": "letsencrypt"}}})));
            if secrets {
                objects.push(object(
                    "v1",
                    "Secret",
                    &name,
                    json!({"type": "kubernetes.io/tls"}),
                ));
            }
        }
        with(objects)
    }

    #[test]
    fn forty_orders_in_a_week_are_near_the_limit_and_two_are_only_named() {
        fires(
            &spec(),
            &ordering(40, false),
            "TLS-03",
            Blocker,
            "40 certificates of shop.test",
        );
        fires(
            &spec(),
            &ordering(2, false),
            "TLS-03",
            Warning,
            "2 certificates of shop.test",
        );
    }

    #[test]
    fn nothing_is_ordered_when_the_secrets_come_along() {
        silent(&spec(), &ordering(40, true), "TLS-03");
    }
}
