//! Server-side apply, and what a server drops.

use super::admit::prune;
use super::kinds;
use super::kube::served;
use super::managed::{self, Who};
use super::state::State;
use super::store::Store;
use crate::object::{ObjectId, Side};
use crate::world::kube::{Answer, ApplyOptions, CreateOptions};
use crate::world::{Class, Error, Result};
use serde_json::{Value, json};

/// `metadata.resourceVersion` and `metadata.uid` in a body hold or it is a conflict.
pub(super) fn check_preconditions(view: &Value, body: &Value, at: &str) -> Result<()> {
    if let Some(want) = body
        .pointer("/metadata/resourceVersion")
        .and_then(Value::as_str)
        && crate::object::resource_version(view) != Some(want)
    {
        return Err(Error::new(
            Class::Conflict,
            at,
            "the object has been modified; please apply your changes to the latest version and try again",
        ));
    }
    if let Some(want) = body.pointer("/metadata/uid").and_then(Value::as_str)
        && crate::object::uid(view) != Some(want)
    {
        return Err(Error::new(
            Class::Conflict,
            at,
            "Precondition failed: UID in precondition does not match",
        ));
    }
    Ok(())
}

impl State {
    /// What the schema does not know is dropped with a warning, or refused when the client is strict.
    pub(super) fn drop_unknown(
        &self,
        side: Side,
        id: &ObjectId,
        object: &mut Value,
        strict: bool,
    ) -> Result<Vec<String>> {
        let store = self.store(side);
        let fields: Vec<String> = prune(store, id, object)
            .into_iter()
            .map(|f| format!("unknown field \"{f}\""))
            .collect();
        // Field validation on the server is there from 1.25 on.
        if store.version.minor < 25 {
            return Ok(vec![]);
        }
        if strict && !fields.is_empty() {
            return Err(Error::new(
                Class::Refused,
                id.to_string(),
                format!("strict decoding error: {}", fields.join(", ")),
            ));
        }
        Ok(fields)
    }

    /// PATCH with server-side apply; creates what is not there.
    pub fn apply(
        &mut self,
        side: Side,
        object: &Value,
        options: ApplyOptions,
        manager: &str,
    ) -> Result<Answer> {
        let id = ObjectId::of(object).ok_or_else(|| {
            Error::new(
                Class::Refused,
                "object",
                "apiVersion, kind and metadata.name are required",
            )
        })?;
        let at = id.to_string();
        served(self.store(side), &id)?;
        if object.pointer("/metadata/managedFields").is_some() {
            return Err(Error::new(
                Class::Refused,
                &at,
                "metadata.managedFields must be nil",
            ));
        }
        let key = Store::key(&id);
        let Some(stored) = self.store(side).objects.get(&key) else {
            let create = CreateOptions {
                dry_run: options.dry_run,
                strict: options.strict,
            };
            let mut answer = self.create(side, object, create, manager)?;
            if !options.dry_run {
                self.store_mut(side).annotate_with(&key, |managers| {
                    managers[0]["operation"] = json!("Apply");
                });
                answer.object = self
                    .store(side)
                    .objects
                    .get(&key)
                    .cloned()
                    .unwrap_or_default();
            }
            return Ok(answer);
        };
        let stored_version = stored["apiVersion"].as_str().unwrap_or("v1").to_owned();
        let view = kinds::convert(stored, &id.api_version);
        check_preconditions(&view, object, &at)?;
        let mut target = object.clone();
        let warnings = self.drop_unknown(side, &id, &mut target, options.strict)?;
        let stamp = self.stamp();
        let who = Who {
            manager,
            api_version: &id.api_version,
            at: &stamp,
        };
        let new = managed::applied(&view, &target, &who, options.force, &at)?;
        if options.dry_run {
            return Ok(Answer {
                object: new,
                warnings,
            });
        }
        // The time alone is no change: a second equal apply moves nothing.
        let same = {
            let bare = |v: &Value| {
                let mut v = v.clone();
                for e in v["metadata"]["managedFields"]
                    .as_array_mut()
                    .into_iter()
                    .flatten()
                {
                    e.as_object_mut().map(|e| e.shift_remove("time"));
                }
                v
            };
            bare(&new) == bare(&view)
        };
        let object = if same {
            view
        } else {
            self.put_view(side, &key, &id, &stored_version, &view, new)?
        };
        Ok(Answer { object, warnings })
    }
}
