//! The readiness of each name in the last moment before it moves (externaldns.md rule 10), and whose doing a zone is when it moves back.

use super::green::plain;
use super::{Cx, PROBES, StepResult, ask};
use crate::edns::switch::{self, Hold, Unit};
use crate::edns::{Config, Endpoint, plan_changes};
use crate::object::Side;
use crate::step::util::address_of;
use crate::world::dns::{RecordSet, Zone};
use crate::world::probe::{HttpAnswer, Via};
use futures::StreamExt;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Never blue's: a copied status or target annotation would be a cutover that still points at blue (externaldns.md trap 24).
pub(super) fn leads_to_green(
    endpoints: &[&Endpoint],
    blues: &BTreeSet<String>,
) -> Result<(), Hold> {
    for e in endpoints {
        if let Some(t) = e.targets.iter().find(|t| blues.contains(&plain(t))) {
            return Err(Hold::new(
                format!("on green {} leads to blue's load balancer {t}", e.resource),
                "remove the target annotation or copied address from the object on green; then resume (externaldns.md trap 24)",
            ));
        }
    }
    Ok(())
}

/// Hosts of a unit that are asked over HTTP.
pub(super) fn hosts_to_ask(cx: &Cx, key: &str) -> Vec<String> {
    key.split('+')
        .filter(|h| !h.starts_with("*.") && !cx.plan.spec.probes.skip.iter().any(|s| s == h))
        .map(String::from)
        .collect()
}

/// Units of which a host answers otherwise through green's target than through blue's load balancer now.
pub(super) async fn different(
    cx: &Cx,
    units: &[(&String, Vec<String>)],
    endpoints: &BTreeMap<String, Vec<Endpoint>>,
) -> StepResult<BTreeMap<String, Hold>> {
    let object_of: BTreeMap<&str, &str> = cx
        .plan
        .names
        .iter()
        .map(|n| (n.host.as_str(), n.object.as_str()))
        .collect();
    let mut asks = vec![];
    for (key, hosts) in units {
        for host in hosts {
            let target = endpoints.get(host).and_then(|e| e.first()?.targets.first());
            let object = object_of.get(host.as_str()).map(|o| o.to_string());
            if let (Some(target), Some(object)) = (target, object) {
                asks.push((key.to_string(), host.clone(), target.clone(), object));
            }
        }
    }
    let answers = futures::stream::iter(asks)
        .map(|(key, host, target, object)| async move {
            let hold = compare(cx, &host, target, &object).await;
            (key, hold)
        })
        .buffered(PROBES)
        .collect::<Vec<_>>()
        .await;
    let mut held = BTreeMap::new();
    for (key, hold) in answers {
        if let Some(hold) = hold? {
            held.insert(key, hold);
        }
    }
    Ok(held)
}

async fn compare(cx: &Cx, host: &str, target: String, object: &str) -> StepResult<Option<Hold>> {
    const LOOK: &str = "compare the two sides; cure green, then resume; or list the host under probes.skip if the difference is wanted";
    let green = match patiently(cx, host, &target).await {
        Ok(a) => a,
        Err(e) => {
            return Ok(Some(Hold::new(
                format!(
                    "{host} does not answer through green's {target}: {}",
                    e.message
                ),
                LOOK,
            )));
        }
    };
    // Blue that does not answer any more is no reason to stay there.
    let Some(address) = address_of(cx, Side::Blue, object).await? else {
        return Ok(None);
    };
    let Ok(blue) = patiently(cx, host, &address).await else {
        return Ok(None);
    };
    Ok(difference(cx, &green, &blue).map(|what| Hold::new(format!("{host} {what}"), LOOK)))
}

/// Three tries: one lost packet must hold no name.
async fn patiently(cx: &Cx, host: &str, address: &str) -> crate::world::Result<HttpAnswer> {
    let mut tries = 0;
    loop {
        match ask(cx, host, Via::LoadBalancer(address.into())).await {
            Err(e) if e.is_transient() && tries < 2 => {
                tries += 1;
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            answer => return answer,
        }
    }
}

/// What an answer of green has otherwise, among what the spec compares.
fn difference(cx: &Cx, green: &HttpAnswer, blue: &HttpAnswer) -> Option<String> {
    let probes = &cx.plan.spec.probes;
    if green.status != blue.status {
        return Some(format!(
            "answers {} on green, {} on blue",
            green.status, blue.status
        ));
    }
    for header in &probes.same_headers {
        let of = |a: &HttpAnswer| {
            a.headers
                .get(&header.to_lowercase())
                .cloned()
                .unwrap_or_else(|| "nothing".into())
        };
        let (g, b) = (of(green), of(blue));
        if g != b {
            return Some(format!("has {header} `{g}` on green, `{b}` on blue"));
        }
    }
    (probes.same_body && green.body_sha256 != blue.body_sha256)
        .then(|| "has another body on green than on blue".into())
}

/// Whether a unit differs from what was sent only by what green's own ExternalDNS does: TXTs and AAAA records of its own, a load balancer that it
/// followed. Anything else is somebody's decision and stops the way back.
pub(super) fn greens_doing(
    unit: &Unit,
    sent: Option<&[RecordSet]>,
    wanted: &BTreeMap<String, Vec<Endpoint>>,
    config: &Config,
    zone: &Zone,
) -> bool {
    if switch::owners_of(&unit.records) != BTreeSet::from([config.owner.clone()]) {
        return false;
    }
    let addresses = |g: &[RecordSet]| -> Vec<RecordSet> {
        g.iter()
            .filter(|r| switch::is_address(r))
            .cloned()
            .collect()
    };
    if sent.is_none_or(|s| addresses(s) == addresses(&unit.records)) {
        return true;
    }
    let mine: Vec<Endpoint> = unit
        .hosts
        .iter()
        .flat_map(|h| wanted.get(&h.host).into_iter().flatten().cloned())
        .collect();
    // With or without AAAA: somebody may have let green manage them since.
    let mut with = config.clone();
    with.excluded.retain(|t| t != "AAAA");
    with.managed = ["A", "AAAA", "CNAME"].map(String::from).to_vec();
    [config, &with].into_iter().any(|c| {
        plan_changes(c, &unit.records, &mine, zone)
            .iter()
            .all(|change| {
                switch::record_of(change).rtype == "TXT"
                    || switch::changes_nothing(change, &unit.records)
            })
    })
}
