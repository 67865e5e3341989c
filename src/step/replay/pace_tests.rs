//! The controller against servers as measured: a small CPU-bound API server (best at about 16 in flight, half of that at 64), the same
//! 20 ms away, one that refuses more than ten at once, and one that gets slow in the middle of it.

use super::*;
use std::collections::BinaryHeap;

/// A closed loop: requests wait for one of two processors, use it, and travel and wait for the disk besides.
struct Server {
    /// Seconds of a processor for one request.
    work: f64,
    /// From this number on each one more in flight costs the others (memory, scheduling), and how much of `work`.
    crowd: f64,
    crowding: f64,
    /// Seconds on the way and on the disk.
    way: f64,
    /// Refuses when more are in flight.
    most: usize,
}

const SMALL: Server = Server {
    work: 0.0055,
    crowd: 18.0,
    crowding: 0.02,
    way: 0.032,
    most: usize::MAX,
};

struct Run {
    seconds: f64,
    refused: usize,
    limits: Vec<usize>,
}

impl Run {
    fn rate(&self, requests: usize) -> f64 {
        requests as f64 / self.seconds
    }
}

/// Sends so many requests, `limit()` of them at once.
fn run(
    server: impl Fn(f64) -> Server,
    requests: usize,
    mut limit: impl FnMut() -> usize,
    mut told: impl FnMut(Duration, Result<Duration, ()>),
) -> Run {
    let at = Duration::from_secs_f64;
    let (mut now, mut sent, mut answered, mut refused) = (0.0_f64, 0, 0, 0);
    let mut processors = [0.0_f64; 2];
    // Ends as (micros, sequence, micros it took); refused ones come back after a second.
    let mut flying: BinaryHeap<std::cmp::Reverse<(u64, usize, u64, bool)>> = BinaryHeap::new();
    let mut limits = vec![];
    let mut again = 0;
    while answered < requests {
        while flying.len() < limit() && (sent < requests || again > 0) {
            let server = server(now);
            let n = flying.len();
            if again > 0 {
                again -= 1;
            } else {
                sent += 1;
            }
            let (took, fine) = if n >= server.most {
                (0.001, false)
            } else {
                let crowded = 1.0 + (n as f64 - server.crowd).max(0.0) * server.crowding;
                let p = usize::from(processors[1] < processors[0]);
                let begin = processors[p].max(now + server.way / 2.0);
                // Requests differ by half up and down, in a fixed pattern.
                let varied = server.work * (0.5 + (sent * 37 % 101) as f64 / 100.0);
                processors[p] = begin + varied * crowded;
                (processors[p] + server.way / 2.0 - now, true)
            };
            let end = ((now + took) * 1e6) as u64;
            flying.push(std::cmp::Reverse((
                end,
                sent + answered + refused,
                (took * 1e6) as u64,
                fine,
            )));
        }
        let std::cmp::Reverse((end, _, took, fine)) = flying.pop().unwrap();
        now = end as f64 / 1e6;
        limits.push(limit());
        if fine {
            answered += 1;
            told(at(now), Ok(Duration::from_micros(took)));
        } else {
            refused += 1;
            again += 1;
            told(at(now), Err(()));
            now += 0.01;
        }
    }
    Run {
        seconds: now,
        refused,
        limits,
    }
}

fn paced(server: impl Fn(f64) -> Server, requests: usize, learned: Option<Learned>) -> (Run, Pace) {
    let pace = std::cell::RefCell::new(Pace::new(None, learned));
    let result = run(
        server,
        requests,
        || pace.borrow().limit(),
        |now, answer| match answer {
            Ok(took) => pace.borrow_mut().answered(now, took),
            Err(()) => pace.borrow_mut().throttled(now),
        },
    );
    (result, pace.into_inner())
}

fn fixed(server: impl Fn(f64) -> Server, requests: usize, width: usize) -> f64 {
    run(server, requests, || width, |_, _| {}).rate(requests)
}

/// The best that any fixed number gives, and which.
fn best(server: impl Fn(f64) -> Server + Copy, requests: usize) -> (f64, usize) {
    [1, 2, 4, 8, 12, 16, 20, 24, 32, 48, 64]
        .into_iter()
        .map(|w| (fixed(server, requests, w), w))
        .fold((0.0, 0), |a, b| if b.0 > a.0 { b } else { a })
}

#[test]
fn the_model_is_the_server_that_was_measured() {
    let small = |_: f64| SMALL;
    let (rate, width) = best(small, 4000);
    assert!((320.0..=410.0).contains(&rate), "{rate}");
    assert!((12..=24).contains(&width), "{width}");
    let crowded = fixed(small, 4000, 64);
    assert!((170.0..=230.0).contains(&crowded), "{crowded}");
}

