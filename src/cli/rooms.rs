//! Doors to the rooms that commands use.

use super::printer::Printer;
use crate::engine::Registry;
use crate::error::{Error, Kind, Result};
use crate::plan::model::Plan;
use crate::snapshot::model::Snapshot;
use crate::spec::model::Spec;
use crate::world::World;
use std::path::Path;

/// A runtime for commands that talk to servers.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Error::new(Kind::Bug, format!("no runtime: {e}")))
}

/// Asks an engine to stop at the next safe point when the user (or the system) says so; the second time means now.
pub fn stop_on_signals(cancel: crate::engine::Cancel, printer: Printer) {
    tokio::spawn(async move {
        let Ok(mut term) =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        else {
            return;
        };
        for again in [false, true] {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = term.recv() => {}
            }
            if again {
                // Every effect is announced in the journal before it begins, so leaving here is as safe as a crash.
                std::process::exit(i32::from(Kind::Interrupted.exit_code()));
            }
            cancel.cancel();
            printer.note("stopping at the next safe point (again: stop now)");
        }
    });
}

/// The live world of a spec.
pub fn live(spec: &Spec, base: &Path) -> Result<World> {
    crate::world::live::connect(spec, base)
}

/// All step kinds.
pub fn registry() -> Registry {
    crate::step::registry()
}

/// Reads spec and snapshot of a plan folder.
pub fn spec_and_snapshot(folder: &super::folder::PlanFolder) -> Result<(Spec, Snapshot)> {
    Ok((
        crate::spec::load(&folder.spec())?,
        crate::snapshot::store::read(&folder.snapshot())?,
    ))
}

/// A run needs pins: a plan made from files has none.
pub fn require_live_plan(plan: &Plan) -> Result<()> {
    if plan.basis.blue.is_some() && plan.basis.account.is_some() {
        return Ok(());
    }
    Err(Error::new(
        Kind::Blocked,
        "this plan was made from files: it does not know which cluster and account it is for, so nothing can be proved before a write",
    )
    .at("plan.json: basis")
    .remedy("read the live cluster and plan again: crossfade discover, crossfade plan"))
}

/// The plan that a verb looks at without changing anything: the stored one, or one made now from snapshot and spec.
pub fn plan_of(source: &super::args::Source, global: &super::args::Global) -> Result<Plan> {
    if let Some(dir) = &source.snapshot {
        if source.folder.plan.is_some() {
            return Err(
                Error::new(Kind::Usage, "both a plan folder and --snapshot are given")
                    .remedy("--snapshot (with --spec) works without a plan folder"),
            );
        }
        let snapshot = crate::snapshot::store::read(dir)?;
        let spec = match &source.spec {
            Some(file) => crate::spec::load(file)?,
            None => crate::spec::defaults_for(&snapshot),
        };
        return Ok(crate::plan::plan(&spec, &snapshot));
    }
    let folder = super::folder::PlanFolder::resolve(&source.folder, global)?;
    if folder.plan().is_file() {
        return folder.load_plan();
    }
    let (spec, snapshot) = spec_and_snapshot(&folder)?;
    Ok(crate::plan::plan(&spec, &snapshot))
}
