//! TLS-01: each TLS host of green shows the certificate that it shows on blue.

use super::certs::{certificates, named_secrets, secrets};
use crate::checks::look::{count, covers};
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "TLS-01",
    severity: Severity::Blocker,
    question: "Is a certificate of an Ingress missing on green, expired, or not for its hosts?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Copy the Secret first: take it out of workloads.skip, or put it on green before the cutover.",
    source: "checks.md TLS-01",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let named = named_secrets(i);
    if named.is_empty() {
        return;
    }
    let Some(secrets) = secrets(i) else {
        r.not_checked(
            "secrets",
            "Ingresses name TLS Secrets, and no Secret was read",
            "Let discover list Secrets: only keyed hashes of their values are kept.",
        );
        return;
    };
    let known = certificates(i);
    let mut unread: Vec<String> = vec![];
    for (key, hosts) in &named {
        let object = format!("secret/{key}");
        let hosts: Vec<&String> = hosts.iter().collect();
        let certificate = known.iter().find(|c| c.secret == *key);
        match secrets.get(key) {
            Some(false) => r.found(
                &object,
                format!("is not copied, and {} would show another certificate: {}", count(hosts.len(), "host"), few(&hosts)),
            ),
            None if certificate.is_none() => r.warning(
                &object,
                "is named by an Ingress, and blue has no such Secret: its controller shows a default certificate, and green's will too",
                "Give the Ingress a Secret that exists, or take its TLS entry away.",
            ),
            _ => {}
        }
        let Some(c) = certificate else {
            if secrets.contains_key(key) {
                unread.push(object);
            }
            continue;
        };
        if let (Some(until), Some(today)) = (c.until, i.today)
            && until < today
        {
            r.blocker(
                &object,
                format!("its certificate has expired on {until}"),
                "Renew it on blue now.",
            );
        }
        let wrong: Vec<&String> = hosts
            .into_iter()
            .filter(|h| !c.names.is_empty() && !c.names.iter().any(|n| covers(n, h)))
            .collect();
        if !wrong.is_empty() {
            r.warning(
                &object,
                format!("its certificate is not for {}: {}; clients are warned today and will be on green", count(wrong.len(), "host"), few(&wrong)),
                "Add the names to the Certificate.",
            );
        }
    }
    if !unread.is_empty() {
        r.not_checked(
            "secrets",
            &format!(
                "names and expiry of {} that no Certificate describes (a snapshot holds no values): {}",
                count(unread.len(), "TLS Secret"),
                few(&unread)
            ),
            "Look at them with `kubectl get secret -o yaml` and openssl, and answer with a waiver of TLS-01. They are copied byte by byte.",
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::{Blocker, NotChecked, Warning};
    use crate::snapshot::model::Snapshot;
    use serde_json::{Value, json};

    fn tls(certificate: Option<Value>) -> Snapshot {
        let mut s = shop();
        s.blue.objects[1]["spec"]["tls"] =
            json!([{"hosts": ["www.shop.test"], "secretName": "web-tls"}]);
        s.blue.objects.push(object(
            "v1",
            "Secret",
            "web-tls",
            json!({"type": "kubernetes.io/tls", "data": {"tls.crt": "hmac-sha256:00:9"}}),
        ));
        if let Some(body) = certificate {
            s.blue
                .objects
                .push(object("cert-manager.io/v1", "Certificate", "web", body));
        }
        s
    }

    #[test]
    fn a_secret_that_is_skipped_blocks_and_one_that_blue_does_not_have_is_named() {
        let mut skip = spec();
        skip.workloads.skip = vec!["secret/web/web-tls".into()];
        fires(&skip, &tls(None), "TLS-01", Blocker, "secret/web/web-tls");
        let mut s = tls(None);
        s.blue.objects.retain(|o| o["kind"] != "Secret");
        s.blue
            .objects
            .push(object("v1", "Secret", "other", json!({"type": "Opaque"})));
        fires(&spec(), &s, "TLS-01", Warning, "blue has no such Secret");
    }

    #[test]
    fn an_expired_certificate_blocks_and_one_for_other_hosts_is_named() {
        let c = |names: Value, until: &str| {
            tls(Some(
                json!({"spec": {"secretName": "web-tls", "dnsNames": names, "issuerRef": {"name": "ca"}}, "status": {"notAfter": until}}),
            ))
        };
        let fine = c(json!(["*.shop.test"]), "2027-06-01T00:00:00Z");
        silent(&spec(), &fine, "TLS-01");
        fires(
            &spec(),
            &c(json!(["www.shop.test"]), "2026-11-01T00:00:00Z"),
            "TLS-01",
            Blocker,
            "expired on 2026-11-01",
        );
        fires(
            &spec(),
            &c(json!(["shop.test"]), "2027-06-01T00:00:00Z"),
            "TLS-01",
            Warning,
            "not for 1 host",
        );
    }

    #[test]
    fn a_certificate_that_nobody_describes_is_not_called_good() {
        fires(
            &spec(),
            &tls(None),
            "TLS-01",
            NotChecked,
            "secret/web/web-tls",
        );
        silent(&spec(), &shop(), "TLS-01");
    }
}
