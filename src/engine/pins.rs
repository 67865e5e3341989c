//! Is this the world that the plan was made for, and is it still what it was?

use crate::error::{Error, Kind, Result};
use crate::object::{ObjectId, digest};
use crate::plan::model::{Basis, Plan};
use crate::world::kube::{ApiKind, Kube, ListPage};
use crate::world::{self, Class, World};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// How often a list is read again from its beginning before it is asked for all at once.
const RESTARTS: u32 = 3;

/// The next page of a list, or all of it when pages grew too old too often.
async fn page(
    kube: &Arc<dyn Kube>,
    kind: &ApiKind,
    token: Option<&str>,
    restarts: u32,
) -> world::Result<ListPage> {
    if restarts < RESTARTS {
        return kube.list_page(kind, None, token).await;
    }
    let all = kube.list(kind).await?;
    Ok(ListPage {
        items: all.items,
        resource_version: all.resource_version,
        continue_token: None,
        remaining: None,
    })
}

/// Compares account, region, blue's uid and CA, and the zones with what the plan was made from. Reads only.
pub async fn verify_pins(world: &World, basis: &Basis) -> Result<()> {
    let wrong = |what: &str, expected: &str, found: &str| {
        Err(Error::new(
            Kind::StalePlan,
            format!("wrong {what}: the plan was made for {expected}, this is {found}"),
        )
        .at(what.to_string())
        .remedy("check kubeconfig, context and AWS profile in migration.yaml; nothing was written"))
    };
    if let Some(blue) = &basis.blue {
        let here = again(|| world.blue.identity()).await?;
        if blue.uid != here.uid {
            return wrong("blue cluster (uid of kube-system)", &blue.uid, &here.uid);
        }
        if blue.ca_sha256 != here.ca_sha256 {
            return wrong("blue cluster (CA)", &blue.ca_sha256, &here.ca_sha256);
        }
    }
    if basis.account.is_some() || basis.region.is_some() {
        let here = again(|| world.cloud.identity()).await?;
        if let Some(account) = &basis.account
            && *account != here.account
        {
            return wrong("AWS account", account, &here.account);
        }
        if let Some(region) = &basis.region
            && *region != here.region
        {
            return wrong("region", region, &here.region);
        }
    }
    if !basis.zones.is_empty() {
        let zones: BTreeMap<String, String> = again(|| world.dns.zones())
            .await?
            .into_iter()
            .map(|z| (z.id, z.name))
            .collect();
        for (name, id) in &basis.zones {
            let found = zones.get(id).map(String::as_str);
            if found.map(|f| f.trim_end_matches('.')) != Some(name.trim_end_matches('.')) {
                return wrong(
                    &format!("hosted zone {name}"),
                    id,
                    found.unwrap_or("not in this account"),
                );
            }
        }
    }
    Ok(())
}

/// A few tries only: a person waits for the first answer.
async fn again<T, F>(mut call: impl FnMut() -> F) -> world::Result<T>
where
    F: Future<Output = world::Result<T>>,
{
    for pause in [1, 2] {
        match call().await {
            Err(e) if e.is_transient() => tokio::time::sleep(Duration::from_secs(pause)).await,
            other => return other,
        }
    }
    call().await
}

/// Hash of a live object as the plan's basis holds it.
pub(super) fn object_hash(object: &serde_json::Value) -> String {
    crate::rewrite::basis_hash(object)
}

/// What differs between the world and what the plan was made from, one line each. Reads only.
pub async fn drift(world: &World, plan: &Plan) -> Result<Vec<String>> {
    let mut lines = vec![];
    let read = kinds_of(plan)?;
    if !read.is_empty() {
        // One bit an object instead of its name and hash: blue may have 100,000.
        let mut seen = vec![false; plan.verdicts.len()];
        for kind in again(|| world.blue.kinds(false)).await? {
            let version = kind.api_version();
            let spelled = ObjectId::new(&version, &kind.kind, None, "").to_string();
            if !read.contains(&(spelled, version)) {
                continue;
            }
            let (mut token, mut restarts) = (None::<String>, 0);
            loop {
                let page = again(|| page(&world.blue, &kind, token.as_deref(), restarts)).await;
                let page = match page {
                    // The list grew too old while it was read: once more from its beginning (replay.md 2).
                    Err(e) if e.class == Class::Gone && restarts < RESTARTS => {
                        (token, restarts) = (None, restarts + 1);
                        continue;
                    }
                    page => page?,
                };
                for item in page.items {
                    let Some(object) = ObjectId::of(&item).map(|id| id.to_string()) else {
                        continue;
                    };
                    let Some((n, head)) = plan.verdicts.head(&object)? else {
                        continue;
                    };
                    seen[n] = true;
                    if head.basis.is_some_and(|b| b != object_hash(&item)) {
                        lines.push(format!("{object}: changed on blue"));
                    }
                }
                token = page.continue_token;
                if token.is_none() {
                    break;
                }
            }
        }
        for (head, seen) in plan.verdicts.heads().zip(seen) {
            let head = head?;
            if head.basis.is_some() && !seen {
                lines.push(format!("{}: gone from blue", head.object));
            }
        }
        lines.sort();
        lines.dedup();
    }
    if !plan.basis.records.is_empty() {
        let mut found: BTreeMap<String, String> = BTreeMap::new();
        for zone in plan.basis.zones.values() {
            for record in again(|| world.dns.records(zone)).await? {
                let value = serde_json::to_value(&record).unwrap_or_default();
                found.insert(record.key().to_string(), digest(&value));
            }
        }
        for (record, hash) in &plan.basis.records {
            match found.get(record) {
                None => lines.push(format!("{record}: gone from the zone")),
                Some(now) if now != hash => lines.push(format!("{record}: changed in the zone")),
                Some(_) => {}
            }
        }
    }
    Ok(lines)
}

/// Kinds of what the plan was made from, as `kind/` or `kind.group/`, each with the version in which it was read.
fn kinds_of(plan: &Plan) -> Result<BTreeSet<(String, String)>> {
    let mut kinds = BTreeSet::new();
    for head in plan.verdicts.heads() {
        let head = head?;
        if let (Some(_), Some((kind, _))) = (&head.basis, head.object.split_once('/')) {
            kinds.insert((format!("{kind}/"), head.api_version));
        }
    }
    Ok(kinds)
}
