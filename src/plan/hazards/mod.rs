//! Why blue is not upgraded in place: its age in numbers, and what each hop to a supported release would break.

use serde::{Deserialize, Serialize};

/// The report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Hazards {}
