//! TLS-02: a certificate that expires while blue may be needed again. After the switch blue cannot renew by HTTP-01 any more.

use super::certs::certificates;
use crate::checks::look::{are, count};
use crate::checks::{Answered, Check, Input, Need, Report, few};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "TLS-02",
    severity: Severity::Warning,
    question: "Does a certificate expire before the end of the rollback window?",
    needs: &[Need::Blue],
    answered: Answered::Plan,
    remedy: "Renew them now, on blue.",
    source: "checks.md TLS-02",
    run,
};

/// Weeks with both clusters when the spec says nothing; the estimate of costs takes the same.
const BOTH_WEEKS: u32 = 4;

fn run(i: &Input, r: &mut Report) {
    let dated: Vec<_> = certificates(i)
        .into_iter()
        .filter(|c| c.until.is_some())
        .collect();
    if dated.is_empty() {
        return;
    }
    let Some(today) = i.today else {
        let (what, how) = Need::Day.words();
        r.not_checked("certificates", what, how);
        return;
    };
    let weeks = i.spec.cost.both_weeks.unwrap_or(BOTH_WEEKS);
    let Ok(end) = today.checked_add(jiff::Span::new().weeks(i64::from(weeks))) else {
        return;
    };
    // What has expired is TLS-01's.
    let mut soon: Vec<(jiff::civil::Date, String)> = dated
        .into_iter()
        .filter_map(|c| Some((c.until?, c.object.name.clone())))
        .filter(|(until, _)| *until >= today && *until < end)
        .collect();
    soon.sort();
    if let Some((first, _)) = soon.first() {
        let names: Vec<String> = soon.iter().map(|(d, n)| format!("{n} ({d})")).collect();
        r.found(
            "certificates",
            format!("{} {} valid until before {end}, {weeks} weeks from the snapshot, the first until {first}: {}; blue cannot renew by HTTP-01 once names lead to green", count(soon.len(), "certificate"), are(soon.len()), few(&names)),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::{NotChecked, Warning};
    use serde_json::json;

    #[test]
    fn a_certificate_that_expires_within_the_weeks_of_both_is_named() {
        let mut s = with(vec![object(
            "cert-manager.io/v1",
            "Certificate",
            "web",
            json!({"spec": {"secretName": "web-tls", "dnsNames": ["www.shop.test"], "issuerRef": {"name": "ca"}}, "status": {"notAfter": "2026-12-20T10:00:00Z"}}),
        )]);
        // The snapshot is of 2026-11-30: four weeks end on 2026-12-28.
        fires(&spec(), &s, "TLS-02", Warning, "(2026-12-20)");
        let mut short = spec();
        short.cost.both_weeks = Some(2);
        silent(&short, &s, "TLS-02");
        s.taken = None;
        fires(&spec(), &s, "TLS-02", NotChecked, "on which day");
    }

    #[test]
    fn a_certificate_of_next_year_is_fine() {
        let s = with(vec![object(
            "cert-manager.io/v1",
            "Certificate",
            "web",
            json!({"spec": {"secretName": "web-tls", "issuerRef": {"name": "ca"}}, "status": {"notAfter": "2027-02-20T10:00:00Z"}}),
        )]);
        silent(&spec(), &s, "TLS-02");
    }
}
