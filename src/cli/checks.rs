//! `checks`: the register of checks, and what each says about one plan.

use super::args::{ChecksArgs, Folder, Global};
use super::exit;
use super::findings::word;
use super::folder::PlanFolder;
use super::printer::Printer;
use crate::checks::{self, Answered, Check, ids};
use crate::error::{Error, Kind, Result};
use crate::plan::model::{Finding, Plan, Severity};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Runs the verb.
pub fn run(args: &ChecksArgs, global: &Global, printer: &Printer) -> Result<u8> {
    let mut one = None;
    let mut folder = None;
    for what in &args.what {
        let text = what.to_string_lossy();
        // An id has no path in it and is no folder here; `./DNS-01` is always a folder.
        let is_id = !text.contains('/') && !what.is_dir() && text != "." && text != "..";
        let slot = if is_id { &mut one } else { &mut folder };
        if slot.replace(what.clone()).is_some() {
            return Err(Error::new(
                Kind::Usage,
                if is_id {
                    "two ids are given, and no such folder is there"
                } else {
                    "two plan folders are given"
                },
            )
            .at(text.to_string())
            .remedy("give one check, one plan folder, or one of each"));
        }
    }
    let plan = match (&folder, &global.run) {
        (None, None) => None,
        _ => {
            let folder = Folder { plan: folder };
            Some(PlanFolder::resolve(&folder, global)?.load_plan()?)
        }
    };
    match one {
        None => list(plan.as_ref(), printer),
        Some(id) => single(&id.to_string_lossy(), plan.as_ref(), printer)?,
    }
    Ok(exit::DONE)
}

fn single(id: &str, plan: Option<&Plan>, printer: &Printer) -> Result<()> {
    let id = id.to_uppercase();
    let check = checks::all()
        .find(|c| c.id.to_uppercase() == id)
        .ok_or_else(|| {
            Error::new(Kind::BadInput, format!("there is no check {id}"))
                .at("command line")
                .remedy(format!(
                    "`crossfade checks` lists them; {}",
                    ids::nearest(&id)
                ))
        })?;
    if printer.json() {
        let mut one = entry(check, plan);
        if let Some(plan) = plan {
            one["findings"] = json!(findings(check, plan).collect::<Vec<_>>());
        }
        printer.document(&one);
        return Ok(());
    }
    printer.line(format!("{}  {}", printer.bold(check.id), check.question));
    printer.line(format!("  severity  {}", word(check.severity).0));
    printer.line(format!("  answered  {}", who(check.answered)));
    printer.line(format!("  reads     {}", needs(check)));
    printer.line(format!("  remedy    {}", check.remedy));
    printer.line(format!("  source    {}", check.source));
    if let Some(why) = ids::never_waived(check.id) {
        printer.line(format!("  waiver    not possible: {why}"));
    }
    if let Some(plan) = plan {
        printer.line("");
        printer.line(format!(
            "{}: {}",
            plan.spec.name,
            verdict(check, plan).text()
        ));
        for f in findings(check, plan) {
            printer.line(format!(
                "  {} {}: {}",
                word(f.severity).0,
                f.object,
                f.message
            ));
            match &f.waived {
                Some(why) => printer.line(format!("    accepted: {why}")),
                None => printer.line(format!("    next: {}", f.remedy)),
            }
        }
    }
    Ok(())
}

fn list(plan: Option<&Plan>, printer: &Printer) {
    let all: Vec<&Check> = sorted();
    if printer.json() {
        let list: Vec<Value> = all.iter().map(|c| entry(c, plan)).collect();
        printer.document(&json!({"checks": list, "digest": plan.map(|p| &p.digest)}));
        return;
    }
    for c in &all {
        let what = match plan {
            Some(plan) => verdict(c, plan).text(),
            None => who(c.answered),
        };
        printer.line(format!(
            "{:<8} {:<11} {:<46} {}",
            c.id,
            word(c.severity).0,
            what,
            c.question
        ));
    }
    printer.line("");
    match plan {
        None => printer.line(format!(
            "{} checks; crossfade checks PLAN says what each found, crossfade checks ID shows one in full",
            all.len()
        )),
        Some(plan) => {
            let known: BTreeSet<&str> = all.iter().map(|c| c.id).collect();
            let others = plan
                .findings
                .iter()
                .filter(|f| !known.contains(f.id.as_str()))
                .count();
            printer.line(format!(
                "{} checks; {others} findings of the plan come from elsewhere (fields of the kops documents, and so on): crossfade plan --all-findings",
                all.len()
            ));
        }
    }
}

/// In the order of the catalogue, what is not in it at the end.
fn sorted() -> Vec<&'static Check> {
    let mut all: Vec<&Check> = checks::all().collect();
    all.sort_by_key(|c| {
        let n = ids::CATALOGUE.iter().position(|x| *x == c.id);
        (n.unwrap_or(ids::CATALOGUE.len()), c.id)
    });
    all
}

