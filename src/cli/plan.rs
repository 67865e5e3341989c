//! `plan`: snapshot and migration.yaml in, plan.json and objects.ndjson out.

use super::args::{Global, PlanArgs};
use super::exit;
use super::folder::PlanFolder;
use super::printer::{Printer, range};
use super::rooms;
use crate::error::{Error, Kind, Result};
use crate::plan::model::{Fate, Phase, Plan, ResourceState};
use std::collections::BTreeMap;

/// Runs the verb.
pub fn run(args: &PlanArgs, global: &Global, printer: &Printer) -> Result<u8> {
    if args.render.is_some() {
        return super::terraform::render(args, global, printer);
    }
    let (plan, out, done, arg) = if let Some(dir) = &args.snapshot {
        if args.folder.plan.is_some() {
            return Err(
                Error::new(Kind::Usage, "both a plan folder and --snapshot are given")
                    .remedy("--snapshot (with --spec and --out) works without a plan folder"),
            );
        }
        let snapshot = crate::snapshot::store::read(dir)?;
        let spec = match &args.spec {
            Some(file) => crate::spec::load(file)?,
            None => crate::spec::defaults_for(&snapshot),
        };
        (
            crate::plan::plan(&spec, &snapshot),
            args.out.clone(),
            false,
            String::new(),
        )
    } else {
        let folder = PlanFolder::resolve(&args.folder, global)?;
        if args.spec.is_some() {
            return Err(Error::new(Kind::Usage, "--spec needs --snapshot")
                .remedy("a plan folder has its own migration.yaml"));
        }
        let (spec, snapshot) = rooms::spec_and_snapshot(&folder)?;
        let plan = crate::plan::plan(&spec, &snapshot);
        let done = guard_run(&folder, &plan)?;
        let arg = folder.arg();
        (
            plan,
            Some(args.out.clone().unwrap_or_else(|| folder.plan())),
            done,
            arg,
        )
    };
    if let Some(out) = &out {
        crate::plan::store(out, &plan)?;
    }
    let terraform = match &args.snapshot {
        None if !done => super::terraform::pin(&PlanFolder::resolve(&args.folder, global)?, &plan)?,
        _ => None,
    };
    let asked = match args.server_dry_run {
        true => Some(ask_green(&args.folder, global, &plan)?),
        false => None,
    };
    if printer.json() {
        let mut value = to_value(&plan)?;
        if let Some(findings) = &asked {
            // Beside the plan, not in it: what a server says today is no part of what was planned.
            value["server_dry_run"] = serde_json::json!(findings);
        }
        if let Some(pinned) = &terraform {
            value["terraform_plan"] = super::terraform::as_json(pinned);
        }
        printer.document(&value);
    } else {
        summary(&plan, printer, args.all_findings)?;
        if let Some(pinned) = &terraform {
            super::terraform::show(pinned, printer);
        }
        if let Some(findings) = &asked {
            show_asked(findings, printer);
        }
        if let Some(out) = &out {
            printer.line(format!(
                "\nwritten to {}, the objects beside it in {}",
                out.display(),
                crate::plan::objects_file(out).display()
            ));
        }
    }
    if asked.iter().flatten().any(|f| f.blocks()) {
        printer.text("next: remove what green refuses, then plan again");
        return Ok(exit::BLOCKED);
    }
    if plan.findings.iter().any(|f| f.blocks()) {
        printer.text("next: remove the blockers above, then plan again");
        return Ok(exit::BLOCKED);
    }
    if plan.basis.blue.is_none() || plan.basis.account.is_none() {
        printer.text("this plan is for reading only: blue or the account was not read live, so nothing pins it, and it cannot be rehearsed or carried out");
        printer.text(format!(
            "next: crossfade review{arg}, or crossfade discover with blue's kubeconfig and AWS credentials, then plan again"
        ));
        return Ok(exit::CHANGES);
    }
    if done || plan.steps.is_empty() {
        printer.text("nothing to do: this plan is carried out");
        return Ok(exit::DONE);
    }
    printer.text(format!(
        "next: crossfade rehearse{arg}, then crossfade review{arg}"
    ));
    Ok(exit::CHANGES)
}

/// What green's server says of every object of the plan; one finding when there is no server yet.
fn ask_green(
    folder: &super::args::Folder,
    global: &Global,
    plan: &Plan,
) -> Result<Vec<crate::plan::model::Finding>> {
    use crate::plan::model::{Finding, Severity};
    let folder = PlanFolder::resolve(folder, global)?;
    let asked = rooms::runtime()?.block_on(async {
        let world = rooms::live(&plan.spec, &folder.root)?;
        crate::engine::verify_pins(&world, &plan.basis).await?;
        crate::drift::server_dry_run(world.green.as_ref(), plan).await
    });
    match asked {
        Err(e) if e.kind == Kind::Unreachable || e.kind == Kind::Stuck => Ok(vec![Finding {
            id: "DRY-04".into(),
            severity: Severity::NotChecked,
            object: "green".into(),
            message: format!("green was not asked: {} ({})", e.message, e.at),
            remedy: "Ask again when green is there: crossfade migrate --to provision, or adopt a cluster.".into(),
            source: "replay.md 20".into(),
            waived: None,
        }]),
        other => other,
    }
}

