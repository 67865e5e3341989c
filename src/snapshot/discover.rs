//! A snapshot of the live world (or of the twin's). Reads only: lists and gets, paged, a few at a time.

use super::mask::{self, Key};
use super::model::{Cluster, Kops, NotChecked, Snapshot, ZoneRecords};
use super::prefer;
use crate::error::{Error, Kind, Result};
use crate::object::{ObjectId, Side};
use crate::spec::model::Spec;
use crate::world::kube::{ApiKind, Kube};
use crate::world::{self, Class, World};
use futures::StreamExt;
use serde_json::Value;

/// Lists that run at once against one API server: polite to an old one.
const AT_ONCE: usize = 4;

/// Reads blue, green (when there is one), the account and the zones. `kops` is what the state store gave, or why it gave
/// nothing. A part that cannot be read becomes `not_checked` with the reason; only when no server answers at all, the first
/// reason is the error ([`Kind::Unreachable`]).
pub async fn live(world: &World, spec: &Spec, kops: Result<Kops>, key: &Key) -> Result<Snapshot> {
    let mut missing: Vec<NotChecked> = vec![];
    let mut failed: Vec<Error> = vec![];
    let mut answered = false;

    let kops = match kops.and_then(super::kops::checked) {
        Ok(mut k) => {
            missing.append(&mut k.not_read);
            k
        }
        // A cluster of another cloud or a wrong document will not get better by going on.
        Err(e) if e.kind == Kind::BadInput => return Err(e),
        Err(e) => {
            missing.push(not("kops.cluster", &e.message));
            failed.push(e);
            Kops::default()
        }
    };

    let (blue, green, aws, zones) = tokio::join!(
        cluster(world.kube(Side::Blue), "blue", key),
        green(world, key),
        world.cloud.inventory(&spec.blue.cluster),
        zones(world, spec),
    );
    let mut note = |what: &str, e: world::Error, missing: &mut Vec<NotChecked>| {
        missing.push(not(what, &format!("{}: {}", e.at, e.message)));
        failed.push(e.into());
    };
    let mut blue = match blue {
        Ok((c, gaps)) => {
            answered = true;
            missing.extend(gaps);
            c
        }
        Err(e) => {
            note("blue", e, &mut missing);
            Cluster::default()
        }
    };
    if blue.version.is_none() {
        blue.version = kops
            .cluster
            .as_ref()
            .and_then(super::kops::kubernetes_version);
    }
    let green = match green {
        Ok(Some((c, gaps))) => {
            missing.extend(gaps);
            Some(c)
        }
        Ok(None) => None,
        Err(e) => {
            note("green", e, &mut missing);
            None
        }
    };
    let aws = match aws {
        Ok(mut a) => {
            answered = true;
            for (part, why) in std::mem::take(&mut a.not_read) {
                missing.push(not(&format!("aws.{part}"), &why));
            }
            Some(a)
        }
        Err(e) => {
            note("aws.inventory", e, &mut missing);
            None
        }
    };
    let zones = match zones {
        Ok((z, gaps)) => {
            answered = true;
            missing.extend(gaps);
            z
        }
        Err(e) => {
            note("dns.zones", e, &mut missing);
            vec![]
        }
    };
    if !answered && let Some(first) = failed.into_iter().find(|e| e.kind == Kind::Unreachable) {
        return Err(first);
    }
    missing.sort();
    missing.dedup();
    Ok(Snapshot {
        kops,
        blue,
        green,
        aws,
        zones,
        not_checked: missing,
        ..Snapshot::default()
    })
}

fn not(what: &str, why: &str) -> NotChecked {
    NotChecked {
        what: what.into(),
        why: why.into(),
    }
}

/// Green, when it exists and is reachable. That it does not exist yet is no gap: it is what the migration will make.
async fn green(world: &World, key: &Key) -> world::Result<Option<(Cluster, Vec<NotChecked>)>> {
    match cluster(world.kube(Side::Green), "green", key).await {
        Ok(found) => Ok(Some(found)),
        Err(e) if matches!(e.class, Class::NotReady | Class::NotFound) => Ok(None),
        Err(e) => Err(e),
    }
}

/// One API server. Fails only when it does not even tell what it serves.
async fn cluster(
    kube: &dyn Kube,
    side: &str,
    key: &Key,
) -> world::Result<(Cluster, Vec<NotChecked>)> {
    let mut missing = vec![];
    let mut kinds = kube.kinds(true).await?;
    kinds.sort();
    kinds.dedup();
    let version = match kube.version().await {
        Ok(v) => Some(v),
        Err(e) => {
            missing.push(not(&format!("{side}.version"), &e.message));
            None
        }
    };
    let identity = match kube.identity().await {
        Ok(i) => Some(i),
        Err(e) => {
            missing.push(not(&format!("{side}.identity"), &e.message));
            None
        }
    };
    let read = prefer::readable(&kinds);
    let mut listings =
        futures::stream::iter(read.iter().map(|k| async move { (k, kube.list(k).await) }))
            .buffered(AT_ONCE);
    let mut objects: Vec<(ObjectId, Value)> = vec![];
    let mut helm = vec![];
    while let Some((kind, listing)) = listings.next().await {
        match listing {
            Ok(l) => {
                for mut object in l.items {
                    helm.extend(crate::helm::release(&object));
                    mask::object(key, &mut object);
                    if let Some(id) = ObjectId::of(&object) {
                        objects.push((id, object));
                    }
                }
            }
            Err(e) => missing.push(not(&kind_name(side, kind), &e.message)),
        }
    }
    objects.sort_by(|a, b| a.0.cmp(&b.0));
    let objects = objects.into_iter().map(|(_, o)| o).collect();
    helm.sort();
    Ok((
        Cluster {
            version,
            identity,
            kinds,
            objects,
            helm,
        },
        missing,
    ))
}

/// `blue.kind/deployments.apps`.
fn kind_name(side: &str, kind: &ApiKind) -> String {
    let dot = if kind.group.is_empty() { "" } else { "." };
    format!("{side}.kind/{}{dot}{}", kind.plural, kind.group)
}

/// The declared zones, or all; each with its record sets.
async fn zones(world: &World, spec: &Spec) -> world::Result<(Vec<ZoneRecords>, Vec<NotChecked>)> {
    let mut missing = vec![];
    let plain = |name: &str| name.trim_end_matches('.').to_lowercase();
    let wanted: Vec<String> = spec.dns.zones.iter().map(|z| plain(z)).collect();
    let mut out = vec![];
    let mut all = world.dns.zones().await?;
    all.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
    for name in &wanted {
        if !all.iter().any(|z| plain(&z.name) == *name) {
            missing.push(not(
                &format!("zone/{name}"),
                "there is no hosted zone of this name in the account",
            ));
        }
    }
    for zone in all {
        if !wanted.is_empty() && !wanted.contains(&plain(&zone.name)) {
            continue;
        }
        // One after the other: Route 53 takes five requests a second for the whole account.
        match world.dns.records(&zone.id).await {
            Ok(records) => out.push(ZoneRecords { zone, records }),
            Err(e) => missing.push(not(
                &format!("zone/{}.records", plain(&zone.name)),
                &e.message,
            )),
        }
    }
    Ok((out, missing))
}

#[cfg(test)]
#[path = "discover_tests.rs"]
mod tests;
