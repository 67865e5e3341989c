//! Green as Terraform: a root module over the modules of `terraform/modules`, rendered from a plan. Pure but for [`folder`].
//!
//! Two uses. `crossfade plan --render terraform` writes what a team goes on with after the move: everything of the plan that is or becomes
//! ours, with import blocks for what a run has made. `provision.via: terraform` lets Terraform make the part of it that it can make
//! and take away again; additions to what others own stay with crossfade, whose undo is exact removal (eks.md 1.9).

pub mod folder;
pub mod hcl;
mod imports;
mod inputs;
mod modules;
mod readme;
mod root;
#[cfg(test)]
mod tests;

use crate::plan::diff;
use crate::plan::model::{Plan, ResourceState};
use crate::world::cloud::Resource;
use std::collections::BTreeMap;

pub use imports::{Known, address, import_id};
pub use inputs::PLACEHOLDERS;
pub use modules::FILES as MODULES;

/// Kind of the step that makes green through Terraform.
pub const APPLY: &str = "terraform.apply";

/// What is known of the world beside the plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Made {
    /// Principal of the caller, as its access entry names it.
    pub caller: Option<String>,
    /// What a run has made, by the plan's id of it, with every placeholder filled in.
    pub resources: BTreeMap<String, Resource>,
}

/// What the rendering is for.
#[derive(Clone, Debug, PartialEq)]
pub enum Purpose {
    /// A team goes on with it.
    GoOn,
    /// A run makes green with it.
    Run {
        /// Run id: tag of everything that it makes.
        run: String,
    },
}

/// A root module.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendering {
    /// Files by path, relative to the folder.
    pub files: BTreeMap<String, String>,
    /// What of the plan is in it, in the plan's order.
    pub rendered: Vec<Resource>,
    /// What of the plan is not in it: id and reason.
    pub left: Vec<(String, String)>,
    /// What a person has to fill in or do.
    pub todo: Vec<String>,
}

/// Whether a run leaves the making of it to Terraform when the user says `provision.via: terraform`: what is wholly green's own. Parts of
/// what others own are added and taken away again by exact content, which Terraform cannot promise.
pub fn covers(resource: &Resource) -> bool {
    match resource {
        Resource::Role { .. }
        | Resource::OidcProvider { .. }
        | Resource::Cluster { .. }
        | Resource::Addon { .. }
        | Resource::PodIdentityAssociation { .. }
        | Resource::LogGroup { .. }
        | Resource::AccessEntry { .. }
        | Resource::LaunchTemplate { .. }
        | Resource::NodeGroup { .. } => true,
        Resource::SecurityGroupRule { .. }
        | Resource::Tag { .. }
        | Resource::TrustStatement { .. }
        | Resource::StateBucket { .. } => false,
    }
}

/// Every resource of a plan, in the order of its steps, and whether Terraform makes it.
pub fn resources(plan: &Plan) -> Vec<(Resource, bool)> {
    let mut out = vec![];
    for step in &plan.steps {
        let one = step
            .params
            .get("resource")
            .filter(|_| step.kind == "cloud.ensure");
        let many = step
            .params
            .get("resources")
            .and_then(|r| r.as_array())
            .filter(|_| step.kind == APPLY);
        let all = one.into_iter().map(|r| (r, false));
        for (value, terraform) in all.chain(many.into_iter().flatten().map(|r| (r, true))) {
            if let Ok(resource) = serde_json::from_value(value.clone()) {
                out.push((resource, terraform));
            }
        }
    }
    out
}

/// Renders the root module of a plan.
pub fn render(plan: &Plan, made: &Made, purpose: &Purpose) -> Rendering {
    let cluster = &plan.target.cluster.name;
    let mut chosen = vec![];
    let mut left = vec![];
    let mut imports = BTreeMap::new();
    for (resource, terraform) in resources(plan) {
        let id = diff::shown(&resource.id(), cluster);
        if let Purpose::Run { .. } = purpose {
            if terraform {
                chosen.push(undoable(resource));
            } else {
                left.push((id, "crossfade makes or keeps it itself".into()));
            }
            continue;
        }
        match stays(plan, &id, &resource, made.resources.get(&id)) {
            Ok(import) => {
                if let Some(import) = import {
                    imports.insert(id, import);
                }
                chosen.push(resource);
            }
            Err(why) => left.push((id, why)),
        }
    }
    root::files(plan, made, purpose, chosen, imports, left)
}

/// EKS deletes no protected cluster, and `terraform destroy` does not take the protection off first: a run makes green without it. Who goes
/// on with Terraform finds it in that rendering.
fn undoable(mut resource: Resource) -> Resource {
    if let Resource::Cluster {
        deletion_protection,
        ..
    } = &mut resource
    {
        *deletion_protection = false;
    }
    resource
}

/// Whether a resource belongs into what a team goes on with: as what it exists already when it does, or why not.
fn stays(
    plan: &Plan,
    id: &str,
    resource: &Resource,
    made: Option<&Resource>,
) -> Result<Option<Resource>, String> {
    match resource {
        Resource::TrustStatement { .. } => {
            return Err("Terraform has no resource for one statement of somebody's trust policy: crossfade adds and removes it".into());
        }
        Resource::StateBucket { .. } => {
            return Err("it holds crossfade's own records".into());
        }
        _ => {}
    }
    if let Some(made) = made {
        return Ok(Some(made.clone()));
    }
    let state = plan.target.resources.iter().find(|r| r.id == id);
    let Some(state) = state else {
        return Ok(None);
    };
    match state.state {
        ResourceState::Create => Ok(None),
        ResourceState::ExistsEqual if diff::additive(resource) => Err(format!(
            "it was there before ({}): who made it keeps it",
            state.why
        )),
        ResourceState::ExistsEqual => Ok(Some(resource.clone())),
        ResourceState::Adopt => Err(format!(
            "{}; import it yourself if Terraform is to keep it",
            state.why
        )),
        ResourceState::Terraform => Err(format!("Terraform keeps it already: {}", state.why)),
        ResourceState::Foreign | ResourceState::Differs => {
            Err(format!("it stands in the way of the plan: {}", state.why))
        }
    }
}
