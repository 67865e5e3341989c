//! 0.18 and later: typed TXTs alone, as green writes them.

use super::*;

#[test]
fn green_with_another_owner_leaves_every_record_alone_until_the_txts_are_rewritten() {
    assert_eq!(plan(&green(), &zone_0_10(), &green_objects()), vec![]);
}

#[test]
fn after_the_handover_green_moves_the_names_and_adds_its_typed_txts() {
    let records = handed_over(zone_0_10(), "shop-green");
    assert_eq!(
        names(&plan(&green(), &records, &green_objects())),
        [
            "UPSERT orders.shop.test. A",
            "UPSERT cname-orders.shop.test. TXT",
            "UPSERT pay.shop.test. A",
            "UPSERT cname-pay.shop.test. TXT",
            "UPSERT www.shop.test. A",
            "UPSERT a-www.shop.test. TXT"
        ]
    );
}

#[test]
fn dns_trap_02_a_green_of_0_22_leaves_cname_txts_that_a_blue_of_0_17_still_believes() {
    let records = vec![
        alias("orders.shop.test", "A", GREEN_LB),
        txt("a-orders.shop.test", "shop-green", ORDERS),
        txt("cname-orders.shop.test", "shop-blue", ORDERS),
        txt("orders.shop.test", "shop-blue", ORDERS),
    ];
    let owner = |v: &str| {
        ownership(&records, &config(v, &["--policy=sync"]))[0]
            .owner
            .clone()
    };
    assert_eq!(owner("0.17.0").as_deref(), Some("shop-blue"));
    assert_eq!(owner("0.21.0").as_deref(), Some("shop-blue"));
    assert_eq!(owner("0.22.0").as_deref(), Some("shop-green"));
}

#[test]
fn dns_trap_05_green_on_sync_with_a_pending_load_balancer_deletes_the_name_and_upsert_only_keeps_it()
 {
    let records = handed_over(zone_0_10(), "shop-green");
    let pending = [ingress(None, Some("20")), service(Some(BLUE_LB))];
    let sync = config(
        "0.21.0",
        &[
            "--txt-owner-id=shop-green",
            "--policy=sync",
            "--exclude-record-types=AAAA",
        ],
    );
    assert!(
        names(&plan(&sync, &records, &pending)).contains(&"DELETE www.shop.test. A".to_string())
    );
    assert!(
        !names(&plan(&green(), &records, &pending))
            .iter()
            .any(|c| c.contains("www"))
    );
}

#[test]
fn dns_trap_06_a_green_of_0_22_reads_no_alpha_annotations_but_still_sees_spec_hosts() {
    let c = config("0.22.0", &["--policy=sync", "--txt-owner-id=shop-green"]);
    let hosts: Vec<String> = desired(green_objects(), &c)
        .into_iter()
        .map(|e| e.name)
        .collect();
    assert_eq!(hosts, ["www.shop.test"]);
    assert!(
        Config::from_args("x/external-dns:v0.22.0", &[]).is_err(),
        "0.22 needs --policy"
    );
}

#[test]
fn dns_trap_07_one_character_in_the_owner_or_another_prefix_means_silent_no_change() {
    let records = handed_over(zone_0_10(), "shop-green");
    let typo = config(
        "0.21.0",
        &["--txt-owner-id=shop-greem", "--policy=upsert-only"],
    );
    assert_eq!(plan(&typo, &records, &green_objects()), vec![]);
    let prefixed = config(
        "0.21.0",
        &[
            "--txt-owner-id=shop-green",
            "--txt-prefix=x-",
            "--policy=upsert-only",
        ],
    );
    assert_eq!(plan(&prefixed, &records, &green_objects()), vec![]);
}

#[test]
fn dns_trap_08_an_orphan_txt_makes_a_new_green_create_a_record_it_does_not_own() {
    let records = [txt("a-www.shop.test", "shop-blue", WEB)];
    let got = plan(&green(), &records, &[ingress(Some("198.51.100.10"), None)]);
    assert_eq!(names(&got), ["CREATE www.shop.test. A"]);
    let old = plan(
        &blue("0.17.0"),
        &records,
        &[ingress(Some("198.51.100.10"), None)],
    );
    assert!(
        names(&old).contains(&"CREATE a-www.shop.test. TXT".to_string()),
        "refused by Route 53 for ever"
    );
}

#[test]
fn dns_trap_10_a_lowered_ttl_without_annotation_jumps_to_300_at_greens_first_upsert() {
    let records = vec![
        rec("www.shop.test", "A", 5, &["203.0.113.10"]),
        txt("www.shop.test", "shop-green", WEB),
        txt("a-www.shop.test", "shop-green", WEB),
    ];
    assert_eq!(
        plan(&green(), &records, &[ingress(Some("203.0.113.10"), None)]),
        vec![],
        "a TTL alone is not compared"
    );
    let got = plan(&green(), &records, &[ingress(Some("198.51.100.10"), None)]);
    let Change::Upsert(r) = &got[0] else {
        panic!("{got:?}")
    };
    assert_eq!(r.ttl, Some(300));
    let kept = config(
        "0.21.0",
        &[
            "--txt-owner-id=shop-green",
            "--policy=upsert-only",
            "--min-ttl=5s",
            "--exclude-record-types=AAAA",
        ],
    );
    let got = plan(&kept, &records, &[ingress(Some("198.51.100.10"), None)]);
    let Change::Upsert(r) = &got[0] else {
        panic!("{got:?}")
    };
    assert_eq!(r.ttl, Some(5), "--min-ttl works from 0.21");
}

#[test]
fn dns_trap_13_since_0_16_every_alias_brings_an_aaaa_unless_excluded() {
    let c = config(
        "0.21.0",
        &["--txt-owner-id=shop-green", "--policy=upsert-only"],
    );
    let got = names(&plan(&c, &[], &[service(Some(GREEN_LB))]));
    assert!(
        got.contains(&"CREATE orders.shop.test. AAAA".to_string()),
        "{got:?}"
    );
    assert!(
        got.contains(&"CREATE aaaa-orders.shop.test. TXT".to_string()),
        "{got:?}"
    );
    let got = names(&plan(&green(), &[], &[service(Some(GREEN_LB))]));
    assert!(
        !got.iter().any(|c| c.contains("AAAA") || c.contains("aaaa")),
        "{got:?}"
    );
}

#[test]
fn dns_trap_14_upsert_only_cannot_turn_a_cname_into_an_alias() {
    let records = vec![
        rec("orders.shop.test", "CNAME", 300, &[BLUE_LB]),
        txt("cname-orders.shop.test", "shop-green", ORDERS),
    ];
    let got = plan(&green(), &records, &[service(Some(GREEN_LB))]);
    let about_orders: Vec<String> = names(&got)
        .into_iter()
        .filter(|n| n.contains("orders"))
        .collect();
    assert!(about_orders.contains(&"CREATE orders.shop.test. A".to_string()));
    assert!(
        !about_orders.iter().any(|n| n.starts_with("DELETE")),
        "the CREATE will conflict for ever: {about_orders:?}"
    );
}
