//! WL-11: waves without a canary, or with hosts that nobody probes.

use crate::checks::few;
use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;
use std::collections::BTreeMap;

pub(super) const CHECK: Check = Check {
    id: "WL-11",
    severity: Severity::Warning,
    question: "Can each wave of names be judged by itself?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Name a canary, set dns.waveSize, or let the hosts be probed.",
    source: "checks.md WL-11",
    run,
};

/// Names that one wave without a canary may hold: more could not be looked at one by one.
const MANY: usize = 10;

fn run(i: &Input, r: &mut Report) {
    let mut waves: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for n in i.names {
        waves.entry(n.wave).or_default().push(&n.host);
    }
    let first = waves.values().next().map_or(0, Vec::len);
    if i.spec.dns.canary.is_none() && first > MANY {
        r.found(
            "dns.canary",
            format!("no canary: the first wave switches {first} names at once"),
        );
    }
    for (wave, hosts) in waves {
        let blind: Vec<&str> = hosts
            .iter()
            .copied()
            .filter(|h| {
                i.spec
                    .probes
                    .skip
                    .iter()
                    .any(|s| s.trim_end_matches('.') == *h)
            })
            .collect();
        if !blind.is_empty() && blind.len() == hosts.len() {
            r.found(
                format!("wave/{wave}"),
                format!(
                    "none of its hosts is probed, so nothing tells whether it went well: {}",
                    few(&blind)
                ),
            );
        }
    }
}
