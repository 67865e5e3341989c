//! TLS-06: who renews. HTTP-01 answers where the name leads: on green it fails until the flip, on blue after it. DNS-01 needs a role on green.

use super::certs::{certificates, issuers};
use crate::checks::look::{count, items, text};
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::object::annotation;
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "TLS-06",
    severity: Severity::Warning,
    question: "Would renewals fail: HTTP-01 before the flip, or DNS-01 without a role on green?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Use DNS-01 with a role for cert-manager on green, or copy the Secrets and renew right before the cutover.",
    source: "checks.md TLS-06",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let mut http = vec![];
    let mut dns = vec![];
    for o in issuers(i) {
        let old = o.object.pointer("/spec/acme");
        // Up to 0.7 the solvers stood beside each other, without a list.
        if items(o.object, "/spec/acme/solvers").any(|s| s.get("http01").is_some())
            || old.is_some_and(|a| a.get("http01").is_some())
        {
            http.push(o.name.as_str());
        }
        let ambient = items(o.object, "/spec/acme/solvers").any(|s| {
            s.pointer("/dns01/route53").is_some_and(|d| {
                d.get("accessKeyID").is_none() && d.get("accessKeyIDSecretRef").is_none()
            })
        });
        if ambient {
            dns.push(o.name.as_str());
        }
    }
    if !http.is_empty() {
        let n = certificates(i).len();
        r.found(
            http[0],
            format!("{} by HTTP-01 ({}): green cannot renew any of {} before its names lead there, blue none after", count(http.len(), "issuer"), few(&http), count(n, "certificate")),
        );
    }
    if dns.is_empty() {
        return;
    }
    for o in i.moving(&["Deployment"]) {
        if !o.images().iter().any(|x| x == "cert-manager-controller") {
            continue;
        }
        let ns = o.id.namespace.as_deref().unwrap_or("");
        let account = o
            .pod()
            .and_then(|p| text(p, "/serviceAccountName"))
            .unwrap_or("default");
        let key = format!("{ns}/{account}");
        let annotated = i.of_kind("ServiceAccount").any(|s| {
            s.key() == key
                && s.on_green()
                    .is_some_and(|v| annotation(v, "eks.amazonaws.com/role-arn").is_some())
        });
        let planned = i.cx.sa_roles.contains_key(&key)
            || i.spec.green.roles.contains_key(&key)
            || i.target
                .roles
                .iter()
                .any(|t| t.service_account.as_deref() == Some(&key));
        if !annotated && !planned {
            r.found(
                &o.name,
                format!("writes DNS-01 challenges for {} without a role of its own: on blue it leans on the nodes, on green it may not", few(&dns)),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::Warning;
    use serde_json::{Value, json};

    fn issuer(solver: Value) -> Value {
        object(
            "cert-manager.io/v1",
            "ClusterIssuer",
            "letsencrypt",
            json!({"spec": {"acme": {"solvers": [solver]}}}),
        )
    }

    #[test]
    fn http_01_cannot_renew_on_the_side_where_the_names_are_not() {
        let s = with(vec![issuer(
            json!({"http01": {"ingress": {"class": "nginx"}}}),
        )]);
        fires(&spec(), &s, "TLS-06", Warning, "by HTTP-01");
    }

    #[test]
    fn dns_01_needs_a_role_for_cert_manager() {
        let mut manager = workload(
            "Deployment",
            "cert-manager",
            "quay.io/jetstack/cert-manager-controller:v1.5.0",
            json!({"serviceAccountName": "cert-manager"}),
        );
        let s = |m: &Value| {
            with(vec![
                issuer(json!({"dns01": {"route53": {"region": "eu-west-1"}}})),
                m.clone(),
            ])
        };
        fires(
            &spec(),
            &s(&manager),
            "TLS-06",
            Warning,
            "without a role of its own",
        );
        manager["spec"]["template"]["metadata"]["annotations"] =
            json!({"iam.amazonaws.com/role": "cert-manager"});
        silent(&spec(), &s(&manager), "TLS-06");
    }
}
