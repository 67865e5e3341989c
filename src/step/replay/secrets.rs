//! Secret values go from API server to API server in memory: the plan holds only markers.
//!
//! They are read in pages, not one by one: a page of 100 costs blue what three single reads cost, and the wave comes to its Secrets in the
//! order in which a server lists them. So one page is in memory, never all, and of it only what the wave still needs. What the pages do not
//! have (made since, a second try) is read by itself, and so are few.

use super::items::{Planned, id_of};
use super::retry;
use crate::object::ObjectId;
use crate::rewrite::{on_stream, served_by};
use crate::step::util::{kind_of, refused};
use crate::step::{Cx, StepResult};
use crate::world::kube::ApiKind;
use crate::world::{Class, Error};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::Mutex;

/// So few are read one by one.
const FEW: usize = 8;

/// Namespace and name: the order of a list.
type Key = (String, String);

struct Pages {
    kind: ApiKind,
    token: Option<String>,
    /// The last that a page had; nothing before it comes any more.
    last: Option<Key>,
    ended: bool,
    held: BTreeMap<Key, Value>,
}

/// The Secrets of a wave.
pub struct Secrets<'a> {
    cx: &'a Cx,
    wanted: BTreeSet<Key>,
    pages: Mutex<Option<Pages>>,
}

fn key(name: &str) -> Option<Key> {
    let mut parts = name.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("secret"), Some(ns), Some(name)) => Some((ns.into(), name.into())),
        _ => None,
    }
}

/// A live Secret of blue as green gets it: the planned target with blue's values, a record of Helm's with manifests that green serves
/// (replay.md 69). What it says of a record that cannot be read holds nothing of its content.
pub fn with_values(cx: &Cx, name: &str, live: &Value, target: &Value) -> StepResult<Value> {
    on_stream(live, target, served_by(&cx.plan.spec.green.version))
        .map_err(|e| refused(name, e.message, e.remedy))
}

impl<'a> Secrets<'a> {
    /// Of these names, those that are Secrets.
    pub fn new<'n>(cx: &'a Cx, names: impl Iterator<Item = &'n str>) -> Self {
        Secrets {
            cx,
            wanted: names.filter_map(key).collect(),
            pages: Mutex::new(None),
        }
    }

    /// The target with the values that blue has now.
    pub async fn fill(&self, name: &str, planned: &Planned) -> StepResult<Value> {
        let live = match self.paged(name).await? {
            Some(live) => Some(live),
            None => {
                let id = id_of(name, &planned.target)?.in_version(&planned.blue_version);
                self.cx.world.blue.get(&id).await?
            }
        };
        let live = live.ok_or_else(|| {
            Error::new(Class::NotFound, name, "it is gone from blue since the plan")
                .remedy("make a new plan")
        })?;
        with_values(self.cx, name, &live, &planned.target)
    }

    /// From the pages, reading on as far as needed; `None` when they do not have it.
    async fn paged(&self, name: &str) -> StepResult<Option<Value>> {
        if self.wanted.len() <= FEW {
            return Ok(None);
        }
        let Some(wanted) = key(name) else {
            return Ok(None);
        };
        let blue = self.cx.world.blue.as_ref();
        let mut pages = self.pages.lock().await;
        if pages.is_none() {
            *pages = Some(Pages {
                kind: kind_of(blue, "v1", "Secret").await?,
                token: None,
                last: None,
                ended: false,
                held: BTreeMap::new(),
            });
        }
        let Some(pages) = pages.as_mut() else {
            return Ok(None);
        };
        loop {
            if let Some(found) = pages.held.remove(&wanted) {
                return Ok(Some(found));
            }
            if pages.ended || pages.last.as_ref().is_some_and(|last| *last >= wanted) {
                return Ok(None);
            }
            let listed = retry::read("secrets", || {
                blue.list_page(&pages.kind, None, pages.token.as_deref())
            });
            let page = match listed.await {
                Ok(page) => page,
                // The list is too old to go on: what is left is read one by one (replay.md 2).
                Err(e) if e.class == Class::Gone => {
                    pages.ended = true;
                    continue;
                }
                Err(e) => return Err(e.into()),
            };
            for object in page.items {
                let Some(ObjectId {
                    namespace: Some(ns),
                    name,
                    ..
                }) = ObjectId::of(&object)
                else {
                    continue;
                };
                let found = (ns, name);
                pages.last = pages.last.take().max(Some(found.clone()));
                if self.wanted.contains(&found) {
                    pages.held.insert(found, object);
                }
            }
            pages.token = page.continue_token;
            pages.ended = pages.token.is_none();
        }
    }
}
