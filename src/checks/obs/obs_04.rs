//! OBS-04: who would be told: a heartbeat for each cluster (S50), and errors of ExternalDNS at a level that wakes somebody (S02).

use super::rules::rules;
use crate::checks::{Answered, Check, Input, Need, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "OBS-04",
    severity: Severity::Warning,
    question: "Would somebody be told of a silent cluster, or of errors of ExternalDNS?",
    needs: &[Need::Blue],
    answered: Answered::Person,
    remedy: "Route an always-firing alert of each cluster to a dead man's switch, and alert on external_dns_registry_errors_total and external_dns_source_errors_total.",
    source: "checks.md OBS-04",
    run,
};

/// Severities that wake nobody.
const LOW: &[&str] = &["", "none", "info", "low", "warning", "notice"];

fn run(i: &Input, r: &mut Report) {
    if i.names.is_empty() {
        return;
    }
    let alerts: Vec<_> = rules(i).into_iter().filter(|x| x.alert).collect();
    if alerts.is_empty() {
        r.ask("alerts", "who is told when a cluster falls silent or ExternalDNS fails: no alerting rules were found in the cluster");
        return;
    }
    let heartbeat = alerts.iter().any(|x| {
        let n = x.name.to_lowercase();
        n.contains("watchdog")
            || n.contains("deadman")
            || n.contains("dead_man")
            || n.contains("heartbeat")
            || x.expr.trim() == "vector(1)"
    });
    if !heartbeat {
        r.found(
            "alerts/heartbeat",
            "no alert fires always: a cluster that falls silent looks like a healthy one",
        );
    }
    let mut dns = alerts
        .iter()
        .filter(|x| x.expr.contains("external_dns_"))
        .peekable();
    if dns.peek().is_none() {
        r.found(
            "alerts/external-dns",
            "no alert reads the counters of ExternalDNS: its errors would be seen by users first",
        );
    } else if dns.all(|x| LOW.contains(&x.severity.as_str())) {
        r.found(
            "alerts/external-dns",
            "alerts on ExternalDNS wake nobody: each has a low severity",
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::{NotChecked, Warning};
    use crate::snapshot::model::Snapshot;
    use serde_json::json;

    fn rules(text: &str) -> Snapshot {
        let mut s = shop();
        s.blue.objects.push(object(
            "v1",
            "ConfigMap",
            "rules",
            json!({"data": {"rules.yml": format!("groups:\n- name: g\n  rules:\n{text}")}}),
        ));
        s
    }

    #[test]
    fn without_a_heartbeat_and_with_a_quiet_alert_on_external_dns_users_would_be_first() {
        let s = rules(
            "  - alert: DnsErrors\n    expr: rate(external_dns_registry_errors_total[5m]) > 0\n    labels: {severity: info}\n",
        );
        fires(&spec(), &s, "OBS-04", Warning, "no alert fires always");
        fires(&spec(), &s, "OBS-04", Warning, "wake nobody");
        fires(
            &spec(),
            &shop(),
            "OBS-04",
            NotChecked,
            "no alerting rules were found",
        );
    }

    #[test]
    fn a_heartbeat_and_a_loud_alert_are_fine() {
        let s = rules(
            "  - alert: Watchdog\n    expr: vector(1)\n  - alert: DnsErrors\n    expr: external_dns_registry_errors_total > 0\n    labels: {severity: critical}\n",
        );
        silent(&spec(), &s, "OBS-04");
    }
}
