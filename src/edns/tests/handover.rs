//! The handover as data: what a unit is, what it becomes, how it travels.

use super::*;
use std::collections::BTreeSet;
use switch::{Host, Unit, fits, pack, target, units, weight};

fn host(name: &str, object: &str) -> Host {
    Host {
        host: name.into(),
        object: object.into(),
        sets: BTreeSet::from([None]),
        txt: BTreeSet::new(),
    }
}

fn green_with_aaaa() -> Config {
    config(
        "0.21.0",
        &[
            "--txt-owner-id=shop-green",
            "--policy=upsert-only",
            "--managed-record-types=A",
            "--managed-record-types=AAAA",
            "--managed-record-types=CNAME",
        ],
    )
}

fn both() -> BTreeSet<String> {
    BTreeSet::from(["shop-blue".into(), "shop-green".into()])
}

fn one(records: &[RecordSet], hosts: &[Host], config: &Config) -> Unit {
    let mut all = units(hosts, records, config, &both());
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn becomes(
    unit: &Unit,
    objects: &[Value],
    config: &Config,
) -> Result<Vec<RecordSet>, switch::Hold> {
    let wanted = desired(objects, config);
    let mine: Vec<&Endpoint> = wanted
        .iter()
        .filter(|e| unit.hosts.iter().any(|h| h.host == e.name))
        .collect();
    target(unit, &mine, config, &zone())
}

#[test]
fn dns_rule_07_every_variant_gets_greens_owner_and_greens_first_loop_has_nothing_to_do() {
    for version in ["0.7.6", "0.10.2", "0.12.2", "0.14.2", "0.17.0", "0.21.0"] {
        let made = plan(&blue(version), &[], &blue_objects());
        let records: Vec<RecordSet> = made.iter().map(|c| switch::record_of(c).clone()).collect();
        // A blue of 0.16 and later has AAAA aliases, which the plan then lets green manage.
        let six = records.iter().any(|r| r.rtype == "AAAA");
        let c = if six { green_with_aaaa() } else { green() };
        let mut after = vec![];
        for (name, object) in [
            ("orders.shop.test", ORDERS),
            ("pay.shop.test", ORDERS),
            ("www.shop.test", WEB),
        ] {
            let unit = one(&records, &[host(name, object)], &c);
            let new = becomes(&unit, &green_objects(), &c)
                .unwrap_or_else(|h| panic!("{version} {name}: {h:?}"));
            assert_eq!(
                switch::owners_of(&new),
                BTreeSet::from(["shop-green".to_string()]),
                "{version} {name}"
            );
            after.extend(new);
        }
        assert_eq!(plan(&c, &after, &green_objects()), vec![], "{version}");
        for objects in [blue_objects(), vec![]] {
            assert_eq!(plan(&blue(version), &after, &objects), vec![], "{version}");
        }
    }
}

#[test]
fn dns_trap_17_hosts_that_share_a_txt_move_in_one_unit_and_each_is_greens_afterwards() {
    let c = green();
    let records = vec![
        rec("a-team.shop.test", "A", 300, &["203.0.113.10"]),
        txt("a-team.shop.test", "shop-blue", "ingress/storefront/a-team"),
        rec("team.shop.test", "A", 300, &["203.0.113.10"]),
        txt("team.shop.test", "shop-blue", "ingress/storefront/team"),
    ];
    let objects: Vec<Value> = ["a-team", "team"]
        .map(|n| {
            let mut o = ingress(Some("198.51.100.10"), None);
            o["metadata"]["name"] = json!(n);
            o["spec"]["rules"][0]["host"] = json!(format!("{n}.shop.test"));
            o
        })
        .to_vec();
    let hosts = [
        host("a-team.shop.test", "ingress/storefront/a-team"),
        host("team.shop.test", "ingress/storefront/team"),
    ];
    let unit = one(&records, &hosts, &c);
    assert_eq!(unit.key(), "a-team.shop.test+team.shop.test");
    let new = becomes(&unit, &objects, &c).expect("both can go");
    for o in ownership(&new, &c) {
        assert_eq!(o.owner.as_deref(), Some("shop-green"), "{:?}", o.key);
    }
    let moved = new.iter().filter(|r| r.values == ["198.51.100.10"]).count();
    assert_eq!(
        moved, 2,
        "without a TXT of its own `a-team` would have stayed on blue: {new:#?}"
    );
    assert_eq!(plan(&c, &new, &objects), vec![]);
    assert_eq!(plan(&blue("0.10.2"), &new, &objects), vec![]);
}

#[test]
fn a_txt_of_another_owner_under_our_names_is_never_taken() {
    let records = vec![
        rec("team.shop.test", "A", 300, &["203.0.113.10"]),
        txt("team.shop.test", "shop-blue", WEB),
        rec("a-team.shop.test", "A", 300, &["192.0.2.1"]),
        txt("a-team.shop.test", "other-team", "ingress/x/a-team"),
    ];
    let unit = one(&records, &[host("team.shop.test", WEB)], &green());
    assert!(!unit.records.iter().any(|r| r.name == "a-team.shop.test."));
    // Green wants its typed TXT under that very name: a CREATE, which Route 53 refuses, so the name is held and the TXT stays the other team's.
    let mut o = ingress(Some("198.51.100.10"), None);
    o["spec"]["rules"][0]["host"] = json!("team.shop.test");
    let new = becomes(&unit, &[o], &green()).expect("the model cannot know");
    let batch = names(&switch::batch(&unit.records, &new));
    assert!(
        batch.contains(&"CREATE a-team.shop.test. TXT".to_string()),
        "{batch:?}"
    );
}

#[test]
fn dns_trap_28_a_rewrite_keeps_the_values_after_the_first() {
    let mut t = txt("www.shop.test", "shop-blue", WEB);
    t.values.push("\"v=spf1 -all\"".into());
    let records = vec![rec("www.shop.test", "A", 20, &["203.0.113.10"]), t];
    let unit = one(&records, &[host("www.shop.test", WEB)], &green());
    let new = becomes(&unit, &green_objects(), &green()).expect("can go");
    let t = new
        .iter()
        .find(|r| r.rtype == "TXT" && r.name == "www.shop.test.")
        .expect("kept");
    assert_eq!(
        t.values,
        [heritage_value("shop-green", WEB), "\"v=spf1 -all\"".into()]
    );
}

#[test]
fn dns_trap_16_an_apex_goes_over_with_its_legacy_txt_alone() {
    let records = vec![
        rec("shop.test", "A", 300, &["203.0.113.10"]),
        txt("shop.test", "shop-blue", WEB),
    ];
    let mut o = ingress(Some("198.51.100.10"), None);
    o["spec"]["rules"][0]["host"] = json!("shop.test");
    let unit = one(&records, &[host("shop.test", WEB)], &green());
    let new =
        becomes(&unit, &[o], &green()).expect("an UPSERT of the same in each loop is no change");
    assert_eq!(new.len(), 2, "no TXT outside the zone: {new:#?}");
    assert_eq!(new[0].values, ["198.51.100.10"]);
}

#[test]
fn dns_trap_14_another_record_type_is_held_and_says_so() {
    let records = vec![
        rec("orders.shop.test", "CNAME", 300, &[BLUE_LB]),
        txt("cname-orders.shop.test", "shop-blue", ORDERS),
    ];
    let unit = one(&records, &[host("orders.shop.test", ORDERS)], &green());
    let hold = becomes(&unit, &[service(Some(GREEN_LB))], &green())
        .expect_err("a CNAME cannot become an alias");
    assert!(hold.remedy.contains("trap 14"), "{hold:?}");
}

#[test]
fn dns_trap_13_a_name_with_an_aaaa_waits_for_a_green_that_manages_them() {
    let records = vec![
        alias("orders.shop.test", "A", BLUE_LB),
        alias("orders.shop.test", "AAAA", BLUE_LB),
        txt("cname-orders.shop.test", "shop-blue", ORDERS),
        txt("aaaa-orders.shop.test", "shop-blue", ORDERS),
    ];
    let unit = one(&records, &[host("orders.shop.test", ORDERS)], &green());
    assert_eq!(unit.records.len(), 4);
    let hold = becomes(&unit, &[service(Some(GREEN_LB))], &green())
        .expect_err("would stay on blue for IPv6");
    assert!(hold.why.contains("AAAA"), "{hold:?}");
    let six = green_with_aaaa();
    let new = becomes(&unit, &[service(Some(GREEN_LB))], &six).expect("can go");
    let targets: BTreeSet<&str> = new
        .iter()
        .filter_map(|r| r.alias.as_ref())
        .map(|a| a.name.as_str())
        .collect();
    assert_eq!(
        targets,
        BTreeSet::from([format!("{GREEN_LB}.").as_str()]),
        "both types"
    );
}

#[test]
fn dns_rule_10_a_name_without_a_target_on_green_is_held() {
    let unit = one(&zone_0_10(), &[host("www.shop.test", WEB)], &green());
    let hold = becomes(&unit, &[ingress(None, Some("20"))], &green()).expect_err("pending");
    assert!(hold.why.contains("no load balancer address"), "{hold:?}");
}

#[test]
fn dns_rule_18_a_ttl_that_was_lowered_in_the_zone_stays_low_on_green() {
    let records = vec![
        rec("www.shop.test", "A", 5, &["203.0.113.10"]),
        txt("www.shop.test", "shop-blue", WEB),
    ];
    let mut told = green();
    told.min_ttl = Some(5);
    for (c, ttl) in [(green(), 300), (told, 5)] {
        let unit = one(&records, &[host("www.shop.test", WEB)], &c);
        let new = becomes(&unit, &[ingress(Some("198.51.100.10"), None)], &c).expect("can go");
        assert_eq!(
            new.iter().find(|r| r.rtype == "A").and_then(|r| r.ttl),
            Some(ttl)
        );
    }
}

#[test]
fn dns_trap_19_of_a_weighted_name_only_our_sets_move_and_txts_keep_identifier_and_weight() {
    let weighted = |id: &str, ip: &str, weight: u32| {
        let mut a = rec("www.shop.test", "A", 60, &[ip]);
        a.set_identifier = Some(id.into());
        a.routing.insert("Weight".into(), json!(weight));
        a
    };
    let mut t = txt("www.shop.test", "shop-blue", WEB);
    t.set_identifier = Some("a".into());
    t.routing.insert("Weight".into(), json!(70));
    let records = vec![
        weighted("a", "203.0.113.10", 70),
        weighted("b", "192.0.2.1", 30),
        t,
    ];
    let mut h = host("www.shop.test", WEB);
    h.sets = BTreeSet::from([Some("a".into())]);
    let unit = one(&records, &[h], &green());
    assert_eq!(unit.records.len(), 2, "the other cluster's set is not ours");
    let mut o = ingress(Some("198.51.100.10"), None);
    for (k, v) in [("set-identifier", "a"), ("aws-weight", "70")] {
        o["metadata"]["annotations"][format!("external-dns.alpha.kubernetes.io/{k}")] = json!(v);
    }
    let new = becomes(&unit, &[o], &green()).expect("can go");
    assert!(
        new.iter()
            .all(|r| r.set_identifier.as_deref() == Some("a") && r.routing["Weight"] == json!(70)),
        "{new:#?}"
    );
    assert_eq!(
        new.iter().filter(|r| r.rtype == "TXT").count(),
        2,
        "legacy and typed"
    );
}

/// A name of one address and one ownership TXT, handed over.
fn moved(n: usize) -> Vec<Change> {
    let name = format!("h{n}.shop.test");
    vec![
        Change::Delete(rec(&name, "A", 60, &["203.0.113.10"])),
        Change::Delete(txt(&name, "shop-blue", WEB)),
        Change::Create(rec(&name, "A", 60, &["198.51.100.10"])),
        Change::Create(txt(&name, "shop-green", WEB)),
    ]
}

#[test]
fn dns_rule_17_batches_are_as_full_as_route_53_allows_and_no_name_is_split() {
    let all = pack((0..220).map(|n| (n, moved(n))));
    let per_name = weight(&moved(0));
    assert_eq!(per_name.0, 4);
    // 880 values would be one batch; their TXTs are what fills it: 32 000 characters.
    let fits_in_one = switch::BATCH_CHARACTERS / weight(&moved(219)).1;
    assert_eq!(all[0].len(), fits_in_one, "not one name more would fit");
    for batch in &all {
        let changes: Vec<Change> = batch.iter().flat_map(|(_, c)| c.clone()).collect();
        assert!(fits(&changes));
        assert_eq!(changes.len() % 4, 0);
    }
    assert_eq!(all.iter().map(Vec::len).sum::<usize>(), 220);
    assert!(pack(vec![((), vec![])]).is_empty());
    let upsert = vec![Change::Upsert(rec(
        "x.shop.test",
        "A",
        60,
        &["192.0.2.1", "192.0.2.2"],
    ))];
    assert_eq!(weight(&upsert), (4, 36), "an UPSERT counts twice");
}

#[test]
fn a_refusal_names_its_record_in_any_spelling_and_no_other() {
    let message = "InvalidChangeBatch: [Tried to delete resource record set [name='www.shop.test.', type='A'] but the values provided do not match the current values]";
    let of = |n: &str| vec![Change::Delete(rec(n, "A", 60, &["192.0.2.1"]))];
    assert!(switch::named_in(message, &of("www.shop.test")));
    assert!(!switch::named_in(message, &of("ww.shop.test")));
    assert!(!switch::named_in(message, &of("shop.test")));
    assert!(switch::named_in(
        "RRSet with DNS name \\052.shop.test. is not permitted",
        &of("*.shop.test")
    ));
}
