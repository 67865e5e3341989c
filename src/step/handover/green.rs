//! What green's ExternalDNS is told, wants, and would change: the model's dry run over the live zone.

use crate::edns::{self, Config, switch};
use crate::object::Side;
use crate::plan::model::Name;
use crate::step::util::{at, kind_of, load_balancer, refused};
use crate::step::{Cx, StepResult};
use crate::world::dns::{Change, RecordSet, Zone};
use crate::world::kube::Kube;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Configuration of an ExternalDNS, from its Deployment.
fn config_of(deployment: &Value) -> StepResult<Config> {
    let name = format!(
        "deployment/{}",
        at(deployment, "/metadata/name")
            .as_str()
            .unwrap_or_default()
    );
    match Config::of_workload(deployment) {
        Some(Ok(config)) => Ok(config),
        Some(Err(e)) => Err(refused(name, e.message, e.remedy)),
        None => Err(refused(
            name,
            "it does not run ExternalDNS",
            "make the plan again",
        )),
    }
}

/// Configuration of green's ExternalDNS as the plan has it.
pub(super) fn green_config(cx: &Cx) -> StepResult<Config> {
    for object in &cx.plan.generated {
        if object["kind"] == "Deployment" && Config::of_workload(object).is_some() {
            return config_of(object);
        }
    }
    Err(refused(
        "green's ExternalDNS",
        "the plan has none",
        "make the plan again",
    ))
}

/// Ingresses and Services of a side.
async fn published(kube: &dyn Kube) -> StepResult<Vec<Value>> {
    let mut objects = vec![];
    let kinds = kube.kinds(false).await?;
    let ingress = ["networking.k8s.io/v1", "networking.k8s.io/v1beta1"]
        .into_iter()
        .find(|v| {
            kinds
                .iter()
                .any(|k| k.kind == "Ingress" && k.api_version() == *v)
        })
        .unwrap_or("networking.k8s.io/v1");
    for (version, kind) in [(ingress, "Ingress"), ("v1", "Service")] {
        objects.extend(kube.list(&kind_of(kube, version, kind).await?).await?.items);
    }
    Ok(objects)
}

/// What green's ExternalDNS would want now, by host, from green's live Ingresses and Services.
pub(super) async fn desired(
    cx: &Cx,
    config: &Config,
) -> StepResult<BTreeMap<String, Vec<edns::Endpoint>>> {
    let objects = published(cx.world.green.as_ref()).await?;
    let mut by_host: BTreeMap<String, Vec<edns::Endpoint>> = BTreeMap::new();
    for e in edns::desired(&objects, config) {
        by_host.entry(e.name.clone()).or_default().push(e);
    }
    Ok(by_host)
}

/// Addresses of blue's load balancers, lower case without final dot.
pub(super) async fn blues_addresses(cx: &Cx) -> StepResult<BTreeSet<String>> {
    Ok(published(cx.world.kube(Side::Blue))
        .await?
        .iter()
        .flat_map(load_balancer)
        .map(|a| plain(&a))
        .collect())
}

/// A target as two sides can be compared by it.
pub(super) fn plain(target: &str) -> String {
    let t = target.trim_end_matches('.').to_lowercase();
    t.strip_prefix("dualstack.").unwrap_or(&t).to_string()
}

pub(super) async fn zone_of(cx: &Cx, id: &str) -> StepResult<Zone> {
    let zone = cx.world.dns.zones().await?.into_iter().find(|z| z.id == id);
    zone.ok_or_else(|| {
        refused(
            format!("zone {id}"),
            "it is not there",
            "run discover again, then plan and review",
        )
    })
}

/// What green's ExternalDNS would change in these zones, one line per change; empty is what the cutover wants.
pub(crate) async fn dry_run(
    cx: &Cx,
    deployment: &Value,
    zones: &[String],
) -> StepResult<Vec<String>> {
    let config = config_of(deployment)?;
    let wanted = flat(desired(cx, &config).await?);
    let mut lines = vec![];
    for id in zones {
        let zone = zone_of(cx, id).await?;
        let records = cx.world.dns.records(id).await?;
        for change in real_changes(&config, &records, &wanted, &zone) {
            lines.push(match change {
                Change::Create(r) => format!("CREATE {}", r.key()),
                Change::Delete(r) => format!("DELETE {}", r.key()),
                Change::Upsert(r) => format!("UPSERT {}", r.key()),
            });
        }
    }
    Ok(lines)
}

