//! Terraform both ways: `plan --render terraform`, and the plan that Terraform makes where it makes green.

use super::approvals::Approvals;
use super::args::{Global, PlanArgs, Render};
use super::exit;
use super::folder::PlanFolder;
use super::printer::Printer;
use super::rooms;
use crate::error::{Error, Kind, Result};
use crate::journal::State;
use crate::plan::diff;
use crate::plan::model::{Phase, Plan};
use crate::step::StepError;
use crate::step::terraform_apply::{job, only_creates};
use crate::terraform::{APPLY, Made, Purpose, folder::write, render as rendering};
use crate::world::cloud::Resource;
use crate::world::live::{LiveTerraform, TERRAFORM_FOLDER};
use crate::world::terraform::{Planned, Terraform, What};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// `plan --render terraform`.
pub fn render(args: &PlanArgs, global: &Global, printer: &Printer) -> Result<u8> {
    let Some(Render::Terraform) = args.render else {
        return Ok(exit::DONE);
    };
    let (plan, made, dir) = match &args.snapshot {
        Some(_) => {
            let source = super::args::Source {
                folder: args.folder.clone(),
                snapshot: args.snapshot.clone(),
                spec: args.spec.clone(),
            };
            let plan = rooms::plan_of(&source, global)?;
            let dir = args.out.clone().ok_or_else(|| {
                Error::new(
                    Kind::Usage,
                    "--render with --snapshot does not know where to",
                )
                .remedy("name a folder: --out DIR")
            })?;
            (plan, Made::default(), dir)
        }
        None => {
            let folder = PlanFolder::resolve(&args.folder, global)?;
            let plan = if folder.plan().is_file() {
                folder.load_plan()?
            } else {
                let (spec, snapshot) = rooms::spec_and_snapshot(&folder)?;
                crate::plan::plan(&spec, &snapshot)
            };
            let (_, state) = folder.read_journal()?;
            let made = made(&folder, &plan, &state);
            let dir = args
                .out
                .clone()
                .unwrap_or_else(|| folder.root.join("terraform"));
            (plan, made, dir)
        }
    };
    let rendered = rendering(&plan, &made, &Purpose::GoOn);
    let written = write(&dir, &rendered, args.force)?;
    if printer.json() {
        printer.document(&json!({
            "dir": dir, "written": written.written, "removed": written.removed, "same": written.same,
            "rendered": rendered.rendered.iter().map(Resource::id).collect::<Vec<_>>(),
            "left": rendered.left.iter().map(|(id, why)| json!({"id": id, "why": why})).collect::<Vec<_>>(),
            "to_do": rendered.todo,
        }));
        return Ok(exit::DONE);
    }
    let changed = written.written.len() + written.removed.len();
    printer.line(format!(
        "{}: {} of green's resources as Terraform, {}",
        dir.display(),
        rendered.rendered.len(),
        if changed == 0 {
            "nothing changed".into()
        } else {
            format!(
                "{changed} files written or removed, {} as they were",
                written.same
            )
        }
    ));
    for (id, why) in &rendered.left {
        printer.line(format!("  not in it: {id}: {why}"));
    }
    for line in &rendered.todo {
        printer.line(format!("  to do: {line}"));
    }
    printer.text(format!(
        "next: read {}, then terraform init and terraform plan there",
        dir.join("README.md").display()
    ));
    Ok(exit::DONE)
}

/// What the run of this plan has made, as the journal knows it.
fn made(folder: &PlanFolder, plan: &Plan, state: &State) -> Made {
    let mut made = Made::default();
    if state
        .run
        .as_ref()
        .is_none_or(|r| r.plan_digest != plan.digest)
    {
        return made;
    }
    let cluster = &plan.target.cluster.name;
    for step in &plan.steps {
        let Some(s) = state.steps.get(&step.id) else {
            continue;
        };
        if s.status != crate::journal::Status::Done {
            continue;
        }
        let read = |v: &Value| serde_json::from_value::<Resource>(v.clone()).ok();
        if step.kind == APPLY {
            // Made by Terraform with the plan's own words; only the caller is filled in there.
            made.caller = made.caller.take().or_else(|| caller(folder));
            for r in step.params["resources"].as_array().into_iter().flatten() {
                if let Some(r) = read(r) {
                    made.resources.insert(diff::shown(&r.id(), cluster), r);
                }
            }
        }
        if step.kind != "cloud.ensure" {
            continue;
        }
        let planned = step.params.get("resource").and_then(read);
        let is = s.before.as_ref().and_then(|b| read(b.get("resource")?));
        let (Some(planned), Some(is)) = (planned, is) else {
            continue;
        };
        if let (Resource::AccessEntry { principal: p, .. }, Resource::AccessEntry { principal, .. }) =
            (&planned, &is)
            && p == "${caller}"
        {
            made.caller = Some(principal.clone());
        }
        let created = s.after.as_ref().is_some_and(|a| a["created"] == true);
        if created {
            made.resources
                .insert(diff::shown(&planned.id(), cluster), is);
        }
    }
    made
}

/// Who the Terraform plan was made by: it stands in the rendering's own values.
fn caller(folder: &PlanFolder) -> Option<String> {
    let path = folder.root.join(TERRAFORM_FOLDER).join("terraform.tfvars");
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|l| l.starts_with("caller"))?;
    Some(line.split('"').nth(1)?.to_string())
}

