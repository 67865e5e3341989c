//! Rule 10: an owner that is copied too is named by its uid on green, and stands there before what it owns.

use crate::object::{self, ObjectId};
use crate::step::util::refused;
use crate::step::{Cx, StepResult};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// uids of owners on green, asked for once.
#[derive(Default)]
pub struct Owners {
    uids: Mutex<BTreeMap<String, String>>,
}

impl Owners {
    /// Gives every owner reference green's uid (and the version in which green has the owner).
    pub async fn remap(&self, cx: &Cx, name: &str, object: &mut Value) -> StepResult<()> {
        let namespace = object
            .pointer("/metadata/namespace")
            .and_then(Value::as_str)
            .map(String::from);
        let Some(references) = object
            .pointer_mut("/metadata/ownerReferences")
            .and_then(Value::as_array_mut)
        else {
            return Ok(());
        };
        for reference in references {
            let text = |key: &str| reference[key].as_str().unwrap_or_default().to_string();
            // An owner lives in the same namespace or in none.
            let spelled = |ns: Option<&str>| {
                ObjectId::new(&text("apiVersion"), &text("kind"), ns, &text("name")).to_string()
            };
            let candidates = [spelled(namespace.as_deref()), spelled(None)];
            let Some((owner, id)) = candidates
                .iter()
                .find_map(|c| Some((c.as_str(), cx.green_id(c).ok()?)))
            else {
                return Err(refused(
                    name,
                    format!("its owner {} is not copied", candidates[0]),
                    "make the plan again: a reference to an owner that is not there gets its object deleted (replay.md 10)",
                ));
            };
            reference["uid"] = json!(self.uid(cx, name, owner, &id).await?);
            reference["apiVersion"] = json!(id.api_version);
        }
        Ok(())
    }

    async fn uid(&self, cx: &Cx, name: &str, owner: &str, id: &ObjectId) -> StepResult<String> {
        let known = |uids: &Mutex<BTreeMap<String, String>>| {
            let uids = uids.lock().unwrap_or_else(PoisonError::into_inner);
            uids.get(owner).cloned()
        };
        if let Some(uid) = known(&self.uids) {
            return Ok(uid);
        }
        let there = cx.world.green.get(id).await?;
        let uid = there.as_ref().and_then(object::uid).ok_or_else(|| {
            refused(
                name,
                format!("its owner {owner} is not on green"),
                "run migrate again when it is, or list both under workloads.skip (replay.md 10)",
            )
        })?;
        let mut uids = self.uids.lock().unwrap_or_else(PoisonError::into_inner);
        uids.insert(owner.into(), uid.into());
        Ok(uid.into())
    }
}
