//! Who approved which phase of which plan, and when.

use super::folder::{PlanFolder, io, write_file};
use crate::error::{Error, Kind, Result};
use crate::plan::model::{Phase, Plan};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// One approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// Phase.
    pub phase: Phase,
    /// Digest of the plan that was looked at.
    pub digest: String,
    /// Who, `user@host`.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// sha256 of the Terraform plan that was looked at, where Terraform makes green.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terraform: Option<String>,
}

/// `approvals.json`: only ever added to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approvals {
    /// All, oldest first, also those of earlier plans.
    pub approvals: Vec<Approval>,
}

impl Approvals {
    /// Reads the file; none when there is none.
    pub fn load(folder: &PlanFolder) -> Result<Self> {
        let path = folder.approvals();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Approvals::default()),
            Err(e) => return Err(io(&path, &e)),
        };
        serde_json::from_str(&text).map_err(|e| {
            Error::new(Kind::BadInput, e.to_string())
                .at(format!("{}:{}:{}", path.display(), e.line(), e.column()))
                .remedy("approvals are written by `crossfade review --approve`; put the file back or remove it and approve again")
        })
    }
    /// Writes the file.
    pub fn save(&self, folder: &PlanFolder) -> Result<()> {
        let text =
            serde_json::to_string_pretty(self).map_err(|e| Error::new(Kind::Bug, e.to_string()))?;
        write_file(&folder.approvals(), &(text + "\n"))
    }
    /// Approval of a phase of exactly this plan.
    pub fn of(&self, plan: &Plan, phase: Phase) -> Option<&Approval> {
        self.approvals
            .iter()
            .rev()
            .find(|a| a.phase == phase && a.digest == plan.digest)
    }
    /// Refuses unless all these phases of exactly this plan are approved.
    pub fn require(
        &self,
        folder: &PlanFolder,
        plan: &Plan,
        phases: &BTreeSet<Phase>,
    ) -> Result<()> {
        let missing: Vec<&str> = phases
            .iter()
            .filter(|p| self.of(plan, **p).is_none())
            .map(|p| p.name())
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let earlier = self.approvals.iter().any(|a| a.digest != plan.digest);
        Err(Error::new(
            Kind::StalePlan,
            format!(
                "this plan is not approved for: {}{}",
                missing.join(", "),
                if earlier {
                    " (there are approvals of another plan; a new plan needs new ones)"
                } else {
                    ""
                }
            ),
        )
        .at(folder.plan().display().to_string())
        .remedy(format!(
            "read it and approve it: crossfade review{} --approve all",
            folder.arg()
        )))
    }
}

/// Phases that have steps, in order.
pub fn phases(plan: &Plan) -> BTreeSet<Phase> {
    plan.steps.iter().map(|s| s.phase).collect()
}
