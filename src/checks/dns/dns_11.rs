//! DNS-11: who else writes in the zones: other ExternalDNS owners, Terraform, cert-manager's DNS-01 solvers, kops's dns-controller.

use crate::checks::look::{count, items};
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::edns;
use crate::plan::model::Severity;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECK: Check = Check {
    id: "DNS-11",
    severity: Severity::Warning,
    question: "Who else writes in the same zones?",
    needs: &[Need::Zones],
    answered: Answered::Plan,
    remedy: "Their records are never touched; ask them to pause during the cutover.",
    source: "checks.md DNS-11",
    run,
};

fn run(i: &Input, r: &mut Report) {
    // The inventory of rule 1: who writes on blue, and as what.
    for (object, c) in i.instances {
        r.info(
            object,
            c.describe(),
            "Nothing to do: it is stopped before the names move.",
        );
    }
    let blue: BTreeSet<&str> = i.instances.iter().map(|(_, c)| c.owner.as_str()).collect();
    let hosts = i.hosts();
    let solvers: Vec<&str> = ["Issuer", "ClusterIssuer"]
        .iter()
        .flat_map(|k| i.of_kind(k))
        .filter(|o| {
            items(o.object, "/spec/acme/solvers").any(|s| s.pointer("/dns01/route53").is_some())
        })
        .map(|o| o.name.as_str())
        .collect();
    for z in i.zones() {
        let name = z.zone.name.trim_end_matches('.');
        let mut others: BTreeMap<String, usize> = BTreeMap::new();
        for x in z.records.iter().filter(|x| x.rtype == "TXT") {
            let owner = x
                .values
                .first()
                .and_then(|v| edns::Heritage::parse(v))
                .and_then(|h| h.owner().map(String::from));
            if let Some(o) = owner.filter(|o| !blue.contains(o.as_str())) {
                *others.entry(o).or_default() += 1;
            }
        }
        let mut writers: Vec<String> = others
            .into_iter()
            .map(|(o, n)| format!("ExternalDNS owner {o} ({})", count(n, "ownership record")))
            .collect();
        writers.extend(solvers.iter().map(|s| format!("the DNS-01 solver of {s}")));
        let api = format!("api.{}", i.spec.blue.cluster);
        let controller = i.of_kind("Deployment").any(|o| {
            o.images()
                .iter()
                .any(|x| x == "dns-controller" || x == "kops-dns-controller")
        });
        if controller && edns::in_zone(&api, name) {
            writers.push("kops's dns-controller".into());
        }
        if !writers.is_empty() {
            r.found(
                format!("zone/{name}"),
                format!("others write here too: {}", few(&writers)),
            );
        }
        // Terraform would put a moving name back at its next apply.
        let theirs: Vec<&str> = i
            .snapshot
            .terraform
            .iter()
            .flatten()
            .filter(|t| t.kind == "aws_route53_record")
            .filter_map(|t| {
                let host = t
                    .attributes
                    .get("name")
                    .or_else(|| t.attributes.get("fqdn"))?;
                let host = host.trim_end_matches('.');
                // The name may be relative to the zone.
                let host = if hosts.contains_key(host) {
                    host.to_string()
                } else {
                    format!("{host}.{name}")
                };
                hosts
                    .contains_key(host.as_str())
                    .then_some(t.address.as_str())
            })
            .collect();
        if !theirs.is_empty() {
            r.warning(
                format!("zone/{name}"),
                format!("Terraform keeps {} of names that move, and would put them back at its next apply: {}", count(theirs.len(), "record"), few(&theirs)),
                "Remove them from the state first (`terraform state rm`), and from the code.",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::Warning;
    use crate::snapshot::model::TerraformResource;
    use serde_json::json;

    #[test]
    fn another_owner_a_solver_and_terraform_are_named() {
        let mut s = shop();
        s.zones[0]
            .records
            .push(txt("x.shop.test", "other-team", "ingress/x/x"));
        s.blue.objects.push(object("cert-manager.io/v1", "ClusterIssuer", "letsencrypt",
            json!({"spec": {"acme": {"solvers": [{"dns01": {"route53": {"region": "eu-west-1"}}}]}}})));
        s.terraform = Some(vec![TerraformResource {
            address: "aws_route53_record.www".into(),
            kind: "aws_route53_record".into(),
            attributes: [("name".to_string(), "www".to_string())].into(),
        }]);
        fires(
            &spec(),
            &s,
            "DNS-11",
            Warning,
            "owner other-team (1 ownership record)",
        );
        fires(&spec(), &s, "DNS-11", Warning, "solver of clusterissuer");
        fires(&spec(), &s, "DNS-11", Warning, "aws_route53_record.www");
    }

    #[test]
    fn a_zone_that_only_blue_writes_is_fine() {
        never_says(&spec(), &shop(), "DNS-11", "others write here");
    }
}
