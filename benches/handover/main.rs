//! Wall clock of a handover of 5,000 names beside another tenant of the account: `cargo bench --bench handover`. Prints the calls that are needed and
//! why no fewer would do, the calls that were made, and the time against the least possible one.

#[path = "../../tests/edns_ages/bench.rs"]
#[allow(dead_code)] // the binaries are a test's
mod bench;
#[path = "../../tests/dns_strict/company.rs"]
#[allow(dead_code)] // some of it is a test's
mod company;

use company::*;
use crossfade::world::live;
use std::time::Instant;

/// Our share of the account, requests a second.
const OURS: f64 = 2.0;

#[tokio::main(flavor = "multi_thread")]
async fn main() {
    let names = std::env::var("NAMES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(5000);
    let b = bench::Bench::new().await;
    let zone = b.zone.clone();
    let company = Company::of(names, &zone);
    company.seed(b.dns.as_ref()).await;
    b.strict.throttle_route53(Some(5));
    let other = tenant(live::route_53(bench::sdk(&b.strict, "TENANT"), 50.0), 2.0);
    let first = b.strict.calls().len();
    let cx = company.cx(live::route_53(bench::sdk(&b.strict, "OURS"), OURS));
    let step = company.step();
    let began = Instant::now();
    let (before, after) = drive(&cx, step.as_ref()).await;
    let took = began.elapsed().as_secs_f64();
    other.abort();
    let needed = Needed::of(2 * names + 2, 3 * names + 2, &changes_of(&before, &after));
    needed.print();
    let made = calls_since(&b.strict, first, "OURS");
    let total: usize = made.values().sum();
    let least = needed.calls() as f64 / OURS;
    println!("calls made: {total} {made:?}");
    let refused = b
        .strict
        .calls()
        .iter()
        .skip(first)
        .filter(|c| c.status == 400 && c.who != "TENANT")
        .count();
    println!(
        "throttled: {refused} of ours; the account lets 5 a second through, the tenant takes 2, our budget is {OURS}"
    );
    println!(
        "{names} names in {took:.1} s; at least {least:.1} s; ratio {:.3} (at most 1.2)",
        took / least
    );
    assert!(took <= 1.2 * least, "too slow");
}
