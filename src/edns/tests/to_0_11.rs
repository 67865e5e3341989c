//! The oldest registry, up to 0.11: one legacy TXT a name.

use super::*;

#[test]
fn a_settled_blue_of_0_10_plans_nothing_on_its_own_zone() {
    assert_eq!(plan(&blue("0.10.2"), &zone_0_10(), &blue_objects()), vec![]);
}

#[test]
fn blue_of_0_10_makes_its_zone_from_nothing_with_legacy_txts_only() {
    let got = plan(&blue("0.10.2"), &[], &blue_objects());
    assert_eq!(
        names(&got),
        [
            "CREATE orders.shop.test. A",
            "CREATE orders.shop.test. TXT",
            "CREATE pay.shop.test. A",
            "CREATE pay.shop.test. TXT",
            "CREATE www.shop.test. A",
            "CREATE www.shop.test. TXT"
        ]
    );
    let Change::Create(pay) = &got[2] else {
        panic!("{got:?}")
    };
    assert_eq!(
        pay.alias.as_ref().map(|a| a.zone_id.as_str()),
        Some("Z32O12XQLNTSW2")
    );
    assert_eq!(pay.ttl, None);
    let Change::Create(t) = &got[5] else {
        panic!("{got:?}")
    };
    assert_eq!(
        t.values,
        [
            "\"heritage=external-dns,external-dns/owner=shop-blue,external-dns/resource=ingress/storefront/web\""
        ]
    );
    assert_eq!(t.ttl, Some(300));
}

#[test]
fn dns_trap_01_a_legacy_txt_left_with_blues_owner_lets_an_old_blue_flip_the_name_back() {
    let mut records = zone_0_10();
    records.push(txt("a-www.shop.test", "shop-green", WEB));
    for r in &mut records {
        if r.name == "www.shop.test." && r.rtype == "A" {
            r.values = vec!["198.51.100.10".into()];
        }
    }
    let back = plan(&blue("0.7.6"), &records, &blue_objects());
    assert_eq!(
        names(&back),
        ["UPSERT www.shop.test. A", "UPSERT www.shop.test. TXT"]
    );
}

#[test]
fn dns_trap_04_a_living_blue_deletes_greens_live_record_when_its_ingress_goes() {
    let mut records = zone_0_10();
    records.retain(|r| r.name == "www.shop.test.");
    records[0].values = vec!["198.51.100.10".into()];
    let got = plan(&blue("0.10.2"), &records, &[]);
    assert_eq!(
        names(&got),
        ["DELETE www.shop.test. A", "DELETE www.shop.test. TXT"]
    );
    // The DELETE carries the current value, so Route 53 accepts it.
    assert_eq!(got[0], Change::Delete(records[0].clone()));
}

#[test]
fn dns_trap_12_a_running_blue_reverts_an_annotated_ttl_and_upserts_annotated_aliases_every_loop() {
    let mut records = zone_0_10();
    for r in &mut records {
        if r.name == "www.shop.test." && r.rtype == "A" {
            r.ttl = Some(5);
        }
    }
    let got = plan(&blue("0.10.2"), &records, &blue_objects());
    let Change::Upsert(r) = &got[0] else {
        panic!("{got:?}")
    };
    assert_eq!((r.name.as_str(), r.ttl), ("www.shop.test.", Some(20)));
    let mut annotated = service(Some(BLUE_LB));
    annotated["metadata"]["annotations"]["external-dns.alpha.kubernetes.io/ttl"] = json!("60");
    assert_eq!(
        plan(
            &blue("0.10.2"),
            &zone_0_10(),
            &[ingress(Some("203.0.113.10"), None), annotated.clone()]
        )
        .len(),
        4
    );
    let mut typed = zone_0_10();
    typed.push(txt("cname-orders.shop.test", "shop-blue", ORDERS));
    typed.push(txt("cname-pay.shop.test", "shop-blue", ORDERS));
    typed.push(txt("a-www.shop.test", "shop-blue", WEB));
    assert_eq!(
        plan(
            &blue("0.14.2"),
            &typed,
            &[ingress(Some("203.0.113.10"), None), annotated]
        ),
        vec![]
    );
}

#[test]
fn dns_trap_18_wildcards_are_listed_escaped_and_their_txt_uses_the_replacement() {
    let c = config(
        "0.10.2",
        &["--txt-owner-id=shop-blue", "--txt-wildcard-replacement=any"],
    );
    let records = vec![
        rec("\\052.shop.test", "A", 300, &["203.0.113.10"]),
        txt("any.shop.test", "shop-blue", WEB),
    ];
    assert_eq!(
        ownership(&records, &c)[0].owner.as_deref(),
        Some("shop-blue")
    );
    assert_eq!(
        ownership(&records, &blue("0.10.2"))[0].owner,
        None,
        "on one side only"
    );
    assert_eq!(
        txt_variants("*.shop.test", "A", false, &c),
        ["any.shop.test.", "a-any.shop.test."]
    );
    assert_eq!(
        txt_variants("*.shop.test", "A", false, &blue("0.10.2")),
        ["*.shop.test.", "a-*.shop.test."]
    );
}

#[test]
fn dns_trap_19_weighted_records_are_told_apart_by_their_set_identifier() {
    let mut a = rec("www.shop.test", "A", 60, &["203.0.113.10"]);
    a.set_identifier = Some("blue".into());
    a.routing.insert("Weight".into(), json!(100));
    let mut ta = txt("www.shop.test", "shop-blue", WEB);
    ta.set_identifier = Some("blue".into());
    let mut b = a.clone();
    b.set_identifier = Some("green".into());
    let records = vec![a, b, ta];
    let owners: Vec<Option<String>> = ownership(&records, &blue("0.10.2"))
        .into_iter()
        .map(|o| o.owner)
        .collect();
    assert_eq!(owners, [Some("shop-blue".into()), None]);
    let got = plan(&blue("0.10.2"), &records, &[]);
    assert_eq!(got.len(), 2);
    assert!(
        got.iter()
            .all(|c| matches!(c, Change::Delete(r) if r.set_identifier.as_deref() == Some("blue")))
    );
}

#[test]
fn dns_trap_20_a_private_zone_of_the_same_name_is_left_alone_by_zone_type_public() {
    let private = Zone {
        private: true,
        ..zone()
    };
    let c = blue("0.10.2");
    assert_eq!(
        plan_changes(&c, &[], &desired(blue_objects(), &c), &private),
        vec![]
    );
}

#[test]
fn dns_trap_28_only_the_first_value_of_a_txt_is_read() {
    let mut t = txt("www.shop.test", "shop-blue", WEB);
    t.values.insert(0, "\"v=spf1 -all\"".into());
    let records = vec![rec("www.shop.test", "A", 20, &["203.0.113.10"]), t];
    let o = ownership(&records, &blue("0.10.2"));
    assert_eq!(o[0].owner, None);
    assert_eq!(o[1].key.rtype, "TXT", "it counts as a plain TXT record");
}

#[test]
fn noop_on_sync_deletes_what_is_not_desired_whoever_owns_it() {
    let c = config("0.10.2", &["--registry=noop", "--policy=sync"]);
    let got = names(&plan(&c, &zone_0_10(), &blue_objects()));
    assert!(got.contains(&"DELETE mail.shop.test. A".to_string()));
}
