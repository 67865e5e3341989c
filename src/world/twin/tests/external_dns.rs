//! The fights of externaldns.md section 9, with instances that really run.

use super::company::*;
use crate::object::Side;
use crate::world::World;
use crate::world::dns::Change;
use serde_json::json;

/// Brings green's ExternalDNS up.
async fn start_green(w: &World, version: &str, owner: &str, policy: &str) {
    create(w, &external_dns(version, owner, policy))
        .await
        .unwrap();
    pass(15).await;
}

#[tokio::test(start_paused = true)]
async fn a_consistent_company_gives_blues_external_dns_nothing_to_do() {
    let (t, w) = company();
    let before = w.dns.records(ZONE).await.unwrap();
    pass(3600).await;
    assert_eq!(t.external_dns_log(), Vec::<String>::new());
    assert_eq!(w.dns.records(ZONE).await.unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn trap_1_green_writes_a_typed_txt_and_blue_with_the_legacy_one_flips_the_record_back() {
    // The same owner id on both sides, as in "simplest" way A.
    let (t, w) = company();
    green_up(&w).await;
    green_workloads(&w).await;
    scale(w.blue.as_ref(), "platform", "external-dns", 0).await;
    pass(10).await;
    start_green(&w, "v0.21.0", "shop-blue", "upsert-only").await;
    assert_eq!(
        zone_record(&w, "www.shop.test.", "A").await.unwrap().values,
        ["198.51.100.10"]
    );
    scale(w.blue.as_ref(), "platform", "external-dns", 1).await;
    pass(15).await;
    let www = zone_record(&w, "www.shop.test.", "A").await.unwrap().values;
    let fights = t
        .external_dns_log()
        .iter()
        .filter(|l| l.contains("www.shop.test. A"))
        .count();
    assert!(
        fights >= 3,
        "both write, again and again: {fights}, now {www:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn with_every_txt_rewritten_a_resurrected_blue_is_harmless() {
    let (t, w) = company();
    green_up(&w).await;
    green_workloads(&w).await;
    let lb = {
        let s = w
            .green
            .get(&id("v1", "Service", "orders", "orders"))
            .await
            .unwrap()
            .unwrap();
        s.pointer("/status/loadBalancer/ingress/0/hostname")
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned()
    };
    let batch = [
        Change::Upsert(record("www.shop.test.", "A", 20, &["198.51.100.10"])),
        Change::Upsert(record(
            "www.shop.test.",
            "TXT",
            300,
            &[&heritage("shop-green", "ingress/storefront/web")],
        )),
        Change::Upsert(alias("orders.shop.test.", &lb)),
        Change::Upsert(record(
            "orders.shop.test.",
            "TXT",
            300,
            &[&heritage("shop-green", "service/orders/orders")],
        )),
    ];
    w.dns.change(ZONE, &batch, "").await.unwrap();
    pass(60).await;
    assert_eq!(
        t.external_dns_log(),
        Vec::<String>::new(),
        "blue runs, and sees a foreign owner"
    );
    start_green(&w, "v0.21.0", "shop-green", "upsert-only").await;
    let www = zone_record(&w, "www.shop.test.", "A").await.unwrap();
    assert_eq!(
        (www.ttl, www.values),
        (Some(20), vec!["198.51.100.10".to_owned()])
    );
    assert!(!t.external_dns_log().iter().any(|l| l.contains("DELETE")));
    pass(600).await;
    let settled = t.external_dns_log().len();
    pass(600).await;
    assert_eq!(t.external_dns_log().len(), settled, "nobody fights");
}

#[tokio::test(start_paused = true)]
async fn trap_5_green_with_sync_the_same_owner_and_a_pending_load_balancer_deletes_the_name() {
    let (t, w) = company();
    green_up(&w).await;
    scale(w.blue.as_ref(), "platform", "external-dns", 0).await;
    pass(10).await;
    // Nothing was replayed: no target on green for any name. 0.10.2 reads and writes the legacy TXT, so its DELETE is complete.
    start_green(&w, "v0.10.2", "shop-blue", "sync").await;
    assert_eq!(zone_record(&w, "www.shop.test.", "A").await, None);
    pass(120).await;
    assert!(
        t.violations()
            .iter()
            .any(|v| v.contains("could not resolve www.shop.test")),
        "{:?}",
        t.violations()
    );
}

#[tokio::test(start_paused = true)]
async fn trap_5_accident_a_version_that_expects_a_typed_txt_cannot_delete_what_has_only_the_legacy_one()
 {
    let (t, w) = company();
    green_up(&w).await;
    scale(w.blue.as_ref(), "platform", "external-dns", 0).await;
    pass(10).await;
    start_green(&w, "v0.21.0", "shop-blue", "sync").await;
    assert!(
        t.external_dns_log()
            .iter()
            .any(|l| l.contains("DELETE www.shop.test. A (refused)")),
        "{:?}",
        t.external_dns_log()
    );
    assert!(zone_record(&w, "www.shop.test.", "A").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn trap_10_a_lowered_ttl_without_annotation_jumps_to_300_at_greens_first_upsert() {
    let mut s = snapshot();
    for o in &mut s.blue.objects {
        if o["kind"] == "Ingress" {
            o["metadata"].as_object_mut().unwrap().remove("annotations");
        }
    }
    for r in &mut s.zones[0].records {
        if r.name == "www.shop.test." && r.rtype == "A" {
            r.ttl = Some(300);
        }
    }
    let (_, w) = of(&s);
    green_up(&w).await;
    w.dns
        .change(
            ZONE,
            &[Change::Upsert(record(
                "www.shop.test.",
                "A",
                60,
                &["203.0.113.10"],
            ))],
            "",
        )
        .await
        .unwrap();
    pass(60).await;
    assert_eq!(
        zone_record(&w, "www.shop.test.", "A").await.unwrap().ttl,
        Some(60),
        "blue leaves an un-annotated TTL alone"
    );
    scale(w.blue.as_ref(), "platform", "external-dns", 0).await;
    green_workloads(&w).await;
    let at = id("networking.k8s.io/v1", "Ingress", "storefront", "web");
    w.green
        .merge(&at, &json!({"metadata":{"annotations":null}}))
        .await
        .unwrap();
    start_green(&w, "v0.21.0", "shop-blue", "upsert-only").await;
    let www = zone_record(&w, "www.shop.test.", "A").await.unwrap();
    assert_eq!(
        (www.ttl, www.values),
        (Some(300), vec!["198.51.100.10".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn trap_12_a_running_blue_takes_a_directly_lowered_annotated_ttl_back() {
    let (t, w) = company();
    w.dns
        .change(
            ZONE,
            &[Change::Upsert(record(
                "www.shop.test.",
                "A",
                5,
                &["203.0.113.10"],
            ))],
            "",
        )
        .await
        .unwrap();
    pass(5).await;
    assert_eq!(
        zone_record(&w, "www.shop.test.", "A").await.unwrap().ttl,
        Some(20)
    );
    assert!(
        t.external_dns_log()
            .iter()
            .any(|l| l.contains("UPSERT www.shop.test. A"))
    );
    // Through the annotation it lasts.
    let at = id("networking.k8s.io/v1beta1", "Ingress", "storefront", "web");
    w.blue
        .merge(
            &at,
            &json!({"metadata":{"annotations":{"external-dns.alpha.kubernetes.io/ttl":"5"}}}),
        )
        .await
        .unwrap();
    pass(60).await;
    assert_eq!(
        zone_record(&w, "www.shop.test.", "A").await.unwrap().ttl,
        Some(5)
    );
}

#[tokio::test(start_paused = true)]
async fn a_stopped_external_dns_writes_nothing_and_a_started_one_catches_up() {
    let (t, w) = company();
    scale(w.blue.as_ref(), "platform", "external-dns", 0).await;
    pass(10).await;
    w.dns
        .change(
            ZONE,
            &[Change::Upsert(record(
                "www.shop.test.",
                "A",
                5,
                &["203.0.113.10"],
            ))],
            "",
        )
        .await
        .unwrap();
    pass(600).await;
    assert_eq!(
        zone_record(&w, "www.shop.test.", "A").await.unwrap().ttl,
        Some(5)
    );
    assert_eq!(t.external_dns_log(), Vec::<String>::new());
    scale(w.blue.as_ref(), "platform", "external-dns", 1).await;
    pass(15).await;
    assert_eq!(
        zone_record(&w, "www.shop.test.", "A").await.unwrap().ttl,
        Some(20)
    );
}

#[tokio::test(start_paused = true)]
async fn dns_trap_15_one_poison_record_blocks_the_whole_zone_of_an_old_blue_and_only_itself_later()
{
    for (version, follows) in [("v0.10.2", false), ("v0.14.2", true)] {
        let mut s = snapshot_with(external_dns(version, "shop-blue", "sync"));
        if version == "v0.14.2" {
            for (name, resource) in [
                ("cname-orders", "service/orders/orders"),
                ("a-www", "ingress/storefront/web"),
            ] {
                let txt = record(
                    &format!("{name}.shop.test."),
                    "TXT",
                    300,
                    &[&heritage("shop-blue", resource)],
                );
                s.zones[0].records.push(txt);
            }
        }
        let (t, w) = of(&s);
        // Somebody's TXT stands where the ownership of a new host would: CREATE is refused in every loop.
        let stone = record(
            "new.shop.test.",
            "TXT",
            300,
            &[&heritage("other-team", "ingress/x/y")],
        );
        t.somebody_changes_records(ZONE, &[Change::Create(stone)])
            .unwrap();
        let web = id("networking.k8s.io/v1", "Ingress", "storefront", "web");
        let mut rules = w.blue.get(&web).await.unwrap().unwrap()["spec"]["rules"].clone();
        let mut second = rules[0].clone();
        second["host"] = json!("new.shop.test");
        rules.as_array_mut().unwrap().push(second);
        let moved = json!({"metadata": {"annotations": {"external-dns.alpha.kubernetes.io/ttl": "30"}}, "spec": {"rules": rules}});
        t.somebody_merges(Side::Blue, &web, &moved).unwrap();
        pass(60).await;
        let www = zone_record(&w, "www.shop.test.", "A").await.unwrap();
        assert_eq!(
            www.ttl == Some(30),
            follows,
            "{version}: {:?}",
            t.external_dns_log()
        );
    }
}
