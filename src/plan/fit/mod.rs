//! Whether green's nodes and pods find addresses: pod address arithmetic per subnet (eks.md 2).

use serde::{Deserialize, Serialize};

/// Addresses needed and there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct NetworkFit {}