fn show_asked(findings: &[crate::plan::model::Finding], printer: &Printer) {
    use crate::plan::model::Severity;
    printer.line("");
    printer.line(printer.bold("Green's server, asked without writing"));
    if findings.is_empty() {
        return printer.line("  it would take every object as it is");
    }
    for f in findings {
        let (how, word) = match f.severity {
            Severity::Blocker => ("red", "refused"),
            Severity::Warning => ("yellow", "warning"),
            Severity::Info => ("dim", "info"),
            Severity::NotChecked => ("dim", "not checked"),
        };
        let word = printer.tint(how, &format!("{word:<11}"));
        printer.line(format!("  {word} {} {}: {}", f.id, f.object, f.message));
        if f.severity <= Severity::Warning {
            printer.line(format!("              {}", f.remedy));
        }
    }
}

/// A plan as JSON.
pub fn to_value(plan: &Plan) -> Result<serde_json::Value> {
    serde_json::to_value(plan).map_err(|e| Error::new(Kind::Bug, e.to_string()))
}

/// The plan of a run that left something in the world must stay: its undo is in there. Answers whether the run carried out exactly this plan.
fn guard_run(folder: &PlanFolder, plan: &Plan) -> Result<bool> {
    let (_, state) = folder.read_journal()?;
    match &state.run {
        Some(run) if run.plan_digest == plan.digest => Ok(state.done),
        Some(run) if !state.is_clean() => Err(Error::new(
            Kind::StalePlan,
            format!(
                "run {} of another plan is in the world; a new plan would take away its way back",
                run.run
            ),
        )
        .at(folder.plan().display().to_string())
        .remedy(format!(
            "go on with it (crossfade migrate{0}) or go back (crossfade rollback{0}), or write the new plan elsewhere with --out",
            folder.arg()
        ))),
        _ => Ok(false),
    }
}

/// The first look at a plan.
pub fn summary(plan: &Plan, printer: &Printer, all_findings: bool) -> Result<()> {
    let t = &plan.target;
    printer.line(printer.bold(&format!(
        "{}: {} (kops) -> {} (EKS {}, {})",
        plan.spec.name, plan.spec.blue.cluster, t.cluster.name, t.cluster.version, t.cluster.region
    )));
    printer.line(format!("digest {}", plan.digest));
    for group in &t.node_groups {
        printer.line(format!(
            "  node group {:<20} {} {} {}..{} (now {}), {} GiB {}, from {}",
            group.name,
            group.capacity_type,
            group.instance_types.join("|"),
            group.min,
            group.max,
            group.desired,
            group.disk_gib,
            group.disk_type,
            group.instance_group
        ));
    }
    let names = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    printer.line(format!(
        "  {}, {}, {} to hand over",
        names(t.roles.len(), "role"),
        names(t.addons.len(), "add-on"),
        names(plan.names.len(), "name")
    ));
    if let Some(line) = resources(plan) {
        printer.line(format!("  {line}"));
    }
    printer.line(format!("  {}", super::cost::line(plan)));
    if let Some(line) = plan.hazards.line() {
        printer.line(format!("  {line} (crossfade hazards)"));
    }
    super::network::show(&plan.network, printer);
    super::findings::show(plan, printer, all_findings);
    printer.line("");
    printer.line(printer.bold("Objects of blue"));
    let mut fates: BTreeMap<Fate, usize> = BTreeMap::new();
    for head in plan.verdicts.heads() {
        *fates.entry(head?.verdict).or_default() += 1;
    }
    for (fate, n) in fates {
        printer.line(format!("  {:<8} {n}", fate_name(fate)));
    }
    printer.line("");
    printer.line(printer.bold("Steps"));
    for phase in Phase::ALL {
        let steps = plan.steps.iter().filter(|s| s.phase == phase);
        let n = steps.clone().count();
        if n > 0 {
            let longest = steps.map(|s| s.expect_s[1]).max().unwrap_or(0);
            printer.line(format!(
                "  {:<10} {:<9} longest up to {}",
                phase.name(),
                names(n, "step"),
                super::printer::seconds(f64::from(longest))
            ));
        }
    }
    timeline(plan, printer);
    Ok(())
}

/// `3 to create, 2 adopted, 1 left to Terraform`: what is done with the resources of green; nothing when the plan is of an
/// older version.
pub fn resources(plan: &Plan) -> Option<String> {
    let words = [
        (ResourceState::Create, "to create"),
        (ResourceState::ExistsEqual, "there already"),
        (ResourceState::Adopt, "adopted"),
        (ResourceState::Terraform, "left to Terraform"),
        (ResourceState::Foreign, "somebody else's, not released"),
        (ResourceState::Differs, "there, but different"),
    ];
    let parts: Vec<String> = words
        .iter()
        .filter_map(|(state, word)| {
            let all = plan.target.resources.iter();
            let n = all.filter(|r| r.state == *state).count();
            (n > 0).then(|| format!("{n} {word}"))
        })
        .collect();
    (!parts.is_empty()).then(|| format!("AWS resources: {}", parts.join(", ")))
}

/// `copied`, ...
pub fn fate_name(fate: Fate) -> &'static str {
    match fate {
        Fate::Copied => "copied",
        Fate::Changed => "changed",
        Fate::Held => "held",
        Fate::Skipped => "skipped",
        Fate::Refused => "refused",
    }
}

/// Time estimates.
pub fn timeline(plan: &Plan, printer: &Printer) {
    let t = &plan.timeline;
    printer.line("");
    printer.line(printer.bold("Time"));
    printer.line(format!("  whole run      {}", range(t.total_s)));
    printer.line(format!("  writes closed  {}", range(t.write_closed_s)));
    if !t.critical_path.is_empty() {
        printer.line(format!("  longest chain  {}", t.critical_path.join(" > ")));
    }
    for source in &t.sources {
        printer.line(printer.tint("dim", &format!("  from {source}")));
    }
}
