//! DNS-17: how many clients still go to blue when writes open on green. The fit of practice.md 4 (S44): 88 % leave evenly within one TTL,
//! 10 % decay with a mean of 4 minutes, 2 % stay for hours.

use crate::checks::{Answered, Check, Input, Report};
use crate::plan::model::Severity;

pub(super) const CHECK: Check = Check {
    id: "DNS-17",
    severity: Severity::Warning,
    question: "Is the time that the plan watches blue shorter than its clients need to leave it?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Keep blue serving: raise limits.soakSeconds to 900 or more, and finalize only when blue's counters stay at 0.",
    source: "checks.md DNS-17",
    run,
};

/// After this time only the 2 % are left that stay for hours, seconds.
const TAIL: u32 = 900;
/// Half-life of the slow tenth: 4 minutes times ln 2, seconds.
const HALF: u32 = 166;

/// Clients that still go to the side that was left, in thousandths, `t` seconds after the switch. Whole numbers: a plan is the same everywhere.
fn stale(t: u32, ttl: u32) -> u32 {
    let ttl = ttl.max(1);
    let first = 880 * ttl.saturating_sub(t) / ttl;
    let (halvings, rest) = (t / HALF, t % HALF);
    let at = 100u32.checked_shr(halvings).unwrap_or(0);
    let slow = at - at / 2 * rest / HALF;
    first + slow + 20
}

fn run(i: &Input, r: &mut Report) {
    let Some(ttl) = i
        .names
        .iter()
        .map(|n| n.ttl.map_or(60, |t| t.min(i.spec.dns.low_ttl)))
        .max()
    else {
        return;
    };
    let drain = i.spec.dns.drain_seconds;
    let watched = drain.saturating_add(i.spec.limits.soak_seconds);
    if watched < TAIL {
        let percent = stale(drain, ttl).div_ceil(10);
        r.found(
            "limits.soakSeconds",
            format!("about {percent} % of the clients may still go to blue when writes open on green ({drain} s after the switch, TTL {ttl} s), and 2 % after 15 minutes; the plan watches for {watched} s"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::stale;
    use crate::checks::samples::*;
    use crate::plan::model::Severity::Warning;

    #[test]
    fn the_fit_gives_the_numbers_of_the_field() {
        // S44: with a TTL of 20 s 90 % have left after 60 s, 2 % are still there after 15 minutes.
        assert_eq!(stale(0, 20), 1000);
        assert!((90..=110).contains(&stale(60, 20)), "{}", stale(60, 20));
        assert!((20..=25).contains(&stale(900, 20)), "{}", stale(900, 20));
        assert_eq!(stale(u32::MAX, 20), 20);
    }

    #[test]
    fn a_short_watch_over_blue_is_named_and_a_quarter_of_an_hour_is_enough() {
        fires(&spec(), &shop(), "DNS-17", Warning, "about 11 %");
        let mut s = spec();
        s.limits.soak_seconds = 900;
        silent(&s, &shop(), "DNS-17");
        silent(&spec(), &empty(), "DNS-17");
    }
}
