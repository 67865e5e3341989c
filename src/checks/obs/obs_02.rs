//! OBS-02: the same request to both sides must give the same answer; the run asks every host before it moves.

use crate::checks::look::count;
use crate::checks::{Answered, Check, Input, Report, few};
use crate::plan::model::Severity;
use std::collections::BTreeSet;

pub(super) const CHECK: Check = Check {
    id: "OBS-02",
    severity: Severity::Blocker,
    question: "Does green answer each host as blue does (status, body, headers)?",
    needs: &[],
    answered: Answered::Run("probe.hosts"),
    remedy: "Set probes.path to a path that says something.",
    source: "checks.md OBS-02",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let skipped: BTreeSet<&str> = i.spec.probes.skip.iter().map(String::as_str).collect();
    let (no, yes): (Vec<&str>, Vec<&str>) = i
        .names
        .iter()
        .map(|n| n.host.as_str())
        .partition(|h| skipped.contains(h));
    if !yes.is_empty() {
        r.ask(
            "probes",
            format!(
                "{} must answer on green as on blue",
                count(yes.len(), "host")
            ),
        );
    }
    if !no.is_empty() {
        r.warning(
            "probes.skip",
            format!(
                "{} that nobody probes before it moves: {}",
                count(no.len(), "host"),
                few(&no)
            ),
            "Probe it by hand with `curl --connect-to`.",
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::{NotChecked, Warning};

    #[test]
    fn hosts_are_asked_by_the_run_and_one_that_is_skipped_is_named() {
        fires(&spec(), &shop(), "OBS-02", NotChecked, "1 host must answer");
        let mut s = spec();
        s.probes.skip = vec!["www.shop.test".into()];
        fires(&s, &shop(), "OBS-02", Warning, "www.shop.test");
        never_says(&s, &shop(), "OBS-02", "must answer");
    }

    #[test]
    fn without_names_nothing_is_asked() {
        silent(&spec(), &empty(), "OBS-02");
    }
}