fn findings<'p>(check: &Check, plan: &'p Plan) -> impl Iterator<Item = &'p Finding> {
    let id = check.id;
    plan.findings.iter().filter(move |f| f.id == id)
}

/// What a check says about a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Verdict {
    blockers: usize,
    warnings: usize,
    infos: usize,
    not_checked: usize,
    waived: usize,
    /// Who answers it, when it is not the planner.
    later: Option<Answered>,
}

fn verdict(check: &Check, plan: &Plan) -> Verdict {
    let mut v = Verdict {
        later: (check.answered != Answered::Plan).then_some(check.answered),
        ..Verdict::default()
    };
    for f in findings(check, plan) {
        let slot = match f.severity {
            _ if f.waived.is_some() => &mut v.waived,
            Severity::Blocker => &mut v.blockers,
            Severity::Warning => &mut v.warnings,
            Severity::Info => &mut v.infos,
            Severity::NotChecked => &mut v.not_checked,
        };
        *slot += 1;
    }
    v
}

impl Verdict {
    /// `fires`, `not_checked`, `waived`, `info`, `later` or `ok`: the worst of it.
    fn word(&self) -> &'static str {
        match self {
            v if v.blockers + v.warnings > 0 => "fires",
            v if v.not_checked > 0 => "not_checked",
            v if v.waived > 0 => "waived",
            v if v.infos > 0 => "info",
            v if v.later.is_some() => "later",
            _ => "ok",
        }
    }
    fn text(&self) -> String {
        let parts: Vec<String> = [
            (self.blockers, "blocker"),
            (self.warnings, "warning"),
            (self.infos, "info"),
            (self.not_checked, "not checked"),
            (self.waived, "waived"),
        ]
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{n} {what}"))
        .collect();
        match (parts.is_empty(), self.later) {
            (false, _) => parts.join(", "),
            (true, Some(Answered::Run(step))) => format!("nothing seen; the run asks ({step})"),
            (true, Some(_)) => "no reason to ask here".into(),
            (true, None) => "ok".into(),
        }
    }
}

fn who(a: Answered) -> String {
    match a {
        Answered::Plan => "the plan".into(),
        Answered::Run(step) => format!("the run (step {step})"),
        Answered::Person => "a person".into(),
    }
}

fn needs(check: &Check) -> String {
    let list: Vec<&str> = check.needs.iter().map(|n| n.title()).collect();
    if list.is_empty() {
        "whatever the snapshot has".into()
    } else {
        list.join(", ")
    }
}

fn entry(c: &Check, plan: Option<&Plan>) -> Value {
    let (by, step) = match c.answered {
        Answered::Plan => ("plan", None),
        Answered::Run(step) => ("run", Some(step)),
        Answered::Person => ("person", None),
    };
    let needs: Vec<&str> = c.needs.iter().map(|n| n.title()).collect();
    let mut out = json!({
        "id": c.id, "severity": c.severity, "question": c.question, "needs": needs,
        "answered": {"by": by, "step": step}, "remedy": c.remedy, "source": c.source,
        "waivable": ids::never_waived(c.id).is_none(),
    });
    if let Some(plan) = plan {
        let v = verdict(c, plan);
        out["verdict"] = json!({
            "is": v.word(), "blockers": v.blockers, "warnings": v.warnings, "infos": v.infos,
            "not_checked": v.not_checked, "waived": v.waived,
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::model::Snapshot;

    fn plan(findings: Vec<Finding>) -> Plan {
        let s = Snapshot::default();
        let mut p = crate::plan::plan(&crate::spec::defaults_for(&s), &s);
        p.findings = findings;
        p
    }
    fn finding(severity: Severity, waived: Option<&str>) -> Finding {
        Finding {
            id: "DNS-01".into(),
            severity,
            object: "x".into(),
            message: "m".into(),
            remedy: "r".into(),
            source: "s".into(),
            waived: waived.map(Into::into),
        }
    }

    #[test]
    fn a_check_fires_is_waived_was_not_checked_or_is_ok() {
        let check = checks::find("DNS-01").expect("registered");
        let say = |f: Vec<Finding>| {
            let v = verdict(check, &plan(f));
            (v.word(), v.text())
        };
        assert_eq!(say(vec![]), ("ok", "ok".into()));
        assert_eq!(
            say(vec![
                finding(Severity::Blocker, None),
                finding(Severity::Blocker, Some("r"))
            ]),
            ("fires", "1 blocker, 1 waived".into())
        );
        assert_eq!(
            say(vec![finding(Severity::Blocker, Some("r"))]),
            ("waived", "1 waived".into())
        );
        assert_eq!(
            say(vec![finding(Severity::NotChecked, None)]).0,
            "not_checked"
        );
    }

    #[test]
    fn what_only_the_run_or_a_person_can_answer_is_never_called_ok() {
        for c in checks::all().filter(|c| c.answered != Answered::Plan) {
            assert_eq!(verdict(c, &plan(vec![])).word(), "later", "{}", c.id);
        }
    }
}
