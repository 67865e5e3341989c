//! Whether what is there already may be used: the same judgement as in the plan, on what is there now.

use super::Ensure;
use crate::plan::diff;
use crate::plan::model::ResourceState;
use crate::step::util::refused;
use crate::step::{Cx, StepResult};
use crate::world::cloud::compare::Difference;
use crate::world::cloud::{Found, Resource};

impl Ensure {
    /// The same judgement as in the plan, on what is there now.
    pub(super) fn may_be_used(
        &self,
        cx: &Cx,
        resource: &Resource,
        found: Option<&Found>,
    ) -> StepResult<()> {
        let id = diff::shown(&self.resource.id(), &cx.plan.target.cluster.name);
        let planned = cx.plan.target.resources.iter().find(|t| t.id == id);
        let state = planned.map(|t| t.state);
        let Some(found) = found else {
            return match (state, planned) {
                (Some(ResourceState::Terraform), Some(t)) => Err(refused(
                    id,
                    format!("it is left to Terraform ({}), and it is not there", t.why),
                    "run terraform apply, then resume",
                )),
                (Some(ResourceState::Adopt), _) => Err(refused(
                    id,
                    "the plan uses one that was there, and it is gone",
                    "find out who removed it; then discover and plan again",
                )),
                _ => Ok(()),
            };
        };
        let differ = |field: &str, have: &str, want: &str| Difference {
            field: field.into(),
            have: have.into(),
            want: want.into(),
        };
        let unknown = [match (resource, found.attributes.get("value")) {
            (Resource::Tag { value, .. }, Some(have)) => differ("value", have, value),
            _ => differ("content", "something else", "what the plan asks for"),
        }];
        let judged = diff::judge(
            resource,
            &diff::Seen {
                run: found.run.as_deref(),
                differences: match (found.equal, found.differences.is_empty()) {
                    (true, _) => &[],
                    (false, true) => &unknown,
                    (false, false) => &found.differences,
                },
                consent: diff::consents(&cx.plan.spec.green.adopt, &[&id, &resource.id()]),
                terraform: planned
                    .filter(|t| t.state == ResourceState::Terraform)
                    .map(|t| t.why.as_str()),
            },
        );
        if judged.state == ResourceState::Foreign {
            let remedy = format!("{}; then plan again", diff::consent_line(&id));
            return Err(refused(
                id,
                "it exists already, and crossfade did not make it",
                remedy,
            ));
        }
        if !judged.hard.is_empty() {
            let what: Vec<String> = judged.hard.iter().map(Difference::to_string).collect();
            return Err(refused(
                id,
                format!(
                    "it exists already and differs from what the plan asks for ({})",
                    what.join("; ")
                ),
                "somebody made it: remove it, rename green in migration.yaml, or make it equal; then plan again",
            ));
        }
        Ok(())
    }
}
