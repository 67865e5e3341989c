//! Findings for people: worst first, one cause once, long tails folded to a count.

use super::printer::Printer;
use crate::checks::few;
use crate::plan::model::{Finding, Plan, Severity};
use std::collections::BTreeMap;

/// Up to so many findings that are only good to know, or were not checked, are printed; more are counted.
const TAIL: usize = 6;
/// Up to so many findings of one cause are printed one by one.
const ONE_BY_ONE: usize = 3;

/// Findings by severity. `all`: each of them on lines of its own.
pub fn show(plan: &Plan, printer: &Printer, all: bool) {
    printer.line("");
    printer.line(printer.bold("Findings"));
    if plan.findings.is_empty() {
        printer.line("  none");
    }
    for line in lines(&plan.findings, all, &|tint, word| printer.tint(tint, word)) {
        printer.line(format!("  {line}"));
    }
}

/// `blocker` and its colour.
pub fn word(s: Severity) -> (&'static str, &'static str) {
    match s {
        Severity::Blocker => ("blocker", "red"),
        Severity::Warning => ("warning", "yellow"),
        Severity::Info => ("info", "dim"),
        Severity::NotChecked => ("not checked", "yellow"),
    }
}

fn lines(findings: &[Finding], all: bool, tint: &dyn Fn(&str, &str) -> String) -> Vec<String> {
    let mut out = vec![];
    let mut folded = false;
    for severity in [
        Severity::Blocker,
        Severity::Warning,
        Severity::NotChecked,
        Severity::Info,
    ] {
        let standing: Vec<&Finding> = findings
            .iter()
            .filter(|f| f.severity == severity && f.waived.is_none())
            .collect();
        let tail = matches!(severity, Severity::NotChecked | Severity::Info);
        let (name, colour) = word(severity);
        if tail && !all && standing.len() > TAIL {
            folded = true;
            out.push(format!("{}: {}", tint(colour, name), counts(&standing)));
            continue;
        }
        for cause in causes(&standing, all) {
            folded |= cause.len() > 1;
            out.extend(cause_lines(&cause, &tint(colour, name)));
        }
    }
    let waived: Vec<&Finding> = findings.iter().filter(|f| f.waived.is_some()).collect();
    for f in waived {
        out.push(format!(
            "{} {} {}: {}",
            tint("dim", &format!("waived {}", word(f.severity).0)),
            f.id,
            f.object,
            f.message
        ));
        out.push(format!(
            "    accepted: {}",
            f.waived.as_deref().unwrap_or("")
        ));
    }
    if folded {
        out.push("folded: crossfade plan --all-findings shows all, crossfade explain ID those of one check".into());
    }
    out
}

/// Findings of one check with one remedy are one cause: together when there are many.
fn causes<'f>(standing: &[&'f Finding], all: bool) -> Vec<Vec<&'f Finding>> {
    let mut by_cause: BTreeMap<(&str, &str), Vec<&Finding>> = BTreeMap::new();
    for f in standing {
        by_cause.entry((&f.id, &f.remedy)).or_default().push(f);
    }
    by_cause
        .into_values()
        .flat_map(|c| {
            if all || c.len() <= ONE_BY_ONE {
                c.into_iter().map(|f| vec![f]).collect()
            } else {
                vec![c]
            }
        })
        .collect()
}

fn cause_lines(cause: &[&Finding], name: &str) -> Vec<String> {
    let first = cause[0];
    let mut out = match cause {
        [f] => vec![format!("{name} {} {}: {}", f.id, f.object, f.message)],
        many => {
            let objects: Vec<&str> = many.iter().map(|f| f.object.as_str()).collect();
            vec![
                format!(
                    "{name} {} {} times: {}",
                    first.id,
                    many.len(),
                    first.message
                ),
                format!("    of {}", few(&objects)),
            ]
        }
    };
    if first.severity != Severity::Info && !first.remedy.is_empty() {
        out.push(format!("    next: {} ({})", first.remedy, first.source));
    }
    out
}

/// `12 (API-01 7, WL-02 5)`
fn counts(standing: &[&Finding]) -> String {
    let mut by_id: BTreeMap<&str, usize> = BTreeMap::new();
    for f in standing {
        *by_id.entry(&f.id).or_default() += 1;
    }
    let list: Vec<String> = by_id
        .into_iter()
        .map(|(id, n)| {
            if n == 1 {
                id.into()
            } else {
                format!("{id} {n}")
            }
        })
        .collect();
    format!("{} ({})", standing.len(), list.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(id: &str, severity: Severity, object: &str) -> Finding {
        Finding {
            id: id.into(),
            severity,
            object: object.into(),
            message: format!("{object} is wrong"),
            remedy: format!("Mend {id}."),
            source: "test".into(),
            waived: None,
        }
    }
    fn text(findings: &[Finding], all: bool) -> Vec<String> {
        lines(findings, all, &|_, word| word.into())
    }

    #[test]
    fn one_cause_at_many_objects_is_said_once_with_the_first_of_them() {
        let many: Vec<Finding> = (0..9)
            .map(|n| finding("WL-06", Severity::Warning, &format!("deployment/a/{n}")))
            .collect();
        assert_eq!(
            text(&many, false)[..3],
            [
                "warning WL-06 9 times: deployment/a/0 is wrong",
                "    of deployment/a/0, deployment/a/1, deployment/a/2 and 6 more",
                "    next: Mend WL-06. (test)"
            ]
        );
        assert_eq!(text(&many, true).len(), 18);
    }

    #[test]
    fn a_long_tail_is_counted_and_a_short_one_printed() {
        let many: Vec<Finding> = (0..7)
            .map(|n| finding("API-01", Severity::Info, &format!("ingress/a/{n}")))
            .collect();
        let folded = text(&many, false);
        assert_eq!(folded[0], "info: 7 (API-01 7)");
        assert!(folded[1].contains("--all-findings"));
        assert_eq!(text(&many[..2], false).len(), 2);
    }

    #[test]
    fn blockers_come_first_and_what_was_waived_last_with_its_reason() {
        let mut waived = finding("NET-06", Severity::Blocker, "configmap/a/b");
        waived.waived = Some("read by Ann (until 2026-12-31)".into());
        let all = [
            finding("WL-06", Severity::Warning, "x"),
            waived,
            finding("API-03", Severity::Blocker, "y"),
        ];
        let said = text(&all, false);
        assert!(said[0].starts_with("blocker API-03 y"), "{said:?}");
        assert!(said[2].starts_with("warning WL-06"), "{said:?}");
        assert_eq!(
            said[4],
            "waived blocker NET-06 configmap/a/b: configmap/a/b is wrong"
        );
        assert_eq!(said[5], "    accepted: read by Ann (until 2026-12-31)");
    }
}
