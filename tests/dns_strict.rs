//! The handover against the strict Route 53 (batches all or nothing, limits, pages of 300, five requests a second on demand): what a zone keeps, how
//! many calls a big wave needs, and faults on the wire.

#[path = "edns_ages/bench.rs"]
#[allow(dead_code)] // the binaries are another test's
mod bench;
#[path = "dns_strict/company.rs"]
mod company;

use company::*;
use crossfade::world::dns::{Alias, Change, RecordSet, Zone};
use crossfade::world::live;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use testkit::strict::log::{Fault, FaultKind};

async fn zone_of(b: &bench::Bench) -> Zone {
    b.dns
        .zones()
        .await
        .unwrap()
        .into_iter()
        .find(|z| !z.private)
        .unwrap()
}

/// Every routing policy, aliases with and without health, a wildcard, octal escapes, several values, an encrypted TXT, odd TTLs.
fn everything() -> Vec<RecordSet> {
    let routed = |name: &str, id: &str, ttl: u32, value: &str, fields: Value| {
        let mut r = record(name, "A", ttl, value);
        r.set_identifier = Some(id.into());
        for (k, v) in fields.as_object().into_iter().flatten() {
            r.routing.insert(k.clone(), v.clone());
        }
        r
    };
    let alias = |name: &str, rtype: &str, health: bool| RecordSet {
        ttl: None,
        values: vec![],
        alias: Some(Alias {
            zone_id: "Z32O12XQLNTSW2".into(),
            name: "a1.eu-west-1.elb.amazonaws.com.".into(),
            evaluate_target_health: health,
        }),
        ..record(name, rtype, 0, "")
    };
    let mut several = record(
        "many.shop.test",
        "TXT",
        300,
        "\"heritage=external-dns,external-dns/owner=shop-blue,external-dns/resource=ingress/a/b\"",
    );
    several.values.push("\"v=spf1 -all\"".into());
    several.values.push("\"two\" \"strings\"".into());
    vec![
        record("www.shop.test", "A", 20, "203.0.113.10"),
        record("cname.shop.test", "CNAME", 0, "target.example.org"),
        record("*.shop.test", "A", 2147483647, "203.0.113.11"),
        record("under_score.shop.test", "TXT", 7, "\"a\\\"b\""),
        several,
        record(
            "a-enc.shop.test",
            "TXT",
            300,
            "\"qUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5eg==\"",
        ),
        alias("alias.shop.test", "A", true),
        alias("alias.shop.test", "AAAA", false),
        routed("w.shop.test", "a", 60, "192.0.2.1", json!({"Weight": 0})),
        routed("w.shop.test", "b", 60, "192.0.2.2", json!({"Weight": 255})),
        routed(
            "l.shop.test",
            "eu",
            60,
            "192.0.2.3",
            json!({"Region": "eu-west-1"}),
        ),
        routed(
            "f.shop.test",
            "p",
            60,
            "192.0.2.4",
            json!({"Failover": "PRIMARY"}),
        ),
        routed(
            "f.shop.test",
            "s",
            60,
            "192.0.2.5",
            json!({"Failover": "SECONDARY"}),
        ),
        routed(
            "g.shop.test",
            "de",
            60,
            "192.0.2.6",
            json!({"GeoLocation": {"CountryCode": "DE"}}),
        ),
        routed(
            "g.shop.test",
            "world",
            60,
            "192.0.2.7",
            json!({"GeoLocation": {"CountryCode": "*"}}),
        ),
        routed(
            "m.shop.test",
            "one",
            60,
            "192.0.2.8",
            json!({"MultiValueAnswer": true}),
        ),
        routed(
            "p.shop.test",
            "near",
            60,
            "192.0.2.9",
            json!({"GeoProximityLocation": {"AWSRegion": "eu-west-1", "Bias": -10}}),
        ),
        routed(
            "c.shop.test",
            "net",
            60,
            "192.0.2.10",
            json!({"CidrRoutingConfig": {"CollectionId": "c8c02a84-aaaa-bbbb-e0d2-d833a2f80106", "LocationName": "office"}}),
        ),
    ]
}

