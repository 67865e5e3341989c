//! Route 53: eks.md 7 lists what emulators get wrong; here it must be right.

use super::company::*;
use crate::world::Class;
use crate::world::dns::Change;
use crate::world::probe::{HttpProbe, Via};

#[tokio::test(start_paused = true)]
async fn a_batch_with_one_wrong_change_changes_nothing_at_all() {
    let (_, w) = company();
    let before = w.dns.records(ZONE).await.unwrap();
    let batch = [
        Change::Create(record("new.shop.test.", "A", 60, &["192.0.2.1"])),
        Change::Upsert(record("www.shop.test.", "A", 60, &["192.0.2.9"])),
        Change::Create(record("mail.shop.test.", "A", 300, &["192.0.2.26"])),
    ];
    let e = w.dns.change(ZONE, &batch, "").await.unwrap_err();
    assert_eq!(e.class, Class::Conflict);
    assert!(e.message.contains("already exists"), "{e}");
    assert_eq!(w.dns.records(ZONE).await.unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn a_delete_must_name_the_exact_value_and_ttl() {
    let (_, w) = company();
    for wrong in [
        record("www.shop.test.", "A", 60, &["203.0.113.10"]),
        record("www.shop.test.", "A", 20, &["203.0.113.11"]),
    ] {
        let e = w
            .dns
            .change(ZONE, &[Change::Delete(wrong)], "")
            .await
            .unwrap_err();
        assert_eq!(e.class, Class::Conflict);
    }
    let swap = [
        Change::Delete(record("www.shop.test.", "A", 20, &["203.0.113.10"])),
        Change::Create(record("www.shop.test.", "A", 20, &["198.51.100.10"])),
    ];
    w.dns.change(ZONE, &swap, "").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_route_53_refuses_is_refused() {
    let (_, w) = company();
    let refused = |r| {
        let w = w.clone();
        async move {
            w.dns
                .change(ZONE, &[Change::Upsert(r)], "")
                .await
                .unwrap_err()
                .class
        }
    };
    assert_eq!(
        refused(record("x.other.test.", "A", 60, &["192.0.2.1"])).await,
        Class::Refused
    );
    assert_eq!(
        refused(record("x.shop.test.", "A", 60, &["500.0.2.1"])).await,
        Class::Refused
    );
    assert_eq!(
        refused(record("x.shop.test.", "TXT", 60, &["unquoted"])).await,
        Class::Refused
    );
    assert_eq!(
        refused(record("shop.test.", "CNAME", 60, &["x.test."])).await,
        Class::Refused
    );
    assert_eq!(
        refused(record("mail.shop.test.", "CNAME", 60, &["x.test."])).await,
        Class::Conflict
    );
    let mut no_ttl = record("x.shop.test.", "A", 60, &["192.0.2.1"]);
    no_ttl.ttl = None;
    assert_eq!(refused(no_ttl).await, Class::Refused);
    let many: Vec<Change> = (0..501)
        .map(|n| Change::Upsert(record(&format!("n{n}.shop.test."), "A", 60, &["192.0.2.1"])))
        .collect();
    assert_eq!(
        w.dns.change(ZONE, &many, "").await.unwrap_err().class,
        Class::Refused,
        "an UPSERT counts twice"
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_reaches_the_name_servers_only_when_it_is_in_sync() {
    let (_, w) = company();
    let id = w
        .dns
        .change(
            ZONE,
            &[Change::Create(record(
                "new.shop.test.",
                "A",
                60,
                &["192.0.2.1"],
            ))],
            "",
        )
        .await
        .unwrap();
    assert!(!w.dns.in_sync(&id).await.unwrap());
    assert_eq!(
        w.probe
            .resolve("new.shop.test", "A")
            .await
            .unwrap_err()
            .class,
        Class::NotFound
    );
    pass(41).await;
    assert!(w.dns.in_sync(&id).await.unwrap());
    assert_eq!(
        w.probe.resolve("new.shop.test", "A").await.unwrap().values,
        ["192.0.2.1"]
    );
}

#[tokio::test(start_paused = true)]
async fn listings_are_ordered_by_reversed_labels_as_route_53_does() {
    let (_, w) = company();
    let batch = [
        Change::Create(record("a.z.shop.test.", "A", 60, &["192.0.2.1"])),
        Change::Create(record("*.shop.test.", "A", 60, &["192.0.2.1"])),
        Change::Create(record("zz.shop.test.", "A", 60, &["192.0.2.1"])),
    ];
    w.dns.change(ZONE, &batch, "").await.unwrap();
    let names: Vec<String> = w
        .dns
        .records(ZONE)
        .await
        .unwrap()
        .into_iter()
        .map(|r| r.name)
        .collect();
    let place = |n: &str| names.iter().position(|x| x == n).unwrap();
    assert_eq!(place("shop.test."), 0);
    assert!(place("*.shop.test.") < place("legacy.shop.test."));
    assert!(place("www.shop.test.") < place("a.z.shop.test."));
    assert!(place("a.z.shop.test.") < place("zz.shop.test."));
}

#[tokio::test(start_paused = true)]
async fn a_probe_goes_where_dns_or_the_given_load_balancer_points() {
    let (_, w) = company();
    green_up(&w).await;
    green_workloads(&w).await;
    let ask = |via| HttpProbe {
        method: "GET".into(),
        host: "www.shop.test".into(),
        path: "/".into(),
        body: None,
        via,
    };
    let blue = w.probe.http(&ask(Via::Dns)).await.unwrap();
    let green = w
        .probe
        .http(&ask(Via::LoadBalancer("198.51.100.10".into())))
        .await
        .unwrap();
    assert_eq!(
        (blue.status, blue.headers["x-served-by"].as_str()),
        (200, "blue")
    );
    assert_eq!(
        (green.status, green.headers["x-served-by"].as_str()),
        (200, "green")
    );
    assert_eq!(blue.body_sha256, green.body_sha256);
    let e = w
        .probe
        .http(&ask(Via::LoadBalancer("192.0.2.1".into())))
        .await
        .unwrap_err();
    assert_eq!(e.class, Class::Unreachable);
}
