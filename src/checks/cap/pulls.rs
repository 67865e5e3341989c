//! CAP-09.

use crate::checks::words::{count, images, some, templates};
use crate::checks::{Answered, Check, Input, Need, Report};
use crate::plan::model::Severity;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECK: Check = Check {
    id: "CAP-09",
    severity: Severity::Warning,
    question: "Do registries take the burst of pulls when all of green starts at once?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Mirror the images (ECR pull-through cache), log in to the registry, or pull them beforehand.",
    source: "checks.md CAP-09",
    run,
};

/// Pulls that Docker Hub lets one address do in six hours without a login.
const ANONYMOUS: u32 = 100;

fn run(i: &Input, r: &mut Report) {
    // Nodes that may pull each image, at most as many as there are pods of it.
    let mut pulls: BTreeMap<&str, u32> = BTreeMap::new();
    let nodes: u32 = i.load.groups.iter().map(|g| g.desired).sum();
    let loads: BTreeMap<&str, _> = i
        .load
        .workloads
        .iter()
        .map(|w| (w.object.as_str(), w))
        .collect();
    let logged_in_accounts: BTreeSet<(&str, &str)> = i
        .snapshot
        .blue
        .of_kind("ServiceAccount")
        .filter(|a| {
            a["imagePullSecrets"]
                .as_array()
                .is_some_and(|s| !s.is_empty())
        })
        .filter_map(|a| {
            Some((
                a["metadata"]["namespace"].as_str()?,
                a["metadata"]["name"].as_str()?,
            ))
        })
        .collect();
    for (object, template) in templates(i) {
        let logged_in = template
            .pointer("/spec/imagePullSecrets")
            .and_then(Value::as_array)
            .is_some_and(|s| !s.is_empty());
        if logged_in || account_logs_in(&logged_in_accounts, object, template) {
            continue;
        }
        let load = loads.get(object);
        let pods = load.map_or(1, |w| if w.daemon { nodes } else { w.replicas });
        for image in images(template).filter(|m| on_docker_hub(m)) {
            let n = pulls.entry(image).or_default();
            *n = (*n + pods).min(nodes.max(1));
        }
    }
    let total: u32 = pulls.values().sum();
    // The registry counts by the address that it sees.
    let addresses = match &i.snapshot.aws {
        Some(a) if a.nat_gateways.is_some() => i.network.egress.green_addresses.len().max(1) as u32,
        _ => i
            .load
            .groups
            .iter()
            .flat_map(|g| &g.zones)
            .collect::<BTreeSet<_>>()
            .len()
            .max(1) as u32,
    };
    if total > ANONYMOUS * addresses {
        let names: Vec<&str> = pulls.into_keys().collect();
        r.found(
            "images",
            format!(
                "{total} pulls of {} from Docker Hub without a login ({}) go out by {}, and it takes {ANONYMOUS} in six hours from each: pulls will be refused",
                count(names.len(), "image"),
                some(&names),
                if addresses == 1 { "1 address".into() } else { format!("{addresses} addresses") },
            ),
        );
    }
}

/// No registry in the name, or Docker Hub's.
fn on_docker_hub(image: &str) -> bool {
    match image.split_once('/') {
        None => true,
        Some((first, _)) => {
            matches!(
                first,
                "docker.io" | "index.docker.io" | "registry-1.docker.io"
            ) || !first.contains(['.', ':']) && first != "localhost"
        }
    }
}

/// The service account brings a pull secret.
fn account_logs_in(accounts: &BTreeSet<(&str, &str)>, object: &str, template: &Value) -> bool {
    let namespace = object.split('/').nth(1).unwrap_or_default();
    let account = template
        .pointer("/spec/serviceAccountName")
        .and_then(Value::as_str)
        .unwrap_or("default");
    accounts.contains(&(namespace, account))
}

#[cfg(test)]
mod tests {
    use crate::checks::tests::{deployment, of, says, snapshot, spec};
    use crate::plan::model::Severity;
    use crate::plan::plan;
    use serde_json::{Value, json};

    fn company(registry: &str, extra: Value) -> crate::snapshot::model::Snapshot {
        let mut s = snapshot();
        s.blue.objects = (0..60)
            .map(|n| {
                let mut d = deployment(&format!("app{n}"), 8, extra.clone());
                d["spec"]["template"]["spec"]["containers"] =
                    json!([{"name": "c", "image": format!("{registry}shop/app{n}:1")}]);
                d
            })
            .collect();
        s
    }

    #[test]
    fn cap_09_sixty_images_on_four_nodes_are_more_than_docker_hub_gives_away() {
        // 60 images on 4 nodes: 240 pulls by the NAT gateways of two zones.
        let p = plan(&spec(), &company("", json!({})));
        says(
            &p,
            "CAP-09",
            Severity::Warning,
            "240 pulls of 60 images from Docker Hub without a login",
        );
        says(&p, "CAP-09", Severity::Warning, "by 2 addresses");
    }

    #[test]
    fn cap_09_another_registry_or_a_login_is_no_burst_for_docker_hub() {
        for s in [
            company("000000000000.dkr.ecr.eu-west-1.amazonaws.com/", json!({})),
            company("localhost:5000/", json!({})),
            company("", json!({"imagePullSecrets": [{"name": "hub"}]})),
        ] {
            assert!(of(&plan(&spec(), &s), "CAP-09").is_empty());
        }
    }
}
