//! Lists, whole and by pages.

use super::kinds::{self, storage_group};
use super::state::State;
use super::store::Store;
use crate::object::Side;
use crate::world::kube::{ApiKind, ListPage, Listing, PAGE};
use crate::world::{Class, Error, Result};
use serde_json::Value;

/// Whether a kind can be listed in this very version.
fn listed(store: &Store, kind: &ApiKind) -> Result<()> {
    let same =
        |k: &&ApiKind| k.kind == kind.kind && k.group == kind.group && k.version == kind.version;
    match store.kinds.iter().find(same) {
        Some(_) => Ok(()),
        None => Err(Error::new(
            Class::NotFound,
            format!("{}.{}", kind.plural, kind.api_version()),
            "the server could not find the requested resource",
        )),
    }
}

impl State {
    pub(super) fn list(&self, side: Side, kind: &ApiKind) -> Result<Listing> {
        let store = self.store(side);
        listed(store, kind)?;
        let version = kind.api_version();
        Ok(Listing {
            items: store
                .of_kind(storage_group(&kind.group, &kind.kind), &kind.kind)
                .map(|(_, o)| kinds::convert(o, &version))
                .collect(),
            resource_version: store.rv.to_string(),
        })
    }

    pub(super) fn list_page(
        &self,
        side: Side,
        kind: &ApiKind,
        namespace: Option<&str>,
        continue_token: Option<&str>,
    ) -> Result<ListPage> {
        let store = self.store(side);
        listed(store, kind)?;
        // A token holds the version of the list and the last object given, as etcd's does.
        let (version, after) = match continue_token {
            None => (store.rv.to_string(), ""),
            Some(token) => match token.split_once(' ') {
                Some((version, last)) => (version.to_string(), last),
                None => {
                    return Err(Error::new(
                        Class::Refused,
                        &kind.plural,
                        "continue key is not valid",
                    ));
                }
            },
        };
        // In the order of etcd's keys, `namespace/name` as one text; only the page itself is copied.
        let mut left: Vec<(String, &Value)> = store
            .of_kind(storage_group(&kind.group, &kind.kind), &kind.kind)
            .filter(|(key, _)| namespace.is_none_or(|ns| key.2 == ns))
            .map(|(key, o)| (format!("{}/{}", key.2, key.3), o))
            .filter(|(place, _)| place.as_str() > after)
            .collect();
        left.sort_by(|a, b| a.0.cmp(&b.0));
        let rest = left.len().saturating_sub(PAGE);
        left.truncate(PAGE);
        let api_version = kind.api_version();
        Ok(ListPage {
            continue_token: left
                .last()
                .filter(|_| rest > 0)
                .map(|(last, _)| format!("{version} {last}")),
            items: left
                .into_iter()
                .map(|(_, o)| kinds::convert(o, &api_version))
                .collect(),
            resource_version: version,
            remaining: (rest > 0).then_some(rest as u64),
        })
    }
}
