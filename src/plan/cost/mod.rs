//! What blue costs an hour, what green will, and both together: an estimate from a dated price file.

use serde::{Deserialize, Serialize};

/// The estimate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Cost {}
