//! DNS-07: the wait for the old TTL is a step of the run; a plan can only say how long it will be.

use crate::checks::look::count;
use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "DNS-07",
    severity: Severity::Blocker,
    question: "Has the old TTL passed since the TTLs were lowered?",
    needs: &[],
    answered: Answered::Run("dns.ttl-wait"),
    remedy: "Start the run at least one old TTL before the window.",
    source: "checks.md DNS-07",
    run,
};

fn run(i: &Input, r: &mut Report) {
    let lowered: Vec<u32> = i
        .names
        .iter()
        .filter_map(|n| n.ttl)
        .filter(|t| *t > i.spec.dns.low_ttl)
        .collect();
    if let Some(longest) = lowered.iter().max() {
        r.ask(
            "dns.lowTtl",
            format!(
                "{} with a TTL above {} s; caches hold the old ones for up to {longest} s after they were lowered",
                count(lowered.len(), "name"),
                i.spec.dns.low_ttl
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::samples::*;
    use crate::plan::model::Severity::NotChecked;

    #[test]
    fn a_ttl_above_the_low_one_is_waited_out_by_the_run() {
        fires(&spec(), &shop(), "DNS-07", NotChecked, "up to 300 s");
    }

    #[test]
    fn nothing_is_asked_where_no_ttl_is_lowered() {
        let mut s = shop();
        s.zones[0].records[0].ttl = Some(60);
        silent(&spec(), &s, "DNS-07");
    }
}
