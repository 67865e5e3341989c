//! What becomes of each field of the kops documents (kops.md 2, 3): one row a field, none passed over in silence.

use crate::snapshot::model::Snapshot;
use serde::{Deserialize, Serialize};

/// What becomes of one leaf.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct FieldFate {
    /// `cluster` or `instancegroup/NAME`.
    pub document: String,
    /// Path in the document as kops spells it in v1alpha2, as in `spec.kubelet.maxPods`.
    pub path: String,
    /// `file:line:column`, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What becomes of it.
    pub fate: Fate,
    /// Id of the row, as in `KOPS-kubelet-max-pods`.
    pub rule: String,
    /// One sentence for people.
    pub sentence: String,
}

/// Fate of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Green gets the same.
    Mapped,
    /// Green gets something else in its place.
    Replaced,
    /// A person must decide.
    Decision,
    /// It has no meaning on EKS.
    NoMeaning,
    /// kops itself does not know it, or this table does not.
    Unknown,
}

/// The fate of every leaf of the snapshot's kops documents.
pub(super) fn fates(_snapshot: &Snapshot) -> Vec<FieldFate> {
    vec![]
}
