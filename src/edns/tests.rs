//! One test per rule and trap of externaldns.md that the model must reproduce.

use super::*;
use crate::world::dns::{Alias, Change, RecordSet, Zone};
use serde_json::{Value, json};

fn zone() -> Zone {
    Zone {
        id: "Z1".into(),
        name: "shop.test.".into(),
        private: false,
    }
}
fn config(version: &str, extra: &[&str]) -> Config {
    let mut args: Vec<String> = [
        "--provider=aws",
        "--source=ingress",
        "--source=service",
        "--registry=txt",
        "--domain-filter=shop.test",
        "--aws-zone-type=public",
    ]
    .iter()
    .map(|s| s.to_string())
    .collect();
    args.extend(extra.iter().map(|s| s.to_string()));
    Config::from_args(
        &format!("registry.k8s.io/external-dns/external-dns:v{version}"),
        &args,
    )
    .expect("a valid configuration")
}
fn blue(version: &str) -> Config {
    config(version, &["--txt-owner-id=shop-blue", "--policy=sync"])
}
fn green() -> Config {
    config(
        "0.21.0",
        &[
            "--txt-owner-id=shop-green",
            "--policy=upsert-only",
            "--exclude-record-types=AAAA",
        ],
    )
}
fn rec(name: &str, rtype: &str, ttl: u32, values: &[&str]) -> RecordSet {
    RecordSet {
        name: fqdn(name),
        rtype: rtype.into(),
        ttl: Some(ttl),
        values: values.iter().map(|v| v.to_string()).collect(),
        alias: None,
        set_identifier: None,
        routing: Default::default(),
    }
}
fn alias(name: &str, rtype: &str, target: &str) -> RecordSet {
    RecordSet {
        ttl: None,
        values: vec![],
        alias: Some(Alias {
            zone_id: canonical_zone(target).expect("an AWS load balancer").into(),
            name: fqdn(target),
            evaluate_target_health: true,
        }),
        ..rec(name, rtype, 0, &[])
    }
}
fn txt(name: &str, owner: &str, resource: &str) -> RecordSet {
    rec(name, "TXT", 300, &[&heritage_value(owner, resource)])
}
const WEB: &str = "ingress/storefront/web";
const ORDERS: &str = "service/orders/orders";
const BLUE_LB: &str = "ablue-1.eu-west-1.elb.amazonaws.com";
const GREEN_LB: &str = "agreen-2.eu-west-1.elb.amazonaws.com";

