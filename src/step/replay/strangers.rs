//! What would go with a namespace that this run made: objects that somebody else put into it.

use super::{mark, retry};
use crate::object::ObjectId;
use crate::step::util::at;
use crate::step::{Cx, StepResult};
use crate::world::Class;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const MADE_BY_SERVERS: &[&str] = &[
    "Event",
    "Endpoints",
    "EndpointSlice",
    "Lease",
    "ControllerRevision",
];
/// Strangers that are named per namespace.
const TOLD: usize = 20;

/// Objects in these namespaces of green that neither this run, the server nor a controller made. One pass over all kinds, whatever the
/// number of namespaces; of each page only names are kept.
pub async fn strangers(
    cx: &Cx,
    namespaces: &BTreeSet<String>,
) -> StepResult<BTreeMap<String, Vec<String>>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    if namespaces.is_empty() {
        return Ok(found);
    }
    let green = cx.world.green.as_ref();
    let mut seen = BTreeSet::new();
    for kind in green.kinds(false).await? {
        let usable = |verb: &str| kind.verbs.iter().any(|v| v == verb);
        if !kind.namespaced
            || !usable("list")
            || !usable("create")
            || MADE_BY_SERVERS.contains(&kind.kind.as_str())
            || !seen.insert((kind.group.clone(), kind.kind.clone()))
        {
            continue;
        }
        // One namespace is asked for alone.
        let only = match namespaces.len() {
            1 => namespaces.first().map(String::as_str),
            _ => None,
        };
        let mut token: Option<String> = None;
        loop {
            let listed = retry::read(&kind.plural, || {
                green.list_page(&kind, only, token.as_deref())
            });
            let page = match listed.await {
                Err(e) if e.class == Class::NotFound => break,
                Err(e) if e.class == Class::Gone => {
                    token = None;
                    continue;
                }
                other => other?,
            };
            for object in &page.items {
                if let Some((namespace, name)) = stranger(object, &cx.run)
                    && namespaces.contains(&namespace)
                {
                    let list = found.entry(namespace).or_default();
                    if list.len() < TOLD && !list.contains(&name) {
                        list.push(name);
                    }
                }
            }
            token = page.continue_token;
            if token.is_none() {
                break;
            }
        }
    }
    Ok(found)
}

/// Namespace and name of an object that a person put there.
fn stranger(object: &Value, run: &str) -> Option<(String, String)> {
    let id = ObjectId::of(object)?;
    let namespace = id.namespace.clone()?;
    let controlled = at(object, "/metadata/ownerReferences")
        .as_array()
        .is_some_and(|owners| owners.iter().any(|o| o["controller"] == true));
    let by_itself = matches!(
        (id.kind.as_str(), id.name.as_str()),
        ("ServiceAccount", "default") | ("ConfigMap", "kube-root-ca.crt")
    );
    let going = !at(object, "/metadata/deletionTimestamp").is_null();
    (!controlled && !by_itself && !going && !mark::ours(object, run))
        .then(|| (namespace, id.to_string()))
}
