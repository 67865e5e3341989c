//! TLS-04: what clients without SNI or with old libraries see: the default certificate, the chain, the TLS versions. Policies of load
//! balancers that cannot be carried over are found by the rewrite (NET-10).

use super::certs::{named_secrets, secrets};
use crate::checks::look::count;
use crate::checks::{Answered, Check, Input, Need, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "TLS-04",
    severity: Severity::Warning,
    question: "Do default certificate, chain or TLS policy differ, so that old clients fail?",
    needs: &[Need::Blue],
    answered: Answered::Person,
    remedy: "Compare `openssl s_client -connect` of both sides, with and without a server name, and with the oldest TLS version that clients use.",
    source: "checks.md TLS-04",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let secrets = secrets(i);
    for o in i.moving(&["Deployment", "DaemonSet", "StatefulSet"]) {
        let default = o
            .arguments()
            .find_map(|a| a.strip_prefix("--default-ssl-certificate="));
        let Some(key) = default else { continue };
        // Of the same namespace when it names none.
        let key = if key.contains('/') {
            key.to_string()
        } else {
            format!("{}/{key}", o.id.namespace.as_deref().unwrap_or(""))
        };
        if secrets.as_ref().is_some_and(|s| s.get(&key) != Some(&true)) {
            r.warning(
                &o.name,
                format!("its default certificate secret/{key} is not on green: clients without a server name would see a self-signed one"),
                "Copy the Secret.",
            );
        }
    }
    let tls = named_secrets(i);
    let hosts: usize = tls.values().map(|h| h.len()).sum();
    if hosts > 0 {
        r.ask(
            "tls",
            format!(
                "whether green's ingress sends the same chain and accepts the same TLS versions for {}",
                count(hosts, "host")
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::{NotChecked, Warning};
    use serde_json::json;

    #[test]
    fn a_default_certificate_that_stays_behind_is_named() {
        let mut controller = workload(
            "Deployment",
            "ingress-nginx",
            "registry.k8s.io/ingress-nginx/controller:v1.11.0",
            json!({}),
        );
        controller["spec"]["template"]["spec"]["containers"][0]["args"] =
            json!(["--default-ssl-certificate=web/fallback"]);
        let mut s = with(vec![
            controller,
            object(
                "v1",
                "Secret",
                "fallback",
                json!({"type": "kubernetes.io/tls"}),
            ),
        ]);
        silent(&spec(), &s, "TLS-04");
        s.blue.objects[1]["metadata"]["name"] = "other".into();
        fires(
            &spec(),
            &s,
            "TLS-04",
            Warning,
            "secret/web/fallback is not on green",
        );
    }

    #[test]
    fn the_chain_is_asked_of_a_person_only_where_there_are_tls_hosts() {
        let mut s = shop();
        silent(&spec(), &s, "TLS-04");
        s.blue.objects[1]["spec"]["tls"] =
            json!([{"hosts": ["www.shop.test"], "secretName": "web-tls"}]);
        fires(&spec(), &s, "TLS-04", NotChecked, "for 1 host");
    }
}