#[tokio::test]
async fn dns_rule_02_a_zone_is_restored_byte_for_byte_whatever_stands_in_it() {
    let b = bench::Bench::new().await;
    let all = everything();
    b.put(&all).await;
    let listing = b.strict.zones()[0].listing();
    let kept = b.records().await;
    assert_eq!(kept.len(), all.len());
    let kinds: BTreeSet<String> = kept.iter().map(crossfade::edns::routing_of).collect();
    assert_eq!(kinds.len(), 8, "simple and seven policies: {kinds:?}");
    // Through a journal: what is kept is JSON.
    let text = serde_json::to_string(&kept).unwrap();
    b.put(&[record("other.shop.test", "A", 60, "192.0.2.99")])
        .await;
    let kept: Vec<RecordSet> = serde_json::from_str(&text).unwrap();
    b.put(&kept).await;
    assert_eq!(b.strict.zones()[0].listing(), listing);
}

#[tokio::test]
async fn dns_rule_17_five_thousand_names_take_the_calls_that_they_need_and_no_more() {
    let b = bench::Bench::new().await;
    let company = Company::of(5000, &zone_of(&b).await);
    company.seed(b.dns.as_ref()).await;
    let listing = b.strict.zones()[0].listing();
    let first = b.strict.calls().len();
    let record_sets = 2 * 5000 + 2;
    let cx = company.cx(b.dns.clone());
    let step = company.step();
    let (before, after) = drive(&cx, step.as_ref()).await;
    assert!(after["held"].is_null(), "{}", after["held"]);
    let needed = Needed::of(record_sets, 3 * 5000 + 2, &changes_of(&before, &after));
    needed.print();
    let made = calls_since(&b.strict, first, "test");
    let total: usize = made.values().sum();
    println!("calls made: {total} {made:?}");
    assert!(
        total as f64 <= 1.2 * needed.calls() as f64,
        "{total} calls for {}",
        needed.calls()
    );
    // At two a second for us, of the five that the account has (a tenant takes two): so long it takes at least, and so long at most.
    let least = needed.calls() as f64 / 2.0;
    let ours = total as f64 / 2.0;
    println!("at 2 requests a second: {ours:.0} s, {least:.0} s at least");
    assert!(ours <= 1.2 * least);
    // No batch was over the limits, none was refused, no name was split.
    let log: Vec<_> = b
        .strict
        .calls()
        .into_iter()
        .skip(first)
        .filter(|c| c.action == "ChangeResourceRecordSets")
        .collect();
    assert!(
        log.iter().all(|c| c.status == 200),
        "{:?}",
        log.iter().map(|c| c.status).collect::<Vec<_>>()
    );
    for call in &log {
        let changes = call.params["changes"].as_array().expect("logged");
        assert_eq!(changes.len() % 5, 0, "two deletes and three creates a name");
    }
    // And back, byte for byte.
    drive_back(&cx, step.as_ref(), &before, &after).await;
    assert_eq!(b.strict.zones()[0].listing(), listing);
}

