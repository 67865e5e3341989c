//! `finalize`: the only point of no return. Asks for the cluster's name; deletes nothing of blue, but says what `kops delete cluster` would.

use super::args::{FinalizeArgs, Global};
use super::exit;
use super::folder::PlanFolder;
use super::migrate::with_engine;
use super::printer::Printer;
use crate::engine::decommission::{Doomed, doomed};
use crate::error::{Error, Kind, Result};
use crate::plan::model::Plan;
use serde_json::json;
use std::io::{BufRead, IsTerminal, Write};

/// Runs the verb.
pub fn run(args: &FinalizeArgs, global: &Global, printer: &Printer) -> Result<u8> {
    let folder = PlanFolder::resolve(&args.folder, global)?;
    let plan = folder.load_plan()?;
    let (_, state) = folder.read_journal()?;
    if !state.done {
        return Err(Error::new(
            Kind::StalePlan,
            "only a finished migration whose soak has passed can be finalized",
        )
        .at(folder.run().display().to_string())
        .remedy(format!(
            "see crossfade status{0}; finish it: crossfade migrate{0}",
            folder.arg()
        )));
    }
    confirm(args, &plan, printer)?;
    let snapshot = crate::snapshot::store::read(&folder.snapshot())?;
    let list = doomed(&plan, &snapshot);
    let changed = with_engine(&folder, plan.clone(), "finalize", printer, async |engine| {
        engine.finalize().await
    })?;
    if printer.json() {
        printer.line(
            json!({"event": "end", "outcome": "finalized", "changed": changed, "kops_would_delete": list})
                .to_string(),
        );
    } else {
        if changed {
            printer.line(printer.tint("green", "finalized: there is no way back any more"));
        } else {
            printer.line("nothing to do: it was finalized before; nothing was written");
        }
        guard(&plan, &list, printer);
    }
    Ok(exit::DONE)
}

fn confirm(args: &FinalizeArgs, plan: &Plan, printer: &Printer) -> Result<()> {
    let wanted = &plan.spec.blue.cluster;
    let name = match &args.confirm {
        Some(name) => name.clone(),
        None if printer.json() || !std::io::stdin().is_terminal() => {
            return Err(Error::new(
                Kind::Usage,
                "finalize ends the way back and must be confirmed with the name of the kops cluster",
            )
            .at("--confirm")
            .remedy(format!("crossfade finalize ... --confirm {wanted}")));
        }
        None => {
            printer.line(format!(
                "finalize stops the reverse copies, raises TTLs, and lets green's ExternalDNS delete records.\nAfter this there is no way back to {wanted}."
            ));
            let mut stdout = std::io::stdout();
            let _ = write!(stdout, "Type the name of the kops cluster to go on: ")
                .and_then(|()| stdout.flush());
            let mut line = String::new();
            std::io::stdin()
                .lock()
                .read_line(&mut line)
                .map_err(|e| Error::new(Kind::Usage, e.to_string()).at("stdin"))?;
            line.trim().to_string()
        }
    };
    if name == *wanted {
        return Ok(());
    }
    Err(Error::new(
        Kind::Usage,
        format!("{name:?} is not the name of the kops cluster of this plan"),
    )
    .at("--confirm")
    .remedy("nothing was done; check that this is the plan folder you mean"))
}

/// The decommission guard.
fn guard(plan: &Plan, list: &[Doomed], printer: &Printer) {
    let cluster = &plan.spec.blue.cluster;
    printer.line("");
    printer.line(printer.bold(&format!(
        "crossfade deletes nothing of blue. `kops delete cluster {cluster}` selects by tag and would remove, of what was read:"
    )));
    if list.is_empty() {
        printer.line("  (nothing was read of the account)");
    }
    for d in list {
        let mark = if d.green_uses_it {
            printer.tint("red", "  GREEN USES IT")
        } else {
            String::new()
        };
        printer.line(format!("  {} {} ({}){mark}", d.kind, d.id, d.tag));
    }
    printer.line("  and what is not read: instances, elastic addresses, internet gateways, DHCP options, key pairs with these tags");
    if list.iter().any(|d| d.green_uses_it) {
        printer.line(printer.tint(
            "red",
            &format!("next: before anything of blue is deleted, retag what green uses: kubernetes.io/cluster/{cluster}=shared, and remove KubernetesCluster"),
        ));
    }
}