#[test]
fn a_small_server_is_used_to_at_least_nine_tenths_of_its_best_from_the_first_request_on() {
    let small = |_: f64| SMALL;
    let (rate, _) = best(small, 4000);
    let (run, pace) = paced(small, 4000, None);
    assert!(
        run.rate(4000) >= 0.93 * rate,
        "{} of {rate}; {:?}",
        run.rate(4000),
        pace.learned()
    );
    assert!(
        run.limits.iter().all(|l| *l <= 36),
        "never crowded: {:?}",
        run.limits.iter().max()
    );
}

#[test]
fn with_20_ms_on_the_way_more_are_in_flight_and_the_rate_is_nearly_the_same() {
    let near = best(|_| SMALL, 4000);
    let far = |_: f64| Server {
        way: SMALL.way + 0.02,
        crowd: 28.0,
        ..SMALL
    };
    let (run, pace) = paced(far, 4000, None);
    assert!(
        run.rate(4000) >= 0.88 * near.0,
        "{} of {}; {:?}",
        run.rate(4000),
        near.0,
        pace.learned()
    );
    assert!(pace.learned().in_flight > 16, "{:?}", pace.learned());
}

#[test]
fn a_server_that_refuses_more_than_ten_at_once_is_soon_left_at_that() {
    let strict = |_: f64| Server { most: 10, ..SMALL };
    let (run, pace) = paced(strict, 4000, None);
    assert!(run.refused < 60, "{} refused of 4000", run.refused);
    assert!(pace.learned().in_flight <= 10, "{:?}", pace.learned());
    let open = fixed(strict, 4000, 10);
    assert!(run.rate(4000) > 0.75 * open, "{} of {open}", run.rate(4000));
}

#[test]
fn a_server_that_gets_slow_is_left_with_fewer_and_a_fast_one_gets_more_again() {
    // Between the 5th and the 15th second somebody else takes a lot of it: crowding begins at 4.
    let busy = |now: f64| match (5.0..15.0).contains(&now) {
        true => Server {
            crowd: 4.0,
            crowding: 0.12,
            ..SMALL
        },
        false => SMALL,
    };
    let (run, _) = paced(busy, 8000, None);
    let widest_early = run.limits.iter().take(1200).max().copied().unwrap_or(0);
    let narrowest = run.limits.iter().skip(1200).min().copied().unwrap_or(0);
    assert!(
        narrowest * 10 <= widest_early * 8,
        "from {widest_early} to {narrowest}"
    );
    assert!(
        run.rate(8000) > 0.8 * fixed(busy, 8000, 12),
        "{}",
        run.rate(8000)
    );
}

#[test]
fn what_a_wave_found_is_where_the_next_one_begins() {
    let (_, pace) = paced(|_| SMALL, 2000, None);
    let learned = pace.learned();
    assert!(learned.settled);
    let next = Pace::new(None, Some(learned));
    assert_eq!(next.limit(), learned.in_flight);
    // A short wave tells nothing: the climb goes on in the next.
    let (_, short) = paced(|_| SMALL, 20, None);
    assert_eq!(
        short.learned(),
        Learned {
            in_flight: 8,
            settled: false,
            quickest: None
        }
    );
}

#[test]
fn the_user_can_only_set_an_upper_bound() {
    let pace = Pace::new(Some(3), None);
    assert_eq!(pace.limit(), 3);
    let (_, pace) = {
        let pace = std::cell::RefCell::new(pace);
        let r = run(
            |_| SMALL,
            2000,
            || pace.borrow().limit(),
            |now, a| {
                if let Ok(took) = a {
                    pace.borrow_mut().answered(now, took)
                }
            },
        );
        assert!(r.limits.iter().all(|l| *l <= 3));
        (r, pace.into_inner())
    };
    assert!(pace.limit() <= 3);
    assert_eq!(Pace::new(Some(1000), None).most as usize, MOST);
}

#[test]
fn an_idle_end_of_a_wave_teaches_nothing() {
    let mut pace = Pace::new(None, None);
    for n in 1..=200_u64 {
        pace.idle();
        pace.answered(Duration::from_millis(n * 50), Duration::from_millis(5));
    }
    assert_eq!(pace.limit(), 8);
}

#[test]
fn a_storm_of_429_of_one_moment_counts_once() {
    let mut pace = Pace::new(None, None);
    for _ in 0..8 {
        pace.throttled(Duration::from_secs(1));
    }
    assert_eq!(pace.limit(), 4, "halved once, not eight times");
    let mut pace = Pace::new(None, None);
    pace.lost(Duration::from_secs(1));
    assert_eq!(pace.limit(), 6);
}
