//! The observer sees broken promises, and only those.

use super::company::*;
use crate::object::{Side, uid};
use crate::world::World;
use crate::world::dns::Change;
use crate::world::probe::{HttpProbe, Via};
use serde_json::json;
use std::time::Instant;

async fn drained(w: &World, from: Side) {
    for _ in 0..100 {
        let s = w.data.stream("orders", from).await.unwrap();
        if s.copied && s.lag_bytes == 0 {
            return;
        }
        pass(1).await;
    }
    panic!("the stream never drained");
}

#[tokio::test(start_paused = true)]
async fn a_company_that_nobody_touches_breaks_no_promise_and_three_days_cost_little_real_time() {
    let real = Instant::now();
    let (t, w) = company();
    pass(3 * 86_400).await;
    assert_eq!(t.violations(), Vec::<String>::new());
    let seen = t.traffic();
    assert_eq!(seen.hosts, ["orders.shop.test", "www.shop.test"]);
    assert!(
        seen.reads["blue"] > 10_000 && seen.failed_reads == 0 && seen.acknowledged > 1000,
        "{seen:?}"
    );
    assert!(w.blue.identity().await.is_ok());
    assert!(real.elapsed().as_secs_f64() < 10.0, "{:?}", real.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_database_moves_behind_the_fence_without_losing_an_acknowledged_row() {
    let (t, w) = company();
    green_up(&w).await;
    green_workloads(&w).await;
    let d = &w.data;
    assert!(!d.state("orders", Side::Green).await.unwrap().has_schema);
    d.start_stream("orders", Side::Blue, true).await.unwrap();
    assert!(!d.stream("orders", Side::Blue).await.unwrap().copied);
    pass(70).await;
    d.set_writable("orders", Side::Blue, false).await.unwrap();
    assert!(!d.probe_write("orders", Side::Blue).await.unwrap());
    let write = HttpProbe {
        method: "POST".into(),
        host: "orders.shop.test".into(),
        path: "/orders".into(),
        body: None,
        via: Via::Dns,
    };
    assert_eq!(
        w.probe.http(&write).await.unwrap().status,
        503,
        "the fence is proven through the front door"
    );
    drained(&w, Side::Blue).await;
    assert_eq!(
        d.tables("orders", Side::Blue).await.unwrap(),
        d.tables("orders", Side::Green).await.unwrap()
    );
    d.copy_sequences("orders", Side::Blue).await.unwrap();
    d.stop_stream("orders", Side::Blue).await.unwrap();
    d.start_stream("orders", Side::Green, false).await.unwrap();
    let lb = w
        .green
        .get(&id("v1", "Service", "orders", "orders"))
        .await
        .unwrap()
        .unwrap();
    let lb = lb
        .pointer("/status/loadBalancer/ingress/0/hostname")
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned();
    scale(w.blue.as_ref(), "platform", "external-dns", 0).await;
    pass(10).await;
    w.dns
        .change(ZONE, &[Change::Upsert(alias("orders.shop.test.", &lb))], "")
        .await
        .unwrap();
    pass(120).await;
    d.set_writable("orders", Side::Green, true).await.unwrap();
    pass(60).await;
    assert_eq!(t.violations(), Vec::<String>::new());
    assert!(
        t.write_closed().as_secs() >= 130 && t.write_closed().as_secs() < 200,
        "{:?}",
        t.write_closed()
    );
    // And the new rows flow back.
    d.set_writable("orders", Side::Green, false).await.unwrap();
    drained(&w, Side::Green).await;
    assert_eq!(
        d.tables("orders", Side::Blue).await.unwrap(),
        d.tables("orders", Side::Green).await.unwrap()
    );
    assert!(t.traffic().refused_writes > 0);
}

#[tokio::test(start_paused = true)]
async fn open_on_both_sides_at_once_is_seen_even_for_a_moment() {
    let (t, w) = company();
    w.data
        .start_stream("orders", Side::Blue, true)
        .await
        .unwrap();
    pass(70).await;
    w.data
        .set_writable("orders", Side::Green, true)
        .await
        .unwrap();
    w.data
        .set_writable("orders", Side::Green, false)
        .await
        .unwrap();
    assert!(
        t.violations().iter().any(|v| v.contains("on both sides")),
        "{:?}",
        t.violations()
    );
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_sequence_and_a_switch_without_a_copy_are_seen() {
    let (t, w) = company();
    let d = &w.data;
    d.start_stream("orders", Side::Blue, true).await.unwrap();
    pass(70).await;
    // Not drained: the fence falls and green opens at once, and the stream is cut.
    d.stop_stream("orders", Side::Blue).await.unwrap();
    pass(30).await;
    d.set_writable("orders", Side::Blue, false).await.unwrap();
    d.set_writable("orders", Side::Green, true).await.unwrap();
    assert!(
        t.violations()
            .iter()
            .any(|v| v.contains("acknowledged rows of orders are missing on green")),
        "{:?}",
        t.violations()
    );
    pass(10).await;
    assert!(
        t.violations()
            .iter()
            .any(|v| v.contains("reached blue, which is closed, while the other side is open"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_delete_on_blue_is_seen() {
    let (t, w) = company();
    let at = id("v1", "Secret", "orders", "db");
    let o = w.blue.get(&at).await.unwrap().unwrap();
    w.blue.delete(&at, uid(&o).unwrap()).await.unwrap();
    assert!(
        t.violations()
            .iter()
            .any(|v| v.contains("DELETE on blue: secret/orders/db"))
    );
    assert_eq!(t.blue_writes().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn other_peoples_records_are_watched() {
    let (t, w) = company();
    w.dns
        .change(
            ZONE,
            &[Change::Upsert(record(
                "www.shop.test.",
                "A",
                20,
                &["198.51.100.10"],
            ))],
            "",
        )
        .await
        .unwrap();
    assert!(t.violations().is_empty());
    w.dns
        .change(
            ZONE,
            &[Change::Upsert(record(
                "legacy.shop.test.",
                "A",
                60,
                &["192.0.2.80"],
            ))],
            "",
        )
        .await
        .unwrap();
    assert!(
        t.violations()
            .iter()
            .any(|v| v.contains("record/legacy.shop.test/A belongs to somebody else"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_singleton_that_starts_on_green_while_blues_is_still_leaving_is_seen() {
    let (t, w) = company();
    green_up(&w).await;
    let mut consumer = deployment("platform", "consumer", 0, "consumer:1", &[]);
    consumer["spec"]["strategy"] = json!({"type":"Recreate"});
    create(&w, &consumer).await.unwrap();
    pass(5).await;
    assert!(t.violations().is_empty());
    scale(w.green.as_ref(), "platform", "consumer", 1).await;
    pass(10).await;
    assert!(
        t.violations()
            .iter()
            .any(|v| v.contains("deployment/platform/consumer must be single")),
        "{:?}",
        t.violations()
    );
}

#[tokio::test(start_paused = true)]
async fn clients_notice_a_cutover_to_a_side_without_pods_and_one_whose_old_side_stops_too_early() {
    let (t, w) = company();
    scale(w.blue.as_ref(), "platform", "external-dns", 0).await;
    pass(10).await;
    w.dns
        .change(
            ZONE,
            &[Change::Upsert(record(
                "www.shop.test.",
                "A",
                20,
                &["198.51.100.10"],
            ))],
            "",
        )
        .await
        .unwrap();
    pass(30).await;
    assert!(t.violations().is_empty(), "not yet in sync");
    pass(60).await;
    assert!(
        t.violations()
            .iter()
            .any(|v| v
                .contains("honours TTLs asked www.shop.test at 198.51.100.10: nothing answers")),
        "{:?}",
        t.violations()
    );
    let (t, w) = company();
    scale(w.blue.as_ref(), "storefront", "web", 0).await;
    pass(10).await;
    assert!(
        t.violations()
            .iter()
            .any(|v| v.contains("never asks DNS again asked www.shop.test")),
        "{:?}",
        t.violations()
    );
    drop(w);
}