#[tokio::test]
async fn faults_on_the_wire_at_every_call_of_a_wave_end_in_the_same_zone() {
    let b = bench::Bench::new().await;
    let company = Company::of(130, &zone_of(&b).await);
    company.seed(b.dns.as_ref()).await;
    let start = b.strict.zones()[0].listing();
    let calls = |action: &str, first: usize| {
        calls_since(&b.strict, first, "test")
            .get(action)
            .copied()
            .unwrap_or(0)
    };
    // Undisturbed: the end, and how many calls of each kind there are.
    let first = b.strict.calls().len();
    let cx = company.cx(b.dns.clone());
    let (before, after) = drive(&cx, company.step().as_ref()).await;
    let end = b.strict.zones()[0].listing();
    let counts: Vec<(&str, usize)> = [
        "ListHostedZones",
        "ListResourceRecordSets",
        "ChangeResourceRecordSets",
        "GetChange",
    ]
    .map(|a| (a, calls(a, first)))
    .to_vec();
    assert!(counts.iter().all(|(_, n)| *n > 0), "{counts:?}");
    drive_back(&cx, company.step().as_ref(), &before, &after).await;
    assert_eq!(b.strict.zones()[0].listing(), start);
    for (action, count) in counts {
        for nth in 1..=count {
            for kind in [
                FaultKind::Throttle,
                FaultKind::Error500,
                FaultKind::LostReply,
            ] {
                b.strict
                    .inject(Fault::new("route53", action, kind).nth(nth));
                let cx = company.cx(b.dns.clone());
                let (before, after) = drive(&cx, company.step().as_ref()).await;
                b.strict.clear_faults();
                let what = format!("{action} {nth} of {count}, {kind:?}");
                assert!(after["held"].is_null(), "{what}: {}", after["held"]);
                assert_eq!(b.strict.zones()[0].listing(), end, "{what}");
                b.strict
                    .inject(Fault::new("route53", action, kind).nth(nth));
                drive_back(&cx, company.step().as_ref(), &before, &after).await;
                b.strict.clear_faults();
                assert_eq!(b.strict.zones()[0].listing(), start, "{what}, and back");
            }
        }
    }
}

#[tokio::test]
async fn one_bad_name_of_three_hundred_is_found_in_a_few_calls_and_the_others_go_on() {
    let b = bench::Bench::new().await;
    let zone = zone_of(&b).await;
    let company = Company::of(300, &zone);
    company.seed(b.dns.as_ref()).await;
    let stone = record(
        "a-host-0123.shop.test",
        "TXT",
        300,
        "\"heritage=external-dns,external-dns/owner=other-team,external-dns/resource=ingress/x/y\"",
    );
    b.change(&[Change::Create(stone.clone())]).await;
    let first = b.strict.calls().len();
    let cx = company.cx(b.dns.clone());
    let (_, after) = drive(&cx, company.step().as_ref()).await;
    let held: Vec<&String> = after["held"].as_object().expect("one").keys().collect();
    assert_eq!(held, ["host-0123.shop.test"]);
    assert!(
        after["held"]["host-0123.shop.test"]
            .to_string()
            .contains("already exists"),
        "{}",
        after["held"]
    );
    let records = b.records().await;
    let on_green = records
        .iter()
        .filter(|r| r.values == ["198.51.100.10"])
        .count();
    assert_eq!(on_green, 299);
    assert!(records.contains(&stone));
    let changes = calls_since(&b.strict, first, "test")["ChangeResourceRecordSets"];
    // Three batches undisturbed; the bad one is sent three times: whole, without the bad name, and the bad name alone.
    assert!(changes <= 6, "{changes} batches");
}

#[tokio::test]
async fn beside_a_tenant_of_the_account_the_pace_follows_what_is_let_through() {
    let b = bench::Bench::new().await;
    let company = Company::of(60, &zone_of(&b).await);
    company.seed(b.dns.as_ref()).await;
    b.strict.throttle_route53(Some(5));
    // A pace that the account has no room for: it is throttled, slows down, and comes through without an error of the step.
    let greedy = live::route_53(bench::sdk(&b.strict, "GREEDY"), 20.0);
    let other: Arc<dyn crossfade::world::dns::Dns> =
        live::route_53(bench::sdk(&b.strict, "TENANT"), 50.0);
    let tenant = tenant(other, 2.0);
    let cx = company.cx(greedy);
    let (_, after) = drive(&cx, company.step().as_ref()).await;
    tenant.abort();
    assert!(after["held"].is_null());
    let refused = |who: &str| {
        b.strict
            .calls()
            .iter()
            .filter(|c| c.who == who && c.status == 400)
            .count()
    };
    assert!(refused("GREEDY") > 0, "it was throttled");
    let got = b
        .strict
        .calls()
        .iter()
        .filter(|c| c.who == "GREEDY" && c.status == 200)
        .count();
    assert!(
        refused("GREEDY") <= got,
        "and stepped back: {} refused, {got} let through",
        refused("GREEDY")
    );
}
