//! `policy`: the least IAM policy that a run of this plan needs.

use super::args::{Global, PolicyArgs, PolicyVerb};
use super::exit;
use super::printer::Printer;
use super::rooms;
use crate::error::{Error, Kind, Result};
use crate::policy::{self, Document, LIMIT, Verb};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

/// Runs the verb.
pub fn run(args: &PolicyArgs, global: &Global, printer: &Printer) -> Result<u8> {
    let plan = rooms::plan_of(&args.source, global)?;
    let verbs: BTreeSet<Verb> = if args.verb.is_empty() {
        Verb::ALL.into_iter().collect()
    } else {
        args.verb.iter().map(|v| verb(*v)).collect()
    };
    let needed = policy::needed(&plan, &verbs);
    if let Some(dir) = &args.out {
        for d in &needed.documents {
            write(dir, d)?;
        }
    }
    if printer.json() {
        let policies: Vec<_> = needed
            .documents
            .iter()
            .map(|d| {
                json!({"name": d.name, "writes": d.writes, "size": d.size, "limit": LIMIT, "document": d.policy})
            })
            .collect();
        printer.document(&json!({"policies": policies, "notes": needed.notes}));
        return Ok(exit::DONE);
    }
    for d in &needed.documents {
        let what = if d.writes {
            "makes changes"
        } else {
            "only reads"
        };
        printer.note(format!(
            "{}: {what}, {} of {LIMIT} characters",
            d.name, d.size
        ));
        if args.out.is_none() {
            printer.line(pretty(d)?);
        }
    }
    for note in &needed.notes {
        printer.note(format!("note: {note}"));
    }
    Ok(exit::DONE)
}

fn verb(v: PolicyVerb) -> Verb {
    match v {
        PolicyVerb::Discover => Verb::Discover,
        PolicyVerb::Migrate => Verb::Migrate,
        PolicyVerb::Rollback => Verb::Rollback,
        PolicyVerb::Finalize => Verb::Finalize,
    }
}

fn pretty(d: &Document) -> Result<String> {
    serde_json::to_string_pretty(&d.policy)
        .map_err(|e| Error::new(Kind::Bug, e.to_string()).at(&d.name))
}

fn write(dir: &Path, d: &Document) -> Result<()> {
    let bad = |at: &Path, e: std::io::Error| {
        Error::new(Kind::BadInput, format!("cannot write the policy: {e}"))
            .at(at.display().to_string())
            .remedy("give --out a folder that can be written")
    };
    std::fs::create_dir_all(dir).map_err(|e| bad(dir, e))?;
    let file = dir.join(format!("{}.json", d.name));
    std::fs::write(&file, pretty(d)? + "\n").map_err(|e| bad(&file, e))
}
