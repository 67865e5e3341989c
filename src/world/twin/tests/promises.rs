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
async fn a_company_that_nobody_touches_breaks_no_promise_and_a_day_costs_little_real_time() {
    let real = Instant::now();
    let (t, w) = company();
    pass(86_400).await;
    assert_eq!(t.violations(), Vec::<String>::new());
    let seen = t.traffic();
    assert_eq!(seen.hosts, ["orders.shop.test", "www.shop.test"]);
    assert!(
        seen.reads["blue"] > 5_000 && seen.failed_reads == 0 && seen.acknowledged > 1000,
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

#[tokio::test(start_paused = true)]
async fn a_service_account_whose_role_does_not_trust_green_is_seen_and_its_external_dns_can_write_nothing()
 {
    use crate::world::cloud::Resource;
    let (t, w) = company();
    green_up(&w).await;
    green_workloads(&w).await;
    scale(w.blue.as_ref(), "platform", "external-dns", 0).await;
    let found = w.cloud.find(&cluster()).await.unwrap().unwrap();
    let issuer = found.attributes["issuer"].clone();
    let account = json!({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"external-dns","namespace":"platform",
        "annotations":{"eks.amazonaws.com/role-arn":"arn:aws:iam::000000000000:role/shop-mailer"}}});
    create(&w, &account).await.unwrap();
    let mut edns = external_dns("v0.21.0", "shop-blue", "upsert-only");
    edns["spec"]["template"]["spec"]["serviceAccountName"] = json!("external-dns");
    create(&w, &edns).await.unwrap();
    pass(30).await;
    assert!(
        t.violations()
            .iter()
            .any(|v| v.contains("cannot assume arn:aws:iam::000000000000:role/shop-mailer")),
        "{:?}",
        t.violations()
    );
    assert!(t.external_dns_log().is_empty());
    ensure(
        &w,
        &Resource::OidcProvider {
            issuer: format!("https://{issuer}"),
            client_ids: vec!["sts.amazonaws.com".into()],
        },
    )
    .await;
    ensure(&w, &Resource::TrustStatement {
        role: "shop-mailer".into(),
        sid: "CrossfadeShop".into(),
        statement: json!({"Effect":"Allow","Principal":{"Federated":format!("arn:aws:iam::000000000000:oidc-provider/{issuer}")},"Action":"sts:AssumeRoleWithWebIdentity"}),
    })
    .await;
    // The next change anywhere in its inputs wakes it.
    w.dns
        .change(
            ZONE,
            &[Change::Create(record(
                "x.shop.test.",
                "A",
                60,
                &["192.0.2.1"],
            ))],
            "",
        )
        .await
        .unwrap();
    pass(10).await;
    assert!(!t.external_dns_log().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_company_written_by_hand_makes_its_own_records_before_it_is_watched() {
    use crate::world::twin::{Options, Twin};
    let mut s = snapshot();
    for o in &mut s.blue.objects {
        o.as_object_mut().unwrap().remove("status");
    }
    s.zones[0]
        .records
        .retain(|r| !r.name.starts_with("www.") && !r.name.starts_with("orders."));
    let t = Twin::new(
        &s,
        &spec(),
        Options {
            warm_up: std::time::Duration::from_secs(120),
            ..Options::default()
        },
    );
    let w = t.world();
    assert_eq!(
        zone_record(&w, "www.shop.test.", "A").await.unwrap(),
        record("www.shop.test.", "A", 20, &["203.0.113.10"])
    );
    assert!(
        zone_record(&w, "orders.shop.test.", "A")
            .await
            .unwrap()
            .alias
            .is_some()
    );
    pass(60).await;
    assert_eq!(t.traffic().hosts, ["orders.shop.test", "www.shop.test"]);
    assert!(t.violations().is_empty(), "{:?}", t.violations());
}

#[tokio::test(start_paused = true)]
async fn a_dump_without_status_takes_its_addresses_from_the_zone() {
    let mut s = snapshot();
    for o in &mut s.blue.objects {
        o.as_object_mut().unwrap().remove("status");
    }
    let (t, w) = of(&s);
    pass(60).await;
    assert!(
        t.external_dns_log().is_empty(),
        "{:?}",
        t.external_dns_log()
    );
    let service = w
        .blue
        .get(&id("v1", "Service", "orders", "orders"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        service
            .pointer("/status/loadBalancer/ingress/0/hostname")
            .unwrap(),
        BLUE_LB
    );
}

#[tokio::test(start_paused = true)]
async fn an_hour_of_a_hundred_objects_with_a_call_every_few_seconds_costs_about_a_second() {
    let mut s = snapshot();
    for n in 0..60 {
        let name = format!("app{n}");
        s.blue
            .objects
            .push(deployment("storefront", &name, 2, "app:1", &[]));
        s.blue.objects.push(service("storefront", &name));
        if n < 10 {
            let host = format!("h{n}.shop.test");
            s.blue.objects.push(json!({"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":name,"namespace":"storefront"},
                "spec":{"rules":[{"host":host,"http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":name,"port":{"number":80}}}}]}}]},
                "status":{"loadBalancer":{"ingress":[{"ip":"203.0.113.10"}]}}}));
            s.zones[0]
                .records
                .push(record(&format!("{host}."), "A", 300, &["203.0.113.10"]));
            s.zones[0].records.push(record(
                &format!("{host}."),
                "TXT",
                300,
                &[&heritage(
                    "shop-blue",
                    &format!("ingress/storefront/{name}"),
                )],
            ));
        }
    }
    let (t, w) = of(&s);
    let real = Instant::now();
    for n in 0..600 {
        pass(6).await;
        if n % 10 == 0 {
            scale(
                w.blue.as_ref(),
                "storefront",
                &format!("app{}", n / 10),
                2 + n / 300,
            )
            .await;
        } else {
            w.blue
                .get(&id("apps/v1", "Deployment", "storefront", "web"))
                .await
                .unwrap();
        }
    }
    assert_eq!(t.violations(), Vec::<String>::new());
    assert!(real.elapsed().as_secs_f64() < 10.0, "{:?}", real.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_thousand_rehearsals_can_each_have_a_fresh_twin() {
    let mut s = snapshot();
    for n in 0..60 {
        let name = format!("app{n}");
        s.blue
            .objects
            .push(deployment("storefront", &name, 2, "app:1", &[]));
        s.blue.objects.push(service("storefront", &name));
    }
    let real = Instant::now();
    for _ in 0..10 {
        of(&s);
    }
    eprintln!("TWIN NEW {:?}", real.elapsed() / 10);
    let (t, _) = of(&s);
    let real2 = Instant::now();
    for _ in 0..10 {
        t.fork();
    }
    eprintln!("TWIN FORK {:?}", real2.elapsed() / 10);
    assert!(real.elapsed().as_secs_f64() < 10.0, "{:?}", real.elapsed());
}
