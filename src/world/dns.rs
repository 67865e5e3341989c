//! Route 53, as far as crossfade needs it.

use super::Result;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A hosted zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Zone {
    /// Id without the `/hostedzone/` prefix.
    pub id: String,
    /// Name with the final dot, lower case.
    pub name: String,
    /// Private zone.
    pub private: bool,
}

/// An alias target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Alias {
    /// Hosted zone id of the target (of the load balancer's zone).
    pub zone_id: String,
    /// DNS name with the final dot.
    pub name: String,
    /// EvaluateTargetHealth.
    pub evaluate_target_health: bool,
}

/// A record set: everything Route 53 lists about it, nothing dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordSet {
    /// Name with the final dot, lower case, `*` unescaped.
    pub name: String,
    /// `A`, `TXT`, ...
    #[serde(rename = "type")]
    pub rtype: String,
    /// Seconds; absent for aliases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u32>,
    /// Values as Route 53 spells them (TXT quoted), in its order; empty for aliases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// Alias target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<Alias>,
    /// SetIdentifier of a routed record set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_identifier: Option<String>,
    /// The other routing fields (Weight, Region, Failover, GeoLocation, MultiValueAnswer, HealthCheckId, ...) under their API names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub routing: BTreeMap<String, Value>,
}

impl RecordSet {
    /// What Route 53 tells record sets apart by.
    pub fn key(&self) -> RecordKey {
        RecordKey {
            name: self.name.clone(),
            rtype: self.rtype.clone(),
            set_identifier: self.set_identifier.clone(),
        }
    }
}

/// Name, type and set identifier of a record set.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordKey {
    /// Name with the final dot.
    pub name: String,
    /// Type.
    #[serde(rename = "type")]
    pub rtype: String,
    /// Set identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_identifier: Option<String>,
}

impl std::fmt::Display for RecordKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "record/{}/{}",
            self.name.trim_end_matches('.'),
            self.rtype
        )?;
        if let Some(id) = &self.set_identifier {
            write!(f, "#{id}")?;
        }
        Ok(())
    }
}

/// One change of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", content = "record", rename_all = "UPPERCASE")]
pub enum Change {
    /// Fails when the record set exists.
    Create(RecordSet),
    /// Fails unless name, type, set identifier, TTL and values all match.
    Delete(RecordSet),
    /// Creates or replaces. Not a compare-and-set: prefer Delete of the old value plus Create of the new one in one batch.
    Upsert(RecordSet),
}

/// Route 53. A batch is atomic: all or nothing.
#[async_trait]
pub trait Dns: Send + Sync {
    /// All hosted zones.
    async fn zones(&self) -> Result<Vec<Zone>>;
    /// All record sets of a zone, in Route 53's order.
    async fn records(&self, zone_id: &str) -> Result<Vec<RecordSet>>;
    /// Sends one batch; answers the change id. `Conflict` when an expected value no longer holds (InvalidChangeBatch).
    async fn change(&self, zone_id: &str, changes: &[Change], comment: &str) -> Result<String>;
    /// Whether a change has reached all name servers (INSYNC).
    async fn in_sync(&self, change_id: &str) -> Result<bool>;
}