fn ingress(ip: Option<&str>, ttl: Option<&str>) -> Value {
    let mut o = json!({"apiVersion": "networking.k8s.io/v1beta1", "kind": "Ingress",
        "metadata": {"namespace": "storefront", "name": "web", "annotations": {}},
        "spec": {"rules": [{"host": "www.shop.test"}]}});
    if let Some(t) = ttl {
        o["metadata"]["annotations"]["external-dns.alpha.kubernetes.io/ttl"] = json!(t);
    }
    if let Some(ip) = ip {
        o["status"] = json!({"loadBalancer": {"ingress": [{"ip": ip}]}});
    }
    o
}
fn service(lb: Option<&str>) -> Value {
    let mut o = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"namespace": "orders", "name": "orders", "annotations":
            {"external-dns.alpha.kubernetes.io/hostname": "orders.shop.test,pay.shop.test."}},
        "spec": {"type": "LoadBalancer"}});
    if let Some(lb) = lb {
        o["status"] = json!({"loadBalancer": {"ingress": [{"hostname": lb}]}});
    }
    o
}
/// The zone as ExternalDNS 0.10.2 left it: one legacy TXT a name.
fn zone_0_10() -> Vec<RecordSet> {
    vec![
        rec("legacy.shop.test", "A", 300, &["192.0.2.80"]),
        txt("legacy.shop.test", "other-team", "ingress/x/y"),
        rec("mail.shop.test", "A", 300, &["192.0.2.25"]),
        alias("orders.shop.test", "A", BLUE_LB),
        txt("orders.shop.test", "shop-blue", ORDERS),
        alias("pay.shop.test", "A", BLUE_LB),
        txt("pay.shop.test", "shop-blue", ORDERS),
        rec("www.shop.test", "A", 20, &["203.0.113.10"]),
        txt("www.shop.test", "shop-blue", WEB),
    ]
}
fn blue_objects() -> Vec<Value> {
    vec![
        ingress(Some("203.0.113.10"), Some("20")),
        service(Some(BLUE_LB)),
    ]
}
fn green_objects() -> Vec<Value> {
    vec![
        ingress(Some("198.51.100.10"), Some("20")),
        service(Some(GREEN_LB)),
    ]
}
/// What the cutover does: every TXT variant of a name gets the new owner.
fn handed_over(mut records: Vec<RecordSet>, owner: &str) -> Vec<RecordSet> {
    for r in &mut records {
        if r.rtype == "TXT"
            && let Some(v) = rewrite_owner(&r.values[0], owner)
            && r.values[0].contains("shop-blue")
        {
            r.values[0] = v;
        }
    }
    records
}
fn plan(c: &Config, records: &[RecordSet], objects: &[Value]) -> Vec<Change> {
    plan_changes(c, records, &desired(objects, c), &zone())
}
fn names(changes: &[Change]) -> Vec<String> {
    changes
        .iter()
        .map(|c| match c {
            Change::Create(r) => format!("CREATE {} {}", r.name, r.rtype),
            Change::Delete(r) => format!("DELETE {} {}", r.name, r.rtype),
            Change::Upsert(r) => format!("UPSERT {} {}", r.name, r.rtype),
        })
        .collect()
}

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
fn a_resurrected_blue_of_any_age_plans_nothing_on_a_handed_over_zone_rule_7() {
    let mut records = handed_over(zone_0_10(), "shop-green");
    records.push(txt("cname-orders.shop.test", "shop-green", ORDERS));
    records.push(txt("cname-pay.shop.test", "shop-green", ORDERS));
    records.push(txt("a-www.shop.test", "shop-green", WEB));
    for r in &mut records {
        if r.name == "www.shop.test." && r.rtype == "A" {
            r.values = vec!["198.51.100.10".into()];
        }
    }
    for version in [
        "0.7.6", "0.10.2", "0.12.2", "0.13.4", "0.13.5", "0.14.2", "0.17.0", "0.21.0",
    ] {
        assert_eq!(
            plan(&blue(version), &records, &blue_objects()),
            vec![],
            "{version}"
        );
        assert_eq!(
            plan(&blue(version), &records, &[]),
            vec![],
            "{version}, no objects"
        );
    }
}