fn flat(by_host: BTreeMap<String, Vec<edns::Endpoint>>) -> Vec<edns::Endpoint> {
    by_host.into_values().flatten().collect()
}

/// The plan of green's ExternalDNS without UPSERTs of what is there: an apex gets one in each loop (externaldns.md trap 16).
fn real_changes(
    config: &Config,
    records: &[RecordSet],
    wanted: &[edns::Endpoint],
    zone: &Zone,
) -> Vec<Change> {
    let mut changes = edns::plan_changes(config, records, wanted, zone);
    if !changes.is_empty() {
        let by_key: BTreeMap<_, &RecordSet> = records.iter().map(|r| (r.key(), r)).collect();
        changes.retain(
            |c| !matches!(c, Change::Upsert(r) if by_key.get(&r.key()).is_some_and(|have| *have == r)),
        );
    }
    changes
}

/// Names of the plan that are not green's now: another owner, or another target than green wants.
pub(crate) async fn not_handed_over(cx: &Cx) -> StepResult<Vec<String>> {
    let config = green_config(cx)?;
    let wanted = flat(desired(cx, &config).await?);
    let mut wrong = vec![];
    let zones: BTreeSet<&str> = cx.plan.names.iter().map(|n| n.zone_id.as_str()).collect();
    for id in zones {
        let zone = zone_of(cx, id).await?;
        let records = cx.world.dns.records(id).await?;
        let owned: BTreeSet<(String, Option<String>)> = edns::ownership(&records, &config)
            .into_iter()
            .filter(|o| o.owner.as_deref() == Some(config.owner.as_str()))
            .map(|o| (bare(&o.key.name).to_string(), o.key.set_identifier))
            .collect();
        let touched: BTreeSet<String> = real_changes(&config, &records, &wanted, &zone)
            .iter()
            .map(|c| bare(&switch::record_of(c).name).to_string())
            .collect();
        let mine = cx.plan.names.iter().filter(|n| n.zone_id == id);
        for name in mine {
            let ours = owned.contains(&(name.host.clone(), name.set_identifier.clone()));
            if !ours || touched.contains(&name.host) {
                wrong.push(name.host.clone());
            }
        }
    }
    wrong.dedup();
    Ok(wrong)
}

/// Ownership TXTs of the plan's names that carry an owner of blue's now, in any variant (externaldns.md rule 16).
pub(crate) async fn still_blues(cx: &Cx) -> StepResult<Vec<String>> {
    let config = green_config(cx)?;
    let blues: BTreeSet<String> = cx
        .plan
        .names
        .iter()
        .filter_map(|n| n.owner.clone())
        .collect();
    let any = BTreeSet::new();
    let mut left = vec![];
    let zones: BTreeSet<&str> = cx.plan.names.iter().map(|n| n.zone_id.as_str()).collect();
    for id in zones {
        let records = cx.world.dns.records(id).await?;
        let hosts = hosts(cx.plan.names.iter().filter(|n| n.zone_id == id));
        for unit in switch::units(&hosts, &records, &config, &any) {
            let of_blue = |r: &&RecordSet| switch::owner_of(r).is_some_and(|o| blues.contains(&o));
            left.extend(
                unit.records
                    .iter()
                    .filter(of_blue)
                    .map(|r| r.key().to_string()),
            );
        }
    }
    Ok(left)
}

pub(super) fn bare(name: &str) -> &str {
    name.trim_end_matches('.')
}

/// Hosts of the plan's names, each with all its set identifiers, in order.
pub(super) fn hosts<'n>(names: impl Iterator<Item = &'n Name>) -> Vec<switch::Host> {
    let mut out: BTreeMap<&str, switch::Host> = BTreeMap::new();
    for n in names {
        let host = out.entry(n.host.as_str()).or_insert_with(|| switch::Host {
            host: n.host.clone(),
            object: n.object.clone(),
            sets: BTreeSet::new(),
            txt: BTreeSet::new(),
        });
        host.sets.insert(n.set_identifier.clone());
        host.txt.extend(n.txt.iter().cloned());
    }
    out.into_values().collect()
}