fn by_terraform(plan: &Plan) -> bool {
    plan.steps.iter().any(|s| s.kind == APPLY)
}

fn refused(e: StepError) -> Error {
    match e {
        StepError::Refused {
            object,
            why,
            remedy,
        } => Error::new(Kind::Blocked, why).at(object).remedy(remedy),
        StepError::World(e) => e.into(),
        other => Error::new(Kind::Blocked, other.to_string()),
    }
}

/// Lets Terraform plan what it is to make, unless there is such a plan already. Changes nothing in the account.
pub fn pin(folder: &PlanFolder, plan: &Plan) -> Result<Option<Planned>> {
    if !by_terraform(plan) || plan.basis.account.is_none() || plan.basis.blue.is_none() {
        return Ok(None);
    }
    rooms::runtime()?.block_on(async {
        let world = rooms::live(&plan.spec, &folder.root)?;
        let who = world.cloud.identity().await?;
        if plan.basis.account.as_ref() != Some(&who.account) {
            return Err(Error::new(
                Kind::Blocked,
                format!("this is account {}, the plan is for another", who.account),
            )
            .at("aws")
            .remedy("use the credentials of the account that was discovered"));
        }
        let job = job(
            plan,
            &crate::engine::run_id_of(plan),
            &crate::world::cloud::principal_of(&who.arn),
        );
        let planned = match world.terraform.pinned(&job).await? {
            Some(planned) => planned,
            None => world.terraform.plan(&job, &What::Pinned).await?,
        };
        only_creates(&planned).map_err(refused)?;
        Ok(Some(planned))
    })
}

/// The Terraform plan that belongs to a plan, as it lies there; asks no server.
pub fn pinned(folder: &PlanFolder, plan: &Plan) -> Option<Planned> {
    if !by_terraform(plan) {
        return None;
    }
    let job = job(plan, &crate::engine::run_id_of(plan), &caller(folder)?);
    let terraform = LiveTerraform::new(&plan.spec, &folder.root);
    let found = rooms::runtime()
        .ok()?
        .block_on(async { terraform.pinned(&job).await });
    found.ok().flatten()
}

/// What an approval of these phases pins. Nobody can approve a Terraform plan that is not there, or that does more than create.
pub fn approvable(
    folder: &PlanFolder,
    plan: &Plan,
    pinned: &Option<Planned>,
    wanted: &BTreeSet<Phase>,
) -> Result<Option<String>> {
    if !by_terraform(plan) || !wanted.contains(&Phase::Provision) {
        return Ok(None);
    }
    let Some(pinned) = pinned else {
        return Err(missing(folder));
    };
    only_creates(pinned).map_err(refused)?;
    Ok(Some(pinned.sha256.clone()))
}

fn missing(folder: &PlanFolder) -> Error {
    let at: PathBuf = folder.root.join(TERRAFORM_FOLDER);
    Error::new(
        Kind::StalePlan,
        "Terraform is to make green, and there is no Terraform plan of this plan",
    )
    .at(at.display().to_string())
    .remedy(format!(
        "make it: crossfade plan{0}; then crossfade review{0}",
        folder.arg()
    ))
}

/// A run applies the Terraform plan that was approved, or none.
pub fn require_approved(folder: &PlanFolder, plan: &Plan, to: Option<Phase>) -> Result<()> {
    let steps = crate::engine::steps_to(&plan.steps, to);
    let Some(step) = steps.iter().find(|s| s.kind == APPLY) else {
        return Ok(());
    };
    let (_, state) = folder.read_journal()?;
    // From its first record on the journal pins it.
    let begun = state
        .run
        .as_ref()
        .is_some_and(|r| r.plan_digest == plan.digest)
        && state.status(&step.id).is_active();
    if begun {
        return Ok(());
    }
    let Some(pinned) = pinned(folder, plan) else {
        return Err(missing(folder));
    };
    let approvals = Approvals::load(folder)?;
    let approved = approvals
        .of(plan, Phase::Provision)
        .and_then(|a| a.terraform.clone());
    if approved.as_ref() == Some(&pinned.sha256) {
        return Ok(());
    }
    Err(Error::new(
        Kind::StalePlan,
        "the Terraform plan is not the one that was approved",
    )
    .at(folder.root.join(TERRAFORM_FOLDER).display().to_string())
    .remedy(format!(
        "read it and approve it: crossfade review{} --approve provision",
        folder.arg()
    )))
}

/// What a Terraform plan does, by type.
pub fn show(pinned: &Planned, printer: &Printer) {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for c in &pinned.changes {
        *kinds.entry(&c.kind).or_default() += 1;
    }
    printer.line("");
    printer.line(printer.bold(&format!(
        "Terraform plan ({}, sha256 {}): {} to create, nothing to change or delete",
        pinned.tool,
        super::review::short(&pinned.sha256),
        pinned.changes.len()
    )));
    for (kind, n) in kinds {
        printer.line(format!("  {n:>4} {kind}"));
    }
}

/// The same for programs, address by address.
pub fn as_json(pinned: &Planned) -> Value {
    json!({"sha256": pinned.sha256, "tool": pinned.tool, "changes": pinned.changes})
}
