//! How fast Route 53 is asked. AWS counts five requests a second for a whole account, and others of the company use the same five: so the pace
//! begins at a declared share and follows what the account really lets through.

use std::time::Duration;

/// Longest pause between two requests while the account is busy.
const LONGEST: Duration = Duration::from_secs(8);

/// The pause between two requests, by what was answered. Pure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    base: Duration,
    gap: Duration,
}

impl Pace {
    /// `base` is the pause of our declared share: it never gets shorter.
    pub(super) fn new(base: Duration) -> Pace {
        Pace { base, gap: base }
    }
    /// Pause before the next request.
    pub(super) fn gap(&self) -> Duration {
        self.gap
    }
    /// A request went through: a tenth faster, down to the declared share.
    pub(super) fn answered(&mut self) {
        self.gap = (self.gap * 9 / 10).max(self.base);
    }
    /// The account is over its rate: half as fast, so that its other tenants get through too.
    pub(super) fn throttled(&mut self) {
        self.gap = (self.gap * 2).clamp(self.base, LONGEST.max(self.base));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An account that lets five requests a second through, of which others take `others`; answers requests a second that we get through, and the
    /// share of our requests that was refused, in thousandths, over ten minutes.
    fn simulate(base_ms: u64, others: u64) -> (f64, u64) {
        let mut pace = Pace::new(Duration::from_millis(base_ms));
        let (mut now, mut ours, mut refused) = (Duration::ZERO, vec![], 0u64);
        while now < Duration::from_secs(600) {
            let window = ours
                .iter()
                .rev()
                .take_while(|at| now - **at < Duration::from_secs(1));
            if window.count() as u64 + others >= 5 {
                refused += 1;
                pace.throttled();
            } else {
                ours.push(now);
                pace.answered();
            }
            now += pace.gap();
        }
        let all = ours.len() as u64 + refused;
        (ours.len() as f64 / 600.0, refused * 1000 / all)
    }

    #[test]
    fn beside_a_tenant_of_two_a_second_our_two_go_through_and_nothing_is_refused() {
        let (rate, refused) = simulate(500, 2);
        assert!((rate - 2.0).abs() < 0.01, "{rate}");
        assert_eq!(refused, 0);
    }

    #[test]
    fn in_a_busy_account_we_step_back_and_never_stand_still() {
        let (rate, refused) = simulate(500, 4);
        assert!(rate > 0.5 && rate <= 1.0, "one a second is left: {rate}");
        assert!(refused < 200, "{refused} of 1000 refused");
        let (rate, _) = simulate(500, 5);
        assert_eq!(rate, 0.0);
    }

    #[test]
    fn after_a_storm_the_declared_share_is_reached_again_and_never_passed() {
        let base = Duration::from_millis(500);
        let mut pace = Pace::new(base);
        for _ in 0..10 {
            pace.throttled();
        }
        assert_eq!(pace.gap(), LONGEST);
        for _ in 0..40 {
            pace.answered();
        }
        assert_eq!(pace.gap(), base);
    }
}
