//! What is rendered is in the form of `terraform fmt`, means what the plan means, and leaves a person's files alone.

mod bench;
mod corpus;
mod folder;
mod form;
mod forms;
mod goes_on;
mod program;
mod read_back;
mod real;
mod spec;
mod steps;
pub(crate) mod stub;

use super::{Made, Purpose, Rendering, render};
use crate::plan::model::Plan;
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use std::path::Path;
use std::process::Command;

/// The real program, or a word that this part was not tried here.
pub(crate) fn terraform(what: &str) -> Option<&'static str> {
    let there = Command::new("terraform")
        .arg("version")
        .output()
        .is_ok_and(|o| o.status.success());
    if !there {
        eprintln!("SKIPPED: {what}: no `terraform` on this machine");
    }
    there.then_some("terraform")
}

pub(crate) fn demo() -> (Spec, Snapshot) {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/demo");
    let spec = crate::spec::load(&demo.join("migration.yaml")).expect("the demo's spec");
    let snapshot = crate::snapshot::store::read(&demo.join("snapshot")).expect("its snapshot");
    (spec, snapshot)
}

/// The demo where Terraform makes green.
fn via_terraform() -> (Spec, Snapshot, Plan) {
    let (mut spec, snapshot) = demo();
    spec.provision.via = crate::spec::model::Via::Terraform;
    let plan = crate::plan::plan(&spec, &snapshot);
    (spec, snapshot, plan)
}

pub(crate) fn demo_plan() -> Plan {
    let (spec, snapshot) = demo();
    crate::plan::plan(&spec, &snapshot)
}

pub(crate) fn go_on(plan: &Plan, made: &Made) -> Rendering {
    render(plan, made, &Purpose::GoOn)
}
