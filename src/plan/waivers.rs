//! Waivers: findings that somebody has read and accepts. They stay in the plan, marked, and no longer stand in the way.
//!
//! Of several waivers that fit a finding the first in the file that has not run out counts.

use super::model::{Finding, Severity};
use crate::checks::ids;
use crate::spec::model::{WaivedSeverity, Waiver};
use jiff::civil::Date;

/// Applies the waivers. The only clock is the day of the snapshot.
pub(super) fn apply(waivers: &[Waiver], today: Option<Date>, findings: &mut Vec<Finding>) {
    let mut used = vec![false; waivers.len()];
    for f in findings.iter_mut() {
        let mut too_late = None;
        for (n, w) in waivers.iter().enumerate().filter(|(_, w)| fits(w, f)) {
            used[n] = true;
            match counts(w, today) {
                Ok(()) => {
                    accept(w, f);
                    too_late = None;
                    break;
                }
                Err(why) => too_late = too_late.or(Some(why)),
            }
        }
        if let Some(why) = too_late {
            f.message = format!("{} ({why})", f.message);
        }
    }
    for (w, _) in waivers.iter().zip(used).filter(|(_, used)| !used) {
        let what = match &w.object {
            Some(o) => format!("{} of {o}", w.check),
            None => w.check.clone(),
        };
        findings.push(Finding {
            id: "WAIVER-unused".into(),
            severity: Severity::Info,
            object: format!("waivers/{}", w.check),
            message: format!("there is no finding {what} to accept"),
            remedy: "Remove the waiver, or correct its object.".into(),
            source: "migration.yaml waivers".into(),
            waived: None,
        });
    }
}

/// Whether a waiver that counts on this day means a finding.
pub(super) fn accepted(waivers: &[Waiver], today: Option<Date>, check: &str, object: &str) -> bool {
    waivers.iter().any(|w| {
        let object = match w.object.as_deref() {
            None => false,
            Some(o) => match o.strip_suffix('*') {
                Some(prefix) => object.starts_with(prefix),
                None => object == o,
            },
        };
        object && w.check == check && w.severity.is_none() && counts(w, today).is_ok()
    })
}

/// Whether a waiver means this finding.
fn fits(w: &Waiver, f: &Finding) -> bool {
    let object = match w.object.as_deref() {
        None => true,
        Some(o) => match o.strip_suffix('*') {
            Some(prefix) => f.object.starts_with(prefix),
            None => f.object == o,
        },
    };
    // The spec's reader refuses these; a spec made by a program is held to the same.
    object && w.check == f.id && ids::never_waived(&f.id).is_none()
}

/// Whether it counts on this day; if not, why.
fn counts(w: &Waiver, today: Option<Date>) -> Result<(), String> {
    let Some(expires) = &w.expires else {
        return Ok(());
    };
    match (expires.parse::<Date>(), today) {
        (Ok(last), Some(today)) if today <= last => Ok(()),
        (Ok(_), Some(_)) => Err(format!(
            "a waiver for this ran out on {expires}: {}",
            w.reason
        )),
        _ => Err(format!(
            "a waiver until {expires} does not count: the snapshot does not say on which day it was taken"
        )),
    }
}

fn accept(w: &Waiver, f: &mut Finding) {
    let until = w
        .expires
        .as_ref()
        .map_or(String::new(), |d| format!(" (until {d})"));
    match w.severity {
        None => f.waived = Some(format!("{}{until}", w.reason)),
        Some(s) => {
            f.severity = match s {
                WaivedSeverity::Blocker => Severity::Blocker,
                WaivedSeverity::Warning => Severity::Warning,
                WaivedSeverity::Info => Severity::Info,
            };
            f.message = format!(
                "{} (taken as this by migration.yaml{until}: {})",
                f.message, w.reason
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn finding(id: &str, object: &str) -> Finding {
        Finding {
            id: id.into(),
            severity: Severity::Blocker,
            object: object.into(),
            message: "is wrong".into(),
            remedy: "Mend it.".into(),
            source: "test".into(),
            waived: None,
        }
    }
    fn waiver(v: serde_json::Value) -> Waiver {
        serde_json::from_value(v).expect("a waiver")
    }
    fn after(w: &[serde_json::Value], today: Option<&str>, found: &[(&str, &str)]) -> Vec<Finding> {
        let waivers: Vec<Waiver> = w.iter().cloned().map(waiver).collect();
        let mut all = found.iter().map(|(i, o)| finding(i, o)).collect();
        apply(&waivers, today.map(|d| d.parse().expect("a day")), &mut all);
        all
    }

    #[test]
    fn a_waiver_takes_a_finding_out_of_the_way_and_leaves_it_to_be_seen_with_reason_and_end() {
        let w = json!({"check": "NET-06", "object": "configmap/a/*", "reason": "read by Ann", "expires": "2026-12-31"});
        let all = after(
            &[w],
            Some("2026-12-31"),
            &[
                ("NET-06", "configmap/a/x"),
                ("NET-06", "configmap/b/x"),
                ("NET-07", "configmap/a/x"),
            ],
        );
        assert_eq!(
            all[0].waived.as_deref(),
            Some("read by Ann (until 2026-12-31)")
        );
        assert!(!all[0].blocks() && all[0].severity == Severity::Blocker);
        assert!(all[1].blocks() && all[2].blocks());
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn the_day_after_its_end_the_finding_stands_again_and_says_why() {
        let w = json!({"check": "NET-06", "reason": "until the move", "expires": "2026-12-31"});
        let all = after(
            std::slice::from_ref(&w),
            Some("2027-01-01"),
            &[("NET-06", "x")],
        );
        assert!(all[0].blocks());
        assert!(
            all[0]
                .message
                .contains("ran out on 2026-12-31: until the move")
        );
        // Without a day nobody can tell: then it does not count either.
        let all = after(&[w], None, &[("NET-06", "x")]);
        assert!(all[0].blocks() && all[0].message.contains("does not count"));
    }

    #[test]
    fn a_waiver_that_ran_out_does_not_hide_one_that_counts() {
        let old = json!({"check": "NET-06", "reason": "old", "expires": "2026-01-01"});
        let new = json!({"check": "NET-06", "object": "x", "reason": "new"});
        let all = after(&[old, new], Some("2026-12-01"), &[("NET-06", "x")]);
        assert_eq!(all[0].waived.as_deref(), Some("new"));
        assert_eq!(all[0].message, "is wrong");
    }

    #[test]
    fn a_waiver_that_fits_nothing_is_said() {
        let w = json!({"check": "NET-06", "object": "configmap/a/gone", "reason": "r"});
        let all = after(&[w], None, &[("NET-06", "configmap/a/here")]);
        assert_eq!(
            (all[1].id.as_str(), all[1].severity),
            ("WAIVER-unused", Severity::Info)
        );
        assert!(all[1].message.contains("configmap/a/gone"));
    }

    #[test]
    fn a_severity_changes_what_a_finding_weighs_in_both_directions() {
        let down = json!({"check": "NET-06", "reason": "r", "severity": "info"});
        let all = after(&[down], None, &[("NET-06", "x")]);
        assert_eq!(
            (all[0].severity, all[0].waived.as_deref()),
            (Severity::Info, None)
        );
        assert!(all[0].message.contains("by migration.yaml: r"));
    }

    #[test]
    fn what_holds_up_a_promise_cannot_be_waived_even_by_a_program() {
        let w = json!({"check": "DNS-01", "reason": "we know"});
        let all = after(&[w], None, &[("DNS-01", "deployment/a/external-dns")]);
        assert!(all[0].blocks() && all[0].waived.is_none());
    }
}
