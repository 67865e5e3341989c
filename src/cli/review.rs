//! `review`: what each phase changes, what its undo gives back, who approved it.

use super::approvals::{Approval, Approvals, phases};
use super::args::{Global, ReviewArgs};
use super::exit;
use super::folder::PlanFolder;
use super::plan::summary;
use super::printer::{Printer, range};
use crate::error::{Error, Kind, Result};
use crate::journal::Holder;
use crate::plan::model::{Phase, Plan, Promise};
use jiff::Timestamp;
use serde_json::json;
use std::collections::BTreeSet;

/// Runs the verb.
pub fn run(args: &ReviewArgs, global: &Global, printer: &Printer) -> Result<u8> {
    let folder = PlanFolder::resolve(&args.folder, global)?;
    let plan = folder.load_plan()?;
    let mut approvals = Approvals::load(&folder)?;
    let terraform = super::terraform::pinned(&folder, &plan);
    if !args.approve.is_empty() {
        let wanted = wanted(&plan, &args.approve)?;
        let terraform = super::terraform::approvable(&folder, &plan, &terraform, &wanted)?;
        approve(&plan, &mut approvals, &wanted, terraform)?;
        approvals.save(&folder)?;
    }
    if printer.json() {
        let mut value = as_json(&plan, &approvals);
        if let Some(pinned) = &terraform {
            value["terraform_plan"] = super::terraform::as_json(pinned);
        }
        printer.document(&value);
        return Ok(exit::DONE);
    }
    if args.approve.is_empty() {
        summary(&plan, printer, args.all_findings)?;
        for phase in phases(&plan) {
            show(&plan, phase, &approvals, printer);
            if phase == Phase::Provision
                && let Some(pinned) = &terraform
            {
                super::terraform::show(pinned, printer);
            }
        }
    }
    let open: Vec<&str> = phases(&plan)
        .into_iter()
        .filter(|p| approvals.of(&plan, *p).is_none())
        .map(Phase::name)
        .collect();
    printer.line("");
    if open.is_empty() {
        printer.line(format!(
            "approved: every phase of plan {}",
            short(&plan.digest)
        ));
        if plan.basis.blue.is_none() || plan.basis.account.is_none() {
            printer.line("next: crossfade discover with blue's kubeconfig and AWS credentials: this plan was made without them and cannot be carried out");
        } else {
            printer.line(format!("next: crossfade migrate{}", folder.arg()));
        }
    } else {
        printer.line(format!("not approved: {}", open.join(", ")));
        printer.line(format!(
            "next: crossfade review{} --approve all (or one phase)",
            folder.arg()
        ));
    }
    Ok(exit::DONE)
}

/// The first twelve digits of a digest.
pub fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}

fn wanted(plan: &Plan, names: &[String]) -> Result<BTreeSet<Phase>> {
    let mut wanted = BTreeSet::new();
    for name in names {
        if name == "all" {
            wanted.extend(phases(plan));
            continue;
        }
        let known: Vec<&str> = phases(plan).into_iter().map(Phase::name).collect();
        let phase = Phase::parse(name).filter(|p| known.contains(&p.name()));
        wanted.insert(phase.ok_or_else(|| {
            Error::new(Kind::Usage, format!("this plan has no phase {name:?}"))
                .at("--approve")
                .remedy(format!("one of: all, {}", known.join(", ")))
        })?);
    }
    Ok(wanted)
}

fn approve(
    plan: &Plan,
    approvals: &mut Approvals,
    wanted: &BTreeSet<Phase>,
    terraform: Option<String>,
) -> Result<()> {
    let blockers: Vec<String> = plan
        .findings
        .iter()
        .filter(|f| f.blocks())
        .map(|f| format!("{} {}: {}", f.id, f.object, f.message))
        .collect();
    if !blockers.is_empty() {
        return Err(Error::new(
            Kind::Blocked,
            format!("blockers stand in the way:\n  {}", blockers.join("\n  ")),
        )
        .at("plan.json: findings")
        .remedy("remove them, then discover and plan again"));
    }
    let me = Holder::me("review").who();
    for phase in wanted {
        let terraform = terraform.clone().filter(|_| *phase == Phase::Provision);
        let of = approvals.of(plan, *phase);
        if of.is_none_or(|a| a.terraform != terraform) {
            approvals.approvals.push(Approval {
                phase: *phase,
                digest: plan.digest.clone(),
                by: me.clone(),
                at: Timestamp::now(),
                terraform,
            });
        }
    }
    Ok(())
}

/// What undo gives back, in words.
pub fn promise(p: &Promise) -> String {
    match p {
        Promise::Exact => "exact: everything as before".into(),
        Promise::Compensating(what) => format!("compensating: {what}"),
        Promise::None(why) => format!("none: {why}"),
    }
}

fn show(plan: &Plan, phase: Phase, approvals: &Approvals, printer: &Printer) {
    let approved = match approvals.of(plan, phase) {
        Some(a) => printer.tint("green", &format!("approved by {} at {}", a.by, a.at)),
        None => printer.tint("yellow", "not approved"),
    };
    printer.line("");
    printer.line(format!("{}  {approved}", printer.bold(phase.name())));
    for step in plan.steps.iter().filter(|s| s.phase == phase) {
        printer.line(format!("  {}  {}", step.id, step.summary));
        printer.line(format!("      undo {}", promise(&step.promise)));
        printer.line(printer.tint(
            "dim",
            &format!(
                "      expected {}{}",
                range(step.expect_s),
                if step.needs.is_empty() {
                    String::new()
                } else {
                    format!(", after {}", step.needs.join(", "))
                }
            ),
        ));
    }
}

fn as_json(plan: &Plan, approvals: &Approvals) -> serde_json::Value {
    let phases: Vec<_> = phases(plan)
        .into_iter()
        .map(|phase| {
            let steps: Vec<_> = plan
                .steps
                .iter()
                .filter(|s| s.phase == phase)
                .map(|s| json!({"id": s.id, "summary": s.summary, "kind": s.kind, "needs": s.needs, "promise": s.promise, "expect_s": s.expect_s}))
                .collect();
            json!({"phase": phase, "approval": approvals.of(plan, phase), "steps": steps})
        })
        .collect();
    json!({"digest": plan.digest, "phases": phases, "findings": plan.findings, "timeline": plan.timeline})
}
