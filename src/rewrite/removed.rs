//! The table of removed API versions, as data (`removed-apis.yaml`).

use serde::Deserialize;
use std::sync::OnceLock;

/// One API version that a later server no longer serves.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Removal {
    /// Group, empty or `core` for the core group.
    #[serde(default)]
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// First Kubernetes minor that does not serve it, as in `1.22`.
    #[serde(default)]
    pub removed: Option<String>,
    /// What took its place.
    #[serde(default)]
    pub replacement: Option<Replacement>,
    /// `mechanical`, `mechanical-with-defaults`, `needs-judgement` or `none`.
    #[serde(default)]
    pub conversion: String,
    /// `false`: a request or subresource, nothing to copy.
    #[serde(default)]
    pub stored: Option<bool>,
}

/// The successor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Replacement {
    /// As in `apps/v1 Deployment`.
    pub api: String,
}

#[derive(Deserialize)]
struct Table {
    api_removals: Vec<Removal>,
}

impl Removal {
    /// Minor from which it is gone.
    pub fn minor(&self) -> Option<u32> {
        self.removed.as_deref()?.split('.').nth(1)?.parse().ok()
    }
    /// `group/version` of the successor, when it has the same kind.
    pub fn successor(&self) -> Option<&str> {
        let (api, kind) = self.replacement.as_ref()?.api.split_once(' ')?;
        (kind == self.kind && api.rsplit('/').next().is_some_and(|v| v.starts_with('v')))
            .then_some(api)
    }
}

/// All removals.
pub fn removals() -> &'static [Removal] {
    static TABLE: OnceLock<Vec<Removal>> = OnceLock::new();
    TABLE.get_or_init(|| {
        serde_saphyr::from_str::<Table>(include_str!("removed-apis.yaml"))
            .expect("the embedded table is read by a test")
            .api_removals
    })
}

/// The removal that hits a kind in a version on a server of a minor, if any.
pub fn removal(group: &str, version: &str, kind: &str, minor: u32) -> Option<&'static Removal> {
    removals().iter().find(|r| {
        let g = if r.group == "core" {
            ""
        } else {
            r.group.as_str()
        };
        g == group
            && r.version == version
            && r.kind == kind
            && r.minor().is_some_and(|m| m <= minor)
    })
}
