//! What a wave writes into the journal.

use crate::step::util::recorded;
use crate::step::{Cx, StepError, StepResult};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What `observe` saw.
#[derive(Serialize, Deserialize, Default)]
pub struct Before {
    /// Objects that green had already, equal to ours: adopted, never touched, never deleted.
    pub adopted: Vec<String>,
    /// Objects that an earlier process of this very run made (its journal is gone): ours, with their uids.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ours: BTreeMap<String, String>,
}

/// A progress record: a group is about to be created, or was, with the uids that the server gave. The next group is announced while the
/// one before is still under way, so one record often says both.
#[derive(Serialize, Deserialize, Default)]
pub struct Record {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub creating: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub created: BTreeMap<String, String>,
    /// Fields of created objects that green did not take (replay.md 20).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dropped: BTreeMap<String, Vec<String>>,
}

impl Record {
    /// Writes it; returns when it is durable. A disk is waited for beside the requests under way, not in front of them.
    pub async fn write(self, cx: &Cx) -> StepResult<()> {
        let data = json!(self);
        if !cx.log.waits_for_disk() {
            return cx.log.progress(&cx.step, data).map_err(StepError::Journal);
        }
        let (log, step) = (cx.log.clone(), cx.step.clone());
        tokio::task::spawn_blocking(move || log.progress(&step, data))
            .await
            .map_err(|e| StepError::Journal(e.to_string()))?
            .map_err(StepError::Journal)
    }
}

/// All records of the step added up.
pub fn read(cx: &Cx) -> StepResult<Record> {
    let mut all = Record::default();
    for record in cx.log.recorded(&cx.step) {
        let record = recorded::<Record>(&cx.step, &record)?;
        all.creating.extend(record.creating);
        all.created.extend(record.created);
        all.dropped.extend(record.dropped);
    }
    Ok(all)
}

/// What was recorded before the wave began.
pub fn before(cx: &Cx, value: &Value) -> StepResult<Before> {
    recorded(&cx.step, value)
}