#[test]
fn trap_1_a_legacy_txt_left_with_blues_owner_lets_an_old_blue_flip_the_name_back() {
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
fn trap_2_a_green_of_0_22_leaves_cname_txts_that_a_blue_of_0_17_still_believes() {
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
fn trap_3_with_0_12_the_last_listed_variant_decides_so_ownership_depends_on_the_host_name() {
    // Route 53's order: `app` before `cname-app`, but `cname-foo` before `foo`.
    let app = [
        alias("app.shop.test", "A", BLUE_LB),
        txt("app.shop.test", "legacy-owner", ORDERS),
        txt("cname-app.shop.test", "typed-owner", ORDERS),
    ];
    let foo = [
        txt("cname-foo.shop.test", "typed-owner", ORDERS),
        alias("foo.shop.test", "A", BLUE_LB),
        txt("foo.shop.test", "legacy-owner", ORDERS),
    ];
    let old = blue("0.12.2");
    assert_eq!(
        ownership(&app, &old)[0].owner.as_deref(),
        Some("typed-owner")
    );
    assert_eq!(
        ownership(&foo, &old)[0].owner.as_deref(),
        Some("legacy-owner")
    );
    let new = blue("0.14.2");
    assert_eq!(
        ownership(&foo, &new)[0].owner.as_deref(),
        Some("typed-owner")
    );
}

#[test]
fn trap_4_a_living_blue_deletes_greens_live_record_when_its_ingress_goes() {
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
fn trap_5_green_on_sync_with_a_pending_load_balancer_deletes_the_name_and_upsert_only_keeps_it() {
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
fn trap_6_a_green_of_0_22_reads_no_alpha_annotations_but_still_sees_spec_hosts() {
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
fn trap_7_one_character_in_the_owner_or_another_prefix_means_silent_no_change() {
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
fn trap_8_an_orphan_txt_makes_a_new_green_create_a_record_it_does_not_own() {
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
fn trap_10_a_lowered_ttl_without_annotation_jumps_to_300_at_greens_first_upsert() {
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
fn trap_12_a_running_blue_reverts_an_annotated_ttl_and_upserts_annotated_aliases_every_loop() {
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
fn trap_13_since_0_16_every_alias_brings_an_aaaa_unless_excluded() {
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
fn trap_16_the_typed_txt_of_an_apex_lies_outside_the_zone_and_is_never_written() {
    let mut apex = ingress(Some("198.51.100.10"), None);
    apex["spec"]["rules"][0]["host"] = json!("shop.test");
    let records = vec![
        rec("shop.test", "A", 300, &["198.51.100.10"]),
        txt("shop.test", "shop-green", WEB),
    ];
    assert_eq!(
        names(&plan(&green(), &records, &[apex.clone()])),
        ["UPSERT shop.test. A"],
        "every loop"
    );
    assert_eq!(
        names(&plan(&blue("0.10.2"), &[], &[apex])),
        ["CREATE shop.test. A", "CREATE shop.test. TXT"]
    );
}

#[test]
fn trap_17_a_host_called_a_team_gives_its_ownership_to_team() {
    let records = vec![
        rec("a-team.shop.test", "A", 300, &["203.0.113.10"]),
        txt("a-team.shop.test", "shop-blue", WEB),
        rec("team.shop.test", "A", 300, &["192.0.2.9"]),
    ];
    let by = |v: &str| -> Vec<Option<String>> {
        ownership(&records, &config(v, &["--policy=sync"]))
            .into_iter()
            .map(|o| o.owner)
            .collect()
    };
    assert_eq!(by("0.10.2"), [Some("shop-blue".into()), None]);
    assert_eq!(by("0.21.0"), [None, Some("shop-blue".into())]);
}

#[test]
fn trap_18_wildcards_are_listed_escaped_and_their_txt_uses_the_replacement() {
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
fn trap_19_weighted_records_are_told_apart_by_their_set_identifier() {
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
fn trap_20_a_private_zone_of_the_same_name_is_left_alone_by_zone_type_public() {
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
fn trap_24_a_copied_target_annotation_keeps_green_pointing_at_blue() {
    let mut o = ingress(Some("198.51.100.10"), None);
    o["metadata"]["annotations"]["external-dns.alpha.kubernetes.io/target"] = json!("203.0.113.10");
    assert_eq!(desired(&[o], &green())[0].targets, ["203.0.113.10"]);
}

#[test]
fn trap_28_only_the_first_value_of_a_txt_is_read() {
    let mut t = txt("www.shop.test", "shop-blue", WEB);
    t.values.insert(0, "\"v=spf1 -all\"".into());
    let records = vec![rec("www.shop.test", "A", 20, &["203.0.113.10"]), t];
    let o = ownership(&records, &blue("0.10.2"));
    assert_eq!(o[0].owner, None);
    assert_eq!(o[1].key.rtype, "TXT", "it counts as a plain TXT record");
}

#[test]
fn section_1_3_each_age_writes_its_own_txt_names() {
    let written = |v: &str, object: Value| -> Vec<String> {
        names(&plan(
            &config(
                v,
                &[
                    "--txt-owner-id=o",
                    "--policy=upsert-only",
                    "--exclude-record-types=AAAA",
                    "--annotation-prefix=external-dns.alpha.kubernetes.io/",
                ],
            ),
            &[],
            &[object],
        ))
        .into_iter()
        .filter(|n| n.ends_with("TXT") && !n.contains("pay"))
        .map(|n| {
            n.split(' ')
                .nth(1)
                .map(|s| s.trim_end_matches(".shop.test.").to_string())
                .unwrap_or_default()
        })
        .collect()
    };
    for (version, on_alias, on_a) in [
        ("0.7.6", vec!["orders"], vec!["www"]),
        ("0.11.0", vec!["orders"], vec!["www"]),
        (
            "0.12.2",
            vec!["orders", "cname-orders"],
            vec!["www", "a-www"],
        ),
        (
            "0.14.2",
            vec!["orders", "cname-orders"],
            vec!["www", "a-www"],
        ),
        (
            "0.17.0",
            vec!["orders", "cname-orders"],
            vec!["www", "a-www"],
        ),
        ("0.18.0", vec!["cname-orders"], vec!["a-www"]),
        ("0.21.0", vec!["cname-orders"], vec!["a-www"]),
        ("0.22.0", vec!["a-orders"], vec!["a-www"]),
    ] {
        assert_eq!(
            written(version, service(Some(GREEN_LB))),
            on_alias,
            "{version} alias"
        );
        assert_eq!(
            written(version, ingress(Some("203.0.113.10"), None)),
            on_a,
            "{version} A"
        );
    }
}

#[test]
fn section_1_4_the_type_goes_between_prefix_and_label_or_into_the_template() {
    let p = config("0.17.0", &["--txt-prefix=Ext-", "--policy=sync"]);
    assert_eq!(
        txt_variants("www.shop.test", "A", true, &p),
        [
            "ext-www.shop.test.",
            "ext-cname-www.shop.test.",
            "ext-a-www.shop.test."
        ]
    );
    let s = config("0.17.0", &["--txt-suffix=-owner", "--policy=sync"]);
    assert_eq!(
        txt_variants("www.shop.test", "CNAME", false, &s),
        ["www-owner.shop.test.", "cname-www-owner.shop.test."]
    );
    let t = config(
        "0.17.0",
        &["--txt-prefix=%{record_type}-x.", "--policy=sync"],
    );
    assert_eq!(
        txt_variants("www.shop.test", "A", false, &t),
        ["-x.www.shop.test.", "a-x.www.shop.test."]
    );
    let records = vec![
        rec("www.shop.test", "A", 300, &["203.0.113.10"]),
        txt("a-x.www.shop.test", "me", WEB),
    ];
    assert_eq!(ownership(&records, &t)[0].owner.as_deref(), Some("me"));
    let records = vec![
        rec("www.shop.test", "CNAME", 300, &["x.example.org"]),
        txt("cname-www-owner.shop.test", "me", WEB),
    ];
    assert_eq!(ownership(&records, &s)[0].owner.as_deref(), Some("me"));
}

#[test]
fn the_first_loop_of_0_17_on_an_old_zone_adds_the_missing_typed_txts_force_update() {
    let got = names(&plan(&blue("0.17.0"), &zone_0_10(), &blue_objects()));
    assert!(
        got.contains(&"UPSERT www.shop.test. A".to_string()),
        "{got:?}"
    );
    assert!(
        got.contains(&"UPSERT a-www.shop.test. TXT".to_string()),
        "{got:?}"
    );
    assert!(
        got.contains(&"UPSERT www.shop.test. TXT".to_string()),
        "{got:?}"
    );
}

#[test]
fn upsert_only_cannot_turn_a_cname_into_an_alias_trap_14() {
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

#[test]
fn noop_on_sync_deletes_what_is_not_desired_whoever_owns_it() {
    let c = config("0.10.2", &["--registry=noop", "--policy=sync"]);
    let got = names(&plan(&c, &zone_0_10(), &blue_objects()));
    assert!(got.contains(&"DELETE mail.shop.test. A".to_string()));
}

#[test]
fn rewriting_the_owner_keeps_every_other_word_of_the_value() {
    let v = "\"heritage=external-dns,external-dns/dualstack=true,external-dns/owner=shop-blue,external-dns/resource=ingress/a/b\"";
    assert_eq!(
        rewrite_owner(v, "shop-green").as_deref(),
        Some(
            "\"heritage=external-dns,external-dns/dualstack=true,external-dns/owner=shop-green,external-dns/resource=ingress/a/b\""
        )
    );
    assert_eq!(rewrite_owner("\"v=spf1 -all\"", "shop-green"), None);
    assert_eq!(
        rewrite_owner("\"heritage=other,external-dns/owner=x\"", "y"),
        None
    );
}

#[test]
fn flags_are_read_in_both_spellings_and_an_unknown_one_is_reported() {
    let args: Vec<String> = [
        "--source",
        "service",
        "--txt-owner-id",
        "me",
        "--interval=1m30s",
        "--no-aws-evaluate-target-health",
        "--frobnicate=7",
        "--events",
    ]
    .iter()
    .map(|s| s.to_string())
    .collect();
    let c = Config::from_args(
        "quay.io/x/external-dns:0.13.1-debian-11-r0@sha256:aa",
        &args,
    )
    .expect("valid");
    assert_eq!(c.version, Version::new(0, 13, 1));
    assert_eq!(
        (c.owner.as_str(), c.interval, c.evaluate_target_health),
        ("me", 90, false)
    );
    assert_eq!(c.unknown, ["--frobnicate=7"]);
    assert_eq!(c.managed, ["A", "CNAME"]);
    let absent = Config::from_args("x/external-dns:v0.10.2", &[]).expect("valid");
    assert_eq!(
        (absent.owner.as_str(), absent.owner_given, absent.policy),
        ("default", false, Policy::Sync)
    );
    let e = Config::from_args("x/external-dns:latest", &[]).expect_err("no version");
    assert!(e.message.contains("latest"), "{e}");
}

#[test]
fn the_instance_is_found_in_a_workload_with_its_environment_flags() {
    let o = json!({"kind": "Deployment", "spec": {"template": {"spec": {"containers": [
        {"image": "busybox"},
        {"image": "registry.k8s.io/external-dns/external-dns:v0.10.2",
         "args": ["--source=ingress"], "env": [{"name": "EXTERNAL_DNS_TXT_OWNER_ID", "value": "me"}]}]}}}});
    let c = Config::of_workload(&o).expect("found").expect("valid");
    assert_eq!((c.owner.as_str(), c.sources.len()), ("me", 1));
    assert!(
        Config::of_workload(
            &json!({"spec": {"template": {"spec": {"containers": [{"image": "x/y:1"}]}}}})
        )
        .is_none()
    );
}

#[test]
fn every_txt_variant_of_a_name_is_listed_for_the_rewrite() {
    let mut records = zone_0_10();
    records.push(txt("cname-orders.shop.test", "shop-blue", ORDERS));
    let o = ownership(&records, &blue("0.10.2"));
    let orders = o
        .iter()
        .find(|o| o.key.name == "orders.shop.test.")
        .expect("listed");
    let names: Vec<&str> = orders.txt.iter().map(|k| k.name.as_str()).collect();
    assert_eq!(names, ["orders.shop.test.", "cname-orders.shop.test."]);
    let mail = o
        .iter()
        .find(|o| o.key.name == "mail.shop.test.")
        .expect("listed");
    assert_eq!((mail.owner.clone(), mail.txt.len()), (None, 0));
}
